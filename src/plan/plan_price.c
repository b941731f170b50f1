/* The cost model: one walk over a tile program. It counts, per workgroup and multiplied by the open
 * loops, the global elements that pass, the multiply-adds (padded lanes included: they take time too) and the
 * barriers; then seconds = what arithmetic, waits and memory take, as far as one does not hide the other, at the
 * occupancy of the grid, plus the barriers' and the dispatch's own cost. */
#include <math.h>

#include "plan/plan_internal.h"

#define WHOLLY 8.0 /* a norm that takes the larger */

/* What things take, in multiply-adds of the measured rate for each lane. A core that switches between many lanes
 * (fitted to 177 kernels of products and chains of them on one discrete GPU, bench/NOTES.md): shared memory serves a
 * subgroup's reads of the same 16-byte groups together, so a word of a group costs little, a word read alone a whole
 * turn; the step of a loop costs more than its arithmetic. A core whose lanes are the elements of one vector register
 * makes a read that they spread over memory once for each. */
typedef struct unit_costs {
    double product;                 /* one multiply-add of a product */
    double row_word;                /* a word of the left operand */
    double column_word, lone_word;  /* of the right one: from a group of columns, or alone */
    double depth_word;              /* of the right one, from a group along k */
    double view_word;               /* of either, where it lies in memory */
    double map, element;            /* elementwise: a multiply-add's worth of arithmetic, and one element of it */
    double load;                    /* an element that is loaded alone; a quarter where it only fills a tile */
    double stage, put, hop, join;   /* an element staged, put; one exchange between lanes; one sum joined */
    double load_wait, product_wait; /* shares of a global load's latency: of a load, of one step of a product */
    double ahead_wait;              /* of a load that other work overlaps */
    double reduce_wait;             /* seconds that one exchange of a reduction takes, where lanes wait for it */
    double barrier;                 /* share of the measured cost */
    double registers;               /* that the driver's compiler adds: addresses, what it reads ahead */
    double overlap;                 /* norm in which arithmetic, waits and memory add up: 1 not hidden at all, large:
                                       wholly */
} unit_costs;
static const unit_costs switching = {.product = 1.24,
                                     .row_word = 0.02,
                                     .column_word = 0.068,
                                     .lone_word = 4.8,
                                     .depth_word = 2.6,
                                     .view_word = 4.0,
                                     .map = 0.15,
                                     .element = 4.7,
                                     .load = 11.1,
                                     .stage = 4.1,
                                     .put = 0.039,
                                     .hop = 39.0,
                                     .join = 7.7,
                                     .load_wait = 1.97,
                                     .product_wait = 0.000215,
                                     .ahead_wait = 0.0037,
                                     .reduce_wait = 2.55e-8,
                                     .barrier = 0.0058,
                                     .registers = 27.6,
                                     .overlap = 1.6};
static const unit_costs spreading = {.product = 1.0,
                                     .row_word = 20.0,
                                     .column_word = 20.0,
                                     .lone_word = 20.0,
                                     .depth_word = 20.0,
                                     .view_word = 1.0,
                                     .map = 1.0,
                                     .element = 1.0,
                                     .stage = 1.0,
                                     .put = 2.0,
                                     .hop = 4.0,
                                     .join = 12.0,
                                     .load_wait = 1.0,
                                     .product_wait = 0.011,
                                     .ahead_wait = 1.0,
                                     .barrier = 1.0,
                                     .registers = 0.0,
                                     .overlap = WHOLLY};

typedef struct open_loop {
    int axis;
    double trips; /* outside of it */
} open_loop;

