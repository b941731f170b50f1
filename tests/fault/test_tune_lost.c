/* Tuning with schedules that lose the device, each time that they are run: they do not count, the others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/output.h"

#if SMG_VULKAN
#include "vulkan/vulkan_private.h"

static const char text[] = "graph small\ndim n max 64\nx = input f32[n, 96]\n"
                           "w = constant f32[96, 96] random seed=2 scale=0.1\n"
                           "p = contract(x, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n";

enum { RIVALS = 3 };

static PFN_vkQueueSubmit real_submit;
static size_t losing; /* the pass that loses the device */
static bool lost;     /* it is among those at hand */
static int devices;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
    return lost ? VK_ERROR_DEVICE_LOST : real_submit(queue, count, infos, fence);
}

static void opened(void *user, smg_vk_device *device) {
    (void)user;
    real_submit = device->fn.QueueSubmit;
    device->fn.QueueSubmit = submit;
    lost = false;
    devices++;
}

static void on_progress(void *user, const char *phase, size_t from, size_t to, const char *unit) {
    (void)user, (void)unit;
    if (strcmp(phase, "schedules") == 0) lost = from <= losing && losing < to;
}

static smg_status tune(smg_context *ctx, smg_arena *arena, const char *path, smg_tuned *out) {
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
    devices = 0;
    lost = false;
    smg_status status = smg_compile_tune(ctx, &source, &desc, &options, arena, out);
    smg_graph_destroy(source.graph);
    return status;
}

static void each_pass_loses_the_device(void **state) {
    (void)state;
    char folder[512];
    smg_context *ctx = NULL;
    smg_arena *arena = NULL;
    const smg_context_desc desc = {.progress = on_progress};
    test_output(folder, sizeof(folder), "tune-lost");
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_path_make_dirs(ctx, folder), SMG_OK);
    const char *path = smg_path_join(arena, folder, "kept.tuning");
    bool missing = false;
    for (losing = 0; losing <= RIVALS + 1 && !missing; losing++) {
        smg_tuned tuned;
        smg_status status = tune(ctx, arena, path, &tuned);
        missing = device_missing(ctx, status);
        if (missing) continue;
        if (losing == 0) { /* it is the plan itself */
            assert_int_equal(status, SMG_DEVICE);
            assert_non_null(strstr(smg_context_error(ctx), "LOST"));
            smg_context_clear_error(ctx);
            continue;
        }
        if (status != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        bool any = losing <= RIVALS;
        assert_int_equal(tuned.failed, any);
        assert_int_equal(devices, any ? 4 : 1); /* one more for all, for half of them, for one */
        assert_int_equal(tuned.kernel_count, 1);
        assert_int_equal(tuned.kernels[0].tried, RIVALS + 1 - any);
    }
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
    if (missing) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_pass_loses_the_device)};
    return device_result(cmocka_run_group_tests_name("tuning loses the device", tests, NULL, NULL));
}

#else

int main(void) {
    return 77;
}

#endif
