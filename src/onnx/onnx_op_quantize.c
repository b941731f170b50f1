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

/* A factor of MatMulInteger less its zero point: one, or one for each row (`axis` -2) or column (-1). */
static smg_status shifted(smg_onnx_build *b, const smg_onnx_node *n, int input, int axis, smg_value *out) {
    const smg_onnx_value *x = n->inputs[input], *zero = n->inputs[input + 2];
    *out = smg_onnx_in(b, n, input);
    if (!out->id) return smg_onnx_failed(b, n);
    if (!smg_onnx_has(n, input + 2)) return SMG_OK;
    smg_value shift = smg_onnx_in(b, n, input + 2);
    if (zero->rank == 1 && smg_onnx_is_const(b, zero->dims[0], 1))
        shift = smg_onnx_reshape(b, shift, 0, NULL);
    else if (zero->rank == 1 && x->rank >= 2)
        shift = smg_onnx_along(b, shift, x->rank + axis, x->rank);
    *out = smg_onnx_map2(b, "sub", *out, shift);
    return SMG_OK;
}

smg_status smg_onnx_convert_matmul_integer(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x, y;
    SMG_TRY(shifted(b, n, 0, -2, &x));
    SMG_TRY(shifted(b, n, 1, -1, &y));
    smg_value product;
    SMG_TRY(smg_onnx_matrix_product(b, n, x, y, &product));
    return smg_onnx_set_typed(b, n, 0, SMG_IMPORT_I32, product);
}
