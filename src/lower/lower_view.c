/* Operands of a product that are read where they lie in memory. Where the lanes of a core are the elements of one
 * vector register, a way through shared memory costs what it costs to read memory, and barriers besides; a row's
 * elements are then read once for all lanes, and neighbouring columns as one register. Where each element is used for
 * few results, shared memory has nothing to share. Both ask for operands that are plain loads and for lanes that read
 * neighbours; what checks for ends costs a CPU too much, so there only rows may end early. */
#include "lower/lower_internal.h"

static bool is_float(const lowering *l, const smg_access *access) {
    return smg_type_kind(l->k->buffers.items[access->buffer].type) == SMG_KIND_FLOAT;
}

static bool in_blocks(const lowering *l, const smg_access *access) {
    return smg_kbuffer_is_blocked(&l->k->buffers.items[access->buffer]);
}

static bool comes_out_even(const lowering *l, int axis) {
    int64_t extent, tile = l->s->tile[axis];
    if (tile == 1) return true;
    return smg_size_is_const(l->g->sizes, l->space->axes.items[axis].extent, &extent) && extent % tile == 0;
}

static bool even(const lowering *l, const smg_access *access, int rows) {
    for (int a = 0; a < access->axis_count; a++)
        if (access->axis[a] != rows && !comes_out_even(l, access->axis[a])) return false;
    return true;
}

/* Blocks of several rows are those of lanes that read a row each. Those of one (panels) have all columns that a
 * subgroup reads at once, and none of these ends early. */
static bool is_in_reach(const lowering *l, const smg_access *access) {
    if (!in_blocks(l, access)) return true;
    const int *block = l->k->buffers.items[access->buffer].block;
    return block[0] == 1 && block[1] % l->s->subgroup == 0 && even(l, access, -1);
}

int lower_plain_load(const lowering *l, smg_expr operand) {
    int number = smg_kernel_plain_load(l->k, operand);
    if (number < 0 || smg_expr_get(l->k->exprs, operand)->kind != SMG_KIND_FLOAT) return -1;
    const smg_access *access = &l->k->accesses.items[number];
    return access->index == SMG_EXPR_NONE && is_float(l, access) && is_in_reach(l, access) ? number : -1;
}

static bool neighbours(const lowering *l, const smg_access *access, int axis) {
    for (int a = 0; a < access->axis_count; a++)
        if (access->axis[a] == axis) return smg_size_is_one(l->g->sizes, access->stride[a]);
    return false;
}

bool lower_view_operands(lowering *l, smg_expr left, smg_expr right, int unit_axis, int k, int *out_left,
                         int *out_right) {
    *out_left = lower_plain_load(l, left);
    *out_right = lower_plain_load(l, right);
    if (*out_left < 0 || *out_right < 0 || unit_axis == l->s->row_axis) return false;
    const smg_access *a = &l->k->accesses.items[*out_left], *b = &l->k->accesses.items[*out_right];
    if (in_blocks(l, a)) return false;
    if (!l->s->guarded && (!even(l, a, l->s->row_axis) || !even(l, b, -1))) return false;
    return l->s->depth_near ? neighbours(l, a, k) && neighbours(l, b, k) : neighbours(l, b, unit_axis);
}

void lower_panels(lower_sized *l) {
    const smg_kernel *k = l->k;
    int down, along;
    for (int i = 0; i < k->tiles.count; i++) {
        const smg_tile *t = &k->tiles.items[i];
        if (t->residence != SMG_VIEW) continue;
        const smg_access *access = &k->accesses.items[t->access];
        if (smg_kbuffer_is_blocked(&k->buffers.items[access->buffer]) &&
            !smg_access_by_blocks(k, access, &down, &along))
            l->refused = "a factor is not read by whole panels";
    }
}
