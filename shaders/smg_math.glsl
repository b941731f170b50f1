// smg_math.glsl: functions that the scalar primitives of op/prim.def name in generated kernels.
// Every "//@ name" line opens a section; a kernel gets the sections whose name it calls.

//@ smg_erf
// Within 1 ulp of erf for 32-bit floats: odd polynomial near 0, 1 - exp(polynomial) beyond. Lanes of a subgroup seldom
// agree on one of the two, so both are computed and no lane waits at a branch.
float smg_erf(float x)
{
    float t = abs(x) > 4.0 ? 4.0 : abs(x); // min() may lose a NaN
    float s = t * t;
    float r = fma(-1.72853470e-5, t, 3.83197126e-4);
    float u = fma(-3.88396438e-3, t, 2.42546219e-2);
    r = fma(r, s, u);
    r = fma(r, t, -1.06777877e-1);
    r = fma(r, t, -6.34846687e-1);
    r = fma(r, t, -1.28717512e-1);
    r = fma(r, t, -t);
    float far = 1.0 - exp(r);
    far = x < 0.0 ? -far : far;
    r = -5.96761703e-4;
    r = fma(r, s, 4.99119423e-3);
    r = fma(r, s, -2.67681349e-2);
    r = fma(r, s, 1.12819925e-1);
    r = fma(r, s, -3.76125336e-1);
    r = fma(r, s, 1.28379166e-1);
    float near = fma(r, x, x);
    return t > 0.927734375 ? far : near;
}

//@ smg_normcdf
// (1 + erf(x / sqrt(2))) / 2, below 0 as 2^polynomial, above as 1 minus that: one function for all x. Off by 6e-8 at
// most, below 0 by 1e-6 of the value (by 6e-6 from -3 to -6, too near 0 beyond); the polynomial falls without end.
float smg_normcdf(float x)
{
    float t = abs(x);
    float r = fma(-1.96224956e-8, t, 6.23760855e-7);
    r = fma(r, t, -8.46750390e-6);
    r = fma(r, t, 6.20962310e-5);
    r = fma(r, t, -2.31336657e-4);
    r = fma(r, t, -9.66762018e-5);
    r = fma(r, t, 7.05853384e-3);
    r = fma(r, t, -5.25102206e-2);
    r = fma(r, t, -4.59201336e-1);
    r = fma(r, t, -1.15110600);
    float below = exp2(fma(r, t, -1.0));
    return x < 0.0 ? below : 1.0 - below;
}

//@ smg_tanh
// Odd polynomial near 0; beyond, 1 - 2 / (1 + exp(2 x)) with x clamped where tanh is 1. Both, as in smg_erf.
float smg_tanh(float x)
{
    float t = abs(x);
    float far = 1.0 - 2.0 / (1.0 + exp(2.0 * min(t, 12.0)));
    far = x < 0.0 ? -far : far;
    float s = x * x;
    float r = 1.57394409e-2;
    r = fma(r, s, -5.23025580e-2);
    r = fma(r, s, 1.33152470e-1);
    r = fma(r, s, -3.33327681e-1);
    float near = fma(r * s, x, x);
    return t > 0.55 ? far : near;
}

//@ smg_pow
// Small integer exponents by multiplication (exact sign, good precision), 0 and negative bases as in C.
float smg_pow(float x, float y)
{
    bool whole = y == floor(y);
    if (whole && abs(y) <= 16.0) {
        float square = x;
        float product = 1.0;
        int count = int(abs(y));
        for (int bit = 0; bit < 5; ++bit) {
            if ((count & (1 << bit)) != 0) product *= square;
            square *= square;
        }
        return y < 0.0 ? 1.0 / product : product;
    }
    if (x == 0.0) return y > 0.0 ? 0.0 : uintBitsToFloat(0x7f800000u);
    float r = pow(abs(x), y);
    if (x < 0.0) {
        if (!whole) return uintBitsToFloat(0x7fc00000u);
        if (mod(abs(y), 2.0) == 1.0) r = -r;
    }
    return r;
}

//@ smg_mod
// The sign of the divisor, as floor division has it.
float smg_mod(float x, float y)
{
    return x - y * floor(x / y);
}
int smg_mod(int x, int y)
{
    int r = x - (x / y) * y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

//@ smg_floor_div
int smg_floor_div(int x, int y)
{
    int q = x / y;
    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

//@ smg_max
// NaN wins, where max() returns whichever operand it likes.
float smg_max(float x, float y)
{
    return x > y || (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u ? x : y;
}
int smg_max(int x, int y)
{
    return max(x, y);
}

//@ smg_min
float smg_min(float x, float y)
{
    return x < y || (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u ? x : y;
}
int smg_min(int x, int y)
{
    return min(x, y);
}

//@ smg_at_least
// The larger of x and a literal. No comparison holds of a NaN, so x stays one on devices that preserve it.
float smg_at_least(float x, float literal)
{
    return x < literal ? literal : x;
}

//@ smg_at_most
float smg_at_most(float x, float literal)
{
    return x > literal ? literal : x;
}

//@ smg_int
// Towards 0; what is too large becomes the nearest there is, NaN 0. By its bits, for drivers whose own conversion takes
// two branches for each lane.
int smg_int(float x)
{
    uint bits = floatBitsToUint(x), sign = bits >> 31, digits = (bits & 0x7fffffu) | 0x800000u;
    int left = int((bits >> 23) & 0xffu) - 150;
    uint size = mix(digits << (left & 7), digits >> min(-left, 31), left < 0);
    size = mix(size, 0x7fffffffu + sign, left > 7);
    size = mix(size, 0u, (bits & 0x7fffffffu) > 0x7f800000u);
    return int((size ^ (0u - sign)) + sign);
}

//@ smg_isnan
// By bits: drivers may assume that isnan() is false.
bool smg_isnan(float x)
{
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

//@ smg_bf16
// The upper half of a 32-bit float, to nearest, ties to even; a NaN stays one. No branch: not all drivers like one.
uint smg_bf16(float x)
{
    uint bits = floatBitsToUint(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return mix(rounded, (bits >> 16) | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}

//@ smg_half
// A 32-bit float as the bits of 16, to nearest, ties to even, for drivers that take four branches for that. Below the
// normal numbers of 16 bits adding 0.5 rounds, whose last bit is theirs; from 65520 on infinite; a NaN stays one.
uint smg_half(float x)
{
    uint sign = floatBitsToUint(x) & 0x80000000u, bits = floatBitsToUint(x) & 0x7fffffffu;
    uint normal = (bits + 0xc8000fffu + ((bits >> 13) & 1u)) >> 13;
    uint small = floatBitsToUint(uintBitsToFloat(bits) + 0.5) - 0x3f000000u;
    uint large = mix(0x7c00u, 0x7e00u, bits > 0x7f800000u);
    return (sign >> 16) | mix(mix(normal, small, bits < 0x38800000u), large, bits >= 0x477ff000u);
}
