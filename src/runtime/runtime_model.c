/* runtime_model.c: a model made of its parts, what it says of itself, and its end. */
#include "runtime/runtime_private.h"

int smg_model_input_count(const smg_model *m) {
    return m != NULL ? m->parts.interface->input_count : 0;
}

int smg_model_output_count(const smg_model *m) {
    return m != NULL ? m->parts.interface->output_count : 0;
}

static void describe(const smg_sizes *sizes, const smg_port *port, smg_tensor *out) {
    *out = (smg_tensor){.name = port->name, .type = smg_storage_word(port->type), .rank = port->rank};
    for (int d = 0; d < port->rank; d++) {
        if (!smg_size_is_const(sizes, port->dims[d], &out->dims[d])) out->dims[d] = -1;
    }
}

bool smg_model_input(const smg_model *m, int index, smg_tensor *out_tensor) {
    if (index < 0 || index >= smg_model_input_count(m) || out_tensor == NULL) return false;
    describe(m->parts.interface->sizes, &m->parts.interface->inputs[index], out_tensor);
    return true;
}

bool smg_model_output(const smg_model *m, int index, smg_tensor *out_tensor) {
    if (index < 0 || index >= smg_model_output_count(m) || out_tensor == NULL) return false;
    describe(m->parts.interface->sizes, &m->parts.interface->outputs[index], out_tensor);
    return true;
}

const char *smg_model_class(const smg_model *m) {
    return m != NULL ? m->parts.class_name : "";
}

smg_context *smg_model_context(const smg_model *m) {
    return m->ctx;
}

void *smg_model_owner(const smg_model *m) {
    return m->parts.owner;
}

smg_program *smg_model_program(const smg_model *m) {
    return m->program;
}

const smg_model_parts *smg_model_parts_of(const smg_model *m) {
    return &m->parts;
}

const smg_interface *smg_model_interface(const smg_model *m) {
    return m->parts.interface;
}

void smg_model_times(const smg_model *m, double *out_device, double *out_program) {
    *out_device = m->parts.device_seconds;
    *out_program = m->program_seconds;
}

void smg_model_memory(const smg_model *m, smg_program_memory *out) {
    smg_program_memory_used(m->program, out);
}

double smg_model_seconds(const smg_model *m) {
    return m != NULL && m->program != NULL ? smg_program_time(m->program) : 0;
}

bool smg_model_leaves_out(smg_model *m) {
    const smg_model_parts *parts = &m->parts;
    int module = m->program != NULL ? smg_program_refused(m->program) : -1;
    if (module < 0 || parts->leave_out == NULL || m->shared || smg_program_has_begun(m->program)) return false;
    if (!parts->leave_out(parts->owner, module)) return false;
    m->outdated = true;
    smg_context_clear_error(m->ctx);
    return true;
}

smg_status smg_model_bind(smg_model *m, const int64_t *values) {
    smg_status status = smg_program_bind_sizes(m->program, values);
    while (status != SMG_OK && smg_model_leaves_out(m)) {
        SMG_TRY(smg_model_update(m));
        status = smg_program_bind_sizes(m->program, values);
    }
    return status;
}

smg_status smg_model_bind_named(smg_model *m, const smg_dim *dims, int count) {
    const smg_interface *n = m->parts.interface;
    int64_t *values = m->inputs.values;
    memcpy(values, n->nominal, (size_t)smg_size_symbol_count(n->sizes) * sizeof(*values));
    SMG_TRY(smg_sizes_give(m->ctx, n->sizes, dims, count, values));
    return smg_model_bind(m, values);
}

smg_status smg_model_check_alive(smg_model *m) {
    if (m->program != NULL) return SMG_OK;
    return smg_fail(m->ctx, SMG_DEVICE, "the model has no device since it could not be recovered");
}

