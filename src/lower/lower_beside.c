/* Right factors beside the way through shared memory. Several subgroups read the same rows of a left factor: it is
 * staged. A right factor that lies along what is contracted is read by the lanes that multiply it, a step before they
 * do: it needs neither shared memory nor the way there and back, and of two barriers one stays. What is contracted has
 * the order of lower_streams.c, in which the left factor is taken, too. Each step puts the left slice of the next one
 * and fetches that behind it; the loop is written out by two steps, so that slots are numbers. */
#include "lower/lower_internal.h"

#define SLOTS 2
#define MOST_PRODUCTS 4

typedef struct way {
    int put, fetch, first; /* instructions; first: the fetch of the first slice, in front of the loop */
} way;

typedef struct beside_loop {
    int begin, end, barrier, products, sums;
    int product[MOST_PRODUCTS];
    int sum[MOST_PRODUCTS]; /* of elements of the left factor (lower_along.c) */
    way left, right[MOST_PRODUCTS];
} beside_loop;

static bool find_way(const smg_kernel *k, const beside_loop *b, int tile, way *out) {
    out->put = lower_find(k, b->begin, b->barrier, SMG_I_PUT, tile);
    if (out->put < 0) return false;
    int slice = k->code.items[out->put].a;
    out->fetch = lower_find(k, b->barrier, b->product[0], SMG_I_FETCH, slice);
    out->first = lower_find(k, 0, b->begin, SMG_I_FETCH, slice);
    return out->fetch >= 0 && out->first >= 0 && k->code.items[out->fetch].ahead == 1;
}

/* The body is slices that are put, a barrier, their successors that are fetched, and products of one left slice, along
 * the loop: where that goes over another axis of what is contracted, slots would have to as well. */
static bool is_plain(const smg_kernel *k, beside_loop *b) {
    int counts[SMG_I_BARRIER + 1] = {0};
    b->barrier = lower_find(k, b->begin, b->end, SMG_I_BARRIER, -1);
    for (int i = b->begin + 1; i < b->end; i++) {
        const smg_instr *in = &k->code.items[i];
        counts[in->kind]++;
        if (in->kind == SMG_I_REDUCE && b->sums == MOST_PRODUCTS) return false;
        if (in->kind == SMG_I_REDUCE) b->sum[b->sums++] = i;
        if (in->kind != SMG_I_MMA) continue;
        if (b->products == MOST_PRODUCTS || in->axes[0] != k->code.items[b->begin].axes[0]) return false;
        b->product[b->products++] = i;
    }
    int ways = 1 + b->products,
        body = counts[SMG_I_PUT] + counts[SMG_I_FETCH] + counts[SMG_I_BARRIER] + b->products + b->sums;
    if (b->products == 0 || counts[SMG_I_PUT] != ways || counts[SMG_I_FETCH] != ways || body != b->end - b->begin - 1)
        return false;
    bool good = find_way(k, b, k->code.items[b->product[0]].a, &b->left);
    for (int n = 0; n < b->products && good; n++) {
        const smg_instr *product = &k->code.items[b->product[n]];
        good = product->a == k->code.items[b->product[0]].a && find_way(k, b, product->b, &b->right[n]);
    }
    return good;
}

/* The left factor has to come in the order of the right one's runs. Put in that order it lies as whole matrices, which
 * every subgroup loads at once. Where the order parts the two elements of a word, lanes take runs of it instead. */
static smg_instr take_left(smg_kernel *k, const smg_instr *product, int left) {
    smg_tile *shared = &k->tiles.items[product->a];
    smg_instr take = lower_take_runs(product, left);
    if (!smg_matrix_pairs_in_runs(&k->matrix) || smg_tile_last_axis(shared) != product->axes[0]) return take;
    shared->in_runs = !smg_matrix_has_own_order(&k->matrix);
    shared->pad = SMG_MATRIX_PAD;
    take.wide[0] = (smg_wide){0};
    return take;
}

static bool comes_round(const smg_kernel *k, const beside_loop *b) {
    int64_t steps = smg_kernel_loop_steps(k, &k->code.items[b->begin]);
    return steps > SLOTS + 1 && steps % SLOTS == 0;
}

static bool has_whole_runs(const smg_kernel *k, const smg_instr *product) {
    int64_t tile = k->axes.items[product->axes[0]].tile;
    return tile % (INT64_C(1) << smg_matrix_in_runs(&k->matrix).run) == 0 && smg_kernel_product_lanes(k, product) == 1;
}

static smg_status turn_right(smg_kernel *k, const smg_instr *product, int col) {
    const smg_layout layout = lower_stream_layout(k, product, false, col);
    smg_tile *t = &k->tiles.items[product->b];
    const smg_tile shared = *t;
    *t = (smg_tile){.name = shared.name,
                    .type = k->matrix.type,
                    .residence = SMG_REGISTER,
                    .axis_count = shared.axis_count,
                    .layout = smg_kernel_add_layout(k, &layout),
                    .fragments = SMG_FRAGMENTS_RIGHT,
                    .slots = SLOTS,
                    .ring = product->axes[0]};
    memcpy(t->axis, shared.axis, sizeof t->axis);
    return t->layout < 0 ? SMG_MEMORY : SMG_OK;
}

