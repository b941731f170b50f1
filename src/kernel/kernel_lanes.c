/* The per-lane mode of the interpreter: all lanes of a workgroup go through the program together, one instruction after
 * the other. A lane has registers of its own, and reads an element only from the register in which its layout says that
 * it is; shared memory remembers who touched which word, and which barriers came after. What a device might get away
 * with (a race, a lane that reads what another holds, copies that differ) ends the run with a sentence.
 *
 * This file makes what is the same for all workgroups: layouts as tables, and where shared tiles lie. */
#include "kernel/kernel_lanes.h"

#define MOST_PLACES (1 << 26) /* registers of all lanes: far beyond what a device has */

/* ---- layouts as tables ------------------------------------------------------------------------------ */

/* dealt: so many elements of a walk are its one axis; 0: its axes are the kernel's. */
static smg_status make_places(kernel_machine *m, const smg_layout *layout, int64_t dealt, lanes_places *p) {
    int64_t registers = smg_layout_registers(layout);
    int lanes = m->k->lanes, subgroup = m->k->subgroup;
    *p = (lanes_places){.layout = *layout, .axis_count = layout->axis_count, .copies = smg_layout_replicas(layout)};
    if (registers > MOST_PLACES / lanes)
        return smg_fail(m->ctx, SMG_INTERNAL, "kernel '%s': a layout has %lld registers", m->k->name,
                        (long long)registers);
    p->registers = (int)registers;
    for (int a = 0; a < p->axis_count; a++) {
        int axis = layout->axes[a].axis;
        p->axis[a] = axis;
        p->tile[a] = dealt > 0 ? dealt : m->k->axes.items[axis].tile;
        p->by_register[a] = SMG_ARENA_ARRAY(m->arena, int, (size_t)registers);
        p->by_lane[a] = SMG_ARENA_ARRAY(m->arena, int, (size_t)lanes);
        if (!p->by_register[a] || !p->by_lane[a]) return SMG_MEMORY;
        for (int r = 0; r < p->registers; r++)
            p->by_register[a][r] = (int)smg_layout_part(layout, axis, SMG_LAYOUT_REGISTER, r);
        for (int l = 0; l < lanes; l++)
            p->by_lane[a][l] = (int)(smg_layout_part(layout, axis, SMG_LAYOUT_LANE, l % subgroup) +
                                     smg_layout_part(layout, axis, SMG_LAYOUT_SUBGROUP, l / subgroup));
        p->ragged = p->ragged || smg_layout_span(layout, axis) != p->tile[a];
    }
    return SMG_OK;
}

static int place_axis(const lanes_places *p, int axis) {
    for (int a = 0; a < p->axis_count; a++)
        if (p->axis[a] == axis) return a;
    return -1;
}

/* Both tables give the same coordinate, through `map` where it is not NULL. */
static bool parts_agree(const int *of, const int *map, const int *beside, int count) {
    for (int i = 0; i < count; i++) {
        int place = map ? map[i] : i;
        if (place < 0 || of[place] != (beside ? beside[i] : 0)) return false;
    }
    return true;
}

static smg_status make_beside(kernel_machine *m, int of, int beside) {
    const lanes_places *p = &m->lanes->places[of], *q = &m->lanes->places[beside];
    lanes_beside *b = &m->lanes->beside[of * m->k->layouts.count + beside];
    if (b->reg) return SMG_OK;
    b->reg = SMG_ARENA_ARRAY(m->arena, int, (size_t)q->registers);
    if (!b->reg) return SMG_MEMORY;
    for (int r = 0; r < q->registers; r++) {
        int64_t reg = smg_layout_register_beside(&p->layout, &q->layout, r);
        b->reg[r] = reg >= 0 && reg < p->registers ? (int)reg : -1;
    }
    b->held = parts_agree(b->reg, NULL, b->reg, q->registers);
    for (int a = 0; a < p->axis_count; a++) {
        int same = place_axis(q, p->axis[a]);
        const int *by_register = same >= 0 ? q->by_register[same] : NULL;
        const int *by_lane = same >= 0 ? q->by_lane[same] : NULL;
        b->held = b->held && parts_agree(p->by_register[a], b->reg, by_register, q->registers) &&
                  parts_agree(p->by_lane[a], NULL, by_lane, m->k->lanes);
    }
    return SMG_OK;
}

