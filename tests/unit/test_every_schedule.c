/* Not only the schedule that the price picks: every candidate of a whole graph, on several targets, is lowered,
 * verified, run by the interpreter and compared with the reference. How many there are and how many of them are run,
 * for each target as "schedules/kernels", stands in every_schedule.counts: a lowering that refuses everything fails
 * here. After a change that is meant to move them, the table that this test writes takes the place of the old one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "lower/lower.h"
#include "support/check_plan.h"
#include "support/output.h"
#include "support/random_graph.h"

#define NODES 128

/* Sanitizers, for which the interpreter is ten times slower, see one in so many sizes and random graphs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ONE_IN = 3 }; /* odd: over all targets, and seeds with and without symbols */
#else
enum { ONE_IN = 1 };
#endif

typedef struct tally {
    int schedules, lowered, failed;
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
        for (int i = 0; i < schedules.items.count && t->failed < 5; i++) {
            try_schedule(g, &schedules.items.items[i], &target, o, &a, t);
        }
    }
    smg_arena_destroy(arena);
}

static const char *const targets[] = {"h200", "lavapipe", "careful", "tests/targets/subgroup4.target"};
enum { TARGETS = SMG_COUNT_OF(targets) };

/* ---- how many ---------------------------------------------------------------------------------------- */

#define TABLE "tests/unit/every_schedule.counts"

/* The table of the repository, and the one that this run would write. */
typedef struct table {
    smg_context *ctx;
    char *old;
    size_t size;
    smg_text now;
    char path[4096];
    int wrong;
} table;

static void table_open(smg_context *ctx, const char *file, table *t) {
    *t = (table){.ctx = ctx};
    test_output(t->path, sizeof t->path, file);
    if (smg_file_read(ctx, TABLE, &t->old, &t->size) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    smg_text_init(&t->now, ctx);
}

/* The numbers behind `name`; -1 where there are none. */
static void table_find(const table *t, const char *name, int count, tally *out) {
    size_t length = strlen(name);
    const char *line = t->old;
    for (int i = 0; i < count; i++) out[i] = (tally){.schedules = -1, .lowered = -1};
    while (line != NULL && (strncmp(line, name, length) != 0 || line[length] != ' ')) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    for (int i = 0; line != NULL && i < count; i++) {
        line = strchr(line + 1, ' ');
        if (line != NULL && sscanf(line, " %d/%d", &out[i].schedules, &out[i].lowered) != 2) return;
    }
}

/* One line: what was counted for each target. */
static void table_check(table *t, const char *name, const tally *counted, int count) {
    tally known[TARGETS];
    table_find(t, name, count, known);
    smg_text_add(&t->now, name);
    for (int i = 0; i < count; i++) {
        smg_text_addf(&t->now, " %d/%d", counted[i].schedules, counted[i].lowered);
        if (counted[i].schedules == known[i].schedules && counted[i].lowered == known[i].lowered) continue;
        printf("%s, number %d: %d schedules, %d kernels, but %d and %d in the table\n", name, i + 1,
               counted[i].schedules, counted[i].lowered, known[i].schedules, known[i].lowered);
        t->wrong++;
    }
    smg_text_add(&t->now, "\n");
}

static void table_close(table *t) {
    assert_int_equal(smg_text_status(&t->now), SMG_OK);
    if (t->wrong > 0) {
        const char *text = smg_text_cstr(&t->now);
        assert_int_equal(smg_file_write_atomic(t->ctx, t->path, text, strlen(text)), SMG_OK);
        printf("%d numbers are not those of " TABLE "; what it should have is in %s\n", t->wrong, t->path);
    }
    smg_text_free(&t->now);
    smg_free(t->ctx, t->old, t->size + 1);
    assert_int_equal(t->wrong, 0);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* ---- the graphs of the repository ------------------------------------------------------------------------ */

/* Every size has the same schedules, so that one number is enough. */
static int one_target(const smg_graph *g, size_t number, size_t target, tally *out) {
    static const int64_t sizes[][4] = {{1, 1, 1, 1}, {3, 2, 5, 7}, {2, 1, 33, 77}};
    int failed = 0, runs = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        if ((target * SMG_COUNT_OF(sizes) + i + number) % ONE_IN != 0) continue;
        check_options o = {.target = targets[target], .tolerance = 5e-5, .symbols = sizes[i]};
        tally t = {0};
        try_graph(g, &o, &t);
        failed += t.failed;
        if (runs++ > 0) assert_true(t.schedules == out->schedules && t.lowered == out->lowered);
        *out = t;
    }
    assert_true(runs > 0);
    return failed;
}

static void graph_files(void **state) {
    smg_context *ctx = *state;
    smg_arena *arena;
    table t;
    int failed = 0;
    const char *path[64];
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    table_open(ctx, "every_schedule.counts", &t);
    int count = check_list(arena, "tests/graphs", ".smg", path, 64);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        tally counted[TARGETS];
        assert_int_equal(check_load(ctx, path[i], &g), SMG_OK);
        for (size_t k = 0; k < TARGETS; k++) failed += one_target(g, (size_t)i, k, &counted[k]);
        table_check(&t, base_name(path[i]), counted, TARGETS);
        smg_graph_destroy(g);
    }
    smg_arena_destroy(arena);
    table_close(&t);
    assert_int_equal(failed, 0);
}

static void random_graphs(void **state) {
    smg_context *ctx = *state;
    const char *number = getenv("SMG_GRAPHS"), *first = getenv("SMG_SEED");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = number != NULL ? strtoull(number, NULL, 10) : 300;
    tally t = {0};
    table random;
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
        assert_int_equal(smg_rewrite_graph(made, &g, &unused), SMG_OK);
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
    printf("%d schedules, %d kernels\n", t.schedules, t.lowered);
    assert_int_equal(t.failed, 0);
    assert_true(t.lowered > 0);
    if (ONE_IN != 1 || first != NULL || number != NULL) return;
    table_open(ctx, "every_schedule.counts.random", &random);
    table_check(&random, "random", &t, 1);
    table_close(&random);
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
