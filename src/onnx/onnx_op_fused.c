/* Operators of com.microsoft, which onnxruntime puts in place of exporters' nodes when it writes an optimised model:
 * sums before a norm, activations with a bias, transposed products, attention from packed weights. Each is written out
 * again; what is fused is decided later. */
#include <math.h>

#include "onnx/onnx_part.h"

/* ---- activations, products ---------------------------------------------------------------------- */

static smg_value with_bias(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    return smg_onnx_has(n, 1) ? smg_onnx_map2(b, "add", x, smg_onnx_in(b, n, 1)) : x;
}

smg_status smg_onnx_convert_bias_gelu(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_gelu(b, with_bias(b, n), false));
}

smg_status smg_onnx_convert_fast_gelu(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_gelu(b, with_bias(b, n), true));
}

smg_status smg_onnx_convert_quick_gelu(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value gate = smg_onnx_with(b, "mul", x, smg_onnx_attr_float(b, n, "alpha", 1.702));
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "mul", x, smg_onnx_map1(b, "sigmoid", gate)));
}

/* The last two axes changed over where the attribute says so; a vector has only one. */
static smg_value turned(smg_onnx_build *b, const smg_onnx_node *n, int input, const char *attribute) {
    int perm[SMG_MAX_RANK], rank = n->inputs[input]->rank;
    smg_value x = smg_onnx_in(b, n, input);
    if (rank < 2 || smg_onnx_attr_int(b, n, attribute, 0) == 0) return x;
    for (int i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return smg_onnx_permute(b, x, perm);
}

smg_status smg_onnx_convert_fused_matmul(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value product;
    double alpha = smg_onnx_attr_float(b, n, "alpha", 1.0);
    static const char *const batches[] = {"transBatchA", "transBatchB"};
    for (int i = 0; i < 2; i++)
        if (smg_onnx_attr_int(b, n, batches[i], 0) != 0)
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "%s is set, only the last two axes may be changed over",
                                 batches[i]);
    SMG_TRY(smg_onnx_matrix_product(b, n, 1, turned(b, n, 0, "transA"), turned(b, n, 1, "transB"), &product));
    if (alpha < 1.0 || alpha > 1.0) product = smg_onnx_with(b, "mul", product, alpha);
    return smg_onnx_set_like(b, n, 0, 0, product);
}

/* ---- sums before a norm --------------------------------------------------------------------------- */

/* Scale and shift of the last axis are inputs `scale` and, for a layer norm, `scale` + 1. */
static smg_value norm_of(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, int scale, bool centred) {
    bool over[SMG_MAX_RANK] = {false};
    int rank = smg_onnx_rank(b, x);
    if (rank > 0) over[rank - 1] = true;
    if (centred) x = smg_onnx_map2(b, "sub", x, smg_onnx_mean(b, x, over));
    smg_value energy = smg_onnx_mean(b, smg_onnx_map1(b, "square", x), over);
    energy = smg_onnx_with(b, "add", energy, smg_onnx_attr_float(b, n, "epsilon", 1e-12));
    x = smg_onnx_map2(b, "mul", x, smg_onnx_map1(b, "rsqrt", energy));
    x = smg_onnx_map2(b, "mul", x, smg_onnx_in(b, n, scale));
    return centred && smg_onnx_has(n, scale + 1) ? smg_onnx_map2(b, "add", x, smg_onnx_in(b, n, scale + 1)) : x;
}

static smg_status skip_norm(smg_onnx_build *b, const smg_onnx_node *n, bool centred) {
    int bias = centred ? 4 : 3;
    smg_value sum = smg_onnx_map2(b, "add", smg_onnx_in(b, n, 0), smg_onnx_in(b, n, 1));
    if (smg_onnx_has(n, bias)) sum = smg_onnx_map2(b, "add", sum, smg_onnx_in(b, n, bias));
    if (n->output_count > 3) SMG_TRY(smg_onnx_set_like(b, n, 3, 0, sum));
    return smg_onnx_set_like(b, n, 0, 0, norm_of(b, n, sum, 2, centred));
}

