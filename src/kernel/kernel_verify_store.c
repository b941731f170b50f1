/* The verifier: what a kernel does to the buffers that it writes. Barriers order shared memory alone, and nothing
 * orders workgroups. So each element of such a buffer is one lane's: a store tells its elements apart, and all that
 * touches the buffer finds an element at the same coordinates and in the same lane as the buffer's first store does. */
#include "kernel/kernel_verify.h"

static const char *axis_name(const kernel_verifier *v, int axis) {
    return v->k->axes.items[axis].name;
}

static const char *buffer_name(const kernel_verifier *v, int access) {
    return v->k->buffers.items[v->k->accesses.items[access].buffer].name;
}

/* ---- one store ----------------------------------------------------------------------------------------- */

typedef struct term {
    int axis;
    smg_size stride;   /* without a sign that all sizes give it */
    int64_t low, high; /* its bounds */
} term;

/* The access's axes of more than one element; returns how many. */
static int moving_terms(const kernel_verifier *v, const smg_access *access, term out[SMG_ACCESS_AXES]) {
    int count = 0;
    for (int i = 0; i < access->axis_count; i++) {
        term t = {.axis = access->axis[i], .stride = access->stride[i]};
        if (v->most[t.axis] <= 1) continue;
        smg_size_bounds(v->k->sizes, t.stride, &t.low, &t.high);
        if (t.high < 0) {
            t.stride = smg_size_sub(v->k->sizes, SMG_SIZE_ZERO, t.stride);
            smg_size_bounds(v->k->sizes, t.stride, &t.low, &t.high);
        }
        out[count++] = t;
    }
    return count;
}

/* Is the stride at least that long for all sizes? */
static bool reaches(const kernel_verifier *v, smg_size stride, smg_size least) {
    int64_t low;
    if (stride < 0 || least < 0) return false;
    if (stride == least) return true;
    smg_size_bounds(v->k->sizes, smg_size_sub(v->k->sizes, stride, least), &low, NULL);
    return low >= 0;
}

/* The term that comes next: the shortest. Where bounds alone do not say which, the one that begins where those before
 * end. */
static int next_term(const term *terms, int count, smg_size least) {
    int next = 0;
    for (int i = 1; i < count; i++)
        if (terms[i].high < terms[next].high) next = i;
    for (int i = 0; i < count; i++)
        if (terms[i].stride == least && terms[i].low <= terms[next].high) return i;
    return next;
}

static smg_status refuse_term(const kernel_verifier *v, int number, int axis, int before) {
    if (smg_context_status(v->ctx) == SMG_MEMORY) return SMG_MEMORY;
    if (before < 0)
        return KERNEL_WRONG(v, "access %d stores to '%s' by steps along axis '%s' that may be 0", number,
                            buffer_name(v, number), axis_name(v, axis));
    return KERNEL_WRONG(v,
                        "access %d may store several elements at one place of '%s': a step along axis '%s' is not "
                        "proved to be as long as all of axis '%s'",
                        number, buffer_name(v, number), axis_name(v, axis), axis_name(v, before));
}

/* Sorted by length, each stride is at least as long as all of the axis before: then no two elements are at one place.
 * Where an axis is empty there are none. */
static smg_status check_apart(const kernel_verifier *v, int number) {
    smg_sizes *sizes = v->k->sizes;
    term terms[SMG_ACCESS_AXES];
    bool quiet = smg_sizes_set_quiet(sizes, true); /* what does not fit is not proved */
    int count = moving_terms(v, &v->k->accesses.items[number], terms), before = -1;
    smg_size least = smg_size_const(sizes, 1);
    for (; count > 0; count--) {
        int next = next_term(terms, count, least);
        term t = terms[next];
        if (!reaches(v, t.stride, least)) break;
        if (count > 1) least = smg_size_mul(sizes, t.stride, v->k->axes.items[t.axis].extent);
        before = t.axis;
        terms[next] = terms[count - 1];
    }
    int stuck = count > 0 ? terms[next_term(terms, count, least)].axis : -1;
    (void)smg_sizes_set_quiet(sizes, quiet);
    return stuck < 0 ? SMG_OK : refuse_term(v, number, stuck, before);
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

smg_status kernel_verify_store(kernel_verifier *v, const smg_instr *instr) {
    const smg_kernel *k = v->k;
    if (instr->a < 0 || instr->a >= k->accesses.count)
        return KERNEL_WRONG(v, "a store through access %d of %d", instr->a, k->accesses.count);
    const smg_access *access = &k->accesses.items[instr->a];
    if (access->buffer < 0 || !k->buffers.items[access->buffer].written)
        return KERNEL_WRONG(v, "a store through access %d, whose buffer is not written", instr->a);
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    SMG_TRY(kernel_verify_laid(v, instr, NULL));
    for (int i = 0; i < access->axis_count; i++) {
        SMG_TRY(kernel_verify_bound(v, access->axis[i]));
        if (k->axes.items[access->axis[i]].tile > 1 && !kernel_verify_has_axis(v->axes, v->axis_count, access->axis[i]))
            return KERNEL_WRONG(v, "access %d runs over axis '%s', which the store does not", instr->a,
                                axis_name(v, access->axis[i]));
    }
    SMG_TRY(check_coverage(v, instr->a));
    int first = v->store_of[access->buffer];
    if (first != v->at) SMG_TRY(check_with(v, first, instr->a, instr));
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_type_kind(k->buffers.items[access->buffer].type)));
    if (access->index != SMG_EXPR_NONE) SMG_TRY(kernel_verify_reads(v, access->index));
    return kernel_verify_reads(v, instr->expr);
}
