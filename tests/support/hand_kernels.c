#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "support/hand_kernels.h"

/* ---- building kernels ----------------------------------------------------------------------------- */

smg_kernel *hand_kernel(smg_arena *arena, const char *name) {
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    k->name = name;
    k->arena = arena;
    assert_int_equal(smg_sizes_create(arena, &k->sizes), SMG_OK);
    assert_int_equal(smg_exprs_create(arena, &k->exprs), SMG_OK);
    return k;
}

smg_kernel *hand_dealt(smg_kernel *k, hand_lanes l, int depth, int row_axis, int row_run, bool numbered) {
    smg_lane_grid grid = {.rows = l.rows,
                          .col_axis = -1,
                          .cols = l.cols,
                          .depth = depth,
                          .vec = l.vec,
                          .row_run = row_run,
                          .subgroup = l.subgroup,
                          .row_axis = row_axis,
                          .numbered = numbered};
    assert_int_equal(smg_kernel_distribute(k, &grid), SMG_OK);
    return k;
}

smg_kernel *hand_distributed(smg_kernel *k, hand_lanes l, int depth, int row_axis) {
    return hand_dealt(k, l, depth, row_axis, 1, false);
}

smg_size hand_size_of(smg_kernel *k, const char *text) {
    smg_size size;
    assert_int_equal(smg_size_parse(k->sizes, &text, &size), SMG_OK);
    return size;
}

int hand_axis(smg_kernel *k, const char *name, const char *extent, int64_t tile, bool grid) {
    smg_kaxis *a = SMG_ARRAY_PUSH(k->arena, &k->axes);
    *a = (smg_kaxis){.name = name, .extent = hand_size_of(k, extent), .tile = tile, .grid = grid};
    int number = k->axes.count - 1;
    if (grid) *SMG_ARRAY_PUSH(k->arena, &k->grid) = number;
    return number;
}

int hand_tile(smg_kernel *k, const char *name, smg_residence residence, int pad, int count, ...) {
    smg_tile *t = SMG_ARRAY_PUSH(k->arena, &k->tiles);
    *t = (smg_tile){.name = name, .residence = residence, .axis_count = count};
    t->pad = pad;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) t->axis[i] = va_arg(list, int);
    va_end(list);
    return k->tiles.count - 1;
}

int hand_buffer(smg_kernel *k, const char *name, smg_type type, const char *elements, bool written) {
    smg_kbuffer *b = SMG_ARRAY_PUSH(k->arena, &k->buffers);
    *b = (smg_kbuffer){.name = name, .type = type, .elements = hand_size_of(k, elements), .written = written};
    return k->buffers.count - 1;
}

int hand_access(smg_kernel *k, int to, int count, ...) {
    smg_access *a = SMG_ARRAY_PUSH(k->arena, &k->accesses);
    *a = (smg_access){.buffer = to, .offset = hand_size_of(k, "0"), .axis_count = count};
    a->index = SMG_EXPR_NONE;
    a->index_stride = a->index_limit = SMG_SIZE_NONE;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) {
        a->axis[i] = va_arg(list, int);
        a->stride[i] = hand_size_of(k, va_arg(list, const char *));
    }
    va_end(list);
    return k->accesses.count - 1;
}

smg_expr hand_leaf(smg_kernel *k, smg_kleaf_kind what, smg_kind kind, int index) {
    smg_kleaf *l = SMG_ARRAY_PUSH(k->arena, &k->leaves);
    *l = (smg_kleaf){.what = what, .kind = kind, .index = index, .size = SMG_SIZE_NONE};
    return smg_expr_leaf(k->exprs, kind, k->leaves.count - 1);
}

smg_expr hand_load(smg_kernel *k, int from) {
    return hand_leaf(k, SMG_KLEAF_LOAD, smg_type_kind(k->buffers.items[k->accesses.items[from].buffer].type), from);
}

smg_expr hand_of_tile(smg_kernel *k, int t) {
    return hand_leaf(k, SMG_KLEAF_TILE, smg_tile_kind(&k->tiles.items[t]), t);
}

smg_expr hand_make2(smg_kernel *k, smg_prim prim, smg_expr a, smg_expr b) {
    return smg_expr_make(k->exprs, prim, a, b, SMG_EXPR_NONE);
}

