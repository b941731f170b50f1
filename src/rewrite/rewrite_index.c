/* What is known of integers at each position (rewrite_known.c), put to use: a value that one index decides is written
 * in the one simplest way, a comparison that holds at all positions is a number, and a gather whose rows are a sum of
 * positions is a view. So the ranges, joins and gathers that exporters write around a mask come down to a predicate
 * over indices, or to nothing. */
#include "rewrite/rewrite_internal.h"

/* ---- one index ------------------------------------------------------------------------------------ */

/* The number or size `value`, rank 0. */
static smg_node_id scalar(rewriter *r, smg_type type, smg_size value) {
    int64_t number;
    smg_node node = {.op = SMG_OP_SIZE, .type = type, .name = "", .size = value};
    if (smg_size_is_const(r->g->sizes, value, &number)) {
        node = (smg_node){.op = SMG_OP_FILL, .type = type, .name = "", .value = (double)number};
    }
    return smg_rewriter_add(r, &node);
}

static bool is_scalar(const rewriter *r, smg_node_id id) {
    const smg_node *n = &r->g->nodes.items[id];
    return n->rank == 0 && (smg_op_leaf(n->op) == SMG_LEAF_NUMBER || smg_op_leaf(n->op) == SMG_LEAF_SIZE);
}

/* An index along its axis, extent 1 along the others, perhaps of another type. */
static bool is_index(const rewriter *r, smg_node_id id) {
    const smg_node *n = &r->g->nodes.items[id];
    if (smg_op_converts(n->op)) n = smg_rewriter_operand(r, n, 0);
    if (smg_op_leaf(n->op) != SMG_LEAF_INDEX) return false;
    for (int d = 0; d < n->rank; d++)
        if (d != n->axis && !smg_size_is_one(r->g->sizes, n->dims[d])) return false;
    return true;
}

/* begin + by * index, begin - index, -index; or a size; repeated along other axes or not. */
static bool is_simple(const rewriter *r, const smg_node *n) {
    if (smg_op_view(n->op) == SMG_VIEW_BROADCAST) {
        if (is_scalar(r, n->operand[0]) || is_index(r, n->operand[0])) return true;
        n = smg_rewriter_operand(r, n, 0);
    }
    if (n->op == SMG_OP_NEG || smg_op_converts(n->op)) return is_index(r, n->operand[0]);
    if (n->op == SMG_OP_SUB) return is_scalar(r, n->operand[0]) && is_index(r, n->operand[1]);
    if (n->op == SMG_OP_ADD && is_scalar(r, n->operand[1])) {
        if (is_index(r, n->operand[0])) return true;
        n = smg_rewriter_operand(r, n, 0);
    }
    return n->op == SMG_OP_MUL && is_scalar(r, n->operand[1]) && is_index(r, n->operand[0]);
}

/* A map of an index along its axis and what is the same everywhere. */
static smg_node_id index_map(rewriter *r, smg_op op, smg_node_id index, smg_node_id a, smg_node_id b) {
    const smg_node *like = &r->g->nodes.items[index];
    smg_node node = {.op = op, .type = like->type, .rank = like->rank, .name = "", .operand_count = b < 0 ? 1 : 2};
    memcpy(node.dims, like->dims, sizeof node.dims);
    node.operand[0] = a;
    if (b >= 0) node.operand[1] = b;
    return a < 0 ? -1 : smg_rewriter_add(r, &node);
}

static smg_node_id simple_index(rewriter *r, const smg_node *node, const smg_affine *f, int axis) {
    int64_t by;
    smg_size factor = smg_affine_by(f, axis);
    smg_node iota = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32, .rank = node->rank, .name = "", .axis = axis};
    for (int d = 0; d < node->rank; d++) iota.dims[d] = d == axis ? node->dims[d] : smg_size_const(r->g->sizes, 1);
    smg_node_id index = smg_rewriter_add(r, &iota);
    if (index >= 0 && node->type != SMG_TYPE_I32) {
        smg_node cast = {.op = SMG_OP_CAST, .type = node->type, .rank = node->rank, .name = "", .operand_count = 1};
        memcpy(cast.dims, iota.dims, sizeof cast.dims);
        cast.operand[0] = index;
        index = smg_rewriter_add(r, &cast);
    }
    if (index < 0) return -1;
    bool number = smg_size_is_const(r->g->sizes, factor, &by);
    if (number && by == -1 && f->begin == SMG_SIZE_ZERO) return index_map(r, SMG_OP_NEG, index, index, -1);
    smg_node_id begin = f->begin != SMG_SIZE_ZERO ? scalar(r, node->type, f->begin) : -1;
    if (f->begin != SMG_SIZE_ZERO && begin < 0) return -1;
    if (number && by == -1) return index_map(r, SMG_OP_SUB, index, begin, index);
    smg_node_id value = index;
    if (!number || by != 1) {
        smg_node_id times = scalar(r, node->type, factor);
        value = times < 0 ? -1 : index_map(r, SMG_OP_MUL, index, index, times);
    }
    return begin < 0 ? value : index_map(r, SMG_OP_ADD, index, value, begin);
}

