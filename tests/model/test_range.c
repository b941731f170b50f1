/* Sizes that grow step by step: with a range set, a run of every length gives the bits of a run without, and after the
 * first one no length allocates on the host or asks the driver for memory, pipelines, descriptors or commands. Over run
 * lists that share the range, kernels with an even form, two models on one device, profiles, and with sizes that have no
 * range changing beside; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

#if SMG_VULKAN
#include "compile/compile.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/witness.h"
#include "vulkan/vulkan_private.h" /* calls of the driver are counted */

enum { MOST = 64, INPUTS = 4, OUTPUTS = 4 };

/* ---- the driver's calls that a run of a new length must not make ---------------------------------- */

/* X(name, type of the second parameter, of the last but one, of the last) of calls that create something. */
#define COUNTED_CREATIONS(X)                                                                                           \
    X(AllocateMemory, VkMemoryAllocateInfo, VkDeviceMemory)                                                            \
    X(CreateBuffer, VkBufferCreateInfo, VkBuffer)                                                                      \
    X(CreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)                                                    \
    X(CreateDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)                                              \
    X(CreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)                                                             \
    X(CreateFence, VkFenceCreateInfo, VkFence)

static smg_vk_device_table real;
static int driver_calls, submissions;

#define COUNT_CREATION(name, info_type, object_type)                                                                   \
    static VKAPI_ATTR VkResult VKAPI_CALL count_##name(VkDevice device, const info_type *info,                         \
                                                       const VkAllocationCallbacks *memory, object_type *out) {        \
        driver_calls++;                                                                                                \
        return real.name(device, info, memory, out);                                                                   \
    }
COUNTED_CREATIONS(COUNT_CREATION)
#undef COUNT_CREATION

