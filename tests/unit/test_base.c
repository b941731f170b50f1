/* base: context and failures, arenas, arrays, checked sizes, text, hashes, maps, files, threads, and
 * that every allocation may fail. Runs on every system that there is a base for (tests/runtime). */
#define _DEFAULT_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32)
#include <direct.h>
#define remove_folder _rmdir
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define remove_folder rmdir
#endif

#include "base/base.h"
#include "support/output.h"

/* ---- a hook that counts, and fails on request ---------------------------------------------- */

typedef struct hook_state {
    size_t live_bytes;
    int live_blocks;
    int calls;   /* that asked for memory */
    int fail_at; /* the call that fails, 0 for none */
} hook_state;

static void *hook(void *user, void *pointer, size_t old_size, size_t new_size) {
    hook_state *state = user;
    assert_true(pointer == NULL ? old_size == 0 : old_size != 0);
    if (new_size != 0 && ++state->calls == state->fail_at) return NULL;
    if (pointer != NULL) {
        assert_true(state->live_bytes >= old_size);
        state->live_bytes -= old_size;
        state->live_blocks--;
    }
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    state->live_bytes += new_size;
    state->live_blocks++;
    /* Always another address, filled with noise: nobody may count on either. */
    unsigned char *memory = malloc(new_size);
    assert_non_null(memory);
    memset(memory, 0xa5, new_size);
    if (pointer != NULL) memcpy(memory, pointer, old_size < new_size ? old_size : new_size);
    free(pointer);
    return memory;
}

static smg_context *new_context(hook_state *state) {
    smg_context_desc desc = {.reallocate = hook, .user = state, .cache_dir = ""};
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    return ctx;
}

static void end_context(smg_context *ctx, const hook_state *state) {
    smg_context_destroy(ctx);
    assert_int_equal(state->live_blocks, 0);
    assert_int_equal(state->live_bytes, 0);
}

/* ---- context and failures ------------------------------------------------------------------ */

static void test_status_words(void **unused) {
    (void)unused;
    assert_string_equal(smg_status_word(SMG_OK), "ok");
    assert_string_equal(smg_status_word(SMG_MEMORY), "out of memory");
    assert_non_null(smg_status_word((smg_status)12345));
}

static void test_first_failure_wins(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    assert_string_equal(smg_context_error(ctx), "");
    assert_int_equal(smg_fail(ctx, SMG_INVALID, "rank %d of '%s'", 3, "x"), SMG_INVALID);
    assert_int_equal(smg_fail(ctx, SMG_IO, "later"), SMG_IO);
    assert_int_equal(smg_context_status(ctx), SMG_INVALID);
    assert_string_equal(smg_context_error(ctx), "rank 3 of 'x'");
    assert_int_equal(smg_fail_within(ctx, SMG_INVALID, "node %s", "n1"), SMG_INVALID);
    assert_string_equal(smg_context_error(ctx), "node n1: rank 3 of 'x'");
    assert_int_equal(smg_fail_within(ctx, SMG_INVALID, "%s", smg_context_error(ctx)), SMG_INVALID);
    smg_context_clear_error(ctx);
    assert_int_equal(smg_context_status(ctx), SMG_OK);
    assert_string_equal(smg_context_error(ctx), "");
    assert_int_equal(smg_fail_within(ctx, SMG_FORMAT, "alone"), SMG_FORMAT);
    assert_string_equal(smg_context_error(ctx), "alone");
    end_context(ctx, &state);
    assert_int_equal(smg_fail(NULL, SMG_IO, "nobody"), SMG_IO);
    assert_int_equal(smg_context_create(NULL, NULL), SMG_INVALID);
    smg_context_destroy(NULL);
}

