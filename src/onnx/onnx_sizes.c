/* Shape arithmetic, part 1: known tensors in and out of nodes, and what asks for shapes.
 *
 * A tensor that follows from the sizes of the model's inputs alone is never computed on the device:
 * its elements are carried as fractions of size expressions, and an operator whose result is the same
 * expression for every size is evaluated here. Where it is not (a comparison that depends on the
 * sizes), the operator becomes part of the graph like any other.
 */
#include "onnx/onnx_private.h"

onnx_number smg_onnx_number_of(smg_onnx_build *b, int64_t value) {
    onnx_number number = {smg_size_const(b->sizes, value), smg_size_const(b->sizes, 1)};
    if (number.num < 0 || number.den < 0) b->failed = true;
    return number;
}

bool smg_onnx_number_is(smg_onnx_build *b, onnx_number x, int64_t *out_value) {
    return smg_onnx_is_const(b, x.den, 1) && smg_size_is_const(b->sizes, x.num, out_value);
}

bool smg_onnx_known_make(smg_onnx_build *b, smg_import_dtype dtype, int rank, const int64_t *dims, onnx_known *out) {
    int64_t count = 1;
    *out = (onnx_known){.dtype = dtype, .rank = rank};
    if (rank > SMG_MAX_RANK) return false;
    for (int i = 0; i < rank; i++) {
        out->dims[i] = dims[i];
        if (!smg_mul_i64(count, dims[i], &count)) return false;
    }
    for (int i = 0; i < rank; i++)
        if (dims[i] > SMG_ONNX_KNOWN_MAX) return false;
    if (count > SMG_ONNX_KNOWN_MAX) return false;
    out->count = (int)count;
    out->items = SMG_ARENA_ARRAY(b->arena, onnx_number, (size_t)count + 1);
    if (!out->items) b->failed = true;
    return out->items != NULL;
}

bool smg_onnx_known_in(smg_onnx_build *b, const smg_onnx_node *n, int input, onnx_known *out) {
    int64_t dims[SMG_MAX_RANK];
    if (!smg_onnx_has(n, input)) return false;
    smg_onnx_value *v = n->inputs[input];
    if (!smg_onnx_knows_fractions(b, v)) return false;
    for (int i = 0; i < v->rank; i++)
        if (!smg_size_is_const(b->sizes, v->dims[i], &dims[i])) return false;
    if (!smg_onnx_known_make(b, v->dtype, v->rank, dims, out)) return false;
    smg_size one = smg_onnx_int(b, 1);
    for (int i = 0; i < out->count; i++)
        out->items[i] = (onnx_number){v->known[i], v->known_den ? v->known_den[i] : one};
    return true;
}

bool smg_onnx_known_alike(const onnx_known *x, const onnx_known *y) {
    return smg_onnx_graph_type(x->dtype) == smg_onnx_graph_type(y->dtype);
}

bool smg_onnx_known_ints(smg_onnx_build *b, const smg_onnx_node *n, int input, const int64_t **out_ints,
                         int *out_count) {
    onnx_known known;
    *out_ints = NULL;
    *out_count = 0;
    if (!smg_onnx_known_in(b, n, input, &known)) return false;
    int64_t *ints = SMG_ARENA_ARRAY(b->arena, int64_t, (size_t)known.count + 1);
    if (!ints) {
        b->failed = true;
        return false;
    }
    for (int i = 0; i < known.count; i++)
        if (!smg_onnx_number_is(b, known.items[i], &ints[i])) return false;
    *out_ints = ints;
    *out_count = known.count;
    return true;
}

smg_status smg_onnx_known_out(smg_onnx_build *b, const smg_onnx_node *n, int output, const onnx_known *known,
                              bool *out_done) {
    smg_size dims[SMG_MAX_RANK];
    size_t room = (size_t)known->count + 1;
    smg_size *num = SMG_ARENA_ARRAY(b->arena, smg_size, room);
    smg_size *den = SMG_ARENA_ARRAY(b->arena, smg_size, room);
    bool whole = true;
    if (!num || !den) return SMG_MEMORY;
    if (b->failed) return smg_onnx_failed(b, n);
    for (int i = 0; i < known->rank; i++) dims[i] = smg_onnx_int(b, known->dims[i]);
    for (int i = 0; i < known->count; i++) {
        num[i] = known->items[i].num;
        den[i] = known->items[i].den;
        if (num[i] < 0 || den[i] < 0) return smg_onnx_failed(b, n);
        whole = whole && smg_onnx_is_const(b, den[i], 1);
    }
    bool floats = smg_onnx_graph_type(known->dtype) == SMG_TYPE_F32;
    if (!whole && !floats) return smg_onnx_fail(b, n, SMG_INTERNAL, "integers are fractions");
    *out_done = true;
    SMG_TRY(smg_onnx_set_known(b, n, output, known->dtype, known->rank, dims, num));
    if (!whole && output < n->output_count && n->outputs[output]) n->outputs[output]->known_den = den;
    return SMG_OK;
}

/* ---- what asks for shapes ----------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

smg_status smg_onnx_sizes_shape(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    const smg_onnx_value *v = n->inputs[0];
    int64_t start = smg_onnx_attr_int(b, n, "start", 0);
    int64_t end = smg_onnx_attr_int(b, n, "end", v->rank);
    start = clamp(start < 0 ? start + v->rank : start, 0, v->rank);
    end = clamp(end < 0 ? end + v->rank : end, 0, v->rank);
    int64_t count = end > start ? end - start : 0;
    onnx_known shape;
    if (!smg_onnx_known_make(b, SMG_IMPORT_I64, 1, &count, &shape)) return SMG_OK;
    for (int i = 0; i < shape.count; i++) shape.items[i] = (onnx_number){v->dims[start + i], smg_onnx_int(b, 1)};
    return smg_onnx_known_out(b, n, 0, &shape, out_done);
}

smg_status smg_onnx_sizes_size(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    const smg_onnx_value *v = n->inputs[0];
    onnx_known size;
    if (!smg_onnx_known_make(b, SMG_IMPORT_I64, 0, NULL, &size)) return SMG_OK;
    size.items[0] = (onnx_number){smg_onnx_product(b, v->rank, v->dims), smg_onnx_int(b, 1)};
    return smg_onnx_known_out(b, n, 0, &size, out_done);
}
