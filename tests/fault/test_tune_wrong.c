/* Tuning with schedules that give wrong results, and are the fastest for it: kernels that were not there before schedules
 * are measured do nothing. They do not count, and nothing of them is kept. */
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
#include "vulkan/vulkan_private.h"

/* The second product has a reader of its own, so that there are several kernels, of which all but one may be right. */
static const char text[] = "graph small\ndim n max 64\nx = input f32[n, 96]\n"
                           "w = constant f32[96, 96] random seed=2 scale=0.1\n"
                           "v = constant f32[96, 192] random seed=3 scale=0.1\n"
                           "p = contract(x, w) \"ni,io->no\"\nr = relu(p)\ns = sum(r) axis=0 keep\nt = sub(r, s)\n"
                           "q = contract(t, v) \"ni,io->no\"\noutput y = q\n";

enum { RIVALS = 3, MOST = 512 };

/* Modules by hash, and whose pipelines are which. */
static struct {
    PFN_vkCreateShaderModule create_module;
    PFN_vkCreateComputePipelines create_pipelines;
    PFN_vkCmdBindPipeline bind;
    PFN_vkCmdDispatch dispatch;
    PFN_vkCmdDispatchBase dispatch_base;
    uint64_t known[MOST];
    int known_count;
    bool closed; /* nothing becomes known any more */
    struct {
        void *module;
        bool idle;
    } modules[MOST];
    int module_count;
    struct {
        void *pipeline;
        bool idle;
    } pipelines[MOST];
    int pipeline_count;
    bool idle;   /* the pipeline that is bound */
    int only;    /* of the modules that are not known, this one does nothing; -1: all */
    int unknown; /* so far */
    uint64_t seen[MOST];
    int skipped;
} fake;

static bool is_in(const uint64_t *list, int count, uint64_t hash, int *out_at) {
    for (int i = 0; i < count; i++) {
        if (list[i] != hash) continue;
        *out_at = i;
        return true;
    }
    return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *hooks, VkShaderModule *out) {
    VkResult result = fake.create_module(device, info, hooks, out);
    uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, info->pCode, info->codeSize);
    int at = 0;
    bool idle = false;
    if (result != VK_SUCCESS || fake.module_count == MOST) return result;
    if (!is_in(fake.known, fake.known_count, hash, &at)) {
        if (!fake.closed && fake.known_count < MOST) fake.known[fake.known_count++] = hash;
        idle = fake.closed;
        if (idle && !is_in(fake.seen, fake.unknown, hash, &at)) fake.seen[at = fake.unknown++] = hash;
        idle = idle && (fake.only < 0 || at == fake.only);
    }
    fake.modules[fake.module_count].module = (void *)*out;
    fake.modules[fake.module_count++].idle = idle;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *hooks, VkPipeline *out) {
    VkResult result = fake.create_pipelines(device, cache, count, infos, hooks, out);
    for (int i = fake.module_count - 1; result == VK_SUCCESS && i >= 0; i--) {
        if (fake.modules[i].module != (void *)infos[0].stage.module) continue;
        if (fake.pipeline_count < MOST) {
            fake.pipelines[fake.pipeline_count].pipeline = (void *)out[0];
            fake.pipelines[fake.pipeline_count++].idle = fake.modules[i].idle;
        }
        break;
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer commands, VkPipelineBindPoint point, VkPipeline pipeline) {
    fake.idle = false;
    for (int i = fake.pipeline_count - 1; i >= 0; i--) {
        if (fake.pipelines[i].pipeline != (void *)pipeline) continue;
        fake.idle = fake.pipelines[i].idle;
        break;
    }
    fake.bind(commands, point, pipeline);
}

static VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    fake.skipped += fake.idle;
    if (!fake.idle) fake.dispatch(commands, x, y, z);
}