/* ---- what each instruction needs -------------------------------------------------------------------- */

static bool in_registers(const smg_kernel *k, int tile) {
    return tile >= 0 && k->tiles.items[tile].residence == SMG_REGISTER;
}

/* The number of smg_kernel_layout. */
static int layout_of(const smg_kernel *k, const smg_instr *instr) {
    if (instr->kind == SMG_I_SET || instr->kind == SMG_I_TAKE) return k->tiles.items[instr->dst].layout;
    return instr->layout;
}

static smg_status make_pairs(kernel_machine *m, int at) {
    const smg_kernel *k = m->k;
    const smg_instr *instr = &k->code.items[at];
    int layout = layout_of(k, instr);
    if (layout < 0) return SMG_OK;
    if (in_registers(k, instr->dst)) SMG_TRY(make_beside(m, k->tiles.items[instr->dst].layout, layout));
    for (int i = 0; i < m->tapes[at].steps.count; i++) {
        const kernel_step *step = &m->tapes[at].steps.items[i];
        if (step->what != KERNEL_STEP_TILE || !in_registers(k, step->index)) continue;
        SMG_TRY(make_beside(m, k->tiles.items[step->index].layout, layout));
    }
    return SMG_OK;
}

static smg_status make_factor(kernel_machine *m, const smg_instr *product, int tile, lanes_places *p, int **out_of) {
    const smg_tile *t = &m->k->tiles.items[tile];
    const smg_layout *whole = &m->k->layouts.items[product->layout];
    int registers = m->lanes->places[product->layout].registers;
    smg_layout kept = smg_layout_keep(whole, t->axis, t->axis_count);
    SMG_TRY(make_places(m, &kept, 0, p));
    *out_of = SMG_ARENA_ARRAY(m->arena, int, (size_t)registers);
    if (!*out_of) return SMG_MEMORY;
    for (int r = 0; r < registers; r++) (*out_of)[r] = (int)smg_layout_register_beside(&kept, whole, r);
    if (p->registers > m->lanes->most_registers) m->lanes->most_registers = p->registers;
    return SMG_OK;
}

/* Where the layout has elements of the tile, by lane * registers + register: how far behind its first, or
 * LANES_OUTSIDE. */
static void find_elements(const kernel_machine *m, const smg_tile *t, const lanes_places *p, int *out_at) {
    int count = m->k->lanes * p->registers;
    for (int i = 0; i < count; i++) out_at[i] = 0;
    for (int axis = 0; axis < t->axis_count; axis++) {
        int a = place_axis(p, t->axis[axis]);
        int stride = (int)smg_tile_stride(m->k, t, t->axis[axis]);
        for (int i = 0; a >= 0 && i < count; i++) {
            int at = p->by_register[a][i % p->registers] + p->by_lane[a][i / p->registers];
            out_at[i] = out_at[i] < 0 || at >= p->tile[a] ? LANES_OUTSIDE : out_at[i] + at * stride;
        }
    }
}

/* A subgroup multiplies matrices that its lanes hold together, else a lane what it holds itself: `io_from` has
 * elements, and then where they are held. */
static smg_status find_held(kernel_machine *m, int tile, const lanes_places *of, int *io_from) {
    const smg_tile *t = &m->k->tiles.items[tile];
    const lanes_places *held = &m->lanes->places[t->layout];
    int lanes = m->k->lanes, subgroup = t->fragments != SMG_FRAGMENTS_NONE ? m->k->subgroup : 1;
    int64_t elements = smg_tile_elements(m->k, t);
    int *holder = SMG_ARENA_ARRAY(m->arena, int, (size_t)elements + 1);
    int *at = SMG_ARENA_ARRAY(m->arena, int, (size_t)lanes *(size_t)held->registers + 1);
    if (!holder || !at) return SMG_MEMORY;
    find_elements(m, t, held, at);
    for (int first = 0; first < lanes; first += subgroup) {
        for (int64_t e = 0; e < elements; e++) holder[e] = LANES_NOBODY;
        for (int i = first * held->registers; i < (first + subgroup) * held->registers; i++)
            if (at[i] >= 0) holder[at[i]] = i;
        for (int i = first * of->registers; i < (first + subgroup) * of->registers; i++)
            if (io_from[i] >= 0) io_from[i] = holder[io_from[i]];
    }
    return SMG_OK;
}

