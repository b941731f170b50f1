/* Which nodes the prepare list computes: those whose value depends on constants alone. They run once, after the
 * constants were uploaded; what the run list reads of them stays on the device as a derived constant.
 *
 * Two things are left to the run list although they could be prepared. An output has to be written by every run. And
 * what its reader computes anew for less than reading it back costs: a node that costs next to nothing but takes more
 * memory than what it reads (a weight converted from f16, an outer product), or a conversion that memory does not show
 * (f16 to f32, stored as f16). Nor is anything stored that is much larger than its operands or than one binding. What a
 * prepared node needs is prepared with it. */
#include "plan/plan_internal.h"

#define PLAN_PREPARE_GROWTH 2.0
#define PLAN_PREPARE_SLACK (1 << 20) /* bytes */

/* Bytes of a value of fixed dims; false when a dim is symbolic. */
static bool bytes_of(const smg_graph *g, smg_node_id id, double *out_bytes) {
    const smg_node *n = smg_graph_node(g, id);
    *out_bytes = (double)smg_type_device_bytes(smg_graph_storage(g, id));
    for (int d = 0; d < n->rank; d++) {
        int64_t extent;
        if (!smg_size_is_const(g->sizes, n->dims[d], &extent)) return false;
        *out_bytes *= (double)extent;
    }
    return true;
}

typedef struct marks {
    bool *fixed, *stored; /* per node, see smg_graph_mark_fixed */
} marks;

/* A map of at most one multiply-add per element. */
static bool is_cheap(const planner *p, smg_node_id id) {
    return smg_node_class(smg_graph_node(p->g, id)) == SMG_CLASS_MAP && p->map_cost[id] <= 1.0;
}

bool plan_stores_the_same(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    return smg_op_converts(n->op) && smg_graph_storage(p->g, id) == smg_graph_storage(p->g, n->operand[0]);
}

static bool worth_storing(const planner *p, const marks *m, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    double bytes, read = 0, operand;
    if (!m->stored[id] || plan_stores_the_same(p, id) || !bytes_of(p->g, id, &bytes)) return false;
    for (int k = 0; k < n->operand_count; k++) {
        if (bytes_of(p->g, smg_space_source(p->g, n->operand[k]), &operand)) read += operand;
    }
    if (bytes > read && is_cheap(p, id)) return false;
    double most = (double)smg_target_largest_buffer(p->target);
    return bytes <= PLAN_PREPARE_GROWTH * read + PLAN_PREPARE_SLACK && bytes <= most;
}

smg_status plan_mark_prepared(planner *p) {
    size_t count = (size_t)p->g->nodes.count + 1;
    marks m = {.fixed = SMG_ARENA_ARRAY(p->arena, bool, count), .stored = SMG_ARENA_ARRAY(p->arena, bool, count)};
    p->prepared = SMG_ARENA_ARRAY(p->arena, bool, count);
    if (m.fixed == NULL || m.stored == NULL || p->prepared == NULL) return SMG_MEMORY;
    smg_graph_mark_fixed(p->g, m.fixed, m.stored);
    for (smg_node_id id = p->g->nodes.count - 1; id >= 0; id--) {
        const smg_node *n = smg_graph_node(p->g, id);
        if (!smg_node_computes(n) || !m.fixed[id]) continue;
        p->prepared[id] = p->prepared[id] || worth_storing(p, &m, id); /* or a reader, marked before, needs it */
        for (int k = 0; k < n->operand_count && p->prepared[id]; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            p->prepared[source] = smg_node_computes(smg_graph_node(p->g, source));
        }
    }
    return smg_context_status(p->ctx);
}
