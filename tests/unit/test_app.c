/* Models on a device that is the application's: the bits that they give on one of their own; with all that is worth
 * enabling, with a chain of the application's, and with nothing; two models on one device; nothing of smg's is left on
 * it; wrong descriptions are refused. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compile/compile.h"

#if SMG_VULKAN
#include "support/app.h"
#include "support/device.h"
#include "support/output.h"

static const char text[] = "graph small\ndim n max 64\nx = input f32[n, 96]\n"
                           "w = constant f32[96, 96] random seed=2 scale=0.1\nc = constant f32[96] random seed=3\n"
                           "p = contract(x, w) \"ni,io->no\"\nq = add(p, c)\ny = relu(q)\noutput y = y\n";

enum { ROWS = 20, WIDTH = 96 };

typedef struct fixture {
    smg_context *ctx;
    app app;
    bool missing;
    char path[512];
    float x[ROWS * WIDTH], want[ROWS * WIDTH], got[ROWS * WIDTH];
    int locked, uses; /* of the queue */
} fixture;

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect_refused(const fixture *f, smg_status status, smg_status want, const char *sentence) {
    assert_int_equal(status, want);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

static smg_status run(fixture *f, smg_model *m, float *y) {
    const smg_tensor x = {"x", "f32", 2, {ROWS, WIDTH}, f->x, 0, NULL};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(f->got)};
    return smg_model_run(m, &x, 1, &out, 1);
}

/* For the device at hand with all of its features, and for one that has none. */
static smg_status compile_here(fixture *f) {
    smg_device *device = NULL;
    smg_model *m = NULL;
    smg_ahead_target targets[2] = {{.name = "here"}, {.name = "careful", .match = ""}};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    const smg_model_desc desc = {0};
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    SMG_TRY(smg_device_open(f->ctx, NULL, &device));
    smg_status status = smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph);
    if (status == SMG_OK) status = smg_compile_know_device(device, &desc);
    targets[0].target = *smg_vk_target(device);
    targets[0].match = targets[0].target.name;
    if (status == SMG_OK) status = smg_target_named(f->ctx, "careful", &targets[1].target);
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, &source, targets, 2, &options, f->path);
    smg_source_close(&source);
    const smg_bundle_desc on = {.on = device};
    if (status == SMG_OK) status = smg_model_open_bundle(f->ctx, f->path, &on, &m);
    if (status == SMG_OK) status = run(f, m, f->want);
    smg_model_close(m);
    smg_device_close(device);
    return status;
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "app.smgb"));
    for (int i = 0; i < ROWS * WIDTH; i++) f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    smg_status status = compile_here(&f);
    f.missing = device_missing(f.ctx, status) || !app_begin(&f.app);
    if (!f.missing) expect_ok(&f, status);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    app_end(&f->app);
    smg_context_destroy(f->ctx);
    return 0;
}

static void lock(void *user) {
    fixture *f = user;
    assert_int_equal(f->locked++, 0);
    f->uses++;
}

static void unlock(void *user) {
    fixture *f = user;
    assert_int_equal(--f->locked, 0);
}

/* The application's device with smg's wishes in front of its own chain, adopted. */
static smg_device *adopt_wished(fixture *f, void *chain, smg_vulkan_wishes **out_wishes) {
    smg_device *device = NULL;
    smg_vulkan_desc desc = app_desc(&f->app);
    expect_ok(f, smg_vk_wish(f->ctx, &desc, chain, out_wishes));
    app_make_device(&f->app, (*out_wishes)->enabled, (*out_wishes)->extensions, (*out_wishes)->extension_count);
    desc = app_desc(&f->app);
    desc.enabled = (*out_wishes)->enabled;
    desc.extensions = (*out_wishes)->extensions;
    desc.extension_count = (*out_wishes)->extension_count;
    desc.lock_queue = lock;
    desc.unlock_queue = unlock;
    desc.lock_user = f;
    expect_ok(f, smg_vk_adopt(f->ctx, &desc, &device));
    return device;
}

static void open_on(fixture *f, smg_device *device, smg_model **out_model) {
    const smg_bundle_desc desc = {.on = device};
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, out_model));
}

