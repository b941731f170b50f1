/* glsl_code.c: the kernel's instructions in their order, the simple ones whole. Each becomes one
 * block under its note. */
#include "glsl_private.h"

static void write_set(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    glsl_iter it;
    if (smg_matrix_hides(w->k, dst)) {
        glsl_set_matrices(w, instr);
        return;
    }
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_expr_prepare(w, &it, instr->expr);
    const char *whole = instr->matrices ? glsl_whole(w, instr, smg_kernel_plain_load(w->k, instr->expr)) : NULL;
    if (instr->matrices) {
        glsl_load_matrices(w, instr, whole);
        if (whole == NULL) return;
        GLSL_LINE(w, "else");
    }
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_outer_open(w, &it);
    if (smg_kernel_plain_load(w->k, instr->expr) >= 0 && dst->fragments == SMG_FRAGMENTS_NONE) {
        const smg_kleaf *load = &w->k->leaves.items[smg_expr_get(w->k->exprs, instr->expr)->leaf];
        const char *array = GLSL_STRING(w, "t_%s", w->tile_name[instr->dst]);
        glsl_load_inner(w, &it, load, instr->wide[0], array, smg_tile_kind(dst));
    } else {
        glsl_set_inner(w, &it, instr);
    }
    glsl_outer_close(w, &it);
    glsl_report(w, &it);
    glsl_close(w);
}

/* One element, or the four from it on along the lane's run. */
static void spill_step(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst], *from = &w->k->tiles.items[instr->a];
    const char *part[4], *j = it->j, *zero = glsl_zero(smg_tile_kind(dst));
    int run = instr->wide[0].axis;
    for (int m = 0; m < it->j_step; m++) {
        const char *valid = glsl_all_valid(w, it, from->axis, from->axis_count);
        if (m > 0 && it->valid[run] != NULL)
            valid = glsl_both(w, valid, glsl_valid_text(w, run, GLSL_STRING(w, "%s + %d", it->coord[run], m)));
        if (m > 0) it->j = GLSL_STRING(w, "(%s + %d)", j, m);
        part[m] = glsl_convert(w, glsl_tile_element(w, it, instr->a), smg_tile_kind(from), smg_tile_kind(dst));
        if (valid != NULL) part[m] = GLSL_STRING(w, "%s ? %s : %s", valid, part[m], zero);
    }
    it->j = j;
    if (it->j_step == 4) {
        const char *value = GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]);
        value = glsl_group_memory(w, dst->type, SMG_WIDE, value);
        GLSL_LINE(w, "%s = %s;", glsl_tile_group(w, it, instr->dst), value);
    } else {
        part[0] = glsl_element_memory(w, dst->type, part[0]);
        GLSL_LINE(w, "%s = %s;", glsl_tile_element(w, it, instr->dst), part[0]);
    }
}

static void write_spill(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *from = &w->k->tiles.items[instr->a];
    glsl_iter it;
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_check_axes(&it, from->axis, from->axis_count);
    if (instr->matrices) {
        const char *whole = glsl_whole(w, instr, -1);
        glsl_spill_matrices(w, instr, whole);
        if (whole == NULL) return;
        GLSL_LINE(w, "else");
    } else if (instr->wide[0].width > 0) {
        it.j_step = instr->wide[0].width;
    }
    const char *once = glsl_once(w, &it);
    glsl_open(w, once == NULL ? "" : GLSL_STRING(w, "if (%s)", once));
    glsl_outer_open(w, &it);
    glsl_inner_open(w, &it);
    spill_step(w, &it, instr);
    glsl_inner_close(w, &it);
    glsl_outer_close(w, &it);
    glsl_close(w);
}

/* ---- loops -------------------------------------------------------------------------------------- */

/* Does a step ask in front of its body whether another one follows? Where lanes are the elements of a vector register
 * the answer becomes a mask for all that a step changes, and the number of the step passes through memory: asked behind
 * the body, both are waited for with nothing else to do (a tenth of a product's time, bench/NOTES.md). */
static bool asks_early(const glsl_writer *w, const smg_instr *loop) {
    return w->k->numbered && loop->unroll < 0;
}

