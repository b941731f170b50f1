/* Computed anew or not, by price: plan_inline.c decides before anything is cut, by a rough count. Here both ways of
 * what is near have a price, in the cut at hand. Tried are, of what has a kernel or is a part of one, groups without
 * products that several others read, and maps of what is in memory in any case; of what is computed anew by that count,
 * a kernel of its own. What changes is the price of who reads the value, and of who made it. */
#include <math.h>

#include "plan/plan_moves.h"

#define MOST_READERS 8 /* groups */
#define SMALL_SHARE 0.25

/* What is tried: these nodes, one behind the other in a group; or one that has no place, in front of its readers. */
typedef struct anew {
    int group;
    span nodes;
    smg_node_id given; /* -1: the nodes become computed anew; else: it gets a kernel */
    int readers;       /* groups that read them, their own not among them */
    bool *reads;       /* per group: it reads them */
} anew;

/* ---- what is near --------------------------------------------------------------------------------- */

static bool is_own(const mover *m, span nodes, smg_node_id id) {
    return moves_is_in(nodes, m->p->place[id]);
}

static bool reads_them(const mover *m, const anew *a, smg_node_id id) {
    bool any = false;
    for (int k = m->first[id]; k < m->first[id + 1] && !is_own(m, a->nodes, id); k++)
        any = any || is_own(m, a->nodes, m->sources.items[k]);
    return any;
}

static void find_readers(const mover *m, anew *a) {
    bool repeated = false;
    a->readers = 0;
    for (int g = 0; g < m->count; g++) {
        span s = moves_group(m, g);
        a->reads[g] = false;
        for (int i = s.from; i < s.to; i++) a->reads[g] = a->reads[g] || reads_them(m, a, m->p->order[i]);
        a->readers += a->reads[g] && g != a->group;
        repeated = repeated || (a->reads[g] && m->made[g]->body > 0);
    }
    if (repeated) a->readers = 0; /* equal bodies have a price as a whole only */
}

/* Multiply-adds of all of its elements; negative: it is nothing that is computed twice. */
static double work_of(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    if (smg_node_class(n) == SMG_CLASS_MAP) return p->map_cost[id] * plan_elements(p, id);
    return smg_node_class(n) == SMG_CLASS_REDUCE ? plan_elements(p, smg_space_source(p->g, n->operand[0])) : -1;
}

/* Bytes that who computes them reads; of those that only they read in their group. */
static double bytes_read(const mover *m, const anew *a) {
    double bytes = 0;
    for (int i = a->nodes.from; i < a->nodes.to; i++) {
        smg_node_id id = m->p->order[i];
        for (int k = m->first[id]; k < m->first[id + 1]; k++)
            if (!is_own(m, a->nodes, m->sources.items[k])) bytes += (double)plan_bytes_of(m->p, m->sources.items[k]);
    }
    return bytes;
}

/* Is what a part of a group reads in it in memory in any case, or small? */
static bool reads_stored(const mover *m, const anew *a, double bytes) {
    span s = moves_group(m, a->group);
    smg_node_id id = m->p->order[a->nodes.from];
    for (int k = m->first[id]; k < m->first[id + 1]; k++) {
        smg_node_id source = m->sources.items[k];
        bool inside = is_own(m, s, source), stored = m->p->last_use[source] >= s.to;
        if (inside && !stored && (double)plan_bytes_of(m->p, source) > SMALL_SHARE * bytes) return false;
    }
    return true;
}

/* Can it pay? What is saved at most: the kernel, or the bytes; what is lost at least: bytes and arithmetic. */
static bool may_pay(const mover *m, const anew *a, bool whole) {
    const planner *p = m->p;
    double work = 0, made = plan_left_bytes(p, a->nodes.from, a->nodes.to), saved;
    for (int i = a->nodes.from; i < a->nodes.to; i++) {
        double own = work_of(p, p->order[i]);
        if (own < 0 || p->last_use[p->order[i]] == INT32_MAX) return false;
        work += own;
    }
    if (!whole && !reads_stored(m, a, made)) return false;
    saved = whole ? m->made[a->group]->price.seconds : 0;
    saved += (4 + a->readers) * made / p->target->bandwidth;
    double more = fmax(0, bytes_read(m, a) - made) / p->target->bandwidth;
    double lost = a->readers * (more + 2 * PLAN_ANEW_PASSES * work / p->target->fma_rate);
    return lost < saved || p->options->objective == SMG_OBJECTIVE_DISPATCHES;
}

/* ---- what it costs -------------------------------------------------------------------------------- */

static void append_others(mover *m, const anew *a, int group) {
    span s = moves_group(m, group);
    smg_node_id nodes[PLAN_MAX_SEGMENT];
    int count = 0;
    for (int i = s.from; i < s.to; i++)
        if (a->given >= 0 || i < a->nodes.from || i >= a->nodes.to) nodes[count++] = m->p->order[i];
    moves_append(m, nodes, count, a->reads[group] || group == a->group ? NULL : m->made[group]);
}

static void arrange(mover *m, const anew *a) {
    bool given = false;
    moves_begin(m);
    if (a->given >= 0) plan_set_anew(&m->trial, &a->given, 1, false);
    for (int g = 0; g < m->count; g++) {
        if (a->given >= 0 && a->reads[g] && !given) {
            moves_append(m, &a->given, 1, NULL);
            given = true;
        }
        if (m->made[g]->body > 0)
            moves_append(m, m->p->order + moves_group(m, g).from, moves_group(m, g).to - moves_group(m, g).from,
                         m->made[g]);
        else
            append_others(m, a, g);
    }
    if (a->given < 0) plan_set_anew(&m->trial, m->p->order + a->nodes.from, a->nodes.to - a->nodes.from, true);
    moves_end(m);
}

