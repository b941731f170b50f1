/* cli_inputs.c: arrays for all inputs, from files or made up, at the sizes that both imply. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>

void cli_print_shape(smg_text *text, const smg_graph *g, const smg_node *node) {
    smg_text_addf(text, "%s[", smg_type_word(node->type));
    for (int d = 0; d < node->rank; d++) {
        if (d > 0) smg_text_add(text, ", ");
        smg_size_print(g->sizes, node->dims[d], text);
    }
    smg_text_add(text, "]");
}

void cli_print_dims(smg_text *text, const cli_arrays *arrays) {
    for (int i = 0; i < arrays->dim_count; i++) {
        smg_text_addf(text, "%s%s=", i > 0 ? " " : "", arrays->dims[i].name);
        for (int r = 0; r < arrays->range_count; r++) {
            if (strcmp(arrays->ranges[r].name, arrays->dims[i].name) != 0) continue;
            smg_text_addf(text, "%lld..", (long long)arrays->ranges[r].low);
        }
        smg_text_addf(text, "%lld", (long long)arrays->dims[i].value);
    }
    if (arrays->dim_count == 0) smg_text_add(text, "fixed");
}

void cli_print_dims_json(smg_text *text, const cli_arrays *arrays) {
    smg_text_add(text, "\"sizes\": {");
    for (int i = 0; i < arrays->dim_count; i++) {
        smg_text_add(text, i > 0 ? ", " : "");
        smg_text_add_json(text, arrays->dims[i].name);
        smg_text_addf(text, ": %lld", (long long)arrays->dims[i].value);
    }
    smg_text_add(text, "}");
    for (int i = 0; i < arrays->range_count; i++) {
        smg_text_add(text, i == 0 ? ",\n  \"sizes_from\": {" : ", ");
        smg_text_add_json(text, arrays->ranges[i].name);
        smg_text_addf(text, ": %lld", (long long)arrays->ranges[i].low);
    }
    if (arrays->range_count > 0) smg_text_add(text, "}");
}

static const char *given(const cli_options *o, const char *name) {
    const char *value = NULL;
    for (int i = 0; i < o->input_count; i++) {
        if (strcmp(o->inputs[i].name, name) == 0) value = o->inputs[i].value;
    }
    return value;
}

static const char lengths_word[] = "lengths:";

static bool is_lengths(const char *value) {
    return value != NULL && strncmp(value, lengths_word, strlen(lengths_word)) == 0;
}

static bool is_file(const char *value) {
    return value != NULL && strcmp(value, "random") != 0 && strcmp(value, "zeros") != 0 && !is_lengths(value);
}

/* "lengths:37,128,9" */
static smg_status set_lengths(const cli_options *o, const smg_graph *g, smg_node_id node, smg_arena *arena,
                              smg_tensor *io) {
    const char *value = given(o, io->name);
    const char *at = value + strlen(lengths_word);
    int64_t count = 0, *lengths = SMG_ARENA_ARRAY(arena, int64_t, strlen(at) + 1);
    if (lengths == NULL) return SMG_MEMORY;
    for (bool more = true; more;) {
        char *end;
        errno = 0;
        lengths[count] = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ',' && *end != 0))
            return smg_fail(o->ctx, SMG_INVALID, "--input %s=%s: '%s' is no length", io->name, value, at);
        count++;
        more = *end == ',';
        at = end + more;
    }
    const smg_lengths rows = {.rows = lengths, .count = count};
    return smg_tensor_set_lengths(o->ctx, g, smg_graph_node(g, node), rows, io);
}

