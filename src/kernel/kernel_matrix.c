/* Products that a subgroup makes by whole matrices. Where each lane has a matrix's sums says the matrix's layout; where
 * a tile of many has them says the tile's, in which the lowest registers and all lanes of a subgroup are one matrix. */
#include "kernel/kernel.h"

enum { ROW, COL };

static bool is_wide(const smg_kernel *k, int axis) {
    return k->axes.items[axis].tile > 1;
}

/* The axes of several elements that the factor has beside the contracted one. Returns how many; the one that the result
 * has last is *out_last. */
static int own_axes(const smg_kernel *k, const smg_instr *product, int factor, int *out_last) {
    const smg_tile *dst = &k->tiles.items[product->dst];
    int found = 0;
    for (int i = 0; i < dst->axis_count; i++) {
        int axis = dst->axis[i];
        if (axis == product->axes[0] || !is_wide(k, axis) || !smg_tile_has(&k->tiles.items[factor], axis)) continue;
        *out_last = axis;
        found++;
    }
    return found;
}

static int wide_axes(const smg_kernel *k, int tile, int but) {
    const smg_tile *t = &k->tiles.items[tile];
    int wide = 0;
    for (int i = 0; i < t->axis_count; i++) wide += t->axis[i] != but && is_wide(k, t->axis[i]);
    return wide;
}

bool smg_kernel_product_sides(const smg_kernel *k, const smg_instr *product, int *out_row, int *out_col) {
    int along = product->axes[0];
    if (product->axis_count != 1) return false;
    int rows = own_axes(k, product, product->a, out_row), cols = own_axes(k, product, product->b, out_col);
    return rows == 1 && cols >= 1 && wide_axes(k, product->dst, -1) == rows + cols &&
           wide_axes(k, product->a, along) == rows && wide_axes(k, product->b, along) == cols &&
           !smg_tile_has(&k->tiles.items[product->b], *out_row);
}

const smg_layout *smg_matrix_layout(const smg_matrix *matrix, smg_fragments use) {
    return use == SMG_FRAGMENTS_LEFT ? &matrix->left : use == SMG_FRAGMENTS_RIGHT ? &matrix->right : &matrix->sums;
}

int64_t smg_matrix_elements(const smg_matrix *matrix, smg_fragments use) {
    return smg_layout_registers(smg_matrix_layout(matrix, use));
}

int64_t smg_matrix_rows(const smg_kernel *k, const smg_instr *product) {
    return smg_kernel_product_rows(k, product) / smg_layout_registers_along(&k->matrix.sums, ROW);
}

/* Two elements a register. Where neighbours in shared memory do not lie along what is contracted a driver may load them
 * one by one, each to a register of its own until two are put together: so opaque matrices are counted. */
int64_t smg_matrix_loaded(const smg_kernel *k, const smg_instr *product, smg_fragments use) {
    const smg_matrix *m = &k->matrix;
    bool left = use == SMG_FRAGMENTS_LEFT;
    const smg_tile *factor = &k->tiles.items[left ? product->a : product->b];
    int64_t elements = (int64_t)(left ? m->rows : m->cols) * m->depth;
    if (factor->residence == SMG_REGISTER) return 0;
    return m->opaque && !smg_tile_runs_along(k, factor, product->axes[0]) ? elements : elements / 2;
}

/* The lowest bits of the level are those of the matrix. Along the free side bit i may be bit order->bit[i] of its
 * axis. */
static bool same_bits(const smg_layout *of, const smg_layout *layout, smg_layout_level level, const int *sides,
                      int free, smg_layout_order *order) {
    if (layout->bits[level] < of->bits[level]) return false;
    for (int i = 0; i < of->bits[level]; i++) {
        smg_basis want = of->basis[level][i], is = layout->basis[level][i];
        if (is.axis != (want.axis < 0 ? -1 : sides[want.axis])) return false;
        if (want.axis >= 0 && want.axis == free)
            order->bit[want.bit] = is.bit;
        else if (want.axis >= 0 && is.bit != want.bit)
            return false;
    }
    return true;
}

/* free: the side along which elements may come in another order, -1: none. */
static bool lays(const smg_matrix *matrix, smg_fragments use, const smg_layout *layout, const int *sides, int free,
                 smg_layout_order *order) {
    const smg_layout *of = smg_matrix_layout(matrix, use);
    return of->axis_count == 2 && layout->bits[SMG_LAYOUT_LANE] == of->bits[SMG_LAYOUT_LANE] &&
           same_bits(of, layout, SMG_LAYOUT_REGISTER, sides, free, order) &&
           same_bits(of, layout, SMG_LAYOUT_LANE, sides, free, order);
}

bool smg_matrix_lays(const smg_matrix *matrix, smg_fragments use, const smg_layout *layout, int row, int col) {
    return lays(matrix, use, layout, (int[]){row, col}, -1, NULL);
}

