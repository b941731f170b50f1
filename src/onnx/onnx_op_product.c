/* Matrix products: MatMul with batches, vectors and broadcasting, and Gemm. */
#include "onnx/onnx_part.h"

/* Letters of the batch axes, the same from the right in both; then the own ones. */
static onnx_lettered with_letters(smg_value x, int rank, char row, char column) {
    static const char batch[] = "abcdefgh";
    onnx_lettered out = {.value = x};
    int own = (row ? 1 : 0) + (column ? 1 : 0), count = rank - own;
    for (int i = 0; i < count; i++) out.letters[i] = batch[count - 1 - i];
    if (row) out.letters[count] = row;
    if (column) out.letters[count + (row ? 1 : 0)] = column;
    return out;
}

smg_status smg_onnx_matrix_product(smg_onnx_build *b, const smg_onnx_node *n, int second, smg_value left,
                                   smg_value right, smg_value *out_product) {
    int ranks[2] = {n->inputs[0]->rank, n->inputs[second]->rank};
    if (ranks[0] < 1 || ranks[1] < 1)
        return smg_onnx_fail(b, n, SMG_INVALID, "inputs are %s and %s, must have axes",
                             smg_onnx_shape_text(b, n->inputs[0]), smg_onnx_shape_text(b, n->inputs[second]));
    bool row = ranks[0] > 1, column = ranks[1] > 1;
    onnx_lettered x = with_letters(left, ranks[0], row ? 'M' : 0, 'K');
    onnx_lettered y = with_letters(right, ranks[1], 'K', column ? 'N' : 0);
    int batch = (row ? ranks[0] - 2 : 0), other = column ? ranks[1] - 2 : 0;
    if (other > batch) batch = other;
    onnx_lettered out =
        with_letters((smg_value){0}, batch + (row ? 1 : 0) + (column ? 1 : 0), row ? 'M' : 0, column ? 'N' : 0);
    *out_product = smg_onnx_multiply(b, n, x, y, out.letters);
    return SMG_OK;
}

smg_status smg_onnx_convert_matmul(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value product;
    SMG_TRY(smg_onnx_matrix_product(b, n, 1, smg_onnx_in(b, n, 0), smg_onnx_in(b, n, 1), &product));
    return smg_onnx_set_like(b, n, 0, 0, product);
}

/* alpha A' B' + beta C */
smg_status smg_onnx_convert_gemm(smg_onnx_build *b, const smg_onnx_node *n) {
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.0);
    double beta = smg_onnx_attr_float(b, n, "beta", 1.0);
    bool turn_a = smg_onnx_attr_int(b, n, "transA", 0) != 0;
    bool turn_b = smg_onnx_attr_int(b, n, "transB", 0) != 0;
    if (n->inputs[0]->rank != 2 || n->inputs[1]->rank != 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "inputs are %s and %s, must be matrices",
                             smg_onnx_shape_text(b, n->inputs[0]), smg_onnx_shape_text(b, n->inputs[1]));
    onnx_lettered x = {.value = smg_onnx_in(b, n, 0)}, y = {.value = smg_onnx_in(b, n, 1)};
    memcpy(x.letters, turn_a ? "KM" : "MK", 3);
    memcpy(y.letters, turn_b ? "NK" : "KN", 3);
    smg_value product = smg_onnx_multiply(b, n, x, y, "MN");
    if (alpha < 1.0 || alpha > 1.0) product = smg_onnx_with(b, "mul", product, alpha);
    if (smg_onnx_has(n, 2) && (beta < 0.0 || beta > 0.0)) {
        smg_value c = smg_onnx_operand(b, n, 2);
        if (beta < 1.0 || beta > 1.0) c = smg_onnx_with(b, "mul", c, beta);
        product = smg_onnx_map2(b, "add", product, c);
    }
    return smg_onnx_set_like(b, n, 0, 0, product);
}
