/* Sizes as literals in the words of a module, and which runs of a program have them. What is pushed for a literal is
 * another value in some tests: so it is seen which of the two a kernel reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#if SMG_VULKAN
#include "spirv/spirv.h"
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"
#include "vulkan/vulkan_private.h"

/* ---- words ------------------------------------------------------------------------------------------ */

static const char fill_text[] =
    "#version 450\n"
    "layout(local_size_x = 32) in;\n"
    "layout(push_constant) uniform P { uvec2 address; int count; float scale; int step; };\n"
    "layout(std430, binding = 0) buffer C { float c[]; };\n"
    "void main() {\n"
    "    int i = int(gl_GlobalInvocationID.x);\n"
    "    if (i < count) c[i] = scale * float(i / step) + float(address.y);\n"
    "}\n";
enum { COUNT = 256 };

typedef struct pushed {
    uint32_t address[2];
    int32_t count;
    float scale;
    int32_t step;
} pushed;

static smg_vk_pipeline_desc fill_desc(device_graph *f) {
    smg_spirv_compiler *compiler = NULL;
    smg_spirv_module module = {0};
    device_graph_expect_ok(f, smg_spirv_compiler_create(f->ctx, &compiler));
    device_graph_expect_ok(f, smg_spirv_compile(compiler, f->arena, "fill", fill_text, NULL, &module));
    smg_spirv_compiler_destroy(compiler);
    return (smg_vk_pipeline_desc){.name = "fill",
                                  .words = module.words,
                                  .word_count = module.word_count,
                                  .local_size = {32, 1, 1},
                                  .binding_count = 1,
                                  .push_bytes = sizeof(pushed)};
}

static void run_fill(device_graph *f, const smg_vk_pipeline_desc *desc, const pushed *push, float *out) {
    smg_vk_pipeline *pipeline = NULL;
    smg_vk_buffer *memory = NULL;
    smg_vk_recording *rec = NULL;
    device_graph_expect_ok(f, smg_vk_pipeline_create(f->dev, desc, &pipeline));
    device_graph_expect_ok(f, smg_vk_buffer_create(f->dev, "c", COUNT * 4, SMG_VK_DEVICE, &memory));
    device_graph_expect_ok(f, smg_vk_fill(memory, 0, COUNT * 4, 0));
    const smg_vk_binding binding = {memory, 0, 0};
    device_graph_expect_ok(f, smg_vk_recording_begin(f->dev, 0, &rec));
    smg_vk_record_dispatch(rec, pipeline, &binding, 1, push, sizeof(*push), COUNT / 32, 1, 1);
    device_graph_expect_ok(f, smg_vk_recording_end(rec));
    device_graph_expect_ok(f, smg_vk_run(rec));
    device_graph_expect_ok(f, smg_vk_download(memory, 0, out, COUNT * 4));
    smg_vk_recording_destroy(rec);
    smg_vk_buffer_destroy(memory);
    smg_vk_pipeline_destroy(pipeline);
}

/* Whole numbers are literals; what is of another type, and what lies in front of them, is pushed. */
static void literals_stand_for_what_is_pushed(void **state) {
    (void)state;
    static const int32_t literals[] = {100, 7, 4};
    static float got[COUNT];
    device_graph f;
    if (device_graph_open(&f)) {
        smg_vk_pipeline_desc desc = fill_desc(&f);
        const pushed push = {{0, 9}, 30, 0.5f, 2};
        for (int literal = 0; literal < 2; literal++) {
            desc.literals = literals;
            desc.literal_count = literal ? 3 : 0;
            run_fill(&f, &desc, &push, got);
            int count = literal ? literals[0] : push.count, by = literal ? literals[2] : push.step;
            for (int i = 0; i < COUNT; i++) assert_true(got[i] == (i < count ? 0.5f * (float)(i / by) + 9.0f : 0.0f));
        }
    }
    device_graph_close(&f);
}

static void refuse(device_graph *f, const smg_vk_pipeline_desc *desc, const char *part) {
    smg_vk_pipeline *pipeline = NULL;
    assert_int_equal(smg_vk_pipeline_create(f->dev, desc, &pipeline), SMG_INVALID);
    assert_null(pipeline);
    if (strstr(smg_context_error(f->ctx), part) == NULL) fail_msg("%s", smg_context_error(f->ctx));
    smg_context_clear_error(f->ctx);
}

