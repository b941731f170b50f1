/* What is known of integers and truths, through views: a view moves positions, so the form of its operand is a form of
 * its own. A slice or a border shifts the part of an axis in which it holds; a reshape keeps it where axes stay whole,
 * or count on from one to the next. */
#include "rewrite/rewrite_internal.h"

static smg_size extent_of(const void *user, int index) {
    const smg_node *node = user;
    return node->dims[index];
}

smg_affine_scope smg_known_scope(const rewriter *r, const smg_node *node) {
    return (smg_affine_scope){.sizes = r->g->sizes, .extent = extent_of, .user = node};
}

const smg_affine_value *smg_known_operand(const rewriter *r, const smg_node *node, int k) {
    return &r->known.items[node->operand[k]];
}

static smg_size number_of(const rewriter *r, int64_t value) {
    return smg_size_const(r->g->sizes, value);
}

void smg_known_carry(const smg_affine_scope *scope, const smg_affine_value *from, int d, smg_affine_value *io, int to) {
    const smg_affine_cut *cut = smg_affine_cut_of(from, d);
    io->known = io->known && smg_affine_put(scope->sizes, &io->form, to, smg_affine_by(&from->form, d));
    if (cut != NULL) smg_affine_cut_to(scope, io, to, cut->first, cut->last);
}

/* io += by * index */
static void put(const rewriter *r, smg_affine_value *io, int index, smg_size by) {
    io->known = io->known && smg_affine_put(r->g->sizes, &io->form, index, by);
}

/* Known at all positions, and the same at each: what axes then add to. */
static smg_affine_value starting(smg_size begin) {
    smg_affine_value v = smg_affine_unknown;
    v.known = begin >= 0;
    v.form.begin = begin;
    return v;
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
static smg_size step_of(const rewriter *r, const smg_node *a, const smg_affine_value *v, const axes *w, int from,
                        int to) {
    smg_size by = smg_affine_by(&v->form, w->at[to - 1]), all = by;
    for (int i = to - 1; i >= from; i--) {
        int d = w->at[i];
        if (smg_affine_cut_of(v, d) != NULL || smg_affine_by(&v->form, d) != all) return SMG_SIZE_NONE;
        all = smg_size_mul(r->g->sizes, all, a->dims[d]);
    }
    return by;
}

static smg_affine_value of_reshape(const rewriter *r, const smg_node *node, const smg_node *a,
                                   const smg_affine_value *from) {
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value f = starting(from->form.begin);
    axes v = long_axes(r, node), w = long_axes(r, a);
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] == number_of(r, 1) && smg_affine_cut_of(from, d) != NULL) return smg_affine_unknown;
    for (int i = 0, k = 0, i_end, k_end; i < v.count || k < w.count; i = i_end, k = k_end) {
        if (!next_group(r, node, &v, i, a, &w, k, &i_end, &k_end)) return smg_affine_unknown;
        if (i_end == i + 1 && k_end == k + 1) {
            smg_known_carry(&scope, from, w.at[k], &f, v.at[i]);
            continue;
        }
        smg_size by = step_of(r, a, from, &w, k, k_end);
        for (int at = i_end - 1; at >= i; at--) {
            put(r, &f, v.at[at], by);
            by = smg_size_mul(r->g->sizes, by, node->dims[v.at[at]]);
        }
    }
    return f;
}

/* ---- slices, borders ---------------------------------------------------------------------------------- */

/* Of an axis of the operand: begin + step * i for 0 <= i < count. */
typedef struct places {
    int axis;
    smg_size begin, step, count;
} places;

/* All of them lie where the operand is known. */
static bool inside(const smg_affine_scope *scope, const smg_affine_value *from, const places *p) {
    smg_sizes *s = scope->sizes;
    smg_size first, last, end = smg_size_sub(s, p->count, smg_size_const(s, 1));
    end = smg_size_add(s, p->begin, smg_size_mul(s, p->step, end));
    smg_affine_span(scope, from, p->axis, &first, &last);
    for (int i = 0; i < 2; i++) {
        smg_size at = i == 0 ? p->begin : end;
        if (!smg_affine_at_most(s, first, at, 0) || !smg_affine_at_most(s, at, last, 0)) return false;
    }
    return true;
}

/* Where those at step 1 lie inside of what the operand knows. */
static void cut_along(const smg_affine_scope *scope, const smg_affine_value *from, const smg_affine_scope *of,
                      const places *p, smg_affine_value *io) {
    smg_sizes *s = scope->sizes;
    smg_size first, last;
    smg_affine_span(of, from, p->axis, &first, &last);
    smg_affine_cut_to(scope, io, p->axis, smg_size_sub(s, first, p->begin), smg_size_sub(s, last, p->begin));
}

