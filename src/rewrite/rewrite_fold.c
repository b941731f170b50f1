/* Folding on the host: maps over numbers, and maps and views over small constants. Large constants are
 * left to the device's prepare list; a broadcast is never folded, it would only store copies. */
#include "rewrite/rewrite_internal.h"

void smg_rewriter_become_number(smg_node *node, double value) {
    smg_node number = {.op = SMG_OP_FILL,
                       .type = node->type,
                       .rank = node->rank,
                       .name = node->name,
                       .value = node->type == SMG_TYPE_I32 ? smg_wrap_i32(value) : value};
    memcpy(number.dims, node->dims, sizeof number.dims);
    *node = number;
}

bool smg_rule_fold_numbers(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    double value[SMG_MAX_OPERANDS] = {0.0, 0.0, 0.0};
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    smg_op_class class_ = smg_node_class(node);
    if (class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_VIEW) return false;
    for (int k = 0; k < node->operand_count; k++)
        if (!smg_rewriter_is_number(r, node, k, &value[k])) return false;
    if (class_ == SMG_CLASS_VIEW) {
        bool bordered = smg_op_view(node->op) == SMG_VIEW_WINDOW;
        if (bordered && !(node->value >= value[0] && node->value <= value[0])) return false;
        smg_rewriter_become_number(node, value[0]);
        return true;
    }
    for (int k = 0; k < node->operand_count; k++)
        operand[k] = smg_expr_const(r->exprs, smg_type_kind(smg_rewriter_operand(r, node, k)->type), value[k]);
    smg_expr expr = smg_op_expr(r->exprs, node->op, node->type, operand);
    if (expr == SMG_EXPR_NONE) return false;
    smg_rewriter_become_number(node, smg_expr_eval(r->exprs, expr, NULL));
    return true;
}

static bool is_small(const rewriter *r, const smg_node *node) {
    int64_t count = 1, extent;
    for (int i = 0; i < node->rank; i++) {
        if (!smg_size_is_const(r->g->sizes, node->dims[i], &extent)) return false;
        if (!smg_mul_i64(count, extent, &count) || count > SMG_HOST_ELEMENTS) return false;
    }
    return true;
}

#define MOST_WIDENED 4096 /* elements */

/* A constant that only becomes wider: more than a few elements stay as narrow as the file has them. */
static bool widens(const rewriter *r, const smg_node *node) {
    if (!smg_op_converts(node->op)) return false;
    const smg_node *operand = smg_rewriter_operand(r, node, 0);
    int64_t count = 0;
    smg_size elements = smg_node_elements(r->g, node->operand[0]);
    bool few = smg_size_is_const(r->g->sizes, elements, &count) && count <= MOST_WIDENED;
    return !few && smg_type_device_bytes(operand->type) < smg_type_device_bytes(node->type);
}

static bool foldable(const rewriter *r, const smg_node *node) {
    smg_op_class class_ = smg_node_class(node);
    bool constants = false;
    if (class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_VIEW) return false;
    smg_view_kind view = smg_op_view(node->op);
    if (view == SMG_VIEW_BROADCAST || !is_small(r, node)) return false;
    bool begins = view == SMG_VIEW_SLICE || view == SMG_VIEW_WINDOW; /* others have no size there */
    if (begins && !smg_size_is_const(r->g->sizes, node->begin, NULL)) return false;
    if (class_ == SMG_CLASS_MAP && (node->type == SMG_TYPE_F16 || node->type == SMG_TYPE_BF16))
        return false;                                               /* would round once more */
    if (widens(r, node) || smg_node_is_blocked(node)) return false; /* its place in memory is what it is for */
    for (int k = 0; k < node->operand_count; k++) {
        const smg_node *operand = smg_rewriter_operand(r, node, k);
        bool constant = smg_op_is_constant(operand->op) && operand->data;
        if (!constant && smg_op_leaf(operand->op) != SMG_LEAF_NUMBER) return false;
        if (!is_small(r, operand)) return false;
        constants = constants || constant;
    }
    return constants;
}

bool smg_rule_fold_constants(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    smg_array value = {.rank = 0};
    if (!foldable(r, node)) return false;
    smg_status status = smg_graph_eval_over_leaves(r->g, r->exprs, node, &value);
    int64_t count = status == SMG_OK ? smg_array_elements(&value) : 0;
    void *data = NULL;
    if (status == SMG_OK) data = smg_arena_alloc(r->g->arena, (size_t)count, (size_t)smg_type_host_bytes(node->type));
    for (int64_t i = 0; data && i < count; i++) smg_host_set(node->type, data, i, value.data[i]);
    smg_array_release(r->g->ctx, &value);
    if (!data) {
        smg_build_stick(r->g, status != SMG_OK ? status : SMG_MEMORY);
        return false;
    }
    smg_node constant = {
        .op = SMG_OP_CONSTANT, .type = node->type, .rank = node->rank, .name = node->name, .data = data};
    memcpy(constant.dims, node->dims, sizeof constant.dims);
    *node = constant;
    return true;
}
