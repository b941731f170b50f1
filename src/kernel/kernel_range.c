/* Which steps a loop runs. A bound is an expression over coordinates; its least and its greatest value over elements
 * of a workgroup follow operand by operand from those of its parts, because each primitive in it only rises or only
 * falls with each operand. So they need nothing but the bases of axes and integers in memory that all elements of the
 * workgroup share, and are the same for all lanes. */
#include <math.h>

#include "kernel/kernel.h"

int smg_kernel_stride_sign(const smg_kernel *k, smg_size stride) {
    int64_t low, high;
    smg_size_bounds(k->sizes, stride, &low, &high);
    return low >= 0 ? 1 : high <= 0 ? -1 : 0;
}

/* The operand is a number: 1 above 0, -1 below, 0 for any other. */
static int number_sign(const smg_kernel *k, smg_expr expr) {
    const smg_expr_node *n = smg_expr_get(k->exprs, expr);
    if (n->prim != SMG_PRIM_CONST) return 0;
    return (n->value > 0) - (n->value < 0);
}

bool smg_kernel_bound_falls(const smg_kernel *k, const smg_expr_node *node, int arg) {
    if (node->prim == SMG_PRIM_SUB) return arg == 1;
    if (node->prim == SMG_PRIM_MUL) return number_sign(k, node->arg[1 - arg]) < 0;
    return node->prim == SMG_PRIM_NEG;
}

static const char *load_wrong(const smg_kernel *k, const smg_access *access) {
    const smg_kbuffer *buffer = &k->buffers.items[access->buffer];
    if (buffer->written) return "the kernel writes what it reads";
    if (access->index != SMG_EXPR_NONE) return "an index decides what it reads";
    for (int i = 0; i < access->axis_count; i++)
        if (k->axes.items[access->axis[i]].tile > 1) return "a workgroup reads more than one element";
    return NULL;
}

static const char *leaf_wrong(const smg_kernel *k, const smg_kleaf *leaf) {
    if (leaf->what == SMG_KLEAF_SIZE) return NULL;
    if (leaf->what == SMG_KLEAF_LOAD) return load_wrong(k, &k->accesses.items[leaf->index]);
    if (leaf->what != SMG_KLEAF_IOTA) return "it reads tiles";
    const smg_access *access = &k->accesses.items[leaf->index];
    for (int i = 0; i < access->axis_count; i++)
        if (smg_kernel_stride_sign(k, access->stride[i]) == 0) return "sizes decide whether it rises";
    return NULL;
}

/* Between which numbers the expression is; *io_loads: it reads memory. */
static void reach_of(const smg_kernel *k, smg_expr expr, double out[2], bool *io_loads) {
    smg_expr_node n = *smg_expr_get(k->exprs, expr);
    double x[3][2] = {{0, 0}, {0, 0}, {0, 0}};
    bool load = n.prim == SMG_PRIM_LEAF && k->leaves.items[n.leaf].what == SMG_KLEAF_LOAD;
    *io_loads = *io_loads || load;
    out[0] = n.prim == SMG_PRIM_CONST ? n.value : load ? -SMG_KERNEL_BOUND_MOST : INT32_MIN;
    out[1] = n.prim == SMG_PRIM_CONST ? n.value : load ? SMG_KERNEL_BOUND_MOST : INT32_MAX;
    if (n.prim == SMG_PRIM_CONST || n.prim == SMG_PRIM_LEAF) return;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) reach_of(k, n.arg[i], x[i], io_loads);
    bool falls[2] = {smg_kernel_bound_falls(k, &n, 0), smg_kernel_bound_falls(k, &n, 1)};
    for (int most = 0; most < 2; most++)
        out[most] = smg_prim_eval(n.prim, SMG_KIND_INT, x[0][most ^ falls[0]], x[1][most ^ falls[1]], 0);
}

/* What memory says may be any number, and a product of it none that fits. */
static bool overflows(const smg_kernel *k, smg_expr product) {
    double reach[2];
    bool loads = false;
    reach_of(k, product, reach, &loads);
    return loads && (reach[0] < INT32_MIN || reach[1] > INT32_MAX);
}

const char *smg_kernel_bound_wrong(const smg_kernel *k, smg_expr bound) {
    smg_expr_node n = *smg_expr_get(k->exprs, bound);
    bool good = n.kind == SMG_KIND_INT;
    switch (n.prim) {
    case SMG_PRIM_CONST: break;
    case SMG_PRIM_LEAF: return good ? leaf_wrong(k, &k->leaves.items[n.leaf]) : "it is no integer";
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB:
    case SMG_PRIM_NEG:
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX: break;
    case SMG_PRIM_MUL:
        good = good && (number_sign(k, n.arg[0]) != 0 || number_sign(k, n.arg[1]) != 0);
        if (good && overflows(k, bound)) return "a product of what memory says may overflow";
        break;
    case SMG_PRIM_DIV: good = good && number_sign(k, n.arg[1]) > 0; break;
    default: good = false; break;
    }
    const char *wrong = good ? NULL : "it does not only rise or only fall";
    for (int i = 0; i < smg_prim_arity(n.prim) && wrong == NULL; i++) wrong = smg_kernel_bound_wrong(k, n.arg[i]);
    return wrong;
}

