/* Element types of files: their words, sizes, and conversion to what the host computes with.
 *
 * File data is little-endian and may start at any byte (safetensors does not align), so every
 * element is put together from bytes; compilers turn that into plain loads where the machine allows.
 */
#include "array/npy.h"

static const struct {
    const char *word;
    size_t bytes;
} dtype_rows[SMG_IMPORT_DTYPE_COUNT] = {[SMG_IMPORT_DTYPE_NONE] = {"?", 0},
#define SMG_IMPORT_DTYPE_ROW(name, word, descr, bytes) [SMG_IMPORT_##name] = {word, bytes},
                                        SMG_IMPORT_DTYPE_MAP(SMG_IMPORT_DTYPE_ROW)
#undef SMG_IMPORT_DTYPE_ROW
};

static bool dtype_valid(smg_import_dtype dtype) {
    return (int)dtype > (int)SMG_IMPORT_DTYPE_NONE && (int)dtype < (int)SMG_IMPORT_DTYPE_COUNT;
}

const char *smg_import_dtype_word(smg_import_dtype dtype) {
    return dtype_valid(dtype) ? dtype_rows[dtype].word : "?";
}

size_t smg_import_dtype_bytes(smg_import_dtype dtype) {
    return dtype_valid(dtype) ? dtype_rows[dtype].bytes : 0;
}

static uint32_t load_u16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t load_u32(const uint8_t *p) {
    return load_u16(p) | load_u16(p + 2) << 16;
}

static uint64_t load_u64(const uint8_t *p) {
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Two's complement without relying on how the compiler narrows. */
static int64_t signed_of(uint64_t bits, int width) {
    uint64_t sign = UINT64_C(1) << (width - 1);
    if ((bits & sign) == 0) return (int64_t)bits;
    uint64_t magnitude = (~bits & (sign - 1)); /* -(value + 1) */
    return -(int64_t)magnitude - 1;
}

static int64_t load_integer(smg_import_dtype dtype, const uint8_t *p) {
    switch (dtype) {
    case SMG_IMPORT_I64: return signed_of(load_u64(p), 64);
    case SMG_IMPORT_I32: return signed_of(load_u32(p), 32);
    case SMG_IMPORT_I16: return signed_of(load_u16(p), 16);
    case SMG_IMPORT_I8: return signed_of(*p, 8);
    case SMG_IMPORT_BOOL: return *p != 0;
    default: return *p;
    }
}

smg_status smg_import_to_f32(smg_context *ctx, smg_import_dtype dtype, const uint8_t *data, int64_t count,
                             float *out_values) {
    if (!dtype_valid(dtype) || count < 0) {
        return smg_fail(ctx, SMG_INVALID, "cannot convert %lld elements of type number %d to F32", (long long)count,
                        (int)dtype);
    }
    size_t step = dtype_rows[dtype].bytes;
    for (int64_t i = 0; i < count; i++, data += step) {
        switch (dtype) {
        case SMG_IMPORT_F32: out_values[i] = float_of_bits(load_u32(data)); break;
        case SMG_IMPORT_F16: out_values[i] = (float)smg_half_value((uint16_t)load_u16(data)); break;
        case SMG_IMPORT_BF16: out_values[i] = float_of_bits(load_u16(data) << 16); break;
        case SMG_IMPORT_F64: out_values[i] = (float)double_of_bits(load_u64(data)); break;
        default: out_values[i] = (float)load_integer(dtype, data); break;
        }
    }
    return SMG_OK;
}

smg_status smg_import_to_i64(smg_context *ctx, smg_import_dtype dtype, const uint8_t *data, int64_t count,
                             int64_t *out_values) {
    if (!dtype_valid(dtype) || count < 0) {
        return smg_fail(ctx, SMG_INVALID, "cannot convert %lld elements of type number %d to I64", (long long)count,
                        (int)dtype);
    }
    if (dtype == SMG_IMPORT_F32 || dtype == SMG_IMPORT_F16 || dtype == SMG_IMPORT_BF16 || dtype == SMG_IMPORT_F64) {
        return smg_fail(ctx, SMG_UNSUPPORTED, "cannot convert elements of type %s to I64",
                        smg_import_dtype_word(dtype));
    }
    size_t step = dtype_rows[dtype].bytes;
    for (int64_t i = 0; i < count; i++, data += step) out_values[i] = load_integer(dtype, data);
    return SMG_OK;
}
