/* Partition: the cheapest way to cut the linear order into segments, by dynamic programming. A cut is
 * therefore always a comparison of prices, and a fusion that pays only once it is complete (everything
 * between two products) is found although its beginnings do not pay. */
#include <float.h>
#include <math.h>

#include "plan/plan_internal.h"

/* Every extent of the graph is at least 1 at these values. */
static bool has_elements(const smg_graph *g, const int64_t *values) {
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *n = smg_graph_node(g, i);
        for (int k = 0; k < n->rank; k++) {
            int64_t extent;
            if (!smg_size_eval(g->sizes, n->dims[k], values, &extent) || extent < 1) return false;
        }
    }
    return true;
}

/* A size that is strided or cut on the way (samples of a sound) needs more than 1 for anything to be left: the
 * first symbol that helps grows, and where none does, all grow. */
static bool grow(const smg_graph *g, int64_t *values, int symbols) {
    bool grown = false;
    for (int i = 0; i < symbols; i++) {
        int64_t before = values[i], max = smg_size_symbol_max(g->sizes, i);
        for (int64_t more = 2 * before; more <= (1 << 20) && more / 2 < max; more *= 2) {
            values[i] = more < max ? more : max;
            if (has_elements(g, values)) return true;
        }
        values[i] = before;
    }
    for (int i = 0; i < symbols; i++) {
        int64_t max = smg_size_symbol_max(g->sizes, i);
        if (values[i] >= max || values[i] >= (1 << 20)) continue;
        values[i] = 2 * values[i] < max ? 2 * values[i] : max;
        grown = true;
    }
    return grown;
}

void smg_plan_nominal(const smg_graph *g, int64_t *out_values) {
    int symbols = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < symbols; i++) {
        int64_t max = smg_size_symbol_max(g->sizes, i);
        out_values[i] = max >= SMG_SIZE_UNBOUNDED ? 1 : max < 128 ? max : 128;
    }
    while (!has_elements(g, out_values) && grow(g, out_values, symbols)) {
    }
}

#define LEAST_BETWEEN 5e-9 /* seconds: less shows in no price */
#define FAVOUR 0.25        /* of its price, for what was measured to be better as one kernel */

/* The kernel behind waits for what this one has just written: two kernels with 537 MB between them take the time that
 * memory needs for these longer than each of them alone (bench/NOTES.md). */
static double wait_behind(const planner *p, const segment *s) {
    return s->price.stored / p->target->bandwidth;
}

double plan_cost_of(const planner *p, const segment *s) {
    /* Of equally many kernels those that move least: a tensor that stays inside is what a kernel is for. */
    if (p->options->objective == SMG_OBJECTIVE_DISPATCHES)
        return 1.0 + 1e-14 * s->price.bytes + 1e-6 * s->price.seconds;
    return (s->cut != NULL ? FAVOUR : 1) * (s->price.seconds + wait_behind(p, s));
}

static bool is_product(const planner *p, int at) {
    return smg_node_class(smg_graph_node(p->g, p->order[at])) == SMG_CLASS_CONTRACT;
}

/* The prepare list has little to gain from kernels that do two unrelated things: a segment grows only by nodes that
 * read it, so that a hundred weights to repack are a hundred small segments. */
static bool reads_segment(const planner *p, int from, int at) {
    const smg_node *n = smg_graph_node(p->g, p->order[at]);
    for (int k = 0; k < n->operand_count; k++) {
        smg_node_id source = smg_space_source(p->g, n->operand[k]);
        if (p->prepared[source] && p->place[source] >= from && p->place[source] < at) return true;
    }
    return false;
}

/* Rows that a choice leaves out of a product need not be computed where the choice is the product's own kernel's: of
 * rows masks keep what they keep of keys. */
static double lost_before(const planner *p, int from, const plan_choice *before) {
    const smg_node *n = smg_graph_node(p->g, p->order[from]);
    bool cut = n->spare && smg_node_class(smg_graph_node(p->g, n->operand[1])) == SMG_CLASS_CONTRACT;
    return cut && before->segment != NULL ? (1 - p->kept) * before->segment->price.seconds : 0;
}

