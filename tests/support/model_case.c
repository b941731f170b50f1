/* Loading and comparing of stored cases; see the header. */
#include "support/model_case.h"

#include <math.h>

static smg_status load_inputs(smg_context *ctx, const smg_graph *g, const char *where,
                              smg_arena *arena, model_case *c) {
    smg_node_id nodes[MODEL_CASE_INPUTS];
    c->input_count = smg_graph_input_nodes(g, nodes, MODEL_CASE_INPUTS);
    if (c->input_count > MODEL_CASE_INPUTS || smg_size_symbol_count(g->sizes) > 8)
        return smg_fail(ctx, SMG_INVALID, "more inputs or sizes than a stored case has room for");
    for (int i = 0; i < c->input_count; i++) {
        const char *name = smg_graph_node(g, nodes[i])->name;
        const char *path = smg_arena_format(arena, "%s/in.%s.npy", where, name);
        if (path == NULL) return SMG_MEMORY;
        if (smg_file_exists(path))
            SMG_TRY(smg_tensor_load(ctx, g, nodes[i], path, arena, &c->inputs[i]));
    }
    SMG_TRY(smg_tensor_sizes(ctx, g, c->inputs, c->input_count, NULL, c->symbols));
    for (int i = 0; i < c->input_count; i++) {
        if (c->inputs[i].data == NULL)
            SMG_TRY(smg_tensor_fill(ctx, g, nodes[i], c->symbols, SMG_FILL_ZEROS, 0, arena,
                                    &c->inputs[i]));
    }
    return SMG_OK;
}

smg_status model_case_load(smg_context *ctx, const smg_graph *g, const char *folder,
                           const char *name, const char *output, smg_arena *arena,
                           model_case *out_case) {
    *out_case = (model_case){.output = output};
    const char *where = smg_path_join(arena, folder, name);
    if (where == NULL) return SMG_MEMORY;
    SMG_TRY(load_inputs(ctx, g, where, arena, out_case));
    const char *path = smg_arena_format(arena, "%s/out.%s.npy", where, output);
    if (path == NULL) return SMG_MEMORY;
    SMG_TRY(smg_npy_open(ctx, path, &out_case->stored));
    if (out_case->stored.dtype == SMG_IMPORT_F32) return SMG_OK;
    smg_npy_close(&out_case->stored);
    return smg_fail(ctx, SMG_FORMAT, "'%s' is not F32", path);
}

double model_case_error(const model_case *c, int64_t count,
                        double (*get)(void *user, int64_t index), void *user) {
    double worst = 0, largest = 0;
    if (count != c->stored.count || count == 0) return INFINITY;
    for (int64_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, c->stored.data + (size_t)i * sizeof value, sizeof value);
        double error = fabs(get(user, i) - (double)value);
        if (!(error <= worst)) worst = error;
        if (fabs((double)value) > largest) largest = fabs((double)value);
    }
    return worst == worst ? worst / largest : INFINITY;
}

static double of_tensor(void *user, int64_t index) {
    return smg_tensor_get(user, index);
}

double model_case_tensor_error(const model_case *c, const smg_tensor *got) {
    smg_tensor copy = *got;
    return model_case_error(c, smg_tensor_elements(got), of_tensor, &copy);
}

static double of_array(void *user, int64_t index) {
    return ((const smg_array *)user)->data[index];
}

double model_case_array_error(const model_case *c, const smg_array *got) {
    smg_array copy = *got;
    return model_case_error(c, smg_array_elements(got), of_array, &copy);
}
