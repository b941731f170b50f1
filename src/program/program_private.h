/* program_private.h: what a program is, for the sources of this folder. */
#ifndef SMG_PROGRAM_PRIVATE_H
#define SMG_PROGRAM_PRIVATE_H

#include "program/program.h"

#define SMG_PROGRAM_CACHED 8 /* recordings kept, each for one tuple or range of sizes */
#define SMG_PROGRAM_DIAGNOSTICS_BYTES 16
#define SMG_PROGRAM_MAX_PUSH SMG_VK_PARAMETERS_ALIGNMENT /* bytes of a step's push constants */

/* Where a bundle's buffer lies. */
typedef struct smg_place {
    int chunk; /* index of fixed[] or, for what the arena holds, of arena[] */
    int64_t offset;
    int64_t bytes; /* on the device, rounded up to 16 */
} smg_place;

typedef struct smg_vk_buffer_list {
    smg_vk_buffer **items;
    int count;
} smg_vk_buffer_list;

/* Inputs on their way up, or outputs on their way down, with a run. */
typedef struct smg_crossing {
    smg_vk_buffer *memory; /* the host's side; NULL: nothing crosses */
    smg_vk_recording *copies;
    bool open;    /* copies are being recorded */
    bool *marked; /* per buffer: its copy is */
} smg_crossing;

/* One dispatch: rows of the grid from `row` on, of one step. */
typedef struct smg_slice {
    int step, part;
    bool sliced; /* there are others of the step */
    int64_t columns, row, rows;
    double seconds; /* of the last run, where slices are stamped */
} smg_slice;

/* One recording with all that it depends on. It serves the sizes from low to high: one tuple, where these are the same,
 * and then sizes are recorded with it; else they lie in `parameters`, and other sizes are written there. */
typedef struct smg_bound {
    bool used;
    bool profile;
    int runs;    /* that were asked for */
    int in_row;  /* runs of the recording: one where a run may be several submissions */
    int variant; /* whose run list was recorded */
    uint64_t last_use;
    int64_t *low, *high; /* one per symbol */
    int64_t *values;     /* one per symbol: in force, once settled */
    bool settled;
    smg_place *places; /* one per buffer, for the largest sizes; those of constants are in program->fixed_places */
    smg_given *given;  /* one per buffer: what was given when it was recorded */
    int64_t *sides;    /* per input and output: where the host's side has it, -1: it does not cross with the run */
    int64_t *dims;     /* SMG_BUNDLE_RANK per buffer, at the values */
    smg_vk_buffer *parameters; /* program_parameters.c; NULL: one tuple */
    int64_t unaliased_bytes;
    int barriers;
    smg_vk_recording **parts; /* in the order in which they are submitted */
    int part_count, part_capacity, recorded;
    smg_slice *slices;
    double *times; /* one more than slices */
    int slice_count, slice_capacity, time_capacity;
    bool stamped;                /* every slice */
    bool *sliced;                /* per step: it has more than one */
    double *seconds;             /* per step, once measured */
    bool paced, measured, again; /* again: it is to be recorded once more */
    int tries;
    bool whole;        /* of a range: no step is to be cut at its largest sizes, */
    double whole_pace; /* by this pace; below 0: not known yet */
} smg_bound;

/* program_state.c: contents that live across runs. */
typedef struct smg_state {
    const char *name;
    int buffer, next;         /* of the bundle: what a run reads, and what it leaves */
    smg_vk_buffer *memory[2]; /* each of its own; NULL: not needed yet */
    int first;                /* which of the two the next run reads */
    bool begun;               /* a run has left something there; else it is zeros */
    bool zeroed;              /* and these are there */
    bool lost;                /* with another device */
    bool is_given;            /* the run at hand begins with what is written into it */
    bool goes_back;           /* the run in flight ends with a copy into the half that it read */
    int64_t dims[SMG_BUNDLE_RANK], next_dims[SMG_BUNDLE_RANK]; /* of what it has; of the sizes bound */
} smg_state;

/* Sizes that a module has as literals, in the order in which it is pushed them. */
typedef struct smg_literals {
    int count; /* 0: it has no such form */
    int32_t values[SMG_PROGRAM_MAX_PUSH / 4];
} smg_literals;

