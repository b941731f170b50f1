/* The verifier, first part: declarations. Every index, size and name of the kernel is checked here, in the
 * order in which later checks rely on them; kernel_verify_code.c then walks the program. */
#include "kernel/kernel_verify.h"

static smg_status verify_lanes(const kernel_verifier *v) {
    const smg_kernel *k = v->k;
    if (k->lanes > 4096 || !smg_is_power_of_two(k->lanes))
        return KERNEL_WRONG(v, "%d lanes: must be a power of two up to 4096", k->lanes);
    if (!smg_is_power_of_two(k->subgroup) || k->subgroup > k->lanes)
        return KERNEL_WRONG(v, "subgroups of %d in %d lanes: must be a power of two, and no more", k->subgroup,
                            k->lanes);
    return SMG_OK;
}

static smg_status verify_layouts(const kernel_verifier *v) {
    for (int i = 0; i < v->k->layouts.count; i++) {
        const smg_layout *layout = &v->k->layouts.items[i];
        const char *why;
        if (!smg_layout_valid(layout, &why)) return KERNEL_WRONG(v, "layout %d: %s", i, why);
        int64_t lanes = smg_layout_numbers(layout, SMG_LAYOUT_LANE);
        int64_t subgroups = smg_layout_numbers(layout, SMG_LAYOUT_SUBGROUP);
        if (lanes != v->k->subgroup || lanes * subgroups != v->k->lanes)
            return KERNEL_WRONG(v, "layout %d has %lld subgroups of %lld lanes, the kernel %d lanes in subgroups of %d",
                                i, (long long)subgroups, (long long)lanes, v->k->lanes, v->k->subgroup);
        for (int a = 0; a < layout->axis_count; a++)
            if (layout->axes[a].axis < 0 || layout->axes[a].axis >= v->k->axes.count)
                return KERNEL_WRONG(v, "layout %d names axis %d of %d", i, layout->axes[a].axis, v->k->axes.count);
    }
    return SMG_OK;
}

smg_status kernel_verify_layout(const kernel_verifier *v, const char *what, int number, const int *axes, int count) {
    if (!smg_kernel_laid_out(v->k) && number == -1) return SMG_OK;
    if (number < 0 || number >= v->k->layouts.count)
        return KERNEL_WRONG(v, "%s has layout %d of %d", what, number, v->k->layouts.count);
    const smg_layout *layout = &v->k->layouts.items[number];
    for (int i = 0; i < count; i++) {
        const smg_kaxis *axis = &v->k->axes.items[axes[i]];
        if (smg_layout_span(layout, axes[i]) < axis->tile)
            return KERNEL_WRONG(v, "layout %d of %s spans %lld of the %lld elements of axis '%s'", number, what,
                                (long long)smg_layout_span(layout, axes[i]), (long long)axis->tile, axis->name);
    }
    for (int i = 0; i < layout->axis_count; i++) {
        bool has = false;
        for (int n = 0; n < count; n++) has = has || axes[n] == layout->axes[i].axis;
        if (!has)
            return KERNEL_WRONG(v, "layout %d of %s has axis '%s', which that has not", number, what,
                                v->k->axes.items[layout->axes[i].axis].name);
    }
    return SMG_OK;
}

