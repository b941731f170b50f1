/* A first price of a schedule, from the space and the tile sizes alone: nothing is lowered. It has the terms of
 * plan_count.c (multiply-adds, bytes by how often tiles read them again, near memory, waits, registers) and the rates
 * of plan_price.c, and foresees what lowering makes of a space only roughly: passes, loops that products share, shared
 * tiles that take turns. It decides which schedules are lowered at all, so their order counts, not the seconds. */
#include <limits.h>
#include <math.h>

#include "plan/plan_internal.h"

#define GROUP 4           /* words that lie side by side and are read together */
#define SPARE_REGISTERS 8 /* by which the count may exceed a program's */

/* What some expression loads, or a result that is stored. */
typedef struct rank_access {
    smg_node_id source;
    smg_axis_set axes;
    int unit;    /* the axis along which it lies side by side; -1 */
    double size; /* bytes of an element */
    bool kept;   /* in registers */
    bool again;  /* an earlier value keeps it, too */
} rank_access;

/* What a fold, a factor or a result evaluates for each of its elements. */
typedef struct rank_value {
    smg_axis_set axes; /* that it varies along */
    double cost;       /* multiply-adds */
    int first, loads;  /* in outline->accesses */
    double new_cost;   /* of these what no earlier one computes, too: registers keep it */
    int new_loads;
    int store;      /* of a result, there, too */
    uint64_t folds; /* that it reads */
} rank_value;

/* A reduction or a product. */
typedef struct rank_fold {
    bool product;
    int node;
    smg_axis_set result, folded;
    rank_value value[2]; /* of a product both factors, as operands stand */
    uint64_t live;       /* folds that are needed while this one runs, itself among them */
} rank_fold;

#define RANK_FOLDS 64 /* further ones, and further results, count nothing */
#define RANK_PASSES 4 /* further ones count as the last */

/* What the passes over a temporal axis have: folds and results, by number. */
typedef struct rank_passes {
    int count;
    uint64_t folds[RANK_PASSES], stores[RANK_PASSES];
    uint64_t running; /* folds over the axis: held from before the loop */
} rank_passes;

struct plan_outline {
    const smg_space *space;
    const smg_target *target;
    const plan_costs *cost;
    bool switches, hides;
    int axes;
    int64_t extent[SMG_SPACE_AXES];
    int64_t most[SMG_SPACE_AXES]; /* that an extent can be */
    double share[SMG_SPACE_AXES]; /* of a temporal axis: of its slices, that loops go to */
    SMG_ARRAY(rank_access) accesses;
    int buffers; /* of them, at least */
    SMG_ARRAY(rank_value) stores;
    int fold_count;
    rank_fold fold[RANK_FOLDS];
    int fold_of[SMG_SPACE_NODES]; /* by node; -1 */
    rank_passes straight;         /* no temporal axis */
    rank_passes *along;           /* by temporal axis */
};

static uint64_t bit_of(int i) {
    return UINT64_C(1) << i;
}

/* Takes the lowest axis out of the set. */
static int next_axis(smg_axis_set *io_set) {
    int axis = smg_log2((int64_t)(*io_set & (~*io_set + 1)));
    *io_set &= *io_set - 1;
    return axis;
}

/* ---- the outline of a space ---------------------------------------------------------------------- */

typedef struct tracer {
    plan_outline *o;
    const planner *p;
    smg_arena *arena;
    rank_value *value;
    bool seen[SMG_SPACE_NODES]; /* by node: in this value */
    bool kept[SMG_SPACE_NODES]; /* in an earlier one of registers */
} tracer;

static smg_status add_access(tracer *t, const smg_sview *view, smg_axis_set axes, smg_node_id source) {
    const smg_graph *g = t->o->space->graph;
    smg_size one = smg_size_const(g->sizes, 1);
    rank_access *slot = SMG_ARRAY_PUSH(t->arena, &t->o->accesses);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (rank_access){.source = source,
                          .axes = axes,
                          .unit = -1,
                          .size = (double)smg_type_device_bytes(smg_graph_storage(g, source))};
    for (int i = 0; i < view->axis_count; i++)
        if (view->stride[i] == one) slot->unit = view->axis[i];
    return SMG_OK;
}

