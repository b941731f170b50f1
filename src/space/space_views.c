/* Index maps pushed back through views: a transposed, reshaped, broadcast, sliced or bordered operand is the
 * same tensor at other indices. Every view has one; reshapes that do not divide give quotients and remainders. */
#include "space/space_internal.h"

/* Dims of a reshape that stand on both sides at the same boundary, from the front (step 1) or the back (-1): the
 * index is the same one, shifted or not. *io_v and *io_a end at the first that do not. */
static void carry_dims(smg_space_builder *b, const smg_node *view, const smg_node *a, const smg_operand_map *old,
                       smg_operand_map *map, int step, int *io_v, int *io_a, int stop_v, int stop_a) {
    while (*io_v != stop_v || *io_a != stop_a) {
        if (*io_v != stop_v && smg_space_is_one(b, view->dims[*io_v])) {
            *io_v += step;
        } else if (*io_a != stop_a && smg_space_is_one(b, a->dims[*io_a])) {
            map->dim[*io_a] = (smg_affine){0};
            *io_a += step;
        } else if (*io_v != stop_v && *io_a != stop_a && view->dims[*io_v] == a->dims[*io_a]) {
            map->dim[*io_a] = old->dim[*io_v];
            *io_v += step;
            *io_a += step;
        } else {
            return;
        }
    }
}

/* All dims [v, last_v] relabel: their atoms in order are those of the dims [d, last_d]. Atoms split on the way stay
 * so. */
static bool take_plain(smg_space_builder *b, const smg_node *a, const smg_operand_map *old, int v, int last_v, int d,
                       int last_d, smg_operand_map *map) {
    smg_atom_list flat = {0}, list;
    for (; v <= last_v; v++) {
        if (!smg_dim_plain(b, &old->dim[v], &list) || flat.count + list.count > SMG_ATOM_LIST) return false;
        for (int i = 0; i < list.count; i++) flat.atom[flat.count++] = list.atom[i];
    }
    for (; d <= last_d; d++) {
        if (!smg_atom_take(&b->atoms, &flat, a->dims[d], &list)) return false;
        smg_dim_of_list(b, &list, &map->dim[d]);
    }
    return flat.count == 0;
}

static bool in_memory(const smg_space_builder *b, smg_node_id source) {
    const smg_node *n = smg_graph_node(b->g, source);
    return smg_node_class(n) != SMG_CLASS_VIEW && smg_op_leaf(n->op) <= SMG_LEAF_TENSOR &&
           smg_space_position(b, source) < 0;
}

static bool through_reshape(smg_space_builder *b, const smg_node *view, const smg_node *a, smg_operand_map *map) {
    smg_operand_map old = *map;
    int v = 0, d = 0, last_v = view->rank - 1, last_d = a->rank - 1;
    carry_dims(b, view, a, &old, map, 1, &v, &d, view->rank, a->rank);
    carry_dims(b, view, a, &old, map, -1, &last_v, &last_d, v - 1, d - 1);
    if (d > last_d) return true;
    if (d < last_d && take_plain(b, a, &old, v, last_v, d, last_d, map)) return true;
    smg_affine flat = {0}, rest;
    smg_size stride = b->one, strides[SMG_MAX_RANK];
    for (int at = last_v; at >= v; at--) {
        strides[at] = stride;
        if (at > v) stride = smg_size_mul(b->sizes, stride, view->dims[at]);
    }
    for (int at = v; at <= last_v; at++) {
        if (!smg_affine_add(b->sizes, &flat, &old.dim[at], strides[at])) return false;
    }
    smg_affine whole = flat;
    int before = map->index_count, last = last_d;
    bool divided = true;
    for (; last_d > d && divided; last_d--) {
        divided = smg_dim_divide(b, map, &flat, a->dims[last_d], &rest, &map->dim[last_d]);
        flat = rest;
    }
    map->dim[d] = flat;
    if ((divided && map->index_count == before) || !in_memory(b, map->source)) return divided;
    /* In memory the dims of the group are one run: its place is its place, however it is divided. */
    for (; d < last; d++) map->dim[d] = (smg_affine){0};
    map->dim[last] = whole;
    map->index_count = before;
    return true;
}

