/* compile_source.c: include/smg/compile.h: a model that is loaded, and what it is made into: a model on a device, a
 * bundle, a compilation. */
#include "compile/compile.h"

/* What callers have, with all that is told of it. */
typedef struct loaded {
    smg_source source; /* first */
    smg_arena *arena;
    smg_source_facts facts;
} loaded;

static loaded *loaded_of(const smg_source *source) {
    return (loaded *)(void *)source;
}

/* ---- facts -------------------------------------------------------------------------------------------- */

static int64_t count_parameters(const smg_graph *g) {
    int64_t total = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        int64_t elements = 0;
        bool tensor = smg_op_leaf(node->op) == SMG_LEAF_TENSOR && !smg_node_is_input(node);
        if (tensor && smg_size_is_const(g->sizes, smg_node_elements(g, id), &elements)) total += elements;
    }
    return total;
}

static smg_status tell_graph(loaded *l) {
    const smg_graph *g = l->source.graph;
    smg_interface *interface = NULL;
    l->facts.name = g->name;
    l->facts.operations = smg_compile_op_count(g);
    l->facts.parameters = count_parameters(g);
    SMG_TRY(smg_compile_interface(l->arena, g, &l->source, &interface));
    return smg_signature_make(l->arena, interface, &l->facts.signature);
}

static smg_status tell_file(loaded *l) {
    const smg_onnx *onnx = l->source.onnx;
    smg_source_facts *f = &l->facts;
    f->name = "";
    f->declared_count = smg_onnx_declared_count(onnx);
    f->unsupported_count = smg_onnx_missing_count(onnx);
    smg_declared *declared = SMG_ARENA_ARRAY(l->arena, smg_declared, (size_t)f->declared_count + 1);
    smg_unsupported *unsupported = SMG_ARENA_ARRAY(l->arena, smg_unsupported, (size_t)f->unsupported_count + 1);
    if (declared == NULL || unsupported == NULL) return SMG_MEMORY;
    for (int i = 0; i < f->declared_count; i++) {
        const smg_onnx_declared *d = smg_onnx_declared_at(onnx, i);
        declared[i] = (smg_declared){.name = d->name, .type = d->type, .output = d->output};
    }
    for (int i = 0; i < f->unsupported_count; i++) {
        const smg_onnx_missing *m = smg_onnx_missing_at(onnx, i);
        unsupported[i] = (smg_unsupported){
            .node = m->node, .op = m->op, .domain = m->domain, .opset = m->opset, .reason = m->reason};
    }
    f->declared = declared;
    f->unsupported = unsupported;
    return SMG_OK;
}

const smg_source_facts *smg_source_get_facts(const smg_source *source) {
    return source != NULL ? &loaded_of(source)->facts : NULL;
}

/* ---- loading ------------------------------------------------------------------------------------------ */

/* Takes over the source, also on failure. */
static smg_status keep(smg_context *ctx, const smg_source *source, smg_source **out_source) {
    smg_arena *arena = NULL;
    smg_source own = *source;
    smg_status status = smg_arena_create(ctx, &arena);
    loaded *l = status == SMG_OK ? SMG_ARENA_NEW(arena, loaded) : NULL;
    if (l == NULL) {
        smg_arena_destroy(arena);
        smg_source_close(&own);
        return SMG_MEMORY;
    }
    *l = (loaded){.source = own, .arena = arena};
    status = own.graph != NULL ? tell_graph(l) : tell_file(l);
    if (status == SMG_OK)
        *out_source = &l->source;
    else
        smg_source_unload(&l->source);
    return status;
}

static smg_status load(smg_context *ctx, const char *path, const smg_source_desc *desc, smg_source **out_source) {
    static const smg_source_desc nothing = {0};
    smg_source source = {0};
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_source_load: the path is NULL");
    if (desc == NULL) desc = &nothing;
    SMG_TRY((desc->partial ? smg_source_look : smg_source_open)(ctx, path, desc->embedding, &source));
    return keep(ctx, &source, out_source);
}

smg_status smg_source_load(smg_context *ctx, const char *path, const smg_source_desc *desc, smg_source **out_source) {
    if (out_source == NULL) return SMG_INVALID;
    *out_source = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, load(ctx, path, desc, out_source));
}

static smg_status of_graph(smg_context *ctx, smg_graph *graph, smg_source **out_source) {
    if (graph == NULL) return smg_fail(ctx, SMG_INVALID, "smg_source_of_graph: the graph is NULL");
    SMG_TRY(smg_graph_finish(graph));
    const smg_source source = {.ctx = ctx, .graph = graph};
    return keep(ctx, &source, out_source);
}

smg_status smg_source_of_graph(smg_context *ctx, smg_graph *graph, smg_source **out_source) {
    if (out_source == NULL) return SMG_INVALID;
    *out_source = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, of_graph(ctx, graph, out_source));
}

