/* Quantised tensors: what is stored as integers of 8 bits with a scale and a zero point, per tensor, per
 * entry of an axis or per block of one. Everything is arithmetic on i32 and f32; weights that are
 * dequantised depend on constants alone, so that no run computes them. */
#include "onnx/onnx_part.h"

/* Every entry of axis `axis` `times` times, then as many of them as `extent`. */
static smg_value repeated(smg_onnx_build *b, smg_value x, int axis, int64_t times, smg_size extent) {
    smg_size dims[SMG_MAX_RANK + 1];
    int rank = smg_onnx_rank(b, x);
    if (!x.id || rank == SMG_MAX_RANK) return (smg_value){0};
    for (int i = 0; i <= rank; i++) dims[i] = smg_onnx_dim(b, x, i > axis ? i - 1 : i);
    dims[axis + 1] = smg_onnx_int(b, times);
    smg_value wide = smg_onnx_stretch(b, smg_onnx_insert(b, x, axis + 1), rank + 1, dims);
    wide = smg_onnx_merge(b, wide, axis, 2);
    return smg_onnx_part(b, wide, axis, smg_onnx_int(b, 0), extent, 1);
}

/* A scale or zero point in the shape in which it stands against input 0. */
static smg_status aligned(smg_onnx_build *b, const smg_onnx_node *n, int input, smg_value *out) {
    const smg_onnx_value *x = n->inputs[0], *v = n->inputs[input];
    int64_t block = smg_onnx_attr_int(b, n, "block_size", 0), count = 0;
    int axis;
    *out = smg_onnx_in(b, n, input);
    if (!out->id) return smg_onnx_failed(b, n);
    bool one = smg_size_is_const(b->sizes, smg_onnx_product(b, v->rank, v->dims), &count) && count == 1;
    if (one && block == 0) {
        *out = smg_onnx_reshape(b, *out, 0, NULL);
        return SMG_OK;
    }
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 1), x->rank, &axis));
    if (block > 0 && block <= INT32_MAX && v->rank == x->rank) {
        *out = repeated(b, *out, axis, block, x->dims[axis]);
        return SMG_OK;
    }
    if (v->rank != 1 || block != 0)
        return smg_onnx_fail(b, n, SMG_INVALID, "input %d is %s beside %s in blocks of %lld", input,
                             smg_onnx_shape_text(b, v), smg_onnx_shape_text(b, x), (long long)block);
    SMG_TRY(smg_onnx_equal(b, n, v->dims[0], x->dims[axis], "the scales and the axis"));
    *out = smg_onnx_along(b, *out, axis, x->rank);
    return SMG_OK;
}

smg_status smg_onnx_convert_dequantize(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0), scale, zero;
    SMG_TRY(aligned(b, n, 1, &scale));
    if (smg_onnx_has(n, 2)) {
        SMG_TRY(aligned(b, n, 2, &zero));
        x = smg_onnx_map2(b, "sub", x, zero);
    }
    return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "mul", smg_onnx_to(b, x, SMG_TYPE_F32), scale));
}

/* What an integer type of at most 16 bits can hold. */
static bool range_of(smg_import_dtype dtype, double *out_low, double *out_high) {
    bool eight = dtype == SMG_IMPORT_I8 || dtype == SMG_IMPORT_U8, below = dtype != SMG_IMPORT_U8;
    if (!eight && dtype != SMG_IMPORT_I16) return false;
    *out_low = !below ? 0.0 : eight ? -128.0 : -32768.0;
    *out_high = !below ? 255.0 : eight ? 127.0 : 32767.0;
    return true;
}

/* round(x / scale) + zero, within the type; ties go to even numbers. zero {0}: 0. */
static smg_value quantised(smg_onnx_build *b, smg_value x, smg_value scale, smg_value zero, double low, double high) {
    smg_value y = smg_onnx_map1(b, "round", smg_onnx_map2(b, "div", x, scale));
    if (zero.id) y = smg_onnx_map2(b, "add", y, smg_onnx_to(b, zero, SMG_TYPE_F32));
    y = smg_onnx_with(b, "min", smg_onnx_with(b, "max", y, low), high);
    return smg_onnx_to(b, y, SMG_TYPE_I32);
}

