/* Merging staged loops. Two products that walk the same contraction axis one after the other, with nothing but a start
 * value between them, share one loop: an operand that both stage is staged once, and the barriers of
 * one serve the other. Products in turn in the loop of a pass stage what is the same for them once, too. */
#include "lower/lower_internal.h"

typedef struct staged_loop {
    int begin, end; /* LOOP and its END */
} staged_loop;

static bool reads_register(const lowering *l, smg_expr expr) {
    for (int t = 0; t < l->k->leaves.count; t++) {
        const smg_kleaf *f = &l->k->leaves.items[t];
        if (f->what != SMG_KLEAF_TILE) continue;
        smg_expr leaf = smg_expr_leaf(l->k->exprs, f->kind, t);
        if (leaf == expr) return true;
    }
    return false;
}

/* A loop of stages, a barrier, products, a barrier; or of sums that lanes fold apart. */
static bool find_loop(const lowering *l, int at, staged_loop *out) {
    if (at >= l->k->code.count || l->k->code.items[at].kind != SMG_I_LOOP) return false;
    out->begin = at;
    for (int i = at + 1; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_END) {
            out->end = i;
            return true;
        }
        bool stage = in->kind == SMG_I_STAGE && !reads_register(l, in->expr);
        bool sum = in->kind == SMG_I_REDUCE && in->apart && !lower_reads_tiles(l->k, in->expr);
        if (!stage && !sum && in->kind != SMG_I_BARRIER && in->kind != SMG_I_MMA) return false;
    }
    return false;
}

static bool constant_set(const lowering *l, const smg_instr *in) {
    return in->kind == SMG_I_SET && smg_expr_get(l->k->exprs, in->expr)->prim == SMG_PRIM_CONST;
}

static bool same_stage(const lowering *l, const smg_instr *x, const smg_instr *y) {
    const smg_tile *tx = &l->k->tiles.items[x->dst], *ty = &l->k->tiles.items[y->dst];
    return x->kind == SMG_I_STAGE && y->kind == SMG_I_STAGE && x->expr == y->expr && tx->pad == ty->pad &&
           tx->axis_count == ty->axis_count && memcmp(tx->axis, ty->axis, (size_t)tx->axis_count * sizeof(int)) == 0;
}

typedef struct merged {
    smg_instr *items;
    int count;
} merged;

static void put(merged *m, smg_instr in) {
    m->items[m->count++] = in;
}

/* Appends the stages (or products) of a loop; a stage that is there already lends its tile. */
static void gather(const lowering *l, const staged_loop *loop, smg_instr_kind kind, merged *m, int *alias) {
    for (int i = loop->begin + 1; i < loop->end; i++) {
        smg_instr in = l->k->code.items[i];
        if (in.kind != kind) continue;
        if (kind == SMG_I_STAGE) {
            int twin = -1;
            for (int j = 0; j < m->count && twin < 0; j++) {
                if (same_stage(l, &m->items[j], &in)) twin = m->items[j].dst;
            }
            if (twin >= 0) {
                alias[in.dst] = twin;
                continue;
            }
        } else if (kind == SMG_I_MMA) {
            in.a = alias[in.a];
            in.b = alias[in.b];
        }
        put(m, in);
    }
}

static bool is_staged(const lowering *l, const staged_loop *loop) {
    for (int i = loop->begin; i < loop->end; i++)
        if (l->k->code.items[i].kind == SMG_I_STAGE) return true;
    return false;
}

static smg_status merge_pair(lowering *l, const staged_loop *x, const staged_loop *y) {
    int tiles = l->k->tiles.count;
    int *alias = SMG_ARENA_ARRAY(l->arena, int, (size_t)tiles);
    merged m = {.items = SMG_ARENA_ARRAY(l->arena, smg_instr, (size_t)(y->end - x->begin + 1))};
    if (alias == NULL || m.items == NULL) return SMG_MEMORY;
    for (int t = 0; t < tiles; t++) alias[t] = t;
    smg_instr barrier = lower_blank(SMG_I_BARRIER);
    bool staged = is_staged(l, x) || is_staged(l, y);
    for (int i = x->end + 1; i < y->begin; i++) put(&m, l->k->code.items[i]);
    put(&m, l->k->code.items[x->begin]);
    gather(l, x, SMG_I_STAGE, &m, alias);
    gather(l, y, SMG_I_STAGE, &m, alias);
    if (staged) put(&m, barrier);
    gather(l, x, SMG_I_MMA, &m, alias);
    gather(l, y, SMG_I_MMA, &m, alias);
    gather(l, x, SMG_I_REDUCE, &m, alias);
    gather(l, y, SMG_I_REDUCE, &m, alias);
    if (staged) put(&m, barrier);
    put(&m, l->k->code.items[x->end]);
    memcpy(l->k->code.items + x->begin, m.items, (size_t)m.count * sizeof(smg_instr));
    int rest = l->k->code.count - (y->end + 1);
    memmove(l->k->code.items + x->begin + m.count, l->k->code.items + y->end + 1, (size_t)rest * sizeof(smg_instr));
    l->k->code.count = x->begin + m.count + rest;
    return SMG_OK;
}

/* Products go on reading the tile of the stage that stays. */
static void read_twin(smg_kernel *k, int from, int to, int tile, int twin) {
    for (int i = from; i < to; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        if (in->a == tile) in->a = twin;
        if (in->b == tile) in->b = twin;
    }
}

/* The stage of the straight stretch, in front of the one at `at`, that has filled a tile with the same; -1. */
static int twin_of(const lowering *l, const lower_stretch *stretch, int at) {
    const smg_instr *code = l->k->code.items;
    if (code[at].kind != SMG_I_STAGE || lower_reads_tiles(l->k, code[at].expr)) return -1;
    for (int i = at - 1; i >= stretch->from && code[i].kind != SMG_I_LOOP && code[i].kind != SMG_I_END; i--)
        if (same_stage(l, &code[i], &code[at])) return i;
    return -1;
}

static void stage_once(lowering *l, lower_stretch *stretch) {
    smg_kernel *k = l->k;
    for (int i = stretch->from; i < stretch->to; i++) {
        int twin = twin_of(l, stretch, i);
        if (twin < 0) continue;
        read_twin(k, i, k->code.count, k->code.items[i].dst, k->code.items[twin].dst);
        memmove(&k->code.items[i], &k->code.items[i + 1], (size_t)(k->code.count - 1 - i) * sizeof(smg_instr));
        k->code.count--;
        stretch->to--;
        i--;
    }
}

static smg_status merge_stretch(lowering *l, lower_stretch *stretch) {
    for (int i = stretch->from; i < stretch->to; i++) {
        staged_loop x, y;
        if (!find_loop(l, i, &x)) continue;
        int next = x.end + 1;
        while (next < stretch->to && constant_set(l, &l->k->code.items[next])) next++;
        if (next >= stretch->to || !find_loop(l, next, &y)) continue;
        if (l->k->code.items[x.begin].axes[0] != l->k->code.items[y.begin].axes[0]) continue;
        int before = l->k->code.count;
        SMG_TRY(merge_pair(l, &x, &y));
        stretch->to -= before - l->k->code.count;
        i--; /* the merged loop may take the next one in, too */
    }
    return SMG_OK;
}

smg_status lower_merge(lowering *l) {
    for (lower_stretch s = LOWER_NO_STRETCH; lower_next_stretch(l, &s);) {
        SMG_TRY(merge_stretch(l, &s));
        stage_once(l, &s);
    }
    return SMG_OK;
}
