/* The per-lane mode: instructions. Within one instruction lanes exchange values only where the instruction itself is an
 * exchange (kernel_lanes_exchange.c), between the lanes whose bits its layout puts on the axes that go. */
#include "kernel/kernel_lanes.h"

/* What the tape makes of a tile's block; the coordinates are the elements' own again afterwards. */
static const double *run_clamped(const kernel_machine *m, kernel_worker *w, const smg_tile *dst,
                                 const kernel_tape *tape, const kernel_space *s, int n) {
    int64_t own[KERNEL_SPACE_AXES][KERNEL_BLOCK];
    if (dst->clamped == 0) return kernel_tape_run(m, w, tape, s, n);
    memcpy(own, w->coordinate, sizeof own);
    kernel_block_clamp(m, w, s, dst, n);
    const double *value = kernel_tape_run(m, w, tape, s, n);
    memcpy(w->coordinate, own, sizeof own);
    return value;
}

/* SET, and STAGE and FETCH, whose elements outside an axis are 0, or what the axis ends with. */
static void run_set(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    bool flat = instr->kind != SMG_I_SET;
    kernel_space s = {.elements = 1};
    double out[KERNEL_BLOCK];
    kernel_space_add(m->k, &s, flat ? instr->axis_count : dst->axis_count, flat ? instr->axes : dst->axis);
    lanes_walk walk = flat ? kernel_lanes_deal(m, w, instr) : kernel_lanes_walk(m, w, dst->layout);
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        const double *value = run_clamped(m, w, dst, tape, &s, n);
        if (!value) return;
        kernel_rounded_each(m, dst->type, value, n, out);
        for (int i = 0; flat && i < n; i++)
            if (!w->inside[i]) out[i] = 0.0;
        if (!kernel_lanes_write(m, w, instr->dst, &s, n, out)) return;
    }
}

/* SPILL, whose elements outside an axis are 0, by the first lane that holds them; PUT by all lanes; TAKE by those that
 * hold them. */
static void run_move(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    bool spill = instr->kind == SMG_I_SPILL, put = instr->kind == SMG_I_PUT;
    const smg_tile *t = &m->k->tiles.items[spill ? instr->a : instr->dst];
    kernel_space s = {.elements = 1};
    double value[KERNEL_BLOCK];
    kernel_space_add(m->k, &s, put ? instr->axis_count : t->axis_count, put ? instr->axes : t->axis);
    lanes_walk walk = put ? kernel_lanes_deal(m, w, instr) : kernel_lanes_walk(m, w, t->layout);
    if (spill) walk.skip = walk.places->copies;
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        if (!kernel_lanes_read(m, w, instr->a, &s, n, value)) return;
        bool kept[KERNEL_BLOCK];
        for (int i = 0; i < n; i++) kept[i] = !spill || w->inside[i];
        if (put) kernel_block_put(m, w, &s, instr, n, kept);
        kernel_rounded_each(m, m->k->tiles.items[instr->dst].type, value, n, value);
        for (int i = 0; i < n; i++)
            if (!kept[i]) value[i] = 0.0;
        if (!kernel_lanes_write(m, w, instr->dst, &s, n, value)) return;
    }
}

/* ---- reductions ------------------------------------------------------------------------------------- */

/* Each lane's own elements. */
static bool fold_own(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    smg_prim prim = smg_combine_prim(instr->combine);
    smg_kind kind = smg_tile_kind(dst);
    int64_t results = (int64_t)m->lanes->places[dst->layout].registers * m->k->lanes;
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, dst->axis_count, dst->axis);
    kernel_space_add(m->k, &s, instr->axis_count, instr->axes);
    for (int64_t i = 0; i < results; i++) w->lanes->fold[i] = smg_combine_identity(instr->combine);
    lanes_walk walk = kernel_lanes_walk(m, w, instr->layout);
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        bool counts[KERNEL_BLOCK];
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value || !kernel_lanes_find(m, w, instr->dst, &s, n)) return false;
        for (int i = 0; i < n; i++) counts[i] = true;
        kernel_block_mask(m, w, &s, dst->axis_count, s.axis_count, n, counts);
        for (int i = 0; i < n; i++) {
            double *fold = &w->lanes->fold[w->address[i]];
            if (counts[i]) *fold = kernel_folded(prim, kind, *fold, value[i]);
        }
    }
    return true;
}

