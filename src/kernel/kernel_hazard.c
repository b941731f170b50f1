/* Order in shared memory. Two instructions that touch the same memory, one of them writing, need a barrier between
 * them: of the workgroup, or of the subgroup alone where layouts prove that each element is touched by one subgroup.
 * Slots of a tile are different memory. The walk goes through the program in the order of execution, a loop's body
 * until each slot has come round, so that what one step leaves behind meets those after it. What has been touched since
 * the last barrier of each scope is a set of uses, and what a use must not meet in it is another one. */
#include "kernel/kernel.h"

#define DEEPEST SMG_ACCESS_AXES

/* One instruction touches one tile. */
typedef struct use {
    int at, tile;
    bool writes;
    int slots, first;         /* its bits in a set of uses: one for each slot of the tile */
    bool own;                 /* each subgroup touches words of its own */
    const smg_layout *layout; /* says which subgroup touches an element; NULL: any may */
    int sliced;               /* the axis of the tile that the layout does not speak of: a slice is read; -1 */
    uint64_t *near, *far;     /* uses of slot 0 from which a barrier must part it, of some scope; of the workgroup */
} use;

struct smg_hazards {
    const smg_kernel *k;
    smg_arena *arena;
    SMG_ARRAY(use) uses;
    int *first;              /* by instruction: its first use; those of the next one follow */
    int *match;              /* by instruction: LOOP -> END */
    int *next;               /* by instruction: itself, or the next one that the walk has to do with */
    int *step;               /* by axis: of its loop; 0 outside */
    int bits, words;         /* of a set of uses */
    uint64_t *near, *far;    /* touched since the last barrier of any scope; of the workgroup */
    uint64_t *kept[DEEPEST]; /* both of them, in front of an open loop that may have no step */
};

/* ---- who touches what ------------------------------------------------------------------------------ */

typedef struct collecting {
    smg_hazards *h;
    int at;
    const smg_layout *layout;
    bool failed; /* memory */
} collecting;

static void add_use(collecting *c, int tile, bool writes, const smg_layout *layout) {
    smg_hazards *h = c->h;
    if (tile < 0 || !smg_tile_in_shared(&h->k->tiles.items[tile])) return;
    int sliced = h->k->tiles.items[tile].sliced ? h->k->tiles.items[tile].along : -1;
    tile = smg_tile_home(h->k, tile);
    for (int i = h->first[c->at]; i < h->uses.count; i++)
        if (h->uses.items[i].tile == tile && h->uses.items[i].writes == writes) return;
    use *slot = SMG_ARRAY_PUSH(h->arena, &h->uses);
    c->failed = c->failed || slot == NULL;
    if (slot == NULL) return;
    int slots = smg_tile_slots(&h->k->tiles.items[tile]);
    *slot = (use){.at = c->at,
                  .tile = tile,
                  .writes = writes,
                  .slots = slots,
                  .first = h->bits,
                  .own = h->k->code.items[c->at].matrices,
                  .layout = layout,
                  .sliced = sliced};
    h->bits += slots;
}

static void read_leaf(void *user, int leaf) {
    collecting *c = user;
    const smg_kleaf *f = &c->h->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE) add_use(c, f->index, false, c->layout);
}

/* A walk by all invocations deals out elements, or groups of them, whoever holds what elsewhere. */
static bool collect(smg_hazards *h, int at) {
    const smg_kernel *k = h->k;
    const smg_instr *in = &k->code.items[at];
    collecting c = {.h = h, .at = at, .layout = smg_kernel_laid_out(k) ? smg_kernel_layout(k, in) : NULL};
    bool words = in->kind == SMG_I_LEAVE || in->kind == SMG_I_FOLD || in->kind == SMG_I_GATHER;
    if (words) c.layout = NULL;
    h->first[at] = h->uses.count;
    if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(k, in->expr, read_leaf, &c);
    if (in->kind == SMG_I_STORE && k->accesses.items[in->a].index != SMG_EXPR_NONE)
        smg_kernel_leaves(k, k->accesses.items[in->a].index, read_leaf, &c);
    if (smg_instr_reads_a(in)) add_use(&c, in->a, false, c.layout);
    if (in->kind == SMG_I_MMA) add_use(&c, in->b, false, c.layout);
    if (in->kind == SMG_I_FOLD) add_use(&c, in->dst, false, NULL);
    add_use(&c, in->dst, true, c.layout);
    return !c.failed;
}

/* ---- what must be apart ---------------------------------------------------------------------------- */

/* Every bit of a subgroup's number steps along an axis of the tile, the same in both: then each element is one
 * subgroup's. A layout that spans more than the tile has lanes that go to its end instead. */
