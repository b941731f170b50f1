/* Questions about a finished graph: nodes, sentences about them, element counts, alignment of map
 * operands, and the structural hash. */
#include "graph/graph_private.h"

smg_type smg_graph_storage(const smg_graph *g, smg_node_id id) {
    return g->storage != NULL ? g->storage[id] : smg_graph_node(g, id)->type;
}

const char *smg_graph_describe(const smg_graph *g, smg_node_id id) {
    const smg_node *node = smg_graph_node(g, id);
    if (!node) return "no node";
    if (node->name[0]) return node->name;
    const char *text = smg_arena_format(g->arena, "%%%d (%s)", (int)id, smg_op_get(node->op)->word);
    return text ? text : smg_op_get(node->op)->word;
}

smg_size smg_node_elements(const smg_graph *g, smg_node_id id) {
    const smg_node *node = smg_graph_node(g, id);
    if (!node) return SMG_SIZE_NONE;
    smg_size product = smg_size_const(g->sizes, 1);
    for (int i = 0; i < node->rank; i++) product = smg_size_mul(g->sizes, product, node->dims[i]);
    return product;
}

bool smg_node_computes(const smg_node *node) {
    smg_op_class class_ = smg_node_class(node);
    return class_ != SMG_CLASS_LEAF && class_ != SMG_CLASS_VIEW;
}

bool smg_node_is_blocked(const smg_node *node) {
    return node->block[0] != 0 || node->block[1] != 0;
}

bool smg_same_dims(const smg_node *a, const smg_node *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool smg_node_is_input(const smg_node *node) {
    return smg_op_is_input(node->op);
}

int smg_graph_input_nodes(const smg_graph *g, smg_node_id *out_nodes, int capacity) {
    int count = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        if (!smg_node_is_input(smg_graph_node(g, id))) continue;
        if (count < capacity) out_nodes[count] = id;
        count++;
    }
    return count;
}

void smg_graph_mark_live(const smg_graph *g, bool *out_live) {
    memset(out_live, 0, (size_t)g->nodes.count * sizeof *out_live);
    for (int o = 0; o < g->outputs.count; o++) out_live[g->outputs.items[o].node] = true;
    for (smg_node_id id = g->nodes.count - 1; id >= 0; id--) {
        const smg_node *node = &g->nodes.items[id];
        for (int k = 0; out_live[id] && k < node->operand_count; k++) out_live[node->operand[k]] = true;
    }
}

static bool dims_fixed(const smg_graph *g, const smg_node *node) {
    for (int d = 0; d < node->rank; d++)
        if (!smg_size_is_const(g->sizes, node->dims[d], NULL)) return false;
    return !smg_node_is_input(node) &&
           (smg_op_leaf(node->op) != SMG_LEAF_SIZE || smg_size_is_const(g->sizes, node->size, NULL));
}

void smg_graph_mark_fixed(const smg_graph *g, bool *out_fixed, bool *out_stored) {
    memset(out_fixed, 0, (size_t)g->nodes.count * sizeof *out_fixed);
    for (int o = 0; o < g->outputs.count; o++) { /* marked for a moment: not to be fixed */
        smg_node_id id = g->outputs.items[o].node;
        while (smg_node_class(&g->nodes.items[id]) == SMG_CLASS_VIEW) id = g->nodes.items[id].operand[0];
        out_fixed[id] = smg_node_class(&g->nodes.items[id]) != SMG_CLASS_LEAF;
    }
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = &g->nodes.items[id];
        bool fixed = !out_fixed[id] && dims_fixed(g, node);
        bool stored = smg_op_leaf(node->op) == SMG_LEAF_TENSOR;
        for (int k = 0; k < node->operand_count; k++) {
            fixed = fixed && out_fixed[node->operand[k]];
            stored = stored || out_stored[node->operand[k]];
        }
        out_fixed[id] = fixed;
        out_stored[id] = stored;
    }
}

