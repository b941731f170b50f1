/* Running a recording: submit, wait, and read its timestamps. Nothing here allocates. */
#include <math.h>

#include "vulkan/vulkan_recording.h"

#include "smg/vulkan.h"

static void take_queue(const smg_vk_device *dev) {
    smg_lock_take(dev->common->queue_lock);
    if (dev->lock_queue) dev->lock_queue(dev->lock_user);
}

static void give_queue(const smg_vk_device *dev) {
    if (dev->unlock_queue) dev->unlock_queue(dev->lock_user);
    smg_lock_give(dev->common->queue_lock);
}

VkResult smg_vk_queue_submit(smg_vk_device *dev, const VkSubmitInfo *info, VkFence fence) {
    take_queue(dev);
    VkResult result = dev->fn.QueueSubmit(dev->queue, 1, info, fence);
    give_queue(dev);
    return result;
}

void smg_vk_queue_wait_idle(smg_vk_device *dev) {
    take_queue(dev);
    dev->fn.QueueWaitIdle(dev->queue);
    give_queue(dev);
}

/* ---- points of timelines -------------------------------------------------------------------- */

enum { MOST_POINTS = 16 };

typedef struct points {
    VkSemaphore semaphores[MOST_POINTS];
    uint64_t values[MOST_POINTS];
    uint32_t count;
} points;

static smg_status take_points(smg_vk_device *dev, const char *what, const smg_vulkan_point *list, uint32_t count,
                              points *out) {
    if (count > MOST_POINTS || (count > 0 && !list))
        return smg_fail(dev->ctx, SMG_INVALID, "%u points to %s, %d are possible", (unsigned)count, what,
                        list ? MOST_POINTS : 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!list[i].semaphore)
            return smg_fail(dev->ctx, SMG_INVALID, "point %u to %s: no semaphore", (unsigned)i, what);
        out->semaphores[i] = list[i].semaphore;
        out->values[i] = list[i].value;
    }
    out->count = count;
    return SMG_OK;
}

typedef struct timelines {
    points waits, signals;
    VkPipelineStageFlags stages[MOST_POINTS];
    VkTimelineSemaphoreSubmitInfo info;
} timelines;

static smg_status take_sync(smg_vk_device *dev, const smg_vulkan_sync *sync, timelines *t, VkSubmitInfo *io_info) {
    SMG_TRY(take_points(dev, "wait for", sync->waits, sync->wait_count, &t->waits));
    SMG_TRY(take_points(dev, "signal", sync->signals, sync->signal_count, &t->signals));
    for (uint32_t i = 0; i < t->waits.count; i++)
        t->stages[i] = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    t->info = (VkTimelineSemaphoreSubmitInfo){.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .waitSemaphoreValueCount = t->waits.count,
                                              .pWaitSemaphoreValues = t->waits.values,
                                              .signalSemaphoreValueCount = t->signals.count,
                                              .pSignalSemaphoreValues = t->signals.values};
    io_info->pNext = &t->info;
    io_info->waitSemaphoreCount = t->waits.count;
    io_info->pWaitSemaphores = t->waits.semaphores;
    io_info->pWaitDstStageMask = t->stages;
    io_info->signalSemaphoreCount = t->signals.count;
    io_info->pSignalSemaphores = t->signals.semaphores;
    return SMG_OK;
}

bool smg_vk_sync_signals(const struct smg_vulkan_sync *sync) {
    return sync && sync->signal_count > 0;
}

/* ---- submit, wait --------------------------------------------------------------------------- */

static smg_status check_ready(const smg_vk_recording *rec) {
    if (rec->status != SMG_OK) return rec->status;
    if (rec->ended && !rec->in_flight && !rec->borrowed) return SMG_OK;
    return smg_fail(rec->dev->ctx, SMG_INVALID, "submit: the recording %s",
                    rec->borrowed ? "is in another's command buffer"
                    : rec->ended  ? "is already in flight"
                                  : "has not ended");
}

smg_status smg_vk_submit_with(smg_vk_recording *rec, smg_vk_recording *before, smg_vk_recording *after,
                              const struct smg_vulkan_sync *sync) {
    smg_vk_device *dev = rec->dev;
    smg_vk_recording *const list[] = {before, rec, after};
    VkCommandBuffer commands[SMG_COUNT_OF(list)];
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pCommandBuffers = commands};
    timelines t = {0};
    SMG_TRY(smg_vk_check_alive(dev));
    for (size_t i = 0; i < SMG_COUNT_OF(list); i++) {
        if (!list[i]) continue;
        SMG_TRY(check_ready(list[i]));
        commands[info.commandBufferCount++] = list[i]->commands;
    }
    if (sync) SMG_TRY(take_sync(dev, sync, &t, &info));
    VkResult result = dev->fn.ResetFences(dev->handle, 1, &rec->fence);
    SMG_TRY(smg_vk_result(dev, result, "vkResetFences", "recording"));
    result = smg_vk_queue_submit(dev, &info, rec->fence);
    rec->in_flight = result == VK_SUCCESS;
    return smg_vk_result(dev, result, "vkQueueSubmit", "recording");
}