/* The node repeats `id` along the axes that it has and that one has not. */
static bool become_repeated(const rewriter *r, smg_node *node, smg_node_id id, smg_node_id *out_same) {
    const smg_node *source = &r->g->nodes.items[id];
    if (smg_same_dims(source, node)) {
        *out_same = id;
        return true;
    }
    smg_node view = {
        .op = SMG_OP_BROADCAST, .type = node->type, .rank = node->rank, .name = node->name, .operand_count = 1};
    memcpy(view.dims, node->dims, sizeof view.dims);
    view.operand[0] = id;
    *node = view;
    return true;
}

static bool value_of_one_index(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_affine_value v;
    int64_t number;
    int axis = -1;
    smg_op_class class_ = smg_node_class(node);
    if (class_ == SMG_CLASS_LEAF || smg_type_kind(node->type) != SMG_KIND_INT) return false;
    if (!smg_rewriter_known(r, node, &v) || !smg_affine_whole(&v)) return false;
    for (int t = 0; t < v.form.count; t++) {
        if (smg_size_is_one(r->g->sizes, node->dims[v.form.term[t].index])) continue;
        if (axis >= 0) return false;
        axis = v.form.term[t].index;
    }
    if (is_simple(r, node)) return false;
    if (axis < 0 && smg_size_is_const(r->g->sizes, v.form.begin, &number)) {
        if (number < INT32_MIN || number > INT32_MAX) return false; /* would be another number on a device */
        smg_rewriter_become_number(node, (double)number);
        return true;
    }
    smg_node_id id = axis < 0 ? scalar(r, node->type, v.form.begin) : simple_index(r, node, &v.form, axis);
    return id >= 0 && become_repeated(r, node, id, out_same);
}

static bool decided_predicate(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_affine_value v;
    (void)out_same;
    smg_op_class class_ = smg_node_class(node);
    if ((class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_VIEW) || node->type != SMG_TYPE_BOOL) return false;
    if (!smg_rewriter_known(r, node, &v) || !smg_affine_whole(&v)) return false;
    smg_affine_scope scope = smg_known_scope(r, node);
    int known = smg_affine_decision(&scope, &v);
    if (known == 0) return false;
    smg_rewriter_become_number(node, known > 0 ? 1.0 : 0.0);
    return true;
}

static bool size_that_is_a_number(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int64_t value;
    (void)out_same;
    if (smg_op_leaf(node->op) != SMG_LEAF_SIZE || !smg_size_is_const(r->g->sizes, node->size, &value)) return false;
    if (value < -(1 << 24) || value > 1 << 24) return false; /* exact in every type that a size has */
    smg_rewriter_become_number(node, (double)value);
    return true;
}

/* ---- reductions of one number ------------------------------------------------------------------------ */

static bool reduce_of_a_number(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_REDUCE || !smg_rewriter_is_number(r, node, 0, &value)) return false;
    smg_combine combine = smg_op_combine(node->op);
    bool zero = value >= 0.0 && value <= 0.0, one = value >= 1.0 && value <= 1.0;
    bool same = combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN || (combine == SMG_COMBINE_ADD && zero) ||
                (combine == SMG_COMBINE_MUL && (zero || one));
    if (!same) return false;
    smg_rewriter_become_number(node, value);
    return true;
}

/* ---- gathers ----------------------------------------------------------------------------------------- */

#define MAX_RUNS SMG_MAX_RANK

/* Rows begin + sum(by * index) of a table, the axes in descending order of `by`. */
typedef struct row_walk {
    smg_size begin;
    int count;
    int axis[MAX_RUNS]; /* of the index */
    smg_size by[MAX_RUNS], extent[MAX_RUNS];
    smg_size room[MAX_RUNS]; /* rows of one step of the axis before, in steps of this one */
} row_walk;

/* Is p a multiple of q? */
static bool is_multiple(const rewriter *r, smg_size p, smg_size q, smg_size *out_times) {
    return smg_size_divide_exact(r->g->sizes, p, q, out_times);
}

