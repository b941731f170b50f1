/* Plans of the graphs in tests/graphs, run by the kernel interpreter and compared with the reference: every target,
 * both objectives and unfused, sizes around tiles, masks that cover whole rows, and how many kernels come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "support/all_cases.h"
#include "support/check_plan.h"

#define TOLERANCE 2e-5 /* f32 tiles, sums of a few hundred terms near 1 */
#define LIMIT 64
#define COUNT_LOSES 1.02 /* of a plan's price, at most */

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *graph[LIMIT];
    const char *target[LIMIT];
    int graphs, targets;
} fixture;

static int setup(void **state) {
    static const char *const named[] = {"lavapipe", "h200", "careful"};
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    f.graphs = check_list(f.arena, "tests/graphs", ".smg", f.graph, LIMIT);
    for (size_t i = 0; i < SMG_COUNT_OF(named); i++) f.target[f.targets++] = named[i];
    f.targets += check_list(f.arena, "tests/targets", ".target", f.target + f.targets, LIMIT - f.targets);
    assert_true(f.graphs >= 12 && f.targets >= 5);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* 0 when the plan's result is the reference's. */
static int compare(fixture *f, const char *path, const smg_graph *g, const check_options *o, check_result *out) {
    static const char *const objective[] = {"time", "dispatches"};
    smg_status status = check_plan(f->ctx, g, o, out);
    if (status == SMG_OK && out->pass) return 0;
    printf("%s on %s, %s, sizes %lld %lld: %s, error %g\n", path, o->target,
           o->plan.unfused ? "unfused" : objective[o->plan.objective], (long long)o->symbols[0],
           (long long)o->symbols[1], status == SMG_OK ? "differs" : smg_context_error(f->ctx), out->max_error);
    smg_context_clear_error(f->ctx);
    return 1;
}

static int wrong(fixture *f, const char *path, const smg_graph *g, const check_options *o) {
    check_result unused;
    return compare(f, path, g, o, &unused);
}

static void every_graph_on_every_target(void **state) {
    fixture *f = *state;
    const int64_t symbols[4] = {2, 7, 5, 3};
    int failed = 0;
    for (int g = 0; g < f->graphs; g++) {
        smg_graph *graph;
        assert_int_equal(check_load(f->ctx, f->graph[g], &graph), SMG_OK);
        for (int t = g % CHECK_ONE_IN; t < f->targets; t += CHECK_ONE_IN) {
            check_options o = {.target = f->target[t], .symbols = symbols, .tolerance = TOLERANCE};
            failed += wrong(f, f->graph[g], graph, &o);
            o.plan.objective = SMG_OBJECTIVE_DISPATCHES;
            failed += wrong(f, f->graph[g], graph, &o);
            o.plan.unfused = true;
            failed += wrong(f, f->graph[g], graph, &o);
        }
        smg_graph_destroy(graph);
    }
    assert_int_equal(failed, 0);
}

/* Every sum that can be is in parts, the last one cut off or not, at the sizes they were made for and at others. */
static void sums_in_parts(void **state) {
    static const char *const target[] = {"h200", "careful"};
    static const int64_t size[][4] = {{2, 7, 5, 3}, {3, 40, 9, 2}};
    fixture *f = *state;
    int failed = 0, split = 0;
    for (int i = 0; i < f->graphs; i += CHECK_ONE_IN) {
        smg_graph *g;
        check_result r;
        const int64_t *symbols = size[i % 2];
        assert_int_equal(check_load(f->ctx, f->graph[i], &g), SMG_OK);
        check_options o = {.target = target[i / 2 % 2], .symbols = symbols, .tolerance = TOLERANCE};
        o.plan = (smg_plan_options){.parts = 2 + i % 3, .nominal = i % 3 == 0 ? NULL : symbols};
        failed += compare(f, f->graph[i], g, &o, &r);
        split += r.in_parts;
        smg_graph_destroy(g);
    }
    printf("%d of %d plans have sums in parts\n", split, f->graphs);
    assert_int_equal(failed, 0);
    assert_true(split > f->graphs / CHECK_ONE_IN / 2);
}

/* How many elements of all axes are beyond something, read as one axis: integers, of a map that has other axes. */
static void counts_in_parts(void **state) {
    static const char text[] =
        "graph counts\ndim b\nx = input f32[b, 40, 24]\nend = fill 0.9 : f32[]\n"
        "size = abs(x)\nbeyond = lt(end, size)\none = cast(beyond) : i32[b, 40, 24]\n"
        "flat = reshape(one) : i32[960*b]\ncount = sum(flat) axis=0 keep\n"
        "number = cast(count) : f32[1]\ny = div(x, number)\noutput y = y\noutput count = count\n";
    static const char *const target[] = {"h200", "careful", "lavapipe"};
    static const int64_t nominal[] = {4}, symbols[][1] = {{4}, {3}};
    fixture *f = *state;
    smg_graph *g;
    int failed = 0;
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "counts", &g), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(target) * SMG_COUNT_OF(symbols); i++) {
        check_result r;
        const check_options o = {.target = target[i / 2],
                                 .symbols = symbols[i % 2],
                                 .tolerance = TOLERANCE,
                                 .plan = {.parts = 3 + (int)i % 2, .nominal = nominal}};
        if (check_plan(f->ctx, g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        failed += !r.pass || !r.in_parts;
    }
    assert_int_equal(failed, 0);
    smg_graph_destroy(g);
}

static void sizes_around_tiles(void **state) {
    static const int64_t size[] = {1, 7, 77, 128};
    fixture *f = *state;
    int failed = 0;
    for (int g = 0; g < f->graphs; g += CHECK_ONE_IN) {
        smg_graph *graph;
        assert_int_equal(check_load(f->ctx, f->graph[g], &graph), SMG_OK);
        for (size_t s = 0; s < SMG_COUNT_OF(size); s++) {
            int count = smg_size_symbol_count(graph->sizes);
            int64_t symbols[4] = {1, 1, 1, 1};
            for (int i = 0; i < count; i++) symbols[i] = i == count - 1 ? size[s] : count > 3 && i < 2 ? 2 : 9;
            if (count == 2) symbols[0] = 2;
            check_options o = {.target = "h200",
                               .symbols = symbols,
                               .tolerance = TOLERANCE,
                               .seed = s,
                               .plan = {.objective = SMG_OBJECTIVE_DISPATCHES}};
            failed += wrong(f, f->graph[g], graph, &o);
            o.target = "lavapipe";
            failed += wrong(f, f->graph[g], graph, &o);
        }
        smg_graph_destroy(graph);
    }
    assert_int_equal(failed, 0);
}

/* ---- kernel counts ----------------------------------------------------------------------------- */

static int count_steps_on(fixture *f, const char *target_name, const char *name, const smg_plan_options *options) {
    smg_graph *graph;
    smg_target target;
    smg_plan *plan;
    const char *path = smg_arena_format(f->arena, "tests/graphs/%s.smg", name);
    assert_int_equal(check_load(f->ctx, path, &graph), SMG_OK);
    assert_int_equal(check_target(f->ctx, target_name, &target), SMG_OK);
    assert_int_equal(smg_plan_make(graph, &target, options, f->arena, &plan), SMG_OK);
    int steps = plan->steps.count;
    smg_graph_destroy(graph);
    return steps;
}

static int count_steps(fixture *f, const char *name, const smg_plan_options *options) {
    return count_steps_on(f, "h200", name, options);
}

static void one_kernel_each(void **state) {
    static const char *const name[] = {"softmax",       "layernorm",       "rmsnorm",           "logsumexp",
                                       "cross_entropy", "attention",       "gelu_tanh",         "linear_gelu",
                                       "softmax_gemm",  "attention_views", "attention_guarded", "guarded_quotients"};
    fixture *f = *state;
    smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    for (size_t i = 0; i < SMG_COUNT_OF(name); i++) {
        int steps = count_steps(f, name[i], &fewest);
        if (steps != 1) printf("%s: %d kernels\n", name[i], steps);
        assert_int_equal(steps, 1);
    }
}

/* ---- prices ------------------------------------------------------------------------------------ */

static double price_of(fixture *f, const smg_graph *g, const smg_target *t, const smg_plan_options *options) {
    smg_arena *arena;
    smg_plan *plan;
    double seconds = 0;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    assert_int_equal(smg_plan_make(g, t, options, arena, &plan), SMG_OK);
    for (int i = 0; i < plan->steps.count; i++) seconds += plan->steps.items[i].price.seconds;
    smg_arena_destroy(arena);
    return seconds;
}

/* Few schedules are lowered, and they are the right ones: of each graph's plan the price is that of the best of all. */
enum { IN_TURNS = 4 }; /* each graph on one of so many targets */

static void count_finds_the_best(void **state) {
    static const char *const target[] = {"h200", "lavapipe", "navi31", "dg2", "bmg", "adreno740", "m1"};
    const smg_plan_options few = {0}, all = {.lowered = INT32_MAX};
    fixture *f = *state;
    int worse = 0;
    for (int i = 0; i < f->graphs; i++) {
        smg_graph *g;
        assert_int_equal(check_load(f->ctx, f->graph[i], &g), SMG_OK);
        for (size_t t = 0; t < SMG_COUNT_OF(target); t++) {
            smg_target device;
            if (!all_cases() && ((size_t)i + t) % IN_TURNS != 0) continue;
            assert_int_equal(check_target(f->ctx, target[t], &device), SMG_OK);
            double best = price_of(f, g, &device, &all), found = price_of(f, g, &device, &few);
            if (found <= COUNT_LOSES * best) continue;
            printf("%s on %s: %g us of the best %g\n", f->graph[i], target[t], found * 1e6, best * 1e6);
            worse++;
        }
        smg_graph_destroy(g);
    }
    assert_int_equal(worse, 0);
}

/* Code of the largest kernel, when no kernel may be more than `budget` operations. */
static int64_t most_code(fixture *f, int64_t budget) {
    smg_graph *g;
    smg_plan *plan;
    smg_target target;
    int64_t nominal[] = {1, 128, 128, 128}, most = 0;
    const smg_plan_options options = {.nominal = nominal};
    assert_int_equal(check_load(f->ctx, "tests/graphs/mlp.smg", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "lavapipe", &target), SMG_OK);
    target.code_budget = budget;
    assert_int_equal(smg_plan_make(g, &target, &options, f->arena, &plan), SMG_OK);
    for (int i = 0; i < plan->steps.count; i++)
        if (plan->steps.items[i].price.operations > most) most = plan->steps.items[i].price.operations;
    smg_graph_destroy(g);
    return most;
}

/* Less is written out, then other schedules are taken; what no schedule does in the budget still gets a kernel. */
static void code_within_budget(void **state) {
    fixture *f = *state;
    int64_t free = most_code(f, INT64_MAX), last = free;
    for (int64_t budget = free - 1; budget > 100; budget /= 2) {
        int64_t most = most_code(f, budget);
        assert_true(most <= last);
        if (budget > 500) assert_true(most <= budget);
        last = most;
    }
    assert_true(last < free);
    assert_true(most_code(f, 1) > 1);
}

/* What reads its rows once in one kernel is one by price too, on every GPU that comes with a table, with few rows or
 * many. */
static void rows_are_one_kernel_by_default(void **state) {
    static const char *const target[] = {"h200", "ampere", "navi31", "dg2", "bmg", "adreno740", "m1"};
    static const char *const name[] = {"softmax", "layernorm", "rmsnorm", "logsumexp", "cross_entropy"};
    static const int64_t sizes[][4] = {{64, 32, 128, 128}, {1, 12, 128, 128}, {8, 16, 1024, 1024}, {4096, 1, 1, 1}};
    fixture *f = *state;
    int failed = 0;
    for (size_t t = 0; t < SMG_COUNT_OF(target); t++) {
        for (size_t i = 0; i < SMG_COUNT_OF(name); i++) {
            for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
                smg_plan_options options = {.objective = SMG_OBJECTIVE_TIME, .nominal = sizes[s]};
                int steps = count_steps_on(f, target[t], name[i], &options);
                if (steps != 1) printf("%s on %s, sizes %d: %d kernels\n", name[i], target[t], (int)s, steps);
                failed += steps != 1;
            }
        }
    }
    assert_int_equal(failed, 0);
}

