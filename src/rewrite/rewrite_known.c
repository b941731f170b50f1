/* Integers that depend on positions and sizes only. What exporters and compositions write around indices (ranges,
 * slices of them, joins of pieces, sums, products with extents) is evaluated here in sums over a node's own axes
 * instead of numbers: primitive by primitive, view by view. A border makes such a sum hold in a part of an axis only,
 * and a choice by position puts the parts together again. Comparisons are sums too: they hold where the sum is not
 * negative. Nothing is assumed: where a bound cannot be proved for all sizes, the value is not known. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

#define MAX_ELEMENTS 4096 /* of a constant that is looked at; not more than SMG_HOST_ELEMENTS */
#define MAX_DEPTH 8       /* of an operation's expression */

static const index_form unknown = {.known = false};

static smg_size number_of(const rewriter *r, int64_t value) {
    return smg_size_const(r->g->sizes, value);
}

static smg_size add(const rewriter *r, smg_size a, smg_size b) {
    return smg_size_add(r->g->sizes, a, b);
}

static smg_size sub(const rewriter *r, smg_size a, smg_size b) {
    return smg_size_sub(r->g->sizes, a, b);
}

static smg_size mul(const rewriter *r, smg_size a, smg_size b) {
    return smg_size_mul(r->g->sizes, a, b);
}

/* The sum `begin` at every position of `node`. */
static index_form everywhere(const rewriter *r, const smg_node *node, smg_size begin) {
    index_form f = {.known = begin >= 0, .begin = begin};
    for (int d = 0; d < node->rank; d++) {
        f.by[d] = f.first[d] = SMG_SIZE_ZERO;
        f.last[d] = sub(r, node->dims[d], number_of(r, 1));
    }
    return f;
}

/* Unknown where a size could not be made. */
static index_form checked(const smg_node *node, index_form f) {
    f.known = f.known && f.begin >= 0;
    for (int d = 0; d < node->rank; d++) f.known = f.known && f.by[d] >= 0 && f.first[d] >= 0 && f.last[d] >= 0;
    return f.known ? f : unknown;
}

bool smg_index_whole(const rewriter *r, const smg_node *node, const index_form *f) {
    for (int d = 0; d < node->rank; d++)
        if (f->first[d] != SMG_SIZE_ZERO || add(r, f->last[d], number_of(r, 1)) != node->dims[d]) return false;
    return f->known;
}

bool smg_index_bounds(const rewriter *r, const smg_node *node, const index_form *f, smg_size *out_low,
                      smg_size *out_high) {
    *out_low = *out_high = f->begin;
    for (int d = 0; d < node->rank; d++) {
        int64_t low, high;
        if (f->by[d] == SMG_SIZE_ZERO) continue;
        smg_size_bounds(r->g->sizes, f->by[d], &low, &high);
        if (low < 0 && high > 0) return false;
        smg_size near = mul(r, f->by[d], f->first[d]), far = mul(r, f->by[d], f->last[d]);
        *out_low = add(r, *out_low, low >= 0 ? near : far);
        *out_high = add(r, *out_high, low >= 0 ? far : near);
    }
    return f->known && *out_low >= 0 && *out_high >= 0;
}

int smg_index_decision(const rewriter *r, const smg_node *node, const index_form *f) {
    smg_size low, high;
    if (!smg_index_bounds(r, node, f, &low, &high)) return 0;
    if (smg_rewriter_at_most(r, SMG_SIZE_ZERO, low, 0)) return 1;
    return smg_rewriter_at_most(r, high, SMG_SIZE_ZERO, 1) ? -1 : 0;
}

static bool is_size(const smg_node *node, const index_form *f) {
    for (int d = 0; d < node->rank; d++)
        if (f->by[d] != SMG_SIZE_ZERO) return false;
    return f->known;
}

/* ---- arithmetic ----------------------------------------------------------------------------------- */

/* Positions where both are known. */
static bool meet(const rewriter *r, const smg_node *node, index_form *io, const index_form *other) {
    for (int d = 0; d < node->rank; d++) {
        if (io->first[d] != other->first[d]) io->first[d] = smg_rewriter_greater(r, io->first[d], other->first[d]);
        if (io->last[d] != other->last[d]) io->last[d] = smg_rewriter_lesser(r, io->last[d], other->last[d]);
    }
    io->known = io->known && other->known;
    return io->known;
}

