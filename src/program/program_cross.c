/* program_cross.c: arrays that cross between host and device with a run.
 *
 * Where the host does not see the arena, small inputs and outputs pass through memory that it does see, and their
 * copies are submitted with the run: one submission instead of one for each array, and nothing to wait for in between.
 * Large ones go by themselves. The host's side is placed when sizes are bound, so that a run allocates nothing. */
#include "program/program_private.h"

enum { SMALL = 4 * 1024 * 1024, SIDE_ALIGNMENT = 16 };

static smg_crossing *crossing_of(smg_program *p, smg_buffer_kind kind) {
    return kind == SMG_BUFFER_INPUT ? &p->up : &p->down;
}

static bool crosses(const smg_program *p, const smg_bound *bound, int buffer) {
    smg_vk_buffer *memory = NULL;
    if (bound->given[buffer].memory != NULL) return false;
    const smg_place *place = smg_program_place(p, bound, buffer, &memory);
    return place->bytes <= SMALL && smg_vk_buffer_map(memory) == NULL;
}

/* Where buffers of this kind lie on the host's side; returns the bytes of all of them. */
static int64_t place_side(const smg_program *p, smg_bound *bound, smg_buffer_kind kind) {
    int64_t bytes = 0;
    for (int i = 0; i < p->known_buffers; i++) {
        smg_buffer_kind own = p->bundle->buffers.items[i].kind;
        if ((own == SMG_BUFFER_STATE ? SMG_BUFFER_INPUT : own) != kind) continue;
        bound->sides[i] = crosses(p, bound, i) ? bytes : -1;
        if (bound->sides[i] < 0) continue;
        bytes += (bound->places[i].bytes + SIDE_ALIGNMENT - 1) / SIDE_ALIGNMENT * SIDE_ALIGNMENT;
    }
    return bytes;
}

static smg_status make_side(smg_program *p, smg_bound *bound, smg_buffer_kind kind, const char *label) {
    smg_crossing *c = crossing_of(p, kind);
    int64_t bytes = place_side(p, bound, kind);
    if (bytes == 0) return SMG_OK;
    if (c->copies == NULL) {
        SMG_TRY(smg_vk_recording_begin(p->device, 0, &c->copies));
        SMG_TRY(smg_vk_recording_end(c->copies));
    }
    if (c->memory != NULL && smg_vk_buffer_bytes(c->memory) >= bytes) return SMG_OK;
    smg_vk_buffer_destroy(c->memory);
    c->memory = NULL;
    SMG_TRY(smg_vk_buffer_create(p->device, label, bytes, kind == SMG_BUFFER_INPUT ? SMG_VK_UPLOAD : SMG_VK_READBACK,
                                 &c->memory));
    return SMG_OK;
}

smg_status smg_program_make_crossings(smg_program *p, smg_bound *bound) {
    SMG_TRY(make_side(p, bound, SMG_BUFFER_INPUT, "inputs"));
    return make_side(p, bound, SMG_BUFFER_OUTPUT, "outputs");
}

void smg_program_drop_crossings(smg_program *p) {
    smg_crossing *const both[] = {&p->up, &p->down};
    for (size_t i = 0; i < SMG_COUNT_OF(both); i++) {
        smg_vk_recording_destroy(both[i]->copies);
        smg_vk_buffer_destroy(both[i]->memory);
    }
}

static void forget(const smg_program *p, smg_crossing *c) {
    c->open = false;
    memset(c->marked, 0, (size_t)p->known_buffers * sizeof(*c->marked));
}

void smg_program_forget_crossings(smg_program *p) {
    forget(p, &p->up);
    forget(p, &p->down);
}

static smg_status record(smg_crossing *c, smg_vk_buffer *from, int64_t from_at, smg_vk_buffer *to, int64_t to_at,
                         int64_t bytes) {
    if (!c->open) SMG_TRY(smg_vk_recording_again(c->copies));
    c->open = true;
    smg_vk_record_copy(c->copies, from, from_at, to, to_at, bytes);
    return SMG_OK;
}

smg_status smg_program_cross_up(smg_program *p, int buffer, const void *data, int64_t count) {
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    smg_vk_buffer *memory = NULL;
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    int64_t at = p->bound->sides[buffer];
    SMG_TRY(smg_passage_upload(&p->passage, b->name, b->storage, p->up.memory, at, data, count));
    if (p->up.marked[buffer]) return SMG_OK; /* its copy is recorded */
    p->up.marked[buffer] = true;
    return record(&p->up, p->up.memory, at, memory, place->offset, count * smg_storage_device_bytes(b->storage));
}

/* The outputs that are wanted after the run. recording NULL: as one of their own. */
static smg_status record_down(smg_program *p, smg_vk_recording *recording, const int *wanted, int count) {
    int64_t dims[SMG_BUNDLE_RANK];
    forget(p, &p->down);
    for (int i = 0; i < count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[wanted[i]];
        int64_t at = p->bound->sides[wanted[i]];
        smg_vk_buffer *memory = NULL;
        if (at < 0 || p->down.marked[wanted[i]]) continue;
        const smg_place *place = smg_program_place(p, p->bound, wanted[i], &memory);
        int64_t bytes = smg_program_dims(p, wanted[i], dims) * smg_storage_device_bytes(b->storage);
        p->down.marked[wanted[i]] = true;
        if (recording != NULL)
            smg_vk_record_copy(recording, memory, place->offset, p->down.memory, at, bytes);
        else
            SMG_TRY(record(&p->down, memory, place->offset, p->down.memory, at, bytes));
    }
    return SMG_OK;
}

void smg_program_record_up(smg_program *p, smg_vk_recording *recording) {
    int64_t dims[SMG_BUNDLE_RANK];
    for (int i = 0; i < p->known_buffers; i++) {
        smg_vk_buffer *memory = NULL;
        if (!p->up.marked[i]) continue;
        const smg_place *place = smg_program_place(p, p->bound, i, &memory);
        int64_t bytes = smg_program_dims(p, i, dims) * smg_storage_device_bytes(p->bundle->buffers.items[i].storage);
        smg_vk_record_copy(recording, p->up.memory, p->bound->sides[i], memory, place->offset, bytes);
    }
    smg_vk_record_barrier(recording);
}

void smg_program_record_down(smg_program *p, smg_vk_recording *recording, const int *wanted, int count) {
    smg_vk_record_barrier(recording);
    (void)record_down(p, recording, wanted, count); /* the recording has the status */
}

smg_status smg_program_cross(smg_program *p, const int *wanted, int count, smg_vk_recording **out_before,
                             smg_vk_recording **out_after) {
    SMG_TRY(record_down(p, NULL, wanted, count));
    *out_before = p->up.open ? p->up.copies : NULL;
    *out_after = p->down.open ? p->down.copies : NULL;
    if (*out_before != NULL) SMG_TRY(smg_vk_recording_end(*out_before));
    if (*out_after != NULL) SMG_TRY(smg_vk_recording_end(*out_after));
    forget(p, &p->up);
    return SMG_OK;
}

smg_status smg_program_cross_down(smg_program *p, int buffer, void *data, int64_t count) {
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    return smg_passage_download(&p->passage, b->storage, p->down.memory, p->bound->sides[buffer], data, count);
}
