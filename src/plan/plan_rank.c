/* A first price of a schedule, from the space and the tile sizes alone: nothing is lowered. It has the terms of
 * plan_count.c (multiply-adds, bytes by how often tiles read them again, near memory, waits, registers) and the rates
 * of plan_price.c, and foresees what lowering makes of a space only roughly: passes, loops that products share, shared
 * tiles that take turns. It decides which schedules are lowered at all, so their order counts, not the seconds. */
#include <limits.h>
#include <math.h>

#include "plan/plan_outline.h"

#define GROUP 4 /* words that lie side by side and are read together */
#define MOST_IN_PAIRS 32.0
#define IN_PAIRS 16       /* k of a slice that are summed up in pairs of f16 */
#define SPARE_REGISTERS 8 /* by which the count may exceed a program's */

/* ---- one schedule: what it needs ----------------------------------------------------------------- */

/* A tile of shared memory, needed in some stretches of the program: loops are numbered as they come. */
typedef struct shared_tile {
    double bytes;
    int from, to; /* loops */
    int memory;   /* the first tile of those that take turns with it */
} shared_tile;

#define RANK_TILES 32
#define RANK_STAGED 16

/* A loop over slices of factors, which neighbouring products share. */
typedef struct slice_loop {
    int axis; /* -1: none that could be shared */
    double trips;
    const outline_value *staged[RANK_STAGED]; /* in it */
    int staged_count;
    int64_t ahead; /* registers of slices that are fetched ahead */
    double hiding; /* seconds that its products take in one round */
} slice_loop;

/* Registers of a tile with these axes, which were asked for. */
typedef struct known_tile {
    smg_axis_set axes;
    int64_t registers;
} known_tile;

#define RANK_KNOWN 8

typedef struct guess {
    const plan_outline *o;
    const smg_schedule *s;
    bool counts; /* else what is needed alone */
    int64_t lanes;
    int64_t trips[SMG_SPACE_AXES]; /* of a loop over the axis; 1 on the grid */
    double side[SMG_SPACE_AXES];   /* elements of a tile along the axis */
    double around;                 /* trips of loops around that over the temporal axis */
    int64_t rows[OUTLINE_FOLDS];   /* registers of each fold's result along its rows */
    int64_t columns[OUTLINE_FOLDS];
    int64_t held[OUTLINE_FOLDS]; /* the product of both, where they are held at all */
    known_tile known[RANK_KNOWN];
    int known_count;
    int64_t registers;
    int64_t registers_alone; /* of left factors that a lane holds for all slices */
    shared_tile tiles[RANK_TILES];
    int tile_count, loops;
    double join_bytes;
    double repeats; /* steps of the temporal axis, around the product at hand */
    int pass;
    uint64_t running; /* folds that are held all through this pass */
    int products;     /* of this pass */
    bool ahead;       /* some slice is fetched ahead */
    slice_loop loop;
    plan_counts c;
} guess;

static int64_t blocks(int64_t extent, int64_t tile) {
    return (extent + tile - 1) / tile;
}

/* The axis that is the rows of a tile with these axes; -1. */
static int rows_among(const guess *g, smg_axis_set set) {
    const smg_schedule *s = g->s;
    int axis = s->row_axis;
    for (int i = 0; axis >= 0 && !(set & SMG_AXIS_BIT(axis)); i++) axis = s->more_rows[i];
    return axis;
}

/* Elements of a tile with these axes. */
static int64_t elements_over(const guess *g, smg_axis_set set) {
    int64_t product = 1;
    while (set != 0) product = smg_mul_at_most(product, g->s->tile[next_axis(&set)], SMG_LAYOUT_HUGE);
    return product;
}

/* Elements of a tile with these axes along all but the rows. */
static int64_t columns_over(const guess *g, smg_axis_set set) {
    int rows = rows_among(g, set);
    return elements_over(g, rows >= 0 ? set & ~SMG_AXIS_BIT(rows) : set);
}

/* Registers of a tile with these axes: for its rows, for its columns. */
static int64_t row_registers(const guess *g, smg_axis_set set) {
    int rows = rows_among(g, set);
    return rows >= 0 ? blocks(g->s->tile[rows], g->s->lane_rows) : 1;
}

/* A lane takes neighbours in runs, also where other lanes have none then. */
static int64_t column_registers(const guess *g, smg_axis_set set) {
    int64_t columns = columns_over(g, set), run = columns < g->s->vec ? columns : g->s->vec;
    return run * blocks(columns, run * g->s->lane_cols);
}

static int64_t registers_of(guess *g, smg_axis_set set) {
    for (int i = 0; i < g->known_count; i++)
        if (g->known[i].axes == set) return g->known[i].registers;
    int64_t registers = smg_mul_at_most(row_registers(g, set), column_registers(g, set), SMG_LAYOUT_HUGE);
    if (g->known_count < RANK_KNOWN) g->known[g->known_count++] = (known_tile){set, registers};
    return registers;
}

