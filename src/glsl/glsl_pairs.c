/* glsl_pairs.c: MMA with partial sums: so many products at a time are summed up in pairs of f16, two columns each, with
 * twice the multiply-adds of one instruction, and then added to the f32 sums. */
#include "glsl_private.h"

typedef struct pairs {
    glsl_writer *w;
    glsl_iter it;
    const smg_instr *instr;
    int rows, columns; /* a lane's */
} pairs;

static void unrolled(pairs *p, const char *name, int count, int by) {
    GLSL_LINE(p->w, "[[unroll]]");
    glsl_open(p->w, GLSL_STRING(p->w, "for (int %s = 0; %s < %d; %s += %d)", name, name, count, name, by));
}

/* The element, or the four or eight from it on, as pairs from to[number / 2] on. */
static void load_pairs(pairs *p, const char *to, const char *number, int tile, int width) {
    glsl_writer *w = p->w;
    if (width == SMG_WIDEST) {
        p->it.group = SMG_WIDEST;
        GLSL_LINE(w, "uvec4 eight = %s;", glsl_tile_group(w, &p->it, tile));
        p->it.group = 1;
        for (int n = 0; n < SMG_WIDEST / 2; n++)
            GLSL_LINE(w, "%s[(%s >> 1) + %d] = unpackFloat2x16(eight[%d]);", to, number, n, n);
        return;
    }
    if (width == 0) {
        GLSL_LINE(w, "%s[%s >> 1][%s & 1] = %s;", to, number, number, glsl_tile_element(w, &p->it, tile));
        return;
    }
    GLSL_LINE(w, "f16vec4 four = %s;", glsl_tile_group(w, &p->it, tile));
    GLSL_LINE(w, "%s[%s >> 1] = four.xy;", to, number);
    GLSL_LINE(w, "%s[(%s >> 1) + 1] = four.zw;", to, number);
}

static void load_rows(pairs *p) {
    int width = p->instr->wide[0].width;
    GLSL_LINE(p->w, "f16vec2 fa[%d];", (p->rows + 1) / 2);
    unrolled(p, "i", p->rows, width > 0 ? width : 1);
    p->it.i = "i";
    glsl_row_coordinates(p->w, &p->it);
    load_pairs(p, "fa", "i", p->instr->a, width);
    glsl_close(p->w);
}

static void load_columns(pairs *p) {
    int width = p->instr->wide[1].width;
    GLSL_LINE(p->w, "f16vec2 fb[%d];", p->columns / 2);
    glsl_open(p->w, "");
    p->it.j_step = width > 0 ? width : 1;
    glsl_inner_open(p->w, &p->it);
    load_pairs(p, "fb", p->it.j, p->instr->b, width);
    glsl_inner_close(p->w, &p->it);
    p->it.j_step = 1;
    glsl_close(p->w);
}

/* The outer product of one k. */
static void multiply(pairs *p) {
    int halves = p->columns / 2;
    unrolled(p, "i", p->rows, p->rows > 1 ? 2 : 1);
    unrolled(p, "j", halves, 1);
    for (int n = 0; n < 2 && n < p->rows; n++) {
        const char *part = GLSL_STRING(p->w, n > 0 ? "part[(i + 1) * %d + j]" : "part[i * %d + j]", halves);
        GLSL_LINE(p->w, "%s = fma(fa[i >> 1].%s, fb[j], %s);", part, n > 0 ? "yy" : "xx", part);
    }
    glsl_close(p->w);
    glsl_close(p->w);
}

static void add_parts(pairs *p) {
    glsl_writer *w = p->w;
    const smg_tile *dst = &w->k->tiles.items[p->instr->dst];
    const smg_layout *layout = &w->k->layouts.items[dst->layout];
    unrolled(p, "i", p->rows, 1);
    unrolled(p, "j", p->columns, 2);
    p->it.i = p->rows > 1 ? "i" : "0";
    for (int n = 0; n < 2; n++) {
        p->it.j = n > 0 ? "(j + 1)" : "j";
        GLSL_LINE(w, "t_%s[%s] += float(part[i * %d + (j >> 1)].%s);", w->tile_name[p->instr->dst],
                  glsl_register_place(w, &p->it, layout), p->columns / 2, n > 0 ? "y" : "x");
    }
    glsl_close(w);
    glsl_close(w);
}

/* The products of one partial sum, as many at once as the program says. Returns the loops opened. */
static int open_terms(glsl_writer *w, const smg_instr *instr, const char *first) {
    bool nested = instr->unroll > 0 && instr->unroll < instr->terms;
    const char *end = GLSL_STRING(w, "%s + %d", first, instr->terms);
    if (nested) {
        GLSL_LINE(w, "[[dont_unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int k1 = %s; k1 < %s; k1 += %d)", first, end, instr->unroll));
        end = GLSL_STRING(w, "k1 + %d", instr->unroll);
        first = "k1";
    }
    GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int k = %s; k < %s; ++k)", first, end));
    return nested ? 2 : 1;
}

void glsl_pairs(glsl_writer *w, const smg_instr *instr) {
    pairs p = {.w = w, .instr = instr};
    int64_t depth = smg_kernel_product_depth(w->k, instr);
    glsl_iter_of_sums(w, &p.it, instr);
    if (w->status != SMG_OK) return;
    w->uses[GLSL_USE_FLOAT16] = true;
    p.rows = p.it.outer_registers;
    p.columns = p.it.inner_registers;
    bool several = depth > instr->terms;
    if (several) GLSL_LINE(w, "[[dont_unroll]]");
    glsl_open(w,
              several ? GLSL_STRING(w, "for (int k0 = 0; k0 < %lld; k0 += %d)", (long long)depth, instr->terms) : "");
    GLSL_LINE(w, "f16vec2 part[%d];", p.rows * p.columns / 2);
    unrolled(&p, "i", p.rows * p.columns / 2, 1);
    GLSL_LINE(w, "part[i] = f16vec2(0);");
    glsl_close(w);
    int loops = open_terms(w, instr, several ? "k0" : "0");
    glsl_split_k(w, &p.it, instr, "k");
    load_rows(&p);
    load_columns(&p);
    multiply(&p);
    for (; loops > 0; loops--) glsl_close(w);
    add_parts(&p);
    glsl_close(w);
}