smg_expr hand_make1(smg_kernel *k, smg_prim prim, smg_expr a) {
    return hand_make2(k, prim, a, SMG_EXPR_NONE);
}

smg_expr hand_number(smg_kernel *k, double value) {
    return smg_expr_const(k->exprs, SMG_KIND_FLOAT, value);
}

smg_instr *hand_instr(smg_kernel *k, smg_instr_kind kind, int dst, smg_expr expr, int count, ...) {
    smg_instr *i = SMG_ARRAY_PUSH(k->arena, &k->code);
    *i = (smg_instr){.kind = kind, .dst = dst, .a = -1, .b = -1, .layout = -1, .expr = expr, .axis_count = count};
    va_list list;
    va_start(list, count);
    for (int n = 0; n < count; n++) i->axes[n] = va_arg(list, int);
    va_end(list);
    return i;
}

void hand_plain(smg_kernel *k, smg_instr_kind kind) {
    hand_instr(k, kind, -1, SMG_EXPR_NONE, 0);
}

/* ---- the kernels ---------------------------------------------------------------------------------- */

smg_kernel *hand_elementwise(smg_arena *arena, hand_lanes l, smg_type type) {
    smg_kernel *k = hand_kernel(arena, "elementwise");
    int m = hand_axis(k, "m", "s+1", 2 * l.rows + 1, true), n = hand_axis(k, "n", "45", 24, true);
    int x = hand_buffer(k, "x", type, "45*s+45", false), y = hand_buffer(k, "y.out", SMG_TYPE_F32, "45*s+45", true);
    int from = hand_access(k, x, 2, m, "45", n, "1"), to = hand_access(k, y, 2, m, "45", n, "1");
    int t = hand_tile(k, "value", SMG_REGISTER, 0, 2, m, n);
    smg_expr v = hand_load(k, from);
    smg_expr cube = hand_make2(k, SMG_PRIM_POW, v, hand_number(k, 3.0));
    smg_expr below = hand_make2(k, SMG_PRIM_ADD, hand_number(k, 1.0), hand_make2(k, SMG_PRIM_MUL, cube, cube));
    smg_expr place = hand_leaf(k, SMG_KLEAF_IOTA, SMG_KIND_INT, to);
    smg_expr seven = smg_expr_const(k->exprs, SMG_KIND_INT, 7.0);
    smg_expr rest = hand_make1(k, SMG_PRIM_TO_FLOAT, hand_make2(k, SMG_PRIM_MOD, place, seven));
    smg_expr value = hand_make2(k, SMG_PRIM_MUL, v, hand_make1(k, SMG_PRIM_ERF, v));
    value = hand_make2(k, SMG_PRIM_ADD, value, hand_make2(k, SMG_PRIM_DIV, hand_make1(k, SMG_PRIM_TANH, v), below));
    hand_instr(k, SMG_I_SET, t, hand_make2(k, SMG_PRIM_ADD, value, rest), 2, m, n)->note = "all of it \\";
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, t), 2, m, n)->a = to;
    return hand_distributed(k, l, 1, m);
}

