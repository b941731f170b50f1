/* The shape of things in a tile program: how many elements, registers and bytes a tile takes, and how
 * many workgroups a kernel has. Everybody who lays out tiles (verifier, emitter, cost model) asks here,
 * so that the rule of kernel.h is written down once. Counts saturate at SHAPE_HUGE instead of
 * overflowing: no real tile comes near it and every limit check refuses it. */
#include "kernel/kernel.h"

#define SHAPE_HUGE (INT64_C(1) << 40)
#define WORD_BYTES 4
#define CLAMPED_AXES 64 /* bits of smg_tile.clamped */

static int64_t saturating_mul(int64_t a, int64_t b) {
    return smg_mul_at_most(a, b, SHAPE_HUGE);
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

int64_t smg_tile_elements(const smg_kernel *k, const smg_tile *tile) {
    int64_t elements = 1;
    for (int i = 0; i < tile->axis_count; i++) elements = saturating_mul(elements, k->axes.items[tile->axis[i]].tile);
    return elements;
}

int smg_tile_last_axis(const smg_tile *tile) {
    return tile->axis_count > 0 ? tile->axis[tile->axis_count - 1] : -1;
}

const smg_instr *smg_kernel_setter(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_SET && k->code.items[i].dst == tile) return &k->code.items[i];
    return NULL;
}

bool smg_tile_has(const smg_tile *tile, int axis) {
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] == axis) return true;
    return false;
}

bool smg_tile_clamps(const smg_tile *tile, int axis) {
    return axis < CLAMPED_AXES && (tile->clamped >> axis & 1) != 0;
}

bool smg_kernel_axis_ends(const smg_kernel *k, int axis) {
    int64_t low = 0, high = 0;
    if (k->axes.items[axis].grid) return true;
    smg_size_bounds(k->sizes, k->axes.items[axis].extent, &low, &high);
    return low > 0;
}

int64_t smg_tile_registers(const smg_kernel *k, const smg_tile *tile) {
    if (tile->residence == SMG_STAGING) {
        int64_t registers = smg_walk_registers(k, smg_tile_elements(k, tile));
        int64_t bytes = saturating_mul(registers, smg_type_device_bytes(tile->type));
        return ceil_div(bytes, WORD_BYTES);
    }
    return tile->residence == SMG_REGISTER ? smg_layout_registers(&k->layouts.items[tile->layout]) : 0;
}

bool smg_kernel_comes_out_even(const smg_kernel *k, int a, bool looped) {
    const smg_kaxis *axis = &k->axes.items[a];
    int64_t low = 0, high = 0;
    smg_size quotient;
    if (axis->tile == 1) return true; /* a base is always inside */
    if (axis->grid || looped)
        return smg_size_divide_exact(k->sizes, axis->extent, smg_size_const(k->sizes, axis->tile), &quotient);
    smg_size_bounds(k->sizes, axis->extent, &low, &high);
    return low >= axis->tile;
}

int smg_kernel_loop_end(const smg_kernel *k, int loop) {
    int depth = 0, at = loop;
    for (; at < k->code.count; at++) {
        depth += (k->code.items[at].kind == SMG_I_LOOP) - (k->code.items[at].kind == SMG_I_END);
        if (depth == 0) break;
    }
    return at;
}

int smg_kernel_loop_around(const smg_kernel *k, int at) {
    int depth = 0;
    for (int i = at - 1; i >= 0; i--) {
        if (k->code.items[i].kind == SMG_I_LOOP && depth-- == 0) return i;
        depth += k->code.items[i].kind == SMG_I_END;
    }
    return -1;
}

/* ---- leaves ----------------------------------------------------------------------------------------- */

bool smg_kleaf_equal(const smg_kleaf *a, const smg_kleaf *b) {
    bool same = a->what == b->what && a->kind == b->kind && a->index == b->index && a->size == b->size;
    if (!same || a->pick_count != b->pick_count) return false;
    for (int i = 0; i < a->pick_count; i++) {
        const smg_layout_pick *p = &a->pick[i], *q = smg_kleaf_pick(b, p->axis);
        if (q == NULL || p->from != q->from || (p->from < 0 && p->at != q->at)) return false;
    }
    return true;
}

const smg_layout_pick *smg_kleaf_pick(const smg_kleaf *leaf, int axis) {
    for (int i = 0; i < leaf->pick_count; i++)
        if (leaf->pick[i].axis == axis) return &leaf->pick[i];
    return NULL;
}

