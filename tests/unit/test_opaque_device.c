/* Products by matrices of the device at hand as if nobody knew which lane has which sum: its target without fragments, of
 * a GPU's rate, so that plans have them. Results agree with the reference, rows and columns that are no multiples of a
 * matrix's sides included, with gates, statistics and running sums behind the sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/check_plan.h"
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"

/* Sizes in the order of the graph's symbols. */
typedef struct opaque_case {
    const char *path;
    int64_t sizes[4];
} opaque_case;

static const opaque_case cases[] = {{"tests/graphs/gru.smg", {21}}, {"tests/graphs/attention.smg", {1, 2, 33, 77}}};

static int count_opaque(const smg_compilation *c) {
    int opaque = 0;
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_kernel *k = c->plan->steps.items[i].kernel;
        opaque += k != NULL && k->matrix.opaque;
    }
    return opaque;
}

static void check(device_graph *f, const opaque_case *c) {
    device_graph_expect_ok(f, check_load(f->ctx, c->path, &f->g));
    smg_target target = device_graph_gpu(f);
    target.registers_lane = 64; /* small blocks: the driver takes long for large ones */
    target.fragment_count = 0;
    const smg_compile_options options = {.precision = SMG_TYPE_F16};
    device_graph_compile(f, &target, &options);
    assert_true(target.matrix_count == 0 || count_opaque(f->c) > 0);
    device_graph_expect_ok(f, smg_program_create(f->ctx, f->c->bundle, f->dev, NULL, &f->program));
    device_graph_check(f, c->path, c->sizes, 1);
    device_graph_drop(f);
}

static void test_results(void **state) {
    (void)state;
    device_graph f;
    bool found = device_graph_open(&f);
    for (size_t i = 0; found && i < SMG_COUNT_OF(cases); i++) check(&f, &cases[i]);
    device_graph_close(&f);
    if (!found) skip();
}

int main(void) {
    device_compiles_plainly();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
