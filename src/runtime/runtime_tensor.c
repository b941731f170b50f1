/* runtime_tensor.c: arrays that stay on the device, and their way into runs.
 *
 * A tensor is a buffer and the type of its elements. A run that is given one records its kernels on that buffer, so
 * that nothing is copied; the program keeps the recordings of the last few. */
#include <stdio.h>

#include "runtime/runtime_private.h"

enum { FILL = 16 }; /* kernels move so many bytes at once */

/* ---- making ----------------------------------------------------------------------------------------- */

smg_status smg_device_tensor_storage(smg_context *ctx, const smg_device_tensor_desc *desc, smg_storage *out_storage) {
    const char *type = desc->type != NULL ? desc->type : "(none)";
    if (!smg_storage_find(type, out_storage)) {
        return smg_fail(ctx, SMG_INVALID, "a tensor of type '%s': there are f32 f16 bf16 i32 i64 bool", type);
    }
    if (desc->stored == NULL) return SMG_OK;
    for (int s = 0; s < SMG_STORE_COUNT; s++) {
        const char *stored = smg_storage_word(smg_storage_stored((smg_storage)s));
        if (strcmp(smg_storage_word((smg_storage)s), type) != 0 || strcmp(stored, desc->stored) != 0) continue;
        *out_storage = (smg_storage)s;
        return SMG_OK;
    }
    return smg_fail(ctx, SMG_INVALID, "a tensor of type %s cannot be stored as '%s'", type, desc->stored);
}

static smg_status check_room(smg_vk_device *device, const char *name, smg_storage storage, int64_t elements,
                             int64_t *out_bytes) {
    smg_context *ctx = smg_vk_context(device);
    const smg_target *target = smg_vk_target(device);
    int64_t bytes = 0;
    if (elements < 1) return smg_fail(ctx, SMG_INVALID, "tensor '%s' has %lld elements", name, (long long)elements);
    if (!smg_mul_i64(elements, smg_storage_device_bytes(storage), &bytes) ||
        bytes > smg_target_largest_buffer(target) - FILL) {
        return smg_fail(ctx, SMG_NO_FIT, "tensor '%s' has %lld elements of %lld bytes, '%s' binds at most %lld bytes",
                        name, (long long)elements, (long long)smg_storage_device_bytes(storage), target->name,
                        (long long)smg_target_largest_buffer(target));
    }
    *out_bytes = (bytes + FILL - 1) / FILL * FILL;
    return SMG_OK;
}

static smg_status check_import(smg_vk_device *device, const char *name, const smg_tensor_import *import,
                               int64_t bytes) {
    int64_t alignment = smg_vk_target(device)->buffer_alignment;
    if (alignment < FILL) alignment = FILL;
    if (import->offset < 0 || import->offset % alignment != 0) {
        return smg_fail(smg_vk_context(device), SMG_INVALID, "tensor '%s' begins at %lld, not a multiple of %lld", name,
                        (long long)import->offset, (long long)alignment);
    }
    if (import->bytes < bytes) {
        return smg_fail(smg_vk_context(device), SMG_INVALID, "tensor '%s' takes %lld bytes, its buffer has %lld", name,
                        (long long)bytes, (long long)import->bytes);
    }
    return SMG_OK;
}

smg_status smg_device_tensor_make(smg_vk_device *device, const char *name, smg_storage storage, int64_t elements,
                                  const smg_tensor_import *import, smg_device_tensor **out_tensor) {
    smg_context *ctx = smg_vk_context(device);
    int64_t bytes = 0;
    SMG_TRY(check_room(device, name, storage, elements, &bytes));
    if (import != NULL) SMG_TRY(check_import(device, name, import, bytes));
    smg_device_tensor *t = smg_alloc(ctx, 1, sizeof(*t));
    if (t == NULL) return SMG_MEMORY;
    *t = (smg_device_tensor){.device = device, .bytes = bytes, .storage = storage, .elements = elements};
    t->passage.ctx = ctx;
    smg_vk_keep(device);
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->offset = import != NULL ? import->offset : 0;
    smg_status status;
    if (import == NULL)
        status = smg_vk_buffer_create(device, t->name, bytes, SMG_VK_DEVICE, &t->memory);
    else if (import->from != NULL)
        status = smg_vk_buffer_import(device, t->name, import->from, t->offset + bytes, &t->memory);
    else
        status = smg_vk_buffer_borrow(device, t->name, import->handle, t->offset + bytes, &t->memory);
    if (status != SMG_OK) {
        smg_tensor_destroy(t);
        return status;
    }
    *out_tensor = t;
    return SMG_OK;
}

static smg_status create(smg_device *device, const smg_device_tensor_desc *desc, smg_device_tensor **out_tensor) {
    smg_storage storage;
    smg_context *ctx = smg_vk_context(device);
    if (desc == NULL) return smg_fail(ctx, SMG_INVALID, "smg_tensor_create: the description is NULL");
    SMG_TRY(smg_device_tensor_storage(ctx, desc, &storage));
    return smg_device_tensor_make(device, desc->name != NULL ? desc->name : "tensor", storage, desc->elements, NULL,
                                  out_tensor);
}

