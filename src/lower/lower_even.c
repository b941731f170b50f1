/* Even forms. Most checks of an element ask whether the last tile of an axis is a whole one, or whether a row begins
 * with an aligned group. The sizes of a run answer that once for all elements, so the program names what they must be
 * multiples of, and gets a second form without these checks. Not where a core has nothing to wait for: checks cost
 * little there, and a second pipeline costs its building. */
#include "lower/lower_internal.h"

static bool is_known(const smg_kernel *k, smg_even even) {
    smg_size quotient;
    if (smg_size_is_const(k->sizes, even.size, NULL)) return true;
    if (smg_size_divide_exact(k->sizes, even.size, smg_size_const(k->sizes, even.by), &quotient)) return true;
    for (int i = 0; i < k->evens.count; i++)
        if (k->evens.items[i].size == even.size && k->evens.items[i].by % even.by == 0) return true;
    return false;
}

static smg_status add(smg_kernel *k, smg_even even) {
    if (is_known(k, even) || k->evens.count == SMG_KERNEL_EVENS) return SMG_OK;
    smg_even *slot = SMG_ARRAY_PUSH(k->arena, &k->evens);
    if (slot == NULL) return SMG_MEMORY;
    *slot = even;
    return SMG_OK;
}

/* Is the axis taken tile by tile? A tile that covers its axis may be larger than it. */
static bool is_stepped(const smg_kernel *k, int axis) {
    bool stepped = k->axes.items[axis].grid;
    for (int i = 0; i < k->code.count; i++)
        stepped = stepped || (k->code.items[i].kind == SMG_I_LOOP && k->code.items[i].axes[0] == axis);
    return stepped;
}

/* What the instruction stores, loads, or multiplies where it lies; -1. */
static int access_of(const smg_kernel *k, const smg_instr *in) {
    if (in->kind == SMG_I_STORE) return in->a;
    if (in->kind == SMG_I_SET) return smg_kernel_plain_load(k, in->expr);
    return in->kind == SMG_I_MMA && k->tiles.items[in->a].residence == SMG_VIEW ? k->tiles.items[in->a].access : -1;
}

/* The groups of what the instruction loads or stores. */
static smg_status add_groups(smg_kernel *k, const smg_instr *in) {
    smg_size asked[SMG_ACCESS_AXES + 2];
    int access = access_of(k, in);
    if (in->wide[0].width == 0 || access < 0) return SMG_OK;
    int count = smg_access_asked(k, access, in->wide[0], asked);
    for (int i = 0; i < count; i++) SMG_TRY(add(k, (smg_even){.size = asked[i], .by = in->wide[0].width}));
    return SMG_OK;
}

smg_status smg_kernel_find_evens(smg_kernel *k, const smg_target *target) {
    if (!smg_target_hides_loads(target)) return SMG_OK;
    for (int a = 0; a < k->axes.count; a++) {
        const smg_kaxis *axis = &k->axes.items[a];
        if (axis->tile > 1 && is_stepped(k, a)) SMG_TRY(add(k, (smg_even){.size = axis->extent, .by = axis->tile}));
    }
    for (int i = 0; i < k->code.count; i++) SMG_TRY(add_groups(k, &k->code.items[i]));
    return SMG_OK;
}
