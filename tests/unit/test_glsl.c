/* glsl: small kernels built by hand (elementwise with ragged edges, a row-wise loop with carried maximum and
 * sum, a product through shared memory, a gather, several column axes) in several lane shapes. Each text
 * must compile for subgroups of 8, 32 and none; where there is a device, its results must agree with the
 * interpreter's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "glsl/glsl.h"
#include "lower/lower.h"
#include "spirv/spirv.h"
#if SMG_VULKAN
#include "vulkan/vulkan.h"
#endif

#define MAX_BUFFERS 4

typedef struct fixture {
    smg_context *ctx;
    smg_spirv_compiler *compiler;
    smg_target target; /* the device's, where there is one */
    bool device;
    int ran; /* kernels, on the device */
#if SMG_VULKAN
    smg_vk_device *dev;
#endif
} fixture;

typedef struct lanes {
    int rows, cols, vec, subgroup;
} lanes;

/* ---- building kernels ----------------------------------------------------------------------------- */

static smg_kernel *kernel_new(smg_arena *arena, const char *name) {
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    k->name = name;
    k->arena = arena;
    assert_int_equal(smg_sizes_create(arena, &k->sizes), SMG_OK);
    assert_int_equal(smg_exprs_create(arena, &k->exprs), SMG_OK);
    return k;
}

/* Layouts by rows and columns, for a kernel that is complete. */
static smg_kernel *dealt(smg_kernel *k, lanes l, int depth, int row_axis, int row_run, bool numbered) {
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

static smg_kernel *distributed(smg_kernel *k, lanes l, int depth, int row_axis) {
    return dealt(k, l, depth, row_axis, 1, false);
}

static smg_size size_of(smg_kernel *k, const char *text) {
    smg_size size;
    assert_int_equal(smg_size_parse(k->sizes, &text, &size), SMG_OK);
    return size;
}

static int axis(smg_kernel *k, const char *name, const char *extent, int64_t tile, bool grid) {
    smg_kaxis *a = SMG_ARRAY_PUSH(k->arena, &k->axes);
    *a = (smg_kaxis){.name = name, .extent = size_of(k, extent), .tile = tile, .grid = grid};
    int number = k->axes.count - 1;
    if (grid) *SMG_ARRAY_PUSH(k->arena, &k->grid) = number;
    return number;
}

static int tile(smg_kernel *k, const char *name, smg_residence residence, int pad, int count, ...) {
    smg_tile *t = SMG_ARRAY_PUSH(k->arena, &k->tiles);
    *t = (smg_tile){.name = name, .residence = residence, .axis_count = count};
    t->pad = pad;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) t->axis[i] = va_arg(list, int);
    va_end(list);
    return k->tiles.count - 1;
}

static int buffer(smg_kernel *k, const char *name, smg_type type, const char *elements, bool written) {
    smg_kbuffer *b = SMG_ARRAY_PUSH(k->arena, &k->buffers);
    *b = (smg_kbuffer){.name = name, .type = type, .elements = size_of(k, elements), .written = written};
    return k->buffers.count - 1;
}

/* Pairs of axis number and stride text. */
static int access(smg_kernel *k, int to, int count, ...) {
    smg_access *a = SMG_ARRAY_PUSH(k->arena, &k->accesses);
    *a = (smg_access){.buffer = to, .offset = size_of(k, "0"), .axis_count = count};
    a->index = SMG_EXPR_NONE;
    a->index_stride = a->index_limit = SMG_SIZE_NONE;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) {
        a->axis[i] = va_arg(list, int);
        a->stride[i] = size_of(k, va_arg(list, const char *));
    }
    va_end(list);
    return k->accesses.count - 1;
}

static smg_expr leaf(smg_kernel *k, smg_kleaf_kind what, smg_kind kind, int index) {
    smg_kleaf *l = SMG_ARRAY_PUSH(k->arena, &k->leaves);
    *l = (smg_kleaf){.what = what, .kind = kind, .index = index, .size = SMG_SIZE_NONE};
    return smg_expr_leaf(k->exprs, kind, k->leaves.count - 1);
}

static smg_expr load(smg_kernel *k, int from) {
    return leaf(k, SMG_KLEAF_LOAD, smg_type_kind(k->buffers.items[k->accesses.items[from].buffer].type), from);
}

static smg_expr of_tile(smg_kernel *k, int t) {
    return leaf(k, SMG_KLEAF_TILE, smg_tile_kind(&k->tiles.items[t]), t);
}

static smg_expr make2(smg_kernel *k, smg_prim prim, smg_expr a, smg_expr b) {
    return smg_expr_make(k->exprs, prim, a, b, SMG_EXPR_NONE);
}

static smg_expr make1(smg_kernel *k, smg_prim prim, smg_expr a) {
    return make2(k, prim, a, SMG_EXPR_NONE);
}

static smg_expr number(smg_kernel *k, double value) {
    return smg_expr_const(k->exprs, SMG_KIND_FLOAT, value);
}

static smg_instr *instr(smg_kernel *k, smg_instr_kind kind, int dst, smg_expr expr, int count, ...) {
    smg_instr *i = SMG_ARRAY_PUSH(k->arena, &k->code);
    *i = (smg_instr){.kind = kind, .dst = dst, .a = -1, .b = -1, .layout = -1, .expr = expr, .axis_count = count};
    va_list list;
    va_start(list, count);
    for (int n = 0; n < count; n++) i->axes[n] = va_arg(list, int);
    va_end(list);
    return i;
}

static void plain(smg_kernel *k, smg_instr_kind kind) {
    instr(k, kind, -1, SMG_EXPR_NONE, 0);
}

/* ---- the kernels ---------------------------------------------------------------------------------- */

