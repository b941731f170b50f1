/* The verifier, last part: the program. One walk in the order of execution keeps which loops are open and which tiles
 * have been written. A loop's body is walked until each slot has come round, at least twice, so that what one step
 * leaves behind meets those after it. Every extent counts as at least 1: a body runs at least once, unless its loop has
 * a range. Then barriers must part what meets in shared memory. */
#include "kernel/kernel_verify.h"

#define DEEPEST SMG_ACCESS_AXES

static const char *axis_name(const kernel_verifier *v, int axis) {
    return v->k->axes.items[axis].name;
}

/* ---- what holds at an instruction ------------------------------------------------------------------- */

smg_status kernel_verify_bound(const kernel_verifier *v, int axis) {
    const smg_kaxis *a = &v->k->axes.items[axis];
    if (a->grid || v->looped[axis] || v->most[axis] <= a->tile) return SMG_OK;
    return KERNEL_WRONG(v, "axis '%s' has up to %lld elements, its tile %lld, and no loop over it is open", a->name,
                        (long long)v->most[axis], (long long)a->tile);
}

/* The last instruction that fills the tile. */
static int writer_of(const smg_kernel *k, int tile) {
    int at = k->code.count - 1;
    while (at > 0 && k->code.items[at].dst != tile) at--;
    return at;
}

/* What moves a slice on its way reads it for the step that it works for. */
static int moved_ahead(const kernel_verifier *v) {
    const smg_instr *in = &v->k->code.items[v->at];
    return in->kind == SMG_I_PUT || in->kind == SMG_I_TAKE ? in->ahead : 0;
}

/* The slot of the step at hand holds what was written for it. */
static smg_status check_slot(const kernel_verifier *v, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    const kernel_tile_state *state = &v->tiles[tile];
    if (!v->looped[t->ring])
        return KERNEL_WRONG(v, "tile '%s' has slots along axis '%s' and is read outside of a loop over it", t->name,
                            axis_name(v, t->ring));
    int step = v->step[t->ring] + moved_ahead(v), slot = step % t->slots;
    if (state->held[slot] == 0)
        return KERNEL_WRONG(v, "slot %d of tile '%s' is read before instruction %d writes it", slot, t->name,
                            writer_of(v->k, tile));
    if (state->held[slot] == step + 1) return SMG_OK;
    return KERNEL_WRONG(v, "slot %d of tile '%s' is read for step %d, and instruction %d has written it for step %d",
                        slot, t->name, step, state->by[slot], state->held[slot] - 1);
}

smg_status kernel_verify_read_tile(kernel_verifier *v, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    kernel_tile_state *state = &v->tiles[tile];
    if (t->residence == SMG_VIEW)
        return KERNEL_WRONG(v, "view '%s' is read by another instruction than a product", t->name);
    if (t->sliced) return kernel_verify_read_tile(v, t->of);
    if (smg_tile_slots(t) > 1) return check_slot(v, tile);
    if (!state->set) return KERNEL_WRONG(v, "tile '%s' is read before it is written", t->name);
    if ((state->partial & ~v->apart) != 0)
        return KERNEL_WRONG(v, "tile '%s' is read before its partial sums are joined", t->name);
    v->parts |= state->partial;
    return SMG_OK;
}

/* What lay on the memory of the tile is gone. */
void kernel_verify_write_tile(kernel_verifier *v, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    for (int i = 0; t->memory > 0 && i < v->k->tiles.count; i++)
        if (v->k->tiles.items[i].memory == t->memory) v->tiles[i].set = false;
    const smg_instr *instr = &v->k->code.items[v->at];
    int axis = t->residence == SMG_STAGING ? instr->a : smg_tile_slots(t) > 1 ? t->ring : -1;
    int step = axis < 0 ? 0 : v->step[axis] + instr->ahead, slot = step % smg_tile_slots(t);
    v->tiles[tile].held[slot] = step + 1;
    v->tiles[tile].by[slot] = v->at;
    v->tiles[tile].set = true;
    v->tiles[tile].gathered = 0;
}

static smg_status check_exists(const kernel_verifier *v, const char *role, int tile) {
    if (tile >= 0 && tile < v->k->tiles.count) return SMG_OK;
    return KERNEL_WRONG(v, "%s is tile %d of %d", role, tile, v->k->tiles.count);
}

