/* BERT: embeddings (word + token type + position, LayerNorm) and layers of self-attention and a
 * two-layer perceptron, each with a residual and a LayerNorm behind it. The mask of padded tokens is
 * added to the scaled scores as (1 - mask) * lowest float, as Hugging Face does. */
#include "model/model_private.h"

#include <math.h>

#define LOWEST_FLOAT (-3.4028234663852886e38)

typedef struct bert_config {
    int64_t hidden, layers, heads, inner, vocabulary, token_types, positions;
} bert_config;

typedef struct bert {
    model_builder part;
    bert_config config;
    smg_value mask;      /* f32[batch, sequence] */
    smg_value mask_term; /* f32[batch, 1, 1, sequence], added to scores */
} bert;

/* ---- configuration -------------------------------------------------------------------------- */

static smg_status read_ints(smg_context *ctx, const smg_model_source *source, bert_config *c) {
    const struct {
        const char *key;
        int64_t fallback, most;
        int64_t *out;
    } rows[] = {
        {"hidden_size", 768, 1 << 20, &c->hidden},
        {"num_hidden_layers", 12, 1024, &c->layers},
        {"num_attention_heads", 12, 1 << 16, &c->heads},
        {"intermediate_size", 3072, 1 << 24, &c->inner},
        {"vocab_size", 30522, 1 << 28, &c->vocabulary},
        {"type_vocab_size", 2, 1 << 20, &c->token_types},
        {"max_position_embeddings", 512, 1 << 28, &c->positions},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        SMG_TRY(source->get_int(source->user, rows[i].key, rows[i].fallback, rows[i].out));
        if (*rows[i].out < 1 || *rows[i].out > rows[i].most)
            return smg_fail(ctx, SMG_FORMAT, "%s is %lld, must be in [1, %lld]", rows[i].key,
                            (long long)*rows[i].out, (long long)rows[i].most);
    }
    if (c->hidden % c->heads == 0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT,
                    "hidden_size %lld is not a multiple of num_attention_heads %lld",
                    (long long)c->hidden, (long long)c->heads);
}

static smg_status read_config(smg_context *ctx, const smg_model_source *source, bert *m) {
    const char *position_type;
    SMG_TRY(read_ints(ctx, source, &m->config));
    SMG_TRY(source->get_float(source->user, "layer_norm_eps", 1e-12, &m->part.eps));
    SMG_TRY(source->get_string(source->user, "hidden_act", "gelu", &m->part.activation));
    SMG_TRY(
        source->get_string(source->user, "position_embedding_type", "absolute", &position_type));
    if (!(m->part.eps >= 0.0 && m->part.eps < 1.0))
        return smg_fail(ctx, SMG_FORMAT, "layer_norm_eps is %g, must be in [0, 1)", m->part.eps);
    if (strcmp(position_type, "absolute") != 0)
        return smg_fail(ctx, SMG_UNSUPPORTED,
                        "position_embedding_type %s is not supported (absolute is)", position_type);
    if (smg_model_activation_known(m->part.activation)) return SMG_OK;
    return smg_fail(
        ctx, SMG_UNSUPPORTED,
        "hidden_act %s is not supported (gelu gelu_new gelu_pytorch_tanh gelu_fast relu silu swish "
        "tanh are)",
        m->part.activation);
}

/* ---- the graph ------------------------------------------------------------------------------ */

static void find_prefix(bert *m) {
    static const char probe[] = "bert.embeddings.word_embeddings.weight";
    smg_type type;
    int rank;
    int64_t dims[SMG_MAX_RANK];
    const void *data;
    const smg_model_source *source = m->part.source;
    m->part.prefix = source->tensor(source->user, probe, &type, &rank, dims, &data) ? "bert." : "";
}

static void make_mask(bert *m, smg_value attention_mask) {
    model_builder *b = &m->part;
    m->mask = smg_graph_cast(b->g, attention_mask, "f32");
    smg_value view = smg_graph_reshape(b->g, m->mask, "batch, 1, 1, sequence");
    smg_value invalid = smg_model_map2(b, "sub", b->number_one, view);
    m->mask_term = smg_model_map2(b, "mul", invalid, smg_model_number(b, LOWEST_FLOAT));
    smg_model_named(b, m->mask_term, "mask_term");
}

static smg_value embeddings(bert *m, smg_value ids, smg_value types) {
    model_builder *b = &m->part;
    const bert_config *c = &m->config;
    smg_value words =
        smg_model_weight(b, "embeddings.word_embeddings.weight", 2, c->vocabulary, c->hidden);
    smg_value kinds = smg_model_weight(b, "embeddings.token_type_embeddings.weight", 2,
                                       c->token_types, c->hidden);
    smg_value places =
        smg_model_weight(b, "embeddings.position_embeddings.weight", 2, c->positions, c->hidden);
    smg_value word = smg_graph_gather(b->g, words, ids),
              kind = smg_graph_gather(b->g, kinds, types);
    smg_value place = smg_graph_slice(b->g, places, 0, "0", "sequence", 1);
    smg_model_named(b, word, "embeddings.word");
    smg_model_named(b, kind, "embeddings.token_type");
    smg_model_named(b, place, "embeddings.position");
    smg_value sum = smg_model_map2(b, "add", smg_model_map2(b, "add", word, kind), place);
    smg_model_named(b, sum, "embeddings.sum");
    return smg_model_layer_norm(b, sum, "embeddings.LayerNorm", c->hidden, "embeddings");
}

