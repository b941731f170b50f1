/* Graphs in the making: sums in parts and products by terms are other graphs than the one that is planned. */
#include "plan/plan_internal.h"

void plan_begin_graph(const smg_graph *g, smg_arena *arena, smg_graph *out_graph) {
    *out_graph = *g;
    out_graph->arena = arena;
    out_graph->nodes.items = NULL;
    out_graph->nodes.count = out_graph->nodes.capacity = 0;
    out_graph->outputs.items = NULL;
    out_graph->outputs.count = out_graph->outputs.capacity = 0;
    out_graph->storage = NULL;
}

smg_status plan_copy_outputs(const smg_graph *g, const smg_node_id *now, smg_graph *to) {
    for (int i = 0; i < g->outputs.count; i++) {
        smg_graph_output_row *row = SMG_ARRAY_PUSH(to->arena, &to->outputs);
        if (row == NULL) return SMG_MEMORY;
        *row = g->outputs.items[i];
        row->node = now[row->node];
    }
    return SMG_OK;
}
