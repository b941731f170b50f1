/* glsl_matrix.c: sums that a subgroup makes by cooperative matrices. A tile of fragments is an array of matrices, and
 * its register r the element r % n of the lane's matrix r / n: what reads it one by one finds its elements where the
 * layout says. Numbers of registers are literals once loops are unrolled. */
#include "glsl_private.h"

static const char *matrix_of(glsl_writer *w, char use) {
    const smg_matrix *m = &w->k->matrix;
    w->uses[GLSL_USE_MATRICES] = w->uses[GLSL_USE_SUBGROUP] = true;
    return GLSL_STRING(w, "coopmat<%s, gl_ScopeSubgroup, %d, %d, gl_MatrixUse%s>",
                       use == 'C' ? "float" : glsl_element_word(w, m->type), use == 'B' ? m->depth : m->rows,
                       use == 'A' ? m->depth : m->cols,
                       use == 'A'   ? "A"
                       : use == 'B' ? "B"
                                    : "Accumulator");
}

void glsl_registers(glsl_writer *w, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    const smg_matrix *m = &w->k->matrix;
    int64_t registers = smg_tile_registers(w->k, tile);
    if (tile->fragments == SMG_FRAGMENTS_NONE) {
        GLSL_LINE(w, "%s t_%s[%d];", glsl_kind(smg_tile_kind(tile)), w->tile_name[t], (int)registers);
        return;
    }
    bool left = tile->fragments == SMG_FRAGMENTS_LEFT;
    const char *type = left ? matrix_of(w, 'A') : matrix_of(w, 'C');
    GLSL_LINE(w, "%s t_%s[%d];", type, w->tile_name[t], (int)(registers / smg_matrix_elements(m, tile->fragments)));
}

const char *glsl_register(glsl_writer *w, int t, const char *place) {
    const char *name = w->tile_name[t];
    smg_fragments use = w->k->tiles.items[t].fragments;
    if (use == SMG_FRAGMENTS_NONE) return GLSL_STRING(w, "t_%s[%s]", name, place);
    long long n = smg_matrix_elements(&w->k->matrix, use);
    return GLSL_STRING(w, "t_%s[(%s) / %lld][(%s) %% %lld]", name, place, n, place, n);
}

/* One factor: its shared tile, and how a matrix of it is read from there. */
typedef struct factor {
    int tile, axis;   /* the axis beside the contracted one */
    const char *type; /* of a matrix */
    int64_t step[2];  /* elements from one to the next along its own axis, and along the contracted one */
    bool turned;      /* the contracted axis is not the one that a matrix of this side has in rows */
    int64_t group;    /* elements of one of shared memory */
} factor;

static factor factor_of(glsl_writer *w, const smg_instr *instr, bool left, int axis) {
    factor f = {.tile = left ? instr->a : instr->b, .axis = axis};
    const smg_tile *tile = &w->k->tiles.items[f.tile];
    f.step[0] = smg_tile_stride(w->k, tile, axis);
    f.step[1] = smg_tile_stride(w->k, tile, instr->axes[0]);
    f.turned = left ? f.step[1] != 1 : f.step[1] == 1;
    f.group = smg_tile_widest(w->k, f.tile) ? SMG_WIDEST : smg_tile_wide(w->k, tile) ? SMG_WIDE : 1;
    f.type = matrix_of(w, left ? 'A' : 'B');
    return f;
}

/* The matrix whose first element is `at` along the factor's axis, at `k` along the contracted one, and so many elements
 * on along others. */
static void load(glsl_writer *w, const factor *f, const char *name, const char *at, const char *k, int64_t others) {
    if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
    if (strchr(k, ' ') != NULL) k = GLSL_STRING(w, "(%s)", k);
    const char *place = glsl_plus(w, glsl_times_literal(w, at, f->step[0]), glsl_times_literal(w, k, f->step[1]));
    if (others > 0) place = glsl_plus(w, place, GLSL_STRING(w, "%lld", (long long)others));
    place = glsl_plus(w, place, glsl_slot(w, &w->k->tiles.items[f->tile]));
    int64_t stride = f->step[0] > f->step[1] ? f->step[0] : f->step[1];
    const char *order = f->turned ? "gl_CooperativeMatrixLayoutColumnMajor" : "gl_CooperativeMatrixLayoutRowMajor";
    if (f->group > 1) place = GLSL_STRING(w, "(%s) / %lld", place, (long long)f->group);
    GLSL_LINE(w, "coopMatLoad(%s, t_%s, %s, %lld, %s);", name, w->tile_name[f->tile], place,
              (long long)(stride / f->group), order);
}

/* The coordinate along the axis of matrix n of the lane's, in a tile. */
static int64_t begin_of(const glsl_writer *w, int tile, int axis, int64_t n) {
    const smg_tile *t = &w->k->tiles.items[tile];
    return smg_layout_part(&w->k->layouts.items[t->layout], axis, SMG_LAYOUT_REGISTER,
                           n * smg_matrix_elements(&w->k->matrix, t->fragments));
}

static int64_t matrices_of(const glsl_writer *w, int tile) {
    const smg_tile *t = &w->k->tiles.items[tile];
    return smg_tile_registers(w->k, t) / smg_matrix_elements(&w->k->matrix, t->fragments);
}

/* The matrix that a tile of fragments has there; -1. */
static int64_t matrix_at(const glsl_writer *w, int tile, int row_axis, int64_t row, int col_axis, int64_t col) {
    for (int64_t n = 0; n < matrices_of(w, tile); n++)
        if (begin_of(w, tile, row_axis, n) == row && begin_of(w, tile, col_axis, n) == col) return n;
    return -1;
}

