/* Operators whose results are chosen by indices. All become gathers along one axis: indices of several axes
 * are combined by the graph's take_at, and a constant index is a slice. */
#include <math.h>

#include "onnx/onnx_part.h"

/* ---- Gather --------------------------------------------------------------------------------- */

static bool is_small(int64_t value) {
    return value >= INT32_MIN && value <= INT32_MAX;
}

/* Known indices with one distance between neighbours, all inside: begin and step of a slice. */
static bool is_progression(smg_onnx_build *b, const smg_onnx_value *indices, smg_size extent, smg_size *out_begin,
                           int64_t *out_step) {
    int64_t first, second = 0, low, least;
    if (indices->rank > 1 || indices->known_count < 1) return false;
    const smg_size *known = indices->known;
    if (!known || !smg_size_is_const(b->sizes, known[0], &first) || !is_small(first)) return false;
    *out_step = 1;
    for (int i = 1; i < indices->known_count; i++) {
        int64_t here;
        if (!smg_size_is_const(b->sizes, known[i], &here) || !is_small(here)) return false;
        if (i == 1) *out_step = here - first;
        if (*out_step == 0 || here != first + *out_step * i) return false;
        second = here;
    }
    if (indices->known_count == 1) second = first;
    if ((first < 0) != (second < 0)) return false;
    smg_size_bounds(b->sizes, extent, &low, NULL);
    least = first < second ? first : second;
    int64_t most = first < second ? second : first;
    if (least < 0 ? -least > low : most >= low) return false; /* left to the check of a gather */
    *out_begin = smg_onnx_int(b, first);
    if (first < 0) *out_begin = smg_size_add(b->sizes, extent, *out_begin);
    return true;
}

smg_status smg_onnx_convert_gather(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    smg_onnx_value *indices = n->inputs[1];
    int axis;
    smg_size begin;
    int64_t step;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), x->rank, &axis));
    smg_value table = smg_onnx_in(b, n, 0), y;
    if (!table.id) return smg_onnx_failed(b, n);
    if (smg_onnx_knows_sizes(b, indices) && is_progression(b, indices, x->dims[axis], &begin, &step)) {
        y = smg_onnx_part(b, table, axis, begin, smg_onnx_int(b, indices->known_count), step);
        if (indices->rank == 0) y = smg_onnx_remove(b, y, axis);
        return smg_onnx_set_like(b, n, 0, 0, y);
    }
    smg_value at = smg_onnx_in(b, n, 1);
    if (!at.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_take(b->graph, table, at, axis));
}

/* ---- GatherElements, GatherND --------------------------------------------------------------- */

/* y[i..] = x[i.., index[i..], i..]: the indices of the other axes are the place itself. */
smg_status smg_onnx_convert_gather_elements(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0], *indices = n->inputs[1];
    smg_value at[SMG_MAX_RANK];
    int axis, rank = x->rank;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), rank, &axis));
    if (indices->rank != rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "indices are %s for data of rank %d", smg_onnx_shape_text(b, indices),
                             rank);
    for (int i = 0; i < rank; i++) {
        at[i] = i == axis ? smg_onnx_in(b, n, 1) : smg_onnx_count(b, indices->dims[i], i, rank);
        if (!at[i].id) return smg_onnx_failed(b, n);
    }
    smg_value table = smg_onnx_in(b, n, 0);
    if (!table.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_take_at(b->graph, table, rank, at));
}

/* Entry k of the last axis of `indices` (of rank `rank`), without that axis. */
static smg_value entry(smg_onnx_build *b, smg_value indices, int rank, int64_t k) {
    smg_value one = smg_onnx_part(b, indices, rank - 1, smg_onnx_int(b, k), smg_onnx_int(b, 1), 1);
    return smg_onnx_remove(b, one, rank - 1);
}

smg_status smg_onnx_convert_gather_nd(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0], *indices = n->inputs[1];
    int64_t batch = smg_onnx_attr_int(b, n, "batch_dims", 0), entries = 0;
    smg_value at[SMG_MAX_RANK], all = smg_onnx_in(b, n, 1), table = smg_onnx_in(b, n, 0);
    int rank = indices->rank;
    if (rank < 1 || !smg_size_is_const(b->sizes, indices->dims[rank - 1], &entries))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "indices are %s: their last extent is not known",
                             smg_onnx_shape_text(b, indices));
    if (batch < 0 || batch >= rank || entries < 1 || batch + entries > x->rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "batch_dims %lld, data %s and indices %s disagree", (long long)batch,
                             smg_onnx_shape_text(b, x), smg_onnx_shape_text(b, indices));
    for (int i = 0; i < batch; i++) {
        SMG_TRY(smg_onnx_equal(b, n, x->dims[i], indices->dims[i], "a batch axis"));
        at[i] = smg_onnx_count(b, indices->dims[i], i, rank - 1);
    }
    for (int64_t k = 0; k < entries; k++) at[batch + k] = entry(b, all, rank, k);
    for (int i = 0; i < batch + entries; i++)
        if (!at[i].id) return smg_onnx_failed(b, n);
    if (!table.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_take_at(b->graph, table, (int)(batch + entries), at));
}

