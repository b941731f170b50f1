/* What a recording is, for the two sources that make and run it. */
#ifndef SMG_VULKAN_RECORDING_H
#define SMG_VULKAN_RECORDING_H

#include "vulkan/vulkan_private.h"

struct smg_vk_recording {
    smg_vk_device *dev;
    smg_arena *arena;
    smg_status status; /* first failure while recording */
    VkCommandBuffer commands;
    bool borrowed; /* they are an application's */
    VkFence fence;
    bool ended;
    bool in_flight;
    bool has_run;
    VkQueryPool queries;
    int slot_count;
    uint64_t *ticks;
    bool *slot_used;
    SMG_ARRAY(VkDescriptorPool) pools;
    int kinds_used;    /* of commands so far */
    int kinds_pending; /* that have not been kept behind the last barrier yet */
    int sets_left;
    int descriptors_left;
};

#endif
