// Workgroups that run at once, each lane with many values that are all needed: counted as in resident_lanes.comp. As
// many as the registers of a core hold; MANY are more than any lane has.
// variant: many -DMANY
// variant: few
#version 450
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint steps; float scale; float offset; };
layout(std430, binding = 0) buffer Out { uint now; uint most; uint sum; };

#define FOUR(X, a, b, c, d, next) X(a, b) X(b, c) X(c, d) X(d, next)
#ifdef MANY
#define ALL(X) FOUR(X, m0, m1, m2, m3, m4) FOUR(X, m4, m5, m6, m7, m8) FOUR(X, m8, m9, m10, m11, m12) \
               FOUR(X, m12, m13, m14, m15, m16) FOUR(X, m16, m17, m18, m19, m0)
#else
#define ALL(X) FOUR(X, m0, m1, m2, m3, m0)
#endif
#define BEGIN(m, next) mat4 m = first; first *= offset;
#define STEP(m, next) m = m * scale + next;
#define END(m, next) end += m;

void main() {
    const bool counts = gl_LocalInvocationID.x == 0;
    if (counts) atomicMax(most, atomicAdd(now, 1u) + 1u);
    barrier();
    const vec4 lane = vec4(0.0, 1.0, 2.0, 3.0) + float(gl_GlobalInvocationID.x);
    mat4 first = mat4(lane, lane * lane, lane * offset, lane + scale);
    ALL(BEGIN)
    for (uint i = 0; i < steps; i++) { ALL(STEP) }
    mat4 end = mat4(0.0);
    ALL(END)
    if (determinant(end) == 0.1234567) sum = 1u;
    barrier();
    if (counts) atomicAdd(now, 0xffffffffu);
}
