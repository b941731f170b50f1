/* Moves: what the best cut of one line leaves out. Groups that are no neighbours in it become one (plan_join.c), values
 * are computed anew by those who read them or not any more (plan_anew.c). A move makes another order, in which its
 * groups are contiguous, so that everything that holds of cuts of an order holds of its result: in the end that order
 * is cut like the first one, and taken where it is cheaper. Segments that had a price keep it; how many get one is
 * bounded. */
#include "plan/plan_moves.h"

#define MOST_ROUNDS 3 /* of moves and the cut behind them */

/* ---- orders ---------------------------------------------------------------------------------------- */

static bool is_tensor(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    return smg_node_computes(n) || smg_op_leaf(n->op) == SMG_LEAF_TENSOR;
}

static smg_status add_sources(mover *m, smg_node_id id) {
    const planner *p = m->p;
    smg_node_id nodes[PLAN_MAX_MEMBERS] = {id};
    int count = plan_add_inlined(p, nodes, 1);
    for (int i = 0; i < count; i++) {
        const smg_node *n = smg_graph_node(p->g, nodes[i]);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (p->inlined[source] || !is_tensor(p, source)) continue;
            smg_node_id *slot = SMG_ARRAY_PUSH(m->arena, &m->sources);
            if (slot == NULL) return SMG_MEMORY;
            *slot = source;
        }
    }
    return SMG_OK;
}

smg_status moves_find_sources(mover *m) {
    int nodes = m->p->g->nodes.count;
    m->sources.count = 0;
    for (smg_node_id id = 0; id < nodes; id++) {
        m->first[id] = m->sources.count;
        if (m->p->place[id] >= 0) SMG_TRY(add_sources(m, id));
    }
    m->first[nodes] = m->sources.count;
    return SMG_OK;
}

void moves_begin(mover *m) {
    size_t nodes = (size_t)m->p->g->nodes.count;
    m->trial.count = m->trial_count = 0;
    memcpy(m->trial.inlined, m->p->inlined, nodes * sizeof *m->trial.inlined);
    memcpy(m->trial.bound, m->p->bound, nodes * sizeof *m->trial.bound);
}

void moves_append(mover *m, const smg_node_id *nodes, int count, const segment *s) {
    if (count == 0) return;
    memcpy(m->trial.order + m->trial.count, nodes, (size_t)count * sizeof *nodes);
    m->trial.count += count;
    m->trial_made[m->trial_count] = s;
    m->trial_ends[m->trial_count++] = m->trial.count;
}

void moves_end(mover *m) {
    plan_mark_places(&m->trial, m->live);
}

smg_status moves_take(mover *m) {
    planner before = *m->p;
    int *ends = m->ends;
    const segment **made = m->made;
    *m->p = m->trial;
    m->trial = before;
    m->ends = m->trial_ends;
    m->made = m->trial_made;
    m->count = m->trial_count;
    m->trial_ends = ends;
    m->trial_made = made;
    return moves_find_sources(m);
}

/* ---- prices ---------------------------------------------------------------------------------------- */

bool moves_may_price(mover *m) {
    bool may = m->budget.priced < m->budget.most;
    m->moves->left += !may;
    return may;
}

bool moves_is_cheaper(const mover *m, double cost, double seconds) {
    return cost < 0 && (seconds <= 0 || m->p->options->objective != SMG_OBJECTIVE_TIME);
}

smg_status moves_is_allowed(mover *m, planner *p, span nodes, const segment *s, bool *out_allowed) {
    double alone = 0, gain = m->p->options->min_gain;
    *out_allowed = s->possible && !(p->parted && plan_joins_parts(p, nodes.from, nodes.to));
    if (gain <= 0 || nodes.to - nodes.from == 1) return SMG_OK;
    for (int i = nodes.from; i < nodes.to && *out_allowed; i++) {
        const segment *one;
        SMG_TRY(plan_segment(p, i, i + 1, &one));
        alone += one->price.seconds;
        *out_allowed = one->possible;
    }
    *out_allowed = *out_allowed && s->price.seconds <= (1 - gain) * alone;
    return SMG_OK;
}

smg_status moves_note(mover *m, const char *what, double seconds, double apart) {
    smg_move *slot = SMG_ARRAY_PUSH(m->p->arena, &m->moves->taken);
    const char *kept = smg_arena_string(m->p->arena, what);
    if (slot == NULL || kept == NULL) return SMG_MEMORY;
    *slot = (smg_move){.what = kept, .seconds = seconds, .apart = apart};
    return SMG_OK;
}

/* ---- the search ------------------------------------------------------------------------------------ */

