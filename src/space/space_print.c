/* The Space-Mapping Graph as text: axes, then every node with its mappings by type. */
#include "space/space.h"

static void print_axes(const smg_space *space, smg_axis_set set, smg_text *text) {
    smg_text_add(text, "(");
    bool first = true;
    for (int a = 0; a < space->axes.count; a++) {
        if (!(set & SMG_AXIS_BIT(a))) continue;
        smg_text_addf(text, "%s%s", first ? "" : " ", space->axes.items[a].name);
        first = false;
    }
    smg_text_add(text, ")");
}

static void print_read(const smg_space *space, const smg_sread *read, smg_text *text) {
    for (int i = 0; i < read->pick_count; i++) {
        const smg_spick *p = &read->pick[i];
        smg_text_addf(text, " %s ", space->axes.items[p->axis].name);
        if (p->from < 0)
            smg_text_addf(text, "at %lld", (long long)p->at);
        else
            smg_text_addf(text, "back %s", space->axes.items[p->from].name);
    }
    if (read->layer_count > 0) smg_text_add(text, " bordered");
}

static void print_node(const smg_space *space, const smg_snode *n, smg_text *text) {
    smg_text_addf(text, "  %s : %s ", smg_graph_describe(space->graph, n->node), smg_op_get(n->op)->word);
    print_axes(space, n->result, text);
    if (n->iterates != n->result) {
        smg_text_add(text, " all-to-one");
        print_axes(space, n->iterates & ~n->result, text);
    }
    if (n->streamed) smg_text_add(text, n->copy ? " copy" : " streamed");
    if (n->output) smg_text_add(text, " output");
    smg_text_add(text, "\n");
    for (int k = 0; k < n->operand_count; k++) {
        const smg_soperand *o = &n->operand[k];
        smg_axis_set axes = smg_space_operand_axes(space, o);
        smg_node_id source =
            o->producer >= 0 ? space->nodes.items[o->producer].node : space->views.items[o->view].source;
        smg_text_addf(text, "    <- %s", smg_graph_describe(space->graph, source));
        if (o->producer < 0) smg_text_add(text, " (input)");
        if ((n->iterates & ~axes) == 0) {
            smg_text_add(text, " one-to-one");
        } else {
            smg_text_add(text, " one-to-all");
            print_axes(space, n->iterates & ~axes, text);
        }
        if (o->read != NULL) print_read(space, o->read, text);
        const smg_sview *view = o->producer < 0 ? &space->views.items[o->view] : NULL;
        if (view != NULL && view->index_count > 0) smg_text_add(text, " indirect");
        if (view != NULL && view->layer_count > 0) smg_text_add(text, " bordered");
        smg_text_add(text, "\n");
    }
}

void smg_space_print(const smg_space *space, smg_text *text) {
    if (space->refused != NULL) {
        smg_text_addf(text, "no common space: %s\n", space->refused);
        return;
    }
    smg_text_add(text, "axes\n");
    for (int a = 0; a < space->axes.count; a++) {
        smg_text_addf(text, "  %s = ", space->axes.items[a].name);
        smg_size_print(space->graph->sizes, space->axes.items[a].extent, text);
        smg_text_add(text, "\n");
    }
    if (space->repeat.count > 0)
        smg_text_addf(text, "%d equal bodies along %s, each begins with what the one before it has made\n",
                      space->repeat.count, space->axes.items[space->repeat.axis].name);
    smg_text_add(text, "nodes\n");
    for (int i = 0; i < space->nodes.count; i++) {
        if (!space->nodes.items[i].idle) print_node(space, &space->nodes.items[i], text);
    }
}
