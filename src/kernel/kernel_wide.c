/* Neighbours at once. Where elements along one axis lie side by side and everything else that moves the address moves
 * it by whole groups of them, a group is one aligned access of memory. Sizes that only a run knows (rows as long as a
 * sequence) may decide that; then both ways are written, and the run takes one. */
#include <math.h>

#include "kernel/kernel.h"

#define GROUP_BYTES 16 /* the most that one access of memory takes */
#define PAIR_BYTES 4

static smg_aligned multiple_of(const smg_kernel *k, smg_size size, int width) {
    smg_size quotient;
    if (smg_size_divide_exact(k->sizes, size, smg_size_const(k->sizes, width), &quotient)) return SMG_ALIGNED_ALWAYS;
    return smg_size_is_const(k->sizes, size, NULL) ? SMG_ALIGNED_NEVER : SMG_ALIGNED_BY_SIZES;
}

/* Is the index one of a few numbers, each of which begins a group or says that the element is absent? */
static bool begins_groups(const smg_kernel *k, smg_expr index, int width) {
    const smg_expr_node *n = smg_expr_get(k->exprs, index);
    if (n->prim == SMG_PRIM_SELECT) return begins_groups(k, n->arg[1], width) && begins_groups(k, n->arg[2], width);
    return n->prim == SMG_PRIM_CONST && (n->value == SMG_INDEX_ABSENT || fmod(n->value, width) == 0);
}

/* Has a group one index, and does each index begin a group? */
static bool indexes_groups(const smg_kernel *k, const smg_access *access, smg_wide wide) {
    bool whole = multiple_of(k, access->index_stride, wide.width) == SMG_ALIGNED_ALWAYS;
    return (whole || begins_groups(k, access->index, wide.width)) && !smg_access_index_moves(k, access, wide.axis);
}

smg_aligned smg_access_aligned(const smg_kernel *k, int number, smg_wide wide) {
    const smg_access *access = &k->accesses.items[number];
    const smg_kaxis *along = &k->axes.items[wide.axis];
    bool unit = false;
    if (access->buffer < 0 || along->tile % wide.width != 0) return SMG_ALIGNED_NEVER;
    if (access->index != SMG_EXPR_NONE && !indexes_groups(k, access, wide)) return SMG_ALIGNED_NEVER;
    smg_type type = k->buffers.items[access->buffer].type;
    int64_t bytes = wide.width * smg_type_device_bytes(type);
    if (smg_type_kind(type) != SMG_KIND_FLOAT || bytes > GROUP_BYTES || (wide.width == SMG_PAIR && bytes != PAIR_BYTES))
        return SMG_ALIGNED_NEVER;
    if (k->buffers.items[access->buffer].block[1] % wide.width != 0) return SMG_ALIGNED_NEVER;
    smg_aligned least = multiple_of(k, access->offset, wide.width);
    smg_aligned extent = multiple_of(k, along->extent, wide.width);
    if (extent < least) least = extent;
    for (int i = 0; i < access->axis_count; i++) {
        smg_aligned stride = multiple_of(k, access->stride[i], wide.width);
        if (access->axis[i] == wide.axis && smg_size_is_one(k->sizes, access->stride[i]))
            unit = true;
        else if (stride < least)
            least = stride;
    }
    return unit ? least : SMG_ALIGNED_NEVER;
}

bool smg_kernel_loads_groups(const smg_kernel *k, int leaf, smg_wide wide) {
    const smg_kleaf *f = &k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD || k->buffers.items[k->accesses.items[f->index].buffer].written) return false;
    return smg_access_aligned(k, f->index, wide) == SMG_ALIGNED_ALWAYS;
}

/* ---- blocks ------------------------------------------------------------------------------------------------ */

bool smg_kbuffer_is_blocked(const smg_kbuffer *buffer) {
    return buffer->block[0] > 0;
}

static bool in_blocks(const smg_kernel *k, int axis, int block) {
    int64_t extent, tile = k->axes.items[axis].tile;
    return tile % block == 0 || (smg_size_is_const(k->sizes, k->axes.items[axis].extent, &extent) && extent <= tile);
}

