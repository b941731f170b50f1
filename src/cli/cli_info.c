/* cli_info.c: smg info: what a model takes and gives. Needs no device. */
#include "cli/cli.h"

static int64_t count_parameters(const smg_graph *g) {
    int64_t total = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        int64_t elements = 0;
        bool tensor = smg_op_leaf(node->op) == SMG_LEAF_TENSOR && !smg_node_is_input(node);
        if (tensor && smg_size_is_const(g->sizes, smg_node_elements(g, id), &elements)) total += elements;
    }
    return total;
}

/* "f32[batch, 128]" */
static void print_shape(smg_text *text, const smg_graph *g, const smg_node *node) {
    smg_text_addf(text, "%s[", smg_type_word(node->type));
    for (int d = 0; d < node->rank; d++) {
        if (d > 0) smg_text_add(text, ", ");
        smg_size_print(g->sizes, node->dims[d], text);
    }
    smg_text_add(text, "]");
}

static void add_row(smg_text *text, const smg_graph *g, const char *kind, const char *name, smg_node_id id) {
    smg_text_addf(text, "%-8s %s ", kind, name);
    print_shape(text, g, smg_graph_node(g, id));
    smg_text_add(text, "\n");
}

static void add_sizes(smg_text *text, const smg_graph *g) {
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        int64_t max = smg_size_symbol_max(g->sizes, i);
        smg_text_addf(text, "%-8s %s: 1 to ", "size", smg_size_symbol_name(g->sizes, i));
        if (max >= SMG_SIZE_UNBOUNDED) {
            smg_text_add(text, "any\n");
        } else {
            smg_text_addf(text, "%lld\n", (long long)max);
        }
    }
}

static void add_table(smg_text *text, const smg_graph *g) {
    smg_text_addf(text, "%-8s %s, %d operations, %lld parameters\n", "graph", g->name, smg_compile_op_count(g),
                  (long long)count_parameters(g));
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (smg_node_is_input(node)) add_row(text, g, "input", node->name, id);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        add_row(text, g, "output", g->outputs.items[i].name, g->outputs.items[i].node);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const smg_graph_output_row *row = &g->outputs.items[i];
        if (row->state != NULL) smg_text_addf(text, "%-8s %s: %s of the run before\n", "state", row->state, row->name);
    }
    add_sizes(text, g);
}

static void add_json_row(smg_text *text, const smg_graph *g, const char *name, smg_node_id id, bool first) {
    const smg_node *node = smg_graph_node(g, id);
    smg_text_add(text, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
    smg_text_add_json(text, name);
    smg_text_addf(text, ", \"type\": \"%s\", \"dims\": [", smg_type_word(node->type));
    for (int d = 0; d < node->rank; d++) {
        int64_t value = 0;
        bool fixed = smg_size_is_const(g->sizes, node->dims[d], &value);
        smg_text_add(text, d > 0 ? ", " : "");
        if (!fixed) smg_text_add(text, "\"");
        smg_size_print(g->sizes, node->dims[d], text);
        if (!fixed) smg_text_add(text, "\"");
    }
    smg_text_add(text, "]}");
}

static void add_json_states(smg_text *text, const smg_graph *g) {
    const char *before = "\n  ],\n  \"states\": [\n    ";
    for (int i = 0; i < g->outputs.count; i++) {
        const smg_graph_output_row *row = &g->outputs.items[i];
        if (row->state == NULL) continue;
        smg_text_addf(text, "%s{\"input\": ", before);
        smg_text_add_json(text, row->state);
        smg_text_add(text, ", \"output\": ");
        smg_text_add_json(text, row->name);
        smg_text_add(text, "}");
        before = ",\n    ";
    }
}

static void add_json(smg_text *text, const smg_graph *g) {
    smg_text_add(text, "{\n  \"graph\": ");
    smg_text_add_json(text, g->name);
    smg_text_addf(text, ",\n  \"operations\": %d,\n  \"parameters\": %lld,\n  \"inputs\": [", smg_compile_op_count(g),
                  (long long)count_parameters(g));
    bool first = true;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        add_json_row(text, g, node->name, id, first);
        first = false;
    }
    smg_text_add(text, "\n  ],\n  \"outputs\": [");
    for (int i = 0; i < g->outputs.count; i++) {
        add_json_row(text, g, g->outputs.items[i].name, g->outputs.items[i].node, i == 0);
    }
    add_json_states(text, g);
    smg_text_add(text, "\n  ],\n  \"sizes\": {");
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        smg_text_add(text, i > 0 ? ", " : "");
        smg_text_add_json(text, smg_size_symbol_name(g->sizes, i));
        int64_t max = smg_size_symbol_max(g->sizes, i);
        if (max >= SMG_SIZE_UNBOUNDED)
            smg_text_add(text, ": {\"max\": null}");
        else
            smg_text_addf(text, ": {\"max\": %lld}", (long long)max);
    }
    smg_text_add(text, "}\n}\n");
}