smg_status smg_onnx_convert_skip_layer_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    return skip_norm(b, n, true);
}

smg_status smg_onnx_convert_skip_rms_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    return skip_norm(b, n, false);
}

static smg_value rows_of(smg_onnx_build *b, const smg_onnx_node *n, int table, smg_value at) {
    smg_value rows = smg_onnx_in(b, n, table);
    return rows.id && at.id ? smg_graph_gather(b->graph, rows, at) : (smg_value){0};
}

/* Inputs: tokens, segments, tables of words, positions, segments, scale, shift, mask, positions. The second output
 * counts the tokens of the mask. */
smg_status smg_onnx_convert_embed_layer_norm(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *ids = n->inputs[0];
    if (ids->rank != 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "input_ids are %s, must be [batch, sequence]",
                             smg_onnx_shape_text(b, ids));
    smg_value place = smg_onnx_has(n, 8) ? smg_onnx_in(b, n, 8) : smg_onnx_count(b, ids->dims[1], 1, 2);
    smg_value sum = smg_onnx_map2(b, "add", rows_of(b, n, 2, smg_onnx_in(b, n, 0)), rows_of(b, n, 3, place));
    if (smg_onnx_has(n, 1) && smg_onnx_has(n, 4))
        sum = smg_onnx_map2(b, "add", sum, rows_of(b, n, 4, smg_onnx_in(b, n, 1)));
    if (n->output_count > 1 && n->outputs[1]) {
        smg_value mask = smg_onnx_has(n, 7) ? smg_onnx_in(b, n, 7) : smg_onnx_like(b, smg_onnx_in(b, n, 0), 0.0);
        bool over[SMG_MAX_RANK] = {false, true};
        mask = smg_onnx_stretch(b, mask, 2, ids->dims);
        SMG_TRY(smg_onnx_set(b, n, 1, smg_onnx_drop_axes(b, smg_onnx_reduce(b, "sum", mask, over), over)));
    }
    if (n->output_count > 2) SMG_TRY(smg_onnx_set(b, n, 2, sum));
    return smg_onnx_set(b, n, 0, norm_of(b, n, sum, 5, true));
}

/* ---- attention -------------------------------------------------------------------------------------- */

/* Letters of axes: a batch, k heads, s queries, t keys, d width of queries and keys, v width of values. */
typedef struct fused_attention {
    onnx_lettered q, k, v; /* three or four axes, heads among them */
    smg_size heads, past;
    int mask, bias; /* inputs: which keys count, what is added to scores */
    int past_keys;  /* first input of what came before; -1: none */
} fused_attention;

static smg_status read_head_count(smg_onnx_build *b, const smg_onnx_node *n, fused_attention *f) {
    int64_t heads = smg_onnx_attr_int(b, n, "num_heads", 0);
    if (heads < 1) return smg_onnx_fail(b, n, SMG_INVALID, "num_heads is %lld, must be positive", (long long)heads);
    f->heads = smg_onnx_int(b, heads);
    f->past = smg_onnx_int(b, 0);
    return SMG_OK;
}

/* [a, s, k*d] as [a, s, k, d]. */
static smg_status in_heads(smg_onnx_build *b, const smg_onnx_node *n, const fused_attention *f, const char *letters,
                           smg_value x, onnx_lettered *out) {
    smg_size dims[2] = {f->heads}, width = smg_onnx_dim(b, x, 2);
    if (width < 0) return smg_onnx_failed(b, n);
    if (!smg_size_divide_exact(b->sizes, width, f->heads, &dims[1]))
        return smg_onnx_fail(b, n, SMG_INVALID, "width %s is not a multiple of %s heads", smg_onnx_size_text(b, width),
                             smg_onnx_size_text(b, f->heads));
    out->value = smg_onnx_divide(b, x, 2, 2, dims);
    memcpy(out->letters, letters, strlen(letters) + 1);
    return out->value.id ? SMG_OK : smg_onnx_failed(b, n);
}

