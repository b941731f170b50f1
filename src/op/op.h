/* op: what operations mean, as data.
 *
 * Takes:    nothing; two tables (prim.def, op.def).
 * Gives:    scalar expressions (hash-consed trees over primitives) with evaluation, simplification,
 *           algebra and printing; element types; combines; one row per graph operation.
 * Promises: whoever needs to know something of an operation asks its row or its expression.
 * Does not: see graph nodes, axes or devices.
 */
#ifndef SMG_OP_H
#define SMG_OP_H

#include "base/base.h"

/* ---- element types -------------------------------------------------------------------------- */

/* ID, word, bytes in files and host arrays, bytes on the device, kind */
#define SMG_TYPE_MAP(X)                                                                                                \
    X(F32, "f32", 4, 4, FLOAT)                                                                                         \
    X(F16, "f16", 2, 2, FLOAT)                                                                                         \
    X(BF16, "bf16", 2, 2, FLOAT)                                                                                       \
    X(I32, "i32", 4, 4, INT)                                                                                           \
    X(I64, "i64", 8, 4, INT)                                                                                           \
    X(BOOL, "bool", 1, 4, BOOL)
typedef enum smg_type {
#define SMG_TYPE_ROW(id, word, host, device, kind) SMG_TYPE_##id,
    SMG_TYPE_MAP(SMG_TYPE_ROW)
#undef SMG_TYPE_ROW
        SMG_TYPE_COUNT
} smg_type;
typedef enum smg_kind { SMG_KIND_FLOAT, SMG_KIND_INT, SMG_KIND_BOOL } smg_kind;
const char *smg_type_word(smg_type type);
bool smg_type_find(const char *word, smg_type *out_type);
int64_t smg_type_host_bytes(smg_type type);
int64_t smg_type_device_bytes(smg_type type);
smg_kind smg_type_kind(smg_type type);
/* A float as the type stores it: the nearest one, infinite where that is too large. */
double smg_type_stored(smg_type type, double value);
/* The smallest size of which all larger ones are stored infinite; 0 where none is (integers). */
double smg_type_limit(smg_type type);
/* The smallest size that is stored with all of the type's precision; 0 for integers. */
double smg_type_least(smg_type type);
/* Half the distance of 1 to the next float: the largest relative error of storing what is neither too large nor too
 * small; 0 for integers. */
double smg_type_epsilon(smg_type type);
/* Element `index` of a host array as a number, and back. */
double smg_host_get(smg_type type, const void *data, int64_t index);
void smg_host_set(smg_type type, void *data, int64_t index, double value);

/* ---- primitives and expressions --------------------------------------------------------------- */

typedef enum smg_prim {
#define PRIM(id, word, arity, result, cost, c, glsl, laws) SMG_PRIM_##id,
#include "op/prim.def"
#undef PRIM
    SMG_PRIM_COUNT
} smg_prim;
int smg_prim_arity(smg_prim prim);
const char *smg_prim_word(smg_prim prim);
const char *smg_prim_glsl(smg_prim prim);
double smg_prim_cost(smg_prim prim);
/* Jumps at whole numbers: a result may hang on the last bit of the operand, so the reference rounds that
 * to the operand's type first. */
bool smg_prim_is_step(smg_prim prim);
/* Orders its two operands, or says whether they are equal. */
bool smg_prim_compares(smg_prim prim);
/* What holds of a primitive for all values, -0 counting as 0, as bits: the simplifier, the rewrites and the slicers ask
 * these. */
typedef enum smg_law {
    SMG_LAW_COMMUTES = 1,        /* x op y = y op x */
    SMG_LAW_ZERO_KEEPS = 2,      /* x op 0 = x, up to the sign of zero; on either side where it commutes */
    SMG_LAW_ONE_KEEPS = 4,       /* x op 1 = x */
    SMG_LAW_ZERO_WINS = 8,       /* x op 0 = 0 */
    SMG_LAW_ONE_WINS = 16,       /* x op 1 = 1 */
    SMG_LAW_ALIKE_KEEPS = 32,    /* x op x = x */
    SMG_LAW_ALIKE_TRUE = 64,     /* x op x holds, unless x is NaN */
    SMG_LAW_ALIKE_FALSE = 128,   /* x op x never holds */
    SMG_LAW_ALIKE_ZERO = 256,    /* x op x = 0, NaN where x is NaN or infinite */
    SMG_LAW_UNDOES_ITSELF = 512, /* op op x = x */
    SMG_LAW_NO_NEGATIVE = 1024,  /* the result is never below 0 (NaN is not) */
    SMG_LAW_KEEPS_SIGN = 2048    /* nor where no operand is */
} smg_law;
bool smg_prim_obeys(smg_prim prim, smg_law law);
double smg_prim_eval(smg_prim prim, smg_kind kind, double x, double y, double z);
/* The same of n elements; x, y and z have so many, whatever the arity is. */
void smg_prim_eval_each(smg_prim prim, smg_kind kind, const double *x, const double *y, const double *z, int n,
                        double *out);
/* The i32 that an integer result is in kernels: its low 32 bits. */
double smg_wrap_i32(double value);

/* An expression is an id in a pool; equal trees have equal ids. A LEAF carries an integer that only
 * the owner of the expression gives a meaning. */
typedef int32_t smg_expr;
#define SMG_EXPR_NONE (-1)
typedef struct smg_expr_node {
    smg_prim prim;
    smg_kind kind;
    smg_expr arg[3];
    double value; /* CONST */
    int leaf;     /* LEAF */
} smg_expr_node;
typedef struct smg_exprs smg_exprs;

