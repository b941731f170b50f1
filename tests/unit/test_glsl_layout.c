/* glsl: layouts as text. What lanes and registers add to coordinates, and the register of an element in another layout,
 * are evaluated for every number and compared with the layout. Then the layouts that lowering deals lanes out by: each
 * lane once, rows that are reduced within a subgroup. Needs no device: woven lanes need subgroups of 16, which software
 * devices do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "glsl/glsl_private.h"
#include "lower/lower.h"

#define LANES 1024

/* ---- the little of GLSL that the formulas use: + - * / % >> & over non-negative ints ------------------ */

typedef struct reader {
    const char *at;
    int local, i, j;
} reader;

static int read_level(reader *r, int level);

static int read_atom(reader *r) {
    while (*r->at == ' ') r->at++;
    if (*r->at == '(') {
        r->at++;
        int value = read_level(r, 0);
        while (*r->at == ' ') r->at++;
        assert_int_equal(*r->at++, ')');
        return value;
    }
    if (strncmp(r->at, "local", 5) == 0) return r->at += 5, r->local;
    if (*r->at == 'i') return r->at++, r->i;
    if (*r->at == 'j') return r->at++, r->j;
    char *end;
    long value = strtol(r->at, &end, 10);
    if (end == r->at) fail_msg("no number at '%s'", r->at);
    r->at = end;
    return (int)value;
}

static int apply(char op, int a, int b) {
    switch (op) {
    case '&': return a & b;
    case '>': return a >> b;
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    default: return a % b;
    }
}

/* Levels in C's order: & >> + then * / %. */
static int read_level(reader *r, int level) {
    static const char *const ops[] = {"&", ">", "+-", "*/%"};
    if (level == 4) return read_atom(r);
    int value = read_level(r, level + 1);
    for (;;) {
        while (*r->at == ' ') r->at++;
        char op = *r->at;
        if (op == '\0' || strchr(ops[level], op) == NULL) return value;
        r->at += op == '>' ? 2 : 1;
        value = apply(op, value, read_level(r, level + 1));
    }
}

static int value_of(const char *text, int local, int i, int j) {
    reader r = {.at = text, .local = local, .i = i, .j = j};
    int value = read_level(&r, 0);
    assert_true(*r.at == '\0' || *r.at == ';');
    return value;
}

/* ---- a kernel of a product, a reduction, or both ----------------------------------------------------- */

typedef struct shape {
    int rows, cols, depth, subgroup;
} shape;

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_kernel *k;
    smg_target target;
    glsl_writer w;
} fixture;

enum { ROW, COLUMN, K };

static void start(fixture *f) {
    *f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    f->k = SMG_ARENA_NEW(f->arena, smg_kernel);
    assert_non_null(f->k);
    f->k->arena = f->arena;
    assert_int_equal(smg_exprs_create(f->arena, &f->k->exprs), SMG_OK);
    smg_target_init(&f->target);
    static const char *axis_name[] = {"m", "n", "k", "a", "b", "c"};
    f->w = (glsl_writer){.ctx = f->ctx, .k = f->k, .target = &f->target, .arena = f->arena, .axis_name = axis_name};
    smg_text_init(&f->w.body, f->ctx);
}

