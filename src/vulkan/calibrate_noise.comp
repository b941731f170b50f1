// Fills the set with noise: hardware that compresses memory would make constant data look fast.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint count; uint unused0; uint unused1; };
layout(std430, binding = 0) buffer Out { uvec4 values[]; };

uint mix32(uint x) {
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 12;
    x *= 0x297a2d39u;
    return x ^ (x >> 15);
}

void main() {
    const uint threads = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += threads)
        values[i] = uvec4(mix32(4 * i), mix32(4 * i + 1), mix32(4 * i + 2), mix32(4 * i + 3));
}
