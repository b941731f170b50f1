/* smg/vulkan.h: run on a VkDevice that the application already has.
 *
 * The only public header with Vulkan types, and the only one that needs the Vulkan headers. The
 * application keeps owning everything it passes; smg uses the queue only inside its own calls, so
 * the application must not use that queue on another thread at the same time.
 */
#ifndef SMG_VULKAN_H
#define SMG_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "smg/context.h"
#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_vk_device smg_vk_device;

/* All handles must be set. The device must be of Vulkan 1.1 or later and its queue family must have
 * compute. smg cannot ask a VkDevice what was enabled on it: it relies on a feature only where it
 * finds it in `enabled`, the pNext chain that was given to vkCreateDevice (its
 * VkPhysicalDeviceFeatures2 included), and in `extensions`. NULL: nothing optional was enabled. */
typedef struct smg_vulkan_desc {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    uint32_t api_version; /* of VkApplicationInfo; 0: VK_API_VERSION_1_1 */
    const void *enabled;
    const char *const *extensions;
    uint32_t extension_count;
} smg_vulkan_desc;

/* No public call runs a model on it yet. To be released before `context` and before the VkDevice are destroyed. */
SMG_API smg_status smg_vk_adopt(smg_context *context, const smg_vulkan_desc *desc, smg_vk_device **out_device);
/* Destroys what smg made on the device, and frees its memory; what the application passed stays. NULL is fine. */
SMG_API void smg_vk_release(smg_vk_device *device);

#ifdef __cplusplus
}
#endif
#endif
