/* Runs in command buffers of an application's give the bits of those that smg submits, as often as the commands run, on
 * arrays of the host and on tensors; until the application says that they are over, nothing else runs on the model. All
 * of it where the host sees the device's memory, and where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/runs.h"

#if SMG_VULKAN
#include "program/program_private.h"
#include "runtime/runtime.h"
#include "smg/vulkan.h"
#include "vulkan/vulkan_private.h"

/* ---- the application's -------------------------------------------------------------------------------- */

static VkCommandBuffer begin(const runs *f) {
    smg_vk_device *dev = f->device;
    VkCommandBuffer commands = NULL;
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = dev->pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    assert_int_equal(dev->fn.AllocateCommandBuffers(dev->handle, &allocate, &commands), VK_SUCCESS);
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    assert_int_equal(dev->fn.BeginCommandBuffer(commands, &info), VK_SUCCESS);
    return commands;
}

static void end(const runs *f, VkCommandBuffer commands) {
    assert_int_equal(f->device->fn.EndCommandBuffer(commands), VK_SUCCESS);
}

static void execute(const runs *f, VkCommandBuffer commands) {
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    assert_int_equal(f->device->fn.QueueSubmit(f->device->queue, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
    assert_int_equal(f->device->fn.QueueWaitIdle(f->device->queue), VK_SUCCESS);
    assert_int_equal(smg_vk_validation_errors(f->device), 0);
}

static void drop(const runs *f, VkCommandBuffer commands) {
    f->device->fn.FreeCommandBuffers(f->device->handle, f->device->pool, 1, &commands);
}

static smg_status record(smg_model *m, arrays *a, VkCommandBuffer commands, smg_ticket *out_ticket) {
    return smg_vk_model_record(m, a->in, 2, a->out, 2, commands, out_ticket);
}

/* ---- tests -------------------------------------------------------------------------------------------- */

static void arrays_of_the_host(void **state) {
    runs *f = *state;
    if (f->missing) skip();
    for (int i = 0; i < 4; i++) {
        int64_t rows = i % 2 ? ROWS : 7;
        smg_ticket ticket;
        find_wanted(f, rows);
        arrays a = arrays_of(f, rows, NULL, NULL);
        VkCommandBuffer commands = begin(f);
        expect_ok(f, record(f->a, &a, commands, &ticket));
        assert_true(a.out[0].rank == 2 && a.out[0].dims[0] == rows);
        end(f, commands);
        for (int again = 0; again <= i; again++) execute(f, commands);
        expect_ok(f, smg_vk_ticket_over(ticket, true));
        expect_wanted(f, rows);
        drop(f, commands);
        /* And a run that smg submits. */
        memset(f->got, 0, sizeof(f->got));
        expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
        expect_wanted(f, rows);
    }
}

/* One run behind the other in one command buffer, with inputs that change between its executions. */
static void a_chain_of_tensors(void **state) {
    runs *f = *state;
    smg_device_tensor *t = NULL, *u = NULL, *x = NULL;
    smg_ticket first, second;
    static float once[ALL];
    if (f->missing) skip();
    expect_ok(f, smg_model_create_tensor(f->a, "x", ALL, &x));
    expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &t));
    expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &u));
    arrays up = arrays_of(f, ROWS, x, t), down = arrays_of(f, ROWS, t, u);
    for (int i = 0; i < 3; i++) {
        f->x[0] = (float)i / 4;
        arrays a = arrays_of(f, ROWS, NULL, NULL);
        a.out[0].data = once;
        expect_ok(f, smg_model_run(f->b, a.in, 2, a.out, 2));
        a.in[1].data = once;
        a.out[0].data = f->want;
        expect_ok(f, smg_model_run(f->b, a.in, 2, a.out, 2));
        expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
        VkCommandBuffer commands = begin(f);
        expect_ok(f, record(f->a, &up, commands, &first));
        expect_ok(f, record(f->b, &down, commands, &second));
        end(f, commands);
        execute(f, commands);
        execute(f, commands);
        expect_refused(f, smg_tensor_download(u, 0, f->got, ALL), SMG_INVALID, "is used by a run in flight");
        expect_ok(f, smg_vk_ticket_over(second, true));
        expect_ok(f, smg_vk_ticket_over(first, true));
        drop(f, commands);
        expect_ok(f, smg_tensor_download(u, 0, f->got, ALL));
        assert_memory_equal(f->got, f->want, sizeof(f->want));
    }
    smg_tensor_destroy(x);
    smg_tensor_destroy(t);
    smg_tensor_destroy(u);
}