int64_t smg_kbuffer_tensor_elements(const smg_kernel *k, const smg_kbuffer *buffer) {
    int64_t elements = 0;
    if (buffer->each != NULL) return buffer->stride;
    return smg_size_is_const(k->sizes, buffer->elements, &elements) ? elements : 0;
}

/* How far an access goes along a row, and from row to row; how long a row is. */
typedef struct block_reach {
    int64_t along, down, row;
} block_reach;

/* By elements or whole blocks along a row, by rows or whole blocks from row to row, or from one tensor to the next. */
static bool term_by_blocks(const smg_kernel *k, const smg_access *access, int term, block_reach *io) {
    const smg_kbuffer *b = &k->buffers.items[access->buffer];
    int64_t stride, extent, tensor = smg_kbuffer_tensor_elements(k, b);
    if (!smg_size_is_const(k->sizes, access->stride[term], &stride) || stride < 0) return false;
    if (stride % tensor == 0) return true;
    if (!smg_size_is_const(k->sizes, k->axes.items[access->axis[term]].extent, &extent)) return false;
    bool along = stride < io->row;
    int64_t blocks = along ? b->block[1] : b->block[0] * io->row;
    *(along ? &io->along : &io->down) += (extent - 1) * stride;
    return (stride == 1 || stride == io->row || stride % blocks == 0) && io->along < io->row && io->down < tensor;
}

bool smg_access_by_blocks(const smg_kernel *k, const smg_access *access, int *out_down, int *out_along) {
    const smg_kbuffer *b = &k->buffers.items[access->buffer];
    smg_size row = smg_size_const(k->sizes, b->row);
    int64_t offset, tensor = smg_kbuffer_tensor_elements(k, b);
    *out_down = *out_along = -1;
    if (access->index != SMG_EXPR_NONE || tensor <= 0 || !smg_size_is_const(k->sizes, access->offset, &offset) ||
        offset % (b->block[0] * b->row) != 0)
        return false;
    block_reach reach = {.down = offset % tensor, .row = b->row};
    for (int i = 0; i < access->axis_count; i++) {
        if (!term_by_blocks(k, access, i, &reach)) return false;
        if (access->stride[i] == row) *out_down = i;
        if (smg_size_is_one(k->sizes, access->stride[i])) *out_along = i;
    }
    return *out_along >= 0 && in_blocks(k, access->axis[*out_along], b->block[1]) &&
           (*out_down < 0 || in_blocks(k, access->axis[*out_down], b->block[0]));
}

static void add_asked(const smg_kernel *k, smg_size size, int width, smg_size *sizes, int *io_count) {
    if (multiple_of(k, size, width) == SMG_ALIGNED_ALWAYS) return;
    for (int i = 0; i < *io_count; i++)
        if (sizes[i] == size) return;
    sizes[(*io_count)++] = size;
}

int smg_access_asked(const smg_kernel *k, int number, smg_wide wide, smg_size out_sizes[SMG_ACCESS_AXES + 2]) {
    const smg_access *access = &k->accesses.items[number];
    int count = 0;
    add_asked(k, access->offset, wide.width, out_sizes, &count);
    add_asked(k, k->axes.items[wide.axis].extent, wide.width, out_sizes, &count);
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] != wide.axis) add_asked(k, access->stride[i], wide.width, out_sizes, &count);
    return count;
}

static bool whole_groups(const smg_kernel *k, const smg_tile *tile) {
    if (tile->residence != SMG_SHARED || smg_tile_kind(tile) != SMG_KIND_FLOAT || tile->axis_count == 0) return false;
    return smg_tile_run(k, tile) % SMG_WIDE == 0;
}

bool smg_tile_wide(const smg_kernel *k, const smg_tile *tile) {
    if (tile->sliced) tile = &k->tiles.items[tile->of];
    bool wide = whole_groups(k, tile) && !tile->in_runs; /* there a coordinate's neighbour is two elements on */
    for (int t = 0; tile->memory > 0 && t < k->tiles.count; t++)
        if (k->tiles.items[t].memory == tile->memory) wide = wide && whole_groups(k, &k->tiles.items[t]);
    return wide;
}

