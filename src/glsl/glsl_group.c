/* glsl_group.c: neighbours at once, where the program takes them so. What is not known before the run (strides by a
 * sequence's length) is asked at run time, once, of uniform values, in front of both ways. */
#include "glsl_private.h"

const char *glsl_aligned(glsl_writer *w, int a, smg_wide wide) {
    smg_size asked[SMG_ACCESS_AXES + 2];
    int count = smg_access_asked(w->k, a, wide, asked);
    const char *condition = NULL;
    for (int i = 0; i < count; i++) {
        const char *whole = GLSL_STRING(w, "(%s & %d) == 0", glsl_size(w, asked[i]), wide.width - 1);
        condition = glsl_both(w, condition, glsl_unless_even(w, asked[i], wide.width, whole));
    }
    return condition;
}

/* The buffer's elements by groups: "w_x". */
static const char *memory_of(glsl_writer *w, int buffer, int width) {
    bool pair = width == SMG_PAIR, eight = width == SMG_WIDEST;
    (pair ? w->buffer_pair : eight ? w->buffer_eight : w->buffer_wide)[buffer] = true;
    return GLSL_STRING(w, "%s_%s", pair ? "p" : eight ? "e" : "w", w->buffer_name[buffer]);
}

/* Where the group at hand begins, in groups. Every part of the address is a multiple of the width, which no driver
 * sees in a sum. So what lanes add is divided by itself, once for all registers, and a register adds a number. Parts of
 * blocks and of an index from data do not add up. */
static const char *group_place(glsl_writer *w, glsl_iter *it, int a, int width, const char **io_valid) {
    const smg_access *access = &w->k->accesses.items[a];
    bool blocked = smg_kbuffer_is_blocked(&w->k->buffers.items[access->buffer]);
    int shift = smg_log2(width);
    if (it->start[a] == NULL) return "0"; /* memory is out */
    if (access->index != SMG_EXPR_NONE || blocked || it->group > 1)
        return GLSL_STRING(w, "(%s) >> %d", glsl_indexed_address(w, it, a, io_valid), shift);
    const char *lanes = it->start[a], *registers = NULL;
    for (int n = 0; n < access->axis_count; n++) {
        int axis = access->axis[n];
        bool outer = glsl_is_outer(it, axis);
        const char *own = glsl_register_part(w, outer ? &it->outer : &it->inner, axis, outer ? it->i : it->j);
        const char *lane = glsl_lane_part(w, &it->layout, axis);
        if (strchr(own, ' ') != NULL) own = GLSL_STRING(w, "(%s)", own);
        if (strcmp(lane, "0") != 0) lanes = glsl_plus(w, lanes, glsl_address_part(w, access, axis, lane));
        if (strcmp(own, "0") == 0) continue;
        const char *part = GLSL_STRING(w, "((%s) >> %d)", glsl_address_part(w, access, axis, own), shift);
        registers = registers == NULL ? part : GLSL_STRING(w, "%s + %s", registers, part);
    }
    if (registers == NULL) return GLSL_STRING(w, "(%s) >> %d", lanes, shift);
    return GLSL_STRING(w, "((%s) >> %d) + %s", lanes, shift, registers);
}

/* The name of a local: the group at hand, as the type. */
static const char *load_group(glsl_writer *w, glsl_iter *it, int a, smg_type as) {
    const smg_access *access = &w->k->accesses.items[a];
    int number = w->serial++;
    int width = it->group == SMG_WIDEST ? SMG_WIDEST : it->j_step == SMG_PAIR ? SMG_PAIR : SMG_WIDE;
    const char *words = it->alike[a] ? glsl_groups_at(w, access->buffer, width) : memory_of(w, access->buffer, width);
    const char *valid = glsl_all_valid(w, it, access->axis, access->axis_count);
    const char *address = group_place(w, it, a, width, &valid);
    valid = glsl_named_condition(w, valid, number);
    GLSL_LINE(w, "int a%d = %s;", number, address);
    address = GLSL_STRING(w, valid != NULL ? "%s ? a%d : 0" : "%sa%d", valid != NULL ? valid : "", number);
    const char *memory = GLSL_STRING(w, "%s[%s]", words, address);
    memory = glsl_buffer_group_as(w, w->k->buffers.items[access->buffer].type, as, width, memory);
    GLSL_LINE(w, "%s v%d = %s;", glsl_local_word(w, as, width), number, memory);
    const char *name = GLSL_STRING(w, "v%d", number);
    if (valid != NULL) GLSL_LINE(w, "%s = %s ? %s : %s;", name, valid, name, glsl_zero_memory(w, as, width));
    return name;
}

typedef struct group_loads {
    glsl_writer *w;
    glsl_iter *it;
    smg_wide wide;
} group_loads;

static void load_if_group(void *user, int leaf) {
    group_loads *s = user;
    const smg_kleaf *f = &s->w->k->leaves.items[leaf];
    if (!smg_kernel_loads_groups(s->w->k, leaf, s->wide)) return;
    if (s->it->vector[f->index] == NULL) s->it->vector[f->index] = load_group(s->w, s->it, f->index, SMG_TYPE_F32);
}

