/* compile_model.c: include/smg/model.h: a source, compiled, on a device.
 *
 * Opening is the list load -> device -> plan -> modules -> program. A run reads the symbolic sizes off
 * the inputs, binds them, copies inputs in and outputs out. Memory for kept inputs and for outputs
 * only grows, so that runs of sizes seen lately, or of a range that was set, allocate nothing. */
#include <math.h>

#include "compile/compile_private.h"

const char *smg_version(void) {
    return SMG_VERSION;
}

const smg_node *smg_model_input_node(const smg_model *m, int index) {
    return smg_graph_node(m->source->graph, m->inputs[index]);
}

int smg_model_input_count(const smg_model *m) {
    return m != NULL ? m->input_count : 0;
}

int smg_model_output_count(const smg_model *m) {
    return m != NULL ? m->c->source->outputs.count : 0;
}

static void describe(const smg_graph *g, const smg_node *node, const char *name, smg_tensor *out) {
    *out = (smg_tensor){.name = name, .type = smg_type_word(node->type), .rank = node->rank};
    for (int d = 0; d < node->rank; d++) {
        if (!smg_size_is_const(g->sizes, node->dims[d], &out->dims[d])) out->dims[d] = -1;
    }
}

bool smg_model_input(const smg_model *m, int index, smg_tensor *out_tensor) {
    if (index < 0 || index >= smg_model_input_count(m) || out_tensor == NULL) return false;
    const smg_node *node = smg_model_input_node(m, index);
    describe(m->c->source, node, node->name, out_tensor);
    return true;
}

bool smg_model_output(const smg_model *m, int index, smg_tensor *out_tensor) {
    if (index < 0 || index >= smg_model_output_count(m) || out_tensor == NULL) return false;
    const smg_graph *g = m->c->source;
    describe(g, smg_graph_node(g, g->outputs.items[index].node), g->outputs.items[index].name, out_tensor);
    return true;
}

smg_compilation *smg_model_compilation(smg_model *m) {
    return m->c;
}

smg_program *smg_model_program(smg_model *m) {
    return m->program;
}

void smg_model_times(const smg_model *m, double *out_device, double *out_program) {
    *out_device = m->device_seconds;
    *out_program = m->program_seconds;
}

#if SMG_VULKAN

static smg_status read_output(smg_model *m, smg_tensor *out) {
    int buffer = 0;
    SMG_TRY(smg_program_find(m->program, SMG_BUFFER_OUTPUT, out->name != NULL ? out->name : "", &buffer));
    const smg_bbuffer *b = &m->c->bundle->buffers.items[buffer];
    int64_t count = smg_program_dims(m->program, buffer, out->dims);
    int64_t bytes = count * smg_storage_host_bytes(b->storage);
    out->rank = b->rank;
    out->type = smg_storage_word(b->storage);
    bool ours = out->data == NULL;
    for (int i = 0; !ours && i < smg_model_output_count(m); i++) {
        ours = out->data == m->output_memory[i].data; /* of an earlier run */
    }
    if (ours) {
        int row = 0;
        const smg_graph *g = m->c->source;
        while (strcmp(g->outputs.items[row].name, out->name) != 0) row++;
        int64_t room = smg_model_room(m, smg_graph_node(g, g->outputs.items[row].node), count);
        SMG_TRY(
            smg_memory_grow(m->ctx, &m->output_memory[row], (size_t)(room * smg_storage_host_bytes(b->storage)) + 1));
        out->data = m->output_memory[row].data;
        out->bytes = (size_t)bytes;
    } else if (out->bytes < (size_t)bytes) {
        return smg_fail(m->ctx, SMG_INVALID, "output '%s' takes %lld bytes, there is room for %zu", out->name,
                        (long long)bytes, out->bytes);
    }
    return smg_program_read_output(m->program, out->name, out->data, bytes);
}

static bool is_finite(const smg_tensor *output) {
    int64_t count = smg_tensor_elements(output);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(smg_tensor_get(output, i))) return false;
    return true;
}

