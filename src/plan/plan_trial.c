/* The schedules of one space, tried: in the order of a rough guess they are lowered, and programs that fit are priced,
 * until enough of them were. The best is kept, or the n-th, or what was measured. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_guesses.h"
#include "plan/plan_segment.h"

/* What decides the structure of a program beside the roles: which axes a tile covers, which are wide. Schedules
 * with equal signatures differ in numbers only, so one lowering prices them all. */
typedef struct signature {
    int row_axis, col_axis, temporal, ahead, slots;
    int64_t slice; /* for alone: what is behind the last slice's end */
    bool joins, near, direct, alone, rows_next, groups, across;
    smg_space_form form;
    smg_axis_set grid, covered, wide, serial;
    smg_axis_set even; /* for direct and alone: tiles that divide their axis */
} signature;

typedef struct lowered {
    signature key;
    smg_kernel *structure; /* NULL when refused */
    smg_kernel *probe;
    const char *refused;
} lowered;

#define PLAN_MAX_LOWERED 64

typedef struct trial {
    planner *p;
    const int64_t *nominal; /* by axis of the space */
    smg_arena *scratch;
    segment *best;
    double within;           /* seconds, of use */
    SMG_ARRAY(lowered) done; /* PLAN_MAX_LOWERED at most */
    bool ranks;              /* all that fit are kept */
    fitted_list all;         /* then these */
    bool takes_all;          /* also what the options reject */
    int64_t too_many;        /* registers, for the driver */
    bool over;               /* one was found that is too much code and fits otherwise */
    fitted smallest;         /* of those, the one with the least code */
} trial;

static signature sign(const planner *p, const smg_schedule *s) {
    signature key;
    memset(&key, 0, sizeof(key)); /* compared as bytes */
    key = (signature){.row_axis = s->row_axis,
                      .col_axis = s->col_axis,
                      .temporal = s->temporal,
                      .grid = s->grid,
                      .serial = s->serial,
                      .ahead = s->ahead,
                      .slots = s->slots,
                      .joins = s->lane_depth > 1,
                      .near = s->depth_near,
                      .direct = s->direct,
                      .alone = s->alone,
                      .rows_next = s->rows_next,
                      .groups = s->groups,
                      .across = s->across,
                      .form = s->form};
    if (s->alone) key.slice = s->tile[s->temporal];
    for (int a = 0; a < s->space->axes.count; a++) {
        int64_t low, high;
        smg_size_bounds(p->g->sizes, s->space->axes.items[a].extent, &low, &high);
        if (high <= s->tile[a]) key.covered |= SMG_AXIS_BIT(a);
        if (s->tile[a] > 1) key.wide |= SMG_AXIS_BIT(a);
        if ((s->direct || s->alone) && low == high && high % s->tile[a] == 0) key.even |= SMG_AXIS_BIT(a);
    }
    return key;
}

static smg_status lower_once(trial *t, const smg_schedule *s, lowered *out) {
    signature key = sign(t->p, s);
    for (int i = 0; i < t->done.count; i++) {
        if (memcmp(&t->done.items[i].key, &key, sizeof(key)) != 0) continue;
        *out = t->done.items[i];
        return SMG_OK;
    }
    *out = (lowered){.key = key};
    const smg_lower_options options = {.name = "try", .target = t->p->target, .asked = t->p->asked};
    SMG_TRY(smg_kernel_structure(s, &options, t->scratch, &out->structure, &out->refused));
    if (out->structure != NULL) SMG_TRY(smg_kernel_probe(out->structure, t->scratch, &out->probe));
    if (t->done.count == PLAN_MAX_LOWERED) return SMG_OK;
    lowered *slot = SMG_ARRAY_PUSH(t->scratch, &t->done);
    if (slot == NULL) return SMG_MEMORY;
    *slot = *out;
    return SMG_OK;
}

/* Are they one schedule, whose tiles take turns on the same memory or have their own? */
static bool differ_by_reuse(const smg_schedule *a, const smg_schedule *b) {
    smg_schedule c = *a;
    c.reuse = b->reuse;
    return smg_schedule_hash(0, &c) == smg_schedule_hash(0, b);
}

/* Of two that differ by reuse and come out alike, the one that leaves more shared memory: it is the core's cache. */
static bool is_better(const fitted *a, const fitted *b) {
    double seconds = a->price.seconds, other = b->price.seconds;
    bool alike = fabs(seconds - other) <= 0.002 * other && a->price.shared_bytes != b->price.shared_bytes;
    if (alike && differ_by_reuse(&a->schedule, &b->schedule)) return a->price.shared_bytes < b->price.shared_bytes;
    return seconds < other;
}

