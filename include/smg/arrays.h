/* smg/arrays.h: what a model takes and gives, and arrays for its inputs: from files, or made up.
 *
 *     smg_source *source;                                       smg/compile.h; of a bundle: smg/bundle.h
 *     smg_source_load(ctx, "all-MiniLM-L6-v2", NULL, &source);
 *     smg_arrays *arrays;
 *     smg_arrays_create(ctx, smg_source_get_facts(source)->signature, &arrays);
 *     smg_arrays_load(arrays, "input_ids", "ids.npy");
 *     smg_arrays_settle(arrays, NULL);                          sizes follow the file
 *     int count;
 *     smg_tensor *inputs = smg_arrays_inputs(arrays, &count);
 *     for (int i = 0; i < count; i++)
 *         if (inputs[i].data == NULL) smg_arrays_fill(arrays, inputs[i].name, SMG_FILL_OWN, 0);
 *     smg_model_run(model, inputs, count, ...);
 *
 * What is made up depends only on the seed and the input's name. Ownership: arrays and all their memory belong to the
 * caller (smg_arrays_destroy), before the context and what the signature is of go. Threads, errors: as smg/rt.h; after
 * a failure the arrays are what they were. Not in libsmg-rt.
 */
#ifndef SMG_ARRAYS_H
#define SMG_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "smg/context.h"
#include "smg/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a model takes and gives ------------------------------------------------------------------- */

/* An input or output. */
typedef struct smg_port_info {
    const char *name, *type; /* type: f32 f16 bf16 i32 i64 bool */
    int rank;
    const char *dims[SMG_TENSOR_RANK]; /* "128", "batch", "2*sequence" */
    int64_t fixed[SMG_TENSOR_RANK];    /* the same as numbers; -1: it has a symbol */
    bool optional;                     /* of an input: it has a value of its own where it is not given */
    const char *state;                 /* of an input that is a state: the output of the run before; else NULL */
} smg_port_info;

/* A symbolic size. */
typedef struct smg_size_info {
    const char *name;
    int64_t max;   /* 0: any */
    int64_t usual; /* what it is for who does not say */
} smg_size_info;

/* Given by smg (smg_source_get_facts, smg_bundle_file_facts), and only such a one is taken by smg_arrays_create; lives
 * as long as what it is of. */
typedef struct smg_signature {
    const smg_port_info *inputs, *outputs;
    const smg_size_info *sizes;
    int input_count, output_count, size_count;
} smg_signature;

/* ---- arrays ------------------------------------------------------------------------------------------ */

typedef struct smg_arrays smg_arrays;

SMG_API smg_status smg_arrays_create(smg_context *ctx, const smg_signature *signature, smg_arrays **out_arrays);
SMG_API void smg_arrays_destroy(smg_arrays *arrays); /* NULL is fine */

/* Its index. NOT_FOUND lists the inputs that there are. */
SMG_API smg_status smg_arrays_find(smg_arrays *arrays, const char *input, int *out_index);
/* The array of a .npy file, converted to the input's type where that loses nothing; dims as in the file. Before sizes
 * are settled. INVALID: floats for integers or the other way round, an element that the type does not hold; FORMAT. */
SMG_API smg_status smg_arrays_load(smg_arrays *arrays, const char *input, const char *path);
/* An array of the caller's, which is borrowed. Before sizes are settled. INVALID: its type, rank or memory. */
SMG_API smg_status smg_arrays_give(smg_arrays *arrays, const smg_tensor *input);

/* All fields may be zero. */
typedef struct smg_sizes_desc {
    const smg_dim *dims; /* in the place of usual ones; arrays that are there go before them */
    int dim_count;
    const smg_dim *max_dims; /* what neither dims nor arrays say stays below these */
    int max_dim_count;
} smg_sizes_desc;
/* A value for every symbolic size. desc may be NULL. NOT_FOUND: no such size; INVALID: not in [1, its maximum], or
 * arrays disagree. */
SMG_API smg_status smg_arrays_settle(smg_arrays *arrays, const smg_sizes_desc *desc);
/* Those values, in the order of the signature; *out_count 0: they are not settled, or there is none. */
SMG_API const smg_dim *smg_arrays_sizes(const smg_arrays *arrays, int *out_count);

typedef enum smg_fill {
    SMG_FILL_RANDOM, /* floats in [-1, 1), indices of tables within them, other integers and bools 0 or 1 */
    SMG_FILL_ZEROS,
    SMG_FILL_ONES,
    SMG_FILL_OWN /* the value of its own that the input has, else random */
} smg_fill;
/* An array of the settled sizes, in the place of one that there was. INVALID: sizes are not settled, or it is too
 * large. */
SMG_API smg_status smg_arrays_fill(smg_arrays *arrays, const char *input, smg_fill how, uint64_t seed);
/* The same of integers or bools by lengths of rows, as smg_model_set_lengths has them. INVALID, with the row and the
 * numbers: a length that no row has, or not one for each row; UNSUPPORTED: an input of floats. */
SMG_API smg_status smg_arrays_fill_lengths(smg_arrays *arrays, const char *input, const int64_t *lengths, int count);

/* For a run: all inputs, of which those without data were neither given nor filled; and all outputs by name, for runs
 * to fill in. They live as long as the arrays do. What a model's run filled in is the model's memory: set data to NULL
 * before another model runs with them and the first is closed. */
SMG_API smg_tensor *smg_arrays_inputs(smg_arrays *arrays, int *out_count);
SMG_API smg_tensor *smg_arrays_outputs(smg_arrays *arrays, int *out_count);

/* ---- elements ----------------------------------------------------------------------------------------- */

/* How many a tensor has. */
SMG_API int64_t smg_tensor_elements(const smg_tensor *tensor);
/* Element `index` of an array of the host as a number; a tensor without a type is f32. Nothing is checked. */
SMG_API double smg_tensor_get(const smg_tensor *tensor, int64_t index);
/* A .npy file, written whole or not at all; bf16, which that format lacks, as f32. */
SMG_API smg_status smg_tensor_save(smg_context *ctx, const char *path, const smg_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