smg_kernel *hand_row_loop(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "row_loop");
    int m = hand_axis(k, "m", "s", 2 * l.rows, true), n = hand_axis(k, "n", "3*s+2", 2 * l.cols * l.vec, false);
    int x = hand_buffer(k, "x", SMG_TYPE_F32, "3*s*s+2*s", false);
    int y = hand_buffer(k, "y", SMG_TYPE_F32, "3*s*s+2*s", true);
    int from = hand_access(k, x, 2, m, "3*s+2", n, "1"), to = hand_access(k, y, 2, m, "3*s+2", n, "1");
    int top = hand_tile(k, "top", SMG_REGISTER, 0, 1, m), old = hand_tile(k, "old", SMG_REGISTER, 0, 1, m);
    int sum = hand_tile(k, "sum", SMG_REGISTER, 0, 1, m), value = hand_tile(k, "x", SMG_REGISTER, 0, 2, m, n);
    smg_expr exp_x =
        hand_make1(k, SMG_PRIM_EXP, hand_make2(k, SMG_PRIM_SUB, hand_of_tile(k, value), hand_of_tile(k, top)));
    smg_expr scale =
        hand_make1(k, SMG_PRIM_EXP, hand_make2(k, SMG_PRIM_SUB, hand_of_tile(k, old), hand_of_tile(k, top)));
    hand_instr(k, SMG_I_SET, top, hand_number(k, -(double)INFINITY), 0);
    hand_instr(k, SMG_I_SET, sum, hand_number(k, 0.0), 0);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, n);
    hand_instr(k, SMG_I_SET, value, hand_load(k, from), 0);
    hand_instr(k, SMG_I_SET, old, hand_of_tile(k, top), 0);
    smg_instr *reduce = hand_instr(k, SMG_I_REDUCE, top, hand_of_tile(k, value), 1, n);
    reduce->combine = SMG_COMBINE_MAX;
    reduce->accumulate = true;
    hand_instr(k, SMG_I_SET, sum, hand_make2(k, SMG_PRIM_MUL, hand_of_tile(k, sum), scale), 0)->note = "update";
    reduce = hand_instr(k, SMG_I_REDUCE, sum, exp_x, 1, n);
    reduce->combine = SMG_COMBINE_ADD;
    reduce->accumulate = true;
    hand_plain(k, SMG_I_END);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, n);
    hand_instr(k, SMG_I_SET, value, hand_load(k, from), 0);
    hand_instr(k, SMG_I_STORE, -1, hand_make2(k, SMG_PRIM_DIV, exp_x, hand_of_tile(k, sum)), 2, m, n)->a = to;
    hand_plain(k, SMG_I_END);
    return hand_distributed(k, l, 1, m);
}

smg_kernel *hand_product(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "product");
    int m = hand_axis(k, "m", "2*s+1", 4 * l.rows, true), n = hand_axis(k, "n", "50", 2 * l.cols * l.vec, true);
    int d = hand_axis(k, "k", "s+30", 12, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, "(2*s+1)*(s+30)", false);
    int b = hand_buffer(k, "b", SMG_TYPE_F32, "50*s+1500", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "100*s+50", true);
    int from_a = hand_access(k, a, 2, m, "s+30", d, "1"), from_b = hand_access(k, b, 2, d, "50", n, "1");
    int to = hand_access(k, c, 2, m, "50", n, "1");
    int ta = hand_tile(k, "a", SMG_SHARED, 1, 2, m, d), tb = hand_tile(k, "b", SMG_SHARED, 4, 2, d, n);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n), ts = hand_tile(k, "again", SMG_SHARED, 0, 2, n, m);
    hand_instr(k, SMG_I_SET, tc, hand_number(k, 0.0), 0);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    hand_instr(k, SMG_I_STAGE, ta, hand_load(k, from_a), 2, m, d);
    hand_instr(k, SMG_I_STAGE, tb, hand_load(k, from_b), 2, d, n);
    hand_plain(k, SMG_I_BARRIER);
    smg_instr *mma = hand_instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    hand_plain(k, SMG_I_BARRIER);
    hand_plain(k, SMG_I_END);
    hand_instr(k, SMG_I_SPILL, ts, SMG_EXPR_NONE, 0)->a = tc;
    hand_plain(k, SMG_I_BARRIER);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, ts), 2, m, n)->a = to;
    return hand_distributed(k, l, 1, m);
}

void hand_clamp(smg_kernel *k, int tile_, int x) {
    k->tiles.items[tile_].clamped |= UINT64_C(1) << x;
}

smg_kernel *hand_clamped_product(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_product(arena, l);
    int m = 0, n = 1, d = 2, ta = 0, tb = 1;
    k->tiles.items[ta].axis[0] = d;
    k->tiles.items[ta].axis[1] = m;
    k->tiles.items[ta].pad = 4;
    hand_clamp(k, ta, m);
    hand_clamp(k, tb, n);
    return hand_dealt(k, l, 1, m, 4, false);
}

void hand_multiply(smg_kernel *k, int sums, int left, int right, int x) {
    hand_instr(k, SMG_I_SET, sums, hand_number(k, 0.0), 0);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, x);
    smg_instr *mma = hand_instr(k, SMG_I_MMA, sums, SMG_EXPR_NONE, 1, x);
    mma->a = left;
    mma->b = right;
    hand_plain(k, SMG_I_END);
}