/* Is the program within what the driver builds in good time? The smallest that is not is kept. */
static bool within_budget(trial *t, const smg_schedule *s, const smg_price *price, const char **out_refused) {
    if (price->operations <= t->p->target->code_budget) return true;
    *out_refused = "is more code than the driver builds in good time";
    if (!t->over || price->operations < t->smallest.price.operations)
        t->smallest = (fitted){.price = *price, .schedule = *s};
    t->over = true;
    return false;
}

static smg_status keep(trial *t, const smg_schedule *s, const smg_price *price) {
    fitted *slot = SMG_ARRAY_PUSH(t->scratch, &t->all);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (fitted){.price = *price, .schedule = *s};
    return SMG_OK;
}

static void take(segment *best, const smg_schedule *s, const smg_price *price) {
    best->possible = true;
    best->schedule = *s;
    best->price = *price;
    best->expected = price->seconds;
}

/* A program that fits: its price, and whether it is the best so far. How much code it is takes as long to count as the
 * price, so only those that would be taken are asked. */
static smg_status try_program(trial *t, const smg_schedule *s, smg_kernel *k, smg_price *price,
                              const char **out_refused) {
    segment *best = t->best;
    plan_price(k, t->p->target, t->p->nominal, price);
    const fitted this = {.price = *price, .schedule = *s}, other = {.price = best->price, .schedule = best->schedule};
    bool better = !best->possible || is_better(&this, &other);
    if (!better && !t->ranks) return SMG_OK;
    price->operations = smg_kernel_operations(k);
    if (!within_budget(t, s, price, out_refused)) {
        price->seconds = HUGE_VAL;
        return SMG_OK;
    }
    if (t->ranks) SMG_TRY(keep(t, s, price));
    if (!better) return SMG_OK;
    take(best, s, price);
    if (t->p->kept < 1) best->expected = plan_expect(k, t->p->target, t->p->nominal, t->p->kept, price);
    return SMG_OK;
}

bool smg_driver_rejects(const smg_driver_facts *facts, uint64_t schedule) {
    for (int i = 0; i < facts->rejected_count; i++)
        if (facts->rejected[i].schedule == schedule) return true;
    return false;
}

smg_taken smg_driver_taken(const smg_driver_facts *facts, uint64_t schedule) {
    for (int i = 0; i < facts->taken_count; i++)
        if (facts->taken[i].schedule == schedule) return facts->taken[i];
    return (smg_taken){.schedule = schedule};
}

/* With nothing else to be had, what was rejected is better than nothing. */
static bool is_rejected(const trial *t, const smg_schedule *s) {
    const smg_driver_facts *driver = &t->p->options->driver;
    if (driver->rejected_count == 0 || t->takes_all) return false;
    return smg_driver_rejects(driver, smg_schedule_hash(t->best->at, s));
}

static void ask_driver(const trial *t, const smg_schedule *s, smg_price *io) {
    const smg_driver_facts *driver = &t->p->options->driver;
    if (driver->taken_count == 0) return;
    const smg_taken taken = smg_driver_taken(driver, smg_schedule_hash(t->best->at, s));
    io->taken = taken.registers;
    io->spilled = taken.spills;
}

static bool is_among(const smg_node_id *nodes, int count, smg_node_id node) {
    for (int i = 0; i < count; i++)
        if (nodes[i] == node) return true;
    return false;
}

#define FEW_REJECTED 2 /* of nodes and parts of them; after more they are cut */

/* Of the nodes: those that the choice was for, or that stand between them. */
static int shared_nodes(const smg_choice *r, const segment_members *of) {
    int shared = 0;
    for (int i = 0; i < of->count; i++) shared += r->first <= of->nodes[i] && of->nodes[i] <= r->last;
    return shared;
}

/* Of the same nodes, or some of them, the first may have been bad luck; of more nodes even those are too many. What
 * cannot be cut goes on with fewer. */
int64_t plan_too_many_registers(const planner *p, uint64_t key, const segment_members *of) {
    int64_t least = INT64_MAX, parts = INT64_MAX;
    int near = 0, within = 0;
    for (int i = 0; i < p->options->driver.rejected_count; i++) {
        const smg_choice *r = &p->options->driver.rejected[i];
        bool first = is_among(of->nodes, of->count, r->first), last = is_among(of->nodes, of->count, r->last);
        bool most = 2 * shared_nodes(r, of) > of->count;
        if (r->registers == INT64_MAX || !(first || most)) continue;
        near++;
        if (r->registers < least) least = r->registers;
        if (!first || !last) continue;
        within++;
        if (r->nodes != key && r->registers < parts) parts = r->registers;
    }
    if (within > FEW_REJECTED && !of->alone) return 0;
    return near >= FEW_REJECTED ? least : parts;
}

