/* GridSample: elements of images at places that are data, as deformable attention takes them. Each neighbour of a place
 * is gathered, and weighed where there is more than one. */
#include "onnx/onnx_part.h"

#define MAX_AXES 3
#define MAX_TAPS 4

typedef enum outside { OUTSIDE_ZERO, OUTSIDE_BORDER, OUTSIDE_REFLECTED } outside;

typedef struct sampling {
    int axes;     /* spatial: two or three */
    int taps;     /* neighbours along each: 1 the nearest, 2 linear, 4 cubic */
    bool corners; /* -1 and 1 are the middles of the outermost elements, not their far ends */
    outside outside;
} sampling;

/* Along one axis of the image: the place itself, the neighbour in front of it and the extent less 1, all f32. */
typedef struct sampled_axis {
    smg_value place, first, last;
} sampled_axis;

static smg_status read_mode(smg_onnx_build *b, const smg_onnx_node *n, sampling *out) {
    static const struct {
        const char *word;
        int taps;
    } modes[] = {{"nearest", 1}, {"linear", 2}, {"bilinear", 2}, {"cubic", 4}, {"bicubic", 4}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = smg_onnx_attr_string(b, n, "mode", n->opset < 20 ? "bilinear" : "linear");
    const char *padding = smg_onnx_attr_string(b, n, "padding_mode", "zeros");
    int found = -1;
    for (size_t i = 0; i < SMG_COUNT_OF(modes); i++)
        if (strcmp(mode, modes[i].word) == 0) out->taps = modes[i].taps;
    for (int i = 0; i < (int)SMG_COUNT_OF(paddings); i++)
        if (strcmp(padding, paddings[i]) == 0) found = i;
    if (out->taps == 0) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is \"%s\"", mode);
    if (found < 0) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "padding_mode is \"%s\"", padding);
    out->outside = (outside)found;
    return SMG_OK;
}

static smg_status read_sampling(smg_onnx_build *b, const smg_onnx_node *n, sampling *out) {
    const smg_onnx_value *image = n->inputs[0], *grid = n->inputs[1];
    *out = (sampling){.axes = image->rank - 2, .corners = smg_onnx_attr_int(b, n, "align_corners", 0) != 0};
    SMG_TRY(read_mode(b, n, out));
    bool good = out->axes >= 2 && out->axes <= MAX_AXES && grid->rank == image->rank &&
                smg_onnx_is_const(b, grid->dims[grid->rank - 1], out->axes);
    if (!good)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "the input is %s and the grid %s, must be [n, c, h, w] and [n, rows, columns, 2], or the "
                             "same with an axis more",
                             smg_onnx_shape_text(b, image), smg_onnx_shape_text(b, grid));
    if (out->taps == 4 && out->axes > 2)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is cubic over %d axes; over two it is known", out->axes);
    return smg_onnx_equal(b, n, image->dims[0], grid->dims[0], "images and grids");
}

/* Back and forth between the ends of the axis, which are the middles of its outermost elements or half of one further:
 * low + range - |t - range|, t from low on by twice the range. */
static smg_value reflected(smg_onnx_build *b, const sampling *s, const sampled_axis *a, smg_value at) {
    double low = s->corners ? 0.0 : -0.5;
    smg_value range = smg_onnx_with(b, "max", smg_onnx_with(b, "sub", a->last, 2.0 * low), 1.0);
    smg_value twice = smg_onnx_with(b, "mul", range, 2.0), t = smg_onnx_with(b, "sub", at, low);
    smg_value turns = smg_onnx_map1(b, "floor", smg_onnx_map2(b, "div", t, twice));
    t = smg_onnx_map2(b, "sub", t, smg_onnx_map2(b, "mul", turns, twice));
    smg_value beyond = smg_onnx_map1(b, "abs", smg_onnx_map2(b, "sub", t, range));
    return smg_onnx_with(b, "add", smg_onnx_map2(b, "sub", range, beyond), low);
}

static smg_value held(smg_onnx_build *b, const sampled_axis *a, smg_value at) {
    return smg_onnx_map2(b, "min", smg_onnx_with(b, "max", at, 0.0), a->last);
}

