/* GPT-2: a decoder with learned positions, layers with a LayerNorm in front of attention and of the
 * perceptron, and a head that shares the table of words. Its linear layers keep their weights [in, out],
 * and those of query, key and value are columns of one tensor. */
#include "model/model_private.h"

#include <math.h>

typedef struct gpt2 {
    model_builder part;
    int64_t hidden, layers, heads, inner, vocabulary, positions;
    bool scaled, scaled_by_layer; /* scores by 1 / sqrt(dim), and by 1 / (layer + 1) */
    bool head;
} gpt2;

static smg_status read_config(smg_context *ctx, const smg_model_source *source, gpt2 *m) {
    const model_int rows[] = {
        {"n_embd", 768, MODEL_MOST_WIDTH, &m->hidden},         {"n_layer", 12, MODEL_MOST_LAYERS, &m->layers},
        {"n_head", 12, MODEL_MOST_HEADS, &m->heads},           {"vocab_size", 50257, MODEL_MOST_ROWS, &m->vocabulary},
        {"n_positions", 1024, MODEL_MOST_ROWS, &m->positions},
    };
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    const model_int inner = {"n_inner", 4 * m->hidden, (int64_t)MODEL_MOST_WIDTH * 16, &m->inner};
    SMG_TRY(smg_model_read_ints(ctx, source, &inner, 1));
    SMG_TRY(smg_model_check_multiple(ctx, "n_embd", m->hidden, "n_head", m->heads));
    SMG_TRY(smg_model_read_eps(ctx, source, "layer_norm_epsilon", 1e-5, &m->part.eps));
    SMG_TRY(smg_model_read_activation(ctx, source, "activation_function", "gelu_new", &m->part.activation));
    SMG_TRY(source->get_bool(source->user, "scale_attn_weights", true, &m->scaled));
    SMG_TRY(source->get_bool(source->user, "scale_attn_by_inverse_layer_idx", false, &m->scaled_by_layer));
    SMG_TRY(smg_model_refuse_bool(ctx, source, "add_cross_attention", false, true));
    return smg_model_architecture(source, "LMHead", true, &m->head);
}

/* Part 0, 1 or 2 of the joined projection: query, key, value. */
static smg_value heads_of(gpt2 *m, smg_value x, int layer, int part, const char *which) {
    model_builder *b = &m->part;
    const char *name = smg_model_text(b, "layer.%d.%s", layer, which);
    const model_linear linear = {.scope = smg_model_text(b, "h.%d.attn.c_attn", layer),
                                 .in = m->hidden,
                                 .out = m->hidden,
                                 .in_out = true,
                                 .whole = 3 * m->hidden,
                                 .begin = part * m->hidden};
    smg_value y = smg_model_linear(b, x, &linear, name);
    return smg_model_heads(b, y, "sequence", m->heads, m->hidden / m->heads, name);
}

static smg_value attention(gpt2 *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    int64_t dim = m->hidden / m->heads;
    double scale = m->scaled ? 1.0 / sqrt((double)dim) : 1.0;
    const model_attention options = {.heads = m->heads,
                                     .kv_heads = m->heads,
                                     .dim = dim,
                                     .queries = "sequence",
                                     .keys = "sequence",
                                     .scale = m->scaled_by_layer ? scale / (layer + 1) : scale,
                                     .causal = true,
                                     .name = smg_model_text(b, "layer.%d", layer)};
    const model_linear out = {
        .scope = smg_model_text(b, "h.%d.attn.c_proj", layer), .in = m->hidden, .out = m->hidden, .in_out = true};
    smg_value q = heads_of(m, x, layer, 0, "query"), k = heads_of(m, x, layer, 1, "key");
    smg_value v = heads_of(m, x, layer, 2, "value");
    return smg_model_linear(b, smg_model_attention(b, &options, q, k, v), &out,
                            smg_model_text(b, "layer.%d.attention", layer));
}

static smg_value decoder_layer(gpt2 *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const char *name = smg_model_text(b, "layer.%d", layer);
    const model_linear inner = {
        .scope = smg_model_text(b, "h.%d.mlp.c_fc", layer), .in = m->hidden, .out = m->inner, .in_out = true};
    const model_linear outer = {
        .scope = smg_model_text(b, "h.%d.mlp.c_proj", layer), .in = m->inner, .out = m->hidden, .in_out = true};
    smg_value y = smg_model_layer_norm(b, x, smg_model_text(b, "h.%d.ln_1", layer), m->hidden,
                                       smg_model_text(b, "%s.attention.norm", name));
    x = smg_model_map2(b, "add", attention(m, y, layer), x);
    smg_model_named(b, x, smg_model_text(b, "%s.attention.residual", name));
    y = smg_model_layer_norm(b, x, smg_model_text(b, "h.%d.ln_2", layer), m->hidden,
                             smg_model_text(b, "%s.norm", name));
    x = smg_model_map2(b, "add", smg_model_mlp(b, y, &inner, &outer, name), x);
    return smg_model_named(b, x, smg_model_text(b, "%s.residual", name));
}

static void build(void *user) {
    gpt2 *m = user;
    model_builder *b = &m->part;
    smg_model_find_prefix(b, "transformer.", "wte.weight");
    smg_value ids = smg_graph_input(b->g, "input_ids", "i32", "batch, sequence");
    smg_graph_set_max(b->g, "sequence", m->positions);
    smg_value words = smg_model_weight(b, "wte.weight", m->vocabulary, m->hidden);
    smg_value places = smg_model_weight(b, "wpe.weight", m->positions, m->hidden);
    smg_value word = smg_model_named(b, smg_graph_gather(b->g, words, ids), "embeddings.word");
    smg_value place = smg_graph_slice(b->g, places, 0, "0", "sequence", 1);
    smg_model_named(b, place, "embeddings.position");
    smg_value x = smg_model_named(b, smg_model_map2(b, "add", word, place), "embeddings");
    for (int i = 0; i < m->layers; i++) x = decoder_layer(m, x, i);
    x = smg_model_layer_norm(b, x, "ln_f", m->hidden, "norm");
    if (m->head)
        smg_model_logits(b, x, words, m->vocabulary, m->hidden);
    else
        smg_graph_output(b->g, "last_hidden_state", x);
}

smg_status smg_model_build_gpt2(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    gpt2 m = {.part = {.source = source}};
    SMG_TRY(read_config(ctx, source, &m));
    SMG_TRY(smg_model_read_tied(&m.part, true));
    return smg_model_finish(&m.part, ctx, "gpt2", build, &m, out);
}
