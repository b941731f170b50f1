/* Not only the schedule that the price picks: every candidate of a whole graph, on several targets, is lowered,
 * verified, run by the interpreter and compared with the reference; of graphs with many of them a fixed share. Each
 * distinct program (targets often lower to the same text) runs once more in the interpreter's per-lane mode, in the
 * largest size; scripts/every-schedule.sh runs all schedules so, in all sizes, on one target more. Groups of kernels that
 * share out a sum are tried kernel by kernel, beside the others of their plan. How many there are, how many of them are
 * run, and how many programs no target before had, for each target as "schedules/kernels/programs", stands in
 * every_schedule.counts: a lowering that refuses everything fails here. After a change that is meant to move them, the
 * table that this test writes takes the place of the old one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "lower/lower.h"
#include "support/check_plan.h"
#include "support/output.h"
#include "support/random_graph.h"

/* With sanitizers one in so many sizes and random graphs, and programs by lane. */
enum { ONE_IN = CHECK_ONE_IN, LANES_ONE_IN = CHECK_ONE_IN == 1 ? 1 : 16 };
/* Schedules of a graph that are tried at least; of more than twice as many, one in so many. Those of its space as linearity
 * leaves it are like those of products alone, and those of products with vectors like those of reductions. */
enum { FEWEST = 96, FEWEST_LINEAR = 12, FEWEST_MULTIPLIED = 48, FEWEST_OF_GROUPS = 4 };

typedef struct tally {
    int schedules, lowered, programs, failed;
} tally;

/* Programs that have been met, by the hash of their text. */
typedef struct programs {
    smg_arena *arena;
    smg_map *met;
    bool every; /* by lane: all of them, not only new ones */
    bool rings; /* only schedules with slots */
    int runs;   /* by lane */
} programs;

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

static uint64_t hash_of(smg_context *ctx, const smg_kernel *k) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_kernel_print(k, &text);
    assert_int_equal(smg_text_status(&text), SMG_OK);
    uint64_t hash = smg_hash_text(SMG_HASH_SEED, smg_text_cstr(&text));
    smg_text_free(&text);
    return hash;
}

/* Shall the program run by lane? */
static bool by_lane(smg_context *ctx, const smg_kernel *k, programs *p, tally *t) {
    uint64_t hash = hash_of(ctx, k);
    void *unused;
    bool met = smg_map_get(p->met, &hash, sizeof hash, &unused);
    if (!met) assert_int_equal(smg_map_set(p->met, &hash, sizeof hash, p), SMG_OK);
    t->programs += !met;
    bool runs = p->every || (!met && hash % LANES_ONE_IN == 0);
    p->runs += runs;
    return runs;
}

