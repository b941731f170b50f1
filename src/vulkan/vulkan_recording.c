/* Recordings: a list of dispatches, copies, barriers and timestamps in one command buffer that may be
 * submitted again and again. Descriptor sets come from pools that the recording owns and that grow
 * while it is being recorded; a replay touches none of this. */
#include "vulkan/vulkan_recording.h"

enum { SETS_PER_POOL = 64, DESCRIPTORS_PER_POOL = 512 };

static void fail(smg_vk_recording *rec, smg_status status) {
    if (rec->status == SMG_OK) rec->status = status;
}

static bool recording_open(smg_vk_recording *rec) {
    if (rec->status != SMG_OK) return false;
    if (!rec->ended) return true;
    fail(rec, smg_fail(rec->dev->ctx, SMG_INVALID, "a recording that has ended cannot be added to"));
    return false;
}

/* ---- begin, end, destroy --------------------------------------------------------------------- */

static smg_status create_objects(smg_vk_recording *rec, int slots) {
    smg_vk_device *dev = rec->dev;
    if (rec->borrowed) return SMG_OK;
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dev->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkResult result = dev->fn.AllocateCommandBuffers(dev->handle, &commands, &rec->commands);
    if (result != VK_SUCCESS) rec->commands = NULL;
    SMG_TRY(smg_vk_result(dev, result, "vkAllocateCommandBuffers", "recording"));
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    result = dev->fn.CreateFence(dev->handle, &fence, NULL, &rec->fence);
    if (result != VK_SUCCESS) rec->fence = VK_NULL_HANDLE;
    SMG_TRY(smg_vk_result(dev, result, "vkCreateFence", "recording"));
    if (slots == 0 || dev->timestamp_bits == 0) return SMG_OK;
    const VkQueryPoolCreateInfo queries = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = (uint32_t)slots,
    };
    result = dev->fn.CreateQueryPool(dev->handle, &queries, NULL, &rec->queries);
    if (result != VK_SUCCESS) rec->queries = VK_NULL_HANDLE;
    SMG_TRY(smg_vk_result(dev, result, "vkCreateQueryPool", "recording"));
    rec->ticks = SMG_ARENA_ARRAY(rec->arena, uint64_t, (size_t)slots);
    rec->slot_used = SMG_ARENA_ARRAY(rec->arena, bool, (size_t)slots);
    return rec->ticks && rec->slot_used ? SMG_OK : SMG_MEMORY;
}

static smg_status begin_commands(smg_vk_recording *rec) {
    smg_vk_device *dev = rec->dev;
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkResult result = rec->borrowed ? VK_SUCCESS : dev->fn.BeginCommandBuffer(rec->commands, &info);
    SMG_TRY(smg_vk_result(dev, result, "vkBeginCommandBuffer", "recording"));
    if (rec->queries) dev->fn.CmdResetQueryPool(rec->commands, rec->queries, 0, (uint32_t)rec->slot_count);
    smg_vk_full_barrier(dev, rec->commands); /* after whatever was submitted before */
    return SMG_OK;
}

static smg_status begin(smg_vk_device *dev, int timestamp_slots, const void *commands, smg_vk_recording **out_rec) {
    *out_rec = NULL;
    SMG_TRY(smg_vk_check_alive(dev));
    if (timestamp_slots < 0) return smg_fail(dev->ctx, SMG_INVALID, "a recording with %d timestamps", timestamp_slots);
    smg_vk_recording *rec = smg_alloc(dev->ctx, 1, sizeof *rec);
    if (!rec) return SMG_MEMORY;
    rec->dev = dev;
    rec->slot_count = timestamp_slots;
    rec->borrowed = commands != NULL;
    if (commands) memcpy(&rec->commands, commands, sizeof rec->commands);
    smg_status status = smg_arena_create(dev->ctx, &rec->arena);
    if (status == SMG_OK) status = create_objects(rec, timestamp_slots);
    if (status == SMG_OK) status = begin_commands(rec);
    if (status != SMG_OK) {
        smg_vk_recording_destroy(rec);
        return status;
    }
    *out_rec = rec;
    return SMG_OK;
}

smg_status smg_vk_recording_begin(smg_vk_device *dev, int timestamp_slots, smg_vk_recording **out_rec) {
    return begin(dev, timestamp_slots, NULL, out_rec);
}

