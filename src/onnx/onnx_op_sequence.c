/* Tensors made from sizes and indices: ranges, triangles, diagonals, fillings; and padding. */
#include <math.h>

#include "onnx/onnx_part.h"

/* ---- Range ---------------------------------------------------------------------------------- */

/* start + delta * i for i < count */
static smg_status set_range(smg_onnx_build *b, const smg_onnx_node *n, smg_size count, smg_value start, smg_value delta,
                            smg_type type) {
    int64_t most;
    if (count < 0) return smg_onnx_failed(b, n);
    smg_size_bounds(b->sizes, count, NULL, &most);
    if (most < 1) {
        smg_size none = smg_onnx_int(b, 0);
        return smg_onnx_set_known(b, n, 0, n->inputs[0]->dtype, 1, &none, SMG_ARENA_NEW(b->arena, smg_size));
    }
    smg_value index = smg_onnx_to(b, smg_onnx_count(b, count, 0, 1), type);
    smg_value y = smg_onnx_map2(b, "mul", index, delta);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "add", y, start));
}

static smg_status range_of_numbers(smg_onnx_build *b, const smg_onnx_node *n, const double bound[3]) {
    double count = ceil((bound[1] - bound[0]) / bound[2]);
    smg_type type = smg_onnx_type(n, 0);
    if (!(count < (double)SMG_SIZE_UNBOUNDED))
        return smg_onnx_fail(b, n, SMG_INVALID, "from %g to %g by %g is not a range", bound[0], bound[1], bound[2]);
    return set_range(b, n, smg_onnx_int(b, count < 0.0 ? 0 : (int64_t)count),
                     smg_graph_number(b->graph, smg_type_word(type), bound[0]),
                     smg_graph_number(b->graph, smg_type_word(type), bound[2]), type);
}

/* One of start, limit, delta as a size; a float that is a whole size counts. */
static bool bound_as_size(smg_onnx_build *b, smg_onnx_value *value, smg_size *out_size) {
    double number;
    if (smg_onnx_knows_fractions(b, value) && value->known_count == 1 &&
        (!value->known_den || smg_onnx_is_const(b, value->known_den[0], 1))) {
        *out_size = value->known[0];
        return true;
    }
    if (!smg_onnx_is_number(b, value, &number) || !(fabs(number) < 9e15)) return false;
    *out_size = smg_onnx_int(b, (int64_t)number);
    return number >= floor(number) && number <= floor(number);
}

smg_status smg_onnx_convert_range(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_size bound[3];
    double number[3];
    int64_t delta;
    bool numbers = true, sizes = true;
    for (int i = 0; i < 3; i++) {
        numbers = smg_onnx_is_number(b, n->inputs[i], &number[i]) && numbers;
        sizes = bound_as_size(b, n->inputs[i], &bound[i]) && sizes;
    }
    if (numbers && !(number[2] < 0.0 || number[2] > 0.0)) return smg_onnx_fail(b, n, SMG_INVALID, "delta is 0");
    if (numbers) return range_of_numbers(b, n, number);
    if (!sizes || !smg_size_is_const(b->sizes, bound[2], &delta) || delta == 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "start, limit and delta are not known before the run");
    smg_size length = smg_size_sub(b->sizes, bound[1], bound[0]);
    if (delta < 0) length = smg_size_sub(b->sizes, bound[0], bound[1]);
    smg_size step = smg_onnx_int(b, delta < 0 ? -delta : delta);
    smg_type type = smg_onnx_type(n, 0);
    return set_range(b, n, smg_size_ceil_div(b->sizes, length, step), smg_onnx_size_value(b, type, bound[0]),
                     smg_onnx_size_value(b, type, bound[2]), type);
}

/* ---- fillings ------------------------------------------------------------------------------- */

