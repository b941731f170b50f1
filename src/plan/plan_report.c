/* What a plan saves, for whoever asks: each step beside its operations as kernels of their own, and steps that follow
 * each other as one kernel. All of them are segments of the order that was cut: most have a price from the search, the
 * others get theirs now. What the search ends before (too many operations or products) has none here either. */
#include "plan/plan_internal.h"

#define MOST_GROUPINGS 4096 /* places that are looked at */

typedef struct reporter {
    planner *p;
    const partition *of;
    smg_plan *plan;
    SMG_ARRAY(const segment *) seen; /* per grouping */
    int places;
} reporter;

static int begin_of(const partition *of, int kernel) {
    return kernel > 0 ? of->ends[kernel - 1] : 0;
}

const smg_timing *smg_timing_find(const smg_timing *timings, int count, uint64_t at, uint64_t schedule) {
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const smg_timing *m = &timings[middle];
        if (m->at == at && m->schedule == schedule) return m;
        if (m->at < at || (m->at == at && m->schedule < schedule))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Seconds of the schedule that the segment has; 0: it was not measured. */
static double measured_of(const planner *p, const segment *s) {
    const smg_plan_options *o = p->options;
    if (s->measured != NULL) return s->measured->seconds;
    const smg_timing *found =
        smg_timing_find(o->timings, o->timing_count, s->at, smg_schedule_hash(s->at, &s->schedule));
    return found != NULL ? found->seconds : 0;
}

static smg_status tell_apart(planner *p, int from, int to, smg_apart *out) {
    bool known = true;
    for (int i = from; i < to; i++) {
        const segment *s;
        int64_t live = plan_live(p, i, i + 1);
        SMG_TRY(plan_segment(p, i, i + 1, &s));
        out->seconds += s->price.seconds;
        out->bytes += s->price.bytes;
        if (live > out->live) out->live = live;
        double measured = measured_of(p, s);
        known = known && measured > 0;
        out->measured += measured;
    }
    if (!known) out->measured = 0;
    return SMG_OK;
}

/* Has some possible segment the places before and behind `at`? */
static bool is_joinable(const partition *of, int at) {
    for (int from = 0; from < at; from++)
        if (of->best[from].reach > at) return true;
    return false;
}

static smg_status tell_step(const reporter *r, int at) {
    planner *p = r->p;
    smg_pstep *step = &r->plan->steps.items[at];
    int from = begin_of(r->of, at), to = r->of->ends[at];
    const smg_matrix *m = &step->kernel->matrix;
    step->live = plan_live(p, from, to);
    for (int i = from; i <= to; i++) step->joinable += i > 0 && i < p->count && is_joinable(r->of, i);
    step->rate = m->rows > 0 ? plan_matrix_rate(p->target, m->rows, m->cols, m->depth, m->type) : p->target->fma_rate;
    return tell_apart(p, from, to, &step->apart);
}

/* ---- neighbours ----------------------------------------------------------------------------------- */

static bool is_within(const planner *p, int from, int to) {
    return to - from <= plan_longest(p) && plan_products(p, from, to) <= plan_most_products(p);
}

static smg_grouping describe(const reporter *r, int first, int last, const segment *s) {
    int from = begin_of(r->of, first), to = r->of->ends[last];
    smg_grouping g = {
        .first = first, .last = last, .places = 1, .nodes = to - from, .at = s->at, .live = plan_live(r->p, from, to)};
    if (s->possible) {
        g.seconds = s->price.seconds;
        g.bytes = s->price.bytes;
    } else {
        g.refused = s->refused != NULL ? s->refused : "no schedule";
    }
    for (int k = first; k <= last; k++) {
        const smg_pstep *step = &r->plan->steps.items[k];
        g.apart += step->price.seconds;
        g.apart_bytes += step->price.bytes;
        if (step->live > g.apart_live) g.apart_live = step->live;
    }
    return g;
}

/* Layers repeat: of equal structures in equal steps the first stands for all. */
static smg_grouping *find_equal(reporter *r, const smg_grouping *g, const segment *s) {
    for (int i = 0; i < r->plan->groupings.count; i++) {
        smg_grouping *other = &r->plan->groupings.items[i];
        bool steps = other->last - other->first == g->last - g->first && other->nodes == g->nodes;
        if (r->seen.items[i] == s && steps && other->apart == g->apart) return other;
    }
    return NULL;
}

static smg_status add_grouping(reporter *r, int first, int last) {
    const segment *s;
    SMG_TRY(plan_segment(r->p, begin_of(r->of, first), r->of->ends[last], &s));
    const smg_grouping g = describe(r, first, last, s);
    smg_grouping *equal = find_equal(r, &g, s);
    if (equal != NULL) {
        equal->places++;
        return SMG_OK;
    }
    smg_grouping *slot = SMG_ARRAY_PUSH(r->p->arena, &r->plan->groupings);
    const segment **seen = SMG_ARRAY_PUSH(r->p->arena, &r->seen);
    if (slot == NULL || seen == NULL) return SMG_MEMORY;
    *slot = g;
    *seen = s;
    return SMG_OK;
}

/* All runs of steps, the short ones of each step first; the step alone is none. */
static smg_status add_groupings(reporter *r) {
    for (int first = 0; first < r->of->count; first++) {
        for (int last = first + 1; last < r->of->count; last++) {
            bool priced = r->places < MOST_GROUPINGS && is_within(r->p, begin_of(r->of, first), r->of->ends[last]);
            if (!priced) r->plan->unpriced += r->of->count - last;
            if (!priced) break;
            r->places++;
            SMG_TRY(add_grouping(r, first, last));
        }
    }
    if (r->places == MOST_GROUPINGS)
        smg_log(r->p->ctx, SMG_LOG_INFO, "the report ends after %d runs of neighbouring kernels; %d have no price",
                r->places, r->plan->unpriced);
    return SMG_OK;
}

smg_status plan_report(planner *p, const partition *of, smg_plan *plan) {
    reporter r = {.p = p, .of = of, .plan = plan};
    for (int i = 0; i < plan->steps.count; i++) SMG_TRY(tell_step(&r, i));
    for (int at = 1; at < p->count; at++) plan->joinable += is_joinable(of, at);
    return add_groupings(&r);
}
