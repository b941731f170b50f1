/* Sums that several workgroups share out. Where a kernel has few workgroups because a long axis is summed up inside of
 * each, the axis is cut into parts (plan_parts.h): more workgroups sum up a part each, and a second kernel what they
 * leave. Both are nodes of a graph like all others, so that a run list with sums in parts is planned, priced and
 * lowered by what plans any graph, and taken where it is cheaper, with the second dispatch and the bytes in between.
 *
 * What is tried: for each kernel of the run list that leaves the device idle, alone and with the one behind it, and
 * for runs of a few kernels that sum along one axis (a maximum, then a sum that needs it), or all but the first do and
 * that one makes what they sum up, some numbers of parts. Which of them is taken, prices say, or what was measured
 * of these nodes (smg_plan_options.cuts). Kernels of equal structure are looked at once. */
#include <math.h>

#include "plan/plan_parts.h"

#define SPLIT_STEPS 4   /* kernels that are looked at together */
#define SPLIT_TRIES 4   /* numbers of parts for one axis */
#define SPLIT_LEAST 128 /* elements of a part */
#define SPLIT_IDLE 3.0  /* fewer workgroups than this for each core leave it idle */
#define SPLIT_FULL 16.0 /* more are of no use */
#define SPLIT_ROWS 8.0  /* and where parts are rows of a workgroup, which makes what it sums up; these may be shorter */
#define SPLIT_ALIKE 0.995 /* of those that take as long the more parts: workgroups that begin together wait together */
#define SPLIT_GAIN 0.97   /* of the time, at most, is left, where what is between stays what it was */
#define SPLIT_NEAR 1.6    /* of it kernels take in parts, at most, that a kernel in front may join */
#define SPLIT_HOPE 1.1    /* of it some parts take at most where more or fewer of them may pay */
#define SPLIT_FEWER 0.99  /* of what more parts take fewer of them take at most where still fewer may pay */
/* Dispatches: what a kernel more takes that waits for the one before. Half of it where a kernel that is there already
 * reads what the one before has just written, in more pieces (bench/NOTES.md). */
#define SPLIT_WAIT 1.5
#define SPLIT_COST 4.0 /* dispatches that a kernel takes at least, to be looked at */

/* Hashes of nodes whose sums have parts are none of segments. */
#define SPLIT_SEED 0x7061727473

/* A number of parts that has a price. */
typedef struct way {
    int member, axis; /* the sum, and the dim of its first operand */
    int64_t chunk;
    double seconds; /* that prices choose by */
    double parted;  /* the same where no kernel has parts and what sums them up; HUGE_VAL: nobody asked, or none */
    bool front;     /* the run begins with a kernel that each part makes for itself */
} way;

/* What came out for kernels of one structure. */
typedef struct verdict {
    uint64_t at; /* of it at nominal sizes */
    SMG_ARRAY(way) ways;
    double before, after; /* seconds, of the cheapest way */
    int best, taken;      /* the cheapest; -1: there is none, they stay whole */
    const smg_cut *fixed; /* that decided what is taken; NULL: prices did */
} verdict;

/* Kernels of the run list, one behind the other. */
typedef struct run {
    int first, last, from, to; /* kernels, both included; of the order */
    smg_node_id member[PLAN_MAX_MEMBERS];
    int count;
    double seconds;
    bool hope; /* all but the first come near to what they take, in parts */
} run;

/* A run that was looked at. */
typedef struct looked {
    int first, last;
    smg_node_id member; /* the first */
    const verdict *how;
} looked;

typedef struct splitter {
    planner *p;
    const partition *of;
    smg_arena *arena;
    smg_map *known; /* by structure */
    SMG_ARRAY(looked) looked;
    bool whole; /* some of these were measured to be faster without parts */
} splitter;

static const segment *segment_of(const splitter *s, int kernel) {
    return s->of->best[s->of->ends[kernel]].segment;
}

static int begin_of(const splitter *s, int kernel) {
    return kernel > 0 ? s->of->ends[kernel - 1] : 0;
}

/* ---- which ones are looked at -------------------------------------------------------------------- */

static bool has_few_blocks(const splitter *s, int kernel) {
    return segment_of(s, kernel)->price.workgroups < SPLIT_IDLE * (double)s->p->target->cores;
}