/* Grid coordinates from -1 to 1 as places among `extent` elements, [n, 1, rows, columns]. */
static sampled_axis axis_of(smg_onnx_build *b, const smg_onnx_node *n, const sampling *s, int coordinate,
                            smg_size extent) {
    smg_value whole = smg_onnx_size_value(b, SMG_TYPE_F32, extent), grid = smg_onnx_in(b, n, 1);
    int last = s->axes + 1;
    smg_value at = smg_onnx_part(b, grid, last, smg_onnx_int(b, coordinate), smg_onnx_int(b, 1), 1);
    sampled_axis a = {.last = smg_onnx_with(b, "sub", whole, 1.0)};
    at = smg_onnx_with(b, "add", smg_onnx_insert(b, smg_onnx_remove(b, at, last), 1), 1.0);
    at = smg_onnx_map2(b, "mul", at, s->corners ? a.last : whole);
    at = smg_onnx_with(b, "mul", s->corners ? at : smg_onnx_with(b, "sub", at, 1.0), 0.5);
    if (s->taps == 1) at = smg_onnx_map1(b, "round", at);
    bool moves = s->taps < 4; /* of a cubic the neighbours do, each by itself */
    if (moves && s->outside == OUTSIDE_BORDER) at = held(b, &a, at);
    if (moves && s->outside == OUTSIDE_REFLECTED) at = reflected(b, s, &a, at);
    a.place = at;
    a.first = smg_onnx_map1(b, "floor", at);
    return a;
}

/* One neighbour. */
typedef struct neighbour {
    smg_value index, inside, weight;
} neighbour;

#define CUBIC (-0.75) /* the slope of the curve one element away, as the standard has it */

/* Of the neighbour `which` elements behind the first one, where the place is `gap` behind that. */
static smg_value weight_of(smg_onnx_build *b, const sampling *s, smg_value gap, int which) {
    smg_value away = smg_onnx_map1(b, "abs", smg_onnx_with(b, "sub", gap, (double)which));
    if (s->taps == 4) return smg_onnx_cubic(b, away, CUBIC, which < 0 || which > 1);
    return smg_onnx_map2(b, "sub", smg_onnx_like(b, away, 1.0), away);
}

/* Tap 0 is the first neighbour, of four the one in front of that. */
static neighbour neighbour_of(smg_onnx_build *b, const sampling *s, const sampled_axis *a, int tap) {
    int which = s->taps == 4 ? tap - 1 : tap;
    smg_value at = smg_onnx_with(b, "add", a->first, (double)which);
    smg_value within = held(b, a, s->outside == OUTSIDE_REFLECTED && s->taps == 4 ? reflected(b, s, a, at) : at);
    neighbour one = {.index = smg_onnx_to(b, within, SMG_TYPE_I32)};
    if (s->outside == OUTSIDE_ZERO) one.inside = smg_onnx_map2(b, "eq", at, within);
    if (s->taps > 1) one.weight = weight_of(b, s, smg_onnx_map2(b, "sub", a->place, a->first), which);
    return one;
}

/* The element at one neighbour along each axis, times their weights. */
static smg_value element_at(smg_onnx_build *b, const smg_onnx_node *n, const sampling *s, smg_value image,
                            const neighbour *const along[]) {
    const smg_onnx_value *in = n->inputs[0];
    smg_value at[2 + MAX_AXES] = {smg_onnx_count(b, in->dims[0], 0, in->rank),
                                  smg_onnx_count(b, in->dims[1], 1, in->rank)};
    for (int i = 0; i < s->axes; i++) at[2 + i] = along[i]->index;
    for (int i = 0; i < in->rank; i++)
        if (!at[i].id || !image.id) return (smg_value){0};
    smg_value element = smg_graph_take_at(b->graph, image, in->rank, at);
    smg_value inside = along[0]->inside, weight = along[0]->weight;
    for (int i = 1; i < s->axes; i++) {
        if (s->outside == OUTSIDE_ZERO) inside = smg_onnx_map2(b, "and", inside, along[i]->inside);
        if (s->taps > 1) weight = smg_onnx_map2(b, "mul", weight, along[i]->weight);
    }
    if (s->outside == OUTSIDE_ZERO) element = smg_onnx_select(b, inside, element, smg_onnx_like(b, element, 0.0));
    return s->taps > 1 ? smg_onnx_map2(b, "mul", element, weight) : element;
}

/* The grid's last coordinate is of the image's first axis. */
smg_status smg_onnx_convert_grid_sample(smg_onnx_build *b, const smg_onnx_node *n) {
    sampling s;
    neighbour tap[MAX_AXES][MAX_TAPS];
    smg_value sum = {0};
    int count = 1;
    SMG_TRY(read_sampling(b, n, &s));
    smg_value image = smg_onnx_in(b, n, 0);
    for (int i = 0; i < s.axes; i++) {
        sampled_axis axis = axis_of(b, n, &s, s.axes - 1 - i, n->inputs[0]->dims[2 + i]);
        for (int t = 0; t < s.taps; t++) tap[i][t] = neighbour_of(b, &s, &axis, t);
        count *= s.taps;
    }
    for (int i = 0; i < count; i++) {
        const neighbour *along[MAX_AXES];
        for (int k = s.axes - 1, rest = i; k >= 0; k--, rest /= s.taps) along[k] = &tap[k][rest % s.taps];
        smg_value part = element_at(b, n, &s, image, along);
        sum = i == 0 ? part : smg_onnx_map2(b, "add", sum, part);
    }
    return smg_onnx_set_like(b, n, 0, 0, sum);
}
