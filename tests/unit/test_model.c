/* BERT as a graph: the tiny model of Hugging Face against its stored results, pooling against loops, and
 * what happens to configurations and tensors that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "import/import.h"
#include "model/model.h"
#include "rewrite/rewrite.h"

#define FOLDER "tests/models/hf-bert-tiny"

/* A source over a model directory, with one key or tensor made wrong on request. */
typedef struct dir_source {
    smg_import_dir *dir;
    smg_safetensors *weights;
    const char *text_key, *text_value;
    const char *int_key;
    int64_t int_value;
    const char *missing;
} dir_source;

static smg_status get_int(void *user, const char *key, int64_t fallback, int64_t *out_value) {
    const dir_source *s = user;
    if (s->int_key && strcmp(key, s->int_key) == 0) return *out_value = s->int_value, SMG_OK;
    return smg_json_get_int(smg_json_root(s->dir->config), key, fallback, INT64_MIN, INT64_MAX, out_value);
}

static smg_status get_float(void *user, const char *key, double fallback, double *out_value) {
    return smg_json_get_double(smg_json_root(((const dir_source *)user)->dir->config), key, fallback, out_value);
}

static smg_status get_bool(void *user, const char *key, bool fallback, bool *out_value) {
    return smg_json_get_bool(smg_json_root(((const dir_source *)user)->dir->config), key, fallback, out_value);
}

static smg_status get_string(void *user, const char *key, const char *fallback, const char **out_value) {
    const dir_source *s = user;
    if (s->text_key && strcmp(key, s->text_key) == 0) return *out_value = s->text_value, SMG_OK;
    return smg_json_get_text(smg_json_root(s->dir->config), key, fallback, out_value);
}

static bool tensor(void *user, const char *name, smg_type *out_type, int *out_rank, int64_t out_dims[SMG_MAX_RANK],
                   const void **out_data) {
    const dir_source *s = user;
    const smg_import_tensor *found = smg_safetensors_find(s->weights, name);
    if (!found || (s->missing && strcmp(s->missing, name) == 0)) return false;
    *out_type = SMG_TYPE_F32;
    *out_rank = found->rank;
    for (int i = 0; i < found->rank; i++) out_dims[i] = found->dims[i];
    *out_data = found->data;
    return true;
}

