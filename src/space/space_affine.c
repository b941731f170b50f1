/* Integers that depend on positions and sizes only. An index written with iotas, sizes and arithmetic is
 * evaluated here in affine forms instead of numbers: primitive by primitive, comparisons decided by bounds. What
 * comes out affine is an address like any other; whatever does not stays an index that is evaluated in the
 * kernel. */
#include "space/space_internal.h"

#define MOST_DEPTH 12
#define MOST_VISITS 64

typedef enum known { UNKNOWN, FORM, NO, YES } known;

typedef struct affine {
    known what;
    smg_dim_map form;
} affine;

typedef struct evaluation {
    smg_space_builder *b;
    smg_operand_map *map; /* of the index: its indices are those of all forms */
    const affine *operand;
    int depth;
} evaluation;

static affine number(smg_space_builder *b, double value) {
    affine a = {.what = UNKNOWN};
    if (!(value > -1e9 && value < 1e9) || (double)(int64_t)value != value) return a;
    a.what = FORM;
    a.form.begin = smg_size_const(b->sizes, (int64_t)value);
    return a;
}

static affine combine(evaluation *e, const affine *x, const affine *y, int64_t sign) {
    affine a = *x;
    if (!smg_dim_add(e->b, &a.form, &y->form, smg_size_const(e->b->sizes, sign))) a.what = UNKNOWN;
    return a;
}

static bool is_size(const affine *a) {
    for (int i = 0; i < SMG_VIEW_INDICES; i++) {
        if (a->form.times[i] != SMG_SIZE_ZERO) return false;
    }
    return a->form.count == 0;
}

static affine scaled(evaluation *e, const affine *x, const affine *y) {
    affine a = {.what = FORM};
    if (!is_size(y)) return is_size(x) ? scaled(e, y, x) : (affine){.what = UNKNOWN};
    if (!smg_dim_add(e->b, &a.form, &x->form, y->form.begin)) a.what = UNKNOWN;
    return a;
}

/* Is x - y >= least for all elements (YES), for none (NO)? */
static known compare(evaluation *e, const affine *x, const affine *y, int64_t least) {
    smg_size low, high, bound = smg_size_const(e->b->sizes, least);
    affine d = combine(e, x, y, -1);
    if (d.what != FORM) return UNKNOWN;
    smg_dim_bounds(e->b, e->map, &d.form, &low, &high);
    if (low == SMG_SIZE_NONE) return UNKNOWN;
    if (smg_size_at_least(e->b, low, bound)) return YES;
    return smg_size_at_least(e->b, smg_size_sub(e->b->sizes, bound, e->b->one), high) ? NO : UNKNOWN;
}

static affine chosen(const affine *x, const affine *y, known first) {
    return first == YES ? *x : first == NO ? *y : (affine){.what = UNKNOWN};
}

static affine divided(evaluation *e, smg_prim prim, const affine *x, const affine *y) {
    affine q = {.what = FORM}, r = {.what = FORM};
    smg_size low, high;
    int before = e->map->index_count;
    smg_dim_bounds(e->b, e->map, &x->form, &low, &high);
    bool good = is_size(y) && smg_size_at_least(e->b, y->form.begin, e->b->one) && low != SMG_SIZE_NONE &&
                smg_size_at_least(e->b, low, SMG_SIZE_ZERO) &&
                smg_dim_divide(e->b, e->map, &x->form, y->form.begin, &q.form, &r.form) &&
                e->map->index_count == before;
    if (!good) return (affine){.what = UNKNOWN};
    return prim == SMG_PRIM_DIV ? q : r;
}

static affine apply(evaluation *e, smg_prim prim, const affine *x) {
    affine zero = number(e->b, 0);
    for (int i = 0; i < smg_prim_arity(prim); i++) {
        if (x[i].what == UNKNOWN && !(prim == SMG_PRIM_SELECT && i > 0)) return (affine){.what = UNKNOWN};
    }
    switch (prim) {
    case SMG_PRIM_ADD: return combine(e, &x[0], &x[1], 1);
    case SMG_PRIM_SUB: return combine(e, &x[0], &x[1], -1);
    case SMG_PRIM_NEG: return combine(e, &zero, &x[0], -1);
    case SMG_PRIM_MUL: return scaled(e, &x[0], &x[1]);
    case SMG_PRIM_DIV:
    case SMG_PRIM_MOD: return divided(e, prim, &x[0], &x[1]);
    case SMG_PRIM_MAX: return chosen(&x[0], &x[1], compare(e, &x[0], &x[1], 0));
    case SMG_PRIM_MIN: return chosen(&x[0], &x[1], compare(e, &x[1], &x[0], 0));
    case SMG_PRIM_LT: return (affine){.what = compare(e, &x[1], &x[0], 1)};
    case SMG_PRIM_LE: return (affine){.what = compare(e, &x[1], &x[0], 0)};
    case SMG_PRIM_SELECT: return chosen(&x[1], &x[2], x[0].what);
    case SMG_PRIM_TO_INT: return x[0].what == FORM ? x[0] : (affine){.what = UNKNOWN};
    default: return (affine){.what = UNKNOWN};
    }
}

