/* Guesses decide which schedules are lowered at all: they foresee what programs come out as, and what is read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/check_plan.h"

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

/* One kernel, whose schedules that fit all have guesses near their prices. */
static void check_near(fixture *f, const char *name, const char *text) {
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .search = true};
    smg_target target;
    smg_graph *g;
    smg_plan *plan;
    int near = 0;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(check_target(f->ctx, name, &target), SMG_OK);
    assert_int_equal(smg_plan_make(g, &target, &options, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    const smg_search *search = plan->steps.items[0].search;
    assert_non_null(search);
    for (int i = 0; i < search->tried.count; i++) {
        const smg_tried *t = &search->tried.items[i];
        if (t->refused != NULL) continue;
        near++;
        if (t->guess < 0.75 * t->price.seconds || t->guess > 1.5 * t->price.seconds)
            fail_msg("on %s %s is guessed at %.2f us, its price is %.2f", name, t->text, 1e6 * t->guess,
                     1e6 * t->price.seconds);
    }
    assert_true(near > 0);
    smg_graph_destroy(g);
}

/* What is subtracted is known at the end of each row: the product is made a second time. */
static void products_are_guessed_for_each_pass(void **state) {
    static const char text[] = "graph again\n"
                               "q = input f32[8, 1024, 128]\n"
                               "k = input f32[8, 2048, 128]\n"
                               "s = contract(q, k) \"bsd,btd->bst\"\n"
                               "top = reduce_max(s) axis=2 keep\n"
                               "d = sub(s, top)\n"
                               "output d = d\n";
    check_near(*state, "h200", text);
    check_near(*state, "navi31", text);
}

static void rows_are_guessed_for_each_pass(void **state) {
    static const char text[] = "graph rows\n"
                               "x = input f32[64, 1048576]\n"
                               "top = reduce_max(x) axis=1 keep\n"
                               "d = sub(x, top)\n"
                               "output d = d\n";
    check_near(*state, "h200", text);
    check_near(*state, "navi31", text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_guessed_for_each_pass),
        cmocka_unit_test(rows_are_guessed_for_each_pass),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
