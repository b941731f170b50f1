/* Rotary positions: pairs of elements of a head are turned by an angle that grows with the position. The
 * pairs are (i, i + dim / 2), so the partner of a half is the other half: a view that runs backwards
 * over an axis of two. Angles are rounded to float where Hugging Face rounds them; cosines and sines
 * stand in tables, because devices promise little about sin of large numbers. */
#include "model/model_private.h"

#include <math.h>

enum { MOST_POSITIONS = 32768 }; /* rows of the tables: longer rows are not for a model without cache */

/* The key within rope_parameters (new files) or rope_scaling (older ones). */
static smg_status read_scaling(const smg_model_source *source, const char *new_key, const char *old_key,
                               double fallback, double *out) {
    SMG_TRY(source->get_float(source->user, old_key, fallback, out));
    return source->get_float(source->user, new_key, *out, out);
}

static smg_status read_type(const smg_model_source *source, const char **out_type) {
    SMG_TRY(source->get_string(source->user, "rope_scaling.type", "default", out_type));
    SMG_TRY(source->get_string(source->user, "rope_scaling.rope_type", *out_type, out_type));
    return source->get_string(source->user, "rope_parameters.rope_type", *out_type, out_type);
}

static smg_status check_positive(smg_context *ctx, const char *key, double value) {
    if (value > 0.0 && value <= 1e30) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "%s of the rotary positions is %g, must be in (0, 1e30]", key, value);
}

static smg_status read_llama3(smg_context *ctx, const smg_model_source *source, model_rotary *r) {
    double old = 0.0;
    SMG_TRY(
        read_scaling(source, "rope_parameters.low_freq_factor", "rope_scaling.low_freq_factor", 0.0, &r->low_factor));
    SMG_TRY(read_scaling(source, "rope_parameters.high_freq_factor", "rope_scaling.high_freq_factor", 0.0,
                         &r->high_factor));
    SMG_TRY(read_scaling(source, "rope_parameters.original_max_position_embeddings",
                         "rope_scaling.original_max_position_embeddings", (double)r->positions, &old));
    SMG_TRY(check_positive(ctx, "low_freq_factor", r->low_factor));
    SMG_TRY(check_positive(ctx, "original_max_position_embeddings", old));
    r->old_positions = old < 1e15 ? (int64_t)old : INT64_C(1000000000000000);
    if (r->high_factor > r->low_factor && r->high_factor <= 1e30) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT,
                    "high_freq_factor of the rotary positions is %g, must be above "
                    "low_freq_factor %g",
                    r->high_factor, r->low_factor);
}

smg_status smg_model_read_rotary(smg_context *ctx, const smg_model_source *source, model_rotary *r) {
    double share = 1.0;
    if (r->dim % 2 != 0)
        return smg_fail(ctx, SMG_FORMAT, "head_dim is %lld, rotary positions take an even one", (long long)r->dim);
    if (r->positions > MODEL_MOST_TOKENS) r->positions = MODEL_MOST_TOKENS;
    SMG_TRY(read_scaling(source, "rope_parameters.rope_theta", "rope_theta", 10000.0, &r->theta));
    SMG_TRY(check_positive(ctx, "rope_theta", r->theta));
    SMG_TRY(read_scaling(source, "rope_parameters.partial_rotary_factor", "partial_rotary_factor", 1.0, &share));
    if (share < 1.0 || share > 1.0)
        return smg_fail(ctx, SMG_UNSUPPORTED, "partial_rotary_factor %g is not supported (1 is)", share);
    SMG_TRY(read_type(source, &r->type));
    if (strcmp(r->type, "default") == 0) return SMG_OK;
    bool llama3 = strcmp(r->type, "llama3") == 0;
    if (!llama3 && strcmp(r->type, "linear") != 0)
        return smg_fail(ctx, SMG_UNSUPPORTED, "rope_type %s is not supported (default linear llama3 are)", r->type);
    SMG_TRY(read_scaling(source, "rope_parameters.factor", "rope_scaling.factor", 0.0, &r->factor));
    SMG_TRY(check_positive(ctx, "factor", r->factor));
    return llama3 ? read_llama3(ctx, source, r) : SMG_OK;
}

