/* Norms, activations and perceptrons from primitive operations. */
#include "model/model_private.h"

#include <math.h>

/* ---- norms ---------------------------------------------------------------------------------- */

/* mean of squares, or of what is given, over the last axis */
static smg_value mean_over(model_builder *b, smg_value x, int64_t width) {
    smg_value share = smg_model_number(b, 1.0 / (double)width);
    return smg_model_map2(b, "mul", smg_graph_reduce(b->g, "sum", x, -1, true), share);
}

static smg_value inverse_root(model_builder *b, smg_value variance) {
    smg_value safe = smg_model_map2(b, "add", variance, smg_model_number(b, b->eps));
    return smg_model_map1(b, "rsqrt", safe);
}

smg_value smg_model_layer_norm(model_builder *b, smg_value x, const char *scope, int64_t width, const char *name) {
    smg_value mean = mean_over(b, x, width);
    smg_value centred = smg_model_map2(b, "sub", x, mean);
    smg_value variance = mean_over(b, smg_model_map1(b, "square", centred), width);
    smg_value normal = smg_model_map2(b, "mul", centred, inverse_root(b, variance));
    smg_value scale = smg_model_weight(b, smg_model_text(b, "%s.weight", scope), width, 0);
    smg_value shift = smg_model_weight(b, smg_model_text(b, "%s.bias", scope), width, 0);
    smg_model_named(b, mean, smg_model_text(b, "%s.mean", name));
    smg_model_named(b, centred, smg_model_text(b, "%s.centred", name));
    smg_model_named(b, variance, smg_model_text(b, "%s.variance", name));
    smg_model_named(b, normal, smg_model_text(b, "%s.normal", name));
    return smg_model_named(b, smg_model_map2(b, "add", smg_model_map2(b, "mul", normal, scale), shift), name);
}

smg_value smg_model_rms_norm(model_builder *b, smg_value x, const char *scope, int64_t width, const char *name) {
    smg_value energy = mean_over(b, smg_model_map1(b, "square", x), width);
    smg_value normal = smg_model_map2(b, "mul", x, inverse_root(b, energy));
    smg_value scale = smg_model_weight(b, smg_model_text(b, "%s.weight", scope), width, 0);
    smg_model_named(b, energy, smg_model_text(b, "%s.energy", name));
    smg_model_named(b, normal, smg_model_text(b, "%s.normal", name));
    return smg_model_named(b, smg_model_map2(b, "mul", normal, scale), name);
}

/* ---- activations ---------------------------------------------------------------------------- */

/* x/2 (1 + gate) */
static smg_value gelu_of(model_builder *b, smg_value x, smg_value gate) {
    smg_value half = smg_model_map2(b, "mul", x, smg_model_number(b, 0.5));
    return smg_model_map2(b, "mul", half, smg_model_map2(b, "add", gate, smg_model_number(b, 1.0)));
}

static smg_value gelu_erf(model_builder *b, smg_value x) {
    smg_value scaled = smg_model_map2(b, "mul", x, smg_model_number(b, sqrt(0.5)));
    return gelu_of(b, x, smg_model_map1(b, "erf", scaled));
}

static smg_value gelu_tanh(model_builder *b, smg_value x) {
    smg_value cube = smg_model_map2(b, "mul", smg_model_map1(b, "square", x), x);
    smg_value bent = smg_model_map2(b, "mul", cube, smg_model_number(b, 0.044715));
    smg_value inner = smg_model_map2(b, "add", x, bent);
    smg_value root = smg_model_number(b, sqrt(2.0 / acos(-1.0)));
    return gelu_of(b, x, smg_model_map1(b, "tanh", smg_model_map2(b, "mul", inner, root)));
}

static smg_value relu(model_builder *b, smg_value x) {
    return smg_model_map1(b, "relu", x);
}

static smg_value silu(model_builder *b, smg_value x) {
    return smg_model_map2(b, "mul", x, smg_model_map1(b, "sigmoid", x));
}

static smg_value sigmoid(model_builder *b, smg_value x) {
    return smg_model_map1(b, "sigmoid", x);
}

static smg_value quick_gelu(model_builder *b, smg_value x) {
    smg_value scaled = smg_model_map2(b, "mul", x, smg_model_number(b, 1.702));
    return smg_model_map2(b, "mul", x, smg_model_map1(b, "sigmoid", scaled));
}

static smg_value relu_squared(model_builder *b, smg_value x) {
    return smg_model_map1(b, "square", smg_model_map1(b, "relu", x));
}

static smg_value identity(model_builder *b, smg_value x) {
    (void)b;
    return x;
}

static smg_value tanh_of(model_builder *b, smg_value x) {
    return smg_model_map1(b, "tanh", x);
}

static const struct activation {
    const char *name;
    smg_value (*build)(model_builder *b, smg_value x);
} activations[] = {
    {"gelu", gelu_erf},       {"gelu_python", gelu_erf},
    {"gelu_new", gelu_tanh},  {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_fast", gelu_tanh}, {"quick_gelu", quick_gelu},
    {"relu", relu},           {"relu2", relu_squared},
    {"silu", silu},           {"swish", silu},
    {"sigmoid", sigmoid},     {"tanh", tanh_of},
    {"linear", identity},
};

static const struct activation *find_activation(const char *name) {
    for (size_t i = 0; i < SMG_COUNT_OF(activations); i++)
        if (strcmp(activations[i].name, name) == 0) return &activations[i];
    return NULL;
}

bool smg_model_activation_known(const char *name) {
    return find_activation(name) != NULL;
}

const char *smg_model_activation_names(void) {
    return "gelu gelu_python gelu_new gelu_pytorch_tanh gelu_fast quick_gelu relu relu2 silu swish "
           "sigmoid tanh linear";
}

smg_value smg_model_activation(model_builder *b, smg_value x, const char *name) {
    const struct activation *activation = find_activation(b->activation);
    return activation ? smg_model_named(b, activation->build(b, x), name) : smg_model_fail(b, SMG_UNSUPPORTED);
}

/* ---- perceptrons ---------------------------------------------------------------------------- */

smg_value smg_model_mlp(model_builder *b, smg_value x, const model_linear *inner, const model_linear *outer,
                        const char *name) {
    smg_value y = smg_model_linear(b, x, inner, smg_model_text(b, "%s.inner", name));
    y = smg_model_activation(b, y, smg_model_text(b, "%s.activation", name));
    return smg_model_linear(b, y, outer, smg_model_text(b, "%s.outer", name));
}

smg_value smg_model_gated_mlp(model_builder *b, smg_value x, const model_linear *gate, const model_linear *inner,
                              const model_linear *outer, const char *name) {
    smg_value open = smg_model_linear(b, x, gate, smg_model_text(b, "%s.gate", name));
    open = smg_model_activation(b, open, smg_model_text(b, "%s.activation", name));
    smg_value y = smg_model_linear(b, x, inner, smg_model_text(b, "%s.inner", name));
    y = smg_model_named(b, smg_model_map2(b, "mul", open, y), smg_model_text(b, "%s.gated", name));
    return smg_model_linear(b, y, outer, smg_model_text(b, "%s.outer", name));
}
