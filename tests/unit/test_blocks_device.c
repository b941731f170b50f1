/* Weights in blocks on the device at hand: what prepares them writes, and every kernel reads, the same places. The
 * device's facts are made those of a GPU, so that products stream by matrices where it has any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/base.h"

#if SMG_VULKAN
#include "compile/compile.h"
#include "program/program.h"
#include "support/all_cases.h"
#include "support/device.h"
#include "support/driver_leaks.h"

#define HEAD "graph blocks\ndim rows max 4096\nx = input f32[rows, 128]\n"

enum { MOST_ROWS = 64, COLUMNS = 104 };

typedef struct block_case {
    const char *what, *text;
} block_case;

static const block_case cases[] = {
    {"a linear layer", HEAD "w = constant f32[104, 128] random seed=1 scale=0.2\nb = constant f32[104] random seed=2\n"
                            "s = copy(w) blocks=[8, 32]\np = contract(x, s) \"ri,oi->ro\"\ny = add(p, b)\n"},
    {"no powers of two", HEAD "w = constant f32[104, 128] random seed=1 scale=0.2\ns = copy(w) blocks=[13, 4]\n"
                              "y = contract(x, s) \"ri,oi->ro\"\n"},
    {"across what is contracted", HEAD "w = constant f32[128, 104] random seed=1 scale=0.2\n"
                                       "s = copy(w) blocks=[32, 8]\ny = contract(x, s) \"ri,io->ro\"\n"},
    {"a slice and a transposition", HEAD "w = constant f32[128, 112] random seed=1 scale=0.2\n"
                                         "s = copy(w) blocks=[16, 16]\nt = transpose(s) perm=[1, 0]\n"
                                         "u = slice(t) axis=0 begin=3 count=104\ny = contract(x, u) \"ri,oi->ro\"\n"},
    {"rows by an index", HEAD "w = constant f32[128, 104] random seed=1\ns = copy(w) blocks=[4, 8]\n"
                              "i = constant i32[3] data=[7, 127, 0]\ng = gather(s, i)\nm = sum(g) axis=0\n"
                              "k = constant f32[128, 104] random seed=3 scale=0.1\n"
                              "p = contract(x, k) \"ri,io->ro\"\ny = add(p, m)\n"},
};

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_compilation *c;
    smg_vk_device *dev;
    smg_program *program;
} fixture;

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void run_and_check(fixture *f, const block_case *c, int64_t rows) {
    static float got[MOST_ROWS * COLUMNS];
    smg_tensor x, y = {.name = "y", .rank = 2, .dims = {rows, COLUMNS}, .data = got};
    smg_check check;
    expect_ok(f, smg_program_bind_sizes(f->program, &rows));
    expect_ok(f, smg_tensor_fill(f->ctx, f->g, 0, &rows, SMG_FILL_RANDOM, (uint64_t)rows, f->arena, &x));
    expect_ok(f, smg_program_write_input(f->program, x.name, x.data, x.rank, x.dims));
    expect_ok(f, smg_program_run(f->program));
    expect_ok(f, smg_program_read_output(f->program, "y", got, rows * COLUMNS * 4));
    expect_ok(f, smg_compile_check(f->ctx, f->g, smg_compile_roundings(f->c), &rows, &x, 1, &y, f->arena, &check));
    if (!check.pass)
        fail_msg("%s, %lld rows: %g, must be %g", c->what, (long long)rows, check.rows[0].worst_got,
                 check.rows[0].worst_want);
}

static int count_blocked(const smg_graph *g) {
    int blocked = 0;
    for (int i = 0; i < g->nodes.count; i++) blocked += smg_node_is_blocked(&g->nodes.items[i]);
    return blocked;
}

static void check(const block_case *c, smg_type precision, bool gpu) {
    static const int64_t rows[] = {64, 37, 1};
    fixture f = {0};
    char text[1024];
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    smg_status status = smg_vk_open(f.ctx, NULL, 0, &f.dev);
    bool missing = device_missing(f.ctx, status);
    if (!missing) {
        const smg_dim dim = {"rows", rows[0]};
        expect_ok(&f, status);
        int length = snprintf(text, sizeof text, "%soutput y = y\n", c->text);
        expect_ok(&f, smg_graph_parse(f.ctx, text, (size_t)length, "text", &f.g));
        smg_target target = *smg_vk_target(f.dev);
        if (gpu) target.load_latency = 5e-7, target.core_lanes = 8 * target.subgroup_max;
        for (int i = 0; gpu && i < target.matrix_count; i++) target.matrix[i].rate = 1e14;
        const smg_compile_options options = {.precision = precision, .dims = &dim, .dim_count = 1};
        expect_ok(&f, smg_compile_plan(f.ctx, f.g, &target, &options, &f.c));
        expect_ok(&f, smg_compile_modules(f.c));
        assert_int_equal(count_blocked(f.c->graph), 1);
        expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) run_and_check(&f, c, rows[i]);
        assert_int_equal(smg_vk_validation_errors(f.dev), 0);
    }
    smg_program_destroy(f.program);
    smg_compilation_destroy(f.c);
    smg_graph_destroy(f.g);
    smg_vk_close(f.dev);
    smg_arena_destroy(f.arena);
    smg_context_destroy(f.ctx);
    if (missing) skip();
}

static void by_matrices(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i += all_cases() ? 1 : 3) check(&cases[i], SMG_TYPE_F16, true);
}

static void by_lanes(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++)
        if (all_cases() || i % 3 != 0) check(&cases[i], SMG_TYPE_F32, i % 2 == 0);
}

int main(void) {
    device_compiles_plainly();
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_matrices), cmocka_unit_test(by_lanes)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