/* Of ways that cost the same the one that begins first, of nodes and of equal bodies the nodes. */
static bool comes_before(const plan_choice *best, int from, const segment *s) {
    if (best->segment == NULL || from != best->from) return best->segment != NULL && from < best->from;
    return s->body == 0 && best->segment->body > 0;
}

static void take_if_cheaper(const planner *p, plan_choice *best, int from, int to, const segment *s, plan_room room) {
    double beside = plan_taken_beside(p, best[from].segment, s, room);
    double cost = best[from].cost + plan_cost_of(p, s) - beside;
    if (s->body == 0) cost += lost_before(p, from, &best[from]);
    bool cheaper = cost < best[to].cost; /* nor where it is no number */
    if (!cheaper && !(cost <= best[to].cost && comes_before(&best[to], from, s))) return;
    best[to].cost = cost;
    best[to].from = from;
    best[to].segment = s;
    best[to].open = room.open;
    best[to].beside = best[from].beside + beside;
}

/* Segments of an order, as they are walked over. */
typedef struct walk {
    planner *p;
    partition *out;
    int *products; /* in front of each place */
    bool *ended;   /* by start: no longer segment is looked at */
    bool *inside;  /* per place, plan_mark_inside: no segment of several nodes begins or ends there */
    double *least; /* by start: seconds that no longer segment takes less than, up to the next fold; 0: nothing known */
    bool bounded;
    bool floors;      /* what the list may cost is known, and what its places take at least: */
    double most;      /* infinite: any */
    plan_floor floor; /* then */
} walk;

/* Equal bodies are one segment, however many there are. */
static smg_status extend_repeated(planner *p, int from, partition *out) {
    const segment *s;
    int to, most = p->options->max_nodes;
    if (p->preparing || p->options->unfused) return SMG_OK;
    SMG_TRY(plan_repeated_segment(p, from, &to, &s));
    if (s == NULL) return SMG_OK;
    out->breadth.segments++;
    out->breadth.possible += s->possible;
    if (!s->possible || (most > 0 && to - from > most)) return SMG_OK;
    if (to > out->best[from].reach) out->best[from].reach = to;
    if (!plan_is_allowed(p, out, from, to, s)) return SMG_OK;
    take_if_cheaper(p, out->best, from, to, s, plan_room_beside(p, from, to, &out->best[from]));
    return SMG_OK;
}

/* Do limits end the segments from there on? */
static bool is_too_long(const walk *w, int from, int to) {
    planner *p = w->p;
    smg_breadth *breadth = &w->out->breadth;
    bool longest = to - from > plan_longest(p);
    breadth->long_ends += longest;
    if (longest || (p->preparing && to > from + 1 && !reads_segment(p, from, to - 1))) return true;
    bool most = w->products[to] - w->products[from] > plan_most_products(p);
    breadth->product_ends += most;
    return most;
}

/* A map that comes on top of a segment, and takes up no result of another shape, makes it no faster, but for what it
 * does not store any more: of 104375 segments of no use 67000 are told by the one before (decision 0053). A fold, a
 * gather or a result less may leave other schedules, and far faster ones. */
#define LEAST_BEHIND (1 / 1.1)

static bool is_on_top(const planner *p, int from, int at) {
    const smg_node *n = smg_graph_node(p->g, p->order[at]);
    if (smg_node_class(n) != SMG_CLASS_MAP) return false;
    bool same = true;
    for (int i = at - 1; i >= from && same; i--)
        same = p->last_use[p->order[i]] != at || smg_same_dims(smg_graph_node(p->g, p->order[i]), n);
    return same;
}

static double least_behind(const planner *p, const segment *s) {
    if (!s->possible) return s->least;
    return LEAST_BEHIND * (s->price.seconds - wait_behind(p, s));
}

