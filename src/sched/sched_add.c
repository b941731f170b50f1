/* The schedules of one shape of lanes: how wide its runs are, what is fetched ahead, and which tiles take turns. */
#include "sched/sched_internal.h"

int sched_subgroup(const smg_target *t) {
    return t->subgroup_arithmetic && t->subgroup_shuffle ? (int)t->subgroup_size : 1;
}

bool sched_has_room(const enumerator *e, const smg_schedule *s) {
    return e->room.has == NULL || e->room.has(e->room.user, s);
}

#define ANY_LANES 1024 /* no block has more of them along one side */

bool sched_least_has_room(const enumerator *e, smg_schedule s) {
    const lane_shape least = {1, 1, 1, 1, 1, 1};
    sched_set_tiles(e, &least, false, &s);
    s.lane_rows = s.lane_cols = ANY_LANES;
    s.lane_depth = 1;
    return sched_has_room(e, &s);
}

bool sched_shares_depth(const enumerator *e, const smg_schedule *s) {
    bool corrected = s->temporal >= 0 || e->space->repeat.count > 0;
    return !corrected && smg_target_hides_loads(e->target);
}

#define LEAST_ROWS 8 /* of a lane that takes them in runs */

/* Are a lane's rows runs of four? A group of shared memory is then four rows of one k, and what is read ahead takes a
 * quarter of the registers: it pays from large tiles of registers on (bench/NOTES.md), where the left operand is staged
 * and not left by another product. */
static bool rows_by_fours(const enumerator *e, const lane_shape *shape, const smg_schedule *s) {
    bool chain = e->roles.contractions > 1 && s->columns != 0;
    bool staged = e->roles.contractions > 0 && !chain && !s->direct && s->row_axis >= 0;
    bool cores = smg_target_switches_lanes(e->target) && smg_target_hides_loads(e->target);
    return staged && cores && s->vec >= 4 && shape->row_registers >= LEAST_ROWS;
}

#define MOST_OF_ROW 16 /* elements of a row that a lane holds, while more lanes could share them out */
#define MOST_LANES 512

/* A row that is held keeps registers from other workgroups, which would have loads under way meanwhile (measured on one
 * GPU: rows of 4096 over 64, 128 and 256 lanes take 138, 135 and 133 us, the speed of memory being 134). */
static bool holds_too_much(const enumerator *e, const smg_schedule *s) {
    int64_t held = 1, most = MOST_LANES;
    if (most > e->target->max_invocations) most = e->target->max_invocations;
    if (most > e->target->max_size_x) most = e->target->max_size_x;
    for (int a = 0; a < e->space->axes.count; a++)
        if (s->columns & SMG_AXIS_BIT(a)) held = smg_mul_at_most(held, s->tile[a], INT32_MAX);
    return s->temporal < 0 && INT64_C(2) * s->lane_cols <= most && held > MOST_OF_ROW * (int64_t)s->lane_cols;
}

/* Are rows made of runs of four for every lane? Else some would have one, and others none. */
static bool loads_fours(const enumerator *e, const smg_schedule *s) {
    if (!e->by_fours || !(s->columns & SMG_AXIS_BIT(e->run_axis))) return false;
    return s->temporal >= 0 || s->tile[e->run_axis] % (SCHED_LOAD * (int64_t)s->lane_cols) == 0;
}

static smg_status list(enumerator *e, uint64_t shape, const smg_schedule *s) {
    bool is_new;
    SMG_TRY(sched_is_new(&e->seen, shape, s, e->arena, &is_new));
    if (!is_new) return SMG_OK;
    smg_schedule *slot = SMG_ARRAY_PUSH(e->arena, &e->out->items);
    if (slot == NULL) return SMG_MEMORY;
    *slot = *s;
    slot->shape = shape;
    return SMG_OK;
}

smg_status sched_list(enumerator *e, const smg_schedule *s) {
    return list(e, sched_shape_hash(s), s);
}

