/* The verifier of products by matrices: shape and layout of the matrix, tiles of fragments, and what is multiplied into
 * them. */
#include "kernel/kernel_verify.h"

static bool is_side(int side) {
    return side > 0 && side <= 1 << SMG_MATRIX_BITS && smg_is_power_of_two(side);
}

static smg_status check_layout(const kernel_verifier *v, const char *what, const smg_layout *layout, int rows,
                               int cols) {
    const char *why = NULL;
    if (!smg_layout_valid(layout, &why)) return KERNEL_WRONG(v, "the layout of a matrix's %s: %s", what, why);
    bool spans = layout->axis_count == 2 && smg_layout_span(layout, 0) == rows && smg_layout_span(layout, 1) == cols &&
                 smg_layout_repeats(layout, 0).count == 1 && smg_layout_repeats(layout, 1).count == 1;
    if (!spans || layout->bits[SMG_LAYOUT_SUBGROUP] != 0)
        return KERNEL_WRONG(v, "the layout of a matrix's %s is not one of %d x %d elements in one subgroup", what, rows,
                            cols);
    if (smg_layout_numbers(layout, SMG_LAYOUT_LANE) != v->k->subgroup)
        return KERNEL_WRONG(v, "a matrix's %s lies in %lld lanes, subgroups have %d", what,
                            (long long)smg_layout_numbers(layout, SMG_LAYOUT_LANE), v->k->subgroup);
    return SMG_OK;
}

smg_status kernel_verify_matrix(const kernel_verifier *v) {
    const smg_matrix *m = &v->k->matrix;
    if (m->rows == 0 && m->cols == 0 && m->depth == 0) return SMG_OK;
    if (!is_side(m->rows) || !is_side(m->cols) || !is_side(m->depth))
        return KERNEL_WRONG(v, "matrices of %d x %d x %d: sides must be powers of two, at most %d", m->rows, m->cols,
                            m->depth, 1 << SMG_MATRIX_BITS);
    if (m->type != SMG_TYPE_F16 && m->type != SMG_TYPE_BF16)
        return KERNEL_WRONG(v, "matrices of %s: factors are f16 or bf16", smg_type_word(m->type));
    SMG_TRY(check_layout(v, "sums", &m->sums, m->rows, m->cols));
    if (m->left.axis_count > 0) SMG_TRY(check_layout(v, "left factor", &m->left, m->rows, m->depth));
    return m->right.axis_count > 0 ? check_layout(v, "right factor", &m->right, m->depth, m->cols) : SMG_OK;
}

smg_status kernel_verify_fragments(const kernel_verifier *v, const smg_tile *tile) {
    if (tile->fragments == SMG_FRAGMENTS_NONE) return SMG_OK;
    if ((unsigned)tile->fragments > SMG_FRAGMENTS_RIGHT)
        return KERNEL_WRONG(v, "tile '%s' is of fragments %d, which do not exist", tile->name, (int)tile->fragments);
    if (v->k->matrix.rows == 0) return KERNEL_WRONG(v, "tile '%s' is of fragments, and there is no matrix", tile->name);
    if (tile->residence != SMG_REGISTER || smg_tile_kind(tile) != SMG_KIND_FLOAT || tile->layout < 0)
        return KERNEL_WRONG(v, "tile '%s' is of fragments, and no register tile of floats with a layout", tile->name);
    return SMG_OK;
}

smg_status kernel_verify_places(const kernel_verifier *v, int tile) {
    const smg_tile *t = &v->k->tiles.items[tile];
    if (!smg_matrix_hides(v->k, t)) return SMG_OK;
    for (int i = 0; i < v->k->code.count; i++)
        if (v->k->code.items[i].kind == SMG_I_MMA && v->k->code.items[i].dst == tile)
            return KERNEL_WRONG(v,
                                "it takes elements of '%s', which instruction %d sums up in opaque matrices: nobody "
                                "knows which lane has which",
                                t->name, i);
    return KERNEL_WRONG(v, "it takes elements of '%s', a tile of opaque matrices: nobody knows which lane has which",
                        t->name);
}

static smg_status check_held(const kernel_verifier *v, const smg_instr *product, bool left) {
    const smg_tile *factor = &v->k->tiles.items[left ? product->a : product->b];
    const smg_matrix *m = &v->k->matrix;
    if (factor->residence != SMG_REGISTER) return SMG_OK;
    smg_fragments use = left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT;
    if (smg_matrix_held(v->k, product, use, &v->k->layouts.items[factor->layout])) return SMG_OK;
    return KERNEL_WRONG(v, "the %s factor '%s' does not lie as whole matrices of %d x %d where its %s' sums are",
                        left ? "left" : "right", factor->name, left ? m->rows : m->depth, left ? m->depth : m->cols,
                        left ? "rows" : "columns");
}

/* Without matrices a lane multiplies left factors that it holds itself, and right ones where they lie. */
static smg_status check_own(const kernel_verifier *v, const smg_instr *product) {
    const smg_tile *a = &v->k->tiles.items[product->a], *b = &v->k->tiles.items[product->b];
    if (b->residence == SMG_REGISTER || a->fragments != SMG_FRAGMENTS_NONE)
        return KERNEL_WRONG(v, "the %s factor '%s' is in registers, and the product not by matrices",
                            b->residence == SMG_REGISTER ? "right" : "left",
                            b->residence == SMG_REGISTER ? b->name : a->name);
    if (a->residence != SMG_REGISTER || v->layout == NULL) return SMG_OK;
    if (b->residence != SMG_VIEW)
        return KERNEL_WRONG(v, "the left factor '%s' is in registers, and the right one '%s' not where it lies",
                            a->name, b->name);
    if (smg_layout_readable(&v->k->layouts.items[a->layout], v->layout)) return SMG_OK;
    return KERNEL_WRONG(v, "the left factor '%s' (layout %d) lies in other lanes than those that multiply it", a->name,
                        a->layout);
}

smg_status kernel_verify_by_matrices(const kernel_verifier *v, const smg_instr *product) {
    const smg_tile *dst = &v->k->tiles.items[product->dst];
    int row = -1, col = -1;
    if (dst->fragments == SMG_FRAGMENTS_LEFT || dst->fragments == SMG_FRAGMENTS_RIGHT)
        return KERNEL_WRONG(v, "a product into '%s', which is a factor", dst->name);
    if (dst->fragments == SMG_FRAGMENTS_NONE) return check_own(v, product);
    const char *why = smg_matrix_objection(v->k, &v->k->matrix, product);
    if (why != NULL) return KERNEL_WRONG(v, "the product into '%s': %s", dst->name, why);
    for (int n = 0; n < 2; n++) {
        int factor = n == 0 ? product->a : product->b;
        if (!smg_matrix_side_by_side(v->k, product, factor))
            return KERNEL_WRONG(v, "neither rows nor columns of the matrices of '%s' lie side by side",
                                v->k->tiles.items[factor].name);
    }
    (void)smg_kernel_product_sides(v->k, product, &row, &col);
    if (!smg_matrix_lays(&v->k->matrix, SMG_FRAGMENTS_SUMS, &v->k->layouts.items[dst->layout], row, col))
        return KERNEL_WRONG(v, "the layout of '%s' is not one of whole matrices of %d x %d", dst->name,
                            v->k->matrix.rows, v->k->matrix.cols);
    SMG_TRY(check_held(v, product, true));
    return check_held(v, product, false);
}
