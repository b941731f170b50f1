// One matrix shape on one subgroup: which row and column each element of each lane is, for every operand, and the product
// of what the operands hold, once from and to memory and once through shared memory, turned.
//
// f16_f32 is that of bf16, too, with another type of 16 bits (vulkan_words.c): no arithmetic of f16 stands in it.
//
// variant: f16_f16 -DT=float16_t -DC=float16_t
// variant: f16_f32 -DT=float16_t -DC=float -DWHOLE=float
// variant: i8_i32 -DT=int8_t -DC=int
// variant: u8_u32 -DT=uint8_t -DC=uint
#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : enable
#extension GL_EXT_shader_16bit_storage : enable
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint M = 8;
layout(constant_id = 2) const uint N = 8;
layout(constant_id = 3) const uint K = 8;
layout(constant_id = 4) const uint LANES = 8; // of a subgroup; others of the workgroup do the same and tell nothing

const uint MOST = 128; // elements of a lane; the host leaves room for so many
#define SIZE_A (M * K)
#define SIZE_B (K * N)
#define SIZE_C (M * N)

// Rows, columns and values of a, then of b, then the values of both turned; values are row by row, turned ones column by
// column.
layout(std430, binding = 0) readonly buffer Operands { T operands[]; };
// Rows, columns and values of c, then the values turned.
layout(std430, binding = 1) readonly buffer Sums { C sums[]; };
layout(std430, binding = 2) writeonly buffer Results { C results[]; };
// Elements of a lane of a, b, c; then row + 65536 * column by operand, element and lane.
layout(std430, binding = 3) writeonly buffer Places { uint places[]; };

shared T turned[SIZE_A + SIZE_B];

#ifndef WHOLE
#define WHOLE // what an element becomes on its way to a whole number
#endif
#define TELL(operand, rows, columns)                                                                                   \
    if (first && lane == 0) places[operand] = rows.length();                                                           \
    for (uint e = 0; first && e < min(uint(rows.length()), MOST); e++)                                                 \
        places[3 + (operand * MOST + e) * LANES + lane] = uint(WHOLE(rows[e])) | uint(WHOLE(columns[e])) << 16;

void main() {
    const uint lane = gl_SubgroupInvocationID;
    const bool first = gl_SubgroupID == 0;
    coopmat<T, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a, a_columns;
    coopMatLoad(a, operands, 0, K, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(a_columns, operands, SIZE_A, K, gl_CooperativeMatrixLayoutRowMajor);
    TELL(0, a, a_columns)
    coopmat<T, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b, b_columns;
    coopMatLoad(b, operands, 3 * SIZE_A, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b_columns, operands, 3 * SIZE_A + SIZE_B, N, gl_CooperativeMatrixLayoutRowMajor);
    TELL(1, b, b_columns)
    coopmat<C, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> c, c_columns;
    coopMatLoad(c, sums, 0, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c_columns, sums, SIZE_C, N, gl_CooperativeMatrixLayoutRowMajor);
    TELL(2, c, c_columns)

    coopMatLoad(a, operands, 2 * SIZE_A, K, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, operands, 3 * SIZE_A + 2 * SIZE_B, N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c, sums, 2 * SIZE_C, N, gl_CooperativeMatrixLayoutRowMajor);
    c = coopMatMulAdd(a, b, c);
    if (first) coopMatStore(c, results, 0, N, gl_CooperativeMatrixLayoutRowMajor);

    for (uint i = gl_LocalInvocationIndex; i < SIZE_A + SIZE_B; i += gl_WorkGroupSize.x)
        turned[i] = operands[3 * (SIZE_A + SIZE_B) + i];
    barrier();
    coopMatLoad(a, turned, 0, M, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(b, turned, SIZE_A, K, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(c, sums, 3 * SIZE_C, M, gl_CooperativeMatrixLayoutColumnMajor);
    c = coopMatMulAdd(a, b, c);
    if (first) coopMatStore(c, results, SIZE_C, M, gl_CooperativeMatrixLayoutColumnMajor);
}
