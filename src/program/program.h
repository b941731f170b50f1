/* program: a bundle made ready to run on one device.
 *
 * Takes:    a verified bundle, an open device.
 * Gives:    pipelines, uploaded constants, one planned arena, recordings per sizes or range, results, times.
 * Promises: constants are uploaded once, those that only the prepare list reads are freed after it; a second
 *           run of the same sizes, or of others in a range that was set, allocates nothing; barriers stand only where
 *           a step reads or writes what an earlier one wrote or read; a bad index in the data is INVALID with the
 *           numbers.
 * Does not: know graphs, ops or kernels; compile anything.
 *
 *     smg_program_create(ctx, bundle, device, NULL, &p);
 *     smg_program_bind_sizes(p, sizes);                  one value per symbol of bundle->sizes
 *     smg_program_write_input(p, "x", data, 2, dims);    after bind: sizes decide where x lies
 *     smg_program_run(p);
 *     smg_program_read_output(p, "y", out, bytes);
 *     smg_program_destroy(p);                            before smg_vk_close
 */
#ifndef SMG_PROGRAM_H
#define SMG_PROGRAM_H

#include "bundle/bundle.h"
#include "vulkan/vulkan.h"

typedef struct smg_program smg_program;

/* All fields may be zero. */
typedef struct smg_program_options {
    /* Called after the bytes of a constant were copied to the device: its pages may be dropped. */
    void (*uploaded)(void *user, const void *data, size_t bytes);
    void *user;
    /* Constants that are a file's, whose source is a number in it. `fetch` is asked for those without data, piece by
     * piece: bytes of the source from offset on, which stay until the next call. `arrived` hears, with their name, what
     * smg_hash_blocks gives for all that was uploaded of one, and may refuse it. Both or none; user is `file`. */
    smg_status (*fetch)(void *user, int source, int64_t offset, size_t bytes, const void **out_data);
    smg_status (*arrived)(void *user, int source, const char *name, uint64_t hash);
    void *file;
    /* Asked when sizes of a variant are bound that the bundle does not have yet: adds it (buffers, modules, steps
     * behind those that are there) or fails. NULL: variant 0 serves instead. user is `variant_user`. */
    smg_status (*make_variant)(void *user, int variant);
    void *variant_user;
    /* One per symbol: from and to sizes whose pipelines are built at once, the rest when bound. expected_high NULL: the
     * same; both NULL: none are expected. */
    const int64_t *expected, *expected_high;
    /* Most runs have the expected sizes: they are literals in pipelines, and those for other sizes come when bound. */
    bool literal;
    /* Told what the driver made of each module when the pipelines of the expected sizes are there and nothing else is
     * yet; spills are infinite where it refused to build it, below 0 where it tells none. true: another bundle is to be
     * made, and creation ends with NO_FIT. NULL: whatever was built is taken. user is `leaves_user`. */
    bool (*leaves)(void *user, const smg_vk_built *built, int modules);
    void *leaves_user;
    const int64_t
        *nominal;         /* one per symbol: the sizes that a step's estimate is for; NULL: any. Outlives the program */
    bool prepare_only;    /* for smg_program_read_derived: it runs nothing, and has no pipelines of run lists */
    bool pipelines_only;  /* for `leaves`: it runs nothing, and nothing is uploaded */
    int64_t memory_bytes; /* the most device memory for constants, scratch, values and states; 0: any */
    int64_t prepare_bytes; /* scratch that the prepare list may hold at a time where it can be split; 0: 64 MiB */
} smg_program_options;

/* The bundle and the device are borrowed and outlive the program; constant data are no longer read after this
 * returns, module words are (pipelines for other sizes). Pipelines report progress as phase "pipelines".
 * NO_FIT: a constant larger than one binding; DEVICE_MEMORY: it does not fit. options may be NULL. */
smg_status smg_program_create(smg_context *ctx, const smg_bundle *bundle, smg_vk_device *device,
                              const smg_program_options *options, smg_program **out_program);
/* Another one on the constants and the pipelines of `from`, which outlives it, with an arena, recordings and runs of
 * its own; `device` is that of `from`, or shared from it for another context. Ranges are taken over. `from` has all run
 * lists from now on, and makes none any more. To be made where `from` may be used, with no run of it in flight
 * (INVALID). */
smg_status smg_program_share(smg_program *from, smg_vk_device *device, smg_program **out_program);
void smg_program_destroy(smg_program *program); /* NULL is fine */

/* Index of an input or output in bundle->buffers; NOT_FOUND lists the names there are. */
smg_status smg_program_find(smg_program *program, smg_buffer_kind kind, const char *name, int *out_buffer);

