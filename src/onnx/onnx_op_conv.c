/* Convolutions and pooling over one to three axes: the input is seen as windows (places and taps as two axes),
 * then a convolution is a product over channels and taps, and pooling a reduction over taps. */
#include <math.h>

#include "onnx/onnx_part.h"

typedef struct window_axis {
    smg_size extent, before, after, places;
    int64_t taps, stride, dilation;
} window_axis;

typedef struct windows {
    int axes;           /* spatial: axis 2, 3 and 4 of the input */
    bool pads, partial; /* something is added around; the last window may reach past that */
    window_axis axis[ONNX_CONV_AXES];
} windows;

static smg_size plus(smg_onnx_build *b, smg_size a, int64_t number) {
    return smg_size_add(b->sizes, a, smg_onnx_int(b, number));
}

/* As many places as the stride divides the axis into; the pads follow from them. */
static void same_pads(smg_onnx_build *b, window_axis *w, bool upper) {
    smg_size stride = smg_onnx_int(b, w->stride), zero = smg_onnx_int(b, 0);
    w->places = smg_size_ceil_div(b->sizes, w->extent, stride);
    smg_size last = smg_size_mul(b->sizes, plus(b, w->places, -1), stride);
    smg_size end = plus(b, last, (w->taps - 1) * w->dilation + 1);
    smg_size total = smg_size_max(b->sizes, smg_size_sub(b->sizes, end, w->extent), zero);
    smg_size half = smg_size_div(b->sizes, total, smg_onnx_int(b, 2));
    w->before = upper ? half : smg_size_sub(b->sizes, total, half);
    w->after = smg_size_sub(b->sizes, total, w->before);
}

/* Rounded up, a last window still has to begin inside or in front of the padding behind. */
static void count_places(smg_onnx_build *b, window_axis *w, bool up) {
    smg_size stride = smg_onnx_int(b, w->stride);
    smg_size inside = smg_size_add(b->sizes, w->extent, w->before);
    smg_size room = plus(b, smg_size_add(b->sizes, inside, w->after), -(w->taps - 1) * w->dilation - 1);
    w->places = plus(b, smg_size_div(b->sizes, room, stride), 1);
    if (!up) return;
    smg_size most = smg_size_ceil_div(b->sizes, inside, stride);
    w->places = smg_size_min(b->sizes, plus(b, smg_size_ceil_div(b->sizes, room, stride), 1), most);
}

static smg_status read_windows(smg_onnx_build *b, const smg_onnx_node *n, const int64_t *taps, windows *out) {
    const smg_onnx_value *x = n->inputs[0];
    const char *automatic = smg_onnx_attr_string(b, n, "auto_pad", "NOTSET");
    int64_t pads[2 * ONNX_CONV_AXES], strides[ONNX_CONV_AXES], dilations[ONNX_CONV_AXES];
    int axes = x->rank - 2;
    bool same = strcmp(automatic, "SAME_UPPER") == 0 || strcmp(automatic, "SAME_LOWER") == 0;
    bool valid = strcmp(automatic, "VALID") == 0, up = smg_onnx_attr_int(b, n, "ceil_mode", 0) != 0;
    if (!same && !valid && strcmp(automatic, "NOTSET") != 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "auto_pad is \"%s\"", automatic);
    SMG_TRY(smg_onnx_attr_counts(b, n, "pads", 2 * axes, 0, 0, pads));
    SMG_TRY(smg_onnx_attr_counts(b, n, "strides", axes, 1, 1, strides));
    SMG_TRY(smg_onnx_attr_counts(b, n, "dilations", axes, 1, 1, dilations));
    out->axes = axes;
    out->partial = up;
    out->pads = false;
    for (int i = 0; i < axes; i++) {
        window_axis *w = &out->axis[i];
        *w = (window_axis){.extent = x->dims[2 + i], .taps = taps[i], .stride = strides[i], .dilation = dilations[i]};
        w->before = smg_onnx_int(b, valid ? 0 : pads[i]);
        w->after = smg_onnx_int(b, valid ? 0 : pads[axes + i]);
        if (same)
            same_pads(b, w, strcmp(automatic, "SAME_UPPER") == 0);
        else
            count_places(b, w, up);
        if (w->places < 0) return smg_onnx_failed(b, n);
        out->pads = out->pads || same || pads[i] > 0 || pads[axes + i] > 0;
    }
    return SMG_OK;
}

static smg_status check_rank(smg_onnx_build *b, const smg_onnx_node *n) {
    int axes = n->inputs[0]->rank - 2;
    if (axes >= 1 && axes <= ONNX_CONV_AXES) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the input is %s; one to three axes behind [batch, channels] are known",
                         smg_onnx_shape_text(b, n->inputs[0]));
}