/* So many dispatches, at least. */
static bool takes(const splitter *s, int kernel, double dispatches) {
    return segment_of(s, kernel)->price.seconds > dispatches * s->p->target->dispatch_cost;
}

static bool is_idle(const splitter *s, int kernel) {
    return has_few_blocks(s, kernel) && takes(s, kernel, SPLIT_COST);
}

static int kernel_of(const splitter *s, smg_node_id id) {
    int kernel = 0;
    while (s->of->ends[kernel] <= s->p->place[id]) kernel++;
    return kernel;
}

/* One with parts, in place of `kernels`, waits longer than prices say. least: of kernels more, what it waits for. */
static double seconds_in_parts(const planner *p, const partition *list, int kernels, double least) {
    return list->cost + SPLIT_WAIT * p->target->dispatch_cost * plan_larger(list->count - kernels, least);
}

/* Every kernel that sums along the axis leaves the device idle: of a run of one that one, of two the first at least,
 * whose parts the other may sum up where it reads them, of a longer one several, the first of it too. With hope
 * the first of two may be shorter; and all but the first may do, where that one makes what they sum up, for which it
 * has the whole device: each part may make its own. */
static bool is_worth_it(const splitter *s, const run *r, const parts *made, bool *out_front) {
    int kernels = 0, idle = 0, before = -1, others = r->last - r->first;
    bool few = true, first = false, makes = false;
    for (int i = r->from; i < r->to; i++) {
        smg_node_id id = s->p->order[i];
        int kernel = kernel_of(s, id);
        makes = makes || (kernel == r->first && made->axis[id] >= 0);
        if (!parts_folds(made, id)) continue;
        if (kernel == before) continue;
        few = few && has_few_blocks(s, kernel);
        idle += is_idle(s, kernel);
        first = first || kernel == r->first;
        kernels++;
        before = kernel;
    }
    *out_front = !first && others > 0;
    if (s->p->options->parts > 0) return others == 0 || (first && (kernels > 1 || others == 1));
    if (!few || idle == 0) return false;
    if (first && idle == kernels) return kernels > 1 || others <= 1;
    if (!r->hope || (first && others > 1)) return false;
    return first ? takes(s, r->first, SPLIT_COST / 2) : makes && kernels == others && !has_few_blocks(s, r->first);
}

static int64_t extent_at(const splitter *s, smg_node_id id, int axis) {
    int64_t extent = 1;
    const smg_graph *g = s->p->g;
    return smg_size_eval(g->sizes, smg_graph_node(g, id)->dims[axis], s->p->nominal, &extent) ? extent : 1;
}

/* The dim of operand 0 that the node sums over, of several the longest; -1. */
static int summed_dim(const splitter *s, const smg_node *n) {
    int best = -1;
    if (smg_node_class(n) == SMG_CLASS_REDUCE) return n->axis;
    if (smg_node_class(n) != SMG_CLASS_CONTRACT) return -1;
    for (int i = 0; n->label[0][i] != 0; i++) {
        if (strchr(n->label[2], n->label[0][i]) != NULL) continue;
        if (best < 0 || extent_at(s, n->operand[0], i) > extent_at(s, n->operand[0], best)) best = i;
    }
    return best;
}

/* ---- what it would cost -------------------------------------------------------------------------- */

static smg_status time_list(planner *p, const run *r, bool front, bool *out_joins, double *out_seconds) {
    partition list;
    *out_joins = false;
    smg_status status = plan_choose_list(p, false, &list);
    if (status == SMG_NO_FIT) smg_context_clear_error(p->ctx);
    if (status != SMG_OK || list.over) return status == SMG_NO_FIT ? SMG_OK : status;
    if (p->most > 0 && list.cost > p->most) return SMG_OK;
    *out_seconds = seconds_in_parts(p, &list, r->last - r->first + 1, front ? -1 : 0.5);
    for (int i = 0; i < list.count; i++)
        *out_joins = *out_joins || plan_joins_parts(p, i > 0 ? list.ends[i - 1] : 0, list.ends[i]);
    return SMG_OK;
}

/* An axis of a member's sum. */
typedef struct cut_axis {
    int member;
    plan_split split;
    bool *covered; /* per member: parts of it have been tried */
    smg_map *dear; /* planner.dear */
} cut_axis;

