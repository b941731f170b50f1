/* GroupQueryAttention of com.microsoft: what decoders for onnxruntime are made of. Keys and values of earlier runs come
 * in and go out with those of this run behind them, each row of the batch from where its own end.
 *
 * Letters of axes: a batch, k heads of keys, r heads of queries for each of those, s queries, t keys, d width. */
#include <math.h>

#include "onnx/onnx_part.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LAST_KEYS, TOTAL, COSINE, SINE, POSITIONS, BIAS };

typedef struct grouped {
    smg_size batch, rows, keys, repeats, width; /* keys: heads of them */
    smg_size total;                             /* keys of the longest row, earlier ones with them */
    smg_value before;                           /* i32[a, 1]: earlier keys of each row; {0}: none */
} grouped;

/* ---- inputs --------------------------------------------------------------------------------- */

static smg_status check_kind(smg_onnx_build *b, const smg_onnx_node *n) {
    static const char *const unknown[] = {"smooth_softmax", "qk_output"};
    for (size_t i = 0; i < SMG_COUNT_OF(unknown); i++)
        if (smg_onnx_attr_int(b, n, unknown[i], 0) > 0)
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "%s is set", unknown[i]);
    for (int i = BIAS + 1; i < n->input_count; i++)
        if (smg_onnx_has(n, i))
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                                 "input %d ('%s') is given: sinks and quantised caches are not known", i,
                                 n->inputs[i]->name);
    if (!smg_onnx_has(n, QUERY) || n->inputs[QUERY]->rank != 3 || smg_onnx_has(n, KEY) != smg_onnx_has(n, VALUE))
        return smg_onnx_fail(b, n, SMG_INVALID, "query is %s, key %s and value %s",
                             smg_onnx_shape_text(b, smg_onnx_has(n, QUERY) ? n->inputs[QUERY] : NULL),
                             smg_onnx_shape_text(b, smg_onnx_has(n, KEY) ? n->inputs[KEY] : NULL),
                             smg_onnx_shape_text(b, smg_onnx_has(n, VALUE) ? n->inputs[VALUE] : NULL));
    if (smg_onnx_has(n, PAST_KEY) != smg_onnx_has(n, PAST_VALUE) || !smg_onnx_has(n, LAST_KEYS))
        return smg_onnx_fail(b, n, SMG_INVALID, "past_key and past_value come together, and seqlens_k always");
    for (int i = PAST_KEY; i <= PAST_VALUE; i++)
        if (smg_onnx_has(n, i) && n->inputs[i]->rank != 4)
            return smg_onnx_fail(b, n, SMG_INVALID, "input %d is %s, must be [batch, heads, past, width]", i,
                                 smg_onnx_shape_text(b, n->inputs[i]));
    return SMG_OK;
}

static smg_status read_heads(smg_onnx_build *b, const smg_onnx_node *n, grouped *g) {
    const smg_onnx_value *q = n->inputs[QUERY];
    int64_t queries = smg_onnx_attr_int(b, n, "num_heads", 0), keys = smg_onnx_attr_int(b, n, "kv_num_heads", 0);
    if (keys < 1 || queries < 1 || queries % keys != 0 || queries > INT32_MAX / 4)
        return smg_onnx_fail(b, n, SMG_INVALID, "%lld heads of queries for %lld of keys", (long long)queries,
                             (long long)keys);
    int64_t heads = smg_onnx_has(n, KEY) ? queries : queries + 2 * keys;
    g->batch = q->dims[0];
    g->rows = q->dims[1];
    g->keys = smg_onnx_int(b, keys);
    g->repeats = smg_onnx_int(b, queries / keys);
    if (smg_size_divide_exact(b->sizes, q->dims[2], smg_onnx_int(b, heads), &g->width)) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_INVALID, "width %s is not a multiple of %lld heads",
                         smg_onnx_size_text(b, q->dims[2]), (long long)heads);
}

/* Without earlier keys there are as many as queries. With them, their number must be a size; how many of a row count
 * is data. */
static smg_status read_past(smg_onnx_build *b, const smg_onnx_node *n, grouped *g) {
    bool past = smg_onnx_has(n, PAST_KEY);
    bool known =
        smg_onnx_has(n, TOTAL) && smg_onnx_knows_sizes(b, n->inputs[TOTAL]) && n->inputs[TOTAL]->known_count == 1;
    g->total = past ? smg_size_add(b->sizes, n->inputs[PAST_KEY]->dims[2], g->rows) : g->rows;
    if (known) SMG_TRY(smg_onnx_equal(b, n, n->inputs[TOTAL]->known[0], g->total, "total_sequence_length and keys"));
    if (!past) return SMG_OK;
    if (!known)
        return smg_onnx_fail(
            b, n, SMG_UNSUPPORTED,
            "total_sequence_length must follow from the sizes of the model's inputs, where earlier keys "
            "come in");
    smg_size dims[2] = {g->batch, smg_onnx_int(b, 1)};
    smg_value last = smg_onnx_reshape(b, smg_onnx_in(b, n, LAST_KEYS), 2, dims);
    smg_size new_ones = smg_size_sub(b->sizes, g->rows, smg_onnx_int(b, 1));
    g->before = smg_onnx_map2(b, "sub", last, smg_onnx_size_value(b, SMG_TYPE_I32, new_ones));
    return g->before.id ? SMG_OK : smg_onnx_failed(b, n);
}

