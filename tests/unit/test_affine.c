/* Forms and ranges against every position of small boxes: what is said of a value holds at each, bounds are reached, and
 * enough is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "affine/affine.h"
#include "support/check_plan.h"

#define INDICES 3
#define MOST_S 4
#define MOST_T 3
#define ELSEWHERE 17.0

/* Leaves: the indices, two sizes, a truth and an integer that are data, and two that are index 0 in a part of it. */
enum { LEAF_S = INDICES, LEAF_T, LEAF_TRUTH, LEAF_DATA, LEAF_FRONT, LEAF_BACK, LEAVES };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_sizes *sizes;
    smg_exprs *exprs;
    smg_size extent[INDICES + 2]; /* two more that a split makes */
    smg_affine_scope scope;
} fixture;

/* One position. */
typedef struct position {
    int64_t symbols[2], index[INDICES + 2];
    double leaf[LEAVES];
} position;

static uint32_t seed;

static int pick(int count) {
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)count);
}

static smg_size size_of(const fixture *f, const char *text) {
    smg_size size = SMG_SIZE_NONE;
    const char *cursor = text;
    assert_int_equal(smg_size_parse(f->sizes, &cursor, &size), SMG_OK);
    return size;
}

static smg_size extent_of(const void *user, int index) {
    const fixture *f = user;
    return f->extent[index];
}

static int setup(void **state) {
    static fixture f;
    f = (fixture){.ctx = NULL};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_sizes_create(f.arena, &f.sizes), SMG_OK);
    assert_int_equal(smg_exprs_create(f.arena, &f.exprs), SMG_OK);
    assert_true(smg_size_symbol(f.sizes, "s") >= 0 && smg_size_symbol(f.sizes, "t") >= 0);
    smg_size_symbol_set_max(f.sizes, 0, MOST_S);
    smg_size_symbol_set_max(f.sizes, 1, MOST_T);
    f.extent[0] = size_of(&f, "s+2");
    f.extent[1] = size_of(&f, "3");
    f.extent[2] = size_of(&f, "t");
    f.extent[3] = size_of(&f, "s");
    f.extent[4] = size_of(&f, "4");
    f.scope = (smg_affine_scope){.sizes = f.sizes, .extent = extent_of, .user = &f};
    seed = 1;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static int64_t value_of(const fixture *f, smg_size size, const position *p) {
    int64_t value = 0;
    assert_true(smg_size_eval(f->sizes, size, p->symbols, &value));
    return value;
}

static int64_t form_value(const fixture *f, const smg_affine *a, const position *p) {
    int64_t sum = value_of(f, a->begin, p);
    for (int t = 0; t < a->count; t++) sum += value_of(f, a->term[t].by, p) * p->index[a->term[t].index];
    return sum;
}

/* ---- all positions ------------------------------------------------------------------------------------ */

typedef void (*visitor)(const fixture *f, const position *p, void *user);

static void each_index(const fixture *f, position *p, int index, visitor visit, void *user) {
    if (index == INDICES) {
        visit(f, p, user);
        return;
    }
    int64_t extent = value_of(f, f->extent[index], p);
    for (p->index[index] = 0; p->index[index] < extent; p->index[index]++) each_index(f, p, index + 1, visit, user);
}

static void each_position(const fixture *f, visitor visit, void *user) {
    position p = {.symbols = {1, 1}};
    for (p.symbols[0] = 1; p.symbols[0] <= MOST_S; p.symbols[0]++)
        for (p.symbols[1] = 1; p.symbols[1] <= MOST_T; p.symbols[1]++) each_index(f, &p, 0, visit, user);
}

/* ---- expressions -------------------------------------------------------------------------------------- */

static smg_kind kind_of_leaf(int leaf) {
    return leaf == LEAF_TRUTH ? SMG_KIND_BOOL : SMG_KIND_INT;
}

