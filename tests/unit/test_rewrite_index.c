/* Rewrites by what integers are at each position: indices in their simplest form, comparisons that positions decide,
 * gathers that are views; what is not proved stays; random integer graphs keep their value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

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
    assert_rewritten_has(ctx, text, expected);
}

#define SIZES "dim b\ndim s max 160\nx = input i32[b, s]\ni = iota axis=0 : i32[s]\nj = iota axis=0 : i32[b]\n"
#define NUMBERS "one = fill 1 : i32[]\ntwo = fill 2 : i32[]\nseven = fill 7 : i32[]\n"
#define INDEX SIZES NUMBERS

static void one_index_has_one_form(void **state) {
    (void)state;
    assert_becomes(INDEX "r = iota axis=0 : i32[160]\nt = slice(r) axis=0 begin=0 step=1 : i32[s]\n"
                         "u = reshape(t) : i32[1, s]\nv = broadcast(u) : i32[b, s]\ny = add(x, v)\noutput y = y\n",
                   "u = iota axis=1 : i32[1, s]\ny = add(x, u)");
    assert_becomes(INDEX "a = add(i, one)\nc = mul(a, two)\nd = sub(c, seven)\ny = add(d, x)\noutput y = y\n",
                   "%3 = mul(i, two) : i32[s]\n%4 = fill -5 : i32[]\nd = add(%3, %4) : i32[s]\n");
    assert_becomes(INDEX "a = sub(seven, i)\nc = neg(a)\nd = neg(c)\ny = add(d, x)\noutput y = y\n",
                   "a = sub(seven, i) : i32[s]\ny = add(a, x)");
    assert_becomes(INDEX "r = slice(i) axis=0 begin=s-1 step=-1 : i32[s]\ny = add(r, x)\noutput y = y\n",
                   "= size s-1 : i32[]\nr = sub(");
    assert_becomes(INDEX "c = cast(i) : i64[s]\nz = input i64[s]\nd = add(c, c)\ny = add(d, z)\noutput y = y\n",
                   "= mul(c, ");
    assert_becomes(INDEX "n = size b*s : i32[]\nm = size b : i32[]\na = div(n, m)\ny = add(a, x)\noutput y = y\n",
                   "a = size s : i32[]\n");
}

/* Position by position: the steps between neighbours of a joined range are all 1. */
static void a_joined_range_counts_on(void **state) {
    (void)state;
    static const char *const joined =
        INDEX "m = fill -1 : i32[1]\nl = window(m) axis=0 begin=0 step=1 dilation=1 fill=0 : i32[s+1, 1]\n"
              "p = reshape(l) : i32[s+1]\nh = window(i) axis=0 begin=-1 step=1 dilation=1 fill=0 : i32[s+1, 1]\n"
              "q = reshape(h) : i32[s+1]\nk = iota axis=0 : i32[s+1]\nc = lt(k, one)\nw = select(c, p, q)\n"
              "t = slice(w) axis=0 begin=1 step=1 : i32[s]\nu = slice(w) axis=0 begin=0 step=1 : i32[s]\n";
    char text[1200];
    snprintf(text, sizeof text, "%s%s", joined, "d = sub(t, u)\ny = eq(d, one)\noutput y = y\n");
    assert_becomes(text, "y = fill 1 : bool[s]\n");
    snprintf(text, sizeof text, "%s%s", joined,
             "d = sub(t, u)\ne = ne(d, one)\ng = cast(e) : i32[s]\n"
             "r = sum(g) axis=0\ny = sub(x, r)\noutput y = x\noutput z = r\n");
    assert_becomes(text, "r = fill 0 : i32[]\n");
    /* one piece that does not count on */
    snprintf(text, sizeof text, "%s%s", joined, "v = add(w, k)\nz = select(c, k, v)\nd = mul(z, two)\noutput y = d\n");
    assert_becomes(text, "z = select(");
}

