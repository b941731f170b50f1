/* What a tile program makes a core do, by one walk over it. Everything is of one workgroup, multiplied by the open
 * loops; bytes of memory and multiply-adds are of all. A lane's time is counted in slots: one multiply-add each. */
#include <math.h>

#include "plan/plan_internal.h"

#define COUNTED_BUFFERS 64 /* each by itself; of more, each access */
#define COUNTED_AXES 64    /* whose extents are kept */

typedef struct walk {
    const smg_kernel *k;
    const smg_target *t;
    const smg_costs *cost;
    const int64_t *symbols;
    double kept; /* of its axis by a range that memory decides */
    plan_counts *out;
    const smg_layout *layout; /* of the instruction at hand; NULL where all invocations walk over its elements */
    int last;                 /* then the axis that they go along */
    double round;             /* and elements of the walk that they take in a step, side by side */
    double trips;             /* product of open loops */
    double outside[16];
    int axis[16]; /* of the open loops */
    int depth;
    double on_its_way;             /* seconds that fetched slices still take, each time round */
    double hiding;                 /* of these, what products take that are computed meanwhile */
    double between;                /* rounds that hide it */
    bool first;                    /* a first slice was fetched in front of the next loop */
    bool written;                  /* all steps of the innermost loop are */
    int left;                      /* the left factor of the product before, in the loop; -1 */
    double moved[COUNTED_BUFFERS]; /* per buffer: bytes that pass through memory */
    double extent[COUNTED_AXES];   /* by axis, once asked for; 0: not yet */
    smg_size one;
} walk;

static double extent_of(walk *w, int axis) {
    if (axis < COUNTED_AXES && w->extent[axis] > 0) return w->extent[axis];
    int64_t value = 1;
    if (!smg_size_eval(w->k->sizes, w->k->axes.items[axis].extent, w->symbols, &value)) value = 1;
    if (axis < COUNTED_AXES) w->extent[axis] = (double)value;
    return (double)value;
}

static double tile_of(const walk *w, int axis) {
    return (double)w->k->axes.items[axis].tile;
}

/* ---- memory ------------------------------------------------------------------------------------ */

#define SECTOR 32.0 /* the least that a cache moves, and what memory does */
#define MEMORY_RUN 64.0

const plan_runs plan_whole_runs = {PLAN_NEAR_RUN, PLAN_NEAR_RUN};

#define SOON 16.0 /* loads of a lane after which its line is still near the core */

/* Where a core runs one subgroup after the other, what the next one asks for comes late, if this one loops before. */
static bool comes_soon(const walk *w, int axis) {
    if (smg_target_switches_lanes(w->t)) return true;
    double along = (double)smg_layout_registers_along(w->layout, axis);
    return w->depth == 0 && (double)smg_layout_registers(w->layout) <= SOON * along;
}

/* The axis along which a workgroup has most side by side: of a window there are two. -1: none. */
static int unit_axis(walk *w, const smg_access *a) {
    double most = 0;
    int unit = -1;
    for (int i = 0; i < a->axis_count; i++) {
        double tile = plan_lesser(tile_of(w, a->axis[i]), extent_of(w, a->axis[i]));
        if (a->stride[i] != w->one || tile <= most) continue;
        most = tile;
        unit = a->axis[i];
    }
    return unit;
}

/* Lanes as the layout says, or all invocations along the instruction's axes, the last one fastest. */
static plan_runs runs_of(walk *w, const smg_access *a) {
    bool switches = smg_target_switches_lanes(w->t);
    double bytes = (double)smg_type_device_bytes(w->k->buffers.items[a->buffer].type);
    if (a->axis_count == 0 || (w->layout == NULL && !switches)) return plan_whole_runs;
    int axis = unit_axis(w, a);
    if (axis < 0) return (plan_runs){bytes, bytes};
    double tile = plan_lesser(tile_of(w, axis), extent_of(w, axis)), walked = axis == w->last ? w->round : 1;
    double lanes = w->layout != NULL ? (double)smg_layout_neighbours(w->layout, axis) : walked;
    double own = lanes * (double)(w->layout != NULL ? smg_layout_registers_along(w->layout, axis) : 1);
    double group = comes_soon(w, axis) ? tile : plan_lesser(tile, own);
    /* What is left of a line the next step reads, which finds it in the cache. */
    if (switches && w->depth > 0 && w->axis[w->depth - 1] == axis) group = extent_of(w, axis);
    return (plan_runs){bytes * plan_lesser(lanes, tile), bytes * group};
}

