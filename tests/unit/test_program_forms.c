/* program: kernels with an even form (specialization constant 0), on whatever device there is. The plans are made for a
 * target like the device's, but one whose cores hide loads: only there kernels have such a form. Even sizes, odd ones
 * and even ones again are bound to one program and give the reference's values; each form is built when sizes first ask
 * for it. What smg_bundle_even says and what verification refuses needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/check_plan.h"
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"

#define RUNS 5
#define FORMS 2

typedef struct fixture {
    device_graph run;
    bool *built;   /* by module and form: what the program must have by now */
    int odd, even; /* steps that ran in each form */
} fixture;

/* A GPU's load takes longer than the target's threshold. */
static void compile(fixture *f, smg_target target) {
    const smg_compile_options options = {0};
    target.load_latency = 5e-7;
    target.fma_rate = 1e11; /* slow enough that tiles of several rows are worth it */
    assert_true(smg_target_hides_loads(&target));
    device_graph_compile(&f->run, &target, &options);
    f->built = SMG_ARENA_ARRAY(f->run.arena, bool, (size_t)f->run.c->bundle->modules.count *FORMS);
    assert_non_null(f->built);
    f->odd = f->even = 0;
}

/* What follows this in a test needs the device. */
static void start(fixture *f) {
    if (device_graph_open(&f->run)) return;
    device_graph_close(&f->run);
    skip();
}

/* Pipelines that the program must have: those it had, and the forms that these sizes ask for. */
static int wanted(fixture *f, const int64_t *sizes, bool count_steps) {
    const smg_bundle *bundle = f->run.c->bundle;
    const smg_bvariant *list = &bundle->variants.items[0];
    int count = 0;
    for (int i = 0; i < bundle->prepare.count; i++) f->built[bundle->prepare.items[i].module * FORMS] = true;
    for (int i = 0; i < list->run.count; i++) {
        const smg_bstep *step = &list->run.items[i];
        bool even = sizes != NULL && smg_bundle_even(bundle, step, sizes, sizes);
        f->built[step->module * FORMS + even] = true;
        if (count_steps) *(even ? &f->even : &f->odd) += 1;
    }
    for (int i = 0; i < bundle->modules.count * FORMS; i++) count += f->built[i];
    return count;
}

static int pipelines(const fixture *f) {
    smg_program_memory used;
    smg_program_memory_used(f->run.program, &used);
    return used.pipelines;
}

/* Runs all sizes on one program; the first of them are even, so the program is made for them when `expected`. */
static void run_sizes(fixture *f, const int64_t sizes[RUNS][4], bool expected) {
    const smg_program_options options = {.expected = expected ? sizes[0] : NULL};
    memset(f->built, 0, (size_t)f->run.c->bundle->modules.count * FORMS * sizeof(bool));
    device_graph_expect_ok(&f->run,
                           smg_program_create(f->run.ctx, f->run.c->bundle, f->run.dev, &options, &f->run.program));
    assert_int_equal(pipelines(f), wanted(f, options.expected, false));
    int least = pipelines(f);
    for (int i = 0; i < RUNS; i++) {
        device_graph_expect_ok(&f->run, smg_program_bind_sizes(f->run.program, sizes[i]));
        assert_int_equal(pipelines(f), wanted(f, sizes[i], true));
        if (i == 0) assert_int_equal(pipelines(f) == least, expected);
        device_graph_check(&f->run, f->run.g->name, sizes[i], (uint64_t)i);
    }
    int most = pipelines(f);
    assert_true(most > least);
    device_graph_expect_ok(&f->run, smg_program_bind_sizes(f->run.program, sizes[0]));
    assert_int_equal(pipelines(f), most);
    smg_program_destroy(f->run.program);
    f->run.program = NULL;
}

static void check_graph(const char *path, const char *text, const int64_t sizes[RUNS][4]) {
    fixture f;
    start(&f);
    if (path != NULL) device_graph_expect_ok(&f.run, check_load(f.run.ctx, path, &f.run.g));
    if (path == NULL) device_graph_parse(&f.run, text);
    compile(&f, *smg_vk_target(f.run.dev));
    run_sizes(&f, sizes, true);
    run_sizes(&f, sizes, false);
    assert_true(f.even > 0 && f.odd > 0);
    device_graph_close(&f.run);
}

