/* bundle_convert.c: host elements to device elements and back: i64 and bool are 4-byte words on the device, f32 may be
 * 16 bits there. */
#include <math.h>

#include "bundle/bundle.h"

static bool as_floats(smg_storage storage) {
    return storage == SMG_STORE_F32_AS_F16 || storage == SMG_STORE_F32_AS_BF16;
}

static smg_status narrow_words(smg_context *ctx, const char *name, smg_storage storage, const uint8_t *data,
                               int64_t position, int64_t count, int32_t *out) {
    for (int64_t i = 0; i < count; i++) {
        if (storage == SMG_STORE_BOOL_AS_U32) {
            out[i] = data[position + i] != 0;
            continue;
        }
        int64_t value = 0;
        memcpy(&value, data + (position + i) * 8, sizeof(value));
        if (value < INT32_MIN || value > INT32_MAX) {
            return smg_fail(ctx, SMG_INVALID,
                            "'%s': element %lld is %lld, outside the 32 bits that devices compute with", name,
                            (long long)(position + i), (long long)value);
        }
        out[i] = (int32_t)value;
    }
    return SMG_OK;
}

static smg_status narrow_floats(smg_context *ctx, const char *name, smg_storage storage, const uint8_t *data,
                                int64_t position, int64_t count, uint16_t *out) {
    bool half = storage == SMG_STORE_F32_AS_F16;
    const uint16_t infinite = half ? smg_half_of((double)INFINITY) : smg_bf16_of((double)INFINITY);
    bool any = false;
    (half ? smg_halves_of : smg_bf16s_of)(data + position * 4, (size_t)count, out);
    for (int64_t i = 0; i < count; i++) any |= (out[i] & 0x7fff) == infinite;
    for (int64_t i = 0; any && i < count; i++) {
        float value = 0;
        memcpy(&value, data + (position + i) * 4, sizeof(value));
        if ((out[i] & 0x7fff) != infinite || isinf(value)) continue;
        return smg_fail(ctx, SMG_INVALID, "'%s': element %lld is %g, more than %s holds", name,
                        (long long)(position + i), (double)value, half ? "f16" : "bf16");
    }
    return SMG_OK;
}

smg_status smg_storage_narrow(smg_context *ctx, const char *name, smg_storage storage, const void *data,
                              int64_t position, int64_t count, void *out) {
    return as_floats(storage) ? narrow_floats(ctx, name, storage, data, position, count, out)
                              : narrow_words(ctx, name, storage, data, position, count, out);
}

void smg_storage_widen(smg_storage storage, const void *words, int64_t count, void *out) {
    const int32_t *integers = words;
    uint8_t *bytes = out;
    if (as_floats(storage)) {
        (storage == SMG_STORE_F32_AS_F16 ? smg_half_values : smg_bf16_values)(words, (size_t)count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (storage == SMG_STORE_BOOL_AS_U32) {
            bytes[i] = integers[i] != 0;
        } else {
            int64_t value = integers[i];
            memcpy(bytes + i * 8, &value, sizeof(value));
        }
    }
}
