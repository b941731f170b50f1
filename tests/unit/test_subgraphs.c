/* The subgraphs of docs/fusion.md, with the fewest dispatches: on whatever device there is, against the reference at sizes
 * that fill no tile, and as many kernels as the page says (golden.fusion) but for few; plans for a large GPU in the
 * interpreter, where tests/graphs have tests of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "smg/smg.h"
#include "support/check_plan.h"
#include "support/device.h"

static const struct {
    const char *file;
    int kernels;
} subgraphs[] = {
#define SUBGRAPH(file_, kernels_, does_) {file_, kernels_},
#include "support/subgraphs.h"
#undef SUBGRAPH
};

#define OUTPUTS 8
#define MOST_CUT 1 /* subgraphs that are more kernels on a CPU: a norm with a whole FFN behind it */

/* What one run takes and should give. */
typedef struct run {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    const char *file;
    int64_t symbols[4];
    smg_tensor inputs[CHECK_TENSORS];
    int inputs_count;
} run;

static int64_t size_of(const char *symbol) {
    static const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"b", 2}, {"h", 2}, {"s", 19}, {"t", 21}};
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++)
        if (strcmp(symbol, sizes[i].name) == 0) return sizes[i].value;
    return 3;
}

static void expect_ok(const run *r, smg_status status) {
    if (status != SMG_OK) fail_msg("%s: %s", r->file, smg_context_error(r->ctx));
}

static bool is_interpreted_here(size_t i) {
    return strncmp(subgraphs[i].file, "subgraphs/", 10) == 0;
}

static void start(smg_context *ctx, const char *file, run *r) {
    *r = (run){.ctx = ctx, .file = file};
    smg_node_id inputs[CHECK_TENSORS];
    expect_ok(r, smg_arena_create(ctx, &r->arena));
    const char *path = smg_arena_format(r->arena, "tests/%s.smg", file);
    expect_ok(r, check_load(ctx, path, &r->g));
    for (int i = 0; i < smg_size_symbol_count(r->g->sizes); i++)
        r->symbols[i] = size_of(smg_size_symbol_name(r->g->sizes, i));
    r->inputs_count = smg_graph_input_nodes(r->g, inputs, CHECK_TENSORS);
    for (int i = 0; i < r->inputs_count; i++)
        expect_ok(r, smg_tensor_fill(ctx, r->g, inputs[i], r->symbols, SMG_FILL_RANDOM, (uint64_t)i + 1, r->arena,
                                     &r->inputs[i]));
}

static void finish(run *r) {
    smg_graph_destroy(r->g);
    smg_arena_destroy(r->arena);
}

static void compare(run *r, const smg_compilation *c, const smg_tensor *outputs, const char *where) {
    smg_check check;
    expect_ok(r, smg_compile_check(r->ctx, r->g, smg_compile_roundings(c), r->symbols, r->inputs, r->inputs_count,
                                   outputs, r->arena, &check));
    for (int i = 0; i < check.count; i++)
        if (!check.rows[i].pass)
            printf("%s %s: %s is wrong by %g\n", r->file, where, check.rows[i].output, check.rows[i].max_rel);
    assert_true(check.pass && check.count == r->g->outputs.count);
}

static void interpreted(void **state) {
    (void)state;
    smg_context *ctx;
    smg_target target;
    const smg_compile_options o = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_target_named(ctx, "h200", &target), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(subgraphs); i += CHECK_ONE_IN) {
        run r;
        smg_compilation *c;
        smg_tensor outputs[OUTPUTS];
        if (!is_interpreted_here(i)) continue;
        start(ctx, subgraphs[i].file, &r);
        expect_ok(&r, smg_compile_plan(ctx, r.g, &target, &o, &c));
        expect_ok(&r, smg_compile_interpret(c, r.symbols, r.inputs, r.inputs_count, r.arena, outputs));
        compare(&r, c, outputs, "in the interpreter");
        smg_compilation_destroy(c);
        finish(&r);
    }
    smg_context_destroy(ctx);
}

#if SMG_VULKAN
static bool is_on_cpu(const smg_device *device) {
    return smg_vk_target(device)->type == SMG_DEVICE_CPU;
}
#else
static bool is_on_cpu(const smg_device *device) {
    return device == NULL;
}
#endif

static void on_device(void **state) {
    (void)state;
    smg_context *ctx;
    smg_device *device = NULL;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_status status = smg_device_open(ctx, NULL, &device);
    bool missing = device_missing(ctx, status);
    assert_true(missing || status == SMG_OK);
    const smg_model_desc desc = {
        .on = device, .goal = SMG_GOAL_DISPATCHES, .no_calibrate = true, .no_plan_cache = true};
    int cut = 0;
    for (size_t i = 0; !missing && i < SMG_COUNT_OF(subgraphs); i += CHECK_ONE_IN) {
        run r;
        smg_model *model;
        smg_tensor outputs[OUTPUTS] = {{0}};
        start(ctx, subgraphs[i].file, &r);
        for (int k = 0; k < r.g->outputs.count; k++) outputs[k].name = r.g->outputs.items[k].name;
        expect_ok(&r, smg_model_open_graph(ctx, r.g, &desc, &model));
        expect_ok(&r, smg_model_run(model, r.inputs, r.inputs_count, outputs, r.g->outputs.count));
        compare(&r, smg_model_compilation(model), outputs, "on the device");
        int kernels = smg_model_compilation(model)->plan->steps.count;
        if (kernels > subgraphs[i].kernels) printf("%s: %d kernels on the device\n", r.file, kernels);
        cut += kernels > subgraphs[i].kernels;
        smg_model_close(model);
        finish(&r);
    }
    bool is_cpu = !missing && is_on_cpu(device);
    smg_device_close(device);
    smg_context_destroy(ctx);
    if (missing) skip();
    if (is_cpu) assert_in_range(cut, 0, MOST_CUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(interpreted), cmocka_unit_test(on_device)};
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
