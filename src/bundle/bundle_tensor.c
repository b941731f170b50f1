/* bundle_tensor.c: arrays for inputs: what is wrong with one, integers of the other width, lengths of rows. */
#include "bundle/interface.h"

smg_status smg_port_check(smg_context *ctx, const smg_port *port, const smg_tensor *tensor, smg_storage *out_type,
                          int64_t *out_elements) {
    if (!smg_tensor_is_given(tensor)) return smg_fail(ctx, SMG_INVALID, "input '%s' has no data", port->name);
    if (tensor->rank < 0 || tensor->rank > SMG_TENSOR_RANK) {
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %d axes; 0 to %d are possible", port->name, tensor->rank,
                        SMG_TENSOR_RANK);
    }
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] < 0) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d is %lld", port->name, d, (long long)tensor->dims[d]);
        }
        if (!smg_mul_i64(count, tensor->dims[d], &count)) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': %lld x %lld elements or more", port->name, (long long)count,
                            (long long)tensor->dims[d]);
        }
    }
    *out_type = port->type;
    if (tensor->type != NULL && !smg_storage_find(tensor->type, out_type)) {
        return smg_fail(ctx, SMG_INVALID, "input '%s' has unknown type '%s'", port->name, tensor->type);
    }
    int64_t needed = 0;
    if (!smg_mul_i64(count, smg_storage_host_bytes(*out_type), &needed) ||
        (tensor->on == NULL && tensor->bytes != 0 && tensor->bytes < (size_t)needed)) {
        return smg_fail(ctx, SMG_INVALID, "input '%s': %lld elements of %s, its memory has %zu bytes", port->name,
                        (long long)count, smg_storage_word(*out_type), tensor->bytes);
    }
    *out_elements = count;
    return SMG_OK;
}

smg_status smg_port_shape(smg_context *ctx, const smg_interface *interface, const smg_port *port, const int64_t *values,
                          smg_tensor *out, int64_t *out_elements) {
    int64_t count = 1;
    *out = (smg_tensor){.name = port->name, .type = smg_storage_word(port->type), .rank = port->rank};
    for (int d = 0; d < port->rank; d++) {
        if (!smg_size_eval(interface->sizes, port->dims[d], values, &out->dims[d]) || out->dims[d] < 0) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d has no valid size", port->name, d);
        }
        if (!smg_mul_i64(count, out->dims[d], &count) || count > INT64_MAX / 16) {
            return smg_fail(ctx, SMG_INVALID, "input '%s' has too many elements at these sizes", port->name);
        }
    }
    *out_elements = count;
    return SMG_OK;
}

/* ---- elements --------------------------------------------------------------------------------------- */

/* Of integers and bools. */
static int64_t get(smg_storage type, const void *data, int64_t index) {
    int32_t narrow = 0;
    int64_t wide = 0;
    if (type == SMG_STORE_BOOL_AS_U32) return ((const uint8_t *)data)[index] != 0;
    if (type == SMG_STORE_I64_AS_I32) {
        memcpy(&wide, (const uint8_t *)data + index * 8, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)data + index * 4, sizeof(narrow));
    return narrow;
}

static void put(smg_storage type, void *data, int64_t index, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (type == SMG_STORE_BOOL_AS_U32)
        ((uint8_t *)data)[index] = value != 0;
    else if (type == SMG_STORE_I64_AS_I32)
        memcpy((uint8_t *)data + index * 8, &value, sizeof(value));
    else
        memcpy((uint8_t *)data + index * 4, &narrow, sizeof(narrow));
}

void smg_port_fill(smg_storage type, bool ones, int64_t count, void *out) {
    static const float one = 1;
    static const uint16_t half = 0x3c00, bf16 = 0x3f80;
    size_t bytes = (size_t)smg_storage_host_bytes(type);
    if (!ones) memset(out, 0, (size_t)count * bytes);
    for (int64_t i = 0; ones && i < count; i++) {
        uint8_t *at = (uint8_t *)out + (size_t)i * bytes;
        switch (type) {
        case SMG_STORE_F32: memcpy(at, &one, bytes); break;
        case SMG_STORE_F16: memcpy(at, &half, bytes); break;
        case SMG_STORE_BF16: memcpy(at, &bf16, bytes); break;
        default: put(type, out, i, 1);
        }
    }
}

smg_status smg_port_convert(smg_context *ctx, const smg_port *port, const void *from, int64_t count, void *out) {
    smg_storage other = port->type == SMG_STORE_I32 ? SMG_STORE_I64_AS_I32 : SMG_STORE_I32;
    for (int64_t i = 0; i < count; i++) {
        int64_t value = get(other, from, i);
        if (port->type == SMG_STORE_I32 && (value < INT32_MIN || value > INT32_MAX)) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': element %lld is %lld, outside i32", port->name, (long long)i,
                            (long long)value);
        }
        put(port->type, out, i, value);
    }
    return SMG_OK;
}

