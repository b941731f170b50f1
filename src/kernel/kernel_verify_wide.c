/* The verifier: neighbours that an instruction takes at once. A group lies side by side where it is read and where it
 * is written, and one lane has all of it. */
#include "kernel/kernel_verify.h"

static const char *axis_name(const kernel_verifier *v, int axis) {
    return v->k->axes.items[axis].name;
}

/* widest: of what a product reads where it lies, or what goes to matrices as memory has it. */
static smg_status check_group(const kernel_verifier *v, smg_wide wide, bool widest) {
    smg_instr_kind kind = v->k->code.items[v->at].kind;
    bool pair = wide.width == SMG_PAIR && (kind == SMG_I_SET || kind == SMG_I_STORE);
    if (wide.width != SMG_WIDE && !pair && (wide.width != SMG_WIDEST || !widest))
        return KERNEL_WRONG(v, "%d neighbours at once, not %d, or %d of 16 bits that nothing is made of on the way",
                            wide.width, SMG_WIDE, SMG_WIDEST);
    if (wide.axis < 0 || wide.axis >= v->k->axes.count)
        return KERNEL_WRONG(v, "neighbours along axis %d of %d", wide.axis, v->k->axes.count);
    if (!smg_kernel_laid_out(v->k))
        return KERNEL_WRONG(v, "neighbours at once along axis '%s', and no layouts yet", axis_name(v, wide.axis));
    int64_t tile = v->k->axes.items[wide.axis].tile;
    if (tile % wide.width == 0) return SMG_OK;
    return KERNEL_WRONG(v, "%d neighbours at once along axis '%s', whose tile is %lld", wide.width,
                        axis_name(v, wide.axis), (long long)tile);
}

static smg_status check_access(const kernel_verifier *v, smg_wide wide, int access, smg_aligned least) {
    if (smg_access_aligned(v->k, access, wide) >= least) return SMG_OK;
    return KERNEL_WRONG(v, "access %d has no aligned groups of %d along axis '%s'", access, wide.width,
                        axis_name(v, wide.axis));
}

static smg_status check_run(const kernel_verifier *v, const smg_instr *in, smg_wide wide) {
    int axis = wide.width == SMG_PAIR ? smg_kernel_pair_axis(v->k, in) : smg_kernel_run_axis(v->k, in);
    if (axis == wide.axis) return SMG_OK;
    return KERNEL_WRONG(v, "no lane owns runs of %d along axis '%s'", wide.width, axis_name(v, wide.axis));
}

static smg_status check_shared(const kernel_verifier *v, smg_wide wide, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    if (smg_tile_wide(v->k, t) && t->axis[t->axis_count - 1] == wide.axis) return SMG_OK;
    return KERNEL_WRONG(v, "'%s' does not lie in groups of %d along axis '%s'", t->name, wide.width,
                        axis_name(v, wide.axis));
}

typedef struct group_seek {
    const smg_kernel *k;
    smg_wide wide;
    bool found;
} group_seek;

static void seek_group(void *user, int leaf) {
    group_seek *s = user;
    s->found = s->found || smg_kernel_loads_groups(s->k, leaf, s->wide);
}

/* Loads that are groups whatever the sizes, among others; or a plain one, which may go either way where they decide. */
static smg_status check_set(const kernel_verifier *v, const smg_instr *in) {
    smg_wide run;
    if (in->wide[0].width == SMG_WIDEST && smg_kernel_loads_runs(v->k, in, &run) && run.axis == in->wide[0].axis)
        return SMG_OK;
    int access = smg_kernel_plain_load(v->k, in->expr);
    group_seek s = {.k = v->k, .wide = in->wide[0]};
    SMG_TRY(check_run(v, in, in->wide[0]));
    if (access < 0) smg_expr_leaves(v->k->exprs, in->expr, seek_group, &s);
    if (s.found) return SMG_OK;
    if (access < 0 || v->k->buffers.items[v->k->accesses.items[access].buffer].written)
        return KERNEL_WRONG(v, "neighbours at once of what loads no groups of an input");
    return check_access(v, in->wide[0], access, SMG_ALIGNED_BY_SIZES);
}