smg_status smg_onnx_convert_quantize(smg_onnx_build *b, const smg_onnx_node *n) {
    int64_t wanted = smg_onnx_attr_int(b, n, "output_dtype", 0);
    smg_import_dtype dtype = smg_onnx_has(n, 2) ? n->inputs[2]->dtype : SMG_IMPORT_U8;
    double low = 0, high = 0;
    if (!smg_onnx_has(n, 2) && wanted != 0) dtype = smg_onnx_dtype(wanted);
    if (!range_of(dtype, &low, &high))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "it quantises to %s; int8, uint8 and int16 are known",
                             dtype ? smg_import_dtype_word(dtype) : "a type that smg lacks");
    smg_value x = smg_onnx_in(b, n, 0), scale, zero = {0};
    SMG_TRY(aligned(b, n, 1, &scale));
    if (smg_onnx_has(n, 2)) SMG_TRY(aligned(b, n, 2, &zero));
    x = smg_onnx_to(b, x, SMG_TYPE_F32);
    return smg_onnx_set_typed(b, n, 0, dtype, quantised(b, x, scale, zero, low, high));
}

/* Scale and zero point from the range of all elements, 0 included. */
smg_status smg_onnx_convert_dynamic_quantize(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK];
    for (int i = 0; i < SMG_MAX_RANK; i++) over[i] = true;
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value top = smg_onnx_drop_axes(b, smg_onnx_reduce(b, "reduce_max", x, over), over);
    smg_value end = smg_onnx_drop_axes(b, smg_onnx_reduce(b, "reduce_min", x, over), over);
    smg_value low = smg_onnx_with(b, "min", end, 0.0), high = smg_onnx_with(b, "max", top, 0.0);
    smg_value scale = smg_onnx_with(b, "div", smg_onnx_map2(b, "sub", high, low), 255.0);
    smg_value safe =
        smg_onnx_select(b, smg_onnx_with(b, "gt", scale, 0.0), scale, smg_graph_number(b->graph, "f32", 1.0));
    smg_value zero = quantised(b, smg_onnx_map1(b, "neg", low), safe, (smg_value){0}, 0.0, 255.0);
    SMG_TRY(smg_onnx_set_typed(b, n, 0, SMG_IMPORT_U8, quantised(b, x, safe, zero, 0.0, 255.0)));
    SMG_TRY(smg_onnx_set(b, n, 1, scale));
    return smg_onnx_set_typed(b, n, 2, SMG_IMPORT_U8, zero);
}

/* ---- products ------------------------------------------------------------------------------- */

/* A factor less its zero point, input `zero`: one number, or one for each entry of the axis, which counts from the end
 * when negative. */
static smg_status shifted(smg_onnx_build *b, const smg_onnx_node *n, int input, int zero, int axis, smg_value *out) {
    int rank = n->inputs[input]->rank;
    *out = smg_onnx_in(b, n, input);
    if (!out->id) return smg_onnx_failed(b, n);
    if (!smg_onnx_has(n, zero)) return SMG_OK;
    smg_value shift = smg_onnx_in(b, n, zero);
    const smg_onnx_value *v = n->inputs[zero];
    if (v->rank == 1 && smg_onnx_is_const(b, v->dims[0], 1))
        shift = smg_onnx_reshape(b, shift, 0, NULL);
    else if (v->rank == 1 && rank >= 2)
        shift = smg_onnx_along(b, shift, axis < 0 ? rank + axis : axis, rank);
    *out = smg_onnx_map2(b, "sub", *out, shift);
    return SMG_OK;
}

smg_status smg_onnx_convert_matmul_integer(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, y, product;
    SMG_TRY(shifted(b, n, 0, 2, -2, &x));
    SMG_TRY(shifted(b, n, 1, 3, -1, &y));
    SMG_TRY(smg_onnx_matrix_product(b, n, 1, x, y, &product));
    return smg_onnx_set_typed(b, n, 0, SMG_IMPORT_I32, product);
}

/* What lies around the input is its zero point, 0 after the shift. */
smg_status smg_onnx_convert_conv_integer(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, w, y;
    SMG_TRY(shifted(b, n, 0, 2, 1, &x));
    SMG_TRY(shifted(b, n, 1, 3, 0, &w));
    SMG_TRY(smg_onnx_convolution(b, n, 1, x, w, &y));
    return smg_onnx_set_typed(b, n, 0, SMG_IMPORT_I32, y);
}

