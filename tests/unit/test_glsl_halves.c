/* glsl: kernels whose memory and tiles are of 16 bits: operands, slices put by eight, partial sums in f16, groups of
 * neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "support/glsl_case.h"

/* Operands that lie in memory and in tiles as 16 bits; what is spilled is rounded to them. */
static smg_kernel *narrow(smg_kernel *k, smg_type type) {
    for (int b = 0; b < k->buffers.count; b++)
        if (!k->buffers.items[b].written) k->buffers.items[b].type = type;
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].residence == SMG_SHARED || k->tiles.items[t].residence == SMG_STAGING)
            k->tiles.items[t].type = type;
    return k;
}

static smg_kernel *product_f16(smg_arena *arena, hand_lanes l) {
    return narrow(hand_product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *product_bf16(smg_arena *arena, hand_lanes l) {
    return narrow(hand_product(arena, l), SMG_TYPE_BF16);
}

static smg_kernel *clamped_product_f16(smg_arena *arena, hand_lanes l) {
    return narrow(hand_clamped_product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *clamped_slices_f16(smg_arena *arena, hand_lanes l) {
    return narrow(hand_clamped_slices(arena, l), SMG_TYPE_F16);
}

/* Slices arrive as they are, and are put as f32. */
static smg_kernel *widened_slices(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = narrow(hand_clamped_slices(arena, l), SMG_TYPE_F16);
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].residence == SMG_SHARED) k->tiles.items[t].type = SMG_TYPE_F32;
    return k;
}

static smg_kernel *deep_product_bf16(smg_arena *arena, hand_lanes l) {
    return narrow(hand_deep_product(arena, l), SMG_TYPE_BF16);
}

/* Sums of four products, in pairs of f16: three of them of one slice; and with a read by rows. */
static smg_kernel *partial_product(smg_arena *arena, hand_lanes l) {
    l.vec = SMG_WIDE;
    smg_kernel *k = clamped_product_f16(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = 4;
    k->tiles.items[3].type = SMG_TYPE_F32; /* what is spilled */
    return k;
}

static smg_kernel *partial_whole(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = partial_product(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = k->code.items[i].unroll = 12;
    k->tiles.items[0].axis[0] = 0; /* a lies along k */
    k->tiles.items[0].axis[1] = 2;
    return k;
}

/* c[m, n] = sum over k of a[m, k] * b[k, n], all of f16; b is fetched and put by eight. */
static smg_kernel *slices_by_eight(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "slices_by_eight");
    int m = hand_axis(k, "m", "2*s+1", 4 * l.rows, true),
        n = hand_axis(k, "n", "48", (l.cols > 16 ? 8 : 16) * l.cols, true);
    int d = hand_axis(k, "k", "s+30", 16, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F16, "(2*s+1)*(s+30)", false),
        b = hand_buffer(k, "b", SMG_TYPE_F16, "48*s+1440", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "96*s+48", true);
    int from_a = hand_access(k, a, 2, m, "s+30", d, "1"), from_b = hand_access(k, b, 2, d, "48", n, "1");
    int to = hand_access(k, c, 2, m, "48", n, "1");
    int ta = hand_tile(k, "a", SMG_SHARED, 4, 2, d, m), tb = hand_tile(k, "b", SMG_SHARED, 8, 2, d, n);
    int na = hand_tile(k, "next_a", SMG_STAGING, 0, 2, m, d), nb = hand_tile(k, "next_b", SMG_STAGING, 0, 2, d, n);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    smg_expr va = hand_load(k, from_a), vb = hand_load(k, from_b);
    hand_instr(k, SMG_I_SET, tc, hand_number(k, 0.0), 0);
    hand_slices(k, SMG_I_FETCH, na, va, m, d, 0);
    hand_slices(k, SMG_I_FETCH, nb, vb, d, n, 0)->a = d;
    hand_instr(k, SMG_I_LOOP, -1, SMG_EXPR_NONE, 1, d);
    hand_instr(k, SMG_I_PUT, ta, SMG_EXPR_NONE, 2, m, d)->a = na;
    hand_instr(k, SMG_I_PUT, tb, SMG_EXPR_NONE, 2, d, n)->a = nb;
    hand_plain(k, SMG_I_BARRIER);
    hand_slices(k, SMG_I_FETCH, na, va, m, d, 1);
    hand_slices(k, SMG_I_FETCH, nb, vb, d, n, 1)->a = d;
    smg_instr *mma = hand_instr(k, SMG_I_MMA, tc, SMG_EXPR_NONE, 1, d);
    mma->a = ta;
    mma->b = tb;
    hand_plain(k, SMG_I_BARRIER);
    hand_plain(k, SMG_I_END);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 2, m, n)->a = to;
    l.vec = SMG_WIDEST;
    return hand_dealt(narrow(k, SMG_TYPE_F16), l, 1, m, 4, false);
}

/* The same with b turned on its way, with b made f32 there, and multiplied by eight. */
static smg_kernel *turned_by_eight(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    k->tiles.items[1].axis[0] = 1;
    k->tiles.items[1].axis[1] = 2;
    return k;
}

static smg_kernel *widened_by_eight(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    k->tiles.items[1].type = SMG_TYPE_F32;
    return k;
}

static smg_kernel *partial_by_eight(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = slices_by_eight(arena, l);
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) k->code.items[i].terms = 16;
    return k;
}

static void test_partial(void **state) {
    glsl_fixture *f = *state;
    static const char *const pairs[] = {"fma(fa[i >> 1].yy, fb[j], part[", "f16vec4 four = t_a[", NULL};
    static const char *const eights[] = {"uvec4 eight = t_b[", "shared uvec4 t_b[", NULL};
    static hand_maker *const kinds[] = {partial_product, partial_whole, partial_by_eight};
    smg_arena *arena;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_expect_parts(f, partial_product(arena, (hand_lanes){8, 8, 1, 8}), &target, pairs);
    glsl_expect_parts(f, partial_by_eight(arena, (hand_lanes){8, 8, 1, 8}), &target, eights);
    smg_arena_destroy(arena);
    glsl_check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

/* Columns of 16 bits in runs of eight, 16 bytes, where they lie. */
static smg_kernel *viewed_eights_f16(smg_arena *arena, hand_lanes l) {
    l.vec = SMG_WIDEST;
    return narrow(hand_viewed_product(arena, l), SMG_TYPE_F16);
}

static smg_kernel *viewed_eights_bf16(smg_arena *arena, hand_lanes l) {
    l.vec = SMG_WIDEST;
    return narrow(hand_viewed_product(arena, l), SMG_TYPE_BF16);
}

/* c[m,n] += sum k: a[m,k] b[n,k], both factors where they lie, in groups of eight k. */
static smg_kernel *along_eights(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "along_eights");
    int m = hand_axis(k, "m", "2*s+1", 3 * l.rows, true), n = hand_axis(k, "n", "16", 16, false);
    int d = hand_axis(k, "k", "48", 16, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, "96*s+48", false), b = hand_buffer(k, "b", SMG_TYPE_F32, "768", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "32*s+16", true);
    int from_a = hand_access(k, a, 2, m, "48", d, "1"), from_b = hand_access(k, b, 2, n, "48", d, "1");
    int to = hand_access(k, c, 2, m, "16", n, "1");
    int ta = hand_tile(k, "a", SMG_VIEW, 0, 2, m, d), tb = hand_tile(k, "b", SMG_VIEW, 0, 2, n, d);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    k->tiles.items[ta].access = from_a;
    k->tiles.items[tb].access = from_b;
    hand_multiply(k, tc, ta, tb, d);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 2, m, n)->a = to;
    return hand_dealt(narrow(k, SMG_TYPE_F16), l, 1, m, 1, false);
}

