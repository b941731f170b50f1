/* Seconds that nodes of an order take at least, whichever kernels they become: from multiply-adds, bytes and the
 * device's rates alone (Williams, Waterman and Patterson, Roofline, 2009). Nothing is derived or lowered for that, so
 * segments without use are told apart from others before they cost anything. */
#include "plan/plan_internal.h"

bool plan_takes_all(const smg_graph *g) {
    bool any = plan_has_ends(g);
    for (smg_node_id id = 0; id < g->nodes.count; id++)
        any = any || smg_op_leaf(smg_graph_node(g, id)->op) == SMG_LEAF_INDEX;
    return !any;
}

/* flop/s of products whose factors have all that type, at most: by matrices that sum up in f32. */
static double fastest_of(const smg_target *t, smg_type type) {
    bool halves = type == SMG_TYPE_F16 || type == SMG_TYPE_BF16;
    double most = t->fma_rate * (halves ? plan_larger(1, t->pair_rate) : 1);
    for (int i = 0; i < t->matrix_count && halves; i++) {
        const smg_matrix_shape *m = &t->matrix[i];
        if (smg_sched_matrix_is_of(m, type)) most = plan_larger(most, m->rate / t->costs.matrix);
    }
    return most;
}

/* Multiply-adds of one element. */
static double steps_of(const planner *p, const smg_node *n) {
    const smg_node *a = smg_graph_node(p->g, n->operand[0]);
    double steps = 1;
    for (int d = 0; d < a->rank; d++) {
        int64_t extent;
        bool folded = strchr(n->label[2], n->label[0][d]) == NULL;
        if (folded && smg_size_eval(p->g->sizes, a->dims[d], p->nominal, &extent)) steps *= (double)extent;
    }
    return steps;
}

#define MAPS_SHARE 0.5 /* of the multiply-adds of maps one by one, that they have together: some become one of them */

/* Of multiply-adds. */
static double work_seconds(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    double elements = plan_elements(p, id);
    if (smg_node_class(n) != SMG_CLASS_CONTRACT)
        return 2 * MAPS_SHARE * elements * p->map_cost[id] / p->target->fma_rate;
    smg_type type = smg_graph_storage(p->g, n->operand[0]);
    for (int k = 1; k < n->operand_count; k++)
        if (smg_graph_storage(p->g, n->operand[k]) != type) type = SMG_TYPE_F32;
    return 2 * elements * steps_of(p, n) / fastest_of(p->target, type);
}

double plan_left_bytes(const planner *p, int from, int to) {
    double bytes = 0;
    for (int i = from; i < to; i++)
        if (p->last_use[p->order[i]] >= to) bytes += (double)plan_bytes_of(p, p->order[i]);
    return bytes;
}

/* Does the node read all of its operands, where it does so without views? */
static bool reads_all(const smg_node *n) {
    smg_op_class class_ = smg_node_class(n);
    return class_ == SMG_CLASS_MAP || class_ == SMG_CLASS_REDUCE || class_ == SMG_CLASS_CONTRACT;
}

/* Is it in memory, before that place or before the order? */
static bool is_stored(const planner *p, smg_node_id id, int from) {
    int place = p->place[id];
    bool here = place >= 0 && place < p->count && p->order[place] == id;
    return here ? place < from : p->prepared[id] || smg_op_leaf(smg_graph_node(p->g, id)->op) == SMG_LEAF_TENSOR;
}

/* Bytes of what these places read of others, all of it, once each. */
static double read_bytes(const planner *p, int from, int to) {
    double bytes = 0;
    for (int pass = 0; pass < 2; pass++) /* the second clears what the first has marked */
        for (int i = from; i < to; i++) {
            const smg_node *n = smg_graph_node(p->g, p->order[i]);
            for (int k = 0; k < n->operand_count && reads_all(n); k++) {
                plan_spot *spot = &p->spots[n->operand[k]];
                bool counts = pass == 0 && spot->read == 0 && is_stored(p, n->operand[k], from);
                bytes += counts ? (double)plan_bytes_of(p, n->operand[k]) : 0;
                spot->read = pass == 0;
            }
        }
    return bytes;
}

/* Of these places, however they are cut: the norms of kernels add up to no less than that of their sums. What they
 * leave is waited for by those behind. Of multiply-adds and reads that share is certain which loops take. */
double plan_floor_of(const planner *p, const plan_floor *f, int from, int to) {
    double bandwidth = p->target->bandwidth, stored = plan_left_bytes(p, from, to);
    double read = p->share > 0 ? p->share * read_bytes(p, from, to) : 0;
    double moved = (stored + read) / bandwidth, work = f->work[to] - f->work[from];
    return p->target->dispatch_cost + plan_norm(work, moved, p->target->costs.overlap) + stored / bandwidth;
}

smg_status plan_floor_make(const planner *p, plan_floor *out) {
    size_t places = (size_t)p->count + 1;
    *out = (plan_floor){.work = SMG_ARENA_ARRAY(p->arena, double, places),
                        .rest = SMG_ARENA_ARRAY(p->arena, double, places)};
    if (out->work == NULL || out->rest == NULL) return SMG_MEMORY;
    for (int i = 0; i < p->count; i++) out->work[i + 1] = out->work[i] + p->share * work_seconds(p, p->order[i]);
    for (int at = 0; at < p->count; at++) out->rest[at] = plan_floor_of(p, out, at, p->count);
    return SMG_OK;
}