/* The one element of a tensor attribute; 0 without it. */
static smg_status element_of(smg_onnx_build *b, const smg_onnx_node *n, const smg_import_tensor *tensor,
                             double *out_value) {
    float real;
    int64_t whole;
    *out_value = 0.0;
    if (!tensor) return SMG_OK;
    if (tensor->count != 1)
        return smg_onnx_fail(b, n, SMG_INVALID, "value has %lld elements, must have 1", (long long)tensor->count);
    if (smg_type_kind(smg_onnx_graph_type(tensor->dtype)) == SMG_KIND_FLOAT) {
        SMG_TRY(smg_import_to_f32(b->ctx, tensor->dtype, tensor->data, 1, &real));
        *out_value = (double)real;
        return SMG_OK;
    }
    SMG_TRY(smg_import_to_i64(b->ctx, tensor->dtype, tensor->data, 1, &whole));
    *out_value = (double)whole;
    return SMG_OK;
}

smg_status smg_onnx_convert_constant_of_shape(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_import_tensor *tensor = smg_onnx_attr_tensor(b, n, "value");
    smg_import_dtype dtype = tensor ? tensor->dtype : SMG_IMPORT_F32;
    const smg_size *shape;
    double value;
    int rank;
    SMG_TRY(smg_onnx_sizes(b, n, 0, &shape, &rank));
    if (rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has rank %d, at most %d is known", rank, SMG_MAX_RANK);
    SMG_TRY(element_of(b, n, tensor, &value));
    for (int i = 0; i < rank; i++)
        if (smg_onnx_is_const(b, shape[i], 0))
            return smg_onnx_set_known(b, n, 0, dtype, rank, shape, SMG_ARENA_NEW(b->arena, smg_size));
    smg_value one = smg_graph_number(b->graph, smg_type_word(smg_onnx_graph_type(dtype)), value);
    return smg_onnx_set_typed(b, n, 0, dtype, smg_onnx_stretch(b, one, rank, shape));
}

/* Of ones a count: so exporters write arange of a size. How many elements of others are not 0 nobody knows before the
 * run. */
smg_status smg_onnx_convert_nonzero(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_onnx_value *x = n->inputs[0];
    double number = 0;
    bool filled;
    SMG_TRY(smg_onnx_filled(b, x, &filled, &number));
    if (x->rank == 1 && filled && number != 0)
        return smg_onnx_set_typed(b, n, 0, SMG_IMPORT_I64, smg_onnx_count(b, x->dims[0], 1, 2));
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                         "which elements of '%s' (%s) are not 0 does not follow from the sizes of the inputs", x->name,
                         smg_onnx_shape_text(b, x));
}

smg_status smg_onnx_convert_eye_like(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    smg_import_dtype dtype = x->dtype;
    if (smg_onnx_has_attr(n, "dtype")) dtype = smg_onnx_dtype(smg_onnx_attr_int(b, n, "dtype", 0));
    if (x->rank != 2 || dtype == SMG_IMPORT_DTYPE_NONE)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the input is %s or dtype is unknown", smg_onnx_shape_text(b, x));
    double shift = (double)smg_onnx_attr_int(b, n, "k", 0);
    smg_value row = smg_onnx_with(b, "add", smg_onnx_count(b, x->dims[0], 0, 2), shift);
    smg_value hit = smg_onnx_map2(b, "eq", row, smg_onnx_count(b, x->dims[1], 1, 2));
    return smg_onnx_set_typed(b, n, 0, dtype, smg_onnx_to(b, hit, smg_onnx_graph_type(dtype)));
}

/* Keeps column - row >= k (upper) or <= k (lower). */
smg_status smg_onnx_convert_trilu(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    bool upper = smg_onnx_attr_int(b, n, "upper", 1) != 0;
    if (x->rank < 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "the input is %s, must have two axes", smg_onnx_shape_text(b, x));
    smg_value row = smg_onnx_count(b, x->dims[x->rank - 2], 0, 2);
    smg_value column = smg_onnx_count(b, x->dims[x->rank - 1], 1, 2);
    if (smg_onnx_has(n, 1)) {
        smg_value k = smg_onnx_reshape(b, smg_onnx_operand(b, n, 1), 0, NULL);
        row = smg_onnx_map2(b, "add", row, k);
    }
    smg_value kept = smg_onnx_map2(b, upper ? "ge" : "le", column, row), in = smg_onnx_in(b, n, 0);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_select(b, kept, in, smg_onnx_like(b, in, 0.0)));
}

