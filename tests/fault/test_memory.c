/* Every allocation of the pipeline fails once: from graph text through rewrites, plan, every phase of
 * explain, the interpreter and the check (no device), and from graph text through modules, bundle and
 * program to results (device). Arenas give every piece its own block here, so that each piece can be
 * refused. The status is MEMORY with its sentence, nothing leaks, and nothing is silently left out. */
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

static const char softmax[] = "graph softmax\n"
                              "dim rows max 64\n"
                              "x = input f32[rows, 70]\n"
                              "m = reduce_max(x) axis=1 keep\n"
                              "d = sub(x, m)\n"
                              "e = exp(d)\n"
                              "s = sum(e) axis=1 keep\n"
                              "y = div(e, s) : f32[rows, 70]\n"
                              "output y = y\n";
static const char attention[] = "graph attention\n"
                                "dim s max 64\n"
                                "q = input f32[s, 2, 8]\n"
                                "k = input f32[s, 2, 8]\n"
                                "v = input f32[s, 2, 8]\n"
                                "scale = fill 0.5 : f32[]\n"
                                "scores = contract(q, k) \"qhd,khd->hqk\"\n"
                                "scaled = mul(scores, scale)\n"
                                "m = reduce_max(scaled) axis=2 keep\n"
                                "d = sub(scaled, m)\n"
                                "e = exp(d)\n"
                                "t = sum(e) axis=2 keep\n"
                                "p = div(e, t)\n"
                                "y = contract(p, v) \"hqk,khd->qhd\"\n"
                                "output y = y\n";
/* Two kernels on most targets; a table, constants that fold, an integer input that is converted. */
static const char embedding[] = "graph embedding\n"
                                "dim n max 32\n"
                                "ids = input i64[n]\n"
                                "table = constant f32[6, 16] random seed=1\n"
                                "gamma = constant f32[16] random seed=2\n"
                                "w = constant f32[5, 16] random seed=3 scale=0.1\n"
                                "half = fill 0.5 : f32[]\n"
                                "quarter = mul(half, half)\n"
                                "rows = gather(table, ids) : f32[n, 16]\n"
                                "total = sum(rows) axis=1 keep\n"
                                "centred = sub(rows, total)\n"
                                "squared = square(centred)\n"
                                "energy = sum(squared) axis=1 keep\n"
                                "moved = add(energy, quarter)\n"
                                "scale = rsqrt(moved)\n"
                                "normal = mul(centred, scale)\n"
                                "scaled = mul(normal, gamma)\n"
                                "y = contract(scaled, w) \"ni,oi->no\"\n"
                                "output y = y\n";

static const int64_t symbols[] = {3};

typedef struct text_case {
    const char *text;
    int analysis_stride, life_stride, program_stride; /* so that the test takes half a minute */
    smg_type precision;
    smg_graph *graph;
    smg_compilation *c;
    smg_vk_device *device;
} text_case;

static smg_status make_inputs(smg_context *ctx, const smg_graph *g, smg_arena *arena, smg_tensor *out_inputs,
                              int *out_count) {
    smg_node_id nodes[4];
    int count = smg_graph_input_nodes(g, nodes, 4);
    assert_true(count <= 4);
    for (int i = 0; i < count; i++) {
        SMG_TRY(smg_tensor_fill(ctx, g, nodes[i], symbols, SMG_FILL_RANDOM, 1, arena, &out_inputs[i]));
    }
    *out_count = count;
    return SMG_OK;
}

static smg_status explain_all(smg_compilation *c) {
    static const char *const phases[] = {NULL,   "graph",  "rewrite", "precision", "target",
                                         "plan", "kernel", "space",   "glsl"};
    for (size_t i = 0; i < SMG_COUNT_OF(phases); i++) {
        smg_text text;
        const smg_explain_options options = {.phase = phases[i], .prices = i == 0};
        smg_text_init(&text, c->ctx);
        smg_status status = smg_compile_explain(c, &options, &text);
        smg_text_free(&text);
        SMG_TRY(status);
    }
    smg_text text;
    smg_text_init(&text, c->ctx);
    smg_status status = smg_compile_explain_json(c, &text);
    smg_text_free(&text);
    return status;
}

