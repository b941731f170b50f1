/* runtime_inputs.c: arrays of a run, those that were given ahead, lengths of rows, and inputs that have a value of
 * their own. */
#include "runtime/runtime_private.h"

smg_status smg_room_grow(smg_context *ctx, smg_room *room, size_t bytes) {
    if (bytes <= room->bytes) return SMG_OK;
    void *data = smg_realloc(ctx, room->data, room->bytes, bytes);
    if (data == NULL) return SMG_MEMORY;
    *room = (smg_room){data, bytes};
    return SMG_OK;
}

smg_status smg_inputs_make(smg_context *ctx, const smg_interface *n, smg_arena *arena, smg_inputs *out) {
    size_t inputs = (size_t)n->input_count + 1;
    *out = (smg_inputs){.ctx = ctx};
    out->kept = SMG_ARENA_ARRAY(arena, smg_tensor, inputs);
    out->kept_room = SMG_ARENA_ARRAY(arena, smg_room, inputs);
    out->lengths = SMG_ARENA_ARRAY(arena, smg_room, inputs);
    out->length_counts = SMG_ARENA_ARRAY(arena, int, inputs);
    out->lasting = SMG_ARENA_ARRAY(arena, bool, inputs);
    out->all = SMG_ARENA_ARRAY(arena, smg_tensor, inputs);
    out->values = SMG_ARENA_ARRAY(arena, int64_t, (size_t)smg_size_symbol_count(n->sizes) + 1);
    if (!out->kept || !out->kept_room || !out->lengths || !out->length_counts || !out->lasting || !out->all ||
        !out->values)
        return SMG_MEMORY;
    out->interface = n; /* all tables are there */
    return SMG_OK;
}

void smg_inputs_free(smg_inputs *in) {
    for (int i = 0; in->interface != NULL && i < in->interface->input_count; i++) {
        smg_free(in->ctx, in->kept_room[i].data, in->kept_room[i].bytes);
        smg_free(in->ctx, in->lengths[i].data, in->lengths[i].bytes);
    }
}

smg_status smg_inputs_collect(smg_inputs *in, const smg_tensor *given, int count) {
    const smg_interface *n = in->interface;
    for (int i = 0; i < n->input_count; i++) in->all[i] = in->kept[i];
    for (int i = 0; i < count; i++) {
        int index = 0;
        smg_storage type;
        int64_t elements = 0;
        SMG_TRY(smg_interface_find_input(in->ctx, n, given[i].name, &index));
        for (int before = 0; before < i; before++)
            if (strcmp(given[before].name, given[i].name) == 0)
                return smg_fail(in->ctx, SMG_INVALID, "input '%s' is given twice", given[i].name);
        SMG_TRY(smg_port_check(in->ctx, &n->inputs[index], &given[i], &type, &elements));
        in->all[index] = given[i];
    }
    return SMG_OK;
}

smg_status smg_inputs_size(smg_inputs *in, const int64_t *defaults) {
    return smg_interface_sizes(in->ctx, in->interface, in->all, in->interface->input_count, defaults, in->values);
}

static smg_lengths lengths_of(const smg_inputs *in, int index) {
    return (smg_lengths){.rows = in->lengths[index].data, .count = in->length_counts[index]};
}

smg_status smg_inputs_fill(const smg_inputs *in, int index, smg_tensor *io, bool *out_filled) {
    const smg_port *port = &in->interface->inputs[index];
    int64_t count = 1;
    *out_filled = true;
    if (in->length_counts[index] > 0) return smg_lengths_put(in->ctx, in->interface, port, lengths_of(in, index), io);
    *out_filled = port->absent != SMG_ABSENT_REFUSED;
    for (int d = 0; d < io->rank; d++) count *= io->dims[d];
    if (*out_filled) smg_port_fill(port->type, port->absent == SMG_ABSENT_ONES, count, io->data);
    return SMG_OK;
}

smg_status smg_inputs_whole(const smg_inputs *in, smg_arena *arena, smg_tensor **out_whole, int *out_count) {
    smg_tensor *whole = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)in->interface->input_count + 1);
    if (whole == NULL) return SMG_MEMORY;
    *out_whole = whole;
    *out_count = 0;
    for (int i = 0; i < in->interface->input_count; i++) {
        const smg_port *port = &in->interface->inputs[i];
        bool filled = true;
        int64_t count = 0;
        if (smg_tensor_is_given(&in->all[i])) {
            *whole = in->all[i];
            whole->name = port->name;
            if (whole->type == NULL) whole->type = smg_storage_word(port->type);
        } else {
            SMG_TRY(smg_port_shape(in->ctx, in->interface, port, in->values, whole, &count));
            whole->data = smg_arena_alloc(arena, (size_t)(count * smg_storage_host_bytes(port->type)) + 1, 1);
            if (whole->data == NULL) return SMG_MEMORY;
            SMG_TRY(smg_inputs_fill(in, i, whole, &filled));
        }
        whole += filled;
        *out_count += filled;
    }
    return SMG_OK;
}

/* ---- given ahead ------------------------------------------------------------------------------------ */

static smg_status set_input(smg_model *m, const smg_tensor *input) {
    smg_inputs *in = &m->inputs;
    int index = 0;
    smg_storage type;
    int64_t count = 0;
    if (input == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_input: the tensor is NULL");
    if (input->on != NULL)
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_input: a tensor on the device is given with each run");
    SMG_TRY(smg_interface_find_input(m->ctx, in->interface, input->name, &index));
    const smg_port *port = &in->interface->inputs[index];
    if (port->absent == SMG_ABSENT_STATE)
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_input: '%s' is a state, which is given with one run",
                        port->name);
    SMG_TRY(smg_port_check(m->ctx, port, input, &type, &count));
    SMG_TRY(smg_room_grow(m->ctx, &in->kept_room[index], smg_model_room(m, port, count, type)));
    in->lasting[index] = false;
    memcpy(in->kept_room[index].data, input->data, (size_t)(count * smg_storage_host_bytes(type)));
    in->kept[index] = *input;
    in->kept[index].name = port->name;
    in->kept[index].type = smg_storage_word(type);
    in->kept[index].data = in->kept_room[index].data;
    return SMG_OK;
}

smg_status smg_model_set_input(smg_model *m, const smg_tensor *input) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_input(m, input));
}

static smg_status set_lengths(smg_model *m, const char *name, const int64_t *lengths, int count) {
    smg_inputs *in = &m->inputs;
    int index = 0;
    SMG_TRY(smg_interface_find_input(m->ctx, in->interface, name, &index));
    if (count < 0 || (lengths == NULL && count > 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_lengths: %d lengths, %s", count,
                        count < 0 ? "less than none" : "whose array is NULL");
    const smg_lengths given = {.rows = lengths, .count = count};
    if (in->interface->inputs[index].absent == SMG_ABSENT_STATE)
        return smg_fail(m->ctx, SMG_UNSUPPORTED, "smg_model_set_lengths: '%s' is a state", name);
    SMG_TRY(smg_lengths_check(m->ctx, in->interface, &in->interface->inputs[index], given));
    size_t bytes = (size_t)count * sizeof(*lengths);
    SMG_TRY(smg_room_grow(m->ctx, &in->lengths[index], bytes + 1));
    in->lasting[index] = false;
    if (count > 0) memcpy(in->lengths[index].data, lengths, bytes);
    in->length_counts[index] = count;
    return SMG_OK;
}

smg_status smg_model_set_lengths(smg_model *m, const char *input, const int64_t *lengths, int count) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_lengths(m, input, lengths, count));
}
