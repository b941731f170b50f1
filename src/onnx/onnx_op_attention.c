/* Attention and RotaryEmbedding of opset 23, written out as products, masks, softmax, slices and joins.
 *
 * Axes have letters: a batch, k heads of keys, r heads of queries for each of those, s queries, t keys,
 * d width of queries and keys, v width of values. With one query head per key head there is no r. */
#include <math.h>

#include "onnx/onnx_part.h"

typedef struct heads {
    int rank; /* of query, key and value: 3 [a, s, k*r*d] or 4 [a, k*r, s, d] */
    smg_size queries, keys, repeats;
    bool grouped; /* repeats is not 1 */
    smg_size past;
} heads;

/* ---- inputs --------------------------------------------------------------------------------- */

static smg_status read_heads(smg_onnx_build *b, const smg_onnx_node *n, heads *out) {
    const smg_onnx_value *q = n->inputs[0], *k = n->inputs[1];
    int64_t queries = smg_onnx_attr_int(b, n, "q_num_heads", 0);
    int64_t keys = smg_onnx_attr_int(b, n, "kv_num_heads", 0);
    out->rank = q->rank;
    bool good = (q->rank == 3 || q->rank == 4) && k->rank == q->rank && n->inputs[2]->rank == q->rank &&
                (q->rank == 4 || (queries > 0 && keys > 0));
    if (!good)
        return smg_onnx_fail(b, n, SMG_INVALID, "query %s, key %s, value %s with %lld and %lld heads do not fit",
                             smg_onnx_shape_text(b, q), smg_onnx_shape_text(b, k), smg_onnx_shape_text(b, n->inputs[2]),
                             (long long)queries, (long long)keys);
    out->queries = q->rank == 4 ? q->dims[1] : smg_onnx_int(b, queries);
    out->keys = q->rank == 4 ? k->dims[1] : smg_onnx_int(b, keys);
    if (!smg_size_divide_exact(b->sizes, out->queries, out->keys, &out->repeats))
        return smg_onnx_fail(b, n, SMG_INVALID, "%s heads of queries for %s of keys",
                             smg_onnx_size_text(b, out->queries), smg_onnx_size_text(b, out->keys));
    out->grouped = !smg_onnx_is_const(b, out->repeats, 1);
    out->past = smg_onnx_has(n, 4) ? n->inputs[4]->dims[2] : smg_onnx_int(b, 0);
    return SMG_OK;
}

/* Axis `axis` of heads, or of heads times width, as (k, r, width) with what is 1 or absent left out. */
static smg_value split_heads(smg_onnx_build *b, smg_value x, int axis, const heads *h, bool query, bool width) {
    smg_size dims[3];
    int count = 0;
    dims[count++] = h->keys;
    if (query && h->grouped) dims[count++] = h->repeats;
    if (width) {
        smg_size all = smg_onnx_product(b, count, dims), whole = smg_onnx_dim(b, x, axis);
        if (whole < 0 || !smg_size_divide_exact(b->sizes, whole, all, &dims[count])) {
            if (whole >= 0)
                smg_fail(b->ctx, SMG_INVALID, "width %s is not a multiple of %s heads", smg_onnx_size_text(b, whole),
                         smg_onnx_size_text(b, all));
            b->failed = true;
            return (smg_value){0};
        }
        count++;
    }
    return smg_onnx_divide(b, x, axis, count, dims);
}

/* The letters of input `input` (0 query, 1 key, 2 value) after split_heads. */
static const char *letters_of(const heads *h, int input) {
    static const char *const rows[2][2][3] = {{{"aksd", "aktd", "aktv"}, {"akrsd", "aktd", "aktv"}},
                                              {{"askd", "atkd", "atkv"}, {"askrd", "atkd", "atkv"}}};
    return rows[h->rank == 3][h->grouped][input];
}

