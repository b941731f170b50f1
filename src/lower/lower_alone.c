/* Lanes that have their rows alone. Where lanes are the elements of one vector register, and each is another row of
 * the results, it has all columns of its row: a row is reduced in the lane itself, and what is computed for the next
 * product is in the lane that multiplies it. So left factors stay in registers. An element of a right factor is the
 * same for all lanes: one load, where it lies in memory. Nothing goes through shared memory, where such lanes read
 * element by element. */
#include "lower/lower_internal.h"

/* The only instruction that fills the tile; -1. */
static int fill_of(const smg_kernel *k, int tile) {
    int found = -1;
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].dst != tile) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

static void remove_at(smg_kernel *k, int at) {
    smg_instr *in = &k->code.items[at];
    memmove(in, in + 1, (size_t)(k->code.count - 1 - at) * sizeof *in);
    k->code.count--;
}

static bool is_read(const smg_kernel *k, int tile) {
    for (int f = 0; f < k->leaves.count; f++)
        if (k->leaves.items[f].what == SMG_KLEAF_TILE && k->leaves.items[f].index == tile) return true;
    return false;
}

/* What was staged for all lanes each lane loads itself, for its rows. */
static void load_left(smg_kernel *k, int fill, smg_expr value) {
    smg_tile *t = &k->tiles.items[k->code.items[fill].dst];
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = k->code.items[fill].dst;
    set.expr = value;
    set.note = k->code.items[fill].note;
    k->code.items[fill] = set;
    t->residence = SMG_REGISTER;
    t->pad = 0;
    t->clamped = 0;
}

static smg_status keep_left(lowering *l, int tile, int depth) {
    smg_kernel *k = l->k;
    int fill = fill_of(k, tile);
    bool staged = fill >= 0 && k->code.items[fill].kind == SMG_I_STAGE;
    bool spilled = fill >= 0 && k->code.items[fill].kind == SMG_I_SPILL;
    int set = staged ? fill : spilled ? lower_set_for(k, fill) : -1;
    if (k->tiles.items[tile].residence == SMG_REGISTER) return SMG_OK;
    if (set < 0 || is_read(k, tile)) return lower_refuse(l, "a left factor is not a lane's own");
    smg_expr value = lower_until_end(k, depth, k->code.items[set].expr);
    if (value == SMG_EXPR_NONE) return SMG_MEMORY;
    k->code.items[set].expr = value;
    if (staged) {
        load_left(k, fill, value);
        return SMG_OK;
    }
    int own = k->code.items[fill].a;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA && k->code.items[i].a == tile) k->code.items[i].a = own;
    remove_at(k, fill);
    return SMG_OK;
}

static smg_status read_right(lowering *l, int tile) {
    smg_kernel *k = l->k;
    smg_tile *t = &k->tiles.items[tile];
    int fill = fill_of(k, tile), access = -1;
    if (t->residence == SMG_VIEW) return SMG_OK;
    if (fill >= 0 && k->code.items[fill].kind == SMG_I_STAGE) access = lower_plain_load(l, k->code.items[fill].expr);
    if (access < 0 || is_read(k, tile)) return lower_refuse(l, "a right factor is not read where it lies");
    t->residence = SMG_VIEW;
    t->access = access;
    t->pad = 0;
    t->clamped = 0;
    remove_at(k, fill);
    return SMG_OK;
}

/* A product whose factors are where its lanes read them; -1: all are. */
static int next_product(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_MMA &&
            (k->tiles.items[in->a].residence != SMG_REGISTER || k->tiles.items[in->b].residence != SMG_VIEW))
            return i;
    }
    return -1;
}

smg_status lower_alone(lowering *l) {
    if (!l->s->alone) return SMG_OK;
    for (int at; l->refused == NULL && (at = next_product(l->k)) >= 0;) {
        const smg_instr product = l->k->code.items[at];
        SMG_TRY(keep_left(l, product.a, product.axes[0]));
        if (l->refused == NULL) SMG_TRY(read_right(l, product.b));
    }
    return l->refused == NULL ? lower_drop_tiles(l->k) : SMG_OK;
}