/* x + y * by */
static index_form combined(const rewriter *r, const smg_node *node, const index_form *x, const index_form *y,
                           int64_t by) {
    index_form f = *x;
    if (!meet(r, node, &f, y)) return unknown;
    f.begin = add(r, x->begin, mul(r, y->begin, number_of(r, by)));
    for (int d = 0; d < node->rank; d++) f.by[d] = add(r, x->by[d], mul(r, y->by[d], number_of(r, by)));
    return checked(node, f);
}

static index_form scaled(const rewriter *r, const smg_node *node, const index_form *x, const index_form *y) {
    if (!is_size(node, y)) return is_size(node, x) ? scaled(r, node, y, x) : unknown;
    index_form f = *x;
    if (!meet(r, node, &f, y)) return unknown;
    f.begin = mul(r, x->begin, y->begin);
    for (int d = 0; d < node->rank; d++) f.by[d] = mul(r, x->by[d], y->begin);
    return checked(node, f);
}

/* x = quotient * y + rest where 0 <= rest < y is proved: what y divides is in the quotient. */
static index_form divided(const rewriter *r, const smg_node *node, smg_prim prim, const index_form *x,
                          const index_form *y) {
    index_form q = *x, rest = *x;
    smg_size low, high;
    int64_t least;
    if (!is_size(node, y) || !meet(r, node, &q, y) || !meet(r, node, &rest, y)) return unknown;
    smg_size_bounds(r->g->sizes, y->begin, &least, NULL);
    if (least < 1) return unknown;
    bool exact = smg_size_divide_exact(r->g->sizes, x->begin, y->begin, &q.begin);
    if (exact)
        rest.begin = SMG_SIZE_ZERO;
    else
        q.begin = SMG_SIZE_ZERO;
    for (int d = 0; d < node->rank; d++) {
        exact = smg_size_divide_exact(r->g->sizes, x->by[d], y->begin, &q.by[d]);
        if (exact)
            rest.by[d] = SMG_SIZE_ZERO;
        else
            q.by[d] = SMG_SIZE_ZERO;
    }
    q = checked(node, q);
    rest = checked(node, rest);
    bool inside = smg_index_bounds(r, node, &rest, &low, &high) && smg_rewriter_at_most(r, SMG_SIZE_ZERO, low, 0) &&
                  smg_rewriter_at_most(r, high, y->begin, 1);
    if (!inside) return unknown;
    if (prim == SMG_PRIM_MOD) return rest;
    bool whole = is_size(node, &rest) && rest.begin == SMG_SIZE_ZERO; /* no fraction to cut off below 0 */
    return whole || smg_index_decision(r, node, &q) > 0 ? q : unknown;
}

static index_form truth(const rewriter *r, const smg_node *node, const index_form *at, bool value) {
    index_form f = everywhere(r, node, number_of(r, value ? 0 : -1));
    meet(r, node, &f, at);
    return checked(node, f);
}

static index_form equal(const rewriter *r, const smg_node *node, const index_form *x, const index_form *y) {
    smg_size low, high;
    index_form difference = combined(r, node, x, y, -1);
    if (!smg_index_bounds(r, node, &difference, &low, &high)) return unknown;
    if (low == SMG_SIZE_ZERO && high == SMG_SIZE_ZERO) return truth(r, node, &difference, true);
    bool apart = smg_rewriter_at_most(r, SMG_SIZE_ZERO, low, 1) || smg_rewriter_at_most(r, high, SMG_SIZE_ZERO, 1);
    return apart ? truth(r, node, &difference, false) : unknown;
}

/* x + by: of a predicate, what makes it stricter or, with its sign, the opposite. */
static index_form moved(const rewriter *r, const smg_node *node, const index_form *x, int64_t by) {
    index_form f = *x;
    f.begin = add(r, f.begin, number_of(r, by));
    return checked(node, f);
}

/* ---- choices by position ---------------------------------------------------------------------------- */

/* The axis whose index alone decides a predicate that is known along all of it; -1: none. */
static int deciding_axis(const rewriter *r, const smg_node *node, const index_form *f, int64_t *out_sign) {
    int axis = -1;
    for (int d = 0; d < node->rank; d++) {
        if (f->by[d] == SMG_SIZE_ZERO) continue;
        if (axis >= 0 || !smg_size_is_const(r->g->sizes, f->by[d], out_sign)) return -1;
        axis = d;
    }
    if (axis < 0 || (*out_sign != 1 && *out_sign != -1) || f->first[axis] != SMG_SIZE_ZERO) return -1;
    return add(r, f->last[axis], number_of(r, 1)) == node->dims[axis] ? axis : -1;
}