static bool same_access(const rank_access *a, const rank_access *b) {
    return a->source == b->source && a->axes == b->axes && a->unit == b->unit;
}

/* Multiply-adds of guards around a value. */
static double layers_cost(const smg_space *space, const smg_slayer *layers, int count) {
    double cost = 0;
    for (int i = 0; i < count; i++) cost += 1 + smg_expr_cost(space->exprs, layers[i].guard);
    return cost;
}

static void add_cost(tracer *t, double cost, bool kept) {
    t->value->cost += cost;
    if (!kept) t->value->new_cost += cost;
}

static smg_status add_load(tracer *t, const smg_sview *view) {
    double cost = layers_cost(t->o->space, view->layer, view->layer_count);
    for (int i = 0; i < view->index_count; i++) cost += smg_expr_cost(t->o->space->exprs, view->index[i].expr);
    add_cost(t, cost, false);
    if (view->source < 0) return SMG_OK;
    const smg_node *source = smg_graph_node(t->o->space->graph, view->source);
    if (smg_node_class(source) == SMG_CLASS_LEAF && smg_op_leaf(source->op) != SMG_LEAF_TENSOR) return SMG_OK;
    t->value->loads++;
    return add_access(t, view, smg_space_view_axes(t->o->space, view), view->source);
}

static smg_status trace(tracer *t, const smg_soperand *operand) {
    int at = operand->producer;
    if (at < 0) return add_load(t, &t->o->space->views.items[operand->view]);
    const smg_snode *n = &t->o->space->nodes.items[at];
    if (t->seen[at]) return SMG_OK;
    t->seen[at] = true;
    if (t->o->fold_of[at] >= 0) {
        t->value->folds |= bit_of(t->o->fold_of[at]);
        return SMG_OK;
    }
    add_cost(t, t->p->map_cost[n->node] + layers_cost(t->o->space, n->layer, n->layer_count), t->kept[at]);
    for (int k = 0; k < n->operand_count; k++) SMG_TRY(trace(t, &n->operand[k]));
    return SMG_OK;
}

static smg_status trace_value(tracer *t, const smg_soperand *operand, smg_axis_set axes, rank_value *out) {
    *out = (rank_value){.axes = axes, .first = t->o->accesses.count};
    t->value = out;
    memset(t->seen, 0, sizeof t->seen);
    return trace(t, operand);
}

/* What registers hold of a value is there for later ones, too. */
static void keep(tracer *t, rank_value *v) {
    for (int i = 0; i < t->o->space->nodes.count; i++) t->kept[i] = t->kept[i] || t->seen[i];
    rank_access *a = t->o->accesses.items;
    for (int i = v->first; i < v->first + v->loads; i++) {
        for (int j = 0; j < i && !a[i].again; j++) a[i].again = a[j].kept && same_access(&a[i], &a[j]);
        a[i].kept = true;
        v->new_loads += !a[i].again;
    }
}

static bool is_fold(const smg_snode *n) {
    bool folds = n->class_ == SMG_CLASS_REDUCE || n->class_ == SMG_CLASS_CONTRACT;
    return folds && !n->streamed && n->iterates != n->result;
}

static smg_status add_fold(tracer *t, int node) {
    plan_outline *o = t->o;
    const smg_snode *n = &o->space->nodes.items[node];
    rank_fold *f = &o->fold[o->fold_count];
    *f = (rank_fold){.product = n->class_ == SMG_CLASS_CONTRACT,
                     .node = node,
                     .result = n->result,
                     .folded = n->iterates & ~n->result};
    for (int k = 0; k < (f->product ? 2 : 1); k++) {
        SMG_TRY(trace_value(t, &n->operand[k], smg_space_operand_axes(o->space, &n->operand[k]), &f->value[k]));
        if (!f->product || f->value[k].folds != 0) keep(t, &f->value[k]);
    }
    o->fold_of[node] = o->fold_count++;
    return SMG_OK;
}