typedef struct place {
    const smg_kernel *k;
    const int64_t *symbols, *base;
    const smg_karray *buffers; /* NULL: not known */
    int outside;               /* an access that reaches beyond its buffer; -1 */
} place;

static double size_at(const place *p, smg_size size) {
    int64_t value = 0;
    return smg_size_eval(p->k->sizes, size, p->symbols, &value) ? (double)value : 0;
}

static double iota_extreme(const place *p, const smg_access *access, bool most) {
    double sum = size_at(p, access->offset);
    for (int i = 0; i < access->axis_count; i++) {
        int axis = access->axis[i];
        double stride = size_at(p, access->stride[i]), last = (double)p->k->axes.items[axis].tile - 1;
        sum += stride * ((double)p->base[axis] + ((stride > 0) == most ? last : 0));
    }
    return sum;
}

static double loaded(place *p, int number, bool most) {
    const smg_access *access = &p->k->accesses.items[number];
    double at = size_at(p, access->offset), value = most ? HUGE_VAL : -HUGE_VAL;
    for (int i = 0; i < access->axis_count; i++) at += size_at(p, access->stride[i]) * (double)p->base[access->axis[i]];
    bool inside = p->buffers == NULL || (at >= 0 && at < (double)p->buffers[access->buffer].elements);
    if (!inside) p->outside = number;
    if (inside && p->buffers != NULL) value = p->buffers[access->buffer].data[(int64_t)at];
    return fmax(-SMG_KERNEL_BOUND_MOST, fmin(value, SMG_KERNEL_BOUND_MOST));
}

/* The greatest value, or the least. */
static double extreme(place *p, smg_expr bound, bool most) {
    smg_expr_node n = *smg_expr_get(p->k->exprs, bound);
    double x[3] = {0, 0, 0};
    if (n.prim == SMG_PRIM_CONST) return n.value;
    if (n.prim == SMG_PRIM_LEAF) {
        const smg_kleaf *leaf = &p->k->leaves.items[n.leaf];
        if (leaf->what == SMG_KLEAF_SIZE) return size_at(p, leaf->size);
        if (leaf->what == SMG_KLEAF_LOAD) return loaded(p, leaf->index, most);
        return iota_extreme(p, &p->k->accesses.items[leaf->index], most);
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++)
        x[i] = extreme(p, n.arg[i], most != smg_kernel_bound_falls(p->k, &n, i));
    return smg_prim_eval(n.prim, SMG_KIND_INT, x[0], x[1], x[2]);
}

int smg_kernel_loop_range(const smg_kernel *k, const smg_instr *loop, const int64_t *symbols, const int64_t *base,
                          const smg_karray *buffers, int64_t *out_first, int64_t *out_end) {
    place p = {.k = k, .symbols = symbols, .base = base, .buffers = buffers, .outside = -1};
    const smg_kaxis *axis = &k->axes.items[loop->axes[0]];
    double first = 0, end = size_at(&p, axis->extent), bound;
    if (loop->range != NULL && loop->range->from != SMG_EXPR_NONE) {
        bound = extreme(&p, loop->range->from, false);
        first = bound > first ? bound : first;
    }
    if (loop->range != NULL && loop->range->to != SMG_EXPR_NONE) {
        bound = extreme(&p, loop->range->to, true);
        end = bound < end ? bound : end;
    }
    *out_first = (int64_t)first / axis->tile * axis->tile;
    *out_end = (int64_t)end;
    return p.outside;
}

smg_size smg_kernel_whole_extent(const smg_kernel *k, int a) {
    const smg_kaxis *axis = &k->axes.items[a];
    smg_size tile = smg_size_const(k->sizes, axis->tile);
    return smg_size_mul(k->sizes, smg_size_div(k->sizes, axis->extent, tile), tile);
}

bool smg_kernel_loop_is_whole(const smg_kernel *k, const smg_instr *loop) {
    if (loop->range == NULL || loop->range->to == SMG_EXPR_NONE) return false;
    const smg_expr_node *end = smg_expr_get(k->exprs, loop->range->to);
    const smg_kleaf *leaf = end->prim == SMG_PRIM_LEAF ? &k->leaves.items[end->leaf] : NULL;
    return leaf != NULL && leaf->what == SMG_KLEAF_SIZE && leaf->size == smg_kernel_whole_extent(k, loop->axes[0]);
}

int smg_kernel_next_loop(const smg_kernel *k, int at) {
    int axis = smg_instr_ahead_axis(k, &k->code.items[at]);
    for (int i = at + 1; axis >= 0 && i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_LOOP && in->axes[0] == axis) return i;
    }
    return -1;
}
