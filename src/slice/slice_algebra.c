/* Factors and updates, derived by structural induction over scalar expressions.
 *
 * ratio(e) = e(c, r') / e(c, r) and difference(e) = e(c, r') - e(c, r), each only when free of c.
 * exp turns a difference into a ratio *before* anything is evaluated, so that the update of a stabilised
 * exponential is exp(r - r'), never exp(-r') / exp(-r), which would be inf / inf. */
#include <float.h>
#include <math.h>

#include "slice/slice.h"

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

/* `select(isnan(x), 0, x)` with x = core / sum(core), core >= 0. The sum is NaN when any element is, 0 when all
 * are, and no element is above it: then x is NaN for every element that is not lost anyway, else for none. */
static bool split_guarded(const smg_slice_roles *r, const smg_expr_node *n, smg_postponed *out) {
    bool straight = asks_nan(r, n->arg[0], n->arg[2], false) && is_const(r, n->arg[1], 0.0);
    bool turned = asks_nan(r, n->arg[0], n->arg[1], true) && is_const(r, n->arg[2], 0.0);
    if (!straight && !turned) return false;
    smg_expr_node x = *smg_expr_get(r->pool, straight ? n->arg[2] : n->arg[1]);
    if (x.prim != SMG_PRIM_DIV || smg_slice_aggregates(r, x.arg[1]) == false) return false;
    smg_expr_node s = *smg_expr_get(r->pool, x.arg[1]);
    bool sum = s.prim == SMG_PRIM_LEAF && s.leaf < r->count && r->sum_of != NULL && r->sum_of[s.leaf] == x.arg[0];
    if (!sum || !smg_slice_nonnegative(r->pool, x.arg[0])) return false;
    smg_expr most = smg_expr_const(r->pool, SMG_KIND_FLOAT, (double)FLT_MAX);
    smg_expr finite = make2(r, SMG_PRIM_LE, x.arg[1], most);
    smg_expr good = both(r, make2(r, SMG_PRIM_LT, zero(r), x.arg[1]), finite);
    smg_expr number = make1(r, SMG_PRIM_NOT, make1(r, SMG_PRIM_ISNAN, x.arg[1]));
    *out = (smg_postponed){
        .core = x.arg[0], .factor = make2(r, SMG_PRIM_DIV, one(r), x.arg[1]), .guard = both(r, number, good)};
    return true;
}

/* Splits multiplicative factors: the core keeps what varies. */
static void split_factors(const smg_slice_roles *r, smg_expr e, smg_postponed *out) {
    smg_postponed a, b;
    *out = (smg_postponed){.core = e, .factor = one(r), .guard = SMG_EXPR_NONE};
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
        split_factors(r, n.arg[0], &a);
        split_factors(r, n.arg[1], &b);
        if (n.prim == SMG_PRIM_DIV && b.guard != SMG_EXPR_NONE) return;
        out->core = make2(r, n.prim, a.core, b.core);
        out->factor = make2(r, n.prim, a.factor, b.factor);
        out->guard = both(r, a.guard, b.guard);
    } else if (n.prim == SMG_PRIM_SELECT) {
        split_guarded(r, &n, out);
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

/* ---- the numeric gate ------------------------------------------------------------------------ */

static double draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 0.25 + 2.0 * (double)(*state >> 40) / (double)(1 << 24);
}

/* A large constant (a mask's -3.4e38) would drown what the gate compares, or overflow; the identity does not depend on
 * its value, so another of its sign stands in. */
static double tame(const smg_expr_node *n) {
    if (n->kind != SMG_KIND_FLOAT || fabs(n->value) <= 8.0 || isnan(n->value)) return n->value;
    double size = isinf(n->value) ? 40.0 : log10(fabs(n->value));
    return copysign(1.0 + size / 40.0, n->value);
}