/* y[m, n] = x * erf(x) + tanh(x) / (1 + pow(x, 3)^2) + mod(iota, 7), ragged in both axes. */
static smg_kernel *elementwise(smg_arena *arena, lanes l, smg_type type) {
    smg_kernel *k = kernel_new(arena, "elementwise");
    int m = axis(k, "m", "s+1", 2 * l.rows + 1, true), n = axis(k, "n", "45", 24, true);
    int x = buffer(k, "x", type, "45*s+45", false), y = buffer(k, "y.out", SMG_TYPE_F32, "45*s+45", true);
    int from = access(k, x, 2, m, "45", n, "1"), to = access(k, y, 2, m, "45", n, "1");
    int t = tile(k, "value", SMG_REGISTER, 0, 2, m, n);
    smg_expr v = load(k, from);
    smg_expr cube = make2(k, SMG_PRIM_POW, v, number(k, 3.0));
    smg_expr below = make2(k, SMG_PRIM_ADD, number(k, 1.0), make2(k, SMG_PRIM_MUL, cube, cube));
    smg_expr place = leaf(k, SMG_KLEAF_IOTA, SMG_KIND_INT, to);
    smg_expr seven = smg_expr_const(k->exprs, SMG_KIND_INT, 7.0);
    smg_expr rest = make1(k, SMG_PRIM_TO_FLOAT, make2(k, SMG_PRIM_MOD, place, seven));
    smg_expr value = make2(k, SMG_PRIM_MUL, v, make1(k, SMG_PRIM_ERF, v));
    value = make2(k, SMG_PRIM_ADD, value, make2(k, SMG_PRIM_DIV, make1(k, SMG_PRIM_TANH, v), below));
    instr(k, SMG_I_SET, t, make2(k, SMG_PRIM_ADD, value, rest), 2, m, n)->note = "all of it \\";
    instr(k, SMG_I_STORE, -1, of_tile(k, t), 2, m, n)->a = to;
    return distributed(k, l, 1, m);
}

/* y = exp(x - max) / sum(exp(x - max)) of each row, the maximum and the sum carried along a loop. */
static smg_kernel *row_loop(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "row_loop");
    int m = axis(k, "m", "s", 2 * l.rows, true), n = axis(k, "n", "3*s+2", 2 * l.cols * l.vec, false);
    int x = buffer(k, "x", SMG_TYPE_F32, "3*s*s+2*s", false);
    int y = buffer(k, "y", SMG_TYPE_F32, "3*s*s+2*s", true);
    int from = access(k, x, 2, m, "3*s+2", n, "1"), to = access(k, y, 2, m, "3*s+2", n, "1");
    int top = tile(k, "top", SMG_REGISTER, 0, 1, m), old = tile(k, "old", SMG_REGISTER, 0, 1, m);
    int sum = tile(k, "sum", SMG_REGISTER, 0, 1, m), value = tile(k, "x", SMG_REGISTER, 0, 2, m, n);
    smg_expr exp_x = make1(k, SMG_PRIM_EXP, make2(k, SMG_PRIM_SUB, of_tile(k, value), of_tile(k, top)));
    smg_expr scale = make1(k, SMG_PRIM_EXP, make2(k, SMG_PRIM_SUB, of_tile(k, old), of_tile(k, top)));
    instr(k, SMG_I_SET, top, number(k, -(double)INFINITY), 0);
    instr(k, SMG_I_SET, sum, number(k, 0.0), 0);
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, n);
    instr(k, SMG_I_SET, value, load(k, from), 0);
    instr(k, SMG_I_SET, old, of_tile(k, top), 0);
    smg_instr *reduce = instr(k, SMG_I_REDUCE, top, of_tile(k, value), 1, n);
    reduce->combine = SMG_COMBINE_MAX;
    reduce->accumulate = true;
    instr(k, SMG_I_SET, sum, make2(k, SMG_PRIM_MUL, of_tile(k, sum), scale), 0)->note = "update";
    reduce = instr(k, SMG_I_REDUCE, sum, exp_x, 1, n);
    reduce->combine = SMG_COMBINE_ADD;
    reduce->accumulate = true;
    plain(k, SMG_I_END);
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, n);
    instr(k, SMG_I_SET, value, load(k, from), 0);
    instr(k, SMG_I_STORE, -1, make2(k, SMG_PRIM_DIV, exp_x, of_tile(k, sum)), 2, m, n)->a = to;
    plain(k, SMG_I_END);
    return distributed(k, l, 1, m);
}

/* c[m, n] = sum over k of a[m, k] * b[k, n], then through shared memory once more (SPILL). */
static smg_kernel *product(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "product");
    int m = axis(k, "m", "2*s+1", 4 * l.rows, true), n = axis(k, "n", "50", 2 * l.cols * l.vec, true);
    int d = axis(k, "k", "s+30", 12, false);
    int a = buffer(k, "a", SMG_TYPE_F32, "(2*s+1)*(s+30)", false);
    int b = buffer(k, "b", SMG_TYPE_F32, "50*s+1500", false);
    int c = buffer(k, "c", SMG_TYPE_F32, "100*s+50", true);
    int from_a = access(k, a, 2, m, "s+30", d, "1"), from_b = access(k, b, 2, d, "50", n, "1");
    int to = access(k, c, 2, m, "50", n, "1");
    int ta = tile(k, "a", SMG_SHARED, 1, 2, m, d), tb = tile(k, "b", SMG_SHARED, 4, 2, d, n);
    int tc = tile(k, "c", SMG_REGISTER, 0, 2, m, n), ts = tile(k, "again", SMG_SHARED, 0, 2, n, m);
    instr(k, SMG_I_SET, tc, number(k, 0.0), 0);
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    instr(k, SMG_I_STAGE, ta, load(k, from_a), 2, m, d);
    instr(k, SMG_I_STAGE, tb, load(k, from_b), 2, d, n);
    plain(k, SMG_I_BARRIER);
    smg_instr *mma = instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    plain(k, SMG_I_BARRIER);
    plain(k, SMG_I_END);
    instr(k, SMG_I_SPILL, ts, SMG_EXPR_NONE, 0)->a = tc;
    plain(k, SMG_I_BARRIER);
    instr(k, SMG_I_STORE, -1, of_tile(k, ts), 2, m, n)->a = to;
    return distributed(k, l, 1, m);
}

static void clamp(smg_kernel *k, int tile_, int x) {
    k->tiles.items[tile_].clamped |= UINT64_C(1) << x;
}

/* The same with a laid by rows, of which a lane has runs of four; rows and columns behind the end are the last ones. */
static smg_kernel *clamped_product(smg_arena *arena, lanes l) {
    smg_kernel *k = product(arena, l);
    int m = 0, n = 1, d = 2, ta = 0, tb = 1;
    k->tiles.items[ta].axis[0] = d;
    k->tiles.items[ta].axis[1] = m;
    k->tiles.items[ta].pad = 4;
    clamp(k, ta, m);
    clamp(k, tb, n);
    return dealt(k, l, 1, m, 4, false);
}