/* The value of x along `axis` at the one position `at`, all other axes as they are. */
static smg_size value_at(const rewriter *r, const index_form *x, int axis, smg_size at) {
    return add(r, x->begin, mul(r, x->by[axis], at));
}

/* Where a sum that holds from first to last on one side of a seam is the other's, too. */
static bool continues(const rewriter *r, const index_form *x, const index_form *y, int axis, smg_size y_first,
                      smg_size y_last) {
    if (x->by[axis] == y->by[axis] && x->begin == y->begin) return true;
    return y_first == y_last && value_at(r, x, axis, y_first) == value_at(r, y, axis, y_first);
}

static index_form joined(const rewriter *r, const smg_node *node, const index_form *p, const index_form *x,
                         const index_form *y) {
    int64_t sign;
    int axis = p->known && x->known && y->known ? deciding_axis(r, node, p, &sign) : -1;
    if (axis < 0) return unknown;
    for (int d = 0; d < node->rank; d++)
        if (d != axis && x->by[d] != y->by[d]) return unknown;
    smg_size one = number_of(r, 1), end = sub(r, node->dims[axis], one), seam;
    smg_size first[2] = {SMG_SIZE_ZERO, SMG_SIZE_ZERO}, last[2] = {end, end}; /* where x stands, where y does */
    if (sign > 0) {
        seam = sub(r, SMG_SIZE_ZERO, p->begin);
        first[0] = seam;
        last[1] = sub(r, seam, one);
    } else {
        seam = p->begin;
        last[0] = seam;
        first[1] = add(r, seam, one);
    }
    const index_form *side[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        if (!smg_rewriter_at_most(r, side[i]->first[axis], first[i], 0)) return unknown;
        if (!smg_rewriter_at_most(r, last[i], side[i]->last[axis], 0)) return unknown;
    }
    bool x_goes_on = continues(r, x, y, axis, first[1], last[1]);
    if (!x_goes_on && !continues(r, y, x, axis, first[0], last[0])) return unknown;
    index_form f = x_goes_on ? *x : *y, other = x_goes_on ? *y : *x;
    f.first[axis] = other.first[axis] = SMG_SIZE_ZERO;
    f.last[axis] = other.last[axis] = end;
    return meet(r, node, &f, &other) && meet(r, node, &f, p) ? checked(node, f) : unknown;
}

static index_form chosen(const rewriter *r, const smg_node *node, const index_form *x) {
    int known = x[0].known ? smg_index_decision(r, node, &x[0]) : 0;
    if (known == 0) return joined(r, node, &x[0], &x[1], &x[2]);
    index_form f = known > 0 ? x[1] : x[2];
    return meet(r, node, &f, &x[0]) ? checked(node, f) : unknown;
}

/* `first` where x >= y, `second` where not, if one of them is always. */
static index_form greater(const rewriter *r, const smg_node *node, const index_form *x, const index_form *y,
                          const index_form *first, const index_form *second) {
    index_form choice[3] = {combined(r, node, x, y, -1), *first, *second};
    return smg_index_decision(r, node, &choice[0]) != 0 ? chosen(r, node, choice) : unknown;
}

/* a AND b, a OR b where one of them decides. */
static index_form both(const rewriter *r, const smg_node *node, const index_form *x, bool all) {
    for (int k = 0; k < 2; k++) {
        int known = x[k].known ? smg_index_decision(r, node, &x[k]) : 0;
        if (known == 0) continue;
        if ((known > 0) != all) return truth(r, node, &x[k], !all);
        index_form f = x[1 - k];
        return meet(r, node, &f, &x[k]) ? checked(node, f) : unknown;
    }
    return unknown;
}

/* ---- operations --------------------------------------------------------------------------------------- */

