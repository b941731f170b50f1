/* Compute pipelines: one module, one set of storage buffers, push constants (or a uniform buffer in their place), and
 * the subgroup size
 * that the kernel was built for. Drivers ignore sizes they do not like without a word, so requests
 * are checked against the queried range here. */
#include <math.h>

#include "vulkan/vulkan_private.h"

#include <stdio.h>

enum { MAX_CONSTANTS = 32 };

static smg_status check_counts(smg_vk_device *dev, const smg_vk_pipeline_desc *desc) {
    const smg_target *target = &dev->target;
    if (!desc->words || desc->word_count < 5 || desc->words[0] != 0x07230203u)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' is not a SPIR-V module", desc->name);
    if (desc->binding_count < 0 || desc->binding_count > target->max_bindings)
        return smg_fail(dev->ctx, SMG_NO_FIT, "kernel '%s' has %d bindings, '%s' allows %lld", desc->name,
                        desc->binding_count, target->name, (long long)target->max_bindings);
    if (desc->push_bytes < 0 || desc->push_bytes % 4 != 0 || desc->push_bytes > target->max_push_bytes)
        return smg_fail(dev->ctx, SMG_NO_FIT,
                        "kernel '%s' has %d bytes of push constants, '%s' allows %lld (multiples of 4)", desc->name,
                        desc->push_bytes, target->name, (long long)target->max_push_bytes);
    if (desc->from_memory && desc->push_bytes == 0)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' has no push constants to read from memory", desc->name);
    int in_front = desc->push_bytes - desc->literal_count * 4; /* addresses */
    if (desc->literal_count < 0 || in_front < 0 ||
        (desc->literal_count > 0 && (in_front % 8 != 0 || desc->from_memory)))
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' has %d literals in %d bytes of push constants%s",
                        desc->name, desc->literal_count, desc->push_bytes, desc->from_memory ? " in memory" : "");
    if (desc->constant_count < 0 || desc->constant_count > MAX_CONSTANTS)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s' has %d constants, at most %d", desc->name,
                        desc->constant_count, MAX_CONSTANTS);
    return SMG_OK;
}

static smg_status check_size(smg_vk_device *dev, const smg_vk_pipeline_desc *desc) {
    const VkPhysicalDeviceLimits *limits = &dev->properties.limits;
    int64_t invocations = 1;
    for (int i = 0; i < 3; i++) {
        int64_t size = desc->local_size[i] ? desc->local_size[i] : 1;
        if (size < 1 || size > limits->maxComputeWorkGroupSize[i])
            return smg_fail(dev->ctx, SMG_NO_FIT, "kernel '%s': local size %lld in dimension %d, '%s' allows %u",
                            desc->name, (long long)size, i, dev->target.name,
                            (unsigned)limits->maxComputeWorkGroupSize[i]);
        invocations *= size;
        if (invocations > dev->target.max_invocations)
            return smg_fail(dev->ctx, SMG_NO_FIT,
                            "kernel '%s': a workgroup of %d x %d x %d, '%s' allows %lld invocations", desc->name,
                            desc->local_size[0], desc->local_size[1], desc->local_size[2], dev->target.name,
                            (long long)dev->target.max_invocations);
    }
    return SMG_OK;
}

static smg_status check_subgroup(smg_vk_device *dev, const smg_vk_pipeline_desc *desc) {
    const smg_target *target = &dev->target;
    int size = desc->subgroup_size;
    if (size == 0) return SMG_OK;
    bool power = size > 0 && (size & (size - 1)) == 0;
    if (!power || size < target->subgroup_min || size > target->subgroup_max ||
        (!target->subgroup_selectable && target->subgroup_min != target->subgroup_max))
        return smg_fail(dev->ctx, SMG_NO_FIT, "kernel '%s' needs subgroups of %d, '%s' has %lld .. %lld%s", desc->name,
                        size, target->name, (long long)target->subgroup_min, (long long)target->subgroup_max,
                        target->subgroup_selectable ? "" : " and no choice");
    int x = desc->local_size[0] ? desc->local_size[0] : 1;
    if (desc->full_subgroups && x % size != 0)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s': local size %d is not a multiple of the subgroup size %d",
                        desc->name, x, size);
    return SMG_OK;
}

