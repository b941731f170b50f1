/* Which steps a loop runs. A bound is an expression over coordinates; its least and its greatest value over elements
 * of a workgroup follow operand by operand from those of its parts, because each primitive in it only rises or only
 * falls with each operand. So they need nothing but the bases of axes, and are the same for all lanes. */
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

static const char *leaf_wrong(const smg_kernel *k, const smg_kleaf *leaf) {
    if (leaf->what == SMG_KLEAF_SIZE) return NULL;
    if (leaf->what != SMG_KLEAF_IOTA) return "it reads tiles or memory";
    const smg_access *access = &k->accesses.items[leaf->index];
    for (int i = 0; i < access->axis_count; i++)
        if (smg_kernel_stride_sign(k, access->stride[i]) == 0) return "sizes decide whether it rises";
    return NULL;
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
    case SMG_PRIM_MUL: good = good && (number_sign(k, n.arg[0]) != 0 || number_sign(k, n.arg[1]) != 0); break;
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

/* The greatest value, or the least. */
static double extreme(const place *p, smg_expr bound, bool most) {
    smg_expr_node n = *smg_expr_get(p->k->exprs, bound);
    double x[3] = {0, 0, 0};
    if (n.prim == SMG_PRIM_CONST) return n.value;
    if (n.prim == SMG_PRIM_LEAF) {
        const smg_kleaf *leaf = &p->k->leaves.items[n.leaf];
        if (leaf->what == SMG_KLEAF_SIZE) return size_at(p, leaf->size);
        return iota_extreme(p, &p->k->accesses.items[leaf->index], most);
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++)
        x[i] = extreme(p, n.arg[i], most != smg_kernel_bound_falls(p->k, &n, i));
    return smg_prim_eval(n.prim, SMG_KIND_INT, x[0], x[1], x[2]);
}

void smg_kernel_loop_range(const smg_kernel *k, const smg_instr *loop, const int64_t *symbols, const int64_t *base,
                           int64_t *out_first, int64_t *out_end) {
    place p = {.k = k, .symbols = symbols, .base = base};
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
}

int smg_kernel_next_loop(const smg_kernel *k, int fetch) {
    for (int i = fetch + 1; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_LOOP && in->axes[0] == k->code.items[fetch].a) return i;
    }
    return -1;
}
