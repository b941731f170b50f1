/* Tensors of a file: type, shape and elements of a TensorProto.
 *
 * Elements lie in one of three places: raw bytes in the file (borrowed), a typed field (floats are
 * the same bytes as raw ones and are borrowed too; integers are varints and are decoded into the
 * arena), or another file. Whatever it was, the result is little-endian bytes of the tensor's type.
 */
#include "onnx/onnx_private.h"

/* By TensorProto.DataType. */
static const smg_import_dtype dtypes[] = {
    [1] = SMG_IMPORT_F32, [2] = SMG_IMPORT_U8,   [3] = SMG_IMPORT_I8,   [5] = SMG_IMPORT_I16,  [6] = SMG_IMPORT_I32,
    [7] = SMG_IMPORT_I64, [9] = SMG_IMPORT_BOOL, [10] = SMG_IMPORT_F16, [11] = SMG_IMPORT_F64, [16] = SMG_IMPORT_BF16,
};

static const char *const type_words[] = {
    "no type",  "float32",      "uint8",          "int8",       "uint16",         "int16",  "int32",     "int64",
    "strings",  "bool",         "float16",        "float64",    "uint32",         "uint64", "complex64", "complex128",
    "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",      "float4e2m1",
};

smg_import_dtype smg_onnx_dtype(int64_t onnx_type) {
    bool known = onnx_type >= 0 && onnx_type < (int64_t)SMG_COUNT_OF(dtypes);
    return known ? dtypes[onnx_type] : SMG_IMPORT_DTYPE_NONE;
}

const char *smg_onnx_type_word(int64_t onnx_type) {
    bool known = onnx_type >= 0 && onnx_type < (int64_t)SMG_COUNT_OF(type_words);
    return known ? type_words[onnx_type] : "a type that ONNX does not have";
}

smg_type smg_onnx_graph_type(smg_import_dtype dtype) {
    switch (dtype) {
    case SMG_IMPORT_F32:
    case SMG_IMPORT_F16:
    case SMG_IMPORT_BF16:
    case SMG_IMPORT_F64: return SMG_TYPE_F32;
    case SMG_IMPORT_BOOL: return SMG_TYPE_BOOL;
    default: return SMG_TYPE_I32;
    }
}

static smg_status read_shape(smg_onnx *m, const pb_tensor *proto, smg_import_tensor *out) {
    if (proto->n_dims > SMG_IMPORT_MAX_RANK)
        return smg_fail(m->ctx, SMG_UNSUPPORTED,
                        "'%s': tensor '%s' has %zu axes, at most %d are "
                        "possible",
                        m->label, out->name, proto->n_dims, SMG_IMPORT_MAX_RANK);
    out->rank = (int)proto->n_dims;
    out->count = 1;
    for (int i = 0; i < out->rank; i++) {
        out->dims[i] = proto->dims[i];
        if (out->dims[i] < 0)
            return smg_fail(m->ctx, SMG_FORMAT, "'%s': axis %d of tensor '%s' is %lld", m->label, i, out->name,
                            (long long)out->dims[i]);
        if (!smg_mul_i64(out->count, out->dims[i], &out->count))
            return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' has too many elements", m->label, out->name);
    }
    int64_t bytes = 0;
    if (!smg_mul_i64(out->count, (int64_t)smg_import_dtype_bytes(out->dtype), &bytes) || bytes > PTRDIFF_MAX - 64)
        return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' has too many elements", m->label, out->name);
    out->bytes = (size_t)bytes;
    return SMG_OK;
}

static smg_status wrong_length(smg_onnx *m, const smg_import_tensor *t, uint64_t got, const char *unit, int64_t want) {
    return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' holds %llu %s, its shape needs %lld", m->label, t->name,
                    (unsigned long long)got, unit, (long long)want);
}

