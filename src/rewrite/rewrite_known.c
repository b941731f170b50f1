/* What is known of integers and truths at each position. What exporters and compositions write around indices (ranges,
 * slices of them, joins of pieces, sums, products with extents) has a form over a node's own axes (affine/), made
 * operation by operation: maps by their expressions, views by moving positions. A border makes a form hold in a part of
 * an axis only, and a choice by position puts the parts together again. Where there is no form there may be a range. */
#include "rewrite/rewrite_internal.h"

#define MAX_ELEMENTS 4096 /* of a constant that is looked at; not more than SMG_HOST_ELEMENTS */

static smg_size number_of(const rewriter *r, int64_t value) {
    return smg_size_const(r->g->sizes, value);
}

/* ---- maps --------------------------------------------------------------------------------------------- */

static smg_affine_value operand_value(const void *user, int leaf) {
    const smg_affine_value *operand = user;
    return operand[leaf];
}

/* A row's expression, its operands being the leaves. */
static smg_expr expression_of(rewriter *r, const smg_node *node) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < node->operand_count; k++)
        leaf[k] = smg_expr_leaf(r->exprs, smg_type_kind(smg_rewriter_operand(r, node, k)->type), k);
    return smg_op_expr(r->exprs, node->op, node->type, leaf);
}

smg_affine_value smg_known_map(rewriter *r, const smg_node *node, const smg_affine_value *operand) {
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_leaves leaves = {operand_value, operand};
    smg_expr expr = expression_of(r, node);
    smg_affine_value v = smg_affine_eval(&scope, r->exprs, expr, &leaves);
    bool copy =
        smg_expr_get(r->exprs, expr)->prim == SMG_PRIM_LEAF; /* a tensor of its own, which no rule takes apart */
    if (copy) v.leaf = -1;
    v.known = v.known && !(copy && !smg_op_converts(node->op));
    return v;
}

/* An operand's value at the positions of a result that repeats its axes. */
static smg_affine_value repeated(const rewriter *r, const smg_node *node, int k) {
    const smg_node *operand = smg_rewriter_operand(r, node, k);
    const smg_affine_value *own = smg_known_operand(r, node, k);
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value v = smg_affine_unknown;
    v.known = own->known;
    v.form.begin = own->form.begin;
    v.range = own->range;
    for (int d = 0; d < operand->rank; d++) {
        int to = d + node->rank - operand->rank;
        if (operand->dims[d] == node->dims[to])
            smg_known_carry(&scope, own, d, &v, to);
        else if (smg_affine_cut_of(own, d) != NULL)
            v.known = false;
    }
    return v;
}

static void repeat_operands(const rewriter *r, const smg_node *node, smg_affine_value out[SMG_MAX_OPERANDS]) {
    for (int k = 0; k < SMG_MAX_OPERANDS; k++)
        out[k] = k < node->operand_count ? repeated(r, node, k) : smg_affine_unknown;
}

/* ---- reductions ----------------------------------------------------------------------------------------- */

/* What a map is where a predicate holds, 0 elsewhere: of a choice, or of the predicate as a number. */
static bool is_guarded(rewriter *r, const smg_node *node, smg_affine_value *out_holds, smg_affine_value *out_value) {
    smg_affine_value x[SMG_MAX_OPERANDS], zero;
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_leaves leaves = {operand_value, x};
    smg_expr expr = smg_node_class(node) == SMG_CLASS_MAP ? expression_of(r, node) : SMG_EXPR_NONE;
    if (expr == SMG_EXPR_NONE) return false;
    smg_expr_node e = *smg_expr_get(r->exprs, expr);
    if (e.prim != SMG_PRIM_TO_INT && e.prim != SMG_PRIM_SELECT) return false;
    repeat_operands(r, node, x);
    *out_holds = smg_affine_eval(&scope, r->exprs, e.arg[0], &leaves);
    if (e.prim == SMG_PRIM_TO_INT) {
        *out_value = smg_affine_of_size(number_of(r, 1));
        return smg_expr_get(r->exprs, e.arg[0])->kind == SMG_KIND_BOOL && out_holds->known;
    }
    *out_value = smg_affine_eval(&scope, r->exprs, e.arg[1], &leaves);
    zero = smg_affine_eval(&scope, r->exprs, e.arg[2], &leaves);
    return smg_affine_whole(out_holds) && out_value->known && smg_affine_whole(&zero) && smg_affine_is_size(&zero) &&
           zero.form.begin == SMG_SIZE_ZERO;
}

