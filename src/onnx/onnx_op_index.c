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

#define MOST_IN_TURN 64 /* more are ranked at once */

typedef struct top_k {
    const smg_onnx_node *n;
    smg_value x;
    int axis, rank;
    bool largest;
    smg_size extent, k;
} top_k;

static const char *best_of(const top_k *t) {
    return t->largest ? "reduce_max" : "reduce_min";
}

/* What is no better than any element. */
static smg_value worst_of(smg_onnx_build *b, const top_k *t) {
    bool real = smg_type_kind(smg_onnx_type(t->n, 0)) == SMG_KIND_FLOAT;
    double low = real ? -HUGE_VAL : (double)INT32_MIN, high = real ? HUGE_VAL : (double)INT32_MAX;
    return smg_onnx_like(b, t->x, t->largest ? low : high);
}

/* The best, then the best of the others, and so on: what was taken is the worst from then on. */
static smg_status take_in_turn(smg_onnx_build *b, const top_k *t, int k) {
    const char *op = best_of(t);
    smg_value x = t->x, value[MOST_IN_TURN], index[MOST_IN_TURN], worst = worst_of(b, t);
    smg_value at = smg_onnx_count(b, t->extent, t->axis, t->rank);
    for (int i = 0; i < k; i++) {
        value[i] = smg_onnx_reduce_axis(b, op, x, t->axis);
        index[i] = smg_graph_argreduce(b->graph, op, x, t->axis, true, false);
        x = smg_onnx_select(b, smg_onnx_map2(b, "eq", at, index[i]), worst, x);
        if (!value[i].id || !index[i].id || !x.id) return smg_onnx_failed(b, t->n);
    }
    SMG_TRY(smg_onnx_set_like(b, t->n, 0, 0, smg_graph_concat(b->graph, k, value, t->axis)));
    return smg_onnx_set(b, t->n, 1, smg_graph_concat(b->graph, k, index, t->axis));
}

/* How many of the axis come before each of its elements, as (..., 1, element, ...). Those alike come in their order. */
static smg_value count_before(smg_onnx_build *b, const top_k *t) {
    smg_value one = smg_graph_number(b->graph, "i32", 1.0), none = smg_graph_number(b->graph, "i32", 0.0);
    smg_value own = smg_onnx_insert(b, t->x, t->axis), other = smg_onnx_insert(b, t->x, t->axis + 1);
    smg_value first = smg_onnx_map2(b, "lt", smg_onnx_count(b, t->extent, t->axis, t->rank + 1),
                                    smg_onnx_count(b, t->extent, t->axis + 1, t->rank + 1));
    smg_value alike = smg_onnx_map2(b, "and", smg_onnx_map2(b, "eq", other, own), first);
    smg_value before = smg_onnx_map2(b, "or", smg_onnx_map2(b, t->largest ? "gt" : "lt", other, own), alike);
    return smg_onnx_reduce_axis(b, "sum", smg_onnx_select(b, before, one, none), t->axis);
}

/* Of what the result at each place hits along the axis behind it there is one. */
static smg_value that_one(smg_onnx_build *b, const top_k *t, const char *op, smg_value hit, smg_value of,
                          smg_value other) {
    smg_value one = smg_onnx_reduce_axis(b, op, smg_onnx_select(b, hit, of, other), t->axis + 1);
    return smg_onnx_remove(b, one, t->axis + 1);
}

/* Result i is the element with i before it. All are compared with all, and k may be any size. */
static smg_status take_by_rank(smg_onnx_build *b, const top_k *t) {
    if (t->rank == SMG_MAX_RANK)
        return smg_onnx_fail(b, t->n, SMG_UNSUPPORTED, "the input has rank %d, at most %d is known for many results",
                             t->rank, SMG_MAX_RANK - 1);
    smg_value hit = smg_onnx_map2(b, "eq", count_before(b, t), smg_onnx_count(b, t->k, t->axis, t->rank + 1));
    /* Nothing is before a NaN: what it takes the place of has an index all the same. */
    smg_value last = smg_onnx_size_value(b, SMG_TYPE_I32, smg_size_sub(b->sizes, t->extent, smg_onnx_int(b, 1)));
    smg_value at = smg_onnx_count(b, t->extent, t->axis + 1, t->rank + 1);
    smg_value value = that_one(b, t, best_of(t), hit, smg_onnx_insert(b, t->x, t->axis), worst_of(b, t));
    smg_value index = that_one(b, t, "reduce_min", hit, at, last);
    if (!value.id || !index.id) return smg_onnx_failed(b, t->n);
    SMG_TRY(smg_onnx_set_like(b, t->n, 0, 0, value));
    return smg_onnx_set(b, t->n, 1, index);
}

smg_status smg_onnx_convert_top_k(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *in = n->inputs[0];
    top_k t = {.n = n, .rank = in->rank, .largest = smg_onnx_attr_int(b, n, "largest", 1) != 0};
    const smg_size *k;
    int64_t known = 0, extent;
    int count;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", -1), in->rank, &t.axis));
    SMG_TRY(smg_onnx_sizes(b, n, 1, &k, &count));
    bool fixed = count == 1 && smg_size_is_const(b->sizes, k[0], &known);
    if (count != 1 || (fixed && known < 1))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "k is %lld, must be one number of at least 1", (long long)known);
    t.extent = in->dims[t.axis];
    if (fixed && smg_size_is_const(b->sizes, t.extent, &extent) && known > extent)
        return smg_onnx_fail(b, n, SMG_INVALID, "k is %lld, of an axis of %lld", (long long)known, (long long)extent);
    t.k = k[0];
    t.x = smg_onnx_in(b, n, 0);
    if (!t.x.id) return smg_onnx_failed(b, n);
    return fixed && known <= MOST_IN_TURN ? take_in_turn(b, &t, (int)known) : take_by_rank(b, &t);
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
