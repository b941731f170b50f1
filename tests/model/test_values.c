/* Infinities, NaN and zeros on the device: every map of floats gives what the reference gives, one element of every
 * pair of such values. Shader compilers take liberties here (x - x is 0, a maximum without NaN), and a result that
 * is a number where the reference has none hides a fault of the model's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "smg/smg.h"
#include "support/device.h"

enum { VALUES = 9, PAIRS = VALUES * VALUES, MOST = SMG_OP_COUNT };

static smg_context *ctx;

static int setup(void **state) {
    (void)state;
    return smg_context_create(NULL, &ctx) == SMG_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    smg_context_destroy(ctx);
    return 0;
}

/* Rows whose value at infinities no device promises: angles, and the remainder of what has none. */
static bool promised(const smg_op_row *row) {
    static const char *const loose[] = {"sin", "cos", "mod", "pow"};
    for (size_t i = 0; i < SMG_COUNT_OF(loose); i++)
        if (strcmp(loose[i], row->word) == 0) return false;
    return true;
}

static bool same(double got, double want) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return got <= want && got >= want;
    return fabs(got - want) <= 1e-5 * (1 + fabs(want));
}

typedef struct results {
    smg_op op[MOST];
    smg_tensor out[MOST];
    int count;
} results;

/* Every row that takes floats, `first` of them each time, as outputs of one graph over a and b. */
static void add_rows(smg_graph *g, const smg_value operand[3], bool alike, results *r) {
    static const smg_type floats[3] = {SMG_TYPE_F32, SMG_TYPE_F32, SMG_TYPE_F32};
    for (int op = 0; op < SMG_OP_COUNT; op++) {
        const smg_op_row *row = smg_op_get((smg_op)op);
        smg_type type;
        if (row->class_ != SMG_CLASS_MAP || row->arity > 2 || !promised(row) || smg_op_converts((smg_op)op)) continue;
        if (!smg_op_infer_type((smg_op)op, floats, row->arity, &type)) continue;
        const smg_value given[2] = {operand[0], operand[alike ? 0 : 1]};
        smg_value y = smg_graph_map(g, row->word, row->arity, given);
        if (type == SMG_TYPE_BOOL) y = smg_graph_cast(g, y, "f32");
        smg_graph_output(g, row->word, y);
        r->op[r->count] = (smg_op)op;
        r->out[r->count++] = (smg_tensor){.name = row->word};
    }
}

static double reference(smg_exprs *pool, smg_op op, double a, double b) {
    smg_expr leaf[3] = {smg_expr_leaf(pool, SMG_KIND_FLOAT, 0), smg_expr_leaf(pool, SMG_KIND_FLOAT, 1), SMG_EXPR_NONE};
    return smg_expr_eval(pool, smg_op_expr(pool, op, SMG_TYPE_F32, leaf), (const double[]){a, b});
}

static void compare(const results *r, const float *a, const float *b) {
    smg_arena *arena;
    smg_exprs *pool;
    int wrong = 0;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_exprs_create(arena, &pool), SMG_OK);
    for (int i = 0; i < r->count; i++) {
        for (int at = 0; at < PAIRS; at++) {
            double want = reference(pool, r->op[i], a[at], b[at]), got = ((const float *)r->out[i].data)[at];
            if (same(got, want)) continue;
            print_message("%s of %g and %g: %g, must be %g\n", r->out[i].name, a[at], b[at], got, want);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    smg_arena_destroy(arena);
}

static void run(bool alike) {
    static const float values[VALUES] = {0.0f, -0.0f, 1.0f, -1.0f, 2.5f, -2.5f, INFINITY, -INFINITY, NAN};
    static float a[PAIRS], b[PAIRS];
    static results r;
    smg_graph *g;
    smg_model *model = NULL;
    for (int i = 0; i < PAIRS; i++) {
        a[i] = values[i / VALUES];
        b[i] = values[alike ? i / VALUES : i % VALUES];
    }
    r.count = 0;
    assert_int_equal(smg_graph_create(ctx, "values", &g), SMG_OK);
    const smg_value x = smg_graph_input(g, "a", "f32", "81"), y = smg_graph_input(g, "b", "f32", "81");
    add_rows(g, (smg_value[]){x, y, y}, alike, &r);
    assert_true(r.count > 20);
    if (smg_graph_finish(g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    const smg_model_desc desc = {.no_calibrate = true};
    smg_status status = smg_model_open_graph(ctx, g, &desc, &model);
    if (device_missing(ctx, status)) {
        smg_graph_destroy(g);
        skip();
    }
    const smg_tensor in[2] = {{.name = "a", .rank = 1, .dims = {PAIRS}, .data = a},
                              {.name = "b", .rank = 1, .dims = {PAIRS}, .data = b}};
    if (status == SMG_OK) status = smg_model_run(model, in, 2, r.out, r.count);
    if (status != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    compare(&r, a, b);
    smg_model_close(model);
    smg_graph_destroy(g);
}

static void every_map_of_two_values(void **state) {
    (void)state;
    run(false);
}

static void every_map_of_one_value_twice(void **state) {
    (void)state;
    run(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_map_of_two_values, setup, teardown),
        cmocka_unit_test_setup_teardown(every_map_of_one_value_twice, setup, teardown),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
