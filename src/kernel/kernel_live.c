/* How many registers a lane needs at once. The driver's compiler gives a value a register only from where it is
 * computed to where it is read last, so tiles whose lives do not overlap cost one set, and so does a copy of a tile
 * that nothing reads afterwards. Backward over the program; what a loop needs at its head it needs at its end too, so
 * the walk is repeated until no loop's head asks for more. Which tiles are needed together does not depend on their
 * sizes: it is kept with the kernel, for all the sizes that it is priced at. */
#include "kernel/kernel_live.h"

#define LIVE_LOOPS 16

typedef kernel_live_set live_set;

typedef struct live_walk {
    const smg_kernel *k;
    live_set now;                /* read further on */
    live_set head[LIVE_LOOPS];   /* by loop, in the order of their ends: needed at its first instruction */
    int inside[LIVE_LOOPS];      /* loops whose END was passed, innermost last */
    live_set behind[LIVE_LOOPS]; /* needed after each of them */
    int depth, loops;
    live_set *meets; /* by tile; NULL: points are collected instead */
    live_set *kept;  /* behind any barrier of the workgroup; NULL: nobody asks */
    bool notes;      /* else only what heads of loops need is found */
    smg_arena *arena;
    smg_kernel_live points;
    int plain;   /* the point without more registers that held all of what was needed last; -1 */
    bool failed; /* memory */
} live_walk;

static void add(live_set *s, int tile) {
    s->word[tile / 64] |= UINT64_C(1) << (tile % 64);
}
static void drop(live_set *s, int tile) {
    s->word[tile / 64] &= ~(UINT64_C(1) << (tile % 64));
}

static bool within(const live_set *a, const live_set *b) {
    uint64_t beyond = 0;
    for (int i = 0; i < KERNEL_LIVE_WORDS; i++) beyond |= a->word[i] & ~b->word[i];
    return beyond == 0;
}

static void unite(live_set *into, const live_set *from) {
    for (int i = 0; i < KERNEL_LIVE_WORDS; i++) into->word[i] |= from->word[i];
}

static void read_leaf(void *user, int leaf) {
    live_walk *w = user;
    const smg_kleaf *f = &w->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE) add(&w->now, f->index);
}

/* Does the instruction need registers beside tiles? */
static bool needs_more(const smg_instr *in) {
    return in->kind == SMG_I_MMA || in->kind == SMG_I_STAGE;
}

/* Keeps the largest sets only, for each instruction that needs more apart: that comes on top. */
static void collect(live_walk *w, int beside) {
    if (beside < 0 && w->plain >= 0 && within(&w->now, &w->points.items[w->plain].tiles)) return;
    for (int i = 0; i < w->points.count; i++) {
        kernel_live_point *p = &w->points.items[i];
        if (p->beside != beside) continue;
        bool less = within(&w->now, &p->tiles);
        if (!less && !within(&p->tiles, &w->now)) continue;
        if (!less) p->tiles = w->now;
        if (beside < 0) w->plain = i;
        return;
    }
    kernel_live_point *p = SMG_ARRAY_PUSH(w->arena, &w->points);
    w->failed = w->failed || p == NULL;
    if (p == NULL) return;
    *p = (kernel_live_point){.tiles = w->now, .beside = beside};
    if (beside < 0) w->plain = w->points.count - 1;
}

static void note_kept(live_walk *w, const smg_instr *in) {
    if (in->kind == SMG_I_BARRIER && in->scope == SMG_SCOPE_WORKGROUP) unite(w->kept, &w->now);
}

static void note(live_walk *w, int at) {
    const smg_instr *in = &w->k->code.items[at];
    if (!w->notes) return;
    if (w->kept != NULL)
        note_kept(w, in);
    else if (w->meets == NULL)
        collect(w, needs_more(in) ? at : -1);
    else if (in->dst >= 0)
        unite(&w->meets[in->dst], &w->now);
}

/* Of a tile with slots what is written stays beside the others, but for the first slot of all. */
static bool other_slots_stay(const live_walk *w, int at) {
    int tile = w->k->code.items[at].dst;
    if (tile < 0 || smg_tile_slots(&w->k->tiles.items[tile]) == 1) return false;
    for (int i = 0; i < at; i++)
        if (w->k->code.items[i].dst == tile) return true;
    return w->depth > 0;
}