static smg_status interpret_and_check(smg_compilation *c, smg_arena *arena) {
    smg_tensor inputs[4];
    smg_tensor outputs[1];
    smg_check check;
    int count = 0;
    SMG_TRY(explain_all(c));
    SMG_TRY(make_inputs(c->ctx, c->source, arena, inputs, &count));
    SMG_TRY(smg_compile_interpret(c, symbols, inputs, count, arena, outputs));
    SMG_TRY(
        smg_compile_check(c->ctx, c->source, smg_compile_roundings(c), symbols, inputs, count, outputs, arena, &check));
    return check.pass ? SMG_OK : smg_fail(c->ctx, SMG_INTERNAL, "the check fails");
}

static smg_status analyse(smg_context *ctx, void *user) {
    const text_case *t = user;
    smg_graph *g = NULL;
    smg_arena *arena = NULL;
    smg_compilation *c = NULL;
    smg_target target;
    smg_tensor samples[4];
    smg_overflow overflow;
    smg_compile_options options = {.precision = t->precision, .samples = samples};
    SMG_TRY(smg_target_named(ctx, "careful", &target));
    target.storage16 = t->precision != SMG_TYPE_F32;
    SMG_TRY(smg_graph_parse(ctx, t->text, strlen(t->text), "test", &g));
    smg_status status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK && target.storage16) status = make_inputs(ctx, g, arena, samples, &options.sample_count);
    if (status == SMG_OK) status = smg_compile_plan(ctx, g, &target, &options, &c);
    if (status == SMG_OK) status = interpret_and_check(c, arena);
    if (status == SMG_OK)
        status = smg_compile_find_overflow(c, symbols, samples, options.sample_count, arena, &overflow);
    smg_compilation_destroy(c);
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
    return status;
}

/* State holds the case. */
static void test_analysis(void **state) {
    const text_case *t = *state;
    const fault_sweep sweep = {.body = analyse, .user = *state, .stride = t->analysis_stride};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

#if SMG_VULKAN
static smg_status run_twice(smg_context *ctx, const smg_graph *g, smg_model *model, smg_arena *arena) {
    smg_tensor inputs[4];
    float y[3 * 70];
    smg_tensor own = {.name = "y"};
    smg_tensor given = {.name = "y", .data = y, .bytes = sizeof(y)};
    int count = 0;
    SMG_TRY(make_inputs(ctx, g, arena, inputs, &count));
    SMG_TRY(smg_model_set_input(model, &inputs[0]));
    SMG_TRY(smg_model_run(model, inputs, count, &own, 1));
    SMG_TRY(smg_model_run(model, inputs + 1, count - 1, &given, 1));
    assert_memory_equal(own.data, y, (size_t)smg_tensor_elements(&own) * sizeof(float));
    smg_check check;
    SMG_TRY(smg_compile_check(ctx, g, (smg_roundings){0}, symbols, inputs, count, &own, arena, &check));
    return check.pass ? SMG_OK : smg_fail(ctx, SMG_INTERNAL, "the check fails");
}

/* Kernels are compiled once for all steps. */
static const char *cache_folder(void) {
    const char *folder = getenv("SMG_CACHE_DIR");
    return folder != NULL ? folder : "";
}

/* include/smg/model.h from opening the device to closing it. */
static smg_status whole_life(smg_context *ctx, void *user) {
    const text_case *t = user;
    smg_graph *g = NULL;
    smg_arena *arena = NULL;
    smg_model *model = NULL;
    const smg_model_desc desc = {.no_calibrate = true};
    SMG_TRY(smg_graph_parse(ctx, t->text, strlen(t->text), "test", &g));
    smg_status status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK) status = smg_model_open_graph(ctx, g, &desc, &model);
    if (status == SMG_OK) status = run_twice(ctx, g, model, arena);
    smg_model_close(model);
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
    return status;
}

