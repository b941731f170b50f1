/* Depth lanes. Where the lanes of a block share out a contraction, every product leaves partial sums; they are joined
 * behind the outermost loop that adds to them, before anything reads them. So are sums that go by in the slices of a
 * product: lanes fold them apart. */
#include "lower/lower_internal.h"

static bool leaves_parts(const lowering *l, const smg_instr *in) {
    bool sum = in->kind == SMG_I_REDUCE && in->apart && in->accumulate;
    return sum || (in->kind == SMG_I_MMA && l->s->lane_depth > 1);
}

/* An instruction in the stretch that adds parts to the tile, which nobody joins; NULL. */
static const smg_instr *adds_to(const lowering *l, int from, int to, int tile) {
    for (int i = from; i < to; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->dst == tile && leaves_parts(l, in) && lower_find(l->k, 0, l->k->code.count, SMG_I_JOIN, tile) < 0)
            return in;
    }
    return NULL;
}

static smg_status insert_join(lowering *l, int at, const smg_instr *of) {
    smg_instr join = lower_blank(SMG_I_JOIN);
    join.dst = of->dst;
    join.axis_count = of->axis_count;
    memcpy(join.axes, of->axes, sizeof join.axes);
    join.note = of->kind == SMG_I_MMA ? "the depth lanes' parts" : "the lanes' parts";
    return lower_insert(l->k, at, join);
}

/* One stretch: an outermost loop, or a single product outside of loops. */
static smg_status join_stretch(lowering *l, int from, int *to) {
    int tiles = l->k->tiles.count, end = *to;
    for (int t = tiles - 1; t >= 0; t--) {
        const smg_instr *part = adds_to(l, from, end, t);
        if (part == NULL || adds_to(l, *to, l->k->code.count, t) != NULL) continue; /* a later one goes on */
        SMG_TRY(insert_join(l, end, part));
        ++*to;
    }
    return SMG_OK;
}

smg_status lower_join(lowering *l) {
    if (l->s->lane_depth <= 1 && l->s->matrix == NULL) return SMG_OK;
    for (int i = 0; i < l->k->code.count; i++) {
        int to = i + 1;
        if (l->k->code.items[i].kind == SMG_I_LOOP) {
            for (int depth = 1; depth > 0; to++) {
                if (l->k->code.items[to].kind == SMG_I_LOOP) depth++;
                if (l->k->code.items[to].kind == SMG_I_END) depth--;
            }
        }
        SMG_TRY(join_stretch(l, i, &to));
        i = to - 1;
    }
    return SMG_OK;
}