typedef struct fixture {
    smg_context *ctx;
    dir_source from;
    smg_model_source source;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){.ctx = NULL};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_import_open_dir(f.ctx, FOLDER, &f.from.dir), SMG_OK);
    assert_int_equal(smg_import_dir_weights(f.from.dir, &f.from.weights), SMG_OK);
    f.source = (smg_model_source){.user = &f.from,
                                  .get_int = get_int,
                                  .get_float = get_float,
                                  .get_bool = get_bool,
                                  .get_string = get_string,
                                  .tensor = tensor};
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_import_close_dir(f->from.dir);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_array load(fixture *f, smg_arena *arena, const char *path) {
    smg_npy npy;
    if (smg_npy_open(f->ctx, path, &npy) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    smg_array array = {.type = npy.dtype == SMG_IMPORT_F32 ? SMG_TYPE_F32 : SMG_TYPE_I32, .rank = npy.rank};
    for (int i = 0; i < npy.rank; i++) array.dims[i] = npy.dims[i];
    array.data = SMG_ARENA_ARRAY(arena, double, (size_t)npy.count);
    float *numbers = SMG_ARENA_ARRAY(arena, float, (size_t)npy.count);
    assert_int_equal(smg_import_to_f32(f->ctx, npy.dtype, npy.data, npy.count, numbers), SMG_OK);
    for (int64_t i = 0; i < npy.count; i++) array.data[i] = (double)numbers[i];
    smg_npy_close(&npy);
    return array;
}

static void run(fixture *f, const smg_graph *g, smg_arena *arena, const char *folder, smg_array *inputs,
                smg_array *outputs) {
    int64_t symbols[2];
    inputs[0] = load(f, arena, smg_path_join(arena, folder, "in.input_ids.npy"));
    inputs[1] = load(f, arena, smg_path_join(arena, folder, "in.attention_mask.npy"));
    inputs[2] = inputs[0];
    inputs[2].data = SMG_ARENA_ARRAY(arena, double, (size_t)smg_array_elements(&inputs[0]));
    symbols[smg_size_symbol_find(g->sizes, "batch")] = inputs[0].dims[0];
    symbols[smg_size_symbol_find(g->sizes, "sequence")] = inputs[0].dims[1];
    if (smg_graph_eval(g, symbols, inputs, arena, outputs) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(smg_graph_flops(g, symbols) > 1e6);
}

/* Rows of padded tokens differ nowhere either: the reference masks them the same way. */
static double largest_difference(const smg_array *a, const smg_array *b) {
    double largest = 0.0;
    assert_int_equal(smg_array_elements(a), smg_array_elements(b));
    for (int64_t i = 0; i < smg_array_elements(a); i++) {
        assert_true(isfinite(a->data[i]) != 0);
        if (fabs(a->data[i] - b->data[i]) > largest) largest = fabs(a->data[i] - b->data[i]);
    }
    return largest;
}

static void assert_matches_stored(fixture *f, const smg_graph *g) {
    static const char *const folders[] = {FOLDER "/b1s7", FOLDER "/b3s77"};
    for (size_t i = 0; i < SMG_COUNT_OF(folders); i++) {
        smg_arena *arena = NULL;
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_array inputs[3], output;
        run(f, g, arena, folders[i], inputs, &output);
        smg_array stored = load(f, arena, smg_path_join(arena, folders[i], "out.last_hidden_state.npy"));
        double difference = largest_difference(&output, &stored);
        if (!(difference < 1e-4)) fail_msg("%s differs by %g", folders[i], difference);
        smg_arena_destroy(arena);
    }
}

static void the_tiny_model_gives_the_stored_results(void **state) {
    fixture *f = *state;
    smg_graph *g = NULL, *h = NULL;
    if (smg_model_build(f->ctx, &f->source, &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_matches_stored(f, g);
    if (smg_rewrite_graph(g, &h, NULL) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(h->nodes.count < g->nodes.count);
    assert_matches_stored(f, h);
    smg_graph_destroy(h);
    smg_graph_destroy(g);
}

static void expect_pooled(const smg_array *hidden, const smg_array *mask, bool cls, int64_t row, double *out) {
    int64_t tokens = hidden->dims[1], width = hidden->dims[2];
    double count = 0.0, energy = 0.0;
    for (int64_t i = 0; i < width; i++) out[i] = 0.0;
    for (int64_t t = 0; t < tokens; t++) {
        double weight = cls ? (t == 0 ? 1.0 : 0.0) : mask->data[row * tokens + t];
        count += weight;
        for (int64_t i = 0; i < width; i++) out[i] += weight * hidden->data[(row * tokens + t) * width + i];
    }
    for (int64_t i = 0; i < width; i++) out[i] /= count;
    for (int64_t i = 0; i < width; i++) energy += out[i] * out[i];
    for (int64_t i = 0; i < width; i++) out[i] /= sqrt(energy);
}

static void pooling_and_normalisation(void **state) {
    fixture *f = *state;
    for (int cls = 0; cls < 2; cls++) {
        smg_graph *g = NULL;
        smg_arena *arena = NULL;
        f->source.pooling = cls ? SMG_MODEL_POOLING_CLS : SMG_MODEL_POOLING_MEAN;
        f->source.normalize = true;
        if (smg_model_build(f->ctx, &f->source, &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        assert_string_equal(g->outputs.items[1].name, "embedding");
        assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
        smg_array inputs[3], outputs[2];
        double expected[64];
        run(f, g, arena, FOLDER "/b3s77", inputs, outputs);
        for (int64_t row = 0; row < 3; row++) {
            expect_pooled(&outputs[0], &inputs[1], cls == 1, row, expected);
            for (int64_t i = 0; i < 64; i++) assert_true(fabs(outputs[1].data[row * 64 + i] - expected[i]) < 1e-9);
        }
        smg_arena_destroy(arena);
        smg_graph_destroy(g);
    }
    smg_graph *g = NULL;
    f->source.embedding_only = true;
    assert_int_equal(smg_model_build(f->ctx, &f->source, &g), SMG_OK);
    assert_int_equal(g->outputs.count, 1);
    smg_graph_destroy(g);
}

static void assert_fails(fixture *f, smg_status code, const char *part) {
    smg_graph *g = NULL;
    assert_int_equal(smg_model_build(f->ctx, &f->source, &g), code);
    assert_null(g);
    if (!strstr(smg_context_error(f->ctx), part))
        fail_msg("\"%s\" does not say \"%s\"", smg_context_error(f->ctx), part);
    smg_context_clear_error(f->ctx);
}

static void what_does_not_fit_is_named(void **state) {
    fixture *f = *state;
    f->from.missing = "encoder.layer.1.output.dense.bias";
    assert_fails(f, SMG_NOT_FOUND, "tensor encoder.layer.1.output.dense.bias [64] is not in the model");
    f->from.missing = NULL;
    f->from.int_key = "vocab_size";
    f->from.int_value = 321;
    assert_fails(f, SMG_FORMAT, "embeddings.word_embeddings.weight is [320, 64], the configuration makes it [321, 64]");
    f->from.int_key = "num_attention_heads";
    f->from.int_value = 5;
    assert_fails(f, SMG_FORMAT, "hidden_size 64 is not a multiple of num_attention_heads 5");
    f->from.int_value = 0;
    assert_fails(f, SMG_FORMAT, "num_attention_heads is 0, must be in [1, 65536]");
    f->from.int_key = "num_hidden_layers";
    f->from.int_value = 3;
    assert_fails(f, SMG_NOT_FOUND, "tensor encoder.layer.2.");
    f->from.int_key = NULL;
    f->from.text_key = "hidden_act";
    f->from.text_value = "mish";
    assert_fails(f, SMG_UNSUPPORTED, "hidden_act 'mish' is not supported (gelu ");
    f->from.text_key = "position_embedding_type";
    f->from.text_value = "relative_key";
    assert_fails(f, SMG_UNSUPPORTED, "relative_key");
}

static void a_sequence_beyond_the_positions_is_refused(void **state) {
    fixture *f = *state;
    smg_graph *g = NULL;
    smg_arena *arena = NULL;
    static double zeros[161];
    int64_t symbols[2] = {161, 161};
    smg_array inputs[3], output;
    assert_int_equal(smg_model_build(f->ctx, &f->source, &g), SMG_OK);
    assert_int_equal(smg_size_symbol_max(g->sizes, smg_size_symbol_find(g->sizes, "sequence")), 160);
    symbols[smg_size_symbol_find(g->sizes, "batch")] = 1;
    for (int i = 0; i < 3; i++) inputs[i] = (smg_array){SMG_TYPE_I32, 2, {1, 161}, zeros};
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    assert_int_equal(smg_graph_eval(g, symbols, inputs, arena, &output), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "[0, 160)"));
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_tiny_model_gives_the_stored_results, setup, teardown),
        cmocka_unit_test_setup_teardown(pooling_and_normalisation, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sequence_beyond_the_positions_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
