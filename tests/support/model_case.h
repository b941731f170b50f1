/* Stored cases of model directories: folders of .npy files with what another framework answers. */
#ifndef TESTS_MODEL_CASE_H
#define TESTS_MODEL_CASE_H

#include "compile/compile.h"

#define MODEL_CASE_INPUTS 8

typedef struct model_case {
    smg_tensor
        inputs[MODEL_CASE_INPUTS]; /* in the order of the graph; those without a file are 0 */
    int input_count;
    int64_t symbols[8];
    const char *output; /* the name of the one stored output */
    smg_npy stored;     /* f32; smg_npy_close */
} model_case;

/* Reads <folder>/<name>/in.*.npy for every input of g and out.<output>.npy. */
smg_status model_case_load(smg_context *ctx, const smg_graph *g, const char *folder,
                           const char *name, const char *output, smg_arena *arena,
                           model_case *out_case);
/* The largest absolute difference divided by the largest stored value; infinity where the counts of
 * elements differ or a value is no number. */
double model_case_error(const model_case *c, int64_t count,
                        double (*get)(void *user, int64_t index), void *user);
double model_case_tensor_error(const model_case *c, const smg_tensor *got);
double model_case_array_error(const model_case *c, const smg_array *got);

#endif
