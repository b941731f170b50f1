/* Arrays that stay on the device: any mix of them with arrays of the host gives the same bits; what one model wrote the
 * next one reads; types are converted on the way up and down and refused between models; ranges, sizes below what a tensor
 * has room for; runs with tensors seen lately allocate nothing; what does not fit a run is refused with its names. All of
 * it where the host sees the device's memory, and where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"

#if SMG_VULKAN
#include "program/program_private.h"
#include "runtime/runtime.h"
#include "vulkan/vulkan.h"

static const char layer[] = "graph layer\ndim n max 64\nx = input f32[n, 96]\n"
                            "w = constant f32[96, 96] random seed=2 scale=0.1\nc = constant f32[96] random seed=3\n"
                            "p = contract(x, w) \"ni,io->no\"\nq = add(p, c)\ny = relu(q)\ntotal = sum(y) axis=1\n"
                            "output y = y\noutput total = total\n";
static const char table[] = "graph table\ndim n max 64\nids = input i64[n]\nmask = input bool[n, 96]\n"
                            "table = constant f32[6, 96] random seed=1\nzero = fill 0 : f32[]\n"
                            "rows = gather(table, ids) : f32[n, 96]\ny = select(mask, rows, zero)\noutput y = y\n";

enum { ROWS = 20, WIDTH = 96, ALL = ROWS * WIDTH };

typedef struct fixture {
    smg_context *ctx;
    smg_device *device;
    smg_graph *graph, *table_graph;
    smg_model *a, *b, *table;
    bool missing;
    int allocations; /* of the host */
    float x[ALL], want[ALL], got[ALL];
} fixture;

