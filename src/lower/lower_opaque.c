/* Products by matrices of which nobody knows where lanes have the sums. Up to here the program has them where lanes
 * will take them from shared memory. Now what is multiplied is a tile of its own, from 0 on: through all products that
 * follow each other without anybody else using the sums, loops around them included. Behind them each subgroup leaves
 * its matrices in words of its own, some at a time, and takes them back as elements: in the place of sums that were set
 * to 0 in front, or added to what is there. So sums that are corrected from slice to slice are added to in each. */
#include "lower/lower_internal.h"

typedef struct separating {
    lower_sized *l;
    int exchange; /* -1: not made yet */
} separating;

typedef struct seeking {
    const smg_kernel *k;
    int tile;
    bool found;
} seeking;

static void seek(void *user, int leaf) {
    seeking *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    s->found = s->found || (f->what == SMG_KLEAF_TILE && f->index == s->tile);
}

static bool uses(const smg_kernel *k, const smg_instr *in, int tile) {
    seeking s = {.k = k, .tile = tile, .found = in->dst == tile};
    if (smg_instr_reads_a(in)) s.found = s.found || in->a == tile;
    if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(k, in->expr, seek, &s);
    if (in->kind == SMG_I_STORE && k->accesses.items[in->a].index != SMG_EXPR_NONE)
        smg_kernel_leaves(k, k->accesses.items[in->a].index, seek, &s);
    return s.found;
}

static bool multiplies(const smg_instr *in, int tile) {
    return in->kind == SMG_I_MMA && in->dst == tile;
}

/* Does any of the instructions use the tile? other: in another way than by multiplying into it. */
static bool any_uses(const smg_kernel *k, int from, int to, int tile, bool other) {
    for (int i = from; i <= to; i++)
        if (uses(k, &k->code.items[i], tile) && !(other && multiplies(&k->code.items[i], tile))) return true;
    return false;
}

/* The last instruction of what begins at `at`: of a loop its end. */
static int end_of(const smg_kernel *k, int at) {
    return k->code.items[at].kind == SMG_I_LOOP ? smg_kernel_loop_end(k, at) : at;
}

/* The products with their loops, and those behind them that go on with the sums. */
static lower_stretch products_from(const smg_kernel *k, int product, int tile) {
    lower_stretch s = {product, product};
    for (int loop = smg_kernel_loop_around(k, product); loop >= 0; loop = smg_kernel_loop_around(k, loop)) {
        if (any_uses(k, loop, smg_kernel_loop_end(k, loop), tile, true)) break;
        s = (lower_stretch){loop, smg_kernel_loop_end(k, loop)};
    }
    for (int i = s.to + 1; i < k->code.count && k->code.items[i].kind != SMG_I_END; i = end_of(k, i) + 1) {
        int end = end_of(k, i);
        if (any_uses(k, i, end, tile, true)) break;
        if (any_uses(k, i, end, tile, false)) s.to = end;
    }
    return s;
}

/* The SET to 0 that nobody reads before the products; -1. */
static int begin_of_sums(const smg_kernel *k, int first, int tile) {
    for (int i = first - 1; i >= 0 && k->code.items[i].kind != SMG_I_LOOP; i--) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_END) {
            int loop = smg_kernel_loop_around(k, i);
            if (any_uses(k, loop, i, tile, false)) return -1;
            i = loop;
        } else if (uses(k, in, tile)) {
            const smg_expr_node *n = in->kind == SMG_I_SET ? smg_expr_get(k->exprs, in->expr) : NULL;
            return n != NULL && n->prim == SMG_PRIM_CONST && n->value == 0 ? i : -1;
        }
    }
    return -1;
}

static int add_tile(lower_sized *l, smg_tile tile) {
    smg_tile *slot = SMG_ARRAY_PUSH(l->arena, &l->k->tiles);
    if (slot == NULL || tile.name == NULL) return -1;
    *slot = tile;
    return l->k->tiles.count - 1;
}

