/* Encoders of text: embeddings that are added and normalised, layers of self-attention and a two-layer
 * perceptron, each with a residual and a LayerNorm behind it. The mask of padded tokens is added to the
 * scaled scores as (1 - mask) * lowest float, as Hugging Face does. A row of text may be pooled. */
#include "model/model_private.h"

#include <math.h>

void smg_model_encoder_inputs(model_encoder *m, int64_t most) {
    model_builder *b = &m->part;
    static const char dims[] = "batch, sequence";
    m->ids = smg_graph_input(b->g, "input_ids", "i32", dims);
    smg_value mask = smg_graph_input(b->g, "attention_mask", "i32", dims);
    if (m->token_types > 1) m->types = smg_graph_input(b->g, "token_type_ids", "i32", dims);
    smg_graph_set_max(b->g, "sequence", most);
    m->mask = smg_graph_cast(b->g, mask, "f32");
    m->mask_term = smg_model_mask_term(b, m->mask);
}

smg_value smg_model_encoder_places(model_encoder *m, int64_t width) {
    model_builder *b = &m->part;
    smg_value table = smg_model_weight(b, "embeddings.position_embeddings.weight", m->positions, width);
    return smg_graph_slice(b->g, table, 0, "0", "sequence", 1);
}

/* Rows by token type; the only row where there is one type; {0} where a model has none. */
static smg_value type_rows(model_encoder *m, int64_t width) {
    model_builder *b = &m->part;
    static const char name[] = "embeddings.token_type_embeddings.weight";
    if (m->token_types == 0) return (smg_value){0};
    if (m->token_types == 1) return smg_model_weight(b, name, 1, width);
    return smg_model_lookup(b, name, m->token_types, width, m->types);
}

smg_value smg_model_encoder_embeddings(model_encoder *m, int64_t width, smg_value place) {
    model_builder *b = &m->part;
    smg_value sum = smg_model_lookup(b, "embeddings.word_embeddings.weight", m->vocabulary, width, m->ids);
    smg_model_named(b, sum, "embeddings.word");
    smg_value kind = type_rows(m, width);
    if (kind.id != 0) {
        smg_model_named(b, kind, "embeddings.token_type");
        sum = smg_model_map2(b, "add", sum, kind);
    }
    smg_model_named(b, place, "embeddings.position");
    sum = smg_model_named(b, smg_model_map2(b, "add", sum, place), "embeddings.sum");
    return smg_model_layer_norm(b, sum, "embeddings.LayerNorm", width, "embeddings");
}

/* One of query, key, value: [batch, sequence, heads, dim]. */
static smg_value heads_of(model_encoder *m, smg_value x, const char *scope, const char *tensor, const char *name) {
    model_builder *b = &m->part;
    const model_linear linear = {.scope = smg_model_text(b, "%s.%s", scope, tensor), .in = m->hidden, .out = m->hidden};
    smg_value y = smg_model_linear(b, x, &linear, name);
    return smg_model_heads(b, y, "sequence", m->heads, m->hidden / m->heads, name);
}

static smg_value attention(model_encoder *m, smg_value x, const char *scope, const char *name) {
    model_builder *b = &m->part;
    const model_encoder_names *names = m->names;
    int64_t dim = m->hidden / m->heads;
    const model_attention options = {.heads = m->heads,
                                     .kv_heads = m->heads,
                                     .dim = dim,
                                     .queries = "sequence",
                                     .keys = "sequence",
                                     .scale = 1.0 / sqrt((double)dim),
                                     .mask_term = m->mask_term,
                                     .name = name};
    smg_value q = heads_of(m, x, scope, names->query, smg_model_text(b, "%s.query", name));
    smg_value k = heads_of(m, x, scope, names->key, smg_model_text(b, "%s.key", name));
    smg_value v = heads_of(m, x, scope, names->value, smg_model_text(b, "%s.value", name));
    const model_linear out = {
        .scope = smg_model_text(b, "%s.%s", scope, names->attention), .in = m->hidden, .out = m->hidden};
    return smg_model_linear(b, smg_model_attention(b, &options, q, k, v), &out,
                            smg_model_text(b, "%s.attention", name));
}

smg_value smg_model_encoder_layer(model_encoder *m, smg_value x, const char *scope, const char *name) {
    model_builder *b = &m->part;
    const model_encoder_names *names = m->names;
    const model_linear inner = {
        .scope = smg_model_text(b, "%s.%s", scope, names->inner), .in = m->hidden, .out = m->inner};
    const model_linear outer = {
        .scope = smg_model_text(b, "%s.%s", scope, names->outer), .in = m->inner, .out = m->hidden};
    smg_value y = smg_model_map2(b, "add", attention(m, x, scope, name), x);
    smg_model_named(b, y, smg_model_text(b, "%s.attention.residual", name));
    y = smg_model_layer_norm(b, y, smg_model_text(b, "%s.%s", scope, names->attention_norm), m->hidden,
                             smg_model_text(b, "%s.attention.norm", name));
    smg_value z = smg_model_map2(b, "add", smg_model_mlp(b, y, &inner, &outer, name), y);
    smg_model_named(b, z, smg_model_text(b, "%s.residual", name));
    return smg_model_layer_norm(b, z, smg_model_text(b, "%s.%s", scope, names->norm), m->hidden,
                                smg_model_text(b, "%s.norm", name));
}

/* ---- pooling -------------------------------------------------------------------------------- */

/* sum over tokens of mask * h, divided by the number of valid tokens */
static smg_value mean_of_valid(model_builder *b, smg_value hidden_state, smg_value mask) {
    smg_value weights = smg_graph_reshape(b->g, mask, "batch, sequence, 1");
    smg_value sum = smg_graph_reduce(b->g, "sum", smg_model_map2(b, "mul", hidden_state, weights), 1, false);
    smg_value count = smg_graph_reduce(b->g, "sum", mask, 1, true);
    count = smg_model_map2(b, "max", count, smg_model_number(b, 1e-9));
    return smg_model_map2(b, "div", sum, count);
}

static smg_value pool(model_encoder *m, smg_value hidden_state) {
    model_builder *b = &m->part;
    smg_value pooled;
    if (b->source->pooling == SMG_MODEL_POOLING_CLS) {
        smg_value first = smg_graph_slice(b->g, hidden_state, 1, "0", "1", 1);
        pooled = smg_graph_reshape(b->g, first, smg_model_text(b, "batch, %lld", (long long)m->hidden));
    } else {
        pooled = mean_of_valid(b, hidden_state, m->mask);
    }
    smg_model_named(b, pooled, "pooled");
    if (!b->source->normalize) return pooled;
    smg_value energy = smg_graph_reduce(b->g, "sum", smg_model_map1(b, "square", pooled), 1, true);
    smg_value norm = smg_model_map2(b, "max", smg_model_map1(b, "sqrt", energy), smg_model_number(b, 1e-12));
    return smg_model_named(b, smg_model_map2(b, "div", pooled, norm), "normalized");
}

void smg_model_encoder_outputs(model_encoder *m, smg_value x) {
    const smg_model_source *source = m->part.source;
    bool pooled = source->pooling != SMG_MODEL_POOLING_NONE;
    if (!pooled || !source->embedding_only) smg_graph_output(m->part.g, "last_hidden_state", x);
    if (pooled) smg_graph_output(m->part.g, "embedding", pool(m, x));
}
