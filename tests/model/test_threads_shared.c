/* Four threads on one model and its shares, on an application's device whose queue they take in turns: whole runs, runs
 * that are cut by a budget or by the watchdog within a range, runs that are taken back, runs in command buffers, runs whose
 * steps are timed and that are repeated, runs on arrays made by the signature of the bundle's file. Then the model goes on
 * with the device anew while other threads run another model on it. All give the bits of the model by itself. The thread
 * sanitizer watches this, too (preset tsan, scripts/test.sh). */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "compile/compile.h"
#include "smg/smg.h"

#if SMG_VULKAN
#include "support/app.h"
#include "support/device.h"
#include "support/output.h"

static const char text[] =
    "graph small\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\nw = constant f32[96, 96] random seed=2 scale=0.1\n"
    "rows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\np = contract(sum, w) \"ni,io->no\"\ny = relu(p)\n"
    "q = contract(y, w) \"ni,io->no\"\nz = add(q, x)\noutput z = z\n";

enum { MOST = 20, WIDTH = 96, ALL = MOST * WIDTH, THREADS = 4, WAYS = 6, ROUNDS = 8, RECOVERIES = 3 };

typedef struct fixture {
    smg_context *ctx;
    app app;
    smg_vulkan_wishes *wishes;
    pthread_mutex_t queue;
    smg_device *device;
    smg_model *model, *other; /* of one bundle */
    bool missing;
    char path[512];
    int64_t ids[MOST];
    float x[ALL], want[MOST + 1][ALL]; /* by rows */
} fixture;

static void lock(void *user) {
    fixture *f = user;
    pthread_mutex_lock(&f->queue);
}

static void unlock(void *user) {
    fixture *f = user;
    pthread_mutex_unlock(&f->queue);
}

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* ---- one run, in each way ---------------------------------------------------------------------------- */

typedef struct worker {
    fixture *f;
    smg_context *ctx;
    smg_model *model;
    smg_device *device; /* NULL: the model was shared from another */
    int number;
    VkCommandPool pool;
    char wrong[200]; /* "": nothing */
    float got[ALL];
} worker;

typedef struct arrays {
    smg_tensor in[2], out;
} arrays;

static arrays arrays_of(worker *w, int64_t rows) {
    const fixture *f = w->f;
    memset(w->got, 0, sizeof(w->got));
    return (arrays){.in = {{.name = "ids", .rank = 1, .dims = {rows}, .data = (void *)(uintptr_t)f->ids},
                           {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = (void *)(uintptr_t)f->x}},
                    .out = {.name = "z", .data = w->got, .bytes = sizeof(w->got)}};
}

static smg_status run_whole(worker *w, int64_t rows) {
    arrays a = arrays_of(w, rows);
    return smg_model_run(w->model, a.in, 2, &a.out, 1);
}

static const double tiny = 1e-9; /* seconds: as many pieces as there can be */

static smg_status run_cut(worker *w, int64_t rows) {
    arrays a = arrays_of(w, rows);
    smg_ticket ticket;
    SMG_TRY(smg_model_set_budget(w->model, tiny, tiny));
    SMG_TRY(smg_model_submit(w->model, a.in, 2, &a.out, 1, &ticket));
    for (bool done = false; !done;) SMG_TRY(smg_ticket_wait(ticket, 0, &done));
    return smg_model_set_budget(w->model, 0, 0);
}

/* And once more, to its end. */
static smg_status run_taken_back(worker *w, int64_t rows) {
    arrays a = arrays_of(w, rows);
    smg_ticket ticket;
    bool cancelled = false;
    SMG_TRY(smg_model_set_budget(w->model, 0, tiny));
    SMG_TRY(smg_model_submit(w->model, a.in, 2, &a.out, 1, &ticket));
    SMG_TRY(smg_ticket_cancel(ticket, &cancelled));
    smg_status status = smg_ticket_wait(ticket, -1, NULL);
    if (!cancelled || status != SMG_CANCELLED) snprintf(w->wrong, sizeof(w->wrong), "nothing was taken back");
    SMG_TRY(smg_model_set_budget(w->model, 0, 0));
    return run_whole(w, rows);
}

static smg_status execute(worker *w, VkCommandBuffer commands) {
    const app *a = &w->f->app;
    const VkFenceCreateInfo made = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    VkFence fence = VK_NULL_HANDLE;
    VkResult result = a->CreateFence(a->device, &made, NULL, &fence);
    lock(w->f);
    if (result == VK_SUCCESS) result = a->QueueSubmit(a->queue, 1, &info, fence);
    unlock(w->f);
    if (result == VK_SUCCESS) result = a->WaitForFences(a->device, 1, &fence, VK_TRUE, UINT64_MAX);
    a->DestroyFence(a->device, fence, NULL);
    return result == VK_SUCCESS ? SMG_OK : smg_fail(w->ctx, SMG_DEVICE, "the application's own submission");
}