/* c[m, g, n] = sum over k of a[m, k] * b[k, g, n], both read where they lie; ragged rows. */
static smg_kernel *viewed_product(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "viewed_product");
    int m = axis(k, "m", "2*s+1", 3 * l.rows, true), g = axis(k, "g", "2", 2, false);
    int n = axis(k, "n", "16", 16, false), d = axis(k, "k", "36", 4, false);
    int a = buffer(k, "a", SMG_TYPE_F32, "72*s+36", false), b = buffer(k, "b", SMG_TYPE_F32, "1152", false);
    int c = buffer(k, "c", SMG_TYPE_F32, "64*s+32", true);
    int from_a = access(k, a, 2, m, "36", d, "1"), from_b = access(k, b, 3, d, "32", g, "16", n, "1");
    int to = access(k, c, 3, m, "32", g, "16", n, "1");
    int ta = tile(k, "a", SMG_VIEW, 0, 2, m, d), tb = tile(k, "b", SMG_VIEW, 0, 3, d, g, n);
    int tc = tile(k, "c", SMG_REGISTER, 0, 3, m, g, n);
    k->tiles.items[ta].access = from_a;
    k->tiles.items[tb].access = from_b;
    instr(k, SMG_I_SET, tc, number(k, 0.0), 0);
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    smg_instr *mma = instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    plain(k, SMG_I_END);
    instr(k, SMG_I_STORE, -1, of_tile(k, tc), 3, m, g, n)->a = to;
    return dealt(k, l, 1, m, 1, l.subgroup > 1 && l.cols == l.subgroup && l.vec == 1);
}

static smg_instr *slices(smg_kernel *k, smg_instr_kind kind, int tile_, smg_expr expr, int x, int d, int ahead) {
    smg_instr *fetch = instr(k, kind, tile_, expr, 2, x, d);
    fetch->a = d;
    fetch->ahead = ahead;
    return fetch;
}

/* Both operands of the product below, from what was fetched of them. */
static void put_both(smg_kernel *k, int slots, int ahead) {
    int m = 0, n = 1, d = 2, ta = 0, tb = 1, na = 2, nb = 3;
    slices(k, SMG_I_PUT, ta, SMG_EXPR_NONE, m, d, ahead)->a = na;
    slices(k, SMG_I_PUT, tb, SMG_EXPR_NONE, n, d, ahead)->a = nb;
    for (int t = ta; t <= tb && slots > 1; t++) {
        k->tiles.items[t].slots = slots;
        k->tiles.items[t].ring = d;
    }
}

/* c[m, n] = sum over k of a[m, k] * b[n, k]: runs along k in 16-byte groups, slices fetched one step ahead, the
 * contraction over four lanes, their sums joined. */
static smg_kernel *sliced_product(smg_arena *arena, lanes l, int slots) {
    smg_kernel *k = kernel_new(arena, slots > 1 ? "ring_product" : "deep_product");
    int m = axis(k, "m", "2*s+1", 2 * l.rows, true), n = axis(k, "n", "50", l.cols * l.vec, true);
    int d = axis(k, "k", "4*s+32", 24 / slots, false);
    int a = buffer(k, "a", SMG_TYPE_F32, "(2*s+1)*(4*s+32)", false);
    int b = buffer(k, "b", SMG_TYPE_F32, "200*s+1600", false);
    int c = buffer(k, "c", SMG_TYPE_F32, "100*s+50", true);
    int from_a = access(k, a, 2, m, "4*s+32", d, "1"), from_b = access(k, b, 2, n, "4*s+32", d, "1");
    int to = access(k, c, 2, m, "50", n, "1");
    int ta = tile(k, "a", SMG_SHARED, 4, 2, m, d), tb = tile(k, "b", SMG_SHARED, 4, 2, n, d);
    int na = tile(k, "next_a", SMG_STAGING, 0, 2, m, d), nb = tile(k, "next_b", SMG_STAGING, 0, 2, n, d);
    int tc = tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    smg_expr va = load(k, from_a), vb = load(k, from_b);
    instr(k, SMG_I_SET, tc, number(k, 0.0), 0);
    slices(k, SMG_I_FETCH, na, va, m, d, 0);
    slices(k, SMG_I_FETCH, nb, vb, n, d, 0);
    if (slots > 1) put_both(k, slots, 0);
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    if (slots == 1) put_both(k, slots, 0);
    plain(k, SMG_I_BARRIER);
    slices(k, SMG_I_FETCH, na, va, m, d, 1);
    slices(k, SMG_I_FETCH, nb, vb, n, d, 1);
    smg_instr *mma = instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    if (slots > 1) put_both(k, slots, 1);
    plain(k, SMG_I_BARRIER);
    plain(k, SMG_I_END);
    instr(k, SMG_I_JOIN, tc, SMG_EXPR_NONE, 1, d);
    instr(k, SMG_I_STORE, -1, of_tile(k, tc), 2, m, n)->a = to;
    return distributed(k, l, 4, m);
}

static smg_kernel *deep_product(smg_arena *arena, lanes l) {
    return sliced_product(arena, l, 1);
}

/* Each slice in the slot behind the one before: the next one is put beside the product. */
static smg_kernel *ring_of_two(smg_arena *arena, lanes l) {
    return sliced_product(arena, l, 2);
}

static smg_kernel *ring_of_three(smg_arena *arena, lanes l) {
    return sliced_product(arena, l, 3);
}

/* The same, fetched without zeros; those along k are put. */
static smg_kernel *clamped_slices(smg_arena *arena, lanes l) {
    smg_kernel *k = deep_product(arena, l);
    int m = 0, n = 1, d = 2, ta = 0, tb = 1, na = 2, nb = 3;
    clamp(k, ta, m);
    clamp(k, tb, n);
    clamp(k, na, m);
    clamp(k, na, d);
    clamp(k, nb, n);
    clamp(k, nb, d);
    return k;
}