static bool is_leaf_tile(const smg_kernel *k, int tile) {
    for (int f = 0; f < k->leaves.count; f++)
        if (k->leaves.items[f].what == SMG_KLEAF_TILE && k->leaves.items[f].index == tile) return true;
    return false;
}

/* Of one tile, whatever lies on the same memory. */
static bool is_widest(const smg_kernel *k, int tile) {
    const smg_tile *t = &k->tiles.items[tile];
    if (!whole_groups(k, t) || smg_type_device_bytes(t->type) != 2 || is_leaf_tile(k, tile)) return false;
    int last = t->axis[t->axis_count - 1];
    if (smg_tile_run(k, t) % SMG_WIDEST != 0) return false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        bool reads = in->kind == SMG_I_MMA && (in->a == tile || in->b == tile);
        bool pairs = in->terms > 0 && in->a != tile && in->wide[1].width == SMG_WIDEST;
        if (reads && !pairs && k->tiles.items[in->dst].fragments != SMG_FRAGMENTS_SUMS) return false;
        if (in->dst == tile && (in->wide[0].width != SMG_WIDEST || in->wide[0].axis != last)) return false;
    }
    return true;
}

bool smg_tile_widest(const smg_kernel *k, int tile) {
    tile = smg_tile_home(k, tile);
    int memory = k->tiles.items[tile].memory;
    for (int t = 0; memory > 0 && t < k->tiles.count; t++)
        if (k->tiles.items[t].memory == memory && !is_widest(k, t)) return false;
    return is_widest(k, tile);
}

int smg_tile_group(const smg_kernel *k, int tile) {
    const smg_tile *t = &k->tiles.items[tile];
    if (t->in_runs) return smg_tile_widest(k, tile) && smg_matrix_pairs_in_runs(&k->matrix) ? SMG_PAIR : 1;
    if (smg_tile_widest(k, tile)) return SMG_WIDEST;
    return smg_tile_wide(k, t) ? SMG_WIDE : 1;
}

bool smg_walk_widest(const smg_kernel *k, const smg_instr *walk, int axis) {
    int access = smg_kernel_plain_load(k, walk->expr);
    smg_wide wide = {.width = SMG_WIDEST, .axis = axis};
    smg_size quotient, width = smg_size_const(k->sizes, SMG_WIDEST);
    if (access < 0 || walk->axis_count == 0 || walk->axes[walk->axis_count - 1] != axis) return false;
    const smg_kbuffer *buffer = &k->buffers.items[k->accesses.items[access].buffer];
    return !buffer->written && buffer->type == k->tiles.items[walk->dst].type &&
           k->accesses.items[access].index == SMG_EXPR_NONE && smg_type_device_bytes(buffer->type) == 2 &&
           k->axes.items[axis].tile % SMG_WIDEST == 0 &&
           smg_size_divide_exact(k->sizes, k->axes.items[axis].extent, width, &quotient) &&
           smg_access_aligned(k, access, wide) == SMG_ALIGNED_ALWAYS;
}

/* Of a product its sums. */
static smg_layout results_of(const smg_kernel *k, const smg_instr *instr) {
    const smg_layout *layout = smg_kernel_layout(k, instr);
    const smg_tile *dst = instr->kind == SMG_I_MMA ? &k->tiles.items[instr->dst] : NULL;
    return dst != NULL ? smg_layout_keep(layout, dst->axis, dst->axis_count) : *layout;
}

static int axis_of_runs(const smg_kernel *k, const smg_instr *instr, int width) {
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(k, instr, outer);
    smg_layout layout = results_of(k, instr);
    for (int i = 0; i < layout.axis_count; i++) {
        int axis = layout.axes[i].axis;
        bool inner = true;
        for (int n = 0; n < count; n++) inner = inner && outer[n] != axis;
        bool whole = k->axes.items[axis].tile % width == 0;
        if (inner && whole && smg_layout_run(&layout, axis) % width == 0) return axis;
    }
    return -1;
}

