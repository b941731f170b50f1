/* JSON access and model directories: typed members, both layouts, shards, names that lead outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"
#include "support/output.h"

static int setup(void **state) {
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

static void expect_error(smg_context *ctx, smg_status got, smg_status expected, const char *words) {
    if (got != expected || strstr(smg_context_error(ctx), words) == NULL) {
        fail_msg("status %d (%s), expected %d (...%s...)", (int)got, smg_context_error(ctx), (int)expected, words);
    }
    smg_context_clear_error(ctx);
}

static const char sample[] = "{\"i\": 7, \"whole\": 3.0, \"half\": 2.5, \"big\": "
                             "9223372036854775808, \"low\": -9223372036854775808,"
                             "\"text\": \"hi\", \"nul\": \"a\\u0000b\", \"yes\": true, \"null\": "
                             "null, \"list\": [1, [2, 3], {}],"
                             "\"twice\": 1, \"twice\": 2, \"empty\": []}";

static void test_json_values(void **state) {
    smg_context *ctx = *state;
    smg_json *json = NULL;
    assert_int_equal(smg_json_parse(ctx, "c.json", sample, sizeof(sample) - 1, &json), SMG_OK);
    smg_json_at root = smg_json_root(json);
    int64_t n = 0;
    double d = 0;
    bool b = false;
    const char *s = NULL;
    assert_int_equal(smg_json_need_int(root, "i", 0, 10, &n), SMG_OK);
    assert_int_equal(n, 7);
    assert_int_equal(smg_json_need_int(root, "whole", 0, 10, &n), SMG_OK);
    assert_int_equal(n, 3);
    assert_int_equal(smg_json_need_int(root, "low", INT64_MIN, 0, &n), SMG_OK);
    assert_true(n == INT64_MIN);
    assert_int_equal(smg_json_get_int(root, "absent", 42, 0, 1, &n), SMG_OK);
    assert_int_equal(n, 42);
    assert_int_equal(smg_json_get_int(root, "null", 43, 0, 1, &n), SMG_OK);
    assert_int_equal(n, 43);
    assert_int_equal(smg_json_get_int(root, "twice", 0, 0, 5, &n), SMG_OK);
    assert_int_equal(n, 2); /* the last of two equal keys, as in Python */
    assert_int_equal(smg_json_get_double(root, "half", 0, &d), SMG_OK);
    assert_true(d >= 2.5 && d <= 2.5);
    assert_int_equal(smg_json_get_bool(root, "yes", false, &b), SMG_OK);
    assert_true(b);
    assert_int_equal(smg_json_get_text(root, "text", "", &s), SMG_OK);
    assert_string_equal(s, "hi");
    expect_error(ctx, smg_json_need_int(root, "i", 8, 10, &n), SMG_FORMAT, "'c.json': \"i\" is 7, not in [8, 10]");
    expect_error(ctx, smg_json_get_int(root, "half", 0, 0, 9, &n), SMG_FORMAT, "2.5");
    expect_error(ctx, smg_json_need_int(root, "big", 0, 10, &n), SMG_FORMAT, "\"big\"");
    expect_error(ctx, smg_json_need_int(root, "text", 0, 10, &n), SMG_FORMAT, "string");
    expect_error(ctx, smg_json_need_int(root, "absent", 0, 10, &n), SMG_FORMAT, "no key \"absent\"");
    expect_error(ctx, smg_json_need_double(root, "yes", &d), SMG_FORMAT, "\"yes\"");
    expect_error(ctx, smg_json_get_bool(root, "i", false, &b), SMG_FORMAT, "true or false");
    expect_error(ctx, smg_json_need_text(root, "nul", &s), SMG_FORMAT, "NUL");
    expect_error(ctx, smg_json_need_text(root, "list", &s), SMG_FORMAT, "array");
    expect_error(ctx, smg_json_need_int(smg_json_get(root, "list"), "x", 0, 1, &n), SMG_FORMAT, "\"x\"");
    smg_json_close(json);
    smg_json_close(NULL);
    assert_int_equal(smg_json_get_int(smg_json_root(NULL), "x", 5, 0, 1, &n), SMG_OK);
    assert_int_equal(n, 5);
}

static void test_json_walk(void **state) {
    smg_context *ctx = *state;
    smg_json *json = NULL;
    assert_int_equal(smg_json_parse(ctx, "c.json", sample, sizeof(sample) - 1, &json), SMG_OK);
    smg_json_at root = smg_json_root(json);
    size_t keys = 0;
    for (smg_json_iter i = smg_json_begin(root); smg_json_next(&i); keys++) {
        assert_non_null(i.key);
        assert_int_equal(strlen(i.key), i.key_length);
    }
    assert_int_equal(keys, smg_json_count(root));
    smg_json_iter list = smg_json_begin(smg_json_get(root, "list"));
    int64_t n = 0;
    assert_true(smg_json_next(&list) && smg_json_as_int(list.value, &n) && n == 1);
    assert_null(list.key);
    assert_true(smg_json_next(&list) && smg_json_is_array(list.value));
    assert_true(smg_json_next(&list) && smg_json_is_object(list.value));
    assert_false(smg_json_next(&list));
    smg_json_iter none = smg_json_begin(smg_json_get(root, "empty"));
    assert_false(smg_json_next(&none));
    none = smg_json_begin(smg_json_get(root, "text"));
    assert_false(smg_json_next(&none));
    smg_json_close(json);
}

