/* npy: round trips, the files numpy and others write, and malformed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "array/npy.h"
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

/* Bytes of a file with this header and data_bytes zeros, as small as they can be. */
static uint8_t *make_file(int version, const char *header, size_t data_bytes, size_t *out_size) {
    size_t length = strlen(header);
    size_t start = version == 1 ? 10 : 12;
    *out_size = start + length + data_bytes;
    uint8_t *file = calloc(*out_size, 1);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    for (size_t i = 8; i < start; i++) file[i] = (uint8_t)(length >> (8 * (i - 8)));
    memcpy(file + start, header, length);
    return file;
}

static void expect(smg_context *ctx, int version, const char *header, size_t data_bytes, smg_status status,
                   const char *words) {
    size_t size = 0;
    uint8_t *file = make_file(version, header, data_bytes, &size);
    smg_npy array;
    smg_context_clear_error(ctx);
    smg_status got = smg_npy_open_bytes(ctx, "x.npy", file, size, &array);
    if (got != status || (words != NULL && strstr(smg_context_error(ctx), words) == NULL)) {
        fail_msg("header %s: status %d (%s), expected %d (...%s...)", header, (int)got, smg_context_error(ctx),
                 (int)status, words != NULL ? words : "");
    }
    if (status != SMG_OK) {
        assert_null(array.data);
        assert_non_null(strstr(smg_context_error(ctx), "'x.npy'"));
    }
    smg_npy_close(&array);
    free(file);
}

#define HEAD(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }\n"

static void test_accepted(void **state) {
    smg_context *ctx = *state;
    expect(ctx, 1, HEAD("<f4", "(2, 3)"), 24, SMG_OK, NULL);
    expect(ctx, 2, HEAD("<f2", "(3,)"), 6, SMG_OK, NULL);
    expect(ctx, 3, HEAD("<f8", "()"), 8, SMG_OK, NULL);
    expect(ctx, 1, HEAD("|b1", "(0, 4)"), 0, SMG_OK, NULL);
    expect(ctx, 1, HEAD("|i1", "(1,)"), 1, SMG_OK, NULL);
    expect(ctx, 1, HEAD("|u1", "(1L, 2L)"), 2, SMG_OK, NULL);
    expect(ctx, 1, HEAD("<i2", "(1,1,1,1,1,1,1,1)"), 2, SMG_OK, NULL);
    expect(ctx, 1, "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"<i8\"}", 16, SMG_OK, NULL);
}

static void test_refused(void **state) {
    smg_context *ctx = *state;
    expect(ctx, 1, HEAD(">f4", "(2,)"), 8, SMG_UNSUPPORTED, "'>f4'");
    expect(ctx, 1, HEAD("<c8", "(2,)"), 16, SMG_UNSUPPORTED, "'<c8'");
    expect(ctx, 1, HEAD("", "(2,)"), 16, SMG_UNSUPPORTED, "''");
    expect(ctx, 4, HEAD("<f4", "(2,)"), 8, SMG_UNSUPPORTED, "version 4");
    expect(ctx, 1, HEAD("<f4", "(1,1,1,1,1,1,1,1,1)"), 4, SMG_UNSUPPORTED, "rank");
    expect(ctx, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16, SMG_UNSUPPORTED, "Fortran");
    expect(ctx, 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, SMG_UNSUPPORTED, "records");
}

static void test_malformed(void **state) {
    smg_context *ctx = *state;
    expect(ctx, 1, HEAD("<f4", "(2,)"), 7, SMG_FORMAT, "needs 8 bytes of elements and has 7");
    expect(ctx, 1, HEAD("<f4", "(2,)"), 9, SMG_FORMAT, "has 9");
    expect(ctx, 1, HEAD("<f4", "(-2,)"), 8, SMG_FORMAT, "sizes");
    expect(ctx, 1, HEAD("<f4", "(2"), 8, SMG_FORMAT, "sizes");
    expect(ctx, 1, HEAD("<f4", "(2 2)"), 16, SMG_FORMAT, "sizes");
    expect(ctx, 1, HEAD("<f4", "[2]"), 8, SMG_FORMAT, "tuple");
    expect(ctx, 1, HEAD("<f4", "(99999999999999999999,)"), 8, SMG_FORMAT, "overflows");
    expect(ctx, 1, HEAD("<f4", "(4294967296,4294967296)"), 8, SMG_FORMAT, "overflows");
    expect(ctx, 1, HEAD("<f8", "(2305843009213693952,)"), 8, SMG_FORMAT, "overflow");
    expect(ctx, 1, "{'descr': '<f4', 'shape': (2,)}", 8, SMG_FORMAT, "lacks");
    expect(ctx, 1, "{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", 8, SMG_FORMAT, "twice");
    expect(ctx, 1, "{'descr': '<f4', 'other': '<f4', 'shape': (2,)}", 8, SMG_FORMAT, "besides");
    expect(ctx, 1, "{'descr': '<f4' 'shape': (2,)}", 8, SMG_FORMAT, "comma");
    expect(ctx, 1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, SMG_FORMAT, "neither");
    expect(ctx, 1, "{'descr", 8, SMG_FORMAT, "closing quote");
    expect(ctx, 1, "{'descr' '<f4'}", 8, SMG_FORMAT, "without a value");
    expect(ctx, 1, HEAD("<f4", "(2,)") "x", 8, SMG_FORMAT, "goes on");
    expect(ctx, 1, "", 8, SMG_FORMAT, "dict");
    smg_npy array;
    static const uint8_t huge[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0xff, '{'};
    for (size_t cut = 0; cut <= sizeof(huge); cut++) {
        smg_context_clear_error(ctx);
        assert_int_equal(smg_npy_open_bytes(ctx, "x.npy", huge, cut, &array), SMG_FORMAT);
    }
    smg_context_clear_error(ctx);
    assert_int_equal(smg_npy_open_bytes(ctx, "x.npy", "hello, world", 12, &array), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(ctx), "no npy file"));
}