/* What came before in front: [a, k, past + t, d]. */
static smg_status go_on(smg_onnx_build *b, const smg_onnx_node *n, fused_attention *f, smg_value past,
                        onnx_lettered *io) {
    static const int perm[] = {0, 2, 1, 3};
    if (io->letters[1] == 't') io->value = smg_onnx_permute(b, io->value, perm);
    io->letters[1] = 'k';
    io->letters[2] = 't';
    if (!past.id) return io->value.id ? SMG_OK : smg_onnx_failed(b, n);
    f->past = smg_onnx_dim(b, past, 2);
    if (!io->value.id || f->past < 0) return smg_onnx_failed(b, n);
    io->value = smg_graph_concat(b->graph, 2, (smg_value[]){past, io->value}, 2);
    return io->value.id ? SMG_OK : smg_onnx_failed(b, n);
}

/* Which keys count, as flags that broadcast to scores: of a count of keys for each batch, of [a, t] or of [a, s, t]. */
static smg_status read_flags(smg_onnx_build *b, const smg_onnx_node *n, const fused_attention *f, smg_size keys,
                             smg_value *out_flags) {
    const smg_onnx_value *given = n->inputs[f->mask];
    smg_value mask = smg_onnx_in(b, n, f->mask);
    if (given->rank == 1) {
        smg_size batch = smg_onnx_dim(b, f->q.value, 0);
        if (batch < 0) return smg_onnx_failed(b, n);
        SMG_TRY(smg_onnx_equal(b, n, given->dims[0], batch, "one count of keys for each batch"));
        for (int i = 0; i < 3; i++) mask = smg_onnx_insert(b, mask, 1);
        *out_flags = smg_onnx_map2(b, "lt", smg_onnx_count(b, keys, 3, 4), mask);
        return SMG_OK;
    }
    if (given->rank != 2 && given->rank != 3)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "its mask is %s, must be [batch], [batch, keys] or [batch, "
                             "queries, keys]",
                             smg_onnx_shape_text(b, given));
    SMG_TRY(smg_onnx_equal(b, n, given->dims[given->rank - 1], keys, "elements of the mask and keys"));
    if (given->rank == 2) mask = smg_onnx_insert(b, mask, 1);
    *out_flags = smg_onnx_with(b, "gt", smg_onnx_insert(b, mask, 1), 0.0);
    return SMG_OK;
}

/* [a, k, s, t]: scaled, masked, with the bias. */
static smg_status fused_scores(smg_onnx_build *b, const smg_onnx_node *n, const fused_attention *f,
                               smg_value *out_scores) {
    int64_t width = 1;
    double scale = smg_onnx_attr_float(b, n, "scale", 0.0);
    smg_value scores = smg_onnx_multiply(b, n, f->q, f->k, "akst");
    if (!scores.id) return smg_onnx_failed(b, n);
    smg_size_is_const(b->sizes, smg_onnx_dim(b, f->q.value, 3), &width);
    if (scale >= 0.0 && scale <= 0.0) scale = 1.0 / sqrt((double)width);
    scores = smg_onnx_with(b, "mul", scores, scale);
    if (smg_onnx_has(n, f->mask)) {
        smg_value flags, none = smg_onnx_like(b, scores, 0.0);
        double less = smg_onnx_attr_float(b, n, "mask_filter_value", -10000.0);
        SMG_TRY(read_flags(b, n, f, smg_onnx_dim(b, scores, 3), &flags));
        scores = smg_onnx_map2(b, "add", scores, smg_onnx_select(b, flags, none, smg_onnx_like(b, scores, less)));
    }
    if (smg_onnx_has(n, f->bias)) {
        int rank = 4;
        smg_size dims[SMG_MAX_RANK];
        for (int i = 0; i < rank; i++) dims[i] = smg_onnx_dim(b, scores, i);
        SMG_TRY(smg_onnx_broadcast(b, n, n->inputs[f->bias]->rank, n->inputs[f->bias]->dims, &rank, dims));
        scores = smg_onnx_map2(b, "add", scores, smg_onnx_in(b, n, f->bias));
    }
    if (smg_onnx_attr_int(b, n, "unidirectional", 0) != 0) {
        smg_value row = smg_onnx_count(b, smg_onnx_dim(b, scores, 2), 0, 2);
        smg_value column = smg_onnx_count(b, smg_onnx_dim(b, scores, 3), 1, 2);
        if (!smg_onnx_is_const(b, f->past, 0))
            row = smg_onnx_map2(b, "add", row, smg_onnx_size_value(b, SMG_TYPE_I32, f->past));
        smg_value seen = smg_onnx_map2(b, "le", column, row);
        scores = smg_onnx_select(b, seen, scores, smg_onnx_like(b, scores, -HUGE_VAL));
    }
    *out_scores = scores;
    return SMG_OK;
}