/* y[m, n] = x[m, n] + w[n], rows as long as s+3: whether four neighbours are one aligned group is known at run time. */
static smg_kernel *strided_of(smg_arena *arena, lanes l, smg_type type, smg_type result) {
    smg_kernel *k = kernel_new(arena, "strided");
    int m = axis(k, "m", "5", 2 * l.rows, true), n = axis(k, "n", "s+3", 2 * l.cols * 4, true);
    int x = buffer(k, "x", type, "5*s+15", false), v = buffer(k, "w", SMG_TYPE_F32, "s+3", false);
    int y = buffer(k, "y", result, "5*s+15", true);
    int from = access(k, x, 2, m, "s+3", n, "1"), from_w = access(k, v, 1, n, "1");
    int to = access(k, y, 2, m, "s+3", n, "1");
    int t = tile(k, "x", SMG_REGISTER, 0, 2, m, n);
    instr(k, SMG_I_SET, t, load(k, from), 2, m, n);
    instr(k, SMG_I_STORE, -1, make2(k, SMG_PRIM_ADD, of_tile(k, t), load(k, from_w)), 2, m, n)->a = to;
    return distributed(k, l, 1, m);
}

static smg_kernel *strided(smg_arena *arena, lanes l) {
    return strided_of(arena, l, SMG_TYPE_F32, SMG_TYPE_F32);
}

static smg_kernel *strided_f16(smg_arena *arena, lanes l) {
    return strided_of(arena, l, SMG_TYPE_F16, SMG_TYPE_F32);
}

static smg_kernel *strided_bf16(smg_arena *arena, lanes l) {
    return strided_of(arena, l, SMG_TYPE_BF16, SMG_TYPE_F32);
}

/* y[i, d] = table[id[i], d]. */
static smg_kernel *gather(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "gather");
    int i = axis(k, "i", "s", l.rows, true), d = axis(k, "d", "20", 20, false);
    int id = buffer(k, "id", SMG_TYPE_I64, "s", false);
    int table = buffer(k, "table", SMG_TYPE_F32, "100", false), y = buffer(k, "y", SMG_TYPE_F32, "20*s", true);
    int ids = access(k, id, 1, i, "1"), rows = access(k, table, 1, d, "1"), to = access(k, y, 2, i, "20", d, "1");
    k->accesses.items[rows].index = load(k, ids);
    k->accesses.items[rows].index_stride = size_of(k, "20");
    k->accesses.items[rows].index_limit = size_of(k, "5");
    instr(k, SMG_I_STORE, -1, load(k, rows), 2, i, d)->a = to;
    return distributed(k, l, 1, i);
}

/* y[m] = sum over h, d of x[m, h, d] * w[d], h and d both in columns. */
static smg_kernel *columns(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "columns");
    int m = axis(k, "m", "s", l.rows, true), h = axis(k, "h", "3", 4, false);
    int d = axis(k, "d", "min(s,40)", 64, false);
    smg_size_symbol_set_max(k->sizes, 0, 1000);
    int x = buffer(k, "x", SMG_TYPE_F32, "120*s", false), v = buffer(k, "w", SMG_TYPE_F32, "40", false);
    int y = buffer(k, "y", SMG_TYPE_F32, "s", true);
    int from = access(k, x, 3, m, "120", h, "40", d, "1"), from_w = access(k, v, 1, d, "1");
    int to = access(k, y, 1, m, "1");
    int weight = tile(k, "w", SMG_REGISTER, 0, 2, h, d), sum = tile(k, "sum", SMG_REGISTER, 0, 1, m);
    instr(k, SMG_I_SET, weight, load(k, from_w), 0);
    smg_instr *reduce = instr(k, SMG_I_REDUCE, sum, make2(k, SMG_PRIM_MUL, load(k, from), of_tile(k, weight)), 2, h, d);
    reduce->combine = SMG_COMBINE_ADD;
    instr(k, SMG_I_STORE, -1, of_tile(k, sum), 1, m)->a = to;
    return distributed(k, l, 1, m);
}

/* ---- compiling and running ------------------------------------------------------------------------ */

/* What lanes tell each other becomes instructions first. */
static void compile(fixture *f, smg_arena *arena, smg_kernel *k, const smg_target *target,
                    smg_spirv_module *out_module) {
    smg_text text;
    smg_text_init(&text, f->ctx);
    assert_int_equal(smg_kernel_exchange_lanes(k, target), SMG_OK);
    smg_kernel_widen(k, target);
    assert_int_equal(smg_kernel_find_evens(k, target), SMG_OK);
    smg_status status = smg_glsl_write(f->ctx, k, target, &text);
    if (status == SMG_OK)
        status = smg_spirv_compile(f->compiler, arena, k->name, smg_text_cstr(&text), NULL, out_module);
    if (status != SMG_OK || getenv("SMG_TEST_SHOW") != NULL)
        print_message("%s\n%s\n", smg_context_error(f->ctx), smg_text_cstr(&text));
    smg_text_free(&text);
    assert_int_equal(status, SMG_OK);
}

/* A target that has everything, for texts that only are compiled. */
static smg_target full_target(int subgroup, bool shuffle_only) {
    smg_target t;
    smg_target_init(&t);
    t.max_invocations = t.max_size_x = 1024;
    t.shared_bytes = 49152;
    t.max_bindings = 8;
    t.subgroup_size = subgroup;
    t.subgroup_shuffle = 1;
    t.subgroup_arithmetic = t.subgroup_clustered = shuffle_only ? 0 : 1;
    t.storage16 = t.fp16 = t.nan_preserve = shuffle_only ? 0 : 1;
    return t;
}

#if SMG_VULKAN
typedef struct values {
    double *data[MAX_BUFFERS];
    int64_t count[MAX_BUFFERS];
} values;

static void fill(const smg_kernel *k, const int64_t *symbols, values *v) {
    uint64_t seed = 7;
    for (int b = 0; b < k->buffers.count; b++) {
        const smg_kbuffer *at = &k->buffers.items[b];
        assert_true(smg_size_eval(k->sizes, at->elements, symbols, &v->count[b]));
        v->data[b] = calloc((size_t)v->count[b], sizeof(double));
        assert_non_null(v->data[b]);
        for (int64_t i = 0; i < v->count[b] && !at->written; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            double x = (double)(seed >> 40) / (double)(1 << 24) * 6.0 - 3.0;
            v->data[b][i] = smg_type_kind(at->type) == SMG_KIND_INT ? floor((x + 3.0) / 1.21)
                                                                    : (double)(float)(round(x * 64.0) / 64.0);
        }
    }
}

