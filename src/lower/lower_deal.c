/* Dealing out. Subgroups that share out a contraction leave their parts of all sums for each other. Where nothing but
 * elementwise work and stores is behind that, each takes its share of the sums from there, and makes, loads and stores
 * what belongs to it alone: the bits of registers that tell the shares apart become bits of the subgroup's number in
 * all layouts behind. */
#include "lower/lower_internal.h"

#define MOST_TILES 64

typedef struct dealing {
    lower_sized *l;
    int at, parts;                          /* the join, and what it joins */
    int bits;                               /* of the subgroup's number that tell the shares apart */
    int level;                              /* and the first of them */
    smg_basis moved[SMG_LAYOUT_LEVEL_BITS]; /* what they become */
    uint64_t tiles;                         /* registers of what is behind, but for the parts */
    bool fits;
} dealing;

static uint64_t bit_of(int tile) {
    return UINT64_C(1) << tile;
}

/* ---- what is behind ---------------------------------------------------------------------------------- */

static void meet_tile(dealing *d, int tile) {
    const smg_tile *t = &d->l->k->tiles.items[tile];
    if (tile == d->parts) return;
    d->fits = d->fits && tile < MOST_TILES && t->residence == SMG_REGISTER && t->fragments == SMG_FRAGMENTS_NONE;
    if (d->fits) d->tiles |= bit_of(tile);
}

static void meet_leaf(void *user, int leaf) {
    dealing *d = user;
    const smg_kleaf *f = &d->l->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE) meet_tile(d, f->index);
    if (f->what == SMG_KLEAF_LOAD && d->l->k->accesses.items[f->index].index != SMG_EXPR_NONE) d->fits = false;
    if (f->pick_count > 0) d->fits = false;
}

static void look_behind(dealing *d) {
    const smg_kernel *k = d->l->k;
    for (int i = d->at + 1; i < k->code.count && d->fits; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_BARRIER) continue;
        d->fits = (in->kind == SMG_I_SET && in->dst != d->parts) ||
                  (in->kind == SMG_I_STORE && k->accesses.items[in->a].index == SMG_EXPR_NONE);
        if (in->kind == SMG_I_SET) meet_tile(d, in->dst);
        if (d->fits) smg_expr_leaves(k->exprs, in->expr, meet_leaf, d);
    }
}

typedef struct reading {
    const dealing *d;
    bool these, others; /* tiles of what is behind, and other ones */
} reading;

static void read_leaf(void *user, int leaf) {
    reading *r = user;
    const smg_kleaf *f = &r->d->l->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_TILE) return;
    bool behind = f->index < MOST_TILES && (r->d->tiles & bit_of(f->index)) != 0;
    r->these = r->these || behind;
    r->others = r->others || !behind;
}

static bool is_behind(const dealing *d, int tile) {
    return tile >= 0 && tile < MOST_TILES && (d->tiles & bit_of(tile)) != 0;
}

/* Tiles that are needed behind are made from each other, and read by nothing else. */
static void look_before(dealing *d) {
    const smg_kernel *k = d->l->k;
    for (int i = 0; i < d->at && d->fits; i++) {
        const smg_instr *in = &k->code.items[i];
        reading r = {.d = d};
        if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(k, in->expr, read_leaf, &r);
        if (in->kind == SMG_I_SET && is_behind(d, in->dst))
            d->fits = !r.others;
        else
            d->fits = !r.these && !is_behind(d, in->dst) && (!smg_instr_reads_a(in) || !is_behind(d, in->a));
    }
}

/* ---- layouts ----------------------------------------------------------------------------------------- */

static int register_bit(const smg_layout *l, smg_basis basis) {
    for (int i = 0; i < l->bits[SMG_LAYOUT_REGISTER]; i++)
        if (l->basis[SMG_LAYOUT_REGISTER][i].axis == basis.axis && l->basis[SMG_LAYOUT_REGISTER][i].bit == basis.bit)
            return i;
    return -1;
}

/* The bits that tell the shares apart go from the register's number to the subgroup's; false where they can't. */
static bool deal_layout(const dealing *d, smg_layout *l) {
    for (int i = 0; i < d->bits; i++) {
        smg_basis *own = &l->basis[SMG_LAYOUT_SUBGROUP][d->level + i];
        int at = register_bit(l, d->moved[i]);
        if (!smg_layout_has(l, d->moved[i].axis)) continue;
        if (at < 0 || own->axis >= 0) return false;
        smg_basis *of = l->basis[SMG_LAYOUT_REGISTER];
        memmove(&of[at], &of[at + 1], (size_t)(l->bits[SMG_LAYOUT_REGISTER] - at - 1) * sizeof *of);
        l->bits[SMG_LAYOUT_REGISTER]--;
        *own = d->moved[i];
    }
    return true;
}

/* -1: memory is out. */
static int dealt_number(const dealing *d, int number) {
    smg_layout l = d->l->k->layouts.items[number];
    return deal_layout(d, &l) ? smg_kernel_add_layout(d->l->k, &l) : -1;
}

