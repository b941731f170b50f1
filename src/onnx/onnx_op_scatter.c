/* ScatterND and ScatterElements. What exporters write for an assignment to a slice, x[.., a:b] = y, is a tensor
 * of indices that enumerates a box. Where the indices are that, whatever made them, the updates are padded to
 * the whole and chosen inside the box; then nothing is scattered at all. Other indices are compared with every
 * place: each element asks which updates are for it. */
#include <math.h>

#include "onnx/onnx_form.h"
#include "onnx/onnx_part.h"

/* Per indexed axis of the data. */
typedef struct onnx_box {
    bool found;
    int count;              /* indexed axes */
    int lead;               /* axes of the indices but for the last */
    int axis[SMG_MAX_RANK]; /* of the updates that runs along it; -1: none */
    smg_size begin[SMG_MAX_RANK], extent[SMG_MAX_RANK];
} onnx_box;

/* Component j of the indices as begin + one axis of the updates. */
static bool read_axis(smg_onnx_build *b, onnx_forms *forms, smg_value indices, int j, onnx_box *box) {
    smg_affine at[SMG_MAX_RANK], form;
    int64_t number = 0;
    for (int k = 0; k < box->lead; k++) at[k] = (smg_affine){.term = {{k, smg_onnx_int(b, 1)}}, .count = 1};
    at[box->lead] = (smg_affine){.begin = smg_onnx_int(b, j)};
    if (b->failed || !smg_onnx_form_at(forms, indices, at, &form)) return false;
    box->axis[j] = -1;
    box->extent[j] = smg_onnx_int(b, 1);
    for (int k = 0; k < box->lead; k++) {
        smg_size by = smg_affine_by(&form, k);
        if (by == SMG_SIZE_ZERO || smg_onnx_is_const(b, forms->extent[k], 1)) continue; /* the index is 0 */
        if (!smg_onnx_is_const(b, by, 1) || box->axis[j] >= 0) return false;
        box->axis[j] = k;
        box->extent[j] = forms->extent[k];
    }
    box->begin[j] = form.begin;
    return !smg_size_is_const(b->sizes, form.begin, &number) || number >= 0;
}

/* Every axis of the updates of more than one element runs along exactly one axis of the data. */
static bool covers(smg_onnx_build *b, const onnx_forms *forms, const onnx_box *box) {
    for (int k = 0; k < box->lead; k++) {
        int users = 0;
        for (int j = 0; j < box->count; j++) users += box->axis[j] == k;
        if (users > 1 || (users == 0 && !smg_onnx_is_const(b, forms->extent[k], 1))) return false;
    }
    return true;
}

static smg_status read_box(smg_onnx_build *b, const smg_onnx_node *n, onnx_box *out) {
    const smg_onnx_value *data = n->inputs[0], *indices = n->inputs[1];
    int64_t count = 0;
    onnx_forms forms;
    if (indices->rank < 1 || !smg_size_is_const(b->sizes, indices->dims[indices->rank - 1], &count) || count < 1 ||
        count > data->rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "indices %s do not fit data %s", smg_onnx_shape_text(b, indices),
                             smg_onnx_shape_text(b, data));
    *out = (onnx_box){.count = (int)count, .lead = indices->rank - 1};
    smg_value value = smg_onnx_in(b, n, 1);
    if (!value.id) return smg_onnx_failed(b, n);
    smg_onnx_forms_begin(b, out->lead, indices->dims, &forms);
    for (int j = 0; j < out->count; j++)
        if (!read_axis(b, &forms, value, j, out)) return b->failed ? smg_onnx_failed(b, n) : SMG_OK;
    out->found = covers(b, &forms, out);
    return SMG_OK;
}