/* Opened, run, and the first is closed while the other goes on. */
static void run_two(fixture *f, smg_device *device) {
    smg_model *a = NULL, *b = NULL;
    open_on(f, device, &a);
    open_on(f, device, &b);
    assert_string_equal(smg_model_class(a), "here");
    for (int i = 0; i < 3; i++) {
        memset(f->got, 0, sizeof(f->got));
        expect_ok(f, run(f, i == 1 ? b : a, f->got));
        assert_memory_equal(f->got, f->want, sizeof(f->want));
    }
    smg_model_close(a);
    memset(f->got, 0, sizeof(f->got));
    expect_ok(f, run(f, b, f->got));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_model_close(b);
}

static void all_that_is_worth_enabling(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    if (f->missing) skip();
    if (!f->app.validated) print_message("without the validation layer\n");
    for (int round = 0; round < 2; round++) { /* twice on one VkDevice */
        smg_vulkan_desc desc = app_desc(&f->app);
        smg_device *device = NULL;
        if (round == 0) {
            device = adopt_wished(f, NULL, &wishes);
        } else {
            desc.enabled = wishes->enabled;
            desc.extensions = wishes->extensions;
            desc.extension_count = wishes->extension_count;
            expect_ok(f, smg_vk_adopt(f->ctx, &desc, &device));
        }
        run_two(f, device);
        smg_device_close(device);
        assert_true(f->uses > 4);
        assert_int_equal(f->locked, 0);
    }
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* Structures that the application has already are told, and not there twice. */
static void a_chain_of_its_own(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    if (f->missing) skip();
    VkPhysicalDevice16BitStorageFeatures halves = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceVulkan12Features twelve = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &halves, .timelineSemaphore = VK_TRUE};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &twelve};
    smg_device *device = adopt_wished(f, &core, &wishes);
    assert_true(twelve.timelineSemaphore);
    assert_int_equal(twelve.shaderFloat16 != 0, smg_vk_target(device)->fp16 != 0);
    assert_int_equal(halves.storageBuffer16BitAccess != 0, smg_vk_target(device)->storage16 != 0);
    int cores = 0, twelves = 0, named = 0;
    for (const VkBaseInStructure *link = wishes->enabled; link != NULL; link = link->pNext) {
        cores += link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
        twelves += link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
        named += link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
    }
    assert_true(cores == 1 && twelves == 1 && named == 0);
    run_two(f, device);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* Structures of whole versions of Vulkan, beside which those of extensions that are in them may not stand. */
static void a_chain_of_versions(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    VkPhysicalDeviceProperties p;
    if (f->missing) skip();
    f->app.GetPhysicalDeviceProperties(f->app.physical, &p);
    if (p.apiVersion < VK_API_VERSION_1_3) skip();
    smg_device *full = adopt_wished(f, NULL, &wishes);
    const smg_target want = *smg_vk_target(full);
    smg_device_close(full);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
    VkPhysicalDeviceVulkan11Features eleven = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features twelve = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                               .pNext = &eleven};
    VkPhysicalDeviceVulkan13Features thirteen = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                 .pNext = &twelve};
    smg_device *device = adopt_wished(f, &thirteen, &wishes);
    const smg_target *got = smg_vk_target(device);
    assert_true(!got->storage16 || eleven.storageBuffer16BitAccess);
    assert_true(!got->buffer_addresses || twelve.bufferDeviceAddress);
    assert_true(!got->subgroup_selectable || thirteen.subgroupSizeControl);
    assert_memory_equal(got, &want, sizeof(want));
    run_two(f, device);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* Only what was enabled is used: another class, whose sums are in another order. */
static void nothing_enabled(void **state) {
    fixture *f = *state;
    smg_device *device = NULL;
    smg_model *m = NULL;
    if (f->missing) skip();
    app_make_device(&f->app, NULL, NULL, 0);
    const smg_vulkan_desc desc = app_desc(&f->app);
    expect_ok(f, smg_vk_adopt(f->ctx, &desc, &device));
    open_on(f, device, &m);
    assert_string_equal(smg_model_class(m), "careful");
    expect_ok(f, run(f, m, f->got));
    for (int i = 0; i < ROWS * WIDTH; i++) assert_true(fabsf(f->got[i] - f->want[i]) < 1e-4f);
    smg_model_close(m);
    smg_device_close(device);
    app_drop_device(&f->app);
}

/* One class, for the device at hand. */
static void compile_alone(fixture *f, const smg_device *device, const char *path) {
    smg_ahead_target target = {.name = "here", .target = *smg_vk_target(device)};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    target.match = target.target.name;
    expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph));
    expect_ok(f, smg_compile_ahead(f->ctx, &source, &target, 1, &options, path));
    smg_source_close(&source);
}