typedef struct deep_walk {
    const smg_kernel *k;
    void (*visit)(void *user, int leaf);
    void *user;
} deep_walk;

static void visit_deep(void *user, int leaf) {
    deep_walk *w = user;
    const smg_kleaf *f = &w->k->leaves.items[leaf];
    w->visit(w->user, leaf);
    if (f->what != SMG_KLEAF_LOAD) return;
    smg_expr index = w->k->accesses.items[f->index].index;
    if (index != SMG_EXPR_NONE) smg_expr_leaves(w->k->exprs, index, visit_deep, w);
}

void smg_kernel_leaves(const smg_kernel *k, smg_expr expr, void (*visit)(void *user, int leaf), void *user) {
    deep_walk w = {.k = k, .visit = visit, .user = user};
    smg_expr_leaves(k->exprs, expr, visit_deep, &w);
}

int smg_kernel_plain_load(const smg_kernel *k, smg_expr expr) {
    if (expr == SMG_EXPR_NONE) return -1;
    const smg_expr_node *node = smg_expr_get(k->exprs, expr);
    if (node->prim != SMG_PRIM_LEAF || k->leaves.items[node->leaf].what != SMG_KLEAF_LOAD) return -1;
    return k->leaves.items[node->leaf].index;
}

/* ---- layouts ---------------------------------------------------------------------------------------- */

int smg_kernel_add_layout(smg_kernel *k, const smg_layout *layout) {
    for (int i = 0; i < k->layouts.count; i++)
        if (smg_layout_equal(&k->layouts.items[i], layout)) return i;
    smg_layout *slot = SMG_ARRAY_PUSH(k->arena, &k->layouts);
    if (slot == NULL) return -1;
    *slot = *layout;
    return k->layouts.count - 1;
}

int smg_instr_ahead_axis(const smg_kernel *k, const smg_instr *in) {
    if (in->kind == SMG_I_FETCH) return in->a;
    if (in->kind != SMG_I_SET && in->kind != SMG_I_STAGE && in->kind != SMG_I_PUT && in->kind != SMG_I_TAKE) return -1;
    const smg_tile *dst = &k->tiles.items[in->dst];
    return smg_tile_slots(dst) > 1 ? dst->ring : -1;
}

bool smg_instr_reads_a(const smg_instr *in) {
    return in->kind == SMG_I_MMA || in->kind == SMG_I_TAKE || in->kind == SMG_I_SPILL || in->kind == SMG_I_PUT ||
           in->kind == SMG_I_LEAVE || in->kind == SMG_I_GATHER;
}

bool smg_kernel_laid_out(const smg_kernel *k) {
    return k->layouts.count > 0;
}

const smg_layout *smg_kernel_layout(const smg_kernel *k, const smg_instr *instr) {
    int number = instr->layout;
    if (instr->kind == SMG_I_SET || instr->kind == SMG_I_TAKE) number = k->tiles.items[instr->dst].layout;
    if (instr->kind == SMG_I_SPILL) number = k->tiles.items[instr->a].layout;
    return number < 0 ? NULL : &k->layouts.items[number];
}

static bool listed(const int *axes, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

int smg_kernel_outer_axes(const smg_kernel *k, const smg_instr *instr, int out_axes[SMG_LAYOUT_AXES]) {
    const smg_layout *layout = smg_kernel_layout(k, instr);
    int count = 0;
    for (int i = 0; layout != NULL && i < layout->axis_count; i++) {
        int axis = layout->axes[i].axis;
        bool outer = i == 0 && layout->axis_count > 1;
        if (instr->kind == SMG_I_REDUCE) outer = !listed(instr->axes, instr->axis_count, axis);
        if (instr->kind == SMG_I_MMA) {
            const smg_tile *a = &k->tiles.items[instr->a];
            outer = listed(a->axis, a->axis_count, axis) && !listed(instr->axes, instr->axis_count, axis);
        }
        if (outer) out_axes[count++] = axis;
    }
    return count;
}

const char *smg_kernel_partial_wrong(const smg_kernel *k, const smg_instr *product, int terms) {
    const smg_tile *a = &k->tiles.items[product->a], *b = &k->tiles.items[product->b];
    bool halves = a->type == SMG_TYPE_F16 && b->type == SMG_TYPE_F16;
    int64_t depth = smg_kernel_product_depth(k, product);
    if (!halves || a->residence != SMG_SHARED || b->residence != SMG_SHARED)
        return "its factors are no shared f16 tiles";
    if (smg_kernel_product_lanes(k, product) > 1) return "lanes share out its k";
    if (smg_kernel_run_axis(k, product) < 0) return "no lane owns runs of its columns";
    if (terms < 1 || terms > SMG_MOST_TERMS || depth % terms != 0) return "they are no part of its k, or too many";
    return NULL;
}

/* ---- memory ----------------------------------------------------------------------------------------- */

smg_kind smg_tile_kind(const smg_tile *tile) {
    return smg_type_kind(tile->type);
}

smg_type smg_kind_type(smg_kind kind) {
    return kind == SMG_KIND_FLOAT ? SMG_TYPE_F32 : kind == SMG_KIND_INT ? SMG_TYPE_I32 : SMG_TYPE_BOOL;
}

bool smg_tile_in_shared(const smg_tile *tile) {
    return tile->residence == SMG_SHARED || tile->residence == SMG_EXCHANGE;
}

bool smg_kernel_steps_known(const smg_kernel *k, int axis, int n) {
    bool known = false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_LOOP || in->axes[0] != axis) continue;
        if (in->unroll < 2 || in->unroll % n != 0 || in->range != NULL) return false;
        known = true;
    }
    return known;
}

