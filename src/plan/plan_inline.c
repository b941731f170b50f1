/* Which nodes are in no list at all because every reader computes them anew: predicates and indices made of positions
 * and sizes, and cheap maps of one tensor that lies in memory anyway (a mask turned into summands, a cast). Such a value
 * costs its readers no more traffic than its stored form would, and no kernel. */
#include "plan/plan_internal.h"

#define PLAN_INLINE_COST 8.0 /* multiply-adds per element, operands included */
#define PLAN_INLINE_LOADS 1

typedef struct weight {
    double cost;
    int loads;
} weight;

bool plan_map_cost(const planner *p, smg_exprs *exprs, const smg_node *n, double *out_cost) {
    smg_expr operand[SMG_MAX_OPERANDS] = { SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE };
    if (smg_node_class(n) != SMG_CLASS_MAP) return false;
    for (int k = 0; k < n->operand_count; k++) {
        operand[k] = smg_expr_leaf(exprs, smg_type_kind(smg_graph_node(p->g, n->operand[k])->type), k);
    }
    smg_expr value = smg_op_expr(exprs, n->op, n->type, operand);
    *out_cost = smg_expr_cost(exprs, value);
    return value != SMG_EXPR_NONE;
}

/* What it takes to compute `id` from memory; false when something on the way has to be a kernel. */
static bool weigh(const planner *p, smg_exprs *exprs, const weight *known, smg_node_id id, weight *out) {
    const smg_node *n = smg_graph_node(p->g, id);
    *out = (weight){ 0 };
    if (p->prepared[id] || !plan_map_cost(p, exprs, n, &out->cost)) return false;
    for (int k = 0; k < n->operand_count; k++) {
        smg_node_id source = smg_space_source(p->g, n->operand[k]);
        const smg_node *s = smg_graph_node(p->g, source);
        bool tensor = p->prepared[source] || smg_op_leaf(s->op) == SMG_LEAF_TENSOR;
        if (smg_node_class(s) != SMG_CLASS_LEAF && !p->prepared[source] && !p->inlined[source]) return false;
        out->loads += tensor ? 1 : known[source].loads;
        out->cost += known[source].cost;
    }
    return true;
}

smg_status plan_mark_inlined(planner *p) {
    size_t count = (size_t)p->g->nodes.count + 1;
    smg_exprs *exprs;
    weight *known = SMG_ARENA_ARRAY(p->arena, weight, count);
    bool *output = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->inlined = SMG_ARENA_ARRAY(p->arena, bool, count);
    SMG_TRY(smg_exprs_create(p->arena, &exprs));
    if (known == NULL || output == NULL || p->inlined == NULL) return SMG_MEMORY;
    for (int o = 0; o < p->g->outputs.count; o++) {
        output[smg_space_source(p->g, p->g->outputs.items[o].node)] = true;
    }
    int loads = p->options->unfused ? 0 : PLAN_INLINE_LOADS; /* the yardstick has a kernel for every map of tensors */
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        if (output[id] || !weigh(p, exprs, known, id, &known[id])) continue;
        p->inlined[id] = known[id].cost <= PLAN_INLINE_COST && known[id].loads <= loads;
    }
    return smg_context_status(p->ctx);
}

static bool has(const smg_node_id *nodes, int count, smg_node_id id) {
    for (int i = 0; i < count; i++) {
        if (nodes[i] == id) return true;
    }
    return false;
}

int plan_add_inlined(const planner *p, smg_node_id *io_nodes, int count) {
    for (int i = 0; i < count; i++) { /* grows while it is read: operands of operands */
        const smg_node *n = smg_graph_node(p->g, io_nodes[i]);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (!p->inlined[source] || has(io_nodes, count, source)) continue;
            if (count == PLAN_MAX_MEMBERS) return -1;
            io_nodes[count++] = source;
        }
    }
    return count;
}
