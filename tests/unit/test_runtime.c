/* A bundle on a device: opened from a path, from memory and by calls it gives the bits that the model gives which is
 * compiled where it runs; what a run is given is checked the same; files that fail while they are opened, and devices
 * that are below every class, leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/output.h"

/* Weights that are large and small, one that is folded, one that the prepare list changes; i64 and bool inputs. */
static const char text[] =
    "graph small\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\nmask = input bool[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\n"
    "w = constant f32[96, 96] random seed=2 scale=0.1\n"
    "c = constant f32[96] random seed=3\nd = constant f32[96] random seed=4\ns = mul(c, d)\n"
    "zero = fill 0 : f32[]\nrows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\n"
    "kept = select(mask, sum, zero)\np = contract(kept, w) \"ni,io->no\"\nq = add(p, s)\n"
    "y = relu(q)\ntotal = sum(y) axis=1\noutput y = y\noutput total = total\n";

typedef struct fixture {
    smg_context *ctx;
    smg_source source;
    bool missing; /* no device */
    char path[512];
    char *bytes;
    size_t size;
} fixture;

enum { ROWS = 20, WIDTH = 96 };
static int64_t ids[ROWS];
static float x[ROWS * WIDTH];
static uint8_t mask[ROWS * WIDTH];

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect_refused(const fixture *f, smg_status status, smg_status want, const char *sentence) {
    assert_int_equal(status, want);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

static void skip_without(const fixture *f) {
    if (f->missing) skip();
}

/* Compiled for this device, and for one that is quite another. */
static smg_status compile_here(fixture *f) {
    smg_vk_device *device = NULL;
    smg_ahead_target targets[2] = {{.name = "here"}, {.name = "h200", .match = "H200"}};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    const smg_model_desc desc = {0};
    SMG_TRY(smg_vk_open(f->ctx, NULL, 0, &device));
    smg_status status = smg_compile_know_device(device, &desc);
    targets[0].target = *smg_vk_target(device);
    targets[0].match = targets[0].target.name;
    if (status == SMG_OK) status = smg_target_named(f->ctx, "h200", &targets[1].target);
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, &f->source, targets, 2, &options, f->path);
    smg_vk_close(device);
    return status;
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    f.source = (smg_source){.ctx = f.ctx, .owns_graph = true};
    expect_ok(&f, smg_graph_parse(f.ctx, text, strlen(text), "text", &f.source.graph));
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "runtime.smgb"));
    smg_status status = compile_here(&f);
    f.missing = device_missing(f.ctx, status);
    smg_context_clear_error(f.ctx);
    if (!f.missing) {
        expect_ok(&f, status);
        expect_ok(&f, smg_file_read(f.ctx, f.path, &f.bytes, &f.size));
    }
    for (int i = 0; i < ROWS; i++) ids[i] = i % 6;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)(i * 7919 % 1000) / 500 - 1;
        mask[i] = i % 3 != 0;
    }
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    if (f->bytes != NULL) smg_free(f->ctx, f->bytes, f->size + 1);
    smg_source_close(&f->source);
    smg_context_destroy(f->ctx);
    return 0;
}

typedef struct results {
    float y[ROWS * WIDTH], total[ROWS];
} results;

static smg_status run(smg_model *m, int64_t rows, results *out) {
    const smg_tensor inputs[] = {{"ids", "i64", 1, {rows}, ids, 0, NULL},
                                 {"x", "f32", 2, {rows, WIDTH}, x, 0, NULL},
                                 {"mask", "bool", 2, {rows, WIDTH}, mask, 0, NULL}};
    smg_tensor outputs[] = {{.name = "y", .data = out->y, .bytes = sizeof(out->y)},
                            {.name = "total", .data = out->total, .bytes = sizeof(out->total)}};
    return smg_model_run(m, inputs, 3, outputs, 2);
}

