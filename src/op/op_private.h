/* What only op/ itself needs: facts about primitives, the pool of expressions, tokens of a row's text. */
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

/* ---- the pool (op_expr.c; summaries are op_expr_walk.c's) ----------------------------------------- */

typedef SMG_ARRAY(smg_expr_node) expr_array;

/* Cost and leaves of an expression, once they were asked for. */
typedef struct expr_summary {
    double cost;
    int first, count; /* in the list of leaves */
    bool has_cost, has_leaves;
} expr_summary;
typedef struct expr_summaries {
    SMG_ARRAY(expr_summary) items; /* by expression */
    SMG_ARRAY(int) leaves;
} expr_summaries;

struct smg_exprs {
    expr_summaries *summaries;
    smg_arena *arena;
    expr_array nodes;
    int32_t *table; /* open addressing, id + 1 */
    int table_size;
};

bool smg_expr_valid(const smg_exprs *pool, smg_expr expr);

/* One token of a row's prefix text: '(' with a primitive's word, ')', an operand or a number. */
typedef struct prefix_token {
    enum { PREFIX_END, PREFIX_OPEN, PREFIX_CLOSE, PREFIX_OPERAND, PREFIX_NUMBER, PREFIX_BAD } kind;
    smg_prim prim;
    int operand;
    double number;
} prefix_token;
prefix_token smg_prefix_next(const char **cursor);

#endif
