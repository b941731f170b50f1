/* Optional features, asked for and enabled one by one. A structure enters the query chain only where
 * the device's version or an extension has it; of what is offered, only the wanted members are
 * enabled. For an adopted device the application's own chain says what is on. */
#include "vulkan/vulkan_private.h"

bool smg_vk_features_add(smg_vk_features *features, const char *name) {
    if (features->extension_count >= SMG_VK_MAX_EXTENSIONS) return false;
    features->extensions[features->extension_count++] = name;
    return true;
}

/* Extensions without a feature bit that are used where present. */
static const struct {
    const char *name;
    uint32_t core_version;
} plain_extensions[] = {
    {"VK_KHR_driver_properties", VK_API_VERSION_1_2}, {"VK_KHR_shader_float_controls", VK_API_VERSION_1_2},
    {"VK_KHR_spirv_1_4", VK_API_VERSION_1_2},         {"VK_EXT_memory_budget", UINT32_MAX},
    {"VK_KHR_portability_subset", UINT32_MAX},        {"VK_KHR_external_memory_fd", UINT32_MAX},
    {"VK_EXT_external_memory_dma_buf", UINT32_MAX},
};

static void add_plain_extensions(uint32_t api_version, const smg_vk_extensions *extensions, smg_vk_features *features) {
    for (size_t i = 0; i < SMG_COUNT_OF(plain_extensions); i++)
        if (api_version < plain_extensions[i].core_version &&
            smg_vk_has_extension(extensions, plain_extensions[i].name))
            smg_vk_features_add(features, plain_extensions[i].name);
}

/* A validation layer that is as old as headers without the extension calls each use of it an error. */
static bool is_unknown(const smg_vk_instance *instance, const char *name) {
#ifdef SMG_VK_OLD_HEADERS
    return instance->validation && strcmp(name, "VK_KHR_shader_bfloat16") == 0;
#else
    return (void)instance, (void)name, false;
#endif
}

static bool offered(const smg_vk_instance *instance, uint32_t api_version, const smg_vk_extensions *extensions,
                    const char *name, uint32_t core_version) {
    return api_version >= core_version || (smg_vk_has_extension(extensions, name) && !is_unknown(instance, name));
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
    if (offered(instance, api_version, extensions, extension, version)) {                                              \
        have.field.sType = stype;                                                                                      \
        have.field.pNext = have.core.pNext;                                                                            \
        have.core.pNext = &have.field;                                                                                 \
    }
    SMG_VK_FEATURE_STRUCTS(CHAIN) /* NOLINT: types of structures may be younger than the header */
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
        if (api_version < (version)) smg_vk_features_add(chosen, extension);                                           \
    }
    SMG_VK_FEATURE_STRUCTS(CHAIN) /* NOLINT: types of structures may be younger than the header */
#undef CHAIN
}

/* ---- an application's chain ----------------------------------------------------------------- */

/* X(field, member): wanted members that the structure of one version of Vulkan has, too. */
#define MEMBERS_11(X) X(storage16, storageBuffer16BitAccess)
#define MEMBERS_12(X)                                                                                                  \
    X(storage8, storageBuffer8BitAccess)                                                                               \
    X(float16_int8, shaderFloat16)                                                                                     \
    X(float16_int8, shaderInt8)                                                                                        \
    X(subgroup_types, shaderSubgroupExtendedTypes)                                                                     \
    X(memory_model, vulkanMemoryModel)                                                                                 \
    X(memory_model, vulkanMemoryModelDeviceScope)                                                                      \
    X(addresses, bufferDeviceAddress)
#define MEMBERS_13(X)                                                                                                  \
    X(subgroup_size, subgroupSizeControl)                                                                              \
    X(subgroup_size, computeFullSubgroups)                                                                             \
    X(maintenance4, maintenance4)                                                                                      \
    X(dot_product, shaderIntegerDotProduct)

#define VERSIONS(X)                                                                                                    \
    X(MEMBERS_11, VkPhysicalDeviceVulkan11Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES)             \
    X(MEMBERS_12, VkPhysicalDeviceVulkan12Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)             \
    X(MEMBERS_13, VkPhysicalDeviceVulkan13Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES)

static void take_version(const VkBaseInStructure *link, smg_vk_features *out) {
#define MEMBER(field, member) out->field.member |= seen.member;
#define VERSION(members, type, stype)                                                                                  \
    if (link->sType == (stype)) {                                                                                      \
        type seen;                                                                                                     \
        memcpy(&seen, link, sizeof seen);                                                                              \
        members(MEMBER);                                                                                               \
    }
    VERSIONS(VERSION)
#undef VERSION
#undef MEMBER
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
    for (uint32_t i = 0; i < count; i++) smg_vk_features_add(out_features, extensions[i]);
    for (const VkBaseInStructure *link = chain; link; link = link->pNext) {
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
            memcpy(&out_features->core.features, &((const VkPhysicalDeviceFeatures2 *)(const void *)link)->features,
                   sizeof out_features->core.features);
        take_version(link, out_features);
        take_named(link, link->sType, out_features);
    }
}

/* What the link can say of the wanted features it says from now on, and their own structures are not needed. */
static void tell_link(VkBaseOutStructure *link, const smg_vk_features *wanted, smg_vk_features *rest) {
#define MEMBER(field, member)                                                                                          \
    told.member |= wanted->field.member;                                                                               \
    rest->field.sType = (VkStructureType)0;
#define VERSION(members, type, stype)                                                                                  \
    if (link->sType == (stype)) {                                                                                      \
        type told;                                                                                                     \
        memcpy(&told, link, sizeof told);                                                                              \
        members(MEMBER);                                                                                               \
        memcpy(link, &told, sizeof told);                                                                              \
    }
    VERSIONS(VERSION)
#undef VERSION
#undef MEMBER
#define NAMED(field, member)                                                                                           \
    if (wanted->field.sType && link->sType == wanted->field.sType) {                                                   \
        memcpy(&rest->field, link, sizeof rest->field);                                                                \
        rest->field.member |= wanted->field.member;                                                                    \
        memcpy(link, &rest->field, sizeof rest->field);                                                                \
        rest->field.sType = (VkStructureType)0;                                                                        \
    }
    SMG_VK_WANTED(NAMED)
#undef NAMED
    if (link->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) return;
    VkPhysicalDeviceFeatures2 *core = (void *)link;
#define CORE(member) core->features.member |= wanted->core.features.member;
    SMG_VK_WANTED_CORE(CORE)
#undef CORE
    rest->core.sType = (VkStructureType)0;
}

const void *smg_vk_features_join(smg_vk_features *features, void *chain) {
    const smg_vk_features wanted = *features;
    for (VkBaseOutStructure *link = chain; link; link = link->pNext) tell_link(link, &wanted, features);
    void *head = chain;
#define CHAIN(field, type, stype, extension, version)                                                                  \
    if (features->field.sType) {                                                                                       \
        features->field.pNext = head;                                                                                  \
        head = &features->field;                                                                                       \
    }
    SMG_VK_FEATURE_STRUCTS(CHAIN)
#undef CHAIN
    if (!features->core.sType) return head;
    features->core.pNext = head;
    return &features->core;
}