static unsigned flags; /* of the device */

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
    fixture *f = user;
    (void)old_size;
    f->allocations += new_size > 0;
    if (new_size > 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect_refused(const fixture *f, smg_status status, smg_status want, const char *sentence) {
    assert_int_equal(status, want);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

static smg_status open_models(fixture *f) {
    smg_model_desc desc = {.no_calibrate = true};
    smg_status status = smg_vk_open(f->ctx, NULL, flags, &f->device);
    desc.on = f->device;
    if (status == SMG_OK) status = smg_graph_parse(f->ctx, layer, strlen(layer), "text", &f->graph);
    if (status == SMG_OK) status = smg_graph_parse(f->ctx, table, strlen(table), "text", &f->table_graph);
    if (status == SMG_OK) status = smg_model_open_graph(f->ctx, f->graph, &desc, &f->a);
    if (status == SMG_OK) status = smg_model_open_graph(f->ctx, f->graph, &desc, &f->b);
    if (status == SMG_OK) status = smg_model_open_graph(f->ctx, f->table_graph, &desc, &f->table);
    return status;
}

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    const smg_context_desc desc = {.reallocate = counted, .user = &f};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    for (int i = 0; i < ALL; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    smg_status status = open_models(&f);
    f.missing = device_missing(f.ctx, status);
    if (!f.missing) expect_ok(&f, status);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->a);
    smg_model_close(f->b);
    smg_model_close(f->table);
    smg_graph_destroy(f->graph);
    smg_graph_destroy(f->table_graph);
    smg_device_close(f->device);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_device_tensor *make(const fixture *f, const char *name, const char *type, int64_t elements) {
    smg_device_tensor *t = NULL;
    const smg_device_tensor_desc desc = {.name = name, .type = type, .elements = elements};
    expect_ok(f, smg_tensor_create(f->device, &desc, &t));
    return t;
}

/* x, from the host or a tensor, to y, on the host or a tensor. */
static smg_status run(smg_model *m, int64_t rows, void *x, smg_device_tensor *on, void *y, smg_device_tensor *to) {
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = x, .on = on};
    smg_tensor out = {.name = "y", .data = y, .bytes = y != NULL ? sizeof(float) * ALL : 0, .on = to};
    smg_status status = smg_model_run(m, &in, 1, &out, 1);
    if (status == SMG_OK && (out.rank != 2 || out.dims[0] != rows || out.dims[1] != WIDTH || !out.type)) fail();
    return status;
}

static void any_mix(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_device_tensor *x = make(f, "x", "f32", ALL), *y = make(f, "y", "f32", ALL);
    for (int64_t rows = 1; rows <= ROWS; rows += 19) {
        expect_ok(f, run(f->a, rows, f->x, NULL, f->want, NULL));
        size_t bytes = sizeof(float) * WIDTH * (size_t)rows;
        for (int mix = 0; mix < 4; mix++) {
            memset(f->got, 0, sizeof(f->got));
            if (mix & 1) expect_ok(f, smg_tensor_upload(x, 0, f->x, rows * WIDTH));
            expect_ok(f, run(f->a, rows, mix & 1 ? NULL : f->x, mix & 1 ? x : NULL, mix & 2 ? NULL : f->got,
                             mix & 2 ? y : NULL));
            if (mix & 2) expect_ok(f, smg_tensor_download(y, 0, f->got, rows * WIDTH));
            assert_memory_equal(f->got, f->want, bytes);
        }
    }
    /* Parts of it. */
    expect_ok(f, smg_tensor_download(y, 5 * WIDTH, f->got, WIDTH));
    assert_memory_equal(f->got, f->want + 5 * WIDTH, sizeof(float) * WIDTH);
    float *seen = smg_tensor_map(y);
    if (seen != NULL) assert_memory_equal(seen, f->want, sizeof(f->want));
    smg_tensor_destroy(x);
    smg_tensor_destroy(y);
    /* Back to the arena, with the tensors gone. */
    memset(f->got, 0, sizeof(f->got));
    expect_ok(f, run(f->a, ROWS, f->x, NULL, f->got, NULL));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
}

/* The output of one model is the input of the next, and its output the first one's. */
static void a_chain(void **state) {
    fixture *f = *state;
    static float back[ALL];
    if (f->missing) skip();
    expect_ok(f, run(f->a, ROWS, f->x, NULL, back, NULL));
    for (int i = 0; i < 3; i++) {
        expect_ok(f, run(f->b, ROWS, back, NULL, f->want, NULL));
        expect_ok(f, run(f->a, ROWS, f->want, NULL, back, NULL));
    }
    smg_device_tensor *there = make(f, "there", "f32", ALL + 7), *here = make(f, "here", "f32", ALL);
    expect_ok(f, run(f->a, ROWS, f->x, NULL, NULL, there));
    int before = 0;
    for (int i = 0; i < 3; i++) {
        if (i == 2) before = f->allocations;
        expect_ok(f, run(f->b, ROWS, NULL, there, NULL, here));
        expect_ok(f, run(f->a, ROWS, NULL, here, NULL, there));
    }
    assert_int_equal(f->allocations, before);
    expect_ok(f, smg_tensor_download(there, 0, f->got, ALL));
    assert_memory_equal(f->got, back, sizeof(back));
    smg_tensor_destroy(there);
    smg_tensor_destroy(here);
}

static void integers_and_bools(void **state) {
    fixture *f = *state;
    smg_device_tensor *ids = NULL, *mask = NULL;
    int64_t numbers[ROWS], back[ROWS];
    uint8_t keep[ALL], kept[ALL];
    if (f->missing) skip();
    for (int i = 0; i < ROWS; i++) numbers[i] = i % 6;
    for (int i = 0; i < ALL; i++) keep[i] = i % 3 != 0;
    const smg_tensor by_host[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = numbers},
                                  {.name = "mask", .rank = 2, .dims = {ROWS, WIDTH}, .data = keep}};
    smg_tensor y = {.name = "y", .data = f->want, .bytes = sizeof(f->want)};
    expect_ok(f, smg_model_run(f->table, by_host, 2, &y, 1));
    expect_ok(f, smg_model_create_tensor(f->table, "ids", ROWS, &ids));
    expect_ok(f, smg_model_create_tensor(f->table, "mask", ALL, &mask));
    expect_ok(f, smg_tensor_upload(ids, 0, numbers, ROWS));
    expect_ok(f, smg_tensor_upload(mask, 0, keep, ALL));
    const smg_tensor by_device[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .on = ids},
                                    {.name = "mask", .type = "bool", .rank = 2, .dims = {ROWS, WIDTH}, .on = mask}};
    y.data = f->got;
    expect_ok(f, smg_model_run(f->table, by_device, 2, &y, 1));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    expect_ok(f, smg_tensor_download(ids, 0, back, ROWS));
    expect_ok(f, smg_tensor_download(mask, 0, kept, ALL));
    assert_memory_equal(back, numbers, sizeof(back));
    assert_memory_equal(kept, keep, sizeof(kept));
    /* What the device's type does not hold, and an index outside its table. */
    numbers[3] = INT64_C(1) << 40;
    expect_refused(f, smg_tensor_upload(ids, 0, numbers, ROWS), SMG_INVALID, "outside the 32 bits");
    numbers[3] = 77;
    expect_ok(f, smg_tensor_upload(ids, 3, numbers + 3, 1));
    expect_refused(f, smg_model_run(f->table, by_device, 2, &y, 1), SMG_INVALID, "index 77 outside its table [0, 6)");
    numbers[3] = 3;
    expect_ok(f, smg_tensor_upload(ids, 3, numbers + 3, 1));
    expect_ok(f, smg_model_run(f->table, by_device, 2, &y, 1));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    /* Lengths that were set leave no room for a tensor. */
    const int64_t lengths[ROWS] = {4};
    expect_ok(f, smg_model_set_lengths(f->table, "mask", lengths, ROWS));
    expect_refused(f, smg_model_run(f->table, by_device, 2, &y, 1), SMG_INVALID, "has lengths that were set");
    expect_ok(f, smg_model_set_lengths(f->table, "mask", NULL, 0));
    expect_refused(f, smg_model_set_input(f->table, &by_device[0]), SMG_INVALID, "is given with each run");
    smg_tensor_destroy(ids);
    smg_tensor_destroy(mask);
}