static index_form apply(const rewriter *r, const smg_node *node, smg_prim prim, const index_form *x) {
    index_form zero = everywhere(r, node, SMG_SIZE_ZERO), f;
    switch (prim) {
    case SMG_PRIM_ADD: return combined(r, node, &x[0], &x[1], 1);
    case SMG_PRIM_SUB: return combined(r, node, &x[0], &x[1], -1);
    case SMG_PRIM_NEG: return combined(r, node, &zero, &x[0], -1);
    case SMG_PRIM_MUL: return scaled(r, node, &x[0], &x[1]);
    case SMG_PRIM_DIV:
    case SMG_PRIM_MOD: return divided(r, node, prim, &x[0], &x[1]);
    case SMG_PRIM_MAX: return greater(r, node, &x[0], &x[1], &x[0], &x[1]);
    case SMG_PRIM_MIN: return greater(r, node, &x[0], &x[1], &x[1], &x[0]);
    case SMG_PRIM_LE: return combined(r, node, &x[1], &x[0], -1);
    case SMG_PRIM_LT: f = combined(r, node, &x[1], &x[0], -1); return f.known ? moved(r, node, &f, -1) : unknown;
    case SMG_PRIM_EQ: return equal(r, node, &x[0], &x[1]);
    case SMG_PRIM_NOT: f = combined(r, node, &zero, &x[0], -1); return f.known ? moved(r, node, &f, -1) : unknown;
    case SMG_PRIM_AND: return both(r, node, x, true);
    case SMG_PRIM_OR: return both(r, node, x, false);
    case SMG_PRIM_SELECT: return chosen(r, node, x);
    default: return unknown;
    }
}

/* Between INT and BOOL; x of a kind `from`. */
static index_form converted(const rewriter *r, const smg_node *node, smg_kind from, smg_prim prim,
                            const index_form *x) {
    if (prim == SMG_PRIM_TO_INT && from == SMG_KIND_INT) return *x;
    if (prim == SMG_PRIM_TO_INT && from == SMG_KIND_BOOL) {
        int known = x->known ? smg_index_decision(r, node, x) : 0;
        index_form f = everywhere(r, node, number_of(r, known > 0));
        return known != 0 && meet(r, node, &f, x) ? checked(node, f) : unknown;
    }
    if (prim != SMG_PRIM_TO_BOOL || from != SMG_KIND_INT) return unknown;
    index_form zero = everywhere(r, node, SMG_SIZE_ZERO), f = equal(r, node, x, &zero);
    int known = f.known ? smg_index_decision(r, node, &f) : 0;
    return known != 0 ? truth(r, node, &f, known < 0) : unknown;
}

static index_form number(const rewriter *r, const smg_node *node, smg_kind kind, double value) {
    if (kind == SMG_KIND_BOOL) return everywhere(r, node, number_of(r, value < 0.0 || value > 0.0 ? 0 : -1));
    bool whole = value >= -2147483648.0 && value <= 2147483647.0 && value <= floor(value);
    return kind == SMG_KIND_INT && whole ? everywhere(r, node, number_of(r, (int64_t)value)) : unknown;
}

static index_form eval(const rewriter *r, const smg_node *node, const index_form *leaf, smg_expr expr, int depth) {
    smg_expr_node e = *smg_expr_get(r->exprs, expr);
    index_form x[3] = {unknown, unknown, unknown};
    if (e.prim == SMG_PRIM_LEAF) return leaf[e.leaf];
    if (e.prim == SMG_PRIM_CONST) return number(r, node, e.kind, e.value);
    if (depth == MAX_DEPTH || e.kind == SMG_KIND_FLOAT) return unknown;
    for (int i = 0; i < smg_prim_arity(e.prim); i++) x[i] = eval(r, node, leaf, e.arg[i], depth + 1);
    smg_kind from = smg_expr_get(r->exprs, e.arg[0])->kind;
    if (e.prim == SMG_PRIM_EQ && from == SMG_KIND_BOOL) return unknown; /* sums differ where truths agree */
    if (e.prim == SMG_PRIM_TO_INT || e.prim == SMG_PRIM_TO_BOOL) return converted(r, node, from, e.prim, &x[0]);
    return apply(r, node, e.prim, x);
}

/* An operand's sum at the positions of a result that repeats its axes. */
static index_form repeated(const rewriter *r, const smg_node *node, const smg_node *operand, const index_form *own) {
    index_form f = everywhere(r, node, own->begin);
    int shift = node->rank - operand->rank;
    for (int d = 0; own->known && d < operand->rank; d++) {
        if (operand->dims[d] == node->dims[d + shift]) {
            f.by[d + shift] = own->by[d];
            f.first[d + shift] = own->first[d];
            f.last[d + shift] = own->last[d];
        } else if (own->first[d] != SMG_SIZE_ZERO || own->last[d] != SMG_SIZE_ZERO) {
            return unknown;
        }
    }
    return own->known ? checked(node, f) : unknown;
}

