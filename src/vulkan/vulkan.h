/* vulkan: devices, memory, pipelines, recordings, time.
 *
 * Takes:    SPIR-V words, buffers, bindings, grids.
 * Gives:    a device with its queried and measured smg_target, and recordings that can be replayed.
 * Promises: no Vulkan type leaves this folder (include/smg/vulkan.h is the one seam); every failure
 *           is a status whose sentence names the Vulkan call; every path frees what it made; a
 *           replay (submit, wait, timestamps) allocates nothing here.
 * Does not: know graphs, ops, kernels or GLSL.
 */
#ifndef SMG_VULKAN_FOLDER_H
#define SMG_VULKAN_FOLDER_H

#include "base/base.h"
#include "target/target.h"

typedef struct smg_vk_device smg_vk_device;
typedef struct smg_vk_buffer smg_vk_buffer;
typedef struct smg_vk_pipeline smg_vk_pipeline;
typedef struct smg_vk_recording smg_vk_recording;

/* ---- devices ------------------------------------------------------------------------------ */

typedef struct smg_vk_device_info {
    int index; /* the number smg_vk_open accepts */
    char name[256];
    char driver[256]; /* driver name and its own version text */
    smg_device_type type;
    int api_major, api_minor, api_patch;
    int64_t local_bytes; /* largest device-local heap */
} smg_vk_device_info;

/* Every device with a compute queue. NOT_FOUND: no Vulkan loader, no driver, or no device. */
smg_status smg_vk_devices(smg_context *ctx, smg_arena *arena, smg_vk_device_info **out_list, int *out_count);

enum {
    SMG_VK_NO_OPTIONAL = 1,       /* enable no optional feature: what the poorest driver offers */
    SMG_VK_NO_PIPELINE_CACHE = 2, /* neither read nor write the pipeline cache on disk */
    SMG_VK_UNSEEN_MEMORY = 4,     /* SMG_VK_DEVICE is not mapped, as on discrete devices; for tests */
    SMG_VK_LOW_PRIORITY = 8,      /* of the queue, among all on the system where the driver knows that */
    SMG_VK_HIGH_PRIORITY = 16
};

/* `which`: an index ("0"), a type word ("cpu"), a part of the name (any case), or NULL for the best:
 * discrete, then integrated, virtual, cpu. $SMG_DEVICE replaces NULL. SMG_VALIDATION=1 in the
 * environment turns on the validation layer with synchronization validation, where installed; after a
 * message of the layer every run fails with INTERNAL and that message. */
smg_status smg_vk_open(smg_context *ctx, const char *which, unsigned flags, smg_vk_device **out_dev);
/* Writes the pipeline cache. Buffers, pipelines and recordings must be destroyed before. NULL is fine. A device that is
 * kept goes when the last who keeps it leaves it (NULL is fine, too). */
void smg_vk_close(smg_vk_device *dev);
void smg_vk_keep(smg_vk_device *dev);
void smg_vk_leave(smg_vk_device *dev);

smg_context *smg_vk_context(const smg_vk_device *dev);
bool smg_vk_same_device(const smg_vk_device *a, const smg_vk_device *b); /* or shared from it */
/* The same device for another context, and so for another thread: queue, caches and facts are those of `dev`, which
 * outlives it; command buffers, transfers and buffers are its own. To be made where `dev` may be used. */
smg_status smg_vk_share(smg_context *ctx, smg_vk_device *dev, smg_vk_device **out_dev);
/* Queried facts, plus measured ones once calibrated. Lives as long as the device. */
const smg_target *smg_vk_target(const smg_vk_device *dev);
/* Measures rates and costs (about two seconds, a cache file afterwards) and puts them into the target. */
smg_status smg_vk_calibrate(smg_vk_device *dev);
/* The target that plans are made for: once calibrated, with the rates that smg_vk_keep_rates kept, unless `nominal`. */
void smg_vk_plan_target(const smg_vk_device *dev, bool nominal, smg_target *out_target);
/* Fitted rates of `from` and its revision are for all plans of the device from now on; a cache file has them for later
 * opens by this version of smg, as other versions have other prices. INVALID: the device is not calibrated, or there is
 * no cache folder. */
