/* glsl_group.c: four neighbours at once. Where four elements along one axis lie side by side in a buffer, and
 * everything else that moves the address moves it by fours, they are one aligned 16-byte group: a quarter of the
 * instructions. What is not known before the run (strides by a sequence's length) is asked at run time, once, of
 * uniform values. */
#include "glsl_private.h"

typedef enum four_state { FOUR_NEVER, FOUR_MAYBE, FOUR_ALWAYS } four_state;

/* Is the size a multiple of four? */
static four_state by_four(const glsl_writer *w, smg_size size) {
    smg_size quotient;
    smg_size four = smg_size_const(w->k->sizes, 4);
    if (smg_size_divide_exact(w->k->sizes, size, four, &quotient)) return FOUR_ALWAYS;
    return smg_size_is_const(w->k->sizes, size, NULL) ? FOUR_NEVER : FOUR_MAYBE;
}

static void lower_state(four_state *state, four_state by) {
    if (by < *state) *state = by;
}

/* Four neighbours along `axis` are one aligned group when they are neighbours in memory and everything else that moves
 * the address moves it by fours. */
static four_state groups(const glsl_writer *w, int a, int axis) {
    const smg_access *access = &w->k->accesses.items[a];
    const smg_kaxis *along = &w->k->axes.items[axis];
    bool unit = false;
    if (access->buffer < 0 || w->k->buffers.items[access->buffer].type != SMG_TYPE_F32) return FOUR_NEVER;
    if (access->index != SMG_EXPR_NONE || along->tile % 4 != 0) return FOUR_NEVER;
    four_state state = by_four(w, access->offset);
    lower_state(&state, by_four(w, along->extent));
    for (int n = 0; n < access->axis_count; n++) {
        int64_t stride = 0;
        bool one = smg_size_is_const(w->k->sizes, access->stride[n], &stride) && stride == 1;
        if (access->axis[n] == axis && one)
            unit = true;
        else
            lower_state(&state, by_four(w, access->stride[n]));
    }
    return unit ? state : FOUR_NEVER;
}

/* What a run has to tell joins the condition. */
static void ask_four(glsl_writer *w, smg_size size, const char **io_condition) {
    if (by_four(w, size) == FOUR_ALWAYS) return;
    const char *four = glsl_unless_even(w, size, 4, GLSL_STRING(w, "(%s & 3) == 0", glsl_size(w, size)));
    if (*io_condition == NULL || strstr(*io_condition, four) == NULL) *io_condition = glsl_both(w, *io_condition, four);
}

bool glsl_groups(const glsl_writer *w, int a, int axis) {
    const smg_access *access = &w->k->accesses.items[a];
    bool written = access->buffer >= 0 && w->k->buffers.items[access->buffer].written;
    return !written && groups(w, a, axis) == FOUR_ALWAYS;
}

bool glsl_groups_when(glsl_writer *w, int a, int axis, const char **out_condition) {
    const smg_access *access = &w->k->accesses.items[a];
    *out_condition = NULL;
    if (groups(w, a, axis) == FOUR_NEVER) return false;
    ask_four(w, access->offset, out_condition);
    ask_four(w, w->k->axes.items[axis].extent, out_condition);
    for (int n = 0; n < access->axis_count; n++)
        if (access->axis[n] != axis) ask_four(w, access->stride[n], out_condition);
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

/* Registers j.. of the array: one, or the four of a group. */
static void load_step(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_kind kind, const char *array) {
    smg_kleaf typed = *leaf;
    typed.kind = kind;
    glsl_inner_open(w, it);
    if (it->j_step == 4) glsl_load_group(w, it, leaf->index);
    const char *place = glsl_register_place(w, it, &it->layout);
    for (it->member = 0; it->member < it->j_step; it->member++) {
        const char *at = it->member > 0 ? GLSL_STRING(w, "%s + %d", place, it->member) : place;
        GLSL_LINE(w, "%s[%s] = %s;", array, at, glsl_load(w, it, &typed));
    }
    it->vector[leaf->index] = NULL;
    it->member = 0;
    glsl_inner_close(w, it);
}

void glsl_load_inner(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_kind kind, const char *array) {
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
