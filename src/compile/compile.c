/* compile.c: the phases in order.
 *
 *     load -> rewrite -> plan -> glsl -> spirv -> bundle -> program
 *
 * Load is compile_load.c, program is made by compile_model.c; what stands between them is here and in
 * compile_bundle.c. Analysis (rewrite, plan) and code (glsl, spirv, bundle) are two calls, because
 * explain, info and the interpreter need only the first. */
#include "compile/compile.h"

static smg_status add_count(smg_compilation *c, const char *rule, int applied) {
    smg_rewrite_count *row = SMG_ARRAY_PUSH(c->arena, &c->report.rules);
    if (row == NULL) return SMG_MEMORY;
    *row = (smg_rewrite_count){rule, applied};
    return SMG_OK;
}

/* Copies beside an original that something else reads (a table that is gathered from and multiplied with). */
#define WEIGHTS_TWICE (64 << 20) /* bytes */

static smg_status store_weights(smg_compilation *c) {
    int copies = 0;
    SMG_TRY(smg_graph_store_weights(c->graph, smg_target_largest_buffer(&c->target), WEIGHTS_TWICE, &copies));
    c->report.nodes_after = c->graph->nodes.count;
    return add_count(c, "weight stored along the result's axis", copies);
}

/* Constants that one binding cannot reach become parts first. */
static smg_status split_and_rewrite(smg_compilation *c, const smg_graph *g) {
    smg_graph *parts = NULL;
    int constants = 0;
    SMG_TRY(smg_graph_split_constants(g, smg_target_largest_buffer(&c->target), &parts, &constants));
    smg_status status = smg_graph_rewrite(parts != NULL ? parts : g, &c->graph, &c->report);
    smg_graph_destroy(parts);
    SMG_TRY(status);
    c->report.nodes_before = g->nodes.count;
    return add_count(c, "constant in parts that a binding reaches", constants);
}

/* The code that belongs to the sentence of the context: a phase may stumble over a failure that an
 * earlier call left behind (memory, mostly) and see only that something is missing. */
static smg_status first_cause(smg_context *ctx, smg_status status) {
    smg_status recorded = smg_context_status(ctx);
    return status != SMG_OK && recorded != SMG_OK ? recorded : status;
}

static smg_status rewrite(smg_compilation *c, const smg_graph *g) {
    double start = smg_clock_seconds();
    SMG_TRY(split_and_rewrite(c, g));
    SMG_TRY(smg_compile_copy_outputs(c->graph));
    SMG_TRY(store_weights(c));
    c->seconds.rewrite = smg_clock_seconds() - start;
    return SMG_OK;
}

smg_compile_options smg_compile_options_of(const smg_model_desc *desc) {
    return (smg_compile_options){
        .objective = desc->goal == SMG_GOAL_DISPATCHES ? SMG_OBJECTIVE_DISPATCHES : SMG_OBJECTIVE_TIME,
        .unfused = desc->unfused,
        .rank = desc->rank,
        .dims = desc->dims,
        .dim_count = desc->dim_count,
        .max_dims = desc->max_dims,
        .max_dim_count = desc->max_dim_count,
    };
}

static smg_status plan(smg_compilation *c, const smg_compile_options *options) {
    double start = smg_clock_seconds();
    int symbols = smg_size_symbol_count(c->graph->sizes);
    c->nominal = SMG_ARENA_ARRAY(c->arena, int64_t, (size_t)symbols + 1);
    if (c->nominal == NULL) return SMG_MEMORY;
    SMG_TRY(smg_sizes_limit(c->ctx, c->graph->sizes, options->max_dims, options->max_dim_count));
    SMG_TRY(smg_sizes_choose(c->ctx, c->graph, options->dims, options->dim_count, c->nominal));
    c->plan_options = (smg_plan_options){
        .objective = options->objective, .unfused = options->unfused, .rank = options->rank, .nominal = c->nominal};
    SMG_TRY(smg_plan_make(c->graph, &c->target, &c->plan_options, c->arena, &c->plan));
    SMG_TRY(smg_compile_choose_variants(c));
    c->seconds.plan = smg_clock_seconds() - start;
    return SMG_OK;
}

smg_status smg_compile_plan(smg_context *ctx, const smg_graph *g, const smg_target *target,
                            const smg_compile_options *options, smg_compilation **out_compilation) {
    static const smg_compile_options nothing = {0};
    *out_compilation = NULL;
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_compilation *c = SMG_ARENA_NEW(arena, smg_compilation);
    if (c == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *c = (smg_compilation){.ctx = ctx, .arena = arena, .source = g, .target = *target};
    smg_progress(ctx, "analysis", 0, 1, g->name);
    smg_status status = rewrite(c, g);
    if (status == SMG_OK) status = plan(c, options != NULL ? options : &nothing);
    if (status != SMG_OK) {
        smg_compilation_destroy(c);
        return first_cause(ctx, status);
    }
    smg_progress(ctx, "analysis", 1, 1, g->name);
    *out_compilation = c;
    return SMG_OK;
}

smg_status smg_compile_modules(smg_compilation *c) {
    if (c->bundle != NULL) return SMG_OK;
    smg_status status = smg_compile_bundle(c);
    if (status == SMG_OK) status = smg_bundle_verify(c->ctx, c->bundle);
    return first_cause(c->ctx, status);
}

smg_status smg_compile_variant(smg_compilation *c, int variant) {
    smg_variant *v = &c->variants[variant];
    if (v->plan == NULL) {
        double start = smg_clock_seconds();
        smg_plan_options options = c->plan_options;
        options.nominal = v->nominal;
        options.run_only = true;
        SMG_TRY(smg_plan_make(c->graph, &c->target, &options, c->arena, &v->plan));
        c->seconds.plan += smg_clock_seconds() - start;
    }
    if (c->bundle == NULL || c->bundle->variants.items[variant].made) return SMG_OK;
    return smg_compile_add_variant(c, variant);
}

void smg_compilation_destroy(smg_compilation *c) {
    if (c == NULL) return;
    smg_graph_destroy(c->graph);
    smg_arena_destroy(c->arena);
}

int smg_compile_op_count(const smg_graph *g) {
    int count = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        count += smg_node_computes(smg_graph_node(g, id));
    }
    return count;
}

int smg_compile_run_ops(const smg_compilation *c) {
    int count = 0;
    for (int i = 0; i < c->plan->steps.count; i++) count += c->plan->steps.items[i].node_count;
    return count;
}

void smg_compile_work(const smg_compilation *c, double *out_bytes, double *out_flops, double *out_seconds) {
    *out_bytes = 0;
    *out_flops = 0;
    *out_seconds = 0;
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_price *price = &c->plan->steps.items[i].price;
        *out_bytes += price->bytes;
        *out_flops += price->flops;
        *out_seconds += price->seconds;
    }
}
