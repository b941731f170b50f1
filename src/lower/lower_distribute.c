/* Layouts of register tiles. Tiles that meet in an expression are a field: each axis of it gets its places once, the
 * row axis over row lanes, every other one over column lanes. What one field leaves for another goes through shared
 * memory, so that keys can be rows where they are computed and columns where they are multiplied. Where all rows are
 * those of the grid, everything is laid out as one field. Axes of one tile share the column lanes out: the last takes
 * its run of `vec` neighbours and as many lanes as it has elements for, then the one before it; what lanes do not cover
 * is in registers. Axes that no tile has both may lie in the same lanes. So all tiles of a field are readable beside
 * each other: what one lacks is replicated.
 *
 * In a kernel with products the lanes of a subgroup form a block of rows and columns, and its bits are woven: the
 * lowest bit of a lane's number chooses a column, the next ones the row, the rest the column again. Neighbouring pairs
 * then read the same group of one operand, pairs of pairs the same group of the other, and shared memory serves them
 * together (measured on one GPU: an eighth less time for fused chains of products). */
#include "lower/lower_internal.h"

enum { MOST_BITS = SMG_LAYOUT_LEVEL_BITS };

/* Which bits of a lane's number are those of its row, its column and its depth, lowest first. */
typedef struct lane_bits {
    int rows[MOST_BITS], columns[MOST_BITS], depth[MOST_BITS];
    int row_count, column_count, depth_count;
} lane_bits;

static bool has(const smg_kernel *k, smg_instr_kind kind) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == kind) return true;
    return false;
}

/* Bits of a subgroup's lane that are columns in the block of a woven kernel; 0: lanes are dealt out row by row. */
static int woven_columns(const smg_kernel *k, const smg_lane_grid *g) {
    int lanes = smg_log2(g->subgroup), rows = smg_log2(g->rows), columns = smg_log2(g->cols);
    if (g->numbered || g->depth_near || lanes < 4 || rows + columns < lanes || !has(k, SMG_I_MMA)) return 0;
    /* A row that is reduced stays within its subgroup; else the block is as square as can be. */
    int block = has(k, SMG_I_REDUCE) ? columns : (lanes + 1) / 2;
    if (block > columns) block = columns;
    if (lanes - block > rows) block = lanes - rows;
    return block < lanes ? block : 0;
}

static lane_bits deal(const smg_kernel *k, const smg_lane_grid *g) {
    lane_bits b = {0};
    int bit = 0, lanes = smg_log2(g->subgroup), rows = smg_log2(g->rows), columns = smg_log2(g->cols);
    int woven = woven_columns(k, g);
    while (g->depth_near && b.depth_count < smg_log2(g->depth)) b.depth[b.depth_count++] = bit++;
    if (woven > 0) {
        b.columns[b.column_count++] = bit++;
        while (b.row_count < lanes - woven) b.rows[b.row_count++] = bit++;
    }
    while (b.column_count < (woven > 0 ? woven : columns)) b.columns[b.column_count++] = bit++;
    while (b.column_count < columns) b.columns[b.column_count++] = bit++;
    while (b.row_count < rows) b.rows[b.row_count++] = bit++;
    while (b.depth_count < smg_log2(g->depth)) b.depth[b.depth_count++] = bit++;
    return b;
}

enum { MOST_AXES = 2 * SMG_TILE_AXES, MOST_LISTS = 128, MOST_PLACES = 64, MOST_FIELDS = 8 };

/* Axes of more than one element that some tile or instruction goes over, and their layout. */
typedef struct axis_list {
    int axes[MOST_AXES], count;
    uint64_t set; /* the same, as bits: most lists differ in it */
    int field;    /* which all of its tiles are in */
    int layout;   /* -1: not made yet */
} axis_list;

/* The column lanes that an axis lies over, and the neighbours in a lane's registers before them. */
typedef struct axis_place {
    bool known;
    int run;
    uint32_t lanes; /* of the column bits, by position */
} axis_place;

typedef struct distribution {
    smg_kernel *k;
    const smg_lane_grid *grid;
    lane_bits bits;
    smg_layout copies; /* no axis yet: all lanes hold the same */
    axis_list lists[MOST_LISTS];
    int list_count;
    int *field;                /* by tile: another tile of the same field, itself for the last; NULL: one field */
    int last[MOST_FIELDS];     /* by field: the last of its tiles */
    int row_axis[MOST_FIELDS]; /* -1: none */
    int field_count;
    axis_place place[MOST_FIELDS][MOST_PLACES]; /* by field and axis of the kernel */
    uint64_t picked;                            /* axes along which a lane reads other elements: it has all of them */
} distribution;

