/* The verifier, second part: expressions. Kinds are a matter of the expression alone and are checked once
 * a node; which leaves an instruction may read depends on its axes, on who owns their elements, and on
 * what has been written so far. */
#include "kernel/kernel_verify.h"

/* ---- kinds ----------------------------------------------------------------------------------------- */

static const smg_expr_node *argument(const kernel_verifier *v, const smg_expr_node *node, int i) {
    return smg_expr_get(v->k->exprs, node->arg[i]);
}

/* All operands from `first` on have the kind; the result has `result`. */
static bool kinds_are(const kernel_verifier *v, const smg_expr_node *node, int first, smg_kind kind, smg_kind result) {
    for (int i = first; i < smg_prim_arity(node->prim); i++)
        if (argument(v, node, i)->kind != kind) return false;
    return node->kind == result;
}

static bool kinds_good(const kernel_verifier *v, const smg_expr_node *node) {
    smg_kind first = argument(v, node, 0)->kind;
    bool number = first != SMG_KIND_BOOL;
    switch (node->prim) {
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB:
    case SMG_PRIM_MUL:
    case SMG_PRIM_DIV:
    case SMG_PRIM_MOD:
    case SMG_PRIM_NEG:
    case SMG_PRIM_ABS:
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX: return number && kinds_are(v, node, 0, first, first);
    case SMG_PRIM_LT:
    case SMG_PRIM_LE: return number && kinds_are(v, node, 0, first, SMG_KIND_BOOL);
    case SMG_PRIM_EQ: return kinds_are(v, node, 0, first, SMG_KIND_BOOL);
    case SMG_PRIM_AND:
    case SMG_PRIM_OR:
    case SMG_PRIM_NOT: return kinds_are(v, node, 0, SMG_KIND_BOOL, SMG_KIND_BOOL);
    case SMG_PRIM_ISNAN: return kinds_are(v, node, 0, SMG_KIND_FLOAT, SMG_KIND_BOOL);
    case SMG_PRIM_SELECT: return first == SMG_KIND_BOOL && kinds_are(v, node, 1, node->kind, node->kind);
    case SMG_PRIM_TO_FLOAT: return node->kind == SMG_KIND_FLOAT;
    case SMG_PRIM_TO_INT: return node->kind == SMG_KIND_INT;
    case SMG_PRIM_TO_BOOL: return node->kind == SMG_KIND_BOOL;
    default: return kinds_are(v, node, 0, SMG_KIND_FLOAT, SMG_KIND_FLOAT); /* the functions of reals */
    }
}

static smg_status check_node(kernel_verifier *v, smg_expr expr);

static smg_status check_leaf_node(kernel_verifier *v, const smg_expr_node *node) {
    const smg_kernel *k = v->k;
    if (node->leaf < 0 || node->leaf >= k->leaves.count)
        return KERNEL_WRONG(v, "an expression has leaf %d of %d", node->leaf, k->leaves.count);
    const smg_kleaf *leaf = &k->leaves.items[node->leaf];
    if (leaf->kind != node->kind)
        return KERNEL_WRONG(v, "an expression has leaf %d with kind %d, the leaf has kind %d", node->leaf,
                            (int)node->kind, (int)leaf->kind);
    if (leaf->what != SMG_KLEAF_LOAD || k->accesses.items[leaf->index].index == SMG_EXPR_NONE) return SMG_OK;
    int *state = &v->access_state[leaf->index];
    if (*state == 1) return KERNEL_WRONG(v, "the index of access %d depends on itself", leaf->index);
    if (*state == 2) return SMG_OK;
    *state = 1;
    SMG_TRY(check_node(v, k->accesses.items[leaf->index].index));
    *state = 2;
    return SMG_OK;
}

/* A node counts as checked only behind its operands: a chain of accesses that closes is met again. */
static smg_status check_node(kernel_verifier *v, smg_expr expr) {
    bool inside = expr >= 0 && expr < smg_expr_count(v->k->exprs);
    const smg_expr_node *node = smg_expr_get(v->k->exprs, expr);
    if (!inside || !node || (unsigned)node->prim >= SMG_PRIM_COUNT)
        return KERNEL_WRONG(v, "expression %d does not exist", (int)expr);
    if (v->checked[expr]) return SMG_OK;
    if (node->prim == SMG_PRIM_LEAF) {
        SMG_TRY(check_leaf_node(v, node));
    } else if (node->prim != SMG_PRIM_CONST) {
        for (int i = 0; i < smg_prim_arity(node->prim); i++) SMG_TRY(check_node(v, node->arg[i]));
        if (!kinds_good(v, node))
            return KERNEL_WRONG(v, "%s (expression %d) gives kind %d from operands of the wrong kinds",
                                smg_prim_word(node->prim), (int)expr, (int)node->kind);
    }
    v->checked[expr] = true;
    return SMG_OK;
}

smg_status kernel_verify_expr(kernel_verifier *v, smg_expr expr, smg_kind kind) {
    SMG_TRY(check_node(v, expr));
    smg_kind own = smg_expr_get(v->k->exprs, expr)->kind;
    if (own != kind) return KERNEL_WRONG(v, "an expression has kind %d, its place has kind %d", (int)own, (int)kind);
    return SMG_OK;
}

/* ---- readable leaves ------------------------------------------------------------------------------- */

static bool in_space(const kernel_verifier *v, int axis) {
    for (int i = 0; i < v->axis_count; i++)
        if (v->axes[i] == axis) return true;
    return false;
}

