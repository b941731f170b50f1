/* A walk through an expression: what is known of it from what is known of its leaves. Of choices that are decided one
 * side is walked. Leaves may lead to expressions of their own, so frames are small here. */
#include "affine/affine_internal.h"

#define MAX_DEPTH 16

typedef struct evaluation {
    const smg_affine_scope *scope;
    const smg_exprs *pool;
    const smg_affine_leaves *leaves;
} evaluation;

static smg_affine_value value_of(const evaluation *e, smg_expr expr, int depth);

static smg_affine_value choice(const evaluation *e, const smg_expr_node *n, int depth) {
    smg_affine_value p = value_of(e, n->arg[0], depth);
    int known = smg_affine_decision(e->scope, &p);
    if (known != 0 && p.cut_count == 0) return value_of(e, n->arg[known > 0 ? 1 : 2], depth);
    smg_affine_value x = value_of(e, n->arg[1], depth), y = value_of(e, n->arg[2], depth);
    return smg_affine_choice(e->scope, &p, &x, &y);
}

/* Sums of truths mean nothing: what compares or adds them sees their ranges alone. */
static bool reads_truths(smg_prim prim) {
    return prim == SMG_PRIM_NOT || prim == SMG_PRIM_AND || prim == SMG_PRIM_OR || prim == SMG_PRIM_TO_INT ||
           prim == SMG_PRIM_TO_FLOAT || prim == SMG_PRIM_TO_BOOL;
}

static smg_affine_value value_of(const evaluation *e, smg_expr expr, int depth) {
    smg_expr_node n = *smg_expr_get(e->pool, expr);
    smg_affine_value x[3] = {smg_affine_unknown, smg_affine_unknown, smg_affine_unknown}, result;
    if (n.prim == SMG_PRIM_CONST) return smg_affine_of_number(e->scope->sizes, n.kind, n.value);
    if (depth == MAX_DEPTH) return smg_affine_unknown;
    if (n.prim == SMG_PRIM_LEAF) {
        result = e->leaves->value(e->leaves->user, n.leaf);
        result.leaf = n.leaf;
    } else if (n.prim == SMG_PRIM_SELECT) {
        result = choice(e, &n, depth + 1);
    } else {
        smg_kind from = smg_expr_get(e->pool, n.arg[0])->kind;
        for (int i = 0; i < smg_prim_arity(n.prim); i++) {
            x[i] = value_of(e, n.arg[i], depth + 1);
            if (from == SMG_KIND_BOOL && !reads_truths(n.prim)) x[i].known = false;
        }
        bool fraction = n.kind == SMG_KIND_FLOAT && (n.prim == SMG_PRIM_DIV || n.prim == SMG_PRIM_MOD);
        result = fraction ? smg_affine_unknown : smg_affine_apply(e->scope, n.prim, from, x);
    }
    if (n.kind == SMG_KIND_FLOAT) result.range = smg_affine_no_range;
    return n.kind == SMG_KIND_BOOL ? smg_affine_settled(e->scope, result) : result;
}

smg_affine_value smg_affine_eval(const smg_affine_scope *scope, const smg_exprs *pool, smg_expr expr,
                                 const smg_affine_leaves *leaves) {
    evaluation e = {.scope = scope, .pool = pool, .leaves = leaves};
    bool before = smg_sizes_set_quiet(scope->sizes, true);
    smg_affine_value v = expr == SMG_EXPR_NONE ? smg_affine_unknown : value_of(&e, expr, 0);
    smg_sizes_set_quiet(scope->sizes, before);
    return v;
}
