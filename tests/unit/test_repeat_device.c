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
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"

enum { BODIES = 7, WIDTH = 24, TEXT = 8192 };

/* Weights are turned by the prepare list where they lie along k. */
static void make_graph(device_graph *f, const char *labels) {
    char text[TEXT];
    size_t size = sizeof text;
    int at = snprintf(text, size, "graph bodies\ndim rows max 4096\nx0 = input f32[rows, %d]\n", WIDTH);
    for (int b = 0; b < BODIES; b++)
        at += snprintf(text + at, size - (size_t)at,
                       "w%d = constant f32[%d, %d] random seed=%d scale=0.3\n"
                       "b%d = constant f32[%d] random seed=%d scale=0.1\n"
                       "p%d = contract(x%d, w%d) \"%s\"\nq%d = add(p%d, b%d)\nx%d = relu(q%d)\n",
                       b, WIDTH, WIDTH, b + 1, b, WIDTH, b + 50, b, b, b, labels, b, b, b, b + 1, b);
    (void)snprintf(text + at, size - (size_t)at, "output y = x%d\n", BODIES);
    device_graph_parse(f, text);
}

static const smg_kernel *kernel_of(const device_graph *f) {
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
static void check_prepared(device_graph *f, const smg_target *target, int64_t rows) {
    smg_bundle *prepared;
    device_graph_expect_ok(f, smg_compile_prepared(f->c->bundle, target, f->dev, f->arena, &prepared));
    assert_int_equal(prepared->prepare.count, 0);
    assert_int_equal(count_stacks(prepared), count_stacks(f->c->bundle));
    smg_program_destroy(f->program);
    f->program = NULL;
    device_graph_expect_ok(f, smg_program_create(f->ctx, prepared, f->dev, NULL, &f->program));
    device_graph_check(f, "prepared", &rows, (uint64_t)rows);
}

static void check(const char *labels, smg_type precision, bool gpu) {
    static const int64_t rows[] = {37, 64, 1};
    const smg_compile_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .precision = precision};
    device_graph f;
    bool found = device_graph_open(&f);
    if (found) {
        make_graph(&f, labels);
        smg_target target = gpu ? device_graph_gpu(&f) : *smg_vk_target(f.dev);
        if (gpu) target.barrier_cost = 1e-4;
        device_graph_compile(&f, &target, &options);
        assert_int_equal(count_stacks(f.c->bundle), 2);
        bool halves = gpu && precision == SMG_TYPE_F16 && target.matrix_count > 0;
        assert_int_equal(takes_matrices(kernel_of(&f)), halves);
        device_graph_expect_ok(&f, smg_program_create(f.ctx, f.c->bundle, f.dev, NULL, &f.program));
        for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) device_graph_check(&f, labels, &rows[i], (uint64_t)rows[i]);
        check_prepared(&f, &target, rows[0]);
    }
    device_graph_close(&f);
    if (!found) skip();
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