smg_status kernel_verify_tile(const kernel_verifier *v, const char *role, int tile, smg_residence residence) {
    SMG_TRY(check_exists(v, role, tile));
    const smg_tile *t = &v->k->tiles.items[tile];
    static const char *const words[] = {"register", "shared", "staging", "view", "exchange"};
    if (t->residence != residence) return KERNEL_WRONG(v, "%s '%s' must be a %s tile", role, t->name, words[residence]);
    smg_instr_kind kind = v->k->code.items[v->at].kind;
    if (t->sliced && kind != SMG_I_MMA && kind != SMG_I_TAKE)
        return KERNEL_WRONG(v, "%s '%s' is a slice, which products read and nothing writes", role, t->name);
    if (t->in_runs && kind != SMG_I_PUT && kind != SMG_I_TAKE)
        return KERNEL_WRONG(v, "%s '%s' lies in runs, where PUT moves elements to and TAKE finds matrices", role,
                            t->name);
    for (int i = 0; i < t->axis_count; i++) SMG_TRY(kernel_verify_bound(v, t->axis[i]));
    return SMG_OK;
}

smg_status kernel_verify_axes(kernel_verifier *v, const int *axes, int count, int most) {
    if (count < 0 || count > most) return KERNEL_WRONG(v, "%d axes, outside [0, %d]", count, most);
    for (int i = 0; i < count; i++) {
        if (axes[i] < 0 || axes[i] >= v->k->axes.count)
            return KERNEL_WRONG(v, "axis %d of %d", axes[i], v->k->axes.count);
        for (int j = 0; j < v->axis_count; j++)
            if (v->axes[j] == axes[i]) return KERNEL_WRONG(v, "axis '%s' stands twice", axis_name(v, axes[i]));
        SMG_TRY(kernel_verify_bound(v, axes[i]));
        v->axes[v->axis_count++] = axes[i];
    }
    return SMG_OK;
}

/* ---- one instruction -------------------------------------------------------------------------------- */

smg_status kernel_verify_laid(kernel_verifier *v, const smg_instr *instr, const smg_tile *dst) {
    SMG_TRY(kernel_verify_layout(v, "the instruction", instr->layout, v->axes, v->axis_count));
    if (!smg_kernel_laid_out(v->k)) return SMG_OK;
    v->layout = &v->k->layouts.items[instr->layout];
    if (dst != NULL && !smg_layout_readable(&v->k->layouts.items[dst->layout], v->layout))
        return KERNEL_WRONG(v, "the result '%s' lies in other lanes than layout %d makes it in", dst->name,
                            instr->layout);
    return SMG_OK;
}

/* Lanes that hold what others hold: bits of their number. */
static uint32_t copies(const kernel_verifier *v) {
    return v->layout == NULL ? 0 : smg_layout_replicas(v->layout);
}

static smg_status check_set(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    SMG_TRY(kernel_verify_axes(v, dst->axis, dst->axis_count, SMG_TILE_AXES));
    if (smg_kernel_laid_out(v->k)) v->layout = &v->k->layouts.items[dst->layout];
    v->apart = ~UINT32_C(0);
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_tile_kind(dst)));
    if (smg_expr_get(v->k->exprs, instr->expr)->prim != SMG_PRIM_CONST) SMG_TRY(kernel_verify_places(v, instr->dst));
    SMG_TRY(kernel_verify_reads(v, instr->expr));
    v->tiles[instr->dst].partial = v->parts & copies(v);
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

uint32_t kernel_verify_lanes_along(const kernel_verifier *v, const smg_instr *instr) {
    return v->layout == NULL ? 0 : smg_layout_local_mask(v->layout, instr->axes, instr->axis_count);
}

/* What is folded apart goes on in the lanes that it began in. */
static smg_status check_parts(kernel_verifier *v, const smg_instr *instr, uint32_t lanes) {
    uint32_t partial = v->tiles[instr->dst].partial;
    if (instr->apart && partial != 0 && partial != lanes)
        return KERNEL_WRONG(v, "the parts of '%s' lie in other lanes already", v->k->tiles.items[instr->dst].name);
    return kernel_verify_read_tile(v, instr->dst);
}

