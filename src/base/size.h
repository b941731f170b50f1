/* base/size.h: sizes that may be symbolic (batch, sequence), kept in a canonical form.
 *
 * A size is a polynomial with integer coefficients over atoms; an atom is a symbol or an opaque
 * operation (floor division, remainder, min, max) on two sizes. Equal polynomials have the same id in
 * one pool, so `a == b` decides most equalities. Every symbol stands for a value of at least 1.
 */
#ifndef SMG_SIZE_H
#define SMG_SIZE_H

#include "base/base.h"

typedef struct smg_sizes smg_sizes; /* the pool; lives in an arena */
typedef int32_t smg_size;           /* id in a pool; SMG_SIZE_NONE after a failed operation */
#define SMG_SIZE_NONE (-1)
#define SMG_SIZE_ZERO 0 /* the number 0 in every pool */

/* While quiet, what does not fit is SMG_SIZE_NONE without a failure: for questions whose answer may be "not known".
 * Returns what was set before. */
bool smg_sizes_set_quiet(smg_sizes *s, bool quiet);

typedef enum smg_size_op { SMG_SIZE_DIV, SMG_SIZE_MOD, SMG_SIZE_MIN, SMG_SIZE_MAX } smg_size_op;

smg_status smg_sizes_create(smg_arena *arena, smg_sizes **out_sizes);

/* All of these are sticky: SMG_SIZE_NONE operands, memory and overflow of constants give SMG_SIZE_NONE
 * with the failure recorded in the context. */
smg_size smg_size_const(smg_sizes *s, int64_t value);
/* Finds or makes the symbol. Bounds start at [1, SMG_SIZE_UNBOUNDED]. */
#define SMG_SIZE_UNBOUNDED INT64_C(0x7fffffff)
smg_size smg_size_symbol(smg_sizes *s, const char *name);
/* From now on the name stands for that size: smg_size_symbol gives it. For names that are no symbol yet. */
smg_status smg_size_define(smg_sizes *s, const char *name, smg_size value);
smg_size smg_size_add(smg_sizes *s, smg_size a, smg_size b);
smg_size smg_size_sub(smg_sizes *s, smg_size a, smg_size b);
smg_size smg_size_mul(smg_sizes *s, smg_size a, smg_size b);
smg_size smg_size_div(smg_sizes *s, smg_size a, smg_size b);      /* floor */
smg_size smg_size_ceil_div(smg_sizes *s, smg_size a, smg_size b); /* ceiling, as floor of (a+b-1)/b */
smg_size smg_size_mod(smg_sizes *s, smg_size a, smg_size b);
smg_size smg_size_min(smg_sizes *s, smg_size a, smg_size b);
smg_size smg_size_max(smg_sizes *s, smg_size a, smg_size b);

/* true and the quotient when b divides a for every value of the symbols (proved). */
bool smg_size_divide_exact(smg_sizes *s, smg_size a, smg_size b, smg_size *out_quotient);
bool smg_size_is_const(const smg_sizes *s, smg_size a, int64_t *out_value); /* out may be NULL */
bool smg_size_is_one(const smg_sizes *s, smg_size a);
bool smg_size_is_symbol(const smg_sizes *s, smg_size a, int *out_symbol); /* by itself */
/* true and the value of the symbol for which a is 0, when a has the symbol once, in a term of its own with
 * a coefficient that divides all others: 2*t - 2*p - 6 gives t = p+3. */
bool smg_size_solve(smg_sizes *s, smg_size a, int symbol, smg_size *out_value);
/* The least common multiple of the numbers that divide something with the symbol in a (floor, remainder); 1 when there
 * are none. Numbers that have none below 2^31 are left out. */
int64_t smg_size_period(const smg_sizes *s, smg_size a, int symbol);
/* Interval of values given the symbols' bounds (careful: may be wider than the truth). */
void smg_size_bounds(const smg_sizes *s, smg_size a, int64_t *out_low, int64_t *out_high);
/* The same where symbol i lies in [low[i], high[i]]; exact where these are one value for every symbol. The ends of 64
 * bits stand for what does not fit and for a division that may be by 0. */
void smg_size_between(const smg_sizes *s, smg_size a, const int64_t *low, const int64_t *high, int64_t *out_low,
                      int64_t *out_high);

int smg_size_symbol_count(const smg_sizes *s);
const char *smg_size_symbol_name(const smg_sizes *s, int symbol);
int smg_size_symbol_find(const smg_sizes *s, const char *name); /* -1 when absent */
void smg_size_symbol_set_max(smg_sizes *s, int symbol, int64_t max);
int64_t smg_size_symbol_max(const smg_sizes *s, int symbol);

/* values[symbol] for every symbol of the pool. Overflow and division by 0 give false. */
bool smg_size_eval(const smg_sizes *s, smg_size a, const int64_t *values, int64_t *out_value);

/* "b*s", "2*s+1", "floor(s/2)", "min(a,b)"; what is printed parses back. */
void smg_size_print(const smg_sizes *s, smg_size a, smg_text *text);
/* Parses an expression from *cursor on; stops at the first character that does not belong to it. */
smg_status smg_size_parse(smg_sizes *s, const char **cursor, smg_size *out_size);
/* The same size in another pool; symbols are matched by name, bounds of new ones are copied. */
smg_size smg_size_import(smg_sizes *to, const smg_sizes *from, smg_size a);

/* The pool as bytes, and back: every size keeps its id. FORMAT: the bytes are no pool. */
void smg_sizes_write(const smg_sizes *s, smg_text *out);
smg_status smg_sizes_read(smg_reader *r, smg_arena *arena, smg_sizes **out_sizes);
int smg_sizes_count(const smg_sizes *s); /* ids are below it */

#endif
