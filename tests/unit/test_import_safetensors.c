/* safetensors: what is in a good file, what is said about each kind of bad one, conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/import.h"

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

/* A file from its header text and `data_bytes` bytes 0, 1, 2... of data, in exactly its own memory. */
static uint8_t *make_file(const char *header, size_t data_bytes, size_t *out_size) {
    size_t length = strlen(header);
    *out_size = 8 + length + data_bytes;
    uint8_t *file = malloc(*out_size);
    assert_non_null(file);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) file[8 + length + i] = (uint8_t)i;
    return file;
}

static void expect(smg_context *ctx, const char *header, size_t data_bytes, smg_status status, const char *words) {
    size_t size = 0;
    uint8_t *file = make_file(header, data_bytes, &size);
    smg_safetensors *table = NULL;
    smg_context_clear_error(ctx);
    smg_status got = smg_safetensors_open_bytes(ctx, "t.safetensors", file, size, &table);
    const char *said = smg_context_error(ctx);
    if (got != status || (words != NULL && strstr(said, words) == NULL)) {
        fail_msg("header %s: status %d (%s), expected %d (...%s...)", header, (int)got, said, (int)status,
                 words != NULL ? words : "");
    }
    if (status != SMG_OK) {
        assert_null(table);
        assert_non_null(strstr(said, "t.safetensors"));
    }
    smg_safetensors_close(table);
    free(file);
}

#define T(body) "{\"w\":{" body "}}"

static void test_good(void **state) {
    smg_context *ctx = *state;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"b\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[4,10]},"
                         "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[10,10]}}  ";
    size_t size = 0;
    uint8_t *file = make_file(header, 10, &size);
    smg_safetensors *table = NULL;
    assert_int_equal(smg_safetensors_open_bytes(ctx, "t", file, size, &table), SMG_OK);
    assert_int_equal(smg_safetensors_count(table), 3);
    assert_string_equal(smg_safetensors_at(table, 0)->name, "b");
    assert_null(smg_safetensors_at(table, 3));
    assert_null(smg_safetensors_at(table, -1));
    const smg_import_tensor *b = smg_safetensors_find(table, "b");
    assert_non_null(b);
    assert_int_equal(b->dtype, SMG_IMPORT_I16);
    assert_int_equal(b->rank, 1);
    assert_int_equal(b->dims[0], 3);
    assert_int_equal(b->count, 3);
    assert_int_equal(b->bytes, 6);
    int64_t values[3];
    assert_int_equal(smg_import_to_i64(ctx, b->dtype, b->data, 3, values), SMG_OK);
    assert_int_equal(values[0], 0x0504);
    assert_int_equal(values[2], 0x0908);
    assert_int_equal(smg_safetensors_find(table, "a")->count, 1);
    assert_int_equal(smg_safetensors_find(table, "none")->count, 0);
    assert_null(smg_safetensors_find(table, "__metadata__"));
    assert_null(smg_safetensors_find(table, "no.such"));
    smg_safetensors_drop(table, b);
    smg_safetensors_close(table);
    smg_safetensors_close(NULL);
    free(file);
}

static void test_hostile_ranges(void **state) {
    smg_context *ctx = *state;
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"), 7, SMG_FORMAT,
           "byte 8 of a data buffer of 7");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), 4, SMG_FORMAT, "needs 8 bytes, has 4");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4, SMG_FORMAT, "begin <= end");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]"), 4, SMG_FORMAT, "'w'");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]"), 4, SMG_FORMAT, "'w'");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), 4, SMG_FORMAT, "'w'");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":0,\"1\":4}"), 4, SMG_FORMAT, "data_offsets");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551612]"), 4, SMG_FORMAT,
           "data_offsets");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1]"), 4, SMG_FORMAT, "data_offsets");
    expect(ctx, T("\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]"), 3, SMG_FORMAT, "belong to no tensor");
    expect(ctx, T("\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]"), 3, SMG_FORMAT, "cover 2 of 3");
    expect(ctx,
           "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"y\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[3,6]}}",
           6, SMG_FORMAT, "'x' and 'y' overlap at data byte 3");
}

