/* The parts of encoders, each written with primitive operations: linear layers, LayerNorm, activations,
 * softmax, pooling. What belongs together is found by the compiler from the dependencies, not from here. */
#include "model/model_private.h"

#include <math.h>
#include <stdio.h>

smg_value smg_model_fail(model_builder *b, smg_status code) {
    if (b->g->status == SMG_OK) b->g->status = code;
    return (smg_value){0};
}

const char *smg_model_text(model_builder *b, const char *format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof buffer) {
        smg_model_fail(b,
                       smg_fail(b->g->ctx, SMG_INVALID, "a name of %d bytes is too long", length));
        return "";
    }
    const char *copy = smg_arena_string(b->g->arena, buffer);
    if (!copy) smg_model_fail(b, SMG_MEMORY);
    return copy ? copy : "";
}

smg_value smg_model_named(model_builder *b, smg_value value, const char *name) {
    smg_graph_name(b->g, value, name);
    return value;
}

/* ---- weights -------------------------------------------------------------------------------- */

typedef struct found_tensor {
    smg_type type;
    int rank;
    int64_t dims[SMG_MAX_RANK];
    const void *data;
} found_tensor;

static bool look_up(model_builder *b, const char *name, found_tensor *out) {
    const char *full = smg_model_text(b, "%s%s", b->prefix, name);
    return b->source->tensor(b->source->user, full, &out->type, &out->rank, out->dims, &out->data);
}

/* Old checkpoints call the scale and shift of a LayerNorm gamma and beta. */
static bool look_up_old(model_builder *b, const char *name, found_tensor *out) {
    static const char *const pairs[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                           {"LayerNorm.bias", "LayerNorm.beta"}};
    size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        size_t tail = strlen(pairs[i][0]);
        if (length < tail || strcmp(name + length - tail, pairs[i][0]) != 0) continue;
        return look_up(b, smg_model_text(b, "%.*s%s", (int)(length - tail), name, pairs[i][1]),
                       out);
    }
    return false;
}

static const char *shape_text(model_builder *b, int rank, const int64_t *dims) {
    const char *text = "";
    for (int i = 0; i < rank && i < SMG_MAX_RANK; i++)
        text = smg_model_text(b, "%s%s%lld", text, i > 0 ? ", " : "", (long long)dims[i]);
    return text;
}

