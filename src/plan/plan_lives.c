/* Values between kernels: which of them live at a time, and how large they are. A value that crosses a cut of the order
 * is in memory wherever else the order is cut: what lives while a segment runs hangs on its two ends alone. Two cuts
 * into kernels can therefore be compared segment by segment. */
#include "plan/plan_internal.h"

int64_t plan_bytes_of(const planner *p, smg_node_id id) {
    int64_t elements = 0, bytes = smg_type_device_bytes(smg_graph_storage(p->g, id));
    if (!smg_size_eval(p->g->sizes, smg_node_elements(p->g, id), p->nominal, &elements)) return 0;
    return smg_mul_at_most(elements, bytes, INT64_MAX / (p->count + 1));
}

/* Is the value of this place read in the order at hand from the place `from` on? Outputs have buffers of their own. */
static bool lives(const planner *p, int place, int from) {
    int last = p->last_use[p->order[place]];
    return last >= from && last != INT32_MAX;
}

smg_status plan_mark_lives(planner *p) {
    plan_life *l = p->lives = SMG_ARENA_ARRAY(p->arena, plan_life, (size_t)p->count + 2);
    if (l == NULL) return SMG_MEMORY;
    p->oversized = false;
    for (int i = 0; i < p->count; i++) {
        if (!lives(p, i, i + 1)) continue;
        l[i].bytes = plan_bytes_of(p, p->order[i]);
        p->oversized = p->oversized || l[i].bytes > smg_target_largest_buffer(p->target);
        l[i + 1].across += l[i].bytes;
        l[p->last_use[p->order[i]] + 1].across -= l[i].bytes;
    }
    for (int i = 1; i <= p->count; i++) l[i].across += l[i - 1].across;
    return SMG_OK;
}

int64_t plan_live(const planner *p, int from, int to) {
    int64_t live = p->lives[from].across;
    for (int i = from; i < to; i++)
        if (lives(p, i, to)) live += p->lives[i].bytes;
    return live;
}

int plan_oversized(const planner *p, int from, int to) {
    for (int i = from; p->oversized && !p->any_size && i < to; i++)
        if (lives(p, i, to) && p->lives[i].bytes > smg_target_largest_buffer(p->target)) return i;
    return -1;
}
