/* What a converter of one ONNX operator sees and calls. Private to src/onnx.
 *
 * A converter reads its node's inputs and attributes, builds graph nodes with smg_graph_*(b->graph, ..)
 * and sets the node's outputs:
 *
 *     smg_status smg_onnx_convert_neg(smg_onnx_build *b, const smg_onnx_node *n) {
 *         smg_value x = smg_onnx_in(b, n, 0);
 *         return smg_onnx_set(b, n, 0, smg_graph_map(b->graph, "neg", 1, &x));
 *     }
 *
 * Sticky like the builders: after a failure smg_onnx_in gives {0}, smg_graph_* give {0}, and
 * smg_onnx_set returns the first failure with the node's name in front. A converter never checks in
 * between, except before it indexes what may be missing.
 *
 * A value is any of three things, and becomes another one only when somebody asks:
 *   graph     a value of the graph (smg_onnx_in makes one of the other two)
 *   known     its elements are known expressions of sizes (shape arithmetic; smg_onnx_sizes)
 *   constant  bytes of the file or of the arena (weights; smg_onnx_constant)
 *
 * In the graph every float type is f32, every integer type i32, bool is bool: `dtype` says what ONNX
 * calls it. Constants of integer type are range-checked when they enter the graph. Inputs are cast at
 * the graph's edge. A graph value never has an extent of 0; known values and constants may.
 */
#ifndef SMG_ONNX_BUILD_H
#define SMG_ONNX_BUILD_H

#include "graph/graph.h"
#include "import/import.h"
#include "onnx/onnx.h"

#define SMG_ONNX_OPSET_MIN 11
#define SMG_ONNX_OPSET_MAX 23
/* A tensor of more elements is never evaluated on the host. */
#define SMG_ONNX_KNOWN_MAX 4096

typedef struct smg_onnx_value {
    const char *name; /* "" inside a converter's own work */
    smg_import_dtype dtype;
    int rank;
    smg_size dims[SMG_MAX_RANK];
    smg_value graph;       /* id 0: not in the graph (yet) */
    const smg_size *known; /* row-major; NULL: not known. Integer or bool dtype; bools 0, 1 */
    /* Float dtype: element i is known[i] / known_den[i], exactly (sizes that pass through a float). */
    const smg_size *known_den;
    int known_count;
    bool unknown;                      /* it was tried */
    const smg_import_tensor *constant; /* little-endian bytes; NULL: none */
    struct smg_onnx_value *items;      /* a sequence of values, and nothing of the above; NULL: none */
    int item_count;
    const void *unreadable; /* the initialiser, when smg has no such type: told when something reads it */
} smg_onnx_value;

typedef struct smg_onnx_node {
    const char *name; /* for sentences: never "" */
    const char *op, *domain;
    int64_t opset; /* of the domain */
    int input_count;
    smg_onnx_value *const *inputs; /* NULL: left out */
    int output_count;
    smg_onnx_value *const *outputs; /* NULL: nobody wants it */
    const void *attributes;         /* onnx_attribute.c */
} smg_onnx_node;

/* A symbol that is this size in every run, as text of sizes. */
typedef struct smg_onnx_alias {
    const char *symbol, *same_as;
} smg_onnx_alias;

/* A symbol that is at most this large, or the file contradicts itself. */
typedef struct smg_onnx_bound {
    const char *symbol;
    int64_t most;
} smg_onnx_bound;

typedef struct smg_onnx_build {
    smg_context *ctx;
    smg_onnx *model;
    smg_arena *arena; /* of the model: constants live as long as it */
    smg_graph *graph;
    smg_sizes *sizes;                  /* graph->sizes */
    bool failed;                       /* an accessor found something wrong; the context has the sentence */
    SMG_ARRAY(smg_onnx_alias) aliases; /* symbols that turned out to be something else, in order */
    SMG_ARRAY(smg_onnx_bound) bounds;
    SMG_ARRAY(smg_size)
    extents; /* of the graph's nodes that were looked at, each once (onnx_sizes_number.c) */
    int looked_at;
    bool restart; /* a new one was found: the failure that is recorded is not one */
} smg_onnx_build;

/* ---- the table (onnx_ops.def) ------------------------------------------------------------------- */

/* Builds graph nodes for the node's outputs. */
typedef smg_status (*smg_onnx_convert)(smg_onnx_build *b, const smg_onnx_node *n);
/* Tries to give all outputs as known values (onnx_sizes*.c); *out_done false and nothing set when that
 * is not possible. Tried before convert. */
typedef smg_status (*smg_onnx_evaluate)(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done);

typedef struct smg_onnx_op {
    const char *word, *domain;
    int min_inputs, max_inputs; /* max -1: any number. Checked before the functions are called */
    smg_onnx_convert convert;
    smg_onnx_evaluate evaluate;
} smg_onnx_op;
const smg_onnx_op *smg_onnx_find_op(const char *domain, const char *word); /* NULL: unknown */

