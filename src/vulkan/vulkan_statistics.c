/* The driver's own statistics of a pipeline (registers, spills, ...), as names and numbers. */
#include <math.h>

#include "vulkan/vulkan_private.h"

#include <stdio.h>

enum { MAX_EXECUTABLES = 8 };

typedef SMG_ARRAY(smg_vk_stat) stat_list;

static smg_status push(smg_arena *arena, stat_list *list, const char *name, double value) {
    smg_vk_stat *stat = SMG_ARRAY_PUSH(arena, list);
    if (!stat) return SMG_MEMORY;
    snprintf(stat->name, sizeof stat->name, "%.60s", name);
    stat->value = value;
    return SMG_OK;
}

static double value_of(const VkPipelineExecutableStatisticKHR *statistic) {
    switch (statistic->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return statistic->value.b32 ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return (double)statistic->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return (double)statistic->value.u64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: return statistic->value.f64;
    default: return 0;
    }
}

static smg_status read_executable(smg_vk_pipeline *pipeline, smg_arena *arena, uint32_t index, stat_list *list) {
    smg_vk_device *dev = pipeline->dev;
    const VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
        .pipeline = pipeline->handle,
        .executableIndex = index,
    };
    uint32_t count = 0;
    VkResult result = dev->fn.GetPipelineExecutableStatisticsKHR(dev->handle, &info, &count, NULL);
    SMG_TRY(smg_vk_result(dev, result, "vkGetPipelineExecutableStatisticsKHR", pipeline->name));
    if (count == 0) return SMG_OK;
    VkPipelineExecutableStatisticKHR *all = SMG_ARENA_ARRAY(arena, VkPipelineExecutableStatisticKHR, count);
    if (!all) return SMG_MEMORY;
    for (uint32_t i = 0; i < count; i++) all[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    result = dev->fn.GetPipelineExecutableStatisticsKHR(dev->handle, &info, &count, all);
    SMG_TRY(smg_vk_result(dev, result, "vkGetPipelineExecutableStatisticsKHR", pipeline->name));
    for (uint32_t i = 0; i < count; i++) SMG_TRY(push(arena, list, all[i].name, value_of(&all[i])));
    return SMG_OK;
}

smg_status smg_vk_pipeline_stats(smg_vk_pipeline *pipeline, smg_arena *arena, smg_vk_stat **out_stats, int *out_count) {
    *out_stats = NULL;
    *out_count = 0;
    smg_vk_device *dev = pipeline->dev;
    if (!pipeline->has_stats || !dev->fn.GetPipelineExecutablePropertiesKHR ||
        !dev->fn.GetPipelineExecutableStatisticsKHR)
        return SMG_OK;
    const VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline->handle};
    VkPipelineExecutablePropertiesKHR executables[MAX_EXECUTABLES];
    memset(executables, 0, sizeof executables);
    for (int i = 0; i < MAX_EXECUTABLES; i++)
        executables[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    uint32_t count = MAX_EXECUTABLES;
    VkResult result = dev->fn.GetPipelineExecutablePropertiesKHR(dev->handle, &info, &count, executables);
    SMG_TRY(smg_vk_result(dev, result, "vkGetPipelineExecutablePropertiesKHR", pipeline->name));
    stat_list list = {0};
    for (uint32_t i = 0; i < count; i++) {
        SMG_TRY(push(arena, &list, "subgroup size", (double)executables[i].subgroupSize));
        SMG_TRY(read_executable(pipeline, arena, i, &list));
    }
    *out_stats = list.items;
    *out_count = list.count;
    return SMG_OK;
}

/* ---- what was built --------------------------------------------------------------------------------- */

typedef enum told { SPILLS, REGISTERS, SHARED, LANE_REGISTERS } told;

/* What compilers call it, letters of the name alone; values of one kind are added up. */
static const struct {
    const char *name;
    told what;
    double each; /* of the statistic's unit are one */
} names[] = {
    {"spilledvgprs", SPILLS, 1},
    {"spilledsgprs", SPILLS, 1},
    {"spills", SPILLS, 1},
    {"fills", SPILLS, 1},
    {"stpcount", SPILLS, 1},
    {"ldpcount", SPILLS, 1},
    {"spillstomemory", SPILLS, 1},
    {"fillsfrommemory", SPILLS, 1},
    {"localmemorysize", SPILLS, 4},
    {"vgprs", LANE_REGISTERS, 1},
    {"maxliveregisters", REGISTERS, 1},
    {"registersused", REGISTERS, 1},
    {"gprs", REGISTERS, 1},
    {"numberofgprs", LANE_REGISTERS, 1},
    {"registercount", LANE_REGISTERS, 1},
    {"ldssize", SHARED, 1},
    {"workgroupmemorysize", SHARED, 1},
    {"sharedmemorysize", SHARED, 1},
};

static bool same_letters(const char *name, const char *letters) {
    for (; *name; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if (c < 'a' || c > 'z') continue;
        if (c != *letters) return false;
        letters++;
    }
    return *letters == 0;
}

/* One driver adds 64 GiB to the local memory of every kernel. */
#define WORD_RANGE 4294967296.0

static void add(double *io_sum, double value) {
    *io_sum = (*io_sum < 0 ? 0 : *io_sum) + value;
}

/* Workgroups that a core holds at a time; what is not known limits nothing. */
static double held_workgroups(const smg_target *target, const smg_vk_asked *asked, double registers, double shared) {
    double held = HUGE_VAL;
    if (shared > 0) held = floor((double)target->shared_core / shared);
    if (registers > 0 && asked->lanes > 0)
        held = fmin(held, floor((double)target->registers_core / (registers * (double)asked->lanes)));
    return held;
}

/* One driver spills to shared memory first: what it takes beyond what is declared, in words of each lane. Taken from
 * what no other workgroup has a use for it costs next to nothing: such kernels were the fastest that were measured. */
static double spilled_to_shared(const smg_target *target, const smg_vk_asked *asked, double registers, double shared) {
    double beyond = shared - (double)asked->shared_bytes;
    if (beyond <= 0) return 0;
    bool fewer = held_workgroups(target, asked, registers, shared) <
                 held_workgroups(target, asked, registers, (double)asked->shared_bytes);
    return fewer ? beyond / 4 / (double)(asked->lanes > 0 ? asked->lanes : 1) : 0;
}

smg_vk_built smg_vk_built_of(const smg_target *target, const smg_vk_asked *asked, const smg_vk_stat *stats, int count) {
    smg_vk_built built = {-1, -1, -1, false};
    double *const sums[] = {&built.spills, &built.registers, &built.shared, &built.registers};
    bool takes_shared = false;
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < SMG_COUNT_OF(names); k++) {
            if (!same_letters(stats[i].name, names[k].name)) continue;
            add(sums[names[k].what], fmod(stats[i].value, WORD_RANGE) / names[k].each);
            built.of_lane = built.of_lane || names[k].what == LANE_REGISTERS;
        }
        takes_shared = takes_shared || same_letters(stats[i].name, "sharedmemorysize");
    }
    if (takes_shared) add(&built.spills, spilled_to_shared(target, asked, built.registers, built.shared));
    return built;
}
