/* vendor_pipelines: what a vendor's shader compiler makes of our kernels.
 *
 *     vendor_pipelines [--precision f16|bf16] [--opaque] MODEL ...
 *
 * Opens the device that the environment gives, plans each model for its queried limits with both
 * objectives and builds every pipeline of a run; where some spill, it plans again without them, as opening a model
 * does. Nothing is dispatched and nothing measured, so it works under the no-op DRM shims. Prints lines of words between tabs, for vendor_table.py:
 *
 *     device   NAME DRIVER SHARED INVOCATIONS SUBGROUP_MIN SUBGROUP_MAX SELECTABLE REGISTERS ORIGIN
 *     model    PATH
 *     objective WORD STEPS PLANS
 *     kernel   NAME LOCAL SUBGROUP_ASKED SHARED_PLANNED REGISTERS_PLANNED MATRIX WRITES [NAME=VALUE ...]
 *     failed   SENTENCE
 *
 * --opaque: as if nobody knew where the driver keeps elements of matrices.
 *
 * Exit status: 0, 1 with a sentence where a kernel could not be planned or built, 77: no device. */
#include <stdio.h>

#include "compile/compile.h"
#include "glsl/glsl.h"
#include "vulkan/vulkan_prove.h"

typedef struct vendor {
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *device;
    smg_target target; /* that kernels are planned for */
    smg_spirv_compiler *compiler;
    smg_type precision;
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

/* What the driver made of a text. */
typedef struct made {
    smg_vk_built built;
    int subgroup; /* that is asked for; 0: none */
    smg_vk_stat *stats;
    int count;
} made;

static smg_status build_kernel(vendor *v, const smg_kernel *k, const char *text, made *out) {
    smg_glsl_interface interface = {0};
    smg_spirv_module module = {0};
    SMG_TRY(smg_glsl_describe(v->ctx, k, &v->target, &interface));
    SMG_TRY(smg_spirv_compile(v->compiler, v->arena, k->name, text, NULL, &module));
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
    smg_status status = smg_vk_pipeline_stats(pipeline, v->arena, &out->stats, &out->count);
    out->subgroup = interface.subgroup_size;
    out->built = smg_vk_pipeline_built(pipeline);
    smg_vk_pipeline_destroy(pipeline);
    SMG_TRY(status);
    return check_stats(v, k->name, interface.subgroup_size, out->stats, out->count);
}

static void add_line(const smg_kernel *k, const made *m, smg_text *out) {
    smg_text_addf(out, "kernel\t%s\t%d\t%d\t%lld\t%lld", k->name, k->lanes, m->subgroup,
                  (long long)smg_kernel_shared_bytes(k), (long long)smg_kernel_registers(k));
    if (k->matrix.rows > 0)
        smg_text_addf(out, "\t%dx%dx%d", k->matrix.rows, k->matrix.cols, k->matrix.depth);
    else
        smg_text_add(out, "\t-");
    const char *before = "\t";
    for (int i = 0; i < k->buffers.count; i++) {
        if (!k->buffers.items[i].written) continue;
        smg_text_addf(out, "%s%s", before, k->buffers.items[i].name);
        before = ", ";
    }
    for (int i = 0; i < m->count; i++) smg_text_addf(out, "\t%s=%.15g", m->stats[i].name, m->stats[i].value);
    smg_text_add(out, "\n");
}

/* Goes on after a failure, so that one run shows all of them. */
static void report(vendor *v) {
    printf("failed\t%s\n", smg_context_error(v->ctx));
    fprintf(stderr, "%s\n", smg_context_error(v->ctx));
    smg_context_clear_error(v->ctx);
    v->failures++;
}

/* Plans of one model for one objective. */
typedef struct plans {
    smg_map *known; /* of each text, what was made of it */
    smg_verdicts verdicts;
    bool again;
    int count;
    smg_text lines; /* of the last one */
} plans;

/* Layers repeat: equal texts are built once, and stand once in the lines of a plan. */
static smg_status build_step(vendor *v, plans *p, const smg_compilation *c, int index, smg_map *shown, smg_text *text) {
    const smg_pstep *step = &c->plan->steps.items[index];
    void *found;
    SMG_TRY(smg_glsl_write(v->ctx, step->kernel, &v->target, text));
    SMG_TRY(smg_text_status(text));
    const char *words = smg_text_cstr(text);
    made *m = smg_map_get(p->known, words, strlen(words), &found) ? found : NULL;
    if (m == NULL) {
        m = SMG_ARENA_NEW(v->arena, made);
        if (m == NULL) return SMG_MEMORY;
        SMG_TRY(smg_map_set(p->known, words, strlen(words), m));
        SMG_TRY(build_kernel(v, step->kernel, words, m));
    }
    smg_compile_judge(c, index, &m->built, &p->verdicts);
    if (smg_map_get(shown, words, strlen(words), &found)) return SMG_OK;
    add_line(step->kernel, m, &p->lines);
    return smg_map_set(shown, words, strlen(words), m);
}

static smg_status build_steps(vendor *v, plans *p, const smg_compilation *c) {
    smg_map *shown;
    SMG_TRY(smg_map_create(v->arena, &shown));
    for (int i = 0; i < c->plan->steps.count; i++) {
        smg_text text;
        smg_text_init(&text, v->ctx);
        if (build_step(v, p, c, i, shown, &text) != SMG_OK) report(v);
        smg_text_free(&text);
    }
    return SMG_OK;
}

static smg_status build_plan(vendor *v, plans *p, const smg_graph *g, smg_compile_options *options) {
    smg_compilation *c = NULL;
    options->driver = smg_verdicts_facts(&p->verdicts);
    options->late_plan = p->count >= SMG_MOST_PLANS - SMG_PLANS_BY_TIME;
    SMG_TRY(smg_compile_plan(v->ctx, g, &v->target, options, &c));
    p->count++;
    smg_text_free(&p->lines);
    smg_text_init(&p->lines, v->ctx);
    smg_text_addf(&p->lines, "objective\t%s\t%d\t%d\n", options->objective == SMG_OBJECTIVE_TIME ? "time" : "dispatches",
                  c->plan->steps.count, p->count);
    smg_status status = build_steps(v, p, c);
    p->again = smg_verdicts_want_plan(c, &p->verdicts);
    smg_compilation_destroy(c);
    return status;
}

/* Planned again by what the driver makes of it, as often as when a model is opened. */
static smg_status build_plans(vendor *v, const smg_graph *g, smg_objective objective) {
    const smg_dim one = {.name = "batch", .value = 1};
    smg_compile_options options = {.objective = objective, .precision = v->precision, .dims = &one};
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++)
        if (strcmp(smg_size_symbol_name(g->sizes, i), one.name) == 0) options.dim_count = 1;
    plans p = {.verdicts.arena = v->arena};
    SMG_TRY(smg_map_create(v->arena, &p.known));
    smg_text_init(&p.lines, v->ctx);
    smg_status status = SMG_OK;
    do {
        status = build_plan(v, &p, g, &options);
    } while (status == SMG_OK && p.again && p.count < SMG_MOST_PLANS);
    if (status == SMG_OK) status = smg_text_status(&p.lines);
    if (status == SMG_OK) printf("%s", smg_text_cstr(&p.lines));
    smg_text_free(&p.lines);
    return status;
}

