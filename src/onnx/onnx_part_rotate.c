/* Pairs of elements that are turned by angles: rotary positions, wherever an operator has them. */
#include "onnx/onnx_part.h"

/* The first or the second of each pair. */
static smg_value half_of(smg_onnx_build *b, smg_value x, smg_size half, bool interleaved, int which) {
    smg_size begin = which == 0 ? smg_onnx_int(b, 0) : half;
    if (interleaved) begin = smg_onnx_int(b, which);
    return smg_onnx_part(b, x, 3, begin, half, interleaved ? 2 : 1);
}

smg_value smg_onnx_rotate(smg_onnx_build *b, smg_value x, const onnx_angles *by) {
    smg_value first = half_of(b, x, by->half, by->interleaved, 0), y;
    smg_value second = half_of(b, x, by->half, by->interleaved, 1), pieces[3];
    pieces[0] =
        smg_onnx_map2(b, "sub", smg_onnx_map2(b, "mul", first, by->cosine), smg_onnx_map2(b, "mul", second, by->sine));
    pieces[1] =
        smg_onnx_map2(b, "add", smg_onnx_map2(b, "mul", first, by->sine), smg_onnx_map2(b, "mul", second, by->cosine));
    if (!pieces[0].id || !pieces[1].id) return (smg_value){0};
    smg_size width = smg_onnx_dim(b, x, 3), turned = smg_size_mul(b->sizes, by->half, smg_onnx_int(b, 2));
    bool rest = turned != width;
    if (rest) pieces[2] = smg_onnx_part(b, x, 3, turned, smg_size_sub(b->sizes, width, turned), 1);
    if (!by->interleaved) return smg_graph_concat(b->graph, rest ? 3 : 2, pieces, 3);
    for (int i = 0; i < 2; i++) pieces[i] = smg_onnx_insert(b, pieces[i], 4);
    y = smg_onnx_merge(b, smg_graph_concat(b->graph, 2, pieces, 4), 3, 2);
    if (!rest || !y.id || !pieces[2].id) return y;
    return smg_graph_concat(b->graph, 2, (smg_value[]){y, pieces[2]}, 3);
}
