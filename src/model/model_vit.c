/* ViT: an image cut into square patches, each a row of tokens after one linear layer, behind a learned
 * class token; learned positions; layers with a LayerNorm in front of attention and of the perceptron.
 * The image's size is fixed by the table of positions. */
#include "model/model_private.h"

#include <math.h>

typedef struct vit {
    model_builder part;
    int64_t hidden, layers, heads, inner, image, patch, channels;
    bool bias; /* of query, key and value */
    const char *tokens;
} vit;

static smg_status read_config(smg_context *ctx, const smg_model_source *source, vit *m) {
    const model_int rows[] = {
        {"hidden_size", 768, MODEL_MOST_WIDTH, &m->hidden},
        {"num_hidden_layers", 12, MODEL_MOST_LAYERS, &m->layers},
        {"num_attention_heads", 12, MODEL_MOST_HEADS, &m->heads},
        {"intermediate_size", 3072, (int64_t)MODEL_MOST_WIDTH * 16, &m->inner},
        {"image_size", 224, 1 << 15, &m->image},
        {"patch_size", 16, 1 << 15, &m->patch},
        {"num_channels", 3, 1 << 10, &m->channels},
    };
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    SMG_TRY(smg_model_check_multiple(ctx, "hidden_size", m->hidden, "num_attention_heads", m->heads));
    SMG_TRY(smg_model_check_multiple(ctx, "image_size", m->image, "patch_size", m->patch));
    SMG_TRY(smg_model_read_eps(ctx, source, "layer_norm_eps", 1e-12, &m->part.eps));
    SMG_TRY(smg_model_read_activation(ctx, source, "hidden_act", "gelu", &m->part.activation));
    return source->get_bool(source->user, "qkv_bias", true, &m->bias);
}

/* [batch, side * side, hidden]: a product over the channels and pixels of each patch, which are axes of
 * a reshaped image. */
static smg_value patches(vit *m, smg_value pixels) {
    model_builder *b = &m->part;
    static const char scope[] = "embeddings.patch_embeddings.projection";
    int64_t side = m->image / m->patch;
    const int64_t dims[4] = {m->hidden, m->channels, m->patch, m->patch};
    smg_value weight = smg_model_tensor(b, smg_model_text(b, "%s.weight", scope), 4, dims);
    smg_value bias = smg_model_weight(b, smg_model_text(b, "%s.bias", scope), m->hidden, 0);
    smg_value cut =
        smg_graph_reshape(b->g, pixels,
                          smg_model_text(b, "batch, %lld, %lld, %lld, %lld, %lld", (long long)m->channels,
                                         (long long)side, (long long)m->patch, (long long)side, (long long)m->patch));
    smg_value y = smg_graph_contract(b->g, "bcgphq,ocpq->bgho", cut, weight);
    smg_model_named(b, y, "embeddings.patches.product");
    y = smg_graph_reshape(b->g, y,
                          smg_model_text(b, "batch, %lld, %lld", (long long)(side * side), (long long)m->hidden));
    return smg_model_named(b, smg_model_map2(b, "add", y, bias), "embeddings.patches");
}

static smg_value embeddings(vit *m, smg_value pixels) {
    model_builder *b = &m->part;
    int64_t side = m->image / m->patch;
    const int64_t first[3] = {1, 1, m->hidden}, all[3] = {1, side * side + 1, m->hidden};
    smg_value token = smg_model_tensor(b, "embeddings.cls_token", 3, first);
    smg_value places = smg_model_tensor(b, "embeddings.position_embeddings", 3, all);
    token = smg_graph_broadcast(b->g, token, smg_model_dims(b, "1", m->hidden, 0));
    smg_value rows[2] = {token, patches(m, pixels)};
    smg_value x = smg_graph_concat(b->g, 2, rows, 1);
    smg_model_named(b, x, "embeddings.tokens");
    return smg_model_named(b, smg_model_map2(b, "add", x, places), "embeddings");
}

static smg_value heads_of(vit *m, smg_value x, int layer, const char *which) {
    model_builder *b = &m->part;
    const char *name = smg_model_text(b, "layer.%d.%s", layer, which);
    const model_linear linear = {.scope = smg_model_text(b, "encoder.layer.%d.attention.attention.%s", layer, which),
                                 .in = m->hidden,
                                 .out = m->hidden,
                                 .no_bias = !m->bias};
    smg_value y = smg_model_linear(b, x, &linear, name);
    return smg_model_heads(b, y, m->tokens, m->heads, m->hidden / m->heads, name);
}

static smg_value attention(vit *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    int64_t dim = m->hidden / m->heads;
    const char *name = smg_model_text(b, "layer.%d", layer);
    const model_attention options = {.heads = m->heads,
                                     .kv_heads = m->heads,
                                     .dim = dim,
                                     .queries = m->tokens,
                                     .keys = m->tokens,
                                     .scale = 1.0 / sqrt((double)dim),
                                     .name = name};
    const model_linear out = {.scope = smg_model_text(b, "encoder.layer.%d.attention.output.dense", layer),
                              .in = m->hidden,
                              .out = m->hidden};
    smg_value q = heads_of(m, x, layer, "query"), k = heads_of(m, x, layer, "key");
    smg_value v = heads_of(m, x, layer, "value");
    return smg_model_linear(b, smg_model_attention(b, &options, q, k, v), &out,
                            smg_model_text(b, "%s.attention", name));
}

static smg_value encoder_layer(vit *m, smg_value x, int layer) {
    model_builder *b = &m->part;
    const char *scope = smg_model_text(b, "encoder.layer.%d", layer);
    const char *name = smg_model_text(b, "layer.%d", layer);
    const model_linear inner = {
        .scope = smg_model_text(b, "%s.intermediate.dense", scope), .in = m->hidden, .out = m->inner};
    const model_linear outer = {.scope = smg_model_text(b, "%s.output.dense", scope), .in = m->inner, .out = m->hidden};
    smg_value y = smg_model_layer_norm(b, x, smg_model_text(b, "%s.layernorm_before", scope), m->hidden,
                                       smg_model_text(b, "%s.attention.norm", name));
    x = smg_model_map2(b, "add", attention(m, y, layer), x);
    smg_model_named(b, x, smg_model_text(b, "%s.attention.residual", name));
    y = smg_model_layer_norm(b, x, smg_model_text(b, "%s.layernorm_after", scope), m->hidden,
                             smg_model_text(b, "%s.norm", name));
    x = smg_model_map2(b, "add", smg_model_mlp(b, y, &inner, &outer, name), x);
    return smg_model_named(b, x, smg_model_text(b, "%s.residual", name));
}

static void build(void *user) {
    vit *m = user;
    model_builder *b = &m->part;
    int64_t side = m->image / m->patch;
    smg_model_find_prefix(b, "vit.", "embeddings.cls_token");
    m->tokens = smg_model_text(b, "%lld", (long long)(side * side + 1));
    smg_value pixels = smg_graph_input(
        b->g, "pixel_values", "f32",
        smg_model_text(b, "batch, %lld, %lld, %lld", (long long)m->channels, (long long)m->image, (long long)m->image));
    smg_value x = embeddings(m, pixels);
    for (int i = 0; i < m->layers; i++) x = encoder_layer(m, x, i);
    smg_graph_output(b->g, "last_hidden_state", smg_model_layer_norm(b, x, "layernorm", m->hidden, "norm"));
}

smg_status smg_model_build_vit(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    vit m = {.part = {.source = source}};
    SMG_TRY(read_config(ctx, source, &m));
    return smg_model_finish(&m.part, ctx, "vit", build, &m, out);
}
