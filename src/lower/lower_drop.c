/* Tiles that nothing writes go, views that no product reads too (previous values nobody corrects by, the twin of a
 * shared stage). Leaves of theirs stand in no expression; they become the number 0, which is valid beside any tiles. */
#include "lower/lower_internal.h"

smg_status lower_drop_tiles(smg_kernel *k) {
    int *renumber = SMG_ARENA_ARRAY(k->arena, int, (size_t)k->tiles.count + 1);
    if (renumber == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->dst >= 0) renumber[in->dst] = 1;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->a].residence == SMG_VIEW) renumber[in->a] = 1;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->b].residence == SMG_VIEW) renumber[in->b] = 1;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->a].sliced) renumber[in->a] = 1;
    }
    int kept = 0;
    for (int t = 0; t < k->tiles.count; t++) {
        bool used = renumber[t] != 0;
        renumber[t] = used ? kept : -1;
        if (used) k->tiles.items[kept++] = k->tiles.items[t];
    }
    k->tiles.count = kept;
    for (int t = 0; t < kept; t++)
        if (k->tiles.items[t].sliced) k->tiles.items[t].of = renumber[k->tiles.items[t].of];
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->dst >= 0) in->dst = renumber[in->dst];
        if (in->kind != SMG_I_MMA && in->kind != SMG_I_SPILL && in->kind != SMG_I_PUT) continue;
        in->a = renumber[in->a];
        if (in->kind == SMG_I_MMA) in->b = renumber[in->b];
    }
    for (int f = 0; f < k->leaves.count; f++) {
        smg_kleaf *leaf = &k->leaves.items[f];
        if (leaf->what != SMG_KLEAF_TILE) continue;
        leaf->index = renumber[leaf->index];
        if (leaf->index < 0) *leaf = (smg_kleaf){.what = SMG_KLEAF_SIZE, .kind = SMG_KIND_INT, .size = SMG_SIZE_ZERO};
    }
    return SMG_OK;
}

smg_status lower_drop(lowering *l) {
    return lower_drop_tiles(l->k);
}