/* A map's expression, its operands' sums being the leaves'; NONE where nothing is known of any. */
static smg_expr expression_of(const rewriter *r, const smg_node *node, index_form x[SMG_MAX_OPERANDS]) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    int known = 0;
    for (int k = 0; k < node->operand_count; k++) {
        const smg_node *operand = smg_rewriter_operand(r, node, k);
        x[k] = repeated(r, node, operand, &r->forms.items[node->operand[k]]);
        leaf[k] = smg_expr_leaf(r->exprs, smg_type_kind(operand->type), k);
        known += x[k].known;
    }
    smg_expr expr = known > 0 ? smg_op_expr(r->exprs, node->op, node->type, leaf) : SMG_EXPR_NONE;
    bool copy = expr == leaf[0] && !smg_op_converts(node->op); /* a tensor of its own, which no rule takes apart */
    return copy ? SMG_EXPR_NONE : expr;
}

static index_form of_map(const rewriter *r, const smg_node *node) {
    index_form x[SMG_MAX_OPERANDS] = {unknown, unknown, unknown};
    smg_expr expr = expression_of(r, node, x);
    return expr != SMG_EXPR_NONE ? eval(r, node, x, expr, 0) : unknown;
}

/* ---- reductions ----------------------------------------------------------------------------------------- */

/* What a map is where a predicate holds, 0 elsewhere: of a choice, or of the predicate as a number. */
static bool is_guarded(const rewriter *r, const smg_node *node, index_form *out_holds, index_form *out_value) {
    index_form x[SMG_MAX_OPERANDS] = {unknown, unknown, unknown}, zero;
    smg_expr expr = smg_node_class(node) == SMG_CLASS_MAP ? expression_of(r, node, x) : SMG_EXPR_NONE;
    if (expr == SMG_EXPR_NONE) return false;
    smg_expr_node e = *smg_expr_get(r->exprs, expr);
    if (e.prim != SMG_PRIM_TO_INT && e.prim != SMG_PRIM_SELECT) return false;
    *out_holds = eval(r, node, x, e.arg[0], 1);
    if (e.prim == SMG_PRIM_TO_INT) {
        if (smg_expr_get(r->exprs, e.arg[0])->kind != SMG_KIND_BOOL) return false;
        *out_value = everywhere(r, node, number_of(r, 1));
        return out_holds->known;
    }
    *out_value = eval(r, node, x, e.arg[1], 1);
    zero = eval(r, node, x, e.arg[2], 1);
    return out_holds->known && out_value->known && is_size(node, &zero) && zero.begin == SMG_SIZE_ZERO &&
           smg_index_whole(r, node, out_holds) && smg_index_whole(r, node, &zero);
}

/* At how many places along `axis` a predicate holds that its index and a sum of the others' decide: where that many
 * provably are between none and all. */
static index_form count_of(const rewriter *r, const smg_node *node, const index_form *holds, int axis) {
    index_form f = *holds;
    smg_size low, high, all = node->dims[axis];
    int64_t by;
    if (!smg_size_is_const(r->g->sizes, f.by[axis], &by) || (by != 1 && by != -1)) return unknown;
    f.by[axis] = SMG_SIZE_ZERO;
    f.begin = add(r, f.begin, by < 0 ? number_of(r, 1) : all);
    f = checked(node, f);
    bool inside = smg_index_bounds(r, node, &f, &low, &high) && smg_rewriter_at_most(r, SMG_SIZE_ZERO, low, 0) &&
                  smg_rewriter_at_most(r, high, all, 0);
    return inside ? f : unknown;
}

/* The value at the end of an axis that it grows towards. */
static index_form extreme_of(const rewriter *r, const index_form *from, int axis, bool most) {
    index_form f = *from;
    int64_t low, high;
    smg_size_bounds(r->g->sizes, f.by[axis], &low, &high);
    if (low < 0 && high > 0) return unknown;
    f.begin = add(r, f.begin, mul(r, f.by[axis], (low >= 0) == most ? f.last[axis] : f.first[axis]));
    f.by[axis] = SMG_SIZE_ZERO;
    return f;
}

