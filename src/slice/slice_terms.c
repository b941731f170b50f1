/* Sums of a few separable terms: where g(c, r) = u_1(c) H_1(r) + .. + u_n(c) H_n(r), the sum over c of g is that of H_i
 * times plain sums of u_i, whatever becomes of r meanwhile. By induction over the expression: terms of sums are listed,
 * those of products multiplied out, equal u_i joined.
 *
 * c - r is split at a pivot p that lies near the values of c, (c - p) + (p - r): raw moments of values that are large
 * beside their spread would cancel (mean 1e4 and spread 1 leave no digit of a variance in f32). */
#include "slice/slice_internal.h"

typedef struct expansion {
    const smg_slice_roles *roles;
    const smg_pivot *pivot;
} expansion;

static smg_expr one(const expansion *x) {
    return smg_expr_const(x->roles->pool, SMG_KIND_FLOAT, 1.0);
}

static smg_expr make(const expansion *x, smg_prim prim, smg_expr a, smg_expr b) {
    return smg_expr_make(x->roles->pool, prim, a, b, SMG_EXPR_NONE);
}

static smg_expr negated(const expansion *x, smg_expr e) {
    return smg_expr_make(x->roles->pool, SMG_PRIM_NEG, e, SMG_EXPR_NONE, SMG_EXPR_NONE);
}

/* false: there is no room. */
static bool add_term(const expansion *x, smg_expr summed, smg_expr factor, smg_terms *out) {
    for (int i = 0; i < out->count; i++) {
        if (out->summed[i] != summed) continue;
        out->factor[i] = make(x, SMG_PRIM_ADD, out->factor[i], factor);
        return true;
    }
    if (out->count == SMG_TERMS) return false;
    out->summed[out->count] = summed;
    out->factor[out->count++] = factor;
    return true;
}

static bool expand(const expansion *x, smg_expr e, smg_terms *out);

static bool is_pure(const expansion *x, smg_expr e, bool varies) {
    return smg_slice_varies(x->roles, e) == varies && smg_slice_aggregates(x->roles, e) == !varies;
}

/* What varies in c + r, c - r and r - c; SMG_EXPR_NONE: it is none of them. */
static smg_expr beside_aggregate(const expansion *x, const smg_expr_node *n) {
    for (int c = 0; c < 2; c++)
        if (is_pure(x, n->arg[c], true) && is_pure(x, n->arg[1 - c], false)) return n->arg[c];
    return SMG_EXPR_NONE;
}

/* Are all sums of what varies and an aggregate taken at a pivot? */
static bool is_centred(const expansion *x, smg_expr e) {
    smg_expr_node n = *smg_expr_get(x->roles->pool, e);
    if (!smg_slice_varies(x->roles, e) || !smg_slice_aggregates(x->roles, e)) return true;
    if (n.prim == SMG_PRIM_ADD || n.prim == SMG_PRIM_SUB) {
        smg_expr c = beside_aggregate(x, &n);
        return c != SMG_EXPR_NONE && x->pivot->near(x->pivot->user, c) != SMG_EXPR_NONE;
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++)
        if (!is_centred(x, n.arg[i])) return false;
    return true;
}

/* Both parts at the pivot. */
static bool expand_at_pivot(const expansion *x, const smg_expr_node *n, smg_terms *out) {
    smg_expr varies = beside_aggregate(x, n);
    smg_expr p = varies != SMG_EXPR_NONE ? x->pivot->near(x->pivot->user, varies) : SMG_EXPR_NONE;
    if (p == SMG_EXPR_NONE) return false;
    int c = n->arg[0] == varies ? 0 : 1;
    smg_expr away = make(x, SMG_PRIM_SUB, n->arg[c], p);
    if (n->prim == SMG_PRIM_SUB && c == 1) away = negated(x, away);
    smg_expr at = c == 0 ? make(x, n->prim, p, n->arg[1]) : make(x, n->prim, n->arg[0], p);
    return add_term(x, away, one(x), out) && add_term(x, one(x), at, out);
}