static smg_status time_in_parts(const splitter *s, const run *r, const cut_axis *c, double most, smg_arena *arena,
                                way *out) {
    planner *p;
    parts *made;
    bool joins;
    SMG_TRY(parts_seek(s->p, &c->split, arena, &made));
    if (made == NULL || !is_worth_it(s, r, made, &out->front)) return SMG_OK;
    SMG_TRY(parts_plan(made, &p));
    if (p == NULL) return SMG_OK;
    for (int i = 0; i < r->count; i++) c->covered[i] = c->covered[i] || parts_folds(made, r->member[i]);
    p->only = p->in_parts;
    /* What was measured has to be among the ways here that it was among when it was. */
    bool all = p->options->splits || p->options->cut_count > 0;
    p->most = all ? 0 : most;
    p->dear = all ? NULL : c->dear;
    SMG_TRY(time_list(p, r, out->front, &joins, &out->seconds));
    if (!joins) out->parted = out->seconds;
    p->parted = joins;
    return joins && p->options->splits ? time_list(p, r, out->front, &joins, &out->parted) : SMG_OK;
}

/* Elements of a part, at least. */
static int64_t shortest_of(const run *r) {
    return r->hope ? SPLIT_LEAST / 2 : SPLIT_LEAST;
}

/* The most parts that a device has use for. */
static int64_t most_parts(const splitter *s, const run *r, int64_t extent) {
    double most = SPLIT_FULL * (double)s->p->target->cores, least = HUGE_VAL;
    if (r->hope) most *= SPLIT_ROWS;
    for (int k = r->first; k <= r->last; k++) least = fmin(least, segment_of(s, k)->price.workgroups);
    int64_t number = 1;
    while (2.0 * (double)number * least <= most && 2 * number * shortest_of(r) <= extent) number *= 2;
    return number;
}

/* Elements of a part. Where the extent is a symbol their number is one that kernels can build on. */
static int64_t chunk_of(const splitter *s, const run *r, const plan_split *split, int64_t number, int64_t extent) {
    const smg_graph *g = s->p->g;
    int64_t exact = 0, chunk = shortest_of(r);
    if (s->p->options->parts > 0) return (extent + number - 1) / number;
    bool fixed = smg_size_is_const(g->sizes, smg_graph_node(g, split->node)->dims[split->axis], &exact);
    if (fixed && exact % number == 0) return exact / number;
    while (chunk * number < extent) chunk *= 2;
    return chunk;
}

/* Of ways that take as long, more parts. */
static bool is_better_way(const way *w, const way *best) {
    if (best == NULL) return true;
    return w->chunk < best->chunk ? SPLIT_ALIKE * w->seconds <= best->seconds
                                  : w->seconds < SPLIT_ALIKE * best->seconds;
}

static smg_status add_way(const splitter *s, const way *w, verdict *io) {
    const way *best = io->best >= 0 ? &io->ways.items[io->best] : NULL;
    bool better = is_better_way(w, best);
    way *slot = SMG_ARRAY_PUSH(s->arena, &io->ways);
    if (slot == NULL) return SMG_MEMORY;
    *slot = *w;
    if (!better) return SMG_OK;
    io->after = w->seconds;
    io->best = io->ways.count - 1;
    return SMG_OK;
}

/* In parts of so many elements; *io_seconds: at most so many are of use, infinite where it has no such price. */
static smg_status try_chunk(const splitter *s, const run *r, cut_axis *c, int64_t chunk, verdict *io,
                            double *io_seconds) {
    smg_arena *arena;
    way w = {c->member, c->split.axis, chunk, HUGE_VAL, HUGE_VAL, false};
    double most = *io_seconds;
    c->split.chunk = chunk;
    SMG_TRY(smg_arena_create(s->p->ctx, &arena));
    smg_status status = time_in_parts(s, r, c, most, arena, &w);
    smg_arena_destroy(arena);
    SMG_TRY(status);
    *io_seconds = most > 0 && w.seconds > most ? HUGE_VAL : w.seconds;
    return isinf(w.seconds) ? SMG_OK : add_way(s, &w, io);
}

/* Elements of a part, from many parts to few; the result is how many numbers there are. */
static int list_chunks(const splitter *s, const run *r, const plan_split *split, int64_t out[SPLIT_TRIES]) {
    int64_t extent = extent_at(s, split->node, split->axis), asked = s->p->options->parts;
    int64_t number = asked > 0 ? asked : most_parts(s, r, extent);
    int count = 0, most = asked > 0 ? 1 : SPLIT_TRIES;
    for (int tries = 0; tries < most && number > 1; tries++, number /= 2) {
        int64_t chunk = chunk_of(s, r, split, number, extent);
        if (count == 0 || out[count - 1] != chunk) out[count++] = chunk;
    }
    return count;
}