/* How often something over these axes runs. */
static double slices_of(const guess *g, smg_axis_set set) {
    int t = g->s->temporal;
    return t >= 0 && (set & SMG_AXIS_BIT(t)) ? plan_larger(1, (double)g->trips[t] * g->o->share[t] * g->around) : 1;
}

/* The axis along which a factor lies side by side where it is staged from. */
static int unit_of(const guess *g, const outline_value *v) {
    return v->loads > 0 ? g->o->accesses.items[v->first + v->loads - 1].unit : -1;
}

/* A product under a schedule. */
typedef struct block {
    const outline_value *left, *right;
    bool left_held, right_held;       /* computed in the block */
    bool sliced;                      /* in the loop over the temporal axis */
    bool once;                        /* the left factor is the same in all slices */
    bool left_runs, right_runs;       /* in shared memory along k */
    bool row_runs;                    /* the left factor along runs of a lane's rows */
    bool pairs;                       /* in f16, as halves in shared memory */
    bool again;                       /* the product before, in its loop, has read the same left factor there */
    double trips;                     /* rounds, those of the temporal axis among them */
    int64_t k, depth;                 /* of one round: of a workgroup, of a lane */
    int64_t rows, columns;            /* registers */
    int64_t left_rows, right_columns; /* of the factors' slices */
    int loop;                         /* the axis of its only loop; -1 */
    int over;                         /* the axis of the loop that slices are staged in; -1 */
} block;

static block block_of(const guess *g, const outline_fold *f) {
    const smg_schedule *s = g->s;
    int left = s->left[f->node], k_axis = -1, loops = 0;
    block b = {.left = &f->value[left], .right = &f->value[1 - left], .k = 1, .loop = -1, .over = -1};
    b.left_held = b.left->folds != 0;
    b.right_held = b.right->folds != 0;
    b.trips = slices_of(g, f->result | f->folded);
    for (smg_axis_set set = f->folded; set != 0;) {
        int a = next_axis(&set);
        b.k = smg_mul_at_most(b.k, s->tile[a], SMG_LAYOUT_HUGE);
        if (k_axis < 0 || s->tile[a] > 1) k_axis = a;
        if (a == s->temporal || g->o->most[a] <= s->tile[a]) continue;
        b.trips *= (double)g->trips[a];
        b.loop = loops++ == 0 ? a : -1;
        b.over = a;
    }
    b.sliced = s->temporal >= 0 && ((f->result | f->folded) & SMG_AXIS_BIT(s->temporal)) != 0;
    if (loops == 0 && b.sliced) b.over = s->temporal;
    b.depth = blocks(b.k, s->lane_depth);
    b.rows = g->rows[f - g->o->fold];
    b.columns = g->columns[f - g->o->fold];
    b.once = s->temporal >= 0 && loops == 0 && !(b.left->axes & SMG_AXIS_BIT(s->temporal));
    b.row_runs = s->row_run > 1 && !b.left_held && s->matrix == NULL;
    bool staged = !s->direct && !s->alone;
    b.left_runs = b.k % GROUP == 0 && staged && !b.row_runs;
    b.right_runs = b.k % GROUP == 0 && staged && !b.right_held && unit_of(g, b.right) == k_axis && s->vec == 1;
    b.pairs = g->o->pairs && s->matrix == NULL && b.row_runs && !b.right_runs && s->vec >= GROUP &&
              s->lane_depth == 1 && b.k >= IN_PAIRS;
    b.left_rows = elements_over(g, b.left->axes & f->result);
    b.right_columns = elements_over(g, f->result & ~b.left->axes);
    return b;
}

/* Of an element of a factor in shared memory. */
static double factor_bytes(const guess *g, const block *b) {
    return g->s->matrix != NULL || b->pairs ? PLAN_WORD / 2 : PLAN_WORD;
}

/* runs: along k, else across. */
static void add_tile(guess *g, int64_t across, const block *b, bool runs, int from, int to) {
    int64_t k = b->k, pad = g->s->matrix != NULL ? SMG_MATRIX_PAD : SMG_OPERAND_PAD;
    double elements = runs ? (double)across * (double)(k + pad) : (double)(across + pad) * (double)k;
    if (g->tile_count == RANK_TILES) return;
    g->tiles[g->tile_count] = (shared_tile){factor_bytes(g, b) * elements, from, to, g->tile_count};
    g->tile_count++;
}

static bool free_for(const guess *g, int memory, int tile) {
    const shared_tile *t = &g->tiles[tile];
    for (int i = 0; i < tile; i++)
        if (g->tiles[i].memory == memory && g->tiles[i].from <= t->to && t->from <= g->tiles[i].to) return false;
    return true;
}

/* As lower_memory.c does it: a tile takes turns with the first that is needed elsewhere. False where none does. */
static bool take_turns(guess *g) {
    bool any = false;
    for (int t = 0; t < g->tile_count; t++) {
        int first = 0;
        while (first < t && !free_for(g, g->tiles[first].memory, t)) first++;
        if (first == t) continue;
        g->tiles[t].memory = g->tiles[first].memory;
        any = true;
    }
    return any;
}

