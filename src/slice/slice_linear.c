/* Products are linear in their factors: what a factor has of sums over the axis that the product contracts leaves the
 * product where it is a factor itself, the same all along the axis. What is left reads inputs alone, and the sums read
 * inputs alone: then nothing along the axis is held, and sums and products go by it in the same slices. */
#include "slice/slice.h"

typedef struct linear {
    const smg_space *space;
    smg_exprs *pool;
    smg_axis_set cut;    /* what the product at hand contracts */
    smg_leaf_role *role; /* of leaves: nodes, then views */
    bool *between;       /* nodes between sums and products, along the axis */
    bool fails;
} linear;

static const smg_snode *node_at(const linear *l, int i) {
    return &l->space->nodes.items[i];
}

static smg_axis_set folded(const smg_snode *n) {
    return n->iterates & ~n->result;
}

static bool is_sum(const smg_snode *n) {
    return n->class_ == SMG_CLASS_REDUCE && smg_op_combine(n->op) == SMG_COMBINE_ADD &&
           smg_type_kind(n->type) == SMG_KIND_FLOAT;
}

/* Axes of sums over what products contract, of inputs alone; 0 where something else is reduced over them. */
static smg_axis_set summed_axes(const smg_space *space) {
    smg_axis_set contracted = 0, summed = 0;
    for (int i = 0; i < space->nodes.count; i++)
        if (space->nodes.items[i].class_ == SMG_CLASS_CONTRACT) contracted |= folded(&space->nodes.items[i]);
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ != SMG_CLASS_REDUCE || n->streamed || (folded(n) & contracted) == 0) continue;
        int of = n->operand[0].producer;
        bool of_inputs = of < 0 || space->nodes.items[of].streamed;
        if (!is_sum(n) || !of_inputs || (folded(n) & ~contracted)) return 0;
        summed |= folded(n);
    }
    return summed;
}

static smg_expr leaf(linear *l, smg_kind kind, int number, smg_leaf_role role) {
    l->role[number] = role;
    return smg_expr_leaf(l->pool, kind, number);
}

static smg_leaf_role along(const linear *l, smg_axis_set axes, smg_leaf_role other) {
    return axes & l->cut ? SMG_ROLE_VARIES : other;
}

/* What the product multiplies, over what is streamed and what does not vary. */
static smg_expr value_of(linear *l, const smg_soperand *o) {
    const smg_space *space = l->space;
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    l->fails = l->fails || o->read != NULL || (o->producer < 0 && o->view < 0);
    if (l->fails) return SMG_EXPR_NONE;
    if (o->producer < 0) {
        smg_node_id source = space->views.items[o->view].source;
        smg_kind kind = source >= 0 ? smg_type_kind(smg_graph_node(space->graph, source)->type) : SMG_KIND_INT;
        smg_axis_set axes = smg_space_view_axes(space, &space->views.items[o->view]);
        return leaf(l, kind, space->nodes.count + o->view, along(l, axes, SMG_ROLE_FIXED));
    }
    const smg_snode *n = node_at(l, o->producer);
    if (n->streamed || (n->result & l->cut) == 0) {
        smg_leaf_role role = along(l, n->result, n->streamed ? SMG_ROLE_FIXED : SMG_ROLE_AGGREGATE);
        return leaf(l, smg_type_kind(n->type), o->producer, role);
    }
    l->fails = n->class_ != SMG_CLASS_MAP || n->layer_count > 0 || n->output;
    l->between[o->producer] = true;
    for (int k = 0; k < n->operand_count && !l->fails; k++) operand[k] = value_of(l, &n->operand[k]);
    return l->fails ? SMG_EXPR_NONE : smg_op_expr(l->pool, n->op, n->type, operand);
}

/* Does linearity leave of both factors what is streamed? */
static smg_status look_at_product(linear *l, const smg_snode *n) {
    l->cut = folded(n);
    for (int k = 0; k < n->operand_count && !l->fails; k++) {
        smg_postponed p;
        smg_expr value = value_of(l, &n->operand[k]);
        if (l->fails) return SMG_OK;
        if (value == SMG_EXPR_NONE) return SMG_MEMORY;
        int count = l->space->nodes.count + l->space->views.count;
        const smg_slice_roles roles = {.pool = l->pool, .role = l->role, .count = count};
        if (!smg_slice_aggregates(&roles, value)) continue;
        SMG_TRY(smg_slice_postpone(&roles, value, &p));
        l->fails = p.factor == SMG_EXPR_NONE || p.guard != SMG_EXPR_NONE || smg_slice_aggregates(&roles, p.core);
    }
    return SMG_OK;
}

/* Is nothing along these axes read but by the products, or held? */
static bool is_free(const linear *l, smg_axis_set summed) {
    for (int i = 0; i < l->space->nodes.count; i++) {
        const smg_snode *n = node_at(l, i);
        bool along_it = (n->result & summed) != 0, product = n->class_ == SMG_CLASS_CONTRACT && (folded(n) & summed);
        if (n->idle) continue;
        if (along_it && (n->output || (!n->streamed && !l->between[i]))) return false;
        for (int k = 0; k < n->operand_count && !product && !l->between[i]; k++)
            if (n->operand[k].producer >= 0 && l->between[n->operand[k].producer]) return false;
    }
    return true;
}

static smg_status copy_of(const linear *l, smg_arena *arena, smg_space **out) {
    int count = l->space->nodes.count;
    smg_space *made = SMG_ARENA_NEW(arena, smg_space);
    smg_snode *nodes = SMG_ARENA_ARRAY(arena, smg_snode, (size_t)count + 1);
    if (made == NULL || nodes == NULL) return SMG_MEMORY;
    *made = *l->space;
    memcpy(nodes, l->space->nodes.items, (size_t)count * sizeof(smg_snode));
    made->nodes.items = nodes;
    made->form = SMG_SPACE_LINEAR;
    for (int i = 0; i < count; i++) nodes[i].streamed = nodes[i].streamed || l->between[i];
    smg_space_multiply_sums(made);
    *out = made;
    return SMG_OK;
}

smg_status smg_slice_linear(const smg_space *space, smg_arena *arena, smg_space **out_space) {
    smg_axis_set summed = space->repeat.count == 0 ? summed_axes(space) : 0;
    linear l = {.space = space};
    *out_space = NULL;
    if (summed == 0) return SMG_OK;
    l.role = SMG_ARENA_ARRAY(arena, smg_leaf_role, (size_t)(space->nodes.count + space->views.count) + 1);
    l.between = SMG_ARENA_ARRAY(arena, bool, (size_t)space->nodes.count + 1);
    if (l.role == NULL || l.between == NULL) return SMG_MEMORY;
    SMG_TRY(smg_exprs_create(arena, &l.pool));
    for (int i = 0; i < space->nodes.count && !l.fails; i++) {
        const smg_snode *n = node_at(&l, i);
        if (n->class_ == SMG_CLASS_CONTRACT && (folded(n) & summed)) SMG_TRY(look_at_product(&l, n));
    }
    return l.fails || !is_free(&l, summed) ? SMG_OK : copy_of(&l, arena, out_space);
}
