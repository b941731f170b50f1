/* Memory runs out while the run list for another range of sizes is planned, compiled and taken over: the run fails with
 * MEMORY, and the same model then runs those sizes, and the ones before, rightly. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/fault.h"

#if SMG_VULKAN
static const char text[] = "graph layer\n"
                           "dim n max 512\n"
                           "x = input f32[n, 16]\n"
                           "w = constant f32[24, 16] random seed=1\n"
                           "v = constant f32[16, 24] random seed=2\n"
                           "p = contract(x, w) \"ni,oi->no\"\n"
                           "r = relu(p)\n"
                           "q = contract(r, v) \"ni,oi->no\"\n"
                           "y = add(q, x)\n"
                           "output y = y\n";

static const int64_t nominal[] = {32}, other[] = {500};

typedef struct scene {
    smg_source source;
    smg_vk_device *device;
    smg_model *model;
    smg_arena *arena;
} scene;

static smg_status run(scene *s, const int64_t *rows) {
    smg_tensor x, y = {.name = "y"};
    smg_check check;
    smg_context *ctx = s->source.ctx;
    SMG_TRY(smg_tensor_fill(ctx, s->source.graph, 0, rows, SMG_FILL_RANDOM, 1, s->arena, &x));
    SMG_TRY(smg_model_run(s->model, &x, 1, &y, 1));
    SMG_TRY(smg_compile_check(ctx, s->source.graph, (smg_roundings){0}, rows, &x, 1, &y, s->arena, &check));
    return check.pass ? SMG_OK : smg_fail(ctx, SMG_INTERNAL, "%lld rows: the check fails", (long long)*rows);
}

static void prepare(smg_context *ctx, void *user) {
    scene *s = user;
    const smg_dim dims[] = {{"n", 32}};
    const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true, .dims = dims, .dim_count = 1};
    *s = (scene){.source = {.ctx = ctx, .owns_graph = true}};
    assert_int_equal(smg_arena_create(ctx, &s->arena), SMG_OK);
    assert_int_equal(smg_graph_parse(ctx, text, sizeof(text) - 1, "text", &s->source.graph), SMG_OK);
    assert_int_equal(smg_vk_open(ctx, NULL, 0, &s->device), SMG_OK);
    ((smg_target *)smg_vk_target(s->device))->cores = 64; /* so that 32 rows do not fill it */
    assert_int_equal(smg_model_open_source(ctx, &s->source, s->device, &desc, &s->model), SMG_OK);
    assert_true(smg_compile_choose(smg_model_compilation(s->model), other) > 0);
    assert_int_equal(run(s, nominal), SMG_OK);
}

static smg_status body(smg_context *ctx, void *user) {
    scene *s = user;
    smg_status status = run(s, other);
    if (status == SMG_MEMORY) { /* once refused, now there */
        smg_context_clear_error(ctx);
        if (run(s, other) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        assert_int_equal(smg_program_variant(smg_model_program(s->model)),
                         smg_compile_choose(smg_model_compilation(s->model), other));
        assert_int_equal(run(s, nominal), SMG_OK);
    }
    smg_model_close(s->model);
    smg_vk_close(s->device);
    smg_arena_destroy(s->arena);
    smg_source_close(&s->source);
    return status == SMG_MEMORY ? SMG_OK : status;
}

static void lists_survive_refusals(void **state) {
    const char *folder = getenv("SMG_CACHE_DIR");
    const fault_sweep sweep = {.prepare = prepare,
                               .body = body,
                               .user = *state,
                               .stride = 97,
                               .cache_dir = folder != NULL ? folder : "",
                               .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}
#endif

int main(void) {
#if SMG_VULKAN
    static scene s;
    setenv("SMG_VALIDATION", "0", 1); /* devices are opened again and again */
    device_compiles_plainly();
    smg_context *ctx = NULL;
    smg_vk_device *device = NULL;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 1;
    smg_status status = smg_vk_open(ctx, NULL, 0, &device);
    bool missing = device_missing(ctx, status);
    smg_vk_close(device);
    smg_context_destroy(ctx);
    if (missing || status != SMG_OK) return device_result(status == SMG_NOT_FOUND ? 0 : 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(lists_survive_refusals, &s)};
    return cmocka_run_group_tests_name("variants_memory", tests, NULL, NULL);
#else
    return 77;
#endif
}