/* What no segment costs less than. */
static double least_cost(const planner *p) {
    return p->options->objective == SMG_OBJECTIVE_DISPATCHES ? 1 : p->target->dispatch_cost;
}

/* And none of these nodes. */
static double least_of(const walk *w, int from, int to) {
    return w->floors ? plan_floor_of(w->p, &w->floor, from, to) : least_cost(w->p);
}

/* Nor those from there to the end. */
static double least_from(const walk *w, int at) {
    if (at == w->p->count) return 0;
    return w->floors ? w->floor.rest[at] : least_cost(w->p);
}

/* The cost from which on a segment with so much room beside the one before makes no difference: a way that is known is
 * as cheap, or the list too dear. */
static double of_use(const walk *w, int from, int to, plan_room room) {
    const plan_choice *best = w->out->best;
    if (!w->bounded) return HUGE_VAL;
    double most = w->most - least_from(w, to);
    if (best[to].segment != NULL) most = plan_lesser(most, best[to].cost);
    return most - best[from].cost + room.seconds;
}

/* Of the kernel itself, what is behind it waits for what it stores. Infinite where the objective is not time. */
static double seconds_of_use(const walk *w, int from, int to, double use) {
    const planner *p = w->p;
    if (p->options->objective != SMG_OBJECTIVE_TIME) return HUGE_VAL;
    return use - plan_left_bytes(p, from, to) / p->target->bandwidth;
}

/* One that is not possible alone. */
static smg_status refuse(planner *p, int from, const segment *s) {
    p->again = plan_give_kernels(p, p->order[from]);
    if (p->again) return SMG_OK;
    return smg_fail(p->ctx, SMG_NO_FIT, "%s has no kernel that fits: %s", smg_graph_describe(p->g, p->order[from]),
                    s->refused ? s->refused : "no schedule");
}

/* Numbers of parts differ in sizes only: what was dearer than all ways around it in one is so in others. Of 3272 plans
 * one is another by that, of the same price (decision 0055). */
static bool is_dear(const planner *p, int from, int to) {
    const plan_places key = {from, to, p->count};
    void *found;
    return p->dear != NULL && smg_map_get(p->dear, &key, sizeof(key), &found);
}

static smg_status mark_dear(planner *p, int from, int to) {
    const plan_places key = {from, to, p->count};
    return p->dear != NULL ? smg_map_set(p->dear, &key, sizeof(key), p) : SMG_OK;
}

/* The nodes [from, to) as a segment, improving best[]. */
static smg_status visit(walk *w, int from, int to) {
    planner *p = w->p;
    partition *out = w->out;
    plan_choice *best = out->best;
    const segment *s;
    w->ended[from] = is_too_long(w, from, to);
    plan_room room = plan_room_beside(p, from, to, &best[from]);
    double use = of_use(w, from, to, room);
    if (!is_on_top(p, from, to - 1)) w->least[from] = 0;
    bool longer = to > from + 1;
    bool needed = !longer && !w->floors; /* a node alone is a way where no other is known */
    if (!needed && (w->inside[from] || (to < p->count && w->inside[to]))) return SMG_OK;
    if (w->ended[from] || (!needed && use < least_of(w, from, to))) return SMG_OK;
    double within = seconds_of_use(w, from, to, use);
    if (longer && (within < w->least[from] || is_dear(p, from, to))) return SMG_OK;
    SMG_TRY(plan_segment_within(p, from, to, needed ? HUGE_VAL : within, &s));
    if (s->possible || s->least > 0) w->least[from] = least_behind(p, s);
    out->breadth.segments++;
    out->breadth.possible += s->possible;
    if (!s->possible) {
        bool dear = s->least > 0, others = p->budget != NULL; /* a move's order has other segments */
        if (dear) SMG_TRY(mark_dear(p, from, to));
        if (!longer && !dear && !others) return refuse(p, from, s);
        out->breadth.hopeless_ends += s->hopeless;
        w->ended[from] = s->hopeless;
        return SMG_OK;
    }
    if (to > from + 1 && to > best[from].reach) best[from].reach = to;
    if (!plan_is_allowed(p, out, from, to, s)) return SMG_OK;
    take_if_cheaper(p, best, from, to, s, room);
    return SMG_OK;
}

