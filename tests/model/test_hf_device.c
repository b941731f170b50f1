/* Model directories of every family on a device, against what PyTorch stored for them. A model is opened
 * once and serves all cases of its directory, whatever their sizes. */
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
    const char *cases[4];
} row;

#define HF(folder_, output_, ...) {"tests/models/" folder_, output_, {__VA_ARGS__}},
static const row rows[] = {
#include "support/hf_models.h"
};
#undef HF

typedef struct fixture {
    smg_context *ctx;
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
    expect_ok(f, model_case_load(f->ctx, f->source.graph, r->folder, name, r->output, arena, &c));
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
    bool there = true;
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    expect_ok(&f, smg_source_open(f.ctx, r->folder, false, &f.source));
    smg_status status = smg_model_open_source(f.ctx, &f.source, NULL, &desc, &f.model);
    if (status == SMG_NOT_FOUND || (!SMG_VULKAN && status == SMG_UNSUPPORTED)) {
        print_message("no device: %s\n", smg_context_error(f.ctx));
        assert_true(status != SMG_NOT_FOUND || getenv("SMG_REQUIRE_DEVICE") == NULL);
        there = false;
    } else {
        expect_ok(&f, status);
    }
    for (int k = 0; there && k < 4 && r->cases[k] != NULL; k++) run_case(&f, r, r->cases[k]);
    smg_model_close(f.model);
    smg_source_close(&f.source);
    smg_context_destroy(f.ctx);
    return there;
}

static void the_stored_results_on_a_device(void **state) {
    bool *without = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++)
        if ((*without = !run_row(&rows[i]))) skip();
}

int main(void) {
    bool without = false; /* a device: the whole test counts as skipped */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(the_stored_results_on_a_device, &without)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed == 0 && without ? 77 : failed;
}