static smg_status build(vendor *v, const char *path) {
    smg_source source = {0};
    SMG_TRY(smg_source_open(v->ctx, path, false, &source));
    printf("model\t%s\n", path);
    if (build_plans(v, source.graph, SMG_OBJECTIVE_TIME) != SMG_OK) report(v);
    if (build_plans(v, source.graph, SMG_OBJECTIVE_DISPATCHES) != SMG_OK) report(v);
    smg_source_close(&source);
    return SMG_OK;
}

/* What the library tries on such a device has to be built there; what comes out nobody computed. */
static smg_status build_proofs(vendor *v) {
    smg_vk_proof proof;
    const smg_target *target = smg_vk_target(v->device);
    SMG_TRY(smg_vk_proof_create(v->device, &proof));
    smg_status status = target->fp16 ? smg_vk_prove_fp16(&proof) : SMG_OK;
    if (status == SMG_OK && target->subgroup_size > 1) status = smg_vk_prove_subgroup_size(&proof);
    for (int i = 0; i < target->matrix_count && status == SMG_OK; i++)
        if (!smg_vk_matrix_untried(target, &target->matrix[i]))
            status = smg_vk_prove_matrix(&proof, &target->matrix[i]);
    smg_vk_proof_destroy(&proof);
    return status;
}

static smg_status build_all(vendor *v, int count, char **paths) {
    SMG_TRY(smg_arena_create(v->ctx, &v->arena));
    SMG_TRY(smg_spirv_compiler_create(v->ctx, &v->compiler));
    smg_vk_keep_stats(v->device, true);
    print_device(smg_vk_target(v->device));
    SMG_TRY(build_proofs(v));
    for (int i = 0; i < count; i++) SMG_TRY(build(v, paths[i]));
    return SMG_OK;
}

int main(int argc, char **argv) {
    vendor v = {0};
    bool precise = argc > 2 && strcmp(argv[1], "--precision") == 0;
    int first = precise ? 3 : 1;
    bool opaque = argc > first && strcmp(argv[first], "--opaque") == 0;
    first += opaque;
    if (argc <= first) {
        fprintf(stderr, "usage: vendor_pipelines [--precision f16|bf16] [--opaque] MODEL ...\n");
        return 2;
    }
    if (smg_context_create(NULL, &v.ctx) != SMG_OK) return 1;
    smg_status status = smg_precision_find(v.ctx, precise ? argv[2] : NULL, &v.precision);
    if (status == SMG_OK) status = smg_vk_open(v.ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &v.device);
    bool none = status == SMG_NOT_FOUND;
    if (status == SMG_OK) v.target = *smg_vk_target(v.device);
    if (opaque) v.target.fragment_count = 0;
    if (status == SMG_OK) status = build_all(&v, argc - first, argv + first);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(v.ctx));
    smg_spirv_compiler_destroy(v.compiler);
    smg_arena_destroy(v.arena);
    smg_vk_close(v.device);
    smg_context_destroy(v.ctx);
    if (none) return 77;
    return status == SMG_OK && v.failures == 0 ? 0 : 1;
}
