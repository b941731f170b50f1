/* cli_info.c: smg info: what a model takes and gives. Needs no device. */
#include <string.h>

#include "cli/cli.h"

static bool is_state_of(const smg_port_info *input, const smg_port_info *output) {
    return input->state != NULL && strcmp(input->state, output->name) == 0;
}

/* "f32[batch, 128]" */
static void add_port(cli_text *text, const char *kind, const smg_port_info *port) {
    cli_text_addf(text, "%-8s %s %s[", kind, port->name, port->type);
    for (int d = 0; d < port->rank; d++) cli_text_addf(text, "%s%s", d > 0 ? ", " : "", port->dims[d]);
    cli_text_add(text, "]\n");
}

static void add_table(cli_text *text, const smg_source_facts *f) {
    const smg_signature *s = f->signature;
    cli_text_addf(text, "%-8s %s, %d operations, %lld parameters\n", "graph", f->name, f->operations,
                  (long long)f->parameters);
    for (int i = 0; i < s->input_count; i++) add_port(text, "input", &s->inputs[i]);
    for (int i = 0; i < s->output_count; i++) add_port(text, "output", &s->outputs[i]);
    for (int o = 0; o < s->output_count; o++)
        for (int i = 0; i < s->input_count; i++)
            if (is_state_of(&s->inputs[i], &s->outputs[o]))
                cli_text_addf(text, "%-8s %s: %s of the run before\n", "state", s->inputs[i].name, s->outputs[o].name);
    for (int i = 0; i < s->size_count; i++) {
        cli_text_addf(text, "%-8s %s: 1 to ", "size", s->sizes[i].name);
        if (s->sizes[i].max == 0)
            cli_text_add(text, "any\n");
        else
            cli_text_addf(text, "%lld\n", (long long)s->sizes[i].max);
    }
}

static void add_json_port(cli_text *text, const smg_port_info *port, bool first) {
    cli_text_add(text, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
    cli_text_add_json(text, port->name);
    cli_text_addf(text, ", \"type\": \"%s\", \"dims\": [", port->type);
    for (int d = 0; d < port->rank; d++) {
        const char *quote = port->fixed[d] < 0 ? "\"" : "";
        cli_text_addf(text, "%s%s%s%s", d > 0 ? ", " : "", quote, port->dims[d], quote);
    }
    cli_text_add(text, "]}");
}

static void add_json_states(cli_text *text, const smg_signature *s) {
    const char *before = "\n  ],\n  \"states\": [\n    ";
    for (int o = 0; o < s->output_count; o++) {
        for (int i = 0; i < s->input_count; i++) {
            if (!is_state_of(&s->inputs[i], &s->outputs[o])) continue;
            cli_text_addf(text, "%s{\"input\": ", before);
            cli_text_add_json(text, s->inputs[i].name);
            cli_text_add(text, ", \"output\": ");
            cli_text_add_json(text, s->outputs[o].name);
            cli_text_add(text, "}");
            before = ",\n    ";
        }
    }
}

static void add_json(cli_text *text, const smg_source_facts *f) {
    const smg_signature *s = f->signature;
    cli_text_add(text, "{\n  \"graph\": ");
    cli_text_add_json(text, f->name);
    cli_text_addf(text, ",\n  \"operations\": %d,\n  \"parameters\": %lld,\n  \"inputs\": [", f->operations,
                  (long long)f->parameters);
    for (int i = 0; i < s->input_count; i++) add_json_port(text, &s->inputs[i], i == 0);
    cli_text_add(text, "\n  ],\n  \"outputs\": [");
    for (int i = 0; i < s->output_count; i++) add_json_port(text, &s->outputs[i], i == 0);
    add_json_states(text, s);
    cli_text_add(text, "\n  ],\n  \"sizes\": {");
    for (int i = 0; i < s->size_count; i++) {
        cli_text_add(text, i > 0 ? ", " : "");
        cli_text_add_json(text, s->sizes[i].name);
        if (s->sizes[i].max == 0)
            cli_text_add(text, ": {\"max\": null}");
        else
            cli_text_addf(text, ": {\"max\": %lld}", (long long)s->sizes[i].max);
    }
    cli_text_add(text, "}\n}\n");
}

/* ---- a model that cannot be converted ----------------------------------------------------------- */

static void add_unconverted(cli_text *text, const smg_source_facts *f) {
    for (int i = 0; i < f->declared_count; i++) {
        const smg_declared *d = &f->declared[i];
        cli_text_addf(text, "%-8s %s %s\n", d->output ? "output" : "input", d->name, d->type);
    }
    cli_text_addf(text, "%d nodes are not supported:\n", f->unsupported_count);
    for (int i = 0; i < f->unsupported_count; i++) {
        const smg_unsupported *m = &f->unsupported[i];
        cli_text_addf(text, "  %s%s%s, opset %lld, node '%s': %s\n", m->domain, m->domain[0] ? "." : "", m->op,
                      (long long)m->opset, m->node, m->reason);
    }
}

static void add_declared_json(cli_text *text, const smg_source_facts *f, bool output) {
    bool first = true;
    for (int i = 0; i < f->declared_count; i++) {
        const smg_declared *d = &f->declared[i];
        if (d->output != output) continue;
        cli_text_add(text, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
        cli_text_add_json(text, d->name);
        cli_text_add(text, ", \"type\": ");
        cli_text_add_json(text, d->type);
        cli_text_add(text, "}");
        first = false;
    }
}

static void add_unconverted_json(cli_text *text, const smg_source_facts *f) {
    cli_text_add(text, "{\n  \"inputs\": [");
    add_declared_json(text, f, false);
    cli_text_add(text, "\n  ],\n  \"outputs\": [");
    add_declared_json(text, f, true);
    cli_text_add(text, "\n  ],\n  \"unsupported\": [");
    for (int i = 0; i < f->unsupported_count; i++) {
        const smg_unsupported *m = &f->unsupported[i];
        cli_text_add(text, i > 0 ? ",\n    {\"node\": " : "\n    {\"node\": ");
        cli_text_add_json(text, m->node);
        cli_text_add(text, ", \"op\": ");
        cli_text_add_json(text, m->op);
        cli_text_add(text, ", \"domain\": ");
        cli_text_add_json(text, m->domain);
        cli_text_addf(text, ", \"opset\": %lld, \"reason\": ", (long long)m->opset);
        cli_text_add_json(text, m->reason);
        cli_text_add(text, "}");
    }
    cli_text_add(text, "\n  ]\n}\n");
}

smg_status cli_validate_bundle(smg_bundle_file *file) {
    return smg_bundle_file_validate(file);
}

static smg_status info(cli_job *job) {
    if (job->facts->signature != NULL)
        (job->o->json ? add_json : add_table)(&job->text, job->facts);
    else
        (job->o->json ? add_unconverted_json : add_unconverted)(&job->text, job->facts);
    return SMG_OK;
}

int cli_info(cli_options *o) {
    if (cli_is_bundle(o)) return cli_bundle_info(o);
    return cli_on_model(o, CLI_LOOK, info);
}
