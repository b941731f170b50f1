/* Compositions over axes: windows, reductions of several axes, softmax. */
#include "onnx/onnx_part.h"

static const smg_value no_value = {0};

/* ---- windows -------------------------------------------------------------------------------- */

/* Windows that touch no border and lie side by side are a view of the axis alone. */
smg_value smg_onnx_window(smg_onnx_build *b, smg_value x, const smg_window *window) {
    smg_size dims[2] = {window->count, window->taps}, zero = smg_onnx_int(b, 0);
    smg_size covered = smg_size_mul(b->sizes, dims[0], dims[1]);
    smg_size extent = smg_onnx_dim(b, x, window->axis);
    int64_t rest = -1;
    if (!x.id || covered < 0 || extent < 0) return no_value;
    bool one = smg_onnx_is_const(b, window->taps, 1);
    bool tiles = window->dilation == 1 && smg_onnx_is_const(b, window->taps, window->step);
    smg_size_bounds(b->sizes, smg_size_sub(b->sizes, extent, covered), &rest, NULL);
    if (window->begin == zero && tiles && rest >= 0)
        return smg_onnx_divide(b, smg_onnx_part(b, x, window->axis, zero, covered, 1), window->axis, 2, dims);
    if (window->begin == zero && one && covered == extent && window->step == 1)
        return smg_onnx_insert(b, x, window->axis + 1);
    return smg_graph_window_of(b->graph, x, window);
}

smg_value smg_onnx_apart(smg_onnx_build *b, smg_value x, int axis, int64_t stride) {
    if (stride == 1 || !x.id) return x;
    x = smg_onnx_insert(b, x, axis + 1);
    x = smg_graph_pad_of(b->graph, x, axis + 1, SMG_SIZE_ZERO, smg_onnx_int(b, stride - 1), 0.0);
    return smg_onnx_merge(b, x, axis, 2);
}

/* ---- reductions ----------------------------------------------------------------------------- */

smg_value smg_onnx_reduce_axis(smg_onnx_build *b, const char *op, smg_value x, int axis) {
    return x.id ? smg_graph_reduce(b->graph, op, x, axis, true) : no_value;
}

/* Axes beside each other are merged first: one reduction instead of several. */
smg_value smg_onnx_reduce(smg_onnx_build *b, const char *op, smg_value x, const bool *over) {
    int rank = smg_onnx_rank(b, x);
    for (int end = rank; end > 0; end--) {
        int begin = end;
        while (begin > 0 && over[begin - 1]) begin--;
        if (begin == end) continue;
        smg_value merged = smg_onnx_merge(b, x, begin, end - begin);
        smg_value reduced = smg_onnx_reduce_axis(b, op, merged, begin);
        for (int i = begin + 1; i < end; i++) reduced = smg_onnx_insert(b, reduced, begin);
        x = reduced;
        end = begin + 1;
        if (begin == 0) break;
    }
    return x;
}

smg_value smg_onnx_mean(smg_onnx_build *b, smg_value x, const bool *over) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node) return no_value;
    smg_size count = smg_onnx_int(b, 1);
    smg_type type = node->type;
    for (int i = 0; i < node->rank; i++)
        if (over[i]) count = smg_size_mul(b->sizes, count, node->dims[i]);
    smg_value sum = smg_onnx_reduce(b, "sum", x, over);
    int64_t number;
    if (count < 0) return no_value;
    if (type == SMG_TYPE_F32 && smg_size_is_const(b->sizes, count, &number) && number > 0)
        return smg_onnx_with(b, "mul", sum, 1.0 / (double)number);
    return smg_onnx_map2(b, "div", sum, smg_onnx_size_value(b, type, count));
}

smg_value smg_onnx_drop_axes(smg_onnx_build *b, smg_value x, const bool *over) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    smg_size dims[SMG_MAX_RANK];
    int rank = 0;
    if (!node) return no_value;
    for (int i = 0; i < node->rank; i++)
        if (!over[i]) dims[rank++] = node->dims[i];
    return smg_onnx_reshape(b, x, rank, dims);
}

smg_value smg_onnx_softmax(smg_onnx_build *b, smg_value x, int axis, bool log) {
    smg_value largest = smg_onnx_reduce_axis(b, "reduce_max", x, axis);
    smg_value shifted = smg_onnx_map2(b, "sub", x, largest);
    smg_value e = smg_onnx_map1(b, "exp", shifted);
    smg_value total = smg_onnx_reduce_axis(b, "sum", e, axis);
    if (log) return smg_onnx_map2(b, "sub", shifted, smg_onnx_map1(b, "log", total));
    return smg_onnx_map2(b, "div", e, total);
}