static void attention(void **state) {
    (void)state;
    static const int64_t sizes[RUNS][4] = {
        {1, 2, 128, 128}, {1, 2, 77, 53}, {1, 2, 256, 128}, {2, 1, 128, 130}, {1, 2, 128, 128}};
    check_graph("tests/graphs/attention.smg", NULL, sizes);
}

/* Loops whose last step, which is not whole, stands behind them. */
static int peeled_loops(const fixture *f) {
    int count = 0;
    for (int i = 0; i < f->run.c->plan->steps.count; i++) {
        const smg_kernel *k = f->run.c->plan->steps.items[i].kernel;
        for (int c = 0; c < k->code.count; c++)
            count += k->code.items[c].kind == SMG_I_LOOP && smg_kernel_loop_is_whole(k, &k->code.items[c]);
    }
    return count;
}

static void the_last_step_asks(void **state) {
    (void)state;
    static const char *const extents[] = {"50004", "50001", "n"};
    static const int64_t sizes[] = {3, 5, 50004, 4097, 255, 1};
    for (size_t e = 0; e < SMG_COUNT_OF(extents); e++) {
        fixture f;
        char text[512];
        start(&f);
        snprintf(text, sizeof text,
                 "graph slices\ndim rows\ndim n max 60000\nx = input f32[rows, %s]\nz = input f32[rows, n]\n"
                 "m = reduce_max(x) axis=-1 keep\nd = sub(x, m)\ne = exp(d)\ny = sum(e) axis=-1\n"
                 "w = sum(z) axis=-1\noutput y = y\noutput w = w\n",
                 extents[e]);
        device_graph_parse(&f.run, text);
        compile(&f, *smg_vk_target(f.run.dev));
        assert_true(peeled_loops(&f) > 0);
        device_graph_expect_ok(&f.run, smg_program_create(f.run.ctx, f.run.c->bundle, f.run.dev, NULL, &f.run.program));
        for (size_t n = 2; n < SMG_COUNT_OF(sizes); n++)
            device_graph_check(&f.run, f.run.g->name, (int64_t[]){sizes[n % 2], sizes[n], 0, 0}, (uint64_t)n);
        device_graph_close(&f.run);
    }
}

static void product_of_rows(void **state) {
    (void)state;
    static const int64_t sizes[RUNS][4] = {{256}, {255}, {512}, {1}, {256}};
    check_graph("tests/graphs/linear_gelu.smg", NULL, sizes);
}

static void residual_and_norm(void **state) {
    (void)state;
    static const int64_t sizes[RUNS][4] = {{256}, {31}, {512}, {257}, {256}};
    check_graph("tests/graphs/linear_residual_layernorm.smg", NULL, sizes);
}

/* Rows as long as t: whether four neighbours are an aligned group is known when t is. */
static const char strided[] = "graph strided\n"
                              "dim s max 4096\n"
                              "dim t max 4096\n"
                              "a = input f32[s, t]\n"
                              "b = input f32[s, t]\n"
                              "w = input f32[48, t]\n"
                              "u = input f32[48, t]\n"
                              "m = mul(a, b) : f32[s, t]\n"
                              "p = contract(a, w) \"st,ot->so\" : f32[s, 48]\n"
                              "q = contract(p, u) \"so,ot->st\" : f32[s, t]\n"
                              "z = add(q, b) : f32[s, t]\n"
                              "output m = m\n"
                              "output p = p\n"
                              "output z = z\n";

static void strides_by_a_symbol(void **state) {
    (void)state;
    static const int64_t sizes[RUNS][4] = {{256, 256}, {256, 254}, {50, 68}, {33, 61}, {256, 256}};
    check_graph(NULL, strided, sizes);
}