smg_status smg_model_check_idle(smg_model *m, const char *call) {
    SMG_TRY(smg_model_check_alive(m));
    return m->flight.up ? smg_fail(m->ctx, SMG_INVALID, "%s: a run is in flight", call) : SMG_OK;
}

static smg_status set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    int symbol = 0;
    SMG_TRY(smg_model_check_alive(m));
    if (dim == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_range: the name is NULL");
    SMG_TRY(smg_sizes_find(m->ctx, m->parts.interface->sizes, dim, &symbol));
    SMG_TRY(smg_program_set_range(m->program, symbol, low, high));
    m->range_low[symbol] = low;
    m->range_high[symbol] = high;
    return SMG_OK;
}

smg_status smg_model_set_range(smg_model *m, const char *dim, int64_t low, int64_t high) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_range(m, dim, low, high));
}

static smg_status set_budget(smg_model *m, double dispatch_seconds, double submission_seconds) {
    SMG_TRY(smg_model_check_alive(m));
    if (!(dispatch_seconds >= 0) || !(submission_seconds >= 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_budget: %g and %g seconds", dispatch_seconds,
                        submission_seconds);
    if (m->flight.up) return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_budget: a run is in flight");
    m->dispatch_seconds = dispatch_seconds;
    m->submission_seconds = submission_seconds;
    smg_program_set_budget(m->program, dispatch_seconds, submission_seconds);
    return SMG_OK;
}

smg_status smg_model_set_budget(smg_model *m, double dispatch_seconds, double submission_seconds) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_budget(m, dispatch_seconds, submission_seconds));
}

smg_status smg_model_check_device(smg_context *ctx, const smg_vk_device *device) {
    if (device == NULL || smg_vk_context(device) == ctx) return SMG_OK;
    return smg_fail(ctx, SMG_INVALID, "device '%s' was opened with another context", smg_device_name(device));
}

/* ---- states ----------------------------------------------------------------------------------------- */

int smg_model_state_count(const smg_model *m) {
    int count = 0;
    for (int i = 0; i < smg_model_input_count(m); i++)
        count += m->parts.interface->inputs[i].absent == SMG_ABSENT_STATE;
    return count;
}

bool smg_model_state(const smg_model *m, int index, const char **out_input, const char **out_output) {
    if (index < 0 || out_input == NULL || out_output == NULL) return false;
    for (int i = 0; i < smg_model_input_count(m); i++) {
        const smg_port *port = &m->parts.interface->inputs[i];
        if (port->absent != SMG_ABSENT_STATE || index-- > 0) continue;
        *out_input = port->name;
        *out_output = m->parts.interface->outputs[port->next].name;
        return true;
    }
    return false;
}

static smg_status reset_state(smg_model *m, const char *name) {
    const smg_interface *n = m->parts.interface;
    int input = 0;
    SMG_TRY(smg_model_check_alive(m));
    if (m->flight.up) return smg_fail(m->ctx, SMG_INVALID, "smg_model_reset_state: a run is in flight");
    if (name != NULL) SMG_TRY(smg_interface_find_state(m->ctx, n, name, &input));
    for (int i = name != NULL ? input : 0; i < (name != NULL ? input + 1 : n->input_count); i++)
        if (n->inputs[i].absent == SMG_ABSENT_STATE && m->input_buffers[i] >= 0)
            SMG_TRY(smg_program_reset_state(m->program, m->input_buffers[i]));
    return SMG_OK;
}

smg_status smg_model_reset_state(smg_model *m, const char *name) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, reset_state(m, name));
}

/* ---- making ----------------------------------------------------------------------------------------- */

static void find_buffers(smg_model *m) {
    const smg_interface *n = m->parts.interface;
    for (int i = 0; i < n->input_count; i++) {
        m->input_buffers[i] = smg_bundle_find(m->parts.bundle, SMG_BUFFER_INPUT, n->inputs[i].name);
    }
    for (int i = 0; i < n->output_count; i++) {
        m->output_buffers[i] = smg_bundle_find(m->parts.bundle, SMG_BUFFER_OUTPUT, n->outputs[i].name);
    }
}