/* ---- fields --------------------------------------------------------------------------------------- */

static int last_of(const distribution *d, int tile) {
    while (d->field[tile] != tile) tile = d->field[tile];
    return tile;
}

typedef struct meeting {
    distribution *d;
    int tile; /* one of those that meet; -1 */
} meeting;

static void meet(meeting *m, int tile) {
    if (m->d->k->tiles.items[tile].residence != SMG_REGISTER) return;
    int other = last_of(m->d, tile);
    if (m->tile >= 0) m->d->field[other] = last_of(m->d, m->tile);
    m->tile = tile;
}

static void meet_leaf(void *user, int leaf) {
    meeting *m = user;
    const smg_kernel *k = m->d->k;
    const smg_kleaf *f = &k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE) meet(m, f->index);
    if (f->what != SMG_KLEAF_LOAD) return;
    smg_expr index = k->accesses.items[f->index].index;
    if (index != SMG_EXPR_NONE) smg_expr_leaves(k->exprs, index, meet_leaf, m);
}

/* All tiles that an instruction goes over meet in it; one of them, -1 where there is none. */
static int met_by(distribution *d, const smg_instr *in) {
    meeting m = {.d = d, .tile = -1};
    if (in->dst >= 0) meet(&m, in->dst);
    if (in->expr != SMG_EXPR_NONE) smg_expr_leaves(d->k->exprs, in->expr, meet_leaf, &m);
    return m.tile;
}

static bool has_axis(const int *axes, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

/* Does some tile or instruction of the field have the axis? */
static bool in_field(distribution *d, int last, int axis) {
    const smg_kernel *k = d->k;
    for (int t = 0; t < k->tiles.count; t++) {
        const smg_tile *of = &k->tiles.items[t];
        if (of->residence != SMG_REGISTER || last_of(d, t) != last) continue;
        if (has_axis(of->axis, of->axis_count, axis)) return true;
    }
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_STORE && in->kind != SMG_I_REDUCE) continue;
        int met = met_by(d, in);
        if (met >= 0 && last_of(d, met) == last && has_axis(in->axes, in->axis_count, axis)) return true;
    }
    return false;
}

/* The first row axis that the field has. */
static int rows_of_field(distribution *d, int last) {
    const int8_t *more = d->grid->more_rows;
    int axis = d->grid->row_axis;
    while (!in_field(d, last, axis) && more != NULL && *more >= 0) axis = *more++;
    return axis;
}

static smg_status find_fields(distribution *d) {
    const smg_kernel *k = d->k;
    bool more = d->grid->more_rows != NULL && d->grid->more_rows[0] >= 0;
    d->field = NULL;
    d->field_count = 1;
    d->row_axis[0] = d->grid->row_axis;
    if (!more && (d->grid->row_axis < 0 || k->axes.items[d->grid->row_axis].grid)) return SMG_OK;
    d->field = SMG_ARENA_ARRAY(k->arena, int, (size_t)k->tiles.count + 1);
    if (d->field == NULL) return SMG_MEMORY;
    for (int t = 0; t < k->tiles.count; t++) d->field[t] = t;
    for (int i = 0; i < k->code.count; i++) met_by(d, &k->code.items[i]);
    d->field_count = 0;
    for (int t = 0; t < k->tiles.count && d->field_count < MOST_FIELDS; t++) {
        if (k->tiles.items[t].residence != SMG_REGISTER || d->field[t] != t) continue;
        d->last[d->field_count] = t;
        d->row_axis[d->field_count++] = rows_of_field(d, t);
    }
    if (d->field_count == 0) d->field_count = 1; /* no tile in registers: what goes over none is the first field */
    return SMG_OK;
}

/* The field of a tile; the first one for what goes over no tile (-1), the last one for what is behind it. */
static int field_of(const distribution *d, int tile) {
    if (tile < 0 || d->field == NULL) return 0;
    int field = 0;
    while (field + 1 < d->field_count && d->last[field] != last_of(d, tile)) field++;
    return field;
}

/* ---- lists of axes -------------------------------------------------------------------------------- */

