/* Every call of the driver that may fail does so once, while a bundle is opened, run on arrays and tensors, shared,
 * submitted, cut by budgets, taken back, run in a range and in a command buffer: a status with its sentence, nothing is
 * left on the device, and the next model on the same device is right. Then the device is lost at every submission and at
 * every wait, and models go on with another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/all_cases.h"
#include "support/device.h"
#include "support/output.h"

#if SMG_VULKAN
#include "runtime/runtime_private.h"
#include "smg/vulkan.h"
#include "vulkan/vulkan_private.h"

static const char text[] =
    "graph small\ndim n max 64\nids = input i64[n]\nx = input f32[n, 32]\n"
    "table = constant f32[6, 32] random seed=1\nw = constant f32[32, 32] random seed=2 scale=0.1\n"
    "rows = gather(table, ids) : f32[n, 32]\nsum = add(rows, x)\n"
    "p = contract(sum, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n"
    "h = input f32[n, 32]\nmore = add(h, x)\noutput h_next = more\nstate h = h_next\n";

enum { ROWS = 20, WIDTH = 32, ALL = ROWS * WIDTH };

/* ---- a driver that fails ----------------------------------------------------------------------------- */

static smg_vk_device_table real;
static int fail_at;
static atomic_int calls, live; /* live: objects made and not destroyed */
static VkResult failure;
static enum kind { ANY, SUBMISSION, WAIT } only; /* what fails */

static bool fails_as(enum kind kind) {
    return (only == ANY || only == kind) && atomic_fetch_add(&calls, 1) + 1 == fail_at;
}

static bool fails(void) {
    return fails_as(ANY);
}

/* X(name, type of its description, type of the object): what is made by itself. */
#define MADE(X)                                                                                                        \
    X(Buffer, VkBufferCreateInfo, VkBuffer)                                                                            \
    X(Fence, VkFenceCreateInfo, VkFence)                                                                               \
    X(QueryPool, VkQueryPoolCreateInfo, VkQueryPool)                                                                   \
    X(CommandPool, VkCommandPoolCreateInfo, VkCommandPool)                                                             \
    X(DescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)                                                    \
    X(DescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)                                     \
    X(PipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)                                                    \
    X(ShaderModule, VkShaderModuleCreateInfo, VkShaderModule)

#define WRAP(name, info_type, type)                                                                                    \
    static VKAPI_ATTR VkResult VKAPI_CALL create_##name(VkDevice device, const info_type *info,                        \
                                                        const VkAllocationCallbacks *hooks, type *out) {               \
        if (fails()) return failure;                                                                                   \
        live++;                                                                                                        \
        return real.Create##name(device, info, hooks, out);                                                            \
    }                                                                                                                  \
    static VKAPI_ATTR void VKAPI_CALL destroy_##name(VkDevice device, type object,                                     \
                                                     const VkAllocationCallbacks *hooks) {                             \
        live -= object != VK_NULL_HANDLE;                                                                              \
        real.Destroy##name(device, object, hooks);                                                                     \
    }
