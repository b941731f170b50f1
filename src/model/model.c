/* The one table of model types: what config.json calls a model, who builds it, and whether a row of text
 * has an embedding in it. */
#include "model/model_private.h"

static const struct family {
    const char *type;
    smg_status (*build)(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph);
    bool pools;
} families[] = {
    {"albert", smg_model_build_albert, true},
    {"bert", smg_model_build_bert, true},
    {"camembert", smg_model_build_roberta, true},
    {"distilbert", smg_model_build_distilbert, true},
    {"gpt2", smg_model_build_gpt2, false},
    {"llama", smg_model_build_llama, false},
    {"mistral", smg_model_build_mistral, false},
    {"qwen2", smg_model_build_qwen2, false},
    {"qwen3", smg_model_build_qwen3, false},
    {"roberta", smg_model_build_roberta, true},
    {"t5", smg_model_build_t5, false},
    {"vit", smg_model_build_vit, false},
    {"xlm-roberta", smg_model_build_roberta, true},
};

static const struct family *find_family(const char *type) {
    for (size_t i = 0; i < SMG_COUNT_OF(families); i++)
        if (strcmp(families[i].type, type) == 0) return &families[i];
    return NULL;
}

bool smg_model_input_default(const char *name, int64_t *out_value) {
    bool mask = strcmp(name, "attention_mask") == 0;
    *out_value = mask ? 1 : 0;
    return mask || strcmp(name, "token_type_ids") == 0;
}

static smg_status unknown_type(smg_context *ctx, const char *type) {
    smg_text names;
    smg_text_init(&names, ctx);
    for (size_t i = 0; i < SMG_COUNT_OF(families); i++)
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", families[i].type);
    smg_status status =
        smg_fail(ctx, SMG_UNSUPPORTED, "model_type '%s' is not supported; smg knows: %s", type, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

static smg_status without_embedding(smg_context *ctx, const char *type) {
    smg_text names;
    smg_text_init(&names, ctx);
    for (size_t i = 0; i < SMG_COUNT_OF(families); i++)
        if (families[i].pools) smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", families[i].type);
    smg_status status = smg_fail(ctx, SMG_UNSUPPORTED, "model_type '%s' gives no sentence embedding; these do: %s",
                                 type, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

smg_status smg_model_build(smg_context *ctx, const smg_model_source *source, smg_graph **out_graph) {
    const char *type;
    *out_graph = NULL;
    SMG_TRY(source->get_string(source->user, "model_type", "", &type));
    if (type[0] == '\0') return smg_fail(ctx, SMG_FORMAT, "the configuration has no model_type");
    const struct family *family = find_family(type);
    if (family == NULL) return unknown_type(ctx, type);
    if (source->embedding_only && !family->pools) return without_embedding(ctx, type);
    return family->build(ctx, source, out_graph);
}