static void leave_out(segment *s) {
    s->rejected++;
    if (s->refused == NULL) s->refused = "the driver made nothing good of its schedules";
}

/* *out_seconds: its price, infinite when it does not fit; then *out_refused may say why. */
static smg_status try_lowered(trial *t, const smg_schedule *s, double *out_seconds, smg_price *price,
                              const char **out_refused) {
    segment *best = t->best;
    lowered program;
    *out_seconds = HUGE_VAL;
    SMG_TRY(lower_once(t, s, &program));
    const char *refused = program.refused;
    /* Tiles take turns and go to registers in passes of their own: before that they are all counted. */
    bool later = s->reuse || s->matrix != NULL, likely = program.structure != NULL;
    if (likely && !later) {
        SMG_TRY(smg_kernel_retile(program.structure, s, program.probe));
        likely = plan_fits(program.probe, t->p->target, price, &refused);
    }
    if (likely) {
        smg_kernel *k;
        const smg_lower_options options = {.name = "try", .target = t->p->target};
        smg_arena_reset(t->p->fitting); /* the program before has its price */
        SMG_TRY(later ? smg_kernel_fit(program.structure, s, &options, t->p->fitting, &k, &refused)
                      : smg_kernel_fit_probe(program.probe, s, &options, t->p->fitting, &k, &refused));
        bool fits = k != NULL && plan_fits(k, t->p->target, price, &refused);
        ask_driver(t, s, price);
        if (fits && !t->takes_all && price->registers >= t->too_many) {
            leave_out(best);
        } else if (fits) {
            SMG_TRY(try_program(t, s, k, price, &refused));
            *out_seconds = price->seconds;
        }
    }
    *out_refused = refused;
    if (!best->possible && refused != NULL && best->refused == NULL) {
        best->refused = smg_arena_string(t->p->kept_in, refused);
        if (best->refused == NULL) return SMG_MEMORY;
    }
    return SMG_OK;
}

static const char spoilt[] = "the driver made nothing good of it";

static smg_status try_schedule(trial *t, const smg_schedule *s, double guess, double *out_seconds) {
    smg_price price = {0};
    const char *refused = NULL;
    *out_seconds = HUGE_VAL;
    if (is_rejected(t, s)) {
        leave_out(t->best);
        refused = spoilt;
    } else {
        SMG_TRY(try_lowered(t, s, out_seconds, &price, &refused));
        if (isinf(*out_seconds) && refused == NULL) refused = spoilt;
    }
    if (t->p->record == NULL) return SMG_OK;
    if (!isinf(*out_seconds)) refused = NULL;
    return plan_record_tried(t->p, smg_schedule_hash(t->best->at, s), s, guess, refused, &price);
}

static int by_price(const void *a, const void *b) {
    double x = ((const fitted *)a)->price.seconds, y = ((const fitted *)b)->price.seconds;
    return (x > y) - (x < y);
}

static void sort(fitted_list *all) {
    if (all->count > 0) qsort(all->items, (size_t)all->count, sizeof(fitted), by_price);
}

/* Does some index run along the axis, for conditions to be about? */
static bool is_indexed(const smg_space *space, int axis) {
    bool found = false;
    for (int i = 0; i < space->views.count; i++) {
        const smg_sview *view = &space->views.items[i];
        if (view->source < 0 || smg_op_leaf(smg_graph_node(space->graph, view->source)->op) != SMG_LEAF_INDEX) continue;
        for (int n = 0; n < view->axis_count; n++) found = found || view->axis[n] == axis;
    }
    return found;
}

/* How much of a loop is left out shows in a program only, and hangs on tiles: a program of each temporal axis that has
 * such loops, to be asked with the tiles of any schedule. By elements it is the most that can be. */
static smg_status find_loops(trial *t, const smg_schedules *schedules, smg_kernel *out_loops[SMG_SPACE_AXES]) {
    smg_axis_set seen = 0;
    double least = HUGE_VAL;
    for (int i = 0; i < schedules->items.count; i++) {
        const smg_schedule *s = &schedules->items.items[i];
        lowered program;
        if (s->temporal < 0 || (seen & SMG_AXIS_BIT(s->temporal))) continue;
        seen |= SMG_AXIS_BIT(s->temporal);
        if (!is_indexed(s->space, s->temporal)) continue;
        SMG_TRY(lower_once(t, s, &program));
        if (program.structure == NULL || plan_share(program.structure, t->p->nominal, s->temporal) >= 1) continue;
        out_loops[s->temporal] = program.probe;
        least = plan_lesser(least, plan_least_share(program.probe, t->p->nominal, s->temporal));
    }
    t->best->share = isinf(least) ? 0 : least;
    return SMG_OK;
}

