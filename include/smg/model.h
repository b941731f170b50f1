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
 * Running and closing, ownership, threads and errors are those of smg/rt.h, which this header includes.
 */
#ifndef SMG_MODEL_PUBLIC_H
#define SMG_MODEL_PUBLIC_H

#include "smg/graph.h"
#include "smg/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum smg_goal {
    SMG_GOAL_TIME = 0,   /* the least estimated time */
    SMG_GOAL_DISPATCHES, /* the fewest kernels */
    SMG_GOAL_MEMORY      /* the fewest bytes of values between kernels at a time; of such plans the fastest */
} smg_goal;

/* All fields may be zero. */
typedef struct smg_model_desc {
    const char *device; /* index, type word ("cpu", "discrete") or part of a name; NULL: the best */
    smg_device *on;     /* open already, of this context; it outlives the model. NULL: `device` is opened */
    smg_goal goal;
    /* Values between kernels (not weights, inputs and outputs) take so many bytes at a time, at most, at the sizes of
     * `dims`: the best plan that keeps to it. NO_FIT with the least that would do where none does. Plans for other
     * sizes keep to it at theirs where one does, else take the least. 0: any. */
    int64_t max_memory;
    /* Operations of a kernel at most, and products (matrix and other contractions) among them; 0: 40 and 6, which keeps
     * the search short. Larger numbers look at longer kernels, as far as 100 and 24. Equal layers behind each other are
     * one kernel however many they are, except where max_fused_ops is given. */
    int max_fused_ops, max_fused_products;
    double min_gain; /* percent of the time that its operations take alone, by price, that a kernel of several saves */
    /* Sizes that prices are computed for and pipelines built for when the model is opened. Any other size runs too; the
     * first run of such sizes may build what is missing, and takes longer. Where every size has a name here, kernels
     * have them as literals: runs of just these sizes are faster on a GPU, of few rows by a tenth. */
    const smg_dim *dims;
    int dim_count;
    const smg_dim *max_dims; /* largest sizes that will be run; smaller ones give the compiler room */
    int max_dim_count;
    const smg_dim_range *ranges; /* as smg_model_set_range does, with pipelines for them when the model is opened */
    int range_count;
    /* In which type f32 values lie in device memory: "f32" (NULL too), "f16" or "bf16". Arrays of a run stay f32 and
     * are converted on the way; an input whose element is too large for the type is INVALID. Arithmetic is f32 in any
     * case, and values that are known not to fit stay f32 in memory too (smg explain says which). UNSUPPORTED by
     * devices without 16-bit storage. */
    const char *precision;
    int64_t memory_bytes; /* as in smg_bundle_desc */
    /* With precision f16 or bf16: inputs of a run that stands for others. The graph is computed for them on the host
     * when the model is opened for the first time (as long as a check takes), and values that come nearer to the end of
     * the type than by half stay f32. Inputs may be left out as in smg_model_run. The arrays are read by the open
     * only. */
    const smg_tensor *samples;
    int sample_count;
    /* With precision f16 or bf16: where an output of a run has an infinity or a NaN, the graph is computed on the host
     * (as long as a check takes); if a value is too large for the type there, the run is UNSUPPORTED and the sentence
     * names the first. Outputs are written all the same. */
    bool name_overflow;
    /* Rows of tokens that a mask of the run leaves out behind the last one that it keeps, or before the first
     * (padding), are not read by the caller: their values in the outputs may be any. Attention then computes neither
     * their keys nor their rows: a batch of different lengths takes the steps of its rows by themselves. Outputs of all
     * other rows are what they are. */
    bool padding_unread;
    /* What `smg tune` measured on the device decides between schedules in the place of prices. A file of it; "":
     * nothing; NULL: what the cache folder has of the device. A file of another device, driver or version of smg is
     * left alone with a log line. NOT_FOUND, FORMAT: a file that is named is not there, or broken. */
    const char *tuning;
    int rank;           /* the schedule of this rank by price for every kernel (0: the best); for tuning */
    bool no_matrices;   /* plan as if the device had no products of matrices; for measuring */
    bool unfused;       /* every operation its own kernel: the yardstick of `smg bench` */
    bool no_calibrate;  /* neither measure the device nor try its features (two seconds, once): rates are assumed */
    bool nominal_rates; /* as they were measured or assumed, whatever smg_tune_desc.fit_rates made of them */
    bool no_plan_cache; /* plan and compile anew whatever earlier opens left in the cache folder; keep nothing */
} smg_model_desc;

/* NOT_FOUND: no such file or device; FORMAT: a broken file; UNSUPPORTED: a model or activation smg does
 * not know; NO_FIT: no kernel fits the device. desc may be NULL. */
SMG_API smg_status smg_model_open(smg_context *ctx, const char *path, const smg_model_desc *desc,
                                  smg_model **out_model);
/* The graph is borrowed: it and its constants outlive the model. */
SMG_API smg_status smg_model_open_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *desc,
                                        smg_model **out_model);

/* ---- hints ------------------------------------------------------------------------------------------ */

/* What has changed around a model since it was opened. All fields may be zero: nothing has. */
typedef struct smg_hint {
    /* In [0, 1]: memory is short. Values between kernels take less at a time, from the plan that would be taken (0) to
     * that which needs the least (1). */
    double memory_pressure;
    /* In [0, 1]: others keep the device's arithmetic busy, up to all of it. Kernels are chosen for what is left. */
    double compute_pressure;
    const smg_dim *usual; /* sizes that most runs have, in the place of smg_model_desc.dims; copied */
    int usual_count;
} smg_hint;

/* The model is planned again by the next call that runs it, which waits for that: kernels are built, weights uploaded
 * once more, results agree within the roundings of either plan. Plans that were made before come from the cache folder.
 * Ranges, budgets, inputs and lengths that were set ahead stay. Only the last hint counts; NULL: as the model was
 * opened. Where no such plan can be made the model stays as it is, with a log line.
 * INVALID: no such size, or a pressure outside of [0, 1]; UNSUPPORTED: the model came from a bundle, or was shared. */
SMG_API smg_status smg_model_hint(smg_model *model, const smg_hint *hint);

#ifdef __cplusplus
}
#endif
#endif