/* At several sizes. */
static void same_bits(fixture *f, smg_model *bundle) {
    smg_model *compiled = NULL;
    expect_ok(f, smg_model_open_graph(f->ctx, f->source.graph, NULL, &compiled));
    for (int64_t rows = 1; rows <= ROWS; rows += 6) {
        static results want, got;
        memset(&want, 0, sizeof(want));
        memset(&got, 0, sizeof(got));
        expect_ok(f, run(compiled, rows, &want));
        expect_ok(f, run(bundle, rows, &got));
        assert_memory_equal(&want, &got, sizeof(want));
    }
    assert_string_equal(smg_model_class(bundle), "here");
    assert_string_equal(smg_model_class(compiled), "");
    assert_int_equal(smg_model_input_count(bundle), 3);
    assert_int_equal(smg_model_output_count(bundle), 2);
    for (int i = 0; i < 3; i++) {
        smg_tensor a, b;
        assert_true(smg_model_input(bundle, i, &a) && smg_model_input(compiled, i, &b));
        assert_string_equal(a.name, b.name);
        assert_string_equal(a.type, b.type);
        assert_int_equal(a.rank, b.rank);
        assert_memory_equal(a.dims, b.dims, sizeof(a.dims));
    }
    smg_model_close(compiled);
    smg_model_close(bundle);
}

static void a_path(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    skip_without(f);
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, NULL, &m));
    same_bits(f, m);
}

/* Nothing of the memory is used after the call. */
static void memory(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    skip_without(f);
    char *copy = malloc(f->size + 1); /* not aligned to anything */
    assert_non_null(copy);
    memcpy(copy + 1, f->bytes, f->size);
    expect_ok(f, smg_model_open_bundle_memory(f->ctx, copy + 1, f->size, NULL, &m));
    memset(copy, 0x55, f->size + 1);
    free(copy);
    same_bits(f, m);
}

typedef struct calls {
    const fixture *f;
    int done, fail_at; /* -1: never */
    bool lies;         /* it says that it has read what it has not */
} calls;

static bool read_some(void *user, int64_t offset, void *into, size_t bytes) {
    calls *c = user;
    assert_true(offset >= 0 && (size_t)offset + bytes <= c->f->size);
    if (c->done++ == c->fail_at) return c->lies;
    memcpy(into, c->f->bytes + offset, bytes);
    return true;
}

static void calls_of_a_reader(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    skip_without(f);
    calls c = {.f = f, .fail_at = -1};
    smg_bundle_reader reader = {.bytes = (int64_t)f->size, .read = read_some, .user = &c};
    expect_ok(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m));
    same_bits(f, m);
    int all = c.done;
    assert_true(all > 4);
    for (int i = 0; i < all; i++) {
        c = (calls){.f = f, .fail_at = i};
        expect_refused(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_IO, "its reader failed");
        assert_null(m);
        c = (calls){.f = f, .fail_at = i, .lies = true};
        assert_int_equal(smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_FORMAT);
        assert_null(m);
    }
    reader.bytes++;
    expect_refused(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_FORMAT, "bytes of");
    reader.bytes -= 2;
    expect_refused(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_FORMAT, "bytes of");
    reader.bytes = -1;
    expect_refused(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_INVALID, "less than no bytes");
    reader.read = NULL;
    expect_refused(f, smg_model_open_bundle_reader(f->ctx, &reader, NULL, &m), SMG_INVALID, "no function");
}

static void ranges_and_sizes(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    static results got;
    skip_without(f);
    const smg_dim_range range = {"n", 1, ROWS};
    smg_bundle_desc desc = {.ranges = &range, .range_count = 1};
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    same_bits(f, m);
    const smg_dim dim = {"n", ROWS};
    desc = (smg_bundle_desc){.dims = &dim, .dim_count = 1};
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    expect_ok(f, run(m, ROWS, &got));
    smg_model_close(m);
    const smg_dim large = {"n", 65}, other = {"batch", 1};
    desc.dims = &large;
    expect_refused(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_INVALID, "n is 65, it must be in [1, 64]");
    desc.dims = &other;
    expect_refused(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_NOT_FOUND, "no size 'batch'");
    desc.dims = NULL;
    expect_refused(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_INVALID, "an array is NULL");
}