static smg_status add_store(tracer *t, int node) {
    plan_outline *o = t->o;
    const smg_snode *n = &o->space->nodes.items[node];
    smg_soperand self = {.producer = node};
    rank_value *slot = SMG_ARRAY_PUSH(t->arena, &o->stores);
    if (slot == NULL) return SMG_MEMORY;
    SMG_TRY(trace_value(t, &self, n->result, slot));
    keep(t, slot);
    slot->store = o->accesses.count;
    return add_access(t, &o->space->views.items[n->store], n->result, n->node);
}

/* A fold is held from where it is made to the last one that reads it; what is stored, to the end. */
static void mark_live(plan_outline *o) {
    uint64_t later = 0;
    for (int i = 0; i < o->stores.count; i++) later |= o->stores.items[i].folds;
    for (int i = o->fold_count - 1; i >= 0; i--) {
        rank_fold *f = &o->fold[i];
        f->live = later | bit_of(i);
        later = (later & ~bit_of(i)) | f->value[0].folds | f->value[1].folds;
    }
}

/* The pass over the axis in which something that reads these folds is computed. What is folded over the axis itself
 * joins those that it reads: an update is taken for granted. -1: before all passes. */
static int pass_behind(const plan_outline *o, uint64_t folds, const int *pass, smg_axis_set axis, bool joins) {
    int behind = -1;
    for (int i = 0; i < o->fold_count; i++) {
        if (!(folds & bit_of(i))) continue;
        bool runs = (o->fold[i].folded & axis) != 0, varies = (o->fold[i].result & axis) != 0;
        int next = varies || (runs && joins) ? pass[i] : pass[i] + 1;
        if (next > behind) behind = next;
    }
    return behind;
}

/* What varies along the axis is computed anew in each pass that reads it. */
static uint64_t wanted_by(const plan_outline *o, uint64_t folds, smg_axis_set axis) {
    uint64_t wanted = 0;
    for (int i = o->fold_count - 1; i >= 0; i--) {
        const rank_fold *f = &o->fold[i];
        if (!(folds & bit_of(i)) || !(f->result & axis)) continue;
        wanted |= bit_of(i);
        folds |= f->value[0].folds | f->value[1].folds;
    }
    return wanted;
}

static int within_passes(int pass) {
    return pass < 0 ? 0 : pass < RANK_PASSES ? pass : RANK_PASSES - 1;
}

static void plan_passes(const plan_outline *o, smg_axis_set axis, rank_passes *out) {
    int pass[RANK_FOLDS] = {0};
    *out = (rank_passes){.count = 1};
    for (int i = 0; i < o->fold_count; i++) {
        const rank_fold *f = &o->fold[i];
        uint64_t folds = f->value[0].folds | f->value[1].folds;
        bool runs = (f->folded & axis) != 0, varies = (f->result & axis) != 0;
        pass[i] = pass_behind(o, folds, pass, axis, runs);
        if (!runs && !varies && pass[i] > 0) pass[i]--; /* between that pass and the one before */
        if (varies) continue;
        int at = within_passes(pass[i]);
        out->folds[at] |= bit_of(i) | wanted_by(o, folds, axis);
        if (runs) out->running |= bit_of(i);
        if (at + 1 > out->count) out->count = at + 1;
    }
    for (int i = 0; i < o->stores.count && i < RANK_FOLDS; i++) {
        const rank_value *v = &o->stores.items[i];
        int at = out->count - 1;
        if (v->axes & axis) at = within_passes(pass_behind(o, v->folds, pass, axis, false));
        out->stores[at] |= bit_of(i);
        out->folds[at] |= wanted_by(o, v->folds, axis);
        if (at + 1 > out->count) out->count = at + 1;
    }
}

static int count_buffers(const plan_outline *o) {
    int count = 0;
    for (int i = 0; i < o->accesses.count; i++) {
        int first = 0;
        while (o->accesses.items[first].source != o->accesses.items[i].source) first++;
        count += first == i;
    }
    return count;
}

