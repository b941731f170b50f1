/* Sums that go by in the slices of a product by matrices: lanes fold the left factor that they hold anyway, by runs of
 * memory or taken from shared memory. Schedules of small graphs in f16 are lowered, verified and run by the interpreter
 * in both modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lower/lower.h"
#include "precision/precision.h"
#include "slice/slice.h"
#include "support/check_plan.h"

enum { ROWS = 77, MANY = 4096, ONE_IN = 7, LANES_IN = 3 };

#define PRODUCT                                                                                                        \
    "dim rows max 65536\n"                                                                                             \
    "x = input f32[rows, 768]\n"                                                                                       \
    "w = constant f32[192, 768] random seed=1 scale=0.1\n"                                                             \
    "n = fill 0.00130208333 : f32[]\n"                                                                                 \
    "eps = fill 1e-5 : f32[]\n"                                                                                        \
    "product = contract(x, w) \"ri,oi->ro\"\n"
#define ENERGY "squared = square(x)\nenergy = sum(squared) axis=1 keep\nev = mul(energy, n)\n"
static const char statistics[] =
    "graph statistics\n" PRODUCT ENERGY
    "total = sum(x) axis=1 keep\nmean = mul(total, n)\nm2 = square(mean)\nvariance = sub(ev, m2)\n"
    "shifted = add(variance, eps)\nscale = rsqrt(shifted)\ns = mul(product, scale)\ny = sub(s, mean)\noutput y = y\n";
static const char energy[] = "graph energy\n" PRODUCT ENERGY
                             "shifted = add(ev, eps)\nscale = rsqrt(shifted)\ny = mul(product, scale)\noutput y = y\n";
/* What is summed up is no factor of the product. */
static const char other[] =
    "graph other\n" PRODUCT "r = input f32[rows, 768]\nxr = mul(x, r)\ntotal = sum(xr) axis=1 keep\n"
    "mean = mul(total, n)\ny = mul(product, mean)\noutput y = y\n";

typedef struct tally {
    int listed, lowered, run;
    int by_runs, taken; /* programs whose left factor comes from memory, and from shared memory */
    int parts;          /* of those subgroups share out the contraction */
    const char *refused;
} tally;

/* Sums over elements of a left factor. */
static int folds(const smg_kernel *k) {
    int count = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_REDUCE) continue;
        for (int t = 0; t < k->tiles.count; t++)
            count += k->tiles.items[t].fragments == SMG_FRAGMENTS_LEFT && k->tiles.items[t].layout == in->layout;
    }
    return count;
}

static bool takes(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_TAKE) return true;
    return false;
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, check_options o,
                         check_arrays *a, int sums, tally *t) {
    smg_kernel *kernel;
    smg_arena *arena;
    const char *refused = NULL;
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    const smg_lower_options options = {.name = "sums", .target = target, .verify = true};
    if (smg_kernel_lower(s, &options, arena, &kernel, &refused) != SMG_OK)
        fail_msg("%s on %s: %s", g->name, o.target, smg_context_error(g->ctx));
    if (kernel == NULL) t->refused = refused;
    if (kernel != NULL) {
        assert_int_equal(folds(kernel), sums);
        t->taken += takes(kernel);
        t->by_runs += !takes(kernel);
        t->parts += s->lane_depth > 1;
        if (t->lowered++ % ONE_IN == 0) check_kernel_is_right(g, s, kernel, &o, t->run++ % LANES_IN == 0, a);
    }
    smg_arena_destroy(arena);
}

/* The graph as one space, as what linearity leaves of it, for so many rows; `sums`: that go by in the loop of its
 * product. */
static tally try_graph(smg_context *ctx, const char *text, const char *name, int64_t rows, int sums) {
    static const int64_t symbols[] = {ROWS};
    check_options o = {.target = name, .tolerance = 8e-3, .symbols = symbols};
    smg_target target;
    smg_space *space, *linear;
    smg_arena *arena;
    smg_schedules schedules;
    smg_precision_plan precision;
    smg_graph *g;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    tally t = {0};
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "sums", &g), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_target(ctx, name, &target), SMG_OK);
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
    assert_int_equal(check_space(g, arena, &space), SMG_OK);
    assert_null(space->refused);
    assert_int_equal(smg_slice_linear(space, arena, &linear), SMG_OK);
    assert_non_null(linear);
    for (int i = 0; i < linear->axes.count; i++)
        if (!smg_size_is_const(g->sizes, linear->axes.items[i].extent, &nominal[i])) nominal[i] = rows;
    assert_int_equal(
        smg_sched_candidates(linear, &target, nominal, (smg_sched_room){.by_matrices = true}, arena, &schedules),
        SMG_OK);
    assert_int_equal(check_arrays_make(g, &o, arena, &a), SMG_OK);
    for (int i = 0; i < schedules.items.count; i++) {
        assert_non_null(schedules.items.items[i].matrix);
        t.listed++;
        try_schedule(g, &schedules.items.items[i], &target, o, &a, sums, &t);
    }
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
    return t;
}

static void test_statistics(void **state) {
    tally few = try_graph(*state, statistics, "h200", ROWS, 2), many = try_graph(*state, statistics, "h200", MANY, 2);
    assert_true(few.by_runs >= 8 && few.parts == few.by_runs && few.run >= 4);
    assert_true(many.taken >= 8 && many.lowered == many.listed && many.run >= 4);
    tally one = try_graph(*state, energy, "h200", MANY, 1);
    assert_true(one.taken >= 8 && one.run >= 4);
}

/* What is summed up is no factor; and on some cores lanes hold other rows of a left factor than of the sums. */
static void test_refused(void **state) {
    tally t = try_graph(*state, other, "h200", ROWS, 0);
    assert_true(t.listed > 0 && t.lowered == 0);
    assert_string_equal(t.refused, "a sum beside a product by matrices is not of what lanes hold of its left factor");
    tally another = try_graph(*state, statistics, "navi31", MANY, 2);
    assert_true(another.listed > 0 && another.lowered == 0);
    assert_string_equal(another.refused, "lanes hold other rows of a product's left factor than of its sums");
}

static int open_context(void **state) {
    smg_context *ctx;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return -1;
    *state = ctx;
    return 0;
}

static int close_context(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statistics), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
