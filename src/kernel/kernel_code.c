/* How much code a kernel becomes: the operations of one lane once everything that is written out has been. A driver's
 * compiler takes time by this number, and faster than in proportion where a stretch has no branch. What each
 * instruction writes out follows from its tiles; how much more of a product and which loops, lower_unroll.c decides
 * and the program says. */
#include "kernel/kernel.h"

#define CODE_LOOPS 16
#define WORD_BYTES 4
#define CODE_HUGE (INT64_C(1) << 40)
#define LOAD_OPERATIONS 3    /* address, check, load */
#define INDEX_OPERATIONS 12  /* two comparisons, a branch that reports, clamp, stride */
#define ELEMENT_OPERATIONS 2 /* place, and whether it is inside */
#define STEPS_WRITTEN 32     /* of a walk by all invocations; more of them are a loop */

static int64_t at_most_huge(int64_t a, int64_t b) {
    return smg_mul_at_most(a, b, CODE_HUGE);
}

bool smg_kernel_inner_written(const smg_kernel *k, int64_t registers) {
    return k->written == 0 || registers <= k->written;
}

/* Elements of one lane that are written out. More inner registers than that are a loop over them. */
static int64_t written_elements(const smg_kernel *k, const smg_instr *in) {
    const smg_layout *layout = smg_kernel_layout(k, in);
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(k, in, outer);
    int64_t all = smg_layout_registers(layout), rows = smg_layout_registers_over(layout, outer, count);
    return smg_kernel_inner_written(k, all / rows) ? all : rows;
}

bool smg_kernel_steps_written(int64_t steps) {
    return steps <= STEPS_WRITTEN;
}

typedef struct load_count {
    const smg_kernel *k;
    int64_t operations;
} load_count;

/* An index from data is an expression of its own, with loads of its own. */
static void count_load(void *user, int leaf) {
    load_count *c = user;
    const smg_kleaf *read = &c->k->leaves.items[leaf];
    if (read->what != SMG_KLEAF_LOAD) return;
    smg_expr index = c->k->accesses.items[read->index].index;
    c->operations += LOAD_OPERATIONS;
    if (index == SMG_EXPR_NONE) return;
    c->operations += (int64_t)smg_expr_cost(c->k->exprs, index) + INDEX_OPERATIONS;
    smg_expr_leaves(c->k->exprs, index, count_load, c);
}

static int64_t expr_operations(const smg_kernel *k, smg_expr expr) {
    load_count c = {.k = k};
    if (expr == SMG_EXPR_NONE) return 0;
    smg_expr_leaves(k->exprs, expr, count_load, &c);
    return (int64_t)smg_expr_cost(k->exprs, expr) + c.operations;
}

static int64_t map_operations(const smg_kernel *k, const smg_instr *in) {
    int64_t each = expr_operations(k, in->expr) + ELEMENT_OPERATIONS;
    return at_most_huge(written_elements(k, in), each);
}

static int64_t bits_of(uint32_t mask) {
    int64_t bits = 0;
    for (; mask != 0; mask &= mask - 1) bits++;
    return bits;
}

/* Between the lanes that hold parts, for each register. */
static int64_t join_operations(const smg_kernel *k, const smg_instr *in) {
    smg_exchange e = smg_kernel_exchange(k, in);
    int64_t hops = bits_of(e.joined) + (in->form == SMG_JOIN_OPEN ? bits_of(e.parts) : 0);
    return at_most_huge(smg_tile_registers(k, &k->tiles.items[in->dst]), 2 * hops);
}

static int64_t leave_operations(const smg_kernel *k, const smg_instr *in) {
    int64_t each = in->matrices ? smg_matrix_elements(&k->matrix, SMG_FRAGMENTS_SUMS) : 1;
    return at_most_huge(in->registers / each, ELEMENT_OPERATIONS);
}