int smg_kernel_run_axis(const smg_kernel *k, const smg_instr *instr) {
    return axis_of_runs(k, instr, SMG_WIDE);
}

int smg_kernel_pair_axis(const smg_kernel *k, const smg_instr *instr) {
    return axis_of_runs(k, instr, SMG_PAIR);
}

int smg_kernel_run_width(const smg_kernel *k, const smg_instr *instr) {
    int axis = smg_kernel_run_axis(k, instr);
    if (axis < 0) return 0;
    smg_layout layout = results_of(k, instr);
    bool widest = k->axes.items[axis].tile % SMG_WIDEST == 0 && smg_layout_run(&layout, axis) % SMG_WIDEST == 0;
    return widest ? SMG_WIDEST : SMG_WIDE;
}

bool smg_kernel_owns_rows(const smg_kernel *k, const smg_instr *product, int axis) {
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(k, product, outer);
    smg_layout rows = smg_layout_keep(smg_kernel_layout(k, product), outer, count);
    bool row = false;
    for (int n = 0; n < count; n++) row = row || outer[n] == axis;
    return row && smg_layout_run(&rows, axis) % SMG_WIDE == 0 &&
           smg_layout_span(&rows, axis) == k->axes.items[axis].tile;
}

/* ---- whole matrices --------------------------------------------------------------------------------------- */

/* NULL: it has none, or data decide where it begins. */
static const smg_access *access_of(const smg_kernel *k, const smg_instr *in, int *out_number) {
    *out_number = in->kind == SMG_I_STORE ? in->a : smg_kernel_plain_load(k, in->expr);
    const smg_access *access = *out_number >= 0 ? &k->accesses.items[*out_number] : NULL;
    return access != NULL && access->index == SMG_EXPR_NONE ? access : NULL;
}

/* Is the buffer of what a matrix can take from it or give to it? */
static bool takes_type(const smg_kernel *k, const smg_instr *in, const smg_kbuffer *buffer) {
    const smg_tile *dst = in->kind == SMG_I_SET ? &k->tiles.items[in->dst] : NULL;
    if (dst != NULL && buffer->written) return false;
    if (dst != NULL && dst->fragments != SMG_FRAGMENTS_SUMS) return buffer->type == dst->type;
    return buffer->type == SMG_TYPE_F32 || buffer->type == SMG_TYPE_F16;
}

/* Has the workgroup each element of both axes, in one subgroup or in several that hold the same? */
static bool covers(const smg_kernel *k, const smg_layout *layout, int row, int col) {
    int64_t rows = k->axes.items[row].tile, cols = k->axes.items[col].tile, lanes = k->lanes;
    uint32_t copies = smg_layout_replicas(layout);
    if (copies & ((uint32_t)k->subgroup - 1)) return false;
    for (; copies != 0; copies &= copies - 1) lanes /= 2;
    return smg_layout_span(layout, row) == rows && smg_layout_span(layout, col) == cols &&
           smg_layout_registers(layout) * lanes == rows * cols;
}

bool smg_kernel_whole_matrices(const smg_kernel *k, const smg_instr *in, smg_wide *out_wide, int *out_row) {
    int number;
    const smg_access *access = access_of(k, in, &number);
    smg_fragments use = in->kind == SMG_I_SET ? k->tiles.items[in->dst].fragments : SMG_FRAGMENTS_SUMS;
    bool factor = use == SMG_FRAGMENTS_LEFT || use == SMG_FRAGMENTS_RIGHT;
    bool known = factor || (use == SMG_FRAGMENTS_SUMS && !k->matrix.opaque);
    if (k->matrix.rows == 0 || access == NULL || access->buffer < 0 || !known) return false;
    const smg_kbuffer *buffer = &k->buffers.items[access->buffer];
    const smg_layout *layout = smg_kernel_layout(k, in);
    if (!takes_type(k, in, buffer) || layout->axis_count != 2 || smg_kbuffer_is_blocked(buffer)) return false;
    for (int i = 0; i < 4; i++) {
        int row = layout->axes[i % 2].axis, col = layout->axes[1 - i % 2].axis, turned = i / 2;
        int apart = turned ? col : row;
        smg_wide wide = {.width = GROUP_BYTES / (int)smg_type_device_bytes(buffer->type), .axis = turned ? row : col};
        if (!smg_matrix_lays(&k->matrix, use, layout, row, col) || !smg_access_has(access, apart)) continue;
        if ((turned && use != SMG_FRAGMENTS_RIGHT) || (!factor && !covers(k, layout, row, col))) continue;
        if (smg_access_aligned(k, number, wide) == SMG_ALIGNED_NEVER) continue;
        *out_wide = wide;
        *out_row = apart;
        return true;
    }
    return false;
}

