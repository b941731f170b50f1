/* Buffers, each with its own memory. A program makes a handful of large ones and aliases inside them,
 * so nothing is sub-allocated here. Memory that the host sees is always coherent and stays mapped. */
#include "vulkan/vulkan_private.h"

#include <stdio.h>

enum {
    MEMORY_LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    MEMORY_HOST = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    MEMORY_CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    /* Lazily allocated, protected, and AMD's device-coherent and uncached types are never right. */
    MEMORY_KNOWN = MEMORY_LOCAL | MEMORY_HOST | MEMORY_CACHED
};

/* How well a memory type serves a kind of buffer; negative: not at all. */
static int score_type(const smg_vk_device *dev, VkMemoryPropertyFlags flags, smg_vk_buffer_kind kind) {
    bool local = (flags & MEMORY_LOCAL) != 0;
    bool host = (flags & MEMORY_HOST) == MEMORY_HOST;
    bool cached = (flags & MEMORY_CACHED) != 0;
    if (flags & ~(VkMemoryPropertyFlags)MEMORY_KNOWN) return -1;
    switch (kind) {
    case SMG_VK_DEVICE: {
        bool want_host = smg_vk_host_is_device(dev);
        return (local ? 8 : 0) + (host == want_host ? 4 : 0) + (cached && want_host ? 1 : 0);
    }
    case SMG_VK_UPLOAD: return host ? (local ? 1 : 2) + (cached ? 0 : 1) : -1;
    case SMG_VK_READBACK: return host ? (cached ? 4 : 0) + (local ? 0 : 1) : -1;
    case SMG_VK_PARAMETERS: return host ? (local ? 2 : 0) + (cached ? 0 : 1) : -1;
    }
    return -1;
}

bool smg_vk_memory_type(const smg_vk_device *dev, uint32_t allowed, smg_vk_buffer_kind kind, uint32_t *out_type) {
    int best = -1;
    for (uint32_t i = 0; i < dev->memory.memoryTypeCount; i++) {
        if (!(allowed >> i & 1u)) continue;
        int score = score_type(dev, dev->memory.memoryTypes[i].propertyFlags, kind);
        if (score > best) {
            best = score;
            *out_type = i;
        }
    }
    return best >= 0;
}

static smg_status check_size(smg_vk_device *dev, const char *label, int64_t bytes) {
    if (bytes <= 0)
        return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s' has %lld bytes, must be positive", label, (long long)bytes);
    if (bytes > dev->target.max_allocation)
        return smg_fail(dev->ctx, SMG_DEVICE_MEMORY,
                        "buffer '%s' needs %lld bytes, one allocation on '%s' has at most %lld", label,
                        (long long)bytes, dev->target.name, (long long)dev->target.max_allocation);
    return smg_vk_check_alive(dev);
}

VkBufferUsageFlags smg_vk_buffer_usage(const smg_vk_device *dev, smg_vk_buffer_kind kind) {
    bool parameters = kind == SMG_VK_PARAMETERS;
    return VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
           (parameters ? VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT : 0U) |
           (smg_vk_has_addresses(dev) ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0U);
}

static smg_status create_handle(smg_vk_buffer *buffer) {
    smg_vk_device *dev = buffer->dev;
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = (VkDeviceSize)buffer->bytes,
        .usage = smg_vk_buffer_usage(dev, buffer->kind),
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = dev->fn.CreateBuffer(dev->handle, &info, NULL, &buffer->handle);
    if (result != VK_SUCCESS) buffer->handle = VK_NULL_HANDLE;
    return smg_vk_result(dev, result, "vkCreateBuffer", buffer->label);
}

static smg_status allocate(smg_vk_buffer *buffer) {
    smg_vk_device *dev = buffer->dev;
    VkMemoryRequirements needs;
    dev->fn.GetBufferMemoryRequirements(dev->handle, buffer->handle, &needs);
    uint32_t type = 0;
    if (!smg_vk_memory_type(dev, needs.memoryTypeBits, buffer->kind, &type))
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "'%s' has no memory type for buffer '%s'", dev->target.name,
                        buffer->label);
    const VkMemoryAllocateFlagsInfo addressed = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = smg_vk_has_addresses(dev) ? &addressed : NULL,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    VkResult result = dev->fn.AllocateMemory(dev->handle, &info, NULL, &buffer->memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
        buffer->memory = VK_NULL_HANDLE;
        return smg_fail(dev->ctx, SMG_DEVICE_MEMORY,
                        "vkAllocateMemory: buffer '%s' needs %llu bytes, '%s' has %lld left", buffer->label,
                        (unsigned long long)needs.size, dev->target.name, (long long)smg_vk_memory_available(dev));
    }
    if (result != VK_SUCCESS) buffer->memory = VK_NULL_HANDLE;
    SMG_TRY(smg_vk_result(dev, result, "vkAllocateMemory", buffer->label));
    smg_driver_memory_came();
    result = dev->fn.BindBufferMemory(dev->handle, buffer->handle, buffer->memory, 0);
    SMG_TRY(smg_vk_result(dev, result, "vkBindBufferMemory", buffer->label));
    VkMemoryPropertyFlags flags = dev->memory.memoryTypes[type].propertyFlags;
    bool seen = smg_vk_host_is_device(dev) && !(dev->flags & SMG_VK_UNSEEN_MEMORY);
    bool map = (flags & MEMORY_HOST) == MEMORY_HOST && (buffer->kind != SMG_VK_DEVICE || seen);
    if (!map) return SMG_OK;
    result = dev->fn.MapMemory(dev->handle, buffer->memory, 0, VK_WHOLE_SIZE, 0, &buffer->mapped);
    if (result != VK_SUCCESS) buffer->mapped = NULL;
    return smg_vk_result(dev, result, "vkMapMemory", buffer->label);
}