static bool one_subgroup_each(const smg_kernel *k, const use *u, const use *v) {
    const smg_tile *tile = &k->tiles.items[u->tile];
    const smg_layout *a = u->layout, *b = v->layout;
    int bits = a == NULL || b == NULL ? 0 : a->bits[SMG_LAYOUT_SUBGROUP];
    bool proved = bits > 0 && b->bits[SMG_LAYOUT_SUBGROUP] == bits;
    for (int i = 0; proved && i < bits; i++) {
        smg_basis x = a->basis[SMG_LAYOUT_SUBGROUP][i], y = b->basis[SMG_LAYOUT_SUBGROUP][i];
        proved = x.axis >= 0 && x.axis == y.axis && x.bit == y.bit && smg_tile_has(tile, x.axis) &&
                 x.axis != u->sliced && x.axis != v->sliced &&
                 smg_layout_span(a, x.axis) == k->axes.items[x.axis].tile &&
                 smg_layout_span(b, x.axis) == k->axes.items[x.axis].tile;
    }
    return proved;
}

static bool meet(const smg_kernel *k, const use *a, const use *b) {
    int memory = k->tiles.items[a->tile].memory;
    bool same = a->tile == b->tile || (memory > 0 && memory == k->tiles.items[b->tile].memory);
    return same && (a->writes || b->writes);
}

/* Whose barrier has to part them. */
static smg_scope scope_of(const smg_kernel *k, const use *a, const use *b) {
    if (k->subgroup == 1) return SMG_SCOPE_WORKGROUP;
    if (k->lanes == k->subgroup) return SMG_SCOPE_SUBGROUP;
    bool each = a->tile == b->tile && ((a->own && b->own) || one_subgroup_each(k, a, b));
    return each ? SMG_SCOPE_SUBGROUP : SMG_SCOPE_WORKGROUP;
}

static void set_bit(uint64_t *set, int i) {
    set[i / 64] |= UINT64_C(1) << (i % 64);
}

static smg_status compare(smg_hazards *h) {
    size_t words = (size_t)h->words;
    uint64_t *sets = SMG_ARENA_ARRAY(h->arena, uint64_t, 2 * words * (size_t)h->uses.count);
    if (sets == NULL) return SMG_MEMORY;
    for (int i = 0; i < h->uses.count; i++) {
        use *u = &h->uses.items[i];
        u->near = sets + 2 * words * (size_t)i;
        u->far = u->near + words;
        for (int j = 0; j < h->uses.count; j++) {
            if (!meet(h->k, u, &h->uses.items[j])) continue;
            set_bit(u->near, h->uses.items[j].first);
            if (scope_of(h->k, u, &h->uses.items[j]) == SMG_SCOPE_WORKGROUP) set_bit(u->far, h->uses.items[j].first);
        }
    }
    return SMG_OK;
}

static smg_status make_state(smg_hazards *h) {
    size_t words = (size_t)h->words;
    h->near = SMG_ARENA_ARRAY(h->arena, uint64_t, 2 * words * (DEEPEST + 1));
    if (h->near == NULL) return SMG_MEMORY;
    h->far = h->near + words;
    for (size_t i = 0; i < DEEPEST; i++) h->kept[i] = h->near + 2 * words * (i + 1);
    return SMG_OK;
}

static void mark_next(smg_hazards *h) {
    int next = h->next[h->k->code.count] = h->k->code.count;
    for (int at = next - 1; at >= 0; at--) {
        smg_instr_kind kind = h->k->code.items[at].kind;
        if (kind == SMG_I_LOOP || kind == SMG_I_BARRIER || h->first[at] < h->first[at + 1]) next = at;
        h->next[at] = next;
    }
}

smg_status smg_hazards_make(const smg_kernel *k, smg_arena *arena, smg_hazards **out_hazards) {
    smg_hazards *h = *out_hazards = SMG_ARENA_NEW(arena, smg_hazards);
    size_t count = (size_t)k->code.count + 1;
    if (h == NULL) return SMG_MEMORY;
    h->k = k;
    h->arena = arena;
    h->first = SMG_ARENA_ARRAY(arena, int, count);
    h->match = SMG_ARENA_ARRAY(arena, int, count);
    h->next = SMG_ARENA_ARRAY(arena, int, count);
    h->step = SMG_ARENA_ARRAY(arena, int, (size_t)k->axes.count + 1);
    if (h->first == NULL || h->match == NULL || h->next == NULL || h->step == NULL) return SMG_MEMORY;
    for (int at = 0; at < k->code.count; at++) {
        if (!collect(h, at)) return SMG_MEMORY;
        h->match[at] = k->code.items[at].kind == SMG_I_LOOP ? smg_kernel_loop_end(k, at) : -1;
    }
    h->first[k->code.count] = h->uses.count;
    mark_next(h);
    h->words = h->bits / 64 + 1;
    SMG_TRY(compare(h));
    return make_state(h);
}

/* ---- the walk -------------------------------------------------------------------------------------- */

/* The slot that the use touches in this step. */
static int slot_of(const smg_hazards *h, const use *u) {
    if (u->slots == 1) return 0;
    const smg_instr *in = &h->k->code.items[u->at];
    bool moved = u->writes || in->kind == SMG_I_TAKE; /* what others read is of their own step */
    int step = h->step[h->k->tiles.items[u->tile].ring] + (moved ? in->ahead : 0);
    return step % u->slots;
}

