/* Sizes: equal polynomials share an id, exact division, floor division and its bounds, text that parses
 * back, import into another pool, and random expressions against direct arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_sizes *s;
} fixture;

static int setup(void **state) {
    static fixture f;
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_sizes_create(f.arena, &f.s), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_size parse(fixture *f, const char *text) {
    smg_size size = SMG_SIZE_NONE;
    const char *cursor = text;
    assert_int_equal(smg_size_parse(f->s, &cursor, &size), SMG_OK);
    assert_string_equal(cursor, "");
    return size;
}

static void assert_prints(fixture *f, smg_size size, const char *expected) {
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_size_print(f->s, size, &text);
    assert_string_equal(smg_text_cstr(&text), expected);
    assert_int_equal(parse(f, smg_text_cstr(&text)), size);
    smg_text_free(&text);
}

/* Rounded up to a multiple, as exporters write it. */
static void what_leaves_no_rest_is_whole(void **state) {
    fixture *f = *state;
    smg_size up = parse(f, "s + mod(4*s, 5)"), five = smg_size_const(f->s, 5);
    smg_size parts = smg_size_div(f->s, up, five);
    assert_int_equal(smg_size_mul(f->s, parts, five), up);
    assert_int_equal(smg_size_mul(f->s, smg_size_mul(f->s, parts, parse(f, "b*parts_of+b")), parse(f, "10")),
                     smg_size_mul(f->s, up, parse(f, "2*b*parts_of+2*b")));
    smg_size both = smg_size_add(f->s, smg_size_mul(f->s, parts, parse(f, "b")), parts);
    assert_int_equal(smg_size_mul(f->s, both, five), smg_size_mul(f->s, up, parse(f, "b+1")));
    smg_size not_whole = smg_size_div(f->s, parse(f, "s + mod(3*s, 5)"), five);
    assert_int_not_equal(smg_size_mul(f->s, not_whole, five), parse(f, "s + mod(3*s, 5)"));
}

/* Down and up to a multiple, by quotients and by remainders: one form each, and on the right side of s. */
static void multiples_meet_what_they_are_of(void **state) {
    fixture *f = *state;
    smg_size s = parse(f, "s"), down = parse(f, "2*floor(s/2)"), up = parse(f, "2*floor((s+1)/2)"), quotient;
    int64_t low, high;
    assert_int_equal(smg_size_min(f->s, down, s), down);
    assert_int_equal(smg_size_max(f->s, down, s), s);
    assert_int_equal(smg_size_min(f->s, up, s), s);
    assert_int_equal(parse(f, "s - mod(s,2)"), down);
    assert_int_equal(parse(f, "s + mod(4-mod(s,4),4)"), parse(f, "4*floor((s+3)/4)"));
    assert_int_equal(parse(f, "floor((3*s+1)/4)"), parse(f, "s-floor((s+2)/4)"));
    assert_true(smg_size_divide_exact(f->s, parse(f, "s + 8 - mod(s,8)"), parse(f, "8"), &quotient));
    assert_int_equal(quotient, parse(f, "floor(s/8)+1"));
    assert_true(smg_size_divide_exact(f->s, parse(f, "s + mod(8-mod(s,8),8)"), parse(f, "8"), &quotient));
    assert_true(smg_size_divide_exact(f->s, parse(f, "s + mod(7*s,8)"), parse(f, "8"), &quotient));
    assert_false(smg_size_divide_exact(f->s, parse(f, "s + mod(6*s,8)"), parse(f, "8"), &quotient));
    smg_size_bounds(f->s, parse(f, "mod(s,5)"), &low, &high);
    assert_true(low == 0 && high == 4);
    smg_size_bounds(f->s, parse(f, "s - 3*floor(s/3) - 4*floor((s+2)/4) + s"), &low, &high);
    assert_true(low >= -2 && high <= 3);
    smg_size_bounds(f->s, parse(f, "t - 2*floor(s/2)"), &low, &high);
    assert_true(low < -1000 && high > 1000);
}

static void equal_polynomials_share_an_id(void **state) {
    fixture *f = *state;
    assert_int_equal(parse(f, "b*s"), parse(f, "s*b"));
    assert_int_equal(parse(f, "2*(s+1)"), parse(f, "s + 2 + s"));
    assert_int_equal(parse(f, "(a+b)*(a-b)"), parse(f, "a*a - b*b"));
    assert_int_equal(parse(f, "s-s"), parse(f, "0"));
    assert_int_equal(parse(f, "max(s,t)"), parse(f, "max(t,s)"));
    assert_int_equal(parse(f, "max(s,1)"), parse(f, "s"));
    assert_int_equal(parse(f, "min(s+3,s+1)"), parse(f, "s+1"));
    assert_int_not_equal(parse(f, "b*s"), parse(f, "b+s"));
}

