/* Activations, and the functions that normalise along axes (Softmax, LogSoftmax, Hardmax). */
#include <math.h>

#include "onnx/onnx_part.h"

static const double root_half = 0.70710678118654752440;   /* sqrt(1/2) */
static const double root_two_pi = 0.79788456080286535588; /* sqrt(2/pi) */

static smg_value mul(smg_onnx_build *b, smg_value x, double factor) {
    return smg_onnx_with(b, "mul", x, factor);
}

/* x > 0 ? high : low */
static smg_value by_sign(smg_onnx_build *b, smg_value x, smg_value high, smg_value low) {
    return smg_onnx_select(b, smg_onnx_with(b, "gt", x, 0.0), high, low);
}

/* e^x - 1 where x <= 0; elsewhere 0, so that nothing overflows. */
static smg_value exp_minus_one(smg_onnx_build *b, smg_value x) {
    smg_value low = smg_onnx_with(b, "min", x, 0.0);
    return smg_onnx_with(b, "sub", smg_onnx_map1(b, "exp", low), 1.0);
}

/* log(1 + e^x) without overflow. */
static smg_value softplus(smg_onnx_build *b, smg_value x) {
    smg_value away = smg_onnx_map1(b, "neg", smg_onnx_map1(b, "abs", x));
    smg_value rest = smg_onnx_with(b, "add", smg_onnx_map1(b, "exp", away), 1.0);
    return smg_onnx_map2(b, "add", smg_onnx_map1(b, "relu", x), smg_onnx_map1(b, "log", rest));
}

/* max(0, min(1, alpha x + beta)) */
static smg_value hard_sigmoid(smg_onnx_build *b, smg_value x, double alpha, double beta) {
    smg_value line = smg_onnx_with(b, "add", mul(b, x, alpha), beta);
    return smg_onnx_with(b, "min", smg_onnx_with(b, "max", line, 0.0), 1.0);
}

smg_value smg_onnx_gelu(smg_onnx_build *b, smg_value x, bool by_tanh) {
    smg_value gate;
    if (by_tanh) {
        smg_value cube = smg_onnx_map2(b, "mul", smg_onnx_map1(b, "square", x), x);
        smg_value inner = smg_onnx_map2(b, "add", x, mul(b, cube, 0.044715));
        gate = smg_onnx_map1(b, "tanh", mul(b, inner, root_two_pi));
    } else {
        gate = smg_onnx_map1(b, "erf", mul(b, x, root_half));
    }
    return smg_onnx_map2(b, "mul", mul(b, x, 0.5), smg_onnx_with(b, "add", gate, 1.0));
}

/* ---- rows ----------------------------------------------------------------------------------- */

smg_status smg_onnx_convert_leaky_relu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 0.01);
    return smg_onnx_set(b, n, 0, by_sign(b, x, x, mul(b, x, alpha)));
}

smg_status smg_onnx_convert_prelu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0), slope = smg_onnx_operand(b, n, 1);
    return smg_onnx_set(b, n, 0, by_sign(b, x, x, smg_onnx_map2(b, "mul", x, slope)));
}

smg_status smg_onnx_convert_elu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.0);
    return smg_onnx_set(b, n, 0, by_sign(b, x, x, mul(b, exp_minus_one(b, x), alpha)));
}

smg_status smg_onnx_convert_celu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.0);
    smg_value low = mul(b, exp_minus_one(b, mul(b, x, 1.0 / alpha)), alpha);
    return smg_onnx_set(b, n, 0, by_sign(b, x, x, low));
}

smg_status smg_onnx_convert_selu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.67326319217681884765625);
    double gamma = smg_onnx_attr_float(b, n, "gamma", 1.05070102214813232421875);
    smg_value low = mul(b, exp_minus_one(b, x), alpha);
    return smg_onnx_set(b, n, 0, mul(b, by_sign(b, x, x, low), gamma));
}

smg_status smg_onnx_convert_thresholded_relu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.0);
    smg_value above = smg_onnx_with(b, "gt", x, alpha);
    return smg_onnx_set(b, n, 0, smg_onnx_select(b, above, x, smg_onnx_like(b, x, 0.0)));
}

