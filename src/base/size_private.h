/* The pool behind smg_size, shared by the arithmetic (base_size.c), the values (base_size_value.c)
 * and the text form (base_size_text.c). */
#ifndef SMG_SIZE_PRIVATE_H
#define SMG_SIZE_PRIVATE_H

#include "base/size.h"

#define SIZE_MAX_DEGREE 12
#define SIZE_MAX_TERMS 256

/* coefficient * product of atoms; atoms ascend, a power is a repetition. */
typedef struct size_term {
    int64_t coefficient;
    int degree;
    int32_t atom[SIZE_MAX_DEGREE];
} size_term;

typedef struct size_atom {
    bool is_symbol;
    int symbol;
    smg_size_op op;
    smg_size a, b;
} size_atom;

typedef struct size_symbol {
    const char *name;
    int64_t max;
} size_symbol;

typedef struct size_definition {
    const char *name;
    smg_size value;
} size_definition;

/* Terms in descending graded lexicographic order; none is the number 0. */
typedef struct size_node {
    uint64_t hash;
    int count;
    const size_term *terms;
} size_node;

#define SMALL_CONSTANTS 257 /* from 0 on, which are asked for often */

struct smg_sizes {
    smg_arena *arena;
    SMG_ARRAY(size_node) nodes;
    SMG_ARRAY(size_atom) atoms;
    SMG_ARRAY(size_symbol) symbols;
    SMG_ARRAY(size_definition) definitions;
    SMG_ARRAY(size_term) scratch; /* the sum under construction, canonical but for zeros */
    int32_t *table;               /* open addressing, id + 1 */
    int table_size;
    smg_size small[SMALL_CONSTANTS]; /* by value: of the constant; 0, which is that of 0: not made yet */
    bool quiet;                      /* a query is running: failures are answers, not errors */
};

/* Sums up terms in the scratch and makes the size of it. */
void smg_size_begin(smg_sizes *s);
bool smg_size_put(smg_sizes *s, int64_t coefficient, int degree, const int32_t *atoms);
smg_size smg_size_intern(smg_sizes *s);

/* Signed, checked. */
bool smg_size_checked_mul(int64_t a, int64_t b, int64_t *out);
bool smg_size_checked_add(int64_t a, int64_t b, int64_t *out);
int64_t smg_size_floor_div(int64_t a, int64_t b);

#endif