/* Several numbers of parts: the second most, then fewer for as long as that is better, and the most where fewer are
 * not. Where the first is far off, that is all: of 665 axes the best came out of all of these (decision 0053). */
static smg_status try_axis(const splitter *s, const run *r, cut_axis *c, verdict *io) {
    int64_t chunk[SPLIT_TRIES];
    int count = list_chunks(s, r, &c->split, chunk), first = count > 1;
    double most = s->p->options->parts > 0 ? 0 : (r->first > 0 ? SPLIT_NEAR : SPLIT_HOPE) * r->seconds, least = most;
    if (count == 0) return SMG_OK;
    SMG_TRY(try_chunk(s, r, c, chunk[first], io, &least));
    if (count == 1) return SMG_OK;
    if (isinf(least)) return r->first > 0 ? try_chunk(s, r, c, chunk[0], io, &most) : SMG_OK;
    if (least > SPLIT_HOPE * r->seconds) return SMG_OK;
    bool fewer = false, goes_on = true;
    for (int i = first + 1; i < count && goes_on; i++) {
        double next = least;
        SMG_TRY(try_chunk(s, r, c, chunk[i], io, &next));
        goes_on = next < SPLIT_FEWER * least;
        fewer = fewer || next < least;
        least = plan_lesser(next, least);
    }
    return fewer ? SMG_OK : try_chunk(s, r, c, chunk[0], io, &least);
}

/* In parts of so many elements: the cheapest, of several axes that may be; -1: it has no price. */
static int find_way(const verdict *v, int64_t chunk) {
    int found = v->best >= 0 && v->ways.items[v->best].chunk == chunk ? v->best : -1;
    if (found >= 0) return found;
    for (int i = 0; i < v->ways.count; i++) {
        const way *w = &v->ways.items[i];
        if (w->chunk == chunk && (found < 0 || w->seconds < v->ways.items[found].seconds)) found = i;
    }
    return found;
}

/* By price, or as it was measured, where that is one of the ways. */
static void decide(const splitter *s, verdict *io) {
    bool asked = s->p->options->parts > 0;
    double gain = io->best >= 0 && io->ways.items[io->best].front ? 1 : SPLIT_GAIN;
    io->taken = io->after < gain * io->before || asked ? io->best : -1;
    const smg_cut *cut = asked ? NULL : plan_find_cut(s->p, io->at, true);
    int measured = cut != NULL ? find_way(io, cut->chunk) : -1;
    if (cut == NULL || (cut->chunk != 0 && measured < 0)) return;
    io->fixed = cut;
    io->taken = measured;
}

static smg_status try_run(const splitter *s, const run *r, uint64_t at, verdict *out) {
    bool covered[PLAN_MAX_MEMBERS] = {false};
    bool *own = SMG_ARENA_ARRAY(s->arena, bool, (size_t)s->p->g->nodes.count + 1);
    if (own == NULL) return SMG_MEMORY;
    for (int i = r->from; i < r->to; i++) own[s->p->order[i]] = true;
    *out = (verdict){.at = at, .before = r->seconds, .after = HUGE_VAL, .best = -1};
    for (int i = 0; i < r->count; i++) {
        const smg_node *n = smg_graph_node(s->p->g, r->member[i]);
        int axis = own[r->member[i]] && !covered[i] ? summed_dim(s, n) : -1;
        if (axis < 0) continue;
        cut_axis c = {i, {.run = own, .node = n->operand[0], .axis = axis}, covered, NULL};
        SMG_TRY(smg_map_create(s->arena, &c.dear));
        SMG_TRY(try_axis(s, r, &c, out));
    }
    decide(s, out);
    return SMG_OK;
}

/* false: the run is not looked at. */
static bool find_run(const splitter *s, int first, int last, bool hope, run *out) {
    int idle = 0, least = last - first < 2 || hope ? 1 : 2;
    *out = (run){.first = first, .last = last, .from = begin_of(s, first), .to = s->of->ends[last], .hope = hope};
    for (int k = first; k <= last; k++) {
        idle += is_idle(s, k) || s->p->options->parts > 0;
        out->seconds += plan_cost_of(s->p, segment_of(s, k));
    }
    out->seconds -= s->of->best[out->to].beside - s->of->best[s->of->ends[first]].beside;
    int products = plan_products(s->p, out->from, out->to);
    if (idle < least || out->to - out->from > PLAN_SEGMENT || products > PLAN_PRODUCTS) return false;
    out->count = plan_members(s->p, out->from, out->to, out->member);
    return out->count > 0;
}

