/* Gates: 1 + f(x) for an f between -1 and 1 is twice a function between 0 and 1 that is as short as f, and exact near
 * 0, where the sum has lost its digits. The numbers beside it meet then: x/2 (1 + erf(x / sqrt(2))) is x normcdf(x).
 *
 * Products of numbers are rounded to f32 once, where arithmetic rounded after each. None of what is left overflows or
 * vanishes before the result does. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

/* 1 + f(x) = 2 g(by x) */
static const struct gate {
    smg_op f, g;
    double by;
} gates[] = {
    {SMG_OP_ERF, SMG_OP_NORMCDF, 1.4142135623730951},
    {SMG_OP_TANH, SMG_OP_SIGMOID, 2.0},
};

static smg_node_id number_of(rewriter *r, double value) {
    smg_node number = {.op = SMG_OP_FILL, .type = SMG_TYPE_F32, .name = "", .value = value};
    return smg_rewriter_add(r, &number);
}

/* A map of the shape and type of `like`. */
static smg_node_id map_like(rewriter *r, const smg_node *like, smg_op op, smg_node_id a, smg_node_id b) {
    smg_node node = {.op = op, .type = like->type, .rank = like->rank, .name = "", .operand = {a, b}};
    node.operand_count = b < 0 ? 1 : 2;
    memcpy(node.dims, like->dims, sizeof node.dims);
    return a < 0 ? -1 : smg_rewriter_add(r, &node);
}

static bool one_plus_bounded(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double one;
    (void)out_same;
    if (node->op != SMG_OP_ADD || node->type != SMG_TYPE_F32 || !smg_rewriter_is_number(r, node, 1, &one)) return false;
    smg_node f = *smg_rewriter_operand(r, node, 0);
    if (one < 1.0 || one > 1.0 || smg_rewriter_uses(r, node->operand[0]) != 1 || !smg_same_dims(&f, node)) return false;
    for (size_t i = 0; i < SMG_COUNT_OF(gates); i++) {
        if (f.op != gates[i].f) continue;
        smg_node_id x = map_like(r, &f, SMG_OP_MUL, f.operand[0], number_of(r, gates[i].by));
        smg_node_id g = map_like(r, &f, gates[i].g, x, -1), two = number_of(r, 2.0);
        if (g < 0 || two < 0) return false;
        node->op = SMG_OP_MUL;
        node->operand[0] = g;
        node->operand[1] = two;
        return true;
    }
    return false;
}

/* A value times a number, or divided by one. */
static bool is_scaled(const rewriter *r, const smg_node *node, smg_node_id *out_value, double *out_by) {
    if (node->type != SMG_TYPE_F32 || !smg_rewriter_is_number(r, node, 1, out_by)) return false;
    if (node->op == SMG_OP_DIV) *out_by = 1.0 / *out_by;
    *out_value = node->operand[0];
    return node->op == SMG_OP_MUL || node->op == SMG_OP_DIV;
}

/* The same of an operand that nobody else reads. */
static bool operand_is_scaled(const rewriter *r, const smg_node *node, int k, smg_node_id *out_value, double *out_by) {
    return smg_rewriter_uses(r, node->operand[k]) == 1 &&
           is_scaled(r, smg_rewriter_operand(r, node, k), out_value, out_by);
}

/* What both numbers are as one, which f32 holds with all of its digits; else false. */
static bool as_one(double a, double b, double *out_both) {
    *out_both = smg_type_stored(SMG_TYPE_F32, a * b);
    double size = fabs(*out_both);
    return size >= smg_type_least(SMG_TYPE_F32) && size < smg_type_limit(SMG_TYPE_F32);
}

/* (x a) b = x (a b) */
static bool scale_of_scaled(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double a, b, both;
    smg_node_id value;
    (void)out_same;
    if (node->op != SMG_OP_MUL || !is_scaled(r, node, &value, &b)) return false;
    if (!operand_is_scaled(r, node, 0, &value, &a) || !as_one(a, b, &both)) return false;
    if (!smg_same_dims(&r->g->nodes.items[value], node)) return false;
    smg_node_id number = number_of(r, both);
    if (number < 0) return false;
    node->operand[0] = value;
    node->operand[1] = number;
    return true;
}

/* Takes node = value * other where a * b is 1 and the shape stays. */
static bool become_product(rewriter *r, smg_node *node, smg_node_id value, smg_node_id other, double a, double b) {
    double both;
    smg_node product = *node;
    product.operand[0] = value;
    product.operand[1] = other;
    if (!as_one(a, b, &both) || both < 1.0 || both > 1.0 || !smg_map_keeps_dims(r, &product, -1)) return false;
    *node = product;
    return true;
}

/* (x a) (y / a) = x y, and (x (y a)) / a. */
static bool scales_cancel(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double a, b;
    smg_node_id x, y;
    (void)out_same;
    if (node->op != SMG_OP_MUL || node->type != SMG_TYPE_F32) return false;
    if (operand_is_scaled(r, node, 0, &x, &a) && operand_is_scaled(r, node, 1, &y, &b))
        return become_product(r, node, x, y, a, b);
    if (!is_scaled(r, node, &x, &b) || smg_rewriter_uses(r, x) != 1) return false;
    const smg_node *product = &r->g->nodes.items[x];
    for (int k = 0; k < 2 && product->op == SMG_OP_MUL && product->type == SMG_TYPE_F32; k++)
        if (operand_is_scaled(r, product, k, &y, &a)) return become_product(r, node, product->operand[1 - k], y, a, b);
    return false;
}

const rewrite_rule smg_gate_rules[] = {
    {"1 + bounded as a gate", one_plus_bounded},
    {"scale of a scale", scale_of_scaled},
    {"scales that cancel", scales_cancel},
};
const int smg_gate_rule_count = (int)SMG_COUNT_OF(smg_gate_rules);