static smg_value with_heads(smg_onnx_build *b, const smg_onnx_node *n, const heads *h, int input) {
    smg_value x = smg_onnx_in(b, n, input);
    if (!x.id) return x;
    return split_heads(b, x, h->rank == 3 ? 2 : 1, h, input == 0, h->rank == 3);
}

/* Key or value with what came before it: [a, k, past + t, d], and its output. */
static smg_status with_past(smg_onnx_build *b, const smg_onnx_node *n, const heads *h, int input, onnx_lettered *out) {
    static const int perm[] = {0, 2, 1, 3};
    int output = input, past = input + 3;
    bool wanted = n->output_count > output && n->outputs[output];
    memcpy(out->letters, letters_of(h, input), sizeof "atkd");
    out->value = with_heads(b, n, h, input);
    if (!smg_onnx_has(n, past) && !wanted) return SMG_OK;
    if (h->rank == 3) out->value = smg_onnx_permute(b, out->value, perm);
    memcpy(out->letters, input == 1 ? "aktd" : "aktv", sizeof "aktd");
    if (smg_onnx_has(n, past)) {
        smg_value pieces[2] = {smg_onnx_in(b, n, past), out->value};
        if (!pieces[0].id || !pieces[1].id) return smg_onnx_failed(b, n);
        out->value = smg_graph_concat(b->graph, 2, pieces, 2);
    }
    return wanted ? smg_onnx_set_like(b, n, output, input, out->value) : SMG_OK;
}

/* ---- masks ---------------------------------------------------------------------------------- */

/* The mask, padded to all keys, with heads as scores have them; {0} after a failure. */
static smg_value read_mask(smg_onnx_build *b, const smg_onnx_node *n, const heads *h, smg_size keys) {
    smg_value mask = smg_onnx_in(b, n, 3);
    int rank = smg_onnx_rank(b, mask);
    if (!mask.id) return mask;
    bool flags = smg_graph_node_of(b->graph, mask)->type == SMG_TYPE_BOOL;
    smg_size given = smg_onnx_dim(b, mask, rank - 1), zero = smg_onnx_int(b, 0);
    if (given != keys && !smg_onnx_is_const(b, given, 1))
        mask = smg_graph_pad_of(b->graph, mask, rank - 1, zero, smg_size_sub(b->sizes, keys, given),
                                flags ? 0.0 : -HUGE_VAL);
    if (rank < 3 || !h->grouped) return mask;
    int axis = rank - 3;
    if (smg_onnx_is_const(b, smg_onnx_dim(b, mask, axis), 1)) return smg_onnx_insert(b, mask, axis);
    return split_heads(b, mask, axis, h, true, false);
}

static smg_value apply_mask(smg_onnx_build *b, smg_value scores, smg_value mask) {
    const smg_node *node = smg_graph_node_of(b->graph, mask);
    if (!node) return mask;
    if (node->type != SMG_TYPE_BOOL) return smg_onnx_map2(b, "add", scores, mask);
    return smg_onnx_select(b, mask, scores, smg_onnx_like(b, scores, -HUGE_VAL));
}

/* Key t is seen by query s when t <= s + past. */
static smg_value apply_causal(smg_onnx_build *b, smg_value scores, const heads *h) {
    smg_value row = smg_onnx_count(b, smg_onnx_dim(b, scores, -2), 0, 2);
    smg_value column = smg_onnx_count(b, smg_onnx_dim(b, scores, -1), 1, 2);
    if (!smg_onnx_is_const(b, h->past, 0))
        row = smg_onnx_map2(b, "add", row, smg_onnx_size_value(b, SMG_TYPE_I32, h->past));
    smg_value seen = smg_onnx_map2(b, "le", column, row);
    return smg_onnx_select(b, seen, scores, smg_onnx_like(b, scores, -HUGE_VAL));
}

/* ---- Attention ------------------------------------------------------------------------------ */

