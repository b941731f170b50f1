/* Moving bytes between host and device. Mapped buffers are written directly; for the others, two
 * halves of one staging buffer alternate, so that the copy by the host and the copy by the device
 * overlap. All calls block until the bytes are where they belong. */
#include "vulkan/vulkan_private.h"

#include <stdatomic.h>

enum { CHUNK_BYTES = 16 * 1024 * 1024, COPY_BYTES = 1024 * 1024, SLOTS = 2 };

static const uint64_t no_timeout = UINT64_MAX;

static VkPipelineStageFlags stages_of(int kinds) {
    VkPipelineStageFlags stages = 0;
    if (kinds & SMG_VK_COMPUTE) stages |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    if (kinds & SMG_VK_COPY) stages |= VK_PIPELINE_STAGE_TRANSFER_BIT;
    return stages;
}

static VkAccessFlags writes_of(int kinds) {
    return ((kinds & SMG_VK_COMPUTE) ? (VkAccessFlags)VK_ACCESS_SHADER_WRITE_BIT : 0u) |
           ((kinds & SMG_VK_COPY) ? (VkAccessFlags)VK_ACCESS_TRANSFER_WRITE_BIT : 0u);
}

static VkAccessFlags reads_of(int kinds) {
    return ((kinds & SMG_VK_COMPUTE) ? (VkAccessFlags)VK_ACCESS_SHADER_READ_BIT : 0u) |
           ((kinds & SMG_VK_COPY) ? (VkAccessFlags)VK_ACCESS_TRANSFER_READ_BIT : 0u);
}

void smg_vk_barrier(const smg_vk_device *dev, VkCommandBuffer commands, int before, int after) {
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = writes_of(before),
        .dstAccessMask = reads_of(after) | writes_of(after),
    };
    dev->fn.CmdPipelineBarrier(commands, stages_of(before), stages_of(after), 0, 1, &barrier, 0, NULL, 0, NULL);
}

void smg_vk_full_barrier(const smg_vk_device *dev, VkCommandBuffer commands) {
    smg_vk_barrier(dev, commands, SMG_VK_ANYTHING, SMG_VK_ANYTHING);
}

void smg_vk_host_barrier(const smg_vk_device *dev, VkCommandBuffer commands) {
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT,
    };
    dev->fn.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                               VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* ---- slots ---------------------------------------------------------------------------------- */

smg_status smg_vk_transfer_create(smg_vk_device *dev) {
    for (int i = 0; i < SLOTS; i++) {
        smg_vk_transfer *slot = &dev->transfer[i];
        if (!slot->commands) {
            const VkCommandBufferAllocateInfo info = {
                .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                .commandPool = dev->pool,
                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                .commandBufferCount = 1,
            };
            VkResult result = dev->fn.AllocateCommandBuffers(dev->handle, &info, &slot->commands);
            if (result != VK_SUCCESS) slot->commands = NULL;
            SMG_TRY(smg_vk_result(dev, result, "vkAllocateCommandBuffers", "transfer"));
        }
        if (!slot->fence) {
            const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
            VkResult result = dev->fn.CreateFence(dev->handle, &info, NULL, &slot->fence);
            if (result != VK_SUCCESS) slot->fence = VK_NULL_HANDLE;
            SMG_TRY(smg_vk_result(dev, result, "vkCreateFence", "transfer"));
        }
    }
    return SMG_OK;
}

static smg_status slot_wait(smg_vk_device *dev, smg_vk_transfer *slot) {
    if (!slot->in_flight) return SMG_OK;
    slot->in_flight = false;
    VkResult result = dev->fn.WaitForFences(dev->handle, 1, &slot->fence, VK_TRUE, no_timeout);
    return smg_vk_result(dev, result, "vkWaitForFences", "transfer");
}

void smg_vk_transfer_destroy(smg_vk_device *dev) {
    for (int i = 0; i < SLOTS; i++) {
        smg_vk_transfer *slot = &dev->transfer[i];
        if (slot->in_flight) dev->fn.WaitForFences(dev->handle, 1, &slot->fence, VK_TRUE, no_timeout);
        if (slot->fence) dev->fn.DestroyFence(dev->handle, slot->fence, NULL);
        if (slot->commands) dev->fn.FreeCommandBuffers(dev->handle, dev->pool, 1, &slot->commands);
        *slot = (smg_vk_transfer){0};
    }
    smg_vk_buffer_destroy(dev->staging);
    dev->staging = NULL;
}

