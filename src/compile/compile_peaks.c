/* compile_peaks.c: how large values become with given inputs, by the reference in double.
 *
 * The rewritten graph is evaluated, not the one that was given: its values are those that lie in memory. What such a
 * run shows decides what is narrowed (smg_precision_make), and afterwards where a run in 16 bits became infinite. Of a
 * batch that is too much work some rows are evaluated, as in a check. */
#include "compile/compile.h"

smg_status smg_compile_peaks(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs, int input_count,
                             smg_arena *arena, smg_peak **out_peaks) {
    const smg_graph *g = c->graph;
    smg_arena *scratch = NULL;
    smg_array *in = NULL;
    smg_rows rows;
    size_t count = (size_t)smg_size_symbol_count(g->sizes);
    *out_peaks = SMG_ARENA_ARRAY(arena, smg_peak, (size_t)g->nodes.count + 1);
    SMG_TRY(smg_arena_create(c->ctx, &scratch));
    int64_t *values = SMG_ARENA_ARRAY(scratch, int64_t, count + 1);
    smg_status status = values != NULL && *out_peaks != NULL ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK) {
        memcpy(values, symbols, count * sizeof(*values));
        status = smg_compile_take_rows(c->ctx, g, values, inputs, input_count, scratch, &in, &rows);
    }
    if (status == SMG_OK) status = smg_graph_peaks(g, values, in, *out_peaks);
    smg_arena_destroy(scratch);
    return status;
}

/* Temporaries have no origin in the bundle, but their node's words. */
static bool has_temporary(const smg_compilation *c, smg_node_id id) {
    const char *words = smg_graph_describe(c->graph, id);
    for (int i = 0; i < c->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &c->bundle->buffers.items[i];
        if (b->kind == SMG_BUFFER_TEMPORARY && strcmp(b->name, words) == 0) return true;
    }
    return false;
}

/* stored[id]: a kernel of some run list or of the prepare list has the value's buffer. */
static smg_status mark_stored(const smg_compilation *c, smg_arena *arena, bool **out_stored) {
    int *origins = NULL;
    bool *stored = SMG_ARENA_ARRAY(arena, bool, (size_t)c->graph->nodes.count + 1);
    *out_stored = stored;
    if (stored == NULL) return SMG_MEMORY;
    for (int v = 0; v < c->variant_count; v++) {
        const smg_plan *plan = c->variants[v].plan;
        for (int i = 0; plan != NULL && i < plan->steps.count; i++) {
            const smg_kernel *k = plan->steps.items[i].kernel;
            for (int b = 0; b < k->buffers.count; b++) {
                smg_node_id id = smg_plan_origin(plan, k->buffers.items[b].value);
                if (id >= 0) stored[id] = true; /* of a stack any: its values are constants */
            }
        }
    }
    if (!c->from_cache) return SMG_OK;
    SMG_TRY(smg_compile_origins(c, arena, &origins));
    for (int i = 0; i < c->bundle->buffers.count; i++)
        if (origins[i] >= 0) stored[origins[i]] = true;
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++)
        stored[id] = stored[id] || (smg_node_computes(smg_graph_node(c->graph, id)) && has_temporary(c, id));
    return smg_context_status(c->ctx);
}

/* Does a product of matrices round the value, although no kernel stores it? */
static void mark_factors(const smg_compilation *c, bool *stored) {
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) {
        const smg_node *n = smg_graph_node(c->graph, id);
        bool product = smg_node_class(n) == SMG_CLASS_CONTRACT && c->target.matrix_count > 0;
        for (int k = 0; product && k < n->operand_count; k++) stored[smg_space_source(c->graph, n->operand[k])] = true;
    }
}

static void look(const smg_compilation *c, const smg_peak *peaks, const bool *stored, smg_overflow *out) {
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) {
        smg_type type = smg_graph_storage(c->graph, id);
        if (!stored[id] || type == smg_graph_node(c->graph, id)->type || peaks[id].size < smg_type_limit(type))
            continue;
        if (out->count++ > 0) continue;
        out->value = smg_graph_describe(c->graph, id);
        out->size = peaks[id].size;
    }
}

smg_status smg_compile_find_overflow(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs,
                                     int input_count, smg_arena *arena, smg_overflow *out) {
    smg_peak *peaks = NULL;
    bool *stored = NULL;
    *out = (smg_overflow){.type = c->options.precision};
    if (out->type == SMG_TYPE_F32) return SMG_OK;
    SMG_TRY(smg_compile_need_graph(c));
    if (c->graph == NULL) return SMG_OK;
    SMG_TRY(smg_compile_peaks(c, symbols, inputs, input_count, arena, &peaks));
    SMG_TRY(mark_stored(c, arena, &stored));
    look(c, peaks, stored, out);
    if (out->value != NULL) return SMG_OK;
    mark_factors(c, stored);
    look(c, peaks, stored, out);
    return smg_context_status(c->ctx);
}
