/* glsl: kernels built by hand in several shapes of lanes, as texts and on the device, and what is refused. */
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

static smg_kernel *elementwise_f32(smg_arena *arena, hand_lanes l) {
    return hand_elementwise(arena, l, SMG_TYPE_F32);
}

static smg_kernel *elementwise_f16(smg_arena *arena, hand_lanes l) {
    return hand_elementwise(arena, l, SMG_TYPE_F16);
}

static smg_kernel *elementwise_bf16(smg_arena *arena, hand_lanes l) {
    return hand_elementwise(arena, l, SMG_TYPE_BF16);
}

static void test_elementwise(void **state) {
    glsl_check(state, elementwise_f32);
    glsl_check(state, elementwise_f16);
    glsl_check(state, elementwise_bf16);
}

static void test_row_loop(void **state) {
    glsl_check(state, hand_row_loop);
}

static void test_product(void **state) {
    static hand_maker *const kinds[] = {hand_product,        hand_deep_product, hand_clamped_product,
                                        hand_clamped_slices, hand_ring_of_two,  hand_ring_of_three};
    glsl_check_kinds(state, kinds, SMG_COUNT_OF(kinds));
}

/* Groups of four rows, and no select behind a load. */
static void test_clamped(void **state) {
    static const char *const parts[] = {"fa[i + 3] = four[3];", "int r_m = (even || at_m + c_m < ", NULL};
    glsl_fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = hand_clamped_product(arena, (hand_lanes){.rows = 4, .cols = 8, .vec = 4, .subgroup = 8});
    glsl_expect_parts(f, k, &target, parts);
    k = hand_clamped_slices(arena, (hand_lanes){.rows = 4, .cols = 8, .vec = 1, .subgroup = 8});
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_OK);
    glsl_write_text(f, k, &target, &text);
    const char *fetch = strstr(smg_text_cstr(&text), "int r_m"), *end = strstr(fetch, "t_next_a");
    assert_non_null(end);
    for (const char *at = fetch; at < end; at++) assert_false(strncmp(at, "0.0", 3) == 0);
    smg_text_free(&text);
    smg_arena_destroy(arena);
}

/* By address, a subgroup a row lane, where the device's lanes are the elements of one register; everywhere else element
 * by element. */
static void test_views(void **state) {
    glsl_fixture *f = *state;
    glsl_check(state, hand_viewed_product);
    smg_target target = glsl_full_target(8, false);
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
        smg_kernel *k = hand_viewed_product(arena, (hand_lanes){4, 8, 1, 8});
        glsl_write_text(f, k, &target, &text);
        assert_int_equal(smg_glsl_describe(f->ctx, k, &target, &face), SMG_OK);
        assert_int_equal(face.address_count, addresses ? 2 : 0);
        assert_int_equal(strstr(smg_text_cstr(&text), "smg_across(n0, n1)") != NULL, addresses);
        glsl_compile(f, arena, k, &target, &module);
        smg_text_free(&text);
        smg_arena_destroy(arena);
    }
}

/* The left factor from the lane's own registers, the right one by address where the program says so: element by
 * element, and where columns or k lie by four, four at once. */