smg_status smg_exprs_create(smg_arena *arena, smg_exprs **out_exprs);
/* Valid until the next make; of SMG_EXPR_NONE a constant 0, so that walks end where memory was out. */
const smg_expr_node *smg_expr_get(const smg_exprs *pool, smg_expr expr);
int smg_expr_count(const smg_exprs *pool);
smg_context *smg_exprs_context(const smg_exprs *pool);
/* Sticky: SMG_EXPR_NONE in, SMG_EXPR_NONE out. Constants fold, and what the laws of the primitive say is applied; the
 * sign of zero is the one thing that may change. A bool constant is 0 or 1. */
smg_expr smg_expr_const(smg_exprs *pool, smg_kind kind, double value);
smg_expr smg_expr_leaf(smg_exprs *pool, smg_kind kind, int leaf);
smg_expr smg_expr_make(smg_exprs *pool, smg_prim prim, smg_expr a, smg_expr b, smg_expr c);
/* Replaces every leaf: with[leaf] when leaf < count and with[leaf] != SMG_EXPR_NONE. */
smg_expr smg_expr_substitute(smg_exprs *pool, smg_expr expr, const smg_expr *with, int count);
/* Prefix text over a, b, c -> expression over the three given ones (kinds follow the operands). */
smg_expr smg_expr_parse(smg_exprs *pool, const char *prefix, const smg_expr operand[3]);
/* leaves[leaf] for every leaf; memo-free recursion, for tests and small trees. */
double smg_expr_eval(const smg_exprs *pool, smg_expr expr, const double *leaves);
double smg_expr_cost(const smg_exprs *pool, smg_expr expr); /* multiply-adds, shared parts once */
/* Calls visit for every distinct leaf. Out of memory: for none, and the context says so: callers end with
 * smg_context_status. */
void smg_expr_leaves(const smg_exprs *pool, smg_expr expr, void (*visit)(void *user, int leaf), void *user);
/* Infix, for people; leaf_name writes a leaf. */
void smg_expr_print(const smg_exprs *pool, smg_expr expr, smg_text *text,
                    void (*leaf_name)(void *user, int leaf, smg_text *text), void *user);

/* ---- combines --------------------------------------------------------------------------------- */

/* Associative, commutative folds of a reduction. */
typedef enum smg_combine {
    SMG_COMBINE_ADD,
    SMG_COMBINE_MAX,
    SMG_COMBINE_MIN,
    SMG_COMBINE_MUL,
    SMG_COMBINE_COUNT
} smg_combine;
const char *smg_combine_word(smg_combine combine);
smg_prim smg_combine_prim(smg_combine combine);
double smg_combine_identity(smg_combine combine); /* the true one: -inf for max */

/* ---- operations ------------------------------------------------------------------------------- */

typedef enum smg_op {
#define OP(id, word, class_, arity, expr, doc) SMG_OP_##id,
#include "op/op.def"
#undef OP
    SMG_OP_COUNT
} smg_op;
typedef enum smg_op_class {
    SMG_CLASS_LEAF,
    SMG_CLASS_MAP,
    SMG_CLASS_REDUCE,
    SMG_CLASS_CONTRACT,
    SMG_CLASS_GATHER,
    SMG_CLASS_VIEW
} smg_op_class;
typedef struct smg_op_row {
    const char *word;
    smg_op_class class_;
    int arity;
    const char *expression;
    const char *doc;
} smg_op_row;
extern const smg_op_row smg_op_rows[SMG_OP_COUNT];
static inline const smg_op_row *smg_op_get(smg_op op) {
    return op < SMG_OP_COUNT ? &smg_op_rows[op] : NULL;
}
bool smg_op_find(const char *word, smg_op *out_op);
/* The map that is just this primitive of its operands. */
bool smg_op_of_prim(smg_prim prim, smg_op *out_op);
smg_combine smg_op_combine(smg_op op); /* of a REDUCE row; ADD for CONTRACT */
/* What a VIEW relabels and what a LEAF holds, so that nobody outside op/ names a row. */
typedef enum smg_view_kind {
    SMG_VIEW_NONE,
    SMG_VIEW_RESHAPE,
    SMG_VIEW_TRANSPOSE,
    SMG_VIEW_BROADCAST,
    SMG_VIEW_SLICE,
    SMG_VIEW_WINDOW
} smg_view_kind;
smg_view_kind smg_op_view(smg_op op);
typedef enum smg_leaf_kind {
    SMG_LEAF_NONE,
    SMG_LEAF_TENSOR, /* has a buffer: input or constant */
    SMG_LEAF_NUMBER, /* one literal everywhere */
    SMG_LEAF_SIZE,   /* a size expression as a number */
    SMG_LEAF_INDEX   /* the index along an axis */
} smg_leaf_kind;
smg_leaf_kind smg_op_leaf(smg_op op);
bool smg_op_is_input(smg_op op);    /* the TENSOR that the caller gives at every run */
bool smg_op_is_constant(smg_op op); /* the TENSOR with fixed contents */
bool smg_op_converts(smg_op op);    /* a MAP whose result type is the node's, not its operands' */
bool smg_op_copies(smg_op op);      /* a MAP whose result is its operand, as a tensor of its own */
/* The expression of a MAP with operands `operand` and result type `type` (CAST needs it). */
smg_expr smg_op_expr(smg_exprs *pool, smg_op op, smg_type type, const smg_expr operand[3]);
/* Element type of the result of a MAP from its operands' types; false when they do not match. */
bool smg_op_infer_type(smg_op op, const smg_type *operand, int count, smg_type *out_type);

#endif
