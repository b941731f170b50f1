/* compile_model.c: include/smg/model.h: a source, compiled, on a device.
 *
 * Opening is the list load -> device -> plan -> modules -> program. What runs it afterwards is runtime/, which has the
 * same of a bundle's file. */
#include <math.h>

#include "compile/compile.h"

#if SMG_VULKAN

/* What a model that was compiled here borrows from. */
typedef struct compiled {
    smg_context *ctx;
    smg_arena *arena;
    smg_source own; /* zero when the source is borrowed */
    smg_source *source;
    smg_compilation *c;
    smg_interface *interface;
    /* Where there was a hint: */
    smg_compilation *first; /* the one that it was opened with */
    smg_compilation *next;  /* that may take the place of c */
    bool hinted;
    bool nominal_rates; /* as the description says */
    double memory_pressure, compute_pressure;
    smg_dim *usual;                 /* one a symbol; value 0: nobody said */
    SMG_ARRAY(smg_choice) rejected; /* of later plans; empty: as it was opened */
    int anew;                       /* plans that were made because of the last of them */
} compiled;

static void drop_compiled(void *owner) {
    compiled *o = owner;
    if (o->first != o->c) smg_compilation_destroy(o->first);
    smg_compilation_destroy(o->c);
    if (o->own.graph != NULL) smg_source_close(&o->own);
    smg_arena_destroy(o->arena);
}

smg_compilation *smg_model_compilation(smg_model *m) {
    if (m == NULL || smg_model_parts_of(m)->drop != drop_compiled) return NULL; /* who borrows from something else */
    const compiled *o = smg_model_owner(m);
    return o->c;
}

smg_status smg_compile_know_device(smg_vk_device *device, const smg_model_desc *desc) {
    if (desc->no_calibrate) return SMG_OK;
    SMG_TRY(smg_vk_prove(device, !desc->no_matrices && smg_compile_options_of(desc).precision != SMG_TYPE_F32));
    return smg_vk_calibrate(device);
}

