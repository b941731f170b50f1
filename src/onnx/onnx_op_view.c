/* Operators that only say where elements are: reshapes, transpositions, broadcasts, slices, pieces. */
#include "onnx/onnx_part.h"

static bool is_zero(const smg_onnx_build *b, smg_size size) {
    return smg_onnx_is_const(b, size, 0);
}

static bool is_empty(const smg_onnx_build *b, const smg_onnx_value *value) {
    for (int i = 0; i < value->rank; i++)
        if (is_zero(b, value->dims[i])) return true;
    return false;
}

/* What has no element is no value of the graph: a shape, known to have nothing in it. */
static smg_status set_empty(smg_onnx_build *b, const smg_onnx_node *n, int rank, const smg_size *dims) {
    return smg_onnx_set_known(b, n, 0, n->inputs[0]->dtype, rank, dims, SMG_ARENA_NEW(b->arena, smg_size));
}

static smg_status set_reshaped(smg_onnx_build *b, const smg_onnx_node *n, int rank, const smg_size *dims) {
    if (is_empty(b, n->inputs[0])) return set_empty(b, n, rank, dims);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_reshape(b, smg_onnx_in(b, n, 0), rank, dims));
}

/* ---- reshapes ------------------------------------------------------------------------------- */

static bool is_symbol(const smg_onnx_build *b, smg_size size) {
    for (int i = 0; i < smg_size_symbol_count(b->sizes); i++)
        if (smg_size_symbol(b->sizes, smg_size_symbol_name(b->sizes, i)) == size) return true;
    return false;
}

/* The first axis that is a symbol before and another one after; -1: none. Only those can be what differs. */
static int other_symbol(const smg_onnx_build *b, const smg_onnx_value *x, int rank, const smg_size *dims) {
    for (int i = 0; i < rank && i < x->rank; i++)
        if (x->dims[i] != dims[i] && is_symbol(b, x->dims[i]) && is_symbol(b, dims[i])) return i;
    return -1;
}

static smg_status same_elements(smg_onnx_build *b, const smg_onnx_node *n, const smg_onnx_value *x, int rank,
                                const smg_size *dims) {
    smg_size before = smg_onnx_product(b, x->rank, x->dims);
    smg_size after = smg_onnx_product(b, rank, dims);
    int at = before != after ? other_symbol(b, x, rank, dims) : -1;
    if (at >= 0) return smg_onnx_equal(b, n, x->dims[at], dims[at], "axes before and after");
    return smg_onnx_equal(b, n, after, before, "the elements before and after");
}

/* dims[at] = elements of x / product of the other dims. Extents that both have are taken out first: they
 * are extents of x, so not 0, which their form alone may not say. */
static smg_status fill_dim(smg_onnx_build *b, const smg_onnx_node *n, const smg_onnx_value *x, int rank, smg_size *dims,
                           int at) {
    smg_size before[SMG_MAX_RANK], after[SMG_MAX_RANK], one = smg_onnx_int(b, 1);
    memcpy(before, x->dims, sizeof before);
    for (int i = 0; i < rank; i++) {
        after[i] = i == at ? one : dims[i];
        for (int k = 0; k < x->rank && after[i] != one; k++) {
            if (before[k] != after[i]) continue;
            before[k] = one;
            after[i] = one;
        }
    }
    smg_size all = smg_onnx_product(b, x->rank, before), rest = smg_onnx_product(b, rank, after);
    if (all < 0 || rest < 0) return smg_onnx_failed(b, n);
    dims[at] = one;
    if (smg_size_divide_exact(b->sizes, all, rest, &dims[at])) return SMG_OK;
    if (other_symbol(b, x, rank, dims) < 0 && smg_onnx_learn_multiple(b, all, rest))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "%s elements are not always a multiple of %s",
                             smg_onnx_size_text(b, all), smg_onnx_size_text(b, rest));
    return same_elements(b, n, x, rank, dims);
}