static smg_status check_reduce(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
    SMG_TRY(kernel_verify_places(v, instr->dst));
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    if (smg_tile_kind(dst) == SMG_KIND_BOOL || (unsigned)instr->combine >= SMG_COMBINE_COUNT)
        return KERNEL_WRONG(v, "the result '%s' of a reduction is bool, or combine %d does not exist", dst->name,
                            (int)instr->combine);
    SMG_TRY(kernel_verify_axes(v, dst->axis, dst->axis_count, SMG_TILE_AXES));
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    if (instr->axis_count == 0) return KERNEL_WRONG(v, "a reduction into '%s' over no axis", dst->name);
    SMG_TRY(kernel_verify_laid(v, instr, dst));
    uint32_t mask = kernel_verify_lanes_along(v, instr);
    v->apart = instr->apart ? ~copies(v) : 0;
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_tile_kind(dst)));
    SMG_TRY(kernel_verify_reads(v, instr->expr));
    if (instr->accumulate) SMG_TRY(check_parts(v, instr, mask));
    v->tiles[instr->dst].partial = instr->apart ? mask : 0;
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* There is a loop that the instruction works for: one that is open, or one to come. *out_axis: of that loop, -1
 * where it works for no step. */
static smg_status check_ahead(const kernel_verifier *v, const smg_instr *instr, int *out_axis) {
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    int axis = *out_axis = smg_instr_ahead_axis(v->k, instr), most = axis < 0 ? 0 : SMG_SLOTS - 1;
    if (smg_tile_slots(dst) > 1 && dst->residence != SMG_STAGING) most = dst->slots - 1;
    if (instr->ahead < 0 || instr->ahead > most)
        return KERNEL_WRONG(v, "tile '%s' is filled %d steps ahead, at most %d are possible", dst->name, instr->ahead,
                            most);
    bool some = axis < 0 || v->looped[axis] || smg_kernel_next_loop(v->k, v->at) >= 0;
    if (some || (instr->kind == SMG_I_FETCH && instr->ahead == 0)) return SMG_OK;
    return KERNEL_WRONG(v, "tile '%s' is filled for a step of a loop over axis '%s', and none is open or follows",
                        dst->name, axis_name(v, axis));
}

static smg_status check_filled(kernel_verifier *v, const smg_instr *instr);

/* In front of a loop its first steps count as open. */
static smg_status check_for_step(kernel_verifier *v, const smg_instr *instr) {
    int axis;
    SMG_TRY(check_exists(v, "the result", instr->dst));
    SMG_TRY(check_ahead(v, instr, &axis));
    if (axis < 0) return check_filled(v, instr);
    bool looped = v->looped[axis];
    v->looped[axis] = true;
    smg_status status = check_filled(v, instr);
    v->looped[axis] = looped;
    return status;
}

static smg_status check_stage(kernel_verifier *v, const smg_instr *instr) {
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    bool same = instr->axis_count == dst->axis_count;
    for (int i = 0; i < instr->axis_count; i++) same = same && smg_tile_has(dst, instr->axes[i]);
    if (!same) return KERNEL_WRONG(v, "the walk is no permutation of the axes of '%s'", dst->name);
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_tile_kind(dst)));
    v->staging = true;
    SMG_TRY(kernel_verify_reads(v, instr->expr));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* The walk of a staging tile is its own order of axes. */
static smg_status check_walk(kernel_verifier *v, const smg_instr *instr, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    bool same = instr->axis_count == t->axis_count;
    for (int i = 0; same && i < instr->axis_count; i++) same = instr->axes[i] == t->axis[i];
    if (!same) return KERNEL_WRONG(v, "the walk differs from the axes of staging tile '%s'", t->name);
    return SMG_OK;
}

static smg_status check_slice(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    SMG_TRY(check_walk(v, instr, instr->dst));
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_tile_kind(&v->k->tiles.items[instr->dst])));
    v->staging = true;
    SMG_TRY(kernel_verify_reads(v, instr->expr));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

static smg_status check_last(const kernel_verifier *v, const smg_instr *instr, int axis) {
    if (!instr->last || (axis >= 0 && smg_kernel_steps_known(v->k, axis, 2))) return SMG_OK;
    return KERNEL_WRONG(v, "the last slice along axis '%s' is loaded once more, and nobody knows which it is",
                        axis < 0 ? "" : axis_name(v, axis));
}

static smg_status check_fetch(kernel_verifier *v, const smg_instr *instr) {
    if (instr->a < 0 || instr->a >= v->k->axes.count || v->k->axes.items[instr->a].grid)
        return KERNEL_WRONG(v, "a fetch along axis %d of %d, or along one of the grid", instr->a, v->k->axes.count);
    SMG_TRY(check_last(v, instr, instr->a));
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    if (smg_tile_slots(dst) > 1 && dst->ring != instr->a)
        return KERNEL_WRONG(v, "'%s' has slots along axis '%s' and is fetched along axis '%s'", dst->name,
                            axis_name(v, dst->ring), axis_name(v, instr->a));
    return check_for_step(v, instr);
}

