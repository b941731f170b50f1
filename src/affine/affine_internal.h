/* What the files of affine/ share: values made of values. */
#ifndef SMG_AFFINE_INTERNAL_H
#define SMG_AFFINE_INTERNAL_H

#include "affine/affine.h"

/* ---- affine_value.c: forms; what they give has no range ---- */

smg_affine_value smg_affine_combined(const smg_affine_scope *scope, const smg_affine_value *x,
                                     const smg_affine_value *y, int64_t by); /* x + y * by */
/* A truth's form, where `at` is known. */
smg_affine_value smg_affine_truth(const smg_affine_scope *scope, const smg_affine_value *at, bool value);
smg_affine_value smg_affine_equal(const smg_affine_scope *scope, const smg_affine_value *x, const smg_affine_value *y);
/* x where p holds, y elsewhere. */
smg_affine_value smg_affine_chosen(const smg_affine_scope *scope, const smg_affine_value *p, const smg_affine_value *x,
                                   const smg_affine_value *y);
smg_affine_value smg_affine_divided(const smg_affine_scope *scope, smg_prim prim, const smg_affine_value *x,
                                    const smg_affine_value *y);

/* ---- affine_prim.c ---- */

/* Of any primitive but a choice; `from` is the kind of its first operand. */
smg_affine_value smg_affine_apply(const smg_affine_scope *scope, smg_prim prim, smg_kind from,
                                  const smg_affine_value *x);
/* x where p holds, y elsewhere, with the range that both have. */
smg_affine_value smg_affine_choice(const smg_affine_scope *scope, const smg_affine_value *p, const smg_affine_value *x,
                                   const smg_affine_value *y);
/* Of a truth: a form that decides everywhere is a range, and a range that decides is a form. */
smg_affine_value smg_affine_settled(const smg_affine_scope *scope, smg_affine_value v);

/* ---- affine_range.c ---- */

extern const smg_affine_range smg_affine_no_range;
int smg_affine_truth_of(smg_sizes *s, smg_affine_range a); /* +1 holds, -1 fails, 0 depends */
smg_affine_range smg_affine_truths(smg_sizes *s, bool may_fail, bool may_hold);
smg_affine_range smg_affine_range_sum(smg_sizes *s, smg_affine_range a, smg_affine_range b);
smg_affine_range smg_affine_range_minus(smg_sizes *s, smg_affine_range a);
smg_affine_range smg_affine_range_product(smg_sizes *s, smg_affine_range a, smg_affine_range b);
smg_affine_range smg_affine_range_mod(smg_sizes *s, smg_affine_range b);
smg_affine_range smg_affine_range_extreme(smg_sizes *s, smg_affine_range a, smg_affine_range b, bool least);
smg_affine_range smg_affine_range_comparison(smg_sizes *s, smg_affine_range a, smg_affine_range b, int64_t margin);
smg_affine_range smg_affine_range_equality(smg_sizes *s, smg_affine_range a, smg_affine_range b);

#endif
