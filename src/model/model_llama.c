/* Llama: a decoder with rotary positions, an RMS norm in front of attention and of a gated perceptron,
 * and fewer heads of keys and values than of queries. Mistral and Qwen differ in what a token sees, which is as many
 * tokens as a row may have here, in biases of the projections, and in norms of each head. */
#include "model/model_private.h"

#include <math.h>

typedef struct llama {
    model_builder part;
    int64_t hidden, layers, heads, kv_heads, dim, inner, vocabulary, positions;
    int64_t window; /* tokens that one sees; 0: all */
    bool head_bias, attention_bias, mlp_bias, head_norms, head;
    model_rotary rotary;
} llama;

static smg_status read_heads(smg_context *ctx, const smg_model_source *source, llama *m) {
    const model_int kv = {"num_key_value_heads", m->heads, MODEL_MOST_HEADS, &m->kv_heads};
    SMG_TRY(smg_model_read_ints(ctx, source, &kv, 1));
    SMG_TRY(smg_model_check_multiple(ctx, "num_attention_heads", m->heads, "num_key_value_heads", m->kv_heads));
    SMG_TRY(source->get_int(source->user, "head_dim", 0, &m->dim));
    if (m->dim == 0) {
        SMG_TRY(smg_model_check_multiple(ctx, "hidden_size", m->hidden, "num_attention_heads", m->heads));
        m->dim = m->hidden / m->heads;
    }
    const model_int dim = {"head_dim", m->dim, MODEL_MOST_HEADS, &m->dim};
    return smg_model_read_ints(ctx, source, &dim, 1);
}

static smg_status read_config(smg_context *ctx, const smg_model_source *source, llama *m) {
    const model_int rows[] = {
        {"hidden_size", 4096, MODEL_MOST_WIDTH, &m->hidden},
        {"num_hidden_layers", 32, MODEL_MOST_LAYERS, &m->layers},
        {"num_attention_heads", 32, MODEL_MOST_HEADS, &m->heads},
        {"intermediate_size", 11008, (int64_t)MODEL_MOST_WIDTH * 16, &m->inner},
        {"vocab_size", 32000, MODEL_MOST_ROWS, &m->vocabulary},
        {"max_position_embeddings", 2048, MODEL_MOST_ROWS, &m->positions},
    };
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    SMG_TRY(read_heads(ctx, source, m));
    SMG_TRY(smg_model_read_eps(ctx, source, "rms_norm_eps", 1e-6, &m->part.eps));
    SMG_TRY(smg_model_read_activation(ctx, source, "hidden_act", "silu", &m->part.activation));
    SMG_TRY(source->get_bool(source->user, "attention_bias", false, &m->attention_bias));
    m->head_bias = m->head_bias || m->attention_bias;
    SMG_TRY(source->get_bool(source->user, "mlp_bias", false, &m->mlp_bias));
    SMG_TRY(smg_model_read_tied(&m->part, false));
    SMG_TRY(smg_model_architecture(source, "ForCausalLM", true, &m->head));
    m->rotary = (model_rotary){.dim = m->dim, .positions = m->positions};
    SMG_TRY(smg_model_read_rotary(ctx, source, &m->rotary));
    if (m->window > 0 && m->window < m->rotary.positions) m->rotary.positions = m->window;
    return SMG_OK;
}

static smg_status read_window(smg_context *ctx, const smg_model_source *source, llama *m) {
    SMG_TRY(source->get_int(source->user, "sliding_window", 0, &m->window));
    if (m->window >= 0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "sliding_window is %lld, must not be negative", (long long)m->window);
}

/* norm: of each head; NULL: none. */
static smg_value heads_of(llama *m, smg_value x, int layer, const char *tensor, int64_t heads, const char *norm,
                          const char *name) {
    model_builder *b = &m->part;
    const model_linear linear = {.scope = smg_model_text(b, "layers.%d.self_attn.%s", layer, tensor),
                                 .in = m->hidden,
                                 .out = heads * m->dim,
                                 .no_bias = !m->head_bias};
    smg_value y = smg_model_linear(b, x, &linear, name);
    y = smg_model_heads(b, y, "sequence", heads, m->dim, name);
    if (norm == NULL) return y;
    return smg_model_rms_norm(b, y, smg_model_text(b, "layers.%d.self_attn.%s", layer, norm), m->dim,
                              smg_model_text(b, "%s.norm", name));
}

