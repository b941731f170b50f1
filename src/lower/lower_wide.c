/* Which neighbours go at once: a quarter of the instructions where four elements are one access of memory. Where lanes
 * own runs of what they load or store, where all invocations walk along what lies side by side, and where a lane
 * multiplies runs of a factor. Where lanes are the elements of one vector register (a CPU), factors that lie in memory,
 * and other inputs of which all lanes read the same element, are read by addresses that the lanes share: drivers check
 * loads from bindings lane by lane, or with a branch for each. */
#include "lower/lower_internal.h"

#define WORD_BYTES 4
#define ADDRESS_BYTES 8

static smg_wide along_by(int axis, int width) {
    return (smg_wide){.width = width, .axis = axis};
}

static smg_wide along(int axis) {
    return along_by(axis, SMG_WIDE);
}

/* Halves of words are no memory of their own on every device. */
static bool has_elements(const smg_kernel *k, const smg_target *target, int access) {
    smg_type type = k->buffers.items[k->accesses.items[access].buffer].type;
    return target->storage16 || smg_type_device_bytes(type) >= WORD_BYTES;
}

static bool never_written(const smg_kernel *k, int access) {
    return !k->buffers.items[k->accesses.items[access].buffer].written;
}

static bool aligned_by(const smg_kernel *k, const smg_target *target, int access, smg_wide wide, smg_aligned least) {
    return wide.axis >= 0 && has_elements(k, target, access) && smg_access_aligned(k, access, wide) >= least;
}

static bool aligned(const smg_kernel *k, const smg_target *target, int access, int axis, smg_aligned least) {
    return aligned_by(k, target, access, along(axis), least);
}

typedef struct group_seek {
    const smg_kernel *k;
    const smg_target *target;
    smg_wide wide;
    bool found;
} group_seek;

static void seek_group(void *user, int leaf) {
    group_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || !has_elements(s->k, s->target, f->index)) return;
    s->found = s->found || smg_kernel_loads_groups(s->k, leaf, s->wide);
}

/* Does some load of the expression gain by groups? */
static bool gains(const smg_kernel *k, const smg_target *target, smg_expr expr, smg_wide wide) {
    group_seek s = {.k = k, .target = target, .wide = wide};
    if (wide.axis >= 0) smg_expr_leaves(k->exprs, expr, seek_group, &s);
    return s.found;
}

/* Of a lane's own elements: what it loads, stores, or leaves in shared memory. Whole matrices go there by words, where
 * a lane that has pairs of columns would write one half of a word after the other; lanes with a column each write side
 * by side as it is, and their compilers need more registers for matrices. */
static void widen_map(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    int axis = smg_kernel_run_axis(k, in);
    if (in->kind == SMG_I_SPILL) {
        const smg_tile *dst = &k->tiles.items[in->dst];
        if (axis >= 0 && smg_tile_wide(k, dst) && smg_tile_last_axis(dst) == axis)
            in->wide[0] = along(axis);
        else if (smg_kernel_pair_axis(k, in) == smg_tile_last_axis(dst))
            in->matrices = smg_kernel_spills_matrices(k, in, &in->wide[0]);
        return;
    }
    int access = in->kind == SMG_I_STORE ? in->a : smg_kernel_plain_load(k, in->expr);
    smg_wide pair = along_by(smg_kernel_pair_axis(k, in), SMG_PAIR);
    if (access < 0 && k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_NONE) {
        if (gains(k, target, in->expr, along(axis)))
            in->wide[0] = along(axis);
        else if (gains(k, target, in->expr, pair))
            in->wide[0] = pair;
    }
    if (access < 0 || (in->kind == SMG_I_SET && !never_written(k, access))) return;
    if (aligned(k, target, access, axis, SMG_ALIGNED_BY_SIZES))
        in->wide[0] = along(axis);
    else if (aligned_by(k, target, access, pair, SMG_ALIGNED_BY_SIZES))
        in->wide[0] = pair;
}

/* What lies as matrices in lanes and in memory goes so: drivers keep no address for each element or pair then. On
 * one GPU two products in turn took 159 us with the left factor loaded one by one, 140 with results stored so, 129 with
 * neither; 167 where both went by pairs. Rows that are a size apart are stored by pairs where lanes have such: 5.8 us
 * for 11.8 of 8 x 512 x 512 sums (bench/NOTES.md). So are matrices that the end of an axis cuts. Pairs are of 16
 * bits. */
static void widen_whole(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    smg_wide whole, pair = in->wide[0];
    bool stores = in->kind == SMG_I_STORE;
    int row, access = stores ? in->a : smg_kernel_plain_load(k, in->expr);
    if (pair.width > SMG_PAIR || access < 0 || !has_elements(k, target, access)) return;
    in->matrices = smg_kernel_whole_matrices(k, in, &whole, &row);
    if (in->matrices && stores && pair.width == SMG_PAIR)
        in->matrices = smg_size_is_const(k->sizes, smg_access_stride(&k->accesses.items[access], row), NULL);
    if (!in->matrices) return;
    in->wide[0] = whole;
    if (stores) in->wide[1] = pair;
}