smg_status smg_tensor_create(smg_device *device, const smg_device_tensor_desc *desc, smg_device_tensor **out_tensor) {
    if (out_tensor == NULL) return SMG_INVALID;
    *out_tensor = NULL;
    if (device == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(device));
    return smg_context_told(smg_vk_context(device), create(device, desc, out_tensor));
}

static int find_port(const smg_port *ports, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0) return i;
    return -1;
}

static smg_status create_for(smg_model *m, const char *name, int64_t elements, smg_device_tensor **out_tensor) {
    const smg_interface *n = m->parts.interface;
    if (name == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_create_tensor: the name is NULL");
    SMG_TRY(smg_model_check_alive(m));
    int input = find_port(n->inputs, n->input_count, name), output = find_port(n->outputs, n->output_count, name);
    if (input < 0 && output < 0) {
        return smg_fail(m->ctx, SMG_NOT_FOUND, "the model has no input and no output '%s'", name);
    }
    int buffer = input >= 0 ? m->input_buffers[input] : m->output_buffers[output];
    smg_storage unused = input >= 0 ? n->inputs[input].type : n->outputs[output].type;
    smg_storage storage = buffer >= 0 ? m->parts.bundle->buffers.items[buffer].storage : unused;
    return smg_device_tensor_make(m->parts.device, name, storage, elements, NULL, out_tensor);
}

smg_status smg_model_create_tensor(smg_model *m, const char *name, int64_t elements, smg_device_tensor **out_tensor) {
    if (out_tensor == NULL) return SMG_INVALID;
    *out_tensor = NULL;
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, create_for(m, name, elements, out_tensor));
}

void smg_tensor_destroy(smg_device_tensor *t) {
    if (t == NULL) return;
    if (t->runs > 0) {
        t->dropped = true;
        return;
    }
    smg_vk_buffer_destroy(t->memory);
    smg_passage_free(&t->passage);
    smg_vk_device *device = t->device;
    smg_free(smg_vk_context(device), t, sizeof(*t));
    smg_vk_leave(device);
}

/* ---- elements --------------------------------------------------------------------------------------- */

static smg_status check_part(const smg_device_tensor *t, const char *what, int64_t first, const void *data,
                             int64_t count) {
    if (t->runs > 0)
        return smg_fail(smg_vk_context(t->device), SMG_INVALID, "%s: tensor '%s' is used by a run in flight", what,
                        t->name);
    if (first >= 0 && count >= 0 && first <= t->elements && count <= t->elements - first &&
        (data != NULL || count == 0))
        return SMG_OK;
    return smg_fail(smg_vk_context(t->device), SMG_INVALID, "%s: %lld elements from %lld on of tensor '%s' with %lld%s",
                    what, (long long)count, (long long)first, t->name, (long long)t->elements,
                    data == NULL ? ", and the host's are at NULL" : "");
}

static int64_t part_offset(const smg_device_tensor *t, int64_t first) {
    return t->offset + first * smg_storage_device_bytes(t->storage);
}

static smg_status upload(smg_device_tensor *t, int64_t first, const void *data, int64_t count) {
    SMG_TRY(check_part(t, "upload", first, data, count));
    return smg_passage_upload(&t->passage, t->name, t->storage, t->memory, part_offset(t, first), data, count);
}

static smg_status download(smg_device_tensor *t, int64_t first, void *data, int64_t count) {
    SMG_TRY(check_part(t, "download", first, data, count));
    return smg_passage_download(&t->passage, t->storage, t->memory, part_offset(t, first), data, count);
}

smg_status smg_tensor_upload(smg_device_tensor *t, int64_t first, const void *data, int64_t count) {
    if (t == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(t->device));
    return smg_context_told(smg_vk_context(t->device), upload(t, first, data, count));
}

smg_status smg_tensor_download(smg_device_tensor *t, int64_t first, void *data, int64_t count) {
    if (t == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_vk_context(t->device));
    return smg_context_told(smg_vk_context(t->device), download(t, first, data, count));
}

void *smg_tensor_map(smg_device_tensor *t) {
    uint8_t *start = t != NULL ? smg_vk_buffer_map(t->memory) : NULL;
    return start != NULL ? start + t->offset : NULL;
}

/* ---- into a run ------------------------------------------------------------------------------------- */

