/* Shape arithmetic, part 2: one element. Fractions of sizes under the operators that exporters use on
 * shapes; each either gives an expression that holds for every size, or says that there is none. */
#include <math.h>

#include "onnx/onnx_private.h"

/* Numbers beyond this are sentinels ("to the end"), not sizes: nothing is computed with them. */
#define LARGEST (INT64_C(1) << 40)

static bool is_sentinel(smg_onnx_build *b, smg_size size) {
    int64_t value = 0;
    return smg_size_is_const(b->sizes, size, &value) && (value > LARGEST || value < -LARGEST);
}

/* Lists the extents of the graph's nodes that are no numbers. A value of the graph has elements, so each is at
 * least 1, which its form alone may not say: floor(samples/10)-1. */
static void look_at_extents(smg_onnx_build *b) {
    for (; b->looked_at < b->graph->nodes.count; b->looked_at++) {
        const smg_node *node = &b->graph->nodes.items[b->looked_at];
        for (int i = 0; i < node->rank; i++) {
            bool known = node->dims[i] < 0 || smg_size_is_const(b->sizes, node->dims[i], NULL);
            for (int k = 0; k < b->extents.count && !known; k++) known = b->extents.items[k] == node->dims[i];
            if (known) continue;
            smg_size *slot = SMG_ARRAY_PUSH(b->arena, &b->extents);
            if (slot)
                *slot = node->dims[i];
            else
                b->failed = true;
        }
    }
}

/* The nearest bound that follows where the size is an extent and a number, or a number less an extent. */
static bool bound_by_extent(smg_onnx_build *b, smg_size size, bool less, int64_t *out_bound) {
    int64_t rest = 0;
    bool found = false;
    look_at_extents(b);
    for (int i = 0; i < b->extents.count; i++) {
        smg_size extent = b->extents.items[i];
        smg_size gap = less ? smg_size_add(b->sizes, size, extent) : smg_size_sub(b->sizes, size, extent);
        if (gap < 0) b->failed = true;
        if (!smg_size_is_const(b->sizes, gap, &rest)) continue;
        int64_t bound = less ? rest - 1 : rest + 1;
        if (!found || (less ? bound < *out_bound : bound > *out_bound)) *out_bound = bound;
        found = true;
    }
    return found;
}

static int64_t low_of(smg_onnx_build *b, smg_size size) {
    int64_t low = 0, high = 0, known = 0;
    smg_size_bounds(b->sizes, size, &low, &high);
    if (low < 1 && low < high && bound_by_extent(b, size, false, &known) && known > low) low = known;
    return low;
}

static int64_t high_of(smg_onnx_build *b, smg_size size) {
    int64_t low = 0, high = 0, known = 0;
    smg_size_bounds(b->sizes, size, &low, &high);
    if (high > -1 && low < high && bound_by_extent(b, size, true, &known) && known < high) high = known;
    return high;
}

static smg_size negative(smg_onnx_build *b, smg_size x) {
    return smg_size_sub(b->sizes, smg_onnx_int(b, 0), x);
}

/* num / den in lowest terms as far as that can be seen. den is positive. */
static bool reduced(smg_onnx_build *b, smg_size num, smg_size den, onnx_number *out) {
    int64_t x = 0, y = 0;
    smg_size quotient;
    if (num < 0 || den < 0) {
        b->failed = true;
        return false;
    }
    *out = (onnx_number){num, den};
    if (smg_onnx_is_const(b, den, 1)) return true;
    if (smg_size_divide_exact(b->sizes, num, den, &quotient)) {
        *out = (onnx_number){quotient, smg_onnx_int(b, 1)};
    } else if (smg_size_is_const(b->sizes, num, &x) && smg_size_is_const(b->sizes, den, &y)) {
        int64_t common = smg_greatest_divisor(x, y);
        *out = (onnx_number){smg_onnx_int(b, x / common), smg_onnx_int(b, y / common)};
    }
    return true;
}

static bool whole(smg_onnx_build *b, smg_size value, onnx_number *out) {
    *out = (onnx_number){value, smg_onnx_int(b, 1)};
    if (value < 0 || out->den < 0) b->failed = true;
    return !b->failed;
}

static bool truth(smg_onnx_build *b, bool value, onnx_number *out) {
    return whole(b, smg_onnx_int(b, value), out);
}