static void wrong_literals_are_refused(void **state) {
    (void)state;
    static const int32_t literals[8] = {1};
    device_graph f;
    if (device_graph_open(&f)) {
        const smg_vk_pipeline_desc good = fill_desc(&f);
        smg_vk_pipeline_desc desc = good;
        desc.literals = literals;
        desc.literal_count = 7;
        refuse(&f, &desc, "has 7 literals in 20 bytes of push constants");
        desc.literal_count = -1;
        refuse(&f, &desc, "has -1 literals");
        desc.literal_count = 2; /* half an address is left in front */
        refuse(&f, &desc, "has 2 literals in 20 bytes");
        desc.literal_count = 3;
        desc.from_memory = true;
        refuse(&f, &desc, "has 3 literals in 20 bytes of push constants in memory");
        desc.from_memory = false;
        uint32_t *words = SMG_ARENA_ARRAY(f.arena, uint32_t, desc.word_count);
        assert_non_null(words);
        memcpy(words, good.words, good.word_count * sizeof(*words));
        desc.words = words;
        words[3] = 2; /* ids are below this */
        refuse(&f, &desc, "name ids that there are not");
        words[3] = UINT32_MAX;
        refuse(&f, &desc, "name ids that there are not");
        words[3] = good.words[3];
        words[5] = 0; /* the first instruction has no length */
        refuse(&f, &desc, "not one block of push constants");
    }
    device_graph_close(&f);
}

/* ---- programs --------------------------------------------------------------------------------------- */

/* Two kernels, equal but for the names of their sizes: the second one's module serves for both. */
static const char two_text[] = "graph two\n"
                               "dim a max 4096\n"
                               "dim b max 4096\n"
                               "x = input f32[a, 64]\n"
                               "y = input f32[b, 64]\n"
                               "p = sum(x) axis=1 : f32[a]\n"
                               "q = sum(y) axis=1 : f32[b]\n"
                               "output p = p\n"
                               "output q = q\n";

static int pipelines(const smg_program *p) {
    smg_program_memory used;
    smg_program_memory_used(p, &used);
    return used.pipelines;
}

static void compile_two(device_graph *f) {
    const smg_compile_options options = {0};
    device_graph_parse(f, two_text);
    device_graph_compile(f, smg_vk_target(f->dev), &options);
    const smg_bvariant *list = &f->c->bundle->variants.items[0];
    assert_int_equal(list->run.count, 2);
    list->run.items[0].module = list->run.items[1].module;
    assert_int_equal(list->run.items[0].push_count, 1);
    assert_int_not_equal(list->run.items[0].push_symbols[0], list->run.items[1].push_symbols[0]);
}

static void make_program(device_graph *f, const int64_t *expected, bool literal) {
    const smg_program_options options = {.expected = expected, .literal = literal};
    smg_program_destroy(f->program);
    f->program = NULL;
    device_graph_expect_ok(f, smg_program_create(f->ctx, f->c->bundle, f->dev, &options, &f->program));
}

static void steps_of_one_module_differ(void **state) {
    (void)state;
    static const int64_t same[] = {96, 96}, apart[] = {96, 33}, other[] = {5, 200}, turned[] = {33, 96};
    device_graph f;
    if (device_graph_open(&f)) {
        compile_two(&f);
        make_program(&f, same, true);
        assert_int_equal(pipelines(f.program), 1);
        device_graph_check(&f, "literal for both", same, 1);
        assert_int_equal(pipelines(f.program), 1);
        device_graph_check(&f, "literal for one", apart, 2);
        assert_int_equal(pipelines(f.program), 2);
        device_graph_check(&f, "for none", other, 3);
        device_graph_check(&f, "literal for both again", same, 4);
        assert_int_equal(pipelines(f.program), 2);
        make_program(&f, apart, true);
        assert_int_equal(pipelines(f.program), 2);
        device_graph_check(&f, "literal for the first", apart, 5);
        device_graph_check(&f, "for the second", turned, 6);
        assert_int_equal(pipelines(f.program), 2);
        make_program(&f, apart, false);
        device_graph_check(&f, "for none", apart, 7);
        assert_int_equal(pipelines(f.program), 1);
    }
    device_graph_close(&f);
}

static void ranges_are_read_from_memory(void **state) {
    (void)state;
    static const int64_t sizes[] = {96, 33}, others[] = {96, 40};
    device_graph f;
    if (device_graph_open(&f)) {
        compile_two(&f);
        make_program(&f, sizes, true);
        device_graph_expect_ok(&f, smg_program_set_range(f.program, 1, 1, 64));
        device_graph_check(&f, "a range", sizes, 1);
        device_graph_check(&f, "a range", others, 2);
        device_graph_expect_ok(&f, smg_program_set_range(f.program, 1, 0, 0));
        device_graph_check(&f, "no range", sizes, 3);
    }
    device_graph_close(&f);
}