#define AT_A_TIME 4.0 /* workgroups of a core, about */

/* What workgroups read that run at the same time passes through memory once for all of them, and so does what each of
 * them reads again, where all that they have fits the cache together. */
void plan_add_bytes(plan_counts *c, const smg_target *t, plan_bytes b) {
    double own = b.tile * b.fresh * b.element, asked = b.tile * b.trips * c->workgroups * b.element;
    double kept = 0.5 * (double)t->cache_bytes, once = asked;
    if (AT_A_TIME * (double)t->cores * own <= kept) once = own * c->workgroups;
    if (asked < b.whole || b.again) asked = b.whole;
    if (once < b.whole || b.again) once = b.whole;
    double rounds = ceil(c->workgroups / (double)t->cores);
    double moved = b.whole <= kept ? b.whole : plan_lesser(once, rounds * b.whole);
    c->traffic += asked * plan_larger(1, SECTOR / b.run.group);
    c->memory += moved * plan_larger(1, plan_lesser(MEMORY_RUN / b.run.group, 4));
    c->afar += b.whole > kept ? moved : 0;
    c->near += b.trips * b.tile * b.element * plan_larger(1, PLAN_NEAR_RUN / b.run.lanes);
}

double plan_split_lines(const smg_target *t, plan_runs run) {
    return smg_target_switches_lanes(t) && run.group < PLAN_NEAR_RUN ? 0.1 : 0;
}

/* Bytes of all of it. */
static double buffer_bytes(const walk *w, int buffer) {
    const smg_kbuffer *b = &w->k->buffers.items[buffer];
    int64_t elements = 0;
    if (!smg_size_eval(w->k->sizes, b->elements, w->symbols, &elements)) return HUGE_VAL;
    return (double)elements * (double)smg_type_device_bytes(b->type);
}

/* A tensor that several instructions read comes from the cache after the first time where the cache keeps it. */
static void count_moved(walk *w, int buffer, double bytes, double all) {
    if (buffer >= COUNTED_BUFFERS) {
        w->out->moved += bytes;
        return;
    }
    double before = w->moved[buffer];
    w->moved[buffer] = all > 0.5 * (double)w->t->cache_bytes ? before + bytes : plan_larger(before, bytes);
    w->out->moved += w->moved[buffer] - before;
}

/* How often a workgroup comes to the same elements again: steps of loops that the access does not move with. */
static double repeats_of(const walk *w, const smg_access *a) {
    double repeats = 1;
    for (int i = 0; i < w->depth && a->index == SMG_EXPR_NONE; i++) {
        if (!smg_access_has(a, w->axis[i]))
            repeats *= (i + 1 < w->depth ? w->outside[i + 1] : w->trips) / w->outside[i];
    }
    return repeats;
}

/* Returns the bytes of the whole view. One that has elements several times, a window, is no more than its tensor. */
static double count_bytes(walk *w, const smg_access *a, plan_runs run, bool again) {
    plan_bytes b = {.tile = 1, .run = run, .trips = w->trips, .fresh = w->trips / repeats_of(w, a), .again = again};
    double before = w->out->memory;
    b.whole = b.element = (double)smg_type_device_bytes(w->k->buffers.items[a->buffer].type);
    for (int i = 0; i < a->axis_count; i++) {
        double extent = extent_of(w, a->axis[i]);
        b.tile *= plan_lesser(extent, tile_of(w, a->axis[i]));
        b.whole *= extent;
    }
    double all = buffer_bytes(w, a->buffer);
    b.whole = plan_lesser(b.whole, all);
    plan_add_bytes(w->out, w->t, b);
    count_moved(w, a->buffer, w->out->memory - before, all);
    if (w->layout != NULL) w->out->memory += plan_split_lines(w->t, run) * (w->out->memory - before);
    return b.whole;
}

typedef struct load_walk {
    walk *w;
    double loads;  /* for each element of a lane: what several of them read is loaded once */
    double moving; /* of these, what other elements come from in each step of the open loops */
    int turns;     /* of loads that wait for each other: an index is there before what it says */
} load_walk;

static load_walk count_loads(walk *w, smg_expr expr);

/* A lane has an index for each of its elements along the axes on which it hangs. Where all invocations walk there is
 * one for each step, which its price has already. */
