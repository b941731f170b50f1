/* Enumeration. Three shapes of block cover everything: plain maps, rows with reductions, and tiles with
 * contractions. They differ in which lane grids and tile sizes are worth trying, not in how they are lowered. */
#include <limits.h>
#include <math.h>

#include "sched/sched_internal.h"

/* operands read where they lie: a subgroup for a row lane, its lanes neighbouring columns (cols is 0 here) */
static const lane_shape direct_shapes[] = {
    {1, 0, 8, 2, 16, 1}, {1, 0, 16, 1, 16, 1}, {1, 0, 4, 4, 16, 1}, {1, 0, 8, 2, 8, 1},
    {1, 0, 16, 1, 8, 1}, {1, 0, 4, 4, 8, 1},   {1, 0, 8, 1, 16, 1}, {1, 0, 4, 2, 16, 1},
    {1, 0, 2, 4, 16, 1}, {1, 0, 1, 8, 16, 1},  {1, 0, 1, 4, 16, 1},
};
static const lane_shape row_shapes[] = {
    {1, 512, 1, 8, 1, 1}, {1, 256, 1, 8, 1, 1}, {1, 128, 1, 8, 1, 1}, {1, 64, 1, 8, 1, 1}, {4, 64, 1, 8, 1, 1},
    {4, 32, 1, 8, 1, 1},  {8, 32, 1, 8, 1, 1},  {8, 16, 1, 8, 1, 1},  {16, 8, 1, 8, 1, 1}, {64, 4, 1, 8, 1, 1},
};
static const lane_shape map_shapes[] = {
    {1, 256, 1, 4, 1, 1}, {4, 64, 4, 1, 1, 1}, {8, 32, 4, 1, 1, 1}, {16, 8, 4, 1, 1, 1}};

static bool constant(const enumerator *e, int axis, int64_t *out) {
    return smg_size_is_const(e->space->graph->sizes, e->space->axes.items[axis].extent, out);
}

static int subgroup_of(const smg_target *t) {
    return t->subgroup_arithmetic && t->subgroup_shuffle ? (int)t->subgroup_size : 1;
}

#define MOST_WHOLE 64           /* k of a slice that is staged once for all others */
#define MOST_WHOLE_MATRICES 128 /* of halves, which a subgroup's registers hold */

/* Do elements of a product's operand that lie side by side in memory run along the axis? bytes: of one; 0: any. */
static bool runs_along(const enumerator *e, int axis, int64_t bytes) {
    const smg_graph *g = e->space->graph;
    for (int i = 0; i < e->space->nodes.count; i++) {
        const smg_snode *n = &e->space->nodes.items[i];
        for (int k = 0; n->class_ == SMG_CLASS_CONTRACT && k < n->operand_count; k++) {
            if (n->operand[k].producer >= 0) continue;
            const smg_sview *view = &e->space->views.items[n->operand[k].view];
            if (view->source < 0) continue;
            if (bytes > 0 && smg_type_device_bytes(smg_graph_storage(g, view->source)) != bytes) continue;
            for (int a = 0; a < view->axis_count; a++)
                if (view->axis[a] == axis && smg_size_is_one(g->sizes, view->stride[a])) return true;
        }
    }
    return false;
}

/* The longest of these axes; of several, one along which an operand lies side by side: a slice along another would
 * gather it element by element. */
static int longest_of(const enumerator *e, smg_axis_set among) {
    int longest = smg_sched_largest(among, e->nominal);
    for (int a = longest + 1; longest >= 0 && a < e->space->axes.count; a++) {
        bool as_long = (among & SMG_AXIS_BIT(a)) && e->nominal[a] == e->nominal[longest];
        if (as_long && runs_along(e, a, 0) && !runs_along(e, longest, 0)) longest = a;
    }
    return longest;
}

/* Of the axes that a product contracts only one has slices of several elements: what it holds, else the longest. */
static void stage_slices(const enumerator *e, smg_axis_set k, const lane_shape *shape, bool whole, smg_schedule *s) {
    int64_t extent, tile = shape->inner, most = s->matrix != NULL ? MOST_WHOLE_MATRICES : MOST_WHOLE;
    for (int a = 0; a < e->space->axes.count; a++)
        if ((k & SMG_AXIS_BIT(a)) && s->tile[a] > 1) return;
    int axis = longest_of(e, k & s->inner);
    if (axis < 0) return;
    if (constant(e, axis, &extent) && (extent < tile || (whole && extent <= most))) tile = extent;
    s->tile[axis] = tile;
}