static double shared_of(const guess *g) {
    double bytes[RANK_TILES] = {0}, sum = g->join_bytes;
    for (int t = 0; t < g->tile_count; t++)
        bytes[g->tiles[t].memory] = plan_larger(bytes[g->tiles[t].memory], g->tiles[t].bytes);
    for (int t = 0; t < g->tile_count; t++) sum += bytes[t];
    return sum;
}

/* ---- what it takes ------------------------------------------------------------------------------- */

/* walked: by all invocations, as they come; again: from the core's own cache, but for the first time. */
static void count_bytes(guess *g, const outline_access *a, double trips, bool walked, bool again) {
    const smg_schedule *s = g->s;
    double tile = 1, side = a->unit >= 0 ? g->side[a->unit] : 1;
    for (smg_axis_set set = a->axes; set != 0;) tile *= g->side[next_axis(&set)];
    plan_runs run = {a->size * side, a->size * side};
    if (!walked && a->unit == s->row_axis) run.lanes = a->size * plan_lesser(side, s->lane_rows);
    if (a->axes == 0 || again || !g->o->switches) run = plan_whole_runs;
    double before = g->c.memory;
    bool moves = g->s->temporal < 0 || (a->axes & SMG_AXIS_BIT(g->s->temporal)) != 0;
    double fresh = moves ? trips : trips / g->repeats;
    plan_add_bytes(&g->c, g->o->target, (plan_bytes){tile, a->whole, a->size, trips, fresh, run, again});
    if (!walked) g->c.memory += plan_split_lines(g->o->target, run) * (g->c.memory - before);
}

static void count_loads(guess *g, const outline_value *v, double trips, bool walked, bool again) {
    for (int i = 0; i < v->loads; i++) count_bytes(g, &g->o->accesses.items[v->first + i], trips, walked, again);
}

static void count_elements(guess *g, const outline_value *v, smg_axis_set axes, double trips) {
    const smg_costs *cost = &g->o->target->costs;
    double registers = (double)registers_of(g, axes), maps = g->pass == 0 ? v->new_cost : v->cost;
    double loads = 0, moving = 0;
    for (int i = v->first; i < v->first + v->loads; i++) {
        const outline_access *a = &g->o->accesses.items[i];
        if (g->pass == 0 && a->again) continue;
        /* What several elements of a lane read is loaded once. */
        double each = (double)registers_of(g, axes & a->axes) / registers;
        count_bytes(g, a, trips, false, false);
        loads += each;
        if (trips <= 1 || (a->axes & SMG_AXIS_BIT(g->s->temporal)) != 0) moving += each;
    }
    double group = g->s->groups && loads > 0 ? cost->group : 1;
    double each = maps + (plan_lesser(1, loads) + cost->load * loads) / group;
    if (loads == 0 || group > 1) each += 1;
    g->c.slots += trips * registers * g->c.lanes * each;
    if (loads == 0) return;
    double waits = cost->load_wait + (trips - 1) * cost->step_wait + trips * cost->next_wait * loads * registers;
    g->c.wait += g->o->target->load_latency * waits;
    if (trips > 1 && moving > 0) g->c.turns += trips * plan_larger(1, moving * registers / PLAN_ON_THEIR_WAY);
}

static void count_exchange(guess *g, double trips, int64_t lanes, double registers) {
    double hops = smg_log2(lanes);
    g->c.slots += trips * hops * g->o->target->costs.hop * registers * g->c.lanes;
    g->c.wait += trips * hops * g->o->target->load_latency * g->o->target->costs.near_wait;
}

static void count_reduce(guess *g, const outline_fold *f) {
    smg_axis_set axes = f->result | f->folded;
    int64_t columns = columns_over(g, f->folded), lanes = columns < g->s->lane_cols ? columns : g->s->lane_cols;
    double trips = slices_of(g, axes);
    count_elements(g, &f->value[0], axes, trips);
    if (lanes <= 1) return;
    bool sliced = g->s->temporal >= 0 && (f->folded & SMG_AXIS_BIT(g->s->temporal)) != 0;
    double joins = sliced && !g->o->joins ? 1 : trips;
    if (lanes > g->s->subgroup) g->c.barriers += 2 * joins;
    count_exchange(g, joins, lanes, (double)registers_of(g, f->result));
}

/* Loads by groups are held until what sums them up has them all: that alone may be too much. */
static void hold_loaded(guess *g, const outline_fold *f) {
    int64_t loaded = registers_of(g, f->result | f->folded);
    bool too_much = f->value[0].loads > 0 && loaded > g->o->target->registers_lane + SPARE_REGISTERS;
    if (too_much && loaded > g->registers) g->registers = loaded;
}