smg_status smg_vk_keep_rates(smg_vk_device *dev, const smg_target *from);
/* Tries the optional features that the target has: 16-bit floats, subgroups of the size that kernels are built for, and
 * with `matrices` each matrix shape and where its operands keep their elements (a tenth of a second without, one or two
 * with them; a cache file afterwards). What fails is taken off the target with a warning, one for all matrix shapes.
 * Matrices are on it only once they were tried, and layouts of fragments are those that were seen, whatever the tables
 * say. Before kernels are planned. */
smg_status smg_vk_prove(smg_vk_device *dev, bool matrices);
#define SMG_VK_VERDICT_TEXT 120
typedef struct smg_vk_verdict {
    char what[SMG_VK_VERDICT_TEXT]; /* "fp16", "matrix 8x8x8 f16 f16 f32 f32": keys of the target's text */
    char why[SMG_VK_VERDICT_TEXT];  /* it failed; empty: it passed */
} smg_vk_verdict;
/* What was tried, now or when the cache file was made; none before. Lives as long as the device. */
int smg_vk_verdicts(const smg_vk_device *dev, const smg_vk_verdict **out_verdicts);
/* Errors and warnings reported by the validation layer so far; 0 when it is off. */
int smg_vk_validation_errors(const smg_vk_device *dev);
bool smg_vk_validation_on(const smg_vk_device *dev);
/* Bytes of device-local memory this process may still use, as the driver says; the heap if it does not. */
int64_t smg_vk_memory_available(const smg_vk_device *dev);

/* ---- buffers ------------------------------------------------------------------------------ */

typedef enum smg_vk_buffer_kind {
    SMG_VK_DEVICE = 0, /* fast for kernels; mapped as well where that costs nothing (cpu, integrated) */
    SMG_VK_UPLOAD,     /* host writes, device reads */
    SMG_VK_READBACK,   /* device writes, host reads (cached where possible) */
    SMG_VK_PARAMETERS  /* a few words that the host writes and every kernel reads: mapped, near the device */
} smg_vk_buffer_kind;

/* A buffer with its own memory, usable as storage and as source or target of copies.
 * `label` names it in failures. Contents are undefined. DEVICE_MEMORY when it does not fit. */
smg_status smg_vk_buffer_create(smg_vk_device *dev, const char *label, int64_t bytes, smg_vk_buffer_kind kind,
                                smg_vk_buffer **out_buffer);
/* One that is another's: *handle is a VkBuffer of at least `bytes` bytes with the usage of smg's own. */
smg_status smg_vk_buffer_borrow(smg_vk_device *dev, const char *label, const void *handle, int64_t bytes,
                                smg_vk_buffer **out_buffer);
/* One in another's memory (smg/vulkan.h): its first `bytes` bytes. */
struct smg_vulkan_fd;
smg_status smg_vk_buffer_import(smg_vk_device *dev, const char *label, const struct smg_vulkan_fd *from, int64_t bytes,
                                smg_vk_buffer **out_buffer);
void smg_vk_buffer_destroy(smg_vk_buffer *buffer);                        /* NULL is fine */
void smg_vk_buffer_handle(const smg_vk_buffer *buffer, void *out_handle); /* its VkBuffer */
/* Of all buffers of a device, also of those that are gone, no two have the same. */
uint64_t smg_vk_buffer_id(const smg_vk_buffer *buffer);
/* Are the two ranges somewhere the same memory, as far as buffers tell? */
bool smg_vk_buffers_overlap(const smg_vk_buffer *a, int64_t a_offset, int64_t a_bytes, const smg_vk_buffer *b,
                            int64_t b_offset, int64_t b_bytes);
int64_t smg_vk_buffer_bytes(const smg_vk_buffer *buffer);
/* The coherent host address, or NULL when the memory is not host visible. */
void *smg_vk_buffer_map(smg_vk_buffer *buffer);
/* Where a shader finds its first byte; 0 where target->buffer_addresses is 0. */
uint64_t smg_vk_buffer_address(const smg_vk_buffer *buffer);
/* Blocking; direct where mapped, else in chunks through a staging buffer that the device keeps. */
smg_status smg_vk_upload(smg_vk_buffer *buffer, int64_t offset, const void *data, int64_t bytes);
/* And adds to *io_hash what smg_hash_blocks gives for the bytes, which begin with block number `first`: found out by
 * the threads that copy. */