/* From the next bind on no dispatch, and no submission, takes longer on the device (0: any may, a dispatch as long as
 * the target's max_dispatch_time; infinite: any dispatch), as far as can be told ahead; the first runs of new sizes
 * find out. Every tuple of sizes has a recording of its own then, ranges or not. With a limit of submissions a run is
 * submitted part by part (smg_program_wait). No run is in flight. */
void smg_program_set_budget(smg_program *program, double dispatch_seconds, double submission_seconds);
/* For tests: what no dispatch outlasts without a budget, in the place of what the target says; 0: any may. */
void smg_program_set_watchdog(smg_program *program, double seconds);
/* From the next bind on, one recording serves all values of a symbol from low to high (in [1, its maximum]): buffers
 * are placed for the largest, and sizes are read from memory. 0, 0: a recording for each value again. INVALID: no
 * range. */
smg_status smg_program_set_range(smg_program *program, int symbol, int64_t low, int64_t high);
/* Memory in the place of the arena's. */
typedef struct smg_given {
    smg_vk_buffer *memory; /* NULL: none */
    uint64_t id;           /* of the memory; smg_program_give fills it in */
    int64_t offset, bytes; /* that may be used from there on; offset as bindings want it, and a multiple of 16 */
} smg_given;
/* An input, state or output lies there from the next bind on (NULL: in the arena again, or where the program keeps the
 * state): runs read or write it where it is.
 * The memory may be destroyed when no run uses it any more; what was recorded with it is not submitted again. */
void smg_program_give(smg_program *program, int buffer, const smg_given *given);
/* ---- states (program_state.c): each program has its own, zeros at first ---------------------------- */

/* The run of the next bind begins with what is written into this state, as into an input, in the place of what the last
 * run left; until smg_program_give is called for it again. */
void smg_program_begin_with(smg_program *p, int buffer);
/* What the run that is over has left is what the next one reads; without it that reads what this one did. */
void smg_program_keep_states(smg_program *p);
/* Zeros again. INVALID: a run is in flight. */
smg_status smg_program_reset_state(smg_program *p, int buffer);
/* Is there a state that a run has written, or that was lost? */
bool smg_program_has_begun(const smg_program *p);
/* Runs that would read a state are INVALID until it is reset or given. */
void smg_program_lose_states(smg_program *p);

/* values[i] belongs to symbol i of bundle->sizes; each in [1, its maximum], and in its range where it has one
 * (INVALID); memory that was given must be enough for them (INVALID). Takes the run list whose guard holds, plans the
 * arena and records unless these sizes are among the last few, or in a range that is, with the same memory given;
 * builds those pipelines (at most four per module: plain and even, for one tuple and for ranges) that no sizes have
 * asked for before. Of a range everything is made when its first sizes are bound, all run lists that it takes among it;
 * later sizes of it allocate nothing and are a few words written to the device. Inputs must be written again when sizes
 * change. INVALID, too: what a state has is of other sizes. A run that is not preceded by a bind is the run before once
 * more, from what its states were. */
smg_status smg_program_bind_sizes(smg_program *program, const int64_t *values);
/* Dims of a buffer at the bound sizes; returns its elements. */
int64_t smg_program_dims(const smg_program *program, int buffer, int64_t out_dims[SMG_BUNDLE_RANK]);
/* What no run has written since is NaN, or -1: all that lies in the arena, inputs too. Of sizes that are bound. */
smg_status smg_program_poison(smg_program *program);
/* Are sizes bound? If so, and there was a run, the inputs are still there. */
bool smg_program_is_bound(const smg_program *program);
/* The sizes that the recording in force serves, one each per symbol; false: none are bound. */
bool smg_program_ends(const smg_program *program, const int64_t **out_low, const int64_t **out_high);
/* Host elements in the buffer's storage format (i64 and bool as the host has them), row-major. dims are
 * checked against the bound sizes; an i64 outside the range of 32 bits is INVALID with its position. */
smg_status smg_program_write_input(smg_program *program, const char *name, const void *data, int rank,
                                   const int64_t *dims);
bool smg_program_has_input(const smg_program *program, int buffer); /* written since sizes were bound, or given */
/* Submits the list once. Every input must have been written since sizes were bound. `wanted`: buffers of outputs that
 * will be read afterwards. sync (may be NULL) as smg_vk_submit_with takes it. After a failure sizes are to be bound
 * again. INVALID: a run is in flight already. */
smg_status smg_program_submit(smg_program *program, const int *wanted, int count, const struct smg_vulkan_sync *sync);
/* Waits for it, at most `seconds`, of which the first `spin_seconds` poll. *out_done: it is over, and the status is the
 * run's; nothing was in flight: OK. Of a run in several parts it submits the next one where one is over, and goes on
 * where there is time left. */
