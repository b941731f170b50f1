/* The discrete Fourier transform of one axis, as the product with its matrix: real and imaginary parts lie along the
 * last axis, so that one contraction goes over the elements and the parts. */
#include <math.h>

#include "onnx/onnx_part.h"

#define TWO_PI 6.283185307179586
#define MOST_NUMBERS (INT64_C(1) << 25) /* of the matrix */

typedef struct transform {
    int axis;
    int64_t in, parts;   /* elements that there are; 1 or 2: real or complex */
    int64_t length, out; /* what is transformed: cut off or filled up with zeros; and what is wanted of it */
    bool inverse;
} transform;

/* numbers[in][parts][out][2]: the share that a part of an element has in a part of the result. */
static void fill(const transform *t, float *numbers) {
    double sign = t->inverse ? -1 : 1, scale = t->inverse ? 1 / (double)t->length : 1;
    for (int64_t i = 0; i < t->in * t->parts * t->out; i++) {
        int64_t n = i / t->out / t->parts, k = i % t->out;
        bool imaginary = i / t->out % t->parts == 1, inside = n < t->length;
        double angle = TWO_PI * (double)(n * k % t->length) / (double)t->length;
        double along = inside ? scale * cos(angle) : 0, across = inside ? scale * sign * sin(angle) : 0;
        numbers[2 * i] = (float)(imaginary ? across : along);
        numbers[2 * i + 1] = (float)(imaginary ? along : -across);
    }
}

static smg_status find_length(smg_onnx_build *b, const smg_onnx_node *n, transform *io) {
    const smg_onnx_value *x = n->inputs[0];
    double length;
    bool onesided = smg_onnx_attr_int(b, n, "onesided", 0) != 0;
    if (!smg_size_is_const(b->sizes, x->dims[io->axis], &io->in) ||
        !smg_size_is_const(b->sizes, x->dims[x->rank - 1], &io->parts))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "axis %d of %s, which it transforms, must be a number", io->axis,
                             smg_onnx_shape_text(b, x));
    if (io->parts > 2 || (onesided && (io->parts == 2 || io->inverse)))
        return smg_onnx_fail(b, n, SMG_INVALID,
                             "elements of %s must be real or complex, and real where one side is wanted, forward",
                             smg_onnx_shape_text(b, x));
    SMG_TRY(smg_onnx_number(b, n, 1, (double)io->in, &length));
    if (!(length >= 1 && length <= (double)MOST_NUMBERS))
        return smg_onnx_fail(b, n, SMG_INVALID, "dft_length is %g, must be 1 to %lld", length, (long long)MOST_NUMBERS);
    io->length = (int64_t)length;
    io->out = onesided ? io->length / 2 + 1 : io->length;
    int64_t most = MOST_NUMBERS / (2 * io->parts);
    return io->in <= most / io->out
               ? SMG_OK
               : smg_onnx_fail(b, n, SMG_UNSUPPORTED, "a matrix of %lld x %lld for %s is more than %lld numbers",
                               (long long)io->in, (long long)io->out, smg_onnx_shape_text(b, x),
                               (long long)MOST_NUMBERS);
}

smg_status smg_onnx_convert_dft(smg_onnx_build *b, const smg_onnx_node *n) {
    transform t = {.inverse = smg_onnx_attr_int(b, n, "inverse", 0) != 0};
    int rank = n->inputs[0]->rank;
    if (rank < 2)
        return smg_onnx_fail(b, n, SMG_INVALID, "the input is %s, must have two axes",
                             smg_onnx_shape_text(b, n->inputs[0]));
    SMG_TRY(n->opset < 20 ? smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 1), rank, &t.axis)
                          : smg_onnx_axis_in(b, n, 2, -2, rank, &t.axis));
    if (t.axis == rank - 1) return smg_onnx_fail(b, n, SMG_INVALID, "axis %d has the parts of an element", t.axis);
    SMG_TRY(find_length(b, n, &t));
    const smg_size dims[] = {smg_onnx_int(b, t.in), smg_onnx_int(b, t.parts), smg_onnx_int(b, t.out),
                             smg_onnx_int(b, 2)};
    float *numbers = SMG_ARENA_ARRAY(b->arena, float, (size_t)(2 * t.in * t.parts * t.out));
    if (numbers == NULL) return smg_onnx_failed(b, n);
    fill(&t, numbers);
    onnx_lettered left = {.value = smg_onnx_in(b, n, 0), .letters = "abcdefgh"};
    onnx_lettered right = {.value = smg_graph_constant_of(b->graph, "", SMG_TYPE_F32, 4, dims, numbers)};
    char out[SMG_MAX_RANK + 1] = "abcdefgh";
    left.letters[rank] = out[rank] = '\0';
    left.letters[t.axis] = 'N';
    left.letters[rank - 1] = 'C';
    memcpy(right.letters, "NCKP", 5);
    out[t.axis] = 'K';
    out[rank - 1] = 'P';
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_multiply(b, n, left, right, out));
}
