/* glsl: which invocation is which lane. The formulas that a kernel's text gives row_lane, col_lane and depth_lane are
 * evaluated for every invocation: each lane is one invocation, rows that are reduced stay within a subgroup, and the
 * masks of its exchanges connect exactly the column lanes of a row. Needs no device: woven lanes need subgroups of 16,
 * which software devices do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "glsl/glsl_private.h"

#define LANES 1024

typedef struct shape {
    int rows, cols, depth, subgroup;
} shape;

typedef struct numbers {
    int row[LANES], col[LANES], depth[LANES];
} numbers;

/* ---- the little of GLSL that the formulas use: + * / % >> & | over non-negative ints --------------- */

typedef struct reader {
    const char *at;
    int local, block;
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
    if (strncmp(r->at, "block", 5) == 0) return r->at += 5, r->block;
    char *end;
    long value = strtol(r->at, &end, 10);
    if (end == r->at) fail_msg("no number at '%s'", r->at);
    r->at = end;
    return (int)value;
}

static int apply(char op, int a, int b) {
    switch (op) {
    case '|': return a | b;
    case '&': return a & b;
    case '>': return a >> b;
    case '+': return a + b;
    case '*': return a * b;
    case '/': return a / b;
    default: return a % b;
    }
}

/* Levels in C's order: | & >> + then * / %. */
static int read_level(reader *r, int level) {
    static const char *const ops[] = {"|", "&", ">", "+", "*/%"};
    if (level == 5) return read_atom(r);
    int value = read_level(r, level + 1);
    for (;;) {
        while (*r->at == ' ') r->at++;
        char op = *r->at;
        if (op == '\0' || strchr(ops[level], op) == NULL) return value;
        r->at += op == '>' ? 2 : 1;
        value = apply(op, value, read_level(r, level + 1));
    }
}

/* The value of `int name = ...;` in the text; -1 where there is no such line. */
static int value_of(const char *text, const char *name, int local, int block) {
    char head[32];
    snprintf(head, sizeof head, "int %s = ", name);
    const char *line = strstr(text, head);
    if (line == NULL) return -1;
    reader r = {.at = line + strlen(head), .local = local, .block = block};
    int value = read_level(&r, 0);
    assert_int_equal(*r.at, ';');
    return value;
}

/* ---- a kernel's lanes ------------------------------------------------------------------------------ */

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_kernel k;
    smg_target target;
    glsl_writer w;
    numbers n;
} fixture;

/* Only what decides about lanes: a product, a reduction. */
static void start(fixture *f, shape s, bool product, bool reduces) {
    *f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    f->k = (smg_kernel){.lane_rows = s.rows, .lane_cols = s.cols, .lane_depth = s.depth, .subgroup = s.subgroup};
    for (int i = 0; i < product + reduces; i++) {
        smg_instr *in = SMG_ARRAY_PUSH(f->arena, &f->k.code);
        assert_non_null(in);
        *in = (smg_instr){.kind = i < product ? SMG_I_MMA : SMG_I_REDUCE};
    }
    smg_target_init(&f->target);
    f->target.subgroup_shuffle = 1;
    f->w = (glsl_writer){.ctx = f->ctx, .k = &f->k, .target = &f->target, .arena = f->arena};
    f->w.weave = glsl_lanes_woven(&f->k, &f->target);
    smg_text_init(&f->w.body, f->ctx);
    glsl_lanes(&f->w);
    assert_int_equal(f->w.status, SMG_OK);
    const char *text = smg_text_cstr(&f->w.body);
    for (int local = 0; local < s.rows * s.cols * s.depth; local++) {
        int block = value_of(text, "block", local, 0), row = value_of(text, "row_lane", local, block);
        int col = value_of(text, "col_lane", local, block), depth = value_of(text, "depth_lane", local, block);
        f->n.row[local] = row < 0 ? 0 : row;
        f->n.col[local] = col < 0 ? 0 : col;
        f->n.depth[local] = depth < 0 ? 0 : depth;
    }
}

