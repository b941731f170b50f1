/* compile.c: the phases in order.
 *
 *     load -> rewrite -> plan -> glsl -> spirv -> bundle -> program
 *
 * Load is compile_load.c, program is made by compile_model.c; what stands between them is here and in
 * compile_bundle.c, or comes from the cache (compile_cache.c) as a bundle. Analysis (rewrite, plan) and
 * code (glsl, spirv, bundle) are two calls, because explain, info and the interpreter need only the first. */
#include "compile/compile.h"
#include "sched/sched.h"

static smg_status add_count(smg_compilation *c, const char *rule, int applied) {
    smg_rewrite_count *row = SMG_ARRAY_PUSH(c->arena, &c->report.rules);
    if (row == NULL) return SMG_MEMORY;
    *row = (smg_rewrite_count){rule, applied};
    return SMG_OK;
}

/* Copies beside an original that something else reads (a table that is gathered from and multiplied with). */
#define WEIGHTS_TWICE (64 << 20) /* bytes */
#define SHARE_TWICE 3            /* this part of all constants, where products are ten times as slow without */

/* What makes a weight's panels worth a copy: rows that they are read for, and more pages of memory than a core has at
 * hand, each row of the weight being on another one. */
#define PANEL_ROWS 4
#define PANEL_ELEMENTS (1 << 16)

/* Of all constants, in the type that they are stored in. */
static int64_t constant_bytes(const smg_compilation *c) {
    const smg_graph *g = c->graph;
    int64_t sum = 0, elements;
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *n = smg_graph_node(g, i);
        smg_type type = n->type == SMG_TYPE_F32 ? c->options.precision : n->type;
        if (smg_op_is_constant(n->op) && smg_size_is_const(g->sizes, smg_node_elements(g, i), &elements))
            sum += elements * smg_type_device_bytes(type);
    }
    return sum;
}

static smg_status store_weights(smg_compilation *c) {
    int across = 0, along = 0, joined = 0, laid = 0, turned = 0;
    smg_store_options o = {.limit = smg_target_largest_buffer(&c->target),
                           .twice = WEIGHTS_TWICE,
                           .stored = c->options.precision,
                           .nominal = c->nominal};
    if (c->options.precision != SMG_TYPE_F32) {
        smg_along best = smg_sched_along(&c->target, c->options.precision);
        o.few = best.results;
        o.few_joined = best.streamed;
        o.blocks = (smg_weight_blocks){.rows = best.block_rows, .cols = best.block_cols, .least = best.rows};
    }
    int panel = smg_sched_panel(&c->target);
    if (panel > 0) {
        o.panels = (smg_weight_blocks){.rows = 1, .cols = panel, .least = PANEL_ROWS, .smallest = PANEL_ELEMENTS};
        if (constant_bytes(c) / SHARE_TWICE > o.twice) o.twice = constant_bytes(c) / SHARE_TWICE;
    }
    /* Others want kernels that reach further, and read what is sliced where it is made. */
    bool time = c->options.objective == SMG_OBJECTIVE_TIME;
    if (time && !c->options.unfused) {
        SMG_TRY(smg_rewrite_lay_rows(c->graph, &laid));
        SMG_TRY(smg_rewrite_turn_values(c->graph, c->nominal, &turned));
    }
    SMG_TRY(add_count(c, "factor laid out as rows", laid));
    SMG_TRY(add_count(c, "value laid out as it is read", turned));
    if (time) SMG_TRY(smg_rewrite_join_products(c->graph, &o, &joined));
    SMG_TRY(add_count(c, "product joined with others of its left operand", joined));
    if (o.few > 0) SMG_TRY(smg_compile_choose_orders(c, &o));
    SMG_TRY(smg_rewrite_store_weights(c->graph, &o, &across, &along));
    c->report.nodes_after = c->graph->nodes.count;
    SMG_TRY(add_count(c, "weight stored along the result's axis", across));
    return add_count(c, "weight stored along the contracted axis", along);
}

