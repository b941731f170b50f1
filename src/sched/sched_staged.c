/* Products whose factors are staged, on the scalar tier: which lanes and registers of a block suit its extents and the
 * target. */
#include <limits.h>

#include "sched/sched_internal.h"

#define LANE_SHARE 4     /* a core has enough to do when this share of its lanes works */
#define LEAST_STAGED 8   /* elements of a slice that an invocation stages: two groups */
#define MOST_STAGED 24   /* six of them: more are registers that wait */
#define MOST_STREAMED 40 /* where each is used for few products, or workgroups are few: memory has to be kept busy */
#define FEW_RESULTS 8
#define MOST_RATIO 4      /* of a block's sides: longer ones read more for each product */
#define MOST_SUBGROUPS 16 /* of a workgroup: more of them wait for each other */
#define MOST_DEPTH 32
#define LEAST_LANES 64
#define MANY_LANES 256

/* For whatever is smaller than any block that pays, or so wide that only few rows of it fit. */
static const lane_shape small_shapes[] = {
    {8, 8, 2, 4, 16, 1},  {8, 8, 4, 4, 16, 1},  {16, 8, 1, 4, 16, 1},  {16, 4, 1, 4, 16, 1},
    {8, 32, 1, 4, 16, 1}, {4, 32, 2, 4, 16, 1}, {16, 16, 4, 4, 16, 1}, {16, 16, 4, 2, 16, 1},
};

/* What the shapes of one grid are chosen for. */
typedef struct block_wants {
    int64_t rows, cols; /* extents; 1 where no axis has them */
    double results;     /* for each lane that the device keeps busy */
    double others;      /* workgroups along the other axes of the grid */
    double cores;       /* of the target */
    int beside;         /* products whose sums a lane has together */
    int64_t held;       /* elements that each lane has of each row and column */
    bool chain;         /* a lane's registers are the held columns, too */
} block_wants;

static block_wants wants_of(const enumerator *e, const smg_schedule *base) {
    block_wants w = {.rows = 1, .cols = 1, .others = 1, .held = 1, .chain = base->columns != 0};
    w.cores = (double)e->target->cores;
    w.beside = e->beside;
    int col = base->col_axis >= 0 ? base->col_axis : base->one_by_one ? -1 : base->temporal;
    for (int a = 0; a < e->space->axes.count; a++) {
        if (a == base->row_axis)
            w.rows = e->nominal[a];
        else if (a == col)
            w.cols = e->nominal[a];
        else if (base->grid & SMG_AXIS_BIT(a))
            w.others *= (double)e->nominal[a];
        else if (base->held & SMG_AXIS_BIT(a))
            w.held *= e->nominal[a];
        else if (col < 0 && (base->columns & SMG_AXIS_BIT(a)))
            w.cols = w.cols > e->nominal[a] ? w.cols : e->nominal[a];
    }
    double lanes = (double)(e->target->cores * e->target->core_lanes) / LANE_SHARE;
    w.results = w.others * (double)w.rows * (double)w.cols * (double)w.held / lanes;
    return w;
}

bool sched_side_fits(int64_t side, int64_t extent, int64_t least) {
    return side <= least || side < 2 * extent;
}

#define FEW_SUMS 8
#define SHARED_SUMS 16

/* Sums of a lane where results are few. Where lanes share out the contraction and no core has two blocks, there are
 * lanes enough for each result: larger tiles of registers read less for each product. */
static double most_of_few(const block_wants *w, const lane_shape *s, int64_t rows, int64_t cols) {
    if (s->depth == 1 || w->beside != 1) return FEW_SUMS;
    int64_t down = (w->rows + rows - 1) / rows, across = (w->cols + cols - 1) / cols;
    return w->others * (double)down * (double)across <= w->cores ? SHARED_SUMS : FEW_SUMS;
}

