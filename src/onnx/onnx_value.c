/* Values during import: what is known of them, and how they enter the graph.
 *
 * A value starts as a weight of the file, as sizes, or as a node of the graph. Sizes and weights become
 * nodes only when a converter asks for one, so that shape arithmetic never leaves a trace in the graph.
 */
#include "onnx/onnx_form.h"
#include "onnx/onnx_private.h"

static const smg_value no_value = {0};

static bool is_float(smg_import_dtype dtype) {
    return smg_onnx_graph_type(dtype) == SMG_TYPE_F32;
}

/* ---- questions ---------------------------------------------------------------------------------- */

bool smg_onnx_has(const smg_onnx_node *n, int input) {
    return input >= 0 && input < n->input_count && n->inputs[input] != NULL;
}

smg_type smg_onnx_type(const smg_onnx_node *n, int input) {
    return smg_onnx_has(n, input) ? smg_onnx_graph_type(n->inputs[input]->dtype) : SMG_TYPE_F32;
}

const smg_import_tensor *smg_onnx_constant(const smg_onnx_node *n, int input) {
    return smg_onnx_has(n, input) ? n->inputs[input]->constant : NULL;
}

static bool learn_ints(smg_onnx_build *b, smg_onnx_value *v) {
    const smg_import_tensor *t = v->constant;
    size_t count = (size_t)t->count;
    int64_t *ints = SMG_ARENA_ARRAY(b->arena, int64_t, count + 1);
    smg_size *known = SMG_ARENA_ARRAY(b->arena, smg_size, count + 1);
    if (!ints || !known || smg_import_to_i64(b->ctx, t->dtype, t->data, t->count, ints) != SMG_OK) {
        b->failed = true;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        known[i] = smg_size_const(b->sizes, ints[i]);
        if (known[i] < 0) b->failed = true;
    }
    v->known = known;
    v->known_count = (int)count;
    return !b->failed;
}

/* A small value of the graph whose elements turn out to be sizes: an element of a range, say. */
#define MOST_READ 64

static bool learn_graph(smg_onnx_build *b, smg_onnx_value *v) {
    smg_affine at[SMG_MAX_RANK], element;
    int64_t count = 1, extent[SMG_MAX_RANK];
    onnx_forms forms;
    for (int i = 0; i < v->rank; i++)
        if (!smg_size_is_const(b->sizes, v->dims[i], &extent[i]) || !smg_mul_i64(count, extent[i], &count) ||
            count > MOST_READ)
            return false;
    smg_size *known = SMG_ARENA_ARRAY(b->arena, smg_size, (size_t)count);
    if (!known) b->failed = true;
    smg_onnx_forms_begin(b, 0, NULL, &forms);
    for (int64_t k = 0; known && k < count; k++) {
        int64_t rest = k;
        for (int i = v->rank - 1; i >= 0; i--) {
            at[i] = (smg_affine){.begin = smg_onnx_int(b, rest % extent[i])};
            rest /= extent[i];
        }
        if (b->failed || !smg_onnx_form_at(&forms, v->graph, at, &element)) return false;
        known[k] = element.begin;
    }
    v->known = known;
    v->known_count = (int)count;
    return known != NULL;
}

static bool learn(smg_onnx_build *b, smg_onnx_value *v, int64_t most,
                  bool (*from_constant)(smg_onnx_build *b, smg_onnx_value *v)) {
    if (v->known || v->unknown) return v->known != NULL;
    bool done = v->constant ? v->constant->count <= most && from_constant(b, v) : v->graph.id != 0 && learn_graph(b, v);
    v->unknown = !done;
    return done;
}

bool smg_onnx_knows_sizes(smg_onnx_build *b, smg_onnx_value *v) {
    if (b->failed || !v || is_float(v->dtype)) return false;
    return learn(b, v, SMG_ONNX_KNOWN_MAX, learn_ints);
}

/* Floats that are a small multiple of a power of 1/2, exactly. */
#define MOST_FRACTIONS 64
#define LARGEST_DENOMINATOR 1048576

static bool as_fraction(double value, int64_t *out_num, int64_t *out_den) {
    int64_t den = 1;
    if (!(value > -2147483648.0 && value < 2147483648.0)) return false;
    while (den < LARGEST_DENOMINATOR && value * (double)den != (double)(int64_t)(value * (double)den)) den *= 2;
    double scaled = value * (double)den;
    if (scaled != (double)(int64_t)scaled || !(scaled > -1e15 && scaled < 1e15)) return false;
    if (value == 0 && 1 / value < 0) return false; /* -0 */
    *out_num = (int64_t)scaled;
    *out_den = den;
    return true;
}

