/* runtime_private.h: what a model is, for the sources of this folder. */
#ifndef SMG_RUNTIME_PRIVATE_H
#define SMG_RUNTIME_PRIVATE_H

#include <stdatomic.h>

#include "runtime/runtime.h"

struct smg_device_tensor {
    smg_vk_device *device;
    smg_vk_buffer *memory;
    int64_t offset, bytes; /* of its elements, and what fills up 16 bytes behind them */
    smg_storage storage;
    int64_t elements;
    smg_passage passage;
    int runs;     /* in flight that use it */
    bool dropped; /* it goes with the last of them */
    char name[40];
};

/* What a run that was submitted has to be finished with. */
typedef struct smg_flight {
    uint64_t number; /* of the last run; 0: there was none */
    bool up;
    bool on_device;      /* it uses tensors */
    bool repeats;        /* it is over, all right, and needs nothing that may be gone */
    smg_status status;   /* of the last run, once it is down */
    smg_tensor *outputs; /* capacity: those of the interface */
    int *wanted;         /* their buffers, of arrays of the host */
    int output_count, wanted_count;
    smg_device_tensor **tensors; /* capacity: inputs and outputs */
    int tensor_count;
} smg_flight;

struct smg_model {
    smg_context *ctx;
    smg_arena *arena;
    smg_model_parts parts;
    smg_vk_device *kept; /* the device, until the model goes or has another */
    smg_program *program;
    smg_inputs inputs;
    int *input_buffers, *output_buffers; /* of the bundle, per input and output; -1: it has none */
    smg_room *output_room;               /* per output */
    smg_room scratch;                    /* a converted input */
    smg_flight flight;
    double program_seconds;
    int64_t *low, *high;             /* per symbol: the sizes that pipelines are built for at once */
    int64_t *range_low, *range_high; /* per symbol: as it was set, 0: none */
    int64_t *last_sizes;             /* per symbol: of the last run */
    double dispatch_seconds, submission_seconds;
    bool lost_states;  /* there were some, and no device since */
    bool opens_device; /* by itself */
    bool outdated;     /* the next run begins with another plan */
    bool shared;       /* others use the program's constants, or it theirs */
    smg_model *from;   /* that it was shared from; NULL: from none */
    atomic_int shares; /* that are open, on any thread */
};

/* DEVICE: the model has none since it could not be recovered. */
smg_status smg_model_check_alive(smg_model *model);

/* After a failure to bind sizes: is there to be another plan, without what the driver does not build? Then the model is
 * outdated, and the error forgotten. */
bool smg_model_leaves_out(smg_model *model);

/* runtime_tensor.c: tensors of a run (those of inputs are collected) are given to the program, which has the others in
 * its arena. */
smg_status smg_model_give_tensors(smg_model *model, const smg_tensor *outputs, int output_count);
/* Made with room for `elements`; imported where `import` is not NULL: a VkBuffer's address or a descriptor, and what of
 * it. */
struct smg_vulkan_fd;
typedef struct smg_tensor_import {
    const void *handle;
    const struct smg_vulkan_fd *from; /* NULL: the handle */
    int64_t offset, bytes;
} smg_tensor_import;
smg_status smg_device_tensor_make(smg_vk_device *device, const char *name, smg_storage storage, int64_t elements,
                                  const smg_tensor_import *import, smg_device_tensor **out_tensor);
smg_status smg_device_tensor_storage(smg_context *ctx, const smg_device_tensor_desc *desc, smg_storage *out_storage);

/* runtime_run.c: up to the submission, and from its end on. */
smg_status smg_flight_start(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                            int output_count, const struct smg_vulkan_sync *sync);
smg_status smg_flight_record(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                             int output_count, const void *commands);
smg_status smg_flight_finish(smg_model *model);
void smg_flight_keep(smg_model *model); /* what the run left for the next one, once nothing of it can fail any more */
/* runtime_flight.c */
smg_status smg_flight_make(smg_flight *flight, const smg_interface *interface, smg_arena *arena);
void smg_flight_land(smg_flight *flight); /* it uses no tensor any more */
smg_status smg_flight_check(smg_ticket ticket);
smg_status smg_flight_submit(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                             int output_count, const struct smg_vulkan_sync *sync, smg_ticket *out_ticket);

/* At least so many bytes; what is there stays. */
smg_status smg_room_grow(smg_context *ctx, smg_room *room, size_t bytes);
/* Bytes that memory for an input or output is taken for: at the largest sizes of the range bound, so that later runs of
 * it take no more. */
size_t smg_model_room(const smg_model *model, const smg_port *port, int64_t count, smg_storage type);

#endif
