/* Products whose factor is shifted and scaled by statistics of itself. (x - m) r g + b times W, where m and r are the
 * same all along what is contracted, is r (x - p) times g W, and (p - m) r times the sums of g W, and the sums of b W.
 * What hangs on constants alone is made once. Then nothing along the contracted axis waits for its statistics, and one
 * kernel goes over x once, with sums and product in one loop (smg_slice_linear).
 *
 * No norm is looked for. A factor is an expression over what varies along the axis and what does not; smg_slice_terms
 * makes a sum of separable terms of it, at a pivot p near to x, so that nothing large cancels. Sums that hang on others
 * (a variance on its mean) become sums of terms in the same way. The pivot is an element of the row: of n elements none
 * is more than sqrt(n) deviations away from their mean, for which f32 has the digits and 16 bits have not.
 *
 * In 16 bits x r g is all that is taken, which has one term: the weight takes g as well, and x as it is in memory is
 * left of the factor. That is what products by matrices read, and nothing cancels. */
#include "plan/plan_internal.h"
#include "slice/slice.h"

typedef struct linear_leaf {
    smg_node_id node;
    bool pivot; /* its first element along the axis, in place of all */
} linear_leaf;

/* An expression that is a node of the new graph. */
typedef struct linear_made {
    smg_expr expr;
    smg_node_id node;
} linear_made;

typedef struct linear {
    const smg_graph *g;
    smg_graph *to;
    smg_arena *arena;
    smg_exprs *exprs;
    bool *fixed, *stored; /* smg_graph_mark_fixed */
    int *reads, *others;  /* per node: reads of it; of these, by what is no product */
    smg_node_id *now;     /* per node: the node of `to` that is it */
    /* Of axes of this extent, in products one after the other. */
    smg_size extent;
    int8_t *carries;   /* per node: does a value of rows reach it? 0: nobody asked */
    smg_node_id *anew; /* per node: in `to`, with its sums by terms; -1: nobody asked, -2: there is none */
    bool *hangs;       /* per node: on a sum along the axis; known once asked for anew */
    int asked;         /* nodes that the product's expressions were made of */
    SMG_ARRAY(linear_leaf) leaves;
    SMG_ARRAY(linear_made) made;
    SMG_ARRAY(smg_node_id) reduced; /* of `to`: sums of terms */
    SMG_ARRAY(smg_node_id) like;    /* of `to`, per node: of `g`, what it is stored like; -1: it stays as it is */
} linear;

static const smg_node *node_of(const linear *l, smg_node_id id) {
    return smg_graph_node(l->g, id);
}

static bool varies(const linear *l, smg_node_id id) {
    const smg_node *n = node_of(l, id);
    return n->rank > 0 && n->dims[n->rank - 1] == l->extent;
}

/* A value that is the same along the axis, and no constant. */
static bool is_of_rows(const linear *l, smg_node_id id) {
    return !varies(l, id) && !l->fixed[id];
}

/* Is it made of such values, and of what varies? */
static bool carries_rows(linear *l, smg_node_id id) {
    const smg_node *n = node_of(l, id);
    if (l->carries[id] != 0) return l->carries[id] > 0;
    bool found = false;
    for (int k = 0; smg_node_class(n) == SMG_CLASS_MAP && varies(l, id) && k < n->operand_count; k++)
        found = found || is_of_rows(l, n->operand[k]) || carries_rows(l, n->operand[k]);
    l->carries[id] = found ? 1 : -1;
    return found;
}

/* ---- expressions ------------------------------------------------------------------------------------ */

static smg_expr leaf_of(linear *l, smg_node_id id, bool pivot) {
    smg_kind kind = smg_type_kind(node_of(l, id)->type);
    for (int i = 0; i < l->leaves.count; i++)
        if (l->leaves.items[i].node == id && l->leaves.items[i].pivot == pivot) return smg_expr_leaf(l->exprs, kind, i);
    linear_leaf *slot = SMG_ARRAY_PUSH(l->arena, &l->leaves);
    if (slot == NULL) return SMG_EXPR_NONE;
    *slot = (linear_leaf){id, pivot};
    return smg_expr_leaf(l->exprs, kind, l->leaves.count - 1);
}

