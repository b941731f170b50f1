/* runtime_run.c: a caller's arrays into a run and out of it.
 *
 * A run reads the symbolic sizes off the inputs, binds them, copies inputs in and outputs out. Memory for kept inputs
 * and for outputs only grows, so that runs of sizes seen lately, or of a range that was set, allocate nothing. */
#include <math.h>

#include "runtime/runtime_private.h"

size_t smg_model_room(const smg_model *m, const smg_port *port, int64_t count, smg_storage type) {
    const int64_t *low = NULL, *high = NULL;
    int64_t room = 1;
    size_t least = (size_t)(count * smg_storage_host_bytes(type)) + 1;
    if (m->program == NULL || !smg_program_ends(m->program, &low, &high)) return least;
    for (int d = 0; d < port->rank; d++) {
        int64_t from = 0, to = 0;
        smg_size_between(m->parts.interface->sizes, port->dims[d], low, high, &from, &to);
        if (!smg_mul_i64(room, to, &room) || room > INT64_MAX / 16) return least;
    }
    return room > count ? (size_t)(room * smg_storage_host_bytes(type)) + 1 : least;
}

/* ---- inputs ----------------------------------------------------------------------------------------- */

/* What the program takes: the tensor itself, or a copy in the input's integer type. */
static smg_status convert_input(smg_model *m, const smg_port *port, const smg_tensor *tensor, const void **out_data) {
    smg_storage type;
    int64_t count = 0;
    SMG_TRY(smg_port_check(m->ctx, port, tensor, &type, &count));
    *out_data = tensor->data;
    if (type == port->type) return SMG_OK;
    if (!smg_storage_is_integer(type) || !smg_storage_is_integer(port->type)) {
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' is %s, %s was given", port->name, smg_storage_word(port->type),
                        smg_storage_word(type));
    }
    SMG_TRY(smg_room_grow(m->ctx, &m->scratch, smg_model_room(m, port, count, port->type)));
    *out_data = m->scratch.data;
    return smg_port_convert(m->ctx, port, tensor->data, count, m->scratch.data);
}

static smg_status need_inputs(smg_model *m) {
    const smg_interface *n = m->parts.interface;
    for (int i = 0; i < n->input_count; i++) {
        bool has = smg_tensor_is_given(&m->inputs.all[i]) || m->inputs.length_counts[i] > 0 ||
                   n->inputs[i].absent != SMG_ABSENT_REFUSED;
        if (has || m->input_buffers[i] < 0) continue;
        return smg_fail(m->ctx, SMG_INVALID, "input '%s' is missing", n->inputs[i].name);
    }
    return SMG_OK;
}

/* Of an input that nobody gave as an array. */
static smg_status write_made(smg_model *m, int index) {
    const smg_port *port = &m->parts.interface->inputs[index];
    smg_tensor made;
    int64_t count = 0;
    bool filled;
    SMG_TRY(smg_port_shape(m->ctx, m->parts.interface, port, m->inputs.values, &made, &count));
    SMG_TRY(smg_room_grow(m->ctx, &m->scratch, smg_model_room(m, port, count, port->type)));
    made.data = m->scratch.data;
    SMG_TRY(smg_inputs_fill(&m->inputs, index, &made, &filled));
    return filled ? smg_program_write_input(m->program, made.name, made.data, made.rank, made.dims) : SMG_OK;
}

static smg_status write_array(smg_model *m, int index) {
    const smg_inputs *in = &m->inputs;
    const smg_port *port = &in->interface->inputs[index];
    const smg_tensor *array = &in->all[index];
    const void *data = NULL;
    SMG_TRY(convert_input(m, port, array, &data));
    if (in->length_counts[index] > 0) {
        const smg_lengths lengths = {.rows = in->lengths[index].data, .count = in->length_counts[index]};
        SMG_TRY(smg_lengths_compare(m->ctx, in->interface, port, lengths, array));
    }
    if (m->input_buffers[index] < 0) return SMG_OK;
    return smg_program_write_input(m->program, port->name, data, array->rank, array->dims);
}

