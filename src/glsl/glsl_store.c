/* glsl_store.c: STORE. What the stored expression loads is loaded first, for all of the lane's elements, so that the
 * loads are under way together; then elements are computed and stored. Copies in depth lanes share out the rows. */
#include "glsl_private.h"

#define EARLY_REGISTERS 96 /* at most, that loads ahead of the stores take */

typedef struct early_loads {
    glsl_writer *w;
    glsl_iter *it; /* of the store */
    const smg_instr *instr;
    int registers; /* taken so far */
} early_loads;

static bool has(const int *axes, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

/* The axes of the store that the access has: what an early load ranges over. */
static int own_axes(const smg_kernel *k, const smg_access *access, const smg_instr *instr, int *out_axes,
                    bool *out_all) {
    int count = 0;
    *out_all = true;
    for (int i = 0; i < instr->axis_count; i++) {
        bool own = has(access->axis, access->axis_count, instr->axes[i]);
        if (own)
            out_axes[count++] = instr->axes[i];
        else if (instr->axes[i] != k->row_axis && k->axes.items[instr->axes[i]].tile > 1)
            *out_all = false;
    }
    return count;
}

/* Which copies of a row's element store it: rows are dealt out over the depth lanes where they come out even. */
static const char *depth_share(glsl_writer *w, const glsl_iter *it) {
    int depth = w->k->lane_depth;
    if (depth == 1) return NULL;
    if (it->row_registers > 1 && it->row_registers % depth == 0) return GLSL_STRING(w, "i %% %d == depth_lane", depth);
    return "depth_lane == 0";
}

/* Half of what the tiles leave: addresses and values in between need the other half. */
static int64_t early_room(const glsl_writer *w) {
    int64_t room = (w->target->registers_lane - smg_kernel_registers(w->k)) / 2;
    return room < EARLY_REGISTERS ? room : EARLY_REGISTERS;
}

static void load_early(void *user, int leaf) {
    early_loads *e = user;
    glsl_writer *w = e->w;
    const smg_kleaf *f = &w->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || e->it->early[f->index] != NULL || w->status != SMG_OK) return;
    const smg_access *access = &w->k->accesses.items[f->index];
    int axes[SMG_TILE_AXES];
    bool all_columns;
    int count = own_axes(w->k, access, e->instr, axes, &all_columns);
    if (access->index != SMG_EXPR_NONE || w->k->buffers.items[access->buffer].written) return;
    glsl_iter it;
    glsl_iter_init(w, &it, axes, count);
    if (w->status != SMG_OK) return;
    glsl_iter_finish(w, &it);
    int registers = it.row_registers * it.column_registers;
    if ((it.columns > 1 && !all_columns) || e->registers + registers > early_room(w)) return;
    e->registers += registers;
    smg_kind kind = smg_type_kind(w->k->buffers.items[access->buffer].type);
    const char *name = GLSL_STRING(w, "early%d", w->serial++);
    GLSL_LINE(w, "%s %s[%d];", glsl_kind(kind), name, registers);
    glsl_check_axes(&it, access->axis, access->axis_count);
    it.access_used[f->index] = true;
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_rows_open(w, &it);
    const char *share = it.row_registers > 1 || e->it->row_registers == 1 ? depth_share(w, e->it) : NULL;
    if (share != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", share));
    glsl_load_columns(w, &it, f, kind, name);
    if (share != NULL) glsl_close(w);
    glsl_rows_close(w, &it);
    glsl_close(w);
    e->it->early[f->index] = name;
}

/* The columns of one row: by elements, or by groups of four along the run axis, whose members are valid together. */
static void store_columns(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int group) {
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    int run = glsl_run_axis(w, it);
    const char *part[4];
    it->j_step = group;
    glsl_columns_open(w, it);
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
        glsl_store_group(w, it, instr->a, GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]));
    }
    if (valid != NULL) glsl_close(w);
    glsl_columns_close(w, it);
    it->j_step = 1;
}

static void store_rows(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int group) {
    glsl_rows_open(w, it);
    const char *share = depth_share(w, it);
    if (share != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", share));
    store_columns(w, it, instr, group);
    if (share != NULL) glsl_close(w);
    glsl_rows_close(w, it);
}

void glsl_write_store(glsl_writer *w, const smg_instr *instr) {
    const smg_access *access = &w->k->accesses.items[instr->a];
    glsl_iter it;
    glsl_iter_init(w, &it, instr->axes, instr->axis_count);
    if (w->status != SMG_OK) return;
    glsl_iter_finish(w, &it);
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    if (access->index != SMG_EXPR_NONE) glsl_expr_prepare(w, &it, access->index);
    it.access_used[instr->a] = true;
    const char *once = glsl_once_a_depth(w, &it), *condition = NULL;
    glsl_open(w, once == NULL ? "" : GLSL_STRING(w, "if (%s)", once));
    if (it.row_registers * it.column_registers > 1) {
        early_loads e = {.w = w, .it = &it, .instr = instr};
        smg_expr_leaves(w->k->exprs, instr->expr, load_early, &e);
    }
    glsl_hoist(w, &it);
    int run = glsl_run_axis(w, &it);
    bool groups = run >= 0 && glsl_groups_when(w, instr->a, run, &condition);
    if (condition != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    if (groups) store_rows(w, &it, instr, 4);
    if (condition != NULL) {
        glsl_close(w);
        glsl_open(w, "else");
    }
    if (!groups || condition != NULL) store_rows(w, &it, instr, 1);
    if (condition != NULL) glsl_close(w);
    glsl_close(w);
}
