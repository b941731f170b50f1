/* Operations: types, rows, inference, and expressions (sharing, folding, evaluation, text). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "op/op_private.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_exprs *pool;
} fixture;

static int setup(void **state) {
    static fixture f;
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_exprs_create(f.arena, &f.pool), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void types_are_a_table(void **state) {
    (void)state;
    smg_type type;
    assert_true(smg_type_find("f16", &type));
    assert_int_equal(type, SMG_TYPE_F16);
    assert_int_equal(smg_type_host_bytes(SMG_TYPE_I64), 8);
    assert_int_equal(smg_type_device_bytes(SMG_TYPE_I64), 4);
    assert_int_equal(smg_type_kind(SMG_TYPE_BOOL), SMG_KIND_BOOL);
    assert_false(smg_type_find("f8", &type));
    assert_string_equal(smg_type_word(SMG_TYPE_I32), "i32");
}

static void rows_are_found_and_combines_known(void **state) {
    (void)state;
    smg_op op;
    for (int i = 0; i < SMG_OP_COUNT; i++) {
        assert_true(smg_op_find(smg_op_get((smg_op)i)->word, &op));
        assert_int_equal(op, i);
        assert_string_not_equal(smg_op_get((smg_op)i)->doc, "");
    }
    assert_false(smg_op_find("softmax", &op));
    assert_int_equal(smg_op_combine(SMG_OP_REDUCE_MAX), SMG_COMBINE_MAX);
    assert_int_equal(smg_op_combine(SMG_OP_CONTRACT), SMG_COMBINE_ADD);
    assert_true(isinf(smg_combine_identity(SMG_COMBINE_MAX)));
}

static void result_types_follow_from_expressions(void **state) {
    (void)state;
    const smg_type f = SMG_TYPE_F32, i = SMG_TYPE_I32, b = SMG_TYPE_BOOL;
    smg_type t;
    assert_true(smg_op_infer_type(SMG_OP_ADD, (smg_type[]){f, f}, 2, &t) && t == f);
    assert_true(smg_op_infer_type(SMG_OP_ADD, (smg_type[]){i, i}, 2, &t) && t == i);
    assert_true(smg_op_infer_type(SMG_OP_GT, (smg_type[]){i, i}, 2, &t) && t == b);
    assert_true(smg_op_infer_type(SMG_OP_NE, (smg_type[]){b, b}, 2, &t) && t == b);
    assert_true(smg_op_infer_type(SMG_OP_RELU, &i, 1, &t) && t == i);
    assert_true(smg_op_infer_type(SMG_OP_SIGMOID, &f, 1, &t) && t == f);
    assert_true(smg_op_infer_type(SMG_OP_SELECT, (smg_type[]){b, i, i}, 3, &t) && t == i);
    assert_false(smg_op_infer_type(SMG_OP_ADD, (smg_type[]){f, i}, 2, &t));
    assert_false(smg_op_infer_type(SMG_OP_ADD, (smg_type[]){f, SMG_TYPE_F16}, 2, &t));
    assert_false(smg_op_infer_type(SMG_OP_ADD, (smg_type[]){b, b}, 2, &t));
    assert_false(smg_op_infer_type(SMG_OP_EXP, &i, 1, &t));
    assert_false(smg_op_infer_type(SMG_OP_SIGMOID, &i, 1, &t));
    assert_false(smg_op_infer_type(SMG_OP_AND, (smg_type[]){i, i}, 2, &t));
    assert_false(smg_op_infer_type(SMG_OP_SELECT, (smg_type[]){f, f, f}, 3, &t));
    assert_false(smg_op_infer_type(SMG_OP_ADD, &f, 1, &t));
    assert_false(smg_op_infer_type(SMG_OP_SUM, &f, 1, &t));
}

static void every_map_row_has_an_expression(void **state) {
    fixture *f = *state;
    for (int i = 0; i < SMG_OP_COUNT; i++) {
        const smg_op_row *row = smg_op_get((smg_op)i);
        if (row->class_ != SMG_CLASS_MAP) continue;
        smg_kind kind = SMG_KIND_FLOAT;
        if (i == SMG_OP_AND || i == SMG_OP_OR || i == SMG_OP_NOT) kind = SMG_KIND_BOOL;
        smg_expr leaf[3];
        for (int k = 0; k < 3; k++) leaf[k] = smg_expr_leaf(f->pool, kind, k);
        if (i == SMG_OP_SELECT) leaf[0] = smg_expr_leaf(f->pool, SMG_KIND_BOOL, 0);
        smg_expr e = smg_op_expr(f->pool, (smg_op)i, SMG_TYPE_I32, leaf);
        assert_int_not_equal(e, SMG_EXPR_NONE);
        assert_true(i == SMG_OP_NEG || i == SMG_OP_COPY || smg_expr_cost(f->pool, e) >= 1.0);
    }
}

static void expressions_share_and_fold(void **state) {
    fixture *f = *state;
    smg_exprs *p = f->pool;
    smg_expr x = smg_expr_leaf(p, SMG_KIND_FLOAT, 0), y = smg_expr_leaf(p, SMG_KIND_FLOAT, 1);
    smg_expr one = smg_expr_const(p, SMG_KIND_FLOAT, 1.0), zero = smg_expr_const(p, SMG_KIND_FLOAT, 0.0);
    smg_expr sum = smg_expr_make(p, SMG_PRIM_ADD, x, y, SMG_EXPR_NONE);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_ADD, x, y, SMG_EXPR_NONE), sum);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_MUL, x, one, SMG_EXPR_NONE), x);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_ADD, zero, x, SMG_EXPR_NONE), x);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_DIV, x, one, SMG_EXPR_NONE), x);
    smg_expr neg = smg_expr_make(p, SMG_PRIM_NEG, x, SMG_EXPR_NONE, SMG_EXPR_NONE);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_NEG, neg, SMG_EXPR_NONE, SMG_EXPR_NONE), x);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_MUL, SMG_EXPR_NONE, x, SMG_EXPR_NONE), SMG_EXPR_NONE);
    assert_int_not_equal(smg_expr_const(p, SMG_KIND_FLOAT, -0.0), zero);
    smg_expr square = smg_expr_make(p, SMG_PRIM_MUL, sum, sum, SMG_EXPR_NONE);
    assert_true(smg_expr_cost(p, square) == 2.0);
    smg_expr moved = smg_expr_substitute(p, square, (smg_expr[]){y, SMG_EXPR_NONE}, 2);
    double leaves[2] = {3.0, 4.0};
    assert_true(smg_expr_eval(p, square, leaves) == 49.0);
    assert_true(smg_expr_eval(p, moved, leaves) == 64.0);
    for (int i = 0; i < 500; i++) smg_expr_leaf(p, SMG_KIND_INT, i);
    assert_int_equal(smg_expr_make(p, SMG_PRIM_ADD, x, y, SMG_EXPR_NONE), sum);
}

static void count_leaf(void *user, int leaf) {
    *(int *)user += 1 + 100 * leaf;
}

static void name_leaf(void *user, int leaf, smg_text *text) {
    (void)user;
    smg_text_addf(text, "x%d", leaf);
}

static void prefix_text_is_read_and_infix_written(void **state) {
    fixture *f = *state;
    smg_expr operand[3];
    for (int k = 0; k < 3; k++) operand[k] = smg_expr_leaf(f->pool, SMG_KIND_FLOAT, k);
    smg_expr e = smg_expr_parse(f->pool, "(div 1 (add 1 (exp (neg (sub a (sub b c))))))", operand);
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_expr_print(f->pool, e, &text, name_leaf, NULL);
    assert_string_equal(smg_text_cstr(&text), "1 / (1 + exp(-(x0 - (x1 - x2))))");
    smg_text_free(&text);
    int seen = 0;
    smg_expr_leaves(f->pool, e, count_leaf, &seen);
    assert_int_equal(seen, 303);
    smg_expr i = smg_expr_leaf(f->pool, SMG_KIND_INT, 0);
    smg_expr relu = smg_expr_parse(f->pool, "(max a 0)", (smg_expr[]){i, -1, -1});
    assert_int_equal(smg_expr_get(f->pool, smg_expr_get(f->pool, relu)->arg[1])->kind, SMG_KIND_INT);
    static const char *const bad[] = {"", "(", "(exp", "(exp a", "(exp a b)", "(huh a)", "(exp a) b", "(leaf)"};
    for (size_t k = 0; k < SMG_COUNT_OF(bad); k++)
        assert_int_equal(smg_expr_parse(f->pool, bad[k], operand), SMG_EXPR_NONE);
}

static void values_of_primitives(void **state) {
    (void)state;
    assert_true(smg_prim_eval(SMG_PRIM_DIV, SMG_KIND_INT, -7, 2, 0) == -3.0);
    assert_true(smg_prim_eval(SMG_PRIM_DIV, SMG_KIND_INT, 7, 0, 0) == 0.0);
    assert_true(smg_wrap_i32(2147483648.0) == -2147483648.0 && smg_wrap_i32(-2147483649.0) == 2147483647.0);
    assert_true(smg_wrap_i32(-8589934591.0) == 1.0 && smg_wrap_i32(2147483647.0) == 2147483647.0);
    assert_true(smg_prim_eval(SMG_PRIM_MUL, SMG_KIND_INT, 2000000001, 2000000001, 0) == -1946474495.0);
    assert_true(smg_prim_eval(SMG_PRIM_MOD, SMG_KIND_INT, -7, 3, 0) == 2.0);
    assert_true(smg_prim_eval(SMG_PRIM_TO_INT, SMG_KIND_INT, -1.9, 0, 0) == -1.0);
    assert_true(smg_prim_eval(SMG_PRIM_TO_INT, SMG_KIND_INT, NAN, 0, 0) == 0.0);
    assert_true(isnan(smg_prim_eval(SMG_PRIM_MAX, SMG_KIND_FLOAT, 1.0, NAN, 0)));
    assert_true(isnan(smg_prim_eval(SMG_PRIM_MIN, SMG_KIND_FLOAT, NAN, 1.0, 0)));
    assert_true(smg_prim_eval(SMG_PRIM_ROUND, SMG_KIND_FLOAT, 2.5, 0, 0) == 2.0);
    assert_true(smg_prim_eval(SMG_PRIM_NORMCDF, SMG_KIND_FLOAT, 0.0, 0, 0) == 0.5);
    assert_float_equal(smg_prim_eval(SMG_PRIM_NORMCDF, SMG_KIND_FLOAT, 1.0, 0, 0), 0.8413447460685429, 1e-15);
    assert_float_equal(smg_prim_eval(SMG_PRIM_NORMCDF, SMG_KIND_FLOAT, -5.0, 0, 0), 2.866515718791939e-07, 1e-21);
}

static bool alike(double a, double b) {
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

/* x with the operand that a law speaks of, on the sides that it speaks of. */
static void assert_law(smg_prim prim, smg_law law, double x, double with, double expected) {
    if (!smg_prim_obeys(prim, law)) return;
    if (smg_prim_result(prim) == PRIM_RESULT_BOOL && smg_prim_obeys(prim, SMG_LAW_ALIKE_KEEPS)) { /* of bools */
        expected = expected < 0 || expected > 0 || isnan(expected);
    }
    for (int side = 0; side < (smg_prim_obeys(prim, SMG_LAW_COMMUTES) ? 2 : 1); side++) {
        double got = smg_prim_eval(prim, SMG_KIND_FLOAT, side ? with : x, side ? x : with, 0);
        if (!alike(got, expected))
            fail_msg("%s, law %d: of %g and %g %g, must be %g", smg_prim_word(prim), (int)law, x, with, got, expected);
    }
}

