/* The slicers' algebra on expressions: factors that leave a sum, updates of running results, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "slice/slice_internal.h"

enum { C, R, FIXED, MASK, T, OLD, COUNT, LEAVES };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_exprs *pool;
    smg_leaf_role role[LEAVES];
    smg_expr old[LEAVES], leaf[LEAVES];
    smg_slice_roles roles;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_exprs_create(f.arena, &f.pool), SMG_OK);
    for (int i = 0; i < LEAVES; i++) {
        f.leaf[i] = smg_expr_leaf(f.pool, i == MASK ? SMG_KIND_BOOL : SMG_KIND_FLOAT, i);
        f.old[i] = SMG_EXPR_NONE;
    }
    f.role[C] = f.role[MASK] = SMG_ROLE_VARIES;
    f.role[R] = SMG_ROLE_AGGREGATE;
    f.old[R] = f.leaf[OLD];
    f.roles = (smg_slice_roles){.pool = f.pool, .role = f.role, .old = f.old, .count = T};
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* Prefix over a = c (varies), b = r (aggregate), c = a fixed value. */
static smg_expr parse(fixture *f, const char *prefix) {
    smg_expr operand[3] = {f->leaf[C], f->leaf[R], f->leaf[FIXED]};
    smg_expr e = smg_expr_parse(f->pool, prefix, operand);
    assert_int_not_equal(e, SMG_EXPR_NONE);
    return e;
}

enum { NONE = SMG_EXPR_NONE };

static smg_expr make(fixture *f, smg_prim prim, smg_expr x, smg_expr y, smg_expr z) {
    smg_expr e = smg_expr_make(f->pool, prim, x, y, z);
    assert_int_not_equal(e, SMG_EXPR_NONE);
    return e;
}

static smg_expr update(fixture *f, smg_combine combine, smg_expr e, const char **why) {
    smg_update u = {.t = f->leaf[T], .n = SMG_EXPR_NONE};
    assert_int_equal(smg_slice_update(&f->roles, combine, e, &u, why), SMG_OK);
    assert_int_equal(u.counted, SMG_EXPR_NONE);
    return u.value;
}

/* The same where elements may be counted. */
static smg_update counted(fixture *f, smg_expr e) {
    smg_update u = {.t = f->leaf[T], .n = f->leaf[COUNT]};
    const char *why;
    assert_int_equal(smg_slice_update(&f->roles, SMG_COMBINE_ADD, e, &u, &why), SMG_OK);
    return u;
}

static double at(fixture *f, smg_expr e, double r, double old, double t) {
    double leaves[LEAVES] = {0};
    leaves[R] = r;
    leaves[OLD] = old;
    leaves[T] = t;
    leaves[FIXED] = 3;
    return smg_expr_eval(f->pool, e, leaves);
}

static void exponentials_are_corrected_without_quotients(void **state) {
    fixture *f = *state;
    const char *why;
    smg_expr u = update(f, SMG_COMBINE_ADD, parse(f, "(exp (sub a b))"), &why);
    assert_int_not_equal(u, SMG_EXPR_NONE);
    assert_true(fabs(at(f, u, 2, 1, 5) - 5 * exp(-1)) < 1e-12);
    assert_true(at(f, u, 1000, 990, 4) > 0);            /* exp(-1000) alone would be 0 */
    assert_true(at(f, u, 7, -(double)FLT_MAX, 0) == 0); /* the first slice */
    u = update(f, SMG_COMBINE_ADD, parse(f, "(mul c (exp (mul (sub a b) c)))"), &why);
    assert_true(fabs(at(f, u, 2, 1, 5) - 5 * exp(-3)) < 1e-12);
}

static void maxima_shift(void **state) {
    fixture *f = *state;
    const char *why;
    smg_expr u = update(f, SMG_COMBINE_MAX, parse(f, "(sub a b)"), &why);
    assert_true(at(f, u, 3, 1, 10) == 8);
    assert_true(at(f, u, 3, -HUGE_VAL, -HUGE_VAL) == -HUGE_VAL); /* the first slice: no -inf + inf */
    u = update(f, SMG_COMBINE_MIN, parse(f, "(add (mul a 2) b)"), &why);
    assert_true(at(f, u, 3, 1, 10) == 12);
    assert_int_equal(update(f, SMG_COMBINE_MAX, parse(f, "(mul a b)"), &why), SMG_EXPR_NONE); /* the sign may turn */
    assert_string_not_equal(why, "");
}