/* The number of the list; -1 where there are too many. */
static int list_of(distribution *d, int field, const int *axes, int count) {
    int wide[MOST_AXES], wide_count = 0;
    uint64_t set = 0;
    for (int i = 0; i < count; i++) {
        if (d->k->axes.items[axes[i]].tile == 1) continue;
        set |= UINT64_C(1) << axes[i];
        if (axes[i] != d->grid->col_axis) wide[wide_count++] = axes[i];
    }
    if (d->grid->col_axis >= 0 && (set >> d->grid->col_axis & 1)) wide[wide_count++] = d->grid->col_axis;
    for (int i = 0; i < d->list_count; i++) {
        if (d->lists[i].set != set || d->lists[i].field != field) continue;
        int same = 0;
        while (same < wide_count && d->lists[i].axes[same] == wide[same]) same++;
        if (same == wide_count) return i;
    }
    if (d->list_count == MOST_LISTS) return -1;
    axis_list *list = &d->lists[d->list_count];
    list->count = wide_count;
    list->set = set;
    list->field = field;
    list->layout = -1;
    for (int i = 0; i < wide_count; i++) list->axes[i] = wide[i];
    return d->list_count++;
}

/* The column lanes of the axes that stand beside `axis` in some list. */
static uint32_t lanes_beside(const distribution *d, int field, int axis) {
    uint32_t taken = 0;
    for (int i = 0; i < d->list_count; i++) {
        const axis_list *list = &d->lists[i];
        if (list->field != field || !(list->set >> axis & 1)) continue;
        for (int n = 0; n < list->count; n++) taken |= d->place[field][list->axes[n]].lanes;
    }
    return taken;
}

/* The axes of one list share out the column lanes that those known already leave. */
static void place_axes(distribution *d, const axis_list *list) {
    bool last = true;
    for (int i = list->count - 1; i >= 0; i--) {
        int axis = list->axes[i];
        axis_place *p = &d->place[list->field][axis];
        int64_t tile = d->k->axes.items[axis].tile;
        if (axis == d->row_axis[list->field]) continue;
        if (d->picked >> axis & 1) {
            p->known = true;
            continue;
        }
        if (!p->known) {
            uint32_t taken = lanes_beside(d, list->field, axis);
            p->known = true;
            p->run = last ? smg_log2(tile < d->grid->vec ? tile : d->grid->vec) : 0;
            int64_t span = INT64_C(1) << p->run;
            for (int bit = 0; bit < d->bits.column_count && span < tile; bit++) {
                if (taken >> bit & 1) continue;
                p->lanes |= 1u << bit;
                span *= 2;
            }
        }
        last = false;
    }
}

/* Lists of many axes first: they leave the least choice. */
static void place_all(distribution *d) {
    int most = 0;
    for (int i = 0; i < d->list_count; i++)
        if (d->lists[i].count > most) most = d->lists[i].count;
    for (int count = most; count > 0; count--)
        for (int i = 0; i < d->list_count; i++)
            if (d->lists[i].count == count) place_axes(d, &d->lists[i]);
}

/* The next elements of the axis in this lane's bit. */
static void over_lane(const distribution *d, smg_layout *l, int axis, int bit) {
    int lanes = smg_log2(d->grid->subgroup);
    smg_basis basis = {(int8_t)axis, (int8_t)smg_log2(smg_layout_span(l, axis))};
    if (bit < lanes)
        smg_layout_set(l, SMG_LAYOUT_LANE, bit, basis);
    else
        smg_layout_set(l, SMG_LAYOUT_SUBGROUP, bit - lanes, basis);
}

static void rest_in_registers(const distribution *d, smg_layout *l, int axis) {
    int64_t tile = d->k->axes.items[axis].tile, span = smg_layout_span(l, axis);
    smg_layout_repeat(l, axis, (tile + span - 1) / span);
}

static void run_of_rows(const distribution *d, smg_layout *l, int axis) {
    int64_t tile = d->k->axes.items[axis].tile, run = d->grid->row_run > 1 ? d->grid->row_run : 1;
    smg_layout_add(l, SMG_LAYOUT_REGISTER, axis, run < tile ? run : tile);
}

static void over_rows(const distribution *d, smg_layout *l, int axis) {
    for (int i = 0; i < d->bits.row_count && smg_layout_span(l, axis) < d->k->axes.items[axis].tile; i++)
        over_lane(d, l, axis, d->bits.rows[i]);
}

