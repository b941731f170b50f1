/* What a plan says of itself beside its kernels: what they save, what neighbours would be as one, how their schedules were
 * found, and the Space-Mapping Graph with the mappings of the paper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/check_plan.h"

typedef struct fixture {
    smg_context *ctx;
    smg_graph *graph;
    smg_compilation *c;
    smg_text text;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    smg_text_init(&f.text, f.ctx);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_text_free(&f->text);
    smg_compilation_destroy(f->c);
    smg_graph_destroy(f->graph);
    smg_context_destroy(f->ctx);
    return 0;
}

static void compile(fixture *f, smg_compile_options options) {
    smg_target target;
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    if (smg_compile_plan(f->ctx, f->graph, &target, &options, &f->c) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
}

static void load(fixture *f, const char *path, smg_compile_options options) {
    assert_int_equal(check_load(f->ctx, path, &f->graph), SMG_OK);
    compile(f, options);
}

static void parse(fixture *f, const char *text, smg_compile_options options) {
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &f->graph) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    compile(f, options);
}

/* ---- what is saved -------------------------------------------------------------------------------- */

/* A product, and behind it a norm: two kernels by price, the value between them is the product's. */
static void steps_and_neighbours(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/linear_residual_layernorm.smg", (smg_compile_options){.report = true});
    const smg_plan *plan = f->c->plan;
    const int64_t between = 128 * 256 * 4;
    assert_int_equal(plan->steps.count, 2);
    const smg_pstep *product = &plan->steps.items[0], *norm = &plan->steps.items[1];
    assert_int_equal(product->node_count, 1);
    assert_true(fabs(product->apart.seconds - product->price.seconds) <= 1e-12);
    assert_true(fabs(product->apart.bytes - product->price.bytes) <= 1);
    assert_true(product->live == between && norm->live == between && product->apart.live == between);
    assert_true(norm->apart.seconds > norm->price.seconds && norm->apart.bytes > norm->price.bytes);
    assert_true(norm->apart.live > 2 * between && norm->apart.live < 4 * between);
    /* Each node's neighbour may be in its kernel; k1 sees one more, before its first. */
    assert_int_equal(plan->joinable, product->node_count + norm->node_count - 1);
    assert_int_equal(product->joinable, 1);
    assert_int_equal(norm->joinable, norm->node_count);
    assert_true(product->rate == f->c->target.fma_rate);

    assert_int_equal(plan->groupings.count, 1);
    const smg_grouping *both = &plan->groupings.items[0];
    assert_true(both->first == 0 && both->last == 1 && both->places == 1 && both->nodes == 14 && both->live == 0);
    assert_null(both->refused);
    assert_true(fabs(both->seconds - product->joint.seconds) <= 1e-12);
    assert_true(fabs(both->apart - (product->price.seconds + norm->price.seconds)) <= 1e-12);
    assert_true(both->apart_live == between && plan->unpriced == 0);

    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "fusion rate: 12 of the 13 neighbours"));
    assert_non_null(strstr(smg_text_cstr(&f->text), "k0..k1            1   14"));
    assert_non_null(strstr(smg_text_cstr(&f->text), "not known: hit rates of caches"));
    assert_non_null(strstr(smg_text_cstr(&f->text), "measured: 0 of 2 kernels"));
    assert_null(strstr(smg_text_cstr(&f->text), "a run takes"));

    smg_cut ran = {.at = both->at, .seconds = 31e-6, .apart = 24e-6};
    f->c->tuning.tried = &ran;
    f->c->tuning.tried_count = 1;
    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    f->c->tuning.tried_count = 0;
    assert_non_null(strstr(smg_text_cstr(&f->text), "measured: a run takes 31.00 us so, 24.00 us apart"));
}

/* Reasons stand where there is no kernel; what is asked for only is made only then. */
static void what_cannot_be_one(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/mha.smg", (smg_compile_options){.objective = SMG_OBJECTIVE_DISPATCHES, .report = true});
    const smg_plan *plan = f->c->plan;
    assert_int_equal(plan->steps.count, 3);
    assert_int_equal(plan->groupings.count, 3); /* two neighbours, and all in one */
    for (int i = 0; i < 3; i++) assert_non_null(plan->groupings.items[i].refused);
    assert_true(plan->groupings.items[1].first == 0 && plan->groupings.items[1].last == 2);
    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "impossible: no spatial axis serves as rows of every product"));
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){.objective = SMG_OBJECTIVE_DISPATCHES});
    assert_int_equal(f->c->plan->groupings.count, 0);
    assert_true(f->c->plan->steps.items[1].apart.seconds == 0);
    assert_null(f->c->plan->steps.items[1].search);
}

