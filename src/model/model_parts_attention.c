/* The core of attention with its options: scaled scores, a bias and a mask, softmax, and the weighted
 * sum of values. Where several heads of queries share one of keys and values, they are an axis of their
 * own that keys and values lack: nothing is repeated in memory. */
#include <math.h>

#include "model/model_private.h"

smg_value smg_model_heads(model_builder *b, smg_value x, const char *tokens, int64_t heads, int64_t dim,
                          const char *name) {
    smg_value y = smg_graph_reshape(b->g, x, smg_model_dims(b, tokens, heads, dim));
    return smg_model_named(b, y, smg_model_text(b, "%s.heads", name));
}

smg_value smg_model_mask_term(model_builder *b, smg_value mask) {
    smg_value view = smg_graph_reshape(b->g, mask, "batch, 1, 1, sequence");
    smg_value invalid = smg_model_map2(b, "sub", smg_model_number(b, 1.0), view);
    smg_value lowest = smg_model_number(b, SMG_MODEL_LOWEST);
    return smg_model_named(b, smg_model_map2(b, "mul", invalid, lowest), "mask_term");
}

/* softmax over the last axis */
static smg_value softmax(model_builder *b, smg_value scores, const char *name) {
    smg_value largest = smg_graph_reduce(b->g, "reduce_max", scores, -1, true);
    smg_value e = smg_model_map1(b, "exp", smg_model_map2(b, "sub", scores, largest));
    smg_value total = smg_graph_reduce(b->g, "sum", e, -1, true);
    smg_model_named(b, largest, smg_model_text(b, "%s.largest", name));
    smg_model_named(b, e, smg_model_text(b, "%s.exp", name));
    smg_model_named(b, total, smg_model_text(b, "%s.total", name));
    return smg_model_named(b, smg_model_map2(b, "div", e, total), name);
}

/* A term of [..., queries, keys] as the scores have their axes: with an axis more where heads are
 * grouped. `heads` is the extent of the term's second axis from the left. */
static smg_value term_view(model_builder *b, const model_attention *a, smg_value term, const char *dims) {
    return a->kv_heads == a->heads ? term : smg_graph_reshape(b->g, term, dims);
}

/* key <= query, from indices alone. A row keeps its own key, so that there is a maximum; what is -inf is nothing beside
 * it whatever the scores are, so that a kernel need not go there. */
static smg_value causal(model_builder *b, const model_attention *a, smg_value scores) {
    const char *dims = smg_model_text(b, "%s, %s", a->queries, a->keys);
    smg_value query = smg_graph_iota(b->g, dims, 0), key = smg_graph_iota(b->g, dims, 1);
    smg_value seen = smg_model_named(b, smg_model_map2(b, "le", key, query), "causal");
    smg_value none = smg_model_number(b, -HUGE_VAL);
    return smg_graph_map(b->g, "select", 3, (smg_value[]){seen, scores, none});
}

static smg_value masked_scores(model_builder *b, const model_attention *a, smg_value scores) {
    long long kv_heads = (long long)a->kv_heads, group = (long long)(a->heads / a->kv_heads);
    smg_value masked = scores;
    if (a->scale < 1.0 || a->scale > 1.0) masked = smg_model_map2(b, "mul", masked, smg_model_number(b, a->scale));
    if (a->bias.id != 0) {
        const char *dims = smg_model_text(b, "%lld, %lld, %s, %s", kv_heads, group, a->queries, a->keys);
        masked = smg_model_map2(b, "add", masked, term_view(b, a, a->bias, dims));
    }
    if (a->mask_term.id != 0) {
        const char *dims = smg_model_text(b, "batch, 1, 1, 1, %s", a->keys);
        masked = smg_model_map2(b, "add", masked, term_view(b, a, a->mask_term, dims));
    }
    if (a->causal) masked = causal(b, a, masked);
    return masked;
}

smg_value smg_model_attention(model_builder *b, const model_attention *a, smg_value q, smg_value k, smg_value v) {
    bool grouped = a->kv_heads != a->heads;
    if (grouped)
        q = smg_graph_reshape(b->g, q,
                              smg_model_text(b, "batch, %s, %lld, %lld, %lld", a->queries, (long long)a->kv_heads,
                                             (long long)(a->heads / a->kv_heads), (long long)a->dim));
    smg_value scores = smg_graph_contract(b->g, grouped ? "bshgd,bthd->bhgst" : "bshd,bthd->bhst", q, k);
    smg_model_named(b, scores, smg_model_text(b, "%s.scores", a->name));
    smg_value masked = masked_scores(b, a, scores);
    if (masked.id != scores.id) smg_model_named(b, masked, smg_model_text(b, "%s.masked", a->name));
    smg_value p = softmax(b, masked, smg_model_text(b, "%s.probabilities", a->name));
    smg_value context = smg_graph_contract(b->g, grouped ? "bhgst,bthd->bshgd" : "bhst,bthd->bshd", p, v);
    smg_model_named(b, context, smg_model_text(b, "%s.context", a->name));
    return smg_graph_reshape(b->g, context, smg_model_dims(b, a->queries, a->heads * a->dim, 0));
}
