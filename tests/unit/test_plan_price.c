/* What a core makes of workgroups that wait: others compute meanwhile, where they are on the same schedulers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan_internal.h"
#include "support/check_plan.h"

static int setup(void **state) {
    static smg_target target;
    smg_context *ctx;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(check_target(ctx, "h200", &target), SMG_OK);
    smg_context_destroy(ctx);
    *state = &target;
    return 0;
}

#define WAIT 50e-6

/* Seconds that so many workgroups of each core take longer when each of them waits for WAIT. */
static double longer(const smg_target *t, double lanes, double of_core, bool staged) {
    plan_counts c = {.lanes = lanes, .workgroups = of_core * (double)t->cores, .slots = 1e7, .staged = staged};
    const smg_price needs = {.registers = 32};
    double without = plan_seconds(t, &c, &needs);
    c.wait = WAIT;
    return plan_seconds(t, &c, &needs) - without;
}

static double longer_with_wait(const smg_target *t, double lanes, double of_core) {
    return longer(t, lanes, of_core, false);
}

/* Two of half as many lanes as a core runs at a time have half of its schedulers each. */
static void small_workgroups_wait_alone(void **state) {
    const smg_target *t = *state;
    double lanes = plan_width(t);
    assert_float_equal(longer_with_wait(t, lanes / 2, 1), WAIT, 1e-9);
    assert_float_equal(longer_with_wait(t, lanes / 2, 2), WAIT, 1e-9);
    assert_float_equal(longer_with_wait(t, lanes / 4, 4), WAIT, 1e-9);
    assert_true(longer(t, lanes / 2, 4, true) < 0.8 * WAIT);
    assert_true(longer(t, lanes / 2, 4, false) < longer(t, lanes / 2, 4, true));
}

static void large_workgroups_take_turns(void **state) {
    const smg_target *t = *state;
    double lanes = plan_width(t);
    assert_float_equal(longer_with_wait(t, lanes, 1), WAIT, 1e-9);
    assert_true(longer_with_wait(t, lanes, 2) < 0.8 * WAIT);
    assert_true(longer_with_wait(t, 2 * lanes, 2) < 0.8 * WAIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_workgroups_wait_alone),
        cmocka_unit_test(large_workgroups_take_turns),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
