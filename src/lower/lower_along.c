/* Sums along products. A sum over what a product by matrices contracts, of what the product reads as its left factor,
 * goes by in the same slices: lanes fold the elements of the factor that they hold for the product anyway, and join
 * behind the loop. Nothing is loaded for it. */
#include "lower/lower_internal.h"

/* A left factor in registers, and the access that it holds elements of. */
typedef struct held_factor {
    int tile, access;
} held_factor;

/* What memory the tile has as it is; -1. */
static int access_of(const smg_kernel *k, int tile) {
    static const smg_instr_kind through[] = {SMG_I_TAKE, SMG_I_PUT};
    for (size_t i = 0; i < SMG_COUNT_OF(through); i++) {
        int at = lower_find(k, 0, k->code.count, through[i], tile);
        if (at >= 0) tile = k->code.items[at].a;
    }
    static const smg_instr_kind loads[] = {SMG_I_SET, SMG_I_STAGE, SMG_I_FETCH};
    for (size_t i = 0; i < SMG_COUNT_OF(loads); i++) {
        int at = lower_find(k, 0, k->code.count, loads[i], tile);
        if (at >= 0) return smg_kernel_plain_load(k, k->code.items[at].expr);
    }
    return -1;
}

/* The left factor of a product in the loop around the instruction; false: no lane holds it. */
static bool find_factor(const smg_kernel *k, int at, held_factor *out) {
    int loop = smg_kernel_loop_around(k, at), end = loop >= 0 ? smg_kernel_loop_end(k, loop) : loop;
    for (int i = loop + 1; i < end; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA || k->tiles.items[in->a].fragments != SMG_FRAGMENTS_LEFT) continue;
        *out = (held_factor){in->a, access_of(k, in->a)};
        return out->access >= 0;
    }
    return false;
}

typedef struct replacing {
    smg_kernel *k;
    const held_factor *factor;
    smg_expr *by; /* per leaf */
    bool others;  /* some load is of something else */
    bool fails;
} replacing;

static void replace_leaf(void *user, int leaf) {
    replacing *x = user;
    const smg_kleaf *f = &x->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_SIZE) return;
    x->others = x->others || f->what != SMG_KLEAF_LOAD || f->index != x->factor->access;
    if (x->others) return;
    x->by[leaf] = lower_tile_element(x->k, x->factor->tile);
    x->fails = x->fails || x->by[leaf] == SMG_EXPR_NONE;
}

/* The expression over the factor's elements; *out SMG_EXPR_NONE: it reads something else. */
static smg_status over_factor(smg_kernel *k, const held_factor *factor, smg_expr expr, smg_expr *out) {
    int count = k->leaves.count;
    replacing x = {.k = k, .factor = factor, .by = SMG_ARENA_ARRAY(k->arena, smg_expr, (size_t)count + 1)};
    *out = SMG_EXPR_NONE;
    if (x.by == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) x.by[i] = SMG_EXPR_NONE;
    smg_expr_leaves(k->exprs, expr, replace_leaf, &x);
    if (x.fails) return SMG_MEMORY;
    if (x.others) return SMG_OK;
    *out = smg_expr_substitute(k->exprs, expr, x.by, count);
    return *out != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

static smg_status fold_factor(lower_sized *l, int at) {
    smg_kernel *k = l->k;
    smg_instr *sum = &k->code.items[at];
    smg_tile *dst = &k->tiles.items[sum->dst];
    held_factor factor;
    smg_expr expr = SMG_EXPR_NONE;
    if (k->matrix.type != SMG_TYPE_F16) { /* nothing reads an element of bf16 alone */
        l->refused = "a sum beside a product by matrices is of f16";
        return SMG_OK;
    }
    if (find_factor(k, at, &factor)) SMG_TRY(over_factor(k, &factor, sum->expr, &expr));
    if (expr == SMG_EXPR_NONE) {
        l->refused = "a sum beside a product by matrices is not of what lanes hold of its left factor";
        return SMG_OK;
    }
    int layout = k->tiles.items[factor.tile].layout;
    const smg_layout rows = smg_layout_keep(&k->layouts.items[layout], dst->axis, dst->axis_count);
    if (smg_kernel_add_layout(k, &rows) != dst->layout) {
        l->refused = "lanes hold other rows of a product's left factor than of its sums";
        return SMG_OK;
    }
    sum->expr = expr;
    sum->layout = layout;
    for (int i = at; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_JOIN && k->code.items[i].dst == sum->dst) k->code.items[i].layout = layout;
    return SMG_OK;
}

smg_status lower_along(lower_sized *l) {
    smg_kernel *k = l->k;
    if (k->matrix.rows == 0 || l->s->space->form != SMG_SPACE_LINEAR) return SMG_OK;
    for (int i = 0; i < k->code.count && l->refused == NULL; i++)
        if (k->code.items[i].kind == SMG_I_REDUCE && k->code.items[i].apart) SMG_TRY(fold_factor(l, i));
    return smg_context_status(l->ctx);
}