static int count_index(walk *w, const smg_access *a) {
    double indices = 1;
    for (int i = 0; w->layout != NULL && i < w->layout->axis_count; i++) {
        int axis = w->layout->axes[i].axis;
        if (smg_access_index_moves(w->k, a, axis)) indices *= (double)smg_layout_registers_along(w->layout, axis);
    }
    load_walk l = count_loads(w, a->index);
    double each = smg_expr_cost(w->k->exprs, a->index) + w->cost->load * l.loads + 1;
    if (w->layout != NULL) w->out->slots += w->trips * indices * w->out->lanes * each;
    return l.turns;
}

static bool moves(const walk *w, const smg_access *a) {
    bool found = a->index != SMG_EXPR_NONE || w->depth == 0;
    for (int i = 0; i < w->depth && !found; i++) found = smg_access_has(a, w->axis[i]);
    return found;
}

/* A lane's loads for each of its elements: along axes that the access has not, it reads the same ones. */
static double loads_each(const walk *w, const smg_access *a) {
    double each = 1;
    if (w->layout == NULL || a->index != SMG_EXPR_NONE) return each;
    for (int i = 0; i < w->layout->axis_count; i++) {
        int axis = w->layout->axes[i].axis;
        if (!smg_access_has(a, axis)) each /= (double)smg_layout_registers_along(w->layout, axis);
    }
    return each;
}

static void count_leaf(void *user, int leaf) {
    load_walk *l = user;
    const smg_kleaf *f = &l->w->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD) return;
    const smg_access *a = &l->w->k->accesses.items[f->index];
    int turns = a->index != SMG_EXPR_NONE ? 1 + count_index(l->w, a) : 1;
    count_bytes(l->w, a, runs_of(l->w, a), false);
    if (turns > l->turns) l->turns = turns;
    double each = loads_each(l->w, a);
    l->loads += each;
    if (moves(l->w, a)) l->moving += each;
}

/* The loads of an expression, without those of their indices. */
static load_walk count_loads(walk *w, smg_expr expr) {
    load_walk l = {.w = w};
    if (expr != SMG_EXPR_NONE) smg_expr_leaves(w->k->exprs, expr, count_leaf, &l);
    return l;
}

static void wait_for_loads(walk *w, double share) {
    w->out->wait += w->trips * w->t->load_latency * share;
}

/* ---- elementwise ------------------------------------------------------------------------------- */

/* A tile that takes another one's value is the same registers. */
static bool copies(const walk *w, const smg_instr *in) {
    const smg_expr_node *node = smg_expr_get(w->k->exprs, in->expr);
    return smg_target_switches_lanes(w->t) && node->prim == SMG_PRIM_LEAF &&
           w->k->leaves.items[node->leaf].what == SMG_KLEAF_TILE;
}

/* Of a loop the first step is waited for like a load outside of one; those of the others are on their way by then. */
static double map_wait(const walk *w) {
    double steps = w->depth > 0 ? w->trips / w->outside[w->depth - 1] : 1;
    return (w->cost->load_wait + (steps - 1) * w->cost->step_wait) / steps;
}

static void count_map(walk *w, const smg_instr *in) {
    double elements = (double)smg_layout_registers(w->layout) * w->out->lanes;
    double cost = smg_expr_cost(w->k->exprs, in->expr);
    load_walk l = count_loads(w, in->expr);
    if (l.loads > 0) wait_for_loads(w, l.turns * map_wait(w) + w->cost->next_wait * l.loads * elements / w->out->lanes);
    if (l.moving > 0 && w->depth > 0)
        w->out->turns += w->trips * plan_larger(1, l.moving * elements / w->out->lanes / PLAN_ON_THEIR_WAY);
    double group = in->wide[0].width > 0 ? w->cost->group : 1;
    double element = l.moving > 0 ? plan_lesser(1, l.moving) : 0;
    double each = cost + (element + w->cost->load * l.loads) / group;
    if (l.moving == 0 && !copies(w, in)) each += 1;
    w->out->slots += w->trips * elements * each;
    w->out->flops += 2.0 * w->trips * elements * cost * w->out->workgroups;
}

/* A factor that lanes read by runs, or a right one by whole matrices: along which axis; -1. */
static int stream_axis(const smg_kernel *k, const smg_instr *in) {
    smg_wide run;
    int row;
    if (smg_kernel_loads_runs(k, in, &run)) return run.axis;
    bool right = k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_RIGHT;
    return right && smg_kernel_whole_matrices(k, in, &run, &row) ? run.axis : -1;
}