static smg_affine_value of_slice(const rewriter *r, const smg_node *node, const smg_node *a,
                                 const smg_affine_value *from) {
    smg_sizes *s = r->g->sizes;
    smg_affine_scope scope = smg_known_scope(r, node), of = smg_known_scope(r, a);
    places p = {node->axis, node->begin, number_of(r, node->step), node->dims[node->axis]};
    smg_size by = smg_affine_by(&from->form, p.axis);
    smg_affine_value f = starting(smg_size_add(s, from->form.begin, smg_size_mul(s, by, p.begin)));
    for (int d = 0; d < node->rank; d++)
        if (d != p.axis) smg_known_carry(&scope, from, d, &f, d);
    put(r, &f, p.axis, smg_size_mul(s, by, p.step));
    if (smg_affine_cut_of(from, p.axis) == NULL || inside(&of, from, &p)) return f;
    if (node->step != 1) return smg_affine_unknown;
    cut_along(&scope, from, &of, &p, &f);
    return f;
}

static smg_affine_value of_window(const rewriter *r, const smg_node *node, const smg_node *a,
                                  const smg_affine_value *from) {
    smg_sizes *s = r->g->sizes;
    smg_affine_scope scope = smg_known_scope(r, node), of = smg_known_scope(r, a);
    places p = {node->axis, node->begin, number_of(r, node->step), node->dims[node->axis]}, last = p;
    smg_size by = smg_affine_by(&from->form, p.axis), dilation = number_of(r, node->dilation);
    smg_affine_value f = starting(smg_size_add(s, from->form.begin, smg_size_mul(s, by, p.begin)));
    for (int d = 0; d < a->rank; d++)
        if (d != p.axis) smg_known_carry(&scope, from, d, &f, d > p.axis ? d + 1 : d);
    put(r, &f, p.axis, smg_size_mul(s, by, p.step));
    put(r, &f, p.axis + 1, smg_size_mul(s, by, dilation));
    smg_size taps = smg_size_mul(s, dilation, smg_size_sub(s, node->dims[p.axis + 1], number_of(r, 1)));
    last.begin = smg_size_add(s, p.begin, taps);
    if (inside(&of, from, &p) && inside(&of, from, &last)) return f;
    if (node->step != 1 || taps != SMG_SIZE_ZERO) return smg_affine_unknown;
    cut_along(&scope, from, &of, &p, &f);
    return f;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static smg_affine_value of_broadcast(const rewriter *r, const smg_node *node, const smg_node *a,
                                     const smg_affine_value *from) {
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value f = starting(from->form.begin);
    for (int d = 0; d < a->rank; d++) {
        int to = d + node->rank - a->rank;
        if (a->dims[d] == node->dims[to])
            smg_known_carry(&scope, from, d, &f, to);
        else if (smg_affine_cut_of(from, d) != NULL)
            return smg_affine_unknown;
    }
    return f;
}

static smg_affine_value of_transpose(const rewriter *r, const smg_node *node, const smg_affine_value *from) {
    smg_affine_scope scope = smg_known_scope(r, node);
    smg_affine_value f = starting(from->form.begin);
    for (int d = 0; d < node->rank; d++) smg_known_carry(&scope, from, node->perm[d], &f, d);
    return f;
}

smg_affine_value smg_known_view(const rewriter *r, const smg_node *node) {
    const smg_node *a = smg_rewriter_operand(r, node, 0);
    const smg_affine_value *from = smg_known_operand(r, node, 0);
    smg_view_kind kind = smg_op_view(node->op);
    smg_affine_value f = smg_affine_unknown, outside;
    if (from->known && kind == SMG_VIEW_RESHAPE) f = of_reshape(r, node, a, from);
    if (from->known && kind == SMG_VIEW_BROADCAST) f = of_broadcast(r, node, a, from);
    if (from->known && kind == SMG_VIEW_SLICE) f = of_slice(r, node, a, from);
    if (from->known && kind == SMG_VIEW_WINDOW) f = of_window(r, node, a, from);
    if (from->known && kind == SMG_VIEW_TRANSPOSE) f = of_transpose(r, node, from);
    f.range = from->range;
    if (kind != SMG_VIEW_WINDOW) return f;
    outside = smg_affine_of_number(r->g->sizes, smg_type_kind(node->type), node->value);
    f.range = smg_affine_united(r->g->sizes, from->range, outside.range);
    return f;
}
