/* glsl_loops.c: the loops over the elements of one instruction, opened and closed, with the coordinates and the
 * validity of the current element. Loops are unrolled where the program says so: register numbers become literal. */
#include "glsl_private.h"

static void emit_valid(glsl_writer *w, glsl_iter *it, int a) {
    if (!it->check[a] || it->valid[a] != NULL || glsl_always_valid(w, a)) return;
    it->valid[a] = GLSL_STRING(w, "ok_%s", w->axis_name[a]);
    GLSL_LINE(w, "bool %s = %s;", it->valid[a], glsl_valid_text(w, a, it->coord[a]));
}

/* The coordinate of the element at hand along an axis, by the loop's register number. */
static void emit_coordinate(glsl_writer *w, glsl_iter *it, const smg_layout *registers, int axis, const char *number) {
    const char *sum =
        glsl_plus(w, glsl_register_part(w, registers, axis, number), glsl_lane_part(w, &it->layout, axis));
    if (strchr(sum, ' ') != NULL) {
        GLSL_LINE(w, "int c_%s = %s;", w->axis_name[axis], sum);
        sum = GLSL_STRING(w, "c_%s", w->axis_name[axis]);
    }
    it->coord[axis] = sum;
}

/* So many registers, from the first on, hold elements of the tile in every lane. */
static int registers_inside(const glsl_writer *w, const glsl_iter *it, const smg_layout *registers, int axis) {
    int64_t lanes = 0, tile = w->k->axes.items[axis].tile;
    int inside = 0, count = (int)smg_layout_registers(registers);
    for (smg_layout_level level = SMG_LAYOUT_LANE; level <= SMG_LAYOUT_SUBGROUP; level++)
        lanes += smg_layout_part(&it->layout, axis, level, smg_layout_numbers(&it->layout, level) - 1);
    while (inside < count && smg_layout_coordinate(registers, axis, inside, 0, 0) + lanes < tile) inside++;
    return inside;
}

/* A layout may span more than the tile has. Of loops that are written out only the registers that do are asked. */
static const char *inside_tile(glsl_writer *w, const glsl_iter *it, const smg_layout *registers, const int *axes,
                               int count, const char *number) {
    const char *inside = NULL;
    for (int n = 0; n < count; n++) {
        int64_t tile = w->k->axes.items[axes[n]].tile;
        if (smg_layout_span(&it->layout, axes[n]) == tile) continue;
        int known = number != NULL ? registers_inside(w, it, registers, axes[n]) : 0;
        const char *one = GLSL_STRING(w, "%s < %lld", it->coord[axes[n]], (long long)tile);
        if (known > 0) one = GLSL_STRING(w, "(%s < %d || %s)", number, known, one);
        inside = glsl_both(w, inside, one);
    }
    return inside;
}

static const char *inside_outer(glsl_writer *w, const glsl_iter *it) {
    const char *number = it->outer_registers > 1 ? it->i : NULL;
    return inside_tile(w, it, &it->outer, it->outer_axes, it->outer_count, number);
}

void glsl_outer_open(glsl_writer *w, glsl_iter *it) {
    if (it->outer_registers > 1) {
        it->i = "i";
        GLSL_LINE(w, "[[unroll]]");
        const char *next = it->i_step > 1 ? GLSL_STRING(w, "i += %d", it->i_step) : "++i";
        glsl_open(w, GLSL_STRING(w, "for (int i = %d; i < %d; %s)", it->i_first, it->outer_registers, next));
        it->outer_braces++;
    }
    for (int n = 0; n < it->outer_count; n++) {
        emit_coordinate(w, it, &it->outer, it->outer_axes[n], it->i);
        emit_valid(w, it, it->outer_axes[n]);
    }
    glsl_hoist_outer(w, it, inside_outer(w, it));
}

void glsl_outer_close(glsl_writer *w, glsl_iter *it) {
    for (; it->outer_braces > 0; it->outer_braces--) glsl_close(w);
    for (int n = 0; n < it->outer_count; n++) it->valid[it->outer_axes[n]] = NULL; /* names of the loop's scope */
    for (int a = 0; a < w->k->accesses.count; a++) {
        it->address[a] = it->start[a];
        it->indexed[a] = false;
        it->present[a] = NULL;
    }
}

static void open_if(glsl_writer *w, glsl_iter *it, const char *condition) {
    if (condition == NULL) return;
    glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    it->inner_braces++;
}

void glsl_inner_open(glsl_writer *w, glsl_iter *it) {
    bool written = smg_kernel_inner_written(w->k, it->inner_registers);
    if (!it->inner_only) open_if(w, it, inside_outer(w, it));
    if (it->inner_registers > 1) {
        it->j = "j";
        GLSL_LINE(w, written ? "[[unroll]]" : "[[dont_unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int j = 0; j < %d; j += %d)", it->inner_registers, it->j_step));
        it->inner_braces++;
    }
    for (int n = 0; n < it->inner_count; n++) emit_coordinate(w, it, &it->inner, it->inner_axes[n], it->j);
    const char *inner = it->inner_registers > 1 && written ? it->j : NULL;
    open_if(w, it, inside_tile(w, it, &it->inner, it->inner_axes, it->inner_count, inner));
    for (int n = 0; n < it->inner_count; n++) emit_valid(w, it, it->inner_axes[n]);
}

