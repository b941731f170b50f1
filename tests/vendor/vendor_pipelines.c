/* vendor_pipelines: what a vendor's shader compiler makes of our kernels.
 *
 *     vendor_pipelines GRAPH
 *
 * Opens the device that the environment gives, plans the graph for its queried limits with both
 * objectives and builds every pipeline. Nothing is dispatched and nothing measured, so it works under
 * the no-op DRM shims. Prints lines of words between tabs, for vendor_table.py:
 *
 *     device   NAME DRIVER SHARED INVOCATIONS SUBGROUP_MIN SUBGROUP_MAX SELECTABLE REGISTERS ORIGIN
 *     objective WORD STEPS SECONDS
 *     kernel   NAME LOCAL SUBGROUP_ASKED SHARED_PLANNED REGISTERS_PLANNED WRITES [NAME=VALUE ...]
 *     failed   SENTENCE
 *
 * Exit status: 0, 1 with a sentence where a kernel could not be planned or built, 77: no device. */
#include <stdio.h>

#include "glsl/glsl.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"
#include "spirv/spirv.h"
#include "vulkan/vulkan.h"

typedef struct vendor {
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *device;
    smg_spirv_compiler *compiler;
    int failures;
} vendor;

static void print_device(const smg_target *t) {
    printf("device\t%s\t%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%s\n", t->name, t->driver,
           (long long)t->shared_bytes, (long long)t->max_invocations, (long long)t->subgroup_min,
           (long long)t->subgroup_max, (long long)t->subgroup_selectable,
           (long long)t->registers_lane, smg_target_origin_word(t->registers_lane_from));
}

/* The driver must have built what was asked for; some ignore a size without a word. */
static smg_status check_stats(vendor *v, const char *name, int asked, const smg_vk_stat *stats,
                              int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(stats[i].name, "subgroup size") != 0 || asked <= 1) continue;
        if ((int)stats[i].value == asked) return SMG_OK;
        return smg_fail(v->ctx, SMG_INTERNAL, "kernel '%s' was built for subgroups of %d, not of %d",
                        name, (int)stats[i].value, asked);
    }
    if (asked <= 1) return SMG_OK;
    return smg_fail(v->ctx, SMG_UNSUPPORTED, "kernel '%s': the driver does not tell its subgroup size",
                    name);
}

static smg_status build_kernel(vendor *v, const smg_kernel *k, smg_text *text) {
    const smg_target *target = smg_vk_target(v->device);
    smg_glsl_interface interface = {0};
    smg_spirv_module module = {0};
    SMG_TRY(smg_glsl_describe(v->ctx, k, target, &interface));
    SMG_TRY(smg_glsl_write(v->ctx, k, target, text));
    SMG_TRY(smg_text_status(text));
    SMG_TRY(smg_spirv_compile(v->compiler, v->arena, k->name, smg_text_cstr(text), NULL, &module));
    const smg_vk_pipeline_desc desc = {
        .name = k->name,
        .words = module.words,
        .word_count = module.word_count,
        .local_size = {interface.local_size, 1, 1},
        .binding_count = interface.binding_count,
        .push_bytes = interface.push_count * 4,
        .subgroup_size = interface.subgroup_size,
        .full_subgroups = interface.subgroup_size > 1,
    };
    smg_vk_pipeline *pipeline = NULL;
    SMG_TRY(smg_vk_pipeline_create(v->device, &desc, &pipeline));
    smg_vk_stat *stats = NULL;
    int count = 0;
    smg_status status = smg_vk_pipeline_stats(pipeline, v->arena, &stats, &count);
    smg_vk_pipeline_destroy(pipeline);
    SMG_TRY(status);
    printf("kernel\t%s\t%d\t%d\t%lld\t%lld", k->name, interface.local_size, interface.subgroup_size,
           (long long)smg_kernel_shared_bytes(k), (long long)smg_kernel_registers(k));
    const char *before = "\t";
    for (int i = 0; i < k->buffers.count; i++) {
        if (!k->buffers.items[i].written) continue;
        printf("%s%s", before, k->buffers.items[i].name);
        before = ", ";
    }
    for (int i = 0; i < count; i++) printf("\t%s=%.15g", stats[i].name, stats[i].value);
    printf("\n");
    return check_stats(v, k->name, interface.subgroup_size, stats, count);
}

