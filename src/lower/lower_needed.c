/* Blocks of which nothing is wanted. What a loop leaves behind may be read under a condition only: rows behind the
 * length of their batch are 0, whatever the loop would give for them. Where the condition fails for all elements of a
 * workgroup, the loop need not run at all. The program behind it is run over expressions with the condition's value put
 * in: no result that is stored may read what the loop has written. */
#include "lower/lower_internal.h"

typedef struct needed {
    lowering *l;
    smg_expr condition;
    bool value;
    bool *loose; /* by tile: the loop may have written it, or what it was made of */
    bool found;
    smg_expr *memo; /* by expression: with the condition's value put in */
    int known;      /* expressions in memo */
} needed;

static smg_expr make(const needed *n, smg_prim prim, smg_expr x, smg_expr y) {
    return smg_expr_make(n->l->k->exprs, prim, x, y, SMG_EXPR_NONE);
}

static smg_expr number(const needed *n, double value) {
    return smg_expr_const(n->l->k->exprs, SMG_KIND_INT, value);
}

/* ---- is the loop's work read where the condition has the value? ------------------------------------------- */

static smg_expr put_in(const needed *n, smg_expr expr) {
    smg_exprs *pool = n->l->k->exprs;
    if (expr == n->condition) return smg_expr_const(pool, SMG_KIND_BOOL, n->value);
    if (expr < n->known && n->memo[expr] != SMG_EXPR_NONE) return n->memo[expr];
    smg_expr_node node = *smg_expr_get(pool, expr);
    smg_expr x[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE}, value = expr;
    for (int i = 0; i < smg_prim_arity(node.prim); i++) {
        x[i] = put_in(n, node.arg[i]);
        if (x[i] == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    }
    if (smg_prim_arity(node.prim) > 0) value = smg_expr_make(pool, node.prim, x[0], x[1], x[2]);
    if (expr < n->known) n->memo[expr] = value;
    return value;
}

static void seek_loose(void *user, int leaf) {
    needed *n = user;
    const smg_kleaf *f = &n->l->k->leaves.items[leaf];
    n->found = n->found || (f->what == SMG_KLEAF_TILE && n->loose[f->index]);
}

static bool is_loose(needed *n, smg_expr expr) {
    smg_expr now = put_in(n, expr);
    if (now == SMG_EXPR_NONE) return true;
    n->found = false;
    smg_kernel_leaves(n->l->k, now, seek_loose, n);
    return n->found;
}

/* Does nothing of what was in the tile stay? */
static bool writes_anew(const smg_instr *in) {
    switch (in->kind) {
    case SMG_I_SET:
    case SMG_I_STAGE:
    case SMG_I_SPILL: return true;
    case SMG_I_REDUCE: return !in->accumulate;
    default: return false;
    }
}

/* What the instruction writes reads the loop's work. */
static bool writes_loose(needed *n, const smg_instr *in) {
    bool loose = in->expr != SMG_EXPR_NONE && is_loose(n, in->expr);
    loose = loose || (in->dst >= 0 && !writes_anew(in) && n->loose[in->dst]);
    loose = loose || (smg_instr_reads_a(in) && n->loose[in->a]);
    return loose || (in->kind == SMG_I_MMA && n->loose[in->b]);
}

static int count_loose(const needed *n) {
    int count = 0;
    for (int t = 0; t < n->l->k->tiles.count; t++) count += n->loose[t];
    return count;
}

/* In a loop a tile stays loose once some step has made it so. */
static bool stores_loose(needed *n, int from, int to, bool looped) {
    const smg_kernel *k = n->l->k;
    for (int at = from; at < to; at++) {
        const smg_instr *in = &k->code.items[at];
        if (in->kind == SMG_I_LOOP) {
            int end = smg_kernel_loop_end(k, at);
            for (int before = -1; before != count_loose(n);) {
                before = count_loose(n);
                if (stores_loose(n, at + 1, end, true)) return true;
            }
            at = end;
            continue;
        }
        bool loose = writes_loose(n, in);
        if (in->kind == SMG_I_STORE) {
            smg_expr index = k->accesses.items[in->a].index;
            if (loose || (index != SMG_EXPR_NONE && is_loose(n, index))) return true;
        } else if (in->dst >= 0) {
            n->loose[in->dst] = loose || (looped && n->loose[in->dst]);
        }
    }
    return false;
}

static bool is_wanted(needed *n, int loop, int end) {
    const smg_kernel *k = n->l->k;
    for (int t = 0; t < k->tiles.count; t++) n->loose[t] = false;
    for (int i = loop; i < end; i++) {
        if (k->code.items[i].kind == SMG_I_STORE) return true;
        if (k->code.items[i].dst >= 0) n->loose[k->code.items[i].dst] = true;
    }
    return stores_loose(n, end + 1, k->code.count, false);
}

/* ---- where may the condition hold? -------------------------------------------------------------------------- */

/* Above 0 for some element of the workgroup, if the condition is `want` for one. SMG_EXPR_NONE: nothing says so. */
static smg_expr hope(const needed *n, int loop, smg_expr condition, bool want) {
    smg_expr_node node = *smg_expr_get(n->l->k->exprs, condition);
    smg_expr x = node.arg[0], y = node.arg[1];
    if (node.prim == SMG_PRIM_NOT) return hope(n, loop, x, !want);
    if (node.prim == SMG_PRIM_AND || node.prim == SMG_PRIM_OR) {
        smg_expr a = hope(n, loop, x, want), b = hope(n, loop, y, want);
        bool both = (node.prim == SMG_PRIM_AND) == want;
        if (a == SMG_EXPR_NONE || b == SMG_EXPR_NONE) return !both ? SMG_EXPR_NONE : a == SMG_EXPR_NONE ? b : a;
        return make(n, both ? SMG_PRIM_MIN : SMG_PRIM_MAX, a, b);
    }
    bool order = node.prim == SMG_PRIM_LT || node.prim == SMG_PRIM_LE;
    if (!order || smg_expr_get(n->l->k->exprs, x)->kind != SMG_KIND_INT) return SMG_EXPR_NONE;
    smg_expr above = want ? make(n, SMG_PRIM_SUB, y, x) : make(n, SMG_PRIM_SUB, x, y);
    bool touches = (node.prim == SMG_PRIM_LE) == want;
    if (touches) above = make(n, SMG_PRIM_ADD, above, number(n, 1));
    return lower_tellable(n->l, loop, above) ? above : SMG_EXPR_NONE;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

smg_status lower_needed(lowering *l, int loop, const smg_expr *conditions, int count, smg_expr *io_end) {
    int end = smg_kernel_loop_end(l->k, loop);
    needed n = {.l = l, .known = smg_expr_count(l->k->exprs)};
    if (count == 0 || smg_kernel_loop_around(l->k, loop) >= 0) return SMG_OK;
    n.loose = SMG_ARENA_ARRAY(l->arena, bool, (size_t)l->k->tiles.count + 1);
    n.memo = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)n.known + 1);
    if (n.loose == NULL || n.memo == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        for (int value = 0; value < 2; value++) {
            n.condition = conditions[i];
            n.value = value != 0;
            for (int e = 0; e < n.known; e++) n.memo[e] = SMG_EXPR_NONE;
            smg_expr above = hope(&n, loop, n.condition, !n.value);
            if (above == SMG_EXPR_NONE || is_wanted(&n, loop, end)) continue;
            smg_expr some = make(&n, SMG_PRIM_MIN, make(&n, SMG_PRIM_MAX, above, number(&n, 0)), number(&n, 1));
            some = make(&n, SMG_PRIM_MUL, some, number(&n, INT32_MAX));
            *io_end = *io_end == SMG_EXPR_NONE ? some : make(&n, SMG_PRIM_MIN, *io_end, some);
            lower_tell_needed(l, loop, n.condition, n.value);
        }
    }
    return smg_context_status(l->ctx);
}