static smg_status check_inputs(const cli_options *o, const smg_graph *g, const smg_node_id *nodes, int count) {
    for (int i = 0; i < o->input_count; i++) {
        bool found = false;
        for (int n = 0; n < count; n++) {
            found |= strcmp(smg_graph_node(g, nodes[n])->name, o->inputs[i].name) == 0;
        }
        if (found) continue;
        smg_text names;
        smg_text_init(&names, o->ctx);
        for (int n = 0; n < count; n++) {
            smg_text_addf(&names, "%s%s", n > 0 ? ", " : "", smg_graph_node(g, nodes[n])->name);
        }
        smg_status status = smg_fail(o->ctx, SMG_NOT_FOUND, "the model has no input '%s'; it has: %s",
                                     o->inputs[i].name, smg_text_cstr(&names));
        smg_text_free(&names);
        return status;
    }
    return SMG_OK;
}

/* Before anything runs or is written. */
static smg_status check_outputs(const cli_options *o, const smg_graph *g) {
    for (int i = 0; i < o->output_count; i++) {
        bool found = false;
        if (smg_text_ends(o->outputs[i].value, ".npz"))
            return smg_fail(o->ctx, SMG_UNSUPPORTED,
                            "--output %s=%s: outputs are written as .npy, one file each, not .npz", o->outputs[i].name,
                            o->outputs[i].value);
        for (int n = 0; n < g->outputs.count; n++) {
            found |= strcmp(g->outputs.items[n].name, o->outputs[i].name) == 0;
        }
        if (found) continue;
        smg_text names;
        smg_text_init(&names, o->ctx);
        for (int n = 0; n < g->outputs.count; n++) {
            smg_text_addf(&names, "%s%s", n > 0 ? ", " : "", g->outputs.items[n].name);
        }
        smg_status status = smg_fail(o->ctx, SMG_NOT_FOUND, "the model has no output '%s'; it has: %s",
                                     o->outputs[i].name, smg_text_cstr(&names));
        smg_text_free(&names);
        return status;
    }
    return SMG_OK;
}

static smg_status settle_sizes(const cli_options *o, const smg_graph *g, cli_arrays *a) {
    int symbols = smg_size_symbol_count(g->sizes);
    int64_t *defaults = SMG_ARENA_ARRAY(a->arena, int64_t, (size_t)symbols + 1);
    a->symbols = SMG_ARENA_ARRAY(a->arena, int64_t, (size_t)symbols + 1);
    a->dims = SMG_ARENA_ARRAY(a->arena, smg_dim, (size_t)symbols + 1);
    a->ranges = SMG_ARENA_ARRAY(a->arena, smg_dim_range, (size_t)o->dim_count + 1);
    if (defaults == NULL || a->symbols == NULL || a->dims == NULL || a->ranges == NULL) return SMG_MEMORY;
    SMG_TRY(smg_sizes_choose(o->ctx, g, o->max_dims, o->max_dim_count, defaults)); /* are they possible? */
    SMG_TRY(smg_sizes_choose(o->ctx, g, o->dims, o->dim_count, defaults));
    for (int i = 0; i < o->max_dim_count; i++) { /* what nobody asked for stays below the maximum */
        int symbol = smg_size_symbol_find(g->sizes, o->max_dims[i].name);
        bool asked = false;
        for (int d = 0; d < o->dim_count; d++) asked |= strcmp(o->dims[d].name, o->max_dims[i].name) == 0;
        if (!asked && defaults[symbol] > o->max_dims[i].value) defaults[symbol] = o->max_dims[i].value;
    }
    SMG_TRY(smg_tensor_sizes(o->ctx, g, a->inputs, a->count, defaults, a->symbols));
    for (int i = 0; i < o->dim_count; i++) {
        int symbol = smg_size_symbol_find(g->sizes, o->dims[i].name);
        if (a->symbols[symbol] != o->dims[i].value) {
            return smg_fail(o->ctx, SMG_INVALID, "%s is %lld by --dim and %lld by an input file", o->dims[i].name,
                            (long long)o->dims[i].value, (long long)a->symbols[symbol]);
        }
        if (o->dims_from[i] == 0) continue;
        a->ranges[a->range_count++] = (smg_dim_range){o->dims[i].name, o->dims_from[i], o->dims[i].value};
    }
    for (int i = 0; i < o->max_dim_count; i++) {
        int symbol = smg_size_symbol_find(g->sizes, o->max_dims[i].name);
        if (a->symbols[symbol] > o->max_dims[i].value) {
            return smg_fail(o->ctx, SMG_INVALID, "%s is %lld, above its --max-dim of %lld", o->max_dims[i].name,
                            (long long)a->symbols[symbol], (long long)o->max_dims[i].value);
        }
    }
    a->dim_count = symbols;
    for (int i = 0; i < symbols; i++) {
        a->dims[i] = (smg_dim){smg_size_symbol_name(g->sizes, i), a->symbols[i]};
    }
    return SMG_OK;
}