static bool expand_sum(const expansion *x, const smg_expr_node *n, smg_terms *out) {
    smg_terms right = {0};
    if (expand_at_pivot(x, n, out)) return true;
    *out = (smg_terms){0};
    if (!expand(x, n->arg[0], out) || !expand(x, n->arg[1], &right)) return false;
    for (int i = 0; i < right.count; i++) {
        smg_expr factor = n->prim == SMG_PRIM_SUB ? negated(x, right.factor[i]) : right.factor[i];
        if (!add_term(x, right.summed[i], factor, out)) return false;
    }
    return true;
}

/* Two sums that nearly cancel must not be multiplied out, unless they are small because they are at a pivot. */
static bool expand_product(const expansion *x, const smg_expr_node *n, smg_terms *out) {
    smg_terms left = {0}, right = {0};
    if (!expand(x, n->arg[0], &left) || !expand(x, n->arg[1], &right)) return false;
    bool several = left.count > 1 && right.count > 1;
    if (several && (!is_centred(x, n->arg[0]) || !is_centred(x, n->arg[1]))) return false;
    for (int i = 0; i < left.count; i++) {
        for (int j = 0; j < right.count; j++) {
            smg_expr summed = make(x, SMG_PRIM_MUL, left.summed[i], right.summed[j]);
            smg_expr factor = make(x, SMG_PRIM_MUL, left.factor[i], right.factor[j]);
            if (!add_term(x, summed, factor, out)) return false;
        }
    }
    return true;
}

/* By what does not vary, or what no aggregate is in. */
static bool expand_quotient(const expansion *x, const smg_expr_node *n, smg_terms *out) {
    bool varies = smg_slice_varies(x->roles, n->arg[1]), aggregates = smg_slice_aggregates(x->roles, n->arg[1]);
    if ((varies && aggregates) || !expand(x, n->arg[0], out)) return false;
    for (int i = 0; i < out->count; i++) {
        smg_expr *divided = varies ? &out->summed[i] : &out->factor[i];
        *divided = make(x, SMG_PRIM_DIV, *divided, n->arg[1]);
    }
    return true;
}

/* `select(p, a, 0)`, where p does not move with r. */
static bool expand_mask(const expansion *x, const smg_expr_node *n, smg_terms *out) {
    smg_expr zero = smg_expr_const(x->roles->pool, SMG_KIND_FLOAT, 0.0);
    bool first = n->arg[1] == zero;
    if (smg_slice_aggregates(x->roles, n->arg[0]) || (!first && n->arg[2] != zero)) return false;
    if (!expand(x, n->arg[first ? 2 : 1], out)) return false;
    for (int i = 0; i < out->count; i++) {
        smg_expr kept = out->summed[i];
        out->summed[i] =
            smg_expr_make(x->roles->pool, SMG_PRIM_SELECT, n->arg[0], first ? zero : kept, first ? kept : zero);
    }
    return true;
}

static bool expand(const expansion *x, smg_expr e, smg_terms *out) {
    *out = (smg_terms){0};
    if (!smg_slice_aggregates(x->roles, e)) return add_term(x, e, one(x), out);
    if (!smg_slice_varies(x->roles, e)) return add_term(x, one(x), e, out);
    smg_expr_node n = *smg_expr_get(x->roles->pool, e);
    switch (n.prim) {
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB: return expand_sum(x, &n, out);
    case SMG_PRIM_MUL: return expand_product(x, &n, out);
    case SMG_PRIM_DIV: return expand_quotient(x, &n, out);
    case SMG_PRIM_SELECT: return expand_mask(x, &n, out);
    case SMG_PRIM_NEG:
        if (!expand(x, n.arg[0], out)) return false;
        for (int i = 0; i < out->count; i++) out->factor[i] = negated(x, out->factor[i]);
        return true;
    default: return false;
    }
}

smg_status smg_slice_terms(const smg_slice_roles *r, smg_expr expr, const smg_pivot *pivot, smg_terms *out_terms,
                           const char **out_why) {
    const expansion x = {.roles = r, .pivot = pivot};
    *out_why = "the summand is no sum of a few terms, each of a part that varies and a part of the aggregate";
    bool found = smg_expr_get(r->pool, expr)->kind == SMG_KIND_FLOAT && expand(&x, expr, out_terms);
    SMG_TRY(smg_context_status(smg_exprs_context(r->pool)));
    if (found) {
        SMG_TRY(slice_gate_terms(r, expr, out_terms, out_why));
        found = *out_why == NULL;
    }
    if (!found) out_terms->count = 0;
    return SMG_OK;
}
