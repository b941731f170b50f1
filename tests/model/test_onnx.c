/* ONNX files of several exporters against what onnxruntime stored for them: the graph's own meaning, before
 * and after the rewrites. One graph serves all cases of a file, whatever their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/model_case.h"

static const double tolerance = 1e-4;

typedef struct row {
    const char *folder, *output;
    const char *cases[6];
} row;

#define ONNX(folder_, output_, ...) {folder_, output_, {__VA_ARGS__}},
static const row rows[] = {
#include "support/onnx_models.h"
};
#undef ONNX

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *folder;
    smg_source source;
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_row(fixture *f, const row *r) {
    const char *models = getenv("SMG_TEST_MODELS");
    *f = (fixture){.ctx = NULL};
    assert_non_null(models);
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    expect_ok(f, smg_arena_create(f->ctx, &f->arena));
    f->folder = smg_arena_format(f->arena, "%s/onnx/%s", models, r->folder);
    assert_non_null(f->folder);
    const char *path = smg_path_join(f->arena, f->folder, "model.onnx");
    assert_non_null(path);
    expect_ok(f, smg_source_open(f->ctx, path, false, &f->source));
}

static void close_row(fixture *f) {
    smg_source_close(&f->source);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

/* ---- the reference -------------------------------------------------------------------------- */

static void check_reference(fixture *f, const row *r, const char *name, const smg_graph *g,
                            const char *which) {
    smg_arena *arena = NULL;
    model_case c;
    smg_array in[MODEL_CASE_INPUTS], out;
    expect_ok(f, smg_arena_create(f->ctx, &arena));
    expect_ok(f, model_case_load(f->ctx, g, f->folder, name, r->output, arena, &c));
    assert_int_equal(g->outputs.count, 1);
    assert_string_equal(g->outputs.items[0].name, r->output);
    for (int i = 0; i < c.input_count; i++)
        expect_ok(f, smg_tensor_to_array(&c.inputs[i], arena, &in[i]));
    expect_ok(f, smg_graph_eval(g, c.symbols, in, arena, &out));
    double error = model_case_array_error(&c, &out);
    print_message("%s %s %s: %.2g\n", r->folder, name, which, error);
    assert_true(error <= tolerance);
    smg_npy_close(&c.stored);
    smg_arena_destroy(arena);
}

static void the_graphs_mean_what_is_stored(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        fixture f;
        smg_graph *rewritten = NULL;
        smg_rewrite_report report;
        open_row(&f, &rows[i]);
        expect_ok(&f, smg_graph_rewrite(f.source.graph, &rewritten, &report));
        for (int k = 0; k < 6 && rows[i].cases[k] != NULL; k++) {
            check_reference(&f, &rows[i], rows[i].cases[k], f.source.graph, "as read");
            check_reference(&f, &rows[i], rows[i].cases[k], rewritten, "rewritten");
        }
        smg_graph_destroy(rewritten);
        close_row(&f);
    }
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* What is computed from sizes leaves no trace: every input that the graph reads is one of the file's, and
 * sizes are the file's own names. */
static void sizes_keep_the_names_of_the_file(void **state) {
    (void)state;
    static const char *const known[] = {"batch", "sequence", "decoder_sequence"};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        fixture f;
        open_row(&f, &rows[i]);
        const smg_sizes *sizes = f.source.graph->sizes;
        assert_true(smg_size_symbol_count(sizes) >= 1);
        for (int s = 0; s < smg_size_symbol_count(sizes); s++) {
            bool found = false;
            for (size_t k = 0; k < SMG_COUNT_OF(known); k++)
                found = found || strcmp(known[k], smg_size_symbol_name(sizes, s)) == 0;
            if (!found) fail_msg("%s: size %s", rows[i].folder, smg_size_symbol_name(sizes, s));
        }
        close_row(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graphs_mean_what_is_stored),
        cmocka_unit_test(sizes_keep_the_names_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
