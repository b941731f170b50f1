/* Places of an order where no cut pays: no kernel of several nodes begins or ends there. A node alone may still be one
 * where no other way to the order's end is known.
 *
 * Chains of maps: each reads the one before and has its shape. No less passes from one kernel to the next inside of a
 * chain than at its ends, unless what a map reads beside it is larger.
 *
 * Sums in parts: what the parts leave is merged by some twenty small maps, where it matters little what becomes of each
 * (decision 0057). */
#include "plan/plan_internal.h"

#define LONGEST_CHAIN 16   /* maps that no cut separates */
#define MOST_READ_BESIDE 6 /* tensors that they read beside the chain: one kernel has only so many bindings */

/* Does the map at this place have the shape of the one before, and read it? *out_beside: what it reads beside that. */
static bool is_linked(const planner *p, int at, int *out_beside) {
    const smg_node *n = smg_graph_node(p->g, p->order[at]),
                   *before = at > 0 ? smg_graph_node(p->g, p->order[at - 1]) : n;
    bool maps = smg_node_class(n) == SMG_CLASS_MAP && smg_node_class(before) == SMG_CLASS_MAP, reads = false;
    *out_beside = 0;
    for (int k = 0; k < n->operand_count; k++) {
        smg_node_id source = smg_space_source(p->g, n->operand[k]);
        bool chained = at > 0 && source == p->order[at - 1];
        reads = reads || chained;
        *out_beside += !chained && smg_graph_node(p->g, source)->rank > 0;
    }
    return maps && reads && smg_same_dims(n, before);
}

/* Does less pass here than in front of the map before, and no more than behind the next one? */
static bool is_narrow(const planner *p, int at) {
    int64_t here = p->lives[at].across;
    return here < p->lives[at - 1].across && here <= p->lives[at + 1].across;
}

typedef enum parts_sum { PARTS_NO_SUM, PARTS_SUM, PARTS_MERGE } parts_sum;

/* The first sum of parts, or over them, from a place on. It may be of other kernels with parts: then a few places more
 * are looked at than have to be. */
static parts_sum sum_from(const planner *p, int at, int step) {
    for (int i = at; i >= 0 && i < p->count; i += step) {
        if (p->merges[p->order[i]] > 0) return PARTS_MERGE;
        if (p->together[p->order[i]] > 0) return PARTS_SUM;
    }
    return PARTS_NO_SUM;
}

/* Kernels with parts begin with products, where they began without parts, and with what merges; behind that where other
 * sums of parts follow, or the shape becomes another one. */
static bool is_inside_parts(const planner *p, int at) {
    if (p->in_parts == NULL || at == 0) return false;
    smg_node_id before = p->order[at - 1], behind = p->order[at];
    bool begins = p->begins[behind] || plan_products(p, at, at + 1) > 0;
    if (!p->in_parts[before] || !p->in_parts[behind] || begins) return false;
    parts_sum last = sum_from(p, at - 1, -1), next = sum_from(p, at, 1);
    if (last == PARTS_SUM) return p->merges[behind] == 0;
    if (last == PARTS_MERGE && next == PARTS_NO_SUM)
        return smg_same_dims(smg_graph_node(p->g, before), smg_graph_node(p->g, behind));
    return last != PARTS_MERGE || next != PARTS_SUM;
}

smg_status plan_mark_inside(const planner *p, bool **out_inside, int *out_count) {
    int length = 0, beside = 0, more;
    bool *inside = *out_inside = SMG_ARENA_ARRAY(p->arena, bool, (size_t)p->count + 1);
    *out_count = 0;
    if (inside == NULL) return SMG_MEMORY;
    if (p->options->max_nodes > 0 || p->options->unfused || p->preparing) return SMG_OK;
    for (int at = 0; at < p->count; at++) {
        bool linked = is_linked(p, at, &more) && length < LONGEST_CHAIN && beside + more <= MOST_READ_BESIDE;
        inside[at] = (linked && !is_narrow(p, at)) || is_inside_parts(p, at);
        *out_count += inside[at];
        length = linked ? length + 1 : 1;
        beside = linked ? beside + more : more;
    }
    return SMG_OK;
}
