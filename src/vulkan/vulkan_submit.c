/* Running a recording: submit, wait, and read its timestamps. Nothing here allocates. */
#include "vulkan/vulkan_recording.h"

VkResult smg_vk_queue_submit(smg_vk_device *dev, const VkSubmitInfo *info, VkFence fence) {
    if (dev->lock_queue) dev->lock_queue(dev->lock_user);
    VkResult result = dev->fn.QueueSubmit(dev->queue, 1, info, fence);
    if (dev->unlock_queue) dev->unlock_queue(dev->lock_user);
    return result;
}

void smg_vk_queue_wait_idle(smg_vk_device *dev) {
    if (dev->lock_queue) dev->lock_queue(dev->lock_user);
    dev->fn.QueueWaitIdle(dev->queue);
    if (dev->unlock_queue) dev->unlock_queue(dev->lock_user);
}

smg_status smg_vk_submit(smg_vk_recording *rec) {
    smg_vk_device *dev = rec->dev;
    SMG_TRY(smg_vk_check_alive(dev));
    if (rec->status != SMG_OK) return rec->status;
    if (!rec->ended || rec->in_flight)
        return smg_fail(dev->ctx, SMG_INVALID, "submit: the recording %s",
                        rec->ended ? "is already in flight" : "has not ended");
    VkResult result = dev->fn.ResetFences(dev->handle, 1, &rec->fence);
    SMG_TRY(smg_vk_result(dev, result, "vkResetFences", "recording"));
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &rec->commands,
    };
    result = smg_vk_queue_submit(dev, &info, rec->fence);
    rec->in_flight = result == VK_SUCCESS;
    return smg_vk_result(dev, result, "vkQueueSubmit", "recording");
}

/* Who asked for validation is to hear of it, whatever becomes of the log: every later run fails. */
static smg_status check_validation(const smg_vk_device *dev) {
    const smg_vk_instance *instance = dev->instance;
    if (instance->validation_messages == 0) return SMG_OK;
    return smg_fail(dev->ctx, SMG_INTERNAL, "the validation layer has %d messages, the first: %s",
                    instance->validation_messages, instance->validation_first);
}

smg_status smg_vk_wait(smg_vk_recording *rec, double spin_seconds) {
    smg_vk_device *dev = rec->dev;
    if (!rec->in_flight) return smg_vk_check_alive(dev);
    VkResult result = VK_NOT_READY;
    if (spin_seconds > 0) {
        double end = smg_clock_seconds() + spin_seconds;
        do {
            result = dev->fn.GetFenceStatus(dev->handle, rec->fence);
        } while (result == VK_NOT_READY && smg_clock_seconds() < end);
    }
    if (result == VK_NOT_READY) result = dev->fn.WaitForFences(dev->handle, 1, &rec->fence, VK_TRUE, UINT64_MAX);
    /* A loss may be told while the driver's threads are still at work on what the caller destroys next. */
    if (result != VK_SUCCESS) smg_vk_queue_wait_idle(dev);
    rec->in_flight = false;
    rec->has_run = result == VK_SUCCESS;
    SMG_TRY(smg_vk_result(dev, result, "vkWaitForFences", "recording"));
    return check_validation(dev);
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
