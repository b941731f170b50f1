/* glsl_iter.c: the loops over the elements of one instruction that an invocation owns, and the
 * coordinates and validity of the current element. Two forms: rows and columns over the lanes
 * (register layout), and flat over all invocations (staging). Registers are unrolled: their numbers
 * become literal. */
#include "glsl_private.h"

void glsl_iter_init(glsl_writer *w, glsl_iter *it, const int *axes, int count) {
    const smg_kernel *k = w->k;
    memset(it, 0, sizeof *it);
    it->coord = glsl_zeroed(w, k->axes.count, sizeof(char *));
    it->valid = glsl_zeroed(w, k->axes.count, sizeof(char *));
    it->check = glsl_zeroed(w, k->axes.count, sizeof(bool));
    it->access_used = glsl_zeroed(w, k->accesses.count, sizeof(bool));
    it->address = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->start = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->memo = glsl_zeroed(w, smg_expr_count(k->exprs), sizeof(char *));
    it->uses = glsl_zeroed(w, smg_expr_count(k->exprs), sizeof(int));
    it->vector = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->early = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->j_step = it->group = 1;
    it->i = it->j = "0";
    it->rows = it->columns = 1;
    it->row_registers = it->column_registers = 1;
    if (w->status != SMG_OK) return;
    for (int a = 0; a < k->axes.count; a++) it->coord[a] = "0";
    glsl_iter_add(w, it, axes, count);
}

void glsl_iter_add(glsl_writer *w, glsl_iter *it, const int *axes, int count) {
    if (it->count + count > 2 * SMG_TILE_AXES) {
        glsl_fail(w, SMG_INTERNAL, "an instruction over too many axes");
        return;
    }
    for (int i = 0; i < count; i++) it->axes[it->count++] = axes[i];
}

void glsl_iter_finish(glsl_writer *w, glsl_iter *it) {
    const smg_kernel *k = w->k;
    for (int i = 0; i < it->count; i++) {
        const smg_kaxis *axis = &k->axes.items[it->axes[i]];
        if (it->axes[i] == k->row_axis) {
            it->has_row = true;
            it->rows = axis->tile;
        } else if (axis->tile > 1) {
            it->columns *= axis->tile;
            it->column[it->column_count++] = it->axes[i];
        }
    }
    it->row_registers = (int)((it->rows + k->lane_rows - 1) / k->lane_rows);
    int64_t run = (int64_t)k->vec * k->lane_cols;
    if (it->columns > 1) it->column_registers = (int)((it->columns + run - 1) / run * k->vec);
}

void glsl_check_axes(glsl_iter *it, const int *axes, int count) {
    for (int i = 0; i < count; i++) it->check[axes[i]] = true;
}

bool glsl_always_valid(const glsl_writer *w, int a) {
    const smg_kernel *k = w->k;
    const smg_kaxis *axis = &k->axes.items[a];
    int64_t low = 0, high = 0;
    smg_size quotient;
    if (axis->tile == 1) return true; /* a base is always inside */
    if (axis->grid || w->looped[a])
        return smg_size_divide_exact(k->sizes, axis->extent, smg_size_const(k->sizes, axis->tile), &quotient);
    smg_size_bounds(k->sizes, axis->extent, &low, &high);
    return low >= axis->tile;
}

const char *glsl_valid_text(glsl_writer *w, int a, const char *coord) {
    const smg_kaxis *axis = &w->k->axes.items[a];
    const char *index = glsl_plus(w, glsl_base(w, a), coord);
    const char *inside = GLSL_STRING(w, "%s < %s", index, glsl_size(w, axis->extent));
    bool stepped = axis->grid || w->looped[a]; /* a tile that covers its axis may be larger than it */
    return stepped ? glsl_unless_even(w, axis->extent, axis->tile, inside) : inside;
}

static void emit_valid(glsl_writer *w, glsl_iter *it, int a) {
    if (!it->check[a] || it->valid[a] != NULL || glsl_always_valid(w, a)) return;
    it->valid[a] = GLSL_STRING(w, "ok_%s", w->axis_name[a]);
    GLSL_LINE(w, "bool %s = %s;", it->valid[a], glsl_valid_text(w, a, it->coord[a]));
}

