/* What is staged behind the end of an axis. A row of the left operand that does not exist is multiplied into a row of
 * the result that does not exist either: nobody stores or reduces that, so it need not be 0, and a load of the last row
 * in its place has nothing to wait for (a select behind each load stands in front of the product that should hide it,
 * bench/NOTES.md). Only the contraction's own axis needs zeros. What is fetched ahead gets them where it is put, behind
 * that product. */
#include "lower/lower_internal.h"

/* Axes over which products contract the shared tile; *out_operand: that is all that reads it. */
static uint64_t contracted(const smg_kernel *k, int tile, bool *out_operand) {
    uint64_t axes = 0;
    *out_operand = false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA || (in->a != tile && in->b != tile)) continue;
        *out_operand = true;
        for (int n = 0; n < in->axis_count; n++) axes |= SMG_AXIS_BIT(in->axes[n]);
    }
    for (int i = 0; i < k->code.count && *out_operand; i++)
        if (k->code.items[i].kind == SMG_I_SPILL && k->code.items[i].dst == tile) *out_operand = false;
    for (int f = 0; f < k->leaves.count; f++)
        if (k->leaves.items[f].what == SMG_KLEAF_TILE && k->leaves.items[f].index == tile) *out_operand = false;
    return axes;
}

/* Of the tile's axes those that have an end to repeat. */
static uint64_t ends(const smg_kernel *k, const smg_tile *tile) {
    uint64_t axes = 0;
    for (int i = 0; i < tile->axis_count; i++)
        if (smg_kernel_axis_ends(k, tile->axis[i])) axes |= SMG_AXIS_BIT(tile->axis[i]);
    return axes;
}

smg_status lower_clamp(lowering *l) {
    smg_kernel *k = l->k;
    for (int t = 0; t < k->tiles.count; t++) {
        smg_tile *tile = &k->tiles.items[t];
        bool operand;
        if (tile->residence != SMG_SHARED) continue;
        uint64_t zeros = contracted(k, t, &operand);
        if (operand) tile->clamped = ends(k, tile) & ~zeros;
    }
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        smg_tile *from = in->kind == SMG_I_PUT ? &k->tiles.items[in->a] : NULL;
        if (from != NULL && k->tiles.items[in->dst].clamped != 0) from->clamped = ends(k, from);
    }
    return SMG_OK;
}
