// What subgroups of the size that kernels ask for do: one word for each invocation, of which the host knows what it must
// be.
//
// variant: size -DTELL=tell_size
// variant: arithmetic -DTELL=tell_arithmetic -DARITHMETIC
// variant: clustered -DTELL=tell_clustered -DCLUSTERED
// variant: shuffle -DTELL=tell_shuffle -DSHUFFLE
#version 460
#extension GL_KHR_shader_subgroup_basic : require
#ifdef ARITHMETIC
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#ifdef CLUSTERED
#extension GL_KHR_shader_subgroup_clustered : require
#endif
#ifdef SHUFFLE
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
layout(local_size_x_id = 0) in;
layout(std430, binding = 0) writeonly buffer Words { uint words[]; };

uint value(uint i) {
    return (i * i * 7u + i) % 61u;
}

uint tell_size(uint i) {
    return gl_SubgroupSize | gl_SubgroupInvocationID << 8 | gl_SubgroupID << 16;
}
#ifdef ARITHMETIC
uint tell_arithmetic(uint i) {
    const float sum = subgroupAdd(float(value(i))), most = subgroupMax(float(value(i)));
    return uint(sum) | uint(most) << 16;
}
#endif
#ifdef CLUSTERED
uint tell_clustered(uint i) {
    const float sum = subgroupClusteredAdd(float(value(i)), 4u), most = subgroupClusteredMax(float(value(i)), 4u);
    return uint(sum) | uint(most) << 16;
}
#endif
#ifdef SHUFFLE
uint tell_shuffle(uint i) {
    const uint beside = subgroupShuffleXor(value(i), 1u);
    return beside | subgroupShuffle(value(i), gl_SubgroupSize - 1u - gl_SubgroupInvocationID) << 16;
}
#endif

void main() {
    const uint i = gl_LocalInvocationIndex;
    words[i] = TELL(i);
}
