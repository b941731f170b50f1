/* Products by matrices of the device at hand as if nobody knew which lane has which sum: its target without fragments, of
 * a GPU's rate, so that plans have them. Results agree with the reference, rows and columns that are no multiples of a
 * matrix's sides included, with gates, statistics and running sums behind the sums. */
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
#include "support/device.h"
#include "support/driver_leaks.h"

enum { INPUTS = 8 };

/* Sizes in the order of the graph's symbols. */
typedef struct opaque_case {
    const char *path;
    int64_t sizes[4];
} opaque_case;

static const opaque_case cases[] = {{"tests/graphs/gru.smg", {21}}, {"tests/graphs/attention.smg", {1, 2, 33, 77}}};

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

static void run_and_check(fixture *f, const opaque_case *c) {
    smg_tensor in[INPUTS], out;
    smg_node_id inputs[INPUTS];
    smg_check check;
    int64_t elements = 1;
    int count = smg_graph_input_nodes(f->g, inputs, INPUTS);
    assert_in_range(count, 1, INPUTS);
    expect_ok(f, smg_tensor_make(f->ctx, f->g, f->g->outputs.items[0].node, c->sizes, f->arena, &out));
    out.name = f->g->outputs.items[0].name;
    for (int i = 0; i < out.rank; i++) elements *= out.dims[i];
    expect_ok(f, smg_program_bind_sizes(f->program, c->sizes));
    for (int i = 0; i < count; i++) {
        uint64_t seed = (uint64_t)i + 1;
        expect_ok(f, smg_tensor_fill(f->ctx, f->g, inputs[i], c->sizes, SMG_FILL_RANDOM, seed, f->arena, &in[i]));
        expect_ok(f, smg_program_write_input(f->program, in[i].name, in[i].data, in[i].rank, in[i].dims));
    }
    expect_ok(f, smg_program_run(f->program));
    expect_ok(f, smg_program_read_output(f->program, out.name, out.data, elements * 4));
    expect_ok(
        f, smg_compile_check(f->ctx, f->g, smg_compile_roundings(f->c), c->sizes, in, count, &out, f->arena, &check));
    if (!check.pass) fail_msg("%s: %g, must be %g", c->path, check.rows[0].worst_got, check.rows[0].worst_want);
}

static int count_opaque(const smg_compilation *c) {
    int opaque = 0;
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_kernel *k = c->plan->steps.items[i].kernel;
        opaque += k != NULL && k->matrix.opaque;
    }
    return opaque;
}

static void check(fixture *f, const opaque_case *c) {
    char *text;
    size_t size;
    expect_ok(f, smg_file_read(f->ctx, c->path, &text, &size));
    expect_ok(f, smg_graph_parse(f->ctx, text, size, c->path, &f->g));
    smg_free(f->ctx, text, size + 1);
    smg_target target = *smg_vk_target(f->dev);
    target.load_latency = 5e-7;
    target.core_lanes = 8 * target.subgroup_max;
    target.registers_lane = 64; /* small blocks: the driver takes long for large ones */
    target.fragment_count = 0;
    for (int i = 0; i < target.matrix_count; i++) target.matrix[i].rate = 1e14;
    const smg_compile_options options = {.precision = SMG_TYPE_F16};
    expect_ok(f, smg_compile_plan(f->ctx, f->g, &target, &options, &f->c));
    expect_ok(f, smg_compile_modules(f->c));
    assert_true(target.matrix_count == 0 || count_opaque(f->c) > 0);
    expect_ok(f, smg_program_create(f->ctx, f->c->bundle, f->dev, NULL, &f->program));
    run_and_check(f, c);
    assert_int_equal(smg_vk_validation_errors(f->dev), 0);
    smg_program_destroy(f->program);
    smg_compilation_destroy(f->c);
    smg_graph_destroy(f->g);
    f->program = NULL;
    f->c = NULL;
    f->g = NULL;
}

static void test_results(void **state) {
    (void)state;
    fixture f = {0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    smg_status status = smg_vk_open(f.ctx, NULL, 0, &f.dev);
    bool missing = device_missing(f.ctx, status);
    if (!missing) expect_ok(&f, status);
    for (size_t i = 0; !missing && i < SMG_COUNT_OF(cases); i++) check(&f, &cases[i]);
    smg_vk_close(f.dev);
    smg_arena_destroy(f.arena);
    smg_context_destroy(f.ctx);
    if (missing) skip();
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
