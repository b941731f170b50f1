/* The Constant operator in all its forms, and constants made on the host. */
#include "onnx/onnx_private.h"

void smg_onnx_hold_constant(smg_onnx_build *b, smg_onnx_value *v, const smg_import_tensor *tensor) {
    v->constant = tensor;
    v->dtype = tensor->dtype;
    v->rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++) {
        v->dims[i] = smg_size_const(b->sizes, tensor->dims[i]);
        if (v->dims[i] < 0) b->failed = true;
    }
}

static smg_status set_constant(smg_onnx_build *b, const smg_onnx_node *n, int output, const smg_import_tensor *tensor) {
    if (b->failed || !tensor) return smg_onnx_failed(b, n);
    if (output >= n->output_count || !n->outputs[output]) return SMG_OK;
    smg_onnx_hold_constant(b, n->outputs[output], tensor);
    return b->failed ? smg_onnx_failed(b, n) : SMG_OK;
}

static smg_status set_floats(smg_onnx_build *b, const smg_onnx_node *n, int rank, int count, const float *values) {
    smg_import_tensor *t = SMG_ARENA_NEW(b->arena, smg_import_tensor);
    uint8_t *data = SMG_ARENA_ARRAY(b->arena, uint8_t, (size_t)count * 4 + 1);
    if (!t || !data) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int k = 0; k < 4; k++) data[i * 4 + k] = (uint8_t)(bits >> 8 * k);
    }
    *t = (smg_import_tensor){.name = n->name,
                             .dtype = SMG_IMPORT_F32,
                             .rank = rank,
                             .dims = {count},
                             .count = count,
                             .data = data,
                             .bytes = (size_t)count * 4};
    return set_constant(b, n, 0, t);
}

static smg_status set_ints(smg_onnx_build *b, const smg_onnx_node *n, int rank, int count, const int64_t *values) {
    smg_size dim = smg_onnx_int(b, count);
    smg_size *sizes = SMG_ARENA_ARRAY(b->arena, smg_size, (size_t)count + 1);
    if (!sizes) return SMG_MEMORY;
    for (int i = 0; i < count; i++) sizes[i] = smg_onnx_int(b, values[i]);
    return smg_onnx_set_known(b, n, 0, SMG_IMPORT_I64, rank, &dim, sizes);
}

smg_status smg_onnx_convert_constant(smg_onnx_build *b, const smg_onnx_node *n) {
    const float *floats = NULL;
    const int64_t *ints = NULL;
    int count;
    if (smg_onnx_has_attr(n, "value")) return set_constant(b, n, 0, smg_onnx_attr_tensor(b, n, "value"));
    if (smg_onnx_has_attr(n, "value_float")) {
        float value = (float)smg_onnx_attr_float(b, n, "value_float", 0);
        return set_floats(b, n, 0, 1, &value);
    }
    if (smg_onnx_has_attr(n, "value_int")) {
        int64_t value = smg_onnx_attr_int(b, n, "value_int", 0);
        return set_ints(b, n, 0, 1, &value);
    }
    count = smg_onnx_attr_floats(b, n, "value_floats", &floats);
    if (count >= 0) return set_floats(b, n, 1, count, floats);
    count = smg_onnx_attr_ints(b, n, "value_ints", &ints);
    if (count >= 0) return set_ints(b, n, 1, count, ints);
    if (b->failed) return smg_onnx_failed(b, n);
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                         "it holds no dense tensor and no numbers (strings and sparse tensors are "
                         "not supported)");
}
