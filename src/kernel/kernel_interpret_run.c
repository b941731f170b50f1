/* The fast mode of the interpreter. A tile is one array of its elements, whoever holds them on the device; NaN fills
 * all tiles at the start, so that an element that is used before it is written shows in the result. */
#include "kernel/kernel_interpret.h"

#include <math.h>

static int block_size(const kernel_space *s, int64_t first) {
    return s->elements - first < KERNEL_BLOCK ? (int)(s->elements - first) : KERNEL_BLOCK;
}

/* All elements of the tile, of all slots. */
static int64_t whole_of(const smg_kernel *k, const smg_tile *tile) {
    return smg_tile_elements(k, tile) * smg_tile_slots(tile);
}

static int64_t stride_of(const smg_kernel *k, const smg_tile *tile, int axis);

/* The elements at hand: of one slot, or slice. */
static double *slot_at(const kernel_machine *m, const kernel_worker *w, int tile) {
    const smg_tile *t = &m->k->tiles.items[tile];
    if (t->sliced) return w->tile[t->of] + w->base[t->ring] * stride_of(m->k, t, t->ring);
    int slot = kernel_slot(m, w, t);
    return w->tile[tile] + (slot > 0 ? slot * smg_tile_elements(m->k, t) : 0);
}

/* What lay on the memory of a tile that is written now is gone. */
static void end_others(const kernel_machine *m, kernel_worker *w, int tile) {
    int memory = tile >= 0 ? m->k->tiles.items[tile].memory : 0;
    for (int t = 0; memory > 0 && t < m->k->tiles.count; t++) {
        if (t == tile || m->k->tiles.items[t].memory != memory) continue;
        const smg_tile *other = &m->k->tiles.items[t];
        int64_t elements = smg_tile_elements(m->k, other) * smg_tile_slots(other);
        for (int64_t i = 0; i < elements; i++) w->tile[t][i] = (double)NAN;
    }
}

/* SET, and STAGE and FETCH, whose elements outside an axis are 0, or what the axis ends with. */
static void run_set(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, dst->axis_count, dst->axis);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        if (dst->clamped != 0) kernel_block_clamp(m, w, &s, dst, n);
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        double *out = slot_at(m, w, instr->dst) + first;
        kernel_rounded_each(m, dst->type, value, n, out);
        for (int i = 0; i < n && instr->kind != SMG_I_SET; i++)
            if (!w->inside[i]) out[i] = 0.0;
    }
}

static void run_reduce(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, dst->axis_count, dst->axis);
    int64_t results = s.elements;
    kernel_space_add(m->k, &s, instr->axis_count, instr->axes);
    int64_t run = s.elements / results;
    smg_prim prim = smg_combine_prim(instr->combine);
    smg_kind kind = smg_tile_kind(dst);
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
        int64_t result = first / run, left = run - first % run;
        for (int i = 0; i < n; i++) {
            if (counts[i]) w->fold[result] = kernel_folded(prim, kind, w->fold[result], value[i]);
            if (--left > 0) continue;
            left = run;
            result++;
        }
    }
    kernel_rounded_each(m, dst->type, w->fold, (int)results, old);
}

/* The stride of the axis in what is kept of `tile`, which has no padding. */
static int64_t stride_of(const smg_kernel *k, const smg_tile *tile, int axis) {
    smg_tile kept = tile->sliced ? k->tiles.items[tile->of] : *tile;
    if (!smg_tile_has(tile, axis)) return 0;
    if (tile->sliced && axis == tile->ring) axis = tile->along;
    kept.pad = 0;
    return smg_tile_stride(k, &kept, axis);
}

static void tile_strides(const smg_kernel *k, const smg_tile *tile, const kernel_space *s, int64_t *out_stride) {
    for (int slot = 0; slot < s->axis_count; slot++) out_stride[slot] = stride_of(k, tile, s->axis[slot]);
}

/* Where the block's elements are from `from` on. */
static void places_of(const kernel_worker *w, const kernel_space *s, const int64_t *stride, const double *from, int n,
                      const double **out) {
    for (int i = 0; i < n; i++) out[i] = from;
    for (int slot = 0; slot < s->axis_count; slot++) {
        const int64_t *at = w->coordinate[slot], step = stride[slot];
        for (int i = 0; step != 0 && i < n; i++) out[i] += at[i] * step;
    }
}

/* SPILL, whose elements outside an axis are 0, PUT and TAKE: what they move was 0 where invalid when it was fetched,
 * but for axes that were clamped. And GATHER of matrices, which may add. */
