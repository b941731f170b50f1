/* smg/rt.h: open a model that was compiled ahead, run it on named arrays, close it.
 *
 *     smg_context *ctx;  smg_model *model;
 *     smg_context_create(NULL, &ctx);
 *     smg_model_open_bundle(ctx, "minilm.smgb", NULL, &model);      made by `smg compile`
 *     smg_tensor in[] = {{"input_ids", "i32", 2, {1, 5}, ids}};
 *     smg_tensor out = {.name = "embedding"};
 *     if (smg_model_run(model, in, 1, &out, 1) != SMG_OK) puts(smg_context_error(ctx));
 *     float *embedding = out.data;                                  out.dims is {1, 384}
 *     smg_model_close(model);
 *
 * This and the headers that it includes are all of libsmg-rt, the library without a compiler; libsmg has them too, and
 * smg/model.h adds what compiles a model where it runs. The calls behind opening are the same for both.
 *
 * Ownership: the model belongs to the caller (smg_model_close) and must be closed before its context.
 * Input data is read during the call only. Output data belongs to the model until the next run or close,
 * unless the caller gave memory. Threads: as the context, one at a time.
 * Errors: every function returns a status; smg_context_error has the sentence. After a failed run the
 * model is as good as before, and nothing has to be cleared. A NULL where something is needed is
 * INVALID (a NULL model has no inputs and no outputs).
 */
#ifndef SMG_RT_H
#define SMG_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smg/context.h"
#include "smg/device.h"
#include "smg/tensor.h"
#include "smg/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_model smg_model;

/* ---- opening a bundle ------------------------------------------------------------------------------- */

/* All fields may be zero. */
typedef struct smg_bundle_desc {
    const char *device; /* index, type word ("cpu", "discrete") or part of a name; NULL: $SMG_DEVICE, else the best */
    smg_device *on;     /* open already, of this context; it outlives the model. NULL: `device` is opened */
    /* Sizes that pipelines are built for when the bundle is opened; those that are not named are what it was compiled
     * for. Any other size runs too; the first run of such sizes may build what is missing, and takes longer. Where
     * every size is named, kernels have them as literals: runs of just these sizes are faster on a GPU. */
    const smg_dim *dims;
    int dim_count;
    const smg_dim_range *ranges; /* as smg_model_set_range does, with pipelines for them when the bundle is opened */
    int range_count;
    /* The most memory of the device for weights, values between kernels and states; 0: any. What does not fit is
     * DEVICE_MEMORY with the numbers: weights when the bundle is opened, values by the run whose sizes want more. A
     * model that is shared from this one may take as much again. */
    int64_t memory_bytes;
    /* smg_model_recover is to work: the file stays mapped, memory or reader stay the model's to use until it is
     * closed. */
    bool recoverable;
} smg_bundle_desc;

/* Where a bundle's bytes come from, when they are neither in a file nor in memory. */
typedef struct smg_bundle_reader {
    int64_t bytes; /* of all of it */
    /* Puts the `bytes` bytes from `offset` on into memory; they always lie inside. false: it failed, which is IO.
     * Weights are asked for one at a time, each from its begin to its end in pieces of at most 16 MiB. */
    bool (*read)(void *user, int64_t offset, void *into, size_t bytes);
    void *user;
} smg_bundle_reader;

/* Opens a device and, of the bundle's classes, the best whose needs it meets; uploads the weights; runs the prepare
 * list. Nothing of the file, the memory or the reader is used after the call, but of a model that is recoverable. desc
 * may be NULL.
 * NOT_FOUND: no such file, device or size; IO: reading failed; FORMAT: no bundle, a damaged one (a weight is named), or
 * one of another version or byte order; UNSUPPORTED: no class for this device (the sentence has what each lacks). */
SMG_API smg_status smg_model_open_bundle(smg_context *ctx, const char *path, const smg_bundle_desc *desc,
                                         smg_model **out_model);
SMG_API smg_status smg_model_open_bundle_memory(smg_context *ctx, const void *bytes, size_t size,
                                                const smg_bundle_desc *desc, smg_model **out_model);
SMG_API smg_status smg_model_open_bundle_reader(smg_context *ctx, const smg_bundle_reader *reader,
                                                const smg_bundle_desc *desc, smg_model **out_model);
/* The name of the class that was taken; "" of a model that came from no bundle. Lives as long as the model. */
SMG_API const char *smg_model_class(const smg_model *model);

/* ---- models ----------------------------------------------------------------------------------------- */

SMG_API void smg_model_close(smg_model *model); /* NULL is fine */

SMG_API int smg_model_input_count(const smg_model *model);
SMG_API int smg_model_output_count(const smg_model *model);
/* Name, type, rank; a dim that is symbolic is -1. false: index out of range. */
SMG_API bool smg_model_input(const smg_model *model, int index, smg_tensor *out_tensor);
SMG_API bool smg_model_output(const smg_model *model, int index, smg_tensor *out_tensor);

