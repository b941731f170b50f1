/* The rules: a canonical form (fewer cases for everyone later) and algebra. Every rule holds for
 * infinities and NaN too; signed zeros are the one thing that x + 0 -> x may change. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

static bool is_value(const rewriter *r, const smg_node *node, int k, double value) {
    double number;
    return smg_rewriter_is_number(r, node, k, &number) && number >= value && number <= value;
}

static void swap_operands(smg_node *node) {
    smg_node_id first = node->operand[0];
    node->operand[0] = node->operand[1];
    node->operand[1] = first;
}

/* Operand k becomes a number of the dims that it has. */
static bool set_number(rewriter *r, smg_node *node, int k, double value) {
    const smg_node *old = smg_rewriter_operand(r, node, k);
    smg_node number = {.op = SMG_OP_FILL, .type = old->type, .rank = old->rank, .name = "", .value = value};
    memcpy(number.dims, old->dims, sizeof number.dims);
    smg_node_id id = smg_rewriter_add(r, &number);
    if (id >= 0) node->operand[k] = id;
    return id >= 0;
}

/* The row's expression over the operands: numbers as themselves, operands that are one node as one leaf. */
static smg_expr expression_of(rewriter *r, const smg_node *node, const smg_expr *given) {
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < node->operand_count; k++) {
        double value;
        int leaf = 0;
        while (node->operand[leaf] != node->operand[k]) leaf++;
        smg_kind kind = smg_type_kind(smg_rewriter_operand(r, node, k)->type);
        if (given)
            operand[k] = given[k];
        else if (smg_rewriter_is_number(r, node, k, &value))
            operand[k] = smg_expr_const(r->exprs, kind, value);
        else
            operand[k] = smg_expr_leaf(r->exprs, kind, leaf);
    }
    return smg_op_expr(r->exprs, node->op, node->type, operand);
}

/* ---- canonical form ------------------------------------------------------------------------- */

/* Of a MAP of two operands, each a leaf of its own. */
static smg_expr binary_of(rewriter *r, const smg_node *node, smg_expr leaf[SMG_MAX_OPERANDS]) {
    if (smg_node_class(node) != SMG_CLASS_MAP || node->operand_count != 2) return SMG_EXPR_NONE;
    for (int k = 0; k < 2; k++)
        leaf[k] = smg_expr_leaf(r->exprs, smg_type_kind(smg_rewriter_operand(r, node, k)->type), k);
    return expression_of(r, node, leaf);
}

/* a > b is b < a. */
static bool flip_comparison(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_expr leaf[SMG_MAX_OPERANDS];
    smg_op turned;
    (void)out_same;
    smg_expr expr = node->type == SMG_TYPE_BOOL ? binary_of(r, node, leaf) : SMG_EXPR_NONE;
    if (expr == SMG_EXPR_NONE) return false;
    const smg_expr_node *n = smg_expr_get(r->exprs, expr);
    if (!smg_prim_compares(n->prim) || n->arg[0] != leaf[1] || n->arg[1] != leaf[0]) return false;
    if (!smg_op_of_prim(n->prim, &turned) || turned == node->op) return false;
    node->op = turned;
    swap_operands(node);
    return true;
}

/* Exchanging the operands gives the same, perhaps behind a negation. */
static bool commutes(rewriter *r, const smg_node *node) {
    smg_expr leaf[SMG_MAX_OPERANDS], expr = binary_of(r, node, leaf);
    if (expr == SMG_EXPR_NONE) return false;
    while (smg_expr_get(r->exprs, expr)->prim == SMG_PRIM_NOT) expr = smg_expr_get(r->exprs, expr)->arg[0];
    const smg_expr_node *n = smg_expr_get(r->exprs, expr);
    bool both = (n->arg[0] == leaf[0] && n->arg[1] == leaf[1]) || (n->arg[0] == leaf[1] && n->arg[1] == leaf[0]);
    return both && smg_prim_obeys(n->prim, SMG_LAW_COMMUTES);
}

static bool number_second(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (!smg_rewriter_is_number(r, node, 0, &value) || smg_rewriter_is_number(r, node, 1, &value)) return false;
    if (!commutes(r, node)) return false;
    swap_operands(node);
    return true;
}

static bool subtract_as_add(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (node->op != SMG_OP_SUB || !smg_rewriter_is_number(r, node, 1, &value)) return false;
    if (smg_rewriter_is_number(r, node, 0, &(double){0.0}) || !set_number(r, node, 1, -value)) return false;
    node->op = SMG_OP_ADD;
    return true;
}

