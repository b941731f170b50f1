// Latency of a load: one lane reads where the element before says. The number of the step goes in, so that the way through
// noise does not come round.
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint steps; uint mask; uint unused; };
layout(std430, binding = 0) readonly buffer In { uvec4 values[]; };
layout(std430, binding = 1) buffer Out { uvec4 results[]; };

void main() {
    if (gl_GlobalInvocationID.x != 0) return;
    uint at = 0;
    for (uint i = 0; i < steps; i++) at = (values[at].x + i * 0x9e3779b9u) & mask;
    if (at == 0x736d6721u) results[0] = uvec4(at);
}
