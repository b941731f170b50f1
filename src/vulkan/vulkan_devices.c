/* Which devices there are, what they are called, and which one a user's word means. */
#include "vulkan/vulkan_private.h"

#include "smg/device.h"

#include <stdio.h>

static smg_device_type device_type(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return SMG_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return SMG_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return SMG_DEVICE_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return SMG_DEVICE_CPU;
    default: return SMG_DEVICE_OTHER;
    }
}

smg_status smg_vk_list_extensions(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice physical,
                                  smg_vk_extensions *out_extensions) {
    out_extensions->items = NULL;
    out_extensions->count = 0;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
    if (result == VK_SUCCESS && count > 0) {
        out_extensions->items = SMG_ARENA_ARRAY(arena, VkExtensionProperties, count);
        if (!out_extensions->items) return SMG_MEMORY;
        result = instance->fn.EnumerateDeviceExtensionProperties(physical, NULL, &count, out_extensions->items);
    }
    if (result < VK_SUCCESS)
        return smg_fail(instance->ctx, SMG_DEVICE, "vkEnumerateDeviceExtensionProperties failed: %s",
                        smg_vk_result_word(result));
    out_extensions->count = count;
    return SMG_OK;
}

bool smg_vk_has_extension(const smg_vk_extensions *extensions, const char *name) {
    for (uint32_t i = 0; i < extensions->count; i++)
        if (strcmp(extensions->items[i].extensionName, name) == 0) return true;
    return false;
}

bool smg_vk_compute_family(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice physical, uint32_t *out_family,
                           uint32_t *out_timestamp_bits) {
    uint32_t count = 0;
    instance->fn.GetPhysicalDeviceQueueFamilyProperties(physical, &count, NULL);
    if (count == 0) return false;
    VkQueueFamilyProperties *families = SMG_ARENA_ARRAY(arena, VkQueueFamilyProperties, count);
    if (!families) return false;
    instance->fn.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0) continue;
        *out_family = i;
        *out_timestamp_bits = families[i].timestampValidBits;
        return true;
    }
    return false;
}

smg_status smg_vk_list_physical(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice **out_list,
                                int *out_count) {
    *out_list = NULL;
    *out_count = 0;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumeratePhysicalDevices(instance->handle, &count, NULL);
    if (result < VK_SUCCESS)
        return smg_fail(instance->ctx, SMG_DEVICE, "vkEnumeratePhysicalDevices failed: %s", smg_vk_result_word(result));
    VkPhysicalDevice *all = SMG_ARENA_ARRAY(arena, VkPhysicalDevice, (size_t)count + 1);
    if (!all) return SMG_MEMORY;
    if (count > 0) result = instance->fn.EnumeratePhysicalDevices(instance->handle, &count, all);
    if (result < VK_SUCCESS)
        return smg_fail(instance->ctx, SMG_DEVICE, "vkEnumeratePhysicalDevices failed: %s", smg_vk_result_word(result));
    int kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties properties;
        uint32_t family = 0, bits = 0;
        instance->fn.GetPhysicalDeviceProperties(all[i], &properties);
        if (properties.apiVersion < VK_API_VERSION_1_1) continue;
        if (smg_vk_compute_family(instance, arena, all[i], &family, &bits)) all[kept++] = all[i];
    }
    if (kept == 0)
        return smg_fail(instance->ctx, SMG_NOT_FOUND,
                        "no Vulkan 1.1 device with a compute queue (the loader lists %u devices)", (unsigned)count);
    *out_list = all;
    *out_count = kept;
    return SMG_OK;
}

