/* program_memory.c: device memory of a program.
 *
 * Constants that runs read, and what the prepare list derives for them, lie one behind the other in a few
 * buffers, none larger than one binding may reach, and stay for ever. Inputs, outputs and temporaries share the
 * arena: its plan belongs to one tuple of sizes, or to the largest of a range; its memory to the program, and only
 * grows. */
#include "program/program_private.h"

static int64_t aligned(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

static int64_t chunk_limit(const smg_program *p) {
    return smg_target_largest_buffer(p->target);
}

/* The most bytes of a buffer on the device at these sizes, checked against one binding. */
static smg_status buffer_bytes(smg_program *p, const smg_bbuffer *b, const int64_t *low, const int64_t *high,
                               int64_t *out_bytes) {
    int64_t least = 0;
    int64_t elements = 0;
    int64_t bytes = 0;
    smg_size_between(p->bundle->sizes, b->elements, low, high, &least, &elements);
    if (elements < 0 || !smg_mul_i64(elements, smg_storage_device_bytes(b->storage), &bytes) ||
        bytes > INT64_MAX - 16) {
        return smg_fail(p->ctx, SMG_INVALID, "'%s' has too many elements at these sizes", b->name);
    }
    bytes = aligned(bytes > 0 ? bytes : 4, 16);
    if (bytes > chunk_limit(p)) {
        return smg_fail(p->ctx, SMG_NO_FIT, "'%s' takes %lld bytes, and %s binds at most %lld", b->name,
                        (long long)bytes, p->target->name, (long long)chunk_limit(p));
    }
    *out_bytes = bytes;
    return SMG_OK;
}

smg_status smg_program_take_memory(smg_program *p, const char *label, int64_t bytes, smg_vk_buffer **out_memory) {
    int64_t most = p->options.memory_bytes;
    *out_memory = NULL;
    if (most > 0 && bytes > most - p->held_bytes)
        return smg_fail(p->ctx, SMG_DEVICE_MEMORY,
                        "%lld bytes of '%s' are needed beside %lld; the model's memory is to be at most %lld",
                        (long long)bytes, label, (long long)p->held_bytes, (long long)most);
    SMG_TRY(smg_vk_buffer_create(p->device, label, bytes, SMG_VK_DEVICE, out_memory));
    p->held_bytes += bytes;
    return SMG_OK;
}

void smg_program_free_memory(smg_program *p, smg_vk_buffer **io_memory) {
    if (*io_memory != NULL) p->held_bytes -= smg_vk_buffer_bytes(*io_memory);
    smg_vk_buffer_destroy(*io_memory);
    *io_memory = NULL;
}

static bool is_fixed(const smg_bbuffer *b) {
    return b->kind == SMG_BUFFER_CONSTANT || b->kind == SMG_BUFFER_DERIVED || b->kind == SMG_BUFFER_STACK;
}

smg_status smg_program_fixed_bytes(smg_program *p, int buffer, int64_t *out_bytes) {
    return buffer_bytes(p, &p->bundle->buffers.items[buffer], NULL, NULL, out_bytes);
}

smg_status smg_program_bytes_at(smg_program *p, int buffer, const int64_t *values, int64_t *out_bytes) {
    return buffer_bytes(p, &p->bundle->buffers.items[buffer], values, values, out_bytes);
}

/* First fit. */
void smg_program_pack(smg_program *p, smg_place *place, int *io_chunks) {
    int chunk = 0;
    int64_t offset = 0;
    for (; chunk < *io_chunks; chunk++) {
        offset = aligned(p->chunk_bytes[chunk], p->target->buffer_alignment);
        if (offset <= chunk_limit(p) - place->bytes) break;
    }
    if (chunk == *io_chunks) {
        *io_chunks = chunk + 1;
        offset = 0;
    }
    place->chunk = chunk;
    place->offset = offset;
    p->chunk_bytes[chunk] = offset + place->bytes;
}

/* A stack, and its members where it has them. */
static smg_status place_stack(smg_program *p, int stack, int *io_chunks) {
    const smg_bbuffer *b = &p->bundle->buffers.items[stack];
    smg_place *place = &p->fixed_places[stack];
    SMG_TRY(smg_program_fixed_bytes(p, stack, &place->bytes));
    smg_program_pack(p, place, io_chunks);
    for (int i = 0; i < b->member_count; i++) {
        int64_t begin = i * b->stride * smg_storage_device_bytes(b->storage);
        smg_place *member = &p->fixed_places[b->members[i]];
        *member = (smg_place){.chunk = place->chunk, .offset = place->offset + begin};
        SMG_TRY(smg_program_fixed_bytes(p, b->members[i], &member->bytes));
    }
    return SMG_OK;
}

/* Stacks, then constants in order; fixed_places and the chunks' sizes. */
static smg_status lay_out_constants(smg_program *p, int *out_chunks) {
    *out_chunks = 0;
    for (int i = 0; i < p->bundle->buffers.count; i++)
        if (p->bundle->buffers.items[i].kind == SMG_BUFFER_STACK) SMG_TRY(place_stack(p, i, out_chunks));
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        if (!is_fixed(b) || p->scratch[i] || b->kind == SMG_BUFFER_STACK) continue;
        smg_place *place = &p->fixed_places[i];
        bool placed = place->bytes > 0;
        SMG_TRY(smg_program_fixed_bytes(p, i, &place->bytes));
        int64_t *total = b->kind == SMG_BUFFER_CONSTANT ? &p->constant_bytes : &p->derived_bytes;
        *total += place->bytes;
        if (!placed) smg_program_pack(p, place, out_chunks);
    }
    return SMG_OK;
}

