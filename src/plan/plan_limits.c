/* What is allowed of a run list beside what is possible: how many operations a kernel has, what it gains, and how many
 * bytes of values between kernels live at a time. What lives while a segment runs hangs on its two ends alone
 * (plan_lives.c), so that a limit leaves segments out, and the cheapest of the others are still found by dynamic
 * programming. The least that any way to cut needs is found in the same walk, with the larger of two in the place of
 * their sum. */
#include <math.h>

#include "plan/plan_internal.h"

int plan_longest(const planner *p) {
    int most = p->options->max_nodes;
    if (p->preparing || (most == 0 && !p->options->unfused)) return PLAN_SEGMENT;
    if (p->options->unfused) return 1;
    return most < PLAN_MAX_SEGMENT ? most : PLAN_MAX_SEGMENT;
}

int plan_most_products(const planner *p) {
    int most = p->options->max_products;
    if (p->preparing || most == 0) return PLAN_PRODUCTS;
    return most < PLAN_MAX_PRODUCTS ? most : PLAN_MAX_PRODUCTS;
}

int plan_products(const planner *p, int from, int to) {
    int products = 0;
    for (int i = from; i < to; i++) products += smg_node_class(smg_graph_node(p->g, p->order[i])) == SMG_CLASS_CONTRACT;
    return products;
}

static bool asks_for_gain(const planner *p) {
    return p->options->min_gain > 0 && !p->preparing;
}

smg_status plan_limit(planner *p, partition *out) {
    out->limit = p->preparing                                    ? INT64_MAX
                 : p->options->objective == SMG_OBJECTIVE_MEMORY ? 0
                 : p->options->max_live > 0                      ? p->options->max_live
                                                                 : INT64_MAX;
    for (int i = 1; i <= p->count; i++) out->best[i].least = INT64_MAX;
    for (int i = 0; i < p->count && asks_for_gain(p); i++) {
        const segment *s;
        SMG_TRY(plan_segment(p, i, i + 1, &s));
        out->best[i + 1].alone = out->best[i].alone + (s->possible ? s->price.seconds : HUGE_VAL);
    }
    return SMG_OK;
}

/* Of the time that the nodes take as kernels of their own. */
static double gain(const partition *of, int from, int to, const segment *s) {
    return 1 - s->price.seconds / (of->best[to].alone - of->best[from].alone);
}

static bool gains(const planner *p, const partition *of, int from, int to, const segment *s) {
    return !asks_for_gain(p) || to == from + 1 || gain(of, from, to, s) >= p->options->min_gain;
}

bool plan_joins_parts(const planner *p, int from, int to) {
    for (int i = from; p->merges != NULL && i < to; i++) {
        int of = p->together[p->order[i]];
        for (int k = i + 1; of > 0 && k < to; k++)
            if (p->merges[p->order[k]] == of) return true;
    }
    return false;
}

bool plan_is_allowed(const planner *p, partition *out, int from, int to, const segment *s) {
    if (!gains(p, out, from, to, s) || (p->parted && plan_joins_parts(p, from, to))) return false;
    if (plan_oversized(p, from, to) >= 0) return false;
    int64_t live = plan_live(p, from, to), before = out->best[from].least, widest = live > before ? live : before;
    if (widest < out->best[to].least) out->best[to].least = widest;
    return live <= out->limit;
}

/* Of the cheapest way that was found. */
static int64_t live_of(const planner *p, const partition *of) {
    int64_t most = 0;
    for (int at = p->count; at > 0; at = of->best[at].from) {
        int64_t live = plan_live(p, of->best[at].from, at);
        if (live > most) most = live;
    }
    return most;
}

/* false: nothing presses, or nothing is to be saved. */
static bool press(const planner *p, partition *out) {
    double pressure = p->options->memory_pressure;
    if (p->preparing || pressure <= 0 || out->best[p->count].segment == NULL) return false;
    int64_t least = out->best[p->count].least, live = live_of(p, out);
    if (live <= least) return false;
    out->limit = least + (int64_t)((1 - pressure) * (double)(live - least));
    return true;
}

bool plan_limit_again(const planner *p, partition *out) {
    int64_t least = out->best[p->count].least;
    if (least <= out->limit) return press(p, out);
    if (least == INT64_MAX) return false;
    out->live = least;
    out->over = p->options->objective != SMG_OBJECTIVE_MEMORY && !p->options->or_least;
    out->limit = least;
    return !out->over;
}

bool plan_lift_limit(planner *p, const partition *of) {
    bool alone = p->most <= 0 && p->budget == NULL; /* no other list has been found, to compare with */
    bool lifts = p->oversized && !p->any_size && alone && !of->over && of->best[p->count].segment == NULL;
    p->any_size = p->any_size || lifts;
    if (lifts)
        smg_log(
            p->ctx, SMG_LOG_INFO,
            "every way to cut '%s' into kernels leaves a value of more than the %lld bytes that a buffer has at most",
            p->g->name, (long long)smg_target_largest_buffer(p->target));
    return lifts;
}

bool plan_tell_limit(const planner *p, const partition *of, int from, int to, const segment *s, smg_text *why) {
    int64_t live = plan_live(p, from, to);
    int products = plan_products(p, from, to), oversized = plan_oversized(p, from, to);
    if (to - from > plan_longest(p)) {
        smg_text_addf(why, "together %d operations, a kernel may have %d\n", to - from, plan_longest(p));
    } else if (s->possible && products > plan_most_products(p)) {
        smg_text_addf(why, "together %d products, a kernel may have %d\n", products, plan_most_products(p));
    } else if (s->possible && !gains(p, of, from, to, s) && gain(of, from, to, s) > 0) {
        smg_text_addf(why, "together %.1f %% of their time alone is saved, less than the %.1f %% asked for\n",
                      100 * gain(of, from, to, s), 100 * p->options->min_gain);
    } else if (s->possible && p->parted && plan_joins_parts(p, from, to)) {
        smg_text_add(why, "together sums would have no parts, which were measured\n");
    } else if (s->possible && oversized >= 0) {
        smg_text_addf(why, "together they leave %s of %lld bytes, a buffer has %lld at most\n",
                      smg_graph_describe(p->g, p->order[oversized]), (long long)p->lives[oversized].bytes,
                      (long long)smg_target_largest_buffer(p->target));
    } else if (s->possible && live > of->limit) {
        smg_text_addf(why, "together %lld bytes of values live between kernels, %lld may\n", (long long)live,
                      (long long)of->limit);
    } else {
        return false;
    }
    return true;
}

smg_status plan_over_limit(const planner *p, int64_t least) {
    return smg_fail(
        p->ctx, SMG_NO_FIT,
        "no way to cut '%s' into kernels keeps to %lld bytes of values between them at the sizes that it is "
        "planned for: %lld bytes are the least",
        p->g->name, (long long)p->options->max_live, (long long)least);
}
