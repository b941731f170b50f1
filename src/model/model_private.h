/* Parts that models are put together from. All are sticky through the graph's builders. Activations are
 * [batch, tokens, width]; what stands for the tokens (a symbol, or a number) is text that callers give. */
#ifndef SMG_MODEL_PRIVATE_H
#define SMG_MODEL_PRIVATE_H

#include "model/model.h"

#define SMG_MODEL_LOWEST (-3.4028234663852886e38) /* what masks put in place of a score */

typedef struct model_builder {
    smg_graph *g;
    const smg_model_source *source;
    const char *prefix; /* in front of every tensor's name */
    double eps;         /* of norms */
    const char *activation;
    smg_map *weights; /* full name of a tensor -> id of its constant: shared ones are one */
    bool tied;        /* the language head may be the table of words */
    int wrong_count;  /* tensors that are missing or not as the configuration has them; building goes on */
    smg_status wrong; /* of the first of them, and what is said about all */
    const char *wrong_text;
} model_builder;

/* ---- families: model_<family>.c ------------------------------------------------------------------ */

smg_status smg_model_build_albert(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_bert(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_distilbert(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_gpt2(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_llama(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_mistral(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph);
smg_status smg_model_build_qwen2(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph);
smg_status smg_model_build_qwen3(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph);
smg_status smg_model_build_roberta(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_t5(smg_context *ctx, const smg_model_source *source, smg_graph **out);
smg_status smg_model_build_vit(smg_context *ctx, const smg_model_source *source, smg_graph **out);

/* ---- configuration: model_config.c --------------------------------------------------------------- */

typedef struct model_int {
    const char *key;
    int64_t fallback, most; /* in [1, most] */
    int64_t *out;
} model_int;
/* Sizes that no model has; they keep products of a few of them far from overflow. */
enum {
    MODEL_MOST_WIDTH = 1 << 20,
    MODEL_MOST_LAYERS = 1024,
    MODEL_MOST_HEADS = 1 << 16,
    MODEL_MOST_ROWS = 1 << 28,
    MODEL_MOST_TOKENS = 1 << 15 /* of a row, where no table of positions bounds it */
};

smg_status smg_model_read_ints(smg_context *ctx, const smg_model_source *source, const model_int *rows, size_t count);
/* FORMAT unless `part` divides `whole`. */
smg_status smg_model_check_multiple(smg_context *ctx, const char *whole_key, int64_t whole, const char *part_key,
                                    int64_t part);
smg_status smg_model_read_eps(smg_context *ctx, const smg_model_source *source, const char *key, double fallback,
                              double *out_eps);
smg_status smg_model_read_activation(smg_context *ctx, const smg_model_source *source, const char *key,
                                     const char *fallback, const char **out_name);
/* UNSUPPORTED when the key is true (`when`) or false (!`when`); `fallback` is what its absence means. */
smg_status smg_model_refuse_bool(smg_context *ctx, const smg_model_source *source, const char *key, bool fallback,
                                 bool when);
/* Does the first entry of "architectures" contain `word`? An absent one answers `fallback`. */
smg_status smg_model_architecture(const smg_model_source *source, const char *word, bool fallback, bool *out_yes);
/* "tie_word_embeddings" */
smg_status smg_model_read_tied(model_builder *b, bool fallback);
/* Makes the graph with build(user) between creation and finish. */
smg_status smg_model_finish(model_builder *b, smg_context *ctx, const char *name, void (*build)(void *user), void *user,
                            smg_graph **out_graph);

/* ---- names, weights, arithmetic, linear: model_parts.c --------------------------------------------- */

/* Records `code` as the builder's failure. */
smg_value smg_model_fail(model_builder *b, smg_status code);
const char *smg_model_text(model_builder *b, const char *format, ...) SMG_PRINTF(2, 3);
/* Gives the value a name and returns it. */
smg_value smg_model_named(model_builder *b, smg_value value, const char *name);
/* "batch, <tokens>, a, b": zeros end the list. */
const char *smg_model_dims(model_builder *b, const char *tokens, int64_t third, int64_t fourth);

/* Is there a tensor of that full name? */
bool smg_model_has_tensor(const model_builder *b, const char *full_name);
/* Sets the prefix to `base` when base + probe is a tensor, else to "". */
void smg_model_find_prefix(model_builder *b, const char *base, const char *probe);
/* The tensor `prefix + name`, f32, of exactly these dims. One that is not there is told at the end, with all others. */
smg_value smg_model_tensor(model_builder *b, const char *name, int rank, const int64_t *dims);
/* Fails when tensors were wrong, with all of them in one sentence. */
void smg_model_tell_wrong(model_builder *b);
/* Of rank 1 (columns 0) or 2. */
smg_value smg_model_weight(model_builder *b, const char *name, int64_t rows, int64_t columns);
smg_value smg_model_map1(model_builder *b, const char *op, smg_value x);
smg_value smg_model_map2(model_builder *b, const char *op, smg_value x, smg_value y);
smg_value smg_model_number(model_builder *b, double value);
smg_value smg_model_integer(model_builder *b, int64_t value);

typedef struct model_linear {
    const char *scope; /* tensors <scope>.weight and <scope>.bias */
    int64_t in, out;
    bool no_bias;
    bool in_out;          /* the weight is [in, out], as GPT-2 keeps it; else [out, in] */
    int64_t whole, begin; /* out is columns [begin, begin + out) of `whole`; whole 0: all of them */
} model_linear;
/* x @ weight^T + bias over the last axis of x[batch, tokens, in]. */
smg_value smg_model_linear(model_builder *b, smg_value x, const model_linear *linear, const char *name);
/* Rows of embedding table `name` [rows, width] at ids. */
smg_value smg_model_lookup(model_builder *b, const char *name, int64_t rows, int64_t width, smg_value ids);
/* Scores of all words, as output logits: x[batch, tokens, width] times lm_head.weight where the file has
 * it, else times `words` [vocabulary, width] where the configuration ties the two. */
void smg_model_logits(model_builder *b, smg_value x, smg_value words, int64_t vocabulary, int64_t width);

/* ---- norms and activations: model_parts_norm.c ------------------------------------------------------- */

smg_value smg_model_layer_norm(model_builder *b, smg_value x, const char *scope, int64_t width, const char *name);
/* x / sqrt(mean(x^2) + eps) * <scope>.weight */
smg_value smg_model_rms_norm(model_builder *b, smg_value x, const char *scope, int64_t width, const char *name);
bool smg_model_activation_known(const char *name);
const char *smg_model_activation_names(void);
/* b->activation of x */
smg_value smg_model_activation(model_builder *b, smg_value x, const char *name);
/* outer(activation(inner(x))) */
smg_value smg_model_mlp(model_builder *b, smg_value x, const model_linear *inner, const model_linear *outer,
                        const char *name);
/* outer(activation(gate(x)) * inner(x)) */
smg_value smg_model_gated_mlp(model_builder *b, smg_value x, const model_linear *gate, const model_linear *inner,
                              const model_linear *outer, const char *name);

/* ---- attention: model_parts_attention.c --------------------------------------------------------------- */

typedef struct model_attention {
    int64_t heads, kv_heads, dim; /* kv_heads divides heads; each serves a run of heads / kv_heads */
    const char *queries, *keys;   /* the tokens of both sides */
    double scale;                 /* of the scores; 1: none */
    smg_value bias;               /* added to scores: [heads, queries, keys]; {0}: none */
    smg_value mask_term;          /* added to scores: [batch, 1, 1, keys]; {0}: none */
    bool causal;                  /* query i sees keys 0 to i */
    const char *name;
} model_attention;
/* [batch, tokens, heads, dim] of x[batch, tokens, heads * dim] */
smg_value smg_model_heads(model_builder *b, smg_value x, const char *tokens, int64_t heads, int64_t dim,
                          const char *name);
/* q[batch, queries, heads, dim], k and v[batch, keys, kv_heads, dim] -> [batch, queries, heads * dim] */
smg_value smg_model_attention(model_builder *b, const model_attention *a, smg_value q, smg_value k, smg_value v);
/* f32[batch, 1, 1, sequence] from mask f32[batch, sequence]: 0 where 1, the lowest number where 0 */
smg_value smg_model_mask_term(model_builder *b, smg_value mask);

/* ---- rotary positions: model_parts_rotary.c -------------------------------------------------------------- */

typedef struct model_rotary {
    int64_t dim, positions; /* of a head, even; rows of the tables */
    double theta;           /* base of the frequencies */
    const char *type;       /* default, linear or llama3 */
    double factor, low_factor, high_factor;
    int64_t old_positions; /* llama3: before scaling */
    smg_value cos;         /* [sequence, 1, 1, dim / 2] */
    smg_value sin;         /* [sequence, 1, 2, dim / 2], negative for the first half */
} model_rotary;
/* Reads all but dim and positions, which it checks. */
smg_status smg_model_read_rotary(smg_context *ctx, const smg_model_source *source, model_rotary *rotary);
void smg_model_make_rotary(model_builder *b, model_rotary *rotary);
/* x[batch, sequence, heads, dim] turned by its positions, the halves of a head paired */
smg_value smg_model_rotate(model_builder *b, const model_rotary *rotary, smg_value x, int64_t heads, const char *name);

/* ---- encoders of text: model_encoder.c --------------------------------------------------------------------- */

/* Names of the tensors of one layer with attention, a two-layer perceptron, and a norm behind each. */
typedef struct model_encoder_names {
    const char *query, *key, *value, *attention, *attention_norm, *inner, *outer, *norm;
} model_encoder_names;

typedef struct model_encoder {
    model_builder part;
    int64_t hidden, layers, heads, inner, vocabulary, token_types, positions;
    const model_encoder_names *names;
    smg_value ids, types, mask; /* types {0}: there is one type only. mask: f32[batch, sequence] */
    smg_value mask_term;
} model_encoder;
/* The inputs and the mask; the longest sequence is `most`. */
void smg_model_encoder_inputs(model_encoder *m, int64_t most);
/* word + token type + `place` rows of width `width`, normalised. */
smg_value smg_model_encoder_embeddings(model_encoder *m, int64_t width, smg_value place);
/* The first `sequence` rows of the position table. */
smg_value smg_model_encoder_places(model_encoder *m, int64_t width);
smg_value smg_model_encoder_layer(model_encoder *m, smg_value x, const char *scope, const char *name);
/* last_hidden_state and what the source's pooling asks for. */
void smg_model_encoder_outputs(model_encoder *m, smg_value x);

#endif
