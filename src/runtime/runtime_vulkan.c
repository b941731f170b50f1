/* runtime_vulkan.c: the public calls that name Vulkan's types and need a model or a tensor. Handles go on by their
 * address: nothing else of this folder knows what they are. */
#include "smg/vulkan.h"

#include "runtime/runtime_private.h"

/* from or handle: where it lies, offset and bytes of it. */
static smg_status import(smg_device *device, const char *call, const smg_device_tensor_desc *desc,
                         const VkBuffer *handle, const smg_vulkan_fd *from, VkDeviceSize offset, VkDeviceSize bytes,
                         smg_device_tensor **out_tensor) {
    smg_context *ctx = smg_vk_context(device);
    smg_storage storage;
    if (offset > INT64_MAX / 2 || bytes > INT64_MAX / 2)
        return smg_fail(ctx, SMG_INVALID, "%s: %llu bytes at %llu", call, (unsigned long long)bytes,
                        (unsigned long long)offset);
    SMG_TRY(smg_device_tensor_storage(ctx, desc, &storage));
    const smg_tensor_import part = {.handle = handle, .from = from, .offset = (int64_t)offset, .bytes = (int64_t)bytes};
    return smg_device_tensor_make(device, desc->name != NULL ? desc->name : "tensor", storage, desc->elements, &part,
                                  out_tensor);
}

static smg_status import_buffer(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_buffer *buffer,
                                smg_device_tensor **out_tensor) {
    static const char call[] = "smg_vk_tensor_import";
    if (desc == NULL || buffer == NULL || buffer->buffer == VK_NULL_HANDLE)
        return smg_fail(smg_vk_context(device), SMG_INVALID, "%s: %s is null", call,
                        desc == NULL ? "the description" : "the buffer");
    return import(device, call, desc, &buffer->buffer, NULL, buffer->offset, buffer->bytes, out_tensor);
}

static smg_status import_fd(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_fd *from,
                            smg_device_tensor **out_tensor) {
    static const char call[] = "smg_vk_tensor_import_fd";
    smg_context *ctx = smg_vk_context(device);
    if (desc == NULL || from == NULL)
        return smg_fail(ctx, SMG_INVALID, "%s: %s is null", call, desc == NULL ? "the description" : "the memory");
    if (from->kind != SMG_VULKAN_FD_OPAQUE && from->kind != SMG_VULKAN_FD_DMA_BUF)
        return smg_fail(ctx, SMG_INVALID, "%s: there is no kind %d", call, (int)from->kind);
    if (from->offset > from->memory_bytes || from->bytes > from->memory_bytes - from->offset)
        return smg_fail(ctx, SMG_INVALID, "%s: %llu bytes at %llu of %llu", call, (unsigned long long)from->bytes,
                        (unsigned long long)from->offset, (unsigned long long)from->memory_bytes);
    return import(device, call, desc, NULL, from, from->offset, from->bytes, out_tensor);
}

smg_status smg_vk_tensor_import(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_buffer *buffer,
                                smg_device_tensor **out_tensor) {
    if (out_tensor == NULL) return SMG_INVALID;
    *out_tensor = NULL;
    if (device == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(device));
    return smg_context_told(smg_vk_context(device), import_buffer(device, desc, buffer, out_tensor));
}

smg_status smg_vk_tensor_import_fd(smg_device *device, const smg_device_tensor_desc *desc, const smg_vulkan_fd *from,
                                   smg_device_tensor **out_tensor) {
    if (out_tensor == NULL) return SMG_INVALID;
    *out_tensor = NULL;
    if (device == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(device));
    return smg_context_told(smg_vk_context(device), import_fd(device, desc, from, out_tensor));
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
    if (ran) smg_flight_keep(m); /* whether it failed or not: it may have run several times */
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
