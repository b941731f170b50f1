/* runtime_private.h: what a model is, for the sources of this folder. */
#ifndef SMG_RUNTIME_PRIVATE_H
#define SMG_RUNTIME_PRIVATE_H

#include "runtime/runtime.h"

struct smg_model {
    smg_context *ctx;
    smg_arena *arena;
    smg_model_parts parts;
    smg_program *program;
    smg_inputs inputs;
    smg_room *output_room; /* per output */
    smg_room scratch;      /* a converted input */
    double program_seconds;
};

/* At least so many bytes; what is there stays. */
smg_status smg_room_grow(smg_context *ctx, smg_room *room, size_t bytes);
/* Bytes that memory for an input or output is taken for: at the largest sizes of the range bound, so that later runs of
 * it take no more. */
size_t smg_model_room(const smg_model *model, const smg_port *port, int64_t count, smg_storage type);

#endif
