/* Normalisations: means, variances and affine chains, written out. The compiler finds from the dependencies
 * what belongs into one kernel. */
#include "onnx/onnx_part.h"

typedef struct normal {
    smg_value mean, scale; /* extent 1 where reduced; scale is 1/sqrt(variance + epsilon) */
    smg_value value;       /* (x - mean) * scale */
} normal;

static normal normalise(smg_onnx_build *b, smg_value x, const bool *over, double epsilon) {
    normal out;
    out.mean = smg_onnx_mean(b, x, over);
    smg_value centred = smg_onnx_map2(b, "sub", x, out.mean);
    smg_value variance = smg_onnx_mean(b, smg_onnx_map1(b, "square", centred), over);
    out.scale = smg_onnx_map1(b, "rsqrt", smg_onnx_with(b, "add", variance, epsilon));
    out.value = smg_onnx_map2(b, "mul", centred, out.scale);
    return out;
}

/* x * scale + shift; a shift of {id 0} is left out by the caller. */
static smg_value affine(smg_onnx_build *b, smg_value x, smg_value scale, smg_value shift) {
    return smg_onnx_map2(b, "add", smg_onnx_map2(b, "mul", x, scale), shift);
}

static smg_status from_axis(smg_onnx_build *b, const smg_onnx_node *n, int64_t fallback, bool *over) {
    int axis, rank = n->inputs[0]->rank;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", fallback), rank, &axis));
    for (int i = axis; i < rank; i++) over[i] = true;
    return SMG_OK;
}

smg_status smg_onnx_convert_layer_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK] = {false};
    SMG_TRY(from_axis(b, n, -1, over));
    normal y = normalise(b, smg_onnx_in(b, n, 0), over, smg_onnx_attr_float(b, n, "epsilon", 1e-5));
    smg_value value = smg_onnx_map2(b, "mul", y.value, smg_onnx_in(b, n, 1));
    if (smg_onnx_has(n, 2)) value = smg_onnx_map2(b, "add", value, smg_onnx_in(b, n, 2));
    if (n->output_count > 1) SMG_TRY(smg_onnx_set(b, n, 1, y.mean));
    if (n->output_count > 2) SMG_TRY(smg_onnx_set(b, n, 2, y.scale));
    return smg_onnx_set_like(b, n, 0, 0, value);
}

smg_status smg_onnx_convert_rms_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK] = {false};
    SMG_TRY(from_axis(b, n, -1, over));
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value energy = smg_onnx_mean(b, smg_onnx_map1(b, "square", x), over);
    double epsilon = smg_onnx_attr_float(b, n, "epsilon", 1e-5);
    smg_value scale = smg_onnx_map1(b, "rsqrt", smg_onnx_with(b, "add", energy, epsilon));
    smg_value y = smg_onnx_map2(b, "mul", x, scale);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "mul", y, smg_onnx_in(b, n, 1)));
}

/* ---- channels ------------------------------------------------------------------------------- */

static smg_status check_channels(smg_onnx_build *b, const smg_onnx_node *n) {
    if (n->inputs[0]->rank >= 2) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_INVALID, "the input is %s, must be [batch, channels, ..]",
                         smg_onnx_shape_text(b, n->inputs[0]));
}

/* Mean and variance of the batch itself: how weights are standardised by some exporters. */
static smg_status batch_statistics(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK];
    int rank = n->inputs[0]->rank;
    for (int i = 0; i < SMG_MAX_RANK; i++) over[i] = i != 1;
    normal y = normalise(b, smg_onnx_in(b, n, 0), over, smg_onnx_attr_float(b, n, "epsilon", 1e-5));
    smg_value scale = smg_onnx_along(b, smg_onnx_in(b, n, 1), 1, rank);
    smg_value shift = smg_onnx_along(b, smg_onnx_in(b, n, 2), 1, rank);
    return smg_onnx_set_like(b, n, 0, 0, affine(b, y.value, scale, shift));
}

/* One product and one sum per element, so that both may fold into a product before. */
smg_status smg_onnx_convert_batch_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    SMG_TRY(check_channels(b, n));
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i]) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "its output %d (statistics) is used", i);
    if (smg_onnx_attr_int(b, n, "training_mode", 0) != 0) return batch_statistics(b, n);
    int rank = n->inputs[0]->rank;
    double epsilon = smg_onnx_attr_float(b, n, "epsilon", 1e-5);
    smg_value x = smg_onnx_in(b, n, 0), mean = smg_onnx_in(b, n, 3);
    smg_value spread = smg_onnx_with(b, "add", smg_onnx_in(b, n, 4), epsilon);
    smg_value scale = smg_onnx_map2(b, "mul", smg_onnx_in(b, n, 1), smg_onnx_map1(b, "rsqrt", spread));
    smg_value shift = smg_onnx_map2(b, "sub", smg_onnx_in(b, n, 2), smg_onnx_map2(b, "mul", mean, scale));
    smg_value y = affine(b, x, smg_onnx_along(b, scale, 1, rank), smg_onnx_along(b, shift, 1, rank));
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_instance_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK] = {false};
    int rank = n->inputs[0]->rank;
    SMG_TRY(check_channels(b, n));
    for (int i = 2; i < rank; i++) over[i] = true;
    normal y = normalise(b, smg_onnx_in(b, n, 0), over, smg_onnx_attr_float(b, n, "epsilon", 1e-5));
    smg_value scale = smg_onnx_along(b, smg_onnx_in(b, n, 1), 1, rank);
    smg_value shift = smg_onnx_along(b, smg_onnx_in(b, n, 2), 1, rank);
    return smg_onnx_set_like(b, n, 0, 0, affine(b, y.value, scale, shift));
}