/* A varint within [*io_at, end); the walk has not looked inside. */
static bool next_varint(const uint8_t **io_at, const uint8_t *end, uint64_t *out_value) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && *io_at < end; shift += 7) {
        uint8_t byte = *(*io_at)++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

/* int32_data and int64_data: every type that fits, halves as their bits. */
static smg_status decode_varints(smg_onnx *m, const uint8_t *at, size_t bytes, smg_import_tensor *out) {
    const uint8_t *end = at + bytes;
    if ((uint64_t)out->count > bytes) return wrong_length(m, out, bytes, "bytes of elements at most", out->count);
    uint8_t *data = smg_arena_alloc(m->arena, out->bytes + 1, 1);
    if (!data) return SMG_MEMORY;
    size_t step = smg_import_dtype_bytes(out->dtype);
    int64_t count = 0;
    for (; at < end && count < out->count; count++) {
        uint64_t value = 0;
        if (!next_varint(&at, end, &value))
            return smg_fail(m->ctx, SMG_FORMAT, "'%s': element %lld of tensor '%s' is cut off", m->label,
                            (long long)count, out->name);
        uint64_t high = step == 8 ? 0 : value >> 8 * step; /* sign, or nothing */
        bool fits = step == 8 || high == 0 || high == UINT64_MAX >> 8 * step;
        if (!fits)
            return smg_fail(m->ctx, SMG_FORMAT, "'%s': element %lld of tensor '%s' does not fit %s", m->label,
                            (long long)count, out->name, smg_import_dtype_word(out->dtype));
        for (size_t i = 0; i < step; i++) data[(size_t)count * step + i] = (uint8_t)(value >> 8 * i);
    }
    if (count != out->count) return wrong_length(m, out, (uint64_t)count, "elements", out->count);
    if (at != end) return wrong_length(m, out, bytes, "bytes of elements, more than", out->count);
    out->data = data;
    return SMG_OK;
}

/* May the elements of this type be in this field? */
static bool field_fits(int32_t field, smg_import_dtype dtype) {
    switch (field) {
    case 9: return true;
    case 4: return dtype == SMG_IMPORT_F32;
    case 7: return dtype == SMG_IMPORT_I64;
    case 10: return dtype == SMG_IMPORT_F64;
    case 5: return dtype != SMG_IMPORT_F32 && dtype != SMG_IMPORT_I64 && dtype != SMG_IMPORT_F64;
    default: return false;
    }
}

static smg_status read_elements(smg_onnx *m, const pb_tensor *proto, smg_import_tensor *out) {
    static const uint8_t nothing[1] = {0};
    out->data = nothing;
    if (proto->data_location == 1) return smg_onnx_read_external(m, proto, out->name, out->bytes, &out->data);
    if (proto->data_field == 0) return out->bytes == 0 ? SMG_OK : wrong_length(m, out, 0, "elements", out->count);
    if (!field_fits(proto->data_field, out->dtype))
        return smg_fail(m->ctx, SMG_FORMAT,
                        "'%s': tensor '%s' of type %s has its elements in field "
                        "%d",
                        m->label, out->name, smg_import_dtype_word(out->dtype), (int)proto->data_field);
    if (proto->data_bytes > m->size || proto->data_offset > m->size - proto->data_bytes)
        return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' lies outside the file", m->label, out->name);
    const uint8_t *data = m->data + proto->data_offset;
    if (proto->data_field == 5 || proto->data_field == 7)
        return decode_varints(m, data, (size_t)proto->data_bytes, out);
    if (proto->data_bytes != out->bytes) return wrong_length(m, out, proto->data_bytes, "bytes", (int64_t)out->bytes);
    if (out->bytes > 0) out->data = data;
    return SMG_OK;
}

smg_status smg_onnx_read_tensor(smg_onnx *model, const pb_tensor *tensor, const char *name,
                                const smg_import_tensor **out_tensor) {
    *out_tensor = NULL;
    smg_import_tensor *t = SMG_ARENA_NEW(model->arena, smg_import_tensor);
    if (!t) return SMG_MEMORY;
    t->name = tensor->name[0] ? tensor->name : name;
    t->dtype = smg_onnx_dtype(tensor->data_type);
    if (t->dtype == SMG_IMPORT_DTYPE_NONE)
        return smg_fail(model->ctx, SMG_UNSUPPORTED, "'%s': tensor '%s' holds %s (type %d)", model->label, t->name,
                        smg_onnx_type_word(tensor->data_type), (int)tensor->data_type);
    SMG_TRY(read_shape(model, tensor, t));
    SMG_TRY(read_elements(model, tensor, t));
    *out_tensor = t;
    return SMG_OK;
}
