/* Optional features, asked for and enabled one by one. A structure enters the query chain only where
 * the device's version or an extension has it; of what is offered, only the wanted members are
 * enabled. For an adopted device the application's own chain says what is on. */
#include "vulkan/vulkan_private.h"

static void add_extension(smg_vk_features *features, const char *name) {
    if (features->extension_count < SMG_VK_MAX_EXTENSIONS) features->extensions[features->extension_count++] = name;
}

/* Extensions without a feature bit that are used where present. */
static const struct {
    const char *name;
    uint32_t core_version;
} plain_extensions[] = {
    {"VK_KHR_driver_properties", VK_API_VERSION_1_2}, {"VK_KHR_shader_float_controls", VK_API_VERSION_1_2},
    {"VK_KHR_spirv_1_4", VK_API_VERSION_1_2},         {"VK_EXT_memory_budget", UINT32_MAX},
    {"VK_KHR_portability_subset", UINT32_MAX},
};

static void add_plain_extensions(uint32_t api_version, const smg_vk_extensions *extensions, smg_vk_features *features) {
    for (size_t i = 0; i < SMG_COUNT_OF(plain_extensions); i++)
        if (api_version < plain_extensions[i].core_version &&
            smg_vk_has_extension(extensions, plain_extensions[i].name))
            add_extension(features, plain_extensions[i].name);
}

static bool offered(uint32_t api_version, const smg_vk_extensions *extensions, const char *name,
                    uint32_t core_version) {
    return api_version >= core_version || smg_vk_has_extension(extensions, name);
}

void smg_vk_features_choose(smg_vk_instance *instance, VkPhysicalDevice physical, uint32_t api_version,
                            const smg_vk_extensions *extensions, unsigned flags, smg_vk_features *out_features) {
    smg_vk_features *chosen = out_features;
    memset(chosen, 0, sizeof *chosen);
    chosen->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    add_plain_extensions(api_version, extensions, chosen);
    if (flags & SMG_VK_NO_OPTIONAL) return;

    smg_vk_features have;
    memset(&have, 0, sizeof have);
    have.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
#define CHAIN(field, type, stype, extension, version)                                                                  \
    if (offered(api_version, extensions, extension, version)) {                                                        \
        have.field.sType = stype;                                                                                      \
        have.field.pNext = have.core.pNext;                                                                            \
        have.core.pNext = &have.field;                                                                                 \
    }
    SMG_VK_FEATURE_STRUCTS(CHAIN)
#undef CHAIN
    instance->fn.GetPhysicalDeviceFeatures2(physical, &have.core);

#define TAKE_CORE(member) chosen->core.features.member = have.core.features.member;
    SMG_VK_WANTED_CORE(TAKE_CORE)
#undef TAKE_CORE
#define TAKE(field, member) chosen->field.member = have.field.member;
    SMG_VK_WANTED(TAKE)
#undef TAKE
    /* Shaders have atomics of device scope, which the memory model alone would forbid. */
    if (!have.memory_model.vulkanMemoryModelDeviceScope) chosen->memory_model.vulkanMemoryModel = VK_FALSE;
#define CHAIN(field, type, stype, extension, version)                                                                  \
    if (have.field.sType) {                                                                                            \
        chosen->field.sType = stype;                                                                                   \
        chosen->field.pNext = chosen->core.pNext;                                                                      \
        chosen->core.pNext = &chosen->field;                                                                           \
        if (api_version < (version)) add_extension(chosen, extension);                                                 \
    }
    SMG_VK_FEATURE_STRUCTS(CHAIN)
#undef CHAIN
}

/* ---- an application's chain ----------------------------------------------------------------- */

static void take_vulkan11(const void *link, smg_vk_features *out) {
    const VkPhysicalDeviceVulkan11Features *f = link;
    out->storage16.storageBuffer16BitAccess |= f->storageBuffer16BitAccess;
}

static void take_vulkan12(const void *link, smg_vk_features *out) {
    const VkPhysicalDeviceVulkan12Features *f = link;
    out->storage8.storageBuffer8BitAccess |= f->storageBuffer8BitAccess;
    out->float16_int8.shaderFloat16 |= f->shaderFloat16;
    out->float16_int8.shaderInt8 |= f->shaderInt8;
    out->subgroup_types.shaderSubgroupExtendedTypes |= f->shaderSubgroupExtendedTypes;
    out->memory_model.vulkanMemoryModel |= f->vulkanMemoryModel;
    out->addresses.bufferDeviceAddress |= f->bufferDeviceAddress;
    out->memory_model.vulkanMemoryModelDeviceScope |= f->vulkanMemoryModelDeviceScope;
}

static void take_vulkan13(const void *link, smg_vk_features *out) {
    const VkPhysicalDeviceVulkan13Features *f = link;
    out->subgroup_size.subgroupSizeControl |= f->subgroupSizeControl;
    out->subgroup_size.computeFullSubgroups |= f->computeFullSubgroups;
    out->maintenance4.maintenance4 |= f->maintenance4;
    out->dot_product.shaderIntegerDotProduct |= f->shaderIntegerDotProduct;
}

/* One named structure: its members are added to what other structures of the chain enabled. */
static void take_named(const void *link, VkStructureType stype, smg_vk_features *out) {
    smg_vk_features seen;
    memset(&seen, 0, sizeof seen);
#define COPY(field, type, wanted, extension, version)                                                                  \
    if (stype == (wanted)) memcpy(&seen.field, link, sizeof seen.field);
    SMG_VK_FEATURE_STRUCTS(COPY)
#undef COPY
#define TAKE(field, member) out->field.member |= seen.field.member;
    SMG_VK_WANTED(TAKE)
#undef TAKE
}

void smg_vk_features_from_chain(const void *chain, const char *const *extensions, uint32_t count,
                                smg_vk_features *out_features) {
    memset(out_features, 0, sizeof *out_features);
    out_features->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    for (uint32_t i = 0; i < count; i++) add_extension(out_features, extensions[i]);
    for (const VkBaseInStructure *link = chain; link; link = link->pNext) {
        switch (link->sType) {
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
            memcpy(&out_features->core.features, &((const VkPhysicalDeviceFeatures2 *)(const void *)link)->features,
                   sizeof out_features->core.features);
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES: take_vulkan11(link, out_features); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: take_vulkan12(link, out_features); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES: take_vulkan13(link, out_features); break;
        default: take_named(link, link->sType, out_features); break;
        }
    }
}
