/* Repetition: equal bodies as a loop. What a body makes for the next one stays in the registers of the lanes that made
 * it. Where a product contracts what is carried, it reads it along another axis than it was made along, and in slices,
 * so all of it is left in shared memory at the begin of a body, and the product's left factor is a slice of that. */
#include "lower/lower_internal.h"

bool lower_is_repeat(const lowering *l, const smg_instr *instr) {
    return l->space->repeat.count > 0 && instr->axes[0] == l->space->repeat.axis;
}

static const smg_snode *made_by(const lowering *l) {
    return &l->space->nodes.items[l->space->repeat.next];
}

static smg_status tile_value(lowering *l, int tile, smg_expr *out_value) {
    smg_kind kind = smg_tile_kind(&l->k->tiles.items[tile]);
    int leaf = lower_tile_leaf(l, (smg_kleaf){.what = SMG_KLEAF_TILE, .kind = kind, .index = tile}, -1);
    if (leaf < 0) return SMG_MEMORY;
    *out_value = smg_expr_leaf(l->k->exprs, kind, leaf);
    return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* The whole has the axis last along which slices of it are read. */
static smg_status make_slices(lowering *l, int *axes, int count) {
    const smg_srepeat *r = &l->space->repeat;
    int whole = r->slice[0].whole, at = 0;
    while (axes[at] != whole) at++;
    memmove(axes + at, axes + at + 1, (size_t)(count - 1 - at) * sizeof *axes);
    axes[count - 1] = whole;
    l->carried_whole = lower_new_tile(l, "whole", SMG_KIND_FLOAT, SMG_SHARED, axes, count, SMG_OPERAND_PAD);
    if (l->carried_whole < 0) return SMG_MEMORY;
    for (int i = 0; i < r->slice_count; i++) {
        if (r->slice[i].whole != whole) return lower_refuse(l, "what is carried is read along several other axes");
        axes[count - 1] = r->slice[i].by;
        int tile = l->carried_slice[i] = lower_new_tile(l, "slice", SMG_KIND_FLOAT, SMG_SHARED, axes, count, 0);
        if (tile < 0) return SMG_MEMORY;
        l->k->tiles.items[tile].sliced = true;
        l->k->tiles.items[tile].of = l->carried_whole;
        l->k->tiles.items[tile].along = whole;
        l->k->tiles.items[tile].ring = r->slice[i].by;
    }
    return SMG_OK;
}

smg_status lower_make_carried(lowering *l) {
    const smg_snode *n = made_by(l);
    int axes[SMG_TILE_AXES], count;
    if (smg_type_kind(n->type) != SMG_KIND_FLOAT) return lower_refuse(l, "what is carried is no float");
    if (!lower_tile_axes(l, n->result, SMG_TILE_AXES, axes, &count)) return lower_refuse_axes(l);
    l->carried = lower_new_tile(l, "carried", SMG_KIND_FLOAT, SMG_REGISTER, axes, count, 0);
    if (l->carried < 0) return SMG_MEMORY;
    return l->space->repeat.slice_count > 0 ? make_slices(l, axes, count) : SMG_OK;
}

smg_status lower_carried(lowering *l, const smg_sview *view, smg_expr *out_value) {
    int by;
    if (smg_space_carried_whole(l->space, view, &by) >= 0)
        return lower_refuse(l, "what is carried is read along another axis by something else than a left factor");
    return tile_value(l, l->carried, out_value);
}

int lower_carried_slice(const lowering *l, const smg_snode *product, int side) {
    const smg_soperand *o = &product->operand[side];
    const smg_srepeat *r = &l->space->repeat;
    int by;
    if (o->producer >= 0 || o->view < 0) return -1;
    if (!smg_space_reads_carried(l->space, &l->space->views.items[o->view])) return -1;
    if (smg_space_carried_whole(l->space, &l->space->views.items[o->view], &by) < 0) return -1;
    int i = 0;
    while (r->slice[i].by != by) i++;
    return l->carried_slice[i];
}

smg_status lower_slice_value(lowering *l, int slice, smg_expr *out_value) {
    return tile_value(l, slice, out_value);
}

/* What the first body reads lies in memory as what it makes would. */
static smg_status emit_begin(lowering *l) {
    smg_sview view = l->space->views.items[made_by(l)->store];
    smg_expr value;
    view.source = l->space->repeat.carried;
    SMG_TRY(lower_load(l, &view, &value));
    return l->refused == NULL ? lower_emit_set(l, l->carried, value, "what the first body begins with") : SMG_OK;
}

/* All lanes have read what the last body left there, and see what is left there now. A product that stages its right
 * factor has barriers that do both, and these go again. */
static smg_status emit_whole(lowering *l) {
    if (lower_emit(l, SMG_I_BARRIER) == NULL) return SMG_MEMORY;
    smg_instr *spill = lower_emit(l, SMG_I_SPILL);
    if (spill == NULL) return SMG_MEMORY;
    spill->dst = l->carried_whole;
    spill->a = l->carried;
    spill->note = "what the body begins with, for all lanes";
    return lower_emit(l, SMG_I_BARRIER) != NULL ? SMG_OK : SMG_MEMORY;
}

static smg_status emit_body(lowering *l) {
    smg_expr value;
    if (l->carried_whole >= 0) SMG_TRY(emit_whole(l));
    for (int i = 0; i < l->space->nodes.count && l->refused == NULL; i++)
        if (l->node[i].core != SMG_EXPR_NONE) SMG_TRY(lower_emit_fold(l, i, false));
    if (l->refused != NULL) return SMG_OK;
    SMG_TRY(lower_value(l, l->space->repeat.next, &value));
    return l->refused == NULL ? lower_emit_set(l, l->carried, value, "for the next body") : SMG_OK;
}

smg_status lower_emit_bodies(lowering *l) {
    SMG_TRY(emit_begin(l));
    smg_instr *loop = lower_emit(l, SMG_I_LOOP);
    if (loop == NULL) return SMG_MEMORY;
    loop->axis_count = 1;
    loop->axes[0] = l->space->repeat.axis;
    loop->note = "equal bodies";
    if (l->refused == NULL) SMG_TRY(emit_body(l));
    if (lower_emit(l, SMG_I_END) == NULL) return SMG_MEMORY;
    return l->refused == NULL ? lower_emit_store(l, l->space->repeat.next) : SMG_OK;
}