/* After a driver's update a device has less than it had. Another class takes its place; where there is none the sentence
 * says what is missing, and the model goes on with a device that has it. */
static void features_that_vanish(void **state) {
    fixture *f = *state;
    char room[512];
    smg_device *full = NULL, *bare = NULL;
    if (f->missing) skip();
    app_make_device(&f->app, NULL, NULL, 0);
    const smg_vulkan_desc bare_desc = app_desc(&f->app);
    expect_ok(f, smg_vk_adopt(f->ctx, &bare_desc, &bare));
    expect_ok(f, smg_device_open(f->ctx, NULL, &full));
    const smg_bundle_desc desc = {.on = full, .recoverable = true};
    for (int alone = 0; alone < 2; alone++) {
        smg_model *m = NULL;
        const char *path = alone ? test_output(room, sizeof(room), "app-alone.smgb") : f->path;
        if (alone) compile_alone(f, full, path);
        expect_ok(f, smg_model_open_bundle(f->ctx, path, &desc, &m));
        assert_string_equal(smg_model_class(m), "here");
        if (alone) {
            expect_refused(f, smg_model_recover(m, bare), SMG_UNSUPPORTED, ": here lacks ");
            expect_refused(f, run(f, m, f->got), SMG_DEVICE, "could not be recovered");
        } else {
            expect_ok(f, smg_model_recover(m, bare));
            assert_string_equal(smg_model_class(m), "careful");
            expect_ok(f, run(f, m, f->got));
            for (int i = 0; i < ROWS * WIDTH; i++) assert_true(fabsf(f->got[i] - f->want[i]) < 1e-4f);
        }
        expect_ok(f, smg_model_recover(m, full));
        assert_string_equal(smg_model_class(m), "here");
        expect_ok(f, run(f, m, f->got));
        assert_memory_equal(f->got, f->want, sizeof(f->want));
        smg_model_close(m);
    }
    smg_device_close(full);
    smg_device_close(bare);
    app_drop_device(&f->app);
}

/* A model that is compiled where it runs, on the application's device. */
static void compiled_here(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    smg_graph *graph = NULL;
    smg_model *m = NULL;
    if (f->missing) skip();
    smg_device *device = adopt_wished(f, NULL, &wishes);
    expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &graph));
    const smg_model_desc desc = {.on = device};
    expect_ok(f, smg_model_open_graph(f->ctx, graph, &desc, &m));
    expect_ok(f, run(f, m, f->got));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_model_close(m);
    smg_graph_destroy(graph);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* Input and output are two parts of one buffer of the application's. */
