/* BERT (MiniLM, BGE, E5, GTE are such) and RoBERTa: encoders with tables of words, token types and
 * positions. BERT counts positions from 0. RoBERTa counts the tokens that are not padding, from one
 * above the padding token's id, and gives padding the id itself as its position. */
#include "model/model_private.h"

static const model_encoder_names names = {
    .query = "attention.self.query",
    .key = "attention.self.key",
    .value = "attention.self.value",
    .attention = "attention.output.dense",
    .attention_norm = "attention.output.LayerNorm",
    .inner = "intermediate.dense",
    .outer = "output.dense",
    .norm = "output.LayerNorm",
};

typedef struct bert {
    model_encoder encoder;
    const char *base; /* prefix of checkpoints that hold more than the encoder */
    int64_t padding;  /* the padding token where it decides positions; -1: it does not */
} bert;

static smg_status read_config(smg_context *ctx, const smg_model_source *source, bert *m) {
    model_encoder *e = &m->encoder;
    const model_int rows[] = {
        {"hidden_size", 768, MODEL_MOST_WIDTH, &e->hidden},
        {"num_hidden_layers", 12, MODEL_MOST_LAYERS, &e->layers},
        {"num_attention_heads", 12, MODEL_MOST_HEADS, &e->heads},
        {"intermediate_size", 3072, (int64_t)MODEL_MOST_WIDTH * 16, &e->inner},
        {"vocab_size", m->padding < 0 ? 30522 : 50265, MODEL_MOST_ROWS, &e->vocabulary},
        {"type_vocab_size", 2, MODEL_MOST_WIDTH, &e->token_types},
        {"max_position_embeddings", 512, MODEL_MOST_ROWS, &e->positions},
    };
    const char *position_type;
    SMG_TRY(smg_model_read_ints(ctx, source, rows, SMG_COUNT_OF(rows)));
    SMG_TRY(smg_model_check_multiple(ctx, "hidden_size", e->hidden, "num_attention_heads", e->heads));
    SMG_TRY(smg_model_read_eps(ctx, source, "layer_norm_eps", 1e-12, &e->part.eps));
    SMG_TRY(smg_model_read_activation(ctx, source, "hidden_act", "gelu", &e->part.activation));
    SMG_TRY(smg_model_refuse_bool(ctx, source, "is_decoder", false, true));
    SMG_TRY(source->get_string(source->user, "position_embedding_type", "absolute", &position_type));
    if (strcmp(position_type, "absolute") == 0) return SMG_OK;
    return smg_fail(ctx, SMG_UNSUPPORTED, "position_embedding_type '%s' is not supported (absolute is)", position_type);
}

static smg_status read_padding(smg_context *ctx, const smg_model_source *source, bert *m) {
    const model_encoder *e = &m->encoder;
    SMG_TRY(source->get_int(source->user, "pad_token_id", 1, &m->padding));
    if (m->padding < 0 || m->padding >= e->vocabulary)
        return smg_fail(ctx, SMG_FORMAT, "pad_token_id is %lld, must be in [0, %lld)", (long long)m->padding,
                        (long long)e->vocabulary);
    if (m->padding + 1 < e->positions) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "max_position_embeddings %lld leaves no position above pad_token_id %lld",
                    (long long)e->positions, (long long)m->padding);
}

static smg_value counted_places(bert *m) {
    model_encoder *e = &m->encoder;
    model_builder *b = &e->part;
    smg_value valid = smg_model_map2(b, "ne", e->ids, smg_model_integer(b, m->padding));
    valid = smg_graph_cast(b->g, valid, "i32");
    smg_value count = smg_graph_cumsum(b->g, valid, 1, false, false);
    smg_model_named(b, count, "positions.count");
    count = smg_model_map2(b, "mul", count, valid);
    smg_value place = smg_model_map2(b, "add", count, smg_model_integer(b, m->padding));
    smg_model_named(b, place, "positions");
    return smg_model_lookup(b, "embeddings.position_embeddings.weight", e->positions, e->hidden, place);
}

static void build(void *user) {
    bert *m = user;
    model_encoder *e = &m->encoder;
    model_builder *b = &e->part;
    bool counted = m->padding >= 0;
    smg_model_find_prefix(b, m->base, "embeddings.word_embeddings.weight");
    smg_model_encoder_inputs(e, counted ? e->positions - m->padding - 1 : e->positions);
    smg_value place = counted ? counted_places(m) : smg_model_encoder_places(e, e->hidden);
    smg_value x = smg_model_encoder_embeddings(e, e->hidden, place);
    for (int i = 0; i < e->layers; i++)
        x = smg_model_encoder_layer(e, x, smg_model_text(b, "encoder.layer.%d", i), smg_model_text(b, "layer.%d", i));
    smg_model_encoder_outputs(e, x);
}

smg_status smg_model_build_bert(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    bert m = {.encoder = {.part = {.source = source}, .names = &names}, .base = "bert.", .padding = -1};
    SMG_TRY(read_config(ctx, source, &m));
    return smg_model_finish(&m.encoder.part, ctx, "bert", build, &m, out);
}

smg_status smg_model_build_roberta(smg_context *ctx, const smg_model_source *source, smg_graph **out) {
    bert m = {.encoder = {.part = {.source = source}, .names = &names}, .base = "roberta."};
    SMG_TRY(read_config(ctx, source, &m));
    SMG_TRY(read_padding(ctx, source, &m));
    return smg_model_finish(&m.encoder.part, ctx, "roberta", build, &m, out);
}