/* What was fetched is the slice that is put. */
static smg_status check_fetched(const kernel_verifier *v, const smg_instr *put) {
    const kernel_tile_state *from = &v->tiles[put->a];
    const smg_tile *t = &v->k->tiles.items[put->a];
    int slot = smg_tile_slots(t) > 1 ? (v->step[t->ring] + put->ahead) % t->slots : 0;
    int fetch = from->by[slot], along = v->k->code.items[fetch].a, ring = smg_instr_ahead_axis(v->k, put);
    if (!from->set || from->held[slot] == 0) return SMG_OK; /* refused where it is read */
    if (ring >= 0 && ring != along)
        return KERNEL_WRONG(v, "slots along axis '%s' are filled with what instruction %d fetched along axis '%s'",
                            axis_name(v, ring), fetch, axis_name(v, along));
    int step = v->step[along] + put->ahead;
    if (from->held[slot] == step + 1) return SMG_OK;
    return KERNEL_WRONG(v, "'%s' is put for step %d, and instruction %d has fetched it for step %d", t->name, step,
                        fetch, from->held[slot] - 1);
}

static smg_status check_put(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the operand", instr->a, SMG_STAGING));
    const smg_tile *dst = &v->k->tiles.items[instr->dst], *a = &v->k->tiles.items[instr->a];
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    SMG_TRY(check_walk(v, instr, instr->a));
    bool same = a->axis_count == dst->axis_count && smg_tile_kind(a) == smg_tile_kind(dst);
    for (int i = 0; i < a->axis_count; i++) same = same && smg_tile_has(dst, a->axis[i]);
    if (!same) return KERNEL_WRONG(v, "'%s' and '%s' differ in kind or axes", dst->name, a->name);
    if ((dst->clamped & ~a->clamped) != 0)
        return KERNEL_WRONG(v, "'%s' is clamped along an axis where '%s' is 0", dst->name, a->name);
    SMG_TRY(check_fetched(v, instr));
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

static smg_status check_take(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the operand", instr->a, SMG_SHARED));
    const smg_tile *dst = &v->k->tiles.items[instr->dst], *a = &v->k->tiles.items[instr->a];
    bool same = a->axis_count == dst->axis_count && a->type == dst->type && smg_kernel_laid_out(v->k);
    for (int i = 0; i < a->axis_count; i++) same = same && smg_tile_has(dst, a->axis[i]);
    if (!same || (dst->fragments != SMG_FRAGMENTS_LEFT && dst->fragments != SMG_FRAGMENTS_RIGHT))
        return KERNEL_WRONG(v, "'%s' and '%s' differ in type or axes, or '%s' is no factor of matrices", dst->name,
                            a->name, dst->name);
    int own, along;
    bool runs = instr->wide[0].width != 0;
    if (runs ? !smg_matrix_takes_runs(v->k, instr) : !smg_matrix_takes(v->k, instr, &own, &along))
        return KERNEL_WRONG(v,
                            "'%s' does not lie as whole matrices, or '%s' not with their rows or columns side by side",
                            dst->name, a->name);
    if (smg_tile_slots(dst) > 1 && smg_tile_slots(a) > 1 && dst->ring != a->ring)
        return KERNEL_WRONG(v, "'%s' and '%s' have slots along different axes", dst->name, a->name);
    v->layout = &v->k->layouts.items[dst->layout];
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* SET, STAGE, FETCH, PUT and TAKE, once their axes have a base. */
static smg_status check_filled(kernel_verifier *v, const smg_instr *instr) {
    if (instr->kind == SMG_I_SET) return check_set(v, instr);
    if (instr->kind == SMG_I_TAKE) {
        SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
        return check_take(v, instr);
    }
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, instr->kind == SMG_I_FETCH ? SMG_STAGING : SMG_SHARED));
    if (instr->kind == SMG_I_FETCH) return check_slice(v, instr);
    return instr->kind == SMG_I_STAGE ? check_stage(v, instr) : check_put(v, instr);
}