static affine eval(evaluation *e, const smg_exprs *pool, smg_expr expr) {
    smg_expr_node n = *smg_expr_get(pool, expr);
    affine x[3] = {{UNKNOWN, {0}}};
    if (n.prim == SMG_PRIM_LEAF) return e->operand[n.leaf];
    if (n.prim == SMG_PRIM_CONST) return n.kind == SMG_KIND_INT ? number(e->b, n.value) : x[0];
    if (++e->depth > 64) return x[0];
    for (int i = 0; i < smg_prim_arity(n.prim); i++) x[i] = eval(e, pool, n.arg[i]);
    return apply(e, n.prim, x);
}

static affine value_of(smg_space_builder *b, smg_node_id id, const smg_operand_map *map, smg_operand_map *indices,
                       int depth);

/* Every operand's map starts from the indices known so far; a layer would be a second case. */
static affine map_value(smg_space_builder *b, const smg_node *n, const smg_operand_map *map, smg_operand_map *indices,
                        int depth) {
    affine operand[SMG_MAX_OPERANDS] = {{UNKNOWN, {0}}};
    smg_expr leaf[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    smg_exprs *pool = NULL;
    if (smg_exprs_create(b->arena, &pool) != SMG_OK) return operand[0];
    for (int k = 0; k < n->operand_count; k++) {
        smg_operand_map own;
        smg_type type = smg_graph_node(b->g, n->operand[k])->type;
        if (smg_space_own_map(b, -1, n, map, k, &own) != SMG_OK) return (affine){.what = UNKNOWN};
        if (smg_type_kind(type) == SMG_KIND_FLOAT) return (affine){.what = UNKNOWN};
        operand[k] = value_of(b, n->operand[k], &own, indices, depth + 1);
        leaf[k] = smg_expr_leaf(pool, smg_type_kind(type), k);
    }
    smg_expr expr = smg_op_expr(pool, n->op, n->type, leaf);
    evaluation e = {.b = b, .map = indices, .operand = operand};
    return expr != SMG_EXPR_NONE ? eval(&e, pool, expr) : (affine){.what = UNKNOWN};
}

static affine value_of(smg_space_builder *b, smg_node_id id, const smg_operand_map *map, smg_operand_map *indices,
                       int depth) {
    affine none = {.what = UNKNOWN};
    smg_operand_map at = *map;
    at.source = id;
    while (smg_node_class(smg_graph_node(b->g, at.source)) == SMG_CLASS_VIEW) {
        if (!smg_space_through_view(b, &at)) return none;
    }
    if (depth > MOST_DEPTH || at.layer_count > map->layer_count || at.index_count > indices->index_count) return none;
    const smg_node *n = smg_graph_node(b->g, at.source);
    switch (smg_op_leaf(n->op)) {
    case SMG_LEAF_INDEX: return (affine){.what = FORM, .form = at.dim[n->axis]};
    case SMG_LEAF_NUMBER:
        if (smg_type_kind(n->type) == SMG_KIND_BOOL) return (affine){.what = n->value != 0 ? YES : NO};
        return number(b, n->value);
    case SMG_LEAF_SIZE: return (affine){.what = FORM, .form = {.begin = n->size}};
    case SMG_LEAF_TENSOR: return none;
    case SMG_LEAF_NONE: break;
    }
    if (smg_node_class(n) != SMG_CLASS_MAP || smg_type_kind(n->type) == SMG_KIND_FLOAT) return none;
    return map_value(b, n, &at, indices, depth);
}

/* Worth a walk? Nothing but positions, sizes, numbers and maps of them. */
static bool is_pure(const smg_space_builder *b, smg_node_id id, int *io_visits) {
    const smg_node *n = smg_graph_node(b->g, id);
    if (--*io_visits < 0) return false;
    if (smg_node_class(n) == SMG_CLASS_LEAF) return smg_op_leaf(n->op) != SMG_LEAF_TENSOR;
    if (smg_node_class(n) != SMG_CLASS_VIEW && smg_node_class(n) != SMG_CLASS_MAP) return false;
    for (int k = 0; k < n->operand_count; k++) {
        if (!is_pure(b, n->operand[k], io_visits)) return false;
    }
    return true;
}

bool smg_space_affine(smg_space_builder *b, smg_node_id id, const smg_operand_map *map, smg_dim_map *out) {
    int visits = MOST_VISITS;
    if (!is_pure(b, id, &visits)) return false;
    smg_operand_map indices = *map;
    affine a = value_of(b, id, map, &indices, 0);
    *out = a.form;
    return a.what == FORM;
}
