/* A bundle's file: the same input gives the same bytes, what is read is what was compiled, classes share their weights,
 * a device finds the class that suits it; damage, other versions and bytes that only look right are refused with a
 * sentence. Needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/output.h"

enum { HEADER_BYTES = 64, INDEX_OFFSET = 40, INDEX_BYTES = 48, INDEX_HASH = 56, LARGE = 300 * 300 * 4 };

/* w is large, "s" is folded, ids are i64 on the host, the mask is bool. */
static const char text[] = "graph small\ndim n max 4096\nids = input i64[n]\nx = input f32[n, 300]\n"
                           "table = constant f32[6, 300] random seed=1\n"
                           "w = constant f32[300, 300] random seed=2 scale=0.1\n"
                           "c = constant f32[300] random seed=3\nd = constant f32[300] random seed=4\ns = mul(c, d)\n"
                           "rows = gather(table, ids) : f32[n, 300]\nsum = add(rows, x)\n"
                           "p = contract(sum, w) \"ni,io->no\"\nq = add(p, s)\ny = relu(q)\noutput y = y\n";
static const char *const names[] = {"lavapipe", "h200", "careful"};

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    char path[512], other[512];
    char *bytes;
    size_t size;
    const char *precision;
} fixture;

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static smg_status compile(fixture *f, const char *const *targets, int count, const char *path) {
    smg_ahead_target list[4];
    const smg_model_desc desc = {.precision = f->precision};
    const smg_compile_options options = smg_compile_options_of(&desc);
    for (int i = 0; i < count; i++) {
        list[i] = (smg_ahead_target){.name = targets[i], .match = smg_target_match(targets[i])};
        expect_ok(f, smg_target_named(f->ctx, targets[i], &list[i].target));
    }
    return smg_compile_ahead(f->ctx, &f->source, list, count, &options, path);
}

static void read_file(fixture *f, const char *path, char **out_bytes, size_t *out_size) {
    expect_ok(f, smg_file_read(f->ctx, path, out_bytes, out_size));
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    f.source = (smg_source){.ctx = f.ctx, .owns_graph = true};
    expect_ok(&f, smg_graph_parse(f.ctx, text, strlen(text), "text", &f.source.graph));
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "bundle-file.smgb"));
    snprintf(f.other, sizeof(f.other), "%s", test_output(room, sizeof(room), "bundle-file-2.smgb"));
    expect_ok(&f, compile(&f, names, 3, f.path));
    read_file(&f, f.path, &f.bytes, &f.size);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_free(f->ctx, f->bytes, f->size + 1);
    smg_source_close(&f->source);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_bfile_source in_memory(const void *bytes, size_t size) {
    return (smg_bfile_source){.bytes = (int64_t)size, .data = bytes};
}

/* Everything that is in it. */
static smg_status read_all(fixture *f, const smg_bfile_source *source) {
    smg_arena *arena = NULL;
    smg_bfile *file = NULL;
    const char *head = NULL;
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_status status = smg_bfile_read(arena, source, "test", &file);
    for (int i = 0; status == SMG_OK && i < file->class_count; i++) {
        smg_bundle *bundle = NULL;
        status = smg_bfile_read_class(file, i, arena, &bundle);
        assert_int_equal(status == SMG_OK, bundle != NULL);
    }
    if (status == SMG_OK) status = smg_bfile_check_weights(file);
    if (status == SMG_OK) status = smg_bfile_read_head(file, arena, &head);
    assert_int_equal(status == SMG_OK, smg_context_error(f->ctx)[0] == '\0');
    smg_arena_destroy(arena);
    return status;
}

/* In memory of exactly this size, so that a sanitizer sees the first byte too many. */
static smg_status read_exactly(fixture *f, const char *bytes, size_t size) {
    char *copy = malloc(size + (size == 0));
    assert_non_null(copy);
    if (size > 0) memcpy(copy, bytes, size);
    const smg_bfile_source source = in_memory(copy, size);
    smg_status status = read_all(f, &source);
    free(copy);
    return status;
}