/* A mask's end takes a kernel, for loops that stop there. */
static smg_status end_masks(smg_compilation *c) {
    int made = 0, weak = 0;
    if (c->options.objective == SMG_OBJECTIVE_DISPATCHES || c->options.unfused) return SMG_OK;
    SMG_TRY(smg_rewrite_end_masks(c->graph, c->options.padding_unread, &made, &weak));
    SMG_TRY(add_count(c, "mask whose end loops may stop at", made));
    return add_count(c, "softmax with a mask too weak to leave keys out", weak);
}

/* Constants that one binding cannot reach become parts first. */
static smg_status split(smg_compilation *c) {
    double start = smg_clock_seconds();
    smg_status status =
        smg_rewrite_split_constants(c->source, smg_target_largest_buffer(&c->target), &c->parts, &c->split);
    c->seconds.rewrite += smg_clock_seconds() - start;
    return status;
}

/* The code that belongs to the sentence of the context: a phase may stumble over a failure that an
 * earlier call left behind (memory, mostly) and see only that something is missing. */
static smg_status first_cause(smg_context *ctx, smg_status status) {
    smg_status recorded = smg_context_status(ctx);
    return status != SMG_OK && recorded != SMG_OK ? recorded : status;
}

/* In 16 bits, values that the sample shows not to fit stay as they are. */
static smg_status narrow(smg_compilation *c) {
    const smg_compile_options *o = &c->options;
    smg_peak *measured = NULL;
    if (o->precision != SMG_TYPE_F32 && o->sample_count > 0) {
        int symbols = smg_size_symbol_count(c->graph->sizes);
        int64_t *values = SMG_ARENA_ARRAY(c->arena, int64_t, (size_t)symbols + 1);
        if (values == NULL) return SMG_MEMORY;
        SMG_TRY(smg_tensor_sizes(c->ctx, c->graph, o->samples, o->sample_count, NULL, values));
        SMG_TRY(smg_compile_peaks(c, values, o->samples, o->sample_count, c->arena, &measured));
    }
    return smg_precision_make(c->graph, o->precision, measured, c->arena, &c->precision);
}

/* The sizes that the rewritten graph is planned for. */
static smg_status choose_sizes(smg_compilation *c) {
    const smg_compile_options *options = &c->options;
    int symbols = smg_size_symbol_count(c->graph->sizes);
    c->nominal = SMG_ARENA_ARRAY(c->arena, int64_t, (size_t)symbols + 1);
    if (c->nominal == NULL) return SMG_MEMORY;
    SMG_TRY(smg_sizes_limit(c->ctx, c->graph->sizes, options->max_dims, options->max_dim_count));
    SMG_TRY(smg_sizes_choose(c->ctx, c->graph, options->dims, options->dim_count, c->nominal));
    c->plan_options = (smg_plan_options){.objective = options->late_plan ? SMG_OBJECTIVE_TIME : options->objective,
                                         .parts = options->late_plan ? -1 : 0,
                                         .unfused = options->unfused,
                                         .rank = options->rank,
                                         .max_nodes = options->max_nodes,
                                         .max_products = options->max_products,
                                         .min_gain = options->min_gain,
                                         .max_live = options->max_live,
                                         .memory_pressure = options->memory_pressure,
                                         .keep_passes = options->keep_passes,
                                         .driver = options->driver,
                                         .measured = c->tuning.items,
                                         .measured_count = c->tuning.count,
                                         .timings = c->tuning.timings,
                                         .timing_count = c->tuning.timing_count,
                                         .cuts = c->tuning.cuts,
                                         .cut_count = c->tuning.cut_count,
                                         .rivals = options->passes.rivals,
                                         .report = options->report,
                                         .search = options->search,
                                         .splits = options->search || options->report || options->measured != NULL,
                                         .nominal = c->nominal};
    return SMG_OK;
}