/* The updates with one axis per axis of the data, in its order. */
static smg_value arranged(smg_onnx_build *b, const smg_onnx_node *n, const onnx_box *box) {
    const smg_onnx_value *data = n->inputs[0];
    smg_value updates = smg_onnx_in(b, n, 2);
    int trailing = data->rank - box->count, kept = 0;
    int perm[SMG_MAX_RANK];
    smg_size dims[SMG_MAX_RANK];
    for (int j = 0; j < box->count; j++)
        if (box->axis[j] >= 0) perm[kept++] = box->axis[j];
    for (int k = 0; k < box->lead; k++) {
        bool used = false;
        for (int j = 0; j < box->count; j++) used = used || box->axis[j] == k;
        if (!used) perm[kept++] = k; /* of extent 1 */
    }
    for (int i = 0; i < trailing; i++) perm[kept++] = box->lead + i;
    for (int j = 0; j < data->rank; j++) dims[j] = j < box->count ? box->extent[j] : data->dims[j];
    return smg_onnx_reshape(b, smg_onnx_permute(b, updates, perm), data->rank, dims);
}

/* Pads `io_updates` along axis j to the data's extent; the mask is true inside. */
static smg_value place(smg_onnx_build *b, const smg_onnx_value *data, const onnx_box *box, int j, smg_value mask,
                       smg_value *io_updates) {
    smg_sizes *s = b->sizes;
    if (smg_onnx_is_const(b, box->begin[j], 0) && box->extent[j] == data->dims[j]) return mask;
    smg_size end = smg_size_add(s, box->begin[j], box->extent[j]);
    smg_size after = smg_size_sub(s, data->dims[j], end);
    *io_updates = smg_graph_pad_of(b->graph, *io_updates, j, box->begin[j], after, 0);
    smg_value at = smg_onnx_count(b, data->dims[j], j, data->rank);
    smg_value low = smg_onnx_map2(b, "ge", at, smg_onnx_size_value(b, SMG_TYPE_I32, box->begin[j]));
    smg_value high = smg_onnx_map2(b, "lt", at, smg_onnx_size_value(b, SMG_TYPE_I32, end));
    smg_value inside = smg_onnx_map2(b, "and", low, high);
    return mask.id ? smg_onnx_map2(b, "and", mask, inside) : inside;
}

static smg_value combined(smg_onnx_build *b, const char *how, smg_value data, smg_value updates) {
    if (strcmp(how, "none") == 0) return updates;
    return smg_onnx_map2(b, how, data, updates);
}

static smg_status read_way(smg_onnx_build *b, const smg_onnx_node *n, const char **out_how) {
    static const char *const ways[] = {"none", "add", "mul", "max", "min"};
    *out_how = smg_onnx_attr_string(b, n, "reduction", "none");
    for (size_t i = 0; i < SMG_COUNT_OF(ways); i++)
        if (strcmp(*out_how, ways[i]) == 0) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "reduction '%s' is not known", *out_how);
}

/* Bools as integers: nothing stands outside of a bool. */
static smg_value as_number(smg_onnx_build *b, const smg_onnx_node *n, smg_value x) {
    return smg_onnx_type(n, 0) == SMG_TYPE_BOOL ? smg_onnx_to(b, x, SMG_TYPE_I32) : x;
}

static smg_status set_result(smg_onnx_build *b, const smg_onnx_node *n, smg_value y) {
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_to(b, y, smg_onnx_type(n, 0)));
}

/* A slice that ends before it begins: nothing is written. */
static bool has_none(const smg_onnx_value *indices, int axes) {
    bool none = false;
    for (int i = 0; i < axes; i++) none = none || indices->dims[i] == SMG_SIZE_ZERO;
    return none;
}

static smg_status keep_data(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value data = smg_onnx_in(b, n, 0);
    return data.id ? smg_onnx_set_like(b, n, 0, 0, data) : smg_onnx_failed(b, n);
}

/* ---- any indices -------------------------------------------------------------------------------- */

/* data[.., at[.., k, ..], ..] = updates[.., k, ..] along `axis`; the other extents broadcast. Where several
 * updates are for one element, ONNX leaves open which one it gets without a reduction: the largest. */