static void buffers_of_the_application(void **state) {
    fixture *f = *state;
    enum { PART = (ROWS * WIDTH * 4 + 255) / 256 * 256 };
    smg_vulkan_wishes *wishes = NULL;
    smg_device_tensor *x = NULL, *y = NULL, *none = NULL;
    smg_model *m = NULL;
    app_buffer buffer;
    if (f->missing) skip();
    smg_device *device = adopt_wished(f, NULL, &wishes);
    open_on(f, device, &m);
    app_make_buffer(&f->app, smg_vk_tensor_usage(device), 2 * PART, &buffer);
    const smg_device_tensor_desc desc = {.name = "mine", .type = "f32", .elements = ROWS * WIDTH};
    smg_vulkan_buffer part = {.buffer = buffer.handle, .bytes = PART};
    expect_ok(f, smg_vk_tensor_import(device, &desc, &part, &x));
    part.offset = PART;
    expect_ok(f, smg_vk_tensor_import(device, &desc, &part, &y));
    memcpy(buffer.data, f->x, sizeof(f->x));
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .on = x};
    smg_tensor out = {.name = "y", .on = y};
    expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
    assert_memory_equal((char *)buffer.data + PART, f->want, sizeof(f->want));
    expect_ok(f, smg_tensor_download(y, 0, f->got, ROWS * WIDTH));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    assert_null(smg_tensor_map(y));
    assert_int_equal(smg_vk_tensor_buffer(y, &part), SMG_OK);
    assert_true(part.buffer == buffer.handle && part.offset == PART && part.bytes == ROWS * WIDTH * 4);
    /* The same memory twice. */
    out.on = x;
    expect_refused(f, smg_model_run(m, &in, 1, &out, 1), SMG_INVALID, "share memory");
    part = (smg_vulkan_buffer){.buffer = buffer.handle, .offset = 4, .bytes = PART};
    expect_refused(f, smg_vk_tensor_import(device, &desc, &part, &none), SMG_INVALID, "begins at 4, not a multiple of");
    part = (smg_vulkan_buffer){.buffer = buffer.handle, .bytes = ROWS * WIDTH * 4 - 1};
    expect_refused(f, smg_vk_tensor_import(device, &desc, &part, &none), SMG_INVALID,
                   "takes 7680 bytes, its buffer has");
    part.offset = UINT64_MAX;
    expect_refused(f, smg_vk_tensor_import(device, &desc, &part, &none), SMG_INVALID, "bytes at 18446744073709551615");
    part = (smg_vulkan_buffer){.buffer = buffer.handle, .offset = (VkDeviceSize)8 * PART, .bytes = PART};
    expect_refused(f, smg_vk_tensor_import(device, &desc, &part, &none), SMG_INVALID, "'mine' ends before byte");
    part.buffer = VK_NULL_HANDLE;
    expect_refused(f, smg_vk_tensor_import(device, &desc, &part, &none), SMG_INVALID, "the buffer is null");
    expect_refused(f, smg_vk_tensor_import(device, NULL, &part, &none), SMG_INVALID, "the description is null");
    assert_int_equal(smg_vk_tensor_import(NULL, &desc, &part, &none), SMG_INVALID);
    assert_int_equal(smg_vk_tensor_buffer(NULL, &part), SMG_INVALID);
    assert_null(none);
    smg_tensor_destroy(x);
    smg_tensor_destroy(y);
    smg_model_close(m);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_buffer(&f->app, &buffer);
    app_drop_device(&f->app);
}

/* Taken twice, a VkDevice is two devices of smg's, which number their buffers apart; shared, with another context, it is
 * one. */
static void taken_twice(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    smg_context *ctx = NULL;
    smg_device *again = NULL, *shared = NULL;
    smg_device_tensor *here = NULL, *there = NULL, *beside = NULL;
    smg_model *m = NULL;
    const smg_device_tensor_desc desc = {.name = "t", .type = "f32", .elements = ROWS * WIDTH};
    if (f->missing) skip();
    smg_device *device = adopt_wished(f, NULL, &wishes);
    smg_vulkan_desc twice = app_desc(&f->app);
    twice.enabled = wishes->enabled;
    twice.extensions = wishes->extensions;
    twice.extension_count = wishes->extension_count;
    expect_ok(f, smg_vk_adopt(f->ctx, &twice, &again));
    expect_ok(f, smg_tensor_create(device, &desc, &here)); /* the first of its device */
    expect_ok(f, smg_tensor_create(again, &desc, &there)); /* also */
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_device_share(device, ctx, &shared), SMG_OK);
    assert_int_equal(smg_tensor_create(shared, &desc, &beside), SMG_OK);
    assert_string_equal(smg_device_name(shared), smg_device_name(device));
    open_on(f, device, &m);
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x};
    smg_tensor out = {.name = "y", .on = here};
    expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
    out.on = there;
    expect_refused(f, smg_model_run(m, &in, 1, &out, 1), SMG_INVALID, "lies on another device");
    out.on = beside;
    expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
    assert_int_equal(smg_tensor_download(beside, 0, f->got, ROWS * WIDTH), SMG_OK);
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_model_close(m);
    /* A model of the other context's, which the first device knows nothing of. */
    const smg_bundle_desc on = {.on = shared}, wrong = {.on = device};
    assert_int_equal(smg_model_open_bundle(ctx, f->path, &wrong, &m), SMG_INVALID);
    assert_int_equal(smg_model_open_bundle(ctx, f->path, &on, &m), SMG_OK);
    out.on = here;
    assert_int_equal(smg_model_run(m, &in, 1, &out, 1), SMG_OK);
    memset(f->got, 0, sizeof(f->got));
    expect_ok(f, smg_tensor_download(here, 0, f->got, ROWS * WIDTH));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_model_close(m);
    smg_tensor_destroy(here);
    smg_tensor_destroy(there);
    smg_tensor_destroy(beside);
    smg_device_close(shared);
    assert_true(smg_device_share(NULL, ctx, &shared) == SMG_INVALID && shared == NULL);
    assert_true(smg_device_share(device, NULL, &shared) == SMG_INVALID && shared == NULL);
    smg_context_destroy(ctx);
    smg_device_close(again);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* Memory of the application's that leaves it by a descriptor. */