static VKAPI_ATTR VkResult VKAPI_CALL count_CreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                                   uint32_t count,
                                                                   const VkComputePipelineCreateInfo *infos,
                                                                   const VkAllocationCallbacks *memory,
                                                                   VkPipeline *out) {
    driver_calls++;
    return real.CreateComputePipelines(device, cache, count, infos, memory, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_AllocateDescriptorSets(VkDevice device,
                                                                   const VkDescriptorSetAllocateInfo *info,
                                                                   VkDescriptorSet *out) {
    driver_calls++;
    return real.AllocateDescriptorSets(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_AllocateCommandBuffers(VkDevice device,
                                                                   const VkCommandBufferAllocateInfo *info,
                                                                   VkCommandBuffer *out) {
    driver_calls++;
    return real.AllocateCommandBuffers(device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_BeginCommandBuffer(VkCommandBuffer commands,
                                                               const VkCommandBufferBeginInfo *info) {
    driver_calls++;
    return real.BeginCommandBuffer(commands, info);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                                        VkFence fence) {
    submissions++;
    return real.QueueSubmit(queue, count, infos, fence);
}

static void count_calls(smg_vk_device *dev) {
    real = dev->fn;
    driver_calls = submissions = 0;
#define REPLACE(name, info_type, object_type) dev->fn.name = count_##name;
    COUNTED_CREATIONS(REPLACE)
#undef REPLACE
    dev->fn.CreateComputePipelines = count_CreateComputePipelines;
    dev->fn.AllocateDescriptorSets = count_AllocateDescriptorSets;
    dev->fn.AllocateCommandBuffers = count_AllocateCommandBuffers;
    dev->fn.BeginCommandBuffer = count_BeginCommandBuffer;
    dev->fn.QueueSubmit = count_QueueSubmit;
}

/* ---- one scene: a device, a source, a model with ranges and one without ---------------------------- */

typedef struct scene {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *dev;
    smg_source source;
    smg_model *ranged, *plain;
    smg_tensor inputs[INPUTS];
    int input_count;
    double ranged_seconds, plain_seconds; /* of the host, for sizes that were not run before */
    int ranged_runs, plain_runs;
} scene;

static void must(scene *s, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(s->ctx));
}

static void must_fail(scene *s, smg_status status, smg_status wanted, const char *part) {
    if (status != wanted || strstr(smg_context_error(s->ctx), part) == NULL) {
        fail_msg("status %d, wanted %d: '%s' lacks '%s'", (int)status, (int)wanted, smg_context_error(s->ctx), part);
    }
    smg_context_clear_error(s->ctx);
}

static bool start(scene *s) {
    *s = (scene){0};
    const smg_context_desc desc = witness_desc(&s->seen);
    assert_int_equal(smg_context_create(&desc, &s->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(s->ctx, &s->arena), SMG_OK);
    smg_status status = smg_vk_open(s->ctx, NULL, 0, &s->dev);
    if (device_missing(s->ctx, status)) return false;
    must(s, status);
    return true;
}

static void finish(scene *s) {
    smg_model_close(s->ranged);
    smg_model_close(s->plain);
    smg_source_close(&s->source);
    if (s->dev != NULL) assert_int_equal(smg_vk_validation_errors(s->dev), 0);
    smg_vk_close(s->dev);
    smg_arena_destroy(s->arena);
    smg_context_destroy(s->ctx);
    assert_int_equal(s->seen.live_bytes, 0);
    assert_int_equal(s->seen.warnings, 0);
}

static void read_text(scene *s, const char *text) {
    s->source = (smg_source){.ctx = s->ctx, .owns_graph = true};
    must(s, smg_graph_parse(s->ctx, text, strlen(text), "text", &s->source.graph));
}

static void open_with(scene *s, smg_model_desc desc) {
    desc.no_calibrate = desc.no_plan_cache = true;
    must(s, smg_model_open_source(s->ctx, &s->source, s->dev, &desc, &s->ranged));
    must(s, smg_model_open_source(s->ctx, &s->source, s->dev, &desc, &s->plain));
}

static void open_models(scene *s, const smg_dim *dims, int dim_count) {
    open_with(s, (smg_model_desc){.dims = dims, .dim_count = dim_count});
}

static void fill(scene *s, const int64_t *sizes) {
    smg_node_id nodes[INPUTS];
    s->input_count = smg_graph_input_nodes(s->source.graph, nodes, INPUTS);
    assert_true(s->input_count <= INPUTS);
    for (int i = 0; i < s->input_count; i++) {
        must(s, smg_tensor_fill(s->ctx, s->source.graph, nodes[i], sizes, SMG_FILL_RANDOM,
                                (uint64_t)(sizes[0] * 1000 + i), s->arena, &s->inputs[i]));
    }
}

static double run(scene *s, smg_model *model, smg_tensor *outputs) {
    const smg_graph *g = s->source.graph;
    assert_true(g->outputs.count <= OUTPUTS);
    for (int i = 0; i < g->outputs.count; i++) outputs[i] = (smg_tensor){.name = g->outputs.items[i].name};
    double begin = smg_clock_seconds();
    must(s, smg_model_run(model, s->inputs, s->input_count, outputs, g->outputs.count));
    return smg_clock_seconds() - begin - smg_model_seconds(model);
}

/* Both models at these sizes: the same bits; quiet: the ranged one asks nobody for anything. */
static void compare(scene *s, const int64_t *sizes, bool quiet) {
    smg_tensor got[OUTPUTS], want[OUTPUTS];
    fill(s, sizes);
    int asked = s->seen.calls;
    count_calls(s->dev);
    double seconds = run(s, s->ranged, got);
    s->dev->fn = real;
    if (quiet) {
        assert_int_equal(s->seen.calls, asked);
        assert_int_equal(driver_calls, 0);
        assert_int_equal(submissions, 1);
        s->ranged_seconds += seconds;
        s->ranged_runs++;
    }
    s->plain_seconds += run(s, s->plain, want);
    s->plain_runs++;
    for (int i = 0; i < s->source.graph->outputs.count; i++) {
        int64_t elements = smg_tensor_elements(&want[i]);
        assert_int_equal(got[i].rank, want[i].rank);
        assert_memory_equal(got[i].dims, want[i].dims, (size_t)want[i].rank * sizeof(*want[i].dims));
        assert_int_equal(got[i].bytes, want[i].bytes);
        assert_true(elements > 0);
        if (memcmp(got[i].data, want[i].data, got[i].bytes) == 0) continue;
        fail_msg("%s: output %s at %lld %lld is not the same with a range", s->source.graph->name, got[i].name,
                 (long long)sizes[0], (long long)sizes[1]);
    }
}

static void tell(const scene *s) {
    print_message("host: %.0f us for a new length of the range, %.0f us for new sizes without\n",
                  1e6 * s->ranged_seconds / s->ranged_runs, 1e6 * s->plain_seconds / s->plain_runs);
}

static int symbol_of(const scene *s, const char *name) {
    int symbol = smg_size_symbol_find(s->source.graph->sizes, name);
    assert_true(symbol >= 0);
    return symbol;
}

/* ---- every length ---------------------------------------------------------------------------------- */

/* Upwards, so that whatever grows with the length would have to grow at each of them; then in leaps. */
static void every_length_of(scene *s, const char *length) {
    int64_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int symbol = symbol_of(s, length);
    must(s, smg_model_set_range(s->ranged, length, 1, MOST));
    for (int64_t n = 1; n <= MOST; n++) {
        sizes[symbol] = n;
        compare(s, sizes, n > 1);
    }
    for (int64_t i = 0; i < 20; i++) {
        sizes[symbol] = 1 + i * 37 % MOST;
        compare(s, sizes, true);
    }
    tell(s);
}

static void each_model(void **state) {
    const char *const *row = *state;
    scene s;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    must(&s, smg_source_open(s.ctx, row[0], false, &s.source));
    open_with(&s, (smg_model_desc){.precision = row[2]});
    every_length_of(&s, row[1]);
    finish(&s);
}

/* What the model converts, has a value for or keeps takes memory of its own: as much as the longest run. */
static void inputs_of_every_kind(void **state) {
    (void)state;
    static int64_t ids[MOST];
    static int32_t types[MOST];
    scene s;
    int asked = 0;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    must(&s, smg_source_open(s.ctx, "tests/models/hf-bert-tiny", false, &s.source));
    open_models(&s, NULL, 0);
    must(&s, smg_model_set_range(s.ranged, "sequence", 1, MOST));
    for (int64_t n = 1; n <= MOST; n++) {
        const smg_tensor in = {.name = "input_ids", .type = "i64", .rank = 2, .dims = {1, n}, .data = ids};
        const smg_tensor kept = {.name = "token_type_ids", .type = "i32", .rank = 2, .dims = {1, n}, .data = types};
        smg_tensor out = {.name = "last_hidden_state"};
        ids[n - 1] = n;
        if (n == 3) asked = s.seen.calls; /* what is kept before the first run has no range yet */
        must(&s, smg_model_set_input(s.ranged, &kept));
        must(&s, smg_model_run(s.ranged, &in, 1, &out, 1));
        assert_int_equal(out.dims[1], n);
    }
    assert_int_equal(s.seen.calls, asked);
    finish(&s);
}

/* A dim of a function of the length, a gather that reports bad indices, an output beside the last kernel. */
static const char mixed[] = "graph mixed\n"
                            "dim n max 512\n"
                            "ids = input i64[n]\n"
                            "more = input f32[2*n, 24]\n"
                            "table = constant f32[97, 24] random seed=1\n"
                            "w = constant f32[5, 24] random seed=2 scale=0.1\n"
                            "rows = gather(table, ids) : f32[n, 24]\n"
                            "total = sum(rows) axis=1 keep\n"
                            "centred = sub(rows, total)\n"
                            "y = contract(centred, w) \"ni,oi->no\"\n"
                            "z = contract(centred, more) \"ni,mi->nm\"\n"
                            "output y = y\n"
                            "output z = z\n";

static void function_of_a_length(void **state) {
    (void)state;
    scene s;
    smg_tensor outputs[OUTPUTS];
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    read_text(&s, mixed);
    open_models(&s, NULL, 0);
    every_length_of(&s, "n");
    fill(&s, (int64_t[]){9});
    ((int64_t *)s.inputs[0].data)[4] = 97; /* the kernel's own check */
    must_fail(&s, smg_model_run(s.ranged, s.inputs, s.input_count, outputs, 0), SMG_INVALID, "97");
    compare(&s, (int64_t[]){9}, true);
    finish(&s);
}

/* ---- a length that is data ------------------------------------------------------------------------- */

/* One row of queries against as many keys of a capacity as the length of its batch says. */
static const char decode[] = "graph decode\n"
                             "q = input f32[2, 3, 1, 16]\n"
                             "k = input f32[2, 3, 200, 16]\n"
                             "v = input f32[2, 3, 200, 16]\n"
                             "length = input i32[2, 1, 1, 1]\n"
                             "place = iota axis=3 : i32[1, 1, 1, 200]\n"
                             "within = lt(place, length)\n"
                             "scores = contract(q, k) \"bhqd,bhtd->bhqt\"\n"
                             "none = fill -inf : f32[]\n"
                             "masked = select(within, scores, none)\n"
                             "top = reduce_max(masked) axis=3 keep\n"
                             "shifted = sub(masked, top)\n"
                             "e = exp(shifted)\n"
                             "total = sum(e) axis=3 keep\n"
                             "p = div(e, total)\n"
                             "o = contract(p, v) \"bhqt,bhtd->bhqd\"\n"
                             "output o = o\n";

static void check_decoded(scene *s, const smg_tensor *got) {
    smg_array in[INPUTS], want;
    for (int i = 0; i < s->input_count; i++) must(s, smg_tensor_to_array(&s->inputs[i], s->arena, &in[i]));
    must(s, smg_graph_eval(s->source.graph, NULL, in, s->arena, &want));
    for (int64_t i = 0; i < smg_array_elements(&want); i++) {
        double x = want.data[i], y = smg_tensor_get(got, i);
        bool same = isnan(x) ? isnan(y) : fabs(x - y) < 1e-5;
        if (!same) fail_msg("element %d is %g, wanted %g", (int)i, y, x);
    }
}

/* Every length is the same sizes, and so one recording. */
static void a_length_within_a_capacity(void **state) {
    (void)state;
    enum { CAPACITY = 200 };
    const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true};
    scene s;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    read_text(&s, decode);
    must(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &s.ranged));
    fill(&s, (int64_t[]){1});
    for (int32_t n = 0; n <= CAPACITY; n++) {
        smg_tensor out;
        int32_t *length = s.inputs[3].data;
        length[0] = n;
        length[1] = CAPACITY - n / 3;
        int asked = s.seen.calls;
        count_calls(s.dev);
        (void)run(&s, s.ranged, &out);
        s.dev->fn = real;
        if (n > 0) assert_int_equal(s.seen.calls, asked);
        if (n > 0) assert_int_equal(driver_calls, 0);
        assert_int_equal(submissions > 0, 1);
        if (n % 37 < 2) check_decoded(&s, &out);
    }
    finish(&s);
}

/* A model opened with its ranges has the pipelines of one run list, and of no tuple. */
static void opened_with_ranges(void **state) {
    (void)state;
    scene s;
    smg_program_memory opened, ran;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    smg_dim_range ranges[] = {{"n", 3, 40}};
    smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true, .ranges = ranges, .range_count = 1};
    const smg_dim nominal = {"n", 20}; /* one list serves all of the range */
    ((smg_target *)smg_vk_target(s.dev))->cores = 1;
    desc.dims = &nominal;
    desc.dim_count = 1;
    read_text(&s, mixed);
    must(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &s.ranged));
    smg_program_memory_used(smg_model_program(s.ranged), &opened);
    must(&s,
         smg_model_open_source(s.ctx, &s.source, s.dev,
                               &(smg_model_desc){.no_calibrate = true, .dims = &nominal, .dim_count = 1}, &s.plain));
    assert_int_equal(smg_model_compilation(s.ranged)->variant_count, 1);
    for (int64_t n = 3; n <= 40; n++) compare(&s, (int64_t[]){n, 0}, n > 3);
    smg_program_memory_used(smg_model_program(s.ranged), &ran);
    assert_true(opened.pipelines > 0);
    assert_int_equal(opened.pipelines, ran.pipelines);
    smg_model *none = NULL;
    ranges[0].name = "m";
    must_fail(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &none), SMG_NOT_FOUND, "no size 'm'");
    ranges[0] = (smg_dim_range){"n", 9, 8};
    must_fail(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &none), SMG_INVALID, "[9, 8] ends below");
    ranges[0].name = NULL;
    must_fail(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &none), SMG_INVALID, "ranges[0] has no name");
    desc.ranges = NULL;
    must_fail(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &none), SMG_INVALID, "1 ranges");
    desc.range_count = -1;
    must_fail(&s, smg_model_open_source(s.ctx, &s.source, s.dev, &desc, &none), SMG_INVALID, "-1 ranges");
    assert_null(none);
    finish(&s);
}

