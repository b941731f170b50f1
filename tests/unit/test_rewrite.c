/* Rewrites: what each rule does to a small text, and that random graphs keep their value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "rewrite/rewrite.h"

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

static smg_graph *parse(const char *text) {
    smg_graph *g = NULL;
    if (smg_graph_parse(ctx, text, strlen(text), "test", &g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    return g;
}

/* The rewritten text without its first line. */
static void assert_rewrites(const char *text, const char *expected) {
    smg_graph *before = parse(text), *after = NULL;
    smg_rewrite_report report;
    if (smg_rewrite_graph(before, &after, &report) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    assert_int_equal(report.nodes_before, before->nodes.count);
    assert_int_equal(report.nodes_after, after->nodes.count);
    smg_text printed;
    smg_text_init(&printed, ctx);
    smg_graph_print(after, &printed);
    assert_string_equal(strchr(smg_text_cstr(&printed), '\n') + 1, expected);
    smg_text_free(&printed);
    smg_graph_destroy(after);
    smg_graph_destroy(before);
}

static void neutral_elements_vanish(void **state) {
    (void)state;
    assert_rewrites("x = input f32[4]\n"
                    "one = fill 1 : f32[4]\n zero = fill 0 : f32[]\n"
                    "a = mul(one, x)\n b = add(a, zero)\n c = sub(b, zero)\n d = div(c, one)\n"
                    "e = neg(d)\n f = neg(e)\n g = cast(f) : f32[4]\n h = exp(g)\noutput y = h\n",
                    "x = input f32[4]\n"
                    "h = exp(x) : f32[4]\n"
                    "output y = h\n");
}

static void a_neutral_element_that_is_wider_leaves_a_broadcast(void **state) {
    (void)state;
    assert_rewrites("x = input f32[1]\none = fill 1 : f32[4]\ny = mul(x, one)\noutput y = y\n",
                    "x = input f32[1]\n"
                    "y = broadcast(x) : f32[4]\n"
                    "output y = y\n");
}

static void canonical_forms(void **state) {
    (void)state;
    assert_rewrites("x = input f32[4]\nz = input f32[4]\n"
                    "c = gt(x, z)\n two = fill 2 : f32[4]\n four = fill 4 : f32[]\n three = fill 3 : f32[]\n"
                    "a = sub(x, two)\n b = div(a, four)\n d = div(b, three)\n e = select(c, d, x)\noutput y = "
                    "e\n",
                    "x = input f32[4]\n"
                    "z = input f32[4]\n"
                    "c = lt(z, x) : bool[4]\n"
                    "three = fill 3 : f32[]\n"
                    "%4 = fill -2 : f32[]\n"
                    "a = add(x, %4) : f32[4]\n"
                    "%6 = fill 0.25 : f32[]\n"
                    "b = mul(a, %6) : f32[4]\n"
                    "d = div(b, three) : f32[4]\n"
                    "e = select(c, d, x) : f32[4]\n"
                    "output y = e\n");
}

static void views_compose(void **state) {
    (void)state;
    assert_rewrites("dim b\ndim s\nx = input f32[b, s, 8]\n"
                    "a = transpose(x) perm=[1, 0, 2]\n c = transpose(a) perm=[1, 0, 2]\n"
                    "d = reshape(c) : f32[b*s, 8]\n e = reshape(d) : f32[b, s, 2, 4]\n"
                    "f = reshape(e) : f32[b, s, 2, 4]\n one = fill 1 : f32[]\n"
                    "g = broadcast(one) : f32[b, s, 2, 4]\n h = add(f, g)\noutput y = h\n",
                    "dim b\n"
                    "dim s\n"
                    "x = input f32[b, s, 8]\n"
                    "e = reshape(x) : f32[b, s, 2, 4]\n"
                    "one = fill 1 : f32[]\n"
                    "h = add(e, one) : f32[b, s, 2, 4]\n"
                    "output y = h\n");
}

static void a_gate_takes_its_numbers(void **state) {
    (void)state;
    assert_rewrites(
        "x = input f32[4]\n"
        "root = fill 0.70710677 : f32[]\n half = fill 0.5 : f32[]\n one = fill 1 : f32[]\n"
        "a = mul(x, root)\n b = erf(a)\n c = add(one, b)\n d = mul(x, half)\n y = mul(d, c)\noutput y = y\n",
        "x = input f32[4]\n"
        "%1 = normcdf(x) : f32[4]\n"
        "y = mul(x, %1) : f32[4]\n"
        "output y = y\n");
    assert_rewrites(
        "x = input f32[4]\n"
        "root = fill 1.4142135 : f32[]\n half = fill 0.5 : f32[]\n one = fill 1 : f32[]\n"
        "a = div(x, root)\n b = erf(a)\n c = add(b, one)\n d = mul(x, c)\n y = mul(d, half)\noutput y = y\n",
        "x = input f32[4]\n"
        "%1 = normcdf(x) : f32[4]\n"
        "y = mul(x, %1) : f32[4]\n"
        "output y = y\n");
    assert_rewrites("x = input f32[4]\n one = fill 1 : f32[]\n"
                    "a = tanh(x)\n y = add(a, one)\noutput y = y\n",
                    "x = input f32[4]\n"
                    "%1 = fill 2 : f32[]\n"
                    "%2 = mul(x, %1) : f32[4]\n"
                    "%3 = sigmoid(%2) : f32[4]\n"
                    "y = mul(%3, %1) : f32[4]\n"
                    "output y = y\n");
}

/* Neither where the function is read elsewhere, nor where numbers leave the range or the shape. */
static void other_sums_and_scales_stay(void **state) {
    (void)state;
    static const char *const same[] = {
        "x = input f32[4]\none = fill 1 : f32[]\na = erf(x) : f32[4]\nb = add(a, one) : f32[4]\n"
        "y = mul(a, b) : f32[4]\noutput y = y\n",
        "x = input f32[4]\ntwo = fill 2 : f32[]\na = erf(x) : f32[4]\ny = add(a, two) : f32[4]\noutput y = y\n",
        "x = input f16[4]\none = fill 1 : f16[]\na = tanh(x) : f16[4]\ny = add(a, one) : f16[4]\noutput y = y\n",
        "x = input f32[4]\nlarge = fill 1e+30 : f32[]\na = mul(x, large) : f32[4]\ny = mul(a, large) : f32[4]\n"
        "output y = y\n",
        "x = input f32[4]\nz = input f32[4]\nthree = fill 3 : f32[]\nhalf = fill 0.5 : f32[]\n"
        "a = mul(x, three) : f32[4]\nb = mul(z, half) : f32[4]\ny = mul(a, b) : f32[4]\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(same); i++) assert_rewrites(same[i], same[i]);
}

static void constants_fold(void **state) {
    (void)state;
    assert_rewrites("x = input f32[2, 2]\n"
                    "w = constant f32[2, 2] data=[1, 2, 3, 4]\n two = fill 2 : f32[]\n half = fill 0.5 : "
                    "f32[]\n"
                    "t = transpose(w) perm=[1, 0]\n k = mul(t, two)\n q = mul(two, half)\n p = exp(q)\n"
                    "y = contract(x, k) \"ab,bc->ac\"\n z = mul(y, p)\noutput z = z\n",
                    "x = input f32[2, 2]\n"
                    "k = constant f32[2, 2] data=[2, 6, 4, 8]\n"
                    "p = fill 2.718281828459045 : f32[]\n"
                    "y = contract(x, k) \"ab,bc->ac\" : f32[2, 2]\n"
                    "z = mul(y, p) : f32[2, 2]\n"
                    "output z = z\n");
}

static void equal_nodes_merge_and_dead_ones_go(void **state) {
    (void)state;
    assert_rewrites("x = input f32[3]\nunused = input i32[2]\n"
                    "a = exp(x)\n b = exp(x)\n c = add(a, b)\n d = log(x)\noutput y = c\noutput z = b\n",
                    "x = input f32[3]\n"
                    "unused = input i32[2]\n"
                    "a = exp(x) : f32[3]\n"
                    "c = add(a, a) : f32[3]\n"
                    "output y = c\n"
                    "output z = a\n");
}

/* x*0 and x-x are not 0 for infinities and NaN. */
static void unsafe_rules_are_absent(void **state) {
    (void)state;
    assert_rewrites("x = input f32[3]\nzero = fill 0 : f32[]\na = mul(x, zero)\nb = sub(x, x)\n"
                    "c = add(a, b)\noutput y = c\n",
                    "x = input f32[3]\n"
                    "zero = fill 0 : f32[]\n"
                    "a = mul(x, zero) : f32[3]\n"
                    "b = sub(x, x) : f32[3]\n"
                    "c = add(a, b) : f32[3]\n"
                    "output y = c\n");
}

/* ---- random graphs -------------------------------------------------------------------------- */

static uint32_t seed;

static int pick(int count) {
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)count);
}