MADE(WRAP)
#undef WRAP

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *hooks, VkDeviceMemory *out) {
    if (fails()) return failure;
    live++;
    return real.AllocateMemory(device, info, hooks, out);
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *hooks) {
    live -= memory != VK_NULL_HANDLE;
    real.FreeMemory(device, memory, hooks);
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_memory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                                  VkDeviceSize offset) {
    return fails() ? failure : real.BindBufferMemory(device, buffer, memory, offset);
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                                 VkDeviceSize size, VkMemoryMapFlags flags, void **out) {
    return fails() ? failure : real.MapMemory(device, memory, offset, size, flags, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo *info,
                                                        VkCommandBuffer *out) {
    return fails() ? failure : real.AllocateCommandBuffers(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice device, const VkDescriptorSetAllocateInfo *info,
                                                    VkDescriptorSet *out) {
    return fails() ? failure : real.AllocateDescriptorSets(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL begin_commands(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
    return fails() ? failure : real.BeginCommandBuffer(commands, info);
}

/* Recording is over in any case. */
static VKAPI_ATTR VkResult VKAPI_CALL end_commands(VkCommandBuffer commands) {
    VkResult result = real.EndCommandBuffer(commands);
    return fails() ? failure : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_fences(VkDevice device, uint32_t count, const VkFence *fences) {
    return fails() ? failure : real.ResetFences(device, count, fences);
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
    return fails_as(SUBMISSION) ? failure : real.QueueSubmit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *hooks, VkPipeline *out) {
    for (uint32_t i = 0; i < count; i++) out[i] = VK_NULL_HANDLE;
    if (fails()) return failure;
    atomic_fetch_add(&live, (int)count);
    return real.CreateComputePipelines(device, cache, count, infos, hooks, out);
}

static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
                                                   const VkAllocationCallbacks *hooks) {
    live -= pipeline != VK_NULL_HANDLE;
    real.DestroyPipeline(device, pipeline, hooks);
}

/* What it waited for is over in any case. */
static VKAPI_ATTR VkResult VKAPI_CALL wait_for_fences(VkDevice device, uint32_t count, const VkFence *fences,
                                                      VkBool32 all, uint64_t timeout) {
    VkResult result = real.WaitForFences(device, count, fences, all, timeout);
    return result == VK_SUCCESS && fails_as(WAIT) ? failure : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fence_status(VkDevice device, VkFence fence) {
    VkResult result = real.GetFenceStatus(device, fence);
    return result == VK_SUCCESS && fails_as(WAIT) ? failure : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL query_results(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count,
                                                    size_t size, void *data, VkDeviceSize stride,
                                                    VkQueryResultFlags flags) {
    return fails() ? failure : real.GetQueryPoolResults(device, pool, first, count, size, data, stride, flags);
}

static void put_between(smg_vk_device *dev) {
    real = dev->fn;
#define REPLACE(name, info_type, type)                                                                                 \
    dev->fn.Create##name = create_##name;                                                                              \
    dev->fn.Destroy##name = destroy_##name;
    MADE(REPLACE)
#undef REPLACE
    dev->fn.AllocateMemory = allocate_memory;
    dev->fn.FreeMemory = free_memory;
    dev->fn.BindBufferMemory = bind_memory;
    dev->fn.MapMemory = map_memory;
    dev->fn.AllocateCommandBuffers = allocate_commands;
    dev->fn.AllocateDescriptorSets = allocate_sets;
    dev->fn.BeginCommandBuffer = begin_commands;
    dev->fn.EndCommandBuffer = end_commands;
    dev->fn.ResetFences = reset_fences;
    dev->fn.QueueSubmit = submit;
    dev->fn.CreateComputePipelines = create_pipelines;
    dev->fn.DestroyPipeline = destroy_pipeline;
    dev->fn.WaitForFences = wait_for_fences;
    dev->fn.GetFenceStatus = fence_status;
    dev->fn.GetQueryPoolResults = query_results;
}

/* ---- what is done with it ---------------------------------------------------------------------------- */

typedef struct fixture {
    smg_context *ctx;
    char path[512];
    bool missing;
    int64_t ids[ROWS];
    float x[ALL], want[ALL], got[ALL];
} fixture;

static smg_status run(const fixture *f, smg_model *m, float *y, smg_device_tensor *on) {
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = (void *)(uintptr_t)f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = (void *)(uintptr_t)f->x}};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(f->got), .on = on};
    smg_ticket ticket;
    if (on == NULL) return smg_model_run(m, in, 2, &out, 1);
    SMG_TRY(smg_model_submit(m, in, 2, &out, 1, &ticket));
    return smg_ticket_wait(ticket, -1, NULL);
}

static smg_status use_model(fixture *f, smg_model *m) {
    smg_device_tensor *y = NULL;
    smg_model *shared = NULL;
    SMG_TRY(run(f, m, f->got, NULL));
    SMG_TRY(smg_model_create_tensor(m, "y", ALL, &y));
    smg_status status = run(f, m, NULL, y);
    if (status == SMG_OK) status = smg_tensor_download(y, 0, f->got, ALL);
    if (status == SMG_OK) status = smg_model_share(m, f->ctx, &shared);
    if (status == SMG_OK) status = run(f, shared, f->got, NULL);
    smg_model_close(shared);
    smg_tensor_destroy(y);
    return status;
}

/* Cut by a budget, part by part; taken back; and once more. */
static smg_status use_budget(const fixture *f, smg_model *m) {
    static const double tiny = 1e-9;
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = (void *)(uintptr_t)f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = (void *)(uintptr_t)f->x}};
    smg_tensor out = {.name = "y"};
    smg_ticket ticket;
    SMG_TRY(smg_model_set_budget(m, tiny, tiny));
    SMG_TRY(run(f, m, NULL, NULL));
    for (int take_back = 0; take_back < 2; take_back++) {
        bool done = false, cancelled = false;
        out.data = NULL;
        SMG_TRY(smg_model_submit(m, in, 2, &out, 1, &ticket));
        if (take_back) SMG_TRY(smg_ticket_cancel(ticket, &cancelled));
        smg_status status = SMG_OK;
        while (!done && status == SMG_OK) status = smg_ticket_wait(ticket, 0, &done);
        if (status != (take_back ? SMG_CANCELLED : SMG_OK)) return status;
    }
    return smg_model_set_budget(m, 0, 0);
}

/* In a command buffer of the application's. */
static smg_status use_commands(const fixture *f, smg_model *m, smg_vk_device *dev, float *y) {
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = (void *)(uintptr_t)f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = (void *)(uintptr_t)f->x}};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(f->got)};
    VkCommandBuffer commands = NULL;
    smg_ticket ticket;
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = dev->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    assert_int_equal(real.AllocateCommandBuffers(dev->handle, &allocate, &commands), VK_SUCCESS);
    assert_int_equal(real.BeginCommandBuffer(commands, &begin), VK_SUCCESS);
    smg_status status = smg_vk_model_record(m, in, 2, &out, 1, commands, &ticket);
    if (status == SMG_OK) {
        assert_int_equal(real.EndCommandBuffer(commands), VK_SUCCESS);
        assert_int_equal(real.QueueSubmit(dev->queue, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
        real.QueueWaitIdle(dev->queue);
        status = smg_vk_ticket_over(ticket, true);
    }
    real.FreeCommandBuffers(dev->handle, dev->pool, 1, &commands);
    return status;
}

static smg_status use_more(fixture *f, smg_model *m, smg_vk_device *dev) {
    SMG_TRY(use_budget(f, m));
    SMG_TRY(smg_model_set_range(m, "n", 1, 2 * ROWS));
    SMG_TRY(run(f, m, NULL, NULL));
    SMG_TRY(use_commands(f, m, dev, f->got));
    SMG_TRY(use_budget(f, m));
    SMG_TRY(smg_model_set_range(m, "n", 0, 0));
    SMG_TRY(smg_model_reset_state(m, NULL));
    return run(f, m, f->got, NULL);
}

static bool more; /* is done */

/* From one call that fails to the next: of what takes minutes CI takes a share. */
static int stride(int share) {
    return more && !all_cases() ? share : 1;
}

static smg_status open_and_use(fixture *f, smg_device *device) {
    const smg_bundle_desc desc = {.on = device};
    smg_model *m = NULL;
    memset(f->got, 0, sizeof(f->got));
    SMG_TRY(smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    smg_status status = more ? use_more(f, m, device) : use_model(f, m);
    smg_model_close(m);
    return status;
}

static smg_status compile_here(fixture *f) {
    smg_vk_device *device = NULL;
    smg_ahead_target target = {.name = "here"};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    SMG_TRY(smg_vk_open(f->ctx, NULL, 0, &device));
    smg_status status = smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph);
    target.target = *smg_vk_target(device);
    target.match = target.target.name;
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, &source, &target, 1, &options, f->path);
    smg_source_close(&source);
    if (status == SMG_OK) status = open_and_use(f, device);
    memcpy(f->want, f->got, sizeof(f->want));
    smg_vk_close(device);
    return status;
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "device-calls.smgb"));
    for (int i = 0; i < ALL; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < ROWS; i++) f.ids[i] = i % 6;
    smg_status status = compile_here(&f);
    f.missing = device_missing(f.ctx, status);
    if (!f.missing && status != SMG_OK) fail_msg("%s", smg_context_error(f.ctx));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_vk_device *open_device(fixture *f) {
    smg_vk_device *device = NULL;
    if (smg_vk_open(f->ctx, NULL, SMG_VK_UNSEEN_MEMORY | SMG_VK_NO_PIPELINE_CACHE, &device) != SMG_OK ||
        smg_vk_prove(device, false) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    put_between(device);
    return device;
}

static void expect_right(fixture *f, smg_device *device) {
    fail_at = 0;
    if (open_and_use(f, device) != SMG_OK) fail_msg("after a failure: %s", smg_context_error(f->ctx));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
}

static void each_call_fails_once(fixture *f) {
    smg_vk_device *device = open_device(f);
    only = ANY;
    failure = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    expect_right(f, device); /* staging and the like are there now */
    const int before = live;
    int tried = 0;
    bool failed = true;
    for (int i = 1; failed; i += stride(29)) {
        calls = 0;
        fail_at = i;
        smg_status status = open_and_use(f, device);
        failed = calls >= i;
        if (failed != (status != SMG_OK)) fail_msg("call %d: status %d", i, (int)status);
        if (failed && status != SMG_DEVICE_MEMORY) fail_msg("call %d: %s", i, smg_context_error(f->ctx));
        if (failed && smg_context_error(f->ctx)[0] == '\0') fail_msg("call %d fails without a sentence", i);
        if (live != before) fail_msg("call %d: %d objects stay: %s", i, live - before, smg_context_error(f->ctx));
        if (failed && tried++ % 16 == 0) expect_right(f, device);
    }
    print_message("%d calls refused, one at a time\n", tried);
    expect_right(f, device);
    smg_vk_close(device);
}

static void calls_that_fail(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    each_call_fails_once(f);
    more = true;
    each_call_fails_once(f);
    more = false;
}

static void lost_at_each(fixture *f, enum kind kind) {
    only = kind;
    failure = VK_ERROR_DEVICE_LOST;
    int earlier = 0, tried = 0;
    bool failed = true;
    for (int i = 1; failed; i += stride(11)) {
        smg_vk_device *device = open_device(f);
        calls = 0;
        fail_at = i;
        live = 0;
        smg_status status = open_and_use(f, device);
        failed = calls >= i;
        assert_int_equal(status, failed ? SMG_DEVICE : SMG_OK);
        if (failed && strstr(smg_context_error(f->ctx), "LOST") == NULL) fail_msg("%s", smg_context_error(f->ctx));
        if (failed) assert_int_equal(open_and_use(f, device), SMG_DEVICE);
        if (failed && strstr(smg_context_error(f->ctx), "was lost by an earlier call") == NULL)
            fail_msg("%s", smg_context_error(f->ctx));
        fail_at = 0;
        smg_vk_close(device);
        /* What was made before the driver was put between goes, too. */
        if (i == 1) earlier = live;
        if (live != earlier) fail_msg("submission %d: %d objects stay", i, live - earlier);
        tried += failed;
    }
    print_message("lost at %d %s, one at a time\n", tried, kind == WAIT ? "waits" : "submissions");
}

static void devices_that_are_lost(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    for (int pass = 0; pass < 4; pass++) {
        more = pass % 2 != 0;
        lost_at_each(f, pass < 2 ? SUBMISSION : WAIT);
    }
    more = false;
}

/* ---- models that go on with another device ------------------------------------------------------------ */

static smg_model *open_recoverable(fixture *f, smg_device *on) {
    const smg_bundle_desc desc = {.on = on, .recoverable = true};
    smg_model *m = NULL;
    if (smg_model_open_bundle(f->ctx, f->path, &desc, &m) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return m;
}

static void expect_recovered(fixture *f, smg_model *m, smg_device *on) {
    if (smg_model_recover(m, on) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_model_reset_state(m, NULL), SMG_OK);
    memset(f->got, 0, sizeof(f->got));
    if (use_model(f, m) != SMG_OK) fail_msg("recovered: %s", smg_context_error(f->ctx));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
}

/* ---- states ------------------------------------------------------------------------------------------- */

/* x is added to the state, which is given back. */
static smg_status add_once(fixture *f, smg_model *m) {
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x}};
    smg_tensor out = {.name = "h_next", .data = f->got, .bytes = sizeof(f->got)};
    return smg_model_run(m, in, 2, &out, 1);
}