/* ---- a model that cannot be converted ----------------------------------------------------------- */

static void add_unconverted(smg_text *text, const smg_onnx *model) {
    for (int i = 0; i < smg_onnx_declared_count(model); i++) {
        const smg_onnx_declared *d = smg_onnx_declared_at(model, i);
        smg_text_addf(text, "%-8s %s %s\n", d->output ? "output" : "input", d->name, d->type);
    }
    smg_text_addf(text, "%d nodes are not supported:\n", smg_onnx_missing_count(model));
    for (int i = 0; i < smg_onnx_missing_count(model); i++) {
        const smg_onnx_missing *m = smg_onnx_missing_at(model, i);
        smg_text_addf(text, "  %s%s%s, opset %lld, node '%s': %s\n", m->domain, m->domain[0] ? "." : "", m->op,
                      (long long)m->opset, m->node, m->reason);
    }
}

static void add_declared_json(smg_text *text, const smg_onnx *model, bool output) {
    bool first = true;
    for (int i = 0; i < smg_onnx_declared_count(model); i++) {
        const smg_onnx_declared *d = smg_onnx_declared_at(model, i);
        if (d->output != output) continue;
        smg_text_add(text, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
        smg_text_add_json(text, d->name);
        smg_text_add(text, ", \"type\": ");
        smg_text_add_json(text, d->type);
        smg_text_add(text, "}");
        first = false;
    }
}

static void add_unconverted_json(smg_text *text, const smg_onnx *model) {
    smg_text_add(text, "{\n  \"inputs\": [");
    add_declared_json(text, model, false);
    smg_text_add(text, "\n  ],\n  \"outputs\": [");
    add_declared_json(text, model, true);
    smg_text_add(text, "\n  ],\n  \"unsupported\": [");
    for (int i = 0; i < smg_onnx_missing_count(model); i++) {
        const smg_onnx_missing *m = smg_onnx_missing_at(model, i);
        smg_text_add(text, i > 0 ? ",\n    {\"node\": " : "\n    {\"node\": ");
        smg_text_add_json(text, m->node);
        smg_text_add(text, ", \"op\": ");
        smg_text_add_json(text, m->op);
        smg_text_add(text, ", \"domain\": ");
        smg_text_add_json(text, m->domain);
        smg_text_addf(text, ", \"opset\": %lld, \"reason\": ", (long long)m->opset);
        smg_text_add_json(text, m->reason);
        smg_text_add(text, "}");
    }
    smg_text_add(text, "\n  ]\n}\n");
}

static smg_status info(cli_job *job) {
    if (job->source.graph != NULL) {
        (job->o->json ? add_json : add_table)(&job->text, job->source.graph);
    } else {
        (job->o->json ? add_unconverted_json : add_unconverted)(&job->text, job->source.onnx);
    }
    return SMG_OK;
}

int cli_info(cli_options *o) {
    if (cli_is_bundle(o)) return cli_bundle_info(o);
    return cli_on_model(o, CLI_LOOK, info);
}