smg_status cli_make_arrays(const cli_options *o, const smg_graph *g, smg_arena *arena, cli_arrays *out) {
    *out = (cli_arrays){.arena = arena, .output_count = g->outputs.count};
    out->count = smg_graph_input_nodes(g, NULL, 0);
    smg_node_id *nodes = SMG_ARENA_ARRAY(arena, smg_node_id, (size_t)out->count + 1);
    out->inputs = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)out->count + 1);
    out->outputs = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)g->outputs.count + 1);
    if (nodes == NULL || out->inputs == NULL || out->outputs == NULL) return SMG_MEMORY;
    smg_graph_input_nodes(g, nodes, out->count);
    SMG_TRY(check_inputs(o, g, nodes, out->count));
    SMG_TRY(check_outputs(o, g));
    for (int i = 0; i < out->count; i++) {
        const char *value = given(o, smg_graph_node(g, nodes[i])->name);
        if (is_file(value)) SMG_TRY(smg_tensor_load(o->ctx, g, nodes[i], value, arena, &out->inputs[i]));
    }
    for (int i = 0; i < g->outputs.count; i++) out->outputs[i].name = g->outputs.items[i].name;
    return settle_sizes(o, g, out);
}

/* What was not given is random, unless files are given: then an input with a value of its own has it. */
static smg_fill fill_of(const cli_options *o, const smg_source *source, const char *name) {
    const char *value = given(o, name);
    smg_fill fill = SMG_FILL_RANDOM;
    if (value != NULL) return strcmp(value, "zeros") == 0 ? SMG_FILL_ZEROS : SMG_FILL_RANDOM;
    bool files = false;
    for (int i = 0; i < o->input_count; i++) files |= is_file(o->inputs[i].value);
    return files && smg_source_default(source, name, &fill) ? fill : SMG_FILL_RANDOM;
}

smg_status cli_fill_arrays(const cli_options *o, const smg_source *source, cli_arrays *arrays) {
    const smg_graph *g = source->graph;
    smg_node_id *nodes = SMG_ARENA_ARRAY(arrays->arena, smg_node_id, (size_t)arrays->count + 1);
    if (nodes == NULL) return SMG_MEMORY;
    smg_graph_input_nodes(g, nodes, arrays->count);
    for (int i = 0; i < arrays->count; i++) {
        const char *name = smg_graph_node(g, nodes[i])->name;
        if (arrays->inputs[i].data != NULL) continue;
        SMG_TRY(smg_tensor_fill(o->ctx, g, nodes[i], arrays->symbols, fill_of(o, source, name), (uint64_t)o->seed,
                                arrays->arena, &arrays->inputs[i]));
        if (is_lengths(given(o, name))) SMG_TRY(set_lengths(o, g, nodes[i], arrays->arena, &arrays->inputs[i]));
    }
    return SMG_OK;
}

smg_status cli_save_outputs(const cli_options *o, const cli_arrays *arrays) {
    for (int i = 0; i < o->output_count; i++) {
        int row = 0;
        while (strcmp(arrays->outputs[row].name, o->outputs[i].name) != 0) row++;
        SMG_TRY(smg_tensor_save(o->ctx, o->outputs[i].value, &arrays->outputs[row]));
    }
    return SMG_OK;
}
