/* What is known of integer expressions of a program, as forms over its axes. */
#include "lower/lower_internal.h"

static smg_size extent_of(const void *user, int axis) {
    return ((const smg_kernel *)user)->axes.items[axis].extent;
}

static smg_affine_value leaf_value(const void *user, int leaf) {
    const smg_kernel *k = user;
    const smg_kleaf *f = &k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_SIZE) return smg_affine_of_size(f->size);
    if (f->what != SMG_KLEAF_IOTA || k->accesses.items[f->index].index != SMG_EXPR_NONE) return smg_affine_unknown;
    const smg_access *sum = &k->accesses.items[f->index];
    smg_affine_value value = smg_affine_of_size(sum->offset);
    value.range = smg_affine_unknown.range;
    for (int i = 0; i < sum->axis_count && value.known; i++)
        value.known = smg_affine_put(k->sizes, &value.form, sum->axis[i], sum->stride[i]);
    return value;
}

smg_affine_scope lower_scope(const smg_kernel *k) {
    return (smg_affine_scope){.sizes = k->sizes, .extent = extent_of, .user = k};
}

smg_affine_value lower_known(const smg_kernel *k, smg_expr expr) {
    const smg_affine_scope scope = lower_scope(k);
    const smg_affine_leaves leaves = {leaf_value, k};
    return smg_affine_eval(&scope, k->exprs, expr, &leaves);
}
