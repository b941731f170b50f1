/* What makes a node legal: one checker per class of operations, which also infers the result. Builders
 * and the text reader go through smg_node_infer, and smg_graph_finish runs it over the whole graph
 * again, so that a graph put together by a rewrite meets the same rules. */
#include "graph/graph_private.h"

#include <math.h>

/* ---- sentences ------------------------------------------------------------------------------ */

static const char *word_of(const smg_node *node) {
    return smg_op_get(node->op)->word;
}

void smg_node_print_type(const smg_graph *g, const smg_node *node, smg_text *text) {
    smg_text_addf(text, "%s[", smg_type_word(node->type));
    for (int i = 0; i < node->rank; i++) {
        if (i > 0) smg_text_add(text, ", ");
        smg_size_print(g->sizes, node->dims[i], text);
    }
    smg_text_add(text, "]");
}

static const char *type_text(smg_graph *g, const smg_node *node) {
    smg_text text;
    smg_text_init(&text, g->ctx);
    smg_node_print_type(g, node, &text);
    const char *copy = smg_arena_string(g->arena, smg_text_cstr(&text));
    smg_text_free(&text);
    return copy ? copy : "?";
}

static const char *size_text(smg_graph *g, smg_size size) {
    smg_text text;
    smg_text_init(&text, g->ctx);
    smg_size_print(g->sizes, size, &text);
    const char *copy = smg_arena_string(g->arena, smg_text_cstr(&text));
    smg_text_free(&text);
    return copy ? copy : "?";
}

static smg_status failure(const smg_graph *g) {
    smg_status status = smg_context_status(g->ctx);
    return status != SMG_OK ? status : SMG_INTERNAL;
}

static const smg_node *operand(const smg_graph *g, const smg_node *node, int k) {
    return &g->nodes.items[node->operand[k]];
}

smg_status smg_product(smg_graph *g, const smg_size *dims, int rank, smg_size *out_product) {
    smg_size product = smg_size_const(g->sizes, 1);
    for (int i = 0; i < rank; i++) product = smg_size_mul(g->sizes, product, dims[i]);
    *out_product = product;
    return product >= 0 ? SMG_OK : failure(g);
}

static void set_result(smg_node *node, smg_type type, int rank, const smg_size *dims) {
    smg_size copy[SMG_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) copy[i] = dims[i];
    node->type = type;
    node->rank = rank;
    memcpy(node->dims, copy, sizeof copy);
}

/* ---- classes -------------------------------------------------------------------------------- */

static smg_status check_number(smg_graph *g, const smg_node *node) {
    if (smg_type_kind(node->type) != SMG_KIND_INT || isinf(node->value)) return SMG_OK; /* of a maximum of nothing */
    bool fits = node->type != SMG_TYPE_I32 || (node->value >= INT32_MIN && node->value <= INT32_MAX);
    if (fits && !(node->value < floor(node->value) || node->value > floor(node->value) || isnan(node->value)))
        return SMG_OK;
    return smg_fail(g->ctx, SMG_INVALID, "number: %.17g is no %s", node->value, smg_type_word(node->type));
}

static smg_status infer_leaf(smg_graph *g, smg_node *node) {
    if (smg_op_leaf(node->op) == SMG_LEAF_NUMBER) SMG_TRY(check_number(g, node));
    if (smg_op_leaf(node->op) == SMG_LEAF_SIZE) {
        if (node->size < 0) return failure(g);
        set_result(node, smg_type_kind(node->type) == SMG_KIND_INT ? node->type : SMG_TYPE_F32, 0, NULL);
    }
    if (smg_op_leaf(node->op) == SMG_LEAF_INDEX) {
        node->type = SMG_TYPE_I32;
        if (node->axis < 0 || node->axis >= node->rank)
            return smg_fail(g->ctx, SMG_INVALID, "iota: axis %d is outside [0, %d)", node->axis, node->rank);
    }
    if (smg_op_is_input(node->op) && !node->name[0]) return smg_fail(g->ctx, SMG_INVALID, "input: needs a name");
    return SMG_OK;
}

