/* Schedules that the driver makes nothing good of: a kernel that is known to spill and one whose pipeline is not built are
 * planned otherwise, results stay right, and where nothing else is to be had what there is is taken. The same of what is
 * built for sizes that come later: something else serves in its place. Registers that the driver takes count in prices. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/check_plan.h"
#include "support/output.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/driver_leaks.h"
#include "vulkan/vulkan_private.h"

static const char text[] = "graph products\ndim rows max 512\nx = input f32[rows, 65]\n"
                           "w = constant f32[64, 65] random seed=1\np = contract(x, w) \"ri,oi->ro\"\n"
                           "m = reduce_max(p) axis=1 keep\ny = sub(p, m) : f32[rows, 64]\noutput y = y\n";
enum { ROWS = 19, COLUMNS = 64, MOST_ROWS = 512 };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    smg_vk_device *dev;
    smg_model *model;
    smg_dim_range range; /* that it is opened with; high 0: none */
    smg_dim dim;         /* the same */
    bool plan_anew;      /* no plan is looked for, or kept */
    int warnings;
} fixture;

static void count_warnings(void *user, smg_log_level level, const char *text_) {
    fixture *f = user;
    f->warnings += level == SMG_LOG_WARNING && strstr(text_, "is not built by the driver") != NULL;
}

static int begin(void **state, const char *cache) {
    static fixture f;
    const smg_context_desc desc = {.cache_dir = cache, .log = count_warnings, .user = &f};
    f = (fixture){0};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    f.source.ctx = f.ctx;
    assert_int_equal(smg_graph_parse(f.ctx, text, strlen(text), "text", &f.source.graph), SMG_OK);
    *state = &f;
    return 0;
}

static int setup(void **state) {
    return begin(state, "");
}

static int setup_cached(void **state) {
    static char folder[512];
    test_output(folder, sizeof(folder), "smg-replan-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return begin(state, folder);
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->model);
    smg_vk_close(f->dev);
    smg_graph_destroy(f->source.graph);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static bool has_device(fixture *f) {
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &f->dev);
    if (device_missing(f->ctx, status)) return false;
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return true;
}

static smg_status open_model(fixture *f) {
    const smg_model_desc desc = {.no_calibrate = true,
                                 .no_plan_cache = f->plan_anew,
                                 .ranges = &f->range,
                                 .range_count = f->range.high > 0,
                                 .dims = &f->dim,
                                 .dim_count = f->dim.value > 0};
    smg_model_close(f->model);
    f->model = NULL;
    return smg_model_open_source(f->ctx, &f->source, f->dev, &desc, &f->model);
}

/* Runs, compares; gives the number of schedules that the plan does without. */
static int run_and_check(fixture *f, int64_t rows) {
    static float room[MOST_ROWS * COLUMNS];
    smg_tensor x, y = {.name = "y", .data = room, .bytes = sizeof(room)};
    smg_check check;
    smg_status status = smg_tensor_fill(f->ctx, f->source.graph, 0, &rows, SMG_FILL_RANDOM, 3, f->arena, &x);
    if (status == SMG_OK) status = smg_model_run(f->model, &x, 1, &y, 1);
    if (status == SMG_OK)
        status = smg_compile_check(f->ctx, f->source.graph, (smg_roundings){0}, &rows, &x, 1, &y, f->arena, &check);
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(check.pass);
    return smg_model_compilation(f->model)->options.driver.rejected_count;
}