static void put_axis(row_walk *w, const rewriter *r, int axis, smg_size by, smg_size extent) {
    smg_size unused;
    int at = w->count++;
    for (; at > 0 && is_multiple(r, by, w->by[at - 1], &unused); at--) {
        w->axis[at] = w->axis[at - 1];
        w->by[at] = w->by[at - 1];
        w->extent[at] = w->extent[at - 1];
    }
    w->axis[at] = axis;
    w->by[at] = by;
    w->extent[at] = extent;
}

/* Every row is inside of the table, counted from its front; begin is moved there. */
static bool find_walk(const rewriter *r, const smg_node *index, const smg_affine_value *v, smg_size rows, row_walk *w) {
    smg_sizes *s = r->g->sizes;
    smg_affine_scope scope = smg_known_scope(r, index);
    smg_affine row = v->form;
    *w = (row_walk){.begin = SMG_SIZE_NONE};
    if (!smg_affine_whole(v)) return false;
    if (smg_affine_sign(&scope, &row, NULL) < 0) row.begin = smg_size_add(s, row.begin, rows); /* from the end */
    if (row.begin < 0 || !smg_affine_within(&scope, &row, NULL, rows)) return false;
    w->begin = row.begin;
    for (int d = 0; d < index->rank; d++) {
        smg_size by = smg_affine_by(&v->form, d);
        if (by != SMG_SIZE_ZERO && !smg_size_is_one(s, index->dims[d])) put_axis(w, r, d, by, index->dims[d]);
    }
    return true;
}

/* Each axis takes its steps within one step of the axis before: the rows are a box of the table's. */
static bool is_box(const rewriter *r, row_walk *w) {
    int64_t low;
    for (int i = 0; i < w->count; i++) {
        smg_size_bounds(r->g->sizes, w->by[i], &low, NULL);
        if (low < 1) return false;
        w->room[i] = w->extent[i];
        if (i == 0) continue;
        if (!is_multiple(r, w->by[i - 1], w->by[i], &w->room[i])) return false;
        if (!smg_affine_at_most(r->g->sizes, w->extent[i], w->room[i], 0)) return false;
    }
    return w->count > 0;
}

/* ---- views, one behind the other ----------------------------------------------------------------------- */

/* Adds a view of `id`; the same node where it would change nothing, -1 after a failure. */
static smg_node_id slice_of(rewriter *r, smg_node_id id, int axis, smg_size begin, smg_size count, int64_t step) {
    if (id < 0) return -1;
    smg_node view = r->g->nodes.items[id];
    if (view.dims[axis] == count && begin == SMG_SIZE_ZERO && step == 1) return id;
    view = (smg_node){.op = SMG_OP_SLICE, .type = view.type, .rank = view.rank, .name = "", .operand_count = 1};
    memcpy(view.dims, r->g->nodes.items[id].dims, sizeof view.dims);
    view.dims[axis] = count;
    view.operand[0] = id;
    view.axis = axis;
    view.begin = begin;
    view.step = step;
    return smg_rewriter_add(r, &view);
}

static smg_node_id shaped(rewriter *r, smg_op op, smg_node_id id, int rank, const smg_size *dims) {
    if (id < 0) return -1;
    smg_node view = {.op = op, .type = r->g->nodes.items[id].type, .rank = rank, .name = "", .operand_count = 1};
    for (int d = 0; d < rank; d++) view.dims[d] = dims[d];
    view.operand[0] = id;
    return smg_same_dims(&view, &r->g->nodes.items[id]) ? id : smg_rewriter_add(r, &view);
}

static smg_node_id turned(rewriter *r, smg_node_id id, const int *perm) {
    if (id < 0) return -1;
    const smg_node *a = &r->g->nodes.items[id];
    smg_node view = {.op = SMG_OP_TRANSPOSE, .type = a->type, .rank = a->rank, .name = "", .operand_count = 1};
    bool moves = false;
    for (int d = 0; d < a->rank; d++) {
        view.perm[d] = perm[d];
        view.dims[d] = a->dims[perm[d]];
        moves = moves || perm[d] != d;
    }
    view.operand[0] = id;
    return moves ? smg_rewriter_add(r, &view) : id;
}

