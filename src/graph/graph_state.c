/* States: an input that is in the next run what an output is in this one. The graph stays a function of its inputs;
 * that a run leaves something for the next is said beside it, by names, so that no rewrite has to know of it. */
#include "graph/graph_private.h"

int smg_graph_next_of(const smg_graph *g, const char *input) {
    for (int i = 0; i < g->outputs.count; i++)
        if (g->outputs.items[i].state && strcmp(g->outputs.items[i].state, input) == 0) return i;
    return -1;
}

static const smg_node *find_input(const smg_graph *g, const char *name) {
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *node = &g->nodes.items[i];
        if (smg_node_is_input(node) && strcmp(node->name, name) == 0) return node;
    }
    return NULL;
}

static smg_graph_output_row *find_output(const smg_graph *g, const char *name) {
    for (int i = 0; i < g->outputs.count; i++)
        if (strcmp(g->outputs.items[i].name, name) == 0) return &g->outputs.items[i];
    return NULL;
}

static bool same_type(const smg_node *a, const smg_node *b) {
    bool same = a->type == b->type && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
    return same;
}

static smg_status differ(const smg_graph *g, const smg_node *input, const smg_graph_output_row *output) {
    smg_text from, to;
    smg_text_init(&from, g->ctx);
    smg_text_init(&to, g->ctx);
    smg_node_print_type(g, input, &from);
    smg_node_print_type(g, smg_graph_node(g, output->node), &to);
    smg_status status = smg_fail(g->ctx, SMG_INVALID, "state: input %s is %s, and output %s is %s", input->name,
                                 smg_text_cstr(&from), output->name, smg_text_cstr(&to));
    smg_text_free(&from);
    smg_text_free(&to);
    return status;
}

static smg_status make_state(smg_graph *g, const char *input, const char *output) {
    if (!input || !output)
        return smg_fail(g->ctx, SMG_INVALID, "state: the name of the %s is NULL", input ? "output" : "input");
    const smg_node *node = find_input(g, input);
    smg_graph_output_row *row = find_output(g, output);
    if (!node || !row)
        return smg_fail(g->ctx, SMG_INVALID, "state: there is no %s %s", node ? "output" : "input",
                        node ? output : input);
    int next = smg_graph_next_of(g, input);
    if (next >= 0)
        return smg_fail(g->ctx, SMG_INVALID, "state: in the next run input %s is output %s already", input,
                        g->outputs.items[next].name);
    if (row->state)
        return smg_fail(g->ctx, SMG_INVALID, "state: output %s is input %s of the next run already", output,
                        row->state);
    if (!same_type(node, smg_graph_node(g, row->node))) return differ(g, node, row);
    row->state = smg_arena_string(g->arena, input);
    return row->state ? SMG_OK : SMG_MEMORY;
}

smg_status smg_graph_state(smg_graph *g, const char *input, const char *output) {
    if (!g) return SMG_INVALID;
    if (!smg_build_open(g, "state")) return g->finished ? SMG_INVALID : g->status;
    smg_status status = make_state(g, input, output);
    return status == SMG_OK ? SMG_OK : smg_build_stick(g, status);
}
