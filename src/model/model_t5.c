/* T5: an encoder and a decoder with RMS norms in front of everything, scores that are not scaled, and
 * positions that act through a bias alone: how far a key lies from a query falls into buckets, and each
 * head adds a learned number per bucket to its scores. The layers of a side share these numbers. */
#include "model/model_private.h"

#include <math.h>

static const char both[] = "sequence", target[] = "decoder_sequence";

typedef struct t5 {
    model_builder part;
    int64_t hidden, dim, inner, layers, decoder_layers, heads, vocabulary, buckets, distance;
    bool gated, scaled; /* a gated perceptron; the last state times hidden^-0.5 */
    bool encoder_only, head;
    smg_value mask_term;
} t5;

/* One stack: its names, and what its attention adds to scores. */
typedef struct side {
    const char *scope;  /* encoder or decoder */
    const char *tokens; /* symbol of its length */
    bool decoder;
    smg_value bias; /* [heads, tokens, tokens] */
} side;

/* ---- configuration -------------------------------------------------------------------------- */

/* "relu", "gated-gelu" ...; the gelu of a gated perceptron is the one by tanh. */
static smg_status read_activation(smg_context *ctx, const smg_model_source *source, t5 *m) {
    static const char key[] = "feed_forward_proj", mark[] = "gated-";
    const char *word;
    SMG_TRY(source->get_string(source->user, key, "relu", &word));
    m->gated = strncmp(word, mark, sizeof mark - 1) == 0;
    m->part.activation = m->gated ? word + sizeof mark - 1 : word;
    if (strcmp(word, "gated-gelu") == 0) m->part.activation = "gelu_new";
    if (smg_model_activation_known(m->part.activation)) return SMG_OK;
    return smg_fail(ctx, SMG_UNSUPPORTED, "%s %s is not supported (%s are, with or without gated- in front)", key, word,
                    smg_model_activation_names());
}

static smg_status check_buckets(smg_context *ctx, const t5 *m) {
    int64_t exact = m->buckets / 2; /* the decoder's; the encoder's is half of it */
    if (m->buckets % 4 != 0)
        return smg_fail(ctx, SMG_FORMAT, "relative_attention_num_buckets is %lld, must be a multiple of 4",
                        (long long)m->buckets);
    if (m->distance > exact) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT,
                    "relative_attention_max_distance is %lld, must be above half of "
                    "relative_attention_num_buckets %lld",
                    (long long)m->distance, (long long)m->buckets);
}

static smg_status read_config(smg_context *ctx, const smg_model_source *source, t5 *m) {
    const model_int rows[] = {
        {"d_model", 512, MODEL_MOST_WIDTH, &m->hidden},
        {"d_kv", 64, MODEL_MOST_HEADS, &m->dim},
        {"d_ff", 2048, (int64_t)MODEL_MOST_WIDTH * 16, &m->inner},
        {"num_layers", 6, MODEL_MOST_LAYERS, &m->layers},
        {"num_heads", 8, MODEL_MOST_HEADS, &m->heads},
        {"vocab_size", 32128, MODEL_MOST_ROWS, &m->vocabulary},
        {"relative_attention_num_buckets", 32, 4096, &m->buckets},
        {"relative_attention_max_distance", 128, MODEL_MOST_WIDTH, &m->distance},
    };
    bool encoder_decoder;
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    const model_int more = {"num_decoder_layers", m->layers, MODEL_MOST_LAYERS, &m->decoder_layers};
    SMG_TRY(smg_model_read_ints(ctx, source, &more, 1));
    SMG_TRY(check_buckets(ctx, m));
    SMG_TRY(smg_model_read_eps(ctx, source, "layer_norm_epsilon", 1e-6, &m->part.eps));
    SMG_TRY(read_activation(ctx, source, m));
    SMG_TRY(smg_model_read_tied(&m->part, true));
    SMG_TRY(source->get_bool(source->user, "scale_decoder_outputs", m->part.tied, &m->scaled));
    SMG_TRY(smg_model_architecture(source, "Encoder", false, &m->encoder_only));
    SMG_TRY(source->get_bool(source->user, "is_encoder_decoder", true, &encoder_decoder));
    if (!encoder_decoder) m->encoder_only = true;
    return smg_model_architecture(source, "Conditional", true, &m->head);
}

/* ---- relative positions --------------------------------------------------------------------- */

/* Half of the buckets hold one distance each; the others grow up to `most` in steps of equal ratio. */
static int32_t bucket_of(int64_t distance, int64_t buckets, int64_t most) {
    int64_t exact = buckets / 2;
    if (distance < exact) return (int32_t)distance;
    float ratio = logf((float)distance / (float)exact);
    float share = ratio / (float)log((double)most / (double)exact);
    int64_t bucket = exact + (int64_t)(share * (float)(buckets - exact));
    return (int32_t)(bucket < buckets ? bucket : buckets - 1);
}

