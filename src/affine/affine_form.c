/* Forms: sums of indices at factors that are sizes. Proofs are differences of sizes whose bounds have a sign. */
#include "affine/affine_internal.h"

/* ---- proofs ------------------------------------------------------------------------------------------ */

bool smg_affine_at_most(smg_sizes *s, smg_size a, smg_size b, int64_t margin) {
    int64_t high;
    if (a < 0 || b < 0) return false;
    smg_size difference = smg_size_sub(s, a, b);
    if (difference < 0) return false;
    smg_size_bounds(s, difference, NULL, &high);
    return high <= -margin;
}

smg_size smg_affine_lesser(smg_sizes *s, smg_size a, smg_size b) {
    if (smg_affine_at_most(s, a, b, 0)) return a;
    return smg_affine_at_most(s, b, a, 0) ? b : SMG_SIZE_NONE;
}

smg_size smg_affine_greater(smg_sizes *s, smg_size a, smg_size b) {
    smg_size low = smg_affine_lesser(s, a, b);
    if (low < 0) return SMG_SIZE_NONE;
    return low == a ? b : a;
}

/* ---- sums --------------------------------------------------------------------------------------------- */

static int place_of(const smg_affine *a, int index) {
    int at = 0;
    while (at < a->count && a->term[at].index != index) at++;
    return at;
}

smg_size smg_affine_by(const smg_affine *a, int index) {
    int at = place_of(a, index);
    return at < a->count ? a->term[at].by : SMG_SIZE_ZERO;
}

smg_size smg_affine_take(smg_affine *io, int index) {
    int at = place_of(io, index);
    if (at == io->count) return SMG_SIZE_ZERO;
    smg_size by = io->term[at].by;
    io->count--;
    for (; at < io->count; at++) io->term[at] = io->term[at + 1];
    return by;
}

bool smg_affine_same(const smg_affine *a, const smg_affine *b) {
    if (a->begin != b->begin || a->count != b->count) return false;
    for (int t = 0; t < a->count; t++)
        if (smg_affine_by(b, a->term[t].index) != a->term[t].by) return false;
    return true;
}

bool smg_affine_put(smg_sizes *s, smg_affine *io, int index, smg_size by) {
    int at = place_of(io, index);
    if (at < io->count) by = smg_size_add(s, io->term[at].by, by);
    if (by < 0) return false;
    if (by == SMG_SIZE_ZERO) {
        smg_affine_take(io, index);
        return true;
    }
    if (at == SMG_AFFINE_TERMS) return false;
    if (at == io->count) io->count++;
    io->term[at] = (smg_affine_term){.index = index, .by = by};
    return true;
}

bool smg_affine_add(smg_sizes *s, smg_affine *io, const smg_affine *a, smg_size by) {
    smg_affine sum = *io;
    sum.begin = smg_size_add(s, io->begin, smg_size_mul(s, a->begin, by));
    bool fits = sum.begin >= 0;
    for (int t = 0; t < a->count && fits; t++)
        fits = smg_affine_put(s, &sum, a->term[t].index, smg_size_mul(s, a->term[t].by, by));
    if (fits) *io = sum;
    return fits;
}

/* ---- bounds --------------------------------------------------------------------------------------------- */

bool smg_affine_bounds(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where,
                       smg_size *out_low, smg_size *out_high) {
    smg_sizes *s = scope->sizes;
    *out_low = *out_high = a->begin;
    for (int t = 0; t < a->count; t++) {
        int64_t low, high;
        smg_size by = a->term[t].by, first, last;
        smg_affine_span(scope, where, a->term[t].index, &first, &last);
        smg_size_bounds(s, by, &low, &high);
        if ((low < 0 && high > 0) || first < 0 || last < 0) return false;
        smg_size near = smg_size_mul(s, by, first), far = smg_size_mul(s, by, last);
        *out_low = smg_size_add(s, *out_low, low >= 0 ? near : far);
        *out_high = smg_size_add(s, *out_high, low >= 0 ? far : near);
    }
    return *out_low >= 0 && *out_high >= 0;
}

int smg_affine_sign(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where) {
    smg_size low, high;
    if (!smg_affine_bounds(scope, a, where, &low, &high)) return 0;
    if (smg_affine_at_most(scope->sizes, SMG_SIZE_ZERO, low, 0)) return 1;
    return smg_affine_at_most(scope->sizes, high, SMG_SIZE_ZERO, 1) ? -1 : 0;
}

bool smg_affine_within(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where,
                       smg_size end) {
    smg_size low, high;
    return smg_affine_bounds(scope, a, where, &low, &high) && smg_affine_at_most(scope->sizes, SMG_SIZE_ZERO, low, 0) &&
           smg_affine_at_most(scope->sizes, high, end, 1);
}

/* ---- division ------------------------------------------------------------------------------------------ */

/* What `by` divides is in the quotient. */
static bool part_by_part(smg_sizes *s, const smg_affine *a, smg_size by, smg_affine *q, smg_affine *rest) {
    *q = *rest = (smg_affine){.count = 0};
    if (!smg_size_divide_exact(s, a->begin, by, &q->begin)) {
        q->begin = SMG_SIZE_ZERO;
        rest->begin = a->begin;
    }
    for (int t = 0; t < a->count; t++) {
        smg_size times;
        bool exact = smg_size_divide_exact(s, a->term[t].by, by, &times);
        if (!smg_affine_put(s, exact ? q : rest, a->term[t].index, exact ? times : a->term[t].by)) return false;
    }
    return true;
}

bool smg_affine_divide(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where, smg_size by,
                       smg_affine *out_quotient, smg_affine *out_rest) {
    smg_sizes *s = scope->sizes;
    smg_affine parts = *a, *q = out_quotient, *rest = out_rest;
    if (scope->split != NULL && !scope->split(scope->user, &parts, by)) return false;
    if (!part_by_part(s, &parts, by, q, rest)) return false;
    if (smg_affine_within(scope, rest, where, by)) return true;
    if (rest->begin == SMG_SIZE_ZERO) return false;
    q->begin = smg_size_div(s, rest->begin, by);
    rest->begin = smg_size_mod(s, rest->begin, by);
    return q->begin >= 0 && rest->begin >= 0 && smg_affine_within(scope, rest, where, by);
}
