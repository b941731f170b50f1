/* Element types of tiles. A slice that is on its way to shared memory is what memory has of it: halves need half of the
 * registers, and a value that is made wider where it arrives is waited for there, not where it is put. */
#include "lower/lower_internal.h"

/* Has memory a type of 16 bits that lanes hold as it is, of what the instruction loads and does nothing else with? */
static bool loads_half(const lowering *l, const smg_instr *in) {
    int access = smg_kernel_plain_load(l->k, in->expr);
    if (access < 0 || l->k->accesses.items[access].index != SMG_EXPR_NONE) return false;
    bool held = l->target != NULL && l->target->fp16 && l->target->storage16;
    return held && l->k->buffers.items[l->k->accesses.items[access].buffer].type == SMG_TYPE_F16;
}

static bool fetches_halves(const lowering *l, int tile) {
    bool all = l->k->tiles.items[tile].residence == SMG_STAGING;
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_FETCH && in->dst == tile) all = all && loads_half(l, in);
    }
    return all;
}

smg_status lower_types(lowering *l) {
    for (int t = 0; t < l->k->tiles.count; t++)
        if (fetches_halves(l, t)) l->k->tiles.items[t].type = SMG_TYPE_F16;
    return SMG_OK;
}
