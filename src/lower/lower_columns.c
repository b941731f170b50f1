/* Columns. A lane that has several rows of a block has the same columns of each of them. What no row changes, as a mask
 * of keys, is computed once for all: drivers were seen to choose again in every row. Stores are left out, whose loads
 * are on their way before (lower_early.c). */
#include "lower/lower_internal.h"

#define COLUMN_COST 4.0 /* multiply-adds from which keeping beats recomputing */

static bool several_rows(const lowering *l, smg_axis_set axes) {
    int row = l->s->row_axis;
    return row >= 0 && (axes & SMG_AXIS_BIT(row)) != 0 && l->s->tile[row] > l->s->lane_rows;
}

static smg_axis_set axes_of(const lowering *l, const smg_instr *in) {
    smg_axis_set set = lower_axes_of(&l->k->tiles.items[in->dst]);
    for (int a = 0; in->kind == SMG_I_REDUCE && a < in->axis_count; a++) set |= SMG_AXIS_BIT(in->axes[a]);
    return set;
}

/* The largest part of the expression that takes long and has columns alone; SMG_EXPR_NONE. */
static smg_expr columns_of(const lowering *l, smg_expr e) {
    smg_exprs *pool = l->k->exprs;
    const smg_expr_node n = *smg_expr_get(pool, e);
    smg_axis_set axes = lower_expr_axes(l, e);
    int of_tile[SMG_TILE_AXES], count;
    if (smg_expr_cost(pool, e) < COLUMN_COST) return SMG_EXPR_NONE;
    if (n.kind != SMG_KIND_BOOL && !several_rows(l, axes) && lower_columns(l, axes) != 0 &&
        lower_tile_axes(l, axes, SMG_TILE_AXES, of_tile, &count))
        return e;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) {
        smg_expr found = columns_of(l, n.arg[i]);
        if (found != SMG_EXPR_NONE) return found;
    }
    return SMG_EXPR_NONE;
}

/* `columns` as a tile that is set in front of the instruction, which reads that. */
static smg_status compute_before(lowering *l, int at, smg_expr columns) {
    int axes[SMG_TILE_AXES], count;
    lower_tile_axes(l, lower_expr_axes(l, columns), SMG_TILE_AXES, axes, &count);
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = lower_new_tile(l, "t", smg_expr_get(l->k->exprs, columns)->kind, SMG_REGISTER, axes, count, 0);
    if (set.dst < 0) return SMG_MEMORY;
    set.expr = columns;
    set.note = "once for all rows";
    smg_kleaf leaf = {.what = SMG_KLEAF_TILE, .index = set.dst, .kind = smg_tile_kind(&l->k->tiles.items[set.dst])};
    int id = lower_new_leaf(l, leaf, -1);
    if (id < 0) return SMG_MEMORY;
    smg_instr *in = &l->k->code.items[at];
    in->expr = lower_replace(l->k->exprs, in->expr, columns, smg_expr_leaf(l->k->exprs, leaf.kind, id));
    if (in->expr == SMG_EXPR_NONE) return SMG_MEMORY;
    return lower_insert(l->k, at, set);
}

/* The tile's instruction takes the place of the one that reads it, which comes next, with what else is in it. */
smg_status lower_columns_once(lowering *l) {
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if ((in->kind != SMG_I_SET && in->kind != SMG_I_REDUCE) || !several_rows(l, axes_of(l, in))) continue;
        smg_expr columns = columns_of(l, in->expr);
        if (columns == SMG_EXPR_NONE) continue;
        SMG_TRY(compute_before(l, i, columns));
    }
    return SMG_OK;
}
