/* From atoms to axes: the roots that live nodes iterate over get numbers, and every operand in memory becomes a
 * view. */
#include "space/space_internal.h"

/* Numbers the roots of a list; every atom may stand once in one iteration space. */
static smg_status number_list(smg_space_builder *b, const smg_atom_list *list, smg_axis_set *io_set, smg_node_id id) {
    smg_atom_list roots;
    if (!smg_atom_resolve(&b->atoms, list, &roots)) return smg_space_refuse(b, "too many axes", id);
    for (int i = 0; i < roots.count; i++) {
        smg_atom *atom = &b->atoms.pool.items[roots.atom[i]];
        if (atom->axis < 0) {
            if (b->space->axes.count == SMG_SPACE_AXES) return smg_space_refuse(b, "too many axes", id);
            smg_saxis *axis = SMG_ARRAY_PUSH(b->arena, &b->space->axes);
            if (axis == NULL) return SMG_MEMORY;
            axis->extent = atom->extent;
            axis->name = smg_arena_format(b->arena, "i%d", b->space->axes.count - 1);
            atom->axis = b->space->axes.count - 1;
        }
        if (*io_set & SMG_AXIS_BIT(atom->axis)) return smg_space_refuse(b, "one axis would index a value twice", id);
        *io_set |= SMG_AXIS_BIT(atom->axis);
    }
    return SMG_OK;
}

static smg_status number_node(smg_space_builder *b, int i) {
    smg_snode *node = &b->space->nodes.items[i];
    const smg_node *n = smg_graph_node(b->g, node->node);
    for (int d = 0; d < n->rank; d++) SMG_TRY(number_list(b, &b->out[i][d], &node->result, node->node));
    node->iterates = node->result;
    if (b->reduced[i] >= 0) {
        smg_atom_list list = {.count = 1, .atom = {b->reduced[i]}};
        SMG_TRY(number_list(b, &list, &node->iterates, node->node));
    }
    for (int l = 0; node->class_ == SMG_CLASS_CONTRACT && l < 52; l++) {
        char letter = (char)(l < 26 ? 'a' + l : 'A' + l - 26);
        if (b->labels[i][l] < 0 || memchr(n->label[2], letter, (size_t)n->rank) != NULL) continue;
        smg_atom_list list = {.count = 1, .atom = {b->labels[i][l]}};
        SMG_TRY(number_list(b, &list, &node->iterates, node->node));
    }
    return SMG_OK;
}

/* ---- views ----------------------------------------------------------------------------------------- */

static smg_status add_term(smg_space_builder *b, smg_sview *view, smg_affine_term term, smg_size stride) {
    smg_atom_list list = {.count = 1, .atom = {term.index}};
    if (!smg_atom_resolve(&b->atoms, &list, &list)) return smg_space_refuse(b, "too many axes", view->source);
    smg_size run = smg_size_mul(b->sizes, term.by, stride);
    for (int i = list.count - 1; i >= 0; i--) {
        if (view->axis_count == SMG_MAX_RANK * 2) return smg_space_refuse(b, "too many axes", view->source);
        view->axis[view->axis_count] = list.atom[i]; /* an atom until axes are numbered */
        view->stride[view->axis_count++] = run;
        if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[list.atom[i]].extent);
    }
    return SMG_OK;
}

static smg_status add_dim(smg_space_builder *b, smg_sview *view, const smg_affine *dim, smg_size stride) {
    smg_sizes *s = b->sizes;
    view->offset = smg_size_add(s, view->offset, smg_size_mul(s, dim->begin, stride));
    for (int i = 0; i < view->index_count; i++) {
        smg_size by = smg_affine_by(dim, SMG_DIM_INDEX(i));
        view->index_stride[i] = smg_size_add(s, view->index_stride[i], smg_size_mul(s, by, stride));
    }
    for (int t = dim->count - 1; t >= 0 && b->space->refused == NULL; t--) {
        if (dim->term[t].index >= 0) SMG_TRY(add_term(b, view, dim->term[t], stride));
    }
    return SMG_OK;
}

/* Indices that moved nothing and need no check go. */
static void drop_idle_indices(smg_sview *view) {
    int kept = 0;
    for (int i = 0; i < view->index_count; i++) {
        if (view->index_stride[i] == SMG_SIZE_ZERO && !view->index[i].checked) continue;
        view->index[kept] = view->index[i];
        view->index_stride[kept++] = view->index_stride[i];
    }
    view->index_count = kept;
}

static smg_status add_view(smg_space_builder *b, const smg_operand_map *map, int *out_view) {
    const smg_node *source = smg_graph_node(b->g, map->source);
    smg_sview view = {.source = map->source, .index_count = map->index_count, .layer_count = map->layer_count};
    memcpy(view.index, map->index, sizeof(view.index));
    memcpy(view.layer, map->layer, sizeof(view.layer));
    smg_size stride = b->one;
    bool iota = smg_op_leaf(source->op) == SMG_LEAF_INDEX;
    for (int d = source->rank - 1; d >= 0 && b->space->refused == NULL; d--) {
        if (iota) stride = d == source->axis ? b->one : SMG_SIZE_ZERO;
        if (!iota || d == source->axis) SMG_TRY(add_dim(b, &view, &map->dim[d], stride));
        if (!iota) stride = smg_size_mul(b->sizes, stride, source->dims[d]);
    }
    drop_idle_indices(&view);
    smg_sview *slot = SMG_ARRAY_PUSH(b->arena, &b->space->views);
    if (slot == NULL) return SMG_MEMORY;
    *slot = view;
    *out_view = b->space->views.count - 1;
    return SMG_OK;
}

