/* Floats of 16 bits: every one of them there and back, what lies between two, what is too large, and the places that
 * round so: element types, stores of kernels in both modes of the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "kernel/kernel.h"

typedef struct form {
    const char *name;
    uint16_t (*narrow)(double value);
    double (*widen)(uint16_t bits);
    uint16_t infinite;
    smg_type type;
} form;

static const form forms[] = {{"f16", smg_half_of, smg_half_value, 0x7c00, SMG_TYPE_F16},
                             {"bf16", smg_bf16_of, smg_bf16_value, 0x7f80, SMG_TYPE_BF16}};

static void expect_bits(const form *f, double value, int bits) {
    int got = f->narrow(value);
    if (got != bits) fail_msg("%s: %.17g is 0x%04x, must be 0x%04x", f->name, value, (unsigned)got, (unsigned)bits);
}

/* All finite ones, their middles, and what is just beside a middle: ties go to the even one. */
static void check_neighbours(const form *f) {
    for (int bits = 0; bits < f->infinite; bits++) {
        double low = f->widen((uint16_t)bits);
        double high =
            bits + 1 < f->infinite ? f->widen((uint16_t)(bits + 1)) : 2 * low - f->widen((uint16_t)(bits - 1));
        double middle = low + (high - low) / 2;
        assert_true(low < high);
        expect_bits(f, low, bits);
        expect_bits(f, -low, bits | 0x8000);
        expect_bits(f, middle, bits + bits % 2);
        expect_bits(f, nextafter(middle, 0), bits);
        expect_bits(f, nextafter(middle, 1e300), bits + 1);
        expect_bits(f, -nextafter(middle, 1e300), (bits + 1) | 0x8000);
    }
}

static void test_all_values(void **unused) {
    (void)unused;
    for (size_t i = 0; i < SMG_COUNT_OF(forms); i++) {
        const form *f = &forms[i];
        check_neighbours(f);
        expect_bits(f, (double)INFINITY, f->infinite);
        expect_bits(f, -(double)INFINITY, f->infinite | 0x8000);
        expect_bits(f, 1e300, f->infinite);
        expect_bits(f, 1e-300, 0);
        assert_true(isnan(f->widen(f->narrow((double)NAN))));
        assert_true(isinf(f->widen(f->infinite)) && isinf(f->widen(f->infinite | 0x8000)));
        assert_true(isnan(f->widen((uint16_t)(f->infinite + 1))));
    }
    assert_true(smg_half_value(0x3555) == 0.333251953125 && smg_bf16_value(0x3eab) == 0.333984375);
}

/* What a type says of its limits is what it stores. */
static void test_types(void **unused) {
    static const smg_type types[] = {SMG_TYPE_F32, SMG_TYPE_F16, SMG_TYPE_BF16};
    (void)unused;
    for (size_t i = 0; i < SMG_COUNT_OF(types); i++) {
        double limit = smg_type_limit(types[i]), epsilon = smg_type_epsilon(types[i]);
        assert_true(isinf(smg_type_stored(types[i], limit)) && !isinf(smg_type_stored(types[i], nextafter(limit, 0))));
        assert_true(smg_type_stored(types[i], 1 + epsilon) == 1.0);
        assert_true(smg_type_stored(types[i], nextafter(1 + epsilon, 2)) == 1 + 2 * epsilon);
    }
    assert_true(smg_type_stored(SMG_TYPE_I32, 16777217.0) == 16777217.0 && smg_type_epsilon(SMG_TYPE_I32) == 0);
}

static const char kernel_text[] = "kernel thirds\n"
                                  "lanes 8 subgroup 8\n"
                                  "axis i = 40 tile 24 grid\n"
                                  "grid i\n"
                                  "layout 0 = [i] lanes i*8 repeat i*3\n"
                                  "buffer x f32 [40] value 0\n"
                                  "buffer y %s [40] value 1 written\n"
                                  "access 0 = x at [0] i*[1]\n"
                                  "access 1 = y at [0] i*[1]\n"
                                  "code\n"
                                  "  store 1 over [i] layout 0 = div(load(0), 3)\n";

typedef smg_status interpret(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                             bool single);

static void test_stores(void **unused) {
    static interpret *const modes[] = {smg_kernel_interpret, smg_kernel_interpret_lanes};
    (void)unused;
    for (size_t i = 0; i < 2 * SMG_COUNT_OF(forms) * SMG_COUNT_OF(modes); i++) {
        const form *f = &forms[i % 2];
        bool single = i / 4 > 0;
        smg_context *ctx = NULL;
        smg_arena *arena = NULL;
        smg_sizes *sizes = NULL;
        smg_kernel *k = NULL;
        char text[1024];
        double x[40], y[40];
        snprintf(text, sizeof(text), kernel_text, f->name);
        assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(smg_sizes_create(arena, &sizes), SMG_OK);
        if (smg_kernel_parse(arena, sizes, text, &k) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        if (smg_kernel_verify(ctx, k) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        for (int e = 0; e < 40; e++) x[e] = e == 39 ? 1e39 : e * 1.25 - 7;
        smg_karray arrays[2] = {{x, 40}, {y, 40}};
        assert_int_equal(modes[i / 2 % 2](ctx, k, NULL, arrays, single), SMG_OK);
        for (int e = 0; e < 40; e++) {
            double third = single ? (double)(float)(x[e] / 3) : x[e] / 3, want = f->widen(f->narrow(third));
            if (!(y[e] == want)) fail_msg("%s: element %d is %.17g, must be %.17g", f->name, e, y[e], want);
        }
        smg_arena_destroy(arena);
        smg_context_destroy(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_values),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_stores),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