static smg_status append(smg_kernel *k, smg_instr in, int ahead) {
    smg_instr *slot = SMG_ARRAY_PUSH(k->arena, &k->code);
    if (slot == NULL) return SMG_MEMORY;
    in.ahead = ahead;
    *slot = in;
    return SMG_OK;
}

static smg_status append_fetch(smg_kernel *k, const smg_instr *fetch, int ahead, bool last) {
    smg_instr in = *fetch;
    in.last = last;
    if (ahead > 0) in.note = "on its way during the products";
    return append(k, in, ahead);
}

static smg_status append_rights(smg_kernel *k, const smg_instr *old, const beside_loop *b, int ahead) {
    for (int n = 0; n < b->products; n++) {
        smg_instr set = lower_blank(SMG_I_SET);
        set.dst = old[b->product[n]].b;
        set.expr = old[b->right[n].fetch].expr;
        set.last = ahead > 0;
        set.note = "right operand, on its way during the products";
        SMG_TRY(append(k, set, ahead));
    }
    return SMG_OK;
}

static smg_status append_front(smg_kernel *k, const smg_instr *old, const beside_loop *b) {
    SMG_TRY(append_fetch(k, &old[b->left.first], 0, false));
    SMG_TRY(append_rights(k, old, b, 0));
    SMG_TRY(append(k, lower_blank(SMG_I_BARRIER), 0));
    SMG_TRY(append(k, old[b->left.put], 0));
    SMG_TRY(append_fetch(k, &old[b->left.first], 1, false));
    return append(k, lower_blank(SMG_I_BARRIER), 0);
}

static smg_status append_body(smg_kernel *k, const smg_instr *old, const beside_loop *b, int left) {
    smg_instr loop = old[b->begin];
    loop.unroll = SLOTS;
    SMG_TRY(append(k, loop, 0));
    SMG_TRY(append(k, old[b->left.put], 1));
    SMG_TRY(append_fetch(k, &old[b->left.fetch], 2, true));
    SMG_TRY(append_rights(k, old, b, 1));
    SMG_TRY(append(k, take_left(k, &old[b->product[0]], left), 0));
    for (int n = 0; n < b->products; n++) {
        smg_instr product = old[b->product[n]];
        product.a = left;
        SMG_TRY(append(k, product, 0));
    }
    for (int n = 0; n < b->sums; n++) SMG_TRY(append(k, old[b->sum[n]], 0));
    return append(k, lower_blank(SMG_I_BARRIER), 0);
}

static bool is_first(const beside_loop *b, int at) {
    bool first = at == b->left.first;
    for (int n = 0; n < b->products; n++) first = first || at == b->right[n].first;
    return first;
}

static smg_status rewrite(smg_kernel *k, const beside_loop *b, int left) {
    int all = k->code.count;
    smg_instr *old = SMG_ARENA_ARRAY(k->arena, smg_instr, (size_t)all);
    if (old == NULL) return SMG_MEMORY;
    memcpy(old, k->code.items, (size_t)all * sizeof *old);
    k->code.count = 0;
    for (int i = 0; i < b->begin; i++)
        if (!is_first(b, i)) SMG_TRY(append(k, old[i], old[i].ahead));
    SMG_TRY(append_front(k, old, b));
    SMG_TRY(append_body(k, old, b, left));
    for (int i = b->end; i < all; i++) SMG_TRY(append(k, old[i], old[i].ahead));
    return SMG_OK;
}

static bool fits(const smg_kernel *k, beside_loop *b, int *out_row, int *out_col) {
    if (!is_plain(k, b) || !comes_round(k, b)) return false;
    const smg_instr *first = &k->code.items[b->product[0]];
    bool good = has_whole_runs(k, first) && lower_lies_along(k, &k->code.items[b->left.fetch], first->axes[0]);
    for (int n = 0; n < b->products && good; n++)
        good = smg_kernel_product_sides(k, &k->code.items[b->product[n]], out_row, &out_col[n]) &&
               lower_lies_along(k, &k->code.items[b->right[n].fetch], first->axes[0]);
    return good;
}

smg_status lower_beside(lower_sized *l) {
    smg_kernel *k = l->k;
    bool any = false, known = k->matrix.left.axis_count > 0 && k->matrix.right.axis_count > 0;
    if (!l->s->streams || l->s->rings < 2) return SMG_OK;
    for (int i = 0; known && i < k->code.count; i++) {
        beside_loop b = {.begin = i};
        int row, col[MOST_PRODUCTS];
        if (k->code.items[i].kind != SMG_I_LOOP || k->code.items[i].unroll > 1) continue;
        b.end = smg_kernel_loop_end(k, i);
        if (!fits(k, &b, &row, col)) continue;
        const smg_instr first = k->code.items[b.product[0]];
        int left = lower_add_taken(k, &first, row);
        if (left < 0) return SMG_MEMORY;
        k->tiles.items[first.a].slots = SLOTS;
        k->tiles.items[first.a].ring = first.axes[0];
        for (int n = 0; n < b.products; n++) SMG_TRY(turn_right(k, &k->code.items[b.product[n]], col[n]));
        SMG_TRY(rewrite(k, &b, left));
        any = true;
    }
    if (!any) l->refused = "no loop of products by matrices has right factors beside the way through shared memory";
    return SMG_OK;
}