/* Two products that are only added to each other take the registers of one: as large tiles as one has. */
static void sums_go_on(void **state) {
    static const char text[] = "graph sums\ndim rows max 4096\nx = input f32[rows, 1024]\nh = input f32[rows, 1024]\n"
                               "wx = constant f32[4096, 1024] random seed=1\n"
                               "wh = constant f32[4096, 1024] random seed=2\n"
                               "gx = contract(x, wx) \"ri,gi->rg\"\ngh = contract(h, wh) \"ri,gi->rg\"\n"
                               "both = add(gx, gh)\noutput y = both\n";
    static const int64_t rows[] = {4096};
    fixture *f = *state;
    smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = rows};
    smg_graph *graph;
    smg_target target;
    smg_plan *plan;
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "sums", &graph), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_plan_make(graph, &target, &options, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    assert_in_range(plan->steps.items[0].price.registers, 128, target.registers_lane);
    smg_graph_destroy(graph);
}

/* Where two schedules were too much for the driver, none follows that needs as much. */
static void rejected_registers_are_not_asked_again(void **state) {
    static const char text[] = "graph one\nx = input f32[4096, 1024]\nw = constant f32[4096, 1024] random seed=1\n"
                               "s = contract(x, w) \"ri,gi->rg\"\noutput y = s\n";
    fixture *f = *state;
    smg_choice rejected[2];
    smg_plan_options options = {.driver.rejected = rejected};
    smg_graph *graph;
    smg_target target;
    smg_plan *plan;
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "one", &graph), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(smg_plan_make(graph, &target, &options, f->arena, &plan), SMG_OK);
        rejected[options.driver.rejected_count++] = plan->steps.items[0].choice;
        if (i > 0) assert_true(rejected[1].schedule != rejected[0].schedule);
    }
    int64_t least = rejected[rejected[1].registers < rejected[0].registers].registers;
    assert_int_equal(smg_plan_make(graph, &target, &options, f->arena, &plan), SMG_OK);
    assert_true(plan->steps.items[0].price.registers < least);
    rejected[0].registers = rejected[1].registers = INT64_MAX; /* they were not built: that says nothing of others */
    assert_int_equal(smg_plan_make(graph, &target, &options, f->arena, &plan), SMG_OK);
    for (int i = 0; i < 2; i++) assert_true(plan->steps.items[0].choice.schedule != rejected[i].schedule);
    smg_graph_destroy(graph);
}