/* ---- Pad ------------------------------------------------------------------------------------ */

/* Which element of an axis stands at `index`, which may be outside; modes are ONNX's. */
static smg_value source_of(smg_onnx_build *b, smg_value index, smg_size extent, const char *mode) {
    smg_size one = smg_onnx_int(b, 1);
    smg_value end = smg_onnx_size_value(b, SMG_TYPE_I32, smg_size_sub(b->sizes, extent, one));
    if (strcmp(mode, "wrap") == 0) return smg_onnx_map2(b, "mod", index, smg_onnx_size_value(b, SMG_TYPE_I32, extent));
    if (strcmp(mode, "edge") == 0) return smg_onnx_map2(b, "min", smg_onnx_with(b, "max", index, 0.0), end);
    smg_value distance = smg_onnx_map2(b, "sub", smg_onnx_map1(b, "abs", index), end);
    return smg_onnx_map2(b, "sub", end, smg_onnx_map1(b, "abs", distance)); /* reflect */
}

/* Crops what is negative, then adds. `value` is used by mode constant. */
static smg_value pad_axis(smg_onnx_build *b, smg_value x, int axis, const smg_size pad[2], const char *mode,
                          double value) {
    smg_size extent = smg_onnx_dim(b, x, axis), add[2], zero = smg_onnx_int(b, 0);
    if (!x.id) return x;
    if (strcmp(mode, "constant") == 0) return smg_graph_pad_of(b->graph, x, axis, pad[0], pad[1], value);
    for (int i = 0; i < 2; i++) add[i] = smg_size_max(b->sizes, pad[i], zero);
    smg_size begin = smg_size_sub(b->sizes, add[0], pad[0]);
    smg_size kept = smg_size_sub(b->sizes, extent, begin);
    kept = smg_size_sub(b->sizes, kept, smg_size_sub(b->sizes, add[1], pad[1]));
    x = smg_onnx_part(b, x, axis, begin, kept, 1);
    if (add[0] == zero && add[1] == zero) return x;
    smg_size total = smg_size_add(b->sizes, smg_size_add(b->sizes, kept, add[0]), add[1]);
    smg_value index =
        smg_onnx_map2(b, "sub", smg_onnx_count(b, total, 0, 1), smg_onnx_size_value(b, SMG_TYPE_I32, add[0]));
    smg_value at = source_of(b, index, kept, mode);
    return x.id && at.id ? smg_graph_take(b->graph, x, at, axis) : (smg_value){0};
}

static bool mode_known(const char *mode) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    for (size_t i = 0; i < SMG_COUNT_OF(modes); i++)
        if (strcmp(modes[i], mode) == 0) return true;
    return false;
}

smg_status smg_onnx_convert_pad(smg_onnx_build *b, const smg_onnx_node *n) {
    int rank = n->inputs[0]->rank, axes[SMG_MAX_RANK], count, pads;
    const char *mode = smg_onnx_attr_string(b, n, "mode", "constant");
    const smg_size *pad;
    double value;
    if (!mode_known(mode))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is \"%s\"; constant, reflect, edge and wrap are known", mode);
    SMG_TRY(smg_onnx_sizes(b, n, 1, &pad, &pads));
    SMG_TRY(smg_onnx_number(b, n, 2, 0.0, &value));
    SMG_TRY(smg_onnx_axes(b, n, 3, rank, axes, &count));
    for (int i = 0; count < 0 && i < rank; i++) axes[i] = i;
    if (count < 0) count = rank;
    if (pads != 2 * count) return smg_onnx_fail(b, n, SMG_INVALID, "pads has %d entries for %d axes", pads, count);
    smg_value x = smg_onnx_in(b, n, 0);
    for (int i = 0; i < count; i++) x = pad_axis(b, x, axes[i], (smg_size[]){pad[i], pad[count + i]}, mode, value);
    return smg_onnx_set_like(b, n, 0, 0, x);
}
