/* Index maps pushed back through views: a transposed, reshaped, broadcast or sliced operand is the same tensor at other
 * strides. */
#include "space/space_internal.h"

typedef struct views {
    const smg_graph *g;
    smg_atoms *atoms;
} views;

bool smg_dim_plain(const smg_graph *g, const smg_dim_map *dim) {
    return dim->step == 1 && dim->begin == smg_size_const(g->sizes, 0);
}

static bool is_one(const views *b, smg_size size) {
    int64_t value;
    return smg_size_is_const(b->g->sizes, size, &value) && value == 1;
}

/* Dims of a reshape that stand on both sides at the same boundary, from the front (step 1) or the back (-1): the
 * index is the same one, shifted or not. *io_v and *io_a end at the first that do not. */
static void carry_dims(views *b, const smg_node *view, const smg_node *a, const smg_operand_map *old, smg_operand_map *map,
                       int step, int *io_v, int *io_a, int stop_v, int stop_a) {
    while (*io_v != stop_v || *io_a != stop_a) {
        if (*io_v != stop_v && is_one(b, view->dims[*io_v])) {
            *io_v += step;
        } else if (*io_a != stop_a && is_one(b, a->dims[*io_a])) {
            map->dim[*io_a] = (smg_dim_map){ .begin = smg_size_const(b->g->sizes, 0), .step = 1 };
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

/* Several dims of a view that are one dim of what it looks at: shifts add up at their strides. Where two of them move,
 * the inner one must be whole, else their run is no run of one index. */
static bool merge_dims(views *b, const smg_node *view, const smg_operand_map *old, int first, int last,
                       smg_dim_map *out) {
    smg_sizes *s = b->g->sizes;
    smg_size stride = smg_size_const(s, 1), covered = stride;
    *out = (smg_dim_map){ .begin = smg_size_const(s, 0), .step = 1 };
    for (int v = last; v >= first; v--) {
        const smg_dim_map *dim = &old->dim[v];
        smg_atom_list list;
        int64_t fixed;
        if (!smg_atom_resolve(b->atoms, &dim->list, &list)) return false;
        out->begin = smg_size_add(s, out->begin, smg_size_mul(s, dim->begin, stride));
        if (list.count > 0 && out->list.count == 0) {
            if (!smg_size_is_const(s, stride, &fixed)) return false;
            out->step = dim->step * fixed;
        } else if (list.count > 0 && (out->step != 1 || dim->step != 1 || covered != stride)) {
            return false;
        }
        if (list.count + out->list.count > SMG_ATOM_LIST) return false;
        for (int i = 0; i < list.count; i++) {
            covered = smg_size_mul(s, covered, b->atoms->pool.items[list.atom[i]].extent);
        }
        for (int i = 0; i < out->list.count; i++) list.atom[list.count++] = out->list.atom[i];
        out->list = list;
        stride = smg_size_mul(s, stride, view->dims[v]);
    }
    return true;
}

static bool through_reshape(views *b, const smg_node *view, const smg_node *a, smg_operand_map *map) {
    smg_atom_list flat = { 0 };
    smg_operand_map old = *map;
    int v = 0, d = 0, last_v = view->rank - 1, last_d = a->rank - 1;
    carry_dims(b, view, a, &old, map, 1, &v, &d, view->rank, a->rank);
    carry_dims(b, view, a, &old, map, -1, &last_v, &last_d, v - 1, d - 1);
    if (d == last_d) return merge_dims(b, view, &old, v, last_v, &map->dim[d]);
    for (; v <= last_v; v++) {
        if (!smg_dim_plain(b->g, &old.dim[v])) return false;
        for (int i = 0; i < old.dim[v].list.count; i++) {
            if (flat.count == SMG_ATOM_LIST) return false;
            flat.atom[flat.count++] = old.dim[v].list.atom[i];
        }
    }
    if (!smg_atom_resolve(b->atoms, &flat, &flat)) return false;
    for (; d <= last_d; d++) {
        map->dim[d] = (smg_dim_map){ .begin = smg_size_const(b->g->sizes, 0), .step = 1 };
        if (!smg_atom_take(b->atoms, &flat, a->dims[d], &map->dim[d].list)) return false;
    }
    return flat.count == 0;
}

static void through_slice(views *b, const smg_node *view, smg_operand_map *map) {
    smg_sizes *s = b->g->sizes;
    smg_dim_map *dim = &map->dim[view->axis];
    smg_size moved = smg_size_mul(s, dim->begin, smg_size_const(s, view->step));
    dim->begin = smg_size_add(s, view->begin, moved);
    dim->step *= view->step;
}

bool smg_space_through_view(const smg_graph *g, smg_atoms *atoms, smg_operand_map *map) {
    views view_of = { .g = g, .atoms = atoms }, *b = &view_of;
    const smg_node *view = smg_graph_node(b->g, map->source);
    const smg_node *a = smg_graph_node(b->g, view->operand[0]);
    smg_operand_map old = *map;
    map->source = view->operand[0];
    map->rank = a->rank;
    switch (smg_op_view(view->op)) {
    case SMG_VIEW_RESHAPE:
        return through_reshape(b, view, a, map);
    case SMG_VIEW_TRANSPOSE:
        for (int d = 0; d < view->rank; d++) map->dim[view->perm[d]] = old.dim[d];
        return true;
    case SMG_VIEW_BROADCAST:
        for (int d = 0; d < a->rank; d++) {
            map->dim[d] = old.dim[d + view->rank - a->rank];
            if (is_one(b, a->dims[d])) {
                map->dim[d] = (smg_dim_map){ .begin = smg_size_const(b->g->sizes, 0), .step = 1 };
            }
        }
        return true;
    case SMG_VIEW_SLICE:
        through_slice(b, view, map);
        return true;
    case SMG_VIEW_WINDOW:
    case SMG_VIEW_NONE:
        break;
    }
    return false;
}
