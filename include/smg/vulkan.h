/* smg/vulkan.h: run on a VkDevice that the application already has.
 *
 *     smg_vulkan_desc desc = {.instance = instance, .physical_device = gpu, .queue_family = family,
 *                             .get_instance_proc_addr = vkGetInstanceProcAddr};
 *     smg_vulkan_wishes *wishes;
 *     smg_vk_wish(ctx, &desc, NULL, &wishes);                  what is worth enabling
 *     ... vkCreateDevice with pNext = wishes->enabled and the extensions of wishes ...
 *     desc.device = device;
 *     desc.queue = queue;
 *     desc.enabled = wishes->enabled;
 *     desc.extensions = wishes->extensions;
 *     desc.extension_count = wishes->extension_count;
 *     smg_vk_adopt(ctx, &desc, &adopted);                      for smg_bundle_desc.on and smg_model_desc.on
 *     smg_vk_wishes_free(wishes);
 *
 * The only public header with Vulkan types, and the only one that needs the Vulkan headers. The application keeps
 * owning everything it passes. Without lock_queue smg uses the queue only inside its own calls, and the application
 * must not use it on another thread meanwhile. docs/examples/own_device.c is a whole program.
 */
#ifndef SMG_VULKAN_H
#define SMG_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "smg/context.h"
#include "smg/device.h"
#include "smg/rt.h"
#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device must be of Vulkan 1.1 or later and its queue family must have compute. smg cannot ask a VkDevice what was
 * enabled on it: it relies on a feature only where it finds it in `enabled`, the pNext chain that was given to
 * vkCreateDevice (its VkPhysicalDeviceFeatures2 included), and in `extensions`. NULL: nothing optional was enabled.
 * `enabled` and `extensions` are read during the call only. */
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
    /* Called around each use of the queue, on the thread that calls smg: for queues that other threads use, too. Both
     * or neither; they call nothing of smg's. */
    void (*lock_queue)(void *user);
    void (*unlock_queue)(void *user);
    void *lock_user;
} smg_vulkan_desc;

/* What is worth enabling: all of it is offered by the physical device. */
typedef struct smg_vulkan_wishes {
    const void *enabled;           /* for pNext of VkDeviceCreateInfo, whose pEnabledFeatures is NULL then */
    const char *const *extensions; /* the application's, and behind them those that smg uses */
    uint32_t extension_count;
} smg_vulkan_wishes;

/* Before the VkDevice is made: instance, physical_device, get_instance_proc_addr, api_version and the application's own
 * extensions are read from the description. `chain` is the chain that the application would give to vkCreateDevice,
 * NULL: none. In structures of features that are in it, members are set to VK_TRUE; the result is structures that are
 * not, followed by that chain. So it is used up by one call, and what is in it must live as long as the wishes. A
 * device on which less is enabled runs, too: the models that it can run are slower ones.
 * INVALID: a handle is null; UNSUPPORTED: a device of Vulkan 1.0. */
SMG_API smg_status smg_vk_wish(smg_context *context, const smg_vulkan_desc *desc, void *chain,
                               smg_vulkan_wishes **out_wishes);
SMG_API void smg_vk_wishes_free(smg_vulkan_wishes *wishes); /* NULL is fine */

/* To be closed (smg_device_close) before `context` and before the VkDevice are destroyed: then nothing of smg's is left
 * on it.
 * INVALID: a handle is null, the queue family is none or has no compute, or only one of the two hooks is given;
 * UNSUPPORTED: a device of Vulkan 1.0. */
SMG_API smg_status smg_vk_adopt(smg_context *context, const smg_vulkan_desc *desc, smg_device **out_device);

/* ---- runs that do not wait -------------------------------------------------------------------------- */

/* A timeline semaphore and a value of it. */
typedef struct smg_vulkan_point {
    VkSemaphore semaphore;
    uint64_t value;
} smg_vulkan_point;

/* At most 16 of each. The device was made with timelineSemaphore. */
typedef struct smg_vulkan_sync {
    const smg_vulkan_point *waits; /* before anything of the run begins */
    uint32_t wait_count;
    const smg_vulkan_point *signals; /* when all of it is done, outputs included */
    uint32_t signal_count;
} smg_vulkan_sync;