static smg_status rewrite(smg_compilation *c) {
    double start = smg_clock_seconds();
    int views = 0;
    SMG_TRY(smg_rewrite_graph(c->parts != NULL ? c->parts : c->source, &c->graph, &c->report));
    c->report.nodes_before = c->source->nodes.count;
    SMG_TRY(add_count(c, "constant in parts that a binding reaches", c->split));
    SMG_TRY(end_masks(c));
    SMG_TRY(smg_compile_copy_outputs(c->graph));
    SMG_TRY(smg_compile_copy_views(c->graph, &views));
    SMG_TRY(add_count(c, "view that no kernel reads through copied as it lies", views));
    SMG_TRY(choose_sizes(c));
    SMG_TRY(store_weights(c));
    SMG_TRY(narrow(c));
    c->seconds.rewrite += smg_clock_seconds() - start;
    return SMG_OK;
}

smg_compile_options smg_compile_options_of(const smg_model_desc *desc) {
    smg_type precision = SMG_TYPE_F32;
    if (desc->precision != NULL) smg_type_find(desc->precision, &precision);
    smg_objective objective = desc->goal == SMG_GOAL_DISPATCHES ? SMG_OBJECTIVE_DISPATCHES
                              : desc->goal == SMG_GOAL_MEMORY   ? SMG_OBJECTIVE_MEMORY
                                                                : SMG_OBJECTIVE_TIME;
    return (smg_compile_options){
        .precision = precision,
        .objective = objective,
        .max_nodes = desc->max_fused_ops,
        .max_products = desc->max_fused_products,
        .min_gain = desc->min_gain / 100,
        .max_live = desc->max_memory,
        .unfused = desc->unfused,
        .no_matrices = desc->no_matrices,
        .padding_unread = desc->padding_unread,
        .samples = desc->samples,
        .sample_count = desc->sample_count,
        .rank = desc->rank,
        .dims = desc->dims,
        .dim_count = desc->dim_count,
        .max_dims = desc->max_dims,
        .max_dim_count = desc->max_dim_count,
        .tuning = desc->tuning,
        .no_plan_cache = desc->no_plan_cache,
    };
}