static bool learn_fractions(smg_onnx_build *b, smg_onnx_value *v) {
    const smg_import_tensor *t = v->constant;
    size_t count = (size_t)t->count;
    float values[MOST_FRACTIONS];
    smg_size *num = SMG_ARENA_ARRAY(b->arena, smg_size, count + 1);
    smg_size *den = SMG_ARENA_ARRAY(b->arena, smg_size, count + 1);
    if (!num || !den || smg_import_to_f32(b->ctx, t->dtype, t->data, t->count, values) != SMG_OK) {
        b->failed = true;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t above = 0, below = 0;
        if (!as_fraction((double)values[i], &above, &below)) return false;
        num[i] = smg_size_const(b->sizes, above);
        den[i] = smg_size_const(b->sizes, below);
        if (num[i] < 0 || den[i] < 0) b->failed = true;
    }
    v->known = num;
    v->known_den = den;
    v->known_count = (int)count;
    return !b->failed;
}

bool smg_onnx_knows_fractions(smg_onnx_build *b, smg_onnx_value *v) {
    if (b->failed || !v) return false;
    if (!is_float(v->dtype)) return smg_onnx_knows_sizes(b, v);
    return learn(b, v, MOST_FRACTIONS, learn_fractions);
}

bool smg_onnx_is_number(smg_onnx_build *b, smg_onnx_value *v, double *out_number) {
    int64_t num = 0, den = 1;
    if (!v || b->failed) return false;
    if (v->constant) {
        const smg_import_tensor *t = v->constant;
        float value = 0;
        if (t->count != 1) return false;
        if (!is_float(t->dtype)) {
            if (smg_import_to_i64(b->ctx, t->dtype, t->data, 1, &num) != SMG_OK) return false;
            *out_number = (double)num;
            return true;
        }
        if (smg_import_to_f32(b->ctx, t->dtype, t->data, 1, &value) != SMG_OK) return false;
        *out_number = (double)value;
        return true;
    }
    if (!v->known || v->known_count != 1) return false;
    if (!smg_size_is_const(b->sizes, v->known[0], &num)) return false;
    if (v->known_den && !smg_size_is_const(b->sizes, v->known_den[0], &den)) return false;
    *out_number = (double)num / (double)den;
    return true;
}

/* What the graph computes from single numbers alone, as a quantised constant behind its scale. */
static bool computed_number(smg_onnx_build *b, smg_exprs *exprs, const smg_node *node, int steps, double *out_number) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    double number[SMG_MAX_OPERANDS] = {0};
    smg_op_class class_ = smg_op_get(node->op)->class_;
    *out_number = node->value;
    if (smg_op_leaf(node->op) == SMG_LEAF_NUMBER) return true;
    if (steps == 0 || (class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_VIEW)) return false;
    if (smg_op_view(node->op) == SMG_VIEW_WINDOW) return false;
    for (int k = 0; k < node->operand_count; k++) {
        const smg_node *operand = smg_graph_node(b->graph, node->operand[k]);
        if (!computed_number(b, exprs, operand, steps - 1, &number[k])) return false;
        leaf[k] = smg_expr_leaf(exprs, smg_type_kind(operand->type), k);
    }
    *out_number = number[0];
    if (class_ == SMG_CLASS_VIEW) return true;
    smg_expr expr = smg_op_expr(exprs, node->op, node->type, leaf);
    if (expr == SMG_EXPR_NONE) return false;
    *out_number = smg_expr_eval(exprs, expr, number);
    return true;
}

#define MOST_STEPS 8

smg_status smg_onnx_filled(smg_onnx_build *b, smg_onnx_value *value, bool *out_is, double *out_number) {
    smg_exprs *exprs = NULL;
    const smg_node *node = value->graph.id ? smg_graph_node_of(b->graph, value->graph) : NULL;
    *out_is = false;
    if (node && smg_exprs_create(b->arena, &exprs) != SMG_OK) return SMG_MEMORY;
    *out_is = node && computed_number(b, exprs, node, MOST_STEPS, out_number);
    return SMG_OK;
}

smg_status smg_onnx_number(smg_onnx_build *b, const smg_onnx_node *n, int input, double fallback, double *out_number) {
    bool filled;
    *out_number = fallback;
    if (!smg_onnx_has(n, input)) return SMG_OK;
    if (smg_onnx_is_number(b, n->inputs[input], out_number)) return SMG_OK;
    SMG_TRY(smg_onnx_filled(b, n->inputs[input], &filled, out_number));
    if (filled) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "input %d ('%s') must be one constant number", input,
                         n->inputs[input]->name);
}

