/* Repetitions on whatever device there is: constants of equal bodies lie one behind the other in its memory, whether the
 * prepare list writes them or they are uploaded, and one kernel gives what the reference does. Plans are made for the
 * device's target, and for one like a GPU, so that bodies multiply by its matrices. */
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

enum { BODIES = 7, WIDTH = 40, TEXT = 8192 };

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

/* Weights are turned by the prepare list where they lie along k. */
static void make_graph(fixture *f, const char *labels) {
    char text[TEXT];
    size_t size = sizeof text;
    int at = snprintf(text, size, "graph bodies\ndim rows max 4096\nx0 = input f32[rows, %d]\n", WIDTH);
    for (int b = 0; b < BODIES; b++)
        at += snprintf(text + at, size - (size_t)at,
                       "w%d = constant f32[%d, %d] random seed=%d scale=0.3\n"
                       "b%d = constant f32[%d] random seed=%d scale=0.1\n"
                       "p%d = contract(x%d, w%d) \"%s\"\nq%d = add(p%d, b%d)\nx%d = relu(q%d)\n",
                       b, WIDTH, WIDTH, b + 1, b, WIDTH, b + 50, b, b, b, labels, b, b, b, b + 1, b);
    at += snprintf(text + at, size - (size_t)at, "output y = x%d\n", BODIES);
    expect_ok(f, smg_graph_parse(f->ctx, text, (size_t)at, "text", &f->g));
}

static void run_and_check(fixture *f, int64_t rows) {
    static float got[4096 * WIDTH];
    smg_tensor x, y = {.name = "y", .rank = 2, .dims = {rows, WIDTH}, .data = got};
    smg_check check;
    expect_ok(f, smg_program_bind_sizes(f->program, &rows));
    expect_ok(f, smg_tensor_fill(f->ctx, f->g, 0, &rows, SMG_FILL_RANDOM, (uint64_t)rows, f->arena, &x));
    expect_ok(f, smg_program_write_input(f->program, x.name, x.data, x.rank, x.dims));
    expect_ok(f, smg_program_run(f->program));
    expect_ok(f, smg_program_read_output(f->program, "y", got, rows * WIDTH * 4));
    expect_ok(f, smg_compile_check(f->ctx, f->g, smg_compile_roundings(f->c), &rows, &x, 1, &y, f->arena, &check));
    if (!check.pass)
        fail_msg("%lld rows: %g, must be %g", (long long)rows, check.rows[0].worst_got, check.rows[0].worst_want);
}

static const smg_kernel *kernel_of(const fixture *f) {
    assert_int_equal(f->c->plan->steps.count, 1);
    return f->c->plan->steps.items[0].kernel;
}

/* Does the product take its right factor straight from memory, as whole matrices? */
static bool takes_matrices(const smg_kernel *k) {
    bool takes = false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        takes = takes || (in->matrices && in->kind == SMG_I_SET);
    }
    return takes;
}

static int count_stacks(const smg_bundle *bundle) {
    int stacks = 0;
    for (int i = 0; i < bundle->buffers.count; i++) stacks += bundle->buffers.items[i].kind == SMG_BUFFER_STACK;
    return stacks;
}

/* What the prepare list writes into a stack lies there from the start in a bundle whose list has run. */
static void check_prepared(fixture *f, const smg_target *target, int64_t rows) {
    smg_bundle *prepared;
    expect_ok(f, smg_compile_prepared(f->c->bundle, target, f->dev, f->arena, &prepared));
    assert_int_equal(prepared->prepare.count, 0);
    assert_int_equal(count_stacks(prepared), count_stacks(f->c->bundle));
    smg_program_destroy(f->program);
    f->program = NULL;
    expect_ok(f, smg_program_create(f->ctx, prepared, f->dev, NULL, &f->program));
    run_and_check(f, rows);
}

