/* The verifier of what lanes and subgroups give each other: sums that lanes hold in parts, joined by operations of the
 * subgroup or through words of shared memory. */
#include "kernel/kernel_verify.h"

/* The axes of an exchange, whose loops may be closed, behind those of the tile; and its layout. */
static smg_status exchange_axes(kernel_verifier *v, const smg_instr *instr, int number) {
    const smg_tile *tile = &v->k->tiles.items[number];
    SMG_TRY(kernel_verify_places(v, number));
    SMG_TRY(kernel_verify_axes(v, tile->axis, tile->axis_count, SMG_TILE_AXES));
    if (instr->axis_count < 1 || instr->axis_count > SMG_TILE_AXES || (unsigned)instr->combine >= SMG_COMBINE_COUNT)
        return KERNEL_WRONG(v, "tile '%s' is joined over %d axes by combine %d", tile->name, instr->axis_count,
                            (int)instr->combine);
    for (int i = 0; i < instr->axis_count; i++) {
        int axis = instr->axes[i];
        if (axis < 0 || axis >= v->k->axes.count || kernel_verify_has_axis(v->axes, v->axis_count, axis))
            return KERNEL_WRONG(v, "tile '%s' is joined over axis %d of %d, or over one twice", tile->name, axis,
                                v->k->axes.count);
        v->axes[v->axis_count++] = axis;
    }
    return kernel_verify_laid(v, instr, tile);
}

/* An operation of the subgroup that does what the layout asks for. */
static smg_status check_form(const kernel_verifier *v, const smg_instr *instr, uint32_t lanes) {
    uint32_t all = (uint32_t)v->k->subgroup - 1;
    bool fits = (unsigned)instr->form <= SMG_JOIN_XOR && lanes != 0;
    if (instr->form == SMG_JOIN_WHOLE) fits = fits && lanes == all;
    if (instr->form == SMG_JOIN_CLUSTERED) fits = fits && (lanes & (lanes + 1)) == 0;
    if (fits || instr->form == SMG_JOIN_OPEN) return SMG_OK;
    return KERNEL_WRONG(v, "the lanes that differ in bits %u of %u do not join by '%s'", lanes, all,
                        smg_join_word(instr->form));
}

static smg_status check_join(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
    const smg_tile *dst = &v->k->tiles.items[instr->dst];
    SMG_TRY(exchange_axes(v, instr, instr->dst));
    if (!smg_kernel_laid_out(v->k)) return SMG_OK;
    uint32_t shares = kernel_verify_lanes_along(v, instr), near = shares & ((uint32_t)v->k->subgroup - 1);
    if (!v->tiles[instr->dst].set || v->tiles[instr->dst].partial != shares)
        return KERNEL_WRONG(v, "tile '%s' is joined and holds no partial sums in those lanes", dst->name);
    SMG_TRY(check_form(v, instr, near));
    v->tiles[instr->dst].partial = instr->form == SMG_JOIN_OPEN ? 0 : shares & ~near;
    return SMG_OK;
}

/* What LEAVE, FOLD and GATHER have in common: a register tile in parts, words enough for the registers. */
static smg_status check_range(kernel_verifier *v, const smg_instr *instr, int tile, int words) {
    SMG_TRY(kernel_verify_tile(v, "what is exchanged", tile, SMG_REGISTER));
    SMG_TRY(kernel_verify_tile(v, "the exchange", words, SMG_EXCHANGE));
    const smg_tile *t = &v->k->tiles.items[tile], *x = &v->k->tiles.items[words];
    if (!smg_kernel_laid_out(v->k)) return KERNEL_WRONG(v, "'%s' is exchanged before it has a layout", t->name);
    SMG_TRY(exchange_axes(v, instr, tile));
    smg_exchange e = smg_kernel_exchange(v->k, instr);
    int64_t registers = smg_tile_registers(v->k, t), last = (int64_t)instr->first + instr->registers;
    if (instr->first < 0 || instr->registers < 1 || last > registers ||
        smg_exchange_word(&e, instr->registers, 0) > x->words || t->type != x->type)
        return KERNEL_WRONG(v, "registers %d to %lld of the %lld of '%s' do not fit the %d words of '%s', or its kind",
                            instr->first, (long long)last - 1, (long long)registers, t->name, x->words, x->name);
    uint32_t parts = e.parts * (uint32_t)e.width;
    if (!v->tiles[tile].set || parts == 0 || v->tiles[tile].partial != parts)
        return KERNEL_WRONG(v, "tile '%s' is exchanged and holds no parts in those subgroups", t->name);
    return SMG_OK;
}

