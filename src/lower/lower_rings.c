/* Rings. Where a product reads its factors from shared memory, it waits for them there, and for the barriers in front
 * of it and behind it. Here each slice is on its way for several steps: fetched two steps before it is put, put a step
 * before its matrices are taken, and those are taken, behind the one barrier of a step, before the products of the
 * step at hand. All that is on its way lies in slots, and the loop is written out by as many steps as there are slots,
 * so that registers have numbers. */
#include "lower/lower_internal.h"

enum { FACTORS = 2 };

typedef struct ring_loop {
    int begin, end, barrier, product;
    int put[FACTORS], fetch[FACTORS], first[FACTORS]; /* first: the fetch of the first slice, in front of the loop */
} ring_loop;

static int count(const smg_kernel *k, const ring_loop *r, smg_instr_kind kind) {
    int n = 0;
    for (int i = r->begin + 1; i < r->end; i++) n += k->code.items[i].kind == kind;
    return n;
}

/* The body is two slices that are put, a barrier, their successors that are fetched, and the product of the slices,
 * which go along the loop. */
static bool is_plain(const smg_kernel *k, ring_loop *r) {
    r->product = lower_find(k, r->begin, r->end, SMG_I_MMA, -1);
    r->barrier = lower_find(k, r->begin, r->end, SMG_I_BARRIER, -1);
    if (r->product < 0 || k->code.items[r->product].axes[0] != k->code.items[r->begin].axes[0]) return false;
    if (count(k, r, SMG_I_PUT) != FACTORS || count(k, r, SMG_I_FETCH) != FACTORS || count(k, r, SMG_I_MMA) != 1 ||
        2 * FACTORS + 1 + count(k, r, SMG_I_BARRIER) != r->end - r->begin - 1)
        return false;
    for (int n = 0; n < FACTORS; n++) {
        const smg_instr *product = &k->code.items[r->product];
        r->put[n] = lower_find(k, r->begin, r->barrier, SMG_I_PUT, n == 0 ? product->a : product->b);
        if (r->put[n] < 0) return false;
        int slice = k->code.items[r->put[n]].a;
        r->fetch[n] = lower_find(k, r->barrier, r->product, SMG_I_FETCH, slice);
        r->first[n] = lower_find(k, 0, r->begin, SMG_I_FETCH, slice);
        if (r->fetch[n] < 0 || r->first[n] < 0 || k->code.items[r->fetch[n]].ahead != 1) return false;
    }
    return true;
}

static bool comes_round(const smg_kernel *k, const ring_loop *r, int slots) {
    int64_t steps = smg_kernel_loop_steps(k, &k->code.items[r->begin]);
    return steps > slots + 1 && steps % slots == 0;
}

/* A tile of the factor's matrices; -1 when memory is out. */
static int add_factor(lower_sized *l, const smg_instr *product, bool left) {
    smg_kernel *k = l->k;
    const smg_lane_grid grid = {.matrix_rows = l->s->matrix_rows, .matrix_cols = l->s->matrix_cols};
    const smg_tile shared = k->tiles.items[left ? product->a : product->b];
    int row, col, depth = product->axes[0];
    smg_axis_set held = 0;
    if (!smg_kernel_product_sides(k, product, &row, &col)) return -1;
    for (int i = 0; !left && i < shared.axis_count; i++)
        if (shared.axis[i] != col && shared.axis[i] != depth && k->axes.items[shared.axis[i]].tile > 1)
            held |= SMG_AXIS_BIT(shared.axis[i]);
    smg_fragments use = left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT;
    smg_layout layout = lower_fragments(k, &grid, use, left ? row : depth, left ? depth : col, held);
    smg_tile tile = {.name = smg_arena_numbered(k->arena, left ? "left" : "right", k->tiles.count),
                     .type = k->matrix.type,
                     .residence = SMG_REGISTER,
                     .axis_count = shared.axis_count,
                     .layout = smg_kernel_add_layout(k, &layout),
                     .fragments = use,
                     .slots = l->s->rings,
                     .ring = depth};
    memcpy(tile.axis, shared.axis, sizeof tile.axis);
    smg_tile *slot = SMG_ARRAY_PUSH(k->arena, &k->tiles);
    if (slot == NULL || tile.name == NULL || tile.layout < 0) return -1;
    *slot = tile;
    return k->tiles.count - 1;
}

static smg_status append(smg_kernel *k, smg_instr in, int ahead) {
    smg_instr *slot = SMG_ARRAY_PUSH(k->arena, &k->code);
    if (slot == NULL) return SMG_MEMORY;
    in.ahead = ahead;
    *slot = in;
    return SMG_OK;
}

