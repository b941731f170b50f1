/* Shape arithmetic, part 4: operators that move the elements of known tensors, and those that make
 * tensors from numbers. What is broken here is left to the operator's converter, which says so. */
#include "onnx/onnx_private.h"

static int64_t product(const int64_t *dims, int from, int to) {
    int64_t count = 1;
    for (int i = from; i < to; i++) count *= dims[i];
    return count;
}

/* Same elements, other dims; done only when the counts agree. */
static smg_status relabel(smg_onnx_build *b, const smg_onnx_node *n, const onnx_known *in, int rank,
                          const int64_t *dims, bool *out_done) {
    onnx_known out;
    if (!smg_onnx_known_make(b, in->dtype, rank, dims, &out) || out.count != in->count) return SMG_OK;
    out.items = in->items;
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

/* ---- other dims --------------------------------------------------------------------------------- */

smg_status smg_onnx_sizes_reshape(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    const int64_t *shape = NULL;
    int64_t dims[SMG_MAX_RANK], known = 1;
    int rank = 0, open = -1;
    if (!smg_onnx_known_in(b, n, 0, &in) || !smg_onnx_known_ints(b, n, 1, &shape, &rank)) return SMG_OK;
    if (rank > SMG_MAX_RANK) return SMG_OK;
    bool zero = smg_onnx_attr_int(b, n, "allowzero", 0) != 0;
    for (int i = 0; i < rank; i++) {
        dims[i] = shape[i];
        if (shape[i] == 0 && !zero) {
            if (i >= in.rank) return SMG_OK;
            dims[i] = in.dims[i];
        }
        if (shape[i] < -1 || (shape[i] == -1 && open >= 0)) return SMG_OK;
        if (shape[i] == -1) {
            open = i;
        } else if (!smg_mul_i64(known, dims[i], &known)) {
            return SMG_OK;
        }
    }
    if (open >= 0 && known == 0) return SMG_OK;
    if (open >= 0) dims[open] = in.count / known;
    return relabel(b, n, &in, rank, dims, out_done);
}

smg_status smg_onnx_sizes_unsqueeze(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    int axes[SMG_MAX_RANK], count = 0;
    int64_t dims[SMG_MAX_RANK];
    bool added[SMG_MAX_RANK] = {false};
    const int64_t *given = NULL;
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    count = smg_onnx_attr_ints(b, n, "axes", &given);
    if (count < 0 && !smg_onnx_known_ints(b, n, 1, &given, &count)) return SMG_OK;
    if (in.rank + count > SMG_MAX_RANK) return SMG_OK;
    SMG_TRY(smg_onnx_axes(b, n, 1, in.rank + count, axes, &count));
    for (int i = 0; i < count; i++) added[axes[i]] = true;
    for (int i = 0, from = 0; i < in.rank + count; i++) dims[i] = added[i] ? 1 : in.dims[from++];
    return relabel(b, n, &in, in.rank + count, dims, out_done);
}

smg_status smg_onnx_sizes_squeeze(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    int axes[SMG_MAX_RANK], count = 0, rank = 0;
    int64_t dims[SMG_MAX_RANK];
    bool removed[SMG_MAX_RANK] = {false};
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    if (smg_onnx_has(n, 1) && !smg_onnx_knows_sizes(b, n->inputs[1])) return SMG_OK;
    SMG_TRY(smg_onnx_axes(b, n, 1, in.rank, axes, &count));
    for (int i = 0; i < count; i++) removed[axes[i]] = true;
    for (int i = 0; i < in.rank; i++) {
        if (count < 0) removed[i] = in.dims[i] == 1;
        if (!removed[i]) dims[rank++] = in.dims[i];
    }
    return relabel(b, n, &in, rank, dims, out_done);
}

smg_status smg_onnx_sizes_flatten(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    int64_t axis = smg_onnx_attr_int(b, n, "axis", 1);
    if (axis < 0) axis += in.rank;
    if (axis < 0 || axis > in.rank) return SMG_OK;
    const int64_t dims[] = {product(in.dims, 0, (int)axis), product(in.dims, (int)axis, in.rank)};
    return relabel(b, n, &in, 2, dims, out_done);
}

/* ---- other places ------------------------------------------------------------------------------- */

/* out[i] = in[sum over axes of coordinate * stride + first]. */
static smg_status stride(smg_onnx_build *b, const smg_onnx_node *n, const onnx_known *in, int rank, const int64_t *dims,
                         const int64_t *strides, int64_t first, bool *out_done) {
    onnx_known out;
    if (!smg_onnx_known_make(b, in->dtype, rank, dims, &out)) return SMG_OK;
    for (int i = 0; i < out.count; i++) {
        int64_t rest = i, at = first;
        for (int axis = rank - 1; axis >= 0; axis--) {
            at += rest % dims[axis] * strides[axis];
            rest /= dims[axis];
        }
        if (at < 0 || at >= in->count) return SMG_OK;
        out.items[i] = in->items[at];
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

static void row_major(const onnx_known *in, int64_t *out_strides) {
    for (int i = 0; i < in->rank; i++) out_strides[i] = product(in->dims, i + 1, in->rank);
}

smg_status smg_onnx_sizes_transpose(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    const int64_t *perm = NULL;
    int64_t dims[SMG_MAX_RANK], strides[SMG_MAX_RANK], from[SMG_MAX_RANK];
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    int count = smg_onnx_attr_ints(b, n, "perm", &perm);
    if (count >= 0 && count != in.rank) return SMG_OK;
    row_major(&in, from);
    for (int i = 0; i < in.rank; i++) {
        int64_t axis = count < 0 ? in.rank - 1 - i : perm[i];
        if (axis < 0 || axis >= in.rank) return SMG_OK;
        dims[i] = in.dims[axis];
        strides[i] = from[axis];
    }
    return stride(b, n, &in, in.rank, dims, strides, 0, out_done);
}

smg_status smg_onnx_sizes_expand(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    const int64_t *shape = NULL;
    int64_t dims[SMG_MAX_RANK], strides[SMG_MAX_RANK], from[SMG_MAX_RANK];
    int count = 0;
    if (!smg_onnx_known_in(b, n, 0, &in) || !smg_onnx_known_ints(b, n, 1, &shape, &count)) return SMG_OK;
    if (count > SMG_MAX_RANK) return SMG_OK;
    int rank = count > in.rank ? count : in.rank;
    row_major(&in, from);
    for (int i = 0; i < rank; i++) {
        int old = i - (rank - in.rank), new_axis = i - (rank - count);
        int64_t has = old >= 0 ? in.dims[old] : 1, wants = new_axis >= 0 ? shape[new_axis] : 1;
        if (has != wants && has != 1 && wants != 1) return SMG_OK;
        if (wants < 0) return SMG_OK;
        dims[i] = has == 1 ? wants : has;
        strides[i] = has == 1 ? 0 : from[old];
    }
    /* Many copies are a broadcast of the graph, not numbers to count with. */
    if (product(dims, 0, rank) > in.count && product(dims, 0, rank) > 64) return SMG_OK;
    return stride(b, n, &in, rank, dims, strides, 0, out_done);
}

/* "To the end" is written as numbers that are far too large. */
static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static bool slice_axis(int64_t extent, int64_t start, int64_t end, int64_t step, int64_t *out_first,
                       int64_t *out_count) {
    if (step == 0 || step < -SMG_ONNX_KNOWN_MAX || step > SMG_ONNX_KNOWN_MAX) return false;
    start = clamp(start, -extent - 1, extent);
    end = clamp(end, -extent - 1, extent);
    if (start < 0) start += extent;
    if (end < 0) end += extent;
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    start = clamp(start, step > 0 ? 0 : -1, high);
    end = clamp(end, low, high);
    int64_t room = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
    *out_first = start;
    *out_count = room > 0 ? (room + by - 1) / by : 0;
    return true;
}

smg_status smg_onnx_sizes_slice(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in;
    const int64_t *starts = NULL, *ends = NULL, *axes = NULL, *steps = NULL;
    int64_t dims[SMG_MAX_RANK], strides[SMG_MAX_RANK], first = 0;
    int count = 0, end_count = 0, axis_count = 0, step_count = 0;
    if (!smg_onnx_known_in(b, n, 0, &in) || !smg_onnx_known_ints(b, n, 1, &starts, &count) ||
        !smg_onnx_known_ints(b, n, 2, &ends, &end_count))
        return SMG_OK;
    if (smg_onnx_has(n, 3) && !smg_onnx_known_ints(b, n, 3, &axes, &axis_count)) return SMG_OK;
    if (smg_onnx_has(n, 4) && !smg_onnx_known_ints(b, n, 4, &steps, &step_count)) return SMG_OK;
    if (end_count != count || (axes && axis_count != count) || (steps && step_count != count) || count > in.rank)
        return SMG_OK;
    row_major(&in, strides);
    for (int i = 0; i < in.rank; i++) dims[i] = in.dims[i];
    for (int i = 0; i < count; i++) {
        int axis = i;
        int64_t begin = 0, step = steps ? steps[i] : 1;
        if (axes) SMG_TRY(smg_onnx_axis(b, n, axes[i], in.rank, &axis));
        if (dims[axis] != in.dims[axis]) return SMG_OK; /* given twice */
        if (!slice_axis(in.dims[axis], starts[i], ends[i], step, &begin, &dims[axis])) return SMG_OK;
        if (dims[axis] > 0) first += begin * strides[axis];
        strides[axis] *= step;
    }
    return stride(b, n, &in, in.rank, dims, strides, first, out_done);
}

smg_status smg_onnx_sizes_gather(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in, out, indices;
    int axis = 0, rank = 0;
    int64_t dims[2 * SMG_MAX_RANK];
    if (!smg_onnx_known_in(b, n, 0, &in) || !smg_onnx_known_in(b, n, 1, &indices)) return SMG_OK;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), in.rank, &axis));
    for (int i = 0; i < axis; i++) dims[rank++] = in.dims[i];
    for (int i = 0; i < indices.rank; i++) dims[rank++] = indices.dims[i];
    for (int i = axis + 1; i < in.rank; i++) dims[rank++] = in.dims[i];
    if (!smg_onnx_known_make(b, in.dtype, rank, dims, &out)) return SMG_OK;
    int64_t inner = product(in.dims, axis + 1, in.rank), extent = in.dims[axis];
    for (int i = 0; i < out.count; i++) {
        int64_t index = 0, block = i / inner;
        if (!smg_onnx_number_is(b, indices.items[block % indices.count], &index)) return SMG_OK;
        if (index < -extent || index >= extent)
            return smg_onnx_fail(b, n, SMG_INVALID, "index %lld is outside [%lld, %lld)", (long long)index,
                                 (long long)-extent, (long long)extent);
        if (index < 0) index += extent;
        out.items[i] = in.items[(block / indices.count * extent + index) * inner + i % inner];
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

smg_status smg_onnx_sizes_concat(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known first, part, out;
    int axis = 0;
    int64_t dims[SMG_MAX_RANK], extent = 0;
    if (!smg_onnx_known_in(b, n, 0, &first)) return SMG_OK;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), first.rank, &axis));
    for (int i = 0; i < first.rank; i++) dims[i] = first.dims[i];
    for (int k = 0; k < n->input_count; k++) {
        if (!smg_onnx_known_in(b, n, k, &part) || part.rank != first.rank || !smg_onnx_known_alike(&first, &part))
            return SMG_OK;
        for (int i = 0; i < first.rank; i++)
            if (i != axis && part.dims[i] != first.dims[i]) return SMG_OK;
        extent += part.dims[axis];
    }
    dims[axis] = extent;
    if (!smg_onnx_known_make(b, first.dtype, first.rank, dims, &out)) return SMG_OK;
    int64_t inner = product(dims, axis + 1, first.rank), outer = product(dims, 0, axis), at = 0;
    for (int k = 0; k < n->input_count; k++) {
        if (!smg_onnx_known_in(b, n, k, &part)) return SMG_OK;
        int64_t run = part.dims[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < run; i++) out.items[o * extent * inner + at + i] = part.items[o * run + i];
        at += run;
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

smg_status smg_onnx_sizes_tile(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in, out;
    const int64_t *repeats = NULL;
    int64_t dims[SMG_MAX_RANK];
    int count = 0;
    if (!smg_onnx_known_in(b, n, 0, &in) || !smg_onnx_known_ints(b, n, 1, &repeats, &count)) return SMG_OK;
    if (count != in.rank) return SMG_OK;
    for (int i = 0; i < in.rank; i++)
        if (repeats[i] < 0 || !smg_mul_i64(in.dims[i], repeats[i], &dims[i])) return SMG_OK;
    if (!smg_onnx_known_make(b, in.dtype, in.rank, dims, &out)) return SMG_OK;
    for (int i = 0; i < out.count; i++) {
        int64_t rest = i, at = 0;
        for (int axis = in.rank - 1; axis >= 0; axis--) {
            at += rest % dims[axis] % in.dims[axis] * product(in.dims, axis + 1, in.rank);
            rest /= dims[axis];
        }
        out.items[i] = in.items[at];
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

/* Equal parts, or as `split` says (an attribute until opset 12). */
smg_status smg_onnx_sizes_split(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in, out;
    const int64_t *sizes = NULL;
    int axis = 0, count = smg_onnx_attr_ints(b, n, "split", &sizes);
    if (n->output_count < 1 || !smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    if (count < 0 && smg_onnx_has(n, 1) && !smg_onnx_known_ints(b, n, 1, &sizes, &count)) return SMG_OK;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), in.rank, &axis));
    int64_t extent = in.dims[axis], begin = 0, inner = product(in.dims, axis + 1, in.rank);
    int64_t equal = (extent + n->output_count - 1) / n->output_count, sum = 0;
    if (sizes && count != n->output_count) return SMG_OK;
    for (int k = 0; k < n->output_count; k++) sum += sizes ? clamp(sizes[k], -1, extent) : 0;
    if (sizes && sum != extent) return SMG_OK;
    for (int k = 0; k < n->output_count; k++) {
        int64_t dims[SMG_MAX_RANK], rest = extent - begin, part = sizes ? sizes[k] : equal;
        if (part > rest) part = rest;
        if (part < 0) return SMG_OK;
        for (int i = 0; i < in.rank; i++) dims[i] = i == axis ? part : in.dims[i];
        if (!smg_onnx_known_make(b, in.dtype, in.rank, dims, &out)) return SMG_OK;
        for (int i = 0; i < out.count; i++) {
            int64_t run = part * inner;
            out.items[i] = in.items[i / run * extent * inner + begin * inner + i % run];
        }
        SMG_TRY(smg_onnx_known_out(b, n, k, &out, out_done));
        begin += part;
    }
    return SMG_OK;
}

/* Known data, indices and updates: the elements one after the other. */
smg_status smg_onnx_sizes_scatter_nd(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known data, indices, updates;
    if (!smg_onnx_known_in(b, n, 0, &data) || !smg_onnx_known_in(b, n, 1, &indices) ||
        !smg_onnx_known_in(b, n, 2, &updates) || !smg_onnx_known_alike(&data, &updates))
        return SMG_OK;
    if (strcmp(smg_onnx_attr_string(b, n, "reduction", "none"), "none") != 0) return SMG_OK;
    int64_t width = indices.rank > 0 ? indices.dims[indices.rank - 1] : 0;
    if (width < 1 || width > data.rank) return SMG_OK;
    int64_t rows = indices.count / width, run = product(data.dims, (int)width, data.rank);
    if (rows * run != updates.count) return SMG_OK;
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = 0;
        for (int j = 0; j < width; j++) {
            int64_t index = 0;
            if (!smg_onnx_number_is(b, indices.items[row * width + j], &index)) return SMG_OK;
            if (index < 0) index += data.dims[j];
            if (index < 0 || index >= data.dims[j]) return SMG_OK;
            at = at * data.dims[j] + index;
        }
        for (int64_t i = 0; i < run; i++) data.items[at * run + i] = updates.items[row * run + i];
    }
    return smg_onnx_known_out(b, n, 0, &data, out_done);
}