/* A tensor on the model's device that suits this input or output: its elements lie there as the model wants them.
 * NOT_FOUND: no such input or output; else as smg_tensor_create. */
SMG_API smg_status smg_model_create_tensor(smg_model *model, const char *name, int64_t elements,
                                           smg_device_tensor **out_tensor);

/* Runs once. Every input that the model uses must be among `inputs` (a directory's attention_mask and token_type_ids
 * may be left out: nothing is padding, all types are 0), each named, with dims that agree on the symbolic sizes.
 * `outputs` may name any of the model's: rank, dims and type are filled in, and data as above (the caller's memory when
 * data is set: `bytes` must be enough).
 * Arrays of the host and tensors on the device (`on`) may be mixed. INVALID, of a tensor: it lies on another device
 * (what was opened or adopted apart is another, also on one VkDevice; smg_device_share makes no other), its elements
 * lie there in another type than the model's, it is too small, or an output's shares memory with another.
 * Sizes of an input come from its dims in any case. */
SMG_API smg_status smg_model_run(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                                 int output_count);
/* ---- runs that do not wait -------------------------------------------------------------------------- */

/* One run of a model. A zeroed one is none. */
typedef struct smg_ticket {
    smg_model *model;
    uint64_t number;
} smg_ticket;

/* As smg_model_run, but returns when the run is on the device's queue. Inputs are read during the call. Outputs: rank,
 * dims, type and data are filled in; what data points to is written by the smg_ticket_wait that finds the run done, and
 * belongs to the run until then. Tensors (`on`) that a run uses may be those of other runs that are submitted before or
 * behind it: runs are done in the order in which they were submitted. The host reads and writes them when no run in
 * flight uses them.
 * A model has one run in flight; several models have one each. The first run of new sizes builds what it needs before
 * it is submitted. smg_model_desc.name_overflow does not look at such runs.
 * INVALID: as smg_model_run, or a run of the model is in flight. */
SMG_API smg_status smg_model_submit(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                                    int output_count, smg_ticket *out_ticket);
/* Waits at most `seconds` (0: only looks; below 0: as long as it takes). *out_done (NULL is fine): the run is over, its
 * outputs are there, and the status is what smg_model_run would have returned, without the name of an input whose index
 * was wrong. Not done is OK. A ticket of an earlier run is done.
 * Closing a model waits for its run; outputs are not written then, and its tickets are none any more. */
SMG_API smg_status smg_ticket_wait(smg_ticket ticket, double seconds, bool *out_done);

/* Takes back a run in flight. What of it has not begun is left out, as far as smg still has it in hand: the parts of a
 * run with a budget of submissions that are not on the queue, and in a range (smg_model_set_range) every kernel that
 * the device has not come to. *out_cancelled (NULL is fine): something is left out; smg_ticket_wait then ends with
 * CANCELLED, no output is written on the host, and tensors that the run writes have anything in them. false: the run
 * goes through as if nothing was asked, or it is over. */
SMG_API smg_status smg_ticket_cancel(smg_ticket ticket, bool *out_cancelled);

/* Bounds on what the device is given at a time, where others use it, too; 0: none but that of the watchdog. From the
 * next run on
 * - no dispatch takes longer than dispatch_seconds: a kernel that would is several dispatches, each of a range of its
 *   workgroups;
 * - no submission takes longer than submission_seconds: a run that would is submitted part by part. smg_model_submit
 *   puts the first one on the queue, each smg_ticket_wait that finds a part over the next one. Called once a frame with
 *   0 seconds, a run takes at most one part of a frame; with more time it goes on by itself, as smg_model_run does.
 *   What others submit meanwhile comes between the parts.
 * Results are the same bits. How long kernels take is measured by the first run of new sizes, which is cut by
 * estimates, and one workgroup is the least there is. Ranges of sizes keep their bounds, but each tuple of sizes has
 * its first run. Runs that are recorded in an application's command buffer are cut into dispatches, too, but are not
 * shared out; those in several parts signal no timelines.
 * The watchdog: systems take a GPU away from a program whose dispatch lasts for seconds. With dispatch_seconds 0, as
 * models are opened, kernels that seem to last more than half a second by estimates are cut, on all but cpus. Sizes of
 * a range where one does have a first run of their own. Infinite: none is cut.
 * INVALID: less than 0 or not a number, or a run is in flight. */
SMG_API smg_status smg_model_set_budget(smg_model *model, double dispatch_seconds, double submission_seconds);

