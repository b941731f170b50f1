/* What converters put graphs together from: the public builders with sizes instead of text, and small
 * compositions of them (windows, reductions over several axes). All are sticky: {0} in, {0}
 * out, with the failure in the graph or in b->failed. */
#ifndef SMG_ONNX_PART_H
#define SMG_ONNX_PART_H

#include "onnx/onnx_build.h"

int smg_onnx_rank(const smg_onnx_build *b, smg_value x);               /* 0 for {0} */
smg_size smg_onnx_dim(const smg_onnx_build *b, smg_value x, int axis); /* negative counts from the end */
/* Sets an output that has the ONNX type of input `input` when the graph types agree. */
smg_status smg_onnx_set_like(smg_onnx_build *b, const smg_onnx_node *n, int output, int input, smg_value value);

/* ---- elements ---- */

smg_value smg_onnx_map1(smg_onnx_build *b, const char *op, smg_value x);
smg_value smg_onnx_map2(smg_onnx_build *b, const char *op, smg_value x, smg_value y);
smg_value smg_onnx_select(smg_onnx_build *b, smg_value condition, smg_value x, smg_value y);
/* A number of the element type of x. */
smg_value smg_onnx_like(smg_onnx_build *b, smg_value x, double number);
/* op(x, number) */
smg_value smg_onnx_with(smg_onnx_build *b, const char *op, smg_value x, double number);
smg_value smg_onnx_to(smg_onnx_build *b, smg_value x, smg_type type); /* x itself when it has it */
/* x times the share of a normal distribution below x, exactly or by tanh. */
smg_value smg_onnx_gelu(smg_onnx_build *b, smg_value x, bool by_tanh);
/* The weight of a neighbour at that distance, up to 1 or from there to 2 (`far`), on a curve of the slope `a` one
 * element away (Keys, Cubic Convolution Interpolation, 1981). */
smg_value smg_onnx_cubic(smg_onnx_build *b, smg_value distance, double a, bool far);
/* An input that may be one known number: then a number, which rewrites see through. */
smg_value smg_onnx_operand(smg_onnx_build *b, const smg_onnx_node *n, int input);

/* ---- views ---- */

smg_value smg_onnx_reshape(smg_onnx_build *b, smg_value x, int rank, const smg_size *dims);
smg_value smg_onnx_stretch(smg_onnx_build *b, smg_value x, int rank, const smg_size *dims);
smg_value smg_onnx_part(smg_onnx_build *b, smg_value x, int axis, smg_size begin, smg_size count, int64_t step);
smg_value smg_onnx_permute(smg_onnx_build *b, smg_value x, const int *perm);
/* Axes of extent 1 put in / taken out at `axis` of the result / of x. */
smg_value smg_onnx_insert(smg_onnx_build *b, smg_value x, int axis);
smg_value smg_onnx_remove(smg_onnx_build *b, smg_value x, int axis);
/* Axis `axis` as count axes whose product it is; and back. */
smg_value smg_onnx_divide(smg_onnx_build *b, smg_value x, int axis, int count, const smg_size *dims);
smg_value smg_onnx_merge(smg_onnx_build *b, smg_value x, int axis, int count);
/* [extent] as an axis `axis` of `rank` axes, the others 1: broadcasts against a tensor of that rank. */
smg_value smg_onnx_along(smg_onnx_build *b, smg_value x, int axis, int rank);

/* ---- indices ---- */

/* i32[extent] = 0, 1, ..., as axis `axis` of `rank`. */
smg_value smg_onnx_count(smg_onnx_build *b, smg_size extent, int axis, int rank);
/* Negative i32 indices count from `extent`. */
smg_value smg_onnx_wrap(smg_onnx_build *b, smg_value indices, smg_size extent);

/* ---- several axes ---- */