static void test_own(void **state) {
    static hand_maker *const kinds[] = {hand_own_product, hand_own_columns, hand_own_turned};
    static const char *const by_address[][5] = {
        {"smg_floats b0_0 = smg_floats(push.a_b", "fb0 = vec4(b0_0.v[0], b0_1.v[0], ", "s1 = fma(vec4(fa0), fb0, s1);",
         "t_c[0] = s0[0];", NULL},
        {"smg_floats4 b0_0 = smg_floats4(push.a_b", "fb0 = b3_0.v[1];", "s3 = fma(vec4(fa1), fb0, s3);", NULL},
        {"smg_floats4 b0_1 = smg_floats4(push.a_b", "c1 = b0_5.v[0];", "fb3 = vec4(c0[3], c1[3], c2[3], c3[3]);",
         "s1 = fma(vec4(fa3), fb3, s1);", NULL}};
    static const char *const by_binding[] = {"int b0_0 = ", "fb0 = vec4(g_b[b0_0], ", "fma(vec4(fa0), fb0, ", NULL};
    glsl_fixture *f = *state;
    glsl_check_kinds(state, kinds, SMG_COUNT_OF(kinds));
    smg_target target = glsl_full_target(8, false);
    target.core_lanes = target.subgroup_max = 8;
    target.subgroup_selectable = 1;
    target.max_push_bytes = 256;
    for (int addresses = 0; addresses < 2; addresses++)
        for (size_t i = 0; i < SMG_COUNT_OF(kinds); i++) {
            smg_arena *arena;
            target.buffer_addresses = addresses;
            assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
            glsl_expect_parts(f, kinds[i](arena, (hand_lanes){8, 1, 1, 8}), &target,
                              addresses ? by_address[i] : by_binding);
            smg_arena_destroy(arena);
        }
}

/* Rows of 24 and of 67 elements (check): in groups, and one by one. */
static void test_strided(void **state) {
    glsl_fixture *f = *state;
    static const char *const parts[] = {" & 3) == 0", " >> 2) + ((", NULL};
    smg_arena *arena;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_expect_parts(f, hand_strided(arena, (hand_lanes){1, 64, 4, 8}), &target, parts);
    smg_arena_destroy(arena);
    glsl_check(state, hand_strided);
    glsl_check(state, hand_strided_f16);
    glsl_check(state, hand_strided_bf16);
}

/* c[m,n] += sum k: a[m,k] b[k,n], where they lie; rows of a as above. */
static smg_kernel *strided_rows(smg_arena *arena, hand_lanes l) {
    smg_kernel *k = hand_kernel(arena, "strided_rows");
    int m = hand_axis(k, "m", "5", 2 * l.rows, true), n = hand_axis(k, "n", "16", 16, false);
    int d = hand_axis(k, "k", "s+3", 8, false);
    int a = hand_buffer(k, "a", SMG_TYPE_F32, "5*s+15", false), b = hand_buffer(k, "b", SMG_TYPE_F32, "16*s+48", false);
    int c = hand_buffer(k, "c", SMG_TYPE_F32, "80", true);
    int from_a = hand_access(k, a, 2, m, "s+3", d, "1"), from_b = hand_access(k, b, 2, d, "16", n, "1");
    int to = hand_access(k, c, 2, m, "16", n, "1");
    int ta = hand_tile(k, "a", SMG_VIEW, 0, 2, m, d), tb = hand_tile(k, "b", SMG_VIEW, 0, 2, d, n);
    int tc = hand_tile(k, "c", SMG_REGISTER, 0, 2, m, n);
    k->tiles.items[ta].access = from_a;
    k->tiles.items[tb].access = from_b;
    hand_multiply(k, tc, ta, tb, d);
    hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, tc), 2, m, n)->a = to;
    return hand_dealt(k, l, 1, m, 1, false);
}

static void test_strided_rows(void **state) {
    glsl_fixture *f = *state;
    static const char *const parts[] = {" & 3) == 0", "fa[i][3] = ", NULL};
    smg_arena *arena;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_expect_parts(f, strided_rows(arena, (hand_lanes){1, 8, 4, 8}), &target, parts);
    smg_arena_destroy(arena);
    glsl_check(state, strided_rows);
}

/* An index is loaded and checked once a row, in front of the loop over columns; rows of the table come by fours. What was
 * bad is reported behind both loops. */
