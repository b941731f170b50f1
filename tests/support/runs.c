#include "runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device.h"

#if SMG_VULKAN
#include "vulkan/vulkan.h"

static const char layer[] =
    "graph layer\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\nw = constant f32[96, 96] random seed=2 scale=0.1\n"
    "rows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\n"
    "p = contract(sum, w) \"ni,io->no\"\ny = relu(p)\ntotal = sum(y) axis=1\n"
    "output y = y\noutput total = total\n";

unsigned runs_flags;

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
    runs *f = user;
    (void)old_size;
    f->allocations += new_size > 0;
    if (new_size > 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

void expect_ok(const runs *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

void expect_refused(const runs *f, smg_status status, smg_status want, const char *sentence) {
    assert_int_equal(status, want);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

smg_status runs_open(runs *f, smg_model **out_model) {
    const smg_model_desc desc = {.no_calibrate = true, .on = f->device};
    return smg_model_open_graph(f->ctx, f->graph, &desc, out_model);
}

int runs_setup(void **state) {
    static runs f;
    f = (runs){0};
    const smg_context_desc desc = {.reallocate = counted, .user = &f};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    for (int i = 0; i < ALL; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < ROWS; i++) f.ids[i] = i % 6;
    smg_status status = smg_vk_open(f.ctx, NULL, runs_flags, &f.device);
    f.missing = device_missing(f.ctx, status);
    if (!f.missing) expect_ok(&f, status);
    smg_context_clear_error(f.ctx);
    if (!f.missing) {
        expect_ok(&f, smg_graph_parse(f.ctx, layer, strlen(layer), "text", &f.graph));
        expect_ok(&f, runs_open(&f, &f.a));
        expect_ok(&f, runs_open(&f, &f.b));
    }
    *state = &f;
    return 0;
}

int runs_teardown(void **state) {
    runs *f = *state;
    smg_model_close(f->a);
    smg_model_close(f->b);
    smg_graph_destroy(f->graph);
    smg_device_close(f->device);
    smg_context_destroy(f->ctx);
    return 0;
}

arrays arrays_of(runs *f, int64_t rows, smg_device_tensor *x, smg_device_tensor *y) {
    arrays a = {.in = {{.name = "ids", .rank = 1, .dims = {rows}, .data = f->ids},
                       {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = f->x, .on = x}},
                .out = {{.name = "y", .data = f->got, .bytes = sizeof(f->got), .on = y},
                        {.name = "total", .data = f->total, .bytes = sizeof(f->total)}}};
    return a;
}

void find_wanted(runs *f, int64_t rows) {
    arrays a = arrays_of(f, rows, NULL, NULL);
    a.out[0].data = f->want;
    a.out[1].data = f->want_total;
    expect_ok(f, smg_model_run(f->b, a.in, 2, a.out, 2));
    memset(f->got, 0, sizeof(f->got));
    memset(f->total, 0, sizeof(f->total));
}

void expect_wanted(const runs *f, int64_t rows) {
    assert_memory_equal(f->got, f->want, (size_t)rows * WIDTH * sizeof(float));
    assert_memory_equal(f->total, f->want_total, (size_t)rows * sizeof(float));
}

#else
typedef int runs_need_vulkan; /* no empty file */
#endif