static void masks_stand_still(void **state) {
    fixture *f = *state;
    const char *why;
    smg_expr e = parse(f, "(exp (sub a b))"), zero = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0);
    smg_expr masked = smg_expr_make(f->pool, SMG_PRIM_SELECT, f->leaf[MASK], e, zero);
    smg_expr u = update(f, SMG_COMBINE_ADD, masked, &why);
    assert_true(fabs(at(f, u, 2, 1, 5) - 5 * exp(-1)) < 1e-12);
    smg_expr other = smg_expr_make(f->pool, SMG_PRIM_SELECT, f->leaf[MASK], e, f->leaf[FIXED]);
    assert_int_equal(update(f, SMG_COMBINE_ADD, other, &why), SMG_EXPR_NONE);
}

static double moved(fixture *f, const smg_update *u, double r, double old, double t, double count) {
    double leaves[LEAVES] = {[R] = r, [OLD] = old, [T] = t, [COUNT] = count, [FIXED] = 3};
    return smg_expr_eval(f->pool, u->value, leaves);
}

static double count_of(fixture *f, const smg_update *u, bool mask) {
    double leaves[LEAVES] = {[MASK] = mask};
    return smg_expr_eval(f->pool, u->counted, leaves);
}

static void sums_gain_by_what_they_count(void **state) {
    fixture *f = *state;
    smg_expr zero = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0), difference = parse(f, "(sub a b)");
    smg_update u = counted(f, difference);
    assert_true(moved(f, &u, 5, 3, 10, 4) == 2 && count_of(f, &u, false) == 1);
    assert_true(moved(f, &u, 5, -(double)FLT_MAX, 0, 0) == 0); /* the first slice */
    assert_true(moved(f, &u, -1e38, -(double)FLT_MAX, 0, 0) == 0);
    assert_true(isinf(moved(f, &u, 5, 3, -(double)INFINITY, 4)));
    u = counted(f, make(f, SMG_PRIM_SELECT, f->leaf[MASK], difference, zero));
    assert_true(moved(f, &u, 5, 3, 10, 4) == 2 && count_of(f, &u, false) == 0 && count_of(f, &u, true) == 1);
    u = counted(f, make(f, SMG_PRIM_SELECT, f->leaf[MASK], zero, difference));
    assert_true(moved(f, &u, 5, 3, 10, 4) == 2 && count_of(f, &u, false) == 1 && count_of(f, &u, true) == 0);
    smg_expr masked = make(f, SMG_PRIM_SELECT, f->leaf[MASK], difference, zero);
    u = counted(f, make(f, SMG_PRIM_MUL, make(f, SMG_PRIM_NEG, masked, NONE, NONE), f->leaf[FIXED], NONE));
    assert_true(moved(f, &u, 5, 3, 10, 4) == 34 && count_of(f, &u, true) == 1);
    u = counted(f, make(f, SMG_PRIM_SUB, f->leaf[C], masked, NONE));
    assert_true(moved(f, &u, 5, 3, 10, 4) == 18 && count_of(f, &u, false) == 0);
    u = counted(f, parse(f, "(exp (sub a b))")); /* needs no count */
    assert_true(u.value != SMG_EXPR_NONE && u.counted == SMG_EXPR_NONE);
}