static void upload(fixture *f, smg_type type, const double *data, int64_t count, smg_vk_buffer **out_buffer) {
    int64_t size = smg_type_device_bytes(type);
    int64_t bytes = (count * size + 3) / 4 * 4;
    uint8_t *raw = calloc((size_t)bytes, 1);
    for (int64_t i = 0; i < count; i++) {
        float real = (float)data[i];
        int32_t whole = smg_type_kind(type) == SMG_KIND_INT ? (int32_t)data[i] : 0;
        uint16_t half = type == SMG_TYPE_BF16 ? smg_bf16_of(data[i]) : smg_half_of(data[i]);
        const void *from = type == SMG_TYPE_F32 ? (const void *)&real : (const void *)&whole;
        if (size == sizeof half) from = &half;
        memcpy(raw + i * size, from, (size_t)size);
    }
    assert_int_equal(smg_vk_buffer_create(f->dev, "test", bytes, SMG_VK_DEVICE, out_buffer), SMG_OK);
    assert_int_equal(smg_vk_upload(*out_buffer, 0, raw, bytes), SMG_OK);
    free(raw);
}

typedef struct built {
    smg_glsl_interface face;
    smg_vk_pipeline *pipeline;
} built;

/* Apart from running: software drivers take their time, and one pipeline serves all sizes. */
static built build(fixture *f, const smg_kernel *k, const smg_target *target, const smg_spirv_module *module) {
    built made = {0};
    assert_int_equal(smg_glsl_describe(f->ctx, k, target, &made.face), SMG_OK);
    smg_glsl_interface face = made.face;
    smg_vk_pipeline_desc desc = {.name = k->name, .words = module->words, .word_count = module->word_count};
    desc.local_size[0] = face.local_size;
    desc.binding_count = face.binding_count;
    desc.push_bytes = 8 * face.address_count + 4 * face.push_count;
    desc.subgroup_size = face.subgroup_size;
    desc.full_subgroups = face.subgroup_size > 0;
    smg_status status = smg_vk_pipeline_create(f->dev, &desc, &made.pipeline);
    if (status != SMG_OK) print_message("%s: %s\n", k->name, smg_context_error(f->ctx));
    assert_int_equal(status, SMG_OK);
    return made;
}

/* Runs on the device into data[]; the diagnostics words go to out_bad. */
static void run_device(fixture *f, const smg_kernel *k, const built *made, const int64_t *symbols, values *v,
                       uint32_t out_bad[4]) {
    const smg_glsl_interface face = made->face;
    smg_vk_binding bindings[MAX_BUFFERS + 1] = {{0}};
    for (int b = 0; b < k->buffers.count; b++)
        upload(f, k->buffers.items[b].type, v->data[b], v->count[b], &bindings[b].buffer);
    if (face.diagnostics >= 0) upload(f, SMG_TYPE_I32, (double[4]){0}, 4, &bindings[face.diagnostics].buffer);
    int32_t push[3 * SMG_GLSL_MAX_PUSH];
    for (int i = 0; i < face.address_count; i++) {
        uint64_t address = smg_vk_buffer_address(bindings[face.address_bindings[i]].buffer);
        memcpy(push + 2 * i, &address, sizeof address);
    }
    for (int i = 0; i < face.push_count; i++) push[2 * face.address_count + i] = (int32_t)symbols[face.push_symbols[i]];
    int64_t groups;
    assert_true(smg_kernel_grid(k, symbols, &groups));
    int64_t gy = 2, gx = (groups + 1) / 2 + 1; /* some too many */
    smg_vk_recording *rec;
    assert_int_equal(smg_vk_recording_begin(f->dev, 0, &rec), SMG_OK);
    int push_bytes = 8 * face.address_count + 4 * face.push_count;
    smg_vk_record_dispatch(rec, made->pipeline, bindings, face.binding_count, push, push_bytes, gx, gy, 1);
    assert_int_equal(smg_vk_recording_end(rec), SMG_OK);
    assert_int_equal(smg_vk_run(rec), SMG_OK);
    for (int b = 0; b < k->buffers.count; b++) {
        if (!k->buffers.items[b].written) continue;
        float *raw = calloc((size_t)v->count[b], sizeof(float));
        assert_int_equal(smg_vk_download(bindings[b].buffer, 0, raw, v->count[b] * 4), SMG_OK);
        for (int64_t i = 0; i < v->count[b]; i++) v->data[b][i] = (double)raw[i];
        free(raw);
    }
    if (face.diagnostics >= 0)
        assert_int_equal(smg_vk_download(bindings[face.diagnostics].buffer, 0, out_bad, 16), SMG_OK);
    smg_vk_recording_destroy(rec);
    for (int b = 0; b < face.binding_count; b++) smg_vk_buffer_destroy(bindings[b].buffer);
}
/* Drivers round sums of f16 once or twice a product. */
static double slack_of(const smg_kernel *k) {
    double slack = 2e-5;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].terms > 0) slack = 0.1;
    return slack;
}

static void compare(const smg_kernel *k, lanes l, const values *want, const values *got) {
    double slack = slack_of(k);
    for (int b = 0; b < k->buffers.count; b++) {
        if (!k->buffers.items[b].written) continue;
        for (int64_t i = 0; i < want->count[b]; i++) {
            double x = want->data[b][i], y = got->data[b][i];
            if (fabs(x - y) <= slack * (1.0 + fabs(x))) continue;
            print_message("%s %dx%d vec %d subgroup %d: %s[%lld] is %.9g, must be %.9g\n", k->name, l.rows, l.cols,
                          l.vec, l.subgroup, k->buffers.items[b].name, (long long)i, y, x);
            fail();
        }
    }
}

#endif

/* `poor`: as if the device had shuffles alone and no 16-bit storage. */
static void run_and_compare(fixture *f, smg_arena *arena, smg_kernel *k, lanes l, bool poor) {
#if SMG_VULKAN
    static const int64_t sizes[] = {21, 64};
    smg_target target = f->target;
    if (poor) target.subgroup_arithmetic = target.subgroup_clustered = target.storage16 = 0;
    if (l.rows * l.cols > f->target.max_invocations) return;
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_OK);
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
    if (smg_kernel_shared_bytes(k) > f->target.shared_bytes) return;
    f->ran++;
    smg_spirv_module module;
    compile(f, arena, k, &target, &module);
    built made = build(f, k, &target, &module);
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        uint32_t bad[4] = {0};
        values want, got;
        fill(k, &sizes[i], &want);
        fill(k, &sizes[i], &got);
        smg_karray arrays[MAX_BUFFERS];
        for (int b = 0; b < k->buffers.count; b++) arrays[b] = (smg_karray){want.data[b], want.count[b]};
        smg_status status = smg_kernel_interpret(f->ctx, k, &sizes[i], arrays, false);
        if (status != SMG_OK) print_message("%s\n", smg_context_error(f->ctx));
        assert_int_equal(status, SMG_OK);
        run_device(f, k, &made, &sizes[i], &got, bad);
        assert_int_equal(bad[0], 0);
        compare(k, l, &want, &got);
        for (int b = 0; b < k->buffers.count; b++) {
            free(want.data[b]);
            free(got.data[b]);
        }
    }
    smg_vk_pipeline_destroy(made.pipeline);
