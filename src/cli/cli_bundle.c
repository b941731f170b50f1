/* cli_bundle.c: smg info and smg run of a bundle. */
#include <string.h>

#include "cli/cli.h"

bool cli_is_bundle(const cli_options *o) {
    return o->word_count == 1 && smg_bundle_file_is_at(o->ctx, o->words[0]);
}

/* ---- info -------------------------------------------------------------------------------------------- */

static void add_ports(const char *kind, const smg_port_info *ports, int count, cli_text *text) {
    for (int i = 0; i < count; i++) {
        cli_text_addf(text, "%-8s %s %s[", kind, ports[i].name, ports[i].type);
        for (int d = 0; d < ports[i].rank; d++) cli_text_addf(text, "%s%s", d > 0 ? ", " : "", ports[i].dims[d]);
        if (ports[i].state != NULL)
            cli_text_addf(text, "], a state: %s of the run before\n", ports[i].state);
        else
            cli_text_addf(text, "]%s\n", ports[i].optional ? ", may be left out" : "");
    }
}

static void add_class(const smg_bundle_class *c, cli_text *text) {
    cli_text_addf(text, "class    %s, %lld bytes, for devices%s%s of type %s\n", c->name, (long long)c->bytes,
                  c->match[0] != '\0' ? " named " : "", c->match, c->type);
    cli_text_addf(text, "         %lld bytes of the weights, ", (long long)c->weights_bytes);
    if (c->prepare_kernels > 0)
        cli_text_addf(text, "which %d kernels prepare when it is opened; needs:\n", c->prepare_kernels);
    else
        cli_text_add(text, "ready as they are; needs:\n");
    for (const char *at = strchr(c->needs, '\n'); at != NULL && at[1] != '\0';) { /* behind the type */
        const char *line = at + 1, *comment = strstr(line, "  #");
        at = strchr(line, '\n');
        const char *end = comment != NULL && (at == NULL || comment < at) ? comment : at != NULL ? at : line;
        cli_text_addf(text, "           %.*s\n", (int)(end - line), line);
    }
}

static smg_status add_table(smg_bundle_file *file, cli_text *text) {
    const smg_bundle_facts *f = smg_bundle_file_facts(file);
    const smg_signature *s = f->signature;
    cli_text_addf(text, "bundle   %s, precision %s, %d classes, weights %lld bytes of %lld\n", f->model, f->precision,
                  f->class_count, (long long)f->weights_bytes, (long long)f->bytes);
    add_ports("input", s->inputs, s->input_count, text);
    add_ports("output", s->outputs, s->output_count, text);
    for (int i = 0; i < s->size_count; i++) {
        cli_text_addf(text, "%-8s %s: 1 to ", "size", s->sizes[i].name);
        if (s->sizes[i].max == 0)
            cli_text_add(text, "any");
        else
            cli_text_addf(text, "%lld", (long long)s->sizes[i].max);
        cli_text_addf(text, ", compiled for %lld\n", (long long)s->sizes[i].usual);
    }
    for (int i = 0; i < f->class_count; i++) {
        smg_bundle_class c;
        CLI_TRY(smg_bundle_file_class(file, i, &c));
        add_class(&c, text);
    }
    return SMG_OK;
}

/* All of it is read once, so that what is said is of a whole file. */
static smg_status look(const cli_options *o, smg_bundle_file *file, cli_text *text) {
    CLI_TRY(smg_bundle_file_check(file));
    return o->json ? smg_bundle_file_write_json(file, cli_text_sink(text)) : add_table(file, text);
}

/* ---- run --------------------------------------------------------------------------------------------- */

static smg_status check_options(const cli_options *o) {
    const struct {
        bool given;
        const char *name;
    } others[] = {
        {o->check, "check"},
        {o->interpret, "interpret"},
        {o->profile, "profile"},
        {o->unfused, "unfused"},
        {o->objective != NULL, "objective"},
        {o->precision != NULL, "precision"},
        {o->rank != 0, "rank"},
        {o->target != NULL, "target"},
        {o->max_dim_count > 0, "max-dim"},
        {o->max_memory > 0, "max-memory"},
        {o->max_fused_ops > 0, "max-fused-ops"},
        {o->max_fused_products > 0, "max-fused-products"},
        {o->min_gain > 0, "min-gain"},
    };
    for (size_t i = 0; i < CLI_COUNT_OF(others); i++) {
        if (!others[i].given) continue;
        return cli_error(o, SMG_INVALID, "--%s does nothing for a bundle, which was compiled before", others[i].name);
    }
    return SMG_OK;
}