static smg_status judge(const splitter *s, const run *r, const verdict **out) {
    void *found;
    uint64_t key = plan_hash_nodes(s->p, s->p->hash, r->member, r->count);
    uint64_t at = smg_hash_u64(plan_hash_nodes(s->p, s->p->hash_at, r->member, r->count), SPLIT_SEED);
    key = smg_hash_u64(key, (uint64_t)(2 * (r->last - r->first) + r->hope));
    if (smg_map_get(s->known, &key, sizeof(key), &found)) {
        *out = found;
        return SMG_OK;
    }
    verdict *made = SMG_ARENA_NEW(s->arena, verdict);
    if (made == NULL) return SMG_MEMORY;
    SMG_TRY(try_run(s, r, at, made));
    *out = made;
    return smg_map_set(s->known, &key, sizeof(key), made);
}

/* ---- the cheapest of all ------------------------------------------------------------------------- */

typedef struct best_split {
    double saved; /* of the kernels up to here */
    int first;    /* of the last run that is split */
    const verdict *how;
} best_split;

static smg_status remember(splitter *s, const run *r, const verdict *v) {
    looked *slot = SMG_ARRAY_PUSH(s->arena, &s->looked);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (looked){r->first, r->last, r->member[0], v};
    s->whole = s->whole || (v->fixed != NULL && v->taken < 0);
    return SMG_OK;
}

/* By their last kernels, the short ones first. */
static smg_status look_at_runs(splitter *s) {
    for (int last = 0; last < s->of->count; last++) {
        bool hope = false; /* of the kernels behind the first */
        for (int first = last; first >= 0 && last - first < SPLIT_STEPS; first--) {
            run r;
            const verdict *v;
            bool found = find_run(s, first, last, hope, &r);
            hope = false;
            if (!found) continue;
            SMG_TRY(judge(s, &r, &v));
            SMG_TRY(remember(s, &r, v));
            hope = v->after < SPLIT_NEAR * v->before;
        }
    }
    return SMG_OK;
}

/* Is it among kernels that were measured to be faster without parts? */
static bool is_inside_whole(const splitter *s, const looked *l) {
    bool inside = false;
    for (int i = 0; s->whole && i < s->looked.count && !inside; i++) {
        const looked *other = &s->looked.items[i];
        bool whole = other->how->fixed != NULL && other->how->taken < 0;
        inside = whole && other->first <= l->first && l->last <= other->last;
    }
    return inside;
}

/* What a run saves: one that was measured more than any part of it may by price. */
static double saved_by(const splitter *s, const looked *l) {
    const verdict *v = l->how;
    if (s->p->options->parts > 0) return l->last - l->first + 1;
    return v->fixed != NULL ? v->before : v->before - v->ways.items[v->taken].seconds;
}

static void choose_runs(const splitter *s, best_split *best) {
    int at = 0;
    for (int last = 0; last < s->of->count; last++) {
        best[last + 1] = (best_split){.saved = best[last].saved, .first = last};
        for (; at < s->looked.count && s->looked.items[at].last == last; at++) {
            const looked *l = &s->looked.items[at];
            if (l->how->taken < 0 || (l->how->fixed == NULL && is_inside_whole(s, l))) continue;
            double saved = best[l->first].saved + saved_by(s, l);
            if (saved > best[last + 1].saved)
                best[last + 1] = (best_split){.saved = saved, .first = l->first, .how = l->how};
        }
    }
}

/* "sums along an axis of 3072 in parts of 384: 6.10 us in place of 9.20 us" */
static void add_note(const planner *p, const parts *made, const verdict *v, smg_text *text) {
    const way *w = &v->ways.items[v->taken];
    smg_text_add(text, "sums along an axis of ");
    smg_size_print(p->g->sizes, made->extent, text);
    smg_text_addf(text, " in parts of %lld: %.2f us in place of %.2f us", (long long)w->chunk, w->seconds * 1e6,
                  v->before * 1e6);
    if (v->fixed != NULL)
        smg_text_addf(text, "; measured: a run took %.2f us so, %.2f us otherwise", v->fixed->seconds * 1e6,
                      v->fixed->apart * 1e6);
    smg_text_add(text, "\n");
}