static void test_long_sentences_are_cut(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    char text[4001];
    for (size_t i = 0; i + 2 < sizeof(text); i += 2) memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof(text) - 1] = '\0';
    for (int shift = 0; shift < 2; shift++) {
        smg_context_clear_error(ctx);
        smg_fail(ctx, SMG_INVALID, "%s%s", shift != 0 ? "x" : "", text);
        const char *error = smg_context_error(ctx);
        size_t length = strlen(error);
        assert_true(length > 1000 && length < 1024);
        assert_string_equal(error + length - 3, "...");
        assert_int_equal((unsigned char)error[length - 4], 0xa9); /* no half character */
        smg_fail_within(ctx, SMG_INVALID, "file f");
        error = smg_context_error(ctx);
        assert_memory_equal(error, "file f: ", 8);
        assert_true(strlen(error) < 1024);
        assert_string_equal(error + strlen(error) - 3, "...");
    }
    end_context(ctx, &state);
}

static char last_line[64];
static int last_level;
static void take_log(void *user, smg_log_level level, const char *line) {
    (void)user;
    last_level = (int)level;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static void test_log(void **unused) {
    (void)unused;
    smg_context_desc desc = {.log = take_log};
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    smg_log(ctx, SMG_LOG_WARNING, "two\nlines %d", 2);
    assert_int_equal(last_level, SMG_LOG_WARNING);
    assert_string_equal(last_line, "two lines 2");
    smg_progress(ctx, "compile", 1, 2, "blocks");
    smg_context_destroy(ctx);
}

static void check_cache_dir(const char *given, const char *wanted) {
    smg_context_desc desc = {.cache_dir = given};
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    assert_string_equal(smg_context_cache_dir(ctx), wanted);
    smg_context_destroy(ctx);
}

static void set_variable(const char *name, const char *value) { /* NULL: it is unset */
#if defined(_WIN32)
    assert_int_equal(_putenv_s(name, value != NULL ? value : ""), 0);
#else
    assert_int_equal(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
#endif
}

static void test_cache_dir(void **unused) {
    (void)unused;
    check_cache_dir("some/where", "some/where");
    check_cache_dir("", "");
    set_variable("SMG_CACHE_DIR", "/c/own");
    check_cache_dir(NULL, "/c/own");
#if defined(_WIN32)
    set_variable("LOCALAPPDATA", "C:\\local");
    check_cache_dir(NULL, "/c/own");
    set_variable("SMG_CACHE_DIR", NULL);
    check_cache_dir(NULL, "C:\\local/smg");
    set_variable("LOCALAPPDATA", NULL);
#else
    set_variable("XDG_CACHE_HOME", "/c/xdg");
    set_variable("HOME", "/c/home");
    check_cache_dir(NULL, "/c/own");
    set_variable("SMG_CACHE_DIR", NULL);
    check_cache_dir(NULL, "/c/xdg/smg");
    set_variable("XDG_CACHE_HOME", "relative");
    check_cache_dir(NULL, "/c/home/.cache/smg");
    set_variable("XDG_CACHE_HOME", "");
    check_cache_dir(NULL, "/c/home/.cache/smg");
    set_variable("XDG_CACHE_HOME", NULL);
    set_variable("HOME", NULL);
#endif
    check_cache_dir(NULL, "");
}

/* ---- memory -------------------------------------------------------------------------------- */

static bool all_zero(const void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)memory)[i] != 0) return false;
    }
    return true;
}

static void test_alloc(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    unsigned char *memory = smg_alloc(ctx, 10, 3);
    assert_non_null(memory);
    assert_true(all_zero(memory, 30));
    memset(memory, 7, 30);
    memory = smg_realloc(ctx, memory, 30, 50);
    assert_int_equal(memory[29], 7);
    assert_true(all_zero(memory + 30, 20));
    memory = smg_realloc(ctx, memory, 50, 5);
    assert_int_equal(memory[4], 7);
    smg_free(ctx, memory, 5);
    void *empty = smg_alloc(ctx, 0, 8);
    assert_non_null(empty);
    smg_free(ctx, empty, 0);
    smg_free(ctx, NULL, 0);
    assert_int_equal(smg_context_status(ctx), SMG_OK);
    assert_null(smg_alloc(ctx, SIZE_MAX / 2, 3));
    assert_int_equal(smg_context_status(ctx), SMG_MEMORY);
    end_context(ctx, &state);
}