static smg_status broadcast_axis(smg_graph *g, const smg_node *node, int k, int from_right, smg_size *io) {
    const smg_node *source = operand(g, node, k);
    smg_size dim = source->dims[source->rank - 1 - from_right];
    if (dim == *io || smg_size_is_one(g->sizes, dim)) return SMG_OK;
    if (smg_size_is_one(g->sizes, *io)) {
        *io = dim;
        return SMG_OK;
    }
    return smg_fail(g->ctx, SMG_INVALID,
                    "%s: operand %s has extent %s where another has %s (axis %d from the right); they must "
                    "be equal or 1",
                    word_of(node), smg_graph_describe(g, node->operand[k]), size_text(g, dim), size_text(g, *io),
                    from_right + 1);
}

static smg_status infer_map(smg_graph *g, smg_node *node) {
    smg_type types[SMG_MAX_OPERANDS], result = node->type;
    int rank = 0;
    for (int k = 0; k < node->operand_count; k++) {
        types[k] = operand(g, node, k)->type;
        if (operand(g, node, k)->rank > rank) rank = operand(g, node, k)->rank;
    }
    if (!smg_op_converts(node->op) && !smg_op_infer_type(node->op, types, node->operand_count, &result))
        return smg_fail(g->ctx, SMG_INVALID, "%s: cannot take operands of type %s%s%s%s%s", word_of(node),
                        smg_type_word(types[0]), node->operand_count > 1 ? ", " : "",
                        node->operand_count > 1 ? smg_type_word(types[1]) : "", node->operand_count > 2 ? ", " : "",
                        node->operand_count > 2 ? smg_type_word(types[2]) : "");
    smg_size dims[SMG_MAX_RANK], one = smg_size_const(g->sizes, 1);
    if (one < 0) return failure(g);
    for (int i = 0; i < rank; i++) {
        dims[i] = one;
        int from_right = rank - 1 - i;
        for (int k = 0; k < node->operand_count; k++)
            if (from_right < operand(g, node, k)->rank) SMG_TRY(broadcast_axis(g, node, k, from_right, &dims[i]));
    }
    set_result(node, result, rank, dims);
    return SMG_OK;
}

static smg_status infer_reduce(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    if (node->axis < 0 || node->axis >= a->rank)
        return smg_fail(g->ctx, SMG_INVALID, "%s: axis %d is outside [0, %d) of %s", word_of(node), node->axis, a->rank,
                        smg_graph_describe(g, node->operand[0]));
    if (a->type == SMG_TYPE_BOOL)
        return smg_fail(g->ctx, SMG_INVALID, "%s: cannot reduce bool; cast it first", word_of(node));
    smg_size dims[SMG_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < a->rank; i++) {
        if (i != node->axis)
            dims[rank++] = a->dims[i];
        else if (node->keep)
            dims[rank++] = smg_size_const(g->sizes, 1);
    }
    set_result(node, a->type, rank, dims);
    return SMG_OK;
}

static int find_letter(const char *labels, char letter) {
    const char *at = letter ? strchr(labels, letter) : NULL;
    return at ? (int)(at - labels) : -1;
}

static smg_status check_labels(smg_graph *g, const smg_node *node) {
    static const char *const parts[] = {"first operand", "second operand", "result"};
    for (int p = 0; p < 3; p++) {
        const char *labels = node->label[p];
        int length = (int)strlen(labels);
        for (int i = 0; i < length; i++)
            if (strchr(labels + i + 1, labels[i]))
                return smg_fail(g->ctx, SMG_INVALID, "contract: letter %c is twice in the %s \"%s\"", labels[i],
                                parts[p], labels);
        if (p == 2) continue;
        const smg_node *source = operand(g, node, p);
        if (length != source->rank)
            return smg_fail(g->ctx, SMG_INVALID, "contract: %s has rank %d but letters \"%s\"",
                            smg_graph_describe(g, node->operand[p]), source->rank, labels);
        for (int i = 0; i < length; i++)
            if (find_letter(node->label[1 - p], labels[i]) < 0 && find_letter(node->label[2], labels[i]) < 0)
                return smg_fail(g->ctx, SMG_INVALID,
                                "contract: letter %c is only in the %s \"%s\"; reduce that axis first", labels[i],
                                parts[p], labels);
    }
    return SMG_OK;
}