static smg_status plan(smg_compilation *c) {
    double start = smg_clock_seconds();
    SMG_TRY(smg_plan_make(c->graph, &c->target, &c->plan_options, c->arena, &c->plan));
    SMG_TRY(smg_compile_choose_terms(c));
    SMG_TRY(add_count(c, "product by terms, its factor's statistics apart", c->terms));
    SMG_TRY(smg_compile_choose_variants(c));
    for (int i = 0; i < c->plan->steps.count; i++) c->run_ops += c->plan->steps.items[i].node_count;
    c->seconds.plan = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status copy_dims(smg_arena *arena, const smg_dim **io_dims, int count) {
    smg_dim *copy = SMG_ARENA_ARRAY(arena, smg_dim, (size_t)(count > 0 ? count : 0) + 1);
    if (copy == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        copy[i] = (smg_dim){smg_arena_string(arena, (*io_dims)[i].name), (*io_dims)[i].value};
        if (copy[i].name == NULL) return SMG_MEMORY;
    }
    *io_dims = copy;
    return SMG_OK;
}

static smg_status copy_samples(smg_compilation *c) {
    smg_tensor *copy = SMG_ARENA_ARRAY(c->arena, smg_tensor, (size_t)c->options.sample_count + 1);
    if (copy == NULL) return SMG_MEMORY;
    for (int i = 0; i < c->options.sample_count; i++) {
        const smg_tensor *from = &c->options.samples[i];
        smg_type type = SMG_TYPE_F32;
        smg_type_find(from->type, &type);
        copy[i] = *from;
        copy[i].bytes = (size_t)(smg_tensor_elements(from) * smg_type_host_bytes(type));
        copy[i].name = smg_arena_string(c->arena, from->name);
        copy[i].type = smg_type_word(type);
        copy[i].data = smg_arena_alloc(c->arena, copy[i].bytes + 1, 1);
        if (copy[i].name == NULL || copy[i].data == NULL) return SMG_MEMORY;
        memcpy(copy[i].data, from->data, copy[i].bytes);
    }
    c->options.samples = copy;
    return SMG_OK;
}

/* What was measured is of the plan that prices choose: a rank and the yardstick are what they are. */
static smg_status take_tuning(smg_compilation *c) {
    const smg_compile_options *o = &c->options;
    if (o->rank > 0 || o->unfused) return SMG_OK;
    if (o->measured == NULL) return smg_tuning_read(c->ctx, &c->target, o->tuning, c->arena, &c->tuning);
    return smg_tuning_copy(o->measured, c->arena, &c->tuning);
}

static smg_status check_precision(const smg_compilation *c) {
    if (c->options.precision == SMG_TYPE_F32 || c->target.storage16) return SMG_OK;
    return smg_fail(c->ctx, SMG_UNSUPPORTED, "%s has no 16-bit storage, so precision %s is not to be had there",
                    c->target.name, smg_type_word(c->options.precision));
}

static smg_status create(smg_context *ctx, const smg_graph *g, const smg_target *target,
                         const smg_compile_options *options, smg_compilation **out_compilation) {
    static const smg_compile_options nothing = {0};
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_compilation *c = SMG_ARENA_NEW(arena, smg_compilation);
    if (c == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *c = (smg_compilation){.ctx = ctx, .arena = arena, .source = g, .target = *target};
    c->options = options != NULL ? *options : nothing;
    if (c->options.no_matrices) c->target.matrix_count = c->target.fragment_count = 0;
    smg_status status = copy_dims(arena, &c->options.dims, c->options.dim_count);
    if (status == SMG_OK) status = copy_dims(arena, &c->options.max_dims, c->options.max_dim_count);
    if (status == SMG_OK) status = check_precision(c);
    if (status == SMG_OK) status = copy_samples(c);
    if (status == SMG_OK) status = take_tuning(c);
    if (status == SMG_OK) status = split(c);
    if (status == SMG_OK)
        *out_compilation = c;
    else
        smg_compilation_destroy(c);
    return status;
}

static smg_status analyse(smg_compilation *c) {
    smg_progress(c->ctx, "analysis", 0, 1, c->source->name);
    SMG_TRY(rewrite(c));
    SMG_TRY(plan(c));
    smg_progress(c->ctx, "analysis", 1, 1, c->source->name);
    return SMG_OK;
}

/* Gives the compilation away, or frees it. */
static smg_status finish(smg_context *ctx, smg_status status, smg_compilation *c, smg_compilation **out_compilation) {
    if (status == SMG_OK) {
        *out_compilation = c;
        return SMG_OK;
    }
    smg_compilation_destroy(c);
    return first_cause(ctx, status);
}

smg_status smg_compile_plan(smg_context *ctx, const smg_graph *g, const smg_target *target,
                            const smg_compile_options *options, smg_compilation **out_compilation) {
    smg_compilation *c = NULL;
    *out_compilation = NULL;
    smg_status status = create(ctx, g, target, options, &c);
    if (status == SMG_OK) status = analyse(c);
    return finish(ctx, status, c, out_compilation);
}

smg_status smg_compile_open(smg_context *ctx, const smg_graph *g, const smg_target *target,
                            const smg_compile_options *options, smg_compilation **out_compilation) {
    smg_compilation *c = NULL;
    *out_compilation = NULL;
    smg_status status = create(ctx, g, target, options, &c);
    double start = smg_clock_seconds();
    if (status == SMG_OK) smg_compile_cache_open(c);
    bool found = status == SMG_OK && !c->options.plan_anew && smg_compile_cache_read(c);
    if (c != NULL) c->seconds.cache = smg_clock_seconds() - start;
    if (status == SMG_OK && !found) status = analyse(c);
    if (status == SMG_OK) status = smg_compile_modules(c);
    if (status == SMG_OK && !found) smg_compile_cache_write(c);
    return finish(ctx, status, c, out_compilation);
}

smg_status smg_compile_modules(smg_compilation *c) {
    if (c->bundle != NULL) return SMG_OK;
    smg_status status = smg_compile_bundle(c);
    if (status == SMG_OK) status = smg_bundle_verify(c->ctx, c->bundle);
    return first_cause(c->ctx, status);
}

/* Of a bundle that was read, the graph that its plan was made of: the same rewrites of the same graph. Whatever is not
 * as it was then leaves the compilation as it is, without a graph. */
static smg_status revive(smg_compilation *c) {
    smg_variant kept[SMG_MAX_VARIANTS];
    int count = c->variant_count, terms = c->terms;
    bool fits = false;
    memcpy(kept, c->variants, sizeof(kept));
    int64_t *nominal = c->nominal;
    smg_status status = rewrite(c);
    if (status == SMG_OK && c->terms > 0) status = smg_compile_take_terms(c);
    if (status == SMG_OK) status = smg_compile_choose_variants(c);
    bool same = status == SMG_OK && count == c->variant_count && terms == c->terms;
    for (int i = 0; same && i < count; i++) {
        same = kept[i].low == c->variants[i].low && kept[i].high == c->variants[i].high;
    }
    if (same) status = smg_compile_resume(c, &fits);
    if (status == SMG_OK && fits) return SMG_OK;
    if (status == SMG_OK) smg_log(c->ctx, SMG_LOG_WARNING, "the plan kept of '%s' does not fit it", c->source->name);
    smg_graph_destroy(c->graph);
    c->graph = NULL;
    c->bundler = NULL;
    memcpy(c->variants, kept, sizeof(kept));
    c->variant_count = count;
    c->terms = terms;
    c->nominal = nominal;
    return status;
}

smg_status smg_compile_need_graph(smg_compilation *c) {
    return c->graph == NULL ? revive(c) : SMG_OK;
}

smg_status smg_compile_variant(smg_compilation *c, int variant) {
    smg_variant *v = &c->variants[variant];
    SMG_TRY(smg_compile_need_graph(c));
    if (c->graph == NULL) return SMG_OK; /* the first list serves all sizes */
    if (v->plan == NULL) {
        double start = smg_clock_seconds();
        smg_plan_options options = c->plan_options;
        options.nominal = v->nominal;
        options.run_only = true;
        options.or_least = true; /* its sizes are not those that the limit is for */
        SMG_TRY(smg_compile_stacks(c, &options));
        SMG_TRY(smg_plan_make(c->graph, &c->target, &options, c->arena, &v->plan));
        c->seconds.plan += smg_clock_seconds() - start;
    }
    if (c->bundle == NULL || c->bundle->variants.items[variant].made) return SMG_OK;
    SMG_TRY(smg_compile_add_variant(c, variant));
    smg_compile_cache_write(c);
    return SMG_OK;
}

void smg_compilation_destroy(smg_compilation *c) {
    if (c == NULL) return;
    smg_graph_destroy(c->graph);
    smg_graph_destroy(c->parts);
    smg_arena_destroy(c->arena);
}

int smg_compile_op_count(const smg_graph *g) {
    int count = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        count += smg_node_computes(smg_graph_node(g, id));
    }
    return count;
}

int smg_compile_kernel_count(const smg_compilation *c) {
    return c->bundle != NULL ? c->bundle->variants.items[0].run.count : c->plan->steps.count;
}

/* By the bundle where there is no plan; it has the same numbers. */
void smg_compile_work(const smg_compilation *c, double *out_bytes, double *out_flops, double *out_seconds) {
    *out_bytes = 0;
    *out_flops = 0;
    *out_seconds = 0;
    for (int i = 0; c->plan != NULL && i < c->plan->steps.count; i++) {
        const smg_price *price = &c->plan->steps.items[i].price;
        *out_bytes += price->bytes;
        *out_flops += price->flops;
        *out_seconds += price->seconds;
    }
    if (c->plan != NULL) return;
    const smg_bvariant *first = &c->bundle->variants.items[0];
    for (int i = 0; i < first->run.count; i++) {
        int64_t bytes = 0, flops = 0;
        smg_size_is_const(c->bundle->sizes, first->run.items[i].bytes, &bytes);
        smg_size_is_const(c->bundle->sizes, first->run.items[i].flops, &flops);
        *out_bytes += (double)bytes;
        *out_flops += (double)flops;
        *out_seconds += first->run.items[i].estimate;
    }
}
