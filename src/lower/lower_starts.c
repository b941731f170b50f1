/* Starts. What is added to sums by matrices once they are complete, and lies in memory as they do, is what they start
 * with: it is loaded whole, and on its way together with the first slices. Behind the loop each of its elements would
 * be a load of its own, waited for while there is nothing else to do. */
#include "lower/lower_internal.h"

enum { SEVERAL = 2 };

/* How often the expression adds the leaf to the rest of itself; SEVERAL: more than once, or it is read otherwise. */
static int times_added(const smg_exprs *pool, smg_expr in, smg_expr leaf) {
    const smg_expr_node *n = smg_expr_get(pool, in);
    int times = in == leaf;
    for (int i = 0; i < smg_prim_arity(n->prim); i++) {
        int inside = times_added(pool, n->arg[i], leaf);
        times += n->prim == SMG_PRIM_ADD || inside == 0 ? inside : SEVERAL;
    }
    return times < SEVERAL ? times : SEVERAL;
}

typedef struct term_seek {
    const smg_kernel *k;
    smg_instr start;
    smg_expr sums; /* their elements, of which the first reader was found */
    smg_expr load; /* what they may start with; SMG_EXPR_NONE */
    smg_expr value;
} term_seek;

static void seek_sums(void *user, int leaf) {
    term_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE && f->index == s->start.dst) s->sums = smg_expr_leaf(s->k->exprs, f->kind, leaf);
}

static void seek_term(void *user, int leaf) {
    term_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || s->load != SMG_EXPR_NONE) return;
    smg_wide wide;
    int row;
    s->start.expr = smg_expr_leaf(s->k->exprs, f->kind, leaf);
    if (smg_kernel_whole_matrices(s->k, &s->start, &wide, &row) &&
        times_added(s->k->exprs, s->value, s->start.expr) == 1)
        s->load = s->start.expr;
}

/* The store that alone reads the sums, which otherwise only products add to, all of it in front of the loops or behind
 * them; -1. */
static int store_of(const smg_kernel *k, int start, smg_expr *out_sums) {
    int tile = k->code.items[start].dst, store = -1, depth = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        depth += (in->kind == SMG_I_LOOP) - (in->kind == SMG_I_END);
        if (i == start) continue;
        term_seek s = {.k = k, .start = {.dst = tile}, .sums = SMG_EXPR_NONE};
        if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(k, in->expr, seek_sums, &s);
        bool reads = s.sums != SMG_EXPR_NONE, moves = smg_instr_reads_a(in) && in->a == tile;
        if (moves || (in->dst == tile && in->kind != SMG_I_MMA)) return -1;
        if (reads && (in->kind != SMG_I_STORE || depth > 0 || store >= 0)) return -1;
        if (!reads) continue;
        store = i;
        *out_sums = s.sums;
    }
    return store;
}

static bool starts_with_nothing(const smg_kernel *k, const smg_instr *in) {
    if (in->kind != SMG_I_SET || k->tiles.items[in->dst].fragments != SMG_FRAGMENTS_SUMS) return false;
    const smg_expr_node *n = smg_expr_get(k->exprs, in->expr);
    return n->prim == SMG_PRIM_CONST && n->value >= 0 && n->value <= 0;
}

/* Behind the loads of first slices, which need not wait for it. */
static void move_behind_loads(smg_kernel *k, int start) {
    const smg_instr moved = k->code.items[start];
    int to = start + 1;
    for (; to < k->code.count; to++) {
        smg_instr_kind kind = k->code.items[to].kind;
        if (kind != SMG_I_SET && kind != SMG_I_FETCH) break;
    }
    memmove(&k->code.items[start], &k->code.items[start + 1], (size_t)(to - 1 - start) * sizeof moved);
    k->code.items[to - 1] = moved;
}

/* *out_moved: another instruction is at `start` now. */
static smg_status start_with_term(smg_kernel *k, int start, bool *out_moved) {
    smg_expr sums = SMG_EXPR_NONE;
    *out_moved = false;
    int store = store_of(k, start, &sums);
    if (store < 0) return SMG_OK;
    smg_instr *from = &k->code.items[start], *to = &k->code.items[store];
    if (times_added(k->exprs, to->expr, sums) != 1) return SMG_OK;
    term_seek s = {.k = k, .start = *from, .load = SMG_EXPR_NONE, .value = to->expr};
    smg_kernel_leaves(k, to->expr, seek_term, &s);
    if (s.load == SMG_EXPR_NONE) return SMG_OK;
    smg_expr nothing = smg_expr_const(k->exprs, SMG_KIND_FLOAT, 0);
    from->expr = s.load;
    from->note = "what is added to the sums";
    to->expr = nothing == SMG_EXPR_NONE ? nothing : lower_replace(k->exprs, to->expr, s.load, nothing);
    if (to->expr == SMG_EXPR_NONE) return SMG_MEMORY;
    move_behind_loads(k, start);
    *out_moved = true;
    return SMG_OK;
}

smg_status lower_starts(lower_sized *l) {
    smg_kernel *k = l->k;
    if (!smg_target_hides_loads(l->target) || k->matrix.rows == 0 || k->matrix.opaque) return SMG_OK;
    if (l->s->lane_depth > 1) return SMG_OK; /* each of the parts would start with it */
    int i = 0;
    while (i < k->code.count && k->code.items[i].kind != SMG_I_LOOP) {
        bool moved = false;
        if (starts_with_nothing(k, &k->code.items[i])) SMG_TRY(start_with_term(k, i, &moved));
        i += !moved;
    }
    return SMG_OK;
}