/* ---- the order of what is contracted ------------------------------------------------------------------------ */

smg_layout_order smg_matrix_in_runs(const smg_matrix *m) {
    return smg_layout_in_runs(&m->left, COL, &m->right, ROW, SMG_WIDEST);
}

int64_t smg_matrix_place_in_runs(const smg_matrix *m, int64_t at) {
    const smg_layout_order order = smg_matrix_in_runs(m);
    int bits = smg_log2(m->depth), block = bits;
    int64_t place = at >> order.run << order.run;
    for (int bit = 0; bit < order.run; bit++) {
        int to = 0;
        while (to < bits && order.bit[to] != bit) to++;
        if (to == bits) to = block++; /* of the number of the matrix */
        place |= (at >> bit & 1) << to;
    }
    return place;
}

static bool same_order(const smg_matrix *m, const smg_layout_order *a, const smg_layout_order *b) {
    for (int i = 0; i < smg_log2(m->depth); i++)
        if (a->bit[i] != b->bit[i]) return false;
    return true;
}

static smg_layout_order own_order(const smg_matrix *m) {
    smg_layout_order own = {0};
    for (int i = 0; i < smg_log2(m->depth); i++) own.bit[i] = (int8_t)i;
    return own;
}

bool smg_matrix_pairs_in_runs(const smg_matrix *m) {
    return smg_matrix_in_runs(m).bit[0] == 0;
}

bool smg_matrix_has_own_order(const smg_matrix *m) {
    const smg_layout_order runs = smg_matrix_in_runs(m), own = own_order(m);
    return same_order(m, &runs, &own);
}

/* The order in which a factor of the product has what is contracted; of one in shared memory as it is. false: it does
 * not lie as whole matrices. */
static bool order_of(const smg_kernel *k, const smg_instr *product, smg_fragments use, const smg_layout *layout,
                     smg_layout_order *out) {
    int sides[2], depth = product->axes[0];
    if (!smg_kernel_product_sides(k, product, &sides[ROW], &sides[COL])) return false;
    *out = own_order(&k->matrix);
    if (layout == NULL) return true;
    int contracted = use == SMG_FRAGMENTS_LEFT ? COL : ROW;
    sides[contracted] = depth;
    return lays(&k->matrix, use, layout, sides, contracted, out);
}

static const smg_layout *layout_in_registers(const smg_kernel *k, int tile) {
    const smg_tile *t = &k->tiles.items[tile];
    return t->residence == SMG_REGISTER && t->layout >= 0 ? &k->layouts.items[t->layout] : NULL;
}

/* Has each subgroup the same elements of the axis? */
static bool same_part(const smg_layout *a, const smg_layout *b, int axis) {
    if (smg_layout_span(a, axis) != smg_layout_span(b, axis) ||
        a->bits[SMG_LAYOUT_SUBGROUP] != b->bits[SMG_LAYOUT_SUBGROUP])
        return false;
    for (int i = 0; i < a->bits[SMG_LAYOUT_SUBGROUP]; i++) {
        smg_basis x = a->basis[SMG_LAYOUT_SUBGROUP][i], y = b->basis[SMG_LAYOUT_SUBGROUP][i];
        if ((x.axis == axis) != (y.axis == axis) || (x.axis == axis && x.bit != y.bit)) return false;
    }
    return true;
}

bool smg_matrix_held(const smg_kernel *k, const smg_instr *product, smg_fragments use, const smg_layout *layout) {
    bool left = use == SMG_FRAGMENTS_LEFT;
    const smg_tile *factor = &k->tiles.items[left ? product->a : product->b];
    const smg_layout *sums = &k->layouts.items[k->tiles.items[product->dst].layout];
    const smg_layout *beside = layout_in_registers(k, left ? product->b : product->a);
    int depth = product->axes[0];
    smg_layout_order own, other;
    if (!order_of(k, product, use, layout, &own) ||
        !order_of(k, product, left ? SMG_FRAGMENTS_RIGHT : SMG_FRAGMENTS_LEFT, beside, &other) ||
        !same_order(&k->matrix, &own, &other))
        return false;
    bool same = same_part(layout, &k->layouts.items[product->layout], depth);
    for (int i = 0; same && i < factor->axis_count; i++)
        same = factor->axis[i] == depth || !is_wide(k, factor->axis[i]) || same_part(layout, sums, factor->axis[i]);
    return same;
}

bool smg_matrix_side_by_side(const smg_kernel *k, const smg_instr *product, int factor) {
    const smg_tile *t = &k->tiles.items[factor];
    int row, col, last = smg_tile_last_axis(t);
    if (t->residence != SMG_SHARED || last == product->axes[0]) return true;
    return smg_kernel_product_sides(k, product, &row, &col) && last == (factor == product->a ? row : col);
}