static void what_depends_stays(void **state) {
    (void)state;
    assert_becomes(INDEX "r = reshape(i) : i32[1, s]\nq = reshape(i) : i32[s, 1]\ny = le(r, q)\noutput y = y\n",
                   "y = le(");
    assert_becomes(INDEX "y = add(x, i)\noutput y = y\n", "y = add(x, i)");
    assert_becomes(INDEX "y = eq(i, seven)\noutput y = y\n", "y = eq(i, seven)");
    assert_becomes(INDEX "a = div(i, two)\ny = add(a, x)\noutput y = y\n", "a = div(i, two)");
    assert_becomes(INDEX "a = copy(i)\ny = add(a, x)\noutput y = y\n", "a = copy(i)");
    assert_becomes(INDEX "a = mul(i, i)\ny = add(a, x)\noutput y = y\n", "a = mul(i, i)");
    assert_becomes(INDEX "p = lt(i, one)\nq = lt(i, two)\ny = eq(p, q)\noutput y = y\n", "y = eq(p, q)");
    assert_becomes(INDEX "w = window(i) axis=0 begin=-1 step=1 dilation=1 fill=0 : i32[s, 1]\n"
                         "t = reshape(w) : i32[s]\ny = add(t, x)\noutput y = y\n",
                   "t = reshape(w)");
}

static void division_takes_apart_what_counts(void **state) {
    (void)state;
    assert_becomes(INDEX "n = size s : i32[]\nk = reshape(j) : i32[b, 1]\na = mul(k, n)\nc = add(a, i)\n"
                         "d = div(c, n)\ny = add(d, x)\noutput y = y\n",
                   "k = iota axis=0 : i32[b, 1]\ny = add(k, x)");
    assert_becomes(INDEX "n = size s : i32[]\nk = reshape(j) : i32[b, 1]\na = mul(k, n)\nc = add(a, i)\n"
                         "d = mod(c, n)\ny = add(d, x)\noutput y = y\n",
                   "iota axis=1 : i32[1, s]\ny = add(");
    /* truncated towards 0, not downwards: -1 / 2 is 0 */
    assert_becomes(INDEX "a = mul(i, two)\nm = fill -1 : i32[]\nc = add(a, m)\nd = div(c, two)\ny = add(d, x)\n"
                         "output y = y\n",
                   "d = div(");
}

static void reductions_of_a_number(void **state) {
    (void)state;
    assert_becomes("dim s\nz = fill 0 : f32[4, s]\ny = sum(z) axis=1\noutput y = y\n", "y = fill 0 : f32[4]");
    assert_becomes("dim s\nz = fill 3 : i32[4, s]\ny = sum(z) axis=0\noutput y = y\n", "y = fill 12 : i32[s]");
    assert_becomes("dim s\nz = fill 3 : i32[4, s]\ny = reduce_max(z) axis=1\noutput y = y\n", "y = fill 3 : i32[4]");
    assert_becomes("dim s\nx = input i32[4]\nz = fill 3 : i32[4, s]\nt = sum(z) axis=1\ny = add(t, x)\noutput y = y\n",
                   "= size 3*s : i32[]\ny = add(");
    assert_becomes("z = fill 0.1 : f32[4]\ny = sum(z) axis=0\noutput y = y\n", "y = sum(z)");
    assert_becomes("z = fill 2000000000 : i32[4]\ny = sum(z) axis=0\noutput y = y\n", "y = sum(z)");
}

/* Sums of a predicate over positions are positions again; largest and smallest ones are ends. */
static void counts_of_positions(void **state) {
    (void)state;
    static const char *const counted =
        "dim s\nx = input i32[s]\nr = iota axis=0 : i32[s, 1]\nc = iota axis=1 : i32[1, s]\none = fill 1 : i32[]\n"
        "two = fill 2 : i32[]\nzero = fill 0 : i32[]\n";
    static const char *const become[][2] = {
        {"p = le(c, r)\nk = select(p, one, zero)\n", "= iota axis=0 : i32[s]\n"},
        {"p = lt(c, r)\nk = cast(p) : i32[s, s]\n", "n = iota axis=0 : i32[s]\ny = add(n, x)"},
        {"p = le(r, c)\nk = select(p, two, zero)\n", "= iota axis=0 : i32[s]\n"},
        {"p = le(c, r)\nk = select(p, r, zero)\n", "n = sum(k)"},                   /* i * (i + 1) */
        {"q = add(r, two)\np = le(c, q)\nk = cast(p) : i32[s, s]\n", "n = sum(k)"}, /* all of them, near the end */
        {"p = eq(c, r)\nk = cast(p) : i32[s, s]\n", "n = sum(k)"},
    };
    char text[1024];
    for (size_t i = 0; i < SMG_COUNT_OF(become); i++) {
        snprintf(text, sizeof text, "%s%sn = sum(k) axis=1\ny = add(n, x)\noutput y = y\n", counted, become[i][0]);
        assert_becomes(text, become[i][1]);
    }
    assert_becomes(INDEX "a = mul(i, two)\nm = reduce_max(a) axis=0\ny = add(x, m)\noutput y = y\n",
                   "= size 2*s-2 : i32[]");
    assert_becomes(INDEX "a = sub(seven, i)\nm = reduce_max(a) axis=0\ny = add(x, m)\noutput y = y\n",
                   "= fill 7 : i32[]");
}

