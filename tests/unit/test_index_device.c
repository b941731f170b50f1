/* Indices that the kernel has computed which reads by them, on whatever device there is: rows of lanes that lie beyond
 * the tile have none, and are not reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/device_graph.h"

/* The nearest entry of a code book for each of 50 rows, which no layout has; their sum holds them in one workgroup. */
static const char nearest[] =
    "graph nearest\nx = input f32[50, 4]\ncodes = constant f32[32, 4] random seed=1\n"
    "products = contract(x, codes) \"ri,ci->rc\"\nsquares = square(codes)\nlengths = sum(squares) axis=1\n"
    "half = fill 0.5 : f32[]\nhalves = mul(lengths, half)\nnear = sub(products, halves)\n"
    "best = reduce_max(near) axis=1 keep\nplace = iota axis=1 : i32[1, 32]\nlast = fill 31 : i32[]\n"
    "is = eq(near, best)\nchosen = select(is, place, last)\nindex = reduce_min(chosen) axis=1 : i32[50]\n"
    "entry = gather(codes, index) : f32[50, 4]\noff = sub(x, entry)\nenergy = square(off)\n"
    "loss = sum(energy) axis=1 keep\ntotal = sum(loss) axis=0 keep\noutput entry = entry\noutput total = total\n";

static void test_nearest(void **state) {
    static const int64_t no_sizes[1] = {0};
    static const smg_objective objectives[] = {SMG_OBJECTIVE_TIME, SMG_OBJECTIVE_DISPATCHES};
    (void)state;
    device_graph f;
    bool found = device_graph_open(&f);
    for (size_t i = 0; found && i < SMG_COUNT_OF(objectives); i++) {
        const smg_target target = *smg_vk_target(f.dev);
        const smg_compile_options options = {.objective = objectives[i]};
        device_graph_parse(&f, nearest);
        device_graph_compile(&f, &target, &options);
        device_graph_expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        device_graph_check(&f, "nearest", no_sizes, i);
        device_graph_drop(&f);
    }
    device_graph_close(&f);
    if (!found) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nearest)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
