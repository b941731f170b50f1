/* ScatterND. What exporters write for an assignment to a slice, x[.., a:b] = y, is a tensor of indices
 * that enumerates a box. Where the indices are that, whatever made them, the updates are padded to the
 * whole and chosen inside the box; then nothing is scattered at all. */
#include "onnx/onnx_form.h"
#include "onnx/onnx_part.h"

/* Per indexed axis of the data. */
typedef struct onnx_box {
    int count;              /* indexed axes */
    int lead;               /* axes of the indices but for the last */
    int axis[SMG_MAX_RANK]; /* of the updates that runs along it; -1: none */
    smg_size begin[SMG_MAX_RANK], extent[SMG_MAX_RANK];
} onnx_box;

static smg_status no_box(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                         "its indices must enumerate a box, one axis of the updates for each axis "
                         "of the data, whatever the sizes are");
}

/* Component j of the indices as begin + one axis of the updates. */
static bool read_axis(smg_onnx_build *b, onnx_forms *forms, smg_value indices, int j, onnx_box *box) {
    onnx_form at[SMG_MAX_RANK], form;
    int64_t number = 0;
    for (int k = 0; k < box->lead; k++) {
        at[k] = smg_onnx_form_of(b, smg_onnx_int(b, 0));
        at[k].scale[k] = 1;
    }
    at[box->lead] = smg_onnx_form_of(b, smg_onnx_int(b, j));
    if (b->failed || !smg_onnx_form_at(forms, indices, at, &form)) return false;
    box->axis[j] = -1;
    box->extent[j] = smg_onnx_int(b, 1);
    for (int k = 0; k < box->lead; k++) {
        if (form.scale[k] == 0) continue;
        if (smg_onnx_is_const(b, forms->extent[k], 1)) continue; /* the index is 0 */
        if (form.scale[k] != 1 || box->axis[j] >= 0) return false;
        box->axis[j] = k;
        box->extent[j] = forms->extent[k];
    }
    box->begin[j] = form.base;
    return !smg_size_is_const(b->sizes, form.base, &number) || number >= 0;
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
    if (indices->rank < 1 ||
        !smg_size_is_const(b->sizes, indices->dims[indices->rank - 1], &count) || count < 1 ||
        count > data->rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "indices %s do not fit data %s",
                             smg_onnx_shape_text(b, indices), smg_onnx_shape_text(b, data));
    *out = (onnx_box){.count = (int)count, .lead = indices->rank - 1};
    smg_value value = smg_onnx_in(b, n, 1);
    if (!value.id) return smg_onnx_failed(b, n);
    smg_onnx_forms_begin(b, out->lead, indices->dims, &forms);
    for (int j = 0; j < out->count; j++)
        if (!read_axis(b, &forms, value, j, out))
            return b->failed ? smg_onnx_failed(b, n) : no_box(b, n);
    return covers(b, &forms, out) ? SMG_OK : no_box(b, n);
}

/* The updates with one axis per axis of the data, in its order. */
static smg_value arranged(smg_onnx_build *b, const smg_onnx_node *n, const onnx_box *box) {
    const smg_onnx_value *data = n->inputs[0];
    smg_value updates = smg_onnx_in(b, n, 2);
    int rank = smg_onnx_rank(b, updates), trailing = data->rank - box->count, kept = 0;
    int perm[SMG_MAX_RANK];
    smg_size dims[SMG_MAX_RANK];
    if (rank != box->lead + trailing) return (smg_value){0};
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
static smg_value place(smg_onnx_build *b, const smg_onnx_value *data, const onnx_box *box, int j,
                       smg_value mask, smg_value *io_updates) {
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

smg_status smg_onnx_convert_scatter_nd(smg_onnx_build *b, const smg_onnx_node *n) {
    static const char *const ways[] = {"none", "add", "mul", "max", "min"};
    const char *how = smg_onnx_attr_string(b, n, "reduction", "none");
    const smg_onnx_value *data = n->inputs[0];
    onnx_box box = {0};
    size_t way = 0;
    while (way < SMG_COUNT_OF(ways) && strcmp(how, ways[way]) != 0) way++;
    if (way == SMG_COUNT_OF(ways))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "reduction '%s' is not known", how);
    SMG_TRY(read_box(b, n, &box));
    smg_type type = smg_onnx_type(n, 0);
    bool bools = type == SMG_TYPE_BOOL; /* nothing stands outside of a bool */
    smg_value x = smg_onnx_in(b, n, 0), y = arranged(b, n, &box), mask = {0};
    if (!x.id || !y.id) {
        if (smg_context_status(b->ctx) != SMG_OK) return smg_onnx_failed(b, n);
        return smg_onnx_fail(b, n, SMG_INVALID, "updates %s do not fit indices %s and data %s",
                             smg_onnx_shape_text(b, n->inputs[2]),
                             smg_onnx_shape_text(b, n->inputs[1]), smg_onnx_shape_text(b, data));
    }
    if (bools) {
        x = smg_onnx_to(b, x, SMG_TYPE_I32);
        y = smg_onnx_to(b, y, SMG_TYPE_I32);
    }
    for (int j = 0; j < box.count; j++) mask = place(b, data, &box, j, mask, &y);
    y = combined(b, how, x, y);
    if (mask.id) y = smg_onnx_select(b, mask, y, x);
    return smg_onnx_set_like(b, n, 0, 0, bools ? smg_onnx_to(b, y, SMG_TYPE_BOOL) : y);
}