/* What cannot be cut goes on with fewer registers each time; also where another node of the same structure, which is
 * priced before it, may have as many. */
static void what_is_alone_takes_fewer(void **state) {
    static const char text[] = "graph four\nx = input f32[1024, 1024]\nw = constant f32[1024, 1024] random seed=1\n"
                               "a = contract(x, w) \"ri,gi->rg\"\nb = contract(a, w) \"ri,gi->rg\"\n"
                               "c = contract(b, w) \"ri,gi->rg\"\nd = contract(c, w) \"ri,gi->rg\"\noutput d = d\n";
    fixture *f = *state;
    smg_choice rejected[4];
    smg_plan_options options = {.driver.rejected = rejected, .max_nodes = 1};
    smg_graph *graph;
    smg_target target;
    smg_plan *plan;
    int64_t least = INT64_MAX;
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "four", &graph), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(smg_plan_make(graph, &target, &options, f->arena, &plan), SMG_OK);
        assert_int_equal(plan->steps.count, 4);
        const smg_choice *choice = &plan->steps.items[2].choice;
        if (i >= 2) assert_true(choice->registers < least);
        if (choice->registers < least) least = choice->registers;
        if (i < 4) rejected[options.driver.rejected_count++] = *choice;
    }
    smg_graph_destroy(graph);
}