static smg_status infer_contract(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0), *b = operand(g, node, 1);
    if (a->type != b->type || a->type == SMG_TYPE_BOOL)
        return smg_fail(g->ctx, SMG_INVALID, "contract: cannot multiply %s by %s", smg_type_word(a->type),
                        smg_type_word(b->type));
    SMG_TRY(check_labels(g, node));
    for (int i = 0; i < a->rank; i++) {
        int k = find_letter(node->label[1], node->label[0][i]);
        if (k >= 0 && a->dims[i] != b->dims[k])
            return smg_fail(g->ctx, SMG_INVALID, "contract: letter %c is %s in %s but %s in %s", node->label[0][i],
                            size_text(g, a->dims[i]), smg_graph_describe(g, node->operand[0]), size_text(g, b->dims[k]),
                            smg_graph_describe(g, node->operand[1]));
    }
    smg_size dims[SMG_MAX_RANK];
    int rank = (int)strlen(node->label[2]);
    for (int i = 0; i < rank; i++) {
        int in_a = find_letter(node->label[0], node->label[2][i]);
        int in_b = find_letter(node->label[1], node->label[2][i]);
        if (in_a < 0 && in_b < 0)
            return smg_fail(g->ctx, SMG_INVALID, "contract: letter %c of the result is in no operand",
                            node->label[2][i]);
        dims[i] = in_a >= 0 ? a->dims[in_a] : b->dims[in_b];
    }
    set_result(node, a->type, rank, dims);
    return SMG_OK;
}

static smg_status infer_gather(smg_graph *g, smg_node *node) {
    const smg_node *table = operand(g, node, 0), *index = operand(g, node, 1);
    if (smg_type_kind(index->type) != SMG_KIND_INT)
        return smg_fail(g->ctx, SMG_INVALID, "gather: indices %s are %s, must be i32 or i64",
                        smg_graph_describe(g, node->operand[1]), smg_type_word(index->type));
    int rank = index->rank + table->rank - 1;
    if (table->rank < 1 || rank > SMG_MAX_RANK)
        return smg_fail(g->ctx, SMG_INVALID, "gather: a table of rank %d with indices of rank %d gives rank %d",
                        table->rank, index->rank, rank);
    smg_size dims[SMG_MAX_RANK];
    for (int i = 0; i < index->rank; i++) dims[i] = index->dims[i];
    for (int i = 1; i < table->rank; i++) dims[index->rank + i - 1] = table->dims[i];
    set_result(node, table->type, rank, dims);
    return SMG_OK;
}

static smg_status infer_reshape(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    smg_size before, after;
    node->type = a->type;
    SMG_TRY(smg_product(g, a->dims, a->rank, &before));
    SMG_TRY(smg_product(g, node->dims, node->rank, &after));
    if (before != after)
        return smg_fail(g->ctx, SMG_INVALID, "reshape: %s has %s elements, %s has %s", type_text(g, a),
                        size_text(g, before), type_text(g, node), size_text(g, after));
    return SMG_OK;
}

static smg_status infer_transpose(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    smg_size dims[SMG_MAX_RANK];
    bool seen[SMG_MAX_RANK] = {false};
    for (int i = 0; i < a->rank; i++) {
        int axis = node->perm[i];
        if (axis < 0 || axis >= a->rank || seen[axis])
            return smg_fail(g->ctx, SMG_INVALID, "transpose: entry %d of perm is %d, not a permutation of %d axes", i,
                            axis, a->rank);
        seen[axis] = true;
        dims[i] = a->dims[axis];
    }
    set_result(node, a->type, a->rank, dims);
    return SMG_OK;
}

