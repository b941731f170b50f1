/* Products by terms: the same values from one reading of the rows, wherever statistics shift and scale a factor; and the
 * graph as it was where they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "precision/precision.h"
#include "support/check_plan.h"

#define FEW 64
#define ROWS 5

#define X                                                                                                              \
    "graph linear\ndim rows max 4096\nx = input f32[rows, 768]\nw = constant f32[768, 96] random seed=1 scale=0.05\n"
#define NUMBERS "n = fill 0.00130208333 : f32[]\neps = fill 1e-5 : f32[]\n"
#define SCALED "gamma = constant f32[768] random seed=2\nbeta = constant f32[768] random seed=3\n"
#define CENTRED                                                                                                        \
    NUMBERS "total = sum(x) axis=1 keep\nmean = mul(total, n)\ncentred = sub(x, mean)\nsquared = square(centred)\n"    \
            "energy = sum(squared) axis=1 keep\nvariance = mul(energy, n)\nshifted = add(variance, eps)\n"             \
            "scale = rsqrt(shifted)\nnormal = mul(centred, scale)\n"
#define NORM X SCALED CENTRED "scaled = mul(normal, gamma)\nz = add(scaled, beta)\n"
#define PRODUCT(from) "y = contract(" from ", w) \"rk,kc->rc\"\noutput y = y\n"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
} fixture;

static int setup(void **state) {
    static fixture f;
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

static smg_graph *parse(fixture *f, const char *text) {
    smg_graph *g;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return g;
}

/* Products that the graph has by terms. */
static int by_terms(fixture *f, const smg_graph *g, int64_t rows, smg_graph *out) {
    int count;
    const smg_node_id *like;
    assert_int_equal(smg_plan_linear(g, FEW, &rows, f->arena, out, &like, &count), SMG_OK);
    assert_int_equal(out->status, SMG_OK);
    assert_int_equal(smg_context_status(f->ctx), SMG_OK);
    return count;
}

static int count_live(fixture *f, const smg_graph *g, smg_op_class class_) {
    bool *live = SMG_ARENA_ARRAY(f->arena, bool, (size_t)g->nodes.count + 1);
    int count = 0;
    assert_non_null(live);
    smg_graph_mark_live(g, live);
    for (smg_node_id id = 0; id < g->nodes.count; id++)
        count += live[id] && smg_node_class(smg_graph_node(g, id)) == class_;
    return count;
}

/* Far from 0, beside what they spread, and with a first element that is far from the others. */
typedef struct values {
    double mean, first;
} values;

static void fill(void *user, const smg_node *n, const int64_t *dims, double *data) {
    const values *v = user;
    int64_t row = dims[n->rank - 1], count = 1;
    for (int d = 0; d < n->rank; d++) count *= dims[d];
    for (int64_t i = 0; i < count; i++) data[i] = (double)(float)(data[i] + v->mean + (i % row == 0 ? v->first : 0));
}

static void check_values(fixture *f, const smg_graph *g, values v, double tolerance, int kernels) {
    const int64_t rows = ROWS;
    check_result r;
    const check_options o = {.target = "h200",
                             .symbols = &rows,
                             .tolerance = tolerance,
                             .plan = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = &rows},
                             .fill = fill,
                             .user = &v};
    if (check_plan(f->ctx, g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    if (!r.pass) fail_msg("mean %g, first %g: error %g", v.mean, v.first, r.max_error);
    assert_int_equal(r.steps, kernels);
}

/* ---- tests --------------------------------------------------------------------------------------- */

/* Two sums and a product of the rows, and what two vectors make of the weight, which nothing but constants is in. */
static void layer_norm(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, NORM PRODUCT("z")), made;
    assert_int_equal(by_terms(f, g, ROWS, &made), 1);
    assert_int_equal(count_live(f, &made, SMG_CLASS_REDUCE), 2);
    assert_int_equal(count_live(f, &made, SMG_CLASS_CONTRACT), 3);
    check_values(f, &made, (values){0, 0}, 2e-6, 1);
    check_values(f, &made, (values){0, 500}, 2e-5, 1);
    smg_graph_destroy(g);
}