static void check(const char *labels, smg_type precision, bool gpu) {
    static const int64_t rows[] = {37, 64, 1};
    fixture f = {0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    smg_status status = smg_vk_open(f.ctx, NULL, 0, &f.dev);
    bool missing = device_missing(f.ctx, status);
    if (!missing) {
        expect_ok(&f, status);
        make_graph(&f, labels);
        smg_target target = *smg_vk_target(f.dev);
        if (gpu) target.load_latency = 5e-7, target.core_lanes = 8 * target.subgroup_max, target.barrier_cost = 1e-4;
        for (int i = 0; gpu && i < target.matrix_count; i++) target.matrix[i].rate = 1e14;
        const smg_compile_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .precision = precision};
        expect_ok(&f, smg_compile_plan(f.ctx, f.g, &target, &options, &f.c));
        expect_ok(&f, smg_compile_modules(f.c));
        assert_int_equal(count_stacks(f.c->bundle), 2);
        bool halves = gpu && precision == SMG_TYPE_F16 && target.matrix_count > 0;
        assert_int_equal(takes_matrices(kernel_of(&f)), halves);
        expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) run_and_check(&f, rows[i]);
        check_prepared(&f, &target, rows[0]);
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

static void by_lanes(void **state) {
    (void)state;
    check("ri,io->ro", SMG_TYPE_F32, false);
    check("ri,oi->ro", SMG_TYPE_F32, true);
    check("ri,oi->ro", SMG_TYPE_BF16, false);
}

static void by_matrices(void **state) {
    (void)state;
    check("ri,oi->ro", SMG_TYPE_F16, true);
    check("ri,io->ro", SMG_TYPE_F16, true);
}

/* ---- models that are planned again ------------------------------------------------------------------ */

enum { FEW = 2, NOMINAL = 40, MANY = 2000, STACK_WIDTH = 64 };

typedef struct ran {
    smg_model *model;
    float x[MANY * STACK_WIDTH], y[MANY * STACK_WIDTH], want[MANY * STACK_WIDTH];
} ran;

static void run_model(smg_context *ctx, ran *r, int64_t rows, float *y) {
    const smg_tensor in = {.name = "x0", .rank = 2, .dims = {rows, STACK_WIDTH}, .data = r->x};
    smg_tensor out = {.name = "y", .data = y, .bytes = (size_t)(rows * STACK_WIDTH) * sizeof *y};
    if (smg_model_run(r->model, &in, 1, &out, 1) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
}

static int stacks_of(const ran *r) {
    return count_stacks(smg_model_compilation(r->model)->bundle);
}

/* A model without stacks gets them where memory is short, for all of its run lists, and loses them again. */
static void by_hint(void **state) {
    static const int64_t rows[] = {NOMINAL, FEW, MANY};
    static ran r;
    const smg_dim dim = {"rows", NOMINAL};
    const smg_hint hint = {.memory_pressure = 1};
    const smg_model_desc desc = {.dims = &dim, .dim_count = 1, .no_calibrate = true, .no_plan_cache = true};
    smg_context *ctx;
    (void)state;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_status status = smg_model_open(ctx, "tests/subgraphs/mlp_stack64.smg", &desc, &r.model);
    if (device_missing(ctx, status)) {
        smg_context_destroy(ctx);
        skip();
    }
    if (status != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    for (int i = 0; i < MANY * STACK_WIDTH; i++) r.x[i] = (float)(i * 37 % 101) / 101.0f - 0.5f;
    run_model(ctx, &r, MANY, r.want);
    assert_int_equal(smg_model_hint(r.model, &hint), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        run_model(ctx, &r, rows[i], r.y);
        assert_int_equal(stacks_of(&r), 2);
        for (int k = 0; k < rows[i] * STACK_WIDTH; k++) assert_float_equal(r.y[k], r.want[k], 1e-5);
    }
    assert_int_equal(smg_model_hint(r.model, NULL), SMG_OK);
    run_model(ctx, &r, MANY, r.y);
    assert_memory_equal(r.y, r.want, sizeof r.y);
    smg_model_close(r.model);
    smg_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_lanes), cmocka_unit_test(by_matrices),
                                       cmocka_unit_test(by_hint)};
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