/* Axes of which staged operands have slices: of each product the longest that it sums over; where two have one in
 * common, that one is both's. */
static smg_axis_set sliced_axes(const enumerator *e, const smg_schedule *s) {
    smg_axis_set sliced = 0;
    for (int i = 0; i < e->products; i++) {
        smg_axis_set summed = e->sums[i] & s->inner;
        int longest = longest_of(e, summed);
        if (longest >= 0 && (summed & sliced) == 0) sliced |= SMG_AXIS_BIT(longest);
    }
    return sliced;
}

/* Elements of a slice that lie over column lanes, in runs: no more than there are. */
static int64_t slice_of(const enumerator *e, int axis, const lane_shape *shape) {
    int64_t tile = shape->col_registers, most = (int64_t)shape->cols * shape->col_registers;
    while (tile < most && tile < e->nominal[axis]) tile *= 2;
    return e->roles.contractions > 0 && smg_target_switches_lanes(e->target) ? tile : most;
}

/* Sizes of every axis for one lane shape. `whole`: a short contraction that only staged operands have is one slice, so
 * that a left operand is staged once for all slices of the temporal axis. */
void sched_set_tiles(const enumerator *e, const lane_shape *shape, bool whole, smg_schedule *s) {
    smg_axis_set whole_axes = (s->columns | s->held) & ~s->serial;
    for (int a = 0, count = e->space->axes.count; a < count; a++) {
        smg_axis_set bit = SMG_AXIS_BIT(a);
        int64_t extent;
        s->tile[a] = 1;
        if (a == s->row_axis && ((s->grid & bit) || a == s->temporal))
            s->tile[a] = (int64_t)shape->rows * shape->row_registers;
        else if (a == s->col_axis)
            s->tile[a] = (int64_t)shape->cols * shape->col_registers;
        else if (a == s->temporal)
            s->tile[a] = s->one_by_one ? 1 : s->col_axis >= 0 ? shape->inner : slice_of(e, a, shape);
        else if ((whole_axes & bit) && constant(e, a, &extent))
            s->tile[a] = extent;
    }
    for (int i = 0; i < e->products; i++) stage_slices(e, e->sums[i], shape, whole, s);
    sched_fill_slices(s);
}

void sched_fill_slices(smg_schedule *s) {
    const smg_srepeat *r = &s->space->repeat;
    for (int i = 0; i < r->slice_count; i++) {
        int64_t by = s->tile[r->slice[i].by], *whole = &s->tile[r->slice[i].whole];
        *whole = (*whole + by - 1) / by * by;
    }
}

