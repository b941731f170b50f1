/* Integers that depend on positions, through views: a view moves positions, so the sum of its operand is a sum of its
 * own. A slice or a border shifts the part of an axis in which it holds; a reshape keeps it where axes stay whole, or
 * count on from one to the next. */
#include "rewrite/rewrite_internal.h"

static const index_form unknown = {.known = false};

static smg_size number_of(const rewriter *r, int64_t value) {
    return smg_size_const(r->g->sizes, value);
}

static void set_axis(const rewriter *r, const smg_node *node, index_form *f, int d, smg_size by) {
    f->by[d] = by;
    f->first[d] = SMG_SIZE_ZERO;
    f->last[d] = smg_size_sub(r->g->sizes, node->dims[d], number_of(r, 1));
}

static void carry_axis(const index_form *from, int d, index_form *f, int to) {
    f->by[to] = from->by[d];
    f->first[to] = from->first[d];
    f->last[to] = from->last[d];
}

static bool whole_axis(const rewriter *r, const smg_node *node, const index_form *f, int d) {
    return f->first[d] == SMG_SIZE_ZERO && smg_size_add(r->g->sizes, f->last[d], number_of(r, 1)) == node->dims[d];
}

static index_form checked(const smg_node *node, index_form f) {
    f.known = f.known && f.begin >= 0;
    for (int d = 0; d < node->rank; d++) f.known = f.known && f.by[d] >= 0 && f.first[d] >= 0 && f.last[d] >= 0;
    return f.known ? f : unknown;
}

/* ---- reshapes ------------------------------------------------------------------------------------- */

typedef struct axes {
    int count, at[SMG_MAX_RANK];
} axes;

/* The axes of more than one element. */
static axes long_axes(const rewriter *r, const smg_node *node) {
    axes a = {.count = 0};
    for (int d = 0; d < node->rank; d++)
        if (node->dims[d] != number_of(r, 1)) a.at[a.count++] = d;
    return a;
}

/* The next axes of both that are as many elements: numbers of axes, false when there are none. */
static bool next_group(const rewriter *r, const smg_node *node, const axes *v, int v_from, const smg_node *a,
                       const axes *w, int w_from, int *out_v, int *out_w) {
    smg_size outer = number_of(r, 1);
    for (*out_w = w_from; *out_w < w->count;) {
        outer = smg_size_mul(r->g->sizes, outer, a->dims[w->at[(*out_w)++]]);
        smg_size own = number_of(r, 1);
        for (*out_v = v_from; *out_v < v->count;) {
            own = smg_size_mul(r->g->sizes, own, node->dims[v->at[(*out_v)++]]);
            if (own == outer && own >= 0) return true;
        }
    }
    return false;
}

/* What one step along a group of axes adds, where they count on from one to the next; NONE where they do not. */
static smg_size step_of(const rewriter *r, const smg_node *a, const index_form *f, const axes *w, int from, int to) {
    smg_size by = f->by[w->at[to - 1]], all = by;
    for (int i = to - 1; i >= from; i--) {
        int d = w->at[i];
        if (!whole_axis(r, a, f, d) || f->by[d] != all) return SMG_SIZE_NONE;
        all = smg_size_mul(r->g->sizes, all, a->dims[d]);
    }
    return by;
}

static index_form of_reshape(const rewriter *r, const smg_node *node, const smg_node *a, const index_form *from) {
    index_form f = {.known = true, .begin = from->begin};
    axes v = long_axes(r, node), w = long_axes(r, a);
    for (int d = 0; d < node->rank; d++) set_axis(r, node, &f, d, SMG_SIZE_ZERO);
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] == number_of(r, 1) && !whole_axis(r, a, from, d)) return unknown;
    for (int i = 0, k = 0, i_end, k_end; i < v.count || k < w.count; i = i_end, k = k_end) {
        if (!next_group(r, node, &v, i, a, &w, k, &i_end, &k_end)) return unknown;
        if (i_end == i + 1 && k_end == k + 1) {
            carry_axis(from, w.at[k], &f, v.at[i]);
            continue;
        }
        smg_size by = step_of(r, a, from, &w, k, k_end);
        for (int at = i_end - 1; at >= i; at--) {
            f.by[v.at[at]] = by;
            by = smg_size_mul(r->g->sizes, by, node->dims[v.at[at]]);
        }
    }
    return checked(node, f);
}

/* ---- slices, borders ---------------------------------------------------------------------------------- */