/* [a, s, k*v] */
static smg_status attend(smg_onnx_build *b, const smg_onnx_node *n, const fused_attention *f) {
    onnx_lettered p = {.letters = "akst"};
    SMG_TRY(fused_scores(b, n, f, &p.value));
    p.value = smg_onnx_softmax(b, p.value, 3, false);
    smg_value y = smg_onnx_multiply(b, n, p, f->v, "askv");
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_merge(b, y, 2, 2));
}

/* Columns of x with the same columns of the bias added. */
static smg_value columns(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, int bias, smg_size begin,
                         smg_size count, bool part) {
    if (part) x = smg_onnx_part(b, x, 2, begin, count, 1);
    if (!smg_onnx_has(n, bias)) return x;
    return smg_onnx_map2(b, "add", x, smg_onnx_part(b, smg_onnx_in(b, n, bias), 0, begin, count, 1));
}

/* Widths of all queries, keys and values: a third each, or as told. */
static smg_status read_widths(smg_onnx_build *b, const smg_onnx_node *n, smg_size whole, smg_size *out) {
    const int64_t *widths = NULL;
    int count = smg_onnx_attr_ints(b, n, "qkv_hidden_sizes", &widths);
    smg_size sum = smg_onnx_int(b, 0);
    for (int i = 0; i < 3 && count == 3; i++) {
        out[i] = smg_onnx_int(b, widths[i]);
        sum = smg_size_add(b->sizes, sum, out[i]);
    }
    if (count == 3 && sum == whole && widths[0] > 0 && widths[1] == widths[0] && widths[2] > 0) return SMG_OK;
    if (count < 0 && smg_size_divide_exact(b->sizes, whole, smg_onnx_int(b, 3), &out[0])) {
        out[1] = out[2] = out[0];
        return SMG_OK;
    }
    return smg_onnx_fail(b, n, SMG_INVALID, "%s columns of weights are not those of queries, keys and values",
                         smg_onnx_size_text(b, whole));
}

/* Inputs: x, weights of queries, keys and values side by side, bias, mask, past, bias of scores. */
smg_status smg_onnx_convert_fused_attention(smg_onnx_build *b, const smg_onnx_node *n) {
    static const char *const letters[] = {"askd", "atkd", "atkv"};
    fused_attention f = {.mask = 3, .bias = 5};
    smg_size widths[3], begin = smg_onnx_int(b, 0);
    smg_value product, present[2];
    onnx_lettered *parts[] = {&f.q, &f.k, &f.v};
    SMG_TRY(read_head_count(b, n, &f));
    if (smg_onnx_attr_int(b, n, "do_rotary", 0) != 0) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "do_rotary is set");
    if (n->inputs[0]->rank != 3 || n->inputs[1]->rank != 2 || smg_onnx_has(n, 6))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "inputs are %s and %s, or the past is a shared buffer",
                             smg_onnx_shape_text(b, n->inputs[0]), smg_onnx_shape_text(b, n->inputs[1]));
    SMG_TRY(read_widths(b, n, n->inputs[1]->dims[1], widths));
    SMG_TRY(smg_onnx_matrix_product(b, n, 1, smg_onnx_in(b, n, 0), smg_onnx_in(b, n, 1), &product));
    for (int i = 0; i < 3; i++) {
        smg_value x = columns(b, n, product, 2, begin, widths[i], true);
        SMG_TRY(in_heads(b, n, &f, letters[i], x, parts[i]));
        begin = smg_size_add(b->sizes, begin, widths[i]);
    }
    bool wanted = n->output_count > 1 && n->outputs[1];
    for (int i = 0; i < 2 && (wanted || smg_onnx_has(n, 4)); i++) {
        smg_value past = {0};
        if (smg_onnx_has(n, 4)) {
            smg_value both = smg_onnx_in(b, n, 4);
            smg_size one = smg_onnx_int(b, 1);
            past = smg_onnx_remove(b, smg_onnx_part(b, both, 0, smg_onnx_int(b, i), one, 1), 0);
            if (!past.id) return smg_onnx_failed(b, n);
        }
        SMG_TRY(go_on(b, n, &f, past, parts[i + 1]));
        present[i] = smg_onnx_insert(b, parts[i + 1]->value, 0);
    }
    if (wanted) {
        if (!present[0].id || !present[1].id) return smg_onnx_failed(b, n);
        SMG_TRY(smg_onnx_set_like(b, n, 1, 0, smg_graph_concat(b->graph, 2, present, 0)));
    }
    return attend(b, n, &f);
}

