/* model: known architectures as graphs.
 *
 * Takes:    a source: typed access to a model's configuration and its tensors by name.
 * Gives:    a finished graph of primitive operations with symbolic batch and sequence.
 * Promises: no operation of its own; every tensor's shape is checked against the configuration and a
 *           wrong or missing one is named with what was expected and found.
 * Does not: read files, know formats, convert weights. Tensor data is borrowed.
 */
#ifndef SMG_MODEL_H
#define SMG_MODEL_H

#include "base/base.h"
#include "graph/graph.h"
#include "op/op.h"

typedef enum smg_model_pooling {
    SMG_MODEL_POOLING_NONE = 0,
    SMG_MODEL_POOLING_MEAN, /* over the tokens whose attention mask is 1 */
    SMG_MODEL_POOLING_CLS   /* the first token */
} smg_model_pooling;

typedef struct smg_model_source {
    void *user;
    /* A missing key gives the fallback; a wrong type is a failure (recorded in the context). */
    smg_status (*get_int)(void *user, const char *key, int64_t fallback, int64_t *out_value);
    smg_status (*get_float)(void *user, const char *key, double fallback, double *out_value);
    smg_status (*get_string)(void *user, const char *key, const char *fallback,
                             const char **out_value);
    /* false when there is no such tensor; records nothing. *out_type is f32 or f16. Data may be NULL:
     * the graph then has shapes only. */
    bool (*tensor)(void *user, const char *name, smg_type *out_type, int *out_rank,
                   int64_t out_dims[SMG_MAX_RANK], const void **out_data);
    /* What comes out beside, or instead of, "last_hidden_state": "embedding" f32[batch, hidden]. */
    smg_model_pooling pooling;
    bool normalize;      /* the embedding divided by its L2 norm */
    bool embedding_only; /* with pooling: no output last_hidden_state */
} smg_model_source;

/* BERT encoders (MiniLM, BGE, E5, GTE are such): inputs input_ids, attention_mask, token_type_ids, all
 * i32[batch, sequence]; output last_hidden_state f32[batch, sequence, hidden]. Weights f32 or f16 (cast
 * to f32), named as in Hugging Face files, with or without "bert." in front. */
smg_status smg_model_build_bert(smg_context *ctx, const smg_model_source *source,
                                smg_graph **out_graph);

#endif