/* Goes on after a failure, so that one run shows all of them. */
static void report(vendor *v) {
    printf("failed\t%s\n", smg_context_error(v->ctx));
    fprintf(stderr, "%s\n", smg_context_error(v->ctx));
    smg_context_clear_error(v->ctx);
    v->failures++;
}

static smg_status build_plan(vendor *v, const smg_graph *g, smg_objective objective) {
    int64_t nominal[32];
    int symbols = smg_size_symbol_count(g->sizes);
    if (symbols > (int)SMG_COUNT_OF(nominal))
        return smg_fail(v->ctx, SMG_UNSUPPORTED, "graph '%s' has %d symbols", g->name, symbols);
    smg_plan_nominal(g, nominal);
    for (int i = 0; i < symbols; i++)
        if (strcmp(smg_size_symbol_name(g->sizes, i), "batch") == 0) nominal[i] = 1;
    const smg_plan_options options = {.objective = objective, .nominal = nominal};
    smg_plan *plan = NULL;
    SMG_TRY(smg_plan_make(g, smg_vk_target(v->device), &options, v->arena, &plan));
    double seconds = 0;
    for (int i = 0; i < plan->steps.count; i++) seconds += plan->steps.items[i].price.seconds;
    printf("objective\t%s\t%d\t%.3g\n", objective == SMG_OBJECTIVE_TIME ? "time" : "dispatches",
           plan->steps.count, seconds);
    for (int i = 0; i < plan->steps.count; i++) {
        smg_text text;
        smg_text_init(&text, v->ctx);
        if (build_kernel(v, plan->steps.items[i].kernel, &text) != SMG_OK) report(v);
        smg_text_free(&text);
        fflush(stdout);
    }
    return SMG_OK;
}

static smg_status load(smg_context *ctx, const char *path, smg_graph **out_graph) {
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(smg_file_read(ctx, path, &text, &size));
    smg_graph *parsed = NULL;
    smg_rewrite_report rules;
    smg_status status = smg_graph_parse(ctx, text, size, path, &parsed);
    smg_free(ctx, text, size + 1);
    if (status == SMG_OK) status = smg_rewrite_graph(parsed, out_graph, &rules);
    smg_graph_destroy(parsed);
    return status;
}

static smg_status build(vendor *v, const char *path) {
    smg_graph *graph = NULL;
    SMG_TRY(smg_arena_create(v->ctx, &v->arena));
    SMG_TRY(smg_spirv_compiler_create(v->ctx, &v->compiler));
    SMG_TRY(load(v->ctx, path, &graph));
    smg_vk_keep_stats(v->device, true);
    print_device(smg_vk_target(v->device));
    if (build_plan(v, graph, SMG_OBJECTIVE_TIME) != SMG_OK) report(v);
    if (build_plan(v, graph, SMG_OBJECTIVE_DISPATCHES) != SMG_OK) report(v);
    smg_graph_destroy(graph);
    return SMG_OK;
}

int main(int argc, char **argv) {
    vendor v = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: vendor_pipelines GRAPH\n");
        return 2;
    }
    if (smg_context_create(NULL, &v.ctx) != SMG_OK) return 1;
    smg_status status = smg_vk_open(v.ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &v.device);
    bool none = status == SMG_NOT_FOUND;
    if (status == SMG_OK) status = build(&v, argv[1]);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(v.ctx));
    smg_spirv_compiler_destroy(v.compiler);
    smg_arena_destroy(v.arena);
    smg_vk_close(v.device);
    smg_context_destroy(v.ctx);
    if (none) return 77;
    return status == SMG_OK && v.failures == 0 ? 0 : 1;
}