smg_status smg_onnx_sizes(smg_onnx_build *b, const smg_onnx_node *n, int input, const smg_size **out_sizes,
                          int *out_count) {
    *out_sizes = NULL;
    *out_count = 0;
    if (!smg_onnx_has(n, input)) return smg_onnx_fail(b, n, SMG_FORMAT, "input %d is missing", input);
    smg_onnx_value *v = n->inputs[input];
    if (smg_onnx_knows_sizes(b, v)) {
        *out_sizes = v->known;
        *out_count = v->known_count;
        return SMG_OK;
    }
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                         "input %d ('%s', %s) must be integers that follow from the sizes of the "
                         "model's inputs",
                         input, v->name, smg_onnx_shape_text(b, v));
}

smg_status smg_onnx_ints(smg_onnx_build *b, const smg_onnx_node *n, int input, const int64_t **out_ints,
                         int *out_count) {
    const smg_size *sizes = NULL;
    *out_ints = NULL;
    SMG_TRY(smg_onnx_sizes(b, n, input, &sizes, out_count));
    int64_t *ints = SMG_ARENA_ARRAY(b->arena, int64_t, (size_t)*out_count + 1);
    if (!ints) return SMG_MEMORY;
    for (int i = 0; i < *out_count; i++)
        if (!smg_size_is_const(b->sizes, sizes[i], &ints[i]))
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "element %d of input %d ('%s') is %s, must be a number", i,
                                 input, n->inputs[input]->name, smg_onnx_size_text(b, sizes[i]));
    *out_ints = ints;
    return SMG_OK;
}

/* ---- into the graph: weights -------------------------------------------------------------------- */

static bool little_endian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static smg_value number_of(smg_onnx_build *b, smg_type type, double value, int rank, const smg_size *dims) {
    smg_value number = smg_graph_number(b->graph, smg_type_word(type), value);
    return rank == 0 ? number : smg_graph_reshape_to(b->graph, number, rank, dims);
}

static smg_value fail_value(smg_onnx_build *b) {
    b->failed = true;
    return no_value;
}

static smg_value outside(smg_onnx_build *b, const char *name, int64_t index, int64_t value) {
    smg_fail(b->ctx, SMG_UNSUPPORTED, "element %lld of '%s' is %lld, outside 32 bits", (long long)index, name,
             (long long)value);
    return fail_value(b);
}

static smg_value constant_ints(smg_onnx_build *b, const smg_onnx_value *v, const int64_t *values) {
    const smg_import_tensor *t = v->constant;
    int32_t *data = SMG_ARENA_ARRAY(b->arena, int32_t, (size_t)t->count);
    if (!data) return fail_value(b);
    for (int64_t i = 0; i < t->count; i++) {
        if (values[i] < INT32_MIN || values[i] > INT32_MAX) return outside(b, t->name, i, values[i]);
        data[i] = (int32_t)values[i];
    }
    return smg_graph_constant_of(b->graph, t->name, SMG_TYPE_I32, v->rank, v->dims, data);
}

/* Integers through a bounded buffer would be leaner; weights of integer type are small. */
static smg_value make_ints(smg_onnx_build *b, const smg_onnx_value *v) {
    const smg_import_tensor *t = v->constant;
    int64_t *values = smg_alloc(b->ctx, (size_t)t->count, sizeof *values);
    smg_value made = no_value;
    if (!values) return fail_value(b);
    if (smg_import_to_i64(b->ctx, t->dtype, t->data, t->count, values) != SMG_OK) {
        made = fail_value(b);
    } else {
        made = constant_ints(b, v, values);
    }
    smg_free(b->ctx, values, (size_t)t->count * sizeof *values);
    return made;
}

static smg_value make_floats(smg_onnx_build *b, const smg_onnx_value *v) {
    const smg_import_tensor *t = v->constant;
    float *data = SMG_ARENA_ARRAY(b->arena, float, (size_t)t->count);
    if (!data || smg_import_to_f32(b->ctx, t->dtype, t->data, t->count, data) != SMG_OK) return fail_value(b);
    smg_onnx_drop(b->model, t->data, t->bytes);
    return smg_graph_constant_of(b->graph, t->name, SMG_TYPE_F32, v->rank, v->dims, data);
}