typedef struct exported {
    VkDeviceMemory memory;
    void *data;
    size_t mapped; /* of a file */
    smg_vulkan_fd fd;
} exported;

/* false: the device exports none of this kind, as the reason printed says. */
static bool export_memory(app *a, smg_vulkan_fd_kind kind, VkBufferUsageFlags usage, VkDeviceSize bytes,
                          exported *out) {
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkExternalMemoryHandleTypeFlagBits handle = kind == SMG_VULKAN_FD_OPAQUE
                                                          ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
                                                          : VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    PFN_vkGetPhysicalDeviceExternalBufferProperties ask = (PFN_vkGetPhysicalDeviceExternalBufferProperties)(void (*)(
        void))a->get(a->instance, "vkGetPhysicalDeviceExternalBufferProperties");
    PFN_vkGetDeviceProcAddr find = (PFN_vkGetDeviceProcAddr)(void (*)(void))a->get(a->instance, "vkGetDeviceProcAddr");
    PFN_vkGetMemoryFdKHR get = (PFN_vkGetMemoryFdKHR)(void (*)(void))find(a->device, "vkGetMemoryFdKHR");
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO, .usage = usage, .handleType = handle};
    VkExternalBufferProperties told = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    ask(a->physical, &info, &told);
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    if (get == NULL || (told.externalMemoryProperties.externalMemoryFeatures & both) != both) {
        print_message("the device exports no %s\n", kind == SMG_VULKAN_FD_OPAQUE ? "opaque descriptors" : "dma-bufs");
        return false;
    }
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                       .handleTypes = handle};
    const VkBufferCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &external, .size = bytes, .usage = usage};
    VkPhysicalDeviceMemoryProperties types;
    VkMemoryRequirements needs;
    VkBuffer buffer = VK_NULL_HANDLE;
    uint32_t type = 0;
    a->GetPhysicalDeviceMemoryProperties(a->physical, &types);
    assert_int_equal(a->CreateBuffer(a->device, &create, NULL, &buffer), VK_SUCCESS);
    a->GetBufferMemoryRequirements(a->device, buffer, &needs);
    a->DestroyBuffer(a->device, buffer, NULL);
    while (type < types.memoryTypeCount &&
           (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & host) != host))
        type++;
    assert_true(type < types.memoryTypeCount);
    const VkExportMemoryAllocateInfo exports = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                .handleTypes = handle};
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &exports,
                                         .allocationSize = needs.size,
                                         .memoryTypeIndex = type};
    if (a->AllocateMemory(a->device, &memory, NULL, &out->memory) != VK_SUCCESS) {
        print_message("the device gave no memory to export\n");
        return false;
    }
    assert_int_equal(a->MapMemory(a->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->data), VK_SUCCESS);
    out->fd = (smg_vulkan_fd){.kind = kind, .memory_bytes = needs.size, .memory_type = type};
    const VkMemoryGetFdInfoKHR wanted = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .memory = out->memory, .handleType = handle};
    assert_int_equal(get(a->device, &wanted, &out->fd.fd), VK_SUCCESS);
    return true;
}

/* On a CPU, whose driver maps a dma-buf as it would map any file: a file. What dma-bufs have beside that is not tried. */
static bool stand_in(const fixture *f, smg_vulkan_fd_kind kind, size_t bytes, exported *out) {
    char room[512];
    const char *path = test_output(room, sizeof(room), "app-dma-buf");
    VkPhysicalDeviceProperties p;
    f->app.GetPhysicalDeviceProperties(f->app.physical, &p);
    if (kind != SMG_VULKAN_FD_DMA_BUF || p.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) return false;
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    unlink(path);
    out->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(out->data != MAP_FAILED);
    out->mapped = bytes;
    out->fd = (smg_vulkan_fd){.fd = file, .kind = kind, .memory_bytes = bytes};
    print_message("a file stands in\n");
    return true;
}

static int next_descriptor(void) {
    int next = dup(0);
    close(next);
    return next;
}