void glsl_rows_open(glsl_writer *w, glsl_iter *it) {
    const smg_kernel *k = w->k;
    if (!it->has_row) {
        glsl_hoist_row(w, it);
        return;
    }
    if (it->row_registers > 1) {
        it->i = "i";
        GLSL_LINE(w, "[[unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int i = 0; i < %d; ++i)", it->row_registers));
        it->row_braces++;
    }
    const char *first = it->row_registers > 1 ? glsl_times_literal(w, "i", k->lane_rows) : "0";
    const char *row = glsl_plus(w, first, w->row_lane);
    if (strcmp(row, "0") != 0) {
        GLSL_LINE(w, "int r = %s;", row);
        row = "r";
    }
    it->coord[k->row_axis] = row;
    emit_valid(w, it, k->row_axis);
    glsl_hoist_row(w, it);
}

void glsl_rows_close(glsl_writer *w, glsl_iter *it) {
    for (; it->row_braces > 0; it->row_braces--) glsl_close(w);
    if (!it->has_row) return;
    it->valid[w->k->row_axis] = NULL; /* names of the row's scope */
    for (int a = 0; a < w->k->accesses.count; a++) it->address[a] = it->start[a];
}

/* c is split into the coordinates of several axes. Where the last axis holds whole runs of lanes,
 * the lane decides only the last coordinate and the others depend on j alone. */
static void split_columns(glsl_writer *w, glsl_iter *it, const char *run_start, const char *lane) {
    const smg_kernel *k = w->k;
    int64_t run = (int64_t)k->vec * k->lane_cols;
    int last = it->column[it->column_count - 1];
    int64_t tile = k->axes.items[last].tile;
    const char *rest = "c";
    int from = it->column_count - 1;
    if (tile % run == 0) {
        const char *inside = GLSL_STRING(w, "%s %% %lld", run_start, (long long)tile);
        GLSL_LINE(w, "int c_%s = %s;", w->axis_name[last], glsl_plus(w, inside, lane));
        GLSL_LINE(w, "int c_rest = %s / %lld;", run_start, (long long)tile);
        it->coord[last] = GLSL_STRING(w, "c_%s", w->axis_name[last]);
        rest = "c_rest";
        from--;
    }
    int64_t below = 1;
    for (int n = from; n >= 0; n--) {
        int a = it->column[n];
        int64_t size = k->axes.items[a].tile;
        const char *text = below > 1 ? GLSL_STRING(w, "%s / %lld", rest, (long long)below) : rest;
        if (n > 0) text = GLSL_STRING(w, "(%s) %% %lld", text, (long long)size);
        GLSL_LINE(w, "int c_%s = %s;", w->axis_name[a], text);
        it->coord[a] = GLSL_STRING(w, "c_%s", w->axis_name[a]);
        below *= size;
    }
}

void glsl_columns_open(glsl_writer *w, glsl_iter *it) {
    const smg_kernel *k = w->k;
    int64_t run = (int64_t)k->vec * k->lane_cols;
    bool ragged_rows = it->has_row && it->rows % k->lane_rows != 0;
    if (ragged_rows) {
        glsl_open(w, GLSL_STRING(w, "if (r < %lld)", (long long)it->rows));
        it->column_braces++;
    }
    if (it->columns > 1) {
        if (it->column_registers > 1) {
            it->j = "j";
            bool written = smg_kernel_columns_written(k, it->column_registers);
            GLSL_LINE(w, written ? "[[unroll]]" : "[[dont_unroll]]");
            glsl_open(w, GLSL_STRING(w, "for (int j = 0; j < %d; j += %d)", it->column_registers, it->j_step));
            it->column_braces++;
        }
        const char *group = k->vec > 1 ? GLSL_STRING(w, "(%s / %d)", it->j, k->vec) : it->j;
        const char *start = it->column_registers > 1 ? glsl_times_literal(w, group, run) : "0";
        const char *lane = glsl_times_literal(w, w->col_lane, k->vec);
        if (k->vec > 1) lane = glsl_plus(w, lane, GLSL_STRING(w, "%s %% %d", it->j, k->vec));
        GLSL_LINE(w, "int c = %s;", glsl_plus(w, start, lane));
        if (it->columns % run != 0) {
            glsl_open(w, GLSL_STRING(w, "if (c < %lld)", (long long)it->columns));
            it->column_braces++;
        }
        if (it->column_count == 1)
            it->coord[it->column[0]] = "c";
        else
            split_columns(w, it, GLSL_STRING(w, "(%s)", start), lane);
    }
    for (int n = 0; n < it->column_count; n++) emit_valid(w, it, it->column[n]);
}

void glsl_columns_close(glsl_writer *w, glsl_iter *it) {
    for (; it->column_braces > 0; it->column_braces--) glsl_close(w);
    glsl_expr_forget(w, it);
    for (int n = 0; n < it->column_count; n++) it->valid[it->column[n]] = NULL;
}

/* Coordinates from the flat number, last axis of `axes` fastest. Where the invocations hold whole
 * runs of the last axis its coordinate does not depend on the step. */
