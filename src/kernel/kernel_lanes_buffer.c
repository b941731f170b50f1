/* The per-lane mode: who touches which element of a buffer that the kernel writes. Barriers order shared memory alone,
 * and nothing orders workgroups, so an element that a lane writes is no other lane's, however far apart the two are in
 * the program. Workgroups run on threads of their own. Kept of each element are the least and the greatest of the lanes
 * that wrote it, and of those that loaded it, in the order of workgroups: these are the same whoever comes first. Where
 * two of them differ the run has failed. */
#include "kernel/kernel_lanes.h"

#define INSTR_BITS 20
#define MOST_INVOCATIONS (INT64_C(1) << (62 - INSTR_BITS))

static bool loads(const smg_kernel *k, int buffer) {
    for (int i = 0; i < k->leaves.count; i++) {
        const smg_kleaf *leaf = &k->leaves.items[i];
        if (leaf->what == SMG_KLEAF_LOAD && k->accesses.items[leaf->index].buffer == buffer) return true;
    }
    return false;
}

smg_status kernel_lanes_make_buffers(kernel_machine *m) {
    const smg_kernel *k = m->k;
    m->lanes->buffers = SMG_ARENA_ARRAY(m->arena, lanes_buffer, (size_t)k->buffers.count + 1);
    if (!m->lanes->buffers) return SMG_MEMORY;
    if (m->groups > MOST_INVOCATIONS / k->lanes || k->code.count > 1 << INSTR_BITS)
        return smg_fail(m->ctx, SMG_INVALID,
                        "kernel '%s': %lld workgroups of %d instructions are too many to tell apart", k->name,
                        (long long)m->groups, k->code.count);
    for (int b = 0; b < k->buffers.count; b++) {
        lanes_buffer *buffer = &m->lanes->buffers[b];
        size_t elements = (size_t)m->buffers[b].elements;
        if (!k->buffers.items[b].written) continue;
        buffer->written = SMG_ARENA_ARRAY(m->arena, lanes_touched, elements + 1);
        if (!buffer->written) return SMG_MEMORY;
        if (!loads(k, b)) continue;
        buffer->loaded = SMG_ARENA_ARRAY(m->arena, lanes_touched, elements + 1);
        if (!buffer->loaded) return SMG_MEMORY;
    }
    return SMG_OK;
}

/* ---- while it runs -------------------------------------------------------------------------------------- */

static void raise_to(atomic_ullong *most, unsigned long long value) {
    unsigned long long old = atomic_load_explicit(most, memory_order_relaxed);
    while (old < value &&
           !atomic_compare_exchange_weak_explicit(most, &old, value, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* The lane's number in the grid and the instruction, never 0. */
static void touch(const kernel_machine *m, const kernel_worker *w, lanes_touched *element, int i) {
    int64_t invocation = w->fault.group * m->k->lanes + w->lanes->lane[i];
    unsigned long long who = ((unsigned long long)invocation << INSTR_BITS | (unsigned)w->fault.instr) + 1;
    raise_to(&element->last, who);
    raise_to(&element->first, ~who);
}

void kernel_lanes_wrote(const kernel_machine *m, const kernel_worker *w, int buffer, int i) {
    touch(m, w, &m->lanes->buffers[buffer].written[w->address[i]], i);
}

void kernel_lanes_loaded(const kernel_machine *m, const kernel_worker *w, int buffer, int n) {
    lanes_touched *loaded = m->lanes->buffers[buffer].loaded;
    for (int i = 0; loaded && i < n; i++)
        if (w->valid[i]) touch(m, w, &loaded[w->address[i]], i);
}

/* ---- afterwards ----------------------------------------------------------------------------------------- */

typedef struct toucher {
    int64_t invocation;
    int instr;
} toucher;

static toucher of_number(unsigned long long who) {
    return (toucher){(int64_t)((who - 1) >> INSTR_BITS), (int)((who - 1) & ((1u << INSTR_BITS) - 1))};
}

/* false: nobody. */
static bool touchers(const lanes_touched *element, toucher *out_first, toucher *out_last) {
    unsigned long long last = atomic_load_explicit(&element->last, memory_order_relaxed);
    if (last == 0) return false;
    *out_first = of_number(~atomic_load_explicit(&element->first, memory_order_relaxed));
    *out_last = of_number(last);
    return true;
}

static smg_status race(const kernel_machine *m, int buffer, int64_t element, const toucher *a, const char *did,
                       const toucher *b) {
    long long lanes = m->k->lanes;
    return smg_fail(m->ctx, SMG_INTERNAL,
                    "kernel '%s', instruction %d, workgroup %lld: lane %lld %s element %lld of buffer '%s', which lane "
                    "%lld of workgroup %lld writes in instruction %d, and no barrier orders buffers",
                    m->k->name, a->instr, (long long)a->invocation / lanes, (long long)a->invocation % lanes, did,
                    (long long)element, m->k->buffers.items[buffer].name, (long long)b->invocation % lanes,
                    (long long)b->invocation / lanes, b->instr);
}

static smg_status check_element(const kernel_machine *m, int buffer, int64_t element) {
    const lanes_buffer *b = &m->lanes->buffers[buffer];
    toucher first, last, least, most;
    if (!touchers(&b->written[element], &first, &last)) return SMG_OK;
    if (first.invocation != last.invocation) return race(m, buffer, element, &last, "writes", &first);
    if (!b->loaded || !touchers(&b->loaded[element], &least, &most)) return SMG_OK;
    if (least.invocation != first.invocation) return race(m, buffer, element, &least, "loads", &first);
    return most.invocation != first.invocation ? race(m, buffer, element, &most, "loads", &first) : SMG_OK;
}

smg_status kernel_lanes_finish(const kernel_machine *m) {
    for (int b = 0; b < m->k->buffers.count; b++)
        for (int64_t i = 0; m->lanes->buffers[b].written && i < m->buffers[b].elements; i++)
            SMG_TRY(check_element(m, b, i));
    return SMG_OK;
}