/* A law is a promise for all values: the laws of every primitive are tried on the values that break such promises. */
static void laws_hold(void **state) {
    static const double values[] = {0.0, 1.0, -1.0, 0.5, -2.5, 1e300, HUGE_VAL, -HUGE_VAL, NAN};
    int laws = 0;
    (void)state;
    for (int p = 0; p < SMG_PRIM_COUNT; p++) {
        smg_prim prim = (smg_prim)p;
        for (size_t i = 0; i < SMG_COUNT_OF(values); i++) {
            double x = values[i];
            assert_law(prim, SMG_LAW_ZERO_KEEPS, x, 0, x);
            assert_law(prim, SMG_LAW_ONE_KEEPS, x, 1, x);
            assert_law(prim, SMG_LAW_ZERO_WINS, x, 0, 0);
            assert_law(prim, SMG_LAW_ONE_WINS, x, 1, 1);
            assert_law(prim, SMG_LAW_ALIKE_KEEPS, x, x, x);
            assert_law(prim, SMG_LAW_ALIKE_TRUE, x, x, !isnan(x));
            assert_law(prim, SMG_LAW_ALIKE_FALSE, x, x, 0);
            assert_law(prim, SMG_LAW_ALIKE_ZERO, x, x, isfinite(x) ? 0.0 : NAN);
            for (size_t k = 0; k < SMG_COUNT_OF(values); k++) {
                bool told = smg_prim_obeys(prim, SMG_LAW_NO_NEGATIVE) ||
                            (smg_prim_obeys(prim, SMG_LAW_KEEPS_SIGN) && x >= 0 && values[k] >= 0);
                assert_false(told && smg_prim_eval(prim, SMG_KIND_FLOAT, x, values[k], 0) < 0);
            }
            for (size_t k = 0; k < SMG_COUNT_OF(values) && smg_prim_obeys(prim, SMG_LAW_COMMUTES); k++)
                assert_true(alike(smg_prim_eval(prim, SMG_KIND_FLOAT, x, values[k], 0),
                                  smg_prim_eval(prim, SMG_KIND_FLOAT, values[k], x, 0)));
            bool truth = smg_prim_result(prim) == PRIM_RESULT_BOOL; /* undoes itself where x is one */
            if (smg_prim_obeys(prim, SMG_LAW_UNDOES_ITSELF) && (!truth || x == 0.0 || x == 1.0))
                assert_true(
                    alike(smg_prim_eval(prim, SMG_KIND_FLOAT, smg_prim_eval(prim, SMG_KIND_FLOAT, x, 0, 0), 0, 0), x));
        }
        for (int law = 1; law <= SMG_LAW_KEEPS_SIGN; law *= 2) laws += smg_prim_obeys(prim, (smg_law)law);
    }
    assert_true(laws > 20);
}

