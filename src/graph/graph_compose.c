/* Builders that are compositions: what others call padding, concatenation, cumulative sums and gathers along any
 * axis is written with windows, selects over an index and reductions, so that nothing behind the graph has
 * to know them. Each leaves a handful of nodes, most of them views and predicates that cost no kernel. */
#include "graph/graph_private.h"

static const smg_value no_value = {0};

static smg_value push(smg_graph *g, smg_node *node) {
    return (smg_value){smg_graph_push(g, node) + 1};
}

static smg_value pair(smg_graph *g, const char *op, smg_value a, smg_value b) {
    return smg_graph_map(g, op, 2, (smg_value[]){a, b});
}

static smg_value choose(smg_graph *g, smg_value a, smg_value b, smg_value c) {
    return smg_graph_map(g, "select", 3, (smg_value[]){a, b, c});
}

static const char *word_of(smg_type type) {
    return smg_type_word(type);
}

/* The index along `axis` of a tensor of `rank`; extent 1 along the others. */
static smg_value index_along(smg_graph *g, int rank, int axis, smg_size extent) {
    smg_node node = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32, .rank = rank, .axis = axis};
    for (int i = 0; i < rank; i++) node.dims[i] = i == axis ? extent : smg_size_const(g->sizes, 1);
    return push(g, &node);
}

static smg_value size_value(smg_graph *g, smg_type type, smg_size size) {
    smg_node node = {.op = SMG_OP_SIZE, .type = type, .size = size};
    return push(g, &node);
}

static smg_value reshape(smg_graph *g, smg_value a, int rank, const smg_size *dims) {
    smg_node node = {.op = SMG_OP_RESHAPE, .rank = rank, .operand_count = 1, .operand = {a.id - 1}};
    for (int i = 0; i < rank; i++) node.dims[i] = dims[i];
    return push(g, &node);
}

/* The operand's node with `axis` made valid for it, or NULL with the failure kept. */
static const smg_node *start(smg_graph *g, const char *what, smg_value a, int *io_axis) {
    const smg_node *node = smg_build_open(g, what) ? smg_build_node(g, what, a) : NULL;
    if (!node) return NULL;
    int axis = *io_axis < 0 ? *io_axis + node->rank : *io_axis;
    if (axis >= 0 && axis < node->rank) {
        *io_axis = axis;
        return node;
    }
    smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "%s: axis %d is outside [%d, %d) of %s", what, *io_axis,
                                -node->rank, node->rank, smg_graph_describe(g, a.id - 1)));
    return NULL;
}

/* ---- windows -------------------------------------------------------------------------------- */

smg_value smg_graph_window_of(smg_graph *g, smg_value a, const smg_window *window) {
    smg_node node = {.op = SMG_OP_WINDOW, .operand_count = 1, .operand = {a.id - 1}};
    node.axis = window->axis;
    const smg_node *source = start(g, "window", a, &node.axis);
    if (!source) return no_value;
    node.begin = window->begin;
    node.step = window->step;
    node.dilation = window->dilation;
    node.value = window->fill;
    if (source->rank < SMG_MAX_RANK) {
        node.dims[node.axis] = window->count;
        node.dims[node.axis + 1] = window->taps;
    }
    return push(g, &node);
}

smg_value smg_graph_window(smg_graph *g, smg_value a, int axis, const char *begin, const char *count, int step,
                           const char *taps, int dilation, double fill) {
    smg_window w = {.axis = axis, .step = step, .dilation = dilation, .fill = fill};
    if (!smg_build_open(g, "window")) return no_value;
    if (!smg_build_size(g, "window", begin, &w.begin) || !smg_build_size(g, "window", count, &w.count) ||
        !smg_build_size(g, "window", taps, &w.taps))
        return no_value;
    return smg_graph_window_of(g, a, &w);
}

