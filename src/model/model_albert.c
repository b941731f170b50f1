/* ALBERT: BERT with narrow embeddings that one linear layer widens, and with layers that share their
 * weights: the layers fall into groups, and those of one group run the same inner layers. */
#include "model/model_private.h"

static const model_encoder_names names = {
    .query = "attention.query",
    .key = "attention.key",
    .value = "attention.value",
    .attention = "attention.dense",
    .attention_norm = "attention.LayerNorm",
    .inner = "ffn",
    .outer = "ffn_output",
    .norm = "full_layer_layer_norm",
};

typedef struct albert {
    model_encoder encoder;
    int64_t width; /* of the embeddings */
    int64_t groups, inner_layers;
} albert;

static smg_status read_config(smg_context *ctx, const smg_model_source *source, albert *m) {
    model_encoder *e = &m->encoder;
    const model_int rows[] = {
        {"embedding_size", 128, MODEL_MOST_WIDTH, &m->width},
        {"hidden_size", 4096, MODEL_MOST_WIDTH, &e->hidden},
        {"num_hidden_layers", 12, MODEL_MOST_LAYERS, &e->layers},
        {"num_hidden_groups", 1, MODEL_MOST_LAYERS, &m->groups},
        {"inner_group_num", 1, MODEL_MOST_LAYERS, &m->inner_layers},
        {"num_attention_heads", 64, MODEL_MOST_HEADS, &e->heads},
        {"intermediate_size", 16384, (int64_t)MODEL_MOST_WIDTH * 16, &e->inner},
        {"vocab_size", 30000, MODEL_MOST_ROWS, &e->vocabulary},
        {"type_vocab_size", 2, MODEL_MOST_WIDTH, &e->token_types},
        {"max_position_embeddings", 512, MODEL_MOST_ROWS, &e->positions},
    };
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    SMG_TRY(smg_model_check_multiple(ctx, "hidden_size", e->hidden, "num_attention_heads", e->heads));
    if (m->groups > e->layers)
        return smg_fail(ctx, SMG_FORMAT, "num_hidden_groups %lld is above num_hidden_layers %lld", (long long)m->groups,
                        (long long)e->layers);
    SMG_TRY(smg_model_read_eps(ctx, source, "layer_norm_eps", 1e-12, &e->part.eps));
    return smg_model_read_activation(ctx, source, "hidden_act", "gelu_new", &e->part.activation);
}

static smg_value layers(albert *m, smg_value x) {
    model_builder *b = &m->encoder.part;
    for (int64_t i = 0; i < m->encoder.layers; i++) {
        long long group = (long long)(i * m->groups / m->encoder.layers);
        for (int k = 0; k < m->inner_layers; k++)
            x = smg_model_encoder_layer(
                &m->encoder, x, smg_model_text(b, "encoder.albert_layer_groups.%lld.albert_layers.%d", group, k),
                smg_model_text(b, "layer.%lld.%d", (long long)i, k));
    }
    return x;
}

static void build(void *user) {
    albert *m = user;
    model_encoder *e = &m->encoder;
    model_builder *b = &e->part;
    smg_model_find_prefix(b, "albert.", "embeddings.word_embeddings.weight");
    smg_model_encoder_inputs(e, e->positions);
    smg_value x = smg_model_encoder_embeddings(e, m->width, smg_model_encoder_places(e, m->width));
    const model_linear widen = {.scope = "encoder.embedding_hidden_mapping_in", .in = m->width, .out = e->hidden};
    x = layers(m, smg_model_linear(b, x, &widen, "embeddings.hidden"));
    smg_model_encoder_outputs(e, x);
}

smg_status smg_model_build_albert(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    albert m = {.encoder = {.part = {.source = source}, .names = &names}};
    SMG_TRY(read_config(ctx, source, &m));
    return smg_model_finish(&m.encoder.part, ctx, "albert", build, &m, out);
}
