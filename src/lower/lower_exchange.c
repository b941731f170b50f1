/* Exchanges. Once layouts say which lanes hold parts of a value, a reduction is three things: each lane folds what
 * it has itself, lanes of a subgroup join by the best operation that the target has, and subgroups tell each other
 * through words of shared memory. Barriers stand on both sides of the words; those that order nothing go later. */
#include <math.h>

#include "lower/lower_internal.h"

#define DIRECT_WORDS 64 /* that a lane reads at most; for more the units share out the adding */

typedef struct exchanging {
    lower_sized *l;
    SMG_ARRAY(smg_instr) code;
    int common; /* the exchange tile of all that are too large for words of their own; -1 */
} exchanging;

static smg_status push(exchanging *x, smg_instr in) {
    smg_instr *slot = SMG_ARRAY_PUSH(x->l->arena, &x->code);
    if (slot == NULL) return SMG_MEMORY;
    *slot = in;
    return SMG_OK;
}

#define SOME_EXCHANGES 24 /* instructions more than before: room for most programs */

static smg_status push_barrier(exchanging *x) {
    return push(x, lower_blank(SMG_I_BARRIER));
}

/* The instruction's exchange as one of another kind. */
static smg_instr exchange_of(const smg_instr *in, smg_instr_kind kind, int tile) {
    smg_instr out = lower_blank(kind);
    out.dst = tile;
    out.combine = in->combine;
    out.layout = in->layout;
    out.axis_count = in->axis_count;
    memcpy(out.axes, in->axes, sizeof out.axes);
    return out;
}

static int add_tile(exchanging *x, const smg_tile *tile) {
    smg_kernel *k = x->l->k;
    smg_tile *slot = SMG_ARRAY_PUSH(x->l->arena, &k->tiles);
    if (slot == NULL) return -1;
    *slot = *tile;
    slot->name = smg_arena_numbered(x->l->arena, tile->name, k->tiles.count - 1);
    return slot->name != NULL ? k->tiles.count - 1 : -1;
}

/* Small ones have words of their own, which saves the barrier behind them; large ones share the largest. */
static int words_for(exchanging *x, smg_kind kind, int64_t words) {
    smg_kernel *k = x->l->k;
    smg_tile tile = {
        .name = "x", .type = smg_kind_type(kind), .residence = SMG_EXCHANGE, .layout = -1, .words = (int)words};
    bool large = words > k->lanes && kind == SMG_KIND_FLOAT;
    if (!large) return add_tile(x, &tile);
    if (x->common < 0) x->common = add_tile(x, &tile);
    if (x->common >= 0 && k->tiles.items[x->common].words < words) k->tiles.items[x->common].words = (int)words;
    return x->common;
}

/* What most drivers make of an operation of neighbouring lanes is slower than exchanges bit by bit, and takes more
 * registers; one of the whole subgroup some of them have in hardware (decision 0021). */
static smg_join form_of(const lower_sized *l, uint32_t lanes) {
    const smg_target *t = l->target;
    bool neighbours = (lanes & (lanes + 1)) == 0;
    if (lanes == (uint32_t)l->k->subgroup - 1 && t->subgroup_arithmetic) return SMG_JOIN_WHOLE;
    if (t->subgroup_shuffle) return SMG_JOIN_XOR;
    return neighbours && t->subgroup_clustered ? SMG_JOIN_CLUSTERED : SMG_JOIN_OPEN;
}

int64_t smg_exchange_turn(int64_t words, int64_t parts, int64_t all) {
    int64_t bytes = SMG_EXCHANGE_BYTES, most = bytes / (4 * words);
    if (most < parts && 4 * words * parts <= 2 * bytes) most = parts;
    if (most < 1) most = 1;
    return most < all ? most : all;
}

/* One turn of registers: left, folded where that saves reads, gathered; share: into that tile, a share each. */
static smg_status take_turn(exchanging *x, const smg_instr *join, const smg_exchange *e, int words, int first,
                            int registers, int share) {
    smg_instr leave = exchange_of(join, SMG_I_LEAVE, words), fold = exchange_of(join, SMG_I_FOLD, words);
    smg_instr gather = exchange_of(join, SMG_I_GATHER, join->dst);
    leave.a = join->dst;
    gather.a = words;
    leave.first = fold.first = gather.first = first;
    leave.registers = fold.registers = gather.registers = registers;
    SMG_TRY(push(x, leave));
    SMG_TRY(push_barrier(x));
    if (share >= 0) {
        gather.dst = share;
        gather.b = join->dst;
        gather.first /= (int)e->part_count;
        gather.registers /= (int)e->part_count;
    } else if (registers > 1 && registers * e->part_count > DIRECT_WORDS) {
        SMG_TRY(push(x, fold));
        SMG_TRY(push_barrier(x));
        gather.folded = true;
    }
    SMG_TRY(push(x, gather));
    return push_barrier(x);
}

/* at: of a JOIN of the program; -1. */
static smg_status across_subgroups(exchanging *x, const smg_instr *join, const smg_exchange *e, int at) {
    const smg_tile *tile = &x->l->k->tiles.items[join->dst];
    smg_kind kind = smg_tile_kind(tile);
    int64_t all = smg_tile_registers(x->l->k, tile);
    bool shares = at >= 0 && x->l->k->matrix.rows > 0; /* lower_deal.c */
    int64_t most = smg_exchange_turn(e->units, shares ? e->part_count : 1, all);
    int words = words_for(x, kind, smg_exchange_word(e, (int)most, 0)), share = -1;
    if (words < 0) return SMG_MEMORY;
    if (at >= 0) SMG_TRY(lower_deal(x->l, at, (int)most, &share));
    for (int64_t first = 0; first < all; first += most) {
        int64_t registers = all - first < most ? all - first : most;
        SMG_TRY(take_turn(x, join, e, words, (int)first, (int)registers, share));
    }
    return SMG_OK;
}

