/* program_state.c: what a run leaves for the next one.
 *
 * A state has two halves of memory: a run reads the one and writes the other, and when all of it went well they change
 * places. So a run that failed or was taken back leaves the state as it was, no kernel writes what another
 * reads, and no order of kernels has to be kept. Recordings name their memory, so that there are two for the same
 * sizes, of which each is submitted every other time; they are found as those with memory that was given are
 * (program_bind.c). The halves are not of the arena, and nothing else lies in them. */
#include "program/program_private.h"

smg_status smg_program_make_states(smg_program *p) {
    int count = 0;
    for (int i = 0; i < p->bundle->buffers.count; i++) count += p->bundle->buffers.items[i].kind == SMG_BUFFER_STATE;
    p->states = SMG_ARENA_ARRAY(p->arena, smg_state, (size_t)count + 1);
    if (p->states == NULL) return SMG_MEMORY;
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        if (b->kind == SMG_BUFFER_STATE)
            p->states[p->state_count++] = (smg_state){.name = b->name, .buffer = i, .next = b->next};
    }
    return SMG_OK;
}

void smg_program_drop_states(smg_program *p) {
    for (int i = 0; i < p->state_count; i++)
        for (int half = 0; half < 2; half++) smg_vk_buffer_destroy(p->states[i].memory[half]);
}