static smg_status open_device(compiled *o, const smg_model_desc *desc, smg_model_parts *parts) {
    double start = smg_clock_seconds();
    if (parts->device == NULL) {
        SMG_TRY(smg_vk_open(o->ctx, desc->device, 0, &parts->device));
        parts->owns_device = true;
    }
    SMG_TRY(smg_compile_know_device(parts->device, desc));
    parts->device_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status make_variant(void *user, int variant) {
    return smg_compile_variant(user, variant);
}

/* Outputs have infinities or NaN: is that the graph's, or the precision's? */
static smg_status name_overflow(void *owner, const int64_t *values, const smg_tensor *inputs, int count) {
    const compiled *o = owner;
    smg_arena *arena = NULL;
    smg_overflow found = {0};
    SMG_TRY(smg_arena_create(o->ctx, &arena));
    smg_status status = smg_compile_find_overflow(o->c, values, inputs, count, arena, &found);
    if (status == SMG_OK && found.value != NULL)
        status =
            smg_fail(o->ctx, SMG_UNSUPPORTED, "'%s' becomes %g, and %s ends at %g (%d such values, this is the first)",
                     found.value, found.size, smg_type_word(found.type), smg_type_limit(found.type), found.count);
    smg_arena_destroy(arena);
    return status;
}

/* The sample, as arrays for all inputs that have something. */
static smg_status take_samples(compiled *o, smg_compile_options *options) {
    smg_inputs inputs;
    smg_tensor *whole = NULL;
    if (options->sample_count == 0) return SMG_OK;
    SMG_TRY(smg_inputs_make(o->ctx, o->interface, o->arena, &inputs));
    SMG_TRY(smg_inputs_collect(&inputs, options->samples, options->sample_count));
    SMG_TRY(smg_inputs_size(&inputs, NULL));
    SMG_TRY(smg_inputs_whole(&inputs, o->arena, &whole, &options->sample_count));
    options->samples = whole;
    return SMG_OK;
}

/* ---- plans until the driver's compiler has nothing against one ---------------------------------------- */

typedef struct plans {
    compiled *o;
    const smg_open_parts *more;
    smg_judge judge;
} plans;

/* ---- later plans: hints, and what is not built ------------------------------------------------------- */

#define MOST_BUSY 0.95 /* of the device's arithmetic: with none at all nothing has a price */

static void take_rates(double busy, smg_target *target) {
    double left = 1 - (busy < MOST_BUSY ? busy : MOST_BUSY);
    target->fma_rate *= left;
    for (int i = 0; i < target->matrix_count; i++) target->matrix[i].rate *= left;
}

/* As it was opened, but for what the hint says and what the driver does not build. */
static smg_status open_again(compiled *o, const smg_vk_device *device, smg_compilation **out) {
    smg_compile_options options = o->first->options;
    smg_target target;
    int symbols = smg_size_symbol_count(o->interface->sizes), count = 0;
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(o->ctx, &arena));
    smg_dim *dims = SMG_ARENA_ARRAY(arena, smg_dim, (size_t)symbols + 1);
    for (int i = 0; dims != NULL && i < symbols; i++) {
        dims[count] = (smg_dim){o->usual[i].name, o->usual[i].value};
        for (int d = 0; d < options.dim_count && dims[count].value == 0; d++)
            if (strcmp(options.dims[d].name, dims[count].name) == 0) dims[count].value = options.dims[d].value;
        count += dims[count].value > 0;
    }
    smg_vk_plan_target(device, o->nominal_rates, &target);
    take_rates(o->compute_pressure, &target);
    options.dims = dims;
    options.dim_count = count;
    options.memory_pressure = o->memory_pressure;
    options.plan_anew = o->rejected.count > 0;
    if (o->rejected.count > 0) {
        options.driver.rejected = o->rejected.items;
        options.driver.rejected_count = o->rejected.count;
    }
    options.tuning = NULL;
    options.measured = &o->first->tuning;
    smg_status status = dims != NULL ? smg_compile_open(o->ctx, o->source->graph, &target, &options, out) : SMG_MEMORY;
    smg_arena_destroy(arena);
    return status;
}

/* A plan that was kept has no graph. */
static bool all_given(const compiled *o, const smg_compilation *c) {
    return smg_sizes_all_given(o->interface->sizes, c->options.dims, c->options.dim_count);
}

/* For smg_model_parts. What spills is taken: another plan would be another wait. */
static smg_status plan_again(void *owner, smg_model_parts *parts) {
    compiled *o = owner;
    o->next = o->first;
    if (o->hinted || o->rejected.count > 0) SMG_TRY(open_again(o, parts->device, &o->next));
    o->interface->nominal = o->next->nominal;
    parts->bundle = o->next->bundle;
    parts->program.literal = all_given(o, o->next);
    parts->program.variant_user = o->next;
    parts->program.leaves = NULL;
    return SMG_OK;
}

static void planned_again(void *owner, bool taken) {
    compiled *o = owner;
    smg_compilation *old = taken ? o->c : o->next;
    if (taken) o->c = o->next;
    if (old != o->first && old != o->c) smg_compilation_destroy(old);
    o->next = NULL;
    o->interface->nominal = o->c->nominal;
}

/* What a later plan is made from. */
static smg_status keep_first(compiled *o) {
    const smg_sizes *sizes = o->interface->sizes;
    int symbols = smg_size_symbol_count(sizes);
    if (o->first == NULL) o->first = o->c;
    if (o->usual != NULL) return SMG_OK;
    o->usual = SMG_ARENA_ARRAY(o->arena, smg_dim, (size_t)symbols + 1);
    if (o->usual == NULL) return SMG_MEMORY;
    for (int i = 0; i < symbols; i++) o->usual[i] = (smg_dim){smg_size_symbol_name(sizes, i), 0};
    return SMG_OK;
}

