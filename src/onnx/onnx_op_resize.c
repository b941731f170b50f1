/* Resize: along each axis whose extent changes, nearest picks elements at known places, linear and cubic are
 * products with a matrix of weights that is computed here. Where an extent is no number, places are fractions of
 * integers that the graph computes, and the neighbours of each are gathered and weighed. */
#include <math.h>

#include "onnx/onnx_part.h"

typedef enum resize_kind { NEAREST, LINEAR, CUBIC } resize_kind;

typedef struct resizing {
    resize_kind kind;
    const char *places, *rounding; /* coordinate_transformation_mode, nearest_mode */
    double cubic;                  /* cubic_coeff_a */
    bool inside_only;              /* exclude_outside */
    bool smooth;                   /* antialias: a smaller image is weighed over all that an element stands for */
} resizing;

/* ---- attributes ----------------------------------------------------------------------------- */

static bool is_one_of(const char *word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) return true;
    return false;
}

static smg_status read_resizing(smg_onnx_build *b, const smg_onnx_node *n, resizing *out) {
    static const char *const kinds[] = {"nearest", "linear", "cubic"};
    static const char *const places[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                         "half_pixel_symmetric"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    const char *kind = smg_onnx_attr_string(b, n, "mode", "nearest");
    const char *policy = smg_onnx_attr_string(b, n, "keep_aspect_ratio_policy", "stretch");
    out->places = smg_onnx_attr_string(b, n, "coordinate_transformation_mode", "half_pixel");
    out->rounding = smg_onnx_attr_string(b, n, "nearest_mode", "round_prefer_floor");
    out->cubic = smg_onnx_attr_float(b, n, "cubic_coeff_a", -0.75);
    out->inside_only = smg_onnx_attr_int(b, n, "exclude_outside", 0) != 0;
    out->kind = strcmp(kind, "linear") == 0 ? LINEAR : strcmp(kind, "cubic") == 0 ? CUBIC : NEAREST;
    if (!is_one_of(kind, kinds, SMG_COUNT_OF(kinds)))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "mode is \"%s\"", kind);
    if (!is_one_of(out->places, places, SMG_COUNT_OF(places)))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "coordinate_transformation_mode is \"%s\"", out->places);
    if (!is_one_of(out->rounding, roundings, SMG_COUNT_OF(roundings)))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "nearest_mode is \"%s\"", out->rounding);
    if (strcmp(policy, "stretch") != 0)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "keep_aspect_ratio_policy is \"%s\"", policy);
    out->smooth = smg_onnx_attr_int(b, n, "antialias", 0) != 0 && out->kind != NEAREST;
    return SMG_OK;
}

/* ---- one axis ------------------------------------------------------------------------------- */

typedef struct resize_axis {
    int64_t in, out;
    double scale;
} resize_axis;

/* Where element `at` of the result lies in the input. */
static double place_of(const resizing *r, const resize_axis *a, int64_t at) {
    double x = (double)at, wide = a->scale * (double)a->in;
    if (strcmp(r->places, "asymmetric") == 0) return x / a->scale;
    if (strcmp(r->places, "align_corners") == 0)
        return a->out == 1 ? 0.0 : x * (double)(a->in - 1) / (double)(a->out - 1);
    if (strcmp(r->places, "pytorch_half_pixel") == 0 && a->out == 1) return 0.0;
    double centred = (x + 0.5) / a->scale - 0.5;
    if (strcmp(r->places, "half_pixel_symmetric") != 0) return centred;
    return (double)a->in / 2.0 * (1.0 - (double)a->out / wide) + centred;
}

static int64_t nearest(const resizing *r, const resize_axis *a, int64_t at) {
    double x = place_of(r, a, at), rounded = floor(x);
    bool half = x - rounded >= 0.5 && x - rounded <= 0.5;
    if (strcmp(r->rounding, "ceil") == 0)
        rounded = ceil(x);
    else if (strcmp(r->rounding, "floor") != 0 && x - rounded >= 0.5)
        rounded += half && strcmp(r->rounding, "round_prefer_floor") == 0 ? 0.0 : 1.0;
    int64_t index = (int64_t)rounded;
    if (index < 0) return 0;
    return index < a->in ? index : a->in - 1;
}

static double cubic_weight(double a, double distance) {
    double x = fabs(distance);
    if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a : 0.0;
}

