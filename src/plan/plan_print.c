/* What a plan says of itself: the text of its steps, and which value a node stands for. */
#include "plan/plan.h"

smg_node_id smg_plan_origin(const smg_plan *plan, smg_node_id id) {
    return plan->origin == NULL ? id : plan->origin[id];
}

void smg_plan_print(const smg_plan *plan, smg_text *text) {
    int prepare = plan->prepare.count;
    for (int i = 0; i < prepare + plan->steps.count; i++) {
        const smg_pstep *step = i < prepare ? &plan->prepare.items[i] : &plan->steps.items[i - prepare];
        smg_text_addf(text, "%s: %d ops, %.2f us, %.0f KB, %.0f workgroups, shared %lld B, registers %lld, code %lld\n",
                      step->name, step->node_count, step->price.seconds * 1e6, step->price.bytes / 1e3,
                      step->price.workgroups, (long long)step->price.shared_bytes, (long long)step->price.registers,
                      (long long)step->price.operations);
        for (int n = 0; n < step->node_count; n++) {
            const smg_graph *g = i < prepare ? plan->planned : plan->graph;
            smg_text_addf(text, "    %s\n", smg_graph_describe(g, step->nodes[n]));
        }
        const char *line = step->because;
        while (line != NULL && *line != '\0') {
            size_t length = strcspn(line, "\n");
            smg_text_add(text, "  because ");
            smg_text_add_n(text, line, length);
            smg_text_add(text, "\n");
            line += length + (line[length] == '\n');
        }
    }
}