static void overwrite_mask(const fixture *f) {
    static const int32_t zeros[ALL];
    smg_program *p = smg_model_program(f->table);
    smg_vk_buffer *memory = NULL;
    int buffer = 0;
    expect_ok(f, smg_program_find(p, SMG_BUFFER_INPUT, "mask", &buffer));
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    expect_ok(f, smg_vk_upload(memory, place->offset, zeros, sizeof(zeros)));
}

/* The first `rows` of ids, with a mask (NULL: as it was set). */
static void look_up(fixture *f, int64_t rows, uint8_t *mask, smg_device_tensor *on, float *y) {
    static int64_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = i % 6;
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {rows}, .data = ids},
                             {.name = "mask", .rank = 2, .dims = {rows, WIDTH}, .data = mask, .on = on}};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(f->got)};
    expect_ok(f, smg_model_run(f->table, in, mask != NULL || on != NULL ? 2 : 1, &out, 1));
}

/* What was set ahead is written once, until something else is given, said or bound. */
static void inputs_that_last(void **state) {
    fixture *f = *state;
    static const float zeros[ALL];
    uint8_t keep[ALL], other[ALL];
    int64_t lengths[ROWS], longer[ROWS];
    smg_device_tensor *on = NULL;
    if (f->missing) skip();
    for (int i = 0; i < ROWS; i++) lengths[i] = 1 + i * 37 % WIDTH, longer[i] = 1 + lengths[i] % WIDTH;
    for (int i = 0; i < ALL; i++) keep[i] = i % WIDTH < lengths[i / WIDTH], other[i] = i % 5 == 0;
    const smg_tensor mask = {.name = "mask", .rank = 2, .dims = {ROWS, WIDTH}, .data = keep};
    look_up(f, ROWS, keep, NULL, f->want);
    expect_ok(f, smg_model_create_tensor(f->table, "mask", ALL, &on));
    expect_ok(f, smg_tensor_upload(on, 0, other, ALL));
    for (int change = 0; change < 6; change++) {
        if (change == 0) expect_ok(f, smg_model_set_input(f->table, &mask));
        if (change == 1) expect_ok(f, smg_model_set_lengths(f->table, "mask", lengths, ROWS));
        if (change == 2) expect_ok(f, smg_model_set_lengths(f->table, "mask", NULL, 0));
        if (change == 3) look_up(f, ROWS, other, NULL, f->got);
        if (change == 4) look_up(f, 7, other, NULL, f->got);
        if (change == 5) look_up(f, ROWS, NULL, on, f->got);
        for (int i = 0; i < 2; i++) {
            look_up(f, ROWS, NULL, NULL, f->got);
            assert_memory_equal(f->got, f->want, sizeof(f->want));
        }
        overwrite_mask(f);
        look_up(f, ROWS, NULL, NULL, f->got);
        assert_memory_equal(f->got, zeros, sizeof(zeros));
    }
    /* Lengths that say otherwise are found although the mask lies there. */
    expect_ok(f, smg_model_set_lengths(f->table, "mask", longer, ROWS));
    int64_t ids[ROWS] = {0};
    const smg_tensor in = {.name = "ids", .rank = 1, .dims = {ROWS}, .data = ids};
    smg_tensor out = {.name = "y", .data = f->got, .bytes = sizeof(f->got)};
    expect_refused(f, smg_model_run(f->table, &in, 1, &out, 1), SMG_INVALID, "length");
    expect_ok(f, smg_model_set_lengths(f->table, "mask", NULL, 0));
    look_up(f, ROWS, NULL, NULL, f->got);
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_tensor_destroy(on);
}

