/* glsl_store.c: STORE. Lanes that hold copies share out the rows. */
#include "glsl_private.h"

/* What the lane owns of one outer register: by elements, or by groups along the run axis, whose members are
 * valid together. */
static void store_inner(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int group) {
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    int run = group > 1 ? instr->wide[0].axis : -1;
    const char *part[4];
    it->j_step = group;
    glsl_inner_open(w, it);
    const char *valid = glsl_all_valid(w, it, instr->axes, instr->axis_count);
    if (valid != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", valid));
    if (group == 1) glsl_store(w, it, instr->a, glsl_expr_text(w, it, instr->expr), kind);
    const char *first = run >= 0 ? it->coord[run] : NULL, *j = it->j;
    for (int m = 0; m < group && group > 1; m++) {
        if (m > 0) {
            it->coord[run] = GLSL_STRING(w, "(%s + %d)", first, m);
            it->j = GLSL_STRING(w, "(%s + %d)", j, m);
        }
        part[m] = glsl_convert(w, glsl_expr_text(w, it, instr->expr), kind, SMG_KIND_FLOAT);
        glsl_expr_forget(w, it);
    }
    it->j = j;
    if (group > 1) {
        it->coord[run] = first;
        const char *value = group == SMG_PAIR
                                ? GLSL_STRING(w, "vec2(%s, %s)", part[0], part[1])
                                : GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]);
        glsl_store_group(w, it, instr->a, group, value);
    }
    if (valid != NULL) glsl_close(w);
    glsl_inner_close(w, it);
    it->j_step = 1;
}

/* Whose turn it is stands around the loop over rows: drivers do not write out a loop with such a condition inside, and
 * sums that it counts through then lie in local memory instead of registers. */
static void store_outer(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int group) {
    int sharers = glsl_sharers(w, it);
    it->i_step = sharers;
    for (int copy = 0; copy < sharers; copy++) {
        const char *turn = glsl_sharer(w, it, copy);
        it->i_first = copy;
        if (turn != NULL) glsl_open(w, GLSL_STRING(w, "%sif (%s)", copy > 0 ? "else " : "", turn));
        glsl_outer_open(w, it);
        store_inner(w, it, instr, group);
        glsl_outer_close(w, it);
        if (turn != NULL) glsl_close(w);
        glsl_expr_forget(w, it);
    }
    it->i_first = 0;
    it->i_step = 1;
}

void glsl_write_store(glsl_writer *w, const smg_instr *instr) {
    const smg_access *access = &w->k->accesses.items[instr->a];
    glsl_iter it;
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    if (access->index != SMG_EXPR_NONE) glsl_expr_prepare(w, &it, access->index);
    it.access_used[instr->a] = true;
    const char *whole = instr->matrices ? glsl_whole(w, instr, instr->a) : NULL;
    if (instr->matrices) {
        glsl_store_matrices(w, instr, whole);
        if (whole == NULL) return;
        GLSL_LINE(w, "else");
    }
    const char *once = glsl_once_a_copy(w, &it), *condition = NULL;
    glsl_open(w, once == NULL ? "" : GLSL_STRING(w, "if (%s)", once));
    glsl_hoist(w, &it);
    bool groups = instr->wide[0].width > 0 && !instr->matrices;
    if (groups) condition = glsl_aligned(w, instr->a, instr->wide[0]);
    if (condition != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    if (groups) store_outer(w, &it, instr, instr->wide[0].width);
    if (condition != NULL) {
        glsl_close(w);
        glsl_open(w, "else");
    }
    if (!groups || condition != NULL) store_outer(w, &it, instr, 1);
    if (condition != NULL) glsl_close(w);
    glsl_close(w);
}
