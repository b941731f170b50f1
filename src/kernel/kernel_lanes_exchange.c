/* The per-lane mode: lanes tell each other their parts, inside a subgroup at once (JOIN), across subgroups by words
 * that each unit leaves for the others. */
#include "kernel/kernel_lanes.h"

void kernel_lanes_combine(int lanes, uint32_t mask, int registers, smg_prim prim, smg_kind kind, double *value) {
    for (int lane = 0; lane < lanes; lane++) {
        if (((uint32_t)lane & mask) != 0) continue;
        for (int r = 0; r < registers; r++) {
            double total = value[lane * registers + r];
            for (uint32_t other = smg_exchange_next(mask, 0); other != 0; other = smg_exchange_next(mask, other))
                total = kernel_folded(prim, kind, total, value[(lane | (int)other) * registers + r]);
            for (uint32_t other = mask; other != 0; other = (other - 1) & mask)
                value[(lane | (int)other) * registers + r] = total;
            value[lane * registers + r] = total;
        }
    }
}

void kernel_lanes_join(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const smg_kernel *k = m->k;
    const smg_tile *dst = &k->tiles.items[instr->dst];
    lanes_tile *own = &w->lanes->tile[instr->dst];
    uint32_t mask = smg_layout_local_mask(&k->layouts.items[instr->layout], instr->axes, instr->axis_count);
    int registers = m->lanes->places[dst->layout].registers;
    if (instr->form != SMG_JOIN_OPEN) mask &= (uint32_t)k->subgroup - 1;
    kernel_lanes_combine(k->lanes, mask, registers, smg_combine_prim(instr->combine), smg_tile_kind(dst), own->value);
    for (int64_t i = 0; i < (int64_t)registers * k->lanes; i++)
        own->value[i] = kernel_rounded(m, dst->type, own->value[i]);
    own->partial &= ~mask;
}

/* The word of the unit for the reg-th register; where the workgroup's shared memory has it. */
static int64_t address_of(const kernel_machine *m, const smg_exchange *e, int words, int reg, int unit) {
    return m->lanes->first_word[words] + smg_exchange_word(e, reg, unit);
}

/* The lane that speaks for its unit. */
static bool speaks(const smg_kernel *k, const smg_exchange *e, int lane) {
    uint32_t copies = e->width > 1 ? (uint32_t)k->subgroup - 1 : e->joined;
    return ((uint32_t)lane & copies) == 0;
}

/* ---- opaque sums ------------------------------------------------------------------------------------ */

static int64_t matrix_address(const kernel_machine *m, int words, int reg, int lane) {
    int64_t own = smg_matrix_words(m->k, &m->k->tiles.items[words]) * (lane / m->k->subgroup);
    return m->lanes->first_word[words] + own + smg_matrix_word(m->k, reg, lane);
}

/* Which lane stores which element nobody knows: here never the one that will take it. */
static void leave_matrices(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const lanes_tile *own = &w->lanes->tile[instr->a];
    const lanes_places *p = &m->lanes->places[m->k->tiles.items[instr->a].layout];
    uint32_t copies = p->copies & ((uint32_t)m->k->subgroup - 1);
    for (int lane = 0; lane < m->k->lanes; lane++)
        for (int r = 0; ((uint32_t)lane & copies) == 0 && r < instr->registers; r++) {
            double value = own->value[lane * p->registers + instr->first + r]; /* NaN behind the tile's end */
            int64_t address = matrix_address(m, instr->dst, r, lane);
            if (!kernel_lanes_write_word(m, w, instr->dst, address, lane ^ (m->k->subgroup - 1), value)) return;
        }
}

