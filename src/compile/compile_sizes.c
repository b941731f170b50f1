/* compile_sizes.c: names of symbolic sizes to values.
 *
 * Values come from three places: options (--dim), the dims of the arrays of a run, and the planner's
 * nominal sizes where neither says anything. */
#include "compile/compile.h"

static smg_status find_symbol(smg_context *ctx, const smg_sizes *sizes, const char *name,
                              int *out_symbol) {
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
        SMG_TRY(find_symbol(ctx, sizes, dims[i].name, &symbol));
        int64_t max = smg_size_symbol_max(sizes, symbol);
        if (dims[i].value < 1 || dims[i].value > max) {
            return smg_fail(ctx, SMG_INVALID, "maximum %lld of %s must be in [1, %lld]",
                            (long long)dims[i].value, dims[i].name, (long long)max);
        }
        smg_size_symbol_set_max(sizes, symbol, dims[i].value);
    }
    return SMG_OK;
}

smg_status smg_sizes_choose(smg_context *ctx, const smg_graph *g, const smg_dim *dims, int count,
                            int64_t *out_values) {
    smg_plan_nominal(g, out_values);
    for (int i = 0; i < count; i++) {
        int symbol = 0;
        SMG_TRY(find_symbol(ctx, g->sizes, dims[i].name, &symbol));
        int64_t max = smg_size_symbol_max(g->sizes, symbol);
        if (dims[i].value < 1 || dims[i].value > max) {
            return smg_fail(ctx, SMG_INVALID, "%s is %lld, it must be in [1, %lld]", dims[i].name,
                            (long long)dims[i].value, (long long)max);
        }
        out_values[symbol] = dims[i].value;
    }
    return SMG_OK;
}

static const smg_tensor *find_tensor(const smg_tensor *tensors, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (tensors[i].name != NULL && strcmp(tensors[i].name, name) == 0) return &tensors[i];
    }
    return NULL;
}

/* A dim that is a plain symbol gives it its value; *set marks symbols that have one. */
static smg_status read_dims(smg_context *ctx, const smg_graph *g, const smg_node *node,
                            const smg_tensor *tensor, int64_t *values) {
    if (tensor->rank != node->rank) {
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %d axes, %d were given", node->name,
                        node->rank, tensor->rank);
    }
    for (int d = 0; d < node->rank; d++) {
        for (int symbol = 0; symbol < smg_size_symbol_count(g->sizes); symbol++) {
            const char *name = smg_size_symbol_name(g->sizes, symbol);
            if (node->dims[d] != smg_size_symbol(g->sizes, name)) continue;
            int64_t max = smg_size_symbol_max(g->sizes, symbol);
            if (tensor->dims[d] < 1 || tensor->dims[d] > max) {
                return smg_fail(ctx, SMG_INVALID,
                                "input '%s': axis %d (%s) is %lld, it must be in [1, %lld]",
                                node->name, d, name, (long long)tensor->dims[d], (long long)max);
            }
            if (values[symbol] != 0 && values[symbol] != tensor->dims[d]) {
                return smg_fail(
                    ctx, SMG_INVALID, "input '%s': axis %d (%s) is %lld, another input has %lld",
                    node->name, d, name, (long long)tensor->dims[d], (long long)values[symbol]);
            }
            values[symbol] = tensor->dims[d];
        }
    }
    return SMG_OK;
}

/* The dim with every symbol that has no value yet at 1, but for `symbol`. */
static bool probe(const smg_graph *g, smg_size dim, const int64_t *values, int64_t *scratch, int symbol,
                  int64_t value, int64_t *out) {
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) scratch[i] = values[i] > 0 ? values[i] : 1;
    if (symbol >= 0) scratch[symbol] = value;
    return smg_size_eval(g->sizes, dim, scratch, out);
}

/* Dims such as 2*s or s+1 give s its value where no plain dim did; what does not come out is left to the check. */
static void solve_dims(const smg_graph *g, const smg_node *node, const smg_tensor *tensor, int64_t *values,
                       int64_t *scratch) {
    for (int d = 0; d < node->rank; d++) {
        int unknown = -1, moving = 0;
        int64_t at_one, at_two, slope = 0;
        if (!probe(g, node->dims[d], values, scratch, -1, 0, &at_one)) continue;
        for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
            if (values[i] != 0 || !probe(g, node->dims[d], values, scratch, i, 2, &at_two)) continue;
            if (at_two == at_one) continue;
            moving++;
            unknown = i;
            slope = at_two - at_one;
        }
        if (moving != 1 || (tensor->dims[d] - at_one) % slope != 0) continue;
        int64_t value = 1 + (tensor->dims[d] - at_one) / slope;
        if (value >= 1 && value <= smg_size_symbol_max(g->sizes, unknown)) values[unknown] = value;
    }
}

static smg_status check_dims(smg_context *ctx, const smg_graph *g, const smg_node *node,
                             const smg_tensor *tensor, const int64_t *values) {
    for (int d = 0; d < node->rank; d++) {
        int64_t want = 0;
        if (!smg_size_eval(g->sizes, node->dims[d], values, &want) || want != tensor->dims[d]) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d is %lld, it must be %lld",
                            node->name, d, (long long)tensor->dims[d], (long long)want);
        }
    }
    return SMG_OK;
}

smg_status smg_tensor_sizes(smg_context *ctx, const smg_graph *g, const smg_tensor *inputs,
                            int count, const int64_t *defaults, int64_t *out_values) {
    int symbols = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < symbols; i++) out_values[i] = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        const smg_tensor *tensor = find_tensor(inputs, count, node->name);
        if (tensor != NULL) SMG_TRY(read_dims(ctx, g, node, tensor, out_values));
    }
    bool open = false;
    for (int i = 0; i < symbols; i++) open = open || out_values[i] == 0;
    int64_t *scratch = open ? smg_alloc(ctx, (size_t)symbols + 1, sizeof(int64_t)) : NULL;
    if (open && scratch == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; open && id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        const smg_tensor *tensor = smg_node_is_input(node) ? find_tensor(inputs, count, node->name) : NULL;
        if (tensor != NULL && tensor->rank == node->rank) solve_dims(g, node, tensor, out_values, scratch);
    }
    if (open) smg_free(ctx, scratch, ((size_t)symbols + 1) * sizeof(int64_t));
    for (int i = 0; i < symbols; i++) {
        if (out_values[i] == 0) out_values[i] = defaults != NULL ? defaults[i] : 1;
    }
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        const smg_tensor *tensor = find_tensor(inputs, count, node->name);
        if (tensor != NULL) SMG_TRY(check_dims(ctx, g, node, tensor, out_values));
    }
    return SMG_OK;
}
