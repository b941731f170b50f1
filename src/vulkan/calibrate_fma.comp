// Rate of 32-bit multiply-adds: 64 a step in 16 independent chains.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint steps; float scale; float offset; };
layout(std430, binding = 0) buffer Out { uvec4 results[]; };

#define STEP x0 = x0 * scale + offset; x1 = x1 * scale + offset; \
             x2 = x2 * scale + offset; x3 = x3 * scale + offset;

void main() {
    vec4 x0 = vec4(gl_GlobalInvocationID.x), x1 = x0 + 1.0, x2 = x0 + 2.0, x3 = x0 + 3.0;
    for (uint i = 0; i < steps; i++) { STEP STEP STEP STEP }
    const vec4 sum = x0 + x1 + x2 + x3;
    if (sum.x + sum.y + sum.z + sum.w == 0.1234567) results[0] = uvec4(1);
}
