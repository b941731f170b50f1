/* From nodes to a space: give every node fresh atoms for its dimensions, push each operand's index map
 * back through the views behind it, unite it with the producer's dimensions when the producer is in
 * the set, and number what remains. The order matters in one way only: a failure names the edge. */
#include "space/space_internal.h"

typedef struct builder {
    const smg_graph *g;
    smg_arena *arena;
    smg_atoms atoms;
    smg_space *space;
    const smg_node_id *nodes;
    int count;
    smg_atom_list (*out)[SMG_MAX_RANK]; /* per set node, per result dimension */
    int *reduced;                       /* per set node: atom of the reduced axis, -1 */
    int (*labels)[26];                  /* CONTRACT: atom per letter, -1 */
} builder;

static smg_status refuse(builder *b, const char *why, smg_node_id id) {
    if (b->space->refused == NULL) {
        b->space->refused = smg_arena_format(b->arena, "%s (%s)", why, smg_graph_describe(b->g, id));
        if (b->space->refused == NULL) return SMG_MEMORY;
    }
    return SMG_OK;
}

static int position(const builder *b, smg_node_id id) {
    int low = 0, high = b->count - 1;
    while (low <= high) {
        int mid = (low + high) / 2;
        if (b->nodes[mid] == id) return mid;
        if (b->nodes[mid] < id) low = mid + 1;
        else high = mid - 1;
    }
    return -1;
}

static bool is_one(const builder *b, smg_size size) {
    int64_t value;
    return smg_size_is_const(b->g->sizes, size, &value) && value == 1;
}

/* A dimension of extent 1 has no atom: nothing moves along it. */
static bool fresh(builder *b, smg_size extent, smg_atom_list *out) {
    *out = (smg_atom_list){ 0 };
    if (is_one(b, extent)) return true;
    int atom = smg_atom_new(&b->atoms, extent);
    if (atom < 0) return false;
    out->count = 1;
    out->atom[0] = atom;
    return true;
}

static smg_status make_dims(builder *b, int i) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    b->reduced[i] = -1;
    for (int l = 0; l < 26; l++) b->labels[i][l] = -1;
    for (int d = 0; d < n->rank; d++) {
        if (!fresh(b, n->dims[d], &b->out[i][d])) return SMG_MEMORY;
        if (smg_node_class(n) == SMG_CLASS_CONTRACT && b->out[i][d].count == 1) {
            b->labels[i][n->label[2][d] - 'a'] = b->out[i][d].atom[0];
        }
    }
    if (smg_node_class(n) == SMG_CLASS_REDUCE) {
        const smg_node *a = smg_graph_node(b->g, n->operand[0]);
        smg_atom_list list;
        if (!fresh(b, a->dims[n->axis], &list)) return SMG_MEMORY;
        if (list.count == 1) b->reduced[i] = list.atom[0];
    }
    return SMG_OK;
}

static bool contract_dim(builder *b, int i, char letter, smg_size extent, smg_atom_list *out) {
    *out = (smg_atom_list){ 0 };
    if (is_one(b, extent)) return true;
    int *atom = &b->labels[i][letter - 'a'];
    if (*atom < 0) *atom = smg_atom_new(&b->atoms, extent);
    if (*atom < 0) return false;
    out->count = 1;
    out->atom[0] = *atom;
    return true;
}