/* Values of 16 bits lie so in tensors, too. */
static void halves(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    smg_device_tensor *x = NULL, *y = NULL, *wide = NULL;
    if (f->missing) skip();
    const smg_model_desc desc = {.on = f->device, .no_calibrate = true, .precision = "f16"};
    smg_status status = smg_model_open_graph(f->ctx, f->graph, &desc, &m);
    if (status == SMG_UNSUPPORTED) skip();
    expect_ok(f, status);
    expect_ok(f, run(m, ROWS, f->x, NULL, f->want, NULL));
    expect_ok(f, smg_model_create_tensor(m, "x", ALL, &x));
    expect_ok(f, smg_model_create_tensor(m, "y", ALL, &y));
    expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
    expect_ok(f, run(m, ROWS, NULL, x, NULL, y));
    expect_ok(f, smg_tensor_download(y, 0, f->got, ALL));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    wide = make(f, "wide", "f32", ALL);
    expect_refused(f, run(m, ROWS, NULL, wide, f->got, NULL), SMG_INVALID,
                   "input 'x' lies on the device as f16, tensor 'wide' as f32");
    expect_refused(f, run(f->a, ROWS, NULL, x, f->got, NULL), SMG_INVALID,
                   "input 'x' lies on the device as f32, tensor 'x' as f16");
    const smg_device_tensor_desc same = {.type = "f32", .stored = "f16", .elements = ALL};
    smg_tensor_destroy(x);
    expect_ok(f, smg_tensor_create(f->device, &same, &x));
    expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
    expect_ok(f, run(m, ROWS, NULL, x, f->got, NULL));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_tensor_destroy(x);
    smg_tensor_destroy(y);
    smg_tensor_destroy(wide);
    smg_model_close(m);
}

/* One recording for all sizes of a range, on tensors with room for some of them. */
static void ranges(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_device_tensor *x = make(f, "x", "f32", ALL), *y = make(f, "y", "f32", ALL);
    expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
    expect_ok(f, smg_model_set_range(f->b, "n", 1, 64));
    int before = 0;
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        expect_ok(f, run(f->a, rows, f->x, NULL, f->want, NULL));
        if (rows == 2) before = f->allocations;
        int others = f->allocations;
        expect_ok(f, run(f->b, rows, NULL, x, NULL, y));
        if (rows > 2) assert_int_equal(f->allocations, others);
        expect_ok(f, smg_tensor_download(y, 0, f->got, rows * WIDTH));
        assert_memory_equal(f->got, f->want, sizeof(float) * WIDTH * (size_t)rows);
    }
    assert_true(before > 0);
    expect_refused(f, run(f->b, ROWS + 1, NULL, x, NULL, y), SMG_INVALID, "its tensor has room for 1920");
    expect_refused(f, run(f->b, 65, NULL, x, NULL, y), SMG_INVALID, "it must be in [1, 64]");
    expect_ok(f, smg_model_set_range(f->b, "n", 0, 0));
    smg_tensor_destroy(x);
    smg_tensor_destroy(y);
}