static void split_flat(glsl_writer *w, glsl_iter *it, const int *axes, int count, const char *step) {
    int64_t lanes = smg_kernel_invocations(w->k);
    const char *rest = "e";
    int64_t below = 1;
    for (int n = count - 1; n >= 0; n--) {
        int a = axes[n];
        int64_t size = w->k->axes.items[a].tile;
        if (n == count - 1) size /= it->group;
        if (w->k->axes.items[a].tile == 1) continue;
        const char *text = below > 1 ? GLSL_STRING(w, "(%s / %lld)", rest, (long long)below) : rest;
        if (n == count - 1 && lanes % size == 0) {
            const char *first = GLSL_STRING(w, size > 1 ? "(local %% %lld)" : "0", (long long)size);
            GLSL_LINE(w, "int c_%s = %s;", w->axis_name[a], glsl_times_literal(w, first, it->group));
            GLSL_LINE(w, "int c_rest = %s;",
                      glsl_plus(w, glsl_times_literal(w, step, lanes / size),
                                GLSL_STRING(w, "local / %lld", (long long)size)));
            rest = "c_rest";
        } else {
            if (n > 0) text = GLSL_STRING(w, "(%s %% %lld)", text, (long long)size);
            if (n == count - 1) text = glsl_times_literal(w, text, it->group);
            GLSL_LINE(w, "int c_%s = %s;", w->axis_name[a], text);
            below *= size;
        }
        it->coord[a] = GLSL_STRING(w, "c_%s", w->axis_name[a]);
    }
}

static int64_t flat_total(const glsl_writer *w, const int *axes, int count, int group) {
    int64_t total = 1;
    for (int n = 0; n < count; n++) total *= w->k->axes.items[axes[n]].tile;
    return total / group;
}

int64_t glsl_flat_steps(const glsl_writer *w, const int *axes, int count, int group) {
    int64_t lanes = smg_kernel_invocations(w->k);
    return (flat_total(w, axes, count, group) + lanes - 1) / lanes;
}

void glsl_flat_open(glsl_writer *w, glsl_iter *it, const int *axes, int count, int group) {
    int64_t lanes = smg_kernel_invocations(w->k);
    int64_t total = flat_total(w, axes, count, group);
    int64_t steps = glsl_flat_steps(w, axes, count, group);
    it->group = group;
    const char *step = "0";
    if (steps > 1) {
        step = "n";
        if (smg_kernel_steps_written(steps)) GLSL_LINE(w, "[[unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int n = 0; n < %lld; ++n)", (long long)steps));
        it->column_braces++;
    }
    GLSL_LINE(w, "int e = %s;", glsl_plus(w, glsl_times_literal(w, step, lanes), "local"));
    if (total % lanes != 0) {
        glsl_open(w, GLSL_STRING(w, "if (e < %lld)", (long long)total));
        it->column_braces++;
    }
    split_flat(w, it, axes, count, step);
    for (int n = 0; n < count; n++) emit_valid(w, it, axes[n]);
    for (int n = 0; n < count; n++)
        if (w->k->axes.items[axes[n]].tile > 1) it->column[it->column_count++] = axes[n];
}

void glsl_flat_close(glsl_writer *w, glsl_iter *it) {
    glsl_columns_close(w, it);
}

int glsl_run_axis(const glsl_writer *w, const glsl_iter *it) {
    const smg_kernel *k = w->k;
    if (k->vec % 4 != 0 || it->column_count == 0) return -1;
    int last = it->column[it->column_count - 1];
    return k->axes.items[last].tile % 4 == 0 ? last : -1;
}

const char *glsl_all_valid(glsl_writer *w, const glsl_iter *it, const int *axes, int count) {
    const char *all = NULL;
    for (int i = 0; i < count; i++) {
        bool again = false;
        for (int p = 0; p < i; p++) again = again || axes[p] == axes[i];
        if (!again) all = glsl_both(w, all, it->valid[axes[i]]);
    }
    return all;
}

const char *glsl_once(glsl_writer *w, const glsl_iter *it) {
    return glsl_both(w, w->k->lane_depth > 1 ? "depth_lane == 0" : NULL, glsl_once_a_depth(w, it));
}

const char *glsl_once_a_depth(glsl_writer *w, const glsl_iter *it) {
    const smg_kernel *k = w->k;
    const char *row = !it->has_row && k->lane_rows > 1 ? "row_lane == 0" : NULL;
    const char *column = it->columns == 1 && k->lane_cols > 1 ? "col_lane == 0" : NULL;
    return glsl_both(w, row, column);
}
