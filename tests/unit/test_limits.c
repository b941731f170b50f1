/* What a plan may be bounded by: bytes of values between kernels, operations of a kernel, what a kernel saves. Plans keep
 * to their limits, are right all the same, and where none does the sentence has the least that would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "support/check_plan.h"

static const char *const graphs[] = {"tests/graphs/linear_residual_layernorm.smg", "tests/graphs/mha.smg",
                                     "tests/graphs/parallel_branches.smg"};

typedef struct fixture {
    smg_context *ctx;
    smg_graph *graph;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_context_destroy(f->ctx);
    return 0;
}

typedef struct outcome {
    smg_status status;
    int64_t live;
    int kernels, most_nodes;
    double least_gain;   /* of kernels of several nodes */
    uint64_t hash;       /* of all schedules */
    bool tells_products; /* some kernel ends because of its products */
} outcome;

static outcome plan(fixture *f, smg_compile_options options) {
    outcome out = {.least_gain = 1};
    smg_target target;
    smg_compilation *c = NULL;
    options.report = true;
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    out.status = smg_compile_plan(f->ctx, f->graph, &target, &options, &c);
    if (out.status != SMG_OK) return out;
    out.live = c->plan->live;
    out.kernels = c->plan->steps.count;
    for (int i = 0; i < out.kernels; i++) {
        const smg_pstep *step = &c->plan->steps.items[i];
        double gain = 1 - step->price.seconds / step->apart.seconds;
        if (step->node_count > out.most_nodes) out.most_nodes = step->node_count;
        if (step->node_count > 1 && gain < out.least_gain) out.least_gain = gain;
        assert_true(step->live <= out.live);
        out.hash = smg_hash_u64(out.hash, step->choice.schedule);
        out.tells_products = out.tells_products || strstr(step->because, " products, a kernel may have ") != NULL;
    }
    smg_compilation_destroy(c);
    return out;
}

/* From the least on there is a plan, up to that of no limit; one byte less than the least is refused with it. */
static void budgets(void **state) {
    fixture *f = *state;
    for (size_t g = 0; g < SMG_COUNT_OF(graphs); g++) {
        char least[64];
        assert_int_equal(check_load(f->ctx, graphs[g], &f->graph), SMG_OK);
        outcome by_time = plan(f, (smg_compile_options){0});
        outcome by_memory = plan(f, (smg_compile_options){.objective = SMG_OBJECTIVE_MEMORY});
        assert_true(by_memory.live <= by_time.live);
        for (int i = 0; i <= 4; i++) {
            int64_t limit = by_memory.live + (by_time.live - by_memory.live) * i / 4;
            outcome o = plan(f, (smg_compile_options){.max_live = limit > 0 ? limit : 1});
            assert_true(o.status == SMG_OK && o.live <= limit);
            if (i == 4) assert_true(o.hash == by_time.hash); /* it is bound to nothing */
        }
        if (by_memory.live > 1) {
            outcome o = plan(f, (smg_compile_options){.max_live = by_memory.live - 1});
            snprintf(least, sizeof(least), " %lld bytes are the least", (long long)by_memory.live);
            assert_int_equal(o.status, SMG_NO_FIT);
            assert_non_null(strstr(smg_context_error(f->ctx), least));
            smg_context_clear_error(f->ctx);
        }
        smg_graph_destroy(f->graph);
    }
}

static void operations(void **state) {
    fixture *f = *state;
    for (size_t g = 0; g < SMG_COUNT_OF(graphs); g++) {
        assert_int_equal(check_load(f->ctx, graphs[g], &f->graph), SMG_OK);
        int before = INT32_MAX;
        for (int most = 1; most <= 16; most *= 4) {
            outcome o = plan(f, (smg_compile_options){.max_nodes = most, .objective = SMG_OBJECTIVE_DISPATCHES});
            assert_true(o.status == SMG_OK && o.most_nodes <= most && o.kernels <= before);
            before = o.kernels;
            outcome again = plan(f, (smg_compile_options){.max_nodes = most, .objective = SMG_OBJECTIVE_DISPATCHES});
            assert_true(again.hash == o.hash);
        }
        smg_graph_destroy(f->graph);
    }
}