static smg_affine_value leaf_value(const void *user, int leaf) {
    const fixture *f = user;
    smg_affine_value v = smg_affine_unknown;
    smg_size last = smg_size_sub(f->sizes, f->extent[0], size_of(f, "1"));
    if (leaf < INDICES) return smg_affine_of_index(&f->scope, leaf);
    if (leaf == LEAF_S || leaf == LEAF_T) return smg_affine_of_size(size_of(f, leaf == LEAF_S ? "s" : "t"));
    if (leaf == LEAF_DATA) v.range = (smg_affine_range){SMG_SIZE_ZERO, size_of(f, "s+1"), 1};
    if (leaf == LEAF_FRONT || leaf == LEAF_BACK) {
        v = smg_affine_of_index(&f->scope, 0);
        v.range = smg_affine_unknown.range;
        if (leaf == LEAF_FRONT) smg_affine_cut_to(&f->scope, &v, 0, SMG_SIZE_ZERO, size_of(f, "1"));
        if (leaf == LEAF_BACK) smg_affine_cut_to(&f->scope, &v, 0, size_of(f, "2"), last);
    }
    return v;
}

static smg_affine_value known_of(const fixture *f, smg_expr expr) {
    smg_affine_leaves leaves = {leaf_value, f};
    return smg_affine_eval(&f->scope, f->exprs, expr, &leaves);
}

typedef struct checked {
    smg_expr expr;
    smg_affine_value v;
    double truth, data; /* of the leaves that are data */
} checked;

static bool inside(const fixture *f, const smg_affine_value *v, const position *p) {
    for (int c = 0; c < v->cut_count; c++) {
        int64_t at = p->index[v->cut[c].index];
        if (at < value_of(f, v->cut[c].first, p) || at > value_of(f, v->cut[c].last, p)) return false;
    }
    return true;
}

static void check_here(const fixture *f, const position *p, void *user) {
    const checked *c = user;
    const smg_affine_value *v = &c->v;
    position here = *p;
    for (int i = 0; i < INDICES; i++) here.leaf[i] = (double)p->index[i];
    here.leaf[LEAF_S] = (double)p->symbols[0];
    here.leaf[LEAF_T] = (double)p->symbols[1];
    here.leaf[LEAF_TRUTH] = c->truth;
    here.leaf[LEAF_DATA] = c->data < here.leaf[LEAF_S] + 1 ? c->data : here.leaf[LEAF_S] + 1;
    here.leaf[LEAF_FRONT] = p->index[0] <= 1 ? here.leaf[0] : ELSEWHERE;
    here.leaf[LEAF_BACK] = p->index[0] >= 2 ? here.leaf[0] : ELSEWHERE;
    int64_t value = (int64_t)smg_expr_eval(f->exprs, c->expr, here.leaf);
    bool truth = smg_expr_get(f->exprs, c->expr)->kind == SMG_KIND_BOOL;
    if (v->known && inside(f, v, p)) {
        int64_t said = form_value(f, &v->form, p);
        assert_int_equal(truth ? said >= 0 : said, value);
    }
    if (v->range.low >= 0) assert_true(value_of(f, v->range.low, p) <= value);
    if (v->range.high >= 0) assert_true(value_of(f, v->range.high, p) >= value);
    if (v->leaf >= 0) assert_int_equal(value, (int64_t)here.leaf[v->leaf]);
}

static smg_affine_value assert_holds(const fixture *f, smg_expr expr) {
    checked c = {.expr = expr, .v = known_of(f, expr)};
    assert_true(expr != SMG_EXPR_NONE);
    for (int round = 0; round < 4; round++) {
        c.truth = round % 2;
        c.data = round * 2;
        each_position(f, check_here, &c);
    }
    return c.v;
}

static smg_expr leaf_of(const fixture *f, int leaf) {
    return smg_expr_leaf(f->exprs, kind_of_leaf(leaf), leaf);
}

static smg_expr random_truth(const fixture *f, int depth);