/* Are matrices m and n of a tile at the same place along all axes but this one? */
static bool beside(const glsl_writer *w, int tile, int but, int64_t m, int64_t n) {
    const smg_tile *t = &w->k->tiles.items[tile];
    for (int i = 0; i < t->axis_count; i++)
        if (t->axis[i] != but && begin_of(w, tile, t->axis[i], m) != begin_of(w, tile, t->axis[i], n)) return false;
    return true;
}

/* What the held axes of a right factor add to the place of the matrix that belongs to matrix n of the sums. */
static int64_t held_part(const glsl_writer *w, const factor *f, int sums, int64_t n) {
    const smg_tile *t = &w->k->tiles.items[f->tile], *s = &w->k->tiles.items[sums];
    int64_t part = 0;
    for (int i = 0; i < s->axis_count; i++)
        if (s->axis[i] != f->axis && smg_tile_has(t, s->axis[i]))
            part += begin_of(w, sums, s->axis[i], n) * smg_tile_stride(w->k, t, s->axis[i]);
    return part;
}

typedef struct matrix_product {
    const smg_instr *instr;
    factor a, b;
    const char *row, *col; /* where the subgroup's part begins */
    bool held;             /* the left factor is in registers */
} matrix_product;

/* The left matrix of the row: read into fa, or where it is. */
static const char *left_matrix(glsl_writer *w, const matrix_product *p, int64_t row, int64_t i, int64_t step) {
    if (!p->held) return GLSL_STRING(w, "fa[%lld]", (long long)i);
    int64_t n = matrix_at(w, p->instr->a, p->a.axis, row, p->instr->axes[0], step);
    return GLSL_STRING(w, "t_%s[%lld]", w->tile_name[p->instr->a], (long long)n);
}

static void load_left(glsl_writer *w, const matrix_product *p, const char *k) {
    int dst = p->instr->dst;
    int64_t count = matrices_of(w, dst);
    GLSL_LINE(w, "%s fa[%lld];", p->a.type, (long long)smg_matrix_rows(w->k, p->instr));
    for (int64_t n = 0, i = 0; n < count; n++) {
        if (!beside(w, dst, p->a.axis, 0, n)) continue;
        const char *at = GLSL_STRING(w, "%lld", (long long)begin_of(w, dst, p->a.axis, n));
        load(w, &p->a, GLSL_STRING(w, "fa[%lld]", (long long)i++), glsl_plus(w, p->row, at), k, 0);
    }
}

/* One step of k. Rows are held, columns come one after the other. */
static void multiply(glsl_writer *w, const matrix_product *p, const char *k, int64_t step) {
    int dst = p->instr->dst;
    int64_t count = matrices_of(w, dst);
    if (!p->held) load_left(w, p, k);
    for (int64_t first = 0; first < count; first++) {
        if (begin_of(w, dst, p->a.axis, first) != 0) continue;
        const char *at = GLSL_STRING(w, "%lld", (long long)begin_of(w, dst, p->b.axis, first));
        glsl_open(w, "");
        GLSL_LINE(w, "%s fb;", p->b.type);
        load(w, &p->b, "fb", glsl_plus(w, p->col, at), k, held_part(w, &p->b, dst, first));
        for (int64_t n = 0, i = 0; n < count; n++) {
            if (!beside(w, dst, p->a.axis, first, n)) continue;
            const char *sum = GLSL_STRING(w, "t_%s[%lld]", w->tile_name[dst], (long long)n);
            const char *left = left_matrix(w, p, begin_of(w, dst, p->a.axis, n), i++, step);
            GLSL_LINE(w, "%s = coopMatMulAdd(%s, fb, %s);", sum, left, sum);
        }
        glsl_close(w);
    }
}

void glsl_matrix_mma(glsl_writer *w, const smg_instr *instr) {
    int row = -1, col = -1, depth = w->k->matrix.depth;
    const smg_layout *layout = &w->k->layouts.items[w->k->tiles.items[instr->dst].layout];
    if (!smg_kernel_product_sides(w->k, instr, &row, &col)) {
        glsl_fail(w, SMG_INTERNAL, "a product by matrices has other sides than one row and one column");
        return;
    }
    matrix_product p = {.instr = instr, .held = w->k->tiles.items[instr->a].residence == SMG_REGISTER};
    if (p.held)
        p.a.axis = row;
    else
        p.a = factor_of(w, instr, true, row);
    p.b = factor_of(w, instr, false, col);
    p.row = glsl_subgroup_part(w, layout, row);
    p.col = glsl_subgroup_part(w, layout, col);
    int64_t all = smg_kernel_product_depth(w->k, instr), step = depth * smg_kernel_product_lanes(w->k, instr);
    const char *first = glsl_subgroup_part(w, &w->k->layouts.items[instr->layout], instr->axes[0]);
    for (int64_t k = 0; p.held && k < all; k += depth) multiply(w, &p, GLSL_STRING(w, "%lld", (long long)k), k);
    if (p.held) return;
    GLSL_LINE(w, instr->unroll * (step / depth) >= all ? "[[unroll]]" : "[[dont_unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int k = 0; k < %lld; k += %lld)", (long long)all, (long long)step));
    multiply(w, &p, step > depth ? glsl_plus(w, first, "k") : "k", 0);
    glsl_close(w);
}