/* The index map of operand k in terms of the node's own atoms. */
static smg_status own_map(builder *b, int i, int k, smg_operand_map *out) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    const smg_node *a = smg_graph_node(b->g, n->operand[k]);
    smg_size zero = smg_size_const(b->g->sizes, 0);
    *out = (smg_operand_map){ .source = n->operand[k], .rank = a->rank };
    for (int d = 0; d < a->rank; d++) {
        smg_dim_map *dim = &out->dim[d];
        dim->begin = zero;
        dim->step = 1;
        switch (smg_node_class(n)) {
        case SMG_CLASS_MAP: {
            int axis = d + n->rank - a->rank;
            if (!is_one(b, a->dims[d])) dim->list = b->out[i][axis];
            break;
        }
        case SMG_CLASS_REDUCE:
            if (d == n->axis) {
                dim->list.count = b->reduced[i] >= 0;
                dim->list.atom[0] = b->reduced[i];
            } else {
                dim->list = b->out[i][d > n->axis && !n->keep ? d - 1 : d];
            }
            break;
        case SMG_CLASS_CONTRACT:
            if (!contract_dim(b, i, n->label[k][d], a->dims[d], &dim->list)) return SMG_MEMORY;
            break;
        case SMG_CLASS_GATHER: {
            int index_rank = smg_graph_node(b->g, n->operand[1])->rank;
            if (k == 1) dim->list = b->out[i][d];
            else if (d > 0) dim->list = b->out[i][index_rank + d - 1];
            break;
        }
        case SMG_CLASS_LEAF:
        case SMG_CLASS_VIEW:
            return smg_fail(b->g->ctx, SMG_INTERNAL, "space: %s cannot be a member of a space",
                            smg_graph_describe(b->g, b->nodes[i]));
        }
    }
    return SMG_OK;
}

static smg_status add_view(builder *b, const smg_operand_map *map, bool indirect, int *out_view) {
    smg_sizes *s = b->g->sizes;
    const smg_node *source = smg_graph_node(b->g, map->source);
    smg_sview *view = SMG_ARRAY_PUSH(b->arena, &b->space->views);
    if (view == NULL) return SMG_MEMORY;
    *view = (smg_sview){ .source = map->source, .offset = smg_size_const(s, 0), .indirect = indirect };
    *out_view = b->space->views.count - 1;
    smg_size stride = smg_size_const(s, 1);
    bool iota = smg_op_leaf(source->op) == SMG_LEAF_INDEX;
    for (int d = source->rank - 1; d >= 0; d--) {
        if (iota) stride = smg_size_const(s, d == source->axis ? 1 : 0);
        if (indirect && d == 0) {
            view->index_stride = stride;
            view->index_limit = source->dims[0];
            break;
        }
        const smg_dim_map *dim = &map->dim[d];
        view->offset = smg_size_add(s, view->offset, smg_size_mul(s, dim->begin, stride));
        smg_size run = smg_size_mul(s, stride, smg_size_const(s, dim->step));
        smg_atom_list list;
        if (!smg_atom_resolve(&b->atoms, &dim->list, &list)) return refuse(b, "too many axes", map->source);
        for (int i = list.count - 1; i >= 0; i--) {
            if (view->axis_count == SMG_MAX_RANK * 2) return refuse(b, "too many axes", map->source);
            view->axis[view->axis_count] = list.atom[i]; /* an atom until axes are numbered */
            view->stride[view->axis_count++] = run;
            run = smg_size_mul(s, run, b->atoms.pool.items[list.atom[i]].extent);
        }
        if (!iota) stride = smg_size_mul(s, stride, source->dims[d]);
    }
    return SMG_OK;
}

typedef struct pending {
    smg_operand_map map;
    bool indirect;
} pending;

static smg_status connect(builder *b, int i, pending (*maps)[SMG_MAX_OPERANDS]) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    smg_snode *node = &b->space->nodes.items[i];
    for (int k = 0; k < n->operand_count; k++) {
        pending *p = &maps[i][k];
        SMG_TRY(own_map(b, i, k, &p->map));
        p->indirect = smg_node_class(n) == SMG_CLASS_GATHER && k == 0;
        node->operand[k] = (smg_soperand){ .producer = -1, .view = -1 };
        while (smg_node_class(smg_graph_node(b->g, p->map.source)) == SMG_CLASS_VIEW) {
            smg_node_id view = p->map.source;
            if (p->indirect) return refuse(b, "a gathered table behind a view", view);
            if (!smg_space_through_view(b->g, &b->atoms, &p->map)) return refuse(b, "axes do not refine through the view", view);
        }
        int producer = position(b, p->map.source);
        if (producer < 0) continue;
        if (p->indirect) return refuse(b, "a gathered table is computed here", p->map.source);
        node->operand[k].producer = producer;
        for (int d = 0; d < p->map.rank; d++) {
            if (!smg_dim_plain(b->g, &p->map.dim[d])) return refuse(b, "a shifted read of an intermediate", p->map.source);
            if (!smg_atom_unify(&b->atoms, &b->out[producer][d], &p->map.dim[d].list)) {
                return refuse(b, "axes do not nest", p->map.source);
            }
        }
    }
    return SMG_OK;
}