static smg_status fill(tracer *t) {
    plan_outline *o = t->o;
    const smg_space *space = o->space;
    for (int i = 0; i < space->nodes.count; i++) o->fold_of[i] = -1;
    for (int i = 0; i < space->nodes.count; i++)
        if (is_fold(&space->nodes.items[i]) && o->fold_count < RANK_FOLDS) SMG_TRY(add_fold(t, i));
    for (int i = 0; i < space->nodes.count; i++)
        if (space->nodes.items[i].output) SMG_TRY(add_store(t, i));
    o->buffers = count_buffers(o);
    mark_live(o);
    plan_passes(o, 0, &o->straight);
    o->along = SMG_ARENA_ARRAY(t->arena, rank_passes, (size_t)o->axes + 1);
    if (o->along == NULL) return SMG_MEMORY;
    for (int a = 0; a < o->axes; a++) plan_passes(o, SMG_AXIS_BIT(a), &o->along[a]);
    return SMG_OK;
}

smg_status plan_outline_make(const planner *p, const smg_space *space, const int64_t *extents, smg_arena *arena,
                             plan_outline **out_outline) {
    plan_outline *o = SMG_ARENA_NEW(arena, plan_outline);
    tracer t = {.o = o, .p = p, .arena = arena};
    if (o == NULL) return SMG_MEMORY;
    o->space = space;
    o->target = p->target;
    o->cost = plan_costs_of(p->target);
    o->switches = smg_target_switches_lanes(p->target);
    o->hides = smg_target_hides_loads(p->target);
    o->axes = space->axes.count;
    for (int a = 0; a < o->axes; a++) {
        int64_t low;
        o->extent[a] = extents[a];
        o->share[a] = 1;
        smg_size_bounds(p->g->sizes, space->axes.items[a].extent, &low, &o->most[a]);
    }
    *out_outline = o;
    return space->nodes.count <= SMG_SPACE_NODES ? fill(&t) : SMG_OK;
}

void plan_outline_share(plan_outline *o, int axis, double share) {
    o->share[axis] = share;
}

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
    const rank_value *staged[RANK_STAGED]; /* in it */
    int staged_count;
    int64_t ahead; /* registers of slices that are fetched ahead */
    double hiding; /* seconds that its products take in one round */
} slice_loop;