static smg_status verify_axes(kernel_verifier *v) {
    const smg_kernel *k = v->k;
    for (int i = 0; i < k->axes.count; i++) {
        const smg_kaxis *axis = &k->axes.items[i];
        int64_t low = 0;
        int listed = 0;
        if (!axis->name || axis->extent < 0 || axis->tile < 1)
            return KERNEL_WRONG(v, "axis %d ('%s') lacks a name, an extent or a tile of at least 1 (%lld)", i,
                                axis->name ? axis->name : "", (long long)axis->tile);
        smg_size_bounds(k->sizes, axis->extent, &low, &v->most[i]);
        for (int g = 0; g < k->grid.count; g++) listed += k->grid.items[g] == i;
        if (axis->back && !axis->grid)
            return KERNEL_WRONG(v, "axis '%s' goes backwards, and is not a grid axis", axis->name);
        if (listed != (axis->grid ? 1 : 0))
            return KERNEL_WRONG(v, "axis '%s' is %sa grid axis and stands %d times in the grid", axis->name,
                                axis->grid ? "" : "not ", listed);
    }
    for (int g = 0; g < k->grid.count; g++)
        if (k->grid.items[g] < 0 || k->grid.items[g] >= k->axes.count)
            return KERNEL_WRONG(v, "the grid names axis %d of %d", k->grid.items[g], k->axes.count);
    if (k->band < 0 || k->band > INT32_MAX || (k->band > 0 && k->grid.count < 2))
        return KERNEL_WRONG(v, "bands of %lld blocks, of %d grid axes", (long long)k->band, k->grid.count);
    return SMG_OK;
}

static smg_status verify_axis_list(const kernel_verifier *v, const char *what, const int *axes, int count, int most) {
    if (count < 0 || count > most) return KERNEL_WRONG(v, "%s has %d axes, outside [0, %d]", what, count, most);
    for (int i = 0; i < count; i++) {
        if (axes[i] < 0 || axes[i] >= v->k->axes.count)
            return KERNEL_WRONG(v, "%s names axis %d of %d", what, axes[i], v->k->axes.count);
        for (int j = 0; j < i; j++)
            if (axes[j] == axes[i])
                return KERNEL_WRONG(v, "%s names axis '%s' twice", what, v->k->axes.items[axes[i]].name);
    }
    return SMG_OK;
}

/* The access of a view moves along the tile's axes, or along axes of one element at a time. */
static smg_status verify_view(const kernel_verifier *v, const smg_tile *tile) {
    if (tile->access < 0 || tile->access >= v->k->accesses.count)
        return KERNEL_WRONG(v, "tile '%s' is a view of access %d of %d", tile->name, tile->access,
                            v->k->accesses.count);
    const smg_access *access = &v->k->accesses.items[tile->access];
    if (access->buffer < 0 || access->buffer >= v->k->buffers.count || access->index != SMG_EXPR_NONE)
        return KERNEL_WRONG(v, "tile '%s' is a view of an access without buffer, or with an index", tile->name);
    const smg_kbuffer *buffer = &v->k->buffers.items[access->buffer];
    int down, along;
    if (smg_type_kind(buffer->type) != SMG_KIND_FLOAT || buffer->written || tile->type != SMG_TYPE_F32)
        return KERNEL_WRONG(v, "tile '%s' is a view of buffer '%s', which is not of floats, or written", tile->name,
                            buffer->name);
    bool sized = v->k->layouts.count > 0;
    if (smg_kbuffer_is_blocked(buffer) &&
        (buffer->block[0] > 1 || (sized && !smg_access_by_blocks(v->k, access, &down, &along))))
        return KERNEL_WRONG(v,
                            "tile '%s' is a view of buffer '%s', which is in blocks of several rows, or not read by "
                            "whole ones",
                            tile->name, buffer->name);
    for (int a = 0; a < access->axis_count && a < SMG_ACCESS_AXES; a++) {
        int axis = access->axis[a];
        bool has = axis < 0 || axis >= v->k->axes.count || v->k->axes.items[axis].tile == 1;
        for (int i = 0; i < tile->axis_count; i++) has = has || tile->axis[i] == axis;
        if (!has)
            return KERNEL_WRONG(v, "tile '%s' lacks axis '%s' of what it is a view of", tile->name,
                                v->k->axes.items[axis].name);
    }
    return SMG_OK;
}