/* From each start as far as limits allow: where there is a budget the first ones get prices. */
static smg_status walk_by_starts(walk *w) {
    for (int from = 0; from < w->p->count && !w->p->again; from++) {
        smg_progress(w->p->ctx, "plan", (size_t)from, (size_t)w->p->count, "");
        for (int to = from + 1; to <= w->p->count && !w->ended[from] && !w->p->again; to++) SMG_TRY(visit(w, from, to));
        if (!w->p->again) SMG_TRY(extend_repeated(w->p, from, w->out));
    }
    return SMG_OK;
}

/* Up to each end: a node alone, which is a way at least, then from long to short: where a long one is cheap, those that
 * begin inside of it have no kernel's time left. */
static smg_status walk_by_ends(walk *w) {
    planner *p = w->p;
    for (int to = 1; to <= p->count && !p->again; to++) {
        smg_progress(p->ctx, "plan", (size_t)to - 1, (size_t)p->count, "");
        SMG_TRY(extend_repeated(p, to - 1, w->out)); /* the ways up to there are all known */
        int first = to - plan_longest(p) - 1;
        if (!p->again) SMG_TRY(visit(w, to - 1, to));
        for (int from = first > 0 ? first : 0; from < to - 1 && !p->again; from++)
            if (!w->ended[from]) SMG_TRY(visit(w, from, to));
    }
    return SMG_OK;
}

/* The numbers that decided. */
static void tell_prices(const planner *p, const smg_joint *joint, double beside, double between, smg_text *why) {
    smg_text_addf(why, "together %.2f us, apart %.2f us", joint->seconds * 1e6, joint->apart * 1e6);
    if (beside >= LEAST_BETWEEN) smg_text_addf(why, " with %.2f us at a time", beside * 1e6);
    if (beside <= -LEAST_BETWEEN) smg_text_addf(why, " with %.2f us more at a time", -beside * 1e6);
    if (p->options->objective == SMG_OBJECTIVE_TIME && between >= LEAST_BETWEEN)
        smg_text_addf(why, ", what passes between them %.2f us", between * 1e6);
    smg_text_add(why, "\n");
}

static smg_status tell_cut(planner *p, const partition *of, int from, int to, int next, smg_pstep *step,
                           smg_text *why) {
    const segment *both, *other, *mine = of->best[to].segment;
    if (p->options->unfused && !p->preparing) return SMG_OK;
    if (p->preparing && !reads_segment(p, from, to)) return SMG_OK;
    bool within = next - from <= PLAN_MAX_SEGMENT;
    SMG_TRY(plan_segment(p, within ? from : to, next, &both)); /* else its length decides */
    SMG_TRY(plan_segment(p, to, next, &other));
    smg_text_addf(why, "cut before %s: ", smg_graph_describe(p->g, p->order[to]));
    if (plan_tell_limit(p, of, from, next, both, why)) return SMG_OK;
    if (!both->possible) {
        smg_text_addf(why, "together impossible: %s\n", both->refused != NULL ? both->refused : "no schedule");
    } else {
        double beside = of->best[next].beside - of->best[to].beside;
        step->joint = (smg_joint){both->at, both->price.seconds, mine->price.seconds + other->price.seconds - beside};
        double between = wait_behind(p, mine) + wait_behind(p, other) - wait_behind(p, both);
        tell_prices(p, &step->joint, beside, between, why);
    }
    return SMG_OK;
}

static void tell_parts(const planner *p, int from, int to, smg_text *why) {
    const char *told = NULL;
    for (int i = from; i < to && p->note != NULL; i++) {
        const char *note = p->note[p->order[i]];
        if (note != NULL && note != told) smg_text_add(why, note);
        told = note != NULL ? note : told;
    }
}