/* The same of vectors alone, for ScatterElements: what exporters write into a shape. */
smg_status smg_onnx_sizes_scatter_elements(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known data, indices, updates;
    if (!smg_onnx_known_in(b, n, 0, &data) || !smg_onnx_known_in(b, n, 1, &indices) ||
        !smg_onnx_known_in(b, n, 2, &updates) || !smg_onnx_known_alike(&data, &updates))
        return SMG_OK;
    if (strcmp(smg_onnx_attr_string(b, n, "reduction", "none"), "none") != 0) return SMG_OK;
    if (data.rank != 1 || indices.count != updates.count) return SMG_OK;
    for (int i = 0; i < indices.count; i++) {
        int64_t index = 0;
        if (!smg_onnx_number_is(b, indices.items[i], &index)) return SMG_OK;
        if (index < 0) index += data.dims[0];
        if (index < 0 || index >= data.dims[0]) return SMG_OK;
        data.items[index] = updates.items[i];
    }
    return smg_onnx_known_out(b, n, 0, &data, out_done);
}

/* ---- from numbers ------------------------------------------------------------------------------- */

smg_status smg_onnx_sizes_range(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in[3], out;
    onnx_number span, steps;
    int64_t count = 0;
    for (int i = 0; i < 3; i++)
        if (!smg_onnx_known_in(b, n, i, &in[i]) || in[i].count != 1 || !smg_onnx_known_alike(&in[0], &in[i]))
            return SMG_OK;
    onnx_number start = in[0].items[0], limit = in[1].items[0], step = in[2].items[0];
    if (!smg_onnx_arith(b, ONNX_SUB, false, limit, start, &span) ||
        !smg_onnx_arith(b, ONNX_DIV, false, span, step, &steps) || !smg_onnx_round(b, ONNX_CEIL, steps, &steps) ||
        !smg_onnx_number_is(b, steps, &count))
        return SMG_OK;
    if (count < 0) count = 0;
    if (!smg_onnx_known_make(b, in[0].dtype, 1, &count, &out)) return SMG_OK;
    for (int i = 0; i < out.count; i++) {
        onnx_number at;
        if (!smg_onnx_arith(b, ONNX_MUL, false, step, smg_onnx_number_of(b, i), &at) ||
            !smg_onnx_arith(b, ONNX_ADD, false, start, at, &out.items[i]))
            return SMG_OK;
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

smg_status smg_onnx_sizes_constant_of_shape(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    const int64_t *shape = NULL;
    int rank = 0;
    onnx_known out;
    if (!smg_onnx_known_ints(b, n, 0, &shape, &rank)) return SMG_OK;
    smg_onnx_value filler = {.name = n->name, .dtype = SMG_IMPORT_F32};
    const smg_import_tensor *tensor = smg_onnx_attr_tensor(b, n, "value");
    if (b->failed) return smg_onnx_failed(b, n);
    onnx_number value = smg_onnx_number_of(b, 0);
    if (tensor) {
        smg_onnx_hold_constant(b, &filler, tensor);
        if (tensor->count != 1 || !smg_onnx_knows_fractions(b, &filler)) return SMG_OK;
        value.num = filler.known[0];
        if (filler.known_den) value.den = filler.known_den[0];
    }
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0) return SMG_OK;
    if (!smg_onnx_known_make(b, filler.dtype, rank, shape, &out)) return SMG_OK;
    for (int i = 0; i < out.count; i++) out.items[i] = value;
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

/* Coordinates of the elements that are not 0, one column each. */
smg_status smg_onnx_sizes_nonzero(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known in, out;
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    int64_t dims[2] = {in.rank, 0}, column = 0;
    onnx_number truth;
    for (int i = 0; i < in.count; i++) {
        int64_t value = 0;
        if (!smg_onnx_round(b, ONNX_NONZERO, in.items[i], &truth)) return SMG_OK;
        dims[1] += smg_onnx_number_is(b, truth, &value) && value != 0;
    }
    if (!smg_onnx_known_make(b, SMG_IMPORT_I64, 2, dims, &out)) return SMG_OK;
    for (int i = 0; i < in.count; i++) {
        int64_t value = 0, rest = i;
        if (!smg_onnx_round(b, ONNX_NONZERO, in.items[i], &truth)) return SMG_OK;
        if (!smg_onnx_number_is(b, truth, &value) || value == 0) continue;
        for (int axis = in.rank - 1; axis >= 0; axis--) {
            out.items[axis * dims[1] + column] = smg_onnx_number_of(b, rest % in.dims[axis]);
            rest /= in.dims[axis];
        }
        column++;
    }
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}