smg_value smg_graph_pad_of(smg_graph *g, smg_value a, int axis, smg_size before, smg_size after, double value) {
    const smg_node *source = start(g, "pad", a, &axis);
    if (!source) return no_value;
    int rank = source->rank;
    smg_size dims[SMG_MAX_RANK];
    memcpy(dims, source->dims, sizeof dims);
    smg_sizes *s = g->sizes;
    dims[axis] = smg_size_add(s, smg_size_add(s, dims[axis], before), after);
    smg_window w = {
        .axis = axis, .count = dims[axis], .taps = smg_size_const(s, 1), .step = 1, .dilation = 1, .fill = value};
    w.begin = smg_size_sub(s, smg_size_const(s, 0), before);
    if (rank < SMG_MAX_RANK) return reshape(g, smg_graph_window_of(g, a, &w), rank, dims);
    /* No room for one axis more: the leading ones go together for a while. */
    smg_size merged[SMG_MAX_RANK];
    int pair_at = axis < 2 ? rank - 2 : 0, n = 0;
    for (int i = 0; i < rank; i++) {
        if (i == pair_at + 1)
            merged[n - 1] = smg_size_mul(s, merged[n - 1], source->dims[i]);
        else
            merged[n++] = source->dims[i];
    }
    w.axis = axis < 2 ? axis : axis - 1;
    return reshape(g, smg_graph_window_of(g, reshape(g, a, n, merged), &w), rank, dims);
}

smg_value smg_graph_pad(smg_graph *g, smg_value a, int axis, const char *before, const char *after, double value) {
    smg_size first, last;
    if (!smg_build_open(g, "pad")) return no_value;
    if (!smg_build_size(g, "pad", before, &first) || !smg_build_size(g, "pad", after, &last)) return no_value;
    return smg_graph_pad_of(g, a, axis, first, last, value);
}

/* a and then b: each padded to the whole, and a choice by the index. */
static smg_value join(smg_graph *g, smg_value a, smg_value b, int axis) {
    const smg_node *x = smg_build_node(g, "concat", a), *y = smg_build_node(g, "concat", b);
    if (!x || !y) return no_value;
    int rank = x->rank;
    bool fits = x->type == y->type && y->rank == rank;
    for (int i = 0; fits && i < rank; i++) fits = i == axis || x->dims[i] == y->dims[i];
    if (!fits) {
        smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID,
                                    "concat: %s and %s must have one type and, but for axis %d, "
                                    "the same dims",
                                    smg_graph_describe(g, a.id - 1), smg_graph_describe(g, b.id - 1), axis));
        return no_value;
    }
    smg_size zero = smg_size_const(g->sizes, 0), first = x->dims[axis], second = y->dims[axis];
    smg_size whole = smg_size_add(g->sizes, first, second);
    smg_value left = smg_graph_pad_of(g, a, axis, zero, second, 0.0);
    smg_value right = smg_graph_pad_of(g, b, axis, first, zero, 0.0);
    smg_value index = index_along(g, rank, axis, whole);
    return choose(g, pair(g, "lt", index, size_value(g, SMG_TYPE_I32, first)), left, right);
}

smg_value smg_graph_concat(smg_graph *g, int count, const smg_value *values, int axis) {
    if (!smg_build_open(g, "concat")) return no_value;
    if (count < 1 || !values) {
        smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "concat: needs values, got %d", count));
        return no_value;
    }
    if (!start(g, "concat", values[0], &axis)) return no_value;
    smg_value all = values[0];
    for (int i = 1; i < count; i++) all = join(g, all, values[i], axis);
    return all;
}

/* ---- gathers -------------------------------------------------------------------------------- */

smg_value smg_graph_take(smg_graph *g, smg_value a, smg_value indices, int axis) {
    const smg_node *source = start(g, "take", a, &axis);
    const smg_node *index = source ? smg_build_node(g, "take", indices) : NULL;
    if (!index) return no_value;
    int front[SMG_MAX_RANK], back[SMG_MAX_RANK], rank = source->rank, extra = index->rank, n = 0;
    if (axis == 0) return smg_graph_gather(g, a, indices);
    front[n++] = axis;
    for (int i = 0; i < rank; i++)
        if (i != axis) front[n++] = i;
    smg_value rows = smg_graph_gather(g, smg_graph_transpose(g, a, rank, front), indices);
    if (rows.id == 0) return no_value;
    n = 0;
    for (int i = 0; i < axis; i++) back[n++] = extra + i;
    for (int i = 0; i < extra; i++) back[n++] = i;
    for (int i = axis; i < rank - 1; i++) back[n++] = extra + i;
    return smg_graph_transpose(g, rows, n, back);
}

