/* vulkan_external.c: memory of another VkDevice, process or API, by a file descriptor.
 *
 * Vulkan takes over the descriptor that it is given, so that it gets a copy and the caller's stays the caller's. */
#include "vulkan/vulkan_private.h"

#include "base/descriptor.h"
#include "smg/vulkan.h"

static bool is_enabled(const smg_vk_device *dev, const char *extension) {
    for (uint32_t i = 0; i < dev->features.extension_count; i++)
        if (strcmp(dev->features.extensions[i], extension) == 0) return true;
    return false;
}

static VkExternalMemoryHandleTypeFlagBits handle_of(const smg_vulkan_fd *from) {
    return from->kind == SMG_VULKAN_FD_DMA_BUF ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                               : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

/* What the device has, and what of it was enabled. */
static smg_status check_support(smg_vk_device *dev, const char *label, const smg_vulkan_fd *from) {
    static const char by_fd[] = "VK_KHR_external_memory_fd", dma_buf[] = "VK_EXT_external_memory_dma_buf";
    bool is_dma_buf = from->kind == SMG_VULKAN_FD_DMA_BUF;
    const char *missing = !is_enabled(dev, by_fd) ? by_fd : is_dma_buf && !is_enabled(dev, dma_buf) ? dma_buf : NULL;
    if (missing != NULL)
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "buffer '%s': %s is not enabled on device '%s'", label, missing,
                        dev->target.name);
    const VkPhysicalDeviceExternalBufferInfo asked = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = smg_vk_buffer_usage(dev, SMG_VK_DEVICE),
        .handleType = handle_of(from),
    };
    VkExternalBufferProperties told = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    dev->instance->fn.GetPhysicalDeviceExternalBufferProperties(dev->physical, &asked, &told);
    VkExternalMemoryFeatureFlags features = told.externalMemoryProperties.externalMemoryFeatures;
    if (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT)
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "buffer '%s': device '%s' imports dedicated memory only", label,
                        dev->target.name);
    if (features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) return SMG_OK;
    return smg_fail(dev->ctx, SMG_UNSUPPORTED, "buffer '%s': device '%s' imports no storage buffers by %s", label,
                    dev->target.name, is_dma_buf ? "dma-buf" : "opaque descriptors");
}

static smg_status create_handle(smg_vk_buffer *buffer, const smg_vulkan_fd *from) {
    smg_vk_device *dev = buffer->dev;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = handle_of(from),
    };
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = &external,
        .size = (VkDeviceSize)buffer->bytes,
        .usage = smg_vk_buffer_usage(dev, SMG_VK_DEVICE),
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = dev->fn.CreateBuffer(dev->handle, &info, NULL, &buffer->handle);
    if (result != VK_SUCCESS) buffer->handle = VK_NULL_HANDLE;
    return smg_vk_result(dev, result, "vkCreateBuffer", buffer->label);
}

/* A dma-buf tells its size, behind which a driver may map what is not there. */
static smg_status check_bytes(const smg_vk_buffer *buffer, const smg_vulkan_fd *from) {
    int64_t bytes = 0;
    if (from->kind != SMG_VULKAN_FD_DMA_BUF) return SMG_OK;
    if (!smg_descriptor_bytes(from->fd, &bytes))
        return smg_fail(buffer->dev->ctx, SMG_INVALID, "buffer '%s': file descriptor %d is no dma-buf", buffer->label,
                        from->fd);
    if ((uint64_t)bytes >= from->memory_bytes) return SMG_OK;
    return smg_fail(buffer->dev->ctx, SMG_INVALID, "buffer '%s': file descriptor %d has %lld bytes, %llu were said",
                    buffer->label, from->fd, (long long)bytes, (unsigned long long)from->memory_bytes);
}