static bool through_slice(smg_space_builder *b, const smg_node *view, smg_operand_map *map) {
    smg_affine moved = {.begin = view->begin};
    bool good = smg_affine_add(b->sizes, &moved, &map->dim[view->axis], smg_size_const(b->sizes, view->step));
    map->dim[view->axis] = moved;
    return good;
}

/* One more condition on the elements that exist; joins the innermost layer when that has the same number outside. */
static bool add_layer(smg_space_builder *b, smg_operand_map *map, smg_expr guard, double fill) {
    if (guard == SMG_EXPR_NONE) return false;
    smg_slayer *last = map->layer_count > 0 ? &map->layer[map->layer_count - 1] : NULL;
    if (last != NULL && memcmp(&last->fill, &fill, sizeof(fill)) == 0) {
        last->guard = smg_space_make(b, SMG_PRIM_AND, last->guard, guard);
        return last->guard != SMG_EXPR_NONE;
    }
    if (map->layer_count == SMG_VIEW_LAYERS) return false;
    map->layer[map->layer_count++] = (smg_slayer){.guard = guard, .fill = fill};
    return true;
}

static bool through_window(smg_space_builder *b, const smg_node *view, const smg_node *a, smg_operand_map *map) {
    smg_affine at = {.begin = view->begin};
    smg_size last = smg_size_sub(b->sizes, a->dims[view->axis], b->one);
    smg_dim_where where = {b, map};
    smg_affine_scope scope = smg_dim_scope(&where);
    smg_operand_map old = *map;
    if (!smg_affine_add(b->sizes, &at, &old.dim[view->axis], smg_size_const(b->sizes, view->step)) ||
        !smg_affine_add(b->sizes, &at, &old.dim[view->axis + 1], smg_size_const(b->sizes, view->dilation))) {
        return false;
    }
    smg_affine left = {.begin = last}; /* of the axis behind the place */
    if (!smg_affine_add(b->sizes, &left, &at, smg_size_const(b->sizes, -1))) return false;
    for (int d = 0; d < a->rank; d++) map->dim[d] = old.dim[d > view->axis ? d + 1 : d];
    map->dim[view->axis] = at;
    smg_expr value = SMG_EXPR_NONE;
    if (!smg_affine_within(&scope, &at, NULL, a->dims[view->axis]) && map->window_count < SMG_VIEW_LAYERS)
        map->window[map->window_count++] = (smg_bounded){.at = at, .extent = a->dims[view->axis]};
    if (smg_affine_sign(&scope, &at, NULL) <= 0) {
        value = smg_dim_value(b, map, &at);
        smg_expr guard = smg_space_make(b, SMG_PRIM_LE, smg_space_size_expr(b, SMG_SIZE_ZERO), value);
        if (!add_layer(b, map, guard, view->value)) return false;
    }
    if (smg_affine_sign(&scope, &left, NULL) <= 0) {
        if (value == SMG_EXPR_NONE) value = smg_dim_value(b, map, &at);
        smg_expr guard = smg_space_make(b, SMG_PRIM_LE, value, smg_space_size_expr(b, last));
        if (!add_layer(b, map, guard, view->value)) return false;
    }
    return true;
}

bool smg_space_through_view(smg_space_builder *b, smg_operand_map *map) {
    const smg_node *view = smg_graph_node(b->g, map->source);
    const smg_node *a = smg_graph_node(b->g, view->operand[0]);
    smg_operand_map old = *map;
    map->source = view->operand[0];
    map->rank = a->rank;
    switch (smg_op_view(view->op)) {
    case SMG_VIEW_RESHAPE: return through_reshape(b, view, a, map);
    case SMG_VIEW_TRANSPOSE:
        for (int d = 0; d < view->rank; d++) map->dim[view->perm[d]] = old.dim[d];
        return true;
    case SMG_VIEW_BROADCAST:
        for (int d = 0; d < a->rank; d++) {
            map->dim[d] = old.dim[d + view->rank - a->rank];
            if (smg_space_is_one(b, a->dims[d])) map->dim[d] = (smg_affine){0};
        }
        return true;
    case SMG_VIEW_SLICE: return through_slice(b, view, map);
    case SMG_VIEW_WINDOW: return through_window(b, view, a, map);
    case SMG_VIEW_NONE: break;
    }
    return false;
}