/* Products of unequal widths, so that no equal bodies are one kernel however many there are. */
static const char stack[] = "graph stack\ndim rows max 4096\nx = input f32[rows, 64]\n"
                            "w0 = constant f32[48, 64] random seed=1\nw1 = constant f32[64, 48] random seed=2\n"
                            "w2 = constant f32[56, 64] random seed=3\nw3 = constant f32[64, 56] random seed=4\n"
                            "w4 = constant f32[40, 64] random seed=5\nw5 = constant f32[64, 40] random seed=6\n"
                            "w6 = constant f32[32, 64] random seed=7\nw7 = constant f32[64, 32] random seed=8\n"
                            "p0 = contract(x, w0) \"ri,oi->ro\"\np1 = contract(p0, w1) \"ri,oi->ro\"\n"
                            "p2 = contract(p1, w2) \"ri,oi->ro\"\np3 = contract(p2, w3) \"ri,oi->ro\"\n"
                            "p4 = contract(p3, w4) \"ri,oi->ro\"\np5 = contract(p4, w5) \"ri,oi->ro\"\n"
                            "p6 = contract(p5, w6) \"ri,oi->ro\"\np7 = contract(p6, w7) \"ri,oi->ro\"\noutput y = p7\n";

static void products(void **state) {
    static const int least[][2] = {{1, 8}, {3, 3}, {6, 2}, {0, 2}, {8, 1}, {1000, 1}}; /* asked for; kernels */
    fixture *f = *state;
    assert_int_equal(smg_graph_parse(f->ctx, stack, strlen(stack), "stack", &f->graph), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(least); i++) {
        outcome o = plan(f, (smg_compile_options){.max_products = least[i][0], .objective = SMG_OBJECTIVE_DISPATCHES});
        assert_int_equal(o.status, SMG_OK);
        assert_int_equal(o.kernels, least[i][1]);
        assert_true(o.tells_products == (o.kernels > 1));
    }
    smg_graph_destroy(f->graph);
}

static void gains(void **state) {
    fixture *f = *state;
    for (size_t g = 0; g < SMG_COUNT_OF(graphs); g++) {
        assert_int_equal(check_load(f->ctx, graphs[g], &f->graph), SMG_OK);
        outcome any = plan(f, (smg_compile_options){0});
        for (double least = 0.25; least < 1; least += 0.25) {
            outcome o = plan(f, (smg_compile_options){.min_gain = least});
            assert_int_equal(o.status, SMG_OK);
            assert_true(o.least_gain >= least - 1e-9);
            assert_true(o.kernels >= any.kernels);
        }
        smg_graph_destroy(f->graph);
    }
}

/* Smaller groups give the same numbers. */
static void results(void **state) {
    static const int64_t symbols[] = {2, 9, 5, 3};
    static const smg_plan_options limits[] = {
        {.objective = SMG_OBJECTIVE_MEMORY}, {.max_nodes = 3}, {.min_gain = 0.5}, {.max_live = 1, .or_least = true}};
    fixture *f = *state;
    for (size_t g = 0; g < SMG_COUNT_OF(graphs); g++) {
        assert_int_equal(check_load(f->ctx, graphs[g], &f->graph), SMG_OK);
        const check_options o = {
            .target = "careful", .symbols = symbols, .tolerance = 2e-5, .plan = limits[g % SMG_COUNT_OF(limits)]};
        check_result r;
        if (check_plan(f->ctx, f->graph, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        assert_true(r.pass);
        smg_graph_destroy(f->graph);
    }
}

static void nonsense(void **state) {
    fixture *f = *state;
    static const struct {
        smg_model_desc desc;
        const char *told;
    } rows[] = {
        {{.max_memory = -1}, "max_memory is -1"},
        {{.max_fused_ops = -2}, "max_fused_ops is -2"},
        {{.max_fused_products = -3}, "max_fused_products is -3"},
        {{.min_gain = -1}, "min_gain is -1"},
        {{.min_gain = 100}, "min_gain is 100"},
        {{.goal = (smg_goal)3}, "3 is no goal"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        assert_int_equal(smg_desc_check(f->ctx, &rows[i].desc), SMG_INVALID);
        assert_non_null(strstr(smg_context_error(f->ctx), rows[i].told));
        smg_context_clear_error(f->ctx);
    }
    const smg_model_desc good = {.goal = SMG_GOAL_MEMORY, .max_memory = 1, .max_fused_ops = 1, .min_gain = 99.5};
    assert_int_equal(smg_desc_check(f->ctx, &good), SMG_OK);
    const smg_compile_options o = smg_compile_options_of(&good);
    assert_true(o.objective == SMG_OBJECTIVE_MEMORY && o.max_live == 1 && o.max_nodes == 1 && o.min_gain == 0.995);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(budgets, setup, teardown),
        cmocka_unit_test_setup_teardown(operations, setup, teardown),
        cmocka_unit_test_setup_teardown(products, setup, teardown),
        cmocka_unit_test_setup_teardown(gains, setup, teardown),
        cmocka_unit_test_setup_teardown(results, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
