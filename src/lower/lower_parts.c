/* Parts that correct parts. Where a loop is nothing but reductions each lane folds what it has, and corrects that by
 * what the same lane has of others (a sum by the maximum). A lane's part of the one says nothing about the other where
 * other lanes share that out, as where a sum goes over groups and their elements, and the maximum over groups: then
 * what corrects is made whole in each step. */
#include "lower/lower_internal.h"

/* Bits of lanes whose parts the tile has in the loop that folds it; 0: it is whole. */
static uint32_t parts_of(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_REDUCE && in->dst == tile && in->accumulate && in->apart)
            return smg_layout_local_mask(&k->layouts.items[in->layout], in->axes, in->axis_count);
    }
    return 0;
}

/* Its reductions join in each step, so nothing is left to join behind the loop. */
static void make_whole(smg_kernel *k, int tile) {
    int kept = 0;
    for (int i = 0; i < k->code.count; i++) {
        smg_instr in = k->code.items[i];
        if (in.kind == SMG_I_JOIN && in.dst == tile) continue;
        if (in.kind == SMG_I_REDUCE && in.dst == tile) in.apart = false;
        k->code.items[kept++] = in;
    }
    k->code.count = kept;
}

static bool is_folded(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_REDUCE && k->code.items[i].dst == tile && k->code.items[i].accumulate)
            return true;
    return false;
}

typedef struct correction {
    const smg_kernel *k;
    int of; /* tile */
    uint32_t parts;
    int depth; /* of tiles that hold nothing but what is computed of others */
    int other; /* a tile in parts of other lanes; -1 */
} correction;

enum { DEEPEST = 4 };

static void look_at(void *user, int leaf) {
    correction *c = user;
    const smg_kernel *k = c->k;
    const smg_kleaf *read = &k->leaves.items[leaf];
    if (read->what != SMG_KLEAF_TILE || read->index == c->of || c->other >= 0) return;
    uint32_t parts = parts_of(k, read->index);
    if (parts != 0 && parts != c->parts) c->other = read->index;
    if (c->depth == DEEPEST || is_folded(k, read->index)) return;
    c->depth++;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_SET && k->code.items[i].dst == read->index)
            smg_kernel_leaves(k, k->code.items[i].expr, look_at, c);
    c->depth--;
}

static bool has_parts(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_REDUCE && in->accumulate && in->apart) return true;
    }
    return false;
}

/* A tile that corrects one in parts of other lanes; -1. */
static int find(const smg_kernel *k) {
    if (!has_parts(k)) return -1;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_SET || !is_folded(k, in->dst)) continue;
        correction c = {.k = k, .of = in->dst, .parts = parts_of(k, in->dst), .other = -1};
        smg_kernel_leaves(k, in->expr, look_at, &c);
        if (c.other >= 0) return c.other;
    }
    return -1;
}

void lower_correct(lower_sized *l) {
    for (int tile = find(l->k); tile >= 0; tile = find(l->k)) make_whole(l->k, tile);
}
