/* Rewrites by the ranges of integers: comparisons and bounds that are decided vanish, those that are not stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/rewritten.h"

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

static void assert_becomes(const char *text, const char *expected) {
    assert_y_becomes(ctx, text, expected);
}

#define INDEX                                                                                                          \
    "dim s\nx = input i32[s]\nf = input f32[s]\ni = iota axis=0 : i32[s]\nn = size s : i32[]\n"                        \
    "zero = fill 0 : i32[]\none = fill 1 : i32[]\ntwo = fill 2 : i32[]\nseven = fill 7 : i32[]\n"

static void an_index_is_inside(void **state) {
    (void)state;
    assert_becomes(INDEX "y = lt(i, n)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "y = lt(i, zero)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "y = ge(i, zero)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "y = eq(i, n)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "y = ne(i, n)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "a = add(i, one)\ny = le(a, n)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "a = mul(i, two)\nb = add(a, one)\nm = mul(n, two)\ny = lt(b, m)\noutput y = y\n",
                   "fill 1 : bool[s]");
    assert_becomes(INDEX "a = neg(i)\ny = le(a, zero)\noutput y = y\n", "fill 1 : bool[s]");
}

static void what_depends_stays(void **state) {
    (void)state;
    assert_becomes(INDEX "y = lt(x, n)\noutput y = y\n", "lt(x, n)");
    assert_becomes(INDEX "y = lt(i, seven)\noutput y = y\n", "lt(i, seven)");
    assert_becomes(INDEX "y = le(i, zero)\noutput y = y\n", "le(i, zero)");
    assert_becomes(INDEX "a = add(i, one)\ny = lt(a, n)\noutput y = y\n", "lt(a, n)");
    assert_becomes(INDEX "y = eq(x, i)\noutput y = y\n", "eq(x, i)");
    assert_becomes(INDEX "y = le(f, f)\noutput y = y\n", "le(f, f)"); /* not of NaN */
    assert_becomes(INDEX "c = copy(i)\ny = add(c, x)\noutput y = y\n", "add(c, x)");
}

static void ranges_pass_through(void **state) {
    (void)state;
    assert_becomes(INDEX "b = ge(f, f)\nc = cast(b) : i32[s]\ny = le(c, one)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "b = ge(f, f)\nc = select(b, i, zero)\ny = lt(c, n)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "m = mod(x, seven)\ny = lt(m, seven)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "a = min(x, two)\ny = lt(a, seven)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "a = max(x, seven)\ny = lt(a, two)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "t = constant i32[3] data=[2, 0, 5]\ng = gather(t, x)\ny = lt(g, seven)\noutput y = y\n",
                   "fill 1 : bool[s]");
    assert_becomes(INDEX "b = ge(f, f)\nc = cast(b) : i32[s]\nr = sum(c) axis=0\ny = le(r, n)\noutput y = y\n",
                   "fill 1 : bool[]");
    assert_becomes(INDEX "r = reduce_max(i) axis=0\ny = lt(r, n)\noutput y = y\n", "fill 1 : bool[]");
}

static void bounds_without_effect_vanish(void **state) {
    (void)state;
    assert_becomes(INDEX "a = max(i, zero)\nb = mod(a, n)\nc = abs(b)\nd = min(c, n)\ny = add(d, x)\noutput y = y\n",
                   "add(i, x)");
    assert_becomes(INDEX "a = max(i, one)\ny = add(a, x)\noutput y = y\n", "add(a, x)");
    assert_becomes(INDEX "y = mod(i, seven)\noutput y = y\n", "mod(i, seven)");
}