static bool same_value(const guess *g, const outline_value *a, const outline_value *b) {
    bool same = a->loads == b->loads && a->axes == b->axes && a->cost == b->cost && a->folds == b->folds;
    for (int i = 0; same && i < a->loads; i++) {
        const outline_access *x = &g->o->accesses.items[a->first + i], *y = &g->o->accesses.items[b->first + i];
        same = same_access(x, y);
    }
    return same;
}

/* Of slices that are fetched ahead only what products do not hide is waited for, and the first. */
static void end_loop(guess *g) {
    double one = g->o->target->load_latency * g->o->target->costs.step_wait;
    if (g->loop.ahead > 0) {
        bool first = g->loop.axis >= 0 || !g->ahead;
        g->c.wait += first ? one : 0;
        g->c.ahead += g->loop.trips * one;
        double longest = plan_longest_wait(g->o->target);
        g->c.hiding += g->loop.trips * plan_lesser(g->loop.hiding, longest);
        g->ahead = true;
    }
    g->loops++;
    g->loop.axis = -1;
    g->loop.staged_count = 0;
    g->loop.ahead = 0;
    g->loop.trips = g->loop.hiding = 0;
}

/* Does the last turn of loads by all lanes leave some of them out? As wide as a tile of 16 bits keeps together. */
static bool has_branch(const guess *g, const outline_value *v, double elements) {
    int unit = unit_of(g, v);
    double width = unit >= 0 && g->s->tile[unit] % SMG_WIDEST == 0 ? SMG_WIDEST : unit >= 0 ? GROUP : 1;
    return fmod(elements, width * g->c.lanes) != 0;
}

static void count_stage(guess *g, const block *b, const outline_value *v, double elements, double times) {
    const smg_costs *cost = &g->o->target->costs;
    int unit = unit_of(g, v);
    double group = unit >= 0 && g->s->tile[unit] % GROUP == 0 ? cost->group : 1, put = PLAN_PUT / group;
    if (b->pairs && unit >= 0 && g->s->tile[unit] % SMG_WIDEST == 0) group *= 2;
    double steps = ceil(elements / group / g->c.lanes) * g->c.lanes;
    double before = g->c.traffic;
    count_loads(g, v, times, true, false);
    if (g->s->rings > 1 && has_branch(g, v, elements))
        g->c.wait += times * g->o->target->load_latency * cost->step_wait;
    else if (g->s->rings > 1)
        g->c.hidden += g->c.traffic - before;
    g->c.slots += times * (steps * (cost->walk + cost->walk_map * (v->cost - v->index_cost) * group) + elements * put);
    g->c.near += times * elements * factor_bytes(g, b);
}

/* The tile made last has all of its slots. */
static void repeat_tile(guess *g) {
    int slots = g->s->slots > g->s->rings ? g->s->slots : g->s->rings;
    if (slots > 1 && g->tile_count < RANK_TILES) g->tiles[g->tile_count - 1].bytes *= slots;
}

/* Do lanes hold a left factor as matrices take it (lower_forward.c)? */
static bool holds_left(const guess *g) {
    return g->s->matrix_left != NULL && g->s->matrix_cols == 1;
}

static bool is_staged(const guess *g, const outline_value *v) {
    for (int i = 0; i < g->loop.staged_count; i++)
        if (same_value(g, g->loop.staged[i], v)) return true;
    return false;
}

/* once: not in each round. */
static void stage(guess *g, const outline_value *v, int64_t across, const block *b, bool runs, bool once) {
    slice_loop *loop = &g->loop;
    if (is_staged(g, v)) return;
    if (loop->staged_count < RANK_STAGED) loop->staged[loop->staged_count++] = v;
    bool forwarded = once && b->sliced && holds_left(g);
    /* What is staged once is staged in front of everything, and in a loop needed until its end. */
    if (!forwarded) add_tile(g, across, b, runs, once ? 0 : g->loops, once && b->sliced ? INT_MAX : g->loops);
    int64_t elements = smg_mul_at_most(across, b->k, SMG_LAYOUT_HUGE);
    double times = once ? 1 : b->trips;
    bool ahead = g->s->ahead > 0 && b->over >= 0 && (v->axes & SMG_AXIS_BIT(b->over)) && v->folds == 0;
    if (ahead) loop->ahead += blocks(b->pairs ? elements / 2 : elements, g->lanes);
    if (ahead) repeat_tile(g);
    if (!ahead && v->loads > 0) g->c.wait += times * g->o->target->load_latency * g->o->target->costs.step_wait;
    if (g->counts) count_stage(g, b, v, (double)elements, times);
}

/* A factor that is computed in the block. */
static void spill(guess *g, const outline_value *v, int64_t across, const block *b, bool runs) {
    double elements = (double)across * (double)b->k;
    bool forwarded = v == b->left && holds_left(g);
    if (!forwarded) add_tile(g, across, b, runs, g->loops, g->loops);
    if (!forwarded && b->over >= 0) repeat_tile(g);
    if (!g->counts) return;
    count_elements(g, v, v->axes, b->trips);
    if (forwarded) return;
    g->c.slots += b->trips * elements * PLAN_PUT;
    g->c.near += b->trips * elements * factor_bytes(g, b) * 2;
}

