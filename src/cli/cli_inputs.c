/* cli_inputs.c: arrays for all inputs, from files or made up, at the sizes that both imply. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>

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
static smg_status set_lengths(const cli_options *o, const smg_interface *n, const smg_port *port, smg_arena *arena,
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
    return smg_lengths_put(o->ctx, n, port, rows, io);
}

static smg_status check_inputs(const cli_options *o, const smg_interface *n) {
    for (int i = 0; i < o->input_count; i++) {
        int index = 0;
        SMG_TRY(smg_interface_find_input(o->ctx, n, o->inputs[i].name, &index));
    }
    return SMG_OK;
}

/* Before anything runs or is written. */
static smg_status check_outputs(const cli_options *o, const smg_interface *interface) {
    for (int i = 0; i < o->output_count; i++) {
        bool found = false;
        if (smg_text_ends(o->outputs[i].value, ".npz"))
            return smg_fail(o->ctx, SMG_UNSUPPORTED,
                            "--output %s=%s: outputs are written as .npy, one file each, not .npz", o->outputs[i].name,
                            o->outputs[i].value);
        for (int n = 0; n < interface->output_count; n++) {
            found |= strcmp(interface->outputs[n].name, o->outputs[i].name) == 0;
        }
        if (found) continue;
        smg_text names;
        smg_text_init(&names, o->ctx);
        for (int n = 0; n < interface->output_count; n++) {
            smg_text_addf(&names, "%s%s", n > 0 ? ", " : "", interface->outputs[n].name);
        }
        smg_status status = smg_fail(o->ctx, SMG_NOT_FOUND, "the model has no output '%s'; it has: %s",
                                     o->outputs[i].name, smg_text_cstr(&names));
        smg_text_free(&names);
        return status;
    }
    return SMG_OK;
}

static smg_status settle_sizes(const cli_options *o, const smg_interface *n, cli_arrays *a) {
    int symbols = smg_size_symbol_count(n->sizes);
    int64_t *defaults = SMG_ARENA_ARRAY(a->arena, int64_t, (size_t)symbols + 1);
    a->symbols = SMG_ARENA_ARRAY(a->arena, int64_t, (size_t)symbols + 1);
    a->dims = SMG_ARENA_ARRAY(a->arena, smg_dim, (size_t)symbols + 1);
    a->ranges = SMG_ARENA_ARRAY(a->arena, smg_dim_range, (size_t)o->dim_count + 1);
    if (defaults == NULL || a->symbols == NULL || a->dims == NULL || a->ranges == NULL) return SMG_MEMORY;
    SMG_TRY(smg_sizes_give(o->ctx, n->sizes, o->max_dims, o->max_dim_count, defaults)); /* are they possible? */
    memcpy(defaults, n->nominal, (size_t)symbols * sizeof(*defaults));
    SMG_TRY(smg_sizes_give(o->ctx, n->sizes, o->dims, o->dim_count, defaults));
    for (int i = 0; i < o->max_dim_count; i++) { /* what nobody asked for stays below the maximum */
        int symbol = smg_size_symbol_find(n->sizes, o->max_dims[i].name);
        bool asked = false;
        for (int d = 0; d < o->dim_count; d++) asked |= strcmp(o->dims[d].name, o->max_dims[i].name) == 0;
        if (!asked && defaults[symbol] > o->max_dims[i].value) defaults[symbol] = o->max_dims[i].value;
    }
    SMG_TRY(smg_interface_sizes(o->ctx, n, a->inputs, a->count, defaults, a->symbols));
    for (int i = 0; i < o->dim_count; i++) {
        int symbol = smg_size_symbol_find(n->sizes, o->dims[i].name);
        if (a->symbols[symbol] != o->dims[i].value) {
            return smg_fail(o->ctx, SMG_INVALID, "%s is %lld by --dim and %lld by an input file", o->dims[i].name,
                            (long long)o->dims[i].value, (long long)a->symbols[symbol]);
        }
        if (o->dims_from[i] == 0) continue;
        a->ranges[a->range_count++] = (smg_dim_range){o->dims[i].name, o->dims_from[i], o->dims[i].value};
    }
    for (int i = 0; i < o->max_dim_count; i++) {
        int symbol = smg_size_symbol_find(n->sizes, o->max_dims[i].name);
        if (a->symbols[symbol] > o->max_dims[i].value) {
            return smg_fail(o->ctx, SMG_INVALID, "%s is %lld, above its --max-dim of %lld", o->max_dims[i].name,
                            (long long)a->symbols[symbol], (long long)o->max_dims[i].value);
        }
    }
    a->dim_count = symbols;
    for (int i = 0; i < symbols; i++) {
        a->dims[i] = (smg_dim){smg_size_symbol_name(n->sizes, i), a->symbols[i]};
    }
    return SMG_OK;
}

smg_status cli_make_arrays(const cli_options *o, const smg_interface *n, smg_arena *arena, cli_arrays *out) {
    *out = (cli_arrays){.arena = arena, .count = n->input_count, .output_count = n->output_count};
    out->inputs = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)out->count + 1);
    out->outputs = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)out->output_count + 1);
    if (out->inputs == NULL || out->outputs == NULL) return SMG_MEMORY;
    SMG_TRY(check_inputs(o, n));
    SMG_TRY(check_outputs(o, n));
    for (int i = 0; i < out->count; i++) {
        const char *value = given(o, n->inputs[i].name);
        if (is_file(value)) SMG_TRY(smg_tensor_load(o->ctx, &n->inputs[i], value, arena, &out->inputs[i]));
    }
    for (int i = 0; i < out->output_count; i++) out->outputs[i].name = n->outputs[i].name;
    return settle_sizes(o, n, out);
}

/* What was not given is random, unless files are given: then an input with a value of its own has it. */
static smg_fill fill_of(const cli_options *o, const smg_port *port) {
    const char *value = given(o, port->name);
    if (value != NULL) return strcmp(value, "zeros") == 0 ? SMG_FILL_ZEROS : SMG_FILL_RANDOM;
    bool files = false;
    for (int i = 0; i < o->input_count; i++) files |= is_file(o->inputs[i].value);
    if (!files || port->absent == SMG_ABSENT_REFUSED) return SMG_FILL_RANDOM;
    return port->absent == SMG_ABSENT_ONES ? SMG_FILL_ONES : SMG_FILL_ZEROS;
}

smg_status cli_fill_arrays(const cli_options *o, const smg_interface *n, cli_arrays *arrays) {
    for (int i = 0; i < arrays->count; i++) {
        const smg_port *port = &n->inputs[i];
        if (is_file(given(o, port->name))) continue;
        SMG_TRY(smg_tensor_fill_port(o->ctx, n, port, arrays->symbols, fill_of(o, port), (uint64_t)o->seed,
                                     arrays->arena, &arrays->inputs[i]));
        if (is_lengths(given(o, port->name))) SMG_TRY(set_lengths(o, n, port, arrays->arena, &arrays->inputs[i]));
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