/* Numbers the roots of a list; every atom may stand once in one iteration space. */
static smg_status number(builder *b, const smg_atom_list *list, smg_axis_set *io_set, smg_node_id id) {
    smg_atom_list roots;
    if (!smg_atom_resolve(&b->atoms, list, &roots)) return refuse(b, "too many axes", id);
    for (int i = 0; i < roots.count; i++) {
        smg_atom *atom = &b->atoms.pool.items[roots.atom[i]];
        if (atom->axis < 0) {
            if (b->space->axes.count == SMG_SPACE_AXES) return refuse(b, "too many axes", id);
            smg_saxis *axis = SMG_ARRAY_PUSH(b->arena, &b->space->axes);
            if (axis == NULL) return SMG_MEMORY;
            axis->extent = atom->extent;
            axis->name = smg_arena_format(b->arena, "i%d", b->space->axes.count - 1);
            atom->axis = b->space->axes.count - 1;
        }
        if (*io_set & SMG_AXIS_BIT(atom->axis)) return refuse(b, "one axis would index a value twice", id);
        *io_set |= SMG_AXIS_BIT(atom->axis);
    }
    return SMG_OK;
}

static smg_status number_node(builder *b, int i) {
    smg_snode *node = &b->space->nodes.items[i];
    const smg_node *n = smg_graph_node(b->g, node->node);
    for (int d = 0; d < n->rank; d++) SMG_TRY(number(b, &b->out[i][d], &node->result, node->node));
    node->iterates = node->result;
    if (b->reduced[i] >= 0) {
        smg_atom_list list = { .count = 1, .atom = { b->reduced[i] } };
        SMG_TRY(number(b, &list, &node->iterates, node->node));
    }
    if (node->class_ != SMG_CLASS_CONTRACT) return SMG_OK;
    for (int l = 0; l < 26; l++) {
        bool in_result = memchr(n->label[2], 'a' + l, (size_t)n->rank) != NULL;
        if (b->labels[i][l] < 0 || in_result) continue;
        smg_atom_list list = { .count = 1, .atom = { b->labels[i][l] } };
        SMG_TRY(number(b, &list, &node->iterates, node->node));
    }
    return SMG_OK;
}

/* Views hold atoms until here; the same axis twice (a diagonal) adds its strides. */
static smg_status number_views(builder *b) {
    for (int v = 0; v < b->space->views.count; v++) {
        smg_sview old = b->space->views.items[v], *view = &b->space->views.items[v];
        view->axis_count = 0;
        for (int i = 0; i < old.axis_count; i++) {
            int axis = b->atoms.pool.items[smg_atom_root(&b->atoms, old.axis[i])].axis;
            if (axis < 0) return refuse(b, "a view over an axis that no node has", view->source);
            int at = 0;
            while (at < view->axis_count && view->axis[at] != axis) at++;
            if (at < view->axis_count) {
                view->stride[at] = smg_size_add(b->g->sizes, view->stride[at], old.stride[i]);
            } else {
                view->axis[at] = axis;
                view->stride[at] = old.stride[i];
                view->axis_count++;
            }
        }
    }
    return SMG_OK;
}

static void mark_streamed(smg_space *space) {
    for (int i = 0; i < space->nodes.count; i++) {
        smg_snode *n = &space->nodes.items[i];
        n->streamed = n->class_ == SMG_CLASS_MAP || n->class_ == SMG_CLASS_GATHER;
        for (int k = 0; k < n->operand_count; k++) {
            int p = n->operand[k].producer;
            if (p >= 0 && !space->nodes.items[p].streamed) n->streamed = false;
        }
    }
}