/* smg_graph_window_of, as a reshape where the windows tile the axis. */
smg_value smg_onnx_window(smg_onnx_build *b, smg_value x, const smg_window *window);
/* stride - 1 zeros behind each element of the axis. */
smg_value smg_onnx_apart(smg_onnx_build *b, smg_value x, int axis, int64_t stride);
/* op: sum reduce_max reduce_min reduce_prod. over[axis] says which axes; they stay with extent 1. */
smg_value smg_onnx_reduce(smg_onnx_build *b, const char *op, smg_value x, const bool *over);
/* The same over one axis. */
smg_value smg_onnx_reduce_axis(smg_onnx_build *b, const char *op, smg_value x, int axis);
/* sum over `over` divided by the count of elements summed. */
smg_value smg_onnx_mean(smg_onnx_build *b, smg_value x, const bool *over);
/* Removes the axes that `over` names (extent 1). */
smg_value smg_onnx_drop_axes(smg_onnx_build *b, smg_value x, const bool *over);
/* ---- products (onnx_part_product.c) ---- */

/* A value and a letter for each of its axes, none twice. */
typedef struct onnx_lettered {
    smg_value value;
    char letters[SMG_MAX_RANK + 1];
} onnx_lettered;
/* Sum of products over the letters that `out_letters` lacks; letters of one operand only are summed
 * first, an extent of 1 is broadcast. {0} with the failure recorded when extents disagree. */
smg_value smg_onnx_multiply(smg_onnx_build *b, const smg_onnx_node *n, onnx_lettered x, onnx_lettered y,
                            const char *out_letters);
/* Sums letters away and permutes to the order of out_letters. */
smg_value smg_onnx_arrange(smg_onnx_build *b, onnx_lettered x, const char *out_letters);

/* The product of two values of the shapes of inputs 0 and `second`, as MatMul has it. */
smg_status smg_onnx_matrix_product(smg_onnx_build *b, const smg_onnx_node *n, int second, smg_value left,
                                   smg_value right, smg_value *out_product);

/* ---- convolutions (onnx_part_conv.c) ---- */

#define ONNX_CONV_AXES 3
/* What the axes of a convolution are. */
typedef struct onnx_conv_form {
    int axes;      /* spatial: 1 to ONNX_CONV_AXES */
    int64_t group; /* more than 1: an axis of them */
    bool channels; /* an axis of channels in, which groups of one channel can do without */
    bool turned;   /* weights have channels in before those out */
    bool tiles;    /* taps are places of the result */
} onnx_conv_form;
#define ONNX_CONV_LABEL 32
/* "ncoipj,mcij->nmop" for two axes: n batch, g group, c channels in, m out, o p q places, i j k taps. */
void smg_onnx_conv_label(const onnx_conv_form *form, char out[ONNX_CONV_LABEL]);

/* The convolution of x by w as `form` says. */
typedef smg_value onnx_convolve(smg_onnx_build *b, smg_value x, smg_value w, const onnx_conv_form *form,
                                const void *job);
#define ONNX_CONV_GROUPS 64
/* All groups at once, but over three axes, where groups are one more than a graph has: there without channels where
 * each has one (`single`), else one after the other; UNSUPPORTED where these are more than ONNX_CONV_GROUPS. x has
 * their channels as axis 1, w as axis 0, the result as axis 1. */
smg_status smg_onnx_in_groups(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, smg_value w,
                              const onnx_conv_form *form, bool single, onnx_convolve *convolve, const void *job,
                              smg_value *out_y);

/* The convolution of x by w, of the shapes of inputs 0 and `weights`, as Conv without a bias (onnx_op_conv.c). */
smg_status smg_onnx_convolution(smg_onnx_build *b, const smg_onnx_node *n, int weights, smg_value x, smg_value w,
                                smg_value *out_y);

/* ---- positions (onnx_part_rotate.c) ---- */

/* Angles by which pairs of elements are turned: i and half + i, or 2 i and 2 i + 1 when interleaved. Cosines and sines
 * broadcast to the pairs. */
typedef struct onnx_angles {
    bool interleaved;
    smg_size half;
    smg_value cosine, sine;
} onnx_angles;
/* The pairs are at the beginning of the last of four axes; what is behind them stays. */
smg_value smg_onnx_rotate(smg_onnx_build *b, smg_value x, const onnx_angles *by);

/* e^(x-max) / sum over one axis; log: its logarithm. */
smg_value smg_onnx_softmax(smg_onnx_build *b, smg_value x, int axis, bool log);

#endif