/* A walk goes along its last axis, whose end is a group's end. */
static smg_status check_walk(const kernel_verifier *v, const smg_instr *in) {
    smg_wide wide = in->wide[0];
    smg_size quotient, width = smg_size_const(v->k->sizes, wide.width);
    bool along = in->axis_count > 0 && in->axes[in->axis_count - 1] == wide.axis;
    bool whole = smg_size_divide_exact(v->k->sizes, v->k->axes.items[wide.axis].extent, width, &quotient);
    if (along && whole && smg_tile_kind(&v->k->tiles.items[in->dst]) == SMG_KIND_FLOAT) return SMG_OK;
    return KERNEL_WRONG(v, "the walk does not go by groups of %d along axis '%s'", wide.width, axis_name(v, wide.axis));
}

/* Where the elements come from by groups of so many. */
static smg_status check_fill(const kernel_verifier *v, const smg_instr *in) {
    smg_wide wide = in->wide[0];
    bool widest = wide.width == SMG_WIDEST;
    SMG_TRY(check_group(v, wide, smg_walk_widest(v->k, in, wide.axis)));
    if (widest && in->kind == SMG_I_STAGE && !smg_tile_widest(v->k, in->dst))
        return KERNEL_WRONG(v, "'%s' does not lie in groups of %d", v->k->tiles.items[in->dst].name, SMG_WIDEST);
    return check_walk(v, in);
}

/* What is fetched by groups is put by them. */
static smg_status check_put(const kernel_verifier *v, const smg_instr *put) {
    smg_type from = v->k->tiles.items[put->a].type, to = v->k->tiles.items[put->dst].type;
    bool widest = from == SMG_TYPE_F16 || (smg_tile_widest(v->k, put->dst) && from == to);
    if (put->wide[0].width > 0) SMG_TRY(check_group(v, put->wide[0], widest));
    for (int i = 0; i < v->k->code.count; i++) {
        const smg_instr *in = &v->k->code.items[i];
        if (in->kind != SMG_I_FETCH || in->dst != put->a) continue;
        if (in->wide[0].width == put->wide[0].width && in->wide[0].axis == put->wide[0].axis) continue;
        return KERNEL_WRONG(v, "'%s' is put by groups of %d, and fetched by groups of %d in instruction %d",
                            v->k->tiles.items[put->a].name, put->wide[0].width, in->wide[0].width, i);
    }
    return put->wide[0].width > 0 ? check_walk(v, put) : SMG_OK;
}

/* Along k where k goes by groups, or along rows or columns that one lane owns. */
static smg_status check_factor(const kernel_verifier *v, const smg_instr *in, int side) {
    smg_wide wide = in->wide[side];
    int tile = side == 0 ? in->a : in->b;
    const smg_tile *t = &v->k->tiles.items[tile];
    SMG_TRY(check_group(v, wide, t->residence == SMG_VIEW || (side == 1 && smg_tile_widest(v->k, tile))));
    bool depth = in->terms == 0 && wide.axis == in->axes[in->axis_count - 1] &&
                 smg_kernel_product_group(v->k, in) % wide.width == 0;
    bool runs = side == 0 ? wide.width == SMG_WIDE && smg_kernel_owns_rows(v->k, in, wide.axis)
                          : smg_kernel_run_axis(v->k, in) == wide.axis && smg_kernel_run_width(v->k, in) >= wide.width;
    if (!depth && !runs)
        return KERNEL_WRONG(v, "no lane multiplies runs of %d of factor '%s' along axis '%s'", wide.width, t->name,
                            axis_name(v, wide.axis));
    smg_aligned least = side == 0 ? SMG_ALIGNED_BY_SIZES : SMG_ALIGNED_ALWAYS;
    return t->residence == SMG_VIEW ? check_access(v, wide, t->access, least) : check_shared(v, wide, tile);
}