/* Forms were made while atoms could still split. */
static smg_status resolve_forms(smg_space_builder *b) {
    for (int v = 0; v < b->space->views.count && b->space->refused == NULL; v++) {
        smg_sview old = b->space->views.items[v], *view = &b->space->views.items[v];
        view->axis_count = 0;
        for (int i = 0; i < old.axis_count; i++) {
            SMG_TRY(add_term(b, view, (smg_affine_term){.index = old.axis[i], .by = old.stride[i]}, b->one));
        }
    }
    return SMG_OK;
}

/* Views hold atoms until here; the same axis twice (a diagonal) adds its strides. */
static smg_status number_views(smg_space_builder *b) {
    for (int v = 0; v < b->space->views.count; v++) {
        smg_sview old = b->space->views.items[v], *view = &b->space->views.items[v];
        view->axis_count = 0;
        for (int i = 0; i < old.axis_count; i++) {
            int axis = b->atoms.pool.items[smg_atom_root(&b->atoms, old.axis[i])].axis;
            if (axis < 0 && view->source >= 0) {
                return smg_space_refuse(b, "a view over an axis that no node has", view->source);
            }
            if (axis < 0) continue; /* a form of an idle node */
            int at = 0;
            while (at < view->axis_count && view->axis[at] != axis) at++;
            if (at < view->axis_count) {
                view->stride[at] = smg_size_add(b->sizes, view->stride[at], old.stride[i]);
            } else {
                view->axis[at] = axis;
                view->stride[at] = old.stride[i];
                view->axis_count++;
            }
        }
    }
    return SMG_OK;
}

static smg_status store_view(smg_space_builder *b, int i) {
    smg_snode *node = &b->space->nodes.items[i];
    if (!node->output) return SMG_OK;
    const smg_node *n = smg_graph_node(b->g, node->node);
    smg_operand_map map = {.source = node->node, .rank = n->rank};
    for (int d = 0; d < n->rank; d++) smg_dim_of_list(b, &b->out[i][d], &map.dim[d]);
    return add_view(b, &map, &node->store);
}

static smg_axis_set layer_axes(const smg_space *space, const smg_snode *n);

/* A copy has the axes that its operands and its guards have. */
static smg_axis_set copy_axes(smg_space *space, int i) {
    smg_snode *n = &space->nodes.items[i];
    smg_axis_set set = layer_axes(space, n);
    for (int k = 0; k < n->operand_count; k++) {
        int p = n->operand[k].producer;
        if (p >= 0 && space->nodes.items[p].copy) copy_axes(space, p);
        set |= smg_space_operand_axes(space, &n->operand[k]);
    }
    n->result = n->iterates = set;
    return set;
}

static smg_axis_set layer_axes(const smg_space *space, const smg_snode *n) {
    smg_sview guards = {.source = -1, .layer_count = n->layer_count};
    memcpy(guards.layer, n->layer, sizeof(guards.layer));
    return smg_space_view_axes(space, &guards);
}

/* Reads of live nodes, set members first: those number the axes. */
static smg_status make_views(smg_space_builder *b) {
    smg_space *space = b->space;
    for (int i = 0; i < space->nodes.count && space->refused == NULL; i++) {
        smg_snode *node = &space->nodes.items[i];
        if (node->idle) continue;
        for (int k = 0; k < node->operand_count && space->refused == NULL; k++) {
            if (b->maps[i][k] == NULL || node->operand[k].producer >= 0) continue;
            SMG_TRY(add_view(b, b->maps[i][k], &space->nodes.items[i].operand[k].view));
        }
        if (i >= b->count) continue;
        SMG_TRY(store_view(b, i));
        SMG_TRY(number_node(b, i));
    }
    return SMG_OK;
}

smg_status smg_space_number(smg_space_builder *b) {
    smg_space *space = b->space;
    SMG_TRY(resolve_forms(b));
    for (int i = 0; i < b->copies.count; i++) {
        smg_snode *slot = SMG_ARRAY_PUSH(b->arena, &space->nodes);
        if (slot == NULL) return SMG_MEMORY;
        *slot = b->copies.items[i];
    }
    if (space->refused == NULL) SMG_TRY(make_views(b));
    if (space->refused == NULL) SMG_TRY(number_views(b));
    if (space->refused == NULL) SMG_TRY(smg_space_number_reads(b));
    for (int i = 0; space->refused == NULL && i < space->nodes.count; i++) {
        if (space->nodes.items[i].copy && !space->nodes.items[i].idle) copy_axes(space, i);
    }
    return SMG_OK;
}
