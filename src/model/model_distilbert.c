/* DistilBERT: BERT without token types, and with names of its own for everything. */
#include "model/model_private.h"

static const model_encoder_names names = {
    .query = "attention.q_lin",
    .key = "attention.k_lin",
    .value = "attention.v_lin",
    .attention = "attention.out_lin",
    .attention_norm = "sa_layer_norm",
    .inner = "ffn.lin1",
    .outer = "ffn.lin2",
    .norm = "output_layer_norm",
};

static smg_status read_config(smg_context *ctx, const smg_model_source *source, model_encoder *m) {
    const model_int rows[] = {
        {"dim", 768, MODEL_MOST_WIDTH, &m->hidden},
        {"n_layers", 6, MODEL_MOST_LAYERS, &m->layers},
        {"n_heads", 12, MODEL_MOST_HEADS, &m->heads},
        {"hidden_dim", 3072, (int64_t)MODEL_MOST_WIDTH * 16, &m->inner},
        {"vocab_size", 30522, MODEL_MOST_ROWS, &m->vocabulary},
        {"max_position_embeddings", 512, MODEL_MOST_ROWS, &m->positions},
    };
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    SMG_TRY(smg_model_check_multiple(ctx, "dim", m->hidden, "n_heads", m->heads));
    return smg_model_read_activation(ctx, source, "activation", "gelu", &m->part.activation);
}

static void build(void *user) {
    model_encoder *m = user;
    model_builder *b = &m->part;
    smg_model_find_prefix(b, "distilbert.", "embeddings.word_embeddings.weight");
    smg_model_encoder_inputs(m, m->positions);
    smg_value x = smg_model_encoder_embeddings(m, m->hidden, smg_model_encoder_places(m, m->hidden));
    for (int i = 0; i < m->layers; i++)
        x = smg_model_encoder_layer(m, x, smg_model_text(b, "transformer.layer.%d", i),
                                    smg_model_text(b, "layer.%d", i));
    smg_model_encoder_outputs(m, x);
}

smg_status smg_model_build_distilbert(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    model_encoder m = {.part = {.source = source, .eps = 1e-12}, .names = &names};
    SMG_TRY(read_config(ctx, source, &m));
    return smg_model_finish(&m.part, ctx, "distilbert", build, &m, out);
}