static smg_status add_step(planner *p, smg_plan *plan, const partition *of, int at) {
    int from = at > 0 ? of->ends[at - 1] : 0, to = of->ends[at];
    const segment *mine = of->best[to].segment;
    smg_pstep *step = p->preparing ? SMG_ARRAY_PUSH(p->arena, &plan->prepare) : SMG_ARRAY_PUSH(p->arena, &plan->steps);
    if (step == NULL) return SMG_MEMORY;
    step->beside = of->best[to].beside - of->best[from].beside;
    step->name = smg_arena_format(p->arena, p->preparing ? "p%d" : "k%d", at);
    if (step->name == NULL) return SMG_MEMORY;
    smg_text why;
    smg_text_init(&why, p->ctx);
    smg_status status = plan_lower(p, from, to, mine, &why, step);
    tell_parts(p, from, to, &why);
    if (status == SMG_OK && at + 1 < of->count) status = tell_cut(p, of, from, to, of->ends[at + 1], step, &why);
    if (status == SMG_OK) status = smg_text_status(&why);
    if (status == SMG_OK) {
        step->because = smg_arena_string(p->arena, smg_text_cstr(&why));
        if (step->because == NULL) status = SMG_MEMORY;
    }
    smg_text_free(&why);
    if (status == SMG_OK && !p->preparing) status = plan_add_rivals(p, from, to, mine, step);
    if (status == SMG_OK && !p->preparing) status = plan_add_search(p, from, to, mine, step);
    return status;
}

/* A list that may be one kernel costs no more than that: it is the first way that is known. */
static smg_status price_whole(walk *w) {
    planner *p = w->p;
    plan_choice *best = w->out->best;
    const segment *s;
    int all = p->count;
    if (all < 3 || all > plan_longest(p) || w->products[all] > plan_most_products(p)) return SMG_OK;
    SMG_TRY(plan_segment(p, 0, all, &s));
    if (!s->possible || !plan_is_allowed(p, w->out, 0, all, s)) return SMG_OK;
    take_if_cheaper(p, best, 0, all, s, plan_room_beside(p, 0, all, &best[0]));
    w->most = best[all].cost;
    p->share = plan_larger(p->share, s->share);
    return SMG_OK;
}

/* What the list may cost, first of all: segments have to be cheap enough for all that they leave. */
static smg_status bound_all(walk *w) {
    planner *p = w->p;
    w->most = p->most > 0 ? p->most : HUGE_VAL;
    if (!w->bounded || p->preparing) return SMG_OK;
    if (p->most <= 0) SMG_TRY(price_whole(w));
    w->floors = !isinf(w->most) && p->options->objective == SMG_OBJECTIVE_TIME;
    if (!w->floors) return SMG_OK;
    SMG_TRY(plan_floor_make(p, &w->floor));
    w->floors = p->most > 0 || w->floor.rest[0] <= w->most; /* a price below the floor is the one to believe */
    return SMG_OK;
}

/* The cheapest way up to each place. */
static smg_status extend_all(planner *p, partition *out) {
    walk w = {.p = p, .out = out, .bounded = plan_is_bounded(p)};
    w.products = SMG_ARENA_ARRAY(p->arena, int, (size_t)p->count + 1);
    w.ended = SMG_ARENA_ARRAY(p->arena, bool, (size_t)p->count + 1);
    w.least = SMG_ARENA_ARRAY(p->arena, double, (size_t)p->count + 1);
    if (w.products == NULL || w.ended == NULL || w.least == NULL) return SMG_MEMORY;
    for (int i = 1; i <= p->count; i++) {
        w.products[i] = w.products[i - 1] + is_product(p, i - 1);
        out->best[i].cost = DBL_MAX;
        out->best[i].segment = NULL;
    }
    out->breadth = (smg_breadth){.nodes = p->count};
    SMG_TRY(plan_mark_inside(p, &w.inside, &out->breadth.inside));
    SMG_TRY(bound_all(&w));
    if (w.floors && w.floor.rest[0] > w.most) return SMG_OK; /* whatever it is, it costs more */
    return p->budget != NULL ? walk_by_starts(&w) : walk_by_ends(&w);
}