/* The words of one register are read in a loop where they are many. */
static int64_t gather_operations(const smg_kernel *k, const smg_instr *in) {
    if (in->matrices) return at_most_huge(in->registers, ELEMENT_OPERATIONS);
    int64_t parts = in->folded ? 1 : smg_kernel_exchange(k, in).part_count;
    return at_most_huge(in->registers, ELEMENT_OPERATIONS + (smg_kernel_steps_written(parts) ? 2 * parts : 2));
}

static int64_t walk_operations(const smg_kernel *k, const smg_instr *in) {
    int64_t elements = smg_walk_registers(k, smg_tile_elements(k, &k->tiles.items[in->dst]));
    int64_t each = expr_operations(k, in->expr) + ELEMENT_OPERATIONS;
    return at_most_huge(smg_kernel_steps_written(elements) ? elements : 1, each);
}

int64_t smg_kernel_product_depth(const smg_kernel *k, const smg_instr *product) {
    int64_t depth = 1;
    for (int n = 0; n < product->axis_count; n++) depth = at_most_huge(depth, k->axes.items[product->axes[n]].tile);
    return depth;
}

int64_t smg_kernel_product_rows(const smg_kernel *k, const smg_instr *product) {
    int outer[SMG_LAYOUT_AXES], count = smg_kernel_outer_axes(k, product, outer);
    return smg_layout_registers_over(&k->layouts.items[product->layout], outer, count);
}

int64_t smg_kernel_product_lanes(const smg_kernel *k, const smg_instr *product) {
    uint32_t mask = smg_layout_local_mask(&k->layouts.items[product->layout], product->axes, product->axis_count);
    int64_t lanes = 1;
    for (; mask != 0; mask &= mask - 1) lanes *= 2;
    return lanes;
}

int64_t smg_kernel_product_stride(const smg_kernel *k, const smg_instr *product) {
    const smg_layout *layout = &k->layouts.items[product->layout];
    int64_t registers = smg_layout_registers_over(layout, product->axes, product->axis_count), span = 1;
    int64_t groups = registers / smg_kernel_product_group(k, product);
    for (int n = 0; n < product->axis_count; n++) span = at_most_huge(span, smg_layout_span(layout, product->axes[n]));
    return groups > 0 ? span / groups : span;
}

int64_t smg_kernel_column_words(const smg_kernel *k, const smg_instr *product) {
    const smg_tile *b = &k->tiles.items[product->b];
    smg_type type = b->type;
    if (b->residence == SMG_VIEW) type = k->buffers.items[k->accesses.items[b->access].buffer].type;
    int64_t columns = smg_tile_registers(k, &k->tiles.items[product->dst]) / smg_kernel_product_rows(k, product);
    return (columns * smg_type_device_bytes(type) + WORD_BYTES - 1) / WORD_BYTES;
}

/* Do both factors lie along the contraction in groups of eight, 16 bytes of 16-bit elements? */
static bool goes_by_eights(const smg_kernel *k, const smg_instr *product) {
    smg_wide wide = {.width = SMG_WIDEST, .axis = product->axes[product->axis_count - 1]};
    const smg_tile *a = &k->tiles.items[product->a], *b = &k->tiles.items[product->b];
    return smg_access_aligned(k, a->access, wide) == SMG_ALIGNED_ALWAYS &&
           smg_access_aligned(k, b->access, wide) == SMG_ALIGNED_ALWAYS;
}

int smg_kernel_product_group(const smg_kernel *k, const smg_instr *product) {
    int64_t depth = smg_kernel_product_depth(k, product);
    if (k->tiles.items[product->dst].fragments) return k->matrix.depth;
    const smg_tile *a = &k->tiles.items[product->a], *b = &k->tiles.items[product->b];
    if (b->residence == SMG_VIEW && k->numbered) return 1; /* one load for all lanes */
    if (a->residence == SMG_VIEW && b->residence == SMG_VIEW && goes_by_eights(k, product)) return SMG_WIDEST;
    return depth % 4 == 0 ? 4 : depth % 2 == 0 ? 2 : 1;
}

