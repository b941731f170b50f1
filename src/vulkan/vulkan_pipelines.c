/* Many pipelines at once. The driver's compiler runs on all cores while the caller drives those that are done, in their
 * order, through a first use: a dispatch of no workgroups. Some drivers make machine code only then (Mesa's for CPUs),
 * and a run should not wait for what belongs to opening a model. */
#include "vulkan/vulkan_private.h"

enum { NOTHING_BYTES = 256 };

typedef struct building {
    const smg_vk_pipeline_desc *descs;
    smg_vk_pipeline **pipelines;
} building;

static void build_one(void *user, int i) {
    const building *b = user;
    smg_vk_pipeline_build(b->pipelines[i], &b->descs[i]);
}

static smg_status use_first(smg_vk_pipeline *pipeline, smg_vk_buffer *nothing) {
    smg_vk_recording *rec = NULL;
    if (pipeline->push_bytes > NOTHING_BYTES) return SMG_OK; /* later, then */
    SMG_TRY(smg_vk_recording_begin(pipeline->dev, 0, &rec));
    smg_vk_record_first_use(rec, pipeline, nothing);
    smg_status status = smg_vk_recording_end(rec);
    if (status == SMG_OK) status = smg_vk_run(rec);
    smg_vk_recording_destroy(rec);
    return status;
}

static smg_status finish_all(building *b, int count, smg_tasks *tasks, smg_vk_buffer *nothing) {
    smg_context *ctx = b->pipelines[0]->dev->ctx;
    for (int i = 0; i < count; i++) {
        smg_progress(ctx, "pipelines", (size_t)i, (size_t)count, b->descs[i].name);
        smg_tasks_wait(tasks, i);
        SMG_TRY(smg_vk_pipeline_end(b->pipelines[i]));
        SMG_TRY(use_first(b->pipelines[i], nothing));
    }
    smg_progress(ctx, "pipelines", (size_t)count, (size_t)count, "");
    return SMG_OK;
}

static smg_status create_all(smg_vk_device *dev, building *b, int count) {
    smg_vk_buffer *nothing = NULL;
    smg_tasks *tasks = NULL;
    for (int i = 0; i < count; i++) SMG_TRY(smg_vk_pipeline_begin(dev, &b->descs[i], &b->pipelines[i]));
    SMG_TRY(smg_vk_buffer_create(dev, "nothing", NOTHING_BYTES, SMG_VK_PARAMETERS, &nothing));
    int messages = dev->instance->validation_messages;
    atomic_fetch_add(&dev->instance->silent, 1);
    smg_status status = smg_tasks_start(dev->ctx, count, build_one, b, &tasks);
    if (status == SMG_OK) status = finish_all(b, count, tasks, nothing);
    smg_tasks_finish(tasks);
    atomic_fetch_sub(&dev->instance->silent, 1);
    if (dev->instance->validation_messages > messages)
        smg_log(dev->ctx, SMG_LOG_WARNING, "validation: %d messages while pipelines were built, the first of all: %s",
                dev->instance->validation_messages - messages, dev->instance->validation_first);
    smg_vk_buffer_destroy(nothing);
    return status;
}

smg_status smg_vk_pipelines_create(smg_vk_device *dev, const smg_vk_pipeline_desc *descs, int count,
                                   smg_vk_pipeline **out_pipelines) {
    building b = {.descs = descs, .pipelines = out_pipelines};
    for (int i = 0; i < count; i++) out_pipelines[i] = NULL;
    if (count < 1) return SMG_OK;
    smg_status status = create_all(dev, &b, count);
    for (int i = 0; status != SMG_OK && i < count; i++) {
        smg_vk_pipeline_destroy(out_pipelines[i]);
        out_pipelines[i] = NULL;
    }
    return status;
}