/* Layers that repeat are one row; what the search ends before is counted. */
static void layers(void **state) {
    fixture *f = *state;
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_text_add(&text, "graph layers\nx0 = input f32[64, 512]\n");
    for (int i = 0; i < 8; i++)
        smg_text_addf(&text,
                      "w%d = constant f32[512, 512] random seed=%d scale=0.1\np%d = contract(x%d, w%d) \"ni,io->no\"\n"
                      "x%d = relu(p%d)\n",
                      i, i, i, i, i, i + 1, i);
    smg_text_add(&text, "output y = x8\n");
    parse(f, smg_text_cstr(&text), (smg_compile_options){.report = true});
    smg_text_free(&text);
    const smg_plan *plan = f->c->plan;
    int places = 0, count = plan->steps.count;
    assert_int_equal(count, 8);
    for (int i = 0; i < plan->groupings.count; i++) places += plan->groupings.items[i].places;
    assert_true(plan->groupings.count < places / 2);
    assert_int_equal(places + plan->unpriced, count * (count - 1) / 2);
    assert_int_equal(plan->unpriced, 3);             /* seven and eight products */
    assert_int_equal(plan->breadth.product_ends, 3); /* from the first three operations on */
    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "3 longer runs of kernels, all in one among them, have no price"));
}

/* ---- how schedules were found --------------------------------------------------------------------- */

static void searches(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/linear_residual_layernorm.smg", (smg_compile_options){.search = true});
    for (int i = 0; i < f->c->plan->steps.count; i++) {
        const smg_pstep *step = &f->c->plan->steps.items[i];
        const smg_search *s = step->search;
        int taken = 0, fit = 0;
        double least = HUGE_VAL;
        assert_non_null(s);
        assert_int_equal(s->generated, s->tried.count + s->repeated + s->roomless + s->untried);
        for (int t = 0; t < s->tried.count; t++) {
            const smg_tried *tried = &s->tried.items[t];
            taken += tried->schedule == step->choice.schedule;
            fit += tried->refused == NULL;
            if (tried->refused == NULL && tried->price.seconds < least) least = tried->price.seconds;
            assert_non_null(strstr(tried->text, "lanes "));
        }
        assert_int_equal(taken, 1);
        assert_in_range(fit + s->repeated, s->untried > 0 ? 4 : 1, SMG_PLAN_LOWERED);
        assert_true(fabs(least - step->price.seconds) <= 0.003 * least);
    }
    const smg_breadth *b = &f->c->plan->breadth;
    assert_true(b->nodes == 14 && b->possible > 14 && b->segments >= b->possible && b->long_ends == 0);
    assert_int_equal(smg_compile_explain(f->c, &(smg_explain_options){.phase = "search"}, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "cuts: 14 operations in a line"));
    assert_non_null(strstr(smg_text_cstr(&f->text), " taken  "));
    assert_non_null(strstr(smg_text_cstr(&f->text), "not lowered: the same count has them behind"));
}

/* What a tuning has of a kernel stands beside its prices, with what that is of the device's rates. */
static void measured(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/linear_residual_layernorm.smg", (smg_compile_options){0});
    const smg_choice *choice = &f->c->plan->steps.items[0].choice;
    smg_measured one = {choice->at, choice->schedule, 20e-6, 30e-6};
    const smg_tuning confirmed = {.items = &one, .count = 1};
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){.measured = &confirmed, .search = true});
    const smg_search *s = f->c->plan->steps.items[0].search;
    int other = 0;
    while (s->tried.items[other].schedule == one.schedule) other++;
    smg_timing passes[] = {{one.at, one.schedule, 21e-6, SMG_TIMING_PASSES},
                           {one.at, s->tried.items[other].schedule, 22.25e-6, SMG_TIMING_BEATEN}};
    smg_tuning tuning = {.items = &one, .count = 1, .timings = passes, .timing_count = 2};
    smg_tuning_sort(&tuning);
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){.measured = &tuning, .report = true, .search = true});
    const smg_price *price = &f->c->plan->steps.items[0].price;
    char shares[64];
    snprintf(shares, sizeof(shares), "      20.00 %6.1f%% %6.1f%%      20.00   1.00\n",
             100 * price->bytes / 20e-6 / f->c->target.bandwidth, 100 * price->flops / 20e-6 / f->c->target.fma_rate);
    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), shares));
    assert_non_null(strstr(smg_text_cstr(&f->text), "measured: 1 of 2 kernels"));
    assert_int_equal(smg_compile_report_json(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "\"measured_seconds\": 2e-05, \"bandwidth_share\": "));
    assert_int_equal(smg_compile_explain(f->c, &(smg_explain_options){.phase = "search"}, &f->text), SMG_OK);
    char line[64];
    snprintf(line, sizeof(line), "      20.00  %016llx taken", (unsigned long long)one.schedule);
    assert_non_null(strstr(smg_text_cstr(&f->text), line)); /* what it took in turns */
    assert_true(f->c->plan->steps.items[0].choice.schedule == one.schedule);
    const smg_timing *beaten = passes[0].kind == SMG_TIMING_BEATEN ? &passes[0] : &passes[1];
    snprintf(line, sizeof(line), "      22.25  %016llx ", (unsigned long long)beaten->schedule);
    assert_non_null(strstr(smg_text_cstr(&f->text), line));
}