/* Does a product read the factor beside a left one that is in shared memory? */
static bool is_alone(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_MMA && in->b == tile) return k->tiles.items[in->a].residence == SMG_SHARED;
    }
    return false;
}

/* Elements side by side that lanes of a subgroup have together, whichever registers and lanes these are. */
static double beside_each_other(const smg_layout *l, int axis) {
    uint32_t have = 0;
    for (int level = SMG_LAYOUT_REGISTER; level <= SMG_LAYOUT_LANE; level++)
        for (int i = 0; i < l->bits[level]; i++)
            if (l->basis[level][i].axis == axis) have |= UINT32_C(1) << l->basis[level][i].bit;
    return (double)((have + 1) & ~have);
}

/* Bytes side by side that a subgroup loads at a time: in blocks they are the rows of one. */
static double bytes_at_a_time(const walk *w, const smg_instr *in, const smg_kbuffer *buffer) {
    double row = beside_each_other(w->layout, stream_axis(w->k, in));
    double block = (double)buffer->block[0] * (double)buffer->block[1];
    return (double)smg_type_device_bytes(buffer->type) * plan_larger(row, block);
}

/* A factor that lanes read by runs, each subgroup all that it multiplies. Its loads are on their way together over all
 * that is written out, those of the other factor with them. What several subgroups read a step ahead comes to each of
 * them by a way of its own (measured: bench/NOTES.md). */
static void count_stream(walk *w, const smg_instr *in) {
    const smg_access *a = &w->k->accesses.items[smg_kernel_plain_load(w->k, in->expr)];
    const smg_tile *dst = &w->k->tiles.items[in->dst];
    bool ahead = smg_instr_ahead_axis(w->k, in) >= 0;
    if (ahead && w->depth == 0) return; /* the first slice, which the loop counts */
    double before = w->out->traffic, near = w->out->near, registers = (double)smg_layout_registers(w->layout);
    double element = (double)smg_type_device_bytes(dst->type);
    double bytes = bytes_at_a_time(w, in, &w->k->buffers.items[a->buffer]);
    double asked = w->trips * registers * w->out->lanes * element * plan_larger(1, PLAN_NEAR_RUN / bytes);
    count_bytes(w, a, (plan_runs){bytes, bytes}, false);
    double came = w->out->traffic - before, readers = registers * w->out->lanes / (double)smg_tile_elements(w->k, dst);
    *(ahead ? &w->out->hidden : &w->out->streamed) += came;
    w->out->near = near + asked + (ahead ? w->cost->stream * came * readers / w->out->workgroups : 0);
    w->out->slots += w->trips * registers / SMG_WIDEST * w->out->lanes * w->cost->group_read;
    double together = w->written ? w->trips / w->outside[w->depth - 1] : 1;
    if (dst->fragments == SMG_FRAGMENTS_LEFT || is_alone(w->k, in->dst))
        wait_for_loads(w, w->cost->step_wait / together);
}

static void count_store(walk *w, const smg_instr *in) {
    const smg_access *a = &w->k->accesses.items[in->a];
    count_map(w, in);
    w->out->stored += count_bytes(w, a, runs_of(w, a), false);
}

/* What lanes exchange about some registers each, without shared memory. */
static void count_exchange(walk *w, uint32_t mask, double registers) {
    double exchanges = 0;
    for (; mask != 0; mask &= mask - 1) exchanges += 1;
    w->out->slots += w->trips * exchanges * w->cost->hop * registers * w->out->lanes;
    w->out->wait += w->trips * exchanges * w->t->load_latency * w->cost->near_wait;
}

static void count_reduce(walk *w, const smg_instr *in) {
    smg_exchange e = smg_kernel_exchange(w->k, in);
    count_map(w, in);
    if (!in->apart) count_exchange(w, e.joined, (double)smg_tile_registers(w->k, &w->k->tiles.items[in->dst]));
}

static void count_join(walk *w, const smg_instr *in) {
    smg_exchange e = smg_kernel_exchange(w->k, in);
    count_exchange(w, e.joined, (double)smg_tile_registers(w->k, &w->k->tiles.items[in->dst]));
}

/* Words that lanes of the workgroup leave for each other. */
static void count_words(walk *w, double words, double slots) {
    w->out->slots += w->trips * slots;
    w->out->near += w->trips * words * PLAN_WORD;
}

