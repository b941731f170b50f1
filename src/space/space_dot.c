/* The Space-Mapping Graph for Graphviz: data spaces are ellipses, iteration spaces boxes, mappings are edges with their
 * type and direction. A value has one name in all spaces of a graph, so that what one kernel stores is what another one
 * reads; such an edge is bold, the graph was cut there. */
#include "space/space.h"

static void add_axes(const smg_space *space, smg_axis_set set, smg_text *text) {
    bool first = true;
    for (int a = 0; a < space->axes.count; a++) {
        if (!(set & SMG_AXIS_BIT(a))) continue;
        smg_text_addf(text, "%s%s", first ? "" : " ", space->axes.items[a].name);
        first = false;
    }
}

/* What equal bodies leave is what the last one has made. */
static smg_node_id value_of(const smg_space *space, const smg_snode *n) {
    return space->repeat.count > 0 && n->node == space->repeat.made ? space->repeat.last : n->node;
}

static void add_data(const smg_space *space, const char *name, int node, smg_text *text) {
    const smg_snode *n = &space->nodes.items[node];
    if (n->copy)
        smg_text_addf(text, "\"%s.copy%d\"", name, node);
    else
        smg_text_addf(text, "v%d", value_of(space, n));
}

static void declare(const smg_graph *g, smg_node_id id, smg_text *text) {
    smg_text_add(text, " [shape=ellipse, label=");
    smg_text_add_json(text, smg_graph_describe(g, id));
    smg_text_add(text, "]\n");
}

static void add_nodes(const smg_space *space, const char *name, smg_text *text) {
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->idle) continue;
        smg_text_addf(text, "    \"%s.%d\" [shape=box, label=\"%s (", name, i, smg_op_get(n->op)->word);
        add_axes(space, n->iterates, text);
        smg_text_add(text, ")\"]\n    ");
        add_data(space, name, i, text);
        declare(space->graph, value_of(space, n), text);
    }
}

static void add_result(const smg_space *space, const char *name, int node, smg_text *text) {
    const smg_snode *n = &space->nodes.items[node];
    smg_text_addf(text, "  \"%s.%d\" -> ", name, node);
    add_data(space, name, node, text);
    if (n->iterates == n->result) {
        smg_text_add(text, " [label=\"One-to-One\"]\n");
        return;
    }
    smg_text_add(text, " [label=\"All-to-One(");
    add_axes(space, n->iterates & ~n->result, text);
    smg_text_addf(text, ", %s)\"]\n", smg_combine_word(smg_op_combine(n->op)));
}

static void add_operand(const smg_space *space, const char *name, int node, const smg_soperand *o, const bool *stored,
                        smg_text *text) {
    const smg_snode *n = &space->nodes.items[node];
    const smg_sview *view = o->producer < 0 ? &space->views.items[o->view] : NULL;
    smg_axis_set lacks = n->iterates & ~smg_space_operand_axes(space, o);
    if (view != NULL && view->source < 0) return;
    if (view != NULL) {
        smg_text_addf(text, "  v%d", view->source);
        declare(space->graph, view->source, text);
    }
    smg_text_add(text, "  ");
    if (view != NULL)
        smg_text_addf(text, "v%d", view->source);
    else
        add_data(space, name, o->producer, text);
    smg_text_addf(text, " -> \"%s.%d\" [label=\"%s", name, node, lacks != 0 ? "One-to-All(" : "One-to-One");
    add_axes(space, lacks, text);
    smg_text_add(text, lacks != 0 ? ")" : "");
    if (o->read != NULL) smg_text_add(text, ", elsewhere");
    if (view != NULL && view->index_count > 0) smg_text_add(text, ", indirect");
    if (view != NULL && view->layer_count > 0) smg_text_add(text, ", bordered");
    smg_text_add(text, view != NULL && stored[view->source] ? "\", style=bold]\n" : "\"]\n");
}

void smg_space_print_dot(const smg_space *space, const char *name, const char *label, const bool *stored,
                         smg_text *text) {
    smg_text_addf(text, "  subgraph \"cluster_%s\" {\n    label=", name);
    smg_text_add_json(text, label);
    smg_text_add(text, "\n");
    if (space->refused == NULL) add_nodes(space, name, text);
    smg_text_add(text, "  }\n");
    for (int i = 0; i < space->nodes.count && space->refused == NULL; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->idle) continue;
        for (int k = 0; k < n->operand_count; k++) add_operand(space, name, i, &n->operand[k], stored, text);
        add_result(space, name, i, text);
    }
}