typedef struct walk {
    const smg_kernel *k;
    const smg_target *t;
    const unit_costs *cost;
    const int64_t *symbols;
    double trips; /* product of open loops */
    double workgroups;
    double traffic; /* bytes that workgroups ask for */
    double memory;  /* bytes that reach device memory */
    double stored;  /* bytes of results */
    double work;    /* multiply-add slots */
    double flops;   /* useful, x2 */
    double barriers;
    double sums;              /* independent sums that a lane of a product works on */
    double waits;             /* seconds one workgroup waits for loads and shared reads, one after the other */
    const smg_layout *layout; /* of the instruction at hand; NULL where all invocations walk over its elements */
    int loads;                /* of the instruction at hand */
    bool staged;              /* since the last barrier something was staged */
    bool fetched;             /* a first slice was fetched in front of the next loop */
    open_loop loops[16];
    int depth;
} walk;

static double extent_of(const walk *w, int axis) {
    int64_t value = 1;
    if (!smg_size_eval(w->k->sizes, w->k->axes.items[axis].extent, w->symbols, &value)) value = 1;
    return (double)value;
}

static double steps_of(const walk *w, int axis) {
    return ceil(extent_of(w, axis) / (double)w->k->axes.items[axis].tile);
}

/* Neighbouring lanes that read or write less than this side by side leave the rest of what memory moves at once. */
#define WHOLE_RUN 64.0

/* How often more is moved than asked for: a narrow block of lanes cuts runs short. */
static double short_runs(const walk *w, const smg_access *a) {
    smg_size one = smg_size_const(w->k->sizes, 1);
    if (w->layout == NULL || !smg_target_switches_lanes(w->t)) return 1;
    for (int i = 0; i < a->axis_count; i++) {
        if (a->stride[i] != one || !smg_layout_has(w->layout, a->axis[i])) continue;
        double run = (double)smg_type_device_bytes(w->k->buffers.items[a->buffer].type) *
                     (double)smg_layout_neighbours(w->layout, a->axis[i]);
        return run >= WHOLE_RUN ? 1 : pow(WHOLE_RUN / run, 0.75);
    }
    return 1;
}

/* `again`: what is read more than once comes from the core's own cache. Returns the bytes of the whole view. */
static double count_access(walk *w, const smg_access *a, bool again) {
    double tile = 1, whole = 1;
    for (int i = 0; i < a->axis_count; i++) {
        double extent = extent_of(w, a->axis[i]), size = (double)w->k->axes.items[a->axis[i]].tile;
        tile *= size < extent ? size : extent;
        whole *= extent;
    }
    double bytes = (double)smg_type_device_bytes(w->k->buffers.items[a->buffer].type);
    double asked = tile * w->trips * w->workgroups * bytes;
    whole *= bytes;
    if (asked < whole || again) asked = whole;
    double moved = short_runs(w, a);
    w->traffic += asked * moved;
    w->memory += (whole <= 0.5 * (double)w->t->cache_bytes ? whole : asked) * moved;
    return whole;
}

static void count_leaf(void *user, int leaf) {
    walk *w = user;
    const smg_kleaf *f = &w->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_LOAD) count_access(w, &w->k->accesses.items[f->index], false);
}

/* A tile that takes another one's value is the same registers. */
static bool copies(const walk *w, const smg_instr *in) {
    const smg_expr_node *node = smg_expr_get(w->k->exprs, in->expr);
    return smg_target_switches_lanes(w->t) && node->prim == SMG_PRIM_LEAF &&
           w->k->leaves.items[node->leaf].what == SMG_KLEAF_TILE;
}

static void find_load(void *user, int leaf) {
    walk *w = user;
    if (w->k->leaves.items[leaf].what == SMG_KLEAF_LOAD) w->loads++;
}

static int loads_of(walk *w, smg_expr expr) {
    w->loads = 0;
    smg_expr_leaves(w->k->exprs, expr, find_load, w);
    return w->loads;
}

/* Loads of a loop's step are waited for where they are computed with; one that only fills a tile travels on, and by
 * groups. What an elementwise instruction loads takes, in multiply-adds an element. */