void smg_source_unload(smg_source *source) {
    if (source == NULL) return;
    smg_arena *arena = loaded_of(source)->arena;
    smg_source_close(source);
    smg_arena_destroy(arena);
}

/* ---- what is made of it ------------------------------------------------------------------------------- */

static const smg_model_desc no_desc = {0};

/* What every call about a source begins with. */
static smg_status check(smg_source *source, const smg_model_desc *desc) {
    if (source->graph == NULL)
        return smg_fail(source->ctx, SMG_INVALID,
                        "the model has operators that smg does not know: nothing is made of it");
    return smg_desc_check(source->ctx, desc);
}

static smg_status open_model(smg_source *source, const smg_model_desc *desc, smg_model **out_model) {
    SMG_TRY(check(source, desc));
    return smg_model_open_source(source->ctx, source, NULL, desc, out_model);
}

smg_status smg_source_open_model(smg_source *source, const smg_model_desc *desc, smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (source == NULL) return SMG_INVALID;
    smg_context_clear_error(source->ctx);
    return smg_context_told(source->ctx, open_model(source, desc != NULL ? desc : &no_desc, out_model));
}

static smg_status tune(smg_source *source, const smg_model_desc *desc, const smg_tune_desc *how,
                       smg_tuned **out_tuned) {
    SMG_TRY(check(source, desc));
    return smg_model_tune_source(source->ctx, source, desc, how, out_tuned);
}

smg_status smg_source_tune(smg_source *source, const smg_model_desc *desc, const smg_tune_desc *how,
                           smg_tuned **out_tuned) {
    if (out_tuned != NULL) *out_tuned = NULL;
    if (source == NULL) return SMG_INVALID;
    smg_context_clear_error(source->ctx);
    return smg_context_told(source->ctx, tune(source, desc != NULL ? desc : &no_desc, how, out_tuned));
}

/* The samples of the description as arrays for all inputs, checked; *out_arrays (NULL: there are none) has them. */
static smg_status take_samples(smg_source *source, smg_compile_options *options, smg_arrays **out_arrays) {
    if (options->sample_count == 0) return SMG_OK;
    SMG_TRY(smg_arrays_create(source->ctx, loaded_of(source)->facts.signature, out_arrays));
    for (int i = 0; i < options->sample_count; i++) SMG_TRY(smg_arrays_give(*out_arrays, &options->samples[i]));
    SMG_TRY(smg_arrays_settle(*out_arrays, NULL));
    const smg_interface *n = (*out_arrays)->interface;
    for (int i = 0; i < n->input_count; i++) {
        if ((*out_arrays)->inputs[i].data != NULL) continue;
        if (n->inputs[i].absent == SMG_ABSENT_REFUSED)
            return smg_fail(source->ctx, SMG_INVALID, "input '%s' is missing among the samples", n->inputs[i].name);
        SMG_TRY(smg_arrays_fill(*out_arrays, n->inputs[i].name, SMG_FILL_OWN, 0));
    }
    options->samples = smg_arrays_inputs(*out_arrays, &options->sample_count);
    return SMG_OK;
}

/* ---- targets ------------------------------------------------------------------------------------------ */

static smg_status named_target(smg_context *ctx, const char *name, smg_target *out_target) {
    if (!smg_file_exists(name)) return smg_target_named(ctx, name, out_target);
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(smg_file_read(ctx, name, &text, &size));
    smg_status status = smg_target_parse(ctx, text, name, out_target);
    smg_free(ctx, text, size + 1);
    return status;
}

#if SMG_VULKAN

/* That of the description, with all that is known of it. */
static smg_status take_device(smg_context *ctx, const smg_model_desc *desc, smg_vk_device **out_device) {
    SMG_TRY(smg_model_check_device(ctx, desc->on));
    *out_device = desc->on;
    if (*out_device == NULL) SMG_TRY(smg_vk_open(ctx, desc->device, 0, out_device));
    return smg_compile_know_device(*out_device, desc);
}

static void drop_device(const smg_model_desc *desc, smg_vk_device *device) {
    if (device != desc->on) smg_vk_close(device);
}

static void plan_target(const smg_model_desc *desc, const smg_vk_device *device, smg_target *out_target) {
    smg_vk_plan_target(device, desc->nominal_rates, out_target);
}

#else

static smg_status take_device(smg_context *ctx, const smg_model_desc *desc, smg_vk_device **out_device) {
    (void)desc, (void)out_device;
    return smg_fail(ctx, SMG_UNSUPPORTED,
                    "this smg was built without Vulkan: a target is to be named, and none prepares weights");
}

static void drop_device(const smg_model_desc *desc, smg_vk_device *device) {
    (void)desc, (void)device;
}

static void plan_target(const smg_model_desc *desc, const smg_vk_device *device, smg_target *out_target) {
    (void)desc, (void)device, (void)out_target;
}

#endif