bool sched_has_room(const enumerator *e, const smg_schedule *s) {
    return e->room.has == NULL || e->room.has(e->room.user, s);
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

#define STREAM_VEC 4   /* elements that one load takes */
#define MOST_OF_ROW 16 /* elements of a row that a lane holds, while more lanes could share them out */
#define MOST_LANES 512

/* A row that is held keeps registers from other workgroups, which would have loads under way meanwhile (measured on one
 * GPU: rows of 4096 over 64, 128 and 256 lanes take 138, 135 and 133 us, the speed of memory being 134). */
static bool holds_too_much(const enumerator *e, const smg_schedule *s) {
    int64_t held = 1, most = MOST_LANES;
    if (most > e->target->max_invocations) most = e->target->max_invocations;
    if (most > e->target->max_size_x) most = e->target->max_size_x;
    for (int a = 0; a < e->space->axes.count; a++)
        if (s->columns & SMG_AXIS_BIT(a)) held *= s->tile[a];
    return s->temporal < 0 && INT64_C(2) * s->lane_cols <= most && held > MOST_OF_ROW * (int64_t)s->lane_cols;
}

/* Are rows made of runs of four for every lane? Else some would have one, and others none. */
static bool loads_fours(const enumerator *e, const smg_schedule *s) {
    if (!e->by_fours || !(s->columns & SMG_AXIS_BIT(e->run_axis))) return false;
    return s->temporal >= 0 || s->tile[e->run_axis] % (STREAM_VEC * (int64_t)s->lane_cols) == 0;
}

/* Short extents make one slice of several lengths. */
static smg_status push(enumerator *e, const smg_schedule *s) {
    bool is_new;
    SMG_TRY(sched_is_new(&e->seen, s, e->arena, &is_new));
    if (!is_new) return SMG_OK;
    smg_schedule *slot = SMG_ARRAY_PUSH(e->arena, &e->out->items);
    if (slot == NULL) return SMG_MEMORY;
    *slot = *s;
    return SMG_OK;
}

smg_status sched_push(enumerator *e, smg_schedule s) {
    SMG_TRY(push(e, &s));
    if (e->target->slots == 1 || s.ahead == 0 || s.reuse) return SMG_OK;
    s.slots = (int)e->target->slots;
    return push(e, &s);
}

#define LEAST_IN_PAIRS 16 /* of a slice's k: for fewer f16 sums are added to the others too often */

/* Is a slice summed up in pairs of f16? Its elements are half as large then. */
static bool in_pairs(const enumerator *e, const lane_shape *shape) {
    return e->pairs && shape->depth == 1 && shape->inner >= LEAST_IN_PAIRS && shape->row_registers >= LEAST_ROWS;
}

/* Only operands of a product behind another one can take the place of that one's, and only a core that runs several
 * workgroups gains by it. */
bool sched_takes_turns(const enumerator *e, const smg_schedule *s) {
    if (e->roles.contractions < 2 || !smg_target_switches_lanes(e->target)) return false;
    smg_axis_set sliced = s->columns == 0 ? sliced_axes(e, s) : 0;
    return s->columns != 0 || (sliced & (sliced - 1)) != 0;
}

static smg_status add(enumerator *e, const lane_shape *shape, bool whole, smg_schedule base) {
    const smg_target *t = e->target;
    int64_t invocations = (int64_t)shape->rows * shape->cols * shape->depth;
    if (invocations > t->max_invocations || invocations > t->max_size_x) return SMG_OK;
    /* A running sum is corrected in between: its parts would have to be joined in every slice, or body. */
    bool corrected = base.temporal >= 0 || e->space->repeat.count > 0;
    if (shape->depth > 1 && (corrected || !smg_target_hides_loads(t))) return SMG_OK;
    if (base.row_axis < 0 && shape->rows > 1) return SMG_OK;
    base.lane_rows = shape->rows;
    base.lane_cols = shape->cols;
    base.lane_depth = shape->depth;
    base.subgroup = subgroup_of(t);
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
    int most = !runs ? 1 : in_pairs(e, shape) && shape->col_registers % 8 == 0 ? 8 : 4;
    base.vec = most;
    base.reuse = chain;
    e->crowded = !sched_has_room(e, &base);
    if (e->crowded) return SMG_OK;
    for (int vec = most; vec >= (singles ? 1 : most); vec = vec > 1 ? 1 : 0) {
        base.vec = vec;
        base.row_run = rows_by_fours(e, shape, &base) ? 4 : 1;
        for (int reuse = chain && (!runs || vec > 1) ? 1 : 0; reuse >= 0; reuse--) {
            base.reuse = reuse == 1;
            for (base.ahead = most_ahead; base.ahead >= 0; base.ahead--) SMG_TRY(sched_push(e, base));
        }
    }
    return SMG_OK;
}

/* Products whose operands are read where they lie, for cores whose lanes are the elements of one vector register. */
static smg_status add_direct(enumerator *e, smg_schedule base) {
    const smg_target *t = e->target;
    if (e->roles.contractions == 0 || base.temporal >= 0 || smg_target_switches_lanes(t)) return SMG_OK;
    if (e->space->repeat.count > 0) return SMG_OK; /* what a body leaves lies in no memory */
    if (!t->buffer_addresses || !t->subgroup_selectable || t->subgroup_size < 2) return SMG_OK;
    base.direct = true;
    for (size_t i = 0; i < SMG_COUNT_OF(direct_shapes); i++) {
        lane_shape shape = direct_shapes[i];
        shape.cols = (int)t->subgroup_size;
        if (base.row_axis < 0 && shape.row_registers > 1) continue;
        SMG_TRY(add(e, &shape, false, base));
    }
    return SMG_OK;
}

/* Products with something between them, on the same cores: lanes are rows. The others of the workgroup have nothing
 * that a lane needs, so it is one subgroup. */
static const int alone_slices[] = {16, 8, 4};

static smg_status add_alone(enumerator *e, smg_schedule base) {
    const smg_target *t = e->target;
    bool chain = e->roles.contractions > 1 && base.temporal >= 0 && base.held == 0 && base.col_axis < 0;
    if (!chain || base.row_axis < 0 || !(base.grid & SMG_AXIS_BIT(base.row_axis)) || base.more_rows[0] >= 0)
        return SMG_OK;
    if (smg_target_switches_lanes(t) || !t->buffer_addresses || !t->subgroup_selectable || t->subgroup_size < 2)
        return SMG_OK;
    base.alone = true;
    base.lane_rows = base.subgroup = (int)t->subgroup_size;
    base.lane_cols = base.lane_depth = base.vec = base.row_run = 1;
    for (size_t i = 0; i < SMG_COUNT_OF(alone_slices); i++) {
        lane_shape shape = {base.lane_rows, 1, 1, alone_slices[i], 16, 1};
        sched_set_tiles(e, &shape, true, &base);
        if (sched_has_room(e, &base)) SMG_TRY(push(e, &base));
    }
    return SMG_OK;
}

/* Products that read each element of a factor for few results, on cores that hide loads: factors come from where they
 * lie, and many lanes share out the contraction, so that loads are under way everywhere. Neighbouring lanes have
 * neighbouring columns, in runs, or neighbouring elements of the contraction, whichever are neighbours in memory. */
#define FEW_ROWS 16
#define STREAM_AHEAD 16     /* k of a lane that one slice has */
#define STREAM_SUBGROUPS 16 /* of a core */
#define STREAM_LOADS 8   /* of a lane that one slice has of each column, where it goes by groups of 16-bit elements */
#define STREAM_NARROW 32 /* columns of the narrowest block by runs */

/* Cores without a workgroup read nothing: wide blocks only where each core has two of them. Subgroups that go along the
 * contraction wait for each of their slices: of one column each where a core has too few of them otherwise. */
static bool leaves_cores_idle(const enumerator *e, const smg_schedule *s) {
    int64_t lanes = (int64_t)s->lane_cols * s->lane_depth, subgroups = lanes / e->target->subgroup_size;
    double groups = 1, least = s->depth_near ? STREAM_SUBGROUPS / (double)subgroups : 2;
    if (s->depth_near ? s->tile[s->col_axis] <= s->lane_cols : s->tile[s->col_axis] <= STREAM_NARROW) return false;
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t blocks = (e->nominal[a] + s->tile[a] - 1) / s->tile[a];
        if (s->grid & SMG_AXIS_BIT(a)) groups *= (double)blocks;
    }
    return groups < least * (double)e->target->cores;
}

