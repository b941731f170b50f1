/* ONNX files of several exporters on a device, against what onnxruntime stored for them. A file is compiled
 * once and serves all its cases, whatever their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/model_case.h"

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0"; /* drivers keep memory of their own */
}
#endif

static const double tolerance = 1e-4;

typedef struct row {
    const char *folder, *output;
    const char *cases[6];
} row;

#define ONNX(folder_, output_, ...) {folder_, output_, {__VA_ARGS__}},
static const row rows[] = {
#include "support/onnx_models.h"
};
#undef ONNX

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *folder;
    smg_source source;
    smg_model *model;
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void run_case(fixture *f, const row *r, const char *name) {
    smg_arena *arena = NULL;
    model_case c;
    smg_tensor out = {.name = r->output};
    expect_ok(f, smg_arena_create(f->ctx, &arena));
    expect_ok(f, model_case_load(f->ctx, f->source.graph, f->folder, name, r->output, arena, &c));
    expect_ok(f, smg_model_run(f->model, c.inputs, c.input_count, &out, 1));
    double error = model_case_tensor_error(&c, &out);
    print_message("%s %s: %.2g\n", r->folder, name, error);
    assert_true(error <= tolerance);
    smg_npy_close(&c.stored);
    smg_arena_destroy(arena);
}

/* false: there is no device */
static bool run_row(const row *r) {
    fixture f = {.ctx = NULL};
    const smg_model_desc desc = {.no_calibrate = true};
    const char *models = getenv("SMG_TEST_MODELS");
    bool there = true;
    assert_non_null(models);
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    expect_ok(&f, smg_arena_create(f.ctx, &f.arena));
    f.folder = smg_arena_format(f.arena, "%s/onnx/%s", models, r->folder);
    assert_non_null(f.folder);
    const char *path = smg_path_join(f.arena, f.folder, "model.onnx");
    assert_non_null(path);
    expect_ok(&f, smg_source_open(f.ctx, path, false, &f.source));
    smg_status status = smg_model_open_source(f.ctx, &f.source, NULL, &desc, &f.model);
    if (status == SMG_NOT_FOUND || (status == SMG_UNSUPPORTED && !SMG_VULKAN)) {
        print_message("no device: %s\n", smg_context_error(f.ctx));
        there = false;
    } else {
        expect_ok(&f, status);
    }
    for (int k = 0; there && k < 6 && r->cases[k] != NULL; k++) run_case(&f, r, r->cases[k]);
    smg_model_close(f.model);
    smg_source_close(&f.source);
    smg_arena_destroy(f.arena);
    smg_context_destroy(f.ctx);
    return there;
}

static void the_stored_results_on_a_device(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++)
        if (!run_row(&rows[i])) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_stored_results_on_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
