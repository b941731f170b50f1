/* Questions that passes over a finished graph ask of its nodes as they were. */
#include "rewrite/rewrite_internal.h"

smg_node_id smg_rewrite_source(const smg_node *nodes, smg_node_id id) {
    while (smg_node_class(&nodes[id]) == SMG_CLASS_VIEW) id = nodes[id].operand[0];
    return id;
}

int64_t smg_rewrite_elements_at(smg_sizes *sizes, const smg_node *node, const int64_t *symbols) {
    int64_t product = 1, extent;
    for (int d = 0; d < node->rank; d++)
        if (!smg_size_eval(sizes, node->dims[d], symbols, &extent) || !smg_mul_i64(product, extent, &product))
            return -1;
    return product;
}
