/* Loads in front of what computes with them, as instructions of their own.
 *
 * Stores. A driver moves no load over a store that may change what it reads, so what a store's expression loads is
 * loaded first, for all of the lane's elements: the loads are under way together. As many as find room beside the
 * tiles that the program needs. Where a core has registers to spare they are under way during the loop in front of the
 * stores, too, or what is between: workgroups that began together end together, and have nothing else to do then.
 *
 * Neighbours. Whether rows as long as a sequence let loads go by groups only a run knows. A load alone goes either way,
 * one among others of an expression goes element by element; so it is taken out. */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

#define EARLY_REGISTERS 96 /* at most, that loads ahead of the stores take */

/* Leaves that an instruction is to have as tiles. */
typedef struct loads {
    int leaf[SMG_ACCESS_AXES];
    int count;
} loads;

/* What the leaf loads, if that may be loaded elsewhere, and is not on the list; NULL. */
static const smg_access *movable(const smg_kernel *k, const loads *list, int leaf) {
    const smg_kleaf *f = &k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || list->count == (int)SMG_COUNT_OF(list->leaf)) return NULL;
    const smg_access *access = &k->accesses.items[f->index];
    bool input = access->index == SMG_EXPR_NONE && !k->buffers.items[access->buffer].written;
    for (int i = 0; i < list->count; i++) input = input && list->leaf[i] != leaf;
    return input ? access : NULL;
}

typedef struct early {
    lower_sized *l;
    int at; /* the store */
    int64_t registers;
    loads loads;
} early;

/* Where the elements of the access are that the instruction's lanes ask for. */
static smg_layout layout_of(const smg_kernel *k, const smg_instr *in, const smg_access *access) {
    const smg_layout *all = smg_kernel_layout(k, in);
    int axes[SMG_LAYOUT_AXES], count = 0;
    for (int i = 0; i < all->axis_count; i++)
        if (smg_access_has(access, all->axes[i].axis)) axes[count++] = all->axes[i].axis;
    return smg_layout_keep(all, axes, count);
}

static void take_load(void *user, int leaf) {
    early *e = user;
    const smg_kernel *k = e->l->k;
    const smg_access *access = movable(k, &e->loads, leaf);
    if (access == NULL) return;
    smg_layout own = layout_of(k, &k->code.items[e->at], access);
    int64_t registers = smg_layout_registers(&own);
    if (own.axis_count > SMG_TILE_AXES || registers > e->registers) return;
    e->registers -= registers;
    e->loads.leaf[e->loads.count++] = leaf;
}

/* A tile of what the leaf loads; -1 when memory is out. */
static int add_tile(lower_sized *l, const smg_instr *in, int leaf) {
    smg_kernel *k = l->k;
    smg_layout own = layout_of(k, in, &k->accesses.items[k->leaves.items[leaf].index]);
    smg_tile tile = {.name = smg_arena_format(l->arena, "early%d", k->tiles.count),
                     .type = smg_kind_type(k->leaves.items[leaf].kind),
                     .residence = SMG_REGISTER,
                     .layout = smg_kernel_add_layout(k, &own)};
    for (int i = 0; i < own.axis_count; i++) tile.axis[tile.axis_count++] = own.axes[i].axis;
    smg_tile *slot = SMG_ARRAY_PUSH(l->arena, &k->tiles);
    if (tile.name == NULL || tile.layout < 0 || slot == NULL) return -1;
    *slot = tile;
    return k->tiles.count - 1;
}

/* The last loop in front of the instruction, neither of them inside of a loop; -1. */
static int loop_before(const smg_kernel *k, int at) {
    int depth = 0, loop = -1;
    for (int i = 0; i < at; i++) {
        smg_instr_kind kind = k->code.items[i].kind;
        if (kind == SMG_I_LOOP && depth++ == 0) loop = i;
        if (kind == SMG_I_END) depth--;
    }
    return depth == 0 ? loop : -1;
}

/* Does a product in the loop read a factor where it lies? */
static bool reads_views(const smg_kernel *k, int loop) {
    bool views = false;
    for (int i = loop; i < smg_kernel_loop_end(k, loop); i++) {
        const smg_instr *in = &k->code.items[i];
        views = views || (in->kind == SMG_I_MMA && k->tiles.items[in->b].residence == SMG_VIEW);
    }
    return views;
}

/* Where loads that need so many registers go: lanes that have half of theirs for others leave a core as many
 * workgroups as hide its waits. Compilers need more beside matrices, and were not asked. Factors that come straight
 * from memory are on their way in registers themselves, and compilers take fewer for them beside others that are held:
 * there loads begin behind the loop, while lanes join their sums. */
