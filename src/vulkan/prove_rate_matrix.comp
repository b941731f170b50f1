// How fast one matrix shape is multiplied: products alone, of operands that stay where they are, in independent chains.
//
// variant: f16_f16 -DT=float16_t -DC=float16_t
// variant: f16_f32 -DT=float16_t -DC=float
// variant: i8_i32 -DT=int8_t -DC=int
// variant: u8_u32 -DT=uint8_t -DC=uint
#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : enable
#extension GL_EXT_shader_16bit_storage : enable
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint M = 8;
layout(constant_id = 2) const uint N = 8;
layout(constant_id = 3) const uint K = 8;
layout(push_constant) uniform Push { uint steps; };
layout(std430, binding = 0) readonly buffer Operands { T operands[]; };
layout(std430, binding = 1) readonly buffer Sums { C sums[]; };
layout(std430, binding = 2) writeonly buffer Results { C results[]; };

void main() {
    coopmat<T, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a;
    coopmat<T, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b;
    coopmat<C, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> c0, c1, c2, c3;
    coopMatLoad(a, operands, 0, K, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, operands, 3 * M * K, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c0, sums, 0, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c1, sums, M * N, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c2, sums, 2 * M * N, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c3, sums, 3 * M * N, N, gl_CooperativeMatrixLayoutRowMajor);
    for (uint i = 0; i < steps; i++) {
        c0 = coopMatMulAdd(a, b, c0);
        c1 = coopMatMulAdd(a, b, c1);
        c2 = coopMatMulAdd(a, b, c2);
        c3 = coopMatMulAdd(a, b, c3);
    }
    c0 = (c0 + c1) + (c2 + c3);
    if (c0[0] == C(77)) coopMatStore(c0, results, 0, N, gl_CooperativeMatrixLayoutRowMajor);
}