/* x - y over a common denominator; only the sign counts. */
static smg_size difference(smg_onnx_build *b, onnx_number x, onnx_number y) {
    if (x.den == y.den) return smg_size_sub(b->sizes, x.num, y.num);
    return smg_size_sub(b->sizes, smg_size_mul(b->sizes, x.num, y.den), smg_size_mul(b->sizes, y.num, x.den));
}

static bool add(smg_onnx_build *b, onnx_number x, onnx_number y, bool minus, onnx_number *out) {
    if (minus) y.num = negative(b, y.num);
    if (x.den == y.den) return reduced(b, smg_size_add(b->sizes, x.num, y.num), x.den, out);
    smg_size num = smg_size_add(b->sizes, smg_size_mul(b->sizes, x.num, y.den), smg_size_mul(b->sizes, y.num, x.den));
    return reduced(b, num, smg_size_mul(b->sizes, x.den, y.den), out);
}

static bool multiply(smg_onnx_build *b, onnx_number x, onnx_number y, onnx_number *out) {
    return reduced(b, smg_size_mul(b->sizes, x.num, y.num), smg_size_mul(b->sizes, x.den, y.den), out);
}

static bool divide(smg_onnx_build *b, onnx_number x, onnx_number y, onnx_number *out) {
    if (high_of(b, y.num) < 0) {
        x.num = negative(b, x.num);
        y.num = negative(b, y.num);
    }
    if (low_of(b, y.num) < 1) return false; /* may be 0, or of either sign */
    return multiply(b, x, (onnx_number){y.den, y.num}, out);
}

/* Towards zero, as integer division is. A floor that is at least 0, because an extent says so, is of a number
 * that is. */
static bool truncated(smg_onnx_build *b, onnx_number x, onnx_number *out) {
    smg_size floor = smg_size_div(b->sizes, x.num, x.den);
    if (low_of(b, x.num) >= 0 || (floor >= 0 && low_of(b, floor) >= 0)) return whole(b, floor, out);
    if (high_of(b, x.num) > 0) return false;
    smg_size size = smg_size_div(b->sizes, negative(b, x.num), x.den);
    return whole(b, negative(b, size), out);
}

/* The remainder has the divisor's sign (Mod), or the dividend's (fmod). */
static bool remainder_of(smg_onnx_build *b, onnx_number x, onnx_number y, bool of_dividend, onnx_number *out) {
    bool integers = smg_onnx_is_const(b, x.den, 1) && smg_onnx_is_const(b, y.den, 1);
    if (!integers || low_of(b, y.num) < 1) return false;
    if (of_dividend && low_of(b, x.num) < 0) return false;
    return whole(b, smg_size_mod(b->sizes, x.num, y.num), out);
}

static bool extreme(smg_onnx_build *b, onnx_number x, onnx_number y, bool max, onnx_number *out) {
    if (x.den != y.den) {
        smg_size gap = difference(b, x, y);
        if (low_of(b, gap) >= 0) *out = max ? x : y;
        if (high_of(b, gap) <= 0) *out = max ? y : x;
        return low_of(b, gap) >= 0 || high_of(b, gap) <= 0;
    }
    smg_size num = max ? smg_size_max(b->sizes, x.num, y.num) : smg_size_min(b->sizes, x.num, y.num);
    return reduced(b, num, x.den, out);
}

static bool root(smg_onnx_build *b, onnx_number x, onnx_number *out);

static bool power(smg_onnx_build *b, onnx_number x, onnx_number y, onnx_number *out) {
    int64_t exponent = 0;
    if (smg_onnx_is_const(b, y.num, 1) && smg_onnx_is_const(b, y.den, 2)) return root(b, x, out);
    if (!smg_onnx_number_is(b, y, &exponent) || exponent < 0 || exponent > 8) return false;
    *out = smg_onnx_number_of(b, 1);
    for (int64_t i = 0; i < exponent && !b->failed; i++)
        if (!multiply(b, *out, x, out)) return false;
    return !b->failed;
}

static bool compare(smg_onnx_build *b, onnx_arith op, onnx_number x, onnx_number y, onnx_number *out) {
    smg_size gap = difference(b, x, y);
    if (gap < 0) {
        b->failed = true;
        return false;
    }
    int64_t low = low_of(b, gap), high = high_of(b, gap);
    switch (op) {
    case ONNX_EQ:
        if (low == 0 && high == 0) return truth(b, true, out);
        return (low > 0 || high < 0) && truth(b, false, out);
    case ONNX_LT:
        if (high < 0) return truth(b, true, out);
        return low >= 0 && truth(b, false, out);
    default:
        if (high <= 0) return truth(b, true, out);
        return low > 0 && truth(b, false, out);
    }
}

