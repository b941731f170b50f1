/* compile_interface.c: a graph's inputs and outputs as runs see them (bundle/interface.h). */
#include "compile/compile.h"

static smg_status fill_port(const smg_graph *g, const char *name, const smg_node *node, smg_port *out) {
    *out = (smg_port){.name = name, .rank = node->rank};
    if (!smg_compile_storage(node->type, node->type, &out->type)) {
        return smg_fail(g->ctx, SMG_INTERNAL, "'%s' has type %d", name, (int)node->type);
    }
    for (int d = 0; d < node->rank; d++) out->dims[d] = node->dims[d];
    return SMG_OK;
}

static smg_absent absent_of(const smg_source *source, const char *name) {
    smg_fill fill = SMG_FILL_RANDOM;
    if (source == NULL || !smg_source_default(source, name, &fill)) return SMG_ABSENT_REFUSED;
    return fill == SMG_FILL_ONES ? SMG_ABSENT_ONES : SMG_ABSENT_ZEROS;
}

/* Does `id` read `input` through views and conversions alone? */
static bool comes_from(const smg_graph *g, smg_node_id id, smg_node_id input) {
    while (id != input) {
        const smg_node *node = smg_graph_node(g, id);
        bool passes = smg_node_class(node) == SMG_CLASS_VIEW || smg_op_converts(node->op);
        if (!passes) return false;
        id = node->operand[0];
    }
    return true;
}

smg_status smg_compile_input_port(const smg_graph *g, smg_node_id input, smg_port *out) {
    const smg_node *node = smg_graph_node(g, input);
    SMG_TRY(fill_port(g, node->name, node, out));
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *reader = smg_graph_node(g, id);
        if (smg_node_class(reader) != SMG_CLASS_GATHER || !comes_from(g, reader->operand[1], input)) continue;
        smg_size rows = smg_graph_node(g, reader->operand[0])->dims[0];
        out->below = out->below == SMG_SIZE_ZERO ? rows : smg_size_min(g->sizes, out->below, rows);
    }
    return out->below != SMG_SIZE_NONE ? SMG_OK : smg_context_status(g->ctx);
}

smg_status smg_compile_interface(smg_arena *arena, const smg_graph *g, const smg_source *source,
                                 smg_interface **out_interface) {
    smg_interface *n = SMG_ARENA_NEW(arena, smg_interface);
    if (n == NULL) return SMG_MEMORY;
    n->sizes = g->sizes;
    n->input_count = smg_graph_input_nodes(g, NULL, 0);
    n->output_count = g->outputs.count;
    smg_node_id *nodes = SMG_ARENA_ARRAY(arena, smg_node_id, (size_t)n->input_count + 1);
    n->inputs = SMG_ARENA_ARRAY(arena, smg_port, (size_t)n->input_count + 1);
    n->outputs = SMG_ARENA_ARRAY(arena, smg_port, (size_t)n->output_count + 1);
    n->nominal = SMG_ARENA_ARRAY(arena, int64_t, (size_t)smg_size_symbol_count(g->sizes) + 1);
    if (!nodes || !n->inputs || !n->outputs || !n->nominal) return SMG_MEMORY;
    smg_graph_input_nodes(g, nodes, n->input_count);
    smg_plan_nominal(g, n->nominal);
    for (int i = 0; i < n->input_count; i++) {
        SMG_TRY(smg_compile_input_port(g, nodes[i], &n->inputs[i]));
        int next = smg_graph_next_of(g, n->inputs[i].name);
        n->inputs[i].absent = next >= 0 ? SMG_ABSENT_STATE : absent_of(source, n->inputs[i].name);
        if (next >= 0) n->inputs[i].next = next;
    }
    for (int i = 0; i < n->output_count; i++) {
        const smg_node *node = smg_graph_node(g, g->outputs.items[i].node);
        SMG_TRY(fill_port(g, g->outputs.items[i].name, node, &n->outputs[i]));
    }
    *out_interface = n;
    return SMG_OK;
}