static int open_and_check(fixture *f) {
    if (open_model(f) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return run_and_check(f, ROWS);
}

/* As if the driver had told so when it built the module, in whatever form. */
static void say_spills(fixture *f, const smg_bmodule *module, double spills, double registers) {
    static const uint32_t even = 1;
    for (int constants = 0; constants < 2; constants++) {
        const smg_vk_pipeline_desc desc = {.words = module->words,
                                           .word_count = module->word_count,
                                           .subgroup_size = module->subgroup > 1 ? module->subgroup : 0,
                                           .full_subgroups = module->subgroup > 1,
                                           .constants = &even,
                                           .constant_count = constants};
        uint64_t key = smg_vk_module_key(&desc);
        bool known = false;
        for (int i = 0; i < f->dev->modules.count; i++) {
            if (f->dev->modules.items[i].key != key) continue;
            f->dev->modules.items[i].built = (smg_vk_built){spills, registers, -1, true};
            known = true;
        }
        if (!known)
            assert_int_equal(smg_vk_module_add(f->dev, key, (smg_vk_built){spills, registers, -1, true}), SMG_OK);
    }
}

static void say_all_hold(fixture *f, double registers, double spills) {
    const smg_bundle *bundle = smg_model_compilation(f->model)->bundle;
    const smg_bvariant *list = &bundle->variants.items[0];
    for (int i = 0; i < list->run.count; i++)
        say_spills(f, &bundle->modules.items[list->run.items[i].module], spills, registers);
}

static void say_all_spill(fixture *f, double spills) {
    say_all_hold(f, 255, spills);
}

static void a_kernel_that_spills_is_planned_otherwise(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    int before = open_and_check(f);
    smg_choice first = smg_model_compilation(f->model)->plan->steps.items[0].choice;
    double lane = (double)smg_vk_target(f->dev)->registers_lane;
    say_all_spill(f, lane / 4);
    assert_int_equal(open_and_check(f), before); /* too few to matter */
    say_all_spill(f, lane);
    int steps = smg_model_compilation(f->model)->plan->steps.count, rejected = open_and_check(f);
    assert_in_range(rejected, before + 1, before + steps);
    const smg_compilation *c = smg_model_compilation(f->model);
    bool told = false;
    for (int i = 0; i < c->plan->steps.count; i++) {
        assert_true(c->plan->steps.items[i].choice.schedule != first.schedule);
        told = told || strstr(c->plan->steps.items[i].because, "left out") != NULL;
    }
    assert_true(told);
}

/* An array that the driver's compiler leaves in memory. */
static void spilling_as_much_as_it_holds_is_much(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    int before = open_and_check(f);
    double lane = (double)smg_vk_target(f->dev)->registers_lane, few = lane / 4;
    say_all_hold(f, few + 1, few);
    assert_int_equal(open_and_check(f), before);
    say_all_hold(f, few, few);
    assert_true(open_and_check(f) > before);
}

static uint64_t first_words(const fixture *f) {
    const smg_bundle *bundle = smg_model_compilation(f->model)->bundle;
    const smg_bmodule *m = &bundle->modules.items[bundle->variants.items[0].run.items[0].module];
    return smg_hash_bytes(SMG_HASH_SEED, m->words, m->word_count * 4);
}

/* And not the one that was there first. */
static void the_last_plan_is_kept(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    f->plan_anew = true;
    open_and_check(f);
    uint64_t first = first_words(f);
    say_all_spill(f, (double)smg_vk_target(f->dev)->registers_lane);
    f->plan_anew = false;
    assert_true(open_and_check(f) > 0);
    uint64_t last = first_words(f);
    assert_true(last != first);
    assert_int_equal(open_and_check(f), 0);
    assert_true(smg_model_compilation(f->model)->from_cache);
    assert_true(first_words(f) == last);
}

/* Four or fewer plans of a graph for a GPU, whose driver makes that of each kernel. */
static int plans_by_registers(fixture *f, const smg_graph *g, const smg_vk_built *built, double *out_first,
                              double *out_last) {
    smg_compile_options options = {.precision = SMG_TYPE_F16};
    smg_verdicts verdicts;
    smg_target target;
    int plans = 0;
    bool again = true;
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_verdicts_begin(&verdicts, f->arena, &options.driver), SMG_OK);
    while (again) {
        smg_compilation *c = NULL;
        options.driver = smg_verdicts_facts(&verdicts);
        assert_int_equal(smg_compile_plan(f->ctx, g, &target, &options, &c), SMG_OK);
        const smg_pstep *step = &c->plan->steps.items[0];
        *out_last = step->price.seconds;
        if (plans++ == 0) *out_first = *out_last;
        for (int i = 0; i < options.driver.taken_count; i++) {
            if (options.driver.taken[i].schedule != step->choice.schedule) continue;
            assert_int_equal(step->price.taken, (int64_t)built->registers);
            assert_int_equal(step->price.spilled, (int64_t)built->spills);
            assert_non_null(strstr(step->because, "takes"));
            assert_int_equal(strstr(step->because, "spills") != NULL, built->spills > 0);
        }
        for (int i = 0; i < c->plan->steps.count; i++) smg_compile_judge(c, i, built, &verdicts);
        again = smg_verdicts_want_plan(c, &verdicts);
        smg_compilation_destroy(c);
    }
    return plans;
}