static void finish(fixture *f) {
    smg_text_free(&f->w.body);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

static void every_lane_once(const fixture *f, shape s) {
    bool seen[LANES] = {false};
    for (int local = 0; local < s.rows * s.cols * s.depth; local++) {
        int row = f->n.row[local], col = f->n.col[local], depth = f->n.depth[local];
        if (row >= s.rows || col >= s.cols || depth >= s.depth)
            fail_msg("%dx%dx%d: invocation %d is lane %d %d %d", s.depth, s.rows, s.cols, local, depth, row, col);
        int lane = (depth * s.rows + row) * s.cols + col;
        if (seen[lane]) fail_msg("%dx%dx%d: lane %d twice", s.depth, s.rows, s.cols, lane);
        seen[lane] = true;
    }
}

/* What a reduction over `columns` lanes of a row relies on. */
static void masks_connect_columns(const fixture *f, shape s, int columns) {
    for (int lanes = 2; lanes <= columns; lanes *= 2) {
        int mask = glsl_column_mask(&f->w, lanes);
        assert_true(mask > 0 && mask < s.subgroup);
        for (int local = 0; local < s.rows * s.cols * s.depth; local++) {
            int other = local ^ mask;
            if (f->n.row[other] != f->n.row[local] || f->n.depth[other] != f->n.depth[local] ||
                f->n.col[other] != (f->n.col[local] ^ (lanes / 2)))
                fail_msg("%dx%d of %d: mask %d leads from %d to %d", s.rows, s.cols, s.subgroup, mask, local, other);
        }
    }
}

static void rows_stay_within_a_subgroup(const fixture *f, shape s) {
    int home[LANES];
    for (int i = 0; i < s.rows * s.depth; i++) home[i] = -1;
    for (int local = 0; local < s.rows * s.cols * s.depth; local++) {
        int *at = &home[f->n.depth[local] * s.rows + f->n.row[local]];
        if (*at < 0) *at = local / s.subgroup;
        assert_int_equal(*at, local / s.subgroup);
    }
}

static const shape shapes[] = {{4, 32, 1, 32},  {8, 16, 1, 32},  {16, 8, 1, 32}, {32, 4, 1, 32},  {64, 2, 1, 32},
                               {16, 16, 1, 32}, {8, 32, 1, 32},  {2, 64, 1, 32}, {16, 16, 2, 32}, {8, 8, 4, 32},
                               {8, 8, 1, 64},   {16, 16, 1, 64}, {4, 32, 2, 64}, {8, 8, 1, 16},   {2, 16, 3, 16},
                               {4, 4, 1, 16},   {8, 4, 1, 32},   {4, 8, 1, 32},  {1, 64, 1, 32},  {32, 8, 1, 128},
                               {4, 4, 1, 8},    {2, 8, 1, 4},    {4, 8, 1, 1},   {1, 128, 1, 32}, {128, 1, 1, 32},
                               {8, 6, 1, 16},   {6, 8, 1, 16},   {16, 12, 1, 32}};

static void products_weave(void **state) {
    (void)state;
    int woven = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(shapes); i++) {
        fixture f;
        start(&f, shapes[i], true, false);
        every_lane_once(&f, shapes[i]);
        if (f.w.weave.columns > 0) {
            assert_int_equal(f.w.weave.columns * f.w.weave.rows, shapes[i].subgroup);
            masks_connect_columns(&f, shapes[i], f.w.weave.columns);
            woven++;
        }
        finish(&f);
    }
    assert_true(woven >= 15);
}

static void reductions_stay_within_subgroups(void **state) {
    (void)state;
    int woven = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(shapes); i++) {
        shape s = shapes[i];
        for (int product = 0; product < 2; product++) {
            fixture f;
            start(&f, s, product != 0, true);
            every_lane_once(&f, s);
            if (s.cols > s.subgroup || s.subgroup % s.cols != 0) { /* through shared memory */
                assert_int_equal(f.w.weave.columns, 0);
                finish(&f);
                continue;
            }
            rows_stay_within_a_subgroup(&f, s);
            masks_connect_columns(&f, s, s.cols);
            woven += f.w.weave.columns > 0;
            if (!product) assert_int_equal(f.w.weave.columns, 0);
            finish(&f);
        }
    }
    assert_true(woven >= 8);
}

/* Without exchanges between lanes, or with subgroups too small for blocks, lanes are dealt out row by row. */
static void the_rest_is_plain(void **state) {
    (void)state;
    fixture f;
    const shape s = {8, 16, 1, 32}, small = {8, 16, 1, 8};
    start(&f, s, true, true);
    assert_int_equal(f.w.weave.columns, 16);
    f.target.subgroup_shuffle = 0;
    assert_int_equal(glsl_lanes_woven(&f.k, &f.target).columns, 0);
    finish(&f);
    start(&f, small, true, false);
    assert_int_equal(f.w.weave.columns, 0);
    for (int local = 0; local < 128; local++) {
        assert_int_equal(f.n.row[local], local / 16);
        assert_int_equal(f.n.col[local], local % 16);
    }
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_weave),
        cmocka_unit_test(reductions_stay_within_subgroups),
        cmocka_unit_test(the_rest_is_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
