/* Every call of the driver that may fail does so once, while a bundle is opened, run on arrays and tensors, shared, and
 * submitted: a status with its sentence, nothing is left on the device, and the next model on the same device is right.
 * Then the device is lost at every submission, and models go on with another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/output.h"

#if SMG_VULKAN
#include "runtime/runtime_private.h"
#include "vulkan/vulkan_private.h"

static const char text[] =
    "graph small\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\nw = constant f32[96, 96] random seed=2 scale=0.1\n"
    "rows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\n"
    "p = contract(sum, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n"
    "h = input f32[n, 96]\nmore = add(h, x)\noutput h_next = more\nstate h = h_next\n";

enum { ROWS = 20, WIDTH = 96, ALL = ROWS * WIDTH };

/* ---- a driver that fails ----------------------------------------------------------------------------- */

static smg_vk_device_table real;
static int calls, fail_at, live; /* live: objects made and not destroyed */
static VkResult failure;
static bool only_submissions;

static bool fails(bool submission) {
    return (submission || !only_submissions) && ++calls == fail_at;
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
        if (fails(false)) return failure;                                                                              \
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
    if (fails(false)) return failure;
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
    return fails(false) ? failure : real.BindBufferMemory(device, buffer, memory, offset);
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                                 VkDeviceSize size, VkMemoryMapFlags flags, void **out) {
    return fails(false) ? failure : real.MapMemory(device, memory, offset, size, flags, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo *info,
                                                        VkCommandBuffer *out) {
    return fails(false) ? failure : real.AllocateCommandBuffers(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice device, const VkDescriptorSetAllocateInfo *info,
                                                    VkDescriptorSet *out) {
    return fails(false) ? failure : real.AllocateDescriptorSets(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL begin_commands(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
    return fails(false) ? failure : real.BeginCommandBuffer(commands, info);
}

/* Recording is over in any case. */
static VKAPI_ATTR VkResult VKAPI_CALL end_commands(VkCommandBuffer commands) {
    VkResult result = real.EndCommandBuffer(commands);
    return fails(false) ? failure : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_fences(VkDevice device, uint32_t count, const VkFence *fences) {
    return fails(false) ? failure : real.ResetFences(device, count, fences);
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
    return fails(true) ? failure : real.QueueSubmit(queue, count, infos, fence);
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

static smg_status open_and_use(fixture *f, smg_device *device) {
    const smg_bundle_desc desc = {.on = device};
    smg_model *m = NULL;
    memset(f->got, 0, sizeof(f->got));
    SMG_TRY(smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    smg_status status = use_model(f, m);
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

static void each_call_fails_once(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_vk_device *device = open_device(f);
    only_submissions = false;
    failure = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    expect_right(f, device); /* staging and the like are there now */
    const int before = live;
    bool failed = true;
    for (int i = 1; failed; i++) {
        calls = 0;
        fail_at = i;
        smg_status status = open_and_use(f, device);
        failed = calls >= i;
        if (failed != (status != SMG_OK)) fail_msg("call %d: status %d", i, (int)status);
        if (failed && status != SMG_DEVICE_MEMORY) fail_msg("call %d: %s", i, smg_context_error(f->ctx));
        if (failed && smg_context_error(f->ctx)[0] == '\0') fail_msg("call %d fails without a sentence", i);
        if (live != before) fail_msg("call %d: %d objects stay: %s", i, live - before, smg_context_error(f->ctx));
        if (failed && i % 16 == 0) expect_right(f, device);
        if (!failed) print_message("%d calls refused, one at a time\n", i - 1);
    }
    expect_right(f, device);
    smg_vk_close(device);
}

static void lost_at_each_submission(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    only_submissions = true;
    failure = VK_ERROR_DEVICE_LOST;
    int earlier = 0;
    bool failed = true;
    for (int i = 1; failed; i++) {
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
        if (!failed) print_message("%d submissions lost, one at a time\n", i - 1);
    }
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
    only_submissions = false;
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
static void recovered_at_each_submission(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    only_submissions = true;
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
        if (!failed) print_message("%d submissions lost and recovered from, one at a time\n", i - 1);
    }
}

/* Each call fails while a model goes on with another device; then it does. */
static void recovering_fails(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    smg_vk_device *device = open_device(f);
    smg_model *m = open_recoverable(f, device);
    only_submissions = false;
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

static bool read_file(void *user, int64_t offset, void *into, size_t bytes) {
    return fseek(user, (long)offset, SEEK_SET) == 0 && fread(into, 1, bytes, user) == bytes;
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
        smg_model *m = by_calls ? NULL : open_recoverable(f, NULL);
        if (by_calls && smg_model_open_bundle_reader(f->ctx, &reader, &desc, &m) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        for (int i = 0; i < 2; i++) {
            m->parts.device->common->lost = true;
            assert_int_equal(run(f, m, f->got, NULL), SMG_DEVICE);
            expect_recovered(f, m, NULL);
        }
        smg_model_close(m);
    }
    (void)fclose(file);
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
    expect_recovered(f, m, device);
    assert_int_equal(smg_model_recover(NULL, device), SMG_INVALID);
    smg_model_close(m);
    smg_vk_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails_once),     cmocka_unit_test(lost_at_each_submission),
        cmocka_unit_test(states_where_a_run_fails), cmocka_unit_test(recovered_at_each_submission),
        cmocka_unit_test(recovering_fails),         cmocka_unit_test(recovered_by_itself),
        cmocka_unit_test(not_recoverable),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("device calls", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