#define TABLE INDEX "t = input f32[b*s, 3]\nn = size s : i32[]\nk = reshape(j) : i32[b, 1]\na = mul(k, n)\n"

static void gathers_by_positions_are_views(void **state) {
    (void)state;
    assert_becomes(TABLE "c = add(a, i)\ny = gather(t, c)\noutput y = y\n", "y = reshape(t) : f32[b, s, 3]");
    /* the index of a mask of keys, with axes of extent 1 and of pairs between */
    assert_becomes(TABLE "c = add(a, i)\nd = reshape(c) : i32[b, 1, s, 1]\ny = gather(t, d)\noutput y = y\n",
                   "y = reshape(t) : f32[b, 1, s, 1, 3]");
    assert_becomes(TABLE "c = add(a, i)\nd = transpose(c) perm=[1, 0]\ny = gather(t, d)\noutput y = y\n",
                   "= reshape(t) : f32[b, s, 3]\ny = transpose(");
}

static void gathers_of_parts(void **state) {
    (void)state;
    assert_becomes("t = input f32[10, 3]\ni = iota axis=0 : i32[4]\ntwo = fill 2 : i32[]\na = mul(i, two)\n"
                   "c = add(a, two)\ny = gather(t, c)\noutput y = y\n",
                   "y = slice(t) axis=0 begin=2 step=2 : f32[4, 3]");
    assert_becomes("t = input f32[10, 3]\ni = iota axis=0 : i32[10]\nn = fill 9 : i32[]\nc = sub(n, i)\n"
                   "y = gather(t, c)\noutput y = y\n",
                   "y = slice(t) axis=0 begin=9 step=-1 : f32[10, 3]");
    assert_becomes("t = input f32[10, 3]\nc = constant i32[2, 1] data=[-3, -2]\ny = gather(t, c)\noutput y = y\n",
                   "= slice(t) axis=0 begin=7 step=1 : f32[2, 3]\ny = reshape(");
    assert_becomes("dim b\nt = input f32[10, 3]\nc = fill 4 : i32[b, 2]\ny = gather(t, c)\noutput y = y\n",
                   "y = broadcast(");
    /* a column of blocks of five rows: begins within the last step */
    assert_becomes("t = input f32[20, 3]\ni = iota axis=0 : i32[4]\nf = fill 5 : i32[]\na = mul(i, f)\n"
                   "l = fill 4 : i32[]\nc = add(a, l)\ny = gather(t, c)\noutput y = y\n",
                   "y = slice(t) axis=0 begin=4 step=5 : f32[4, 3]");
    assert_becomes("dim b\ndim s\nt = input f32[b*s]\nj = iota axis=0 : i32[b]\nn = size s : i32[]\na = mul(j, n)\n"
                   "l = size s-1 : i32[]\nc = add(a, l)\ny = gather(t, c)\noutput y = y\n",
                   "= reshape(t) : f32[b, s]\n%2 = slice(%1) axis=1 begin=s-1 step=1 : f32[b, 1]\n"
                   "y = reshape(%2) : f32[b]\n");
    /* columns before rows, and some of the columns only */
    assert_becomes("dim b\nt = input f32[b*8]\nj = iota axis=1 : i32[1, b]\ni = iota axis=0 : i32[3, 1]\n"
                   "n = fill 8 : i32[]\na = mul(j, n)\nc = add(a, i)\ny = gather(t, c)\noutput y = y\n",
                   "= slice(%1) axis=1 begin=0 step=1 : f32[b, 3]\ny = transpose(");
}

