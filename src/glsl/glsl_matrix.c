/* glsl_matrix.c: sums that a subgroup makes by cooperative matrices, and their factors. */
#include "glsl_private.h"

void glsl_registers(glsl_writer *w, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    const smg_matrix *m = &w->k->matrix;
    int64_t registers = smg_tile_registers(w->k, tile);
    if (tile->fragments == SMG_FRAGMENTS_NONE) {
        GLSL_LINE(w, "%s t_%s[%d];", glsl_kind(smg_tile_kind(tile)), w->tile_name[t], (int)registers);
        return;
    }
    int slots = smg_tile_slots(tile);
    bool loaded = glsl_is_loaded_ahead(w, t);
    GLSL_LINE(w, "%s t_%s%s[%d];", loaded ? "uvec4" : glsl_matrix_of(w, tile->fragments), w->tile_name[t],
              slots > 1 ? GLSL_STRING(w, "[%d]", slots) : "",
              (int)(registers / (loaded ? SMG_WIDEST : smg_matrix_elements(m, tile->fragments))));
}

/* One factor: its shared tile, and how a matrix of it is read from there. */
typedef struct factor {
    int tile, axis;   /* the axis beside the contracted one */
    const char *type; /* of a matrix */
    int64_t step[2];  /* elements from one to the next along its own axis, and along the contracted one */
    bool turned;      /* the contracted axis is not the one that a matrix of this side has in rows */
    int64_t group;    /* elements of one of shared memory */
} factor;

/* `along`: the contracted axis. */
static factor factor_of(glsl_writer *w, int shared, bool left, int axis, int along) {
    factor f = {.tile = shared, .axis = axis};
    const smg_tile *tile = &w->k->tiles.items[f.tile];
    f.step[0] = smg_tile_stride(w->k, tile, axis);
    f.step[1] = smg_tile_stride(w->k, tile, along);
    f.turned = left ? f.step[1] != 1 : f.step[1] == 1;
    f.group = smg_tile_group(w->k, f.tile);
    f.type = glsl_matrix_of(w, left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT);
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
    GLSL_LINE(w, "coopMatLoad(%s, %s, %s, %lld, %s);", name, glsl_slice(w, f->tile), place,
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

/* The number of the matrix of a factor in registers that belongs to matrix n of the sums, at `step` of the contracted
 * axis; -1. */
static int64_t matrix_number(const glsl_writer *w, const smg_instr *instr, int tile, int64_t step, int64_t n) {
    const smg_tile *t = &w->k->tiles.items[tile];
    for (int64_t m = 0; m < matrices_of(w, tile); m++) {
        bool same = true;
        for (int i = 0; i < t->axis_count; i++) {
            int axis = t->axis[i];
            same = same &&
                   begin_of(w, tile, axis, m) == (axis == instr->axes[0] ? step : begin_of(w, instr->dst, axis, n));
        }
        if (same) return m;
    }
    return -1;
}

static const char *matrix_for(glsl_writer *w, const smg_instr *instr, int tile, int64_t step, int64_t n) {
    int64_t number = matrix_number(w, instr, tile, step, n);
    if (number < 0) glsl_fail(w, SMG_INTERNAL, "a factor in registers lacks a matrix");
    return GLSL_STRING(w, "%s[%lld]", glsl_slice(w, tile), (long long)number);
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
    const char *row, *col;      /* where the subgroup's part begins */
    bool left_held, right_held; /* factors in registers */
    bool right_loaded;          /* not as matrices yet */
} matrix_product;

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
    if (!p->left_held) load_left(w, p, k);
    for (int64_t first = 0; first < count; first++) {
        if (begin_of(w, dst, p->a.axis, first) != 0) continue;
        const char *right = "fb", *at = GLSL_STRING(w, "%lld", (long long)begin_of(w, dst, p->b.axis, first));
        bool made = !p->right_held || p->right_loaded;
        if (p->right_loaded) {
            glsl_open(w, "");
            GLSL_LINE(w, "%s fb;", glsl_matrix_of(w, SMG_FRAGMENTS_RIGHT));
            glsl_make_matrix(w, p->instr->b, matrix_number(w, p->instr, p->instr->b, step, first), "fb");
        } else if (p->right_held) {
            right = matrix_for(w, p->instr, p->instr->b, step, first);
        } else {
            glsl_open(w, "");
            GLSL_LINE(w, "%s fb;", p->b.type);
            load(w, &p->b, "fb", glsl_plus(w, p->col, at), k, held_part(w, &p->b, dst, first));
        }
        for (int64_t n = 0, i = 0; n < count; n++) {
            if (!beside(w, dst, p->a.axis, first, n)) continue;
            const char *sum = GLSL_STRING(w, "t_%s[%lld]", w->tile_name[dst], (long long)n);
            const char *left = p->left_held ? matrix_for(w, p->instr, p->instr->a, step, n)
                                            : GLSL_STRING(w, "fa[%lld]", (long long)i++);
            GLSL_LINE(w, "%s = coopMatMulAdd(%s, %s, %s);", sum, left, right, sum);
        }
        if (made) glsl_close(w);
    }
}

/* The numbers of matrices in registers are literals: one step for each along k that the subgroup has. */
static void multiply_held(glsl_writer *w, const matrix_product *p, const char *first) {
    int tile = p->left_held ? p->instr->a : p->instr->b;
    for (int64_t m = 0; m < matrices_of(w, tile); m++) {
        if (!beside(w, tile, p->instr->axes[0], 0, m)) continue;
        int64_t step = begin_of(w, tile, p->instr->axes[0], m);
        if (!p->left_held) glsl_open(w, "");
        multiply(w, p, glsl_plus(w, first, GLSL_STRING(w, "%lld", (long long)step)), step);
        if (!p->left_held) glsl_close(w);
    }
}

void glsl_matrix_mma(glsl_writer *w, const smg_instr *instr) {
    int row = -1, col = -1, depth = w->k->matrix.depth;
    const smg_layout *layout = &w->k->layouts.items[w->k->tiles.items[instr->dst].layout];
    if (!smg_kernel_product_sides(w->k, instr, &row, &col)) {
        glsl_fail(w, SMG_INTERNAL, "a product by matrices has other sides than one row and one column");
        return;
    }
    matrix_product p = {.instr = instr};
    p.left_held = w->k->tiles.items[instr->a].residence == SMG_REGISTER;
    p.right_held = w->k->tiles.items[instr->b].residence == SMG_REGISTER;
    p.right_loaded = p.right_held && glsl_is_loaded_ahead(w, instr->b);
    p.a.axis = row;
    p.b.axis = col;
    if (!p.left_held) p.a = factor_of(w, instr->a, true, row, instr->axes[0]);
    if (!p.right_held) p.b = factor_of(w, instr->b, false, col, instr->axes[0]);
    p.row = glsl_subgroup_part(w, layout, row);
    p.col = glsl_subgroup_part(w, layout, col);
    int64_t all = smg_kernel_product_depth(w->k, instr), step = depth * smg_kernel_product_lanes(w->k, instr);
    const char *first = glsl_subgroup_part(w, &w->k->layouts.items[instr->layout], instr->axes[0]);
    if (p.left_held || p.right_held) {
        multiply_held(w, &p, first);
        return;
    }
    GLSL_LINE(w, instr->unroll * (step / depth) >= all ? "[[unroll]]" : "[[dont_unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int k = 0; k < %lld; k += %lld)", (long long)all, (long long)step));
    multiply(w, &p, step > depth ? glsl_plus(w, first, "k") : "k", 0);
    glsl_close(w);
}