static void test_json_malformed(void **state) {
    smg_context *ctx = *state;
    static const char *const bad[] = {"{",   "{\"a\":1,}", "{\"a\" 1}",   "nul", "{\"a\":1e999}", "\"\xff\"", "{} x",
                                      "'a'", "[1 2]",      "\"\\ud800\"", "-"};
    for (size_t i = 0; i < SMG_COUNT_OF(bad); i++) {
        smg_json *json = NULL;
        expect_error(ctx, smg_json_parse(ctx, "b.json", bad[i], strlen(bad[i]), &json), SMG_FORMAT,
                     "'b.json' is not JSON");
        assert_null(json);
    }
    smg_json *json = NULL;
    expect_error(ctx, smg_json_parse(ctx, "b.json", "", 0, &json), SMG_FORMAT, "empty");
    expect_error(ctx, smg_json_open(ctx, "tests/models/absent.json", &json), SMG_NOT_FOUND, "absent");
}

/* ---- directories ---------------------------------------------------------------------------- */

static void test_plain_dir(void **state) {
    smg_context *ctx = *state;
    smg_import_dir *dir = NULL;
    assert_int_equal(smg_import_open_dir(ctx, "tests/models/hf-bert-tiny", &dir), SMG_OK);
    assert_string_equal(dir->model_type, "bert");
    assert_false(dir->is_sentence_model);
    assert_int_equal(dir->pooling, SMG_IMPORT_POOLING_NONE);
    assert_null(dir->vocab_path);
    smg_safetensors *table = NULL;
    smg_safetensors *again = NULL;
    assert_int_equal(smg_import_dir_weights(dir, &table), SMG_OK);
    assert_true(smg_safetensors_count(table) > 30);
    assert_int_equal(smg_import_dir_weights(dir, &again), SMG_OK);
    assert_ptr_equal(table, again);
    smg_tokenizer *tokenizer = NULL;
    expect_error(ctx, smg_tokenizer_open(ctx, dir, &tokenizer), SMG_NOT_FOUND, "tokenizer.json");
    smg_import_close_dir(dir);
    smg_import_close_dir(NULL);
    expect_error(ctx, smg_import_open_dir(ctx, "tests/models/absent", &dir), SMG_NOT_FOUND, "absent");
    expect_error(ctx, smg_import_open_dir(ctx, "tests/models", &dir), SMG_NOT_FOUND, "config.json");
    assert_null(dir);
}

static void test_sentence_dir(void **state) {
    smg_context *ctx = *state;
    smg_import_dir *dir = NULL;
    assert_int_equal(smg_import_open_dir(ctx, "tests/models/minilm", &dir), SMG_OK);
    assert_true(dir->is_sentence_model);
    assert_true(dir->normalize);
    assert_int_equal(dir->pooling, SMG_IMPORT_POOLING_MEAN);
    assert_int_equal(dir->max_seq_length, 256);
    assert_null(dir->foreign_module);
    smg_safetensors *table = NULL;
    expect_error(ctx, smg_import_dir_weights(dir, &table), SMG_NOT_FOUND, "model.safetensors");
    smg_import_close_dir(dir);
}

typedef struct made_dir {
    smg_context *ctx;
    char path[512];
} made_dir;

static made_dir make_dir(smg_context *ctx, const char *name) {
    made_dir made = {.ctx = ctx};
    char folder[128];
    snprintf(folder, sizeof(folder), "import_dir_%s", name);
    test_output(made.path, sizeof(made.path), folder);
    assert_int_equal(smg_path_make_dirs(ctx, made.path), SMG_OK);
    return made;
}

static void put(const made_dir *made, const char *name, const char *text, size_t size) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", made->path, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(smg_path_make_dirs(made->ctx, path), SMG_OK);
    *slash = '/';
    assert_int_equal(smg_file_write_atomic(made->ctx, path, text, size), SMG_OK);
}

static void put_text(const made_dir *made, const char *name, const char *text) {
    put(made, name, text, strlen(text));
}

/* One U8 tensor of one element. */
static void put_shard(const made_dir *made, const char *file, const char *tensor) {
    char text[256];
    int length = snprintf(text + 8, sizeof(text) - 8,
                          "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", tensor);
    memset(text, 0, 8);
    text[0] = (char)length;
    text[8 + length] = 9;
    put(made, file, text, (size_t)length + 9);
}