smg_status smg_onnx_convert_hard_sigmoid(smg_onnx_build *b, const smg_onnx_node *n) {
    double alpha = smg_onnx_attr_float(b, n, "alpha", 0.2);
    double beta = smg_onnx_attr_float(b, n, "beta", 0.5);
    return smg_onnx_set(b, n, 0, hard_sigmoid(b, smg_onnx_in(b, n, 0), alpha, beta));
}

smg_status smg_onnx_convert_hard_swish(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "mul", x, hard_sigmoid(b, x, 1.0 / 6.0, 0.5)));
}

smg_status smg_onnx_convert_softplus(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_set(b, n, 0, softplus(b, smg_onnx_in(b, n, 0)));
}

smg_status smg_onnx_convert_softsign(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value below = smg_onnx_with(b, "add", smg_onnx_map1(b, "abs", x), 1.0);
    return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "div", x, below));
}

smg_status smg_onnx_convert_mish(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0), gate = smg_onnx_map1(b, "tanh", softplus(b, x));
    return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "mul", x, gate));
}

smg_status smg_onnx_convert_gelu(smg_onnx_build *b, const smg_onnx_node *n) {
    const char *kind = smg_onnx_attr_string(b, n, "approximate", "none");
    bool by_tanh = strcmp(kind, "tanh") == 0;
    if (!by_tanh && strcmp(kind, "none") != 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "approximate is \"%s\", none or tanh is known", kind);
    return smg_onnx_set(b, n, 0, smg_onnx_gelu(b, smg_onnx_in(b, n, 0), by_tanh));
}

/* x < -lambd ? x + bias : x > lambd ? x - bias : 0 */
smg_status smg_onnx_convert_shrink(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    double lambda = smg_onnx_attr_float(b, n, "lambd", 0.5);
    double bias = smg_onnx_attr_float(b, n, "bias", 0.0);
    smg_value high = smg_onnx_select(b, smg_onnx_with(b, "gt", x, lambda), smg_onnx_with(b, "sub", x, bias),
                                     smg_onnx_like(b, x, 0.0));
    smg_value y = smg_onnx_select(b, smg_onnx_with(b, "lt", x, -lambda), smg_onnx_with(b, "add", x, bias), high);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_dropout(smg_onnx_build *b, const smg_onnx_node *n) {
    double training;
    SMG_TRY(smg_onnx_number(b, n, 2, 0.0, &training));
    if (training < 0.0 || training > 0.0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "training_mode is true, only inference is known");
    if (n->output_count > 1 && n->outputs[1]) {
        smg_value all = smg_graph_number(b->graph, "bool", 1.0);
        const smg_onnx_value *x = n->inputs[0];
        SMG_TRY(smg_onnx_set(b, n, 1, smg_onnx_stretch(b, all, x->rank, x->dims)));
    }
    return smg_onnx_set_same(b, n, 0, n->inputs[0]);
}

/* ---- along axes ----------------------------------------------------------------------------- */

static smg_value hardmax(smg_onnx_build *b, smg_value x, int axis) {
    int rank = smg_onnx_rank(b, x);
    smg_value best = smg_graph_argreduce(b->graph, "reduce_max", x, axis, true, false);
    smg_value index = smg_onnx_count(b, smg_onnx_dim(b, x, axis), axis, rank);
    return smg_onnx_to(b, smg_onnx_map2(b, "eq", index, best), SMG_TYPE_F32);
}

/* Before opset 13 the axes from `axis` on are one. */
smg_status smg_onnx_convert_softmax(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    const smg_onnx_value *in = n->inputs[0];
    int axis;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", n->opset < 13 ? 1 : -1), in->rank, &axis));
    smg_value y = n->opset < 13 ? smg_onnx_merge(b, x, axis, in->rank - axis) : x;
    if (strcmp(n->op, "Hardmax") == 0)
        y = hardmax(b, y, axis);
    else
        y = smg_onnx_softmax(b, y, axis, strcmp(n->op, "LogSoftmax") == 0);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_reshape(b, y, in->rank, in->dims));
}
