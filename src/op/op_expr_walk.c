/* Walks over expressions: substitution, value, cost, leaves. Ids ascend from leaves to roots, so a walk over a whole
 * expression is a loop over ids; most expressions have a few nodes of a large pool, though, and those are collected
 * instead. Cost and leaves are kept once asked for: the planner asks for those of the same few expressions for every
 * schedule that it tries. */
#include "op/op_private.h"

/* ---- walks ---------------------------------------------------------------------------------- */

/* One byte per id up to `expr`: 1 where reachable. Free with expr + 1 bytes; NULL when memory is out. */
static uint8_t *reachable(const smg_exprs *pool, smg_expr expr) {
    uint8_t *mark = smg_alloc(smg_arena_context(pool->arena), (size_t)expr + 1, 1);
    if (!mark) return NULL;
    mark[expr] = 1;
    for (smg_expr e = expr; e >= 0; e--) {
        const smg_expr_node *n = &pool->nodes.items[e];
        for (int i = 0; mark[e] && i < smg_prim_arity(n->prim); i++) mark[n->arg[i]] = 1;
    }
    return mark;
}

static void release(const smg_exprs *pool, void *memory, size_t bytes) {
    smg_free(smg_arena_context(pool->arena), memory, bytes);
}

smg_expr smg_expr_substitute(smg_exprs *pool, smg_expr expr, const smg_expr *with, int count) {
    if (!smg_expr_valid(pool, expr)) return SMG_EXPR_NONE;
    uint8_t *mark = reachable(pool, expr);
    size_t bytes = ((size_t)expr + 1) * sizeof(smg_expr);
    smg_expr *now = mark ? smg_alloc(smg_arena_context(pool->arena), (size_t)expr + 1, sizeof *now) : NULL;
    smg_expr result = SMG_EXPR_NONE;
    for (smg_expr e = 0; now && e <= expr; e++) {
        if (!mark[e]) continue;
        smg_expr_node n = pool->nodes.items[e];
        int arity = smg_prim_arity(n.prim);
        now[e] = e;
        if (n.prim == SMG_PRIM_LEAF && n.leaf >= 0 && n.leaf < count && with[n.leaf] != SMG_EXPR_NONE)
            now[e] = with[n.leaf];
        if (arity > 0)
            now[e] = smg_expr_make(pool, n.prim, now[n.arg[0]], arity > 1 ? now[n.arg[1]] : -1,
                                   arity > 2 ? now[n.arg[2]] : -1);
        if (now[e] == SMG_EXPR_NONE) break;
        if (e == expr) result = now[e];
    }
    if (now) release(pool, now, bytes);
    if (mark) release(pool, mark, (size_t)expr + 1);
    return result;
}

double smg_expr_eval(const smg_exprs *pool, smg_expr expr, const double *leaves) {
    const smg_expr_node *n = smg_expr_get(pool, expr);
    if (!n) return 0.0;
    if (n->prim == SMG_PRIM_CONST) return n->value;
    if (n->prim == SMG_PRIM_LEAF) return leaves[n->leaf];
    double value[3] = {0.0, 0.0, 0.0};
    int arity = smg_prim_arity(n->prim);
    for (int i = 0; i < arity; i++) value[i] = smg_expr_eval(pool, n->arg[i], leaves);
    /* the kind of the operation decides how it divides; a comparison has none of its own */
    return smg_prim_eval(n->prim, n->kind, value[0], value[1], value[2]);
}

/* ---- walks without a table of all ids: most expressions of a pool have a few of its nodes ---------- */

#define WALK_NODES 96

typedef struct expr_walk {
    smg_expr seen[WALK_NODES]; /* the nodes met, in the order of their first meeting */
    int count;
} expr_walk;

/* Collects what `expr` consists of; false when that is more than a walk holds. */
static bool collect(const smg_exprs *pool, smg_expr expr, expr_walk *w) {
    uint64_t filter = UINT64_C(1) << ((unsigned)expr % 64u); /* ids met, modulo 64: most are new */
    w->seen[0] = expr;
    w->count = 1;
    for (int at = 0; at < w->count; at++) {
        const smg_expr_node *n = &pool->nodes.items[w->seen[at]];
        int arity = smg_prim_arity(n->prim);
        for (int i = 0; i < arity; i++) {
            uint64_t bit = UINT64_C(1) << ((unsigned)n->arg[i] % 64u);
            bool known = false;
            for (int k = 0; (filter & bit) && k < w->count && !known; k++) known = w->seen[k] == n->arg[i];
            if (known) continue;
            if (w->count == WALK_NODES) return false;
            filter |= bit;
            w->seen[w->count++] = n->arg[i];
        }
    }
    return true;
}