static void open_weights(const made_dir *made, smg_status status, const char *words) {
    smg_import_dir *dir = NULL;
    smg_safetensors *table = NULL;
    assert_int_equal(smg_import_open_dir(made->ctx, made->path, &dir), SMG_OK);
    smg_status got = smg_import_dir_weights(dir, &table);
    if (status == SMG_OK) {
        assert_int_equal(got, SMG_OK);
        assert_int_equal(smg_safetensors_count(table), 2);
        assert_int_equal(smg_safetensors_find(table, "b")->data[0], 9);
    } else {
        expect_error(made->ctx, got, status, words);
        assert_null(table);
    }
    smg_import_close_dir(dir);
}

static void test_shards(void **state) {
    made_dir made = make_dir(*state, "shards");
    put_text(&made, "config.json", "{}");
    put_shard(&made, "s1.safetensors", "a");
    put_shard(&made, "s2.safetensors", "b");
    const char *index = "model.safetensors.index.json";
    put_text(&made, index, "{\"weight_map\":{\"a\":\"s1.safetensors\",\"b\":\"s2.safetensors\"}}");
    open_weights(&made, SMG_OK, "");
    put_text(&made, index, "{\"weight_map\":{\"b\":\"s1.safetensors\",\"a\":\"s2.safetensors\"}}");
    open_weights(&made, SMG_FORMAT, "which lacks it");
    put_text(&made, index, "{\"weight_map\":{\"a\":\"s1.safetensors\",\"c\":\"s2.safetensors\"}}");
    open_weights(&made, SMG_FORMAT, "'c'");
    put_text(&made, index, "{\"weight_map\":{\"a\":\"../shards/s1.safetensors\"}}");
    open_weights(&made, SMG_FORMAT, "no usable file name");
    put_text(&made, index, "{\"weight_map\":{\"a\":\"/etc/hostname\"}}");
    open_weights(&made, SMG_FORMAT, "no usable file name");
    put_text(&made, index, "{\"weight_map\":{\"a\":\"s3.safetensors\"}}");
    open_weights(&made, SMG_NOT_FOUND, "s3.safetensors");
    put_text(&made, index, "{\"weight_map\":{}}");
    open_weights(&made, SMG_FORMAT, "weight_map");
    put_text(&made, index, "{\"weight_map\":[]}");
    open_weights(&made, SMG_FORMAT, "weight_map");
}

static void test_module_layouts(void **state) {
    smg_context *ctx = *state;
    made_dir made = make_dir(ctx, "modules");
    smg_import_dir *dir = NULL;
    put_text(&made, "model/0_T/config.json", "{\"model_type\": \"bert\"}");
    put_text(&made, "model/1_P/config.json", "{\"pooling_mode_cls_token\": true, \"pooling_mode_x\": false}");
    put_text(&made, "model/modules.json",
             "[{\"path\":\"0_T\",\"type\":\"sentence_transformers.models.Transformer\"},"
             "{\"path\":\"1_P\",\"type\":\"sentence_transformers.models.Pooling\"},"
             "{\"path\":\"2_D\",\"type\":\"sentence_transformers.models.Dense\"}]");
    assert_int_equal(smg_import_open_dir(ctx, made.path, &dir), SMG_OK);
    assert_non_null(strstr(dir->path, "model/0_T"));
    assert_int_equal(dir->pooling, SMG_IMPORT_POOLING_CLS);
    assert_false(dir->normalize);
    assert_string_equal(dir->foreign_module, "sentence_transformers.models.Dense");
    smg_import_close_dir(dir);
    put_text(&made, "model/1_P/config.json", "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}");
    assert_int_equal(smg_import_open_dir(ctx, made.path, &dir), SMG_OK);
    assert_int_equal(dir->pooling, SMG_IMPORT_POOLING_OTHER);
    smg_import_close_dir(dir);
    put_text(&made, "model/1_P/config.json", "{\"pooling_mode_cls_token\": 1}");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "pooling_mode_cls_token");
    put_text(&made, "model/modules.json", "[{\"path\":\"../../x\",\"type\":\"a.Transformer\"}]");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "leaves the directory");
    put_text(&made, "model/modules.json", "{}");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "array of modules");
    put_text(&made, "model/modules.json", "[{\"path\":\"none\",\"type\":\"a.Transformer\"}]");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_NOT_FOUND, "config.json");
    put_text(&made, "model/modules.json", "[7]");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "\"type\"");
    assert_null(dir);
}

static void test_bad_config(void **state) {
    smg_context *ctx = *state;
    made_dir made = make_dir(ctx, "config");
    smg_import_dir *dir = NULL;
    put_text(&made, "config.json", "[]");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "not a JSON object");
    put_text(&made, "config.json", "{\"model_type\": 3}");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "model_type");
    put_text(&made, "config.json", "{\"hidden");
    expect_error(ctx, smg_import_open_dir(ctx, made.path, &dir), SMG_FORMAT, "not JSON");
    assert_null(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_json_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_walk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_malformed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plain_dir, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sentence_dir, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_module_layouts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_config, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