static smg_status slot_begin(smg_vk_device *dev, smg_vk_transfer *slot) {
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult result = dev->fn.BeginCommandBuffer(slot->commands, &info);
    SMG_TRY(smg_vk_result(dev, result, "vkBeginCommandBuffer", "transfer"));
    smg_vk_full_barrier(dev, slot->commands);
    return SMG_OK;
}

static smg_status slot_submit(smg_vk_device *dev, smg_vk_transfer *slot) {
    smg_vk_full_barrier(dev, slot->commands);
    smg_vk_host_barrier(dev, slot->commands);
    VkResult result = dev->fn.EndCommandBuffer(slot->commands);
    SMG_TRY(smg_vk_result(dev, result, "vkEndCommandBuffer", "transfer"));
    result = dev->fn.ResetFences(dev->handle, 1, &slot->fence);
    SMG_TRY(smg_vk_result(dev, result, "vkResetFences", "transfer"));
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &slot->commands,
    };
    result = smg_vk_queue_submit(dev, &info, slot->fence);
    slot->in_flight = result == VK_SUCCESS;
    return smg_vk_result(dev, result, "vkQueueSubmit", "transfer");
}

static smg_status slot_copy(smg_vk_device *dev, smg_vk_transfer *slot, VkBuffer from, int64_t from_at, VkBuffer to,
                            int64_t to_at, int64_t bytes) {
    SMG_TRY(slot_begin(dev, slot));
    const VkBufferCopy region = {(VkDeviceSize)from_at, (VkDeviceSize)to_at, (VkDeviceSize)bytes};
    dev->fn.CmdCopyBuffer(slot->commands, from, to, 1, &region);
    return slot_submit(dev, slot);
}

/* ---- checks --------------------------------------------------------------------------------- */

static smg_status check_range(smg_vk_buffer *buffer, const char *what, int64_t offset, int64_t bytes) {
    if (offset >= 0 && bytes >= 0 && offset <= buffer->bytes && bytes <= buffer->bytes - offset)
        return smg_vk_check_alive(buffer->dev);
    return smg_fail(buffer->dev->ctx, SMG_INVALID, "%s: %lld bytes at %lld are outside buffer '%s' of %lld bytes", what,
                    (long long)bytes, (long long)offset, buffer->label, (long long)buffer->bytes);
}

static smg_status need_staging(smg_vk_device *dev) {
    SMG_TRY(smg_vk_transfer_create(dev));
    if (dev->staging) return SMG_OK;
    return smg_vk_buffer_create(dev, "staging", (int64_t)CHUNK_BYTES * SLOTS, SMG_VK_READBACK, &dev->staging);
}

static int64_t chunk_at(int64_t done, int64_t bytes) {
    return bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
}