static void test_life(void **state) {
    const text_case *t = *state;
    const fault_sweep sweep = {
        .body = whole_life, .user = *state, .stride = t->life_stride, .cache_dir = cache_folder(), .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

static void prepare_plan(smg_context *ctx, void *user) {
    text_case *t = user;
    assert_int_equal(smg_graph_parse(ctx, t->text, strlen(t->text), "test", &t->graph), SMG_OK);
    assert_int_equal(smg_vk_open(ctx, NULL, 0, &t->device), SMG_OK);
    assert_int_equal(smg_compile_plan(ctx, t->graph, smg_vk_target(t->device), NULL, &t->c), SMG_OK);
}

/* Two recordings, or one for both sizes. */
static smg_status use_program(text_case *t, smg_arena *arena, smg_program *program) {
    smg_tensor inputs[4];
    smg_tensor y;
    int count = 0;
    SMG_TRY(make_inputs(t->c->ctx, t->graph, arena, inputs, &count));
    SMG_TRY(smg_tensor_make(t->c->ctx, t->graph, t->graph->outputs.items[0].node, symbols, arena, &y));
    for (int64_t rows = 1; rows <= symbols[0]; rows += 2) {
        SMG_TRY(smg_program_bind_sizes(program, &rows));
        for (int i = 0; i < count; i++) {
            int64_t dims[SMG_TENSOR_RANK];
            memcpy(dims, inputs[i].dims, sizeof(dims));
            dims[0] = rows;
            SMG_TRY(smg_program_write_input(program, inputs[i].name, inputs[i].data, inputs[i].rank, dims));
        }
        SMG_TRY(smg_program_run(program));
    }
    return smg_program_read_output(program, "y", y.data, smg_tensor_elements(&y) * (int64_t)sizeof(float));
}

static smg_status make_program(smg_context *ctx, void *user) {
    text_case *t = user;
    smg_arena *arena = NULL;
    smg_program *program = NULL;
    smg_status status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK) status = smg_compile_modules(t->c);
    if (status == SMG_OK) status = smg_program_create(ctx, t->c->bundle, t->device, NULL, &program);
    if (status == SMG_OK) status = use_program(t, arena, program);
    if (status == SMG_OK) status = smg_program_set_range(program, 0, 1, symbols[0]);
    if (status == SMG_OK) status = use_program(t, arena, program);
    smg_program_destroy(program);
    smg_arena_destroy(arena);
    smg_compilation_destroy(t->c);
    smg_vk_close(t->device);
    smg_graph_destroy(t->graph);
    return status;
}

/* Only from the plan on, and therefore denser. */
static void test_program(void **state) {
    const text_case *t = *state;
    const fault_sweep sweep = {.prepare = prepare_plan,
                               .body = make_program,
                               .user = *state,
                               .stride = t->program_stride,
                               .cache_dir = cache_folder(),
                               .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

static bool have_device(void) {
    smg_context *ctx = NULL;
    smg_vk_device *device = NULL;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_status status = smg_vk_open(ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &device);
    bool missing = device_missing(ctx, status);
    smg_vk_close(device);
    smg_context_destroy(ctx);
    assert_true(missing || status == SMG_OK);
    return !missing;
}
#endif

int main(void) {
    static text_case cases[] = {{.text = softmax, .analysis_stride = 1, .life_stride = 151, .program_stride = 11},
                                {.text = attention, .analysis_stride = 13, .life_stride = 701, .program_stride = 19},
                                {.text = embedding, .analysis_stride = 13, .life_stride = 701, .program_stride = 19},
                                {.text = embedding, .analysis_stride = 13, .precision = SMG_TYPE_F16}};
    const struct CMUnitTest analysis[] = {
        cmocka_unit_test_prestate(test_analysis, &cases[0]),
        cmocka_unit_test_prestate(test_analysis, &cases[1]),
        cmocka_unit_test_prestate(test_analysis, &cases[2]),
        cmocka_unit_test_prestate(test_analysis, &cases[3]),
    };
    int failed = cmocka_run_group_tests_name("analysis", analysis, NULL, NULL);
#if SMG_VULKAN
    setenv("SMG_VALIDATION", "0", 1); /* devices are opened a thousand times */
    device_compiles_plainly();
    const struct CMUnitTest device[] = {
        cmocka_unit_test_prestate(test_life, &cases[0]),    cmocka_unit_test_prestate(test_life, &cases[1]),
        cmocka_unit_test_prestate(test_life, &cases[2]),    cmocka_unit_test_prestate(test_program, &cases[0]),
        cmocka_unit_test_prestate(test_program, &cases[1]), cmocka_unit_test_prestate(test_program, &cases[2]),
    };
    if (have_device()) failed += cmocka_run_group_tests_name("device", device, NULL, NULL);
#endif
    return device_result(failed);
}