static void test_gather(void **state) {
    glsl_fixture *f = *state;
    static const char *const parts[] = {"w_table[", "w_bias[", NULL};
    smg_arena *arena;
    smg_text text;
    smg_target target = glsl_full_target(8, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = hand_gather(arena, (hand_lanes){2, 4, 4, 8});
    glsl_expect_parts(f, k, &target, parts);
    glsl_write_text(f, k, &target, &text);
    const char *loaded = strstr(smg_text_cstr(&text), "= g_id["), *inner = strstr(smg_text_cstr(&text), "for (int j");
    assert_true(loaded != NULL && inner != NULL && loaded < inner && strstr(loaded + 1, "= g_id[") == NULL);
    assert_true(strstr(inner, "bad = true") == NULL);
    const char *reported = strstr(inner, "if (bad) smg_report(");
    assert_true(reported != NULL && strstr(reported + 1, "if (bad)") == NULL);
    smg_text_free(&text);
    smg_arena_destroy(arena);
    glsl_check(state, hand_gather);
}

static void test_columns(void **state) {
    glsl_check(state, hand_columns);
}

/* A bad index is clamped and reported with its value and limit. */
static void test_bad_index(void **state) {
    glsl_fixture *f = *state;
    if (!f->device) skip();
#if SMG_VULKAN
    smg_arena *arena;
    smg_spirv_module module;
    uint32_t bad[4] = {0};
    int64_t symbols[1] = {9};
    glsl_values v;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = hand_gather(arena, (hand_lanes){2, 8, 1, 1});
    glsl_compile(f, arena, k, &f->target, &module);
    glsl_fill(k, symbols, &v);
    v.data[0][4] = 77.0;
    glsl_built made = glsl_build(f, k, &f->target, &module);
    glsl_run_device(f, k, &made, symbols, &v, bad);
    smg_vk_pipeline_destroy(made.pipeline);
    assert_int_equal(bad[0], 1);
    assert_int_equal(bad[1], 77);
    assert_int_equal(bad[2], 5);
    assert_true(fabs(v.data[2][4 * 20] - v.data[1][4 * 20] - v.data[3][0]) < 1e-6); /* row 4, the last */
    for (int b = 0; b < 4; b++) free(v.data[b]);
    smg_arena_destroy(arena);
#endif
}

#if SMG_VULKAN
/* y = prim(x), or prim(x, literal), on the device, of the first v->count[0] elements of v->data[0]. */
static void map_on_device(glsl_fixture *f, smg_prim prim, double literal, int64_t elements, const double *x,
                          double *y) {
    smg_arena *arena;
    smg_spirv_module module;
    uint32_t bad[4] = {0};
    glsl_values v;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = hand_kernel(arena, "map");
    int n = hand_axis(k, "n", "s", 32, true);
    int from = hand_access(k, hand_buffer(k, "x", SMG_TYPE_F32, "s", false), 1, n, "1");
    int to = hand_access(k, hand_buffer(k, "y", SMG_TYPE_F32, "s", true), 1, n, "1");
    smg_expr value = hand_load(k, from);
    value =
        smg_prim_arity(prim) == 1 ? hand_make1(k, prim, value) : hand_make2(k, prim, value, hand_number(k, literal));
    hand_instr(k, SMG_I_STORE, -1, value, 1, n)->a = to;
    hand_distributed(k, (hand_lanes){1, 8, 1, 1}, 1, -1);
    glsl_compile(f, arena, k, &f->target, &module);
    glsl_fill(k, &elements, &v);
    memcpy(v.data[0], x, (size_t)elements * sizeof *x);
    glsl_built made = glsl_build(f, k, &f->target, &module);
    glsl_run_device(f, k, &made, &elements, &v, bad);
    smg_vk_pipeline_destroy(made.pipeline);
    memcpy(y, v.data[1], (size_t)elements * sizeof *y);
    for (int b = 0; b < 2; b++) free(v.data[b]);
    smg_arena_destroy(arena);
}
#endif

/* From -6 to 6 in steps of 1/64, both ends and NaN: small values are as exact for their size as large ones, where
 * half of 1 + erf(x / sqrt(2)) in f32 is off by a tenth of itself at -5. */
static void test_normcdf(void **state) {
    glsl_fixture *f = *state;
    if (!f->device) skip();
#if SMG_VULKAN
    enum { STEPS = 64 * 12 + 1, ENDS = 3 };
    double x[STEPS + ENDS] = {[STEPS] = -INFINITY, [STEPS + 1] = INFINITY, [STEPS + 2] = NAN}, y[STEPS + ENDS];
    for (int i = 0; i < STEPS; i++) x[i] = (double)i / 64 - 6;
    map_on_device(f, SMG_PRIM_NORMCDF, 0, STEPS + ENDS, x, y);
    for (int i = 0; i < STEPS; i++) {
        double want = smg_prim_eval(SMG_PRIM_NORMCDF, SMG_KIND_FLOAT, x[i], 0, 0);
        double most = x[i] < -3 ? 1e-5 : x[i] < 0 ? 3e-6 : 4e-7;
        if (!(fabs(y[i] - want) <= most * want)) fail_msg("normcdf(%g) is %.9g, not %.9g", x[i], y[i], want);
    }
    assert_true(y[STEPS] == 0 && y[STEPS + 1] == 1 && isnan(y[STEPS + 2]));
#endif
}

/* Bounds that are literals let a NaN through, as others do. */
static void test_bounded_by_literals(void **state) {
    glsl_fixture *f = *state;
    if (!f->device) skip();
#if SMG_VULKAN
    static const double x[] = {-INFINITY, -3, 0, 0.5, 2, INFINITY, NAN};
    double y[SMG_COUNT_OF(x)];
    for (int max = 0; max < 2; max++) {
        smg_prim prim = max ? SMG_PRIM_MAX : SMG_PRIM_MIN;
        map_on_device(f, prim, 0.5, SMG_COUNT_OF(x), x, y);
        for (size_t i = 0; i < SMG_COUNT_OF(x); i++) {
            double want = smg_prim_eval(prim, SMG_KIND_FLOAT, x[i], 0.5, 0);
            if (y[i] != want && !(isnan(y[i]) && isnan(want))) fail_msg("of %g: %g, not %g", x[i], y[i], want);
        }
    }
#endif
}

/* Towards 0, to the ends of what there is, NaN to 0: the device's own conversion, or by the bits where that branches. */
static void test_to_int(void **state) {
    glsl_fixture *f = *state;
    if (!f->device) skip();
#if SMG_VULKAN
    static const double x[] = {0,         -0.0,    0.5,       -0.99999,     1,           -1.5,         7.75,
                               8388607.5, 8388608, -16777215, 2147483520.0, -2147483520, 2147483648.0, -2147483648,
                               1e20,      -1e20,   1e-40,     INFINITY,     -INFINITY,   NAN};
    double y[SMG_COUNT_OF(x)];
    map_on_device(f, SMG_PRIM_TO_INT, 0, SMG_COUNT_OF(x), x, y);
    for (size_t i = 0; i < SMG_COUNT_OF(x); i++) {
        double want = smg_prim_eval(SMG_PRIM_TO_INT, SMG_KIND_INT, x[i], 0, 0);
        if (y[i] != (double)(float)want) fail_msg("of %.9g: %.9g, not %.9g", x[i], y[i], want);
    }
#endif
}

/* Registers whose elements are in the tile in every lane are not asked whether they are. */
static void test_uneven_tile(void **state) {
    static const struct {
        int extent;
        const char *asked; /* NULL: none is */
    } cases[] = {{31, "if (c_i < 31)"},
                 {32, "if ((j < 1 || c_i < 32))"},
                 {70, "if ((j < 2 || c_i < 70))"},
                 {127, "if ((j < 3 || c_i < 127))"},
                 {128, NULL}};
    static const char format[] = "kernel uneven\nlanes 32 subgroup 8\naxis i = %d tile %d\n"
                                 "layout 0 = [i] registers i*4:32 lanes i*8 subgroups i*4:8\n"
                                 "buffer x f32 [%d] value 0\nbuffer y f32 [%d] value 1 written\n"
                                 "tile r float register [i] layout 0\naccess 0 = x at [0] i*[1]\n"
                                 "access 1 = y at [0] i*[1]\ncode\n  set r = load(0)\n"
                                 "  store 1 over [i] layout 0 = mul(r, r)\n";
    glsl_fixture *f = *state;
    smg_target target = glsl_full_target(8, false);
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        int n = cases[i].extent;
        char source[sizeof format + 32];
        smg_arena *arena;
        smg_text text;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        (void)snprintf(source, sizeof source, format, n, n, n, n);
        smg_kernel *k = glsl_parse(f, arena, source);
        smg_text_init(&text, f->ctx);
        assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_OK);
        if (cases[i].asked != NULL) assert_non_null(strstr(smg_text_cstr(&text), cases[i].asked));
        if (cases[i].asked == NULL) assert_null(strstr(smg_text_cstr(&text), "c_i <"));
        smg_text_free(&text);
        if (f->device && f->target.subgroup_size == 8) glsl_check_here(f, arena, k);
        smg_arena_destroy(arena);
    }
}