static smg_status find_factor(kernel_machine *m, int tile, const lanes_places *of, int **out_from) {
    const smg_tile *t = &m->k->tiles.items[tile];
    if (t->residence == SMG_VIEW) return SMG_OK;
    int *from = *out_from = SMG_ARENA_ARRAY(m->arena, int, (size_t)m->k->lanes *(size_t)of->registers + 1);
    if (!from) return SMG_MEMORY;
    find_elements(m, t, of, from);
    return t->residence == SMG_REGISTER ? find_held(m, tile, of, from) : SMG_OK;
}

static smg_status make_product(kernel_machine *m, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    lanes_product *p = &m->lanes->products[at];
    int registers = m->lanes->places[instr->layout].registers;
    if (registers > m->lanes->most_places) m->lanes->most_places = registers;
    SMG_TRY(make_factor(m, instr, instr->a, &p->left, &p->left_of));
    SMG_TRY(make_factor(m, instr, instr->b, &p->right, &p->right_of));
    SMG_TRY(find_factor(m, instr->a, &p->left, &p->left_from));
    return find_factor(m, instr->b, &p->right, &p->right_from);
}

static smg_status make_walk(kernel_machine *m, int at) {
    const smg_instr *instr = &m->k->code.items[at];
    smg_layout layout = smg_kernel_walk(m->k, instr);
    int64_t elements = smg_tile_elements(m->k, &m->k->tiles.items[instr->dst]);
    return make_places(m, &layout, elements, &m->lanes->walks[at]);
}

static void place_words(kernel_machine *m) {
    const smg_kernel *k = m->k;
    kernel_lanes_plan *plan = m->lanes;
    for (int t = 0; t < k->tiles.count; t++) {
        int memory = k->tiles.items[t].memory;
        int64_t words = smg_kernel_memory_bytes(k, t) / smg_type_device_bytes(k->tiles.items[t].type);
        plan->first_word[t] = plan->words;
        plan->home[t] = smg_tile_home(k, t);
        plan->words += words; /* none for the others of a memory */
        for (int i = 0; memory > 0 && i < t; i++)
            if (k->tiles.items[i].memory == memory) plan->first_word[t] = plan->first_word[i];
    }
}

static smg_status prepare(kernel_machine *m) {
    const smg_kernel *k = m->k;
    size_t layouts = (size_t)k->layouts.count;
    kernel_lanes_plan *plan = m->lanes = SMG_ARENA_NEW(m->arena, kernel_lanes_plan);
    if (!plan) return SMG_MEMORY;
    plan->places = SMG_ARENA_ARRAY(m->arena, lanes_places, layouts + 1);
    plan->beside = SMG_ARENA_ARRAY(m->arena, lanes_beside, layouts * layouts + 1);
    plan->products = SMG_ARENA_ARRAY(m->arena, lanes_product, (size_t)k->code.count + 1);
    plan->walks = SMG_ARENA_ARRAY(m->arena, lanes_places, (size_t)k->code.count + 1);
    plan->first_word = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)k->tiles.count + 1);
    plan->home = SMG_ARENA_ARRAY(m->arena, int, (size_t)k->tiles.count + 1);
    if (!plan->places || !plan->beside || !plan->products || !plan->walks || !plan->first_word || !plan->home)
        return SMG_MEMORY;
    place_words(m);
    SMG_TRY(kernel_lanes_make_buffers(m));
    for (int i = 0; i < k->layouts.count; i++) SMG_TRY(make_places(m, &k->layouts.items[i], 0, &plan->places[i]));
    for (int t = 0; t < k->tiles.count; t++) {
        int layout = k->tiles.items[t].layout;
        if (!in_registers(k, t)) continue;
        SMG_TRY(make_beside(m, layout, layout));
        if (plan->places[layout].registers > plan->most_registers)
            plan->most_registers = plan->places[layout].registers;
    }
    for (int i = 0; i < k->code.count; i++) {
        smg_instr_kind kind = k->code.items[i].kind;
        SMG_TRY(make_pairs(m, i));
        if (kind == SMG_I_MMA) SMG_TRY(make_product(m, i));
        if (kind == SMG_I_STAGE || kind == SMG_I_FETCH || kind == SMG_I_PUT) SMG_TRY(make_walk(m, i));
    }
    return SMG_OK;
}

