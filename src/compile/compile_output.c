/* compile_output.c: every output gets a buffer of its own.
 *
 * A program gives an output from the buffer that a kernel stored. A reshape of a stored value lies in
 * memory as the value does. Everything else (an input or constant handed through, a transposed or
 * sliced view, one value under two names) gets a copy: one node that stores its operand as it is, which
 * the planner fuses like any other. */
#include "compile/compile.h"

/* The node whose buffer can serve as the output's memory, -1 when there is none. */
static smg_node_id stored_behind(const smg_graph *g, smg_node_id id) {
    for (;;) {
        const smg_node *node = smg_graph_node(g, id);
        smg_op_class class_ = smg_node_class(node);
        if (class_ == SMG_CLASS_LEAF) return -1;
        if (class_ != SMG_CLASS_VIEW) return id;
        if (smg_op_view(node->op) != SMG_VIEW_RESHAPE) return -1;
        id = node->operand[0];
    }
}

static bool taken_before(const smg_graph *g, int output, smg_node_id stored) {
    for (int i = 0; i < output; i++) {
        if (stored_behind(g, g->outputs.items[i].node) == stored) return true;
    }
    return false;
}

smg_node smg_compile_copy_node(const smg_graph *g, smg_node_id of, const char *name) {
    const smg_node *from = smg_graph_node(g, of);
    smg_node copy = {
        .op = SMG_OP_COPY, .type = from->type, .rank = from->rank, .operand_count = 1, .operand = {of}, .name = name};
    memcpy(copy.dims, from->dims, sizeof(copy.dims));
    return copy;
}

static smg_status copy_output(smg_graph *g, int output) {
    const smg_graph_output_row *row = &g->outputs.items[output];
    const smg_node copy = smg_compile_copy_node(g, row->node, row->name);
    smg_node *stored = SMG_ARRAY_PUSH(g->arena, &g->nodes);
    if (stored == NULL) return SMG_MEMORY;
    *stored = copy;
    g->outputs.items[output].node = g->nodes.count - 1;
    return SMG_OK;
}

smg_status smg_compile_copy_outputs(smg_graph *g) {
    for (int i = 0; i < g->outputs.count; i++) {
        smg_node_id stored = stored_behind(g, g->outputs.items[i].node);
        if (stored < 0 || taken_before(g, i, stored)) SMG_TRY(copy_output(g, i));
    }
    return SMG_OK;
}
