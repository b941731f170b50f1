/* What convolutions and transposed ones have in common: the letters of their axes, and their groups where a graph has
 * no axis left for these. */
#include "onnx/onnx_part.h"

static void add(char *out, bool there, char letter) {
    size_t end = strlen(out);
    if (!there) return;
    out[end] = letter;
    out[end + 1] = 0;
}

void smg_onnx_conv_label(const onnx_conv_form *form, char out[ONNX_CONV_LABEL]) {
    static const char places[] = "opq", taps[] = "ijk";
    strcpy(out, "n");
    add(out, form->group > 1, 'g');
    add(out, form->channels, 'c');
    for (int i = 0; i < form->axes; i++) {
        add(out, true, places[i]);
        add(out, !form->tiles, taps[i]);
    }
    add(out, true, ',');
    add(out, form->group > 1, 'g');
    add(out, form->channels && form->turned, 'c');
    add(out, true, 'm');
    add(out, form->channels && !form->turned, 'c');
    for (int i = 0; i < form->axes; i++) add(out, true, taps[i]);
    strcat(out, "->n");
    add(out, form->group > 1, 'g');
    add(out, true, 'm');
    for (int i = 0; i < form->axes; i++) {
        add(out, true, places[i]);
        add(out, form->tiles, taps[i]);
    }
}

static smg_value group_of(smg_onnx_build *b, smg_value x, int axis, int64_t group, int64_t at) {
    smg_size each;
    if (!smg_size_divide_exact(b->sizes, smg_onnx_dim(b, x, axis), smg_onnx_int(b, group), &each))
        return (smg_value){0};
    return smg_onnx_part(b, x, axis, smg_size_mul(b->sizes, smg_onnx_int(b, at), each), each, 1);
}

static smg_status each_group(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, smg_value w,
                             const onnx_conv_form *form, onnx_convolve *convolve, const void *job, smg_value *out_y) {
    smg_value y[ONNX_CONV_GROUPS];
    onnx_conv_form one = *form;
    one.group = 1;
    if (form->group > ONNX_CONV_GROUPS)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "%lld groups of several channels over three axes; up to %d are known",
                             (long long)form->group, ONNX_CONV_GROUPS);
    for (int64_t i = 0; i < form->group; i++) {
        smg_value own = group_of(b, x, 1, form->group, i), by = group_of(b, w, 0, form->group, i);
        y[i] = own.id && by.id ? convolve(b, own, by, &one, job) : own;
        if (!y[i].id || !by.id) return smg_onnx_failed(b, n);
    }
    *out_y = smg_graph_concat(b->graph, (int)form->group, y, 1);
    return SMG_OK;
}

smg_status smg_onnx_in_groups(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, smg_value w,
                              const onnx_conv_form *form, bool single, onnx_convolve *convolve, const void *job,
                              smg_value *out_y) {
    bool crowded = form->axes == ONNX_CONV_AXES && form->group > 1;
    onnx_conv_form all = *form;
    if (!x.id || !w.id) return smg_onnx_failed(b, n);
    if (crowded && !single) return each_group(b, n, x, w, form, convolve, job, out_y);
    all.channels = form->channels && !crowded;
    all.tiles = form->tiles && !crowded;
    *out_y = convolve(b, x, w, &all, job);
    return out_y->id ? SMG_OK : smg_onnx_failed(b, n);
}
