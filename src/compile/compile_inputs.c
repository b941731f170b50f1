/* compile_inputs.c: what goes into a model: arrays of a run, those that were given ahead, lengths of rows, and inputs
 * that have a value of their own. */
#include "compile/compile_private.h"

#if SMG_VULKAN

smg_status smg_memory_grow(smg_context *ctx, smg_memory *m, size_t bytes) {
    if (bytes <= m->bytes) return SMG_OK;
    void *data = smg_realloc(ctx, m->data, m->bytes, bytes);
    if (data == NULL) return SMG_MEMORY;
    *m = (smg_memory){data, bytes};
    return SMG_OK;
}

static smg_status find_input(smg_model *m, const char *name, int *out_index) {
    for (int i = 0; name != NULL && i < m->input_count; i++) {
        if (strcmp(smg_model_input_node(m, i)->name, name) == 0) {
            *out_index = i;
            return SMG_OK;
        }
    }
    smg_text names;
    smg_text_init(&names, m->ctx);
    for (int i = 0; i < m->input_count; i++) {
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", smg_model_input_node(m, i)->name);
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

int64_t smg_model_room(const smg_model *m, const smg_node *node, int64_t count) {
    const int64_t *low = NULL, *high = NULL;
    int64_t room = 1;
    if (!smg_program_ends(m->program, &low, &high)) return count;
    for (int d = 0; d < node->rank; d++) {
        int64_t least = 0, most = 0;
        smg_size_between(m->source->graph->sizes, node->dims[d], low, high, &least, &most);
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
    int64_t room = smg_model_room(m, node, count);
    SMG_TRY(smg_memory_grow(m->ctx, &m->scratch, (size_t)(room * smg_type_host_bytes(node->type)) + 1));
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
    const smg_node *node = smg_model_input_node(m, index);
    smg_type type = node->type;
    SMG_TRY(check_tensor(m, input, &type));
    int64_t count = smg_tensor_elements(input);
    size_t bytes = (size_t)(count * smg_type_host_bytes(type));
    size_t room = (size_t)(smg_model_room(m, node, count) * smg_type_host_bytes(type));
    SMG_TRY(smg_memory_grow(m->ctx, &m->kept_memory[index], room + 1));
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

static smg_status set_lengths(smg_model *m, const char *name, const int64_t *lengths, int count) {
    int index = 0;
    SMG_TRY(find_input(m, name, &index));
    if (count < 0 || (lengths == NULL && count > 0))
        return smg_fail(m->ctx, SMG_INVALID, "smg_model_set_lengths: %d lengths, %s", count,
                        count < 0 ? "less than none" : "whose array is NULL");
    const smg_lengths given = {.rows = lengths, .count = count};
    SMG_TRY(smg_lengths_check(m->ctx, m->source->graph, smg_model_input_node(m, index), given));
    size_t bytes = (size_t)count * sizeof(*lengths);
    SMG_TRY(smg_memory_grow(m->ctx, &m->lengths[index], bytes + 1));
    if (count > 0) memcpy(m->lengths[index].data, lengths, bytes);
    m->length_counts[index] = count;
    return SMG_OK;
}

smg_status smg_model_set_lengths(smg_model *m, const char *input, const int64_t *lengths, int count) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, set_lengths(m, input, lengths, count));
}

static bool program_has_input(const smg_model *m, const char *name) {
    const smg_bundle *bundle = m->c->bundle;
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        if (b->kind == SMG_BUFFER_INPUT && strcmp(b->name, name) == 0) return true;
    }
    return false;
}

smg_status smg_model_collect(smg_model *m, const smg_tensor *inputs, int count) {
    for (int i = 0; i < m->input_count; i++) m->all[i] = m->kept[i];
    for (int i = 0; i < count; i++) {
        int index = 0;
        smg_type type;
        SMG_TRY(find_input(m, inputs[i].name, &index));
        for (int before = 0; before < i; before++)
            if (strcmp(inputs[before].name, inputs[i].name) == 0)
                return smg_fail(m->ctx, SMG_INVALID, "input '%s' is given twice", inputs[i].name);
        type = smg_model_input_node(m, index)->type;
        SMG_TRY(check_tensor(m, &inputs[i], &type));
        m->all[index] = inputs[i];
    }
    return SMG_OK;
}

smg_status smg_model_need_inputs(smg_model *m) {
    for (int i = 0; i < m->input_count; i++) {
        const smg_node *node = smg_model_input_node(m, i);
        smg_fill fill;
        if (m->all[i].data == NULL && m->length_counts[i] == 0 && program_has_input(m, node->name) &&
            !smg_source_default(m->source, node->name, &fill)) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s' is missing", node->name);
        }
    }
    return SMG_OK;
}

