/* glsl_iter.c: which elements of one instruction an invocation goes over, and which of them are valid. Two forms: the
 * registers of a layout, outer and inner ones (i and j), and flat over all invocations (staging). */
#include "glsl_private.h"

void glsl_iter_init(glsl_writer *w, glsl_iter *it) {
    const smg_kernel *k = w->k;
    memset(it, 0, sizeof *it);
    it->coord = glsl_zeroed(w, k->axes.count, sizeof(char *));
    it->valid = glsl_zeroed(w, k->axes.count, sizeof(char *));
    it->check = glsl_zeroed(w, k->axes.count, sizeof(bool));
    it->access_used = glsl_zeroed(w, k->accesses.count, sizeof(bool));
    it->alike = glsl_zeroed(w, k->accesses.count, sizeof(bool));
    it->address = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->start = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->indexed = glsl_zeroed(w, k->accesses.count, sizeof(bool));
    it->present = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->memo = glsl_zeroed(w, smg_expr_count(k->exprs), sizeof(char *));
    it->uses = glsl_zeroed(w, smg_expr_count(k->exprs), sizeof(int));
    it->vector = glsl_zeroed(w, k->accesses.count, sizeof(char *));
    it->j_step = it->group = 1;
    it->i = it->j = "0";
    it->outer_registers = it->inner_registers = it->i_step = 1;
    if (w->status != SMG_OK) return;
    for (int a = 0; a < k->axes.count; a++) it->coord[a] = "0";
}

bool glsl_is_outer(const glsl_iter *it, int axis) {
    for (int i = 0; i < it->outer_count; i++)
        if (it->outer_axes[i] == axis) return true;
    return false;
}

void glsl_iter_over(glsl_writer *w, glsl_iter *it, const smg_layout *layout, const int *outer, int outer_count) {
    glsl_iter_init(w, it);
    it->layout = *layout;
    for (int i = 0; i < outer_count; i++) it->outer_axes[it->outer_count++] = outer[i];
    for (int i = 0; i < layout->axis_count; i++)
        if (!glsl_is_outer(it, layout->axes[i].axis)) it->inner_axes[it->inner_count++] = layout->axes[i].axis;
    it->outer = smg_layout_keep(layout, it->outer_axes, it->outer_count);
    it->inner = smg_layout_keep(layout, it->inner_axes, it->inner_count);
    it->outer_registers = (int)smg_layout_registers(&it->outer);
    it->inner_registers = (int)smg_layout_registers(&it->inner);
}

void glsl_iter_of(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(w->k, instr, outer);
    glsl_iter_over(w, it, smg_kernel_layout(w->k, instr), outer, count);
    for (int a = 0; instr->addressed && w->status == SMG_OK && a < w->k->accesses.count; a++)
        it->alike[a] = smg_kernel_loads_alike(w->k, instr, a);
}

void glsl_iter_of_sums(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(w->k, instr, outer);
    smg_layout sums = smg_layout_keep(layout, dst->axis, dst->axis_count);
    glsl_iter_over(w, it, &sums, outer, count);
    it->inner_only = true; /* the right factor has no rows */
}

void glsl_check_axes(glsl_iter *it, const int *axes, int count) {
    for (int i = 0; i < count; i++) it->check[axes[i]] = true;
}

bool glsl_always_valid(const glsl_writer *w, int axis) {
    bool whole = w->looped[axis] && smg_kernel_loop_is_whole(w->k, &w->k->code.items[w->open[axis]]);
    return whole || smg_kernel_comes_out_even(w->k, axis, w->looped[axis]);
}

const char *glsl_valid_text(glsl_writer *w, int a, const char *coord) {
    const smg_kaxis *axis = &w->k->axes.items[a];
    const char *index = glsl_plus(w, glsl_base(w, a), coord);
    const char *inside = GLSL_STRING(w, "%s < %s", index, glsl_size(w, axis->extent));
    bool stepped = axis->grid || w->looped[a]; /* a tile that covers its axis may be larger than it */
    return stepped ? glsl_unless_even(w, axis->extent, axis->tile, inside) : inside;
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
