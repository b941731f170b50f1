/* A sum without an update that is one of a few separable terms: each term gets a running sum of its own, and the node's
 * value is made of them behind the loop. What is taken away from elements is taken at a pivot of the row, which is
 * there before the loop: the middle one of three of its elements, so that one that is far off does not decide. */
#include "lower/lower_internal.h"

/* Where in an axis an element is taken. */
typedef enum place { FIRST, MIDDLE, LAST, PLACES } place;

typedef struct pivot_seek {
    lowering *l;
    smg_axis_set cut; /* axes that are folded */
    smg_expr near_to; /* what the node's pivot is near to; SMG_EXPR_NONE: there is none yet */
    smg_expr pivot;   /* its value */
    lnode *node;
    const smg_snode *n;
    /* of one walk */
    place at;
    smg_expr *with; /* per leaf */
    bool fixed;     /* no element can be had */
} pivot_seek;

static smg_size place_in(const lowering *l, int axis, place at) {
    smg_sizes *sizes = l->g->sizes;
    smg_size extent = l->space->axes.items[axis].extent, one = smg_size_const(sizes, 1);
    if (at == FIRST) return SMG_SIZE_ZERO;
    return at == LAST ? smg_size_sub(sizes, extent, one) : smg_size_div(sizes, extent, smg_size_const(sizes, 2));
}

/* The access at one element of each axis that is cut, where it is a plain one. */
static bool take_element(const pivot_seek *s, smg_access *access) {
    smg_sizes *sizes = s->l->g->sizes;
    int kept = 0;
    if (access->index != SMG_EXPR_NONE && (lower_expr_axes(s->l, access->index) & s->cut) != 0) return false;
    for (int i = 0; i < access->axis_count; i++) {
        int axis = access->axis[i];
        if (!(s->cut & SMG_AXIS_BIT(axis))) {
            access->axis[kept] = axis;
            access->stride[kept++] = access->stride[i];
            continue;
        }
        smg_size away = smg_size_mul(sizes, access->stride[i], place_in(s->l, axis, s->at));
        access->offset = smg_size_add(sizes, access->offset, away);
    }
    access->axis_count = kept;
    return true;
}

static void take_leaf(void *user, int leaf) {
    pivot_seek *s = user;
    lowering *l = s->l;
    smg_kleaf f = l->k->leaves.items[leaf];
    if (s->fixed || !(lower_leaf_axes(l, leaf) & s->cut)) return;
    s->fixed = f.what != SMG_KLEAF_LOAD && f.what != SMG_KLEAF_IOTA;
    if (s->fixed) return;
    smg_access access = l->k->accesses.items[f.index];
    smg_access *slot = take_element(s, &access) ? SMG_ARRAY_PUSH(l->arena, &l->k->accesses) : NULL;
    s->fixed = slot == NULL;
    if (s->fixed) return;
    *slot = access;
    int taken = lower_leaf_of_last(l, f);
    if (taken >= 0) s->with[leaf] = smg_expr_leaf(l->k->exprs, f.kind, taken);
    s->fixed = taken < 0;
}

/* The expression at one element of the row; SMG_EXPR_NONE where there is none. */
static smg_expr element(pivot_seek *s, smg_expr expr, place at) {
    int count = s->l->k->leaves.count;
    s->at = at;
    s->with = SMG_ARENA_ARRAY(s->l->arena, smg_expr, (size_t)count + 1);
    if (s->with == NULL) return SMG_EXPR_NONE;
    for (int i = 0; i < count; i++) s->with[i] = SMG_EXPR_NONE;
    smg_expr_leaves(s->l->k->exprs, expr, take_leaf, s);
    return s->fixed ? SMG_EXPR_NONE : smg_expr_substitute(s->l->k->exprs, expr, s->with, count);
}

static smg_expr middle_of(lowering *l, smg_expr a, smg_expr b, smg_expr c) {
    smg_exprs *pool = l->k->exprs;
    smg_expr low = smg_expr_make(pool, SMG_PRIM_MIN, a, b, SMG_EXPR_NONE);
    smg_expr high = smg_expr_make(pool, SMG_PRIM_MAX, a, b, SMG_EXPR_NONE);
    smg_expr most = smg_expr_make(pool, SMG_PRIM_MIN, high, c, SMG_EXPR_NONE);
    return smg_expr_make(pool, SMG_PRIM_MAX, low, most, SMG_EXPR_NONE);
}

static int new_tile_like(lowering *l, const char *name, int like) {
    const smg_tile *t = &l->k->tiles.items[like];
    int axes[SMG_TILE_AXES], count = t->axis_count;
    memcpy(axes, t->axis, sizeof(axes));
    return lower_new_tile(l, name, SMG_KIND_FLOAT, SMG_REGISTER, axes, count, 0);
}

