// 16-bit floats, alone and in pairs, on numbers whose results are exact, and not 0, whose sign is not everywhere kept.
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x_id = 0) in;
layout(std430, binding = 0) writeonly buffer Words { uint words[]; };

void main() {
    const uint i = gl_LocalInvocationIndex;
    const float16_t x = float16_t(i + 1), y = float16_t(0.25) * x - float16_t(3.125);
    const f16vec2 pair = f16vec2(x, y) * f16vec2(y, x) + f16vec2(x, -x);
    words[2 * i] = packFloat2x16(pair);
    words[2 * i + 1] = packFloat2x16(f16vec2(min(x, y), max(x, y)));
}