/* Sizes that a recording of a range reads from memory. */
static void ranges(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    if (f->missing) skip();
    expect_ok(f, smg_model_set_range(f->a, "n", 1, 32));
    for (int64_t rows = 3; rows <= ROWS; rows += 17) {
        find_wanted(f, rows);
        arrays a = arrays_of(f, rows, NULL, NULL);
        VkCommandBuffer commands = begin(f);
        expect_ok(f, record(f->a, &a, commands, &ticket));
        end(f, commands);
        execute(f, commands);
        expect_ok(f, smg_vk_ticket_over(ticket, true));
        expect_wanted(f, rows);
        drop(f, commands);
    }
    expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
}

static PFN_vkCmdDispatchBase dispatch_base;
static int slices;
static VKAPI_ATTR void VKAPI_CALL count_slice(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z, uint32_t w,
                                              uint32_t h, uint32_t d) {
    slices++;
    dispatch_base(commands, x, y, z, w, h, d);
}

/* Dispatches keep to their budget there, too, at sizes of a range and others. */
static void budgets(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    if (f->missing) skip();
    dispatch_base = f->device->fn.CmdDispatchBase;
    f->device->fn.CmdDispatchBase = count_slice;
    expect_ok(f, smg_model_set_budget(f->a, 1e-9, 0));
    for (int i = 0; i < 4; i++) {
        int64_t rows = i % 2 ? ROWS : 7;
        if (i == 2) expect_ok(f, smg_model_set_range(f->a, "n", 1, 32));
        find_wanted(f, rows);
        arrays a = arrays_of(f, rows, NULL, NULL);
        expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
        VkCommandBuffer commands = begin(f);
        slices = 0;
        expect_ok(f, record(f->a, &a, commands, &ticket));
        assert_true(slices > 2);
        end(f, commands);
        memset(f->got, 0, sizeof(f->got));
        execute(f, commands);
        execute(f, commands);
        expect_ok(f, smg_vk_ticket_over(ticket, true));
        expect_wanted(f, rows);
        drop(f, commands);
    }
    f->device->fn.CmdDispatchBase = dispatch_base;
    expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
}

static void one_at_a_time(void **state) {
    runs *f = *state;
    smg_ticket ticket, other;
    bool done = true;
    if (f->missing) skip();
    arrays a = arrays_of(f, ROWS, NULL, NULL), b = a;
    VkCommandBuffer commands = begin(f);
    expect_refused(f, record(f->a, &a, NULL, &other), SMG_INVALID, "the command buffer is null");
    assert_int_equal(record(f->a, &a, commands, NULL), SMG_INVALID);
    assert_int_equal(record(NULL, &a, commands, &other), SMG_INVALID);
    expect_ok(f, record(f->a, &a, commands, &ticket));
    end(f, commands);
    expect_refused(f, smg_model_run(f->a, b.in, 2, b.out, 2), SMG_INVALID, "in flight: wait for its ticket");
    expect_refused(f, record(f->a, &b, commands, &other), SMG_INVALID, "in flight: wait for its ticket");
    expect_refused(f, smg_ticket_wait(ticket, -1, &done), SMG_INVALID, "in a command buffer of the application's");
    assert_false(done);
    /* It never ran. */
    expect_ok(f, smg_vk_ticket_over(ticket, false));
    expect_refused(f, smg_vk_ticket_over(ticket, false), SMG_INVALID, "is of no command buffer");
    expect_ok(f, smg_ticket_wait(ticket, -1, &done));
    assert_true(done);
    drop(f, commands);
    expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &other));
    expect_refused(f, smg_vk_ticket_over(other, true), SMG_INVALID, "is of no command buffer");
    expect_ok(f, smg_ticket_wait(other, -1, NULL));
    assert_int_equal(smg_vk_ticket_over((smg_ticket){0}, true), SMG_INVALID);
}