static double count_loads(walk *w, const smg_instr *in) {
    bool alone = smg_expr_get(w->k->exprs, in->expr)->prim == SMG_PRIM_LEAF;
    int loads = loads_of(w, in->expr);
    if (w->depth > 0 && loads > 0)
        w->waits += w->trips * w->t->load_latency * (alone ? w->cost->ahead_wait : w->cost->load_wait);
    return w->cost->load * loads * (alone ? 0.25 : 1.0);
}

/* Slots that an elementwise instruction takes, lanes and registers rounded up. */
static double slots(const walk *w, const smg_instr *in) {
    if (w->layout == NULL) return (double)smg_tile_elements(w->k, &w->k->tiles.items[in->dst]);
    return (double)smg_layout_registers(w->layout) * w->k->lanes;
}

static void count_map(walk *w, const smg_instr *in) {
    double elements = slots(w, in), cost = smg_expr_cost(w->k->exprs, in->expr);
    double loads = in->kind == SMG_I_SET || in->kind == SMG_I_REDUCE ? count_loads(w, in) : 0;
    cost = w->layout == NULL ? w->cost->stage * (cost + 3.0)
                             : w->cost->map * cost + (copies(w, in) ? 0 : w->cost->element) + loads;
    w->work += elements * cost * w->trips * w->workgroups;
    w->flops += 2.0 * elements * smg_expr_cost(w->k->exprs, in->expr) * w->trips * w->workgroups;
    smg_expr_leaves(w->k->exprs, in->expr, count_leaf, w);
}

static void count_reduce(walk *w, const smg_instr *in) {
    count_map(w, in);
    double results = (double)smg_tile_registers(w->k, &w->k->tiles.items[in->dst]), exchanges = 0;
    uint32_t mask = smg_layout_local_mask(w->layout, in->axes, in->axis_count);
    if (mask >= (uint32_t)w->k->subgroup) w->barriers += 2.0 * w->trips;
    for (; mask != 0; mask &= mask - 1) exchanges += 1;
    w->waits += w->trips * exchanges * w->cost->reduce_wait;
    w->work += exchanges * w->cost->hop * results * w->k->lanes * w->trips * w->workgroups;
}

/* Lanes of one quarter of a subgroup that read the same bank when each reads a 16-byte group `stride` words on. */
static double bank_conflicts(int64_t stride) {
    int count[8] = {0}, most = 1;
    for (int lane = 0; lane < 8; lane++) {
        int bank = (int)(lane * stride / 4 % 8);
        if (++count[bank] > most) most = count[bank];
    }
    return most;
}

/* What a lane's reads of the right operand cost for one k; bank conflicts take their turns. */
static double column_reads(const walk *w, const smg_tile *tile, int k_axis, double columns) {
    int last = tile->axis[tile->axis_count - 1];
    int64_t row = w->k->axes.items[last].tile + tile->pad, run = 1;
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] != k_axis) run *= smg_layout_run(w->layout, tile->axis[i]);
    if (smg_tile_runs_along(w->k, tile, k_axis)) return columns * w->cost->depth_word * bank_conflicts(row * run);
    return columns * (run % 4 == 0 && row % 4 == 0 ? w->cost->column_word : w->cost->lone_word);
}

/* Sums that vector registers hold beside the factors; more of them pass through memory for every k. */
#define VECTOR_SUMS 16.0

/* What a lane's reads cost for one k, and the bytes that pass where the factors are views of memory. */
static double factor_reads(walk *w, const smg_instr *in, double rows, double columns) {
    const smg_tile *a = &w->k->tiles.items[in->a], *b = &w->k->tiles.items[in->b];
    if (a->residence != SMG_VIEW || b->residence != SMG_VIEW)
        return rows * w->cost->row_word + column_reads(w, b, in->axes[0], columns);
    count_access(w, &w->k->accesses.items[a->access], true);
    count_access(w, &w->k->accesses.items[b->access], true);
    double passing = rows * columns > VECTOR_SUMS ? 3.0 * rows * columns : 0;
    return (rows + columns) * w->cost->view_word + passing;
}

