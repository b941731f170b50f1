/* Maxima in the units of exponents. Beside matrices each operation on an element of their sums counts. Where a running
 * maximum is read for nothing but exponentials of distances to it, it is kept times log2 e: exp(x * c - m) becomes
 * exp2(x * c' - m'), one multiply-add and one operation of the device, and what is folded is x alone
 * (lower_exchange.c). A number that stands for what is masked, far beyond all products, becomes a power of two in this
 * place, whose products are exact: where a row has nothing but masked elements its distances stay 0. */
#include <float.h>
#include <math.h>

#include "lower/lower_internal.h"

#define LOG2_E 1.4426950408889634
#define MOST_FACTOR 0x1p20 /* of sums */
#define BEYOND 0x1p65      /* above all products (lower_neutral.c) */
#define MOST_BITS 100      /* of what is masked: its products are finite */

typedef struct units {
    const lowering *l;
    bool *in;          /* by tile: kept in units of exponents */
    smg_axis_set axes; /* of what the maximum is taken of */
    bool wrong;
    int exponentials;
} units;

static const smg_expr_node *node_of(const units *u, smg_expr e) {
    return smg_expr_get(u->l->k->exprs, e);
}

/* The tile that the expression is; -1. */
static int tile_of(const units *u, smg_expr e) {
    const smg_expr_node *n = node_of(u, e);
    if (n->prim != SMG_PRIM_LEAF) return -1;
    const smg_kleaf *leaf = &u->l->k->leaves.items[n->leaf];
    return leaf->what == SMG_KLEAF_TILE ? leaf->index : -1;
}

static bool is_in(const units *u, smg_expr e) {
    int tile = tile_of(u, e);
    return tile >= 0 && u->in[tile];
}

static bool contains(const units *u, smg_expr e) {
    const smg_expr_node n = *node_of(u, e);
    bool found = is_in(u, e);
    for (int i = 0; i < smg_prim_arity(n.prim) && !found; i++) found = contains(u, n.arg[i]);
    return found;
}

static bool is_product(const units *u, smg_expr e) {
    int tile = tile_of(u, e);
    for (int i = 0; tile >= 0 && i < u->l->k->code.count; i++)
        if (u->l->k->code.items[i].kind == SMG_I_MMA && u->l->k->code.items[i].dst == tile) return true;
    return false;
}

/* As lanes have it: with more bits its product by a power of two would not be exact. */
static smg_expr number(const units *u, double value) {
    return smg_expr_const(u->l->k->exprs, SMG_KIND_FLOAT, (double)(float)value);
}

static smg_expr times(const units *u, smg_expr e, double factor) {
    return smg_expr_make(u->l->k->exprs, SMG_PRIM_MUL, e, number(u, factor), SMG_EXPR_NONE);
}

/* Sums of a product and their constant factor; false where it is something else. */
static bool scaled_sums(const units *u, smg_expr e, smg_expr *out_sums, double *out_factor) {
    const smg_expr_node n = *node_of(u, e);
    *out_sums = e;
    *out_factor = 1;
    if (is_product(u, e)) return true;
    for (int i = 0; i < 2 && n.prim == SMG_PRIM_MUL; i++) {
        const smg_expr_node *c = node_of(u, n.arg[i]);
        if (c->prim != SMG_PRIM_CONST || !(c->value > 0) || !is_product(u, n.arg[1 - i])) continue;
        *out_sums = n.arg[1 - i];
        *out_factor = c->value;
        return c->value <= MOST_FACTOR;
    }
    return false;
}

static smg_expr in_units(units *u, smg_expr e);

/* A choice between sums and what is far beyond them: a choice of the sums, times their factor. */
static smg_expr choice(units *u, const smg_expr_node *n) {
    smg_expr sums, arm[3] = {n->arg[0], n->arg[1], n->arg[2]};
    double factor;
    u->wrong = u->wrong || contains(u, arm[0]);
    for (int i = 1; i <= 2; i++) {
        const smg_expr_node *masked = node_of(u, arm[3 - i]);
        if (masked->prim != SMG_PRIM_CONST || !isfinite(masked->value) || !scaled_sums(u, arm[i], &sums, &factor) ||
            fabs(masked->value) / factor < BEYOND)
            continue;
        double bits = fmin(floor(log2(fabs(masked->value) / factor)), MOST_BITS);
        arm[3 - i] = number(u, copysign(exp2(bits), masked->value));
        arm[i] = sums;
        return times(u, smg_expr_make(u->l->k->exprs, SMG_PRIM_SELECT, arm[0], arm[1], arm[2]), factor * LOG2_E);
    }
    for (int i = 1; i <= 2; i++) arm[i] = in_units(u, arm[i]);
    return smg_expr_make(u->l->k->exprs, SMG_PRIM_SELECT, arm[0], arm[1], arm[2]);
}

