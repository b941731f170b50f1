/* What a compilation of a graph depends on, as one number: structure, sizes and names, which constants are the same
 * memory, and the contents of the constants that rewriting may read. Larger constants count by their shape alone, so
 * that another training of the same model has the same key as long as its small constants are the same. */
#include "graph/graph_private.h"

typedef struct key_walk {
    const smg_graph *g;
    smg_map *first; /* data -> the first node that has it, + 1 */
} key_walk;

/* The first node with the same data: equal constants are merged by their memory. */
static smg_status find_first(key_walk *w, smg_arena *arena, smg_node_id id, smg_node_id *out_first) {
    const smg_node *n = smg_graph_node(w->g, id);
    void *known = NULL;
    *out_first = id;
    if (smg_map_get(w->first, &n->data, sizeof n->data, &known)) {
        *out_first = *(smg_node_id *)known;
        return SMG_OK;
    }
    smg_node_id *row = SMG_ARENA_NEW(arena, smg_node_id);
    if (row == NULL) return SMG_MEMORY;
    *row = id;
    return smg_map_set(w->first, &n->data, sizeof n->data, row);
}

static smg_status add_constant(key_walk *w, smg_arena *arena, smg_node_id id, uint64_t *io_hash) {
    const smg_node *n = smg_graph_node(w->g, id);
    smg_node_id first = -1;
    int64_t elements = 0, bytes = 0;
    if (n->data != NULL) SMG_TRY(find_first(w, arena, id, &first));
    *io_hash = smg_hash_u64(*io_hash, (uint64_t)first);
    if (n->data == NULL || first != id) return SMG_OK;
    if (!smg_size_is_const(w->g->sizes, smg_node_elements(w->g, id), &elements)) return SMG_OK;
    if (elements > SMG_HOST_ELEMENTS || !smg_mul_i64(elements, smg_type_host_bytes(n->type), &bytes)) return SMG_OK;
    *io_hash = smg_hash_bytes(*io_hash, n->data, (size_t)bytes);
    return SMG_OK;
}

static smg_status add_nodes(key_walk *w, smg_arena *arena, uint64_t *io_hash) {
    const smg_graph *g = w->g;
    uint64_t hash = *io_hash;
    SMG_TRY(smg_map_create(arena, &w->first));
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        hash = smg_hash_text(smg_node_hash(g, hash, n, NULL), n->name);
        for (int k = 0; k < n->operand_count; k++) hash = smg_hash_u64(hash, (uint64_t)n->operand[k]);
        if (smg_op_is_constant(n->op)) SMG_TRY(add_constant(w, arena, id, &hash));
    }
    *io_hash = hash;
    return SMG_OK;
}

smg_status smg_graph_key(const smg_graph *g, uint64_t seed, uint64_t *out_key) {
    uint64_t hash = smg_hash_text(seed, g->name);
    smg_arena *arena = NULL;
    key_walk w = {.g = g};
    SMG_TRY(smg_arena_create(g->ctx, &arena));
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        hash = smg_hash_text(hash, smg_size_symbol_name(g->sizes, i));
        hash = smg_hash_u64(hash, (uint64_t)smg_size_symbol_max(g->sizes, i));
    }
    smg_status status = add_nodes(&w, arena, &hash);
    smg_arena_destroy(arena);
    SMG_TRY(status);
    for (int i = 0; i < g->outputs.count; i++) {
        hash = smg_hash_text(hash, g->outputs.items[i].name);
        hash = smg_hash_u64(hash, (uint64_t)g->outputs.items[i].node);
        if (g->outputs.items[i].state != NULL) hash = smg_hash_text(hash, g->outputs.items[i].state);
    }
    *out_key = hash;
    return smg_context_status(g->ctx); /* a size whose text had no memory counts as nothing */
}
