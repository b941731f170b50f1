/* ConvTranspose. Every element of the input spreads over the window of its place: seen from the result, a
 * convolution with the taps in reverse order over the input with stride-1 zeros behind each element. Where
 * the windows tile the result, it is a product and a change of order instead. */
#include "onnx/onnx_part.h"

typedef struct spread {
    smg_size extent, places, before; /* of the input, of the result; what is cut off in front */
    int64_t taps, stride, dilation;
} spread;

typedef struct deconv {
    int axes;
    int64_t group;
    bool tiles;
    spread axis[ONNX_CONV_AXES];
} deconv;

/* The extent without anything cut off: (extent - 1) * stride + taps, spread, + what is asked for behind. */
static smg_size whole(smg_onnx_build *b, const spread *a, int64_t behind) {
    smg_size last =
        smg_size_mul(b->sizes, smg_size_sub(b->sizes, a->extent, smg_onnx_int(b, 1)), smg_onnx_int(b, a->stride));
    return smg_size_add(b->sizes, last, smg_onnx_int(b, a->dilation * (a->taps - 1) + 1 + behind));
}

/* pads, or an extent that is asked for: output_shape, or a multiple of the input's. */
static smg_status count_places(smg_onnx_build *b, const smg_onnx_node *n, deconv *job) {
    int64_t pads[2 * ONNX_CONV_AXES], behind[ONNX_CONV_AXES], shape[ONNX_CONV_AXES];
    const char *automatic = smg_onnx_attr_string(b, n, "auto_pad", "NOTSET");
    bool upper = strcmp(automatic, "SAME_UPPER") == 0, same = upper || strcmp(automatic, "SAME_LOWER") == 0;
    SMG_TRY(smg_onnx_attr_counts(b, n, "pads", 2 * job->axes, 0, 0, pads));
    SMG_TRY(smg_onnx_attr_counts(b, n, "output_padding", job->axes, 0, 0, behind));
    SMG_TRY(smg_onnx_attr_counts(b, n, "output_shape", job->axes, 0, 0, shape));
    for (int i = 0; i < job->axes; i++) {
        spread *a = &job->axis[i];
        smg_size all = whole(b, a, behind[i]), two = smg_onnx_int(b, 2);
        a->before = smg_onnx_int(b, pads[i]);
        a->places = smg_size_sub(b->sizes, all, smg_onnx_int(b, pads[i] + pads[job->axes + i]));
        if (shape[i] > 0 || same) {
            a->places = shape[i] > 0 ? smg_onnx_int(b, shape[i])
                                     : smg_size_mul(b->sizes, a->extent, smg_onnx_int(b, a->stride));
            smg_size cut = smg_size_max(b->sizes, smg_size_sub(b->sizes, all, a->places), SMG_SIZE_ZERO);
            smg_size half = smg_size_div(b->sizes, cut, two);
            a->before = upper ? half : smg_size_sub(b->sizes, cut, half);
        }
        if (a->places < 0 || a->before < 0) return smg_onnx_failed(b, n);
        smg_size tiled = smg_size_mul(b->sizes, a->extent, smg_onnx_int(b, a->stride));
        job->tiles = job->tiles && a->taps == a->stride && a->dilation == 1 && a->places == tiled &&
                     smg_onnx_is_const(b, a->before, 0);
    }
    return SMG_OK;
}