static void gathers_that_stay(void **state) {
    (void)state;
    static const char *const stay[] = {
        /* rows that may not exist */
        "dim s\nt = input f32[10]\ni = iota axis=0 : i32[s]\ny = gather(t, i)\noutput y = y\n",
        "t = input f32[10]\ni = iota axis=0 : i32[11]\ny = gather(t, i)\noutput y = y\n",
        "t = input f32[10]\ni = iota axis=0 : i32[4]\nm = fill -2 : i32[]\nc = add(i, m)\ny = gather(t, c)\n"
        "output y = y\n",
        /* rows that overlap, or that are no box */
        "t = input f32[10]\ni = iota axis=0 : i32[4, 1]\nj = iota axis=1 : i32[1, 4]\nc = add(i, j)\n"
        "y = gather(t, c)\noutput y = y\n",
        "t = input f32[40]\ni = iota axis=0 : i32[4, 1]\nj = iota axis=1 : i32[1, 4]\nf = fill 5 : i32[]\n"
        "h = fill 3 : i32[]\na = mul(i, f)\nd = mul(j, h)\nc = add(a, d)\ny = gather(t, c)\noutput y = y\n",
        /* data */
        "t = input f32[10]\nc = input i32[4]\ny = gather(t, c)\noutput y = y\n",
        "t = input f32[10]\nc = constant i32[4] data=[0, 1, 3, 4]\ny = gather(t, c)\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(stay); i++) assert_becomes(stay[i], "y = gather(t, ");
}

/* Products and sums beyond 64 bits, or of more symbols than a size has: not known, and no failure. */
static void sizes_that_do_not_fit(void **state) {
    (void)state;
    assert_becomes("dim s\ni = iota axis=0 : i32[s]\nx = input i32[s]\nn = size 4000000000000000000 : i32[]\n"
                   "a = mul(i, n)\nc = mul(a, n)\nd = add(c, c)\ny = add(d, x)\noutput y = y\n",
                   "c = mul(");
    char text[1024] = "", line[64];
    for (char c = 'a'; c <= 'h'; c++) {
        snprintf(line, sizeof line, "dim %c\n", c);
        strcat(text, line);
    }
    strcat(text, "i = iota axis=0 : i32[a]\nx = input i32[a]\nn = size a*b*c*d*e*f*g*h : i32[]\n"
                 "p = mul(i, n)\nq = mul(p, n)\ny = add(q, x)\noutput y = y\n");
    assert_becomes(text, "q = mul(");
    assert_becomes("t = input f32[4]\nn = fill 2147483647 : i32[]\ni = iota axis=0 : i32[3]\na = mul(i, n)\n"
                   "y = gather(t, a)\noutput y = y\n",
                   "y = gather(t, ");
}

/* ---- random integers ------------------------------------------------------------------------------ */

static uint32_t seed;

static int pick(int count) {
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)count);
}

typedef struct values {
    smg_value of[80];
    int count;
} values;

static smg_value any(const values *v) {
    return v->of[pick(3) ? v->count - 1 - pick(v->count < 5 ? v->count : 5) : pick(v->count)];
}

static smg_value number(smg_graph *g) {
    static const double numbers[] = {0, 1, -1, 2, 3, 5, 7, -4};
    return smg_graph_number(g, "i32", numbers[pick(8)]);
}

static smg_value leaf(smg_graph *g) {
    static const char *const shapes[] = {"p", "q", "p, q", "1, q", "p, 1", "p*q", "6", "p, 6"};
    int shape = pick(8);
    if (pick(5) == 0) return smg_graph_size_typed(g, SMG_TYPE_I32, smg_graph_node(g, 0)->dims[pick(2)]);
    return smg_graph_iota(g, shapes[shape], shape == 2 || shape == 3 || shape == 7 ? pick(2) : 0);
}

static smg_value map_of(smg_graph *g, const char *op, smg_value a, smg_value b) {
    return smg_graph_map(g, op, 2, (smg_value[]){a, b});
}

static smg_value shifted(smg_graph *g, smg_value a) {
    const smg_node *n = smg_graph_node(g, a.id - 1);
    if (n->rank == 0 || n->rank > 3) return a;
    int axis = pick(n->rank), begin = pick(4) - 2;
    smg_size dims[SMG_MAX_RANK];
    memcpy(dims, n->dims, sizeof dims);
    int rank = n->rank;
    dims[axis] = smg_size_add(g->sizes, dims[axis], smg_size_const(g->sizes, pick(4)));
    smg_window w = {.axis = axis,
                    .begin = smg_size_const(g->sizes, begin),
                    .count = dims[axis],
                    .taps = smg_size_const(g->sizes, 1),
                    .step = 1 + (pick(5) == 0),
                    .dilation = 1};
    return smg_graph_reshape_to(g, smg_graph_window_of(g, a, &w), rank, dims);
}

