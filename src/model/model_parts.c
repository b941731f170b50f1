/* The parts of models: names, weights with checked shapes, arithmetic, linear layers, tables. Each is
 * written with primitive operations; what belongs together is found by the compiler, not here. */
#include "model/model_private.h"

#include <stdio.h>

smg_value smg_model_fail(model_builder *b, smg_status code) {
    smg_build_stick(b->g, code);
    return (smg_value){0};
}

const char *smg_model_text(model_builder *b, const char *format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof buffer) {
        smg_model_fail(b, smg_fail(b->g->ctx, SMG_INVALID, "a name of %d bytes is too long", length));
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

const char *smg_model_dims(model_builder *b, const char *tokens, int64_t third, int64_t fourth) {
    if (third == 0) return smg_model_text(b, "batch, %s", tokens);
    if (fourth == 0) return smg_model_text(b, "batch, %s, %lld", tokens, (long long)third);
    return smg_model_text(b, "batch, %s, %lld, %lld", tokens, (long long)third, (long long)fourth);
}

/* ---- weights -------------------------------------------------------------------------------- */

typedef struct found_tensor {
    smg_type type;
    int rank;
    int64_t dims[SMG_MAX_RANK];
    const void *data;
} found_tensor;

static bool find(const model_builder *b, const char *full_name, found_tensor *out) {
    return b->source->tensor(b->source->user, full_name, &out->type, &out->rank, out->dims, &out->data);
}

bool smg_model_has_tensor(const model_builder *b, const char *full_name) {
    found_tensor found;
    return find(b, full_name, &found);
}

void smg_model_find_prefix(model_builder *b, const char *base, const char *probe) {
    b->prefix = smg_model_has_tensor(b, smg_model_text(b, "%s%s", base, probe)) ? base : "";
}

static bool look_up(model_builder *b, const char *name, found_tensor *out) {
    return find(b, smg_model_text(b, "%s%s", b->prefix, name), out);
}

/* Old checkpoints call the scale and shift of a LayerNorm gamma and beta. */
static bool look_up_old(model_builder *b, const char *name, found_tensor *out) {
    static const char *const pairs[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                           {"LayerNorm.bias", "LayerNorm.beta"}};
    size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        size_t tail = strlen(pairs[i][0]);
        if (length < tail || strcmp(name + length - tail, pairs[i][0]) != 0) continue;
        return look_up(b, smg_model_text(b, "%.*s%s", (int)(length - tail), name, pairs[i][1]), out);
    }
    return false;
}

static const char *shape_text(model_builder *b, int rank, const int64_t *dims) {
    const char *text = "";
    for (int i = 0; i < rank && i < SMG_MAX_RANK; i++)
        text = smg_model_text(b, "%s%s%lld", text, i > 0 ? ", " : "", (long long)dims[i]);
    return text;
}

enum { MOST_TOLD = 8 }; /* of what is wrong, in one sentence */

/* Remembers what is wrong with a tensor; a shape stands in for it. */
static smg_value wrong_tensor(model_builder *b, smg_status code, const char *name, int rank, const int64_t *dims,
                              const char *sentence) {
    if (b->wrong_count == 0) {
        b->wrong = code;
        b->wrong_text = sentence;
    } else if (b->wrong_count < MOST_TOLD) {
        b->wrong_text = smg_arena_format(b->g->arena, "%s; %s", b->wrong_text, sentence);
        if (b->wrong_text == NULL) return smg_model_fail(b, SMG_MEMORY);
    }
    b->wrong_count++;
    return smg_graph_constant(b->g, name, "f32", shape_text(b, rank, dims), NULL);
}

void smg_model_tell_wrong(model_builder *b) {
    smg_context *ctx = b->g->ctx;
    if (b->wrong_count == 0 || b->g->status != SMG_OK) return;
    smg_status status = b->wrong_count == 1 ? smg_fail(ctx, b->wrong, "%s", b->wrong_text)
                                            : smg_fail(ctx, b->wrong, "%d tensors are wrong: %s%s", b->wrong_count,
                                                       b->wrong_text, b->wrong_count > MOST_TOLD ? "; and so on" : "");
    smg_model_fail(b, status);
}