/* Numbers of a row's earlier keys, as an axis 0 of `rank` axes; 0 where there are none. */
static smg_value before_of(smg_onnx_build *b, const grouped *g, int rank) {
    smg_size dims[SMG_MAX_RANK];
    if (!g->before.id) return smg_graph_number(b->graph, "i32", 0);
    for (int i = 0; i < rank; i++) dims[i] = i == 0 ? g->batch : smg_onnx_int(b, 1);
    return smg_onnx_reshape(b, g->before, rank, dims);
}

/* Queries, keys or values as [a, s, heads, d]. */
static smg_value with_heads(smg_onnx_build *b, const smg_onnx_node *n, const grouped *g, int input) {
    smg_size queries = smg_size_mul(b->sizes, g->keys, g->repeats);
    smg_size dims[2] = {input == QUERY ? queries : g->keys, g->width};
    smg_value x = smg_onnx_in(b, n, smg_onnx_has(n, KEY) ? input : QUERY);
    if (!smg_onnx_has(n, KEY)) {
        smg_size first = input == QUERY ? smg_onnx_int(b, 0)
                         : input == KEY ? queries
                                        : smg_size_add(b->sizes, queries, g->keys);
        x = smg_onnx_part(b, x, 2, smg_size_mul(b->sizes, first, g->width), smg_size_mul(b->sizes, dims[0], g->width),
                          1);
    }
    return smg_onnx_divide(b, x, 2, 2, dims);
}

/* ---- positions ------------------------------------------------------------------------------ */

static smg_status read_angles(smg_onnx_build *b, const smg_onnx_node *n, const grouped *g, onnx_angles *out) {
    if (!smg_onnx_has(n, COSINE) || !smg_onnx_has(n, SINE) || n->inputs[COSINE]->rank != 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "do_rotary is set without cos_cache and sin_cache of two axes");
    smg_value at = smg_onnx_has(n, POSITIONS)
                       ? smg_onnx_in(b, n, POSITIONS)
                       : smg_onnx_map2(b, "add", before_of(b, g, 2), smg_onnx_count(b, g->rows, 1, 2));
    smg_value cosine = smg_onnx_in(b, n, COSINE), sine = smg_onnx_in(b, n, SINE);
    if (!at.id || !cosine.id || !sine.id) return smg_onnx_failed(b, n);
    out->half = n->inputs[COSINE]->dims[1];
    out->interleaved = smg_onnx_attr_int(b, n, "rotary_interleaved", 0) != 0;
    out->cosine = smg_onnx_insert(b, smg_graph_gather(b->graph, cosine, at), 2);
    out->sine = smg_onnx_insert(b, smg_graph_gather(b->graph, sine, at), 2);
    return SMG_OK;
}

/* ---- earlier keys --------------------------------------------------------------------------- */