/* A word read for each part of a register, by every lane; or by the one that folds it. */
static void count_gather(walk *w, const smg_instr *in) {
    smg_exchange e = in->matrices ? (smg_exchange){.part_count = 1} : smg_kernel_exchange(w->k, in);
    double words = in->registers * w->out->lanes, parts = in->folded ? 1 : (double)e.part_count;
    if (in->kind == SMG_I_FOLD) words /= (double)e.part_count;
    count_words(w, words * parts, words * w->cost->hop * log2(2 * parts));
    w->out->wait += w->trips * w->t->load_latency * w->cost->near_wait;
}

/* ---- slices on their way to shared memory -------------------------------------------------------- */

typedef struct group_walk {
    const walk *w;
    int last;
    bool found;
} group_walk;

static void seek_group(void *user, int leaf) {
    group_walk *g = user;
    const smg_kleaf *f = &g->w->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD) return;
    const smg_access *a = &g->w->k->accesses.items[f->index];
    for (int i = 0; i < a->axis_count; i++)
        if (a->axis[i] == g->last && a->stride[i] == g->w->one) g->found = true;
}

/* Elements that one instruction loads: those that lie side by side go together. */
static double group_of(const walk *w, const smg_instr *in) {
    if (in->axis_count == 0) return 1;
    group_walk g = {.w = w, .last = in->axes[in->axis_count - 1]};
    if (w->k->axes.items[g.last].tile % 4 != 0) return 1;
    smg_expr_leaves(w->k->exprs, in->expr, seek_group, &g);
    bool halves = in->kind == SMG_I_FETCH && w->k->matrix.rows == 0 && smg_walk_widest(w->k, in, g.last);
    return !g.found ? 1 : halves ? 2 * w->cost->group : w->cost->group;
}

static void count_walk(walk *w, const smg_instr *in) {
    int64_t elements = smg_tile_elements(w->k, &w->k->tiles.items[in->dst]);
    double group = group_of(w, in), cost = smg_expr_cost(w->k->exprs, in->expr);
    smg_layout dealt = smg_walk_layout(w->k, elements, (int)group);
    double each = (double)smg_layout_registers(&dealt) / group, steps = each * w->out->lanes;
    w->round = (double)smg_layout_span(&dealt, SMG_WALK_AXIS) / each;
    count_loads(w, in->expr);
    w->out->slots += w->trips * steps * (w->cost->walk + w->cost->walk_map * cost * group);
    w->out->flops += 2.0 * w->trips * (double)elements * cost * w->out->workgroups;
}

static double bytes_of(const smg_tile *tile) {
    return (double)smg_type_device_bytes(tile->type);
}

/* A tile that is turned on the way is written element by element, and neighbours meet in the same banks. */
static void count_put(walk *w, const smg_instr *in, double group) {
    const smg_tile *t = &w->k->tiles.items[in->dst];
    double elements = (double)smg_tile_elements(w->k, t);
    bool turned = t->axis_count > 0 && smg_tile_last_axis(t) != in->axes[in->axis_count - 1];
    w->out->slots += w->trips * elements * PLAN_PUT / (turned ? 1 : plan_lesser(group, SMG_WIDE));
    w->out->near += w->trips * elements * bytes_of(t) * (turned ? 2 : 1);
}

static double group_of_fetch(const walk *w, int tile) {
    for (int i = 0; i < w->k->code.count; i++) {
        const smg_instr *in = &w->k->code.items[i];
        if (in->kind == SMG_I_FETCH && in->dst == tile) return group_of(w, in);
    }
    return 1;
}

/* A driver moves no load in front of a store to shared memory: what is staged is waited for, one after another. */
static void count_stage(walk *w, const smg_instr *in) {
    double before = w->out->traffic;
    count_walk(w, in);
    count_put(w, in, group_of(w, in));
    if (w->out->traffic > before) wait_for_loads(w, w->cost->step_wait);
}

/* Does the last turn of the walk leave invocations out? Then it is a branch. */
static bool has_branch(const walk *w, const smg_instr *in) {
    smg_layout dealt = smg_kernel_walk(w->k, in);
    return smg_layout_span(&dealt, SMG_WALK_AXIS) > smg_tile_elements(w->k, &w->k->tiles.items[in->dst]);
}

/* A fetch in front of its loop is the loop's first slice, of which the loop counts the bytes. Inside, the product that
 * it overlaps hides it. Slices of several steps hide it only without a branch: a driver moves no load over one. */