bool smg_matrix_sides(const smg_kernel *k, const smg_tile *tile, int *out_row, int *out_col) {
    const smg_layout *layout = tile->layout >= 0 ? &k->layouts.items[tile->layout] : NULL;
    for (int i = 0; layout != NULL && i < tile->axis_count; i++) {
        for (int j = 0; j < tile->axis_count; j++) {
            *out_row = tile->axis[i];
            *out_col = tile->axis[j];
            if (i != j && smg_matrix_lays(&k->matrix, tile->fragments, layout, *out_row, *out_col)) return true;
        }
    }
    return false;
}

bool smg_matrix_hides(const smg_kernel *k, const smg_tile *tile) {
    return k->matrix.opaque && tile->fragments == SMG_FRAGMENTS_SUMS;
}

int64_t smg_matrix_words(const smg_kernel *k, const smg_tile *exchange) {
    return exchange->words / (k->lanes / k->subgroup);
}

int64_t smg_matrix_word(const smg_kernel *k, int reg, int lane) {
    const smg_matrix *m = &k->matrix;
    int64_t elements = smg_matrix_elements(m, SMG_FRAGMENTS_SUMS), at[2];
    for (int side = ROW; side <= COL; side++)
        at[side] = smg_layout_part(&m->sums, side, SMG_LAYOUT_REGISTER, reg % elements) +
                   smg_layout_part(&m->sums, side, SMG_LAYOUT_LANE, lane % k->subgroup);
    return reg / elements * m->rows * m->cols + at[ROW] * m->cols + at[COL];
}

/* Has the factor in registers whole matrices whose elements along the axis come in some order? Which, and the other
 * axis. */
static bool lays_in_order(const smg_kernel *k, const smg_tile *factor, int along, int *out_own, smg_layout_order *out) {
    const smg_layout *layout = &k->layouts.items[factor->layout];
    bool left = factor->fragments == SMG_FRAGMENTS_LEFT;
    *out = (smg_layout_order){0};
    for (int i = 0; i < factor->axis_count; i++) {
        int own = factor->axis[i], sides[2] = {left ? own : along, left ? along : own};
        *out_own = own;
        if (own != along && lays(&k->matrix, factor->fragments, layout, sides, left ? COL : ROW, out)) return true;
    }
    return false;
}

bool smg_matrix_takes(const smg_kernel *k, const smg_instr *take, int *out_own, int *out_along) {
    const smg_tile *dst = &k->tiles.items[take->dst], *a = &k->tiles.items[take->a];
    const smg_layout_order wanted = a->in_runs ? smg_matrix_in_runs(&k->matrix) : own_order(&k->matrix);
    int last = smg_tile_last_axis(a);
    for (int i = 0; dst->layout >= 0 && i < dst->axis_count; i++) {
        smg_layout_order order;
        *out_along = dst->axis[i];
        if (lays_in_order(k, dst, *out_along, out_own, &order) && same_order(&k->matrix, &order, &wanted))
            return last == *out_along || (last == *out_own && !a->in_runs);
    }
    return false;
}

bool smg_matrix_takes_runs(const smg_kernel *k, const smg_instr *take) {
    const smg_tile *dst = &k->tiles.items[take->dst], *a = &k->tiles.items[take->a];
    int along = take->wide[0].axis, own;
    smg_layout_order order;
    if (take->wide[0].width != SMG_WIDEST || smg_tile_last_axis(a) != along || smg_tile_run(k, a) % SMG_WIDEST != 0)
        return false;
    return !a->in_runs && lays_in_order(k, dst, along, &own, &order) &&
           smg_layout_has_run(&k->layouts.items[dst->layout], along, SMG_WIDEST);
}

static bool lies_ready(const smg_kernel *k, int factor, smg_fragments use) {
    const smg_tile *t = &k->tiles.items[factor];
    return t->residence == SMG_SHARED || t->fragments == use;
}

const char *smg_matrix_objection(const smg_kernel *k, const smg_matrix *matrix, const smg_instr *product) {
    int row, col;
    if (!smg_kernel_product_sides(k, product, &row, &col))
        return "a product by matrices wants one axis of rows, and columns";
    if (!lies_ready(k, product->a, SMG_FRAGMENTS_LEFT) || !lies_ready(k, product->b, SMG_FRAGMENTS_RIGHT))
        return "a factor of a product by matrices is neither in shared memory nor a matrix";
    if (k->axes.items[row].tile % matrix->rows != 0 || k->axes.items[col].tile % matrix->cols != 0 ||
        k->axes.items[product->axes[0]].tile % matrix->depth != 0)
        return "a product's sides are no multiples of the matrix's";
    return NULL;
}