static smg_status note(planner *p, const planner *before, const parts *made, const verdict *v) {
    const char **notes = SMG_ARENA_ARRAY(p->arena, const char *, (size_t)p->g->nodes.count + 1);
    smg_text text;
    smg_text_init(&text, p->ctx);
    add_note(p, made, v, &text);
    const char *words = smg_arena_string(p->arena, smg_text_cstr(&text));
    smg_status status = smg_text_status(&text);
    smg_text_free(&text);
    if (notes == NULL || words == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        smg_node_id from = made->from.items[id];
        if (from >= 0 && before->note != NULL) notes[id] = before->note[from];
        if (from < 0 && made->together.items[id] > 0) notes[id] = words;
    }
    p->note = notes;
    return status;
}

/* One run more in parts; at[id]: a node of the given graph in that of *io_p. */
static smg_status apply(const splitter *s, const run *r, const verdict *v, smg_node_id *at, planner **io_p) {
    planner *before = *io_p, *now = NULL;
    parts *made;
    bool *own = SMG_ARENA_ARRAY(before->arena, bool, (size_t)before->g->nodes.count + 1);
    if (own == NULL) return SMG_MEMORY;
    for (int i = r->from; i < r->to; i++) own[at[s->p->order[i]]] = true;
    const way *w = &v->ways.items[v->taken];
    smg_node_id node = smg_graph_node(s->p->g, r->member[w->member])->operand[0];
    const plan_split split = {.run = own, .node = at[node], .axis = w->axis, .chunk = w->chunk};
    SMG_TRY(parts_seek(before, &split, before->arena, &made));
    if (made != NULL) SMG_TRY(parts_plan(made, &now));
    if (now == NULL) return SMG_OK;
    *io_p = now;
    for (smg_node_id id = 0; id < s->p->g->nodes.count; id++) at[id] = made->now[at[id]];
    now->parted = before->parted || v->fixed != NULL;
    return note(now, before, made, v);
}

/* *out_fixed: for some of them that was measured. */
static smg_status apply_all(const splitter *s, const best_split *best, planner **out_p, bool *out_fixed) {
    smg_node_id *at = SMG_ARENA_ARRAY(s->arena, smg_node_id, (size_t)s->p->g->nodes.count + 1);
    if (at == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < s->p->g->nodes.count; id++) at[id] = id;
    *out_p = s->p;
    for (int last = s->of->count - 1; last >= 0; last = best[last + 1].first - 1) {
        run r;
        if (best[last + 1].how == NULL || !find_run(s, best[last + 1].first, last, true, &r)) continue;
        *out_fixed = *out_fixed || best[last + 1].how->fixed != NULL;
        SMG_TRY(apply(s, &r, best[last + 1].how, at, out_p));
    }
    return SMG_OK;
}

/* ---- what is told --------------------------------------------------------------------------------- */

static smg_status add_split(const splitter *s, const looked *l, bool taken, smg_plan *plan) {
    const verdict *v = l->how;
    int64_t chunk = taken ? v->ways.items[v->taken].chunk : 0;
    const smg_cut *fixed = taken == (v->taken >= 0) ? v->fixed : NULL;
    for (int i = 0; i < plan->splits.count; i++) {
        smg_split *other = &plan->splits.items[i];
        if (other->at != v->at) continue;
        other->places++;
        if (taken) other->chunk = chunk;
        if (fixed != NULL) other->fixed = fixed;
        return SMG_OK;
    }
    smg_split *slot = SMG_ARRAY_PUSH(s->p->arena, &plan->splits);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (smg_split){.at = v->at, .places = 1, .whole = v->before, .chunk = chunk, .fixed = fixed};
    int kernels = l->last - l->first + 1;
    slot->what = smg_arena_format(s->p->arena, "sums of %d kernel%s from %s on", kernels, kernels > 1 ? "s" : "",
                                  smg_graph_describe(s->p->g, l->member));
    if (slot->what == NULL) return SMG_MEMORY;
    for (int i = 0; i < v->ways.count; i++) {
        const way *w = &v->ways.items[i];
        if (find_way(v, w->chunk) != i || isinf(w->parted)) continue; /* another axis; one kernel */
        smg_chunk *one = SMG_ARRAY_PUSH(s->p->arena, &slot->priced);
        if (one == NULL) return SMG_MEMORY;
        *one = (smg_chunk){w->chunk, w->parted, w->seconds};
    }
    return SMG_OK;
}

