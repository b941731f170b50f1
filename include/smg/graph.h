/* smg/graph.h: build a tensor graph in C, or read one from text.
 *
 *     smg_graph *g;
 *     smg_graph_create(ctx, "row_norm", &g);
 *     smg_value x = smg_graph_input(g, "x", "f32", "rows, 1024");
 *     smg_value m = smg_graph_reduce(g, "sum", x, 1, true);
 *     smg_value y = smg_graph_map(g, "div", 2, (smg_value[]){x, m});
 *     smg_graph_output(g, "y", y);
 *     if (smg_graph_finish(g) != SMG_OK) ... smg_context_error(ctx) ...
 *
 * Builders are sticky: after the first failure they return the invalid value {0} and do nothing, and
 * smg_graph_finish reports it, whatever else failed in the meantime. Shapes are comma-separated sizes;
 * a name is a symbolic size that is bound when the program runs. Ownership: the graph belongs to the
 * caller (smg_graph_destroy); constant data is borrowed and must outlive what is made from the graph.
 * Not thread-safe.
 * Operations are primitive (`smg help ops` lists them): norms, gates and heads are written with them and
 * fused by their dependencies.
 */
#ifndef SMG_GRAPH_PUBLIC_H
#define SMG_GRAPH_PUBLIC_H

#include "smg/context.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_graph smg_graph;
typedef struct smg_value {
    int id;
} smg_value; /* 0 is invalid */

SMG_API smg_status smg_graph_create(smg_context *ctx, const char *name, smg_graph **out_graph);
SMG_API void smg_graph_destroy(smg_graph *graph);
/* Verifies; the first failure of any builder call comes back here. */
SMG_API smg_status smg_graph_finish(smg_graph *graph);

/* type: f32 f16 bf16 i32 i64 bool. dims: "batch, 128"; "" is a scalar. */
SMG_API smg_value smg_graph_input(smg_graph *g, const char *name, const char *type, const char *dims);
/* data: row-major in host byte order, borrowed; may be NULL to give shapes only. */
SMG_API smg_value smg_graph_constant(smg_graph *g, const char *name, const char *type, const char *dims,
                                     const void *data);
SMG_API smg_value smg_graph_number(smg_graph *g, const char *type, double value);
/* A size as an f32 scalar: "2*s"; or of type f32, i32 or i64. */
SMG_API smg_value smg_graph_size(smg_graph *g, const char *size);
SMG_API smg_value smg_graph_size_as(smg_graph *g, const char *type, const char *size);
/* i32 with the given dims whose elements are the index along `axis`. */
SMG_API smg_value smg_graph_iota(smg_graph *g, const char *dims, int axis);
/* Elementwise with NumPy broadcasting; op is a word of a MAP row ("add", "exp", "select", ...). */
SMG_API smg_value smg_graph_map(smg_graph *g, const char *op, int count, const smg_value *operands);
SMG_API smg_value smg_graph_cast(smg_graph *g, smg_value a, const char *type);
/* op: sum reduce_max reduce_min reduce_prod over one axis (negative counts from the end). */
SMG_API smg_value smg_graph_reduce(smg_graph *g, const char *op, smg_value a, int axis, bool keep);
/* Einstein notation with two operands and no repeated letter in one: "bshd,bthd->bhst". */
SMG_API smg_value smg_graph_contract(smg_graph *g, const char *labels, smg_value a, smg_value b);
/* Rows of `table` (any rank >= 1) at i32/i64 indices: dims(indices) + dims(table)[1:]. */
SMG_API smg_value smg_graph_gather(smg_graph *g, smg_value table, smg_value indices);
SMG_API smg_value smg_graph_reshape(smg_graph *g, smg_value a, const char *dims);
SMG_API smg_value smg_graph_transpose(smg_graph *g, smg_value a, int rank, const int *perm);
SMG_API smg_value smg_graph_broadcast(smg_graph *g, smg_value a, const char *dims);
/* Elements begin, begin+step, ... `count` of them along axis; begin and count are sizes. */
SMG_API smg_value smg_graph_slice(smg_graph *g, smg_value a, int axis, const char *begin, const char *count, int step);
/* `axis` becomes two axes (i of `count`, j of `taps`): element begin + step*i + dilation*j, or `fill` where
 * that is outside: convolutions, pooling, shifts. begin may be negative. */
SMG_API smg_value smg_graph_window(smg_graph *g, smg_value a, int axis, const char *begin, const char *count, int step,
                                   const char *taps, int dilation, double fill);

/* Compositions of the operations above (src/graph/graph_compose.c); all exact for integers, too. */

/* `before` and `after` elements of `value` around `axis`; negative ones crop. */
SMG_API smg_value smg_graph_pad(smg_graph *g, smg_value a, int axis, const char *before, const char *after,
                                double value);
/* The values one after the other along `axis` (negative counts from the end); their other dims are equal. */
SMG_API smg_value smg_graph_concat(smg_graph *g, int count, const smg_value *values, int axis);
/* Gather along any axis: dims(a)[:axis] + dims(indices) + dims(a)[axis+1:]; index -1 is the last. */
SMG_API smg_value smg_graph_take(smg_graph *g, smg_value a, smg_value indices, int axis);
/* The first `count` axes of `table` indexed together by `count` values whose dims broadcast:
 * broadcast dims + dims(table)[count:]. An index outside of its own axis is an error at run time. */
SMG_API smg_value smg_graph_take_at(smg_graph *g, smg_value table, int count, const smg_value *indices);
/* Running sum along `axis`, of all elements before too (exclusive: of those before only), or from the end.
 * A sum under a predicate: quadratic in the extent. */
SMG_API smg_value smg_graph_cumsum(smg_graph *g, smg_value a, int axis, bool exclusive, bool reverse);
/* Index (i32) of the extreme along `axis`; op: reduce_max reduce_min. Of equal ones the first, or the last;
 * of NaN any that the axis has. */
SMG_API smg_value smg_graph_argreduce(smg_graph *g, const char *op, smg_value a, int axis, bool keep, bool last);
SMG_API smg_status smg_graph_output(smg_graph *g, const char *name, smg_value value);
/* Makes an input a state: what the output is in one run the input is in the next, and zeros in the first. Both are
 * there already, of one type and the same dims; neither is of another state. Who runs the model keeps it (smg/rt.h,
 * states). */
SMG_API smg_status smg_graph_state(smg_graph *g, const char *input, const char *output);
/* Gives a value a name for explain and errors. */
SMG_API void smg_graph_name(smg_graph *g, smg_value value, const char *name);
/* The largest value a symbolic size may take; bounds feasibility only. */
SMG_API smg_status smg_graph_set_max(smg_graph *g, const char *symbol, int64_t max);

/* The operations that there are, by index: the word of each and one line of what it computes, which live as long as the
 * library does. false: index out of range. */
SMG_API bool smg_graph_operation(int index, const char **out_word, const char **out_doc);

/* Text form; what is printed parses back to an equal graph. */
SMG_API smg_status smg_graph_parse(smg_context *ctx, const char *text, size_t length, const char *where,
                                   smg_graph **out_graph);

#ifdef __cplusplus
}
#endif
#endif