static smg_state *find_state(const smg_program *p, int buffer) {
    for (int i = 0; i < p->state_count; i++)
        if (p->states[i].buffer == buffer) return &p->states[i];
    return NULL;
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static smg_status make_half(smg_program *p, smg_state *s, int half, int64_t bytes) {
    if (s->memory[half] != NULL && smg_vk_buffer_bytes(s->memory[half]) >= bytes) return SMG_OK;
    smg_program_free_memory(p, &s->memory[half]);
    smg_status status = smg_program_take_memory(p, "state", bytes, &s->memory[half]);
    return status == SMG_OK ? SMG_OK : smg_fail_within(p->ctx, status, "state '%s'", s->name);
}

static void give_half(smg_program *p, int buffer, smg_vk_buffer *memory) {
    const smg_given half = {.memory = memory, .bytes = smg_vk_buffer_bytes(memory)};
    p->given[buffer] = half;
    p->given[buffer].id = smg_vk_buffer_id(memory);
}

static void print_dims(const smg_program *p, const smg_state *s, const int64_t *dims, smg_text *text) {
    smg_text_add(text, "[");
    for (int d = 0; d < p->bundle->buffers.items[s->buffer].rank; d++)
        smg_text_addf(text, "%s%lld", d > 0 ? ", " : "", (long long)dims[d]);
    smg_text_add(text, "]");
}

/* What the last run left is of the sizes that it had. */
static smg_status check_dims(smg_program *p, const smg_state *s, const int64_t *dims) {
    size_t rank = (size_t)p->bundle->buffers.items[s->buffer].rank;
    if (s->lost)
        return smg_fail(p->ctx, SMG_INVALID,
                        "state '%s' was lost with the device: it is to be reset, or given with the run", s->name);
    if (!s->begun || memcmp(s->dims, dims, rank * sizeof(*dims)) == 0) return SMG_OK;
    smg_text had, wants;
    smg_text_init(&had, p->ctx);
    smg_text_init(&wants, p->ctx);
    print_dims(p, s, s->dims, &had);
    print_dims(p, s, dims, &wants);
    smg_status status = smg_fail(p->ctx, SMG_INVALID,
                                 "state '%s' is %s from the run before, and %s at these sizes: it is to be reset, or "
                                 "given with the run",
                                 s->name, smg_text_cstr(&had), smg_text_cstr(&wants));
    smg_text_free(&had);
    smg_text_free(&wants);
    return status;
}

static smg_status eval_dims(smg_program *p, const smg_state *s, const int64_t *values, int64_t *out_dims) {
    const smg_bbuffer *b = &p->bundle->buffers.items[s->buffer];
    for (int d = 0; d < b->rank; d++)
        if (!smg_size_eval(p->bundle->sizes, b->dims[d], values, &out_dims[d]))
            return smg_fail(p->ctx, SMG_INVALID, "'%s': axis %d has no valid size", b->name, d);
    return SMG_OK;
}

/* Of the half that runs read: what they left there, or zeros. */
static smg_status make_first(smg_program *p, smg_state *s, int64_t bytes) {
    int first = s->first;
    bool there = s->memory[first] != NULL && smg_vk_buffer_bytes(s->memory[first]) >= bytes;
    if (s->begun || (there && s->zeroed)) return SMG_OK;
    s->zeroed = false;
    SMG_TRY(make_half(p, s, first, bytes));
    SMG_TRY(smg_vk_fill(s->memory[first], 0, smg_vk_buffer_bytes(s->memory[first]), 0));
    s->zeroed = true;
    return SMG_OK;
}

static bool is_half(const smg_state *s, const smg_vk_buffer *memory) {
    return memory == NULL || memory == s->memory[0] || memory == s->memory[1];
}

static smg_status place_state(smg_program *p, smg_state *s, const int64_t *values) {
    int64_t bytes = 0, dims[SMG_BUNDLE_RANK] = {0};
    bool own = is_half(s, p->given[s->buffer].memory);
    s->goes_back = false;
    SMG_TRY(smg_program_bytes_at(p, s->buffer, values, &bytes));
    SMG_TRY(eval_dims(p, s, values, dims));
    if (own) p->given[s->buffer] = (smg_given){0}; /* in the arena, as inputs are, where the run is given it */
    if (own && !s->is_given) {
        SMG_TRY(check_dims(p, s, dims));
        SMG_TRY(make_first(p, s, bytes));
        give_half(p, s->buffer, s->memory[s->first]);
    }
    SMG_TRY(make_half(p, s, 1 - s->first, bytes));
    give_half(p, s->next, s->memory[1 - s->first]);
    memcpy(s->next_dims, dims, sizeof(dims));
    return SMG_OK;
}

smg_status smg_program_place_states(smg_program *p, const int64_t *values) {
    for (int i = 0; i < p->state_count; i++) SMG_TRY(place_state(p, &p->states[i], values));
    p->turned = false;
    return SMG_OK;
}

/* ---- runs ------------------------------------------------------------------------------------------- */

void smg_program_keep_states(smg_program *p) {
    for (int i = 0; i < p->state_count && !p->turned; i++) {
        smg_state *s = &p->states[i];
        if (!s->goes_back) s->first = 1 - s->first;
        s->begun = true;
        s->zeroed = s->lost = s->is_given = s->goes_back = false;
        memcpy(s->dims, s->next_dims, sizeof(s->dims));
    }
    p->turned = p->state_count > 0;
}

/* Commands of the application's may run several times: each run is to find what the one before it left. */
void smg_program_record_states(smg_program *p, smg_vk_recording *recording) {
    bool any = false;
    int64_t dims[SMG_BUNDLE_RANK];
    for (int i = 0; i < p->state_count; i++) {
        smg_state *s = &p->states[i];
        smg_vk_buffer *from = s->memory[1 - s->first], *to = s->memory[s->first];
        s->goes_back = to != NULL && p->bound->given[s->buffer].memory == to;
        if (!s->goes_back) continue;
        if (!any) smg_vk_record_barrier(recording);
        any = true;
        int64_t each = smg_storage_device_bytes(p->bundle->buffers.items[s->next].storage);
        smg_vk_record_copy(recording, from, 0, to, 0, smg_program_dims(p, s->next, dims) * each);
    }
}

/* ---- beginning anew --------------------------------------------------------------------------------- */

void smg_program_begin_with(smg_program *p, int buffer) {
    smg_state *s = find_state(p, buffer);
    if (s != NULL) s->is_given = true;
}

void smg_program_forget_given(smg_program *p, int buffer) {
    smg_state *s = find_state(p, buffer);
    if (s != NULL) s->is_given = false;
}

smg_status smg_program_reset_state(smg_program *p, int buffer) {
    smg_state *s = find_state(p, buffer);
    if (s == NULL) return SMG_OK; /* no kernel reads it */
    if (p->in_flight) return smg_fail(p->ctx, SMG_INVALID, "state '%s' is reset while a run is in flight", s->name);
    s->begun = s->zeroed = s->lost = false;
    p->turned = true;
    return SMG_OK;
}

bool smg_program_has_begun(const smg_program *p) {
    bool begun = false;
    for (int i = 0; i < p->state_count; i++) begun = begun || p->states[i].begun || p->states[i].lost;
    return begun;
}

void smg_program_lose_states(smg_program *p) {
    for (int i = 0; i < p->state_count; i++) p->states[i].lost = true;
}

int64_t smg_program_state_bytes(const smg_program *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->state_count; i++)
        for (int half = 0; half < 2; half++)
            if (p->states[i].memory[half] != NULL) bytes += smg_vk_buffer_bytes(p->states[i].memory[half]);
    return bytes;
}