/* Where an axis might be empty there is no last element. */
static smg_status verify_clamped(const kernel_verifier *v, const smg_tile *tile) {
    uint64_t own = 0;
    for (int i = 0; i < tile->axis_count; i++) {
        int axis = tile->axis[i];
        if (!smg_tile_clamps(tile, axis)) continue;
        own |= UINT64_C(1) << axis;
        if (!smg_kernel_axis_ends(v->k, axis))
            return KERNEL_WRONG(v, "tile '%s' is clamped along axis '%s', which may be empty", tile->name,
                                v->k->axes.items[axis].name);
    }
    if (tile->clamped != own || (own != 0 && tile->residence != SMG_SHARED && tile->residence != SMG_STAGING))
        return KERNEL_WRONG(v, "tile '%s' is clamped along axes it does not have, or is not staged", tile->name);
    return SMG_OK;
}

/* Lanes compute in 32 bits: shorter floats are what shared memory and slices on their way there hold. */
static smg_status verify_type(const kernel_verifier *v, const smg_tile *tile) {
    bool factor = tile->fragments == SMG_FRAGMENTS_LEFT || tile->fragments == SMG_FRAGMENTS_RIGHT;
    bool staged = tile->residence == SMG_SHARED || tile->residence == SMG_STAGING || factor;
    bool computed = tile->type == smg_kind_type(smg_tile_kind(tile));
    if (!computed && (!staged || smg_tile_kind(tile) != SMG_KIND_FLOAT))
        return KERNEL_WRONG(
            v, "tile '%s' is of %s; only shared and staging tiles and factors of matrices hold floats of 16 bits",
            tile->name, smg_tile_word(tile->type));
    for (int i = 0; tile->memory > 0 && i < v->k->tiles.count; i++) {
        const smg_tile *other = &v->k->tiles.items[i];
        if (other->memory == tile->memory && other->type != tile->type)
            return KERNEL_WRONG(v, "tiles '%s' and '%s' lie on one memory and are of %s and %s", tile->name,
                                other->name, smg_tile_word(tile->type), smg_tile_word(other->type));
    }
    return SMG_OK;
}

/* Slots that are numbers lie on the same slots of the other tiles of their memory. */
static smg_status verify_common_slots(const kernel_verifier *v, const smg_tile *tile) {
    for (int i = 0; tile->memory > 0 && i < v->k->tiles.count; i++) {
        const smg_tile *other = &v->k->tiles.items[i];
        if (other->memory != tile->memory || smg_tiles_slot_alike(v->k, tile, other)) continue;
        return KERNEL_WRONG(v,
                            "tile '%s' of %d slots lies on the memory of tile '%s' of %d; there both have as many, and "
                            "loops over their axes are written out by so many steps",
                            tile->name, smg_tile_slots(tile), other->name, smg_tile_slots(other));
    }
    return SMG_OK;
}

/* Registers have no index that is known only when the kernel runs: who reads the tile in which loop. */
static smg_status variable_slot(const kernel_verifier *v, const smg_tile *tile) {
    int number = (int)(tile - v->k->tiles.items), loop = -1, reader = -1;
    for (int i = 0; i < v->k->code.count && reader < 0; i++) {
        const smg_instr *in = &v->k->code.items[i];
        if (in->kind == SMG_I_LOOP && in->axis_count == 1 && in->axes[0] == tile->ring &&
            (in->unroll < 2 || in->unroll % tile->slots != 0 || in->range != NULL))
            loop = i;
        bool reads = (smg_instr_reads_a(in) && in->a == number) || (in->kind == SMG_I_MMA && in->b == number);
        if (loop >= 0 && reads) reader = i;
    }
    const char *axis = v->k->axes.items[tile->ring].name;
    if (reader < 0)
        return KERNEL_WRONG(v, "tile '%s' has %d slots in registers along axis '%s', and no loop over it goes by them",
                            tile->name, tile->slots, axis);
    return KERNEL_WRONG(v,
                        "instruction %d reads one of the %d slots that tile '%s' has in registers, by the step of the "
                        "loop over '%s' of instruction %d, which is not written out by so many: a slot's number is a "
                        "variable",
                        reader, tile->slots, tile->name, axis, loop);
}