static smg_status check_addressed(const kernel_verifier *v, const smg_instr *in) {
    bool laid = smg_kernel_laid_out(v->k);
    if (in->kind == SMG_I_MMA && laid && smg_kernel_addressable(v->k, v->at)) return SMG_OK;
    if (in->kind != SMG_I_MMA) {
        if (laid && smg_kernel_loads_some_alike(v->k, in)) return SMG_OK;
        return KERNEL_WRONG(v, "loads by address, and none of an input is of one element for all lanes");
    }
    return KERNEL_WRONG(v,
                        "its factors are read by address, and are no views whose columns lie over a subgroup's lanes");
}

static smg_status check_matrices(const kernel_verifier *v, const smg_instr *in) {
    smg_wide wide;
    int row;
    bool kind = (in->kind == SMG_I_SET || in->kind == SMG_I_STORE) && smg_kernel_laid_out(v->k);
    bool whole = kind && smg_kernel_whole_matrices(v->k, in, &wide, &row);
    if (in->kind == SMG_I_SPILL) whole = smg_kernel_laid_out(v->k) && smg_kernel_spills_matrices(v->k, in, &wide);
    if (!whole || wide.width != in->wide[0].width || wide.axis != in->wide[0].axis)
        return KERNEL_WRONG(v, "whole matrices at once of what does not lie so, in lanes or in memory");
    if (in->wide[1].width == 0) return SMG_OK;
    if (in->kind != SMG_I_STORE) return KERNEL_WRONG(v, "neighbours at once beside matrices, and it does not store");
    SMG_TRY(check_group(v, in->wide[1], false));
    SMG_TRY(check_run(v, in, in->wide[1]));
    return check_access(v, in->wide[1], in->a, SMG_ALIGNED_BY_SIZES);
}

static smg_status check_exchanged(const kernel_verifier *v, const smg_instr *in) {
    smg_trade trade;
    if (smg_kernel_laid_out(v->k) && smg_kernel_trades(v->k, in, &trade)) return SMG_OK;
    return KERNEL_WRONG(v, "lanes exchange what they store, and hold no columns of rows that make runs then");
}

smg_status kernel_verify_wide(const kernel_verifier *v, const smg_instr *in) {
    if (in->addressed) SMG_TRY(check_addressed(v, in));
    if (in->exchanged) SMG_TRY(check_exchanged(v, in));
    if (in->kind == SMG_I_PUT) return check_put(v, in);
    if (in->kind == SMG_I_MMA) {
        if (in->wide[0].width != 0) SMG_TRY(check_factor(v, in, 0));
        return in->wide[1].width != 0 ? check_factor(v, in, 1) : SMG_OK;
    }
    if (in->kind == SMG_I_LEAVE || in->kind == SMG_I_GATHER) return SMG_OK; /* kernel_verify_exchange's */
    if (in->matrices) return check_matrices(v, in);
    if (in->kind == SMG_I_TAKE) return SMG_OK; /* check_take's */
    if (in->wide[0].width == 0) return SMG_OK;
    if (in->kind == SMG_I_STAGE || in->kind == SMG_I_FETCH) return check_fill(v, in);
    bool factor = in->kind == SMG_I_SET && v->k->tiles.items[in->dst].fragments != SMG_FRAGMENTS_NONE;
    SMG_TRY(check_group(v, in->wide[0], factor));
    switch (in->kind) {
    case SMG_I_SET: return check_set(v, in);
    case SMG_I_STORE:
        SMG_TRY(check_run(v, in, in->wide[0]));
        return check_access(v, in->wide[0], in->a, SMG_ALIGNED_BY_SIZES);
    case SMG_I_SPILL: SMG_TRY(check_run(v, in, in->wide[0])); return check_shared(v, in->wide[0], in->dst);
    default: return KERNEL_WRONG(v, "an instruction of kind %d takes neighbours at once", (int)in->kind);
    }
}
