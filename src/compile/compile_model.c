/* compile_model.c: include/smg/model.h: a source, compiled, on a device.
 *
 * Opening is the list load -> device -> plan -> modules -> program. A run reads the symbolic sizes off
 * the inputs, binds them, copies inputs in and outputs out. Memory for kept inputs and for outputs
 * only grows, so that runs of sizes seen lately, or of a range that was set, allocate nothing. */
#include "compile/compile.h"

const char *smg_version(void) {
    return SMG_VERSION;
}

typedef struct memory {
    void *data;
    size_t bytes;
} memory;

struct smg_model {
    smg_context *ctx;
    smg_arena *arena;
    smg_source own; /* zero when the source is borrowed */
    smg_source *source;
    smg_compilation *c;
    smg_vk_device *device;
    bool owns_device;
    smg_program *program;
    int input_count;
    smg_node_id *inputs; /* nodes of c->source */
    smg_tensor *kept;    /* per input: given by smg_model_set_input; name NULL: none */
    memory *kept_memory;
    smg_tensor *all; /* per input: of one run */
    memory *output_memory;
    memory scratch;  /* converted input */
    int64_t *values; /* per symbol */
    double device_seconds, program_seconds;
};

static const smg_node *input_node(const smg_model *m, int index) {
    return smg_graph_node(m->c->source, m->inputs[index]);
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
    const smg_node *node = input_node(m, index);
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

static smg_status grow(smg_context *ctx, memory *m, size_t bytes) {
    if (bytes <= m->bytes) return SMG_OK;
    void *data = smg_realloc(ctx, m->data, m->bytes, bytes);
    if (data == NULL) return SMG_MEMORY;
    *m = (memory){data, bytes};
    return SMG_OK;
}

static smg_status find_input(smg_model *m, const char *name, int *out_index) {
    for (int i = 0; name != NULL && i < m->input_count; i++) {
        if (strcmp(input_node(m, i)->name, name) == 0) {
            *out_index = i;
            return SMG_OK;
        }
    }
    smg_text names;
    smg_text_init(&names, m->ctx);
    for (int i = 0; i < m->input_count; i++) {
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", input_node(m, i)->name);
    }
    smg_status status = smg_fail(m->ctx, SMG_NOT_FOUND, "the model has no input '%s'; it has: %s",
                                 name != NULL ? name : "", smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

/* Type, rank and dims in order; the elements themselves are checked by the program. */
static smg_status check_tensor(smg_model *m, const smg_tensor *tensor, smg_type *out_type) {
    if (tensor->data == NULL) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' has no data", tensor->name);
    }
    if (tensor->rank < 0 || tensor->rank > SMG_TENSOR_RANK) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' has %d axes; 0 to %d are possible", tensor->name, tensor->rank,
                        SMG_TENSOR_RANK);
    }
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->dims[d] < 0) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s': axis %d is %lld", tensor->name, d,
                            (long long)tensor->dims[d]);
        }
        if (!smg_mul_i64(count, tensor->dims[d], &count)) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s': %lld x %lld elements or more", tensor->name,
                            (long long)count, (long long)tensor->dims[d]);
        }
    }
    if (tensor->type != NULL && !smg_type_find(tensor->type, out_type)) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' has unknown type '%s'", tensor->name, tensor->type);
    }
    int64_t needed = 0;
    if (!smg_mul_i64(count, smg_type_host_bytes(*out_type), &needed) ||
        (tensor->bytes != 0 && tensor->bytes < (size_t)needed)) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s': %lld elements of %s, its memory has %zu bytes", tensor->name,
                        (long long)count, smg_type_word(*out_type), tensor->bytes);
    }
    return SMG_OK;
}

/* Elements of a node that memory is taken for: as many as at the largest sizes of the range bound, so that later runs
 * of it take no more. */
static int64_t room_for(const smg_model *m, const smg_node *node, int64_t count) {
    const int64_t *low = NULL, *high = NULL;
    int64_t room = 1;
    if (!smg_program_ends(m->program, &low, &high)) return count;
    for (int d = 0; d < node->rank; d++) {
        int64_t least = 0, most = 0;
        smg_size_between(m->c->source->sizes, node->dims[d], low, high, &least, &most);
        if (!smg_mul_i64(room, most, &room) || room > INT64_MAX / 16) return count;
    }
    return room > count ? room : count;
}