static bool logic(smg_onnx_build *b, onnx_arith op, onnx_number x, onnx_number y, onnx_number *out) {
    int64_t p = 0, q = 0;
    if (!smg_onnx_number_is(b, x, &p) || !smg_onnx_number_is(b, y, &q)) return false;
    if (op == ONNX_AND) return truth(b, p != 0 && q != 0, out);
    if (op == ONNX_OR) return truth(b, p != 0 || q != 0, out);
    return truth(b, (p != 0) != (q != 0), out);
}

bool smg_onnx_arith(smg_onnx_build *b, onnx_arith op, bool integer, onnx_number x, onnx_number y, onnx_number *out) {
    onnx_number quotient;
    if (is_sentinel(b, x.num) || is_sentinel(b, y.num)) return false;
    if (is_sentinel(b, x.den) || is_sentinel(b, y.den)) return false;
    switch (op) {
    case ONNX_ADD: return add(b, x, y, false, out);
    case ONNX_SUB: return add(b, x, y, true, out);
    case ONNX_MUL: return multiply(b, x, y, out);
    case ONNX_DIV:
        if (!divide(b, x, y, &quotient)) return false;
        if (integer) return truncated(b, quotient, out);
        *out = quotient;
        return true;
    case ONNX_MOD: return remainder_of(b, x, y, false, out);
    case ONNX_FMOD: return remainder_of(b, x, y, true, out);
    case ONNX_MIN: return extreme(b, x, y, false, out);
    case ONNX_MAX: return extreme(b, x, y, true, out);
    case ONNX_POW: return power(b, x, y, out);
    case ONNX_EQ:
    case ONNX_LT:
    case ONNX_LE: return compare(b, op, x, y, out);
    case ONNX_AND:
    case ONNX_OR:
    case ONNX_XOR: return logic(b, op, x, y, out);
    }
    return false;
}

/* ---- one operand -------------------------------------------------------------------------------- */

static bool nearest(smg_onnx_build *b, onnx_number x, onnx_number *out) {
    int64_t num = 0, den = 0;
    if (smg_onnx_is_const(b, x.den, 1)) {
        *out = x;
        return true;
    }
    if (!smg_size_is_const(b->sizes, x.num, &num) || !smg_size_is_const(b->sizes, x.den, &den)) return false;
    return whole(b, smg_onnx_int(b, (int64_t)nearbyint((double)num / (double)den)), out);
}

static bool root(smg_onnx_build *b, onnx_number x, onnx_number *out) {
    int64_t num = 0, den = 0;
    if (!smg_size_is_const(b->sizes, x.num, &num) || !smg_size_is_const(b->sizes, x.den, &den)) return false;
    if (num < 0) return false;
    int64_t above = (int64_t)sqrt((double)num), below = (int64_t)sqrt((double)den);
    if (above * above != num || below * below != den) return false;
    *out = (onnx_number){smg_onnx_int(b, above), smg_onnx_int(b, below)};
    return true;
}

bool smg_onnx_round(smg_onnx_build *b, onnx_rounding op, onnx_number x, onnx_number *out) {
    int64_t low = low_of(b, x.num), high = high_of(b, x.num);
    if (is_sentinel(b, x.num) || is_sentinel(b, x.den)) return false;
    switch (op) {
    case ONNX_FLOOR: return whole(b, smg_size_div(b->sizes, x.num, x.den), out);
    case ONNX_CEIL: return whole(b, smg_size_ceil_div(b->sizes, x.num, x.den), out);
    case ONNX_TRUNC: return truncated(b, x, out);
    case ONNX_NEAREST: return nearest(b, x, out);
    case ONNX_NEG: return reduced(b, negative(b, x.num), x.den, out);
    case ONNX_ABS:
        if (low < 0 && high > 0) return false;
        return reduced(b, low >= 0 ? x.num : negative(b, x.num), x.den, out);
    case ONNX_SIGN:
        if (low == 0 && high == 0) return whole(b, smg_onnx_int(b, 0), out);
        if (low <= 0 && high >= 0) return false;
        return whole(b, smg_onnx_int(b, low > 0 ? 1 : -1), out);
    case ONNX_SQRT: return root(b, x, out);
    case ONNX_NOT:
    case ONNX_NONZERO: {
        bool zero = low == 0 && high == 0;
        if (!zero && low <= 0 && high >= 0) return false;
        return truth(b, op == ONNX_NOT ? zero : !zero, out);
    }
    }
    return false;
}