/* Elements of 16 bits that neither groups nor matrices store: where rows are of odd length, a lane's word of a matrix
 * begins at an odd element in every second row. One by one, each instruction would write 8 of the 32 bytes of as many
 * sectors as lanes have rows; exchanged, all bytes of a fourth of them. */
static void exchange_stored(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    smg_trade trade;
    bool can = target->subgroup_shuffle && target->fp16 && target->storage16 && smg_target_switches_lanes(target);
    in->exchanged = can && smg_kernel_trades(k, in, &trade);
}

/* What a lane has of a factor in runs comes by them. */
static bool widen_factor(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    smg_wide run;
    if (in->kind != SMG_I_SET || !smg_kernel_loads_runs(k, in, &run)) return false;
    if (!has_elements(k, target, smg_kernel_plain_load(k, in->expr))) return false;
    in->wide[0] = run;
    return true;
}

/* A walk goes by groups where some load gains by it, and the axis ends with one. */
static void widen_walk(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    if (in->axis_count == 0 || smg_tile_kind(&k->tiles.items[in->dst]) != SMG_KIND_FLOAT) return;
    smg_size quotient, width = smg_size_const(k->sizes, SMG_WIDE);
    smg_wide wide = along(in->axes[in->axis_count - 1]);
    const smg_kaxis *axis = &k->axes.items[wide.axis];
    if (axis->tile % SMG_WIDE != 0 || !smg_size_divide_exact(k->sizes, axis->extent, width, &quotient)) return;
    if (!gains(k, target, in->expr, wide)) return;
    int64_t lanes = k->lanes, groups = smg_tile_elements(k, &k->tiles.items[in->dst]) / SMG_WIDEST;
    bool widest = in->kind == SMG_I_FETCH && k->tiles.items[in->dst].type == SMG_TYPE_F16 && k->matrix.rows == 0 &&
                  groups >= lanes && smg_walk_widest(k, in, wide.axis);
    in->wide[0] = along_by(wide.axis, widest ? SMG_WIDEST : SMG_WIDE);
}

static void widen_put(const smg_kernel *k, smg_instr *put) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_FETCH && in->dst == put->a) put->wide[0] = in->wide[0];
    }
}

/* Do groups of a factor lie so? Of a view at least so surely. */
static bool factor_lies(const smg_kernel *k, const smg_target *target, int tile, smg_wide wide, smg_aligned least) {
    const smg_tile *t = &k->tiles.items[tile];
    if (wide.axis < 0) return false;
    if (t->residence == SMG_VIEW) return never_written(k, t->access) && aligned_by(k, target, t->access, wide, least);
    return smg_tile_wide(k, t) && smg_tile_last_axis(t) == wide.axis;
}

/* Halves of a view go by eight, 16 bytes as well, where all of its groups are whole. */
static int width_of(const smg_kernel *k, const smg_instr *in) {
    const smg_tile *b = &k->tiles.items[in->b];
    smg_wide widest = along_by(smg_kernel_run_axis(k, in), smg_kernel_run_width(k, in));
    bool whole = b->residence == SMG_VIEW && smg_access_aligned(k, b->access, widest) == SMG_ALIGNED_ALWAYS;
    return whole ? widest.width : SMG_WIDE;
}

/* Four or eight k at once, of the left factor also where sizes decide, or else runs of rows and of columns. Rows of
 * views have no owner that reads runs of them. */
static void widen_product(const smg_kernel *k, const smg_target *target, smg_instr *in) {
    int inner = in->axes[in->axis_count - 1], run = smg_kernel_run_axis(k, in);
    int rows = smg_tile_last_axis(&k->tiles.items[in->a]);
    smg_wide group = along_by(inner, smg_kernel_product_group(k, in));
    bool fragments = k->tiles.items[in->dst].fragments != SMG_FRAGMENTS_NONE;
    bool groups = group.width >= SMG_WIDE && !fragments && in->terms == 0; /* pairs are of one k */
    bool staged = k->tiles.items[in->a].residence == SMG_SHARED;
    if (groups && factor_lies(k, target, in->a, group, SMG_ALIGNED_BY_SIZES))
        in->wide[0] = group;
    else if (staged && factor_lies(k, target, in->a, along(rows), SMG_ALIGNED_ALWAYS) &&
             smg_kernel_owns_rows(k, in, rows))
        in->wide[0] = along(rows);
    if (groups && factor_lies(k, target, in->b, group, SMG_ALIGNED_ALWAYS))
        in->wide[1] = group;
    else if (factor_lies(k, target, in->b, along(run), SMG_ALIGNED_ALWAYS))
        in->wide[1] = along_by(run, width_of(k, in));
    if (in->terms > 0 && in->wide[1].axis == run && smg_kernel_run_width(k, in) == SMG_WIDEST) {
        in->wide[1].width = SMG_WIDEST;
        if (!smg_tile_widest(k, in->b)) in->wide[1].width = SMG_WIDE;
    }
}