/* The fetches of the loop, for the step so far on. */
static smg_status append_fetches(smg_kernel *k, const smg_instr *old, const ring_loop *r, int ahead, bool last) {
    for (int n = 0; n < FACTORS; n++) {
        smg_instr fetch = old[last ? r->fetch[n] : r->first[n]];
        fetch.last = last;
        if (ahead > 0) fetch.note = "on its way during the products";
        SMG_TRY(append(k, fetch, ahead));
    }
    return SMG_OK;
}

static smg_status append_moves(smg_kernel *k, const smg_instr *old, const ring_loop *r, int ahead) {
    for (int n = 0; n < FACTORS; n++) SMG_TRY(append(k, old[r->put[n]], ahead));
    return SMG_OK;
}

static smg_status append_takes(smg_kernel *k, const smg_instr *product, const int *factor, int ahead) {
    for (int n = 0; n < FACTORS; n++) {
        smg_instr take = lower_blank(SMG_I_TAKE);
        take.dst = factor[n];
        take.a = n == 0 ? product->a : product->b;
        SMG_TRY(append(k, take, ahead));
    }
    return SMG_OK;
}

/* In front of the loop: the slices that its first step finds on their way. */
static smg_status append_front(smg_kernel *k, const smg_instr *old, const ring_loop *r, const int *factor, int slots) {
    const smg_instr *product = &old[r->product];
    for (int step = 0; step < slots; step++) SMG_TRY(append_fetches(k, old, r, step, false));
    SMG_TRY(append(k, lower_blank(SMG_I_BARRIER), 0));
    SMG_TRY(append_moves(k, old, r, 0));
    SMG_TRY(append_fetches(k, old, r, slots, false));
    SMG_TRY(append(k, lower_blank(SMG_I_BARRIER), 0));
    return append_takes(k, product, factor, 0);
}

static smg_status append_body(smg_kernel *k, const smg_instr *old, const ring_loop *r, const int *factor, int slots) {
    smg_instr loop = old[r->begin], product = old[r->product];
    loop.unroll = slots;
    SMG_TRY(append(k, loop, 0));
    SMG_TRY(append_moves(k, old, r, 1));
    SMG_TRY(append_fetches(k, old, r, slots + 1, true));
    SMG_TRY(append(k, lower_blank(SMG_I_BARRIER), 0));
    SMG_TRY(append_takes(k, &product, factor, 1));
    product.a = factor[0];
    product.b = factor[1];
    return append(k, product, 0);
}

static smg_status ring(lower_sized *l, const ring_loop *r) {
    smg_kernel *k = l->k;
    int all = k->code.count, slots = l->s->rings, factor[FACTORS];
    const smg_instr product = k->code.items[r->product];
    for (int n = 0; n < FACTORS; n++) {
        factor[n] = add_factor(l, &product, n == 0);
        if (factor[n] < 0) return SMG_MEMORY;
        const int on_its_way[] = {k->code.items[r->put[n]].a, n == 0 ? product.a : product.b};
        for (size_t t = 0; t < SMG_COUNT_OF(on_its_way); t++) {
            k->tiles.items[on_its_way[t]].slots = slots;
            k->tiles.items[on_its_way[t]].ring = product.axes[0];
        }
    }
    smg_instr *old = SMG_ARENA_ARRAY(k->arena, smg_instr, (size_t)all);
    if (old == NULL) return SMG_MEMORY;
    memcpy(old, k->code.items, (size_t)all * sizeof *old);
    k->code.count = 0;
    for (int i = 0; i < r->begin; i++)
        if (i != r->first[0] && i != r->first[1]) SMG_TRY(append(k, old[i], old[i].ahead));
    SMG_TRY(append_front(k, old, r, factor, slots));
    SMG_TRY(append_body(k, old, r, factor, slots));
    for (int i = r->end; i < all; i++) SMG_TRY(append(k, old[i], old[i].ahead));
    return SMG_OK;
}

smg_status lower_rings(lower_sized *l) {
    smg_kernel *k = l->k;
    bool any = false;
    if (l->s->rings < 2 || l->s->streams) return SMG_OK;
    bool known = k->matrix.left.axis_count > 0 && k->matrix.right.axis_count > 0;
    for (int i = 0; known && i < k->code.count; i++) {
        ring_loop r = {.begin = i};
        if (k->code.items[i].kind != SMG_I_LOOP || k->code.items[i].unroll > 1) continue;
        r.end = smg_kernel_loop_end(k, i);
        if (!is_plain(k, &r) || !comes_round(k, &r, l->s->rings)) continue;
        SMG_TRY(ring(l, &r));
        any = true;
    }
    if (!any) l->refused = "no loop of products by matrices has rings";
    return SMG_OK;
}