/* What goes over rows and one axis of columns, by matrices, several of them beside held axes. */
static smg_layout fragments_of(const distribution *d, const axis_list *list) {
    int row = -1, col = -1;
    for (int i = 0; i < list->count; i++) {
        if (list->axes[i] == d->row_axis[list->field])
            row = list->axes[i];
        else if (!(d->grid->held >> list->axes[i] & 1))
            col = list->axes[i];
    }
    return lower_fragments(d->k, d->grid, SMG_FRAGMENTS_SUMS, row, col, list->set & d->grid->held);
}

/* Registers from the last axis on, so that its neighbours come first; rows behind all columns. */
static smg_layout layout_of(const distribution *d, const axis_list *list) {
    smg_layout l = d->copies;
    int row_axis = d->row_axis[list->field];
    bool has_rows = false;
    if (d->k->matrix.rows > 0) return fragments_of(d, list);
    for (int i = 0; i < list->count; i++) smg_layout_add(&l, SMG_LAYOUT_REGISTER, list->axes[i], 1);
    for (int i = list->count - 1; i >= 0; i--) {
        int axis = list->axes[i];
        const axis_place *p = &d->place[list->field][axis];
        has_rows = has_rows || axis == row_axis;
        if (axis == row_axis) continue;
        smg_layout_add(&l, SMG_LAYOUT_REGISTER, axis, INT64_C(1) << p->run);
        for (int bit = 0; bit < d->bits.column_count; bit++)
            if (p->lanes >> bit & 1) over_lane(d, &l, axis, d->bits.columns[bit]);
    }
    for (int i = list->count - 1; i >= 0; i--)
        if (list->axes[i] != row_axis) rest_in_registers(d, &l, list->axes[i]);
    if (!has_rows) return l;
    run_of_rows(d, &l, row_axis);
    over_rows(d, &l, row_axis);
    rest_in_registers(d, &l, row_axis);
    return l;
}

/* The number of the list's layout; -1 when memory is out. */
static int number_of(distribution *d, int list) {
    axis_list *of = &d->lists[list];
    if (of->layout >= 0) return of->layout;
    smg_layout l = layout_of(d, of);
    of->layout = smg_kernel_add_layout(d->k, &l);
    return of->layout;
}

/* The same with the contracted axis: as many of k as operands are read by, then all depth lanes (the program joins
 * their sums, also where some have nothing to add), then the loop. */
static int product_number(distribution *d, const smg_instr *product, int sums) {
    int number = number_of(d, sums), axis = product->axes[0];
    if (number < 0 || (d->k->axes.items[axis].tile == 1 && d->bits.depth_count == 0)) return number;
    smg_layout l = d->k->layouts.items[number];
    int group = smg_kernel_product_group(d->k, product);
    smg_layout_add(&l, SMG_LAYOUT_REGISTER, axis, group > d->grid->depth_run ? group : d->grid->depth_run);
    for (int i = 0; i < d->bits.depth_count; i++) over_lane(d, &l, axis, d->bits.depth[i]);
    rest_in_registers(d, &l, axis);
    return smg_kernel_add_layout(d->k, &l);
}

/* A product whose parts the join adds up; NULL. */
static const smg_instr *product_into(const smg_kernel *k, const smg_instr *join) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_MMA && in->dst == join->dst && in->axes[0] == join->axes[0]) return in;
    }
    return NULL;
}

/* The product whose layout the instruction shares; NULL. */
static const smg_instr *product_of(const smg_kernel *k, const smg_instr *in) {
    return in->kind == SMG_I_MMA ? in : in->kind == SMG_I_JOIN ? product_into(k, in) : NULL;
}

/* The list of axes that an instruction goes over, without those of a product's contraction. */
static int instruction_list(distribution *d, const smg_instr *in) {
    int axes[MOST_AXES], count = 0;
    const smg_tile *dst = in->kind == SMG_I_STORE ? NULL : &d->k->tiles.items[in->dst];
    bool product = product_of(d->k, in) != NULL;
    for (int i = 0; dst != NULL && i < dst->axis_count; i++) axes[count++] = dst->axis[i];
    for (int i = 0; !product && i < in->axis_count; i++) axes[count++] = in->axes[i];
    int met = d->field != NULL ? met_by(d, in) : -1;
    return list_of(d, field_of(d, met), axes, count);
}