/* A lane multiplies rows x columns of registers for each k, and reads the sum of the two. */
static void count_product(walk *w, const smg_instr *in) {
    const smg_tile *c = &w->k->tiles.items[in->dst];
    double registers = (double)smg_tile_registers(w->k, c);
    double rows = (double)smg_kernel_product_rows(w->k, in), cols = registers / rows;
    double depth = ceil((double)w->k->axes.items[in->axes[0]].tile / (double)smg_kernel_product_lanes(w->k, in));
    double reads = factor_reads(w, in, rows, cols);
    double products = rows * cols;
    w->sums = fmax(w->sums, products);
    w->waits += w->trips * depth * w->t->load_latency * w->cost->product_wait;
    w->work += (products * w->cost->product + reads) * depth * w->k->lanes * w->trips * w->workgroups;
    w->flops += 2.0 * products * depth * w->k->lanes * w->trips * w->workgroups;
}

/* Lanes that reach half of a core's rate, as a share of what it can hold, and the sums that stand for another lane. */
#define HALF_BUSY (1.0 / 120.0)
#define LANE_SUMS 227.0

/* Share of a core's rate that so many lanes reach: each needs others, or independent work of its own, to fill the time
 * that an operation takes. */
static double busy_share(const walk *w, double lanes) {
    double all = (double)w->t->core_lanes, half = all * HALF_BUSY, at_hand = lanes * (1.0 + w->sums / LANE_SUMS);
    return fmin(1.0, at_hand / (at_hand + half) * (all + half) / all);
}

static void begin_loop(walk *w, const smg_instr *in) {
    w->loops[w->depth++] = (open_loop){.axis = in->axes[0], .trips = w->trips};
    w->trips *= steps_of(w, in->axes[0]);
    w->fetched = false;
}

static void end_loop(walk *w) {
    w->trips = w->loops[--w->depth].trips;
}

/* Every sum is written, added up once over the depth lanes, and read back. */
static void count_join(walk *w, const smg_instr *in) {
    const smg_tile *tile = &w->k->tiles.items[in->dst];
    double registers = (double)smg_tile_registers(w->k, tile);
    w->work += w->cost->join * registers * w->k->lanes * w->trips * w->workgroups;
    w->barriers += 3.0 * w->trips * ceil(registers / (double)smg_kernel_join_registers(w->k, tile));
}

/* A fetch in front of its loop is waited for; inside, the product that it overlaps hides it. */
static void count_fetch(walk *w, const smg_instr *in) {
    double latency = w->trips * w->t->load_latency;
    if (w->depth > 0 && w->loops[w->depth - 1].axis == in->a) {
        w->waits += latency * w->cost->ahead_wait;
        count_map(w, in);
        return;
    }
    if (!w->fetched) w->waits += latency * w->cost->load_wait;
    w->fetched = true;
}

static void step(walk *w, const smg_instr *in) {
    w->layout = smg_kernel_layout(w->k, in);
    switch (in->kind) {
    case SMG_I_LOOP: begin_loop(w, in); break;
    case SMG_I_END: end_loop(w); break;
    case SMG_I_BARRIER:
        w->barriers += w->trips;
        if (w->staged) w->waits += w->trips * w->t->load_latency * w->cost->load_wait;
        w->staged = false;
        break;
    case SMG_I_REDUCE: count_reduce(w, in); break;
    case SMG_I_MMA: count_product(w, in); break;
    case SMG_I_SPILL:
    case SMG_I_PUT:
        w->work +=
            w->cost->put * w->trips * w->workgroups * (double)smg_tile_elements(w->k, &w->k->tiles.items[in->dst]);
        break;
    case SMG_I_STORE:
        w->stored += count_access(w, &w->k->accesses.items[in->a], false);
        count_map(w, in);
        break;
    case SMG_I_STAGE:
        w->staged = true;
        count_map(w, in);
        break;
    case SMG_I_FETCH: count_fetch(w, in); break;
    case SMG_I_JOIN: count_join(w, in); break;
    case SMG_I_SET: count_map(w, in); break;
    }
}

