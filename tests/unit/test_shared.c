/* One model shared: several runs of it in flight on one thread, and runs of four threads at a time, each with its own
 * context, sizes and tensors. All give the bits of the model by itself, and wrong inputs of one are no matter of the
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/witness.h"

static const char layer[] =
    "graph layer\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\nw = constant f32[96, 96] random seed=2 scale=0.1\n"
    "rows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\n"
    "p = contract(sum, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n";

enum { MOST = 24, WIDTH = 96, ALL = MOST * WIDTH, THREADS = 4, ROUNDS = 40 };

typedef struct fixture {
    smg_context *ctx;
    smg_graph *graph;
    smg_model *model;
    bool missing;
    int64_t ids[MOST];
    float x[ALL], want[MOST + 1][ALL]; /* by rows */
} fixture;

static void expect_ok(const smg_context *ctx, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(ctx));
}

static smg_status run(const fixture *f, smg_model *m, int64_t rows, float *y) {
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {rows}, .data = (void *)(uintptr_t)f->ids},
                             {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = (void *)(uintptr_t)f->x}};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(float) * ALL};
    return smg_model_run(m, in, 2, &out, 1);
}

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    for (int i = 0; i < ALL; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < MOST; i++) f.ids[i] = i % 6;
    expect_ok(f.ctx, smg_graph_parse(f.ctx, layer, strlen(layer), "text", &f.graph));
    const smg_model_desc desc = {.no_calibrate = true};
    smg_status status = smg_model_open_graph(f.ctx, f.graph, &desc, &f.model);
    f.missing = device_missing(f.ctx, status);
    if (!f.missing) {
        expect_ok(f.ctx, status);
        for (int rows = 1; rows <= MOST; rows++) expect_ok(f.ctx, run(&f, f.model, rows, f.want[rows]));
    }
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->model);
    smg_graph_destroy(f->graph);
    smg_context_destroy(f->ctx);
    return 0;
}

/* All submitted before the first is waited for, and that in the other order. */
static void several_in_flight(void **state) {
    fixture *f = *state;
    enum { MODELS = 3 };
    smg_model *models[MODELS];
    smg_ticket tickets[MODELS];
    static float got[MODELS][ALL];
    if (f->missing) skip();
    for (int i = 0; i < MODELS; i++) expect_ok(f->ctx, smg_model_share(i ? models[0] : f->model, f->ctx, &models[i]));
    for (int round = 0; round < 5; round++) {
        memset(got, 0, sizeof(got));
        for (int i = 0; i < MODELS; i++) {
            int64_t rows = MOST - 3 * i;
            const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {rows}, .data = f->ids},
                                     {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = f->x}};
            smg_tensor out = {.name = "y", .data = got[i], .bytes = sizeof(got[i])};
            expect_ok(f->ctx, smg_model_submit(models[i], in, 2, &out, 1, &tickets[i]));
        }
        for (int i = MODELS - 1; i >= 0; i--) expect_ok(f->ctx, smg_ticket_wait(tickets[i], -1, NULL));
        for (int i = 0; i < MODELS; i++)
            assert_memory_equal(got[i], f->want[MOST - 3 * i], sizeof(float) * WIDTH * (size_t)(MOST - 3 * i));
    }
    for (int i = MODELS - 1; i >= 0; i--) smg_model_close(models[i]);
    expect_ok(f->ctx, run(f, f->model, 7, got[0]));
    assert_memory_equal(got[0], f->want[7], sizeof(float) * WIDTH * 7);
}

typedef struct worker {
    const fixture *f;
    smg_context *ctx;
    smg_model *model;
    int number;
    char wrong[200]; /* "": nothing */
    float got[ALL];
} worker;

static bool is_wrong(worker *w, const char *what, smg_status status) {
    if (status != SMG_OK) snprintf(w->wrong, sizeof(w->wrong), "%s: %s", what, smg_context_error(w->ctx));
    return status != SMG_OK;
}

/* On a tensor of the thread's own. */
static bool run_on_device(worker *w, int64_t rows) {
    const fixture *f = w->f;
    smg_device_tensor *y = NULL;
    smg_ticket ticket = {0};
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {rows}, .data = (void *)(uintptr_t)f->ids},
                             {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = (void *)(uintptr_t)f->x}};
    if (is_wrong(w, "tensor", smg_model_create_tensor(w->model, "y", ALL, &y))) return false;
    smg_tensor out = {.name = "y", .on = y};
    bool wrong = is_wrong(w, "submit", smg_model_submit(w->model, in, 2, &out, 1, &ticket)) ||
                 is_wrong(w, "wait", smg_ticket_wait(ticket, -1, NULL)) ||
                 is_wrong(w, "download", smg_tensor_download(y, 0, w->got, rows * WIDTH));
    smg_tensor_destroy(y);
    return !wrong;
}

