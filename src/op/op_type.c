/* Element types: one table (SMG_TYPE_MAP in op.h), read by these functions. */
#include "op/op.h"

#include <math.h>

typedef struct type_row {
    const char *word;
    int64_t host_bytes;
    int64_t device_bytes;
    smg_kind kind;
} type_row;

static const type_row type_rows[SMG_TYPE_COUNT] = {
#define TYPE_ROW(id, word, host, device, kind) [SMG_TYPE_##id] = {word, host, device, SMG_KIND_##kind},
    SMG_TYPE_MAP(TYPE_ROW)
#undef TYPE_ROW
};

const char *smg_type_word(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].word : "?";
}

bool smg_type_find(const char *word, smg_type *out_type) {
    if (!word) return false;
    for (int i = 0; i < SMG_TYPE_COUNT; i++) {
        if (strcmp(type_rows[i].word, word) != 0) continue;
        *out_type = (smg_type)i;
        return true;
    }
    return false;
}

int64_t smg_type_host_bytes(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].host_bytes : 0;
}

int64_t smg_type_device_bytes(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].device_bytes : 0;
}

double smg_type_stored(smg_type type, double value) {
    switch (type) {
    case SMG_TYPE_F32: return (double)(float)value;
    case SMG_TYPE_F16: return smg_half_value(smg_half_of(value));
    case SMG_TYPE_BF16: return smg_bf16_value(smg_bf16_of(value));
    case SMG_TYPE_I32:
    case SMG_TYPE_I64:
    case SMG_TYPE_BOOL:
    case SMG_TYPE_COUNT: break;
    }
    return value;
}

double smg_type_limit(smg_type type) {
    if (type == SMG_TYPE_F16) return 65520.0;
    if (type == SMG_TYPE_BF16) return 0x1.ffp+127;
    return smg_type_kind(type) == SMG_KIND_FLOAT ? 0x1.ffffffp+127 : 0;
}

double smg_type_least(smg_type type) {
    if (type == SMG_TYPE_F16) return 0x1p-14;
    return smg_type_kind(type) == SMG_KIND_FLOAT ? 0x1p-126 : 0;
}

double smg_type_epsilon(smg_type type) {
    if (type == SMG_TYPE_F16) return 0x1p-11;
    if (type == SMG_TYPE_BF16) return 0x1p-8;
    return smg_type_kind(type) == SMG_KIND_FLOAT ? 0x1p-24 : 0;
}

smg_kind smg_type_kind(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].kind : SMG_KIND_FLOAT;
}

/* ---- elements of host arrays ----------------------------------------------------------------------- */

/* By memcpy: tensors inside files have any alignment. */
double smg_host_get(smg_type type, const void *data, int64_t index) {
    const uint8_t *at = (const uint8_t *)data + index * smg_type_host_bytes(type);
    uint16_t half;
    float single;
    int32_t small;
    int64_t large;
    switch (type) {
    case SMG_TYPE_F32: return memcpy(&single, at, sizeof single), (double)single;
    case SMG_TYPE_F16: return memcpy(&half, at, sizeof half), smg_half_value(half);
    case SMG_TYPE_BF16: return memcpy(&half, at, sizeof half), smg_bf16_value(half);
    case SMG_TYPE_I32: return memcpy(&small, at, sizeof small), (double)small;
    case SMG_TYPE_I64: return memcpy(&large, at, sizeof large), (double)large;
    case SMG_TYPE_BOOL: return *at ? 1.0 : 0.0;
    case SMG_TYPE_COUNT: break;
    }
    return 0.0;
}

static double clamp(double value, double low, double high) {
    if (!(value >= low)) return value < low ? low : 0.0;
    return value > high ? high : trunc(value);
}

void smg_host_set(smg_type type, void *data, int64_t index, double value) {
    switch (type) {
    case SMG_TYPE_F32: ((float *)data)[index] = (float)value; break;
    case SMG_TYPE_F16: ((uint16_t *)data)[index] = smg_half_of(value); break;
    case SMG_TYPE_BF16: ((uint16_t *)data)[index] = smg_bf16_of(value); break;
    case SMG_TYPE_I32: ((int32_t *)data)[index] = (int32_t)clamp(value, -2147483648.0, 2147483647.0); break;
    case SMG_TYPE_I64: ((int64_t *)data)[index] = (int64_t)clamp(value, -9.2e18, 9.2e18); break;
    case SMG_TYPE_BOOL: ((uint8_t *)data)[index] = (uint8_t)(value < 0.0 || value > 0.0); break;
    case SMG_TYPE_COUNT: break;
    }
}