static void test_eights(void **state) {
    glsl_fixture *f = *state;
    static const char *const parts[] = {"uvec4 eight = e_b[", NULL};
    static const char *const along[] = {"e_a[", "uvec4 fb = e_b[", NULL};
    smg_arena *arena;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_expect_parts(f, viewed_eights_f16(arena, (hand_lanes){2, 4, 1, 8}), &target, parts);
    glsl_expect_parts(f, along_eights(arena, (hand_lanes){2, 4, 1, 8}), &target, along);
    smg_arena_destroy(arena);
    static hand_maker *const kinds[] = {viewed_eights_f16, viewed_eights_bf16, slices_by_eight,
                                        turned_by_eight,   widened_by_eight,   along_eights};
    glsl_check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

static void test_narrow_tiles(void **state) {
    static hand_maker *const kinds[] = {product_f16,        product_bf16,   clamped_product_f16,
                                        clamped_slices_f16, widened_slices, deep_product_bf16};
    glsl_check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

/* Rows of neighbours in groups, where the device has such memory. */
static void test_narrow_groups(void **state) {
    glsl_fixture *f = *state;
    smg_target target = glsl_full_target(8, false);
    for (target.storage16 = 0; target.storage16 < 2; target.storage16++) {
        smg_arena *arena;
        smg_text text;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_text_init(&text, f->ctx);
        smg_kernel *k = hand_strided_of(arena, (hand_lanes){1, 64, 4, 8}, SMG_TYPE_F16, SMG_TYPE_F16);
        smg_kernel_widen(k, &target);
        assert_int_equal(k->code.items[0].wide[0].width, target.storage16 ? SMG_WIDE : 0);
        smg_status status = smg_glsl_write(f->ctx, k, &target, &text);
        assert_int_equal(status, target.storage16 ? SMG_OK : SMG_UNSUPPORTED); /* it stores */
        assert_int_equal(strstr(smg_text_cstr(&text), "= f16vec4(") != NULL, target.storage16);
        smg_text_free(&text);
        smg_arena_destroy(arena);
    }
}

/* ---- rounding -------------------------------------------------------------------------------------------- */

#if SMG_VULKAN
/* Ties and their neighbours, both ends of the normal numbers, what overflows, what is no number; then anything. */
static double to_round(int64_t i) {
    static const double known[] = {0.0,      -0.0,      1.0,         -65504.0,   65519.996,   65520.0,
                                   1e6,      -INFINITY, NAN,         0x1p-24,    0x1p-25,     0x1.8p-25,
                                   0x3p-25,  0x1.002p0, 0x1.006p0,   0x1.0021p0, 0x1.ffcp-15, 0x1.ffep-15,
                                   0x1.01p0, 0x1.03p0,  0x1.fffp127, -0x1.ffcp0, 0x1.ffep0,   0x1p-14};
    if (i < (int64_t)SMG_COUNT_OF(known)) return (double)(float)known[i];
    uint64_t bits = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(float)ldexp((double)(int32_t)(bits >> 32), (int)(bits % 48) - 59);
}

/* y = x + w, with w 0, is x as its type has it: by groups where rows of 64 are, by elements where they are of 65. */
static void round_on_device(glsl_fixture *f, smg_type type) {
    smg_arena *arena;
    smg_spirv_module module;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    int lanes = (int)f->target.subgroup_size;
    smg_kernel *k = hand_strided_of(arena, (hand_lanes){1, lanes, 4, lanes}, SMG_TYPE_F32, type);
    glsl_compile(f, arena, k, &f->target, &module);
    glsl_built made = glsl_build(f, k, &f->target, &module);
    for (int64_t s = 61; s < 63; s++) {
        glsl_values v;
        uint32_t bad[4];
        glsl_fill(k, &s, &v);
        for (int64_t i = 0; i < v.count[0]; i++) v.data[0][i] = to_round(i);
        for (int64_t i = 0; i < v.count[1]; i++) v.data[1][i] = 0;
        glsl_run_device(f, k, &made, &s, &v, bad);
        for (int64_t i = 0; i < v.count[2]; i++) {
            double x = to_round(i), y = v.data[2][i];
            double want = type == SMG_TYPE_F16 ? smg_half_value(smg_half_of(x)) : smg_bf16_value(smg_bf16_of(x));
            if (y != want && !(isnan(y) && isnan(want))) fail_msg("%a is stored as %a, must be %a", x, y, want);
        }
        for (int b = 0; b < k->buffers.count; b++) free(v.data[b]);
    }
    smg_vk_pipeline_destroy(made.pipeline);
    smg_arena_destroy(arena);
}
#endif

static void test_rounding(void **state) {
    glsl_fixture *f = *state;
#if SMG_VULKAN
    for (int bf16 = 0; bf16 < 2 && f->device && f->target.storage16; bf16++)
        round_on_device(f, bf16 ? SMG_TYPE_BF16 : SMG_TYPE_F16);
#endif
    if (!f->device) skip();
}

/* Where lanes are the elements of one vector register, halves are read and written as words. */
static void test_words(void **state) {
    glsl_fixture *f = *state;
    static const char *const elements[] = {"f16vec4 w_x[]", "g_y[", NULL};
    static const char *const words[] = {"uvec2 w_x[]", "unpackHalf2x16(u", "uint16BitsToFloat16(uint16_t(smg_half(",
                                        NULL};
    smg_target target = glsl_full_target(8, false);
    for (int one = 0; one < 2; one++) {
        smg_arena *arena;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        target.subgroup_max = 8;
        target.core_lanes = one ? 8 : 1024;
        smg_kernel *k = hand_strided_of(arena, (hand_lanes){1, 8, 4, 8}, SMG_TYPE_F16, SMG_TYPE_F16);
        glsl_expect_parts(f, k, &target, one ? words : elements);
        smg_arena_destroy(arena);
    }
}

/* Lanes have pairs of columns. Rows lie 16 apart, or 16 n; the second block of rows is not whole. */
static const char stored[] = "kernel stored\n"
                             "lanes 32 subgroup 32 numbered\n"
                             "symbol n <= 4096\n"
                             "axis i = 13 tile 8 grid\n"
                             "axis j = 16 tile 16\n"
                             "grid i\n"
                             "matrix 8 8 8 f16 registers column*2 lanes column*4:2 row*8\n"
                             "layout 0 = [i, j] registers j*2 j*2:8 lanes j*4:2 i*8\n"
                             "buffer x f32 [208] value 0\n"
                             "buffer y f16 [13*%s] value 1 written\n"
                             "access 0 = x at [0] i*[16] j*[1]\n"
                             "access 1 = y at [0] i*[%s] j*[1]\n"
                             "code\n"
                             "  store 1 over [i, j] layout 0 = load(0)\n";

static void test_stored_matrices(void **state) {
    static const char *const whole[] = {"coopMatStore(coopmat<float16_t, ", "else", "p_y[", NULL};
    glsl_fixture *f = *state;
    smg_target target = glsl_full_target(32, false);
    for (int constant = 0; constant < 2; constant++) {
        smg_arena *arena;
        smg_text text;
        char made[sizeof stored + 8];
        const char *apart = constant ? "16" : "16*n";
        snprintf(made, sizeof made, stored, apart, apart);
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_kernel *k = glsl_parse(f, arena, made);
        glsl_expect_parts(f, k, &target, constant ? whole : whole + 2);
        smg_instr *store = &k->code.items[0];
        assert_int_equal(store->matrices, constant);
        assert_int_equal(store->wide[constant].width, SMG_PAIR);
        if (smg_kernel_verify(f->ctx, k) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        smg_text_init(&text, f->ctx);
        smg_kernel_print(k, &text);
        assert_non_null(strstr(smg_text_cstr(&text), constant ? "by 8 j matrices else by 2 j over" : "1 by 2 j over"));
        smg_kernel *again = glsl_parse(f, arena, smg_text_cstr(&text));
        assert_int_equal(again->code.items[0].wide[constant].width, SMG_PAIR);
        smg_text_free(&text);
        store->wide[constant].width = SMG_WIDE; /* no lane has so many side by side */
        assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
        assert_non_null(strstr(smg_context_error(f->ctx), "no lane owns runs of 4 along axis 'j'"));
        smg_context_clear_error(f->ctx);
        smg_arena_destroy(arena);
    }
}

/* ---- stores by neighbours ---------------------------------------------------------------------------------- */

/* A lane has a row's columns 0, 1, 4 and 5, or 2, 3, 6 and 7, of four rows in turn; rows of 27 begin at odd elements. Lanes
 * give each other what makes runs of eight columns. */
static const char exchanged[] = "kernel exchanged\n"
                                "lanes 16 subgroup 8 numbered\n"
                                "axis i = 13 tile 8 grid\n"
                                "axis j = 27 tile 16 grid\n"
                                "grid i, j\n"
                                "layout 0 = [i, j] registers j*2 j*2:4 i*2:4 lanes j*2:2 i*4 subgroups j*2:8\n"
                                "buffer x f32 [351] value 0\n"
                                "buffer c f32 [27] value 1\n"
                                "buffer y f16 [351] value 2 written\n"
                                "access 0 = x at [0] i*[27] j*[1]\n"
                                "access 1 = c at [0] j*[1]\n"
                                "access 2 = y at [0] i*[27] j*[1]\n"
                                "code\n"
                                "  store 2 exchanged over [i, j] layout 0 = add(load(0), load(1))\n";

static void test_exchanged_stores(void **state) {
    glsl_fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_trade trade;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = glsl_parse(f, arena, exchanged);
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_kernel_print(k, &text);
    assert_non_null(strstr(smg_text_cstr(&text), "store 2 exchanged over"));
    smg_text_free(&text);
    assert_true(smg_kernel_trades(k, &k->code.items[0], &trade));
    assert_true(trade.lane[0] == 4 && trade.lane[1] == 2 && trade.rows[0] == 2 && trade.rows[1] == 1);
    assert_true(trade.columns[0] == 1 && trade.columns[1] == 4);
    k->buffers.items[2].type = SMG_TYPE_F32; /* whole words */
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
    smg_context_clear_error(f->ctx);
#if SMG_VULKAN
    if (f->device && f->target.subgroup_size == 8 && f->target.storage16 && f->target.fp16) {
        smg_spirv_module module;
        glsl_values v;
        smg_target target = f->target;
        uint32_t bad[4];
        int64_t none = 0;
        k->buffers.items[2].type = SMG_TYPE_F16;
        target.core_lanes = 1024; /* of a GPU */
        glsl_compile(f, arena, k, &target, &module);
        assert_true(k->code.items[0].exchanged);
        glsl_built made = glsl_build(f, k, &target, &module);
        glsl_fill(k, &none, &v);
        glsl_run_device(f, k, &made, &none, &v, bad);
        for (int64_t i = 0; i < v.count[2]; i++) {
            double want = smg_half_value(smg_half_of((double)((float)v.data[0][i] + (float)v.data[1][i % 27])));
            if (v.data[2][i] != want) fail_msg("element %d is %g, not %g", (int)i, v.data[2][i], want);
        }
        smg_vk_pipeline_destroy(made.pipeline);
        for (int b = 0; b < k->buffers.count; b++) free(v.data[b]);
    }
#endif
    smg_arena_destroy(arena);
}

/* ---- matrices in shared memory ------------------------------------------------------------------------------ */

/* Lanes have a column of a matrix each. The second block of rows is not whole, and goes element by element. */
static const char spilled[] = "kernel spilled\n"
                              "lanes 16 subgroup 8 numbered\n"
                              "axis i = 13 tile 8 grid\n"
                              "axis j = 16 tile 16\n"
                              "grid i\n"
                              "matrix 8 8 8 f16 registers row*8 lanes column*8\n"
                              "layout 0 = [i, j] registers i*8 lanes j*8 subgroups j*2:8\n"
                              "layout 1 = [i, j] registers j*8 lanes i*8 subgroups j*2:8\n"
                              "buffer x f32 [208] value 0\n"
                              "buffer y f32 [208] value 1 written\n"
                              "tile s float register [i, j] layout 0\n"
                              "tile t f16 shared [i, j] pad 8\n"
                              "access 0 = x at [0] i*[16] j*[1]\n"
                              "access 1 = y at [0] i*[16] j*[1]\n"
                              "code\n"
                              "  set s = load(0)\n"
                              "  spill t by 4 j matrices = s\n"
                              "  barrier\n"
                              "  store 1 over [i, j] layout 1 = t\n";

#if SMG_VULKAN
static void run_spilled(glsl_fixture *f, smg_arena *arena, smg_kernel *k, const char *text) {
    smg_spirv_module module;
    glsl_values v;
    uint32_t bad[4];
    int64_t none = 0;
    assert_int_equal(smg_spirv_compile(f->compiler, arena, k->name, text, NULL, &module), SMG_OK);
    glsl_built made = glsl_build(f, k, &f->target, &module);
    glsl_fill(k, &none, &v);
    glsl_run_device(f, k, &made, &none, &v, bad);
    for (int64_t i = 0; i < v.count[1]; i++) assert_true(v.data[1][i] == smg_half_value(smg_half_of(v.data[0][i])));
    smg_vk_pipeline_destroy(made.pipeline);
    for (int b = 0; b < k->buffers.count; b++) free(v.data[b]);
}
#endif

static void test_spilled_matrices(void **state) {
    glsl_fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = glsl_parse(f, arena, spilled);
    if (smg_kernel_verify(f->ctx, k) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    smg_text_init(&text, f->ctx);
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "coopMatStore(half0, t_t, "));
#if SMG_VULKAN
    bool lies = false; /* as the text says */
    for (int i = 0; i < f->target.fragment_count; i++)
        lies = lies || smg_layout_equal(&f->target.fragments[i].layout, &k->matrix.sums);
    if (f->device && lies && f->target.subgroup_size == 8 && f->target.fp16)
        run_spilled(f, arena, k, smg_text_cstr(&text));
#endif
    smg_text_free(&text);
    k->code.items[1].wide[1] = (smg_wide){.width = SMG_PAIR, .axis = 1}; /* which is of stores */
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f->ctx), "and it does not store"));
    smg_context_clear_error(f->ctx);
    k->code.items[1].wide[1].width = 0;
    k->tiles.items[1].type = SMG_TYPE_F32; /* matrices of halves */
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
    smg_context_clear_error(f->ctx);
    smg_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanged_stores),
        cmocka_unit_test(test_spilled_matrices),
        cmocka_unit_test(test_stored_matrices),
        cmocka_unit_test(test_narrow_tiles),
        cmocka_unit_test(test_eights),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_narrow_groups),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, glsl_set_up, glsl_tear_down);
}