/* ---- more than one run list, more than one size ----------------------------------------------------- */

static const char layer[] = "graph layer\n"
                            "dim b max 64\ndim n max 512\n"
                            "x = input f32[b, n, 16]\n"
                            "w = constant f32[24, 16] random seed=1\n"
                            "v = constant f32[16, 24] random seed=2\n"
                            "p = contract(x, w) \"bni,oi->bno\"\n"
                            "r = relu(p)\n"
                            "q = contract(r, v) \"bni,oi->bno\"\n"
                            "y = add(q, x)\n"
                            "output y = y\n";

/* So large a device that 32 rows do not fill it. */
static void open_layer(scene *s) {
    static const smg_dim dims[] = {{"b", 1}, {"n", 32}};
    read_text(s, layer);
    ((smg_target *)smg_vk_target(s->dev))->cores = 64;
    open_models(s, dims, 2);
}

static void run_lists_share_a_range(void **state) {
    (void)state;
    scene s;
    int runs[SMG_MAX_VARIANTS] = {0};
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    open_layer(&s);
    must(&s, smg_model_set_range(s.ranged, "n", 1, 512));
    for (int64_t n = 1; n <= 512; n += n / 8 + 1) {
        compare(&s, (int64_t[]){1, n}, n > 1);
        runs[smg_program_variant(smg_model_program(s.ranged))]++;
    }
    assert_true(runs[0] > 0);
    assert_true(runs[1] > 0);
    tell(&s);
    finish(&s);
}

