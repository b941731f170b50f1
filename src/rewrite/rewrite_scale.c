/* Scales behind a product go into its constant operand: (x W) * a = x (W * a) where the constant a varies along
 * axes that come from W alone, what is added in between is scaled instead: (p + c) * a = p * a + c * a, and
 * constants added one after the other are one: (p + c) + d = p + (c + d). A batch normalisation behind a linear
 * layer or a convolution is such a chain; W * a is work on constants, done once.
 *
 * The sums of products are the same in exact arithmetic. In f32 they differ by rounding only as long as no scale or
 * scaled weight leaves the range in which f32 is as exact everywhere, so the values themselves are looked at: all
 * finite, none near an end of the exponents. A product that others read as well is left alone: it would be computed
 * twice. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

static bool is_host_constant(const smg_node *n) {
    return smg_op_is_constant(n->op) && n->data != NULL && n->type == SMG_TYPE_F32;
}

static int64_t elements_of(const rewriter *r, const smg_node *n) {
    int64_t count = 1, extent;
    for (int d = 0; d < n->rank; d++) {
        if (!smg_size_is_const(r->g->sizes, n->dims[d], &extent) || !smg_mul_i64(count, extent, &count)) return -1;
    }
    return count;
}

static bool all_in_range(const rewriter *r, const smg_node *n, bool no_zero) {
    return smg_graph_content(r->g, no_zero ? SMG_CONTENT_NO_ZERO : SMG_CONTENT_IN_RANGE, n->type, n->data,
                             elements_of(r, n));
}

/* ---- which axes of the product a scale runs along ---------------------------------------------- */

static smg_size product_before(const rewriter *r, const smg_node *n, int axis) {
    smg_size product = smg_size_const(r->g->sizes, 1);
    for (int d = 0; d < axis; d++) product = smg_size_mul(r->g->sizes, product, n->dims[d]);
    return product;
}

/* The axis of the operand that axis `axis` of a view is, whole and alone; -1: none. */
static int behind_view(const rewriter *r, const smg_node *view, int axis) {
    const smg_node *a = smg_rewriter_operand(r, view, 0);
    smg_view_kind kind = smg_op_view(view->op);
    if (kind == SMG_VIEW_TRANSPOSE) return view->perm[axis];
    if (kind != SMG_VIEW_RESHAPE) return -1;
    smg_size before = product_before(r, view, axis);
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] == view->dims[axis] && product_before(r, a, d) == before) return d;
    }
    return -1;
}

#define MAX_VIEWS 8

typedef struct chain {
    smg_node_id view[MAX_VIEWS]; /* outermost first */
    int views;
    smg_node_id product;
    int weight;             /* which operand takes the scale */
    int axis[SMG_MAX_RANK]; /* per axis of the scale: of the weight, -1 where its extent is 1 */
} chain;

/* Follows `id` through views to a product that nobody else reads. */
static bool find_product(const rewriter *r, smg_node_id id, chain *c) {
    for (c->views = 0;; c->views++) {
        const smg_node *n = &r->g->nodes.items[id];
        if (smg_rewriter_uses(r, id) != 1) return false;
        if (smg_node_class(n) != SMG_CLASS_VIEW) break;
        if (c->views == MAX_VIEWS) return false;
        c->view[c->views] = id;
        id = n->operand[0];
    }
    c->product = id;
    return smg_node_class(&r->g->nodes.items[id]) == SMG_CLASS_CONTRACT;
}

/* The letter of the product's result that axis `axis` of the chain's value is; 0: none. */
static char letter_of(const rewriter *r, const chain *c, int axis) {
    for (int v = 0; v < c->views && axis >= 0; v++) axis = behind_view(r, &r->g->nodes.items[c->view[v]], axis);
    return axis < 0 ? '\0' : r->g->nodes.items[c->product].label[2][axis];
}

/* All axes of the scale are axes of operand k, in the same order. */
static bool along_operand(const rewriter *r, chain *c, const smg_node *value, const smg_node *scale, int k) {
    const smg_node *product = &r->g->nodes.items[c->product];
    int last = -1;
    c->weight = k;
    for (int d = 0; d < scale->rank; d++) {
        c->axis[d] = -1;
        if (smg_size_is_one(r->g->sizes, scale->dims[d])) continue;
        char letter = letter_of(r, c, d + value->rank - scale->rank);
        const char *at = letter ? strchr(product->label[k], letter) : NULL;
        if (at == NULL || at - product->label[k] <= last) return false;
        last = c->axis[d] = (int)(at - product->label[k]);
    }
    return last >= 0;
}

