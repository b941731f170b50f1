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

smg_status smg_vk_tensor_buffer(const smg_device_tensor *tensor, smg_vulkan_buffer *out_buffer) {
    if (tensor == NULL || out_buffer == NULL) return SMG_INVALID;
    smg_vk_buffer_handle(tensor->memory, &out_buffer->buffer);
    out_buffer->offset = (VkDeviceSize)tensor->offset;
    out_buffer->bytes = (VkDeviceSize)tensor->bytes;
    return SMG_OK;
}
