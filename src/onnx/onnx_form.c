/* Affine forms of graph values; see the header. Comparisons are decided by the smallest and the largest
 * value of a form, which are sizes and may be decided for every value of the symbols. */
#include <math.h>

#include "onnx/onnx_form.h"

#define MOST_STEPS 2000
#define LARGEST (INT64_C(1) << 40)

typedef struct bounds {
    int64_t low, high;
} bounds;

void smg_onnx_forms_begin(smg_onnx_build *b, int count, const smg_size *extents, onnx_forms *out_forms) {
    *out_forms = (onnx_forms){.b = b, .count = count, .steps_left = MOST_STEPS};
    for (int k = 0; k < count; k++) out_forms->extent[k] = extents[k];
}

onnx_form smg_onnx_form_of(smg_onnx_build *b, smg_size base) {
    if (base < 0) b->failed = true;
    return (onnx_form){.base = base};
}

static bool whole(onnx_forms *f, int64_t value, onnx_form *out) {
    *out = smg_onnx_form_of(f->b, smg_onnx_int(f->b, value));
    return !f->b->failed;
}

/* a + factor * c */
static bool add(onnx_forms *f, const onnx_form *a, const onnx_form *c, int64_t factor, onnx_form *out) {
    smg_sizes *s = f->b->sizes;
    onnx_form sum = *a;
    if (factor > LARGEST || factor < -LARGEST) return false;
    for (int k = 0; k < f->count; k++) {
        if (c->scale[k] > LARGEST || c->scale[k] < -LARGEST) return false;
        if (c->scale[k] != 0 && (factor > INT32_MAX / 16 || factor < -INT32_MAX / 16)) return false;
        sum.scale[k] += factor * c->scale[k];
        if (sum.scale[k] > INT32_MAX || sum.scale[k] < -INT32_MAX) return false;
    }
    sum.base = smg_size_add(s, a->base, smg_size_mul(s, c->base, smg_onnx_int(f->b, factor)));
    if (sum.base < 0) f->b->failed = true;
    *out = sum;
    return !f->b->failed;
}

static bool is_fixed(const onnx_forms *f, const onnx_form *a) {
    for (int k = 0; k < f->count; k++)
        if (a->scale[k] != 0) return false;
    return true;
}

static bool is_number(const onnx_forms *f, const onnx_form *a, int64_t *out_value) {
    return is_fixed(f, a) && smg_size_is_const(f->b->sizes, a->base, out_value);
}

static bounds bounds_of(onnx_forms *f, const onnx_form *a) {
    smg_sizes *s = f->b->sizes;
    smg_size end[2] = {a->base, a->base};
    bounds result = {INT64_MIN, INT64_MAX};
    for (int k = 0; k < f->count; k++) {
        if (a->scale[k] == 0) continue;
        smg_size last = smg_size_sub(s, f->extent[k], smg_onnx_int(f->b, 1));
        smg_size far = smg_size_mul(s, last, smg_onnx_int(f->b, a->scale[k]));
        int which = a->scale[k] > 0;
        end[which] = smg_size_add(s, end[which], far);
    }
    if (end[0] < 0 || end[1] < 0) return result;
    smg_size_bounds(s, end[0], &result.low, NULL);
    smg_size_bounds(s, end[1], NULL, &result.high);
    return result;
}

/* ---- elementwise -------------------------------------------------------------------------------- */

typedef enum verdict { NO, YES, OPEN } verdict;

static verdict less(onnx_forms *f, const onnx_form *x, const onnx_form *y, bool or_equal) {
    onnx_form gap;
    if (!add(f, y, x, -1, &gap)) return OPEN;
    bounds range = bounds_of(f, &gap);
    int64_t least = or_equal ? 0 : 1;
    if (range.low >= least) return YES;
    return range.high < least ? NO : OPEN;
}

static verdict equal(onnx_forms *f, const onnx_form *x, const onnx_form *y) {
    onnx_form gap;
    if (!add(f, x, y, -1, &gap)) return OPEN;
    bounds range = bounds_of(f, &gap);
    if (range.low == 0 && range.high == 0) return YES;
    return range.low > 0 || range.high < 0 ? NO : OPEN;
}

static verdict truth(onnx_forms *f, const onnx_form *x) {
    onnx_form zero;
    if (!whole(f, 0, &zero)) return OPEN;
    verdict is_zero = equal(f, x, &zero);
    return is_zero == OPEN ? OPEN : is_zero == YES ? NO : YES;
}

