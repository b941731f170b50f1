/* Precision through the public interface, on whatever device there is: results within what the precision explains, at
 * sizes that are no multiples of anything; inputs and values that are too large; memory, of models too; weights that are bf16 in the graph; a
 * plan that is kept is one precision's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/model_case.h"

static const char layer[] = "graph layer\ndim b\ndim s max 512\n"
                            "x = input f32[b, s, 65]\nm = input bool[b, s, 1]\n"
                            "w = constant %s[64, 65] random seed=1\nv = constant f32[65, 64] random seed=2\n"
                            "wide = cast(w) : f32[64, 65]\n"
                            "p = contract(x, wide) \"bsi,oi->bso\"\n"
                            "r = tanh(p)\n"
                            "low = fill -1e30 : f32[]\nmasked = select(m, r, low)\n"
                            "max = reduce_max(masked) axis=1 keep\nc = sub(masked, max)\ne = exp(c)\n"
                            "q = contract(e, v) \"bsi,oi->bso\"\n"
                            "y = add(q, x)\n"
                            "output y = y\n";
enum { MOST = 3 * 33 * 65 };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_model *model;
    smg_tensor inputs[2];
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static void drop(fixture *f) {
    smg_model_close(f->model);
    smg_graph_destroy(f->g);
    f->model = NULL;
    f->g = NULL;
}

static int teardown(void **state) {
    fixture *f = *state;
    drop(f);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* false: there is no device. */
static bool open_layer(fixture *f, const char *weights, const char *precision, bool unfused) {
    char text[1024];
    const smg_model_desc desc = {.no_calibrate = true, .precision = precision, .unfused = unfused};
    snprintf(text, sizeof(text), layer, weights);
    drop(f);
    expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &f->g));
    smg_status status = smg_model_open_graph(f->ctx, f->g, &desc, &f->model);
    if (device_missing(f->ctx, status)) return false;
    expect_ok(f, status);
    return true;
}

static void fill(fixture *f, const int64_t *sizes) {
    for (int i = 0; i < 2; i++)
        expect_ok(f, smg_tensor_fill(f->ctx, f->g, i, sizes, SMG_FILL_RANDOM, 3, f->arena, &f->inputs[i]));
}

/* Runs at these sizes, compares, gives the largest relative error. */
static double run_and_check(fixture *f, smg_type type, const int64_t *sizes) {
    static float room[MOST];
    smg_tensor y = {.name = "y", .data = room, .bytes = sizeof(room)};
    smg_check check;
    fill(f, sizes);
    expect_ok(f, smg_model_run(f->model, f->inputs, 2, &y, 1));
    assert_string_equal(y.type, "f32");
    expect_ok(
        f, smg_compile_check(f->ctx, f->g, (smg_roundings){.stored = type}, sizes, f->inputs, 2, &y, f->arena, &check));
    if (!check.pass)
        fail_msg("%s at %lld %lld: error %g, allowed %g", smg_type_word(type), (long long)sizes[0], (long long)sizes[1],
                 check.rows[0].max_rel, check.rows[0].tolerance);
    return check.rows[0].max_rel;
}

static void results_are_near(void **state) {
    fixture *f = *state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 33}, {2, 16}};
    static const struct {
        const char *weights, *precision;
        smg_type type;
        bool unfused;
    } cases[] = {{"f32", "f16", SMG_TYPE_F16, false},  {"f32", "bf16", SMG_TYPE_BF16, false},
                 {"bf16", "f16", SMG_TYPE_F16, true},  {"f16", "bf16", SMG_TYPE_BF16, true},
                 {"bf16", "f32", SMG_TYPE_F32, false}, {"f32", NULL, SMG_TYPE_F32, false}};
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        if (!open_layer(f, cases[i].weights, cases[i].precision, cases[i].unfused)) skip();
        for (size_t n = 0; n < SMG_COUNT_OF(sizes); n++) {
            double error = run_and_check(f, cases[i].type, sizes[n]);
            assert_true(cases[i].type == SMG_TYPE_F32 || error > smg_type_epsilon(cases[i].type) / 8);
        }
    }
}