smg_kernel *hand_viewed_product(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "viewed_product");
    int m = hand_axis(k, "m", "2*s+1", 3 * l.rows, true), g = hand_axis(k, "g", "2", 2, false);
    int n = hand_axis(k, "n", "16", 16, false), d = hand_axis(k, "k", "36", 4, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, "72*s+36", false), b = hand_buffer(k, "b", SMG_TYPE_F32, "1152", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "64*s+32", true);
    int from_a = hand_access(k, a, 2, m, "36", d, "1"), from_b = hand_access(k, b, 3, d, "32", g, "16", n, "1");
    int to = hand_access(k, c, 3, m, "32", g, "16", n, "1");
    int ta = hand_tile(k, "a", SMG_VIEW, 0, 2, m, d), tb = hand_tile(k, "b", SMG_VIEW, 0, 3, d, g, n);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 3, m, g, n);
    k->tiles.items[ta].access = from_a;
    k->tiles.items[tb].access = from_b;
    hand_multiply(k, tc, ta, tb, d);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 3, m, g, n)->a = to;
    return hand_dealt(k, l, 1, m, 1, l.subgroup > 1 && l.cols == l.subgroup && l.vec == 1);
}

/* c[m,n] += sum k: a[m,k] b[k,n] with a in registers; sizes as text. */
typedef struct own_sizes {
    const char *n, *k, *a, *b, *c;
    const char *stride_k, *stride_n; /* of b */
} own_sizes;

static smg_kernel *own_product(smg_arena *arena, const char *name, hand_lanes l, const own_sizes *of) {
    hand_lanes rows = {l.rows * l.cols, 1, 1, l.subgroup};
    smg_kernel *k = hand_kernel(arena, name);
    int m = hand_axis(k, "m", "2*s+1", 2 * rows.rows, true), n = hand_axis(k, "n", of->n, 8, true);
    int d = hand_axis(k, "k", of->k, 4, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, of->a, false), b = hand_buffer(k, "b", SMG_TYPE_F32, of->b, false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, of->c, true);
    int from_a = hand_access(k, a, 2, m, of->k, d, "1"),
        from_b = hand_access(k, b, 2, d, of->stride_k, n, of->stride_n);
    int to = hand_access(k, c, 2, m, of->n, n, "1");
    int ta = hand_tile(k, "a", SMG_REGISTER, 0, 2, m, d), tb = hand_tile(k, "b", SMG_VIEW, 0, 2, d, n);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    k->tiles.items[tb].access = from_b;
    hand_instr(k, SMG_I_SET, tc, hand_number(k, 0.0), 0);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    hand_instr(k, SMG_I_SET, ta, hand_load(k, from_a), 0);
    smg_instr *mma = hand_instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    hand_plain(k, SMG_I_END);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 2, m, n)->a = to;
    return hand_dealt(k, rows, 1, m, 1, l.subgroup > 1 && rows.rows % l.subgroup == 0);
}

smg_kernel *hand_own_product(smg_arena *arena, hand_lanes l) {
    static const own_sizes sizes = {"21", "3*s+1", "(2*s+1)*(3*s+1)", "63*s+21", "42*s+21", "21", "1"};
    return own_product(arena, "own_product", l, &sizes);
}

static smg_kernel *written_out(smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].unroll = 4;
    return k;
}

smg_kernel *hand_own_columns(smg_arena *arena, hand_lanes l) {
    static const own_sizes sizes = {"24", "3*s+1", "(2*s+1)*(3*s+1)", "72*s+24", "48*s+24", "24", "1"};
    return written_out(own_product(arena, "own_columns", l, &sizes));
}

smg_kernel *hand_own_turned(smg_arena *arena, hand_lanes l) {
    static const own_sizes sizes = {"21", "12", "24*s+12", "252", "42*s+21", "1", "12"};
    return written_out(own_product(arena, "own_turned", l, &sizes));
}

smg_instr *hand_slices(smg_kernel *k, smg_instr_kind kind, int tile_, smg_expr expr, int x, int d, int ahead) {
    smg_instr *fetch = hand_instr(k, kind, tile_, expr, 2, x, d);
    fetch->a = d;
    fetch->ahead = ahead;
    return fetch;
}

