/* What stands beside products by matrices and lies in memory as they do: it is loaded as matrices, before it is
 * computed with or added to. And blocks of three matrices a side. Schedules of small graphs in f16 are lowered,
 * verified and run by the interpreter in both modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lower/lower.h"
#include "precision/precision.h"
#include "support/check_plan.h"

enum { NODES = 64, ONE_IN = 11 /* schedules that is lowered */, RUN_IN = 4, LANES_IN = 3 * CHECK_ONE_IN };

#define LINEAR                                                                                                         \
    "dim rows max 65536\n"                                                                                             \
    "x = input f32[rows, 96]\n"                                                                                        \
    "r = input f32[rows, 192]\n"                                                                                       \
    "w = constant f32[192, 96] random seed=1 scale=0.1\n"                                                              \
    "bias = constant f32[192] random seed=2\n"                                                                         \
    "product = contract(x, w) \"ri,oi->ro\"\n"                                                                         \
    "z = add(product, bias)\n"
static const char residual[] = "graph residual\n" LINEAR "y = add(z, r)\noutput y = y\n";
static const char scaled[] = "graph scaled\n" LINEAR "half = fill 0.5 : f32[]\nh = mul(z, half)\n"
                             "y = add(h, r)\noutput y = y\n";
static const char doubled[] = "graph doubled\n" LINEAR "s = mul(z, r)\ny = add(s, r)\noutput y = y\n";
static const char pair[] = "graph pair\n"
                           "dim rows max 65536\n"
                           "x = input f32[rows, 96]\n"
                           "r = input f32[rows, 96]\n"
                           "s = input f32[rows, 96]\n"
                           "w = constant f32[96, 96] random seed=1 scale=0.1\n"
                           "u = constant f32[96, 96] random seed=2 scale=0.1\n"
                           "a = contract(x, w) \"ri,oi->ro\"\n"
                           "b = contract(x, u) \"ri,oi->ro\"\n"
                           "y = add(a, r)\n"
                           "z = add(b, s)\n"
                           "output y = y\n"
                           "output z = z\n";
/* Queries get their bias in the kernel that multiplies them. */
static const char biased[] = "graph biased\n"
                             "dim s max 512\n"
                             "q = input f32[2, s, 32]\n"
                             "k = input f32[2, s, 32]\n"
                             "v = input f32[2, s, 32]\n"
                             "bias = constant f32[32] random seed=2\n"
                             "a = add(q, bias)\n"
                             "scores = contract(a, k) \"hsd,htd->hst\"\n"
                             "m = reduce_max(scores) axis=2 keep\n"
                             "d = sub(scores, m)\n"
                             "e = exp(d)\n"
                             "sum = sum(e) axis=2 keep\n"
                             "p = div(e, sum)\n"
                             "y = contract(p, v) \"hst,htd->hsd\"\n"
                             "output y = y\n";
/* A loop over one contracted axis, and slices of the other: what is between them in memory is neither. */
static const char apart[] = "graph apart\n"
                            "dim rows max 65536\n"
                            "x = input f32[rows, 16, 3, 16]\n"
                            "w = constant f32[128, 16, 16] random seed=1 scale=0.1\n"
                            "y = contract(x, w) \"rcud,ocd->ruo\"\n"
                            "output y = y\n";

static const char plain[] = "graph plain\n"
                            "dim rows max 4194304\n"
                            "x = input f32[rows, 96]\n"
                            "w = constant f32[128, 96] random seed=1 scale=0.1\n"
                            "y = contract(x, w) \"ri,oi->ro\"\n"
                            "output y = y\n";

/* Two products side by side have as many sums each. */
static const char gated[] = "graph gated\n"
                            "dim rows max 65536\n"
                            "x = input f32[rows, 96]\n"
                            "w = constant f32[192, 96] random seed=1 scale=0.1\n"
                            "u = constant f32[192, 96] random seed=2 scale=0.1\n"
                            "a = contract(x, w) \"ri,oi->ro\"\n"
                            "b = contract(x, u) \"ri,oi->ro\"\n"
                            "y = mul(a, b)\n"
                            "output y = y\n";

typedef struct tally {
    int lowered, run;
    int starts;        /* programs whose sums start with what is loaded */
    int pairs;         /* programs in which those of two products do */
    int parts;         /* of those lanes or subgroups share out the contraction */
    int mapped;        /* programs that compute with a left factor in its place */
    int rings;         /* slices of an axis that are on their way in rings */
    int thirds;        /* blocks of three matrices, or of three times as many */
    int64_t most_sums; /* that a lane has of one product in these */
} tally;

static bool is_third(const smg_schedule *s, int axis) {
    return axis >= 0 && (s->tile[axis] & (s->tile[axis] - 1)) != 0;
}

