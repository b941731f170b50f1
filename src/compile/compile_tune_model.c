/* compile_tune_model.c: include/smg/tune.h: arrays of a run for a model, around the tuner (compile_tune.c). */
#include "compile/compile.h"

#define RIVALS 15 /* schedules of a kernel beside the one of the lowest price, unless told */
#define SECONDS 1.0
#define FEWEST_PARTS 30 /* of a limited time one measurement takes no more than such a part */

/* The result with the arena that it lies in. */
typedef struct kept {
    smg_tuned told; /* first: it is what callers have */
    smg_arena *arena;
} kept;

#if SMG_VULKAN

static smg_status check(smg_context *ctx, const smg_model_desc *model, const smg_tune_desc *tune) {
    SMG_TRY(smg_desc_check(ctx, model));
    if (tune->input_count < 0 || (tune->inputs == NULL && tune->input_count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_tune_desc: %d inputs, %s", tune->input_count,
                        tune->input_count < 0 ? "less than none" : "whose array is NULL");
    if (!(tune->seconds >= 0))
        return smg_fail(ctx, SMG_INVALID, "smg_tune_desc: seconds is %g, less than no time", tune->seconds);
    if (tune->schedules < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_tune_desc: schedules is %d, less than none", tune->schedules);
    if (tune->path == NULL && smg_context_cache_dir(ctx)[0] == '\0')
        return smg_fail(ctx, SMG_INVALID, "there is no cache folder for what is measured: name a file");
    if (tune->fit_rates && (model->no_calibrate || model->nominal_rates))
        return smg_fail(ctx, SMG_INVALID, "rates are fitted from those that plans are made with: not with %s",
                        model->no_calibrate ? "no_calibrate" : "nominal_rates");
    if (tune->fit_rates && smg_context_cache_dir(ctx)[0] == '\0')
        return smg_fail(ctx, SMG_INVALID, "there is no cache folder for fitted rates");
    return SMG_OK;
}

/* Those of the arrays, else those of the description, else what plans assume. */
static smg_status choose_sizes(smg_context *ctx, const smg_interface *n, const smg_model_desc *model,
                               const smg_tensor *inputs, int64_t *out_values) {
    int symbols = smg_size_symbol_count(n->sizes);
    for (int i = 0; i < symbols; i++) out_values[i] = n->nominal[i];
    for (int i = 0; i < model->max_dim_count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(ctx, n->sizes, model->max_dims[i].name, &symbol));
        if (out_values[symbol] > model->max_dims[i].value) out_values[symbol] = model->max_dims[i].value;
    }
    SMG_TRY(smg_sizes_give(ctx, n->sizes, model->dims, model->dim_count, out_values));
    return smg_interface_sizes(ctx, n, inputs, n->input_count, out_values, out_values);
}

static smg_fill fill_of(const smg_port *port) {
    return port->absent == SMG_ABSENT_ONES    ? SMG_FILL_ONES
           : port->absent == SMG_ABSENT_ZEROS ? SMG_FILL_ZEROS
                                              : SMG_FILL_RANDOM;
}

/* Arrays for all inputs, and sizes as dims of the description. */
static smg_status make_run(smg_context *ctx, const smg_interface *n, const smg_tune_desc *tune, smg_arena *arena,
                           smg_model_desc *io_model, smg_tune_options *options) {
    int symbols = smg_size_symbol_count(n->sizes);
    smg_inputs inputs;
    int64_t *values = SMG_ARENA_ARRAY(arena, int64_t, (size_t)symbols + 1);
    smg_dim *dims = SMG_ARENA_ARRAY(arena, smg_dim, (size_t)symbols + 1);
    if (values == NULL || dims == NULL) return SMG_MEMORY;
    SMG_TRY(smg_inputs_make(ctx, n, arena, &inputs));
    SMG_TRY(smg_inputs_collect(&inputs, tune->inputs, tune->input_count));
    SMG_TRY(choose_sizes(ctx, n, io_model, inputs.all, values));
    for (int i = 0; i < n->input_count; i++) {
        const smg_port *port = &n->inputs[i];
        if (smg_tensor_is_given(&inputs.all[i])) continue;
        SMG_TRY(smg_tensor_fill_port(ctx, n, port, values, fill_of(port), tune->seed, arena, &inputs.all[i]));
    }
    for (int i = 0; i < symbols; i++) dims[i] = (smg_dim){smg_size_symbol_name(n->sizes, i), values[i]};
    io_model->dims = dims;
    io_model->dim_count = symbols;
    options->inputs = inputs.all;
    options->input_count = n->input_count;
    options->symbols = values;
    return SMG_OK;
}

static smg_status tune_in(smg_arena *arena, smg_source *source, const smg_model_desc *model, const smg_tune_desc *tune,
                          smg_tuned *out) {
    smg_context *ctx = source->ctx;
    smg_interface *interface = NULL;
    smg_model_desc desc = *model;
    smg_tune_options options = {.rivals = tune->schedules > 0 ? tune->schedules - 1 : RIVALS,
                                .seconds = SECONDS,
                                .limit = tune->seconds,
                                .path = tune->path,
                                .fit_rates = tune->fit_rates,
                                .progress = tune->progress,
                                .progress_user = tune->user};
    if (options.limit > 0 && options.seconds > options.limit / FEWEST_PARTS)
        options.seconds = options.limit / FEWEST_PARTS;
    SMG_TRY(check(ctx, model, tune));
    SMG_TRY(smg_compile_interface(arena, source->graph, source, &interface));
    SMG_TRY(make_run(ctx, interface, tune, arena, &desc, &options));
    return smg_compile_tune(ctx, source, &desc, &options, arena, out);
}

#else

static smg_status tune_in(smg_arena *arena, smg_source *source, const smg_model_desc *model, const smg_tune_desc *tune,
                          smg_tuned *out) {
    (void)arena, (void)model, (void)tune, (void)out;
    return smg_fail(source->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: there is nothing to measure");
}

#endif

smg_status smg_model_tune_source(smg_context *ctx, smg_source *source, const smg_model_desc *model,
                                 const smg_tune_desc *tune, smg_tuned **out_tuned) {
    static const smg_model_desc no_model = {0};
    static const smg_tune_desc no_tune = {0};
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    kept *k = SMG_ARENA_NEW(arena, kept);
    smg_status status =
        k != NULL ? tune_in(arena, source, model != NULL ? model : &no_model, tune != NULL ? tune : &no_tune, &k->told)
                  : SMG_MEMORY;
    if (status != SMG_OK || out_tuned == NULL) {
        smg_arena_destroy(arena);
        return status;
    }
    k->arena = arena;
    *out_tuned = &k->told;
    return SMG_OK;
}

static smg_status tune_path(smg_context *ctx, const char *path, const smg_model_desc *model, const smg_tune_desc *tune,
                            smg_tuned **out_tuned) {
    smg_source source = {0};
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_tune: the path is NULL");
    SMG_TRY(smg_source_open(ctx, path, false, &source));
    smg_status status = smg_model_tune_source(ctx, &source, model, tune, out_tuned);
    smg_source_close(&source);
    return status;
}

smg_status smg_model_tune(smg_context *ctx, const char *path, const smg_model_desc *model, const smg_tune_desc *tune,
                          smg_tuned **out_tuned) {
    if (out_tuned != NULL) *out_tuned = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, tune_path(ctx, path, model, tune, out_tuned));
}

static smg_status tune_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *model, const smg_tune_desc *tune,
                             smg_tuned **out_tuned) {
    if (graph == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_tune_graph: the graph is NULL");
    SMG_TRY(smg_graph_finish(graph));
    smg_source source = {.ctx = ctx, .graph = graph};
    return smg_model_tune_source(ctx, &source, model, tune, out_tuned);
}

smg_status smg_model_tune_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *model,
                                const smg_tune_desc *tune, smg_tuned **out_tuned) {
    if (out_tuned != NULL) *out_tuned = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, tune_graph(ctx, graph, model, tune, out_tuned));
}

void smg_tuned_destroy(smg_tuned *tuned) {
    if (tuned != NULL) smg_arena_destroy(((kept *)(void *)tuned)->arena);
}
