/* glsl_group.c: four neighbours at once. Where four elements along one axis lie side by side in a buffer, and everything
 * else that moves the address moves it by fours, they are one aligned 16-byte group: a quarter of the instructions. What
 * is not known before the run (strides by a sequence's length) is asked at run time, once, of uniform values. */
#include "glsl_private.h"

/* Is the size a multiple of four? Where only the run can tell, it joins *io_unknown. */
static bool by_four(glsl_writer *w, smg_size size, const char **io_unknown) {
    smg_size quotient;
    int64_t value;
    if (smg_size_divide_exact(w->k->sizes, size, smg_size_const(w->k->sizes, 4), &quotient)) return true;
    if (io_unknown == NULL || smg_size_is_const(w->k->sizes, size, &value)) return false;
    const char *text = glsl_size(w, size);
    if (*io_unknown == NULL) *io_unknown = text;
    else if (strstr(*io_unknown, text) == NULL) *io_unknown = GLSL_STRING(w, "%s | %s", *io_unknown, text);
    return true;
}

/* Four neighbours along `axis` are one aligned group when they are neighbours in memory and everything else that moves
 * the address moves it by fours. */
static bool groups(glsl_writer *w, int a, int axis, const char **io_unknown) {
    const smg_access *access = &w->k->accesses.items[a];
    const smg_kaxis *along = &w->k->axes.items[axis];
    bool unit = false;
    if (access->buffer < 0 || w->k->buffers.items[access->buffer].type != SMG_TYPE_F32) return false;
    if (access->index != SMG_EXPR_NONE || along->tile % 4 != 0) return false;
    if (!by_four(w, access->offset, io_unknown) || !by_four(w, along->extent, io_unknown)) return false;
    for (int n = 0; n < access->axis_count; n++) {
        int64_t stride = 0;
        bool one = smg_size_is_const(w->k->sizes, access->stride[n], &stride) && stride == 1;
        if (access->axis[n] == axis && one) unit = true;
        else if (!by_four(w, access->stride[n], io_unknown)) return false;
    }
    return unit;
}

bool glsl_groups(glsl_writer *w, int a, int axis) {
    const smg_access *access = &w->k->accesses.items[a];
    return access->buffer >= 0 && !w->k->buffers.items[access->buffer].written && groups(w, a, axis, NULL);
}

bool glsl_groups_when(glsl_writer *w, int a, int axis, const char **out_condition) {
    const char *unknown = NULL;
    *out_condition = NULL;
    if (!groups(w, a, axis, &unknown)) return false;
    if (unknown != NULL) *out_condition = GLSL_STRING(w, "((%s) & 3) == 0", unknown);
    return true;
}

void glsl_load_group(glsl_writer *w, glsl_iter *it, int a) {
    const smg_access *access = &w->k->accesses.items[a];
    int number = w->serial++;
    w->buffer_wide[access->buffer] = true;
    const char *valid = glsl_named_condition(w, glsl_all_valid(w, it, access->axis, access->axis_count), number);
    const char *address = glsl_address(w, it, a);
    GLSL_LINE(w, "int a%d = (%s) >> 2;", number, address);
    address = GLSL_STRING(w, valid != NULL ? "%s ? a%d : 0" : "%sa%d", valid != NULL ? valid : "", number);
    GLSL_LINE(w, "vec4 v%d = w_%s[%s];", number, w->buffer_name[access->buffer], address);
    it->vector[a] = GLSL_STRING(w, "v%d", number);
    if (valid != NULL) GLSL_LINE(w, "%s = %s ? %s : vec4(0.0);", it->vector[a], valid, it->vector[a]);
}

void glsl_store_group(glsl_writer *w, glsl_iter *it, int a, const char *value) {
    int buffer = w->k->accesses.items[a].buffer;
    w->buffer_wide[buffer] = true;
    GLSL_LINE(w, "w_%s[(%s) >> 2] = %s;", w->buffer_name[buffer], glsl_address(w, it, a), value);
}

/* Columns j.. of the array: one, or the four of a group. */
static void load_step(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_kind kind, const char *array) {
    smg_kleaf typed = *leaf;
    typed.kind = kind;
    const char *row = it->has_row ? glsl_times_literal(w, it->i, it->column_registers) : "0";
    glsl_columns_open(w, it);
    if (it->j_step == 4) glsl_load_group(w, it, leaf->index);
    const char *place = glsl_plus(w, row, it->j);
    for (it->member = 0; it->member < it->j_step; it->member++) {
        const char *at = it->member > 0 ? GLSL_STRING(w, "%s + %d", place, it->member) : place;
        GLSL_LINE(w, "%s[%s] = %s;", array, at, glsl_load(w, it, &typed));
    }
    it->vector[leaf->index] = NULL;
    it->member = 0;
    glsl_columns_close(w, it);
}

void glsl_load_columns(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_kind kind, const char *array) {
    int run = glsl_run_axis(w, it);
    const char *condition = NULL;
    bool written = w->k->buffers.items[w->k->accesses.items[leaf->index].buffer].written;
    bool by_groups = run >= 0 && !written && glsl_groups_when(w, leaf->index, run, &condition);
    if (condition != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    it->j_step = by_groups ? 4 : 1;
    load_step(w, it, leaf, kind, array);
    it->j_step = 1;
    if (condition == NULL) return;
    glsl_close(w);
    glsl_open(w, "else");
    load_step(w, it, leaf, kind, array);
    glsl_close(w);
}