/* [a, k, (r), s, t]: scaled, capped, masked. */
static smg_value scores_of(smg_onnx_build *b, const smg_onnx_node *n, const heads *h, onnx_lettered q,
                           onnx_lettered k) {
    int64_t width = 1;
    smg_value scores = smg_onnx_multiply(b, n, q, k, h->grouped ? "akrst" : "akst");
    smg_size_is_const(b->sizes, smg_onnx_dim(b, q.value, -1), &width);
    double scale = smg_onnx_attr_float(b, n, "scale", 1.0 / sqrt((double)width));
    double cap = smg_onnx_attr_float(b, n, "softcap", 0.0);
    scores = smg_onnx_with(b, "mul", scores, scale);
    if (cap > 0.0) {
        scores = smg_onnx_map1(b, "tanh", smg_onnx_with(b, "mul", scores, 1.0 / cap));
        scores = smg_onnx_with(b, "mul", scores, cap);
    }
    if (smg_onnx_has(n, 3) && scores.id)
        scores = apply_mask(b, scores, read_mask(b, n, h, smg_onnx_dim(b, scores, -1)));
    if (smg_onnx_attr_int(b, n, "is_causal", 0) != 0) scores = apply_causal(b, scores, h);
    return scores;
}

static smg_status check_attention(smg_onnx_build *b, const smg_onnx_node *n) {
    if (n->output_count > 3 && n->outputs[3])
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "its output qk_matmul_output is used (qk_matmul_output_mode %lld)",
                             (long long)smg_onnx_attr_int(b, n, "qk_matmul_output_mode", 0));
    if (smg_onnx_has(n, 4) != smg_onnx_has(n, 5))
        return smg_onnx_fail(b, n, SMG_INVALID, "past_key and past_value come together");
    for (int i = 4; i < 6; i++)
        if (smg_onnx_has(n, i) && n->inputs[i]->rank != 4)
            return smg_onnx_fail(b, n, SMG_INVALID, "input %d is %s, must have rank 4", i,
                                 smg_onnx_shape_text(b, n->inputs[i]));
    if (smg_onnx_has(n, 3) && (n->inputs[3]->rank < 2 || n->inputs[3]->rank > 4))
        return smg_onnx_fail(b, n, SMG_INVALID, "attn_mask is %s, must have rank 2, 3 or 4",
                             smg_onnx_shape_text(b, n->inputs[3]));
    return SMG_OK;
}