/* ---- a worker's memory ------------------------------------------------------------------------------ */

static smg_status make_tile(kernel_machine *m, kernel_lanes *l, int t) {
    const smg_tile *tile = &m->k->tiles.items[t];
    size_t count = 0;
    if (tile->residence == SMG_REGISTER) count = (size_t)m->lanes->places[tile->layout].registers * (size_t)m->k->lanes;
    if (tile->residence == SMG_STAGING) count = (size_t)smg_tile_elements(m->k, tile);
    l->tile[t].one = (int64_t)count;
    count *= (size_t)smg_tile_slots(tile);
    l->tile[t].value = SMG_ARENA_ARRAY(m->arena, double, count + 1);
    l->tile[t].set = SMG_ARENA_ARRAY(m->arena, bool, count + 1);
    return l->tile[t].value && l->tile[t].set ? SMG_OK : SMG_MEMORY;
}

static smg_status make_worker(kernel_machine *m, kernel_worker *w) {
    const smg_kernel *k = m->k;
    const kernel_lanes_plan *plan = m->lanes;
    size_t registers = (size_t)plan->most_registers + 1;
    kernel_lanes *l = w->lanes = SMG_ARENA_NEW(m->arena, kernel_lanes);
    if (!l) return SMG_MEMORY;
    l->tile = SMG_ARENA_ARRAY(m->arena, lanes_tile, (size_t)k->tiles.count + 1);
    l->word = SMG_ARENA_ARRAY(m->arena, lanes_word, (size_t)plan->words + 1);
    l->fold = SMG_ARENA_ARRAY(m->arena, double, registers *(size_t)k->lanes);
    l->left = SMG_ARENA_ARRAY(m->arena, double, registers *(size_t)k->lanes);
    l->right = SMG_ARENA_ARRAY(m->arena, double, registers *(size_t)k->lanes);
    l->sums = SMG_ARENA_ARRAY(m->arena, double, registers);
    l->summed = SMG_ARENA_ARRAY(m->arena, bool, registers);
    l->parts_of = SMG_ARENA_ARRAY(m->arena, lanes_partial, registers);
    l->live = SMG_ARENA_ARRAY(m->arena, int, (size_t)plan->most_places + 1);
    if (!l->tile || !l->word || !l->fold || !l->left || !l->right || !l->sums || !l->summed || !l->parts_of || !l->live)
        return SMG_MEMORY;
    for (int t = 0; t < k->tiles.count; t++) SMG_TRY(make_tile(m, l, t));
    return SMG_OK;
}

static const kernel_mode by_lane = {prepare,           make_worker,         kernel_lanes_begin, kernel_lanes_run,
                                    kernel_lanes_read, kernel_lanes_loaded, kernel_lanes_finish};

smg_status smg_kernel_interpret_lanes(smg_context *ctx, const smg_kernel *k, const int64_t *symbols,
                                      smg_karray *buffers, bool single) {
    if (!smg_kernel_laid_out(k))
        return smg_fail(ctx, SMG_INTERNAL, "kernel '%s' has no layouts, so its lanes hold nothing", k->name);
    return kernel_interpret_as(ctx, k, symbols, buffers, single, &by_lane);
}