smg_status smg_onnx_convert_reshape(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    const smg_size *shape;
    smg_size dims[SMG_MAX_RANK];
    int rank, free_at = -1;
    bool zero_stays = smg_onnx_attr_int(b, n, "allowzero", 0) != 0;
    SMG_TRY(smg_onnx_sizes(b, n, 1, &shape, &rank));
    if (rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has rank %d, at most %d is known", rank, SMG_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        dims[i] = shape[i];
        if (is_zero(b, shape[i]) && !zero_stays) {
            if (i >= x->rank)
                return smg_onnx_fail(b, n, SMG_INVALID, "entry %d of the shape is 0 but %s", i,
                                     smg_onnx_shape_text(b, x));
            dims[i] = x->dims[i];
        }
        if (!smg_onnx_is_const(b, shape[i], -1)) continue;
        if (free_at >= 0)
            return smg_onnx_fail(b, n, SMG_INVALID, "entries %d and %d of the shape are both -1", free_at, i);
        free_at = i;
    }
    if (free_at >= 0) SMG_TRY(fill_dim(b, n, x, rank, dims, free_at));
    SMG_TRY(same_elements(b, n, x, rank, dims));
    return set_reshaped(b, n, rank, dims);
}

smg_status smg_onnx_convert_flatten(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    int64_t at = smg_onnx_attr_int(b, n, "axis", 1);
    if (at < 0) at += x->rank;
    if (at < 0 || at > x->rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "axis is %lld, outside [%d, %d]", (long long)at, -x->rank, x->rank);
    smg_size dims[2] = {smg_onnx_product(b, (int)at, x->dims), smg_onnx_product(b, x->rank - (int)at, x->dims + at)};
    return set_reshaped(b, n, 2, dims);
}

smg_status smg_onnx_convert_squeeze(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    int axes[SMG_MAX_RANK], count;
    bool over[SMG_MAX_RANK] = {false};
    smg_size one = smg_onnx_int(b, 1);
    SMG_TRY(smg_onnx_axes(b, n, 1, x->rank, axes, &count));
    for (int i = 0; i < x->rank; i++) over[i] = count < 0 && x->dims[i] == one;
    for (int i = 0; i < count; i++) {
        SMG_TRY(smg_onnx_equal(b, n, x->dims[axes[i]], one, "a squeezed extent and 1"));
        over[axes[i]] = true;
    }
    smg_size dims[SMG_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!over[i]) dims[rank++] = x->dims[i];
    return set_reshaped(b, n, rank, dims);
}

