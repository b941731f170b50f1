/* A heap of schedules by their guesses. One that has none yet stands at a bound of it; once that comes to the top the
 * schedule gets its guess, and sinks to its place. Those that never come to the top are never guessed. */
#include "plan/plan_guesses.h"

#include <math.h>

static const plan_loops *find_loops(plan_guesses *g, const smg_schedule *s, smg_kernel *k) {
    uint64_t tiles = smg_hash_u64(smg_hash_u64(SMG_HASH_SEED, (uint64_t)s->temporal), s->form);
    for (int a = 0; a < k->axes.count; a++) tiles = smg_hash_u64(tiles, (uint64_t)s->tile[a]);
    plan_loops *known = &g->known[tiles % PLAN_LOOPS];
    if (known->tiles == tiles) return known;
    for (int a = 0; a < k->axes.count; a++) k->axes.items[a].tile = s->tile[a];
    *known = (plan_loops){.tiles = tiles,
                          .share = plan_share(k, g->p->nominal, s->temporal),
                          .uneven = plan_find_uneven(k, g->p->target, g->p->nominal)};
    return known;
}

static void ask_loops(plan_guesses *g, const smg_schedule *s, plan_outline *outline) {
    static const plan_loops even = {.share = 1};
    if (outline == NULL || s->temporal < 0) return;
    smg_kernel *k = g->loops[s->temporal];
    const plan_loops *loops = k != NULL ? find_loops(g, s, k) : &even;
    plan_outline_share(outline, s->temporal, loops->share, &loops->uneven);
}

static void guess(plan_guesses *g, int at) {
    const smg_schedule *s = &g->found->schedules.items.items[at];
    plan_outline *outline = g->found->outline[s->form];
    ask_loops(g, s, outline);
    g->seconds[at] = plan_guess(outline, s);
    g->open[at] = false;
}

static bool is_below(const plan_guesses *g, int a, int b) {
    return g->seconds[a] < g->seconds[b] || (g->seconds[a] == g->seconds[b] && a < b);
}

static void sift_down(plan_guesses *g, int at) {
    int item = g->heap[at];
    for (int below = 2 * at + 1; below < g->count; at = below, below = 2 * at + 1) {
        if (below + 1 < g->count && is_below(g, g->heap[below + 1], g->heap[below])) below++;
        if (!is_below(g, g->heap[below], item)) break;
        g->heap[at] = g->heap[below];
    }
    g->heap[at] = item;
}

static void take_top(plan_guesses *g) {
    g->heap[0] = g->heap[--g->count];
    if (g->count > 0) sift_down(g, 0);
}

/* The schedule with the lowest guess; -1: none is left. */
static int lowest(plan_guesses *g) {
    while (g->count > 0 && g->open[g->heap[0]]) {
        guess(g, g->heap[0]);
        if (isinf(g->seconds[g->heap[0]]))
            take_top(g);
        else
            sift_down(g, 0);
    }
    return g->count > 0 ? g->heap[0] : -1;
}

/* Beyond the dispatch, which both have, a schedule is hardly ever guessed that many times faster than the first of its
 * shape (decision 0055: of 1500 plans one is another at 1.3 than at 1.5, five are at 1.2). */
#define FAR_ALIKE 1.25

smg_status plan_guesses_make(const planner *p, const plan_found *found, smg_kernel *const loops[], smg_arena *arena,
                             plan_guesses *out) {
    const smg_schedules *all = &found->schedules;
    size_t count = (size_t)all->items.count + 1;
    double dispatch = p->target->dispatch_cost, least = HUGE_VAL;
    *out = (plan_guesses){.p = p,
                          .found = found,
                          .loops = loops,
                          .seconds = SMG_ARENA_ARRAY(arena, double, count),
                          .open = SMG_ARENA_ARRAY(arena, bool, count),
                          .heap = SMG_ARENA_ARRAY(arena, int, count)};
    if (out->seconds == NULL || out->open == NULL || out->heap == NULL) return SMG_MEMORY;
    for (int i = 0; i < all->items.count; i++) {
        const smg_schedule *s = &all->items.items[i];
        bool first = i == 0 || s[-1].shape != s->shape;
        if (first) least = HUGE_VAL;
        if (isinf(least) || p->options->search) {
            guess(out, i);
            least = dispatch + (out->seconds[i] - dispatch) / FAR_ALIKE;
        } else {
            out->seconds[i] = least;
            out->open[i] = true;
        }
        if (!isinf(out->seconds[i])) out->heap[out->count++] = i;
    }
    for (int at = out->count / 2 - 1; at >= 0; at--) sift_down(out, at);
    return SMG_OK;
}

/* Beyond the dispatch a guess is that many times the price of what comes out as the best at most: of 72273 segments of
 * four targets 42 have more, up to 2.4 times (unit.plan_bound asks whether plans hang on it). */
#define FAR_OFF 1.6

double plan_guesses_least(plan_guesses *g) {
    int at = lowest(g);
    double dispatch = g->p->target->dispatch_cost;
    return at >= 0 ? dispatch + (g->seconds[at] - dispatch) / FAR_OFF : 0;
}

int plan_guesses_next(plan_guesses *g, double most, double *out_guess) {
    int at = lowest(g);
    if (at < 0 || g->seconds[at] > most) return -1;
    *out_guess = g->seconds[at];
    g->seconds[at] = HUGE_VAL;
    take_top(g);
    return at;
}
