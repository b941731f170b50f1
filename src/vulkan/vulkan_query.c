/* Queried facts: limits, subgroups, number types, matrix shapes, core counts where a vendor's
 * extension tells them. A fact is offered only when the feature behind it is enabled on the device.
 * What no driver tells stays assumed here; the tables of target/ and smg_vk_calibrate fill it. */
#include "vulkan/vulkan_private.h"

#include <stdio.h>

#define SET(target, field, value)                                                                                      \
    do {                                                                                                               \
        (target)->field = (value);                                                                                     \
        (target)->field##_from = SMG_FACT_QUERIED;                                                                     \
    } while (0)

static int64_t clamp_size(VkDeviceSize size) {
    return size > INT64_MAX ? INT64_MAX : (int64_t)size;
}

static void query_limits(smg_target *target, const VkPhysicalDeviceLimits *limits) {
    SET(target, shared_bytes, limits->maxComputeSharedMemorySize);
    SET(target, max_invocations, limits->maxComputeWorkGroupInvocations);
    SET(target, max_size_x, limits->maxComputeWorkGroupSize[0]);
    SET(target, max_grid_x, limits->maxComputeWorkGroupCount[0]);
    SET(target, max_grid_y, limits->maxComputeWorkGroupCount[1]);
    SET(target, max_grid_z, limits->maxComputeWorkGroupCount[2]);
    int64_t bindings = limits->maxPerStageDescriptorStorageBuffers;
    if (bindings > limits->maxDescriptorSetStorageBuffers) bindings = limits->maxDescriptorSetStorageBuffers;
    if (bindings > limits->maxPerStageResources) bindings = limits->maxPerStageResources;
    SET(target, max_bindings, bindings < SMG_VK_MAX_BINDINGS ? bindings : SMG_VK_MAX_BINDINGS);
    SET(target, max_buffer_range, limits->maxStorageBufferRange);
    SET(target, buffer_alignment, clamp_size(limits->minStorageBufferOffsetAlignment));
    SET(target, max_push_bytes, limits->maxPushConstantsSize);
}