static smg_status extend_within_limits(planner *p, partition *out) {
    SMG_TRY(plan_limit(p, out));
    SMG_TRY(extend_all(p, out));
    return !p->again && plan_limit_again(p, out) ? extend_all(p, out) : SMG_OK;
}

smg_status plan_cut(planner *p, partition *out) {
    SMG_TRY(plan_mark_lives(p));
    *out = (partition){.best = SMG_ARENA_ARRAY(p->arena, plan_choice, (size_t)p->count + 1),
                       .ends = SMG_ARENA_ARRAY(p->arena, int, (size_t)p->count + 1)};
    if (out->best == NULL || out->ends == NULL) return SMG_MEMORY;
    SMG_TRY(extend_within_limits(p, out));
    if (!p->again && plan_lift_limit(p, out)) SMG_TRY(extend_within_limits(p, out));
    if (p->again || out->over) return SMG_OK;
    out->cost = out->best[p->count].cost;
    for (int at = p->count; at > 0; at = out->best[at].from) {
        const segment *s = out->best[at].segment;
        if (s == NULL)
            return smg_fail(p->ctx, SMG_NO_FIT, "no partition into kernels has a price at the sizes it is planned for");
        out->cost += s->expected - s->price.seconds;
        int64_t live = plan_live(p, out->best[at].from, at);
        if (live > out->live) out->live = live;
        out->ends[out->count++] = at;
    }
    for (int i = 0; i < out->count / 2; i++) {
        int end = out->ends[i];
        out->ends[i] = out->ends[out->count - 1 - i];
        out->ends[out->count - 1 - i] = end;
    }
    return SMG_OK;
}

smg_status plan_choose_list(planner *p, bool preparing, partition *out) {
    p->preparing = preparing;
    p->any_size = false;
    do {
        p->again = false;
        SMG_TRY(plan_order(p));
        SMG_TRY(plan_cut(p, out));
    } while (p->again);
    return SMG_OK;
}

static smg_status add_steps(planner *p, const partition *of, smg_plan *plan) {
    for (int i = 0; i < of->count; i++) SMG_TRY(add_step(p, plan, of, i));
    return SMG_OK;
}

/* With sums in parts where that is cheaper, and then in another order. */
static smg_status add_run(planner *p, partition *of, smg_plan *plan) {
    SMG_TRY(plan_split_sums(&p, of, plan));
    SMG_TRY(plan_search_moves(p, of));
    plan->graph = p->g;
    plan->origin = p->origin;
    plan->breadth = of->breadth;
    plan->moves = of->moves;
    plan->live = of->live;
    plan->cost = of->cost;
    if (of->breadth.long_ends + of->breadth.product_ends > 0 && !p->options->unfused)
        smg_log(p->ctx, SMG_LOG_INFO,
                "the search for kernels of '%s' is bounded: segments from %d of %d operations on end at %d operations, "
                "from %d on at %d products",
                p->g->name, of->breadth.long_ends, p->count, plan_longest(p), of->breadth.product_ends,
                plan_most_products(p));
    SMG_TRY(add_steps(p, of, plan));
    return p->options->report ? plan_report(p, of, plan) : SMG_OK;
}

bool plan_comes_first(const planner *p, const partition *one, const partition *other) {
    if (one->over || other->over) return other->over;
    if (p->options->objective == SMG_OBJECTIVE_MEMORY && one->live != other->live) return one->live < other->live;
    return one->cost < other->cost;
}