static void run_reduce(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    const smg_kernel *k = m->k;
    const smg_tile *dst = &k->tiles.items[instr->dst];
    smg_prim prim = smg_combine_prim(instr->combine);
    uint32_t mask = smg_layout_local_mask(&k->layouts.items[instr->layout], instr->axes, instr->axis_count);
    int registers = m->lanes->places[dst->layout].registers;
    kernel_space s = {.elements = 1};
    double out[KERNEL_BLOCK];
    if (!fold_own(m, w, instr, tape)) return;
    if (!instr->apart) kernel_lanes_combine(k->lanes, mask, registers, prim, smg_tile_kind(dst), w->lanes->fold);
    kernel_space_add(k, &s, dst->axis_count, dst->axis);
    lanes_walk walk = kernel_lanes_walk(m, w, dst->layout);
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        if (instr->accumulate && !kernel_lanes_read(m, w, instr->dst, &s, n, out)) return;
        for (int i = 0; i < n; i++) {
            double total = w->lanes->fold[w->lanes->lane[i] * registers + w->lanes->reg[i]];
            if (instr->accumulate) total = kernel_folded(prim, smg_tile_kind(dst), out[i], total);
            out[i] = kernel_rounded(m, dst->type, total);
        }
        if (!kernel_lanes_write(m, w, instr->dst, &s, n, out)) return;
    }
    w->lanes->tile[instr->dst].partial = instr->apart ? mask : 0;
}

/* ---- products --------------------------------------------------------------------------------------- */

/* The registers of a factor that is a view, of all lanes. Elements that do not exist are 0. */
static bool load_view(const kernel_machine *m, kernel_worker *w, const smg_tile *t, const lanes_places *p,
                      double *out) {
    const double *data = m->buffers[m->views[t->access].buffer].data;
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, t->axis_count, t->axis);
    lanes_walk walk = {.places = p, .end = (int64_t)p->registers * m->k->lanes};
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        if (!kernel_block_address(m, w, t->access, &s, NULL, n)) return false;
        for (int i = 0; i < n; i++) {
            double value = w->valid[i] && w->inside[i] ? data[w->address[i]] : 0.0;
            out[w->lanes->lane[i] * p->registers + w->lanes->reg[i]] = value;
        }
    }
    return true;
}

/* The same of one that the subgroup's lanes hold together. */
static bool load_held(const kernel_machine *m, kernel_worker *w, int tile, const lanes_places *p, const int *from,
                      double *out) {
    const lanes_tile *held = &w->lanes->tile[tile];
    const smg_tile *t = &m->k->tiles.items[tile];
    int64_t first = kernel_slot(m, w, t) * held->one;
    for (int i = 0; i < p->registers * m->k->lanes; i++) {
        int at = from[i], lane = i / p->registers;
        if (at == LANES_NOBODY)
            return kernel_lanes_fault(w, "lane %d multiplies an element of '%s' that it does not hold", lane, t->name);
        if (at >= 0 && !held->set[first + at])
            return kernel_lanes_fault(w, "lane %d multiplies an element of '%s' that nobody has set", lane, t->name);
        out[i] = at >= 0 ? held->value[first + at] : 0.0;
    }
    return true;
}

static bool load_factor(const kernel_machine *m, kernel_worker *w, int tile, const lanes_places *p, const int *from,
                        double *out) {
    const smg_tile *t = &m->k->tiles.items[tile];
    if (t->residence == SMG_VIEW) return load_view(m, w, t, p, out);
    if (t->residence == SMG_REGISTER) return load_held(m, w, tile, p, from, out);
    return kernel_lanes_load(m, w, tile, p, from, out);
}

/* To partial sums of f16, which are added to the lane's when they have all their terms. */
static void add_products(const smg_instr *instr, const lanes_product *product, const int *sum_of, int count,
                         const double *left, const double *right, kernel_lanes *l) {
    for (int i = 0; i < count; i++) {
        int r = l->live[i], to = sum_of[r];
        lanes_partial *part = &l->parts_of[to];
        part->sum = smg_type_stored(SMG_TYPE_F16, part->sum + left[product->left_of[r]] * right[product->right_of[r]]);
        if (++part->terms < instr->terms) continue;
        l->sums[to] += part->sum;
        *part = (lanes_partial){0};
    }
}

/* Multiplies `count` of the lane's places, and adds that to the lane's sums. */
static bool multiply(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const lanes_product *product,
                     int lane, int count) {
    kernel_lanes *l = w->lanes;
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    const int *sum_of = kernel_lanes_beside(m, dst->layout, instr->layout)->reg;
    const double *left = l->left + (int64_t)lane * product->left.registers;
    const double *right = l->right + (int64_t)lane * product->right.registers;
    int registers = m->lanes->places[dst->layout].registers;
    double *value = l->tile[instr->dst].value + (int64_t)lane * registers;
    memset(l->sums, 0, (size_t)registers * sizeof *l->sums);
    memset(l->summed, 0, (size_t)registers * sizeof *l->summed);
    if (instr->terms > 0) memset(l->parts_of, 0, (size_t)registers * sizeof *l->parts_of);
    for (int i = 0; i < count; i++) l->summed[sum_of[l->live[i]]] = true;
    if (instr->terms > 0) add_products(instr, product, sum_of, count, left, right, l);
    for (int i = 0; instr->terms == 0 && i < count; i++) {
        int r = l->live[i];
        l->sums[sum_of[r]] += left[product->left_of[r]] * right[product->right_of[r]];
    }
    for (int r = 0; r < registers; r++) {
        if (!l->summed[r]) continue;
        if (!l->tile[instr->dst].set[lane * registers + r])
            return kernel_lanes_fault(w, "lane %d adds to a sum of '%s' that nobody has set", lane, dst->name);
        value[r] = kernel_rounded(m, dst->type, value[r] + l->sums[r]);
    }
    return true;
}