static smg_expr random_number(const fixture *f, int depth) {
    static const smg_prim maps[] = {SMG_PRIM_ADD, SMG_PRIM_SUB, SMG_PRIM_MUL, SMG_PRIM_DIV,
                                    SMG_PRIM_MOD, SMG_PRIM_MIN, SMG_PRIM_MAX};
    if (depth == 0 || pick(8) == 0) {
        int leaf = pick(LEAVES + 3);
        if (leaf >= LEAVES || leaf == LEAF_TRUTH) return smg_expr_const(f->exprs, SMG_KIND_INT, pick(9) - 3);
        return leaf_of(f, leaf);
    }
    switch (pick(10)) {
    case 0: return smg_expr_make(f->exprs, SMG_PRIM_NEG, random_number(f, depth - 1), SMG_EXPR_NONE, SMG_EXPR_NONE);
    case 1: return smg_expr_make(f->exprs, SMG_PRIM_ABS, random_number(f, depth - 1), SMG_EXPR_NONE, SMG_EXPR_NONE);
    case 2: return smg_expr_make(f->exprs, SMG_PRIM_TO_INT, random_truth(f, depth - 1), SMG_EXPR_NONE, SMG_EXPR_NONE);
    case 3:
        return smg_expr_make(f->exprs, SMG_PRIM_SELECT, random_truth(f, depth - 1), random_number(f, depth - 1),
                             random_number(f, depth - 1));
    default:
        return smg_expr_make(f->exprs, maps[pick((int)SMG_COUNT_OF(maps))], random_number(f, depth - 1),
                             random_number(f, depth - 1), SMG_EXPR_NONE);
    }
}

static smg_expr random_truth(const fixture *f, int depth) {
    static const smg_prim tests[] = {SMG_PRIM_LT, SMG_PRIM_LE, SMG_PRIM_EQ};
    if (depth == 0) return leaf_of(f, LEAF_TRUTH);
    switch (pick(9)) {
    case 0: return smg_expr_make(f->exprs, SMG_PRIM_NOT, random_truth(f, depth - 1), SMG_EXPR_NONE, SMG_EXPR_NONE);
    case 1:
    case 2:
        return smg_expr_make(f->exprs, pick(2) ? SMG_PRIM_AND : SMG_PRIM_OR, random_truth(f, depth - 1),
                             random_truth(f, depth - 1), SMG_EXPR_NONE);
    case 3: return smg_expr_make(f->exprs, SMG_PRIM_TO_BOOL, random_number(f, depth - 1), SMG_EXPR_NONE, SMG_EXPR_NONE);
    case 4:
        return smg_expr_make(f->exprs, SMG_PRIM_EQ, random_truth(f, depth - 1), random_truth(f, depth - 1),
                             SMG_EXPR_NONE);
    case 5:
        return smg_expr_make(f->exprs, SMG_PRIM_SELECT, random_truth(f, depth - 1), random_truth(f, depth - 1),
                             random_truth(f, depth - 1));
    default:
        return smg_expr_make(f->exprs, tests[pick(3)], random_number(f, depth - 1), random_number(f, depth - 1),
                             SMG_EXPR_NONE);
    }
}

static void random_expressions_are_what_is_said(void **state) {
    fixture *f = *state;
    int whole = 0, parts = 0, ranges = 0, decided = 0, leaves = 0;
    for (int round = 0; round < 20000 / CHECK_ONE_IN; round++) {
        smg_expr expr = round % 3 == 0 ? random_truth(f, 3) : random_number(f, 1 + pick(3));
        bool truth = smg_expr_get(f->exprs, expr)->kind == SMG_KIND_BOOL;
        smg_prim prim = smg_expr_get(f->exprs, expr)->prim;
        smg_affine_value v = assert_holds(f, expr);
        if (prim == SMG_PRIM_LEAF || prim == SMG_PRIM_CONST) continue;
        whole += smg_affine_whole(&v);
        parts += v.known && v.cut_count > 0;
        ranges += !truth && v.range.low >= 0 && v.range.high >= 0;
        decided += truth && smg_affine_decision(&f->scope, &v) != 0;
        leaves += v.leaf >= 0;
    }
    print_message("whole %d, in part %d, ranges %d, decided %d, leaves %d\n", whole, parts, ranges, decided, leaves);
    const int one_in = CHECK_ONE_IN;
    assert_true(whole > 2000 / one_in && parts > 600 / one_in && ranges > 3000 / one_in);
    assert_true(decided > 800 / one_in && leaves > 300 / one_in);
}

/* ---- forms ---------------------------------------------------------------------------------------------- */

static smg_size random_size(const fixture *f) {
    static const char *const texts[] = {"1",   "2",     "3", "s",     "t",   "s*t", "-1",
                                        "0-s", "0-2*t", "5", "s+t-2", "s-t", "2*s", "7"};
    return size_of(f, texts[pick((int)SMG_COUNT_OF(texts))]);
}