static smg_value make_constant(smg_onnx_build *b, smg_onnx_value *v) {
    const smg_import_tensor *t = v->constant;
    double number = 0;
    if (t->count == 0) {
        smg_fail(b->ctx, SMG_UNSUPPORTED, "tensor '%s' has no elements", t->name);
        return fail_value(b);
    }
    if (t->count == 1 && smg_onnx_is_number(b, v, &number)) {
        smg_type type = smg_onnx_graph_type(t->dtype);
        if (type == SMG_TYPE_I32 && (number < INT32_MIN || number > INT32_MAX))
            return outside(b, t->name, 0, (int64_t)number);
        if (type == SMG_TYPE_BOOL) number = number != 0 ? 1 : 0;
        return number_of(b, type, number, v->rank, v->dims);
    }
    if (t->dtype == SMG_IMPORT_BOOL)
        return smg_graph_constant_of(b->graph, t->name, SMG_TYPE_BOOL, v->rank, v->dims, t->data);
    if (!is_float(t->dtype)) return make_ints(b, v);
    if (t->dtype == SMG_IMPORT_F32 && little_endian())
        return smg_graph_constant_of(b->graph, t->name, SMG_TYPE_F32, v->rank, v->dims, t->data);
    if ((t->dtype == SMG_IMPORT_F16 || t->dtype == SMG_IMPORT_BF16) && little_endian()) {
        smg_type type = t->dtype == SMG_IMPORT_F16 ? SMG_TYPE_F16 : SMG_TYPE_BF16;
        smg_value half = smg_graph_constant_of(b->graph, t->name, type, v->rank, v->dims, t->data);
        return smg_graph_cast(b->graph, half, "f32");
    }
    return make_floats(b, v);
}

/* ---- into the graph: sizes ---------------------------------------------------------------------- */

/* Elements of known values that are no arithmetic progression are selected one by one. */
#define MOST_SELECTED 64

static smg_value map2(smg_onnx_build *b, const char *op, smg_value x, smg_value y) {
    const smg_value operands[] = {x, y};
    return smg_graph_map(b->graph, op, 2, operands);
}

smg_value smg_onnx_size_value(smg_onnx_build *b, smg_type type, smg_size size) {
    int64_t value = 0;
    if (b->failed) return no_value;
    if (!smg_size_is_const(b->sizes, size, &value)) {
        if (type != SMG_TYPE_BOOL) return smg_graph_size_typed(b->graph, type, size);
        smg_value zero = smg_graph_number(b->graph, "i32", 0);
        return map2(b, "ne", smg_graph_size_typed(b->graph, SMG_TYPE_I32, size), zero);
    }
    if (type == SMG_TYPE_I32 && (value < INT32_MIN || value > INT32_MAX))
        return outside(b, "a computed size", 0, value);
    return smg_graph_number(b->graph, smg_type_word(type), (double)value);
}

static smg_value element(smg_onnx_build *b, const smg_onnx_value *v, int i) {
    smg_type type = smg_onnx_graph_type(v->dtype);
    int64_t num = 0, den = 1;
    if (!v->known_den) return smg_onnx_size_value(b, type, v->known[i]);
    bool number = smg_size_is_const(b->sizes, v->known[i], &num) && smg_size_is_const(b->sizes, v->known_den[i], &den);
    if (number) return smg_graph_number(b->graph, "f32", (double)num / (double)den);
    return map2(b, "div", smg_onnx_size_value(b, type, v->known[i]), smg_onnx_size_value(b, type, v->known_den[i]));
}

static bool all_numbers(const smg_onnx_build *b, const smg_onnx_value *v) {
    for (int i = 0; i < v->known_count; i++) {
        if (!smg_size_is_const(b->sizes, v->known[i], NULL)) return false;
        if (v->known_den && !smg_size_is_const(b->sizes, v->known_den[i], NULL)) return false;
    }
    return true;
}

/* first + step * i for all of them. */
static bool is_progression(smg_onnx_build *b, const smg_onnx_value *v, smg_size *out_step) {
    int64_t step = 0;
    if (v->known_den || v->dtype == SMG_IMPORT_BOOL || v->known_count < 2) return false;
    for (int i = 1; i < v->known_count; i++) {
        smg_size next = smg_size_sub(b->sizes, v->known[i], v->known[i - 1]);
        if (next < 0) b->failed = true;
        if (next < 0 || (i > 1 && next != *out_step)) return false;
        *out_step = next;
    }
    bool number = smg_size_is_const(b->sizes, *out_step, &step);
    return !number || (step >= INT32_MIN && step <= INT32_MAX);
}

/* The elements' numbers in row-major order, as i32 of the value's shape. */
static smg_value positions(smg_onnx_build *b, const smg_onnx_value *v) {
    smg_size count = smg_onnx_int(b, v->known_count);
    smg_value flat = smg_graph_iota_of(b->graph, 1, &count, 0);
    return v->rank == 1 ? flat : smg_graph_reshape_to(b->graph, flat, v->rank, v->dims);
}

