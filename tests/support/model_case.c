/* Loading and comparing of stored cases; see the header. */
#include "support/model_case.h"
#include "support/all_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "support/device.h"

static smg_status load_inputs(smg_context *ctx, const smg_graph *g, const char *where, smg_arena *arena,
                              model_case *c) {
    smg_node_id nodes[MODEL_CASE_INPUTS];
    c->input_count = smg_graph_input_nodes(g, nodes, MODEL_CASE_INPUTS);
    if (c->input_count > MODEL_CASE_INPUTS || smg_size_symbol_count(g->sizes) > 8)
        return smg_fail(ctx, SMG_INVALID, "more inputs or sizes than a stored case has room for");
    for (int i = 0; i < c->input_count; i++) {
        const char *name = smg_graph_node(g, nodes[i])->name;
        const char *path = smg_arena_format(arena, "%s/in.%s.npy", where, name);
        if (path == NULL) return SMG_MEMORY;
        smg_port port;
        SMG_TRY(smg_compile_input_port(g, nodes[i], &port));
        if (smg_file_exists(path)) SMG_TRY(smg_tensor_load(ctx, &port, path, arena, &c->inputs[i]));
    }
    SMG_TRY(smg_tensor_sizes(ctx, g, c->inputs, c->input_count, NULL, c->symbols));
    for (int i = 0; i < c->input_count; i++) {
        if (c->inputs[i].data == NULL)
            SMG_TRY(smg_tensor_fill(ctx, g, nodes[i], c->symbols, SMG_FILL_ZEROS, 0, arena, &c->inputs[i]));
    }
    return SMG_OK;
}

smg_status model_case_load(smg_context *ctx, const smg_graph *g, const char *folder, const char *name,
                           const char *output, smg_arena *arena, model_case *out_case) {
    *out_case = (model_case){.output = output};
    const char *where = smg_path_join(arena, folder, name);
    if (where == NULL) return SMG_MEMORY;
    SMG_TRY(load_inputs(ctx, g, where, arena, out_case));
    const char *path = smg_arena_format(arena, "%s/out.%s.npy", where, output);
    if (path == NULL) return SMG_MEMORY;
    SMG_TRY(smg_npy_open(ctx, path, &out_case->stored));
    if (out_case->stored.dtype == SMG_IMPORT_F32) return SMG_OK;
    smg_npy_close(&out_case->stored);
    return smg_fail(ctx, SMG_FORMAT, "'%s' is not F32", path);
}

static double case_error(const model_case *c, int64_t count, double (*get)(void *user, int64_t index), void *user) {
    double worst = 0, largest = 0;
    if (count != c->stored.count || count == 0) return INFINITY;
    for (int64_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, c->stored.data + (size_t)i * sizeof value, sizeof value);
        double error = fabs(get(user, i) - (double)value);
        if (!(error <= worst)) worst = error;
        if (fabs((double)value) > largest) largest = fabs((double)value);
    }
    return worst == worst ? worst / largest : INFINITY;
}

static double of_tensor(void *user, int64_t index) {
    return smg_tensor_get(user, index);
}

double model_case_tensor_error(const model_case *c, const smg_tensor *got) {
    smg_tensor copy = *got;
    return case_error(c, smg_tensor_elements(got), of_tensor, &copy);
}

static double of_array(void *user, int64_t index) {
    return ((const smg_array *)user)->data[index];
}