/* Each call of the first runs fails once: up to the submission's end nothing was added, behind it once. */
static void states_where_a_run_fails(void **state) {
    fixture *f = *state;
    static float want[ALL];
    if (f->missing) skip();
    smg_vk_device *device = open_device(f);
    only = ANY;
    failure = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    int i = 1;
    for (bool failed = true; failed; i++) {
        const smg_bundle_desc desc = {.on = device};
        smg_model *m = NULL;
        fail_at = 0;
        assert_int_equal(smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_OK);
        memset(want, 0, sizeof(want));
        calls = 0;
        fail_at = i;
        for (int done = 0; done < 4;) {
            smg_status status = add_once(f, m);
            if (status != SMG_OK && status != SMG_DEVICE_MEMORY) fail_msg("call %d: %s", i, smg_context_error(f->ctx));
            if (status != SMG_OK) continue; /* it is run again */
            for (int k = 0; k < ALL; k++) want[k] += f->x[k];
            if (memcmp(f->got, want, sizeof(want)) != 0) fail_msg("call %d: step %d has another sum", i, done);
            done++;
        }
        failed = calls >= i;
        smg_model_close(m);
    }
    print_message("%d calls refused, one at a time\n", i - 2);
    fail_at = 0;
    smg_vk_close(device);
}