int smg_tile_slots(const smg_tile *tile) {
    return tile->slots > 1 ? tile->slots : 1;
}

bool smg_tiles_slot_alike(const smg_kernel *k, const smg_tile *a, const smg_tile *b) {
    int slots = smg_tile_slots(a);
    if (smg_tile_slots(b) != slots || a->in_runs != b->in_runs) return false;
    return slots == 1 || (smg_kernel_steps_known(k, a->ring, slots) && smg_kernel_steps_known(k, b->ring, slots));
}

int smg_tile_home(const smg_kernel *k, int tile) {
    return tile >= 0 && k->tiles.items[tile].sliced ? k->tiles.items[tile].of : tile;
}

/* Row-major in the order of the tile's axes: what its axes from number `first` on span. */
static int64_t span_from(const smg_kernel *k, const smg_tile *tile, int first) {
    int64_t span = 1;
    for (int i = tile->axis_count - 1; i >= first; i--)
        span = saturating_mul(span, k->axes.items[tile->axis[i]].tile + (i == tile->axis_count - 1 ? tile->pad : 0));
    return span;
}

int64_t smg_tile_stride(const smg_kernel *k, const smg_tile *tile, int axis) {
    if (tile->sliced && smg_tile_has(tile, axis))
        return smg_tile_stride(k, &k->tiles.items[tile->of], axis == tile->ring ? tile->along : axis);
    for (int i = 0; i < tile->axis_count; i++)
        if (tile->axis[i] == axis) return span_from(k, tile, i + 1);
    return 0;
}

int64_t smg_tile_slice_stride(const smg_kernel *k, const smg_tile *tile) {
    return tile->sliced ? smg_tile_stride(k, tile, tile->ring) : 0;
}

int64_t smg_tile_run(const smg_kernel *k, const smg_tile *tile) {
    if (tile->sliced) return smg_tile_run(k, &k->tiles.items[tile->of]);
    return span_from(k, tile, tile->axis_count - 1);
}

int64_t smg_tile_slot_elements(const smg_kernel *k, const smg_tile *tile) {
    return span_from(k, tile, 0);
}

int64_t smg_tile_shared_bytes(const smg_kernel *k, const smg_tile *tile) {
    if (tile->residence == SMG_EXCHANGE) return (int64_t)WORD_BYTES * tile->words;
    if (tile->residence != SMG_SHARED || tile->sliced) return 0;
    if (tile->axis_count == 0) return (int64_t)WORD_BYTES * smg_tile_slots(tile);
    int64_t elements = smg_tile_slot_elements(k, tile);
    return saturating_mul(saturating_mul(elements, smg_tile_slots(tile)), smg_type_device_bytes(tile->type));
}

int64_t smg_kernel_memory_bytes(const smg_kernel *k, int t) {
    if (!smg_tile_in_shared(&k->tiles.items[t])) return 0;
    int64_t most = smg_tile_shared_bytes(k, &k->tiles.items[t]);
    int memory = k->tiles.items[t].memory;
    for (int i = 0; memory > 0 && i < k->tiles.count; i++) {
        if (k->tiles.items[i].memory != memory) continue;
        if (i < t) return 0;
        int64_t bytes = smg_tile_shared_bytes(k, &k->tiles.items[i]);
        if (bytes > most) most = bytes;
    }
    return most;
}