static smg_status create_layouts(smg_vk_pipeline *pipeline) {
    smg_vk_device *dev = pipeline->dev;
    VkDescriptorSetLayoutBinding bindings[SMG_VK_MAX_BINDINGS + 1];
    int count = pipeline->binding_count + (pipeline->from_memory ? 1 : 0);
    for (int i = 0; i < count; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = (uint32_t)i,
            .descriptorType =
                i < pipeline->binding_count ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = (uint32_t)count,
        .pBindings = bindings,
    };
    VkResult result = dev->fn.CreateDescriptorSetLayout(dev->handle, &set, NULL, &pipeline->set_layout);
    if (result != VK_SUCCESS) pipeline->set_layout = VK_NULL_HANDLE;
    SMG_TRY(smg_vk_result(dev, result, "vkCreateDescriptorSetLayout", pipeline->name));
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)pipeline->push_bytes};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &pipeline->set_layout,
        .pushConstantRangeCount = pipeline->push_bytes && !pipeline->from_memory ? 1 : 0,
        .pPushConstantRanges = &push,
    };
    result = dev->fn.CreatePipelineLayout(dev->handle, &layout, NULL, &pipeline->layout);
    if (result != VK_SUCCESS) pipeline->layout = VK_NULL_HANDLE;
    return smg_vk_result(dev, result, "vkCreatePipelineLayout", pipeline->name);
}

/* Touches neither context nor device (smg_vk_pipeline_build). */
void smg_vk_pipeline_build(smg_vk_pipeline *pipeline, const smg_vk_pipeline_desc *desc) {
    const smg_vk_device *dev = pipeline->dev;
    VkSpecializationMapEntry entries[MAX_CONSTANTS];
    for (int i = 0; i < desc->constant_count; i++)
        entries[i] = (VkSpecializationMapEntry){(uint32_t)i, (uint32_t)i * 4u, 4};
    const VkSpecializationInfo constants = {
        .mapEntryCount = (uint32_t)desc->constant_count,
        .pMapEntries = entries,
        .dataSize = (size_t)desc->constant_count * 4u,
        .pData = desc->constants,
    };
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = (uint32_t)desc->subgroup_size,
    };
    bool selectable = dev->target.subgroup_selectable != 0;
    /* A required size bounds the number of subgroups of a workgroup; where there is one size nothing is asked. */
    bool choice = selectable && dev->target.subgroup_min != dev->target.subgroup_max;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = desc->subgroup_size && choice ? &required : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = pipeline->module,
                  .pName = "main",
                  .pSpecializationInfo = desc->constant_count ? &constants : NULL},
        .layout = pipeline->layout,
    };
    if (desc->full_subgroups && selectable)
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    if (desc->sliced) info.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
    if (pipeline->has_stats) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    pipeline->built = dev->fn.CreateComputePipelines(dev->handle, dev->cache, 1, &info, NULL, &pipeline->handle);
    if (pipeline->built != VK_SUCCESS) pipeline->handle = VK_NULL_HANDLE;
}

static smg_status create_module(smg_vk_pipeline *pipeline, const smg_vk_pipeline_desc *desc) {
    smg_vk_device *dev = pipeline->dev;
    uint32_t *changed = NULL;
    size_t room = desc->word_count + (desc->from_memory ? SMG_VK_BLOCK_WORDS : SMG_VK_LITERAL_WORDS(desc));
    size_t count = room;
    if (desc->from_memory) SMG_TRY(smg_vk_words_from_memory(dev, desc, &changed));
    if (desc->literal_count > 0) SMG_TRY(smg_vk_words_with_literals(dev, desc, &changed, &count));
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = count * 4u,
        .pCode = changed ? changed : desc->words,
    };
    VkResult result = dev->fn.CreateShaderModule(dev->handle, &info, NULL, &pipeline->module);
    if (result != VK_SUCCESS) pipeline->module = VK_NULL_HANDLE;
    if (changed) smg_free(dev->ctx, changed, room * sizeof *changed);
    return smg_vk_result(dev, result, "vkCreateShaderModule", pipeline->name);
}

/* What is known of the module; statistics are captured where somebody asks for them. */
static void look_up(smg_vk_pipeline *pipeline, const smg_vk_pipeline_desc *desc) {
    smg_vk_device *dev = pipeline->dev;
    pipeline->key = smg_vk_module_key(desc);
    const smg_vk_module_fact *known = smg_vk_module_find(dev, pipeline->key);
    bool tells = dev->features.statistics.pipelineExecutableInfo && dev->fn.GetPipelineExecutablePropertiesKHR &&
                 dev->fn.GetPipelineExecutableStatisticsKHR;
    if (known && isinf(known->built.spills)) known = NULL;
    pipeline->built_as = known ? known->built : (smg_vk_built){-1, -1, -1, false};
    pipeline->unknown = !known && tells;
    pipeline->has_stats = tells && (dev->keep_stats || pipeline->unknown);
}

