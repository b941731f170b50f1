/* Places that kernels compute, on whatever device there is. Of indices that the kernel itself has computed rows of lanes
 * that lie beyond the tile have none, and are not reported. Views behind each other whose indices are more than an access
 * has get a copy in between. */
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

/* Blocks of blocks of blocks of an image, one behind the other, as models of several scales lay their tokens. */
static const char unrolled[] =
    "graph unrolled\na = input f32[1, 16, 16, 4]\nv0 = reshape(a) : f32[1, 8, 2, 8, 2, 4]\n"
    "p0 = transpose(v0) perm=[0, 2, 4, 1, 3, 5]\nv1 = reshape(p0) : f32[4, 4, 2, 4, 2, 4]\n"
    "p1 = transpose(v1) perm=[0, 2, 4, 1, 3, 5]\nv2 = reshape(p1) : f32[16, 2, 2, 2, 2, 4]\n"
    "p2 = transpose(v2) perm=[0, 2, 4, 1, 3, 5]\nv3 = reshape(p2) : f32[1, 256, 4]\ny = square(v3)\noutput y = y\n";

/* Windows that are added up where they lie over each other, of heads that lie behind their elements. */
static const char folded[] = "graph folded\na = input f32[1, 2, 4, 9, 6]\nt = transpose(a) perm=[0, 1, 4, 3, 2]\n"
                             "rows = reshape(t) : f32[1, 12, 3, 3, 2, 2]\ns0 = slice(rows) axis=2 begin=0 count=1\n"
                             "a0 = reshape(s0) : f32[1, 12, 3, 2, 1, 2]\n"
                             "w0 = window(a0) axis=4 begin=0 step=1 dilation=1 fill=0 : f32[1, 12, 3, 2, 2, 1, 2]\n"
                             "b0 = reshape(w0) : f32[1, 12, 3, 4, 2]\n"
                             "u0 = window(b0) axis=3 begin=1 step=1 dilation=1 fill=0 : f32[1, 12, 3, 4, 1, 2]\n"
                             "c0 = reshape(u0) : f32[1, 12, 3, 4, 2]\ns1 = slice(rows) axis=2 begin=1 count=1\n"
                             "a1 = reshape(s1) : f32[1, 12, 3, 2, 1, 2]\n"
                             "w1 = window(a1) axis=4 begin=0 step=1 dilation=1 fill=0 : f32[1, 12, 3, 2, 2, 1, 2]\n"
                             "c1 = reshape(w1) : f32[1, 12, 3, 4, 2]\ny = add(c0, c1)\noutput y = y\n";

static void check(const char *text) {
    static const int64_t no_sizes[1] = {0};
    static const smg_objective objectives[] = {SMG_OBJECTIVE_TIME, SMG_OBJECTIVE_DISPATCHES};
    device_graph f;
    bool found = device_graph_open(&f);
    for (size_t i = 0; found && i < SMG_COUNT_OF(objectives); i++) {
        const smg_target target = *smg_vk_target(f.dev);
        const smg_compile_options options = {.objective = objectives[i]};
        device_graph_parse(&f, text);
        device_graph_compile(&f, &target, &options);
        device_graph_expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        device_graph_check(&f, "places", no_sizes, i);
        device_graph_drop(&f);
    }
    device_graph_close(&f);
    if (!found) skip();
}

static void test_nearest(void **state) {
    (void)state;
    check(nearest);
}

static void test_views(void **state) {
    (void)state;
    check(unrolled);
    check(folded);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nearest), cmocka_unit_test(test_views)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