/* Of a model's use; while it is opened there is none to go on with. */
static void recovered_at_each(fixture *f, enum kind kind) {
    only = kind;
    failure = VK_ERROR_DEVICE_LOST;
    static int64_t many[60];
    static float rows[60 * WIDTH];
    smg_ticket ticket;
    bool failed = true;
    for (int i = 1; failed; i++) {
        smg_vk_device *device = open_device(f), *next = open_device(f);
        fail_at = 0;
        live = 0;
        smg_model *m = open_recoverable(f, device);
        assert_int_equal(smg_model_set_range(m, "n", 1, 2 * ROWS), SMG_OK);
        calls = 0;
        fail_at = i;
        failed = use_model(f, m) != SMG_OK;
        assert_int_equal(failed, calls >= i);
        if (failed) assert_int_equal(use_model(f, m), SMG_DEVICE);
        fail_at = 0;
        expect_recovered(f, m, next);
        /* The range is still there. */
        smg_status far = smg_model_submit(m,
                                          (smg_tensor[]){{.name = "ids", .rank = 1, .dims = {60}, .data = many},
                                                         {.name = "x", .rank = 2, .dims = {60, WIDTH}, .data = rows}},
                                          2, NULL, 0, &ticket);
        assert_int_equal(far, SMG_INVALID);
        assert_non_null(strstr(smg_context_error(f->ctx), "outside the range [1, 40]"));
        smg_vk_close(device); /* behind the model that left it */
        smg_model_close(m);
        smg_vk_close(next);
        if (!failed) print_message("recovered from %d %s\n", i - 1, kind == WAIT ? "waits" : "submissions");
    }
}

