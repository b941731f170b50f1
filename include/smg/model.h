/* smg/model.h: open a model, run it on named arrays, close it.
 *
 *     smg_context *ctx;  smg_model *model;
 *     smg_context_create(NULL, &ctx);
 *     smg_model_open(ctx, "all-MiniLM-L6-v2", NULL, &model);
 *     smg_tensor in[] = {{"input_ids", "i32", 2, {1, 5}, ids},
 *                        {"attention_mask", "i32", 2, {1, 5}, ones},
 *                        {"token_type_ids", "i32", 2, {1, 5}, zeros}};
 *     smg_tensor out = {.name = "embedding"};
 *     if (smg_model_run(model, in, 3, &out, 1) != SMG_OK) puts(smg_context_error(ctx));
 *     float *embedding = out.data;                       out.dims is {1, 384}
 *
 * A model is a Hugging Face directory, an ONNX file, a graph text file (.smg), or a graph built with
 * smg/graph.h. Open compiles it for the device: fused kernels, weights uploaded. Symbolic sizes (batch,
 * sequence) follow the arrays of each run; one compilation serves all of them, and a run of sizes seen
 * lately allocates nothing. Sizes that are new at every run (one more token) are announced by
 * smg_model_set_range.
 *
 * Ownership: the model belongs to the caller (smg_model_close) and must be closed before its context.
 * Input data is read during the call only. Output data belongs to the model until the next run or close,
 * unless the caller gave memory. Threads: as the context, one at a time.
 * Errors: every function returns a status; smg_context_error has the sentence. After a failed run the
 * model is as good as before, and nothing has to be cleared. A NULL where something is needed is
 * INVALID (a NULL model has no inputs and no outputs).
 */
#ifndef SMG_MODEL_PUBLIC_H
#define SMG_MODEL_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smg/context.h"
#include "smg/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SMG_TENSOR_RANK 8

typedef struct smg_model smg_model;

/* A named array, row-major, dense. */
typedef struct smg_tensor {
    const char *name;
    const char *type; /* f32 f16 bf16 i32 i64 bool (one byte); NULL: as the model has it. An input of another
                       * integer type is converted and range-checked */
    int rank;
    int64_t dims[SMG_TENSOR_RANK];
    void *data;
    size_t bytes; /* of `data`: an output's own memory; an input's may be 0 (not told), else it must be enough */
} smg_tensor;

/* A symbolic size and a value. */
typedef struct smg_dim {
    const char *name;
    int64_t value;
} smg_dim;

/* A symbolic size and the values that runs will give it, both ends among them. */
typedef struct smg_dim_range {
    const char *name;
    int64_t low, high;
} smg_dim_range;

typedef enum smg_goal {
    SMG_GOAL_TIME = 0,  /* the least estimated time */
    SMG_GOAL_DISPATCHES /* the fewest kernels */
} smg_goal;

/* All fields may be zero. */
typedef struct smg_model_desc {
    const char *device; /* index, type word ("cpu", "discrete") or part of a name; NULL: the best */
    smg_goal goal;
    /* Sizes that prices are computed for and pipelines built for when the model is opened. Any other size runs too; the
     * first run of such sizes may build what is missing, and takes longer. */
    const smg_dim *dims;
    int dim_count;
    const smg_dim *max_dims; /* largest sizes that will be run; smaller ones give the compiler room */
    int max_dim_count;
    const smg_dim_range *ranges; /* as smg_model_set_range does, with pipelines for them when the model is opened */
    int range_count;
    /* In which type f32 values lie in device memory: "f32" (NULL too), "f16" or "bf16". Arrays of a run stay f32 and are
     * converted on the way; an input whose element is too large for the type is INVALID. Arithmetic is f32 in any case,
     * and values that are known not to fit stay f32 in memory too (smg explain says which). UNSUPPORTED by devices
     * without 16-bit storage. */
    const char *precision;
    /* With precision f16 or bf16: inputs of a run that stands for others. The graph is computed for them on the host when
     * the model is opened for the first time (as long as a check takes), and values that come nearer to the end of the
     * type than by half stay f32. Inputs may be left out as in smg_model_run. The arrays are read by the open only. */
    const smg_tensor *samples;
    int sample_count;
    /* With precision f16 or bf16: where an output of a run has an infinity or a NaN, the graph is computed on the host (as
     * long as a check takes); if a value is too large for the type there, the run is UNSUPPORTED and the sentence names
     * the first. Outputs are written all the same. */
    bool name_overflow;
    int rank;           /* the schedule of this rank by price for every kernel (0: the best); for tuning */
    bool no_matrices;   /* plan as if the device had no products of matrices; for measuring */
    bool unfused;       /* every operation its own kernel: the yardstick of `smg bench` */
    bool no_calibrate;  /* neither measure the device nor try its features (two seconds, once): rates are assumed */
    bool no_plan_cache; /* plan and compile anew whatever earlier opens left in the cache folder; keep nothing */
} smg_model_desc;

