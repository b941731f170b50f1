/* What is known of a primitive: the form from the operands' forms, the range from their ranges, and where either
 * decides, the operand that it always is. */
#include "affine/affine_internal.h"

static smg_affine_value ranged(smg_affine_value v, smg_affine_range range) {
    v.range = range;
    v.leaf = -1;
    return v;
}

/* ---- truths ------------------------------------------------------------------------------------------- */

smg_affine_value smg_affine_settled(const smg_affine_scope *scope, smg_affine_value v) {
    smg_sizes *s = scope->sizes;
    int known = smg_affine_truth_of(s, v.range);
    if (known == 0 && smg_affine_whole(&v)) known = smg_affine_decision(scope, &v);
    smg_affine_value decided = smg_affine_of_number(s, SMG_KIND_BOOL, known > 0);
    decided.leaf = v.leaf;
    v.range = smg_affine_truths(s, true, true);
    return known == 0 ? v : decided;
}

/* x + margin <= y */
static smg_affine_value comparison(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y,
                                   int64_t margin) {
    smg_sizes *s = scope->sizes;
    smg_affine_value f = smg_affine_combined(scope, y, x, -1), number;
    number = smg_affine_of_size(smg_size_const(s, margin));
    if (margin != 0) f = smg_affine_combined(scope, &f, &number, -1);
    return ranged(f, smg_affine_range_comparison(s, x->range, y->range, margin));
}

/* Fails where x holds. */
static smg_affine_value negation(const smg_affine_scope *scope, const smg_affine_value *x) {
    smg_sizes *s = scope->sizes;
    int held = smg_affine_truth_of(s, x->range);
    smg_affine_value below = smg_affine_of_size(smg_size_const(s, -1));
    return ranged(smg_affine_combined(scope, &below, x, -1), smg_affine_truths(s, held >= 0, held <= 0));
}

/* Both of x (all), or either. */
static smg_affine_value connective(const smg_affine_scope *scope, const smg_affine_value *x, bool all) {
    smg_sizes *s = scope->sizes;
    int decides = all ? -1 : 1;
    for (int k = 0; k < 2; k++) {
        int known = smg_affine_truth_of(s, x[k].range);
        if (known == decides) return smg_affine_of_number(s, SMG_KIND_BOOL, !all);
        if (known != 0) return x[1 - k];
    }
    for (int k = 0; k < 2; k++) { /* where it is known */
        int known = smg_affine_decision(scope, &x[k]);
        if (known == decides) return ranged(smg_affine_truth(scope, &x[k], !all), smg_affine_no_range);
        if (known != 0) return ranged(smg_affine_chosen(scope, &x[k], &x[1 - k], &x[1 - k]), smg_affine_no_range);
    }
    return smg_affine_unknown;
}

/* ---- integers ----------------------------------------------------------------------------------------- */

static smg_affine_value sum(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y,
                            int64_t by) {
    smg_sizes *s = scope->sizes;
    smg_affine_range other = by < 0 ? smg_affine_range_minus(s, y->range) : y->range;
    return ranged(smg_affine_combined(scope, x, y, by), smg_affine_range_sum(s, x->range, other));
}

/* The one of two that is always it; else what bounds them. */
static smg_affine_value extreme(const smg_affine_scope *scope, const smg_affine_value *x, bool least) {
    smg_sizes *s = scope->sizes;
    for (int k = 0; k < 2; k++)
        if (smg_affine_at_most(s, x[k].range.high, x[1 - k].range.low, 0)) return least ? x[k] : x[1 - k];
    smg_affine_value rises = smg_affine_combined(scope, &x[1], &x[0], -1); /* x[0] is the lesser */
    int known = smg_affine_decision(scope, &rises);
    const smg_affine_value *first = least ? &x[0] : &x[1], *second = least ? &x[1] : &x[0];
    if (known != 0 && smg_affine_whole(&rises)) return known > 0 ? *first : *second;
    smg_affine_value f = known != 0 ? smg_affine_chosen(scope, &rises, first, second) : smg_affine_unknown;
    return ranged(f, smg_affine_range_extreme(s, x[0].range, x[1].range, least));
}