/* What turns the halves of queries does not stand between the products of the part beside. */
static void maps_wait_for_their_readers(void **state) {
    fixture *f = *state;
    smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(count_steps(f, "parallel_block", &fewest), 3);
}

static void unfused_is_one_kernel_a_node(void **state) {
    fixture *f = *state;
    smg_plan_options unfused = {.unfused = true};
    assert_int_equal(count_steps(f, "softmax", &unfused), 5);
}

/* What constants alone decide is computed once: the weight in one kernel of the prepare list, no kernel of the run
 * list reads the constants that it came from; a converted weight stays with its reader, an output with every run. */
static void constants_are_prepared(void **state) {
    static const char text[] = "graph g\n"
                               "dim n max 100\n"
                               "x = input f32[n, 64]\n"
                               "h = constant f16[64, 2048]\n"
                               "w = cast(h) : f32[64, 2048]\n"
                               "c = constant f32[64, 2048]\n"
                               "e = exp(c)\n"
                               "a = add(c, e)\n"
                               "p = contract(x, w) \"ni,io->no\" : f32[n, 2048]\n"
                               "q = contract(x, a) \"ni,io->no\" : f32[n, 2048]\n"
                               "y = add(p, q)\n"
                               "z = neg(c)\n"
                               "output y = y\n"
                               "output z = z\n";
    fixture *f = *state;
    smg_graph *g;
    smg_target target;
    smg_plan *plan;
    assert_int_equal(smg_graph_parse(f->ctx, text, sizeof(text) - 1, "text", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    for (int unfused = 0; unfused <= 1; unfused++) {
        const smg_plan_options options = {.unfused = unfused};
        assert_int_equal(smg_plan_make(g, &target, &options, f->arena, &plan), SMG_OK);
        assert_int_equal(plan->prepare.count, 1);
        const smg_pstep *step = &plan->prepare.items[0];
        assert_int_equal(step->node_count, 2);
        assert_string_equal(smg_graph_describe(g, step->nodes[0]), "e");
        assert_string_equal(smg_graph_describe(g, step->nodes[1]), "a");
        int cast_or_z = 0;
        for (int s = 0; s < plan->steps.count; s++) {
            for (int n = 0; n < plan->steps.items[s].node_count; n++) {
                const char *name = smg_graph_describe(g, plan->steps.items[s].nodes[n]);
                assert_true(strcmp(name, "e") != 0 && strcmp(name, "a") != 0);
                cast_or_z += strcmp(name, "w") == 0 || strcmp(name, "z") == 0;
            }
        }
        assert_int_equal(cast_or_z, unfused ? 2 : 1); /* fused, the conversion is part of whatever reads w */
    }
    smg_graph_destroy(g);
}

/* Does a kernel of the run list list the node, or do its readers compute it anew? */
static bool has_kernel(fixture *f, const char *text, const char *name, const char *device, const smg_plan_options *o) {
    smg_graph *g;
    smg_target target;
    smg_plan *plan;
    bool found = false;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(check_target(f->ctx, device, &target), SMG_OK);
    assert_int_equal(smg_plan_make(g, &target, o, f->arena, &plan), SMG_OK);
    for (int s = 0; s < plan->steps.count; s++) {
        for (int n = 0; n < plan->steps.items[s].node_count; n++) {
            found = found || strcmp(smg_graph_describe(g, plan->steps.items[s].nodes[n]), name) == 0;
        }
    }
    smg_graph_destroy(g);
    return found;
}

/* Rows of a table that two products apart from each other read, or something made of them. */
#define ROWS                                                                                                           \
    "graph g\ndim n\nids = input i32[n]\nw = constant f32[1000, 64]\nm = constant f32[64, 64]\nx = gather(w, ids)\n"
#define READ_TWICE(what)                                                                                               \
    "p = contract(" what ", m) \"ni,io->no\"\nt = sum(p) axis=0 keep\nq = div(p, t)\ny = add(q, " what ")\n"           \
    "output y = y\n"

static void a_kernel_or_computed_anew(void **state) {
    static const int64_t few[] = {16}, many[] = {1 << 20};
    fixture *f = *state;
    smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES}, unfused = {.unfused = true};
    smg_plan_options small = {.nominal = few}, large = {.nominal = many};
    assert_false(has_kernel(f, ROWS READ_TWICE("x"), "x", "h200", &fewest));
    assert_false(has_kernel(f, ROWS READ_TWICE("x"), "x", "h200", &small));
    assert_true(has_kernel(f, ROWS READ_TWICE("x"), "x", "h200", &unfused));
    assert_true(has_kernel(f, ROWS READ_TWICE("x"), "x", "careful", &fewest)); /* four bindings */
    assert_true(has_kernel(f, ROWS "output x = x\n" READ_TWICE("x"), "x", "h200", &fewest));
    /* what it is made of comes with it */
    assert_false(has_kernel(f, ROWS "e = erf(x)\n" READ_TWICE("e"), "e", "h200", &small));
    assert_false(has_kernel(f, ROWS "e = erf(x)\n" READ_TWICE("e"), "x", "h200", &small));
    /* arithmetic that takes longer than a kernel and its traffic, or is too much in any case */
    assert_true(has_kernel(f, ROWS "e = erf(x)\n" READ_TWICE("e"), "e", "h200", &large));
    assert_true(has_kernel(f, ROWS "a = erf(x)\nb = erf(a)\nc = erf(b)\nd = erf(c)\ne = erf(d)\n" READ_TWICE("e"), "e",
                           "h200", &fewest));
}

/* A mask of counts: the counts are a kernel's, the mask is made of them where it is read. */
static void computed_anew_from_a_result(void **state) {
    fixture *f = *state;
    char *text;
    size_t size;
    smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES}, unfused = {.unfused = true};
    assert_int_equal(smg_file_read(f->ctx, "tests/graphs/packed_rows.smg", &text, &size), SMG_OK);
    char *ended = smg_arena_format(f->arena, "%.*s", (int)size, text);
    smg_free(f->ctx, text, size + 1);
    assert_non_null(ended);
    assert_false(has_kernel(f, ended, "bias", "h200", &fewest));
    assert_false(has_kernel(f, ended, "same", "h200", &fewest));
    assert_true(has_kernel(f, ended, "text", "h200", &fewest));
    assert_true(has_kernel(f, ended, "bias", "h200", &unfused));
    assert_int_equal(count_steps(f, "packed_rows", &fewest), 3); /* counts, two layers */
}

