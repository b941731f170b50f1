/* model: known architectures as graphs.
 *
 * Takes:    a source: typed access to a model's configuration and its tensors by name.
 * Gives:    a finished graph of primitive operations with symbolic batch and sequence.
 * Promises: no operation of its own; every tensor's shape is checked against the configuration and a
 *           wrong or missing one is named with what was expected and found; a configuration that asks
 *           for what is not here is a status that names the key and its value.
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
    /* Keys of config.json; "a.b" is the member b of the object a, "a.0" the first item of the array a.
     * A missing key (or null) gives the fallback; a wrong type is a failure, recorded in the context. */
    smg_status (*get_int)(void *user, const char *key, int64_t fallback, int64_t *out_value);
    smg_status (*get_float)(void *user, const char *key, double fallback, double *out_value);
    smg_status (*get_bool)(void *user, const char *key, bool fallback, bool *out_value);
    smg_status (*get_string)(void *user, const char *key, const char *fallback, const char **out_value);
    /* false when there is no such tensor; records nothing. *out_type is f32, f16 or bf16. Data may be NULL:
     * the graph then has shapes only. */
    bool (*tensor)(void *user, const char *name, smg_type *out_type, int *out_rank, int64_t out_dims[SMG_MAX_RANK],
                   const void **out_data);
    /* What comes out beside, or instead of, "last_hidden_state": "embedding" f32[batch, hidden]. Text
     * encoders alone have it. */
    smg_model_pooling pooling;
    bool normalize;      /* the embedding divided by its L2 norm */
    bool embedding_only; /* with pooling: no output last_hidden_state */
} smg_model_source;

/* The graph of config.json's "model_type"; docs of the families stand in model_<family>.c. Inputs, all
 * i32 unless said: text encoders input_ids, attention_mask (1 valid, 0 padding) and, with more than one
 * type, token_type_ids, each [batch, sequence]; vit pixel_values f32[batch, channels, height, width];
 * gpt2 and llama input_ids; t5 input_ids, attention_mask and decoder_input_ids
 * [batch, decoder_sequence]. Output: last_hidden_state f32[batch, tokens, hidden], or
 * logits f32[batch, tokens, vocabulary] where the architecture has a language head. Weights f32, f16 or bf16
 * (cast to f32), named as in Hugging Face files, with or without the prefix of the base model.
 * UNSUPPORTED: an unknown model_type (what is known is listed), activation or variant; NOT_FOUND: a
 * missing tensor; FORMAT: numbers that contradict each other or a tensor's shape. */
smg_status smg_model_build(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph);
/* What an input of these graphs holds everywhere when a caller gives none, as in Hugging Face: 1 for an
 * attention mask (nothing is padding), 0 for token types. false: it must be given. */
bool smg_model_input_default(const char *name, int64_t *out_value);

#endif