/* All groups whose nodes are others now; infinite where they cost more than is of use. */
static smg_status price_trial(mover *m, double most, double *out_cost, double *out_seconds) {
    *out_cost = *out_seconds = 0;
    for (int g = 0, from = 0; g < m->trial_count && !isinf(*out_cost); from = m->trial_ends[g++]) {
        const segment **s = &m->trial_made[g];
        bool allowed = true;
        if (*s == NULL) {
            span nodes = {from, m->trial_ends[g]};
            SMG_TRY(plan_segment_within(&m->trial, nodes.from, nodes.to, most - *out_cost, s));
            SMG_TRY(moves_is_allowed(m, &m->trial, nodes, *s, &allowed));
        }
        *out_cost += allowed ? plan_cost_of(m->p, *s) : HUGE_VAL;
        *out_seconds += (*s)->price.seconds;
    }
    return SMG_OK;
}

static smg_status note(mover *m, const anew *a, double seconds, double before) {
    smg_text text;
    smg_text_init(&text, m->p->ctx);
    const char *last = smg_graph_describe(m->p->g, a->given >= 0 ? a->given : m->p->order[a->nodes.to - 1]);
    int count = a->nodes.to - a->nodes.from;
    if (a->given < 0 && count > 1) smg_text_addf(&text, "%d operations up to ", count);
    smg_text_addf(&text, a->given >= 0 ? "%s as a kernel, not computed anew by %d" : "%s computed anew by %d kernels",
                  last, a->readers);
    smg_status status = smg_text_status(&text);
    if (status == SMG_OK) status = moves_note(m, smg_text_cstr(&text), seconds, before);
    smg_text_free(&text);
    return status;
}

static smg_status try_anew(mover *m, const anew *a, bool *out_taken) {
    double cost, seconds, before = 0, seconds_before = 0, touched = 0;
    if (!moves_may_price(m)) return SMG_OK;
    m->moves->values++;
    arrange(m, a);
    for (int g = 0; g < m->count; g++) {
        before += plan_cost_of(m->p, m->made[g]);
        seconds_before += m->made[g]->price.seconds;
        if (a->reads[g] || g == a->group) touched += m->made[g]->price.seconds;
    }
    SMG_TRY(price_trial(m, before, &cost, &seconds));
    double gain = m->p->options->min_gain;
    if (gain > 0 && seconds_before - seconds < gain * touched) return SMG_OK;
    if (!moves_is_cheaper(m, cost - before, seconds - seconds_before)) return SMG_OK;
    SMG_TRY(note(m, a, seconds, seconds_before));
    *out_taken = true;
    return moves_take(m);
}

/* ---- what is tried -------------------------------------------------------------------------------- */

/* A group of its own that several read, or a map of it that others read. */
static smg_status try_group(mover *m, anew *a, bool *out_taken) {
    span whole = moves_group(m, a->group);
    a->given = -1;
    a->nodes = whole;
    if (m->made[a->group]->body > 0) return SMG_OK;
    find_readers(m, a);
    if (a->readers == 0 || a->readers > MOST_READERS) return SMG_OK;
    if (a->readers > 1 && may_pay(m, a, true)) SMG_TRY(try_anew(m, a, out_taken));
    for (int i = whole.from; i < whole.to && !*out_taken && whole.to - whole.from > 1; i++) {
        a->nodes = (span){i, i + 1};
        if (smg_node_class(smg_graph_node(m->p->g, m->p->order[i])) != SMG_CLASS_MAP) continue;
        if (m->p->last_use[m->p->order[i]] < whole.to) continue;
        find_readers(m, a);
        if (a->readers <= MOST_READERS && may_pay(m, a, false)) SMG_TRY(try_anew(m, a, out_taken));
    }
    return SMG_OK;
}

/* Which groups compute the value anew? */
static void find_users(const mover *m, anew *a) {
    a->readers = 0;
    for (int g = 0; g < m->count; g++) {
        span s = moves_group(m, g);
        smg_node_id nodes[PLAN_MAX_MEMBERS];
        a->reads[g] = false;
        memcpy(nodes, m->p->order + s.from, (size_t)(s.to - s.from) * sizeof *nodes);
        int count = plan_add_inlined(m->p, nodes, s.to - s.from);
        for (int i = s.to - s.from; i < count; i++) a->reads[g] = a->reads[g] || nodes[i] == a->given;
        a->readers += a->reads[g];
    }
}

/* What the rough count computes anew, as a kernel. */
static smg_status try_given(mover *m, anew *a) {
    const planner *p = m->p;
    for (int g = 0; g < m->count; g++)
        if (m->made[g]->body > 0) return SMG_OK; /* equal bodies have a price as a whole only */
    a->group = -1;
    for (a->given = 0; a->given < p->g->nodes.count; a->given++) {
        bool unused = false;
        if (!p->inlined[a->given] || !p->weighed[a->given]) continue;
        find_users(m, a);
        if (a->readers > 0) SMG_TRY(try_anew(m, a, &unused));
    }
    return SMG_OK;
}

smg_status moves_compute_anew(mover *m) {
    anew a = {.reads = SMG_ARENA_ARRAY(m->arena, bool, (size_t)m->p->g->nodes.count + 1)};
    if (a.reads == NULL) return SMG_MEMORY;
    for (a.group = 0; a.group < m->count; a.group++) {
        bool taken = false;
        SMG_TRY(try_group(m, &a, &taken));
        a.group -= taken;
    }
    /* Where kernels are counted, that would be one more. */
    return m->p->options->objective == SMG_OBJECTIVE_DISPATCHES ? SMG_OK : try_given(m, &a);
}