static void finish(fixture *f) {
    smg_text_free(&f->w.body);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

static smg_instr *add(fixture *f, smg_instr_kind kind) {
    smg_instr *in = SMG_ARRAY_PUSH(f->arena, &f->k->code);
    assert_non_null(in);
    *in = (smg_instr){.kind = kind, .dst = 0, .a = 1, .b = 1, .layout = -1, .expr = SMG_EXPR_NONE};
    return in;
}

static void deal(fixture *f, shape s, bool product, bool reduces) {
    start(f);
    int64_t tiles[] = {2 * s.rows, 3 * s.cols, 16};
    for (int a = 0; a < 3; a++) *SMG_ARRAY_PUSH(f->arena, &f->k->axes) = (smg_kaxis){.name = "", .tile = tiles[a]};
    *SMG_ARRAY_PUSH(f->arena, &f->k->tiles) =
        (smg_tile){.name = "c", .residence = SMG_REGISTER, .axis_count = 2, .axis = {ROW, COLUMN}};
    *SMG_ARRAY_PUSH(f->arena, &f->k->tiles) =
        (smg_tile){.name = "s", .residence = SMG_SHARED, .axis_count = 2, .axis = {ROW, K}};
    *SMG_ARRAY_PUSH(f->arena, &f->k->tiles) =
        (smg_tile){.name = "r", .residence = SMG_REGISTER, .axis_count = 1, .axis = {ROW}};
    if (product) {
        smg_instr *mma = add(f, SMG_I_MMA);
        mma->axis_count = 1;
        mma->axes[0] = K;
    }
    if (reduces) {
        smg_instr *reduce = add(f, SMG_I_REDUCE);
        reduce->dst = 2;
        reduce->axis_count = 1;
        reduce->axes[0] = COLUMN;
    }
    smg_lane_grid grid = {.rows = s.rows,
                          .cols = s.cols,
                          .depth = s.depth,
                          .vec = 1,
                          .row_axis = ROW,
                          .col_axis = -1,
                          .subgroup = s.subgroup};
    assert_int_equal(smg_kernel_distribute(f->k, &grid), SMG_OK);
    glsl_lanes(&f->w);
    assert_int_equal(f->w.status, SMG_OK);
}

static const smg_layout *of_result(const fixture *f) {
    return &f->k->layouts.items[f->k->tiles.items[0].layout];
}

static int part(const smg_layout *l, int axis, int local, int subgroup) {
    return (int)(smg_layout_part(l, axis, SMG_LAYOUT_LANE, local % subgroup) +
                 smg_layout_part(l, axis, SMG_LAYOUT_SUBGROUP, local / subgroup));
}

/* Each place of the block of rows and columns has as many lanes as there are copies. */
static void every_lane_once(const fixture *f, shape s) {
    int seen[LANES] = {0};
    const smg_layout *l = of_result(f);
    for (int local = 0; local < s.rows * s.cols * s.depth; local++) {
        int row = part(l, ROW, local, s.subgroup), col = part(l, COLUMN, local, s.subgroup);
        assert_true(row < s.rows && col < s.cols);
        seen[row * s.cols + col]++;
    }
    for (int i = 0; i < s.rows * s.cols; i++) assert_int_equal(seen[i], s.depth);
}

/* The lane's number, evaluated from the text, is the layout's. */
static void text_says_the_layout(fixture *f, shape s) {
    for (int n = 0; n < f->k->layouts.count; n++) {
        const smg_layout *l = &f->k->layouts.items[n];
        for (int a = 0; a < l->axis_count; a++) {
            const char *name = glsl_lane_part(&f->w, l, l->axes[a].axis), *text = name;
            char head[32];
            snprintf(head, sizeof head, "int %s = ", name);
            const char *line = strstr(smg_text_cstr(&f->w.body), head);
            if (line != NULL && strcmp(name, "local") != 0) text = line + strlen(head);
            for (int local = 0; local < f->k->lanes; local++)
                assert_int_equal(value_of(text, local, 0, 0), part(l, l->axes[a].axis, local, s.subgroup));
        }
    }
    assert_int_equal(f->w.status, SMG_OK);
}

static const shape shapes[] = {{4, 32, 1, 32},  {8, 16, 1, 32},  {16, 8, 1, 32}, {32, 4, 1, 32},  {64, 2, 1, 32},
                               {16, 16, 1, 32}, {8, 32, 1, 32},  {2, 64, 1, 32}, {16, 16, 2, 32}, {8, 8, 4, 32},
                               {8, 8, 1, 64},   {16, 16, 1, 64}, {4, 32, 2, 64}, {8, 8, 1, 16},   {2, 16, 4, 16},
                               {4, 4, 1, 16},   {8, 4, 1, 32},   {4, 8, 1, 32},  {1, 64, 1, 32},  {32, 8, 1, 128},
                               {4, 4, 1, 8},    {2, 8, 1, 4},    {4, 8, 1, 1},   {1, 128, 1, 32}, {128, 1, 1, 32}};

/* Bit 0 chooses a column and bit 1 a row, and so both take turns. */
static bool is_woven(const fixture *f, shape s) {
    const smg_layout *l = of_result(f);
    return s.subgroup >= 16 && part(l, COLUMN, 1, s.subgroup) == 1 && part(l, ROW, 2, s.subgroup) == 1;
}

static void products_weave(void **state) {
    (void)state;
    int woven = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(shapes); i++) {
        fixture f;
        deal(&f, shapes[i], true, false);
        every_lane_once(&f, shapes[i]);
        text_says_the_layout(&f, shapes[i]);
        woven += is_woven(&f, shapes[i]);
        finish(&f);
    }
    assert_int_equal(woven, 19);
}

static void reductions_stay_within_subgroups(void **state) {
    (void)state;
    int woven = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(shapes); i++) {
        shape s = shapes[i];
        for (int product = 0; product < 2; product++) {
            fixture f;
            deal(&f, s, product != 0, true);
            every_lane_once(&f, s);
            text_says_the_layout(&f, s);
            int above = 0;
            for (int bit = s.subgroup; bit < f.k->lanes; bit *= 2)
                above += part(of_result(&f), COLUMN, bit, s.subgroup);
            if (s.cols <= s.subgroup) assert_int_equal(above, 0);
            if (!product) assert_true(s.cols < 4 || !is_woven(&f, s));
            woven += is_woven(&f, s);
            finish(&f);
        }
    }
    assert_int_equal(woven, 16);
}

/* Without blocks lanes are dealt out row by row. */
static void the_rest_is_plain(void **state) {
    (void)state;
    fixture f;
    const shape small = {8, 16, 1, 8};
    deal(&f, small, true, false);
    for (int local = 0; local < 128; local++) {
        assert_int_equal(part(of_result(&f), ROW, local, 8), local / 16);
        assert_int_equal(part(of_result(&f), COLUMN, local, 8), local % 16);
    }
    finish(&f);
}