/* What may be far from its last value on the way would drown the sum. */
static void sums_gain_nothing_that_strays(void **state) {
    static const char *const expression[] = {"(sub a (log b))",  "(add a (div 1 b))", "(sub a (exp b))",
                                             "(mul a b)",        "(max (sub a b) 0)", "(mul (sub a b) (sub a b))",
                                             "(mul a (sub a b))"};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(expression); i++) {
        smg_update u = counted(f, parse(f, expression[i]));
        if (u.value != SMG_EXPR_NONE) fail_msg("%s has an update", expression[i]);
    }
    /* a mask that moves with r, and one that leaves something else */
    smg_expr difference = parse(f, "(sub a b)"), zero = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0);
    smg_expr below = make(f, SMG_PRIM_LT, f->leaf[C], f->leaf[R], NONE);
    assert_int_equal(counted(f, make(f, SMG_PRIM_SELECT, below, difference, zero)).value, SMG_EXPR_NONE);
    assert_int_equal(counted(f, make(f, SMG_PRIM_SELECT, f->leaf[MASK], difference, f->leaf[C])).value, SMG_EXPR_NONE);
}

static void refused_with_a_reason(void **state) {
    static const char *const expression[] = {
        "(sub a b)",
        "(mul (sub a b) (sub a b))",
        "(div 1 (add 1 (exp (neg (sub a b)))))",
        "(tanh (mul a b))",
        "(max (sub a b) 0)",
        /* separable, but t * H(r') / H(r) needs H away from 0, and a running sum starts there */
        "(sqrt (mul a b))",
        "(abs (mul a b))",
    };
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(expression); i++) {
        const char *why = "";
        assert_int_equal(update(f, SMG_COMBINE_ADD, parse(f, expression[i]), &why), SMG_EXPR_NONE);
        assert_string_not_equal(why, "");
    }
    const char *why = "";
    assert_int_equal(update(f, SMG_COMBINE_MUL, parse(f, "(exp (sub a b))"), &why), SMG_EXPR_NONE);
    assert_string_not_equal(why, "");
}

static void linear_factors_leave_sums(void **state) {
    fixture *f = *state;
    smg_postponed p;
    assert_int_equal(smg_slice_postpone(&f->roles, parse(f, "(div a b)"), &p), SMG_OK);
    assert_int_equal(p.core, f->leaf[C]);
    assert_true(at(f, p.factor, 4, 0, 0) == 0.25);
    assert_int_equal(smg_slice_postpone(&f->roles, parse(f, "(mul (neg a) b)"), &p), SMG_OK);
    assert_int_equal(p.factor, f->leaf[R]);
    assert_false(smg_slice_aggregates(&f->roles, p.core));
    /* under an exp it stays; a fixed factor is not worth it; a sum is no product */
    static const char *const kept[] = {"(exp (sub a b))", "(mul a c)", "(sub a b)", "(sqrt (mul a b))"};
    for (size_t i = 0; i < SMG_COUNT_OF(kept); i++) {
        smg_expr e = parse(f, kept[i]);
        assert_int_equal(smg_slice_postpone(&f->roles, e, &p), SMG_OK);
        assert_int_equal(p.factor, SMG_EXPR_NONE);
        assert_int_equal(p.core, e);
    }
}

/* What exporters put between an average's weights and what they weigh: NaN for all elements of a row, or for none. */
static void nan_guards_leave_sums(void **state) {
    fixture *f = *state;
    smg_postponed p;
    smg_expr e = parse(f, "(exp a)"), weight = smg_expr_make(f->pool, SMG_PRIM_DIV, e, f->leaf[R], SMG_EXPR_NONE);
    smg_expr none = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0);
    smg_expr bad = smg_expr_make(f->pool, SMG_PRIM_ISNAN, weight, SMG_EXPR_NONE, SMG_EXPR_NONE);
    smg_expr guarded = smg_expr_make(f->pool, SMG_PRIM_SELECT, bad, none, weight), sums[T];
    for (int i = 0; i < T; i++) sums[i] = SMG_EXPR_NONE;
    f->roles.sum_of = sums;
    assert_int_equal(smg_slice_postpone(&f->roles, guarded, &p), SMG_OK);
    assert_int_equal(p.factor, SMG_EXPR_NONE); /* nobody says that r is the sum of these elements */
    sums[R] = e;
    assert_int_equal(smg_slice_postpone(&f->roles, guarded, &p), SMG_OK);
    assert_int_equal(p.core, e);
    assert_true(at(f, p.factor, 4, 0, 0) == 0.25);
    static const double r[] = {2.0, 0.0, INFINITY, NAN};
    for (size_t i = 0; i < SMG_COUNT_OF(r); i++) assert_true((at(f, p.guard, r[i], 0, 0) != 0) == (i == 0));
    sums[R] = f->leaf[C];
    smg_expr raw = smg_expr_make(f->pool, SMG_PRIM_DIV, f->leaf[C], f->leaf[R], SMG_EXPR_NONE);
    bad = smg_expr_make(f->pool, SMG_PRIM_ISNAN, raw, SMG_EXPR_NONE, SMG_EXPR_NONE);
    guarded = smg_expr_make(f->pool, SMG_PRIM_SELECT, bad, none, raw);
    assert_int_equal(smg_slice_postpone(&f->roles, guarded, &p), SMG_OK);
    assert_int_equal(p.factor, SMG_EXPR_NONE); /* elements of either sign: a sum of 0 says nothing */
    f->roles.sum_of = NULL;
}