static void symbols_by_themselves(void **state) {
    fixture *f = *state;
    static const char *const others[] = {"2*s", "s+1", "s*s", "s*t", "7", "0", "floor(s/2)", "max(s,t)"};
    smg_size s = parse(f, "s"), t = parse(f, "t");
    int first = -1, second = -1;
    assert_true(smg_size_is_symbol(f->s, s, &first) && smg_size_is_symbol(f->s, t, &second));
    assert_string_equal(smg_size_symbol_name(f->s, first), "s");
    assert_string_equal(smg_size_symbol_name(f->s, second), "t");
    for (size_t i = 0; i < SMG_COUNT_OF(others); i++)
        assert_false(smg_size_is_symbol(f->s, parse(f, others[i]), &first));
    assert_false(smg_size_is_symbol(f->s, SMG_SIZE_NONE, &first));
    assert_string_equal(smg_size_symbol_name(f->s, first), "s"); /* untouched */
}

static void division_takes_out_what_divides(void **state) {
    fixture *f = *state;
    assert_int_equal(parse(f, "12*s/4"), parse(f, "3*s"));
    assert_int_equal(parse(f, "(4*s+5)/4"), parse(f, "s+1"));
    assert_int_equal(parse(f, "mod(4*s+5,4)"), parse(f, "1"));
    assert_int_equal(parse(f, "mod(6*s,4)"), parse(f, "mod(2*s,4)"));
    assert_int_equal(parse(f, "-1/4"), parse(f, "-1"));
    assert_int_equal(smg_size_ceil_div(f->s, parse(f, "b*s"), parse(f, "s")), parse(f, "b"));
    assert_int_equal(smg_size_ceil_div(f->s, parse(f, "65"), parse(f, "64")), parse(f, "2"));
    smg_size q = SMG_SIZE_NONE;
    assert_true(smg_size_divide_exact(f->s, parse(f, "a*a+2*a*b+b*b"), parse(f, "a+b"), &q));
    assert_int_equal(q, parse(f, "a+b"));
    assert_true(smg_size_divide_exact(f->s, parse(f, "12*b*s"), parse(f, "4*s"), &q));
    assert_int_equal(q, parse(f, "3*b"));
    assert_false(smg_size_divide_exact(f->s, parse(f, "s"), parse(f, "2"), &q));
    assert_false(smg_size_divide_exact(f->s, parse(f, "s*(s-1)"), parse(f, "s-1"), &q)); /* 0 at s = 1 */
    assert_string_equal(smg_context_error(f->ctx), "");
}

static void divisions_of_divisions_are_one(void **state) {
    fixture *f = *state;
    assert_int_equal(parse(f, "floor(s/5)/2"), parse(f, "s/10"));
    assert_int_equal(parse(f, "(floor((s-10)/5)+1-3)/2+1"), parse(f, "(s-10)/10"));
    assert_int_equal(parse(f, "(floor(s/3)+b)/4"), parse(f, "(s+3*b)/12"));
    assert_int_equal(parse(f, "floor(floor(s/2)/3)/5"), parse(f, "s/30"));
    assert_prints(f, parse(f, "floor(s/b)/2"), "floor(floor(s/b)/2)");
    for (int64_t v = 1; v < 70; v++) {
        int64_t symbols[8] = {0}, value;
        int at = smg_size_symbol_find(f->s, "s");
        symbols[at] = v;
        smg_size_eval(f->s, parse(f, "(floor((s+7)/5)-4)/3"), symbols, &value);
        int64_t inner = (v + 7) / 5 - 4;
        assert_int_equal(value, inner >= 0 ? inner / 3 : -((-inner + 2) / 3));
    }
}

static void text_round_trips(void **state) {
    fixture *f = *state;
    assert_prints(f, parse(f, "1+2*s"), "2*s+1");
    assert_prints(f, parse(f, "s / 2"), "floor(s/2)");
    assert_prints(f, parse(f, "floor((s+1)/2)*b"), "b*floor((s+1)/2)");
    assert_prints(f, parse(f, "s/(b+1)-3"), "floor(s/(b+1))-3");
    assert_prints(f, parse(f, "mod(s,4)+min(s,t*b)"), "s-4*floor(s/4)+min(s,b*t)");
    assert_prints(f, parse(f, "mod(s,b)+min(s,t*b)"), "mod(s,b)+min(s,b*t)");
    assert_prints(f, parse(f, "0"), "0");
    assert_prints(f, parse(f, "-s-1"), "-s-1");
}