/* Opaque sums are left as their elements are taken: until the last of these the registers are those of the sums. */
static bool takes_over(const smg_kernel *k, const smg_instr *in) {
    return in->kind == SMG_I_GATHER && in->matrices && !in->accumulate &&
           in->first + in->registers < smg_tile_registers(k, &k->tiles.items[in->dst]);
}

static void pass_instruction(live_walk *w, int at) {
    const smg_instr *in = &w->k->code.items[at];
    if (takes_over(w->k, in)) return;
    bool keeps = in->kind == SMG_I_MMA || in->kind == SMG_I_JOIN || in->kind == SMG_I_FOLD ||
                 (in->kind == SMG_I_GATHER && !in->matrices && (in->b < 0 || in->first > 0)) || in->accumulate ||
                 other_slots_stay(w, at);
    if (in->dst >= 0) add(&w->now, in->dst); /* written, read or not */
    note(w, at);
    if (in->dst >= 0 && !keeps) drop(&w->now, in->dst);
    if (in->expr != SMG_EXPR_NONE) smg_expr_leaves(w->k->exprs, in->expr, read_leaf, w);
    if (in->kind == SMG_I_MMA) add(&w->now, smg_tile_home(w->k, in->b));
    if (smg_instr_reads_a(in)) add(&w->now, smg_tile_home(w->k, in->a));
    note(w, at);
}

/* False where there are more loops than are kept, or not as many ends (a program that is not verified yet). */
static bool pass_loop(live_walk *w, const smg_instr *in, bool *grew) {
    if (in->kind == SMG_I_END) {
        if (w->loops == LIVE_LOOPS) return false;
        w->inside[w->depth] = w->loops++;
        w->behind[w->depth] = w->now;
        unite(&w->now, &w->head[w->inside[w->depth++]]);
        return true;
    }
    if (w->depth == 0) return false;
    live_set *head = &w->head[w->inside[--w->depth]];
    *grew = *grew || !within(&w->now, head);
    unite(head, &w->now);
    unite(&w->now, &w->behind[w->depth]); /* no step at all */
    return true;
}

static bool has_loop(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_END) return true;
    return false;
}

/* What is needed at a point only grows from walk to walk: where there are loops the first walk need not note it. */
static bool walk_all(live_walk *w) {
    if (w->k->tiles.count > KERNEL_LIVE_TILES) return false;
    w->notes = !has_loop(w->k);
    for (bool again = true; again;) {
        bool grew = false, noted = w->notes;
        w->now = (live_set){{0}};
        w->depth = w->loops = 0;
        for (int i = w->k->code.count - 1; i >= 0; i--) {
            const smg_instr *in = &w->k->code.items[i];
            if (in->kind != SMG_I_LOOP && in->kind != SMG_I_END)
                pass_instruction(w, i);
            else if (!pass_loop(w, in, &grew))
                return false;
        }
        again = grew || !noted;
        w->notes = true;
    }
    return true;
}

bool kernel_live_meets(const smg_kernel *k, live_set *out_meets) {
    live_walk w = {.k = k, .meets = out_meets};
    memset(out_meets, 0, (size_t)k->tiles.count * sizeof(*out_meets));
    return walk_all(&w);
}

/* A program with more tiles or loops than are followed keeps no points: all its tiles count as needed at once. */
smg_status kernel_live_keep(smg_kernel *k) {
    live_walk w = {.k = k, .arena = k->arena, .plain = -1};
    k->live = (smg_kernel_live){0};
    if (walk_all(&w)) k->live = w.points;
    return w.failed ? SMG_MEMORY : SMG_OK;
}

#define GROUP 4 /* words that are read together */

static int64_t group_along(const smg_kernel *k, const smg_tile *tile, int k_axis) {
    return smg_tile_runs_along(k, tile, k_axis) ? GROUP : 1;
}

/* Matrices of all rows and one of the columns, where they are not tiles. */
static int64_t matrix_registers(const smg_kernel *k, const smg_instr *in) {
    int64_t left = smg_matrix_loaded(k, in, SMG_FRAGMENTS_LEFT), right = smg_matrix_loaded(k, in, SMG_FRAGMENTS_RIGHT);
    return (smg_matrix_rows(k, in) * left + right + k->subgroup - 1) / k->subgroup;
}