/* ---- registers --------------------------------------------------------------------------------------- */

static uint64_t seed = 7;

static int draw(int below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)below);
}

static smg_layout random_layout(void) {
    smg_layout l = smg_layout_one();
    int axes = 1 + draw(4), digits = draw(7);
    for (int a = 0; a < axes; a++) smg_layout_add(&l, SMG_LAYOUT_REGISTER, a, 1);
    for (int n = 0; n < digits; n++) smg_layout_add(&l, (smg_layout_level)draw(SMG_LAYOUT_LEVELS), draw(axes), 2);
    smg_layout_repeat(&l, draw(axes), 1 + draw(6));
    return l;
}

/* Some of the axes, the registers of each in another order. */
static smg_layout other_order(const smg_layout *l) {
    int axes[4], count = 0;
    for (int a = 0; a < l->axis_count; a++)
        if (draw(3) > 0) axes[count++] = l->axes[a].axis;
    smg_layout s = smg_layout_keep(l, axes, count);
    for (int n = 0; n < 4 && s.bits[SMG_LAYOUT_REGISTER] > 1; n++) {
        smg_basis *x = &s.basis[SMG_LAYOUT_REGISTER][draw(s.bits[SMG_LAYOUT_REGISTER])];
        smg_basis *y = &s.basis[SMG_LAYOUT_REGISTER][draw(s.bits[SMG_LAYOUT_REGISTER])], old = *x;
        *x = *y;
        *y = old;
    }
    return s;
}

static void registers_as_text(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        fixture f;
        start(&f);
        smg_layout l = random_layout(), tile = other_order(&l);
        int outer[4], outer_count = 0;
        for (int a = 0; a < l.axis_count; a++)
            if (draw(2) == 0) outer[outer_count++] = l.axes[a].axis;
        glsl_iter it;
        glsl_iter_over(&f.w, &it, &l, outer, outer_count);
        assert_int_equal(it.outer_registers * it.inner_registers, smg_layout_registers(&l));
        it.i = "i";
        it.j = "j";
        const char *place = glsl_register_place(&f.w, &it, &tile);
        for (int i = 0; i < it.outer_registers; i++)
            for (int j = 0; j < it.inner_registers; j++) {
                int64_t at[SMG_LAYOUT_AXES];
                for (int a = 0; a < tile.axis_count; a++) {
                    int axis = tile.axes[a].axis;
                    bool is_outer = glsl_is_outer(&it, axis);
                    const smg_layout *kept = is_outer ? &it.outer : &it.inner;
                    at[a] = smg_layout_part(kept, axis, SMG_LAYOUT_REGISTER, is_outer ? i : j);
                    const char *text = glsl_register_part(&f.w, kept, axis, is_outer ? "i" : "j");
                    assert_int_equal(value_of(text, 0, i, j), at[a]);
                }
                assert_int_equal(value_of(place, 0, i, j), smg_layout_register_of(&tile, at));
            }
        assert_int_equal(f.w.status, SMG_OK);
        finish(&f);
    }
}

static void picked_registers_as_text(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        fixture f;
        start(&f);
        smg_layout l = random_layout(), tile = other_order(&l);
        int outer[4], outer_count = 0;
        for (int a = 0; a < l.axis_count; a++)
            if (draw(2) == 0) outer[outer_count++] = l.axes[a].axis;
        smg_kleaf leaf = {.what = SMG_KLEAF_TILE};
        for (int a = 0; a < tile.axis_count && leaf.pick_count < SMG_LAYOUT_PICKS; a++) {
            int axis = tile.axes[a].axis, span = (int)smg_layout_span(&tile, axis), from = draw(2) ? -1 : axis;
            if (draw(2)) leaf.pick[leaf.pick_count++] = (smg_layout_pick){axis, from, draw(span)};
        }
        if (smg_layout_readable_at(&tile, &l, leaf.pick, leaf.pick_count)) {
            glsl_iter it;
            glsl_iter_over(&f.w, &it, &l, outer, outer_count);
            it.i = "i";
            it.j = "j";
            const char *place = glsl_register_at(&f.w, &it, &tile, &leaf), *own = glsl_register_place(&f.w, &it, &l);
            for (int i = 0; i < it.outer_registers; i++)
                for (int j = 0; j < it.inner_registers; j++)
                    assert_int_equal(
                        value_of(place, 0, i, j),
                        smg_layout_register_at(&tile, &l, leaf.pick, leaf.pick_count, value_of(own, 0, i, j)));
        }
        assert_int_equal(f.w.status, SMG_OK);
        finish(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_weave),           cmocka_unit_test(reductions_stay_within_subgroups),
        cmocka_unit_test(the_rest_is_plain),        cmocka_unit_test(registers_as_text),
        cmocka_unit_test(picked_registers_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
