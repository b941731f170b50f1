/* The verifier: what a kernel does to the buffers that it writes. Barriers order shared memory alone, and nothing
 * orders workgroups. So each element of such a buffer is one lane's: a store tells its elements apart, and all that
 * touches the buffer finds an element at the same coordinates and in the same lane as the buffer's first store does, or
 * is in another part of it. */
#include "kernel/kernel_verify.h"

static const char *axis_name(const kernel_verifier *v, int axis) {
    return v->k->axes.items[axis].name;
}

static const char *buffer_name(const kernel_verifier *v, int access) {
    return v->k->buffers.items[v->k->accesses.items[access].buffer].name;
}

/* ---- one store ----------------------------------------------------------------------------------------- */

/* Sizes at which a store's steps are looked at: what a graph's tensors and their parts are laid out by holds for all of
 * them, and no proof is asked of what symbols make of it. */
static const int64_t tried_sizes[] = {2, 3, 61, 128};
#define TRIED_SYMBOLS 32

typedef struct term {
    int axis;
    int64_t stride, extent; /* without its sign */
} term;

/* The access's axes of more than one element at these sizes, by ascending strides; -1: there are no elements, or the
 * numbers get too large. */
static int moving_terms(const kernel_verifier *v, const smg_access *access, const int64_t *symbols,
                        term out[SMG_ACCESS_AXES]) {
    int count = 0;
    for (int i = 0; i < access->axis_count; i++) {
        term t = {.axis = access->axis[i]};
        if (!smg_size_eval(v->k->sizes, access->stride[i], symbols, &t.stride) ||
            !smg_size_eval(v->k->sizes, v->k->axes.items[t.axis].extent, symbols, &t.extent) || t.stride == INT64_MIN)
            return -1;
        if (t.extent < 1) return -1;
        if (t.extent == 1) continue;
        if (t.stride < 0) t.stride = -t.stride;
        int at = count++;
        for (; at > 0 && out[at - 1].stride > t.stride; at--) out[at] = out[at - 1];
        out[at] = t;
    }
    return count;
}

static smg_status refuse_term(const kernel_verifier *v, int number, const term *short_one, const term *before) {
    if (before == NULL)
        return KERNEL_WRONG(v, "access %d stores to '%s' by steps along axis '%s' that may be 0", number,
                            buffer_name(v, number), axis_name(v, short_one->axis));
    return KERNEL_WRONG(v,
                        "access %d may store several elements at one place of '%s': a step along axis '%s' is %lld "
                        "where all of axis '%s' is %lld by %lld",
                        number, buffer_name(v, number), axis_name(v, short_one->axis), (long long)short_one->stride,
                        axis_name(v, before->axis), (long long)before->extent, (long long)before->stride);
}

/* Sorted by length, each stride is at least as long as all of the axis before: no two elements are at one place. */
static smg_status check_apart_at(const kernel_verifier *v, int number, const int64_t *symbols) {
    term terms[SMG_ACCESS_AXES];
    int count = moving_terms(v, &v->k->accesses.items[number], symbols, terms);
    int64_t least = 1;
    for (int i = 0; i < count; i++) {
        if (terms[i].stride < least) return refuse_term(v, number, &terms[i], i > 0 ? &terms[i - 1] : NULL);
        if (!smg_mul_i64(terms[i].stride, terms[i].extent, &least)) return SMG_OK;
    }
    return SMG_OK;
}

/* false: the kernel has more symbols than are tried. */
static bool choose_sizes(const kernel_verifier *v, size_t number, int64_t symbols[TRIED_SYMBOLS]) {
    int count = smg_size_symbol_count(v->k->sizes);
    for (int i = 0; i < count && count <= TRIED_SYMBOLS; i++) {
        int64_t most = smg_size_symbol_max(v->k->sizes, i), size = tried_sizes[number] + INT64_C(2) * i;
        symbols[i] = size < most ? size : most;
    }
    return count <= TRIED_SYMBOLS;
}

static smg_status check_apart(const kernel_verifier *v, int number) {
    int64_t symbols[TRIED_SYMBOLS];
    for (size_t s = 0; s < SMG_COUNT_OF(tried_sizes) && choose_sizes(v, s, symbols); s++)
        SMG_TRY(check_apart_at(v, number, symbols));
    return SMG_OK;
}

/* Does the access tell the elements of the axis apart? */
static bool access_covers(const kernel_verifier *v, const smg_access *access, int axis) {
    int64_t stride = 1;
    for (int i = 0; i < access->axis_count; i++) {
        if (access->axis[i] != axis) continue;
        return !smg_size_is_const(v->k->sizes, access->stride[i], &stride) || stride != 0;
    }
    return false;
}

/* Every element of the buffer is written by one invocation at one time: each axis along which the store
 * is repeated (its own, the grid's, open loops') moves the address, and no two of their elements have the same one. An
 * indirect store is up to its data. */
static smg_status check_coverage(const kernel_verifier *v, int number) {
    const smg_access *access = &v->k->accesses.items[number];
    if (access->index != SMG_EXPR_NONE) return SMG_OK;
    for (int axis = 0; axis < v->k->axes.count; axis++) {
        const smg_kaxis *a = &v->k->axes.items[axis];
        bool tiled = a->tile > 1 && kernel_verify_has_axis(v->axes, v->axis_count, axis);
        bool stepped = (a->grid || v->looped[axis]) && v->most[axis] > a->tile;
        if ((tiled || stepped) && v->most[axis] > 1 && !access_covers(v, access, axis))
            return KERNEL_WRONG(v, "access %d is stored once for each element of axis '%s', which does not move it",
                                number, a->name);
    }
    return check_apart(v, number);
}

