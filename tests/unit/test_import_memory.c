/* Every allocation of the importers fails once: the status is MEMORY, nothing leaks, no result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"
#include "support/output.h"

typedef struct meter {
    long left;    /* allocations until one fails */
    bool failed;  /* it came to that */
    size_t bytes; /* held now */
} meter;

static void *metered(void *user, void *pointer, size_t old_size, size_t new_size) {
    meter *m = user;
    if (new_size > old_size || pointer == NULL) {
        if (m->left-- == 0) {
            m->failed = true;
            return NULL;
        }
    }
    m->bytes += new_size - (pointer != NULL ? old_size : 0);
    if (new_size != 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

static smg_status open_weights(smg_context *ctx) {
    smg_import_dir *dir = NULL;
    smg_safetensors *table = NULL;
    smg_status status = smg_import_open_dir(ctx, "tests/models/hf-bert-tiny", &dir);
    if (status == SMG_OK) status = smg_import_dir_weights(dir, &table);
    assert_true((status == SMG_OK) == (table != NULL));
    smg_import_close_dir(dir);
    return status;
}

static smg_status open_sentence_dir(smg_context *ctx) {
    smg_import_dir *dir = NULL;
    smg_status status = smg_import_open_dir(ctx, "tests/models/minilm", &dir);
    assert_true((status == SMG_OK) == (dir != NULL));
    smg_import_close_dir(dir);
    return status;
}

static smg_status open_tokenizer(smg_context *ctx) {
    static const char json[] = "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
                               "\"BertPreTokenizer\"},"
                               "\"added_tokens\":[{\"id\":3,\"content\":\"<x>\"}],"
                               "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}}}";
    smg_tokenizer *tokenizer = NULL;
    smg_status status = smg_tokenizer_open_bytes(ctx, NULL, 0, json, sizeof(json) - 1, &tokenizer);
    assert_true((status == SMG_OK) == (tokenizer != NULL));
    smg_tokenizer_close(tokenizer);
    if (status != SMG_OK) return status;
    static const char vocab[] = "[UNK]\n[CLS]\n[SEP]\na\n##b\n";
    status = smg_tokenizer_open_bytes(ctx, vocab, sizeof(vocab) - 1, NULL, 0, &tokenizer);
    assert_true((status == SMG_OK) == (tokenizer != NULL));
    smg_tokenizer_close(tokenizer);
    return status;
}

static smg_status round_trip_npy(smg_context *ctx) {
    char path[1024];
    test_output(path, sizeof(path), "memory.npy");
    static const float value = 1;
    smg_npy array = {0};
    smg_status status = smg_npy_write(ctx, path, SMG_IMPORT_F32, 0, NULL, &value);
    if (status == SMG_OK) status = smg_npy_open(ctx, path, &array);
    smg_npy_close(&array);
    remove(path);
    return status;
}

static void sweep(smg_status (*body)(smg_context *ctx)) {
    for (long fail_at = 0;; fail_at++) {
        assert_true(fail_at < 100000);
        meter m = {.left = INT32_MAX};
        smg_context_desc desc = {.reallocate = metered, .user = &m, .cache_dir = ""};
        smg_context *ctx = NULL;
        assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
        size_t before = m.bytes;
        m.left = fail_at;
        smg_status status = body(ctx);
        assert_int_equal(m.bytes, before);
        if (m.failed && status != SMG_MEMORY) {
            fail_msg("allocation %ld failed and the status is %d: %s", fail_at, (int)status, smg_context_error(ctx));
        }
        assert_true(m.failed || status == SMG_OK);
        if (m.failed) assert_true(smg_context_error(ctx)[0] != '\0');
        smg_context_destroy(ctx);
        assert_int_equal(m.bytes, 0);
        if (!m.failed) break;
    }
}

static void test_weights(void **state) {
    (void)state;
    sweep(open_weights);
}

static void test_sentence_dir(void **state) {
    (void)state;
    sweep(open_sentence_dir);
}

static void test_tokenizer(void **state) {
    (void)state;
    sweep(open_tokenizer);
}

static void test_npy(void **state) {
    (void)state;
    sweep(round_trip_npy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_sentence_dir),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_npy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