static smg_status read_deconv(smg_onnx_build *b, const smg_onnx_node *n, deconv *out) {
    const smg_onnx_value *x = n->inputs[0], *w = n->inputs[1];
    int64_t strides[ONNX_CONV_AXES], dilations[ONNX_CONV_AXES], kernel[ONNX_CONV_AXES], inputs = 0;
    *out = (deconv){.axes = x->rank - 2, .group = smg_onnx_attr_int(b, n, "group", 1), .tiles = true};
    if (out->axes < 1 || out->axes > ONNX_CONV_AXES)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "the input is %s; one to three axes behind [batch, channels] are known",
                             smg_onnx_shape_text(b, x));
    bool good = w->rank == x->rank && out->group >= 1 && smg_size_is_const(b->sizes, w->dims[0], &inputs) &&
                inputs % out->group == 0;
    SMG_TRY(smg_onnx_attr_counts(b, n, "strides", out->axes, 1, 1, strides));
    SMG_TRY(smg_onnx_attr_counts(b, n, "dilations", out->axes, 1, 1, dilations));
    SMG_TRY(smg_onnx_attr_counts(b, n, "kernel_shape", out->axes, 0, 0, kernel));
    for (int i = 0; good && i < out->axes; i++) {
        spread *a = &out->axis[i];
        *a = (spread){.extent = x->dims[2 + i], .stride = strides[i], .dilation = dilations[i]};
        good = smg_size_is_const(b->sizes, w->dims[2 + i], &a->taps) && a->taps <= INT32_MAX &&
               (kernel[i] == 0 || kernel[i] == a->taps);
    }
    if (!good)
        return smg_onnx_fail(b, n, SMG_INVALID, "weights %s do not fit the input %s in %lld groups",
                             smg_onnx_shape_text(b, w), smg_onnx_shape_text(b, x), (long long)out->group);
    SMG_TRY(smg_onnx_equal(b, n, x->dims[1], w->dims[0], "the channels of the input and of the weights"));
    return count_places(b, n, out);
}

/* The axis of the input, with `axis` its place, as (places, taps); the weights' axis in reverse order. */
static smg_value windows_of(smg_onnx_build *b, smg_value x, const spread *a, int axis) {
    smg_size begin = smg_size_sub(b->sizes, a->before, smg_onnx_int(b, a->dilation * (a->taps - 1)));
    return smg_onnx_window(b, smg_onnx_apart(b, x, axis, a->stride),
                           &(smg_window){.axis = axis,
                                         .begin = begin,
                                         .count = a->places,
                                         .taps = smg_onnx_int(b, a->taps),
                                         .step = 1,
                                         .dilation = a->dilation,
                                         .fill = 0.0});
}

static smg_value reversed(smg_onnx_build *b, smg_value w, int axis) {
    smg_size taps = smg_onnx_dim(b, w, axis);
    if (!w.id || smg_onnx_is_const(b, taps, 1)) return w;
    return smg_onnx_part(b, w, axis, smg_size_sub(b->sizes, taps, smg_onnx_int(b, 1)), taps, -1);
}

static smg_value deconvolve(smg_onnx_build *b, smg_value x, smg_value w, const onnx_conv_form *form, const void *user) {
    const deconv *job = user;
    bool grouped = form->group > 1;
    int first = 1 + grouped + form->channels; /* axis of places */
    char label[ONNX_CONV_LABEL];
    if (grouped && form->channels) {
        smg_size g = smg_onnx_int(b, form->group);
        smg_size parts[2] = {g, smg_size_div(b->sizes, smg_onnx_dim(b, w, 0), g)};
        x = smg_onnx_divide(b, x, 1, 2, parts);
        w = smg_onnx_divide(b, w, 0, 2, parts);
    }
    for (int i = 0; i < form->axes && !form->tiles; i++) {
        x = windows_of(b, x, &job->axis[i], first + 2 * i);
        w = reversed(b, w, first + i);
    }
    if (!x.id || !w.id) return (smg_value){0};
    smg_onnx_conv_label(form, label);
    smg_value y = smg_graph_contract(b->graph, label, x, w);
    for (int i = 0; i < form->axes && form->tiles; i++) y = smg_onnx_merge(b, y, 2 + grouped + i, 2);
    return grouped ? smg_onnx_merge(b, y, 1, 2) : y;
}

smg_status smg_onnx_convert_deconv(smg_onnx_build *b, const smg_onnx_node *n) {
    deconv job;
    SMG_TRY(read_deconv(b, n, &job));
    smg_value y, x = smg_onnx_in(b, n, 0), w = smg_onnx_in(b, n, 1);
    const onnx_conv_form form = {
        .axes = job.axes, .group = job.group, .channels = true, .turned = true, .tiles = job.tiles};
    bool single = smg_onnx_is_const(b, n->inputs[0]->dims[1], job.group);
    SMG_TRY(smg_onnx_in_groups(b, n, x, w, &form, single, deconvolve, &job, &y));
    if (smg_onnx_has(n, 2))
        y = smg_onnx_map2(b, "add", y, smg_onnx_along(b, smg_onnx_in(b, n, 2), 1, n->inputs[0]->rank));
    return smg_onnx_set(b, n, 0, y);
}