/* What the program takes: the tensor itself, or a copy in the node's integer type. */
static smg_status convert_input(smg_model *m, const smg_node *node, const smg_tensor *tensor, const void **out_data) {
    smg_type type = node->type;
    SMG_TRY(check_tensor(m, tensor, &type));
    *out_data = tensor->data;
    if (type == node->type) return SMG_OK;
    if (smg_type_kind(type) != SMG_KIND_INT || smg_type_kind(node->type) != SMG_KIND_INT) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' is %s, %s was given", node->name, smg_type_word(node->type),
                        smg_type_word(type));
    }
    int64_t count = smg_tensor_elements(tensor);
    int64_t room = room_for(m, node, count);
    SMG_TRY(grow(m->ctx, &m->scratch, (size_t)(room * smg_type_host_bytes(node->type)) + 1));
    smg_tensor to = {.name = node->name, .type = smg_type_word(node->type), .data = m->scratch.data};
    for (int64_t i = 0; i < count; i++) {
        double value = smg_tensor_get(tensor, i);
        smg_tensor_set(&to, i, value);
        if (smg_tensor_get(&to, i) != value) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s': element %lld is %.0f, outside %s", node->name,
                            (long long)i, value, to.type);
        }
    }
    *out_data = m->scratch.data;
    return SMG_OK;
}

static smg_status set_input(smg_model *m, const smg_tensor *input) {
    int index = 0;
    if (input == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_input: the tensor is NULL");
    SMG_TRY(find_input(m, input->name, &index));
    const smg_node *node = input_node(m, index);
    smg_type type = node->type;
    SMG_TRY(check_tensor(m, input, &type));
    int64_t count = smg_tensor_elements(input);
    size_t bytes = (size_t)(count * smg_type_host_bytes(type));
    size_t room = (size_t)(room_for(m, node, count) * smg_type_host_bytes(type));
    SMG_TRY(grow(m->ctx, &m->kept_memory[index], room + 1));
    memcpy(m->kept_memory[index].data, input->data, bytes);
    m->kept[index] = *input;
    m->kept[index].name = node->name;
    m->kept[index].type = smg_type_word(type);
    m->kept[index].data = m->kept_memory[index].data;
    return SMG_OK;
}

smg_status smg_model_set_input(smg_model *m, const smg_tensor *input) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_input(m, input));
}

static bool program_has_input(const smg_model *m, const char *name) {
    const smg_bundle *bundle = m->c->bundle;
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        if (b->kind == SMG_BUFFER_INPUT && strcmp(b->name, name) == 0) return true;
    }
    return false;
}

static smg_status collect_inputs(smg_model *m, const smg_tensor *inputs, int count) {
    for (int i = 0; i < m->input_count; i++) m->all[i] = m->kept[i];
    for (int i = 0; i < count; i++) {
        int index = 0;
        smg_type type;
        SMG_TRY(find_input(m, inputs[i].name, &index));
        for (int before = 0; before < i; before++)
            if (strcmp(inputs[before].name, inputs[i].name) == 0)
                return smg_fail(m->ctx, SMG_INVALID, "input '%s' is given twice", inputs[i].name);
        type = input_node(m, index)->type;
        SMG_TRY(check_tensor(m, &inputs[i], &type));
        m->all[index] = inputs[i];
    }
    for (int i = 0; i < m->input_count; i++) {
        const smg_node *node = input_node(m, i);
        smg_fill fill;
        if (m->all[i].data == NULL && program_has_input(m, node->name) &&
            !smg_source_default(m->source, node->name, &fill)) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s' is missing", node->name);
        }
    }
    return SMG_OK;
}

/* An input that nobody gave and that has a value of its own. */
static smg_status write_default(smg_model *m, const smg_node *node) {
    const smg_graph *g = m->c->source;
    smg_tensor tensor = {.type = smg_type_word(node->type), .rank = node->rank};
    int64_t count = 1;
    smg_fill fill;
    if (!smg_source_default(m->source, node->name, &fill)) return SMG_OK;
    for (int d = 0; d < node->rank; d++) {
        if (!smg_size_eval(g->sizes, node->dims[d], m->values, &tensor.dims[d]) ||
            !smg_mul_i64(count, tensor.dims[d], &count)) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s': axis %d has no valid size", node->name, d);
        }
    }
    SMG_TRY(grow(m->ctx, &m->scratch, (size_t)(room_for(m, node, count) * smg_type_host_bytes(node->type)) + 1));
    tensor.data = m->scratch.data;
    for (int64_t i = 0; i < count; i++) smg_tensor_set(&tensor, i, fill == SMG_FILL_ONES ? 1 : 0);
    return smg_program_write_input(m->program, node->name, tensor.data, tensor.rank, tensor.dims);
}