#else
    (void)f, (void)arena, (void)k, (void)l, (void)poor;
#endif
}

typedef smg_kernel *maker(smg_arena *arena, lanes l);

static smg_kernel *elementwise_f32(smg_arena *arena, lanes l) {
    return elementwise(arena, l, SMG_TYPE_F32);
}

static smg_kernel *elementwise_f16(smg_arena *arena, lanes l) {
    return elementwise(arena, l, SMG_TYPE_F16);
}

static smg_kernel *elementwise_bf16(smg_arena *arena, lanes l) {
    return elementwise(arena, l, SMG_TYPE_BF16);
}

/* Lanes as schedules of this device have them: its own subgroups, and none where they would not be full. */
static lanes lanes_here(const fixture *f, lanes l) {
    bool has = f->target.subgroup_arithmetic && f->target.subgroup_shuffle;
    if (l.subgroup > 1) l.subgroup = has ? (int)f->target.subgroup_size : 1;
    if (l.rows * l.cols % l.subgroup != 0) l.subgroup = 1;
    return l;
}

/* Shapes first, first + step and so on. */
static void check_shapes(void **state, maker *make, size_t first, size_t step) {
    static const lanes shapes[] = {{1, 1, 1, 1},   {4, 8, 1, 8},   {2, 4, 2, 8},   {2, 32, 1, 8},  {1, 64, 4, 8},
                                   {4, 16, 1, 1},  {1, 8, 1, 1},   {16, 1, 1, 8},  {8, 4, 4, 4},   {2, 8, 1, 4},
                                   {1, 16, 1, 32}, {2, 64, 2, 32}, {8, 16, 1, 32}, {4, 32, 1, 32}, {4, 16, 1, 16},
                                   {8, 8, 4, 16},  {4, 4, 1, 16}};
    fixture *f = *state;
    int ran = f->ran;
    for (size_t i = first; i < SMG_COUNT_OF(shapes); i += step) {
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            smg_arena *arena;
            smg_spirv_module module;
            assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
            smg_target target = full_target(shapes[i].subgroup, shuffle != 0);
            compile(f, arena, make(arena, shapes[i]), &target, &module);
            if (f->device) {
                lanes l = lanes_here(f, shapes[i]);
                run_and_compare(f, arena, make(arena, l), l, shuffle != 0);
            }
            smg_arena_destroy(arena);
        }
    }
    if (f->device && f->ran == ran) fail_msg("no kernel ran on %s", f->target.name);
}

static void check(void **state, maker *make) {
    check_shapes(state, make, 0, 1);
}

/* Drivers take seconds for each of these: every kind meets a fourth of the shapes, and together they meet all. */
static void check_kinds(void **state, maker *const *kinds, size_t count) {
    for (size_t i = 0; i < count; i++) check_shapes(state, kinds[i], i % 4, 4);
}

static void test_elementwise(void **state) {
    check(state, elementwise_f32);
    check(state, elementwise_f16);
    check(state, elementwise_bf16);
}

static void test_row_loop(void **state) {
    check(state, row_loop);
}

static void test_product(void **state) {
    check(state, product);
    check(state, deep_product);
    check(state, clamped_product);
    check(state, clamped_slices);
    check(state, ring_of_two);
    check(state, ring_of_three);
}

/* Operands that lie in memory and in tiles as 16 bits; what is spilled is rounded to them. */
static smg_kernel *narrow(smg_kernel *k, smg_type type) {
    for (int b = 0; b < k->buffers.count; b++)
        if (!k->buffers.items[b].written) k->buffers.items[b].type = type;
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].residence == SMG_SHARED || k->tiles.items[t].residence == SMG_STAGING)
            k->tiles.items[t].type = type;
    return k;
}

