/* Values as expressions: maps are inlined, reductions and products are tiles, everything else is a load,
 * an index or a size. */
#include "kernel/lower_internal.h"

smg_status lower_refuse(lowering *l, const char *why) {
    if (l->refused == NULL) l->refused = why;
    return SMG_OK;
}

int lower_new_leaf(lowering *l, smg_kleaf leaf, int node) {
    smg_kleaf *slot = SMG_ARRAY_PUSH(l->arena, &l->k->leaves);
    int *owner = SMG_ARRAY_PUSH(l->arena, &l->leaf_node);
    if (slot == NULL || owner == NULL) return -1;
    *slot = leaf;
    *owner = node;
    return l->k->leaves.count - 1;
}

int lower_new_tile(lowering *l, const char *name, smg_kind kind, smg_residence where, const int *axes,
                   int axis_count, int pad) {
    smg_tile *tile = SMG_ARRAY_PUSH(l->arena, &l->k->tiles);
    if (tile == NULL) return -1;
    *tile = (smg_tile){ .name = smg_arena_format(l->arena, "%s%d", name, l->k->tiles.count - 1),
                        .kind = kind, .residence = where, .axis_count = axis_count, .pad = pad };
    if (tile->name == NULL) return -1;
    for (int i = 0; i < axis_count; i++) tile->axis[i] = axes[i];
    return l->k->tiles.count - 1;
}

smg_axis_set lower_columns(const lowering *l, smg_axis_set set) {
    smg_axis_set result = 0;
    for (int a = 0; a < l->space->axes.count; a++) {
        if (!(set & SMG_AXIS_BIT(a)) || a == l->s->row_axis) continue;
        if (a == l->s->col_axis || !(l->s->grid & SMG_AXIS_BIT(a))) result |= SMG_AXIS_BIT(a);
    }
    return result;
}

int lower_tile_axes(const lowering *l, smg_axis_set set, int *out_axes) {
    int count = 0, unit = -1;
    if (l->s->row_axis >= 0 && (set & SMG_AXIS_BIT(l->s->row_axis))) out_axes[count++] = l->s->row_axis;
    smg_axis_set columns = lower_columns(l, set);
    smg_size one = smg_size_const(l->g->sizes, 1);
    for (int v = 0; v < l->space->views.count && unit < 0; v++) {
        const smg_sview *view = &l->space->views.items[v];
        for (int i = 0; i < view->axis_count; i++) {
            if (view->stride[i] == one && (columns & SMG_AXIS_BIT(view->axis[i]))) unit = view->axis[i];
        }
    }
    for (int a = 0; a < l->space->axes.count && count < SMG_TILE_AXES - 1; a++) {
        if ((columns & SMG_AXIS_BIT(a)) && a != unit) out_axes[count++] = a;
    }
    if (unit >= 0) out_axes[count++] = unit;
    return count;
}

smg_axis_set lower_leaf_axes(const lowering *l, int leaf) {
    const smg_kleaf *f = &l->k->leaves.items[leaf];
    smg_axis_set set = 0;
    if (f->what == SMG_KLEAF_TILE) {
        const smg_tile *t = &l->k->tiles.items[f->index];
        for (int i = 0; i < t->axis_count; i++) set |= SMG_AXIS_BIT(t->axis[i]);
    } else if (f->what != SMG_KLEAF_SIZE) {
        const smg_access *access = &l->k->accesses.items[f->index];
        for (int i = 0; i < access->axis_count; i++) set |= SMG_AXIS_BIT(access->axis[i]);
        if (access->index != SMG_EXPR_NONE) set |= lower_expr_axes(l, access->index);
    }
    return set;
}

typedef struct axes_of {
    const lowering *l;
    smg_axis_set set;
} axes_of;

static void add_leaf_axes(void *user, int leaf) {
    axes_of *a = user;
    a->set |= lower_leaf_axes(a->l, leaf);
}

smg_axis_set lower_expr_axes(const lowering *l, smg_expr expr) {
    axes_of a = { .l = l };
    smg_expr_leaves(l->k->exprs, expr, add_leaf_axes, &a);
    return a.set;
}

int lower_buffer(lowering *l, smg_node_id source, bool written) {
    for (int i = 0; i < l->k->buffers.count; i++) {
        if (l->k->buffers.items[i].value == source) return i;
    }
    smg_kbuffer *b = SMG_ARRAY_PUSH(l->arena, &l->k->buffers);
    if (b == NULL) return -1;
    const smg_node *n = smg_graph_node(l->g, source);
    *b = (smg_kbuffer){ .type = n->type, .elements = smg_node_elements(l->g, source), .written = written,
                        .value = source };
    b->name = smg_arena_string(l->arena, smg_graph_describe(l->g, source));
    return b->name != NULL ? l->k->buffers.count - 1 : -1;
}