static smg_value make_progression(smg_onnx_build *b, const smg_onnx_value *v, smg_size step) {
    smg_type type = smg_onnx_graph_type(v->dtype);
    smg_value at = positions(b, v);
    if (type == SMG_TYPE_F32) at = smg_graph_cast(b->graph, at, "f32");
    if (!smg_onnx_is_const(b, step, 1)) at = map2(b, "mul", at, smg_onnx_size_value(b, type, step));
    if (smg_onnx_is_const(b, v->known[0], 0)) return at;
    return map2(b, "add", at, smg_onnx_size_value(b, type, v->known[0]));
}

static void *known_data(smg_onnx_build *b, const smg_onnx_value *v, smg_type type) {
    float *floats = SMG_ARENA_ARRAY(b->arena, float, (size_t)v->known_count);
    int32_t *ints = (int32_t *)(void *)floats; /* one of the three is used */
    uint8_t *bools = (uint8_t *)floats;
    for (int i = 0; floats && i < v->known_count; i++) {
        int64_t num = 0, den = 1;
        smg_size_is_const(b->sizes, v->known[i], &num);
        if (v->known_den) smg_size_is_const(b->sizes, v->known_den[i], &den);
        if (type == SMG_TYPE_I32 && (num < INT32_MIN || num > INT32_MAX)) {
            outside(b, v->name, i, num);
            return NULL;
        }
        if (type == SMG_TYPE_F32) floats[i] = (float)((double)num / (double)den);
        if (type == SMG_TYPE_I32) ints[i] = (int32_t)num;
        if (type == SMG_TYPE_BOOL) bools[i] = num != 0;
    }
    return floats;
}

static smg_value make_selected(smg_onnx_build *b, const smg_onnx_value *v) {
    smg_value at = positions(b, v), made = element(b, v, v->known_count - 1);
    for (int i = v->known_count - 2; i >= 0; i--) {
        smg_value here = map2(b, "eq", at, smg_graph_number(b->graph, "i32", i));
        const smg_value operands[] = {here, element(b, v, i), made};
        made = smg_graph_map(b->graph, "select", 3, operands);
    }
    return made;
}

static smg_value make_known(smg_onnx_build *b, const smg_onnx_value *v) {
    smg_type type = smg_onnx_graph_type(v->dtype);
    smg_size step;
    if (v->known_count == 0) {
        smg_fail(b->ctx, SMG_UNSUPPORTED, "value '%s' has no elements", v->name);
        return fail_value(b);
    }
    if (v->known_count == 1) {
        smg_value only = element(b, v, 0);
        return v->rank == 0 ? only : smg_graph_reshape_to(b->graph, only, v->rank, v->dims);
    }
    if (is_progression(b, v, &step)) {
        if (smg_onnx_is_const(b, step, 0)) {
            smg_value all = element(b, v, 0);
            return smg_graph_broadcast_to(b->graph, all, v->rank, v->dims);
        }
        return make_progression(b, v, step);
    }
    if (all_numbers(b, v)) {
        void *data = known_data(b, v, type);
        if (!data) return fail_value(b);
        return smg_graph_constant_of(b->graph, v->name, type, v->rank, v->dims, data);
    }
    if (v->known_count <= MOST_SELECTED) return make_selected(b, v);
    smg_fail(b->ctx, SMG_UNSUPPORTED, "value '%s' has %d different sizes as elements", v->name, v->known_count);
    return fail_value(b);
}

smg_value smg_onnx_value_in(smg_onnx_build *b, smg_onnx_value *v) {
    if (b->failed) return no_value;
    if (v->graph.id != 0) return v->graph;
    if (v->items) {
        smg_fail(b->ctx, SMG_UNSUPPORTED, "'%s' is a sequence, not a tensor", v->name);
        return fail_value(b);
    }
    /* A short run of numbers, such as positions, is better known than loaded. */
    bool known =
        v->known || (!is_float(v->dtype) && v->dtype != SMG_IMPORT_BOOL && v->rank > 0 && smg_onnx_knows_sizes(b, v));
    smg_size step;
    if (known && v->constant && !is_progression(b, v, &step)) known = false;
    v->graph = known ? make_known(b, v) : make_constant(b, v);
    return v->graph;
}

smg_value smg_onnx_in(smg_onnx_build *b, const smg_onnx_node *n, int input) {
    if (b->failed) return no_value;
    if (smg_onnx_has(n, input)) return smg_onnx_value_in(b, n->inputs[input]);
    smg_onnx_fail(b, n, SMG_FORMAT, "input %d is missing", input);
    return fail_value(b);
}
