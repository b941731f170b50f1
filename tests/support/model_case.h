/* Stored cases of models: folders of .npy files with what another framework answers, listed in hf_models.h and
 * onnx_models.h. A model is opened once and serves all its cases, whatever their sizes. */
#ifndef TESTS_MODEL_CASE_H
#define TESTS_MODEL_CASE_H

#include "compile/compile.h"

#define MODEL_CASE_INPUTS 8
#define MODEL_CASES 6
#define MODEL_CASE_TOLERANCE 1e-4 /* of the largest stored value */

/* ---- one case ------------------------------------------------------------------------------------ */

typedef struct model_case {
    smg_tensor inputs[MODEL_CASE_INPUTS]; /* in the order of the graph; those without a file are 0 */
    int input_count;
    int64_t symbols[8];
    const char *output; /* the name of the one stored output */
    smg_npy stored;     /* f32; smg_npy_close */
} model_case;

/* Reads <folder>/<name>/in.*.npy for every input of g and out.<output>.npy. */
smg_status model_case_load(smg_context *ctx, const smg_graph *g, const char *folder, const char *name,
                           const char *output, smg_arena *arena, model_case *out_case);
/* The largest absolute difference divided by the largest stored value; infinity where the counts of
 * elements differ or a value is no number. */
double model_case_tensor_error(const model_case *c, const smg_tensor *got);
double model_case_array_error(const model_case *c, const smg_array *got);

/* ---- the models with stored cases ---------------------------------------------------------------- */

typedef struct model_row {
    const char *folder, *output;
    const char *cases[MODEL_CASES + 1]; /* NULL behind the last */
} model_row;

typedef enum model_rows {
    MODEL_HF,  /* directories of tests/models */
    MODEL_ONNX /* files of several exporters, unpacked by the build */
} model_rows;

typedef struct model_fixture {
    smg_context *ctx;
    smg_arena *arena;
    const model_row *row;
    const char *folder; /* where the cases are */
    smg_source source;
    void *user;
    double tolerance; /* of the largest stored value; 0: MODEL_CASE_TOLERANCE */
    bool first;       /* only the first case of each row */
} model_fixture;

/* All below fail the running test on any failure. Opens one row after the other, with a context of its own. */
void model_each(model_rows rows, void (*body)(model_fixture *f), void *user);
void model_expect_ok(const model_fixture *f, smg_status status);
/* Every stored case of the row, its inputs by the names that `g` (a form of the source's graph) gives them: `answer`
 * computes the error, which must be within the tolerance; `what` is for the message. */
void model_each_case(model_fixture *f, const smg_graph *g, const char *what,
                     double (*answer)(model_fixture *f, const model_case *c, smg_arena *arena));
/* The error of the reference evaluation of `g`. */
double model_reference_error(const model_fixture *f, const smg_graph *g, const model_case *c, smg_arena *arena);
/* The whole of a test's main: every row on a device, in f32 or in f16 and bf16. */
int model_device_main(model_rows rows, bool narrow);

#endif