static void expect_refused(fixture *f, const char *bytes, size_t size, const char *sentence) {
    assert_int_equal(read_exactly(f, bytes, size), SMG_FORMAT);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

/* ---- what is in it ------------------------------------------------------------------------------------ */

static void equal_input_gives_equal_bytes(void **state) {
    fixture *f = *state;
    for (int cached = 0; cached < 2; cached++) {
        char *bytes = NULL;
        size_t size = 0;
        smg_context *own = NULL;
        const smg_context_desc desc = {.cache_dir = cached ? NULL : ""};
        fixture g = *f;
        assert_int_equal(smg_context_create(&desc, &own), SMG_OK);
        g.ctx = own;
        g.source = (smg_source){.ctx = own, .owns_graph = true};
        expect_ok(&g, smg_graph_parse(own, text, strlen(text), "text", &g.source.graph));
        expect_ok(&g, compile(&g, names, 3, f->other));
        smg_source_close(&g.source);
        smg_context_destroy(own);
        read_file(f, f->other, &bytes, &size);
        assert_int_equal(size, f->size);
        assert_memory_equal(bytes, f->bytes, size);
        smg_free(f->ctx, bytes, size + 1);
    }
}

static smg_bfile *open_file(fixture *f) {
    smg_bfile *file = NULL;
    const smg_bfile_source source = in_memory(f->bytes, f->size);
    expect_ok(f, smg_bfile_read(f->arena, &source, "test", &file));
    return file;
}

static void what_is_read_is_what_was_compiled(void **state) {
    fixture *f = *state;
    const smg_bfile *file = open_file(f);
    int constants = 0, largest = 0;
    assert_string_equal(file->model, "small");
    assert_string_equal(file->precision, "f32");
    assert_int_equal(file->class_count, 3);
    assert_int_equal(file->interface->input_count, 2);
    assert_string_equal(file->interface->inputs[0].name, "ids");
    assert_int_equal(file->interface->inputs[0].type, SMG_STORE_I64_AS_I32);
    assert_int_equal(file->interface->output_count, 1);
    for (int i = 0; i < file->class_count; i++) {
        smg_bundle *bundle = NULL;
        assert_string_equal(file->classes[i].name, names[i]);
        expect_ok(f, smg_bfile_read_class(file, i, f->arena, &bundle));
        for (int v = 0; v < bundle->variants.count; v++) assert_true(bundle->variants.items[v].made);
        for (int b = 0; b < bundle->buffers.count; b++) {
            const smg_bbuffer *buffer = &bundle->buffers.items[b];
            if (buffer->kind != SMG_BUFFER_CONSTANT) continue;
            const smg_bfile_constant *c = &file->constants[buffer->source];
            constants++;
            largest += c->bytes == LARGE;
            assert_true(smg_storage_same(buffer->storage));
            assert_true(buffer->data == (const uint8_t *)f->bytes + c->offset);
            assert_int_equal(c->offset % (c->bytes >= 4096 ? 4096 : 64), 0);
        }
    }
    /* w is one for all of them. */
    assert_int_equal(largest, 3);
    assert_true(file->constant_count < constants);
    assert_true(file->weights_bytes < 2 * LARGE);
}

static void f16_is_stored_as_devices_want_it(void **state) {
    fixture g = **(fixture **)state;
    const char *const one[] = {"h200"};
    char *bytes = NULL;
    size_t size = 0;
    smg_bfile *file = NULL;
    smg_bundle *bundle = NULL;
    g.precision = "f16";
    expect_ok(&g, compile(&g, one, 1, g.other));
    read_file(&g, g.other, &bytes, &size);
    const smg_bfile_source source = in_memory(bytes, size);
    expect_ok(&g, smg_bfile_read(g.arena, &source, "test", &file));
    expect_ok(&g, smg_bfile_read_class(file, 0, g.arena, &bundle));
    int halves = 0;
    for (int i = 0; i < file->constant_count; i++) {
        const smg_bfile_constant *c = &file->constants[i];
        if (c->storage != SMG_STORE_F16) continue;
        halves++;
        assert_true(c->bytes <= LARGE / 2);
    }
    assert_true(halves > 0);
    assert_int_equal(file->classes[0].needs.storage16, 1);
    /* A device without it, or with matrices that lie otherwise, is told what it lacks. */
    smg_target device;
    int index = 0;
    expect_ok(&g, smg_target_named(g.ctx, "h200", &device));
    expect_ok(&g, smg_bfile_choose(file, &device, &index));
    device.storage16 = 0;
    assert_int_equal(smg_bfile_choose(file, &device, &index), SMG_UNSUPPORTED);
    assert_non_null(strstr(smg_context_error(g.ctx), "h200 lacks storage16 1 (0 there)"));
    smg_context_clear_error(g.ctx);
    smg_free(g.ctx, bytes, size + 1);
}

static void a_device_finds_its_class(void **state) {
    fixture *f = *state;
    const smg_bfile *file = open_file(f);
    smg_target device;
    int index = -1;
    for (int i = 0; i < 3; i++) {
        expect_ok(f, smg_target_named(f->ctx, names[i], &device));
        if (device.name[0] != 'c') snprintf(device.name, sizeof(device.name), "A %s B", smg_target_match(names[i]));
        expect_ok(f, smg_bfile_choose(file, &device, &index));
        assert_string_equal(file->classes[index].name, names[i]);
    }
    /* Discrete, by another name, with everything: the one made for a discrete device. */
    expect_ok(f, smg_target_named(f->ctx, "h200", &device));
    snprintf(device.name, sizeof(device.name), "another");
    expect_ok(f, smg_bfile_choose(file, &device, &index));
    assert_string_equal(file->classes[index].name, "h200");
    device.subgroup_min = device.subgroup_max = device.subgroup_size = 64;
    expect_ok(f, smg_bfile_choose(file, &device, &index));
    assert_string_equal(file->classes[index].name, "careful");
    device.max_bindings = 1;
    assert_int_equal(smg_bfile_choose(file, &device, &index), SMG_UNSUPPORTED);
    const char *said = smg_context_error(f->ctx);
    assert_non_null(strstr(said, "no class for another"));
    assert_non_null(strstr(said, "careful lacks max_bindings"));
    assert_non_null(strstr(said, "subgroup_min"));
    smg_context_clear_error(f->ctx);
}

/* ---- what is wrong with it ---------------------------------------------------------------------------- */

static void put_u64(char *at, uint64_t value) {
    for (int i = 0; i < 8; i++) at[i] = (char)(uint8_t)(value >> (8 * i));
}

static uint64_t get_u64(const char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)(uint8_t)at[i] << (8 * i);
    return value;
}