static void add_run(const smg_bundle_facts *f, smg_model *model, const cli_arrays *arrays, const cli_result *result,
                    cli_text *text) {
    cli_text_addf(text, "bundle   %s, precision %s, class %s of %d\nsizes    ", f->model, f->precision,
                  smg_model_class(model), f->class_count);
    cli_print_dims(text, arrays);
    cli_text_addf(text, "\nopen     device %.3f s, pipelines and upload %.3f s, first result after %.3f s\n",
                  result->device, result->program, result->ready);
    for (int i = 0; i < arrays->output_count; i++) cli_print_output(&arrays->outputs[i], text);
    cli_text_add(text, "time     on the device: ");
    cli_print_spread(&result->spread, text);
    cli_text_add(text, "\n");
}

static void add_run_json(const smg_bundle_facts *f, smg_model *model, const cli_arrays *arrays,
                         const cli_result *result, cli_text *text) {
    cli_text_add(text, "{\n  \"bundle\": ");
    cli_text_add_json(text, f->model);
    cli_text_add(text, ",\n  \"class\": ");
    cli_text_add_json(text, smg_model_class(model));
    cli_text_addf(text, ",\n  \"device_seconds\": %.6g,\n  \"program_seconds\": %.6g,\n", result->device,
                  result->program);
    cli_text_addf(text, "  \"first_seconds\": %.9g,\n  \"ready_seconds\": %.6g,\n  \"time\": {", result->first,
                  result->ready);
    cli_print_spread_json(&result->spread, text);
    cli_text_add(text, "},\n  ");
    cli_print_dims_json(text, arrays);
    cli_text_add(text, "\n}\n");
}

static smg_status run_model(const cli_options *o, const smg_bundle_facts *f, double start, cli_arrays *arrays,
                            smg_model *model, cli_text *text) {
    cli_result result = {0};
    CLI_TRY(smg_model_prepare(model, arrays->dims, arrays->dim_count));
    CLI_TRY(cli_fill_arrays(o, arrays));
    CLI_TRY(cli_measure(o, arrays, model, start, &result));
    CLI_TRY(cli_save_outputs(o, arrays));
    (o->json ? add_run_json : add_run)(f, model, arrays, &result, text);
    return SMG_OK;
}

static smg_status open_and_run(const cli_options *o, smg_bundle_file *file, double start, cli_arrays *arrays,
                               cli_text *text) {
    smg_model *model = NULL;
    const smg_bundle_desc desc = {.device = o->device,
                                  .dims = arrays->dims,
                                  .dim_count = arrays->dim_count,
                                  .ranges = arrays->ranges,
                                  .range_count = arrays->range_count};
    CLI_TRY(smg_bundle_file_open_model(file, &desc, &model));
    smg_status status = run_model(o, smg_bundle_file_facts(file), start, arrays, model, text);
    smg_model_close(model);
    return status;
}

static smg_status run(const cli_options *o, smg_bundle_file *file, double start, cli_text *text) {
    cli_arrays arrays;
    CLI_TRY(check_options(o));
    smg_status status = cli_make_arrays(o, smg_bundle_file_facts(file)->signature, &arrays);
    if (status == SMG_OK) status = open_and_run(o, file, start, &arrays, text);
    cli_free_arrays(&arrays);
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------- */

static int on_bundle(const cli_options *o, bool runs) {
    double start = smg_command_seconds();
    smg_bundle_file *file = NULL;
    cli_text text = {0};
    if (smg_bundle_file_open(o->ctx, o->words[0], &file) != SMG_OK) return cli_fail(o);
    smg_status status = cli_validate_bundle(file);
    if (status == SMG_OK) status = runs ? run(o, file, start, &text) : look(o, file, &text);
    status = cli_text_print(&text, status);
    smg_bundle_file_close(file);
    return status == SMG_OK ? CLI_OK : cli_fail(o);
}

int cli_bundle_info(cli_options *o) {
    return on_bundle(o, false);
}

int cli_bundle_run(cli_options *o) {
    return on_bundle(o, true);
}