static double walk_cost(const smg_exprs *pool, smg_expr expr) {
    expr_walk w;
    double cost = 0.0;
    if (collect(pool, expr, &w)) {
        for (int i = 0; i < w.count; i++) cost += smg_prim_cost(pool->nodes.items[w.seen[i]].prim);
        return cost;
    }
    uint8_t *mark = reachable(pool, expr);
    if (!mark) return 0.0;
    for (smg_expr e = 0; e <= expr; e++)
        if (mark[e]) cost += smg_prim_cost(pool->nodes.items[e].prim);
    release(pool, mark, (size_t)expr + 1);
    return cost;
}

/* Ascending, like the walk over all ids. */
static int leaves_of(const smg_exprs *pool, const expr_walk *w, smg_expr out[WALK_NODES]) {
    int count = 0;
    for (int i = 0; i < w->count; i++) {
        if (pool->nodes.items[w->seen[i]].prim != SMG_PRIM_LEAF) continue;
        int at = count++;
        for (; at > 0 && out[at - 1] > w->seen[i]; at--) out[at] = out[at - 1];
        out[at] = w->seen[i];
    }
    return count;
}

static void walk_leaves(const smg_exprs *pool, smg_expr expr, void (*visit)(void *user, int leaf), void *user) {
    uint8_t *mark = reachable(pool, expr);
    if (!mark) return;
    for (smg_expr e = 0; e <= expr; e++)
        if (mark[e] && pool->nodes.items[e].prim == SMG_PRIM_LEAF) visit(user, pool->nodes.items[e].leaf);
    release(pool, mark, (size_t)expr + 1);
}

/* ---- what was asked before: the same few expressions are asked for every schedule that is tried ------- */

static expr_summary *summary_of(const smg_exprs *pool, smg_expr expr) {
    expr_summaries *all = pool->summaries;
    while (all->items.count <= expr) {
        expr_summary *slot = SMG_ARRAY_PUSH(pool->arena, &all->items);
        if (!slot) return NULL;
    }
    return &all->items.items[expr];
}

double smg_expr_cost(const smg_exprs *pool, smg_expr expr) {
    if (!smg_expr_valid(pool, expr)) return 0.0;
    expr_summary *s = summary_of(pool, expr);
    if (!s) return walk_cost(pool, expr);
    if (!s->has_cost) s->cost = walk_cost(pool, expr);
    s->has_cost = true;
    return s->cost;
}

/* Keeps the leaves of `expr`; false when they are too many or memory is out. */
static bool keep_leaves(const smg_exprs *pool, smg_expr expr, expr_summary *s) {
    expr_walk w;
    smg_expr leaf[WALK_NODES];
    if (!collect(pool, expr, &w)) return false;
    s->first = pool->summaries->leaves.count;
    s->count = leaves_of(pool, &w, leaf);
    for (int i = 0; i < s->count; i++) {
        int *slot = SMG_ARRAY_PUSH(pool->arena, &pool->summaries->leaves);
        if (!slot) return false;
        *slot = pool->nodes.items[leaf[i]].leaf;
    }
    s->has_leaves = true;
    return true;
}

void smg_expr_leaves(const smg_exprs *pool, smg_expr expr, void (*visit)(void *user, int leaf), void *user) {
    if (pool == NULL || expr < 0 || expr >= pool->nodes.count) return;
    const expr_summaries *all = pool->summaries;
    expr_summary *s = expr < all->items.count ? &all->items.items[expr] : summary_of(pool, expr);
    if (!s || (!s->has_leaves && !keep_leaves(pool, expr, s))) {
        walk_leaves(pool, expr, visit, user);
        return;
    }
    expr_summary kept = *s; /* a visit may ask for other leaves, which moves the lists */
    for (int i = 0; i < kept.count; i++) visit(user, pool->summaries->leaves.items[kept.first + i]);
}