/* Which lists there are decides where axes lie: all are collected first, and `layout` keeps their numbers so long. */
static smg_status collect_lists(distribution *d) {
    bool room = true;
    for (int t = 0; t < d->k->tiles.count; t++) {
        smg_tile *tile = &d->k->tiles.items[t];
        tile->layout = -1;
        if (tile->residence != SMG_REGISTER) continue;
        tile->layout = list_of(d, field_of(d, t), tile->axis, tile->axis_count);
        room = room && tile->layout >= 0;
    }
    for (int i = 0; i < d->k->code.count; i++) {
        smg_instr *in = &d->k->code.items[i];
        bool laid =
            in->kind == SMG_I_REDUCE || in->kind == SMG_I_STORE || in->kind == SMG_I_MMA || in->kind == SMG_I_JOIN;
        in->layout = laid ? instruction_list(d, in) : -1;
        room = room && (!laid || in->layout >= 0);
    }
    if (room) return SMG_OK;
    return smg_fail(smg_arena_context(d->k->arena), SMG_INTERNAL, "a kernel goes over more than %d lists of axes",
                    MOST_LISTS);
}

/* Numbers of lists become numbers of layouts. */
static smg_status lay_out(distribution *d) {
    for (int t = 0; t < d->k->tiles.count; t++) {
        smg_tile *tile = &d->k->tiles.items[t];
        if (tile->residence != SMG_REGISTER) continue;
        tile->layout = number_of(d, tile->layout);
        if (tile->layout < 0) return SMG_MEMORY;
    }
    for (int i = 0; i < d->k->code.count; i++) {
        smg_instr *in = &d->k->code.items[i];
        const smg_instr *product = product_of(d->k, in);
        if (in->layout < 0) continue;
        in->layout = product != NULL ? product_number(d, product, in->layout) : number_of(d, in->layout);
        if (in->layout < 0) return SMG_MEMORY;
    }
    return SMG_OK;
}

static uint64_t picked_axes(const smg_kernel *k) {
    uint64_t picked = 0;
    for (int f = 0; f < k->leaves.count; f++) {
        const smg_kleaf *leaf = &k->leaves.items[f];
        for (int i = 0; i < leaf->pick_count; i++) {
            picked |= UINT64_C(1) << leaf->pick[i].axis;
            if (leaf->pick[i].from >= 0) picked |= UINT64_C(1) << leaf->pick[i].from;
        }
    }
    return picked;
}

smg_status smg_kernel_distribute(smg_kernel *k, const smg_lane_grid *grid) {
    if (!smg_is_power_of_two(grid->rows) || !smg_is_power_of_two(grid->cols) || !smg_is_power_of_two(grid->depth) ||
        !smg_is_power_of_two(grid->vec) || (grid->row_run > 0 && !smg_is_power_of_two(grid->row_run)) ||
        !smg_is_power_of_two(grid->subgroup))
        return smg_fail(smg_arena_context(k->arena), SMG_INTERNAL,
                        "%d x %d x %d lanes, runs of %d, subgroups of %d: all must be powers of two", grid->depth,
                        grid->rows, grid->cols, grid->vec, grid->subgroup);
    if (k->axes.count > MOST_PLACES)
        return smg_fail(smg_arena_context(k->arena), SMG_INTERNAL, "a kernel of %d axes; at most %d", k->axes.count,
                        MOST_PLACES);
    k->lanes = grid->rows * grid->cols * grid->depth;
    k->subgroup = grid->subgroup;
    k->numbered = grid->numbered;
    k->layouts.count = 0;
    distribution d; /* large: each part is made before it is read */
    d.k = k;
    d.grid = grid;
    d.list_count = 0;
    d.picked = picked_axes(k);
    d.bits = deal(k, grid);
    d.copies = smg_layout_one();
    smg_layout_replicate(&d.copies, SMG_LAYOUT_LANE, grid->subgroup);
    smg_layout_replicate(&d.copies, SMG_LAYOUT_SUBGROUP, k->lanes / grid->subgroup);
    SMG_TRY(find_fields(&d));
    memset(d.place, 0, (size_t)d.field_count * sizeof d.place[0]);
    SMG_TRY(collect_lists(&d));
    place_all(&d);
    return lay_out(&d);
}
