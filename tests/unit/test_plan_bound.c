/* Segments that guesses put far above a way that is known get no price: plans are the same as where all of them have
 * one, which they do for whoever asks how schedules were found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/check_plan.h"

#define LIMIT 64

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

static bool same_step(const smg_pstep *a, const smg_pstep *b) {
    return a->choice.nodes == b->choice.nodes && a->choice.at == b->choice.at &&
           a->choice.schedule == b->choice.schedule && a->price.seconds == b->price.seconds &&
           strcmp(a->because, b->because) == 0;
}

static bool same_plans(const smg_plan *a, const smg_plan *b) {
    bool same = a->steps.count == b->steps.count && a->prepare.count == b->prepare.count;
    for (int i = 0; same && i < a->steps.count; i++) same = same_step(&a->steps.items[i], &b->steps.items[i]);
    for (int i = 0; same && i < a->prepare.count; i++) same = same_step(&a->prepare.items[i], &b->prepare.items[i]);
    return same;
}

static void plan(fixture *f, const smg_graph *g, const smg_target *target, bool all, smg_plan **out) {
    const smg_plan_options options = {.search = all};
    assert_int_equal(smg_plan_make(g, target, &options, f->arena, out), SMG_OK);
}

/* How many segments have a price in one and none in the other. */
static int compare(fixture *f, const char *path, const char *name, const smg_graph *g, int *io_failed) {
    smg_target target;
    smg_plan *bounded, *all;
    assert_int_equal(check_target(f->ctx, name, &target), SMG_OK);
    plan(f, g, &target, false, &bounded);
    plan(f, g, &target, true, &all);
    bool same = same_plans(bounded, all);
    if (!same) printf("%s on %s: another plan where all segments have a price\n", path, name);
    *io_failed += !same;
    return all->breadth.possible - bounded->breadth.possible;
}

static void plans_are_the_same(void **state) {
    static const char *const targets[] = {"h200", "lavapipe", "navi31", "adreno740"};
    fixture *f = *state;
    const char *path[LIMIT];
    int failed = 0, without = 0, count = check_list(f->arena, "tests/graphs", ".smg", path, LIMIT);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) without += compare(f, path[i], targets[t], g, &failed);
        smg_graph_destroy(g);
    }
    assert_int_equal(failed, 0);
    assert_true(without > 0);
}

static double seconds_of(const smg_plan *plan) {
    double seconds = 0;
    for (int i = 0; i < plan->steps.count; i++) seconds += plan->steps.items[i].price.seconds;
    return seconds;
}

/* A kernel's best schedule is found where the search ends early because guesses tell that the others are dearer. */
static void few_prices_suffice(void **state) {
    static const char *const targets[] = {"h200", "lavapipe", "navi31", "adreno740"};
    const smg_plan_options all_of_them = {.lowered = SMG_PLAN_LOWERED};
    fixture *f = *state;
    const char *path[LIMIT];
    int count = check_list(f->arena, "tests/graphs", ".smg", path, LIMIT);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
            smg_target target;
            smg_plan *few, *enough;
            assert_int_equal(check_target(f->ctx, targets[t], &target), SMG_OK);
            plan(f, g, &target, false, &few);
            assert_int_equal(smg_plan_make(g, &target, &all_of_them, f->arena, &enough), SMG_OK);
            if (seconds_of(few) > 1.005 * seconds_of(enough))
                fail_msg("%s on %s: %.2f us, and %.2f by more prices", path[i], targets[t], 1e6 * seconds_of(few),
                         1e6 * seconds_of(enough));
        }
        smg_graph_destroy(g);
    }
}

/* Where somebody bounds a kernel's nodes, however large, every place is looked at. */
static smg_status plan_with_all_places(fixture *f, const smg_graph *g, const smg_target *target, smg_plan **out) {
    const smg_plan_options options = {.max_nodes = 1000};
    return smg_plan_make(g, target, &options, f->arena, out);
}

static void cuts_inside_of_chains_do_not_pay(void **state) {
    static const char *const targets[] = {"h200", "lavapipe", "navi31", "adreno740"};
    fixture *f = *state;
    const char *path[LIMIT];
    int chained = 0, count = check_list(f->arena, "tests/graphs", ".smg", path, LIMIT);
    for (int i = 0; i < count; i++) {
        smg_graph *g;
        assert_int_equal(check_load(f->ctx, path[i], &g), SMG_OK);
        for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
            smg_target target;
            smg_plan *without, *all;
            assert_int_equal(check_target(f->ctx, targets[t], &target), SMG_OK);
            plan(f, g, &target, false, &without);
            assert_int_equal(plan_with_all_places(f, g, &target, &all), SMG_OK);
            assert_int_equal(all->breadth.inside, 0);
            chained += without->breadth.inside;
            if (seconds_of(without) > 1.005 * seconds_of(all))
                fail_msg("%s on %s: %.2f us, and %.2f with cuts inside of chains", path[i], targets[t],
                         1e6 * seconds_of(without), 1e6 * seconds_of(all));
        }
        smg_graph_destroy(g);
    }
    assert_true(chained > 0);
}

