/* array_inputs.c: include/smg/arrays.h: arrays for all inputs of a model, and the sizes that they and the caller say.
 *
 * Each array has an arena of its own, so that one that takes another's place frees it, and a call that fails leaves
 * what there was. */
#include "array/array.h"

static smg_status make_tables(smg_arrays *a) {
    const smg_interface *n = a->interface;
    size_t inputs = (size_t)n->input_count + 1, symbols = (size_t)smg_size_symbol_count(n->sizes) + 1;
    a->inputs = SMG_ARENA_ARRAY(a->arena, smg_tensor, inputs);
    a->outputs = SMG_ARENA_ARRAY(a->arena, smg_tensor, (size_t)n->output_count + 1);
    a->rooms = SMG_ARENA_ARRAY(a->arena, smg_arena *, inputs);
    a->given = SMG_ARENA_ARRAY(a->arena, bool, inputs);
    a->symbols = SMG_ARENA_ARRAY(a->arena, int64_t, symbols);
    a->dims = SMG_ARENA_ARRAY(a->arena, smg_dim, symbols);
    if (!a->inputs || !a->outputs || !a->rooms || !a->given || !a->symbols || !a->dims) return SMG_MEMORY;
    for (int i = 0; i < n->input_count; i++)
        a->inputs[i] = (smg_tensor){.name = n->inputs[i].name, .type = smg_storage_word(n->inputs[i].type)};
    for (int i = 0; i < n->output_count; i++) a->outputs[i].name = n->outputs[i].name;
    return SMG_OK;
}

static smg_status create(smg_context *ctx, const smg_signature *signature, smg_arrays **out_arrays) {
    smg_arena *arena = NULL;
    if (signature == NULL) return smg_fail(ctx, SMG_INVALID, "smg_arrays_create: the signature is NULL");
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_arrays *a = SMG_ARENA_NEW(arena, smg_arrays);
    smg_status status = a != NULL ? SMG_OK : SMG_MEMORY;
    if (a != NULL) *a = (smg_arrays){.ctx = ctx, .arena = arena, .interface = smg_signature_interface(signature)};
    if (status == SMG_OK) status = make_tables(a);
    if (status == SMG_OK)
        *out_arrays = a;
    else
        smg_arena_destroy(arena);
    return status;
}

smg_status smg_arrays_create(smg_context *ctx, const smg_signature *signature, smg_arrays **out_arrays) {
    if (out_arrays == NULL) return SMG_INVALID;
    *out_arrays = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, create(ctx, signature, out_arrays));
}

void smg_arrays_destroy(smg_arrays *a) {
    if (a == NULL) return;
    for (int i = 0; i < a->interface->input_count; i++) smg_arena_destroy(a->rooms[i]);
    smg_arena_destroy(a->output_room);
    smg_arena_destroy(a->arena);
}

/* ---- one input ---------------------------------------------------------------------------------------- */

static smg_status find(smg_arrays *a, const char *input, int *out_index) {
    if (input == NULL) return smg_fail(a->ctx, SMG_INVALID, "smg_arrays: the name of the input is NULL");
    return smg_interface_find_input(a->ctx, a->interface, input, out_index);
}

smg_status smg_arrays_find(smg_arrays *a, const char *input, int *out_index) {
    int ignored = 0;
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, find(a, input, out_index != NULL ? out_index : &ignored));
}

/* An array in the place of what the input had, or its room goes: the end of whatever makes one. */
static smg_status put(smg_arrays *a, int index, smg_status status, smg_arena *room, const smg_tensor *array) {
    if (status != SMG_OK) {
        smg_arena_destroy(room);
        return status;
    }
    smg_arena_destroy(a->rooms[index]);
    a->rooms[index] = room;
    a->inputs[index] = *array;
    return SMG_OK;
}

/* Sizes follow this one: they are settled anew. */
static smg_status put_given(smg_arrays *a, int index, smg_status status, smg_arena *room, const smg_tensor *array) {
    SMG_TRY(put(a, index, status, room, array));
    a->given[index] = true;
    a->settled = false;
    return SMG_OK;
}

static smg_status load(smg_arrays *a, const char *input, const char *path) {
    int index = 0;
    smg_arena *room = NULL;
    smg_tensor array;
    SMG_TRY(find(a, input, &index));
    if (path == NULL) return smg_fail(a->ctx, SMG_INVALID, "smg_arrays_load: the path is NULL");
    SMG_TRY(smg_arena_create(a->ctx, &room));
    smg_status status = smg_tensor_load(a->ctx, &a->interface->inputs[index], path, room, &array);
    return put_given(a, index, status, room, &array);
}