/* Of a file, which has it as it lies on the device. */
static smg_status upload_from_file(smg_program *p, const smg_bbuffer *b, smg_vk_buffer *memory, int64_t offset,
                                   int64_t bytes) {
    enum { PIECE = 256 * SMG_HASH_BLOCK }; /* of what is fetched */
    uint64_t hash = 0;
    for (int64_t at = 0, piece = bytes; at < bytes; at += piece) {
        const void *data = b->data;
        if (data == NULL) {
            piece = bytes - at < PIECE ? bytes - at : PIECE;
            SMG_TRY(p->options.fetch(p->options.file, b->source, at, (size_t)piece, &data));
        }
        SMG_TRY(smg_vk_upload_hashed(memory, offset + at, data, piece, at / SMG_HASH_BLOCK, &hash));
    }
    return p->options.arrived(p->options.file, b->source, b->name, hash);
}

smg_status smg_program_upload_constant(smg_program *p, int buffer) {
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    smg_vk_buffer *memory = NULL;
    int64_t elements = 0;
    if (b->kind != SMG_BUFFER_CONSTANT) return SMG_OK;
    smg_size_is_const(p->bundle->sizes, b->elements, &elements);
    const int64_t bytes = elements * smg_storage_host_bytes(b->storage);
    const bool in_file = b->source >= 0 && p->options.arrived != NULL;
    const smg_place *place = smg_program_place(p, NULL, buffer, &memory);
    if (b->data == NULL && !in_file)
        return smg_fail(p->ctx, SMG_INTERNAL, "constant '%s' has no data, and there is nobody to ask", b->name);
    if (in_file)
        SMG_TRY(upload_from_file(p, b, memory, place->offset, bytes));
    else
        SMG_TRY(smg_passage_upload(&p->passage, b->name, b->storage, memory, place->offset, b->data, elements));
    if (p->options.uploaded != NULL && b->data != NULL) p->options.uploaded(p->options.user, b->data, (size_t)bytes);
    return SMG_OK;
}

smg_status smg_program_place_constants(smg_program *p) {
    int chunks = 0;
    SMG_TRY(lay_out_constants(p, &chunks));
    p->fixed.items = SMG_ARENA_ARRAY(p->arena, smg_vk_buffer *, (size_t)chunks + 1);
    if (p->fixed.items == NULL) return SMG_MEMORY;
    for (int i = 0; i < chunks; i++) {
        SMG_TRY(smg_program_take_memory(p, "constants", p->chunk_bytes[i], &p->fixed.items[i]));
        p->fixed.count = i + 1;
    }
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        if (!p->scratch[i]) SMG_TRY(smg_program_upload_constant(p, i));
    }
    return SMG_OK;
}