/* The graph's own reference has the rounding of a mean of 1000 in each element; so has this. */
static void far_from_zero(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, NORM PRODUCT("z")), made;
    int64_t rows = ROWS;
    check_options o = {.symbols = &rows, .fill = fill, .user = &(values){1000, 0}};
    check_arrays plain, terms;
    assert_int_equal(by_terms(f, g, ROWS, &made), 1);
    assert_int_equal(check_arrays_make(g, &o, f->arena, &plain), SMG_OK);
    assert_int_equal(check_arrays_make(&made, &o, f->arena, &terms), SMG_OK);
    check_values(f, &made, (values){1000, 0}, 1e-3, 1);
    const double *a = plain.expected[0].data, *b = terms.expected[0].data;
    for (int i = 0; i < ROWS * 96; i++) assert_true(fabs(a[i] - b[i]) <= 1e-4 * (1 + fabs(a[i])));
    smg_graph_destroy(g);
}

/* Without a scale and a shift of its own, and with its sums spelt otherwise. */
static void other_spellings(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {
        X CENTRED PRODUCT("normal"),
        X SCALED CENTRED "scaled = mul(gamma, normal)\n" PRODUCT("scaled"),
        X NUMBERS
        "count = fill 768 : f32[]\ntotal = sum(x) axis=1\nm = div(total, count)\nmean = reshape(m) : f32[rows, 1]\n"
        "centred = sub(mean, x)\nsquared = mul(centred, centred)\nenergy = sum(squared) axis=1 keep\n"
        "variance = div(energy, count)\nshifted = add(variance, eps)\nroot = sqrt(shifted)\n"
        "normal = div(centred, root)\n" PRODUCT("normal"),
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g = parse(f, texts[i]), made;
        if (by_terms(f, g, ROWS, &made) != 1) fail_msg("text %zu", i);
        check_values(f, &made, (values){0.5, 1}, 2e-6, 1);
        smg_graph_destroy(g);
    }
}

/* Three products of one norm have its sums once. */
static void several_products(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, NORM "v = constant f32[768, 64] random seed=4 scale=0.05\n"
                                 "u = constant f32[12, 8, 768] random seed=5 scale=0.05\n"
                                 "y = contract(z, w) \"rk,kc->rc\"\nq = contract(v, z) \"kc,rk->rc\"\n"
                                 "s = contract(z, u) \"rk,hdk->rhd\"\noutput y = y\noutput q = q\noutput s = s\n");
    smg_graph made;
    assert_int_equal(by_terms(f, g, ROWS, &made), 3);
    assert_int_equal(count_live(f, &made, SMG_CLASS_REDUCE), 2);
    check_result r;
    const int64_t rows = ROWS;
    const check_options o = {.target = "h200",
                             .symbols = &rows,
                             .tolerance = 2e-6,
                             .plan = {.objective = SMG_OBJECTIVE_TIME, .nominal = &rows}};
    assert_int_equal(check_plan(f->ctx, &made, &o, &r), SMG_OK);
    assert_true(r.pass);
    smg_graph_destroy(g);
}

/* Elements of the largest constant that is computed of constants alone. */
static int64_t largest_made(fixture *f, const smg_graph *g) {
    size_t count = (size_t)g->nodes.count + 1;
    bool *fixed = SMG_ARENA_ARRAY(f->arena, bool, count), *stored = SMG_ARENA_ARRAY(f->arena, bool, count);
    int64_t most = 0, elements;
    assert_true(fixed != NULL && stored != NULL);
    smg_graph_mark_fixed(g, fixed, stored);
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        bool made = fixed[id] && stored[id] && smg_node_computes(smg_graph_node(g, id));
        if (made && smg_size_is_const(g->sizes, smg_node_elements(g, id), &elements) && elements > most)
            most = elements;
    }
    return most;
}

/* A weight that something else reads stays as it is, and so does the factor's scale: no second one lies in memory. */
static void shared_weights(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, NORM PRODUCT("z")), made;
    assert_int_equal(by_terms(f, g, ROWS, &made), 1);
    assert_int_equal(largest_made(f, &made), 768 * 96);
    smg_graph_destroy(g);
    g = parse(f, NORM "s = input f32[rows, 96]\nt = contract(s, w) \"rc,kc->rk\"\noutput t = t\n" PRODUCT("z"));
    assert_int_equal(by_terms(f, g, ROWS, &made), 1);
    assert_true(largest_made(f, &made) < 768 * 96);
    check_values(f, &made, (values){0.5, 1}, 2e-6, 1);
    smg_graph_destroy(g);
}