smg_status smg_arrays_load(smg_arrays *a, const char *input, const char *path) {
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, load(a, input, path));
}

static bool is_integer(smg_storage type) {
    return type == SMG_STORE_I32 || type == SMG_STORE_I64_AS_I32;
}

static smg_status convert(smg_arrays *a, const smg_port *port, smg_storage from, int64_t elements, smg_arena *room,
                          smg_tensor *io_array) {
    if (!is_integer(from) || !is_integer(port->type))
        return smg_fail(a->ctx, SMG_INVALID, "input '%s' is %s, the array has %s", port->name,
                        smg_storage_word(port->type), io_array->type);
    io_array->type = smg_storage_word(port->type);
    io_array->bytes = (size_t)(elements * smg_storage_host_bytes(port->type));
    void *data = smg_arena_alloc(room, io_array->bytes + 16, 1);
    if (data == NULL) return SMG_MEMORY;
    SMG_TRY(smg_port_convert(a->ctx, port, io_array->data, elements, data));
    io_array->data = data;
    return SMG_OK;
}

static smg_status give(smg_arrays *a, const smg_tensor *input) {
    int index = 0;
    int64_t elements = 0;
    smg_storage type;
    smg_arena *room = NULL;
    if (input == NULL || input->data == NULL)
        return smg_fail(a->ctx, SMG_INVALID, "smg_arrays_give: %s", input == NULL ? "NULL" : "an array without data");
    SMG_TRY(find(a, input->name, &index));
    const smg_port *port = &a->interface->inputs[index];
    smg_tensor array = *input;
    array.name = port->name;
    array.on = NULL;
    if (input->on != NULL) return smg_fail(a->ctx, SMG_INVALID, "'%s' lies on a device", input->name);
    SMG_TRY(smg_port_check(a->ctx, port, &array, &type, &elements));
    SMG_TRY(smg_arena_create(a->ctx, &room));
    array.type = smg_storage_word(type);
    smg_status status = type != port->type ? convert(a, port, type, elements, room, &array) : SMG_OK;
    return put_given(a, index, status, room, &array);
}

smg_status smg_arrays_give(smg_arrays *a, const smg_tensor *input) {
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, give(a, input));
}

/* ---- sizes -------------------------------------------------------------------------------------------- */

