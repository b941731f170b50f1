/* Products by matrices without hardware: schedules of small graphs in f16 that multiply by the matrices of a target are
 * lowered, verified, and run by the interpreter in both modes, whatever the layout of the target's fragments is. Sides
 * of the sizes are no multiples of any matrix. How many schedules get a program is asserted, so that a lowering that
 * refuses them fails here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "lower/lower.h"
#include "precision/precision.h"
#include "support/check_plan.h"

enum { NODES = 128, AT_MOST = 12 /* schedules of a graph and target that are run */ };

static const char *const graphs[] = {"attention", "attention_causal", "attention_lengths", "linear_gelu", "lstm",
                                     "mlp",       "prepared_weight",  "rmsnorm_gemm",      "softmax_gemm"};
/* Their layouts differ: rows over registers and lanes, over registers alone, over the upper lanes. */
static const char *const targets[] = {"h200", "lavapipe", "navi31", "dg2"};

typedef struct tally {
    int schedules, lowered, run;
} tally;

static smg_status space_of(const smg_graph *g, smg_arena *arena, smg_space **out_space) {
    smg_node_id nodes[NODES];
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    int count = 0;
    if (needed == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < g->nodes.count && count < NODES; i++)
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    for (int o = 0; o < g->outputs.count; o++) needed[smg_space_source(g, g->outputs.items[o].node)] = true;
    return smg_space_build(g, arena, nodes, count, needed, out_space);
}

static void run(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o, bool by_lane,
                check_arrays *a) {
    check_options options = *o;
    check_result r = {0};
    options.by_lane = by_lane;
    check_arrays_reset(g, a);
    smg_status status = check_kernel(g->ctx, k, &options, a);
    if (status == SMG_OK) check_compare(g, o, a, &r);
    if (status == SMG_OK && r.pass) return;
    smg_text text;
    smg_text_init(&text, g->ctx);
    smg_sched_print(s, &text);
    smg_kernel_print(k, &text);
    fail_msg("%s on %s, %s: %s\n%s", g->name, o->target, by_lane ? "by lane" : "as a whole",
             status != SMG_OK ? smg_context_error(g->ctx) : "differs from the reference", smg_text_cstr(&text));
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, const check_options *o,
                         check_arrays *a, bool runs, tally *t) {
    smg_kernel *kernel;
    const char *refused;
    smg_arena *arena;
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    const smg_lower_options options = {.name = "matrices", .target = target, .verify = true};
    if (smg_kernel_lower(s, &options, arena, &kernel, &refused) != SMG_OK)
        fail_msg("%s on %s: %s", g->name, o->target, smg_context_error(g->ctx));
    t->schedules++;
    if (kernel != NULL) {
        t->lowered++;
        t->run += runs;
        if (runs) run(g, s, kernel, o, false, a);
        if (runs) run(g, s, kernel, o, true, a);
    }
    smg_arena_destroy(arena);
}

static void try_graph(smg_graph *g, const check_options *o, tally *t) {
    smg_arena *arena;
    smg_target target;
    smg_space *space;
    smg_schedules schedules;
    smg_precision_plan precision;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    assert_int_equal(check_target(g->ctx, o->target, &target), SMG_OK);
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, arena, &precision), SMG_OK);
    assert_int_equal(space_of(g, arena, &space), SMG_OK);
    if (space->refused == NULL) {
        for (int i = 0; i < space->axes.count; i++) nominal[i] = 256;
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
        int all = 0, each;
        for (int i = 0; i < schedules.items.count; i++) all += schedules.items.items[i].matrix != NULL;
        each = all > AT_MOST ? all / AT_MOST : 1;
        for (int i = 0, n = 0; i < schedules.items.count; i++) {
            const smg_schedule *s = &schedules.items.items[i];
            if (s->matrix != NULL) try_schedule(g, s, &target, o, &a, n++ % each == 0, t);
        }
    }
    smg_arena_destroy(arena);
}

static void test_schedules(void **state) {
    smg_context *ctx = *state;
    static const int64_t symbols[] = {2, 1, 33, 77};
    tally all[SMG_COUNT_OF(targets)] = {{0}};
    for (size_t i = 0; i < SMG_COUNT_OF(graphs); i++) {
        char path[128];
        smg_graph *g;
        (void)snprintf(path, sizeof path, "tests/graphs/%s.smg", graphs[i]);
        assert_int_equal(check_load(ctx, path, &g), SMG_OK);
        for (size_t k = 0; k < SMG_COUNT_OF(targets); k++) {
            check_options o = {.target = targets[k], .tolerance = 4e-3, .symbols = symbols};
            tally before = all[k];
            try_graph(g, &o, &all[k]);
            printf("%s on %s: %d schedules, %d programs, %d run\n", graphs[i], targets[k],
                   all[k].schedules - before.schedules, all[k].lowered - before.lowered, all[k].run - before.run);
        }
        smg_graph_destroy(g);
    }
    for (size_t k = 0; k < SMG_COUNT_OF(targets); k++) assert_true(all[k].lowered >= 40 && all[k].run >= 20);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
