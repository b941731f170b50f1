/* Left factors in registers. What a kernel computes for the next product goes through shared memory, because lanes want
 * other elements of it than they have. A matrix is read by the subgroup as a whole: where lanes hold the value as a
 * left factor of matrices lies, it is one, and neither memory nor a barrier is needed. What is staged once, for all
 * slices of a loop, is loaded once as such matrices: shared memory that nothing else writes again keeps other
 * workgroups from the core. */
#include "lower/lower_internal.h"

/* Is the shared tile nothing but the left factor of products by matrices, which lanes hold as the layout says? The axis
 * that they contract. */
static bool is_left_alone(const smg_kernel *k, int tile, const smg_layout *held, int *out_depth) {
    bool any = false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA || (in->a != tile && in->b != tile)) continue;
        bool left = in->a == tile && k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_SUMS;
        if (!left || !smg_matrix_held(k, in, SMG_FRAGMENTS_LEFT, held) || (any && *out_depth != in->axes[0]))
            return false;
        *out_depth = in->axes[0];
        any = true;
    }
    return any;
}

typedef struct reader {
    const smg_kernel *k;
    int tile;
    bool found;
} reader;

static void seek_reader(void *user, int leaf) {
    reader *r = user;
    const smg_kleaf *f = &r->k->leaves.items[leaf];
    r->found = r->found || (f->what == SMG_KLEAF_TILE && f->index == r->tile);
}

int lower_set_for(const smg_kernel *k, int spill) {
    int tile = k->code.items[spill].a, set = -1;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        reader r = {.k = k, .tile = tile};
        if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(k, in->expr, seek_reader, &r);
        if (r.found || (i != spill && smg_instr_reads_a(in) && in->a == tile)) return -1;
        if (in->dst != tile) continue;
        if (in->kind != SMG_I_SET || set >= 0) return -1;
        set = i;
    }
    return set;
}

static bool has_loop(const smg_kernel *k, int axis) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_LOOP && k->code.items[i].axes[0] == axis) return true;
    return false;
}

/* Is the element at hand inside the axis? SMG_EXPR_NONE when memory is out. */
static smg_expr inside(smg_kernel *k, int axis) {
    smg_access *form = SMG_ARRAY_PUSH(k->arena, &k->accesses);
    if (form == NULL) return SMG_EXPR_NONE;
    *form = (smg_access){.buffer = -1, .offset = SMG_SIZE_ZERO, .axis_count = 1, .index = SMG_EXPR_NONE};
    form->axis[0] = axis;
    form->stride[0] = smg_size_const(k->sizes, 1);
    int number = k->accesses.count - 1;
    smg_expr at = lower_leaf_of(k, (smg_kleaf){.what = SMG_KLEAF_IOTA, .kind = SMG_KIND_INT, .index = number});
    smg_expr end = lower_size(k, k->axes.items[axis].extent);
    if (at == SMG_EXPR_NONE || end == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    return smg_expr_make(k->exprs, SMG_PRIM_LT, at, end, SMG_EXPR_NONE);
}

smg_expr lower_until_end(smg_kernel *k, int axis, smg_expr value) {
    if (smg_kernel_comes_out_even(k, axis, has_loop(k, axis))) return value;
    smg_expr valid = inside(k, axis), zero = smg_expr_const(k->exprs, SMG_KIND_FLOAT, 0);
    if (valid == SMG_EXPR_NONE) return valid;
    return smg_expr_make(k->exprs, SMG_PRIM_SELECT, valid, value, zero);
}

static smg_status forward(smg_kernel *k, int spill, bool *out_done) {
    int tile = k->code.items[spill].a, shared = k->code.items[spill].dst, depth, set = lower_set_for(k, spill);
    smg_tile *t = &k->tiles.items[tile];
    if (set < 0 || t->fragments != SMG_FRAGMENTS_NONE) return SMG_OK;
    if (!is_left_alone(k, shared, &k->layouts.items[t->layout], &depth)) return SMG_OK;
    k->code.items[set].expr = lower_until_end(k, depth, k->code.items[set].expr);
    if (k->code.items[set].expr == SMG_EXPR_NONE) return SMG_MEMORY;
    t->fragments = SMG_FRAGMENTS_LEFT;
    t->type = k->matrix.type;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA && k->code.items[i].a == shared) k->code.items[i].a = tile;
    smg_instr *at = &k->code.items[spill];
    memmove(at, at + 1, (size_t)(k->code.count - 1 - spill) * sizeof *at);
    k->code.count--;
    *out_done = true;
    return SMG_OK;
}

/* Filled by this instruction alone. */
static bool fills_alone(const smg_kernel *k, int tile, int fill) {
    for (int i = 0; i < k->code.count; i++)
        if (i != fill && k->code.items[i].dst == tile) return false;
    return true;
}