static smg_status make_tables(smg_model *m) {
    const smg_interface *n = m->parts.interface;
    size_t symbols = (size_t)smg_size_symbol_count(m->parts.bundle->sizes) + 1;
    m->range_low = SMG_ARENA_ARRAY(m->arena, int64_t, symbols);
    m->range_high = SMG_ARENA_ARRAY(m->arena, int64_t, symbols);
    m->last_sizes = SMG_ARENA_ARRAY(m->arena, int64_t, symbols);
    if (m->range_low == NULL || m->range_high == NULL || m->last_sizes == NULL) return SMG_MEMORY;
    m->output_room = SMG_ARENA_ARRAY(m->arena, smg_room, (size_t)n->output_count + 1);
    m->input_buffers = SMG_ARENA_ARRAY(m->arena, int, (size_t)n->input_count + 1);
    m->output_buffers = SMG_ARENA_ARRAY(m->arena, int, (size_t)n->output_count + 1);
    if (m->output_room == NULL || m->input_buffers == NULL || m->output_buffers == NULL) return SMG_MEMORY;
    find_buffers(m);
    SMG_TRY(smg_flight_make(&m->flight, n, m->arena));
    return smg_inputs_make(m->ctx, n, m->arena, &m->inputs);
}

/* The nominal sizes, in their place those of the description, and in the place of these its ranges. */
static smg_status expect_sizes(smg_model *m) {
    const smg_model_parts *parts = &m->parts;
    size_t symbols = (size_t)smg_size_symbol_count(parts->bundle->sizes);
    if (m->low == NULL) m->low = SMG_ARENA_ARRAY(m->arena, int64_t, symbols + 1);
    if (m->high == NULL) m->high = SMG_ARENA_ARRAY(m->arena, int64_t, symbols + 1);
    int64_t *low = m->low, *high = m->high;
    if (low == NULL || high == NULL) return SMG_MEMORY;
    memcpy(low, parts->interface->nominal, symbols * sizeof(*low));
    SMG_TRY(smg_sizes_give(m->ctx, parts->bundle->sizes, parts->dims, parts->dim_count, low));
    memcpy(high, low, symbols * sizeof(*high));
    for (int i = 0; i < parts->range_count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(m->ctx, parts->bundle->sizes, parts->ranges[i].name, &symbol));
        low[symbol] = parts->ranges[i].low;
        high[symbol] = parts->ranges[i].high;
    }
    for (size_t i = 0; i < symbols; i++) {
        if (m->range_low[i] == 0) continue;
        low[i] = m->range_low[i];
        high[i] = m->range_high[i];
    }
    return SMG_OK;
}

static smg_status make_program(smg_model *m) {
    smg_program_options options = m->parts.program;
    options.expected = m->low;
    options.expected_high = m->high;
    options.literal = options.literal && smg_target_hides_loads(smg_vk_target(m->parts.device));
    options.nominal = m->parts.interface->nominal;
    SMG_TRY(smg_program_create(m->ctx, m->parts.bundle, m->parts.device, &options, &m->program));
    smg_program_set_budget(m->program, m->dispatch_seconds, m->submission_seconds);
    return SMG_OK;
}

static void keep_device(smg_model *m) {
    smg_vk_keep(m->parts.device);
    smg_vk_leave(m->kept);
    m->kept = m->parts.device;
}

static smg_status make_first(smg_model *m) {
    const smg_model_parts *parts = &m->parts;
    double start = smg_clock_seconds();
    keep_device(m);
    SMG_TRY(make_tables(m));
    SMG_TRY(expect_sizes(m));
    SMG_TRY(make_program(m));
    for (int i = 0; i < parts->range_count; i++) {
        SMG_TRY(set_range(m, parts->ranges[i].name, parts->ranges[i].low, parts->ranges[i].high));
    }
    m->program_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}