static void test_hostile_shapes(void **state) {
    smg_context *ctx = *state;
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4, SMG_FORMAT, "shape");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]"), 4, SMG_FORMAT, "shape");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":\"1\",\"data_offsets\":[0,4]"), 4, SMG_FORMAT, "shape");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), 4, SMG_FORMAT,
           "overflows");
    expect(ctx, T("\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]"), 4, SMG_FORMAT,
           "overflows");
    expect(ctx, T("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]"), 1, SMG_UNSUPPORTED,
           "rank 9");
    expect(ctx, T("\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]"), 1, SMG_UNSUPPORTED, "'F8_E4M3'");
    expect(ctx, T("\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,1]"), 1, SMG_FORMAT, "dtype");
    expect(ctx, "{\"w\":3}", 0, SMG_FORMAT, "'w'");
    expect(ctx, "{\"w\\u0000x\":{}}", 0, SMG_FORMAT, "NUL");
    expect(ctx,
           "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
           "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
           2, SMG_FORMAT, "'w' is twice");
}

static void test_hostile_headers(void **state) {
    smg_context *ctx = *state;
    expect(ctx, "[]", 0, SMG_FORMAT, "not a JSON object");
    expect(ctx, "{\"w\":", 0, SMG_FORMAT, "not JSON");
    expect(ctx, "{}", 0, SMG_OK, NULL);
    expect(ctx, "{}", 1, SMG_FORMAT, "cover 0 of 1");
    expect(ctx, "", 0, SMG_FORMAT, "no safetensors file");
    char deep[4096];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    expect(ctx, deep, 0, SMG_FORMAT, "not JSON");
    smg_safetensors *table = NULL;
    for (uint8_t size = 0; size < 16; size++) { /* header length larger than the file */
        uint8_t bytes[16];
        memset(bytes, 0xff, sizeof(bytes));
        smg_context_clear_error(ctx);
        assert_int_equal(smg_safetensors_open_bytes(ctx, "cut", bytes, size, &table), SMG_FORMAT);
        assert_non_null(strstr(smg_context_error(ctx), "'cut'"));
    }
}

/* Every prefix of a good file is a bad file, whatever is cut. */
static void test_truncation(void **state) {
    smg_context *ctx = *state;
    size_t size = 0;
    uint8_t *file = make_file(T("\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]"), 16, &size);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut + (cut == 0));
        assert_non_null(part);
        memcpy(part, file, cut);
        smg_safetensors *table = NULL;
        smg_context_clear_error(ctx);
        assert_int_equal(smg_safetensors_open_bytes(ctx, "cut", part, cut, &table), SMG_FORMAT);
        free(part);
    }
    free(file);
}

static void test_real_file(void **state) {
    smg_context *ctx = *state;
    const char *path = "tests/models/hf-bert-tiny/model.safetensors";
    smg_safetensors *table = NULL;
    assert_int_equal(smg_safetensors_open(ctx, &path, 1, &table), SMG_OK);
    const smg_import_tensor *words = smg_safetensors_find(table, "embeddings.word_embeddings.weight");
    assert_non_null(words);
    assert_int_equal(words->dtype, SMG_IMPORT_F32);
    assert_int_equal(words->rank, 2);
    assert_int_equal(words->dims[0], 320);
    assert_int_equal(words->dims[1], 64);
    for (int i = 0; i < smg_safetensors_count(table); i++) {
        smg_safetensors_drop(table, smg_safetensors_at(table, i));
    }
    float row[64];
    assert_int_equal(smg_import_to_f32(ctx, words->dtype, words->data, 64, row), SMG_OK);
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += row[i] * row[i];
    assert_true(sum >= 0 && sum < 1e6f);
    smg_safetensors_close(table);
    const char *twice[2] = {path, path};
    assert_int_equal(smg_safetensors_open(ctx, twice, 2, &table), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(ctx), "twice"));
    smg_context_clear_error(ctx);
    const char *absent = "tests/models/absent.safetensors";
    assert_int_equal(smg_safetensors_open(ctx, &absent, 1, &table), SMG_NOT_FOUND);
    assert_null(table);
    assert_int_equal(smg_safetensors_open(ctx, &absent, 0, &table), SMG_INVALID);
}

