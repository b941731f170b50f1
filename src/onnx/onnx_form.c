/* Forms of graph values; see the header. */
#include "onnx/onnx_form.h"

#define MOST_STEPS 2000
#define MOST_DEPTH 200 /* of nodes, one behind the other */

/* An element of a node. */
typedef struct element {
    onnx_forms *f;
    const smg_node *node;
    const smg_affine *at; /* per axis of the node */
} element;

void smg_onnx_forms_begin(smg_onnx_build *b, int count, const smg_size *extents, onnx_forms *out_forms) {
    *out_forms = (onnx_forms){.b = b, .steps_left = MOST_STEPS};
    for (int k = 0; k < count; k++) out_forms->extent[k] = extents[k];
    if (smg_exprs_create(b->arena, &out_forms->exprs) != SMG_OK) b->failed = true;
}

static smg_size extent_of(const void *user, int index) {
    const onnx_forms *f = user;
    return f->extent[index];
}

static smg_affine_scope scope_of(const onnx_forms *f) {
    return (smg_affine_scope){.sizes = f->b->sizes, .extent = extent_of, .user = f};
}

static bool is_one(const onnx_forms *f, smg_size size) {
    return smg_size_is_one(f->b->sizes, size);
}

static smg_affine number(const onnx_forms *f, int64_t value) {
    return (smg_affine){.begin = smg_size_const(f->b->sizes, value)};
}

/* io += by * a */
static bool add(const onnx_forms *f, smg_affine *io, const smg_affine *a, int64_t by) {
    return smg_affine_add(f->b->sizes, io, a, smg_size_const(f->b->sizes, by));
}

static bool is_number(const onnx_forms *f, const smg_affine *a, int64_t *out_value) {
    return a->count == 0 && smg_size_is_const(f->b->sizes, a->begin, out_value);
}

/* A literal of any type: floats too, where they are whole. */
static smg_affine_value literal(const onnx_forms *f, const smg_node *node) {
    smg_kind kind = smg_type_kind(node->type);
    return smg_affine_of_number(f->b->sizes, kind == SMG_KIND_FLOAT ? SMG_KIND_INT : kind, node->value);
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static smg_affine_value read_node(onnx_forms *f, smg_node_id id, const smg_affine *at);

static smg_affine_value read_operand(const void *user, int k) {
    const element *e = user;
    const smg_graph *g = e->f->b->graph;
    const smg_node *operand = smg_graph_node(g, e->node->operand[k]);
    smg_affine inner[SMG_MAX_RANK];
    for (int own = 0; own < operand->rank; own++) {
        int axis = own + e->node->rank - operand->rank;
        inner[own] = is_one(e->f, operand->dims[own]) ? number(e->f, 0) : e->at[axis];
    }
    return read_node(e->f, e->node->operand[k], inner);
}

static smg_affine_value read_map(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    element e = {f, node, at};
    smg_affine_scope scope = scope_of(f);
    smg_affine_leaves leaves = {read_operand, &e};
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < node->operand_count; k++)
        leaf[k] = smg_expr_leaf(f->exprs, smg_type_kind(smg_graph_node(f->b->graph, node->operand[k])->type), k);
    return smg_affine_eval(&scope, f->exprs, smg_op_expr(f->exprs, node->op, node->type, leaf), &leaves);
}

/* Axes of extent 1 come and go; the others must be the same, or every index a number. */
static smg_affine_value read_reshape(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    smg_affine inner[SMG_MAX_RANK];
    int next = 0;
    bool same = true;
    for (int own = 0; own < source->rank && same; own++) {
        inner[own] = number(f, 0);
        if (is_one(f, source->dims[own])) continue;
        while (next < node->rank && is_one(f, node->dims[next])) next++;
        same = next < node->rank && node->dims[next] == source->dims[own];
        if (same) inner[own] = at[next++];
    }
    if (same) return read_node(f, node->operand[0], inner);
    int64_t flat = 0, extent = 0, index = 0;
    for (int axis = 0; axis < node->rank; axis++) {
        if (!smg_size_is_const(f->b->sizes, node->dims[axis], &extent) || extent > INT32_MAX ||
            !is_number(f, &at[axis], &index) || index < 0 || index >= extent || flat > INT32_MAX)
            return smg_affine_unknown;
        flat = flat * extent + index;
    }
    for (int own = source->rank - 1; own >= 0; own--) {
        if (!smg_size_is_const(f->b->sizes, source->dims[own], &extent)) return smg_affine_unknown;
        inner[own] = number(f, flat % extent);
        flat /= extent;
    }
    return read_node(f, node->operand[0], inner);
}

static smg_affine_value read_window(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    smg_affine_scope scope = scope_of(f);
    smg_affine inner[SMG_MAX_RANK], here = {.begin = node->begin}, behind;
    if (!add(f, &here, &at[node->axis], node->step) || !add(f, &here, &at[node->axis + 1], node->dilation))
        return smg_affine_unknown;
    behind = here; /* how far behind the end */
    behind.begin = smg_size_sub(f->b->sizes, here.begin, source->dims[node->axis]);
    if (smg_affine_sign(&scope, &here, NULL) < 0 || smg_affine_sign(&scope, &behind, NULL) > 0) return literal(f, node);
    if (!smg_affine_within(&scope, &here, NULL, source->dims[node->axis])) return smg_affine_unknown;
    for (int own = 0; own < source->rank; own++)
        inner[own] = own == node->axis ? here : at[own < node->axis ? own : own + 1];
    return read_node(f, node->operand[0], inner);
}