/* ---- several instructions ------------------------------------------------------------------------------- */

smg_status kernel_verify_find_stores(kernel_verifier *v) {
    const smg_kernel *k = v->k;
    v->store_of = SMG_ARENA_ARRAY(v->arena, int, (size_t)k->buffers.count + 1);
    if (v->store_of == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->buffers.count; i++) v->store_of[i] = -1;
    for (int at = k->code.count - 1; at >= 0; at--) {
        const smg_instr *in = &k->code.items[at];
        if (in->kind != SMG_I_STORE || in->a < 0 || in->a >= k->accesses.count) continue;
        int buffer = k->accesses.items[in->a].buffer;
        if (buffer >= 0 && k->buffers.items[buffer].written) v->store_of[buffer] = at;
    }
    return SMG_OK;
}

/* Do both go to the same element from the same coordinates? What an index reads may be another one by then. */
static bool same_map(const smg_kernel *k, int one, int other) {
    const smg_access *a = &k->accesses.items[one], *b = &k->accesses.items[other];
    if (a->index != SMG_EXPR_NONE || b->index != SMG_EXPR_NONE) return false;
    if (one == other) return true;
    bool same = a->offset == b->offset && a->axis_count == b->axis_count;
    for (int i = 0; same && i < a->axis_count; i++) {
        int at = 0;
        while (at < b->axis_count && b->axis[at] != a->axis[i]) at++;
        same = at < b->axis_count && b->stride[at] == a->stride[i];
    }
    return same;
}

typedef struct stretch {
    int64_t first, last; /* elements */
} stretch;

/* From the first to the last element that an access comes to; false: it goes by an index, or that is not to be had. */
static bool stretch_of(const kernel_verifier *v, const smg_access *access, const int64_t *symbols, stretch *out) {
    int64_t offset = 0;
    if (access->index != SMG_EXPR_NONE || !smg_size_eval(v->k->sizes, access->offset, symbols, &offset)) return false;
    *out = (stretch){offset, offset};
    for (int i = 0; i < access->axis_count; i++) {
        int64_t stride = 0, extent = 0, along = 0;
        if (!smg_size_eval(v->k->sizes, access->stride[i], symbols, &stride) ||
            !smg_size_eval(v->k->sizes, v->k->axes.items[access->axis[i]].extent, symbols, &extent) || extent < 1 ||
            !smg_mul_i64(stride, extent - 1, &along) || along > INT64_MAX / 16 || along < INT64_MIN / 16)
            return false;
        *(along > 0 ? &out->last : &out->first) += along;
    }
    return true;
}

/* Are the two in different parts of the buffer? */
static bool lie_apart(const kernel_verifier *v, int one, int other) {
    int64_t symbols[TRIED_SYMBOLS];
    const smg_access *accesses = v->k->accesses.items;
    for (size_t s = 0; s < SMG_COUNT_OF(tried_sizes); s++) {
        stretch a, b;
        if (!choose_sizes(v, s, symbols) || !stretch_of(v, &accesses[one], symbols, &a) ||
            !stretch_of(v, &accesses[other], symbols, &b))
            return false;
        if (a.first <= b.last && b.first <= a.last) return false;
    }
    return true;
}

/* Lanes that store whole matrices, or have exchanged elements, store what others hold. */
static bool stores_own(const smg_instr *store) {
    return !store->exchanged && !store->matrices;
}

/* Is the lane that has an element by the instruction at hand the one that stores it? Of those that hold copies the
 * first one does. */
static bool same_lane(const kernel_verifier *v, const smg_instr *store, bool stores) {
    if (!smg_kernel_laid_out(v->k)) return true;
    if (store->layout < 0 || store->layout >= v->k->layouts.count) return true; /* refused where it is */
    const smg_layout *layout = &v->k->layouts.items[store->layout];
    if (stores && smg_layout_equal(layout, v->layout)) return true;
    return smg_layout_replicas(layout) == 0 && smg_layout_readable(layout, v->layout);
}

/* Another lane might do that to the element which `first` stores to. */
static smg_status check_with(const kernel_verifier *v, int first, int access, const smg_instr *store) {
    const smg_instr *in = &v->k->code.items[first];
    if (lie_apart(v, in->a, access)) return SMG_OK;
    bool own = !v->staging && stores_own(in) && (store == NULL || stores_own(store));
    if (own && same_map(v->k, in->a, access) && same_lane(v, in, store != NULL)) return SMG_OK;
    return KERNEL_WRONG(v,
                        "access %d %s elements of '%s' that other lanes may store in instruction %d, and no barrier "
                        "orders buffers",
                        access, store != NULL ? "stores" : "loads", buffer_name(v, access), first);
}

smg_status kernel_verify_load(const kernel_verifier *v, int access) {
    int first = v->store_of[v->k->accesses.items[access].buffer];
    return first < 0 ? SMG_OK : check_with(v, first, access, NULL);
}

smg_status kernel_verify_stores(const kernel_verifier *v, const smg_instr *store) {
    int first = v->store_of[v->k->accesses.items[store->a].buffer];
    SMG_TRY(check_coverage(v, store->a));
    return first != v->at ? check_with(v, first, store->a, store) : SMG_OK;
}
