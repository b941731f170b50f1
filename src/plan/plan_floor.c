/* Seconds that nodes of an order take at least, whichever kernels they become: from multiply-adds, bytes and the
 * device's rates alone (Williams, Waterman and Patterson, Roofline, 2009). Nothing is derived or lowered for that, so
 * segments without use are told apart from others before they cost anything. */
#include "plan/plan_internal.h"

bool plan_takes_all(const smg_graph *g) {
    bool any = plan_has_ends(g);
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        any = any || (smg_node_class(n) == SMG_CLASS_LEAF && smg_op_leaf(n->op) == SMG_LEAF_INDEX);
    }
    return !any;
}

static bool is_short(smg_type type) {
    return type == SMG_TYPE_F16 || type == SMG_TYPE_BF16;
}

/* flop/s of products of such factors, at most. */
static double fastest_of(const smg_target *t, bool shorts) {
    double most = t->fma_rate;
    if (!shorts) return most;
    most *= plan_larger(1, t->pair_rate);
    for (int i = 0; i < t->matrix_count; i++) most = plan_larger(most, t->matrix[i].rate / t->costs.matrix);
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

/* Of a product; 0 of all others. */
static double work_seconds(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    if (smg_node_class(n) != SMG_CLASS_CONTRACT) return 0;
    bool shorts = true;
    for (int k = 0; k < 2; k++) shorts = shorts && is_short(smg_graph_storage(p->g, n->operand[k]));
    return 2 * plan_elements(p, id) * steps_of(p, n) / fastest_of(p->target, shorts);
}

double plan_left_bytes(const planner *p, int from, int to) {
    double bytes = 0;
    for (int i = from; i < to; i++)
        if (p->last_use[p->order[i]] >= to) bytes += (double)plan_bytes_of(p, p->order[i]);
    return bytes;
}

/* A kernel's time, and that in which the one behind waits for what it has stored. */
static double seconds_at_least(const planner *p, double work, double moved, double stored) {
    double bandwidth = p->target->bandwidth;
    return p->target->dispatch_cost + plan_larger(work, moved / bandwidth) + stored / bandwidth;
}

double plan_floor_of(const planner *p, const plan_floor *f, int from, int to) {
    double stored = plan_left_bytes(p, from, to);
    return seconds_at_least(p, f->work[to] - f->work[from], stored, stored);
}

/* Per place: the last reader of its value that reads all of it, and not through views. */
static void find_readers(const planner *p, int *reader) {
    for (int i = 0; i < p->count; i++) reader[i] = -1;
    for (int i = 0; i < p->count; i++) {
        const smg_node *n = smg_graph_node(p->g, p->order[i]);
        smg_op_class class_ = smg_node_class(n);
        bool all = class_ == SMG_CLASS_MAP || class_ == SMG_CLASS_REDUCE || class_ == SMG_CLASS_CONTRACT;
        for (int k = 0; k < n->operand_count && all; k++)
            if (p->place[n->operand[k]] >= 0) reader[p->place[n->operand[k]]] = i;
    }
}

/* Bytes that come from the places before `at` to those behind. */
static double bytes_across(const planner *p, const int *reader, int at) {
    double bytes = 0;
    for (int i = 0; i < at; i++)
        if (reader[i] >= at) bytes += (double)plan_bytes_of(p, p->order[i]);
    return bytes;
}

smg_status plan_floor_make(const planner *p, plan_floor *out) {
    size_t places = (size_t)p->count + 1;
    int *reader = SMG_ARENA_ARRAY(p->arena, int, places);
    *out = (plan_floor){.work = SMG_ARENA_ARRAY(p->arena, double, places),
                        .rest = SMG_ARENA_ARRAY(p->arena, double, places)};
    if (reader == NULL || out->work == NULL || out->rest == NULL) return SMG_MEMORY;
    find_readers(p, reader);
    for (int i = 0; i < p->count; i++) out->work[i + 1] = out->work[i] + work_seconds(p, p->order[i]);
    for (int at = 0; at < p->count; at++) {
        double stored = plan_left_bytes(p, at, p->count), work = out->work[p->count] - out->work[at];
        out->rest[at] = seconds_at_least(p, work, stored + bytes_across(p, reader, at), stored);
    }
    return SMG_OK;
}
