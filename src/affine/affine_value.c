/* Values by their forms, each with the part of the indices in which it holds. Comparisons are forms too: they hold
 * where the form is not negative. A choice by an index puts the parts of two forms together again. */
#include "affine/affine_internal.h"

#include <math.h>

const smg_affine_value smg_affine_unknown = {.range = {SMG_SIZE_NONE, SMG_SIZE_NONE, 0}, .leaf = -1};

static smg_size number(const smg_affine_scope *scope, int64_t value) {
    return smg_size_const(scope->sizes, value);
}

/* The value without its range. */
static smg_affine_value form_of(const smg_affine_value *v) {
    smg_affine_value f = *v;
    f.range = smg_affine_no_range;
    f.leaf = -1;
    return f.known ? f : smg_affine_unknown;
}

static smg_affine_value only_if(bool fits, const smg_affine_value *v) {
    return fits ? *v : smg_affine_unknown;
}

/* ---- leaves --------------------------------------------------------------------------------------------- */

smg_affine_value smg_affine_of_size(smg_size size) {
    smg_affine_value v = smg_affine_unknown;
    if (size < 0) return v;
    v.known = true;
    v.form.begin = size;
    v.range = (smg_affine_range){size, size, 1};
    return v;
}

smg_affine_value smg_affine_of_number(smg_sizes *s, smg_kind kind, double value) {
    if (kind == SMG_KIND_BOOL) {
        bool holds = value < 0.0 || value > 0.0;
        smg_affine_value v = smg_affine_of_size(smg_size_const(s, holds ? 0 : -1));
        v.range = smg_affine_truths(s, !holds, holds);
        return v;
    }
    bool whole = value >= -2147483648.0 && value <= 2147483647.0 && value <= floor(value);
    return kind == SMG_KIND_INT && whole ? smg_affine_of_size(smg_size_const(s, (int64_t)value)) : smg_affine_unknown;
}

smg_affine_value smg_affine_of_index(const smg_affine_scope *scope, int index) {
    smg_affine_value v = smg_affine_unknown;
    smg_size extent = scope->extent(scope->user, index);
    v.known = smg_affine_put(scope->sizes, &v.form, index, number(scope, 1));
    v.range.low = SMG_SIZE_ZERO;
    v.range.high = extent < 0 ? SMG_SIZE_NONE : smg_size_sub(scope->sizes, extent, number(scope, 1));
    v.range.weight = 1;
    return v;
}

/* ---- where a form holds ----------------------------------------------------------------------------------- */

bool smg_affine_whole(const smg_affine_value *v) {
    return v->known && v->cut_count == 0;
}

bool smg_affine_is_size(const smg_affine_value *v) {
    return v->known && v->form.count == 0;
}

static int cut_of(const smg_affine_value *v, int index) {
    int at = 0;
    while (at < v->cut_count && v->cut[at].index != index) at++;
    return at;
}

static smg_size last_of(const smg_affine_scope *scope, int index) {
    smg_size extent = scope->extent(scope->user, index);
    return extent < 0 ? SMG_SIZE_NONE : smg_size_sub(scope->sizes, extent, number(scope, 1));
}

const smg_affine_cut *smg_affine_cut_of(const smg_affine_value *v, int index) {
    int at = v != NULL ? cut_of(v, index) : 0;
    return v != NULL && at < v->cut_count ? &v->cut[at] : NULL;
}

void smg_affine_span(const smg_affine_scope *scope, const smg_affine_value *v, int index, smg_size *out_first,
                     smg_size *out_last) {
    const smg_affine_cut *cut = smg_affine_cut_of(v, index);
    *out_first = cut ? cut->first : SMG_SIZE_ZERO;
    *out_last = cut ? cut->last : last_of(scope, index);
}

static void uncut(smg_affine_value *io, int index) {
    int at = cut_of(io, index);
    if (at == io->cut_count) return;
    io->cut_count--;
    for (; at < io->cut_count; at++) io->cut[at] = io->cut[at + 1];
}

