/* vulkan_adopt.c: a device that is the application's: what smg would have enabled on it, and taking it as it is. */
#include "vulkan/vulkan_private.h"

#include "smg/vulkan.h"

static smg_status check_handles(smg_context *ctx, const smg_vulkan_desc *desc) {
    if (!desc || !desc->instance || !desc->physical_device || !desc->get_instance_proc_addr)
        return smg_fail(ctx, SMG_INVALID, "smg_vulkan_desc: a handle is null");
    if (!desc->extensions && desc->extension_count > 0)
        return smg_fail(ctx, SMG_INVALID, "smg_vulkan_desc: %u extensions, whose array is null",
                        (unsigned)desc->extension_count);
    return SMG_OK;
}

static smg_status check_version(const smg_vk_device *dev) {
    if (dev->properties.apiVersion >= VK_API_VERSION_1_1) return SMG_OK;
    return smg_fail(dev->ctx, SMG_UNSUPPORTED, "device '%s' is of Vulkan 1.0, 1.1 is needed", dev->target.name);
}

/* ---- buffers -------------------------------------------------------------------------------- */

VkBufferUsageFlags smg_vk_tensor_usage(const smg_device *device) {
    return device ? smg_vk_buffer_usage(device, SMG_VK_DEVICE) : 0;
}

void smg_vk_buffer_handle(const smg_vk_buffer *buffer, void *out_handle) {
    memcpy(out_handle, &buffer->handle, sizeof buffer->handle);
}

/* ---- wishes --------------------------------------------------------------------------------- */

typedef struct wishes {
    smg_vulkan_wishes told; /* first: its address is the caller's handle */
    smg_vk_device *asked;   /* no VkDevice is behind it; its arena has the lists */
    smg_vk_features features;
} wishes;

