/* Hints: the next run has a plan for less memory, for other sizes or for a busy device, with the same numbers; what was set
 * stays; what cannot be planned leaves the model as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"

enum { ROWS = 40, IN = 512, OUT = 256 };

typedef struct fixture {
    smg_context *ctx;
    smg_model *model;
    int warnings, left; /* allocations until one fails; below 0: none does */
    float *x, *residual, *want, *got;
} fixture;

static void on_log(void *user, smg_log_level level, const char *line) {
    fixture *f = user;
    f->warnings += level == SMG_LOG_WARNING && strstr(line, "is not planned again") != NULL;
}

static void *allocate(void *user, void *pointer, size_t old_size, size_t new_size) {
    fixture *f = user;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    if (f->left == 0) return NULL;
    f->left -= f->left > 0;
    return realloc(pointer, new_size);
}

static smg_status run(fixture *f, int64_t rows, float *y) {
    const smg_tensor in[] = {{.name = "x", .rank = 2, .dims = {rows, IN}, .data = f->x},
                             {.name = "residual", .rank = 2, .dims = {rows, OUT}, .data = f->residual}};
    smg_tensor out = {.name = "y", .data = y, .bytes = (size_t)(rows * OUT) * sizeof(*y)};
    return smg_model_run(f->model, in, 2, &out, 1);
}

static float *floats(int64_t count) {
    float *values = malloc((size_t)count * sizeof(*values));
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) values[i] = (float)((i * 37) % 101) / 101.0f - 0.5f;
    return values;
}

static void free_floats(fixture *f) {
    free(f->x);
    free(f->residual);
    free(f->want);
    free(f->got);
}

static bool open_model(fixture *f, const char *cache) {
    const smg_context_desc context = {.log = on_log, .reallocate = allocate, .user = f, .cache_dir = cache};
    const smg_dim rows = {"rows", ROWS};
    const smg_model_desc desc = {.dims = &rows, .dim_count = 1, .no_calibrate = true, .no_plan_cache = true};
    *f = (fixture){.left = -1};
    assert_int_equal(smg_context_create(&context, &f->ctx), SMG_OK);
    smg_status status = smg_model_open(f->ctx, "tests/graphs/linear_residual_layernorm.smg", &desc, &f->model);
    if (device_missing(f->ctx, status)) {
        smg_context_destroy(f->ctx);
        return false;
    }
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    f->x = floats(ROWS * IN);
    f->residual = floats(ROWS * OUT);
    f->want = floats(ROWS * OUT);
    f->got = floats(ROWS * OUT);
    assert_int_equal(run(f, ROWS, f->want), SMG_OK);
    return true;
}

static void close_model(fixture *f) {
    free_floats(f);
    smg_model_close(f->model);
    smg_context_destroy(f->ctx);
}

static const smg_compilation *compilation(const fixture *f) {
    return smg_model_compilation(f->model);
}

static void expect_wanted(fixture *f, int64_t rows) {
    memset(f->got, 0, ROWS * OUT * sizeof(*f->got));
    if (run(f, rows, f->got) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (int i = 0; i < rows * OUT; i++) assert_true(fabsf(f->got[i] - f->want[i]) < 1e-4f * (1 + fabsf(f->want[i])));
}

/* What lives between kernels grows less with pressure; without one the first plan is back, bit for bit. */
static void memory(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f, NULL)) skip();
    const smg_compilation *first = compilation(&f);
    int64_t before = first->plan->live;
    assert_true(before > 0);
    for (int i = 1; i <= 2; i++) {
        const smg_hint hint = {.memory_pressure = i / 2.0};
        assert_int_equal(smg_model_hint(f.model, &hint), SMG_OK);
        assert_ptr_equal(compilation(&f), i == 1 ? first : compilation(&f)); /* not before the next run */
        expect_wanted(&f, ROWS);
        assert_ptr_not_equal(compilation(&f), first);
        assert_true(compilation(&f)->plan->live <= before / i);
    }
    assert_int_equal(compilation(&f)->plan->live, 0);
    expect_wanted(&f, 7);
    assert_int_equal(smg_model_hint(f.model, NULL), SMG_OK);
    expect_wanted(&f, ROWS);
    assert_ptr_equal(compilation(&f), first);
    assert_memory_equal(f.got, f.want, ROWS * OUT * sizeof(*f.got));
    assert_int_equal(f.warnings, 0);
    close_model(&f);
}

/* Usual sizes become those that plans are made for, a busy device has less to compute with; ranges stay. */
static void sizes_and_rates(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f, NULL)) skip();
    const smg_dim usual = {"rows", 3000};
    const smg_hint hints[] = {{.usual = &usual, .usual_count = 1}, {.compute_pressure = 0.75}, {.compute_pressure = 1}};
    double rate = compilation(&f)->target.fma_rate;
    assert_int_equal(smg_model_set_range(f.model, "rows", 1, ROWS), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(hints); i++) {
        assert_int_equal(smg_model_hint(f.model, &hints[i]), SMG_OK);
        expect_wanted(&f, ROWS);
        expect_wanted(&f, 9);
        assert_int_equal(compilation(&f)->nominal[0], i == 0 ? 3000 : ROWS);
        double left = compilation(&f)->target.fma_rate / rate;
        assert_true(i == 0 ? left == 1 : i == 1 ? fabs(left - 0.25) < 1e-9 : left > 0 && left < 0.1);
        assert_int_equal(run(&f, ROWS + 1, f.got), SMG_INVALID); /* outside of the range */
    }
    close_model(&f);
}