static smg_value scattered(smg_onnx_build *b, const char *how, smg_value data, smg_value at, smg_value updates,
                           int axis) {
    static const struct {
        const char *how, *op;
        double none; /* what changes nothing */
    } ways[] = {{"none", "reduce_max", -HUGE_VAL},
                {"add", "sum", 0.0},
                {"mul", "reduce_prod", 1.0},
                {"max", "reduce_max", -HUGE_VAL},
                {"min", "reduce_min", HUGE_VAL}};
    const smg_node *node = smg_graph_node_of(b->graph, data);
    int rank = smg_onnx_rank(b, data), way = 0;
    bool over[SMG_MAX_RANK] = {false};
    if (!node || rank >= SMG_MAX_RANK) return (smg_value){0};
    while (strcmp(ways[way].how, how) != 0) way++;
    double none = ways[way].none;
    if (smg_type_kind(node->type) == SMG_KIND_INT && !(none >= INT32_MIN && none <= INT32_MAX))
        none = none < 0 ? (double)INT32_MIN : (double)INT32_MAX;
    smg_value wrapped = smg_onnx_insert(b, smg_onnx_wrap(b, at, node->dims[axis]), axis);
    smg_value place = smg_onnx_count(b, node->dims[axis], axis, rank + 1);
    smg_value hit = smg_onnx_map2(b, "eq", place, wrapped);
    smg_value each = smg_onnx_insert(b, updates, axis);
    each = smg_onnx_select(b, hit, each, smg_onnx_like(b, each, none));
    over[axis + 1] = true;
    each = smg_onnx_drop_axes(b, smg_onnx_reduce(b, ways[way].op, each, over), over);
    smg_value hits = smg_onnx_reduce(b, "reduce_max", smg_onnx_to(b, hit, SMG_TYPE_I32), over);
    smg_value any = smg_onnx_with(b, "gt", smg_onnx_drop_axes(b, hits, over), 0.0);
    return smg_onnx_select(b, any, combined(b, how, data, each), data);
}

/* The indexed axes as one: rows of data that rows of updates replace. */
static smg_status scatter_rows(smg_onnx_build *b, const smg_onnx_node *n, const char *how) {
    const smg_onnx_value *data = n->inputs[0], *indices = n->inputs[1];
    smg_size dims[SMG_MAX_RANK];
    int64_t count = 0;
    smg_value flat = {0}, all = smg_onnx_in(b, n, 1);
    smg_size_is_const(b->sizes, indices->dims[indices->rank - 1], &count); /* read_box saw that */
    int trailing = data->rank - (int)count, lead = indices->rank - 1;
    for (int j = 0; j < (int)count; j++) {
        smg_value at = smg_onnx_part(b, all, lead, smg_onnx_int(b, j), smg_onnx_int(b, 1), 1);
        at = smg_onnx_wrap(b, smg_onnx_to(b, smg_onnx_remove(b, at, lead), SMG_TYPE_I32), data->dims[j]);
        if (j > 0) flat = smg_onnx_map2(b, "mul", flat, smg_onnx_size_value(b, SMG_TYPE_I32, data->dims[j]));
        flat = j > 0 ? smg_onnx_map2(b, "add", flat, at) : at;
    }
    dims[0] = smg_onnx_product(b, (int)count, data->dims);
    for (int i = 0; i < trailing; i++) dims[1 + i] = data->dims[count + i];
    smg_value x = smg_onnx_reshape(b, as_number(b, n, smg_onnx_in(b, n, 0)), 1 + trailing, dims);
    dims[0] = smg_onnx_product(b, lead, indices->dims);
    smg_value updates = as_number(b, n, smg_onnx_in(b, n, 2));
    updates = smg_onnx_reshape(b, updates, 1 + trailing, dims);
    smg_value at = smg_onnx_along(b, smg_onnx_reshape(b, flat, 1, dims), 0, 1 + trailing);
    if (!x.id || !updates.id || !at.id) return smg_onnx_failed(b, n);
    smg_value y = scattered(b, how, x, at, updates, 0);
    return set_result(b, n, smg_onnx_reshape(b, y, data->rank, data->dims));
}

