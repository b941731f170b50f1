/* glsl_mma.c: MMA on the scalar tier: an outer product of the lane's rows and columns for each k,
 * both factors from shared memory, k unrolled by up to four so that loads of the next k go ahead.
 */
#include "glsl_private.h"

/* Splits the flat k into the coordinates of the contracted axes. */
static void split_k(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    int64_t below = 1;
    for (int n = instr->axis_count - 1; n >= 0; n--) {
        int a = instr->axes[n];
        int64_t size = w->k->axes.items[a].tile;
        const char *text = below > 1 ? GLSL_STRING(w, "(k / %lld)", (long long)below) : "k";
        if (n > 0) text = GLSL_STRING(w, "(%s %% %lld)", text, (long long)size);
        it->coord[a] = text;
        below *= size;
    }
}

static void open_count(glsl_writer *w, const char *name, int count) {
    if (count == 1) {
        glsl_open(w, "");
        return;
    }
    GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int %s = 0; %s < %d; ++%s)", name, name, count, name));
}

/* fa[i]: a at the lane's rows. Rows beyond a ragged tile repeat its last row: their sums are not
 * used. */
static void load_rows(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    const smg_kernel *k = w->k;
    GLSL_LINE(w, "float fa[%d];", it->row_registers);
    open_count(w, "i", it->row_registers);
    if (it->has_row) {
        const char *i = it->row_registers > 1 ? "i" : "0";
        const char *row = glsl_plus(w, glsl_times_literal(w, i, k->lane_rows), w->row_lane);
        if (it->rows % k->lane_rows != 0)
            row = GLSL_STRING(w, "min(%s, %lld)", row, (long long)it->rows - 1);
        GLSL_LINE(w, "int r = %s;", row);
        it->coord[k->row_axis] = "r";
    }
    GLSL_LINE(w, "fa[%s] = %s;", it->row_registers > 1 ? "i" : "0",
              glsl_tile_element(w, it, instr->a));
    glsl_close(w);
}

static void load_columns(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    bool has_row = it->has_row;
    GLSL_LINE(w, "float fb[%d];", it->column_registers);
    glsl_open(w, "");
    it->has_row = false; /* b has no rows */
    glsl_columns_open(w, it);
    GLSL_LINE(w, "fb[%s] = %s;", it->j, glsl_tile_element(w, it, instr->b));
    glsl_columns_close(w, it);
    it->has_row = has_row;
    glsl_close(w);
}

void glsl_mma(glsl_writer *w, const smg_instr *instr) {
    const smg_kernel *k = w->k;
    const smg_tile *dst = &k->tiles.items[instr->dst];
    int64_t depth = 1;
    for (int n = 0; n < instr->axis_count; n++) depth *= k->axes.items[instr->axes[n]].tile;
    int unroll = depth % 4 == 0 ? 4 : depth % 2 == 0 ? 2 : 1;
    glsl_iter it;
    glsl_iter_init(w, &it, dst->axis, dst->axis_count);
    if (w->status != SMG_OK) return;
    glsl_iter_finish(w, &it);
    split_k(w, &it, instr);
    glsl_open(w, GLSL_STRING(w, "for (int k0 = 0; k0 < %lld; k0 += %d)", (long long)depth, unroll));
    open_count(w, "u", unroll);
    GLSL_LINE(w, "int k = %s;", unroll > 1 ? "k0 + u" : "k0");
    load_rows(w, &it, instr);
    load_columns(w, &it, instr);
    open_count(w, "i", it.row_registers);
    open_count(w, "j", it.column_registers);
    const char *i = it.row_registers > 1 ? "i" : "0";
    const char *j = it.column_registers > 1 ? "j" : "0";
    const char *place = glsl_plus(w, glsl_times_literal(w, i, it.column_registers), j);
    const char *sum = GLSL_STRING(w, "t_%s[%s]", w->tile_name[instr->dst], place);
    GLSL_LINE(w, "%s = fma(fa[%s], fb[%s], %s);", sum, i, j, sum);
    for (int n = 0; n < 4; n++) glsl_close(w);
}