bool smg_kernel_spills_matrices(const smg_kernel *k, const smg_instr *spill, smg_wide *out_wide) {
    if (spill->kind != SMG_I_SPILL || k->matrix.rows == 0 || k->matrix.opaque) return false;
    const smg_tile *dst = &k->tiles.items[spill->dst], *from = &k->tiles.items[spill->a];
    if (from->layout < 0 || dst->axis_count != 2 || dst->sliced || dst->type != SMG_TYPE_F16) return false;
    const smg_layout *layout = &k->layouts.items[from->layout];
    int row = dst->axis[0], col = dst->axis[1];
    bool lies = layout->axis_count == 2 && smg_matrix_lays(&k->matrix, SMG_FRAGMENTS_SUMS, layout, row, col);
    if (!lies || smg_layout_replicas(layout) != 0 || !covers(k, layout, row, col)) return false;
    *out_wide = (smg_wide){.width = SMG_WIDE, .axis = col};
    return smg_tile_run(k, dst) % SMG_WIDEST == 0; /* rows of 16 bytes, as matrices want them */
}

/* ---- stores by neighbours ---------------------------------------------------------------------------------- */

/* Neighbours along the axis lie side by side, 16 bits each, where the access says and in no blocks. */
static bool stores_halves(const smg_kernel *k, const smg_access *access, int axis) {
    const smg_kbuffer *buffer = &k->buffers.items[access->buffer];
    if (access->index != SMG_EXPR_NONE || buffer->type != SMG_TYPE_F16 || smg_kbuffer_is_blocked(buffer)) return false;
    return smg_size_is_one(k->sizes, smg_access_stride(access, axis));
}

/* Each element once, in lanes and in registers of the tile's own. */
static bool holds_each_once(const smg_kernel *k, const smg_layout *layout) {
    int64_t elements = 1;
    for (int i = 0; i < layout->axis_count; i++) {
        int64_t tile = k->axes.items[layout->axes[i].axis].tile;
        if (layout->axes[i].repeats != 1 || smg_layout_span(layout, layout->axes[i].axis) != tile) return false;
        elements *= tile;
    }
    return smg_layout_replicas(layout) == 0 && smg_layout_registers(layout) * k->lanes == elements;
}

/* The two lowest bits of registers along the columns: their numbers; false: there are none. */
static bool columns_in_registers(const smg_layout *layout, int col, int out_bits[2]) {
    int found = 0;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER] && found < 2; i++)
        if (layout->basis[SMG_LAYOUT_REGISTER][i].axis == col) out_bits[found++] = i;
    return found == 2;
}

/* The two highest bits of lanes along the rows. */
static bool rows_in_lanes(const smg_layout *layout, int row, int out_bits[2]) {
    int found = 0;
    for (int i = layout->bits[SMG_LAYOUT_LANE] - 1; i >= 0 && found < 2; i--)
        if (layout->basis[SMG_LAYOUT_LANE][i].axis == row) out_bits[found++] = i;
    return found == 2;
}