/* Few results want small tiles of registers and many lanes a result, many results large tiles. */
static bool suits(const block_wants *w, const lane_shape *s) {
    int64_t rows = (int64_t)s->rows * s->row_registers, cols = (int64_t)s->cols * s->col_registers;
    double sums = (double)s->row_registers * s->col_registers * (double)w->held;
    int64_t all = cols * w->held;
    if (rows < w->rows && (rows > MOST_RATIO * all || all > MOST_RATIO * rows)) return false;
    if (sums > 4 * w->results && sums > most_of_few(w, s, rows, cols)) return false;
    if (sums < 16 && sums < w->results / 8 && !w->chain) return false;
    return s->depth == 1 || s->depth * w->results < 4 * sums;
}

static smg_status add_rows_of(enumerator *e, const smg_schedule *base, lane_shape shape) {
    bool chained = base->temporal >= 0 && e->roles.contractions > 1 && base->inner != 0;
    if (base->row_axis < 0) shape.rows = shape.row_registers = 1;
    SMG_TRY(sched_add(e, &shape, base->temporal >= 0, *base));
    if (!chained || shape.row_registers < 4) return SMG_OK;
    smg_schedule whole = *base, sliced = *base;
    sched_set_tiles(e, &shape, true, &whole);
    sched_set_tiles(e, &shape, false, &sliced);
    bool other = memcmp(whole.tile, sliced.tile, sizeof whole.tile) != 0;
    return other ? sched_add(e, &shape, false, *base) : SMG_OK;
}

/* Products of many sums are written out a slice at a time, as far as registers allow: a loop over k around them costs a
 * quarter to a half more, and a driver seconds (bench/NOTES.md). Products side by side share the registers. */
static bool too_deep(const enumerator *e, const smg_schedule *base, const lane_shape *shape, int64_t held) {
    const smg_target *t = e->target;
    int64_t sums = (int64_t)shape->row_registers * shape->col_registers * held;
    if (base->columns == 0) sums *= e->beside;
    int64_t written = sums * (shape->inner / shape->depth);
    if (sched_in_pairs(e, shape)) written /= 2, sums += sums / 2;
    bool loops = smg_target_hides_loads(t) && smg_target_many_sums(t, sums);
    return loops && written > smg_target_most_written(t, sums);
}

/* *io_crowded: with fewer rows slices of so many k had no room; fewer k where that shows now. */
static smg_status add_slices(enumerator *e, const smg_schedule *base, const block_wants *w, lane_shape shape,
                             int *io_crowded) {
    int64_t invocations = (int64_t)shape.rows * shape.cols * shape.depth;
    int64_t columns = (int64_t)shape.cols * shape.col_registers * w->held;
    int64_t sides = (int64_t)shape.rows * shape.row_registers + columns;
    bool few = shape.rows * shape.row_registers < SCHED_FEW_ROWS || base->columns != 0 || w->results < FEW_RESULTS;
    int64_t least = shape.depth > 1 ? LEAST_STAGED / 2 : LEAST_STAGED, most = few ? MOST_STREAMED : MOST_STAGED;
    int shortest = smg_target_switches_lanes(e->target) ? 8 : 16;
    for (shape.inner = shortest; shape.inner <= 256 && shape.inner < *io_crowded; shape.inner *= 2) {
        int64_t staged = sched_in_pairs(e, &shape) ? sides * shape.inner / 2 : sides * shape.inner;
        if (staged < least * invocations || staged > most * invocations) continue;
        if (4 * staged > e->target->shared_bytes || shape.inner < 4 * shape.depth) continue;
        if (too_deep(e, base, &shape, w->held)) break;
        int before = e->out->items.count;
        SMG_TRY(add_rows_of(e, base, shape));
        if (!e->crowded || e->pairs) continue; /* pairs take half of the room, from so many k on */
        if (e->out->items.count == before) *io_crowded = shape.inner;
        break;
    }
    return SMG_OK;
}