/* Of an opaque descriptor it is the one that the memory was made with; of a dma-buf one that the driver allows. */
static smg_status choose_type(const smg_vk_buffer *buffer, const smg_vulkan_fd *from, uint32_t allowed,
                              uint32_t *out_type) {
    smg_vk_device *dev = buffer->dev;
    *out_type = from->memory_type;
    if (from->kind == SMG_VULKAN_FD_DMA_BUF) {
        VkMemoryFdPropertiesKHR told = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
        VkResult result = dev->fn.GetMemoryFdPropertiesKHR(dev->handle, handle_of(from), from->fd, &told);
        if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
            return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s': file descriptor %d is no dma-buf", buffer->label,
                            from->fd);
        SMG_TRY(smg_vk_result(dev, result, "vkGetMemoryFdPropertiesKHR", buffer->label));
        allowed &= told.memoryTypeBits;
        if (smg_vk_memory_type(dev, allowed, SMG_VK_DEVICE, out_type)) return SMG_OK;
    } else if (from->memory_type < dev->memory.memoryTypeCount && (allowed >> from->memory_type & 1U)) {
        return SMG_OK;
    }
    return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s': memory of type %u does not suit, of %u types 0x%x do",
                    buffer->label, (unsigned)*out_type, (unsigned)dev->memory.memoryTypeCount, (unsigned)allowed);
}

/* The copy is Vulkan's once this is OK. */
static smg_status allocate(smg_vk_buffer *buffer, const smg_vulkan_fd *from, uint32_t type, int copy) {
    smg_vk_device *dev = buffer->dev;
    const VkMemoryAllocateFlagsInfo addressed = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .pNext = smg_vk_has_addresses(dev) ? &addressed : NULL,
        .handleType = handle_of(from),
        .fd = copy,
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &import,
        .allocationSize = from->memory_bytes,
        .memoryTypeIndex = type,
    };
    VkResult result = dev->fn.AllocateMemory(dev->handle, &info, NULL, &buffer->memory);
    if (result != VK_SUCCESS) buffer->memory = VK_NULL_HANDLE;
    if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
        return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s': file descriptor %d is no memory of device '%s'",
                        buffer->label, from->fd, dev->target.name);
    return smg_vk_result(dev, result, "vkAllocateMemory", buffer->label);
}

static smg_status import(smg_vk_buffer *buffer, const smg_vulkan_fd *from) {
    smg_vk_device *dev = buffer->dev;
    VkMemoryRequirements needs;
    uint32_t type = 0;
    int copy = -1;
    SMG_TRY(create_handle(buffer, from));
    dev->fn.GetBufferMemoryRequirements(dev->handle, buffer->handle, &needs);
    if (needs.size > from->memory_bytes)
        return smg_fail(dev->ctx, SMG_INVALID, "buffer '%s' needs %llu bytes, the memory has %llu", buffer->label,
                        (unsigned long long)needs.size, (unsigned long long)from->memory_bytes);
    SMG_TRY(smg_descriptor_copy(dev->ctx, from->fd, &copy));
    smg_status status = check_bytes(buffer, from);
    if (status == SMG_OK) status = choose_type(buffer, from, needs.memoryTypeBits, &type);
    if (status == SMG_OK) status = allocate(buffer, from, type, copy);
    if (status != SMG_OK) {
        smg_descriptor_close(copy);
        return status;
    }
    VkResult result = dev->fn.BindBufferMemory(dev->handle, buffer->handle, buffer->memory, 0);
    return smg_vk_result(dev, result, "vkBindBufferMemory", buffer->label);
}

smg_status smg_vk_buffer_import(smg_vk_device *dev, const char *label, const struct smg_vulkan_fd *from, int64_t bytes,
                                smg_vk_buffer **out_buffer) {
    smg_vk_buffer *buffer = NULL;
    *out_buffer = NULL;
    SMG_TRY(smg_vk_check_alive(dev));
    SMG_TRY(check_support(dev, label, from));
    SMG_TRY(smg_vk_buffer_new(dev, label, bytes, SMG_VK_DEVICE, &buffer));
    smg_status status = import(buffer, from);
    if (status != SMG_OK) {
        smg_vk_buffer_destroy(buffer);
        return status;
    }
    *out_buffer = buffer;
    return SMG_OK;
}