static smg_status new_model(smg_context *ctx, const smg_model_parts *parts, smg_model **out_model) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_model *m = SMG_ARENA_NEW(arena, smg_model);
    if (m == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *m = (smg_model){.ctx = ctx, .arena = arena, .parts = *parts, .opens_device = parts->owns_device};
    *out_model = m;
    return SMG_OK;
}

smg_status smg_model_make(smg_context *ctx, const smg_model_parts *parts, smg_model **out_model) {
    smg_model *m = NULL;
    SMG_TRY(new_model(ctx, parts, &m));
    smg_status status = make_first(m);
    /* The caller's arrays are no longer needed. */
    m->parts.dims = NULL;
    m->parts.ranges = NULL;
    m->parts.dim_count = m->parts.range_count = 0;
    m->parts.program.leaves = NULL; /* nor is who chose between plans */
    if (status == SMG_OK) {
        *out_model = m;
        return SMG_OK;
    }
    m->parts.drop = NULL;
    m->parts.owns_device = false;
    smg_model_close(m);
    return status;
}

/* ---- sharing ---------------------------------------------------------------------------------------- */

static smg_status share(smg_model *from, smg_context *ctx, smg_model **out_model) {
    if (from->program == NULL) return smg_fail(ctx, SMG_DEVICE, "the model that is to be shared has no device");
    const smg_model_parts parts = {.interface = from->parts.interface,
                                   .bundle = from->parts.bundle,
                                   .owns_device = true,
                                   .class_name = from->parts.class_name};
    smg_model *m = NULL;
    SMG_TRY(new_model(ctx, &parts, &m));
    smg_status status = smg_vk_share(ctx, from->parts.device, &m->parts.device);
    keep_device(m);
    m->dispatch_seconds = from->dispatch_seconds;
    m->submission_seconds = from->submission_seconds;
    if (status == SMG_OK) status = make_tables(m);
    if (status == SMG_OK) status = smg_program_share(from->program, m->parts.device, &m->program);
    if (status != SMG_OK) {
        smg_model_close(m);
        return status;
    }
    m->shared = from->shared = true;
    m->from = from;
    atomic_fetch_add(&from->shares, 1);
    *out_model = m;
    return SMG_OK;
}

smg_status smg_model_share(smg_model *m, smg_context *ctx, smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (m == NULL || ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    smg_context_clear_error(ctx);
    smg_status status = smg_context_told(ctx, share(m, ctx, out_model));
    smg_context_clear_error(m->ctx != ctx ? m->ctx : NULL);
    return status;
}

/* ---- another device --------------------------------------------------------------------------------- */

static void drop_device(smg_model *m) {
    if (m->parts.owns_device) smg_vk_close(m->parts.device);
    m->parts.device = NULL;
    m->parts.owns_device = false;
    keep_device(m);
}

static smg_status begin_again(smg_model *m) {
    SMG_TRY(m->parts.again(m->parts.owner, &m->parts));
    keep_device(m);
    find_buffers(m);
    return make_program(m);
}

static smg_status set_ranges(smg_model *m) {
    for (int i = 0; i < smg_size_symbol_count(m->parts.bundle->sizes); i++)
        SMG_TRY(smg_program_set_range(m->program, i, m->range_low[i], m->range_high[i]));
    return SMG_OK;
}

static smg_status recover(smg_model *m, smg_device *on) {
    if (m->flight.up)
        return smg_fail(m->ctx, SMG_INVALID, "run %llu of the model is in flight: wait for its ticket",
                        (unsigned long long)m->flight.number);
    if (atomic_load(&m->shares) > 0)
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_recover: %d models that were shared from this one are open",
                        atomic_load(&m->shares));
    if (m->parts.again == NULL)
        return smg_fail(m->ctx, SMG_UNSUPPORTED,
                        "the model was compiled here, or its bundle was opened without smg_bundle_desc.recoverable");
    if (on == NULL && !m->opens_device)
        return smg_fail(m->ctx, SMG_INVALID,
                        "smg_model_recover: the model has not opened a device itself, and none is given");
    SMG_TRY(smg_model_check_device(m->ctx, on));
    m->lost_states = m->lost_states || (m->program != NULL && smg_program_has_begun(m->program));
    smg_program_destroy(m->program);
    m->program = NULL;
    drop_device(m);
    m->parts.device = on;
    smg_status status = begin_again(m);
    if (status == SMG_OK) status = set_ranges(m);
    if (status == SMG_OK) {
        if (m->lost_states) smg_program_lose_states(m->program);
        m->lost_states = false;
        return SMG_OK;
    }
    smg_program_destroy(m->program);
    m->program = NULL;
    drop_device(m);
    return status;
}