/* [n, c, d..] -> [n, c, places, taps, ..] with `first` the axis of the first places. */
static smg_value windowed(smg_onnx_build *b, smg_value x, const windows *w, int first, double fill) {
    for (int i = 0; i < w->axes; i++) {
        const window_axis *a = &w->axis[i];
        x = smg_onnx_window(b, x,
                            &(smg_window){.axis = first + 2 * i,
                                          .begin = smg_size_sub(b->sizes, smg_onnx_int(b, 0), a->before),
                                          .count = a->places,
                                          .taps = smg_onnx_int(b, a->taps),
                                          .step = a->stride,
                                          .dilation = a->dilation,
                                          .fill = fill});
    }
    return x;
}

/* ---- Conv ----------------------------------------------------------------------------------- */

static smg_status read_conv(smg_onnx_build *b, const smg_onnx_node *n, const smg_onnx_value *w, int64_t group,
                            windows *out) {
    const smg_onnx_value *x = n->inputs[0];
    int64_t taps[ONNX_CONV_AXES], kernel[ONNX_CONV_AXES], outputs;
    SMG_TRY(check_rank(b, n));
    bool good =
        w->rank == x->rank && group >= 1 && smg_size_is_const(b->sizes, w->dims[0], &outputs) && outputs % group == 0;
    for (int i = 2; good && i < w->rank; i++) good = smg_size_is_const(b->sizes, w->dims[i], &taps[i - 2]);
    if (!good)
        return smg_onnx_fail(b, n, SMG_INVALID, "weights %s do not fit the input %s in %lld groups",
                             smg_onnx_shape_text(b, w), smg_onnx_shape_text(b, x), (long long)group);
    SMG_TRY(smg_onnx_equal(b, n, x->dims[1], smg_size_mul(b->sizes, w->dims[1], smg_onnx_int(b, group)),
                           "the channels of the input and of the weights"));
    SMG_TRY(smg_onnx_attr_counts(b, n, "kernel_shape", x->rank - 2, 0, 0, kernel));
    for (int i = 0; i < x->rank - 2; i++)
        if (kernel[i] != 0 && kernel[i] != taps[i])
            return smg_onnx_fail(b, n, SMG_INVALID, "kernel_shape is %lld where the weights have %lld",
                                 (long long)kernel[i], (long long)taps[i]);
    return read_windows(b, n, taps, out);
}

static smg_value convolve(smg_onnx_build *b, smg_value x, smg_value w, const onnx_conv_form *form, const void *job) {
    char label[ONNX_CONV_LABEL];
    bool grouped = form->group > 1;
    if (grouped) {
        smg_size g = smg_onnx_int(b, form->group);
        smg_size in_dims[] = {g, smg_onnx_dim(b, w, 1)};
        smg_size out_dims[] = {g, smg_size_div(b->sizes, smg_onnx_dim(b, w, 0), g)};
        if (form->channels) x = smg_onnx_divide(b, x, 1, 2, in_dims);
        w = smg_onnx_divide(b, w, 0, 2, out_dims);
        if (!form->channels) w = smg_onnx_remove(b, w, 2);
    }
    x = windowed(b, x, job, 1 + grouped + form->channels, 0.0);
    if (!x.id || !w.id) return (smg_value){0};
    smg_onnx_conv_label(form, label);
    smg_value y = smg_graph_contract(b->graph, label, x, w);
    return grouped ? smg_onnx_merge(b, y, 1, 2) : y;
}

smg_status smg_onnx_convolution(smg_onnx_build *b, const smg_onnx_node *n, int weights, smg_value x, smg_value w,
                                smg_value *out_y) {
    int64_t group = smg_onnx_attr_int(b, n, "group", 1);
    windows job;
    SMG_TRY(read_conv(b, n, n->inputs[weights], group, &job));
    const onnx_conv_form form = {.axes = job.axes, .group = group, .channels = true};
    bool single = smg_onnx_is_const(b, n->inputs[weights]->dims[1], 1);
    return smg_onnx_in_groups(b, n, x, w, &form, single, convolve, &job, out_y);
}

smg_status smg_onnx_convert_conv(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value y, x = smg_onnx_in(b, n, 0), w = smg_onnx_in(b, n, 1);
    SMG_TRY(smg_onnx_convolution(b, n, 1, x, w, &y));
    if (smg_onnx_has(n, 2))
        y = smg_onnx_map2(b, "add", y, smg_onnx_along(b, smg_onnx_in(b, n, 2), 1, n->inputs[0]->rank));
    return smg_onnx_set(b, n, 0, y);
}

/* ---- pooling -------------------------------------------------------------------------------- */