/* What the simplifier makes of two equal operands is what the primitive says of them. */
static void equal_operands_keep_their_value(void **state) {
    static const double values[] = {0.0, 1.0, -2.5, HUGE_VAL, -HUGE_VAL, NAN};
    fixture *f = *state;
    smg_expr x = smg_expr_leaf(f->pool, SMG_KIND_FLOAT, 0);
    for (int p = 0; p < SMG_PRIM_COUNT; p++) {
        if (smg_prim_arity((smg_prim)p) != 2 || p == SMG_PRIM_AND || p == SMG_PRIM_OR) continue;
        smg_expr e = smg_expr_make(f->pool, (smg_prim)p, x, x, SMG_EXPR_NONE);
        for (size_t i = 0; i < SMG_COUNT_OF(values); i++) {
            double want = smg_prim_eval((smg_prim)p, SMG_KIND_FLOAT, values[i], values[i], 0);
            assert_true(alike(smg_expr_eval(f->pool, e, &values[i]), want));
        }
    }
    smg_expr n = smg_expr_leaf(f->pool, SMG_KIND_INT, 1);
    assert_int_equal(smg_expr_make(f->pool, SMG_PRIM_SUB, n, n, SMG_EXPR_NONE),
                     smg_expr_const(f->pool, SMG_KIND_INT, 0));
    assert_int_equal(smg_expr_make(f->pool, SMG_PRIM_EQ, n, n, SMG_EXPR_NONE),
                     smg_expr_const(f->pool, SMG_KIND_BOOL, 7));
}