static smg_value view(smg_graph *g, smg_value a) {
    static const char *const shapes[] = {"p, q", "p*q", "q, p", "1, q", "p, 1, q", "q", "p"};
    int rank = smg_graph_node(g, a.id - 1)->rank;
    switch (pick(6)) {
    case 0: return rank == 2 ? smg_graph_transpose(g, a, 2, (int[]){1, 0}) : a;
    case 1: return smg_graph_reshape(g, a, shapes[pick(7)]);
    case 2: return smg_graph_broadcast(g, a, shapes[pick(7)]);
    case 3: return rank > 0 ? smg_graph_slice(g, a, pick(rank), pick(2) ? "1" : "0", "2", 1 + pick(2)) : a;
    default: return shifted(g, a);
    }
}

static smg_value choice(smg_graph *g, const values *v) {
    static const char *const tests[] = {"lt", "le", "eq", "ge", "ne"};
    smg_value a = any(v), test = map_of(g, tests[pick(5)], any(v), pick(2) ? number(g) : any(v));
    if (pick(4) == 0) test = map_of(g, pick(2) ? "and" : "or", test, map_of(g, "lt", a, number(g)));
    if (pick(6) == 0) return smg_graph_cast(g, test, "i32");
    return smg_graph_map(g, "select", 3, (smg_value[]){test, a, pick(2) ? any(v) : number(g)});
}

/* A row of the table that exists, whatever the value is. */
static smg_value row(smg_graph *g, smg_value index) {
    smg_value table = {1}, rows = smg_graph_size_typed(g, SMG_TYPE_I32, smg_graph_node(g, 0)->dims[0]);
    if (pick(2)) {
        table = smg_graph_reshape(g, table, "p*q");
        rows = smg_graph_size_typed(g, SMG_TYPE_I32, smg_graph_node_of(g, table)->dims[0]);
    }
    if (pick(2)) { /* rows of positions alone, often all of a box */
        smg_value i = smg_graph_iota(g, "p, 1", 0), k = smg_graph_iota(g, "1, q", 1);
        smg_value by = smg_graph_size_typed(g, SMG_TYPE_I32, smg_graph_node(g, 0)->dims[1]);
        if (pick(2))
            index = map_of(g, "add", map_of(g, "mul", i, by), k);
        else
            index = map_of(g, pick(2) ? "add" : "sub", i, number(g));
    }
    return smg_graph_gather(g, table, map_of(g, "mod", index, rows));
}

static smg_value step(smg_graph *g, const values *v) {
    static const char *const ops[] = {"add", "sub", "add", "mul", "min", "max"};
    static const char *const fixed[] = {"mul", "div", "mod"}, *const reduced[] = {"sum", "reduce_max", "reduce_min"};
    smg_value a = any(v);
    int rank = smg_graph_node(g, a.id - 1)->rank;
    switch (pick(12)) {
    case 10: return rank > 0 ? smg_graph_cumsum(g, a, pick(rank), pick(2), pick(2)) : a;
    case 11: return rank > 0 ? smg_graph_reduce(g, reduced[pick(3)], a, pick(rank), pick(2)) : a;
    case 0: return leaf(g);
    case 1:
    case 2: return map_of(g, ops[pick(6)], a, pick(2) ? any(v) : number(g));
    case 3: return map_of(g, fixed[pick(3)], a, smg_graph_number(g, "i32", 2 + pick(4)));
    case 4: return smg_graph_map(g, "neg", 1, &a);
    case 5: return smg_graph_concat(g, 2, (smg_value[]){a, any(v)}, 0);
    case 6: return choice(g, v);
    case 7: return row(g, a);
    default: return view(g, a);
    }
}

static bool is_integer(const smg_graph *g, smg_value a) {
    return smg_type_kind(smg_graph_node(g, a.id - 1)->type) == SMG_KIND_INT;
}

