/* Sequences of tensors. Exporters write them where a tensor is split and the pieces are taken by number; a
 * sequence is a list of values during import and never reaches the graph. */
#include "onnx/onnx_part.h"

#define MOST_ITEMS 4096

static smg_status set_items(smg_onnx_build *b, const smg_onnx_node *n, int count, smg_onnx_value *items) {
    if (b->failed) return smg_onnx_failed(b, n);
    if (n->output_count < 1 || !n->outputs[0]) return SMG_OK;
    n->outputs[0]->items = items;
    n->outputs[0]->item_count = count;
    return SMG_OK;
}

static const smg_onnx_value *sequence(smg_onnx_build *b, const smg_onnx_node *n) {
    if (n->inputs[0]->items) return n->inputs[0];
    smg_onnx_fail(b, n, SMG_FORMAT, "input 0 ('%s') is not a sequence", n->inputs[0]->name);
    return NULL;
}

smg_status smg_onnx_convert_sequence_construct(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_onnx_value *items = SMG_ARENA_ARRAY(b->arena, smg_onnx_value, (size_t)n->input_count);
    if (!items) return SMG_MEMORY;
    for (int i = 0; i < n->input_count; i++) items[i] = *n->inputs[i];
    return set_items(b, n, n->input_count, items);
}

/* Where the pieces end: of `split` elements each, or as `split` lists them. */
static smg_status read_pieces(smg_onnx_build *b, const smg_onnx_node *n, int64_t extent, const int64_t **out_sizes,
                              int *out_count) {
    const int64_t *given = NULL;
    int64_t step = 1, sum = 0;
    int count = 0;
    if (smg_onnx_has(n, 1)) SMG_TRY(smg_onnx_ints(b, n, 1, &given, &count));
    if (given && n->inputs[1]->rank == 1) {
        for (int i = 0; i < count; i++) sum += given[i] < 1 || given[i] > extent ? extent + 1 : given[i];
        if (sum != extent || count > MOST_ITEMS)
            return smg_onnx_fail(b, n, SMG_INVALID, "its %d pieces do not make up %lld elements", count,
                                 (long long)extent);
        *out_sizes = given;
        *out_count = count;
        return SMG_OK;
    }
    if (given) step = given[0];
    if (step < 1 || (extent - 1) / step >= MOST_ITEMS)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "pieces of %lld of %lld elements", (long long)step,
                             (long long)extent);
    count = (int)((extent - 1) / step + 1);
    int64_t *sizes = SMG_ARENA_ARRAY(b->arena, int64_t, (size_t)count);
    if (!sizes) return SMG_MEMORY;
    for (int i = 0; i < count; i++) sizes[i] = i + 1 < count ? step : extent - step * (count - 1);
    *out_sizes = sizes;
    *out_count = count;
    return SMG_OK;
}

static void hold(smg_onnx_build *b, smg_onnx_value *item, const smg_onnx_value *like, smg_value value) {
    const smg_node *node = smg_graph_node_of(b->graph, value);
    *item = (smg_onnx_value){.name = like->name, .dtype = like->dtype, .graph = value};
    if (!node) {
        b->failed = true;
        return;
    }
    item->rank = node->rank;
    for (int i = 0; i < node->rank; i++) item->dims[i] = node->dims[i];
}

smg_status smg_onnx_convert_split_to_sequence(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *x = n->inputs[0];
    const int64_t *sizes = NULL;
    int64_t extent = 0, begin = 0;
    int axis = 0, count = 0;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), x->rank, &axis));
    if (!smg_size_is_const(b->sizes, x->dims[axis], &extent))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "an axis of %s elements is split",
                             smg_onnx_size_text(b, x->dims[axis]));
    SMG_TRY(read_pieces(b, n, extent, &sizes, &count));
    bool drop = !smg_onnx_has(n, 1) && smg_onnx_attr_int(b, n, "keepdims", 1) == 0;
    smg_onnx_value *items = SMG_ARENA_ARRAY(b->arena, smg_onnx_value, (size_t)count + 1);
    smg_value in = smg_onnx_in(b, n, 0);
    if (!items) return SMG_MEMORY;
    for (int i = 0; i < count && !b->failed; i++) {
        smg_value piece = smg_onnx_part(b, in, axis, smg_onnx_int(b, begin), smg_onnx_int(b, sizes[i]), 1);
        hold(b, &items[i], x, drop ? smg_onnx_remove(b, piece, axis) : piece);
        begin += sizes[i];
    }
    return set_items(b, n, count, items);
}

smg_status smg_onnx_convert_sequence_at(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *list = sequence(b, n);
    const int64_t *at = NULL;
    int count = 0;
    if (!list) return smg_onnx_failed(b, n);
    SMG_TRY(smg_onnx_ints(b, n, 1, &at, &count));
    if (count != 1 || at[0] < -list->item_count || at[0] >= list->item_count)
        return smg_onnx_fail(b, n, SMG_INVALID, "item %lld of a sequence of %d", count > 0 ? (long long)at[0] : 0,
                             list->item_count);
    int64_t index = at[0] < 0 ? at[0] + list->item_count : at[0];
    return smg_onnx_set_same(b, n, 0, &list->items[index]);
}

smg_status smg_onnx_convert_sequence_length(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *list = sequence(b, n);
    smg_size *length = SMG_ARENA_NEW(b->arena, smg_size);
    if (!list) return smg_onnx_failed(b, n);
    if (!length) return SMG_MEMORY;
    *length = smg_onnx_int(b, list->item_count);
    return smg_onnx_set_known(b, n, 0, SMG_IMPORT_I64, 0, NULL, length);
}

smg_status smg_onnx_convert_concat_from_sequence(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_value *list = sequence(b, n);
    bool fresh = smg_onnx_attr_int(b, n, "new_axis", 0) != 0;
    int axis = 0;
    if (!list) return smg_onnx_failed(b, n);
    if (list->item_count == 0) return smg_onnx_fail(b, n, SMG_INVALID, "the sequence is empty");
    smg_value *pieces = SMG_ARENA_ARRAY(b->arena, smg_value, (size_t)list->item_count);
    if (!pieces) return SMG_MEMORY;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), list->items[0].rank + fresh, &axis));
    for (int i = 0; i < list->item_count; i++) {
        smg_value piece = smg_onnx_value_in(b, &list->items[i]);
        pieces[i] = fresh ? smg_onnx_insert(b, piece, axis) : piece;
        if (!pieces[i].id) return smg_onnx_failed(b, n);
    }
    return smg_onnx_set(b, n, 0, smg_graph_concat(b->graph, list->item_count, pieces, axis));
}