static bool is_listed(const char *const *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

static smg_status join_extensions(wishes *w, const smg_vulkan_desc *desc) {
    const smg_vk_features *features = &w->features;
    smg_arena *arena = w->asked->arena;
    uint32_t count = 0;
    const char **all =
        SMG_ARENA_ARRAY(arena, const char *, (size_t)desc->extension_count + features->extension_count + 1);
    if (!all) return SMG_MEMORY;
    for (uint32_t i = 0; i < desc->extension_count; i++) {
        all[count] = smg_arena_string(arena, desc->extensions[i]);
        if (!all[count++]) return SMG_MEMORY;
    }
    for (uint32_t i = 0; i < features->extension_count; i++)
        if (!is_listed(desc->extensions, desc->extension_count, features->extensions[i]))
            all[count++] = features->extensions[i];
    w->told.extensions = all;
    w->told.extension_count = count;
    return SMG_OK;
}

static smg_status make_wishes(wishes *w, const smg_vulkan_desc *desc, void *chain) {
    smg_vk_device *dev = w->asked;
    smg_vk_extensions extensions;
    dev->physical = desc->physical_device;
    SMG_TRY(smg_vk_device_describe(dev, &extensions));
    SMG_TRY(check_version(dev));
    smg_vk_features_choose(dev->instance, dev->physical, dev->api_version, &extensions, 0, &w->features);
    w->told.enabled = smg_vk_features_join(&w->features, chain);
    return join_extensions(w, desc);
}

static smg_status wish(smg_context *ctx, const smg_vulkan_desc *desc, void *chain, smg_vulkan_wishes **out_wishes) {
    smg_vk_instance *instance = NULL;
    smg_vk_device *dev = NULL;
    SMG_TRY(check_handles(ctx, desc));
    SMG_TRY(smg_vk_instance_wrap(ctx, desc->instance, desc->get_instance_proc_addr, desc->api_version, &instance));
    smg_status status = smg_vk_device_new(ctx, instance, 0, &dev);
    wishes *w = status == SMG_OK ? SMG_ARENA_NEW(dev->arena, wishes) : NULL;
    if (w) {
        w->asked = dev;
        status = make_wishes(w, desc, chain);
    } else if (status == SMG_OK) {
        status = SMG_MEMORY;
    }
    if (status != SMG_OK) {
        smg_vk_close(dev);
        return status;
    }
    *out_wishes = &w->told;
    return SMG_OK;
}

smg_status smg_vk_wish(smg_context *context, const smg_vulkan_desc *desc, void *chain, smg_vulkan_wishes **out_wishes) {
    if (!out_wishes) return SMG_INVALID;
    *out_wishes = NULL;
    if (!context) return SMG_INVALID;
    smg_context_clear_error(context);
    return smg_context_told(context, wish(context, desc, chain, out_wishes));
}

void smg_vk_wishes_free(smg_vulkan_wishes *told) {
    wishes *w = (wishes *)(void *)told;
    if (w) smg_vk_close(w->asked);
}

/* ---- adopting ------------------------------------------------------------------------------- */

static smg_status adopt(smg_vk_device *dev, const smg_vulkan_desc *desc) {
    dev->physical = desc->physical_device;
    smg_vk_extensions extensions;
    SMG_TRY(smg_vk_device_describe(dev, &extensions));
    SMG_TRY(check_version(dev));
    uint32_t count = 0;
    dev->instance->fn.GetPhysicalDeviceQueueFamilyProperties(dev->physical, &count, NULL);
    VkQueueFamilyProperties *families = SMG_ARENA_ARRAY(dev->arena, VkQueueFamilyProperties, (size_t)count + 1);
    if (!families) return SMG_MEMORY;
    dev->instance->fn.GetPhysicalDeviceQueueFamilyProperties(dev->physical, &count, families);
    if (desc->queue_family >= count || !(families[desc->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return smg_fail(dev->ctx, SMG_INVALID, "queue family %u of device '%s' has no compute",
                        (unsigned)desc->queue_family, dev->target.name);
    dev->timestamp_bits = families[desc->queue_family].timestampValidBits;
    dev->family = desc->queue_family;
    dev->queue = desc->queue;
    dev->lock_queue = desc->lock_queue;
    dev->unlock_queue = desc->unlock_queue;
    dev->lock_user = desc->lock_user;
    dev->handle = desc->device;
    smg_vk_features_from_chain(desc->enabled, desc->extensions, desc->extension_count, &dev->features);
    SMG_TRY(smg_vk_device_load(dev));
    return smg_vk_device_finish(dev, &extensions);
}

static smg_status adopt_new(smg_context *ctx, const smg_vulkan_desc *desc, smg_device **out_device) {
    SMG_TRY(check_handles(ctx, desc));
    if (!desc->device || !desc->queue) return smg_fail(ctx, SMG_INVALID, "smg_vulkan_desc: a handle is null");
    if ((desc->lock_queue != NULL) != (desc->unlock_queue != NULL))
        return smg_fail(ctx, SMG_INVALID, "smg_vulkan_desc: of lock_queue and unlock_queue one is null");
    smg_vk_instance *instance = NULL;
    SMG_TRY(smg_vk_instance_wrap(ctx, desc->instance, desc->get_instance_proc_addr, desc->api_version, &instance));
    smg_vk_device *dev = NULL;
    smg_status status = smg_vk_device_new(ctx, instance, 0, &dev);
    if (status == SMG_OK) status = adopt(dev, desc);
    if (status != SMG_OK) {
        smg_vk_close(dev);
        return status;
    }
    *out_device = dev;
    return SMG_OK;
}

smg_status smg_vk_adopt(smg_context *context, const smg_vulkan_desc *desc, smg_device **out_device) {
    if (!out_device) return SMG_INVALID;
    *out_device = NULL;
    if (!context) return SMG_INVALID;
    smg_context_clear_error(context);
    return smg_context_told(context, adopt_new(context, desc, out_device));
}