smg_status smg_vk_upload_hashed(smg_vk_buffer *buffer, int64_t offset, const void *data, int64_t bytes, int64_t first,
                                uint64_t *io_hash);
smg_status smg_vk_download(smg_vk_buffer *buffer, int64_t offset, void *data, int64_t bytes);
/* Blocking; offset and bytes are multiples of 4. */
smg_status smg_vk_fill(smg_vk_buffer *buffer, int64_t offset, int64_t bytes, uint32_t word);

/* ---- pipelines ---------------------------------------------------------------------------- */

/* Storage buffers are bindings 0 .. binding_count-1 of set 0; the entry point is "main". */
typedef struct smg_vk_pipeline_desc {
    const char *name; /* for failures and statistics */
    const uint32_t *words;
    size_t word_count;
    int local_size[3]; /* as the module has it; checked against the limits. 0 counts as 1 */
    int binding_count;
    int push_bytes;
    int subgroup_size;         /* required size, 0: the driver's choice */
    bool full_subgroups;       /* require full subgroups (ignored when the device cannot) */
    int64_t shared_bytes;      /* that the module declares; what a driver takes beyond is spilled registers */
    const uint32_t *constants; /* specialization constants with ids 0.., may be NULL */
    int constant_count;
    bool sliced;      /* dispatches may begin at another row of the grid than 0 */
    bool from_memory; /* the module's push constants (push_bytes, not 0) are read from memory: dispatch_from */
    /* What the last words of the push constants are in every dispatch: they stand in the module as literals. They are
     * pushed like the others. NULL: none; not together with from_memory. */
    const int32_t *literals;
    int literal_count;
} smg_vk_pipeline_desc;

smg_status smg_vk_pipeline_create(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, smg_vk_pipeline **out_pipeline);
/* Many at once, built on all cores (smg_progress "pipelines", by name), each driven through what the driver puts off
 * until a pipeline first runs. out_pipelines[i] belongs to descs[i]; on failure, which is the first in their order,
 * there is none. */
smg_status smg_vk_pipelines_create(smg_vk_device *dev, const smg_vk_pipeline_desc *descs, int count,
                                   smg_vk_pipeline **out_pipelines);
void smg_vk_pipeline_destroy(smg_vk_pipeline *pipeline); /* NULL is fine */
/* Did the driver refuse to build it since the device was opened, for another reason than memory or a loss? */
bool smg_vk_refuses(const smg_vk_device *dev, const smg_vk_pipeline_desc *desc);

typedef struct smg_vk_stat {
    char name[64];
    double value;
} smg_vk_stat;
/* The compiler's own statistics (spills, registers...), including "subgroup size"; count 0 when the
 * driver has none. A pipeline gives them when the device was opened with $SMG_STATS=1 or after
 * smg_vk_keep_stats(dev, true), because capturing may cost compile time. */
smg_status smg_vk_pipeline_stats(smg_vk_pipeline *pipeline, smg_arena *arena, smg_vk_stat **out_stats, int *out_count);
void smg_vk_keep_stats(smg_vk_device *dev, bool keep);
/* What the driver's compiler made of a module, as it counts; -1: it does not say. Found out when a module is first
 * built on a driver that tells, with a log line where it spills, and kept in a cache file. */
typedef struct smg_vk_built {
    double spills;    /* registers of a lane stored to memory and loaded again */
    double registers; /* of a lane; of a whole subgroup by some */
    double shared;    /* bytes of a workgroup */
    bool of_lane;     /* registers are a lane's, of 32 bits */
} smg_vk_built;
smg_vk_built smg_vk_pipeline_built(const smg_vk_pipeline *pipeline);

/* ---- recordings --------------------------------------------------------------------------- */

typedef struct smg_vk_binding {
    smg_vk_buffer *buffer;
    int64_t offset; /* multiple of target->buffer_alignment */
    int64_t range;  /* 0: to the end of the buffer, at most target->max_buffer_range */
} smg_vk_binding;

/* A list of work that may be submitted any number of times, one submission at a time. Record calls
 * are sticky: after a failure they do nothing and smg_vk_recording_end returns the first status.
 * `timestamp_slots` may be 0. Buffers and pipelines named must outlive the recording. */
