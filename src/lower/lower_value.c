/* Values as expressions: maps are inlined, reductions and products are tiles, everything else is a load,
 * an index or a size. */
#include "lower/lower_internal.h"

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

int lower_new_tile(lowering *l, const char *name, smg_kind kind, smg_residence where, const int *axes, int axis_count,
                   int pad) {
    smg_tile *tile = SMG_ARRAY_PUSH(l->arena, &l->k->tiles);
    if (tile == NULL) return -1;
    *tile = (smg_tile){.name = smg_arena_numbered(l->arena, name, l->k->tiles.count - 1),
                       .type = smg_kind_type(kind),
                       .residence = where,
                       .axis_count = axis_count,
                       .layout = -1,
                       .pad = pad};
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

/* The axis along which something read here lies contiguous; -1. Numbers that count along an axis lie nowhere. */
static int unit_axis(const lowering *l, smg_axis_set columns) {
    smg_size one = smg_size_const(l->g->sizes, 1);
    for (int v = 0; v < l->space->views.count; v++) {
        const smg_sview *view = &l->space->views.items[v];
        int unit = -1;
        bool read = view->source >= 0 && smg_op_leaf(smg_graph_node(l->g, view->source)->op) != SMG_LEAF_INDEX;
        for (int i = 0; read && i < view->axis_count; i++) {
            if (view->stride[i] == one && (columns & SMG_AXIS_BIT(view->axis[i]))) unit = view->axis[i];
        }
        if (unit >= 0) return unit;
    }
    return -1;
}

bool lower_tile_axes(const lowering *l, smg_axis_set set, int room, int *out_axes, int *out_count) {
    int axes[SMG_SPACE_AXES], count = 0;
    if (l->s->row_axis >= 0 && (set & SMG_AXIS_BIT(l->s->row_axis))) axes[count++] = l->s->row_axis;
    smg_axis_set columns = lower_columns(l, set);
    int unit = unit_axis(l, columns);
    for (int a = 0; a < l->space->axes.count; a++) {
        if ((columns & SMG_AXIS_BIT(a)) && a != unit) axes[count++] = a;
    }
    if (unit >= 0) axes[count++] = unit;
    *out_count = count <= room ? count : 0;
    for (int i = 0; i < *out_count; i++) out_axes[i] = axes[i];
    return count <= room;
}

smg_status lower_refuse_axes(lowering *l) {
    return lower_refuse(l, "a tile has too many axes");
}

smg_axis_set lower_leaf_axes(const lowering *l, int leaf) {
    const smg_kleaf *f = &l->k->leaves.items[leaf];
    smg_axis_set set = 0;
    if (f->what == SMG_KLEAF_TILE) {
        const smg_tile *t = &l->k->tiles.items[f->index];
        for (int i = 0; i < t->axis_count; i++) {
            const smg_layout_pick *p = smg_kleaf_pick(f, t->axis[i]);
            int axis = p == NULL ? t->axis[i] : p->from;
            if (axis >= 0) set |= SMG_AXIS_BIT(axis);
        }
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
    axes_of a = {.l = l};
    smg_expr_leaves(l->k->exprs, expr, add_leaf_axes, &a);
    return a.set;
}

static void take_blocks(const lowering *l, smg_node_id source, smg_kbuffer *io) {
    const smg_node *n = smg_graph_node(l->g, source);
    if (!smg_node_is_blocked(n) || !smg_size_is_const(l->g->sizes, n->dims[n->rank - 1], &io->row)) return;
    memcpy(io->block, n->block, sizeof io->block);
}

int lower_buffer(lowering *l, smg_node_id source, bool written) {
    for (int i = 0; i < l->k->buffers.count; i++) {
        if (l->k->buffers.items[i].value == source) return i;
    }
    smg_kbuffer *b = SMG_ARRAY_PUSH(l->arena, &l->k->buffers);
    if (b == NULL) return -1;
    *b = (smg_kbuffer){.type = smg_graph_storage(l->g, source),
                       .elements = smg_node_elements(l->g, source),
                       .written = written,
                       .value = source};
    take_blocks(l, source, b);
    int stack = smg_space_stack(l->space, source);
    if (stack >= 0) {
        b->each = l->space->repeat.stack[stack].each;
        b->each_count = l->space->repeat.count;
        b->stride = l->space->repeat.stack[stack].stride;
        smg_size before = smg_size_const(l->g->sizes, b->stride * (b->each_count - 1));
        b->elements = smg_size_add(l->g->sizes, b->elements, before);
    }
    b->name = smg_arena_string(l->arena, smg_graph_describe(l->g, source));
    return b->name != NULL ? l->k->buffers.count - 1 : -1;
}

/* ---- views ------------------------------------------------------------------------------------- */

/* What an access adds to its affine part: an index, its stride and its limit; and where the affine part begins. */
typedef struct reach {
    smg_expr index;
    smg_size stride, limit, offset;
    int axes; /* that the access has itself, the first ones of the view; the index runs over the others */
} reach;

static smg_expr make2(lowering *l, smg_prim prim, smg_expr x, smg_expr y) {
    return smg_expr_make(l->k->exprs, prim, x, y, SMG_EXPR_NONE);
}

static smg_expr integer(lowering *l, int64_t value) {
    return smg_expr_const(l->k->exprs, SMG_KIND_INT, (double)value);
}

static bool same_size(const smg_kleaf *a, const smg_kleaf *b) {
    return a->what == b->what && a->kind == b->kind && a->size == b->size;
}

static smg_expr size_value(lowering *l, smg_size size) {
    int64_t value;
    if (smg_size_is_const(l->g->sizes, size, &value)) return integer(l, value);
    smg_kleaf leaf = {.what = SMG_KLEAF_SIZE, .kind = SMG_KIND_INT, .size = size};
    int id = 0;
    while (id < l->k->leaves.count && !same_size(&l->k->leaves.items[id], &leaf)) id++;
    if (id == l->k->leaves.count) id = lower_new_leaf(l, leaf, -1);
    return id >= 0 ? smg_expr_leaf(l->k->exprs, SMG_KIND_INT, id) : SMG_EXPR_NONE;
}

static int new_access(lowering *l, const smg_sview *view, int buffer, const reach *r) {
    smg_access *access = SMG_ARRAY_PUSH(l->arena, &l->k->accesses);
    if (access == NULL) return -1;
    *access = (smg_access){
        .buffer = buffer, .offset = r->offset, .index = r->index, .index_stride = r->stride, .index_limit = r->limit};
    for (int i = 0; i < r->axes; i++) {
        access->axis[i] = view->axis[i];
        access->stride[i] = view->stride[i];
        access->axis_count++;
    }
    return l->k->accesses.count - 1;
}

/* The sum of axes as an INT: axes that an access has no room for, and forms of the space. */
static smg_expr iota(lowering *l, const smg_sview *form) {
    int axes = form->axis_count < SMG_ACCESS_AXES ? form->axis_count : SMG_ACCESS_AXES;
    reach none = {.index = SMG_EXPR_NONE, .offset = form->offset, .axes = axes};
    smg_kleaf leaf = {.what = SMG_KLEAF_IOTA, .kind = SMG_KIND_INT};
    int id = new_access(l, form, -1, &none) >= 0 ? lower_leaf_of_last(l, leaf) : -1;
    return id >= 0 ? smg_expr_leaf(l->k->exprs, SMG_KIND_INT, id) : SMG_EXPR_NONE;
}

static smg_status space_leaf(lowering *l, int number, smg_expr *out_value) {
    const smg_sleaf *leaf = &l->space->leaves.items[number];
    if (l->space_leaf[number] == SMG_EXPR_NONE) {
        switch (leaf->what) {
        case SMG_SLEAF_FORM: l->space_leaf[number] = iota(l, &l->space->views.items[leaf->index]); break;
        case SMG_SLEAF_SIZE: l->space_leaf[number] = size_value(l, leaf->size); break;
        case SMG_SLEAF_VALUE: {
            const smg_snode *n = &l->space->nodes.items[leaf->index];
            SMG_TRY(lower_operand(l, n, 1, &l->space_leaf[number]));
            break;
        }
        }
    }
    *out_value = l->space_leaf[number];
    return *out_value != SMG_EXPR_NONE || l->refused != NULL ? SMG_OK : SMG_MEMORY;
}

/* An expression of the space in terms of the kernel's leaves. */
static smg_status translate(lowering *l, smg_expr expr, smg_expr *out_value) {
    smg_expr_node n = *smg_expr_get(l->space->exprs, expr);
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (n.prim == SMG_PRIM_LEAF) return space_leaf(l, n.leaf, out_value);
    for (int i = 0; i < smg_prim_arity(n.prim) && l->refused == NULL; i++) SMG_TRY(translate(l, n.arg[i], &arg[i]));
    if (l->refused != NULL) return SMG_OK;
    *out_value = n.prim == SMG_PRIM_CONST ? smg_expr_const(l->k->exprs, n.kind, n.value)
                                          : smg_expr_make(l->k->exprs, n.prim, arg[0], arg[1], arg[2]);
    return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

static smg_status all_guards(lowering *l, const smg_slayer *layer, int count, smg_expr *out_guard) {
    *out_guard = SMG_EXPR_NONE;
    for (int i = 0; i < count; i++) {
        smg_expr one;
        SMG_TRY(translate(l, layer[i].guard, &one));
        if (l->refused != NULL) return SMG_OK;
        *out_guard = i == 0 ? one : make2(l, SMG_PRIM_AND, *out_guard, one);
    }
    return SMG_OK;
}

static bool may_be_negative(const lowering *l, smg_size size) {
    int64_t low, high;
    smg_size_bounds(l->g->sizes, size, &low, &high);
    return low < 0;
}

/* Does what becomes an index run backwards? */
static bool runs_backwards(const lowering *l, const smg_sview *view) {
    for (int i = 0; i < view->index_count; i++)
        if (may_be_negative(l, view->index_stride[i])) return true;
    for (int i = SMG_ACCESS_AXES; i < view->axis_count; i++)
        if (may_be_negative(l, view->stride[i])) return true;
    return false;
}

/* The axes of a view behind the first ones, as a sum. */
static smg_expr sum_of_others(lowering *l, const smg_sview *view, int first) {
    smg_sview rest = *view;
    rest.axis_count -= first;
    rest.offset = SMG_SIZE_ZERO;
    memmove(rest.axis, rest.axis + first, (size_t)rest.axis_count * sizeof(int));
    memmove(rest.stride, rest.stride + first, (size_t)rest.axis_count * sizeof(smg_size));
    return iota(l, &rest);
}

/* Several indices are one sum; one that is out of its own range must not be made good by another, nor by axes. A sum
 * that runs backwards begins where the view does, because no index is negative. */
static smg_status sum_indices(lowering *l, const smg_sview *view, bool backwards, int axes, reach *out) {
    smg_expr sum = backwards ? size_value(l, view->offset) : integer(l, 0), good = SMG_EXPR_NONE;
    if (axes < view->axis_count) sum = make2(l, SMG_PRIM_ADD, sum, sum_of_others(l, view, axes));
    for (int i = 0; i < view->index_count; i++) {
        smg_expr value;
        SMG_TRY(translate(l, view->index[i].expr, &value));
        if (l->refused != NULL) return SMG_OK;
        sum = make2(l, SMG_PRIM_ADD, sum, make2(l, SMG_PRIM_MUL, value, size_value(l, view->index_stride[i])));
        if (!view->index[i].checked) continue;
        smg_expr low = make2(l, SMG_PRIM_LE, integer(l, 0), value);
        smg_expr both = make2(l, SMG_PRIM_AND, low, make2(l, SMG_PRIM_LT, value, size_value(l, view->index[i].range)));
        good = good == SMG_EXPR_NONE ? both : make2(l, SMG_PRIM_AND, good, both);
    }
    if (good != SMG_EXPR_NONE) sum = smg_expr_make(l->k->exprs, SMG_PRIM_SELECT, good, sum, integer(l, -1));
    *out = (reach){.index = sum,
                   .stride = smg_size_const(l->g->sizes, 1),
                   .limit = smg_size_const(l->g->sizes, SMG_SIZE_UNBOUNDED),
                   .offset = backwards ? SMG_SIZE_ZERO : view->offset,
                   .axes = axes};
    return SMG_OK;
}

/* Axes that an access of the view has itself, where its index is a sum: as many as there is room for. None of one that
 * runs backwards within a border: it begins outside, and comes inside by its axes. */
static int own_axes(const smg_sview *view, bool backwards) {
    if (view->axis_count > SMG_ACCESS_AXES) return SMG_ACCESS_AXES;
    return backwards && view->layer_count > 0 ? 0 : view->axis_count;
}

static smg_status reach_of(lowering *l, const smg_sview *view, reach *out) {
    smg_expr guard;
    bool backwards = runs_backwards(l, view);
    bool single = view->index_count == 1 && view->index[0].checked && view->axis_count <= SMG_ACCESS_AXES;
    int axes = single ? view->axis_count : own_axes(view, backwards);
    *out = (reach){.index = SMG_EXPR_NONE, .offset = view->offset, .axes = axes};
    SMG_TRY(all_guards(l, view->layer, view->layer_count, &guard));
    if (l->refused != NULL) return SMG_OK;
    bool others = axes < view->axis_count;
    if (single) {
        SMG_TRY(translate(l, view->index[0].expr, &out->index));
        out->stride = view->index_stride[0];
        out->limit = view->index[0].range;
    } else if (view->index_count > 0 || guard != SMG_EXPR_NONE || others) {
        SMG_TRY(sum_indices(l, view, backwards, axes, out));
    }
    if (l->refused != NULL) return SMG_OK;
    if (guard != SMG_EXPR_NONE) {
        out->index = smg_expr_make(l->k->exprs, SMG_PRIM_SELECT, guard, out->index, integer(l, SMG_INDEX_ABSENT));
    }
    bool made = out->index != SMG_EXPR_NONE || (view->index_count == 0 && guard == SMG_EXPR_NONE && !others);
    return made ? SMG_OK : SMG_MEMORY;
}

static bool same_access(const lowering *l, const smg_access *a, const smg_access *b) {
    if (a->buffer != b->buffer || a->offset != b->offset || a->axis_count != b->axis_count) return false;
    if (a->index != b->index || a->index_stride != b->index_stride || a->index_limit != b->index_limit) return false;
    (void)l;
    for (int i = 0; i < a->axis_count; i++) {
        int at = 0;
        while (at < b->axis_count && b->axis[at] != a->axis[i]) at++;
        if (at == b->axis_count || b->stride[at] != a->stride[i]) return false;
    }
    return true;
}

int lower_leaf_of_last(lowering *l, smg_kleaf leaf) {
    const smg_access *last = &l->k->accesses.items[l->k->accesses.count - 1];
    for (int f = 0; f < l->k->leaves.count; f++) {
        const smg_kleaf *old = &l->k->leaves.items[f];
        if (old->what != leaf.what || old->kind != leaf.kind) continue;
        if (!same_access(l, &l->k->accesses.items[old->index], last)) continue;
        l->k->accesses.count--;
        return f;
    }
    leaf.index = l->k->accesses.count - 1;
    return lower_new_leaf(l, leaf, -1);
}

/* Axes that only the index runs over belong to the access, too: its elements exist where they do. */
static smg_status add_index_axes(lowering *l, smg_access *access) {
    if (access->index == SMG_EXPR_NONE) return SMG_OK;
    smg_axis_set set = lower_expr_axes(l, access->index);
    for (int i = 0; i < access->axis_count; i++) set &= ~SMG_AXIS_BIT(access->axis[i]);
    for (int a = 0; a < l->space->axes.count; a++) {
        if (!(set & SMG_AXIS_BIT(a))) continue;
        if (access->axis_count == SMG_ACCESS_AXES) return lower_refuse(l, "an index runs over too many axes");
        access->axis[access->axis_count] = a;
        access->stride[access->axis_count++] = SMG_SIZE_ZERO;
    }
    return SMG_OK;
}

smg_status lower_load(lowering *l, const smg_sview *view, smg_expr *out_value) {
    const smg_node *source = smg_graph_node(l->g, view->source);
    smg_kleaf leaf = {.what = SMG_KLEAF_LOAD, .kind = smg_type_kind(source->type)};
    reach r;
    SMG_TRY(reach_of(l, view, &r));
    if (l->refused != NULL) return SMG_OK;
    int buffer = lower_buffer(l, view->source, false);
    if (buffer < 0 || new_access(l, view, buffer, &r) < 0) return SMG_MEMORY;
    SMG_TRY(add_index_axes(l, &l->k->accesses.items[l->k->accesses.count - 1]));
    int id = lower_leaf_of_last(l, leaf);
    if (id < 0) return SMG_MEMORY;
    *out_value = smg_expr_leaf(l->k->exprs, leaf.kind, id);
    return SMG_OK;
}

static smg_status iota_value(lowering *l, const smg_sview *view, smg_expr *out_value) {
    reach none = {.index = SMG_EXPR_NONE, .offset = view->offset, .axes = view->axis_count};
    smg_kleaf leaf = {.what = SMG_KLEAF_IOTA, .kind = SMG_KIND_INT};
    if (view->axis_count > SMG_ACCESS_AXES) return lower_refuse(l, "an index runs over too many axes");
    if (new_access(l, view, -1, &none) < 0) return SMG_MEMORY;
    int id = lower_leaf_of_last(l, leaf);
    if (id < 0) return SMG_MEMORY;
    *out_value = smg_expr_leaf(l->k->exprs, SMG_KIND_INT, id);
    if (view->index_count == 0) return SMG_OK;
    reach sum;
    SMG_TRY(sum_indices(l, view, false, view->axis_count, &sum));
    if (l->refused == NULL) *out_value = make2(l, SMG_PRIM_ADD, *out_value, sum.index);
    return SMG_OK;
}

smg_status lower_within(lowering *l, const smg_slayer *layer, int count, bool absent_is_zero, smg_expr *io_value) {
    bool zeros = absent_is_zero;
    for (int i = 0; i < count; i++) {
        double fill = layer[i].fill;
        zeros = zeros && !(fill < 0 || fill > 0 || fill != fill);
    }
    for (int i = count - 1; i >= 0 && !zeros && l->refused == NULL; i--) {
        smg_expr guard, fill = smg_expr_const(l->k->exprs, smg_expr_get(l->k->exprs, *io_value)->kind, layer[i].fill);
        SMG_TRY(translate(l, layer[i].guard, &guard));
        if (l->refused != NULL || fill == SMG_EXPR_NONE) break;
        *io_value = smg_expr_make(l->k->exprs, SMG_PRIM_SELECT, guard, *io_value, fill);
        if (*io_value == SMG_EXPR_NONE) return SMG_MEMORY;
    }
    return SMG_OK;
}

static smg_status view_value(lowering *l, const smg_sview *view, smg_expr *out_value) {
    const smg_node *source = smg_graph_node(l->g, view->source);
    smg_leaf_kind kind = smg_op_leaf(source->op);
    *out_value = SMG_EXPR_NONE;
    if (kind == SMG_LEAF_NUMBER) {
        *out_value = smg_expr_const(l->k->exprs, smg_type_kind(source->type), source->value);
    } else if (kind == SMG_LEAF_SIZE) {
        smg_kleaf leaf = {.what = SMG_KLEAF_SIZE, .kind = smg_type_kind(source->type), .size = source->size};
        int id = lower_new_leaf(l, leaf, -1);
        if (id >= 0) *out_value = smg_expr_leaf(l->k->exprs, leaf.kind, id);
    } else if (kind == SMG_LEAF_INDEX) {
        SMG_TRY(iota_value(l, view, out_value));
    } else {
        SMG_TRY(lower_load(l, view, out_value));
    }
    if (l->refused != NULL) return SMG_OK;
    if (*out_value == SMG_EXPR_NONE) return SMG_MEMORY;
    return lower_within(l, view->layer, view->layer_count, kind <= SMG_LEAF_TENSOR, out_value);
}

smg_status lower_operand(lowering *l, const smg_snode *n, int k, smg_expr *out_value) {
    const smg_soperand *o = &n->operand[k];
    if (o->producer >= 0) {
        SMG_TRY(lower_value(l, o->producer, out_value));
        return l->refused == NULL && o->read != NULL ? lower_read(l, o->read, out_value) : SMG_OK;
    }
    if (o->view < 0) {
        *out_value = smg_expr_const(l->k->exprs, SMG_KIND_FLOAT, 1.0);
        return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
    }
    if (smg_space_reads_carried(l->space, &l->space->views.items[o->view]))
        return lower_carried(l, &l->space->views.items[o->view], out_value);
    if (l->view_value[o->view] == SMG_EXPR_NONE) {
        SMG_TRY(view_value(l, &l->space->views.items[o->view], &l->view_value[o->view]));
    }
    *out_value = l->view_value[o->view];
    return SMG_OK;
}

/* REDUCE and CONTRACT values are set by lower_plan_passes before anyone asks. */
smg_status lower_value(lowering *l, int node, smg_expr *out_value) {
    const smg_snode *n = &l->space->nodes.items[node];
    lnode *ln = &l->node[node];
    if (ln->value == SMG_EXPR_NONE) {
        smg_expr operand[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
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
        SMG_TRY(lower_within(l, n->layer, n->layer_count, false, &ln->value));
    }
    *out_value = ln->value;
    return SMG_OK;
}