static void text_add_map(char *text, size_t size, int i) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "b%d = input f32[64, 512]\nm%d = add(m%d, b%d)\n", i, i, i - 1, i);
}

/* A chain that reads more tensors than a kernel has bindings is cut between its maps. */
static void long_chains_are_cut(void **state) {
    fixture *f = *state;
    char text[8192] = "graph long\nm0 = input f32[64, 512]\n";
    smg_target target;
    smg_graph *g;
    smg_plan *plan_;
    for (int i = 1; i <= 60; i++) text_add_map(text, sizeof text, i);
    strcat(text, "output y = m60\n");
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "long", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "lavapipe", &target), SMG_OK);
    target.max_bindings = 16;
    plan(f, g, &target, false, &plan_);
    assert_true(plan_->breadth.inside > 0);
    assert_in_range(plan_->steps.count, 5, 12);
    smg_graph_destroy(g);
}

#define ATTENTION(shape, mask, masked)                                                                                 \
    "graph attention\n"                                                                                                \
    "q = input f32" shape "\n"                                                                                         \
    "k = input f32" shape "\n"                                                                                         \
    "v = input f32" shape "\n"                                                                                         \
    "s = contract(q, k) \"bhsd,bhtd->bhst\"\n" mask "top = reduce_max(" masked ") axis=3 keep\n"                       \
    "d = sub(" masked ", top)\n"                                                                                       \
    "e = exp(d)\n"                                                                                                     \
    "sum = sum(e) axis=3 keep\n"                                                                                       \
    "p = div(e, sum)\n"                                                                                                \
    "o = contract(p, v) \"bhst,bhtd->bhsd\"\n"                                                                         \
    "output o = o\n"

static const char attention[] = ATTENTION("[8, 12, 1024, 64]", "", "s");

/* Loops leave half of their steps out. */
static const char causal[] = ATTENTION("[4, 16, 256, 64]",
                                       "row = iota axis=0 : i32[256, 1]\n"
                                       "column = iota axis=1 : i32[1, 256]\n"
                                       "keep = ge(row, column)\n"
                                       "lowest = fill -3.4028234663852886e+38 : f32[]\n"
                                       "masked = select(keep, s, lowest)\n",
                                       "masked");

/* Of few rows, whose sums are in parts. */
static const char few_rows[] = ATTENTION("[1, 12, 1024, 64]", "", "s");
static const char long_rows[] = "graph rows\n"
                                "x = input f32[4, 1048576]\n"
                                "n = fill 1048576 : f32[]\n"
                                "sum = sum(x) axis=1 keep\n"
                                "mean = div(sum, n)\n"
                                "d = sub(x, mean)\n"
                                "q = square(d)\n"
                                "all = sum(q) axis=1 keep\n"
                                "r = rsqrt(all)\n"
                                "y = mul(d, r)\n"
                                "output y = y\n";

/* Where all of it is one kernel, bytes and multiply-adds tell of most other segments that they are of no use. */
static void few_segments_beside_one_kernel(void **state) {
    static const char *const texts[] = {attention, causal};
    fixture *f = *state;
    smg_target target;
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g;
        smg_plan *bounded, *all;
        assert_int_equal(smg_graph_parse(f->ctx, texts[i], strlen(texts[i]), "attention", &g), SMG_OK);
        plan(f, g, &target, false, &bounded);
        plan(f, g, &target, true, &all);
        assert_int_equal(bounded->steps.count, 1);
        assert_true(same_plans(bounded, all));
        assert_in_range(bounded->breadth.segments, 1, all->breadth.segments / 3);
        smg_graph_destroy(g);
    }
}

static int count_parts(const smg_plan *plan) {
    int parts = 0;
    for (int i = 0; i < plan->splits.count; i++) parts += plan->splits.items[i].chunk > 0;
    return parts;
}

static void other_cuts_of_parts_do_not_pay(void **state) {
    static const char *const texts[] = {few_rows, long_rows};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g;
        smg_target target;
        smg_plan *few, *all;
        assert_int_equal(smg_graph_parse(f->ctx, texts[i], strlen(texts[i]), "text", &g), SMG_OK);
        assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
        plan(f, g, &target, false, &few);
        assert_int_equal(plan_with_all_places(f, g, &target, &all), SMG_OK);
        assert_true(count_parts(few) > 0 && count_parts(few) == count_parts(all));
        assert_true(few->breadth.inside > 0 && few->breadth.segments < all->breadth.segments);
        if (seconds_of(few) > 1.005 * seconds_of(all))
            fail_msg("%.2f us, and %.2f with other cuts", 1e6 * seconds_of(few), 1e6 * seconds_of(all));
        smg_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_the_same),
                                       cmocka_unit_test(cuts_inside_of_chains_do_not_pay),
                                       cmocka_unit_test(long_chains_are_cut),
                                       cmocka_unit_test(few_segments_beside_one_kernel),
                                       cmocka_unit_test(other_cuts_of_parts_do_not_pay),
                                       cmocka_unit_test(few_prices_suffice)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