/* An order of its own, for what is tried. */
static smg_status give_arrays(planner *p) {
    size_t nodes = (size_t)p->g->nodes.count + 1;
    p->order = SMG_ARENA_ARRAY(p->arena, smg_node_id, nodes);
    p->place = SMG_ARENA_ARRAY(p->arena, int, nodes);
    p->last_use = SMG_ARENA_ARRAY(p->arena, int, nodes);
    p->inlined = SMG_ARENA_ARRAY(p->arena, bool, nodes);
    p->bound = SMG_ARENA_ARRAY(p->arena, bool, nodes);
    return p->order != NULL && p->place != NULL && p->last_use != NULL && p->inlined != NULL && p->bound != NULL
               ? SMG_OK
               : SMG_MEMORY;
}

/* The groups that the list is cut into, in an order that is the search's own. */
static smg_status begin(mover *m, const planner *p, planner *work, const partition *of) {
    size_t nodes = (size_t)p->g->nodes.count + 1;
    m->first = SMG_ARENA_ARRAY(m->arena, int, nodes);
    m->live = SMG_ARENA_ARRAY(m->arena, bool, nodes);
    m->ends = SMG_ARENA_ARRAY(m->arena, int, nodes);
    m->trial_ends = SMG_ARENA_ARRAY(m->arena, int, nodes);
    m->made = SMG_ARENA_ARRAY(m->arena, const segment *, nodes);
    m->trial_made = SMG_ARENA_ARRAY(m->arena, const segment *, nodes);
    if (!m->first || !m->live || !m->ends || !m->trial_ends || !m->made || !m->trial_made) return SMG_MEMORY;
    *work = m->trial = *p;
    work->budget = m->trial.budget = &m->budget;
    m->p = work;
    SMG_TRY(give_arrays(work));
    SMG_TRY(give_arrays(&m->trial));
    smg_graph_mark_live(p->g, m->live);
    memcpy(work->order, p->order, (size_t)p->count * sizeof *p->order);
    memcpy(work->inlined, p->inlined, (nodes - 1) * sizeof *p->inlined);
    memcpy(work->bound, p->bound, (nodes - 1) * sizeof *p->bound);
    plan_mark_places(work, m->live);
    m->count = of->count;
    for (int g = 0; g < of->count; g++) {
        m->ends[g] = of->ends[g];
        m->made[g] = of->best[of->ends[g]].segment;
    }
    return moves_find_sources(m);
}

static double seconds_of(const partition *of) {
    double seconds = -of->best[of->ends[of->count - 1]].beside;
    for (int g = 0; g < of->count; g++) seconds += of->best[of->ends[g]].segment->price.seconds;
    return seconds;
}

/* The order that moves have made, cut like any other. */
static smg_status cut_again(const mover *m, planner *p, planner *work, partition *io, bool *out_better) {
    partition list;
    smg_status status = plan_cut(work, &list);
    if (status == SMG_NO_FIT) { /* where options leave out what the moves have made */
        smg_context_clear_error(p->ctx);
        return SMG_OK;
    }
    SMG_TRY(status);
    if (!plan_comes_first(p, &list, io)) return SMG_OK;
    if (!moves_is_cheaper(m, list.cost - io->cost, seconds_of(&list) - seconds_of(io))) return SMG_OK;
    list.moves = io->moves;
    *io = list;
    *p = *work;
    p->budget = NULL;
    *out_better = true;
    return SMG_OK;
}

static smg_status search_once(planner *p, partition *io, bool *out_better) {
    planner *work = SMG_ARENA_NEW(p->arena, planner);
    int most = p->options->moves > 0 ? p->options->moves : SMG_PLAN_MOVES, taken = io->moves.taken.count;
    mover m = {.moves = &io->moves, .budget.most = most - io->moves.segments};
    if (work == NULL) return SMG_MEMORY;
    SMG_TRY(smg_arena_create(p->ctx, &m.arena));
    smg_status status = begin(&m, p, work, io);
    if (status == SMG_OK) status = moves_join(&m);
    if (status == SMG_OK) status = moves_compute_anew(&m);
    smg_arena_destroy(m.arena);
    if (status == SMG_OK && io->moves.taken.count > taken) status = cut_again(&m, p, work, io, out_better);
    if (!*out_better) io->moves.taken.count = taken;
    io->moves.segments += m.budget.priced;
    io->moves.uncut += m.budget.refused;
    return status;
}

smg_status plan_search_moves(planner *p, partition *io) {
    bool better = true;
    const smg_plan_options *o = p->options;
    if (o->unfused || o->moves < 0 || io->over || o->objective == SMG_OBJECTIVE_MEMORY) return SMG_OK;
    io->moves.searched = true;
    for (int round = 0; round < MOST_ROUNDS && better; round++) {
        better = false;
        SMG_TRY(search_once(p, io, &better));
    }
    if (io->moves.left + io->moves.uncut > 0)
        smg_log(p->ctx, SMG_LOG_INFO,
                "the search for kernels of '%s' is bounded: %d segments got a price beside the line, %d moves and %d "
                "segments have none",
                p->g->name, io->moves.segments, io->moves.left, io->moves.uncut);
    return SMG_OK;
}