/* After a failure the slots may still be in flight; nothing may be left reading the caller's bytes. */
static smg_status drain(smg_vk_device *dev, smg_status status) {
    for (int i = 0; i < SLOTS; i++) {
        smg_status waited = slot_wait(dev, &dev->transfer[i]);
        if (status == SMG_OK) status = waited;
    }
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------ */

typedef struct copying {
    char *to;
    const char *from;
    int64_t bytes;
    int64_t first;              /* number of the first block */
    atomic_uint_least64_t hash; /* sum of those of the blocks */
    bool hashed;
} copying;

static void copy_blocks(void *user, int64_t begin, int64_t end) {
    copying *c = user;
    uint64_t sum = 0;
    for (int64_t i = begin; i < end; i++) { /* the second look at a block finds it in the core's cache */
        int64_t at = i * SMG_HASH_BLOCK, left = c->bytes - at;
        size_t bytes = left < SMG_HASH_BLOCK ? (size_t)left : SMG_HASH_BLOCK;
        if (c->hashed) sum += smg_hash_blocks(c->first + i, c->from + at, bytes);
        memcpy(c->to + at, c->from + at, bytes);
    }
    if (c->hashed) atomic_fetch_add(&c->hash, sum);
}

/* Pages that nobody has touched take longer than the bytes, and every core has its own of them. io_hash may be NULL. */
static void copy(void *to, const void *from, int64_t bytes, int64_t first, uint64_t *io_hash) {
    copying c = {.to = to, .from = from, .bytes = bytes, .first = first, .hashed = io_hash != NULL};
    atomic_init(&c.hash, 0);
    smg_parallel_for((bytes + SMG_HASH_BLOCK - 1) / SMG_HASH_BLOCK, COPY_BYTES / SMG_HASH_BLOCK, copy_blocks, &c);
    if (io_hash != NULL) *io_hash += atomic_load(&c.hash);
}

static smg_status upload_chunks(smg_vk_buffer *buffer, int64_t offset, const char *data, int64_t bytes, int64_t first,
                                uint64_t *io_hash) {
    smg_vk_device *dev = buffer->dev;
    SMG_TRY(need_staging(dev));
    int64_t done = 0;
    for (int i = 0; done < bytes; i = (i + 1) % SLOTS) {
        int64_t chunk = chunk_at(done, bytes), at = (int64_t)i * CHUNK_BYTES;
        SMG_TRY(slot_wait(dev, &dev->transfer[i]));
        copy((char *)dev->staging->mapped + at, data + done, chunk, first + done / SMG_HASH_BLOCK, io_hash);
        SMG_TRY(slot_copy(dev, &dev->transfer[i], dev->staging->handle, at, buffer->handle, offset + done, chunk));
        done += chunk;
    }
    return SMG_OK;
}

smg_status smg_vk_upload_hashed(smg_vk_buffer *buffer, int64_t offset, const void *data, int64_t bytes, int64_t first,
                                uint64_t *io_hash) {
    SMG_TRY(check_range(buffer, "upload", offset, bytes));
    if (bytes == 0) return SMG_OK;
    if (buffer->mapped) {
        copy((char *)buffer->mapped + offset, data, bytes, first, io_hash);
        return SMG_OK;
    }
    return drain(buffer->dev, upload_chunks(buffer, offset, data, bytes, first, io_hash));
}

smg_status smg_vk_upload(smg_vk_buffer *buffer, int64_t offset, const void *data, int64_t bytes) {
    return smg_vk_upload_hashed(buffer, offset, data, bytes, 0, NULL);
}

static smg_status download_chunks(smg_vk_buffer *buffer, int64_t offset, char *data, int64_t bytes) {
    smg_vk_device *dev = buffer->dev;
    SMG_TRY(need_staging(dev));
    int64_t asked = 0, done = 0;
    for (int step = 0; done < bytes; step++) {
        int64_t at = (int64_t)(step % SLOTS) * CHUNK_BYTES;
        if (asked < bytes) {
            int64_t chunk = chunk_at(asked, bytes);
            SMG_TRY(slot_copy(dev, &dev->transfer[step % SLOTS], buffer->handle, offset + asked, dev->staging->handle,
                              at, chunk));
            asked += chunk;
        }
        if (step == 0 && asked < bytes) continue; /* one chunk ahead */
        int finished = (int)(done / CHUNK_BYTES) % SLOTS;
        int64_t chunk = chunk_at(done, bytes);
        SMG_TRY(slot_wait(dev, &dev->transfer[finished]));
        memcpy(data + done, (char *)dev->staging->mapped + (int64_t)finished * CHUNK_BYTES, (size_t)chunk);
        done += chunk;
    }
    return SMG_OK;
}

smg_status smg_vk_download(smg_vk_buffer *buffer, int64_t offset, void *data, int64_t bytes) {
    SMG_TRY(check_range(buffer, "download", offset, bytes));
    if (bytes == 0) return SMG_OK;
    if (buffer->mapped) {
        memcpy(data, (const char *)buffer->mapped + offset, (size_t)bytes);
        return SMG_OK;
    }
    return drain(buffer->dev, download_chunks(buffer, offset, data, bytes));
}

static smg_status fill_by_device(smg_vk_buffer *buffer, int64_t offset, int64_t bytes, uint32_t word) {
    smg_vk_device *dev = buffer->dev;
    SMG_TRY(smg_vk_transfer_create(dev));
    smg_vk_transfer *slot = &dev->transfer[0];
    SMG_TRY(slot_wait(dev, slot));
    SMG_TRY(slot_begin(dev, slot));
    dev->fn.CmdFillBuffer(slot->commands, buffer->handle, (VkDeviceSize)offset, (VkDeviceSize)bytes, word);
    return slot_submit(dev, slot);
}

smg_status smg_vk_fill(smg_vk_buffer *buffer, int64_t offset, int64_t bytes, uint32_t word) {
    SMG_TRY(check_range(buffer, "fill", offset, bytes));
    if (offset % 4 != 0 || bytes % 4 != 0)
        return smg_fail(buffer->dev->ctx, SMG_INVALID, "fill of buffer '%s': %lld bytes at %lld are not multiples of 4",
                        buffer->label, (long long)bytes, (long long)offset);
    if (bytes == 0) return SMG_OK;
    return drain(buffer->dev, fill_by_device(buffer, offset, bytes, word));
}
