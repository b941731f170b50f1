/* The CPU interpreter of the kernel IR: the meaning of a tile program, against which emitted code is
 * checked. It binds the kernel to symbol values, checks the arrays, flattens the expressions, and runs
 * the workgroups over the machine's cores. Each worker has its own memory and its own fault, and takes every
 * workers-th group in order, until one faults; the fault of the lowest group is reported, which its worker has
 * met however many there are: the same input fails with the same sentence on every machine. */
#include "kernel/kernel_interpret.h"

#include <math.h>

#define MOST_WORKERS 16

smg_status kernel_machine_size(kernel_machine *m, smg_size size, const char *what, int64_t *out_value) {
    if (smg_size_eval(m->k->sizes, size, m->symbols, out_value)) return SMG_OK;
    return smg_fail(m->ctx, SMG_INVALID, "kernel '%s': %s overflows or divides by 0 with these symbols", m->k->name,
                    what);
}

/* ---- binding --------------------------------------------------------------------------------------- */

static bool axis_ever_looped(const smg_kernel *k, int axis) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_LOOP && k->code.items[i].axes[0] == axis) return true;
    return false;
}

static smg_status bind_axes(kernel_machine *m) {
    const smg_kernel *k = m->k;
    m->extent = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)k->axes.count + 1);
    m->blocks = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)k->grid.count + 1);
    if (!m->extent || !m->blocks) return SMG_MEMORY;
    for (int i = 0; i < k->axes.count; i++) {
        const smg_kaxis *axis = &k->axes.items[i];
        SMG_TRY(kernel_machine_size(m, axis->extent, axis->name, &m->extent[i]));
        if (m->extent[i] < 0 || m->extent[i] > SMG_SIZE_UNBOUNDED)
            return smg_fail(m->ctx, SMG_INVALID, "kernel '%s': axis '%s' has %lld elements, outside [0, %lld]", k->name,
                            axis->name, (long long)m->extent[i], (long long)SMG_SIZE_UNBOUNDED);
        if (!axis->grid && m->extent[i] > axis->tile && !axis_ever_looped(k, i))
            return smg_fail(m->ctx, SMG_INVALID,
                            "kernel '%s': axis '%s' has %lld elements, its tile holds %lld and no loop is over it",
                            k->name, axis->name, (long long)m->extent[i], (long long)axis->tile);
    }
    for (int g = 0; g < k->grid.count; g++) {
        int64_t extent = m->extent[k->grid.items[g]], tile = k->axes.items[k->grid.items[g]].tile;
        m->blocks[g] = extent / tile + (extent % tile != 0);
    }
    return SMG_OK;
}

static smg_status bind_buffers(kernel_machine *m) {
    const smg_kernel *k = m->k;
    for (int i = 0; i < k->buffers.count; i++) {
        int64_t elements = 0;
        SMG_TRY(kernel_machine_size(m, k->buffers.items[i].elements, k->buffers.items[i].name, &elements));
        if (m->buffers[i].elements != elements || (elements > 0 && !m->buffers[i].data))
            return smg_fail(m->ctx, SMG_INVALID, "kernel '%s': buffer '%s' has %lld elements%s, needs %lld", k->name,
                            k->buffers.items[i].name, (long long)m->buffers[i].elements,
                            m->buffers[i].data ? "" : " and no data", (long long)elements);
    }
    return SMG_OK;
}

/* Adds |factor| * (count) to the reach of a view's address; false when it leaves 62 bits. */
static bool reach_add(int64_t *reach, int64_t factor, int64_t count) {
    int64_t product = 0;
    if (factor == INT64_MIN || !smg_mul_i64(factor < 0 ? -factor : factor, count, &product)) return false;
    return smg_add_i64(*reach, product, reach) && *reach < INT64_MAX / 2;
}

static smg_status bind_view(kernel_machine *m, int number) {
    const smg_kernel *k = m->k;
    const smg_access *access = &k->accesses.items[number];
    kernel_view *v = &m->views[number];
    int64_t reach = 0;
    v->buffer = access->buffer;
    v->axis_count = access->axis_count;
    v->indexed = access->index != SMG_EXPR_NONE;
    SMG_TRY(kernel_machine_size(m, access->offset, "the offset of an access", &v->offset));
    bool good = reach_add(&reach, v->offset, 1);
    for (int a = 0; a < access->axis_count; a++) {
        v->axis[a] = access->axis[a];
        SMG_TRY(kernel_machine_size(m, access->stride[a], "the stride of an access", &v->stride[a]));
        good = good && reach_add(&reach, v->stride[a], m->extent[v->axis[a]] + k->axes.items[v->axis[a]].tile);
    }
    if (v->indexed) {
        SMG_TRY(kernel_machine_size(m, access->index_stride, "the index stride of an access", &v->index_stride));
        SMG_TRY(kernel_machine_size(m, access->index_limit, "the index limit of an access", &v->index_limit));
        good = good && v->index_limit >= 0 && reach_add(&reach, v->index_stride, v->index_limit);
    }
    if (good) return SMG_OK;
    return smg_fail(m->ctx, SMG_INTERNAL, "kernel '%s': access %d has addresses beyond 62 bits", k->name, number);
}

