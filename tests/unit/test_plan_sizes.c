/* plan: values that are larger than any buffer of the device are not left between kernels where there is a way without
 * them; where there is none there is a plan all the same, which runs of fewer rows fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "support/check_plan.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_target target;
} fixture;

static void begin(fixture *f, const char *path) {
    *f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    assert_int_equal(check_load(f->ctx, path, &f->g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &f->target), SMG_OK);
}

static void end(fixture *f) {
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

static smg_plan *plan(fixture *f, const smg_plan_options *options) {
    smg_plan *made = NULL;
    assert_int_equal(smg_plan_make(f->g, &f->target, options, f->arena, &made), SMG_OK);
    return made;
}

/* Of keys so many that scores in a kernel of their own are cheaper by price. */
static void test_way_without(void **state) {
    (void)state;
    fixture f;
    int64_t nominal[2] = {1, 256};
    const smg_plan_options options = {.nominal = nominal};
    int kernels = 1;
    begin(&f, "bench/graphs/mha_h32_d128.smg");
    while (kernels == 1 && nominal[1] < 8192) {
        nominal[1] *= 2;
        kernels = plan(&f, &options)->steps.count;
    }
    assert_true(kernels > 1);
    f.target.max_buffer_range = INT64_C(4) * 32 * nominal[1] * nominal[1]; /* as large as scores */
    assert_int_equal(plan(&f, &options)->steps.count, kernels);
    f.target.max_buffer_range -= 16;
    assert_int_equal(plan(&f, &options)->steps.count, 1);
    f.target.max_buffer_range += 16;
    f.target.max_allocation = f.target.max_buffer_range - 16;
    assert_int_equal(plan(&f, &options)->steps.count, 1);
    end(&f);
}

static void test_no_way_without(void **state) {
    (void)state;
    fixture f;
    const smg_plan_options options = {.unfused = true}, time = {.objective = SMG_OBJECTIVE_TIME};
    begin(&f, "tests/graphs/mlp.smg");
    int apart = plan(&f, &options)->steps.count, kernels = plan(&f, &time)->steps.count;
    f.target.max_buffer_range = 64;
    assert_int_equal(plan(&f, &options)->steps.count, apart);
    assert_in_range(plan(&f, &time)->steps.count, 1, kernels);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_way_without), cmocka_unit_test(test_no_way_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