static void run_move(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, int moved) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    kernel_space s = {.elements = 1};
    int64_t stride[KERNEL_SPACE_AXES];
    double *out = slot_at(m, w, instr->dst);
    const double *from = slot_at(m, w, moved);
    kernel_space_add(m->k, &s, dst->axis_count, dst->axis);
    tile_strides(m->k, &m->k->tiles.items[moved], &s, stride);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        bool kept[KERNEL_BLOCK];
        for (int i = 0; i < n; i++) kept[i] = instr->kind != SMG_I_SPILL || w->inside[i];
        if (instr->kind == SMG_I_PUT) kernel_block_put(m, w, &s, instr, n, kept);
        const double *at[KERNEL_BLOCK];
        places_of(w, &s, stride, from, n, at);
        for (int i = 0; i < n; i++) {
            double value = kept[i] ? *at[i] : 0.0;
            out[first + i] = instr->accumulate ? out[first + i] + value : value;
        }
        kernel_rounded_each(m, dst->type, out + first, n, out + first);
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
    kernel_space_add(m->k, &s, t->axis_count, t->axis);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        if (!kernel_block_address(m, w, t->access, &s, NULL, n)) return false;
        for (int i = 0; i < n; i++) w->tile[tile][first + i] = w->valid[i] && w->inside[i] ? data[w->address[i]] : 0.0;
    }
    return true;
}

/* The sum of `count` products; of f16 it is rounded after each. */
static double sum_of(const smg_instr *instr, const double *a, const double *b, const int64_t *a_at, const int64_t *b_at,
                     int count) {
    double sum = 0;
    for (int j = 0; j < count && instr->terms == 0; j++) sum += a[a_at[j]] * b[b_at[j]];
    for (int j = 0; j < count && instr->terms > 0; j++)
        sum = smg_type_stored(SMG_TYPE_F16, a[a_at[j]] * b[b_at[j]] + sum);
    return sum;
}

/* The same of four elements, whose sums do not wait for each other. */
static void sums_of_four(const double *const a[4], const double *const b[4], const int64_t *a_at, const int64_t *b_at,
                         int count, double *out) {
    double sum[4] = {0, 0, 0, 0};
    for (int j = 0; j < count; j++) {
        int64_t x = a_at[j], y = b_at[j];
        sum[0] += a[0][x] * b[0][y];
        sum[1] += a[1][x] * b[1][y];
        sum[2] += a[2][x] * b[2][y];
        sum[3] += a[3][x] * b[3][y];
    }
    for (int i = 0; i < 4; i++) out[i] += sum[i];
}

/* Adds the products of a block, whose elements have their first factors at left[] and right[]. */
static void add_block(const smg_instr *instr, const double *const *left, const double *const *right,
                      const int64_t *a_at, const int64_t *b_at, int depth, int n, double *out) {
    int i = 0;
    for (; instr->terms == 0 && i + 4 <= n; i += 4) sums_of_four(left + i, right + i, a_at, b_at, depth, out + i);
    for (; i < n; i++) out[i] += sum_of(instr, left[i], right[i], a_at, b_at, depth);
}

/* The products of a partial sum, or of KERNEL_BLOCK places along the contraction, at a time: their offsets are the same
 * for all elements of dst. */
static void run_mma(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const smg_kernel *k = m->k;
    const smg_tile *dst = &k->tiles.items[instr->dst], *ta = &k->tiles.items[instr->a];
    const smg_tile *tb = &k->tiles.items[instr->b];
    kernel_space s = {.elements = 1}, inner = {.elements = 1};
    int64_t a_stride[KERNEL_SPACE_AXES], b_stride[KERNEL_SPACE_AXES];
    int64_t a_inner[KERNEL_SPACE_AXES], b_inner[KERNEL_SPACE_AXES], a_at[KERNEL_BLOCK], b_at[KERNEL_BLOCK];
    kernel_space_add(k, &s, dst->axis_count, dst->axis);
    kernel_space_add(k, &inner, instr->axis_count, instr->axes);
    tile_strides(k, ta, &s, a_stride);
    tile_strides(k, tb, &s, b_stride);
    tile_strides(k, ta, &inner, a_inner);
    tile_strides(k, tb, &inner, b_inner);
    double *out = w->tile[instr->dst];
    const double *left = slot_at(m, w, instr->a), *right = slot_at(m, w, instr->b);
    if (!run_view(m, w, instr->a) || !run_view(m, w, instr->b)) return;
    int64_t step = instr->terms > 0 ? instr->terms : KERNEL_BLOCK;
    for (int64_t x = 0; x < inner.elements; x += step) {
        int depth = instr->terms > 0 ? instr->terms : block_size(&inner, x);
        for (int i = 0; i < depth; i++) product_offsets(k, &inner, a_inner, b_inner, x + i, &a_at[i], &b_at[i]);
        for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
            int n = block_size(&s, first);
            kernel_block_begin(m, w, &s, first, n);
            const double *a[KERNEL_BLOCK], *b[KERNEL_BLOCK];
            places_of(w, &s, a_stride, left, n, a);
            places_of(w, &s, b_stride, right, n, b);
            add_block(instr, a, b, a_at, b_at, depth, n, out + first);
        }
    }
    kernel_rounded_each(m, dst->type, out, (int)s.elements, out);
}

