/* Barriers that order nothing. Each product brings its own barriers; between two of them some separate no write of a
 * shared tile from another use of it, because one further on, or of the step before, does already. A barrier goes when
 * every write stays apart from earlier reads and writes, and every read from earlier writes, without it: the rule of
 * the verifier, loops walked twice so that what one step leaves behind meets the next. */
#include "lower/lower_internal.h"

typedef struct uses {
    const smg_kernel *k;
    const int *bit; /* by tile: its number among shared tiles, -1 */
    uint64_t reads, writes;
} uses;

typedef struct hazards {
    const smg_kernel *k;
    const uses *use;        /* by instruction */
    const int *match;       /* by instruction: LOOP -> END */
    const bool *gone;       /* by instruction: a barrier that is left out */
    uint64_t read, written; /* since the last barrier */
} hazards;

static void add_read(void *user, int leaf) {
    uses *u = user;
    const smg_kleaf *f = &u->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE && u->bit[f->index] >= 0) u->reads |= UINT64_C(1) << u->bit[f->index];
}

static uint64_t bit_of(const uses *u, int tile) {
    return tile >= 0 && u->bit[tile] >= 0 ? UINT64_C(1) << u->bit[tile] : 0;
}

/* Writing a tile writes all that lie on its memory. */
static uint64_t bits_under(const uses *u, int tile) {
    uint64_t bits = bit_of(u, tile);
    int memory = tile >= 0 ? u->k->tiles.items[tile].memory : 0;
    for (int t = 0; memory > 0 && t < u->k->tiles.count; t++)
        if (u->k->tiles.items[t].memory == memory) bits |= bit_of(u, t);
    return bits;
}

static uses uses_of(const smg_kernel *k, const int *bit, const smg_instr *in) {
    uses u = {.k = k, .bit = bit};
    if (in->expr != SMG_EXPR_NONE) smg_expr_leaves(k->exprs, in->expr, add_read, &u);
    if (smg_instr_reads_a(in)) u.reads |= bit_of(&u, in->a);
    if (in->kind == SMG_I_MMA) u.reads |= bit_of(&u, in->b);
    if (in->kind == SMG_I_FOLD) u.reads |= bit_of(&u, in->dst);
    u.writes = bits_under(&u, in->dst);
    return u;
}

static bool apart(hazards *h, int begin, int end) {
    for (int at = begin; at < end; at++) {
        smg_instr_kind kind = h->k->code.items[at].kind;
        if (kind == SMG_I_LOOP) {
            uint64_t read = h->read, written = h->written;
            if (!apart(h, at + 1, h->match[at]) || !apart(h, at + 1, h->match[at])) return false;
            if (h->k->code.items[at].range != NULL) { /* it may have no step, and pass none of its barriers */
                h->read |= read;
                h->written |= written;
            }
            at = h->match[at];
            continue;
        }
        if (kind == SMG_I_BARRIER && !h->gone[at]) h->read = h->written = 0;
        const uses *u = &h->use[at];
        if ((u->reads & h->written) || (u->writes & (h->read | h->written))) return false;
        h->read |= u->reads;
        h->written |= u->writes;
    }
    return true;
}

static void match_loops(const smg_kernel *k, int *match) {
    for (int i = 0; i < k->code.count; i++) {
        int depth = 0;
        for (int j = i; k->code.items[i].kind == SMG_I_LOOP && j < k->code.count; j++) {
            if (k->code.items[j].kind == SMG_I_LOOP) depth++;
            if (k->code.items[j].kind == SMG_I_END && --depth == 0) {
                match[i] = j;
                break;
            }
        }
    }
}

static void compact(smg_kernel *k, const bool *gone) {
    int kept = 0;
    for (int i = 0; i < k->code.count; i++)
        if (!gone[i]) k->code.items[kept++] = k->code.items[i];
    k->code.count = kept;
}

smg_status lower_barriers(lower_sized *l) {
    smg_kernel *k = l->k;
    size_t count = (size_t)k->code.count + 1;
    int shared = 0, *bit = SMG_ARENA_ARRAY(l->arena, int, (size_t)k->tiles.count + 1);
    int *match = SMG_ARENA_ARRAY(l->arena, int, count);
    bool *gone = SMG_ARENA_ARRAY(l->arena, bool, count);
    uses *use = SMG_ARENA_ARRAY(l->arena, uses, count);
    if (bit == NULL || match == NULL || gone == NULL || use == NULL) return SMG_MEMORY;
    for (int t = 0; t < k->tiles.count; t++) bit[t] = smg_tile_in_shared(&k->tiles.items[t]) ? shared++ : -1;
    if (shared > 64) return SMG_OK;
    for (int i = 0; i < k->code.count; i++) use[i] = uses_of(k, bit, &k->code.items[i]);
    match_loops(k, match);
    for (int i = k->code.count - 1; i >= 0; i--) {
        if (k->code.items[i].kind != SMG_I_BARRIER) continue;
        gone[i] = true;
        hazards h = {.k = k, .use = use, .match = match, .gone = gone};
        gone[i] = apart(&h, 0, k->code.count);
    }
    compact(k, gone);
    return SMG_OK;
}
