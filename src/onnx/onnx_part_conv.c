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
    add(out, form->grouped, 'g');
    add(out, form->channels, 'c');
    for (int i = 0; i < form->axes; i++) {
        add(out, true, places[i]);
        add(out, !form->tiles, taps[i]);
    }
    add(out, true, ',');
    add(out, form->grouped, 'g');
    add(out, form->channels && form->turned, 'c');
    add(out, true, 'm');
    add(out, form->channels && !form->turned, 'c');
    for (int i = 0; i < form->axes; i++) add(out, true, taps[i]);
    strcat(out, "->n");
    add(out, form->grouped, 'g');
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

smg_status smg_onnx_each_group(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, smg_value w, int64_t group,
                               onnx_convolve *convolve, const void *job, smg_value *out_y) {
    if (group > ONNX_CONV_GROUPS)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "%lld groups of several channels over three axes; up to %d are known", (long long)group,
                             ONNX_CONV_GROUPS);
    smg_value y[ONNX_CONV_GROUPS];
    for (int64_t i = 0; i < group; i++) {
        y[i] = convolve(b, group_of(b, x, 1, group, i), group_of(b, w, 0, group, i), job);
        if (!y[i].id) return smg_onnx_failed(b, n);
    }
    *out_y = smg_graph_concat(b->graph, (int)group, y, 1);
    return SMG_OK;
}