/* Rows of queries, keys or values with their part of the bias; keys and values may have their heads apart already. */
static smg_status head_part(smg_onnx_build *b, const smg_onnx_node *n, const fused_attention *f, int input,
                            smg_size *io_begin, onnx_lettered *out) {
    static const char *const letters[] = {"askd", "atkd", "atkv"}, *const apart[] = {"", "aktd", "aktv"};
    const smg_onnx_value *given = n->inputs[input];
    smg_value x = smg_onnx_in(b, n, input);
    if (given->rank == 4 && input > 0 && !smg_onnx_has(n, 3)) {
        *out = (onnx_lettered){.value = x};
        memcpy(out->letters, apart[input], sizeof "aktd");
        return x.id ? SMG_OK : smg_onnx_failed(b, n);
    }
    if (given->rank != 3)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "input %d is %s, must be [batch, sequence, width]", input,
                             smg_onnx_shape_text(b, given));
    x = columns(b, n, x, 3, *io_begin, given->dims[2], false);
    *io_begin = smg_size_add(b->sizes, *io_begin, given->dims[2]);
    return in_heads(b, n, f, letters[input], x, out);
}

/* Inputs: queries, keys, values, bias of the three, mask, bias of scores, keys and values that came before. */
smg_status smg_onnx_convert_multi_head(smg_onnx_build *b, const smg_onnx_node *n) {
    fused_attention f = {.mask = 4, .bias = 5};
    onnx_lettered *parts[] = {&f.q, &f.k, &f.v};
    smg_size begin = smg_onnx_int(b, 0);
    SMG_TRY(read_head_count(b, n, &f));
    if (!smg_onnx_has(n, 1) || !smg_onnx_has(n, 2) || smg_onnx_has(n, 8) || smg_onnx_has(n, 9))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "keys and values are packed with queries, or in a shared buffer");
    for (int i = 0; i < 3; i++) SMG_TRY(head_part(b, n, &f, i, &begin, parts[i]));
    for (int i = 1; i < 3; i++) {
        bool wanted = n->output_count > i && n->outputs[i];
        smg_value past = {0};
        if (!wanted && !smg_onnx_has(n, 5 + i)) continue;
        if (smg_onnx_has(n, 5 + i)) past = smg_onnx_in(b, n, 5 + i);
        if (smg_onnx_has(n, 5 + i) && (!past.id || n->inputs[5 + i]->rank != 4))
            return smg_onnx_fail(b, n, SMG_INVALID, "input %d is %s, must be [batch, heads, past, width]", 5 + i,
                                 smg_onnx_shape_text(b, n->inputs[5 + i]));
        SMG_TRY(go_on(b, n, &f, past, parts[i]));
        if (wanted) SMG_TRY(smg_onnx_set_like(b, n, i, 0, parts[i]->value));
    }
    return attend(b, n, &f);
}
