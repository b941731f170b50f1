/* Workgroups whose loops are unequally long: the long ones come first, and where cores have few of them the one with
 * most to do is what prices count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "plan/plan_internal.h"
#include "support/check_plan.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *graph; /* of the last plan */
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
    smg_graph_destroy(f->graph);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* Keys up to the row's own; or all of them. */
static const char causal[] = "graph causal\ndim b\ndim s max 4096\n"
                             "q = input f32[b, s, 64]\nk = input f32[b, s, 64]\nv = input f32[b, s, 64]\n"
                             "scores = contract(q, k) \"bsd,btd->bst\"\n"
                             "row = iota axis=0 : i32[s, 1]\ncol = iota axis=1 : i32[1, s]\nlate = lt(row, col)\n"
                             "low = fill -inf : f32[]\nmasked = select(late, low, scores)\n"
                             "m = reduce_max(masked) axis=2 keep\nshifted = sub(masked, m)\ne = exp(shifted)\n"
                             "sum = sum(e) axis=2 keep\np = div(e, sum)\no = contract(p, v) \"bst,btd->bsd\"\n"
                             "output o = o\n";

/* The first kernel of the plan with fewest at b and s. */
static const smg_kernel *kernel_of(fixture *f, const char *name, const char *text, const int64_t *sizes,
                                   smg_target *target) {
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = sizes};
    smg_plan *plan;
    smg_graph_destroy(f->graph);
    f->graph = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &f->graph) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(check_target(f->ctx, name, target), SMG_OK);
    assert_int_equal(smg_plan_make(f->graph, target, &options, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    return plan->steps.items[0].kernel;
}

static void long_loops_come_first(void **state) {
    static const char *const targets[] = {"h200", "navi31"};
    const int64_t sizes[] = {12, 1024};
    for (size_t i = 0; i < SMG_COUNT_OF(targets); i++) {
        smg_target target;
        const smg_kernel *k = kernel_of(*state, targets[i], causal, sizes, &target);
        assert_true(k->axes.items[k->grid.items[0]].back);
    }
}

static void few_workgroups_are_uneven(void **state) {
    const int64_t sizes[] = {12, 1024};
    smg_target target;
    const smg_kernel *k = kernel_of(*state, "h200", causal, sizes, &target);
    int64_t workgroups;
    assert_true(smg_kernel_grid(k, sizes, &workgroups));
    plan_uneven u = plan_find_uneven(k, &target, sizes);
    assert_int_equal(u.count, (workgroups + target.cores - 1) / target.cores);
    double all = 0;
    for (int i = 0; i < u.count; i++) {
        if (i > 0) assert_true(u.share[i] <= u.share[i - 1]);
        all += u.share[i];
    }
    assert_true(u.share[0] > 1.5 && u.share[0] < 2); /* the last rows have all keys */
    assert_true(all > (double)workgroups / (double)target.cores);
}

static void many_workgroups_even_out(void **state) {
    const int64_t sizes[] = {1024, 1024};
    smg_target target;
    const smg_kernel *k = kernel_of(*state, "h200", causal, sizes, &target);
    assert_int_equal(plan_find_uneven(k, &target, sizes).count, 0);
}

static void equal_loops_are_even(void **state) {
    const int64_t sizes[] = {12, 1024};
    char text[sizeof causal];
    smg_target target;
    memcpy(text, causal, sizeof causal);
    memcpy(strstr(text, "lt(row, col)"), "lt(row, row)", 12); /* nothing is masked */
    const smg_kernel *k = kernel_of(*state, "h200", text, sizes, &target);
    assert_int_equal(plan_find_uneven(k, &target, sizes).count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_loops_come_first), cmocka_unit_test(few_workgroups_are_uneven),
        cmocka_unit_test(many_workgroups_even_out), cmocka_unit_test(equal_loops_are_even)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