/* Outputs have infinities or NaN: is that the graph's, or the precision's? */
static smg_status name_overflow(smg_model *m) {
    smg_arena *arena = NULL;
    smg_tensor *whole = NULL;
    smg_overflow found = {0};
    int count = 0;
    SMG_TRY(smg_arena_create(m->ctx, &arena));
    smg_status status = smg_model_whole_inputs(m, arena, &whole, &count);
    if (status == SMG_OK) status = smg_compile_find_overflow(m->c, m->values, whole, count, arena, &found);
    if (status == SMG_OK && found.value != NULL)
        status =
            smg_fail(m->ctx, SMG_UNSUPPORTED, "'%s' becomes %g, and %s ends at %g (%d such values, this is the first)",
                     found.value, found.size, smg_type_word(found.type), smg_type_limit(found.type), found.count);
    smg_arena_destroy(arena);
    return status;
}

static smg_status run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs, int output_count) {
    if (input_count < 0 || output_count < 0 || (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_run: %d inputs and %d outputs, %s", input_count, output_count,
                        input_count < 0 || output_count < 0 ? "less than none" : "whose array is NULL");
    SMG_TRY(smg_model_collect(m, inputs, input_count));
    SMG_TRY(smg_model_need_inputs(m));
    SMG_TRY(smg_tensor_sizes(m->ctx, m->c->source, m->all, m->input_count, NULL, m->values));
    SMG_TRY(smg_program_bind_sizes(m->program, m->values));
    SMG_TRY(smg_model_write_inputs(m));
    SMG_TRY(smg_model_name_index(m, smg_program_run(m->program)));
    bool finite = true;
    for (int i = 0; i < output_count; i++) {
        SMG_TRY(read_output(m, &outputs[i]));
        finite = finite && (!m->name_overflow || is_finite(&outputs[i]));
    }
    return finite ? SMG_OK : name_overflow(m);
}

smg_status smg_model_run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                         int output_count) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, run(m, inputs, input_count, outputs, output_count));
}

smg_status smg_model_bind(smg_model *m, const int64_t *values) {
    return smg_program_bind_sizes(m->program, values);
}

static smg_status set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    int symbol = 0;
    if (dim == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_range: the name is NULL");
    SMG_TRY(smg_sizes_find(m->ctx, m->c->source->sizes, dim, &symbol));
    return smg_program_set_range(m->program, symbol, low, high);
}

smg_status smg_model_set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_range(m, dim, low, high));
}

void smg_model_memory(const smg_model *m, smg_program_memory *out) {
    smg_program_memory_used(m->program, out);
}

double smg_model_seconds(const smg_model *m) {
    return m != NULL ? smg_program_time(m->program) : 0;
}

smg_status smg_compile_know_device(smg_vk_device *device, const smg_model_desc *desc) {
    if (desc->no_calibrate) return SMG_OK;
    SMG_TRY(smg_vk_prove(device, !desc->no_matrices && smg_compile_options_of(desc).precision != SMG_TYPE_F32));
    return smg_vk_calibrate(device);
}

static smg_status open_device(smg_model *m, smg_vk_device *device, const smg_model_desc *desc) {
    double start = smg_clock_seconds();
    m->device = device;
    if (device == NULL) {
        SMG_TRY(smg_vk_open(m->ctx, desc->device, 0, &m->device));
        m->owns_device = true;
    }
    SMG_TRY(smg_compile_know_device(m->device, desc));
    m->device_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status make_variant(void *user, int variant) {
    return smg_compile_variant(user, variant);
}

/* The nominal sizes, and in their place the ranges of the description. */
static smg_status expect_sizes(smg_model *m, const smg_model_desc *desc, smg_program_options *options) {
    size_t symbols = (size_t)smg_size_symbol_count(m->c->bundle->sizes);
    int64_t *low = SMG_ARENA_ARRAY(m->arena, int64_t, symbols + 1);
    int64_t *high = SMG_ARENA_ARRAY(m->arena, int64_t, symbols + 1);
    if (low == NULL || high == NULL) return SMG_MEMORY;
    memcpy(low, m->c->nominal, symbols * sizeof(*low));
    memcpy(high, m->c->nominal, symbols * sizeof(*high));
    for (int i = 0; i < desc->range_count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(m->ctx, m->c->bundle->sizes, desc->ranges[i].name, &symbol));
        low[symbol] = desc->ranges[i].low;
        high[symbol] = desc->ranges[i].high;
    }
    options->expected = low;
    options->expected_high = high;
    return SMG_OK;
}