static bool add_rejected(compiled *o, const smg_choice *choice) {
    smg_choice *slot = SMG_ARRAY_PUSH(o->arena, &o->rejected);
    if (slot != NULL) *slot = *choice;
    return slot != NULL;
}

/* For smg_model_parts: the schedules of kernels that are this module. Fewer times than a model is planned at all. */
static bool leave_out(void *owner, int module) {
    compiled *o = owner;
    const smg_compilation *c = o->c;
    if (c->plan == NULL || c->options.rank > 0 || o->anew + 1 >= SMG_MOST_PLANS) return false;
    bool kept = keep_first(o) == SMG_OK, found = false;
    const smg_compile_options *first = kept ? &o->first->options : NULL;
    for (int i = 0; kept && o->anew == 0 && i < first->driver.rejected_count; i++)
        kept = add_rejected(o, &first->driver.rejected[i]);
    for (int i = 0; kept && i < c->plan->steps.count; i++) {
        if (c->bundle->variants.items[0].run.items[i].module != module) continue;
        smg_choice choice = *smg_compile_choice(c, i);
        choice.registers = INT64_MAX;
        kept = add_rejected(o, &choice);
        found = kept;
    }
    o->anew += kept && found;
    return kept && found;
}

static smg_status take_hint(smg_model *m, const smg_hint *hint) {
    static const smg_hint nothing = {0};
    SMG_TRY(smg_model_outdate(m));
    compiled *o = smg_model_owner(m);
    const smg_sizes *sizes = o->interface->sizes;
    SMG_TRY(keep_first(o));
    o->hinted = hint != NULL;
    if (hint == NULL) hint = &nothing;
    o->memory_pressure = hint->memory_pressure;
    o->compute_pressure = hint->compute_pressure;
    for (int i = 0; i < smg_size_symbol_count(sizes); i++) o->usual[i].value = 0;
    for (int i = 0; i < hint->usual_count; i++)
        o->usual[smg_size_symbol_find(sizes, hint->usual[i].name)].value = hint->usual[i].value;
    return SMG_OK;
}

static bool is_share(double value) {
    return value >= 0 && value <= 1;
}

