/* GridSample: elements of images at places that are data, as deformable attention takes them. Each neighbour of a place
 * is gathered, and weighed where there is more than one. */
#include "onnx/onnx_part.h"

typedef struct sampling {
    bool nearest, zeros, corners; /* zeros: outside is 0, else the border */
} sampling;

/* Along one axis of the image: the place itself, the first neighbour of it and the extent less 1, all f32. */
typedef struct sampled_axis {
    smg_value place, first, last;
} sampled_axis;

static smg_status read_sampling(smg_onnx_build *b, const smg_onnx_node *n, sampling *out) {
    const char *mode = smg_onnx_attr_string(b, n, "mode", n->opset < 20 ? "bilinear" : "linear");
    const char *padding = smg_onnx_attr_string(b, n, "padding_mode", "zeros");
    bool linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    out->nearest = strcmp(mode, "nearest") == 0;
    out->zeros = strcmp(padding, "zeros") == 0;
    out->corners = smg_onnx_attr_int(b, n, "align_corners", 0) != 0;
    if (!linear && !out->nearest)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is \"%s\", linear and nearest are known", mode);
    if (!out->zeros && strcmp(padding, "border") != 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "padding_mode is \"%s\", zeros and border are known", padding);
    if (n->inputs[0]->rank != 4 || n->inputs[1]->rank != 4 || !smg_onnx_is_const(b, n->inputs[1]->dims[3], 2))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "the input is %s and the grid %s, must be [n, c, h, w] and [n, rows, columns, 2]",
                             smg_onnx_shape_text(b, n->inputs[0]), smg_onnx_shape_text(b, n->inputs[1]));
    return smg_onnx_equal(b, n, n->inputs[0]->dims[0], n->inputs[1]->dims[0], "images and grids");
}

/* Grid coordinates from -1 to 1 as places among `extent` elements, [n, 1, rows, columns]. */
static sampled_axis axis_of(smg_onnx_build *b, const smg_onnx_node *n, const sampling *s, int coordinate,
                            smg_size extent) {
    smg_value whole = smg_onnx_size_value(b, SMG_TYPE_F32, extent), grid = smg_onnx_in(b, n, 1);
    smg_value at = smg_onnx_part(b, grid, 3, smg_onnx_int(b, coordinate), smg_onnx_int(b, 1), 1);
    sampled_axis a = {.last = smg_onnx_with(b, "sub", whole, 1.0)};
    at = smg_onnx_with(b, "add", smg_onnx_insert(b, smg_onnx_remove(b, at, 3), 1), 1.0);
    at = smg_onnx_map2(b, "mul", at, s->corners ? a.last : whole);
    at = smg_onnx_with(b, "mul", s->corners ? at : smg_onnx_with(b, "sub", at, 1.0), 0.5);
    if (!s->zeros) at = smg_onnx_map2(b, "min", smg_onnx_with(b, "max", at, 0.0), a.last);
    a.place = at;
    a.first = smg_onnx_map1(b, s->nearest ? "round" : "floor", at);
    return a;
}

/* One neighbour: 0 the first, 1 the one behind it. */
typedef struct neighbour {
    smg_value index, inside, weight;
} neighbour;

static neighbour neighbour_of(smg_onnx_build *b, const sampled_axis *a, int which) {
    smg_value at = smg_onnx_with(b, "add", a->first, (double)which);
    smg_value held = smg_onnx_map2(b, "min", smg_onnx_with(b, "max", at, 0.0), a->last);
    smg_value gap = smg_onnx_map2(b, "sub", a->place, a->first);
    smg_value one = smg_onnx_like(b, gap, 1.0);
    return (neighbour){.index = smg_onnx_to(b, held, SMG_TYPE_I32),
                       .inside = smg_onnx_map2(b, "eq", at, held),
                       .weight = which == 0 ? smg_onnx_map2(b, "sub", one, gap) : gap};
}

static smg_value element_at(smg_onnx_build *b, const smg_onnx_node *n, const sampling *s, smg_value image, neighbour y,
                            neighbour x) {
    const smg_onnx_value *in = n->inputs[0];
    const smg_value at[] = {smg_onnx_count(b, in->dims[0], 0, 4), smg_onnx_count(b, in->dims[1], 1, 4), y.index,
                            x.index};
    for (int i = 0; i < 4; i++)
        if (!at[i].id || !image.id) return (smg_value){0};
    smg_value element = smg_graph_take_at(b->graph, image, 4, at);
    if (!s->zeros) return element;
    smg_value inside = smg_onnx_map2(b, "and", y.inside, x.inside);
    return smg_onnx_select(b, inside, element, smg_onnx_like(b, element, 0.0));
}

smg_status smg_onnx_convert_grid_sample(smg_onnx_build *b, const smg_onnx_node *n) {
    sampling s;
    smg_value sum = {0};
    SMG_TRY(read_sampling(b, n, &s));
    smg_value image = smg_onnx_in(b, n, 0);
    sampled_axis x = axis_of(b, n, &s, 0, n->inputs[0]->dims[3]), y = axis_of(b, n, &s, 1, n->inputs[0]->dims[2]);
    for (int i = 0; i < (s.nearest ? 1 : 4); i++) {
        neighbour row = neighbour_of(b, &y, i / 2), column = neighbour_of(b, &x, i % 2);
        smg_value part = element_at(b, n, &s, image, row, column);
        if (!s.nearest) part = smg_onnx_map2(b, "mul", part, smg_onnx_map2(b, "mul", row.weight, column.weight));
        sum = i == 0 ? part : smg_onnx_map2(b, "add", sum, part);
    }
    return smg_onnx_set_like(b, n, 0, 0, sum);
}
