/* compile_private.h: what a model is, for the sources that make it: compile_model.c opens and runs, compile_inputs.c
 * has what goes in. */
#ifndef SMG_COMPILE_PRIVATE_H
#define SMG_COMPILE_PRIVATE_H

#include "compile/compile.h"

typedef struct smg_memory {
    void *data;
    size_t bytes;
} smg_memory;

struct smg_model {
    smg_context *ctx;
    smg_arena *arena;
    smg_source own; /* zero when the source is borrowed */
    smg_source *source;
    smg_compilation *c;
    smg_vk_device *device;
    bool owns_device;
    smg_program *program;
    int input_count;
    smg_node_id *inputs; /* nodes of c->source */
    smg_tensor *kept;    /* per input: given by smg_model_set_input; name NULL: none */
    smg_memory *kept_memory;
    smg_memory *lengths; /* per input: of its rows, by smg_model_set_lengths */
    int *length_counts;  /* per input; 0: none were set */
    smg_tensor *all;     /* per input: of one run */
    smg_memory *output_memory;
    smg_memory scratch; /* converted input */
    int64_t *values;    /* per symbol */
    bool name_overflow;
    double device_seconds, program_seconds;
};

const smg_node *smg_model_input_node(const smg_model *m, int index);
/* At least so many bytes; what is there stays. */
smg_status smg_memory_grow(smg_context *ctx, smg_memory *memory, size_t bytes);
/* Elements of a node that memory is taken for: as many as at the largest sizes of the range bound, so that later runs
 * of it take no more. */
int64_t smg_model_room(const smg_model *m, const smg_node *node, int64_t count);
/* m->all: what a run has for each input: given with it, or kept; data NULL: neither. */
smg_status smg_model_collect(smg_model *m, const smg_tensor *inputs, int count);
/* INVALID where the model uses an input that has nothing. */
smg_status smg_model_need_inputs(smg_model *m);
/* m->all, defaults and lengths to the program, at the sizes bound. */
smg_status smg_model_write_inputs(smg_model *m);
/* m->all with defaults and masks of lengths as arrays at m->values, for evaluations on the host; inputs that have
 * nothing are left out. */
smg_status smg_model_whole_inputs(smg_model *m, smg_arena *arena, smg_tensor **out_inputs, int *out_count);
/* A kernel says which index was wrong; whose it was, when it was an input's, is looked up here. */
smg_status smg_model_name_index(smg_model *m, smg_status status);

#endif
