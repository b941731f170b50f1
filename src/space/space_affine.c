/* Integers that depend on positions and sizes only: an index written with iotas, sizes and arithmetic is evaluated here
 * (affine/) at the coordinates of an operand map. What comes out as a form is an address like any other; whatever does
 * not stays an index that is evaluated in the kernel. */
#include "space/space_internal.h"

#define MOST_DEPTH 12
#define MOST_VISITS 64

/* A node that is read through a map. */
typedef struct reading {
    smg_space_builder *b;
    const smg_operand_map *indices; /* of the index that is asked for: its indices are those of all forms */
    const smg_node *node;
    smg_operand_map map; /* its source is the node */
    int depth;
} reading;

static smg_affine_value value_of(const reading *from, const smg_operand_map *map);

static smg_affine_value operand_value(const void *user, int leaf) {
    const reading *at = user;
    smg_operand_map own;
    if (smg_space_own_map(at->b, -1, at->node, &at->map, leaf, &own) != SMG_OK) return smg_affine_unknown;
    return value_of(at, &own);
}

static smg_affine_value map_value(const reading *at, const smg_affine_scope *scope) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    smg_affine_leaves leaves = {operand_value, at};
    smg_exprs *pool = NULL;
    if (smg_exprs_create(at->b->arena, &pool) != SMG_OK) return smg_affine_unknown;
    for (int k = 0; k < at->node->operand_count; k++) {
        smg_kind kind = smg_type_kind(smg_graph_node(at->b->g, at->node->operand[k])->type);
        leaf[k] = smg_expr_leaf(pool, kind, k);
    }
    return smg_affine_eval(scope, pool, smg_op_expr(pool, at->node->op, at->node->type, leaf), &leaves);
}

/* Every operand's map starts from the indices known so far; a layer would be a second case. */
static smg_affine_value value_of(const reading *from, const smg_operand_map *map) {
    smg_space_builder *b = from->b;
    reading at = {.b = b, .indices = from->indices, .map = *map, .depth = from->depth + 1};
    while (smg_node_class(smg_graph_node(b->g, at.map.source)) == SMG_CLASS_VIEW) {
        if (!smg_space_through_view(b, &at.map)) return smg_affine_unknown;
    }
    if (at.depth > MOST_DEPTH || at.map.layer_count > map->layer_count ||
        at.map.index_count > from->indices->index_count)
        return smg_affine_unknown;
    smg_dim_where where = {b, from->indices};
    smg_affine_scope scope = smg_dim_scope(&where);
    smg_affine_value v = smg_affine_unknown;
    at.node = smg_graph_node(b->g, at.map.source);
    if (smg_type_kind(at.node->type) == SMG_KIND_FLOAT) return v;
    switch (smg_op_leaf(at.node->op)) {
    case SMG_LEAF_INDEX:
        v.known = true;
        v.form = at.map.dim[at.node->axis];
        return v;
    case SMG_LEAF_NUMBER: return smg_affine_of_number(b->sizes, smg_type_kind(at.node->type), at.node->value);
    case SMG_LEAF_SIZE: return smg_affine_of_size(at.node->size);
    case SMG_LEAF_TENSOR: return v;
    case SMG_LEAF_NONE: break;
    }
    return smg_node_class(at.node) == SMG_CLASS_MAP ? map_value(&at, &scope) : v;
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

bool smg_space_affine(smg_space_builder *b, smg_node_id id, const smg_operand_map *map, smg_affine *out) {
    int visits = MOST_VISITS;
    reading at = {.b = b, .indices = map, .depth = -1};
    if (!is_pure(b, id, &visits)) return false;
    smg_affine_value v = value_of(&at, map);
    *out = v.form;
    return smg_affine_whole(&v);
}