/* Another model on the weights and the pipelines of this one, with sizes, inputs and runs of its own: for several runs
 * in flight at a time, or, with another context, for another thread. It takes memory for values between kernels only.
 * To be called where `model` may be used; from then on each of the two is used as its context allows. It is closed
 * before `model`, and may be shared again. Ranges and budgets are taken over; inputs and lengths that were set ahead
 * are not. A model that compiles makes all of its plans first.
 * Failures are told by ctx. INVALID: a run of the model is in flight. */
SMG_API smg_status smg_model_share(smg_model *model, smg_context *ctx, smg_model **out_model);

/* After the device was lost (every call answers DEVICE then): the model goes on with what its bundle has, on the device
 * `on`, or, where that is NULL, on a new one in the place of the one that the model opened itself. Sizes that were set,
 * inputs and lengths that were set ahead stay. The best class of the bundle for that device is taken again. It works on
 * a device that was not lost, too.
 * Before it: wait for the run in flight, close models that were shared from this one, destroy tensors on a device that
 * the model opened itself. Tensors on a lost device are of no use any more. A device that was given is closed
 * afterwards. After a failure the model answers DEVICE until another call succeeds.
 * INVALID: a run is in flight, models that were shared are open, `on` is of another context or is missing; UNSUPPORTED:
 * the model was not opened as recoverable, or no class for this device; else as opening a bundle. */
SMG_API smg_status smg_model_recover(smg_model *model, smg_device *on);

/* ---- states ----------------------------------------------------------------------------------------- */

/* A model may keep something from run to run (a recurrent layer, keys and values of earlier tokens): an input that is
 * in the next run what an output is in this one. Such a state stays on the device. A run that does not name the input
 * begins with what the last run left, the first one with zeros; a run that names it, as an array or a tensor, begins
 * with that. The output may be asked for as an array of the host, like others.
 * Each model has states of its own: one that is shared begins with zeros. A run that fails or is taken back leaves them
 * as they were. A run in an application's command buffer goes on from what its execution before left, and is over with
 * what the last one left, whether it failed or not. After smg_model_recover they are lost: runs that would read one are
 * INVALID until it is reset or given.
 * INVALID, of a run: the sizes make the state another shape than the run before left. */
SMG_API int smg_model_state_count(const smg_model *model);
/* The names of its input and its output. false: index out of range. */
SMG_API bool smg_model_state(const smg_model *model, int index, const char **out_input, const char **out_output);
/* From now on the state of this input is zeros, of whatever sizes the next run has; NULL: all states. NOT_FOUND: the
 * model has no such state, the sentence lists those it has; INVALID: a run is in flight. */
SMG_API smg_status smg_model_reset_state(smg_model *model, const char *input);

/* ---- what runs take --------------------------------------------------------------------------------- */

/* From now on runs take any value of a symbolic size from low to high (inclusive, in [1, its maximum]), and no others:
 * INVALID with the numbers. The first run places all memory for the largest sizes and makes what any of them needs;
 * later runs of the range allocate nothing, on the host or the device, and compile nothing, whatever their sizes (but
 * for sizes whose kernels the watchdog cuts, smg_model_set_budget).
 * Sizes without a range may change too: each tuple of theirs has such a first run, the last few are remembered. Every
 * size with a range of its own may be set; 0, 0 takes the range away. Results are the same bits as without.
 * NOT_FOUND: the model has no such size, the sentence lists those it has; INVALID: low > high, or outside the size's
 * bounds. A range whose memory the device does not have is DEVICE_MEMORY, one whose largest array it cannot bind
 * NO_FIT, told by the first run. */
SMG_API smg_status smg_model_set_range(smg_model *model, const char *dim, int64_t low, int64_t high);
/* Gives an input ahead of smg_model_run, which then need not name it (weights of an adapter, a fixed
 * mask). It is copied, and kept while sizes stay the same; the device gets it with the first run of those, not with
 * each. */
SMG_API smg_status smg_model_set_input(smg_model *model, const smg_tensor *input);
/* From now on an input of integers or bools is made of lengths of its rows (axis 0): a mask [rows, .., n] is 1 up to
 * the row's length along its last axis and 0 behind it, an input [rows] or [rows, 1, ..] has the lengths themselves.
 * Runs need not name it then; a run that does gives a mask which must be just that: INVALID with the row, the element
 * and the length. Lengths are copied; count 0 takes them away. One recording serves all lengths.
 * INVALID, with the row and the numbers: a length below 0, more than a row has (here, where the size has a maximum;
 * else by the run); not one for each row (by the run). NOT_FOUND: no such input; UNSUPPORTED: an input of floats. */
SMG_API smg_status smg_model_set_lengths(smg_model *model, const char *input, const int64_t *lengths, int count);
/* Seconds of the last run on the device. */
SMG_API double smg_model_seconds(const smg_model *model);

#ifdef __cplusplus
}
#endif
#endif