smg_status smg_vk_recording_begin(smg_vk_device *dev, int timestamp_slots, smg_vk_recording **out_rec);
/* The same in another's command buffer, *commands, a VkCommandBuffer that is being recorded for a queue of the device's
 * family. In front of it and behind it are barriers to kernels and copies. It is never submitted here; it is destroyed
 * when the command buffer does not run any more. */
smg_status smg_vk_recording_begin_in(smg_vk_device *dev, const void *commands, smg_vk_recording **out_rec);
void smg_vk_record_dispatch(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                            int binding_count, const void *push, int push_bytes, int64_t gx, int64_t gy, int64_t gz);
/* Rows of a grid: workgroups of y from first_y on, of a pipeline that was made for it where that is not 0. A kernel is
 * told the x of this grid, so that all of its dispatches have the same. */
typedef struct smg_vk_grid {
    int64_t x, y, z, first_y;
} smg_vk_grid;
void smg_vk_record_grid(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                        int binding_count, const void *push, int push_bytes, const smg_vk_grid *grid);
/* What a dispatch takes from SMG_VK_PARAMETERS when the recording runs, so that it serves many sizes. Counts lie
 * at a multiple of 4, blocks at one of SMG_VK_PARAMETERS_ALIGNMENT. */
#define SMG_VK_PARAMETERS_ALIGNMENT 256 /* the most that a device may ask of uniform buffers */
typedef struct smg_vk_parameters {
    smg_vk_buffer *buffer;
    int64_t counts; /* where the workgroups in x, y and z lie, 4 bytes each, in the limits of the target */
    int64_t block;  /* where the push constants lie, if the pipeline was made to read them from memory */
} smg_vk_parameters;
void smg_vk_record_dispatch_from(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, const smg_vk_binding *bindings,
                                 int binding_count, const smg_vk_parameters *parameters);
/* Everything recorded before (dispatches and copies) happens before everything after. */
void smg_vk_record_barrier(smg_vk_recording *rec);
void smg_vk_record_copy(smg_vk_recording *rec, smg_vk_buffer *from, int64_t from_offset, smg_vk_buffer *to,
                        int64_t to_offset, int64_t bytes);
/* The time when everything recorded before is finished. Each slot once. */
void smg_vk_record_timestamp(smg_vk_recording *rec, int slot);
/* Closes the list; writes of the last commands become visible to the host. */
smg_status smg_vk_recording_end(smg_vk_recording *rec);
void smg_vk_recording_destroy(smg_vk_recording *rec); /* waits if in flight; NULL is fine */

/* Empties a recording of copies that is not in flight, to be recorded anew: that allocates nothing. */
smg_status smg_vk_recording_again(smg_vk_recording *rec);

/* Puts a finished recording on the queue. Host writes made before are visible to it. */
smg_status smg_vk_submit(smg_vk_recording *rec);
/* Points of timeline semaphores that a submission waits for and signals; smg/vulkan.h has what is in it. */
struct smg_vulkan_sync;
bool smg_vk_sync_signals(const struct smg_vulkan_sync *sync); /* may be NULL */
/* In front of it and behind it two others (NULL: none), which are in flight as long as it is. sync may be NULL.
 * INVALID: too many points, or one without a semaphore. */
smg_status smg_vk_submit_with(smg_vk_recording *rec, smg_vk_recording *before, smg_vk_recording *after,
                              const struct smg_vulkan_sync *sync);
/* Returns when the last submission is done. Polls for `spin_seconds` first (lower latency), then sleeps. */
smg_status smg_vk_wait(smg_vk_recording *rec, double spin_seconds);
/* The same for at most `seconds`, of which the first `spin_seconds` poll; *out_done: it was not in flight any more. */
smg_status smg_vk_wait_for(smg_vk_recording *rec, double spin_seconds, double seconds, bool *out_done);
/* submit + wait. */
smg_status smg_vk_run(smg_vk_recording *rec);
/* After wait: seconds since slot 0, for slots 0 .. count-1. UNSUPPORTED: the queue has no timestamps. */
smg_status smg_vk_timestamps(smg_vk_recording *rec, double *out_seconds, int count);

#endif