static bool can_deal(const dealing *d, int number) {
    smg_layout l = d->l->k->layouts.items[number];
    return deal_layout(d, &l);
}

static bool all_can(const dealing *d) {
    const smg_kernel *k = d->l->k;
    bool can = can_deal(d, k->tiles.items[d->parts].layout);
    for (int t = 0; t < k->tiles.count && t < MOST_TILES; t++)
        if (is_behind(d, t)) can = can && can_deal(d, k->tiles.items[t].layout);
    for (int i = d->at + 1; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_STORE) can = can && can_deal(d, k->code.items[i].layout);
    return can;
}

/* The uppermost bits of a turn's registers, for the uppermost of the subgroup's number. */
static bool choose_bits(dealing *d, const smg_exchange *e, int turn) {
    const smg_kernel *k = d->l->k;
    const smg_layout *l = &k->layouts.items[k->tiles.items[d->parts].layout];
    uint32_t lowest = e->parts & (~e->parts + 1);
    int first = smg_log2(turn) - smg_log2(e->part_count);
    d->bits = smg_log2(e->part_count);
    d->level = smg_log2(lowest) - smg_log2(k->subgroup);
    if (e->width != 1 || e->joined != 0 || e->parts + lowest != (uint32_t)k->lanes || first < 0 ||
        smg_layout_registers(l) != smg_layout_numbers(l, SMG_LAYOUT_REGISTER))
        return false;
    for (int i = 0; i < d->bits; i++) {
        d->moved[i] = l->basis[SMG_LAYOUT_REGISTER][first + i];
        if (d->moved[i].axis < 0) return false;
    }
    return true;
}

/* ---- the program ------------------------------------------------------------------------------------- */

/* Matrices stay whole where the shares are of whole ones. */
static int add_share(const dealing *d) {
    smg_kernel *k = d->l->k;
    smg_tile tile = k->tiles.items[d->parts];
    tile.layout = dealt_number(d, tile.layout);
    tile.name = smg_arena_numbered(d->l->arena, "own", k->tiles.count);
    int row, col;
    if (!smg_matrix_sides(k, &tile, &row, &col)) tile.fragments = SMG_FRAGMENTS_NONE;
    smg_tile *slot = SMG_ARRAY_PUSH(d->l->arena, &k->tiles);
    if (slot == NULL || tile.name == NULL || tile.layout < 0) return -1;
    *slot = tile;
    return k->tiles.count - 1;
}

/* What is behind reads the share instead of the parts. */
static smg_status read_share(const dealing *d, int share) {
    smg_kernel *k = d->l->k;
    for (int f = k->leaves.count - 1; f >= 0; f--) {
        if (k->leaves.items[f].what != SMG_KLEAF_TILE || k->leaves.items[f].index != d->parts) continue;
        smg_kleaf *own = SMG_ARRAY_PUSH(d->l->arena, &k->leaves);
        if (own == NULL) return SMG_MEMORY;
        *own = k->leaves.items[f];
        own->index = share;
        smg_expr from = smg_expr_leaf(k->exprs, own->kind, f),
                 to = smg_expr_leaf(k->exprs, own->kind, k->leaves.count - 1);
        if (from == SMG_EXPR_NONE || to == SMG_EXPR_NONE) return SMG_MEMORY;
        for (int i = d->at + 1; i < k->code.count; i++) {
            smg_instr *in = &k->code.items[i];
            if (in->expr == SMG_EXPR_NONE) continue;
            in->expr = lower_replace(k->exprs, in->expr, from, to);
            if (in->expr == SMG_EXPR_NONE) return SMG_MEMORY;
        }
    }
    return SMG_OK;
}

static smg_status deal_layouts(const dealing *d) {
    smg_kernel *k = d->l->k;
    for (int t = 0; t < k->tiles.count && t < MOST_TILES; t++)
        if (is_behind(d, t) && (k->tiles.items[t].layout = dealt_number(d, k->tiles.items[t].layout)) < 0)
            return SMG_MEMORY;
    for (int i = d->at + 1; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_STORE && (in->layout = dealt_number(d, in->layout)) < 0) return SMG_MEMORY;
    }
    return SMG_OK;
}

smg_status lower_deal(lower_sized *l, int at, int turn, int *out_share) {
    dealing d = {.l = l, .at = at, .parts = l->k->code.items[at].dst, .fits = l->k->matrix.rows > 0};
    smg_exchange e = smg_kernel_exchange(l->k, &l->k->code.items[at]);
    *out_share = -1;
    if (d.fits) look_behind(&d);
    if (d.fits) look_before(&d);
    if (!d.fits || !choose_bits(&d, &e, turn) || !all_can(&d)) return SMG_OK;
    *out_share = add_share(&d);
    if (*out_share < 0) return SMG_MEMORY;
    SMG_TRY(read_share(&d, *out_share));
    return deal_layouts(&d);
}