void hand_put_both(smg_kernel *k, int slots, int ahead) {
    int m = 0, n = 1, d = 2, ta = 0, tb = 1, na = 2, nb = 3;
    hand_slices(k, SMG_I_PUT, ta, SMG_EXPR_NONE, m, d, ahead)->a = na;
    hand_slices(k, SMG_I_PUT, tb, SMG_EXPR_NONE, n, d, ahead)->a = nb;
    for (int t = ta; t <= tb && slots > 1; t++) {
        k->tiles.items[t].slots = slots;
        k->tiles.items[t].ring = d;
    }
}

smg_kernel *hand_sliced_product(smg_arena *arena, hand_lanes l, int slots) {
    smg_kernel *k = hand_kernel(arena, slots > 1 ? "ring_product" : "deep_product");
    int m = hand_axis(k, "m", "2*s+1", 2 * l.rows, true), n = hand_axis(k, "n", "50", l.cols * l.vec, true);
    int d = hand_axis(k, "k", "4*s+32", 24 / slots, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, "(2*s+1)*(4*s+32)", false);
    int b = hand_buffer(k, "b", SMG_TYPE_F32, "200*s+1600", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "100*s+50", true);
    int from_a = hand_access(k, a, 2, m, "4*s+32", d, "1"), from_b = hand_access(k, b, 2, n, "4*s+32", d, "1");
    int to = hand_access(k, c, 2, m, "50", n, "1");
    int ta = hand_tile(k, "a", SMG_SHARED, 4, 2, m, d), tb = hand_tile(k, "b", SMG_SHARED, 4, 2, n, d);
    int na = hand_tile(k, "next_a", SMG_STAGING, 0, 2, m, d), nb = hand_tile(k, "next_b", SMG_STAGING, 0, 2, n, d);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    smg_expr va = hand_load(k, from_a), vb = hand_load(k, from_b);
    hand_instr(k, SMG_I_SET, tc, hand_number(k, 0.0), 0);
    hand_slices(k, SMG_I_FETCH, na, va, m, d, 0);
    hand_slices(k, SMG_I_FETCH, nb, vb, n, d, 0);
    if (slots > 1) hand_put_both(k, slots, 0);
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    if (slots == 1) hand_put_both(k, slots, 0);
    hand_plain(k, SMG_I_BARRIER);
    hand_slices(k, SMG_I_FETCH, na, va, m, d, 1);
    hand_slices(k, SMG_I_FETCH, nb, vb, n, d, 1);
    smg_instr *mma = hand_instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    if (slots > 1) hand_put_both(k, slots, 1);
    hand_plain(k, SMG_I_BARRIER);
    hand_plain(k, SMG_I_END);
    hand_instr(k, SMG_I_JOIN, tc, SMG_EXPR_NONE, 1, d);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 2, m, n)->a = to;
    return hand_distributed(k, l, 4, m);
}

smg_kernel *hand_deep_product(smg_arena *arena, hand_lanes l) {
    return hand_sliced_product(arena, l, 1);
}

smg_kernel *hand_ring_of_two(smg_arena *arena, hand_lanes l) {
    return hand_sliced_product(arena, l, 2);
}

smg_kernel *hand_ring_of_three(smg_arena *arena, hand_lanes l) {
    return hand_sliced_product(arena, l, 3);
}

smg_kernel *hand_clamped_slices(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_deep_product(arena, l);
    int m = 0, n = 1, d = 2, ta = 0, tb = 1, na = 2, nb = 3;
    hand_clamp(k, ta, m);
    hand_clamp(k, tb, n);
    hand_clamp(k, na, m);
    hand_clamp(k, na, d);
    hand_clamp(k, nb, n);
    hand_clamp(k, nb, d);
    return k;
}