/* A word of the set of what a use must not meet, moved to its slot: tiles with slots meet none but themselves. */
static uint64_t moved(const uint64_t *set, int word, int slot) {
    if (slot == 0) return set[word];
    uint64_t low = word > 0 ? set[word - 1] >> (64 - slot) : 0;
    return set[word] << slot | low;
}

static const use *use_of_bit(const smg_hazards *h, int bit) {
    const use *u = h->uses.items;
    while (bit >= u->first + u->slots) u++;
    return u;
}

/* The first earlier use that is not parted from `u`; NULL. */
static const use *met(const smg_hazards *h, const use *u, smg_scope *out_scope) {
    int slot = slot_of(h, u);
    for (int w = 0; w < h->words; w++) {
        uint64_t far = moved(u->far, w, slot) & h->far[w], any = far | (moved(u->near, w, slot) & h->near[w]);
        if (any == 0) continue;
        uint64_t lowest = any & (~any + 1);
        *out_scope = lowest & far ? SMG_SCOPE_WORKGROUP : SMG_SCOPE_SUBGROUP;
        int bit = 0;
        while (lowest >> bit != 1) bit++;
        return use_of_bit(h, w * 64 + bit);
    }
    return NULL;
}

static bool pass_uses(smg_hazards *h, int at, smg_hazard *out) {
    for (int i = h->first[at]; i < h->first[at + 1]; i++) {
        const use *u = &h->uses.items[i];
        smg_scope scope;
        const use *o = met(h, u, &scope);
        if (o == NULL) continue;
        *out = (smg_hazard){at, o->at, u->tile, o->tile, u->writes, o->writes, scope};
        return false;
    }
    for (int i = h->first[at]; i < h->first[at + 1]; i++) {
        int bit = h->uses.items[i].first + slot_of(h, &h->uses.items[i]);
        set_bit(h->near, bit);
        set_bit(h->far, bit);
    }
    return true;
}

static void pass_barrier(smg_hazards *h, smg_scope scope) {
    size_t bytes = (size_t)h->words * sizeof(uint64_t);
    if (scope != SMG_SCOPE_NONE) memset(h->near, 0, bytes);
    if (scope == SMG_SCOPE_WORKGROUP) memset(h->far, 0, bytes);
}

static bool walk(smg_hazards *h, int begin, int end, int depth, smg_hazard *out);

/* How many steps the loop had nobody knows: what was touched in one slot counts as touched in all. */
static void close_ring(const smg_hazards *h, int axis, uint64_t *set) {
    for (int i = 0; i < h->uses.count; i++) {
        const use *u = &h->uses.items[i];
        bool touched = false;
        if (u->slots == 1 || h->k->tiles.items[u->tile].ring != axis) continue;
        for (int s = 0; s < u->slots; s++) touched = touched || (set[(u->first + s) / 64] >> (u->first + s) % 64 & 1);
        for (int s = 0; s < u->slots && touched; s++) set_bit(set, u->first + s);
    }
}

/* A loop with a range may have no step, and pass none of its barriers. */
static bool walk_loop(smg_hazards *h, int loop, int depth, smg_hazard *out) {
    size_t bytes = (size_t)h->words * sizeof(uint64_t);
    uint64_t *kept = h->kept[depth];
    int axis = h->k->code.items[loop].axes[0], steps = smg_kernel_walked_steps(h->k, axis);
    memcpy(kept, h->near, bytes);
    memcpy(kept + h->words, h->far, bytes);
    for (h->step[axis] = 0; h->step[axis] < steps; h->step[axis]++)
        if (!walk(h, loop + 1, h->match[loop], depth + 1, out)) return false;
    h->step[axis] = 0;
    for (int w = 0; h->k->code.items[loop].range != NULL && w < h->words; w++) {
        h->near[w] |= kept[w];
        h->far[w] |= kept[h->words + w];
    }
    close_ring(h, axis, h->near);
    close_ring(h, axis, h->far);
    return true;
}

static bool walk(smg_hazards *h, int begin, int end, int depth, smg_hazard *out) {
    for (int at = h->next[begin]; at < end; at = h->next[at + 1]) {
        const smg_instr *in = &h->k->code.items[at];
        if (in->kind == SMG_I_LOOP && depth < DEEPEST) {
            if (!walk_loop(h, at, depth, out)) return false;
            at = h->match[at];
        } else if (in->kind == SMG_I_BARRIER) {
            pass_barrier(h, in->scope);
        } else if (!pass_uses(h, at, out)) {
            return false;
        }
    }
    return true;
}

int smg_kernel_walked_steps(const smg_kernel *k, int axis) {
    int most = 1;
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].ring == axis && smg_tile_slots(&k->tiles.items[t]) > most) most = k->tiles.items[t].slots;
    return most + 1;
}

bool smg_hazards_find(smg_hazards *h, smg_hazard *out_hazard) {
    for (int a = 0; a < h->k->axes.count; a++) h->step[a] = 0;
    pass_barrier(h, SMG_SCOPE_WORKGROUP);
    return !walk(h, 0, h->k->code.count, 0, out_hazard);
}
