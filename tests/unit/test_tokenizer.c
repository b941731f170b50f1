/* WordPiece: every stored id of the reference, truncation, hostile text and hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"

typedef struct fixture {
    smg_context *ctx;
    smg_tokenizer *tokenizer; /* of tests/models/minilm */
    int64_t blocks;           /* allocations so far */
} fixture;

static void *count_blocks(void *user, void *pointer, size_t old_size, size_t new_size) {
    fixture *f = user;
    (void)old_size;
    f->blocks++;
    if (new_size != 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    smg_context_desc desc = {.reallocate = count_blocks, .user = f};
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    smg_import_dir *dir = NULL;
    assert_int_equal(smg_import_open_dir(f->ctx, "tests/models/minilm", &dir), SMG_OK);
    assert_int_equal(smg_tokenizer_open(f->ctx, dir, &f->tokenizer), SMG_OK);
    smg_import_close_dir(dir);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_tokenizer_close(f->tokenizer);
    smg_context_destroy(f->ctx);
    free(f);
    return 0;
}

static int check_stored(fixture *f, const char *path, const char *list_key) {
    smg_json *json = NULL;
    assert_int_equal(smg_json_open(f->ctx, path, &json), SMG_OK);
    int texts = 0;
    smg_json_iter i = smg_json_begin(smg_json_get(smg_json_root(json), list_key));
    for (; smg_json_next(&i); texts++) {
        const char *text = NULL;
        size_t length = 0;
        int32_t ids[256];
        int count = 0;
        assert_true(smg_json_as_text(smg_json_get(i.value, "text"), &text, &length));
        assert_int_equal(smg_tokenizer_encode(f->tokenizer, text, length, ids, 256, &count), SMG_OK);
        smg_json_at expected = smg_json_get(i.value, "ids");
        int at = 0;
        for (smg_json_iter k = smg_json_begin(expected); smg_json_next(&k); at++) {
            int64_t id = -1;
            assert_true(smg_json_as_int(k.value, &id));
            if (at >= count || ids[at] != id) {
                fail_msg("text %d '%s': id %d is %d, not %lld", texts, text, at, at < count ? (int)ids[at] : -1,
                         (long long)id);
            }
        }
        assert_int_equal(at, count);
    }
    smg_json_close(json);
    return texts;
}

static void test_stored(void **state) {
    fixture *f = *state;
    assert_int_equal(smg_tokenizer_max_length(f->tokenizer), 256);
    assert_int_equal(smg_tokenizer_vocab_size(f->tokenizer), 30522);
    assert_int_equal(smg_tokenizer_pad_id(f->tokenizer), 0);
    assert_true(check_stored(f, "tests/models/minilm/sentences.json", "sentences") >= 10);
    assert_true(check_stored(f, "tests/models/minilm/hard_texts.json", "texts") >= 30);
}

static void test_truncation(void **state) {
    fixture *f = *state;
    const char *text = "unaffable hello world";
    int32_t full[16];
    int full_count = 0;
    assert_int_equal(smg_tokenizer_encode(f->tokenizer, text, strlen(text), full, 16, &full_count), SMG_OK);
    assert_true(full_count > 5 && full_count < 16);
    for (int room = 2; room <= 16; room++) {
        int32_t ids[17];
        int count = 0;
        ids[room] = -77;
        assert_int_equal(smg_tokenizer_encode(f->tokenizer, text, strlen(text), ids, room, &count), SMG_OK);
        assert_int_equal(count, room < full_count ? room : full_count);
        assert_int_equal(ids[count - 1], 102);
        for (int i = 0; i < count - 1; i++) assert_int_equal(ids[i], full[i]);
        assert_int_equal(ids[room], -77);
    }
    int count = 9;
    assert_int_equal(smg_tokenizer_encode(f->tokenizer, "a", 1, full, 1, &count), SMG_INVALID);
    assert_int_equal(count, 0);
}

static void test_not_utf8(void **state) {
    fixture *f = *state;
    static const struct {
        const char *text;
        const char *where;
    } bad[] = {
        {"ab\xff", "byte 2 of 3"},
        {"\x80", "byte 0 of 1"},
        {"a\xc3", "byte 1 of 2"},
        {"\xc0\xaf", "byte 0 of 2"},
        {"x\xed\xa0\x80", "byte 1 of 4"},
        {"\xf4\x90\x80\x80", "byte 0 of 4"},
        {"\xe4\xb8\xad\xe4\xb8", "byte 3 of 5"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(bad); i++) {
        size_t length = strlen(bad[i].text);
        char *exact = malloc(length); /* no byte behind the text may be read */
        assert_non_null(exact);
        memcpy(exact, bad[i].text, length);
        int32_t ids[8];
        int count = 0;
        smg_context_clear_error(f->ctx);
        assert_int_equal(smg_tokenizer_encode(f->tokenizer, exact, length, ids, 8, &count), SMG_FORMAT);
        if (strstr(smg_context_error(f->ctx), bad[i].where) == NULL) {
            fail_msg("text %zu: '%s'", i, smg_context_error(f->ctx));
        }
        free(exact);
    }
    /* Behind the cut too: bad text is bad whatever the room. */
    char long_text[4096];
    for (size_t i = 0; i < sizeof(long_text); i++) long_text[i] = i % 2 == 0 ? 'a' : ' ';
    long_text[sizeof(long_text) - 1] = (char)0xff;
    int32_t ids[4];
    int count = 0;
    assert_int_equal(smg_tokenizer_encode(f->tokenizer, long_text, sizeof(long_text), ids, 4, &count), SMG_FORMAT);
}

/* Megabytes of what is worst for each stage: no allocation, and time that a quadratic step in any
 * stage would exceed by orders of magnitude. */
static void test_linear(void **state) {
    fixture *f = *state;
    static const char *const units[] = {
        "a", "\xcc\x81", "\xe3\x80\xae\xe3\x80\xaf", "[", "[MASK", "unaffableunaff", "\xe4\xb8\xad", "\xc2\xad", "##"};
    size_t room = 4u << 20;
    char *text = malloc(room);
    assert_non_null(text);
    for (size_t i = 0; i < SMG_COUNT_OF(units); i++) {
        size_t unit = strlen(units[i]);
        size_t length = 0;
        for (; length + unit <= room; length += unit) memcpy(text + length, units[i], unit);
        int32_t ids[256];
        int count = 0;
        int64_t before = f->blocks;
        double start = smg_clock_seconds();
        assert_int_equal(smg_tokenizer_encode(f->tokenizer, text, length, ids, 256, &count), SMG_OK);
        assert_int_equal(f->blocks, before);
        assert_true(count >= 2 && count <= 256);
        assert_true(smg_clock_seconds() - start < 20);
    }
    free(text);
}

/* ---- files ---------------------------------------------------------------------------------- */

#define STEPS                                                                                                          \
    "\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"                                        \
    "\"BertPreTokenizer\"},"
#define POST                                                                                                           \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"                       \
    "\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}]},"
#define VOCAB "\"vocab\":{\"[UNK]\":0,\"<s>\":1,\"</s>\":2,\"a\":3,\"@b\":4,\"b\":5}"
#define MODEL "\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"@\"," VOCAB "}"

static void test_json_only(void **state) {
    fixture *f = *state;
    const char *json =
        "{" STEPS POST "\"added_tokens\":[{\"id\":9,\"content\":\"<x>\"},{\"id\":10,\"content\":\"<x>y\"}]," MODEL "}";
    smg_tokenizer *t = NULL;
    assert_int_equal(smg_tokenizer_open_bytes(f->ctx, NULL, 0, json, strlen(json), &t), SMG_OK);
    assert_int_equal(smg_tokenizer_vocab_size(t), 11);
    assert_int_equal(smg_tokenizer_max_length(t), 512);
    static const int32_t expected[] = {1, 3, 4, 10, 9, 5, 0, 2};
    int32_t ids[16];
    int count = 0;
    assert_int_equal(smg_tokenizer_encode(t, "AB<x>y<x>b ba", 13, ids, 16, &count), SMG_OK);
    assert_int_equal(count, 8);
    assert_memory_equal(ids, expected, sizeof(expected));
    smg_tokenizer_close(t);
    smg_tokenizer_close(NULL);
    json = "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," MODEL "}";
    assert_int_equal(smg_tokenizer_open_bytes(f->ctx, NULL, 0, json, strlen(json), &t), SMG_OK);
    assert_int_equal(smg_tokenizer_encode(t, "a A", 3, ids, 16, &count), SMG_OK);
    assert_int_equal(count, 2); /* no post-processor: nothing around; no normaliser: case counts */
    assert_int_equal(ids[0], 3);
    assert_int_equal(ids[1], 0);
    smg_tokenizer_close(t);
}

static void expect_json(fixture *f, const char *json, smg_status status, const char *words) {
    smg_tokenizer *t = NULL;
    smg_context_clear_error(f->ctx);
    smg_status got = smg_tokenizer_open_bytes(f->ctx, NULL, 0, json, strlen(json), &t);
    if (got != status || strstr(smg_context_error(f->ctx), words) == NULL) {
        fail_msg("%s: status %d (%s), expected %d (...%s...)", json, (int)got, smg_context_error(f->ctx), (int)status,
                 words);
    }
    assert_null(t);
}

static void test_bad_json(void **state) {
    fixture *f = *state;
    expect_json(f, "{\"model\":{\"type\":\"BPE\"}}", SMG_UNSUPPORTED, "'BPE'");
    expect_json(f, "{}", SMG_UNSUPPORTED, "model");
    expect_json(f, "{\"normalizer\":{\"type\":\"NFC\"}," MODEL "}", SMG_UNSUPPORTED, "'NFC'");
    expect_json(f, "{\"pre_tokenizer\":{\"type\":\"Metaspace\"}," MODEL "}", SMG_UNSUPPORTED, "'Metaspace'");
    expect_json(f, "{" STEPS "\"post_processor\":{\"type\":\"Roberta\"}," MODEL "}", SMG_UNSUPPORTED, "'Roberta'");
    expect_json(f, "{" STEPS "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," MODEL "}",
                SMG_UNSUPPORTED, "template");
    expect_json(f, "{" STEPS POST "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}", SMG_FORMAT, "'a'");
    expect_json(f, "{" STEPS POST "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":2147483647}}}", SMG_FORMAT,
                "'a'");
    expect_json(f, "{" STEPS POST "\"model\":{\"type\":\"WordPiece\",\"vocab\":[]}}", SMG_FORMAT, "vocab");
    expect_json(f, "{" STEPS POST "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1}}}", SMG_FORMAT, "'[UNK]'");
    expect_json(f, "{" STEPS POST "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":1}}}", SMG_FORMAT, "'<s>'");
    expect_json(f, "{" STEPS "\"model\":{\"type\":\"WordPiece\",\"max_input_chars_per_word\":0," VOCAB "}}", SMG_FORMAT,
                "max_input_chars_per_word");
    expect_json(f, "{" STEPS POST "\"added_tokens\":[{\"id\":1,\"content\":\"\"}]," MODEL "}", SMG_FORMAT, "content");
    expect_json(f, "{" STEPS POST "\"added_tokens\":[{\"content\":\"q\"}]," MODEL "}", SMG_FORMAT, "\"id\"");
    expect_json(f, "{" STEPS POST "\"added_tokens\":[{\"id\":1,\"content\":\"q\",\"normalized\":true}]," MODEL "}",
                SMG_UNSUPPORTED, "normalized");
}

static void test_vocab_only(void **state) {
    fixture *f = *state;
    const char *vocab = "[PAD]\r\n[UNK]\r\n[CLS]\n[SEP]\nhello\n##o\nhell\n\nlast";
    smg_tokenizer *t = NULL;
    assert_int_equal(smg_tokenizer_open_bytes(f->ctx, vocab, strlen(vocab), NULL, 0, &t), SMG_OK);
    int32_t ids[16];
    int count = 0;
    static const int32_t expected[] = {2, 4, 6, 8, 3};
    assert_int_equal(smg_tokenizer_encode(t, "Hello hell last", 15, ids, 16, &count), SMG_OK);
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof(expected));
    assert_int_equal(smg_tokenizer_vocab_size(t), 9);
    smg_tokenizer_close(t);
    assert_int_equal(smg_tokenizer_open_bytes(f->ctx, "a\nb", 3, NULL, 0, &t), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "'[UNK]'"));
    assert_int_equal(smg_tokenizer_open_bytes(f->ctx, NULL, 0, NULL, 0, &t), SMG_INVALID);
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_utf8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_linear, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_vocab_only, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