/* The constant behind an operand that only this product reads, in the precision of the arithmetic. */
static bool weight_takes_scale(const rewriter *r, smg_node_id id) {
    for (;;) {
        const smg_node *n = &r->g->nodes.items[id];
        if (smg_rewriter_uses(r, id) != 1) return false;
        if (smg_node_class(n) != SMG_CLASS_VIEW) return is_host_constant(n) && all_in_range(r, n, false);
        if (smg_op_view(n->op) == SMG_VIEW_BROADCAST) return false;
        id = n->operand[0];
    }
}

/* Does value * scale fold into a product behind `value`? */
static bool scale_folds(const rewriter *r, const smg_node *result, smg_node_id value, smg_node_id scale, chain *c) {
    const smg_node *v = &r->g->nodes.items[value], *s = &r->g->nodes.items[scale];
    if (!is_host_constant(s) || v->type != SMG_TYPE_F32 || !smg_same_dims(v, result)) return false;
    if (!find_product(r, value, c)) return false;
    const smg_node *product = &r->g->nodes.items[c->product];
    for (int k = 0; k < 2; k++) {
        if (along_operand(r, c, v, s, k) && weight_takes_scale(r, product->operand[k]))
            return all_in_range(r, s, false);
    }
    return false;
}

/* ---- the rules --------------------------------------------------------------------------------- */

/* W * a with a's axes where W has them. */
static smg_node_id scaled_weight(rewriter *r, const chain *c, smg_node_id weight, smg_node_id scale) {
    const smg_node *w = &r->g->nodes.items[weight], *s = &r->g->nodes.items[scale];
    smg_node shaped = {.op = SMG_OP_RESHAPE, .type = s->type, .rank = w->rank, .name = "", .operand_count = 1};
    smg_node product = {.op = SMG_OP_MUL, .type = w->type, .rank = w->rank, .name = "", .operand_count = 2};
    for (int d = 0; d < w->rank; d++) {
        shaped.dims[d] = smg_size_const(r->g->sizes, 1);
        product.dims[d] = w->dims[d];
    }
    for (int d = 0; d < s->rank; d++)
        if (c->axis[d] >= 0) shaped.dims[c->axis[d]] = s->dims[d];
    shaped.operand[0] = scale;
    product.operand[0] = weight;
    product.operand[1] = smg_rewriter_add(r, &shaped);
    return product.operand[1] >= 0 ? smg_rewriter_add(r, &product) : -1;
}

/* (x W) * a, views between them kept: x (W * a). */
static bool scale_into_weight(rewriter *r, smg_node *node, smg_node_id *out_same) {
    chain c;
    if (node->op != SMG_OP_MUL) return false;
    for (int k = 0; k < 2; k++) {
        smg_node_id value = node->operand[k], scale = node->operand[1 - k];
        if (!scale_folds(r, node, value, scale, &c)) continue;
        smg_node product = r->g->nodes.items[c.product];
        product.operand[c.weight] = scaled_weight(r, &c, product.operand[c.weight], scale);
        smg_node_id at = product.operand[c.weight] >= 0 ? smg_rewriter_add(r, &product) : -1;
        for (int v = c.views - 1; v >= 0 && at >= 0; v--) {
            smg_node view = r->g->nodes.items[c.view[v]];
            view.operand[0] = at;
            at = smg_rewriter_add(r, &view);
        }
        *out_same = at;
        return at >= 0;
    }
    return false;
}

/* A map of two tensors of one type that broadcast against each other. */
static smg_node_id map_of(rewriter *r, smg_op op, smg_node_id a, smg_node_id b) {
    const smg_node *x = &r->g->nodes.items[a], *y = &r->g->nodes.items[b];
    smg_node node = {.op = op, .type = x->type, .name = "", .operand_count = 2, .operand = {a, b}};
    node.rank = x->rank > y->rank ? x->rank : y->rank;
    for (int d = 0; d < node.rank; d++) {
        int own_x = d - (node.rank - x->rank), own_y = d - (node.rank - y->rank);
        smg_size dim = own_x >= 0 ? x->dims[own_x] : SMG_SIZE_NONE;
        if (own_y >= 0 && (dim == SMG_SIZE_NONE || smg_size_is_one(r->g->sizes, dim))) dim = y->dims[own_y];
        node.dims[d] = dim;
    }
    return smg_rewriter_add(r, &node);
}

/* A value, a constant added to or taken from it, and what the constant's place is. */
static bool is_shifted(const rewriter *r, smg_node_id id, int *out_value) {
    const smg_node *n = &r->g->nodes.items[id];
    if ((n->op != SMG_OP_ADD && n->op != SMG_OP_SUB) || smg_rewriter_uses(r, id) != 1) return false;
    for (int k = 0; k < 2; k++) {
        const smg_node *c = smg_rewriter_operand(r, n, 1 - k);
        *out_value = k;
        if (is_host_constant(c) && all_in_range(r, c, false)) return true;
    }
    return false;
}