/* One of query, key, value: [batch, sequence, heads, dim]. */
static smg_value heads_of(bert *m, smg_value x, int layer, const char *which) {
    model_builder *b = &m->part;
    const bert_config *c = &m->config;
    const char *scope = smg_model_text(b, "encoder.layer.%d.attention.self.%s", layer, which);
    const char *name = smg_model_text(b, "layer.%d.%s", layer, which);
    smg_value y = smg_model_linear(b, x, scope, c->hidden, c->hidden, name);
    const char *dims = smg_model_text(b, "batch, sequence, %lld, %lld", (long long)c->heads,
                                      (long long)(c->hidden / c->heads));
    return smg_model_named(b, smg_graph_reshape(b->g, y, dims),
                           smg_model_text(b, "%s.heads", name));
}

static smg_value attention(bert *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const bert_config *c = &m->config;
    smg_value q = heads_of(m, x, layer, "query"), k = heads_of(m, x, layer, "key");
    smg_value v = heads_of(m, x, layer, "value");
    smg_value scores = smg_graph_contract(b->g, "bshd,bthd->bhst", q, k);
    smg_value scale = smg_model_number(b, 1.0 / sqrt((double)(c->hidden / c->heads)));
    smg_value masked =
        smg_model_map2(b, "add", smg_model_map2(b, "mul", scores, scale), m->mask_term);
    smg_model_named(b, scores, smg_model_text(b, "layer.%d.scores", layer));
    smg_model_named(b, masked, smg_model_text(b, "layer.%d.masked", layer));
    smg_value p = smg_model_softmax(b, masked, smg_model_text(b, "layer.%d.probabilities", layer));
    smg_value context = smg_graph_contract(b->g, "bhst,bthd->bshd", p, v);
    smg_model_named(b, context, smg_model_text(b, "layer.%d.context", layer));
    return smg_graph_reshape(b->g, context,
                             smg_model_text(b, "batch, sequence, %lld", (long long)c->hidden));
}

static smg_value encoder_layer(bert *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const bert_config *c = &m->config;
    const char *scope = smg_model_text(b, "encoder.layer.%d", layer),
               *name = smg_model_text(b, "layer.%d", layer);
    smg_value y = smg_model_linear(b, attention(m, x, layer),
                                   smg_model_text(b, "%s.attention.output.dense", scope), c->hidden,
                                   c->hidden, smg_model_text(b, "%s.attention", name));
    y = smg_model_named(b, smg_model_map2(b, "add", y, x),
                        smg_model_text(b, "%s.attention.residual", name));
    y = smg_model_layer_norm(b, y, smg_model_text(b, "%s.attention.output.LayerNorm", scope),
                             c->hidden, smg_model_text(b, "%s.attention.norm", name));
    smg_value z = smg_model_linear(b, y, smg_model_text(b, "%s.intermediate.dense", scope),
                                   c->hidden, c->inner, smg_model_text(b, "%s.inner", name));
    z = smg_model_activation(b, z, smg_model_text(b, "%s.activation", name));
    z = smg_model_linear(b, z, smg_model_text(b, "%s.output.dense", scope), c->inner, c->hidden,
                         smg_model_text(b, "%s.outer", name));
    z = smg_model_named(b, smg_model_map2(b, "add", z, y), smg_model_text(b, "%s.residual", name));
    return smg_model_layer_norm(b, z, smg_model_text(b, "%s.output.LayerNorm", scope), c->hidden,
                                smg_model_text(b, "%s.norm", name));
}

static void build(bert *m) {
    model_builder *b = &m->part;
    smg_graph *g = b->g;
    static const char dims[] = "batch, sequence";
    find_prefix(m);
    smg_value ids = smg_graph_input(g, "input_ids", "i32", dims);
    smg_value attention_mask = smg_graph_input(g, "attention_mask", "i32", dims);
    smg_value types = smg_graph_input(g, "token_type_ids", "i32", dims);
    smg_graph_set_max(g, "sequence", m->config.positions);
    b->number_one = smg_model_number(b, 1.0);
    b->number_half = smg_model_number(b, 0.5);
    make_mask(m, attention_mask);
    smg_value x = embeddings(m, ids, types);
    for (int i = 0; i < m->config.layers; i++) x = encoder_layer(m, x, i);
    bool pooled = b->source->pooling != SMG_MODEL_POOLING_NONE;
    if (!pooled || !b->source->embedding_only) smg_graph_output(g, "last_hidden_state", x);
    if (pooled) smg_graph_output(g, "embedding", smg_model_pool(b, x, m->mask, m->config.hidden));
}

smg_status smg_model_build_bert(smg_context *ctx, const smg_model_source *source,
                                smg_graph **out_graph) {
    *out_graph = NULL;
    bert m = {.part = {.source = source}};
    SMG_TRY(read_config(ctx, source, &m));
    SMG_TRY(smg_graph_create(ctx, "bert", &m.part.g));
    build(&m);
    smg_status status = smg_graph_finish(m.part.g);
    if (status != SMG_OK)
        smg_graph_destroy(m.part.g);
    else
        *out_graph = m.part.g;
    return status;
}