static bool fits(const smg_kernel *k, const smg_target *t, smg_price *price, const char **out_refused) {
    price->shared_bytes = smg_kernel_shared_bytes(k);
    price->registers = smg_kernel_registers(k);
    price->operations = smg_kernel_operations(k);
    *out_refused = NULL;
    if (price->shared_bytes > t->shared_bytes) *out_refused = "needs more shared memory than a workgroup has";
    if (price->registers > t->registers_lane) *out_refused = "needs more registers than a lane has";
    if (k->buffers.count + smg_kernel_reports(k) > t->max_bindings)
        *out_refused = "needs more storage buffers than a stage has";
    return *out_refused == NULL;
}

/* Workgroups that share one core, hide each other's waits and keep its memory busy: bounded by lanes, shared memory
 * and registers, to which the driver's compiler adds its own: some for every kernel and about one an instruction. */
static double residents(const smg_kernel *k, const smg_target *t, const smg_price *price, const unit_costs *cost) {
    double lanes = (double)k->lanes;
    double by_lanes = floor((double)t->core_lanes / lanes);
    double by_shared = price->shared_bytes > 0 ? floor((double)t->shared_core / (double)price->shared_bytes) : 8;
    double registers = (double)price->registers + (double)k->code.count + cost->registers;
    double by_registers = floor((double)t->registers_core / (lanes * registers));
    double count = fmin(by_lanes, fmin(by_shared, by_registers));
    return count < 1 ? 1 : count;
}

/* 1 adds up, a large exponent takes the larger. */
static double norm(double a, double b, double exponent) {
    double large = fmax(a, b), small = fmin(a, b);
    return large > 0 ? large * pow(1.0 + pow(small / large, exponent), 1.0 / exponent) : 0;
}

bool plan_price(const smg_kernel *k, const smg_target *t, const int64_t *symbols, smg_price *out_price,
                const char **out_refused) {
    int64_t groups = 1;
    *out_price = (smg_price){0};
    if (!fits(k, t, out_price, out_refused)) return false;
    if (!smg_kernel_grid(k, symbols, &groups)) groups = 1;
    const unit_costs *cost = smg_target_switches_lanes(t) ? &switching : &spreading;
    walk w = {.k = k, .t = t, .cost = cost, .symbols = symbols, .trips = 1, .workgroups = (double)groups};
    for (int i = 0; i < k->code.count; i++) step(&w, &k->code.items[i]);
    double cores = (double)t->cores, waves = ceil(w.workgroups / cores);
    double balance = w.workgroups / (waves * cores); /* share of the cores that work */
    double together = fmin(waves, residents(k, t, out_price, cost));
    double lanes = k->lanes * together;
    double arithmetic = 2.0 * w.work / (t->fma_rate * balance * busy_share(&w, lanes));
    /* Half the cores, half full, saturate memory. */
    double share = fmin(1.0, 2.0 * balance) * fmin(1.0, lanes / (0.5 * (double)t->core_lanes));
    double memory = w.memory / (t->bandwidth * share);
    double cache = w.traffic / (t->cache_bandwidth * share);
    double waits = w.waits * ceil(waves / together);
    /* Lanes that wait leave their core to others, but not wholly. */
    double busy = norm(arithmetic, waits, cost->overlap);
    /* Rows stream through; the steps of a product, parted by barriers, do not keep memory busy throughout. */
    double slow = norm(busy, fmax(memory, cache), w.sums > 0 ? cost->overlap : WHOLLY);
    double barriers = w.barriers * ceil(waves / together) * t->barrier_cost * cost->barrier;
    out_price->seconds = slow + barriers + t->dispatch_cost;
    out_price->bytes = w.memory;
    out_price->stored = w.stored;
    out_price->flops = w.flops;
    out_price->workgroups = w.workgroups;
    return true;
}
