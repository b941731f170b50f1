/* Tuning while the device is lost: schedules that lose it each time that they are run do not count, the others do; a
 * loss in any other part costs what was tried there, and no more; where the device does not come back what was measured
 * is kept, and is not measured again. */
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

static const char one_kernel[] = "graph small\ndim n max 64\nx = input f32[n, 96]\n"
                                 "w = constant f32[96, 96] random seed=2 scale=0.1\n"
                                 "p = contract(x, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n";
static const char several[] = "graph several\ndim n max 64\nx = input f32[n, 96]\n"
                              "w = constant f32[96, 96] random seed=2 scale=0.1\n"
                              "v = constant f32[96, 192] random seed=3 scale=0.1\n"
                              "p = contract(x, w) \"ni,io->no\"\nr = relu(p)\ns = sum(r) axis=0 keep\n"
                              "t = sub(r, s)\nq = contract(t, v) \"ni,io->no\"\nm = sum(q) axis=0 keep\n"
                              "k = sub(q, m)\noutput y = k\n";

enum { RIVALS = 3 };

/* When the device is lost: at a submission of a phase, some after that phase was told so many times. */
typedef struct aim {
    const char *phase; /* "": before the first; NULL: never */
    int calls, after;
    bool stays; /* it does not come back */
} aim;

static struct {
    PFN_vkQueueSubmit submit;
    PFN_vkGetQueryPoolResults results;
    size_t losing; /* the pass that loses the device */
    aim aim;
    char phase[16];
    int calls, schedules;
    bool fired, lost;
    int devices;
} fake;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
    bool there = fake.aim.phase != NULL && strcmp(fake.phase, fake.aim.phase) == 0 && fake.calls >= fake.aim.calls;
    if (there && !fake.fired && fake.aim.after-- == 0) fake.fired = fake.lost = true;
    return fake.lost ? VK_ERROR_DEVICE_LOST : fake.submit(queue, count, infos, fence);
}

/* Each stamp comes sooner after the last than that did: in the passes of one run list the later ones are the fastest,
 * and in turns no plan is. */
static VKAPI_ATTR VkResult VKAPI_CALL results(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count,
                                              size_t size, void *data, VkDeviceSize stride, VkQueryResultFlags flags) {
    uint64_t *ticks = data, ticked = 0;
    VkResult result = fake.results(device, pool, first, count, size, data, stride, flags);
    for (uint32_t i = 0; i < count && result == VK_SUCCESS; i++)
        ticks[i] = ticked += i == 0 ? 1 : (uint64_t)(1e6 / (1 + 0.1 * i));
    return result;
}

static void opened(void *user, smg_vk_device *device) {
    (void)user;
    fake.submit = device->fn.QueueSubmit;
    fake.results = device->fn.GetQueryPoolResults;
    device->fn.QueueSubmit = submit;
    device->fn.GetQueryPoolResults = results;
    if (!fake.aim.stays) fake.lost = false;
    fake.devices++;
}

static void on_progress(void *user, const char *phase, size_t from, size_t to, const char *unit) {
    (void)user, (void)unit;
    if (strcmp(phase, "schedules") == 0 && fake.losing != SIZE_MAX) fake.lost = from <= fake.losing && fake.losing < to;
}

static bool on_phase(void *user, const smg_tune_progress *at) {
    (void)user;
    fake.calls = strcmp(fake.phase, at->phase) == 0 ? fake.calls + 1 : 1;
    fake.schedules += strcmp(at->phase, "schedules") == 0;
    snprintf(fake.phase, sizeof(fake.phase), "%s", at->phase);
    return true;
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
    test_output(folder, sizeof(folder), "tune-lost");
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

static smg_status tune(fixture *f, const char *text, smg_vk_device *on, smg_tuned *out) {
    static const int64_t sizes[] = {20};
    const smg_dim dim = {"n", 20};
    const smg_model_desc desc = {.dims = &dim, .dim_count = 1, .no_calibrate = true, .on = on};
    smg_source source = {.ctx = f->ctx};
    smg_tensor input;
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph), SMG_OK);
    assert_int_equal(smg_tensor_fill(f->ctx, source.graph, 0, sizes, SMG_FILL_RANDOM, 1, f->arena, &input), SMG_OK);
    const smg_tune_options options = {.rivals = RIVALS,
                                      .seconds = 0.01,
                                      .inputs = &input,
                                      .input_count = 1,
                                      .symbols = sizes,
                                      .path = f->path,
                                      .progress = on_phase,
                                      .opened = opened};
    fake.devices = fake.schedules = fake.calls = 0;
    fake.lost = fake.fired = false;
    fake.phase[0] = '\0';
    smg_context_clear_error(f->ctx);
    smg_status status = smg_compile_tune(f->ctx, &source, &desc, &options, f->arena, out);
    smg_graph_destroy(source.graph);
    return status;
}