/* Chunks that are too small are replaced: every cached recording names the old ones and goes. */
static smg_status grow_memory(smg_program *p, int chunks) {
    bool enough = chunks <= p->memory.count;
    for (int i = 0; enough && i < chunks; i++) {
        enough = smg_vk_buffer_bytes(p->memory.items[i]) >= p->chunk_most[i];
    }
    if (enough) return SMG_OK;
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) smg_bound_drop(p, &p->cache[i]);
    for (int i = 0; i < chunks; i++) {
        int64_t bytes = p->chunk_most[i];
        if (i < p->memory.count && smg_vk_buffer_bytes(p->memory.items[i]) >= bytes) continue;
        smg_program_free_memory(p, &p->memory.items[i]);
        if (p->memory.count <= i) p->memory.count = i + 1;
        smg_status status = smg_program_take_memory(p, "arena", bytes, &p->memory.items[i]);
        if (status != SMG_OK) {
            /* Nothing smaller is kept: the next bind starts anew. */
            for (int j = 0; j < p->memory.count; j++) smg_program_free_memory(p, &p->memory.items[j]);
            p->memory.count = 0;
            return smg_fail_within(p->ctx, status, "arena of %lld bytes", (long long)bytes);
        }
    }
    return SMG_OK;
}

static smg_status measure(smg_program *p, smg_bound *bound, int *out_slots) {
    const smg_bundle *bundle = p->bundle;
    int count = 0;
    bound->unaliased_bytes = 0;
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        bool temporary = b->kind == SMG_BUFFER_TEMPORARY;
        if (is_fixed(b) || (temporary && b->variant != bound->variant)) continue;
        smg_arena_slot *slot = &p->slots[count];
        smg_status status = buffer_bytes(p, b, bound->low, bound->high, &slot->bytes);
        if (status == SMG_NO_FIT && temporary) p->oversized = bound->variant;
        SMG_TRY(status);
        const smg_given *given = &bound->given[i];
        if (given->memory != NULL) { /* of a range's smaller sizes there may be less */
            int64_t bytes = slot->bytes < given->bytes ? slot->bytes : given->bytes;
            bound->places[i] = (smg_place){.offset = given->offset, .bytes = bytes};
            continue;
        }
        slot->first = temporary ? b->first : -1;
        slot->last = temporary ? b->last : bundle->variants.items[bound->variant].run.count;
        p->slot_buffer[count++] = i;
        bound->unaliased_bytes += slot->bytes;
    }
    *out_slots = count;
    return SMG_OK;
}

/* Places in chunks of which each is as large as p->chunk_most says or becomes so. */
static smg_status place_bound(smg_program *p, smg_bound *bound, int *io_chunks) {
    int count = 0;
    int chunks = 0;
    SMG_TRY(measure(p, bound, &count));
    if (!smg_program_plan_arena(p->slots, count, p->target->buffer_alignment, chunk_limit(p), p->order, p->placed,
                                p->chunk_bytes, &chunks)) {
        return smg_fail(p->ctx, SMG_INTERNAL, "a buffer passed its check and does not fit a chunk");
    }
    for (int i = 0; i < chunks; i++) {
        if (i >= *io_chunks || p->chunk_bytes[i] > p->chunk_most[i]) p->chunk_most[i] = p->chunk_bytes[i];
    }
    if (chunks > *io_chunks) *io_chunks = chunks;
    for (int i = 0; i < count; i++) {
        smg_place *place = &bound->places[p->slot_buffer[i]];
        place->chunk = p->slots[i].chunk;
        place->offset = p->slots[i].offset;
        place->bytes = p->slots[i].bytes;
    }
    return SMG_OK;
}

smg_status smg_program_place_bounds(smg_program *p, smg_bound *const *bounds, int count) {
    int chunks = 0;
    for (int i = 0; i < count; i++) SMG_TRY(place_bound(p, bounds[i], &chunks));
    return grow_memory(p, chunks);
}

const smg_place *smg_program_place(const smg_program *p, const smg_bound *bound, int buffer,
                                   smg_vk_buffer **out_memory) {
    bool fixed = is_fixed(&p->bundle->buffers.items[buffer]);
    const smg_place *place = fixed ? &p->fixed_places[buffer] : &bound->places[buffer];
    if (!fixed && bound->given[buffer].memory != NULL) {
        *out_memory = bound->given[buffer].memory;
        return place;
    }
    const smg_vk_buffer_list *list = !fixed ? &p->memory : p->scratch[buffer] ? &p->scratch_memory : &p->fixed;
    *out_memory = list->items[place->chunk];
    return place;
}

smg_status smg_program_poison(smg_program *p) {
    for (int i = 0; i < p->memory.count; i++) {
        smg_vk_buffer *memory = p->memory.items[i];
        if (memory != NULL) SMG_TRY(smg_vk_fill(memory, 0, smg_vk_buffer_bytes(memory) / 4 * 4, UINT32_MAX));
    }
    return SMG_OK;
}