static void run_store(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_kbuffer *buffer = &m->k->buffers.items[m->views[instr->a].buffer];
    double *data = m->buffers[m->views[instr->a].buffer].data;
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, instr->axis_count, instr->axes);
    for (int64_t first = 0; first < s.elements; first += KERNEL_BLOCK) {
        int n = block_size(&s, first);
        kernel_block_begin(m, w, &s, first, n);
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        const double *index = tape->index >= 0 ? &w->slots[(size_t)tape->index * KERNEL_BLOCK] : NULL;
        if (!kernel_block_address(m, w, instr->a, &s, index, n)) return;
        double rounded[KERNEL_BLOCK];
        kernel_rounded_each(m, buffer->type, value, n, rounded);
        for (int i = 0; i < n; i++)
            if (w->valid[i] && w->inside[i]) data[w->address[i]] = rounded[i];
    }
}

/* A tile is kept once, whole; shares of it are another one, and sums of matrices, all of which come with the first
 * registers. */
static void run_gather(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    if (instr->b < 0) return;
    if (instr->matrices) {
        if (instr->first == 0) run_move(m, w, instr, instr->b);
        return;
    }
    int64_t elements = smg_tile_elements(m->k, &m->k->tiles.items[instr->dst]);
    memcpy(slot_at(m, w, instr->dst), slot_at(m, w, instr->b), (size_t)elements * sizeof(double));
}

static void run_instr(const kernel_machine *m, kernel_worker *w, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    end_others(m, w, instr->dst);
    switch (instr->kind) {
    case SMG_I_SET:
    case SMG_I_FETCH:
    case SMG_I_STAGE: run_set(m, w, instr, &m->tapes[at]); break;
    case SMG_I_REDUCE: run_reduce(m, w, instr, &m->tapes[at]); break;
    case SMG_I_PUT:
    case SMG_I_TAKE:
    case SMG_I_SPILL: run_move(m, w, instr, instr->a); break;
    case SMG_I_GATHER: run_gather(m, w, instr); break;
    case SMG_I_MMA: run_mma(m, w, instr); break;
    case SMG_I_STORE: run_store(m, w, instr, &m->tapes[at]); break;
    case SMG_I_JOIN: /* a tile is kept once, whole */
    case SMG_I_LEAVE:
    case SMG_I_FOLD:
    case SMG_I_BARRIER:
    case SMG_I_LOOP:
    case SMG_I_END: break;
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------ */

static smg_status prepare(kernel_machine *m) {
    (void)m;
    return SMG_OK;
}

static smg_status make_worker(kernel_machine *m, kernel_worker *w) {
    const smg_kernel *k = m->k;
    int64_t results = 0;
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].kind != SMG_I_REDUCE) continue;
        int64_t elements = smg_tile_elements(k, &k->tiles.items[k->code.items[i].dst]);
        if (elements > results) results = elements;
    }
    w->fold = SMG_ARENA_ARRAY(m->arena, double, (size_t)results + 1);
    w->tile = SMG_ARENA_ARRAY(m->arena, double *, (size_t)k->tiles.count + 1);
    if (!w->fold || !w->tile) return SMG_MEMORY;
    for (int i = 0; i < k->tiles.count; i++) {
        w->tile[i] = SMG_ARENA_ARRAY(m->arena, double, (size_t)whole_of(k, &k->tiles.items[i]));
        if (!w->tile[i]) return SMG_MEMORY;
    }
    return SMG_OK;
}

static void begin(const kernel_machine *m, kernel_worker *w) {
    for (int t = 0; t < m->k->tiles.count; t++) {
        int64_t elements = whole_of(m->k, &m->k->tiles.items[t]);
        for (int64_t i = 0; i < elements; i++) w->tile[t][i] = (double)NAN;
    }
}

static bool read_tile(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n, double *out) {
    int64_t stride[KERNEL_SPACE_AXES];
    tile_strides(m->k, &m->k->tiles.items[tile], s, stride);
    const double *at[KERNEL_BLOCK];
    places_of(w, s, stride, slot_at(m, w, tile), n, at);
    for (int i = 0; i < n; i++) out[i] = *at[i];
    return true;
}

const kernel_mode kernel_once = {prepare, make_worker, begin, run_instr, read_tile, NULL, NULL};