typedef struct values {
    smg_value of[200];
    int count;
} values;

static const char *const shapes[] = {"r, c", "r, 1", "1, c", "c", "", "r, 4", "4, r"};

/* A value among those made so far whose dims match the text of shape `like` when like >= 0. */
static smg_value any(values *v) {
    return v->of[pick(v->count)];
}

static smg_value random_leaf(smg_graph *g, const float *data) {
    static const double numbers[] = {0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 0.3};
    smg_value number = smg_graph_number(g, "f32", numbers[pick(7)]);
    int which = pick(3);
    if (which == 0) return number;
    if (which == 1) return smg_graph_broadcast(g, number, shapes[pick(5)]);
    return smg_graph_constant(g, "", "f32", pick(2) ? "4, 7" : "7, 4", data);
}

static smg_value try_map2(smg_graph *g, smg_value a, smg_value b) {
    static const char *const ops[] = {"add", "sub", "mul", "min", "max", "gt", "ge", "lt", "eq"};
    int op = pick(9);
    smg_value y = smg_graph_map(g, ops[op], 2, (smg_value[]){a, b});
    return op < 5 ? y : smg_graph_map(g, "select", 3, (smg_value[]){y, a, b});
}

static smg_value try_view(smg_graph *g, smg_value a) {
    int rank = smg_graph_node(g, a.id - 1)->rank;
    switch (pick(5)) {
    case 0: return rank == 2 ? smg_graph_transpose(g, a, 2, (int[]){1, 0}) : a;
    case 1: return rank == 2 ? smg_graph_transpose(g, a, 2, (int[]){0, 1}) : a;
    case 2: return smg_graph_reshape(g, a, shapes[pick(7)]);
    case 3: return smg_graph_broadcast(g, a, shapes[pick(7)]);
    default: return rank > 0 ? smg_graph_slice(g, a, 0, pick(2) ? "0" : "1", "1", 1) : a;
    }
}