void glsl_load_groups(glsl_writer *w, glsl_iter *it, smg_expr expr, smg_wide wide) {
    group_loads s = {.w = w, .it = it, .wide = wide};
    smg_expr_leaves(w->k->exprs, expr, load_if_group, &s);
}

void glsl_forget_groups(glsl_writer *w, glsl_iter *it) {
    for (int a = 0; a < w->k->accesses.count; a++) it->vector[a] = NULL;
}

void glsl_set_inner(glsl_writer *w, glsl_iter *it, const smg_instr *set) {
    const smg_tile *dst = &w->k->tiles.items[set->dst];
    int run = set->wide[0].axis;
    bool groups = set->wide[0].width > 0 && dst->fragments == SMG_FRAGMENTS_NONE; /* factors have runs of their own */
    it->j_step = groups ? set->wide[0].width : 1;
    glsl_inner_open(w, it);
    const char *first = groups ? it->coord[run] : NULL, *j = it->j;
    if (groups) glsl_load_groups(w, it, set->expr, set->wide[0]);
    for (it->member = 0; it->member < it->j_step; it->member++) {
        if (it->member > 0) {
            glsl_expr_forget(w, it);
            it->coord[run] = GLSL_STRING(w, "(%s + %d)", first, it->member);
            it->j = GLSL_STRING(w, "(%s + %d)", j, it->member);
        }
        const char *value = glsl_expr_text(w, it, set->expr);
        value = glsl_convert(w, value, smg_expr_get(w->k->exprs, set->expr)->kind, smg_tile_kind(dst));
        value = glsl_register_element(w, dst, glsl_element_memory(w, dst->type, value));
        GLSL_LINE(w, "%s = %s;", glsl_tile_element(w, it, set->dst), value);
    }
    if (groups) it->coord[run] = first;
    it->j = j;
    it->member = 0;
    glsl_forget_groups(w, it);
    glsl_inner_close(w, it);
    it->j_step = 1;
}

const char *glsl_load_memory(glsl_writer *w, glsl_iter *it, int a) {
    const smg_access *access = &w->k->accesses.items[a];
    smg_type type = w->k->buffers.items[access->buffer].type;
    if (it->group > 1) return load_group(w, it, a, type);
    int number = w->serial++;
    w->buffer_read[access->buffer] = w->buffer_words[access->buffer] = w->uses[GLSL_USE_16BIT] = true;
    const char *valid = glsl_named_condition(w, glsl_all_valid(w, it, access->axis, access->axis_count), number);
    const char *address = glsl_address(w, it, a);
    if (valid != NULL) address = GLSL_STRING(w, "%s ? %s : 0", valid, address);
    GLSL_LINE(w, "%s v%d = g_%s[%s];", glsl_element_word(w, type), number, w->buffer_name[access->buffer], address);
    const char *name = GLSL_STRING(w, "v%d", number);
    if (valid != NULL) GLSL_LINE(w, "%s = %s ? %s : %s;", name, valid, name, glsl_zero_memory(w, type, 1));
    return name;
}

void glsl_store_group(glsl_writer *w, glsl_iter *it, int a, int width, const char *value) {
    int buffer = w->k->accesses.items[a].buffer;
    const char *memory = glsl_buffer_group_memory(w, w->k->buffers.items[buffer].type, width, value);
    const char *words = memory_of(w, buffer, width);
    GLSL_LINE(w, "%s[%s] = %s;", words, group_place(w, it, a, width, NULL), memory);
}

/* Registers j.. of the array: one, or those of a group. */
static void load_step(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_kind kind, const char *array) {
    smg_kleaf typed = *leaf;
    typed.kind = kind;
    glsl_inner_open(w, it);
    if (it->j_step > 1) it->vector[leaf->index] = load_group(w, it, leaf->index, SMG_TYPE_F32);
    const char *place = glsl_register_place(w, it, &it->layout);
    for (it->member = 0; it->member < it->j_step; it->member++) {
        const char *at = it->member > 0 ? GLSL_STRING(w, "%s + %d", place, it->member) : place;
        GLSL_LINE(w, "%s[%s] = %s;", array, at, glsl_load(w, it, &typed));
    }
    it->vector[leaf->index] = NULL;
    it->member = 0;
    glsl_inner_close(w, it);
}

void glsl_load_inner(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_wide wide, const char *array,
                     smg_kind kind) {
    const char *condition = wide.width > 0 ? glsl_aligned(w, leaf->index, wide) : NULL;
    if (condition != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    it->j_step = wide.width > 0 ? wide.width : 1;
    load_step(w, it, leaf, kind, array);
    it->j_step = 1;
    if (condition == NULL) return;
    glsl_close(w);
    glsl_open(w, "else");
    load_step(w, it, leaf, kind, array);
    glsl_close(w);
}
