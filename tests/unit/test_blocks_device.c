/* Weights in blocks on the device at hand: what prepares them writes, and every kernel reads, the same places. The
 * device's facts are made those of a GPU, so that products stream by matrices where it has any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/base.h"
#include "sched/sched.h"

#if SMG_VULKAN
#include "support/all_cases.h"
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"

#define SMALL "graph blocks\ndim rows max 4096\nx = input f32[rows, 64]\n"
#define HEAD "graph blocks\ndim rows max 4096\nx = input f32[rows, 128]\n"

typedef struct block_case {
    const char *what, *text;
} block_case;

static const block_case cases[] = {
    {"a linear layer", SMALL "w = constant f32[40, 64] random seed=1 scale=0.2\nb = constant f32[40] random seed=2\n"
                             "s = copy(w) blocks=[8, 32]\np = contract(x, s) \"ri,oi->ro\"\ny = add(p, b)\n"},
    {"no powers of two", SMALL "w = constant f32[40, 64] random seed=1 scale=0.2\ns = copy(w) blocks=[5, 4]\n"
                               "y = contract(x, s) \"ri,oi->ro\"\n"},
    {"across what is contracted", SMALL "w = constant f32[64, 40] random seed=1 scale=0.2\n"
                                        "s = copy(w) blocks=[32, 8]\ny = contract(x, s) \"ri,io->ro\"\n"},
    {"a slice and a transposition", SMALL "w = constant f32[64, 48] random seed=1 scale=0.2\n"
                                          "s = copy(w) blocks=[16, 16]\nt = transpose(s) perm=[1, 0]\n"
                                          "u = slice(t) axis=0 begin=3 count=40\ny = contract(x, u) \"ri,oi->ro\"\n"},
    {"rows by an index", SMALL "w = constant f32[64, 40] random seed=1\ns = copy(w) blocks=[4, 8]\n"
                               "i = constant i32[3] data=[7, 63, 0]\ng = gather(s, i)\nm = sum(g) axis=0\n"
                               "k = constant f32[64, 40] random seed=3 scale=0.1\n"
                               "p = contract(x, k) \"ri,io->ro\"\ny = add(p, m)\n"},
    {"two parts of a row", SMALL "w = constant f32[40, 64] random seed=1 scale=0.2\ns = copy(w) blocks=[8, 32]\n"
                                 "a = reshape(x) : f32[rows, 2, 32]\nb = reshape(s) : f32[40, 2, 32]\n"
                                 "p = contract(a, b) \"rpi,opi->pro\" : f32[2, rows, 40]\ny = sum(p) axis=0\n"},
    {"parts less than a block", SMALL "w = constant f32[40, 64] random seed=1 scale=0.2\ns = copy(w) blocks=[8, 32]\n"
                                      "a = reshape(x) : f32[rows, 8, 8]\nb = reshape(s) : f32[40, 8, 8]\n"
                                      "p = contract(a, b) \"rpi,opi->pro\" : f32[8, rows, 40]\ny = sum(p) axis=0\n"},
    {"a file's own type", SMALL "h = constant f16[40, 64] random seed=1 scale=0.2\n"
                                "s = copy(h) blocks=[8, 32]\nw = cast(s) : f32[40, 64]\n"
                                "y = contract(x, w) \"ri,oi->ro\"\n"},
    {"a file's other type", SMALL "h = constant bf16[40, 64] random seed=1 scale=0.2\n"
                                  "w = cast(h) : f32[40, 64]\ns = copy(w) blocks=[8, 32]\n"
                                  "y = contract(x, s) \"ri,oi->ro\"\n"},
    {"heads of rows", SMALL "w = constant f32[64, 64] random seed=1 scale=0.2\ns = copy(w) blocks=[8, 32]\n"
                            "b = reshape(s) : f32[4, 16, 64]\ny = contract(x, b) \"ri,hoi->hro\" : f32[4, rows, 16]\n"},
};

/* Blocks of one row, which a CPU's products read where they lie: by columns, by a row of each lane, by parts of rows. */
static const block_case panels[] = {
    {"columns in lanes", HEAD "w = constant f32[128, 96] random seed=1 scale=0.2\nb = constant f32[96] random seed=2\n"
                              "s = copy(w) blocks=[1, 16]\np = contract(x, s) \"ri,io->ro\"\ny = add(p, b)\n"},
    {"wider than a vector", HEAD "w = constant f32[128, 64] random seed=1 scale=0.2\ns = copy(w) blocks=[1, 32]\n"
                                 "y = contract(x, s) \"ri,io->ro\"\n"},
    {"parts of rows", HEAD "w = constant f32[128, 96] random seed=1 scale=0.2\ns = copy(w) blocks=[1, 16]\n"
                           "a = reshape(x) : f32[rows, 4, 32]\nb = reshape(s) : f32[4, 32, 96]\n"
                           "p = contract(a, b) \"rpi,pio->pro\" : f32[4, rows, 96]\ny = sum(p) axis=0\n"},
    {"heads of columns", HEAD "w = constant f32[128, 96] random seed=1 scale=0.2\ns = copy(w) blocks=[1, 16]\n"
                              "b = reshape(s) : f32[128, 3, 32]\n"
                              "y = contract(x, b) \"ri,iho->hro\" : f32[3, rows, 32]\n"},
    {"rows in lanes", HEAD "k = constant f32[128, 64] random seed=3 scale=0.1\np = contract(x, k) \"ri,io->ro\"\n"
                           "h = reduce_max(p) axis=1 keep\nc = sub(p, h)\ne = exp(c)\n"
                           "w = constant f32[64, 48] random seed=1\ns = copy(w) blocks=[1, 16]\n"
                           "y = contract(e, s) \"ri,io->ro\"\n"},
    {"a tensor each", HEAD "w = constant f32[4, 32, 48] random seed=1 scale=0.2\ns = copy(w) blocks=[1, 16]\n"
                           "a = reshape(x) : f32[rows, 4, 32]\n"
                           "y = contract(a, s) \"rpi,pio->pro\" : f32[4, rows, 48]\n"},
};