static void describe_driver(smg_vk_instance *instance, VkPhysicalDevice physical,
                            const VkPhysicalDeviceProperties *properties, smg_vk_device_info *info) {
    /* Core since 1.2; older devices ignore a structure they do not know, and it stays empty. */
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    if (properties->apiVersion >= VK_API_VERSION_1_2) instance->fn.GetPhysicalDeviceProperties2(physical, &all);
    if (driver.driverName[0])
        snprintf(info->driver, sizeof info->driver, "%.120s %.120s", driver.driverName, driver.driverInfo);
    else
        snprintf(info->driver, sizeof info->driver, "version %08x", (unsigned)properties->driverVersion);
}

void smg_vk_describe(smg_vk_instance *instance, VkPhysicalDevice physical, int index, smg_vk_device_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    VkPhysicalDeviceProperties properties;
    instance->fn.GetPhysicalDeviceProperties(physical, &properties);
    out_info->index = index;
    snprintf(out_info->name, sizeof out_info->name, "%s", properties.deviceName);
    describe_driver(instance, physical, &properties, out_info);
    out_info->type = device_type(properties.deviceType);
    out_info->api_major = (int)VK_API_VERSION_MAJOR(properties.apiVersion);
    out_info->api_minor = (int)VK_API_VERSION_MINOR(properties.apiVersion);
    out_info->api_patch = (int)VK_API_VERSION_PATCH(properties.apiVersion);
    VkPhysicalDeviceMemoryProperties memory;
    instance->fn.GetPhysicalDeviceMemoryProperties(physical, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++) {
        int64_t size = memory.memoryHeaps[i].size > INT64_MAX ? INT64_MAX : (int64_t)memory.memoryHeaps[i].size;
        if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && size > out_info->local_bytes)
            out_info->local_bytes = size;
    }
}

smg_status smg_vk_devices(smg_context *ctx, smg_arena *arena, smg_vk_device_info **out_list, int *out_count) {
    *out_list = NULL;
    *out_count = 0;
    smg_vk_instance *instance = NULL;
    SMG_TRY(smg_vk_instance_create(ctx, &instance));
    VkPhysicalDevice *physical = NULL;
    int count = 0;
    smg_status status = smg_vk_list_physical(instance, arena, &physical, &count);
    if (status == SMG_OK) {
        smg_vk_device_info *list = SMG_ARENA_ARRAY(arena, smg_vk_device_info, (size_t)count);
        if (!list) status = SMG_MEMORY;
        for (int i = 0; list && i < count; i++) smg_vk_describe(instance, physical[i], i, &list[i]);
        *out_list = list;
        *out_count = list ? count : 0;
    }
    smg_vk_instance_destroy(instance);
    return status;
}

static smg_status list_devices(smg_context *ctx, smg_arena *arena, smg_device_info *out_list, int capacity,
                               int *out_count) {
    smg_vk_device_info *found = NULL;
    if (capacity < 0 || (!out_list && capacity > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_device_list: room for %d devices%s", capacity,
                        out_list ? "" : ", at NULL");
    SMG_TRY(smg_vk_devices(ctx, arena, &found, out_count));
    for (int i = 0; i < *out_count && i < capacity; i++) {
        smg_device_info *info = &out_list[i];
        *info = (smg_device_info){.type = smg_device_type_word(found[i].type),
                                  .memory_bytes = found[i].local_bytes,
                                  .api_major = found[i].api_major,
                                  .api_minor = found[i].api_minor,
                                  .api_patch = found[i].api_patch};
        memcpy(info->name, found[i].name, sizeof info->name);
        memcpy(info->driver, found[i].driver, sizeof info->driver);
    }
    return SMG_OK;
}

smg_status smg_device_list(smg_context *ctx, smg_device_info *out_list, int capacity, int *out_count) {
    smg_arena *arena = NULL;
    int ignored = 0;
    if (!out_count) out_count = &ignored;
    *out_count = 0;
    if (!ctx) return SMG_INVALID;
    smg_context_clear_error(ctx);
    smg_status status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK) status = list_devices(ctx, arena, out_list, capacity, out_count);
    smg_arena_destroy(arena);
    return smg_context_told(ctx, status);
}
