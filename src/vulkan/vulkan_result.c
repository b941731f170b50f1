/* What calls of Vulkan answer, as statuses; a device that was lost stays so. */
#include "vulkan/vulkan_private.h"

const char *smg_vk_result_word(VkResult result) {
#define WORD(name)                                                                                                     \
    case name: return #name;
    switch (result) {
        WORD(VK_SUCCESS)
        WORD(VK_NOT_READY)
        WORD(VK_TIMEOUT)
        WORD(VK_INCOMPLETE)
        WORD(VK_ERROR_OUT_OF_HOST_MEMORY)
        WORD(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        WORD(VK_ERROR_INITIALIZATION_FAILED)
        WORD(VK_ERROR_DEVICE_LOST)
        WORD(VK_ERROR_MEMORY_MAP_FAILED)
        WORD(VK_ERROR_LAYER_NOT_PRESENT)
        WORD(VK_ERROR_EXTENSION_NOT_PRESENT)
        WORD(VK_ERROR_FEATURE_NOT_PRESENT)
        WORD(VK_ERROR_INCOMPATIBLE_DRIVER)
        WORD(VK_ERROR_TOO_MANY_OBJECTS)
        WORD(VK_ERROR_FRAGMENTED_POOL)
        WORD(VK_ERROR_OUT_OF_POOL_MEMORY)
        WORD(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    default: return "an unknown VkResult";
    }
#undef WORD
}

smg_status smg_vk_result(smg_vk_device *dev, VkResult result, const char *call, const char *subject) {
    if (result >= VK_SUCCESS) return SMG_OK;
    smg_status code = SMG_DEVICE;
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY) code = SMG_MEMORY;
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) code = SMG_DEVICE_MEMORY;
    if (result == VK_ERROR_DEVICE_LOST) dev->common->lost = true;
    return smg_fail(
        dev->ctx, code, "%s for '%s' on '%s' failed: %s%s", call, subject, dev->target.name, smg_vk_result_word(result),
        result == VK_ERROR_DEVICE_LOST ? " (a fault in a kernel, or a dispatch longer than the watchdog allows)" : "");
}

bool smg_vk_is_lost(const smg_vk_device *dev) {
    return dev->common->lost;
}

smg_status smg_vk_check_alive(smg_vk_device *dev) {
    if (!smg_vk_is_lost(dev)) return SMG_OK;
    return smg_fail(dev->ctx, SMG_DEVICE, "device '%s' was lost by an earlier call", dev->target.name);
}