static void wrong_arrays_are_refused(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    static results got;
    skip_without(f);
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, NULL, &m));
    const smg_tensor some[] = {{"ids", "i64", 1, {4}, ids, 0, NULL}};
    expect_refused(f, smg_model_run(m, some, 1, NULL, 0), SMG_INVALID, "input 'x' is missing");
    ids[2] = 77;
    expect_refused(f, run(m, 4, &got), SMG_INVALID, "input 'ids', element 2: index 77 outside its table [0, 6)");
    ids[2] = INT64_C(1) << 40;
    expect_refused(f, run(m, 4, &got), SMG_INVALID, "outside the 32 bits");
    ids[2] = 2;
    expect_refused(f, run(m, 65, &got), SMG_INVALID, "it must be in [1, 64]");
    expect_ok(f, run(m, 4, &got));
    smg_model_close(m);
}

static void wrong_files_are_refused(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    char room[512];
    skip_without(f);
    expect_refused(f, smg_model_open_bundle(f->ctx, "/nowhere.smgb", NULL, &m), SMG_NOT_FOUND, "/nowhere.smgb");
    expect_refused(f, smg_model_open_bundle(f->ctx, NULL, NULL, &m), SMG_INVALID, "the path is NULL");
    expect_refused(f, smg_model_open_bundle_memory(f->ctx, NULL, 5, NULL, &m), SMG_INVALID, "NULL");
    expect_refused(f, smg_model_open_bundle_memory(f->ctx, text, sizeof(text), NULL, &m), SMG_FORMAT, "is no bundle");
    expect_refused(f, smg_model_open(f->ctx, f->path, NULL, &m), SMG_INVALID, "is a bundle, which is compiled already");
    const char *empty = test_output(room, sizeof(room), "empty.smgb");
    expect_ok(f, smg_file_write_atomic(f->ctx, empty, NULL, 0));
    expect_refused(f, smg_model_open_bundle(f->ctx, empty, NULL, &m), SMG_FORMAT, "is no bundle");
    /* For a device that is not here. */
    smg_ahead_target other = {.name = "h200", .match = "H200"};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    expect_ok(f, smg_target_named(f->ctx, "h200", &other.target));
    const char *path = test_output(room, sizeof(room), "other.smgb");
    expect_ok(f, smg_compile_ahead(f->ctx, &f->source, &other, 1, &options, path));
    smg_vk_device *device = NULL;
    expect_ok(f, smg_vk_open(f->ctx, NULL, 0, &device));
    bool fits = smg_vk_target(device)->subgroup_min <= 32 && smg_vk_target(device)->subgroup_max >= 32;
    smg_vk_close(device);
    if (fits) return;
    expect_refused(f, smg_model_open_bundle(f->ctx, path, NULL, &m), SMG_UNSUPPORTED, "subgroup_max 32 (");
}

/* Weights that do not fit are told by the opening, values by the run; fewer rows go on, and other bits there are none. */
static void memory_that_is_limited(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    smg_program_memory used;
    static results want, got;
    memset(&want, 0, sizeof(want));
    memset(&got, 0, sizeof(got));
    skip_without(f);
    smg_bundle_desc desc = {.memory_bytes = -1};
    expect_refused(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_INVALID, "memory of -1 bytes");
    desc.memory_bytes = 0;
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    expect_ok(f, run(m, ROWS, &want));
    smg_model_memory(m, &used);
    smg_model_close(m);
    const int64_t weights = used.constant_bytes + used.derived_bytes;
    desc.memory_bytes = weights - 1;
    expect_refused(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_DEVICE_MEMORY,
                   "of 'constants' are needed");
    desc.memory_bytes = used.peak_bytes + 4096; /* places are aligned */
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    expect_ok(f, run(m, ROWS, &got));
    assert_memory_equal(&got, &want, sizeof(want));
    smg_model_close(m);
    desc.memory_bytes = weights + used.arena_bytes / 2;
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    expect_refused(f, run(m, ROWS, &got), SMG_DEVICE_MEMORY, "the model's memory is to be at most");
    expect_ok(f, run(m, 2, &got));
    expect_refused(f, run(m, ROWS, &got), SMG_DEVICE_MEMORY, "of 'arena' are needed");
    expect_ok(f, run(m, 2, &got));
    smg_model_close(m);
}