static bool give(onnx_forms *f, verdict v, onnx_form *out) {
    return v != OPEN && whole(f, v == YES, out);
}

static bool multiply(onnx_forms *f, const onnx_form *x, const onnx_form *y, onnx_form *out) {
    int64_t factor = 0;
    onnx_form zero;
    if (!whole(f, 0, &zero)) return false;
    if (is_number(f, x, &factor)) return add(f, &zero, y, factor, out);
    if (is_number(f, y, &factor)) return add(f, &zero, x, factor, out);
    if (!is_fixed(f, x) || !is_fixed(f, y)) return false;
    *out = smg_onnx_form_of(f->b, smg_size_mul(f->b->sizes, x->base, y->base));
    return !f->b->failed;
}

/* Truncated and floored division are one where nothing is negative. */
static bool divide(onnx_forms *f, const onnx_form *x, const onnx_form *y, bool remainder, onnx_form *out) {
    int64_t low = 0, least = 0;
    if (!is_fixed(f, x) || !is_fixed(f, y)) return false;
    smg_size_bounds(f->b->sizes, x->base, &low, NULL);
    smg_size_bounds(f->b->sizes, y->base, &least, NULL);
    if (low < 0 || least < 1) return false;
    smg_size result =
        remainder ? smg_size_mod(f->b->sizes, x->base, y->base) : smg_size_div(f->b->sizes, x->base, y->base);
    *out = smg_onnx_form_of(f->b, result);
    return !f->b->failed;
}

static bool logic(onnx_forms *f, bool both, const onnx_form *x, const onnx_form *y, onnx_form *out) {
    verdict p = truth(f, x), q = truth(f, y), decides = both ? NO : YES;
    if (p == decides || q == decides) return give(f, decides, out);
    return p != OPEN && q != OPEN && give(f, both ? YES : NO, out);
}