/* smg_model_submit between points of the application's timelines. A point that is waited for is signalled by work that
 * was submitted before or by the host; until then nothing else of the queue goes on, as with any submission. INVALID:
 * too many points, or one without a semaphore. */
SMG_API smg_status smg_vk_model_submit(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                                       int output_count, const smg_vulkan_sync *sync, smg_ticket *out_ticket);

/* ---- runs in the application's own command buffers ---------------------------------------------------- */

/* As smg_model_submit, but the run is recorded into `commands`, which are being recorded outside of a render pass, for
 * a queue of the device's family. The application submits them, as often as it likes, on that queue. Arrays of the host
 * are read during the call; tensors are read and written by each execution. In front of the run and behind it are
 * barriers to compute shaders and copies; other stages, and reads of the host's, need the application's.
 * From then on the run is in flight, until smg_vk_ticket_over; the command buffer runs no more, or is reset, by then.
 * On a failure the command buffer is to be reset.
 * INVALID: as smg_model_submit, or `commands` is null. */
SMG_API smg_status smg_vk_model_record(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                                       int output_count, VkCommandBuffer commands, smg_ticket *out_ticket);
/* All executions of the ticket's commands are over, and there are no further ones. `ran`: there was one; outputs that
 * go to the host are those of the last, and the status is what smg_model_run would have returned.
 * INVALID: the ticket is of no such run, or it is over. */
SMG_API smg_status smg_vk_ticket_over(smg_ticket ticket, bool ran);

/* ---- buffers ---------------------------------------------------------------------------------------- */

/* A VkBuffer of the application's, or a part of it, that the queue's family owns. */
typedef struct smg_vulkan_buffer {
    VkBuffer buffer;
    VkDeviceSize offset; /* a multiple of minStorageBufferOffsetAlignment and of 16 */
    VkDeviceSize bytes;  /* from there on; the elements' bytes, rounded up to 16, at least */
} smg_vulkan_buffer;

/* The usage that such a buffer is made with, at least. */
SMG_API VkBufferUsageFlags smg_vk_tensor_usage(const smg_device *device);
/* A tensor in the application's memory, which stays the application's and outlives the tensor. smg_tensor_map is NULL.
 * INVALID: a handle is null, offset or bytes do not suit. */
SMG_API smg_status smg_vk_tensor_import(smg_device *device, const smg_device_tensor_desc *desc,
                                        const smg_vulkan_buffer *buffer, smg_device_tensor **out_tensor);
/* Memory by a file descriptor: of another VkDevice of the same physical device, of another process or API. */
typedef enum smg_vulkan_fd_kind {
    /* Of vkGetMemoryFdKHR, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, not dedicated to anything. */
    SMG_VULKAN_FD_OPAQUE,
    SMG_VULKAN_FD_DMA_BUF /* VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, also of others than Vulkan */
} smg_vulkan_fd_kind;
typedef struct smg_vulkan_fd {
    int fd; /* stays the application's */
    smg_vulkan_fd_kind kind;
    VkDeviceSize memory_bytes; /* of the whole allocation, as it was made */
    uint32_t memory_type;      /* OPAQUE: that it was made of */
    VkDeviceSize offset;       /* a multiple of minStorageBufferOffsetAlignment and of 16 */
    VkDeviceSize bytes;        /* from there on; the elements' bytes, rounded up to 16, at least */
} smg_vulkan_fd;
/* A tensor in that memory, which lives as long as the tensor does; the descriptor is not used after the call.
 * smg_tensor_map is NULL. What is written on one side is seen on the other when the run that writes is over (a ticket,
 * a semaphore); smg waits for nothing of the other side by itself.
 * UNSUPPORTED: VK_KHR_external_memory_fd, or for DMA_BUF VK_EXT_external_memory_dma_buf, is not enabled (the sentence
 * says which), or the driver imports no such memory; INVALID: no descriptor, of another kind, or its numbers do not
 * suit. */
SMG_API smg_status smg_vk_tensor_import_fd(smg_device *device, const smg_device_tensor_desc *desc,
                                           const smg_vulkan_fd *from, smg_device_tensor **out_tensor);
/* Where a tensor's elements lie, for the application's own commands on the same queue. */
SMG_API smg_status smg_vk_tensor_buffer(const smg_device_tensor *tensor, smg_vulkan_buffer *out_buffer);

#ifdef __cplusplus
}
#endif
#endif
