/* slice_internal.h: the numeric gate, which the algebra asks and its test feeds with what is wrong. */
#ifndef SMG_SLICE_INTERNAL_H
#define SMG_SLICE_INTERNAL_H

#include "slice/slice.h"

/* Is the update of t = combine over c of expr(c, r) what recomputation gives? NULL when it is, else the reason why it
 * must not be used (static text). Only MEMORY is a failure. */
smg_status slice_gate(const smg_slice_roles *r, smg_combine combine, smg_expr expr, const smg_update *update,
                      const char **out_why);
/* The same of terms: is the sum of expr what the factors make of the sums? */
smg_status slice_gate_terms(const smg_slice_roles *r, smg_expr expr, const smg_terms *terms, const char **out_why);

#endif
