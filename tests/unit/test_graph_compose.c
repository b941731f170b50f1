/* Compositions against plain loops: each is built by its builder, evaluated by the reference, and every element is
 * compared with what a loop over the input says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "graph/graph.h"

#define ROWS 4
#define COLS 5

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_value x, y; /* f32[rows, 5], f32[2, 5] */
    smg_value i;    /* i32[3] */
    double data[ROWS * COLS], more[2 * COLS], index[3];
    smg_array out;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void begin(fixture *f) {
    assert_int_equal(smg_graph_create(f->ctx, "compose", &f->g), SMG_OK);
    f->x = smg_graph_input(f->g, "x", "f32", "rows, 5");
    f->y = smg_graph_input(f->g, "y", "f32", "2, 5");
    f->i = smg_graph_input(f->g, "i", "i32", "3");
    for (int i = 0; i < ROWS * COLS; i++) f->data[i] = (double)((i * 7 + 3) % 11);
    for (int i = 0; i < 2 * COLS; i++) f->more[i] = 100.0 + i;
    f->index[0] = 3;
    f->index[1] = -1;
    f->index[2] = 0;
}

/* The value's elements; f->out says the dims. */
static smg_status run(fixture *f, smg_value value) {
    int64_t rows = ROWS;
    smg_array inputs[3] = {{.type = SMG_TYPE_F32, .rank = 2, .dims = {ROWS, COLS}, .data = f->data},
                           {.type = SMG_TYPE_F32, .rank = 2, .dims = {2, COLS}, .data = f->more},
                           {.type = SMG_TYPE_I32, .rank = 1, .dims = {3}, .data = f->index}};
    smg_graph_output(f->g, "out", value);
    if (smg_graph_finish(f->g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return smg_graph_eval(f->g, &rows, inputs, f->arena, &f->out);
}

static void check(fixture *f, smg_value value, const char *dims, double (*want)(fixture *f, int64_t at)) {
    char text[64] = "";
    if (run(f, value) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (int i = 0; i < f->out.rank; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%d", i ? "x" : "", (int)f->out.dims[i]);
    }
    assert_string_equal(text, dims);
    for (int64_t i = 0; i < smg_array_elements(&f->out); i++) {
        double wanted = want(f, i);
        if (!(f->out.data[i] == wanted)) fail_msg("element %d: %g, not %g", (int)i, f->out.data[i], wanted);
    }
    smg_graph_destroy(f->g);
}

static double padded(fixture *f, int64_t at) {
    int64_t row = at / COLS - 1;
    return row >= 0 && row < ROWS ? f->data[row * COLS + at % COLS] : -2.0;
}
static double cropped(fixture *f, int64_t at) {
    int64_t col = at % 6 + 1;
    return col < COLS ? f->data[at / 6 * COLS + col] : 0.0;
}
static void pads(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_pad(f->g, f->x, 0, "1", "rows", -2.0), "9x5", padded);
    begin(f);
    check(f, smg_graph_pad(f->g, f->x, -1, "0-1", "2", 0.0), "4x6", cropped);
}

/* windows of 3 taps, dilation 2, every second column, one to the left of the first */
static double windowed(fixture *f, int64_t at) {
    int64_t tap = at % 3, out = at / 3 % 3, col = 2 * out + 2 * tap - 1;
    return col >= 0 && col < COLS ? f->data[at / 9 * COLS + col] : 0.5;
}
static void windows(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_window(f->g, f->x, 1, "0-1", "3", 2, "3", 2, 0.5), "4x3x3", windowed);
}

static double joined(fixture *f, int64_t at) {
    int64_t row = at / COLS;
    if (row < ROWS) return f->data[at];
    return row < ROWS + 2 ? f->more[at - ROWS * COLS] : f->data[at - (ROWS + 2) * COLS];
}
static double joined_columns(fixture *f, int64_t at) {
    return f->more[at / 10 * COLS + at % 10 % COLS];
}
static void concats(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_concat(f->g, 3, (smg_value[]){f->x, f->y, f->x}, 0), "10x5", joined);
    begin(f);
    check(f, smg_graph_concat(f->g, 2, (smg_value[]){f->y, f->y}, -1), "2x10", joined_columns);
}