static smg_status run(const smg_graph *g, const smg_kernel *k, const check_options *o, bool lanes, check_arrays *a,
                      check_result *r) {
    check_options options = *o;
    options.by_lane = lanes;
    check_arrays_reset(g, a);
    SMG_TRY(check_kernel(g->ctx, k, &options, a));
    check_compare(g, o, a, r);
    return SMG_OK;
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, const check_options *o,
                         check_arrays *a, programs *p, tally *t) {
    smg_kernel *kernel;
    const char *refused;
    smg_arena *arena;
    check_result r = {0};
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    const smg_lower_options options = {.name = "every", .target = target, .verify = true};
    smg_status status = smg_kernel_lower(s, &options, arena, &kernel, &refused);
    t->schedules++;
    if (status == SMG_OK && kernel != NULL && fits(kernel, target)) {
        t->lowered++;
        status = smg_kernel_verify(g->ctx, kernel);
        if (status == SMG_OK) status = run(g, kernel, o, false, a, &r);
        bool lanes = status == SMG_OK && r.pass && by_lane(g->ctx, kernel, p, t);
        if (lanes) status = run(g, kernel, o, true, a, &r);
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

static void try_space(const smg_graph *g, const smg_space *space, const smg_target *target, const check_options *o,
                      smg_arena *arena, programs *p, tally *t) {
    smg_schedules schedules;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    /* What schedules are preferred for says nothing about where they are right: those for large extents, and for few
     * results, run at small ones. */
    for (int i = 0; i < space->axes.count; i++) nominal[i] = i % 2 == 0 ? 256 : 16;
    assert_int_equal(smg_sched_candidates(space, target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
    assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
    static const int least[SMG_SPACE_FORMS] = {FEWEST, FEWEST_LINEAR, FEWEST_MULTIPLIED};
    int fewest = least[space->form];
    int one_in = p->every || schedules.items.count < fewest ? 1 : schedules.items.count / fewest;
    for (int i = 0; i < schedules.items.count && t->failed < 5; i += one_in) {
        if (p->rings && schedules.items.items[i].slots < 2) continue;
        try_schedule(g, &schedules.items.items[i], target, o, &a, p, t);
    }
}

/* All of a graph as one space; as the one that linearity leaves of it; and with its products multiplied and summed. */
static void try_graph(const smg_graph *g, const check_options *o, programs *p, tally *t) {
    smg_arena *arena;
    smg_target target;
    smg_space *space, *linear = NULL, *multiplied = NULL;
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    assert_int_equal(check_target(g->ctx, o->target, &target), SMG_OK);
    assert_int_equal(check_space(g, arena, &space), SMG_OK);
    if (space->refused == NULL) {
        try_space(g, space, &target, o, arena, p, t);
        assert_int_equal(smg_slice_linear(space, arena, &linear), SMG_OK);
        assert_int_equal(smg_slice_multiplied(space, arena, &multiplied), SMG_OK);
    }
    if (linear != NULL) try_space(g, linear, &target, o, arena, p, t);
    if (multiplied != NULL) try_space(g, multiplied, &target, o, arena, p, t);
    smg_arena_destroy(arena);
}

/* The last one where every schedule runs by lane, and for groups. */
static const char *const targets[] = {"h200", "lavapipe", "careful", "tests/targets/subgroup4.target",
                                      "tests/targets/subgroup128.target"};
enum { ALL_TARGETS = SMG_COUNT_OF(targets), TARGETS = ALL_TARGETS - 1 };

static size_t targets_of(const programs *p) {
    return p->every ? ALL_TARGETS : TARGETS;
}

/* ---- how many ---------------------------------------------------------------------------------------- */

#define TABLE "tests/unit/every_schedule.counts"

/* The table of the repository, and the one that this run would write. */
typedef struct table {
    smg_context *ctx;
    char *old;
    size_t size;
    smg_text now;
    char path[4096];
    bool every; /* more schedules than the table is about: nothing is compared */
    int wrong;
} table;

static void table_open(smg_context *ctx, const char *file, bool every, table *t) {
    *t = (table){.ctx = ctx, .every = every};
    test_output(t->path, sizeof t->path, file);
    if (smg_file_read(ctx, TABLE, &t->old, &t->size) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    smg_text_init(&t->now, ctx);
}

/* The numbers behind `name`; -1 where there are none. */
static void table_find(const table *t, const char *name, int count, tally *out) {
    size_t length = strlen(name);
    const char *line = t->old;
    for (int i = 0; i < count; i++) out[i] = (tally){-1, -1, -1, 0};
    while (line != NULL && (strncmp(line, name, length) != 0 || line[length] != ' ')) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    for (int i = 0; line != NULL && i < count; i++) {
        line = strchr(line + 1, ' ');
        if (line != NULL && sscanf(line, " %d/%d/%d", &out[i].schedules, &out[i].lowered, &out[i].programs) != 3)
            return;
    }
}

/* One line: what was counted for each target. */
static void table_check(table *t, const char *name, const tally *counted, int count) {
    tally known[TARGETS];
    table_find(t, name, count, known);
    smg_text_add(&t->now, name);
    for (int i = 0; i < count; i++) {
        const tally *c = &counted[i], *old = &known[i];
        smg_text_addf(&t->now, " %d/%d/%d", c->schedules, c->lowered, c->programs);
        bool same = c->schedules == old->schedules && c->lowered == old->lowered && c->programs == old->programs;
        if (same || t->every) continue;
        printf("%s, number %d: %d schedules, %d kernels, %d programs, but %d, %d and %d in the table\n", name, i + 1,
               c->schedules, c->lowered, c->programs, old->schedules, old->lowered, old->programs);
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

typedef struct fixture {
    smg_context *ctx;
    programs programs;
} fixture;

/* Begins and ends of stretches: some empty, some beyond what there is. */
static void fill_stretches(void *user, const smg_node *input, const int64_t *dims, double *data) {
    (void)user;
    bool first = strcmp(input->name, "first") == 0;
    for (int64_t i = 0; (first || strcmp(input->name, "length") == 0) && i < dims[0]; i++)
        data[i] = (double)(first ? (i * 11 + 9) % 23 - 6 : (i * 19 + 24) % 41 - 3);
}

/* Every size has the same schedules, so that one number is enough. The largest size comes first, so that programs run
 * by lane where loops have several steps. */
static int one_target(const smg_graph *g, size_t number, size_t target, programs *p, tally *out) {
    static const int64_t sizes[][4] = {{2, 1, 33, 77}, {3, 2, 5, 7}, {1, 1, 1, 1}};
    int failed = 0, runs = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        if ((target * SMG_COUNT_OF(sizes) + i + number) % ONE_IN != 0) continue;
        check_options o = {.target = targets[target], .tolerance = 5e-5, .symbols = sizes[i], .fill = fill_stretches};
        tally t = {.programs = runs > 0 ? out->programs : 0};
        try_graph(g, &o, p, &t);
        failed += t.failed;
        if (runs++ > 0) assert_true(t.schedules == out->schedules && t.lowered == out->lowered);
        *out = t;
    }
    assert_true(runs > 0);
    return failed;
}

static void graph_files(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    table t;
    tally all = {0};
    int failed = 0;
    const char *path[64];
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    table_open(f->ctx, "every_schedule.counts", f->programs.every, &t);
    int count = check_list(arena, "tests/graphs", ".smg", path, 64);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        tally counted[ALL_TARGETS];
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        for (size_t k = 0; k < targets_of(&f->programs); k++) {
            failed += one_target(g, (size_t)i, k, &f->programs, &counted[k]);
            all.schedules += counted[k].schedules;
            all.lowered += counted[k].lowered;
            all.programs += counted[k].programs;
        }
        table_check(&t, base_name(path[i]), counted, TARGETS);
        smg_graph_destroy(g);
    }
    smg_arena_destroy(arena);
    printf("%d schedules, %d kernels, %d programs, %d runs by lane\n", all.schedules, all.lowered, all.programs,
           f->programs.runs);
    assert_int_equal(failed, 0);
    table_close(&t);
}

/* Slices in slots, on a target that has them tried. */
static void rings(void **state) {
    fixture *f = *state;
    smg_arena *arena;
    tally all = {0};
    const char *path[64];
    static const int64_t symbols[] = {2, 1, 33, 77};
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    f->programs.rings = true;
    int count = check_list(arena, "tests/graphs", ".smg", path, 64);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        check_options o = {.target = "tests/targets/slots.target", .tolerance = 5e-5, .symbols = symbols};
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        try_graph(g, &o, &f->programs, &all);
        smg_graph_destroy(g);
    }
    f->programs.rings = false;
    smg_arena_destroy(arena);
    printf("%d schedules with slots, %d kernels, %d programs\n", all.schedules, all.lowered, all.programs);
    assert_int_equal(all.failed, 0);
    assert_true(all.programs >= FEWEST);
}

/* ---- groups ---------------------------------------------------------------------------------------------- */

typedef struct group {
    const smg_graph *g;
    const check_options *o;
    programs *programs;
    tally t;
} group;

/* The step's results by another schedule, beside those by the plan's. */
static bool gives_the_same(const group *e, const smg_kernel *k, bool lanes, const check_arrays *plan_made) {
    check_options o = *e->o;
    check_arrays own = *plan_made;
    smg_arena *arena;
    bool same = true;
    o.by_lane = lanes;
    assert_int_equal(smg_arena_create(e->g->ctx, &arena), SMG_OK);
    int64_t most = 0;
    for (int b = 0; b < k->buffers.count; b++)
        if (k->buffers.items[b].value >= most) most = k->buffers.items[b].value + 1;
    own.data = SMG_ARENA_ARRAY(arena, double *, (size_t)most + 1);
    assert_non_null(own.data);
    memcpy(own.data, plan_made->data, (size_t)most * sizeof(*own.data));
    for (int b = 0; b < k->buffers.count; b++) {
        int value = k->buffers.items[b].value;
        if (!k->buffers.items[b].written) continue;
        own.data[value] = SMG_ARENA_ARRAY(arena, double, (size_t)own.count[value] + 1);
        assert_non_null(own.data[value]);
        for (int64_t i = 0; i < own.count[value]; i++) own.data[value][i] = (double)NAN;
    }
    if (check_kernel(e->g->ctx, k, &o, &own) != SMG_OK) same = false;
    for (int b = 0; b < k->buffers.count && same; b++) {
        int value = k->buffers.items[b].value;
        for (int64_t i = 0; k->buffers.items[b].written && i < own.count[value]; i++) {
            double x = own.data[value][i], y = plan_made->data[value][i];
            same = same && (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= o.tolerance * (1 + fabs(y)));
        }
    }
    smg_arena_destroy(arena);
    return same;
}

static void try_step(void *user, const smg_plan *plan, const smg_pstep *step, const smg_target *target,
                     check_arrays *arrays) {
    group *e = user;
    smg_schedules schedules;
    smg_arena *arena;
    int64_t nominal[SMG_SPACE_AXES];
    if (plan->origin == NULL) return; /* no sum of it is in parts */
    for (int i = 0; i < step->space->axes.count; i++) nominal[i] = i % 2 == 0 ? 256 : 16;
    assert_int_equal(smg_arena_create(e->g->ctx, &arena), SMG_OK);
    assert_int_equal(smg_sched_candidates(step->space, target, nominal, (smg_sched_room){0}, arena, &schedules),
                     SMG_OK);
    int share = schedules.items.count < FEWEST_OF_GROUPS ? 1 : schedules.items.count / FEWEST_OF_GROUPS;
    int one_in = e->programs->every ? 1 : share; /* then by lane a share */
    for (int i = 0; i < schedules.items.count && e->t.failed < 5; i += one_in) {
        const smg_lower_options options = {.name = "every", .target = target, .verify = true};
        const char *refused;
        smg_kernel *k;
        e->t.schedules++;
        bool right = smg_kernel_lower(&schedules.items.items[i], &options, arena, &k, &refused) == SMG_OK;
        if (right && (k == NULL || !fits(k, target))) continue;
        e->t.lowered++;
        right = right && gives_the_same(e, k, false, arrays);
        bool lanes = right && i % share == 0 && by_lane(e->g->ctx, k, e->programs, &e->t);
        if (lanes) right = gives_the_same(e, k, true, arrays);
        if (right) continue;
        report(plan->graph, &schedules.items.items[i], e->o, smg_context_error(e->g->ctx));
        smg_context_clear_error(e->g->ctx);
        e->t.failed++;
    }
    smg_arena_destroy(arena);
}

/* Sums in parts: what makes the parts, and what merges them. */
static void groups(void **state) {
    static const int64_t size[][4] = {{2, 7, 5, 3}, {3, 40, 9, 2}};
    fixture *f = *state;
    smg_arena *arena;
    tally all = {0};
    table t;
    const char *path[64];
    int plans = 0;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    int count = check_list(arena, "tests/graphs", ".smg", path, 64);
    for (int i = 0; i < count; i += ONE_IN) {
        smg_graph *g;
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        for (size_t k = 0; k < ALL_TARGETS; k++) {
            check_result r;
            const int64_t *symbols = size[(size_t)i % 2];
            if (!f->programs.every && k != (size_t)i % ALL_TARGETS) continue;
            check_options o = {.target = targets[k], .tolerance = 5e-5, .symbols = symbols, .fill = fill_stretches};
            o.plan = (smg_plan_options){.parts = 2 + i % 3, .nominal = symbols};
            group e = {.g = g, .o = &o, .programs = &f->programs};
            if (check_each_step(f->ctx, g, &o, try_step, &e, &r) != SMG_OK || !r.pass)
                fail_msg("%s on %s: %s", path[i], targets[k], smg_context_error(f->ctx));
            plans += r.in_parts;
            all.schedules += e.t.schedules;
            all.lowered += e.t.lowered;
            all.programs += e.t.programs;
            all.failed += e.t.failed;
        }
        smg_graph_destroy(g);
    }
    smg_arena_destroy(arena);
    printf("%d plans with sums in parts: %d schedules, %d kernels, %d programs\n", plans, all.schedules, all.lowered,
           all.programs);
    assert_int_equal(all.failed, 0);
    assert_true(plans > 0 && all.lowered > 0);
    if (ONE_IN != 1) return;
    table_open(f->ctx, "every_schedule.counts.groups", f->programs.every, &t);
    table_check(&t, "groups", &all, 1);
    table_close(&t);
}

static void random_graphs(void **state) {
    fixture *f = *state;
    smg_context *ctx = f->ctx;
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
        check_options o = {.target = targets[seed % targets_of(&f->programs)],
                           .tolerance = RANDOM_TOLERANCE,
                           .symbols = symbols,
                           .seed = seed};
        try_graph(g, &o, &f->programs, &t);
        smg_graph_destroy(g);
        smg_graph_destroy(made);
    }
    printf("%d schedules, %d kernels, %d programs, with the graph files %d runs by lane\n", t.schedules, t.lowered,
           t.programs, f->programs.runs);
    assert_int_equal(t.failed, 0);
    assert_true(t.lowered > 0);
    if (ONE_IN != 1 || first != NULL || number != NULL) return;
    table_open(ctx, "every_schedule.counts.random", f->programs.every, &random);
    table_check(&random, "random", &t, 1);
    table_close(&random);
}

static int setup(void **state) {
    static fixture f;
    char path[1024];
    test_output(path, sizeof path, "every_schedule"); /* before anything takes its time */
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.programs.arena), SMG_OK);
    assert_int_equal(smg_map_create(f.programs.arena, &f.programs.met), SMG_OK);
    f.programs.every = getenv("SMG_EVERY_BY_LANE") != NULL;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->programs.arena);
    smg_context_destroy(f->ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(graph_files), cmocka_unit_test(rings), cmocka_unit_test(groups),
                                       cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