smg_status smg_vk_recording_begin_in(smg_vk_device *dev, const void *commands, smg_vk_recording **out_rec) {
    return begin(dev, 0, commands, out_rec);
}

smg_status smg_vk_recording_again(smg_vk_recording *rec) {
    SMG_TRY(smg_vk_check_alive(rec->dev));
    if (rec->in_flight || rec->pools.count > 0)
        return smg_fail(rec->dev->ctx, SMG_INVALID, "a recording that is emptied %s",
                        rec->in_flight ? "is in flight" : "has kernels");
    if (!rec->ended) { /* a command buffer does not begin twice */
        VkResult result = rec->dev->fn.ResetCommandBuffer(rec->commands, 0);
        SMG_TRY(smg_vk_result(rec->dev, result, "vkResetCommandBuffer", "recording"));
    }
    rec->status = SMG_OK;
    rec->ended = false;
    rec->kinds_used = rec->kinds_pending = 0;
    return begin_commands(rec);
}

smg_status smg_vk_recording_end(smg_vk_recording *rec) {
    if (rec->status != SMG_OK) return rec->status;
    if (rec->ended) return SMG_OK;
    smg_vk_host_barrier(rec->dev, rec->commands);
    if (rec->borrowed) smg_vk_full_barrier(rec->dev, rec->commands);
    VkResult result = rec->borrowed ? VK_SUCCESS : rec->dev->fn.EndCommandBuffer(rec->commands);
    rec->ended = true;
    fail(rec, smg_vk_result(rec->dev, result, "vkEndCommandBuffer", "recording"));
    return rec->status;
}

void smg_vk_recording_destroy(smg_vk_recording *rec) {
    if (!rec) return;
    smg_vk_device *dev = rec->dev;
    if (rec->in_flight) dev->fn.WaitForFences(dev->handle, 1, &rec->fence, VK_TRUE, UINT64_MAX);
    for (int i = 0; i < rec->pools.count; i++) dev->fn.DestroyDescriptorPool(dev->handle, rec->pools.items[i], NULL);
    if (rec->queries) dev->fn.DestroyQueryPool(dev->handle, rec->queries, NULL);
    if (rec->fence) dev->fn.DestroyFence(dev->handle, rec->fence, NULL);
    if (rec->commands && !rec->borrowed) dev->fn.FreeCommandBuffers(dev->handle, dev->pool, 1, &rec->commands);
    smg_arena_destroy(rec->arena);
    smg_free(dev->ctx, rec, sizeof *rec);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static smg_status add_pool(smg_vk_recording *rec) {
    smg_vk_device *dev = rec->dev;
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, DESCRIPTORS_PER_POOL},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, SETS_PER_POOL}};
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = SETS_PER_POOL,
        .poolSizeCount = (uint32_t)SMG_COUNT_OF(sizes),
        .pPoolSizes = sizes,
    };
    VkDescriptorPool *slot = SMG_ARRAY_PUSH(rec->arena, &rec->pools);
    if (!slot) return SMG_MEMORY;
    VkResult result = dev->fn.CreateDescriptorPool(dev->handle, &info, NULL, slot);
    if (result != VK_SUCCESS) rec->pools.count--;
    rec->sets_left = SETS_PER_POOL;
    rec->descriptors_left = DESCRIPTORS_PER_POOL;
    return smg_vk_result(dev, result, "vkCreateDescriptorPool", "recording");
}