/* k of a lane between two rounds of what is written out (lower_unroll.c). */
static double written_out(const guess *g, const block *b) {
    double sums = (double)b->rows * (double)b->columns;
    if (!g->o->hides) return g->s->direct || g->s->alone ? (double)b->depth : GROUP;
    int64_t held = b->pairs ? b->rows * b->columns * 3 / 2 : b->rows * b->columns;
    double most = (double)smg_target_most_written(g->o->target, held) * (b->pairs ? 2 : 1);
    double half = (double)g->o->target->registers_lane / 2;
    if (g->s->direct) most = plan_lesser(most, floor(half / (double)(b->rows + b->columns)) * sums);
    return plan_larger(GROUP, plan_lesser((double)b->depth, GROUP * floor(most / (GROUP * sums))));
}

/* Slots of one lane in one round for reading what it multiplies. */
static double factor_slots(guess *g, const block *b) {
    const smg_costs *cost = &g->o->target->costs;
    double left = (double)b->rows * (double)b->depth, right = (double)b->columns * (double)b->depth;
    if (g->s->alone) return right;
    if (g->s->direct) {
        double sums = (double)b->rows * (double)b->columns;
        return left + right + (sums > PLAN_VECTOR_SUMS ? 3 * sums : 0) * (double)b->depth;
    }
    bool grouped = b->right_runs || (g->s->vec >= GROUP && b->right_columns % GROUP == 0);
    double turns = grouped ? right / GROUP : right, subgroups = g->c.lanes / (double)g->o->target->subgroup_size;
    g->c.near += b->trips * turns * subgroups * cost->column_turns * PLAN_NEAR_RUN * (b->pairs ? 0.5 : 1);
    left *= b->left_runs || b->row_runs ? cost->group_read / GROUP : cost->word_read;
    right *= grouped ? cost->group_read / GROUP : cost->word_read;
    return left + right;
}

static void count_matrices(guess *g, const block *b) {
    const smg_matrix_shape *m = g->s->matrix;
    smg_layout room;
    const smg_layout *sums = smg_sched_sums(g->s, &room);
    plan_matrices p = {
        .rows = m->m, .cols = m->n, .depth = m->k, .rate = m->rate > 0 ? m->rate : g->o->target->fma_rate};
    p.down = (double)b->rows / (double)smg_layout_registers_along(sums, SMG_FRAGMENT_ROW);
    p.across = (double)b->columns / (double)smg_layout_registers_along(sums, SMG_FRAGMENT_COLUMN);
    p.subgroups = (double)(g->s->matrix_rows * g->s->matrix_cols * g->s->lane_depth);
    p.left_held = g->s->streams || (holds_left(g) && (b->left_held || (b->once && b->sliced)));
    p.right_held = g->s->streams;
    plan_round round = plan_matrix_round(g->o->target, &p);
    g->c.matrices = true;
    double steps = (double)blocks(b->k, (int64_t)m->k * g->s->lane_depth);
    g->c.slots += b->trips * steps * round.slots;
    g->c.near += b->trips * steps * round.near;
    g->c.rounds += b->trips * steps;
    if (g->s->rings < 2 && !g->s->streams)
        g->c.wait += b->trips * g->o->target->load_latency * g->o->target->costs.near_wait;
    g->loop.hiding += plan_alone(g->o->target, &g->c, steps * round.slots) * (g->s->rings > 1 ? g->s->rings : 1);
}

static void count_product(guess *g, const block *b) {
    const smg_costs *cost = &g->o->target->costs;
    const smg_target *t = g->o->target;
    bool views = g->s->direct || g->s->alone;
    g->c.staged = g->c.staged || !views;
    if (g->s->matrix != NULL) {
        count_matrices(g, b);
        return;
    }
    double written = written_out(g, b), depth = (double)b->depth, rounds = ceil(depth / written);
    double product = b->pairs ? 1 / t->pair_rate + 2.0 / plan_lesser(MOST_IN_PAIRS, depth) : 1;
    double slots = factor_slots(g, b) + (double)b->rows * (double)b->columns * depth * product;
    slots = (slots + rounds * cost->round) * g->c.lanes * (b->again ? 1 + cost->beside : 1);
    double alone = plan_share_alone(t, g->c.lanes);
    double each = views ? cost->view_wait : cost->near_wait * alone;
    double wait = t->load_latency * (rounds * each + depth / GROUP * cost->read_wait * alone);
    double element = g->o->accesses.items[b->right->first].size;
    if (views) g->c.turns += b->trips * plan_larger(1, (double)b->columns * depth * element / PLAN_VIEW_ON_ITS_WAY);
    g->c.widened = g->c.widened || (views && element < PLAN_WORD);
    g->c.slots += b->trips * slots;
    g->c.wait += b->trips * wait;
    g->c.rounds += b->trips * depth / GROUP;
    g->loop.hiding += wait + plan_alone(t, &g->c, slots);
}

