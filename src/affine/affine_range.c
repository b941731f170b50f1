/* Ranges: a value lies between two sizes wherever it stands. They say less than a form does, and of more: of
 * remainders, of the elements of a tensor, of what a choice may give. */
#include "affine/affine_internal.h"

#define MAX_WEIGHT 16    /* sums in a bound; longer ones are not followed */
#define MAX_FACTOR 65536 /* of a product that is followed */

const smg_affine_range smg_affine_no_range = {SMG_SIZE_NONE, SMG_SIZE_NONE, 0};

static smg_size number(smg_sizes *s, int64_t value) {
    return smg_size_const(s, value);
}

smg_affine_range smg_affine_united(smg_sizes *s, smg_affine_range a, smg_affine_range b) {
    return (smg_affine_range){smg_affine_lesser(s, a.low, b.low), smg_affine_greater(s, a.high, b.high),
                              a.weight > b.weight ? a.weight : b.weight};
}

bool smg_affine_no_negative(smg_sizes *s, smg_affine_range a) {
    return smg_affine_at_most(s, SMG_SIZE_ZERO, a.low, 0);
}

/* ---- truths ------------------------------------------------------------------------------------------- */

smg_affine_range smg_affine_truths(smg_sizes *s, bool may_fail, bool may_hold) {
    return (smg_affine_range){number(s, may_fail ? 0 : 1), number(s, may_hold ? 1 : 0), 1};
}

int smg_affine_truth_of(smg_sizes *s, smg_affine_range a) {
    if (smg_affine_at_most(s, SMG_SIZE_ZERO, a.low, 1) || smg_affine_at_most(s, a.high, SMG_SIZE_ZERO, 1)) return 1;
    return smg_affine_no_negative(s, a) && smg_affine_at_most(s, a.high, SMG_SIZE_ZERO, 0) ? -1 : 0;
}

/* a + margin <= b */
smg_affine_range smg_affine_range_comparison(smg_sizes *s, smg_affine_range a, smg_affine_range b, int64_t margin) {
    bool always = smg_affine_at_most(s, a.high, b.low, margin);
    bool never = smg_affine_at_most(s, b.high, a.low, 1 - margin);
    return smg_affine_truths(s, !always, !never);
}

smg_affine_range smg_affine_range_equality(smg_sizes *s, smg_affine_range a, smg_affine_range b) {
    bool apart = smg_affine_at_most(s, a.high, b.low, 1) || smg_affine_at_most(s, b.high, a.low, 1);
    bool same = a.low >= 0 && a.low == a.high && b.low == a.low && b.high == a.low;
    return smg_affine_truths(s, !same, !apart);
}

/* ---- arithmetic --------------------------------------------------------------------------------------- */

static smg_size sum(smg_sizes *s, smg_size a, smg_size b) {
    return a < 0 || b < 0 ? SMG_SIZE_NONE : smg_size_add(s, a, b);
}

static smg_size minus(smg_sizes *s, smg_size a) {
    return a < 0 ? SMG_SIZE_NONE : smg_size_sub(s, SMG_SIZE_ZERO, a);
}

smg_affine_range smg_affine_range_sum(smg_sizes *s, smg_affine_range a, smg_affine_range b) {
    int weight = a.weight + b.weight;
    if (weight > MAX_WEIGHT) return smg_affine_no_range;
    return (smg_affine_range){sum(s, a.low, b.low), sum(s, a.high, b.high), weight};
}

smg_affine_range smg_affine_range_minus(smg_sizes *s, smg_affine_range a) {
    return (smg_affine_range){minus(s, a.high), minus(s, a.low), a.weight};
}

/* By a number that both bounds of b are. */
static smg_affine_range scaled(smg_sizes *s, smg_affine_range a, smg_affine_range b) {
    int64_t factor;
    if (b.low != b.high || !smg_size_is_const(s, b.low, &factor)) return smg_affine_no_range;
    if (factor < -MAX_FACTOR || factor > MAX_FACTOR) return smg_affine_no_range;
    smg_size low = a.low < 0 ? a.low : smg_size_mul(s, a.low, b.low);
    smg_size high = a.high < 0 ? a.high : smg_size_mul(s, a.high, b.low);
    return factor < 0 ? (smg_affine_range){high, low, a.weight} : (smg_affine_range){low, high, a.weight};
}

smg_affine_range smg_affine_range_product(smg_sizes *s, smg_affine_range a, smg_affine_range b) {
    smg_affine_range by_second = scaled(s, a, b);
    return by_second.low >= 0 || by_second.high >= 0 ? by_second : scaled(s, b, a);
}

/* A remainder by b, which is not negative; by 0 it is 0. */
smg_affine_range smg_affine_range_mod(smg_sizes *s, smg_affine_range b) {
    if (!smg_affine_no_negative(s, b) || !smg_affine_at_most(s, SMG_SIZE_ZERO, b.high, 1)) return smg_affine_no_range;
    return (smg_affine_range){SMG_SIZE_ZERO, smg_size_sub(s, b.high, number(s, 1)), b.weight};
}

/* The lesser or the greater of two: on one side the bound of either operand holds. */
smg_affine_range smg_affine_range_extreme(smg_sizes *s, smg_affine_range a, smg_affine_range b, bool least) {
    smg_affine_range all = smg_affine_united(s, a, b);
    smg_size p = least ? a.high : a.low, q = least ? b.high : b.low;
    smg_size *tight = least ? &all.high : &all.low;
    *tight = p < 0 ? q : p;
    if (p >= 0 && q >= 0 && smg_affine_at_most(s, p, q, 0) != least) *tight = q;
    return all;
}
