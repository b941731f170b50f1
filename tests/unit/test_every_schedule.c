/* Not only the schedule that the price picks: every candidate of a whole graph, on several targets, is lowered,
 * verified, run by the interpreter and compared with the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "kernel/lower.h"
#include "support/check_plan.h"
#include "support/random_graph.h"

#define NODES 128

/* Sanitizers, for which the interpreter is ten times slower, see one in so many sizes and random graphs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ONE_IN = 3 }; /* odd: over all targets, and seeds with and without symbols */
#else
enum { ONE_IN = 1 };
#endif

typedef struct tally {
    int graphs, schedules, lowered, failed;
} tally;

static smg_status space_of(const smg_graph *g, smg_arena *arena, smg_space **out_space) {
    smg_node_id nodes[NODES];
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    int count = 0;
    if (needed == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < g->nodes.count && count < NODES; i++) {
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    }
    for (int o = 0; o < g->outputs.count; o++) needed[smg_space_source(g, g->outputs.items[o].node)] = true;
    return smg_space_build(g, arena, nodes, count, needed, out_space);
}

static void report(const smg_graph *g, const smg_schedule *s, const check_options *o, const char *why) {
    smg_text text;
    smg_text_init(&text, g->ctx);
    smg_graph_print(g, &text);
    smg_sched_print(s, &text);
    printf("%s, seed %llu, sizes %lld %lld: %s\n%s\n", o->target, (unsigned long long)o->seed, (long long)o->symbols[0],
           (long long)o->symbols[1], why, smg_text_cstr(&text));
    smg_text_free(&text);
}

static bool fits(const smg_kernel *k, const smg_target *t) {
    return smg_kernel_shared_bytes(k) <= t->shared_bytes && smg_kernel_registers(k) <= t->registers_lane &&
           k->buffers.count < 64;
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, const check_options *o,
                         check_arrays *a, tally *t) {
    smg_kernel *kernel;
    const char *refused;
    smg_arena *arena;
    check_result r = {0};
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    smg_status status = smg_kernel_lower(s, arena, "every", NULL, &kernel, &refused);
    t->schedules++;
    if (status == SMG_OK && kernel != NULL && fits(kernel, target)) {
        t->lowered++;
        check_arrays_reset(g, a);
        status = smg_kernel_verify(g->ctx, kernel);
        if (status == SMG_OK) status = check_kernel(g->ctx, kernel, o, a);
        if (status == SMG_OK) check_compare(g, o, a, &r);
    } else {
        r.pass = true;
    }
    if (status != SMG_OK || !r.pass) {
        report(g, s, o, status != SMG_OK ? smg_context_error(g->ctx) : "differs from the reference");
        smg_context_clear_error(g->ctx);
        t->failed++;
    }
    smg_arena_destroy(arena);
}

static void try_graph(const smg_graph *g, const check_options *o, tally *t) {
    smg_arena *arena;
    smg_target target;
    smg_space *space;
    smg_schedules schedules;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    assert_int_equal(check_target(g->ctx, o->target, &target), SMG_OK);
    assert_int_equal(space_of(g, arena, &space), SMG_OK);
    if (space->refused == NULL) {
        for (int i = 0; i < space->axes.count; i++) {
            assert_true(smg_size_eval(g->sizes, space->axes.items[i].extent, o->symbols, &nominal[i]));
        }
        assert_int_equal(smg_sched_candidates(space, &target, nominal, arena, &schedules), SMG_OK);
        assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
        t->graphs += schedules.items.count > 0;
        for (int i = 0; i < schedules.items.count && t->failed < 5; i++) {
            try_schedule(g, &schedules.items.items[i], &target, o, &a, t);
        }
    }
    smg_arena_destroy(arena);
}

static const char *const targets[] = {"h200", "lavapipe", "careful", "tests/targets/subgroup4.target"};

static void graph_files(void **state) {
    static const int64_t symbols[][4] = {{1, 1, 1, 1}, {3, 2, 5, 7}, {2, 1, 33, 77}};
    smg_context *ctx = *state;
    smg_arena *arena;
    tally t = {0};
    const char *path[64];
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    int count = check_list(arena, "tests/graphs", ".smg", path, 64);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        assert_int_equal(check_load(ctx, path[i], &g), SMG_OK);
        for (size_t k = (size_t)i % ONE_IN; k < SMG_COUNT_OF(targets) * SMG_COUNT_OF(symbols); k += ONE_IN) {
            check_options o = {.target = targets[k / SMG_COUNT_OF(symbols)],
                               .tolerance = 5e-5,
                               .symbols = symbols[k % SMG_COUNT_OF(symbols)]};
            try_graph(g, &o, &t);
        }
        smg_graph_destroy(g);
    }
    smg_arena_destroy(arena);
    printf("%d spaces, %d schedules, %d kernels\n", t.graphs, t.schedules, t.lowered);
    assert_int_equal(t.failed, 0);
}

static void random_graphs(void **state) {
    smg_context *ctx = *state;
    const char *number = getenv("SMG_GRAPHS"), *first = getenv("SMG_SEED");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = number != NULL ? strtoull(number, NULL, 10) : 300;
    tally t = {0};
    for (uint64_t seed = from; seed < from + count && t.failed == 0; seed += first != NULL ? 1 : ONE_IN) {
        random_options r = {.seed = seed,
                            .operations = 2 + (int)(seed % 7),
                            .symbolic = seed % 2 != 0,
                            .s = 1 + (int64_t)(seed * 7 % 40),
                            .t = 1 + (int64_t)(seed * 5 % 23),
                            .max_elements = 2000};
        smg_graph *made, *g;
        smg_rewrite_report unused;
        int64_t symbols[8] = {0};
        assert_int_equal(random_graph(ctx, &r, &made), SMG_OK);
        assert_int_equal(smg_graph_rewrite(made, &g, &unused), SMG_OK);
        assert_int_equal(smg_compile_copy_outputs(g), SMG_OK);
        random_symbols(g, &r, symbols);
        check_options o = {.target = targets[seed % SMG_COUNT_OF(targets)],
                           .tolerance = RANDOM_TOLERANCE,
                           .symbols = symbols,
                           .seed = seed};
        try_graph(g, &o, &t);
        smg_graph_destroy(g);
        smg_graph_destroy(made);
    }
    printf("%d spaces, %d schedules, %d kernels\n", t.graphs, t.schedules, t.lowered);
    assert_int_equal(t.failed, 0);
}

static int setup(void **state) {
    static smg_context *ctx;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(graph_files), cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
