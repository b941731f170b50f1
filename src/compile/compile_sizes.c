/* compile_sizes.c: names of symbolic sizes to values.
 *
 * Values come from three places: options (--dim), the dims of the arrays of a run (bundle/interface.h), and the
 * planner's nominal sizes where neither says anything. What a caller's description says is checked here too. */
#include "compile/compile.h"

smg_status smg_sizes_limit(smg_context *ctx, smg_sizes *sizes, const smg_dim *dims, int count) {
    for (int i = 0; i < count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(ctx, sizes, dims[i].name, &symbol));
        int64_t max = smg_size_symbol_max(sizes, symbol);
        if (dims[i].value < 1 || dims[i].value > max) {
            return smg_fail(ctx, SMG_INVALID, "maximum %lld of %s must be in [1, %lld]", (long long)dims[i].value,
                            dims[i].name, (long long)max);
        }
        smg_size_symbol_set_max(sizes, symbol, dims[i].value);
    }
    return SMG_OK;
}

smg_status smg_sizes_choose(smg_context *ctx, const smg_graph *g, const smg_dim *dims, int count, int64_t *out_values) {
    smg_plan_nominal(g, out_values);
    return smg_sizes_give(ctx, g->sizes, dims, count, out_values);
}

static smg_status check_names(smg_context *ctx, const char *what, const smg_dim *dims, int count) {
    if (count < 0 || (dims == NULL && count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d %s, %s", count, what,
                        count < 0 ? "less than none" : "whose array is NULL");
    for (int i = 0; i < count; i++)
        if (dims[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %s[%d] has no name", what, i);
    return SMG_OK;
}

static smg_status check_goal(smg_context *ctx, const smg_model_desc *desc) {
    if (desc->max_memory < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: max_memory is %lld, less than 0",
                        (long long)desc->max_memory);
    if (desc->max_fused_ops < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: max_fused_ops is %d, less than 0", desc->max_fused_ops);
    if (desc->max_fused_products < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: max_fused_products is %d, less than 0",
                        desc->max_fused_products);
    if (!(desc->min_gain >= 0 && desc->min_gain < 100))
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: min_gain is %g, which is no share in percent below 100",
                        desc->min_gain);
    if (desc->goal == SMG_GOAL_TIME || desc->goal == SMG_GOAL_DISPATCHES || desc->goal == SMG_GOAL_MEMORY)
        return SMG_OK;
    return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d is no goal", (int)desc->goal);
}

smg_status smg_desc_check(smg_context *ctx, const smg_model_desc *desc) {
    SMG_TRY(check_names(ctx, "dims", desc->dims, desc->dim_count));
    SMG_TRY(check_names(ctx, "max_dims", desc->max_dims, desc->max_dim_count));
    smg_type precision;
    SMG_TRY(smg_precision_find(ctx, desc->precision, &precision));
    if (desc->range_count < 0 || (desc->ranges == NULL && desc->range_count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d ranges, %s", desc->range_count,
                        desc->range_count < 0 ? "less than none" : "whose array is NULL");
    for (int i = 0; i < desc->range_count; i++)
        if (desc->ranges[i].name == NULL)
            return smg_fail(ctx, SMG_INVALID, "smg_model_desc: ranges[%d] has no name", i);
    if (desc->sample_count < 0 || (desc->samples == NULL && desc->sample_count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d samples, %s", desc->sample_count,
                        desc->sample_count < 0 ? "less than none" : "whose array is NULL");
    if (desc->memory_bytes < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: memory of %lld bytes", (long long)desc->memory_bytes);
    if (desc->rank < 0) return smg_fail(ctx, SMG_INVALID, "smg_model_desc: rank is %d, less than 0", desc->rank);
    return check_goal(ctx, desc);
}

smg_status smg_model_desc_check(smg_context *ctx, const smg_model_desc *desc) {
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, desc != NULL ? smg_desc_check(ctx, desc) : SMG_OK);
}

smg_status smg_tensor_sizes(smg_context *ctx, const smg_graph *g, const smg_tensor *inputs, int count,
                            const int64_t *defaults, int64_t *out_values) {
    smg_arena *scratch = NULL;
    smg_interface *interface = NULL;
    SMG_TRY(smg_arena_create(ctx, &scratch));
    smg_status status = smg_compile_interface(scratch, g, NULL, &interface);
    if (status == SMG_OK) status = smg_interface_sizes(ctx, interface, inputs, count, defaults, out_values);
    smg_arena_destroy(scratch);
    return status;
}
