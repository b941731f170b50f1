/* Coalescing: (batch, sequence) -> one axis of extent b*s when no operand can tell the difference.
 * Without it batch 32 x sequence 7 in tiles of 64 rows would waste nine tenths of every tile. */
#include "space/space_internal.h"

typedef struct axes_of {
    const smg_space *space;
    smg_axis_set set;
} axes_of;

static void add_leaf(void *user, int number) {
    axes_of *a = user;
    const smg_sleaf *leaf = &a->space->leaves.items[number];
    if (leaf->what == SMG_SLEAF_FORM) {
        a->set |= smg_space_view_axes(a->space, &a->space->views.items[leaf->index]);
    } else if (leaf->what == SMG_SLEAF_VALUE) {
        a->set |= smg_space_operand_axes(a->space, &a->space->nodes.items[leaf->index].operand[1]);
    }
}

smg_axis_set smg_space_view_axes(const smg_space *space, const smg_sview *view) {
    axes_of a = {.space = space};
    for (int i = 0; i < view->axis_count; i++) a.set |= SMG_AXIS_BIT(view->axis[i]);
    for (int i = 0; i < view->index_count; i++) smg_expr_leaves(space->exprs, view->index[i].expr, add_leaf, &a);
    for (int i = 0; i < view->layer_count; i++) smg_expr_leaves(space->exprs, view->layer[i].guard, add_leaf, &a);
    return a.set;
}

static smg_axis_set read_axes(const smg_space *space, smg_axis_set result, const smg_sread *read) {
    smg_sview guards = {.source = -1, .layer_count = read->layer_count};
    memcpy(guards.layer, read->layer, sizeof(guards.layer));
    smg_axis_set from = smg_space_view_axes(space, &guards);
    for (int i = 0; i < read->pick_count; i++) {
        result &= ~SMG_AXIS_BIT(read->pick[i].axis);
        if (read->pick[i].from >= 0) from |= SMG_AXIS_BIT(read->pick[i].from);
    }
    return result | from;
}

smg_axis_set smg_space_operand_axes(const smg_space *space, const smg_soperand *operand) {
    if (operand->producer >= 0) {
        smg_axis_set result = space->nodes.items[operand->producer].result;
        return operand->read != NULL ? read_axes(space, result, operand->read) : result;
    }
    return operand->view >= 0 ? smg_space_view_axes(space, &space->views.items[operand->view]) : 0;
}

int smg_space_only_reader(const smg_space *space, int node) {
    int reader = -1, reads = space->nodes.items[node].output ? 2 : 0;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        for (int k = 0; k < n->operand_count; k++) {
            if (n->operand[k].producer != node) continue;
            reader = i;
            reads += n->operand[k].read != NULL ? 2 : 1;
        }
    }
    return reads == 1 ? reader : -1;
}

bool smg_space_has_products(const smg_space *space) {
    bool found = false;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        found = found || (n->class_ == SMG_CLASS_CONTRACT && !n->streamed);
    }
    return found;
}

int smg_space_multiply_sums(smg_space *space) {
    smg_axis_set contracted = 0;
    int count = 0;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ == SMG_CLASS_CONTRACT) contracted |= n->iterates & ~n->result;
    }
    for (int i = 0; i < space->nodes.count; i++) {
        smg_snode *n = &space->nodes.items[i];
        smg_axis_set folded = n->iterates & ~n->result;
        bool sum = n->class_ == SMG_CLASS_REDUCE && smg_op_combine(n->op) == SMG_COMBINE_ADD && folded != 0;
        if (!sum || (folded & ~contracted) || smg_type_kind(n->type) != SMG_KIND_FLOAT) continue;
        n->class_ = SMG_CLASS_CONTRACT;
        n->operand[1] = (smg_soperand){.producer = -1, .view = -1};
        count++;
    }
    return count;
}

smg_node_id smg_space_source(const smg_graph *g, smg_node_id id) {
    while (smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_VIEW) id = smg_graph_node(g, id)->operand[0];
    return id;
}

static int find(const smg_sview *view, int axis) {
    for (int i = 0; i < view->axis_count; i++) {
        if (view->axis[i] == axis) return i;
    }
    return -1;
}

static bool both_or_none(smg_axis_set set, smg_axis_set pair) {
    return (set & pair) == 0 || (set & pair) == pair;
}

static bool mergeable(const smg_space *space, int outer, int inner) {
    smg_sizes *s = space->graph->sizes;
    smg_axis_set pair = SMG_AXIS_BIT(outer) | SMG_AXIS_BIT(inner);
    bool seen = false;
    if (space->axes.items[outer].held || space->axes.items[inner].held) return false;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (!both_or_none(n->iterates, pair) || !both_or_none(n->result, pair)) return false;
        seen = seen || (n->iterates & pair) != 0;
    }
    if (!seen) return false;
    for (int v = 0; v < space->views.count; v++) {
        const smg_sview *view = &space->views.items[v];
        int o = find(view, outer), i = find(view, inner);
        if ((o < 0) != (i < 0)) return false;
        if (o >= 0 && view->stride[o] != smg_size_mul(s, view->stride[i], space->axes.items[inner].extent)) {
            return false;
        }
    }
    return true;
}

static smg_axis_set without(smg_axis_set set, int axis) {
    smg_axis_set low = set & (SMG_AXIS_BIT(axis) - 1u);
    smg_axis_set high = axis + 1 < 32 ? (set >> (axis + 1)) << axis : 0;
    return low | high;
}

/* `outer` takes the product, `inner` goes; higher axes move down by one. */
static void merge(smg_space *space, int outer, int inner) {
    smg_sizes *s = space->graph->sizes;
    for (int v = 0; v < space->views.count; v++) {
        smg_sview *view = &space->views.items[v];
        int o = find(view, outer), i = find(view, inner);
        if (o >= 0) {
            view->stride[o] = view->stride[i];
            view->axis_count--;
            view->axis[i] = view->axis[view->axis_count];
            view->stride[i] = view->stride[view->axis_count];
        }
        for (int a = 0; a < view->axis_count; a++) view->axis[a] -= view->axis[a] > inner;
    }
    space->axes.items[outer].extent = smg_size_mul(s, space->axes.items[outer].extent, space->axes.items[inner].extent);
    for (int a = inner; a + 1 < space->axes.count; a++) space->axes.items[a] = space->axes.items[a + 1];
    space->axes.count--;
    for (int i = 0; i < space->nodes.count; i++) {
        smg_snode *n = &space->nodes.items[i];
        n->iterates = without(n->iterates, inner);
        n->result = without(n->result, inner);
        for (int k = 0; k < n->operand_count; k++) {
            smg_sread *read = n->operand[k].read;
            for (int p = 0; read != NULL && p < read->pick_count; p++) {
                read->pick[p].axis -= read->pick[p].axis > inner;
                read->pick[p].from -= read->pick[p].from > inner;
            }
        }
    }
}

static bool merge_one(smg_space *space) {
    for (int outer = 0; outer < space->axes.count; outer++) {
        for (int inner = 0; inner < space->axes.count; inner++) {
            if (inner == outer || !mergeable(space, outer, inner)) continue;
            merge(space, outer, inner);
            return true;
        }
    }
    return false;
}

void smg_space_coalesce(smg_space *space) {
    while (merge_one(space)) continue;
}