static smg_status verify_slots(const kernel_verifier *v, const smg_tile *tile) {
    if (tile->slots == 0) return SMG_OK;
    bool factor = tile->fragments == SMG_FRAGMENTS_LEFT || tile->fragments == SMG_FRAGMENTS_RIGHT;
    bool shared = tile->residence == SMG_SHARED;
    if ((!shared && tile->residence != SMG_STAGING && !factor) || tile->slots < 2 || tile->slots > SMG_SLOTS)
        return KERNEL_WRONG(v,
                            "tile '%s' has %d slots; shared tiles, staging tiles and factors of matrices have them, "
                            "2 to %d",
                            tile->name, tile->slots, SMG_SLOTS);
    if (tile->ring < 0 || tile->ring >= v->k->axes.count || v->k->axes.items[tile->ring].grid)
        return KERNEL_WRONG(v, "tile '%s' has slots along axis %d of %d, or along one of the grid", tile->name,
                            tile->ring, v->k->axes.count);
    SMG_TRY(verify_common_slots(v, tile));
    return shared || smg_kernel_steps_known(v->k, tile->ring, tile->slots) ? SMG_OK : variable_slot(v, tile);
}

/* The whole has every element that a step of the loop asks for, zeros behind the end included. */
static smg_status verify_slice(const kernel_verifier *v, const smg_tile *tile) {
    const smg_kernel *k = v->k;
    if (!tile->sliced) return SMG_OK;
    if (tile->of < 0 || tile->of >= k->tiles.count || tile->along < 0 || tile->along >= k->axes.count)
        return KERNEL_WRONG(v, "tile '%s' is a slice of tile %d of %d along axis %d of %d", tile->name, tile->of,
                            k->tiles.count, tile->along, k->axes.count);
    const smg_tile *of = &k->tiles.items[tile->of];
    bool same = tile->residence == SMG_SHARED && of->residence == SMG_SHARED && !of->sliced && of->type == tile->type &&
                smg_tile_slots(tile) == 1 && smg_tile_slots(of) == 1 && tile->pad == 0 && tile->memory == 0 &&
                tile->clamped == 0 && of->axis_count == tile->axis_count && smg_tile_has(tile, tile->ring);
    for (int i = 0; same && i < tile->axis_count; i++)
        same = of->axis[i] == (tile->axis[i] == tile->ring ? tile->along : tile->axis[i]);
    if (!same)
        return KERNEL_WRONG(v, "tile '%s' and '%s', of which it is a slice, differ in more than one axis", tile->name,
                            of->name);
    const smg_kaxis *ring = &k->axes.items[tile->ring], *along = &k->axes.items[tile->along];
    int64_t elements = (v->most[tile->ring] + ring->tile - 1) / ring->tile * ring->tile;
    if (along->grid || along->extent != ring->extent || along->tile < elements)
        return KERNEL_WRONG(v, "'%s' has %lld elements along axis '%s', of which slices along '%s' ask for %lld",
                            of->name, (long long)along->tile, along->name, ring->name, (long long)elements);
    return SMG_OK;
}

/* Whole blocks of whole rows: then no element is behind the buffer's end. */
static smg_status verify_blocks(const kernel_verifier *v, const smg_kbuffer *buffer) {
    int64_t elements, rows = buffer->block[0], cols = buffer->block[1], by;
    if (rows == 0 && cols == 0) return SMG_OK;
    bool good = rows > 0 && cols > 0 && buffer->row > 0 && buffer->row % cols == 0 &&
                smg_type_kind(buffer->type) == SMG_KIND_FLOAT && smg_mul_i64(rows, buffer->row, &by) &&
                smg_size_is_const(v->k->sizes, buffer->elements, &elements) && elements % by == 0;
    if (good && buffer->each != NULL) good = buffer->stride % by == 0;
    if (good) return SMG_OK;
    return KERNEL_WRONG(v, "buffer '%s' is no floats in whole blocks of %lld x %lld, of rows of %lld", buffer->name,
                        (long long)rows, (long long)cols, (long long)buffer->row);
}