/* Matrices that are multiplied, and those that are read. */
static int64_t matrix_operations(const smg_kernel *k, const smg_instr *in) {
    int64_t rows = smg_matrix_rows(k, in), sums = smg_tile_registers(k, &k->tiles.items[in->dst]);
    int64_t all = sums / smg_matrix_elements(&k->matrix, SMG_FRAGMENTS_SUMS),
            steps = in->unroll / smg_kernel_product_group(k, in);
    int64_t left = k->tiles.items[in->a].residence == SMG_REGISTER ? 0 : rows;
    int64_t right = k->tiles.items[in->b].residence == SMG_REGISTER ? 0 : all / rows;
    return at_most_huge(steps > 1 ? steps : 1, all + left + right);
}

static int64_t take_operations(const smg_kernel *k, const smg_instr *in) {
    const smg_tile *dst = &k->tiles.items[in->dst];
    return LOAD_OPERATIONS * smg_tile_registers(k, dst) / smg_matrix_elements(&k->matrix, dst->fragments);
}

/* Factors and multiply-adds for each k. Neighbouring columns of a view are read by every lane, which selects its
 * own. */
static int64_t product_operations(const smg_kernel *k, const smg_instr *in) {
    if (k->tiles.items[in->dst].fragments) return matrix_operations(k, in);
    int64_t sums = smg_tile_registers(k, &k->tiles.items[in->dst]), rows = smg_kernel_product_rows(k, in);
    int64_t columns = smg_kernel_column_words(k, in), group = smg_kernel_product_group(k, in);
    bool held = k->tiles.items[in->a].residence == SMG_REGISTER; /* then lanes are rows, and columns the same for all */
    int64_t column = k->tiles.items[in->b].residence == SMG_VIEW && !held ? 2 * (int64_t)k->subgroup : 1;
    int64_t written = in->unroll > group ? in->unroll : group;
    if (in->terms > 0) return at_most_huge(written, (sums + rows + 1) / 2 + columns) + 2 * sums;
    return at_most_huge(written, sums + rows + columns * column);
}

static int64_t instr_operations(const smg_kernel *k, const smg_instr *in) {
    switch (in->kind) {
    case SMG_I_SET:
    case SMG_I_STORE:
    case SMG_I_SPILL: return map_operations(k, in);
    case SMG_I_REDUCE: return map_operations(k, in) + (in->apart ? 0 : join_operations(k, in));
    case SMG_I_STAGE:
    case SMG_I_FETCH:
    case SMG_I_PUT: return walk_operations(k, in);
    case SMG_I_TAKE: return take_operations(k, in);
    case SMG_I_MMA: return product_operations(k, in);
    case SMG_I_JOIN: return join_operations(k, in);
    case SMG_I_LEAVE: return leave_operations(k, in);
    case SMG_I_FOLD: return ELEMENT_OPERATIONS + 2 * smg_kernel_exchange(k, in).part_count;
    case SMG_I_GATHER: return gather_operations(k, in);
    case SMG_I_LOOP:
    case SMG_I_END:
    case SMG_I_BARRIER: break;
    }
    return 1;
}

int64_t smg_kernel_loop_steps(const smg_kernel *k, const smg_instr *loop) {
    const smg_kaxis *axis = &k->axes.items[loop->axes[0]];
    int64_t extent;
    if (loop->range != NULL || !smg_size_is_const(k->sizes, axis->extent, &extent)) return 0;
    return (extent + axis->tile - 1) / axis->tile;
}

int64_t smg_kernel_operations(const smg_kernel *k) {
    int64_t times[CODE_LOOPS + 1] = {1}, all = 0;
    int depth = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        int64_t here = at_most_huge(times[depth], instr_operations(k, in));
        all = here < CODE_HUGE - all ? all + here : CODE_HUGE;
        if (in->kind == SMG_I_END && depth > 0) depth--;
        if (in->kind != SMG_I_LOOP || depth == CODE_LOOPS) continue;
        int64_t written = in->unroll == 1 ? smg_kernel_loop_steps(k, in) : in->unroll > 1 ? in->unroll : 1;
        times[depth + 1] = at_most_huge(times[depth], written);
        depth++;
    }
    return all;
}