/* [a, k, t, d]: place t of a row is of the past up to the row's number of earlier keys, then of x, then nothing. */
static smg_value behind_past(smg_onnx_build *b, const smg_onnx_node *n, const grouped *g, smg_value x, int past) {
    static const int perm[] = {0, 2, 1, 3};
    x = smg_onnx_permute(b, x, perm);
    if (!smg_onnx_has(n, past) || !x.id) return x;
    smg_value place = smg_onnx_map2(b, "sub", smg_onnx_count(b, g->total, 2, 3), before_of(b, g, 3));
    smg_value last = smg_onnx_size_value(b, SMG_TYPE_I32, smg_size_sub(b->sizes, g->rows, smg_onnx_int(b, 1)));
    smg_value inside = smg_onnx_map2(b, "min", smg_onnx_with(b, "max", place, 0.0), last);
    const smg_value at[] = {smg_onnx_count(b, g->batch, 0, 3), smg_onnx_count(b, g->keys, 1, 3), inside};
    for (int i = 0; i < 3; i++)
        if (!at[i].id) return (smg_value){0};
    smg_value from_new = smg_graph_take_at(b->graph, x, 3, at), from_past = smg_onnx_in(b, n, past);
    if (!from_new.id || !from_past.id) return (smg_value){0};
    from_past = smg_graph_pad_of(b->graph, from_past, 2, SMG_SIZE_ZERO, g->rows, 0.0);
    smg_value here = smg_onnx_insert(b, smg_onnx_map2(b, "le", place, last), 3);
    from_new = smg_onnx_select(b, here, from_new, smg_onnx_like(b, from_new, 0.0));
    return smg_onnx_select(b, smg_onnx_insert(b, smg_onnx_with(b, "lt", place, 0.0), 3), from_past, from_new);
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Keys up to the query's own, and of a window only the last ones. */
static smg_value seen_keys(smg_onnx_build *b, const smg_onnx_node *n, const grouped *g) {
    int64_t window = smg_onnx_attr_int(b, n, "local_window_size", -1);
    smg_value row = smg_onnx_map2(b, "add", before_of(b, g, 5), smg_onnx_count(b, g->rows, 3, 5));
    smg_value key = smg_onnx_count(b, g->total, 4, 5), seen = smg_onnx_map2(b, "le", key, row);
    if (window < 0 || window > INT32_MAX / 2) return seen;
    smg_value near = smg_onnx_map2(b, "gt", smg_onnx_with(b, "add", key, (double)window), row);
    return smg_onnx_map2(b, "and", seen, near);
}

/* [a, k, r, s, t] */
static smg_status scores_of(smg_onnx_build *b, const smg_onnx_node *n, const grouped *g, onnx_lettered q,
                            onnx_lettered k, smg_value *out_scores) {
    int64_t width = 1;
    double scale = smg_onnx_attr_float(b, n, "scale", 0.0), cap = smg_onnx_attr_float(b, n, "softcap", 0.0);
    smg_size_is_const(b->sizes, g->width, &width);
    if (scale >= 0.0 && scale <= 0.0) scale = 1.0 / sqrt((double)width);
    smg_value scores = smg_onnx_with(b, "mul", smg_onnx_multiply(b, n, q, k, "akrst"), scale);
    if (cap > 0.0) {
        scores = smg_onnx_map1(b, "tanh", smg_onnx_with(b, "mul", scores, 1.0 / cap));
        scores = smg_onnx_with(b, "mul", scores, cap);
    }
    if (smg_onnx_has(n, BIAS)) {
        smg_value bias = smg_onnx_in(b, n, BIAS);
        smg_size split[2] = {g->keys, g->repeats};
        if (n->inputs[BIAS]->rank != 4)
            return smg_onnx_fail(b, n, SMG_INVALID, "attention_bias is %s, must have rank 4",
                                 smg_onnx_shape_text(b, n->inputs[BIAS]));
        bool same = smg_onnx_is_const(b, n->inputs[BIAS]->dims[1], 1);
        scores =
            smg_onnx_map2(b, "add", scores, same ? smg_onnx_insert(b, bias, 1) : smg_onnx_divide(b, bias, 1, 2, split));
    }
    *out_scores = smg_onnx_select(b, seen_keys(b, n, g), scores, smg_onnx_like(b, scores, -HUGE_VAL));
    return out_scores->id ? SMG_OK : smg_onnx_failed(b, n);
}

smg_status smg_onnx_convert_group_query(smg_onnx_build *b, const smg_onnx_node *n) {
    grouped g = {.batch = 0};
    onnx_lettered q = {.letters = "askrd"}, k = {.letters = "aktd"}, v = k, p = {.letters = "akrst"};
    SMG_TRY(check_kind(b, n));
    SMG_TRY(read_heads(b, n, &g));
    SMG_TRY(read_past(b, n, &g));
    q.value = with_heads(b, n, &g, QUERY);
    k.value = with_heads(b, n, &g, KEY);
    if (smg_onnx_attr_int(b, n, "do_rotary", 0) != 0) {
        onnx_angles by;
        SMG_TRY(read_angles(b, n, &g, &by));
        q.value = smg_onnx_rotate(b, q.value, &by);
        k.value = smg_onnx_rotate(b, k.value, &by);
    }
    q.value = smg_onnx_divide(b, q.value, 2, 2, (smg_size[]){g.keys, g.repeats});
    k.value = behind_past(b, n, &g, k.value, PAST_KEY);
    v.value = behind_past(b, n, &g, with_heads(b, n, &g, VALUE), PAST_VALUE);
    SMG_TRY(scores_of(b, n, &g, q, k, &p.value));
    p.value = smg_onnx_softmax(b, p.value, 4, false);
    SMG_TRY(smg_onnx_set_like(b, n, 0, QUERY, smg_onnx_merge(b, smg_onnx_multiply(b, n, p, v, "askrd"), 2, 3)));
    if (n->output_count > 1) SMG_TRY(smg_onnx_set_like(b, n, 1, QUERY, k.value));
    return n->output_count > 2 ? smg_onnx_set_like(b, n, 2, QUERY, v.value) : SMG_OK;
}