static smg_status store_view(builder *b, int i) {
    smg_snode *node = &b->space->nodes.items[i];
    node->store = -1;
    if (!node->output) return SMG_OK;
    const smg_node *n = smg_graph_node(b->g, node->node);
    smg_operand_map map = { .source = node->node, .rank = n->rank };
    for (int d = 0; d < n->rank; d++) {
        map.dim[d] = (smg_dim_map){ .list = b->out[i][d], .begin = smg_size_const(b->g->sizes, 0), .step = 1 };
    }
    return add_view(b, &map, false, &node->store);
}

/* Does every iteration space still have each atom once? */
static bool distinct(const builder *b, int count) {
    for (int i = 0; i < count; i++) {
        const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
        smg_atom_list all = { 0 };
        for (int d = 0; d < n->rank; d++) {
            for (int a = 0; a < b->out[i][d].count; a++) {
                if (all.count == SMG_ATOM_LIST) return false;
                all.atom[all.count++] = b->out[i][d].atom[a];
            }
        }
        if (b->reduced[i] >= 0 && all.count < SMG_ATOM_LIST) all.atom[all.count++] = b->reduced[i];
        for (int l = 0; l < 26; l++) {
            bool in_result = memchr(n->label[2], 'a' + l, (size_t)n->rank) != NULL;
            if (b->labels[i][l] < 0 || in_result || all.count == SMG_ATOM_LIST) continue;
            all.atom[all.count++] = b->labels[i][l];
        }
        if (!smg_atom_resolve(&b->atoms, &all, &all)) return false;
        for (int x = 0; x < all.count; x++) {
            for (int y = x + 1; y < all.count; y++) {
                if (all.atom[x] == all.atom[y]) return false;
            }
        }
    }
    return true;
}

/* Unites one dimension of two reads of the same tensor, unless some node would then iterate twice over
 * one axis: a row that is read for its maximum and again for its result is one row. */
static smg_status align_dim(builder *b, const smg_dim_map *x, const smg_dim_map *y) {
    if (x->list.count == 0 || y->list.count == 0 || x->begin != y->begin || x->step != y->step) return SMG_OK;
    smg_atom_list rx, ry;
    if (!smg_atom_resolve(&b->atoms, &x->list, &rx) || !smg_atom_resolve(&b->atoms, &y->list, &ry)) return SMG_OK;
    if (rx.count == ry.count && memcmp(rx.atom, ry.atom, (size_t)rx.count * sizeof(int)) == 0) return SMG_OK;
    int count = b->atoms.pool.count;
    smg_atom *saved = SMG_ARENA_ARRAY(b->arena, smg_atom, (size_t)count);
    if (saved == NULL) return SMG_MEMORY;
    memcpy(saved, b->atoms.pool.items, (size_t)count * sizeof(smg_atom));
    if (smg_atom_unify(&b->atoms, &x->list, &y->list) && distinct(b, b->count)) return SMG_OK;
    memcpy(b->atoms.pool.items, saved, (size_t)count * sizeof(smg_atom));
    b->atoms.pool.count = count;
    return SMG_OK;
}

static smg_status align_reads(builder *b, pending (*maps)[SMG_MAX_OPERANDS]) {
    int total = b->count * SMG_MAX_OPERANDS;
    for (int x = 0; x < total; x++) {
        const smg_snode *nx = &b->space->nodes.items[x / SMG_MAX_OPERANDS];
        int kx = x % SMG_MAX_OPERANDS;
        if (kx >= nx->operand_count || nx->operand[kx].producer >= 0) continue;
        for (int y = x + 1; y < total; y++) {
            const smg_snode *ny = &b->space->nodes.items[y / SMG_MAX_OPERANDS];
            int ky = y % SMG_MAX_OPERANDS;
            if (ky >= ny->operand_count || ny->operand[ky].producer >= 0) continue;
            const smg_operand_map *mx = &maps[x / SMG_MAX_OPERANDS][kx].map, *my = &maps[y / SMG_MAX_OPERANDS][ky].map;
            for (int d = 0; mx->source == my->source && d < mx->rank; d++) {
                SMG_TRY(align_dim(b, &mx->dim[d], &my->dim[d]));
            }
        }
    }
    return SMG_OK;
}