static smg_status check_hint(smg_context *ctx, const smg_sizes *sizes, const smg_hint *hint) {
    int64_t *values = NULL;
    smg_arena *arena = NULL;
    if (hint == NULL) return SMG_OK;
    if (!is_share(hint->memory_pressure) || !is_share(hint->compute_pressure))
        return smg_fail(ctx, SMG_INVALID, "smg_hint: pressures of %g (memory) and %g (compute) are not in [0, 1]",
                        hint->memory_pressure, hint->compute_pressure);
    if (hint->usual_count < 0 || (hint->usual == NULL && hint->usual_count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_hint: %d usual sizes, %s", hint->usual_count,
                        hint->usual_count < 0 ? "less than none" : "whose array is NULL");
    for (int i = 0; i < hint->usual_count; i++)
        if (hint->usual[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_hint: usual[%d] has no name", i);
    SMG_TRY(smg_arena_create(ctx, &arena));
    values = SMG_ARENA_ARRAY(arena, int64_t, (size_t)smg_size_symbol_count(sizes) + 1);
    smg_status status =
        values != NULL ? smg_sizes_give(ctx, sizes, hint->usual, hint->usual_count, values) : SMG_MEMORY;
    smg_arena_destroy(arena);
    return status;
}

static smg_status give_hint(smg_model *m, smg_context *ctx, const smg_hint *hint) {
    SMG_TRY(check_hint(ctx, smg_model_interface(m)->sizes, hint));
    return take_hint(m, hint);
}

smg_status smg_model_hint(smg_model *m, const smg_hint *hint) {
    if (m == NULL) return SMG_INVALID;
    smg_context *ctx = smg_model_context(m);
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, give_hint(m, ctx, hint));
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static smg_status make_parts(compiled *o, const smg_model_desc *desc, smg_model_parts *parts) {
    SMG_TRY(smg_desc_check(o->ctx, desc));
    SMG_TRY(smg_compile_interface(o->arena, o->source->graph, o->source, &o->interface));
    SMG_TRY(open_device(o, desc, parts));
    o->nominal_rates = desc->nominal_rates;
    parts->interface = o->interface;
    parts->program.uploaded = smg_source_uploaded;
    parts->program.user = o->source;
    parts->program.make_variant = make_variant;
    parts->program.leaves = smg_judge_leaves;
    parts->program.memory_bytes = desc->memory_bytes;
    parts->plan_again = plan_again;
    parts->planned_again = planned_again;
    parts->leave_out = leave_out;
    if (desc->name_overflow) parts->not_finite = name_overflow;
    parts->ranges = desc->ranges;
    parts->range_count = desc->range_count;
    return SMG_OK;
}

static smg_status try_plan(plans *p, const smg_model_desc *desc, smg_model_parts *parts, smg_model **out_model) {
    compiled *o = p->o;
    smg_target target;
    smg_compile_options options = smg_compile_options_of(desc);
    options.measured = p->more->measured;
    options.passes = p->more->passes;
    smg_judge_begin(&p->judge, &options);
    SMG_TRY(take_samples(o, &options));
    smg_vk_plan_target(parts->device, desc->nominal_rates, &target);
    if (p->more->target != NULL) target = *p->more->target;
    SMG_TRY(smg_compile_open(o->ctx, o->source->graph, &target, &options, &o->c));
    o->interface->nominal = o->c->nominal;
    parts->bundle = o->c->bundle;
    parts->program.literal = all_given(o, o->c);
    parts->program.variant_user = o->c;
    parts->program.leaves_user = &p->judge;
    p->judge.c = o->c;
    return smg_model_make(o->ctx, parts, out_model);
}

static smg_status make_model(compiled *o, const smg_model_desc *desc, const smg_open_parts *more,
                             smg_model_parts *parts, smg_model **out_model) {
    plans p = {.o = o, .more = more};
    SMG_TRY(smg_verdicts_begin(&p.judge.verdicts, o->arena, &more->driver));
    SMG_TRY(make_parts(o, desc, parts));
    smg_status status = try_plan(&p, desc, parts, out_model);
    while (p.judge.again) {
        smg_context_clear_error(o->ctx);
        smg_compilation_destroy(o->c);
        o->c = NULL;
        status = try_plan(&p, desc, parts, out_model);
    }
    return status;
}

/* Takes over *own (may be NULL), also on failure. */
static smg_status open_model(smg_context *ctx, smg_source *own, smg_source *borrowed, smg_vk_device *device,
                             const smg_model_desc *desc, const smg_open_parts *more, smg_model **out_model) {
    static const smg_model_desc nothing = {0};
    static const smg_open_parts no_more = {0};
    smg_arena *arena = NULL;
    smg_status status = smg_arena_create(ctx, &arena);
    compiled *o = status == SMG_OK ? SMG_ARENA_NEW(arena, compiled) : NULL;
    if (o == NULL) {
        smg_arena_destroy(arena);
        if (own != NULL) smg_source_close(own);
        return SMG_MEMORY;
    }
    *o = (compiled){.ctx = ctx, .arena = arena};
    if (own != NULL) o->own = *own;
    o->source = own != NULL ? &o->own : borrowed;
    if (desc == NULL) desc = &nothing;
    smg_model_parts parts = {
        .device = device != NULL ? device : desc->on, .class_name = "", .owner = o, .drop = drop_compiled};
    status = smg_model_check_device(ctx, parts.device);
    if (status == SMG_OK) status = make_model(o, desc, more != NULL ? more : &no_more, &parts, out_model);
    if (status == SMG_OK) return SMG_OK;
    if (parts.owns_device) smg_vk_close(parts.device);
    drop_compiled(o);
    return status;
}

static smg_status open_path(smg_context *ctx, const char *path, const smg_model_desc *desc, smg_model **out_model) {
    smg_source source = {0};
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_open: the path is NULL");
    SMG_TRY(smg_source_open(ctx, path, false, &source));
    return open_model(ctx, &source, NULL, NULL, desc, NULL, out_model);
}

smg_status smg_model_open(smg_context *ctx, const char *path, const smg_model_desc *desc, smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, open_path(ctx, path, desc, out_model));
}

static smg_status open_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *desc, smg_model **out_model) {
    if (graph == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_open_graph: the graph is NULL");
    SMG_TRY(smg_graph_finish(graph));
    smg_source source = {.ctx = ctx, .graph = graph};
    return open_model(ctx, &source, NULL, NULL, desc, NULL, out_model);
}

smg_status smg_model_open_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *desc, smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, open_graph(ctx, graph, desc, out_model));
}