static VKAPI_ATTR void VKAPI_CALL dispatch_base(VkCommandBuffer commands, uint32_t a, uint32_t b, uint32_t c,
                                                uint32_t x, uint32_t y, uint32_t z) {
    fake.skipped += fake.idle;
    if (!fake.idle) fake.dispatch_base(commands, a, b, c, x, y, z);
}

static void opened(void *user, smg_vk_device *device) {
    (void)user;
    fake.create_module = device->fn.CreateShaderModule;
    fake.create_pipelines = device->fn.CreateComputePipelines;
    fake.bind = device->fn.CmdBindPipeline;
    fake.dispatch = device->fn.CmdDispatch;
    fake.dispatch_base = device->fn.CmdDispatchBase;
    device->fn.CreateShaderModule = create_module;
    device->fn.CreateComputePipelines = create_pipelines;
    device->fn.CmdBindPipeline = bind;
    device->fn.CmdDispatch = dispatch;
    device->fn.CmdDispatchBase = dispatch_base;
}

static void on_progress(void *user, const char *phase, size_t from, size_t to, const char *unit) {
    (void)user, (void)unit, (void)from, (void)to;
    fake.closed = fake.closed || strcmp(phase, "schedules") == 0;
}

static smg_status tune(smg_context *ctx, smg_arena *arena, const char *path, int only, smg_tuned *out) {
    static const int64_t sizes[] = {20};
    const smg_dim dim = {"n", 20};
    const smg_model_desc desc = {.dims = &dim, .dim_count = 1, .no_calibrate = true};
    smg_source source = {.ctx = ctx};
    smg_tensor input;
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "text", &source.graph), SMG_OK);
    assert_int_equal(smg_tensor_fill(ctx, source.graph, 0, sizes, SMG_FILL_RANDOM, 1, arena, &input), SMG_OK);
    const smg_tune_options options = {.rivals = RIVALS,
                                      .seconds = 0.01,
                                      .inputs = &input,
                                      .input_count = 1,
                                      .symbols = sizes,
                                      .path = path,
                                      .opened = opened};
    remove(path); /* what was measured is not measured again */
    memset(&fake, 0, sizeof fake);
    fake.only = only;
    smg_status status = smg_compile_tune(ctx, &source, &desc, &options, arena, out);
    smg_graph_destroy(source.graph);
    return status;
}

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *path;
} fixture;

static int setup(void **state) {
    static fixture f;
    char folder[512];
    const smg_context_desc desc = {.progress = on_progress};
    test_output(folder, sizeof(folder), "tune-wrong");
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_path_make_dirs(f.ctx, folder), SMG_OK);
    f.path = smg_path_join(f.arena, folder, "kept.tuning");
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* All that is not the plan of prices does nothing, and takes no time: no kernel has another schedule in the end. */
static void what_does_nothing_does_not_count(void **state) {
    const fixture *f = *state;
    smg_tuned tuned;
    smg_status status = tune(f->ctx, f->arena, f->path, -1, &tuned);
    if (device_missing(f->ctx, status)) skip();
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(fake.skipped > 0 && tuned.kernel_count > 1);
    assert_true(tuned.wrong > 0 && tuned.failed == 0);
    for (int i = 0; i < tuned.kernel_count; i++) assert_int_equal(tuned.kernels[i].rank, 0);
}

/* One of them does nothing: it is told from those of other kernels that were tried beside it. */
static void one_of_several_is_found(void **state) {
    const fixture *f = *state;
    smg_tuned tuned;
    int found = 0;
    for (int only = 0; only < 4; only++) {
        smg_status status = tune(f->ctx, f->arena, f->path, only, &tuned);
        if (device_missing(f->ctx, status)) skip();
        if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        if (fake.skipped == 0) break; /* there are no more */
        assert_in_range(tuned.wrong, 0, 1);
        found += tuned.wrong;
    }
    assert_true(found > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_does_nothing_does_not_count),
                                       cmocka_unit_test(one_of_several_is_found)};
    return device_result(cmocka_run_group_tests_name("wrong results in tuning", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
