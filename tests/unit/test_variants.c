/* Run lists for ranges of sizes: which ranges a target gets, that guards cover every size once, and that the lists give
 * the reference's value, in the interpreter and on the device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"

static const char text[] = "graph layer\n"
                           "dim b\ndim s max 512\n"
                           "x = input f32[b, s, 16]\n"
                           "w = constant f32[24, 16] random seed=1\n"
                           "v = constant f32[16, 24] random seed=2\n"
                           "p = contract(x, w) \"bsi,oi->bso\"\n"
                           "r = relu(p)\n"
                           "q = contract(r, v) \"bsi,oi->bso\"\n"
                           "y = add(q, x)\n"
                           "output y = y\n";

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_graph_parse(f.ctx, text, sizeof(text) - 1, "text", &f.g), SMG_OK);
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

static smg_compilation *compile(fixture *f, const char *name, const smg_dim *dims, int count) {
    smg_target target;
    smg_compilation *c = NULL;
    const smg_compile_options options = {.dims = dims, .dim_count = count};
    assert_int_equal(smg_target_named(f->ctx, name, &target), SMG_OK);
    if (smg_compile_plan(f->ctx, f->g, &target, &options, &c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return c;
}

/* Behind four plans for the fewest kernels of which some spill. */
static void late_plans_are_for_time(void **state) {
    fixture *f = *state;
    static const char norm[] = "graph norm\ndim rows max 4096\nx = input f32[rows, 1024]\n"
                               "w = input f32[1024, 1024]\nm = reduce_max(x) axis=1 keep\nd = sub(x, m)\n"
                               "y = contract(d, w) \"ri,io->ro\" : f32[rows, 1024]\noutput y = y\n";
    smg_compile_options options[3] = {{.objective = SMG_OBJECTIVE_TIME},
                                      {.objective = SMG_OBJECTIVE_DISPATCHES},
                                      {.objective = SMG_OBJECTIVE_DISPATCHES, .late_plan = true}};
    int steps[3];
    smg_target target;
    smg_graph *g = NULL;
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_graph_parse(f->ctx, norm, strlen(norm), "norm", &g), SMG_OK);
    for (int i = 0; i < 3; i++) {
        smg_compilation *c = NULL;
        if (smg_compile_plan(f->ctx, g, &target, &options[i], &c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        steps[i] = c->plan->steps.count;
        smg_compilation_destroy(c);
    }
    assert_true(steps[1] < steps[0]);
    assert_int_equal(steps[2], steps[0]);
    smg_graph_destroy(g);
}

static void guards_cover_every_size_once(void **state) {
    fixture *f = *state;
    static const char *const targets[] = {"h200", "lavapipe", "adreno740", "careful"};
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        smg_compilation *c = compile(f, targets[t], NULL, 0);
        assert_true(c->variant_count >= 1 && c->variant_count <= SMG_MAX_VARIANTS);
        for (int64_t b = 1; b < 3000; b += b / 3 + 1) {
            const int64_t values[2] = {b, 37};
            int serving = 0;
            for (int i = 0; i < c->variant_count; i++) {
                serving += c->variants[i].low <= b * 37 && b * 37 <= c->variants[i].high;
            }
            assert_int_equal(serving, 1);
            int chosen = smg_compile_choose(c, values);
            assert_true(c->variants[chosen].low <= b * 37 && b * 37 <= c->variants[chosen].high);
        }
        smg_compilation_destroy(c);
    }
}

static void a_large_device_gets_three(void **state) {
    fixture *f = *state;
    smg_compilation *c = compile(f, "h200", NULL, 0);
    assert_int_equal(c->variant_count, 3);
    assert_int_equal(smg_compile_choose(c, (int64_t[]){1, 128}), 0);
    assert_true(smg_compile_choose(c, (int64_t[]){1, 4}) > 0);
    assert_true(smg_compile_choose(c, (int64_t[]){32, 128}) > 0);
    for (int i = 1; i < 3; i++) {
        assert_null(c->variants[i].plan);
        assert_int_equal(smg_compile_choose(c, c->variants[i].nominal), i);
    }
    smg_compilation_destroy(c);
    /* Sizes that fill it need no list for larger ones. */
    const smg_dim large[] = {{"b", 64}, {"s", 512}};
    c = compile(f, "h200", large, 2);
    assert_int_equal(c->variant_count, 1);
    smg_compilation_destroy(c);
}

static void expect_result(fixture *f, const int64_t *symbols, const smg_tensor *x, const smg_tensor *y) {
    smg_check check;
    assert_int_equal(smg_compile_check(f->ctx, f->g, (smg_roundings){0}, symbols, x, 1, y, f->arena, &check), SMG_OK);
    assert_true(check.pass);
}

static const int64_t sizes[][2] = {{1, 3}, {1, 128}, {40, 100}, {2, 5}, {7, 19}};

static void every_list_gives_the_value(void **state) {
    fixture *f = *state;
    smg_compilation *c = compile(f, "h200", NULL, 0);
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        smg_tensor x, y = {0};
        assert_int_equal(smg_tensor_fill(f->ctx, f->g, 0, sizes[i], SMG_FILL_RANDOM, i, f->arena, &x), SMG_OK);
        if (smg_compile_interpret(c, sizes[i], &x, 1, f->arena, &y) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        expect_result(f, sizes[i], &x, &y);
    }
    for (int i = 0; i < c->variant_count; i++) assert_non_null(c->variants[i].plan);
    assert_int_equal(c->variants[1].plan->prepare.count, 0);
    smg_compilation_destroy(c);
}

#if SMG_VULKAN
static void lists_are_made_when_sizes_are_bound(void **state) {
    fixture *f = *state;
    const smg_model_desc desc = {.no_plan_cache = true};
    smg_model *model = NULL;
    smg_status status = smg_model_open_graph(f->ctx, f->g, &desc, &model);
    if (device_missing(f->ctx, status)) skip();
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    smg_compilation *c = smg_model_compilation(model);
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        smg_tensor x, y = {.name = "y"};
        assert_int_equal(smg_tensor_fill(f->ctx, f->g, 0, sizes[i], SMG_FILL_RANDOM, i, f->arena, &x), SMG_OK);
        if (smg_model_run(model, &x, 1, &y, 1) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        expect_result(f, sizes[i], &x, &y);
        int variant = smg_program_variant(smg_model_program(model));
        assert_int_equal(variant, smg_compile_choose(c, sizes[i]));
        assert_true(c->bundle->variants.items[variant].made);
    }
    smg_model_close(model);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_cover_every_size_once),        cmocka_unit_test(late_plans_are_for_time),
        cmocka_unit_test(a_large_device_gets_three),           cmocka_unit_test(every_list_gives_the_value),
#if SMG_VULKAN
        cmocka_unit_test(lists_are_made_when_sizes_are_bound),
#endif
    };
    return device_result(cmocka_run_group_tests_name("variants", tests, setup, teardown));
}