static void join(guess *g, const block *b) {
    const smg_costs *cost = &g->o->target->costs;
    double sums = (double)b->rows * (double)b->columns, lanes = (double)g->lanes;
    int64_t parts = g->s->matrix != NULL ? g->s->lane_depth : 1;
    double most = (double)smg_exchange_turn(g->lanes, parts, (int64_t)sums), times = ceil(sums / most);
    if (g->s->depth_near && g->s->lane_depth <= g->s->subgroup) {
        if (g->counts) count_exchange(g, 1, g->s->lane_depth, sums);
        return;
    }
    g->join_bytes = plan_larger(g->join_bytes, most * PLAN_WORD * lanes);
    g->c.slots += PLAN_JOIN * sums * lanes;
    g->c.near += 2 * sums * lanes * PLAN_WORD;
    g->c.barriers += 3 * times;
    g->c.wait += 2 * times * g->o->target->load_latency * cost->near_wait;
}

/* Opaque sums come by shared memory, in each slice that has new ones. */
static void take_sums(guess *g, const outline_fold *f, const block *b) {
    const smg_costs *cost = &g->o->target->costs;
    double sums = (double)b->rows * (double)b->columns, lanes = (double)g->lanes;
    double bytes = sums * lanes * PLAN_WORD, turns = ceil(bytes / SMG_OPAQUE_BYTES);
    double times = slices_of(g, f->result | f->folded);
    g->join_bytes = plan_larger(g->join_bytes, plan_lesser(bytes, SMG_OPAQUE_BYTES));
    g->c.slots += times * (PLAN_JOIN + cost->hop) * sums * lanes;
    g->c.near += times * 2 * bytes;
    g->c.subgroup_barriers += times * 2 * turns;
    g->c.wait += times * turns * g->o->target->load_latency * cost->near_wait;
}

/* In front of a product, and behind it where what it reads is written again: in its own loop, by the next round of the
 * slices, or by a tile that takes turns. Of several in one round each orders the others. With slots one does for all
 * of them. */
static double barriers_of(const guess *g, const block *b) {
    if (g->s->rings > 1) return 1;
    if (g->s->slots > 1 && b->over >= 0) return b->loop >= 0 || g->products == 0 ? 1 : 1.0 / g->products;
    return b->loop >= 0 || g->s->reuse || (g->s->temporal >= 0 && g->products == 1) ? 2 : 1;
}

/* A workgroup of one subgroup needs no more than its barriers, where the device is asked for whole ones. */
static void add_barriers(guess *g, double count) {
    bool one = g->s->subgroup > 1 && g->lanes == g->s->subgroup && g->o->target->subgroup_selectable;
    *(one ? &g->c.subgroup_barriers : &g->c.barriers) += count;
}

/* Matrices of a lane's sums, down and across. */
static int64_t matrices_along(const guess *g, const block *b, int side) {
    smg_layout room;
    return (side == SMG_FRAGMENT_ROW ? b->rows : b->columns) /
           smg_layout_registers_along(smg_sched_sums(g->s, &room), side);
}

/* Matrices of both factors, one behind each other along k, two elements a register. */
static int64_t factor_registers(const guess *g, const block *b) {
    const smg_matrix_shape *m = g->s->matrix;
    int64_t down = matrices_along(g, b, SMG_FRAGMENT_ROW), across = matrices_along(g, b, SMG_FRAGMENT_COLUMN);
    return blocks((down * m->m + across * m->n) * m->k, INT64_C(2) * g->s->subgroup);
}

/* The factors of a step, and the slice of the left one that is fetched. */
static int64_t beside_registers(const guess *g, const block *b) {
    const smg_matrix_shape *m = g->s->matrix;
    int64_t down = matrices_along(g, b, SMG_FRAGMENT_ROW), across = matrices_along(g, b, SMG_FRAGMENT_COLUMN);
    int64_t rights = g->products * across * m->n;
    return blocks((down * m->m + rights) * b->k, INT64_C(2) * g->s->subgroup) + (g->loop.ahead + 1) / 2;
}

/* And slices that are fetched. */
static int64_t ring_registers(const guess *g, const block *b) {
    return g->s->rings * (factor_registers(g, b) + (g->loop.ahead + 1) / 2);
}

/* A factor that lanes read by runs, as plan_count.c counts it; elements: of a step of k, of each subgroup that reads
 * them. */
static void stream(guess *g, const block *b, const outline_value *v, int64_t elements, int readers, bool ahead) {
    const smg_schedule *s = g->s;
    double before = g->c.traffic, near = g->c.near, all = b->trips * (double)(elements * readers) * (double)b->k;
    int run =
        smg_layout_in_runs(s->matrix_left, SMG_FRAGMENT_COLUMN, s->matrix_right, SMG_FRAGMENT_ROW, SMG_WIDEST).run;
    count_loads(g, v, b->trips, true, false);
    double came = g->c.traffic - before;
    *(ahead ? &g->c.hidden : &g->c.streamed) += came;
    g->c.near = near + all * plan_larger(factor_bytes(g, b), PLAN_NEAR_RUN / (double)(1 << run)) +
                (ahead ? g->o->target->costs.stream * came * readers / g->c.workgroups : 0);
    g->c.slots += all / SMG_WIDEST * g->o->target->costs.group_read;
}

