/* The shape of things in a tile program: how many elements, registers and bytes a tile takes, and how
 * many workgroups a kernel has. Everybody who lays out tiles (verifier, emitter, cost model) asks here,
 * so that the rule of kernel.h is written down once. Counts saturate at SHAPE_HUGE instead of
 * overflowing: no real tile comes near it and every limit check refuses it. */
#include "kernel/kernel.h"

#define SHAPE_HUGE (INT64_C(1) << 40)
#define WORD_BYTES 4

static int64_t saturating_mul(int64_t a, int64_t b) {
    int64_t product = 0;
    if (!smg_mul_i64(a, b, &product) || product > SHAPE_HUGE) return SHAPE_HUGE;
    return product;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

int smg_kernel_invocations(const smg_kernel *k) {
    return k->lane_depth * k->lane_rows * k->lane_cols;
}

int64_t smg_tile_rows(const smg_kernel *k, const smg_tile *tile) {
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] == k->row_axis) return k->axes.items[tile->axis[i]].tile;
    return 1;
}

int64_t smg_tile_columns(const smg_kernel *k, const smg_tile *tile) {
    int64_t columns = 1;
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] != k->row_axis) columns = saturating_mul(columns, k->axes.items[tile->axis[i]].tile);
    return columns;
}

int64_t smg_tile_elements(const smg_kernel *k, const smg_tile *tile) {
    return saturating_mul(smg_tile_rows(k, tile), smg_tile_columns(k, tile));
}

/* A tile of one column is replicated over the column lanes: one register, whatever vec is. */
int64_t smg_tile_registers(const smg_kernel *k, const smg_tile *tile) {
    if (tile->residence == SMG_STAGING) return ceil_div(smg_tile_elements(k, tile), smg_kernel_invocations(k));
    if (tile->residence != SMG_REGISTER) return 0;
    int64_t rows = ceil_div(smg_tile_rows(k, tile), k->lane_rows);
    int64_t columns = smg_tile_columns(k, tile);
    if (columns > 1) columns = ceil_div(columns, (int64_t)k->vec * k->lane_cols) * (int64_t)k->vec;
    return saturating_mul(rows, columns);
}

int64_t smg_tile_shared_bytes(const smg_kernel *k, const smg_tile *tile) {
    if (tile->residence != SMG_SHARED) return 0;
    if (tile->axis_count == 0) return WORD_BYTES;
    int64_t run = k->axes.items[tile->axis[tile->axis_count - 1]].tile;
    int64_t runs = 1;
    for (int i = 0; i + 1 < tile->axis_count; i++) runs = saturating_mul(runs, k->axes.items[tile->axis[i]].tile);
    return saturating_mul(saturating_mul(runs, run + tile->pad), WORD_BYTES);
}

int64_t smg_kernel_memory_bytes(const smg_kernel *k, int t) {
    if (k->tiles.items[t].residence != SMG_SHARED) return 0;
    int64_t most = smg_tile_shared_bytes(k, &k->tiles.items[t]);
    int memory = k->tiles.items[t].memory;
    for (int i = 0; memory > 0 && i < k->tiles.count; i++) {
        if (k->tiles.items[i].memory != memory) continue;
        if (i < t) return 0;
        int64_t bytes = smg_tile_shared_bytes(k, &k->tiles.items[i]);
        if (bytes > most) most = bytes;
    }
    return most;
}

bool smg_tile_runs_along(const smg_kernel *k, const smg_tile *tile, int axis) {
    if (tile->axis_count == 0 || tile->axis[tile->axis_count - 1] != axis) return false;
    int64_t run = k->axes.items[axis].tile;
    return run % 4 == 0 && (run + tile->pad) % 4 == 0;
}

int64_t smg_kernel_scratch_bytes(const smg_kernel *k) {
    if (k->lane_cols <= k->subgroup || k->lane_cols == 1) return 0;
    bool reduces = false;
    for (int i = 0; i < k->code.count && !reduces; i++) reduces = k->code.items[i].kind == SMG_I_REDUCE;
    if (!reduces) return 0;
    int64_t invocations = smg_kernel_invocations(k);
    return WORD_BYTES * (k->subgroup > 1 ? ceil_div(invocations, k->subgroup) : invocations);
}

#define JOIN_BYTES 16384

int64_t smg_kernel_join_registers(const smg_kernel *k, const smg_tile *tile) {
    int64_t registers = smg_tile_registers(k, tile);
    int64_t most = JOIN_BYTES / (WORD_BYTES * (int64_t)smg_kernel_invocations(k));
    if (most < 1) most = 1;
    return registers < most ? registers : most;
}

int64_t smg_kernel_join_bytes(const smg_kernel *k) {
    int64_t most = 0;
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].kind != SMG_I_JOIN || k->lane_depth == 1) continue;
        int64_t registers = smg_kernel_join_registers(k, &k->tiles.items[k->code.items[i].dst]);
        if (registers > most) most = registers;
    }
    return most * WORD_BYTES * smg_kernel_invocations(k);
}

int64_t smg_kernel_shared_bytes(const smg_kernel *k) {
    int64_t bytes = smg_kernel_scratch_bytes(k) + smg_kernel_join_bytes(k);
    for (int i = 0; i < k->tiles.count; i++) bytes += smg_kernel_memory_bytes(k, i);
    return bytes;
}

bool smg_kernel_grid(const smg_kernel *k, const int64_t *symbols, int64_t *out_workgroups) {
    int64_t workgroups = 1;
    for (int i = 0; i < k->grid.count; i++) {
        const smg_kaxis *axis = &k->axes.items[k->grid.items[i]];
        int64_t extent = 0;
        if (!smg_size_eval(k->sizes, axis->extent, symbols, &extent) || extent < 0) return false;
        if (!smg_mul_i64(workgroups, ceil_div(extent, axis->tile), &workgroups)) return false;
    }
    *out_workgroups = workgroups;
    return true;
}

typedef struct data_seek {
    const smg_kernel *k;
    bool found;
} data_seek;

static void seek_data(void *user, int leaf) {
    data_seek *s = user;
    smg_kleaf_kind what = s->k->leaves.items[leaf].what;
    s->found = s->found || what == SMG_KLEAF_LOAD || what == SMG_KLEAF_TILE;
}

bool smg_access_reports(const smg_kernel *k, const smg_access *access) {
    int64_t limit;
    data_seek data = {.k = k};
    if (access->index == SMG_EXPR_NONE) return false;
    if (!smg_size_is_const(k->sizes, access->index_limit, &limit) || limit < SMG_SIZE_UNBOUNDED) return true;
    smg_expr_leaves(k->exprs, access->index, seek_data, &data);
    return data.found;
}

bool smg_kernel_reports(const smg_kernel *k) {
    for (int a = 0; a < k->accesses.count; a++)
        if (smg_access_reports(k, &k->accesses.items[a])) return true;
    return false;
}