static smg_status check_dims(smg_context *ctx, const char *what, const smg_dim *dims, int count) {
    if (count < 0 || (dims == NULL && count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_sizes_desc: %d %s, %s", count, what,
                        count < 0 ? "less than none" : "whose array is NULL");
    for (int i = 0; i < count; i++)
        if (dims[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_sizes_desc: %s[%d] has no name", what, i);
    return SMG_OK;
}

/* What sizes have that no array says. */
static smg_status default_sizes(const smg_arrays *a, const smg_sizes_desc *desc, int64_t *out_values) {
    const smg_interface *n = a->interface;
    size_t symbols = (size_t)smg_size_symbol_count(n->sizes);
    SMG_TRY(smg_sizes_give(a->ctx, n->sizes, desc->max_dims, desc->max_dim_count, out_values)); /* are they possible? */
    memcpy(out_values, n->nominal, symbols * sizeof(*out_values));
    for (int i = 0; i < desc->max_dim_count; i++) {
        int symbol = smg_size_symbol_find(n->sizes, desc->max_dims[i].name);
        if (out_values[symbol] > desc->max_dims[i].value) out_values[symbol] = desc->max_dims[i].value;
    }
    return smg_sizes_give(a->ctx, n->sizes, desc->dims, desc->dim_count, out_values);
}

static smg_status settle_in(smg_arena *scratch, smg_arrays *a, const smg_sizes_desc *desc) {
    const smg_interface *n = a->interface;
    size_t symbols = (size_t)smg_size_symbol_count(n->sizes);
    int64_t *defaults = SMG_ARENA_ARRAY(scratch, int64_t, symbols + 1);
    int64_t *values = SMG_ARENA_ARRAY(scratch, int64_t, symbols + 1);
    smg_tensor *given = SMG_ARENA_ARRAY(scratch, smg_tensor, (size_t)n->input_count + 1);
    if (defaults == NULL || values == NULL || given == NULL) return SMG_MEMORY;
    SMG_TRY(default_sizes(a, desc, defaults));
    for (int i = 0; i < n->input_count; i++)
        if (a->given[i]) given[i] = a->inputs[i];
    SMG_TRY(smg_interface_sizes(a->ctx, n, given, n->input_count, defaults, values));
    memcpy(a->symbols, values, symbols * sizeof(*values));
    for (size_t i = 0; i < symbols; i++) a->dims[i] = (smg_dim){smg_size_symbol_name(n->sizes, (int)i), values[i]};
    for (int i = 0; i < n->input_count; i++)
        if (!a->given[i]) a->inputs[i].data = NULL; /* was of other sizes */
    a->settled = true;
    return SMG_OK;
}

static smg_status settle(smg_arrays *a, const smg_sizes_desc *desc) {
    static const smg_sizes_desc nothing = {0};
    smg_arena *scratch = NULL;
    if (desc == NULL) desc = &nothing;
    SMG_TRY(check_dims(a->ctx, "dims", desc->dims, desc->dim_count));
    SMG_TRY(check_dims(a->ctx, "max_dims", desc->max_dims, desc->max_dim_count));
    SMG_TRY(smg_arena_create(a->ctx, &scratch));
    smg_status status = settle_in(scratch, a, desc);
    smg_arena_destroy(scratch);
    return status;
}

smg_status smg_arrays_settle(smg_arrays *a, const smg_sizes_desc *desc) {
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, settle(a, desc));
}

const smg_dim *smg_arrays_sizes(const smg_arrays *a, int *out_count) {
    bool there = a != NULL && a->settled;
    if (out_count != NULL) *out_count = there ? smg_size_symbol_count(a->interface->sizes) : 0;
    return there ? a->dims : NULL;
}

/* ---- arrays that are made up -------------------------------------------------------------------------- */

static smg_fill own_fill(const smg_port *port) {
    return port->absent == SMG_ABSENT_ONES      ? SMG_FILL_ONES
           : port->absent == SMG_ABSENT_REFUSED ? SMG_FILL_RANDOM
                                                : SMG_FILL_ZEROS;
}

/* lengths NULL: `how` says it all. */
static smg_status make(smg_arrays *a, const char *input, smg_fill how, uint64_t seed, const smg_lengths *lengths) {
    int index = 0;
    smg_arena *room = NULL;
    smg_tensor array;
    SMG_TRY(find(a, input, &index));
    const smg_port *port = &a->interface->inputs[index];
    if (!a->settled) return smg_fail(a->ctx, SMG_INVALID, "input '%s' is filled before sizes are settled", input);
    if (how == SMG_FILL_OWN) how = own_fill(port);
    if (how != SMG_FILL_RANDOM && how != SMG_FILL_ZEROS && how != SMG_FILL_ONES)
        return smg_fail(a->ctx, SMG_INVALID, "smg_arrays_fill: there is no way %d to fill an array", (int)how);
    SMG_TRY(smg_arena_create(a->ctx, &room));
    smg_status status = smg_tensor_fill_port(a->ctx, a->interface, port, a->symbols, how, seed, room, &array);
    if (status == SMG_OK && lengths != NULL) status = smg_lengths_put(a->ctx, a->interface, port, *lengths, &array);
    SMG_TRY(put(a, index, status, room, &array));
    a->given[index] = false;
    return SMG_OK;
}

smg_status smg_arrays_fill(smg_arrays *a, const char *input, smg_fill how, uint64_t seed) {
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, make(a, input, how, seed, NULL));
}

static smg_status fill_lengths(smg_arrays *a, const char *input, const int64_t *lengths, int count) {
    if (count < 0 || (lengths == NULL && count > 0))
        return smg_fail(a->ctx, SMG_INVALID, "smg_arrays_fill_lengths: %d lengths%s", count,
                        lengths == NULL ? " at NULL" : "");
    const smg_lengths rows = {.rows = lengths, .count = count};
    return make(a, input, SMG_FILL_ZEROS, 0, &rows);
}

smg_status smg_arrays_fill_lengths(smg_arrays *a, const char *input, const int64_t *lengths, int count) {
    if (a == NULL) return SMG_INVALID;
    smg_context_clear_error(a->ctx);
    return smg_context_told(a->ctx, fill_lengths(a, input, lengths, count));
}

/* ---- for runs ----------------------------------------------------------------------------------------- */

smg_tensor *smg_arrays_inputs(smg_arrays *a, int *out_count) {
    if (out_count != NULL) *out_count = a != NULL ? a->interface->input_count : 0;
    return a != NULL ? a->inputs : NULL;
}

smg_tensor *smg_arrays_outputs(smg_arrays *a, int *out_count) {
    if (out_count != NULL) *out_count = a != NULL ? a->interface->output_count : 0;
    return a != NULL ? a->outputs : NULL;
}