/* Operations that were measured as kernels of their own: what they took stands beside the kernel that has them all. */
static void measured_apart(void **state) {
    fixture *f = *state;
    smg_measured all[16];
    smg_tuning tuning = {.items = all};
    load(f, "tests/graphs/linear_residual_layernorm.smg", (smg_compile_options){.unfused = true});
    assert_int_equal(f->c->plan->steps.count, 14);
    for (int i = 0; i < 14; i++) {
        const smg_choice *choice = &f->c->plan->steps.items[i].choice;
        bool known = false; /* two multiply one column by a number */
        for (int k = 0; k < tuning.count; k++) known = known || all[k].at == choice->at;
        if (!known) all[tuning.count++] = (smg_measured){choice->at, choice->schedule, 10e-6, 10e-6};
    }
    assert_int_equal(tuning.count, 13);
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){0});
    const smg_choice *fused = &f->c->plan->steps.items[1].choice;
    all[tuning.count++] = (smg_measured){fused->at, fused->schedule, 20e-6, 20e-6};
    const uint64_t last = all[12].at;
    smg_tuning_sort(&tuning);
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){.measured = &tuning, .report = true});
    assert_true(fabs(f->c->plan->steps.items[1].apart.measured - 13 * 10e-6) < 1e-9);
    assert_int_equal(smg_compile_report(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "%     130.00   6.50\n"));
    assert_int_equal(smg_compile_report_json(f->c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), ", \"measured_apart_seconds\": 0.00013, "));
    for (int i = 0; i < tuning.count; i++)
        if (all[i].at == last) all[i].schedule++; /* of another schedule than the one that the price has */
    smg_compilation_destroy(f->c);
    compile(f, (smg_compile_options){.measured = &tuning, .report = true});
    assert_true(f->c->plan->steps.items[1].apart.measured == 0);
    assert_non_null(f->c->plan->steps.items[1].measured);
}

/* ---- the Space-Mapping Graph ---------------------------------------------------------------------- */

static const char mha[] = "graph mha\ndim M max 64\ndim L max 64\nq = input f32[M, 32]\nk = input f32[L, 32]\n"
                          "v = input f32[L, 32]\nqk = contract(q, k) \"mk,lk->ml\"\nmax = reduce_max(qk) axis=1 keep\n"
                          "d = sub(qk, max)\ne = exp(d)\ntotal = sum(e) axis=1 keep\np = div(e, total)\n"
                          "out = contract(p, v) \"ml,ln->mn\"\noutput out = out\n";

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) count++;
    return count;
}

/* SpaceFusion, section 3: the space of attention has 6 One-to-All and 4 All-to-One mappings. */
static void mappings_of_attention(void **state) {
    fixture *f = *state;
    parse(f, mha, (smg_compile_options){.objective = SMG_OBJECTIVE_DISPATCHES});
    assert_int_equal(f->c->plan->steps.count, 1);
    assert_int_equal(smg_compile_dot(f->c, NULL, &f->text), SMG_OK);
    const char *text = smg_text_cstr(&f->text);
    assert_int_equal(count_of(text, "One-to-All("), 6);
    assert_int_equal(count_of(text, "All-to-One("), 4);
    assert_int_equal(count_of(text, ", max)"), 1);
    assert_int_equal(count_of(text, ", add)"), 3);
    assert_int_equal(count_of(text, "subgraph"), 1);
    assert_int_equal(count_of(text, "style=bold"), 0);
    assert_int_equal(count_of(text, "{"), count_of(text, "}"));
    f->text.length = 0;
    assert_int_equal(smg_compile_dot(f->c, "k7", &f->text), SMG_NOT_FOUND);
}

/* A cut is an edge between two clusters, with its reason. */
static void where_it_was_cut(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/mha.smg", (smg_compile_options){.objective = SMG_OBJECTIVE_DISPATCHES});
    assert_int_equal(smg_compile_dot(f->c, NULL, &f->text), SMG_OK);
    const char *text = smg_text_cstr(&f->text);
    assert_int_equal(count_of(text, "subgraph \"cluster_k"), 3);
    assert_int_equal(count_of(text, "style=bold"), 4); /* q, k, v; what attention gives */
    assert_int_equal(count_of(text, "cut before "), 2);
    smg_text_free(&f->text);
    smg_text_init(&f->text, f->ctx);
    assert_int_equal(smg_compile_dot(f->c, "1", &f->text), SMG_OK);
    assert_int_equal(count_of(smg_text_cstr(&f->text), "subgraph"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_and_neighbours, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_one, setup, teardown),
        cmocka_unit_test_setup_teardown(layers, setup, teardown),
        cmocka_unit_test_setup_teardown(searches, setup, teardown),
        cmocka_unit_test_setup_teardown(measured, setup, teardown),
        cmocka_unit_test_setup_teardown(measured_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(mappings_of_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(where_it_was_cut, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
