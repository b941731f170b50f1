/* glsl_mma.c: MMA on the scalar tier: an outer product of the lane's rows and columns for each k, factors from shared
 * memory or where they lie. A factor whose runs go along k is read as 16-byte groups of four k (eight of 16 bits), one
 * whose runs go along the rows or columns of a lane as groups of four of them; anything else element by element. */
#include "glsl_private.h"

typedef struct product_form {
    int unroll;    /* k at a time */
    int width;     /* of groups along k */
    bool a_groups; /* a: runs along k */
    bool a_rows;   /* a: runs along four rows of one lane */
    bool b_groups; /* b: runs along k */
    int b_columns; /* b: runs along so many columns of one lane; 0: none */
} product_form;

static product_form form_of(const smg_kernel *k, const smg_instr *instr) {
    smg_wide left = instr->wide[0], right = instr->wide[1];
    int inner = instr->axes[instr->axis_count - 1];
    return (product_form){.unroll = smg_kernel_product_group(k, instr),
                          .width = left.width > 0 && left.axis == inner ? left.width : right.width,
                          .a_groups = left.width > 0 && left.axis == inner,
                          .a_rows = left.width > 0 && left.axis != inner,
                          .b_groups = right.width > 0 && right.axis == inner,
                          .b_columns = right.axis != inner ? right.width : 0};
}

static void open_steps(glsl_writer *w, const char *name, int count, int by) {
    if (count == 1) {
        glsl_open(w, "");
        return;
    }
    GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int %s = 0; %s < %d; %s += %d)", name, name, count, name, by));
}

static void open_count(glsl_writer *w, const char *name, int count) {
    open_steps(w, name, count, 1);
}

static smg_type type_of_view(glsl_writer *w, int tile) {
    return w->k->buffers.items[w->k->accesses.items[w->k->tiles.items[tile].access].buffer].type;
}

static const char *group_word(int width) {
    return width == SMG_WIDEST ? "uvec4" : "vec4";
}

static const char *load_group(glsl_writer *w, glsl_iter *it, int tile, int width) {
    return width == SMG_WIDEST ? glsl_view_eight(w, it, tile) : glsl_tile_group_value(w, it, tile);
}

/* Member u of a group that lies along k. */
static const char *member_of(glsl_writer *w, int tile, int width, const char *group, int u) {
    if (width == SMG_WIDEST) return glsl_eight_value(w, type_of_view(w, tile), group, u);
    return GLSL_STRING(w, "%s[%d]", group, u);
}

/* Groups of a view along k: as memory has them, or where sizes of the run do not allow that, made of its elements. */
static void load_row_group(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int width) {
    const smg_tile *a = &w->k->tiles.items[instr->a];
    const char *condition = a->residence == SMG_VIEW ? glsl_aligned(w, a->access, instr->wide[0]) : NULL;
    const char *group = load_group(w, it, instr->a, width);
    if (condition == NULL) {
        GLSL_LINE(w, "fa[%s] = %s;", it->i, group);
        return;
    }
    GLSL_LINE(w, "if (%s) fa[%s] = %s;", condition, it->i, group);
    glsl_open(w, "else");
    for (int n = 0; n < width; n++) {
        glsl_split_k(w, it, instr, n > 0 ? GLSL_STRING(w, "(k + %d)", n) : "k");
        GLSL_LINE(w, "fa[%s][%d] = %s;", it->i, n, glsl_tile_value(w, it, instr->a));
    }
    glsl_split_k(w, it, instr, "k");
    glsl_close(w);
}

/* fa[i]: a at the lane's rows. */
static void load_rows(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const product_form *f) {
    it->i = it->outer_registers > 1 ? "i" : "0";
    GLSL_LINE(w, "%s fa[%d];", f->a_groups ? group_word(f->width) : "float", it->outer_registers);
    open_steps(w, "i", it->outer_registers, f->a_rows ? 4 : 1);
    glsl_row_coordinates(w, it);
    if (f->a_rows) {
        GLSL_LINE(w, "vec4 four = %s;", glsl_tile_group_value(w, it, instr->a));
        for (int n = 0; n < 4; n++) GLSL_LINE(w, "fa[%s + %d] = four[%d];", it->i, n, n);
    } else if (f->a_groups) {
        load_row_group(w, it, instr, f->width);
    } else {
        GLSL_LINE(w, "fa[%s] = %s;", it->i, glsl_tile_value(w, it, instr->a));
    }
    glsl_close(w);
}

static void load_columns(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const product_form *f) {
    GLSL_LINE(w, "%s fb[%d];", f->b_groups ? group_word(f->width) : "float", it->inner_registers);
    glsl_open(w, "");
    it->j_step = f->b_columns > 0 ? f->b_columns : 1;
    glsl_inner_open(w, it);
    if (f->b_columns == SMG_WIDEST) {
        GLSL_LINE(w, "uvec4 eight = %s;", glsl_view_eight(w, it, instr->b));
        for (int n = 0; n < SMG_WIDEST; n++)
            GLSL_LINE(w, "fb[%s + %d] = %s;", it->j, n, member_of(w, instr->b, SMG_WIDEST, "eight", n));
    } else if (f->b_columns > 0) {
        GLSL_LINE(w, "vec4 four = %s;", glsl_tile_group_value(w, it, instr->b));
        for (int n = 0; n < 4; n++) GLSL_LINE(w, "fb[%s + %d] = four[%d];", it->j, n, n);
    } else {
        GLSL_LINE(w, "fb[%s] = %s;", it->j,
                  f->b_groups ? load_group(w, it, instr->b, f->width) : glsl_tile_value(w, it, instr->b));
    }
    glsl_inner_close(w, it);
    it->j_step = 1;
    glsl_close(w);
}

