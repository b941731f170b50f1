/* Kernels built by hand, in any shape of lanes, for tests of glsl/: a builder for each part of a program, and programs
 * (elementwise with ragged edges, a row-wise loop with carried maximum and sum, products through shared memory and of
 * views, a gather, several column axes). Everything is the arena's; a failure ends the test. */
#ifndef SMG_SUPPORT_HAND_KERNELS_H
#define SMG_SUPPORT_HAND_KERNELS_H

#include "kernel/kernel.h"

typedef struct hand_lanes {
    int rows, cols, vec, subgroup;
} hand_lanes;
typedef smg_kernel *hand_maker(smg_arena *arena, hand_lanes l);

smg_kernel *hand_kernel(smg_arena *arena, const char *name);
/* Layouts by rows and columns, for a kernel that is complete. */
smg_kernel *hand_dealt(smg_kernel *k, hand_lanes l, int depth, int row_axis, int row_run, bool numbered);
smg_kernel *hand_distributed(smg_kernel *k, hand_lanes l, int depth, int row_axis);
smg_size hand_size_of(smg_kernel *k, const char *text);
int hand_axis(smg_kernel *k, const char *name, const char *extent, int64_t tile, bool grid);
int hand_tile(smg_kernel *k, const char *name, smg_residence residence, int pad, int count, ...);
int hand_buffer(smg_kernel *k, const char *name, smg_type type, const char *elements, bool written);
/* Pairs of axis number and stride text. */
int hand_access(smg_kernel *k, int to, int count, ...);
smg_expr hand_leaf(smg_kernel *k, smg_kleaf_kind what, smg_kind kind, int index);
smg_expr hand_load(smg_kernel *k, int from);
smg_expr hand_of_tile(smg_kernel *k, int t);
smg_expr hand_make2(smg_kernel *k, smg_prim prim, smg_expr a, smg_expr b);
smg_expr hand_make1(smg_kernel *k, smg_prim prim, smg_expr a);
smg_expr hand_number(smg_kernel *k, double value);
smg_instr *hand_instr(smg_kernel *k, smg_instr_kind kind, int dst, smg_expr expr, int count, ...);
void hand_plain(smg_kernel *k, smg_instr_kind kind);
/* sums = left right, as they lie, in a loop over x. */
void hand_multiply(smg_kernel *k, int sums, int left, int right, int x);
void hand_clamp(smg_kernel *k, int tile_, int x);
smg_instr *hand_slices(smg_kernel *k, smg_instr_kind kind, int tile_, smg_expr expr, int x, int d, int ahead);

/* y[m, n] = x * erf(x) + tanh(x) / (1 + pow(x, 3)^2) + mod(iota, 7), ragged in both axes. */
smg_kernel *hand_elementwise(smg_arena *arena, hand_lanes l, smg_type type);
/* y = exp(x - max) / sum(exp(x - max)) of each row, the maximum and the sum carried along a loop. */
smg_kernel *hand_row_loop(smg_arena *arena, hand_lanes l);
/* c[m, n] = sum over k of a[m, k] * b[k, n], then through shared memory once more (SPILL). */
smg_kernel *hand_product(smg_arena *arena, hand_lanes l);
/* The same with a laid by rows, of which a lane has runs of four; rows and columns behind the end are the last ones. */
smg_kernel *hand_clamped_product(smg_arena *arena, hand_lanes l);
/* c[m, g, n] = sum over k of a[m, k] * b[k, g, n], both read where they lie; ragged rows. */
smg_kernel *hand_viewed_product(smg_arena *arena, hand_lanes l);
/* c[m, n] = sum over k of a[m, k] * b[k, n]: lanes are rows and hold a, b is read where it lies; all sides are ragged. */
smg_kernel *hand_own_product(smg_arena *arena, hand_lanes l);
/* The same with columns of b, or its k, that lie by four, four k written out. */
smg_kernel *hand_own_columns(smg_arena *arena, hand_lanes l);
smg_kernel *hand_own_turned(smg_arena *arena, hand_lanes l);
/* Both operands of the product below, from what was fetched of them. */
void hand_put_both(smg_kernel *k, int slots, int ahead);
/* c[m, n] = sum over k of a[m, k] * b[n, k]: runs along k in 16-byte groups, slices fetched one step ahead, the
 * contraction over four lanes, their sums joined. */
smg_kernel *hand_sliced_product(smg_arena *arena, hand_lanes l, int slots);
/* Each slice in the slot behind the one before: the next one is put beside the product. */
smg_kernel *hand_ring_of_two(smg_arena *arena, hand_lanes l);
smg_kernel *hand_ring_of_three(smg_arena *arena, hand_lanes l);
smg_kernel *hand_deep_product(smg_arena *arena, hand_lanes l);
/* The same, fetched without zeros; those along k are put. */
smg_kernel *hand_clamped_slices(smg_arena *arena, hand_lanes l);
/* y[m, n] = x[m, n] + w[n], rows as long as s+3: whether four neighbours are one aligned group is known at run time. */
smg_kernel *hand_strided_of(smg_arena *arena, hand_lanes l, smg_type type, smg_type result);
smg_kernel *hand_strided(smg_arena *arena, hand_lanes l);
smg_kernel *hand_strided_f16(smg_arena *arena, hand_lanes l);
smg_kernel *hand_strided_bf16(smg_arena *arena, hand_lanes l);
/* y[i, d] = table[id[i], d]. */
smg_kernel *hand_gather(smg_arena *arena, hand_lanes l);
/* y[m] = sum over h, d of x[m, h, d] * w[d], h and d both in columns. */
smg_kernel *hand_columns(smg_arena *arena, hand_lanes l);

#endif