static smg_status run_recorded(worker *w, int64_t rows) {
    const app *own = &w->f->app;
    arrays a = arrays_of(w, rows);
    smg_ticket ticket;
    VkCommandBuffer commands = NULL;
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = w->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    if (own->AllocateCommandBuffers(own->device, &allocate, &commands) != VK_SUCCESS ||
        own->BeginCommandBuffer(commands, &begin) != VK_SUCCESS)
        return smg_fail(w->ctx, SMG_DEVICE, "the application's own command buffer");
    SMG_TRY(smg_vk_model_record(w->model, a.in, 2, &a.out, 1, commands, &ticket));
    own->EndCommandBuffer(commands);
    SMG_TRY(execute(w, commands));
    SMG_TRY(execute(w, commands));
    SMG_TRY(smg_vk_ticket_over(ticket, true));
    own->FreeCommandBuffers(own->device, w->pool, 1, &commands);
    return SMG_OK;
}

/* Sizes of a range, where kernels seem to outlast a watchdog and where they do not. */
static smg_status run_in_range(worker *w, int64_t rows) {
    smg_program_set_watchdog(smg_model_program(w->model), rows % 2 ? tiny : 0);
    SMG_TRY(smg_model_set_range(w->model, "n", 1, MOST));
    SMG_TRY(run_whole(w, MOST + 1 - rows));
    SMG_TRY(run_whole(w, rows));
    smg_program_set_watchdog(smg_model_program(w->model), 0);
    return smg_model_set_range(w->model, "n", 0, 0);
}

static smg_status run_timed(worker *w, int64_t rows) {
    smg_memory_info memory;
    smg_step_info step;
    const smg_dim dims[] = {{"n", rows}};
    SMG_TRY(smg_model_prepare(w->model, dims, 1));
    SMG_TRY(smg_model_set_profile(w->model, true));
    SMG_TRY(run_whole(w, rows));
    for (int i = 0; i < smg_model_step_count(w->model); i++)
        if (!smg_model_step(w->model, i, &step) || step.seconds <= 0)
            snprintf(w->wrong, sizeof(w->wrong), "step %d has no time", i);
    SMG_TRY(smg_model_repeat(w->model));
    SMG_TRY(smg_model_get_memory(w->model, &memory));
    return smg_model_set_profile(w->model, false);
}

static smg_status run_arrays(worker *w, smg_arrays *made, int64_t rows) {
    const fixture *f = w->f;
    arrays_of(w, rows);
    const smg_tensor ids = {.name = "ids", .rank = 1, .dims = {rows}, .data = (void *)(uintptr_t)f->ids};
    const smg_tensor x = {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = (void *)(uintptr_t)f->x};
    int in = 0, out = 0;
    SMG_TRY(smg_arrays_give(made, &ids));
    SMG_TRY(smg_arrays_give(made, &x));
    SMG_TRY(smg_arrays_settle(made, NULL));
    const smg_tensor *inputs = smg_arrays_inputs(made, &in);
    smg_tensor *outputs = smg_arrays_outputs(made, &out);
    SMG_TRY(smg_model_run(w->model, inputs, in, outputs, out));
    memcpy(w->got, outputs[0].data, sizeof(float) * WIDTH * (size_t)rows);
    return SMG_OK;
}

static smg_status run_by_file(worker *w, int64_t rows) {
    smg_bundle_file *file = NULL;
    smg_arrays *made = NULL;
    SMG_TRY(smg_bundle_file_open(w->ctx, w->f->path, &file));
    smg_status status = smg_bundle_file_check(file);
    if (status == SMG_OK) status = smg_arrays_create(w->ctx, smg_bundle_file_facts(file)->signature, &made);
    if (status == SMG_OK) status = run_arrays(w, made, rows);
    smg_arrays_destroy(made);
    smg_bundle_file_close(file);
    return status;
}

/* ---- threads ----------------------------------------------------------------------------------------- */

static void *work(void *user) {
    static smg_status (*const ways[])(worker *w, int64_t rows) = {run_cut,      run_taken_back, run_recorded,
                                                                  run_in_range, run_timed,      run_by_file};
    worker *w = user;
    for (int i = 0; i < ROUNDS && w->wrong[0] == '\0'; i++) {
        int64_t rows = 1 + (i * 7 + w->number * 5) % MOST, way = (i + w->number) % WAYS;
        smg_status status = ways[way](w, rows);
        if (status != SMG_OK)
            snprintf(w->wrong, sizeof(w->wrong), "round %d, way %d: %s", i, (int)way, smg_context_error(w->ctx));
        else if (memcmp(w->got, w->f->want[rows], sizeof(float) * WIDTH * (size_t)rows) != 0)
            snprintf(w->wrong, sizeof(w->wrong), "round %d, way %d, %d rows: other bits", i, (int)way, (int)rows);
    }
    return NULL;
}

static void make_pool(worker *w) {
    const app *a = &w->f->app;
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = a->family};
    assert_int_equal(a->CreateCommandPool(a->device, &info, NULL, &w->pool), VK_SUCCESS);
}