smg_status smg_vk_submit(smg_vk_recording *rec) {
    return smg_vk_submit_with(rec, NULL, NULL, NULL);
}

/* Who asked for validation is to hear of it, whatever becomes of the log: every later run fails. */
static smg_status check_validation(const smg_vk_device *dev) {
    const smg_vk_instance *instance = dev->instance;
    if (instance->validation_messages == 0) return SMG_OK;
    return smg_fail(dev->ctx, SMG_INTERNAL, "the validation layer has %d messages, the first: %s",
                    instance->validation_messages, instance->validation_first);
}

static uint64_t nanoseconds(double seconds) {
    if (seconds <= 0) return 0;
    return seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_MAX;
}

smg_status smg_vk_wait_for(smg_vk_recording *rec, double spin_seconds, double seconds, bool *out_done) {
    smg_vk_device *dev = rec->dev;
    *out_done = true;
    if (!rec->in_flight) return smg_vk_check_alive(dev);
    VkResult result = dev->fn.GetFenceStatus(dev->handle, rec->fence);
    double start = smg_clock_seconds(), spin = spin_seconds < seconds ? spin_seconds : seconds;
    while (result == VK_NOT_READY && smg_clock_seconds() < start + spin)
        result = dev->fn.GetFenceStatus(dev->handle, rec->fence);
    if (result == VK_NOT_READY && seconds > spin)
        result = dev->fn.WaitForFences(dev->handle, 1, &rec->fence, VK_TRUE, nanoseconds(seconds - spin));
    if (result == VK_NOT_READY || result == VK_TIMEOUT) {
        *out_done = false;
        return SMG_OK;
    }
    /* A loss may be told while the driver's threads are still at work on what the caller destroys next. */
    if (result != VK_SUCCESS) smg_vk_queue_wait_idle(dev);
    rec->in_flight = false;
    rec->has_run = result == VK_SUCCESS;
    SMG_TRY(smg_vk_result(dev, result, "vkWaitForFences", "recording"));
    return check_validation(dev);
}

smg_status smg_vk_wait(smg_vk_recording *rec, double spin_seconds) {
    bool done = false;
    return smg_vk_wait_for(rec, spin_seconds, HUGE_VAL, &done);
}

smg_status smg_vk_run(smg_vk_recording *rec) {
    SMG_TRY(smg_vk_submit(rec));
    return smg_vk_wait(rec, 0);
}

smg_status smg_vk_timestamps(smg_vk_recording *rec, double *out_seconds, int count) {
    smg_vk_device *dev = rec->dev;
    if (!rec->queries)
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "the queue of '%s' has no timestamps%s", dev->target.name,
                        rec->slot_count ? "" : ", and the recording asked for none");
    if (count < 1 || count > rec->slot_count || rec->in_flight || !rec->has_run)
        return smg_fail(dev->ctx, SMG_INVALID, "%d timestamps of a recording with %d that %s", count, rec->slot_count,
                        rec->has_run ? "has run" : "has not run");
    for (int i = 0; i < count; i++)
        if (!rec->slot_used[i]) return smg_fail(dev->ctx, SMG_INVALID, "timestamp %d was not recorded", i);
    VkResult result =
        dev->fn.GetQueryPoolResults(dev->handle, rec->queries, 0, (uint32_t)count, (size_t)count * sizeof(uint64_t),
                                    rec->ticks, sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    if (result == VK_NOT_READY)
        return smg_fail(dev->ctx, SMG_DEVICE, "vkGetQueryPoolResults on '%s': no timestamp was written",
                        dev->target.name);
    SMG_TRY(smg_vk_result(dev, result, "vkGetQueryPoolResults", "recording"));
    uint64_t mask = dev->timestamp_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << dev->timestamp_bits) - 1;
    double tick = (double)dev->properties.limits.timestampPeriod * 1e-9;
    for (int i = 0; i < count; i++) out_seconds[i] = (double)((rec->ticks[i] - rec->ticks[0]) & mask) * tick;
    return SMG_OK;
}