static int place_of(const lower_sized *l, int at, int64_t registers) {
    const smg_target *t = l->target;
    int loop = smg_target_switches_lanes(t) && l->k->matrix.rows == 0 ? loop_before(l->k, at) : -1;
    if (loop < 0 || 2 * (smg_kernel_registers(l->k) + registers) > t->registers_lane) return at;
    return reads_views(l->k, loop) ? smg_kernel_loop_end(l->k, loop) + 1 : loop;
}

static const char *note_of(const smg_kernel *k, int at, int to) {
    if (to == at) return "in front of the stores";
    return k->code.items[to].kind == SMG_I_LOOP ? "in front of the loop" : "behind the loop";
}

/* What the instruction at `at` loads is loaded at `to`. */
static smg_status move_load(lower_sized *l, int at, int to, int leaf, const char *note) {
    smg_kernel *k = l->k;
    smg_instr *in = &k->code.items[at], set = lower_blank(SMG_I_SET);
    set.dst = add_tile(l, in, leaf);
    if (set.dst < 0) return SMG_MEMORY;
    set.expr = smg_expr_leaf(k->exprs, k->leaves.items[leaf].kind, leaf);
    set.note = note;
    smg_expr with = lower_tile_element(k, set.dst);
    if (set.expr == SMG_EXPR_NONE || with == SMG_EXPR_NONE) return SMG_MEMORY;
    in->expr = lower_replace(k->exprs, in->expr, set.expr, with);
    if (in->expr == SMG_EXPR_NONE) return SMG_MEMORY;
    return lower_insert(k, to, set);
}

/* Half of what the tiles leave: addresses and values in between need the other half. */
static int64_t room(const smg_kernel *k, const smg_target *target) {
    int64_t half = (target->registers_lane - smg_kernel_registers(k)) / 2;
    return half < EARLY_REGISTERS ? half : EARLY_REGISTERS;
}

static smg_status before_store(lower_sized *l, int *io_at) {
    smg_kernel *k = l->k;
    int64_t registers = room(k, l->target);
    early e = {.l = l, .at = *io_at, .registers = registers};
    smg_expr_leaves(k->exprs, k->code.items[*io_at].expr, take_load, &e);
    int to = place_of(l, *io_at, registers - e.registers);
    const char *note = note_of(k, *io_at, to);
    for (int n = 0; n < e.loads.count; n++) SMG_TRY(move_load(l, (*io_at)++, to++, e.loads.leaf[n], note));
    return e.loads.count > 0 ? kernel_live_keep(k) : SMG_OK; /* what the next store finds taken */
}

/* ---- neighbours, if sizes allow ---------------------------------------------------------------------------- */

typedef struct by_sizes {
    const smg_kernel *k;
    smg_wide wide;
    loads loads;
} by_sizes;

static void take_by_sizes(void *user, int leaf) {
    by_sizes *s = user;
    if (movable(s->k, &s->loads, leaf) == NULL) return;
    if (smg_access_aligned(s->k, s->k->leaves.items[leaf].index, s->wide) == SMG_ALIGNED_BY_SIZES)
        s->loads.leaf[s->loads.count++] = leaf;
}

static smg_status before_set(lower_sized *l, int *io_at) {
    smg_kernel *k = l->k;
    const smg_instr *set = &k->code.items[*io_at];
    by_sizes s = {.k = k, .wide = {.width = SMG_WIDE, .axis = smg_kernel_run_axis(k, set)}};
    if (s.wide.axis < 0) s.wide = (smg_wide){.width = SMG_PAIR, .axis = smg_kernel_pair_axis(k, set)};
    if (s.wide.axis < 0 || smg_kernel_plain_load(k, set->expr) >= 0) return SMG_OK;
    smg_expr_leaves(k->exprs, set->expr, take_by_sizes, &s);
    for (int n = 0; n < s.loads.count; n++, (*io_at)++)
        SMG_TRY(move_load(l, *io_at, *io_at, s.loads.leaf[n], "by neighbours, where sizes allow"));
    return s.loads.count > 0 ? kernel_live_keep(k) : SMG_OK;
}

smg_status lower_early(lower_sized *l) {
    smg_kernel *k = l->k;
    bool waits = smg_target_hides_loads(l->target);
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        bool stores = in->kind == SMG_I_STORE && smg_layout_registers(&k->layouts.items[in->layout]) > 1;
        bool sets = in->kind == SMG_I_SET && in->ahead == 0 && waits;
        if (stores) SMG_TRY(before_store(l, &i));
        if (sets) SMG_TRY(before_set(l, &i));
    }
    return SMG_OK;
}