/* Patches of an image: a product over three axes, of which none lies side by side in both factors. */
static void products_over_several_axes(void **state) {
    fixture *f = *state;
    static const char text[] =
        "graph patches\ndim b\nx = input f32[b, 3, 48, 48]\n"
        "w = constant f32[64, 3, 8, 8] random seed=1\n"
        "rows = reshape(x) : f32[b, 3, 6, 8, 48]\ncells = reshape(rows) : f32[b, 3, 6, 8, 6, 8]\n"
        "y = contract(cells, w) \"ncoipj,mcij->nmop\"\noutput y = y\n";
    static const int64_t sizes[] = {1};
    for (int unfused = 0; unfused < 2; unfused++) {
        const smg_model_desc desc = {.no_calibrate = true, .precision = "f16", .unfused = unfused != 0};
        smg_tensor y = {.name = "y"};
        smg_check check;
        drop(f);
        expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &f->g));
        smg_status status = smg_model_open_graph(f->ctx, f->g, &desc, &f->model);
        if (device_missing(f->ctx, status)) skip();
        expect_ok(f, status);
        expect_ok(f, smg_tensor_fill(f->ctx, f->g, 0, sizes, SMG_FILL_RANDOM, 3, f->arena, &f->inputs[0]));
        expect_ok(f, smg_model_run(f->model, f->inputs, 1, &y, 1));
        expect_ok(f, smg_compile_check(f->ctx, f->g, (smg_roundings){.stored = SMG_TYPE_F16}, sizes, f->inputs, 1, &y,
                                       f->arena, &check));
        if (!check.pass) fail_msg("error %g, allowed %g", check.rows[0].max_rel, check.rows[0].tolerance);
    }
}

static void too_large_inputs_are_named(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {2, 33};
    if (!open_layer(f, "f32", "f16", false)) skip();
    fill(f, sizes);
    smg_tensor y = {.name = "y"};
    smg_tensor_set(&f->inputs[0], 4000, 7e4);
    assert_int_equal(smg_model_run(f->model, f->inputs, 2, &y, 1), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "'x': element 4000 is 70000, more than f16 holds"));
    smg_tensor_set(&f->inputs[0], 4000, (double)INFINITY);
    expect_ok(f, smg_model_run(f->model, f->inputs, 2, &y, 1));
    assert_true(isinf(((const float *)y.data)[4000]));
    run_and_check(f, SMG_TYPE_F16, sizes);
}

/* A value in the middle becomes infinite in f16. */
static const char peak[] = "graph peak\ndim b\nx = input f32[b, 40]\n"
                           "far = fill 300 : f32[]\nwide = mul(x, far)\nsquare = mul(wide, wide)\n"
                           "root = sqrt(square)\ny = sub(root, x)\noutput y = y\n";

static bool open_peak(fixture *f, const smg_tensor *sample, bool name) {
    const smg_model_desc desc = {.no_calibrate = true,
                                 .precision = "f16",
                                 .unfused = true,
                                 .samples = sample,
                                 .sample_count = sample != NULL ? 1 : 0,
                                 .name_overflow = name};
    drop(f);
    expect_ok(f, smg_graph_parse(f->ctx, peak, strlen(peak), "text", &f->g));
    smg_status status = smg_model_open_graph(f->ctx, f->g, &desc, &f->model);
    if (device_missing(f->ctx, status)) return false;
    expect_ok(f, status);
    return true;
}

/* With the flag the run fails and says where, without it the output is infinite; a sample mends it, also with the plan
 * from the cache, and is another plan than without. */
static void overflow_is_named(void **state) {
    fixture *f = *state;
    enum { ROWS = 3 };
    static float room[ROWS * 40];
    smg_tensor x = {.name = "x", .type = "f32", .rank = 2, .dims = {ROWS, 40}, .data = room};
    smg_tensor y = {.name = "y"};
    for (int i = 0; i < ROWS * 40; i++) room[i] = (float)(i % 7) / 16;
    for (int kept = 0; kept < 2; kept++) { /* compiled, and from the cache */
        if (!open_peak(f, NULL, true)) skip();
        room[50] = 0.5F;
        expect_ok(f, smg_model_run(f->model, &x, 1, &y, 1));
        room[50] = 2;
        assert_int_equal(smg_model_run(f->model, &x, 1, &y, 1), SMG_UNSUPPORTED);
        const char *want = "'square' becomes 360000, and f16 ends at 65520 (1 such values, this is the first)";
        if (strstr(smg_context_error(f->ctx), want) == NULL) fail_msg("%s", smg_context_error(f->ctx));
        assert_true(isinf(((const float *)y.data)[50]));
        y = (smg_tensor){.name = "y"};
        open_peak(f, NULL, false);
        expect_ok(f, smg_model_run(f->model, &x, 1, &y, 1));
        assert_true(isinf(((const float *)y.data)[50]));
        y = (smg_tensor){.name = "y"};
        open_peak(f, &x, true);
        expect_ok(f, smg_model_run(f->model, &x, 1, &y, 1));
        assert_float_equal(((const float *)y.data)[50], 598, 0.5);
        y = (smg_tensor){.name = "y"};
    }
}

/* What the graph itself makes infinite is no overflow. */
static void infinities_of_the_graph_stay(void **state) {
    fixture *f = *state;
    static float room[40];
    smg_tensor x = {.name = "x", .type = "f32", .rank = 2, .dims = {1, 40}, .data = room};
    smg_tensor y = {.name = "y"};
    if (!open_peak(f, NULL, true)) skip();
    room[3] = (float)INFINITY;
    expect_ok(f, smg_model_run(f->model, &x, 1, &y, 1));
    assert_true(isnan(((const float *)y.data)[3]));
}

