/* Factors and updates, derived by structural induction over scalar expressions.
 *
 * ratio(e) = e(c, r') / e(c, r) and difference(e) = e(c, r') - e(c, r), each only when free of c.
 * exp turns a difference into a ratio *before* anything is evaluated, so that the update of a stabilised
 * exponential is exp(r - r'), never exp(-r') / exp(-r), which would be inf / inf. */
#include <float.h>

#include "slice/slice_internal.h"

typedef struct seek {
    const smg_slice_roles *roles;
    smg_leaf_role role;
    bool found;
} seek;

static void seek_leaf(void *user, int leaf) {
    seek *s = user;
    if (leaf < s->roles->count && s->roles->role[leaf] == s->role) s->found = true;
}

static bool has(const smg_slice_roles *r, smg_expr expr, smg_leaf_role role) {
    seek s = {.roles = r, .role = role};
    smg_expr_leaves(r->pool, expr, seek_leaf, &s);
    return s.found;
}

bool smg_slice_varies(const smg_slice_roles *r, smg_expr expr) {
    return has(r, expr, SMG_ROLE_VARIES);
}
bool smg_slice_aggregates(const smg_slice_roles *r, smg_expr expr) {
    return has(r, expr, SMG_ROLE_AGGREGATE);
}

static smg_expr one(const smg_slice_roles *r) {
    return smg_expr_const(r->pool, SMG_KIND_FLOAT, 1.0);
}
static smg_expr zero(const smg_slice_roles *r) {
    return smg_expr_const(r->pool, SMG_KIND_FLOAT, 0.0);
}