/* A scale: one number, or one for each entry of the axis of a result of `rank` axes. */
static smg_value scale_along(smg_onnx_build *b, const smg_onnx_node *n, int input, int axis, int rank) {
    const smg_onnx_value *v = n->inputs[input];
    smg_value scale = smg_onnx_in(b, n, input);
    if (v->rank != 1) return scale;
    if (smg_onnx_is_const(b, v->dims[0], 1)) return smg_onnx_reshape(b, scale, 0, NULL);
    return smg_onnx_along(b, scale, axis, rank);
}

/* Output 0 from f32, by the scale in input `scale` and the zero point behind it, whose type it has. */
static smg_status set_quantised(smg_onnx_build *b, const smg_onnx_node *n, smg_value y, int scale, int axis) {
    double low = 0, high = 0;
    int rank = smg_onnx_rank(b, y);
    bool shifts = smg_onnx_has(n, scale + 1);
    smg_import_dtype dtype = n->inputs[shifts ? scale + 1 : 0]->dtype;
    if (!y.id) return smg_onnx_failed(b, n);
    if (!range_of(dtype, &low, &high))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "it quantises to %s; int8, uint8 and int16 are known",
                             smg_import_dtype_word(dtype));
    smg_value by = scale_along(b, n, scale, axis, rank);
    smg_value zero = shifts ? scale_along(b, n, scale + 1, axis, rank) : (smg_value){0};
    if (!by.id || (shifts && !zero.id)) return smg_onnx_failed(b, n);
    return smg_onnx_set_typed(b, n, 0, dtype, quantised(b, y, by, zero, low, high));
}

/* Sums of products: inputs are two factors, each with its scale and zero point, then those of the result. */
static smg_status requantised(smg_onnx_build *b, const smg_onnx_node *n, smg_value sum, int row, int column) {
    int rank = smg_onnx_rank(b, sum);
    smg_value scales = smg_onnx_map2(b, "mul", scale_along(b, n, 1, row, rank), scale_along(b, n, 4, column, rank));
    return set_quantised(b, n, smg_onnx_map2(b, "mul", smg_onnx_to(b, sum, SMG_TYPE_F32), scales), 6, row);
}

smg_status smg_onnx_convert_qlinear_matmul(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, y, product;
    SMG_TRY(shifted(b, n, 0, 2, -2, &x));
    SMG_TRY(shifted(b, n, 3, 5, -1, &y));
    SMG_TRY(smg_onnx_matrix_product(b, n, 3, x, y, &product));
    int rank = smg_onnx_rank(b, product);
    return requantised(b, n, product, rank - 2, rank - 1);
}

smg_status smg_onnx_convert_qlinear_conv(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, w, y;
    SMG_TRY(shifted(b, n, 0, 2, 1, &x));
    SMG_TRY(shifted(b, n, 3, 5, 0, &w));
    SMG_TRY(smg_onnx_convolution(b, n, 3, x, w, &y));
    if (smg_onnx_has(n, 8))
        y = smg_onnx_map2(b, "add", y, smg_onnx_along(b, smg_onnx_in(b, n, 8), 1, n->inputs[0]->rank));
    return requantised(b, n, y, 1, 1);
}

/* ---- other operators between quantised tensors -------------------------------------------------- */

/* Input `x` as f32, by the one scale and zero point behind it. */
static smg_status real(smg_onnx_build *b, const smg_onnx_node *n, int x, smg_value *out) {
    SMG_TRY(shifted(b, n, x, x + 2, -1, out));
    smg_value scale = scale_along(b, n, x + 1, -1, 0);
    *out = smg_onnx_map2(b, "mul", smg_onnx_to(b, *out, SMG_TYPE_F32), scale);
    return out->id ? SMG_OK : smg_onnx_failed(b, n);
}

smg_status smg_onnx_convert_qlinear_binary(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, y;
    SMG_TRY(real(b, n, 0, &x));
    SMG_TRY(real(b, n, 3, &y));
    return set_quantised(b, n, smg_onnx_map2(b, strcmp(n->op, "QLinearAdd") == 0 ? "add" : "mul", x, y), 6, -1);
}