/* Of many elements at once primitives give what they give of each. */
static void many_are_as_each(void **state) {
    (void)state;
    static const double x[] = {-2147483648.0, -7, -1.9, -0.5, 0, 0.5, 1, 3, 2000000001, 1e30, (double)NAN};
    enum { COUNT = sizeof x / sizeof x[0] };
    static const smg_kind kinds[] = {SMG_KIND_FLOAT, SMG_KIND_INT, SMG_KIND_BOOL};
    double y[COUNT], z[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++) y[i] = x[(i * 3 + 1) % COUNT];
    for (int i = 0; i < COUNT; i++) z[i] = x[(i * 5 + 2) % COUNT];
    for (int p = 0; p < SMG_PRIM_COUNT; p++)
        for (size_t k = 0; k < SMG_COUNT_OF(kinds); k++) {
            smg_prim_eval_each((smg_prim)p, kinds[k], x, y, z, COUNT, out);
            if (p == SMG_PRIM_CONST || p == SMG_PRIM_LEAF) continue;
            for (int i = 0; i < COUNT; i++) {
                double one = smg_prim_eval((smg_prim)p, kinds[k], x[i], y[i], z[i]);
                assert_true(out[i] == one || (out[i] != out[i] && one != one));
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_a_table),
        cmocka_unit_test(rows_are_found_and_combines_known),
        cmocka_unit_test(result_types_follow_from_expressions),
        cmocka_unit_test_setup_teardown(every_map_row_has_an_expression, setup, teardown),
        cmocka_unit_test_setup_teardown(expressions_share_and_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(prefix_text_is_read_and_infix_written, setup, teardown),
        cmocka_unit_test(values_of_primitives),
        cmocka_unit_test(many_are_as_each),
        cmocka_unit_test(laws_hold),
        cmocka_unit_test_setup_teardown(equal_operands_keep_their_value, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