static void recovered_from_each(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    recovered_at_each(f, SUBMISSION);
    recovered_at_each(f, WAIT);
}

/* Each call fails while a model goes on with another device; then it does. */
static void recovering_fails(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_vk_device *device = open_device(f);
    smg_model *m = open_recoverable(f, device);
    only = ANY;
    failure = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    bool failed = true;
    for (int i = 1; failed; i++) {
        calls = 0;
        fail_at = i;
        smg_status status = smg_model_recover(m, device);
        failed = calls >= i;
        assert_int_equal(status, failed ? SMG_DEVICE_MEMORY : SMG_OK);
        if (!failed) continue;
        smg_device_tensor *y = NULL;
        smg_model *shared = NULL;
        assert_int_equal(run(f, m, f->got, NULL), SMG_DEVICE);
        if (strstr(smg_context_error(f->ctx), "could not be recovered") == NULL)
            fail_msg("%s", smg_context_error(f->ctx));
        assert_int_equal(smg_model_create_tensor(m, "y", ALL, &y), SMG_DEVICE);
        assert_int_equal(smg_model_share(m, f->ctx, &shared), SMG_DEVICE);
        assert_int_equal(smg_model_set_range(m, "n", 1, 2), SMG_DEVICE);
        assert_true(smg_model_seconds(m) == 0);
        fail_at = 0;
        if (i % 16 == 0) expect_recovered(f, m, device);
    }
    fail_at = 0;
    expect_recovered(f, m, device);
    smg_model_close(m);
    smg_vk_close(device);
}