static smg_postponed postponed(fixture *f, smg_expr e) {
    smg_postponed p;
    assert_int_equal(smg_slice_postpone(&f->roles, e, &p), SMG_OK);
    return p;
}

/* e / r, however it is spelt, between a guard of either form. */
static void every_spelling_of_a_guarded_quotient(void **state) {
    static const char *const spelling[] = {
        "(div (exp a) b)",         "(mul (exp a) (div 1 b))",
        "(mul (div 1 b) (exp a))", "(mul (exp a) (pow b (neg 1)))",
        "(div 1 (div b (exp a)))", /* not one of them */
    };
    fixture *f = *state;
    smg_expr none = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0), sums[T];
    for (int i = 0; i < T; i++) sums[i] = i == R ? parse(f, "(exp a)") : SMG_EXPR_NONE;
    f->roles.sum_of = sums;
    for (size_t i = 0; i < SMG_COUNT_OF(spelling); i++) {
        bool known = i + 1 < SMG_COUNT_OF(spelling);
        smg_expr x = parse(f, spelling[i]), bad = make(f, SMG_PRIM_ISNAN, x, SMG_EXPR_NONE, SMG_EXPR_NONE);
        smg_expr good = make(f, SMG_PRIM_NOT, bad, SMG_EXPR_NONE, SMG_EXPR_NONE);
        for (int turned = 0; turned < 2; turned++) {
            smg_postponed p =
                postponed(f, turned ? make(f, SMG_PRIM_SELECT, good, x, none) : make(f, SMG_PRIM_SELECT, bad, none, x));
            assert_int_equal(p.factor != SMG_EXPR_NONE, known);
            if (!known) continue;
            assert_int_equal(p.core, sums[R]);
            assert_true(at(f, p.factor, 4, 0, 0) == 0.25);
            assert_true(at(f, p.guard, 4, 0, 0) == 1 && at(f, p.guard, 0, 0, 0) == 0);
        }
    }
    f->roles.sum_of = NULL;
}

/* A condition that is the same for all elements leaves with the factor that it guards, whatever is summed. */
static void conditions_that_stand_still_leave_sums(void **state) {
    fixture *f = *state;
    smg_expr none = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0), quotient = parse(f, "(div a b)");
    smg_expr empty = parse(f, "(eq b 0)"), guarded = make(f, SMG_PRIM_SELECT, empty, none, quotient);
    smg_postponed p = postponed(f, guarded);
    assert_int_equal(p.core, f->leaf[C]);
    assert_true(at(f, p.guard, 0, 0, 0) == 0 && at(f, p.guard, 2, 0, 0) == 1 && at(f, p.guard, -2, 0, 0) == 1);
    assert_true(at(f, p.factor, 4, 0, 0) == 0.25);
    p = postponed(f, make(f, SMG_PRIM_MUL, guarded, f->leaf[C], SMG_EXPR_NONE));
    assert_int_not_equal(p.guard, SMG_EXPR_NONE);
    /* 0 * (1 / r) is NaN where r is 0: the guard stays inside, the other factor leaves */
    smg_expr inverse = parse(f, "(div 1 b)");
    p = postponed(f, make(f, SMG_PRIM_MUL, guarded, inverse, SMG_EXPR_NONE));
    assert_int_equal(p.core, guarded);
    assert_int_equal(p.factor, inverse);
    assert_int_equal(p.guard, SMG_EXPR_NONE);
    /* one that varies is a mask, and one that guards another value than 0 is no guard */
    p = postponed(f, make(f, SMG_PRIM_SELECT, f->leaf[MASK], quotient, none));
    assert_int_equal(p.factor, SMG_EXPR_NONE);
    p = postponed(f, make(f, SMG_PRIM_SELECT, empty, f->leaf[FIXED], quotient));
    assert_int_equal(p.factor, SMG_EXPR_NONE);
}