#define SOFTMAX                                                                                                        \
    "graph s\nx = input f32[4, 8]\nm = reduce_max(x) axis=1 keep\nd = sub(x, m)\ne = exp(d)\n"                         \
    "s = sum(e) axis=1 keep\ny = div(e, s)\noutput y = y\n"

/* The pattern of all that the text computes. */
static const char *pattern_of(fixture *f, const char *text) {
    smg_graph *g;
    smg_text pattern;
    smg_node_id nodes[32];
    int count = 0;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (smg_node_id id = 0; id < g->nodes.count; id++)
        if (smg_node_computes(smg_graph_node(g, id))) nodes[count++] = id;
    smg_text_init(&pattern, f->ctx);
    assert_int_equal(smg_plan_pattern(g, nodes, count, &pattern), SMG_OK);
    const char *kept = smg_arena_string(f->arena, smg_text_cstr(&pattern));
    smg_text_free(&pattern);
    smg_graph_destroy(g);
    return kept;
}

/* Neither sizes nor names, nor which of two branches stands first, nor how many maps there are; but what reads what. */
static void patterns_are_structure(void **state) {
    static const char first[] = "graph a\nx = input f32[4, 8]\nw = input f32[8, 8]\nv = input f32[8, 8]\n"
                                "p = contract(x, w) \"ri,oi->ro\"\nq = contract(x, v) \"ri,oi->ro\"\n"
                                "e = exp(p)\ns = sum(e) axis=1 keep\nt = tanh(q)\ny = mul(t, s)\noutput y = y\n";
    static const char other[] = "graph b\nh = input f32[9, 5]\nk = input f32[7, 5]\nl = input f32[7, 5]\n"
                                "b = contract(h, k) \"ri,oi->ro\"\nt = relu(b)\na = contract(h, l) \"ri,oi->ro\"\n"
                                "n = neg(a)\ne = exp(n)\ns = sum(e) axis=1 keep\ny = mul(s, t)\noutput y = y\n";
    static const char apart[] = "graph c\nx = input f32[4, 8]\nw = input f32[8, 8]\nz = input f32[4, 8]\n"
                                "p = contract(x, w) \"ri,oi->ro\"\nq = contract(z, w) \"ri,oi->ro\"\n"
                                "e = exp(p)\ns = sum(e) axis=1 keep\nt = tanh(q)\ny = mul(t, s)\noutput y = y\n";
    fixture *f = *state;
    const char *pattern = pattern_of(f, first);
    assert_string_equal(pattern, pattern_of(f, other));
    assert_string_equal(pattern, pattern_of(f, apart)); /* a factor that both have, whichever */
    assert_string_not_equal(pattern, pattern_of(f, SOFTMAX));
    assert_string_equal(pattern_of(f, SOFTMAX), "1 reduce_max a; 2 maps 1 3 a; 3 sum 2");
}