static int reads_left; /* then each fails; below 0: none does */

static bool read_file(void *user, int64_t offset, void *into, size_t bytes) {
    if (reads_left == 0) return false;
    reads_left--;
    return fseek(user, (long)offset, SEEK_SET) == 0 && fread(into, 1, bytes, user) == bytes;
}

/* The application's reader fails while a model goes on; then it does not. */
static void recovering_fails_to_read(fixture *f, smg_model *m) {
    bool failed = true;
    for (int i = 0; failed; i++) {
        reads_left = i;
        smg_status status = smg_model_recover(m, NULL);
        failed = status != SMG_OK;
        if (!failed) continue;
        assert_int_equal(status, SMG_IO);
        assert_non_null(strstr(smg_context_error(f->ctx), "its reader failed"));
        assert_int_equal(run(f, m, f->got, NULL), SMG_DEVICE);
    }
    reads_left = -1;
    expect_recovered(f, m, NULL);
}

/* On a device of its own, from a file and by calls. */
static void recovered_by_itself(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const smg_bundle_reader reader = {.bytes = ftell(file), .read = read_file, .user = file};
    for (int by_calls = 0; by_calls < 2; by_calls++) {
        const smg_bundle_desc desc = {.recoverable = true};
        reads_left = -1;
        smg_model *m = by_calls ? NULL : open_recoverable(f, NULL);
        if (by_calls && smg_model_open_bundle_reader(f->ctx, &reader, &desc, &m) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        for (int i = 0; i < 2; i++) {
            m->parts.device->common->lost = true;
            assert_int_equal(run(f, m, f->got, NULL), SMG_DEVICE);
            expect_recovered(f, m, NULL);
        }
        if (by_calls) recovering_fails_to_read(f, m);
        smg_model_close(m);
    }
    (void)fclose(file);
}

/* Lost while two runs are in flight: whatever is called behind that answers. */
static void every_handle_answers(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_vk_device *device = open_device(f), *next = open_device(f);
    smg_model *m = open_recoverable(f, device), *shared = NULL, *none = NULL;
    smg_device_tensor *y = NULL, *another = NULL;
    const smg_bundle_desc on = {.on = device};
    const smg_device_tensor_desc desc = {.type = "f32", .elements = ALL};
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x}};
    smg_tensor out = {.name = "y"};
    smg_ticket ticket, second;
    bool done = false;
    only = WAIT;
    failure = VK_ERROR_DEVICE_LOST;
    fail_at = 0;
    assert_int_equal(smg_model_share(m, f->ctx, &shared), SMG_OK);
    assert_int_equal(smg_tensor_create(device, &desc, &y), SMG_OK);
    assert_int_equal(smg_model_submit(m, in, 2, &out, 1, &ticket), SMG_OK);
    out = (smg_tensor){.name = "y", .on = y};
    assert_int_equal(smg_model_submit(shared, in, 2, &out, 1, &second), SMG_OK);
    calls = 0;
    fail_at = 1;
    assert_int_equal(smg_ticket_wait(ticket, -1, &done), SMG_DEVICE);
    assert_true(done);
    assert_int_equal(smg_ticket_wait(ticket, -1, &done), SMG_DEVICE);
    smg_status late = smg_ticket_wait(second, -1, &done); /* it was over, or it was lost with the device */
    assert_true(done && (late == SMG_OK || late == SMG_DEVICE));
    assert_int_equal(smg_ticket_cancel(second, &done), SMG_OK);
    assert_false(done);
    smg_model *const models[] = {m, shared};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(f, models[i], f->got, NULL), SMG_DEVICE);
        assert_int_equal(run(f, models[i], NULL, y), SMG_DEVICE);
        assert_int_equal(use_commands(f, models[i], device, f->got), SMG_DEVICE);
        assert_int_equal(smg_model_create_tensor(models[i], "y", ALL, &another), SMG_DEVICE);
        assert_int_equal(smg_model_share(models[i], f->ctx, &none), SMG_DEVICE);
        assert_int_equal(smg_model_set_budget(models[i], 1, 1), SMG_OK);
        assert_int_equal(smg_model_set_range(models[i], "n", 1, ROWS), SMG_OK);
        assert_int_equal(smg_model_reset_state(models[i], NULL), SMG_OK);
    }
    assert_int_equal(smg_tensor_create(device, &desc, &another), SMG_DEVICE);
    assert_int_equal(smg_tensor_upload(y, 0, f->x, ALL), SMG_DEVICE);
    assert_int_equal(smg_tensor_download(y, 0, f->got, ALL), SMG_DEVICE);
    assert_int_equal(smg_model_open_bundle(f->ctx, f->path, &on, &none), SMG_DEVICE);
    smg_context *other = NULL;
    smg_device *beside = NULL;
    assert_int_equal(smg_context_create(NULL, &other), SMG_OK);
    assert_int_equal(smg_device_share(device, other, &beside), SMG_DEVICE);
    assert_non_null(strstr(smg_context_error(other), "was lost by an earlier call"));
    assert_int_equal(smg_model_share(m, other, &none), SMG_DEVICE);
    assert_non_null(strstr(smg_context_error(other), "was lost by an earlier call"));
    smg_context_destroy(other);
    assert_true(none == NULL && another == NULL && beside == NULL);
    assert_true(smg_device_name(device)[0] != '\0');
    smg_model_close(shared);
    smg_tensor_destroy(y);
    expect_recovered(f, m, next);
    smg_model_close(m);
    smg_vk_close(device);
    smg_vk_close(next);
}

