/* compile_tensor.c: host arrays for the inputs of a graph, and as the reference takes them. */
#include "compile/compile.h"

smg_status smg_tensor_make(smg_context *ctx, const smg_graph *g, smg_node_id id, const int64_t *symbols,
                           smg_arena *arena, smg_tensor *out) {
    const smg_node *node = smg_graph_node(g, id);
    int64_t count = 1;
    *out = (smg_tensor){.name = node->name, .type = smg_type_word(node->type), .rank = node->rank};
    for (int d = 0; d < node->rank; d++) {
        if (!smg_size_eval(g->sizes, node->dims[d], symbols, &out->dims[d]) || out->dims[d] < 0 ||
            !smg_mul_i64(count, out->dims[d], &count)) {
            return smg_fail(ctx, SMG_INVALID, "'%s' has more than 2^63 elements, or no valid size along axis %d",
                            node->name, d);
        }
    }
    int64_t bytes = 0;
    if (!smg_mul_i64(count, smg_type_host_bytes(node->type), &bytes) || bytes > PTRDIFF_MAX - 16) {
        return smg_fail(ctx, SMG_INVALID, "'%s' has too many elements at these sizes", node->name);
    }
    out->bytes = (size_t)bytes;
    out->data = smg_arena_alloc(arena, out->bytes + 16, 1);
    return out->data != NULL ? SMG_OK : SMG_MEMORY;
}

smg_status smg_tensor_fill(smg_context *ctx, const smg_graph *g, smg_node_id id, const int64_t *symbols, smg_fill how,
                           uint64_t seed, smg_arena *arena, smg_tensor *out) {
    const smg_interface sizes = {.sizes = g->sizes};
    smg_port port;
    SMG_TRY(smg_compile_input_port(g, id, &port));
    return smg_tensor_fill_port(ctx, &sizes, &port, symbols, how, seed, arena, out);
}

smg_status smg_tensor_to_array(const smg_tensor *tensor, smg_arena *arena, smg_array *out) {
    *out = (smg_array){.type = SMG_TYPE_F32, .rank = tensor->rank};
    smg_type_find(tensor->type, &out->type); /* none is f32 */
    memcpy(out->dims, tensor->dims, sizeof(tensor->dims));
    int64_t count = smg_tensor_elements(tensor);
    out->data = SMG_ARENA_ARRAY(arena, double, (size_t)count + 1);
    if (out->data == NULL) return SMG_MEMORY;
    smg_tensor_read(tensor, 0, count, out->data);
    return SMG_OK;
}