static void take(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst], *from = &w->k->tiles.items[instr->a];
    const smg_layout *layout = &w->k->layouts.items[dst->layout];
    int own = -1, along = -1;
    if (!smg_matrix_takes(w->k, instr, &own, &along)) {
        glsl_fail(w, SMG_INTERNAL, "a factor in registers is not of whole matrices");
        return;
    }
    factor f = factor_of(w, instr->a, dst->fragments == SMG_FRAGMENTS_LEFT, own, along);
    const char *part = glsl_subgroup_part(w, layout, own);
    for (int64_t n = 0; n < matrices_of(w, instr->dst); n++) {
        int64_t others = 0;
        for (int i = 0; i < dst->axis_count; i++)
            if (dst->axis[i] != own && dst->axis[i] != along)
                others += begin_of(w, instr->dst, dst->axis[i], n) * smg_tile_stride(w->k, from, dst->axis[i]);
        const char *at = GLSL_STRING(w, "%lld", (long long)begin_of(w, instr->dst, own, n));
        int64_t step = begin_of(w, instr->dst, along, n);
        if (from->in_runs) step = smg_matrix_place_in_runs(&w->k->matrix, step);
        const char *k = GLSL_STRING(w, "%lld", (long long)step);
        load(w, &f, GLSL_STRING(w, "%s[%lld]", glsl_slice(w, instr->dst), (long long)n), glsl_plus(w, part, at), k,
             others);
    }
}

void glsl_take(glsl_writer *w, const smg_instr *instr, int at) {
    glsl_ahead(w, instr, at, instr->wide[0].width > 0 ? glsl_take_runs : take);
}
