/* runtime_private.h: what a model is, for the sources of this folder. */
#ifndef SMG_RUNTIME_PRIVATE_H
#define SMG_RUNTIME_PRIVATE_H

#include "runtime/runtime.h"

struct smg_device_tensor {
    smg_vk_device *device;
    smg_vk_buffer *memory;
    int64_t offset, bytes; /* of its elements, and what fills up 16 bytes behind them */
    smg_storage storage;
    int64_t elements;
    smg_passage passage;
    char name[40];
};

struct smg_model {
    smg_context *ctx;
    smg_arena *arena;
    smg_model_parts parts;
    smg_program *program;
    smg_inputs inputs;
    int *input_buffers, *output_buffers; /* of the bundle, per input and output; -1: it has none */
    smg_room *output_room;               /* per output */
    smg_room scratch;                    /* a converted input */
    double program_seconds;
};

/* runtime_tensor.c: tensors of a run (those of inputs are collected) are given to the program, which has the others in
 * its arena. */
smg_status smg_model_give_tensors(smg_model *model, const smg_tensor *outputs, int output_count);
/* Made with room for `elements`; imported where `import` is not NULL: a VkBuffer's address, and what of it. */
typedef struct smg_tensor_import {
    const void *handle;
    int64_t offset, bytes;
} smg_tensor_import;
smg_status smg_device_tensor_make(smg_vk_device *device, const char *name, smg_storage storage, int64_t elements,
                                  const smg_tensor_import *import, smg_device_tensor **out_tensor);
smg_status smg_device_tensor_storage(smg_context *ctx, const smg_device_tensor_desc *desc, smg_storage *out_storage);

/* At least so many bytes; what is there stays. */
smg_status smg_room_grow(smg_context *ctx, smg_room *room, size_t bytes);
/* Bytes that memory for an input or output is taken for: at the largest sizes of the range bound, so that later runs of
 * it take no more. */
size_t smg_model_room(const smg_model *model, const smg_port *port, int64_t count, smg_storage type);

#endif