smg_kernel *hand_strided_of(smg_arena *arena, hand_lanes l, smg_type type, smg_type result) {
    smg_kernel *k = hand_kernel(arena, "strided");
    int m = hand_axis(k, "m", "5", 2 * l.rows, true), n = hand_axis(k, "n", "s+3", 2 * l.cols * 4, true);
    int x = hand_buffer(k, "x", type, "5*s+15", false), v = hand_buffer(k, "w", SMG_TYPE_F32, "s+3", false);
    int y = hand_buffer(k, "y", result, "5*s+15", true);
    int from = hand_access(k, x, 2, m, "s+3", n, "1"), from_w = hand_access(k, v, 1, n, "1");
    int to = hand_access(k, y, 2, m, "s+3", n, "1");
    int t = hand_tile(k, "x", SMG_REGISTER, 0, 2, m, n);
    hand_instr(k, SMG_I_SET, t, hand_load(k, from), 2, m, n);
    hand_instr(k, SMG_I_STORE, -1, hand_make2(k, SMG_PRIM_ADD, hand_of_tile(k, t), hand_load(k, from_w)), 2, m, n)->a =
        to;
    return hand_distributed(k, l, 1, m);
}

smg_kernel *hand_strided(smg_arena *arena, hand_lanes l) {
    return hand_strided_of(arena, l, SMG_TYPE_F32, SMG_TYPE_F32);
}

smg_kernel *hand_strided_f16(smg_arena *arena, hand_lanes l) {
    return hand_strided_of(arena, l, SMG_TYPE_F16, SMG_TYPE_F32);
}

smg_kernel *hand_strided_bf16(smg_arena *arena, hand_lanes l) {
    return hand_strided_of(arena, l, SMG_TYPE_BF16, SMG_TYPE_F32);
}

smg_kernel *hand_gather(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "gather");
    int i = hand_axis(k, "i", "s", 2 * l.rows, true), d = hand_axis(k, "d", "20", 20, false);
    int id = hand_buffer(k, "id", SMG_TYPE_I64, "s", false);
    int table = hand_buffer(k, "table", SMG_TYPE_F32, "100", false),
        y = hand_buffer(k, "y", SMG_TYPE_F32, "20*s", true), bias = hand_buffer(k, "bias", SMG_TYPE_F32, "20", false);
    int ids = hand_access(k, id, 1, i, "1"), rows = hand_access(k, table, 1, d, "1"),
        to = hand_access(k, y, 2, i, "20", d, "1"), from = hand_access(k, bias, 1, d, "1");
    int sum = hand_tile(k, "sum", SMG_REGISTER, 0, 2, i, d);
    k->accesses.items[rows].index = hand_load(k, ids);
    k->accesses.items[rows].index_stride = hand_size_of(k, "20");
    k->accesses.items[rows].index_limit = hand_size_of(k, "5");
    hand_instr(k, SMG_I_SET, sum, hand_make2(k, SMG_PRIM_ADD, hand_load(k, rows), hand_load(k, from)), 0);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, sum), 2, i, d)->a = to;
    return hand_distributed(k, l, 1, i);
}

smg_kernel *hand_columns(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "columns");
    int m = hand_axis(k, "m", "s", l.rows, true), h = hand_axis(k, "h", "3", 4, false);
    int d = hand_axis(k, "d", "min(s,40)", 64, false);
    smg_size_symbol_set_max(k->sizes, 0, 1000);
    int x = hand_buffer(k, "x", SMG_TYPE_F32, "120*s", false), v = hand_buffer(k, "w", SMG_TYPE_F32, "40", false);
    int y = hand_buffer(k, "y", SMG_TYPE_F32, "s", true);
    int from = hand_access(k, x, 3, m, "120", h, "40", d, "1"), from_w = hand_access(k, v, 1, d, "1");
    int to = hand_access(k, y, 1, m, "1");
    int weight = hand_tile(k, "w", SMG_REGISTER, 0, 2, h, d), sum = hand_tile(k, "sum", SMG_REGISTER, 0, 1, m);
    hand_instr(k, SMG_I_SET, weight, hand_load(k, from_w), 0);
    smg_instr *reduce = hand_instr(k, SMG_I_REDUCE, sum,
                                   hand_make2(k, SMG_PRIM_MUL, hand_load(k, from), hand_of_tile(k, weight)), 2, h, d);
    reduce->combine = SMG_COMBINE_ADD;
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, sum), 1, m)->a = to;
    return hand_distributed(k, l, 1, m);
}