static int count_blocked(const smg_graph *g) {
    int blocked = 0;
    for (int i = 0; i < g->nodes.count; i++) blocked += smg_node_is_blocked(&g->nodes.items[i]);
    return blocked;
}

/* A weight is stored once: no conversion behind its copy makes another one, which would be in no blocks. */
static void expect_no_conversion_stored(const smg_compilation *c) {
    for (int i = 0; i < c->plan->prepare.count; i++) {
        const smg_pstep *step = &c->plan->prepare.items[i];
        assert_int_not_equal(smg_graph_node(c->graph, step->nodes[step->node_count - 1])->op, SMG_OP_CAST);
    }
}

static bool reads_in_place(const smg_kernel *k) {
    bool any = false;
    for (int i = 0; i < k->tiles.count; i++) {
        const smg_tile *t = &k->tiles.items[i];
        any = any || (t->residence == SMG_VIEW &&
                      smg_kbuffer_is_blocked(&k->buffers.items[k->accesses.items[t->access].buffer]));
    }
    return any;
}

/* Where the target's products read weights in panels, its best schedule of one of several kernels does. */
static void expect_read_in_place(const smg_compilation *c) {
    bool any = smg_sched_panel(&c->target) == 0;
    for (int i = 0; i < c->plan->steps.count; i++) any = any || reads_in_place(c->plan->steps.items[i].kernel);
    assert_true(any);
}

static void check(const block_case *c, smg_type precision, bool gpu, int rank) {
    static const int64_t rows[] = {64, 37, 1};
    const smg_dim dim = {"rows", rows[0]};
    const smg_compile_options options = {.precision = precision, .dims = &dim, .dim_count = 1, .rank = rank};
    device_graph f;
    char text[1024];
    bool found = device_graph_open(&f);
    if (found) {
        (void)snprintf(text, sizeof text, "%soutput y = y\n", c->text);
        device_graph_parse(&f, text);
        const smg_target target = gpu ? device_graph_gpu(&f) : *smg_vk_target(f.dev);
        device_graph_compile(&f, &target, &options);
        assert_int_equal(count_blocked(f.c->graph), 1);
        expect_no_conversion_stored(f.c);
        if (c >= panels && c < panels + SMG_COUNT_OF(panels) && rank == 0) expect_read_in_place(f.c);
        device_graph_expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) device_graph_check(&f, c->what, &rows[i], (uint64_t)rows[i]);
    }
    device_graph_close(&f);
    if (!found) skip();
}

static void by_matrices(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++)
        if (all_cases() || i % 3 == 0 || i > 4) check(&cases[i], SMG_TYPE_F16, true, 0);
}

static void by_lanes(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++)
        if (all_cases() || i % 3 != 0) check(&cases[i], SMG_TYPE_F32, i % 2 == 0, 0);
}

/* By what the device at hand is, and by a schedule further down. */
static void in_panels(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(panels); i++)
        for (int rank = 0; rank < (all_cases() ? 16 : 8); rank += 1 + (int)i % 3)
            check(&panels[i], rank % 3 == 2 ? SMG_TYPE_F16 : SMG_TYPE_F32, false, rank);
}

/* The yardstick's readers take a weight of the file's own type from memory, too: no kernel converts it, in either list. */
static void unfused(void **state) {
    (void)state;
    const smg_dim dim = {"rows", 64};
    const smg_compile_options options = {.precision = SMG_TYPE_F16, .dims = &dim, .dim_count = 1, .unfused = true};
    device_graph f;
    bool found = device_graph_open(&f);
    if (found) {
        device_graph_parse(&f, HEAD "h = constant f16[104, 128] random seed=1 scale=0.2\nw = cast(h) : f32[104, 128]\n"
                                    "y = contract(x, w) \"ri,oi->ro\"\noutput y = y\n");
        const smg_target target = device_graph_gpu(&f);
        device_graph_compile(&f, &target, &options);
        expect_no_conversion_stored(f.c);
        assert_int_equal(f.c->plan->steps.count, 1);
    }
    device_graph_close(&f);
    if (!found) skip();
}

int main(void) {
    device_compiles_plainly();
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_matrices), cmocka_unit_test(by_lanes),
                                       cmocka_unit_test(in_panels), cmocka_unit_test(unfused)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
