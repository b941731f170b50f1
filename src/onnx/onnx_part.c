/* Elements, views and indices as converters write them: the builders of graph/, made sticky against {0}. */
#include "onnx/onnx_part.h"

static const smg_value no_value = {0};

int smg_onnx_rank(const smg_onnx_build *b, smg_value x) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    return node ? node->rank : 0;
}

smg_size smg_onnx_dim(const smg_onnx_build *b, smg_value x, int axis) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node) return SMG_SIZE_NONE;
    if (axis < 0) axis += node->rank;
    return axis >= 0 && axis < node->rank ? node->dims[axis] : SMG_SIZE_NONE;
}

smg_status smg_onnx_set_like(smg_onnx_build *b, const smg_onnx_node *n, int output, int input, smg_value value) {
    const smg_node *node = smg_graph_node_of(b->graph, value);
    if (!node || !smg_onnx_has(n, input) || node->type != smg_onnx_type(n, input))
        return smg_onnx_set(b, n, output, value);
    return smg_onnx_set_typed(b, n, output, n->inputs[input]->dtype, value);
}

/* ---- elements ------------------------------------------------------------------------------- */

smg_value smg_onnx_map1(smg_onnx_build *b, const char *op, smg_value x) {
    return x.id ? smg_graph_map(b->graph, op, 1, &x) : no_value;
}

/* A map of values that broadcast. What a file's inputs must be for that is learned here, also where the operator has
 * no inputs of these shapes. */
static smg_value map_of(smg_onnx_build *b, const char *op, int count, const smg_value *operands) {
    smg_size dims[SMG_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < count; i++) {
        const smg_node *node = smg_graph_node_of(b->graph, operands[i]);
        if (!node || smg_onnx_broadcast(b, NULL, node->rank, node->dims, &rank, dims) != SMG_OK) return no_value;
    }
    return smg_graph_map(b->graph, op, count, operands);
}

smg_value smg_onnx_map2(smg_onnx_build *b, const char *op, smg_value x, smg_value y) {
    return map_of(b, op, 2, (smg_value[]){x, y});
}

smg_value smg_onnx_select(smg_onnx_build *b, smg_value condition, smg_value x, smg_value y) {
    return map_of(b, "select", 3, (smg_value[]){condition, x, y});
}

smg_value smg_onnx_like(smg_onnx_build *b, smg_value x, double number) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    return node ? smg_graph_number(b->graph, smg_type_word(node->type), number) : no_value;
}

smg_value smg_onnx_with(smg_onnx_build *b, const char *op, smg_value x, double number) {
    return smg_onnx_map2(b, op, x, smg_onnx_like(b, x, number));
}

smg_value smg_onnx_to(smg_onnx_build *b, smg_value x, smg_type type) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node || node->type == type) return node ? x : no_value;
    return smg_graph_cast(b->graph, x, smg_type_word(type));
}

smg_value smg_onnx_operand(smg_onnx_build *b, const smg_onnx_node *n, int input) {
    double number;
    smg_onnx_value *value = smg_onnx_has(n, input) ? n->inputs[input] : NULL;
    if (!value || !smg_onnx_is_number(b, value, &number)) return smg_onnx_in(b, n, input);
    smg_value x = smg_graph_number(b->graph, smg_type_word(smg_onnx_type(n, input)), number);
    return smg_onnx_stretch(b, x, value->rank, value->dims);
}

smg_value smg_onnx_cubic(smg_onnx_build *b, smg_value distance, double a, bool far) {
    smg_value y = smg_onnx_with(b, "mul", distance, far ? a : a + 2.0);
    y = smg_onnx_with(b, "add", y, far ? -5.0 * a : -(a + 3.0));
    y = smg_onnx_map2(b, "mul", y, distance);
    if (far) y = smg_onnx_with(b, "add", y, 8.0 * a);
    return smg_onnx_with(b, "add", smg_onnx_map2(b, "mul", y, distance), far ? -4.0 * a : 1.0);
}