/* Column `at` of weights[in][out]. Neighbours outside are the border, or left out. */
static void weigh(const resizing *r, const resize_axis *a, int64_t at, float *weights) {
    double x = place_of(r, a, at), sum = 0.0, near = r->smooth && a->scale < 1.0 ? a->scale : 1.0;
    double reach = (r->kind == LINEAR ? 1.0 : 2.0) / near;
    int64_t first = (int64_t)floor(x - reach) + 1, end = (int64_t)ceil(x + reach);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = first; i < end; i++) {
            double distance = (x - (double)i) * near;
            double weight = r->kind == LINEAR ? 1.0 - fabs(distance) : cubic_weight(r->cubic, distance);
            if (r->inside_only && (i < 0 || i >= a->in)) continue;
            int64_t from = i < 0 ? 0 : i < a->in ? i : a->in - 1;
            if (pass == 0)
                sum += weight;
            else
                weights[from * a->out + at] += (float)(r->inside_only || r->smooth ? weight / sum : weight);
        }
    }
}

static smg_value resize_axis_of(smg_onnx_build *b, const smg_onnx_node *n, const resizing *r, smg_value x, int axis,
                                const resize_axis *a) {
    smg_size dims[2] = {smg_onnx_int(b, a->in), smg_onnx_int(b, a->out)};
    onnx_lettered left = {.value = x, .letters = "abcdefgh"};
    char out[SMG_MAX_RANK + 1] = "abcdefgh";
    int rank = smg_onnx_rank(b, x);
    if (r->kind == NEAREST) {
        int32_t *indices = SMG_ARENA_ARRAY(b->arena, int32_t, (size_t)a->out);
        for (int64_t i = 0; indices && i < a->out; i++) indices[i] = (int32_t)nearest(r, a, i);
        if (!indices || !x.id) return (smg_value){0};
        return smg_graph_take(b->graph, x, smg_graph_constant_of(b->graph, "", SMG_TYPE_I32, 1, &dims[1], indices),
                              axis);
    }
    float *weights = SMG_ARENA_ARRAY(b->arena, float, (size_t)(a->in * a->out));
    for (int64_t i = 0; weights && i < a->out; i++) weigh(r, a, i, weights);
    if (!weights || !x.id) return (smg_value){0};
    onnx_lettered right = {.value = smg_graph_constant_of(b->graph, "", SMG_TYPE_F32, 2, dims, weights)};
    memcpy(right.letters, "KN", 3);
    left.letters[rank] = out[rank] = '\0';
    left.letters[axis] = 'K';
    out[axis] = 'N';
    return smg_onnx_multiply(b, n, left, right, out);
}

/* ---- extents that are no numbers ---------------------------------------------------------------- */

/* Element i of the result lies at (step * i + begin) / unit of the input. */
typedef struct resize_places {
    smg_size in, out, step, begin, unit;
} resize_places;

/* A scale as numerator and denominator; false for what no small ones give. */
static bool find_fraction(float scale, int64_t *out_top, int64_t *out_bottom) {
    for (int64_t bottom = 1; bottom <= 64; bottom++) {
        double top = round((double)scale * (double)bottom);
        if (top < 1.0 || top > 4096.0 || (float)(top / (double)bottom) < scale || (float)(top / (double)bottom) > scale)
            continue;
        *out_top = (int64_t)top;
        *out_bottom = bottom;
        return true;
    }
    return false;
}

static smg_status read_places(smg_onnx_build *b, const smg_onnx_node *n, const resizing *r, int axis,
                              const float *scale, const smg_size *size, resize_places *out) {
    smg_sizes *s = b->sizes;
    int64_t top = 0, bottom = 1;
    smg_size one = smg_onnx_int(b, 1), two = smg_onnx_int(b, 2);
    out->in = n->inputs[0]->dims[axis];
    bool good = size || find_fraction(*scale, &top, &bottom);
    smg_size by = size ? *size : smg_onnx_int(b, top), of = size ? out->in : smg_onnx_int(b, bottom);
    out->out = size ? *size : smg_size_div(s, smg_size_mul(s, out->in, by), of);
    bool symmetric = strcmp(r->places, "half_pixel_symmetric") == 0 && !size && top % bottom != 0;
    if (!good || symmetric || r->inside_only || r->smooth)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "axis %d, %s elements, is resized to %s elements by %s%s%s", axis,
                             smg_onnx_size_text(b, out->in), good ? smg_onnx_size_text(b, out->out) : "unknown",
                             r->places, r->inside_only ? " with exclude_outside" : "",
                             r->smooth ? " with antialias" : "");
    if (strcmp(r->places, "align_corners") == 0) {
        *out = (resize_places){out->in, out->out, smg_size_sub(s, out->in, one), SMG_SIZE_ZERO,
                               smg_size_max(s, smg_size_sub(s, out->out, one), one)};
    } else if (strcmp(r->places, "asymmetric") == 0) {
        *out = (resize_places){out->in, out->out, of, SMG_SIZE_ZERO, by};
    } else {
        /* For one element alone PyTorch begins at the first. */
        smg_size any = smg_size_min(s, smg_size_sub(s, out->out, one), one);
        if (strcmp(r->places, "pytorch_half_pixel") != 0) any = one;
        *out = (resize_places){out->in, out->out, smg_size_mul(s, smg_size_mul(s, two, of), any),
                               smg_size_mul(s, smg_size_sub(s, of, by), any), smg_size_mul(s, two, by)};
    }
    return out->unit < 0 || out->begin < 0 || out->step < 0 ? smg_onnx_failed(b, n) : SMG_OK;
}