static void choices_follow(void **state) {
    (void)state;
    /* a negative index that counts from the end, of an index that never is one */
    assert_becomes(INDEX "b = lt(i, zero)\na = add(i, n)\nw = select(b, a, i)\ny = add(w, x)\noutput y = y\n",
                   "add(i, x)");
    assert_becomes(INDEX "b = lt(i, n)\nc = lt(x, n)\nd = and(b, c)\ny = not(d)\noutput y = y\n", "not(c)");
    assert_becomes(INDEX "b = lt(i, n)\nc = lt(x, n)\nd = or(b, c)\ny = not(d)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "b = lt(i, n)\ny = select(b, seven, x)\noutput y = y\n", "fill 7 : i32[s]");
    assert_becomes("dim s\nx = input i32[s]\nf = fill 3 : f32[5, 4]\ny = gather(f, x)\noutput y = y\n",
                   "fill 3 : f32[s, 4]");
}

/* b and f joined after each other along the last axis, and cut apart again. */
#define JOINED                                                                                                         \
    "dim s\ndim t\nb = input f32[2, s]\nf = input f32[2, t]\ni = iota axis=1 : i32[1, s+t]\n"                          \
    "n = size s : i32[]\nlow = window(b) axis=1 begin=0 step=1 dilation=1 fill=0 : f32[2, s+t, "                       \
    "1]\n"                                                                                                             \
    "high = window(f) axis=1 begin=-s step=1 dilation=1 fill=0 : f32[2, s+t, 1]\n"                                     \
    "p = reshape(low) : f32[2, s+t]\nq = reshape(high) : f32[2, s+t]\nc = lt(i, n)\n"                                  \
    "j = select(c, p, q)\n"

static void slices_find_their_side(void **state) {
    (void)state;
    assert_becomes(JOINED "y = slice(j) axis=1 begin=0 step=1 : f32[2, s]\noutput y = y\n", "slice(p) axis=1 begin=0");
    assert_becomes(JOINED "y = slice(j) axis=1 begin=s step=1 : f32[2, t]\noutput y = y\n", "slice(q) axis=1 begin=s");
    assert_becomes(JOINED "y = slice(j) axis=1 begin=s+t-1 step=-1 : f32[2, t]\noutput y = y\n",
                   "slice(q) axis=1 begin=s+t-1");
    assert_becomes(JOINED "y = slice(j) axis=1 begin=0 step=1 : f32[2, s+1]\noutput y = y\n", "slice(j) axis=1");
    assert_becomes(JOINED "y = slice(j) axis=1 begin=1 step=1 : f32[2, t]\noutput y = y\n", "slice(j) axis=1");
    assert_becomes(JOINED "y = slice(j) axis=0 begin=1 step=1 : f32[1, s+t]\noutput y = y\n", "slice(j) axis=0");
}

/* Rows that are several primitives, and truths that only a range tells: nobody names these operations. */
static void expressions_are_walked(void **state) {
    (void)state;
    assert_becomes(INDEX "a = relu(i)\ny = add(a, x)\noutput y = y\n", "add(i, x)");
    assert_becomes(INDEX "a = relu(x)\nb = neg(a)\ny = gt(b, zero)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "b = ge(i, n)\nc = cast(b) : i32[s]\na = add(c, x)\ny = neg(a)\noutput y = y\n", "neg(x)");
    assert_becomes(INDEX "b = lt(x, n)\nc = cast(b) : i32[s]\nd = mul(c, two)\ny = gt(d, two)\noutput y = y\n",
                   "fill 0 : bool[s]");
    assert_becomes(INDEX "a = max(i, seven)\nc = cast(a) : bool[s]\ny = not(c)\noutput y = y\n", "fill 0 : bool[s]");
    assert_becomes(INDEX "y = eq(i, i)\noutput y = y\n", "fill 1 : bool[s]");
    assert_becomes(INDEX "y = sub(x, x)\noutput y = y\n", "fill 0 : i32[s]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_is_inside, setup, teardown),
        cmocka_unit_test_setup_teardown(what_depends_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_pass_through, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_without_effect_vanish, setup, teardown),
        cmocka_unit_test_setup_teardown(choices_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(expressions_are_walked, setup, teardown),
        cmocka_unit_test_setup_teardown(slices_find_their_side, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
