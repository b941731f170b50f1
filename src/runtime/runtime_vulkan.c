/* runtime_vulkan.c: the public calls that name Vulkan's types and need a model or a tensor. Handles go on by their
 * address: nothing else of this folder knows what they are. */
#include "smg/vulkan.h"

#include "runtime/runtime_private.h"

static smg_status import(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_buffer *buffer,
                         smg_device_tensor **out_tensor) {
    smg_context *ctx = smg_vk_context(device);
    smg_storage storage;
    if (desc == NULL || buffer == NULL || buffer->buffer == VK_NULL_HANDLE) {
        return smg_fail(ctx, SMG_INVALID, "smg_vk_tensor_import: %s is null",
                        desc == NULL ? "the description" : "the buffer");
    }
    if (buffer->offset > INT64_MAX / 2 || buffer->bytes > INT64_MAX / 2) {
        return smg_fail(ctx, SMG_INVALID, "smg_vk_tensor_import: %llu bytes at %llu", (unsigned long long)buffer->bytes,
                        (unsigned long long)buffer->offset);
    }
    SMG_TRY(smg_device_tensor_storage(ctx, desc, &storage));
    const smg_tensor_import part = {
        .handle = &buffer->buffer, .offset = (int64_t)buffer->offset, .bytes = (int64_t)buffer->bytes};
    return smg_device_tensor_make(device, desc->name != NULL ? desc->name : "tensor", storage, desc->elements, &part,
                                  out_tensor);
}

smg_status smg_vk_tensor_import(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_buffer *buffer,
                                smg_device_tensor **out_tensor) {
    if (out_tensor == NULL) return SMG_INVALID;
    *out_tensor = NULL;
    if (device == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(device));
    return smg_context_told(smg_vk_context(device), import(device, desc, buffer, out_tensor));
}

smg_status smg_vk_model_submit(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                               int output_count, const smg_vulkan_sync *sync, smg_ticket *out_ticket) {
    return smg_flight_submit(model, inputs, input_count, outputs, output_count, sync, out_ticket);
}

/* ---- in an application's command buffer ------------------------------------------------------------- */

static smg_status record(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs, int output_count,
                         VkCommandBuffer commands, smg_ticket *out_ticket) {
    if (commands == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_vk_model_record: the command buffer is null");
    SMG_TRY(smg_flight_record(m, inputs, input_count, outputs, output_count, (const void *)&commands));
    *out_ticket = (smg_ticket){.model = m, .number = ++m->flight.number};
    return SMG_OK;
}

smg_status smg_vk_model_record(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                               int output_count, VkCommandBuffer commands, smg_ticket *out_ticket) {
    if (out_ticket == NULL) return SMG_INVALID;
    *out_ticket = (smg_ticket){0};
    if (model == NULL) return SMG_INVALID;
    smg_context_clear_error(model->ctx);
    return smg_context_told(model->ctx,
                            record(model, inputs, input_count, outputs, output_count, commands, out_ticket));
}

static smg_status over(smg_ticket ticket, bool ran) {
    smg_model *m = ticket.model;
    SMG_TRY(smg_flight_check(ticket));
    if (ticket.number < m->flight.number || !m->flight.up || !smg_program_is_outside(m->program))
        return smg_fail(m->ctx, SMG_INVALID, "ticket %llu is of no command buffer of the application's",
                        (unsigned long long)ticket.number);
    smg_status status = smg_program_over(m->program, ran);
    smg_flight_land(&m->flight);
    m->flight.status = status == SMG_OK && ran ? smg_flight_finish(m) : status;
    return m->flight.status;
}

smg_status smg_vk_ticket_over(smg_ticket ticket, bool ran) {
    if (ticket.model == NULL) return SMG_INVALID;
    smg_context_clear_error(ticket.model->ctx);
    return smg_context_told(ticket.model->ctx, over(ticket, ran));
}

smg_status smg_vk_tensor_buffer(const smg_device_tensor *tensor, smg_vulkan_buffer *out_buffer) {
    if (tensor == NULL || out_buffer == NULL) return SMG_INVALID;
    smg_vk_buffer_handle(tensor->memory, &out_buffer->buffer);
    out_buffer->offset = (VkDeviceSize)tensor->offset;
    out_buffer->bytes = (VkDeviceSize)tensor->bytes;
    return SMG_OK;
}
