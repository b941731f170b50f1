/* What the files of onnx/ share besides the converters' interface: the model, the unpacked messages,
 * scopes of names. */
#ifndef SMG_ONNX_PRIVATE_H
#define SMG_ONNX_PRIVATE_H

#include "onnx.pb-c.h"
#include "onnx/onnx_build.h"

typedef Smg__Pb__Model pb_model;
typedef Smg__Pb__OpsetId pb_opset;
typedef Smg__Pb__Graph pb_graph;
typedef Smg__Pb__Node pb_node;
typedef Smg__Pb__Attribute pb_attribute;
typedef Smg__Pb__Tensor pb_tensor;
typedef Smg__Pb__ValueInfo pb_value_info;
typedef Smg__Pb__Dimension pb_dimension;
typedef Smg__Pb__Function pb_function;

/* AttributeProto.AttributeType */
enum {
    PB_FLOAT = 1,
    PB_INT = 2,
    PB_STRING = 3,
    PB_TENSOR = 4,
    PB_GRAPH = 5,
    PB_FLOATS = 6,
    PB_INTS = 7,
    PB_STRINGS = 8
};

typedef struct onnx_external {
    const char *location;
    smg_mapped_file file;
} onnx_external;

struct smg_onnx {
    smg_context *ctx;
    smg_arena *arena;
    const char *label;    /* the path, for sentences */
    smg_mapped_file file; /* zero when bytes were given */
    const uint8_t *data;
    size_t size;
    const char *folder; /* of external data; NULL: none */
    SMG_ARRAY(onnx_external) externals;
    pb_model *proto;
    smg_map *functions; /* by name; onnx_read.c */
    SMG_ARRAY(smg_onnx_missing) missing;
    SMG_ARRAY(smg_onnx_declared) declared;
};

/* ---- onnx_wire.c -------------------------------------------------------------------------------- */

/* Free *out_data with smg_free(ctx, *out_data, *out_capacity). */
smg_status smg_onnx_diet(smg_context *ctx, const char *label, const void *data, size_t size, uint8_t **out_data,
                         size_t *out_size, size_t *out_capacity);

/* ---- onnx_tensor.c ------------------------------------------------------------------------------ */

/* The tensor with its elements as little-endian bytes, inside a mapped file or in the arena; type,
 * rank and lengths checked. `name` stands for a tensor that has none. */
const char *smg_onnx_type_word(int64_t onnx_type);
smg_status smg_onnx_read_tensor(smg_onnx *model, const pb_tensor *tensor, const char *name,
                                const smg_import_tensor **out_tensor);

/* ---- onnx_external.c ---------------------------------------------------------------------------- */

/* Bytes of external data, mapped; `bytes` is what the tensor needs. */
smg_status smg_onnx_read_external(smg_onnx *model, const pb_tensor *tensor, const char *name, size_t bytes,
                                  const uint8_t **out_data);

/* ---- onnx_declared.c ---------------------------------------------------------------------------- */

smg_status smg_onnx_list_declared(smg_onnx *model);

/* ---- onnx_missing.c ----------------------------------------------------------------------------- */

smg_status smg_onnx_find_missing(smg_onnx *model);

/* ---- onnx_attribute.c --------------------------------------------------------------------------- */

/* Attributes of one node as a converter sees it. In the body of a function an attribute may stand for
 * one of the call, or for the function's default. */
typedef struct onnx_attributes {
    smg_onnx *model;
    size_t count;
    pb_attribute *const *items;
    const struct onnx_attributes *call; /* NULL outside functions */
    const pb_function *function;
} onnx_attributes;
const pb_attribute *smg_onnx_find_attribute(const onnx_attributes *attributes, const char *name);

/* ---- onnx_value.c, onnx_dims.c ------------------------------------------------------------------ */

/* Sizes of an input of the model: symbols by the names that the file gives. Plain names must have been
 * offered by smg_onnx_name_dims for all inputs before. */
smg_status smg_onnx_name_dims(smg_onnx_build *b, const pb_value_info *input);
smg_status smg_onnx_input_dims(smg_onnx_build *b, const pb_value_info *input, int *out_rank, smg_size *out_dims);

/* ---- onnx_order.c ------------------------------------------------------------------------------- */

/* Names of one graph or function body, to smg_onnx_value. */
typedef struct onnx_scope {
    const struct onnx_scope *outer; /* what a branch sees besides its own; NULL for functions */
    smg_map *values;
    const onnx_attributes *call; /* of the function around; NULL outside */
    const pb_function *function;
    size_t import_count;
    pb_opset *const *imports;
    int depth;
} onnx_scope;
/* NULL when nobody made the value. */
smg_onnx_value *smg_onnx_lookup(const onnx_scope *scope, const char *name);