static void test_arena(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_arena *arena = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_ptr_equal(smg_arena_context(arena), ctx);
    unsigned char *pieces[500];
    for (size_t i = 0; i < SMG_COUNT_OF(pieces); i++) {
        size_t bytes = i * 37 % 3000;
        if (i % 100 == 99) bytes = (size_t)3 << 20;
        pieces[i] = smg_arena_alloc(arena, bytes, 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_true(all_zero(pieces[i], bytes));
        memset(pieces[i], (int)(i % 251), bytes);
    }
    for (size_t i = 0; i < SMG_COUNT_OF(pieces); i++) {
        size_t bytes = i % 100 == 99 ? (size_t)3 << 20 : i * 37 % 3000;
        for (size_t at = 0; at < bytes; at++) assert_true(pieces[i][at] == i % 251);
    }
    assert_true(smg_arena_bytes(arena) <= state.live_bytes);
    assert_true(smg_arena_bytes(arena) < (size_t)19 << 20);
    assert_null(smg_arena_alloc(arena, SIZE_MAX, 1));
    assert_null(smg_arena_alloc(arena, SIZE_MAX / 4, 8));
    assert_int_equal(smg_context_status(ctx), SMG_MEMORY);
    smg_arena_destroy(arena);
    smg_arena_destroy(NULL);
    assert_null(smg_arena_alloc(NULL, 1, 1));
    end_context(ctx, &state);
}

/* Uses alike take turns in the memory of the first, in whatever order large and small pieces come. */
static void test_arena_is_used_again(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_arena *arena = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    const size_t large = (size_t)1200 << 10;
    size_t reserved = 0;
    for (int use = 0; use < 6; use++) {
        bool first = use % 2 == 0;
        if (first) assert_non_null(smg_arena_alloc(arena, large, 1));
        for (int i = 0; i < 300; i++) assert_non_null(smg_arena_alloc(arena, 700, 1));
        if (!first) assert_non_null(smg_arena_alloc(arena, large, 1));
        if (use == 1) reserved = smg_arena_bytes(arena);
        if (use > 1) assert_int_equal(smg_arena_bytes(arena), reserved);
        smg_arena_reset(arena);
    }
    assert_true(reserved < 2 * large);
    smg_arena_destroy(arena);
    end_context(ctx, &state);
}

static void test_arena_text(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_arena *arena = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_string_equal(smg_arena_string(arena, "abc"), "abc");
    assert_string_equal(smg_arena_string_n(arena, "abcdef", 2), "ab");
    assert_string_equal(smg_arena_format(arena, "%d-%s", 5, "x"), "5-x");
    char *padded = smg_arena_format(arena, "%1000d", 7);
    assert_int_equal(strlen(padded), 1000);
    assert_string_equal(padded + 999, "7");
    assert_string_equal(smg_path_join(arena, "a", "b"), "a/b");
    assert_string_equal(smg_path_join(arena, "a/", "b"), "a/b");
    assert_string_equal(smg_path_join(arena, "", "b"), "b");
    smg_arena_destroy(arena);
    end_context(ctx, &state);
}

static void test_array(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_arena *arena = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    SMG_ARRAY(int64_t) numbers = {0};
    for (int i = 0; i < 1000; i++) {
        int64_t *item = SMG_ARRAY_PUSH(arena, &numbers);
        assert_non_null(item);
        assert_int_equal(*item, 0);
        *item = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(numbers.items[i], i);
    numbers.count--;
    int64_t *again = SMG_ARRAY_PUSH(arena, &numbers);
    assert_non_null(again);
    assert_int_equal(*again, 0); /* a popped element comes back zeroed */
    smg_arena_destroy(arena);
    end_context(ctx, &state);
}

static void test_checked_sizes(void **unused) {
    (void)unused;
    int64_t out = -1;
    assert_true(smg_mul_i64(3, 4, &out) && out == 12);
    assert_true(smg_mul_i64(0, INT64_MAX, &out) && out == 0);
    assert_true(smg_mul_i64(1, INT64_MAX, &out) && out == INT64_MAX);
    assert_false(smg_mul_i64(2, INT64_MAX / 2 + 1, &out));
    assert_false(smg_mul_i64(-1, 2, &out));
    assert_int_equal(out, INT64_MAX);
    assert_true(smg_add_i64(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    assert_false(smg_add_i64(INT64_MAX, 1, &out));
    assert_false(smg_add_i64(1, -1, &out));
}

/* ---- text ---------------------------------------------------------------------------------- */

static void test_text(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_text text;
    smg_text_init(&text, ctx);
    assert_string_equal(smg_text_cstr(&text), "");
    for (int i = 0; i < 1000; i++) smg_text_addf(&text, "%d,", i % 10);
    assert_int_equal(text.length, 2000);
    assert_memory_equal(smg_text_cstr(&text) + 20, "0,1,2,", 6);
    smg_text_addf(&text, "%5000s|", "x"); /* longer than all before */
    assert_int_equal(text.length, 7001);
    assert_int_equal(text.data[7000], '|');
    smg_text_add_n(&text, "yz", 1);
    assert_int_equal(text.data[7001], 'y');
    assert_int_equal(smg_text_status(&text), SMG_OK);
    smg_text_free(&text);
    smg_text_free(&text);
    end_context(ctx, &state);
}

static void check_f32(smg_text *text, float value, const char *wanted) {
    text->length = 0;
    smg_text_add_f32(text, value);
    if (wanted != NULL) assert_string_equal(smg_text_cstr(text), wanted);
    float back = strtof(smg_text_cstr(text), NULL);
    assert_memory_equal(&back, &value, sizeof(value));
}

static void check_f64(smg_text *text, double value, const char *wanted) {
    text->length = 0;
    smg_text_add_f64(text, value);
    if (wanted != NULL) assert_string_equal(smg_text_cstr(text), wanted);
    double back = strtod(smg_text_cstr(text), NULL);
    assert_memory_equal(&back, &value, sizeof(value));
}

static void test_numbers(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_text text;
    smg_text_init(&text, ctx);
    check_f32(&text, 0.5f, "0.5");
    check_f32(&text, 1e-5f, "1e-05");
    check_f32(&text, 0.1f, "0.1");
    check_f32(&text, 0.0f, "0");
    check_f32(&text, -0.0f, "-0");
    check_f32(&text, 16777216.0f, "16777216");
    check_f32(&text, FLT_MAX, "3.4028235e+38");
    check_f32(&text, FLT_TRUE_MIN, "1e-45");
    check_f32(&text, INFINITY, "inf");
    check_f32(&text, -INFINITY, "-inf");
    check_f64(&text, 0.1, "0.1");
    check_f64(&text, 1.0 / 3.0, "0.3333333333333333");
    check_f64(&text, 0.1 + 0.2, "0.30000000000000004");
    check_f64(&text, DBL_MAX, "1.7976931348623157e+308");
    check_f64(&text, DBL_TRUE_MIN, "5e-324");
    text.length = 0;
    smg_text_add_f32(&text, NAN);
    assert_string_equal(smg_text_cstr(&text), "nan");
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = smg_hash_u64(bits, (uint64_t)i);
        uint32_t low = (uint32_t)bits;
        float f;
        double d;
        memcpy(&f, &low, sizeof(f));
        memcpy(&d, &bits, sizeof(d));
        if (isfinite(f)) check_f32(&text, f, NULL);
        if (isfinite(d)) check_f64(&text, d, NULL);
    }
    smg_text_free(&text);
    end_context(ctx, &state);
}

static void check_json(smg_context *ctx, const char *string, const char *wanted) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_text_add_json(&text, string);
    assert_string_equal(smg_text_cstr(&text), wanted);
    smg_text_free(&text);
}

static void test_json(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    check_json(ctx, "", "\"\"");
    check_json(ctx, "a\"b\\c\n\t\r\x01", "\"a\\\"b\\\\c\\n\\t\\r\\u0001\"");
    check_json(ctx, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_json(ctx,
               "\xff"
               "a",
               "\"\xef\xbf\xbd"
               "a\"");
    check_json(ctx, "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    check_json(ctx, "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
    check_json(ctx, "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* cut off */
    end_context(ctx, &state);
}

/* ---- hash and map -------------------------------------------------------------------------- */

/* Of blocks: whole or in pieces it is the same; any bit, and any two blocks that change places, are another. */
static void test_hash_blocks(void **unused) {
    (void)unused;
    enum { BYTES = 2 * SMG_HASH_BLOCK + 45 };
    static unsigned char bytes[BYTES];
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    const uint64_t want = smg_hash_blocks(0, bytes, BYTES);
    for (int blocks = 0; blocks <= 2; blocks++) {
        size_t cut = (size_t)blocks * SMG_HASH_BLOCK;
        assert_true(smg_hash_blocks(0, bytes, cut) + smg_hash_blocks(blocks, bytes + cut, BYTES - cut) == want);
    }
    for (size_t at = 0; at < BYTES; at += at < BYTES - 60 ? 8209 : 1) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            assert_true(smg_hash_blocks(0, bytes, BYTES) != want);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    /* The high bits of two words that one lane reads one after the other. */
    bytes[7] ^= 0x80;
    bytes[39] ^= 0x80;
    assert_true(smg_hash_blocks(0, bytes, BYTES) != want);
    bytes[7] ^= 0x80;
    bytes[39] ^= 0x80;
    assert_true(smg_hash_blocks(0, bytes, SMG_HASH_BLOCK) != smg_hash_blocks(1, bytes, SMG_HASH_BLOCK));
    assert_true(smg_hash_blocks(0, bytes, BYTES - 1) != want);
    assert_true(smg_hash_blocks(0, bytes, 0) == 0);
}

static void test_hash(void **unused) {
    (void)unused;
    /* Fixed values: they name cache files, so changing them is a decision. */
    assert_true(smg_hash_text(SMG_HASH_SEED, "abc") == smg_hash_bytes(SMG_HASH_SEED, "abc", 3));
    assert_true(smg_hash_bytes(SMG_HASH_SEED, "a\0", 2) != smg_hash_bytes(SMG_HASH_SEED, "a", 1));
    assert_true(smg_hash_text(1, "abcdefgh") != smg_hash_text(2, "abcdefgh"));
    assert_true(smg_hash_u64(smg_hash_u64(1, 2), 3) != smg_hash_u64(smg_hash_u64(1, 3), 2));
    /* Every input bit changes about half of the output bits. */
    for (int bit = 0; bit < 64; bit++) {
        int changed = 0;
        for (uint64_t value = 1; value <= 64; value++) {
            uint64_t difference =
                smg_hash_u64(SMG_HASH_SEED, value) ^ smg_hash_u64(SMG_HASH_SEED, value ^ (UINT64_C(1) << bit));
            for (; difference != 0; difference &= difference - 1) changed++;
        }
        assert_in_range(changed, 64 * 26, 64 * 38);
    }
}

static void test_map(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    smg_arena *arena = NULL;
    smg_map *map = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_map_create(arena, &map), SMG_OK);
    void *value = NULL;
    assert_false(smg_map_get(map, "x", 1, &value));
    static int values[5000];
    for (int i = 0; i < 5000; i++) {
        char key[16];
        int length = snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(smg_map_set(map, key, (size_t)length, &values[i]), SMG_OK);
    }
    for (int i = 0; i < 5000; i++) {
        char key[16];
        int length = snprintf(key, sizeof(key), "key%d", i);
        assert_true(smg_map_get(map, key, (size_t)length, &value));
        assert_ptr_equal(value, &values[i]);
    }
    assert_false(smg_map_get(map, "key5000", 7, NULL));
    assert_int_equal(smg_map_set(map, "key7", 4, NULL), SMG_OK);
    assert_true(smg_map_get(map, "key7", 4, &value));
    assert_null(value);
    assert_int_equal(smg_map_set(map, "", 0, &values[1]), SMG_OK);
    assert_true(smg_map_get(map, "", 0, &value));
    assert_ptr_equal(value, &values[1]);
    smg_arena_destroy(arena);
    end_context(ctx, &state);
}

/* ---- files --------------------------------------------------------------------------------- */

static void test_files(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    char folder[512];
    char path[600];
    test_output(folder, sizeof(folder), "base-files/deep//f\xc3\xb6lder \xe6\x96\x87"); /* of any alphabet */
    assert_int_equal(smg_path_make_dirs(ctx, folder), SMG_OK);
    assert_int_equal(smg_path_make_dirs(ctx, folder), SMG_OK);
    assert_true(smg_path_is_dir(folder));
    assert_false(smg_file_exists(folder));
    snprintf(path, sizeof(path), "%s/file \xd1\x84.bin", folder);
    char *data = NULL;
    size_t size = 0;
    size_t large = 300001;
    char *bytes = malloc(large);
    assert_non_null(bytes);
    for (size_t i = 0; i < large; i++) bytes[i] = (char)(i * 7 + i / 256);
    for (int round = 0; round < 2; round++) { /* the second round replaces */
        assert_int_equal(smg_file_write_atomic(ctx, path, bytes, large - (size_t)round), SMG_OK);
        assert_true(smg_file_exists(path));
        assert_int_equal(smg_file_read(ctx, path, &data, &size), SMG_OK);
        assert_int_equal(size, large - (size_t)round);
        assert_memory_equal(data, bytes, size);
        assert_int_equal(data[size], '\0');
        smg_free(ctx, data, size + 1);
    }
    smg_mapped_file file;
    assert_int_equal(smg_file_map(ctx, path, &file), SMG_OK);
    assert_int_equal(file.size, large - 1);
    assert_memory_equal(file.data, bytes, file.size);
    smg_file_drop_pages(&file, 5000, 100000);
    smg_file_drop_pages(&file, 0, SIZE_MAX);
    smg_file_drop_pages(&file, SIZE_MAX, 1);
    assert_memory_equal(file.data, bytes, file.size);
    smg_file_unmap(&file);
    smg_file_unmap(&file);
    free(bytes);

    assert_int_equal(smg_file_write_atomic(ctx, path, NULL, 0), SMG_OK);
    assert_int_equal(smg_file_map(ctx, path, &file), SMG_OK);
    assert_null(file.data);
    assert_int_equal(file.size, 0);
    smg_file_unmap(&file);
    assert_int_equal(smg_file_read(ctx, path, &data, &size), SMG_OK);
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    smg_free(ctx, data, 1);
    smg_arena *arena = NULL;
    char *real = NULL;
    bool inside = false;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_path_inside(arena, folder, path, &real, &inside), SMG_OK);
    assert_true(inside);
    assert_non_null(strstr(real, "lder \xe6\x96\x87/file \xd1\x84.bin"));
    assert_int_equal(smg_path_inside(arena, path, folder, &real, &inside), SMG_OK);
    assert_false(inside);
    smg_arena_destroy(arena);
#if !defined(_WIN32) /* where these functions take names of one alphabet only */
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove_folder(folder), 0); /* so it is empty: nothing half-written stayed */
#endif
    end_context(ctx, &state);
}

#if !defined(_WIN32)
/* Links stay links, pipes stay pipes, and a name may be as long as the system has them. */
static void test_file_kinds(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    char folder[512], path[600], link[600], longest[900], text[8] = "";
    test_output(folder, sizeof(folder), "base-kinds");
    assert_int_equal(smg_path_make_dirs(ctx, folder), SMG_OK);
    snprintf(path, sizeof(path), "%s/file", folder);
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink("file", link), 0);
    for (int round = 0; round < 2; round++) { /* the first makes the file beside a link to nothing */
        assert_int_equal(smg_file_write_atomic(ctx, round == 0 ? path : link, "new", 3), SMG_OK);
        struct stat info;
        assert_int_equal(lstat(link, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_size, 3);
    }
    assert_int_equal(remove(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0);
    int reader = open(link, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(smg_file_write_atomic(ctx, link, "piped", 5), SMG_OK);
    assert_int_equal(read(reader, text, sizeof(text)), 5);
    assert_string_equal(text, "piped");
    close(reader);
    snprintf(longest, sizeof(longest), "%s/%0255d", folder, 7);
    assert_int_equal(smg_file_write_atomic(ctx, longest, "x", 1), SMG_OK);
    assert_true(remove(longest) == 0 && remove(path) == 0 && remove(link) == 0 && remove(folder) == 0);
    end_context(ctx, &state);
}
#endif

static void test_file_failures(void **unused) {
    (void)unused;
    hook_state state = {0};
    smg_context *ctx = new_context(&state);
    char folder[512];
    char path[600];
    test_output(folder, sizeof(folder), "base-failures");
    assert_int_equal(smg_path_make_dirs(ctx, folder), SMG_OK);
    snprintf(path, sizeof(path), "%s/absent", folder);
    char *data = NULL;
    size_t size = 0;
    smg_mapped_file file;
    assert_int_equal(smg_file_read(ctx, path, &data, &size), SMG_NOT_FOUND);
    assert_null(data);
    assert_non_null(strstr(smg_context_error(ctx), path));
    assert_int_equal(smg_file_map(ctx, path, &file), SMG_NOT_FOUND);
    assert_int_equal(smg_file_read(ctx, folder, &data, &size), SMG_INVALID);
    assert_int_equal(smg_file_map(ctx, folder, &file), SMG_INVALID);
    snprintf(path, sizeof(path), "%s/absent/file", folder);
    assert_int_equal(smg_file_write_atomic(ctx, path, "x", 1), SMG_NOT_FOUND);
    assert_int_equal(smg_path_make_dirs(ctx, ""), SMG_INVALID);
    /* The target is a folder with something in it: the rename fails and nothing stays behind. */
    snprintf(path, sizeof(path), "%s/target/inside", folder);
    assert_int_equal(smg_path_make_dirs(ctx, path), SMG_OK);
    snprintf(path, sizeof(path), "%s/target", folder);
    assert_int_not_equal(smg_file_write_atomic(ctx, path, "x", 1), SMG_OK);
    /* A file in the way of a folder. */
    snprintf(path, sizeof(path), "%s/plain", folder);
    assert_int_equal(smg_file_write_atomic(ctx, path, "x", 1), SMG_OK);
    char below[700];
    snprintf(below, sizeof(below), "%s/below", path);
    assert_int_not_equal(smg_path_make_dirs(ctx, below), SMG_OK);
    assert_int_equal(remove(path), 0);
    snprintf(path, sizeof(path), "%s/target/inside", folder);
    assert_int_equal(remove_folder(path), 0);
    snprintf(path, sizeof(path), "%s/target", folder);
    assert_int_equal(remove_folder(path), 0);
    assert_int_equal(remove_folder(folder), 0);
    end_context(ctx, &state);
}

/* ---- threads and clocks -------------------------------------------------------------------- */

typedef struct visits {
    atomic_int *times;
    int64_t grain;
    int64_t count;
    atomic_int small_parts;
} visits;

static void visit(void *user, int64_t begin, int64_t end) {
    visits *v = user;
    if (end - begin < v->grain && end != v->count) atomic_fetch_add(&v->small_parts, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&v->times[i], 1);
}

static void test_parallel_for(void **unused) {
    (void)unused;
    static const int64_t counts[] = {0, 1, 2, 7, 64, 1000, 100000};
    static const int64_t grains[] = {0, 1, 3, 1000};
    for (size_t c = 0; c < SMG_COUNT_OF(counts); c++) {
        for (size_t g = 0; g < SMG_COUNT_OF(grains); g++) {
            int64_t count = counts[c];
            atomic_int *times = calloc((size_t)count + 1, sizeof(*times));
            assert_non_null(times);
            visits v = {.times = times, .grain = grains[g], .count = count};
            smg_parallel_for(count, grains[g], visit, &v);
            for (int64_t i = 0; i < count; i++) assert_int_equal(atomic_load(&times[i]), 1);
            assert_int_equal(atomic_load(&times[count]), 0);
            assert_int_equal(atomic_load(&v.small_parts), 0);
            free(times);
        }
    }
    smg_parallel_for(-5, 1, visit, NULL);
}

static void test_clock(void **unused) {
    (void)unused;
    double start = smg_clock_seconds();
    assert_true(smg_clock_seconds() >= start);
}

/* ---- every allocation fails once ----------------------------------------------------------- */

/* Uses everything in base that allocates. */
static smg_status use_everything(smg_context *ctx, const char *folder) {
    smg_arena *arena = NULL;
    smg_map *map = NULL;
    smg_text text;
    smg_text_init(&text, ctx);
    smg_status status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK) status = smg_map_create(arena, &map);
    for (int i = 0; i < 300 && status == SMG_OK; i++) {
        status = smg_map_set(map, &i, sizeof(i), NULL);
        smg_text_addf(&text, "%d ", i);
    }
    if (status == SMG_OK && smg_arena_format(arena, "%4000d", 1) == NULL) status = SMG_MEMORY;
    SMG_ARRAY(double) list = {0};
    for (int i = 0; i < 2000 && status == SMG_OK; i++) {
        double *item = SMG_ARRAY_PUSH(arena, &list);
        if (item == NULL) status = SMG_MEMORY;
    }
    if (status == SMG_OK) status = smg_text_status(&text);
    char path[600];
    char *data = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/file", folder);
    if (status == SMG_OK) status = smg_path_make_dirs(ctx, folder);
    if (status == SMG_OK) status = smg_file_write_atomic(ctx, path, "12345", 5);
    if (status == SMG_OK) status = smg_file_read(ctx, path, &data, &size);
    smg_free(ctx, data, size + 1);
    if (status == SMG_OK) status = smg_file_read(ctx, "/proc/self/status", &data, &size);
    if (status == SMG_NOT_FOUND) status = SMG_OK;
    if (status == SMG_OK && data != NULL) smg_free(ctx, data, size + 1);
    smg_text_free(&text);
    smg_arena_destroy(arena);
    return status;
}

static void test_each_allocation_fails(void **unused) {
    (void)unused;
    char folder[512];
    test_output(folder, sizeof(folder), "base-failing");
    bool done = false;
    int at = 1;
    for (; !done; at++) {
        hook_state state = {.fail_at = at};
        smg_context_desc desc = {.reallocate = hook, .user = &state, .cache_dir = "cache"};
        smg_context *ctx = NULL;
        smg_status status = smg_context_create(&desc, &ctx);
        if (status == SMG_OK) {
            status = use_everything(ctx, folder);
            assert_int_equal(smg_context_status(ctx), status);
            if (status != SMG_OK) assert_non_null(strstr(smg_context_error(ctx), "memory"));
        }
        assert_true(status == SMG_OK || status == SMG_MEMORY);
        done = state.calls < at;
        assert_int_equal(status == SMG_OK, done);
        smg_context_destroy(ctx);
        assert_int_equal(state.live_blocks, 0);
        assert_int_equal(state.live_bytes, 0);
    }
    assert_true(at > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_words),
        cmocka_unit_test(test_first_failure_wins),
        cmocka_unit_test(test_long_sentences_are_cut),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_cache_dir),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_is_used_again),
        cmocka_unit_test(test_arena_text),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_checked_sizes),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_hash_blocks),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_files),
#if !defined(_WIN32)
        cmocka_unit_test(test_file_kinds),
#endif
        cmocka_unit_test(test_file_failures),
        cmocka_unit_test(test_parallel_for),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_each_allocation_fails),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