static index_form of_reduce(const rewriter *r, const smg_node *node) {
    const smg_node *a = smg_rewriter_operand(r, node, 0);
    smg_combine combine = smg_op_combine(node->op);
    index_form f = r->forms.items[node->operand[0]], holds, value;
    int axis = node->axis, to = 0;
    bool sums = combine == SMG_COMBINE_ADD && smg_type_kind(node->type) == SMG_KIND_INT;
    if (smg_index_whole(r, a, &f) && (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN)) {
        f = extreme_of(r, &f, axis, combine == SMG_COMBINE_MAX);
    } else if (smg_index_whole(r, a, &f) && sums && f.by[axis] == SMG_SIZE_ZERO) {
        value = everywhere(r, a, a->dims[axis]);
        f = scaled(r, a, &f, &value);
    } else if (sums && is_guarded(r, a, &holds, &value) && value.by[axis] == SMG_SIZE_ZERO) {
        holds = count_of(r, a, &holds, axis);
        f = holds.known ? scaled(r, a, &value, &holds) : unknown;
    } else {
        return unknown;
    }
    index_form result = everywhere(r, node, f.begin);
    result.known = f.known;
    for (int d = 0; d < a->rank; d++) {
        if (d == axis && !node->keep) continue;
        if (d != axis) result.by[to] = f.by[d];
        to++;
    }
    return smg_index_whole(r, a, &f) ? checked(node, result) : unknown;
}

/* ---- leaves -------------------------------------------------------------------------------------------- */

/* Contents that count along their axes, as the first steps say. */
static index_form of_contents(const rewriter *r, const smg_node *node) {
    int64_t extent[SMG_MAX_RANK], stride[SMG_MAX_RANK], by[SMG_MAX_RANK], count = 1;
    for (int d = node->rank - 1; d >= 0; d--) {
        stride[d] = count;
        if (!smg_size_is_const(r->g->sizes, node->dims[d], &extent[d]) || !smg_mul_i64(count, extent[d], &count) ||
            count > MAX_ELEMENTS)
            return unknown;
    }
    if (!node->data || smg_type_kind(node->type) != SMG_KIND_INT) return unknown;
    double begin = smg_host_get(node->type, node->data, 0);
    index_form f = number(r, node, SMG_KIND_INT, begin);
    for (int d = 0; f.known && d < node->rank; d++) {
        double step = extent[d] > 1 ? smg_host_get(node->type, node->data, stride[d]) - begin : 0.0;
        if (fabs(step) > 2147483647.0) return unknown;
        by[d] = (int64_t)step;
        f.by[d] = number_of(r, by[d]);
    }
    for (int64_t i = 0; f.known && i < count; i++) {
        double value = begin;
        for (int d = 0; d < node->rank; d++) value += (double)(i / stride[d] % extent[d] * by[d]);
        double found = smg_host_get(node->type, node->data, i);
        if (value < found || value > found) return unknown;
    }
    return checked(node, f);
}

static index_form of_leaf(const rewriter *r, const smg_node *node) {
    index_form f;
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_NUMBER: return number(r, node, smg_type_kind(node->type), node->value);
    case SMG_LEAF_SIZE: return smg_type_kind(node->type) == SMG_KIND_INT ? everywhere(r, node, node->size) : unknown;
    case SMG_LEAF_INDEX:
        f = everywhere(r, node, SMG_SIZE_ZERO);
        f.by[node->axis] = number_of(r, 1);
        return checked(node, f);
    case SMG_LEAF_TENSOR: return smg_op_is_constant(node->op) ? of_contents(r, node) : unknown;
    case SMG_LEAF_NONE: break;
    }
    return unknown;
}

bool smg_rewriter_index(rewriter *r, const smg_node *node, index_form *out) {
    *out = unknown;
    while (r->forms.count < r->g->nodes.count) {
        index_form made;
        if (!smg_index_of(r, &r->g->nodes.items[r->forms.count], &made)) return false;
        index_form *stored = SMG_ARRAY_PUSH(r->g->arena, &r->forms);
        if (!stored) return false;
        *stored = made;
    }
    return smg_index_of(r, node, out);
}

bool smg_index_of(rewriter *r, const smg_node *node, index_form *out) {
    bool before = smg_sizes_set_quiet(r->g->sizes, true); /* what has no size is not known, and no failure */
    *out = unknown;
    if (smg_type_kind(node->type) != SMG_KIND_FLOAT) {
        smg_op_class class_ = smg_node_class(node);
        if (class_ == SMG_CLASS_LEAF) *out = of_leaf(r, node);
        if (class_ == SMG_CLASS_MAP) *out = of_map(r, node);
        if (class_ == SMG_CLASS_REDUCE) *out = of_reduce(r, node);
        if (class_ == SMG_CLASS_VIEW) *out = smg_index_of_view(r, node);
    }
    smg_sizes_set_quiet(r->g->sizes, before);
    return smg_context_status(r->g->ctx) == SMG_OK;
}