static smg_value whole(smg_onnx_build *b, smg_size size) {
    return smg_onnx_size_value(b, SMG_TYPE_I32, size);
}

/* floor((factor * place + add) / (factor * unit)), also where the sum is above -8 units. */
static smg_value floor_of(smg_onnx_build *b, const resize_places *p, int64_t factor, smg_size add) {
    smg_sizes *s = b->sizes;
    smg_size by = smg_onnx_int(b, factor), unit = smg_size_mul(s, by, p->unit), eight = smg_onnx_int(b, 8);
    smg_size begin = smg_size_add(s, smg_size_mul(s, by, p->begin), add);
    begin = smg_size_add(s, begin, smg_size_mul(s, eight, unit));
    smg_value at = smg_onnx_count(b, p->out, 0, 1);
    at = smg_onnx_map2(b, "mul", at, whole(b, smg_size_mul(s, by, p->step)));
    at = smg_onnx_map2(b, "div", smg_onnx_map2(b, "add", at, whole(b, begin)), whole(b, unit));
    return smg_onnx_with(b, "sub", at, 8.0);
}

/* Elements of x along the axis, the border where the index is outside. */
static smg_value take_inside(smg_onnx_build *b, smg_value x, int axis, smg_value index, smg_size extent) {
    smg_value last = whole(b, smg_size_sub(b->sizes, extent, smg_onnx_int(b, 1)));
    index = smg_onnx_map2(b, "min", smg_onnx_with(b, "max", index, 0.0), last);
    return x.id && index.id ? smg_graph_take(b->graph, x, index, axis) : (smg_value){0};
}

static smg_value take_nearest(smg_onnx_build *b, const resizing *r, smg_value x, int axis, const resize_places *p) {
    smg_sizes *s = b->sizes;
    smg_size one = smg_onnx_int(b, 1), index = SMG_SIZE_ZERO;
    bool halves = strcmp(r->rounding, "round_prefer_floor") == 0 || strcmp(r->rounding, "round_prefer_ceil") == 0;
    if (strcmp(r->rounding, "round_prefer_floor") == 0 || strcmp(r->rounding, "ceil") == 0)
        index = smg_size_sub(s, p->unit, one);
    else if (halves)
        index = p->unit;
    return take_inside(b, x, axis, floor_of(b, p, halves ? 2 : 1, index), p->in);
}

/* The weight of the neighbour whose distance is that; of cubics also beyond 1. */
static smg_value weight_of(smg_onnx_build *b, const resizing *r, smg_value distance, bool far) {
    if (r->kind == LINEAR) return smg_onnx_with(b, "add", smg_onnx_map1(b, "neg", distance), 1.0);
    return smg_onnx_cubic(b, distance, r->cubic, far);
}