/* Channels as (group, channel of the group); before opset 21 scale and shift are per group. */
smg_status smg_onnx_convert_group_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *in = n->inputs[0];
    int64_t groups = smg_onnx_attr_int(b, n, "num_groups", 0);
    bool over[SMG_MAX_RANK + 1] = {false};
    smg_size dims[2] = {smg_onnx_int(b, groups)};
    SMG_TRY(check_channels(b, n));
    if (groups < 1 || in->rank >= SMG_MAX_RANK || !smg_size_divide_exact(b->sizes, in->dims[1], dims[0], &dims[1]))
        return smg_onnx_fail(b, n, SMG_INVALID, "%s does not have channels for %lld groups", smg_onnx_shape_text(b, in),
                             (long long)groups);
    for (int i = 2; i <= in->rank; i++) over[i] = true;
    smg_value x = smg_onnx_divide(b, smg_onnx_in(b, n, 0), 1, 2, dims);
    normal y = normalise(b, x, over, smg_onnx_attr_float(b, n, "epsilon", 1e-5));
    smg_value scale = smg_onnx_in(b, n, 1), shift = smg_onnx_in(b, n, 2), value;
    if (n->opset < 21) {
        scale = smg_onnx_along(b, scale, 1, in->rank + 1);
        shift = smg_onnx_along(b, shift, 1, in->rank + 1);
        value = smg_onnx_reshape(b, affine(b, y.value, scale, shift), in->rank, in->dims);
    } else {
        value = affine(b, smg_onnx_reshape(b, y.value, in->rank, in->dims), smg_onnx_along(b, scale, 1, in->rank),
                       smg_onnx_along(b, shift, 1, in->rank));
    }
    return smg_onnx_set_like(b, n, 0, 0, value);
}

/* ---- others --------------------------------------------------------------------------------- */

/* x / |x| along one axis; 0 where that is 0. */
smg_status smg_onnx_convert_lp_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    int axis;
    int64_t p = smg_onnx_attr_int(b, n, "p", 2);
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", -1), n->inputs[0]->rank, &axis));
    if (p != 1 && p != 2) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "p is %lld, 1 or 2 is known", (long long)p);
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value part = smg_onnx_map1(b, p == 1 ? "abs" : "square", x);
    smg_value length = smg_onnx_reduce_axis(b, "sum", part, axis);
    if (p == 2) length = smg_onnx_map1(b, "sqrt", length);
    smg_value none = smg_onnx_with(b, "eq", length, 0.0);
    length = smg_onnx_select(b, none, smg_onnx_like(b, length, 1.0), length);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "div", x, length));
}

smg_status smg_onnx_convert_mean_variance_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    static const int64_t usual[] = {0, 2, 3};
    const int64_t *axes = NULL;
    bool over[SMG_MAX_RANK] = {false};
    int count = smg_onnx_attr_ints(b, n, "axes", &axes);
    if (count < 0) {
        axes = usual;
        count = 3;
    }
    for (int i = 0; i < count; i++) {
        int axis;
        SMG_TRY(smg_onnx_axis(b, n, axes[i], n->inputs[0]->rank, &axis));
        over[axis] = true;
    }
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value centred = smg_onnx_map2(b, "sub", x, smg_onnx_mean(b, x, over));
    smg_value variance = smg_onnx_mean(b, smg_onnx_map1(b, "square", centred), over);
    smg_value deviation = smg_onnx_with(b, "add", smg_onnx_map1(b, "sqrt", variance), 1e-9);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "div", centred, deviation));
}

/* x / (bias + alpha/size * the sum of squares of `size` channels around)^beta */
smg_status smg_onnx_convert_lrn(smg_onnx_build *b, const smg_onnx_node *n) {
    int64_t size = smg_onnx_attr_int(b, n, "size", 0);
    SMG_TRY(check_channels(b, n));
    if (size < 1 || size > INT32_MAX) return smg_onnx_fail(b, n, SMG_INVALID, "size is %lld", (long long)size);
    bool over[SMG_MAX_RANK] = {false, false, true};
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value around = smg_onnx_window(b, smg_onnx_map1(b, "square", x),
                                       &(smg_window){.axis = 1,
                                                     .begin = smg_onnx_int(b, -((size - 1) / 2)),
                                                     .count = n->inputs[0]->dims[1],
                                                     .taps = smg_onnx_int(b, size),
                                                     .step = 1,
                                                     .dilation = 1,
                                                     .fill = 0.0});
    smg_value sum = smg_onnx_drop_axes(b, smg_onnx_reduce(b, "sum", around, over), over);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1e-4) / (double)size;
    smg_value base = smg_onnx_with(b, "mul", sum, alpha);
    base = smg_onnx_with(b, "add", base, smg_onnx_attr_float(b, n, "bias", 1.0));
    smg_value power = smg_onnx_with(b, "pow", base, smg_onnx_attr_float(b, n, "beta", 0.75));
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "div", x, power));
}