static smg_status push(enumerator *e, uint64_t shape, smg_schedule *s) {
    int slots = s->slots;
    SMG_TRY(list(e, shape, s));
    if (e->target->slots == 1 || s->ahead == 0 || s->reuse) return SMG_OK;
    s->slots = (int)e->target->slots;
    SMG_TRY(list(e, shape, s));
    s->slots = slots;
    return SMG_OK;
}

smg_status sched_push(enumerator *e, smg_schedule s) {
    return push(e, sched_shape_hash(&s), &s);
}

#define LEAST_IN_PAIRS 16 /* of a slice's k: for fewer f16 sums are added to the others too often */

bool sched_in_pairs(const enumerator *e, const lane_shape *shape) {
    return e->pairs && shape->depth == 1 && shape->inner >= LEAST_IN_PAIRS && shape->row_registers >= LEAST_ROWS;
}

/* Only operands of a product behind another one can take the place of that one's, and only a core that runs several
 * workgroups gains by it. */
bool sched_takes_turns(const enumerator *e, const smg_schedule *s) {
    if (e->roles.contractions < 2 || !smg_target_switches_lanes(e->target)) return false;
    smg_axis_set sliced = s->columns == 0 ? sched_sliced_axes(e, s) : 0;
    return s->columns != 0 || (sliced & (sliced - 1)) != 0;
}

smg_status sched_add(enumerator *e, const lane_shape *shape, bool whole, smg_schedule base) {
    const smg_target *t = e->target;
    int64_t invocations = (int64_t)shape->rows * shape->cols * shape->depth;
    e->crowded = false;
    if (invocations > t->max_invocations || invocations > t->max_size_x) return SMG_OK;
    if (shape->depth > 1 && !sched_shares_depth(e, &base)) return SMG_OK;
    if (base.row_axis < 0 && shape->rows > 1) return SMG_OK;
    base.lane_rows = shape->rows;
    base.lane_cols = shape->cols;
    base.lane_depth = shape->depth;
    base.subgroup = sched_subgroup(t);
    if (base.direct) base.subgroup = (int)t->subgroup_size;
    if (shape->rows * shape->cols % base.subgroup != 0) base.subgroup = 1; /* part of one: lanes share words */
    sched_set_tiles(e, shape, whole, &base);
    /* Runs of four columns a lane read shared memory in one go; single ones waste fewer lanes on narrow tiles, which
     * only held columns have. */
    bool reduces = e->roles.contractions == 0 && e->roles.reductions > 0 && smg_target_switches_lanes(t);
    if (reduces && holds_too_much(e, &base)) return SMG_OK;
    base.groups = reduces && loads_fours(e, &base);
    bool runs = base.groups || (e->roles.contractions > 0 && shape->col_registers >= 4 && !base.direct);
    bool singles = !base.groups && (!runs || (base.columns != 0 && base.held == 0) || !smg_target_switches_lanes(t));
    bool chain = sched_takes_turns(e, &base);
    /* Waiting for a slice is worth registers only where loads take long. */
    int most_ahead = e->roles.contractions > 0 && smg_target_hides_loads(t) ? 1 : 0;
    /* Pairs read eight columns of 16 bits where they would read four of 32. */
    int most = !runs ? 1 : sched_in_pairs(e, shape) && shape->col_registers % 8 == 0 ? 8 : 4;
    base.vec = most;
    base.reuse = chain;
    e->crowded = !sched_has_room(e, &base);
    if (e->crowded) return SMG_OK;
    uint64_t of_shape = sched_shape_hash(&base);
    for (int vec = most; vec >= (singles ? 1 : most); vec = vec > 1 ? 1 : 0) {
        base.vec = vec;
        base.row_run = rows_by_fours(e, shape, &base) ? 4 : 1;
        for (int reuse = chain && (!runs || vec > 1) ? 1 : 0; reuse >= 0; reuse--) {
            base.reuse = reuse == 1;
            for (base.ahead = most_ahead; base.ahead >= 0; base.ahead--) SMG_TRY(push(e, of_shape, &base));
        }
    }
    return SMG_OK;
}
