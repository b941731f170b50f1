/* Depth lanes. Where the lanes of a block share out a contraction, every product leaves partial sums; they are joined
 * behind the outermost loop that adds to them, before anything reads them. */
#include "lower/lower_internal.h"

/* A product in the stretch that adds to the tile; NULL. */
static const smg_instr *adds_to(const lowering *l, int from, int to, int tile) {
    for (int i = from; i < to; i++) {
        if (l->k->code.items[i].kind == SMG_I_MMA && l->k->code.items[i].dst == tile) return &l->k->code.items[i];
    }
    return NULL;
}

static smg_status insert_join(lowering *l, int at, const smg_instr *product) {
    smg_instr join = lower_blank(SMG_I_JOIN);
    join.dst = product->dst;
    join.axis_count = product->axis_count;
    memcpy(join.axes, product->axes, sizeof join.axes);
    join.note = "the depth lanes' parts";
    return lower_insert(l->k, at, join);
}

/* One stretch: an outermost loop, or a single product outside of loops. */
static smg_status join_stretch(lowering *l, int from, int *to) {
    int tiles = l->k->tiles.count, end = *to;
    for (int t = tiles - 1; t >= 0; t--) {
        const smg_instr *product = adds_to(l, from, end, t);
        if (product == NULL || adds_to(l, *to, l->k->code.count, t) != NULL) continue; /* a later one goes on */
        SMG_TRY(insert_join(l, end, product));
        ++*to;
    }
    return SMG_OK;
}

smg_status lower_join(lowering *l) {
    if (l->s->lane_depth <= 1) return SMG_OK;
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