static smg_status device_target(smg_context *ctx, const smg_model_desc *desc, smg_target *out_target) {
    smg_vk_device *device = NULL;
    smg_status status = take_device(ctx, desc, &device);
    if (status == SMG_OK) plan_target(desc, device, out_target);
    drop_device(desc, device);
    return status;
}

/* ---- bundles ------------------------------------------------------------------------------------------ */

static smg_status named_targets(smg_context *ctx, const smg_bundle_writing *desc, smg_arena *arena,
                                smg_ahead_target *out) {
    for (int i = 0; i < desc->target_count; i++) {
        smg_ahead_target *t = &out[i];
        if (desc->targets[i] == NULL) return smg_fail(ctx, SMG_INVALID, "smg_bundle_writing: targets[%d] is NULL", i);
        SMG_TRY(named_target(ctx, desc->targets[i], &t->target));
        t->name = smg_arena_string(arena, t->target.name);
        t->match = smg_target_match(t->target.name);
        if (t->name == NULL) return SMG_MEMORY;
    }
    return SMG_OK;
}

static smg_status write_in(smg_arena *arena, smg_source *source, const smg_bundle_writing *desc,
                           const smg_model_desc *model, const char *path) {
    smg_context *ctx = source->ctx;
    int count = desc->target_count > 0 ? desc->target_count : 1;
    smg_vk_device *device = NULL;
    smg_arrays *samples = NULL;
    smg_compile_options options = smg_compile_options_of(model);
    smg_ahead_target *targets = SMG_ARENA_ARRAY(arena, smg_ahead_target, (size_t)count);
    if (targets == NULL) return SMG_MEMORY;
    bool named = desc->target_count > 0;
    if (named) SMG_TRY(named_targets(ctx, desc, arena, targets));
    smg_status status = !named || desc->prepared ? take_device(ctx, model, &device) : SMG_OK;
    if (status == SMG_OK && !named) {
        plan_target(model, device, &targets[0].target);
        targets[0].name = targets[0].match = targets[0].target.name;
        targets[0].built_on = device;
    }
    if (desc->prepared) targets[0].prepare_on = device;
    if (status == SMG_OK) status = take_samples(source, &options, &samples);
    if (status == SMG_OK) status = smg_compile_ahead(ctx, source, targets, count, &options, path);
    smg_arrays_destroy(samples);
    drop_device(model, device != NULL ? device : model->on);
    return status;
}

static smg_status write_bundle(smg_source *source, const smg_bundle_writing *desc, const char *path) {
    static const smg_bundle_writing nothing = {0};
    smg_arena *arena = NULL;
    if (desc == NULL) desc = &nothing;
    const smg_model_desc *model = desc->model != NULL ? desc->model : &no_desc;
    SMG_TRY(check(source, model));
    if (path == NULL) return smg_fail(source->ctx, SMG_INVALID, "smg_source_write_bundle: the path is NULL");
    if (desc->target_count < 0 || (desc->targets == NULL && desc->target_count > 0))
        return smg_fail(source->ctx, SMG_INVALID, "smg_bundle_writing: %d targets%s", desc->target_count,
                        desc->targets == NULL ? " at NULL" : "");
    SMG_TRY(smg_arena_create(source->ctx, &arena));
    smg_status status = write_in(arena, source, desc, model, path);
    smg_arena_destroy(arena);
    return status;
}

smg_status smg_source_write_bundle(smg_source *source, const smg_bundle_writing *desc, const char *path) {
    if (source == NULL) return SMG_INVALID;
    smg_context_clear_error(source->ctx);
    return smg_context_told(source->ctx, write_bundle(source, desc, path));
}

/* ---- compilations ------------------------------------------------------------------------------------- */

static smg_status compile(smg_source *source, const smg_compile_desc *desc, smg_compilation **out) {
    static const smg_compile_desc nothing = {0};
    smg_target target;
    if (desc == NULL) desc = &nothing;
    const smg_model_desc *model = desc->model != NULL ? desc->model : &no_desc;
    SMG_TRY(check(source, model));
    if (desc->target != NULL)
        SMG_TRY(named_target(source->ctx, desc->target, &target));
    else
        SMG_TRY(device_target(source->ctx, model, &target));
    smg_compile_options options = smg_compile_options_of(model);
    options.keep_passes = desc->passes;
    options.search = desc->search;
    options.report = desc->report;
    smg_arrays *samples = NULL;
    smg_status status = take_samples(source, &options, &samples);
    if (status == SMG_OK) status = smg_compile_plan(source->ctx, source->graph, &target, &options, out);
    smg_arrays_destroy(samples);
    return status;
}

smg_status smg_source_compile(smg_source *source, const smg_compile_desc *desc, smg_compilation **out_compilation) {
    if (out_compilation == NULL) return SMG_INVALID;
    *out_compilation = NULL;
    if (source == NULL) return SMG_INVALID;
    smg_context_clear_error(source->ctx);
    return smg_context_told(source->ctx, compile(source, desc, out_compilation));
}