static smg_value attention(llama *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const char *name = smg_model_text(b, "layer.%d", layer);
    const char *query = smg_model_text(b, "%s.query", name);
    const char *key = smg_model_text(b, "%s.key", name);
    const model_attention options = {.heads = m->heads,
                                     .kv_heads = m->kv_heads,
                                     .dim = m->dim,
                                     .queries = "sequence",
                                     .keys = "sequence",
                                     .scale = 1.0 / sqrt((double)m->dim),
                                     .causal = true,
                                     .name = name};
    const model_linear out = {.scope = smg_model_text(b, "layers.%d.self_attn.o_proj", layer),
                              .in = m->heads * m->dim,
                              .out = m->hidden,
                              .no_bias = !m->attention_bias};
    smg_value q = heads_of(m, x, layer, "q_proj", m->heads, m->head_norms ? "q_norm" : NULL, query);
    smg_value k = heads_of(m, x, layer, "k_proj", m->kv_heads, m->head_norms ? "k_norm" : NULL, key);
    smg_value v = heads_of(m, x, layer, "v_proj", m->kv_heads, NULL, smg_model_text(b, "%s.value", name));
    q = smg_model_rotate(b, &m->rotary, q, m->heads, query);
    k = smg_model_rotate(b, &m->rotary, k, m->kv_heads, key);
    return smg_model_linear(b, smg_model_attention(b, &options, q, k, v), &out,
                            smg_model_text(b, "%s.attention", name));
}

static model_linear mlp_part(llama *m, int layer, const char *tensor, bool back) {
    return (model_linear){.scope = smg_model_text(&m->part, "layers.%d.mlp.%s", layer, tensor),
                          .in = back ? m->inner : m->hidden,
                          .out = back ? m->hidden : m->inner,
                          .no_bias = !m->mlp_bias};
}

static smg_value decoder_layer(llama *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const char *name = smg_model_text(b, "layer.%d", layer);
    const model_linear gate = mlp_part(m, layer, "gate_proj", false);
    const model_linear inner = mlp_part(m, layer, "up_proj", false);
    const model_linear outer = mlp_part(m, layer, "down_proj", true);
    smg_value y = smg_model_rms_norm(b, x, smg_model_text(b, "layers.%d.input_layernorm", layer), m->hidden,
                                     smg_model_text(b, "%s.attention.norm", name));
    x = smg_model_map2(b, "add", attention(m, y, layer), x);
    smg_model_named(b, x, smg_model_text(b, "%s.attention.residual", name));
    y = smg_model_rms_norm(b, x, smg_model_text(b, "layers.%d.post_attention_layernorm", layer), m->hidden,
                           smg_model_text(b, "%s.norm", name));
    x = smg_model_map2(b, "add", smg_model_gated_mlp(b, y, &gate, &inner, &outer, name), x);
    return smg_model_named(b, x, smg_model_text(b, "%s.residual", name));
}

static void build(void *user) {
    llama *m = user;
    model_builder *b = &m->part;
    smg_model_find_prefix(b, "model.", "embed_tokens.weight");
    smg_value ids = smg_graph_input(b->g, "input_ids", "i32", "batch, sequence");
    smg_graph_set_max(b->g, "sequence", m->rotary.positions);
    smg_value words = smg_model_weight(b, "embed_tokens.weight", m->vocabulary, m->hidden);
    smg_value x = smg_model_named(b, smg_graph_gather(b->g, words, ids), "embeddings");
    smg_model_make_rotary(b, &m->rotary);
    for (int i = 0; i < m->layers; i++) x = decoder_layer(m, x, i);
    x = smg_model_rms_norm(b, x, "norm", m->hidden, "norm");
    if (m->head)
        smg_model_logits(b, x, words, m->vocabulary, m->hidden);
    else
        smg_graph_output(b->g, "last_hidden_state", x);
}

static smg_status build_as(smg_context *ctx, llama *m, const char *name, smg_graph **out) {
    SMG_TRY(read_config(ctx, m->part.source, m));
    return smg_model_finish(&m->part, ctx, name, build, m, out);
}

smg_status smg_model_build_llama(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    llama m = {.part = {.source = source}};
    return build_as(ctx, &m, "llama", out);
}

smg_status smg_model_build_mistral(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    llama m = {.part = {.source = source}};
    SMG_TRY(read_window(ctx, source, &m));
    return build_as(ctx, &m, "mistral", out);
}

static smg_status build_qwen(smg_context *ctx, const smg_model_source *source, bool third, smg_graph **out) {
    llama m = {.part = {.source = source}, .head_bias = !third, .head_norms = third};
    bool windows;
    SMG_TRY(source->get_bool(source->user, "use_sliding_window", false, &windows));
    if (windows) SMG_TRY(read_window(ctx, source, &m));
    return build_as(ctx, &m, third ? "qwen3" : "qwen2", out);
}

smg_status smg_model_build_qwen2(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    return build_qwen(ctx, source, false, out);
}

smg_status smg_model_build_qwen3(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    return build_qwen(ctx, source, true, out);
}
