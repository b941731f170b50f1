/* facts_device.c: include/smg/measure.h: what is known of a device, and measured on it. */
#include "facts/facts.h"
#include "smg/measure.h"
#include "vulkan/vulkan.h"

#if SMG_VULKAN

smg_status smg_device_calibrate(smg_device *device, bool matrices) {
    if (device == NULL) return SMG_INVALID;
    smg_context *ctx = smg_vk_context(device);
    smg_context_clear_error(ctx);
    smg_status status = smg_vk_prove(device, matrices);
    if (status == SMG_OK) status = smg_vk_calibrate(device);
    return smg_context_told(ctx, status);
}

smg_status smg_device_get_facts(const smg_device *device, smg_device_facts *out) {
    if (device == NULL || out == NULL) return SMG_INVALID;
    const smg_target *target = smg_vk_target(device);
    smg_target planned;
    smg_vk_plan_target(device, false, &planned);
    *out = (smg_device_facts){.name = target->name,
                              .driver = target->driver,
                              .bandwidth = target->bandwidth,
                              .arithmetic = target->fma_rate,
                              .revision = (int)planned.revision};
    return SMG_OK;
}

smg_status smg_device_write_target(const smg_device *device, smg_sink sink) {
    smg_text text;
    smg_target target;
    if (device == NULL) return SMG_INVALID;
    smg_context *ctx = smg_vk_context(device);
    smg_context_clear_error(ctx);
    smg_text_init(&text, ctx);
    smg_vk_plan_target(device, false, &target);
    smg_target_print(&target, &text);
    return smg_context_told(ctx, smg_text_give(&text, sink));
}

int smg_device_verdict_count(const smg_device *device) {
    const smg_vk_verdict *verdicts = NULL;
    return device != NULL ? smg_vk_verdicts(device, &verdicts) : 0;
}

bool smg_device_get_verdict(const smg_device *device, int index, smg_device_verdict *out_verdict) {
    const smg_vk_verdict *verdicts = NULL;
    if (device == NULL || out_verdict == NULL || index < 0 || index >= smg_vk_verdicts(device, &verdicts)) return false;
    *out_verdict = (smg_device_verdict){.what = verdicts[index].what, .why = verdicts[index].why};
    return true;
}

#else /* no device is ever opened */

smg_status smg_device_calibrate(smg_device *device, bool matrices) {
    (void)device, (void)matrices;
    return SMG_UNSUPPORTED;
}

smg_status smg_device_get_facts(const smg_device *device, smg_device_facts *out) {
    (void)device, (void)out;
    return SMG_UNSUPPORTED;
}

smg_status smg_device_write_target(const smg_device *device, smg_sink sink) {
    (void)device, (void)sink;
    return SMG_UNSUPPORTED;
}

int smg_device_verdict_count(const smg_device *device) {
    (void)device;
    return 0;
}

bool smg_device_get_verdict(const smg_device *device, int index, smg_device_verdict *out_verdict) {
    (void)device, (void)index, (void)out_verdict;
    return false;
}

#endif