/* More tensors than recordings are kept, each gone before the next. */
static void many_that_come_and_go(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    expect_ok(f, run(f->a, ROWS, f->x, NULL, f->want, NULL));
    for (int i = 0; i < 20; i++) {
        smg_device_tensor *y = make(f, "y", "f32", ALL);
        expect_ok(f, run(f->a, ROWS, f->x, NULL, NULL, y));
        expect_ok(f, smg_tensor_download(y, 0, f->got, ALL));
        assert_memory_equal(f->got, f->want, sizeof(f->want));
        smg_tensor_destroy(y);
    }
}

static void runs_that_are_refused(void **state) {
    fixture *f = *state;
    smg_device *device = NULL;
    smg_device_tensor *far = NULL;
    if (f->missing) skip();
    smg_device_tensor *x = make(f, "first", "f32", ALL), *small = make(f, "small", "f32", ALL - 5);
    expect_refused(f, run(f->a, ROWS, NULL, x, NULL, x), SMG_INVALID, "output 'y' and input 'x' share memory");
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x};
    smg_tensor two[] = {{.name = "y", .on = x}, {.name = "total", .on = x}};
    expect_refused(f, smg_model_run(f->a, &in, 1, two, 2), SMG_INVALID, "outputs 'y' and 'total' share memory");
    two[0].name = "z";
    expect_refused(f, smg_model_run(f->a, &in, 1, two, 1), SMG_NOT_FOUND, "no output 'z'");
    two[0].name = NULL;
    expect_refused(f, smg_model_run(f->a, &in, 1, two, 1), SMG_NOT_FOUND, "no output ''");
    two[0] = (smg_tensor){.name = "y", .type = "i32", .on = x};
    expect_refused(f, smg_model_run(f->a, &in, 1, two, 1), SMG_INVALID, "has elements of f32, i32 was said");
    expect_refused(f, run(f->a, ROWS, NULL, small, f->got, NULL), SMG_INVALID,
                   "'x' has 1920 elements at these sizes, its tensor has room for 1916");
    expect_refused(f, run(f->a, ROWS, f->x, NULL, NULL, small), SMG_INVALID, "'y' has 1920 elements");
    expect_ok(f, smg_device_open(f->ctx, NULL, &device));
    const smg_device_tensor_desc desc = {.name = "far", .type = "f32", .elements = ALL};
    expect_ok(f, smg_tensor_create(device, &desc, &far));
    expect_refused(f, run(f->a, ROWS, NULL, far, f->got, NULL), SMG_INVALID, "tensor 'far' lies on another device");
    smg_tensor_destroy(far);
    smg_device_close(device);
    /* And then a run that is right. */
    expect_ok(f, run(f->a, ROWS, f->x, NULL, f->want, NULL));
    expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
    expect_ok(f, run(f->a, ROWS, NULL, x, f->got, NULL));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_tensor_destroy(x);
    smg_tensor_destroy(small);
}

