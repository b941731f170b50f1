/* Floats of 16 bits, as files and buffers have them: to nearest, ties to even, in one step from double. By bits: a
 * model's weights go through here when it is opened. */
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