static double taken(fixture *f, int64_t at) {
    static const int column[3] = {3, 4, 0};
    return f->data[at / 3 * COLS + column[at % 3]];
}
static double taken_at(fixture *f, int64_t at) {
    static const int place[3] = {3, 3, 0};
    return f->data[place[at] * COLS + place[at] % COLS];
}
static void takes(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_take(f->g, f->x, f->i, 1), "4x3", taken);
    begin(f); /* (3, 3), (-1 -> 3, 3), (0, 0): rows and columns by the same index, the column as it is */
    smg_value bound = smg_graph_map(f->g, "mod", 2, (smg_value[]){f->i, smg_graph_number(f->g, "i32", 4)});
    check(f, smg_graph_take_at(f->g, f->x, 2, (smg_value[]){f->i, bound}), "3", taken_at);
}

static void bad_index_of_one_axis_is_refused(void **state) {
    fixture *f = *state;
    begin(f);
    smg_value far = smg_graph_map(f->g, "add", 2, (smg_value[]){f->i, smg_graph_number(f->g, "i32", 4)});
    smg_value none = smg_graph_map(f->g, "mul", 2, (smg_value[]){f->i, smg_graph_number(f->g, "i32", 0)});
    assert_int_equal(run(f, smg_graph_take_at(f->g, f->x, 2, (smg_value[]){none, far})), SMG_INVALID);
    smg_context_clear_error(f->ctx);
    smg_graph_destroy(f->g);
}

static double running(fixture *f, int64_t at) {
    double sum = 0.0;
    for (int64_t c = 0; c <= at % COLS; c++) sum += f->data[at / COLS * COLS + c];
    return sum;
}
static double running_back(fixture *f, int64_t at) {
    double sum = 0.0;
    for (int64_t r = at / COLS + 1; r < ROWS; r++) sum += f->data[r * COLS + at % COLS];
    return sum;
}
static void sums(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_cumsum(f->g, f->x, 1, false, false), "4x5", running);
    begin(f);
    check(f, smg_graph_cumsum(f->g, f->x, 0, true, true), "4x5", running_back);
}

static int64_t extreme(const fixture *f, int64_t row, bool lowest, bool last) {
    int64_t best = 0;
    for (int64_t c = 1; c < COLS; c++) {
        double now = f->data[row * COLS + c], then = f->data[row * COLS + best];
        if (lowest ? now < then : now > then) best = c;
        if (last && !(now < then) && !(now > then)) best = c;
    }
    return best;
}
static double highest(fixture *f, int64_t at) {
    return (double)extreme(f, at, false, false);
}
static double lowest_last(fixture *f, int64_t at) {
    return (double)extreme(f, at, true, true);
}
static void extremes(void **state) {
    fixture *f = *state;
    begin(f);
    check(f, smg_graph_argreduce(f->g, "reduce_max", f->x, 1, false, false), "4", highest);
    begin(f);
    smg_value twice = smg_graph_map(f->g, "min", 2, (smg_value[]){f->x, f->x});
    check(f, smg_graph_argreduce(f->g, "reduce_min", twice, -1, true, true), "4x1", lowest_last);
    for (int last = 0; last < 2; last++) { /* an index of the axis, though no element equals the extreme */
        begin(f);
        for (int i = 0; i < ROWS * COLS; i++) f->data[i] = NAN;
        assert_int_equal(run(f, smg_graph_argreduce(f->g, "reduce_max", f->x, 1, false, last == 1)), SMG_OK);
        for (int i = 0; i < ROWS; i++) assert_true(f->out.data[i] >= 0 && f->out.data[i] < COLS);
        smg_graph_destroy(f->g);
    }
}

static void misuse_is_a_sentence(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        begin(f);
        smg_value v = f->x;
        if (i == 0) v = smg_graph_concat(f->g, 2, (smg_value[]){f->x, f->i}, 0);
        if (i == 1) v = smg_graph_concat(f->g, 0, NULL, 0);
        if (i == 2) v = smg_graph_pad(f->g, f->x, 2, "1", "1", 0.0);
        if (i == 3) v = smg_graph_window(f->g, f->x, 1, "0", "3", 0, "1", 1, 0.0);
        if (i == 4) v = smg_graph_take(f->g, f->x, f->x, 1);
        smg_graph_output(f->g, "out", v);
        assert_int_equal(smg_graph_finish(f->g), SMG_INVALID);
        assert_true(strlen(smg_context_error(f->ctx)) > 20);
        smg_context_clear_error(f->ctx);
        smg_graph_destroy(f->g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads),
        cmocka_unit_test(windows),
        cmocka_unit_test(concats),
        cmocka_unit_test(takes),
        cmocka_unit_test(sums),
        cmocka_unit_test(extremes),
        cmocka_unit_test(bad_index_of_one_axis_is_refused),
        cmocka_unit_test(misuse_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
