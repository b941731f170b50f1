/* glsl_lanes.c: which invocation is which lane. In general they are dealt out row by row. In a kernel with products
 * the lanes of a subgroup form a block of rows and columns, and its bits are woven: the lowest bit of the
 * invocation's number chooses a column, the next ones the row, the rest the column again. Neighbouring pairs then
 * read the same group of one operand, pairs of pairs the same group of the other, and shared memory serves them
 * together (measured on one GPU: an eighth less time for fused chains of products). Results do not depend on it. */
#include "glsl_private.h"

static bool has(const smg_kernel *k, smg_instr_kind kind) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == kind) return true;
    return false;
}

/* The most columns that keep the block of a subgroup as square as powers of two allow. */
static int square_columns(int subgroup) {
    int columns = 1;
    while (columns * columns < subgroup) columns *= 2;
    return columns;
}

static int log2_of(int value) {
    int bits = 0;
    while (1 << bits < value) bits++;
    return bits;
}

glsl_weave glsl_lanes_woven(const smg_kernel *k, const smg_target *target) {
    glsl_weave none = {.columns = 0};
    int subgroup = k->subgroup, plane = k->lane_rows * k->lane_cols;
    if (subgroup < 16 || plane % subgroup != 0 || !has(k, SMG_I_MMA)) return none;
    bool reduces = has(k, SMG_I_REDUCE);
    if (reduces && !target->subgroup_shuffle) return none;
    /* A row that is reduced stays within its subgroup. */
    int columns = reduces ? k->lane_cols : square_columns(subgroup);
    if (columns > k->lane_cols) columns = k->lane_cols;
    if (subgroup / columns > k->lane_rows) columns = subgroup / k->lane_rows;
    if (columns < 2 || columns >= subgroup || subgroup % columns != 0) return none;
    int rows = subgroup / columns;
    if (k->lane_cols % columns != 0 || k->lane_rows % rows != 0) return none;
    return (glsl_weave){.columns = columns, .rows = rows};
}

/* The bit of the invocation's number that is bit `bit` of its column. */
static int column_bit(glsl_weave weave, int bit) {
    return bit == 0 ? 0 : bit + log2_of(weave.rows);
}

int glsl_column_mask(const glsl_writer *w, int lanes) {
    return w->weave.columns > 0 ? 1 << column_bit(w->weave, log2_of(lanes) - 1) : lanes / 2;
}

static void plain_lanes(glsl_writer *w, const char *lane, bool part) {
    const smg_kernel *k = w->k;
    if (k->lane_rows > 1)
        GLSL_LINE(w, "int row_lane = %s;", k->lane_cols > 1 ? GLSL_STRING(w, "%s / %d", lane, k->lane_cols) : lane);
    if (k->lane_cols > 1)
        GLSL_LINE(w, "int col_lane = %s;", part ? GLSL_STRING(w, "local %% %d", k->lane_cols) : "local");
}

static void woven_lanes(glsl_writer *w, const char *lane) {
    const smg_kernel *k = w->k;
    glsl_weave weave = w->weave;
    int across = k->lane_cols / weave.columns;
    GLSL_LINE(w, "int block = %s / %d; // of %d x %d lanes", lane, k->subgroup, weave.rows, weave.columns);
    const char *row = across > 1 ? GLSL_STRING(w, "(block / %d)", across) : "block";
    GLSL_LINE(w, "int row_lane = %s * %d + ((local >> 1) & %d);", row, weave.rows, weave.rows - 1);
    const char *column = GLSL_STRING(w, "(local & 1)");
    if (weave.columns > 2)
        column = GLSL_STRING(w, "((local & 1) | ((local >> %d) & %d))", log2_of(weave.rows), weave.columns - 2);
    if (across > 1) column = GLSL_STRING(w, "(block %% %d) * %d + %s", across, weave.columns, column);
    GLSL_LINE(w, "int col_lane = %s;", column);
}

/* A subgroup for each row lane: what depends on the row alone is the same for all its lanes, and the driver knows. */
static void subgroup_lanes(glsl_writer *w) {
    const smg_kernel *k = w->k;
    GLSL_LINE(w, "int col_lane = int(gl_SubgroupInvocationID);");
    if (k->lane_rows > 1) GLSL_LINE(w, "int row_lane = int(gl_SubgroupID);");
    GLSL_LINE(w, "int local = %s;",
              k->lane_rows > 1 ? GLSL_STRING(w, "row_lane * %d + col_lane", k->lane_cols) : "col_lane");
}

void glsl_lanes(glsl_writer *w) {
    const smg_kernel *k = w->k;
    if (w->direct) {
        subgroup_lanes(w);
        return;
    }
    int plane = k->lane_rows * k->lane_cols;
    GLSL_LINE(w, "int local = int(gl_LocalInvocationIndex);");
    if (k->lane_depth > 1) GLSL_LINE(w, "int depth_lane = local / %d;", plane);
    const char *lane = k->lane_depth > 1 ? GLSL_STRING(w, "(local %% %d)", plane) : "local";
    if (w->weave.columns > 0)
        woven_lanes(w, lane);
    else
        plain_lanes(w, lane, plane > k->lane_cols || k->lane_depth > 1);
}