static void damage_is_told(void **state) {
    fixture *f = *state;
    char *copy = malloc(f->size);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->size);
    assert_int_equal(read_exactly(f, copy, f->size), SMG_OK);
    expect_refused(f, copy, 0, "is no bundle");
    expect_refused(f, copy, 20, "ends within its header");
    expect_refused(f, copy, f->size - 1, "bytes of");
    copy[8] = 99;
    expect_refused(f, copy, f->size, "version 99, this smg reads version 2");
    copy[8] = 1; /* whose weights had other hashes */
    expect_refused(f, copy, f->size, "version 1, this smg reads version 2");
    copy[8] = SMG_BFILE_VERSION;
    for (int i = 0; i < 4; i++) copy[12 + i] = (char)(i + 1);
    expect_refused(f, copy, f->size, "another byte order");
    memcpy(copy, f->bytes, f->size);
    copy[f->size - 1] ^= 1;
    expect_refused(f, copy, f->size, "are not what was written");
    copy[f->size - 1] ^= 1;
    copy[get_u64(f->bytes + INDEX_OFFSET) + 10] ^= 1;
    expect_refused(f, copy, f->size, "its index");
    memcpy(copy, f->bytes, f->size);
    copy[HEADER_BYTES + 3] ^= 1;
    expect_refused(f, copy, f->size, "its head");
    free(copy);
}

static void every_bit_counts(void **state) {
    fixture *f = *state;
    char *copy = malloc(f->size);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->size);
    uint64_t large = get_u64(f->bytes + INDEX_OFFSET) + get_u64(f->bytes + INDEX_BYTES);
    size_t unseen = 0, tried = 0;
    for (size_t at = 0; at < f->size; at += at < large ? 7 : 997, tried++) {
        copy[at] ^= (char)(1 << at % 8);
        unseen += read_exactly(f, copy, f->size) == SMG_OK; /* between classes and weights there are zeros */
        copy[at] ^= (char)(1 << at % 8);
    }
    assert_true(unseen < tried / 20);
    for (size_t cut = 0; cut < f->size; cut += 1 + f->size / 200) {
        assert_int_equal(read_exactly(f, copy, cut), SMG_FORMAT);
    }
    free(copy);
}

/* Whatever an index says, once its hash is right: nothing is read that is not there. */
static void an_index_is_not_believed(void **state) {
    fixture *f = *state;
    char *copy = malloc(f->size);
    assert_non_null(copy);
    const size_t index = (size_t)get_u64(f->bytes + INDEX_OFFSET), bytes = (size_t)get_u64(f->bytes + INDEX_BYTES);
    static const uint64_t odd[] = {0, UINT64_MAX, INT64_MAX, UINT64_C(0x8000000000000000), 1 << 20};
    for (size_t at = 0; at + 8 <= bytes; at += 3) {
        memcpy(copy, f->bytes, f->size);
        put_u64(copy + index + at, odd[at % SMG_COUNT_OF(odd)]);
        put_u64(copy + INDEX_HASH, smg_hash_bytes(SMG_HASH_SEED, copy + index, bytes));
        smg_status status = read_exactly(f, copy, f->size);
        assert_true(status == SMG_OK || status == SMG_FORMAT);
    }
    for (size_t i = 0; i < SMG_COUNT_OF(odd); i++) {
        for (size_t field = 24; field < INDEX_HASH; field += 8) {
            memcpy(copy, f->bytes, f->size);
            put_u64(copy + field, odd[i]);
            assert_int_equal(read_exactly(f, copy, f->size), SMG_FORMAT);
        }
    }
    free(copy);
}