static void a_run_that_fails(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    if (f->missing) skip();
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    find_wanted(f, ROWS);
    f->ids[3] = 77;
    VkCommandBuffer commands = begin(f);
    expect_ok(f, record(f->a, &a, commands, &ticket));
    f->ids[3] = 3;
    end(f, commands);
    execute(f, commands);
    expect_refused(f, smg_vk_ticket_over(ticket, true), SMG_INVALID, "index 77 outside its table [0, 6)");
    drop(f, commands);
    expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
    expect_wanted(f, ROWS);
}

/* A command buffer brings them whatever lies there; one that never ran has brought none. */
static void inputs_set_ahead(void **state) {
    runs *f = *state;
    static const float zeros[ALL];
    smg_model *m = NULL;
    smg_vk_buffer *memory = NULL;
    int buffer = 0;
    if (f->missing) skip();
    find_wanted(f, ROWS);
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, runs_open(f, &m));
    expect_ok(f, smg_model_set_input(m, &a.in[1]));
    for (int ran = 0; ran < 2; ran++) {
        smg_ticket ticket;
        VkCommandBuffer commands = begin(f);
        if (ran) {
            const smg_program *p = smg_model_program(m);
            expect_ok(f, smg_program_find(smg_model_program(m), SMG_BUFFER_INPUT, "x", &buffer));
            const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
            expect_ok(f, smg_vk_upload(memory, place->offset, zeros, sizeof(zeros)));
        }
        expect_ok(f, smg_vk_model_record(m, a.in, 1, a.out, 2, commands, &ticket));
        end(f, commands);
        if (ran) execute(f, commands);
        expect_ok(f, smg_vk_ticket_over(ticket, ran));
        drop(f, commands);
        if (ran) expect_wanted(f, ROWS);
        memset(f->got, 0, sizeof(f->got));
        expect_ok(f, smg_model_run(m, a.in, 1, a.out, 2));
        expect_wanted(f, ROWS);
    }
    smg_model_close(m);
}

/* A model and a tensor go while a command buffer has them that never runs. */
static void what_goes_early(void **state) {
    runs *f = *state;
    smg_model *m = NULL;
    smg_device_tensor *y = NULL;
    smg_ticket ticket;
    if (f->missing) skip();
    expect_ok(f, runs_open(f, &m));
    expect_ok(f, smg_model_create_tensor(m, "y", ALL, &y));
    arrays a = arrays_of(f, ROWS, NULL, y);
    VkCommandBuffer commands = begin(f);
    expect_ok(f, record(m, &a, commands, &ticket));
    end(f, commands);
    drop(f, commands);
    smg_tensor_destroy(y);
    smg_model_close(m);
    assert_int_equal(smg_vk_validation_errors(f->device), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_the_host),
        cmocka_unit_test(a_chain_of_tensors),
        cmocka_unit_test(ranges),
        cmocka_unit_test(budgets),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(a_run_that_fails),
        cmocka_unit_test(inputs_set_ahead),
        cmocka_unit_test(what_goes_early),
    };
    int failed = cmocka_run_group_tests_name("commands, seen memory", tests, runs_setup, runs_teardown);
    runs_flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("commands, unseen memory", tests, runs_setup, runs_teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