static const char *gate(fixture *f, smg_combine combine, smg_expr e, const char *with) {
    smg_expr operand[3] = {f->leaf[T], f->leaf[R], f->leaf[OLD]};
    smg_expr u = smg_expr_parse(f->pool, with, operand);
    const char *why = NULL;
    assert_int_not_equal(u, SMG_EXPR_NONE);
    smg_update update = {.t = f->leaf[T], .n = SMG_EXPR_NONE, .value = u, .counted = SMG_EXPR_NONE};
    assert_int_equal(slice_gate(&f->roles, combine, e, &update, &why), SMG_OK);
    return why;
}

/* Updates over t, r and its old value as a, b and c. Each is right for some numbers only. */
static void the_gate_refuses_what_is_wrong_somewhere(void **state) {
    static const struct {
        smg_combine combine;
        const char *operand, *update;
    } wrong[] = {
        {SMG_COMBINE_ADD, "(mul a b)", "(mul a (div b c))"}, /* 0 / 0 */
        {SMG_COMBINE_ADD, "(mul a (abs b))", "(mul a (exp (sub (log (abs b)) (log (abs c)))))"},
        {SMG_COMBINE_ADD, "(abs (mul a b))", "(mul a (div b c))"},                   /* negative ones */
        {SMG_COMBINE_ADD, "(exp (abs (sub a b)))", "(mul a (exp (sub b c)))"},       /* a below b */
        {SMG_COMBINE_MAX, "(sub a b)", "(add a (min (max (sub c b) (neg 60)) 60))"}, /* large ones */
        {SMG_COMBINE_ADD, "(log (sub (neg 1) (mul a a)))", "a"},                     /* never a number */
    };
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        if (gate(f, wrong[i].combine, parse(f, wrong[i].operand), wrong[i].update) != NULL) continue;
        fail_msg("the sum or maximum of %s is not corrected by %s", wrong[i].operand, wrong[i].update);
    }
    /* a mask that is off: 1 does not move with r */
    smg_expr e = parse(f, "(exp (sub a b))"), one = smg_expr_const(f->pool, SMG_KIND_FLOAT, 1);
    assert_non_null(
        gate(f, SMG_COMBINE_ADD, make(f, SMG_PRIM_SELECT, f->leaf[MASK], e, one), "(mul a (exp (sub c b)))"));
    smg_expr zero = smg_expr_const(f->pool, SMG_KIND_FLOAT, 0);
    assert_null(gate(f, SMG_COMBINE_ADD, make(f, SMG_PRIM_SELECT, f->leaf[MASK], e, zero), "(mul a (exp (sub c b)))"));
}