static smg_expr tile_value(lowering *l, int tile, int node) {
    int leaf =
        tile < 0 ? -1
                 : lower_new_leaf(l, (smg_kleaf){.what = SMG_KLEAF_TILE, .kind = SMG_KIND_FLOAT, .index = tile}, node);
    return leaf >= 0 ? smg_expr_leaf(l->k->exprs, SMG_KIND_FLOAT, leaf) : SMG_EXPR_NONE;
}

/* One a node. */
static smg_expr find_pivot(void *user, smg_expr varies) {
    pivot_seek *s = user;
    lnode *ln = s->node;
    smg_expr at[PLACES];
    if (s->near_to != SMG_EXPR_NONE) return s->near_to == varies ? s->pivot : SMG_EXPR_NONE;
    for (int i = 0; i < PLACES; i++) {
        at[i] = element(s, varies, (place)i);
        if (at[i] == SMG_EXPR_NONE || (lower_expr_axes(s->l, at[i]) & ~s->n->result)) return SMG_EXPR_NONE;
    }
    s->near_to = varies;
    ln->pivot_of = middle_of(s->l, at[FIRST], at[MIDDLE], at[LAST]);
    ln->pivot = new_tile_like(s->l, "p", ln->tile);
    s->pivot = tile_value(s->l, ln->pivot, -1);
    return s->pivot;
}

static void seek_owned(void *user, int leaf) {
    pivot_seek *s = user;
    s->fixed = s->fixed || s->l->leaf_node.items[leaf] >= 0;
}

/* Are all that is summed up elements of memory? */
static bool sums_memory(pivot_seek *s, const smg_terms *terms) {
    s->fixed = false;
    for (int i = 0; i < terms->count; i++) smg_kernel_leaves(s->l->k, terms->summed[i], seek_owned, s);
    return !s->fixed;
}

/* Is some factor another for each element of an axis that is folded? Then no one sum has it. */
static bool has_factor_along(const lowering *l, const smg_terms *terms, smg_axis_set folded) {
    bool found = false;
    for (int i = 0; i < terms->count; i++) found = found || (lower_expr_axes(l, terms->factor[i]) & folded) != 0;
    return found;
}

/* The node's value: each sum by its factor. A sum of what is never negative is not, either. */
static smg_status take(lowering *l, int node, const smg_terms *terms) {
    smg_exprs *pool = l->k->exprs;
    lnode *ln = &l->node[node];
    bool nonnegative = smg_slice_nonnegative(pool, ln->core);
    smg_expr own = smg_expr_leaf(pool, SMG_KIND_FLOAT, ln->leaf);
    smg_expr value = smg_expr_const(pool, SMG_KIND_FLOAT, 0.0);
    for (int i = 0; i < terms->count; i++) {
        int tile = i == 0 ? ln->tile : new_tile_like(l, "add", ln->tile);
        smg_expr sum = i == 0 ? own : tile_value(l, tile, node);
        smg_expr part = smg_expr_make(pool, SMG_PRIM_MUL, sum, terms->factor[i], SMG_EXPR_NONE);
        value = smg_expr_make(pool, SMG_PRIM_ADD, value, part, SMG_EXPR_NONE);
        if (i == 0) continue;
        ln->more_tile[ln->more_count] = tile;
        ln->more[ln->more_count++] = terms->summed[i];
    }
    if (nonnegative)
        value = smg_expr_make(pool, SMG_PRIM_MAX, value, smg_expr_const(pool, SMG_KIND_FLOAT, 0.0), SMG_EXPR_NONE);
    ln->core = terms->summed[0];
    /* What was postponed is a factor of the sum, and stays one. */
    ln->value = lower_replace(pool, ln->value, own, value);
    return value != SMG_EXPR_NONE && ln->value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

smg_status lower_take_terms(lowering *l, int node, const smg_slice_roles *roles, bool *out_taken) {
    const smg_snode *n = &l->space->nodes.items[node];
    lnode *ln = &l->node[node];
    smg_terms terms;
    const char *why;
    pivot_seek s = {.l = l, .cut = n->iterates & ~n->result, .near_to = SMG_EXPR_NONE, .node = ln, .n = n};
    const smg_pivot pivot = {.near = find_pivot, .user = &s};
    SMG_TRY(smg_slice_terms(roles, ln->core, &pivot, &terms, &why));
    *out_taken = terms.count > 0 && sums_memory(&s, &terms) && !has_factor_along(l, &terms, s.cut);
    if (!*out_taken) {
        ln->pivot = -1;
        return SMG_OK;
    }
    if (l->why != NULL)
        smg_text_addf(l->why, "%s: made of %d sums of one pass%s\n", smg_graph_describe(l->g, n->node), terms.count,
                      ln->pivot >= 0 ? ", of elements beside a pivot" : "");
    return take(l, node, &terms);
}