struct smg_program {
    smg_context *ctx;
    smg_arena *arena;
    const smg_bundle *bundle;
    smg_vk_device *device;
    const smg_target *target;
    smg_program_options options;
    int refused;            /* a slot of pipelines that the driver refused to build, -1 */
    uint8_t *without;       /* per module: forms that are not built (program_pipelines.c) */
    smg_literals *literals; /* per module (program_literals.c) */
    bool *dropped;          /* per run list: the first one serves its sizes */
    int64_t **beyond;       /* per run list: sizes from which on a value of it is too large, or NULL */
    int oversized;          /* the run list that has such a value at the sizes at hand, -1 */
    bool single;            /* ranges are served one tuple of sizes at a time */
    int known_buffers, known_modules, known_lists; /* of the bundle, when the tables below were made */
    bool stale;                                    /* the bundle may have grown since */
    smg_vk_pipeline **pipelines;                   /* per module and form (program_pipelines.c); NULL: not built yet */
    bool *lent;  /* per module and form: of the program that this one was shared from */
    bool shared; /* from another one, whose constants it reads */
    int symbol_count;
    smg_vk_buffer_list fixed; /* constants and derived that runs read */
    smg_place *fixed_places;  /* scratch too, while its batch runs */
    int64_t constant_bytes, derived_bytes, scratch_bytes;
    int64_t held_bytes;                /* by smg_program_take_memory */
    smg_vk_buffer_list scratch_memory; /* of one batch of the prepare list */
    bool *scratch;                     /* per buffer: only prepare steps bind it */
    int *scratch_last;                 /* per buffer: the last prepare step that does */
    smg_vk_buffer_list memory;         /* the arena's chunks, capacity buffers.count */
    smg_vk_buffer *diagnostics;
    int64_t *range_low, *range_high; /* per symbol: the range that was set, 0: none */
    int64_t *low, *high;             /* per symbol: what a recording for the sizes at hand serves */
    smg_bound cache[SMG_PROGRAM_CACHED];
    smg_bound *bound; /* the sizes in force; NULL before the first bind */
    smg_given *given; /* per buffer */
    smg_state *states;
    int state_count;
    bool turned;   /* what the sizes were bound with is not what the next run reads */
    bool *written; /* per buffer: input given since the last bind */
    bool ran;
    bool profile;
    int runs; /* of a recording */
    bool timestamps;
    uint64_t clock;
    double seconds, prepare_seconds;
    double *step_seconds; /* one more than steps: times since the first stamp, then shares */
    /* scratch of planning and recording, made once */
    smg_arena_slot *slots;
    int *slot_buffer, *order, *placed;
    int64_t *chunk_bytes, *chunk_most;
    smg_vk_binding *bindings;
    struct smg_range *ranges;
    int range_capacity;
    smg_passage passage;
    smg_crossing up, down;
    double dispatch_seconds, submission_seconds; /* 0: any but for the watchdog; any dispatch: infinite */
    double watchdog;                             /* seconds of a dispatch where no budget is set; 0: any */
    double pace;                                 /* what a run took, of what was estimated; 0: unknown */
    bool in_flight;
    int at_part; /* in flight */
    bool cancelled;
    smg_vk_recording *last;    /* to be submitted with the last part; NULL: nothing */
    smg_vk_recording *outside; /* of the run in flight, if it is in another's command buffer */
    double submitted;          /* when */
};

/* A stretch of memory that steps since the last barrier touched. */
typedef struct smg_range {
    smg_vk_buffer *buffer;
    int64_t begin, end;
    bool written;
} smg_range;

/* program_memory.c */
smg_status smg_program_place_constants(smg_program *p);
/* Places for all of them in the arena, which grows once; their low and high are set, nothing is recorded yet. */
smg_status smg_program_place_bounds(smg_program *p, smg_bound *const *bounds, int count);
/* Of the device, within what the options allow; NULL is nothing to free. */
smg_status smg_program_take_memory(smg_program *p, const char *label, int64_t bytes, smg_vk_buffer **out_memory);
void smg_program_free_memory(smg_program *p, smg_vk_buffer **io_memory);
/* Bytes of a constant or derived buffer, checked against one binding. */
smg_status smg_program_fixed_bytes(smg_program *p, int buffer, int64_t *out_bytes);
/* The same of any other at these sizes. */
smg_status smg_program_bytes_at(smg_program *p, int buffer, const int64_t *values, int64_t *out_bytes);
/* First fit of place->bytes into p->chunk_bytes[0 .. *io_chunks). */
void smg_program_pack(smg_program *p, smg_place *place, int *io_chunks);
smg_status smg_program_upload_constant(smg_program *p, int buffer); /* others: nothing */
/* bound may be NULL for constants and derived buffers. */
const smg_place *smg_program_place(const smg_program *p, const smg_bound *bound, int buffer,
                                   smg_vk_buffer **out_memory);