#define MOST_ASKED 4096 /* nodes of an expression, each time that it has them */

static smg_expr expr_of(linear *l, smg_node_id id) {
    const smg_node *n = node_of(l, id);
    if (++l->asked > MOST_ASKED) return SMG_EXPR_NONE;
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (!carries_rows(l, id)) {
        bool shifts = varies(l, id) && !l->fixed[id];
        if (shifts && leaf_of(l, id, true) == SMG_EXPR_NONE) return SMG_EXPR_NONE; /* terms may ask for it */
        return leaf_of(l, id, false);
    }
    for (int k = 0; k < n->operand_count; k++) {
        operand[k] = expr_of(l, n->operand[k]);
        if (operand[k] == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    }
    return smg_op_expr(l->exprs, n->op, n->type, operand);
}

static smg_expr near_of(void *user, smg_expr expr) {
    linear *l = user;
    const smg_expr_node *e = smg_expr_get(l->exprs, expr);
    if (e->prim != SMG_PRIM_LEAF || l->fixed[l->leaves.items[e->leaf].node]) return SMG_EXPR_NONE;
    if (l->g->storage != NULL) return SMG_EXPR_NONE; /* no term needs one */
    return leaf_of(l, l->leaves.items[e->leaf].node, true);
}

static smg_status terms_of(linear *l, smg_expr expr, smg_terms *out) {
    int count = l->leaves.count;
    smg_leaf_role *role = SMG_ARENA_ARRAY(l->arena, smg_leaf_role, (size_t)count + 1);
    smg_expr *none = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)count + 1);
    const smg_pivot pivot = {near_of, l};
    const char *why;
    if (role == NULL || none == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        const linear_leaf *leaf = &l->leaves.items[i];
        none[i] = SMG_EXPR_NONE;
        if (leaf->pivot) continue;
        role[i] = varies(l, leaf->node) ? SMG_ROLE_VARIES : l->fixed[leaf->node] ? SMG_ROLE_FIXED : SMG_ROLE_AGGREGATE;
    }
    const smg_slice_roles roles = {.pool = l->exprs, .role = role, .old = none, .sum_of = none, .count = count};
    *out = (smg_terms){0};
    return smg_slice_aggregates(&roles, expr) ? smg_slice_terms(&roles, expr, &pivot, out, &why) : SMG_OK;
}

typedef struct seen {
    const linear *l;
    bool rows; /* a leaf that is no constant, or one with rows */
} seen;

/* A number, or elements along the axis and nothing else. */
static bool is_vector(const linear *l, smg_node_id id) {
    const smg_node *n = node_of(l, id);
    for (int d = 0; d < n->rank - 1; d++)
        if (!smg_size_is_one(l->g->sizes, n->dims[d])) return false;
    return n->rank == 0 || varies(l, id);
}

static void see_leaf(void *user, int leaf) {
    seen *s = user;
    smg_node_id id = s->l->leaves.items[leaf].node;
    s->rows = s->rows || !s->l->fixed[id] || !is_vector(s->l, id);
}

static bool has_rows(const linear *l, smg_expr expr) {
    seen s = {.l = l};
    smg_expr_leaves(l->exprs, expr, see_leaf, &s);
    return s.rows;
}

/* ---- and back --------------------------------------------------------------------------------------- */

static smg_node_id push(linear *l, smg_node node) {
    for (int k = 0; k < node.operand_count; k++)
        if (node.operand[k] < 0) return -1;
    node.name = "";
    smg_node_id *like = SMG_ARRAY_PUSH(l->arena, &l->like);
    if (like == NULL) return -1;
    *like = smg_node_class(&node) == SMG_CLASS_VIEW ? l->like.items[node.operand[0]] : -1;
    return smg_graph_push(l->to, &node);
}

static smg_node_id number(linear *l, double value) {
    return push(l, (smg_node){.op = SMG_OP_FILL, .type = SMG_TYPE_F32, .value = value});
}

static smg_node_id pair(linear *l, smg_op op, smg_node_id a, smg_node_id b) {
    return push(l, (smg_node){.op = op, .operand_count = 2, .operand = {a, b}});
}

