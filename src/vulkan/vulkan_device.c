/* Opening a device by a user's word, and closing. A device owns one compute queue, one command pool, the pipeline cache
 * and a staging buffer made when first needed. */
#include "vulkan/vulkan_private.h"

#include "smg/device.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- choosing ------------------------------------------------------------------------------- */

static int rank(smg_device_type type) {
    switch (type) {
    case SMG_DEVICE_DISCRETE: return 4;
    case SMG_DEVICE_INTEGRATED: return 3;
    case SMG_DEVICE_VIRTUAL: return 2;
    case SMG_DEVICE_CPU: return 1;
    case SMG_DEVICE_OTHER: break;
    }
    return 0;
}

static bool is_index(const char *which) {
    size_t length = strlen(which);
    return length > 0 && length < 4 && strspn(which, "0123456789") == length;
}

static smg_status choose(smg_vk_instance *instance, const char *which, const VkPhysicalDevice *list, int count,
                         int *out_index) {
    smg_context *ctx = instance->ctx;
    if (which && is_index(which)) {
        *out_index = atoi(which);
        if (*out_index < count) return SMG_OK;
        return smg_fail(ctx, SMG_NOT_FOUND, "no Vulkan device %s: there are %d, from 0", which, count);
    }
    int best = -1, best_rank = -1;
    smg_text names;
    smg_text_init(&names, ctx);
    for (int i = 0; i < count; i++) {
        smg_vk_device_info info;
        smg_vk_describe(instance, list[i], i, &info);
        smg_text_addf(&names, "%s'%s' (%s)", i ? ", " : "", info.name, smg_device_type_word(info.type));
        bool match =
            !which || strcmp(which, smg_device_type_word(info.type)) == 0 || smg_text_contains(info.name, which);
        if (match && rank(info.type) > best_rank) {
            best = i;
            best_rank = rank(info.type);
        }
    }
    smg_status status = SMG_OK;
    if (best < 0)
        status =
            smg_fail(ctx, SMG_NOT_FOUND, "no Vulkan device matches '%s'; there are %s", which, smg_text_cstr(&names));
    smg_text_free(&names);
    *out_index = best;
    return status;
}

/* ---- creation ------------------------------------------------------------------------------- */

smg_status smg_vk_device_load(smg_vk_device *dev) {
#define LOAD(function)                                                                                                 \
    dev->fn.function =                                                                                                 \
        (PFN_vk##function)(void (*)(void))dev->instance->fn.GetDeviceProcAddr(dev->handle, "vk" #function);
#define REQUIRE(function)                                                                                              \
    LOAD(function)                                                                                                     \
    if (!dev->fn.function)                                                                                             \
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "device '%s' has no vk" #function, dev->target.name);
    SMG_VK_DEVICE_FUNCTIONS(REQUIRE)
    SMG_VK_DEVICE_OPTIONAL(LOAD)
#undef REQUIRE
#undef LOAD
    return SMG_OK;
}

smg_status smg_vk_device_new(smg_context *ctx, smg_vk_instance *instance, unsigned flags, smg_vk_device **out_dev) {
    smg_vk_device *dev = smg_alloc(ctx, 1, sizeof *dev);
    if (!dev) {
        smg_vk_instance_destroy(instance);
        return SMG_MEMORY;
    }
    dev->ctx = ctx;
    dev->instance = instance;
    dev->flags = flags;
    const char *stats = getenv("SMG_STATS");
    dev->keep_stats = stats && stats[0] && strcmp(stats, "0") != 0;
    dev->common = &dev->own;
    *out_dev = dev;
    SMG_TRY(smg_arena_create(ctx, &dev->arena));
    return smg_lock_create(ctx, &dev->own.queue_lock);
}

smg_status smg_vk_device_describe(smg_vk_device *dev, smg_vk_extensions *extensions) {
    smg_vk_instance *instance = dev->instance;
    instance->fn.GetPhysicalDeviceProperties(dev->physical, &dev->properties);
    instance->fn.GetPhysicalDeviceMemoryProperties(dev->physical, &dev->memory);
    uint32_t version = dev->properties.apiVersion;
    dev->api_version = version < instance->api_version ? version : instance->api_version;
    snprintf(dev->target.name, sizeof dev->target.name, "%.120s", dev->properties.deviceName);
    return smg_vk_list_extensions(instance, dev->arena, dev->physical, extensions);
}

#define PRIORITIES (SMG_VK_LOW_PRIORITY | SMG_VK_HIGH_PRIORITY)

static VkResult create_with_queue(smg_vk_device *dev, const VkDeviceQueueCreateInfo *queue) {
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &dev->features.core,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = queue,
        .enabledExtensionCount = dev->features.extension_count,
        .ppEnabledExtensionNames = dev->features.extensions,
    };
    VkResult result = dev->instance->fn.CreateDevice(dev->physical, &info, NULL, &dev->handle);
    if (result != VK_SUCCESS) dev->handle = VK_NULL_HANDLE;
    return result;
}