static smg_storage type_of(const smg_port *port, const smg_tensor *tensor) {
    smg_storage type = port->type;
    if (tensor->type != NULL) smg_storage_find(tensor->type, &type);
    return type;
}

static int64_t elements_of(const smg_tensor *tensor) {
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; d++) count *= tensor->dims[d];
    return count;
}

bool smg_port_outside(const smg_interface *interface, const smg_port *port, const int64_t *values,
                      const smg_tensor *tensor, int64_t *out_element) {
    smg_storage type = type_of(port, tensor);
    int64_t rows = 0, count = elements_of(tensor);
    if (port->below == SMG_SIZE_ZERO || !smg_size_eval(interface->sizes, port->below, values, &rows)) return false;
    for (int64_t i = 0; smg_storage_is_integer(type) && i < count; i++) {
        int64_t value = get(type, tensor->data, i);
        if (value >= 0 && value < rows) continue;
        *out_element = i;
        return true;
    }
    return false;
}

/* ---- lengths of rows -------------------------------------------------------------------------------- */

/* One number a row, or an element for each place in it? */
static bool is_mask(const smg_interface *interface, const smg_port *port) {
    bool mask = port->rank > 1 && port->type == SMG_STORE_BOOL_AS_U32;
    for (int d = 1; d < port->rank; d++) mask = mask || !smg_size_is_one(interface->sizes, port->dims[d]);
    return mask;
}

/* most: that a row has, or ever has. */
static smg_status check_rows(smg_context *ctx, const smg_port *port, bool mask, smg_lengths lengths, int64_t most) {
    for (int64_t r = 0; r < lengths.count; r++) {
        int64_t length = lengths.rows[r];
        if (length < 0)
            return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: length %lld is below 0", port->name, (long long)r,
                            (long long)length);
        if (mask && length > most)
            return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: length %lld, a row has %lld", port->name,
                            (long long)r, (long long)length, (long long)most);
    }
    return SMG_OK;
}

smg_status smg_lengths_check(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                             smg_lengths lengths) {
    int64_t least = 0, most = 0;
    if ((!smg_storage_is_integer(port->type) && port->type != SMG_STORE_BOOL_AS_U32) || port->rank == 0)
        return smg_fail(ctx, SMG_UNSUPPORTED, "input '%s' is %s: lengths are given to rows of integers or bools",
                        port->name, smg_storage_word(port->type));
    smg_size_bounds(interface->sizes, port->dims[port->rank - 1], &least, &most);
    return check_rows(ctx, port, is_mask(interface, port), lengths, most);
}

/* Of an array at its sizes; *out_most: elements of a row, all of which lie along the last axis. */
static smg_status check_array(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                              smg_lengths lengths, const smg_tensor *t, int64_t *out_most) {
    SMG_TRY(smg_lengths_check(ctx, interface, port, lengths));
    int64_t rows = t->dims[0], elements = elements_of(t);
    bool mask = is_mask(interface, port);
    *out_most = mask ? t->dims[t->rank - 1] : 1;
    if (elements != rows * *out_most)
        return smg_fail(ctx, SMG_UNSUPPORTED, "input '%s' has %lld elements for %lld rows of %lld", port->name,
                        (long long)elements, (long long)rows, (long long)*out_most);
    if (lengths.count != rows)
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %lld rows, %lld lengths are given", port->name,
                        (long long)rows, (long long)lengths.count);
    return check_rows(ctx, port, mask, lengths, *out_most);
}

smg_status smg_lengths_put(smg_context *ctx, const smg_interface *interface, const smg_port *port, smg_lengths lengths,
                           smg_tensor *t) {
    int64_t most = 0;
    SMG_TRY(check_array(ctx, interface, port, lengths, t, &most));
    bool mask = is_mask(interface, port);
    for (int64_t r = 0; r < lengths.count; r++) {
        for (int64_t i = 0; mask && i < most; i++) put(port->type, t->data, r * most + i, i < lengths.rows[r]);
        if (!mask) put(port->type, t->data, r, lengths.rows[r]);
    }
    return SMG_OK;
}

smg_status smg_lengths_compare(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                               smg_lengths lengths, const smg_tensor *t) {
    int64_t most = 0;
    SMG_TRY(check_array(ctx, interface, port, lengths, t, &most));
    bool mask = is_mask(interface, port);
    smg_storage type = type_of(port, t);
    for (int64_t at = 0; at < lengths.count * most; at++) {
        int64_t row = at / most, length = lengths.rows[row], given = get(type, t->data, at);
        bool same = mask ? given == (at % most < length) : given == length;
        if (same) continue;
        return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: element %lld is %lld, and the row's length is %lld",
                        port->name, (long long)row, (long long)(at % most), (long long)given, (long long)length);
    }
    return SMG_OK;
}