static smg_node_id reshaped(linear *l, smg_node_id node, int rank, const smg_size *dims) {
    smg_node view = {.op = SMG_OP_RESHAPE, .operand_count = 1, .operand = {node}, .rank = rank};
    if (node < 0) return -1;
    memcpy(view.dims, dims, (size_t)rank * sizeof *dims);
    return push(l, view);
}

static smg_node_id first_along(linear *l, smg_node_id id) {
    const smg_node *n = node_of(l, id);
    smg_node view = {
        .op = SMG_OP_SLICE, .operand_count = 1, .operand = {l->now[id]}, .begin = SMG_SIZE_ZERO, .step = 1};
    view.axis = n->rank - 1;
    view.dims[view.axis] = smg_size_const(l->g->sizes, 1);
    return push(l, view);
}

static bool is_one(const linear *l, smg_expr expr) {
    const smg_expr_node *e = smg_expr_get(l->exprs, expr);
    return e->prim == SMG_PRIM_CONST && !(e->value < 1) && !(e->value > 1);
}

static smg_node_id made_anew(linear *l, smg_node_id id);
static smg_node_id to_node(linear *l, smg_expr expr);

static smg_node_id node_of_expr(linear *l, smg_expr expr) {
    smg_expr_node e = *smg_expr_get(l->exprs, expr);
    smg_node_id arg[3] = {-1, -1, -1};
    smg_op op;
    if (e.prim == SMG_PRIM_CONST) return e.kind == SMG_KIND_FLOAT ? number(l, e.value) : -1;
    if (e.prim == SMG_PRIM_LEAF) {
        linear_leaf leaf = l->leaves.items[e.leaf];
        if (leaf.pivot) return first_along(l, leaf.node);
        return is_of_rows(l, leaf.node) ? made_anew(l, leaf.node) : l->now[leaf.node];
    }
    if (!smg_op_of_prim(e.prim, &op)) return -1;
    for (int k = 0; k < smg_prim_arity(e.prim); k++) arg[k] = to_node(l, e.arg[k]);
    return push(l, (smg_node){.op = op, .operand_count = smg_prim_arity(e.prim), .operand = {arg[0], arg[1], arg[2]}});
}

static smg_node_id to_node(linear *l, smg_expr expr) {
    for (int i = 0; i < l->made.count; i++)
        if (l->made.items[i].expr == expr) return l->made.items[i].node;
    smg_node_id node = node_of_expr(l, expr);
    linear_made *slot = SMG_ARRAY_PUSH(l->arena, &l->made);
    if (slot == NULL) return -1;
    *slot = (linear_made){expr, node};
    return node;
}

/* `all` and the next term. */
static smg_node_id add_term(linear *l, smg_node_id all, smg_node_id term, smg_node_id factor, bool plain) {
    if (!plain) term = pair(l, SMG_OP_MUL, term, factor);
    return all < 0 ? term : pair(l, SMG_OP_ADD, all, term);
}

/* What is summed up as it is, at its pivot: other sums have its distance from there already. */
static bool at_pivot(linear *l, smg_expr expr, smg_terms *out) {
    smg_expr pivot = near_of(l, expr), one = smg_expr_const(l->exprs, SMG_KIND_FLOAT, 1.0);
    if (pivot == SMG_EXPR_NONE) return false;
    *out = (smg_terms){.count = 2};
    out->summed[0] = smg_expr_make(l->exprs, SMG_PRIM_SUB, expr, pivot, SMG_EXPR_NONE);
    out->summed[1] = out->factor[0] = one;
    out->factor[1] = pivot;
    return true;
}

/* One that several sums have among their terms is there once. */
static smg_node_id sum_of(linear *l, smg_node sum) {
    for (int i = 0; i < l->reduced.count; i++) {
        const smg_node *n = smg_graph_node(l->to, l->reduced.items[i]);
        if (n->op == sum.op && n->operand[0] == sum.operand[0]) return l->reduced.items[i];
    }
    smg_node_id id = push(l, sum);
    smg_node_id *slot = SMG_ARRAY_PUSH(l->arena, &l->reduced);
    if (slot == NULL) return -1;
    *slot = id;
    return id;
}