/* Registers of the tile that are left at once. */
static int registers_at_once(const smg_kernel *k, int tile) {
    const smg_matrix *m = &k->matrix;
    int64_t each = (int64_t)m->rows * m->cols * 4 * (k->lanes / k->subgroup), elements, all;
    elements = smg_matrix_elements(m, SMG_FRAGMENTS_SUMS);
    all = smg_tile_registers(k, &k->tiles.items[tile]);
    int64_t most = each < SMG_OPAQUE_BYTES ? SMG_OPAQUE_BYTES / each * elements : elements;
    return (int)(most < all ? most : all);
}

/* The words that all conversions of the kernel take turns in. */
static smg_status make_room(separating *s, int registers) {
    smg_kernel *k = s->l->k;
    int64_t words = (int64_t)registers / smg_matrix_elements(&k->matrix, SMG_FRAGMENTS_SUMS) * k->matrix.rows *
                    k->matrix.cols * (k->lanes / k->subgroup);
    if (s->exchange < 0) {
        smg_tile tile = {.name = smg_arena_numbered(s->l->arena, "m", k->tiles.count),
                         .type = SMG_TYPE_F32,
                         .residence = SMG_EXCHANGE,
                         .layout = -1};
        s->exchange = add_tile(s->l, tile);
        if (s->exchange < 0) return SMG_MEMORY;
    }
    if (k->tiles.items[s->exchange].words < words) k->tiles.items[s->exchange].words = (int)words;
    return SMG_OK;
}

/* Behind instruction `at`: `to` takes, or adds, what `from` has summed up. */
static smg_status take_back(separating *s, int at, int from, int to, bool adds) {
    smg_kernel *k = s->l->k;
    int all = (int)smg_tile_registers(k, &k->tiles.items[from]), turn = registers_at_once(k, from);
    SMG_TRY(make_room(s, turn));
    for (int first = 0; first < all; first += turn) {
        smg_instr leave = lower_blank(SMG_I_LEAVE), gather = lower_blank(SMG_I_GATHER);
        leave.matrices = gather.matrices = true;
        leave.dst = gather.a = s->exchange;
        leave.a = gather.b = from;
        gather.dst = to;
        gather.accumulate = adds;
        leave.first = gather.first = first;
        leave.registers = gather.registers = all - first < turn ? all - first : turn;
        leave.note = "sums of which nobody knows the lanes";
        const smg_instr turns[] = {leave, lower_blank(SMG_I_BARRIER), gather, lower_blank(SMG_I_BARRIER)};
        for (size_t i = 0; i < SMG_COUNT_OF(turns); i++) SMG_TRY(lower_insert(k, ++at, turns[i]));
    }
    return SMG_OK;
}

static smg_status separate(separating *s, int product, int tile, int sums) {
    smg_kernel *k = s->l->k;
    lower_stretch p = products_from(k, product, tile);
    int begin = begin_of_sums(k, p.from, tile);
    for (int i = p.from; i <= p.to; i++)
        if (multiplies(&k->code.items[i], tile)) k->code.items[i].dst = sums;
    SMG_TRY(take_back(s, p.to, sums, tile, begin < 0));
    if (begin >= 0) {
        k->code.items[begin].dst = sums;
        return SMG_OK;
    }
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = sums;
    set.expr = smg_expr_const(k->exprs, SMG_KIND_FLOAT, 0);
    return set.expr != SMG_EXPR_NONE ? lower_insert(k, p.from, set) : SMG_MEMORY;
}

smg_status lower_opaque(lower_sized *l) {
    smg_kernel *k = l->k;
    separating s = {.l = l, .exchange = -1};
    if (k->matrix.rows == 0 || l->s->matrix_sums != NULL) return SMG_OK;
    int tiles = k->tiles.count;
    for (int t = 0; t < tiles; t++) {
        smg_tile sums = k->tiles.items[t];
        if (sums.fragments != SMG_FRAGMENTS_SUMS) continue;
        sums.name = smg_arena_format(l->arena, "%s_sums", sums.name);
        int own = add_tile(l, sums);
        if (own < 0) return SMG_MEMORY;
        k->tiles.items[t].fragments = SMG_FRAGMENTS_NONE;
        for (int i = 0; i < k->code.count; i++)
            if (multiplies(&k->code.items[i], t)) SMG_TRY(separate(&s, i, t, own));
    }
    k->matrix.opaque = true;
    return SMG_OK;
}
