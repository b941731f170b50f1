// Workgroups that run at once: each counts itself in, works for a while in as much shared memory as it is told, and out.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint WORDS = 64;
layout(push_constant) uniform Push { uint steps; uint unused0; uint unused1; };
layout(std430, binding = 0) buffer Out { uint now; uint most; uint sum; };

shared uint words[WORDS];

void main() {
    const uint lane = gl_LocalInvocationID.x;
    words[lane % WORDS] = lane;
    barrier();
    if (lane == 0) atomicMax(most, atomicAdd(now, 1u) + 1u);
    barrier();
    uint x = lane + 1u;
    for (uint i = 0; i < steps; i++) x = x * 1664525u + words[(x >> 7) % WORDS];
    words[lane % WORDS] = x;
    barrier();
    if (words[0] == 0x736d6721u) sum = x;
    if (lane == 0) atomicAdd(now, 0xffffffffu);
}