static void open_early(glsl_writer *w, int at, const char *name, int64_t by) {
    const char *first = glsl_loop_first(w, at), *end = glsl_loop_end(w, at);
    glsl_open(w, "");
    GLSL_LINE(w, "int next_%s = %s;", name, first);
    GLSL_LINE(w, "bool more_%s = next_%s < %s;", name, name, end);
    GLSL_LINE(w, "[[dont_unroll]]");
    glsl_open(w, GLSL_STRING(w, "while (more_%s)", name));
    GLSL_LINE(w, "int at_%s = next_%s;", name, name);
    GLSL_LINE(w, "next_%s += %lld;", name, (long long)by);
    GLSL_LINE(w, "more_%s = next_%s < %s;", name, name, end);
}

static void write_loop(glsl_writer *w, const smg_instr *instr, int at) {
    int a = instr->axes[0];
    const smg_kaxis *axis = &w->k->axes.items[a];
    const char *name = w->axis_name[a];
    glsl_range(w, at);
    int64_t by = axis->tile * (instr->unroll > 1 ? instr->unroll : 1);
    w->looped[a] = true;
    w->open[a] = at;
    if (asks_early(w, instr)) {
        open_early(w, at, name, by);
        return;
    }
    if (instr->unroll != 0) GLSL_LINE(w, instr->unroll == 1 ? "[[unroll]]" : "[[dont_unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int at_%s = %s; at_%s < %s; at_%s += %lld)", name, glsl_loop_first(w, at), name,
                             glsl_loop_end(w, at), name, (long long)by));
}

/* Returns where to go on: behind the loop, or at its body for the next of the steps that are written out. */
static int write_end(glsl_writer *w, int at) {
    int loop = smg_kernel_loop_around(w->k, at);
    if (loop < 0) {
        glsl_fail(w, SMG_INTERNAL, "an end without a loop");
        return at + 1;
    }
    int axis = w->k->code.items[loop].axes[0];
    if (++w->copy[axis] < w->k->code.items[loop].unroll) return loop + 1;
    w->copy[axis] = 0;
    w->looped[axis] = false;
    glsl_close(w);
    if (asks_early(w, &w->k->code.items[loop])) glsl_close(w);
    return at + 1;
}

static void write_barrier(glsl_writer *w, const smg_instr *instr) {
    bool subgroup = instr->scope == SMG_SCOPE_SUBGROUP;
    if (subgroup) w->uses[GLSL_USE_SUBGROUP] = true;
    GLSL_LINE(w, subgroup ? "subgroupBarrier();" : "barrier();");
}

static void write_instr(glsl_writer *w, const smg_instr *instr, int at) {
    if (instr->note != NULL && instr->note[0] != 0 && instr->kind != SMG_I_END)
        GLSL_LINE(w, "// %s", glsl_comment(w, instr->note));
    switch (instr->kind) {
    case SMG_I_SET:
        if (smg_instr_ahead_axis(w->k, instr) >= 0)
            glsl_set_ahead(w, instr, at);
        else
            write_set(w, instr);
        break;
    case SMG_I_REDUCE: glsl_reduce(w, instr); break;
    case SMG_I_STAGE: glsl_stage(w, instr, at); break;
    case SMG_I_FETCH: glsl_fetch(w, instr, at); break;
    case SMG_I_PUT: glsl_put(w, instr, at); break;
    case SMG_I_SPILL: write_spill(w, instr); break;
    case SMG_I_TAKE: glsl_take(w, instr, at); break;
    case SMG_I_MMA: glsl_mma(w, instr); break;
    case SMG_I_JOIN: glsl_join(w, instr); break;
    case SMG_I_LEAVE: glsl_leave(w, instr); break;
    case SMG_I_FOLD: glsl_fold(w, instr); break;
    case SMG_I_GATHER: glsl_gather(w, instr); break;
    case SMG_I_STORE: glsl_write_store(w, instr); break;
    case SMG_I_LOOP: write_loop(w, instr, at); break;
    case SMG_I_END: break; /* glsl_code's */
    case SMG_I_BARRIER: write_barrier(w, instr); break;
    }
}

void glsl_code(glsl_writer *w) {
    for (int i = 0; i < w->k->code.count && w->status == SMG_OK;) {
        const smg_instr *in = &w->k->code.items[i];
        int behind = glsl_load_runs(w, i);
        if (behind > i) {
            i = behind;
            continue;
        }
        write_instr(w, in, i);
        i = in->kind == SMG_I_END ? write_end(w, i) : i + 1;
    }
}