smg_status smg_model_open_source(smg_context *ctx, smg_source *source, smg_vk_device *device,
                                 const smg_model_desc *desc, smg_model **out_model) {
    return smg_model_open_parts(ctx, source, device, desc, NULL, out_model);
}

smg_status smg_model_open_parts(smg_context *ctx, smg_source *source, smg_vk_device *device, const smg_model_desc *desc,
                                const smg_open_parts *parts, smg_model **out_model) {
    *out_model = NULL;
    return open_model(ctx, NULL, source, device, desc, parts, out_model);
}

#else /* a build that compiles only */

static smg_status without_vulkan(smg_context *ctx) {
    smg_context_clear_error(ctx);
    return smg_fail(ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: it compiles, it does not run");
}

smg_status smg_model_open(smg_context *ctx, const char *path, const smg_model_desc *desc, smg_model **out_model) {
    (void)path, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_open_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *desc, smg_model **out_model) {
    (void)graph, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_open_source(smg_context *ctx, smg_source *source, smg_vk_device *device,
                                 const smg_model_desc *desc, smg_model **out_model) {
    (void)source, (void)device, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_hint(smg_model *m, const smg_hint *hint) {
    (void)m, (void)hint;
    return SMG_UNSUPPORTED;
}

/* No device and no model is ever opened. */

smg_status smg_device_open(smg_context *ctx, const char *which, smg_device **out_device) {
    (void)which;
    return smg_device_open_desc(ctx, NULL, out_device);
}

smg_status smg_device_open_desc(smg_context *ctx, const smg_device_desc *desc, smg_device **out_device) {
    (void)desc;
    *out_device = NULL;
    return without_vulkan(ctx);
}

smg_status smg_device_share(smg_device *device, smg_context *ctx, smg_device **out_device) {
    (void)device;
    *out_device = NULL;
    return without_vulkan(ctx);
}

void smg_device_close(smg_device *device) {
    (void)device;
}

smg_status smg_device_list(smg_context *ctx, smg_device_info *out_list, int capacity, int *out_count) {
    (void)out_list, (void)capacity;
    if (out_count != NULL) *out_count = 0;
    return without_vulkan(ctx);
}

const char *smg_device_name(const smg_device *device) {
    (void)device;
    return "";
}

smg_compilation *smg_model_compilation(smg_model *m) {
    (void)m;
    return NULL;
}

smg_status smg_model_open_bundle(smg_context *ctx, const char *path, const smg_bundle_desc *desc,
                                 smg_model **out_model) {
    (void)path, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_open_bundle_memory(smg_context *ctx, const void *bytes, size_t size, const smg_bundle_desc *desc,
                                        smg_model **out_model) {
    (void)bytes, (void)size, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_open_bundle_reader(smg_context *ctx, const smg_bundle_reader *reader, const smg_bundle_desc *desc,
                                        smg_model **out_model) {
    (void)reader, (void)desc;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_tensor_create(smg_device *device, const smg_device_tensor_desc *desc, smg_device_tensor **out_tensor) {
    (void)device, (void)desc;
    *out_tensor = NULL;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_create_tensor(smg_model *m, const char *name, int64_t elements, smg_device_tensor **out_tensor) {
    (void)m, (void)name, (void)elements;
    *out_tensor = NULL;
    return SMG_UNSUPPORTED;
}

void smg_tensor_destroy(smg_device_tensor *tensor) {
    (void)tensor;
}

smg_status smg_tensor_upload(smg_device_tensor *tensor, int64_t first, const void *data, int64_t count) {
    (void)tensor, (void)first, (void)data, (void)count;
    return SMG_UNSUPPORTED;
}

smg_status smg_tensor_download(smg_device_tensor *tensor, int64_t first, void *data, int64_t count) {
    (void)tensor, (void)first, (void)data, (void)count;
    return SMG_UNSUPPORTED;
}

void *smg_tensor_map(smg_device_tensor *tensor) {
    (void)tensor;
    return NULL;
}

const char *smg_model_class(const smg_model *m) {
    (void)m;
    return "";
}

int smg_model_input_count(const smg_model *m) {
    (void)m;
    return 0;
}

int smg_model_output_count(const smg_model *m) {
    (void)m;
    return 0;
}

bool smg_model_input(const smg_model *m, int index, smg_tensor *out_tensor) {
    (void)m, (void)index, (void)out_tensor;
    return false;
}

bool smg_model_output(const smg_model *m, int index, smg_tensor *out_tensor) {
    (void)m, (void)index, (void)out_tensor;
    return false;
}

smg_program *smg_model_program(const smg_model *m) {
    (void)m;
    return NULL;
}

void smg_model_times(const smg_model *m, double *out_device, double *out_program) {
    (void)m;
    *out_device = *out_program = 0;
}

int smg_model_state_count(const smg_model *m) {
    (void)m;
    return 0;
}

bool smg_model_state(const smg_model *m, int index, const char **out_input, const char **out_output) {
    (void)m, (void)index, (void)out_input, (void)out_output;
    return false;
}

smg_status smg_model_reset_state(smg_model *m, const char *input) {
    (void)m, (void)input;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                         int output_count) {
    (void)m, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_submit(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                            int output_count, smg_ticket *out_ticket) {
    (void)m, (void)inputs, (void)input_count, (void)outputs, (void)output_count, (void)out_ticket;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_share(smg_model *m, smg_context *ctx, smg_model **out_model) {
    (void)m;
    *out_model = NULL;
    return without_vulkan(ctx);
}

smg_status smg_model_set_budget(smg_model *m, double dispatch_seconds, double submission_seconds) {
    (void)m, (void)dispatch_seconds, (void)submission_seconds;
    return SMG_UNSUPPORTED;
}

smg_status smg_ticket_cancel(smg_ticket ticket, bool *out_cancelled) {
    (void)ticket, (void)out_cancelled;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_recover(smg_model *m, smg_device *on) {
    (void)m, (void)on;
    return SMG_UNSUPPORTED;
}

smg_status smg_ticket_wait(smg_ticket ticket, double seconds, bool *out_done) {
    (void)ticket, (void)seconds, (void)out_done;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_set_input(smg_model *m, const smg_tensor *input) {
    (void)m, (void)input;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_set_lengths(smg_model *m, const char *input, const int64_t *lengths, int count) {
    (void)m, (void)input, (void)lengths, (void)count;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    (void)m, (void)dim, (void)low, (void)high;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_bind(smg_model *m, const int64_t *values) {
    (void)m, (void)values;
    return SMG_UNSUPPORTED;
}

void smg_model_memory(const smg_model *m, smg_program_memory *out) {
    (void)m;
    *out = (smg_program_memory){0};
}

double smg_model_seconds(const smg_model *m) {
    (void)m;
    return 0;
}

void smg_model_close(smg_model *m) {
    (void)m;
}

#endif