#define ONNX_OP(word, domain, min_inputs, max_inputs, convert, evaluate)                                               \
    smg_status smg_onnx_convert_##convert(smg_onnx_build *b, const smg_onnx_node *n);                                  \
    smg_status smg_onnx_sizes_##evaluate(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done);
#include "onnx/onnx_ops.def"
#undef ONNX_OP
smg_status smg_onnx_convert_none(smg_onnx_build *b, const smg_onnx_node *n);
smg_status smg_onnx_sizes_none(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done);

/* ---- failures ----------------------------------------------------------------------------------- */

/* Records the sentence; the driver puts "'file': node 'encoder/MatMul_3' (MatMul, opset 18): " in front
 * of it, as of every failure that a converter returns. */
smg_status smg_onnx_fail(smg_onnx_build *b, const smg_onnx_node *n, smg_status code, const char *format, ...)
    SMG_PRINTF(4, 5);
/* The failure that is recorded already (by a builder, an accessor, an arena). */
smg_status smg_onnx_failed(smg_onnx_build *b, const smg_onnx_node *n);
/* "s+1", for sentences; in the arena. */
const char *smg_onnx_size_text(smg_onnx_build *b, smg_size size);
/* "f32[batch, 64]" of an input; "nothing" when it is left out. */
const char *smg_onnx_shape_text(smg_onnx_build *b, const smg_onnx_value *value);

/* ---- inputs ------------------------------------------------------------------------------------- */

bool smg_onnx_has(const smg_onnx_node *n, int input); /* given, not left out */
/* The input as a value of the graph, made on the first call. {0} after a failure (recorded), also when
 * the input is left out. Types: f32, i32 or bool. */
smg_value smg_onnx_in(smg_onnx_build *b, const smg_onnx_node *n, int input);
/* The same for a value of a sequence. */
smg_value smg_onnx_value_in(smg_onnx_build *b, smg_onnx_value *v);
/* f32, i32 or bool: what smg_onnx_in(b, n, input) will have. */
smg_type smg_onnx_type(const smg_onnx_node *n, int input);
/* The input's elements as sizes, in row-major order (a shape, axes, starts). UNSUPPORTED when they are
 * not known before the run. Integer and bool inputs only. */
smg_status smg_onnx_sizes(smg_onnx_build *b, const smg_onnx_node *n, int input, const smg_size **out_sizes,
                          int *out_count);
/* The same as numbers: UNSUPPORTED when one depends on a symbol. */
smg_status smg_onnx_ints(smg_onnx_build *b, const smg_onnx_node *n, int input, const int64_t **out_ints,
                         int *out_count);
/* A constant with one element, any type; UNSUPPORTED when it is not. Left out: the fallback. */
smg_status smg_onnx_number(smg_onnx_build *b, const smg_onnx_node *n, int input, double fallback, double *out_number);
/* Is a value of the graph one number all over, which it is made of or computed from? */
smg_status smg_onnx_filled(smg_onnx_build *b, smg_onnx_value *value, bool *out_is, double *out_number);
/* Quiet questions: false when the answer is not known before the run. After true, value->known holds
 * the elements. */
bool smg_onnx_knows_sizes(smg_onnx_build *b, smg_onnx_value *value);
/* The same for float values that are fractions of sizes: value->known_den may be set too. */
bool smg_onnx_knows_fractions(smg_onnx_build *b, smg_onnx_value *value);
bool smg_onnx_is_number(smg_onnx_build *b, smg_onnx_value *value, double *out_number);
/* Bytes of a constant input, NULL when it is something else. */
const smg_import_tensor *smg_onnx_constant(const smg_onnx_node *n, int input);

/* ---- attributes --------------------------------------------------------------------------------- */

/* Missing: the fallback. Of another type than asked: b->failed with a sentence, and the fallback; the
 * driver refuses the node. */
bool smg_onnx_has_attr(const smg_onnx_node *n, const char *name);
int64_t smg_onnx_attr_int(smg_onnx_build *b, const smg_onnx_node *n, const char *name, int64_t fallback);
double smg_onnx_attr_float(smg_onnx_build *b, const smg_onnx_node *n, const char *name, double fallback);
/* In the arena, NUL-terminated. */
const char *smg_onnx_attr_string(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const char *fallback);
/* The count, -1 when missing. */
int smg_onnx_attr_ints(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const int64_t **out_ints);
/* `count` numbers from `least` up; `fallback` each when missing. INVALID for another count or a smaller one. */
smg_status smg_onnx_attr_counts(smg_onnx_build *b, const smg_onnx_node *n, const char *name, int count,
                                int64_t fallback, int64_t least, int64_t *out);