static smg_status push_streamed(enumerator *e, const lane_shape *shape, smg_schedule s) {
    int64_t lanes = (int64_t)shape->cols * shape->depth;
    if (lanes < e->target->subgroup_size || lanes > e->target->max_invocations || lanes > e->target->max_size_x)
        return SMG_OK;
    s.lane_cols = shape->cols;
    s.lane_depth = shape->depth;
    sched_set_tiles(e, shape, false, &s);
    if (leaves_cores_idle(e, &s) || !sched_has_room(e, &s)) return SMG_OK;
    return sched_push(e, s);
}

/* Neighbouring lanes have neighbouring elements of the contraction, in groups of 16 bytes. */
static smg_status add_streamed_along(enumerator *e, smg_schedule base, int rows) {
    int along = smg_sched_largest(e->sums[0], e->nominal), depth = base.subgroup;
    if (along < 0) return SMG_OK; /* products that sum nothing up */
    bool halves = runs_along(e, along, 2);
    int group = halves ? 2 * STREAM_VEC : STREAM_VEC, most = halves ? group * STREAM_LOADS : 2 * STREAM_VEC;
    base.depth_near = true;
    base.vec = 1;
    while (depth > 1 && (int64_t)depth * group > e->nominal[along]) depth /= 2;
    for (int cols = 1; depth > 1 && cols <= 8; cols *= 2)
        for (int registers = 1; registers <= 8; registers *= 2)
            for (int k = 2 * STREAM_VEC; k <= most && k * registers <= STREAM_AHEAD * group; k *= 2) {
                lane_shape shape = {1, cols, rows, registers, depth * k, depth};
                SMG_TRY(push_streamed(e, &shape, base));
            }
    return SMG_OK;
}

static smg_status add_streamed(enumerator *e, smg_schedule base) {
    const smg_target *t = e->target;
    int64_t rows = base.row_axis < 0 ? 1 : e->nominal[base.row_axis], row_registers = 1;
    bool alone = e->roles.contractions > 0 && base.temporal < 0 && base.columns == 0 && base.col_axis >= 0;
    if (!alone || !smg_target_switches_lanes(t) || !smg_target_hides_loads(t) || rows > FEW_ROWS) return SMG_OK;
    while (row_registers < rows) row_registers *= 2;
    base.direct = base.guarded = true;
    base.lane_rows = 1;
    base.vec = runs_along(e, base.col_axis, 2) && t->storage16 ? 2 * STREAM_VEC : STREAM_VEC;
    base.subgroup = subgroup_of(t);
    for (int cols = 32 / base.vec; cols <= 128 / base.vec; cols *= 2)
        for (int depth = 4; cols * depth <= 512; depth *= 2) {
            lane_shape shape = {1, cols, (int)row_registers, base.vec, depth * STREAM_AHEAD, depth};
            SMG_TRY(push_streamed(e, &shape, base));
        }
    return add_streamed_along(e, base, (int)row_registers);
}

