/* Facts about primitives that only op/ itself needs. */
#ifndef SMG_OP_PRIVATE_H
#define SMG_OP_PRIVATE_H

#include "op/op.h"

typedef enum prim_result {
    PRIM_RESULT_NONE,
    PRIM_RESULT_FLOAT,
    PRIM_RESULT_INT,
    PRIM_RESULT_BOOL,
    PRIM_RESULT_SAME
} prim_result;

prim_result smg_prim_result(smg_prim prim);
bool smg_prim_find(const char *word, size_t length, smg_prim *out_prim);

/* One token of a row's prefix text: '(' with a primitive's word, ')', an operand or a number. */
typedef struct prefix_token {
    enum { PREFIX_END, PREFIX_OPEN, PREFIX_CLOSE, PREFIX_OPERAND, PREFIX_NUMBER, PREFIX_BAD } kind;
    smg_prim prim;
    int operand;
    double number;
} prefix_token;
prefix_token smg_prefix_next(const char **cursor);

#endif
