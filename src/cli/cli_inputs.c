/* cli_inputs.c: arrays for all inputs, from files or made up, at the sizes that both imply. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void cli_print_dims(cli_text *text, const cli_arrays *arrays) {
    for (int i = 0; i < arrays->dim_count; i++) {
        cli_text_addf(text, "%s%s=", i > 0 ? " " : "", arrays->dims[i].name);
        for (int r = 0; r < arrays->range_count; r++) {
            if (strcmp(arrays->ranges[r].name, arrays->dims[i].name) != 0) continue;
            cli_text_addf(text, "%lld..", (long long)arrays->ranges[r].low);
        }
        cli_text_addf(text, "%lld", (long long)arrays->dims[i].value);
    }
    if (arrays->dim_count == 0) cli_text_add(text, "fixed");
}

void cli_print_dims_json(cli_text *text, const cli_arrays *arrays) {
    cli_text_add(text, "\"sizes\": {");
    for (int i = 0; i < arrays->dim_count; i++) {
        cli_text_add(text, i > 0 ? ", " : "");
        cli_text_add_json(text, arrays->dims[i].name);
        cli_text_addf(text, ": %lld", (long long)arrays->dims[i].value);
    }
    cli_text_add(text, "}");
    for (int i = 0; i < arrays->range_count; i++) {
        cli_text_add(text, i == 0 ? ",\n  \"sizes_from\": {" : ", ");
        cli_text_add_json(text, arrays->ranges[i].name);
        cli_text_addf(text, ": %lld", (long long)arrays->ranges[i].low);
    }
    if (arrays->range_count > 0) cli_text_add(text, "}");
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

/* "37,128,9" into room for them. */
static smg_status parse_lengths(const cli_options *o, const char *name, const char *at, int64_t *out, int *out_count) {
    for (bool more = true; more;) {
        char *end;
        errno = 0;
        out[*out_count] = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ',' && *end != 0))
            return cli_error(o, SMG_INVALID, "--input %s=%s: '%s' is no length", name, given(o, name), at);
        (*out_count)++;
        more = *end == ',';
        at = end + more;
    }
    return SMG_OK;
}

static smg_status set_lengths(const cli_options *o, const char *name, smg_arrays *arrays) {
    const char *words = given(o, name) + strlen(lengths_word);
    int count = 0;
    int64_t *lengths = calloc(strlen(words) + 1, sizeof(*lengths));
    if (lengths == NULL) return SMG_MEMORY;
    smg_status status = parse_lengths(o, name, words, lengths, &count);
    if (status == SMG_OK) status = smg_arrays_fill_lengths(arrays, name, lengths, count);
    free(lengths);
    return status;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), own = strlen(end);
    return length >= own && strcmp(text + length - own, end) == 0;
}

static smg_status check_output(const cli_options *o, const cli_arrays *a, const cli_file *output) {
    if (ends_with(output->value, ".npz"))
        return cli_error(o, SMG_UNSUPPORTED, "--output %s=%s: outputs are written as .npy, one file each, not .npz",
                         output->name, output->value);
    for (int i = 0; i < a->output_count; i++)
        if (strcmp(a->outputs[i].name, output->name) == 0) return SMG_OK;
    cli_text names = {0};
    for (int i = 0; i < a->output_count; i++) cli_text_addf(&names, "%s%s", i > 0 ? ", " : "", a->outputs[i].name);
    cli_error(o, SMG_NOT_FOUND, "the model has no output '%s'; it has: %s", output->name, cli_text_cstr(&names));
    cli_text_free(&names);
    return SMG_NOT_FOUND;
}

/* Before anything runs or is written. */
static smg_status check_names(const cli_options *o, const cli_arrays *a) {
    for (int i = 0; i < o->input_count; i++) CLI_TRY(smg_arrays_find(a->all, o->inputs[i].name, NULL));
    for (int i = 0; i < o->output_count; i++) CLI_TRY(check_output(o, a, &o->outputs[i]));
    return SMG_OK;
}