bool smg_tile_runs_along(const smg_kernel *k, const smg_tile *tile, int axis) {
    if (tile->axis_count == 0 || tile->axis[tile->axis_count - 1] != axis) return false;
    return k->axes.items[axis].tile % 4 == 0 && smg_tile_run(k, tile) % 4 == 0;
}

int64_t smg_kernel_shared_bytes(const smg_kernel *k) {
    int64_t bytes = 0;
    for (int i = 0; i < k->tiles.count; i++) bytes += smg_kernel_memory_bytes(k, i);
    return bytes;
}

bool smg_kernel_grid(const smg_kernel *k, const int64_t *symbols, int64_t *out_workgroups) {
    int64_t workgroups = 1;
    for (int i = 0; i < k->grid.count; i++) {
        const smg_kaxis *axis = &k->axes.items[k->grid.items[i]];
        int64_t extent = 0;
        if (!smg_size_eval(k->sizes, axis->extent, symbols, &extent) || extent < 0) return false;
        if (!smg_mul_i64(workgroups, ceil_div(extent, axis->tile), &workgroups)) return false;
    }
    *out_workgroups = workgroups;
    return true;
}

/* Of the last two axes, by bands; returns what is left of the group's number. */
static int64_t place_in_band(const smg_kernel *k, const int64_t *blocks, int64_t group, int64_t *out_block) {
    int last = k->grid.count - 1;
    int64_t across = blocks[last - 1], both = blocks[last] * across, at = group % both;
    int64_t first = at / (k->band * across) * k->band, left = blocks[last] - first;
    int64_t high = left < k->band ? left : k->band;
    at -= first * across;
    out_block[last] = first + at % high;
    out_block[last - 1] = at / high;
    return group / both;
}

void smg_kernel_place_group(const smg_kernel *k, const int64_t *blocks, int64_t group, int64_t *out_block) {
    int places = k->grid.count;
    if (k->band > 0) {
        group = place_in_band(k, blocks, group, out_block);
        places -= 2;
    }
    for (int g = places - 1; g >= 0; g--) {
        out_block[g] = group % blocks[g];
        group /= blocks[g];
    }
    for (int g = 0; g < k->grid.count; g++)
        if (k->axes.items[k->grid.items[g]].back) out_block[g] = blocks[g] - 1 - out_block[g];
}

typedef struct data_seek {
    const smg_kernel *k;
    bool found;
} data_seek;

static void seek_data(void *user, int leaf) {
    data_seek *s = user;
    smg_kleaf_kind what = s->k->leaves.items[leaf].what;
    s->found = s->found || what == SMG_KLEAF_LOAD || what == SMG_KLEAF_TILE;
}

bool smg_access_reports(const smg_kernel *k, const smg_access *access) {
    int64_t limit;
    data_seek data = {.k = k};
    if (access->index == SMG_EXPR_NONE) return false;
    if (!smg_size_is_const(k->sizes, access->index_limit, &limit) || limit < SMG_SIZE_UNBOUNDED) return true;
    smg_expr_leaves(k->exprs, access->index, seek_data, &data);
    return data.found;
}

typedef struct axis_seek {
    const smg_kernel *k;
    int axis;
    bool found;
} axis_seek;

static void seek_axis(void *user, int leaf) {
    axis_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_SIZE) return;
    if (f->what == SMG_KLEAF_TILE) {
        s->found = s->found || smg_tile_has(&s->k->tiles.items[f->index], s->axis);
        return;
    }
    const smg_access *access = &s->k->accesses.items[f->index];
    s->found = s->found || listed(access->axis, access->axis_count, s->axis);
    s->found = s->found || smg_access_index_moves(s->k, access, s->axis);
}

bool smg_kernel_expr_moves(const smg_kernel *k, smg_expr expr, int axis) {
    axis_seek s = {.k = k, .axis = axis};
    if (expr != SMG_EXPR_NONE) smg_expr_leaves(k->exprs, expr, seek_axis, &s);
    return s.found;
}

bool smg_access_index_moves(const smg_kernel *k, const smg_access *access, int axis) {
    return smg_kernel_expr_moves(k, access->index, axis);
}

bool smg_kernel_reports(const smg_kernel *k) {
    for (int a = 0; a < k->accesses.count; a++)
        if (smg_access_reports(k, &k->accesses.items[a])) return true;
    return false;
}