/* What is in parts (kept: that list is taken), and other runs of kernels none of which is. */
static smg_status tell_splits(const splitter *s, const best_split *best, bool kept, smg_plan *plan) {
    int kernels = s->of->count;
    int *end = SMG_ARENA_ARRAY(s->arena, int, (size_t)kernels + 1); /* of what begins there in parts; -1: is inside */
    if (end == NULL) return SMG_MEMORY;
    for (int last = kernels - 1; kept && last >= 0; last = best[last + 1].first - 1) {
        if (best[last + 1].how == NULL) continue;
        for (int k = best[last + 1].first; k <= last; k++) end[k] = -1;
        end[best[last + 1].first] = last + 1;
    }
    for (int i = 0; i < s->looked.count; i++) {
        const looked *l = &s->looked.items[i];
        bool taken = end[l->first] == l->last + 1, whole = l->how->ways.count > 0;
        for (int k = l->first; k <= l->last; k++) whole = whole && end[k] == 0;
        if (taken || whole) SMG_TRY(add_split(s, l, taken, plan));
    }
    return SMG_OK;
}

/* Is the list with these parts the one to be taken? */
static smg_status choose_list(const splitter *s, planner *p, bool fixed, partition *out, bool *out_kept) {
    *out_kept = false;
    if (p == s->p) return SMG_OK;
    bool asked = s->p->options->parts > 0 || fixed;
    bool bounded = !asked && p->kept >= 1; /* else what is expected is not what is added up */
    if (bounded) p->most = s->of->cost + SPLIT_WAIT * p->target->dispatch_cost * s->of->count;
    smg_status status = plan_choose_list(p, false, out);
    p->most = 0;
    if (status == SMG_NO_FIT && bounded) {
        smg_context_clear_error(p->ctx);
        return SMG_OK;
    }
    SMG_TRY(status);
    bool pressed = out->live > out->limit || s->p->options->memory_pressure > 0;
    if (out->over || (out->live > s->of->live && pressed)) return SMG_OK;
    double after = seconds_in_parts(p, out, s->of->count, -HUGE_VAL);
    *out_kept = asked || after < s->of->cost;
    return SMG_OK;
}

/* Where kernels without parts begin, lists with parts may have a cut too. */
static smg_status mark_begins(splitter *s) {
    bool *begins = SMG_ARENA_ARRAY(s->p->arena, bool, (size_t)s->p->g->nodes.count + 1);
    if (begins == NULL) return SMG_MEMORY;
    for (int k = 0; k < s->of->count; k++) begins[s->p->order[begin_of(s, k)]] = true;
    s->p->begins = begins;
    return SMG_OK;
}

static smg_status split_all(splitter *s, planner **io_p, partition *io_partition, smg_plan *plan) {
    planner *p;
    partition list;
    bool fixed = false, kept;
    best_split *best = SMG_ARENA_ARRAY(s->arena, best_split, (size_t)io_partition->count + 1);
    if (best == NULL) return SMG_MEMORY;
    SMG_TRY(smg_map_create(s->arena, &s->known));
    SMG_TRY(mark_begins(s));
    SMG_TRY(look_at_runs(s));
    choose_runs(s, best);
    SMG_TRY(apply_all(s, best, &p, &fixed));
    SMG_TRY(choose_list(s, p, fixed, &list, &kept));
    SMG_TRY(tell_splits(s, best, kept, plan));
    if (!kept) return SMG_OK;
    *io_p = p;
    *io_partition = list;
    return SMG_OK;
}

smg_status plan_split_sums(planner **io_p, partition *io_partition, smg_plan *plan) {
    splitter s = {.p = *io_p, .of = io_partition};
    if (s.p->options->objective != SMG_OBJECTIVE_TIME || s.p->options->unfused || s.p->options->parts < 0)
        return SMG_OK;
    SMG_TRY(smg_arena_create(s.p->ctx, &s.arena));
    smg_status status = split_all(&s, io_p, io_partition, plan);
    smg_arena_destroy(s.arena);
    return status;
}