static void sizes_beside_the_range(void **state) {
    (void)state;
    scene s;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    open_layer(&s);
    must(&s, smg_model_set_range(s.ranged, "n", 1, 40));
    /* A batch has a first run; once more, where a larger one has moved the memory. */
    for (int64_t round = 0; round < 3; round++) {
        for (int64_t b = 1; b <= 2; b++) {
            for (int64_t n = 1; n <= 40; n += 3) compare(&s, (int64_t[]){b, n}, round > 1 || n > 1);
        }
    }
    must(&s, smg_model_set_range(s.ranged, "b", 2, 5)); /* both at once */
    for (int64_t b = 2; b <= 5; b++) {
        for (int64_t n = 1; n <= 40; n += 7) compare(&s, (int64_t[]){b, n}, b > 2 || n > 1);
    }
    must(&s, smg_model_set_range(s.ranged, "b", 0, 0));
    must(&s, smg_model_set_range(s.ranged, "n", 0, 0));
    compare(&s, (int64_t[]){1, 100}, false);
    compare(&s, (int64_t[]){1, 100}, true); /* as without ranges */
    finish(&s);
}

static void profiles(void **state) {
    (void)state;
    scene s;
    smg_tensor outputs[OUTPUTS];
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    open_layer(&s);
    smg_program *program = smg_model_program(s.ranged);
    must(&s, smg_model_set_range(s.ranged, "n", 1, 16));
    compare(&s, (int64_t[]){1, 3}, false);
    if (!smg_program_has_timestamps(program)) {
        finish(&s);
        return;
    }
    must(&s, smg_program_set_profile(program, true));
    for (int64_t n = 1; n <= 16; n += 5) {
        double sum = 0;
        fill(&s, (int64_t[]){1, n});
        run(&s, s.ranged, outputs);
        for (int i = 0; i < smg_program_step_count(program); i++) sum += smg_program_step_time(program, i);
        assert_true(sum > 0 && sum <= smg_model_seconds(s.ranged) * 1.01);
    }
    must(&s, smg_program_set_profile(program, false));
    compare(&s, (int64_t[]){1, 16}, true);
    finish(&s);
}