/* The run list with masks that have ends, or without, whichever is cheaper. */
static smg_status choose_run(planner *p, smg_plan *plan) {
    planner other = *p;
    partition with, without;
    if (!plan_has_ends(p->g)) {
        SMG_TRY(plan_choose_list(p, false, &with));
        return with.over ? plan_over_limit(p, with.live) : add_run(p, &with, plan);
    }
    other.g = plan_without_ends(p->g, p->arena);
    if (other.g == NULL) return SMG_MEMORY;
    SMG_TRY(plan_mark_inlined(&other));
    SMG_TRY(plan_choose_list(&other, false, &without));
    plan->kept = p->kept;
    if (p->kept >= 1) return without.over ? plan_over_limit(p, without.live) : add_run(&other, &without, plan);
    SMG_TRY(plan_choose_list(p, false, &with));
    if (with.over && without.over) return plan_over_limit(p, with.live < without.live ? with.live : without.live);
    bool ends = plan_comes_first(p, &with, &without);
    plan->with_ends = with.cost;
    plan->without_ends = without.cost;
    if (ends != (with.cost < without.cost)) plan->kept = 0; /* it was memory that decided */
    return ends ? add_run(p, &with, plan) : add_run(&other, &without, plan);
}

static smg_status count_maps(planner *p) {
    smg_exprs *exprs;
    p->map_cost = SMG_ARENA_ARRAY(p->arena, double, (size_t)p->g->nodes.count + 1);
    if (p->map_cost == NULL) return SMG_MEMORY;
    SMG_TRY(smg_exprs_create(p->arena, &exprs));
    for (smg_node_id id = 0; id < p->g->nodes.count; id++)
        p->map_cost[id] = plan_map_cost(p, exprs, smg_graph_node(p->g, id));
    return SMG_OK;
}

static smg_status make_lists(planner *p, smg_plan *plan) {
    SMG_TRY(plan_mark_prepared(p));
    SMG_TRY(plan_mark_inlined(p));
    if (!p->options->run_only) {
        partition prepared;
        SMG_TRY(plan_choose_list(p, true, &prepared));
        SMG_TRY(add_steps(p, &prepared, plan));
    }
    return choose_run(p, plan);
}

smg_status smg_plan_make(const smg_graph *g, const smg_target *target, const smg_plan_options *options,
                         smg_arena *arena, smg_plan **out_plan) {
    static const smg_plan_options defaults = {.objective = SMG_OBJECTIVE_TIME};
    planner p = {.g = g,
                 .target = target,
                 .options = options != NULL ? options : &defaults,
                 .ctx = g->ctx,
                 .arena = arena,
                 .kept_in = arena};
    smg_plan *plan = SMG_ARENA_NEW(arena, smg_plan);
    int symbols = smg_size_symbol_count(g->sizes);
    p.nominal = SMG_ARENA_ARRAY(arena, int64_t, (size_t)symbols + 1);
    p.hash = SMG_ARENA_ARRAY(arena, uint64_t, (size_t)g->nodes.count + 1);
    p.hash_at = SMG_ARENA_ARRAY(arena, uint64_t, (size_t)g->nodes.count + 1);
    if (plan == NULL || p.nominal == NULL || p.hash == NULL || p.hash_at == NULL) return SMG_MEMORY;
    smg_plan_nominal(g, p.nominal);
    for (int i = 0; i < symbols && p.options->nominal != NULL; i++) p.nominal[i] = p.options->nominal[i];
    for (smg_node_id id = 0; id < g->nodes.count; id++) plan_hash_node(&p, id);
    p.kept = plan_kept(g, p.nominal);
    p.share = plan_takes_all(g) ? 1 : 0;
    SMG_TRY(smg_map_create(arena, &p.cache));
    SMG_TRY(smg_map_create(arena, &p.rivals));
    SMG_TRY(smg_map_create(arena, &p.searches));
    SMG_TRY(smg_map_create(arena, &p.asked));
    SMG_TRY(count_maps(&p));
    plan->planned = plan->graph = g;
    plan->arena = arena;
    smg_status status = smg_arena_create(p.ctx, &p.scratch);
    if (status == SMG_OK) status = smg_arena_create(p.ctx, &p.fitting);
    if (status == SMG_OK) status = make_lists(&p, plan);
    smg_arena_destroy(p.fitting);
    smg_arena_destroy(p.scratch);
    if (status == SMG_OK) *out_plan = plan;
    return status;
}