static int64_t size_of(const cli_arrays *a, const char *name) {
    for (int i = 0; i < a->dim_count; i++)
        if (strcmp(a->dims[i].name, name) == 0) return a->dims[i].value;
    return 0;
}

static smg_status settle_sizes(const cli_options *o, cli_arrays *a) {
    const smg_sizes_desc desc = {
        .dims = o->dims, .dim_count = o->dim_count, .max_dims = o->max_dims, .max_dim_count = o->max_dim_count};
    CLI_TRY(smg_arrays_settle(a->all, &desc));
    a->dims = smg_arrays_sizes(a->all, &a->dim_count);
    for (int i = 0; i < o->dim_count; i++) {
        int64_t size = size_of(a, o->dims[i].name);
        if (size != o->dims[i].value)
            return cli_error(o, SMG_INVALID, "%s is %lld by --dim and %lld by an input file", o->dims[i].name,
                             (long long)o->dims[i].value, (long long)size);
        if (o->dims_from[i] == 0) continue;
        a->ranges[a->range_count++] = (smg_dim_range){o->dims[i].name, o->dims_from[i], o->dims[i].value};
    }
    for (int i = 0; i < o->max_dim_count; i++) {
        int64_t size = size_of(a, o->max_dims[i].name);
        if (size > o->max_dims[i].value)
            return cli_error(o, SMG_INVALID, "%s is %lld, above its --max-dim of %lld", o->max_dims[i].name,
                             (long long)size, (long long)o->max_dims[i].value);
    }
    return SMG_OK;
}

smg_status cli_make_arrays(const cli_options *o, const smg_signature *signature, cli_arrays *out) {
    *out = (cli_arrays){0};
    CLI_TRY(smg_arrays_create(o->ctx, signature, &out->all));
    out->inputs = smg_arrays_inputs(out->all, &out->count);
    out->outputs = smg_arrays_outputs(out->all, &out->output_count);
    CLI_TRY(check_names(o, out));
    for (int i = 0; i < out->count; i++) {
        const char *name = out->inputs[i].name, *value = given(o, name);
        if (is_file(value)) CLI_TRY(smg_arrays_load(out->all, name, value));
    }
    return settle_sizes(o, out);
}

void cli_free_arrays(cli_arrays *arrays) {
    smg_arrays_destroy(arrays->all);
    *arrays = (cli_arrays){0};
}

/* What was not given is random, unless files are given: then an input with a value of its own has it. */
static smg_fill fill_of(const cli_options *o, const char *value) {
    bool files = false;
    if (value != NULL) return strcmp(value, "zeros") == 0 ? SMG_FILL_ZEROS : SMG_FILL_RANDOM;
    for (int i = 0; i < o->input_count; i++) files |= is_file(o->inputs[i].value);
    return files ? SMG_FILL_OWN : SMG_FILL_RANDOM;
}

smg_status cli_fill_arrays(const cli_options *o, cli_arrays *arrays) {
    for (int i = 0; i < arrays->count; i++) {
        const char *name = arrays->inputs[i].name, *value = given(o, name);
        if (is_file(value)) continue;
        if (is_lengths(value))
            CLI_TRY(set_lengths(o, name, arrays->all));
        else
            CLI_TRY(smg_arrays_fill(arrays->all, name, fill_of(o, value), (uint64_t)o->seed));
    }
    return SMG_OK;
}

smg_status cli_run_arrays(smg_model *model, cli_arrays *arrays) {
    return smg_model_run(model, arrays->inputs, arrays->count, arrays->outputs, arrays->output_count);
}

smg_status cli_save_outputs(const cli_options *o, const cli_arrays *arrays) {
    for (int i = 0; i < o->output_count; i++) {
        int row = 0;
        while (strcmp(arrays->outputs[row].name, o->outputs[i].name) != 0) row++;
        CLI_TRY(smg_tensor_save(o->ctx, o->outputs[i].value, &arrays->outputs[row]));
    }
    return SMG_OK;
}