static int new_access(lowering *l, const smg_sview *view, int buffer, smg_expr index) {
    smg_access *access = SMG_ARRAY_PUSH(l->arena, &l->k->accesses);
    if (access == NULL) return -1;
    *access = (smg_access){ .buffer = buffer, .offset = view->offset, .index = index,
                            .index_stride = view->index_stride, .index_limit = view->index_limit };
    for (int i = 0; i < view->axis_count && i < SMG_ACCESS_AXES; i++) {
        access->axis[i] = view->axis[i];
        access->stride[i] = view->stride[i];
        access->axis_count++;
    }
    return l->k->accesses.count - 1;
}

static bool same_view(const smg_sview *a, const smg_sview *b) {
    if (a->source != b->source || a->offset != b->offset || a->axis_count != b->axis_count) return false;
    if (a->indirect || b->indirect) return false;
    for (int i = 0; i < a->axis_count; i++) {
        int at = 0;
        while (at < b->axis_count && b->axis[at] != a->axis[i]) at++;
        if (at == b->axis_count || b->stride[at] != a->stride[i]) return false;
    }
    return true;
}

static smg_status view_leaf(lowering *l, int v, const smg_sview *view, smg_expr index, int *out_leaf) {
    const smg_node *source = smg_graph_node(l->g, view->source);
    smg_kleaf leaf = { .kind = smg_type_kind(source->type) };
    if (view->axis_count > SMG_ACCESS_AXES) return lower_refuse(l, "a view has too many axes");
    for (int u = 0; u < l->space->views.count && l->view_leaf[v] < 0; u++) {
        if (l->view_leaf[u] >= 0 && same_view(&l->space->views.items[u], view)) {
            l->view_leaf[v] = l->view_leaf[u];
        }
    }
    if (l->view_leaf[v] >= 0 && index == SMG_EXPR_NONE) {
        *out_leaf = l->view_leaf[v];
        return SMG_OK;
    }
    if (smg_op_leaf(source->op) == SMG_LEAF_SIZE) {
        leaf.what = SMG_KLEAF_SIZE;
        leaf.size = source->size;
    } else {
        bool iota = smg_op_leaf(source->op) == SMG_LEAF_INDEX;
        int buffer = iota ? -1 : lower_buffer(l, view->source, false);
        if (!iota && buffer < 0) return SMG_MEMORY;
        leaf.what = iota ? SMG_KLEAF_IOTA : SMG_KLEAF_LOAD;
        leaf.index = new_access(l, view, buffer, index);
        if (leaf.index < 0) return SMG_MEMORY;
    }
    *out_leaf = lower_new_leaf(l, leaf, -1);
    l->view_leaf[v] = *out_leaf;
    return *out_leaf >= 0 ? SMG_OK : SMG_MEMORY;
}

smg_status lower_operand(lowering *l, const smg_snode *n, int k, smg_expr *out_value) {
    const smg_soperand *o = &n->operand[k];
    if (o->producer >= 0) return lower_value(l, o->producer, out_value);
    const smg_sview *view = &l->space->views.items[o->view];
    const smg_node *source = smg_graph_node(l->g, view->source);
    *out_value = SMG_EXPR_NONE;
    if (smg_op_leaf(source->op) == SMG_LEAF_NUMBER) {
        *out_value = smg_expr_const(l->k->exprs, smg_type_kind(source->type), source->value);
        return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
    }
    smg_expr index = SMG_EXPR_NONE;
    int leaf = -1;
    if (view->indirect) SMG_TRY(lower_operand(l, n, 1, &index));
    SMG_TRY(view_leaf(l, o->view, view, index, &leaf));
    if (l->refused != NULL) return SMG_OK;
    *out_value = smg_expr_leaf(l->k->exprs, l->k->leaves.items[leaf].kind, leaf);
    return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* REDUCE and CONTRACT values are set by lower_plan_passes before anyone asks. */
smg_status lower_value(lowering *l, int node, smg_expr *out_value) {
    const smg_snode *n = &l->space->nodes.items[node];
    lnode *ln = &l->node[node];
    if (ln->value == SMG_EXPR_NONE) {
        smg_expr operand[3] = { SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE };
        if (n->class_ == SMG_CLASS_GATHER) {
            SMG_TRY(lower_operand(l, n, 0, &ln->value));
        } else {
            for (int k = 0; k < n->operand_count; k++) {
                SMG_TRY(lower_operand(l, n, k, &operand[k]));
                if (l->refused != NULL) return SMG_OK;
            }
            ln->value = smg_op_expr(l->k->exprs, n->op, n->type, operand);
        }
        if (l->refused != NULL) return SMG_OK;
        if (ln->value == SMG_EXPR_NONE) {
            return smg_fail(l->ctx, SMG_INTERNAL, "kernel: %s has no scalar expression",
                            smg_graph_describe(l->g, n->node));
        }
    }
    *out_value = ln->value;
    return SMG_OK;
}