static void expect_refused(fixture *f, smg_status want, const smg_hint *hint, const char *told) {
    assert_int_equal(smg_model_hint(f->model, hint), want);
    assert_non_null(strstr(smg_context_error(f->ctx), told));
}

static void nonsense(void **state) {
    (void)state;
    fixture f;
    smg_model *other = NULL;
    if (!open_model(&f, NULL)) skip();
    const smg_dim dims[] = {{"columns", 1}, {"rows", 0}, {NULL, 1}};
    expect_refused(&f, SMG_INVALID, &(smg_hint){.memory_pressure = 1.5}, "pressures of 1.5 (memory)");
    expect_refused(&f, SMG_INVALID, &(smg_hint){.compute_pressure = NAN}, "nan (compute)");
    expect_refused(&f, SMG_INVALID, &(smg_hint){.usual_count = 1}, "whose array is NULL");
    expect_refused(&f, SMG_NOT_FOUND, &(smg_hint){.usual = &dims[0], .usual_count = 1}, "no size 'columns'");
    expect_refused(&f, SMG_INVALID, &(smg_hint){.usual = &dims[1], .usual_count = 1}, "rows is 0");
    expect_refused(&f, SMG_INVALID, &(smg_hint){.usual = &dims[2], .usual_count = 1}, "usual[0] has no name");
    assert_int_equal(smg_model_hint(NULL, NULL), SMG_INVALID);
    expect_wanted(&f, ROWS);
    assert_int_equal(smg_model_share(f.model, f.ctx, &other), SMG_OK);
    expect_refused(&f, SMG_UNSUPPORTED, &(smg_hint){.memory_pressure = 1}, "shares weights and pipelines");
    assert_int_equal(smg_model_hint(other, NULL), SMG_UNSUPPORTED);
    smg_model_close(other);
    expect_wanted(&f, ROWS);
    close_model(&f);
}

/* A hint while a run is in flight waits for the next one. */
static void in_flight(void **state) {
    (void)state;
    fixture f;
    smg_ticket ticket;
    if (!open_model(&f, NULL)) skip();
    const smg_tensor in[] = {{.name = "x", .rank = 2, .dims = {ROWS, IN}, .data = f.x},
                             {.name = "residual", .rank = 2, .dims = {ROWS, OUT}, .data = f.residual}};
    smg_tensor out = {.name = "y", .data = f.got, .bytes = ROWS * OUT * sizeof(*f.got)};
    const smg_compilation *first = compilation(&f);
    assert_int_equal(smg_model_submit(f.model, in, 2, &out, 1, &ticket), SMG_OK);
    assert_int_equal(smg_model_hint(f.model, &(smg_hint){.memory_pressure = 1}), SMG_OK);
    assert_int_equal(smg_ticket_wait(ticket, -1, NULL), SMG_OK);
    assert_memory_equal(f.got, f.want, ROWS * OUT * sizeof(*f.got));
    assert_ptr_equal(compilation(&f), first);
    assert_int_equal(smg_model_submit(f.model, in, 2, &out, 1, &ticket), SMG_OK);
    assert_ptr_not_equal(compilation(&f), first);
    assert_int_equal(smg_ticket_wait(ticket, -1, NULL), SMG_OK);
    expect_wanted(&f, ROWS);
    close_model(&f);
}

/* Where memory of the host runs out on the way, whenever that is, the model runs on, with one plan or the other. */
static void without_memory(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f, NULL)) skip();
    bool planned = false;
    int failed = 0;
    for (int left = 0; !planned; left = left * 3 / 2 + 1) {
        assert_int_equal(smg_model_hint(f.model, &(smg_hint){.memory_pressure = 1}), SMG_OK);
        const smg_compilation *before = compilation(&f);
        int warned = f.warnings;
        f.left = left;
        smg_status status = run(&f, ROWS, f.got);
        f.left = -1;
        planned = compilation(&f) != before && status == SMG_OK;
        assert_true(status == SMG_OK || status == SMG_MEMORY);
        assert_true(planned || status != SMG_OK || f.warnings > warned);
        failed += !planned;
        expect_wanted(&f, ROWS);
    }
    assert_true(failed > 5);
    close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory),    cmocka_unit_test(sizes_and_rates), cmocka_unit_test(nonsense),
        cmocka_unit_test(in_flight), cmocka_unit_test(without_memory),
    };
    return device_result(cmocka_run_group_tests_name("hints", tests, NULL, NULL));
}