/* ---- by calls ----------------------------------------------------------------------------------------- */

typedef struct calls {
    const fixture *f;
    int done, fail_at; /* -1: never */
    int64_t bytes;
} calls;

static bool read_some(void *user, int64_t offset, void *into, size_t bytes) {
    calls *c = user;
    assert_true(offset >= 0 && (size_t)offset + bytes <= c->f->size);
    c->bytes += (int64_t)bytes;
    if (c->done++ == c->fail_at) return false;
    memcpy(into, c->f->bytes + offset, bytes);
    return true;
}

static void bytes_may_come_by_calls(void **state) {
    fixture *f = *state;
    calls c = {.f = f, .fail_at = -1};
    const smg_bfile_source source = {.bytes = (int64_t)f->size, .read = read_some, .user = &c};
    assert_int_equal(read_all(f, &source), SMG_OK);
    int all = c.done;
    for (int i = 0; i < all; i++) {
        c = (calls){.f = f, .fail_at = i};
        assert_int_equal(read_all(f, &source), SMG_IO);
        assert_non_null(strstr(smg_context_error(f->ctx), "its reader failed at byte"));
    }
    /* Index and one class are not all of it. */
    smg_bfile *file = NULL;
    smg_bundle *bundle = NULL;
    c = (calls){.f = f, .fail_at = -1};
    smg_context_clear_error(f->ctx);
    expect_ok(f, smg_bfile_read(f->arena, &source, "test", &file));
    expect_ok(f, smg_bfile_read_class(file, 0, f->arena, &bundle));
    assert_true(c.bytes < (int64_t)f->size / 2);
}

static void wrong_requests_are_refused(void **state) {
    fixture *f = *state;
    const char *const twice[] = {"h200", "h200"};
    assert_int_equal(compile(f, twice, 2, f->other), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "'h200' is given twice"));
    smg_context_clear_error(f->ctx);
    assert_int_equal(compile(f, names, 0, f->other), SMG_INVALID);
    smg_context_clear_error(f->ctx);
    assert_int_equal(compile(f, names, 1, "/nowhere/file.smgb"), SMG_NOT_FOUND);
    smg_context_clear_error(f->ctx);
    f->precision = "f16";
    assert_int_equal(compile(f, &names[2], 1, f->other), SMG_UNSUPPORTED);
    f->precision = NULL;
    assert_non_null(strstr(smg_context_error(f->ctx), "target 'careful'"));
    smg_context_clear_error(f->ctx);
}

/* When the format changes, the seed below the test output takes the place of tests/fuzz/corpus/bundle_file/small. */
static void seeds_are_of_this_version(void **state) {
    fixture *f = *state;
    static const char tiny[] = "graph tiny\ndim n max 8\nx = input f32[n, 3]\nc = constant f32[3] random seed=1\n"
                               "y = add(x, c)\noutput y = y\n";
    fixture g = *f;
    char room[512];
    char *seed = NULL, *bytes = NULL;
    size_t seed_size = 0, size = 0;
    g.source = (smg_source){.ctx = f->ctx, .owns_graph = true};
    expect_ok(f, smg_graph_parse(f->ctx, tiny, strlen(tiny), "text", &g.source.graph));
    const char *path = test_output(room, sizeof(room), "bundle-file-seed");
    expect_ok(f, compile(&g, names, 1, path));
    smg_source_close(&g.source);
    read_file(f, path, &bytes, &size);
    read_file(f, "tests/fuzz/corpus/bundle_file/small", &seed, &seed_size);
    expect_ok(f, read_exactly(f, seed, seed_size));
    smg_free(f->ctx, seed, seed_size + 1);
    smg_free(f->ctx, bytes, size + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_input_gives_equal_bytes),
        cmocka_unit_test(what_is_read_is_what_was_compiled),
        cmocka_unit_test(f16_is_stored_as_devices_want_it),
        cmocka_unit_test(a_device_finds_its_class),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(an_index_is_not_believed),
        cmocka_unit_test(bytes_may_come_by_calls),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(seeds_are_of_this_version),
    };
    return cmocka_run_group_tests_name("bundle file", tests, setup, teardown);
}