smg_status smg_program_wait(smg_program *program, double spin_seconds, double seconds, bool *out_done);
/* Instead of submitting it, records the run in another's command buffer, *commands (smg_vk_recording_begin_in), which
 * may run any number of times until smg_program_over. Until then a run is in flight. */
smg_status smg_program_record_in(smg_program *program, const void *commands, const int *wanted, int count);
bool smg_program_is_outside(const smg_program *program); /* the run in flight is such a one */
/* It does not run any more. `ran`: it did, and the status is the last run's. */
smg_status smg_program_over(smg_program *program, bool ran);
/* What of the run in flight has not begun is left out, where that can be: parts that are not submitted yet, and
 * kernels that read their workgroups from memory. *out_taken: something is; then the run ends with CANCELLED. */
void smg_program_cancel(smg_program *program, bool *out_taken);
/* How many dispatches and submissions a run of the bound sizes has, and the most seconds that one of the last run took
 * (0: not measured). */
typedef struct smg_program_pieces {
    int dispatches, submissions;
    double dispatch_seconds, submission_seconds;
} smg_program_pieces;
smg_program_pieces smg_program_pieces_of(const smg_program *program);
/* Both, for as long as it takes. */
smg_status smg_program_run(smg_program *program);
/* Copies an output of the last run; `bytes` must be what its host elements take. */
smg_status smg_program_read_output(smg_program *program, const char *name, void *data, int64_t bytes);

/* What the prepare list made of a derived buffer that runs read, as it lies on the device. INVALID: other bytes. */
smg_status smg_program_read_derived(smg_program *program, int buffer, void *data, int64_t bytes);

/* Seconds of the last run on the device (on the host where the queue has no timestamps). */
double smg_program_time(const smg_program *program);
bool smg_program_has_timestamps(const smg_program *program);
/* Time stamps after every step: smg_program_step_time is then the step's own share. */
smg_status smg_program_set_profile(smg_program *program, bool on);
/* So many runs in one submission, one behind the other; smg_program_time is then that of one of them, of the last where
 * steps are stamped. 0: as many as take a millisecond, by the last one. Gives how many. */
int smg_program_set_runs(smg_program *program, int runs);
double smg_program_step_time(const smg_program *program, int step);
int smg_program_step_count(const smg_program *program); /* of the run list in force */
/* What the driver's compiler made of the module, the most of its forms that were built. */
smg_vk_built smg_program_built(const smg_program *program, int module);
/* The module of the bundle without which the last call could do nothing, because the driver does not build it; -1. */
int smg_program_refused(const smg_program *program);
int smg_program_variant(const smg_program *program); /* the run list in force; 0 before sizes are bound */

typedef struct smg_program_memory {
    int64_t constant_bytes, derived_bytes, arena_bytes; /* held on the device */
    int64_t state_bytes;                                /* of states, with room for what the next run leaves */
    int64_t prepare_bytes;   /* the most that the prepare list held beside them, for a moment */
    double prepare_seconds;  /* what it took, uploads of its constants included */
    int64_t peak_bytes;      /* the most of all that was held at a time; recordings and pipelines are not counted */
    int64_t unaliased_bytes; /* what the arena would take without sharing */
    int barriers, pipelines;
} smg_program_memory;
void smg_program_memory_used(const smg_program *program, smg_program_memory *out_memory);

/* ---- elements on their way (program_copy.c) ------------------------------------------------------ */

/* Between host elements and device elements of a storage, at `offset` of the memory. What is converted in large numbers
 * passes through memory that is taken once. */
typedef struct smg_passage {
    smg_context *ctx;
    void *room;
} smg_passage;
smg_status smg_passage_upload(smg_passage *passage, const char *name, smg_storage storage, smg_vk_buffer *memory,
                              int64_t offset, const void *data, int64_t count);
smg_status smg_passage_download(smg_passage *passage, smg_storage storage, smg_vk_buffer *memory, int64_t offset,
                                void *data, int64_t count);
void smg_passage_free(smg_passage *passage); /* zeroed is fine */

/* ---- the arena's plan (program_arena.c), pure: also used without a device ----------------------- */

typedef struct smg_arena_slot {
    int64_t bytes;
    int first, last; /* inclusive lifetime */
    int chunk;       /* given back */
    int64_t offset;  /* given back */
} smg_arena_slot;
/* Places slots so that two with overlapping lifetimes never overlap in memory; offsets are multiples
 * of `alignment` (a power of two); no chunk exceeds `chunk_limit`. out_chunk_bytes has room for `count`
 * chunks. `order` and `placed` are scratch of `count` ints each. false: a slot exceeds the limit. */
bool smg_program_plan_arena(smg_arena_slot *slots, int count, int64_t alignment, int64_t chunk_limit, int *order,
                            int *placed, int64_t *out_chunk_bytes, int *out_chunk_count);

#endif