static smg_value weigh_neighbours(smg_onnx_build *b, const resizing *r, smg_value x, int axis, const resize_places *p) {
    int before = r->kind == LINEAR ? 0 : 1, after = r->kind == LINEAR ? 1 : 2, rank = smg_onnx_rank(b, x);
    smg_value first = floor_of(b, p, 1, SMG_SIZE_ZERO), sum = {0};
    /* What is left of the place, as a share of the unit. */
    smg_value rest = smg_onnx_map2(b, "mul", smg_onnx_count(b, p->out, 0, 1), whole(b, p->step));
    rest = smg_onnx_map2(b, "add", rest, whole(b, p->begin));
    rest = smg_onnx_map2(b, "sub", rest, smg_onnx_map2(b, "mul", first, whole(b, p->unit)));
    rest = smg_onnx_map2(b, "div", smg_onnx_to(b, rest, SMG_TYPE_F32), smg_onnx_size_value(b, SMG_TYPE_F32, p->unit));
    for (int tap = -before; tap <= after; tap++) {
        smg_value distance = tap <= 0 ? smg_onnx_with(b, "add", rest, (double)-tap)
                                      : smg_onnx_with(b, "add", smg_onnx_map1(b, "neg", rest), (double)tap);
        smg_value weight = smg_onnx_along(b, weight_of(b, r, distance, tap < 0 || tap > 1), axis, rank);
        smg_value part = take_inside(b, x, axis, smg_onnx_with(b, "add", first, (double)tap), p->in);
        part = smg_onnx_map2(b, "mul", part, weight);
        sum = tap == -before ? part : smg_onnx_map2(b, "add", sum, part);
    }
    return sum;
}

/* ---- the operator --------------------------------------------------------------------------- */

/* Scales (floats) or sizes of the axes in `axes`. */
static smg_status read_targets(smg_onnx_build *b, const smg_onnx_node *n, int count, const float **out_scales,
                               const smg_size **out_sizes) {
    int found = 0;
    *out_sizes = NULL;
    *out_scales = NULL;
    if (smg_onnx_has(n, 3)) {
        SMG_TRY(smg_onnx_sizes(b, n, 3, out_sizes, &found));
    } else {
        const smg_import_tensor *tensor = smg_onnx_has(n, 2) ? smg_onnx_constant(n, 2) : NULL;
        if (!tensor) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "scales are not known before the run");
        float *scales = SMG_ARENA_ARRAY(b->arena, float, (size_t)tensor->count + 1);
        if (!scales) return SMG_MEMORY;
        SMG_TRY(smg_import_to_f32(b->ctx, tensor->dtype, tensor->data, tensor->count, scales));
        *out_scales = scales;
        found = (int)tensor->count;
    }
    if (found == count) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_INVALID, "%d sizes or scales for %d axes", found, count);
}

/* false: an extent is no number, or a large one. */
static bool read_axis(const smg_onnx_build *b, const smg_onnx_node *n, int axis, const float *scale,
                      const smg_size *size, resize_axis *out) {
    bool known = smg_size_is_const(b->sizes, n->inputs[0]->dims[axis], &out->in);
    if (size) {
        known = smg_size_is_const(b->sizes, *size, &out->out) && known;
    } else {
        double wide = floor((double)out->in * (double)*scale);
        known = known && wide >= 1.0 && wide <= 65536.0;
        out->out = known ? (int64_t)wide : 0;
    }
    if (!known || out->in > 65536 || out->out < 1 || out->out > 65536) return false;
    out->scale = scale ? (double)*scale : (double)out->out / (double)out->in;
    return true;
}

smg_status smg_onnx_convert_resize(smg_onnx_build *b, const smg_onnx_node *n) {
    int rank = n->inputs[0]->rank, axes[SMG_MAX_RANK], count = -1;
    resizing r;
    const float *scales;
    const smg_size *sizes;
    SMG_TRY(read_resizing(b, n, &r));
    if (smg_onnx_has_attr(n, "axes")) SMG_TRY(smg_onnx_axes(b, n, 99, rank, axes, &count));
    for (int i = 0; count < 0 && i < rank; i++) axes[i] = i;
    if (count < 0) count = rank;
    SMG_TRY(read_targets(b, n, count, &scales, &sizes));
    smg_value x = smg_onnx_in(b, n, 0);
    for (int i = 0; i < count; i++) {
        resize_axis a = {.in = 0};
        bool same = sizes ? sizes[i] == n->inputs[0]->dims[axes[i]] : scales[i] >= 1.0f && scales[i] <= 1.0f;
        if (same) continue;
        const float *scale = scales ? &scales[i] : NULL;
        const smg_size *size = sizes ? &sizes[i] : NULL;
        if (read_axis(b, n, axes[i], scale, size, &a)) {
            x = resize_axis_of(b, n, &r, x, axes[i], &a);
            continue;
        }
        resize_places p;
        SMG_TRY(read_places(b, n, &r, axes[i], scale, size, &p));
        x = r.kind == NEAREST ? take_nearest(b, &r, x, axes[i], &p) : weigh_neighbours(b, &r, x, axes[i], &p);
    }
    return smg_onnx_set_like(b, n, 0, 0, x);
}
