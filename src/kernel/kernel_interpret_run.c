/* The instructions of the interpreter, one workgroup at a time. A tile is one array of its elements,
 * whoever owns them on the device; NaN fills all tiles at the start, so that an element that is used
 * before it is written shows in the result. A loop's step is the base of its axis. */
#include "kernel/kernel_interpret.h"

#include <math.h>

static void space_add(const smg_kernel *k, kernel_space *s, int count, const int *axes) {
    for (int i = 0; i < count; i++) {
        s->axis[s->axis_count++] = axes[i];
        s->elements *= k->axes.items[axes[i]].tile;
    }
}

static int block_size(const kernel_space *s, int64_t first) {
    return s->elements - first < KERNEL_BLOCK ? (int)(s->elements - first) : KERNEL_BLOCK;
}

/* What lay on the memory of a tile that is written now is gone. */
static void end_others(const kernel_machine *m, kernel_worker *w, int tile) {
    int memory = tile >= 0 ? m->k->tiles.items[tile].memory : 0;
    for (int t = 0; memory > 0 && t < m->k->tiles.count; t++) {
        if (t == tile || m->k->tiles.items[t].memory != memory) continue;
        int64_t elements = smg_tile_elements(m->k, &m->k->tiles.items[t]);
        for (int64_t i = 0; i < elements; i++) w->tile[t][i] = (double)NAN;
    }
}

static double rounded(const kernel_machine *m, smg_kind kind, double value) {
    return m->single && kind == SMG_KIND_FLOAT ? (double)(float)value : value;
}

/* SET, and STAGE and FETCH, whose elements outside an axis are 0. */
static void run_set(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    space_add(m->k, &s, dst->axis_count, dst->axis);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        double *out = w->tile[instr->dst] + first;
        for (int i = 0; i < n; i++)
            out[i] = instr->kind != SMG_I_SET && !w->inside[i] ? 0.0 : rounded(m, dst->kind, value[i]);
    }
}

/* A STAGE at a base some slices on. Behind the last slice nothing is fetched. */
static void run_fetch(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    int64_t here = w->base[instr->a];
    w->base[instr->a] += instr->b * m->k->axes.items[instr->a].tile;
    if (w->base[instr->a] < m->extent[instr->a] || instr->b == 0) run_set(m, w, instr, tape);
    w->base[instr->a] = here;
}

static void run_reduce(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    space_add(m->k, &s, dst->axis_count, dst->axis);
    int64_t results = s.elements;
    space_add(m->k, &s, instr->axis_count, instr->axes);
    int64_t run = s.elements / results;
    smg_prim prim = smg_combine_prim(instr->combine);
    double *old = w->tile[instr->dst];
    for (int64_t i = 0; i < results; i++)
        w->fold[i] = instr->accumulate ? old[i] : smg_combine_identity(instr->combine);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        bool counts[KERNEL_BLOCK];
        for (int i = 0; i < n; i++) counts[i] = true;
        kernel_block_mask(m, w, &s, dst->axis_count, s.axis_count, n, counts);
        for (int i = 0; i < n; i++) {
            double *fold = &w->fold[(first + i) / run];
            if (counts[i]) *fold = smg_prim_eval(prim, dst->kind, *fold, value[i], 0.0);
            if (dst->kind == SMG_KIND_INT) *fold = smg_wrap_i32(*fold);
        }
    }
    for (int64_t i = 0; i < results; i++) old[i] = rounded(m, dst->kind, w->fold[i]);
}

/* The stride in `tile` of each axis of the space (0 where the tile lacks it). */
static void tile_strides(const smg_kernel *k, const smg_tile *tile, const kernel_space *s, int64_t *out_stride) {
    for (int slot = 0; slot < s->axis_count; slot++) {
        int64_t stride = 1, found = 0;
        for (int a = tile->axis_count - 1; a >= 0; a--) {
            if (tile->axis[a] == s->axis[slot]) found = stride;
            stride *= k->axes.items[tile->axis[a]].tile;
        }
        out_stride[slot] = found;
    }
}

static int64_t element_of(const kernel_worker *w, const kernel_space *s, const int64_t *stride, int i) {
    int64_t element = 0;
    for (int slot = 0; slot < s->axis_count; slot++) element += w->coordinate[slot][i] * stride[slot];
    return element;
}

/* SPILL, whose elements outside an axis are 0, and PUT: what it moves was 0 where invalid when it was fetched, for
 * another base than the present one. */
static void run_move(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    int64_t stride[KERNEL_SPACE_AXES];
    space_add(m->k, &s, dst->axis_count, dst->axis);
    tile_strides(m->k, &m->k->tiles.items[instr->a], &s, stride);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        for (int i = 0; i < n; i++) {
            bool kept = instr->kind == SMG_I_PUT || w->inside[i];
            w->tile[instr->dst][first + i] = kept ? w->tile[instr->a][element_of(w, &s, stride, i)] : 0.0;
        }
    }
}

/* Where the factors of the x-th product lie behind the first ones. */
static void product_offsets(const smg_kernel *k, const kernel_space *inner, const int64_t *a_stride,
                            const int64_t *b_stride, int64_t x, int64_t *out_a, int64_t *out_b) {
    *out_a = *out_b = 0;
    for (int slot = inner->axis_count - 1; slot >= 0; slot--) {
        int64_t tile = k->axes.items[inner->axis[slot]].tile;
        *out_a += x % tile * a_stride[slot];
        *out_b += x % tile * b_stride[slot];
        x /= tile;
    }
}