smg_status smg_onnx_convert_unsqueeze(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    const int64_t *given = NULL;
    smg_size dims[SMG_MAX_RANK];
    int axes[SMG_MAX_RANK], count = smg_onnx_attr_ints(b, n, "axes", &given), next = 0;
    if (count < 0 && smg_onnx_has(n, 1)) SMG_TRY(smg_onnx_ints(b, n, 1, &given, &count));
    if (count < 0) return smg_onnx_fail(b, n, SMG_INVALID, "axes are missing");
    int rank = x->rank + count;
    if (rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has rank %d, at most %d is known", rank, SMG_MAX_RANK);
    SMG_TRY(smg_onnx_axes(b, n, 1, rank, axes, &count));
    for (int i = 0; i < rank; i++) {
        bool made = false;
        for (int k = 0; k < count; k++) made = made || axes[k] == i;
        dims[i] = made ? smg_onnx_int(b, 1) : x->dims[next++];
    }
    return set_reshaped(b, n, rank, dims);
}

smg_status smg_onnx_convert_transpose(smg_onnx_build *b, const smg_onnx_node *n) {
    int rank = n->inputs[0]->rank, perm[SMG_MAX_RANK];
    const int64_t *given = NULL;
    int count = smg_onnx_attr_ints(b, n, "perm", &given);
    if (count >= 0 && count != rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "perm has %d entries for rank %d", count, rank);
    for (int i = 0; i < rank; i++) {
        int64_t from = count < 0 ? rank - 1 - i : given[i];
        if (from < 0 || from >= rank)
            return smg_onnx_fail(b, n, SMG_INVALID, "entry %d of perm is %lld, outside [0, %d)", i, (long long)from,
                                 rank);
        perm[i] = (int)from;
    }
    smg_size dims[SMG_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = n->inputs[0]->dims[perm[i]];
    if (is_empty(b, n->inputs[0])) return set_empty(b, n, rank, dims);
    smg_value x = smg_onnx_in(b, n, 0);
    if (!x.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_transpose(b->graph, x, rank, perm));
}

/* ---- broadcasts ----------------------------------------------------------------------------- */

smg_status smg_onnx_convert_expand(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    const smg_size *shape;
    smg_size dims[SMG_MAX_RANK];
    int rank, count = x->rank;
    SMG_TRY(smg_onnx_sizes(b, n, 1, &shape, &rank));
    if (rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has rank %d, at most %d is known", rank, SMG_MAX_RANK);
    memcpy(dims, x->dims, sizeof dims);
    SMG_TRY(smg_onnx_broadcast(b, n, rank, shape, &count, dims));
    if (is_empty(b, x)) return set_empty(b, n, count, dims);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_stretch(b, smg_onnx_in(b, n, 0), count, dims));
}

/* `times` copies of x after each other along axis: (d) -> (1, d) -> (times, d) -> (times*d). */
static smg_value repeat(smg_onnx_build *b, smg_value x, int axis, smg_size times) {
    smg_size dims[SMG_MAX_RANK + 1], one = smg_onnx_int(b, 1);
    int rank = smg_onnx_rank(b, x);
    if (!x.id || times == one) return x;
    for (int i = 0; i <= rank; i++) dims[i] = smg_onnx_dim(b, x, i > axis ? i - 1 : i);
    dims[axis] = times;
    smg_value wide = smg_onnx_stretch(b, smg_onnx_insert(b, x, axis), rank + 1, dims);
    return smg_onnx_merge(b, wide, axis, 2);
}

smg_status smg_onnx_convert_tile(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_size *times;
    int count, rank = n->inputs[0]->rank;
    SMG_TRY(smg_onnx_sizes(b, n, 1, &times, &count));
    if (count != rank) return smg_onnx_fail(b, n, SMG_INVALID, "repeats has %d entries for rank %d", count, rank);
    smg_size dims[SMG_MAX_RANK];
    bool none = is_empty(b, n->inputs[0]);
    for (int i = 0; i < rank; i++) {
        dims[i] = smg_size_mul(b->sizes, n->inputs[0]->dims[i], times[i]);
        none = none || is_zero(b, times[i]);
    }
    if (none) return set_empty(b, n, rank, dims);
    smg_value x = smg_onnx_in(b, n, 0);
    for (int i = 0; i < rank; i++) x = repeat(b, x, i, times[i]);
    return smg_onnx_set_like(b, n, 0, 0, x);
}

/* ---- pieces and joins ----------------------------------------------------------------------- */

smg_status smg_onnx_convert_split(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    int axis, given = -1, count = n->output_count;
    const int64_t *attribute = NULL;
    const smg_size *sizes = NULL;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), x->rank, &axis));
    if (smg_onnx_has(n, 1))
        SMG_TRY(smg_onnx_sizes(b, n, 1, &sizes, &given));
    else
        given = smg_onnx_attr_ints(b, n, "split", &attribute);
    if (given >= 0 && given != count)
        return smg_onnx_fail(b, n, SMG_INVALID, "split has %d entries for %d outputs", given, count);
    smg_size begin = smg_onnx_int(b, 0), whole = x->dims[axis];
    smg_size equal = smg_size_ceil_div(b->sizes, whole, smg_onnx_int(b, count));
    smg_value in = smg_onnx_in(b, n, 0);
    for (int i = 0; i < count; i++) {
        smg_size size = equal;
        if (sizes) size = sizes[i];
        if (attribute) size = smg_onnx_int(b, attribute[i]);
        if (given < 0 && i == count - 1) size = smg_size_sub(b->sizes, whole, begin);
        SMG_TRY(smg_onnx_set_like(b, n, i, 0, smg_onnx_part(b, in, axis, begin, size, 1)));
        begin = smg_size_add(b->sizes, begin, size);
    }
    return smg_onnx_equal(b, n, begin, whole, "the sum of the parts and the whole");
}

smg_status smg_onnx_convert_concat(smg_onnx_build *b, const smg_onnx_node *n) {
    int axis, count = 0;
    smg_value *pieces = SMG_ARENA_ARRAY(b->arena, smg_value, (size_t)n->input_count);
    if (!pieces) return smg_onnx_failed(b, n);
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), n->inputs[0]->rank, &axis));
    const smg_onnx_value *first = n->inputs[0];
    for (int k = 0; k < n->input_count; k++) {
        const smg_onnx_value *x = n->inputs[k];
        if (!x || x->rank != first->rank)
            return smg_onnx_fail(b, n, SMG_INVALID, "input %d is %s, input 0 is %s", k, smg_onnx_shape_text(b, x),
                                 smg_onnx_shape_text(b, first));
        for (int i = 0; i < x->rank; i++)
            if (i != axis) SMG_TRY(smg_onnx_equal(b, n, x->dims[i], first->dims[i], "extents beside the axis"));
        if (is_zero(b, x->dims[axis])) continue; /* nothing to add */
        pieces[count] = smg_onnx_in(b, n, k);
        if (!pieces[count++].id) return smg_onnx_failed(b, n);
    }
    if (count == 0) return smg_onnx_set_same(b, n, 0, first);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_concat(b->graph, count, pieces, axis));
}