smg_status smg_onnx_convert_qlinear_unary(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK] = {false};
    smg_value x;
    SMG_TRY(real(b, n, 0, &x));
    int axis, rank = smg_onnx_rank(b, x);
    if (strcmp(n->op, "QLinearSigmoid") == 0) {
        x = smg_onnx_map1(b, "sigmoid", x);
    } else if (strcmp(n->op, "QLinearLeakyRelu") == 0) {
        smg_value below = smg_onnx_with(b, "mul", x, smg_onnx_attr_float(b, n, "alpha", 0.01));
        x = smg_onnx_select(b, smg_onnx_with(b, "lt", x, 0.0), below, x);
    } else if (strcmp(n->op, "QLinearSoftmax") == 0) {
        SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", -1), rank, &axis));
        if (smg_onnx_attr_int(b, n, "opset", 13) < 13 && axis != rank - 1)
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "all axes from %d on are one", axis);
        x = smg_onnx_softmax(b, x, axis, false);
    } else {
        bool last = smg_onnx_attr_int(b, n, "channels_last", 0) != 0;
        for (int i = last ? 1 : 2; i < rank - (last ? 1 : 0); i++) over[i] = true;
        x = smg_onnx_mean(b, x, over);
    }
    return set_quantised(b, n, x, 3, -1);
}

/* The result's scale and zero point, then for each part the part, its scale and its zero point. */
smg_status smg_onnx_convert_qlinear_concat(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value *parts = SMG_ARENA_ARRAY(b->arena, smg_value, (size_t)n->input_count);
    int axis, count = (n->input_count - 2) / 3;
    if (!parts) return SMG_MEMORY;
    if (count < 1 || n->input_count != 2 + 3 * count)
        return smg_onnx_fail(b, n, SMG_INVALID, "%d inputs are no parts with a scale and a zero point each",
                             n->input_count);
    for (int i = 0; i < count; i++) SMG_TRY(real(b, n, 2 + 3 * i, &parts[i]));
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), smg_onnx_rank(b, parts[0]), &axis));
    return set_quantised(b, n, smg_graph_concat(b->graph, count, parts, axis), 0, -1);
}

/* ---- blocks of four or eight bits --------------------------------------------------------------- */

/* Bytes along the last axis as `parts` numbers each, the lowest bits first. */
static smg_value unpacked(smg_onnx_build *b, smg_value bytes, int parts) {
    smg_value digit[8];
    int rank = smg_onnx_rank(b, bytes), base = parts == 2 ? 16 : 4;
    if (parts == 1 || !bytes.id) return bytes;
    for (int i = 0; i < parts; i++) {
        smg_value rest = smg_onnx_with(b, "div", bytes, (double)base);
        digit[i] = smg_onnx_map2(b, "sub", bytes, smg_onnx_with(b, "mul", rest, (double)base));
        digit[i] = smg_onnx_insert(b, digit[i], rank);
        bytes = rest;
        if (!digit[i].id) return (smg_value){0};
    }
    return smg_onnx_merge(b, smg_graph_concat(b->graph, parts, digit, rank), rank - 1, 2);
}

typedef struct blocks {
    int64_t rows, columns, block, count; /* columns are summed over; blocks of a row */
    int parts;                           /* numbers in a byte */
} blocks;

static smg_status read_blocks(smg_onnx_build *b, const smg_onnx_node *n, blocks *out) {
    int64_t bits = smg_onnx_attr_int(b, n, "bits", 4);
    *out = (blocks){.rows = smg_onnx_attr_int(b, n, "N", 0),
                    .columns = smg_onnx_attr_int(b, n, "K", 0),
                    .block = smg_onnx_attr_int(b, n, "block_size", 0)};
    if ((bits != 2 && bits != 4 && bits != 8) || smg_onnx_has(n, 4))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "weights of %lld bits%s; 2, 4 and 8 in order are known",
                             (long long)bits, smg_onnx_has(n, 4) ? " in groups of columns" : "");
    if (out->rows < 1 || out->rows > INT32_MAX || out->columns < 1 || out->columns > INT32_MAX || out->block < 16 ||
        out->block > 4096 || out->block % 16 != 0)
        return smg_onnx_fail(b, n, SMG_INVALID, "N is %lld, K %lld and block_size %lld", (long long)out->rows,
                             (long long)out->columns, (long long)out->block);
    out->parts = (int)(8 / bits);
    out->count = (out->columns + out->block - 1) / out->block;
    smg_size bytes = smg_onnx_product(b, n->inputs[1]->rank, n->inputs[1]->dims);
    smg_size scales = smg_onnx_product(b, n->inputs[2]->rank, n->inputs[2]->dims);
    SMG_TRY(smg_onnx_equal(b, n, bytes, smg_onnx_int(b, out->rows * out->count * out->block / out->parts),
                           "the bytes of the weights and those of N rows of K in blocks"));
    return smg_onnx_equal(b, n, scales, smg_onnx_int(b, out->rows * out->count), "the scales and the blocks");
}