/* What the algebra derives today passes, also where only some of the numbers drawn are in the domain. */
static void the_gate_takes_what_is_right(void **state) {
    static const struct {
        smg_combine combine;
        const char *operand;
    } right[] = {
        {SMG_COMBINE_ADD, "(exp (sub a b))"},
        {SMG_COMBINE_ADD, "(mul a (exp (sub a b)))"},
        {SMG_COMBINE_ADD, "(exp (mul (sub a b) c))"},
        {SMG_COMBINE_ADD, "(exp (div (sub a b) c))"},
        {SMG_COMBINE_ADD, "(div a (exp (sub c b)))"},
        {SMG_COMBINE_ADD, "(neg (mul (exp (sub a b)) (exp (sub a b))))"},
        {SMG_COMBINE_ADD, "(sqrt (mul a (exp (sub a b))))"},
        {SMG_COMBINE_ADD, "(rsqrt (exp (sub a b)))"},
        {SMG_COMBINE_ADD, "(abs (mul a (exp (neg b))))"},
        {SMG_COMBINE_ADD, "(pow (exp (sub a b)) 3)"},
        {SMG_COMBINE_ADD, "(pow (exp (sub a b)) c)"},
        {SMG_COMBINE_ADD, "(mul (log a) (exp (sub a b)))"},
        {SMG_COMBINE_ADD, "(mul (log (neg a)) (exp (sub a b)))"},
        {SMG_COMBINE_ADD, "(mul (sqrt (sub 1 (mul a a))) (exp (sub a b)))"},
        {SMG_COMBINE_ADD, "(exp (sub (sub a 300000000000000000000000000000000000000) b))"},
        {SMG_COMBINE_MAX, "(sub a b)"},
        {SMG_COMBINE_MIN, "(add (mul a 2) (mul b c))"},
        {SMG_COMBINE_MAX, "(div (sub a (log b)) c)"},
        {SMG_COMBINE_MAX, "(neg (sub a b))"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(right); i++) {
        const char *why;
        if (update(f, right[i].combine, parse(f, right[i].operand), &why) != SMG_EXPR_NONE) continue;
        fail_msg("%s: %s", right[i].operand, why);
    }
}

/* Integer division truncates: sum(a / r) is not sum(a) / r. */
/* ---- terms ------------------------------------------------------------------------------------------- */

static smg_expr fixed_pivot(void *user, smg_expr varies) {
    const fixture *f = user;
    return varies == f->leaf[C] ? f->leaf[FIXED] : SMG_EXPR_NONE;
}

static smg_expr no_pivot(void *user, smg_expr varies) {
    (void)user;
    (void)varies;
    return SMG_EXPR_NONE;
}

static smg_terms terms_of(fixture *f, smg_expr e, bool with_pivot) {
    const smg_pivot pivot = {.near = with_pivot ? fixed_pivot : no_pivot, .user = f};
    smg_terms t;
    const char *why;
    assert_int_equal(smg_slice_terms(&f->roles, e, &pivot, &t, &why), SMG_OK);
    assert_true((t.count == 0) == (why != NULL));
    return t;
}

/* Of two elements, as the terms have it: in floats, as a kernel would. */
static float sum_of_terms(fixture *f, const smg_terms *t, const double c[2], double r, double pivot) {
    double leaves[LEAVES] = {0};
    float sum = 0;
    leaves[R] = r;
    leaves[FIXED] = pivot;
    for (int i = 0; i < t->count; i++) {
        float part = 0;
        for (int k = 0; k < 2; k++) {
            leaves[C] = c[k];
            part += (float)smg_expr_eval(f->pool, t->summed[i], leaves);
        }
        sum += part * (float)smg_expr_eval(f->pool, t->factor[i], leaves);
    }
    return sum;
}

static void squares_are_three_sums_at_a_pivot(void **state) {
    static const double near[] = {3, 7}, far[] = {10001, 9999};
    fixture *f = *state;
    smg_terms t = terms_of(f, parse(f, "(mul (sub a b) (sub a b))"), true);
    assert_int_equal(t.count, 3);
    assert_true(fabs((double)sum_of_terms(f, &t, near, 5, 4) - 8) < 1e-5);
    assert_true(fabs((double)sum_of_terms(f, &t, far, 10000, 10001) - 2) < 1e-5); /* raw moments: 1e8 - 1e8 */
    t = terms_of(f, parse(f, "(mul (sub b a) (neg (sub b a)))"), true);
    assert_true(fabs((double)sum_of_terms(f, &t, near, 5, 4) + 8) < 1e-5);
    assert_int_equal(terms_of(f, parse(f, "(mul (sub a b) (sub a b))"), false).count, 0);
}

static void plain_terms_need_no_pivot(void **state) {
    static const double c[] = {3, 7};
    fixture *f = *state;
    smg_expr masked = make(f, SMG_PRIM_SELECT, f->leaf[MASK], parse(f, "(add (mul a b) (exp a))"),
                           smg_expr_const(f->pool, SMG_KIND_FLOAT, 0));
    smg_terms t = terms_of(f, parse(f, "(add (mul a (exp b)) (div a (add b 1)))"), false);
    assert_int_equal(t.count, 1); /* the same c: one sum, two factors */
    assert_true(fabs((double)sum_of_terms(f, &t, c, 1, 0) - 10 * (exp(1) + 0.5)) < 1e-4);
    assert_int_equal(terms_of(f, masked, false).count, 2);
}

static void what_is_no_sum_of_terms(void **state) {
    static const char *const whole[] = {"(div 1 (add 1 (exp (sub b a))))", "(erf (mul a b))", "(div a (add a b))",
                                        "(mul (add (mul a b) (exp a)) (add (mul a b) (exp a)))"};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(whole); i++) {
        if (terms_of(f, parse(f, whole[i]), true).count == 0) continue;
        fail_msg("%s was taken apart", whole[i]);
    }
}