/* The text asks where the device's own target has no even form, too. */
static void groups_are_asked_for(void **state) {
    (void)state;
    fixture f;
    start(&f);
    device_graph_parse(&f.run, strided);
    smg_target target = *smg_vk_target(f.run.dev);
    target.load_latency = 1e-8;
    const smg_compile_options options = {0};
    device_graph_compile(&f.run, &target, &options);
    const smg_bvariant *list = &f.run.c->bundle->variants.items[0];
    for (int i = 0; i < list->run.count; i++) assert_int_equal(list->run.items[i].even_count, 0);
    device_graph_expect_ok(&f.run, smg_program_create(f.run.ctx, f.run.c->bundle, f.run.dev, NULL, &f.run.program));
    int before = pipelines(&f);
    static const int64_t sizes[][2] = {{64, 64}, {64, 65}, {65, 66}, {7, 68}, {9, 3}, {1, 4}};
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) device_graph_check(&f.run, "strided", sizes[i], i);
    assert_int_equal(pipelines(&f), before);
    device_graph_close(&f.run);
}

/* ---- without a device ----------------------------------------------------------------------------- */

static void start_without_device(fixture *f) {
    smg_target target;
    f->run = (device_graph){0};
    assert_int_equal(smg_context_create(NULL, &f->run.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->run.ctx, &f->run.arena), SMG_OK);
    device_graph_expect_ok(&f->run, check_load(f->run.ctx, "tests/graphs/linear_gelu.smg", &f->run.g));
    device_graph_expect_ok(&f->run, check_target(f->run.ctx, "h200", &target));
    compile(f, target);
}

static bool even_at(const smg_bundle *bundle, const smg_bstep *step, int64_t rows) {
    return smg_bundle_even(bundle, step, &rows, &rows);
}

static void even_where_every_size_is(void **state) {
    (void)state;
    fixture f;
    start_without_device(&f);
    smg_bundle *bundle = f.run.c->bundle;
    smg_size rows = smg_size_symbol(bundle->sizes, "rows");
    smg_size more = smg_size_add(bundle->sizes, rows, smg_size_const(bundle->sizes, 2));
    smg_size two[2] = {rows, more};
    int64_t by[2] = {4, 3};
    smg_bstep step = bundle->variants.items[0].run.items[0];
    step.even_size = two;
    step.even_by = by;
    step.even_count = 0; /* it has no even form */
    assert_false(even_at(bundle, &step, 4));
    step.even_count = 1;
    assert_true(even_at(bundle, &step, 8));
    assert_false(even_at(bundle, &step, 6));
    step.even_count = 2;
    assert_true(even_at(bundle, &step, 4));
    assert_false(even_at(bundle, &step, 8)); /* the second is not */
    assert_false(even_at(bundle, &step, 1)); /* the first is not */
    device_graph_close(&f.run);
}

static void refuses_a_wrong_form(void **state) {
    (void)state;
    fixture f;
    start_without_device(&f);
    smg_bundle *bundle = f.run.c->bundle;
    smg_bstep *step = &bundle->variants.items[0].run.items[0];
    assert_true(step->even_count > 0);
    device_graph_expect_ok(&f.run, smg_bundle_verify(f.run.ctx, bundle));
    int64_t by = step->even_by[0];
    for (int64_t wrong = -1; wrong <= 0; wrong++) {
        step->even_by[0] = wrong;
        assert_int_equal(smg_bundle_verify(f.run.ctx, bundle), SMG_INTERNAL);
        assert_non_null(strstr(smg_context_error(f.run.ctx), wrong < 0 ? "is even by -1" : "is even by 0"));
        smg_context_clear_error(f.run.ctx);
    }
    step->even_by[0] = by;
    step->even_size[0] = SMG_SIZE_NONE;
    assert_int_equal(smg_bundle_verify(f.run.ctx, bundle), SMG_INTERNAL);
    smg_context_clear_error(f.run.ctx);
    device_graph_close(&f.run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),
        cmocka_unit_test(the_last_step_asks),
        cmocka_unit_test(product_of_rows),
        cmocka_unit_test(residual_and_norm),
        cmocka_unit_test(strides_by_a_symbol),
        cmocka_unit_test(groups_are_asked_for),
        cmocka_unit_test(even_where_every_size_is),
        cmocka_unit_test(refuses_a_wrong_form),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