/* Buckets of key - query in [-distance, distance]; beyond, the last ones hold. */
static const int32_t *bucket_table(t5 *m, bool decoder) {
    smg_graph *g = m->part.g;
    if (g->status != SMG_OK) return NULL;
    int32_t *table = SMG_ARENA_ARRAY(g->arena, int32_t, (size_t)(2 * m->distance + 1));
    if (table == NULL) smg_model_fail(&m->part, SMG_MEMORY);
    for (int64_t i = 0; table != NULL && i <= 2 * m->distance; i++) {
        int64_t ahead = i - m->distance;
        if (decoder)
            table[i] = ahead < 0 ? bucket_of(-ahead, m->buckets, m->distance) : 0;
        else
            table[i] = (int32_t)(ahead > 0 ? m->buckets / 2 : 0) +
                       bucket_of(ahead < 0 ? -ahead : ahead, m->buckets / 2, m->distance);
    }
    return table;
}

/* [heads, tokens, tokens]: the learned number of the bucket that key - query falls into. */
static smg_value position_bias(t5 *m, const side *s) {
    model_builder *b = &m->part;
    const char *square = smg_model_text(b, "%s, %s", s->tokens, s->tokens);
    smg_value ahead = smg_model_map2(b, "sub", smg_graph_iota(b->g, square, 1), smg_graph_iota(b->g, square, 0));
    ahead = smg_model_map2(b, "max", ahead, smg_model_integer(b, -m->distance));
    ahead = smg_model_map2(b, "min", ahead, smg_model_integer(b, m->distance));
    smg_value place = smg_model_map2(b, "add", ahead, smg_model_integer(b, m->distance));
    smg_value table =
        smg_graph_constant(b->g, smg_model_text(b, "%s.buckets", s->scope), "i32",
                           smg_model_text(b, "%lld", (long long)(2 * m->distance + 1)), bucket_table(m, s->decoder));
    smg_value bucket = smg_graph_gather(b->g, table, place);
    smg_model_named(b, bucket, smg_model_text(b, "%s.bucket", s->scope));
    smg_value bias = smg_model_lookup(
        b, smg_model_text(b, "%s.block.0.layer.0.SelfAttention.relative_attention_bias.weight", s->scope), m->buckets,
        m->heads, bucket);
    bias = smg_graph_transpose(b->g, bias, 3, (const int[]){2, 0, 1});
    return smg_model_named(b, bias, smg_model_text(b, "%s.bias", s->scope));
}

/* ---- layers --------------------------------------------------------------------------------- */

static smg_value project(t5 *m, smg_value x, const char *scope, const char *which, const char *tokens,
                         const char *name) {
    model_builder *b = &m->part;
    const model_linear linear = {
        .scope = smg_model_text(b, "%s.%s", scope, which), .in = m->hidden, .out = m->heads * m->dim, .no_bias = true};
    name = smg_model_text(b, "%s.%s", name, which);
    return smg_model_heads(b, smg_model_linear(b, x, &linear, name), tokens, m->heads, m->dim, name);
}

/* x + attention(norm(x)) over `memory`, or over norm(x) itself where memory is {0}. */
static smg_value attend(t5 *m, const side *s, smg_value x, smg_value memory, const char *scope, const char *name) {
    model_builder *b = &m->part;
    bool cross = memory.id != 0;
    const char *inner = smg_model_text(b, "%s.%s", scope, cross ? "EncDecAttention" : "SelfAttention");
    const char *keys = cross ? both : s->tokens;
    smg_value y = smg_model_rms_norm(b, x, smg_model_text(b, "%s.layer_norm", scope), m->hidden,
                                     smg_model_text(b, "%s.norm", name));
    if (!cross) memory = y;
    const model_attention options = {.heads = m->heads,
                                     .kv_heads = m->heads,
                                     .dim = m->dim,
                                     .queries = s->tokens,
                                     .keys = keys,
                                     .scale = 1.0,
                                     .bias = cross ? (smg_value){0} : s->bias,
                                     .mask_term = s->decoder && !cross ? (smg_value){0} : m->mask_term,
                                     .causal = s->decoder && !cross,
                                     .name = name};
    const model_linear out = {
        .scope = smg_model_text(b, "%s.o", inner), .in = m->heads * m->dim, .out = m->hidden, .no_bias = true};
    smg_value q = project(m, y, inner, "q", s->tokens, name);
    smg_value k = project(m, memory, inner, "k", keys, name);
    smg_value v = project(m, memory, inner, "v", keys, name);
    y = smg_model_linear(b, smg_model_attention(b, &options, q, k, v), &out, smg_model_text(b, "%s.out", name));
    return smg_model_named(b, smg_model_map2(b, "add", y, x), smg_model_text(b, "%s.residual", name));
}

