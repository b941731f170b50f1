/* runtime: a model that runs, whatever it was made from.
 *
 * Takes:    an interface, a verified bundle and an open device, from a compiler; or a bundle's file.
 * Gives:    smg_model (smg/rt.h): arrays by name in, arrays by name out; sizes follow the arrays.
 * Promises: every array of a caller's is checked here, with its name and numbers; a run of sizes seen lately, or of a
 *           range that was set, allocates nothing; after a failed run the model is as good as before.
 * Does not: know graphs or compile anything.
 */
#ifndef SMG_RUNTIME_H
#define SMG_RUNTIME_H

#include "bundle/file.h"
#include "bundle/interface.h"
#include "program/program.h"
#include "smg/rt.h"
#include "vulkan/vulkan.h"

/* Host memory that only grows. */
typedef struct smg_room {
    void *data;
    size_t bytes;
} smg_room;

/* runtime_inputs.c: what a run has for each input of an interface. */
typedef struct smg_inputs {
    smg_context *ctx;
    const smg_interface *interface;
    smg_tensor *kept; /* per input: given ahead; data NULL: not */
    smg_room *kept_room;
    smg_room *lengths; /* per input: of its rows */
    int *length_counts;
    bool *lasting;   /* per input: what was written is of no run's array, so that the next run would write it again */
    smg_tensor *all; /* per input: of one run; smg_tensor_is_given */
    int64_t *values; /* per symbol */
} smg_inputs;
smg_status smg_inputs_make(smg_context *ctx, const smg_interface *interface, smg_arena *arena, smg_inputs *out_inputs);
void smg_inputs_free(smg_inputs *inputs); /* zeroed is fine */
/* `all` becomes what was given with a run, or ahead of it. */
smg_status smg_inputs_collect(smg_inputs *inputs, const smg_tensor *given, int count);
/* `values` becomes the sizes of these arrays; of what no array has its default (one when NULL). */
smg_status smg_inputs_size(smg_inputs *inputs, const int64_t *defaults);
/* Lengths that were set, or the value of its own that an input has, into an array that is there. false: neither. */
smg_status smg_inputs_fill(const smg_inputs *inputs, int index, smg_tensor *io_tensor, bool *out_filled);
/* `all`, with arrays in the arena for inputs that have lengths or a value of their own: for evaluations on the host, of
 * runs with no tensor on the device.
 * Inputs that have nothing are left out. */
smg_status smg_inputs_whole(const smg_inputs *inputs, smg_arena *arena, smg_tensor **out_whole, int *out_count);

/* What a model is made of. */
typedef struct smg_model_parts {
    const smg_interface *interface; /* its symbols are those of the bundle */
    const smg_bundle *bundle;
    smg_vk_device *device;
    bool owns_device;
    smg_program_options program; /* its expected sizes are those below */
    const smg_dim *dims;         /* in the place of the interface's nominal sizes */
    int dim_count;
    const smg_dim_range *ranges;
    int range_count;
    const char *class_name; /* "": none */
    double device_seconds;  /* that opening it took */
    /* Asked after a run whose outputs have an infinity or a NaN, with the sizes and all inputs; its status is the
     * run's. NULL: they are what they are. */
    smg_status (*not_finite)(void *owner, const int64_t *values, const smg_tensor *inputs, int count);
    /* Fills in device (opens one where it is NULL), bundle and class anew. NULL: it cannot. */
    smg_status (*again)(void *owner, struct smg_model_parts *io_parts);
    /* Fills in another bundle, and nominal sizes, for the same device; then it is told whether they are in force, so
     * that either these or those before may go. NULL: there is none. */
    smg_status (*plan_again)(void *owner, struct smg_model_parts *io_parts);
    void (*planned_again)(void *owner, bool taken);
    /* The driver does not build a module of the bundle's first run list: will plan_again do without it? NULL: no. */
    bool (*leave_out)(void *owner, int module);
    void *owner; /* of all that is borrowed above */
    void (*drop)(void *owner);
} smg_model_parts;

/* Takes over the owner, and the device if it is to own it, but not on failure. */
smg_status smg_model_make(smg_context *ctx, const smg_model_parts *parts, smg_model **out_model);
void *smg_model_owner(const smg_model *model);
smg_context *smg_model_context(const smg_model *model);
smg_program *smg_model_program(const smg_model *model); /* NULL: the model could not be recovered */
const smg_model_parts *smg_model_parts_of(const smg_model *model);
const smg_interface *smg_model_interface(const smg_model *model);
/* One value per symbol: are they possible, and do they fit the device? A run binds by itself. */
smg_status smg_model_bind(smg_model *model, const int64_t *values);
/* The same by name, others nominal. */
smg_status smg_model_bind_named(smg_model *model, const smg_dim *dims, int count);
void smg_model_memory(const smg_model *model, smg_program_memory *out_memory); /* nothing without Vulkan */
/* DEVICE: the model has none since it could not be recovered; INVALID: a run is in flight. `call` names who asks. */
smg_status smg_model_check_idle(smg_model *model, const char *call);
/* Takes the other plan where it was outdated; where that fails it goes on with the one there is. No run
 * is in flight. */
smg_status smg_model_update(smg_model *model);
/* The last run once more, on the device alone (smg/measure.h). */
smg_status smg_model_again(smg_model *model);
/* The next run begins with another plan. UNSUPPORTED: the model has no other, or is shared. */
smg_status smg_model_outdate(smg_model *model);
/* Seconds: opening the device, and making pipelines with the upload. */
void smg_model_times(const smg_model *model, double *out_device, double *out_program);

/* The best class of a bundle for the device on it: features are tried first, matrices where a class has any (nothing is
 * measured). `mapping` (may be NULL) is the file that the source's bytes are mapped from: pages of constants are let go
 * of once they are on the device. A model that is recoverable takes it over; else the source is not used after the
 * call. `label` names it. desc may be NULL. */
smg_status smg_model_open_bytes(smg_context *ctx, const smg_bfile_source *source, const char *label,
                                const smg_bundle_desc *desc, smg_mapped_file *mapping, smg_model **out_model);
/* The same of a file that is read already, which outlives the model with its mapping. `check` (may be NULL) sees the
 * class before a driver does. */
smg_status smg_model_open_file(smg_context *ctx, const smg_bfile *file, smg_bfile_check check,
                               const smg_bundle_desc *desc, smg_mapped_file *mapping, smg_model **out_model);
/* INVALID: the device (may be NULL) that a description names is of another context. */
smg_status smg_model_check_device(smg_context *ctx, const smg_vk_device *device);

#endif
