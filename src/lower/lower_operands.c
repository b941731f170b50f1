/* Layout of operands in shared memory. As they lie in global memory they are filled by whole groups; but a lane that
 * owns four neighbouring columns reads one group for the four where the columns lie side by side, and so it is with
 * rows. Then an operand whose runs go along k is turned while it is put there: each of its elements is written once and
 * read by every lane of the other side. */
#include "lower/lower_internal.h"

/* The order in which the operand's elements arrive; NULL when nothing stages it. */
static const smg_instr *filled_by(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->dst == tile && (in->kind == SMG_I_STAGE || in->kind == SMG_I_PUT)) return in;
    }
    return NULL;
}

/* The axis along which a lane owns runs of columns; -1 when it owns none, or they do not come out even. */
static int run_axis(const smg_kernel *k, const smg_tile *result) {
    const smg_layout *layout = &k->layouts.items[result->layout];
    for (int i = 0; i < layout->axis_count; i++) {
        int axis = layout->axes[i].axis;
        int64_t run = smg_layout_run(layout, axis);
        if (run > 1) return k->axes.items[axis].tile % run == 0 ? axis : -1;
    }
    return -1;
}

static void move_last(int *axes, int count, int axis) {
    int at = 0;
    while (at < count && axes[at] != axis) at++;
    if (at == count) return;
    memmove(axes + at, axes + at + 1, (size_t)(count - 1 - at) * sizeof(int));
    axes[count - 1] = axis;
}

/* Where lanes are dealt runs of rows, a group is four rows of one k, else four k of one row. What a product leaves for
 * the next one stays as its lanes hold it. */
static void lay_left(smg_kernel *k, const smg_instr *product, bool runs) {
    smg_tile *a = &k->tiles.items[product->a];
    int along = product->axes[0], first = a->axis[0], last = a->axis[a->axis_count - 1];
    if (filled_by(k, product->a) == NULL) return;
    move_last(a->axis, a->axis_count, !runs ? along : last == along ? first : last);
}

static void lay_right(smg_kernel *k, const smg_instr *product) {
    smg_tile *b = &k->tiles.items[product->b];
    const smg_instr *fill = filled_by(k, product->b);
    if (fill == NULL) return;
    memcpy(b->axis, fill->axes, (size_t)b->axis_count * sizeof(int));
    int run = run_axis(k, &k->tiles.items[product->dst]);
    if (run >= 0) move_last(b->axis, b->axis_count, run);
}

/* Axes of one element are steps of loops. In front they part no neighbours. */
static void move_single_first(const smg_kernel *k, smg_tile *t) {
    int single = 0, order[SMG_TILE_AXES];
    for (int i = 0; i < t->axis_count; i++)
        if (k->axes.items[t->axis[i]].tile == 1) order[single++] = t->axis[i];
    for (int i = 0; i < t->axis_count; i++)
        if (k->axes.items[t->axis[i]].tile > 1) order[single++] = t->axis[i];
    memcpy(t->axis, order, (size_t)t->axis_count * sizeof(int));
}

/* Matrices are read with their rows or their columns side by side, and these right behind each other: their pad then
 * spreads them over the banks, whatever held axes lie around. */
static void lay_matrices(smg_kernel *k, const smg_instr *product, int tile) {
    smg_tile *t = &k->tiles.items[tile];
    const smg_instr *fill = filled_by(k, tile);
    int row, col;
    if (fill != NULL) memcpy(t->axis, fill->axes, (size_t)t->axis_count * sizeof(int));
    move_single_first(k, t);
    if (!smg_kernel_product_sides(k, product, &row, &col) || t->axis_count < 2) return;
    int last = t->axis[t->axis_count - 1], along = product->axes[0], own = tile == product->a ? row : col;
    move_last(t->axis, t->axis_count - 1, last == along ? own : along);
}

smg_status lower_operands(lower_sized *l) {
    smg_kernel *k = l->k;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        if (k->tiles.items[in->dst].fragments) {
            lay_matrices(k, in, in->a);
            lay_matrices(k, in, in->b);
            if (!smg_matrix_side_by_side(k, in, in->a) || !smg_matrix_side_by_side(k, in, in->b))
                l->refused = "neither rows nor columns of a factor's matrices lie side by side";
            continue;
        }
        lay_left(k, in, l->s->row_run > 1);
        lay_right(k, in);
    }
    return SMG_OK;
}

smg_status lower_layouts(lower_sized *l) {
    const smg_schedule *s = l->s;
    smg_lane_grid grid = {.rows = s->lane_rows,
                          .cols = s->lane_cols,
                          .depth = s->lane_depth,
                          .vec = s->vec,
                          .row_run = s->row_run,
                          .row_axis = s->row_axis,
                          .more_rows = s->more_rows,
                          .col_axis = s->across ? s->col_axis : -1,
                          .depth_near = s->depth_near,
                          .subgroup = s->subgroup,
                          .numbered = s->matrix != NULL || s->alone ||
                                      (s->direct && s->lane_cols == s->subgroup && s->lane_depth == 1),
                          .matrix_rows = s->matrix_rows,
                          .matrix_cols = s->matrix_cols,
                          .held = s->held};
    for (int a = 0; a < l->k->axes.count; a++) l->k->axes.items[a].tile = s->tile[a];
    l->k->band = s->band;
    lower_take_matrices(l);
    bool runs = s->streams && s->space->repeat.slice_count == 0; /* of both factors */
    if (runs && l->k->matrix.right.axis_count > 0) grid.depth_run = 1 << smg_matrix_in_runs(&l->k->matrix).run;
    return smg_kernel_distribute(l->k, &grid);
}
