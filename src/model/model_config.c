/* Reading a model's configuration: every number within bounds, every choice one that is here, or one
 * sentence with the key and the value. */
#include "model/model_private.h"

smg_status smg_model_read_ints(smg_context *ctx, const smg_model_source *source, const model_int *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const model_int *row = &rows[i];
        SMG_TRY(source->get_int(source->user, row->key, row->fallback, row->out));
        if (*row->out < 1 || *row->out > row->most)
            return smg_fail(ctx, SMG_FORMAT, "%s is %lld, must be in [1, %lld]", row->key, (long long)*row->out,
                            (long long)row->most);
    }
    return SMG_OK;
}

smg_status smg_model_check_multiple(smg_context *ctx, const char *whole_key, int64_t whole, const char *part_key,
                                    int64_t part) {
    if (whole % part == 0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "%s %lld is not a multiple of %s %lld", whole_key, (long long)whole, part_key,
                    (long long)part);
}

smg_status smg_model_read_eps(smg_context *ctx, const smg_model_source *source, const char *key, double fallback,
                              double *out_eps) {
    SMG_TRY(source->get_float(source->user, key, fallback, out_eps));
    if (*out_eps >= 0.0 && *out_eps < 1.0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "%s is %g, must be in [0, 1)", key, *out_eps);
}

static smg_status check_activation(smg_context *ctx, const char *key, const char *name) {
    if (smg_model_activation_known(name)) return SMG_OK;
    return smg_fail(ctx, SMG_UNSUPPORTED, "%s '%s' is not supported (%s are)", key, name, smg_model_activation_names());
}

smg_status smg_model_read_activation(smg_context *ctx, const smg_model_source *source, const char *key,
                                     const char *fallback, const char **out_name) {
    SMG_TRY(source->get_string(source->user, key, fallback, out_name));
    return check_activation(ctx, key, *out_name);
}

smg_status smg_model_refuse_bool(smg_context *ctx, const smg_model_source *source, const char *key, bool fallback,
                                 bool when) {
    bool value;
    SMG_TRY(source->get_bool(source->user, key, fallback, &value));
    if (value != when) return SMG_OK;
    return smg_fail(ctx, SMG_UNSUPPORTED, "%s %s is not supported (%s is)", key, value ? "true" : "false",
                    value ? "false" : "true");
}

smg_status smg_model_architecture(const smg_model_source *source, const char *word, bool fallback, bool *out_yes) {
    const char *name;
    SMG_TRY(source->get_string(source->user, "architectures.0", "", &name));
    *out_yes = name[0] == '\0' ? fallback : strstr(name, word) != NULL;
    return SMG_OK;
}

smg_status smg_model_read_tied(model_builder *b, bool fallback) {
    return b->source->get_bool(b->source->user, "tie_word_embeddings", fallback, &b->tied);
}

smg_status smg_model_finish(model_builder *b, smg_context *ctx, const char *name, void (*build)(void *user), void *user,
                            smg_graph **out_graph) {
    SMG_TRY(smg_graph_make(ctx, name, &b->g));
    smg_status status = smg_map_create(b->g->arena, &b->weights);
    if (status == SMG_OK) {
        build(user);
        smg_model_tell_wrong(b);
        status = smg_graph_finish(b->g);
    }
    if (status != SMG_OK)
        smg_graph_destroy(b->g);
    else
        *out_graph = b->g;
    return status;
}