/* Do lanes have a run of columns, with these bits of registers, and none of two without them? */
static bool fills_a_run(const smg_layout *layout, int col, const int bits[2]) {
    uint32_t columns = 0, traded = 0;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_LANE]; i++)
        if (layout->basis[SMG_LAYOUT_LANE][i].axis == col) columns |= 1u << layout->basis[SMG_LAYOUT_LANE][i].bit;
    for (int n = 0; n < 2; n++) traded |= 1u << layout->basis[SMG_LAYOUT_REGISTER][bits[n]].bit;
    uint32_t run = columns | traded;
    return (traded & 1u) != 0 && (run & (run + 1)) == 0;
}

bool smg_kernel_trades(const smg_kernel *k, const smg_instr *store, smg_trade *out_trade) {
    int outer[SMG_LAYOUT_AXES], registers[2], lanes[2];
    if (store->kind != SMG_I_STORE || store->layout < 0 || store->wide[0].width > 0 || !k->numbered) return false;
    const smg_layout *layout = &k->layouts.items[store->layout];
    if (layout->axis_count != 2 || smg_kernel_outer_axes(k, store, outer) != 1) return false;
    smg_trade t = {.row = outer[0], .stored = *layout};
    t.col = layout->axes[layout->axes[0].axis == t.row].axis;
    if (!stores_halves(k, &k->accesses.items[store->a], t.col) || !holds_each_once(k, layout)) return false;
    if (!columns_in_registers(layout, t.col, registers) || !rows_in_lanes(layout, t.row, lanes)) return false;
    if (!fills_a_run(layout, t.col, registers)) return false;
    for (int n = 0; n < 2; n++) {
        smg_basis *mine = &t.stored.basis[SMG_LAYOUT_REGISTER][registers[n]];
        smg_basis *given = &t.stored.basis[SMG_LAYOUT_LANE][lanes[n]], before = *mine;
        t.columns[n] = INT64_C(1) << mine->bit;
        t.rows[n] = INT64_C(1) << given->bit;
        t.lane[n] = 1u << lanes[n];
        *mine = *given;
        *given = before;
    }
    *out_trade = t;
    return true;
}

/* ---- factors of matrices, by runs --------------------------------------------------------------------------- */

bool smg_kernel_loads_runs(const smg_kernel *k, const smg_instr *in, smg_wide *out_wide) {
    int number;
    const smg_access *access = access_of(k, in, &number);
    const smg_tile *dst = in->kind == SMG_I_SET ? &k->tiles.items[in->dst] : NULL;
    bool factor = dst != NULL && (dst->fragments == SMG_FRAGMENTS_LEFT || dst->fragments == SMG_FRAGMENTS_RIGHT);
    if (!factor || access == NULL || access->buffer < 0 || smg_type_device_bytes(dst->type) != 2 ||
        !takes_type(k, in, &k->buffers.items[access->buffer]))
        return false;
    for (int i = 0; i < dst->axis_count; i++) {
        smg_wide wide = {.width = SMG_WIDEST, .axis = dst->axis[i]};
        if (!smg_layout_has_run(&k->layouts.items[dst->layout], wide.axis, wide.width)) continue;
        if (smg_access_aligned(k, number, wide) != SMG_ALIGNED_ALWAYS) continue;
        *out_wide = wide;
        return true;
    }
    return false;
}

/* ---- products of views by address -------------------------------------------------------------------- */

static bool is_view(const smg_kernel *k, int tile) {
    return k->tiles.items[tile].residence == SMG_VIEW;
}

static bool has_loop(const smg_kernel *k, int at, int axis) {
    int loop = smg_kernel_loop_around(k, at);
    while (loop >= 0 && k->code.items[loop].axes[0] != axis) loop = smg_kernel_loop_around(k, loop);
    return loop >= 0;
}

/* The axis whose neighbours the lanes of a subgroup hold, one each; -1. */
static int lane_axis(const smg_kernel *k, const smg_layout *layout) {
    smg_layout_digit digits[SMG_LAYOUT_LEVEL_BITS];
    int count = smg_layout_digits(layout, SMG_LAYOUT_LANE, digits);
    return count == 1 && digits[0].count == k->subgroup && digits[0].step == 1 ? digits[0].axis : -1;
}

