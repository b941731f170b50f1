/* Model directories of every family against what PyTorch stored for them: the graph's own meaning, kernels in
 * the interpreter. One graph, and one plan, serve all cases of a directory. How few kernels there are is
 * golden.fusion's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/all_cases.h"
#include "support/model_case.h"

static double run_reference(model_fixture *f, const model_case *c, smg_arena *arena) {
    return model_reference_error(f, f->source.graph, c, arena);
}

static double run_kernels(model_fixture *f, const model_case *c, smg_arena *arena) {
    smg_tensor out;
    model_expect_ok(f, smg_compile_interpret(f->user, c->symbols, c->inputs, c->input_count, arena, &out));
    return model_case_tensor_error(c, &out);
}

static void compare_graph(model_fixture *f) {
    model_each_case(f, f->source.graph, "reference", run_reference);
}

static void compare_kernels(model_fixture *f) {
    smg_target target;
    smg_compilation *c = NULL;
    model_expect_ok(f, smg_target_named(f->ctx, "lavapipe", &target));
    model_expect_ok(f, smg_compile_plan(f->ctx, f->source.graph, &target, NULL, &c));
    f->user = c;
    model_each_case(f, f->source.graph, "interpreter", run_kernels);
    smg_compilation_destroy(c);
}

/* Models in turns have one of both types, with SMG_ALL_CASES both. */
typedef struct narrow_run {
    smg_type type;
    int turn, seen;
} narrow_run;

static void compare_narrow(model_fixture *f) {
    smg_target target;
    smg_compilation *c = NULL;
    narrow_run *run = f->user;
    const smg_compile_options options = {.precision = run->type};
    if (!all_cases() && run->seen++ % 2 != run->turn) return;
    model_expect_ok(f, smg_target_named(f->ctx, "h200", &target));
    model_expect_ok(f, smg_compile_plan(f->ctx, f->source.graph, &target, &options, &c));
    f->tolerance = run->type == SMG_TYPE_F16 ? 5e-3 : 2e-2;
    f->first = true;
    f->user = c;
    model_each_case(f, f->source.graph, smg_type_word(run->type), run_kernels);
    smg_compilation_destroy(c);
}

static void the_graphs_mean_what_is_stored(void **state) {
    (void)state;
    model_each(MODEL_HF, compare_graph, NULL);
}

static void their_kernels_compute_it(void **state) {
    (void)state;
    model_each(MODEL_HF, compare_kernels, NULL);
}

static void in_16_bits_they_come_near(void **state) {
    narrow_run runs[] = {{.type = SMG_TYPE_F16, .turn = 0}, {.type = SMG_TYPE_BF16, .turn = 1}};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(runs); i++) model_each(MODEL_HF, compare_narrow, &runs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graphs_mean_what_is_stored),
        cmocka_unit_test(their_kernels_compute_it),
        cmocka_unit_test(in_16_bits_they_come_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