/* ---- shapes of products ------------------------------------------------------------------------- */

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

/* A side is no more than twice as long as its axis. */
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
    SMG_TRY(add(e, &shape, base->temporal >= 0, *base));
    if (!chained || shape.row_registers < 4) return SMG_OK;
    smg_schedule whole = *base, sliced = *base;
    sched_set_tiles(e, &shape, true, &whole);
    sched_set_tiles(e, &shape, false, &sliced);
    bool other = memcmp(whole.tile, sliced.tile, sizeof whole.tile) != 0;
    return other ? add(e, &shape, false, *base) : SMG_OK;
}

/* Products of many sums are written out a slice at a time, as far as registers allow: a loop over k around them costs a
 * quarter to a half more, and a driver seconds (bench/NOTES.md). Products side by side share the registers. */
static bool too_deep(const enumerator *e, const smg_schedule *base, const lane_shape *shape, int64_t held) {
    const smg_target *t = e->target;
    int64_t sums = (int64_t)shape->row_registers * shape->col_registers * held;
    if (base->columns == 0) sums *= e->beside;
    int64_t written = sums * (shape->inner / shape->depth);
    if (in_pairs(e, shape)) written /= 2, sums += sums / 2;
    bool loops = smg_target_hides_loads(t) && smg_target_many_sums(t, sums);
    return loops && written > smg_target_most_written(t, sums);
}

