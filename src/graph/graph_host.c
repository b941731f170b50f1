/* Elements of host arrays (constants, inputs) as doubles and back, for every element type. */
#include "graph/graph_private.h"

#include <math.h>

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

/* ---- planes ------------------------------------------------------------------------------------ */

typedef struct plane {
    smg_type type;
    const void *data;
    int rank;
    const int64_t *extent, *index; /* index -1: all along the axis */
} plane;

static double element_at(const plane *p, const int64_t *at) {
    int64_t flat = 0;
    for (int d = 0; d < p->rank; d++) flat = flat * p->extent[d] + at[d];
    return smg_host_get(p->type, p->data, flat);
}

/* Steps to the next place along the axes that vary; false after the last. */
static bool next_place(const plane *p, int64_t *at) {
    for (int d = p->rank - 1; d >= 0; d--) {
        if (p->index[d] >= 0) continue;
        if (++at[d] < p->extent[d]) return true;
        at[d] = 0;
    }
    return false;
}

bool smg_host_plane(smg_type type, const void *data, int rank, const int64_t *extent, const int64_t *index,
                    int64_t *out_first, int64_t *out_slope) {
    plane p = {type, data, rank, extent, index};
    int64_t at[SMG_MAX_RANK];
    for (int d = 0; d < rank; d++) at[d] = index[d] < 0 ? 0 : index[d];
    double first = element_at(&p, at);
    if (!(first >= -2147483648.0 && first <= 2147483647.0 && first <= floor(first))) return false;
    *out_first = (int64_t)first;
    for (int d = 0; d < rank; d++) {
        out_slope[d] = 0;
        if (index[d] >= 0 || extent[d] < 2) continue;
        at[d] = 1;
        double step = element_at(&p, at) - first;
        at[d] = 0;
        if (!(fabs(step) <= 2147483647.0 && step <= floor(step))) return false;
        out_slope[d] = (int64_t)step;
    }
    do {
        double wanted = first, found = element_at(&p, at);
        for (int d = 0; d < rank; d++)
            if (index[d] < 0) wanted += (double)(out_slope[d] * at[d]);
        if (wanted < found || wanted > found) return false;
    } while (next_place(&p, at));
    return true;
}