typedef struct guess {
    const plan_outline *o;
    const smg_schedule *s;
    bool counts; /* else what is needed alone */
    int64_t lanes;
    int64_t trips[SMG_SPACE_AXES]; /* of a loop over the axis; 1 on the grid */
    int64_t held[RANK_FOLDS];      /* registers of each fold */
    int64_t registers;
    shared_tile tiles[RANK_TILES];
    int tile_count, loops;
    double join_bytes;
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

static int64_t registers_of(const guess *g, smg_axis_set set) {
    return smg_mul_at_most(row_registers(g, set), column_registers(g, set), SMG_LAYOUT_HUGE);
}

/* How often something over these axes runs. */
static double slices_of(const guess *g, smg_axis_set set) {
    int t = g->s->temporal;
    return t >= 0 && (set & SMG_AXIS_BIT(t)) ? fmax(1, (double)g->trips[t] * g->o->share[t]) : 1;
}

/* The axis along which a factor lies side by side where it is staged from. */
static int unit_of(const guess *g, const rank_value *v) {
    return v->loads > 0 ? g->o->accesses.items[v->first + v->loads - 1].unit : -1;
}

/* A product under a schedule. */
typedef struct block {
    const rank_value *left, *right;
    bool left_held, right_held;       /* computed in the block */
    bool sliced;                      /* in the loop over the temporal axis */
    bool once;                        /* the left factor is the same in all slices */
    bool left_runs, right_runs;       /* in shared memory along k */
    bool row_runs;                    /* the left factor along runs of a lane's rows */
    double trips;                     /* rounds, those of the temporal axis among them */
    int64_t k, depth;                 /* of one round: of a workgroup, of a lane */
    int64_t rows, columns;            /* registers */
    int64_t left_rows, right_columns; /* of the factors' slices */
    int loop;                         /* the axis of its only loop; -1 */
    int over;                         /* the axis of the loop that slices are staged in; -1 */
} block;

static block block_of(const guess *g, const rank_fold *f) {
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
    b.rows = row_registers(g, f->result);
    b.columns = column_registers(g, f->result);
    b.once = s->temporal >= 0 && loops == 0 && !(b.left->axes & SMG_AXIS_BIT(s->temporal));
    b.row_runs = s->row_run > 1 && !b.left_held;
    b.left_runs = b.k % GROUP == 0 && !s->direct && !b.row_runs;
    b.right_runs = b.k % GROUP == 0 && !s->direct && !b.right_held && unit_of(g, b.right) == k_axis && s->vec == 1;
    b.left_rows = elements_over(g, b.left->axes & f->result);
    b.right_columns = elements_over(g, f->result & ~b.left->axes);
    return b;
}

/* runs: along k, else across. */
static void add_tile(guess *g, int64_t across, int64_t k, bool runs, int from, int to) {
    double words =
        runs ? (double)across * (double)(k + SMG_OPERAND_PAD) : (double)(across + SMG_OPERAND_PAD) * (double)k;
    if (g->tile_count == RANK_TILES) return;
    g->tiles[g->tile_count] = (shared_tile){PLAN_WORD * words, from, to, g->tile_count};
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
        bytes[g->tiles[t].memory] = fmax(bytes[g->tiles[t].memory], g->tiles[t].bytes);
    for (int t = 0; t < g->tile_count; t++) sum += bytes[t];
    return sum;
}

/* ---- what it takes ------------------------------------------------------------------------------- */

/* walked: by all invocations, as they come; again: from the core's own cache, but for the first time. */
static void count_bytes(guess *g, const rank_access *a, double trips, bool walked, bool again) {
    const smg_schedule *s = g->s;
    double tile = 1, whole = a->size, side = a->unit >= 0 ? (double)s->tile[a->unit] : 1;
    for (smg_axis_set set = a->axes; set != 0;) {
        int axis = next_axis(&set);
        tile *= fmin((double)g->o->extent[axis], (double)s->tile[axis]);
        whole *= (double)g->o->extent[axis];
    }
    plan_runs run = {PLAN_WORD * side, PLAN_WORD * side};
    if (!walked && a->unit == s->row_axis) run.lanes = PLAN_WORD * fmin(side, s->lane_rows);
    if (a->axes == 0 || again || !g->o->switches) run = plan_whole_runs;
    plan_add_bytes(&g->c, g->o->target, (plan_bytes){tile, whole, a->size, trips, run, again});
}

static void count_loads(guess *g, const rank_value *v, double trips, bool walked, bool again) {
    for (int i = 0; i < v->loads; i++) count_bytes(g, &g->o->accesses.items[v->first + i], trips, walked, again);
}

static void count_elements(guess *g, const rank_value *v, smg_axis_set axes, double trips) {
    const plan_costs *cost = g->o->cost;
    double registers = (double)registers_of(g, axes), maps = g->pass == 0 ? v->new_cost : v->cost;
    int loads = g->pass == 0 ? v->new_loads : v->loads;
    for (int i = v->first; i < v->first + v->loads; i++) {
        const rank_access *a = &g->o->accesses.items[i];
        if (g->pass > 0 || !a->again) count_bytes(g, a, trips, false, false);
    }
    g->c.slots += trips * registers * g->c.lanes * (cost->map * maps + cost->element + cost->load * loads);
    g->c.instructions += 1 + loads;
    if (loads == 0) return;
    double waits = cost->load_wait + (trips - 1) * cost->step_wait + trips * cost->next_wait * loads * registers;
    g->c.wait += g->o->target->load_latency * waits;
}

static void count_exchange(guess *g, double trips, int64_t lanes, double registers) {
    double hops = smg_log2(lanes);
    g->c.slots += trips * hops * g->o->cost->hop * registers * g->c.lanes;
    g->c.wait += trips * hops * g->o->target->load_latency * g->o->cost->near_wait;
}

static void count_reduce(guess *g, const rank_fold *f) {
    smg_axis_set axes = f->result | f->folded;
    int64_t columns = columns_over(g, f->folded), lanes = columns < g->s->lane_cols ? columns : g->s->lane_cols;
    double trips = slices_of(g, axes);
    count_elements(g, &f->value[0], axes, trips);
    if (lanes <= 1) return;
    if (lanes > g->s->subgroup) g->c.barriers += 2 * trips;
    count_exchange(g, trips, lanes, (double)registers_of(g, f->result));
}

static bool same_value(const guess *g, const rank_value *a, const rank_value *b) {
    bool same = a->loads == b->loads && a->axes == b->axes && a->cost == b->cost && a->folds == b->folds;
    for (int i = 0; same && i < a->loads; i++) {
        const rank_access *x = &g->o->accesses.items[a->first + i], *y = &g->o->accesses.items[b->first + i];
        same = same_access(x, y);
    }
    return same;
}

/* Of slices that are fetched ahead only what products do not hide is waited for, and the first. */
static void end_loop(guess *g) {
    double one = g->o->target->load_latency * g->o->cost->step_wait;
    if (g->loop.ahead > 0) {
        bool first = g->loop.axis >= 0 || !g->ahead;
        g->c.wait += (first ? one : 0) + g->loop.trips * fmax(0, one - g->loop.hiding);
        g->ahead = true;
    }
    g->loops++;
    g->loop.axis = -1;
    g->loop.staged_count = 0;
    g->loop.ahead = 0;
    g->loop.trips = g->loop.hiding = 0;
}

static void count_stage(guess *g, const rank_value *v, double elements, double times) {
    const plan_costs *cost = g->o->cost;
    int unit = unit_of(g, v);
    double group = unit >= 0 && g->s->tile[unit] % GROUP == 0 ? cost->group : 1;
    double steps = ceil(elements / group / g->c.lanes) * g->c.lanes;
    count_loads(g, v, times, true, false);
    g->c.slots += times * (steps * (cost->walk + cost->walk_map * v->cost * group) + elements * cost->put / group);
    g->c.near += times * elements * PLAN_WORD;
    g->c.instructions += 2;
}

/* once: not in each round. */
static void stage(guess *g, const rank_value *v, int64_t across, const block *b, bool runs, bool once) {
    slice_loop *loop = &g->loop;
    for (int i = 0; i < loop->staged_count; i++)
        if (same_value(g, loop->staged[i], v)) return;
    if (loop->staged_count < RANK_STAGED) loop->staged[loop->staged_count++] = v;
    /* What is staged once is staged in front of everything, and in a loop needed until its end. */
    add_tile(g, across, b->k, runs, once ? 0 : g->loops, once && b->sliced ? INT_MAX : g->loops);
    int64_t elements = smg_mul_at_most(across, b->k, SMG_LAYOUT_HUGE);
    double times = once ? 1 : b->trips;
    bool ahead = g->s->ahead > 0 && b->over >= 0 && (v->axes & SMG_AXIS_BIT(b->over)) && v->folds == 0;
    if (ahead) loop->ahead += blocks(elements, g->lanes);
    if (!ahead && v->loads > 0) g->c.wait += times * g->o->target->load_latency * g->o->cost->step_wait;
    if (g->counts) count_stage(g, v, (double)elements, times);
}

/* A factor that is computed in the block. */
static void spill(guess *g, const rank_value *v, int64_t across, const block *b, bool runs) {
    double elements = (double)across * (double)b->k;
    add_tile(g, across, b->k, runs, g->loops, g->loops);
    if (!g->counts) return;
    count_elements(g, v, v->axes, b->trips);
    g->c.slots += b->trips * elements * g->o->cost->put;
    g->c.near += b->trips * elements * PLAN_WORD * 2;
}

/* k of a lane between two rounds of what is written out (lower_unroll.c). */
static double written_out(const guess *g, const block *b) {
    double sums = (double)b->rows * (double)b->columns;
    if (!g->o->hides) return g->s->direct ? (double)b->depth : GROUP;
    double most = (double)smg_target_most_written(g->o->target, b->rows * b->columns);
    double half = (double)g->o->target->registers_lane / 2;
    if (g->s->direct) most = fmin(most, floor(half / (double)(b->rows + b->columns)) * sums);
    return fmax(GROUP, fmin((double)b->depth, GROUP * floor(most / (GROUP * sums))));
}

/* Slots of one lane in one round for reading what it multiplies. */
static double factor_slots(guess *g, const block *b, double written) {
    const plan_costs *cost = g->o->cost;
    double left = (double)b->rows * (double)b->depth, right = (double)b->columns * (double)b->depth;
    if (g->s->direct) {
        double sums = (double)b->rows * (double)b->columns;
        return (left + right) * cost->view_read + (sums > PLAN_VECTOR_SUMS ? 3 * sums : 0) * (double)b->depth;
    }
    bool grouped = b->right_runs || (g->s->vec == GROUP && b->right_columns % GROUP == 0);
    double more = written <= GROUP ? cost->exposed : 0;
    double turns = grouped ? right / GROUP : right, subgroups = g->c.lanes / (double)g->o->target->subgroup_size;
    g->c.near += b->trips * turns * subgroups * cost->column_turns * PLAN_NEAR_RUN;
    left *= b->left_runs || b->row_runs ? (cost->group_read + more) / GROUP : cost->word_read + more;
    right *= grouped ? (cost->group_read + more) / GROUP : cost->word_read + more;
    return left + right;
}

static void count_product(guess *g, const block *b) {
    const plan_costs *cost = g->o->cost;
    const smg_target *t = g->o->target;
    double written = written_out(g, b), depth = (double)b->depth, rounds = ceil(depth / written);
    double slots = factor_slots(g, b, written) + (double)b->rows * (double)b->columns * depth * cost->product;
    slots = (slots + rounds * cost->round) * g->c.lanes;
    double each = g->s->direct ? cost->view_wait : cost->near_wait, others = plan_width(t) / g->c.lanes;
    double wait = t->load_latency * (rounds * each + depth / GROUP * cost->read_wait * fmin(1, others));
    g->c.slots += b->trips * slots;
    g->c.wait += b->trips * wait;
    g->c.rounds += b->trips * depth / GROUP;
    g->c.instructions += 2;
    g->loop.hiding += wait + plan_alone(t, &g->c, slots);
}

static void join(guess *g, const block *b) {
    const plan_costs *cost = g->o->cost;
    double sums = (double)b->rows * (double)b->columns, lanes = (double)g->lanes;
    double most = fmax(1, floor(SMG_EXCHANGE_BYTES / (PLAN_WORD * lanes))), times = ceil(sums / most);
    if (g->s->depth_near && g->s->lane_depth <= g->s->subgroup) {
        if (g->counts) count_exchange(g, 1, g->s->lane_depth, sums);
        return;
    }
    g->join_bytes = fmax(g->join_bytes, fmin(sums, most) * PLAN_WORD * lanes);
    g->c.slots += cost->join * sums * lanes;
    g->c.near += 2 * sums * lanes * PLAN_WORD;
    g->c.barriers += 3 * times;
    g->c.wait += 2 * times * g->o->target->load_latency * cost->near_wait;
}

/* In front of a product, and behind it where what it reads is written again: in its own loop, by the next round of the
 * slices, or by a tile that takes turns. Of several in one round each orders the others. */
static double barriers_of(const guess *g, const block *b) {
    return b->loop >= 0 || g->s->reuse || (g->s->temporal >= 0 && g->products == 1) ? 2 : 1;
}

static void guess_product(guess *g, const rank_fold *f) {
    const block b = block_of(g, f);
    bool computed = b.left_held || b.right_held;
    bool shares = b.loop >= 0 && !computed && b.loop == g->loop.axis && b.trips == g->loop.trips;
    if (!shares) end_loop(g);
    g->loop.axis = computed ? -1 : b.loop;
    g->loop.trips = b.trips;
    if (g->s->direct) {
        if (g->counts) count_loads(g, b.left, b.trips, true, true);
        if (g->counts) count_loads(g, b.right, b.trips, true, true);
    } else {
        if (!shares) g->c.barriers += barriers_of(g, &b) * b.trips;
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
    int64_t registers = b.rows * (b.left_runs ? GROUP : 1) + b.columns * (b.right_runs ? GROUP : 1);
    registers += g->loop.ahead;
    uint64_t held = f->live | g->running;
    for (int i = 0; i < g->o->fold_count; i++) registers += held & bit_of(i) ? g->held[i] : 0;
    if (registers > g->registers) g->registers = registers;
}

static void guess_pass(guess *g, uint64_t folds, uint64_t stores) {
    const plan_outline *o = g->o;
    g->products = 0;
    for (int i = 0; i < o->fold_count; i++) g->products += o->fold[i].product && (folds & bit_of(i));
    for (int i = 0; i < o->fold_count; i++) {
        if (!(folds & bit_of(i))) continue;
        if (o->fold[i].product) {
            guess_product(g, &o->fold[i]);
        } else {
            end_loop(g);
            if (g->counts) count_reduce(g, &o->fold[i]);
        }
    }
    end_loop(g);
    for (int t = 0; t < g->tile_count; t++)
        if (g->tiles[t].to == INT_MAX) g->tiles[t].to = g->loops;
    for (int i = 0; i < o->stores.count && g->counts; i++) {
        if (i >= RANK_FOLDS || !(stores & bit_of(i))) continue;
        const rank_value *v = &o->stores.items[i];
        double trips = slices_of(g, v->axes);
        count_elements(g, v, v->axes, trips);
        count_bytes(g, &o->accesses.items[v->store], trips, false, false);
    }
}

/* False where one product alone has no room: nothing else is asked then. */
static bool hold_folds(guess *g) {
    bool room = true;
    for (int i = 0; i < g->o->fold_count; i++) {
        const rank_fold *f = &g->o->fold[i];
        g->held[i] = registers_of(g, f->result);
        room = room && (!f->product || g->held[i] <= g->o->target->registers_lane + SPARE_REGISTERS);
        if (g->held[i] > g->registers && f->product) g->registers = g->held[i];
    }
    return room;
}

static void guess_all(guess *g) {
    const smg_schedule *s = g->s;
    if (!hold_folds(g)) return;
    g->lanes = (int64_t)s->lane_rows * s->lane_cols * s->lane_depth;
    g->c = (plan_counts){.lanes = (double)g->lanes, .workgroups = 1, .instructions = 4};
    g->loop = (slice_loop){.axis = -1};
    for (int a = 0; a < g->o->axes; a++) {
        g->trips[a] = blocks(g->o->extent[a], s->tile[a]);
        if (!(s->grid & SMG_AXIS_BIT(a))) continue;
        g->c.workgroups *= (double)g->trips[a];
        g->trips[a] = 1;
    }
    const rank_passes *passes = s->temporal >= 0 ? &g->o->along[s->temporal] : &g->o->straight;
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

bool plan_may_fit(const plan_outline *o, const smg_schedule *s, const char **out_refused) {
    guess g;
    *out_refused = "needs more storage buffers than a stage has";
    if (o->buffers > o->target->max_bindings) return false;
    g.o = o;
    g.s = s;
    g.counts = false;
    g.registers = g.tile_count = g.loops = 0;
    g.join_bytes = 0;
    g.ahead = false;
    guess_all(&g);
    if (s->reuse) take_turns(&g);
    smg_price needs = {.shared_bytes = (int64_t)shared_of(&g), .registers = g.registers};
    return has_room(&g, &needs, out_refused);
}

double plan_guess(const plan_outline *o, const smg_schedule *s) {
    const char *refused;
    guess g = {.o = o, .s = s, .counts = true};
    guess_all(&g);
    if ((s->reuse && !take_turns(&g)) || (s->ahead > 0 && !g.ahead)) return HUGE_VAL;
    smg_price needs = {.shared_bytes = (int64_t)shared_of(&g), .registers = g.registers};
    if (!has_room(&g, &needs, &refused)) return HUGE_VAL;
    return plan_seconds(o->target, o->cost, &g.c, &needs);
}