/* Left factors are staged and taken, right ones read by runs a step before they are multiplied. */
static void guess_beside(guess *g, const block *b, bool shares) {
    if (!shares) {
        add_barriers(g, b->trips);
        stage(g, b->left, b->left_rows, b, true, false);
    }
    if (!g->counts) return;
    stream(g, b, b->right, b->right_columns, g->s->matrix_rows, true);
    if (shares) return;
    plan_round round = plan_matrix_reads(g->o->target, (double)(b->left_rows * g->s->matrix_cols) * (double)b->k);
    g->c.slots += b->trips * round.slots;
    g->c.near += b->trips * round.near;
}

static void guess_streams(guess *g, const block *b) {
    bool once = g->s->space->repeat.slice_count == 0;
    double steps = b->trips <= (once ? SMG_STREAM_STEPS_ONCE : SMG_STREAM_STEPS) ? 1 : b->trips;
    if (once) stream(g, b, b->left, b->left_rows, g->s->matrix_cols, false);
    stream(g, b, b->right, b->right_columns, g->s->matrix_rows, false);
    g->c.wait += steps * g->o->target->load_latency * g->o->target->costs.step_wait;
}

/* Where each lane has its rows alone: what it computes, or loads, once or in each round. */
static void hold_left(guess *g, const block *b) {
    smg_axis_set axes = b->left->axes;
    g->registers_alone += b->once ? registers_of(g, axes) : 0;
    if (g->counts) count_elements(g, b->left, axes, b->once ? 1 : b->trips);
}

static void guess_product(guess *g, const outline_fold *f) {
    block b = block_of(g, f);
    g->repeats =
        b.sliced ? plan_larger(1, (double)g->trips[g->s->temporal] * g->o->share[g->s->temporal] * g->around) : 1;
    bool computed = b.left_held || b.right_held;
    bool shares = b.loop >= 0 && !computed && b.loop == g->loop.axis && b.trips == g->loop.trips;
    if (!shares) end_loop(g);
    b.again = shares && g->s->rings < 2 && is_staged(g, b.left);
    g->loop.axis = computed ? -1 : b.loop;
    g->loop.trips = b.trips;
    if (g->s->direct) {
        if (g->counts) count_loads(g, b.left, b.trips, true, true);
        if (g->counts) count_loads(g, b.right, b.trips, true, true);
    } else if (g->s->streams && g->s->rings > 1) {
        guess_beside(g, &b, shares);
    } else if (g->s->streams) {
        if (g->counts) guess_streams(g, &b);
    } else if (g->s->alone) {
        hold_left(g, &b);
        if (g->counts) count_loads(g, b.right, b.trips, true, true);
    } else {
        if (!shares) add_barriers(g, barriers_of(g, &b) * b.trips);
        if (b.left_held)
            spill(g, b.left, b.left_rows, &b, true);
        else
            stage(g, b.left, b.left_rows, &b, !b.row_runs, b.once);
        if (b.right_held)
            spill(g, b.right, b.right_columns, &b, false);
        else
            stage(g, b.right, b.right_columns, &b, b.right_runs, false);
    }
    if (g->counts) count_product(g, &b);
    if (g->s->lane_depth > 1) join(g, &b);
    if (g->s->matrix != NULL && g->s->matrix_sums == NULL) take_sums(g, f, &b);
    int64_t registers = b.rows * (b.left_runs ? GROUP : 1) + b.columns * (b.right_runs ? GROUP : 1);
    if (g->s->matrix != NULL) registers = (b.rows * g->s->matrix->k + GROUP) / GROUP;
    if (b.pairs) registers = (b.rows + b.columns + b.rows * b.columns) / 2;
    registers += g->s->matrix != NULL ? (g->loop.ahead + 1) / 2 : g->loop.ahead;
    if (g->s->rings > 1) registers = ring_registers(g, &b);
    if (g->s->streams && g->s->rings > 1)
        registers = beside_registers(g, &b);
    else if (g->s->streams)
        registers = factor_registers(g, &b) * blocks(b.depth, g->s->matrix->k);
    uint64_t held = f->live | g->running;
    for (int i = 0; i < g->o->fold_count; i++) registers += held & bit_of(i) ? g->held[i] : 0;
    registers += g->registers_alone;
    if (registers > g->registers) g->registers = registers;
    g->repeats = 1;
}