/* ---- weights that are stored as kernels want them ------------------------------------------------------ */

static void count_prepares(void *user, const char *phase, size_t done, size_t total, const char *unit) {
    int *count = user;
    (void)done, (void)total, (void)unit;
    *count += strcmp(phase, "prepare") == 0;
}

enum { PREPARED_ROWS = 5, FROM = 256, TO = 384 };

/* One class for this device, whose weights are prepared or not, and one for another. */
static smg_status compile_weights(fixture *f, smg_source *source, bool prepared, const char *path) {
    smg_vk_device *device = NULL;
    smg_ahead_target targets[2] = {{.name = "here"}, {.name = "h200", .match = "H200"}};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    const smg_model_desc desc = {0};
    SMG_TRY(smg_vk_open(f->ctx, NULL, 0, &device));
    smg_status status = smg_compile_know_device(device, &desc);
    targets[0].target = *smg_vk_target(device);
    targets[0].match = targets[0].target.name;
    if (prepared) targets[0].prepare_on = device;
    if (status == SMG_OK) status = smg_target_named(f->ctx, "h200", &targets[1].target);
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, source, targets, 2, &options, path);
    smg_vk_close(device);
    return status;
}

/* The result, and how often "prepare" was heard of while it was opened. */
static int open_and_run(const char *path, float *y) {
    smg_context *ctx = NULL;
    smg_model *m = NULL;
    int prepares = 0;
    smg_program_memory memory;
    const smg_context_desc desc = {.progress = count_prepares, .user = &prepares};
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {PREPARED_ROWS, FROM}, .data = x};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(float) * PREPARED_ROWS * TO};
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    if (smg_model_open_bundle(ctx, path, NULL, &m) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    assert_string_equal(smg_model_class(m), "here");
    if (smg_model_run(m, &in, 1, &out, 1) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    smg_model_memory(m, &memory);
    assert_true((memory.derived_bytes > 0) == (prepares > 0));
    smg_model_close(m);
    smg_context_destroy(ctx);
    return prepares;
}

typedef struct facts {
    int64_t all, here, other; /* bytes of weights */
    int prepare, derived;     /* of this device's class */
} facts;

static facts look(fixture *f, const char *bytes, size_t size) {
    smg_bfile *file = NULL;
    smg_bundle *bundle = NULL;
    smg_arena *arena = NULL;
    facts got = {0};
    const smg_bfile_source source = {.bytes = (int64_t)size, .data = (const uint8_t *)bytes};
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    expect_ok(f, smg_bfile_read(arena, &source, "test", &file));
    expect_ok(f, smg_bfile_check_weights(file));
    expect_ok(f, smg_bfile_read_class(file, 1, arena, &bundle));
    assert_true(bundle->prepare.count > 0);
    expect_ok(f, smg_bfile_weights(file, bundle, &got.other));
    expect_ok(f, smg_bfile_read_class(file, 0, arena, &bundle));
    expect_ok(f, smg_bfile_weights(file, bundle, &got.here));
    got.all = file->weights_bytes;
    got.prepare = bundle->prepare.count;
    for (int b = 0; b < bundle->buffers.count; b++) got.derived += bundle->buffers.items[b].kind == SMG_BUFFER_DERIVED;
    smg_arena_destroy(arena);
    return got;
}

/* Whose weight the prepare list changes. */
static void read_graph(fixture *f, smg_source *out_source) {
    char *graph = NULL;
    size_t size = 0;
    *out_source = (smg_source){.ctx = f->ctx, .owns_graph = true};
    expect_ok(f, smg_file_read(f->ctx, "tests/graphs/prepared_weight.smg", &graph, &size));
    expect_ok(f, smg_graph_parse(f->ctx, graph, size, "prepared_weight", &out_source->graph));
    smg_free(f->ctx, graph, size + 1);
}

static void prepared_weights(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"unprepared.smgb", "prepared.smgb", "prepared-again.smgb"};
    static float y[3][PREPARED_ROWS * TO];
    smg_source source;
    char room[512], *bytes[3];
    size_t sizes[3];
    skip_without(f);
    read_graph(f, &source);
    for (int i = 0; i < 3; i++) {
        const char *path = test_output(room, sizeof(room), names[i]);
        expect_ok(f, compile_weights(f, &source, i > 0, path));
        expect_ok(f, smg_file_read(f->ctx, path, &bytes[i], &sizes[i]));
        assert_int_equal(open_and_run(path, y[i]) > 0, i == 0);
        assert_memory_equal(y[i], y[0], sizeof(y[0]));
    }
    assert_int_equal(sizes[1], sizes[2]);
    assert_memory_equal(bytes[1], bytes[2], sizes[1]);
    /* What it takes is told: each class has weights of its own now. */
    const facts plain = look(f, bytes[0], sizes[0]), ready = look(f, bytes[1], sizes[1]);
    assert_true(plain.prepare > 0 && plain.derived > 0);
    assert_true(ready.prepare == 0 && ready.derived == 0);
    assert_int_equal(ready.here, (int64_t)sizeof(float) * FROM * TO);
    assert_true(ready.all == ready.here + ready.other && ready.all > plain.all);
    for (int i = 0; i < 3; i++) smg_free(f->ctx, bytes[i], sizes[i] + 1);
    smg_source_close(&source);
}