static double evaluate(const smg_exprs *pool, smg_expr e, const double *leaves) {
    const smg_expr_node *n = smg_expr_get(pool, e); /* NULL: memory is out, and the context says so */
    double x[3] = {0.0, 0.0, 0.0};
    if (n == NULL) return 0.0;
    if (n->prim == SMG_PRIM_CONST) return tame(n);
    if (n->prim == SMG_PRIM_LEAF) return leaves[n->leaf];
    for (int i = 0; i < smg_prim_arity(n->prim); i++) x[i] = evaluate(pool, n->arg[i], leaves);
    return smg_prim_eval(n->prim, n->kind, x[0], x[1], x[2]);
}

/* t over a few slices' elements at r, corrected, must equal t at r'. */
static bool gate(const smg_slice_roles *r, smg_combine combine, smg_expr expr, smg_expr t, smg_expr update,
                 double *leaves, int leaf_count) {
    uint64_t state = SMG_HASH_SEED;
    int t_leaf = smg_expr_get(r->pool, t)->leaf;
    for (int trial = 0; trial < 32; trial++) {
        double sum_old = smg_combine_identity(combine), sum_new = sum_old;
        for (int i = 0; i < leaf_count; i++) leaves[i] = draw(&state);
        for (int c = 0; c < 3; c++) {
            for (int i = 0; i < r->count; i++) {
                if (r->role[i] == SMG_ROLE_VARIES) leaves[i] = draw(&state);
            }
            double before = evaluate(r->pool, at_old(r, expr), leaves);
            double after = evaluate(r->pool, expr, leaves);
            sum_old = smg_prim_eval(smg_combine_prim(combine), SMG_KIND_FLOAT, sum_old, before, 0);
            sum_new = smg_prim_eval(smg_combine_prim(combine), SMG_KIND_FLOAT, sum_new, after, 0);
        }
        leaves[t_leaf] = sum_old;
        double corrected = evaluate(r->pool, update, leaves);
        if (isnan(sum_new) && isnan(corrected)) continue;
        if (!(fabs(corrected - sum_new) <= 1e-9 * (fabs(sum_new) + 1e-3))) return false;
    }
    return true;
}

static int largest_leaf(const smg_slice_roles *r, smg_expr t) {
    int largest = r->count - 1, leaf = smg_expr_get(r->pool, t)->leaf;
    if (leaf > largest) largest = leaf;
    for (int i = 0; i < r->count; i++) {
        if (r->old[i] == SMG_EXPR_NONE) continue;
        leaf = smg_expr_get(r->pool, r->old[i])->leaf;
        if (leaf > largest) largest = leaf;
    }
    return largest;
}

static smg_status check(const smg_slice_roles *r, smg_combine combine, smg_expr expr, smg_expr t, smg_expr update,
                        smg_context *ctx) {
    int count = largest_leaf(r, t) + 1;
    double *leaves = smg_alloc(ctx, (size_t)count, sizeof(double));
    if (leaves == NULL) return SMG_MEMORY;
    bool good = gate(r, combine, expr, t, update, leaves, count);
    smg_free(ctx, leaves, (size_t)count * sizeof(double));
    if (good) return SMG_OK;
    return smg_fail(ctx, SMG_INTERNAL, "slice: a derived update of a %s disagrees with recomputation",
                    smg_combine_word(combine));
}

smg_status smg_slice_update(const smg_slice_roles *r, smg_combine combine, smg_expr expr, smg_expr t,
                            smg_expr *out_update, const char **out_why) {
    *out_why = "";
    *out_update = SMG_EXPR_NONE;
    if (smg_expr_get(r->pool, expr)->kind != SMG_KIND_FLOAT) {
        *out_why = "updates are derived for floats only";
        return SMG_OK;
    }
    if (combine == SMG_COMBINE_ADD) {
        *out_update = make2(r, SMG_PRIM_MUL, t, ratio(r, expr));
        *out_why = "the summand is not a product of a part that varies and a part of the aggregate";
    } else if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN) {
        *out_update = make2(r, SMG_PRIM_ADD, t, difference(r, expr));
        *out_why = "the operand is not a sum of a part that varies and a part of the aggregate";
    } else {
        *out_why = "no update is known for a product over the axis";
    }
    if (*out_update == SMG_EXPR_NONE) return SMG_OK;
    return check(r, combine, expr, t, *out_update, smg_exprs_context(r->pool));
}