static smg_value perceptron(t5 *m, smg_value x, const char *scope, const char *name) {
    model_builder *b = &m->part;
    const char *inner_name = smg_model_text(b, "%s.DenseReluDense", scope);
    const model_linear gate = {
        .scope = smg_model_text(b, "%s.wi_0", inner_name), .in = m->hidden, .out = m->inner, .no_bias = true};
    const model_linear inner = {.scope = smg_model_text(b, "%s.%s", inner_name, m->gated ? "wi_1" : "wi"),
                                .in = m->hidden,
                                .out = m->inner,
                                .no_bias = true};
    const model_linear outer = {
        .scope = smg_model_text(b, "%s.wo", inner_name), .in = m->inner, .out = m->hidden, .no_bias = true};
    smg_value y = smg_model_rms_norm(b, x, smg_model_text(b, "%s.layer_norm", scope), m->hidden,
                                     smg_model_text(b, "%s.norm", name));
    y = m->gated ? smg_model_gated_mlp(b, y, &gate, &inner, &outer, name) : smg_model_mlp(b, y, &inner, &outer, name);
    return smg_model_named(b, smg_model_map2(b, "add", y, x), smg_model_text(b, "%s.residual", name));
}

static smg_value stack(t5 *m, side *s, smg_value x, smg_value memory, int64_t layers) {
    model_builder *b = &m->part;
    s->bias = position_bias(m, s);
    for (int64_t i = 0; i < layers; i++) {
        const char *scope = smg_model_text(b, "%s.block.%lld.layer", s->scope, (long long)i);
        const char *name = smg_model_text(b, "%s.%lld", s->scope, (long long)i);
        x = attend(m, s, x, (smg_value){0}, smg_model_text(b, "%s.0", scope), smg_model_text(b, "%s.self", name));
        if (s->decoder)
            x = attend(m, s, x, memory, smg_model_text(b, "%s.1", scope), smg_model_text(b, "%s.cross", name));
        x = perceptron(m, x, smg_model_text(b, "%s.%d", scope, s->decoder ? 2 : 1), smg_model_text(b, "%s.mlp", name));
    }
    return smg_model_rms_norm(b, x, smg_model_text(b, "%s.final_layer_norm", s->scope), m->hidden,
                              smg_model_text(b, "%s.norm", s->scope));
}

/* The table of words, which old files keep under the encoder's name alone. */
static smg_value words_of(t5 *m) {
    bool shared = smg_model_has_tensor(&m->part, "shared.weight") ||
                  !smg_model_has_tensor(&m->part, "encoder.embed_tokens.weight");
    return smg_model_weight(&m->part, shared ? "shared.weight" : "encoder.embed_tokens.weight", m->vocabulary,
                            m->hidden);
}

static void decode(t5 *m, smg_value words, smg_value ids, smg_value memory) {
    model_builder *b = &m->part;
    side decoder = {.scope = "decoder", .tokens = target, .decoder = true};
    smg_value x = smg_model_named(b, smg_graph_gather(b->g, words, ids), "decoder.embeddings");
    x = stack(m, &decoder, x, memory, m->decoder_layers);
    if (!m->head) {
        smg_graph_output(b->g, "last_hidden_state", x);
        return;
    }
    if (m->scaled) x = smg_model_map2(b, "mul", x, smg_model_number(b, 1.0 / sqrt((double)m->hidden)));
    smg_model_logits(b, x, words, m->vocabulary, m->hidden);
}

static void build(void *user) {
    t5 *m = user;
    model_builder *b = &m->part;
    side encoder = {.scope = "encoder", .tokens = both};
    smg_value ids = smg_graph_input(b->g, "input_ids", "i32", "batch, sequence");
    smg_value mask = smg_graph_input(b->g, "attention_mask", "i32", "batch, sequence");
    smg_value target_ids = {0};
    smg_graph_set_max(b->g, both, MODEL_MOST_TOKENS);
    if (!m->encoder_only) {
        target_ids = smg_graph_input(b->g, "decoder_input_ids", "i32", "batch, decoder_sequence");
        smg_graph_set_max(b->g, target, MODEL_MOST_TOKENS);
    }
    m->mask_term = smg_model_mask_term(b, smg_graph_cast(b->g, mask, "f32"));
    smg_value words = words_of(m);
    smg_value x = smg_model_named(b, smg_graph_gather(b->g, words, ids), "encoder.embeddings");
    smg_value memory = stack(m, &encoder, x, (smg_value){0}, m->layers);
    if (m->encoder_only)
        smg_graph_output(b->g, "last_hidden_state", memory);
    else
        decode(m, words, target_ids, memory);
}

smg_status smg_model_build_t5(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    t5 m = {.part = {.source = source, .prefix = ""}};
    SMG_TRY(read_config(ctx, source, &m));
    return smg_model_finish(&m.part, ctx, "t5", build, &m, out);
}