static bool same_text(fixture *f, const smg_sizes *other, smg_size size) {
    smg_text a, b;
    smg_text_init(&a, f->ctx);
    smg_text_init(&b, f->ctx);
    smg_size_print(f->s, size, &a);
    smg_size_print(other, size, &b);
    bool same = strcmp(smg_text_cstr(&a), smg_text_cstr(&b)) == 0;
    smg_text_free(&a);
    smg_text_free(&b);
    return same;
}

static void bytes_round_trip(void **state) {
    fixture *f = *state;
    smg_text text;
    smg_sizes *read = NULL;
    parse(f, "mod(s,4)+min(s,t*b)*floor(min(s,7)/b)-3");
    smg_text_init(&text, f->ctx);
    smg_sizes_write(f->s, &text);
    assert_int_equal(smg_text_status(&text), SMG_OK);
    smg_reader r = {.at = (const uint8_t *)text.data, .left = text.length};
    assert_int_equal(smg_sizes_read(&r, f->arena, &read), SMG_OK);
    assert_int_equal(r.left, 0);
    assert_int_equal(smg_sizes_count(read), smg_sizes_count(f->s));
    for (smg_size i = 0; i < smg_sizes_count(read); i++) assert_true(same_text(f, read, i));
    for (size_t cut = 0; cut < text.length; cut++) {
        r = (smg_reader){.at = (const uint8_t *)text.data, .left = cut};
        assert_int_equal(smg_sizes_read(&r, f->arena, &read), SMG_FORMAT);
        smg_context_clear_error(f->ctx);
    }
    smg_text_free(&text);
}

/* min(min(..), min(..)) to a depth at which a walk through all of it would not end. */
static void a_size_of_too_many_parts_is_refused(void **state) {
    fixture *f = *state;
    smg_text text;
    smg_sizes *read = NULL;
    smg_text_init(&text, f->ctx);
    smg_text_add_u32(&text, 1);
    smg_text_add_string(&text, "s");
    smg_text_add_u64(&text, 9);
    smg_text_add_u32(&text, 41);
    for (uint32_t i = 0; i < 41; i++) {
        smg_text_add_u32(&text, i == 0 ? 0 : 1 + (uint32_t)SMG_SIZE_MIN);
        smg_text_add_u32(&text, i);
        smg_text_add_u32(&text, i);
    }
    smg_text_add_u32(&text, 42);
    smg_text_add_u32(&text, 0);
    for (uint32_t i = 0; i < 41; i++) {
        smg_text_add_u32(&text, 1);
        smg_text_add_u64(&text, 1);
        smg_text_add_u32(&text, 1);
        smg_text_add_u32(&text, i);
    }
    smg_reader r = {.at = (const uint8_t *)text.data, .left = text.length};
    assert_int_equal(smg_sizes_read(&r, f->arena, &read), SMG_FORMAT);
    smg_context_clear_error(f->ctx);
    smg_text_free(&text);
}

static void bad_text_is_refused(void **state) {
    fixture *f = *state;
    static const char *const bad[] = {"",
                                      "+",
                                      "s+",
                                      "(s",
                                      "floor(s/2",
                                      "mod(s)",
                                      "gcd(s,2)",
                                      "s/0",
                                      "s/-2",
                                      "99999999999999999999",
                                      "4611686018427387904*4",
                                      "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((s"};
    for (size_t i = 0; i < SMG_COUNT_OF(bad); i++) {
        const char *cursor = bad[i];
        smg_size size = 0;
        assert_int_not_equal(smg_size_parse(f->s, &cursor, &size), SMG_OK);
        assert_int_equal(size, SMG_SIZE_NONE);
        assert_string_not_equal(smg_context_error(f->ctx), "");
        smg_context_clear_error(f->ctx);
    }
    const char *cursor = "s + 1, 4";
    smg_size size = 0;
    assert_int_equal(smg_size_parse(f->s, &cursor, &size), SMG_OK);
    assert_string_equal(cursor, ", 4");
    assert_int_equal(smg_size_add(f->s, SMG_SIZE_NONE, size), SMG_SIZE_NONE);
}

