// Bandwidth of shared memory: each lane reads 16 bytes beside those of its neighbours, four times a step.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint steps; uint unused0; uint unused1; };
layout(std430, binding = 0) buffer Out { uvec4 results[]; };

const uint COUNT = 512; // a power of two; 8 KiB
shared uvec4 values[COUNT];

void main() {
    for (uint i = gl_LocalInvocationID.x; i < COUNT; i += gl_WorkGroupSize.x) values[i] = uvec4(i * 0x9e3779b9u);
    barrier();
    uvec4 sum0 = uvec4(0), sum1 = uvec4(0), sum2 = uvec4(0), sum3 = uvec4(0);
    uint at = gl_LocalInvocationID.x;
    for (uint i = 0; i < steps; i++) {
        sum0 ^= values[at & (COUNT - 1)];
        sum1 ^= values[(at + 64) & (COUNT - 1)];
        sum2 ^= values[(at + 128) & (COUNT - 1)];
        sum3 ^= values[(at + 192) & (COUNT - 1)];
        at += 256 + (i & 1);
    }
    const uvec4 sum = sum0 ^ sum1 ^ sum2 ^ sum3;
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x736d6721u) results[0] = sum;
}