/* The sample, as arrays for all inputs that have something. */
static smg_status take_samples(smg_model *m, smg_compile_options *options) {
    smg_tensor *whole = NULL;
    if (options->sample_count == 0) return SMG_OK;
    SMG_TRY(smg_model_collect(m, options->samples, options->sample_count));
    SMG_TRY(smg_tensor_sizes(m->ctx, m->source->graph, m->all, m->input_count, NULL, m->values));
    SMG_TRY(smg_model_whole_inputs(m, m->arena, &whole, &options->sample_count));
    options->samples = whole;
    return SMG_OK;
}

/* ---- kernels that the driver makes nothing good of: the next schedules are planned ------------------- */

#define MOST_PLANS 6

typedef struct plans {
    smg_model *m;
    SMG_ARRAY(uint64_t) rejected;
    int made;
    bool again;
} plans;

static bool is_rejected(const plans *p, uint64_t choice) {
    for (int i = 0; i < p->rejected.count; i++)
        if (p->rejected.items[i] == choice) return true;
    return false;
}

static void reject(plans *p, const smg_pstep *step, double spills) {
    uint64_t *slot = is_rejected(p, step->choice) ? NULL : SMG_ARRAY_PUSH(p->m->arena, &p->rejected);
    if (slot == NULL) return;
    *slot = step->choice;
    p->again = true;
    if (isinf(spills))
        smg_log(p->m->ctx, SMG_LOG_WARNING, "kernel '%s' of '%s' is not built by the driver: planned otherwise",
                step->name, p->m->c->source->name);
    else
        smg_log(p->m->ctx, SMG_LOG_INFO, "kernel '%s' of '%s' spills %.0f registers: planned otherwise", step->name,
                p->m->c->source->name, spills);
}

/* For smg_program_options.leaves. What was kept from an earlier time is what came out then. */
static bool leaves(void *user, const smg_vk_built *built, int modules) {
    plans *p = user;
    const smg_compilation *c = p->m->c;
    const smg_bvariant *list = &c->bundle->variants.items[0];
    if (c->plan == NULL || c->options.rank > 0 || ++p->made >= MOST_PLANS) return false;
    for (int i = 0; i < list->run.count && i < c->plan->steps.count; i++) {
        int module = list->run.items[i].module;
        if (module < modules && built[module].spills > 0) reject(p, &c->plan->steps.items[i], built[module].spills);
    }
    return p->again;
}

static smg_status try_plan(smg_model *m, const smg_model_desc *desc, plans *p) {
    smg_compile_options options = smg_compile_options_of(desc);
    SMG_TRY(take_samples(m, &options));
    options.rejected = p->rejected.items;
    options.rejected_count = p->rejected.count;
    SMG_TRY(smg_compile_open(m->ctx, m->source->graph, smg_vk_target(m->device), &options, &m->c));
    double start = smg_clock_seconds();
    smg_program_options program = {.uploaded = smg_source_uploaded,
                                   .user = m->source,
                                   .make_variant = make_variant,
                                   .variant_user = m->c,
                                   .leaves = leaves,
                                   .leaves_user = p};
    SMG_TRY(expect_sizes(m, desc, &program));
    SMG_TRY(smg_program_create(m->ctx, m->c->bundle, m->device, &program, &m->program));
    m->program_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status make_program(smg_model *m, const smg_model_desc *desc) {
    plans p = {.m = m};
    smg_status status = try_plan(m, desc, &p);
    while (p.again) {
        smg_context_clear_error(m->ctx);
        smg_compilation_destroy(m->c);
        m->c = NULL;
        p.again = false;
        status = try_plan(m, desc, &p);
    }
    SMG_TRY(status);
    for (int i = 0; i < desc->range_count; i++) {
        SMG_TRY(set_range(m, desc->ranges[i].name, desc->ranges[i].low, desc->ranges[i].high));
    }
    return SMG_OK;
}

static smg_status make_tables(smg_model *m) {
    const smg_graph *g = m->source->graph;
    m->input_count = smg_graph_input_nodes(g, NULL, 0);
    size_t inputs = (size_t)m->input_count + 1;
    m->inputs = SMG_ARENA_ARRAY(m->arena, smg_node_id, inputs);
    m->kept = SMG_ARENA_ARRAY(m->arena, smg_tensor, inputs);
    m->kept_memory = SMG_ARENA_ARRAY(m->arena, smg_memory, inputs);
    m->lengths = SMG_ARENA_ARRAY(m->arena, smg_memory, inputs);
    m->length_counts = SMG_ARENA_ARRAY(m->arena, int, inputs);
    m->all = SMG_ARENA_ARRAY(m->arena, smg_tensor, inputs);
    m->output_memory = SMG_ARENA_ARRAY(m->arena, smg_memory, (size_t)g->outputs.count + 1);
    m->values = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)smg_size_symbol_count(g->sizes) + 1);
    if (!m->inputs || !m->kept || !m->kept_memory || !m->lengths || !m->length_counts || !m->all || !m->output_memory ||
        !m->values) {
        return SMG_MEMORY;
    }
    smg_graph_input_nodes(g, m->inputs, m->input_count);
    return SMG_OK;
}