/* At how many places along `axis` a predicate holds that its index and a form of the others' decide: where that many
 * provably are between none and all. */
static smg_affine_value count_of(const rewriter *r, const smg_node *node, const smg_affine_value *holds, int axis) {
    smg_sizes *s = r->g->sizes;
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value v = *holds;
    smg_size low, high, all = node->dims[axis];
    int64_t by;
    if (!smg_size_is_const(s, smg_affine_take(&v.form, axis), &by) || (by != 1 && by != -1)) return smg_affine_unknown;
    v.form.begin = smg_size_add(s, v.form.begin, by < 0 ? number_of(r, 1) : all);
    bool inside = v.form.begin >= 0 && smg_affine_bounds(&scope, &v.form, &v, &low, &high) &&
                  smg_affine_at_most(s, SMG_SIZE_ZERO, low, 0) && smg_affine_at_most(s, high, all, 0);
    return inside ? v : smg_affine_unknown;
}

/* The value at the end of an axis that it grows towards. */
static smg_affine_value extreme_of(const rewriter *r, const smg_node *node, const smg_affine_value *from, int axis,
                                   bool most) {
    smg_sizes *s = r->g->sizes;
    smg_affine_value v = *from;
    smg_size by = smg_affine_take(&v.form, axis), last = smg_size_sub(s, node->dims[axis], number_of(r, 1));
    int64_t low, high;
    smg_size_bounds(s, by, &low, &high);
    if (low < 0 && high > 0) return smg_affine_unknown;
    if ((low >= 0) == most) v.form.begin = smg_size_add(s, v.form.begin, smg_size_mul(s, by, last));
    v.known = v.form.begin >= 0;
    return v;
}

/* Over the axes of the operand, without the one that is reduced. */
static smg_affine_value reduced(rewriter *r, const smg_node *node) {
    const smg_node *a = smg_rewriter_operand(r, node, 0);
    const smg_affine_value *from = smg_known_operand(r, node, 0);
    smg_affine_scope scope = smg_known_scope(r, a);
    smg_combine combine = smg_op_combine(node->op);
    smg_affine_value holds, value;
    int axis = node->axis;
    bool sums = combine == SMG_COMBINE_ADD && smg_type_kind(node->type) == SMG_KIND_INT;
    if (smg_affine_whole(from) && (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN))
        return extreme_of(r, a, from, axis, combine == SMG_COMBINE_MAX);
    if (smg_affine_whole(from) && sums && smg_affine_by(&from->form, axis) == SMG_SIZE_ZERO) {
        value = smg_affine_of_size(a->dims[axis]);
        return smg_affine_scaled(&scope, from, &value);
    }
    if (!sums || !is_guarded(r, a, &holds, &value) || smg_affine_by(&value.form, axis) != SMG_SIZE_ZERO)
        return smg_affine_unknown;
    holds = count_of(r, a, &holds, axis);
    return smg_affine_scaled(&scope, &value, &holds);
}

static smg_affine_range range_of_reduce(const rewriter *r, const smg_node *node) {
    smg_affine_range a = smg_known_operand(r, node, 0)->range, sum = smg_affine_unknown.range;
    smg_combine combine = smg_op_combine(node->op);
    int64_t most;
    if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN) return a;
    if (combine != SMG_COMBINE_ADD || !smg_affine_no_negative(r->g->sizes, a)) return sum;
    sum = (smg_affine_range){SMG_SIZE_ZERO, SMG_SIZE_NONE, 1};
    if (smg_size_is_const(r->g->sizes, a.high, &most) && most < 65536)
        sum.high = smg_size_mul(r->g->sizes, smg_rewriter_operand(r, node, 0)->dims[node->axis], a.high);
    return sum;
}

static smg_affine_value of_reduce(rewriter *r, const smg_node *node) {
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value f = reduced(r, node), v = smg_affine_unknown;
    int to = 0;
    v.known = smg_affine_whole(&f);
    v.form.begin = f.form.begin;
    v.range = range_of_reduce(r, node);
    for (int d = 0; d < smg_rewriter_operand(r, node, 0)->rank; d++) {
        if (d == node->axis && !node->keep) continue;
        if (d != node->axis) smg_known_carry(&scope, &f, d, &v, to);
        to++;
    }
    return v;
}

