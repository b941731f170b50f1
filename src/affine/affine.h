/* affine: integers that depend on indices and sizes, decided for all of them at once.
 *
 * Takes:    expressions over integers and truths, what is known of their leaves, and how far each index runs.
 * Gives:    what is known of an expression: a form (begin + sum of factor * index) and where among the indices it
 *           holds, and a range that holds everywhere; arithmetic, bounds and division of forms.
 * Promises: what is said holds for every value of the symbols and every index within its extent; bounds are compared
 *           as sizes, and what cannot be proved is not known. Sizes that do not fit make a thing unknown; they are
 *           failures too unless the pool is quiet (smg_sizes_set_quiet).
 * Does not: know graphs. What an index is, and what a view does to it, is known to who asks.
 */
#ifndef SMG_AFFINE_H
#define SMG_AFFINE_H

#include "base/base.h"
#include "base/size.h"
#include "op/op.h"

/* ---- proofs over sizes: SMG_SIZE_NONE proves nothing ---------------------------------------------- */

bool smg_affine_at_most(smg_sizes *s, smg_size a, smg_size b, int64_t margin); /* a + margin <= b */
smg_size smg_affine_lesser(smg_sizes *s, smg_size a, smg_size b);              /* NONE where that depends */
smg_size smg_affine_greater(smg_sizes *s, smg_size a, smg_size b);

/* ---- forms ------------------------------------------------------------------------------------------ */

#define SMG_AFFINE_TERMS 16

typedef struct smg_affine_term {
    int index;   /* a number that only the owner of the form gives a meaning */
    smg_size by; /* never 0 */
} smg_affine_term;

/* begin + sum(by * index). Each index stands once; terms keep the order in which they came. All zero: the number 0. */
typedef struct smg_affine {
    smg_size begin;
    int count;
    smg_affine_term term[SMG_AFFINE_TERMS];
} smg_affine;

/* An index i is 0 <= i < extent. */
typedef struct smg_affine_scope {
    smg_sizes *sizes;
    smg_size (*extent)(const void *user, int index); /* SMG_SIZE_NONE: not known */
    /* Before a division by `by`: an index that crosses its multiples may become two (one of whole multiples, one of
     * what is within). false: no room. NULL: no index does. */
    bool (*split)(const void *user, smg_affine *io, smg_size by);
    const void *user;
} smg_affine_scope;

smg_size smg_affine_by(const smg_affine *a, int index); /* its factor, 0 where it does not stand */
smg_size smg_affine_take(smg_affine *io, int index);    /* the same, and takes it out */
bool smg_affine_same(const smg_affine *a, const smg_affine *b);
/* These give false where a size does not fit or there are too many terms. */
bool smg_affine_put(smg_sizes *s, smg_affine *io, int index, smg_size by);           /* io += by * index */
bool smg_affine_add(smg_sizes *s, smg_affine *io, const smg_affine *a, smg_size by); /* io += by * a */

/* ---- what is known of a value ----------------------------------------------------------------------- */

#define SMG_AFFINE_CUTS 8

/* An index from `first` to `last`, both included. */
typedef struct smg_affine_cut {
    int index;
    smg_size first, last;
} smg_affine_cut;

/* Bounds of a value wherever it stands; SMG_SIZE_NONE is no bound. A truth is 0 or 1. */
typedef struct smg_affine_range {
    smg_size low, high;
    int weight; /* about the terms in a bound */
} smg_affine_range;

typedef struct smg_affine_value {
    bool known;      /* the form is: an integer's value; a truth holds where its form is not negative */
    smg_affine form; /* holds inside of all cuts */
    int cut_count;
    smg_affine_cut cut[SMG_AFFINE_CUTS]; /* none leaves an index whole */
    smg_affine_range range;
    int leaf; /* the leaf that it always equals; -1: none */
} smg_affine_value;

extern const smg_affine_value smg_affine_unknown;

smg_affine_value smg_affine_of_size(smg_size size); /* unknown of SMG_SIZE_NONE */
/* A literal of that kind: unknown where it is no whole number of 32 bits, or a float. */
smg_affine_value smg_affine_of_number(smg_sizes *s, smg_kind kind, double value);
smg_affine_value smg_affine_of_index(const smg_affine_scope *scope, int index);

/* Known at all indices. */
bool smg_affine_whole(const smg_affine_value *v);
/* Known, and no index stands in it. */
bool smg_affine_is_size(const smg_affine_value *v);
/* NULL where v is known all along the index, and of v NULL. */
const smg_affine_cut *smg_affine_cut_of(const smg_affine_value *v, int index);
/* The part of an index in which v is known; of v NULL all of it. */
void smg_affine_span(const smg_affine_scope *scope, const smg_affine_value *v, int index, smg_size *out_first,
                     smg_size *out_last);
/* Questions about the indices at which `where` is known; NULL: about all. The least and the greatest value, both of
 * which it takes (unless there are none); false where that is not known. */
bool smg_affine_bounds(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where,
                       smg_size *out_low, smg_size *out_high);
/* +1: never negative, -1: always negative, 0: depends. */
int smg_affine_sign(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where);
/* Is 0 <= a < end? */
bool smg_affine_within(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where, smg_size end);
/* a = quotient * by + rest with 0 <= rest < by, of a `by` that is positive; false where that is not proved. */
bool smg_affine_divide(const smg_affine_scope *scope, const smg_affine *a, const smg_affine_value *where, smg_size by,
                       smg_affine *out_quotient, smg_affine *out_rest);

/* From now on v is known from first to last at most; unknown where that cannot be said. */
void smg_affine_cut_to(const smg_affine_scope *scope, smg_affine_value *io, int index, smg_size first, smg_size last);
/* io is known where the other is, too. False: nowhere. */
bool smg_affine_meet(const smg_affine_scope *scope, smg_affine_value *io, const smg_affine_value *other);
/* Of a truth: +1 holds, -1 fails, at all indices where its form is known or, by its range, everywhere; 0: depends. */
int smg_affine_decision(const smg_affine_scope *scope, const smg_affine_value *v);
/* The form of x * y where one of them is a size; its range is not known. */
smg_affine_value smg_affine_scaled(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y);
smg_affine_range smg_affine_united(smg_sizes *s, smg_affine_range a, smg_affine_range b);
bool smg_affine_no_negative(smg_sizes *s, smg_affine_range a);

/* ---- expressions ------------------------------------------------------------------------------------ */

/* What is known of a leaf, asked when the value is needed: of a choice that is decided, the other side is not. */
typedef struct smg_affine_leaves {
    smg_affine_value (*value)(const void *user, int leaf);
    const void *user;
} smg_affine_leaves;

/* What is known of an expression; quiet. Floats have forms where their leaves do (whole numbers) and no ranges. */
smg_affine_value smg_affine_eval(const smg_affine_scope *scope, const smg_exprs *pool, smg_expr expr,
                                 const smg_affine_leaves *leaves);

#endif