static smg_status check_axes(const kernel_verifier *v, const char *what, int number, const int *axes, int count) {
    for (int i = 0; i < count; i++) {
        const smg_kaxis *axis = &v->k->axes.items[axes[i]];
        SMG_TRY(kernel_verify_bound(v, axes[i]));
        if (axis->tile > 1 && !in_space(v, axes[i]))
            return KERNEL_WRONG(v, "%s %d runs over axis '%s', which the instruction does not", what, number,
                                axis->name);
    }
    return SMG_OK;
}

/* What is picked is there for all sizes, and in each lane that has the rest. */
static smg_status check_pick(const kernel_verifier *v, const smg_tile *tile, const smg_layout_pick *p) {
    const smg_kernel *k = v->k;
    int64_t low = 0, high = 0;
    for (int at = 0; at <= tile->axis_count; at++) {
        if (at == tile->axis_count) return KERNEL_WRONG(v, "a pick of tile '%s' along an axis it lacks", tile->name);
        if (tile->axis[at] == p->axis) break;
    }
    const smg_kaxis *axis = &k->axes.items[p->axis];
    smg_size_bounds(k->sizes, axis->extent, &low, &high);
    if (tile->residence != SMG_REGISTER || axis->grid || v->looped[p->axis])
        return KERNEL_WRONG(v, "tile '%s' is picked from along '%s', which is not held whole in registers", tile->name,
                            axis->name);
    if (p->from < 0) {
        if (p->at >= 0 && p->at < low && p->at < axis->tile) return SMG_OK;
        return KERNEL_WRONG(v, "element %lld along '%s' is picked, of %lld", (long long)p->at, axis->name,
                            (long long)low);
    }
    const smg_kaxis *from = &k->axes.items[p->from];
    if (low == axis->tile && from->tile == axis->tile && !from->grid && !v->looped[p->from]) return SMG_OK;
    return KERNEL_WRONG(v, "axis '%s' is picked from backwards along '%s', which is not as long", axis->name,
                        from->name);
}

static smg_status check_picks(const kernel_verifier *v, const smg_kleaf *leaf) {
    const smg_tile *tile = &v->k->tiles.items[leaf->index];
    int rest[SMG_TILE_AXES], count = 0;
    for (int i = 0; i < leaf->pick_count; i++) {
        SMG_TRY(check_pick(v, tile, &leaf->pick[i]));
        if (leaf->pick[i].from >= 0) SMG_TRY(check_axes(v, "tile", leaf->index, &leaf->pick[i].from, 1));
    }
    for (int i = 0; i < tile->axis_count; i++)
        if (smg_kleaf_pick(leaf, tile->axis[i]) == NULL) rest[count++] = tile->axis[i];
    return check_axes(v, "tile", leaf->index, rest, count);
}

/* An element must be read in the lane that owns it. */
static smg_status check_owner(const kernel_verifier *v, const smg_kleaf *leaf) {
    const smg_tile *tile = &v->k->tiles.items[leaf->index];
    if (v->layout == NULL) return SMG_OK;
    const smg_layout *layout = &v->k->layouts.items[tile->layout];
    if (smg_layout_readable_at(layout, v->layout, leaf->pick, leaf->pick_count)) return SMG_OK;
    return KERNEL_WRONG(v, "register tile '%s' (layout %d) lies in other lanes than the instruction's elements",
                        tile->name, tile->layout);
}

static smg_status check_leaf(kernel_verifier *v, int number) {
    const smg_kernel *k = v->k;
    const smg_kleaf *leaf = &k->leaves.items[number];
    if (leaf->what == SMG_KLEAF_SIZE) return SMG_OK;
    if (leaf->what == SMG_KLEAF_TILE) {
        const smg_tile *tile = &k->tiles.items[leaf->index];
        if (tile->residence == SMG_STAGING)
            return KERNEL_WRONG(v, "an expression reads staging tile '%s'; only a put does", tile->name);
        if (tile->clamped != 0)
            return KERNEL_WRONG(v, "an expression reads tile '%s', which is clamped; only products do", tile->name);
        if (tile->residence == SMG_REGISTER && v->staging)
            return KERNEL_WRONG(v, "a stage reads register tile '%s'", tile->name);
        SMG_TRY(kernel_verify_places(v, leaf->index));
        SMG_TRY(check_picks(v, leaf));
        if (tile->residence == SMG_REGISTER) SMG_TRY(check_owner(v, leaf));
        return kernel_verify_read_tile(v, leaf->index);
    }
    const smg_access *access = &k->accesses.items[leaf->index];
    SMG_TRY(check_axes(v, "access", leaf->index, access->axis, access->axis_count));
    if (leaf->what != SMG_KLEAF_LOAD) return SMG_OK;
    SMG_TRY(kernel_verify_load(v, leaf->index));
    return access->index != SMG_EXPR_NONE ? kernel_verify_reads(v, access->index) : SMG_OK;
}

/* Visits each node once an instruction; the indices of accesses belong to it. */
smg_status kernel_verify_reads(kernel_verifier *v, smg_expr expr) {
    if (v->visited[expr] == v->visit) return SMG_OK;
    v->visited[expr] = v->visit;
    const smg_expr_node *node = smg_expr_get(v->k->exprs, expr);
    if (node->prim == SMG_PRIM_LEAF) return check_leaf(v, node->leaf);
    for (int i = 0; i < smg_prim_arity(node->prim); i++) SMG_TRY(kernel_verify_reads(v, node->arg[i]));
    return SMG_OK;
}