/* What was given ahead, or has a value of its own, stays where it was written for as long as sizes do. */
static smg_status write_inputs(smg_model *m) {
    const smg_inputs *in = &m->inputs;
    for (int i = 0; i < in->interface->input_count; i++) {
        const smg_tensor *array = &in->all[i];
        bool used = m->input_buffers[i] >= 0, lasts = array->data == in->kept[i].data;
        bool kept = array->data == NULL && in->interface->inputs[i].absent == SMG_ABSENT_STATE;
        if (array->on != NULL || kept || (array->data == NULL && !used)) continue;
        if (lasts && in->lasting[i] && used && smg_program_has_input(m->program, m->input_buffers[i])) continue;
        in->lasting[i] = false;
        SMG_TRY(array->data == NULL ? write_made(m, i) : write_array(m, i));
        in->lasting[i] = lasts;
    }
    return SMG_OK;
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

static int output_row(const smg_interface *n, const char *name) {
    int row = 0;
    while (row < n->output_count && strcmp(n->outputs[row].name, name) != 0) row++;
    return row;
}

/* All that is known of it before the run: rank, dims, type, and where its data go. *out_buffer: of the bundle. */
static smg_status shape_output(smg_model *m, smg_tensor *out, int *out_buffer) {
    const smg_interface *n = m->parts.interface;
    SMG_TRY(smg_program_find(m->program, SMG_BUFFER_OUTPUT, out->name != NULL ? out->name : "", out_buffer));
    const smg_bbuffer *b = &m->parts.bundle->buffers.items[*out_buffer];
    int64_t count = smg_program_dims(m->program, *out_buffer, out->dims);
    int64_t bytes = count * smg_storage_host_bytes(b->storage);
    out->rank = b->rank;
    out->type = smg_storage_word(b->storage);
    if (out->on != NULL) return SMG_OK;
    bool ours = out->data == NULL;
    for (int i = 0; !ours && i < n->output_count; i++) {
        ours = out->data == m->output_room[i].data; /* of an earlier run */
    }
    if (ours) {
        int row = output_row(n, out->name);
        if (row == n->output_count) return smg_fail(m->ctx, SMG_INTERNAL, "output '%s' is of no row", out->name);
        SMG_TRY(smg_room_grow(m->ctx, &m->output_room[row], smg_model_room(m, &n->outputs[row], count, b->storage)));
        out->data = m->output_room[row].data;
        out->bytes = (size_t)bytes;
    } else if (out->bytes < (size_t)bytes) {
        return smg_fail(m->ctx, SMG_INVALID, "output '%s' takes %lld bytes, there is room for %zu", out->name,
                        (long long)bytes, out->bytes);
    }
    return SMG_OK;
}

static smg_status read_output(smg_model *m, const smg_tensor *out) {
    int64_t bytes = 1;
    smg_storage type;
    if (out->on != NULL) return SMG_OK;
    smg_storage_find(out->type, &type);
    for (int d = 0; d < out->rank; d++) bytes *= out->dims[d];
    return smg_program_read_output(m->program, out->name, out->data, bytes * smg_storage_host_bytes(type));
}

/* Integers and bools are; of what stays on the device nothing is known. */
static bool is_finite(const smg_tensor *output) {
    int64_t count = 1;
    if (output->on != NULL) return true;
    for (int d = 0; d < output->rank; d++) count *= output->dims[d];
    bool wide = strcmp(output->type, "f32") == 0, half = strcmp(output->type, "f16") == 0;
    if (!wide && !half && strcmp(output->type, "bf16") != 0) return true;
    for (int64_t i = 0; i < count; i++) {
        float value = 0;
        uint16_t bits = 0;
        if (wide)
            memcpy(&value, (const uint8_t *)output->data + i * 4, sizeof(value));
        else
            memcpy(&bits, (const uint8_t *)output->data + i * 2, sizeof(bits));
        if (!wide) value = (float)(half ? smg_half_value(bits) : smg_bf16_value(bits));
        if (!isfinite(value)) return false;
    }
    return true;
}

static smg_status ask_not_finite(smg_model *m) {
    smg_arena *arena = NULL;
    smg_tensor *whole = NULL;
    int count = 0;
    SMG_TRY(smg_arena_create(m->ctx, &arena));
    smg_status status = smg_inputs_whole(&m->inputs, arena, &whole, &count);
    if (status == SMG_OK) status = m->parts.not_finite(m->parts.owner, m->inputs.values, whole, count);
    smg_arena_destroy(arena);
    return status;
}

/* Some input, which the host does not have then. */
static bool stays_on_device(const smg_inputs *in) {
    for (int i = 0; i < in->interface->input_count; i++) {
        bool state = in->interface->inputs[i].absent == SMG_ABSENT_STATE;
        if (in->all[i].on != NULL || (state && in->all[i].data == NULL)) return true;
    }
    return false;
}

/* ---- runs ------------------------------------------------------------------------------------------- */

/* A kernel says which index was wrong; whose it was, when it was an input's, is looked up here. */
static smg_status name_index(smg_model *m, smg_status status) {
    const smg_inputs *in = &m->inputs;
    for (int i = 0; status == SMG_INVALID && i < in->interface->input_count; i++) {
        const smg_port *port = &in->interface->inputs[i];
        int64_t element = 0;
        if (in->all[i].data == NULL || !smg_port_outside(in->interface, port, in->values, &in->all[i], &element))
            continue;
        return smg_fail_within(m->ctx, status, "input '%s', element %lld", port->name, (long long)element);
    }
    return status;
}

static void use_tensor(smg_flight *flight, smg_device_tensor *tensor) {
    if (tensor == NULL) return;
    tensor->runs++;
    flight->tensors[flight->tensor_count++] = tensor;
}

/* What the end of the run needs to know. */
static void take_off(smg_model *m, const smg_tensor *outputs, int output_count) {
    smg_flight *flight = &m->flight;
    const smg_inputs *in = &m->inputs;
    flight->up = true;
    flight->output_count = output_count;
    for (int i = 0; i < in->interface->input_count; i++) use_tensor(flight, in->all[i].on);
    for (int i = 0; i < output_count; i++) {
        flight->outputs[i] = outputs[i];
        use_tensor(flight, outputs[i].on);
    }
    flight->on_device = flight->tensor_count > 0;
}

static smg_status check_arrays(smg_model *m, const smg_tensor *inputs, int input_count, const smg_tensor *outputs,
                               int output_count) {
    if (input_count < 0 || output_count < 0 || (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_run: %d inputs and %d outputs, %s", input_count, output_count,
                        input_count < 0 || output_count < 0 ? "less than none" : "whose array is NULL");
    if (output_count > m->parts.interface->output_count)
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_run: %d outputs are asked for, the model has %d", output_count,
                        m->parts.interface->output_count);
    if (m->flight.up)
        return smg_fail(m->ctx, SMG_INVALID, "run %llu of the model is in flight: wait for its ticket",
                        (unsigned long long)m->flight.number);
    return SMG_OK;
}

/* The sizes that the inputs have, in force. */
static smg_status bind_inputs(smg_model *m, const smg_tensor *inputs, int input_count, const smg_tensor *outputs,
                              int output_count) {
    SMG_TRY(smg_model_update(m));
    SMG_TRY(smg_model_check_alive(m));
    SMG_TRY(smg_inputs_collect(&m->inputs, inputs, input_count));
    SMG_TRY(need_inputs(m));
    SMG_TRY(smg_inputs_size(&m->inputs, smg_program_has_begun(m->program) ? m->last_sizes : NULL));
    SMG_TRY(smg_model_give_tensors(m, outputs, output_count));
    return smg_program_bind_sizes(m->program, m->inputs.values);
}

/* All that comes before the submission. */
static smg_status make_ready(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                             int output_count) {
    smg_flight *flight = &m->flight;
    SMG_TRY(check_arrays(m, inputs, input_count, outputs, output_count));
    flight->repeats = false;
    smg_status status = bind_inputs(m, inputs, input_count, outputs, output_count);
    while (status != SMG_OK && smg_model_leaves_out(m))
        status = bind_inputs(m, inputs, input_count, outputs, output_count);
    SMG_TRY(status);
    SMG_TRY(write_inputs(m));
    flight->wanted_count = 0;
    for (int i = 0; i < output_count; i++) {
        int buffer = 0;
        SMG_TRY(shape_output(m, &outputs[i], &buffer));
        if (outputs[i].on == NULL) flight->wanted[flight->wanted_count++] = buffer;
    }
    return SMG_OK;
}

smg_status smg_flight_start(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                            int output_count, const struct smg_vulkan_sync *sync) {
    SMG_TRY(make_ready(m, inputs, input_count, outputs, output_count));
    SMG_TRY(smg_program_submit(m->program, m->flight.wanted, m->flight.wanted_count, sync));
    take_off(m, outputs, output_count);
    return SMG_OK;
}

/* A command buffer of the application's may run when something else lies there, or never: it brings all inputs, and
 * leaves none. */
static void forget_lasting(smg_model *m) {
    memset(m->inputs.lasting, 0, (size_t)m->inputs.interface->input_count * sizeof(*m->inputs.lasting));
}

smg_status smg_flight_record(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                             int output_count, const void *commands) {
    forget_lasting(m);
    SMG_TRY(make_ready(m, inputs, input_count, outputs, output_count));
    forget_lasting(m);
    SMG_TRY(smg_program_record_in(m->program, commands, m->flight.wanted, m->flight.wanted_count));
    take_off(m, outputs, output_count);
    return SMG_OK;
}

smg_status smg_flight_finish(smg_model *m) {
    for (int i = 0; i < m->flight.output_count; i++) SMG_TRY(read_output(m, &m->flight.outputs[i]));
    return SMG_OK;
}

void smg_flight_keep(smg_model *m) {
    int symbols = smg_size_symbol_count(m->parts.interface->sizes);
    memcpy(m->last_sizes, m->inputs.values, (size_t)symbols * sizeof(*m->last_sizes));
    smg_program_keep_states(m->program);
    m->flight.repeats = !m->flight.on_device;
}

smg_status smg_model_again(smg_model *m) {
    if (!m->flight.repeats)
        return smg_fail(m->ctx, SMG_INVALID,
                        "smg_model_repeat: there was no run, it failed, or it used tensors, which may be gone");
    return smg_program_run(m->program);
}

static smg_status run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs, int output_count) {
    bool finite = true, done = false;
    SMG_TRY(smg_flight_start(m, inputs, input_count, outputs, output_count, NULL));
    smg_status status = smg_program_wait(m->program, 1e-3, HUGE_VAL, &done);
    smg_flight_land(&m->flight);
    SMG_TRY(name_index(m, status));
    SMG_TRY(smg_flight_finish(m));
    for (int i = 0; i < output_count; i++) finite = finite && (m->parts.not_finite == NULL || is_finite(&outputs[i]));
    if (!finite && !stays_on_device(&m->inputs)) SMG_TRY(ask_not_finite(m));
    smg_flight_keep(m);
    return SMG_OK;
}

smg_status smg_model_run(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                         int output_count) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, run(m, inputs, input_count, outputs, output_count));
}
