/* compile_batch.c: does a graph treat the rows of its batch one by one?
 *
 * The check of a large model samples whole rows. That is right only when axis 0 of every input, of one
 * symbolic size, is carried through each operation to axis 0 of the outputs and nothing mixes or counts
 * rows. The rules follow the index maps of the operation classes; whatever they do not prove is "no". */
#include "compile/compile.h"

enum { NO_AXIS = -1, MIXED = -2 };

typedef struct batch_walk {
    const smg_graph *g;
    int symbol;
    int64_t *two, *three; /* values that differ in the symbol only */
    int *axis;            /* per node */
} batch_walk;

static bool mentions(const batch_walk *w, smg_size size) {
    int64_t a = 0;
    int64_t b = 0;
    if (size < 0) return false;
    return !smg_size_eval(w->g->sizes, size, w->two, &a) || !smg_size_eval(w->g->sizes, size, w->three, &b) || a != b;
}

static bool any_dim_mentions(const batch_walk *w, const smg_node *node) {
    for (int d = 0; d < node->rank; d++) {
        if (mentions(w, node->dims[d])) return true;
    }
    return false;
}

static int leaf_axis(const batch_walk *w, const smg_node *node) {
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_SIZE: return mentions(w, node->size) ? MIXED : NO_AXIS;
    case SMG_LEAF_INDEX: return mentions(w, node->dims[node->axis]) ? MIXED : NO_AXIS;
    case SMG_LEAF_TENSOR: break;
    case SMG_LEAF_NUMBER:
    case SMG_LEAF_NONE: return NO_AXIS;
    }
    if (node->rank == 0 || !mentions(w, node->dims[0])) {
        return any_dim_mentions(w, node) ? MIXED : NO_AXIS;
    }
    for (int d = 1; d < node->rank; d++) {
        if (mentions(w, node->dims[d])) return MIXED;
    }
    return 0;
}

static int join(int a, int b) {
    if (a == MIXED || b == MIXED) return MIXED;
    if (a == NO_AXIS) return b;
    return b == NO_AXIS || a == b ? a : MIXED;
}

/* Axes aligned from the right: maps and broadcasts. */
static int aligned_axis(const batch_walk *w, const smg_node *node) {
    int result = NO_AXIS;
    for (int k = 0; k < node->operand_count; k++) {
        int axis = w->axis[node->operand[k]];
        int shift = node->rank - smg_graph_node(w->g, node->operand[k])->rank;
        result = join(result, axis >= 0 ? axis + shift : axis);
    }
    return result;
}

static int reduce_axis(const batch_walk *w, const smg_node *node) {
    int axis = w->axis[node->operand[0]];
    const smg_node *operand = smg_graph_node(w->g, node->operand[0]);
    if (axis == MIXED || axis == node->axis || mentions(w, operand->dims[node->axis])) return MIXED;
    return axis > node->axis && !node->keep ? axis - 1 : axis;
}

static int contract_axis(const batch_walk *w, const smg_node *node) {
    int result = NO_AXIS;
    for (int k = 0; k < 2; k++) {
        const smg_node *operand = smg_graph_node(w->g, node->operand[k]);
        int axis = w->axis[node->operand[k]];
        if (axis == MIXED) return MIXED;
        for (int d = 0; d < operand->rank; d++) {
            const char *found = strchr(node->label[2], node->label[k][d]);
            if (found == NULL && mentions(w, operand->dims[d])) return MIXED;
            if (d == axis) result = join(result, found == NULL ? MIXED : (int)(found - node->label[2]));
        }
    }
    return result;
}

static int view_axis(const batch_walk *w, const smg_node *node) {
    const smg_node *operand = smg_graph_node(w->g, node->operand[0]);
    int axis = w->axis[node->operand[0]];
    if (axis == MIXED) return MIXED;
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE:
        if (axis == NO_AXIS) return any_dim_mentions(w, operand) ? MIXED : NO_AXIS;
        return axis == 0 && node->rank > 0 && node->dims[0] == operand->dims[0] ? 0 : MIXED;
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < node->rank; i++) {
            if (node->perm[i] == axis) return i;
        }
        return axis;
    case SMG_VIEW_BROADCAST: return aligned_axis(w, node);
    case SMG_VIEW_SLICE: return axis == node->axis || mentions(w, node->begin) ? MIXED : axis;
    case SMG_VIEW_WINDOW:
        if (axis == node->axis || mentions(w, node->begin)) return MIXED;
        return axis > node->axis ? axis + 1 : axis;
    case SMG_VIEW_NONE: break;
    }
    return MIXED;
}

static int axis_of(const batch_walk *w, const smg_node *node) {
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: return leaf_axis(w, node);
    case SMG_CLASS_MAP: return aligned_axis(w, node);
    case SMG_CLASS_REDUCE: return reduce_axis(w, node);
    case SMG_CLASS_CONTRACT: return contract_axis(w, node);
    case SMG_CLASS_GATHER: {
        const smg_node *table = smg_graph_node(w->g, node->operand[0]);
        bool free_table = w->axis[node->operand[0]] == NO_AXIS && !any_dim_mentions(w, table);
        return free_table ? w->axis[node->operand[1]] : MIXED;
    }
    case SMG_CLASS_VIEW: return view_axis(w, node);
    }
    return MIXED;
}

static bool carried(batch_walk *w) {
    bool any = false;
    for (smg_node_id id = 0; id < w->g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(w->g, id);
        w->axis[id] = axis_of(w, node);
        if (w->axis[id] == MIXED) return false;
        any |= smg_node_is_input(node) && w->axis[id] == 0;
    }
    for (int i = 0; i < w->g->outputs.count; i++) {
        smg_node_id id = w->g->outputs.items[i].node;
        if (w->axis[id] != 0) return false;
    }
    return any;
}

int smg_compile_batch_symbol(const smg_graph *g, smg_arena *scratch) {
    int symbols = smg_size_symbol_count(g->sizes);
    batch_walk w = {.g = g};
    w.two = SMG_ARENA_ARRAY(scratch, int64_t, (size_t)symbols + 1);
    w.three = SMG_ARENA_ARRAY(scratch, int64_t, (size_t)symbols + 1);
    w.axis = SMG_ARENA_ARRAY(scratch, int, (size_t)g->nodes.count + 1);
    if (w.two == NULL || w.three == NULL || w.axis == NULL) return -1;
    for (w.symbol = 0; w.symbol < symbols; w.symbol++) {
        for (int i = 0; i < symbols; i++) {
            w.two[i] = 5;
            w.three[i] = i == w.symbol ? 7 : 5;
        }
        if (carried(&w)) return w.symbol;
    }
    return -1;
}