/* ---- two models, one device: each has its own ------------------------------------------------------- */

static void two_models(void **state) {
    (void)state;
    scene s;
    smg_model *other = NULL;
    smg_tensor out = {.name = "y"}, x;
    smg_graph *g = NULL;
    const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true};
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    open_layer(&s);
    must(&s, smg_graph_parse(s.ctx, layer, strlen(layer), "again", &g));
    smg_source source = {.ctx = s.ctx, .graph = g};
    must(&s, smg_model_open_source(s.ctx, &source, s.dev, &desc, &other));
    must(&s, smg_model_set_range(s.ranged, "n", 1, 20));
    must(&s, smg_model_set_range(other, "n", 5, 30));
    for (int64_t n = 5; n <= 20; n++) {
        compare(&s, (int64_t[]){1, n}, n > 5);
        must(&s, smg_tensor_fill(s.ctx, g, 0, (int64_t[]){1, 35 - n}, SMG_FILL_RANDOM, 1, s.arena, &x));
        int asked = s.seen.calls;
        must(&s, smg_model_run(other, &x, 1, &out, 1));
        if (n > 5) assert_int_equal(s.seen.calls, asked);
        assert_int_equal(out.dims[1], 35 - n);
    }
    smg_model_close(other);
    compare(&s, (int64_t[]){1, 7}, true);
    smg_graph_destroy(g);
    finish(&s);
}