/* All but the rows come out even; neighbouring columns lie side by side. */
static bool view_fits(const smg_kernel *k, int at, const smg_access *access, int rows, int unit) {
    bool beside = unit < 0;
    for (int i = 0; i < access->axis_count; i++) {
        if (access->axis[i] != rows && !smg_kernel_comes_out_even(k, access->axis[i], has_loop(k, at, access->axis[i])))
            return false;
        beside = beside || (access->axis[i] == unit && smg_size_is_one(k->sizes, access->stride[i]));
    }
    return beside;
}

/* Does no lane add anything to the addresses of the right factor? Rows are in lanes, and what is multiplied with them
 * in their registers. */
static bool same_for_all(const smg_kernel *k, const smg_instr *in) {
    const smg_access *access = &k->accesses.items[k->tiles.items[in->b].access];
    const smg_layout *layout = smg_kernel_layout(k, in);
    bool same = access->index == SMG_EXPR_NONE && in->axis_count == 1;
    for (int i = 0; i < access->axis_count; i++) same = same && smg_layout_local_mask(layout, &access->axis[i], 1) == 0;
    return same;
}

bool smg_kernel_addressable(const smg_kernel *k, int at) {
    const smg_instr *in = &k->code.items[at];
    if (!k->numbered || k->subgroup < 2 || !is_view(k, in->b)) return false;
    if (k->tiles.items[in->a].residence == SMG_REGISTER) return same_for_all(k, in);
    if (in->axis_count != 1 || !is_view(k, in->a)) return false;
    const smg_tile *dst = &k->tiles.items[in->dst];
    int outer[SMG_LAYOUT_AXES], rows = smg_kernel_outer_axes(k, in, outer);
    smg_layout sums = smg_layout_keep(smg_kernel_layout(k, in), dst->axis, dst->axis_count);
    int row = rows > 0 ? outer[0] : -1, columns = lane_axis(k, &sums);
    if (rows > 1 || columns < 0 || columns == row) return false;
    for (int i = 0; i < sums.axis_count; i++) {
        int axis = sums.axes[i].axis;
        if (axis == row) continue;
        if (smg_layout_span(&sums, axis) != k->axes.items[axis].tile) return false;
        if (smg_layout_mask(&sums, SMG_LAYOUT_SUBGROUP, axis) != 0) return false;
    }
    return view_fits(k, at, &k->accesses.items[k->tiles.items[in->a].access], row, -1) &&
           view_fits(k, at, &k->accesses.items[k->tiles.items[in->b].access], row, columns);
}

bool smg_kernel_loads_alike(const smg_kernel *k, const smg_instr *in, int number) {
    const smg_access *access = &k->accesses.items[number];
    bool kind = in->kind == SMG_I_SET || in->kind == SMG_I_REDUCE || in->kind == SMG_I_STORE;
    if (!kind || access->buffer < 0 || access->index != SMG_EXPR_NONE) return false;
    const smg_kbuffer *buffer = &k->buffers.items[access->buffer];
    bool alike = !buffer->written && smg_type_kind(buffer->type) != SMG_KIND_BOOL &&
                 smg_type_device_bytes(buffer->type) == PAIR_BYTES;
    const smg_layout *layout = smg_kernel_layout(k, in);
    for (int i = 0; i < access->axis_count; i++)
        alike = alike && smg_layout_local_mask(layout, &access->axis[i], 1) == 0;
    return alike;
}

typedef struct alike_seek {
    const smg_kernel *k;
    const smg_instr *in;
    bool found;
} alike_seek;

static void seek_alike(void *user, int leaf) {
    alike_seek *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    s->found = s->found || (f->what == SMG_KLEAF_LOAD && smg_kernel_loads_alike(s->k, s->in, f->index));
}

bool smg_kernel_loads_some_alike(const smg_kernel *k, const smg_instr *in) {
    alike_seek s = {.k = k, .in = in};
    smg_kernel_leaves(k, in->expr, seek_alike, &s);
    return s.found;
}