/* NOT_FOUND: no such file or device; FORMAT: a broken file; UNSUPPORTED: a model or activation smg does
 * not know; NO_FIT: no kernel fits the device. desc may be NULL. */
SMG_API smg_status smg_model_open(smg_context *ctx, const char *path, const smg_model_desc *desc,
                                  smg_model **out_model);
/* The graph is borrowed: it and its constants outlive the model. */
SMG_API smg_status smg_model_open_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *desc,
                                        smg_model **out_model);
SMG_API void smg_model_close(smg_model *model); /* NULL is fine */

SMG_API int smg_model_input_count(const smg_model *model);
SMG_API int smg_model_output_count(const smg_model *model);
/* Name, type, rank; a dim that is symbolic is -1. false: index out of range. */
SMG_API bool smg_model_input(const smg_model *model, int index, smg_tensor *out_tensor);
SMG_API bool smg_model_output(const smg_model *model, int index, smg_tensor *out_tensor);

/* Runs once. Every input that the model uses must be among `inputs` (a directory's attention_mask and
 * token_type_ids may be left out: nothing is padding, all types are 0), each named, with dims that agree
 * on the symbolic sizes. `outputs` may name any of the model's: rank, dims and type are filled in, and
 * data as above (the caller's memory when data is set: `bytes` must be enough). */
SMG_API smg_status smg_model_run(smg_model *model, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                                 int output_count);
/* From now on runs take any value of a symbolic size from low to high (inclusive, in [1, its maximum]), and no others:
 * INVALID with the numbers. The first run places all memory for the largest sizes and makes what any of them needs;
 * later runs of the range allocate nothing, on the host or the device, and compile nothing, whatever their sizes.
 * Sizes without a range may change too: each tuple of theirs has such a first run, the last few are remembered. Every
 * size with a range of its own may be set; 0, 0 takes the range away. Results are the same bits as without.
 * NOT_FOUND: the model has no such size, the sentence lists those it has; INVALID: low > high, or outside the size's
 * bounds. A range whose memory the device does not have is DEVICE_MEMORY, one whose largest array it cannot bind
 * NO_FIT, told by the first run. */
SMG_API smg_status smg_model_set_range(smg_model *model, const char *dim, int64_t low, int64_t high);
/* Gives an input ahead of smg_model_run, which then need not name it (weights of an adapter, a fixed
 * mask). It is copied, and kept while sizes stay the same. */
SMG_API smg_status smg_model_set_input(smg_model *model, const smg_tensor *input);
/* From now on an input of integers or bools is made of lengths of its rows (axis 0): a mask [rows, .., n] is 1 up to the
 * row's length along its last axis and 0 behind it, an input [rows] or [rows, 1, ..] has the lengths themselves. Runs need
 * not name it then; a run that does gives a mask which must be just that: INVALID with the row, the element and the
 * length. Lengths are copied; count 0 takes them away. One recording serves all lengths.
 * INVALID, with the row and the numbers: a length below 0, more than a row has (here, where the size has a maximum;
 * else by the run); not one for each row (by the run). NOT_FOUND: no such input; UNSUPPORTED: an input of floats. */
SMG_API smg_status smg_model_set_lengths(smg_model *model, const char *input, const int64_t *lengths, int count);
/* Seconds of the last run on the device. */
SMG_API double smg_model_seconds(const smg_model *model);

#ifdef __cplusplus
}
#endif
#endif