static smg_value try_node(smg_graph *g, values *v, const float *data) {
    static const char *const ops[] = {"neg", "tanh", "abs", "square", "relu", "sigmoid"};
    smg_value a = any(v);
    int rank = smg_graph_node(g, a.id - 1)->rank;
    switch (pick(8)) {
    case 0: return random_leaf(g, data);
    case 1:
    case 2: return try_map2(g, a, any(v));
    case 3: return smg_graph_map(g, ops[pick(6)], 1, &a);
    case 4: return smg_graph_cast(g, a, "f32");
    case 5: return rank > 0 ? smg_graph_reduce(g, pick(2) ? "sum" : "reduce_max", a, pick(rank), pick(2)) : a;
    case 6: return rank == 2 ? smg_graph_contract(g, "ab,cb->ac", a, any(v)) : a;
    default: return try_view(g, a);
    }
}

/* Illegal choices fail the builder; they are undone and tried again. */
static smg_graph *random_graph(const float *data) {
    smg_graph *g = NULL;
    values v = {.count = 2};
    assert_int_equal(smg_graph_create(ctx, "random", &g), SMG_OK);
    v.of[0] = smg_graph_input(g, "x", "f32", "r, c");
    v.of[1] = smg_graph_input(g, "z", "f32", "r, 4");
    for (int tries = 0; tries < 120 && v.count < 60; tries++) {
        smg_value value = try_node(g, &v, data);
        if (g->status != SMG_OK) {
            g->status = SMG_OK;
            smg_context_clear_error(ctx);
        } else {
            v.of[v.count++] = value;
        }
    }
    static const char *const names[] = {"p", "q", "s"};
    for (int i = 0; i < 3; i++) smg_graph_output(g, names[i], v.of[v.count - 1 - i]);
    if (smg_graph_finish(g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    return g;
}

static void bind(const smg_graph *g, int64_t *symbols, smg_array *inputs, double *x, double *z) {
    const int64_t rows = 7, columns = 5;
    symbols[smg_size_symbol_find(g->sizes, "r")] = rows;
    symbols[smg_size_symbol_find(g->sizes, "c")] = columns;
    inputs[0] = (smg_array){.type = SMG_TYPE_F32, .rank = 2, .dims = {rows, columns}, .data = x};
    inputs[1] = (smg_array){.type = SMG_TYPE_F32, .rank = 2, .dims = {rows, 4}, .data = z};
}

static void assert_close(double a, double b) {
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) {
        assert_true((isnan(a) && isnan(b)) || !(a < b || a > b));
        return;
    }
    if (fabs(a - b) > 1e-5 * (1.0 + fabs(a))) fail_msg("%.9g became %.9g", a, b);
}

static void random_graphs_keep_their_value(void **state) {
    (void)state;
    float data[28];
    double x[35], z[28];
    int fired = 0;
    for (int round = 0; round < 300; round++) {
        seed = (uint32_t)round * 77u + 5u;
        for (int i = 0; i < 28; i++) data[i] = (float)(pick(17) - 8) / 4.0f, z[i] = (pick(17) - 8) / 4.0;
        for (int i = 0; i < 35; i++) x[i] = (pick(33) - 16) / 8.0;
        smg_graph *g = random_graph(data), *h = NULL;
        smg_rewrite_report report;
        if (smg_rewrite_graph(g, &h, &report) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        for (int i = 0; i < report.rules.count; i++) fired += report.rules.items[i].applied;
        int64_t symbols[8] = {0};
        smg_array inputs[2], a[3], b[3];
        bind(g, symbols, inputs, x, z);
        smg_arena *arena = NULL;
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        if (smg_graph_eval(g, symbols, inputs, arena, a) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        if (smg_graph_eval(h, symbols, inputs, arena, b) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(smg_array_elements(&a[i]), smg_array_elements(&b[i]));
            for (int64_t k = 0; k < smg_array_elements(&a[i]); k++) assert_close(a[i].data[k], b[i].data[k]);
        }
        smg_graph *again = NULL;
        smg_rewrite_report none;
        assert_int_equal(smg_rewrite_graph(h, &again, &none), SMG_OK);
        for (int i = 0; i < none.rules.count; i++)
            if (none.rules.items[i].applied) fail_msg("%s fired again", none.rules.items[i].rule);
        smg_graph_destroy(again);
        smg_arena_destroy(arena);
        smg_graph_destroy(h);
        smg_graph_destroy(g);
    }
    assert_true(fired > 1000);
}

/* (x w + b - m) / d * g + s with constants: one product, one summand. */
static void integer_products_are_sums(void **state) {
    (void)state;
    smg_graph *g = parse("dim n\nx = input i32[n, 3, 2]\ny = input i32[2, n]\n"
                         "z = contract(x, y) \"nka,an->kn\"\noutput z = z\n"),
              *after = NULL;
    smg_rewrite_report report;
    assert_int_equal(smg_rewrite_graph(g, &after, &report), SMG_OK);
    for (int i = 0; i < after->nodes.count; i++)
        assert_int_not_equal(smg_node_class(&after->nodes.items[i]), SMG_CLASS_CONTRACT);
    double x[12], y[4];
    for (int i = 0; i < 12; i++) x[i] = 100000007.0 + i; /* f32 does not hold them */
    for (int i = 0; i < 4; i++) y[i] = i - 1.0;
    smg_array in[2] = {{.type = SMG_TYPE_I32, .rank = 3, .dims = {2, 3, 2}, .data = x},
                       {.type = SMG_TYPE_I32, .rank = 2, .dims = {2, 2}, .data = y}};
    int64_t n = 2;
    smg_arena *arena = NULL;
    smg_array out;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_graph_eval(after, &n, in, arena, &out), SMG_OK);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++)
            assert_true(out.data[k * 2 + i] == x[i * 6 + k * 2] * y[i] + x[i * 6 + k * 2 + 1] * y[2 + i]);
    smg_arena_destroy(arena);
    smg_graph_destroy(after);
    smg_graph_destroy(g);
}

/* A few elements fold with what is behind them; a matrix stays as narrow as it is. */
static void narrow_constants_stay_narrow(void **state) {
    (void)state;
    static const char *const types[] = {"f16", "bf16"};
    for (size_t i = 0; i < SMG_COUNT_OF(types); i++) {
        char text[512], expected[512];
        snprintf(text, sizeof(text),
                 "x = input f32[64]\na = constant %s[64, 65] random seed=1\nb = constant %s[2] data=[1, 2]\n"
                 "w = cast(a) : f32[64, 65]\nv = cast(b) : f32[2]\n"
                 "y = contract(x, w) \"i,io->o\"\noutput y = y\noutput v = v\n",
                 types[i], types[i]);
        snprintf(expected, sizeof(expected),
                 "x = input f32[64]\na = constant %s[64, 65]\n"
                 "w = cast(a) : f32[64, 65]\nv = constant f32[2] data=[1, 2]\n"
                 "y = contract(x, w) \"i,io->o\" : f32[65]\noutput y = y\noutput v = v\n",
                 types[i]);
        assert_rewrites(text, expected);
    }
}

/* A view of a converted constant converts what it shows; where it repeats elements, or others are converted, it stays. */
static void conversions_stand_behind_views(void **state) {
    (void)state;
    assert_rewrites("x = input f32[600]\na = constant f16[600, 300] random seed=1\nw = cast(a) : f32[600, 300]\n"
                    "s = slice(w) axis=1 begin=32 : f32[600, 200]\nt = transpose(s) perm=[1, 0]\n"
                    "y = contract(x, t) \"i,oi->o\"\noutput y = y\n",
                    "x = input f32[600]\na = constant f16[600, 300]\n"
                    "%2 = slice(a) axis=1 begin=32 step=1 : f16[600, 200]\n"
                    "%3 = transpose(%2) perm=[1, 0] : f16[200, 600]\nt = cast(%3) : f32[200, 600]\n"
                    "y = contract(x, t) \"i,oi->o\" : f32[200]\noutput y = y\n");
    assert_rewrites("a = input f16[64]\nb = constant f16[300, 300] random seed=1\nc = cast(a) : f32[64]\n"
                    "d = reshape(c) : f32[8, 8]\ne = cast(b) : f32[300, 300]\n"
                    "f = broadcast(e) : f32[2, 300, 300]\noutput d = d\noutput f = f\n",
                    "a = input f16[64]\nb = constant f16[300, 300]\nc = cast(a) : f32[64]\n"
                    "d = reshape(c) : f32[8, 8]\ne = cast(b) : f32[300, 300]\n"
                    "f = broadcast(e) : f32[2, 300, 300]\noutput d = d\noutput f = f\n");
}

static void affine_chains_fold_into_the_weight(void **state) {
    (void)state;
    assert_rewrites("dim n\nx = input f32[n, 2]\nw = constant f32[2, 2] data=[1, 2, 3, 4]\n"
                    "b = constant f32[2] data=[1, 1]\nm = constant f32[2] data=[3, 5]\n"
                    "d = constant f32[2] data=[2, 4]\ng = constant f32[2] data=[6, 8]\n"
                    "s = constant f32[2] data=[10, 20]\n"
                    "p = contract(x, w) \"ni,oi->no\"\n q = add(p, b)\n r = sub(q, m)\n"
                    "t = div(r, d)\n u = mul(g, t)\n v = add(u, s)\n y = relu(v)\noutput y = y\n",
                    "dim n\n"
                    "x = input f32[n, 2]\n"
                    "%1 = constant f32[2, 2] data=[3, 6, 6, 8]\n"
                    "p = contract(x, %1) \"ni,oi->no\" : f32[n, 2]\n"
                    "%3 = constant f32[2] data=[4, 12]\n"
                    "v = add(p, %3) : f32[n, 2]\n"
                    "y = relu(v) : f32[n, 2]\n"
                    "output y = y\n");
}

#define HEADS "dim n\np = input f32[n, 2, 4, 4]\nv = input f32[n, 2, 4, 3]\n"

/* Heads behind their rows, for the product over all of them. */
static void a_product_takes_the_order_that_is_read(void **state) {
    (void)state;
    assert_rewrites(HEADS "o = contract(p, v) \"bhst,bhtd->bhsd\"\nt = transpose(o) perm=[0, 2, 1, 3]\n"
                          "r = reshape(t) : f32[n, 4, 6]\noutput y = r\n",
                    HEADS "o = contract(p, v) \"bhst,bhtd->bshd\" : f32[n, 4, 2, 3]\n"
                          "r = reshape(o) : f32[n, 4, 6]\noutput y = r\n");
}

/* It is read in its own order as well; other elements would lie side by side. */
static void a_product_keeps_its_order(void **state) {
    (void)state;
    static const char *const texts[] = {
        HEADS "o = contract(p, v) \"bhst,bhtd->bhsd\" : f32[n, 2, 4, 3]\n"
              "t = transpose(o) perm=[0, 2, 1, 3] : f32[n, 4, 2, 3]\noutput y = t\noutput o = o\n",
        HEADS "o = contract(p, v) \"bhst,bhtd->bhsd\" : f32[n, 2, 4, 3]\n"
              "t = transpose(o) perm=[0, 1, 3, 2] : f32[n, 2, 3, 4]\noutput y = t\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) assert_rewrites(texts[i], texts[i]);
}

/* As a convolution gives it: the product's rows are split, channels moved in front. */
static void a_scale_finds_its_axis_through_views(void **state) {
    (void)state;
    assert_rewrites("dim n\nx = input f32[n, 6, 2]\nw = constant f32[2, 2] data=[1, 2, 3, 4]\n"
                    "a = constant f32[2, 1, 1] data=[2, 4]\n"
                    "p = contract(x, w) \"nsi,oi->nso\"\n t = transpose(p) perm=[0, 2, 1]\n"
                    "r = reshape(t) : f32[n, 2, 3, 2]\n y = mul(r, a)\noutput y = y\n",
                    "dim n\n"
                    "x = input f32[n, 6, 2]\n"
                    "%1 = constant f32[2, 2] data=[2, 4, 12, 16]\n"
                    "p = contract(x, %1) \"nsi,oi->nso\" : f32[n, 6, 2]\n"
                    "t = transpose(p) perm=[0, 2, 1] : f32[n, 2, 6]\n"
                    "r = reshape(t) : f32[n, 2, 3, 2]\n"
                    "output y = r\n");
}

#define LAYER                                                                                                          \
    "dim n\nx = input f32[n, 2]\nw = constant f32[2, 2] data=[1, 2, 3, 4]\n"                                           \
    "p = contract(x, w) \"ni,oi->no\"\n"

static void affine_chains_that_stay(void **state) {
    (void)state;
    static const char *const texts[] = {
        /* the product is an output too: it would be computed twice */
        LAYER "a = constant f32[2] data=[2, 4]\ny = mul(p, a)\noutput y = y\noutput p = p\n",
        /* another product reads the weight: both versions would be kept */
        LAYER "a = constant f32[2] data=[2, 4]\nm = mul(p, a)\n"
              "y = contract(m, w) \"ni,oi->no\"\noutput y = y\n",
        /* scales outside the range in which f32 is as exact everywhere */
        LAYER "a = constant f32[2] data=[inf, 4]\ny = mul(p, a)\noutput y = y\n",
        LAYER "a = constant f32[2] data=[1e-30, 4]\ny = mul(p, a)\noutput y = y\n",
        /* a divisor that is zero */
        LAYER "a = constant f32[2] data=[0, 4]\ny = div(p, a)\noutput y = y\n",
        /* an infinite weight */
        "dim n\nx = input f32[n, 2]\nw = constant f32[2, 2] data=[1, inf, 3, 4]\n"
        "a = constant f32[2] data=[2, 4]\n"
        "p = contract(x, w) \"ni,oi->no\"\ny = mul(p, a)\noutput y = y\n",
        /* a sum that others read */
        LAYER "b = constant f32[2] data=[2, 4]\nc = constant f32[2] data=[3, 5]\n"
              "q = add(p, b)\ny = add(q, c)\noutput y = y\noutput q = q\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *before = parse(texts[i]), *after = NULL;
        smg_rewrite_report report;
        assert_int_equal(smg_rewrite_graph(before, &after, &report), SMG_OK);
        assert_int_equal(after->nodes.count, before->nodes.count);
        smg_graph_destroy(after);
        smg_graph_destroy(before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(neutral_elements_vanish, setup, teardown),
        cmocka_unit_test_setup_teardown(a_neutral_element_that_is_wider_leaves_a_broadcast, setup, teardown),
        cmocka_unit_test_setup_teardown(canonical_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(views_compose, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gate_takes_its_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(other_sums_and_scales_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(constants_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_nodes_merge_and_dead_ones_go, setup, teardown),
        cmocka_unit_test_setup_teardown(unsafe_rules_are_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(integer_products_are_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(narrow_constants_stay_narrow, setup, teardown),
        cmocka_unit_test_setup_teardown(conversions_stand_behind_views, setup, teardown),
        cmocka_unit_test_setup_teardown(affine_chains_fold_into_the_weight, setup, teardown),
        cmocka_unit_test_setup_teardown(a_product_takes_the_order_that_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_product_keeps_its_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scale_finds_its_axis_through_views, setup, teardown),
        cmocka_unit_test_setup_teardown(affine_chains_that_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(random_graphs_keep_their_value, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