/* ---- Slice ---------------------------------------------------------------------------------- */

/* A bound given as ONNX does: negative ones count from the end; huge ones are no bound (`far`). */
static smg_size from_end(smg_onnx_build *b, smg_size given, smg_size extent, smg_size far_low, smg_size far_high) {
    int64_t number, most;
    bool known = smg_size_is_const(b->sizes, given, &number);
    if (known && number > SMG_SIZE_UNBOUNDED) return far_high;
    if (known && number < -SMG_SIZE_UNBOUNDED) return far_low;
    smg_size_bounds(b->sizes, given, NULL, &most);
    return most < 0 ? smg_size_add(b->sizes, given, extent) : given;
}

#define MOST_TIMES 2

/* The end, or the extent where that is less. What is there has an element at least: where the end is at most the
 * extent for that reason, as n is at most 2n - 1, it is the end. */
static smg_size end_within(smg_onnx_build *b, smg_size end, smg_size extent) {
    smg_size beyond = smg_size_sub(b->sizes, extent, end), left = SMG_SIZE_ZERO;
    smg_size more = smg_size_sub(b->sizes, extent, smg_onnx_int(b, 1));
    for (int times = 1; times <= MOST_TIMES; times++) {
        int64_t low = -1;
        left = smg_size_add(b->sizes, left, beyond);
        smg_size_bounds(b->sizes, smg_size_sub(b->sizes, left, more), &low, NULL);
        if (left >= 0 && more >= 0 && low >= 0) return end;
    }
    return smg_size_min(b->sizes, end, extent);
}

typedef struct slice_axis {
    int axis;
    smg_size start, end;
    int64_t step;
} slice_axis;

/* Bounds are clamped on the side where a slice stays that has elements: a graph has no other ones, and
 * what could only make it empty (a start past the end) is refused when sizes are bound. */
static smg_value slice_one(smg_onnx_build *b, smg_value x, slice_axis s, bool *out_empty) {
    smg_sizes *sizes = b->sizes;
    smg_size extent = smg_onnx_dim(b, x, s.axis), zero = smg_onnx_int(b, 0), from, to, length;
    smg_size last = smg_size_sub(sizes, extent, smg_onnx_int(b, 1)), before = smg_onnx_int(b, -1);
    int64_t high = 1;
    if (s.step > 0) {
        from = smg_size_max(sizes, from_end(b, s.start, extent, zero, extent), zero);
        to = end_within(b, from_end(b, s.end, extent, zero, extent), extent);
        length = smg_size_sub(sizes, to, from);
    } else {
        from = smg_size_min(sizes, from_end(b, s.start, extent, before, last), last);
        to = smg_size_max(sizes, from_end(b, s.end, extent, before, last), before);
        length = smg_size_sub(sizes, from, to);
    }
    smg_size count = smg_size_ceil_div(sizes, length, smg_onnx_int(b, s.step > 0 ? s.step : -s.step));
    if (count >= 0) smg_size_bounds(sizes, count, NULL, &high);
    *out_empty = count >= 0 && high <= 0;
    return *out_empty ? x : smg_onnx_part(b, x, s.axis, from, count, s.step);
}

static smg_status read_slice(smg_onnx_build *b, const smg_onnx_node *n, slice_axis *out_axes, int *out_count) {
    int rank = n->inputs[0]->rank, axes[SMG_MAX_RANK], count, ends, starts, steps = -1;
    const smg_size *start, *end;
    const int64_t *step = NULL;
    SMG_TRY(smg_onnx_sizes(b, n, 1, &start, &starts));
    SMG_TRY(smg_onnx_sizes(b, n, 2, &end, &ends));
    SMG_TRY(smg_onnx_axes(b, n, 3, rank, axes, &count));
    if (smg_onnx_has(n, 4)) SMG_TRY(smg_onnx_ints(b, n, 4, &step, &steps));
    for (int i = 0; count < 0 && i < rank; i++) axes[i] = i;
    if (count < 0) count = starts;
    if (starts != ends || starts != count || starts > rank || (steps >= 0 && steps != starts))
        return smg_onnx_fail(b, n, SMG_INVALID, "%d starts, %d ends, %d axes and %d steps for rank %d", starts, ends,
                             count, steps < 0 ? starts : steps, rank);
    for (int i = 0; i < count; i++) {
        out_axes[i] = (slice_axis){axes[i], start[i], end[i], step ? step[i] : 1};
        if (out_axes[i].step == 0) return smg_onnx_fail(b, n, SMG_INVALID, "step %d is 0", i);
    }
    *out_count = count;
    return SMG_OK;
}

