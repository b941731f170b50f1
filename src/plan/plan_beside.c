/* Kernels that run at a time. Between two of which the second reads nothing of the first there is no barrier: its
 * workgroups begin on cores that have none of the first one's last round. A price of one kernel has the whole round, so
 * of two that follow each other the second costs less by what is idle in it. */
#include "plan/plan_internal.h"

/* Does the node, with what is computed anew for it, read a value of the places [open, before)? */
static bool reads_open(const planner *p, smg_node_id id, int open, int before) {
    smg_node_id nodes[PLAN_MAX_MEMBERS] = {id};
    int count = plan_add_inlined(p, nodes, 1);
    if (count < 0) return true;
    for (int i = 0; i < count; i++) {
        const smg_node *n = smg_graph_node(p->g, nodes[i]);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (!p->inlined[source] && p->place[source] >= open && p->place[source] < before) return true;
        }
    }
    return false;
}

double plan_room_beside(const planner *p, int from, int to, const plan_choice *before, int *out_open) {
    *out_open = from;
    if (before->segment == NULL || p->preparing) return 0;
    for (int i = from; i < to; i++)
        if (reads_open(p, p->order[i], before->open, from)) return 0;
    *out_open = before->open;
    return p->options->objective == SMG_OBJECTIVE_DISPATCHES ? 0 : before->segment->price.idle;
}

double plan_taken_beside(const planner *p, const segment *s, double room) {
    return plan_lesser(room, plan_larger(0, s->price.seconds - p->target->dispatch_cost));
}