/* The rows of a walk as axes of their own in front of the table's others, in the order of the walk. */
static smg_node_id boxed(rewriter *r, smg_node_id table, const row_walk *w) {
    smg_sizes *s = r->g->sizes;
    const smg_node source = r->g->nodes.items[table];
    smg_size dims[SMG_MAX_RANK], one = smg_size_const(s, 1), inner = w->by[w->count - 1];
    smg_size all = smg_size_mul(s, w->extent[0], w->by[0]);
    smg_size last = smg_size_add(s, w->begin, all), offset = SMG_SIZE_ZERO;
    int rank = 0;
    if (w->count + source.rank > SMG_MAX_RANK) return -1;
    bool front = smg_affine_at_most(r->g->sizes, last, source.dims[0], 0);
    if (!front) { /* begins within the innermost step, which the walk then goes through at that place */
        offset = w->begin;
        if (!smg_affine_at_most(r->g->sizes, offset, inner, 1) ||
            !smg_affine_at_most(r->g->sizes, all, source.dims[0], 0))
            return -1;
    }
    smg_node_id id = slice_of(r, table, 0, front ? w->begin : SMG_SIZE_ZERO, all, 1);
    for (int i = 0; i < w->count; i++) dims[rank++] = w->room[i];
    bool wide = !smg_size_is_one(r->g->sizes, inner);
    if (wide) dims[rank++] = inner;
    for (int d = 1; d < source.rank; d++) dims[rank++] = source.dims[d];
    id = shaped(r, SMG_OP_RESHAPE, id, rank, dims);
    for (int i = 0; i < w->count; i++) id = slice_of(r, id, i, SMG_SIZE_ZERO, w->extent[i], 1);
    if (wide) id = slice_of(r, id, w->count, offset, one, 1);
    for (int i = 0; i < w->count; i++) dims[i] = w->extent[i];
    for (int d = 1; d < source.rank; d++) dims[w->count + d - 1] = source.dims[d];
    return shaped(r, SMG_OP_RESHAPE, id, w->count + source.rank - 1, dims);
}

/* From the axes of the walk to those of the index, and repeated along what the rows do not depend on. */
static smg_node_id arranged(rewriter *r, smg_node_id id, const smg_node *node, const smg_node *index,
                            const row_walk *w) {
    int perm[SMG_MAX_RANK], at = 0, rest = node->rank - index->rank;
    smg_size dims[SMG_MAX_RANK];
    if (id < 0) return -1;
    for (int d = 0; d < node->rank; d++) dims[d] = d < index->rank ? smg_size_const(r->g->sizes, 1) : node->dims[d];
    for (int d = 0; d < index->rank; d++) {
        for (int i = 0; i < w->count; i++) {
            if (w->axis[i] != d) continue;
            perm[at++] = i;
            dims[d] = w->extent[i];
        }
    }
    for (int d = 0; d < rest; d++) perm[at++] = w->count + d;
    id = turned(r, id, perm);
    id = shaped(r, SMG_OP_RESHAPE, id, node->rank, dims);
    return shaped(r, SMG_OP_BROADCAST, id, node->rank, node->dims);
}

static smg_node_id rows_as_views(rewriter *r, const smg_node *node, const smg_node *index, row_walk *w) {
    int64_t step = 1;
    smg_node_id table = node->operand[0];
    bool strided = w->count == 1 && smg_size_is_const(r->g->sizes, w->by[0], &step);
    if (strided) return arranged(r, slice_of(r, table, 0, w->begin, w->extent[0], step), node, index, w);
    if (w->count > 0) return is_box(r, w) ? arranged(r, boxed(r, table, w), node, index, w) : -1;
    smg_size dims[SMG_MAX_RANK], one = smg_size_const(r->g->sizes, 1);
    const smg_node source = r->g->nodes.items[table];
    smg_node_id row = slice_of(r, table, 0, w->begin, one, 1);
    for (int d = 1; d < source.rank; d++) dims[d - 1] = source.dims[d];
    row = shaped(r, SMG_OP_RESHAPE, row, source.rank - 1, dims);
    return arranged(r, row, node, index, w);
}

static bool gather_as_view(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_affine_value v;
    row_walk w;
    if (smg_node_class(node) != SMG_CLASS_GATHER || !smg_rewriter_known(r, node, &v)) return false;
    const smg_node index = *smg_rewriter_operand(r, node, 1);
    bool before = smg_sizes_set_quiet(r->g->sizes, true);
    v = *smg_known_operand(r, node, 1);
    bool found = find_walk(r, &index, &v, smg_rewriter_operand(r, node, 0)->dims[0], &w);
    smg_node_id id = found ? rows_as_views(r, node, &index, &w) : -1;
    smg_sizes_set_quiet(r->g->sizes, before);
    *out_same = id;
    return id >= 0;
}

const rewrite_rule smg_index_rules[] = {
    {"size that is a number", size_that_is_a_number},
    {"value of one index", value_of_one_index},
    {"comparison decided by indices", decided_predicate},
    {"reduction of a number", reduce_of_a_number},
    {"gather as a view", gather_as_view},
};
const int smg_index_rule_count = (int)SMG_COUNT_OF(smg_index_rules);