static void gather_matrices(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    lanes_tile *own = &w->lanes->tile[instr->dst];
    const smg_tile *dst = &m->k->tiles.items[instr->dst];
    int registers = m->lanes->places[dst->layout].registers;
    for (int lane = 0; lane < m->k->lanes; lane++)
        for (int r = 0; r < instr->registers; r++) {
            int to = lane * registers + instr->first + r;
            double value;
            int64_t address = matrix_address(m, instr->a, r, lane);
            if (!kernel_lanes_read_word(m, w, instr->a, address, lane, &value)) return;
            own->value[to] = kernel_rounded(m, dst->type, instr->accumulate ? own->value[to] + value : value);
            own->set[to] = true;
        }
    own->partial = w->lanes->tile[instr->b].partial;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

void kernel_lanes_leave(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    if (instr->matrices) {
        leave_matrices(m, w, instr);
        return;
    }
    smg_exchange e = smg_kernel_exchange(m->k, instr);
    const lanes_tile *own = &w->lanes->tile[instr->a];
    int registers = m->lanes->places[m->k->tiles.items[instr->a].layout].registers;
    for (int lane = 0; lane < m->k->lanes; lane++)
        for (int r = 0; speaks(m->k, &e, lane) && r < instr->registers; r++) {
            double value = own->value[lane * registers + instr->first + r]; /* NaN behind the tile's end */
            int64_t address = address_of(m, &e, instr->dst, r, lane / e.width);
            if (!kernel_lanes_write_word(m, w, instr->dst, address, lane, value)) return;
        }
}

/* What the units that belong together have left for one register, as the lane reads it. */
static bool total_of(const kernel_machine *m, kernel_worker *w, const smg_instr *instr, int words, int reg, int lane,
                     double *out) {
    smg_exchange e = smg_kernel_exchange(m->k, instr);
    const smg_tile *tile = &m->k->tiles.items[words];
    smg_kind kind = smg_tile_kind(tile);
    smg_prim prim = smg_combine_prim(instr->combine);
    int first = (int)((uint32_t)(lane / e.width) & ~e.others);
    uint32_t part = 0;
    *out = smg_combine_identity(instr->combine);
    do {
        double value;
        if (!kernel_lanes_read_word(m, w, words, address_of(m, &e, words, reg, first | (int)part), lane, &value))
            return false;
        *out = instr->folded ? value : kernel_folded(prim, kind, *out, value);
        part = instr->folded ? 0 : smg_exchange_next(e.parts, part);
    } while (part != 0);
    *out = kernel_rounded(m, tile->type, *out);
    return true;
}

/* The number of the lane among those that hold parts of the same values. */
static int part_number(const smg_exchange *e, int lane) {
    uint32_t own = (uint32_t)(lane / e->width) & e->parts;
    int number = 0;
    for (uint32_t part = 0; part != own; part = smg_exchange_next(e->parts, part)) number++;
    return number;
}

void kernel_lanes_fold(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    smg_exchange e = smg_kernel_exchange(m->k, instr);
    for (int lane = 0; lane < m->k->lanes; lane++) {
        for (int r = part_number(&e, lane); speaks(m->k, &e, lane) && r < instr->registers; r += (int)e.part_count) {
            double total;
            int first = (int)((uint32_t)(lane / e.width) & ~e.others);
            if (!total_of(m, w, instr, instr->dst, r, lane, &total)) return;
            if (!kernel_lanes_write_word(m, w, instr->dst, address_of(m, &e, instr->dst, r, first), lane, total))
                return;
        }
    }
}

void kernel_lanes_gather(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    if (instr->matrices) {
        gather_matrices(m, w, instr);
        return;
    }
    smg_exchange e = smg_kernel_exchange(m->k, instr);
    lanes_tile *own = &w->lanes->tile[instr->dst];
    int registers = m->lanes->places[m->k->tiles.items[instr->dst].layout].registers;
    for (int lane = 0; lane < m->k->lanes; lane++) {
        int share = instr->b >= 0 ? part_number(&e, lane) * instr->registers : 0;
        for (int r = 0; r < instr->registers; r++) {
            int to = lane * registers + instr->first + r;
            if (!total_of(m, w, instr, instr->a, share + r, lane, &own->value[to])) return;
            own->set[to] = true;
        }
    }
    if (instr->b >= 0) own->partial = 0;
    if (instr->first + instr->registers == registers) own->partial &= ~(e.parts * (uint32_t)e.width);
}
