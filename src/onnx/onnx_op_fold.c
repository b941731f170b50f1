/* Col2Im: patches of an image, one a column, summed where they lie. An axis at a time: each tap is a strided row of
 * places, and the sum of the rows is the image. Where the patches tile it, it is a change of order instead. */
#include "onnx/onnx_part.h"

#define MAX_AXES 2

typedef struct fold_axis {
    smg_size extent, places; /* of the image; patches along the axis */
    int64_t taps, stride, dilation, before;
} fold_axis;

typedef struct folding {
    int axes;
    bool tiles;
    fold_axis axis[MAX_AXES];
} folding;

static smg_status read_folding(smg_onnx_build *b, const smg_onnx_node *n, folding *out) {
    const smg_size *image;
    const int64_t *block;
    int64_t pads[2 * MAX_AXES], strides[MAX_AXES], dilations[MAX_AXES];
    int count = 0;
    SMG_TRY(smg_onnx_sizes(b, n, 1, &image, &out->axes));
    SMG_TRY(smg_onnx_ints(b, n, 2, &block, &count));
    if (out->axes < 1 || out->axes > MAX_AXES || count != out->axes || n->inputs[0]->rank != 3)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "%s is folded into images of %d axes by blocks of %d; one or two are known",
                             smg_onnx_shape_text(b, n->inputs[0]), out->axes, count);
    SMG_TRY(smg_onnx_attr_counts(b, n, "pads", 2 * count, 0, 0, pads));
    SMG_TRY(smg_onnx_attr_counts(b, n, "strides", count, 1, 1, strides));
    SMG_TRY(smg_onnx_attr_counts(b, n, "dilations", count, 1, 1, dilations));
    out->tiles = true;
    for (int i = 0; i < count; i++) {
        fold_axis *a = &out->axis[i];
        *a = (fold_axis){image[i], 0, block[i], strides[i], dilations[i], pads[i]};
        if (a->taps < 1 || a->taps > 64)
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "a block has %lld places, 1 to 64 are known",
                                 (long long)a->taps);
        int64_t reach = pads[i] + pads[count + i] - a->dilation * (a->taps - 1) - 1;
        smg_size room = smg_size_add(b->sizes, image[i], smg_onnx_int(b, reach)), stride = smg_onnx_int(b, a->stride);
        a->places = smg_size_add(b->sizes, smg_size_div(b->sizes, room, stride), smg_onnx_int(b, 1));
        out->tiles = out->tiles && a->taps == a->stride && a->dilation == 1 && a->before == 0 &&
                     a->extent == smg_size_mul(b->sizes, a->places, stride);
    }
    return SMG_OK;
}

/* [.., taps, .., places, ..] -> [.., extent, ..]; the taps' axis goes. */
static smg_value fold(smg_onnx_build *b, smg_value x, int taps, int places, const fold_axis *a) {
    smg_value sum = {0};
    for (int64_t i = 0; i < a->taps; i++) {
        smg_value row = smg_onnx_part(b, x, taps, smg_onnx_int(b, i), smg_onnx_int(b, 1), 1);
        row = smg_onnx_apart(b, smg_onnx_remove(b, row, taps), places - 1, a->stride);
        row = smg_onnx_window(b, row,
                              &(smg_window){.axis = places - 1,
                                            .begin = smg_onnx_int(b, a->before - i * a->dilation),
                                            .count = a->extent,
                                            .taps = smg_onnx_int(b, 1),
                                            .step = 1,
                                            .dilation = 1,
                                            .fill = 0.0});
        row = smg_onnx_remove(b, row, places);
        sum = i == 0 ? row : smg_onnx_map2(b, "add", sum, row);
    }
    return sum;
}

smg_status smg_onnx_convert_col2im(smg_onnx_build *b, const smg_onnx_node *n) {
    static const int in_order[MAX_AXES][2 + 2 * MAX_AXES] = {{0, 1, 3, 2}, {0, 1, 4, 2, 5, 3}};
    folding job;
    smg_size taps[1 + MAX_AXES], places[MAX_AXES];
    SMG_TRY(read_folding(b, n, &job));
    for (int i = 0; i < job.axes; i++) {
        taps[1 + i] = smg_onnx_int(b, job.axis[i].taps);
        places[i] = job.axis[i].places;
    }
    SMG_TRY(smg_onnx_equal(b, n, n->inputs[0]->dims[2], smg_onnx_product(b, job.axes, places),
                           "the columns and the patches of the image"));
    if (!smg_size_divide_exact(b->sizes, n->inputs[0]->dims[1], smg_onnx_product(b, job.axes, taps + 1), &taps[0]))
        return smg_onnx_fail(b, n, SMG_INVALID, "%s are no rows of whole blocks", smg_onnx_shape_text(b, n->inputs[0]));
    smg_value x = smg_onnx_divide(b, smg_onnx_in(b, n, 0), 2, job.axes, places);
    x = smg_onnx_divide(b, x, 1, 1 + job.axes, taps);
    if (job.tiles) x = smg_onnx_permute(b, x, in_order[job.axes - 1]);
    /* The taps that are left, then the axes that are done: the places of the next one are always behind as many. */
    for (int i = 0; i < job.axes; i++)
        x = job.tiles ? smg_onnx_merge(b, x, 2 + i, 2) : fold(b, x, 2, 2 + job.axes, &job.axis[i]);
    return smg_onnx_set_like(b, n, 0, 0, x);
}