static smg_status check_spill(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_SHARED));
    SMG_TRY(kernel_verify_tile(v, "the operand", instr->a, SMG_REGISTER));
    SMG_TRY(kernel_verify_places(v, instr->a));
    const smg_tile *dst = &v->k->tiles.items[instr->dst], *a = &v->k->tiles.items[instr->a];
    bool same = a->axis_count == dst->axis_count && smg_tile_kind(a) == smg_tile_kind(dst);
    for (int i = 0; i < a->axis_count; i++) same = same && smg_tile_has(dst, a->axis[i]);
    if (!same) return KERNEL_WRONG(v, "'%s' and '%s' differ in kind or axes", dst->name, a->name);
    if (dst->clamped != 0) return KERNEL_WRONG(v, "'%s' is clamped, and not staged", dst->name);
    if (smg_tile_slots(dst) > 1 && !v->looped[dst->ring])
        return KERNEL_WRONG(v, "'%s' has slots along axis '%s', and no loop over it is open", dst->name,
                            axis_name(v, dst->ring));
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* Every axis that moves the address of a view has a base. */
static smg_status check_view(const kernel_verifier *v, const smg_tile *t) {
    const smg_access *access = &v->k->accesses.items[t->access];
    for (int a = 0; a < access->axis_count; a++) SMG_TRY(kernel_verify_bound(v, access->axis[a]));
    return SMG_OK;
}

/* A factor of a product: every contracted axis, and beyond those only axes of the result that the other has not. */
static smg_status check_factor(kernel_verifier *v, const smg_instr *instr, int tile, bool left) {
    bool exists = tile >= 0 && tile < v->k->tiles.count;
    bool view = exists && v->k->tiles.items[tile].residence == SMG_VIEW;
    smg_fragments use = exists ? v->k->tiles.items[tile].fragments : SMG_FRAGMENTS_NONE;
    bool sums = v->k->tiles.items[instr->dst].fragments != SMG_FRAGMENTS_NONE;
    bool own = exists && left && !sums && v->k->tiles.items[tile].residence == SMG_REGISTER;
    bool held = own || use == (left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT);
    const char *side = left ? "left" : "right";
    smg_residence where = view ? SMG_VIEW : held ? SMG_REGISTER : SMG_SHARED;
    SMG_TRY(kernel_verify_tile(v, left ? "the left factor" : "the right factor", tile, where));
    const smg_tile *t = &v->k->tiles.items[tile], *dst = &v->k->tiles.items[instr->dst];
    for (int i = 0; i < instr->axis_count; i++)
        if (!smg_tile_has(t, instr->axes[i]))
            return KERNEL_WRONG(v, "factor '%s' lacks axis '%s'", t->name, axis_name(v, instr->axes[i]));
    for (int i = 0; i < instr->axis_count; i++)
        if (smg_tile_clamps(t, instr->axes[i]))
            return KERNEL_WRONG(v, "factor '%s' is clamped along axis '%s', over which it is contracted", t->name,
                                axis_name(v, instr->axes[i]));
    for (int i = 0; i < t->axis_count; i++) {
        int axis = t->axis[i];
        if (kernel_verify_has_axis(instr->axes, instr->axis_count, axis) || v->k->axes.items[axis].tile == 1) continue;
        if (!smg_tile_has(dst, axis) || (!left && smg_tile_has(&v->k->tiles.items[instr->a], axis)))
            return KERNEL_WRONG(v, "the %s factor '%s' has axis '%s'", side, t->name, axis_name(v, axis));
    }
    if (smg_tile_kind(t) != SMG_KIND_FLOAT) return KERNEL_WRONG(v, "factor '%s' is not float", t->name);
    if (view) return check_view(v, t);
    return kernel_verify_read_tile(v, tile);
}

/* A lane goes over k by groups, all of them one stride apart. */
static smg_status check_depth(const kernel_verifier *v, const smg_instr *instr) {
    if (v->layout == NULL || v->k->tiles.items[instr->dst].fragments != SMG_FRAGMENTS_NONE || instr->axis_count != 1)
        return SMG_OK;
    int axis = instr->axes[0], group = smg_kernel_product_group(v->k, instr);
    smg_layout own = smg_layout_keep(v->layout, &axis, 1);
    int64_t stride = smg_kernel_product_stride(v->k, instr), registers = smg_layout_registers(&own);
    bool good = registers % group == 0;
    for (int64_t r = 0; good && r < registers; r++)
        good = smg_layout_part(&own, axis, SMG_LAYOUT_REGISTER, r) == r / group * stride + r % group;
    if (good) return SMG_OK;
    return KERNEL_WRONG(v, "no lane of layout %d has axis '%s' in groups of %d, %lld apart", instr->layout,
                        axis_name(v, axis), group, (long long)stride);
}