static void drop_pool(worker *w) {
    w->f->app.DestroyCommandPool(w->f->app.device, w->pool, NULL);
}

/* A model of this context's own, on the device that it shares. */
static void open_own(worker *w) {
    expect_ok(w->f, smg_device_share(w->f->device, w->ctx, &w->device));
    const smg_bundle_desc desc = {.on = w->device};
    if (smg_model_open_bundle(w->ctx, w->f->path, &desc, &w->model) != SMG_OK)
        fail_msg("%s", smg_context_error(w->ctx));
}

/* Threads 1 .. THREADS-1 on shares of the model (NULL: on models of their own), each with a context of its own, while
 * `meanwhile` is done on this one. */
static void beside_others(fixture *f, smg_model *model, void (*meanwhile)(worker *w)) {
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        *w = (worker){.f = f, .number = i, .ctx = f->ctx, .model = f->model};
        make_pool(w);
        if (i == 0) continue;
        assert_int_equal(smg_context_create(NULL, &w->ctx), SMG_OK);
        if (model != NULL)
            expect_ok(f, smg_model_share(model, w->ctx, &w->model));
        else
            open_own(w);
    }
    for (int i = 1; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    meanwhile(&workers[0]);
    for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].wrong[0] != '\0') fail_msg("thread %d: %s", i, workers[i].wrong);
        drop_pool(&workers[i]);
        if (i == 0) continue;
        smg_model_close(workers[i].model);
        smg_device_close(workers[i].device);
        smg_context_destroy(workers[i].ctx);
    }
}

static void work_here(worker *w) {
    work(w);
}

static void recover_here(worker *w) {
    for (int i = 0; i < RECOVERIES && w->wrong[0] == '\0'; i++) {
        if (smg_model_recover(w->model, w->f->device) != SMG_OK)
            snprintf(w->wrong, sizeof(w->wrong), "recovery %d: %s", i, smg_context_error(w->ctx));
        else
            work(w);
    }
}

static void on_one_model(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    beside_others(f, f->model, work_here);
}

static void on_one_device(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    beside_others(f, NULL, work_here);
}

static void while_it_is_recovered(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    beside_others(f, f->other, recover_here);
    beside_others(f, NULL, recover_here);
    beside_others(f, f->model, work_here);
}

/* ---- fixture ----------------------------------------------------------------------------------------- */

/* For what every device has. */
static smg_status compile_here(fixture *f) {
    smg_ahead_target target = {.name = "careful", .match = ""};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    SMG_TRY(smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph));
    smg_status status = smg_target_named(f->ctx, "careful", &target.target);
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, &source, &target, 1, &options, f->path);
    smg_source_close(&source);
    return status;
}

static void adopt(fixture *f) {
    smg_vulkan_desc desc = app_desc(&f->app);
    expect_ok(f, smg_vk_wish(f->ctx, &desc, NULL, &f->wishes));
    app_make_device(&f->app, f->wishes->enabled, f->wishes->extensions, f->wishes->extension_count);
    desc = app_desc(&f->app);
    desc.enabled = f->wishes->enabled;
    desc.extensions = f->wishes->extensions;
    desc.extension_count = f->wishes->extension_count;
    desc.lock_queue = lock;
    desc.unlock_queue = unlock;
    desc.lock_user = f;
    expect_ok(f, smg_vk_adopt(f->ctx, &desc, &f->device));
}

static int setup(void **state) {
    static fixture f;
    static worker alone;
    char room[512];
    *state = &f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(pthread_mutex_init(&f.queue, NULL), 0);
    for (int i = 0; i < ALL; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < MOST; i++) f.ids[i] = i % 6;
    smg_device *any = NULL;
    f.missing = device_missing(f.ctx, smg_device_open(f.ctx, NULL, &any)) || !app_begin(&f.app);
    smg_device_close(any);
    if (f.missing) return 0;
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "threads-shared.smgb"));
    expect_ok(&f, compile_here(&f));
    adopt(&f);
    const smg_bundle_desc desc = {.on = f.device, .recoverable = true};
    expect_ok(&f, smg_model_open_bundle(f.ctx, f.path, &desc, &f.model));
    expect_ok(&f, smg_model_open_bundle(f.ctx, f.path, &desc, &f.other));
    alone = (worker){.f = &f, .ctx = f.ctx, .model = f.other};
    for (int64_t rows = 1; rows <= MOST; rows++) {
        expect_ok(&f, run_whole(&alone, rows));
        memcpy(f.want[rows], alone.got, sizeof(alone.got));
    }
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->model);
    smg_model_close(f->other);
    smg_device_close(f->device);
    smg_vk_wishes_free(f->wishes);
    app_end(&f->app);
    pthread_mutex_destroy(&f->queue);
    smg_context_destroy(f->ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_one_model), cmocka_unit_test(on_one_device),
                                       cmocka_unit_test(while_it_is_recovered)};
    return device_result(cmocka_run_group_tests_name("threads, shared", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