/* The layout of a left factor with these axes where a subgroup has all of its columns; false where it has not. */
static bool left_layout(lower_sized *l, int row, int depth, int *out_layout) {
    const smg_lane_grid grid = {.matrix_rows = l->s->matrix_rows, .matrix_cols = l->s->matrix_cols};
    smg_layout layout = lower_fragments(l->k, &grid, SMG_FRAGMENTS_SUMS, row, depth, 0);
    if (!smg_matrix_lays(&l->k->matrix, SMG_FRAGMENTS_LEFT, &layout, row, depth)) return false;
    *out_layout = smg_kernel_add_layout(l->k, &layout);
    return *out_layout >= 0;
}

typedef struct load_seek {
    const smg_kernel *k;
    const smg_instr *set;
    smg_expr load; /* that lies in memory as the matrices do; SMG_EXPR_NONE */
} load_seek;

static void seek_whole(void *user, int leaf) {
    load_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || s->load != SMG_EXPR_NONE) return;
    smg_instr alone = *s->set;
    smg_wide wide;
    int row;
    alone.expr = smg_expr_leaf(s->k->exprs, f->kind, leaf);
    if (smg_kernel_whole_matrices(s->k, &alone, &wide, &row)) s->load = alone.expr;
}

/* What is computed from elements that lie in memory as the matrices do begins with these: they are loaded whole, and
 * the rest is done in their place. Loaded one by one they would be as many loads and addresses as a lane has elements
 * (lower_wide.c). On cores that hide loads: what only whole matrices read, validation takes for written there. */
static smg_status load_first(smg_kernel *k, int at) {
    load_seek s = {.k = k, .set = &k->code.items[at], .load = SMG_EXPR_NONE};
    if (smg_kernel_plain_load(k, s.set->expr) >= 0) return SMG_OK;
    smg_expr_leaves(k->exprs, s.set->expr, seek_whole, &s);
    if (s.load == SMG_EXPR_NONE) return SMG_OK;
    smg_instr load = k->code.items[at], *rest = &k->code.items[at];
    smg_expr held = lower_tile_element(k, load.dst);
    load.expr = s.load;
    rest->expr = held == SMG_EXPR_NONE ? held : lower_replace(k->exprs, rest->expr, s.load, held);
    return rest->expr == SMG_EXPR_NONE ? SMG_MEMORY : lower_insert(k, at, load);
}

/* What is staged once in front of all loops becomes a tile of matrices. */
static smg_status load_once(lower_sized *l, int stage, bool *out_done) {
    smg_kernel *k = l->k;
    int shared = k->code.items[stage].dst, row = l->s->row_axis, depth = -1, layout;
    smg_tile t = k->tiles.items[shared];
    for (int i = 0; i < t.axis_count; i++)
        if (t.axis[i] != row && k->axes.items[t.axis[i]].tile > 1) depth = t.axis[i];
    if (depth < 0 || has_loop(k, depth) || l->s->matrix_cols > 1 || lower_reads_tiles(k, k->code.items[stage].expr) ||
        !fills_alone(k, shared, stage) || !left_layout(l, row, depth, &layout))
        return SMG_OK;
    int found;
    if (!is_left_alone(k, shared, &k->layouts.items[layout], &found)) return SMG_OK;
    smg_expr value = lower_until_end(k, depth, k->code.items[stage].expr);
    if (value == SMG_EXPR_NONE) return SMG_MEMORY;
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = shared;
    set.expr = value;
    set.note = k->code.items[stage].note;
    k->code.items[stage] = set;
    k->tiles.items[shared] = (smg_tile){.name = t.name,
                                        .type = k->matrix.type,
                                        .residence = SMG_REGISTER,
                                        .axis_count = t.axis_count,
                                        .layout = layout,
                                        .fragments = SMG_FRAGMENTS_LEFT};
    memcpy(k->tiles.items[shared].axis, t.axis, sizeof t.axis);
    *out_done = true;
    return smg_target_hides_loads(l->target) ? load_first(k, stage) : SMG_OK;
}

smg_status lower_forward(lower_sized *l) {
    smg_kernel *k = l->k;
    bool any = false;
    if (k->matrix.rows == 0 || k->matrix.left.axis_count == 0) return SMG_OK;
    for (int i = 0; i < k->code.count && k->code.items[i].kind != SMG_I_LOOP; i++) {
        bool done = false;
        if (k->code.items[i].kind == SMG_I_STAGE && l->s->temporal >= 0) SMG_TRY(load_once(l, i, &done));
    }
    for (int i = 0; i < k->code.count; i++) {
        bool done = false;
        if (k->code.items[i].kind != SMG_I_SPILL) continue;
        SMG_TRY(forward(k, i, &done));
        i -= done;
        any = any || done;
    }
    return any ? lower_drop_tiles(k) : SMG_OK;
}
