/* What real files are full of and kernels must not care about: borders, windows, concatenations, gathers along
 * any axis, scans, masks that compare two positions, rows with nothing valid, parts of an axis that meet, reshapes that cut axes unevenly. */
#include "random_internal.h"

#include <math.h>
#include <stdio.h>

static void size_text(int64_t value, char out[24]) {
    snprintf(out, 24, value < 0 ? "0-%lld" : "%lld", (long long)(value < 0 ? -value : value));
}

static void extent_text(extent e, char out[128]) {
    item one = {.rank = 1, .dim = {e}};
    random_dims_text(&one, out);
}

static void pad(maker *m, item *a) {
    item r = *a;
    char before[24], after[24];
    if (a->rank == 0) return;
    int axis = random_draw(m, a->rank);
    if (!random_is_static(a->dim[axis])) return;
    int64_t first = random_draw(m, 5) - 1, last = random_draw(m, 5) - 1;
    double fill = random_draw(m, 2) ? 0 : -1.5;
    r.dim[axis].k += first + last;
    if (r.dim[axis].k < 1 || a->dim[axis].k + (first < 0 ? first : 0) < 1) return;
    r.low = fmin(r.low, fill);
    r.high = fmax(r.high, fill);
    if (!random_tame(m, &r)) return;
    size_text(first, before);
    size_text(last, after);
    r.v = smg_graph_pad(m->g, a->v, axis, before, after, fill);
    random_keep_view(m, a, r);
}

static void window(maker *m, item *a) {
    item r = *a;
    char begin[24], count[128];
    if (a->rank == 0 || a->rank == RANK) return;
    int axis = random_draw(m, a->rank), taps = 2 + random_draw(m, 3);
    int step = 1 + random_draw(m, 2), dilation = random_draw(m, 3) ? 1 : random_draw(m, 2) ? 2 : -1;
    double fill = random_draw(m, 2) ? 0 : 2;
    for (int d = a->rank; d > axis + 1; d--) r.dim[d] = a->dim[d - 1];
    r.dim[axis + 1] = (extent){taps, 0, 0};
    r.rank++;
    r.low = fmin(r.low, fill);
    r.high = fmax(r.high, fill);
    if (!random_tame(m, &r)) return;
    size_text(random_draw(m, 4) - 2, begin);
    extent_text(r.dim[axis], count);
    char tap_text[24];
    size_text(taps, tap_text);
    r.v = smg_graph_window(m->g, a->v, axis, begin, count, step, tap_text, dilation, fill);
    random_keep_view(m, a, r);
}

static bool joins(const item *a, const item *b, int axis) {
    if (a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++) {
        bool same = random_same(a->dim[d], b->dim[d]);
        if (d == axis) same = a->dim[d].s == b->dim[d].s && a->dim[d].t == b->dim[d].t;
        if (!same) return false;
    }
    return true;
}

static void concat(maker *m, item *a) {
    if (a->rank == 0) return;
    int axis = random_draw(m, a->rank);
    item *b = a;
    for (int i = 0; i < 10 && (b == a || !joins(a, b, axis)); i++) b = random_pick(m);
    if (!joins(a, b, axis)) b = a;
    item r = *a;
    r.used = r.view = r.moved = false;
    r.dim[axis].k += b->dim[axis].k;
    r.low = fmin(a->low, b->low);
    r.high = fmax(a->high, b->high);
    r.error = fmax(a->error, b->error);
    if (!random_tame(m, &r)) return;
    a->used = b->used = true;
    r.v = smg_graph_concat(m->g, 2, (smg_value[]){a->v, b->v}, axis);
    random_keep(m, r);
}

static void take(maker *m, item *a) {
    item r = *a;
    char dims[128], name[16];
    if (a->rank == 0) return;
    int axis = random_draw(m, a->rank);
    if (!random_is_static(a->dim[axis]) || a->dim[axis].k < 2) return;
    if (random_draw(m, 2)) { /* a shift that stays inside: positions only */
        int64_t n = a->dim[axis].k;
        item index = {.rank = 1, .dim = {{n - 1, 0, 0}}};
        random_dims_text(&index, dims);
        smg_value at = smg_graph_iota(m->g, dims, 0), back = smg_graph_number(m->g, "i32", (double)(n - 1));
        at = random_draw(m, 2) ? smg_graph_map(m->g, "sub", 2, (smg_value[]){back, at})
                               : smg_graph_map(m->g, "add", 2, (smg_value[]){at, smg_graph_number(m->g, "i32", 1)});
        r.dim[axis].k = n - 1;
        if (!random_tame(m, &r)) return;
        r.v = smg_graph_take(m->g, a->v, at, axis);
    } else {
        r.dim[axis] = (extent){1 + random_draw(m, 6), 0, 0};
        if (!random_tame(m, &r)) return;
        extent_text(r.dim[axis], dims);
        snprintf(name, sizeof(name), "ids%d", m->count);
        r.v = smg_graph_take(m->g, a->v, smg_graph_input(m->g, name, "i32", dims), axis);
    }
    random_keep_view(m, a, r);
}