/* Takes over *own (may be NULL), also on failure. */
static smg_status open_model(smg_context *ctx, smg_source *own, smg_source *borrowed, smg_vk_device *device,
                             const smg_model_desc *desc, smg_model **out_model) {
    static const smg_model_desc nothing = {0};
    smg_arena *arena = NULL;
    smg_status status = smg_arena_create(ctx, &arena);
    smg_model *m = status == SMG_OK ? SMG_ARENA_NEW(arena, smg_model) : NULL;
    if (m == NULL) {
        smg_arena_destroy(arena);
        if (own != NULL) smg_source_close(own);
        return SMG_MEMORY;
    }
    m->ctx = ctx;
    m->arena = arena;
    if (own != NULL) m->own = *own;
    m->source = own != NULL ? &m->own : borrowed;
    if (desc == NULL) desc = &nothing;
    m->name_overflow = desc->name_overflow;
    status = smg_model_desc_check(ctx, desc);
    if (status == SMG_OK) status = make_tables(m);
    if (status == SMG_OK) status = open_device(m, device, desc);
    if (status == SMG_OK) status = make_program(m, desc);
    if (status != SMG_OK) {
        smg_model_close(m);
        return status;
    }
    *out_model = m;
    return SMG_OK;
}

static smg_status open_path(smg_context *ctx, const char *path, const smg_model_desc *desc, smg_model **out_model) {
    smg_source source = {0};
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_open: the path is NULL");
    SMG_TRY(smg_source_open(ctx, path, false, &source));
    return open_model(ctx, &source, NULL, NULL, desc, out_model);
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
    return open_model(ctx, &source, NULL, NULL, desc, out_model);
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
    *out_model = NULL;
    return open_model(ctx, NULL, source, device, desc, out_model);
}

void smg_model_close(smg_model *m) {
    if (m == NULL) return;
    smg_program_destroy(m->program);
    smg_compilation_destroy(m->c);
    if (m->owns_device) smg_vk_close(m->device);
    for (int i = 0; m->kept_memory != NULL && i < m->input_count; i++) {
        smg_free(m->ctx, m->kept_memory[i].data, m->kept_memory[i].bytes);
        if (m->lengths != NULL) smg_free(m->ctx, m->lengths[i].data, m->lengths[i].bytes);
    }
    for (int i = 0; m->output_memory != NULL && i < m->source->graph->outputs.count; i++) {
        smg_free(m->ctx, m->output_memory[i].data, m->output_memory[i].bytes);
    }
    smg_free(m->ctx, m->scratch.data, m->scratch.bytes);
    if (m->own.graph != NULL) smg_source_close(&m->own);
    smg_arena_destroy(m->arena);
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

smg_status smg_model_run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                         int output_count) {
    (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return without_vulkan(m->ctx);
}

smg_status smg_model_set_input(smg_model *m, const smg_tensor *input) {
    (void)input;
    return without_vulkan(m->ctx);
}

smg_status smg_model_set_lengths(smg_model *m, const char *input, const int64_t *lengths, int count) {
    (void)input, (void)lengths, (void)count;
    return without_vulkan(m->ctx);
}

smg_status smg_model_set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    (void)dim, (void)low, (void)high;
    return without_vulkan(m->ctx);
}

smg_status smg_model_bind(smg_model *m, const int64_t *values) {
    (void)values;
    return without_vulkan(m->ctx);
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