static void count_fetch(walk *w, const smg_instr *in) {
    if (w->depth > 0 && w->axis[w->depth - 1] == in->a) {
        double before = w->out->traffic;
        bool rings = smg_tile_slots(&w->k->tiles.items[in->dst]) > 1;
        count_walk(w, in);
        if (rings && has_branch(w, in)) {
            wait_for_loads(w, w->cost->step_wait);
            return;
        }
        if (rings) w->out->hidden += w->out->traffic - before;
        w->on_its_way = w->t->load_latency * w->cost->step_wait;
        w->between = smg_tile_slots(&w->k->tiles.items[in->dst]);
        return;
    }
    if (!w->first) wait_for_loads(w, w->cost->step_wait);
    w->first = true;
}

static void arrive(walk *w) {
    w->out->ahead += w->trips * w->on_its_way;
    if (w->on_its_way > 0) w->out->hiding += w->trips * plan_lesser(w->hiding, plan_longest_wait(w->t));
    w->on_its_way = w->hiding = 0;
}

/* A product takes so long for what it reads and, alone on its core, for what it computes. */
static void hide(walk *w, double wait, double slots) {
    w->on_its_way = plan_larger(0, w->on_its_way - wait);
    w->hiding += plan_alone(w->t, w->out, slots);
}

/* ---- products ---------------------------------------------------------------------------------- */

/* Turns of shared memory for one read of the right operand by groups along k. */
static double bank_turns(const walk *w, const smg_tile *tile) {
    int64_t strides[SMG_LAYOUT_AXES];
    for (int i = 0; i < w->layout->axis_count; i++) strides[i] = smg_tile_stride(w->k, tile, w->layout->axes[i].axis);
    smg_layout_access group = {.strides = strides, .run = 4, .element_bytes = smg_type_device_bytes(tile->type)};
    return (double)smg_layout_bank_turns(w->layout, &group);
}

/* A lane's reads of one operand: instructions, and turns of shared memory that they take. The lanes of a row read the
 * same place of the left operand. */
typedef struct reads {
    double groups, words, turns;
} reads;

static reads row_reads(const walk *w, const smg_tile *tile, int k_axis, double rows, double depth) {
    bool grouped = smg_tile_runs_along(w->k, tile, k_axis);
    for (int i = 0; i < tile->axis_count; i++) { /* four k of a row, or four rows of one k */
        int axis = tile->axis[i];
        grouped = grouped || (axis != k_axis && smg_layout_own_run(w->layout, axis) % 4 == 0 &&
                              smg_tile_runs_along(w->k, tile, axis));
    }
    return (reads){.groups = grouped ? rows * depth / 4 : 0, .words = grouped ? 0 : rows * depth};
}

static reads column_reads(const walk *w, const smg_tile *tile, int k_axis, double columns, double depth) {
    double groups = columns * depth / 4;
    int64_t row = smg_tile_run(w->k, tile), run = 1;
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] != k_axis) run *= smg_layout_run(w->layout, tile->axis[i]);
    if (smg_tile_runs_along(w->k, tile, k_axis))
        return (reads){.groups = groups, .turns = groups * bank_turns(w, tile)};
    if (run % 4 == 0 && row % 4 == 0) return (reads){.groups = groups, .turns = groups};
    return (reads){.words = columns * depth, .turns = columns * depth};
}

static bool is_held(const walk *w, int tile) {
    return w->k->tiles.items[tile].residence == SMG_REGISTER;
}

/* Slots of one lane for reading what it multiplies. */
static double read_slots(walk *w, const smg_instr *in, double rows, double columns, double depth) {
    const smg_tile *a = &w->k->tiles.items[in->a], *b = &w->k->tiles.items[in->b];
    int k_axis = in->axes[in->axis_count - 1];
    reads left = row_reads(w, a, k_axis, rows, depth), right = column_reads(w, b, k_axis, columns, depth);
    double subgroups = w->out->lanes / (double)w->t->subgroup_size;
    double run = PLAN_NEAR_RUN * bytes_of(b) / PLAN_WORD;
    if (in->terms != 0 && smg_kernel_run_width(w->k, in) == SMG_WIDEST) right.groups /= 2; /* and as many bytes */
    w->out->near += w->trips * right.turns * subgroups * w->cost->column_turns * run;
    double widened = (a->type != SMG_TYPE_F32 ? rows * depth : 0) + (b->type != SMG_TYPE_F32 ? columns * depth : 0);
    if (in->terms > 0) widened = 2 * rows * columns * depth / in->terms; /* and added */
    return (left.groups + right.groups) * w->cost->group_read + (left.words + right.words) * w->cost->word_read +
           widened;
}