/* Whole runs of the matrices' order. */
static smg_status verify_runs(const kernel_verifier *v, const smg_tile *tile) {
    const smg_matrix *m = &v->k->matrix;
    if (!tile->in_runs) return SMG_OK;
    bool good = tile->residence == SMG_SHARED && !tile->sliced && tile->axis_count > 0 && m->rows > 0 &&
                m->left.axis_count > 0 && m->right.axis_count > 0 && tile->type == m->type;
    int64_t extent = good ? v->k->axes.items[tile->axis[tile->axis_count - 1]].tile : 0;
    if (good && extent % (INT64_C(1) << smg_matrix_in_runs(m).run) == 0) return SMG_OK;
    return KERNEL_WRONG(v,
                        "tile '%s' lies in runs; only shared ones of a matrix's type do, of a multiple of its runs "
                        "along their last axis, where lanes have both factors by runs",
                        tile->name);
}

static smg_status verify_tiles(const kernel_verifier *v) {
    for (int i = 0; i < v->k->tiles.count; i++) {
        const smg_tile *tile = &v->k->tiles.items[i];
        if (!tile->name || (unsigned)tile->type >= SMG_TYPE_COUNT || (unsigned)tile->residence > SMG_EXCHANGE)
            return KERNEL_WRONG(v, "tile %d lacks a name, or its type %d or residence %d does not exist", i,
                                (int)tile->type, (int)tile->residence);
        SMG_TRY(verify_axis_list(v, tile->name, tile->axis, tile->axis_count, SMG_TILE_AXES));
        if (tile->pad < 0 || (tile->pad > 0 && tile->residence != SMG_SHARED))
            return KERNEL_WRONG(v, "tile '%s' has pad %d; only shared tiles have one", tile->name, tile->pad);
        if (tile->residence == SMG_VIEW) SMG_TRY(verify_view(v, tile));
        if ((tile->residence == SMG_EXCHANGE) != (tile->words > 0) || (tile->words > 0 && tile->axis_count > 0))
            return KERNEL_WRONG(v, "tile '%s' has %d words and %d axes; exchanges have words and no axes", tile->name,
                                tile->words, tile->axis_count);
        if (tile->residence == SMG_REGISTER)
            SMG_TRY(kernel_verify_layout(v, tile->name, tile->layout, tile->axis, tile->axis_count));
        SMG_TRY(kernel_verify_fragments(v, tile));
        if (tile->memory < 0 ||
            (tile->memory > 0 && (tile->residence != SMG_SHARED || smg_tile_kind(tile) != SMG_KIND_FLOAT)))
            return KERNEL_WRONG(v, "tile '%s' lies on memory %d; only shared tiles of floats share one", tile->name,
                                tile->memory);
        SMG_TRY(verify_type(v, tile));
        SMG_TRY(verify_clamped(v, tile));
        SMG_TRY(verify_slots(v, tile));
        SMG_TRY(verify_slice(v, tile));
        SMG_TRY(verify_runs(v, tile));
        if (smg_tile_elements(v->k, tile) > INT32_MAX)
            return KERNEL_WRONG(v, "tile '%s' has more than %d elements", tile->name, INT32_MAX);
    }
    for (int i = 0; i < v->k->buffers.count; i++) {
        const smg_kbuffer *buffer = &v->k->buffers.items[i];
        if (!buffer->name || (unsigned)buffer->type >= SMG_TYPE_COUNT || buffer->elements < 0)
            return KERNEL_WRONG(v, "buffer %d ('%s') lacks a name, a type or a size", i,
                                buffer->name ? buffer->name : "");
        SMG_TRY(verify_blocks(v, buffer));
    }
    return SMG_OK;
}

