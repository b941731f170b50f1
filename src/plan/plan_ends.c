/* Do loops that stop where a mask ends pay for the kernel that finds the end? A rewrite, which knows no sizes, gives an
 * end to every mask that can have one (rewrite_ends.c, decision 0026). Here both graphs get a price.
 *
 * What a mask will leave out is not known, but why it is there: rows of a batch have different lengths, and the longest
 * decides the size. Where all lengths are equally likely the longest of n is n / (n + 1) of what there may be and the
 * mean one half, so a row keeps (n + 1) / (2 n) of its keys, and all of them where it is alone: its size can be bound.
 * Where sizes cannot be bound it is one half in any case. */
#include <math.h>

#include "plan/plan_internal.h"

/* The values at these symbols; 1 where they have none. */
static double number_of(const smg_graph *g, smg_size size, const int64_t *symbols) {
    int64_t value;
    return smg_size_eval(g->sizes, size, symbols, &value) && value > 0 ? (double)value : 1;
}

/* The choice is by a comparison of positions with an end. */
static double kept_by(const smg_graph *g, const smg_node *choice, const int64_t *symbols) {
    const smg_node *within = smg_graph_node(g, choice->operand[0]);
    int at = smg_op_leaf(smg_graph_node(g, within->operand[0])->op) == SMG_LEAF_INDEX ? 0 : 1;
    smg_size keys = smg_node_elements(g, within->operand[at]);
    double rows = number_of(g, smg_node_elements(g, within->operand[1 - at]), symbols);
    return smg_size_is_const(g->sizes, keys, NULL) ? 0.5 : (rows + 1) / (2 * rows);
}

bool plan_has_ends(const smg_graph *g) {
    bool any = false;
    for (smg_node_id id = 0; id < g->nodes.count; id++) any = any || smg_graph_node(g, id)->spare;
    return any;
}

double plan_kept(const smg_graph *g, const int64_t *symbols) {
    double most = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        if (n->spare) most = fmax(most, kept_by(g, n, symbols));
    }
    return most > 0 ? most : 1;
}

const smg_graph *plan_without_ends(const smg_graph *g, smg_arena *arena) {
    smg_graph *copy = SMG_ARENA_NEW(arena, smg_graph);
    smg_node *nodes = SMG_ARENA_ARRAY(arena, smg_node, (size_t)g->nodes.count + 1);
    if (copy == NULL || nodes == NULL) return NULL;
    *copy = *g;
    copy->nodes.items = nodes;
    copy->nodes.capacity = g->nodes.count;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        nodes[id] = *smg_graph_node(g, id);
        for (int k = 0; k < nodes[id].operand_count; k++) {
            const smg_node *from = smg_graph_node(g, nodes[id].operand[k]);
            for (; from->spare; from = smg_graph_node(g, from->operand[1])) nodes[id].operand[k] = from->operand[1];
        }
    }
    return copy;
}