static void look_at(const smg_kernel *k, const smg_schedule *s, tally *t) {
    bool mapped = false, rings = false;
    int starts = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_TAKE) rings = s->rings > 1 && !s->streams;
        if (in->kind != SMG_I_SET) continue;
        bool loads = smg_kernel_plain_load(k, in->expr) >= 0;
        smg_fragments use = k->tiles.items[in->dst].fragments;
        starts += use == SMG_FRAGMENTS_SUMS && loads && in->matrices;
        bool before = i > 0 && k->code.items[i - 1].dst == in->dst && k->code.items[i - 1].matrices;
        mapped = mapped || (use == SMG_FRAGMENTS_LEFT && !loads && before);
    }
    t->lowered++;
    t->starts += starts > 0;
    t->pairs += starts == 2;
    t->parts += starts > 0 && s->lane_depth > 1;
    t->mapped += mapped;
    t->rings += rings;
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, check_options o,
                         check_arrays *a, tally *t) {
    smg_kernel *kernel;
    const char *refused;
    smg_arena *arena;
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    const smg_lower_options options = {.name = "terms", .target = target, .verify = true};
    if (smg_kernel_lower(s, &options, arena, &kernel, &refused) != SMG_OK)
        fail_msg("%s on %s: %s", g->name, o.target, smg_context_error(g->ctx));
    if (kernel != NULL) {
        look_at(kernel, s, t);
        if (t->lowered % RUN_IN == 0) {
            t->run++;
            check_kernel_is_right(g, s, kernel, &o, t->run % LANES_IN == 0, a);
        }
    }
    smg_arena_destroy(arena);
}

/* One in `each` of the graph's schedules by matrices, of so many rows; 0: none is lowered. */
static tally try_graph(smg_context *ctx, const char *text, const char *name, int64_t rows, int each) {
    static const int64_t symbols[] = {77};
    check_options o = {.target = name, .tolerance = 4e-3, .symbols = symbols};
    smg_target target;
    smg_space *space;
    smg_arena *arena;
    smg_schedules schedules;
    smg_precision_plan precision;
    smg_graph *g;
    check_arrays a;
    smg_node_id nodes[NODES];
    int64_t nominal[SMG_SPACE_AXES];
    int count = 0, seen = 0;
    tally t = {0};
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "terms", &g), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_target(ctx, name, &target), SMG_OK);
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    assert_non_null(needed);
    for (smg_node_id i = 0; i < g->nodes.count && count < NODES; i++)
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    for (int i = 0; i < g->outputs.count; i++) needed[smg_space_source(g, g->outputs.items[i].node)] = true;
    assert_int_equal(smg_space_build(g, arena, nodes, count, needed, &space), SMG_OK);
    assert_null(space->refused);
    for (int i = 0; i < space->axes.count; i++)
        if (!smg_size_is_const(g->sizes, space->axes.items[i].extent, &nominal[i])) nominal[i] = rows;
    assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
    if (each > 0) assert_int_equal(check_arrays_make(g, &o, arena, &a), SMG_OK);
    for (int i = 0; i < schedules.items.count; i++) {
        const smg_schedule *s = &schedules.items.items[i];
        if (s->matrix == NULL) continue;
        bool third = is_third(s, s->row_axis) || is_third(s, s->col_axis);
        t.thirds += third;
        if (third && s->col_axis >= 0) {
            int64_t results = s->tile[s->row_axis] * s->tile[s->col_axis];
            int64_t sums = results / (s->lane_rows * s->lane_cols);
            if (sums > t.most_sums) t.most_sums = sums;
        }
        if (each > 0 && seen++ % each == 0) try_schedule(g, s, &target, o, &a, &t);
    }
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
    return t;
}

/* What is added to sums is what they start with, where no parts of them would each add it and cores hide loads; what is
 * added to something that was made of them is not. */
static void test_starts(void **state) {
    static const char *const names[] = {"h200", "navi31"};
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        tally t = try_graph(*state, residual, names[i], 77, ONE_IN);
        assert_true(t.run >= 4 && 2 * t.starts > t.lowered && t.parts == 0);
    }
    tally two = try_graph(*state, pair, "h200", 77, ONE_IN);
    assert_true(two.run >= 2 && two.pairs > 0 && two.pairs == two.starts);
    tally cpu = try_graph(*state, residual, "lavapipe", 77, 3 * ONE_IN);
    tally half = try_graph(*state, scaled, "h200", 77, 3 * ONE_IN);
    tally twice = try_graph(*state, doubled, "h200", 77, 3 * ONE_IN);
    assert_true(cpu.lowered > 0 && half.lowered > 0 && twice.lowered > 0);
    assert_int_equal(cpu.starts + half.starts + twice.starts, 0);
}

static void test_left_factors(void **state) {
    tally t = try_graph(*state, biased, "h200", 77, ONE_IN);
    assert_true(t.run >= 4 && 4 * t.mapped > t.lowered);
}

/* Rings go along the axis of the loop, and there are none where slices go along another. */
static void test_rings_apart(void **state) {
    tally t = try_graph(*state, apart, "h200", 4096, ONE_IN);
    assert_true(t.lowered >= 20 && t.run >= 4);
    assert_int_equal(t.rings, 0);
}

/* Three matrices a side come between powers of two where these leave cores idle, or reach far behind an axis's end, and
 * are not asked for elsewhere. */
static void test_thirds(void **state) {
    assert_true(try_graph(*state, plain, "h200", 12000, 0).thirds > 0);
    assert_int_equal(try_graph(*state, plain, "h200", 1 << 22, 0).thirds, 0);
    tally residuals = try_graph(*state, residual, "h200", 65536, 0); /* 192 columns */
    assert_true(residuals.thirds > 0 && residuals.most_sums > 64);
    tally gates = try_graph(*state, gated, "h200", 65536, 0);
    assert_true(gates.thirds > 0 && gates.most_sums <= 64); /* half of 128 */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_starts), cmocka_unit_test(test_left_factors),
                                       cmocka_unit_test(test_rings_apart), cmocka_unit_test(test_thirds)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