static smg_status add_tiles(enumerator *e, const smg_schedule *base, const block_wants *w, lane_shape shape) {
    int most = (int)(e->target->registers_lane + 1) / (smg_target_switches_lanes(e->target) ? 2 : 4);
    /* Single columns of parts that are read as one group are turned on their way, word by word. */
    bool narrow = w->held > 1 && w->rows <= SCHED_FEW_ROWS;
    for (shape.col_registers = narrow ? 1 : 4; shape.col_registers <= 8; shape.col_registers *= 2) {
        int crowded = INT_MAX;
        if (!sched_side_fits((int64_t)shape.cols * shape.col_registers, w->cols, 16)) break;
        for (shape.row_registers = 1; shape.row_registers <= 16; shape.row_registers *= 2) {
            int64_t sums = (int64_t)shape.row_registers * shape.col_registers * w->held;
            if (sums > most || !sched_side_fits((int64_t)shape.rows * shape.row_registers, w->rows, 1)) break;
            if (!suits(w, &shape)) continue;
            SMG_TRY(add_slices(e, base, w, shape, &crowded));
            if (base->row_axis < 0) break;
        }
    }
    return SMG_OK;
}

/* Every way to deal a workgroup's lanes out to rows, columns and depth that suits the extents and the target. */
static smg_status add_blocks(enumerator *e, const smg_schedule *base) {
    const smg_target *t = e->target;
    block_wants w = wants_of(e, base);
    int64_t least = 2 * t->subgroup_size > LEAST_LANES ? 2 * t->subgroup_size : LEAST_LANES;
    int64_t most = MOST_SUBGROUPS * t->subgroup_size;
    if (most < MANY_LANES) most = MANY_LANES;
    int narrow = base->columns != 0 ? 4 : 8; /* the fewer lanes a row has, the less its reduction takes */
    int deepest = sched_shares_depth(e, base) ? MOST_DEPTH : 1;
    for (int64_t lanes = least; lanes <= most && lanes <= t->max_invocations; lanes *= 2) {
        for (int depth = 1; depth <= deepest; depth *= 2) {
            for (int64_t cols = narrow; cols <= 64 && cols * depth <= lanes; cols *= 2) {
                lane_shape shape = {.rows = (int)(lanes / (cols * depth)), .cols = (int)cols, .depth = depth};
                if (shape.rows > 32 || (base->row_axis < 0 && shape.rows > 1)) continue;
                SMG_TRY(add_tiles(e, base, &w, shape));
            }
        }
    }
    return SMG_OK;
}

/* Lanes that rows have no use for lie along columns. */
static lane_shape for_few_rows(const enumerator *e, const smg_schedule *base, lane_shape shape) {
    if (base->row_axis < 0 || base->temporal < 0 || !smg_target_switches_lanes(e->target)) return shape;
    int64_t rows = e->nominal[base->row_axis];
    while (shape.row_registers > 1 && (int64_t)shape.rows * shape.row_registers >= 2 * rows) shape.row_registers /= 2;
    for (; shape.rows > 1 && shape.rows >= 2 * rows; shape.rows /= 2) shape.cols *= 2;
    return shape;
}

/* Lanes have runs, but for single columns of held axes. */
static bool is_hopeless(const enumerator *e, smg_schedule s) {
    s.vec = SCHED_LOAD;
    s.reuse = sched_takes_turns(e, &s);
    return s.held == 0 && !sched_least_has_room(e, s);
}

/* *out_hopeless: no other block has room either. It is asked once the first has none. */
static smg_status add_small(enumerator *e, const smg_schedule *base, bool *out_hopeless) {
    lane_shape made[SMG_COUNT_OF(small_shapes)];
    bool crowded = false;
    *out_hopeless = false;
    for (size_t i = 0; i < SMG_COUNT_OF(small_shapes) && !*out_hopeless; i++) {
        bool known = false;
        made[i] = for_few_rows(e, base, small_shapes[i]);
        for (size_t j = 0; j < i; j++) known = known || memcmp(&made[j], &made[i], sizeof made[i]) == 0;
        if (!known) SMG_TRY(add_rows_of(e, base, made[i]));
        if (e->crowded && !crowded) *out_hopeless = is_hopeless(e, *base);
        crowded = crowded || e->crowded;
    }
    return SMG_OK;
}

smg_status sched_add_staged(enumerator *e, const smg_schedule *base) {
    bool hopeless;
    SMG_TRY(add_small(e, base, &hopeless));
    return hopeless ? SMG_OK : add_blocks(e, base);
}