static void registers_that_are_taken_and_spilled_count(void **state) {
    static const char product[] = "graph one\nx = input f32[128, 768]\nw = constant f32[2304, 768] random seed=1\n"
                                  "s = contract(x, w) \"ri,gi->rg\"\noutput y = s\n";
    fixture *f = *state;
    smg_graph *g = NULL;
    double first = 0, last = 0;
    assert_int_equal(smg_graph_parse(f->ctx, product, strlen(product), "one", &g), SMG_OK);
    const smg_vk_built few = {0, 64, -1, true}, silent = {-1, 64, -1, true}, other = {0, 255, -1, false},
                       many = {0, 255, -1, true}, spills = {40, 64, -1, true};
    assert_int_equal(plans_by_registers(f, g, &few, &first, &last), 1); /* as many as the price counts on */
    assert_int_equal(plans_by_registers(f, g, &silent, &first, &last), 1);
    assert_int_equal(plans_by_registers(f, g, &other, &first, &last), 1); /* not those of a lane */
    assert_in_range(plans_by_registers(f, g, &many, &first, &last), 2, 4);
    assert_true(last > first);
    assert_in_range(plans_by_registers(f, g, &spills, &first, &last), 2, 4);
    assert_true(last > first);
    smg_graph_destroy(g);
}

/* After some plans what comes out is taken, whatever the driver says. */
static void plans_are_not_made_for_ever(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    int last = -1, rejected = open_and_check(f);
    for (int i = 0; i < 40 && rejected > last; i++) {
        say_all_spill(f, (double)smg_vk_target(f->dev)->registers_lane);
        last = rejected;
        rejected = open_and_check(f);
    }
    assert_int_equal(rejected, last);
}

/* A driver that refuses pipelines of one module, known by its size, or of any. */
static struct {
    PFN_vkCreateShaderModule create_module;
    PFN_vkCreateComputePipelines create;
    size_t bytes; /* of the module's words; 0: of any */
    VkShaderModule module;
    atomic_int failures; /* that are left */
} refusing;