/* With a file of its own. */
static smg_status tune_anew(fixture *f, const char *text, aim at, smg_vk_device *on, smg_tuned *out) {
    remove(f->path);
    fake.aim = at;
    fake.losing = SIZE_MAX;
    return tune(f, text, on, out);
}

static void each_pass_loses_the_device(void **state) {
    fixture *f = *state;
    for (size_t losing = 0; losing <= RIVALS + 1; losing++) {
        smg_tuned tuned;
        remove(f->path);
        fake.aim = (aim){0};
        fake.losing = losing;
        smg_status status = tune(f, one_kernel, NULL, &tuned);
        if (device_missing(f->ctx, status)) skip();
        if (losing == 0) { /* it is the plan itself */
            assert_int_equal(status, SMG_DEVICE);
            assert_non_null(strstr(smg_context_error(f->ctx), "LOST"));
            continue;
        }
        if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        bool any = losing <= RIVALS;
        assert_int_equal(tuned.failed, any);
        assert_int_equal(fake.devices, any ? 4 : 1); /* one more for all, for half of them, for one */
        assert_int_equal(tuned.kernel_count, 1);
        assert_int_equal(tuned.kernels[0].tried, RIVALS + 1 - any);
    }
}

static int count_lines(fixture *f, const char *word) {
    char *text = NULL;
    size_t size = 0;
    int count = 0;
    if (!smg_file_exists(f->path)) return 0;
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_file_read(f->ctx, f->path, &text, &size), SMG_OK);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
    smg_free(f->ctx, text, size + 1);
    return count;
}

static int count_schedules(fixture *f) {
    return count_lines(f, "\npasses ") + count_lines(f, "\nbeaten ");
}

/* One loss, and how many candidates it costs. */
static void lose_once(fixture *f, const char *text, aim at, int failed, smg_tuned *out) {
    smg_status status = tune_anew(f, text, at, NULL, out);
    if (device_missing(f->ctx, status)) skip();
    if (status != SMG_OK) fail_msg("%s: %s", at.phase, smg_context_error(f->ctx));
    assert_true(fake.fired);
    assert_int_equal(fake.devices, 2);
    assert_int_equal(out->failed, failed);
    assert_true(out->kernel_count > 0 && out->path != NULL);
}

/* Nothing is compared with it then, or its steps have no times. */
static void the_unfused_plan_is_lost(void **state) {
    smg_tuned tuned;
    lose_once(*state, one_kernel, (aim){.phase = ""}, 0, &tuned);
    assert_int_equal(count_lines(*state, "\nalone "), 0);
    lose_once(*state, one_kernel, (aim){.phase = "", .after = 20}, 0, &tuned);
    assert_int_equal(count_lines(*state, "\nalone "), 0);
}

static void a_cut_is_lost(void **state) {
    smg_tuned whole, tuned;
    smg_status status = tune_anew(*state, several, (aim){0}, NULL, &whole);
    if (device_missing(((fixture *)*state)->ctx, status)) skip();
    assert_true(status == SMG_OK && whole.cuts_tried > 1 && whole.failed == 0);
    lose_once(*state, several, (aim){.phase = "cuts", .calls = 1}, 1, &tuned);
    assert_int_equal(tuned.cuts_tried, whole.cuts_tried); /* the others were run all the same */
    assert_int_equal(count_lines(*state, "\ntried "), whole.cuts_tried - 1);
}