/* ---- views ---------------------------------------------------------------------------------- */

static bool same_dims(const smg_node *node, int rank, const smg_size *dims) {
    if (node->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (node->dims[i] != dims[i]) return false;
    return true;
}

smg_value smg_onnx_reshape(smg_onnx_build *b, smg_value x, int rank, const smg_size *dims) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node || same_dims(node, rank, dims)) return node ? x : no_value;
    return smg_graph_reshape_to(b->graph, x, rank, dims);
}

smg_value smg_onnx_stretch(smg_onnx_build *b, smg_value x, int rank, const smg_size *dims) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node || same_dims(node, rank, dims)) return node ? x : no_value;
    return smg_graph_broadcast_to(b->graph, x, rank, dims);
}

smg_value smg_onnx_part(smg_onnx_build *b, smg_value x, int axis, smg_size begin, smg_size count, int64_t step) {
    if (!x.id) return no_value;
    if (smg_onnx_is_const(b, begin, 0) && step == 1 && count == smg_onnx_dim(b, x, axis)) return x;
    return smg_graph_slice_of(b->graph, x, axis, begin, count, step);
}

smg_value smg_onnx_permute(smg_onnx_build *b, smg_value x, const int *perm) {
    int rank = smg_onnx_rank(b, x);
    bool moved = false;
    for (int i = 0; i < rank; i++) moved = moved || perm[i] != i;
    return x.id && moved ? smg_graph_transpose(b->graph, x, rank, perm) : x;
}

/* x with `removed` axes at `axis` replaced by `count` others. */
static smg_value replace_axes(smg_onnx_build *b, smg_value x, int axis, int removed, int count, const smg_size *with) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    smg_size dims[2 * SMG_MAX_RANK];
    int rank = 0;
    if (!node) return no_value;
    for (int i = 0; i < axis; i++) dims[rank++] = node->dims[i];
    for (int i = 0; i < count; i++) dims[rank++] = with[i];
    for (int i = axis + removed; i < node->rank; i++) dims[rank++] = node->dims[i];
    return smg_onnx_reshape(b, x, rank, dims);
}

smg_value smg_onnx_insert(smg_onnx_build *b, smg_value x, int axis) {
    smg_size one = smg_onnx_int(b, 1);
    return replace_axes(b, x, axis, 0, 1, &one);
}

smg_value smg_onnx_remove(smg_onnx_build *b, smg_value x, int axis) {
    return replace_axes(b, x, axis, 1, 0, NULL);
}

smg_value smg_onnx_divide(smg_onnx_build *b, smg_value x, int axis, int count, const smg_size *dims) {
    return replace_axes(b, x, axis, 1, count, dims);
}

smg_value smg_onnx_merge(smg_onnx_build *b, smg_value x, int axis, int count) {
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (!node) return no_value;
    smg_size product = smg_onnx_product(b, count, node->dims + axis);
    return replace_axes(b, x, axis, count, 1, &product);
}

smg_value smg_onnx_along(smg_onnx_build *b, smg_value x, int axis, int rank) {
    smg_size dims[SMG_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? smg_onnx_dim(b, x, 0) : smg_onnx_int(b, 1);
    return smg_onnx_reshape(b, x, rank, dims);
}

/* ---- indices -------------------------------------------------------------------------------- */

smg_value smg_onnx_count(smg_onnx_build *b, smg_size extent, int axis, int rank) {
    smg_size dims[SMG_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? extent : smg_onnx_int(b, 1);
    return smg_graph_iota_of(b->graph, rank, dims, axis);
}

smg_value smg_onnx_wrap(smg_onnx_build *b, smg_value indices, smg_size extent) {
    smg_value negative = smg_onnx_with(b, "lt", indices, 0.0);
    smg_value more = smg_onnx_map2(b, "add", indices, smg_onnx_size_value(b, SMG_TYPE_I32, extent));
    return smg_onnx_select(b, negative, more, indices);
}