/* What a product reads of a view, where the axes stand now. */
static bool run_view(const kernel_machine *m, kernel_worker *w, int tile) {
    const smg_tile *t = &m->k->tiles.items[tile];
    if (t->residence != SMG_VIEW) return true;
    const double *data = m->buffers[m->views[t->access].buffer].data;
    kernel_space s = {.elements = 1};
    space_add(m->k, &s, t->axis_count, t->axis);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        if (!kernel_block_address(m, w, t->access, &s, NULL, n)) return false;
        for (int i = 0; i < n; i++) w->tile[tile][first + i] = w->valid[i] && w->inside[i] ? data[w->address[i]] : 0.0;
    }
    return true;
}

/* The products of KERNEL_BLOCK places along the contraction at a time: their offsets are the same for all
 * elements of dst. */
static void run_mma(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const smg_kernel *k = m->k;
    const smg_tile *dst = &k->tiles.items[instr->dst], *ta = &k->tiles.items[instr->a];
    const smg_tile *tb = &k->tiles.items[instr->b];
    kernel_space s = {.elements = 1}, inner = {.elements = 1};
    int64_t a_stride[KERNEL_SPACE_AXES], b_stride[KERNEL_SPACE_AXES];
    int64_t a_inner[KERNEL_SPACE_AXES], b_inner[KERNEL_SPACE_AXES], a_at[KERNEL_BLOCK], b_at[KERNEL_BLOCK];
    space_add(k, &s, dst->axis_count, dst->axis);
    space_add(k, &inner, instr->axis_count, instr->axes);
    tile_strides(k, ta, &s, a_stride);
    tile_strides(k, tb, &s, b_stride);
    tile_strides(k, ta, &inner, a_inner);
    tile_strides(k, tb, &inner, b_inner);
    double *out = w->tile[instr->dst];
    if (!run_view(m, w, instr->a) || !run_view(m, w, instr->b)) return;
    for (int64_t x = 0; x < inner.elements; x += KERNEL_BLOCK) {
        int depth = block_size(&inner, x);
        for (int i = 0; i < depth; i++) product_offsets(k, &inner, a_inner, b_inner, x + i, &a_at[i], &b_at[i]);
        for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
            int n = block_size(&s, first);
            kernel_block_begin(m, w, &s, first, n);
            for (int i = 0; i < n; i++) {
                const double *a = w->tile[instr->a] + element_of(w, &s, a_stride, i);
                const double *b = w->tile[instr->b] + element_of(w, &s, b_stride, i);
                for (int j = 0; j < depth; j++) out[first + i] += a[a_at[j]] * b[b_at[j]];
            }
        }
    }
    for (int64_t i = 0; i < s.elements; i++) out[i] = rounded(m, dst->kind, out[i]);
}

static void run_store(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_kbuffer *buffer = &m->k->buffers.items[m->views[instr->a].buffer];
    smg_kind kind = smg_type_kind(buffer->type);
    double *data = m->buffers[m->views[instr->a].buffer].data;
    kernel_space s = {.elements = 1};
    space_add(m->k, &s, instr->axis_count, instr->axes);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        const double *index = tape->index >= 0 ? &w->slots[(size_t)tape->index * KERNEL_BLOCK] : NULL;
        if (!kernel_block_address(m, w, instr->a, &s, index, n)) return;
        for (int i = 0; i < n; i++)
            if (w->valid[i] && w->inside[i]) data[w->address[i]] = rounded(m, kind, value[i]);
    }
}

/* Runs the instruction at `at`; returns the next one. */
static int run_instr(const kernel_machine *m, kernel_worker *w, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    int axis = instr->kind == SMG_I_END ? m->k->code.items[m->match[at]].axes[0] : instr->axes[0];
    end_others(m, w, instr->dst);
    switch (instr->kind) {
    case SMG_I_SET:
    case SMG_I_STAGE: run_set(m, w, instr, &m->tapes[at]); break;
    case SMG_I_REDUCE: run_reduce(m, w, instr, &m->tapes[at]); break;
    case SMG_I_FETCH: run_fetch(m, w, instr, &m->tapes[at]); break;
    case SMG_I_PUT:
    case SMG_I_SPILL: run_move(m, w, instr); break;
    case SMG_I_MMA: run_mma(m, w, instr); break;
    case SMG_I_STORE: run_store(m, w, instr, &m->tapes[at]); break;
    case SMG_I_LOOP:
        w->base[axis] = 0;
        if (m->extent[axis] <= 0) return m->match[at] + 1;
        break;
    case SMG_I_END:
        w->base[axis] += m->k->axes.items[axis].tile;
        if (w->base[axis] < m->extent[axis]) return m->match[at] + 1;
        w->base[axis] = 0;
        break;
    case SMG_I_JOIN: /* a tile is kept once, whole */
    case SMG_I_BARRIER: break;
    }
    return at + 1;
}

void kernel_group_run(const kernel_machine *m, kernel_worker *w, int64_t group) {
    const smg_kernel *k = m->k;
    int64_t rest = group;
    for (int i = 0; i < k->axes.count; i++) w->base[i] = 0;
    for (int i = k->grid.count - 1; i >= 0; i--) {
        int axis = k->grid.items[i];
        int64_t tile = k->axes.items[axis].tile;
        int64_t steps = m->extent[axis] / tile + (m->extent[axis] % tile != 0);
        w->base[axis] = rest % steps * tile;
        rest /= steps;
    }
    for (int t = 0; t < k->tiles.count; t++) {
        int64_t elements = smg_tile_elements(k, &k->tiles.items[t]);
        for (int64_t i = 0; i < elements; i++) w->tile[t][i] = (double)NAN;
    }
    for (int at = 0; at < k->code.count && w->fault.what == KERNEL_FAULT_NONE;) {
        w->fault.instr = at;
        w->fault.group = group;
        at = run_instr(m, w, at);
    }
}