/* What is shifted by an input, not by sums, has no sums to go by: whether or not a norm stands before it. */
static void shifts_without_sums(void **state) {
    fixture *f = *state;
    smg_graph *g =
        parse(f, NORM "a = input f32[rows, 1]\nc = sub(x, a)\nv = constant f32[768, 32] random seed=6\n" PRODUCT(
                     "z") "q = contract(c, v) \"rk,kc->rc\"\noutput q = q\n");
    smg_graph made;
    assert_int_equal(by_terms(f, g, ROWS, &made), 1);
    smg_graph_destroy(g);
}

/* Constants that differ from row to row are no part of a weight, however many elements they have; nor is one of a single
 * element along the axis. A chain that reads each of its links twice ends. */
static void constants_with_rows(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {
        "graph square\ndim rows max 4096\nx = input f32[64, 64]\nw = constant f32[64, 96] random seed=1 scale=0.05\n"
        "c = constant f32[64, 1] random seed=4\n" CENTRED "z = mul(normal, c)\n" PRODUCT("z"),
        "graph positions\ndim rows max 4096\nx = input f32[5, 768]\nw = constant f32[768, 96] random seed=1 "
        "scale=0.05\n"
        "c = constant f32[5, 768] random seed=4\n" CENTRED "z = add(normal, c)\n"
        "y = contract(z, w) \"rk,kc->rc\"\nv = contract(w, z) \"kc,rk->cr\"\n"
        "output y = y\noutput v = v\n",
        X "c = constant f32[1] random seed=4\n" CENTRED "z = add(normal, c)\n" PRODUCT("z"),
    };
    smg_graph made;
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g = parse(f, texts[i]);
        if (by_terms(f, g, ROWS, &made) != 0) fail_msg("text %zu", i);
        smg_graph_destroy(g);
    }
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_text_add(&text, X CENTRED "z0 = mul(normal, x)\n");
    for (int i = 1; i < 40; i++) smg_text_addf(&text, "z%d = mul(z%d, z%d)\n", i, i - 1, i - 1);
    smg_text_add(&text, PRODUCT("z39"));
    smg_graph *g = parse(f, smg_text_cstr(&text));
    assert_int_equal(by_terms(f, g, ROWS, &made), 0);
    smg_graph_destroy(g);
    smg_text_free(&text);
}

/* A factor that others read is there anyway; one that is scaled alone leaves its product as it is; a softmax is no sum
 * of terms; a weight of the run has no sums that are made once; the axis may not be the innermost; many rows. */
static void left_alone(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {
        NORM "r = relu(z)\noutput r = r\n" PRODUCT("z"),
        NORM "output z = z\n" PRODUCT("z"),
        X NUMBERS "squared = square(x)\nenergy = sum(squared) axis=1 keep\nmean = mul(energy, n)\nscale = rsqrt(mean)\n"
                  "normal = mul(x, scale)\n" PRODUCT("normal"),
        X "most = reduce_max(x) axis=1 keep\nd = sub(x, most)\ne = exp(d)\nt = sum(e) axis=1 keep\np = div(e, "
          "t)\n" PRODUCT("p"),
        NORM "b = input f32[768, 8]\ny = contract(z, b) \"rk,kc->rc\"\noutput y = y\n",
        NORM "t = transpose(z) perm=[1, 0]\ny = contract(t, w) \"kr,kc->rc\"\noutput y = y\n",
        X PRODUCT("x"),
    };
    smg_graph made;
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g = parse(f, texts[i]);
        if (by_terms(f, g, ROWS, &made) != 0) fail_msg("text %zu", i);
        smg_graph_destroy(g);
    }
    smg_graph *g = parse(f, NORM PRODUCT("z"));
    assert_int_equal(by_terms(f, g, FEW, &made), 1);
    assert_int_equal(by_terms(f, g, FEW + 1, &made), 0);
    smg_graph_destroy(g);
}

/* ---- 16 bits -------------------------------------------------------------------------------------- */

#define ALONG                                                                                                          \
    "graph half\ndim rows max 4096\nx = input f32[rows, 768]\nw = constant f32[96, 768] random seed=1 scale=0.05\n"
#define PRODUCT_ALONG(from) "y = contract(" from ", w) \"rk,ck->rc\"\noutput y = y\n"
#define RMS                                                                                                            \
    NUMBERS                                                                                                            \
    "squared = square(x)\nenergy = sum(squared) axis=1 keep\nmean = mul(energy, n)\nshifted = add(mean, eps)\n"        \
    "scale = rsqrt(shifted)\nnormal = mul(x, scale)\n"

