/* What the parts of space/ ask of a space that is being built. */
#include "space/space_internal.h"

smg_status smg_space_refuse(smg_space_builder *b, const char *why, smg_node_id id) {
    if (b->space->refused == NULL) {
        b->space->refused = smg_arena_format(b->arena, "%s (%s)", why, smg_graph_describe(b->g, id));
        if (b->space->refused == NULL) return SMG_MEMORY;
        b->space->refused_at = id;
    }
    return SMG_OK;
}

int smg_space_position(const smg_space_builder *b, smg_node_id id) {
    int low = 0, high = b->count - 1;
    while (low <= high) {
        int mid = (low + high) / 2;
        if (b->nodes[mid] == id) return mid;
        if (b->nodes[mid] < id)
            low = mid + 1;
        else
            high = mid - 1;
    }
    return -1;
}

int smg_space_letter(char letter) {
    return letter >= 'a' ? letter - 'a' : letter - 'A' + 26;
}
