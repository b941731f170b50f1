/* Every allocation of a model's use on an application's device fails once: tensors and imported buffers, conversions,
 * ranges, budgets, runs that are taken back, states, runs in command buffers, shares, recovery. A status, nothing leaks,
 * nothing is left on the device, and what could go on gives the right numbers. CI takes a share of the allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/all_cases.h"
#include "support/device.h"
#include "support/fault.h"
#include "support/output.h"

#if SMG_VULKAN
#include "support/app.h"

static const char text[] = "graph small\ndim n max 16\nids = input i64[n]\ntable = constant f32[6, 8] random seed=1\n"
                           "h = input f32[n, 8]\nrows = gather(table, ids) : f32[n, 8]\nmore = add(h, rows)\n"
                           "y = relu(more)\noutput y = y\noutput h_next = more\nstate h = h_next\n";

enum { ROWS = 5, WIDTH = 8, ALL = ROWS * WIDTH, PART = (ALL * 4 + 255) / 256 * 256 };

typedef struct fixture {
    smg_context *ctx; /* of the wishes */
    app app;
    smg_vulkan_wishes *wishes;
    app_buffer buffer;
    VkCommandPool pool;
    char path[512];
    float want[ALL];
    /* Of one round: */
    smg_device *device;
    smg_model *model;
} fixture;

static int32_t ids[ROWS] = {1, 5, 0, 2, 2};

static smg_status run(smg_model *m, smg_device_tensor *on, float *y) {
    const smg_tensor in = {"ids", "i32", 1, {ROWS}, ids, 0, NULL};
    smg_tensor out = {.name = "y", .data = y, .bytes = y != NULL ? ALL * sizeof(*y) : 0, .on = on};
    return smg_model_run(m, &in, 1, &out, 1);
}

static smg_status run_from_zeros(smg_model *m, float *y) {
    SMG_TRY(smg_model_reset_state(m, NULL));
    return run(m, NULL, y);
}

/* ---- parts of a model's use --------------------------------------------------------------------------- */

static smg_status use_tensors(fixture *f) {
    const smg_device_tensor_desc desc = {.type = "f32", .elements = ALL}, numbers = {.type = "i64", .elements = ROWS};
    const smg_vulkan_buffer part = {.buffer = f->buffer.handle, .offset = PART, .bytes = PART};
    smg_device_tensor *imported = NULL, *made = NULL, *indices = NULL;
    int64_t wide[ROWS];
    float y[ALL];
    for (int i = 0; i < ROWS; i++) wide[i] = ids[i];
    smg_status status = smg_vk_tensor_import(f->device, &desc, &part, &imported);
    if (status == SMG_OK) status = smg_model_create_tensor(f->model, "y", ALL, &made);
    if (status == SMG_OK) status = smg_tensor_create(f->device, &numbers, &indices);
    if (status == SMG_OK) status = smg_tensor_upload(indices, 0, wide, ROWS);
    if (status == SMG_OK) status = smg_tensor_download(indices, 0, wide, ROWS);
    if (status == SMG_OK) status = run(f->model, imported, NULL);
    if (status == SMG_OK) status = run(f->model, made, NULL);
    if (status == SMG_OK) status = smg_tensor_download(made, 0, y, ALL);
    smg_tensor_destroy(imported);
    smg_tensor_destroy(made);
    smg_tensor_destroy(indices);
    return status;
}

static smg_status use_budget(const fixture *f) {
    static const double tiny = 1e-9;
    const smg_tensor in = {"ids", "i32", 1, {ROWS}, ids, 0, NULL};
    smg_tensor out = {.name = "y"};
    smg_ticket ticket;
    bool cancelled = false;
    SMG_TRY(smg_model_set_range(f->model, "n", 1, 2 * ROWS));
    SMG_TRY(run(f->model, NULL, NULL));
    SMG_TRY(smg_model_set_budget(f->model, tiny, tiny));
    SMG_TRY(run(f->model, NULL, NULL));
    SMG_TRY(smg_model_submit(f->model, &in, 1, &out, 1, &ticket));
    SMG_TRY(smg_ticket_cancel(ticket, &cancelled));
    smg_status status = smg_ticket_wait(ticket, -1, NULL);
    if (status != SMG_OK && status != SMG_CANCELLED) return status;
    SMG_TRY(smg_model_set_budget(f->model, 0, 0));
    return smg_model_set_range(f->model, "n", 0, 0);
}

static smg_status use_commands(const fixture *f) {
    const app *a = &f->app;
    const smg_tensor in = {"ids", "i32", 1, {ROWS}, ids, 0, NULL};
    smg_tensor out = {.name = "y"};
    smg_ticket ticket;
    VkCommandBuffer commands = NULL;
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = f->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    assert_int_equal(a->AllocateCommandBuffers(a->device, &allocate, &commands), VK_SUCCESS);
    assert_int_equal(a->BeginCommandBuffer(commands, &begin), VK_SUCCESS);
    smg_status status = smg_vk_model_record(f->model, &in, 1, &out, 1, commands, &ticket);
    if (status == SMG_OK) status = smg_vk_ticket_over(ticket, false); /* it never runs */
    a->FreeCommandBuffers(a->device, f->pool, 1, &commands);
    return status;
}

