/* Loops peeled. Where an axis does not come out even, every element of every step asks whether it is behind the end,
 * but only the last step has such elements. It becomes a loop of its own, and the others ask nothing. That is the body
 * twice: not for products, whose body is long and whose operands ask while they are staged, and not where cores have
 * nothing to wait for, as with even forms (lower_even.c). */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

#define LEAST_STEPS 2 /* whole ones, where their number is known: fewer are not worth a second body */

/* Instructions that the step behind the loop may repeat as they are: they read and write what is there, and nothing of
 * another step. */
static bool repeats(const smg_instr *in) {
    switch (in->kind) {
    case SMG_I_SET: return in->ahead == 0;
    case SMG_I_REDUCE:
    case SMG_I_JOIN:
    case SMG_I_STORE: return true;
    default: return false;
    }
}

/* Innermost loops over all steps of an uneven axis, which are not written out. */
static bool peels(const smg_kernel *k, int loop, int end) {
    const smg_instr *in = &k->code.items[loop];
    int64_t steps = LEAST_STEPS;
    if (in->range != NULL || in->unroll > 0 || smg_kernel_comes_out_even(k, in->axes[0], true)) return false;
    const smg_kaxis *axis = &k->axes.items[in->axes[0]];
    if (smg_size_is_const(k->sizes, axis->extent, &steps)) steps /= axis->tile;
    for (int i = loop + 1; i < end; i++)
        if (!repeats(&k->code.items[i])) return false;
    return steps >= LEAST_STEPS;
}

static smg_status peel(smg_kernel *k, int loop, int end) {
    smg_krange *range = SMG_ARENA_ARRAY(k->arena, smg_krange, 2);
    smg_expr cut = lower_size(k, smg_kernel_whole_extent(k, k->code.items[loop].axes[0]));
    if (range == NULL || cut == SMG_EXPR_NONE) return SMG_MEMORY;
    range[0] = (smg_krange){.from = SMG_EXPR_NONE, .to = cut};
    range[1] = (smg_krange){.from = cut, .to = SMG_EXPR_NONE};
    int length = end - loop + 1;
    for (int i = 0; i < length; i++) SMG_TRY(lower_insert(k, end + 1 + i, k->code.items[loop + i]));
    k->code.items[loop].range = &range[0];
    k->code.items[end + 1].range = &range[1];
    k->code.items[end + 1].note = "the step that is not whole";
    return SMG_OK;
}

smg_status lower_peel(lower_sized *l) {
    smg_kernel *k = l->k;
    int before = k->code.count;
    if (!smg_target_hides_loads(l->target)) return SMG_OK;
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].kind != SMG_I_LOOP) continue;
        int end = smg_kernel_loop_end(k, i);
        if (!peels(k, i, end)) continue;
        SMG_TRY(peel(k, i, end));
        i = 2 * end - i + 1; /* the END of what was added */
    }
    return k->code.count > before ? kernel_live_keep(k) : SMG_OK;
}