#define FAR_GUESS 1.5 /* times the first guess: what is dearer comes out as the best hardly ever */
/* After so many prices further ones are hardly ever a smaller share of their guesses than these, less a margin; nor
 * below their guesses at all where these are above (decision 0055). */
typedef struct foresight {
    int prices;
    double margin;
} foresight;

/* Whether a segment is of use has to be known less well than which schedule is its best: where it is so close, another
 * cut costs nearly the same. */
static const foresight foresight_of_use = {4, 0.9};

/* Without products guesses come close to prices. */
static foresight foresight_of(const smg_schedules *schedules) {
    bool products = schedules->items.count > 0 && smg_space_has_products(schedules->items.items[0].space);
    return products ? (foresight){6, 0.7} : (foresight){4, 0.95};
}

/* Of its guess, what further prices are at least, by the least share that one has been; 0: too few to tell. */
static double least_share(const foresight *by, int priced, double share) {
    return priced >= by->prices ? plan_lesser(1, by->margin * share) : 0;
}

/* Are the prices so far, and further ones, which are at least so many seconds, beyond what is of use? */
static bool is_beyond_use(const trial *t, double least) {
    return t->best->price.seconds > t->within && least > t->within;
}

static void give_up(segment *s, double least) {
    s->possible = false;
    s->least = least;
}

/* The schedules in the order of their guesses until enough of them fit. Where the n-th best by price is asked for, or
 * some that are to be measured, it takes so many more. */
static smg_status try_best(trial *t, const plan_found *found) {
    const smg_schedules *schedules = &found->schedules;
    const smg_plan_options *o = t->p->options;
    int more = o->rank + (t->ranks ? 2 * o->rivals : 0);
    bool bounded = !t->ranks && o->lowered == 0;
    int enough = o->lowered > 0 ? o->lowered : SMG_PLAN_LOWERED + more;
    smg_kernel *loops[SMG_SPACE_AXES] = {NULL};
    const foresight known = foresight_of(schedules);
    plan_guesses guesses;
    SMG_TRY(find_loops(t, schedules, loops));
    SMG_TRY(plan_guesses_make(t->p, found, loops, t->scratch, &guesses));
    int priced = 0;
    double most = HUGE_VAL, least = plan_guesses_least(&guesses), share = HUGE_VAL; /* least price over guess */
    if (least > t->within) {
        give_up(t->best, least);
        return SMG_OK;
    }
    while (priced < enough) {
        double guess, seconds;
        int best = plan_guesses_next(&guesses, most, &guess);
        if (best < 0) break;
        least = guess * least_share(&foresight_of_use, priced, share);
        if (is_beyond_use(t, least)) {
            give_up(t->best, plan_lesser(t->best->price.seconds, least));
            return SMG_OK;
        }
        SMG_TRY(try_schedule(t, &schedules->items.items[best], guess, &seconds));
        if (isinf(seconds)) continue;
        if (priced == 0 && bounded) most = FAR_GUESS * guess;
        share = plan_lesser(share, seconds / guess);
        priced++;
        if (bounded && priced >= known.prices)
            most = plan_lesser(most, t->best->price.seconds / least_share(&known, priced, share));
    }
    plan_record_left(t->p, schedules->items.count, guesses.seconds, schedules->items.count);
    return SMG_OK;
}

/* The n-th best is asked for; behind the last one, the last. */
static void take_rank(trial *t) {
    int rank = t->p->options->rank;
    if (rank <= 0 || t->all.count == 0) return;
    if (rank >= t->all.count) rank = t->all.count - 1;
    sort(&t->all);
    take(t->best, &t->all.items[rank].schedule, &t->all.items[rank].price);
}