static smg_status check_leave(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(check_range(v, instr, instr->a, instr->dst));
    v->tiles[instr->dst].left = v->at;
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* The words are those that an instruction of the same range has left. */
static smg_status check_left(kernel_verifier *v, const smg_instr *instr, int words) {
    SMG_TRY(kernel_verify_read_tile(v, words));
    const smg_instr *leave = &v->k->code.items[v->tiles[words].left];
    if (leave->first == instr->first && leave->registers == instr->registers && leave->layout == instr->layout)
        return SMG_OK;
    return KERNEL_WRONG(v, "the words of '%s' are of registers %d to %d by layout %d, left by instruction %d",
                        v->k->tiles.items[words].name, leave->first, leave->first + leave->registers - 1, leave->layout,
                        v->tiles[words].left);
}

/* Who folds reads words of others, and writes over none but one that it has read alone. */
static smg_status check_fold(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the exchange", instr->dst, SMG_EXCHANGE));
    SMG_TRY(check_left(v, instr, instr->dst));
    SMG_TRY(check_range(v, instr, v->k->code.items[v->tiles[instr->dst].left].a, instr->dst));
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* Has the register of the share, in all lanes, the element that they sum up for it? Coordinates add up over the bits of
 * a lane's number: of bits that all have the same part for, one at a time says it. */
static bool is_share(const kernel_verifier *v, const smg_instr *in, int reg) {
    const smg_tile *own = &v->k->tiles.items[in->dst], *left = &v->k->tiles.items[in->b];
    const smg_layout *to = &v->k->layouts.items[own->layout], *from = &v->k->layouts.items[left->layout];
    smg_exchange e = smg_kernel_exchange(v->k, in);
    bool same = e.width == 1 && own->axis_count == left->axis_count && own->type == left->type;
    for (int lane = 0; lane < v->k->lanes && same; lane++) {
        uint32_t others = (uint32_t)lane & ~e.parts;
        if (others != 0 && (others & (others - 1) || others != (uint32_t)lane)) continue;
        int part = 0, near = lane % v->k->subgroup, subgroup = lane / v->k->subgroup;
        for (uint32_t p = 0; p != ((uint32_t)lane & e.parts); p = smg_exchange_next(e.parts, p)) part++;
        int64_t of = in->first * e.part_count + (int64_t)part * in->registers + reg;
        for (int i = 0; i < own->axis_count && same; i++)
            same = smg_tile_has(left, own->axis[i]) &&
                   smg_layout_coordinate(to, own->axis[i], in->first + reg, near, subgroup) ==
                       smg_layout_coordinate(from, own->axis[i], of, near, subgroup);
    }
    return same;
}

/* Those that hold parts take a share each, into another tile. */
static smg_status check_shares(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the share", instr->dst, SMG_REGISTER));
    SMG_TRY(kernel_verify_tile(v, "what is shared out", instr->b, SMG_REGISTER));
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    const smg_instr *leave = &v->k->code.items[v->tiles[instr->a].left];
    const smg_tile *own = &v->k->tiles.items[instr->dst], *left = &v->k->tiles.items[instr->b];
    int64_t parts = smg_kernel_exchange(v->k, instr).part_count;
    kernel_tile_state *state = &v->tiles[instr->dst];
    SMG_TRY(check_range(v, leave, instr->b, instr->a));
    if (instr->dst == instr->b || leave->a != instr->b || leave->layout != instr->layout || instr->folded ||
        leave->first != instr->first * parts || leave->registers != instr->registers * parts)
        return KERNEL_WRONG(v, "'%s' takes shares of what '%s' has not left so", own->name, left->name);
    for (int r = 0; r < instr->registers; r++)
        if (!is_share(v, instr, r))
            return KERNEL_WRONG(v, "register %d of '%s' is no share of '%s'", instr->first + r, own->name, left->name);
    if (instr->first == 0) kernel_verify_write_tile(v, instr->dst);
    if (state->gathered != instr->first)
        return KERNEL_WRONG(v, "register %d of '%s' is gathered, and of those before it only %d", instr->first,
                            own->name, state->gathered);
    state->gathered += instr->registers;
    state->partial = 0;
    state->set = state->gathered == smg_tile_registers(v->k, own);
    return SMG_OK;
}

static smg_status check_gather(kernel_verifier *v, const smg_instr *instr) {
    if (instr->b >= 0) return check_shares(v, instr);
    SMG_TRY(check_range(v, instr, instr->dst, instr->a));
    SMG_TRY(check_left(v, instr, instr->a));
    kernel_tile_state *state = &v->tiles[instr->dst];
    if (state->gathered != instr->first)
        return KERNEL_WRONG(v, "register %d of '%s' is gathered, and of those before it only %d", instr->first,
                            v->k->tiles.items[instr->dst].name, state->gathered);
    state->gathered += instr->registers;
    if (state->gathered == smg_tile_registers(v->k, &v->k->tiles.items[instr->dst])) state->partial = 0;
    return SMG_OK;
}

/* ---- opaque sums ------------------------------------------------------------------------------------ */

/* Whole matrices, and words enough for those of all subgroups. */
static smg_status check_matrices(const kernel_verifier *v, const smg_instr *instr, int tile, int words) {
    SMG_TRY(kernel_verify_tile(v, "what is left", tile, SMG_REGISTER));
    SMG_TRY(kernel_verify_tile(v, "the exchange", words, SMG_EXCHANGE));
    const smg_tile *t = &v->k->tiles.items[tile], *x = &v->k->tiles.items[words];
    int row, col;
    if (!smg_matrix_hides(v->k, t) || !smg_matrix_sides(v->k, t, &row, &col))
        return KERNEL_WRONG(v, "'%s' is no tile of whole opaque matrices, and is left as such", t->name);
    int64_t elements = smg_matrix_elements(&v->k->matrix, SMG_FRAGMENTS_SUMS);
    int64_t registers = smg_tile_registers(v->k, t), last = (int64_t)instr->first + instr->registers;
    int64_t needed = instr->registers / elements * v->k->matrix.rows * v->k->matrix.cols;
    if (instr->first < 0 || instr->registers < 1 || instr->first % elements != 0 || instr->registers % elements != 0 ||
        last > registers || needed > smg_matrix_words(v->k, x) || x->type != t->type)
        return KERNEL_WRONG(v,
                            "registers %d to %lld of the %lld of '%s' are no whole matrices, or do not fit the %d "
                            "words of '%s'",
                            instr->first, (long long)last - 1, (long long)registers, t->name, x->words, x->name);
    return SMG_OK;
}

static smg_status check_leave_matrices(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(check_matrices(v, instr, instr->a, instr->dst));
    v->apart = ~UINT32_C(0); /* each subgroup leaves its own part */
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    v->tiles[instr->dst].left = v->at;
    kernel_verify_write_tile(v, instr->dst);
    return SMG_OK;
}

/* The words are those of the same matrices, and dst has its elements in the subgroup that has left them. */
static smg_status check_moved(const kernel_verifier *v, const smg_instr *instr) {
    const smg_instr *leave = &v->k->code.items[v->tiles[instr->a].left];
    const smg_tile *dst = &v->k->tiles.items[instr->dst], *of = &v->k->tiles.items[instr->b];
    if (!leave->matrices || leave->a != instr->b || leave->first != instr->first ||
        leave->registers != instr->registers)
        return KERNEL_WRONG(v, "'%s' takes registers %d to %d of '%s', which instruction %d has not left", dst->name,
                            instr->first, instr->first + instr->registers - 1, of->name, v->tiles[instr->a].left);
    bool same = dst->fragments == SMG_FRAGMENTS_NONE && dst->type == of->type && dst->layout == of->layout &&
                dst->axis_count == of->axis_count;
    for (int i = 0; same && i < dst->axis_count; i++) same = smg_tile_has(of, dst->axis[i]);
    return same ? SMG_OK : KERNEL_WRONG(v, "'%s' and '%s' differ in type, axes or layout", dst->name, of->name);
}

static smg_status check_gather_matrices(kernel_verifier *v, const smg_instr *instr) {
    SMG_TRY(kernel_verify_tile(v, "the result", instr->dst, SMG_REGISTER));
    SMG_TRY(check_matrices(v, instr, instr->b, instr->a));
    SMG_TRY(kernel_verify_read_tile(v, instr->a));
    SMG_TRY(check_moved(v, instr));
    kernel_tile_state *state = &v->tiles[instr->dst];
    const char *name = v->k->tiles.items[instr->dst].name;
    uint32_t parts = v->tiles[instr->b].partial;
    if (instr->first == 0 && instr->accumulate && !state->set)
        return KERNEL_WRONG(v, "sums are added to '%s', which nothing has written", name);
    if (instr->first == 0 && instr->accumulate && (state->partial & ~parts) != 0)
        return KERNEL_WRONG(v, "the partial sums of '%s' lie in other lanes already", name);
    if (instr->first == 0) kernel_verify_write_tile(v, instr->dst);
    if (state->gathered != instr->first)
        return KERNEL_WRONG(v, "register %d of '%s' is gathered, and of those before it only %d", instr->first, name,
                            state->gathered);
    state->gathered += instr->registers;
    state->partial = parts;
    state->set = state->gathered == smg_tile_registers(v->k, &v->k->tiles.items[instr->dst]);
    if (state->set) state->gathered = 0; /* what joins their parts begins anew */
    return SMG_OK;
}

smg_status kernel_verify_exchange(kernel_verifier *v, const smg_instr *instr) {
    if (instr->matrices)
        return instr->kind == SMG_I_LEAVE ? check_leave_matrices(v, instr) : check_gather_matrices(v, instr);
    switch (instr->kind) {
    case SMG_I_JOIN: return check_join(v, instr);
    case SMG_I_LEAVE: return check_leave(v, instr);
    case SMG_I_FOLD: return check_fold(v, instr);
    default: return check_gather(v, instr);
    }
}