static smg_status bind_views(kernel_machine *m) {
    m->views = SMG_ARENA_ARRAY(m->arena, kernel_view, (size_t)m->k->accesses.count + 1);
    if (!m->views) return SMG_MEMORY;
    for (int i = 0; i < m->k->accesses.count; i++) SMG_TRY(bind_view(m, i));
    return SMG_OK;
}

/* The verifier has proved that loops nest, at most SMG_ACCESS_AXES deep. */
static smg_status bind_loops(kernel_machine *m) {
    const smg_kernel *k = m->k;
    int open[SMG_ACCESS_AXES], depth = 0;
    m->match = SMG_ARENA_ARRAY(m->arena, int, (size_t)k->code.count + 1);
    if (!m->match) return SMG_MEMORY;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *instr = &k->code.items[i];
        if (instr->kind == SMG_I_LOOP) open[depth++] = i;
        if (instr->kind == SMG_I_END) {
            m->match[i] = open[--depth];
            m->match[m->match[i]] = i;
        }
        if (smg_instr_ahead_axis(k, instr) >= 0) m->match[i] = smg_kernel_next_loop(k, i);
    }
    return SMG_OK;
}

/* ---- one workgroup --------------------------------------------------------------------------------- */

static void loop_range(const kernel_machine *m, kernel_worker *w, int loop, int64_t *out_first, int64_t *out_end) {
    int outside =
        smg_kernel_loop_range(m->k, &m->k->code.items[loop], m->symbols, w->base, m->buffers, out_first, out_end);
    if (outside < 0) return;
    w->fault.what = KERNEL_FAULT_ADDRESS;
    w->fault.access = outside;
    w->fault.address = -1;
}

/* What works ahead runs at a base some steps on, or at the first of the loop to come; where the loop has no such step
 * nothing is done. */
static void run_ahead(const kernel_machine *m, kernel_worker *w, int at, int axis) {
    int64_t here = w->base[axis], first = here, end = w->end[axis];
    bool outside = end == 0, any = outside && m->match[at] < 0;
    if (outside && !any) loop_range(m, w, m->match[at], &first, &end);
    w->base[axis] = first + m->k->code.items[at].ahead * m->k->axes.items[axis].tile;
    if (any || w->base[axis] < end) m->mode->run(m, w, at);
    w->base[axis] = here;
}

int kernel_slot(const kernel_machine *m, const kernel_worker *w, const smg_tile *tile) {
    int slots = smg_tile_slots(tile);
    return slots == 1 ? 0 : (int)(w->base[tile->ring] / m->k->axes.items[tile->ring].tile % slots);
}

/* Runs the instruction at `at`; returns the next one. A loop's step is the base of its axis. */
static int run_instr(const kernel_machine *m, kernel_worker *w, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    int axis = instr->kind == SMG_I_END ? m->k->code.items[m->match[at]].axes[0] : instr->axes[0];
    if (instr->kind == SMG_I_LOOP) {
        int64_t first, end;
        loop_range(m, w, at, &first, &end);
        if (first >= end) return m->match[at] + 1;
        w->base[axis] = first;
        w->end[axis] = end;
    } else if (instr->kind == SMG_I_END) {
        w->base[axis] += m->k->axes.items[axis].tile;
        if (w->base[axis] < w->end[axis]) return m->match[at] + 1;
        w->base[axis] = w->end[axis] = 0;
    } else if (smg_instr_ahead_axis(m->k, instr) >= 0) {
        run_ahead(m, w, at, smg_instr_ahead_axis(m->k, instr));
    } else {
        m->mode->run(m, w, at);
    }
    return at + 1;
}

/* Runs the whole program for one workgroup; stops at a fault. */
static void run_group(const kernel_machine *m, kernel_worker *w, int64_t group) {
    const smg_kernel *k = m->k;
    for (int i = 0; i < k->axes.count; i++) w->base[i] = w->end[i] = 0;
    smg_kernel_place_group(k, m->blocks, group, w->block);
    for (int i = 0; i < k->grid.count; i++) {
        int axis = k->grid.items[i];
        w->base[axis] = w->block[i] * k->axes.items[axis].tile;
    }
    m->mode->begin(m, w);
    for (int at = 0; at < k->code.count && w->fault.what == KERNEL_FAULT_NONE;) {
        w->fault.instr = at;
        w->fault.group = group;
        at = run_instr(m, w, at);
    }
}

/* ---- workers --------------------------------------------------------------------------------------- */