typedef struct onnx_body {
    size_t node_count;
    pb_node *const *nodes;
    size_t output_count;
    const char *const *outputs;
} onnx_body;
typedef struct onnx_order {
    int *nodes; /* indices of the nodes that an output needs, producers first */
    int count;
    smg_map *wanted; /* names of values that somebody reads */
} onnx_order;
/* FORMAT for a cycle, a value made twice, and a value that nobody makes. */
smg_status smg_onnx_sort(smg_onnx_build *b, const onnx_scope *scope, const onnx_body *body, onnx_order *out_order);

/* ---- onnx_constant.c, onnx_node.c --------------------------------------------------------------- */

smg_status smg_onnx_convert_constant(smg_onnx_build *b, const smg_onnx_node *n);
smg_status smg_onnx_call(smg_onnx_build *b, const smg_onnx_node *n);
/* "node 'x' (Op, opset 18)" in front of the recorded failure. */
smg_status smg_onnx_at_node(smg_onnx_build *b, const smg_onnx_node *n, smg_status status);
void smg_onnx_hold_constant(smg_onnx_build *b, smg_onnx_value *v, const smg_import_tensor *tensor);

/* ---- onnx_sizes*.c: shape arithmetic ------------------------------------------------------------- */

/* num / den, den positive for every value of the symbols; integers and bools have den 1. */
typedef struct onnx_number {
    smg_size num, den;
} onnx_number;

/* A tensor whose elements are known, on its way through an operator. */
typedef struct onnx_known {
    smg_import_dtype dtype;
    int rank;
    int64_t dims[SMG_MAX_RANK];
    int count;
    onnx_number *items; /* row-major */
} onnx_known;

/* false when the input is left out or not known. */
bool smg_onnx_known_in(smg_onnx_build *b, const smg_onnx_node *n, int input, onnx_known *out);
/* Shape and room for the items; false when it has more than SMG_ONNX_KNOWN_MAX elements. */
bool smg_onnx_known_make(smg_onnx_build *b, smg_import_dtype dtype, int rank, const int64_t *dims, onnx_known *out);
/* Both f32, both integers or both bools, as operands of one operator must be. */
bool smg_onnx_known_alike(const onnx_known *x, const onnx_known *y);
smg_status smg_onnx_known_out(smg_onnx_build *b, const smg_onnx_node *n, int output, const onnx_known *known,
                              bool *out_done);
/* A known input as integers: shapes, axes, indices. */
bool smg_onnx_known_ints(smg_onnx_build *b, const smg_onnx_node *n, int input, const int64_t **out_ints,
                         int *out_count);
onnx_number smg_onnx_number_of(smg_onnx_build *b, int64_t value);
bool smg_onnx_number_is(smg_onnx_build *b, onnx_number x, int64_t *out_value); /* an integer */

typedef enum onnx_arith {
    ONNX_ADD,
    ONNX_SUB,
    ONNX_MUL,
    ONNX_DIV,
    ONNX_MOD,
    ONNX_FMOD,
    ONNX_MIN,
    ONNX_MAX,
    ONNX_POW,
    ONNX_EQ,
    ONNX_LT,
    ONNX_LE,
    ONNX_AND,
    ONNX_OR,
    ONNX_XOR
} onnx_arith;
/* false when the result is not the same expression for every size (or memory is out: b->failed).
 * integer: Div truncates. Comparisons and logic give 0 or 1. */
bool smg_onnx_arith(smg_onnx_build *b, onnx_arith op, bool integer, onnx_number x, onnx_number y, onnx_number *out);
typedef enum onnx_rounding {
    ONNX_FLOOR,
    ONNX_CEIL,
    ONNX_TRUNC,
    ONNX_NEAREST,
    ONNX_NEG,
    ONNX_ABS,
    ONNX_SIGN,
    ONNX_SQRT,
    ONNX_NOT,
    ONNX_NONZERO
} onnx_rounding;
bool smg_onnx_round(smg_onnx_build *b, onnx_rounding op, onnx_number x, onnx_number *out);

/* ---- names -------------------------------------------------------------------------------------- */

/* The model's function for an operator; NULL: none. */
const pb_function *smg_onnx_find_function(const smg_onnx *model, const pb_node *node);
/* Version of `domain` among the imports; 0 when it is not imported. "ai.onnx" is "". */
int64_t smg_onnx_opset_of(size_t count, pb_opset *const *imports, const char *domain);
const char *smg_onnx_domain(const char *domain);
/* The node's name, else that of its first output, else "?". */
const char *smg_onnx_node_name(const pb_node *node);

#define SMG_ONNX_DEEPEST 64 /* calls and branches in each other */

#endif
