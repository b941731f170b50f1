/* Enumeration. Three shapes of block cover everything: plain maps, rows with reductions, and tiles with
 * contractions. They differ in which lane grids and tile sizes are worth trying, not in how they are lowered. */
#include "sched/sched_internal.h"

static const lane_shape row_shapes[] = {
    {1, 512, 1, 8, 1, 1}, {1, 256, 1, 8, 1, 1}, {1, 128, 1, 8, 1, 1}, {1, 64, 1, 8, 1, 1}, {4, 64, 1, 8, 1, 1},
    {4, 32, 1, 8, 1, 1},  {8, 32, 1, 8, 1, 1},  {8, 16, 1, 8, 1, 1},  {16, 8, 1, 8, 1, 1}, {64, 4, 1, 8, 1, 1},
};
static const lane_shape map_shapes[] = {
    {1, 256, 1, 4, 1, 1}, {4, 64, 4, 1, 1, 1}, {8, 32, 4, 1, 1, 1}, {16, 8, 4, 1, 1, 1}};

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
    s.subgroup = lanes % sched_subgroup(e->target) == 0 ? sched_subgroup(e->target) : 1;
    sched_set_tiles(e, shape, false, &s);
    return sched_has_room(e, &s) ? sched_list(e, &s) : SMG_OK;
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
    int run = e->by_fours ? SCHED_LOAD : 1;
    return add_across_rows(e, *base, run, run);
}

/* Where lanes have what lies side by side as a whole, a slice of another axis is a few elements of each. */
static const int short_slices[] = {16, 8, 4};

static smg_status add_short_slices(enumerator *e, lane_shape shape, const smg_schedule *base) {
    int temporal = base->temporal, run = e->run_axis;
    if (temporal < 0 || run < 0 || temporal == run || !(base->columns & SMG_AXIS_BIT(run))) return SMG_OK;
    if (base->serial != 0 || !smg_target_switches_lanes(e->target)) return SMG_OK;
    for (size_t i = 0; i < SMG_COUNT_OF(short_slices); i++) {
        shape.inner = short_slices[i];
        SMG_TRY(sched_add(e, &shape, false, *base));
    }
    return SMG_OK;
}

static smg_status add_shapes(enumerator *e, const smg_schedule *base) {
    if (e->room.by_matrices) return sched_add_matrices(e, base);
    if (base->across) return add_across(e, base);
    SMG_TRY(sched_add_unstaged(e, base));
    SMG_TRY(sched_add_matrices(e, base));
    SMG_TRY(sched_add_streamed(e, base));
    if (e->roles.contractions > 0) return sched_add_staged(e, base);
    const lane_shape *shapes = e->roles.reductions > 0 ? row_shapes : map_shapes;
    size_t count = e->roles.reductions > 0 ? SMG_COUNT_OF(row_shapes) : SMG_COUNT_OF(map_shapes);
    for (size_t i = 0; i < count; i++) {
        lane_shape shape = shapes[i];
        if (base->row_axis < 0) shape.rows = shape.row_registers = 1;
        SMG_TRY(sched_add(e, &shape, false, *base));
        if (e->roles.reductions > 0) SMG_TRY(add_short_slices(e, shape, base));
        /* A slice is loaded as a whole before it is folded: what is under way in between. */
        shape.col_registers *= 2;
        if (base->temporal >= 0 && smg_target_switches_lanes(e->target)) SMG_TRY(sched_add(e, &shape, false, *base));
    }
    return SMG_OK;
}

#define MOST_HELD 65536 /* elements of an axis that a block holds whole: no kernel has room for more */

/* Has every axis that the block holds a static bound? The temporal one is held in slices. */
static bool held_are_static(const enumerator *e, const smg_schedule *base) {
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t extent;
        if (a == base->temporal || !((base->columns | base->held) & ~base->serial & SMG_AXIS_BIT(a))) continue;
        if (!sched_constant(e, a, &extent) || extent > MOST_HELD) return false;
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
        bool fixed = held_are_static(e, &base);
        if (!fixed && e->roles.contractions > 0) continue; /* what is cut serially has no products */
        base.one_by_one = smg_sched_one_by_one(&base);
        if (fixed && smg_sched_sides(&base)) SMG_TRY(add_shapes(e, &base));
        if (a >= 0) SMG_TRY(add_serial(e, base));
    }
    return SMG_OK;
}

