/* Products by matrices of the device at hand, for its target with a GPU's rates, so that plans have them: with the layouts
 * that it has, and without fragments, as if nobody knew which lane has which sum. Results agree with the reference, rows and
 * columns that are no multiples of a matrix's sides included, with gates, statistics, masks and running sums behind the
 * sums, and norms, windows and softmaxes in front of the factors. */
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
typedef struct matrix_case {
    const char *path; /* or the text of a graph */
    int64_t sizes[4];
    bool opaque;
} matrix_case;

static const char convolution[] =
    "graph convolution\ndim b max 64\nx = input f32[b, 7, 9, 20]\n"
    "w = constant f32[12, 20, 3, 3] random seed=1 scale=0.1\n"
    "rows = window(x) axis=1 begin=-1 step=1 dilation=1 fill=0 : f32[b, 7, 3, 9, 20]\n"
    "taps = window(rows) axis=3 begin=0 step=1 dilation=1 fill=0 : f32[b, 7, 3, 7, 3, 20]\n"
    "p = contract(taps, w) \"bhiwjc,ocij->bhwo\" : f32[b, 7, 7, 12]\ny = relu(p)\n"
    "output y = y\n";

/* As files have it: places in the window are steps of loops between the channels' ones. */
static const char as_exported[] =
    "graph as_exported\ndim b max 64\nx = input f32[b, 20, 7, 18]\n"
    "w = constant f32[12, 20, 3, 3] random seed=1 scale=0.1\n"
    "rows = window(x) axis=2 begin=-1 step=1 dilation=1 fill=0 : f32[b, 20, 7, 3, 18]\n"
    "taps = window(rows) axis=4 begin=-1 step=1 dilation=1 fill=0 : f32[b, 20, 7, 3, 18, 3]\n"
    "p = contract(taps, w) \"bchiwj,ocij->bohw\" : f32[b, 12, 7, 18]\ny = relu(p)\n"
    "output y = y\n";

static const matrix_case cases[] = {{"tests/graphs/gru.smg", {21}, true},
                                    {"tests/graphs/attention.smg", {1, 2, 33, 77}, true},
                                    {"tests/graphs/lstm.smg", {21}, false},
                                    {"tests/graphs/attention_causal.smg", {1, 2, 77}, false},
                                    {"tests/graphs/rmsnorm_gemm.smg", {37}, false},
                                    {convolution, {2}, false},
                                    {as_exported, {2}, false}};

static int count_matrices(const smg_compilation *c, bool opaque) {
    int found = 0;
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_kernel *k = c->plan->steps.items[i].kernel;
        found += k != NULL && k->matrix.rows > 0 && k->matrix.opaque == opaque;
    }
    return found;
}

static void check(device_graph *f, const matrix_case *c) {
    if (strncmp(c->path, "graph ", 6) == 0)
        device_graph_parse(f, c->path);
    else
        device_graph_expect_ok(f, check_load(f->ctx, c->path, &f->g));
    smg_target target = device_graph_gpu(f);
    target.registers_lane = 64; /* small blocks: the driver takes long for large ones */
    if (c->opaque) target.fragment_count = 0;
    const smg_compile_options options = {.precision = SMG_TYPE_F16};
    device_graph_compile(f, &target, &options);
    bool known = c->opaque || target.fragment_count > 0;
    if (target.matrix_count > 0 && known && count_matrices(f->c, c->opaque) == 0)
        fail_msg("%s: no kernel multiplies by matrices", c->path);
    device_graph_expect_ok(f, smg_program_create(f->ctx, f->c->bundle, f->dev, NULL, &f->program));
    device_graph_check(f, c->path, c->sizes, 1);
    device_graph_drop(f);
}

static void test_results(void **state) {
    (void)state;
    device_graph f;
    bool found = device_graph_open(&f) && !device_lacks_halves(f.dev);
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