static void a_shared_program_has_them(void **state) {
    (void)state;
    static const int64_t sizes[] = {96, 96}, others[] = {7, 96};
    device_graph f;
    smg_vk_device *shared = NULL;
    smg_program *from = NULL;
    if (device_graph_open(&f)) {
        compile_two(&f);
        make_program(&f, sizes, true);
        from = f.program;
        f.program = NULL;
        device_graph_expect_ok(&f, smg_vk_share(f.ctx, f.dev, &shared));
        device_graph_expect_ok(&f, smg_program_share(from, shared, &f.program));
        device_graph_check(&f, "shared", sizes, 1);
        assert_int_equal(pipelines(f.program), 1);
        device_graph_check(&f, "shared, other sizes", others, 2);
        assert_int_equal(pipelines(f.program), 2);
        smg_program_destroy(f.program);
        f.program = NULL;
        smg_program_destroy(from);
        smg_vk_close(shared);
    }
    device_graph_close(&f);
}

/* ---- models ----------------------------------------------------------------------------------------- */

static void run_model(device_graph *f, smg_model *model, int64_t a, int64_t b) {
    const int64_t sizes[] = {a, b};
    smg_tensor x[2], y[2] = {{.name = "p"}, {.name = "q"}};
    smg_check check;
    for (int i = 0; i < 2; i++)
        device_graph_expect_ok(f, smg_tensor_fill(f->ctx, f->g, i, sizes, SMG_FILL_RANDOM, 3, f->arena, &x[i]));
    device_graph_expect_ok(f, smg_model_run(model, x, 2, y, 2));
    device_graph_expect_ok(f, smg_compile_check(f->ctx, f->g, (smg_roundings){0}, sizes, x, 2, y, f->arena, &check));
    assert_true(check.pass);
}

/* A model that is opened for these sizes; gives how many pipelines runs of others want beside. */
static int others_want(device_graph *f, const smg_dim *dims, int dim_count, const smg_hint *hint) {
    smg_source source = {.ctx = f->ctx, .graph = f->g};
    const smg_model_desc desc = {.no_calibrate = true, .dims = dims, .dim_count = dim_count};
    smg_model *model = NULL;
    device_graph_expect_ok(f, smg_model_open_source(f->ctx, &source, f->dev, &desc, &model));
    if (hint != NULL) device_graph_expect_ok(f, smg_model_hint(model, hint));
    run_model(f, model, 5, 7);
    int before = pipelines(smg_model_program(model));
    run_model(f, model, 6, 7);
    int one = pipelines(smg_model_program(model));
    run_model(f, model, 6, 9);
    int both = pipelines(smg_model_program(model));
    run_model(f, model, 5, 7);
    assert_int_equal(pipelines(smg_model_program(model)), both);
    assert_int_equal(both - one, one - before);
    smg_model_close(model);
    return both - before;
}

/* Only sizes that were all named are those that most runs have, and only where cores hide loads. */
static void models_whose_sizes_are_named(void **state) {
    (void)state;
    static const smg_dim dims[] = {{"b", 7}, {"a", 5}};
    const smg_hint hint = {.usual = dims, .usual_count = 2}, rest = {.usual = dims + 1, .usual_count = 1};
    device_graph f;
    if (device_graph_open(&f)) {
        device_graph_parse(&f, two_text);
        f.dev->target.load_latency = 1e-8;
        assert_int_equal(others_want(&f, dims, 2, NULL), 0);
        f.dev->target.load_latency = 5e-7;
        assert_int_equal(others_want(&f, dims, 2, NULL), 2);
        assert_int_equal(others_want(&f, dims, 1, NULL), 0);
        assert_int_equal(others_want(&f, NULL, 0, NULL), 0);
        assert_int_equal(others_want(&f, NULL, 0, &hint), 2);
        assert_int_equal(others_want(&f, dims, 1, &rest), 2);
    }
    device_graph_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_stand_for_what_is_pushed), cmocka_unit_test(wrong_literals_are_refused),
        cmocka_unit_test(steps_of_one_module_differ),        cmocka_unit_test(ranges_are_read_from_memory),
        cmocka_unit_test(a_shared_program_has_them),         cmocka_unit_test(models_whose_sizes_are_named),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