static void same_input_same_plan(void **state) {
    fixture *f = *state;
    smg_graph *graph;
    smg_target target;
    smg_text text[2];
    assert_int_equal(check_load(f->ctx, "tests/graphs/mha.smg", &graph), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    for (int i = 0; i < 2; i++) {
        smg_plan *plan;
        smg_text_init(&text[i], f->ctx);
        assert_int_equal(smg_plan_make(graph, &target, NULL, f->arena, &plan), SMG_OK);
        smg_plan_print(plan, &text[i]);
        for (int s = 0; s < plan->steps.count; s++) smg_kernel_print(plan->steps.items[s].kernel, &text[i]);
    }
    assert_string_equal(smg_text_cstr(&text[0]), smg_text_cstr(&text[1]));
    for (int i = 0; i < 2; i++) smg_text_free(&text[i]);
    smg_graph_destroy(graph);
}

/* ---- sums of terms --------------------------------------------------------------------------------- */

static void fill_far(void *user, const smg_node *n, const int64_t *dims, double *data) {
    (void)user;
    for (int64_t i = 0; i < dims[0] * dims[1] && strcmp(n->name, "x") == 0; i++)
        data[i] = (double)(float)(1e4 + sin((double)(i * i % 1013)) + (i % dims[1] == 0 ? 300 : 0));
}

/* A row of any width has its mean and its variance from one pass, without a digit lost where values are far from 0 and
 * the row's first one is far from the others. */
static void variance_in_one_pass(void **state) {
    static const char text[] = "graph norm\ndim n max 100000\nx = input f32[3, n]\nlength = size n : f32[]\n"
                               "total = sum(x) axis=1 keep\nmean = div(total, length)\ncentred = sub(x, mean)\n"
                               "squared = square(centred)\nenergy = sum(squared) axis=1 keep\n"
                               "variance = div(energy, length)\nrate = rsqrt(variance)\ny = mul(centred, rate)\n"
                               "output y = y\noutput variance = variance\n";
    static const char *const target[] = {"h200", "lavapipe", "careful"};
    static const int64_t sizes[][4] = {{4000}, {77}};
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    int failed = 0;
    assert_int_equal(smg_graph_parse(f->ctx, text, sizeof(text) - 1, "norm", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    const smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(smg_plan_make(g, &h200, &fewest, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    assert_non_null(strstr(plan->steps.items[0].because, "energy: made of 3 sums of one pass"));
    assert_null(strstr(plan->steps.items[0].because, "no update"));
    for (size_t t = 0; t < SMG_COUNT_OF(target); t++) {
        for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
            check_options o = {
                .target = target[t], .symbols = sizes[i], .tolerance = 2e-3, .fill = fill_far, .plan = fewest};
            failed += wrong(f, text, g, &o);
        }
    }
    smg_graph_destroy(g);
    assert_int_equal(failed, 0);
}

/* What is reduced over two axes that no workgroup holds, and that do not lie behind each other, is cut into slices of
 * both: one kernel, and each lane's reads agree. */
static void several_axes_in_slices(void **state) {
    static const char text[] = "graph two\ndim b max 100000\ndim n max 100000\nx = input f32[b, 3, n]\n"
                               "most = reduce_max(x) axis=2 keep\nm = reduce_max(most) axis=0 keep\nd = sub(x, m)\n"
                               "e = exp(d)\npart = sum(e) axis=2 keep\ns = sum(part) axis=0 keep\ny = div(e, s)\n"
                               "output s = s\noutput y = y\n";
    static const char *const target[] = {"h200", "lavapipe", "careful"};
    static const int64_t sizes[][4] = {{5, 1100}, {1, 1}};
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    int failed = 0;
    assert_int_equal(smg_graph_parse(f->ctx, text, sizeof(text) - 1, "two", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    const smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(smg_plan_make(g, &h200, &fewest, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    assert_non_null(strstr(plan->steps.items[0].because, "i0 = b: temporal, one by one, tile 1"));
    assert_non_null(strstr(plan->steps.items[0].because, "s: update-then-aggregate"));
    for (size_t t = 0; t < SMG_COUNT_OF(target); t++) {
        for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
            check_options o = {
                .target = target[t], .symbols = sizes[i], .tolerance = TOLERANCE, .by_lane = true, .plan = fewest};
            failed += wrong(f, text, g, &o);
        }
    }
    smg_graph_destroy(g);
    assert_int_equal(failed, 0);
}

/* The sum of squares of a norm is in the loop of the product behind it, which is cut as if it stood alone: of one row
 * lanes share out the contraction. What is stored as well, or is no factor, keeps it out. */
static void statistics_in_the_loop(void **state) {
    static const char norm[] = "graph norm\ndim rows max 512\nx = input f32[rows, 640]\n"
                               "gamma = constant f32[640] random seed=1\nw = constant f32[640, 256] random seed=2\n"
                               "squared = square(x)\nenergy = sum(squared) axis=1 keep\nrate = rsqrt(energy)\n"
                               "normal = mul(x, rate)\ng = mul(normal, gamma)\n";
    static const struct {
        const char *rest;
        bool linear;
    } cases[] = {{"y = contract(g, w) \"ri,io->ro\"\noutput y = y\n", true},
                 {"y = contract(g, w) \"ri,io->ro\"\noutput y = y\noutput g = g\n", false},
                 {"h = tanh(g)\ny = contract(h, w) \"ri,io->ro\"\noutput y = y\n", false}};
    static const int64_t one[] = {1}, some[4] = {5};
    fixture *f = *state;
    smg_target h200;
    int failed = 0;
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        smg_graph *g;
        smg_plan *plan;
        const char *text = smg_arena_format(f->arena, "%s%s", norm, cases[i].rest);
        const smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = one};
        assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "norm", &g), SMG_OK);
        assert_int_equal(smg_plan_make(g, &h200, &fewest, f->arena, &plan), SMG_OK);
        assert_int_equal(plan->steps.count, 1);
        const char *because = plan->steps.items[0].because;
        assert_int_equal(strstr(because, "factors of sums leave the products") != NULL, cases[i].linear);
        if (cases[i].linear) assert_non_null(strstr(because, "contraction over"));
        check_options o = {
            .target = "h200", .symbols = some, .tolerance = TOLERANCE, .by_lane = cases[i].linear, .plan = fewest};
        failed += wrong(f, text, g, &o);
        smg_graph_destroy(g);
    }
    assert_int_equal(failed, 0);
}

/* The divisor of linear attention is a sum along what another product contracts: one kernel, whatever the length. */
static void sums_beside_products(void **state) {
    fixture *f = *state;
    smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(count_steps(f, "linear_attention", &fewest), 1);
}

/* A sum that goes on as the next residual is a result of its own kernel. */
static void results_of_inputs_are_stored_beside(void **state) {
    static const char text[] = "graph r\nx = input f32[40, 300]\nr = input f32[40, 300]\nz = add(x, r)\n"
                               "m = reduce_max(z) axis=1 keep\ny = sub(z, m)\noutput z = z\noutput y = y\n";
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    assert_int_equal(smg_graph_parse(f->ctx, text, sizeof(text) - 1, "r", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    assert_int_equal(smg_plan_make(g, &h200, NULL, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    check_options o = {.target = "h200", .tolerance = TOLERANCE, .by_lane = true};
    const int64_t none[4] = {0};
    o.symbols = none;
    assert_int_equal(wrong(f, text, g, &o), 0);
    smg_graph_destroy(g);
}

/* ---- masks -------------------------------------------------------------------------------------- */

typedef struct mask_fill {
    int kind;      /* 0 left padding, 1 holes, 2 a batch entry with nothing valid */
    double masked; /* 0 in a 0/1 mask, a large negative number in an additive one */
    double valid;
} mask_fill;

static bool is_valid(int kind, int64_t row, int64_t column, int64_t columns) {
    if (kind == 0) return column >= (row * 5 + 3) % columns;
    if (kind == 1) return (column * 7 + row) % 3 != 0;
    return row % 2 == 1;
}

static void fill_mask(void *user, const smg_node *n, const int64_t *dims, double *data) {
    const mask_fill *m = user;
    if (strcmp(n->name, "mask") != 0) return;
    int64_t columns = dims[n->rank - 1], rows = 1;
    for (int d = 0; d < n->rank - 1; d++) rows *= dims[d];
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            data[r * columns + c] = is_valid(m->kind, r, c, columns) ? m->valid : m->masked;
        }
    }
}

static int masked_graph(fixture *f, const char *path, mask_fill m, const int64_t *symbols) {
    static const char *const target[] = {"h200", "lavapipe", "careful"};
    smg_graph *graph;
    int failed = 0;
    assert_int_equal(check_load(f->ctx, path, &graph), SMG_OK);
    for (m.kind = 0; m.kind < 3; m.kind++) {
        for (size_t t = 0; t < SMG_COUNT_OF(target); t++) {
            check_options o = {
                .target = target[t], .symbols = symbols, .tolerance = TOLERANCE, .fill = fill_mask, .user = &m};
            failed += wrong(f, path, graph, &o);
            o.plan.objective = SMG_OBJECTIVE_DISPATCHES;
            failed += wrong(f, path, graph, &o);
        }
    }
    smg_graph_destroy(graph);
    return failed;
}

static void masks(void **state) {
    fixture *f = *state;
    static const int64_t additive[][4] = {{2, 2, 5, 77}, {2, 1, 33, 128}, {1, 2, 1, 7}};
    static const int64_t heads[][2] = {{3, 77}, {2, 7}};
    mask_fill lowest = {.masked = -3.4028234663852886e38}, binary = {.valid = 1};
    int failed = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(additive); i++) {
        failed += masked_graph(f, "tests/graphs/attention.smg", lowest, additive[i]);
        failed += masked_graph(f, "tests/graphs/attention_views.smg", lowest, additive[i]);
    }
    for (size_t i = 0; i < SMG_COUNT_OF(heads); i++) {
        failed += masked_graph(f, "tests/graphs/mha.smg", binary, heads[i]);
    }
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_graph_on_every_target),
        cmocka_unit_test(sizes_around_tiles),
        cmocka_unit_test(sums_in_parts),
        cmocka_unit_test(counts_in_parts),
        cmocka_unit_test(one_kernel_each),
        cmocka_unit_test(unfused_is_one_kernel_a_node),
        cmocka_unit_test(same_input_same_plan),
        cmocka_unit_test(masks),
        cmocka_unit_test(variance_in_one_pass),
        cmocka_unit_test(several_axes_in_slices),
        cmocka_unit_test(statistics_in_the_loop),
        cmocka_unit_test(patterns_are_structure),
        cmocka_unit_test(sums_beside_products),
        cmocka_unit_test(results_of_inputs_are_stored_beside),
        cmocka_unit_test(constants_are_prepared),
        cmocka_unit_test(a_kernel_or_computed_anew),
        cmocka_unit_test(computed_anew_from_a_result),
        cmocka_unit_test(maps_wait_for_their_readers),
        cmocka_unit_test(rows_are_one_kernel_by_default),
        cmocka_unit_test(sums_go_on),
        cmocka_unit_test(rejected_registers_are_not_asked_again),
        cmocka_unit_test(what_is_alone_takes_fewer),
        cmocka_unit_test(code_within_budget),
        cmocka_unit_test(count_finds_the_best),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