/* What a lane holds while it multiplies: a column of one factor and a row of the other. */
static int64_t factor_registers(const smg_kernel *k, const smg_instr *in) {
    const smg_tile *c = &k->tiles.items[in->dst];
    if (c->fragments) return matrix_registers(k, in);
    int64_t rows = smg_kernel_product_rows(k, in);
    int64_t columns = smg_tile_registers(k, c) / rows;
    if (in->terms != 0) return (rows + columns + rows * columns + 1) / 2; /* pairs, and their sums */
    return rows * group_along(k, &k->tiles.items[in->a], in->axes[0]) +
           columns * group_along(k, &k->tiles.items[in->b], in->axes[0]);
}

/* What a lane loads of a slice in a walk that is written out: drivers put all of its loads in front of what stores
 * them. A slice that is turned on its way is stored word by word, each to a place of its own. */
static int64_t walk_registers(const smg_kernel *k, const smg_instr *in) {
    const smg_tile *tile = &k->tiles.items[in->dst];
    int64_t words = smg_walk_registers(k, smg_tile_elements(k, tile)), each = 1;
    if (in->axis_count == 0) return words;
    int last = in->axes[in->axis_count - 1];
    if (k->axes.items[last].tile % GROUP == 0 && words > GROUP) each = GROUP;
    if (!smg_kernel_steps_written((words + each - 1) / each)) words = each;
    return tile->axis[tile->axis_count - 1] == last ? words : 2 * words;
}

static int64_t registers_beside(const smg_kernel *k, const smg_instr *in) {
    if (in->kind == SMG_I_MMA) return factor_registers(k, in);
    return in->kind == SMG_I_STAGE ? walk_registers(k, in) : 0;
}

/* A driver begins loads of the next step's factor where products have freed as many registers of this one's: of what
 * SET has on its way one slot is there at a time. */
static int slots_at_once(const smg_kernel *k, int tile) {
    int slots = smg_tile_slots(&k->tiles.items[tile]);
    return slots > 1 && smg_kernel_setter(k, tile) != NULL ? 1 : slots;
}

/* Of all slots; elements of a factor are two to a register. */
static int64_t words_of(const smg_kernel *k, int tile) {
    const smg_tile *t = &k->tiles.items[tile];
    bool factor = t->fragments == SMG_FRAGMENTS_LEFT || t->fragments == SMG_FRAGMENTS_RIGHT;
    int64_t registers = smg_tile_registers(k, t) * slots_at_once(k, tile);
    return factor ? (registers + 1) / 2 : registers;
}

static int64_t all_registers(const smg_kernel *k) {
    int64_t registers = 0, most = 0;
    for (int i = 0; i < k->tiles.count; i++) registers += words_of(k, i);
    for (int i = 0; i < k->code.count; i++) {
        int64_t beside = registers_beside(k, &k->code.items[i]);
        if (beside > most) most = beside;
    }
    return registers + most;
}

static int64_t sum_sizes(const smg_kernel *k, const live_set *tiles, const int64_t *size) {
    int64_t registers = 0;
    for (int t = 0; t < k->tiles.count; t++)
        if (kernel_live_has(tiles, t)) registers += size[t];
    return registers;
}

int64_t smg_kernel_registers(const smg_kernel *k) {
    int64_t most = 0, size[KERNEL_LIVE_TILES];
    if (k->live.count == 0) return all_registers(k);
    for (int t = 0; t < k->tiles.count; t++) size[t] = words_of(k, t);
    for (int i = 0; i < k->live.count; i++) {
        const kernel_live_point *p = &k->live.items[i];
        int64_t beside = p->beside >= 0 ? registers_beside(k, &k->code.items[p->beside]) : 0;
        int64_t registers = beside + sum_sizes(k, &p->tiles, size);
        if (registers > most) most = registers;
    }
    return most;
}

int64_t smg_kernel_registers_around(const smg_kernel *k, int at) {
    int64_t most = 0, size[KERNEL_LIVE_TILES];
    for (int t = 0; t < k->tiles.count && k->live.count > 0; t++) size[t] = words_of(k, t);
    for (int i = 0; i < k->live.count; i++) {
        const kernel_live_point *p = &k->live.items[i];
        int64_t registers = p->beside == at ? sum_sizes(k, &p->tiles, size) : 0;
        if (registers > most) most = registers;
    }
    return most;
}

int64_t smg_kernel_registers_kept(const smg_kernel *k) {
    live_set kept = {{0}};
    live_walk w = {.k = k, .kept = &kept};
    int64_t registers = 0;
    if (!walk_all(&w)) return all_registers(k);
    for (int t = 0; t < k->tiles.count; t++) registers += kernel_live_has(&kept, t) ? words_of(k, t) : 0;
    return registers;
}