/* *io_crowded: with fewer rows slices of so many k had no room; fewer k where that shows now. */
static smg_status add_slices(enumerator *e, const smg_schedule *base, const block_wants *w, lane_shape shape,
                             int *io_crowded) {
    int64_t invocations = (int64_t)shape.rows * shape.cols * shape.depth;
    int64_t columns = (int64_t)shape.cols * shape.col_registers * w->held;
    int64_t sides = (int64_t)shape.rows * shape.row_registers + columns;
    bool few = shape.rows * shape.row_registers < FEW_ROWS || base->columns != 0 || w->results < FEW_RESULTS;
    int64_t least = shape.depth > 1 ? LEAST_STAGED / 2 : LEAST_STAGED, most = few ? MOST_STREAMED : MOST_STAGED;
    int shortest = smg_target_switches_lanes(e->target) ? 8 : 16;
    for (shape.inner = shortest; shape.inner <= 256 && shape.inner < *io_crowded; shape.inner *= 2) {
        int64_t staged = in_pairs(e, &shape) ? sides * shape.inner / 2 : sides * shape.inner;
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
    bool narrow = w->held > 1 && w->rows <= FEW_ROWS;
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
static smg_status add_products_of(enumerator *e, const smg_schedule *base) {
    const smg_target *t = e->target;
    block_wants w = wants_of(e, base);
    int64_t least = 2 * t->subgroup_size > LEAST_LANES ? 2 * t->subgroup_size : LEAST_LANES;
    int64_t most = MOST_SUBGROUPS * t->subgroup_size;
    if (most < MANY_LANES) most = MANY_LANES;
    int narrow = base->columns != 0 ? 4 : 8; /* the fewer lanes a row has, the less its reduction takes */
    for (int64_t lanes = least; lanes <= most && lanes <= t->max_invocations; lanes *= 2) {
        for (int depth = 1; depth <= MOST_DEPTH; depth *= 2) {
            for (int64_t cols = narrow; cols <= 64 && cols * depth <= lanes; cols *= 2) {
                lane_shape shape = {.rows = (int)(lanes / (cols * depth)), .cols = (int)cols, .depth = depth};
                if (shape.rows > 32 || (base->row_axis < 0 && shape.rows > 1)) continue;
                SMG_TRY(add_tiles(e, base, &w, shape));
            }
        }
    }
    return SMG_OK;
}

/* ---- reductions across columns -------------------------------------------------------------------- */

/* What is reduced lies far apart in memory, and an axis that stays side by side: lanes take neighbours of that one, in
 * runs where the core has registers for many loads, and read whole sectors. */
#define ACROSS_LEAST 8  /* columns of a block: one sector */
#define ACROSS_MOST 128 /* more leave few blocks */
#define ACROSS_AHEAD 8  /* elements of one column that a lane loads together */
#define ACROSS_SPREAD 4 /* vector registers side by side, where lanes are the elements of one */

static smg_status push_across(enumerator *e, const lane_shape *shape, smg_schedule s) {
    int64_t lanes = (int64_t)shape->rows * shape->cols, cols = (int64_t)shape->cols * shape->col_registers;
    if (lanes > e->target->max_invocations || lanes > e->target->max_size_x) return SMG_OK;
    if (cols > ACROSS_LEAST && cols >= 2 * e->nominal[s.col_axis]) return SMG_OK;
    if (shape->rows > 1 && (s.row_axis < 0 || shape->rows >= 2 * e->nominal[s.row_axis])) return SMG_OK;
    s.lane_rows = shape->rows;
    s.lane_cols = shape->cols;
    s.lane_depth = 1;
    s.subgroup = lanes % subgroup_of(e->target) == 0 ? subgroup_of(e->target) : 1;
    sched_set_tiles(e, shape, false, &s);
    return sched_has_room(e, &s) ? push(e, &s) : SMG_OK;
}

/* Row lanes share out what is reduced, or have rows of their own. */
static smg_status add_across_rows(enumerator *e, smg_schedule base, int vec, int registers) {
    int row = base.row_axis, least = (int)e->target->subgroup_size;
    bool switches = smg_target_switches_lanes(e->target);
    base.vec = vec;
    base.groups = vec > 1;
    for (int cols = 2; cols * registers <= ACROSS_MOST; cols *= 2) {
        if (cols * registers < ACROSS_LEAST || (!switches && cols != least)) continue;
        for (int lanes = switches ? 4 * least : least; lanes <= (switches ? 1024 : 4 * least); lanes *= 2) {
            lane_shape shape = {lanes / cols, cols, 1, registers, ACROSS_AHEAD, 1};
            if (shape.rows < 1) continue;
            if (row >= 0) SMG_TRY(push_across(e, &shape, base));
            shape.row_registers = ACROSS_AHEAD;
            base.row_axis = base.temporal >= 0 ? base.temporal : smg_sched_largest(base.columns, e->nominal);
            SMG_TRY(push_across(e, &shape, base));
            base.row_axis = row;
        }
    }
    return SMG_OK;
}

static smg_status add_across(enumerator *e, const smg_schedule *base) {
    if (!smg_target_switches_lanes(e->target)) {
        SMG_TRY(add_across_rows(e, *base, 1, 1));
        return add_across_rows(e, *base, 1, ACROSS_SPREAD);
    }
    int run = e->by_fours ? STREAM_VEC : 1;
    return add_across_rows(e, *base, run, run);
}

/* Lanes that rows have no use for lie along columns. */
static lane_shape for_few_rows(const enumerator *e, const smg_schedule *base, lane_shape shape) {
    if (base->row_axis < 0 || base->temporal < 0 || !smg_target_switches_lanes(e->target)) return shape;
    int64_t rows = e->nominal[base->row_axis];
    while (shape.row_registers > 1 && (int64_t)shape.rows * shape.row_registers >= 2 * rows) shape.row_registers /= 2;
    for (; shape.rows > 1 && shape.rows >= 2 * rows; shape.rows /= 2) shape.cols *= 2;
    return shape;
}

static smg_status add_small(enumerator *e, const smg_schedule *base) {
    lane_shape made[SMG_COUNT_OF(small_shapes)];
    for (size_t i = 0; i < SMG_COUNT_OF(small_shapes); i++) {
        bool known = false;
        made[i] = for_few_rows(e, base, small_shapes[i]);
        for (size_t j = 0; j < i; j++) known = known || memcmp(&made[j], &made[i], sizeof made[i]) == 0;
        if (!known) SMG_TRY(add_rows_of(e, base, made[i]));
    }
    return SMG_OK;
}

static smg_status add_shapes(enumerator *e, const smg_schedule *base) {
    if (base->across) return add_across(e, base);
    SMG_TRY(add_direct(e, *base));
    SMG_TRY(add_alone(e, *base));
    SMG_TRY(sched_add_matrices(e, base));
    SMG_TRY(add_streamed(e, *base));
    if (e->roles.contractions > 0) {
        SMG_TRY(add_small(e, base));
        return add_products_of(e, base);
    }
    const lane_shape *shapes = e->roles.reductions > 0 ? row_shapes : map_shapes;
    size_t count = e->roles.reductions > 0 ? SMG_COUNT_OF(row_shapes) : SMG_COUNT_OF(map_shapes);
    for (size_t i = 0; i < count; i++) {
        lane_shape shape = shapes[i];
        if (base->row_axis < 0) shape.rows = shape.row_registers = 1;
        SMG_TRY(add(e, &shape, false, *base));
        /* A slice is loaded as a whole before it is folded: what is under way in between. */
        shape.col_registers *= 2;
        if (base->temporal >= 0 && smg_target_switches_lanes(e->target)) SMG_TRY(add(e, &shape, false, *base));
    }
    return SMG_OK;
}

#define MOST_HELD 65536 /* elements of an axis that a block holds whole: no kernel has room for more */

/* Has every axis that the block holds a static bound? The temporal one is held in slices. */
static bool held_are_static(const enumerator *e, const smg_schedule *base) {
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t extent;
        if (a == base->temporal || !((base->columns | base->held) & ~base->serial & SMG_AXIS_BIT(a))) continue;
        if (!constant(e, a, &extent) || extent > MOST_HELD) return false;
    }
    return true;
}

/* What is reduced over several axes need not hold the others: they are cut as well, around the slices of the one that
 * lies side by side. */
static smg_status add_serial(enumerator *e, smg_schedule base) {
    smg_axis_set cut = base.columns, run = e->run_axis >= 0 ? SMG_AXIS_BIT(e->run_axis) : 0;
    bool reduces = e->roles.contractions == 0 && e->roles.reductions > 0 && base.held == 0;
    if (!reduces || (cut & (cut - 1)) == 0 || e->space->repeat.count > 0) return SMG_OK;
    if (base.temporal != smg_sched_largest(cut & run ? run : cut, e->nominal)) return SMG_OK;
    if (!smg_sched_serial(e->space, cut)) return SMG_OK;
    base.serial = cut & ~SMG_AXIS_BIT(base.temporal);
    return add_shapes(e, &base);
}

/* With the grid fixed: nothing temporal when every held axis is static, else each held axis in turn. */
static smg_status add_temporal(enumerator *e, smg_schedule base) {
    for (int a = -1; a < e->space->axes.count; a++) {
        if (a >= 0 && e->space->repeat.count > 0) break; /* bodies are steps of a loop themselves */
        if (a >= 0 && (!(base.columns & SMG_AXIS_BIT(a)) || a == base.row_axis)) continue;
        base.temporal = a;
        base.one_by_one = smg_sched_one_by_one(&base);
        if (held_are_static(e, &base) && smg_sched_sides(&base)) SMG_TRY(add_shapes(e, &base));
        if (a >= 0) SMG_TRY(add_serial(e, base));
    }
    return SMG_OK;
}

static smg_status add_grid(enumerator *e, int row, int col) {
    smg_schedule base = {.space = e->space, .row_axis = row, .col_axis = col, .temporal = -1, .slots = 1};
    base.linear = e->space->linear;
    base.grid = e->roles.spatial;
    base.anew = e->anew;
    base.inner = e->roles.inner;
    base.columns = e->roles.columns;
    base.held = e->roles.held;
    base.across = col >= 0 && e->roles.contractions == 0 && e->roles.reductions > 0;
    return add_temporal(e, base);
}

/* Where columns are held, they lie over the column lanes; a cut that computes anew is for the sake of its own. */
static int columns_beside_held(const enumerator *e) {
    return smg_sched_largest(e->anew, e->nominal);
}

/* Where no axis of the grid is one of rows, lanes are dealt out to one of a result that the block holds. */
static smg_status add_held_rows(enumerator *e) {
    int before = e->out->items.count;
    int64_t extent;
    smg_axis_set stored = 0;
    for (int i = 0; i < e->space->nodes.count; i++)
        if (e->space->nodes.items[i].output) stored |= e->space->nodes.items[i].result;
    for (int row = e->space->axes.count - 1; row >= 0; row--)
        if ((e->roles.columns & stored & SMG_AXIS_BIT(row)) && constant(e, row, &extent)) SMG_TRY(add_grid(e, row, -1));
    return e->out->items.count > before ? SMG_OK : add_grid(e, -1, -1);
}

static smg_status add_products(enumerator *e) {
    smg_axis_set free_axes = e->roles.spatial;
    bool found = false;
    int unit = smg_sched_unit_axis(e->space, free_axes);
    for (int pass = 0; pass < 2 && !found; pass++) {
        for (int row = e->space->axes.count - 1; row >= -1; row--) {
            if (row >= 0 && !(free_axes & SMG_AXIS_BIT(row))) continue;
            if (row < 0 && found) continue;
            for (int col = -1; col < e->space->axes.count; col++) {
                if (col == row && row >= 0) continue;
                if (col >= 0 && !(free_axes & SMG_AXIS_BIT(col))) continue;
                if (e->roles.columns == 0 && (pass == 0 ? col != unit || unit < 0 : col < 0)) continue;
                if (e->roles.columns != 0 && col != columns_beside_held(e)) continue;
                int before = e->out->items.count;
                SMG_TRY(add_grid(e, row, col));
                found = found || e->out->items.count > before;
            }
        }
    }
    return found ? SMG_OK : add_held_rows(e);
}

static smg_status add_rows(enumerator *e) {
    int row = smg_sched_largest(e->roles.spatial, e->nominal);
    int run = e->run_axis = smg_sched_run_axis(e->space, &e->roles, e->nominal);
    int64_t extent;
    e->by_fours = run >= 0 && constant(e, run, &extent) && extent % STREAM_VEC == 0;
    SMG_TRY(add_grid(e, row, -1));
    if (run < 0 || !(e->roles.spatial & SMG_AXIS_BIT(run))) return SMG_OK;
    return add_grid(e, smg_sched_largest(e->roles.spatial & ~SMG_AXIS_BIT(run), e->nominal), run);
}

static smg_status add_maps(enumerator *e) {
    int col = smg_sched_unit_axis(e->space, e->roles.spatial);
    if (col < 0) col = smg_sched_largest(e->roles.spatial, e->nominal);
    smg_axis_set rest = col >= 0 ? e->roles.spatial & ~SMG_AXIS_BIT(col) : e->roles.spatial;
    return add_grid(e, smg_sched_largest(rest, e->nominal), col);
}

/* All schedules with the roles at hand. */
static smg_status add_all(enumerator *e) {
    if (e->roles.contractions > 0) return add_products(e);
    return e->roles.reductions > 0 ? add_rows(e) : add_maps(e);
}

/* Columns of a product that are cut although its factor is made of rows as a whole: each block makes the factor anew.
 * One such axis at a time, then all of them. */
static smg_status add_anew(enumerator *e) {
    smg_axis_set spatial = e->roles.spatial, anew = smg_slice_anew(e->space);
    for (int a = 0; a <= e->space->axes.count; a++) {
        smg_axis_set cut = a < e->space->axes.count ? anew & SMG_AXIS_BIT(a) : anew;
        if (cut == 0 || (a == e->space->axes.count && (cut & (cut - 1)) == 0)) continue;
        smg_sched_classify(e->space, spatial | cut, &e->roles);
        e->anew = cut;
        SMG_TRY(add_all(e));
    }
    return SMG_OK;
}

smg_status smg_sched_candidates(const smg_space *space, const smg_target *target, const int64_t *nominal,
                                smg_sched_room room, smg_arena *arena, smg_schedules *out_schedules) {
    enumerator e = {
        .space = space, .target = target, .nominal = nominal, .room = room, .arena = arena, .out = out_schedules};
    *out_schedules = (smg_schedules){0};
    if (space->nodes.count > SMG_SPACE_NODES) {
        out_schedules->refused = "too many nodes for one kernel";
        return SMG_OK;
    }
    int products = 0; /* with two factors; sums come behind */
    e.pairs = smg_sched_pairs(space, target);
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ == SMG_CLASS_CONTRACT && n->operand_count > 1) e.sums[products++] = n->iterates & ~n->result;
    }
    e.products = products;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ == SMG_CLASS_CONTRACT && n->operand_count == 1) e.sums[e.products++] = n->iterates & ~n->result;
    }
    for (int i = 0; i < e.products; i++) {
        int beside = 0;
        for (int j = 0; j < products; j++) beside += (e.sums[i] & e.sums[j]) != 0;
        if (beside > e.beside) e.beside = beside;
    }
    smg_sched_classify(space, smg_slice_spatial(space, NULL), &e.roles);
    SMG_TRY(add_all(&e));
    if (e.roles.contractions > 0) SMG_TRY(add_anew(&e));
    if (out_schedules->items.count == 0) {
        out_schedules->refused = "no spatial axis serves as rows of every product, or two held axes have no bound";
    }
    return SMG_OK;
}