/* What a model writes on the application's device another one reads on a device, and in a context, of its own. */
static void memory_by_descriptors(void **state) {
    fixture *f = *state;
    enum { PART = (ROWS * WIDTH * 4 + 255) / 256 * 256 };
    smg_vulkan_wishes *wishes = NULL;
    smg_device_tensor *y = NULL, *x = NULL, *none = NULL;
    smg_context *ctx = NULL;
    smg_device *other = NULL;
    smg_model *m = NULL, *second = NULL;
    static float twice[ROWS * WIDTH];
    const smg_device_tensor_desc desc = {.name = "theirs", .type = "f32", .elements = ROWS * WIDTH};
    if (f->missing) skip();
    smg_device *device = adopt_wished(f, NULL, &wishes);
    open_on(f, device, &m);
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_device_open(ctx, NULL, &other), SMG_OK);
    const smg_bundle_desc on = {.on = other};
    assert_int_equal(smg_model_open_bundle(ctx, f->path, &on, &second), SMG_OK);
    for (int kind = SMG_VULKAN_FD_OPAQUE; kind <= SMG_VULKAN_FD_DMA_BUF; kind++) {
        exported e = {0};
        int before = next_descriptor();
        if (!export_memory(&f->app, (smg_vulkan_fd_kind)kind, smg_vk_tensor_usage(device), (VkDeviceSize)2 * PART,
                           &e) &&
            !stand_in(f, (smg_vulkan_fd_kind)kind, (size_t)2 * PART, &e))
            continue;
        e.fd.offset = PART;
        e.fd.bytes = PART;
        expect_ok(f, smg_vk_tensor_import_fd(device, &desc, &e.fd, &y));
        if (smg_vk_tensor_import_fd(other, &desc, &e.fd, &x) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        close(e.fd.fd); /* it is not needed any more */
        smg_tensor in = {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x};
        smg_tensor out = {.name = "y", .on = y};
        expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
        assert_memory_equal((char *)e.data + PART, f->want, sizeof(f->want));
        in.on = x;
        out = (smg_tensor){.name = "y", .data = f->got, .bytes = sizeof(f->got)};
        if (smg_model_run(second, &in, 1, &out, 1) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        in = (smg_tensor){.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->want};
        out.data = twice;
        expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
        assert_memory_equal(f->got, twice, sizeof(twice));
        assert_null(smg_tensor_map(x));
        smg_tensor_destroy(x);
        smg_tensor_destroy(y);
        f->app.FreeMemory(f->app.device, e.memory, NULL);
        if (e.mapped > 0) munmap(e.data, e.mapped);
        assert_int_equal(next_descriptor(), before);
    }
    assert_int_equal(smg_vk_validation_errors(other), 0);
    smg_model_close(second);
    smg_device_close(other);
    smg_context_destroy(ctx);
    assert_null(none);
    smg_model_close(m);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

static void descriptors_that_are_wrong(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    smg_device_tensor *none = NULL;
    exported e = {0};
    const smg_device_tensor_desc desc = {.name = "theirs", .type = "f32", .elements = 256};
    if (f->missing) skip();
    /* Where nothing was enabled. */
    app_make_device(&f->app, NULL, NULL, 0);
    smg_vulkan_desc bare = app_desc(&f->app);
    smg_device *device = NULL;
    expect_ok(f, smg_vk_adopt(f->ctx, &bare, &device));
    smg_vulkan_fd fd = {.memory_bytes = 4096, .bytes = 1024};
    expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_UNSUPPORTED,
                   "VK_KHR_external_memory_fd is not enabled");
    smg_device_close(device);
    app_drop_device(&f->app);
    device = adopt_wished(f, NULL, &wishes);
    if (export_memory(&f->app, SMG_VULKAN_FD_OPAQUE, smg_vk_tensor_usage(device), 4096, &e)) {
        int before = next_descriptor();
        fd = e.fd;
        fd.bytes = 1024;
        expect_refused(f, smg_vk_tensor_import_fd(device, NULL, &fd, &none), SMG_INVALID, "the description is null");
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, NULL, &none), SMG_INVALID, "the memory is null");
        fd.fd = -1;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "file descriptor -1: ");
        fd.fd = e.fd.fd;
        fd.bytes = 1023;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "takes 1024 bytes");
        fd.bytes = 1024;
        fd.offset = fd.memory_bytes;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID,
                       "1024 bytes at 4096 of 4096");
        fd.offset = 4;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "begins at 4, not a");
        fd.offset = 0;
        fd.memory_type = 31;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID,
                       "memory of type 31 does not");
        fd.memory_type = e.fd.memory_type;
        fd.kind = (smg_vulkan_fd_kind)7;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "there is no kind 7");
        assert_int_equal(next_descriptor(), before);
        close(e.fd.fd);
        f->app.FreeMemory(f->app.device, e.memory, NULL);
    }
    if (stand_in(f, SMG_VULKAN_FD_DMA_BUF, 4096, &e)) {
        int ends[2], before = next_descriptor();
        fd = e.fd;
        fd.bytes = 1024;
        fd.memory_bytes = 4097;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID,
                       " has 4096 bytes, 4097 were said");
        fd.memory_bytes = 4096;
        fd.fd = -1;
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "file descriptor -1: ");
        assert_int_equal(pipe(ends), 0);
        fd.fd = ends[0];
        expect_refused(f, smg_vk_tensor_import_fd(device, &desc, &fd, &none), SMG_INVALID, "is no dma-buf");
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(next_descriptor(), before);
        munmap(e.data, e.mapped);
        close(e.fd.fd);
    }
    assert_null(none);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    app_drop_device(&f->app);
}