static void bounds_and_symbols(void **state) {
    fixture *f = *state;
    int64_t low, high;
    smg_size e = parse(f, "2*s+b");
    smg_size_symbol_set_max(f->s, smg_size_symbol_find(f->s, "s"), 10);
    smg_size_symbol_set_max(f->s, smg_size_symbol_find(f->s, "b"), 4);
    smg_size_bounds(f->s, e, &low, &high);
    assert_int_equal(low, 3);
    assert_int_equal(high, 24);
    smg_size_bounds(f->s, parse(f, "floor(s/3)-b"), &low, &high);
    assert_int_equal(low, -4);
    assert_int_equal(high, 2);
    assert_int_equal(parse(f, "floor(s/16)"), parse(f, "0"));
    assert_int_equal(parse(f, "floor((s+15)/16)"), parse(f, "1")); /* parts of 16 that 10 elements have */
    assert_int_equal(parse(f, "mod(s+15,16)"), parse(f, "s-1"));
    assert_int_equal(parse(f, "floor((-s-7)/17)"), parse(f, "-1"));
    assert_prints(f, parse(f, "floor((s+6)/16)"), "floor((s+6)/16)");
    assert_int_equal(smg_size_symbol_find(f->s, "nothing"), -1);
    smg_sizes *other = NULL;
    assert_int_equal(smg_sizes_create(f->arena, &other), SMG_OK);
    smg_size_symbol(other, "z");
    smg_size moved = smg_size_import(other, f->s, parse(f, "floor((s+b)/3)*2"));
    int64_t values[3] = {0}, value = 0;
    values[smg_size_symbol_find(other, "s")] = 9;
    values[smg_size_symbol_find(other, "b")] = 2;
    assert_true(smg_size_eval(other, moved, values, &value));
    assert_int_equal(value, 6);
    assert_int_equal(smg_size_symbol_max(other, smg_size_symbol_find(other, "s")), 10);
}

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The size and, beside it, its value at x. */
static smg_size random_size(smg_sizes *s, uint32_t *seed, int depth, const int64_t *x, int64_t *out_value) {
    static const char *const names[] = {"a", "b", "c"};
    uint32_t pick = depth == 0 ? next(seed) % 2 : next(seed) % 8;
    if (pick == 0) {
        *out_value = (int64_t)(next(seed) % 9) - 2;
        return smg_size_const(s, *out_value);
    }
    if (pick == 1) {
        uint32_t which = next(seed) % 3;
        *out_value = x[which];
        return smg_size_symbol(s, names[which]);
    }
    int64_t p = 0, q = 0, divisor = 1 + (int64_t)(next(seed) % 5);
    smg_size a = random_size(s, seed, depth - 1, x, &p);
    if (pick == 5 || pick == 6) {
        smg_size d = smg_size_const(s, divisor);
        *out_value = pick == 5 ? floor_div(p, divisor) : p - divisor * floor_div(p, divisor);
        return pick == 5 ? smg_size_div(s, a, d) : smg_size_mod(s, a, d);
    }
    smg_size b = random_size(s, seed, depth - 1, x, &q);
    if (pick == 2) return *out_value = p + q, smg_size_add(s, a, b);
    if (pick == 3) return *out_value = p - q, smg_size_sub(s, a, b);
    if (pick == 4) return *out_value = p * q, smg_size_mul(s, a, b);
    return *out_value = p > q ? p : q, smg_size_max(s, a, b);
}

static void random_expressions_have_the_right_value(void **state) {
    fixture *f = *state;
    smg_size_symbol(f->s, "a");
    smg_size_symbol(f->s, "b");
    smg_size_symbol(f->s, "c");
    uint32_t seed = 7;
    for (int i = 0; i < 3000; i++) {
        int64_t x[3], expected = 0, value = 0, low, high;
        for (int k = 0; k < 3; k++) x[k] = 1 + (int64_t)(next(&seed) % 7);
        smg_size size = random_size(f->s, &seed, 3, x, &expected);
        assert_int_not_equal(size, SMG_SIZE_NONE);
        assert_true(smg_size_eval(f->s, size, x, &value));
        assert_int_equal(value, expected);
        smg_size_bounds(f->s, size, &low, &high);
        assert_true(low <= value && value <= high);
        smg_text text;
        smg_text_init(&text, f->ctx);
        smg_size_print(f->s, size, &text);
        smg_size again = parse(f, smg_text_cstr(&text));
        smg_text_free(&text);
        assert_true(smg_size_eval(f->s, again, x, &value));
        assert_int_equal(value, expected);
    }
}