int smg_onnx_attr_floats(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const float **out_floats);
/* NULL when missing. */
const smg_import_tensor *smg_onnx_attr_tensor(smg_onnx_build *b, const smg_onnx_node *n, const char *name);
/* Axes from attribute `axes` or, since opset 13 or 18, from input `input`: normalised, distinct, within
 * `rank`, in file order. *out_count -1: not given. */
smg_status smg_onnx_axes(smg_onnx_build *b, const smg_onnx_node *n, int input, int rank, int *out_axes, int *out_count);
/* An axis counted from the end when negative; INVALID outside [-rank, rank). */
smg_status smg_onnx_axis(smg_onnx_build *b, const smg_onnx_node *n, int64_t axis, int rank, int *out_axis);
/* The same from an input of one number; left out: the fallback. */
smg_status smg_onnx_axis_in(smg_onnx_build *b, const smg_onnx_node *n, int input, int64_t fallback, int rank,
                            int *out_axis);

/* ---- sizes -------------------------------------------------------------------------------------- */

bool smg_onnx_is_const(const smg_onnx_build *b, smg_size size, int64_t value);
smg_size smg_onnx_int(smg_onnx_build *b, int64_t value); /* smg_size_const */
smg_size smg_onnx_product(smg_onnx_build *b, int rank, const smg_size *dims);
/* The sizes must be the same for the node to mean anything (contracted axes, pieces of a Concat). OK
 * when they are; INVALID when they never are. Where that gives a symbol of the inputs its size (another
 * symbol, past+sequence, a number), or a bound: the file says so, and the conversion starts again with that;
 * the run then refuses other sizes. Else UNSUPPORTED, naming both and `what`. */
smg_status smg_onnx_equal(smg_onnx_build *b, const smg_onnx_node *n, smg_size x, smg_size y, const char *what);
/* true: x and y are equal as long as some symbol is small enough, which may be `least`; the conversion starts again
 * with that bound (onnx_bound.c). Called by the two functions around it. */
bool smg_onnx_bound_until_equal(smg_onnx_build *b, smg_size x, smg_size y, int64_t least);
/* true: x and y are equal where a symbol is a multiple of some number, and the text of that multiple: 8*floor(s/8)
 * and s are where s is 8*s_over_8. Both texts are in the arena. */
bool smg_onnx_multiple_until_equal(smg_onnx_build *b, smg_size x, smg_size y, const char **out_symbol,
                                   const char **out_multiple);
/* true: x and y are equal where one symbol is another one; both names. */
bool smg_onnx_symbol_until_equal(smg_onnx_build *b, smg_size x, smg_size y, const char **out_symbol,
                                 const char **out_other);
/* true: all is a multiple of part where some symbol is one, or small enough; the conversion starts again with that. */
bool smg_onnx_learn_multiple(smg_onnx_build *b, smg_size all, smg_size part);
/* Makes names of symbols stand for what earlier starts learned of them. */
smg_status smg_onnx_define_aliases(smg_onnx_build *b);
/* Result of broadcasting two shapes; io holds one of them. A pair that may be equal for some sizes only is
 * taken to be equal, as by smg_onnx_equal. */
smg_status smg_onnx_broadcast(smg_onnx_build *b, const smg_onnx_node *n, int rank, const smg_size *dims, int *io_rank,
                              smg_size *io_dims);
/* A size as a scalar of the graph. type: f32 or i32. */
smg_value smg_onnx_size_value(smg_onnx_build *b, smg_type type, smg_size size);

/* ---- outputs ------------------------------------------------------------------------------------ */

/* Sets output k to a graph value; {0} returns the recorded failure. The dtype follows the graph type:
 * F32, I64, BOOL. Outputs that nobody wants are fine. */
smg_status smg_onnx_set(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_value value);
/* With the ONNX type kept (Cast, and what hands an integer type on). */
smg_status smg_onnx_set_typed(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_import_dtype dtype,
                              smg_value value);
/* Known elements; `sizes` is in the arena and kept. `dims` are numbers, or one of them is 0. */
smg_status smg_onnx_set_known(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_import_dtype dtype, int rank,
                              const smg_size *dims, const smg_size *sizes);
/* Whatever the value is (Identity). */
smg_status smg_onnx_set_same(smg_onnx_build *b, const smg_onnx_node *n, int output, const smg_onnx_value *value);

/* ---- types -------------------------------------------------------------------------------------- */

/* TensorProto.DataType: NONE when smg has no such type (strings, complex, 4 and 8 bit floats). */
smg_import_dtype smg_onnx_dtype(int64_t onnx_type);
/* f32, i32 or bool. */
smg_type smg_onnx_graph_type(smg_import_dtype dtype);

#endif