/* May the queue have a priority among those of other programs, too? */
static bool takes_priority(smg_vk_device *dev, const smg_vk_extensions *extensions) {
    static const char *const names[] = {"VK_KHR_global_priority", "VK_EXT_global_priority"};
    if (!(dev->flags & PRIORITIES)) return false;
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++)
        if (smg_vk_has_extension(extensions, names[i])) return smg_vk_features_add(&dev->features, names[i]);
    smg_log(dev->ctx, SMG_LOG_INFO, "'%s' knows no priorities between programs: the queue has one of the device's own",
            dev->target.name);
    return false;
}

static smg_status create_handle(smg_vk_device *dev, const smg_vk_extensions *extensions) {
    bool low = dev->flags & SMG_VK_LOW_PRIORITY, among_all = takes_priority(dev, extensions);
    const float priority = low ? 0.0f : 1.0f;
    const VkDeviceQueueGlobalPriorityCreateInfoKHR global = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_KHR,
        .globalPriority = low ? VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR : VK_QUEUE_GLOBAL_PRIORITY_HIGH_KHR,
    };
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .pNext = among_all ? &global : NULL,
        .queueFamilyIndex = dev->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkResult result = create_with_queue(dev, &queue);
    if (among_all && (result == VK_ERROR_NOT_PERMITTED_KHR || result == VK_ERROR_INITIALIZATION_FAILED)) {
        smg_log(dev->ctx, SMG_LOG_WARNING, "'%s' gives this program no queue of %s priority: it has an ordinary one",
                dev->target.name, low ? "low" : "high");
        queue.pNext = NULL;
        result = create_with_queue(dev, &queue);
    }
    SMG_TRY(smg_vk_result(dev, result, "vkCreateDevice", "smg"));
    dev->owned = true;
    return SMG_OK;
}

static smg_status create_pool(smg_vk_device *dev) {
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = dev->family,
    };
    VkResult result = dev->fn.CreateCommandPool(dev->handle, &pool, NULL, &dev->pool);
    if (result != VK_SUCCESS) dev->pool = VK_NULL_HANDLE;
    return smg_vk_result(dev, result, "vkCreateCommandPool", "smg");
}

smg_status smg_vk_device_finish(smg_vk_device *dev, const smg_vk_extensions *extensions) {
    for (uint32_t i = 0; i < dev->features.extension_count; i++)
        if (strcmp(dev->features.extensions[i], "VK_EXT_memory_budget") == 0) dev->has_budget = true;
    SMG_TRY(smg_vk_query_target(dev, extensions));
    SMG_TRY(create_pool(dev));
    smg_vk_cache_load(dev);
    return SMG_OK;
}

smg_status smg_vk_share(smg_context *ctx, smg_vk_device *from, smg_vk_device **out_dev) {
    *out_dev = NULL;
    smg_vk_device *dev = smg_alloc(ctx, 1, sizeof *dev);
    if (!dev) return SMG_MEMORY;
    *dev = (smg_vk_device){
        .ctx = ctx,
        .common = from->common,
        .from = ctx == from->ctx ? from : NULL,
        .instance = from->instance,
        .physical = from->physical,
        .handle = from->handle,
        .flags = from->flags,
        .queue = from->queue,
        .lock_queue = from->lock_queue,
        .unlock_queue = from->unlock_queue,
        .lock_user = from->lock_user,
        .family = from->family,
        .timestamp_bits = from->timestamp_bits,
        .api_version = from->api_version,
        .fn = from->fn,
        .features = from->features,
        .has_budget = from->has_budget,
        .properties = from->properties,
        .memory = from->memory,
        .cache = from->cache,
        .calibrated = from->calibrated,
        .proved = from->proved,
        .proved_matrices = from->proved_matrices,
        .offered = from->offered,
        .target = from->target,
        .fitted = from->fitted,
    };
    atomic_fetch_add(&dev->instance->silent, 1);
    smg_vk_keep(dev->from);
    smg_status status = smg_vk_check_alive(dev);
    if (status == SMG_OK) status = smg_arena_create(ctx, &dev->arena);
    if (status == SMG_OK) status = create_pool(dev);
    if (status != SMG_OK) {
        smg_vk_close(dev);
        return status;
    }
    *out_dev = dev;
    return SMG_OK;
}

smg_status smg_device_share(smg_device *device, smg_context *ctx, smg_device **out_device) {
    if (!out_device) return SMG_INVALID;
    *out_device = NULL;
    if (!device || !ctx) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, smg_vk_share(ctx, device, out_device));
}