double model_case_array_error(const model_case *c, const smg_array *got) {
    smg_array copy = *got;
    return case_error(c, smg_array_elements(got), of_array, &copy);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static const model_row hf_rows[] = {
#define HF(folder_, output_, ...) {folder_, output_, {__VA_ARGS__}},
#include "support/hf_models.h"
#undef HF
};

static const model_row onnx_rows[] = {
#define ONNX(folder_, output_, ...) {folder_, output_, {__VA_ARGS__}},
#include "support/onnx_models.h"
#undef ONNX
};

void model_expect_ok(const model_fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s: %s", f->row->folder, smg_context_error(f->ctx));
}

static void open_row(model_fixture *f, model_rows rows) {
    const char *models = rows == MODEL_HF ? "tests/models" : getenv("SMG_TEST_MODELS");
    if (models == NULL) fail_msg("SMG_TEST_MODELS is not set: the build unpacks models there");
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    model_expect_ok(f, smg_arena_create(f->ctx, &f->arena));
    f->folder = smg_arena_format(f->arena, rows == MODEL_HF ? "%s/%s" : "%s/onnx/%s", models, f->row->folder);
    assert_non_null(f->folder);
    const char *path = rows == MODEL_HF ? f->folder : smg_path_join(f->arena, f->folder, "model.onnx");
    assert_non_null(path);
    model_expect_ok(f, smg_source_open(f->ctx, path, false, &f->source));
}

static void close_row(model_fixture *f) {
    smg_source_close(&f->source);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

void model_each(model_rows rows, void (*body)(model_fixture *f), void *user) {
    const model_row *row = rows == MODEL_HF ? hf_rows : onnx_rows;
    size_t count = rows == MODEL_HF ? SMG_COUNT_OF(hf_rows) : SMG_COUNT_OF(onnx_rows);
    for (size_t i = 0; i < count; i++) {
        model_fixture f = {.row = &row[i], .user = user};
        open_row(&f, rows);
        body(&f);
        close_row(&f);
    }
}

void model_each_case(model_fixture *f, const smg_graph *g, const char *what,
                     double (*answer)(model_fixture *f, const model_case *c, smg_arena *arena)) {
    for (const char *const *name = f->row->cases; *name != NULL; name++) {
        smg_arena *arena = NULL;
        model_case c;
        model_expect_ok(f, smg_arena_create(f->ctx, &arena));
        model_expect_ok(f, model_case_load(f->ctx, g, f->folder, *name, f->row->output, arena, &c));
        double error = answer(f, &c, arena);
        print_message("%s %s %s: %.2g\n", f->row->folder, *name, what, error);
        assert_true(error <= (f->tolerance > 0 ? f->tolerance : MODEL_CASE_TOLERANCE));
        smg_npy_close(&c.stored);
        smg_arena_destroy(arena);
        if (f->first) break;
    }
}

double model_reference_error(const model_fixture *f, const smg_graph *g, const model_case *c, smg_arena *arena) {
    smg_array in[MODEL_CASE_INPUTS], out;
    assert_int_equal(g->outputs.count, 1);
    assert_string_equal(g->outputs.items[0].name, c->output);
    for (int i = 0; i < c->input_count; i++) model_expect_ok(f, smg_tensor_to_array(&c->inputs[i], arena, &in[i]));
    model_expect_ok(f, smg_graph_eval(g, c->symbols, in, arena, &out));
    return model_case_array_error(c, &out);
}

/* ---- on a device ----------------------------------------------------------------------------------- */

static double run_model(model_fixture *f, const model_case *c, smg_arena *arena) {
    smg_tensor out = {.name = c->output};
    (void)arena;
    model_expect_ok(f, smg_model_run(f->user, c->inputs, c->input_count, &out, 1));
    return model_case_tensor_error(c, &out);
}

typedef struct device_run {
    const char *precision;
    double tolerance; /* 0: MODEL_CASE_TOLERANCE */
    bool first;       /* one case of each model, and every other model */
    int turn, seen;   /* which of two, models so far */
    bool without;     /* there is no device */
} device_run;

static void run_row(model_fixture *f) {
    device_run *run = f->user;
    const smg_model_desc desc = {.no_calibrate = true, .precision = run->precision};
    smg_model *model = NULL;
    if (run->without || (run->first && run->seen++ % 2 != run->turn)) return;
    smg_status status = smg_model_open_source(f->ctx, &f->source, NULL, &desc, &model);
    run->without = device_missing(f->ctx, status);
    if (run->without) return;
    model_expect_ok(f, status);
    f->user = model;
    f->tolerance = run->tolerance;
    f->first = run->first;
    model_each_case(f, f->source.graph, run->precision, run_model);
    smg_model_close(model);
}

static void in_f32_on_a_device(void **state) {
    device_run run = {.precision = "f32"};
    model_each(*(const model_rows *)*state, run_row, &run);
    if (run.without) skip();
}

/* Within 5e-3 and 2e-2 of the largest value: the first case of each model in one of both, models in turns; with
 * SMG_ALL_CASES every case in both (most of it is the driver's compiler). */
static void in_16_bits_on_a_device(void **state) {
    static const device_run runs[] = {{.precision = "f16", .tolerance = 5e-3},
                                      {.precision = "bf16", .tolerance = 2e-2}};
    for (size_t i = 0; i < SMG_COUNT_OF(runs); i++) {
        device_run run = runs[i];
        run.first = !all_cases();
        run.turn = (int)i;
        model_each(*(const model_rows *)*state, run_row, &run);
        if (run.without) skip();
    }
}

int model_device_main(model_rows rows, bool narrow) {
    const struct CMUnitTest wide[] = {cmocka_unit_test_prestate(in_f32_on_a_device, &rows)};
    const struct CMUnitTest half[] = {cmocka_unit_test_prestate(in_16_bits_on_a_device, &rows)};
    device_compiles_plainly();
    return device_result(narrow ? cmocka_run_group_tests(half, NULL, NULL) : cmocka_run_group_tests(wide, NULL, NULL));
}