/* The same where operands are views of memory; what a lane holds is there. */
static double view_slots(walk *w, const smg_instr *in, double rows, double columns, double depth) {
    bool held = is_held(w, in->a);
    if (!held) count_bytes(w, &w->k->accesses.items[w->k->tiles.items[in->a].access], plan_whole_runs, true);
    count_bytes(w, &w->k->accesses.items[w->k->tiles.items[in->b].access], plan_whole_runs, true);
    if (held) return columns * depth;
    double passing = rows * columns > PLAN_VECTOR_SUMS ? 3.0 * rows * columns : 0;
    /* Groups of eight are one read each; what they consist of is made wider. */
    bool eights = smg_kernel_product_group(w->k, in) == SMG_WIDEST;
    double read = eights ? 1.0 / SMG_WIDEST + 1 : 1;
    return ((rows + columns) * read + passing) * depth;
}

/* Matrices of a factor that all subgroups read before a product needs them. */
static void count_take(walk *w, const smg_instr *in) {
    double elements = (double)smg_tile_registers(w->k, &w->k->tiles.items[in->dst]) * w->out->lanes;
    plan_round round = plan_matrix_reads(w->t, elements);
    w->out->slots += w->trips * round.slots;
    w->out->near += w->trips * round.near;
}

/* A product that reads its left factor from shared memory when one before it in the loop has just done so takes longer
 * than by itself. */
static double beside(walk *w, const smg_instr *in) {
    bool again = in->a == w->left && w->k->tiles.items[in->a].residence == SMG_SHARED;
    w->left = in->a;
    return again ? 1 + w->cost->beside : 1;
}

/* All subgroups' matrices for each step of k. */
static void count_matrices(walk *w, const smg_instr *in) {
    const smg_matrix *m = &w->k->matrix;
    double all = (double)smg_tile_registers(w->k, &w->k->tiles.items[in->dst]) /
                 (double)smg_matrix_elements(m, SMG_FRAGMENTS_SUMS);
    double down = (double)smg_matrix_rows(w->k, in), steps = (double)smg_kernel_product_depth(w->k, in) / m->depth;
    steps = ceil(steps / (double)smg_kernel_product_lanes(w->k, in));
    plan_matrices p = {.rows = m->rows, .cols = m->cols, .depth = m->depth, .down = down, .across = all / down};
    p.rate = plan_matrix_rate(w->t, m->rows, m->cols, m->depth, m->type);
    p.subgroups = w->out->lanes / w->k->subgroup;
    p.left_held = is_held(w, in->a);
    p.right_held = is_held(w, in->b);
    plan_round round = plan_matrix_round(w->t, &p);
    double written = plan_larger(1, (double)in->unroll / m->depth), wait = w->t->load_latency * w->cost->near_wait;
    double slots = steps * round.slots + steps / written * w->cost->round * w->out->lanes;
    wait *= p.left_held && p.right_held ? 0 : steps / written;
    hide(w, w->between * wait, w->between * slots);
    w->out->slots += w->trips * slots;
    w->out->near += w->trips * steps * round.near;
    w->out->wait += w->trips * wait;
    w->out->rounds += w->trips * steps;
    w->out->flops += 2.0 * w->trips * steps * all * p.subgroups * m->rows * m->cols * m->depth * w->out->workgroups;
}

/* Four reads of the right operand are on their way before what they bring is multiplied. */
static void count_view_turns(walk *w, const smg_instr *in, double elements) {
    const smg_access *b = &w->k->accesses.items[w->k->tiles.items[in->b].access];
    double element = (double)smg_type_device_bytes(w->k->buffers.items[b->buffer].type);
    w->out->turns += w->trips * plan_larger(1, elements * element / PLAN_VIEW_ON_ITS_WAY);
    w->out->widened = w->out->widened || element < PLAN_WORD;
}

/* A lane multiplies rows x columns of registers for each k. Between two rounds of what is written out it waits for what
 * it reads, and inside of them, where no other subgroup of its workgroup fills the time. */