static smg_affine_value remainder_of(const smg_affine_scope *scope, const smg_affine_value *x) {
    smg_sizes *s = scope->sizes;
    bool less = smg_affine_no_negative(s, x[0].range) && smg_affine_at_most(s, x[0].range.high, x[1].range.low, 1);
    if (less) return x[0];
    return ranged(smg_affine_divided(scope, SMG_PRIM_MOD, &x[0], &x[1]), smg_affine_range_mod(s, x[1].range));
}

static smg_affine_value magnitude(const smg_affine_scope *scope, const smg_affine_value *x) {
    bool positive = smg_affine_no_negative(scope->sizes, x->range) ||
                    (smg_affine_whole(x) && smg_affine_sign(scope, &x->form, NULL) > 0);
    return positive ? *x : ranged(smg_affine_unknown, (smg_affine_range){SMG_SIZE_ZERO, SMG_SIZE_NONE, 1});
}

smg_affine_value smg_affine_choice(const smg_affine_scope *scope, const smg_affine_value *p, const smg_affine_value *x,
                                   const smg_affine_value *y) {
    return ranged(smg_affine_chosen(scope, p, x, y), smg_affine_united(scope->sizes, x->range, y->range));
}

/* ---- conversions -------------------------------------------------------------------------------------- */

/* To a number. A truth is 0 or 1. */
static smg_affine_value converted(const smg_affine_scope *scope, smg_kind from, const smg_affine_value *x) {
    if (from != SMG_KIND_BOOL) return ranged(*x, x->range);
    int known = smg_affine_decision(scope, x);
    smg_affine_value f = smg_affine_of_size(smg_size_const(scope->sizes, known > 0));
    if (known == 0) f = smg_affine_unknown;
    if (known != 0 && x->known) smg_affine_meet(scope, &f, x);
    return ranged(f, x->range);
}

static smg_affine_value to_truth(const smg_affine_scope *scope, const smg_affine_value *x) {
    smg_sizes *s = scope->sizes;
    int held = smg_affine_truth_of(s, x->range);
    smg_affine_value zero = smg_affine_of_size(SMG_SIZE_ZERO), is_zero = smg_affine_equal(scope, x, &zero);
    return ranged(negation(scope, &is_zero), smg_affine_truths(s, held <= 0, held >= 0));
}

/* ---- all ---------------------------------------------------------------------------------------------- */

smg_affine_value smg_affine_apply(const smg_affine_scope *scope, smg_prim prim, smg_kind from,
                                  const smg_affine_value *x) {
    smg_sizes *s = scope->sizes;
    smg_affine_value zero = smg_affine_of_size(SMG_SIZE_ZERO);
    switch (prim) {
    case SMG_PRIM_ADD: return sum(scope, &x[0], &x[1], 1);
    case SMG_PRIM_SUB: return sum(scope, &x[0], &x[1], -1);
    case SMG_PRIM_NEG:
        return ranged(smg_affine_combined(scope, &zero, &x[0], -1), smg_affine_range_minus(s, x[0].range));
    case SMG_PRIM_MUL:
        return ranged(smg_affine_scaled(scope, &x[0], &x[1]), smg_affine_range_product(s, x[0].range, x[1].range));
    case SMG_PRIM_DIV: return smg_affine_divided(scope, prim, &x[0], &x[1]);
    case SMG_PRIM_MOD: return remainder_of(scope, x);
    case SMG_PRIM_ABS: return magnitude(scope, &x[0]);
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX: return extreme(scope, x, prim == SMG_PRIM_MIN);
    case SMG_PRIM_LE: return comparison(scope, &x[0], &x[1], 0);
    case SMG_PRIM_LT: return comparison(scope, &x[0], &x[1], 1);
    case SMG_PRIM_EQ:
        return ranged(smg_affine_equal(scope, &x[0], &x[1]), smg_affine_range_equality(s, x[0].range, x[1].range));
    case SMG_PRIM_NOT: return negation(scope, &x[0]);
    case SMG_PRIM_AND:
    case SMG_PRIM_OR: return connective(scope, x, prim == SMG_PRIM_AND);
    case SMG_PRIM_TO_INT:
    case SMG_PRIM_TO_FLOAT: return converted(scope, from, &x[0]);
    case SMG_PRIM_TO_BOOL: return from == SMG_KIND_BOOL ? x[0] : to_truth(scope, &x[0]);
    default: return smg_affine_unknown;
    }
}