/* A run waits for a point that the host signals, and signals one itself. */
static void timelines_of_the_application(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    smg_model *m = NULL;
    smg_ticket ticket;
    bool done = true;
    uint64_t value = 0;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    if (f->missing) skip();
    VkPhysicalDeviceVulkan12Features twelve = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                               .timelineSemaphore = VK_TRUE};
    smg_device *device = adopt_wished(f, &twelve, &wishes);
    open_on(f, device, &m);
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    assert_int_equal(f->app.CreateSemaphore(f->app.device, &info, NULL, &semaphore), VK_SUCCESS);
    const smg_tensor x = {.name = "x", .rank = 2, .dims = {ROWS, WIDTH}, .data = f->x};
    smg_tensor y = {.name = "y", .data = f->got, .bytes = sizeof(f->got)};
    for (uint64_t round = 0; round < 3; round++) {
        const smg_vulkan_point before = {semaphore, 2 * round + 1}, after = {semaphore, 2 * round + 2};
        const smg_vulkan_sync sync = {.waits = &before, .wait_count = 1, .signals = &after, .signal_count = 1};
        memset(f->got, 0, sizeof(f->got));
        expect_ok(f, smg_vk_model_submit(m, &x, 1, &y, 1, &sync, &ticket));
        expect_ok(f, smg_ticket_wait(ticket, 0, &done));
        assert_false(done);
        expect_ok(f, smg_ticket_wait(ticket, 0.02, &done));
        assert_false(done);
        const VkSemaphoreSignalInfo go = {
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore, .value = before.value};
        assert_int_equal(f->app.SignalSemaphore(f->app.device, &go), VK_SUCCESS);
        expect_ok(f, smg_ticket_wait(ticket, -1, &done));
        assert_true(done);
        assert_memory_equal(f->got, f->want, sizeof(f->want));
        assert_int_equal(f->app.GetSemaphoreCounterValue(f->app.device, semaphore, &value), VK_SUCCESS);
        assert_int_equal(value, after.value);
    }
    const smg_vulkan_point nothing = {VK_NULL_HANDLE, 1};
    smg_vulkan_sync sync = {.waits = &nothing, .wait_count = 1};
    expect_refused(f, smg_vk_model_submit(m, &x, 1, &y, 1, &sync, &ticket), SMG_INVALID, "point 0 to wait for: no");
    sync = (smg_vulkan_sync){.signals = &nothing, .signal_count = 17};
    expect_refused(f, smg_vk_model_submit(m, &x, 1, &y, 1, &sync, &ticket), SMG_INVALID, "17 points to signal, 16 are");
    sync = (smg_vulkan_sync){.signal_count = 1};
    expect_refused(f, smg_vk_model_submit(m, &x, 1, &y, 1, &sync, &ticket), SMG_INVALID, "1 points to signal, 0 are");
    expect_ok(f, run(f, m, f->got));
    assert_memory_equal(f->got, f->want, sizeof(f->want));
    smg_model_close(m);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    f->app.DestroySemaphore(f->app.device, semaphore, NULL);
    app_drop_device(&f->app);
}

static PFN_vkGetInstanceProcAddr real_get;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties real_families;