static smg_status check_mma(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    SMG_TRY(kernel_verify_axes(v, dst->axis, dst->axis_count, SMG_TILE_AXES));
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    if (instr->axis_count == 0 || smg_tile_kind(dst) != SMG_KIND_FLOAT)
        return KERNEL_WRONG(v, "a product into '%s' over no axis, or not float", dst->name);
    SMG_TRY(kernel_verify_laid(v, instr, dst));
    SMG_TRY(check_depth(v, instr));
    SMG_TRY(check_factor(v, instr, instr->a, true));
    SMG_TRY(check_factor(v, instr, instr->b, false));
    SMG_TRY(kernel_verify_by_matrices(v, instr));
    uint32_t shares = kernel_verify_lanes_along(v, instr);
    uint32_t *partial = &v->tiles[instr->dst].partial;
    if (*partial != 0 && *partial != shares)
        return KERNEL_WRONG(v, "the partial sums of '%s' lie in other lanes already", dst->name);
    *partial = 0; /* more may be added to what is not joined yet */
    SMG_TRY(kernel_verify_read_tile(v, instr->dst));
    *partial = shares;
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* What is written out at once is a whole part of the tile's k, in whole groups. */
static smg_status check_unroll(const kernel_verifier *v, const smg_instr *instr) {
    if (instr->unroll == 0) return SMG_OK;
    int group = smg_kernel_product_group(v->k, instr);
    int64_t depth = smg_kernel_product_depth(v->k, instr), lanes = smg_kernel_product_lanes(v->k, instr);
    int64_t part = instr->unroll * lanes;
    if (instr->unroll == group) return SMG_OK;
    if (instr->unroll > 0 && instr->unroll % group == 0 && depth % part == 0) return SMG_OK;
    return KERNEL_WRONG(v, "%d of %lld k are written out at once, in groups of %d by %lld lanes", instr->unroll,
                        (long long)depth, group, (long long)lanes);
}

static smg_status check_partial(const kernel_verifier *v, const smg_instr *instr) {
    if (instr->terms == 0 || instr->terms == SMG_TERMS_OPEN || !smg_kernel_laid_out(v->k)) return SMG_OK;
    const char *wrong = smg_kernel_partial_wrong(v->k, instr, instr->terms);
    if (wrong != NULL) return KERNEL_WRONG(v, "a product sums up %d products in f16: %s", instr->terms, wrong);
    if (instr->unroll > 0 && instr->terms % instr->unroll != 0)
        return KERNEL_WRONG(v, "%d k are written out at once, of partial sums of %d", instr->unroll, instr->terms);
    return SMG_OK;
}

/* Lanes that are no subgroup have none of its barriers. */
static smg_status check_barrier(const kernel_verifier *v, const smg_instr *instr) {
    if (instr->scope == SMG_SCOPE_WORKGROUP) return SMG_OK;
    if (instr->scope == SMG_SCOPE_SUBGROUP && v->k->subgroup > 1) return SMG_OK;
    return KERNEL_WRONG(v, "a barrier of scope '%s' in subgroups of %d", smg_scope_word(instr->scope), v->k->subgroup);
}

static smg_status check_store(kernel_verifier *v, const smg_instr *instr) {
    const smg_kernel *k = v->k;
    if (instr->a < 0 || instr->a >= k->accesses.count)
        return KERNEL_WRONG(v, "a store through access %d of %d", instr->a, k->accesses.count);
    const smg_access *access = &k->accesses.items[instr->a];
    if (access->buffer < 0 || !k->buffers.items[access->buffer].written)
        return KERNEL_WRONG(v, "a store through access %d, whose buffer is not written", instr->a);
    SMG_TRY(kernel_verify_axes(v, instr->axes, instr->axis_count, SMG_TILE_AXES));
    SMG_TRY(kernel_verify_laid(v, instr, NULL));
    for (int i = 0; i < access->axis_count; i++) {
        SMG_TRY(kernel_verify_bound(v, access->axis[i]));
        if (k->axes.items[access->axis[i]].tile > 1 && !kernel_verify_has_axis(v->axes, v->axis_count, access->axis[i]))
            return KERNEL_WRONG(v, "access %d runs over axis '%s', which the store does not", instr->a,
                                k->axes.items[access->axis[i]].name);
    }
    SMG_TRY(kernel_verify_stores(v, instr));
    SMG_TRY(kernel_verify_expr(v, instr->expr, smg_type_kind(k->buffers.items[access->buffer].type)));
    if (access->index != SMG_EXPR_NONE) SMG_TRY(kernel_verify_reads(v, access->index));
    return kernel_verify_reads(v, instr->expr);
}

static smg_status check_kind(kernel_verifier *v, const smg_instr *instr) {
    v->axis_count = 0;
    v->staging = false;
    v->layout = NULL;
    v->apart = v->parts = 0;
    v->visit++;
    switch (instr->kind) {
    case SMG_I_SET:
        SMG_TRY(check_exists(v, "the result", instr->dst));
        SMG_TRY(check_last(v, instr, smg_instr_ahead_axis(v->k, instr)));
        return check_for_step(v, instr);
    case SMG_I_REDUCE: return check_reduce(v, instr);
    case SMG_I_STAGE: return check_for_step(v, instr);
    case SMG_I_FETCH: return check_fetch(v, instr);
    case SMG_I_PUT:
    case SMG_I_TAKE: return check_for_step(v, instr);
    case SMG_I_SPILL: return check_spill(v, instr);
    case SMG_I_MMA:
        SMG_TRY(check_mma(v, instr));
        SMG_TRY(check_unroll(v, instr));
        return check_partial(v, instr);
    case SMG_I_JOIN:
    case SMG_I_LEAVE:
    case SMG_I_FOLD:
    case SMG_I_GATHER: return kernel_verify_exchange(v, instr);
    case SMG_I_STORE: return check_store(v, instr);
    case SMG_I_LOOP:
    case SMG_I_END: return SMG_OK; /* the walk's */
    case SMG_I_BARRIER: return check_barrier(v, instr);
    }
    return KERNEL_WRONG(v, "kind %d does not exist", (int)instr->kind);
}

static smg_status check_instr(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(check_kind(v, instr));
    return kernel_verify_wide(v, instr);
}

/* ---- loops ------------------------------------------------------------------------------------------ */

static smg_status match_loops(kernel_verifier *v) {
    int open[DEEPEST], depth = 0;
    for (v->at = 0; v->at < v->k->code.count; v->at++) {
        const smg_instr *instr = &v->k->code.items[v->at];
        if (instr->kind == SMG_I_LOOP) {
            if (instr->axis_count != 1 || instr->axes[0] < 0 || instr->axes[0] >= v->k->axes.count)
                return KERNEL_WRONG(v, "a loop over axis %d of %d", instr->axes[0], v->k->axes.count);
            int64_t steps = smg_kernel_loop_steps(v->k, instr);
            if (instr->unroll > 0 && steps == 0)
                return KERNEL_WRONG(v, "the loop over '%s' is written out, and sizes decide how long it is",
                                    v->k->axes.items[instr->axes[0]].name);
            if (instr->unroll > 1 && steps % instr->unroll != 0)
                return KERNEL_WRONG(v, "the loop over '%s' has %lld steps, and is written out by %d",
                                    v->k->axes.items[instr->axes[0]].name, (long long)steps, instr->unroll);
            if (depth == DEEPEST) return KERNEL_WRONG(v, "loops nest deeper than %d", DEEPEST);
            open[depth++] = v->at;
        } else if (instr->kind == SMG_I_END) {
            if (depth == 0) return KERNEL_WRONG(v, "an end without a loop, of %d instructions", v->k->code.count);
            v->match[open[--depth]] = v->at;
        }
    }
    if (depth == 0) return SMG_OK;
    v->at = open[depth - 1];
    return KERNEL_WRONG(v, "the loop over axis '%s' has no end", axis_name(v, v->k->code.items[v->at].axes[0]));
}

static smg_status walk(kernel_verifier *v, int begin, int end);

typedef struct bound_axes {
    const kernel_verifier *v;
    int own; /* axis of the loop */
    smg_status status;
} bound_axes;

static void check_bound_leaf(void *user, int number) {
    bound_axes *b = user;
    const smg_kernel *k = b->v->k;
    const smg_kleaf *leaf = &k->leaves.items[number];
    if (leaf->what != SMG_KLEAF_IOTA && leaf->what != SMG_KLEAF_LOAD) return;
    const smg_access *access = &k->accesses.items[leaf->index];
    for (int i = 0; i < access->axis_count && b->status == SMG_OK; i++) {
        if (access->axis[i] == b->own)
            b->status = KERNEL_WRONG(b->v, "a bound of the loop over '%s' moves with its own steps",
                                     axis_name(b->v, access->axis[i]));
        else
            b->status = kernel_verify_bound(b->v, access->axis[i]);
    }
}

static smg_status check_bounds(kernel_verifier *v, const smg_instr *loop) {
    const smg_expr bound[] = {loop->range->from, loop->range->to};
    for (size_t i = 0; i < SMG_COUNT_OF(bound); i++) {
        bound_axes b = {.v = v, .own = loop->axes[0]};
        if (bound[i] == SMG_EXPR_NONE) continue;
        SMG_TRY(kernel_verify_expr(v, bound[i], SMG_KIND_INT));
        const char *wrong = smg_kernel_bound_wrong(v->k, bound[i]);
        if (wrong != NULL)
            return KERNEL_WRONG(v, "a bound of the loop over '%s' is no bound: %s", axis_name(v, loop->axes[0]), wrong);
        smg_expr_leaves(v->k->exprs, bound[i], check_bound_leaf, &b);
        SMG_TRY(b.status);
    }
    return smg_context_status(v->ctx);
}

/* Behind a loop that may have no step: what was there before and is still. */
static void skip_body(kernel_verifier *v, const kernel_tile_state *before) {
    for (int i = 0; i < v->k->tiles.count; i++) {
        kernel_tile_state *state = &v->tiles[i];
        state->set = state->set && before[i].set;
        for (int s = 0; s < SMG_SLOTS; s++)
            if (state->held[s] != before[i].held[s]) state->held[s] = 0;
        state->partial |= before[i].partial;
    }
}

static smg_status walk_loop(kernel_verifier *v, int loop) {
    int axis = v->k->code.items[loop].axes[0];
    const smg_kaxis *a = &v->k->axes.items[axis];
    if (a->grid || v->looped[axis])
        return KERNEL_WRONG(v, "a loop over axis '%s', which is %s", a->name,
                            a->grid ? "a grid axis" : "looped already");
    bool ranged = v->k->code.items[loop].range != NULL;
    size_t tiles = (size_t)v->k->tiles.count + 1;
    kernel_tile_state *before = ranged ? SMG_ARENA_ARRAY(v->arena, kernel_tile_state, tiles) : NULL;
    if (ranged && before == NULL) return SMG_MEMORY;
    if (ranged) {
        SMG_TRY(check_bounds(v, &v->k->code.items[loop]));
        memcpy(before, v->tiles, (tiles - 1) * sizeof *before);
    }
    v->looped[axis] = true;
    int steps = smg_kernel_walked_steps(v->k, axis);
    for (v->step[axis] = 0; v->step[axis] < steps; v->step[axis]++) SMG_TRY(walk(v, loop + 1, v->match[loop]));
    v->step[axis] = 0;
    v->looped[axis] = false;
    if (ranged) skip_body(v, before);
    for (int i = 0; i < v->k->tiles.count; i++) {
        const smg_tile *t = &v->k->tiles.items[i];
        if (smg_tile_has(t, axis) && v->most[axis] > a->tile) v->tiles[i].set = false; /* a slice of a closed loop */
        if (smg_tile_slots(t) > 1 && t->ring == axis) memset(v->tiles[i].held, 0, sizeof v->tiles[i].held);
    }
    return SMG_OK;
}

static smg_status walk(kernel_verifier *v, int begin, int end) {
    for (int at = begin; at < end; at++) {
        const smg_instr *instr = &v->k->code.items[at];
        v->at = at;
        SMG_TRY(instr->kind == SMG_I_LOOP ? walk_loop(v, at) : check_instr(v, instr));
        if (instr->kind == SMG_I_LOOP) at = v->match[at];
    }
    return SMG_OK;
}

static smg_status check_hazards(kernel_verifier *v) {
    smg_hazards *hazards;
    smg_hazard h;
    SMG_TRY(smg_hazards_make(v->k, v->arena, &hazards));
    if (!smg_hazards_find(hazards, &h)) return SMG_OK;
    const char *name = v->k->tiles.items[h.tile].name, *other = v->k->tiles.items[h.other].name;
    const char *verb = h.writes ? "written" : "read", *did = h.wrote ? "wrote" : "read";
    v->at = h.at;
    if (h.tile != h.other)
        return KERNEL_WRONG(v,
                            "shared tile '%s' is %s without a %s barrier after instruction %d %s '%s', on whose memory "
                            "it lies",
                            name, verb, smg_scope_word(h.scope), h.before, did, other);
    return KERNEL_WRONG(v, "shared tile '%s' is %s without a %s barrier after instruction %d %s it", name, verb,
                        smg_scope_word(h.scope), h.before, did);
}

smg_status kernel_verify_code(kernel_verifier *v) {
    SMG_TRY(kernel_verify_find_stores(v));
    smg_status status = match_loops(v);
    if (status == SMG_OK) status = walk(v, 0, v->k->code.count);
    if (status == SMG_OK) status = check_hazards(v);
    if (status == SMG_OK || status == SMG_MEMORY) return status;
    return smg_fail_within(v->ctx, status, "kernel '%s', instruction %d", v->k->name, v->at);
}