/* ---- TopK ----------------------------------------------------------------------------------- */

#define MOST_RANKED 64

/* The best, then the best of the others, and so on: what was taken is the worst from then on. */
smg_status smg_onnx_convert_top_k(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *in = n->inputs[0];
    bool largest = smg_onnx_attr_int(b, n, "largest", 1) != 0;
    const char *op = largest ? "reduce_max" : "reduce_min";
    const int64_t *k;
    int axis, count;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", -1), in->rank, &axis));
    SMG_TRY(smg_onnx_ints(b, n, 1, &k, &count));
    if (count != 1 || k[0] < 1 || k[0] > MOST_RANKED)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "k is %lld; 1 to %d are known", count == 1 ? (long long)k[0] : -1,
                             MOST_RANKED);
    smg_value x = smg_onnx_in(b, n, 0), value[MOST_RANKED], index[MOST_RANKED];
    if (!x.id) return smg_onnx_failed(b, n);
    bool real = smg_type_kind(smg_onnx_type(n, 0)) == SMG_KIND_FLOAT;
    double low = real ? -HUGE_VAL : (double)INT32_MIN, high = real ? HUGE_VAL : (double)INT32_MAX;
    smg_value worst = smg_onnx_like(b, x, largest ? low : high);
    smg_value at = smg_onnx_count(b, in->dims[axis], axis, in->rank);
    for (int64_t i = 0; i < k[0]; i++) {
        value[i] = smg_onnx_reduce_axis(b, op, x, axis);
        index[i] = smg_graph_argreduce(b->graph, op, x, axis, true, false);
        x = smg_onnx_select(b, smg_onnx_map2(b, "eq", at, index[i]), worst, x);
        if (!value[i].id || !index[i].id || !x.id) return smg_onnx_failed(b, n);
    }
    SMG_TRY(smg_onnx_set_like(b, n, 0, 0, smg_graph_concat(b->graph, (int)k[0], value, axis)));
    return smg_onnx_set(b, n, 1, smg_graph_concat(b->graph, (int)k[0], index, axis));
}

/* ---- OneHot --------------------------------------------------------------------------------- */

/* values = [off, on], as numbers where they are known. */
static void off_and_on(smg_onnx_build *b, const smg_onnx_node *n, smg_value out[2]) {
    smg_value values = smg_onnx_in(b, n, 2);
    for (int i = 0; i < 2; i++) {
        smg_value one = smg_onnx_part(b, values, 0, smg_onnx_int(b, i), smg_onnx_int(b, 1), 1);
        out[i] = smg_onnx_reshape(b, one, 0, NULL);
    }
}

smg_status smg_onnx_convert_one_hot(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *indices = n->inputs[0];
    const smg_size *depth;
    int axis, count, rank = indices->rank + 1;
    if (rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has rank %d, at most %d is known", rank, SMG_MAX_RANK);
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", -1), rank, &axis));
    SMG_TRY(smg_onnx_sizes(b, n, 1, &depth, &count));
    if (count != 1 || n->inputs[2]->rank != 1 || !smg_onnx_is_const(b, n->inputs[2]->dims[0], 2))
        return smg_onnx_fail(b, n, SMG_INVALID, "depth has %d elements and values are %s", count,
                             smg_onnx_shape_text(b, n->inputs[2]));
    smg_value at = smg_onnx_to(b, smg_onnx_in(b, n, 0), SMG_TYPE_I32), values[2];
    at = smg_onnx_insert(b, smg_onnx_wrap(b, at, depth[0]), axis);
    smg_value hit = smg_onnx_map2(b, "eq", smg_onnx_count(b, depth[0], axis, rank), at);
    off_and_on(b, n, values);
    return smg_onnx_set_like(b, n, 0, 2, smg_onnx_select(b, hit, values[1], values[0]));
}
