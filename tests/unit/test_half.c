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
    void (*narrow_all)(const void *floats, size_t count, uint16_t *out);
    void (*widen_all)(const uint16_t *words, size_t count, void *out_floats);
    uint16_t infinite;
    smg_type type;
} form;

static const form forms[] = {
    {"f16", smg_half_of, smg_half_value, smg_halves_of, smg_half_values, 0x7c00, SMG_TYPE_F16},
    {"bf16", smg_bf16_of, smg_bf16_value, smg_bf16s_of, smg_bf16_values, 0x7f80, SMG_TYPE_BF16}};

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

/* Arrays, at any address, have the bits of elements: all words, and of f32 what lies about each of them, and others. */
static void test_arrays(void **unused) {
    enum { WORDS = 65536, NEAR = 3, ALL = WORDS * (2 * NEAR + 2) };
    static uint16_t words[WORDS], narrow[ALL];
    static uint8_t room[4 * ALL + 1];
    uint32_t random = 1;
    (void)unused;
    for (int i = 0; i < WORDS; i++) words[i] = (uint16_t)i;
    for (size_t k = 0; k < SMG_COUNT_OF(forms); k++) {
        const form *f = &forms[k];
        uint32_t middle = f->type == SMG_TYPE_F16 ? 0x1000 : 0x8000; /* between two words, in bits of f32 */
        f->widen_all(words, WORDS, room + 1);
        static float values[WORDS];
        memcpy(values, room + 1, sizeof(values));
        for (int i = 0; i < WORDS; i++) {
            float want = (float)f->widen(words[i]);
            if (isnan(want) ? !isnan(values[i]) : memcmp(&want, &values[i], sizeof(want)) != 0)
                fail_msg("%s: 0x%04x is %.9g, must be %.9g", f->name, (unsigned)i, (double)values[i], (double)want);
        }
        for (int i = 0; i < ALL; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i % WORDS], sizeof(bits));
            int about = i / WORDS - NEAR; /* itself, what is just beside it and beside a middle */
            bits += about < 0 ? middle + (uint32_t)(about + 2) : (uint32_t)about;
            random = random * 1664525u + 1013904223u;
            if (i / WORDS == 2 * NEAR + 1) bits = random;
            memcpy(room + 1 + 4 * (size_t)i, &bits, sizeof(bits));
        }
        f->narrow_all(room + 1, ALL, narrow);
        for (int i = 0; i < ALL; i++) {
            float value;
            memcpy(&value, room + 1 + 4 * (size_t)i, sizeof(value));
            if (narrow[i] != f->narrow((double)value)) expect_bits(f, (double)value, narrow[i]);
        }
    }
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
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_stores),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