static bool combine(onnx_forms *f, const smg_node *node, const onnx_form *x, onnx_form *out) {
    const char *op = smg_op_get(node->op)->word;
    bool floats = node->type == SMG_TYPE_F32;
    onnx_form zero;
    if (!whole(f, 0, &zero)) return false;
    if (strcmp(op, "cast") == 0 && node->type == SMG_TYPE_BOOL) return give(f, truth(f, x), out);
    if (strcmp(op, "cast") == 0 || strcmp(op, "copy") == 0) return add(f, x, &zero, 1, out);
    if (strcmp(op, "neg") == 0) return add(f, &zero, x, -1, out);
    if (strcmp(op, "not") == 0) {
        verdict v = truth(f, x);
        return give(f, v == OPEN ? OPEN : v == YES ? NO : YES, out);
    }
    if (strcmp(op, "add") == 0) return add(f, &x[0], &x[1], 1, out);
    if (strcmp(op, "sub") == 0) return add(f, &x[0], &x[1], -1, out);
    if (strcmp(op, "mul") == 0) return multiply(f, &x[0], &x[1], out);
    if (strcmp(op, "div") == 0) return !floats && divide(f, &x[0], &x[1], false, out);
    if (strcmp(op, "mod") == 0) return !floats && divide(f, &x[0], &x[1], true, out);
    if (strcmp(op, "lt") == 0) return give(f, less(f, &x[0], &x[1], false), out);
    if (strcmp(op, "le") == 0) return give(f, less(f, &x[0], &x[1], true), out);
    if (strcmp(op, "gt") == 0) return give(f, less(f, &x[1], &x[0], false), out);
    if (strcmp(op, "ge") == 0) return give(f, less(f, &x[1], &x[0], true), out);
    if (strcmp(op, "eq") == 0) return give(f, equal(f, &x[0], &x[1]), out);
    if (strcmp(op, "and") == 0) return logic(f, true, &x[0], &x[1], out);
    if (strcmp(op, "or") == 0) return logic(f, false, &x[0], &x[1], out);
    if (strcmp(op, "min") == 0 || strcmp(op, "max") == 0) {
        verdict first = less(f, &x[0], &x[1], true);
        if (first == OPEN) return false;
        *out = (first == YES) == (op[1] == 'i') ? x[0] : x[1];
        return true;
    }
    return false;
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static bool read_node(onnx_forms *f, smg_node_id id, const onnx_form *at, onnx_form *out);

static bool read_map(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    const smg_graph *g = f->b->graph;
    onnx_form x[SMG_MAX_OPERANDS], inner[SMG_MAX_RANK];
    bool select = strcmp(smg_op_get(node->op)->word, "select") == 0;
    for (int k = 0; k < node->operand_count; k++) {
        for (int axis = 0; axis < node->rank; axis++) {
            int own = smg_map_operand_axis(g, node, k, axis);
            if (own >= 0) inner[own] = at[axis];
        }
        int rank = smg_graph_node(g, node->operand[k])->rank;
        for (int own = 0; own < rank; own++)
            if (smg_onnx_is_const(f->b, smg_graph_node(g, node->operand[k])->dims[own], 1) && !whole(f, 0, &inner[own]))
                return false;
        if (select && k > 0) { /* only what is chosen is read */
            verdict chosen = truth(f, &x[0]);
            if (chosen == OPEN) return false;
            if ((chosen == YES) == (k == 1)) return read_node(f, node->operand[k], inner, out);
            continue;
        }
        if (!read_node(f, node->operand[k], inner, &x[k])) return false;
    }
    return !select && combine(f, node, x, out);
}

/* Axes of extent 1 come and go; the others must be the same, or every index a number. */
static bool read_reshape(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    onnx_form inner[SMG_MAX_RANK];
    int next = 0;
    bool same = true;
    for (int own = 0; own < source->rank; own++) {
        if (!whole(f, 0, &inner[own])) return false;
        if (smg_onnx_is_const(f->b, source->dims[own], 1)) continue;
        while (next < node->rank && smg_onnx_is_const(f->b, node->dims[next], 1)) next++;
        if (next == node->rank || node->dims[next] != source->dims[own]) {
            same = false;
            break;
        }
        inner[own] = at[next++];
    }
    if (same) return read_node(f, node->operand[0], inner, out);
    int64_t flat = 0, extent = 0, index = 0;
    for (int axis = 0; axis < node->rank; axis++) {
        if (!smg_size_is_const(f->b->sizes, node->dims[axis], &extent) || extent > INT32_MAX ||
            !is_number(f, &at[axis], &index) || index < 0 || index >= extent || flat > INT32_MAX)
            return false;
        flat = flat * extent + index;
    }
    for (int own = source->rank - 1; own >= 0; own--) {
        if (!smg_size_is_const(f->b->sizes, source->dims[own], &extent) || !whole(f, flat % extent, &inner[own]))
            return false;
        flat /= extent;
    }
    return read_node(f, node->operand[0], inner, out);
}

static bool read_window(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    onnx_form inner[SMG_MAX_RANK], here = smg_onnx_form_of(f->b, node->begin), zero, end;
    if (!add(f, &here, &at[node->axis], node->step, &here) ||
        !add(f, &here, &at[node->axis + 1], node->dilation, &here) || !whole(f, 0, &zero))
        return false;
    end = smg_onnx_form_of(f->b, source->dims[node->axis]);
    verdict before = less(f, &here, &zero, false), inside = less(f, &here, &end, false);
    if (before == YES || inside == NO) {
        if (node->value != trunc(node->value) || fabs(node->value) > (double)LARGEST) return false;
        return whole(f, (int64_t)node->value, out);
    }
    if (before != NO || inside != YES) return false;
    for (int own = 0; own < source->rank; own++)
        inner[own] = own == node->axis ? here : at[own < node->axis ? own : own + 1];
    return read_node(f, node->operand[0], inner, out);
}

static bool read_view(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    const smg_node *source = smg_graph_node(f->b->graph, node->operand[0]);
    onnx_form inner[SMG_MAX_RANK], begin;
    int shift = node->rank - source->rank;
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE: return read_reshape(f, node, at, out);
    case SMG_VIEW_WINDOW: return read_window(f, node, at, out);
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < node->rank; i++) inner[node->perm[i]] = at[i];
        break;
    case SMG_VIEW_BROADCAST:
        for (int own = 0; own < source->rank; own++) {
            inner[own] = at[own + shift];
            if (smg_onnx_is_const(f->b, source->dims[own], 1) && !whole(f, 0, &inner[own])) return false;
        }
        break;
    case SMG_VIEW_SLICE:
        for (int i = 0; i < node->rank; i++) inner[i] = at[i];
        begin = smg_onnx_form_of(f->b, node->begin);
        if (!add(f, &begin, &at[node->axis], node->step, &inner[node->axis])) return false;
        break;
    case SMG_VIEW_NONE: return false;
    }
    return read_node(f, node->operand[0], inner, out);
}