static void test_round_trip(void **state) {
    smg_context *ctx = *state;
    char path[1024];
    test_output(path, sizeof(path), "round_trip.npy");
    static const float floats[6] = {0, -1.5f, 3e38f, 1e-45f, 7, 0.1f};
    static const int64_t dims[2] = {2, 3};
    smg_npy array;
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, 2, dims, floats), SMG_OK);
    assert_int_equal(smg_npy_open(ctx, path, &array), SMG_OK);
    assert_int_equal(array.rank, 2);
    assert_int_equal(array.dims[1], 3);
    assert_int_equal((array.data - array.file.data) % 64, 0);
    float back[6];
    assert_int_equal(smg_import_to_f32(ctx, array.dtype, array.data, 6, back), SMG_OK);
    assert_memory_equal(back, floats, sizeof(floats));
    smg_npy_close(&array);
    static const int64_t numbers[3] = {INT64_MIN, -1, INT64_MAX};
    static const int64_t three = 3;
    int64_t numbers_back[3];
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_I64, 1, &three, numbers), SMG_OK);
    assert_int_equal(smg_npy_open(ctx, path, &array), SMG_OK);
    assert_int_equal(smg_import_to_i64(ctx, array.dtype, array.data, 3, numbers_back), SMG_OK);
    assert_memory_equal(numbers_back, numbers, sizeof(numbers));
    smg_npy_close(&array);
    static const uint8_t flags[3] = {1, 0, 7};
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_BOOL, 1, &three, flags), SMG_OK);
    assert_int_equal(smg_npy_open(ctx, path, &array), SMG_OK);
    assert_int_equal(array.data[0], 1);
    assert_int_equal(array.data[1], 0);
    assert_int_equal(array.data[2], 1);
    smg_npy_close(&array);
    static const int32_t one = -5;
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_I32, 0, NULL, &one), SMG_OK);
    assert_int_equal(smg_npy_open(ctx, path, &array), SMG_OK);
    assert_int_equal(array.count, 1);
    assert_int_equal(array.data[0], 0xfb);
    smg_npy_close(&array);
    remove(path);
}

static void test_write_misuse(void **state) {
    smg_context *ctx = *state;
    char path[1024];
    test_output(path, sizeof(path), "misuse.npy");
    static const int64_t bad[2] = {-1, 2};
    static const int64_t big[2] = {INT64_MAX, 2};
    static const int64_t wide[8] = {INT64_MAX / 4, 1, 1, 1, 1, 1, 1, 2};
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_BF16, 0, NULL, bad), SMG_INVALID);
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, 9, bad, bad), SMG_INVALID);
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, -1, bad, bad), SMG_INVALID);
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, 2, bad, bad), SMG_INVALID);
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, 2, big, bad), SMG_INVALID);
    assert_int_equal(smg_npy_write(ctx, path, SMG_IMPORT_F32, 8, wide, bad), SMG_INVALID);
    assert_false(smg_file_exists(path));
}

static void test_stored(void **state) {
    smg_context *ctx = *state;
    smg_npy array;
    assert_int_equal(smg_npy_open(ctx, "tests/models/minilm/embeddings.npy", &array), SMG_OK);
    assert_int_equal(array.dtype, SMG_IMPORT_F32);
    assert_int_equal(array.rank, 2);
    assert_int_equal(array.dims[1], 384);
    float row[384];
    float sum = 0;
    assert_int_equal(smg_import_to_f32(ctx, array.dtype, array.data, 384, row), SMG_OK);
    for (int i = 0; i < 384; i++) sum += row[i] * row[i];
    assert_true(sum > 0.9999f && sum < 1.0001f); /* they are L2-normalised */
    smg_npy_close(&array);
    assert_int_equal(smg_npy_open(ctx, "tests/models/hf-bert-tiny/b1s7/in.input_ids.npy", &array), SMG_OK);
    assert_int_equal(array.dtype, SMG_IMPORT_I64);
    assert_int_equal(array.dims[1], 7);
    smg_npy_close(&array);
    assert_int_equal(smg_npy_open(ctx, "tests/models/absent.npy", &array), SMG_NOT_FOUND);
    smg_npy_close(&array);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_misuse, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stored, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
