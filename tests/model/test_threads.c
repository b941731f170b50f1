/* Two contexts in two threads at once, each with models of its own on the device: what they give is what one context
 * alone gives. They share one cache folder, empty at first, and nothing else. The thread sanitizer watches this, too
 * (preset tsan, scripts/test.sh). */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/output.h"

enum { THREADS = 2, MODELS = 2, MOST = 4096 };

typedef struct worker {
    const char *cache_dir;
    int first, models;        /* the first model, and how many of them */
    pthread_barrier_t *start; /* NULL: alone, in the caller's thread */
    smg_status status;
    char why[512];
    bool missing;
    size_t bytes[MODELS];
    unsigned char result[MODELS][MOST];
} worker;

static smg_status run_model(worker *w, smg_context *ctx, int number) {
    static const char *const path[MODELS] = {"tests/graphs/softmax_gemm.smg", "tests/models/hf-bert-tiny"};
    float x[5 * 512];
    int32_t ids[16];
    for (int i = 0; i < 5 * 512; i++) x[i] = (float)(i * 7 % 23) / 23.0f;
    for (int i = 0; i < 16; i++) ids[i] = 7 * i % 97;
    smg_tensor in[MODELS] = {{.name = "x", .type = "f32", .rank = 2, .dims = {5, 512}, .data = x},
                             {.name = "input_ids", .type = "i32", .rank = 2, .dims = {2, 5}, .data = ids}};
    smg_tensor out[MODELS] = {{.name = "y"}, {.name = "last_hidden_state"}};
    static const smg_dim small[] = {{"rows", 5}, {"batch", 2}, {"sequence", 5}}; /* few pipelines */
    const smg_model_desc desc = {
        .no_calibrate = true, .dims = number == 0 ? small : small + 1, .dim_count = number == 0 ? 1 : 2};
    smg_model *model = NULL;
    smg_status status = smg_model_open(ctx, path[number], &desc, &model);
    if (status == SMG_OK) status = smg_model_run(model, &in[number], 1, &out[number], 1);
    if (status == SMG_OK) {
        size_t bytes = sizeof(float);
        for (int d = 0; d < out[number].rank; d++) bytes *= (size_t)out[number].dims[d];
        w->bytes[number] = bytes < MOST ? bytes : MOST;
        memcpy(w->result[number], out[number].data, w->bytes[number]);
    }
    smg_model_close(model);
    return status;
}

static void count_bytes(void *user, const char *piece, size_t bytes) {
    (void)piece;
    *(size_t *)user += bytes;
}

/* Compiled for a device that need not be there, told, and run by the interpreter. */
static smg_status interpret(smg_context *ctx) {
    const smg_dim dims[] = {{"rows", 1}};
    smg_source *source = NULL;
    smg_arrays *arrays = NULL;
    smg_compilation *c = NULL;
    size_t told = 0;
    smg_status status = smg_source_load(ctx, "tests/graphs/softmax.smg", NULL, &source);
    if (status == SMG_OK) status = smg_source_compile(source, &(smg_compile_desc){.target = "careful"}, &c);
    if (status == SMG_OK) status = smg_compilation_explain(c, NULL, (smg_sink){.write = count_bytes, .user = &told});
    if (status == SMG_OK) status = smg_arrays_create(ctx, smg_source_get_facts(source)->signature, &arrays);
    if (status == SMG_OK) status = smg_arrays_settle(arrays, &(smg_sizes_desc){.dims = dims, .dim_count = 1});
    if (status == SMG_OK) status = smg_arrays_fill(arrays, "x", SMG_FILL_RANDOM, 1);
    if (status == SMG_OK) status = smg_compilation_interpret(c, arrays);
    smg_arrays_destroy(arrays);
    smg_compilation_destroy(c);
    smg_source_unload(source);
    return status;
}

static void *work(void *user) {
    worker *w = user;
    smg_context *ctx = NULL;
    const smg_context_desc desc = {.cache_dir = w->cache_dir};
    if (w->start != NULL) pthread_barrier_wait(w->start);
    w->status = smg_context_create(&desc, &ctx);
    for (int i = 0; i < w->models && w->status == SMG_OK; i++) w->status = run_model(w, ctx, (w->first + i) % MODELS);
    if (w->status == SMG_OK) w->status = interpret(ctx);
    if (w->status != SMG_OK) snprintf(w->why, sizeof w->why, "%s", ctx != NULL ? smg_context_error(ctx) : "no context");
    if (w->start == NULL && w->status != SMG_OK) w->missing = device_missing(ctx, w->status);
    smg_context_destroy(ctx);
    return NULL;
}

static void expect_same(const worker *a, const worker *b) {
    if (b->status != SMG_OK) fail_msg("%s", b->why);
    for (int i = 0; i < b->models; i++) {
        assert_true(a->bytes[i] > 0);
        assert_int_equal(a->bytes[i], b->bytes[i]);
        assert_memory_equal(a->result[i], b->result[i], a->bytes[i]);
    }
}

static void together(const worker *alone, const char *cache_dir, int models) {
    static worker w[THREADS];
    pthread_t thread[THREADS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.cache_dir = cache_dir, .first = i % models, .models = models, .start = &start};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&start), 0);
    for (int i = 0; i < THREADS; i++) expect_same(alone, &w[i]);
}

static int drop(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)about;
    (void)kind;
    (void)at;
    return remove(path);
}

static void two_contexts_share_nothing(void **state) {
    static worker alone;
    static char cache_dir[4096];
    (void)state;
    test_output(cache_dir, sizeof cache_dir, "threads_cache");
    nftw(cache_dir, drop, 8, FTW_DEPTH | FTW_PHYS);
    alone = (worker){.cache_dir = "", .models = MODELS};
    work(&alone);
    if (alone.missing) skip();
    expect_same(&alone, &alone);
    together(&alone, cache_dir, MODELS); /* both fill it */
    together(&alone, cache_dir, 1);      /* both read it */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_contexts_share_nothing)};
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
