/* smg/device.h: a device that several models run on, and arrays that stay on it.
 *
 *     smg_device *device;
 *     smg_device_open(ctx, NULL, &device);                     or smg_vk_adopt (smg/vulkan.h): the application's own
 *     smg_bundle_desc desc = {.on = device};
 *     smg_model_open_bundle(ctx, "a.smgb", &desc, &a);
 *     smg_model_open_bundle(ctx, "b.smgb", &desc, &b);
 *     ...
 *     smg_device_close(device);                                after both models
 *
 * A model that is opened without one opens a device of its own. Ownership: the device outlives the models on it, and
 * its context outlives the device. Closed before them, it goes with the last model or tensor on it. Threads: as the
 * context, one at a time.
 */
#ifndef SMG_DEVICE_H
#define SMG_DEVICE_H

#include <stdint.h>

#include "smg/context.h"
#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_vk_device smg_device;

/* What there is, before one is opened. */
typedef struct smg_device_info {
    char name[256];
    char driver[256];                    /* its name and version, as it says them */
    const char *type;                    /* "discrete", "integrated", "virtual", "cpu" or "other" */
    int64_t memory_bytes;                /* of its own, the largest heap */
    int api_major, api_minor, api_patch; /* of Vulkan */
} smg_device_info;
/* In the order of the indices that smg_device_open takes. *out_count: how many there are, of which at most `capacity`
 * are given; out_list may be NULL where that is 0. NOT_FOUND: no Vulkan loader, no driver, no device. */
SMG_API smg_status smg_device_list(smg_context *ctx, smg_device_info *out_list, int capacity, int *out_count);

/* `which`: an index ("0"), a type word ("cpu", "discrete") or a part of the name, in any case; NULL: what $SMG_DEVICE
 * names, else the best.
 * NOT_FOUND: no Vulkan loader, no driver, no such device; the sentence lists those that there are. */
SMG_API smg_status smg_device_open(smg_context *ctx, const char *which, smg_device **out_device);
typedef enum smg_priority { SMG_PRIORITY_NORMAL = 0, SMG_PRIORITY_LOW, SMG_PRIORITY_HIGH } smg_priority;

/* All fields may be zero. */
typedef struct smg_device_desc {
    const char *which; /* as smg_device_open takes it */
    /* Of smg's queue: among those of all programs on the system where the driver has VK_KHR_global_priority, which may
     * ask for a right to a high one; else it is what the driver makes of priorities within one device, mostly nothing.
     * A log line tells of what is not to be had. */
    smg_priority priority;
} smg_device_desc;
/* desc may be NULL. Fails as smg_device_open; INVALID: no such priority. */
SMG_API smg_status smg_device_open_desc(smg_context *ctx, const smg_device_desc *desc, smg_device **out_device);
/* The same device for another context, and so for another thread: models and tensors there are its own, the queue is
 * taken in turns, and runs of both are done in the order in which they were submitted. A tensor of one may be given to
 * runs of the other, where one thread at a time uses it. To be called where `device` may be used; closed before it.
 * Failures are told by ctx. DEVICE: it is lost. */
SMG_API smg_status smg_device_share(smg_device *device, smg_context *ctx, smg_device **out_device);
/* Destroys all that smg made on the device and frees its memory. What an application passed to smg_vk_adopt stays, and
 * is used until the last model and tensor on it are gone. NULL is fine. */
SMG_API void smg_device_close(smg_device *device);
/* As the driver says; lives as long as the device. */
SMG_API const char *smg_device_name(const smg_device *device);

/* ---- arrays on the device --------------------------------------------------------------------------- */

/* Memory of a device for elements of one type. A run takes and gives it where smg_tensor.on names it, without a copy:
 * kernels read and write it where it lies. What one model wrote the next one reads, in the order of their runs.
 * It outlives the runs that use it. */
typedef struct smg_device_tensor smg_device_tensor;

typedef struct smg_device_tensor_desc {
    const char *name;   /* for sentences; NULL: "tensor". Copied */
    const char *type;   /* of the host's elements: f32 f16 bf16 i32 i64 bool */
    const char *stored; /* "f16" or "bf16": how f32 lies on the device; NULL: as itself (i64 as i32, bool in 4 bytes) */
    int64_t elements;   /* that it has room for, at least 1; a run may use fewer */
} smg_device_tensor_desc;

/* INVALID: no such type, or less than one element; NO_FIT: more than the device binds; DEVICE_MEMORY. Elements are not
 * set to anything. */
SMG_API smg_status smg_tensor_create(smg_device *device, const smg_device_tensor_desc *desc,
                                     smg_device_tensor **out_tensor);
SMG_API void smg_tensor_destroy(smg_device_tensor *tensor); /* NULL is fine */
/* `count` elements from the element `first` on, converted on the way where the types differ. Both return when it is
 * done, behind the runs before. INVALID: not inside the tensor, or an element that the device's type does not hold,
 * with its position. */
SMG_API smg_status smg_tensor_upload(smg_device_tensor *tensor, int64_t first, const void *data, int64_t count);
SMG_API smg_status smg_tensor_download(smg_device_tensor *tensor, int64_t first, void *data, int64_t count);
/* The elements as they lie on the device, for the host to read and write between runs; NULL: the host cannot see that
 * memory (it does on integrated devices and on cpus). Lives as long as the tensor. */
SMG_API void *smg_tensor_map(smg_device_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
