/* Attributes of a node: found through calls of functions, checked for their type, copied where a
 * converter wants something the message does not hold (a NUL after a string, a tensor's bytes). */
#include "onnx/onnx_private.h"

static const pb_attribute *named(size_t count, pb_attribute *const *items, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i]->name, name) == 0) return items[i];
    return NULL;
}

const pb_attribute *smg_onnx_find_attribute(const onnx_attributes *attributes, const char *name) {
    while (attributes) {
        const pb_attribute *found = named(attributes->count, attributes->items, name);
        if (!found || !found->ref_attr_name[0]) return found;
        name = found->ref_attr_name;
        if (!attributes->call) return NULL;
        const pb_function *f = attributes->function;
        if (!named(attributes->call->count, attributes->call->items, name))
            return f ? named(f->n_attribute_proto, f->attribute_proto, name) : NULL;
        attributes = attributes->call;
    }
    return NULL;
}

/* NULL also when the type is wrong; then the build has failed. */
static const pb_attribute *find(smg_onnx_build *b, const smg_onnx_node *n, const char *name, int type) {
    static const char *const words[] = {"",        "a float", "an integer", "a string", "a tensor",
                                        "a graph", "floats",  "integers",   "strings"};
    const pb_attribute *found = smg_onnx_find_attribute(n->attributes, name);
    if (!found || found->type == type || found->type == 0) return found;
    smg_onnx_fail(b, n, SMG_FORMAT, "attribute '%s' is of type %d, must be %s", name, (int)found->type, words[type]);
    b->failed = true;
    return NULL;
}

bool smg_onnx_has_attr(const smg_onnx_node *n, const char *name) {
    return smg_onnx_find_attribute(n->attributes, name) != NULL;
}

int64_t smg_onnx_attr_int(smg_onnx_build *b, const smg_onnx_node *n, const char *name, int64_t fallback) {
    const pb_attribute *found = find(b, n, name, PB_INT);
    return found ? found->i : fallback;
}

double smg_onnx_attr_float(smg_onnx_build *b, const smg_onnx_node *n, const char *name, double fallback) {
    const pb_attribute *found = find(b, n, name, PB_FLOAT);
    return found ? (double)found->f : fallback;
}

const char *smg_onnx_attr_string(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const char *fallback) {
    const pb_attribute *found = find(b, n, name, PB_STRING);
    if (!found) return fallback;
    const char *copy = smg_arena_string_n(b->arena, (const char *)found->s.data, found->s.len);
    if (!copy) b->failed = true;
    return copy ? copy : fallback;
}

int smg_onnx_attr_ints(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const int64_t **out_ints) {
    const pb_attribute *found = find(b, n, name, PB_INTS);
    *out_ints = NULL;
    if (!found) return -1;
    if (found->n_ints > INT32_MAX / 16) {
        smg_onnx_fail(b, n, SMG_FORMAT, "attribute '%s' has %zu integers", name, found->n_ints);
        b->failed = true;
        return -1;
    }
    *out_ints = found->ints;
    return (int)found->n_ints;
}

int smg_onnx_attr_floats(smg_onnx_build *b, const smg_onnx_node *n, const char *name, const float **out_floats) {
    const pb_attribute *found = find(b, n, name, PB_FLOATS);
    *out_floats = NULL;
    if (!found) return -1;
    if (found->n_floats > INT32_MAX / 16) {
        smg_onnx_fail(b, n, SMG_FORMAT, "attribute '%s' has %zu floats", name, found->n_floats);
        b->failed = true;
        return -1;
    }
    *out_floats = found->floats;
    return (int)found->n_floats;
}

const smg_import_tensor *smg_onnx_attr_tensor(smg_onnx_build *b, const smg_onnx_node *n, const char *name) {
    const pb_attribute *found = find(b, n, name, PB_TENSOR);
    const smg_import_tensor *tensor = NULL;
    if (!found) return NULL;
    const onnx_attributes *attributes = n->attributes;
    smg_status status = SMG_OK;
    if (!found->t) {
        status = smg_onnx_fail(b, n, SMG_FORMAT, "attribute '%s' holds no tensor", name);
    } else {
        status = smg_onnx_read_tensor(attributes->model, found->t, n->name, &tensor);
    }
    if (status != SMG_OK) b->failed = true;
    return tensor;
}

/* ---- axes --------------------------------------------------------------------------------------- */

smg_status smg_onnx_axis(smg_onnx_build *b, const smg_onnx_node *n, int64_t axis, int rank, int *out_axis) {
    *out_axis = 0;
    if (axis < -rank || axis >= rank)
        return smg_onnx_fail(b, n, SMG_INVALID, "axis %lld is outside [%d, %d)", (long long)axis, -rank, rank);
    *out_axis = (int)(axis < 0 ? axis + rank : axis);
    return SMG_OK;
}

smg_status smg_onnx_axis_in(smg_onnx_build *b, const smg_onnx_node *n, int input, int64_t fallback, int rank,
                            int *out_axis) {
    double number;
    *out_axis = 0;
    SMG_TRY(smg_onnx_number(b, n, input, (double)fallback, &number));
    if (!(number >= -SMG_MAX_RANK && number <= SMG_MAX_RANK))
        return smg_onnx_fail(b, n, SMG_INVALID, "axis %g is outside [%d, %d)", number, -rank, rank);
    return smg_onnx_axis(b, n, (int64_t)number, rank, out_axis);
}

smg_status smg_onnx_axes(smg_onnx_build *b, const smg_onnx_node *n, int input, int rank, int *out_axes,
                         int *out_count) {
    const int64_t *axes = NULL;
    int count = smg_onnx_attr_ints(b, n, "axes", &axes);
    bool seen[SMG_MAX_RANK] = {false};
    *out_count = -1;
    if (b->failed) return smg_onnx_failed(b, n);
    if (count < 0 && smg_onnx_has(n, input)) SMG_TRY(smg_onnx_ints(b, n, input, &axes, &count));
    if (count < 0) return SMG_OK;
    if (count > rank || rank > SMG_MAX_RANK)
        return smg_onnx_fail(b, n, SMG_INVALID, "%d axes are given for rank %d", count, rank);
    for (int i = 0; i < count; i++) {
        SMG_TRY(smg_onnx_axis(b, n, axes[i], rank, &out_axes[i]));
        if (seen[out_axes[i]]) return smg_onnx_fail(b, n, SMG_INVALID, "axis %d is given twice", out_axes[i]);
        seen[out_axes[i]] = true;
    }
    *out_count = count;
    return SMG_OK;
}

smg_status smg_onnx_attr_counts(smg_onnx_build *b, const smg_onnx_node *n, const char *name, int count,
                                int64_t fallback, int64_t least, int64_t *out) {
    const int64_t *given = NULL;
    int found = smg_onnx_attr_ints(b, n, name, &given);
    if (found >= 0 && found != count)
        return smg_onnx_fail(b, n, SMG_INVALID, "%s has %d entries, must have %d", name, found, count);
    for (int i = 0; i < count; i++) {
        out[i] = found < 0 ? fallback : given[i];
        if (out[i] < least || out[i] > INT32_MAX)
            return smg_onnx_fail(b, n, SMG_INVALID, "entry %d of %s is %lld", i, name, (long long)out[i]);
    }
    return SMG_OK;
}