smg_status smg_vk_pipeline_begin(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, smg_vk_pipeline **out_pipeline) {
    *out_pipeline = NULL;
    SMG_TRY(smg_vk_check_alive(dev));
    SMG_TRY(check_counts(dev, desc));
    SMG_TRY(check_size(dev, desc));
    SMG_TRY(check_subgroup(dev, desc));
    SMG_TRY(smg_vk_modules_load(dev));
    smg_vk_pipeline *pipeline = smg_alloc(dev->ctx, 1, sizeof *pipeline);
    if (!pipeline) return SMG_MEMORY;
    pipeline->dev = dev;
    pipeline->built = VK_NOT_READY;
    pipeline->binding_count = desc->binding_count;
    pipeline->push_bytes = desc->push_bytes;
    pipeline->sliced = desc->sliced;
    pipeline->from_memory = desc->from_memory;
    const int *size = desc->local_size;
    pipeline->asked = (smg_vk_asked){desc->shared_bytes, (int64_t)size[0] * size[1] * size[2]};
    look_up(pipeline, desc);
    snprintf(pipeline->name, sizeof pipeline->name, "%.90s", desc->name);
    dev->common->cache_used = true;
    smg_status status = create_layouts(pipeline);
    if (status == SMG_OK) status = create_module(pipeline, desc);
    if (status != SMG_OK) {
        smg_vk_pipeline_destroy(pipeline);
        return status;
    }
    *out_pipeline = pipeline;
    return SMG_OK;
}

static void drop_module(smg_vk_pipeline *pipeline) {
    smg_vk_device *dev = pipeline->dev;
    if (pipeline->module) dev->fn.DestroyShaderModule(dev->handle, pipeline->module, NULL);
    pipeline->module = VK_NULL_HANDLE;
}

static smg_status find_out(smg_vk_pipeline *pipeline) {
    smg_vk_device *dev = pipeline->dev;
    smg_arena *scratch = NULL;
    smg_vk_stat *stats = NULL;
    int count = 0;
    SMG_TRY(smg_arena_create(dev->ctx, &scratch));
    smg_status status = smg_vk_pipeline_stats(pipeline, scratch, &stats, &count);
    if (status == SMG_OK) pipeline->built_as = smg_vk_built_of(&dev->target, &pipeline->asked, stats, count);
    if (status == SMG_OK && count > 0) status = smg_vk_module_add(dev, pipeline->key, pipeline->built_as);
    smg_arena_destroy(scratch);
    return status;
}

/* Kept while the device is open: an update may mend it. */
static smg_status keep_refusal(smg_vk_pipeline *pipeline) {
    VkResult result = pipeline->built;
    if (result == VK_SUCCESS || result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
        result == VK_ERROR_DEVICE_LOST)
        return SMG_OK;
    return smg_vk_module_add(pipeline->dev, pipeline->key, (smg_vk_built){HUGE_VAL, -1, -1, false});
}

bool smg_vk_refuses(const smg_vk_device *dev, const smg_vk_pipeline_desc *desc) {
    const smg_vk_module_fact *known = smg_vk_module_find(dev, smg_vk_module_key(desc));
    return known && isinf(known->built.spills) && !smg_vk_is_lost(dev);
}

smg_status smg_vk_pipeline_end(smg_vk_pipeline *pipeline) {
    drop_module(pipeline);
    SMG_TRY(keep_refusal(pipeline));
    SMG_TRY(smg_vk_result(pipeline->dev, pipeline->built, "vkCreateComputePipelines", pipeline->name));
    if (pipeline->unknown) SMG_TRY(find_out(pipeline));
    if (pipeline->unknown && pipeline->built_as.spills > 0)
        smg_log(pipeline->dev->ctx, SMG_LOG_INFO, "kernel '%s' spills %.0f registers on '%s'", pipeline->name,
                pipeline->built_as.spills, pipeline->dev->target.name);
    return SMG_OK;
}

smg_vk_built smg_vk_pipeline_built(const smg_vk_pipeline *pipeline) {
    return pipeline->built_as;
}

smg_status smg_vk_pipeline_create(smg_vk_device *dev, const smg_vk_pipeline_desc *desc,
                                  smg_vk_pipeline **out_pipeline) {
    smg_vk_pipeline *pipeline = NULL;
    *out_pipeline = NULL;
    SMG_TRY(smg_vk_pipeline_begin(dev, desc, &pipeline));
    smg_vk_pipeline_build(pipeline, desc);
    smg_status status = smg_vk_pipeline_end(pipeline);
    if (status != SMG_OK) {
        smg_vk_pipeline_destroy(pipeline);
        return status;
    }
    *out_pipeline = pipeline;
    return SMG_OK;
}

void smg_vk_pipeline_destroy(smg_vk_pipeline *pipeline) {
    if (!pipeline) return;
    smg_vk_device *dev = pipeline->dev;
    drop_module(pipeline);
    if (pipeline->handle) dev->fn.DestroyPipeline(dev->handle, pipeline->handle, NULL);
    if (pipeline->layout) dev->fn.DestroyPipelineLayout(dev->handle, pipeline->layout, NULL);
    if (pipeline->set_layout) dev->fn.DestroyDescriptorSetLayout(dev->handle, pipeline->set_layout, NULL);
    smg_free(dev->ctx, pipeline, sizeof *pipeline);
}
