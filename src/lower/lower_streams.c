/* Streams. Factors that lie in memory along the contracted axis are read by the lanes that multiply them, 16 bytes at a
 * time, without shared memory and its barriers: what is contracted comes in the order in which a lane has runs of it in
 * both factors. Nothing waits for a whole slice then, and each subgroup has loads of its own on their way. */
#include "lower/lower_internal.h"

/* The one instruction that stages the tile; -1. */
static int stage_of(const smg_kernel *k, int tile) {
    int found = -1;
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].dst != tile) continue;
        if (k->code.items[i].kind != SMG_I_STAGE || found >= 0) return -1;
        found = i;
    }
    return found;
}

bool lower_lies_along(const smg_kernel *k, const smg_instr *stage, int axis) {
    int access = smg_kernel_plain_load(k, stage->expr);
    smg_wide wide = {.width = SMG_WIDEST, .axis = axis};
    if (access < 0) return false;
    const smg_kbuffer *buffer = &k->buffers.items[k->accesses.items[access].buffer];
    return !buffer->written && buffer->type == k->matrix.type && k->accesses.items[access].index == SMG_EXPR_NONE &&
           smg_access_aligned(k, access, wide) == SMG_ALIGNED_ALWAYS;
}

/* The bits of one level of the matrix. What is contracted has the places of the order. */
static void add_bits(smg_layout *l, const smg_layout *of, smg_layout_level level, const int *sides, int contracted,
                     const smg_layout_order *order) {
    for (int i = 0; i < of->bits[level]; i++) {
        smg_basis b = of->basis[level][i];
        if (b.axis >= 0 && b.axis == contracted) b.bit = order->bit[b.bit];
        if (b.axis >= 0) b.axis = (int8_t)sides[b.axis];
        smg_layout_set(l, level, i, b);
    }
}

/* Numbers of matrices between the bits of a matrix. */
static void fill_run(smg_layout *l, int axis, const smg_layout_order *order, int matrix_bits) {
    for (int bit = 0; bit < order->run; bit++) {
        bool taken = false;
        for (int i = 0; i < matrix_bits; i++) taken = taken || order->bit[i] == bit;
        if (!taken)
            smg_layout_set(l, SMG_LAYOUT_REGISTER, l->bits[SMG_LAYOUT_REGISTER],
                           (smg_basis){(int8_t)axis, (int8_t)bit});
    }
}

static void rest_in_registers(smg_layout *l, const smg_kernel *k, int axis) {
    int64_t tile = k->axes.items[axis].tile, span = smg_layout_span(l, axis);
    smg_layout_repeat(l, axis, (tile + span - 1) / span);
}

smg_layout lower_stream_layout(const smg_kernel *k, const smg_instr *product, bool left, int own) {
    const smg_layout *of = left ? &k->matrix.left : &k->matrix.right, *whole = &k->layouts.items[product->layout];
    const smg_layout_order order = smg_matrix_in_runs(&k->matrix);
    int depth = product->axes[0], contracted = left ? 1 : 0, sides[2] = {left ? own : depth, left ? depth : own};
    smg_layout l = smg_layout_one();
    for (int n = 0; n < 2; n++) smg_layout_add(&l, SMG_LAYOUT_REGISTER, sides[n], 1);
    smg_layout_replicate(&l, SMG_LAYOUT_LANE, k->subgroup);
    smg_layout_replicate(&l, SMG_LAYOUT_SUBGROUP, k->lanes / k->subgroup);
    add_bits(&l, of, SMG_LAYOUT_REGISTER, sides, contracted, &order);
    add_bits(&l, of, SMG_LAYOUT_LANE, sides, contracted, &order);
    fill_run(&l, depth, &order, smg_log2(k->matrix.depth));
    for (int i = 0; i < whole->bits[SMG_LAYOUT_SUBGROUP]; i++) {
        smg_basis b = whole->basis[SMG_LAYOUT_SUBGROUP][i];
        if (b.axis == own || b.axis == depth) smg_layout_set(&l, SMG_LAYOUT_SUBGROUP, i, b);
    }
    rest_in_registers(&l, k, own);
    rest_in_registers(&l, k, depth);
    return l;
}

/* What was staged is loaded into the registers of the lanes that multiply it. */
static void hold_factor(smg_kernel *k, int tile, int stage, smg_fragments use, int layout) {
    smg_tile *t = &k->tiles.items[tile];
    const smg_tile staged = *t;
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = tile;
    set.expr = k->code.items[stage].expr;
    set.note = k->code.items[stage].note;
    k->code.items[stage] = set;
    *t = (smg_tile){.name = staged.name,
                    .type = k->matrix.type,
                    .residence = SMG_REGISTER,
                    .axis_count = staged.axis_count,
                    .layout = layout,
                    .fragments = use};
    memcpy(t->axis, staged.axis, sizeof t->axis);
}

static smg_status stream_factor(smg_kernel *k, const smg_instr *product, bool left, int own, bool *out_done) {
    int tile = left ? product->a : product->b, stage = stage_of(k, tile);
    const smg_tile *t = &k->tiles.items[tile];
    const smg_layout layout = lower_stream_layout(k, product, left, own);
    smg_fragments use = left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT;
    int number = smg_kernel_add_layout(k, &layout);
    if (number < 0) return SMG_MEMORY;
    *out_done = t->fragments == use && t->layout == number; /* by an earlier product */
    if (*out_done || t->residence != SMG_SHARED || stage < 0) return SMG_OK;
    if (!lower_lies_along(k, &k->code.items[stage], product->axes[0])) return SMG_OK;
    hold_factor(k, tile, stage, use, number);
    *out_done = true;
    return SMG_OK;
}