/* Are addresses and sizes small enough to be pushed? */
static bool has_addresses(const smg_kernel *k, const smg_target *target) {
    int64_t pushed = (k->buffers.count + 1) * ADDRESS_BYTES + SMG_KERNEL_SIZES * WORD_BYTES;
    return target->buffer_addresses && pushed <= target->max_push_bytes;
}

/* What fills a shared tile, where it is put from what was fetched. */
static bool fills(const smg_kernel *k, const smg_instr *in, int tile) {
    if (in->kind == SMG_I_STAGE) return in->dst == tile;
    for (int i = 0; in->kind == SMG_I_FETCH && i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_PUT && k->code.items[i].dst == tile && k->code.items[i].a == in->dst)
            return true;
    return false;
}

static void fill_by(smg_kernel *k, int tile, int axis, int width) {
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        bool put = in->kind == SMG_I_PUT && in->dst == tile;
        if (put || fills(k, in, tile)) in->wide[0] = along_by(axis, width);
    }
}

/* What fills the shared tile goes by eights of 16 bits where it may; how it went before. */
static bool may_be_widest(const smg_kernel *k, const smg_target *target, int tile, smg_wide *out_before) {
    int axis = smg_tile_last_axis(&k->tiles.items[tile]);
    bool all = k->tiles.items[tile].residence == SMG_SHARED && axis >= 0, any = false;
    for (int i = 0; all && i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (!fills(k, in, tile)) continue;
        all = smg_walk_widest(k, in, axis) && has_elements(k, target, smg_kernel_plain_load(k, in->expr));
        *out_before = in->wide[0];
        any = true;
    }
    return all && any;
}

/* Factors of matrices that memory has by eights of 16 bits go so all the way: 16 bytes at a time. Tiles that take turns
 * do so together. */
static void widen_matrices(smg_kernel *k, const smg_target *target) {
    for (int t = 0; t < k->tiles.count; t++) {
        int memory = k->tiles.items[t].memory, last = memory > 0 ? k->tiles.count - 1 : t;
        bool first = true, all = true;
        smg_wide before[KERNEL_LIVE_TILES];
        for (int i = 0; i < t; i++) first = first && (memory == 0 || k->tiles.items[i].memory != memory);
        if (!first || last >= KERNEL_LIVE_TILES) continue;
        for (int i = t; i <= last; i++)
            if (i == t || k->tiles.items[i].memory == memory) all = all && may_be_widest(k, target, i, &before[i]);
        for (int turn = 0; all && turn < 2; turn++) { /* there, and back where nothing comes of it */
            for (int i = t; i <= last; i++) {
                if (i != t && k->tiles.items[i].memory != memory) continue;
                smg_wide wide = turn == 0 ? along_by(smg_tile_last_axis(&k->tiles.items[i]), SMG_WIDEST) : before[i];
                fill_by(k, i, wide.axis, wide.width);
            }
            if (smg_tile_widest(k, t)) break;
        }
    }
}

static bool loads_alike(const smg_kernel *k, const smg_instr *in) {
    if (in->matrices || !smg_kernel_loads_some_alike(k, in)) return false;
    return in->kind == SMG_I_STORE || k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_NONE;
}

void smg_kernel_widen(smg_kernel *k, const smg_target *target) {
    bool addresses = has_addresses(k, target), lanes = addresses && !smg_target_switches_lanes(target);
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        in->addressed = lanes && in->kind != SMG_I_MMA && loads_alike(k, in);
        if (widen_factor(k, target, in)) continue;
        if (in->kind == SMG_I_SET || in->kind == SMG_I_STORE || in->kind == SMG_I_SPILL) widen_map(k, target, in);
        if (in->kind == SMG_I_SET || in->kind == SMG_I_STORE) widen_whole(k, target, in);
        if (in->kind == SMG_I_STORE) exchange_stored(k, target, in);
        if (in->kind == SMG_I_STAGE || in->kind == SMG_I_FETCH) widen_walk(k, target, in);
    }
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_PUT) widen_put(k, &k->code.items[i]);
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        const smg_tile *a = &k->tiles.items[in->a], *b = &k->tiles.items[in->b];
        in->addressed = addresses && smg_kernel_addressable(k, i) && has_elements(k, target, b->access) &&
                        (a->residence != SMG_VIEW || has_elements(k, target, a->access));
        if (!in->addressed && a->residence != SMG_REGISTER) widen_product(k, target, in);
    }
    if (k->matrix.rows > 0) widen_matrices(k, target);
}