/* Long wavelengths are stretched by the factor, short ones stay, those between are mixed. */
static double scale_llama3(const model_rotary *r, double frequency) {
    double turns = (double)r->old_positions * frequency / (2.0 * acos(-1.0));
    double slow = frequency / r->factor;
    if (turns < r->low_factor) return slow;
    if (turns > r->high_factor) return frequency;
    double share = (turns - r->low_factor) / (r->high_factor - r->low_factor);
    return (1.0 - share) * slow + share * frequency;
}

static float frequency_of(const model_rotary *r, int64_t pair) {
    double frequency = 1.0 / pow(r->theta, (double)(2 * pair) / (double)r->dim);
    if (strcmp(r->type, "linear") == 0) frequency /= r->factor;
    if (strcmp(r->type, "llama3") == 0) frequency = scale_llama3(r, frequency);
    return (float)frequency;
}

/* The first `sequence` rows of a table [positions, halves, dim / 2], with an axis for heads. */
static smg_value rows_of(model_builder *b, const model_rotary *r, const float *table, int halves, const char *name) {
    long long half = (long long)(r->dim / 2);
    const char *dims = smg_model_text(b, "%lld, %d, %lld", (long long)r->positions, halves, half);
    smg_value rows = smg_graph_constant(b->g, name, "f32", dims, table);
    rows = smg_graph_slice(b->g, rows, 0, "0", "sequence", 1);
    rows = smg_graph_reshape(b->g, rows, smg_model_text(b, "sequence, 1, %d, %lld", halves, half));
    return smg_model_named(b, rows, smg_model_text(b, "%s.rows", name));
}

/* Queries and keys read the same tables at positions of their own, so the tables are plain memory: the
 * sign of the first half's sine is in them. */
void smg_model_make_rotary(model_builder *b, model_rotary *r) {
    int64_t half = r->dim / 2;
    if (b->g->status != SMG_OK) return;
    float *cosines = SMG_ARENA_ARRAY(b->g->arena, float, (size_t)(r->positions * half));
    float *sines = SMG_ARENA_ARRAY(b->g->arena, float, (size_t)(r->positions * r->dim));
    if (cosines == NULL || sines == NULL) {
        smg_model_fail(b, SMG_MEMORY);
        return;
    }
    for (int64_t pair = 0; pair < half; pair++) {
        float frequency = frequency_of(r, pair);
        for (int64_t at = 0; at < r->positions; at++) {
            float angle = (float)at * frequency;
            float sine = (float)sin((double)angle);
            cosines[at * half + pair] = (float)cos((double)angle);
            sines[at * r->dim + pair] = -sine;
            sines[at * r->dim + half + pair] = sine;
        }
    }
    r->cos = rows_of(b, r, cosines, 1, "rotary.cos");
    r->sin = rows_of(b, r, sines, 2, "rotary.sin");
}

smg_value smg_model_rotate(model_builder *b, const model_rotary *r, smg_value x, int64_t heads, const char *name) {
    const char *halves = smg_model_text(b, "batch, sequence, %lld, 2, %lld", (long long)heads, (long long)(r->dim / 2));
    x = smg_graph_reshape(b->g, x, halves);
    smg_value other = smg_graph_slice(b->g, x, 3, "1", "2", -1);
    smg_value turned =
        smg_model_map2(b, "add", smg_model_map2(b, "mul", x, r->cos), smg_model_map2(b, "mul", other, r->sin));
    smg_model_named(b, turned, smg_model_text(b, "%s.turned", name));
    return smg_graph_reshape(b->g, turned, smg_model_dims(b, "sequence", heads, r->dim));
}
