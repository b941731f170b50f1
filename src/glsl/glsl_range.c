/* glsl_range.c: where loops begin and end. A bound is the least or the greatest value of an expression over the
 * workgroup's tiles: its text has bases of axes, ends of tiles where they make it extreme, and what it reads. */
#include "glsl_private.h"

static const char *iota_extreme(glsl_writer *w, const smg_access *access, bool most) {
    const char *sum = glsl_size(w, access->offset);
    for (int i = 0; i < access->axis_count; i++) {
        int axis = access->axis[i];
        bool rises = smg_kernel_stride_sign(w->k, access->stride[i]) > 0;
        const char *at = glsl_base(w, axis);
        if (rises == most && w->k->axes.items[axis].tile > 1)
            at = glsl_plus(w, at, GLSL_STRING(w, "%lld", (long long)w->k->axes.items[axis].tile - 1));
        sum = glsl_plus(w, sum, glsl_times(w, at, access->stride[i]));
    }
    return GLSL_STRING(w, "(%s)", sum);
}

static const char *loaded(glsl_writer *w, const smg_access *access) {
    const char *at = glsl_size(w, access->offset);
    for (int i = 0; i < access->axis_count; i++)
        at = glsl_plus(w, at, glsl_times(w, glsl_base(w, access->axis[i]), access->stride[i]));
    return GLSL_STRING(w, "clamp(%s, %d, %d)", glsl_buffer_element(w, access->buffer, at), -SMG_KERNEL_BOUND_MOST,
                       SMG_KERNEL_BOUND_MOST);
}

static const char *extreme(glsl_writer *w, smg_expr bound, bool most) {
    smg_expr_node n = *smg_expr_get(w->k->exprs, bound);
    const char *x[3] = {"", "", ""};
    if (n.prim == SMG_PRIM_CONST) return glsl_constant(w, n.kind, n.value);
    if (n.prim == SMG_PRIM_LEAF) {
        const smg_kleaf *leaf = &w->k->leaves.items[n.leaf];
        if (leaf->what == SMG_KLEAF_SIZE) return glsl_size(w, leaf->size);
        if (leaf->what == SMG_KLEAF_LOAD) return loaded(w, &w->k->accesses.items[leaf->index]);
        return iota_extreme(w, &w->k->accesses.items[leaf->index], most);
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++)
        x[i] = extreme(w, n.arg[i], most != smg_kernel_bound_falls(w->k, &n, i));
    return glsl_apply(w, n.prim, x[0], x[1], x[2]);
}

void glsl_range(glsl_writer *w, int loop) {
    const smg_instr *in = &w->k->code.items[loop];
    const smg_kaxis *axis = &w->k->axes.items[in->axes[0]];
    const char *first = "0", *end = glsl_size(w, axis->extent);
    if (in->range == NULL || w->ranged[loop]) return;
    w->ranged[loop] = true;
    if (in->range->from != SMG_EXPR_NONE)
        first = GLSL_STRING(w, "max(%s, 0) / %lld * %lld", extreme(w, in->range->from, false), (long long)axis->tile,
                            (long long)axis->tile);
    if (in->range->to != SMG_EXPR_NONE) end = GLSL_STRING(w, "min(%s, %s)", extreme(w, in->range->to, true), end);
    GLSL_LINE(w, "int first_%d = %s;", loop, first);
    GLSL_LINE(w, "int end_%d = %s;", loop, end);
}

const char *glsl_loop_first(glsl_writer *w, int loop) {
    return w->k->code.items[loop].range != NULL ? GLSL_STRING(w, "first_%d", loop) : "0";
}

const char *glsl_loop_end(glsl_writer *w, int loop) {
    const smg_instr *in = &w->k->code.items[loop];
    return in->range != NULL ? GLSL_STRING(w, "end_%d", loop) : glsl_size(w, w->k->axes.items[in->axes[0]].extent);
}
