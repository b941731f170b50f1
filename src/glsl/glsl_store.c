/* glsl_store.c: STORE. What the stored expression loads is loaded first, for all of the lane's elements, so that the
 * loads are under way together; then elements are computed and stored. Lanes that hold copies share out the rows. */
#include "glsl_private.h"

#define EARLY_REGISTERS 96 /* at most, that loads ahead of the stores take */

typedef struct early_loads {
    glsl_writer *w;
    glsl_iter *it; /* of the store */
    const smg_instr *instr;
    int registers; /* taken so far */
} early_loads;

static bool has(const smg_access *access, int axis) {
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] == axis) return true;
    return false;
}

/* The registers of the store's axes that the access has: what an early load ranges over. */
static void over_own_axes(glsl_writer *w, glsl_iter *it, const glsl_iter *store, const smg_access *access) {
    int axes[SMG_LAYOUT_AXES], outer[SMG_LAYOUT_AXES], count = 0, outer_count = 0;
    for (int i = 0; i < store->layout.axis_count; i++) {
        int axis = store->layout.axes[i].axis;
        if (!has(access, axis)) continue;
        axes[count++] = axis;
        if (glsl_is_outer(store, axis)) outer[outer_count++] = axis;
    }
    smg_layout own = smg_layout_keep(&store->layout, axes, count);
    glsl_iter_over(w, it, &own, outer, outer_count);
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
    if (access->index != SMG_EXPR_NONE || w->k->buffers.items[access->buffer].written) return;
    glsl_iter it;
    over_own_axes(w, &it, e->it, access);
    smg_layout *own = SMG_ARENA_NEW(w->arena, smg_layout);
    if (own == NULL && w->status == SMG_OK) w->status = SMG_MEMORY;
    if (w->status != SMG_OK) return;
    *own = it.layout;
    int registers = it.outer_registers * it.inner_registers;
    if (e->registers + registers > early_room(w)) return;
    e->registers += registers;
    smg_kind kind = smg_type_kind(w->k->buffers.items[access->buffer].type);
    const char *name = GLSL_STRING(w, "early%d", w->serial++);
    GLSL_LINE(w, "%s %s[%d];", glsl_kind(kind), name, registers);
    glsl_check_axes(&it, access->axis, access->axis_count);
    it.access_used[f->index] = true;
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_outer_open(w, &it);
    const char *share = it.outer_registers == e->it->outer_registers ? glsl_share(w, e->it, it.i) : NULL;
    if (share != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", share));
    smg_wide wide = {.width = SMG_WIDE, .axis = glsl_run_axis(w, &it)};
    if (wide.axis < 0 || smg_access_aligned(w->k, f->index, wide) == SMG_ALIGNED_NEVER) wide.width = 0;
    glsl_load_inner(w, &it, f, wide, name, kind);
    if (share != NULL) glsl_close(w);
    glsl_outer_close(w, &it);
    glsl_close(w);
    e->it->early[f->index] = name;
    e->it->early_layout[f->index] = own;
}

/* What the lane owns of one outer register: by elements, or by groups of four along the run axis, whose members are
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
        glsl_store_group(w, it, instr->a, GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]));
    }
    if (valid != NULL) glsl_close(w);
    glsl_inner_close(w, it);
    it->j_step = 1;
}

static void store_outer(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int group) {
    glsl_outer_open(w, it);
    const char *share = glsl_share(w, it, it->i);
    if (share != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", share));
    store_inner(w, it, instr, group);
    if (share != NULL) glsl_close(w);
    glsl_outer_close(w, it);
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
    const char *once = glsl_once_a_copy(w, &it), *condition = NULL;
    glsl_open(w, once == NULL ? "" : GLSL_STRING(w, "if (%s)", once));
    if (it.outer_registers * it.inner_registers > 1) {
        early_loads e = {.w = w, .it = &it, .instr = instr};
        smg_expr_leaves(w->k->exprs, instr->expr, load_early, &e);
    }
    glsl_hoist(w, &it);
    bool groups = instr->wide[0].width > 0;
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