/* A sum over more columns than a lane has registers is a loop, one over fewer is written out. */
static void test_long_columns(void **state) {
    static const char *const extents[] = {"64", "65536"};
    glsl_fixture *f = *state;
    smg_target target = glsl_full_target(32, false);
    target.registers_lane = 255;
    for (int i = 0; i < 2; i++) {
        smg_arena *arena;
        smg_text text;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_text_init(&text, f->ctx);
        smg_kernel *k = hand_kernel(arena, "long");
        int d = hand_axis(k, "d", extents[i], i == 0 ? 64 : 65536, false);
        int from = hand_access(k, hand_buffer(k, "x", SMG_TYPE_F32, extents[i], false), 1, d, "1");
        int to = hand_access(k, hand_buffer(k, "y", SMG_TYPE_F32, "1", true), 0);
        int sum = hand_tile(k, "sum", SMG_REGISTER, 0, 0);
        hand_instr(k, SMG_I_REDUCE, sum, hand_load(k, from), 1, d)->combine = SMG_COMBINE_ADD;
        hand_instr(k, SMG_I_STORE, -1, hand_of_tile(k, sum), 0)->a = to;
        hand_distributed(k, (hand_lanes){1, 32, 1, 32}, 1, -1);
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
    glsl_fixture *f = *state;
    smg_arena *arena;
    smg_text text;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_text_init(&text, f->ctx);
    smg_target target = glsl_full_target(32, false);
    smg_kernel *k = hand_product(arena, (hand_lanes){32, 64, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_UNSUPPORTED);
    smg_context_clear_error(f->ctx);
    target.max_push_bytes = 0;
    k = hand_product(arena, (hand_lanes){2, 8, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_UNSUPPORTED);
    smg_context_clear_error(f->ctx);
    target = glsl_full_target(32, true);
    target.subgroup_shuffle = 0;
    k = hand_row_loop(arena, (hand_lanes){2, 32, 1, 32});
    assert_int_equal(smg_glsl_write(f->ctx, k, &target, &text), SMG_INTERNAL);
    assert_string_equal(smg_context_error(f->ctx), "kernel row_loop: a reduction's lanes are not joined");
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_INVALID);
    smg_context_clear_error(f->ctx);
    assert_int_equal(text.length, 0);
    smg_text_free(&text);
    smg_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_row_loop),
        cmocka_unit_test(test_product),     cmocka_unit_test(test_clamped),
        cmocka_unit_test(test_gather),      cmocka_unit_test(test_columns),
        cmocka_unit_test(test_bad_index),   cmocka_unit_test(test_views),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_own),
        cmocka_unit_test(test_uneven_tile), cmocka_unit_test(test_long_columns),
        cmocka_unit_test(test_strided),     cmocka_unit_test(test_strided_rows),
        cmocka_unit_test(test_normcdf),     cmocka_unit_test(test_bounded_by_literals),
        cmocka_unit_test(test_to_int),
    };
    return cmocka_run_group_tests(tests, glsl_set_up, glsl_tear_down);
}