smg_status smg_onnx_convert_attention(smg_onnx_build *b, const smg_onnx_node *n) {
    static const char *const out[2][2] = {{"aksv", "akrsv"}, {"askv", "askrv"}};
    heads h;
    onnx_lettered q = {.value = {0}}, k = q, v = q, p = q;
    SMG_TRY(check_attention(b, n));
    SMG_TRY(read_heads(b, n, &h));
    q.value = with_heads(b, n, &h, 0);
    memcpy(q.letters, letters_of(&h, 0), strlen(letters_of(&h, 0)) + 1);
    SMG_TRY(with_past(b, n, &h, 1, &k));
    SMG_TRY(with_past(b, n, &h, 2, &v));
    smg_value scores = scores_of(b, n, &h, q, k);
    p.value = smg_onnx_softmax(b, scores, smg_onnx_rank(b, scores) - 1, false);
    /* A row that sees nothing gives 0. */
    if (smg_onnx_has(n, 3))
        p.value = smg_onnx_select(b, smg_onnx_map1(b, "isnan", p.value), smg_onnx_like(b, p.value, 0.0), p.value);
    memcpy(p.letters, h.grouped ? "akrst" : "akst", h.grouped ? 6 : 5);
    smg_value y = smg_onnx_multiply(b, n, p, v, out[h.rank == 3][h.grouped]);
    if (h.rank == 3)
        y = smg_onnx_merge(b, y, 2, h.grouped ? 3 : 2);
    else if (h.grouped)
        y = smg_onnx_merge(b, y, 1, 2);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------ */

typedef struct rotary {
    bool four;         /* input [a, h, s, d], else [a, s, h, d] after a reshape */
    int cache, places; /* first of the two inputs of cosines and sines; the input of positions */
} rotary;

/* Rows of a cache at the positions, or the cache itself: [a, s, half], with the axis of heads put in. A single position
 * is that of the first row. */
static smg_value cache_rows(smg_onnx_build *b, const smg_onnx_node *n, const rotary *r, int which, smg_size rows) {
    smg_value cache = smg_onnx_in(b, n, r->cache + which);
    if (smg_onnx_has(n, r->places)) {
        smg_value at = smg_onnx_in(b, n, r->places);
        if (n->inputs[r->places]->rank == 1) at = smg_onnx_map2(b, "add", at, smg_onnx_count(b, rows, 1, 2));
        if (!cache.id || !at.id) return (smg_value){0};
        cache = smg_graph_gather(b->graph, cache, at);
    }
    return smg_onnx_insert(b, cache, r->four ? 1 : 2);
}

static smg_status convert_rotary(smg_onnx_build *b, const smg_onnx_node *n, rotary r, int64_t count) {
    const smg_onnx_value *in = n->inputs[0];
    int64_t turned = smg_onnx_attr_int(b, n, "rotary_embedding_dim", 0);
    onnx_angles by = {.interleaved = smg_onnx_attr_int(b, n, "interleaved", 0) != 0};
    r.four = in->rank == 4;
    smg_value x = smg_onnx_in(b, n, 0);
    if (!r.four) {
        smg_size dims[2] = {smg_onnx_int(b, count)};
        if (in->rank != 3 || count < 1 || !smg_size_divide_exact(b->sizes, in->dims[2], dims[0], &dims[1]))
            return smg_onnx_fail(b, n, SMG_INVALID, "the input is %s with num_heads %lld", smg_onnx_shape_text(b, in),
                                 (long long)count);
        x = smg_onnx_divide(b, x, 2, 2, dims);
    }
    smg_size whole = turned > 0 ? smg_onnx_int(b, turned) : smg_onnx_dim(b, x, 3);
    if (whole < 0) return smg_onnx_failed(b, n);
    if (!smg_size_divide_exact(b->sizes, whole, smg_onnx_int(b, 2), &by.half))
        return smg_onnx_fail(b, n, SMG_INVALID, "%s elements cannot be rotated in pairs", smg_onnx_size_text(b, whole));
    smg_size rows = in->dims[r.four ? 2 : 1];
    by.cosine = cache_rows(b, n, &r, 0, rows);
    by.sine = cache_rows(b, n, &r, 1, rows);
    smg_value y = smg_onnx_rotate(b, x, &by);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_reshape(b, y, in->rank, in->dims));
}

smg_status smg_onnx_convert_rotary(smg_onnx_build *b, const smg_onnx_node *n) {
    return convert_rotary(b, n, (rotary){.cache = 1, .places = 3}, smg_onnx_attr_int(b, n, "num_heads", 0));
}

/* com.microsoft: positions come first; heads that are not told are as wide as the cache says. */
smg_status smg_onnx_convert_fused_rotary(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *in = n->inputs[0], *cache = n->inputs[2];
    int64_t count = smg_onnx_attr_int(b, n, "num_heads", 0), half, width;
    double scale = smg_onnx_attr_float(b, n, "scale", 1.0);
    if (n->inputs[1]->rank > 2 || cache->rank != 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "positions are %s, the cache is %s",
                             smg_onnx_shape_text(b, n->inputs[1]), smg_onnx_shape_text(b, cache));
    if (scale < 1.0 || scale > 1.0) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "scale is %g, 1 is known", scale);
    if (count == 0 && in->rank == 3 && smg_size_is_const(b->sizes, cache->dims[1], &half) && half > 0 &&
        smg_size_is_const(b->sizes, in->dims[2], &width) && width % (2 * half) == 0)
        count = width / (2 * half);
    return convert_rotary(b, n, (rotary){.cache = 2, .places = 1}, count);
}