static smg_status make_worker(kernel_machine *m, kernel_worker *w) {
    w->base = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)m->k->axes.count + 1);
    w->end = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)m->k->axes.count + 1);
    w->block = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)m->k->grid.count + 1);
    w->slots = SMG_ARENA_ARRAY(m->arena, double, ((size_t)m->most_steps + 1) * KERNEL_BLOCK);
    if (!w->base || !w->end || !w->block || !w->slots) return SMG_MEMORY;
    return m->mode->make_worker(m, w);
}

static smg_status make_workers(kernel_machine *m) {
    int cores = smg_cpu_cores(), most = cores < MOST_WORKERS ? cores : MOST_WORKERS;
    m->workers = m->groups < most ? (int)m->groups : most;
    m->worker = SMG_ARENA_ARRAY(m->arena, kernel_worker, (size_t)m->workers + 1);
    if (!m->worker) return SMG_MEMORY;
    for (int i = 0; i < m->workers; i++) SMG_TRY(make_worker(m, &m->worker[i]));
    return SMG_OK;
}

static void run_workers(void *user, int64_t begin, int64_t end) {
    kernel_machine *m = user;
    for (int64_t i = begin; i < end; i++) {
        kernel_worker *w = &m->worker[i];
        for (int64_t group = i; group < m->groups && w->fault.what == KERNEL_FAULT_NONE; group += m->workers)
            run_group(m, w, group);
    }
}

static smg_status report(const kernel_machine *m) {
    const kernel_fault *fault = NULL;
    for (int i = 0; i < m->workers; i++) {
        const kernel_fault *other = &m->worker[i].fault;
        if (other->what != KERNEL_FAULT_NONE && (!fault || other->group < fault->group)) fault = other;
    }
    if (!fault) return SMG_OK;
    if (fault->what == KERNEL_FAULT_TOLD)
        return smg_fail(m->ctx, SMG_INTERNAL, "kernel '%s', instruction %d, workgroup %lld: %s", m->k->name,
                        fault->instr, (long long)fault->group, fault->told);
    const kernel_view *v = &m->views[fault->access];
    const char *buffer = m->k->buffers.items[v->buffer].name;
    if (fault->what == KERNEL_FAULT_INDEX)
        return smg_fail(m->ctx, SMG_INVALID, "kernel '%s', buffer '%s': index %.0f outside [0, %lld)", m->k->name,
                        buffer, fault->index, (long long)v->index_limit);
    return smg_fail(m->ctx, SMG_INTERNAL,
                    "kernel '%s', instruction %d, workgroup %lld: access %d reaches element %lld of buffer '%s' "
                    "with %lld elements",
                    m->k->name, fault->instr, (long long)fault->group, fault->access, (long long)fault->address, buffer,
                    (long long)m->buffers[v->buffer].elements);
}

static smg_status interpret(kernel_machine *m) {
    SMG_TRY(bind_axes(m));
    SMG_TRY(bind_buffers(m));
    SMG_TRY(bind_views(m));
    SMG_TRY(bind_loops(m));
    SMG_TRY(kernel_tapes_compile(m));
    if (!smg_kernel_grid(m->k, m->symbols, &m->groups))
        return smg_fail(m->ctx, SMG_INVALID, "kernel '%s': the number of workgroups overflows", m->k->name);
    SMG_TRY(m->mode->prepare(m));
    SMG_TRY(make_workers(m));
    smg_parallel_for(m->workers, 1, run_workers, m);
    SMG_TRY(report(m));
    return m->mode->finish ? m->mode->finish(m) : SMG_OK;
}

smg_status kernel_interpret_as(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                               bool single, const kernel_mode *mode) {
    kernel_machine m = {.ctx = ctx, .k = k, .symbols = symbols, .buffers = buffers, .single = single, .mode = mode};
    SMG_TRY(smg_arena_create(ctx, &m.arena));
    smg_status status = interpret(&m);
    smg_arena_destroy(m.arena);
    return status;
}

smg_status smg_kernel_interpret(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                                bool single) {
    SMG_TRY(smg_kernel_verify(ctx, k));
    return kernel_interpret_as(ctx, k, symbols, buffers, single, &kernel_once);
}

smg_status smg_karray_stack(const smg_kbuffer *buffer, const smg_karray *each, smg_arena *arena, smg_karray *out) {
    int last = buffer->each_count - 1;
    out->elements = last * buffer->stride + each[last].elements;
    out->data = SMG_ARENA_ARRAY(arena, double, (size_t)out->elements + 1);
    if (out->data == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < out->elements; i++) out->data[i] = (double)NAN;
    for (int n = 0; n < buffer->each_count; n++)
        memcpy(out->data + n * buffer->stride, each[n].data, (size_t)each[n].elements * sizeof(double));
    return SMG_OK;
}
