/* slice: what may be cut, and what it takes to cut it (SpaceFusion, EuroSys '25, sections 4 and 5).
 *
 * Takes:    a space; scalar expressions with a role for every leaf.
 * Gives:    the spatial axes with reasons; the algebra of dependent reductions: factors that may be
 *           postponed past a reduction, update functions that correct a running result, and sums of separable terms.
 * Promises: everything is derived from the primitives' algebra, and every update and every sum of terms passes a
 *           numeric gate before it is used: one that disagrees with recomputation is refused, with the reason.
 * Does not: search, choose sizes, or know tiles.
 */
#ifndef SMG_SLICE_H
#define SMG_SLICE_H

#include "op/op.h"
#include "space/space.h"

/* Spatial slicer: axes along which no block needs another. An axis is spatial iff every value that is
 * not streamed, and every result, has it, and it is not held: then no All-to-One runs along it, no One-to-All along it
 * starts at an intermediate, and nobody needs another's elements. Appends one line per axis that is not ("i2 is not
 * cut: sum reduces it") to `why`, may be NULL. */
smg_axis_set smg_slice_spatial(const smg_space *space, smg_text *why);
/* Axes that are not spatial and may be cut all the same, when each block computes anew what lacks them: every result
 * and every product has them, and nothing is reduced along them. Products would cost too much to make again. */
smg_axis_set smg_slice_anew(const smg_space *space);

/* Statistics in the loop of a product. Where sums over what a product contracts read inputs alone, and reach the
 * product as a factor that leaves it: the space with the sums as products with 1, and with what lies
 * between as streamed. NULL where it is none such; it shares all but its nodes with `space`. */
smg_status smg_slice_linear(const smg_space *space, smg_arena *arena, smg_space **out_space);
/* Products with vectors as what they are made of. Where one factor of each product has all axes of the other, nothing
 * is used twice: the space with each of them as a map that multiplies and a sum over what it contracts. NULL where some
 * product is none such, or where no sum and no product needs another; it shares all but its nodes and leaves with
 * `space`. */
smg_status smg_slice_multiplied(const smg_space *space, smg_arena *arena, smg_space **out_space);

/* Role of a leaf while one axis is cut temporally. */
typedef enum smg_leaf_role {
    SMG_ROLE_FIXED = 0, /* the same in all slices */
    SMG_ROLE_VARIES,    /* differs along the cut axis (c in the paper) */
    SMG_ROLE_AGGREGATE  /* running result of a reduction over the cut axis (r) */
} smg_leaf_role;

typedef struct smg_slice_roles {
    smg_exprs *pool;
    const smg_leaf_role *role; /* per leaf number */
    const smg_expr *old;       /* per leaf number: the leaf of an AGGREGATE's previous value */
    const smg_expr *sum_of;    /* per leaf number: what an AGGREGATE is the plain sum of; may be NULL, or hold
                                  SMG_EXPR_NONE */
    int count;
    smg_map *asked; /* what the numeric gate said of questions that came before; NULL: it tries each anew */
} smg_slice_roles;

bool smg_slice_varies(const smg_slice_roles *r, smg_expr expr);     /* has a VARIES leaf */
bool smg_slice_aggregates(const smg_slice_roles *r, smg_expr expr); /* has an AGGREGATE leaf */

/* Broadcast postposition: sum(expr) = guard ? sum(core) * factor : 0, where factor does not vary and moves behind
 * a sum. factor is SMG_EXPR_NONE when nothing can be taken out; guard is SMG_EXPR_NONE when it always holds. A factor
 * under an exp stays (stabiliser). Only factors with AGGREGATE leaves are taken. A guard comes from a condition that
 * does not vary, `select(s == 0, 0, a / s)`, and from `select(isnan(a / s), 0, a / s)`, where s is the sum of the
 * very a and no a is negative: that is NaN for all elements or for none. a * (1 / s) is the same quotient. */
typedef struct smg_postponed {
    smg_expr core, factor, guard;
} smg_postponed;
smg_status smg_slice_postpone(const smg_slice_roles *r, smg_expr expr, smg_postponed *out);

/* Facts about values: proved to be >= 0 (or NaN) whatever the leaves hold. */
bool smg_slice_nonnegative(const smg_exprs *pool, smg_expr expr);

/* Update function of t = combine over the cut axis of expr(c, r), when r moves from its old to its new value. sum:
 * t * H(r')/H(r), or t + n * (H(r') - H(r)) where n counts the elements that H(r) is added to; max and min:
 * t + (H(r') - H(r)). */
typedef struct smg_update {
    smg_expr t, n;  /* asked for: leaves of the running value and of the count; n is SMG_EXPR_NONE where none is kept */
    smg_expr value; /* over t, n, old and new aggregates; SMG_EXPR_NONE when there is none */
    smg_expr counted; /* n is the running sum of this, up to the slice before; SMG_EXPR_NONE when the value has no n */
} smg_update;
/* Fills value and counted; out_why: the reason why there is no value (static text). */
smg_status smg_slice_update(const smg_slice_roles *r, smg_combine combine, smg_expr expr, smg_update *update,
                            const char **out_why);

/* Where there is no update: sum of expr = factor[0] * sum of summed[0] + .., whatever the aggregates become. What is
 * summed has no aggregate, and no factor varies. */
#define SMG_TERMS 4
typedef struct smg_terms {
    int count; /* 0: there are none */
    smg_expr summed[SMG_TERMS], factor[SMG_TERMS];
} smg_terms;
/* Asked for something near to what `varies` is, and that does not vary; it gives SMG_EXPR_NONE where there is none. */
typedef struct smg_pivot {
    smg_expr (*near)(void *user, smg_expr varies);
    void *user;
} smg_pivot;
/* out_why: the reason why there are none (static text). */
smg_status smg_slice_terms(const smg_slice_roles *r, smg_expr expr, const smg_pivot *pivot, smg_terms *out_terms,
                           const char **out_why);

#endif