static smg_status use_inputs(const fixture *f) {
    const float zeros[ALL] = {0};
    const smg_tensor state = {"h", "f32", 2, {ROWS, WIDTH}, (void *)(uintptr_t)zeros, 0, NULL};
    const smg_tensor in = {"ids", "i32", 1, {ROWS}, ids, 0, NULL};
    const int64_t lengths[ROWS] = {1, 5, 0, 2, 2};
    smg_tensor out = {.name = "h_next"};
    SMG_TRY(smg_model_set_input(f->model, &in));
    SMG_TRY(smg_model_run(f->model, &state, 1, &out, 1));
    SMG_TRY(smg_model_set_lengths(f->model, "ids", lengths, ROWS));
    SMG_TRY(smg_model_run(f->model, NULL, 0, &out, 1));
    return smg_model_set_lengths(f->model, "ids", NULL, 0);
}

static smg_status use_share(const fixture *f, smg_context *ctx) {
    smg_model *shared = NULL;
    SMG_TRY(smg_model_share(f->model, ctx, &shared));
    smg_status status = run(shared, NULL, NULL);
    smg_model_close(shared);
    return status;
}

static smg_status use(fixture *f, smg_context *ctx) {
    float y[ALL] = {0};
    SMG_TRY(use_tensors(f));
    SMG_TRY(use_budget(f));
    SMG_TRY(use_commands(f));
    SMG_TRY(use_inputs(f));
    SMG_TRY(use_share(f, ctx));
    SMG_TRY(smg_model_recover(f->model, f->device));
    SMG_TRY(run_from_zeros(f->model, y));
    assert_memory_equal(y, f->want, sizeof(y));
    return SMG_OK;
}

/* ---- one round ---------------------------------------------------------------------------------------- */

static smg_status open(fixture *f, smg_context *ctx) {
    smg_vulkan_desc desc = app_desc(&f->app);
    desc.enabled = f->wishes->enabled;
    desc.extensions = f->wishes->extensions;
    desc.extension_count = f->wishes->extension_count;
    SMG_TRY(smg_vk_adopt(ctx, &desc, &f->device));
    const smg_bundle_desc on = {.on = f->device, .recoverable = true};
    return smg_model_open_bundle(ctx, f->path, &on, &f->model);
}

static void close_all(fixture *f) {
    smg_model_close(f->model);
    smg_device_close(f->device);
    f->model = NULL;
    f->device = NULL;
}

static void prepare(smg_context *ctx, void *user) {
    if (open(user, ctx) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
}

/* A model that has failed is as good as before; one that could not be recovered is once it can. */
static smg_status body(smg_context *ctx, void *user) {
    fixture *f = user;
    char said[400];
    float y[ALL] = {0};
    smg_status status = use(f, ctx);
    snprintf(said, sizeof(said), "%s", smg_context_error(ctx));
    if (status == SMG_MEMORY) { /* once more, with what there is now */
        smg_status again = run_from_zeros(f->model, y);
        if (again == SMG_DEVICE) again = smg_model_recover(f->model, f->device);
        if (again == SMG_OK) again = smg_model_set_range(f->model, "n", 0, 0);
        if (again == SMG_OK) again = smg_model_set_budget(f->model, 0, 0);
        if (again == SMG_OK) again = smg_model_set_lengths(f->model, "ids", NULL, 0);
        if (again == SMG_OK) again = run_from_zeros(f->model, y);
        if (again != SMG_OK) fail_msg("after '%s': %s", said, smg_context_error(ctx));
        assert_memory_equal(y, f->want, sizeof(y));
    }
    close_all(f);
    if (status != SMG_OK) smg_fail(ctx, status, "%s", said);
    return status;
}

static void using_a_model(void **state) {
    fixture *f = *state;
    if (f->path[0] == '\0') skip();
    const fault_sweep sweep = {.prepare = prepare,
                               .body = body,
                               .user = f,
                               .stride = all_cases() ? 1 : 3,
                               .cache_dir = getenv("SMG_CACHE_DIR"),
                               .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

/* ---- fixture ------------------------------------------------------------------------------------------ */

static smg_status compile_here(smg_context *ctx, const char *path) {
    smg_ahead_target target = {.name = "careful", .match = ""};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    smg_source source = {.ctx = ctx, .owns_graph = true};
    SMG_TRY(smg_graph_parse(ctx, text, strlen(text), "text", &source.graph));
    smg_status status = smg_target_named(ctx, "careful", &target.target);
    if (status == SMG_OK) status = smg_compile_ahead(ctx, &source, &target, 1, &options, path);
    smg_source_close(&source);
    return status;
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    smg_context *ctx = NULL;
    smg_device *device = NULL;
    *state = &f;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    f.ctx = ctx;
    if (device_missing(ctx, smg_device_open(ctx, NULL, &device)) || !app_begin(&f.app)) return 0;
    const smg_vulkan_desc desc = app_desc(&f.app);
    assert_int_equal(smg_vk_wish(ctx, &desc, NULL, &f.wishes), SMG_OK);
    app_make_device(&f.app, f.wishes->enabled, f.wishes->extensions, f.wishes->extension_count);
    app_make_buffer(&f.app, smg_vk_tensor_usage(device), 2 * PART, &f.buffer);
    smg_device_close(device);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = f.app.family};
    assert_int_equal(f.app.CreateCommandPool(f.app.device, &pool, NULL, &f.pool), VK_SUCCESS);
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "run-memory.smgb"));
    if (compile_here(ctx, f.path) != SMG_OK || open(&f, ctx) != SMG_OK || run(f.model, NULL, f.want) != SMG_OK)
        fail_msg("%s", smg_context_error(ctx));
    close_all(&f);
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    if (f->pool != VK_NULL_HANDLE) {
        f->app.DestroyCommandPool(f->app.device, f->pool, NULL);
        app_drop_buffer(&f->app, &f->buffer);
    }
    smg_vk_wishes_free(f->wishes);
    app_end(&f->app);
    smg_context_destroy(f->ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(using_a_model)};
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("run memory", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
