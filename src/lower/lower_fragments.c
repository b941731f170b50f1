/* Layouts where products are made by matrices. A subgroup has the sums of whole matrices, side by side along the rows
 * and columns of its part of a tile; subgroups share out columns first, then rows. For each element of a held axis (the
 * gates of a cell) a lane has matrices of their own. Every other tile lies as what is left of that without the axes
 * that it lacks, so that statistics of rows are where the rows' sums are. */
#include "lower/lower_internal.h"

/* The bits of one level that lie on the matrix's sides; those on a side that the tile lacks hold copies in lanes, and
 * are no registers. */
static void add_bits(smg_layout *l, const smg_layout *sums, smg_layout_level level, int row, int col) {
    for (int i = 0; i < sums->bits[level]; i++) {
        smg_basis basis = sums->basis[level][i];
        int axis = basis.axis < 0 ? -1 : basis.axis == 0 ? row : col;
        int bit = level == SMG_LAYOUT_LANE ? i : l->bits[level];
        if (axis < 0 && level == SMG_LAYOUT_REGISTER && basis.axis >= 0) continue;
        smg_layout_set(l, level, bit, (smg_basis){(int8_t)axis, axis < 0 ? 0 : basis.bit});
    }
}

static void over_subgroups(smg_layout *l, const smg_kernel *k, int axis, int first, int subgroups) {
    for (int bit = 0; bit < smg_log2(subgroups) && smg_layout_span(l, axis) < k->axes.items[axis].tile; bit++)
        smg_layout_set(l, SMG_LAYOUT_SUBGROUP, first + bit,
                       (smg_basis){(int8_t)axis, (int8_t)smg_log2(smg_layout_span(l, axis))});
}

static void rest_in_registers(smg_layout *l, const smg_kernel *k, int axis) {
    int64_t tile = k->axes.items[axis].tile, span = smg_layout_span(l, axis);
    smg_layout_repeat(l, axis, (tile + span - 1) / span);
}

smg_layout lower_fragments(const smg_kernel *k, const smg_lane_grid *grid, smg_fragments use, int row, int col,
                           uint64_t held) {
    smg_layout l = smg_layout_one();
    const smg_layout *of = smg_matrix_layout(&k->matrix, use);
    if (row >= 0) smg_layout_add(&l, SMG_LAYOUT_REGISTER, row, 1);
    if (col >= 0) smg_layout_add(&l, SMG_LAYOUT_REGISTER, col, 1);
    for (int a = 0; a < k->axes.count; a++)
        if (held >> a & 1) smg_layout_add(&l, SMG_LAYOUT_REGISTER, a, 1);
    smg_layout_replicate(&l, SMG_LAYOUT_LANE, k->subgroup);
    smg_layout_replicate(&l, SMG_LAYOUT_SUBGROUP, k->lanes / k->subgroup);
    add_bits(&l, of, SMG_LAYOUT_REGISTER, row, col);
    add_bits(&l, of, SMG_LAYOUT_LANE, row, col);
    /* What is contracted every subgroup has whole. */
    if (col >= 0 && use != SMG_FRAGMENTS_LEFT) over_subgroups(&l, k, col, 0, grid->matrix_cols);
    if (row >= 0 && use != SMG_FRAGMENTS_RIGHT)
        over_subgroups(&l, k, row, smg_log2(grid->matrix_cols), grid->matrix_rows);
    if (col >= 0) rest_in_registers(&l, k, col);
    if (row >= 0) rest_in_registers(&l, k, row);
    for (int a = 0; a < k->axes.count; a++)
        if (held >> a & 1) rest_in_registers(&l, k, a);
    return l;
}

/* ---- what is refused --------------------------------------------------------------------------------- */

/* Axes of several elements beside the rows and what is held. */
static smg_axis_set columns_of(const lower_sized *l, const int *axes, int count) {
    smg_axis_set columns = 0, but = l->s->held | SMG_AXIS_BIT(l->s->row_axis);
    for (int i = 0; i < count; i++)
        if (!(but & SMG_AXIS_BIT(axes[i])) && l->k->axes.items[axes[i]].tile > 1) columns |= SMG_AXIS_BIT(axes[i]);
    return columns;
}

static bool are_several(smg_axis_set axes) {
    return (axes & (axes - 1)) != 0;
}

/* Tiles and instructions go over rows, held axes, and one axis of columns at most. */
static bool is_flat(const lower_sized *l) {
    for (int t = 0; t < l->k->tiles.count; t++) {
        const smg_tile *tile = &l->k->tiles.items[t];
        if (tile->residence == SMG_REGISTER && are_several(columns_of(l, tile->axis, tile->axis_count))) return false;
    }
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind != SMG_I_REDUCE && in->kind != SMG_I_STORE) continue;
        smg_axis_set columns = columns_of(l, in->axes, in->axis_count);
        if (in->dst >= 0)
            columns |= columns_of(l, l->k->tiles.items[in->dst].axis, l->k->tiles.items[in->dst].axis_count);
        if (are_several(columns)) return false;
    }
    return true;
}

static const char *objection(const lower_sized *l) {
    const smg_schedule *s = l->s;
    bool rows = s->row_axis >= 0 && l->k->axes.items[s->row_axis].grid && s->more_rows[0] < 0;
    if (!rows || s->direct) return "products by matrices want the rows of the grid";
    if (!is_flat(l)) return "a value beside products by matrices has several axes of columns";
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        int row = -1, col = 0;
        if (in->kind != SMG_I_MMA) continue;
        const char *why = smg_matrix_objection(l->k, &l->k->matrix, in);
        if (why != NULL) return why;
        if (smg_kernel_product_sides(l->k, in, &row, &col) && row != s->row_axis)
            return "products by matrices want the rows of the grid";
        if (s->held & SMG_AXIS_BIT(col)) return "the columns of a product by matrices are in each lane";
    }
    return NULL;
}

void lower_take_matrices(lower_sized *l) {
    const smg_matrix_shape *shape = l->s->matrix;
    smg_kernel *k = l->k;
    k->matrix = (smg_matrix){0};
    if (shape != NULL) {
        smg_layout room;
        k->matrix =
            (smg_matrix){.rows = shape->m, .cols = shape->n, .depth = shape->k, .sums = *smg_sched_sums(l->s, &room)};
        if (l->s->matrix_left != NULL) k->matrix.left = *l->s->matrix_left;
        if (l->s->matrix_right != NULL && (l->s->rings > 1 || l->s->streams)) k->matrix.right = *l->s->matrix_right;
        (void)smg_type_find(shape->a, &k->matrix.type);
        l->refused = objection(l);
        if (l->refused != NULL) k->matrix = (smg_matrix){0}; /* it is only counted, with layouts of lanes */
    }
    if (k->matrix.rows > 0) lower_type_staging(k, l->target, k->matrix.type);
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        k->tiles.items[in->dst].fragments = k->matrix.rows > 0 ? SMG_FRAGMENTS_SUMS : SMG_FRAGMENTS_NONE;
        lower_type_factors(k, in);
    }
}