static smg_expr make2(const smg_slice_roles *r, smg_prim prim, smg_expr a, smg_expr b) {
    if (a == SMG_EXPR_NONE || b == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    return smg_expr_make(r->pool, prim, a, b, SMG_EXPR_NONE);
}

static smg_expr make1(const smg_slice_roles *r, smg_prim prim, smg_expr a) {
    if (a == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    return smg_expr_make(r->pool, prim, a, SMG_EXPR_NONE, SMG_EXPR_NONE);
}

static bool is_const(const smg_slice_roles *r, smg_expr e, double value) {
    const smg_expr_node *n = smg_expr_get(r->pool, e);
    return n->prim == SMG_PRIM_CONST && n->value == value;
}

/* The expression with every aggregate at its old value. */
static smg_expr at_old(const smg_slice_roles *r, smg_expr e) {
    return smg_expr_substitute(r->pool, e, r->old, r->count);
}

static smg_expr difference(const smg_slice_roles *r, smg_expr e);

/* A quotient of aggregates is never formed: its divisor may be 0 (a running sum starts there), and 0 * inf
 * would poison the result. Only exponentials move, as differences. */
static smg_expr ratio(const smg_slice_roles *r, smg_expr e) {
    if (!smg_slice_aggregates(r, e)) return one(r);
    smg_expr_node n = *smg_expr_get(r->pool, e);
    switch (n.prim) {
    case SMG_PRIM_MUL: return make2(r, SMG_PRIM_MUL, ratio(r, n.arg[0]), ratio(r, n.arg[1]));
    case SMG_PRIM_DIV: return make2(r, SMG_PRIM_DIV, ratio(r, n.arg[0]), ratio(r, n.arg[1]));
    case SMG_PRIM_NEG: return ratio(r, n.arg[0]);
    case SMG_PRIM_EXP: return make1(r, SMG_PRIM_EXP, difference(r, n.arg[0]));
    case SMG_PRIM_SQRT:
    case SMG_PRIM_RSQRT:
    case SMG_PRIM_ABS: return make1(r, n.prim, ratio(r, n.arg[0]));
    case SMG_PRIM_POW:
        if (smg_slice_aggregates(r, n.arg[1]) || smg_slice_varies(r, n.arg[1])) return SMG_EXPR_NONE;
        return make2(r, SMG_PRIM_POW, ratio(r, n.arg[0]), n.arg[1]);
    case SMG_PRIM_SELECT: /* a mask that does not move with r, and 0 where it is off */
        if (smg_slice_aggregates(r, n.arg[0])) return SMG_EXPR_NONE;
        if (is_const(r, n.arg[2], 0.0)) return ratio(r, n.arg[1]);
        if (is_const(r, n.arg[1], 0.0)) return ratio(r, n.arg[2]);
        return SMG_EXPR_NONE;
    default: return SMG_EXPR_NONE;
    }
}

static smg_expr scaled_difference(const smg_slice_roles *r, smg_expr a, smg_expr b, smg_prim prim) {
    if (smg_slice_varies(r, b) || smg_slice_aggregates(r, b)) return SMG_EXPR_NONE;
    return make2(r, prim, difference(r, a), b);
}

static smg_expr difference(const smg_slice_roles *r, smg_expr e) {
    if (!smg_slice_aggregates(r, e)) return zero(r);
    if (!smg_slice_varies(r, e)) return make2(r, SMG_PRIM_SUB, e, at_old(r, e));
    smg_expr_node n = *smg_expr_get(r->pool, e);
    switch (n.prim) {
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB: return make2(r, n.prim, difference(r, n.arg[0]), difference(r, n.arg[1]));
    case SMG_PRIM_NEG: return make1(r, SMG_PRIM_NEG, difference(r, n.arg[0]));
    case SMG_PRIM_MUL: {
        smg_expr left = scaled_difference(r, n.arg[0], n.arg[1], SMG_PRIM_MUL);
        return left != SMG_EXPR_NONE ? left : scaled_difference(r, n.arg[1], n.arg[0], SMG_PRIM_MUL);
    }
    case SMG_PRIM_DIV: return scaled_difference(r, n.arg[0], n.arg[1], SMG_PRIM_DIV);
    default: return SMG_EXPR_NONE;
    }
}

bool smg_slice_nonnegative(const smg_exprs *pool, smg_expr expr) {
    smg_expr_node n = *smg_expr_get(pool, expr);
    if (n.prim == SMG_PRIM_CONST) return n.value >= 0;
    if (smg_prim_obeys(n.prim, SMG_LAW_NO_NEGATIVE)) return true;
    if (n.prim == SMG_PRIM_MUL && n.arg[0] == n.arg[1]) return true;
    if (n.prim != SMG_PRIM_SELECT && !smg_prim_obeys(n.prim, SMG_LAW_KEEPS_SIGN)) return false;
    bool first = n.prim == SMG_PRIM_SELECT || smg_slice_nonnegative(pool, n.arg[0]);
    bool others = smg_slice_nonnegative(pool, n.arg[1]);
    if (n.prim == SMG_PRIM_MAX) return first || others; /* one is enough */
    return first && others && (n.prim != SMG_PRIM_SELECT || smg_slice_nonnegative(pool, n.arg[2]));
}

static smg_expr both(const smg_slice_roles *r, smg_expr a, smg_expr b) {
    if (a == SMG_EXPR_NONE || b == SMG_EXPR_NONE) return a == SMG_EXPR_NONE ? b : a;
    return make2(r, SMG_PRIM_AND, a, b);
}

/* "x is NaN"; x compared with itself has become that. */
static bool asks_nan(const smg_slice_roles *r, smg_expr e, smg_expr x, bool negated) {
    smg_expr_node n = *smg_expr_get(r->pool, e);
    if (n.prim == SMG_PRIM_NOT) return asks_nan(r, n.arg[0], x, !negated);
    return n.prim == SMG_PRIM_ISNAN && !negated && n.arg[0] == x;
}

/* What e is the reciprocal of: 1 / x, or x to the power of -1. */
static smg_expr reciprocal_of(const smg_slice_roles *r, smg_expr e) {
    smg_expr_node n = *smg_expr_get(r->pool, e);
    if (n.prim == SMG_PRIM_DIV && is_const(r, n.arg[0], 1.0)) return n.arg[1];
    if (n.prim == SMG_PRIM_POW && is_const(r, n.arg[1], -1.0)) return n.arg[0];
    return SMG_EXPR_NONE;
}

/* The divisor of `of / s`, however it is spelt; SMG_EXPR_NONE when e is no such quotient. */
static smg_expr quotient_of(const smg_slice_roles *r, smg_expr e, smg_expr *out_of) {
    smg_expr_node n = *smg_expr_get(r->pool, e);
    smg_expr divisor = SMG_EXPR_NONE;
    *out_of = n.arg[0];
    if (n.prim == SMG_PRIM_DIV) divisor = n.arg[1];
    for (int k = 0; k < 2 && n.prim == SMG_PRIM_MUL && divisor == SMG_EXPR_NONE; k++) {
        *out_of = n.arg[k];
        divisor = reciprocal_of(r, n.arg[1 - k]);
    }
    return divisor;
}

/* `select(isnan(x), 0, x)` with x = core / sum(core), core >= 0. The sum is NaN when any element is, 0 when all
 * are, and no element is above it: then x is NaN for every element that is not lost anyway, else for none. */
static bool split_guarded(const smg_slice_roles *r, const smg_expr_node *n, smg_postponed *out) {
    bool straight = asks_nan(r, n->arg[0], n->arg[2], false) && is_const(r, n->arg[1], 0.0);
    bool turned = asks_nan(r, n->arg[0], n->arg[1], true) && is_const(r, n->arg[2], 0.0);
    if (!straight && !turned) return false;
    smg_expr of, divisor = quotient_of(r, straight ? n->arg[2] : n->arg[1], &of);
    if (divisor == SMG_EXPR_NONE || !smg_slice_aggregates(r, divisor)) return false;
    smg_expr_node s = *smg_expr_get(r->pool, divisor);
    bool sum = s.prim == SMG_PRIM_LEAF && s.leaf < r->count && r->sum_of != NULL && r->sum_of[s.leaf] == of;
    if (!sum || !smg_slice_nonnegative(r->pool, of)) return false;
    smg_expr most = smg_expr_const(r->pool, SMG_KIND_FLOAT, (double)FLT_MAX);
    smg_expr finite = make2(r, SMG_PRIM_LE, divisor, most);
    smg_expr good = both(r, make2(r, SMG_PRIM_LT, zero(r), divisor), finite);
    smg_expr number = make1(r, SMG_PRIM_NOT, make1(r, SMG_PRIM_ISNAN, divisor));
    *out =
        (smg_postponed){.core = of, .factor = make2(r, SMG_PRIM_DIV, one(r), divisor), .guard = both(r, number, good)};
    return true;
}

static void split_factors(const smg_slice_roles *r, smg_expr e, smg_postponed *out);

static void keep_whole(const smg_slice_roles *r, smg_expr e, smg_postponed *out) {
    *out = (smg_postponed){.core = e, .factor = one(r), .guard = SMG_EXPR_NONE};
}

/* `select(s == 0, 0, x)`, or any other condition that is the same for all elements. */
static void split_condition(const smg_slice_roles *r, smg_expr e, const smg_expr_node *n, smg_postponed *out) {
    bool zero_first = is_const(r, n->arg[1], 0.0);
    if (smg_slice_varies(r, n->arg[0]) || (!zero_first && !is_const(r, n->arg[2], 0.0))) return;
    smg_expr holds = zero_first ? make1(r, SMG_PRIM_NOT, n->arg[0]) : n->arg[0];
    split_factors(r, n->arg[zero_first ? 2 : 1], out);
    out->guard = both(r, holds, out->guard);
    if (is_const(r, out->factor, 1.0)) keep_whole(r, e, out);
}

/* A product is 0 where the guard of one side fails, unless the factor of the other is infinite there: then the guard
 * stays inside. So does the guard of a divisor. */
static void split_product(const smg_slice_roles *r, const smg_expr_node *n, smg_postponed *out) {
    smg_postponed a, b;
    split_factors(r, n->arg[0], &a);
    split_factors(r, n->arg[1], &b);
    if (b.guard != SMG_EXPR_NONE && (n->prim == SMG_PRIM_DIV || !is_const(r, a.factor, 1.0)))
        keep_whole(r, n->arg[1], &b);
    if (a.guard != SMG_EXPR_NONE && !is_const(r, b.factor, 1.0)) keep_whole(r, n->arg[0], &a);
    out->core = make2(r, n->prim, a.core, b.core);
    out->factor = make2(r, n->prim, a.factor, b.factor);
    out->guard = both(r, a.guard, b.guard);
}

/* Splits multiplicative factors: the core keeps what varies. */
static void split_factors(const smg_slice_roles *r, smg_expr e, smg_postponed *out) {
    keep_whole(r, e, out);
    if (!smg_slice_aggregates(r, e)) return;
    if (!smg_slice_varies(r, e)) {
        out->core = one(r);
        out->factor = e;
        return;
    }
    smg_expr_node n = *smg_expr_get(r->pool, e);
    if (n.prim == SMG_PRIM_NEG) {
        split_factors(r, n.arg[0], out);
        out->core = make1(r, SMG_PRIM_NEG, out->core);
    } else if (n.prim == SMG_PRIM_MUL || n.prim == SMG_PRIM_DIV) {
        split_product(r, &n, out);
    } else if (n.prim == SMG_PRIM_SELECT) {
        if (!split_guarded(r, &n, out)) split_condition(r, e, &n, out);
    }
}

smg_status smg_slice_postpone(const smg_slice_roles *r, smg_expr expr, smg_postponed *out) {
    smg_postponed nothing = {.core = expr, .factor = SMG_EXPR_NONE, .guard = SMG_EXPR_NONE};
    *out = nothing;
    if (smg_expr_get(r->pool, expr)->kind != SMG_KIND_FLOAT) return SMG_OK;
    split_factors(r, expr, out);
    if (out->core == SMG_EXPR_NONE || out->factor == SMG_EXPR_NONE) return SMG_MEMORY;
    if (is_const(r, out->factor, 1.0)) *out = nothing;
    return SMG_OK;
}

/* ---- what a sum gains ------------------------------------------------------------------------------ */

/* Each element that `where` holds for (SMG_EXPR_NONE: each) becomes larger by the same `by`. */
typedef struct gain {
    smg_expr by, where;
} gain;

/* Finite, and no larger than the aggregates: what is added for a while leaves a sum as exact as it was. A quotient or
 * a logarithm may be infinite on the way to its last value. */
static bool stays_near(const smg_slice_roles *r, smg_expr e) {
    smg_expr_node n = *smg_expr_get(r->pool, e);
    if (!smg_slice_aggregates(r, e) || n.prim == SMG_PRIM_LEAF) return true;
    if (n.prim == SMG_PRIM_NEG) return stays_near(r, n.arg[0]);
    bool sum = n.prim == SMG_PRIM_ADD || n.prim == SMG_PRIM_SUB, product = n.prim == SMG_PRIM_MUL;
    if (!sum && !product && n.prim != SMG_PRIM_DIV) return false;
    bool first = smg_slice_aggregates(r, n.arg[0]), second = smg_slice_aggregates(r, n.arg[1]);
    if (!sum && second && (first || !product)) return false;
    return stays_near(r, n.arg[0]) && stays_near(r, n.arg[1]);
}

static bool find_gain(const smg_slice_roles *r, smg_expr e, gain *out);

/* `select(p, a, 0)`, where p does not move with r. */
static bool masked_gain(const smg_slice_roles *r, const smg_expr_node *n, gain *out) {
    bool zero_first = is_const(r, n->arg[1], 0.0);
    if (smg_slice_aggregates(r, n->arg[0]) || (!zero_first && !is_const(r, n->arg[2], 0.0))) return false;
    if (!find_gain(r, n->arg[zero_first ? 2 : 1], out)) return false;
    out->where = both(r, zero_first ? make1(r, SMG_PRIM_NOT, n->arg[0]) : n->arg[0], out->where);
    return true;
}

/* The same beside an operand that does not move: `fixed` is its number. */
static bool gain_beside(const smg_slice_roles *r, const smg_expr_node *n, int fixed, gain *out) {
    bool scales = n->prim == SMG_PRIM_MUL || (n->prim == SMG_PRIM_DIV && fixed == 1);
    if (smg_slice_aggregates(r, n->arg[fixed]) || (scales && smg_slice_varies(r, n->arg[fixed]))) return false;
    if (!scales && n->prim != SMG_PRIM_ADD && n->prim != SMG_PRIM_SUB) return false;
    if (!find_gain(r, n->arg[1 - fixed], out)) return false;
    if (scales) out->by = make2(r, n->prim, out->by, n->arg[fixed]);
    if (n->prim == SMG_PRIM_SUB && fixed == 0) out->by = make1(r, SMG_PRIM_NEG, out->by);
    return true;
}

static bool find_gain(const smg_slice_roles *r, smg_expr e, gain *out) {
    smg_expr_node n = *smg_expr_get(r->pool, e);
    *out = (gain){.by = difference(r, e), .where = SMG_EXPR_NONE};
    if (out->by != SMG_EXPR_NONE) return stays_near(r, out->by);
    if (n.prim == SMG_PRIM_SELECT) return masked_gain(r, &n, out);
    if (n.prim == SMG_PRIM_NEG && find_gain(r, n.arg[0], out)) {
        out->by = make1(r, SMG_PRIM_NEG, out->by);
        return true;
    }
    return smg_prim_arity(n.prim) == 2 && (gain_beside(r, &n, 1, out) || gain_beside(r, &n, 0, out));
}

/* t + n * by. What counts nothing yet has no old aggregates either: they may be as large as numbers get. */
static void add_gain(const smg_slice_roles *r, smg_expr expr, smg_update *update) {
    gain g;
    if (update->n == SMG_EXPR_NONE || !find_gain(r, expr, &g)) return;
    smg_expr moved = make2(r, SMG_PRIM_ADD, update->t, make2(r, SMG_PRIM_MUL, update->n, g.by));
    smg_expr any = make2(r, SMG_PRIM_LT, zero(r), update->n);
    update->value = smg_expr_make(r->pool, SMG_PRIM_SELECT, any, moved, update->t);
    update->counted = one(r);
    if (g.where != SMG_EXPR_NONE) update->counted = smg_expr_make(r->pool, SMG_PRIM_SELECT, g.where, one(r), zero(r));
}

/* A maximum, or minimum, that has met no element stays as it is: the old aggregates may be as large as numbers get
 * then, and their difference infinite. (The gate has no numbers of that size: it is asked before.) */
static void shift_what_is_met(const smg_slice_roles *r, smg_combine combine, smg_update *update) {
    bool most = combine == SMG_COMBINE_MAX;
    smg_expr t = update->t;
    smg_expr start = smg_expr_const(r->pool, SMG_KIND_FLOAT, most ? -(double)FLT_MAX : (double)FLT_MAX);
    smg_expr met = most ? make2(r, SMG_PRIM_LT, start, t) : make2(r, SMG_PRIM_LT, t, start);
    update->value = smg_expr_make(r->pool, SMG_PRIM_SELECT, met, update->value, t);
}

smg_status smg_slice_update(const smg_slice_roles *r, smg_combine combine, smg_expr expr, smg_update *update,
                            const char **out_why) {
    *out_why = "";
    update->value = update->counted = SMG_EXPR_NONE;
    if (smg_expr_get(r->pool, expr)->kind != SMG_KIND_FLOAT) {
        *out_why = "updates are derived for floats only";
        return SMG_OK;
    }
    if (combine == SMG_COMBINE_ADD) {
        update->value = make2(r, SMG_PRIM_MUL, update->t, ratio(r, expr));
        if (update->value == SMG_EXPR_NONE) add_gain(r, expr, update);
        *out_why = "the summand is neither a product nor a sum of a part that varies and a part of the aggregate";
    } else if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN) {
        update->value = make2(r, SMG_PRIM_ADD, update->t, difference(r, expr));
        *out_why = "the operand is not a sum of a part that varies and a part of the aggregate";
    } else {
        *out_why = "no update is known for a product over the axis";
    }
    if (update->value == SMG_EXPR_NONE) return SMG_OK;
    const char *wrong;
    SMG_TRY(slice_gate(r, combine, expr, update, &wrong));
    if (wrong == NULL) {
        if (combine != SMG_COMBINE_ADD) shift_what_is_met(r, combine, update);
        return SMG_OK;
    }
    update->value = update->counted = SMG_EXPR_NONE;
    *out_why = wrong;
    return SMG_OK;
}