static void tensors_that_are_refused(void **state) {
    fixture *f = *state;
    smg_device_tensor *t = NULL;
    if (f->missing) skip();
    smg_device_tensor_desc desc = {.type = "f32", .elements = 0};
    expect_refused(f, smg_tensor_create(f->device, &desc, &t), SMG_INVALID, "tensor 'tensor' has 0 elements");
    desc.elements = INT64_MAX;
    expect_refused(f, smg_tensor_create(f->device, &desc, &t), SMG_NO_FIT, "binds at most");
    desc.elements = 4;
    desc.stored = "i32";
    expect_refused(f, smg_tensor_create(f->device, &desc, &t), SMG_INVALID, "cannot be stored as 'i32'");
    desc.type = "f64";
    expect_refused(f, smg_tensor_create(f->device, &desc, &t), SMG_INVALID, "a tensor of type 'f64'");
    desc.type = NULL;
    expect_refused(f, smg_tensor_create(f->device, &desc, &t), SMG_INVALID, "'(none)'");
    expect_refused(f, smg_tensor_create(f->device, NULL, &t), SMG_INVALID, "the description is NULL");
    expect_refused(f, smg_model_create_tensor(f->a, "z", 4, &t), SMG_NOT_FOUND, "no input and no output 'z'");
    expect_refused(f, smg_model_create_tensor(f->a, NULL, 4, &t), SMG_INVALID, "the name is NULL");
    assert_int_equal(smg_tensor_create(NULL, &desc, &t), SMG_INVALID);
    assert_int_equal(smg_model_create_tensor(NULL, "x", 4, &t), SMG_INVALID);
    assert_null(t);
    t = make(f, "t", "f32", 8);
    expect_refused(f, smg_tensor_upload(t, 0, f->x, 9), SMG_INVALID,
                   "upload: 9 elements from 0 on of tensor 't' with 8");
    expect_refused(f, smg_tensor_download(t, 8, f->got, 1), SMG_INVALID, "download: 1 elements from 8 on");
    expect_refused(f, smg_tensor_download(t, -1, f->got, 1), SMG_INVALID, "from -1 on");
    expect_refused(f, smg_tensor_upload(t, INT64_MAX, f->x, INT64_MAX), SMG_INVALID, "upload: ");
    expect_refused(f, smg_tensor_upload(t, 0, NULL, 1), SMG_INVALID, "at NULL");
    expect_ok(f, smg_tensor_upload(t, 8, NULL, 0));
    assert_int_equal(smg_tensor_upload(NULL, 0, f->x, 1), SMG_INVALID);
    assert_int_equal(smg_tensor_download(NULL, 0, f->got, 1), SMG_INVALID);
    assert_null(smg_tensor_map(NULL));
    smg_tensor_destroy(t);
    smg_tensor_destroy(NULL);
}

/* Each is opened by its index; room for fewer is no mistake. */
static void devices_that_there_are(void **state) {
    fixture *f = *state;
    smg_device_info list[8];
    int count = 0, again = 0;
    if (f->missing) skip();
    expect_ok(f, smg_device_list(f->ctx, list, 8, &count));
    assert_true(count >= 1);
    expect_ok(f, smg_device_list(f->ctx, NULL, 0, &again));
    assert_int_equal(again, count);
    for (int i = 0; i < count && i < 8; i++) {
        char index[16];
        smg_device *device = NULL;
        snprintf(index, sizeof(index), "%d", i);
        assert_true(list[i].memory_bytes > 0 && list[i].type[0] != '\0' && list[i].driver[0] != '\0');
        expect_ok(f, smg_device_open(f->ctx, index, &device));
        assert_non_null(strstr(list[i].name, smg_device_name(device)));
        smg_device_close(device);
    }
    for (int p = SMG_PRIORITY_NORMAL; p <= SMG_PRIORITY_HIGH; p++) {
        const smg_device_desc desc = {.which = "0", .priority = (smg_priority)p};
        smg_device *device = NULL;
        expect_ok(f, smg_device_open_desc(f->ctx, &desc, &device));
        smg_device_close(device);
    }
    const smg_device_desc wrong = {.priority = (smg_priority)3};
    smg_device *none = NULL;
    expect_refused(f, smg_device_open_desc(f->ctx, &wrong, &none), SMG_INVALID, "there is no priority 3");
    assert_null(none);
    expect_refused(f, smg_device_list(f->ctx, NULL, 3, &count), SMG_INVALID, "room for 3 devices, at NULL");
    assert_int_equal(smg_device_list(NULL, list, 8, &count), SMG_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_mix),
        cmocka_unit_test(a_chain),
        cmocka_unit_test(integers_and_bools),
        cmocka_unit_test(inputs_that_last),
        cmocka_unit_test(halves),
        cmocka_unit_test(ranges),
        cmocka_unit_test(many_that_come_and_go),
        cmocka_unit_test(runs_that_are_refused),
        cmocka_unit_test(tensors_that_are_refused),
        cmocka_unit_test(devices_that_there_are),
    };
    int failed = cmocka_run_group_tests_name("tensors, seen memory", tests, setup, teardown);
    flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("tensors, unseen memory", tests, setup, teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