static smg_status infer_broadcast(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    int shift = node->rank - a->rank;
    node->type = a->type;
    if (shift < 0)
        return smg_fail(g->ctx, SMG_INVALID, "broadcast: %s does not fit %s", type_text(g, a), type_text(g, node));
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != node->dims[i + shift] && !smg_size_is_one(g->sizes, a->dims[i]))
            return smg_fail(g->ctx, SMG_INVALID, "broadcast: axis %d of %s is %s, cannot become %s", i,
                            smg_graph_describe(g, node->operand[0]), size_text(g, a->dims[i]),
                            size_text(g, node->dims[i + shift]));
    return SMG_OK;
}

/* Only what is out of range for every value of the symbols is refused here. */
static smg_status infer_slice(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    if (node->axis < 0 || node->axis >= a->rank)
        return smg_fail(g->ctx, SMG_INVALID, "slice: axis %d is outside [0, %d)", node->axis, a->rank);
    if (node->step == 0) return smg_fail(g->ctx, SMG_INVALID, "slice: step is 0");
    smg_size count = node->dims[node->axis], dims[SMG_MAX_RANK];
    if (count < 0 || node->begin < 0) return failure(g);
    smg_sizes *s = g->sizes;
    smg_size last = smg_size_sub(s, count, smg_size_const(s, 1));
    last = smg_size_add(s, node->begin, smg_size_mul(s, last, smg_size_const(s, node->step)));
    if (last < 0) return failure(g);
    smg_size end[2] = {node->begin, last};
    for (int i = 0; i < 2; i++) {
        int64_t high, low, extent_high;
        smg_size_bounds(s, end[i], &low, &high);
        smg_size room = smg_size_sub(s, a->dims[node->axis], end[i]);
        smg_size_bounds(s, room, NULL, &extent_high);
        if (high < 0 || extent_high < 1)
            return smg_fail(g->ctx, SMG_INVALID, "slice: element %s of axis %d is outside [0, %s) of %s",
                            size_text(g, end[i]), node->axis, size_text(g, a->dims[node->axis]),
                            smg_graph_describe(g, node->operand[0]));
    }
    for (int i = 0; i < a->rank; i++) dims[i] = i == node->axis ? count : a->dims[i];
    set_result(node, a->type, a->rank, dims);
    return SMG_OK;
}

static smg_status infer_window(smg_graph *g, smg_node *node) {
    const smg_node *a = operand(g, node, 0);
    smg_size dims[SMG_MAX_RANK];
    if (node->axis < 0 || node->axis >= a->rank || a->rank == SMG_MAX_RANK)
        return smg_fail(g->ctx, SMG_INVALID, "window: axis %d of %s cannot become two (rank %d, at most %d)",
                        node->axis, smg_graph_describe(g, node->operand[0]), a->rank, SMG_MAX_RANK - 1);
    if (node->step == 0 || node->dilation == 0)
        return smg_fail(g->ctx, SMG_INVALID, "window: step is %lld and dilation %lld, must not be 0",
                        (long long)node->step, (long long)node->dilation);
    if (node->begin < 0 || node->dims[node->axis] < 0 || node->dims[node->axis + 1] < 0) return failure(g);
    if (smg_type_kind(a->type) != SMG_KIND_FLOAT && !(floor(node->value) == node->value))
        return smg_fail(g->ctx, SMG_INVALID, "window: %g cannot stand outside of %s elements", node->value,
                        smg_type_word(a->type));
    for (int i = 0; i <= a->rank; i++) {
        bool own = i == node->axis || i == node->axis + 1;
        dims[i] = own ? node->dims[i] : a->dims[i > node->axis ? i - 1 : i];
    }
    set_result(node, a->type, a->rank + 1, dims);
    return SMG_OK;
}

static smg_status infer_view(smg_graph *g, smg_node *node) {
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE: return infer_reshape(g, node);
    case SMG_VIEW_TRANSPOSE: return infer_transpose(g, node);
    case SMG_VIEW_BROADCAST: return infer_broadcast(g, node);
    case SMG_VIEW_SLICE: return infer_slice(g, node);
    case SMG_VIEW_WINDOW: return infer_window(g, node);
    case SMG_VIEW_NONE: break;
    }
    return smg_fail(g->ctx, SMG_INTERNAL, "%s is not a view", word_of(node));
}