static void run_mma(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const lanes_product *product) {
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    const smg_layout *layout = &m->k->layouts.items[instr->layout];
    const lanes_places *p = &m->lanes->places[instr->layout];
    if (!kernel_lanes_beside(m, dst->layout, instr->layout)->held) {
        (void)kernel_lanes_fault(w, "the sums of '%s' lie in other lanes than layout %d multiplies them in", dst->name,
                                 instr->layout);
        return;
    }
    if (!load_factor(m, w, instr->a, &product->left, product->left_from, w->lanes->left) ||
        !load_factor(m, w, instr->b, &product->right, product->right_from, w->lanes->right))
        return;
    for (int lane = 0, count = 0; lane < m->k->lanes; lane++) {
        if (lane == 0 || p->ragged) count = kernel_lanes_live(p, lane, w->lanes->live);
        if (!multiply(m, w, instr, product, lane, count)) return;
    }
    w->lanes->tile[instr->dst].partial |= smg_layout_local_mask(layout, instr->axes, instr->axis_count);
}

/* ---- stores ----------------------------------------------------------------------------------------- */

/* All lanes that hold an element compute it, the first one stores it. */
static void run_store(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, const kernel_tape *tape) {
    int buffer = m->views[instr->a].buffer;
    smg_type type = m->k->buffers.items[buffer].type;
    double *data = m->buffers[buffer].data;
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, instr->axis_count, instr->axes);
    lanes_walk walk = kernel_lanes_walk(m, w, instr->layout);
    for (int n; (n = kernel_lanes_next(m, w, &s, &walk)) > 0;) {
        const double *value = kernel_tape_run(m, w, tape, &s, n);
        if (!value) return;
        const double *index = tape->index >= 0 ? &w->slots[(size_t)tape->index * KERNEL_BLOCK] : NULL;
        if (!kernel_block_address(m, w, instr->a, &s, index, n)) return;
        for (int i = 0; i < n; i++) {
            bool first = ((uint32_t)w->lanes->lane[i] & walk.places->copies) == 0;
            if (!first || !w->valid[i] || !w->inside[i]) continue;
            data[w->address[i]] = kernel_rounded(m, type, value[i]);
            kernel_lanes_wrote(m, w, buffer, i);
        }
    }
}

/* Lanes whose parts the instruction may read: where each of its elements is in one of them. */
static uint32_t apart_of(const kernel_machine *m, const smg_instr *instr) {
    if (instr->kind == SMG_I_SET) return ~UINT32_C(0);
    return instr->kind == SMG_I_REDUCE && instr->apart ? ~m->lanes->places[instr->layout].copies : 0;
}

void kernel_lanes_run(const kernel_machine *m, kernel_worker *w, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    const kernel_tape *tape = &m->tapes[at];
    smg_residence residence = instr->dst >= 0 ? m->k->tiles.items[instr->dst].residence : SMG_VIEW;
    w->lanes->apart = apart_of(m, instr);
    w->lanes->parts = 0;
    switch (instr->kind) {
    case SMG_I_SET:
    case SMG_I_STAGE:
    case SMG_I_FETCH: run_set(m, w, instr, tape); break;
    case SMG_I_REDUCE: run_reduce(m, w, instr, tape); break;
    case SMG_I_PUT:
    case SMG_I_TAKE:
    case SMG_I_SPILL: run_move(m, w, instr); break;
    case SMG_I_MMA: run_mma(m, w, instr, &m->lanes->products[at]); break;
    case SMG_I_JOIN: kernel_lanes_join(m, w, instr); break;
    case SMG_I_LEAVE: kernel_lanes_leave(m, w, instr); break;
    case SMG_I_FOLD: kernel_lanes_fold(m, w, instr); break;
    case SMG_I_GATHER: kernel_lanes_gather(m, w, instr); break;
    case SMG_I_STORE: run_store(m, w, instr, tape); break;
    case SMG_I_BARRIER: kernel_lanes_barrier(w, instr->scope); break;
    case SMG_I_LOOP:
    case SMG_I_END: break;
    }
    if (residence != SMG_REGISTER || w->fault.what != KERNEL_FAULT_NONE) return;
    if (instr->kind == SMG_I_SET)
        w->lanes->tile[instr->dst].partial =
            w->lanes->parts & m->lanes->places[m->k->tiles.items[instr->dst].layout].copies;
    (void)kernel_lanes_compare(m, w, instr->dst);
}