static smg_status add_grid(enumerator *e, int row, int col) {
    smg_schedule base = {.space = e->space, .row_axis = row, .col_axis = col, .temporal = -1, .slots = 1};
    base.form = e->space->form;
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
        if ((e->roles.columns & stored & SMG_AXIS_BIT(row)) && sched_constant(e, row, &extent))
            SMG_TRY(add_grid(e, row, -1));
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

#define MOST_FEW 16 /* elements of an axis that each lane sums up by itself */

/* Short axes of the block that are summed up, and that no result has: what several workgroups left of a sum. */
static smg_axis_set summed_few(const enumerator *e) {
    smg_axis_set few = 0, kept = 0;
    for (int i = 0; i < e->space->nodes.count; i++) {
        const smg_snode *n = &e->space->nodes.items[i];
        kept |= n->output ? n->result : 0;
        if (n->class_ == SMG_CLASS_REDUCE) few |= n->iterates & ~n->result;
    }
    few &= e->roles.columns & ~kept;
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t extent;
        if (!sched_constant(e, a, &extent) || extent > MOST_FEW) few &= ~SMG_AXIS_BIT(a);
    }
    return few;
}

/* Lanes over the other columns alone: neighbours read neighbours, and a sum over few elements needs no other lane. */
static smg_status add_few_in_lanes(enumerator *e, int row) {
    smg_roles before = e->roles;
    smg_axis_set few = summed_few(e);
    if (few == 0 || few == e->roles.columns) return SMG_OK;
    e->roles.columns &= ~few;
    e->roles.held |= few;
    smg_status status = add_grid(e, row, -1);
    e->roles = before;
    return status;
}

static smg_status add_rows(enumerator *e) {
    int row = smg_sched_largest(e->roles.spatial, e->nominal);
    int run = e->run_axis = smg_sched_run_axis(e->space, &e->roles, e->nominal);
    int64_t extent;
    e->by_fours = run >= 0 && sched_constant(e, run, &extent) && extent % SCHED_LOAD == 0;
    SMG_TRY(add_grid(e, row, -1));
    SMG_TRY(add_few_in_lanes(e, row));
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

/* Columns of a product that are cut although its factor is made of rows as a whole, or of a sum although what it adds
 * up hangs on other sums: each block makes these anew. One such axis at a time, then all of them. */
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

#define PRODUCT_SCHEDULES 2048 /* of spaces with products: a longer list is copied as it grows */

smg_status smg_sched_candidates(const smg_space *space, const smg_target *target, const int64_t *nominal,
                                smg_sched_room room, smg_arena *arena, smg_schedules *out_schedules) {
    enumerator e = {
        .space = space, .target = target, .nominal = nominal, .room = room, .arena = arena, .out = out_schedules};
    *out_schedules = (smg_schedules){0};
    if (space->nodes.count > SMG_SPACE_NODES) {
        out_schedules->refused = "too many nodes for one kernel";
        return SMG_OK;
    }
    e.pairs = smg_sched_pairs(space, target);
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ == SMG_CLASS_CONTRACT && n->operand_count > 1) e.sums[e.factored++] = n->iterates & ~n->result;
    }
    e.products = e.factored;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ == SMG_CLASS_CONTRACT && n->operand_count == 1) e.sums[e.products++] = n->iterates & ~n->result;
    }
    for (int i = 0; i < e.products; i++) {
        int beside = 0;
        for (int j = 0; j < e.factored; j++) beside += (e.sums[i] & e.sums[j]) != 0;
        if (beside > e.beside) e.beside = beside;
    }
    smg_sched_classify(space, smg_slice_spatial(space, NULL), &e.roles);
    if (e.factored > 0 && !SMG_ARRAY_RESERVE(arena, &out_schedules->items, PRODUCT_SCHEDULES)) return SMG_MEMORY;
    SMG_TRY(add_all(&e));
    if (e.roles.contractions + e.roles.reductions > 0) SMG_TRY(add_anew(&e));
    if (out_schedules->items.count == 0) {
        out_schedules->refused = "no spatial axis serves as rows of every product, or two held axes have no bound";
    }
    return SMG_OK;
}