/* All 65536 halves against their definition. */
static void test_half(void **state) {
    smg_context *ctx = *state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint8_t bytes[3] = {0, (uint8_t)bits, (uint8_t)(bits >> 8)}; /* from an odd address */
        float got;
        assert_int_equal(smg_import_to_f32(ctx, SMG_IMPORT_F16, bytes + 1, 1, &got), SMG_OK);
        int exponent = (int)(bits >> 10 & 31);
        double fraction = (double)(bits & 1023) / 1024;
        double expected = exponent == 0 ? fraction * 0x1p-14 : 1 + fraction;
        for (int e = 15; exponent > 0 && e < exponent; e++) expected *= 2;
        for (int e = 15; exponent > 0 && e > exponent; e--) expected /= 2;
        if (bits >> 15) expected = -expected;
        if (exponent == 31 && (bits & 1023) != 0) {
            assert_true(!(got >= 0) && !(got < 0));
        } else if (exponent == 31) {
            assert_true(got * got > 3e38f && (got > 0) == !(bits >> 15));
        } else {
            uint32_t sign;
            memcpy(&sign, &got, 4);
            assert_true((double)got <= expected && (double)got >= expected);
            assert_int_equal(sign >> 31, bits >> 15);
        }
    }
}

static void test_convert(void **state) {
    smg_context *ctx = *state;
    static const uint8_t data[] = {0x80, 0x3f, 0x01, 0x00, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80};
    float f[2];
    int64_t n[2];
    assert_int_equal(smg_import_to_f32(ctx, SMG_IMPORT_BF16, data, 2, f), SMG_OK);
    assert_true(f[0] >= 1.0f && f[0] <= 1.0f);
    assert_true(f[1] > 0 && f[1] < 1e-38f); /* a subnormal stays one */
    assert_int_equal(smg_import_to_i64(ctx, SMG_IMPORT_I32, data + 4, 2, n), SMG_OK);
    assert_int_equal(n[0], -1);
    assert_true(n[1] == INT32_MIN);
    assert_int_equal(smg_import_to_i64(ctx, SMG_IMPORT_I64, data + 4, 1, n), SMG_OK);
    assert_true(n[0] == (int64_t)-0x7fffffff00000001);
    assert_int_equal(smg_import_to_f32(ctx, SMG_IMPORT_I8, data, 2, f), SMG_OK);
    assert_true(f[0] <= -128.0f && f[1] >= 63.0f);
    assert_int_equal(smg_import_to_f32(ctx, SMG_IMPORT_BOOL, data + 2, 2, f), SMG_OK);
    assert_true(f[0] >= 1.0f && f[0] <= 1.0f && f[1] <= 0.0f);
    assert_int_equal(smg_import_to_i64(ctx, SMG_IMPORT_F32, data, 1, n), SMG_UNSUPPORTED);
    smg_context_clear_error(ctx);
    assert_int_equal(smg_import_to_f32(ctx, (smg_import_dtype)99, data, 1, f), SMG_INVALID);
    assert_int_equal(smg_import_to_f32(ctx, SMG_IMPORT_F32, data, -1, f), SMG_INVALID);
    assert_string_equal(smg_import_dtype_word((smg_import_dtype)-1), "?");
    assert_int_equal(smg_import_dtype_bytes(SMG_IMPORT_BF16), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_real_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half, setup, teardown),
        cmocka_unit_test_setup_teardown(test_convert, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