/* Memory for an input that nobody gave as an array, at the sizes at hand. */
static smg_status make_input(smg_model *m, const smg_node *node, smg_tensor *out) {
    const smg_graph *g = m->source->graph;
    int64_t count = 1;
    *out = (smg_tensor){.name = node->name, .type = smg_type_word(node->type), .rank = node->rank};
    for (int d = 0; d < node->rank; d++) {
        if (!smg_size_eval(g->sizes, node->dims[d], m->values, &out->dims[d]) ||
            !smg_mul_i64(count, out->dims[d], &count)) {
            return smg_fail(m->ctx, SMG_INVALID, "input '%s': axis %d has no valid size", node->name, d);
        }
    }
    SMG_TRY(smg_memory_grow(m->ctx, &m->scratch,
                            (size_t)(smg_model_room(m, node, count) * smg_type_host_bytes(node->type)) + 1));
    out->data = m->scratch.data;
    return SMG_OK;
}

static smg_lengths lengths_of(const smg_model *m, int index) {
    return (smg_lengths){.rows = m->lengths[index].data, .count = m->length_counts[index]};
}

/* Lengths that were set, or the value of its own that an input has. false: neither. */
static smg_status fill_input(smg_model *m, int index, smg_tensor *io, bool *out_filled) {
    const smg_node *node = smg_model_input_node(m, index);
    smg_fill fill;
    *out_filled = true;
    if (m->length_counts[index] > 0)
        return smg_tensor_set_lengths(m->ctx, m->source->graph, node, lengths_of(m, index), io);
    *out_filled = smg_source_default(m->source, node->name, &fill);
    int64_t count = *out_filled ? smg_tensor_elements(io) : 0;
    for (int64_t i = 0; i < count; i++) smg_tensor_set(io, i, fill == SMG_FILL_ONES ? 1 : 0);
    return SMG_OK;
}

static smg_status write_made(smg_model *m, int index) {
    smg_tensor made;
    bool filled;
    SMG_TRY(make_input(m, smg_model_input_node(m, index), &made));
    SMG_TRY(fill_input(m, index, &made, &filled));
    return filled ? smg_program_write_input(m->program, made.name, made.data, made.rank, made.dims) : SMG_OK;
}

smg_status smg_model_write_inputs(smg_model *m) {
    for (int i = 0; i < m->input_count; i++) {
        const smg_node *node = smg_model_input_node(m, i);
        const void *data = NULL;
        bool used = program_has_input(m, node->name);
        if (m->all[i].data == NULL && used) SMG_TRY(write_made(m, i));
        if (m->all[i].data == NULL) continue;
        SMG_TRY(convert_input(m, node, &m->all[i], &data));
        smg_tensor given = m->all[i];
        if (given.type == NULL) given.type = smg_type_word(node->type);
        if (m->length_counts[i] > 0)
            SMG_TRY(smg_tensor_check_lengths(m->ctx, m->source->graph, node, lengths_of(m, i), &given));
        if (!used) continue;
        SMG_TRY(smg_program_write_input(m->program, node->name, data, m->all[i].rank, m->all[i].dims));
    }
    return SMG_OK;
}

smg_status smg_model_whole_inputs(smg_model *m, smg_arena *arena, smg_tensor **out_inputs, int *out_count) {
    const smg_graph *g = m->source->graph;
    smg_tensor *whole = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)m->input_count + 1);
    if (whole == NULL) return SMG_MEMORY;
    *out_inputs = whole;
    *out_count = 0;
    for (int i = 0; i < m->input_count; i++) {
        const smg_node *node = smg_model_input_node(m, i);
        bool filled = true;
        if (m->all[i].data != NULL) {
            *whole = m->all[i];
            whole->name = node->name;
            if (whole->type == NULL) whole->type = smg_type_word(node->type);
        } else {
            SMG_TRY(smg_tensor_make(m->ctx, g, m->inputs[i], m->values, arena, whole));
            SMG_TRY(fill_input(m, i, whole, &filled));
        }
        whole += filled;
        *out_count += filled;
    }
    return SMG_OK;
}

smg_status smg_model_name_index(smg_model *m, smg_status status) {
    for (int i = 0; status == SMG_INVALID && i < m->input_count; i++) {
        int64_t element = 0;
        if (m->all[i].data == NULL ||
            !smg_tensor_outside(m->source->graph, m->inputs[i], m->values, &m->all[i], &element))
            continue;
        return smg_fail_within(m->ctx, status, "input '%s', element %lld", m->all[i].name, (long long)element);
    }
    return status;
}

#endif