smg_status smg_vk_buffer_new(smg_vk_device *dev, const char *label, int64_t bytes, smg_vk_buffer_kind kind,
                             smg_vk_buffer **out_buffer) {
    smg_vk_buffer *buffer = smg_alloc(dev->ctx, 1, sizeof *buffer);
    if (!buffer) return SMG_MEMORY;
    buffer->dev = dev;
    buffer->id = atomic_fetch_add(&dev->common->buffers_made, 1) + 1;
    buffer->bytes = bytes;
    buffer->kind = kind;
    snprintf(buffer->label, sizeof buffer->label, "%.40s", label);
    *out_buffer = buffer;
    return SMG_OK;
}

smg_status smg_vk_buffer_borrow(smg_vk_device *dev, const char *label, const void *handle, int64_t bytes,
                                smg_vk_buffer **out_buffer) {
    *out_buffer = NULL;
    SMG_TRY(smg_vk_check_alive(dev));
    SMG_TRY(smg_vk_buffer_new(dev, label, bytes, SMG_VK_DEVICE, out_buffer));
    VkMemoryRequirements needs;
    memcpy(&(*out_buffer)->handle, handle, sizeof((*out_buffer)->handle));
    (*out_buffer)->borrowed = true;
    dev->fn.GetBufferMemoryRequirements(dev->handle, (*out_buffer)->handle, &needs);
    if ((uint64_t)bytes <= needs.size) return SMG_OK; /* a buffer's size is told to nobody; it is no larger */
    return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s' ends before byte %lld", label, (long long)bytes);
}

smg_status smg_vk_buffer_create(smg_vk_device *dev, const char *label, int64_t bytes, smg_vk_buffer_kind kind,
                                smg_vk_buffer **out_buffer) {
    *out_buffer = NULL;
    smg_vk_buffer *buffer = NULL;
    SMG_TRY(check_size(dev, label, bytes));
    SMG_TRY(smg_vk_buffer_new(dev, label, bytes, kind, &buffer));
    smg_status status = create_handle(buffer);
    if (status == SMG_OK) status = allocate(buffer);
    if (status != SMG_OK) {
        smg_vk_buffer_destroy(buffer);
        return status;
    }
    *out_buffer = buffer;
    return SMG_OK;
}

void smg_vk_buffer_destroy(smg_vk_buffer *buffer) {
    if (!buffer) return;
    smg_vk_device *dev = buffer->dev;
    if (buffer->handle && !buffer->borrowed) dev->fn.DestroyBuffer(dev->handle, buffer->handle, NULL);
    if (buffer->memory) {
        smg_driver_memory_returns();
        dev->fn.FreeMemory(dev->handle, buffer->memory, NULL); /* unmaps */
    }
    smg_free(dev->ctx, buffer, sizeof *buffer);
}

uint64_t smg_vk_buffer_id(const smg_vk_buffer *buffer) {
    return buffer->id;
}

bool smg_vk_buffers_overlap(const smg_vk_buffer *a, int64_t a_offset, int64_t a_bytes, const smg_vk_buffer *b,
                            int64_t b_offset, int64_t b_bytes) {
    return a->handle == b->handle && a_offset < b_offset + b_bytes && b_offset < a_offset + a_bytes;
}

int64_t smg_vk_buffer_bytes(const smg_vk_buffer *buffer) {
    return buffer->bytes;
}
void *smg_vk_buffer_map(smg_vk_buffer *buffer) {
    return buffer->mapped;
}

bool smg_vk_has_addresses(const smg_vk_device *dev) {
    return dev->features.addresses.bufferDeviceAddress && dev->features.core.features.shaderInt64 &&
           dev->fn.GetBufferDeviceAddress != NULL;
}

uint64_t smg_vk_buffer_address(const smg_vk_buffer *buffer) {
    const smg_vk_device *dev = buffer->dev;
    const VkBufferDeviceAddressInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
        .buffer = buffer->handle,
    };
    return smg_vk_has_addresses(dev) ? dev->fn.GetBufferDeviceAddress(dev->handle, &info) : 0;
}

int64_t smg_vk_memory_available(const smg_vk_device *dev) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                             .pNext = dev->has_budget ? &budget : NULL};
    dev->instance->fn.GetPhysicalDeviceMemoryProperties2(dev->physical, &all);
    VkDeviceSize best = 0;
    for (uint32_t i = 0; i < all.memoryProperties.memoryHeapCount; i++) {
        if (!(all.memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
        VkDeviceSize left = all.memoryProperties.memoryHeaps[i].size;
        if (dev->has_budget)
            left = budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i] : 0;
        if (left > best) best = left;
    }
    return best > INT64_MAX ? INT64_MAX : (int64_t)best;
}

bool smg_vk_host_is_device(const smg_vk_device *dev) {
    return dev->target.type == SMG_DEVICE_CPU || dev->target.type == SMG_DEVICE_INTEGRATED;
}