/* ---- even forms ------------------------------------------------------------------------------------- */

/* A target whose cores hide loads: kernels have two forms. Of a range the plain one is taken where sizes move, whatever
 * the length at hand; the even one where only fixed sizes are asked. */
static void forms(void **state) {
    (void)state;
    static const smg_dim dims[] = {{"b", 4}, {"n", 128}};
    scene s;
    smg_program_memory before, after;
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    read_text(&s, layer);
    smg_target *target = (smg_target *)smg_vk_target(s.dev);
    target->load_latency = 5e-7;
    target->fma_rate = 1e11;
    assert_true(smg_target_hides_loads(target));
    open_models(&s, dims, 2);
    const smg_bundle *bundle = smg_model_compilation(s.ranged)->bundle;
    const smg_bstep *step = &bundle->variants.items[0].run.items[0];
    assert_true(step->even_count > 0);
    assert_true(smg_bundle_even(bundle, step, (int64_t[]){4, 128}, (int64_t[]){4, 128}));
    assert_false(smg_bundle_even(bundle, step, (int64_t[]){4, 1}, (int64_t[]){4, 128}));
    must(&s, smg_model_set_range(s.ranged, "n", 1, 256));
    compare(&s, (int64_t[]){4, 128}, false);
    smg_program_memory_used(smg_model_program(s.ranged), &before);
    for (int64_t n = 1; n <= 256; n += n % 2 ? 63 : 1) {
        fill(&s, (int64_t[]){4, n});
        smg_tensor y[OUTPUTS];
        smg_check check;
        run(&s, s.ranged, y);
        must(&s, smg_compile_check(s.ctx, s.source.graph, (smg_roundings){0}, (int64_t[]){4, n}, s.inputs,
                                   s.input_count, y, s.arena, &check));
        assert_true(check.pass);
    }
    smg_program_memory_used(smg_model_program(s.ranged), &after);
    assert_int_equal(before.pipelines, after.pipelines);
    finish(&s);
}