/* Indices and updates may be shorter than the data beside the axis: what is behind them is for no place. */
static smg_status reach_end(smg_onnx_build *b, const smg_onnx_node *n, int axis, smg_value *io_at,
                            smg_value *io_updates) {
    const smg_onnx_value *data = n->inputs[0], *indices = n->inputs[1];
    for (int i = 0; i < data->rank; i++) {
        int64_t low = 0;
        smg_size rest = smg_size_sub(b->sizes, data->dims[i], indices->dims[i]);
        if (i == axis || rest == SMG_SIZE_ZERO) continue;
        smg_size_bounds(b->sizes, rest, &low, NULL);
        if (low < 0) SMG_TRY(smg_onnx_equal(b, n, indices->dims[i], data->dims[i], "extents beside the axis"));
        *io_at = smg_graph_pad_of(b->graph, *io_at, i, SMG_SIZE_ZERO, rest, (double)INT32_MIN);
        *io_updates = smg_graph_pad_of(b->graph, *io_updates, i, SMG_SIZE_ZERO, rest, 0.0);
    }
    return SMG_OK;
}

smg_status smg_onnx_convert_scatter_elements(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *data = n->inputs[0], *indices = n->inputs[1], *updates = n->inputs[2];
    const char *how;
    int axis;
    SMG_TRY(read_way(b, n, &how));
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), data->rank, &axis));
    if (indices->rank != data->rank || updates->rank != data->rank || data->rank >= SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_INVALID, "data %s, indices %s and updates %s disagree",
                             smg_onnx_shape_text(b, data), smg_onnx_shape_text(b, indices),
                             smg_onnx_shape_text(b, updates));
    for (int i = 0; i < data->rank; i++)
        SMG_TRY(smg_onnx_equal(b, n, indices->dims[i], updates->dims[i], "indices and updates"));
    if (has_none(indices, indices->rank)) return keep_data(b, n);
    smg_value at = smg_onnx_to(b, smg_onnx_in(b, n, 1), SMG_TYPE_I32);
    smg_value x = as_number(b, n, smg_onnx_in(b, n, 0)), y = as_number(b, n, smg_onnx_in(b, n, 2));
    if (!at.id || !x.id || !y.id) return smg_onnx_failed(b, n);
    SMG_TRY(reach_end(b, n, axis, &at, &y));
    return set_result(b, n, scattered(b, how, x, at, y, axis));
}

/* ---- ScatterND ---------------------------------------------------------------------------------- */

smg_status smg_onnx_convert_scatter_nd(smg_onnx_build *b, const smg_onnx_node *n) {
    const char *how;
    const smg_onnx_value *data = n->inputs[0];
    onnx_box box = {0};
    SMG_TRY(read_way(b, n, &how));
    if (has_none(n->inputs[1], n->inputs[1]->rank - 1)) return keep_data(b, n);
    SMG_TRY(read_box(b, n, &box));
    if (n->inputs[2]->rank != box.lead + data->rank - box.count)
        return smg_onnx_fail(b, n, SMG_INVALID, "updates %s do not fit indices %s and data %s",
                             smg_onnx_shape_text(b, n->inputs[2]), smg_onnx_shape_text(b, n->inputs[1]),
                             smg_onnx_shape_text(b, data));
    if (!box.found) return scatter_rows(b, n, how);
    smg_value x = as_number(b, n, smg_onnx_in(b, n, 0)), mask = {0};
    smg_value y = as_number(b, n, arranged(b, n, &box));
    if (!x.id || !y.id) return smg_onnx_failed(b, n);
    for (int j = 0; j < box.count; j++) mask = place(b, data, &box, j, mask, &y);
    y = combined(b, how, x, y);
    if (mask.id) y = smg_onnx_select(b, mask, y, x);
    return set_result(b, n, y);
}