static smg_status check_binding(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, int index,
                                const smg_vk_binding *binding, VkDescriptorBufferInfo *out_info) {
    const smg_target *target = &rec->dev->target;
    smg_context *ctx = rec->dev->ctx;
    const smg_vk_buffer *buffer = binding->buffer;
    if (!buffer) return smg_fail(ctx, SMG_INVALID, "kernel '%s': binding %d has no buffer", pipeline->name, index);
    int64_t rest = binding->offset >= 0 ? buffer->bytes - binding->offset : -1;
    int64_t most = rest < target->max_buffer_range ? rest : target->max_buffer_range;
    int64_t range = binding->range ? binding->range : most;
    if (rest <= 0 || range < 0 || range > rest)
        return smg_fail(ctx, SMG_INVALID, "kernel '%s': binding %d is %lld bytes at %lld of buffer '%s' of %lld bytes",
                        pipeline->name, index, (long long)binding->range, (long long)binding->offset, buffer->label,
                        (long long)buffer->bytes);
    if (range > target->max_buffer_range)
        return smg_fail(ctx, SMG_NO_FIT, "kernel '%s': binding %d has %lld bytes, '%s' allows %lld", pipeline->name,
                        index, (long long)range, target->name, (long long)target->max_buffer_range);
    if (binding->offset % target->buffer_alignment != 0)
        return smg_fail(ctx, SMG_INVALID, "kernel '%s': binding %d is at %lld, not a multiple of %lld", pipeline->name,
                        index, (long long)binding->offset, (long long)target->buffer_alignment);
    *out_info = (VkDescriptorBufferInfo){buffer->handle, (VkDeviceSize)binding->offset, (VkDeviceSize)range};
    return SMG_OK;
}

/* The binding behind the others, where there is one. */
static smg_status check_block(smg_vk_recording *rec, const smg_vk_pipeline *pipeline,
                              const smg_vk_parameters *parameters, VkDescriptorBufferInfo *out_info) {
    if (!pipeline->from_memory) return SMG_OK;
    const smg_vk_buffer *buffer = parameters ? parameters->buffer : NULL;
    int64_t at = parameters ? parameters->block : -1;
    if (!buffer || buffer->kind != SMG_VK_PARAMETERS || at < 0 || at % SMG_VK_PARAMETERS_ALIGNMENT != 0 ||
        at > buffer->bytes - pipeline->push_bytes)
        return smg_fail(rec->dev->ctx, SMG_INVALID, "kernel '%s' reads %d bytes from memory, at %lld there are none",
                        pipeline->name, pipeline->push_bytes, (long long)at);
    *out_info = (VkDescriptorBufferInfo){buffer->handle, (VkDeviceSize)at, (VkDeviceSize)pipeline->push_bytes};
    return SMG_OK;
}

static smg_status allocate_set(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, VkDescriptorSet *out_set) {
    smg_vk_device *dev = rec->dev;
    if (rec->sets_left < 1 || rec->descriptors_left < pipeline->binding_count) SMG_TRY(add_pool(rec));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = rec->pools.items[rec->pools.count - 1],
        .descriptorSetCount = 1,
        .pSetLayouts = &pipeline->set_layout,
    };
    VkResult result = dev->fn.AllocateDescriptorSets(dev->handle, &allocate, out_set);
    SMG_TRY(smg_vk_result(dev, result, "vkAllocateDescriptorSets", pipeline->name));
    rec->sets_left--;
    rec->descriptors_left -= pipeline->binding_count;
    return SMG_OK;
}

static smg_status bind_buffers(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                               const smg_vk_parameters *parameters) {
    smg_vk_device *dev = rec->dev;
    int stored = pipeline->binding_count;
    int count = stored + (pipeline->from_memory ? 1 : 0);
    if (count == 0) return SMG_OK;
    VkDescriptorBufferInfo infos[SMG_VK_MAX_BINDINGS + 1];
    VkWriteDescriptorSet writes[SMG_VK_MAX_BINDINGS + 1];
    VkDescriptorSet set = VK_NULL_HANDLE;
    for (int i = 0; i < stored; i++) SMG_TRY(check_binding(rec, pipeline, i, &bindings[i], &infos[i]));
    SMG_TRY(check_block(rec, pipeline, parameters, &infos[stored]));
    SMG_TRY(allocate_set(rec, pipeline, &set));
    for (int i = 0; i < count; i++)
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = set,
            .dstBinding = (uint32_t)i,
            .descriptorCount = 1,
            .descriptorType = i < stored ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
            .pBufferInfo = &infos[i],
        };
    dev->fn.UpdateDescriptorSets(dev->handle, (uint32_t)count, writes, 0, NULL);
    dev->fn.CmdBindDescriptorSets(rec->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout, 0, 1, &set, 0, NULL);
    return SMG_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Before a command of these kinds: the barrier that was asked for is written here, when it is known
 * what comes after it, so that kernels wait only for kernels where there is nothing else. */
