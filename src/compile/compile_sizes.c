/* compile_sizes.c: names of symbolic sizes to values.
 *
 * Values come from three places: options (--dim), the dims of the arrays of a run, and the planner's
 * nominal sizes where neither says anything. What a caller's description says is checked here too. */
#include "compile/compile.h"

smg_status smg_sizes_find(smg_context *ctx, const smg_sizes *sizes, const char *name, int *out_symbol) {
    *out_symbol = smg_size_symbol_find(sizes, name);
    if (*out_symbol >= 0) return SMG_OK;
    smg_text names;
    smg_text_init(&names, ctx);
    for (int i = 0; i < smg_size_symbol_count(sizes); i++) {
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", smg_size_symbol_name(sizes, i));
    }
    smg_status status = smg_fail(ctx, SMG_NOT_FOUND, "the model has no size '%s'; it has: %s", name,
                                 names.length > 0 ? smg_text_cstr(&names) : "none");
    smg_text_free(&names);
    return status;
}

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
    for (int i = 0; i < count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(ctx, g->sizes, dims[i].name, &symbol));
        int64_t max = smg_size_symbol_max(g->sizes, symbol);
        if (dims[i].value < 1 || dims[i].value > max) {
            return smg_fail(ctx, SMG_INVALID, "%s is %lld, it must be in [1, %lld]", dims[i].name,
                            (long long)dims[i].value, (long long)max);
        }
        out_values[symbol] = dims[i].value;
    }
    return SMG_OK;
}

static smg_status check_names(smg_context *ctx, const char *what, const smg_dim *dims, int count) {
    if (count < 0 || (dims == NULL && count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d %s, %s", count, what,
                        count < 0 ? "less than none" : "whose array is NULL");
    for (int i = 0; i < count; i++)
        if (dims[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %s[%d] has no name", what, i);
    return SMG_OK;
}

smg_status smg_model_desc_check(smg_context *ctx, const smg_model_desc *desc) {
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
    if (desc->rank < 0) return smg_fail(ctx, SMG_INVALID, "smg_model_desc: rank is %d, less than 0", desc->rank);
    if (desc->goal == SMG_GOAL_TIME || desc->goal == SMG_GOAL_DISPATCHES) return SMG_OK;
    return smg_fail(ctx, SMG_INVALID, "smg_model_desc: %d is no goal", (int)desc->goal);
}

static const smg_tensor *find_tensor(const smg_tensor *tensors, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (tensors[i].name != NULL && strcmp(tensors[i].name, name) == 0) return &tensors[i];
    }
    return NULL;
}

/* A dim that is a plain symbol gives it its value; *set marks symbols that have one. */
static smg_status read_dims(smg_context *ctx, const smg_graph *g, const smg_node *node, const smg_tensor *tensor,
                            int64_t *values) {
    if (tensor->rank != node->rank) {
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %d axes, %d were given", node->name, node->rank,
                        tensor->rank);
    }
    for (int d = 0; d < node->rank; d++) {
        for (int symbol = 0; symbol < smg_size_symbol_count(g->sizes); symbol++) {
            const char *name = smg_size_symbol_name(g->sizes, symbol);
            if (node->dims[d] != smg_size_symbol(g->sizes, name)) continue;
            int64_t max = smg_size_symbol_max(g->sizes, symbol);
            if (tensor->dims[d] < 1 || tensor->dims[d] > max) {
                return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d (%s) is %lld, it must be in [1, %lld]",
                                node->name, d, name, (long long)tensor->dims[d], (long long)max);
            }
            if (values[symbol] != 0 && values[symbol] != tensor->dims[d]) {
                return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d (%s) is %lld, another input has %lld",
                                node->name, d, name, (long long)tensor->dims[d], (long long)values[symbol]);
            }
            values[symbol] = tensor->dims[d];
        }
    }
    return SMG_OK;
}

#define MOST_SOLVED 64 /* symbols of a graph up to which dims are solved: a set of them is one word */

/* Dims such as 2*s or s+1 give s its value where no plain dim did; what does not come out is left to the check. Unknown
 * symbols stand at 1 meanwhile: a run allocates nothing. */
static void solve_dims(const smg_graph *g, const smg_node *node, const smg_tensor *tensor, int64_t *values,
                       uint64_t *io_unknown) {
    for (int d = 0; d < node->rank; d++) {
        int moving = 0, last = -1;
        int64_t at_one, at_two, slope = 0;
        if (!smg_size_eval(g->sizes, node->dims[d], values, &at_one)) continue;
        for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
            if (!(*io_unknown >> i & 1)) continue;
            values[i] = 2;
            bool known = smg_size_eval(g->sizes, node->dims[d], values, &at_two);
            values[i] = 1;
            if (!known || at_two == at_one) continue;
            moving++;
            last = i;
            slope = at_two - at_one;
        }
        if (moving != 1 || (tensor->dims[d] - at_one) % slope != 0) continue;
        int64_t value = 1 + (tensor->dims[d] - at_one) / slope;
        if (value < 1 || value > smg_size_symbol_max(g->sizes, last)) continue;
        values[last] = value;
        *io_unknown &= ~(UINT64_C(1) << last);
    }
}

/* Values for what no plain dim gave: from other dims, else the defaults. */
static void fill_unknown(const smg_graph *g, const smg_tensor *inputs, int count, const int64_t *defaults,
                         int64_t *values) {
    int symbols = smg_size_symbol_count(g->sizes);
    uint64_t unknown = 0;
    for (int i = 0; i < symbols && symbols <= MOST_SOLVED; i++) {
        if (values[i] != 0) continue;
        unknown |= UINT64_C(1) << i;
        values[i] = 1;
    }
    for (smg_node_id id = 0; unknown != 0 && id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        const smg_tensor *tensor = smg_node_is_input(node) ? find_tensor(inputs, count, node->name) : NULL;
        if (tensor != NULL && tensor->rank == node->rank) solve_dims(g, node, tensor, values, &unknown);
    }
    for (int i = 0; i < symbols; i++) {
        bool given = symbols <= MOST_SOLVED ? !(unknown >> i & 1) : values[i] != 0;
        if (!given) values[i] = defaults != NULL ? defaults[i] : 1;
    }
}

static smg_status check_dims(smg_context *ctx, const smg_graph *g, const smg_node *node, const smg_tensor *tensor,
                             const int64_t *values) {
    for (int d = 0; d < node->rank; d++) {
        int64_t want = 0;
        if (!smg_size_eval(g->sizes, node->dims[d], values, &want) || want != tensor->dims[d]) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d is %lld, it must be %lld", node->name, d,
                            (long long)tensor->dims[d], (long long)want);
        }
    }
    return SMG_OK;
}

smg_status smg_tensor_sizes(smg_context *ctx, const smg_graph *g, const smg_tensor *inputs, int count,
                            const int64_t *defaults, int64_t *out_values) {
    int symbols = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < symbols; i++) out_values[i] = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        const smg_tensor *tensor = find_tensor(inputs, count, node->name);
        if (tensor != NULL) SMG_TRY(read_dims(ctx, g, node, tensor, out_values));
    }
    fill_unknown(g, inputs, count, defaults, out_values);
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        const smg_tensor *tensor = find_tensor(inputs, count, node->name);
        if (tensor != NULL) SMG_TRY(check_dims(ctx, g, node, tensor, out_values));
    }
    return SMG_OK;
}