static smg_graph *parse_half(fixture *f, const char *text) {
    smg_graph *g = parse(f, text);
    smg_precision_plan precision;
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, f->arena, &precision), SMG_OK);
    return g;
}

/* The graph by terms, each stored as what it is like. */
static int half_by_terms(fixture *f, const smg_graph *g, smg_graph *out) {
    int count, wide = 0;
    const int64_t rows = ROWS;
    const smg_node_id *like;
    assert_int_equal(smg_plan_linear(g, FEW, &rows, f->arena, out, &like, &count), SMG_OK);
    smg_type *storage = SMG_ARENA_ARRAY(f->arena, smg_type, (size_t)out->nodes.count + 1);
    assert_non_null(storage);
    for (smg_node_id id = 0; id < out->nodes.count; id++) {
        const smg_node *n = smg_graph_node(out, id);
        storage[id] = like[id] >= 0 ? smg_graph_storage(g, like[id]) : n->type;
        bool product = smg_node_class(n) == SMG_CLASS_CONTRACT;
        if (product && like[id] < 0) wide++;
        if (product && like[id] >= 0) assert_true(count == 0 || n->type == smg_graph_node(g, like[id])->type);
    }
    out->storage = storage;
    if (count > 0) assert_true(wide > 0); /* a product without its factor is as large as x is */
    return count;
}

static void check_half(fixture *f, const smg_graph *g, values v, int kernels) {
    const int64_t rows = ROWS;
    check_result r;
    const check_options o = {.target = "h200",
                             .symbols = &rows,
                             .tolerance = 4e-3,
                             .plan = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = &rows},
                             .fill = fill,
                             .user = &v};
    if (check_plan(f->ctx, g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    if (!r.pass) fail_msg("mean %g, first %g: error %g", v.mean, v.first, r.max_error);
    assert_int_equal(r.steps, kernels);
}

/* A norm's scale goes into the weight, and its rows by the product: one kernel. */
static void in_half(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {
        ALONG SCALED RMS "scaled = mul(normal, gamma)\n" PRODUCT_ALONG("scaled"),
        ALONG RMS PRODUCT_ALONG("normal"),
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g = parse_half(f, texts[i]), made;
        if (half_by_terms(f, g, &made) != 1) fail_msg("text %zu", i);
        check_half(f, &made, (values){0, 0}, 1);
        check_half(f, &made, (values){0.5, 1}, 1);
        check_half(f, &made, (values){1000, 0}, 1);
        smg_graph_destroy(g);
    }
}

/* A weight that others read cannot take the scale, which then is part of the factor; x has to be stored in 16 bits; and
 * what is shifted as well would be a difference of what nearly cancels. */
static void not_in_half(void **state) {
    fixture *f = *state;
    smg_graph made;
    smg_graph *g =
        parse_half(f, ALONG SCALED RMS "scaled = mul(normal, gamma)\ns = input f32[rows, 96]\n"
                                       "t = contract(s, w) \"rc,ck->rk\"\noutput t = t\n" PRODUCT_ALONG("scaled"));
    assert_int_equal(half_by_terms(f, g, &made), 0);
    smg_graph_destroy(g);
    g = parse_half(f, ALONG SCALED RMS "scaled = mul(normal, gamma)\n" PRODUCT_ALONG("scaled"));
    smg_type *storage = SMG_ARENA_ARRAY(f->arena, smg_type, (size_t)g->nodes.count + 1);
    assert_non_null(storage);
    memcpy(storage, g->storage, (size_t)g->nodes.count * sizeof *storage);
    storage[0] = SMG_TYPE_F32; /* x */
    g->storage = storage;
    assert_int_equal(half_by_terms(f, g, &made), 0);
    smg_graph_destroy(g);
    g = parse_half(f, ALONG SCALED CENTRED "scaled = mul(normal, gamma)\n" PRODUCT_ALONG("scaled"));
    assert_int_equal(half_by_terms(f, g, &made), 0);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layer_norm, setup, teardown),
        cmocka_unit_test_setup_teardown(far_from_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(other_spellings, setup, teardown),
        cmocka_unit_test_setup_teardown(several_products, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(shifts_without_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(constants_with_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(in_half, setup, teardown),
        cmocka_unit_test_setup_teardown(not_in_half, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
