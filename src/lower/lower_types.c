/* Element types of tiles. A slice that is on its way to shared memory is what memory has of it: halves need half of the
 * registers, and a value that is made wider where it arrives is waited for there, not where it is put.
 *
 * Products of halves may sum up some of their terms in f16, where the target has pairs of them at a higher rate, and
 * where results are rounded to f16 soon: such a sum is as near as if it had been stored some times, and ends where
 * f16 does. So it is done where all results of the kernel are stored as f16, and nothing in it reduces or multiplies
 * them: below an exponential a relative error becomes one of the exponent's size. Then factors stay halves in shared
 * memory, too; multiplied as f32 they are made wider once, not by every lane that reads them. */
#include "lower/lower_internal.h"

#define PARTIAL_TERMS 32 /* their error is four times that of storing the sum */
#define LEAST_TERMS 16   /* fewer cost more to add than pairs gain */

/* Has memory the type of 16 bits of what the instruction loads and does nothing else with, and do lanes hold it so? */
static bool loads_halves(const smg_kernel *k, const smg_target *target, const smg_instr *in, smg_type type) {
    int access = smg_kernel_plain_load(k, in->expr);
    if (access < 0 || k->accesses.items[access].index != SMG_EXPR_NONE) return false;
    bool held = target != NULL && target->storage16 && (target->fp16 || type != SMG_TYPE_F16);
    return held && k->buffers.items[k->accesses.items[access].buffer].type == type;
}

void lower_type_staging(smg_kernel *k, const smg_target *target, smg_type type) {
    for (int t = 0; t < k->tiles.count; t++) {
        bool all = k->tiles.items[t].residence == SMG_STAGING;
        for (int i = 0; i < k->code.count && all; i++) {
            const smg_instr *in = &k->code.items[i];
            if (in->kind == SMG_I_FETCH && in->dst == t) all = loads_halves(k, target, in, type);
        }
        if (all) k->tiles.items[t].type = type;
    }
}

/* Is the shared tile filled with nothing but halves? */
static bool holds_halves(const lowering *l, int tile) {
    bool all = l->k->tiles.items[tile].residence == SMG_SHARED;
    for (int i = 0; i < l->k->code.count && all; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_STAGE && in->dst == tile) all = loads_halves(l->k, l->target, in, SMG_TYPE_F16);
        if (in->kind == SMG_I_PUT && in->dst == tile) all = l->k->tiles.items[in->a].type == SMG_TYPE_F16;
    }
    return all;
}

static bool may_be_partial(const lowering *l) {
    if (l->target == NULL || !smg_target_pairs(l->target)) return false;
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_REDUCE || in->kind == SMG_I_SPILL || in->kind == SMG_I_JOIN) return false;
        if (in->kind == SMG_I_MMA && (!holds_halves(l, in->a) || !holds_halves(l, in->b))) return false;
        if (in->kind != SMG_I_STORE) continue;
        if (l->k->buffers.items[l->k->accesses.items[in->a].buffer].type != SMG_TYPE_F16) return false;
    }
    return true;
}

void lower_type_factors(smg_kernel *k, const smg_instr *product) {
    bool matrices = k->tiles.items[product->dst].fragments != SMG_FRAGMENTS_NONE, halves = product->terms != 0;
    smg_tile *a = &k->tiles.items[product->a], *b = &k->tiles.items[product->b];
    if (a->residence != SMG_SHARED) return;
    smg_tile *whole = &k->tiles.items[smg_tile_home(k, product->a)];
    whole->type = a->type = b->type = matrices ? k->matrix.type : halves ? SMG_TYPE_F16 : SMG_TYPE_F32;
    whole->pad = matrices ? SMG_MATRIX_PAD : SMG_OPERAND_PAD;
    b->pad = matrices || halves ? SMG_MATRIX_PAD : SMG_OPERAND_PAD; /* rows of 16 bits begin with a group of eight */
}

static void set_partial(smg_kernel *k, int terms) {
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        in->terms = terms;
        lower_type_factors(k, in);
    }
}

smg_status lower_types(lowering *l) {
    lower_type_staging(l->k, l->target, SMG_TYPE_F16);
    if (may_be_partial(l)) set_partial(l->k, SMG_TERMS_OPEN);
    return SMG_OK;
}

/* The factors' neighbours lie as pairs are read. */
static bool lies_in_pairs(const smg_kernel *k, const smg_instr *product) {
    const smg_tile *a = &k->tiles.items[product->a], *b = &k->tiles.items[product->b];
    int rows = a->axis[a->axis_count - 1], columns = b->axis[b->axis_count - 1];
    return smg_kernel_owns_rows(k, product, rows) && smg_kernel_run_axis(k, product) == columns;
}

smg_status lower_pairs(lower_sized *l) {
    bool good = true;
    for (int i = 0; i < l->k->code.count && good; i++) {
        smg_instr *in = &l->k->code.items[i];
        if (in->kind != SMG_I_MMA || in->terms == 0) continue;
        if (l->k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_SUMS) { /* matrices sum up in f32 */
            in->terms = 0;
            continue;
        }
        int64_t depth = smg_kernel_product_depth(l->k, in);
        in->terms = depth < PARTIAL_TERMS ? (int)depth : PARTIAL_TERMS;
        good = in->terms >= LEAST_TERMS && lies_in_pairs(l->k, in);
        good = good && smg_kernel_partial_wrong(l->k, in, in->terms) == NULL;
    }
    bool partial = false;
    for (int i = 0; i < l->k->code.count; i++) partial = partial || l->k->code.items[i].terms != 0;
    if (partial && !good) set_partial(l->k, 0);
    return SMG_OK;
}