static void count_product(walk *w, const smg_instr *in) {
    const smg_tile *c = &w->k->tiles.items[in->dst];
    if (c->fragments) {
        w->out->staged = w->out->matrices = true;
        count_matrices(w, in);
        return;
    }
    double registers = (double)smg_tile_registers(w->k, c);
    double rows = (double)smg_kernel_product_rows(w->k, in), columns = registers / rows;
    double depth = ceil((double)smg_kernel_product_depth(w->k, in) / (double)smg_kernel_product_lanes(w->k, in));
    double written = plan_larger(in->unroll, smg_kernel_product_group(w->k, in)), rounds = ceil(depth / written);
    bool views = w->k->tiles.items[in->b].residence == SMG_VIEW;
    double slots = views ? view_slots(w, in, rows, columns, depth) : read_slots(w, in, rows, columns, depth);
    double product = in->terms > 0 ? 1 / w->t->pair_rate : 1;
    slots = (slots + rows * columns * depth * product + rounds * w->cost->round) * w->out->lanes * beside(w, in);
    double groups = depth / smg_kernel_product_group(w->k, in), alone = plan_share_alone(w->t, w->out->lanes);
    double round = views ? w->cost->view_wait : w->cost->near_wait * alone;
    double wait = w->t->load_latency * (rounds * round + groups * w->cost->read_wait * alone);
    hide(w, wait, slots);
    w->out->staged = w->out->staged || !views;
    if (views) count_view_turns(w, in, columns * depth);
    w->out->slots += w->trips * slots;
    w->out->wait += w->trips * wait;
    w->out->rounds += w->trips * groups;
    w->out->flops += 2.0 * w->trips * rows * columns * depth * w->out->lanes * w->out->workgroups;
}

/* ---- the program ------------------------------------------------------------------------------- */

static void begin_loop(walk *w, const smg_instr *in) {
    arrive(w);
    w->outside[w->depth] = w->trips;
    w->axis[w->depth++] = in->axes[0];
    w->written = in->unroll == 1;
    w->left = -1;
    w->trips *= plan_mean_steps(w->k, w->symbols, w->kept, in);
    w->out->slots += w->trips * w->cost->round * w->out->lanes;
    w->first = false;
}

static void count_spill(walk *w, const smg_instr *in) {
    const smg_tile *t = &w->k->tiles.items[in->dst];
    double elements = (double)smg_tile_elements(w->k, t);
    w->out->slots += w->trips * elements * PLAN_PUT;
    w->out->near += w->trips * elements * bytes_of(t) * 2;
}

static void step(walk *w, const smg_instr *in) {
    w->layout = smg_kernel_layout(w->k, in);
    w->last = -1;
    for (int i = 0; i < in->axis_count; i++)
        if (tile_of(w, in->axes[i]) > 1) w->last = in->axes[i];
    switch (in->kind) {
    case SMG_I_LOOP: begin_loop(w, in); break;
    case SMG_I_END:
        arrive(w);
        w->trips = w->outside[--w->depth];
        w->written = false;
        break;
    case SMG_I_BARRIER:
        *(in->scope == SMG_SCOPE_SUBGROUP ? &w->out->subgroup_barriers : &w->out->barriers) += w->trips;
        break;
    case SMG_I_SET: stream_axis(w->k, in) >= 0 ? count_stream(w, in) : count_map(w, in); break;
    case SMG_I_REDUCE: count_reduce(w, in); break;
    case SMG_I_STORE: count_store(w, in); break;
    case SMG_I_MMA: count_product(w, in); break;
    case SMG_I_JOIN: count_join(w, in); break;
    case SMG_I_LEAVE: count_words(w, in->registers * w->out->lanes, PLAN_JOIN * in->registers * w->out->lanes); break;
    case SMG_I_FOLD:
    case SMG_I_GATHER: count_gather(w, in); break;
    case SMG_I_STAGE: count_stage(w, in); break;
    case SMG_I_FETCH: count_fetch(w, in); break;
    case SMG_I_SPILL: count_spill(w, in); break;
    case SMG_I_TAKE: count_take(w, in); break;
    case SMG_I_PUT:
        arrive(w);
        count_put(w, in, group_of_fetch(w, in->a));
        break;
    }
}

void plan_count(const smg_kernel *k, const smg_target *t, const int64_t *symbols, double kept,
                plan_counts *out_counts) {
    int64_t groups = 1;
    if (!smg_kernel_grid(k, symbols, &groups)) groups = 1;
    *out_counts = (plan_counts){.lanes = k->lanes, .workgroups = (double)groups};
    walk w = {
        .k = k, .t = t, .cost = &t->costs, .symbols = symbols, .kept = kept, .out = out_counts, .trips = 1, .left = -1};
    w.one = smg_size_const(k->sizes, 1);
    out_counts->uneven = plan_find_uneven(k, t, symbols);
    for (int i = 0; i < k->code.count; i++) step(&w, &k->code.items[i]);
}