/* Illegal choices fail the builder; they are undone and tried again. */
static smg_graph *random_graph(void) {
    smg_graph *g = NULL;
    values v = {.count = 1};
    assert_int_equal(smg_graph_create(ctx, "random", &g), SMG_OK);
    v.of[0] = smg_graph_input(g, "table", "i32", "p, q");
    v.of[v.count++] = smg_graph_iota(g, "p, q", 1);
    v.of[v.count++] = smg_graph_iota(g, "p, q", 0);
    for (int tries = 0; tries < 60 && v.count < 40; tries++) {
        smg_value value = step(g, &v);
        if (g->status != SMG_OK) {
            g->status = SMG_OK;
            smg_context_clear_error(ctx);
        } else if (is_integer(g, value)) {
            v.of[v.count++] = value;
        }
    }
    char name[16];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "y%d", i);
        smg_graph_output(g, name, v.of[v.count - 1 - i]);
    }
    if (smg_graph_finish(g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    return g;
}

/* False where the graph has no value at these sizes. */
static bool same_values(const smg_graph *g, const smg_graph *h, int64_t p, int64_t q) {
    double table[64];
    int64_t symbols[2];
    smg_array input = {.type = SMG_TYPE_I32, .rank = 2, .dims = {p, q}, .data = table}, a[4], b[4];
    smg_arena *arena = NULL;
    for (int i = 0; i < 64; i++) table[i] = i * 7 % 23 - 9;
    symbols[smg_size_symbol_find(g->sizes, "p")] = p;
    symbols[smg_size_symbol_find(g->sizes, "q")] = q;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    bool defined = smg_graph_eval(g, symbols, &input, arena, a) == SMG_OK; /* a slice may not exist at these sizes */
    if (defined && smg_graph_eval(h, symbols, &input, arena, b) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    for (int o = 0; o < 4 && defined; o++) {
        assert_int_equal(smg_array_elements(&a[o]), smg_array_elements(&b[o]));
        for (int64_t i = 0; i < smg_array_elements(&a[o]); i++)
            if (a[o].data[i] < b[o].data[i] || a[o].data[i] > b[o].data[i])
                fail_msg("output %d, element %d: %g became %g", o, (int)i, a[o].data[i], b[o].data[i]);
    }
    smg_context_clear_error(ctx);
    smg_arena_destroy(arena);
    return defined;
}

static int fired(const smg_rewrite_report *report, const char *rule) {
    for (int i = 0; i < report->rules.count; i++)
        if (strcmp(report->rules.items[i].rule, rule) == 0) return report->rules.items[i].applied;
    fail_msg("no rule is called %s", rule);
    return 0;
}

static void random_integers_keep_their_value(void **state) {
    (void)state;
    static const char *const rules[] = {"value of one index", "comparison decided by indices", "gather as a view"};
    int count[3] = {0}, values_seen = 0;
    for (int round = 0; round < 600; round++) {
        seed = (uint32_t)round * 101u + 3u;
        smg_graph *g = random_graph(), *h = NULL, *again = NULL;
        smg_rewrite_report report, none;
        if (smg_rewrite_graph(g, &h, &report) != SMG_OK) fail_msg("round %d: %s", round, smg_context_error(ctx));
        for (int i = 0; i < 3; i++) count[i] += fired(&report, rules[i]);
        values_seen += same_values(g, h, 3, 4) + same_values(g, h, 2, 5) + same_values(g, h, 7, 1);
        assert_int_equal(smg_rewrite_graph(h, &again, &none), SMG_OK);
        for (int i = 0; i < none.rules.count; i++)
            if (none.rules.items[i].applied) fail_msg("round %d: %s fired again", round, none.rules.items[i].rule);
        smg_graph_destroy(again);
        smg_graph_destroy(h);
        smg_graph_destroy(g);
    }
    assert_true(values_seen > 1000);
    assert_true(count[0] > 300 && count[1] > 30 && count[2] > 80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_index_has_one_form, setup, teardown),
        cmocka_unit_test_setup_teardown(a_joined_range_counts_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_depends_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(division_takes_apart_what_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(reductions_of_a_number, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_of_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(gathers_by_positions_are_views, setup, teardown),
        cmocka_unit_test_setup_teardown(gathers_of_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(gathers_that_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_that_do_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(random_integers_keep_their_value, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