/* What is added to sums for all rows alike, as a mask is. Beyond the largest number it stays itself, as numbers do. */
static smg_expr term_in_units(units *u, smg_expr e) {
    smg_exprs *pool = u->l->k->exprs;
    smg_expr scaled = times(u, e, LOG2_E), most = number(u, FLT_MAX);
    smg_expr size = smg_expr_make(pool, SMG_PRIM_ABS, scaled, SMG_EXPR_NONE, SMG_EXPR_NONE);
    smg_expr within = smg_expr_make(pool, SMG_PRIM_LE, size, most, SMG_EXPR_NONE);
    return smg_expr_make(pool, SMG_PRIM_SELECT, within, scaled, e);
}

/* Nothing in it is read along all that the maximum is taken of, so that its change costs little. */
static bool is_term(const units *u, smg_expr e) {
    return !contains(u, e) && (u->axes & ~lower_expr_axes(u->l, e)) != 0;
}

static double constant_in_units(double value) {
    return fabs(value * LOG2_E) <= FLT_MAX ? value * LOG2_E : value; /* the least number stays it */
}

/* The expression times log2 e; u->wrong where that is not to be had. */
static smg_expr in_units(units *u, smg_expr e) {
    const smg_expr_node n = *node_of(u, e);
    smg_expr sums, arg[2] = {SMG_EXPR_NONE, SMG_EXPR_NONE};
    double factor;
    if (is_in(u, e)) return e;
    if (n.prim == SMG_PRIM_CONST) return number(u, constant_in_units(n.value));
    if (scaled_sums(u, e, &sums, &factor)) return times(u, sums, factor * LOG2_E);
    if (n.prim == SMG_PRIM_SELECT) return choice(u, &n);
    bool adds = n.prim == SMG_PRIM_ADD || n.prim == SMG_PRIM_SUB || n.prim == SMG_PRIM_NEG;
    if (!adds && is_term(u, e)) return term_in_units(u, e);
    u->wrong = u->wrong || !adds;
    for (int i = 0; adds && i < smg_prim_arity(n.prim); i++) arg[i] = in_units(u, n.arg[i]);
    return adds ? smg_expr_make(u->l->k->exprs, n.prim, arg[0], arg[1], SMG_EXPR_NONE) : e;
}

/* The same with its exponentials of distances made exp2. */
static smg_expr rewritten(units *u, smg_expr e) {
    const smg_expr_node n = *node_of(u, e);
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (!contains(u, e)) return e;
    u->wrong = u->wrong || n.prim == SMG_PRIM_LEAF; /* read for something else */
    if (n.prim == SMG_PRIM_EXP) {
        u->exponentials++;
        return smg_expr_make(u->l->k->exprs, SMG_PRIM_EXP2, in_units(u, n.arg[0]), SMG_EXPR_NONE, SMG_EXPR_NONE);
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++) arg[i] = rewritten(u, n.arg[i]);
    return n.prim == SMG_PRIM_LEAF ? e : smg_expr_make(u->l->k->exprs, n.prim, arg[0], arg[1], arg[2]);
}

/* What writes a tile that is kept so: another such tile, or what has none in it; as it is or as a maximum. */
static smg_expr written(units *u, const smg_instr *in) {
    bool maximum = in->kind == SMG_I_REDUCE && in->combine == SMG_COMBINE_MAX;
    bool good = (maximum || in->kind == SMG_I_SET) && in->expr != SMG_EXPR_NONE;
    u->wrong = u->wrong || !good || (contains(u, in->expr) && !is_in(u, in->expr));
    return u->wrong ? in->expr : in_units(u, in->expr);
}

static bool touches(const units *u, const smg_instr *in) {
    bool reads_b = in->kind == SMG_I_MMA && u->in[in->b];
    return reads_b || (smg_instr_reads_a(in) && u->in[in->a]);
}

/* What the maximum is taken of is kept so where it is a tile of its own, since several read it. */
static void add_source(units *u, const smg_instr *maximum) {
    int tile = tile_of(u, maximum->expr);
    if (tile >= 0 && !is_product(u, maximum->expr)) u->in[tile] = true;
}

/* Copies of a tile that is kept so are kept so. */
static void add_copies(units *u) {
    const smg_kernel *k = u->l->k;
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < k->code.count; i++) {
            const smg_instr *in = &k->code.items[i];
            if (in->kind != SMG_I_SET || in->expr == SMG_EXPR_NONE || !is_in(u, in->expr) || u->in[in->dst]) continue;
            grew = u->in[in->dst] = true;
        }
    }
}

/* Expressions for all instructions, or what is wrong. */
static void rewrite_all(units *u, smg_expr *out_exprs) {
    const smg_kernel *k = u->l->k;
    for (int i = 0; i < k->code.count && !u->wrong; i++) {
        const smg_instr *in = &k->code.items[i];
        u->wrong = u->wrong || touches(u, in);
        bool kept = in->dst >= 0 && u->in[in->dst];
        out_exprs[i] = kept ? written(u, in) : in->expr != SMG_EXPR_NONE ? rewritten(u, in->expr) : in->expr;
    }
}