static smg_status open_physical(smg_vk_device *dev, const char *which) {
    VkPhysicalDevice *list = NULL;
    int count = 0, index = 0;
    SMG_TRY(smg_vk_list_physical(dev->instance, dev->arena, &list, &count));
    SMG_TRY(choose(dev->instance, which, list, count, &index));
    dev->physical = list[index];
    smg_vk_extensions extensions;
    SMG_TRY(smg_vk_device_describe(dev, &extensions));
    if (!smg_vk_compute_family(dev->instance, dev->arena, dev->physical, &dev->family, &dev->timestamp_bits))
        return smg_fail(dev->ctx, SMG_UNSUPPORTED, "device '%s' has no compute queue", dev->target.name);
    smg_vk_features_choose(dev->instance, dev->physical, dev->api_version, &extensions, dev->flags, &dev->features);
    SMG_TRY(create_handle(dev, &extensions));
    SMG_TRY(smg_vk_device_load(dev));
    dev->fn.GetDeviceQueue(dev->handle, dev->family, 0, &dev->queue);
    return smg_vk_device_finish(dev, &extensions);
}

smg_status smg_vk_open(smg_context *ctx, const char *which, unsigned flags, smg_vk_device **out_dev) {
    *out_dev = NULL;
    smg_vk_instance *instance = NULL;
    SMG_TRY(smg_vk_instance_create(ctx, &instance));
    smg_vk_device *dev = NULL;
    smg_status status = smg_vk_device_new(ctx, instance, flags, &dev);
    if (!which || !which[0]) which = getenv("SMG_DEVICE");
    if (which && !which[0]) which = NULL;
    if (status == SMG_OK) status = open_physical(dev, which);
    if (status != SMG_OK) {
        smg_vk_close(dev);
        return status;
    }
    smg_log(ctx, SMG_LOG_INFO, "device '%s' (%s), driver %s%s", dev->target.name,
            smg_device_type_word(dev->target.type), dev->target.driver, instance->validation ? ", validated" : "");
    *out_dev = dev;
    return SMG_OK;
}

smg_status smg_device_open(smg_context *ctx, const char *which, smg_device **out_device) {
    const smg_device_desc desc = {.which = which};
    return smg_device_open_desc(ctx, &desc, out_device);
}

smg_status smg_device_open_desc(smg_context *ctx, const smg_device_desc *desc, smg_device **out_device) {
    static const unsigned flags[] = {0, SMG_VK_LOW_PRIORITY, SMG_VK_HIGH_PRIORITY};
    if (!out_device) return SMG_INVALID;
    *out_device = NULL;
    if (!ctx) return SMG_INVALID;
    smg_context_clear_error(ctx);
    unsigned priority = desc ? (unsigned)desc->priority : 0;
    if (priority >= SMG_COUNT_OF(flags))
        return smg_fail(ctx, SMG_INVALID, "smg_device_open_desc: there is no priority %u", priority);
    return smg_context_told(ctx, smg_vk_open(ctx, desc ? desc->which : NULL, flags[priority], out_device));
}

void smg_device_close(smg_device *device) {
    smg_vk_close(device);
}

void smg_vk_keep(smg_vk_device *dev) {
    if (dev) dev->users++;
}

void smg_vk_leave(smg_vk_device *dev) {
    if (dev && --dev->users == 0 && dev->closed) smg_vk_close(dev);
}

void smg_vk_close(smg_vk_device *dev) {
    if (!dev) return;
    dev->closed = true;
    if (dev->users > 0) return;
    smg_context *ctx = dev->ctx;
    bool first = dev->common == &dev->own;
    if (dev->handle && dev->fn.DestroyCommandPool) {
        smg_vk_transfer_destroy(dev);
        if (first) smg_vk_cache_store(dev);
        if (first) smg_vk_modules_store(dev);
        if (first && dev->cache) dev->fn.DestroyPipelineCache(dev->handle, dev->cache, NULL);
        if (dev->pool) dev->fn.DestroyCommandPool(dev->handle, dev->pool, NULL);
    }
    if (dev->owned && dev->fn.DestroyDevice) dev->fn.DestroyDevice(dev->handle, NULL);
    if (first)
        smg_vk_instance_destroy(dev->instance);
    else
        atomic_fetch_sub(&dev->instance->silent, 1);
    smg_lock_destroy(dev->own.queue_lock);
    smg_arena_destroy(dev->arena);
    smg_vk_device *from = dev->from;
    smg_free(ctx, dev, sizeof *dev);
    smg_vk_leave(from);
}

/* ---- small answers -------------------------------------------------------------------------- */

smg_context *smg_vk_context(const smg_vk_device *dev) {
    return dev->ctx;
}
/* Numbers of buffers, and the order of the queue, are those of one device and its shares. */
bool smg_vk_same_device(const smg_vk_device *a, const smg_vk_device *b) {
    return a->common == b->common;
}
const char *smg_device_name(const smg_device *device) {
    return device ? device->target.name : "";
}
const smg_target *smg_vk_target(const smg_vk_device *dev) {
    return &dev->target;
}
int smg_vk_validation_errors(const smg_vk_device *dev) {
    return dev->instance->validation_messages;
}
bool smg_vk_validation_on(const smg_vk_device *dev) {
    return dev->instance->validation;
}
void smg_vk_keep_stats(smg_vk_device *dev, bool keep) {
    dev->keep_stats = keep;
}
