/* Sizes that a plan assumes by itself: small, but every extent of the graph has elements at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "target/target.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){.ctx = NULL};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void open_graph(fixture *f, const char *text) {
    if (smg_graph_parse(f->ctx, text, strlen(text), "test", &f->g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* Two strided convolutions over one channel: floor(s/10) - 1 places are left. */
static const char strided[] = "dim b\ndim s\nx = input f32[b, s]\nw = constant f32[10] random seed=1\n"
                              "v = constant f32[3] random seed=2\n"
                              "i = window(x) axis=1 begin=0 step=5 dilation=1 fill=0 : f32[b, floor(s/5)-1, 10]\n"
                              "y = contract(i, w) \"bsk,k->bs\"\n"
                              "j = window(y) axis=1 begin=0 step=2 dilation=1 fill=0 : f32[b, floor(s/10)-1, 3]\n"
                              "z = contract(j, v) \"bsk,k->bs\"\noutput z = z\n";

static void extents_have_elements(void **state) {
    fixture *f = *state;
    int64_t values[2] = {0, 0};
    open_graph(f, strided);
    smg_plan_nominal(f->g, values);
    assert_int_equal(values[0], 1);
    assert_in_range(values[1], 20, 128);
}

static void bounds_are_kept(void **state) {
    fixture *f = *state;
    int64_t value = 0;
    open_graph(f, "dim s max 3\nx = input f32[s]\ny = exp(x)\noutput y = y\n");
    smg_plan_nominal(f->g, &value);
    assert_int_equal(value, 3);
}

/* No size that the bound allows leaves an element: refused with a sentence, not planned. */
static void nothing_is_left(void **state) {
    fixture *f = *state;
    smg_target target;
    smg_plan *plan = NULL;
    open_graph(f, strided);
    smg_size_symbol_set_max(f->g->sizes, smg_size_symbol_find(f->g->sizes, "s"), 7);
    assert_int_equal(smg_target_named(f->ctx, "careful", &target), SMG_OK);
    smg_status status = smg_plan_make(f->g, &target, NULL, f->arena, &plan);
    assert_true(status == SMG_NO_FIT || status == SMG_INVALID);
    assert_true(smg_context_error(f->ctx)[0] != '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(extents_have_elements, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
