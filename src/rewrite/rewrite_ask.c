/* Questions that rules ask of nodes while the graph is rewritten, and passes over a finished graph of its nodes as they
 * were. */
#include "rewrite/rewrite_internal.h"

const smg_node *smg_rewriter_operand(const rewriter *r, const smg_node *node, int k) {
    return &r->g->nodes.items[node->operand[k]];
}

bool smg_rewriter_is_number(const rewriter *r, const smg_node *node, int k, double *out_value) {
    if (k >= node->operand_count) return false;
    const smg_node *operand = smg_rewriter_operand(r, node, k);
    if (smg_op_leaf(operand->op) != SMG_LEAF_NUMBER) return false;
    *out_value = operand->value;
    return true;
}

bool smg_map_keeps_dims(const rewriter *r, const smg_node *node, int without) {
    for (int i = 0; i < node->rank; i++) {
        bool given = false;
        for (int k = 0; k < node->operand_count && !given; k++) {
            if (k == without) continue;
            const smg_node *operand = smg_rewriter_operand(r, node, k);
            int own = i - (node->rank - operand->rank);
            given = own >= 0 && operand->dims[own] == node->dims[i];
        }
        if (!given) return false;
    }
    return true;
}

smg_node_id smg_rewrite_source(const smg_node *nodes, smg_node_id id) {
    while (smg_node_class(&nodes[id]) == SMG_CLASS_VIEW) id = nodes[id].operand[0];
    return id;
}

int smg_rewrite_last_axis(const smg_graph *g, const smg_node *n) {
    int axis = n->rank - 1;
    while (axis >= 0 && smg_size_is_one(g->sizes, n->dims[axis])) axis--;
    return axis;
}

int64_t smg_rewrite_elements_at(smg_sizes *sizes, const smg_node *node, const int64_t *symbols) {
    int64_t product = 1, extent;
    for (int d = 0; d < node->rank; d++)
        if (!smg_size_eval(sizes, node->dims[d], symbols, &extent) || !smg_mul_i64(product, extent, &product))
            return -1;
    return product;
}