static smg_status verify_picks(const kernel_verifier *v, int number) {
    const smg_kleaf *leaf = &v->k->leaves.items[number];
    int axes = v->k->axes.count;
    if (leaf->pick_count < 0 || leaf->pick_count > (leaf->what == SMG_KLEAF_TILE ? SMG_LAYOUT_PICKS : 0))
        return KERNEL_WRONG(v, "leaf %d picks along %d axes", number, leaf->pick_count);
    for (int i = 0; i < leaf->pick_count; i++) {
        const smg_layout_pick *p = &leaf->pick[i];
        if (p->axis < 0 || p->axis >= axes || p->from < -1 || p->from >= axes)
            return KERNEL_WRONG(v, "leaf %d picks along axes %d and %d of %d", number, p->axis, p->from, axes);
        if (smg_kleaf_pick(leaf, p->axis) != p)
            return KERNEL_WRONG(v, "leaf %d picks along axis %d twice", number, p->axis);
    }
    return SMG_OK;
}

static smg_status verify_leaves(const kernel_verifier *v) {
    const smg_kernel *k = v->k;
    for (int i = 0; i < k->leaves.count; i++) {
        const smg_kleaf *leaf = &k->leaves.items[i];
        bool tile = leaf->what == SMG_KLEAF_TILE, size = leaf->what == SMG_KLEAF_SIZE;
        int count = tile ? k->tiles.count : k->accesses.count;
        if ((unsigned)leaf->what > SMG_KLEAF_SIZE || (!size && (leaf->index < 0 || leaf->index >= count)))
            return KERNEL_WRONG(v, "leaf %d: %s %d of %d", i, tile ? "tile" : "access", leaf->index, count);
        if (size && (leaf->size < 0 || leaf->kind == SMG_KIND_BOOL))
            return KERNEL_WRONG(v, "leaf %d is a size without a value or of kind bool", i);
        smg_kind kind = size ? leaf->kind : SMG_KIND_INT;
        int buffer = leaf->what == SMG_KLEAF_LOAD ? k->accesses.items[leaf->index].buffer : 0;
        if (buffer < 0) return KERNEL_WRONG(v, "leaf %d loads from access %d, which has no buffer", i, leaf->index);
        SMG_TRY(verify_picks(v, i));
        if (tile) kind = smg_tile_kind(&k->tiles.items[leaf->index]);
        if (leaf->what == SMG_KLEAF_LOAD) kind = smg_type_kind(k->buffers.items[buffer].type);
        if (leaf->kind != kind)
            return KERNEL_WRONG(v, "leaf %d has kind %d, what it reads has kind %d", i, (int)leaf->kind, (int)kind);
    }
    return SMG_OK;
}

static smg_status verify_access(const kernel_verifier *v, int number) {
    const smg_access *access = &v->k->accesses.items[number];
    if (access->buffer < -1 || access->buffer >= v->k->buffers.count)
        return KERNEL_WRONG(v, "access %d: buffer %d of %d", number, access->buffer, v->k->buffers.count);
    if (access->axis_count < 0 || access->axis_count > SMG_ACCESS_AXES)
        return KERNEL_WRONG(v, "access %d has %d axes, at most %d", number, access->axis_count, SMG_ACCESS_AXES);
    SMG_TRY(verify_axis_list(v, "an access", access->axis, access->axis_count, SMG_ACCESS_AXES));
    bool sized = access->offset >= 0;
    for (int a = 0; a < access->axis_count; a++) sized = sized && access->stride[a] >= 0;
    if (access->index != SMG_EXPR_NONE) sized = sized && access->index_stride >= 0 && access->index_limit >= 0;
    if (!sized) return KERNEL_WRONG(v, "access %d lacks an offset, a stride or a limit", number);
    return SMG_OK;
}