/* Behind those that there are one more, which only copies. */
static VKAPI_ATTR void VKAPI_CALL families_and_one(VkPhysicalDevice physical, uint32_t *count,
                                                   VkQueueFamilyProperties *out) {
    uint32_t room = out != NULL && *count > 0 ? *count - 1 : 0, there = 0;
    real_families(physical, &there, NULL);
    if (out != NULL) {
        real_families(physical, &room, out);
        if (*count > there)
            out[there] = (VkQueueFamilyProperties){.queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 1};
    }
    *count = there + 1;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_with_families(VkInstance instance, const char *name) {
    bool families = strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties") == 0;
    return families ? (PFN_vkVoidFunction)families_and_one : real_get(instance, name);
}

static void a_queue_that_does_not_compute(fixture *f, smg_vulkan_desc desc) {
    smg_device *device = NULL;
    uint32_t count = 0;
    real_get = f->app.get;
    real_families = f->app.GetPhysicalDeviceQueueFamilyProperties;
    real_families(f->app.physical, &count, NULL);
    desc.get_instance_proc_addr = get_with_families;
    desc.queue_family = count;
    expect_refused(f, smg_vk_adopt(f->ctx, &desc, &device), SMG_INVALID, "has no compute");
    desc.queue_family = f->app.family;
    expect_ok(f, smg_vk_adopt(f->ctx, &desc, &device));
    smg_device_close(device);
}

static void wrong_descriptions_are_refused(void **state) {
    fixture *f = *state;
    smg_vulkan_wishes *wishes = NULL;
    smg_device *device = NULL;
    if (f->missing) skip();
    app_make_device(&f->app, NULL, NULL, 0);
    const smg_vulkan_desc fine = app_desc(&f->app);
    smg_vulkan_desc desc = fine;
    desc.queue_family = 99;
    expect_refused(f, smg_vk_adopt(f->ctx, &desc, &device), SMG_INVALID, "queue family 99 of device");
    a_queue_that_does_not_compute(f, fine);
    desc = fine;
    desc.lock_queue = lock;
    expect_refused(f, smg_vk_adopt(f->ctx, &desc, &device), SMG_INVALID, "one is null");
    desc = fine;
    desc.extension_count = 3;
    expect_refused(f, smg_vk_adopt(f->ctx, &desc, &device), SMG_INVALID, "3 extensions, whose array is null");
    expect_refused(f, smg_vk_wish(f->ctx, &desc, NULL, &wishes), SMG_INVALID, "3 extensions, whose array is null");
    desc = fine;
    desc.device = NULL;
    expect_refused(f, smg_vk_adopt(f->ctx, &desc, &device), SMG_INVALID, "a handle is null");
    desc.physical_device = NULL;
    expect_refused(f, smg_vk_wish(f->ctx, &desc, NULL, &wishes), SMG_INVALID, "a handle is null");
    expect_refused(f, smg_vk_wish(f->ctx, NULL, NULL, &wishes), SMG_INVALID, "a handle is null");
    assert_int_equal(smg_vk_wish(NULL, &fine, NULL, &wishes), SMG_INVALID);
    assert_int_equal(smg_vk_adopt(f->ctx, &fine, NULL), SMG_INVALID);
    assert_null(device);
    assert_null(wishes);
    smg_vk_wishes_free(NULL);
    smg_device_close(NULL);
    /* Of another context. */
    smg_context *other = NULL;
    smg_model *m = NULL;
    assert_int_equal(smg_context_create(NULL, &other), SMG_OK);
    expect_ok(f, smg_vk_adopt(f->ctx, &fine, &device));
    const smg_bundle_desc on = {.on = device};
    assert_int_equal(smg_model_open_bundle(other, f->path, &on, &m), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(other), "was opened with another context"));
    assert_null(m);
    smg_context_destroy(other);
    smg_device_close(device);
    app_drop_device(&f->app);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_worth_enabling),   cmocka_unit_test(a_chain_of_its_own),
        cmocka_unit_test(a_chain_of_versions),          cmocka_unit_test(nothing_enabled),
        cmocka_unit_test(features_that_vanish),         cmocka_unit_test(compiled_here),
        cmocka_unit_test(buffers_of_the_application),   cmocka_unit_test(taken_twice),
        cmocka_unit_test(memory_by_descriptors),        cmocka_unit_test(descriptors_that_are_wrong),
        cmocka_unit_test(timelines_of_the_application), cmocka_unit_test(wrong_descriptions_are_refused),
    };
    return device_result(cmocka_run_group_tests_name("app", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