/* A sum along the axis by its terms; -1 where it has none. One of constants is what it was. */
static smg_node_id sum_by_terms(linear *l, smg_node_id id) {
    smg_node sum = *node_of(l, id);
    smg_terms terms;
    int64_t count;
    smg_node_id all = -1;
    smg_expr expr = expr_of(l, sum.operand[0]);
    if (expr == SMG_EXPR_NONE || terms_of(l, expr, &terms) != SMG_OK) return -1;
    if (!carries_rows(l, sum.operand[0]) && !at_pivot(l, expr, &terms)) return l->now[id];
    if (terms.count == 0 || !smg_size_is_const(l->g->sizes, l->extent, &count)) return -1;
    for (int i = 0; i < terms.count; i++) {
        smg_node part = *node_of(l, id);
        part.keep = true;
        part.operand[0] = is_one(l, terms.summed[i]) ? -1 : to_node(l, terms.summed[i]);
        bool whole =
            part.operand[0] >= 0 && smg_same_dims(smg_graph_node(l->to, part.operand[0]), node_of(l, sum.operand[0]));
        if (!whole && !is_one(l, terms.summed[i])) return -1;
        smg_node_id term = whole ? sum_of(l, part) : number(l, (double)count);
        all = add_term(l, all, term, to_node(l, terms.factor[i]), is_one(l, terms.factor[i]));
        if (all < 0) return -1;
    }
    return sum.keep ? all : reshaped(l, all, sum.rank, sum.dims);
}

/* A value of rows, its sums along the axis by terms. */
static smg_node_id made_anew(linear *l, smg_node_id id) {
    smg_node n = *node_of(l, id);
    if (l->anew[id] != -1) return l->anew[id];
    smg_op_class class_ = smg_node_class(&n);
    bool along = n.operand_count > 0 && varies(l, n.operand[0]);
    smg_node_id made = l->now[id];
    if (class_ == SMG_CLASS_REDUCE && along && n.type == SMG_TYPE_F32 && smg_op_combine(n.op) == SMG_COMBINE_ADD &&
        n.axis == node_of(l, n.operand[0])->rank - 1) {
        made = sum_by_terms(l, id);
        l->hangs[id] = true;
    } else if ((class_ == SMG_CLASS_MAP || class_ == SMG_CLASS_VIEW) && !along) {
        bool same = true;
        for (int k = 0; k < n.operand_count && made >= 0; k++) {
            smg_node_id before = n.operand[k];
            n.operand[k] = made = is_of_rows(l, before) ? made_anew(l, before) : l->now[before];
            l->hangs[id] = l->hangs[id] || l->hangs[before];
            same = same && made == l->now[before];
        }
        if (made >= 0) made = same ? l->now[id] : push(l, n);
    }
    l->anew[id] = made >= 0 ? made : -2;
    return l->anew[id];
}

/* ---- products --------------------------------------------------------------------------------------- */

/* Of a product: the factor that has rows and the contracted axis behind them; the other one is a constant. */
typedef struct linear_product {
    const smg_node *n;
    smg_node_id id, rows, weight;
    int side, of_rows, of_columns; /* letters of each in the result, the rows first */
    char letter;
} linear_product;

static bool find_product(const linear *l, smg_node_id id, linear_product *out) {
    const smg_node *n = node_of(l, id);
    if (smg_node_class(n) != SMG_CLASS_CONTRACT || n->type != SMG_TYPE_F32) return false;
    *out = (linear_product){.n = n, .id = id, .side = l->fixed[n->operand[0]] ? 1 : 0};
    out->rows = n->operand[out->side];
    out->weight = n->operand[1 - out->side];
    if (l->fixed[out->rows] || !l->fixed[out->weight] || !l->stored[out->weight]) return false;
    const char *own = n->label[out->side], *other = n->label[1 - out->side];
    out->of_rows = (int)strlen(own) - 1;
    out->of_columns = n->rank - out->of_rows;
    if (out->of_rows < 0 || out->of_columns < 1) return false;
    out->letter = own[out->of_rows];
    bool good = strncmp(own, n->label[2], (size_t)out->of_rows) == 0 && strchr(other, out->letter) != NULL;
    for (int i = 0; i < out->of_rows; i++) good = good && strchr(other, own[i]) == NULL;
    return good && (int)strlen(other) == out->of_columns + 1 && strchr(n->label[2], out->letter) == NULL;
}

