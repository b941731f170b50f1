/* program_prepare.c: the prepare list: work on constants, once, before the first run.
 *
 * What no run step binds (a weight of which only a repacked copy is read, a value between two prepare
 * steps) is scratch: it gets memory for the batch of steps that needs it and is gone afterwards, so
 * that a program holds each weight once. A batch ends where its scratch would pass a bound and nothing
 * derived in it is still to be read. */
#include "program/program_private.h"

enum { SCRATCH_BYTES = 64 * 1024 * 1024 }; /* where the options say nothing */

void smg_program_mark_scratch(smg_program *p) {
    const smg_bundle *bundle = p->bundle;
    for (int s = 0; s < bundle->prepare.count; s++) {
        const smg_bstep *step = &bundle->prepare.items[s];
        for (int i = 0; i < step->binding_count; i++) {
            p->scratch[step->bindings[i].buffer] = true;
            p->scratch_last[step->bindings[i].buffer] = s;
        }
    }
    const smg_bvariant *run = &bundle->variants.items[0]; /* all run lists read the same constants */
    for (int s = 0; s < run->run.count; s++) {
        const smg_bstep *step = &run->run.items[s];
        for (int i = 0; i < step->binding_count; i++) p->scratch[step->bindings[i].buffer] = false;
    }
    for (int b = 0; b < bundle->buffers.count; b++) /* a stack is read by a run */
        for (int i = 0; i < bundle->buffers.items[b].member_count; i++)
            p->scratch[bundle->buffers.items[b].members[i]] = false;
}

/* Scratch that this binding needs and no earlier binding of the batch (from step `from`) has. */
static bool is_new(const smg_program *p, int from, int step, int binding) {
    const smg_bstep *steps = p->bundle->prepare.items;
    int buffer = steps[step].bindings[binding].buffer;
    if (!p->scratch[buffer]) return false;
    for (int s = from; s <= step; s++) {
        int count = s < step ? steps[s].binding_count : binding;
        for (int i = 0; i < count; i++) {
            if (steps[s].bindings[i].buffer == buffer) return false;
        }
    }
    return true;
}

/* One behind the last step of the batch that begins with `from`. */
static smg_status find_end(smg_program *p, int from, int64_t limit, int *out_end) {
    int64_t total = 0;
    int live = -1; /* last reader of what the batch has derived so far */
    int s = from;
    for (; s < p->bundle->prepare.count; s++) {
        const smg_bstep *step = &p->bundle->prepare.items[s];
        for (int i = 0; i < step->binding_count; i++) {
            int64_t bytes = 0;
            if (!is_new(p, from, s, i)) continue;
            SMG_TRY(smg_program_fixed_bytes(p, step->bindings[i].buffer, &bytes));
            total += bytes;
        }
        if (s > from && total > limit && live < s) break;
        for (int i = 0; i < step->binding_count; i++) {
            int buffer = step->bindings[i].buffer;
            bool derived = step->bindings[i].written && p->scratch[buffer];
            if (derived && p->scratch_last[buffer] > live) live = p->scratch_last[buffer];
        }
    }
    *out_end = s;
    return SMG_OK;
}

static smg_status lay_out(smg_program *p, int from, int end, int *out_chunks) {
    *out_chunks = 0;
    for (int s = from; s < end; s++) {
        const smg_bstep *step = &p->bundle->prepare.items[s];
        for (int i = 0; i < step->binding_count; i++) {
            int buffer = step->bindings[i].buffer;
            if (!is_new(p, from, s, i)) continue;
            smg_place *place = &p->fixed_places[buffer];
            SMG_TRY(smg_program_fixed_bytes(p, buffer, &place->bytes));
            smg_program_pack(p, place, out_chunks);
        }
    }
    return SMG_OK;
}

static smg_status upload_batch(smg_program *p, int from, int end) {
    for (int s = from; s < end; s++) {
        const smg_bstep *step = &p->bundle->prepare.items[s];
        for (int i = 0; i < step->binding_count; i++) {
            if (is_new(p, from, s, i)) {
                SMG_TRY(smg_program_upload_constant(p, step->bindings[i].buffer));
            }
        }
    }
    return SMG_OK;
}

static smg_status run_batch(smg_program *p, int from, int end) {
    int chunks = 0;
    int64_t total = 0;
    SMG_TRY(lay_out(p, from, end, &chunks));
    p->scratch_memory.items = SMG_ARENA_ARRAY(p->arena, smg_vk_buffer *, (size_t)chunks + 1);
    if (p->scratch_memory.items == NULL) return SMG_MEMORY;
    for (int i = 0; i < chunks; i++) {
        SMG_TRY(smg_program_take_memory(p, "prepare", p->chunk_bytes[i], &p->scratch_memory.items[i]));
        p->scratch_memory.count = i + 1;
        total += p->chunk_bytes[i];
    }
    if (total > p->scratch_bytes) p->scratch_bytes = total;
    SMG_TRY(upload_batch(p, from, end));
    smg_vk_recording *recording = NULL;
    SMG_TRY(smg_vk_recording_begin(p->device, 0, &recording));
    smg_status status = smg_program_record_prepare(p, recording, from, end);
    smg_status ended = smg_vk_recording_end(recording);
    if (status == SMG_OK) status = ended;
    if (status == SMG_OK) status = smg_vk_run(recording);
    smg_vk_recording_destroy(recording);
    return status;
}

smg_status smg_program_read_derived(smg_program *p, int buffer, void *data, int64_t bytes) {
    smg_vk_buffer *memory = NULL;
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    int64_t elements = 0;
    smg_size_is_const(p->bundle->sizes, b->elements, &elements);
    int64_t want = elements * smg_storage_device_bytes(b->storage);
    if (b->kind != SMG_BUFFER_DERIVED || p->scratch[buffer] || bytes != want)
        return smg_fail(p->ctx, SMG_INVALID, "'%s' is no derived buffer of %lld bytes that runs read", b->name,
                        (long long)bytes);
    const smg_place *place = smg_program_place(p, NULL, buffer, &memory);
    return smg_vk_download(memory, place->offset, data, bytes);
}

void smg_program_drop_scratch(smg_program *p) {
    for (int i = 0; i < p->scratch_memory.count; i++) {
        smg_program_free_memory(p, &p->scratch_memory.items[i]);
    }
    p->scratch_memory.count = 0;
}

smg_status smg_program_prepare(smg_program *p) {
    const smg_bundle *bundle = p->bundle;
    double start = smg_clock_seconds();
    int64_t limit = p->options.prepare_bytes > 0 ? p->options.prepare_bytes : SCRATCH_BYTES;
    int64_t left = p->options.memory_bytes - p->held_bytes;
    if (p->options.memory_bytes > 0 && left < limit) limit = left;
    for (int from = 0; from < bundle->prepare.count;) {
        int end = from;
        smg_progress(p->ctx, "prepare", (size_t)from, (size_t)bundle->prepare.count, "");
        SMG_TRY(find_end(p, from, limit, &end));
        smg_status status = run_batch(p, from, end);
        smg_program_drop_scratch(p);
        SMG_TRY(status);
        SMG_TRY(smg_program_check_diagnostics(p));
        from = end;
    }
    size_t count = (size_t)bundle->prepare.count;
    if (count > 0) smg_progress(p->ctx, "prepare", count, count, "");
    p->prepare_seconds = smg_clock_seconds() - start;
    return SMG_OK;
}