/* A device that cannot run what prepares. */
static void weights_that_cannot_be_prepared(void **state) {
    fixture *f = *state;
    char room[512];
    smg_vk_device *device = NULL;
    smg_ahead_target other = {.name = "h200", .match = "H200"};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    skip_without(f);
    const char *path = test_output(room, sizeof(room), "unprepared.smgb");
    expect_ok(f, smg_target_named(f->ctx, "h200", &other.target));
    expect_ok(f, smg_vk_open(f->ctx, NULL, 0, &device));
    other.prepare_on = device;
    bool fits = smg_vk_target(device)->subgroup_min <= 32 && smg_vk_target(device)->subgroup_max >= 32;
    smg_status status = smg_compile_ahead(f->ctx, &f->source, &other, 1, &options, path);
    if (!fits) expect_refused(f, status, SMG_UNSUPPORTED, "target 'h200': weights cannot be prepared on");
    smg_context_clear_error(f->ctx);
    smg_vk_close(device);
}

/* ---- damaged weights ------------------------------------------------------------------------------------ */

/* By a path, from memory, by calls. */
static smg_status open_one_way(fixture *f, int way, const char *bytes, size_t size, smg_model **out_model) {
    char room[512];
    fixture damaged = *f;
    damaged.bytes = (char *)(uintptr_t)bytes;
    damaged.size = size;
    calls c = {.f = &damaged, .fail_at = -1};
    const smg_bundle_reader reader = {.bytes = (int64_t)size, .read = read_some, .user = &c};
    if (way == 1) return smg_model_open_bundle_memory(f->ctx, bytes, size, NULL, out_model);
    if (way == 2) return smg_model_open_bundle_reader(f->ctx, &reader, NULL, out_model);
    const char *path = test_output(room, sizeof(room), "damaged.smgb");
    expect_ok(f, smg_file_write_atomic(f->ctx, path, bytes, size));
    return smg_model_open_bundle(f->ctx, path, NULL, out_model);
}

/* A bit of every weight of the class is flipped, at its begin, within and at its end: whichever way the bundle comes, the
 * sentence names the weight. Those of other classes are not read. Returns how many weights the class has. */