static smg_affine_value read_view(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    smg_affine inner[SMG_MAX_RANK];
    int shift = node->rank - source->rank;
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE: return read_reshape(f, node, at);
    case SMG_VIEW_WINDOW: return read_window(f, node, at);
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < node->rank; i++) inner[node->perm[i]] = at[i];
        break;
    case SMG_VIEW_BROADCAST:
        for (int own = 0; own < source->rank; own++)
            inner[own] = is_one(f, source->dims[own]) ? number(f, 0) : at[own + shift];
        break;
    case SMG_VIEW_SLICE:
        for (int i = 0; i < node->rank; i++) inner[i] = at[i];
        inner[node->axis] = (smg_affine){.begin = node->begin};
        if (!add(f, &inner[node->axis], &at[node->axis], node->step)) return smg_affine_unknown;
        break;
    case SMG_VIEW_NONE: return smg_affine_unknown;
    }
    return read_node(f, node->operand[0], inner);
}

static smg_affine_value read_gather(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    const smg_node *table = smg_graph_node(f->b->graph, node->operand[0]);
    int rank = smg_graph_node(f->b->graph, node->operand[1])->rank;
    smg_affine inner[SMG_MAX_RANK];
    smg_affine_value row = read_node(f, node->operand[1], at);
    if (!smg_affine_whole(&row)) return smg_affine_unknown;
    inner[0] = row.form;
    for (int own = 1; own < table->rank; own++) inner[own] = at[rank + own - 1];
    return read_node(f, node->operand[0], inner);
}

/* Of contents that lie on a plane over the axes whose index is no number. */
static smg_affine_value read_constant(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    int64_t extent[SMG_MAX_RANK], index[SMG_MAX_RANK], slope[SMG_MAX_RANK], first, count = 1;
    smg_affine_value v = smg_affine_unknown;
    if (!node->data || node->type != SMG_TYPE_I32) return v;
    for (int axis = 0; axis < node->rank; axis++) {
        if (!smg_size_is_const(f->b->sizes, node->dims[axis], &extent[axis])) return v;
        if (!is_number(f, &at[axis], &index[axis])) {
            index[axis] = -1;
            if (!smg_mul_i64(count, extent[axis], &count) || count > SMG_ONNX_KNOWN_MAX) return v;
        } else if (index[axis] < 0 || index[axis] >= extent[axis]) {
            return v;
        }
    }
    if (!smg_host_plane(node->type, node->data, node->rank, extent, index, &first, slope)) return v;
    v.form = number(f, first);
    v.known = v.form.begin >= 0;
    for (int axis = 0; axis < node->rank && v.known; axis++) v.known = add(f, &v.form, &at[axis], slope[axis]);
    return v;
}

static smg_affine_value read_leaf(onnx_forms *f, const smg_node *node, const smg_affine *at) {
    smg_affine_value v = smg_affine_unknown;
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_INDEX:
        v.known = true;
        v.form = at[node->axis];
        return v;
    case SMG_LEAF_SIZE: return smg_affine_of_size(node->size);
    case SMG_LEAF_TENSOR: return read_constant(f, node, at);
    case SMG_LEAF_NUMBER: return literal(f, node);
    case SMG_LEAF_NONE: break;
    }
    return v;
}

static smg_affine_value read_node(onnx_forms *f, smg_node_id id, const smg_affine *at) {
    const smg_node *node = smg_graph_node(f->b->graph, id);
    smg_affine_value v = smg_affine_unknown;
    if (f->b->failed || f->depth == MOST_DEPTH || f->steps_left-- <= 0) return v;
    f->depth++;
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: v = read_leaf(f, node, at); break;
    case SMG_CLASS_MAP: v = read_map(f, node, at); break;
    case SMG_CLASS_VIEW: v = read_view(f, node, at); break;
    case SMG_CLASS_GATHER: v = read_gather(f, node, at); break;
    case SMG_CLASS_REDUCE:
    case SMG_CLASS_CONTRACT: break;
    }
    f->depth--;
    return v;
}

/* A truth as the number that it is. */
static smg_affine_value as_number(const onnx_forms *f, smg_affine_value v) {
    smg_affine_scope scope = scope_of(f);
    int known = smg_affine_decision(&scope, &v);
    return known == 0 ? smg_affine_unknown : smg_affine_of_size(smg_size_const(f->b->sizes, known > 0));
}

bool smg_onnx_form_at(onnx_forms *forms, smg_value value, const smg_affine *at, smg_affine *out) {
    smg_onnx_build *b = forms->b;
    const smg_node *node = smg_graph_node_of(b->graph, value);
    if (node == NULL || b->failed) return false;
    bool before = smg_sizes_set_quiet(b->sizes, true);
    smg_affine_value v = read_node(forms, value.id - 1, at);
    if (smg_type_kind(node->type) == SMG_KIND_BOOL) v = as_number(forms, v);
    smg_sizes_set_quiet(b->sizes, before);
    if (smg_context_status(b->ctx) == SMG_MEMORY) b->failed = true;
    *out = v.form;
    return smg_affine_whole(&v);
}