static smg_kernel *product_f16(smg_arena *arena, lanes l) {
    return narrow(product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *product_bf16(smg_arena *arena, lanes l) {
    return narrow(product(arena, l), SMG_TYPE_BF16);
}

static smg_kernel *clamped_product_f16(smg_arena *arena, lanes l) {
    return narrow(clamped_product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *clamped_slices_f16(smg_arena *arena, lanes l) {
    return narrow(clamped_slices(arena, l), SMG_TYPE_F16);
}

/* Slices arrive as they are, and are put as f32. */
static smg_kernel *widened_slices(smg_arena *arena, lanes l) {
    smg_kernel *k = narrow(clamped_slices(arena, l), SMG_TYPE_F16);
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].residence == SMG_SHARED) k->tiles.items[t].type = SMG_TYPE_F32;
    return k;
}

static smg_kernel *deep_product_bf16(smg_arena *arena, lanes l) {
    return narrow(deep_product(arena, l), SMG_TYPE_BF16);
}

/* Sums of four products, in pairs of f16: three of them of one slice; and with a read by rows. */
static smg_kernel *partial_product(smg_arena *arena, lanes l) {
    l.vec = SMG_WIDE;
    smg_kernel *k = clamped_product_f16(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = 4;
    k->tiles.items[3].type = SMG_TYPE_F32; /* what is spilled */
    return k;
}

static smg_kernel *partial_whole(smg_arena *arena, lanes l) {
    smg_kernel *k = partial_product(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = k->code.items[i].unroll = 12;
    k->tiles.items[0].axis[0] = 0; /* a lies along k */
    k->tiles.items[0].axis[1] = 2;
    return k;
}

/* c[m, n] = sum over k of a[m, k] * b[k, n], all of f16; b is fetched and put by eight. */
static smg_kernel *slices_by_eight(smg_arena *arena, lanes l) {
    smg_kernel *k = kernel_new(arena, "slices_by_eight");
    int m = axis(k, "m", "2*s+1", 4 * l.rows, true), n = axis(k, "n", "48", (l.cols > 16 ? 8 : 16) * l.cols, true);
    int d = axis(k, "k", "s+30", 16, false);
    int a = buffer(k, "a", SMG_TYPE_F16, "(2*s+1)*(s+30)", false), b = buffer(k, "b", SMG_TYPE_F16, "48*s+1440", false);
    int c = buffer(k, "c", SMG_TYPE_F32, "96*s+48", true);
    int from_a = access(k, a, 2, m, "s+30", d, "1"), from_b = access(k, b, 2, d, "48", n, "1");
    int to = access(k, c, 2, m, "48", n, "1");
    int ta = tile(k, "a", SMG_SHARED, 4, 2, d, m), tb = tile(k, "b", SMG_SHARED, 8, 2, d, n);
    int na = tile(k, "next_a", SMG_STAGING, 0, 2, m, d), nb = tile(k, "next_b", SMG_STAGING, 0, 2, d, n);
    int tc = tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    smg_expr va = load(k, from_a), vb = load(k, from_b);
    instr(k, SMG_I_SET, tc, number(k, 0.0), 0);
    slices(k, SMG_I_FETCH, na, va, m, d, 0);
    slices(k, SMG_I_FETCH, nb, vb, d, n, 0)->a = d;
    instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    instr(k, SMG_I_PUT, ta, SMG_EXPR_NONE, 2, m, d)->a = na;
    instr(k, SMG_I_PUT, tb, SMG_EXPR_NONE, 2, d, n)->a = nb;
    plain(k, SMG_I_BARRIER);
    slices(k, SMG_I_FETCH, na, va, m, d, 1);
    slices(k, SMG_I_FETCH, nb, vb, d, n, 1)->a = d;
    smg_instr *mma = instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    plain(k, SMG_I_BARRIER);
    plain(k, SMG_I_END);
    instr(k, SMG_I_STORE, -1, of_tile(k, tc), 2, m, n)->a = to;
    l.vec = SMG_WIDEST;
    return dealt(narrow(k, SMG_TYPE_F16), l, 1, m, 4, false);
}

/* The same with b turned on its way, with b made f32 there, and multiplied by eight. */
static smg_kernel *turned_by_eight(smg_arena *arena, lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    k->tiles.items[1].axis[0] = 1;
    k->tiles.items[1].axis[1] = 2;
    return k;
}

static smg_kernel *widened_by_eight(smg_arena *arena, lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    k->tiles.items[1].type = SMG_TYPE_F32;
    return k;
}

static smg_kernel *partial_by_eight(smg_arena *arena, lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = 16;
    return k;
}

static void test_partial(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_kernel *k = partial_product(arena, (lanes){8, 8, 1, 8});
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "fma(fa[i >> 1].yy, fb[j], part["));
    assert_non_null(strstr(smg_text_cstr(&text), "f16vec4 four = t_a["));
    smg_text_free(&text);
    k = partial_by_eight(arena, (lanes){8, 8, 1, 8});
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "uvec4 eight = t_b["));
    assert_non_null(strstr(smg_text_cstr(&text), "shared uvec4 t_b["));
    smg_text_free(&text);
    smg_arena_destroy(arena);
    static maker *const kinds[] = {partial_product, partial_whole, partial_by_eight};
    check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

/* Columns of 16 bits in runs of eight, 16 bytes, where they lie. */
static smg_kernel *viewed_eights_f16(smg_arena *arena, lanes l) {
    l.vec = SMG_WIDEST;
    return narrow(viewed_product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *viewed_eights_bf16(smg_arena *arena, lanes l) {
    l.vec = SMG_WIDEST;
    return narrow(viewed_product(arena, l), SMG_TYPE_BF16);
}

static void test_eights(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_kernel *k = viewed_eights_f16(arena, (lanes){2, 4, 1, 8});
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "uvec4 eight = e_b["));
    smg_text_free(&text);
    smg_arena_destroy(arena);
    static maker *const kinds[] = {viewed_eights_f16, viewed_eights_bf16, slices_by_eight, turned_by_eight,
                                   widened_by_eight};
    check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

static void test_narrow_tiles(void **state) {
    static maker *const kinds[] = {product_f16,        product_bf16,   clamped_product_f16,
                                   clamped_slices_f16, widened_slices, deep_product_bf16};
    check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

/* Groups of four rows, and no select behind a load. */
static void test_clamped(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_kernel *k = clamped_product(arena, (lanes){.rows = 4, .cols = 8, .vec = 4, .subgroup = 8});
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "fa[i + 3] = four[3];"));
    assert_non_null(strstr(smg_text_cstr(&text), "int r_m = (even || at_m + c_m < "));
    smg_text_free(&text);
    smg_text_init(&text, f->ctx);
    k = clamped_slices(arena, (lanes){.rows = 4, .cols = 8, .vec = 1, .subgroup = 8});
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_OK);
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    const char *fetch = strstr(smg_text_cstr(&text), "int r_m"), *end = strstr(fetch, "t_next_a");
    assert_non_null(end);
    for (const char *at = fetch; at < end; at++) assert_false(strncmp(at, "0.0", 3) == 0);
    smg_text_free(&text);
    smg_arena_destroy(arena);
}

/* By address, a subgroup a row lane, where the device's lanes are the elements of one register; everywhere else element
 * by element. */
static void test_views(void **state) {
    fixture *f = *state;
    check(state, viewed_product);
    smg_target target = full_target(8, false);
    target.core_lanes = target.subgroup_max = 8;
    target.subgroup_selectable = 1;
    target.max_push_bytes = 256;
    for (int addresses = 0; addresses < 2; addresses++) {
        smg_arena *arena;
        smg_text text;
        smg_glsl_interface face;
        smg_spirv_module module;
        target.buffer_addresses = addresses;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_text_init(&text, f->ctx);
        smg_kernel *k = viewed_product(arena, (lanes){4, 8, 1, 8});
        smg_kernel_widen(k, &target);
        assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
        assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
        assert_int_equal(smg_glsl_describe(f->ctx, k, &target, &face), SMG_OK);
        assert_int_equal(face.address_count, addresses ? 2 : 0);
        assert_int_equal(strstr(smg_text_cstr(&text), "smg_across(p)") != NULL, addresses);
        compile(f, arena, k, &target, &module);
        smg_text_free(&text);
        smg_arena_destroy(arena);
    }
}

