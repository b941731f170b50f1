// Read bandwidth: `passes` times over a set of `count` uvec4, each pass shifted so that what one core
// reads again was last read by another. The sum is kept so that nothing can be left out.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint count; uint passes; uint shift; };
layout(std430, binding = 0) readonly buffer In { uvec4 values[]; };
layout(std430, binding = 1) buffer Out { uvec4 results[]; };

void main() {
    const uint threads = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uvec4 sum0 = uvec4(0), sum1 = uvec4(0), sum2 = uvec4(0), sum3 = uvec4(0);
    uint start = 0;
    for (uint pass = 0; pass < passes; pass++) {
        for (uint i = gl_GlobalInvocationID.x; i < count; i += 4 * threads) {
            // count is a multiple of 4 * threads
            uint j0 = i + start, j1 = j0 + threads, j2 = j1 + threads, j3 = j2 + threads;
            j0 -= j0 >= count ? count : 0;
            j1 -= j1 >= count ? count : 0;
            j2 -= j2 >= count ? count : 0;
            j3 -= j3 >= count ? count : 0;
            sum0 ^= values[j0];
            sum1 ^= values[j1];
            sum2 ^= values[j2];
            sum3 ^= values[j3];
        }
        start += shift;
        start -= start >= count ? count : 0;
    }
    const uvec4 sum = sum0 ^ sum1 ^ sum2 ^ sum3;
    if (sum.x == 0x736d6721u) results[0] = sum;
}