static void unknown_precisions_are_refused(void **state) {
    fixture *f = *state;
    const smg_model_desc desc = {.no_calibrate = true, .precision = "fp16"};
    static const char text[] = "graph g\nx = input f32[4]\ny = exp(x)\noutput y = y\n";
    expect_ok(f, smg_graph_parse(f->ctx, text, sizeof(text) - 1, "text", &f->g));
    smg_status status = smg_model_open_graph(f->ctx, f->g, &desc, &f->model);
    if (device_missing(f->ctx, status)) skip();
    assert_int_equal(status, SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "no precision 'fp16'"));
}

#if SMG_VULKAN
static int64_t device_bytes(fixture *f, const int64_t *sizes) {
    smg_program_memory memory;
    expect_ok(f, smg_model_bind(f->model, sizes));
    smg_program_memory_used(smg_model_program(f->model), &memory);
    int64_t held = memory.constant_bytes + memory.derived_bytes + memory.arena_bytes;
    return memory.prepare_bytes > memory.arena_bytes ? held - memory.arena_bytes + memory.prepare_bytes : held;
}

/* The most that is held at a time: constants and what is made of them beside their originals, or the arena. */
static void memory_is_half(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {3, 500};
    if (!open_layer(f, "f32", "f32", false)) skip();
    int64_t whole = device_bytes(f, sizes);
    open_layer(f, "f32", "bf16", false); /* in f16 what the mask is in stays f32 */
    int64_t half = device_bytes(f, sizes);
    if ((double)half > 0.55 * (double)whole) fail_msg("%lld bytes of %lld", (long long)half, (long long)whole);
}

/* Bytes at most at the row's first and last case. */
static void peaks_of(model_fixture *f, const char *precision, int64_t *out_peaks) {
    const smg_model_desc desc = {.no_calibrate = true, .precision = precision};
    smg_model *model;
    int last = 0;
    model_expect_ok(f, smg_model_open_source(f->ctx, &f->source, NULL, &desc, &model));
    while (f->row->cases[last + 1] != NULL) last++;
    for (int i = 0; i < 2; i++) {
        model_case c;
        smg_program_memory memory;
        model_expect_ok(f, model_case_load(f->ctx, f->source.graph, f->folder, f->row->cases[i * last], f->row->output,
                                           f->arena, &c));
        model_expect_ok(f, smg_model_bind(model, c.symbols));
        smg_model_memory(model, &memory);
        out_peaks[i] = memory.peak_bytes;
        smg_npy_close(&c.stored);
    }
    smg_model_close(model);
}

static void compare_peaks(model_fixture *f) {
    static const char *const folders[] = {"hf-albert-small", "hf-gpt2-small", "hf-llama-small", "hf-t5-small",
                                          "hf-vit-small"};
    int64_t whole[2], half[2];
    size_t n = 0;
    while (n < SMG_COUNT_OF(folders) && strcmp(folders[n], f->row->folder) != 0) n++;
    if (n == SMG_COUNT_OF(folders)) return;
    peaks_of(f, "f32", whole);
    peaks_of(f, "f16", half);
    for (int i = 0; i < 2; i++) {
        double share = (double)half[i] / (double)whole[i];
        print_message("%-16s %8lld of %8lld bytes, %.3f\n", f->row->folder, (long long)half[i], (long long)whole[i],
                      share);
        assert_true(share <= 0.55);
    }
}

static void models_take_half(void **state) {
    fixture *f = *state;
    if (!open_layer(f, "f32", "f16", false)) skip();
    model_each(MODEL_HF, compare_peaks, NULL);
}

static void kept_plans_are_of_one_precision(void **state) {
    fixture *f = *state;
    static const char *const precisions[] = {"f16", "bf16", "f16", "f32", "bf16"};
    static const int64_t sizes[] = {1, 33};
    for (size_t i = 0; i < SMG_COUNT_OF(precisions); i++) {
        smg_type type;
        if (!open_layer(f, "f32", precisions[i], false)) skip();
        assert_int_equal(smg_precision_find(f->ctx, precisions[i], &type), SMG_OK);
        run_and_check(f, type, sizes);
        assert_true(i < 2 || i == 3 || smg_model_compilation(f->model)->from_cache);
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_are_near, setup, teardown),
        cmocka_unit_test_setup_teardown(products_over_several_axes, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large_inputs_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(overflow_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(infinities_of_the_graph_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_precisions_are_refused, setup, teardown),
#if SMG_VULKAN
        cmocka_unit_test_setup_teardown(memory_is_half, setup, teardown),
        cmocka_unit_test_setup_teardown(models_take_half, setup, teardown),
        cmocka_unit_test_setup_teardown(kept_plans_are_of_one_precision, setup, teardown),
#endif
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("precision on a device", tests, NULL, NULL));
}