/* Rows of 24 and of 67 elements (check): in groups, and one by one. */
static void test_strided(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_kernel *k = strided(arena, (lanes){1, 64, 4, 8});
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), " & 3) == 0"));
    assert_non_null(strstr(smg_text_cstr(&text), ">> 2] = "));
    smg_text_free(&text);
    smg_arena_destroy(arena);
    check(state, strided);
    check(state, strided_f16);
    check(state, strided_bf16);
}

/* The same of 16 bits, where the device has such memory. */
static void test_narrow_groups(void **state) {
    fixture *f = *state;
    smg_target target = full_target(8, false);
    for (target.storage16 = 0; target.storage16 < 2; target.storage16++) {
        smg_arena *arena;
        smg_text text;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_text_init(&text, f->ctx);
        smg_kernel *k = strided_of(arena, (lanes){1, 64, 4, 8}, SMG_TYPE_F16, SMG_TYPE_F16);
        smg_kernel_widen(k, &target);
        assert_int_equal(k->code.items[0].wide[0].width, target.storage16 ? SMG_WIDE : 0);
        smg_status status = smg_glsl_write(f->ctx, k, &target, &text);
        assert_int_equal(status, target.storage16 ? SMG_OK : SMG_UNSUPPORTED); /* it stores */
        assert_int_equal(strstr(smg_text_cstr(&text), "= f16vec4(") != NULL, target.storage16);
        smg_text_free(&text);
        smg_arena_destroy(arena);
    }
}

static void test_gather(void **state) {
    check(state, gather);
}

static void test_columns(void **state) {
    check(state, columns);
}

/* A bad index is clamped and reported with its value and limit. */
static void test_bad_index(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
#if SMG_VULKAN
    smg_arena *arena;
    smg_spirv_module module;
    uint32_t bad[4] = {0};
    int64_t symbols[1] = {9};
    values v;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = gather(arena, (lanes){2, 8, 1, 1});
    compile(f, arena, k, &f->target, &module);
    fill(k, symbols, &v);
    v.data[0][4] = 77.0;
    built made = build(f, k, &f->target, &module);
    run_device(f, k, &made, symbols, &v, bad);
    smg_vk_pipeline_destroy(made.pipeline);
    assert_int_equal(bad[0], 1);
    assert_int_equal(bad[1], 77);
    assert_int_equal(bad[2], 5);
    assert_true(fabs(v.data[2][4 * 20] - v.data[1][4 * 20]) < 1e-6); /* row 4, the last */
    for (int b = 0; b < 3; b++) free(v.data[b]);
    smg_arena_destroy(arena);
#endif
}

/* A sum over more columns than a lane has registers is a loop, one over fewer is written out. */
static void test_long_columns(void **state) {
    static const char *const extents[] = {"64", "65536"};
    fixture *f = *state;
    smg_target target = full_target(32, false);
    target.registers_lane = 255;
    for (int i = 0; i < 2; i++) {
        smg_arena *arena;
        smg_text text;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_text_init(&text, f->ctx);
        smg_kernel *k = kernel_new(arena, "long");
        int d = axis(k, "d", extents[i], i == 0 ? 64 : 65536, false);
        int from = access(k, buffer(k, "x", SMG_TYPE_F32, extents[i], false), 1, d, "1");
        int to = access(k, buffer(k, "y", SMG_TYPE_F32, "1", true), 0);
        int sum = tile(k, "sum", SMG_REGISTER, 0, 0);
        instr(k, SMG_I_REDUCE, sum, load(k, from), 1, d)->combine = SMG_COMBINE_ADD;
        instr(k, SMG_I_STORE, -1, of_tile(k, sum), 0)->a = to;
        distributed(k, (lanes){1, 32, 1, 32}, 1, -1);
        assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_OK);
        smg_kernel_widen(k, &target);
        assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
        smg_kernel_unroll(k, &target);
        assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
        assert_int_equal(strstr(smg_text_cstr(&text), "[[dont_unroll]]") != NULL, i == 1);
        smg_text_free(&text);
        smg_arena_destroy(arena);
    }
}

static void test_refusals(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_target target = full_target(32, false);
    smg_kernel *k = product(arena, (lanes){32, 64, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_UNSUPPORTED);
    smg_context_clear_error(f->ctx);
    target.max_push_bytes = 0;
    k = product(arena, (lanes){2, 8, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_UNSUPPORTED);
    smg_context_clear_error(f->ctx);
    target = full_target(32, true);
    target.subgroup_shuffle = 0;
    k = row_loop(arena, (lanes){2, 32, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_INTERNAL);
    assert_string_equal(smg_context_error(f->ctx), "kernel row_loop: a reduction's lanes are not joined");
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_INVALID);
    smg_context_clear_error(f->ctx);
    assert_int_equal(text.length, 0);
    smg_text_free(&text);
    smg_arena_destroy(arena);
}

/* ---- set up --------------------------------------------------------------------------------------- */

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || smg_context_create(NULL, &f->ctx) != SMG_OK) return -1;
    if (smg_spirv_compiler_create(f->ctx, &f->compiler) != SMG_OK) return -1;
#if SMG_VULKAN
    if (smg_vk_open(f->ctx, NULL, 0, &f->dev) == SMG_OK) {
        f->device = true;
        f->target = *smg_vk_target(f->dev);
        print_message("device %s, subgroup %lld\n", f->target.name, (long long)f->target.subgroup_size);
    } else {
        print_message("texts are compiled, not run: %s\n", smg_context_error(f->ctx));
        smg_context_clear_error(f->ctx);
    }
#endif
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
#if SMG_VULKAN
    smg_vk_close(f->dev);
#endif
    smg_spirv_compiler_destroy(f->compiler);
    smg_context_destroy(f->ctx);
    free(f);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),  cmocka_unit_test(test_row_loop), cmocka_unit_test(test_product),
        cmocka_unit_test(test_narrow_tiles), cmocka_unit_test(test_eights),   cmocka_unit_test(test_partial),
        cmocka_unit_test(test_clamped),      cmocka_unit_test(test_gather),   cmocka_unit_test(test_columns),
        cmocka_unit_test(test_bad_index),    cmocka_unit_test(test_views),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_columns), cmocka_unit_test(test_strided),  cmocka_unit_test(test_narrow_groups),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