/* Horizontal fusion: two products of the same tensor whose own axes nobody else aligns (three projections of one
 * input) walk one common axis when the extents agree; the tile of the shared operand then serves both. */
static smg_status align_siblings(builder *b, pending (*maps)[SMG_MAX_OPERANDS]) {
    for (int x = 0; x < b->count; x++) {
        const smg_node *nx = smg_graph_node(b->g, b->nodes[x]);
        if (smg_node_class(nx) != SMG_CLASS_CONTRACT) continue;
        for (int y = x + 1; y < b->count; y++) {
            const smg_node *ny = smg_graph_node(b->g, b->nodes[y]);
            if (smg_node_class(ny) != SMG_CLASS_CONTRACT || ny->rank != nx->rank) continue;
            bool share = false;
            for (int k = 0; k < 4; k++) {
                share = share || maps[x][k / 2].map.source == maps[y][k % 2].map.source;
            }
            for (int d = 0; share && d < nx->rank; d++) {
                smg_dim_map dx = { .list = b->out[x][d], .step = 1 }, dy = { .list = b->out[y][d], .step = 1 };
                SMG_TRY(align_dim(b, &dx, &dy));
            }
        }
    }
    return SMG_OK;
}

static smg_status build(builder *b, const bool *needed) {
    smg_space *space = b->space;
    pending(*maps)[SMG_MAX_OPERANDS] = smg_arena_alloc(b->arena, (size_t)b->count, sizeof(*maps));
    if (maps == NULL) return SMG_MEMORY;
    for (int i = 0; i < b->count; i++) {
        const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
        smg_snode *node = SMG_ARRAY_PUSH(b->arena, &space->nodes);
        if (node == NULL) return SMG_MEMORY;
        *node = (smg_snode){ .node = b->nodes[i], .op = n->op, .class_ = smg_node_class(n), .type = n->type,
                             .operand_count = n->operand_count, .output = needed[b->nodes[i]], .store = -1 };
        SMG_TRY(make_dims(b, i));
        SMG_TRY(connect(b, i, maps));
        if (space->refused != NULL) return SMG_OK;
    }
    if (!distinct(b, b->count)) return refuse(b, "one axis would index a value twice", b->nodes[b->count - 1]);
    SMG_TRY(align_reads(b, maps));
    SMG_TRY(align_siblings(b, maps));
    /* Views are written only now: a later edge may still have split their atoms. */
    for (int i = 0; i < b->count && space->refused == NULL; i++) {
        smg_snode *node = &space->nodes.items[i];
        for (int k = 0; k < node->operand_count; k++) {
            if (node->operand[k].producer >= 0) continue;
            SMG_TRY(add_view(b, &maps[i][k].map, maps[i][k].indirect, &node->operand[k].view));
        }
        SMG_TRY(store_view(b, i));
        SMG_TRY(number_node(b, i));
    }
    if (space->refused != NULL) return SMG_OK;
    SMG_TRY(number_views(b));
    if (space->refused != NULL) return SMG_OK;
    mark_streamed(space);
    smg_space_coalesce(space);
    return SMG_OK;
}

smg_status smg_space_build(const smg_graph *g, smg_arena *arena, const smg_node_id *nodes, int count,
                           const bool *needed, smg_space **out_space) {
    builder b = { .g = g, .arena = arena, .nodes = nodes, .count = count };
    b.atoms = (smg_atoms){ .sizes = g->sizes, .arena = arena };
    b.space = SMG_ARENA_NEW(arena, smg_space);
    b.out = smg_arena_alloc(arena, (size_t)count + 1, sizeof(*b.out));
    b.reduced = SMG_ARENA_ARRAY(arena, int, (size_t)count + 1);
    b.labels = smg_arena_alloc(arena, (size_t)count + 1, sizeof(*b.labels));
    if (b.space == NULL || b.out == NULL || b.reduced == NULL || b.labels == NULL) return SMG_MEMORY;
    b.space->graph = g;
    b.space->arena = arena;
    SMG_TRY(build(&b, needed));
    *out_space = b.space;
    return smg_context_status(g->ctx);
}