void smg_affine_cut_to(const smg_affine_scope *scope, smg_affine_value *io, int index, smg_size first, smg_size last) {
    smg_size own_first, own_last;
    smg_affine_span(scope, io, index, &own_first, &own_last);
    if (first != own_first) first = smg_affine_greater(scope->sizes, first, own_first);
    if (last != own_last) last = smg_affine_lesser(scope->sizes, last, own_last);
    int at = cut_of(io, index);
    if (first == SMG_SIZE_ZERO && last >= 0 && last == last_of(scope, index)) return;
    io->known = io->known && first >= 0 && last >= 0 && at < SMG_AFFINE_CUTS;
    if (!io->known) return;
    io->cut[at] = (smg_affine_cut){.index = index, .first = first, .last = last};
    if (at == io->cut_count) io->cut_count++;
}

bool smg_affine_meet(const smg_affine_scope *scope, smg_affine_value *io, const smg_affine_value *other) {
    io->known = io->known && other->known;
    for (int c = 0; c < other->cut_count && io->known; c++)
        smg_affine_cut_to(scope, io, other->cut[c].index, other->cut[c].first, other->cut[c].last);
    return io->known;
}

int smg_affine_decision(const smg_affine_scope *scope, const smg_affine_value *v) {
    int known = smg_affine_truth_of(scope->sizes, v->range);
    return known != 0 || !v->known ? known : smg_affine_sign(scope, &v->form, v);
}

/* ---- arithmetic --------------------------------------------------------------------------------------------- */

smg_affine_value smg_affine_combined(const smg_affine_scope *scope, const smg_affine_value *x,
                                     const smg_affine_value *y, int64_t by) {
    smg_affine_value f = form_of(x);
    bool fits = smg_affine_meet(scope, &f, y) && smg_affine_add(scope->sizes, &f.form, &y->form, number(scope, by));
    return only_if(fits, &f);
}

smg_affine_value smg_affine_scaled(const smg_affine_scope *scope, const smg_affine_value *x,
                                   const smg_affine_value *y) {
    if (!smg_affine_is_size(y)) return smg_affine_is_size(x) ? smg_affine_scaled(scope, y, x) : smg_affine_unknown;
    smg_affine_value f = form_of(x);
    f.form = (smg_affine){.count = 0};
    bool fits = smg_affine_meet(scope, &f, y) && smg_affine_add(scope->sizes, &f.form, &x->form, y->form.begin);
    return only_if(fits, &f);
}

/* A quotient is cut off towards 0, a remainder counts from below: they fit together where nothing is negative, and
 * where nothing remains. */
smg_affine_value smg_affine_divided(const smg_affine_scope *scope, smg_prim prim, const smg_affine_value *x,
                                    const smg_affine_value *y) {
    smg_affine_value q = form_of(x), rest;
    if (!smg_affine_is_size(y) || !smg_affine_meet(scope, &q, y)) return smg_affine_unknown;
    rest = q;
    if (!smg_affine_at_most(scope->sizes, SMG_SIZE_ZERO, y->form.begin, 1)) return smg_affine_unknown;
    bool fits = smg_affine_divide(scope, &x->form, &rest, y->form.begin, &q.form, &rest.form);
    if (!fits || prim == SMG_PRIM_MOD) return only_if(fits, &rest);
    bool even = rest.form.count == 0 && rest.form.begin == SMG_SIZE_ZERO;
    return only_if(even || smg_affine_sign(scope, &q.form, &q) > 0 || smg_affine_sign(scope, &x->form, &q) > 0, &q);
}

smg_affine_value smg_affine_truth(const smg_affine_scope *scope, const smg_affine_value *at, bool value) {
    smg_affine_value f = form_of(at);
    f.form = (smg_affine){.begin = number(scope, value ? 0 : -1)};
    return only_if(f.known && f.form.begin >= 0, &f);
}

smg_affine_value smg_affine_equal(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y) {
    smg_size low, high;
    smg_affine_value difference = smg_affine_combined(scope, x, y, -1);
    if (!difference.known || !smg_affine_bounds(scope, &difference.form, &difference, &low, &high))
        return smg_affine_unknown;
    if (low == SMG_SIZE_ZERO && high == SMG_SIZE_ZERO) return smg_affine_truth(scope, &difference, true);
    bool apart = smg_affine_at_most(scope->sizes, SMG_SIZE_ZERO, low, 1) ||
                 smg_affine_at_most(scope->sizes, high, SMG_SIZE_ZERO, 1);
    return apart ? smg_affine_truth(scope, &difference, false) : smg_affine_unknown;
}

