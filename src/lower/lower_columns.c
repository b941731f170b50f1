/* Columns. A lane that has several rows of a block has the same columns of each of them. What no row changes, as a mask
 * of keys, is computed once for all: drivers were seen to choose again in every row. Stores are left out, whose loads
 * are on their way before (lower_early.c). */
#include "lower/lower_internal.h"

#define ONCE_COST 4.0 /* multiply-adds from which keeping beats recomputing */

static bool several_rows(const lowering *l, smg_axis_set axes) {
    int row = l->s->row_axis;
    return row >= 0 && (axes & SMG_AXIS_BIT(row)) != 0 && l->s->tile[row] > l->s->lane_rows;
}

/* The largest part of the expression that takes long and has columns alone; SMG_EXPR_NONE. */
static smg_expr columns_of(const lowering *l, smg_expr e) {
    smg_exprs *pool = l->k->exprs;
    const smg_expr_node n = *smg_expr_get(pool, e);
    smg_axis_set axes = lower_expr_axes(l, e);
    int of_tile[SMG_TILE_AXES], count;
    if (smg_expr_cost(pool, e) < ONCE_COST) return SMG_EXPR_NONE;
    if (n.kind != SMG_KIND_BOOL && !several_rows(l, axes) && lower_columns(l, axes) != 0 &&
        lower_tile_axes(l, axes, SMG_TILE_AXES, of_tile, &count))
        return e;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) {
        smg_expr found = columns_of(l, n.arg[i]);
        if (found != SMG_EXPR_NONE) return found;
    }
    return SMG_EXPR_NONE;
}

static smg_status set_before(lowering *l, int at, smg_expr columns) {
    smg_expr with = SMG_EXPR_NONE;
    SMG_TRY(lower_set_apart(l, at, columns, "once for all rows", &with));
    smg_instr *reader = &l->k->code.items[at + 1];
    reader->expr = lower_replace(l->k->exprs, reader->expr, columns, with);
    return reader->expr != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* The tile's instruction takes the place of the one that reads it, which comes next, with what else is in it. */
smg_status lower_columns_once(lowering *l) {
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if ((in->kind != SMG_I_SET && in->kind != SMG_I_REDUCE) || !several_rows(l, lower_instr_axes(l, in))) continue;
        smg_expr columns = columns_of(l, in->expr);
        if (columns == SMG_EXPR_NONE) continue;
        SMG_TRY(set_before(l, i, columns));
    }
    return SMG_OK;
}