static void before_command(smg_vk_recording *rec, int kinds) {
    if (rec->kinds_pending & kinds) {
        if (rec->kinds_used) smg_vk_barrier(rec->dev, rec->commands, rec->kinds_used, kinds);
        rec->kinds_pending &= ~kinds;
    }
    rec->kinds_used |= kinds;
}

static smg_status bind_all(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                           int binding_count, const smg_vk_parameters *parameters) {
    smg_vk_device *dev = rec->dev;
    if (binding_count != pipeline->binding_count)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' has %d bindings, was given %d", pipeline->name,
                        pipeline->binding_count, binding_count);
    dev->fn.CmdBindPipeline(rec->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    return bind_buffers(rec, pipeline, bindings, parameters);
}

static smg_status push_constants(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const void *push,
                                 int push_bytes) {
    smg_vk_device *dev = rec->dev;
    if (push_bytes != pipeline->push_bytes || (push_bytes > 0 && pipeline->from_memory))
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' has %d push bytes%s, was given %d", pipeline->name,
                        pipeline->push_bytes, pipeline->from_memory ? " in memory" : "", push_bytes);
    if (push_bytes > 0)
        dev->fn.CmdPushConstants(rec->commands, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)push_bytes,
                                 push);
    return SMG_OK;
}

static smg_status check_grid(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_grid *grid) {
    const smg_target *target = &rec->dev->target;
    if (grid->first_y != 0 && !pipeline->sliced)
        return smg_fail(rec->dev->ctx, SMG_INVALID, "kernel '%s' was not made to begin at row %lld", pipeline->name,
                        (long long)grid->first_y);
    if (grid->x >= 0 && grid->y >= 0 && grid->z >= 0 && grid->first_y >= 0 && grid->x <= target->max_grid_x &&
        grid->y <= target->max_grid_y && grid->z <= target->max_grid_z && grid->first_y <= target->max_grid_y - grid->y)
        return SMG_OK;
    return smg_fail(rec->dev->ctx, SMG_NO_FIT,
                    "kernel '%s': a grid of %lld x %lld x %lld, '%s' allows %lld x %lld x %lld", pipeline->name,
                    (long long)grid->x, (long long)(grid->first_y + grid->y), (long long)grid->z, target->name,
                    (long long)target->max_grid_x, (long long)target->max_grid_y, (long long)target->max_grid_z);
}

void smg_vk_record_grid(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                        int binding_count, const void *push, int push_bytes, const smg_vk_grid *grid) {
    if (!recording_open(rec)) return;
    fail(rec, check_grid(rec, pipeline, grid));
    if (rec->status != SMG_OK || grid->x == 0 || grid->y == 0 || grid->z == 0) return;
    fail(rec, bind_all(rec, pipeline, bindings, binding_count, NULL));
    if (rec->status == SMG_OK) fail(rec, push_constants(rec, pipeline, push, push_bytes));
    if (rec->status != SMG_OK) return;
    before_command(rec, SMG_VK_COMPUTE);
    uint32_t x = (uint32_t)grid->x, y = (uint32_t)grid->y, z = (uint32_t)grid->z;
    if (grid->first_y == 0)
        rec->dev->fn.CmdDispatch(rec->commands, x, y, z);
    else
        rec->dev->fn.CmdDispatchBase(rec->commands, 0, (uint32_t)grid->first_y, 0, x, y, z);
}

void smg_vk_record_dispatch(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                            int binding_count, const void *push, int push_bytes, int64_t gx, int64_t gy, int64_t gz) {
    const smg_vk_grid grid = {.x = gx, .y = gy, .z = gz};
    smg_vk_record_grid(rec, pipeline, bindings, binding_count, push, push_bytes, &grid);
}

enum { COUNTS_BYTES = 3 * 4 };

static smg_status check_counts(smg_vk_recording *rec, const smg_vk_pipeline *pipeline,
                               const smg_vk_parameters *parameters) {
    const smg_vk_buffer *buffer = parameters->buffer;
    int64_t at = parameters->counts;
    if (buffer && buffer->kind == SMG_VK_PARAMETERS && at >= 0 && at % 4 == 0 && at <= buffer->bytes - COUNTS_BYTES)
        return SMG_OK;
    return smg_fail(rec->dev->ctx, SMG_INVALID, "kernel '%s': there are no counts of workgroups at %lld",
                    pipeline->name, (long long)at);
}

