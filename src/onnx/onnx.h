/* onnx: ONNX files as graphs.
 *
 * Takes:    a path, or bytes with a label: a ModelProto of opset 11 to 23, external data beside it.
 * Gives:    a finished graph of primitive operations whose constants are borrowed from the mapped
 *           files, and the list of everything in the model that smg does not support.
 * Promises: composite operators are decomposed; shape arithmetic stays symbolic, so that one graph
 *           serves every size; no byte outside the file or the model's folder is read; a bad file is
 *           FORMAT (broken), UNSUPPORTED (sound, but not for smg) or NOT_FOUND with one sentence that
 *           names node, operator, opset and numbers. On failure *out_ is NULL.
 * Does not: run or compile anything, match sequences of operators, trust shapes that the file declares
 *           for inner values.
 */
#ifndef SMG_ONNX_H
#define SMG_ONNX_H

#include "base/base.h"
#include "graph/graph.h"

typedef struct smg_onnx smg_onnx;

/* One node that cannot be converted. Text lives as long as the model. */
typedef struct smg_onnx_missing {
    const char *node; /* its name, or the name of its first output */
    const char *op;
    const char *domain; /* "" is ONNX's own */
    int64_t opset;
    const char *reason; /* one sentence */
} smg_onnx_missing;

/* Reads the file and checks its structure; converts nothing yet. External data is sought in the folder
 * of `path` only. */
smg_status smg_onnx_open(smg_context *ctx, const char *path, smg_onnx **out_model);
/* Bytes must outlive the model; `folder` NULL: external data is refused. */
smg_status smg_onnx_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size, const char *folder,
                               smg_onnx **out_model);
/* NULL is fine; unmaps: constants of the graph die. */
void smg_onnx_close(smg_onnx *model);

/* Every operator in the main graph, in branches and in called functions that smg does not know, or
 * not in this opset. Needs no conversion. */
int smg_onnx_missing_count(const smg_onnx *model);
const smg_onnx_missing *smg_onnx_missing_at(const smg_onnx *model, int index);

/* An input or output as the file declares it. */
typedef struct smg_onnx_declared {
    const char *name;
    bool output;
    const char *type; /* "float32[batch, 3]"; "?" where the file says nothing */
} smg_onnx_declared;
/* Inputs, then outputs; weights that the file lists among the inputs are left out. */
int smg_onnx_declared_count(const smg_onnx *model);
const smg_onnx_declared *smg_onnx_declared_at(const smg_onnx *model, int index);

/* Converts. UNSUPPORTED with the first missing operator when there is one. The graph is finished,
 * belongs to the caller (smg_graph_destroy) and must die before the model. */
smg_status smg_onnx_make_graph(smg_onnx *model, smg_graph **out_graph);

/* Says that a constant's bytes were uploaded: their pages may go. */
void smg_onnx_drop(const smg_onnx *model, const void *data, size_t bytes);

#endif