smg_status smg_model_recover(smg_model *m, smg_device *on) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, recover(m, on));
}

/* ---- another plan ------------------------------------------------------------------------------------ */

smg_status smg_model_outdate(smg_model *m) {
    if (m->parts.plan_again == NULL && !m->shared)
        return smg_fail(m->ctx, SMG_UNSUPPORTED, "the model came from a bundle, which has one plan");
    if (m->shared)
        return smg_fail(m->ctx, SMG_UNSUPPORTED,
                        "the model shares weights and pipelines with another, and so its plan");
    m->outdated = true;
    return SMG_OK;
}

static smg_status begin_with(smg_model *m, const smg_model_parts *parts) {
    double start = smg_clock_seconds();
    m->parts = *parts;
    find_buffers(m);
    smg_status status = expect_sizes(m);
    if (status == SMG_OK) status = make_program(m);
    if (status == SMG_OK) status = set_ranges(m);
    m->program_seconds = smg_clock_seconds() - start;
    if (status == SMG_OK) return SMG_OK;
    smg_program_destroy(m->program);
    m->program = NULL;
    return status;
}

/* The old program goes first: two would need twice the memory. States would go with it, so that a model that has begun
 * with them waits until they are reset. */
smg_status smg_model_update(smg_model *m) {
    const smg_model_parts before = m->parts;
    smg_model_parts parts = before;
    if (!m->outdated || (m->program != NULL && smg_program_has_begun(m->program))) return SMG_OK;
    m->outdated = false;
    smg_status status = before.plan_again(before.owner, &parts);
    bool other = status == SMG_OK && parts.bundle != before.bundle;
    if (other) {
        smg_program_destroy(m->program);
        m->program = NULL;
        status = begin_with(m, &parts);
    }
    before.planned_again(before.owner, status == SMG_OK);
    if (status == SMG_OK) return SMG_OK;
    smg_log(m->ctx, SMG_LOG_WARNING, "the model is not planned again: %s", smg_context_error(m->ctx));
    smg_context_clear_error(m->ctx);
    if (other) status = begin_with(m, &before);
    m->outdated = m->program == NULL; /* the next run tries again */
    return m->program != NULL ? SMG_OK : status;
}

void smg_model_close(smg_model *m) {
    if (m == NULL) return;
    smg_program_destroy(m->program); /* waits for what is in flight */
    smg_flight_land(&m->flight);
    smg_inputs_free(&m->inputs);
    for (int i = 0; m->output_room != NULL && i < m->parts.interface->output_count; i++) {
        smg_free(m->ctx, m->output_room[i].data, m->output_room[i].bytes);
    }
    smg_free(m->ctx, m->scratch.data, m->scratch.bytes);
    if (m->from != NULL) atomic_fetch_sub(&m->from->shares, 1);
    if (m->parts.drop != NULL) m->parts.drop(m->parts.owner);
    if (m->parts.owns_device) smg_vk_close(m->parts.device);
    smg_vk_leave(m->kept);
    smg_arena_destroy(m->arena);
}