/* Ends hold for every value between, and are the value where there is one tuple. */
static void ends_between_hold(void **state) {
    fixture *f = *state;
    uint32_t seed = 11;
    for (const char *name = "a\0b\0c\0"; *name != '\0'; name += 2) smg_size_symbol(f->s, name);
    for (int i = 0; i < 1000; i++) {
        int64_t x[3], from[3], to[3], expected = 0, value = 0, low, high;
        for (int k = 0; k < 3; k++) {
            x[k] = from[k] = 1 + (int64_t)(next(&seed) % 7);
            to[k] = from[k] + (int64_t)(next(&seed) % 4);
        }
        smg_size size = random_size(f->s, &seed, 3, x, &expected);
        smg_size_between(f->s, size, from, from, &low, &high);
        assert_true(low == expected && high == expected);
        smg_size_between(f->s, size, from, to, &low, &high);
        for (x[0] = from[0]; x[0] <= to[0]; x[0]++)
            for (x[1] = from[1]; x[1] <= to[1]; x[1]++)
                for (x[2] = from[2]; x[2] <= to[2]; x[2]++) {
                    assert_true(smg_size_eval(f->s, size, x, &value));
                    assert_true(low <= value && value <= high);
                }
    }
    const int64_t large[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 1};
    int64_t low, high;
    smg_size_between(f->s, parse(f, "a*b"), large, large, &low, &high);
    assert_true(high == INT64_MAX);
    smg_size_between(f->s, parse(f, "floor(a/(b-5))"), (int64_t[]){1, 5, 1}, (int64_t[]){1, 5, 1}, &low, &high);
    assert_true(low == -INT64_MAX && high == INT64_MAX);
    smg_size_between(f->s, SMG_SIZE_NONE, large, large, &low, &high);
    assert_true(low == -INT64_MAX && high == INT64_MAX);
}

static void equations_give_a_symbol_its_size(void **state) {
    fixture *f = *state;
    static const struct {
        const char *zero, *symbol, *value; /* value NULL: not to be had */
    } rows[] = {
        {"t-p-s", "t", "p+s"},       {"p+s-t", "t", "p+s"},       {"2*t-2*p-6", "t", "p+3"},
        {"6-2*t", "t", "3"},         {"2*t-p", "t", NULL},        {"t-t*p", "t", NULL},
        {"t*p-6", "t", NULL},        {"t-floor(t/2)", "t", NULL}, {"t-min(s,8)", "t", "min(s,8)"},
        {"s-floor(t/2)", "t", NULL},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_size zero = parse(f, rows[i].zero), value = SMG_SIZE_NONE;
        bool found = smg_size_solve(f->s, zero, smg_size_symbol_find(f->s, rows[i].symbol), &value);
        assert_int_equal(found, rows[i].value != NULL);
        if (found) assert_int_equal(value, parse(f, rows[i].value));
    }
    assert_int_equal(smg_size_define(f->s, "total", parse(f, "p+s")), SMG_OK);
    assert_int_equal(parse(f, "2*total"), parse(f, "2*p+2*s"));
    assert_int_equal(smg_size_symbol_find(f->s, "total"), -1);
}

static void periods_are_common_multiples(void **state) {
    fixture *f = *state;
    static const struct {
        const char *size;
        int64_t t, p; /* periods of these symbols */
    } rows[] = {
        {"t", 1, 1},
        {"8*floor(t/8)-t", 8, 1},
        {"floor(t/6)*p+floor((t+p)/4)", 12, 4},
        {"min(p, floor(t/2)) + floor(floor(t/p)/3)", 6, 3},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_size size = parse(f, rows[i].size);
        parse(f, "p*t");
        assert_int_equal(smg_size_period(f->s, size, smg_size_symbol_find(f->s, "t")), rows[i].t);
        assert_int_equal(smg_size_period(f->s, size, smg_size_symbol_find(f->s, "p")), rows[i].p);
    }
    assert_int_equal(smg_size_period(f->s, SMG_SIZE_NONE, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_polynomials_share_an_id, setup, teardown),
        cmocka_unit_test_setup_teardown(symbols_by_themselves, setup, teardown),
        cmocka_unit_test_setup_teardown(division_takes_out_what_divides, setup, teardown),
        cmocka_unit_test_setup_teardown(divisions_of_divisions_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(text_round_trips, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(a_size_of_too_many_parts_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_text_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(multiples_meet_what_they_are_of, setup, teardown),
        cmocka_unit_test_setup_teardown(what_leaves_no_rest_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_and_symbols, setup, teardown),
        cmocka_unit_test_setup_teardown(random_expressions_have_the_right_value, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_between_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(equations_give_a_symbol_its_size, setup, teardown),
        cmocka_unit_test_setup_teardown(periods_are_common_multiples, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