static bool read_gather(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    const smg_node *table = smg_graph_node(f->b->graph, node->operand[0]);
    int rank = smg_graph_node(f->b->graph, node->operand[1])->rank;
    onnx_form inner[SMG_MAX_RANK];
    if (!read_node(f, node->operand[1], at, &inner[0])) return false;
    for (int own = 1; own < table->rank; own++) inner[own] = at[rank + own - 1];
    return read_node(f, node->operand[0], inner, out);
}

/* A constant whose elements lie on a plane over the axes that vary. */
typedef struct plane {
    int rank;
    int64_t extent[SMG_MAX_RANK], index[SMG_MAX_RANK]; /* index -1: the axis varies */
    const uint8_t *data;
} plane;

static int32_t plane_at(const plane *p, const int64_t *index) {
    int64_t flat = 0;
    int32_t value = 0;
    for (int axis = 0; axis < p->rank; axis++) flat = flat * p->extent[axis] + index[axis];
    memcpy(&value, p->data + flat * 4, sizeof value);
    return value;
}

/* Steps to the next coordinates of the axes that vary; false after the last. */
static bool next_place(const plane *p, int64_t *index) {
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        if (p->index[axis] >= 0) continue;
        if (++index[axis] < p->extent[axis]) return true;
        index[axis] = 0;
    }
    return false;
}

static bool read_plane(onnx_forms *f, const plane *p, const onnx_form *at, onnx_form *out) {
    int64_t index[SMG_MAX_RANK], slope[SMG_MAX_RANK] = {0};
    for (int axis = 0; axis < p->rank; axis++) index[axis] = p->index[axis] < 0 ? 0 : p->index[axis];
    int64_t first = plane_at(p, index);
    for (int axis = 0; axis < p->rank; axis++) {
        if (p->index[axis] >= 0 || p->extent[axis] < 2) continue;
        index[axis] = 1;
        slope[axis] = plane_at(p, index) - first;
        index[axis] = 0;
    }
    do {
        int64_t want = first;
        for (int axis = 0; axis < p->rank; axis++)
            if (p->index[axis] < 0) want += slope[axis] * index[axis];
        if (plane_at(p, index) != want) return false;
    } while (next_place(p, index));
    if (!whole(f, first, out)) return false;
    for (int axis = 0; axis < p->rank; axis++)
        if (slope[axis] != 0 && !add(f, out, &at[axis], slope[axis], out)) return false;
    return true;
}

static bool read_constant(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    plane p = {.rank = node->rank, .data = node->data};
    int64_t count = 1;
    if (!node->data || node->type != SMG_TYPE_I32) return false;
    for (int axis = 0; axis < node->rank; axis++) {
        if (!smg_size_is_const(f->b->sizes, node->dims[axis], &p.extent[axis])) return false;
        if (!is_number(f, &at[axis], &p.index[axis])) {
            p.index[axis] = -1;
            if (!smg_mul_i64(count, p.extent[axis], &count) || count > SMG_ONNX_KNOWN_MAX) return false;
        } else if (p.index[axis] < 0 || p.index[axis] >= p.extent[axis]) {
            return false;
        }
    }
    return read_plane(f, &p, at, out);
}

static bool read_leaf(onnx_forms *f, const smg_node *node, const onnx_form *at, onnx_form *out) {
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_INDEX: *out = at[node->axis]; return true;
    case SMG_LEAF_SIZE: *out = smg_onnx_form_of(f->b, node->size); return !f->b->failed;
    case SMG_LEAF_TENSOR: return read_constant(f, node, at, out);
    case SMG_LEAF_NUMBER:
        if (node->value != trunc(node->value) || fabs(node->value) > (double)LARGEST) return false;
        return whole(f, (int64_t)node->value, out);
    case SMG_LEAF_NONE: break;
    }
    return false;
}

static bool read_node(onnx_forms *f, smg_node_id id, const onnx_form *at, onnx_form *out) {
    const smg_node *node = smg_graph_node(f->b->graph, id);
    if (f->b->failed || f->steps_left-- <= 0) return false;
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: return read_leaf(f, node, at, out);
    case SMG_CLASS_MAP: return read_map(f, node, at, out);
    case SMG_CLASS_VIEW: return read_view(f, node, at, out);
    case SMG_CLASS_GATHER: return read_gather(f, node, at, out);
    case SMG_CLASS_REDUCE:
    case SMG_CLASS_CONTRACT: break;
    }
    return false;
}

bool smg_onnx_form_at(onnx_forms *forms, smg_value value, const onnx_form *at, onnx_form *out) {
    return smg_graph_node_of(forms->b->graph, value) != NULL && read_node(forms, value.id - 1, at, out);
}