static smg_status verify_evens(const kernel_verifier *v) {
    if (v->k->evens.count > SMG_KERNEL_EVENS)
        return KERNEL_WRONG(v, "%d sizes of an even form, more than %d", v->k->evens.count, SMG_KERNEL_EVENS);
    for (int i = 0; i < v->k->evens.count; i++) {
        const smg_even *even = &v->k->evens.items[i];
        if (even->size < 0 || even->by < 2)
            return KERNEL_WRONG(v, "the even form asks for multiples of %lld", (long long)even->by);
    }
    for (int i = 0; i < v->k->sure.count; i++) {
        const smg_expr_node *n = smg_expr_get(v->k->exprs, v->k->sure.items[i]);
        if (v->k->evens.count == 0 || n->kind != SMG_KIND_BOOL)
            return KERNEL_WRONG(v, "what is sure in the even form is no condition, or there is no such form");
    }
    return SMG_OK;
}

static smg_status verify_declarations(kernel_verifier *v) {
    SMG_TRY(verify_lanes(v));
    SMG_TRY(verify_axes(v));
    SMG_TRY(verify_layouts(v));
    SMG_TRY(kernel_verify_matrix(v));
    SMG_TRY(verify_tiles(v));
    for (int i = 0; i < v->k->accesses.count; i++) SMG_TRY(verify_access(v, i));
    SMG_TRY(verify_leaves(v));
    SMG_TRY(verify_evens(v));
    for (int i = 0; i < v->k->accesses.count; i++)
        if (v->k->accesses.items[i].index != SMG_EXPR_NONE)
            SMG_TRY(kernel_verify_expr(v, v->k->accesses.items[i].index, SMG_KIND_INT));
    return SMG_OK;
}

static smg_status make_state(kernel_verifier *v) {
    const smg_kernel *k = v->k;
    v->most = SMG_ARENA_ARRAY(v->arena, int64_t, (size_t)k->axes.count + 1);
    v->looped = SMG_ARENA_ARRAY(v->arena, bool, (size_t)k->axes.count + 1);
    v->step = SMG_ARENA_ARRAY(v->arena, int, (size_t)k->axes.count + 1);
    v->checked = SMG_ARENA_ARRAY(v->arena, bool, (size_t)smg_expr_count(k->exprs) + 1);
    v->visited = SMG_ARENA_ARRAY(v->arena, int, (size_t)smg_expr_count(k->exprs) + 1);
    v->access_state = SMG_ARENA_ARRAY(v->arena, int, (size_t)k->accesses.count + 1);
    v->match = SMG_ARENA_ARRAY(v->arena, int, (size_t)k->code.count + 1);
    v->tiles = SMG_ARENA_ARRAY(v->arena, kernel_tile_state, (size_t)k->tiles.count + 1);
    bool good = v->most && v->looped && v->step && v->checked && v->visited && v->access_state && v->match && v->tiles;
    return good ? SMG_OK : SMG_MEMORY;
}

static smg_status verify(kernel_verifier *v) {
    SMG_TRY(make_state(v));
    smg_status status = verify_declarations(v);
    if (status == SMG_OK) return kernel_verify_code(v);
    return status == SMG_MEMORY ? status : smg_fail_within(v->ctx, status, "kernel '%s'", v->k->name);
}

smg_status smg_kernel_verify(smg_context *ctx, const smg_kernel *k) {
    kernel_verifier v = {.ctx = ctx, .k = k};
    if (!k->name || !k->sizes || !k->exprs)
        return smg_fail(ctx, SMG_INTERNAL, "kernel '%s' lacks its name, sizes or expressions", k->name ? k->name : "");
    SMG_TRY(smg_arena_create(ctx, &v.arena));
    smg_status status = verify(&v);
    smg_arena_destroy(v.arena);
    return status;
}