/* ---- entry ---------------------------------------------------------------------------------- */

static smg_status check_result(smg_graph *g, const smg_node *node) {
    for (int i = 0; i < node->rank; i++) {
        int64_t value;
        if (node->dims[i] < 0) return failure(g);
        if (smg_size_is_const(g->sizes, node->dims[i], &value) && value < 1)
            return smg_fail(g->ctx, SMG_INVALID, "%s: extent %d of %s is %lld, must be at least 1", word_of(node), i,
                            node->name[0] ? node->name : "its result", (long long)value);
    }
    smg_size product;
    return smg_product(g, node->dims, node->rank, &product);
}

/* Blocks are whole, of copies that have two axes or more. */
static smg_status check_blocks(smg_graph *g, const smg_node *node) {
    bool good = smg_op_copies(node->op) && node->rank >= 2;
    for (int i = 0; good && i < 2; i++) {
        int64_t extent;
        good = node->block[i] > 0 && smg_size_is_const(g->sizes, node->dims[node->rank - 2 + i], &extent) &&
               extent % node->block[i] == 0;
    }
    if (good) return SMG_OK;
    return smg_fail(g->ctx, SMG_INVALID, "%s: %s has no whole blocks of %d x %d", word_of(node), type_text(g, node),
                    node->block[0], node->block[1]);
}

smg_status smg_node_infer(smg_graph *g, smg_node *node) {
    const smg_op_row *row = smg_op_get(node->op);
    if (!row) return smg_fail(g->ctx, SMG_INTERNAL, "operation %d does not exist", (int)node->op);
    if (node->operand_count != row->arity)
        return smg_fail(g->ctx, SMG_INVALID, "%s: takes %d operands, got %d", row->word, row->arity,
                        node->operand_count);
    for (int k = 0; k < node->operand_count; k++)
        if (node->operand[k] < 0 || node->operand[k] >= g->nodes.count)
            return smg_fail(g->ctx, SMG_INVALID, "%s: operand %d is not a value of this graph", row->word, k);
    smg_status status = SMG_OK;
    switch (row->class_) {
    case SMG_CLASS_LEAF: status = infer_leaf(g, node); break;
    case SMG_CLASS_MAP: status = infer_map(g, node); break;
    case SMG_CLASS_REDUCE: status = infer_reduce(g, node); break;
    case SMG_CLASS_CONTRACT: status = infer_contract(g, node); break;
    case SMG_CLASS_GATHER: status = infer_gather(g, node); break;
    case SMG_CLASS_VIEW: status = infer_view(g, node); break;
    }
    if (status == SMG_OK && smg_node_is_blocked(node)) status = check_blocks(g, node);
    return status == SMG_OK ? check_result(g, node) : status;
}

static bool same_result(const smg_node *a, const smg_node *b) {
    if (a->type != b->type || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

smg_status smg_graph_verify(smg_graph *g) {
    for (int i = 0; i < g->nodes.count; i++) {
        smg_node node = g->nodes.items[i];
        for (int k = 0; k < node.operand_count && k < SMG_MAX_OPERANDS; k++)
            if (node.operand[k] >= i)
                return smg_fail(g->ctx, SMG_INVALID, "operand %d of node %d comes after it", k, i);
        SMG_TRY(smg_node_infer(g, &node));
        if (!same_result(&node, &g->nodes.items[i]))
            return smg_fail(g->ctx, SMG_INTERNAL, "node %s is %s but its operands make it %s", smg_graph_describe(g, i),
                            type_text(g, &g->nodes.items[i]), type_text(g, &node));
    }
    if (g->outputs.count == 0)
        return smg_fail(g->ctx, SMG_INVALID, "the graph%s%s has no output", g->name[0] != '\0' ? " " : "", g->name);
    for (int i = 0; i < g->outputs.count; i++) {
        const smg_graph_output_row *row = &g->outputs.items[i];
        if (row->node < 0 || row->node >= g->nodes.count)
            return smg_fail(g->ctx, SMG_INVALID, "output %s is not a value of this graph", row->name);
    }
    return SMG_OK;
}