static smg_affine random_form(const fixture *f) {
    smg_affine a = {.begin = pick(3) ? random_size(f) : SMG_SIZE_ZERO};
    for (int i = 0; i < INDICES; i++)
        if (pick(3)) assert_true(smg_affine_put(f->sizes, &a, i, random_size(f)));
    return a;
}

typedef struct extent_seen {
    const smg_affine *a;
    int64_t low[MOST_S + 1][MOST_T + 1], high[MOST_S + 1][MOST_T + 1];
} extent_seen;

static void see(const fixture *f, const position *p, void *user) {
    extent_seen *seen = user;
    int64_t value = form_value(f, seen->a, p);
    int64_t *low = &seen->low[p->symbols[0]][p->symbols[1]], *high = &seen->high[p->symbols[0]][p->symbols[1]];
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

static void bounds_are_reached(void **state) {
    fixture *f = *state;
    int known = 0, signs = 0;
    for (int round = 0; round < 500 / CHECK_ONE_IN; round++) {
        smg_affine a = random_form(f);
        extent_seen seen = {.a = &a};
        smg_size low, high;
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (int s = 0; s <= MOST_S; s++)
            for (int t = 0; t <= MOST_T; t++) {
                seen.low[s][t] = INT64_MAX;
                seen.high[s][t] = INT64_MIN;
            }
        each_position(f, see, &seen);
        bool bounded = smg_affine_bounds(&f->scope, &a, NULL, &low, &high);
        known += bounded;
        for (int s = 1; s <= MOST_S; s++)
            for (int t = 1; t <= MOST_T; t++) {
                position p = {.symbols = {s, t}};
                least = seen.low[s][t] < least ? seen.low[s][t] : least;
                most = seen.high[s][t] > most ? seen.high[s][t] : most;
                if (bounded) assert_int_equal(value_of(f, low, &p), seen.low[s][t]);
                if (bounded) assert_int_equal(value_of(f, high, &p), seen.high[s][t]);
            }
        int sign = smg_affine_sign(&f->scope, &a, NULL);
        signs += sign != 0;
        assert_true(sign == 0 || (sign > 0 ? least >= 0 : most < 0));
    }
    assert_true(known > 300 / CHECK_ONE_IN && signs > 150 / CHECK_ONE_IN);
}

typedef struct division {
    smg_affine a, quotient, rest;
    smg_size by;
} division;

static void check_division(const fixture *f, const position *p, void *user) {
    const division *d = user;
    int64_t by = value_of(f, d->by, p), rest = form_value(f, &d->rest, p);
    assert_int_equal(form_value(f, &d->a, p), form_value(f, &d->quotient, p) * by + rest);
    assert_true(rest >= 0 && rest < by);
}

static void quotients_and_rests_make_the_form(void **state) {
    fixture *f = *state;
    static const char *const divisors[] = {"1", "2", "3", "4", "s", "t", "s*t", "2*s", "s+1"};
    int found = 0;
    for (int round = 0; round < 3000 / CHECK_ONE_IN; round++) {
        division d = {.a = random_form(f), .by = size_of(f, divisors[pick((int)SMG_COUNT_OF(divisors))])};
        if (!smg_affine_divide(&f->scope, &d.a, NULL, d.by, &d.quotient, &d.rest)) continue;
        each_position(f, check_division, &d);
        found++;
    }
    print_message("divisions %d\n", found);
    assert_true(found > 300 / CHECK_ONE_IN);
}

/* i * s + k where k < s; 7 + 4 * i by 4 counts on from 1; what is below 0 is one step before. */
static void divisions_that_must_be_found(void **state) {
    fixture *f = *state;
    static const struct {
        const char *begin, *by[INDICES + 1], *divisor, *quotient, *rest;
    } cases[] = {
        {"0", {"t", "0", "1"}, "t", "0", "0"},   {"7", {"4", "1", "0"}, "4", "1", "3"},
        {"7", {"4", "0", "0"}, "4", "1", "3"},   {"0-1", {"2", "0", "0"}, "2", "0-1", "1"},
        {"t*s", {"t", "0", "1"}, "t", "s", "0"},
    };
    for (int c = 0; c < (int)SMG_COUNT_OF(cases); c++) {
        division d = {.a = {.begin = size_of(f, cases[c].begin)}, .by = size_of(f, cases[c].divisor)};
        for (int i = 0; i < INDICES; i++) assert_true(smg_affine_put(f->sizes, &d.a, i, size_of(f, cases[c].by[i])));
        bool found = smg_affine_divide(&f->scope, &d.a, NULL, d.by, &d.quotient, &d.rest);
        assert_int_equal(found, c != 1); /* 3 + index 1 may reach 4 */
        if (!found) continue;
        each_position(f, check_division, &d);
        assert_int_equal(d.quotient.begin, size_of(f, cases[c].quotient));
        assert_int_equal(d.rest.begin, size_of(f, cases[c].rest));
    }
}

/* Index 0 of 4 * s values as index 3, of s, and index 4, of 4. */
static bool split_by_four(const void *user, smg_affine *io, smg_size by) {
    const fixture *f = user;
    smg_size factor = smg_affine_take(io, 0);
    return by != size_of(f, "4") || (smg_affine_put(f->sizes, io, 3, smg_size_mul(f->sizes, factor, by)) &&
                                     smg_affine_put(f->sizes, io, 4, factor));
}

static void what_crosses_is_split(void **state) {
    fixture *f = *state;
    smg_affine a = {.count = 0}, quotient, rest;
    f->extent[0] = size_of(f, "4*s");
    assert_true(smg_affine_put(f->sizes, &a, 0, size_of(f, "1")));
    assert_false(smg_affine_divide(&f->scope, &a, NULL, size_of(f, "4"), &quotient, &rest));
    f->scope.split = split_by_four;
    assert_true(smg_affine_divide(&f->scope, &a, NULL, size_of(f, "4"), &quotient, &rest));
    assert_int_equal(smg_affine_by(&quotient, 3), size_of(f, "1"));
    assert_int_equal(smg_affine_by(&rest, 4), size_of(f, "1"));
    assert_true(quotient.count == 1 && rest.count == 1);
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

static smg_expr make(const fixture *f, smg_prim prim, smg_expr x, smg_expr y, smg_expr z) {
    return smg_expr_make(f->exprs, prim, x, y, z);
}

static void parts_are_put_together(void **state) {
    fixture *f = *state;
    smg_expr i = leaf_of(f, 0), front = leaf_of(f, LEAF_FRONT), back = leaf_of(f, LEAF_BACK), none = SMG_EXPR_NONE;
    smg_expr two = smg_expr_const(f->exprs, SMG_KIND_INT, 2), one = smg_expr_const(f->exprs, SMG_KIND_INT, 1);
    smg_expr before = make(f, SMG_PRIM_LT, i, two, none), before_one = make(f, SMG_PRIM_LT, i, one, none);
    smg_affine_value v = assert_holds(f, make(f, SMG_PRIM_SELECT, before, front, back));
    assert_true(smg_affine_whole(&v) && v.form.count == 1 && v.form.begin == SMG_SIZE_ZERO);
    v = assert_holds(f, make(f, SMG_PRIM_SELECT, make(f, SMG_PRIM_LE, two, i, none), back, front));
    assert_true(smg_affine_whole(&v));
    v = assert_holds(f, make(f, SMG_PRIM_SELECT, before_one, front, back)); /* the seam is elsewhere */
    assert_false(v.known);
    v = assert_holds(f, make(f, SMG_PRIM_SELECT, before, back, front)); /* the other way round */
    assert_false(v.known);
    v = assert_holds(f, make(f, SMG_PRIM_ADD, front, back, none));
    assert_true(!v.known || v.cut_count > 0);
    v = assert_holds(f, make(f, SMG_PRIM_SELECT, before_one, one, make(f, SMG_PRIM_ADD, i, one, none)));
    assert_true(smg_affine_whole(&v) && v.form.begin == size_of(f, "1"));     /* one place goes on as the others do */
    smg_expr k = leaf_of(f, 1), away = make(f, SMG_PRIM_SUB, i, front, none); /* 0 in front, less than -9 behind */
    smg_expr first = make(f, SMG_PRIM_LT, make(f, SMG_PRIM_ADD, k, away, none), one, none);
    v = assert_holds(f, make(f, SMG_PRIM_SELECT, first, one, make(f, SMG_PRIM_ADD, k, one, none)));
    assert_true(v.known && smg_affine_cut_of(&v, 0) != NULL); /* where the test is known */
}

static void ranges_take_the_tighter_bound(void **state) {
    fixture *f = *state;
    smg_expr data = leaf_of(f, LEAF_DATA), none = SMG_EXPR_NONE; /* 0 to s+1 */
    smg_expr two = smg_expr_const(f->exprs, SMG_KIND_INT, 2), s = leaf_of(f, LEAF_S);
    smg_affine_range r = assert_holds(f, make(f, SMG_PRIM_MIN, data, two, none)).range;
    assert_true(r.low == SMG_SIZE_ZERO && r.high == size_of(f, "2"));
    r = assert_holds(f, make(f, SMG_PRIM_MAX, data, s, none)).range;
    assert_true(r.low == size_of(f, "s") && r.high == size_of(f, "s+1"));
    r = assert_holds(f, make(f, SMG_PRIM_MOD, data, s, none)).range;
    assert_true(r.low == SMG_SIZE_ZERO && r.high == size_of(f, "s-1"));
    r = assert_holds(f, make(f, SMG_PRIM_SUB, s, make(f, SMG_PRIM_MUL, data, two, none), none)).range;
    assert_true(r.low == size_of(f, "0-s-2") && r.high == size_of(f, "s"));
}

static int asked;

static smg_affine_value counted_leaf(const void *user, int leaf) {
    asked += leaf == LEAF_DATA;
    return leaf_value(user, leaf);
}

static void what_is_not_chosen_is_not_asked(void **state) {
    fixture *f = *state;
    smg_affine_leaves leaves = {counted_leaf, f};
    smg_expr i = leaf_of(f, 0), s = leaf_of(f, LEAF_S), none = SMG_EXPR_NONE;
    smg_expr three = smg_expr_const(f->exprs, SMG_KIND_INT, 3), data = leaf_of(f, LEAF_DATA);
    asked = 0;
    smg_expr always = make(f, SMG_PRIM_LT, i, make(f, SMG_PRIM_ADD, s, three, none), none);
    smg_affine_value v = smg_affine_eval(&f->scope, f->exprs, make(f, SMG_PRIM_SELECT, always, i, data), &leaves);
    assert_true(smg_affine_whole(&v) && v.leaf == 0 && asked == 0);
    smg_affine_eval(&f->scope, f->exprs, make(f, SMG_PRIM_SELECT, make(f, SMG_PRIM_LT, i, three, none), i, data),
                    &leaves);
    assert_int_equal(asked, 1);
}

static void what_does_not_fit_is_not_known(void **state) {
    fixture *f = *state;
    smg_expr value = leaf_of(f, LEAF_S), large = smg_expr_const(f->exprs, SMG_KIND_INT, 2147483647.0);
    for (int i = 0; i < 4; i++) value = make(f, SMG_PRIM_MUL, value, large, SMG_EXPR_NONE);
    smg_affine_value v = known_of(f, value);
    assert_false(v.known);
    assert_int_equal(smg_context_status(f->ctx), SMG_OK);
    smg_affine a = {.begin = SMG_SIZE_ZERO};
    for (int i = 0; i < SMG_AFFINE_TERMS; i++) assert_true(smg_affine_put(f->sizes, &a, i, size_of(f, "s")));
    assert_false(smg_affine_put(f->sizes, &a, SMG_AFFINE_TERMS, size_of(f, "s")));
    assert_true(smg_affine_put(f->sizes, &a, 5, size_of(f, "0-s"))); /* makes room */
    assert_true(smg_affine_put(f->sizes, &a, SMG_AFFINE_TERMS, size_of(f, "s")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_expressions_are_what_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_are_reached, setup, teardown),
        cmocka_unit_test_setup_teardown(quotients_and_rests_make_the_form, setup, teardown),
        cmocka_unit_test_setup_teardown(divisions_that_must_be_found, setup, teardown),
        cmocka_unit_test_setup_teardown(what_crosses_is_split, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_are_put_together, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_take_the_tighter_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_chosen_is_not_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_not_known, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
