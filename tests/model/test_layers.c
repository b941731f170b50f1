/* What fusion leaves of a layer of every stored model with the objective of fewest dispatches: each row-wise
 * maximum stands between two products in one kernel (scores, softmax and what it weighs, whatever the exporter
 * wrote around them), and from one such kernel to the next there are no more dispatches than promised.
 * docs/models.md has the totals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"

typedef struct row {
    const char *root, *folder, *file;
} row;

#define HF(folder_, output_, ...) {"tests/models/", folder_, ""},
#define ONNX(folder_, output_, ...) {NULL, folder_, "/model.onnx"},
static const row rows[] = {
#include "support/hf_models.h"
#include "support/onnx_models.h"
};
#undef HF
#undef ONNX

static int most_of(const char *folder) {
    return strstr(folder, "llama") != NULL ? 7 : 6;
}

static int holds(const smg_graph *g, const smg_pstep *s, const char *word) {
    int found = 0;
    for (int i = 0; i < s->node_count; i++) {
        found += strcmp(smg_op_get(smg_graph_node(g, s->nodes[i])->op)->word, word) == 0;
    }
    return found;
}

static void check_steps(const smg_plan *plan, const char *folder) {
    int last = -1, found = 0;
    for (int s = 0; s < plan->steps.count; s++) {
        const smg_pstep *step = &plan->steps.items[s];
        if (holds(plan->graph, step, "reduce_max") == 0) continue;
        if (holds(plan->graph, step, "contract") < 2) fail_msg("%s: attention is cut at %s", folder, step->name);
        if (last >= 0 && s - last > most_of(folder))
            fail_msg("%s: %d dispatches before %s", folder, s - last, step->name);
        last = s;
        found++;
    }
    printf("%s: %d dispatches, %d kernels of attention\n", folder, plan->steps.count, found);
    if (strstr(folder, "linear") == NULL) assert_true(found > 0);
}

static void check_graph(smg_context *ctx, const smg_graph *g, const char *folder) {
    smg_dim dims[8];
    smg_target target;
    smg_compilation *made;
    int count = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < count && i < 8; i++) {
        const char *name = smg_size_symbol_name(g->sizes, i);
        int64_t most = smg_size_symbol_max(g->sizes, i);
        dims[i] = (smg_dim){.name = name, .value = strcmp(name, "batch") == 0 ? 1 : most < 128 ? most : 128};
    }
    assert_int_equal(smg_target_named(ctx, "h200", &target), SMG_OK);
    smg_compile_options o = {.objective = SMG_OBJECTIVE_DISPATCHES, .dims = dims, .dim_count = count};
    if (smg_compile_plan(ctx, g, &target, &o, &made) != SMG_OK) fail_msg("%s: %s", folder, smg_context_error(ctx));
    check_steps(made->plan, folder);
    smg_compilation_destroy(made);
}

static void check_row(const row *r) {
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    const char *root = r->root != NULL ? r->root : getenv("SMG_TEST_MODELS");
    assert_non_null(root);
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    const char *path = smg_arena_format(arena, "%s%s%s%s", root, r->root != NULL ? "" : "/onnx/", r->folder, r->file);
    if (smg_source_open(ctx, path, false, &source) != SMG_OK) fail_msg("%s: %s", path, smg_context_error(ctx));
    check_graph(ctx, source.graph, r->folder);
    smg_source_close(&source);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
}

static void attention_is_one_kernel(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) check_row(&rows[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_is_one_kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
