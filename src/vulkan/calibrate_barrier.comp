// Cost of a workgroup barrier with a little shared memory traffic.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint steps; uint unused0; uint unused1; };
layout(std430, binding = 0) buffer Out { uvec4 results[]; };

shared uint total;

void main() {
    const uint lane = gl_LocalInvocationID.x;
    if (lane == 0) total = 0;
    barrier();
    uint next = 0;
    for (uint i = 0; i < steps; i++) {
        if (lane == next) total += i;
        next = next + 1 == gl_WorkGroupSize.x ? 0 : next + 1;
        barrier();
    }
    if (lane == 0 && total == 0x736d6721u) results[0] = uvec4(1);
}