/* begin + step * i for 0 <= i < count lies where the operand's sum holds. */
static bool inside(const rewriter *r, const index_form *from, int axis, smg_size begin, smg_size step, smg_size count) {
    smg_sizes *s = r->g->sizes;
    smg_size end = smg_size_add(s, begin, smg_size_mul(s, step, smg_size_sub(s, count, number_of(r, 1))));
    for (int i = 0; i < 2; i++) {
        smg_size at = i == 0 ? begin : end;
        if (!smg_rewriter_at_most(r, from->first[axis], at, 0)) return false;
        if (!smg_rewriter_at_most(r, at, from->last[axis], 0)) return false;
    }
    return true;
}

/* Axis `to` of the result at begin + i of the operand's: what of 0 <= i < count lies where its sum holds. */
static void cut_axis(const rewriter *r, const index_form *from, int axis, smg_size begin, index_form *f, int to) {
    smg_sizes *s = r->g->sizes;
    f->first[to] = smg_rewriter_greater(r, SMG_SIZE_ZERO, smg_size_sub(s, from->first[axis], begin));
    f->last[to] = smg_rewriter_lesser(r, f->last[to], smg_size_sub(s, from->last[axis], begin));
}

static index_form of_slice(const rewriter *r, const smg_node *node, const smg_node *a, const index_form *from) {
    index_form f = *from;
    smg_sizes *s = r->g->sizes;
    int axis = node->axis;
    smg_size step = number_of(r, node->step);
    f.begin = smg_size_add(s, f.begin, smg_size_mul(s, from->by[axis], node->begin));
    set_axis(r, node, &f, axis, smg_size_mul(s, from->by[axis], step));
    if (!whole_axis(r, a, from, axis) && !inside(r, from, axis, node->begin, step, node->dims[axis])) {
        if (node->step != 1) return unknown;
        cut_axis(r, from, axis, node->begin, &f, axis);
    }
    return checked(node, f);
}

static index_form of_window(const rewriter *r, const smg_node *node, const index_form *from) {
    index_form f = {.known = true};
    smg_sizes *s = r->g->sizes;
    int axis = node->axis;
    smg_size step = number_of(r, node->step), dilation = number_of(r, node->dilation);
    for (int d = 0; d + 1 < node->rank; d++)
        if (d != axis) carry_axis(from, d, &f, d > axis ? d + 1 : d);
    f.begin = smg_size_add(s, from->begin, smg_size_mul(s, from->by[axis], node->begin));
    set_axis(r, node, &f, axis, smg_size_mul(s, from->by[axis], step));
    set_axis(r, node, &f, axis + 1, smg_size_mul(s, from->by[axis], dilation));
    smg_size taps = smg_size_mul(s, dilation, smg_size_sub(s, node->dims[axis + 1], number_of(r, 1)));
    if (inside(r, from, axis, node->begin, step, node->dims[axis]) &&
        inside(r, from, axis, smg_size_add(s, node->begin, taps), step, node->dims[axis]))
        return checked(node, f);
    if (node->step != 1 || taps != SMG_SIZE_ZERO) return unknown;
    cut_axis(r, from, axis, node->begin, &f, axis);
    return checked(node, f);
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static index_form of_broadcast(const rewriter *r, const smg_node *node, const smg_node *a, const index_form *from) {
    index_form f = {.known = true, .begin = from->begin};
    int shift = node->rank - a->rank;
    for (int d = 0; d < node->rank; d++) set_axis(r, node, &f, d, SMG_SIZE_ZERO);
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] == node->dims[d + shift])
            carry_axis(from, d, &f, d + shift);
        else if (!whole_axis(r, a, from, d))
            return unknown;
    }
    return checked(node, f);
}

index_form smg_index_of_view(const rewriter *r, const smg_node *node) {
    const smg_node *a = smg_rewriter_operand(r, node, 0);
    const index_form *from = &r->forms.items[node->operand[0]];
    index_form f = *from;
    if (!from->known) return unknown;
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE: return of_reshape(r, node, a, from);
    case SMG_VIEW_BROADCAST: return of_broadcast(r, node, a, from);
    case SMG_VIEW_SLICE: return of_slice(r, node, a, from);
    case SMG_VIEW_WINDOW: return of_window(r, node, from);
    case SMG_VIEW_TRANSPOSE:
        for (int d = 0; d < node->rank; d++) carry_axis(from, node->perm[d], &f, d);
        return f;
    case SMG_VIEW_NONE: break;
    }
    return unknown;
}