/* ---- leaves --------------------------------------------------------------------------------------------- */

static smg_affine_range range_of_contents(const rewriter *r, const smg_node *node, int64_t count) {
    double low = smg_host_get(node->type, node->data, 0), high = low;
    for (int64_t i = 1; i < count; i++) {
        double value = smg_host_get(node->type, node->data, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    smg_size least = smg_affine_of_number(r->g->sizes, SMG_KIND_INT, low).range.low;
    return (smg_affine_range){least, smg_affine_of_number(r->g->sizes, SMG_KIND_INT, high).range.high, 1};
}

/* Contents lie in a range, and may count along their axes. */
static smg_affine_value of_contents(const rewriter *r, const smg_node *node) {
    int64_t extent[SMG_MAX_RANK], all[SMG_MAX_RANK], by[SMG_MAX_RANK], begin, count = 1;
    smg_affine_value v = smg_affine_unknown;
    for (int d = 0; d < node->rank; d++) {
        all[d] = -1;
        if (!smg_size_is_const(r->g->sizes, node->dims[d], &extent[d]) || !smg_mul_i64(count, extent[d], &count) ||
            count > MAX_ELEMENTS)
            return v;
    }
    if (!node->data) return v;
    v.range = range_of_contents(r, node, count);
    if (smg_type_kind(node->type) != SMG_KIND_INT ||
        !smg_host_plane(node->type, node->data, node->rank, extent, all, &begin, by))
        return v;
    v.form.begin = number_of(r, begin);
    v.known = v.form.begin >= 0;
    for (int d = 0; d < node->rank && v.known; d++)
        v.known = smg_affine_put(r->g->sizes, &v.form, d, number_of(r, by[d]));
    return v;
}

static smg_affine_value of_leaf(const rewriter *r, const smg_node *node) {
    smg_affine_scope scope = smg_known_scope(r, node);
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_NUMBER: return smg_affine_of_number(r->g->sizes, smg_type_kind(node->type), node->value);
    case SMG_LEAF_SIZE: return smg_affine_of_size(node->size);
    case SMG_LEAF_INDEX: return smg_affine_of_index(&scope, node->axis);
    case SMG_LEAF_TENSOR: return smg_op_is_constant(node->op) ? of_contents(r, node) : smg_affine_unknown;
    case SMG_LEAF_NONE: break;
    }
    return smg_affine_unknown;
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */

/* The operands are known. */
static bool value_of(rewriter *r, const smg_node *node, smg_affine_value *out) {
    smg_affine_value x[SMG_MAX_OPERANDS];
    bool before = smg_sizes_set_quiet(r->g->sizes, true); /* what has no size is not known, and no failure */
    *out = smg_affine_unknown;
    if (smg_type_kind(node->type) != SMG_KIND_FLOAT) {
        switch (smg_node_class(node)) {
        case SMG_CLASS_LEAF: *out = of_leaf(r, node); break;
        case SMG_CLASS_MAP:
            repeat_operands(r, node, x);
            *out = smg_known_map(r, node, x);
            break;
        case SMG_CLASS_REDUCE: *out = of_reduce(r, node); break;
        case SMG_CLASS_VIEW: *out = smg_known_view(r, node); break;
        case SMG_CLASS_GATHER: out->range = smg_known_operand(r, node, 0)->range; break;
        case SMG_CLASS_CONTRACT: break;
        }
    }
    smg_sizes_set_quiet(r->g->sizes, before);
    return smg_context_status(r->g->ctx) == SMG_OK;
}

bool smg_rewriter_known(rewriter *r, const smg_node *node, smg_affine_value *out) {
    *out = smg_affine_unknown;
    while (r->known.count < r->g->nodes.count) {
        smg_affine_value made;
        if (!value_of(r, &r->g->nodes.items[r->known.count], &made)) return false;
        smg_affine_value *stored = SMG_ARRAY_PUSH(r->g->arena, &r->known);
        if (!stored) return false;
        *stored = made;
    }
    return value_of(r, node, out);
}