/* ---- choices by an index ------------------------------------------------------------------------------------ */

/* Does one index alone decide the truth, all along it, changing at one place? */
static bool one_index_decides(const smg_affine_scope *scope, const smg_affine_value *p, int *out_index,
                              bool *out_rises) {
    int64_t by;
    if (!p->known || p->form.count != 1) return false;
    *out_index = p->form.term[0].index;
    if (smg_affine_cut_of(p, *out_index) != NULL || last_of(scope, *out_index) < 0) return false;
    if (!smg_size_is_const(scope->sizes, p->form.term[0].by, &by) || (by != 1 && by != -1)) return false;
    *out_rises = by > 0;
    return true;
}

/* The form with `index` at one place, all other indices as they are. */
static bool form_at(const smg_affine_scope *scope, const smg_affine_value *v, int index, smg_size at, smg_affine *out) {
    *out = v->form;
    smg_size by = smg_affine_take(out, index);
    out->begin = smg_size_add(scope->sizes, out->begin, smg_size_mul(scope->sizes, by, at));
    return out->begin >= 0;
}

/* Is x, which is known on its side of a seam, y on the other, where that reaches from first to last? */
static bool goes_on(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y, int index,
                    const smg_affine_cut *side) {
    smg_affine p, q;
    if (smg_affine_same(&x->form, &y->form)) return true;
    return side->first == side->last && form_at(scope, x, index, side->first, &p) &&
           form_at(scope, y, index, side->first, &q) && smg_affine_same(&p, &q);
}

static smg_affine_value joined(const smg_affine_scope *scope, const smg_affine_value *p, const smg_affine_value *x,
                               const smg_affine_value *y) {
    smg_sizes *s = scope->sizes;
    const smg_affine_value *value[2] = {x, y};
    int index;
    bool rises;
    if (!x->known || !y->known || !one_index_decides(scope, p, &index, &rises)) return smg_affine_unknown;
    /* side[0] is where p holds: from -begin on where it rises, up to begin where it falls */
    smg_affine_cut side[2] = {{index, SMG_SIZE_ZERO, last_of(scope, index)},
                              {index, SMG_SIZE_ZERO, last_of(scope, index)}};
    if (rises) {
        side[0].first = smg_size_sub(s, SMG_SIZE_ZERO, p->form.begin);
        side[1].last = smg_size_sub(s, side[0].first, number(scope, 1));
    } else {
        side[0].last = p->form.begin;
        side[1].first = smg_size_add(s, side[0].last, number(scope, 1));
    }
    for (int i = 0; i < 2; i++) {
        smg_size first, last;
        smg_affine_span(scope, value[i], index, &first, &last);
        if (!smg_affine_at_most(s, first, side[i].first, 0) || !smg_affine_at_most(s, side[i].last, last, 0))
            return smg_affine_unknown;
    }
    bool x_goes_on = goes_on(scope, x, y, index, &side[1]);
    if (!x_goes_on && !goes_on(scope, y, x, index, &side[0])) return smg_affine_unknown;
    smg_affine_value f = form_of(x_goes_on ? x : y), other = form_of(x_goes_on ? y : x);
    uncut(&f, index);
    uncut(&other, index);
    bool fits = smg_affine_meet(scope, &f, &other) && smg_affine_meet(scope, &f, p);
    return only_if(fits, &f);
}

smg_affine_value smg_affine_chosen(const smg_affine_scope *scope, const smg_affine_value *p, const smg_affine_value *x,
                                   const smg_affine_value *y) {
    int known = p->known ? smg_affine_sign(scope, &p->form, p) : 0;
    if (known == 0) return joined(scope, p, x, y);
    smg_affine_value f = form_of(known > 0 ? x : y);
    return only_if(smg_affine_meet(scope, &f, p), &f);
}
