/* Kernels that run at a time. Between two of which the second reads nothing of the first there is no barrier: its
 * workgroups begin on cores that have none of the first one's last round. A price of one kernel has the whole round, so
 * of two that follow each other the second costs less by what is idle in it.
 *
 * Workgroups go where there is room. Where the first kernel leaves none, the cores that are done with it first take as
 * many of the second one's as they hold. If there are few of them, the other cores get none, and it takes longer. */
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

plan_room plan_room_beside(const planner *p, int from, int to, const plan_choice *before) {
    const plan_room none = {.open = from};
    if (before->segment == NULL || p->preparing) return none;
    for (int i = from; i < to; i++)
        if (reads_open(p, p->order[i], before->open, from)) return none;
    if (p->options->objective == SMG_OBJECTIVE_DISPATCHES) return (plan_room){.open = before->open};
    return (plan_room){.at_a_time = true, .seconds = before->segment->price.idle, .open = before->open};
}

/* May a core have a workgroup of one kernel beside as many of another as it has at a time? */
static bool leaves_room(const smg_target *t, const smg_price *has, const smg_price *comes) {
    const smg_resident *a = &has->resident, *b = &comes->resident;
    double shared = a->workgroups * (double)has->shared_bytes + (double)comes->shared_bytes;
    return a->workgroups * a->lanes + b->lanes <= (double)t->core_lanes &&
           a->workgroups * a->registers + b->registers <= (double)t->registers_core && shared <= (double)t->shared_core;
}

double plan_taken_beside(const planner *p, const segment *before, const segment *s, plan_room room) {
    if (!room.at_a_time) return 0;
    double taken = plan_lesser(room.seconds, plan_larger(0, s->price.seconds - p->target->dispatch_cost));
    return leaves_room(p->target, &before->price, &s->price) ? taken : taken - s->price.heaped;
}