static void guess_pass(guess *g, uint64_t folds, uint64_t stores) {
    const plan_outline *o = g->o;
    g->products = 0;
    for (int i = 0; i < o->fold_count; i++) g->products += o->fold[i].product && (folds & bit_of(i));
    for (int i = 0; i < o->fold_count; i++) {
        if (!(folds & bit_of(i))) continue;
        if (o->fold[i].product) {
            guess_product(g, &o->fold[i]);
            if (!g->counts && g->registers > o->target->registers_lane + SPARE_REGISTERS) return; /* never fewer */
        } else {
            end_loop(g);
            hold_loaded(g, &o->fold[i]);
            if (g->counts) count_reduce(g, &o->fold[i]);
        }
    }
    end_loop(g);
    for (int t = 0; t < g->tile_count; t++)
        if (g->tiles[t].to == INT_MAX) g->tiles[t].to = g->loops;
    for (int i = 0; i < o->stores.count && g->counts; i++) {
        if (i >= OUTLINE_FOLDS || !(stores & bit_of(i))) continue;
        const outline_value *v = &o->stores.items[i];
        double trips = slices_of(g, v->axes);
        count_elements(g, v, v->axes, trips);
        count_bytes(g, &o->accesses.items[v->store], trips, false, false);
    }
}

/* False where one product alone has no room: nothing else is asked then. */
static bool hold_folds(guess *g) {
    bool room = true;
    int64_t all[OUTLINE_FOLDS];
    for (int i = 0; i < g->o->fold_count; i++) {
        const outline_fold *f = &g->o->fold[i];
        bool alike = f->alike < i;
        g->rows[i] = alike ? g->rows[f->alike] : row_registers(g, f->result);
        g->columns[i] = alike ? g->columns[f->alike] : column_registers(g, f->result);
        g->held[i] = all[i] = alike ? all[f->alike] : smg_mul_at_most(g->rows[i], g->columns[i], SMG_LAYOUT_HUGE);
        room = room && (!f->product || g->held[i] <= g->o->target->registers_lane + SPARE_REGISTERS);
        if (g->held[i] > g->registers && f->product) g->registers = g->held[i];
        if (f->sum >= 0 && g->s->temporal < 0) g->held[i] = 0;
    }
    return room;
}

static void guess_all(guess *g) {
    const smg_schedule *s = g->s;
    if (!hold_folds(g)) return;
    g->lanes = (int64_t)s->lane_rows * s->lane_cols * s->lane_depth;
    g->c = (plan_counts){.lanes = (double)g->lanes, .workgroups = 1};
    if (s->temporal >= 0) g->c.uneven = g->o->uneven;
    g->loop = (slice_loop){.axis = -1};
    for (int a = 0; a < g->o->axes; a++) {
        g->trips[a] = blocks(g->o->extent[a], s->tile[a]);
        g->side[a] = plan_lesser((double)g->o->extent[a], (double)s->tile[a]);
        if (!(s->grid & SMG_AXIS_BIT(a))) continue;
        g->c.workgroups *= (double)g->trips[a];
        g->trips[a] = 1;
    }
    g->around = 1;
    for (smg_axis_set serial = s->serial; serial != 0;) g->around *= (double)g->trips[next_axis(&serial)];
    const outline_passes *passes = s->temporal >= 0 ? &g->o->along[s->temporal] : &g->o->straight;
    for (g->pass = 0; g->pass < passes->count; g->pass++) {
        g->running = passes->running & passes->folds[g->pass];
        guess_pass(g, passes->folds[g->pass], passes->stores[g->pass]);
    }
}

static bool has_room(const guess *g, smg_price *needs, const char **out_refused) {
    smg_price least = *needs;
    least.registers -= SPARE_REGISTERS;
    return plan_has_room(g->o->target, &least, out_refused);
}

/* The rest is large, and made before it is read. */
static void begin(guess *g, const plan_outline *o, const smg_schedule *s, bool counts) {
    g->o = o;
    g->s = s;
    g->counts = counts;
    g->registers = g->registers_alone = g->tile_count = g->loops = g->known_count = 0;
    g->join_bytes = 0;
    g->repeats = 1;
    g->ahead = false;
}

bool plan_may_fit(const plan_outline *o, const smg_schedule *s, const char **out_refused) {
    guess g;
    *out_refused = "needs more storage buffers than a stage has";
    if (o->buffers > o->target->max_bindings) return false;
    begin(&g, o, s, false);
    guess_all(&g);
    if (s->reuse) take_turns(&g);
    smg_price needs = {.shared_bytes = (int64_t)shared_of(&g), .registers = g.registers};
    return has_room(&g, &needs, out_refused);
}

double plan_guess(const plan_outline *o, const smg_schedule *s) {
    const char *refused;
    guess g;
    begin(&g, o, s, true);
    guess_all(&g);
    if ((s->reuse && !take_turns(&g)) || (s->ahead > 0 && !g.ahead)) return HUGE_VAL;
    smg_price needs = {.shared_bytes = (int64_t)shared_of(&g), .registers = g.registers};
    if (!has_room(&g, &needs, &refused)) return HUGE_VAL;
    return plan_seconds(o->target, &g.c, &needs);
}