/* Ids of sizes depend on the order in which a pool met them, neither their text nor their value does. */
static uint64_t hash_size(const smg_graph *g, uint64_t hash, smg_size size, const int64_t *symbols) {
    smg_text text;
    int64_t value = 0;
    bool fixed = symbols != NULL && smg_size_is_const(g->sizes, size, &value);
    if (fixed || (symbols != NULL && smg_size_eval(g->sizes, size, symbols, &value)))
        return smg_hash_u64(smg_hash_u64(hash, fixed), (uint64_t)value);
    smg_text_init(&text, g->ctx);
    smg_size_print(g->sizes, size, &text);
    hash = smg_hash_text(hash, smg_text_cstr(&text));
    smg_text_free(&text);
    return hash;
}

uint64_t smg_node_hash(const smg_graph *g, uint64_t seed, const smg_node *node, const int64_t *symbols) {
    uint64_t bits, hash;
    memcpy(&bits, &node->value, sizeof bits);
    hash = smg_hash_text(seed, smg_op_get(node->op)->word);
    hash = smg_hash_u64(hash, (uint64_t)node->type);
    hash = smg_hash_u64(hash, (uint64_t)node->rank);
    for (int i = 0; i < node->rank; i++) hash = hash_size(g, hash, node->dims[i], symbols);
    hash = smg_hash_u64(hash, (uint64_t)node->axis);
    hash = smg_hash_u64(hash, node->keep ? 1u : 0u);
    if (smg_node_is_blocked(node))
        for (int i = 0; i < 2; i++) hash = smg_hash_u64(hash, (uint64_t)node->block[i]);
    if (smg_op_view(node->op) == SMG_VIEW_TRANSPOSE)
        for (int i = 0; i < node->rank; i++) hash = smg_hash_u64(hash, (uint64_t)node->perm[i]);
    smg_view_kind view = smg_op_view(node->op);
    if (view == SMG_VIEW_SLICE || view == SMG_VIEW_WINDOW) hash = hash_size(g, hash, node->begin, symbols);
    hash = smg_hash_u64(hash, (uint64_t)node->step);
    hash = smg_hash_u64(hash, (uint64_t)node->dilation);
    if (smg_op_leaf(node->op) == SMG_LEAF_SIZE) hash = hash_size(g, hash, node->size, symbols);
    hash = smg_hash_u64(hash, bits);
    for (int p = 0; p < 3; p++) hash = smg_hash_text(hash, node->label[p]);
    return hash;
}

static uint64_t hash_node(const smg_graph *g, uint64_t hash, const smg_node *node) {
    hash = smg_node_hash(g, hash, node, NULL);
    for (int k = 0; k < node->operand_count; k++) hash = smg_hash_u64(hash, (uint64_t)node->operand[k]);
    return smg_node_is_input(node) ? smg_hash_text(hash, node->name) : hash;
}

uint64_t smg_graph_hash(const smg_graph *g) {
    uint64_t hash = SMG_HASH_SEED;
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        hash = smg_hash_text(hash, smg_size_symbol_name(g->sizes, i));
        hash = smg_hash_u64(hash, (uint64_t)smg_size_symbol_max(g->sizes, i));
    }
    for (int i = 0; i < g->nodes.count; i++) hash = hash_node(g, hash, &g->nodes.items[i]);
    for (int i = 0; i < g->outputs.count; i++) {
        hash = smg_hash_text(hash, g->outputs.items[i].name);
        hash = smg_hash_u64(hash, (uint64_t)g->outputs.items[i].node);
        if (g->outputs.items[i].state != NULL) hash = smg_hash_text(hash, g->outputs.items[i].state);
    }
    return hash;
}

const smg_node *smg_graph_node_of(const smg_graph *g, smg_value value) {
    bool known = g && value.id >= 1 && value.id <= g->nodes.count;
    return known ? &g->nodes.items[value.id - 1] : NULL;
}