/* (p + c) * a = p * a + c * a, where p * a then folds, now or after more of these. */
static bool scale_past_constant(rewriter *r, smg_node *node, smg_node_id *out_same) {
    chain c;
    (void)out_same;
    if (node->op != SMG_OP_MUL) return false;
    for (int k = 0; k < 2; k++) {
        smg_node_id shifted = node->operand[k], scale = node->operand[1 - k], value = shifted;
        int place = 0;
        while (is_shifted(r, value, &place)) value = r->g->nodes.items[value].operand[place];
        if (value == shifted || !scale_folds(r, node, value, scale, &c)) continue;
        if (!smg_same_dims(node, &r->g->nodes.items[shifted]) || !is_shifted(r, shifted, &place)) continue;
        smg_node sum = r->g->nodes.items[shifted];
        sum.name = node->name;
        for (int p = 0; p < 2; p++) sum.operand[p] = map_of(r, SMG_OP_MUL, sum.operand[p], scale);
        if (sum.operand[0] < 0 || sum.operand[1] < 0) return false;
        *node = sum;
        return true;
    }
    return false;
}

/* p / a = p * (1 / a) where that then folds. */
static bool divide_as_scale(rewriter *r, smg_node *node, smg_node_id *out_same) {
    chain c;
    (void)out_same;
    if (node->op != SMG_OP_DIV) return false;
    smg_node_id value = node->operand[0], scale = node->operand[1];
    const smg_node *s = &r->g->nodes.items[scale];
    int place = 0;
    while (is_shifted(r, value, &place)) value = r->g->nodes.items[value].operand[place];
    if (!scale_folds(r, node, value, scale, &c) || !all_in_range(r, s, true)) return false;
    if (!smg_same_dims(node, &r->g->nodes.items[node->operand[0]])) return false;
    smg_node inverse = {.op = SMG_OP_RECIP, .type = s->type, .rank = s->rank, .name = "", .operand_count = 1};
    memcpy(inverse.dims, s->dims, sizeof inverse.dims);
    inverse.operand[0] = scale;
    smg_node_id id = smg_rewriter_add(r, &inverse);
    if (id < 0) return false;
    node->op = SMG_OP_MUL;
    node->operand[1] = id;
    return true;
}

/* A sum or difference whose constant is added (true) or taken away. SUB(c, p) is neither. */
static bool constant_summand(const rewriter *r, const smg_node *n, int *out_constant, bool *out_added) {
    *out_added = n->op == SMG_OP_ADD;
    if (n->op != SMG_OP_ADD && n->op != SMG_OP_SUB) return false;
    for (int k = 1; k >= (*out_added ? 0 : 1); k--) {
        const smg_node *c = smg_rewriter_operand(r, n, k);
        *out_constant = k;
        if (is_host_constant(c) && all_in_range(r, c, false)) return true;
    }
    return false;
}

/* (p + c) + d = p + (c + d), also with differences. */
static bool add_constants(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int outer, inner;
    bool plus_outer, plus_inner;
    (void)out_same;
    if (!constant_summand(r, node, &outer, &plus_outer)) return false;
    smg_node_id sum = node->operand[1 - outer];
    const smg_node *first = &r->g->nodes.items[sum];
    if (smg_rewriter_uses(r, sum) != 1 || !constant_summand(r, first, &inner, &plus_inner)) return false;
    smg_node_id value = first->operand[1 - inner];
    if (!smg_same_dims(node, &r->g->nodes.items[value])) return false;
    smg_node_id c = first->operand[inner], d = node->operand[outer];
    smg_op op = plus_inner == plus_outer ? SMG_OP_ADD : SMG_OP_SUB;
    smg_node_id both = !plus_inner && plus_outer ? map_of(r, op, d, c) : map_of(r, op, c, d);
    if (both < 0) return false;
    node->op = !plus_inner && !plus_outer ? SMG_OP_SUB : SMG_OP_ADD;
    node->operand[0] = value;
    node->operand[1] = both;
    return true;
}

const rewrite_rule smg_scale_rules[] = {
    {"scale into a product's constant", scale_into_weight},
    {"scale past a constant summand", scale_past_constant},
    {"divide by a constant as a scale", divide_as_scale},
    {"constants added together", add_constants},
};
const int smg_scale_rule_count = (int)SMG_COUNT_OF(smg_scale_rules);
