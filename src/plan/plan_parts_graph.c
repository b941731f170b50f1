/* The graph with a group's sums in parts, and what a planner knows of it. All other nodes are what they were; readers
 * of a sum read the one that its parts make. */
#include "plan/plan_parts.h"

static smg_node_id copy_node(parts *s, smg_node_id id) {
    smg_node *slot = SMG_ARRAY_PUSH(s->to->arena, &s->to->nodes);
    smg_type *type = SMG_ARRAY_PUSH(s->arena, &s->storage);
    smg_node_id *from = SMG_ARRAY_PUSH(s->arena, &s->from);
    int *together = SMG_ARRAY_PUSH(s->arena, &s->together), *merges = SMG_ARRAY_PUSH(s->arena, &s->merges);
    if (slot == NULL || type == NULL || from == NULL || together == NULL || merges == NULL) return -1;
    *slot = *smg_graph_node(s->g, id);
    for (int k = 0; k < slot->operand_count; k++) slot->operand[k] = s->now[slot->operand[k]];
    *type = smg_graph_storage(s->g, id);
    *from = id;
    *together = s->p->together != NULL ? s->p->together[id] : 0;
    *merges = s->p->merges != NULL ? s->p->merges[id] : 0;
    return s->to->nodes.count - 1;
}

static smg_status fill_graph(parts *s, bool *out_made) {
    *out_made = true;
    for (smg_node_id id = 0; id < s->g->nodes.count && *out_made; id++) {
        if (parts_folds(s, id))
            SMG_TRY(parts_sum(s, id, &s->now[id]));
        else
            s->now[id] = copy_node(s, id);
        *out_made = s->now[id] >= 0;
    }
    if (*out_made) SMG_TRY(plan_copy_outputs(s->g, s->now, s->to));
    if (s->g->storage != NULL) s->to->storage = s->storage.items;
    smg_status status = s->to->status;
    if (status == SMG_OK || status == SMG_MEMORY) return smg_context_status(s->p->ctx);
    smg_context_clear_error(s->p->ctx); /* some node has more axes than there may be */
    *out_made = false;
    return SMG_OK;
}

static smg_status begin(parts *s) {
    size_t count = (size_t)s->g->nodes.count + 1;
    smg_sizes *sizes = s->g->sizes;
    smg_size chunk = smg_size_const(sizes, s->split.chunk), even;
    s->arena = s->p->arena;
    s->axis = SMG_ARENA_ARRAY(s->arena, int, count);
    s->depends = SMG_ARENA_ARRAY(s->arena, bool, count);
    s->now = SMG_ARENA_ARRAY(s->arena, smg_node_id, count);
    s->whole = SMG_ARENA_ARRAY(s->arena, smg_node_id, count);
    s->part = SMG_ARENA_ARRAY(s->arena, smg_node_id, count);
    s->to = SMG_ARENA_NEW(s->arena, smg_graph);
    if (!s->axis || !s->depends || !s->now || !s->whole || !s->part || !s->to) return SMG_MEMORY;
    for (size_t i = 0; i < count; i++) s->axis[i] = s->now[i] = s->whole[i] = s->part[i] = -1;
    plan_begin_graph(s->g, s->arena, s->to);
    s->extent = smg_graph_node(s->g, s->split.node)->dims[s->split.axis];
    s->even = smg_size_divide_exact(sizes, s->extent, chunk, &even);
    s->count = s->even ? even : smg_size_ceil_div(sizes, s->extent, chunk);
    return smg_exprs_create(s->arena, &s->exprs);
}

/* What a planner knows of the nodes of its graph. */
static smg_status know_nodes(planner *p, const planner *before, const parts *s) {
    size_t count = (size_t)p->g->nodes.count + 1;
    smg_exprs *exprs;
    smg_node_id *origin = SMG_ARENA_ARRAY(p->arena, smg_node_id, count);
    bool *in_parts = SMG_ARENA_ARRAY(p->arena, bool, count), *begins = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->hash = SMG_ARENA_ARRAY(p->arena, uint64_t, count);
    p->hash_at = SMG_ARENA_ARRAY(p->arena, uint64_t, count);
    p->map_cost = SMG_ARENA_ARRAY(p->arena, double, count);
    p->prepared = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->together = s->together.items;
    p->merges = s->merges.items;
    p->groups = before->groups + 1;
    p->origin = origin;
    p->in_parts = in_parts;
    p->begins = begins;
    SMG_TRY(smg_exprs_create(p->arena, &exprs));
    if (!origin || !in_parts || !begins || !p->hash || !p->hash_at || !p->map_cost || !p->prepared) return SMG_MEMORY;
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        smg_node_id from = s->from.items[id];
        bool copied = from >= 0 && !parts_folds(s, from);
        const smg_node *n = smg_graph_node(p->g, id);
        origin[id] = from < 0 || before->origin == NULL ? from : before->origin[from];
        in_parts[id] = from < 0 || s->split.run[from] || (before->in_parts != NULL && before->in_parts[from]);
        begins[id] = from >= 0 && before->begins[from];
        p->prepared[id] = copied && before->prepared[from];
        if (copied) {
            p->hash[id] = before->hash[from];
            p->hash_at[id] = before->hash_at[from];
            p->map_cost[id] = before->map_cost[from];
        } else {
            plan_hash_node(p, id);
            p->map_cost[id] = plan_map_cost(p, exprs, n);
        }
    }
    return plan_mark_inlined(p);
}

smg_status parts_seek(const planner *p, const plan_split *split, smg_arena *arena, parts **out) {
    bool found = false;
    parts *s = SMG_ARENA_NEW(arena, parts);
    planner *made = SMG_ARENA_NEW(arena, planner);
    *out = NULL;
    if (s == NULL || made == NULL) return SMG_MEMORY;
    *made = *p;
    made->arena = arena;
    s->before = p;
    s->p = made;
    s->g = p->g;
    s->split = *split;
    SMG_TRY(begin(s));
    SMG_TRY(parts_find(s, &found));
    if (found) *out = s;
    return SMG_OK;
}

smg_status parts_plan(parts *s, planner **out) {
    bool made;
    *out = NULL;
    SMG_TRY(fill_graph(s, &made));
    if (!made) return SMG_OK;
    *out = s->p;
    s->p->g = s->to;
    return know_nodes(s->p, s->before, s);
}