static smg_value check_tensor(model_builder *b, const char *name, int rank, const int64_t *dims,
                              const found_tensor *found) {
    bool same = found->rank == rank;
    for (int i = 0; same && i < rank; i++) same = found->dims[i] == dims[i];
    if (!same)
        return wrong_tensor(b, SMG_FORMAT, name, rank, dims,
                            smg_model_text(b, "tensor %s%s is [%s], the configuration makes it [%s]", b->prefix, name,
                                           shape_text(b, found->rank, found->dims), shape_text(b, rank, dims)));
    if (smg_type_kind(found->type) != SMG_KIND_FLOAT)
        return wrong_tensor(b, SMG_UNSUPPORTED, name, rank, dims,
                            smg_model_text(b, "tensor %s%s is %s, must be f32, f16 or bf16", b->prefix, name,
                                           smg_type_word(found->type)));
    return smg_graph_constant(b->g, name, smg_type_word(found->type), shape_text(b, rank, dims), found->data);
}

smg_value smg_model_tensor(model_builder *b, const char *name, int rank, const int64_t *dims) {
    found_tensor found = {.rank = 0};
    const char *full = smg_model_text(b, "%s%s", b->prefix, name);
    void *known = NULL;
    if (b->g->status != SMG_OK) return (smg_value){0};
    smg_value value = {0};
    bool there = look_up(b, name, &found) || look_up_old(b, name, &found);
    if (smg_map_get(b->weights, full, strlen(full), &known))
        value.id = (int)(uintptr_t)known;
    else if (there)
        value = check_tensor(b, name, rank, dims, &found);
    else
        value = wrong_tensor(b, SMG_NOT_FOUND, name, rank, dims,
                             smg_model_text(b, "tensor %s [%s] is not in the model", full, shape_text(b, rank, dims)));
    void *id = (void *)(uintptr_t)(unsigned)value.id;
    if (smg_map_set(b->weights, full, strlen(full), id) != SMG_OK) return smg_model_fail(b, SMG_MEMORY);
    return !there || found.type == SMG_TYPE_F32 || value.id == 0 ? value : smg_graph_cast(b->g, value, "f32");
}

smg_value smg_model_weight(model_builder *b, const char *name, int64_t rows, int64_t columns) {
    return smg_model_tensor(b, name, columns > 0 ? 2 : 1, (const int64_t[]){rows, columns});
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

smg_value smg_model_integer(model_builder *b, int64_t value) {
    return smg_graph_number(b->g, "i32", (double)value);
}

/* ---- linear layers and tables --------------------------------------------------------------- */

/* The columns [begin, begin + out) of a weight or bias along `axis`. */
static smg_value part_of(model_builder *b, const model_linear *linear, smg_value tensor, int axis) {
    if (linear->whole == 0) return tensor;
    return smg_graph_slice(b->g, tensor, axis, smg_model_text(b, "%lld", (long long)linear->begin),
                           smg_model_text(b, "%lld", (long long)linear->out), 1);
}

smg_value smg_model_linear(model_builder *b, smg_value x, const model_linear *linear, const char *name) {
    int64_t whole = linear->whole > 0 ? linear->whole : linear->out;
    const char *weight_name = smg_model_text(b, "%s.weight", linear->scope);
    smg_value weight = linear->in_out ? smg_model_weight(b, weight_name, linear->in, whole)
                                      : smg_model_weight(b, weight_name, whole, linear->in);
    weight = part_of(b, linear, weight, linear->in_out ? 1 : 0);
    const char *labels = linear->in_out ? "bsi,io->bso" : "bsi,oi->bso";
    smg_value product = smg_graph_contract(b->g, labels, x, weight);
    if (linear->no_bias) return smg_model_named(b, product, name);
    smg_value bias = smg_model_weight(b, smg_model_text(b, "%s.bias", linear->scope), whole, 0);
    bias = part_of(b, linear, bias, 0);
    smg_model_named(b, product, smg_model_text(b, "%s.product", name));
    return smg_model_named(b, smg_model_map2(b, "add", product, bias), name);
}

smg_value smg_model_lookup(model_builder *b, const char *name, int64_t rows, int64_t width, smg_value ids) {
    return smg_graph_gather(b->g, smg_model_weight(b, name, rows, width), ids);
}

void smg_model_logits(model_builder *b, smg_value x, smg_value words, int64_t vocabulary, int64_t width) {
    static const char head[] = "lm_head.weight";
    const char *prefix = b->prefix;
    if (!b->tied || smg_model_has_tensor(b, head)) {
        b->prefix = ""; /* the head is beside the base model */
        words = smg_model_weight(b, head, vocabulary, width);
        b->prefix = prefix;
    }
    smg_value scores = smg_graph_contract(b->g, "bsi,vi->bsv", x, words);
    smg_graph_output(b->g, "logits", smg_model_named(b, scores, "logits"));
}