smg_status smg_onnx_convert_slice(smg_onnx_build *b, const smg_onnx_node *n) {
    slice_axis axes[SMG_MAX_RANK];
    int count = 0;
    if (is_empty(b, n->inputs[0])) return smg_onnx_set_same(b, n, 0, n->inputs[0]);
    SMG_TRY(read_slice(b, n, axes, &count));
    smg_value x = smg_onnx_in(b, n, 0);
    for (int i = 0; i < count && x.id; i++) {
        bool empty;
        x = slice_one(b, x, axes[i], &empty);
        if (!empty) continue;
        smg_size dims[SMG_MAX_RANK];
        for (int k = 0; k < n->inputs[0]->rank; k++) dims[k] = smg_onnx_dim(b, x, k);
        dims[axes[i].axis] = smg_onnx_int(b, 0);
        return set_empty(b, n, n->inputs[0]->rank, dims);
    }
    return smg_onnx_set_like(b, n, 0, 0, x);
}

/* ---- blocks of images ----------------------------------------------------------------------- */

/* [b, c, h, w] with dims divided and permuted as six axes. */
static smg_status blocks(smg_onnx_build *b, const smg_onnx_node *n, const smg_size *apart, const int *perm,
                         const smg_size *dims) {
    smg_value six = smg_onnx_reshape(b, smg_onnx_in(b, n, 0), 6, apart);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_reshape(b, smg_onnx_permute(b, six, perm), 4, dims));
}

static smg_status quotient(smg_onnx_build *b, const smg_onnx_node *n, int axis, int64_t by, smg_size *out_quotient) {
    const smg_onnx_value *x = n->inputs[0];
    if (x->rank != 4 || by < 1)
        return smg_onnx_fail(b, n, SMG_INVALID, "blocksize is %lld and the input %s", (long long)by,
                             smg_onnx_shape_text(b, x));
    if (smg_size_divide_exact(b->sizes, x->dims[axis], smg_onnx_int(b, by), out_quotient)) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_INVALID, "axis %d of %s is not a multiple of %lld", axis, smg_onnx_shape_text(b, x),
                         (long long)by);
}

smg_status smg_onnx_convert_depth_to_space(smg_onnx_build *b, const smg_onnx_node *n) {
    static const int depth_first[] = {0, 3, 4, 1, 5, 2}, column_first[] = {0, 1, 4, 2, 5, 3};
    int64_t size = smg_onnx_attr_int(b, n, "blocksize", 0);
    const char *mode = smg_onnx_attr_string(b, n, "mode", "DCR");
    const smg_size *d = n->inputs[0]->dims;
    smg_size s = smg_onnx_int(b, size), depth;
    bool crd = strcmp(mode, "CRD") == 0;
    if (!crd && strcmp(mode, "DCR") != 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is \"%s\", DCR or CRD is known", mode);
    if (size < 1 || size > 4096) return smg_onnx_fail(b, n, SMG_INVALID, "blocksize is %lld", (long long)size);
    SMG_TRY(quotient(b, n, 1, size * size, &depth));
    smg_size dcr_dims[] = {d[0], s, s, depth, d[2], d[3]}, crd_dims[] = {d[0], depth, s, s, d[2], d[3]};
    smg_size dims[] = {d[0], depth, smg_size_mul(b->sizes, d[2], s), smg_size_mul(b->sizes, d[3], s)};
    return blocks(b, n, crd ? crd_dims : dcr_dims, crd ? column_first : depth_first, dims);
}

smg_status smg_onnx_convert_space_to_depth(smg_onnx_build *b, const smg_onnx_node *n) {
    static const int perm[] = {0, 3, 5, 1, 2, 4};
    int64_t size = smg_onnx_attr_int(b, n, "blocksize", 0);
    const smg_size *d = n->inputs[0]->dims;
    smg_size s = smg_onnx_int(b, size), h, w;
    SMG_TRY(quotient(b, n, 2, size, &h));
    SMG_TRY(quotient(b, n, 3, size, &w));
    smg_size apart[] = {d[0], d[1], h, s, w, s};
    smg_size depth = smg_size_mul(b->sizes, d[1], smg_size_mul(b->sizes, s, s));
    smg_size dims[] = {d[0], depth, h, w};
    return blocks(b, n, apart, perm, dims);
}