/* The sum of row i and column j. */
static const char *sum_of(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    it->i = it->outer_registers > 1 ? "i" : "0";
    it->j = it->inner_registers > 1 ? "j" : "0";
    const char *place = glsl_register_place(w, it, &w->k->layouts.items[dst->layout]);
    return glsl_register(w, instr->dst, place);
}

/* The outer product of one k. */
static void multiply(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const product_form *f, int member) {
    const char *sum = sum_of(w, it, instr);
    open_count(w, "i", it->outer_registers);
    open_count(w, "j", it->inner_registers);
    const char *a = GLSL_STRING(w, "fa[%s]", it->i), *b = GLSL_STRING(w, "fb[%s]", it->j);
    if (f->a_groups) a = member_of(w, instr->a, f->width, a, member);
    if (f->b_groups) b = member_of(w, instr->b, f->width, b, member);
    GLSL_LINE(w, "%s = fma(%s, %s, %s);", sum, a, b, sum);
    glsl_close(w);
    glsl_close(w);
}

/* Both factors go along k: the rows' groups are held, the columns' come one after the other. */
static void stream_columns(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int width) {
    const char *sum = sum_of(w, it, instr);
    glsl_inner_open(w, it);
    GLSL_LINE(w, "%s fb = %s;", group_word(width), load_group(w, it, instr->b, width));
    const char *rows = GLSL_STRING(w, "fa[%s]", it->i);
    for (int u = 0; u < width; u++) {
        open_count(w, "i", it->outer_registers);
        GLSL_LINE(w, "%s = fma(%s, %s, %s);", sum, member_of(w, instr->a, width, rows, u),
                  member_of(w, instr->b, width, "fb", u), sum);
        glsl_close(w);
    }
    glsl_inner_close(w, it);
}

/* The loop over k, a group at a time in each depth lane, so many of its steps written out as the program says. Returns
 * the loops opened. */
static int open_depth(glsl_writer *w, const smg_instr *instr, int unroll) {
    int64_t depth = smg_kernel_product_depth(w->k, instr);
    int64_t stride = smg_kernel_product_stride(w->k, instr), trips = (depth + stride - 1) / stride;
    int64_t together = instr->unroll > unroll ? instr->unroll / unroll : 1;
    const char *first = glsl_lane_part(w, smg_kernel_layout(w->k, instr), instr->axes[0]), *end;
    end = GLSL_STRING(w, "%lld", (long long)depth);
    bool nested = together > 1 && together < trips;
    if (nested) {
        GLSL_LINE(w, "[[dont_unroll]]");
        long long step = together * stride;
        glsl_open(w, GLSL_STRING(w, "for (int k0 = %s; k0 < %s; k0 += %lld)", first, end, step));
        first = "k0";
        end = GLSL_STRING(w, "k0 + %lld", (long long)(together * stride));
    }
    /* Written out only by bounds that are the same for all lanes. */
    if (together == trips && depth % stride == 0 && strcmp(first, "0") != 0) {
        GLSL_LINE(w, "[[unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int n = 0; n < %lld; n += %lld)", (long long)depth, (long long)stride));
        GLSL_LINE(w, "int k = n + %s;", first);
        return 1;
    }
    if (together > 1) GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int k = %s; k < %s; k += %lld)", first, end, (long long)stride));
    return nested ? 2 : 1;
}

void glsl_mma(glsl_writer *w, const smg_instr *instr) {
    glsl_iter it;
    if (w->k->tiles.items[instr->dst].fragments == SMG_FRAGMENTS_SUMS) {
        glsl_matrix_mma(w, instr);
        return;
    }
    if (w->k->tiles.items[instr->a].residence == SMG_REGISTER) {
        glsl_own_mma(w, instr);
        return;
    }
    if (instr->addressed || instr->terms > 0) {
        (instr->addressed ? glsl_direct_mma : glsl_pairs)(w, instr);
        return;
    }
    glsl_iter_of_sums(w, &it, instr);
    if (w->status != SMG_OK) return;
    product_form f = form_of(w->k, instr);
    int loops = open_depth(w, instr, f.unroll);
    glsl_split_k(w, &it, instr, "k");
    if (f.a_groups) load_rows(w, &it, instr, &f);
    if (f.a_groups && f.b_groups) {
        stream_columns(w, &it, instr, f.width);
        for (; loops > 0; loops--) glsl_close(w);
        return;
    }
    if (f.b_groups) load_columns(w, &it, instr, &f);
    for (int u = 0; u < f.unroll; u++) {
        glsl_open(w, "");
        glsl_split_k(w, &it, instr, u > 0 ? GLSL_STRING(w, "(k + %d)", u) : "k");
        if (!f.a_groups) load_rows(w, &it, instr, &f);
        if (!f.b_groups) load_columns(w, &it, instr, &f);
        multiply(w, &it, instr, &f, u);
        glsl_close(w);
    }
    for (; loops > 0; loops--) glsl_close(w);
}