static const smg_measured *find_measured(const smg_plan_options *o, uint64_t at) {
    int low = 0, high = o->measured_count;
    if (o->rank > 0 || o->unfused) return NULL;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (o->measured[middle].at == at) return &o->measured[middle];
        if (o->measured[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* What was measured takes the place of the schedule that the price chose; the price stays what cuts are decided by. */
static smg_status take_measured(trial *t, const smg_schedules *schedules) {
    segment *best = t->best, other = {.key = best->key};
    const smg_measured *m = best->possible ? find_measured(t->p->options, best->at) : NULL;
    double seconds = HUGE_VAL;
    if (m == NULL || m->schedule == smg_schedule_hash(best->at, &best->schedule)) {
        best->measured = m;
        best->measured_price = best->price;
        return SMG_OK;
    }
    t->best = &other;
    t->takes_all = true;
    smg_status status = SMG_OK;
    for (int i = 0; i < schedules->items.count && isinf(seconds) && status == SMG_OK; i++) {
        const smg_schedule *s = &schedules->items.items[i];
        if (smg_schedule_hash(best->at, s) == m->schedule) status = try_schedule(t, s, 0, &seconds);
    }
    t->best = best;
    if (status != SMG_OK || !other.possible) return status;
    best->measured = m;
    best->measured_price = other.price;
    best->schedule = other.schedule;
    return SMG_OK;
}

/* What cannot be cut any more is built in whatever time it takes. */
static void take_smallest(trial *t) {
    if (!t->best->possible && t->over) take(t->best, &t->smallest.schedule, &t->smallest.price);
}

/* What cannot be cut any more gets a kernel also where the count over the space says that none has room. */
static smg_status try_alone(trial *t, const smg_space *space, const int64_t *nominal) {
    smg_schedules all;
    double seconds;
    SMG_TRY(smg_sched_candidates(space, t->p->target, nominal, (smg_sched_room){0}, t->scratch, &all));
    for (int i = 0; i < all.items.count; i++) SMG_TRY(try_schedule(t, &all.items.items[i], 0, &seconds));
    plan_record_left(t->p, all.items.count, NULL, 0);
    return SMG_OK;
}

static void nominal_extents(const planner *p, const smg_space *space, int64_t *out) {
    for (int a = 0; a < SMG_SPACE_AXES; a++) {
        out[a] = 1;
        if (a < space->axes.count) {
            if (!smg_size_eval(p->g->sizes, space->axes.items[a].extent, p->nominal, &out[a])) out[a] = 1;
        }
    }
}

static uint64_t at_sizes(uint64_t key, const smg_space *space, const int64_t *nominal) {
    for (int a = 0; a < space->axes.count; a++) key = smg_hash_u64(key, (uint64_t)nominal[a]);
    return key;
}

smg_status plan_try_segment(planner *p, const segment_members *of, double within, segment *io, fitted_list *out_all) {
    smg_arena *scratch = p->scratch;
    smg_space *space;
    smg_arena_reset(scratch);
    int64_t *nominal = SMG_ARENA_ARRAY(scratch, int64_t, SMG_SPACE_AXES);
    if (nominal == NULL) return SMG_MEMORY;
    SMG_TRY(smg_space_build_repeated(p->g, scratch, of->nodes, of->count, p->needed, &of->repeat, &space));
    io->hopeless = space->refused != NULL;
    if (space->refused != NULL) {
        io->refused = smg_arena_string(p->kept_in, space->refused);
        return io->refused != NULL ? SMG_OK : SMG_MEMORY;
    }
    nominal_extents(p, space, nominal);
    io->at = at_sizes(io->structure, space, nominal);
    plan_found f = {.refused = NULL};
    SMG_TRY(plan_find_schedules(p, space, nominal, scratch, &f));
    if (f.schedules.items.count == 0 && f.refused == NULL && smg_space_multiply_sums(space) > 0) {
        io->multiplies_sums = true;
        SMG_TRY(plan_find_schedules(p, space, nominal, scratch, &f));
    }
    io->refused = f.refused != NULL ? f.refused : f.schedules.refused;
    trial *t = SMG_ARENA_NEW(scratch, trial);
    if (t == NULL) return SMG_MEMORY;
    if (!io->multiplies_sums) SMG_TRY(plan_find_forms(p, space, nominal, scratch, &f));
    t->p = p;
    t->nominal = nominal;
    t->within = within;
    t->scratch = scratch;
    t->best = io;
    t->ranks = p->options->rank > 0 || out_all != NULL;
    t->too_many = plan_too_many_registers(p, io->key, of);
    SMG_TRY(try_best(t, &f));
    if (io->least > 0) return SMG_OK; /* of no use */
    if (of->alone && !io->possible && !t->over) SMG_TRY(try_alone(t, space, nominal));
    t->takes_all = true;
    if (of->alone && !io->possible && io->rejected > 0) SMG_TRY(try_best(t, &f));
    take_rank(t);
    if (of->alone) take_smallest(t);
    SMG_TRY(take_measured(t, &f.schedules));
    if (out_all == NULL) return SMG_OK;
    sort(&t->all);
    *out_all = t->all;
    return SMG_OK;
}