/* What a constant term makes of the weight: summed times it, one for each column. */
static smg_node_id constant_part(linear *l, const linear_product *p, smg_expr summed) {
    smg_node sum = {.op = SMG_OP_CONTRACT, .type = SMG_TYPE_F32, .operand_count = 2};
    smg_node_id vector = to_node(l, summed);
    if (vector < 0) return -1;
    if (smg_graph_node(l->to, vector)->rank == 0)
        vector = push(
            l, (smg_node){
                   .op = SMG_OP_BROADCAST, .operand_count = 1, .operand = {vector}, .rank = 1, .dims = {l->extent}});
    else if (smg_graph_node(l->to, vector)->rank > 1)
        vector = reshaped(l, vector, 1, &l->extent);
    sum.operand[0] = vector;
    sum.operand[1] = l->now[p->weight];
    sum.label[0][0] = p->letter;
    strcpy(sum.label[1], p->n->label[1 - p->side]);
    strcpy(sum.label[2], p->n->label[2] + p->of_rows);
    return push(l, sum);
}

/* The factor of a term beside a result: rows, and 1 for each axis of columns. */
static smg_node_id beside_result(linear *l, const linear_product *p, smg_node_id factor) {
    smg_size dims[SMG_MAX_RANK];
    if (factor < 0) return -1;
    const smg_node *n = smg_graph_node(l->to, factor);
    if (n->rank == 0 || p->of_columns == 1) return factor;
    if (n->rank != p->of_rows + 1) return -1;
    for (int d = 0; d < p->n->rank; d++) dims[d] = d < p->of_rows ? n->dims[d] : smg_size_const(l->g->sizes, 1);
    return reshaped(l, factor, p->n->rank, dims);
}

/* Factors that are constants, which the weight takes; *io: what is left. */
static smg_expr take_constants(linear *l, smg_expr *io) {
    smg_expr_node e = *smg_expr_get(l->exprs, *io);
    smg_expr taken = SMG_EXPR_NONE;
    for (int k = 0; e.prim == SMG_PRIM_MUL && k < 2; k++) {
        smg_expr part = e.arg[k];
        smg_expr found = has_rows(l, part) ? take_constants(l, &part) : part;
        e.arg[k] = has_rows(l, e.arg[k]) ? part : smg_expr_const(l->exprs, SMG_KIND_FLOAT, 1.0);
        if (found == SMG_EXPR_NONE) continue;
        taken = taken == SMG_EXPR_NONE ? found : smg_expr_make(l->exprs, SMG_PRIM_MUL, taken, found, SMG_EXPR_NONE);
    }
    if (taken != SMG_EXPR_NONE) *io = smg_expr_make(l->exprs, SMG_PRIM_MUL, e.arg[0], e.arg[1], SMG_EXPR_NONE);
    return taken;
}

/* The weight times a vector along the contracted axis. */
static smg_node_id scaled_weight(linear *l, const linear_product *p, smg_expr by) {
    const smg_node *weight = node_of(l, p->weight);
    const char *at = strchr(p->n->label[1 - p->side], p->letter);
    smg_node_id vector = to_node(l, by);
    smg_size dims[SMG_MAX_RANK];
    if (vector < 0) return -1;
    for (int d = 0; d < weight->rank; d++) dims[d] = smg_size_const(l->g->sizes, 1);
    dims[at - p->n->label[1 - p->side]] = l->extent;
    if (smg_graph_node(l->to, vector)->rank > 0) vector = reshaped(l, vector, weight->rank, dims);
    bool blocked = smg_node_is_blocked(weight);
    smg_node_id product = pair(l, SMG_OP_MUL, l->now[blocked ? weight->operand[0] : p->weight], vector);
    if (product < 0) return -1;
    l->like.items[product] = p->weight;
    if (!blocked) return product;
    smg_node copy = *weight;
    copy.operand[0] = product;
    smg_node_id id = push(l, copy);
    if (id >= 0) l->like.items[id] = p->weight;
    return id;
}

/* Does anything else read it, or what it is a view of? Then a copy would be there beside it. */
static bool is_shared(const linear *l, smg_node_id id) {
    while (l->reads[id] == 1 && smg_node_class(node_of(l, id)) == SMG_CLASS_VIEW) id = node_of(l, id)->operand[0];
    return l->reads[id] > 1;
}