static void not_recoverable(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_vk_device *device = open_device(f);
    const smg_bundle_desc desc = {.on = device};
    smg_model *m = NULL;
    smg_ticket ticket;
    fail_at = 0;
    assert_int_equal(smg_model_open_bundle(f->ctx, f->path, &desc, &m), SMG_OK);
    assert_int_equal(smg_model_recover(m, device), SMG_UNSUPPORTED);
    assert_non_null(strstr(smg_context_error(f->ctx), "without smg_bundle_desc.recoverable"));
    assert_int_equal(run(f, m, f->got, NULL), SMG_OK);
    smg_model_close(m);
    m = open_recoverable(f, device);
    assert_int_equal(smg_model_recover(m, NULL), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "none is given"));
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {ROWS}, .data = f->ids},
                             {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x}};
    smg_tensor out = {.name = "y"};
    assert_int_equal(smg_model_submit(m, in, 2, &out, 1, &ticket), SMG_OK);
    assert_int_equal(smg_model_recover(m, device), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "in flight"));
    assert_int_equal(smg_ticket_wait(ticket, -1, NULL), SMG_OK);
    smg_model *shared = NULL;
    assert_int_equal(smg_model_share(m, f->ctx, &shared), SMG_OK);
    assert_int_equal(smg_model_recover(m, device), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "1 models that were shared from this one are open"));
    assert_int_equal(run(f, shared, f->got, NULL), SMG_OK);
    assert_int_equal(smg_model_recover(shared, device), SMG_UNSUPPORTED);
    smg_model_close(shared);
    expect_recovered(f, m, device);
    assert_int_equal(smg_model_recover(NULL, device), SMG_INVALID);
    smg_model_close(m);
    smg_vk_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_fail),          cmocka_unit_test(devices_that_are_lost),
        cmocka_unit_test(states_where_a_run_fails), cmocka_unit_test(recovered_from_each),
        cmocka_unit_test(recovering_fails),         cmocka_unit_test(recovered_by_itself),
        cmocka_unit_test(every_handle_answers),     cmocka_unit_test(not_recoverable),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("device calls", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
