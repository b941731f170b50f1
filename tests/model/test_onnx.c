/* ONNX files of several exporters against what onnxruntime stored for them: the graph's own meaning, before
 * and after the rewrites. One graph serves all cases of a file, whatever their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/model_case.h"

static double run_graph(model_fixture *f, const model_case *c, smg_arena *arena) {
    return model_reference_error(f, f->user, c, arena);
}

static void compare_graphs(model_fixture *f) {
    smg_graph *rewritten = NULL;
    smg_rewrite_report report;
    model_expect_ok(f, smg_rewrite_graph(f->source.graph, &rewritten, &report));
    f->user = f->source.graph;
    model_each_case(f, f->source.graph, "as read", run_graph);
    f->user = rewritten;
    model_each_case(f, rewritten, "rewritten", run_graph);
    smg_graph_destroy(rewritten);
}

static void the_graphs_mean_what_is_stored(void **state) {
    (void)state;
    model_each(MODEL_ONNX, compare_graphs, NULL);
}

/* What is computed from sizes leaves no trace: every input that the graph reads is one of the file's, and
 * sizes are the file's own names. */
static void expect_known_sizes(model_fixture *f) {
    static const char *const known[] = {"batch", "sequence", "decoder_sequence"};
    const smg_sizes *sizes = f->source.graph->sizes;
    assert_true(smg_size_symbol_count(sizes) >= 1);
    for (int s = 0; s < smg_size_symbol_count(sizes); s++) {
        bool found = false;
        for (size_t k = 0; k < SMG_COUNT_OF(known); k++)
            found = found || strcmp(known[k], smg_size_symbol_name(sizes, s)) == 0;
        if (!found) fail_msg("%s: size %s", f->folder, smg_size_symbol_name(sizes, s));
    }
}

static void sizes_keep_the_names_of_the_file(void **state) {
    (void)state;
    model_each(MODEL_ONNX, expect_known_sizes, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graphs_mean_what_is_stored),
        cmocka_unit_test(sizes_keep_the_names_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