static smg_status write_inputs(smg_model *m) {
    for (int i = 0; i < m->input_count; i++) {
        const smg_node *node = input_node(m, i);
        const void *data = NULL;
        bool used = program_has_input(m, node->name);
        if (m->all[i].data == NULL && used) SMG_TRY(write_default(m, node));
        if (m->all[i].data == NULL) continue;
        SMG_TRY(convert_input(m, node, &m->all[i], &data));
        if (!used) continue;
        SMG_TRY(smg_program_write_input(m->program, node->name, data, m->all[i].rank, m->all[i].dims));
    }
    return SMG_OK;
}

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
        int64_t room = room_for(m, smg_graph_node(g, g->outputs.items[row].node), count);
        SMG_TRY(grow(m->ctx, &m->output_memory[row], (size_t)(room * smg_storage_host_bytes(b->storage)) + 1));
        out->data = m->output_memory[row].data;
        out->bytes = (size_t)bytes;
    } else if (out->bytes < (size_t)bytes) {
        return smg_fail(m->ctx, SMG_INVALID, "output '%s' takes %lld bytes, there is room for %zu", out->name,
                        (long long)bytes, out->bytes);
    }
    return smg_program_read_output(m->program, out->name, out->data, bytes);
}

/* A kernel says which index was wrong; whose it was, when it was an input's, is looked up here. */
static smg_status name_index(smg_model *m, smg_status status) {
    for (int i = 0; status == SMG_INVALID && i < m->input_count; i++) {
        int64_t element = 0;
        if (m->all[i].data == NULL || !smg_tensor_outside(m->c->source, m->inputs[i], m->values, &m->all[i], &element))
            continue;
        return smg_fail_within(m->ctx, status, "input '%s', element %lld", m->all[i].name, (long long)element);
    }
    return status;
}

static smg_status run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs, int output_count) {
    if (input_count < 0 || output_count < 0 || (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_run: %d inputs and %d outputs, %s", input_count, output_count,
                        input_count < 0 || output_count < 0 ? "less than none" : "whose array is NULL");
    SMG_TRY(collect_inputs(m, inputs, input_count));
    SMG_TRY(smg_tensor_sizes(m->ctx, m->c->source, m->all, m->input_count, NULL, m->values));
    SMG_TRY(smg_program_bind_sizes(m->program, m->values));
    SMG_TRY(write_inputs(m));
    SMG_TRY(name_index(m, smg_program_run(m->program)));
    for (int i = 0; i < output_count; i++) SMG_TRY(read_output(m, &outputs[i]));
    return SMG_OK;
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

static smg_status make_program(smg_model *m, const smg_model_desc *desc) {
    const smg_compile_options options = smg_compile_options_of(desc);
    SMG_TRY(smg_compile_open(m->ctx, m->source->graph, smg_vk_target(m->device), &options, &m->c));
    double start = smg_clock_seconds();
    smg_program_options program = {
        .uploaded = smg_source_uploaded, .user = m->source, .make_variant = make_variant, .variant_user = m->c};
    SMG_TRY(expect_sizes(m, desc, &program));
    SMG_TRY(smg_program_create(m->ctx, m->c->bundle, m->device, &program, &m->program));
    for (int i = 0; i < desc->range_count; i++) {
        SMG_TRY(set_range(m, desc->ranges[i].name, desc->ranges[i].low, desc->ranges[i].high));
    }
    m->program_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status make_tables(smg_model *m) {
    const smg_graph *g = m->source->graph;
    m->input_count = smg_graph_input_nodes(g, NULL, 0);
    size_t inputs = (size_t)m->input_count + 1;
    m->inputs = SMG_ARENA_ARRAY(m->arena, smg_node_id, inputs);
    m->kept = SMG_ARENA_ARRAY(m->arena, smg_tensor, inputs);
    m->kept_memory = SMG_ARENA_ARRAY(m->arena, memory, inputs);
    m->all = SMG_ARENA_ARRAY(m->arena, smg_tensor, inputs);
    m->output_memory = SMG_ARENA_ARRAY(m->arena, memory, (size_t)g->outputs.count + 1);
    m->values = SMG_ARENA_ARRAY(m->arena, int64_t, (size_t)smg_size_symbol_count(g->sizes) + 1);
    if (!m->inputs || !m->kept || !m->kept_memory || !m->all || !m->output_memory || !m->values) {
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

smg_status smg_model_set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    (void)dim, (void)low, (void)high;
    return without_vulkan(m->ctx);
}

smg_status smg_model_bind(smg_model *m, const int64_t *values) {
    (void)values;
    return without_vulkan(m->ctx);
}

double smg_model_seconds(const smg_model *m) {
    (void)m;
    return 0;
}

void smg_model_close(smg_model *m) {
    (void)m;
}

#endif