/* Only where the reciprocal is exact: a power of two within the normal range of f16. */
static bool divide_as_multiply(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    int exponent;
    (void)out_same;
    if (node->op != SMG_OP_DIV || smg_type_kind(node->type) != SMG_KIND_FLOAT) return false;
    if (!smg_rewriter_is_number(r, node, 1, &value) || !isfinite(value)) return false;
    double fraction = frexp(fabs(value), &exponent);
    bool power = fraction >= 0.5 && fraction <= 0.5 && exponent >= -13 && exponent <= 15;
    if (!power || is_value(r, node, 1, 1.0) || !set_number(r, node, 1, 1.0 / value)) return false;
    node->op = SMG_OP_MUL;
    return true;
}

static bool shrink_number(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_MAP) return false;
    for (int k = 0; k < node->operand_count; k++) {
        double value;
        if (!smg_rewriter_is_number(r, node, k, &value)) continue;
        const smg_node *old = smg_rewriter_operand(r, node, k);
        if (old->rank == 0 || !smg_map_keeps_dims(r, node, k)) continue;
        smg_node number = {.op = SMG_OP_FILL, .type = old->type, .name = "", .value = value};
        smg_node_id id = smg_rewriter_add(r, &number);
        if (id >= 0) node->operand[k] = id;
        return id >= 0;
    }
    return false;
}

/* A map repeats its operands by itself. */
static bool broadcast_into_map(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_MAP) return false;
    for (int k = 0; k < node->operand_count; k++) {
        const smg_node *operand = smg_rewriter_operand(r, node, k);
        if (smg_op_view(operand->op) != SMG_VIEW_BROADCAST) continue;
        smg_node_id before = node->operand[k];
        node->operand[k] = operand->operand[0];
        if (smg_map_keeps_dims(r, node, -1)) return true;
        node->operand[k] = before;
    }
    return false;
}

/* A view of a constant's conversion is the conversion of a view: whoever stores the constant in another order, or in
 * parts, need not know of the conversion. What a view repeats would be converted more than once. */
static bool convert_view(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    smg_view_kind kind = smg_op_view(node->op);
    if (kind != SMG_VIEW_RESHAPE && kind != SMG_VIEW_TRANSPOSE && kind != SMG_VIEW_SLICE) return false;
    const smg_node *conversion = smg_rewriter_operand(r, node, 0);
    if (!smg_op_converts(conversion->op)) return false;
    smg_node_id from = conversion->operand[0];
    const smg_node *nodes = r->g->nodes.items;
    if (!smg_op_is_constant(nodes[smg_rewrite_source(nodes, from)].op)) return false;
    smg_node view = *node, whole = *conversion;
    view.type = nodes[from].type;
    view.name = "";
    view.operand[0] = from;
    smg_node_id id = smg_rewriter_add(r, &view);
    if (id < 0) return false;
    whole.name = node->name;
    whole.rank = node->rank;
    memcpy(whole.dims, node->dims, sizeof whole.dims);
    whole.operand[0] = id;
    *node = whole;
    return true;
}

const rewrite_rule smg_canonical_rules[] = {
    {"gt, ge to lt, le", flip_comparison},
    {"number second", number_second},
    {"x - number to x + -number", subtract_as_add},
    {"x / power of two to product", divide_as_multiply},
    {"number to scalar", shrink_number},
    {"broadcast into map", broadcast_into_map},
    {"view of a conversion to conversion of a view", convert_view},
};
const int smg_canonical_rule_count = (int)SMG_COUNT_OF(smg_canonical_rules);

/* ---- algebra -------------------------------------------------------------------------------- */

/* The node equals its operand k when that has the result's shape. */
static bool is_operand(const rewriter *r, const smg_node *node, int k, smg_node_id *out_same) {
    const smg_node *operand = smg_rewriter_operand(r, node, k);
    if (operand->type != node->type || !smg_same_dims(operand, node)) return false;
    *out_same = node->operand[k];
    return true;
}

/* Has its value in other dims than the operand: that one, repeated. */
static void become_broadcast(smg_node *node, smg_node_id operand) {
    smg_node view = {.op = SMG_OP_BROADCAST,
                     .type = node->type,
                     .rank = node->rank,
                     .name = node->name,
                     .operand_count = 1,
                     .operand = {operand}};
    memcpy(view.dims, node->dims, sizeof view.dims);
    *node = view;
}

