/* smg/device.h: a device that several models run on.
 *
 *     smg_device *device;
 *     smg_device_open(ctx, NULL, &device);                     or smg_vk_adopt (smg/vulkan.h): the application's own
 *     smg_bundle_desc desc = {.on = device};
 *     smg_model_open_bundle(ctx, "a.smgb", &desc, &a);
 *     smg_model_open_bundle(ctx, "b.smgb", &desc, &b);
 *     ...
 *     smg_device_close(device);                                after both models
 *
 * A model that is opened without one opens a device of its own. Ownership: the device outlives the models on it, and its
 * context outlives the device. Threads: as the context, one at a time.
 */
#ifndef SMG_DEVICE_H
#define SMG_DEVICE_H

#include "smg/context.h"
#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_vk_device smg_device;

/* `which`: an index ("0"), a type word ("cpu", "discrete") or a part of the name, in any case; NULL: the best.
 * NOT_FOUND: no Vulkan loader, no driver, no such device; the sentence lists those that there are. */
SMG_API smg_status smg_device_open(smg_context *ctx, const char *which, smg_device **out_device);
/* Destroys all that smg made on the device and frees its memory. What an application passed to smg_vk_adopt stays. NULL
 * is fine. */
SMG_API void smg_device_close(smg_device *device);
/* As the driver says; lives as long as the device. */
SMG_API const char *smg_device_name(const smg_device *device);

#ifdef __cplusplus
}
#endif
#endif