static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkShaderModule *out) {
    VkResult result = refusing.create_module(device, info, callbacks, out);
    if (result == VK_SUCCESS && info->codeSize == refusing.bytes)
        refusing.module = *out;
    else if (*out == refusing.module)
        refusing.module = VK_NULL_HANDLE;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_or_fail(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                     const VkComputePipelineCreateInfo *infos,
                                                     const VkAllocationCallbacks *callbacks, VkPipeline *out) {
    bool meant = refusing.bytes == 0 || infos->stage.module == refusing.module;
    if (meant && atomic_fetch_sub(&refusing.failures, 1) > 0) return VK_ERROR_UNKNOWN;
    return refusing.create(device, cache, count, infos, callbacks, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_nothing(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                     const VkComputePipelineCreateInfo *infos,
                                                     const VkAllocationCallbacks *callbacks, VkPipeline *out) {
    (void)device, (void)cache, (void)count, (void)infos, (void)callbacks, (void)out;
    return VK_ERROR_UNKNOWN;
}

static void refuse(fixture *f, size_t bytes, int failures) {
    refusing.bytes = bytes;
    refusing.module = VK_NULL_HANDLE;
    atomic_store(&refusing.failures, failures);
    refusing.create_module = f->dev->fn.CreateShaderModule;
    refusing.create = f->dev->fn.CreateComputePipelines;
    f->dev->fn.CreateShaderModule = create_module;
    f->dev->fn.CreateComputePipelines = create_or_fail;
}

static void refuse_nothing(fixture *f) {
    f->dev->fn.CreateShaderModule = refusing.create_module;
    f->dev->fn.CreateComputePipelines = refusing.create;
}

/* The kernel itself, or the one that prepares its weights. */
static void a_refusal_is_planned_around(fixture *f, bool prepares) {
    int before = open_and_check(f);
    const smg_bundle *bundle = smg_model_compilation(f->model)->bundle;
    const smg_bstep *step = prepares ? &bundle->prepare.items[0] : &bundle->variants.items[0].run.items[0];
    assert_true(!prepares || bundle->prepare.count > 0);
    refuse(f, bundle->modules.items[step->module].word_count * sizeof(uint32_t), 1);
    assert_int_equal(open_and_check(f), before + 1);
    assert_true(atomic_load(&refusing.failures) <= 0);
    refuse_nothing(f);
    assert_int_equal(open_and_check(f), before); /* what was refused once is tried again */
}

static void a_kernel_that_is_not_built_is_planned_otherwise(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    a_refusal_is_planned_around(f, false);
}

/* It is refused, and what is planned in its place once more. */
static void a_kept_plan_that_is_not_built_is_made_anew(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    assert_int_equal(open_and_check(f), 0);
    assert_int_equal(open_and_check(f), 0);
    const smg_compilation *c = smg_model_compilation(f->model);
    assert_true(c->from_cache);
    uint64_t first = first_words(f);
    refuse(f, c->bundle->modules.items[c->bundle->variants.items[0].run.items[0].module].word_count * 4, 2);
    assert_int_equal(open_and_check(f), 1);
    assert_true(atomic_load(&refusing.failures) <= 0);
    refuse_nothing(f);
    assert_true(first_words(f) != first);
    assert_int_equal(open_and_check(f), 0);
    assert_true(smg_model_compilation(f->model)->from_cache);
    assert_true(first_words(f) != first);
}

static void weights_that_are_not_prepared_are_planned_otherwise(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    a_refusal_is_planned_around(f, true);
}

/* So many pipelines that these rows ask for are refused; gives how many more schedules the plan does without. */
static int run_refused(fixture *f, int failures, int64_t rows) {
    int before = smg_model_compilation(f->model)->options.driver.rejected_count;
    f->warnings = 0;
    refuse(f, 0, failures);
    int after = run_and_check(f, rows);
    assert_true(atomic_load(&refusing.failures) <= 0);
    refuse_nothing(f);
    return after - before;
}

static void a_range_that_is_not_built_is_served_size_by_size(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    open_and_check(f);
    assert_int_equal(smg_model_set_range(f->model, "rows", 1, 63), SMG_OK);
    assert_int_equal(run_refused(f, 1, 40), 0);
    assert_int_equal(f->warnings, 1);
    for (int64_t rows = 1; rows <= 63; rows += 31) run_and_check(f, rows);
}

static void a_list_that_is_not_built_is_not_needed(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    f->dim = (smg_dim){"rows", 8};
    open_and_check(f);
    assert_true(smg_model_compilation(f->model)->variant_count > 1);
    assert_int_equal(run_refused(f, 1, MOST_ROWS), 0);
    assert_int_equal(f->warnings, 1);
    assert_int_equal(smg_program_variant(smg_model_program(f->model)), 0);
    run_and_check(f, MOST_ROWS - 1);
    run_and_check(f, ROWS);
}

/* The only form that these rows ask for. */
static void literals_that_are_not_built_are_pushed(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    const int64_t rows = ROWS;
    smg_program *program = NULL;
    smg_program_memory used;
    f->dim = (smg_dim){"rows", ROWS};
    open_and_check(f);
    const smg_bundle *bundle = smg_model_compilation(f->model)->bundle;
    const smg_bmodule *module = &bundle->modules.items[bundle->variants.items[0].run.items[0].module];
    const smg_program_options options = {.expected = &rows, .literal = true};
    f->warnings = 0;
    refuse(f, (module->word_count + 4) * sizeof(uint32_t), 1);
    assert_int_equal(smg_program_create(f->ctx, bundle, f->dev, &options, &program), SMG_OK);
    assert_true(atomic_load(&refusing.failures) <= 0);
    refuse_nothing(f);
    assert_int_equal(f->warnings, 1);
    smg_program_memory_used(program, &used);
    int before = used.pipelines;
    assert_int_equal(smg_program_bind_sizes(program, &rows), SMG_OK);
    smg_program_memory_used(program, &used);
    assert_int_equal(used.pipelines, before);
    smg_program_destroy(program);
}

/* The model was built for a range: a size alone asks for what nothing serves in place of. */
static void a_kernel_that_is_not_built_later_is_planned_otherwise(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    f->range = (smg_dim_range){"rows", 1, 63};
    open_and_check(f);
    assert_int_equal(smg_model_set_range(f->model, "rows", 0, 0), SMG_OK);
    assert_in_range(run_refused(f, 1, 40), 1, 2);
    run_and_check(f, ROWS);
    run_and_check(f, 77);
}

static void a_driver_that_builds_nothing_later_is_told_of(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    smg_tensor x, y = {.name = "y"};
    const int64_t rows = 40;
    f->range = (smg_dim_range){"rows", 1, 63};
    open_and_check(f);
    assert_int_equal(smg_model_set_range(f->model, "rows", 0, 0), SMG_OK);
    assert_int_equal(smg_tensor_fill(f->ctx, f->source.graph, 0, &rows, SMG_FILL_RANDOM, 3, f->arena, &x), SMG_OK);
    refuse(f, 0, INT32_MAX);
    assert_int_equal(smg_model_run(f->model, &x, 1, &y, 1), SMG_DEVICE);
    assert_non_null(strstr(smg_context_error(f->ctx), "vkCreateComputePipelines"));
    refuse_nothing(f);
    smg_context_clear_error(f->ctx);
    run_and_check(f, rows);
}

static void a_driver_that_builds_nothing_is_told_of(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    int before = open_and_check(f);
    PFN_vkCreateComputePipelines real = f->dev->fn.CreateComputePipelines;
    f->dev->fn.CreateComputePipelines = create_nothing;
    assert_int_not_equal(open_model(f), SMG_OK);
    assert_non_null(strstr(smg_context_error(f->ctx), "vkCreateComputePipelines"));
    f->dev->fn.CreateComputePipelines = real;
    smg_context_clear_error(f->ctx);
    assert_int_equal(open_and_check(f), before);
}

/* Of a plan that is written to a file. */
static void what_is_compiled_ahead_is_built(void **state) {
    fixture *f = *state;
    if (!has_device(f)) skip();
    smg_compile_options options = {0};
    smg_compilation *c = NULL;
    open_and_check(f);
    smg_choice first = smg_model_compilation(f->model)->plan->steps.items[0].choice;
    say_all_spill(f, (double)smg_vk_target(f->dev)->registers_lane);
    for (int judged = 0; judged < 2; judged++) {
        assert_int_equal(
            smg_compile_for_driver(f->ctx, f->source.graph, smg_vk_target(f->dev), f->dev, f->arena, &options, &c),
            SMG_OK);
        assert_true(options.driver.rejected_count > 0);
        assert_true(c->plan->steps.items[0].choice.schedule != first.schedule);
        smg_compilation_destroy(c);
    }
    options = (smg_compile_options){0};
    PFN_vkCreateComputePipelines real = f->dev->fn.CreateComputePipelines;
    f->dev->fn.CreateComputePipelines = create_nothing;
    assert_int_not_equal(
        smg_compile_for_driver(f->ctx, f->source.graph, smg_vk_target(f->dev), f->dev, f->arena, &options, &c), SMG_OK);
    assert_non_null(strstr(smg_context_error(f->ctx), "vkCreateComputePipelines"));
    f->dev->fn.CreateComputePipelines = real;
    smg_compilation_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kernel_that_spills_is_planned_otherwise, setup, teardown),
        cmocka_unit_test_setup_teardown(spilling_as_much_as_it_holds_is_much, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_plan_is_kept, setup_cached, teardown),
        cmocka_unit_test_setup_teardown(registers_that_are_taken_and_spilled_count, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_compiled_ahead_is_built, setup, teardown),
        cmocka_unit_test_setup_teardown(plans_are_not_made_for_ever, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_that_is_not_built_is_planned_otherwise, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kept_plan_that_is_not_built_is_made_anew, setup_cached, teardown),
        cmocka_unit_test_setup_teardown(weights_that_are_not_prepared_are_planned_otherwise, setup, teardown),
        cmocka_unit_test_setup_teardown(a_range_that_is_not_built_is_served_size_by_size, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_that_is_not_built_is_not_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(literals_that_are_not_built_are_pushed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_that_is_not_built_later_is_planned_otherwise, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_builds_nothing_later_is_told_of, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_builds_nothing_is_told_of, setup, teardown),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}

#else

int main(void) {
    return 77;
}

#endif
