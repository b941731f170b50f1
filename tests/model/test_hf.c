/* Model directories of every family against what PyTorch stored for them: the graph's own meaning,
 * kernels in the interpreter, and how few of them there are. One graph, and one plan, serve all cases of a directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/model_case.h"

static const double tolerance = 1e-4;

typedef struct row {
    const char *folder, *output;
    const char *cases[4];
} row;

#define HF(folder_, output_, ...) {"tests/models/" folder_, output_, {__VA_ARGS__}},
static const row rows[] = {
#include "support/hf_models.h"
};
#undef HF

typedef struct fixture {
    smg_context *ctx;
    smg_source source;
    smg_compilation *c; /* NULL: the reference */
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static double run_reference(fixture *f, const model_case *c, smg_arena *arena) {
    smg_array in[MODEL_CASE_INPUTS], out;
    assert_int_equal(f->source.graph->outputs.count, 1);
    assert_string_equal(f->source.graph->outputs.items[0].name, c->output);
    for (int i = 0; i < c->input_count; i++)
        expect_ok(f, smg_tensor_to_array(&c->inputs[i], arena, &in[i]));
    expect_ok(f, smg_graph_eval(f->source.graph, c->symbols, in, arena, &out));
    return model_case_array_error(c, &out);
}

static double run_kernels(fixture *f, const model_case *c, smg_arena *arena) {
    smg_tensor out;
    expect_ok(f, smg_compile_interpret(f->c, c->symbols, c->inputs, c->input_count, arena, &out));
    return model_case_tensor_error(c, &out);
}

static void run_case(fixture *f, const row *r, const char *name) {
    smg_arena *arena = NULL;
    model_case c;
    expect_ok(f, smg_arena_create(f->ctx, &arena));
    expect_ok(f, model_case_load(f->ctx, f->source.graph, r->folder, name, r->output, arena, &c));
    double error = f->c == NULL ? run_reference(f, &c, arena) : run_kernels(f, &c, arena);
    print_message("%s %s: %.2g\n", r->folder, name, error);
    assert_true(error <= tolerance);
    smg_npy_close(&c.stored);
    smg_arena_destroy(arena);
}

static void run_rows(bool kernels) {
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        const row *r = &rows[i];
        fixture f = {.ctx = NULL};
        smg_target target;
        assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
        expect_ok(&f, smg_source_open(f.ctx, r->folder, false, &f.source));
        expect_ok(&f, smg_target_named(f.ctx, "lavapipe", &target));
        if (kernels) expect_ok(&f, smg_compile_plan(f.ctx, f.source.graph, &target, NULL, &f.c));
        for (int k = 0; k < 4 && r->cases[k] != NULL; k++) run_case(&f, r, r->cases[k]);
        smg_compilation_destroy(f.c);
        smg_source_close(&f.source);
        smg_context_destroy(f.ctx);
    }
}

static void the_graphs_mean_what_is_stored(void **state) {
    (void)state;
    run_rows(false);
}

static void their_kernels_compute_it(void **state) {
    (void)state;
    run_rows(true);
}

/* ---- fusion --------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Attentions of which the step has scores and weighted sum; -1: one without the other. */
static int attentions_of(const smg_graph *g, const smg_pstep *step) {
    int scores = 0, contexts = 0;
    for (int i = 0; i < step->node_count; i++) {
        const char *name = smg_graph_node(g, step->nodes[i])->name;
        scores += ends_with(name, ".scores");
        contexts += ends_with(name, ".context");
    }
    return scores == contexts ? scores : -1;
}

/* From the scores to the weighted sum of values, with rotary positions, biases, masks and grouped heads,
 * each attention is one kernel, and so few others are needed. */
static void attention_is_one_kernel(void **state) {
    const smg_compile_options options = {.objective = SMG_OBJECTIVE_DISPATCHES};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        fixture f = {.ctx = NULL};
        smg_target target;
        int attentions = 0;
        assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
        expect_ok(&f, smg_source_open(f.ctx, rows[i].folder, false, &f.source));
        expect_ok(&f, smg_target_named(f.ctx, "h200", &target));
        expect_ok(&f, smg_compile_plan(f.ctx, f.source.graph, &target, &options, &f.c));
        const smg_plan *plan = f.c->plan;
        for (int s = 0; s < plan->steps.count; s++) {
            int whole = attentions_of(plan->graph, &plan->steps.items[s]);
            if (whole < 0) fail_msg("%s: %s", rows[i].folder, plan->steps.items[s].because);
            attentions += whole;
        }
        print_message("%s: %d attentions, %d kernels\n", rows[i].folder, attentions,
                      plan->steps.count);
        assert_true(attentions > 0);
        assert_true(plan->steps.count <= 6 * attentions + 2);
        smg_compilation_destroy(f.c);
        smg_source_close(&f.source);
        smg_context_destroy(f.ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graphs_mean_what_is_stored),
        cmocka_unit_test(their_kernels_compute_it),
        cmocka_unit_test(attention_is_one_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