/* what: "input" or "output". */
static smg_status check_tensor(smg_model *m, const char *what, const char *name, const smg_tensor *tensor,
                               smg_storage wanted) {
    const smg_device_tensor *t = tensor->on;
    if (!smg_vk_same_device(t->device, m->parts.device)) {
        return smg_fail(m->ctx, SMG_INVALID, "%s '%s': tensor '%s' lies on another device", what, name, t->name);
    }
    if (tensor->type != NULL && strcmp(tensor->type, smg_storage_word(t->storage)) != 0) {
        return smg_fail(m->ctx, SMG_INVALID, "%s '%s': tensor '%s' has elements of %s, %s was said", what, name,
                        t->name, smg_storage_word(t->storage), tensor->type);
    }
    if (smg_storage_stored(t->storage) != smg_storage_stored(wanted)) {
        return smg_fail(m->ctx, SMG_INVALID, "%s '%s' lies on the device as %s, tensor '%s' as %s", what, name,
                        smg_storage_word(smg_storage_stored(wanted)), t->name,
                        smg_storage_word(smg_storage_stored(t->storage)));
    }
    return SMG_OK;
}

static smg_given given_of(const smg_device_tensor *t) {
    return (smg_given){.memory = t->memory, .offset = t->offset, .bytes = t->bytes};
}

static bool overlap(const smg_device_tensor *a, const smg_device_tensor *b) {
    return smg_vk_buffers_overlap(a->memory, a->offset, a->bytes, b->memory, b->offset, b->bytes);
}

/* What is written shares no memory with what else the run has. */
static smg_status check_apart(smg_model *m, const smg_tensor *outputs, int count, int output) {
    const smg_interface *n = m->parts.interface;
    const smg_device_tensor *t = outputs[output].on;
    for (int i = 0; i < n->input_count; i++) {
        const smg_device_tensor *other = m->inputs.all[i].on;
        if (other == NULL || !overlap(t, other)) continue;
        return smg_fail(m->ctx, SMG_INVALID, "output '%s' and input '%s' share memory", outputs[output].name,
                        n->inputs[i].name);
    }
    for (int i = 0; i < count; i++) {
        if (i == output || outputs[i].on == NULL || !overlap(t, outputs[i].on)) continue;
        return smg_fail(m->ctx, SMG_INVALID, "outputs '%s' and '%s' share memory", outputs[output].name,
                        outputs[i].name != NULL ? outputs[i].name : "");
    }
    return SMG_OK;
}

static smg_status give_input(smg_model *m, int input) {
    const smg_port *port = &m->parts.interface->inputs[input];
    const smg_tensor *tensor = &m->inputs.all[input];
    int buffer = m->input_buffers[input];
    smg_given given = {0};
    if (tensor->on != NULL) {
        smg_storage wanted = buffer >= 0 ? m->parts.bundle->buffers.items[buffer].storage : port->type;
        SMG_TRY(check_tensor(m, "input", port->name, tensor, wanted));
        if (m->inputs.length_counts[input] > 0) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s' has lengths that were set, and tensor '%s' beside them",
                            port->name, tensor->on->name);
        }
        given = given_of(tensor->on);
    }
    if (buffer >= 0) smg_program_give(m->program, buffer, &given);
    if (buffer >= 0 && tensor->on == NULL && tensor->data != NULL) smg_program_begin_with(m->program, buffer);
    return SMG_OK;
}

/* The state that the output's buffer is in the next run, by its input; -1: none. */
static int find_state(const smg_model *m, int buffer) {
    for (int i = 0; i < m->parts.interface->input_count; i++) {
        int input = m->input_buffers[i];
        const smg_bbuffer *b = input >= 0 ? &m->parts.bundle->buffers.items[input] : NULL;
        if (b != NULL && b->kind == SMG_BUFFER_STATE && b->next == buffer) return i;
    }
    return -1;
}

static smg_status give_output(smg_model *m, const smg_tensor *outputs, int count, int output) {
    const smg_tensor *tensor = &outputs[output];
    int buffer = 0;
    SMG_TRY(smg_program_find(m->program, SMG_BUFFER_OUTPUT, tensor->name != NULL ? tensor->name : "", &buffer));
    int state = find_state(m, buffer);
    if (state >= 0)
        return smg_fail(m->ctx, SMG_INVALID, "output '%s' is state '%s' of the next run, which lies with the model",
                        tensor->name, m->parts.interface->inputs[state].name);
    SMG_TRY(check_tensor(m, "output", tensor->name, tensor, m->parts.bundle->buffers.items[buffer].storage));
    SMG_TRY(check_apart(m, outputs, count, output));
    const smg_given given = given_of(tensor->on);
    smg_program_give(m->program, buffer, &given);
    return SMG_OK;
}

smg_status smg_model_give_tensors(smg_model *m, const smg_tensor *outputs, int output_count) {
    const smg_interface *n = m->parts.interface;
    for (int i = 0; i < n->input_count; i++) SMG_TRY(give_input(m, i));
    for (int i = 0; i < n->output_count; i++)
        if (m->output_buffers[i] >= 0) smg_program_give(m->program, m->output_buffers[i], NULL);
    for (int i = 0; i < output_count; i++)
        if (outputs[i].on != NULL) SMG_TRY(give_output(m, outputs, output_count, i));
    return SMG_OK;
}