/* An index of its own axis: counted from the end when negative; far outside when it is out of range. */
static smg_value checked_index(smg_graph *g, smg_value index, smg_size extent) {
    smg_type type = g->nodes.items[index.id - 1].type;
    smg_value zero = smg_graph_number(g, word_of(type), 0.0), n = size_value(g, type, extent);
    smg_value wrapped = choose(g, pair(g, "lt", index, zero), pair(g, "add", index, n), index);
    smg_value good = pair(g, "and", pair(g, "le", zero, wrapped), pair(g, "lt", wrapped, n));
    return choose(g, good, wrapped, smg_graph_number(g, word_of(type), -1073741824.0));
}

smg_value smg_graph_take_at(smg_graph *g, smg_value table, int count, const smg_value *indices) {
    int last = count - 1;
    const smg_node *source = start(g, "take_at", table, &last);
    if (!source || !indices) return no_value;
    if (count == 1) return smg_graph_gather(g, table, indices[0]);
    smg_size extent[SMG_MAX_RANK], dims[SMG_MAX_RANK];
    int rank = source->rank;
    memcpy(extent, source->dims, sizeof extent);
    dims[0] = smg_size_const(g->sizes, 1);
    for (int i = 0; i < rank; i++) {
        if (i < count)
            dims[0] = smg_size_mul(g->sizes, dims[0], extent[i]);
        else
            dims[i - last] = extent[i];
    }
    smg_value flat = {0}, bad = {0}; /* one bad index must not be made good by another */
    const char *type = "i32";
    for (int i = 0; i < count; i++) {
        const smg_node *index = smg_build_node(g, "take_at", indices[i]);
        if (!index) return no_value;
        type = word_of(index->type);
        smg_value own = checked_index(g, indices[i], extent[i]);
        smg_value outside = pair(g, "lt", own, smg_graph_number(g, type, 0.0));
        bad = i == 0 ? outside : pair(g, "or", bad, outside);
        if (i > 0) own = pair(g, "add", pair(g, "mul", flat, size_value(g, index->type, extent[i])), own);
        flat = own;
    }
    flat = choose(g, bad, smg_graph_number(g, type, -1073741824.0), flat);
    return smg_graph_gather(g, reshape(g, table, rank - last, dims), flat);
}

/* ---- scans and extremes --------------------------------------------------------------------- */

smg_value smg_graph_cumsum(smg_graph *g, smg_value a, int axis, bool exclusive, bool reverse) {
    const smg_node *source = start(g, "cumsum", a, &axis);
    if (!source) return no_value;
    int rank = source->rank;
    if (rank == SMG_MAX_RANK) {
        smg_build_stick(
            g, smg_fail(g->ctx, SMG_INVALID, "cumsum: rank %d is too high, at most %d", rank, SMG_MAX_RANK - 1));
        return no_value;
    }
    /* (..., i, j, ...): which j count for i */
    smg_size dims[SMG_MAX_RANK], extent = source->dims[axis];
    const char *type = word_of(source->type);
    for (int i = 0; i <= rank; i++) dims[i] = source->dims[i > axis ? i - 1 : i];
    dims[axis] = smg_size_const(g->sizes, 1);
    smg_value row = index_along(g, rank + 1, axis, extent);
    smg_value each = index_along(g, rank + 1, axis + 1, extent);
    smg_value counts = pair(g, exclusive ? "lt" : "le", reverse ? row : each, reverse ? each : row);
    smg_value kept = choose(g, counts, reshape(g, a, rank + 1, dims), smg_graph_number(g, type, 0.0));
    return smg_graph_reduce(g, "sum", kept, axis + 1, false);
}

smg_value smg_graph_argreduce(smg_graph *g, const char *op, smg_value a, int axis, bool keep, bool last) {
    const smg_node *source = start(g, "argreduce", a, &axis);
    if (!source) return no_value;
    smg_size extent = source->dims[axis];
    smg_value index = index_along(g, source->rank, axis, extent);
    smg_value best = pair(g, "eq", a, smg_graph_reduce(g, op, a, axis, true));
    /* Nothing equals a NaN: what it is the best of has an index all the same. */
    smg_value other = last ? smg_graph_number(g, "i32", 0.0)
                           : size_value(g, SMG_TYPE_I32, smg_size_sub(g->sizes, extent, smg_size_const(g->sizes, 1)));
    return smg_graph_reduce(g, last ? "reduce_max" : "reduce_min", choose(g, best, index, other), axis, keep);
}