/* Is it a value of 16 bits as it is in memory? */
static bool lies_ready(const linear *l, smg_expr summed) {
    const smg_expr_node *e = smg_expr_get(l->exprs, summed);
    if (e->prim != SMG_PRIM_LEAF || l->leaves.items[e->leaf].pivot) return false;
    smg_type stored = smg_graph_storage(l->g, l->leaves.items[e->leaf].node);
    return smg_type_device_bytes(stored) < smg_type_device_bytes(SMG_TYPE_F32);
}

static smg_node_id product_of(linear *l, const linear_product *p, smg_expr summed) {
    smg_node product = *p->n;
    smg_expr by = is_shared(l, p->weight) ? SMG_EXPR_NONE : take_constants(l, &summed);
    if (l->g->storage != NULL && !lies_ready(l, summed)) return -1;
    product.operand[p->side] = to_node(l, summed);
    product.operand[1 - p->side] = by == SMG_EXPR_NONE ? l->now[p->weight] : scaled_weight(l, p, by);
    smg_node_id factor = product.operand[p->side];
    if (factor < 0 || !smg_same_dims(smg_graph_node(l->to, factor), node_of(l, p->rows))) return -1;
    return push(l, product);
}

/* One term has rows, so that there is one product still. */
static bool is_worth_it(const linear *l, const smg_terms *terms) {
    int with_rows = 0;
    for (int i = 0; i < terms->count; i++) with_rows += has_rows(l, terms->summed[i]);
    return with_rows == 1 && (terms->count > 1) == (l->g->storage == NULL);
}

/* What was made for products before goes on along axes of one extent. */
static void begin_product(linear *l, const linear_product *p) {
    size_t count = (size_t)l->g->nodes.count;
    smg_size extent = node_of(l, p->rows)->dims[p->of_rows];
    if (extent == l->extent) return;
    l->extent = extent;
    l->leaves.count = l->made.count = l->reduced.count = 0;
    memset(l->carries, 0, count * sizeof *l->carries);
    memset(l->hangs, 0, count * sizeof *l->hangs);
    for (size_t i = 0; i < count; i++) l->anew[i] = -1;
}

static bool is_few(const linear *l, const linear_product *p, int64_t few, const int64_t *nominal) {
    int64_t elements, extent;
    if (!smg_size_eval(l->g->sizes, smg_node_elements(l->g, p->rows), nominal, &elements)) return false;
    return smg_size_is_const(l->g->sizes, node_of(l, p->rows)->dims[p->of_rows], &extent) && extent > 1 &&
           elements / extent <= few;
}

typedef struct changed {
    const linear *l;
    bool sums;
} changed;

static void see_changed(void *user, int leaf) {
    changed *c = user;
    smg_node_id id = c->l->leaves.items[leaf].node;
    bool anew = c->l->anew[id] >= 0 && c->l->anew[id] != c->l->now[id];
    c->sums = c->sums || anew || (c->l->g->storage != NULL && c->l->hangs[id]);
}

/* Does the factor hang on sums along the axis, which are by terms now? In 16 bits it is enough that they leave it. */
static bool hangs_on_sums(const linear *l, smg_expr factor) {
    changed c = {.l = l};
    smg_expr_leaves(l->exprs, factor, see_changed, &c);
    return c.sums;
}

/* The product by its terms; -1 where it is none. */
static smg_status by_terms(linear *l, const linear_product *p, smg_node_id *out) {
    smg_terms terms;
    smg_node_id all = -1;
    *out = -1;
    begin_product(l, p);
    l->asked = 0;
    if (!carries_rows(l, p->rows) || l->others[p->rows] > 0) return SMG_OK;
    smg_expr expr = expr_of(l, p->rows);
    if (expr == SMG_EXPR_NONE) return smg_context_status(l->g->ctx);
    SMG_TRY(terms_of(l, expr, &terms));
    if (!is_worth_it(l, &terms)) return SMG_OK;
    for (int i = 0; i < terms.count; i++) {
        bool rows = has_rows(l, terms.summed[i]), plain = is_one(l, terms.factor[i]);
        smg_node_id term = rows ? product_of(l, p, terms.summed[i]) : constant_part(l, p, terms.summed[i]);
        smg_node_id factor = plain ? -1 : beside_result(l, p, to_node(l, terms.factor[i]));
        if (term < 0 || (!plain && factor < 0)) return SMG_OK;
        all = add_term(l, all, term, factor, plain);
    }
    if (all < 0 || !hangs_on_sums(l, expr) || !smg_same_dims(smg_graph_node(l->to, all), p->n)) return SMG_OK;
    l->to->nodes.items[all].name = p->n->name;
    l->like.items[all] = p->id;
    *out = all;
    return SMG_OK;
}