smg_value smg_model_weight(model_builder *b, const char *name, int rank, int64_t rows,
                           int64_t columns) {
    int64_t wanted[2] = {rows, columns};
    found_tensor found = {.rank = 0};
    if (b->g->status != SMG_OK) return (smg_value){0};
    if (!look_up(b, name, &found) && !look_up_old(b, name, &found))
        return smg_model_fail(b, smg_fail(b->g->ctx, SMG_NOT_FOUND,
                                          "tensor %s%s [%s] is not in the model", b->prefix, name,
                                          shape_text(b, rank, wanted)));
    bool same = found.rank == rank;
    for (int i = 0; same && i < rank; i++) same = found.dims[i] == wanted[i];
    if (!same)
        return smg_model_fail(b, smg_fail(b->g->ctx, SMG_FORMAT,
                                          "tensor %s%s is [%s], the configuration makes it [%s]",
                                          b->prefix, name, shape_text(b, found.rank, found.dims),
                                          shape_text(b, rank, wanted)));
    if (smg_type_kind(found.type) != SMG_KIND_FLOAT)
        return smg_model_fail(b, smg_fail(b->g->ctx, SMG_UNSUPPORTED,
                                          "tensor %s%s is %s, must be f32 or f16", b->prefix, name,
                                          smg_type_word(found.type)));
    smg_value value = smg_graph_constant(b->g, name, smg_type_word(found.type),
                                         shape_text(b, rank, wanted), found.data);
    return found.type == SMG_TYPE_F32 ? value : smg_graph_cast(b->g, value, "f32");
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

smg_value smg_model_map1(model_builder *b, const char *op, smg_value x) {
    return smg_graph_map(b->g, op, 1, &x);
}

smg_value smg_model_map2(model_builder *b, const char *op, smg_value x, smg_value y) {
    return smg_graph_map(b->g, op, 2, (smg_value[]){x, y});
}

smg_value smg_model_number(model_builder *b, double value) {
    return smg_graph_number(b->g, "f32", value);
}

smg_value smg_model_linear(model_builder *b, smg_value x, const char *scope, int64_t in,
                           int64_t out, const char *name) {
    smg_value weight = smg_model_weight(b, smg_model_text(b, "%s.weight", scope), 2, out, in);
    smg_value bias = smg_model_weight(b, smg_model_text(b, "%s.bias", scope), 1, out, 0);
    smg_value product = smg_graph_contract(b->g, "bsi,oi->bso", x, weight);
    smg_model_named(b, product, smg_model_text(b, "%s.product", name));
    return smg_model_named(b, smg_model_map2(b, "add", product, bias), name);
}

smg_value smg_model_layer_norm(model_builder *b, smg_value x, const char *scope, int64_t width,
                               const char *name) {
    smg_value share = smg_model_number(b, 1.0 / (double)width);
    smg_value mean = smg_model_map2(b, "mul", smg_graph_reduce(b->g, "sum", x, 2, true), share);
    smg_value centred = smg_model_map2(b, "sub", x, mean);
    smg_value energy = smg_graph_reduce(b->g, "sum", smg_model_map1(b, "square", centred), 2, true);
    smg_value variance = smg_model_map2(b, "mul", energy, share);
    smg_value safe = smg_model_map2(b, "add", variance, smg_model_number(b, b->eps));
    smg_value normal = smg_model_map2(b, "mul", centred, smg_model_map1(b, "rsqrt", safe));
    smg_value scale = smg_model_weight(b, smg_model_text(b, "%s.weight", scope), 1, width, 0);
    smg_value shift = smg_model_weight(b, smg_model_text(b, "%s.bias", scope), 1, width, 0);
    smg_model_named(b, mean, smg_model_text(b, "%s.mean", name));
    smg_model_named(b, centred, smg_model_text(b, "%s.centred", name));
    smg_model_named(b, variance, smg_model_text(b, "%s.variance", name));
    smg_model_named(b, normal, smg_model_text(b, "%s.normal", name));
    return smg_model_named(
        b, smg_model_map2(b, "add", smg_model_map2(b, "mul", normal, scale), shift), name);
}

smg_value smg_model_softmax(model_builder *b, smg_value scores, const char *name) {
    smg_value largest = smg_graph_reduce(b->g, "reduce_max", scores, 3, true);
    smg_value e = smg_model_map1(b, "exp", smg_model_map2(b, "sub", scores, largest));
    smg_value total = smg_graph_reduce(b->g, "sum", e, 3, true);
    smg_model_named(b, largest, smg_model_text(b, "%s.largest", name));
    smg_model_named(b, e, smg_model_text(b, "%s.exp", name));
    smg_model_named(b, total, smg_model_text(b, "%s.total", name));
    return smg_model_named(b, smg_model_map2(b, "div", e, total), name);
}

/* ---- activations ---------------------------------------------------------------------------- */

/* x/2 (1 + gate) */
static smg_value gelu_of(model_builder *b, smg_value x, smg_value gate) {
    smg_value half = smg_model_map2(b, "mul", x, b->number_half);
    return smg_model_map2(b, "mul", half, smg_model_map2(b, "add", gate, b->number_one));
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

static smg_value tanh_of(model_builder *b, smg_value x) {
    return smg_model_map1(b, "tanh", x);
}

static const struct activation {
    const char *name;
    smg_value (*build)(model_builder *b, smg_value x);
} activations[] = {
    {"gelu", gelu_erf},       {"gelu_new", gelu_tanh}, {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_fast", gelu_tanh}, {"relu", relu},          {"silu", silu},
    {"swish", silu},          {"tanh", tanh_of},
};

static const struct activation *find_activation(const char *name) {
    for (size_t i = 0; i < SMG_COUNT_OF(activations); i++)
        if (strcmp(activations[i].name, name) == 0) return &activations[i];
    return NULL;
}

bool smg_model_activation_known(const char *name) {
    return find_activation(name) != NULL;
}

smg_value smg_model_activation(model_builder *b, smg_value x, const char *name) {
    const struct activation *activation = find_activation(b->activation);
    return activation ? smg_model_named(b, activation->build(b, x), name)
                      : smg_model_fail(b, SMG_UNSUPPORTED);
}

/* ---- pooling -------------------------------------------------------------------------------- */

/* sum over tokens of mask * h, divided by the number of valid tokens */
static smg_value mean_of_valid(model_builder *b, smg_value hidden_state, smg_value mask) {
    smg_value weights = smg_graph_reshape(b->g, mask, "batch, sequence, 1");
    smg_value sum =
        smg_graph_reduce(b->g, "sum", smg_model_map2(b, "mul", hidden_state, weights), 1, false);
    smg_value count = smg_graph_reduce(b->g, "sum", mask, 1, true);
    count = smg_model_map2(b, "max", count, smg_model_number(b, 1e-9));
    return smg_model_map2(b, "div", sum, count);
}

smg_value smg_model_pool(model_builder *b, smg_value hidden_state, smg_value mask, int64_t hidden) {
    smg_value pooled;
    if (b->source->pooling == SMG_MODEL_POOLING_CLS) {
        smg_value first = smg_graph_slice(b->g, hidden_state, 1, "0", "1", 1);
        pooled =
            smg_graph_reshape(b->g, first, smg_model_text(b, "batch, %lld", (long long)hidden));
    } else {
        pooled = mean_of_valid(b, hidden_state, mask);
    }
    smg_model_named(b, pooled, "pooled");
    if (!b->source->normalize) return pooled;
    smg_value energy = smg_graph_reduce(b->g, "sum", smg_model_map1(b, "square", pooled), 1, true);
    smg_value norm =
        smg_model_map2(b, "max", smg_model_map1(b, "sqrt", energy), smg_model_number(b, 1e-12));
    return smg_model_named(b, smg_model_map2(b, "div", pooled, norm), "normalized");
}