static smg_status keep_in_units(lowering *l, const smg_instr *maximum) {
    const smg_tile *kept = &l->k->tiles.items[maximum->dst];
    units u = {.l = l, .axes = lower_axes_of(kept)};
    for (int a = 0; a < maximum->axis_count; a++) u.axes |= SMG_AXIS_BIT(maximum->axes[a]);
    u.in = SMG_ARENA_ARRAY(l->arena, bool, (size_t)l->k->tiles.count);
    smg_expr *exprs = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->k->code.count);
    if (u.in == NULL || exprs == NULL) return SMG_MEMORY;
    u.in[maximum->dst] = true;
    add_source(&u, maximum);
    add_copies(&u);
    rewrite_all(&u, exprs);
    if (u.wrong || u.exponentials == 0) return SMG_OK;
    for (int i = 0; i < l->k->code.count; i++) {
        smg_instr *in = &l->k->code.items[i];
        if (in->expr != SMG_EXPR_NONE && exprs[i] == SMG_EXPR_NONE) return SMG_MEMORY;
        in->expr = exprs[i];
    }
    return SMG_OK;
}

/* ---- what is masked ------------------------------------------------------------------------------------- */

/* The one choice through which all expressions read the tile; SMG_EXPR_NONE: there is none. */
typedef struct choices {
    const units *u;
    int tile, uses, first;
    smg_expr found;
    bool others;
    bool apart; /* in another loop than the one whose steps start the tile */
} choices;

enum { NOT_STARTED = -2 };

/* The loop in whose steps the tile starts with a number, once; -1: in none. */
static int started_in(const lowering *l, int tile) {
    const units u = {.l = l};
    int found = NOT_STARTED;
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->dst != tile || in->kind == SMG_I_MMA) continue;
        bool starts = in->kind == SMG_I_SET && node_of(&u, in->expr)->prim == SMG_PRIM_CONST;
        if (found != NOT_STARTED || !starts) return NOT_STARTED;
        found = smg_kernel_loop_around(l->k, i);
    }
    return found;
}

static void seek(choices *c, smg_expr e) {
    const smg_expr_node n = *node_of(c->u, e);
    bool is_choice =
        n.prim == SMG_PRIM_SELECT && (tile_of(c->u, n.arg[1]) == c->tile || tile_of(c->u, n.arg[2]) == c->tile);
    if (is_choice && (c->found == SMG_EXPR_NONE || c->found == e)) {
        c->found = e;
        c->uses++;
        return;
    }
    c->others = c->others || tile_of(c->u, e) == c->tile;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) seek(c, n.arg[i]);
}

/* Chosen once, in the sums' own registers, where several read the choice: a driver makes it again for each. */
static smg_status choose_once(lowering *l, int product) {
    units u = {.l = l};
    int tile = l->k->code.items[product].dst;
    choices c = {.u = &u, .tile = tile, .found = SMG_EXPR_NONE, .first = -1};
    int body = started_in(l, tile);
    for (int i = 0; i < l->k->code.count; i++) {
        int before = c.uses;
        if (l->k->code.items[i].expr != SMG_EXPR_NONE) seek(&c, l->k->code.items[i].expr);
        if (c.uses > before && c.first < 0) c.first = i;
        c.apart = c.apart || (c.uses > before && (body == NOT_STARTED || smg_kernel_loop_around(l->k, i) != body));
    }
    if (c.others || c.uses < 2 || c.apart ||
        (lower_expr_axes(l, c.found) & ~lower_axes_of(&l->k->tiles.items[tile])) != 0)
        return SMG_OK;
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = tile;
    set.expr = c.found;
    set.note = "masked once";
    const smg_expr_node n = *node_of(&u, c.found);
    smg_expr sums = tile_of(&u, n.arg[1]) == tile ? n.arg[1] : n.arg[2];
    for (int i = 0; i < l->k->code.count; i++) {
        smg_instr *in = &l->k->code.items[i];
        if (in->expr == SMG_EXPR_NONE) continue;
        in->expr = lower_replace(l->k->exprs, in->expr, c.found, sums);
        if (in->expr == SMG_EXPR_NONE) return SMG_MEMORY;
    }
    return lower_insert(l->k, c.first, set);
}

smg_status lower_units(lowering *l) {
    if (l->s->matrix == NULL) return SMG_OK;
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_REDUCE && in->combine == SMG_COMBINE_MAX) SMG_TRY(keep_in_units(l, in));
    }
    for (int i = 0; i < l->k->code.count; i++)
        if (l->k->code.items[i].kind == SMG_I_MMA) SMG_TRY(choose_once(l, i));
    return SMG_OK;
}