/* Numbers and equal operands decide: the expression has become a number, or one of the operands. */
static bool decided_expression(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    bool any = false;
    if (smg_node_class(node) != SMG_CLASS_MAP || smg_op_converts(node->op)) return false;
    for (int k = 0; k < node->operand_count; k++) {
        any = any || smg_rewriter_is_number(r, node, k, &value);
        for (int other = 0; other < k; other++) any = any || node->operand[k] == node->operand[other];
    }
    if (!any) return false; /* also a copy: its expression is its operand, its tensor is its own */
    const smg_expr_node *e = smg_expr_get(r->exprs, expression_of(r, node, NULL));
    if (e->prim == SMG_PRIM_CONST) {
        smg_rewriter_become_number(node, e->value);
        return true;
    }
    if (e->prim != SMG_PRIM_LEAF || is_operand(r, node, e->leaf, out_same)) return e->prim == SMG_PRIM_LEAF;
    if (smg_rewriter_operand(r, node, e->leaf)->type != node->type) return false;
    become_broadcast(node, node->operand[e->leaf]);
    return true;
}

static bool same_cast(rewriter *r, smg_node *node, smg_node_id *out_same) {
    return smg_op_converts(node->op) && is_operand(r, node, 0, out_same);
}

/* A map that undoes the one before it: the two expressions, one in the other, are a leaf. */
static bool undone_map(rewriter *r, smg_node *node, smg_node_id *out_same) {
    if (smg_node_class(node) != SMG_CLASS_MAP || node->operand_count != 1) return false;
    const smg_node *first = smg_rewriter_operand(r, node, 0);
    if (first->op != node->op || smg_op_converts(node->op) || first->type != node->type) return false;
    smg_expr inner = expression_of(r, first, NULL), outer = expression_of(r, node, &inner);
    if (smg_expr_get(r->exprs, inner)->prim == SMG_PRIM_LEAF) return false; /* a copy of a copy */
    if (smg_expr_get(r->exprs, outer)->prim != SMG_PRIM_LEAF) return false;
    *out_same = first->operand[0];
    return true;
}

static bool view_of_same_kind(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_view_kind kind = smg_op_view(node->op);
    (void)out_same;
    if (kind != SMG_VIEW_RESHAPE && kind != SMG_VIEW_TRANSPOSE && kind != SMG_VIEW_BROADCAST) return false;
    const smg_node *inner = smg_rewriter_operand(r, node, 0);
    if (smg_op_view(inner->op) != kind) return false;
    for (int i = 0; kind == SMG_VIEW_TRANSPOSE && i < node->rank; i++) node->perm[i] = inner->perm[node->perm[i]];
    node->operand[0] = inner->operand[0];
    return true;
}

static bool view_without_effect(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int64_t begin;
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_WINDOW: /* has one axis more */
    case SMG_VIEW_NONE: return false;
    case SMG_VIEW_RESHAPE:
    case SMG_VIEW_BROADCAST: break;
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < node->rank; i++)
            if (node->perm[i] != i) return false;
        break;
    case SMG_VIEW_SLICE:
        if (!smg_size_is_const(r->g->sizes, node->begin, &begin) || begin != 0 || node->step != 1) return false;
        break;
    }
    return is_operand(r, node, 0, out_same);
}

/* A product that is read in another order of axes alone is made in that order: axes that its reader sums over together
 * then lie side by side. The last axis stays: it is the one that lanes store in runs. */
static bool transposed_product(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    if (smg_op_view(node->op) != SMG_VIEW_TRANSPOSE || node->rank == 0) return false;
    if (node->perm[node->rank - 1] != node->rank - 1) return false;
    const smg_node *product = smg_rewriter_operand(r, node, 0);
    if (smg_node_class(product) != SMG_CLASS_CONTRACT || smg_rewriter_uses(r, node->operand[0]) != 1) return false;
    smg_node turned = *product;
    for (int i = 0; i < node->rank; i++) turned.label[2][i] = product->label[2][node->perm[i]];
    memcpy(turned.dims, node->dims, sizeof turned.dims);
    *node = turned;
    return true;
}

const rewrite_rule smg_algebra_rules[] = {
    {"decided by its operands", decided_expression},
    {"cast to the same type", same_cast},
    {"undone", undone_map},
    {"view of a view", view_of_same_kind},
    {"view without effect", view_without_effect},
    {"transposed product", transposed_product},
};
const int smg_algebra_rule_count = (int)SMG_COUNT_OF(smg_algebra_rules);