/* Two axes as one, and taken apart again by positions: rows i * n + j, in either order, or one of them fixed. */
static void taken_apart(maker *m, item *a) {
    item r = *a, flat = *a;
    char dims[128], text[128];
    if (a->rank < 2 || !random_tame(m, a)) return;
    extent x = a->dim[0], y = a->dim[1];
    flat.dim[1] = (extent){x.k * y.k, x.s + y.s, x.t + y.t};
    for (int d = 1; d < a->rank; d++) flat.dim[d - 1] = flat.dim[d];
    flat.rank--;
    random_dims_text(&flat, text);
    bool turned = random_draw(m, 2), last = random_draw(m, 3) == 0;
    if (last) r.dim[0] = (extent){1, 0, 0};
    if (turned) {
        extent first = r.dim[0];
        r.dim[0] = r.dim[1];
        r.dim[1] = first;
    }
    item place = {.rank = 2, .dim = {r.dim[0], r.dim[1]}};
    for (int d = 0; d < 2; d++) place.dim[turned ? 1 - d : d] = (extent){1, 0, 0};
    place.dim[turned] = r.dim[turned];
    random_dims_text(&place, dims);
    smg_value row = smg_graph_iota(m->g, dims, turned);
    place.dim[turned] = (extent){1, 0, 0};
    place.dim[!turned] = y;
    random_dims_text(&place, dims);
    smg_value column = smg_graph_iota(m->g, dims, !turned);
    smg_value by = smg_graph_size_typed(m->g, SMG_TYPE_I32, smg_graph_node_of(m->g, a->v)->dims[1]);
    if (last) { /* counted from the end */
        smg_value back = smg_graph_map(m->g, "neg", 1, &by);
        row = smg_graph_map(m->g, "add", 2, (smg_value[]){row, back});
    } else {
        row = smg_graph_map(m->g, "mul", 2, (smg_value[]){row, by});
    }
    smg_value index = smg_graph_map(m->g, "add", 2, (smg_value[]){row, column});
    r.v = smg_graph_gather(m->g, smg_graph_reshape(m->g, a->v, text), index);
    random_keep_view(m, a, r);
}

static void cumsum(maker *m, item *a) {
    item r = *a;
    if (a->rank == 0 || a->rank == RANK) return;
    int axis = random_draw(m, a->rank);
    double n = (double)random_value_of(m, a->dim[axis]);
    r.used = r.view = r.moved = false;
    r.error = (r.error + random_epsilon(m) * 4 * random_magnitude(a)) * n;
    if (n > 40 || r.error / n > random_max_error(m) || m->count >= POOL - 2) return;
    r.low = fmin(0, a->low * n);
    r.high = fmax(0, a->high * n);
    a->used = true;
    r.v = smg_graph_cumsum(m->g, a->v, axis, random_draw(m, 2), random_draw(m, 2));
    random_scale(m, &r, 1.0 / n);
    random_keep(m, r);
}

/* The same elements in other dims: boundaries of the two need not meet. */
static void uneven(maker *m, item *a) {
    item r = *a;
    char dims[128];
    if (a->rank < 2) return;
    int axis = random_draw(m, a->rank - 1);
    extent x = a->dim[axis], y = a->dim[axis + 1];
    if (!random_is_static(x) || !random_is_static(y)) return;
    int64_t whole = x.k * y.k, outer = 1;
    for (int i = 0; i < 20 && (outer == 1 || outer == x.k); i++) {
        int64_t by = 2 + random_draw(m, 15);
        if (whole % by == 0) outer = by;
    }
    r.dim[axis].k = outer;
    r.dim[axis + 1].k = whole / outer;
    if (!random_tame(m, &r)) return;
    random_dims_text(&r, dims);
    r.v = smg_graph_reshape(m->g, a->v, dims);
    random_keep_view(m, a, r);
}

static smg_value position(maker *m, const item *a, int axis) {
    item like = *a;
    char dims[128];
    for (int d = 0; d < a->rank; d++) {
        if (d != axis) like.dim[d] = (extent){1, 0, 0};
    }
    random_dims_text(&like, dims);
    return smg_graph_iota(m->g, dims, axis);
}

