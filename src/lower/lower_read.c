/* Values read at other elements than the reader's: the same expression at other coordinates. A load moves by its
 * strides, an index by its factors, and a register tile gives another register, because each lane has all elements
 * along an axis that is picked from. */
#include "lower/lower_internal.h"

typedef struct moving {
    lowering *l;
    const smg_sread *read;
    smg_expr *moved; /* per expression so far; SMG_EXPR_NONE: not yet */
} moving;

static smg_status move(moving *m, smg_expr expr, smg_expr *out_value);

static const smg_spick *pick_of(const moving *m, int axis) {
    for (int i = 0; i < m->read->pick_count; i++)
        if (m->read->pick[i].axis == axis) return &m->read->pick[i];
    return NULL;
}

static int64_t last_of(const lowering *l, int axis) {
    int64_t extent = 1;
    (void)smg_size_is_const(l->g->sizes, l->space->axes.items[axis].extent, &extent); /* picked axes are constant */
    return extent - 1;
}

/* What is read along one axis of the tile already, at the new coordinates; false where no pick says that. */
static bool move_pick(const moving *m, smg_layout_pick *io, bool *out_own) {
    const smg_spick *p = pick_of(m, io->from);
    *out_own = false;
    if (io->from < 0 || p == NULL) return true;
    if (p->from < 0) {
        *io = (smg_layout_pick){.axis = io->axis, .from = -1, .at = last_of(m->l, io->axis) - p->at};
        return true;
    }
    *out_own = p->from == io->axis; /* back twice */
    return *out_own;
}

static smg_status move_tile(const moving *m, smg_kleaf *io) {
    const smg_tile *tile = &m->l->k->tiles.items[io->index];
    smg_kleaf leaf = *io;
    leaf.pick_count = 0;
    for (int i = 0; i < tile->axis_count; i++) {
        const smg_layout_pick *old = smg_kleaf_pick(io, tile->axis[i]);
        const smg_spick *p = pick_of(m, tile->axis[i]);
        smg_layout_pick pick = {.axis = tile->axis[i], .from = -1};
        bool own = false;
        if (old != NULL) {
            pick = *old;
            if (!move_pick(m, &pick, &own)) return lower_refuse(m->l, "what is read elsewhere is read elsewhere again");
        } else if (p == NULL) {
            continue;
        } else {
            pick.from = p->from;
            pick.at = p->at;
        }
        if (own) continue;
        if (leaf.pick_count == SMG_LAYOUT_PICKS)
            return lower_refuse(m->l, "a value is picked from along too many axes");
        leaf.pick[leaf.pick_count++] = pick;
    }
    *io = leaf;
    return SMG_OK;
}

static bool add_stride(lowering *l, smg_access *access, int axis, smg_size stride) {
    for (int i = 0; i < access->axis_count; i++) {
        if (access->axis[i] != axis) continue;
        access->stride[i] = smg_size_add(l->g->sizes, access->stride[i], stride);
        return true;
    }
    if (access->axis_count == SMG_ACCESS_AXES) return false;
    access->axis[access->axis_count] = axis;
    access->stride[access->axis_count++] = stride;
    return true;
}

static smg_status move_access(moving *m, smg_kleaf *io) {
    lowering *l = m->l;
    smg_sizes *s = l->g->sizes;
    smg_access old = l->k->accesses.items[io->index], access = old;
    access.axis_count = 0;
    for (int i = 0; i < old.axis_count; i++) {
        const smg_spick *p = pick_of(m, old.axis[i]);
        int64_t at = p == NULL ? 0 : p->from < 0 ? p->at : last_of(l, p->axis);
        bool room = true;
        access.offset = smg_size_add(s, access.offset, smg_size_mul(s, old.stride[i], smg_size_const(s, at)));
        if (p == NULL)
            room = add_stride(l, &access, old.axis[i], old.stride[i]);
        else if (p->from >= 0)
            room = add_stride(l, &access, p->from, smg_size_mul(s, old.stride[i], smg_size_const(s, -1)));
        if (!room) return lower_refuse(l, "an index runs over too many axes");
    }
    if (access.index != SMG_EXPR_NONE) SMG_TRY(move(m, access.index, &access.index));
    if (l->refused != NULL) return SMG_OK;
    smg_access *slot = SMG_ARRAY_PUSH(l->arena, &l->k->accesses);
    if (slot == NULL) return SMG_MEMORY;
    *slot = access;
    io->index = l->k->accesses.count - 1;
    return SMG_OK;
}

int lower_tile_leaf(lowering *l, smg_kleaf leaf, int node) {
    for (int i = 0; i < l->k->leaves.count; i++)
        if (l->leaf_node.items[i] == node && smg_kleaf_equal(&l->k->leaves.items[i], &leaf)) return i;
    return lower_new_leaf(l, leaf, node);
}

static smg_status move_leaf(moving *m, int number, smg_expr *out_value) {
    lowering *l = m->l;
    smg_kleaf leaf = l->k->leaves.items[number];
    int moved = number;
    if (leaf.what == SMG_KLEAF_TILE) {
        SMG_TRY(move_tile(m, &leaf));
        if (l->refused == NULL) moved = lower_tile_leaf(l, leaf, l->leaf_node.items[number]);
    } else if (leaf.what != SMG_KLEAF_SIZE) {
        SMG_TRY(move_access(m, &leaf));
        if (l->refused == NULL) moved = lower_leaf_of_last(l, leaf);
    }
    if (moved < 0) return SMG_MEMORY;
    *out_value = smg_expr_leaf(l->k->exprs, leaf.kind, moved);
    return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

static smg_status move(moving *m, smg_expr expr, smg_expr *out_value) {
    lowering *l = m->l;
    *out_value = m->moved[expr];
    if (*out_value != SMG_EXPR_NONE) return SMG_OK;
    smg_expr_node n = *smg_expr_get(l->k->exprs, expr);
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (n.prim == SMG_PRIM_LEAF) {
        SMG_TRY(move_leaf(m, n.leaf, out_value));
    } else if (n.prim == SMG_PRIM_CONST) {
        *out_value = expr;
    } else {
        for (int i = 0; i < smg_prim_arity(n.prim) && l->refused == NULL; i++) SMG_TRY(move(m, n.arg[i], &arg[i]));
        if (l->refused != NULL) return SMG_OK;
        *out_value = smg_expr_make(l->k->exprs, n.prim, arg[0], arg[1], arg[2]);
    }
    m->moved[expr] = *out_value;
    return *out_value != SMG_EXPR_NONE || l->refused != NULL ? SMG_OK : SMG_MEMORY;
}

smg_status lower_read(lowering *l, const smg_sread *read, smg_expr *io_value) {
    int count = smg_expr_count(l->k->exprs);
    moving m = {.l = l, .read = read, .moved = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)count + 1)};
    if (m.moved == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) m.moved[i] = SMG_EXPR_NONE;
    smg_expr value = *io_value;
    if (read->pick_count > 0) SMG_TRY(move(&m, value, io_value));
    return l->refused == NULL ? lower_within(l, read->layer, read->layer_count, false, io_value) : SMG_OK;
}