/* op over the taps of [n, c, o, i, p, j, ..]: [n, c, o, p, ..]. */
static smg_value over_taps(smg_onnx_build *b, const char *op, smg_value x, int axes) {
    int perm[SMG_MAX_RANK] = {0, 1};
    bool over[SMG_MAX_RANK] = {false};
    for (int i = 0; i < axes; i++) {
        perm[2 + i] = 2 + 2 * i;
        perm[2 + axes + i] = 3 + 2 * i;
        over[2 + axes + i] = true;
    }
    x = smg_onnx_permute(b, x, perm);
    return smg_onnx_drop_axes(b, smg_onnx_reduce(b, op, x, over), over);
}

/* Taps that lie behind the padding at every place (a window made for larger images) are none. */
static void drop_taps_outside(smg_onnx_build *b, window_axis *w) {
    int64_t inside;
    smg_size end = smg_size_add(b->sizes, smg_size_add(b->sizes, w->extent, w->before), w->after);
    if (!smg_size_is_const(b->sizes, end, &inside) || inside < 1) return;
    int64_t reach = (inside - 1) / w->dilation + 1;
    if (w->taps > reach) w->taps = reach;
}

/* How many taps of each place count: f32[places]. */
static smg_value counted(smg_onnx_build *b, const window_axis *w, bool padding) {
    smg_size taps = smg_onnx_int(b, w->taps), zero = smg_onnx_int(b, 0);
    smg_size low = smg_size_sub(b->sizes, zero, w->before);
    smg_size high = padding ? smg_size_add(b->sizes, w->extent, w->after) : w->extent;
    smg_value place = smg_onnx_with(b, "mul", smg_onnx_count(b, w->places, 0, 2), (double)w->stride);
    smg_value tap = smg_onnx_with(b, "mul", smg_onnx_count(b, taps, 1, 2), (double)w->dilation);
    smg_value at = smg_onnx_map2(b, "add", place, tap);
    at = smg_onnx_map2(b, "add", at, smg_onnx_size_value(b, SMG_TYPE_I32, low));
    smg_value inside = smg_onnx_map2(b, "lt", at, smg_onnx_size_value(b, SMG_TYPE_I32, high));
    if (!padding) inside = smg_onnx_map2(b, "and", inside, smg_onnx_with(b, "ge", at, 0.0));
    static const bool over[] = {false, true};
    smg_value counts = smg_onnx_reduce(b, "sum", smg_onnx_to(b, inside, SMG_TYPE_F32), over);
    return smg_onnx_drop_axes(b, counts, over);
}

/* `area`: taps of a whole window. */
static smg_value averaged(smg_onnx_build *b, smg_value sum, const windows *w, int64_t area, bool padding) {
    bool all = !w->partial && (padding || !w->pads);
    if (all) return smg_onnx_with(b, "mul", sum, 1.0 / (double)area);
    smg_value count = {0};
    for (int i = 0; i < w->axes; i++) {
        smg_value own = smg_onnx_along(b, counted(b, &w->axis[i], padding), 2 + i, 2 + w->axes);
        count = i == 0 ? own : smg_onnx_map2(b, "mul", count, own);
    }
    return smg_onnx_map2(b, "div", sum, count);
}

smg_status smg_onnx_convert_pool(smg_onnx_build *b, const smg_onnx_node *n) {
    windows job;
    int64_t taps[ONNX_CONV_AXES];
    bool average = strcmp(n->op, "AveragePool") == 0;
    bool padding = smg_onnx_attr_int(b, n, "count_include_pad", 0) != 0;
    SMG_TRY(check_rank(b, n));
    SMG_TRY(smg_onnx_attr_counts(b, n, "kernel_shape", n->inputs[0]->rank - 2, 0, 1, taps));
    if (n->output_count > 1 && n->outputs[1]) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "its output Indices is used");
    SMG_TRY(read_windows(b, n, taps, &job));
    int64_t area = 1;
    for (int i = 0; i < job.axes; i++) {
        area *= taps[i];
        drop_taps_outside(b, &job.axis[i]);
    }
    bool integer = smg_type_kind(smg_onnx_type(n, 0)) == SMG_KIND_INT;
    double lowest = integer ? (double)INT32_MIN : -HUGE_VAL;
    smg_value x = windowed(b, smg_onnx_in(b, n, 0), &job, 2, average ? 0.0 : lowest);
    smg_value y = over_taps(b, average ? "sum" : "reduce_max", x, job.axes);
    if (average) y = averaged(b, y, &job, area, padding);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_global_pool(smg_onnx_build *b, const smg_onnx_node *n) {
    bool over[SMG_MAX_RANK] = {false};
    smg_value x = smg_onnx_in(b, n, 0);
    for (int i = 2; i < n->inputs[0]->rank; i++) over[i] = true;
    if (strcmp(n->op, "GlobalAveragePool") == 0) return smg_onnx_set(b, n, 0, smg_onnx_mean(b, x, over));
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_reduce(b, "reduce_max", x, over));
}