void glsl_inner_close(glsl_writer *w, glsl_iter *it) {
    for (; it->inner_braces > 0; it->inner_braces--) glsl_close(w);
    glsl_expr_forget(w, it);
    for (int n = 0; n < it->inner_count; n++) it->valid[it->inner_axes[n]] = NULL;
}

/* Coordinates from the number of a group of the walk, its last axis fastest. Where the invocations (`lane`), in a round
 * of so many groups, hold whole runs of the last axis its coordinate does not depend on the step. */
static void split_walk(glsl_writer *w, glsl_iter *it, const smg_instr *walk, const char *lane, int64_t round) {
    const char *rest = "e";
    int64_t below = 1;
    for (int n = walk->axis_count - 1; n >= 0; n--) {
        int a = walk->axes[n];
        bool last = n == walk->axis_count - 1;
        int64_t size = w->k->axes.items[a].tile / (last ? it->group : 1);
        if (w->k->axes.items[a].tile == 1) continue;
        const char *text = below > 1 ? GLSL_STRING(w, "(%s / %lld)", rest, (long long)below) : rest;
        if (last && round % size == 0) {
            const char *first = size > 1 ? GLSL_STRING(w, "(%s %% %lld)", lane, (long long)size) : "0";
            const char *runs = GLSL_STRING(w, "%s / %lld", lane, (long long)size);
            GLSL_LINE(w, "int c_%s = %s;", w->axis_name[a], glsl_times_literal(w, first, it->group));
            GLSL_LINE(w, "int c_rest = %s;", glsl_plus(w, glsl_times_literal(w, it->step, round / size), runs));
            rest = "c_rest";
        } else {
            if (n > 0) text = GLSL_STRING(w, "(%s %% %lld)", text, (long long)size);
            if (last) text = glsl_times_literal(w, text, it->group);
            GLSL_LINE(w, "int c_%s = %s;", w->axis_name[a], text);
            below *= size;
        }
        it->coord[a] = GLSL_STRING(w, "c_%s", w->axis_name[a]);
    }
}

void glsl_walk_open(glsl_writer *w, glsl_iter *it, const smg_instr *walk) {
    smg_layout elements = smg_kernel_walk(w->k, walk);
    smg_layout groups = smg_layout_groups(&elements, SMG_WALK_AXIS, smg_walk_width(walk));
    int64_t steps = smg_layout_registers(&groups), span = smg_layout_span(&groups, SMG_WALK_AXIS);
    int64_t total = smg_tile_elements(w->k, &w->k->tiles.items[walk->dst]) / smg_walk_width(walk);
    it->group = smg_walk_width(walk);
    it->step = "0";
    if (steps > 1) {
        it->step = "n";
        if (smg_kernel_steps_written(steps)) GLSL_LINE(w, "[[unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int n = 0; n < %lld; ++n)", (long long)steps));
        it->inner_braces++;
    }
    const char *lane = glsl_local_part(w, &groups, SMG_WALK_AXIS);
    GLSL_LINE(w, "int e = %s;", glsl_plus(w, glsl_register_part(w, &groups, SMG_WALK_AXIS, it->step), lane));
    if (span > total) {
        glsl_open(w, GLSL_STRING(w, "if (e < %lld)", (long long)total));
        it->inner_braces++;
    }
    split_walk(w, it, walk, lane, span / steps);
    for (int n = 0; n < walk->axis_count; n++) emit_valid(w, it, walk->axes[n]);
    for (int n = 0; n < walk->axis_count; n++)
        if (w->k->axes.items[walk->axes[n]].tile > 1) it->inner_axes[it->inner_count++] = walk->axes[n];
}

void glsl_walk_close(glsl_writer *w, glsl_iter *it) {
    glsl_inner_close(w, it);
}

void glsl_split_k(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *k) {
    int64_t below = 1;
    for (int n = instr->axis_count - 1; n >= 0; n--) {
        int a = instr->axes[n];
        int64_t size = w->k->axes.items[a].tile;
        const char *text = below > 1 ? GLSL_STRING(w, "(%s / %lld)", k, (long long)below) : k;
        if (n > 0) text = GLSL_STRING(w, "(%s %% %lld)", text, (long long)size);
        it->coord[a] = text;
        below *= size;
    }
}

void glsl_row_coordinates(glsl_writer *w, glsl_iter *it) {
    for (int n = 0; n < it->outer_count; n++) {
        int axis = it->outer_axes[n];
        int64_t tile = w->k->axes.items[axis].tile;
        const char *row =
            glsl_plus(w, glsl_register_part(w, &it->outer, axis, it->i), glsl_lane_part(w, &it->layout, axis));
        if (smg_layout_span(&it->layout, axis) > tile) row = GLSL_STRING(w, "min(%s, %lld)", row, (long long)tile - 1);
        GLSL_LINE(w, "int c_%s = %s;", w->axis_name[axis], row);
        it->coord[axis] = GLSL_STRING(w, "c_%s", w->axis_name[axis]);
    }
}