void smg_vk_record_dispatch_from(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                                 int binding_count, const smg_vk_parameters *parameters) {
    if (!recording_open(rec)) return;
    fail(rec, check_counts(rec, pipeline, parameters));
    if (rec->status == SMG_OK) fail(rec, bind_all(rec, pipeline, bindings, binding_count, parameters));
    if (rec->status == SMG_OK && !pipeline->from_memory) fail(rec, push_constants(rec, pipeline, NULL, 0));
    if (rec->status != SMG_OK) return;
    before_command(rec, SMG_VK_COMPUTE);
    rec->dev->fn.CmdDispatchIndirect(rec->commands, parameters->buffer->handle, (VkDeviceSize)parameters->counts);
}

void smg_vk_record_first_use(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, smg_vk_buffer *nothing) {
    static const uint8_t zeros[SMG_VK_PARAMETERS_ALIGNMENT];
    smg_vk_binding bindings[SMG_VK_MAX_BINDINGS];
    const smg_vk_parameters parameters = {.buffer = nothing};
    if (!recording_open(rec)) return;
    for (int i = 0; i < pipeline->binding_count; i++) bindings[i] = (smg_vk_binding){.buffer = nothing};
    fail(rec, bind_all(rec, pipeline, bindings, pipeline->binding_count, &parameters));
    if (rec->status == SMG_OK && !pipeline->from_memory)
        fail(rec, push_constants(rec, pipeline, zeros, pipeline->push_bytes));
    if (rec->status == SMG_OK) rec->dev->fn.CmdDispatch(rec->commands, 0, 1, 1);
}

static smg_status check_range(smg_vk_recording *rec, const char *what, const smg_vk_buffer *buffer, int64_t offset,
                              int64_t bytes) {
    if (offset >= 0 && bytes > 0 && offset <= buffer->bytes && bytes <= buffer->bytes - offset) return SMG_OK;
    return smg_fail(rec->dev->ctx, SMG_INVALID, "%s: %lld bytes at %lld are outside buffer '%s' of %lld bytes", what,
                    (long long)bytes, (long long)offset, buffer->label, (long long)buffer->bytes);
}

void smg_vk_record_barrier(smg_vk_recording *rec) {
    if (recording_open(rec)) rec->kinds_pending = SMG_VK_ANYTHING;
}

void smg_vk_record_copy(smg_vk_recording *rec, smg_vk_buffer *from, int64_t from_offset, smg_vk_buffer *to,
                        int64_t to_offset, int64_t bytes) {
    if (!recording_open(rec) || bytes == 0) return;
    fail(rec, check_range(rec, "copy from", from, from_offset, bytes));
    fail(rec, check_range(rec, "copy to", to, to_offset, bytes));
    bool overlap = from == to && from_offset < to_offset + bytes && to_offset < from_offset + bytes;
    if (rec->status == SMG_OK && overlap)
        fail(rec, smg_fail(rec->dev->ctx, SMG_INVALID, "copy inside buffer '%s': %lld bytes from %lld to %lld overlap",
                           from->label, (long long)bytes, (long long)from_offset, (long long)to_offset));
    if (rec->status != SMG_OK) return;
    const VkBufferCopy region = {(VkDeviceSize)from_offset, (VkDeviceSize)to_offset, (VkDeviceSize)bytes};
    before_command(rec, SMG_VK_COPY);
    rec->dev->fn.CmdCopyBuffer(rec->commands, from->handle, to->handle, 1, &region);
}

void smg_vk_record_timestamp(smg_vk_recording *rec, int slot) {
    if (!recording_open(rec)) return;
    if (slot < 0 || slot >= rec->slot_count) {
        fail(rec, smg_fail(rec->dev->ctx, SMG_INVALID, "timestamp %d of a recording with %d", slot, rec->slot_count));
        return;
    }
    if (!rec->queries) return; /* smg_vk_timestamps says so */
    if (rec->slot_used[slot]) {
        fail(rec, smg_fail(rec->dev->ctx, SMG_INVALID, "timestamp %d is recorded twice", slot));
        return;
    }
    rec->slot_used[slot] = true;
    rec->dev->fn.CmdWriteTimestamp(rec->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, rec->queries, (uint32_t)slot);
}
