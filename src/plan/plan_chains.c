/* Chains of maps in an order: each reads the one before and has its shape. No less passes from one kernel to the next
 * inside of a chain than at its ends, unless what a map reads beside it is larger: there no kernel of several nodes
 * begins or ends. A node alone may still be one, so that every place is reached. */
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

smg_status plan_mark_chains(const planner *p, bool **out_inside, int *out_count) {
    int length = 0, beside = 0, more;
    bool *inside = *out_inside = SMG_ARENA_ARRAY(p->arena, bool, (size_t)p->count + 1);
    *out_count = 0;
    if (inside == NULL) return SMG_MEMORY;
    if (p->options->max_nodes > 0 || p->options->unfused || p->preparing) return SMG_OK;
    for (int at = 0; at < p->count; at++) {
        bool linked = is_linked(p, at, &more) && length < LONGEST_CHAIN && beside + more <= MOST_READ_BESIDE;
        inside[at] = linked && !is_narrow(p, at);
        *out_count += inside[at];
        length = linked ? length + 1 : 1;
        beside = linked ? beside + more : more;
    }
    return SMG_OK;
}