/* A loss that does not come again is no schedule's. */
static void the_passes_are_lost(void **state) {
    smg_tuned tuned;
    lose_once(*state, one_kernel, (aim){.phase = "schedules", .calls = 1}, 0, &tuned);
    assert_int_equal(tuned.kernels[0].tried, RIVALS + 1);
}

/* The plan of prices as it is opened, then the candidates of all kernels. */
static void turns_are_lost(void **state) {
    smg_tuned tuned;
    int tried = 0;
    lose_once(*state, one_kernel, (aim){.phase = "turns", .calls = 1}, 0, &tuned);
    assert_true(tuned.taken);
    smg_status status = tune_anew(*state, several, (aim){.phase = "turns", .calls = 2}, NULL, &tuned);
    assert_true(status == SMG_OK && fake.fired && fake.devices == 2 && tuned.taken);
    assert_in_range(tuned.failed, 2, tuned.kernel_count);
    for (int i = 0; i < tuned.kernel_count; i++) tried += tuned.kernels[i].tried;
    assert_int_equal(count_schedules(*state), tried - tuned.failed);
}

/* The tuned plan is not taken, what was measured is kept. */
static void the_whole_is_lost(void **state) {
    smg_tuned tuned;
    lose_once(*state, one_kernel, (aim){.phase = "whole", .calls = 1}, 1, &tuned);
    assert_true(!tuned.taken && count_lines(*state, "\nkernel ") == 0);
    assert_int_equal(count_schedules(*state), RIVALS + 1);
}

/* Fails, with the first sentence about it. What was measured is kept, so that the next run measures no schedule. */
static void lose_for_good(fixture *f, const char *text, aim at, smg_vk_device *on, int schedules) {
    smg_tuned tuned;
    smg_status status = tune_anew(f, text, at, on, &tuned);
    if (device_missing(f->ctx, status)) skip();
    assert_true(fake.fired);
    assert_int_equal(status, SMG_DEVICE);
    assert_non_null(strstr(smg_context_error(f->ctx), "LOST"));
    assert_int_equal(count_schedules(f), schedules);
    assert_true(count_lines(f, "\nalone ") > 0);
    if (schedules <= RIVALS) return;
    fake.aim = (aim){0};
    if (tune(f, text, NULL, &tuned) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(fake.schedules, 0);
    assert_int_equal(tuned.kernels[0].tried, RIVALS + 1);
    assert_true(tuned.taken);
}

static void the_device_does_not_come_back(void **state) {
    lose_for_good(*state, one_kernel, (aim){.phase = "schedules", .calls = 1, .stays = true}, NULL, RIVALS + 1);
    lose_for_good(*state, one_kernel, (aim){.phase = "turns", .calls = 2, .stays = true}, NULL, RIVALS);
}

static void lose_own(fixture *f, const char *text, aim at, int schedules) {
    smg_vk_device *device = NULL;
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &device);
    if (device_missing(f->ctx, status)) skip();
    assert_int_equal(status, SMG_OK);
    lose_for_good(f, text, at, device, schedules);
    smg_vk_close(device);
}

static void an_applications_device_is_lost(void **state) {
    lose_own(*state, several, (aim){.phase = "cuts", .calls = 1}, 0);
    lose_own(*state, one_kernel, (aim){.phase = "schedules", .calls = 1}, RIVALS + 1);
}

static void it_is_lost_later(void **state) {
    lose_own(*state, one_kernel, (aim){.phase = "turns", .calls = 2}, RIVALS + 1);
    lose_own(*state, one_kernel, (aim){.phase = "whole", .calls = 1}, RIVALS + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_pass_loses_the_device),
                                       cmocka_unit_test(the_unfused_plan_is_lost),
                                       cmocka_unit_test(a_cut_is_lost),
                                       cmocka_unit_test(the_passes_are_lost),
                                       cmocka_unit_test(turns_are_lost),
                                       cmocka_unit_test(the_whole_is_lost),
                                       cmocka_unit_test(the_device_does_not_come_back),
                                       cmocka_unit_test(an_applications_device_is_lost),
                                       cmocka_unit_test(it_is_lost_later)};
    return device_result(cmocka_run_group_tests_name("tuning loses the device", tests, setup, teardown));
}

#else

int main(void) {
    return 77;
}

#endif