static void the_gate_refuses_wrong_terms(void **state) {
    fixture *f = *state;
    smg_terms t = {.count = 2,
                   .summed = {parse(f, "(mul a a)"), f->leaf[C]},
                   .factor = {smg_expr_const(f->pool, SMG_KIND_FLOAT, 1),
                              parse(f, "(neg (mul 2 b))")}}; /* the square of b is missing */
    const char *why;
    assert_int_equal(slice_gate_terms(&f->roles, parse(f, "(mul (sub a b) (sub a b))"), &t, &why), SMG_OK);
    assert_non_null(why);
}

static void integers_stay(void **state) {
    fixture *f = *state;
    smg_postponed p;
    smg_expr a = smg_expr_leaf(f->pool, SMG_KIND_INT, C), r = smg_expr_leaf(f->pool, SMG_KIND_INT, R);
    smg_expr e = smg_expr_make(f->pool, SMG_PRIM_DIV, a, r, SMG_EXPR_NONE);
    assert_int_equal(smg_slice_postpone(&f->roles, e, &p), SMG_OK);
    assert_int_equal(p.factor, SMG_EXPR_NONE);
    assert_int_equal(p.core, e);
    const char *why = "";
    assert_int_equal(update(f, SMG_COMBINE_ADD, e, &why), SMG_EXPR_NONE);
}

/* Nor does it matter who asked the same before. */
static void what_was_asked_before_is_answered_alike(void **state) {
    fixture *f = *state;
    assert_int_equal(smg_map_create(f->arena, &f->roles.asked), SMG_OK);
    for (int again = 0; again < 2; again++) {
        the_gate_refuses_what_is_wrong_somewhere(state);
        the_gate_takes_what_is_right(state);
        the_gate_refuses_wrong_terms(state);
        squares_are_three_sums_at_a_pivot(state);
        sums_gain_by_what_they_count(state);
    }
    f->roles.asked = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_are_corrected_without_quotients),
        cmocka_unit_test(maxima_shift),
        cmocka_unit_test(masks_stand_still),
        cmocka_unit_test(sums_gain_by_what_they_count),
        cmocka_unit_test(sums_gain_nothing_that_strays),
        cmocka_unit_test(refused_with_a_reason),
        cmocka_unit_test(linear_factors_leave_sums),
        cmocka_unit_test(nan_guards_leave_sums),
        cmocka_unit_test(every_spelling_of_a_guarded_quotient),
        cmocka_unit_test(conditions_that_stand_still_leave_sums),
        cmocka_unit_test(the_gate_refuses_what_is_wrong_somewhere),
        cmocka_unit_test(the_gate_takes_what_is_right),
        cmocka_unit_test(squares_are_three_sums_at_a_pivot),
        cmocka_unit_test(plain_terms_need_no_pivot),
        cmocka_unit_test(what_is_no_sum_of_terms),
        cmocka_unit_test(the_gate_refuses_wrong_terms),
        cmocka_unit_test(what_was_asked_before_is_answered_alike),
        cmocka_unit_test(integers_stay),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