/* ---- left factors in shared memory ------------------------------------------------------------------ */

/* Rows of the shared tile so far apart that the lanes' runs are in different banks. */
static void spread_rows(smg_kernel *k, int tile, const smg_layout *taken) {
    smg_tile *home = &k->tiles.items[smg_tile_home(k, tile)];
    int64_t best = INT64_MAX;
    int pad = 0;
    for (home->pad = 0; home->pad <= 4 * SMG_WIDEST; home->pad += SMG_WIDEST) {
        int64_t strides[SMG_LAYOUT_AXES];
        for (int i = 0; i < taken->axis_count; i++)
            strides[i] = smg_tile_stride(k, &k->tiles.items[tile], taken->axes[i].axis);
        smg_layout_access access = {.strides = strides, .run = SMG_WIDEST, .element_bytes = 2};
        int64_t turns = smg_layout_bank_turns(taken, &access);
        if (turns >= best) continue;
        best = turns;
        pad = home->pad;
    }
    home->pad = pad;
}

int lower_add_taken(smg_kernel *k, const smg_instr *product, int row) {
    const smg_tile shared = k->tiles.items[product->a];
    const smg_layout layout = lower_stream_layout(k, product, true, row);
    int number = smg_kernel_add_layout(k, &layout);
    smg_tile *slot = SMG_ARRAY_PUSH(k->arena, &k->tiles);
    if (slot == NULL || number < 0) return -1;
    *slot = (smg_tile){.name = smg_arena_numbered(k->arena, "left", k->tiles.count - 1),
                       .type = k->matrix.type,
                       .residence = SMG_REGISTER,
                       .axis_count = shared.axis_count,
                       .layout = number,
                       .fragments = SMG_FRAGMENTS_LEFT};
    memcpy(slot->axis, shared.axis, sizeof slot->axis);
    spread_rows(k, product->a, &layout);
    return slot->name != NULL ? k->tiles.count - 1 : -1;
}

smg_instr lower_take_runs(const smg_instr *product, int left) {
    smg_instr take = lower_blank(SMG_I_TAKE);
    take.dst = left;
    take.a = product->a;
    take.wide[0] = (smg_wide){.width = SMG_WIDEST, .axis = product->axes[0]};
    return take;
}

/* The right factor comes by runs of memory; the left one is taken from shared memory in their order. */
static smg_status take_left(smg_kernel *k, int at, int row) {
    const smg_instr product = k->code.items[at];
    int left = lower_add_taken(k, &product, row);
    if (left < 0) return SMG_MEMORY;
    k->code.items[at].a = left;
    return lower_insert(k, at, lower_take_runs(&product, left));
}

/* The right factor comes by whole matrices; the left one is read as it lies in shared memory. */
static smg_status load_matrices(lower_sized *l, const smg_instr *product, int col) {
    smg_kernel *k = l->k;
    int row, stage = stage_of(k, product->b), depth = product->axes[0];
    const smg_lane_grid grid = {.matrix_rows = l->s->matrix_rows, .matrix_cols = l->s->matrix_cols};
    smg_layout layout = lower_fragments(k, &grid, SMG_FRAGMENTS_RIGHT, depth, col, 0);
    int number = smg_kernel_add_layout(k, &layout);
    smg_wide wide;
    if (number < 0) return SMG_MEMORY;
    hold_factor(k, product->b, stage, SMG_FRAGMENTS_RIGHT, number);
    if (!smg_kernel_whole_matrices(k, &k->code.items[stage], &wide, &row))
        l->refused = "a factor does not lie in memory as whole matrices";
    return SMG_OK;
}

/* Where the left factor is a slice of what lies in shared memory, the right one is read by lanes that multiply it. */
static smg_status stream_right(lower_sized *l, int at) {
    smg_kernel *k = l->k;
    const smg_instr product = k->code.items[at];
    int row, col, run = 1 << smg_matrix_in_runs(&k->matrix).run;
    if (!smg_kernel_product_sides(k, &product, &row, &col) || stage_of(k, product.b) < 0) {
        l->refused = "a factor does not lie in memory as lanes have it";
        return SMG_OK;
    }
    bool runs = k->axes.items[product.axes[0]].tile % run == 0 && smg_kernel_product_lanes(k, &product) == 1;
    if (runs) SMG_TRY(stream_factor(k, &product, false, col, &runs));
    return runs ? take_left(k, at, row) : load_matrices(l, &product, col);
}

/* Both, or none. */
static smg_status stream(lower_sized *l, int at) {
    smg_kernel *k = l->k;
    const smg_instr *product = &k->code.items[at];
    if (k->tiles.items[product->a].sliced) return stream_right(l, at);
    int row, col, run = 1 << smg_matrix_in_runs(&k->matrix).run;
    bool done = smg_kernel_product_sides(k, product, &row, &col) &&
                k->axes.items[product->axes[0]].tile % (run * smg_kernel_product_lanes(k, product)) == 0;
    if (done) SMG_TRY(stream_factor(k, product, true, row, &done));
    if (done) SMG_TRY(stream_factor(k, product, false, col, &done));
    if (!done) l->refused = "a factor does not lie in memory as lanes have it";
    return SMG_OK;
}

smg_status lower_streams(lower_sized *l) {
    smg_kernel *k = l->k;
    if (!l->s->streams || l->s->rings > 1) return SMG_OK;
    if (k->matrix.left.axis_count == 0 || k->matrix.right.axis_count == 0) {
        l->refused = "nobody knows where lanes have the factors of matrices";
        return SMG_OK;
    }
    for (int i = 0; i < k->code.count && l->refused == NULL; i++)
        if (k->code.items[i].kind == SMG_I_MMA) SMG_TRY(stream(l, i));
    return SMG_OK;
}
