/* Floats of 16 bits, as files and buffers have them: to nearest, ties to even, in one step from double. By bits: a
 * model's weights go through here when it is opened, and the arrays of its runs, whose loops are without branches. */
#include <math.h>

#include "base/base.h"

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 2047 };

typedef struct narrow_form {
    int fraction; /* bits */
    int bias;
} narrow_form;

static const narrow_form half_form = {10, 15}, bf16_form = {7, 127};

static uint16_t narrow(narrow_form form, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint64_t sign = bits >> 63 << 15, fraction = bits & ((UINT64_C(1) << DOUBLE_FRACTION) - 1);
    int exponent = (int)(bits >> DOUBLE_FRACTION & DOUBLE_SPECIAL);
    uint64_t infinite = (uint64_t)(2 * form.bias + 1) << form.fraction;
    if (exponent == DOUBLE_SPECIAL && fraction != 0)
        return (uint16_t)(sign | infinite | UINT64_C(1) << (form.fraction - 1));
    int power = exponent - DOUBLE_BIAS, lost = DOUBLE_FRACTION - form.fraction;
    if (power > form.bias) return (uint16_t)(sign | infinite);
    uint64_t base = 0;
    if (power > -form.bias)
        base = (uint64_t)(power + form.bias - 1) << form.fraction; /* the leading 1 adds one to the exponent */
    else
        lost += 1 - form.bias - power; /* subnormal: fewer bits are left */
    if (lost > DOUBLE_FRACTION + 1) return (uint16_t)sign;
    uint64_t whole = fraction | UINT64_C(1) << DOUBLE_FRACTION;
    uint64_t rounded = (whole + (UINT64_C(1) << (lost - 1)) - 1 + (whole >> lost & 1)) >> lost;
    return (uint16_t)(sign | (base + rounded));
}

static double widen(narrow_form form, uint16_t bits) {
    int exponent = (bits & 0x7fff) >> form.fraction, fraction = bits & ((1 << form.fraction) - 1);
    uint64_t wide = (uint64_t)(exponent - form.bias + DOUBLE_BIAS) << DOUBLE_FRACTION;
    double value;
    wide |= (uint64_t)fraction << (DOUBLE_FRACTION - form.fraction);
    memcpy(&value, &wide, sizeof(value));
    if (exponent == 0) value = ldexp(fraction, 1 - form.bias - form.fraction);
    if (exponent == 2 * form.bias + 1) value = fraction != 0 ? (double)NAN : (double)INFINITY;
    return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t smg_half_of(double value) {
    return narrow(half_form, value);
}

double smg_half_value(uint16_t half) {
    return widen(half_form, half);
}

uint16_t smg_bf16_of(double value) {
    return narrow(bf16_form, value);
}

double smg_bf16_value(uint16_t bf16) {
    return widen(bf16_form, bf16);
}

/* ---- arrays of f32 ------------------------------------------------------------------------------ */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t rounded(uint32_t bits, int lost) {
    return (bits + (UINT32_C(1) << (lost - 1)) - 1 + (bits >> lost & 1)) >> lost;
}

/* Without a branch, which would keep the loop from being one of vectors. */
static uint32_t choose(bool first, uint32_t a, uint32_t b) {
    return b ^ ((a ^ b) & (0 - (uint32_t)first));
}

static uint16_t half_of_bits(uint32_t bits) {
    const uint32_t infinity = 0x7f800000, least_normal = 0x38800000, beyond = 0x47800000, half = 0x3f000000;
    uint32_t size = bits & 0x7fffffff;
    uint32_t small = choose(size < least_normal, size, 0);
    uint32_t finite = choose(size < least_normal, bits_of(float_of(small) + 0.5f) - half, /* 0.5 ends where they do */
                             rounded(size, 13) - (112u << 10));
    uint32_t large = choose(size > infinity, 0x7e00, 0x7c00);
    return (uint16_t)((bits >> 16 & 0x8000) | choose(size < beyond, finite, large));
}

static uint32_t bits_of_half(uint16_t half) {
    uint32_t size = half & 0x7fffu;
    uint32_t finite =
        choose(size < 0x400, bits_of((float)(int32_t)(size & 0x3ff) * 0x1p-24f), (size << 13) + (112u << 23));
    uint32_t special = choose(size > 0x7c00, 0x7fc00000 | size << 13, 0x7f800000);
    return (uint32_t)(half & 0x8000) << 16 | choose(size < 0x7c00, finite, special);
}

static uint16_t bf16_of_bits(uint32_t bits) {
    uint32_t none = (bits >> 16 & 0x8000) | 0x7fc0;
    return (uint16_t)choose((bits & 0x7fffffff) > 0x7f800000, none, rounded(bits, 16));
}

/* One loop for each, so that it is one of vectors. */
#define NARROW(function, of_bits)                                                                                      \
    void function(const void *floats, size_t count, uint16_t *out) {                                                   \
        const uint8_t *from = floats;                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint32_t bits;                                                                                             \
            memcpy(&bits, from + i * sizeof(bits), sizeof(bits));                                                      \
            out[i] = of_bits(bits);                                                                                    \
        }                                                                                                              \
    }
NARROW(smg_halves_of, half_of_bits)
NARROW(smg_bf16s_of, bf16_of_bits)
#undef NARROW

#define WIDEN(function, to_bits)                                                                                       \
    void function(const uint16_t *words, size_t count, void *out_floats) {                                             \
        uint8_t *to = out_floats;                                                                                      \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint32_t bits = to_bits(words[i]);                                                                         \
            memcpy(to + i * sizeof(bits), &bits, sizeof(bits));                                                        \
        }                                                                                                              \
    }
#define BF16_BITS(word) (uint32_t)(word) << 16
WIDEN(smg_half_values, bits_of_half)
WIDEN(smg_bf16_values, BF16_BITS)
#undef BF16_BITS
#undef WIDEN
