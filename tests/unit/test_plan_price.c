/* What a core makes of workgroups that wait: others compute meanwhile, where they are on the same schedulers. What a
 * workgroup keeps across barriers has an end on targets that keep it in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "plan/plan_internal.h"
#include "support/check_plan.h"
#include "support/kernel_bench.h"

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

/* Two tiles of four registers, one needed behind the first barrier, the other behind those after it. %s: their scope. */
static const char kept[] =
    "kernel t\nlanes 4 subgroup 2\naxis i = 16 tile 16\nlayout 0 = [i] registers i*4 lanes i*4:4\n"
    "buffer x f32 [16] value 0\nbuffer y f32 [16] value 1 written\n"
    "tile r float register [i] layout 0\ntile u float register [i] layout 0\n"
    "tile s float shared [i]\naccess 0 = x at [0] i*[1]\naccess 1 = y at [0] i*[1]\ncode\n"
    "  set r = load(0)\n  spill s = r\n  barrier\n  set u = add(s, r)\n  barrier%s\n"
    "  spill s = u\n  barrier%s\n  store 1 over [i] layout 0 = add(s, u)\n";

static void what_barriers_keep_has_an_end(void **state) {
    smg_target t = *(const smg_target *)*state;
    for (int own = 0; own < 2; own++) {
        char text[sizeof kept + 32];
        const char *refused, *scope = own ? " subgroup" : "";
        smg_price price;
        bench b;
        (void)snprintf(text, sizeof text, kept, scope, scope);
        bench_open(&b, text);
        int64_t words = smg_kernel_registers_kept(b.k) * b.k->lanes;
        assert_int_equal(words, 4 * (own ? 4 : 4 + 4)); /* subgroups wait for nobody */
        t.registers_kept = words;
        assert_true(plan_fits(b.k, &t, &price, &refused));
        t.registers_kept = words - 1;
        assert_false(plan_fits(b.k, &t, &price, &refused));
        assert_non_null(strstr(refused, "across a barrier"));
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_workgroups_wait_alone),
        cmocka_unit_test(large_workgroups_take_turns),
        cmocka_unit_test(what_barriers_keep_has_an_end),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