/* [rows, blocks, 1]: given as they are, packed, or the middle of the range. */
static smg_status zeros_of(smg_onnx_build *b, const smg_onnx_node *n, const blocks *w, smg_value *out) {
    smg_size one = smg_onnx_int(b, 1), dims[3] = {smg_onnx_int(b, w->rows), smg_onnx_int(b, w->count), one};
    if (!smg_onnx_has(n, 3)) {
        *out = smg_graph_number(b->graph, "f32", w->parts == 1 ? 128.0 : w->parts == 2 ? 8.0 : 2.0);
        return SMG_OK;
    }
    smg_value zero = smg_onnx_in(b, n, 3);
    if (n->inputs[3]->dtype == SMG_IMPORT_U8) {
        smg_size bytes[2] = {dims[0], smg_onnx_int(b, (w->count + w->parts - 1) / w->parts)};
        SMG_TRY(smg_onnx_equal(b, n, smg_onnx_product(b, n->inputs[3]->rank, n->inputs[3]->dims),
                               smg_onnx_product(b, 2, bytes), "the bytes of the zero points and those of the blocks"));
        zero = unpacked(b, smg_onnx_reshape(b, zero, 2, bytes), w->parts);
        zero = smg_onnx_part(b, zero, 1, smg_onnx_int(b, 0), dims[1], 1);
    }
    *out = smg_onnx_reshape(b, smg_onnx_to(b, zero, SMG_TYPE_F32), 3, dims);
    return SMG_OK;
}

/* Weights [N, K] whose rows are blocks of K with a scale and a zero point each. */
smg_status smg_onnx_convert_matmul_bits(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    blocks w;
    smg_value zero;
    onnx_lettered left = {.letters = "abcdefgh"}, right = {.letters = "NK"};
    SMG_TRY(read_blocks(b, n, &w));
    SMG_TRY(zeros_of(b, n, &w, &zero));
    smg_size bytes[] = {smg_onnx_int(b, w.rows), smg_onnx_int(b, w.count), smg_onnx_int(b, w.block / w.parts)};
    smg_size each[] = {bytes[0], bytes[1], smg_onnx_int(b, 1)};
    smg_value scale = smg_onnx_reshape(b, smg_onnx_in(b, n, 2), 3, each);
    smg_value y = unpacked(b, smg_onnx_reshape(b, smg_onnx_in(b, n, 1), 3, bytes), w.parts);
    y = smg_onnx_map2(b, "sub", smg_onnx_to(b, y, SMG_TYPE_F32), zero);
    y = smg_onnx_merge(b, smg_onnx_map2(b, "mul", y, scale), 1, 2);
    right.value = smg_onnx_part(b, y, 1, smg_onnx_int(b, 0), smg_onnx_int(b, w.columns), 1);
    left.value = smg_onnx_in(b, n, 0);
    if (x->rank < 1 || x->rank > SMG_MAX_RANK - 1)
        return smg_onnx_fail(b, n, SMG_INVALID, "the input is %s", smg_onnx_shape_text(b, x));
    SMG_TRY(smg_onnx_equal(b, n, x->dims[x->rank - 1], smg_onnx_int(b, w.columns), "the columns of the input and K"));
    char out[SMG_MAX_RANK + 1] = "abcdefgh";
    left.letters[x->rank] = out[x->rank] = '\0';
    left.letters[x->rank - 1] = 'K';
    out[x->rank - 1] = 'N';
    y = smg_onnx_multiply(b, n, left, right, out);
    if (smg_onnx_has(n, 5)) y = smg_onnx_map2(b, "add", y, smg_onnx_in(b, n, 5));
    return smg_onnx_set_like(b, n, 0, 0, y);
}