static void *work(void *user) {
    worker *w = user;
    for (int i = 0; i < ROUNDS && w->wrong[0] == '\0'; i++) {
        int64_t rows = 1 + (i * 7 + w->number * 5) % MOST;
        memset(w->got, 0, sizeof(w->got));
        if (i % 8 == 3) {
            if (!run_on_device(w, rows)) break;
        } else if (is_wrong(w, "run", run(w->f, w->model, rows, w->got))) {
            break;
        }
        if (memcmp(w->got, w->f->want[rows], sizeof(float) * WIDTH * (size_t)rows) != 0)
            snprintf(w->wrong, sizeof(w->wrong), "round %d, %d rows: other bits", i, (int)rows);
        if (i % 8 == 5 && run(w->f, w->model, 65, w->got) != SMG_INVALID)
            snprintf(w->wrong, sizeof(w->wrong), "65 rows are no failure");
        if (i == ROUNDS / 2) is_wrong(w, "range", smg_model_set_range(w->model, "n", 1, MOST + w->number));
    }
    return NULL;
}

static void four_threads(void **state) {
    fixture *f = *state;
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    if (f->missing) skip();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.f = f, .number = i};
        assert_int_equal(smg_context_create(NULL, &workers[i].ctx), SMG_OK);
        expect_ok(workers[i].ctx, smg_model_share(f->model, workers[i].ctx, &workers[i].model));
    }
    for (int i = 1; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    /* The model itself is one of them. */
    smg_model *shared = workers[0].model;
    smg_context *unused = workers[0].ctx;
    workers[0].ctx = f->ctx;
    workers[0].model = f->model;
    work(&workers[0]);
    for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].wrong[0] != '\0') fail_msg("thread %d: %s", i, workers[i].wrong);
    expect_ok(f->ctx, smg_model_set_range(f->model, "n", 0, 0));
    smg_model_close(shared);
    smg_context_destroy(unused);
    for (int i = 1; i < THREADS; i++) {
        smg_model_close(workers[i].model);
        smg_context_destroy(workers[i].ctx);
    }
}

/* Models, tensors and the device go in any order: the device with the last of them, all of it. */
static void closed_in_any_order(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    for (int order = 0; order < 3; order++) {
        witness seen;
        const smg_context_desc watched = witness_desc(&seen);
        smg_context *ctx = NULL;
        smg_device *device = NULL;
        smg_model *m = NULL, *shared = NULL;
        smg_device_tensor *y = NULL, *z = NULL;
        smg_graph *graph = NULL;
        static float got[ALL];
        assert_int_equal(smg_context_create(&watched, &ctx), SMG_OK);
        expect_ok(ctx, smg_graph_parse(ctx, layer, strlen(layer), "text", &graph));
        if (order < 2) expect_ok(ctx, smg_device_open(ctx, NULL, &device));
        const smg_model_desc desc = {.no_calibrate = true, .on = device}; /* NULL: a device of the model's own */
        expect_ok(ctx, smg_model_open_graph(ctx, graph, &desc, &m));
        expect_ok(ctx, smg_model_share(m, ctx, &shared));
        expect_ok(ctx, smg_model_create_tensor(shared, "y", ALL, &y));
        expect_ok(ctx, smg_model_create_tensor(m, "y", ALL, &z));
        if (order == 0) smg_device_close(device);
        smg_model_close(shared);
        const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {MOST}, .data = f->ids},
                                 {.name = "x", .rank = 2, .dims = {MOST, WIDTH}, .data = f->x}};
        smg_tensor out = {.name = "y", .on = y};
        expect_ok(ctx, smg_model_run(m, in, 2, &out, 1));
        smg_model_close(m);
        if (order == 1) smg_device_close(device);
        expect_ok(ctx, smg_tensor_download(y, 0, got, ALL));
        assert_memory_equal(got, f->want[MOST], sizeof(got));
        expect_ok(ctx, smg_tensor_upload(z, 0, got, ALL));
        smg_tensor_destroy(z);
        smg_tensor_destroy(y);
        smg_graph_destroy(graph);
        smg_context_destroy(ctx);
        assert_int_equal(seen.live_bytes, 0);
    }
}

static void what_is_refused(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    smg_ticket ticket;
    smg_context *other = NULL;
    float y[ALL];
    if (f->missing) skip();
    assert_int_equal(smg_model_share(NULL, f->ctx, &m), SMG_INVALID);
    assert_int_equal(smg_model_share(f->model, NULL, &m), SMG_INVALID);
    assert_int_equal(smg_model_share(f->model, f->ctx, NULL), SMG_INVALID);
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {4}, .data = f->ids},
                             {.name = "x", .rank = 2, .dims = {4, WIDTH}, .data = f->x}};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(y)};
    expect_ok(f->ctx, smg_model_submit(f->model, in, 2, &out, 1, &ticket));
    assert_int_equal(smg_context_create(NULL, &other), SMG_OK);
    assert_int_equal(smg_model_share(f->model, other, &m), SMG_INVALID);
    assert_string_equal(smg_context_error(other), "a run of the model that is to be shared is in flight");
    assert_null(m);
    expect_ok(f->ctx, smg_ticket_wait(ticket, -1, NULL));
    smg_context_destroy(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_in_flight),
        cmocka_unit_test(four_threads),
        cmocka_unit_test(closed_in_any_order),
        cmocka_unit_test(what_is_refused),
    };
    return device_result(cmocka_run_group_tests_name("shared", tests, setup, teardown));
}
