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

/* ---- conditions of parts ------------------------------------------------------------------------- */

/* Is it true of every element where a size is a multiple of the part of it that an axis numbers? Of parts the last one
 * may be cut off, and that is all that the condition asks. */
static bool asks_for_parts(smg_kernel *k, smg_expr condition, smg_even *out) {
    const smg_affine_scope scope = lower_scope(k);
    const smg_affine_value truth = lower_known(k, condition);
    if (!truth.known || truth.cut_count > 0) return false;
    for (int i = 0; i < truth.form.count; i++) {
        smg_affine rest = truth.form;
        int axis = rest.term[i].index;
        smg_size by = smg_size_mul(k->sizes, rest.term[i].by, smg_size_const(k->sizes, -1)), low, high;
        int64_t part, least;
        if (!smg_size_is_const(k->sizes, by, &part) || part < 2) continue;
        *out = (smg_even){.size = smg_size_add(k->sizes, rest.begin, smg_size_const(k->sizes, 1)), .by = part};
        if (smg_size_ceil_div(k->sizes, out->size, by) != k->axes.items[axis].extent) continue;
        smg_affine_take(&rest, axis);
        rest.begin = SMG_SIZE_ZERO;
        if (smg_affine_bounds(&scope, &rest, NULL, &low, &high) && smg_size_is_const(k->sizes, low, &least))
            return least > -part;
    }
    return false;
}

static smg_status add_sure(smg_kernel *k, smg_expr condition, smg_even even) {
    SMG_TRY(add(k, even));
    if (!is_known(k, even) || k->evens.count == 0) return SMG_OK; /* no room for so many sizes; or no such form */
    smg_expr *slot = SMG_ARRAY_PUSH(k->arena, &k->sure);
    if (slot == NULL) return SMG_MEMORY;
    *slot = condition;
    return SMG_OK;
}

/* Comparisons that the program has, of expressions that share parts each once: ids ascend from leaves to roots. */
static smg_status add_conditions(smg_kernel *k) {
    int count = smg_expr_count(k->exprs);
    bool *met = SMG_ARENA_ARRAY(k->arena, bool, (size_t)count + 1);
    if (met == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].expr != SMG_EXPR_NONE) met[k->code.items[i].expr] = true;
    for (int i = 0; i < k->accesses.count; i++)
        if (k->accesses.items[i].index != SMG_EXPR_NONE) met[k->accesses.items[i].index] = true;
    for (smg_expr e = count - 1; e >= 0; e--) {
        if (!met[e]) continue;
        const smg_expr_node *n = smg_expr_get(k->exprs, e);
        bool compares = n->prim == SMG_PRIM_LT || n->prim == SMG_PRIM_LE;
        smg_even even;
        if (compares && asks_for_parts(k, e, &even)) SMG_TRY(add_sure(k, e, even));
        for (int i = 0; i < smg_prim_arity(n->prim); i++) met[n->arg[i]] = true;
    }
    return SMG_OK;
}

smg_status smg_kernel_find_evens(smg_kernel *k, const smg_target *target) {
    if (!smg_target_hides_loads(target)) return SMG_OK;
    for (int a = 0; a < k->axes.count; a++) {
        const smg_kaxis *axis = &k->axes.items[a];
        if (axis->tile > 1 && is_stepped(k, a)) SMG_TRY(add(k, (smg_even){.size = axis->extent, .by = axis->tile}));
    }
    for (int i = 0; i < k->code.count; i++) SMG_TRY(add_groups(k, &k->code.items[i]));
    return add_conditions(k);
}