/* Parts of a tile become whole: in subgroups, then across them. */
static smg_status join_parts(exchanging *x, const smg_instr *in, int at) {
    smg_exchange e = smg_kernel_exchange(x->l->k, in);
    smg_instr join = *in;
    if (e.joined != 0) {
        join.form = form_of(x->l, e.joined);
        if (join.form == SMG_JOIN_OPEN) {
            x->l->refused = "lanes of a subgroup would join, the device has no such operations";
            return SMG_OK;
        }
        SMG_TRY(push(x, join));
    }
    return e.parts != 0 ? across_subgroups(x, &join, &e, at) : SMG_OK;
}

/* The constant factor above 0 of a product; *out_rest: what it is taken out of. 0: there is none. */
static double factor_of(const smg_exprs *pool, smg_expr expr, smg_expr *out_rest) {
    const smg_expr_node *n = smg_expr_get(pool, expr);
    for (int i = 0; i < 2 && n->prim == SMG_PRIM_MUL; i++) {
        const smg_expr_node *c = smg_expr_get(pool, n->arg[i]);
        *out_rest = n->arg[1 - i];
        if (c->prim == SMG_PRIM_CONST && c->value > 0 && isfinite(c->value)) return c->value;
    }
    return 0;
}

/* Rounding keeps order: of products by one factor the greatest is that of the greatest. Beside matrices each operation
 * on an element of their sums counts, and the other uses of the product join it with what follows. Returns the factor
 * that is left out of what is folded; 0: none. */
static double fold_unscaled(const exchanging *x, smg_instr *fold) {
    bool ordered = fold->combine == SMG_COMBINE_MAX || fold->combine == SMG_COMBINE_MIN;
    smg_expr rest = SMG_EXPR_NONE;
    if (!ordered || x->l->k->matrix.rows == 0) return 0;
    double factor = factor_of(x->l->k->exprs, fold->expr, &rest);
    if (factor != 0) fold->expr = rest;
    return factor;
}

/* dst = combine(dst, parts), once these are whole; the parts times their factor, if one was left out. */
static smg_status accumulate(exchanging *x, int dst, int parts, double factor, const smg_instr *in) {
    smg_kernel *k = x->l->k;
    smg_expr before = lower_tile_element(k, dst), made = lower_tile_element(k, parts);
    if (before == SMG_EXPR_NONE || made == SMG_EXPR_NONE) return SMG_MEMORY;
    if (factor != 0)
        made = smg_expr_make(k->exprs, SMG_PRIM_MUL, made, smg_expr_const(k->exprs, SMG_KIND_FLOAT, factor),
                             SMG_EXPR_NONE);
    if (made == SMG_EXPR_NONE) return SMG_MEMORY;
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = dst;
    set.expr = smg_expr_make(k->exprs, smg_combine_prim(in->combine), before, made, SMG_EXPR_NONE);
    set.note = in->note;
    return set.expr != SMG_EXPR_NONE ? push(x, set) : SMG_MEMORY;
}

/* What lanes hold apart is joined behind the reduction; what was there before is added once, to the whole. */
static smg_status split_reduce(exchanging *x, const smg_instr *in) {
    smg_kernel *k = x->l->k;
    smg_exchange e = smg_kernel_exchange(k, in);
    if (in->apart || (e.joined | e.parts) == 0) return push(x, *in);
    smg_instr fold = *in;
    double factor = 0;
    fold.apart = true;
    if (in->accumulate) {
        smg_tile parts = k->tiles.items[in->dst];
        parts.name = "part";
        fold.accumulate = false;
        factor = fold_unscaled(x, &fold);
        fold.dst = add_tile(x, &parts);
        if (fold.dst < 0) return SMG_MEMORY;
    }
    SMG_TRY(push(x, fold));
    smg_instr join = exchange_of(in, SMG_I_JOIN, fold.dst);
    join.note = "between lanes";
    SMG_TRY(join_parts(x, &join, -1));
    return in->accumulate ? accumulate(x, in->dst, fold.dst, factor, in) : SMG_OK;
}

smg_status lower_exchange(lower_sized *l) {
    exchanging x = {.l = l, .common = -1};
    smg_kernel *k = l->k;
    if (!SMG_ARRAY_RESERVE(l->arena, &x.code, k->code.count + SOME_EXCHANGES)) return SMG_MEMORY;
    for (int i = 0; i < k->code.count && l->refused == NULL; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_REDUCE)
            SMG_TRY(split_reduce(&x, in));
        else if (in->kind == SMG_I_JOIN && in->form == SMG_JOIN_OPEN)
            SMG_TRY(join_parts(&x, in, i));
        else
            SMG_TRY(push(&x, *in));
    }
    if (l->refused != NULL) return SMG_OK;
    k->code.items = x.code.items;
    k->code.count = x.code.count;
    k->code.capacity = x.code.capacity;
    return SMG_OK;
}

smg_status smg_kernel_exchange_lanes(smg_kernel *k, const smg_target *target) {
    lower_sized l = {.ctx = smg_arena_context(k->arena), .arena = k->arena, .k = k, .target = target};
    SMG_TRY(lower_exchange(&l));
    if (l.refused == NULL) return lower_barriers(&l);
    return smg_fail(l.ctx, SMG_INVALID, "kernel '%s': %s", k->name, l.refused);
}