static int flip_weights(fixture *f, char *bytes, size_t size) {
    smg_bfile *file = NULL;
    smg_bundle *bundle = NULL;
    smg_arena *arena = NULL;
    smg_model *m = NULL;
    int flips = 0, weights = 0;
    const smg_bfile_source source = {.bytes = (int64_t)size, .data = (const uint8_t *)bytes};
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    expect_ok(f, smg_bfile_read(arena, &source, "test", &file));
    expect_ok(f, smg_bfile_read_class(file, 0, arena, &bundle));
    for (int i = 0; i < file->constant_count; i++) {
        const smg_bfile_constant *c = &file->constants[i];
        const char *name = NULL;
        char sentence[256];
        for (int b = 0; b < bundle->buffers.count && name == NULL; b++)
            if (bundle->buffers.items[b].kind == SMG_BUFFER_CONSTANT && bundle->buffers.items[b].source == i)
                name = bundle->buffers.items[b].name;
        snprintf(sentence, sizeof(sentence), "weights '%s' (%lld bytes from %lld on) are not what was written",
                 name != NULL ? name : "", (long long)c->bytes, (long long)c->offset);
        weights += name != NULL;
        const int64_t places[] = {0, c->bytes / 2, c->bytes - 1};
        for (size_t k = 0; k < SMG_COUNT_OF(places); k++, flips++) {
            char *at = bytes + c->offset + places[k];
            *at ^= (char)(1 << flips % 8);
            smg_status status = open_one_way(f, flips % 3, bytes, size, &m);
            *at ^= (char)(1 << flips % 8);
            if (name == NULL)
                expect_ok(f, status);
            else
                expect_refused(f, status, SMG_FORMAT, sentence);
            assert_true((m != NULL) == (name == NULL));
            smg_model_close(m);
        }
    }
    smg_arena_destroy(arena);
    return weights;
}

static void weights_that_are_damaged(void **state) {
    fixture *f = *state;
    skip_without(f);
    assert_true(flip_weights(f, f->bytes, f->size) >= 3);
}

static void prepared_weights_that_are_damaged(void **state) {
    fixture *f = *state;
    smg_source source;
    char room[512], *bytes = NULL;
    size_t size = 0;
    skip_without(f);
    const char *path = test_output(room, sizeof(room), "prepared.smgb");
    read_graph(f, &source);
    expect_ok(f, compile_weights(f, &source, true, path));
    expect_ok(f, smg_file_read(f->ctx, path, &bytes, &size));
    assert_true(flip_weights(f, bytes, size) >= 1);
    smg_free(f->ctx, bytes, size + 1);
    smg_source_close(&source);
}

/* One that is larger than what is fetched at a time (16 MiB). */
static void a_weight_in_pieces(void **state) {
    fixture *f = *state;
    static const char graph[] = "graph long\nx = input f32[]\nw = constant f32[5242883] random seed=1\n"
                                "p = mul(x, w)\nt = sum(p) axis=0\noutput t = t\n";
    const float one = 1;
    float t[2] = {0, 1};
    char room[512], *bytes = NULL;
    size_t size = 0;
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    smg_model *m = NULL;
    skip_without(f);
    expect_ok(f, smg_graph_parse(f->ctx, graph, strlen(graph), "graph", &source.graph));
    const char *path = test_output(room, sizeof(room), "long.smgb");
    expect_ok(f, compile_weights(f, &source, false, path));
    expect_ok(f, smg_file_read(f->ctx, path, &bytes, &size));
    const smg_tensor in = {.name = "x", .data = (void *)(uintptr_t)&one};
    for (int way = 1; way <= 2; way++) {
        smg_tensor out = {.name = "t", .data = &t[way - 1], .bytes = sizeof(t[0])};
        expect_ok(f, open_one_way(f, way, bytes, size, &m));
        expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
        smg_model_close(m);
    }
    assert_true(t[0] == t[1]);
    bytes[size - 1] ^= 1; /* the file ends with its weights */
    expect_refused(f, open_one_way(f, 2, bytes, size, &m), SMG_FORMAT, "weights 'w' (20971532 bytes");
    smg_free(f->ctx, bytes, size + 1);
    smg_source_close(&source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path),
        cmocka_unit_test(memory),
        cmocka_unit_test(calls_of_a_reader),
        cmocka_unit_test(ranges_and_sizes),
        cmocka_unit_test(wrong_arrays_are_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(memory_that_is_limited),
        cmocka_unit_test(prepared_weights),
        cmocka_unit_test(weights_that_cannot_be_prepared),
        cmocka_unit_test(weights_that_are_damaged),
        cmocka_unit_test(prepared_weights_that_are_damaged),
        cmocka_unit_test(a_weight_in_pieces),
    };
    return device_result(cmocka_run_group_tests_name("runtime", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