static void query_subgroups(smg_vk_device *dev, const VkPhysicalDeviceSubgroupProperties *basic,
                            const VkPhysicalDeviceSubgroupSizeControlProperties *control) {
    smg_target *target = &dev->target;
    bool compute = (basic->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    VkSubgroupFeatureFlags operations = compute ? basic->supportedOperations : 0;
    SET(target, subgroup_arithmetic, (operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0);
    SET(target, subgroup_clustered, (operations & VK_SUBGROUP_FEATURE_CLUSTERED_BIT) != 0);
    SET(target, subgroup_shuffle, (operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0);
    bool known = control->maxSubgroupSize > 0;
    SET(target, subgroup_min, known ? control->minSubgroupSize : basic->subgroupSize);
    SET(target, subgroup_max, known ? control->maxSubgroupSize : basic->subgroupSize);
    bool selectable = known && dev->features.subgroup_size.subgroupSizeControl &&
                      dev->features.subgroup_size.computeFullSubgroups &&
                      (control->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
    SET(target, subgroup_selectable, selectable);
    bool fixed = target->subgroup_min == target->subgroup_max;
    target->subgroup_size = compute && (selectable || fixed) ? basic->subgroupSize : 1;
    if (target->subgroup_size > 1 && target->subgroup_size < target->subgroup_min)
        target->subgroup_size = target->subgroup_min;
    /* Where there is a choice, the driver's own default is only a proposal that a table may better. */
    target->subgroup_size_from = selectable && !fixed ? SMG_FACT_ASSUMED : SMG_FACT_QUERIED;
}

static void query_types(smg_vk_device *dev) {
    smg_target *target = &dev->target;
    const smg_vk_features *features = &dev->features;
    SET(target, fp16, features->float16_int8.shaderFloat16 != 0);
    SET(target, int8, features->float16_int8.shaderInt8 != 0);
    SET(target, storage16, features->storage16.storageBuffer16BitAccess != 0);
    SET(target, storage8, features->storage8.storageBuffer8BitAccess != 0);
    SET(target, buffer_addresses, smg_vk_has_addresses(dev));
}

/* Core counts that three vendors tell by extensions of their own. */
typedef struct core_properties {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia;
    VkPhysicalDeviceShaderCorePropertiesAMD amd;
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm;
} core_properties;

static void set_cores(smg_target *target, const core_properties *cores) {
    int64_t count = cores->nvidia.shaderSMCount;
    if (count == 0)
        count = (int64_t)cores->amd.shaderEngineCount * cores->amd.shaderArraysPerEngineCount *
                cores->amd.computeUnitsPerShaderArray;
    if (count == 0) count = cores->arm.shaderCoreCount;
    if (count > 0 && count < 65536) SET(target, cores, count);
}

static void link_next(VkPhysicalDeviceProperties2 *head, void *structure) {
    VkBaseOutStructure *link = structure;
    link->pNext = head->pNext;
    head->pNext = link;
}

static void query_properties(smg_vk_device *dev, const smg_vk_extensions *extensions) {
    VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties sizes = {.sType =
                                                        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceFloatControlsProperties floats = {.sType =
                                                          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    core_properties cores = {
        .nvidia = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV},
        .amd = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD},
        .arm = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM},
    };
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    link_next(&all, &subgroups);
    link_next(&all, &sizes);
    bool optional = !(dev->flags & SMG_VK_NO_OPTIONAL);
    if (optional &&
        (dev->api_version >= VK_API_VERSION_1_3 || smg_vk_has_extension(extensions, "VK_EXT_subgroup_size_control")))
        link_next(&all, &control);
    if (dev->api_version >= VK_API_VERSION_1_2 || smg_vk_has_extension(extensions, "VK_KHR_shader_float_controls"))
        link_next(&all, &floats);
    if (smg_vk_has_extension(extensions, "VK_NV_shader_sm_builtins")) link_next(&all, &cores.nvidia);
    if (smg_vk_has_extension(extensions, "VK_AMD_shader_core_properties")) link_next(&all, &cores.amd);
    if (smg_vk_has_extension(extensions, "VK_ARM_shader_core_builtins")) link_next(&all, &cores.arm);
    dev->instance->fn.GetPhysicalDeviceProperties2(dev->physical, &all);
    query_subgroups(dev, &subgroups, &control);
    set_cores(&dev->target, &cores);
    SET(&dev->target, max_allocation, clamp_size(sizes.maxMemoryAllocationSize));
    SET(&dev->target, nan_preserve, floats.shaderSignedZeroInfNanPreserveFloat32 != 0);
}

/* ---- matrix shapes --------------------------------------------------------------------------- */

static const char *component_word(const smg_vk_features *features, VkComponentTypeKHR type) {
    if (type == VK_COMPONENT_TYPE_BFLOAT16_KHR)
        return features->bf16.shaderBFloat16Type && features->bf16.shaderBFloat16CooperativeMatrix ? "bf16" : NULL;
    switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: return "f16";
    case VK_COMPONENT_TYPE_FLOAT32_KHR: return "f32";
    case VK_COMPONENT_TYPE_FLOAT64_KHR: return "f64";
    case VK_COMPONENT_TYPE_SINT8_KHR: return "i8";
    case VK_COMPONENT_TYPE_SINT16_KHR: return "i16";
    case VK_COMPONENT_TYPE_SINT32_KHR: return "i32";
    case VK_COMPONENT_TYPE_UINT8_KHR: return "u8";
    case VK_COMPONENT_TYPE_UINT16_KHR: return "u16";
    case VK_COMPONENT_TYPE_UINT32_KHR: return "u32";
    default: return NULL;
    }
}

static void add_matrix(smg_vk_device *dev, const VkCooperativeMatrixPropertiesKHR *offered) {
    smg_target *target = &dev->target;
    const smg_vk_features *features = &dev->features;
    const char *a = component_word(features, offered->AType), *b = component_word(features, offered->BType);
    const char *c = component_word(features, offered->CType), *result = component_word(features, offered->ResultType);
    if (offered->scope != VK_SCOPE_SUBGROUP_KHR || offered->saturatingAccumulation) return;
    if (!a || !b || !c || !result || target->matrix_count >= SMG_MAX_MATRIX_SHAPES) return;
    smg_matrix_shape *shape = &target->matrix[target->matrix_count++];
    shape->m = (int)offered->MSize;
    shape->n = (int)offered->NSize;
    shape->k = (int)offered->KSize;
    snprintf(shape->a, sizeof shape->a, "%s", a);
    snprintf(shape->b, sizeof shape->b, "%s", b);
    snprintf(shape->c, sizeof shape->c, "%s", c);
    snprintf(shape->result, sizeof shape->result, "%s", result);
}

static smg_status query_matrices(smg_vk_device *dev) {
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR list =
        dev->instance->fn.GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
    bool usable = dev->features.matrix.cooperativeMatrix && dev->features.memory_model.vulkanMemoryModel;
    if (!usable || !list) return SMG_OK;
    uint32_t count = 0;
    if (list(dev->physical, &count, NULL) < VK_SUCCESS || count == 0) return SMG_OK;
    VkCooperativeMatrixPropertiesKHR *offered = SMG_ARENA_ARRAY(dev->arena, VkCooperativeMatrixPropertiesKHR, count);
    if (!offered) return SMG_MEMORY;
    for (uint32_t i = 0; i < count; i++) offered[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (list(dev->physical, &count, offered) < VK_SUCCESS) return SMG_OK;
    for (uint32_t i = 0; i < count; i++) add_matrix(dev, &offered[i]);
    return SMG_OK;
}

smg_status smg_vk_query_target(smg_vk_device *dev, const smg_vk_extensions *extensions) {
    smg_target *target = &dev->target;
    smg_vk_device_info info;
    smg_vk_describe(dev->instance, dev->physical, 0, &info);
    smg_target_init(target);
    snprintf(target->name, sizeof target->name, "%.120s", info.name);
    snprintf(target->driver, sizeof target->driver, "%.120s", info.driver);
    memcpy(target->uuid, dev->properties.pipelineCacheUUID, sizeof target->uuid);
    target->type = info.type;
    query_limits(target, &dev->properties.limits);
    query_properties(dev, extensions);
    query_types(dev);
    SMG_TRY(query_matrices(dev));
    SMG_TRY(smg_target_apply_tables(dev->ctx, target));
    smg_target_settle(target);
    return smg_target_verify(dev->ctx, target);
}