/* Steps at all sizes from low to high; NULL: any. */
typedef struct smg_program_steps {
    const smg_bstep *steps;
    int count;
    const int64_t *low, *high;
    const bool *sliced; /* NULL: none is */
} smg_program_steps;
/* program_literals.c: for modules that are new */
void smg_program_choose_literals(smg_program *p, int known_modules);
/* Are these sizes, for this step, what its module has as literals? low NULL: none are known. */
bool smg_program_has_literals(const smg_program *p, const smg_bstep *step, const int64_t *low, const int64_t *high);
/* program_pipelines.c: those that the steps need and that are not there yet, all at once. */
smg_status smg_program_make_pipelines(smg_program *p, const smg_program_steps *lists, int count);
smg_vk_pipeline *smg_program_pipeline(const smg_program *p, const smg_bstep *step, const int64_t *low,
                                      const int64_t *high, bool sliced);
int smg_program_pipeline_slots(int modules); /* length of the table */
/* After a failure: may something else serve in place of what the driver refused to build? It does from now on. */
bool smg_program_do_without(smg_program *p);
/* Do the sizes change between the two? */
bool smg_program_moves(const smg_program *p, const int64_t *low, const int64_t *high);
/* program_parameters.c */
smg_status smg_program_make_parameters(smg_program *p, smg_bound *bound);
/* Addresses of bindings, then sizes: the layout of the step's push constants. Its buffers are in p->bindings. */
void smg_program_fill_addresses(const smg_program *p, const smg_bstep *step, uint8_t *push);
void smg_program_fill_sizes(const smg_bstep *step, const int64_t *values, uint8_t *push);
/* Spreads a linear number of workgroups over x and y; kernels number them linearly again. */
smg_status smg_program_spread_grid(smg_program *p, const smg_bstep *step, const int64_t *values, int64_t *out_x,
                                   int64_t *out_y);
/* Kernels of a run in flight that have not begun do nothing: the device may see it, or not. The sizes are to be put
 * again. */
void smg_program_empty_counts(smg_bound *bound);
smg_vk_parameters smg_program_parameters_of(const smg_bound *bound, int step);
/* Makes these sizes the ones in force: dims, and what the recording reads from memory. */
smg_status smg_program_put_values(smg_program *p, smg_bound *bound, const int64_t *values);
/* program_slices.c */
bool smg_program_is_limited(const smg_program *p);
smg_status smg_program_plan_slices(smg_program *p, smg_bound *bound);
/* Does a step of the run list seem to take longer than a dispatch may at these sizes? */
bool smg_program_cuts(const smg_program *p, int variant, const int64_t *values);
/* From the times of a run that is over. */
void smg_program_learn(smg_program *p, smg_bound *bound);
/* program_record.c */
smg_status smg_program_record_run(smg_program *p, smg_bound *bound);
void smg_program_drop_parts(smg_bound *bound);
/* All of it, in one. */
smg_status smg_program_record_steps(smg_program *p, smg_bound *bound, smg_vk_recording *recording);
smg_status smg_program_record_prepare(smg_program *p, smg_vk_recording *recording, int from, int end);
/* program_cross.c */
smg_status smg_program_make_crossings(smg_program *p, smg_bound *bound);
void smg_program_drop_crossings(smg_program *p);
void smg_program_forget_crossings(smg_program *p); /* what was not submitted */
smg_status smg_program_cross_up(smg_program *p, int buffer, const void *data, int64_t count);
/* What is to be submitted in front of the run and behind it; NULL: nothing. */
smg_status smg_program_cross(smg_program *p, const int *wanted, int count, smg_vk_recording **out_before,
                             smg_vk_recording **out_after);
/* The same within a recording of the run. */
void smg_program_record_up(smg_program *p, smg_vk_recording *recording);
void smg_program_record_down(smg_program *p, smg_vk_recording *recording, const int *wanted, int count);
smg_status smg_program_cross_down(smg_program *p, int buffer, void *data, int64_t count);
/* program_prepare.c */
void smg_program_mark_scratch(smg_program *p);
smg_status smg_program_prepare(smg_program *p);
void smg_program_drop_scratch(smg_program *p);
/* program_state.c */
smg_status smg_program_make_states(smg_program *p);
void smg_program_drop_states(smg_program *p);
/* They are given to runs of these sizes. INVALID: what a state has is of other ones, or lost. */
smg_status smg_program_place_states(smg_program *p, const int64_t *values);
void smg_program_record_states(smg_program *p, smg_vk_recording *recording);
void smg_program_forget_given(smg_program *p, int buffer); /* smg_program_begin_with; others: nothing */
int64_t smg_program_state_bytes(const smg_program *p);
/* program_tables.c: as large as the bundle needs them; what is known stays. */
smg_status smg_program_make_tables(smg_program *p);
/* program.c: takes over what was added to the bundle; drops all recordings. */
smg_status smg_program_extend(smg_program *p);
/* program_bind.c */
void smg_bound_drop(smg_program *p, smg_bound *bound);
/* program_run.c: the kernels' diagnostics words: INVALID after a bad index; cleared for the next run. */
smg_status smg_program_check_diagnostics(smg_program *p);

#endif