/* ---- graphs ----------------------------------------------------------------------------------------- */

static smg_node_id copy_node(linear *l, smg_node_id id) {
    smg_node *slot = SMG_ARRAY_PUSH(l->to->arena, &l->to->nodes);
    smg_node_id *like = SMG_ARRAY_PUSH(l->arena, &l->like);
    if (slot == NULL || like == NULL) return -1;
    *like = id;
    *slot = *node_of(l, id);
    for (int k = 0; k < slot->operand_count; k++) slot->operand[k] = l->now[slot->operand[k]];
    return l->to->nodes.count - 1;
}

static smg_status copy_all(linear *l, int64_t few, const int64_t *nominal, int *out_count) {
    linear_product p;
    for (smg_node_id id = 0; id < l->g->nodes.count; id++) {
        l->now[id] = -1;
        if (find_product(l, id, &p) && is_few(l, &p, few, nominal)) SMG_TRY(by_terms(l, &p, &l->now[id]));
        *out_count += l->now[id] >= 0;
        if (l->now[id] < 0) l->now[id] = copy_node(l, id);
        if (l->now[id] < 0) return SMG_MEMORY;
    }
    return plan_copy_outputs(l->g, l->now, l->to);
}

static void count_readers(linear *l) {
    for (smg_node_id id = 0; id < l->g->nodes.count; id++) {
        const smg_node *n = node_of(l, id);
        for (int k = 0; k < n->operand_count; k++) {
            l->reads[n->operand[k]]++;
            l->others[n->operand[k]] += smg_node_class(n) != SMG_CLASS_CONTRACT;
        }
    }
    for (int i = 0; i < l->g->outputs.count; i++) l->others[l->g->outputs.items[i].node]++;
}

smg_status smg_plan_linear(const smg_graph *g, int64_t few, const int64_t *nominal, smg_arena *arena,
                           smg_graph *out_graph, const smg_node_id **out_like, int *out_count) {
    size_t count = (size_t)g->nodes.count + 1;
    linear l = {.g = g, .to = out_graph, .arena = arena, .extent = SMG_SIZE_NONE};
    *out_count = 0;
    l.fixed = SMG_ARENA_ARRAY(arena, bool, count);
    l.stored = SMG_ARENA_ARRAY(arena, bool, count);
    l.reads = SMG_ARENA_ARRAY(arena, int, count);
    l.others = SMG_ARENA_ARRAY(arena, int, count);
    l.now = SMG_ARENA_ARRAY(arena, smg_node_id, count);
    l.anew = SMG_ARENA_ARRAY(arena, smg_node_id, count);
    l.carries = SMG_ARENA_ARRAY(arena, int8_t, count);
    l.hangs = SMG_ARENA_ARRAY(arena, bool, count);
    if (!l.fixed || !l.stored || !l.reads || !l.others || !l.now || !l.anew || !l.carries || !l.hangs)
        return SMG_MEMORY;
    SMG_TRY(smg_exprs_create(arena, &l.exprs));
    plan_begin_graph(g, g->arena, out_graph);
    smg_graph_mark_fixed(g, l.fixed, l.stored);
    count_readers(&l);
    smg_status status = copy_all(&l, few, nominal, out_count), told = smg_context_status(g->ctx);
    *out_like = l.like.items;
    if (status == SMG_MEMORY || told == SMG_MEMORY) return SMG_MEMORY;
    if (status == SMG_OK && told == SMG_OK && out_graph->status == SMG_OK) return SMG_OK;
    smg_context_clear_error(g->ctx); /* some node of a term has shapes that do not go together: there are no terms */
    *out_count = 0;
    return SMG_OK;
}