/* ---- refusals --------------------------------------------------------------------------------------- */

static void refuses(void **state) {
    (void)state;
    scene s;
    smg_tensor out[OUTPUTS];
    if (!start(&s)) {
        finish(&s);
        skip();
    }
    open_layer(&s);
    must_fail(&s, smg_model_set_range(s.ranged, "rows", 1, 2), SMG_NOT_FOUND, "no size 'rows'; it has: b, n");
    must_fail(&s, smg_model_set_range(s.ranged, NULL, 1, 2), SMG_INVALID, "name is NULL");
    must_fail(&s, smg_model_set_range(s.ranged, "n", 7, 3), SMG_INVALID, "n: the range [7, 3] ends below its start");
    must_fail(&s, smg_model_set_range(s.ranged, "n", 0, 3), SMG_INVALID, "n: the range [0, 3] must lie in [1, 512]");
    must_fail(&s, smg_model_set_range(s.ranged, "n", 1, 513), SMG_INVALID, "[1, 513] must lie in [1, 512]");
    must_fail(&s, smg_model_set_range(s.ranged, "n", -4, -2), SMG_INVALID, "[-4, -2] must lie in [1, 512]");
    assert_int_equal(smg_model_set_range(NULL, "n", 1, 2), SMG_INVALID);
    compare(&s, (int64_t[]){1, 300}, false); /* none of them did anything */
    must(&s, smg_model_set_range(s.ranged, "n", 4, 9));
    compare(&s, (int64_t[]){1, 6}, false);
    for (int64_t n = 3; n <= 10; n += 7) {
        fill(&s, (int64_t[]){1, n});
        must_fail(&s, smg_model_run(s.ranged, s.inputs, s.input_count, out, 0), SMG_INVALID,
                  n == 3 ? "n is 3, outside the range [4, 9]" : "n is 10, outside the range [4, 9]");
    }
    compare(&s, (int64_t[]){1, 9}, true);
    must(&s, smg_model_set_range(s.ranged, "n", 5, 5)); /* one size is a range too */
    compare(&s, (int64_t[]){1, 5}, false);
    compare(&s, (int64_t[]){1, 5}, true);
    finish(&s);
}

int main(void) {
    /* folder, size, precision */
    static const char *const bert[] = {"tests/models/hf-bert-tiny", "sequence", NULL};
    static const char *const gpt2[] = {"tests/models/hf-gpt2-tiny", "sequence", NULL};
    static const char *const llama[] = {"tests/models/hf-llama-tiny", "sequence", "f16"};
    static const char *const attention[] = {"tests/graphs/mha.smg", "s", "bf16"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(each_model, (void *)(uintptr_t)bert),
        cmocka_unit_test_prestate(each_model, (void *)(uintptr_t)gpt2),
        cmocka_unit_test_prestate(each_model, (void *)(uintptr_t)llama),
        cmocka_unit_test_prestate(each_model, (void *)(uintptr_t)attention),
        cmocka_unit_test(inputs_of_every_kind),
        cmocka_unit_test(function_of_a_length),
        cmocka_unit_test(a_length_within_a_capacity),
        cmocka_unit_test(opened_with_ranges),
        cmocka_unit_test(run_lists_share_a_range),
        cmocka_unit_test(sizes_beside_the_range),
        cmocka_unit_test(profiles),
        cmocka_unit_test(two_models),
        cmocka_unit_test(forms),
        cmocka_unit_test(refuses),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("range", tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