/* Softmax along the last axis under a predicate over two positions, some rows with nothing valid: 0 there. */
static void guarded_rows(maker *m, item *a) {
    item r = *a;
    if (a->rank < 2 || !random_tame(m, a) || m->count >= POOL - 2 || random_magnitude(a) > 20) return;
    extent last = a->dim[a->rank - 1];
    if (random_is_static(last) && last.k == 1) return; /* x - x of an infinite x: shader compilers say 0 */
    smg_graph *g = m->g;
    smg_value row = position(m, a, a->rank - 2), column = position(m, a, a->rank - 1);
    smg_value moved = smg_graph_map(g, "sub", 2, (smg_value[]){row, smg_graph_number(g, "i32", random_draw(m, 3))});
    smg_value keep = smg_graph_map(g, random_draw(m, 2) ? "le" : "lt", 2, (smg_value[]){column, moved});
    smg_value none = smg_graph_number(g, "f32", -INFINITY);
    smg_value x = smg_graph_map(g, "select", 3, (smg_value[]){keep, a->v, none});
    smg_value top = smg_graph_reduce(g, "reduce_max", x, -1, true);
    smg_value e = smg_graph_map(g, "sub", 2, (smg_value[]){x, top});
    e = smg_graph_map(g, "exp", 1, &e);
    e = smg_graph_map(g, "div", 2, (smg_value[]){e, smg_graph_reduce(g, "sum", e, -1, true)});
    smg_value bad = smg_graph_map(g, "isnan", 1, &e);
    r.used = r.view = r.moved = false;
    r.low = 0;
    r.high = 1;
    r.error = 2 * a->error + random_epsilon(m) * (8 + 2 * random_magnitude(a));
    a->used = true;
    r.v = smg_graph_map(g, "select", 3, (smg_value[]){bad, smg_graph_number(g, "f32", 0), e});
    random_keep(m, r);
}

static smg_value part_of(maker *m, const item *a, int axis, int64_t size, int part) {
    char begin[24], count[24];
    size_text(size * part, begin);
    size_text(size, count);
    return smg_graph_slice(m->g, a->v, axis, begin, count, 1);
}

/* One part of an axis gated by another. */
static void gated(maker *m, item *a, int axis, int parts) {
    item r = *a;
    int64_t size = a->dim[axis].k / parts;
    r.used = r.view = r.moved = false;
    r.dim[axis].k = size;
    r.low = fmin(a->low, 0);
    r.high = fmax(a->high, 0);
    r.error = 1.2 * a->error * (1 + random_magnitude(a));
    if (!random_tame(m, &r)) return;
    smg_value first = part_of(m, a, axis, size, random_draw(m, parts));
    smg_value gate = part_of(m, a, axis, size, random_draw(m, parts));
    gate = smg_graph_map(m->g, "sigmoid", 1, &gate);
    a->used = true;
    r.v = smg_graph_map(m->g, "mul", 2, (smg_value[]){first, gate});
    random_keep(m, r);
}

/* What is added to its own halves changed over, or to itself backwards. */
static void rotated(maker *m, item *a, int axis, bool backwards) {
    item r = *a;
    int64_t n = a->dim[axis].k;
    char begin[24], count[24];
    r.used = r.view = r.moved = false;
    r.low = a->low - random_magnitude(a);
    r.high = a->high + random_magnitude(a);
    r.error = 2 * a->error;
    if (!random_tame(m, &r)) return;
    smg_value other;
    if (backwards) {
        size_text(n - 1, begin);
        size_text(n, count);
        other = smg_graph_slice(m->g, a->v, axis, begin, count, -1);
    } else {
        smg_value low = part_of(m, a, axis, n / 2, 0), high = part_of(m, a, axis, n / 2, 1);
        high = smg_graph_map(m->g, "neg", 1, &high);
        other = smg_graph_concat(m->g, 2, (smg_value[]){high, low}, axis);
    }
    a->used = true;
    r.v = smg_graph_map(m->g, "add", 2, (smg_value[]){a->v, other});
    random_keep(m, r);
}

/* Equal parts of an axis meet. */
static void parts(maker *m, item *a) {
    if (a->rank == 0) return;
    int axis = random_draw(m, a->rank), count = 2 + random_draw(m, 3);
    if (!random_is_static(a->dim[axis])) return;
    if (random_draw(m, 2) == 0 && a->dim[axis].k % count == 0)
        gated(m, a, axis, count);
    else if (a->dim[axis].k % 2 == 0 || a->dim[axis].k < 6)
        rotated(m, a, axis, a->dim[axis].k % 2 != 0 || random_draw(m, 3) == 0);
}

void random_view(maker *m) {
    switch (random_draw(m, 13)) {
    case 0: pad(m, random_pick(m)); break;
    case 1:
    case 2: window(m, random_pick(m)); break;
    case 3:
    case 4: concat(m, random_pick(m)); break;
    case 5: take(m, random_pick(m)); break;
    case 6: cumsum(m, random_pick(m)); break;
    case 7: uneven(m, random_pick(m)); break;
    case 8: taken_apart(m, random_pick(m)); break;
    case 9: guarded_rows(m, random_pick(m)); break;
    default: parts(m, random_pick(m)); break;
    }
}
