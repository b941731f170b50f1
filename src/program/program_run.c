/* program_run.c: inputs, one run, outputs. Nothing here allocates: all tables were made with the program. */
#include <math.h>

#include "program/program_private.h"

smg_status smg_program_find(smg_program *p, smg_buffer_kind kind, const char *name, int *out_buffer) {
    *out_buffer = smg_bundle_find(p->bundle, kind, name);
    if (*out_buffer >= 0) return SMG_OK;
    smg_text names;
    smg_text_init(&names, p->ctx);
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        bool alike = b->kind == kind || (b->kind == SMG_BUFFER_STATE && kind == SMG_BUFFER_INPUT);
        if (alike) smg_text_addf(&names, "%s%s", names.length > 0 ? ", " : "", b->name);
    }
    smg_status status = smg_fail(p->ctx, SMG_NOT_FOUND, "there is no %s '%s'; there is: %s",
                                 kind == SMG_BUFFER_INPUT ? "input" : "output", name, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

int64_t smg_program_dims(const smg_program *p, int buffer, int64_t out_dims[SMG_BUNDLE_RANK]) {
    if (p->bound == NULL) return 0;
    int64_t count = 1;
    for (int d = 0; d < p->bundle->buffers.items[buffer].rank; d++) {
        out_dims[d] = p->bound->dims[buffer * SMG_BUNDLE_RANK + d];
        count *= out_dims[d];
    }
    return count;
}

static smg_status need_bound(smg_program *p) {
    if (p->bound != NULL) return SMG_OK;
    return smg_fail(p->ctx, SMG_INVALID, "no sizes are bound: call smg_program_bind_sizes first");
}

smg_status smg_program_write_input(smg_program *p, const char *name, const void *data, int rank, const int64_t *dims) {
    int buffer = 0;
    int64_t want[SMG_BUNDLE_RANK] = {0};
    SMG_TRY(need_bound(p));
    SMG_TRY(smg_program_find(p, SMG_BUFFER_INPUT, name, &buffer));
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    int64_t count = smg_program_dims(p, buffer, want);
    if (rank != b->rank) {
        return smg_fail(p->ctx, SMG_INVALID, "input '%s' has %d axes, %d were given", name, b->rank, rank);
    }
    for (int d = 0; d < rank; d++) {
        if (dims[d] != want[d]) {
            return smg_fail(p->ctx, SMG_INVALID, "input '%s': axis %d is %lld, it must be %lld", name, d,
                            (long long)dims[d], (long long)want[d]);
        }
    }
    if (p->in_flight) return smg_fail(p->ctx, SMG_INVALID, "input '%s' is written while a run is in flight", name);
    smg_vk_buffer *memory = NULL;
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    if (p->bound->sides[buffer] >= 0)
        SMG_TRY(smg_program_cross_up(p, buffer, data, count));
    else
        SMG_TRY(smg_passage_upload(&p->passage, b->name, b->storage, memory, place->offset, data, count));
    p->written[buffer] = true;
    return SMG_OK;
}

bool smg_program_has_input(const smg_program *p, int buffer) {
    return p->bound != NULL && p->written[buffer];
}

smg_status smg_program_check_diagnostics(smg_program *p) {
    if (p->diagnostics == NULL) return SMG_OK;
    int32_t *words = smg_vk_buffer_map(p->diagnostics);
    if (words == NULL) return smg_fail(p->ctx, SMG_INTERNAL, "the diagnostics buffer is not mapped");
    if (words[0] == 0) return SMG_OK;
    int32_t index = words[1];
    int32_t limit = words[2];
    memset(words, 0, SMG_PROGRAM_DIAGNOSTICS_BYTES);
    return smg_fail(p->ctx, SMG_INVALID, "index %d outside its table [0, %d)", index, limit);
}

/* Of one part, which begins with this slice; *io_slice: one behind its last. */
static smg_status read_part(smg_program *p, smg_bound *bound, int part, int *io_slice) {
    int first = *io_slice;
    while (*io_slice < bound->slice_count && bound->slices[*io_slice].part == part) ++*io_slice;
    int stamps = bound->stamped ? *io_slice - first + 1 : 2;
    SMG_TRY(smg_vk_timestamps(bound->parts[part], bound->times, stamps));
    p->seconds += bound->times[stamps - 1];
    for (int i = first; bound->stamped && i < *io_slice; i++) {
        bound->slices[i].seconds = bound->times[i - first + 1] - bound->times[i - first];
        p->step_seconds[bound->slices[i].step] += bound->slices[i].seconds;
    }
    return SMG_OK;
}

static smg_status read_times(smg_program *p, double wall) {
    smg_bound *bound = p->bound;
    int slice = 0;
    p->seconds = wall / bound->in_row;
    if (!p->timestamps) return SMG_OK;
    p->seconds = 0;
    memset(p->step_seconds, 0, (size_t)smg_program_step_count(p) * sizeof(*p->step_seconds));
    for (int i = 0; i < bound->part_count; i++) SMG_TRY(read_part(p, bound, i, &slice));
    if (!bound->stamped) p->seconds /= bound->in_row;
    smg_program_learn(p, bound);
    return SMG_OK;
}

smg_program_pieces smg_program_pieces_of(const smg_program *p) {
    smg_program_pieces pieces = {0};
    const smg_bound *bound = p->bound;
    if (bound == NULL) return pieces;
    pieces = (smg_program_pieces){.dispatches = bound->slice_count, .submissions = bound->part_count};
    double part = 0;
    for (int i = 0; p->ran && bound->stamped && i < bound->slice_count; i++) {
        const smg_slice *s = &bound->slices[i];
        part = i > 0 && s[-1].part == s->part ? part + s->seconds : s->seconds;
        if (s->seconds > pieces.dispatch_seconds) pieces.dispatch_seconds = s->seconds;
        if (part > pieces.submission_seconds) pieces.submission_seconds = part;
    }
    return pieces;
}

static smg_status check_ready(smg_program *p) {
    SMG_TRY(need_bound(p));
    if (p->in_flight) return smg_fail(p->ctx, SMG_INVALID, "a run is in flight already");
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        bool taken = b->kind == SMG_BUFFER_INPUT || b->kind == SMG_BUFFER_STATE;
        if (taken && !p->written[i]) {
            return smg_fail(p->ctx, SMG_INVALID, "input '%s' was not given since sizes were bound", b->name);
        }
    }
    return SMG_OK;
}

static smg_status submit_part(smg_program *p, int part, smg_vk_recording *before, const struct smg_vulkan_sync *sync) {
    const smg_bound *bound = p->bound;
    p->at_part = part;
    return smg_vk_submit_with(bound->parts[part], before, part + 1 == bound->part_count ? p->last : NULL, sync);
}

smg_status smg_program_submit(smg_program *p, const int *wanted, int count, const struct smg_vulkan_sync *sync) {
    smg_vk_recording *before = NULL;
    SMG_TRY(check_ready(p));
    if (p->bound->part_count > 1 && smg_vk_sync_signals(sync))
        return smg_fail(p->ctx, SMG_UNSUPPORTED, "a run in %d submissions signals no points", p->bound->part_count);
    p->submitted = smg_clock_seconds();
    p->ran = p->cancelled = false;
    smg_status status = smg_program_cross(p, wanted, count, &before, &p->last);
    if (status == SMG_OK) status = submit_part(p, 0, before, sync);
    p->in_flight = status == SMG_OK;
    if (status != SMG_OK) p->bound = NULL; /* what was to cross is gone: inputs are written again */
    return status;
}

/* Until there is nothing to submit any more, or no time. */
static smg_status wait_parts(smg_program *p, double spin_seconds, double seconds, bool *out_done) {
    double start = smg_clock_seconds();
    for (;;) {
        double left = seconds - (smg_clock_seconds() - start);
        SMG_TRY(smg_vk_wait_for(p->bound->parts[p->at_part], spin_seconds, left > 0 ? left : 0, out_done));
        if (!*out_done || p->cancelled || p->at_part + 1 == p->bound->part_count) return SMG_OK;
        SMG_TRY(submit_part(p, p->at_part + 1, NULL, NULL));
        *out_done = false;
        if (seconds <= 0) return SMG_OK;
    }
}

smg_status smg_program_wait(smg_program *p, double spin_seconds, double seconds, bool *out_done) {
    *out_done = true;
    if (!p->in_flight) return SMG_OK;
    if (p->outside != NULL) {
        *out_done = false;
        return smg_fail(p->ctx, SMG_INVALID,
                        "the run is in a command buffer of the application's, which knows its end");
    }
    smg_status status = wait_parts(p, spin_seconds, seconds, out_done);
    if (status == SMG_OK && !*out_done) return SMG_OK;
    *out_done = true;
    p->in_flight = false;
    SMG_TRY(status);
    if (p->cancelled) {
        p->bound = NULL;
        (void)smg_program_check_diagnostics(p);
        smg_context_clear_error(p->ctx);
        return smg_fail(p->ctx, SMG_CANCELLED, "the run was taken back");
    }
    SMG_TRY(read_times(p, smg_clock_seconds() - p->submitted));
    SMG_TRY(smg_program_check_diagnostics(p));
    p->ran = true;
    return SMG_OK;
}

void smg_program_cancel(smg_program *p, bool *out_taken) {
    *out_taken = p->cancelled && p->in_flight;
    if (!p->in_flight || p->outside != NULL || *out_taken) return;
    smg_program_empty_counts(p->bound);
    *out_taken = p->bound->parameters != NULL || p->at_part + 1 < p->bound->part_count;
    p->cancelled = *out_taken;
}

/* ---- in another's command buffer -------------------------------------------------------------------- */

smg_status smg_program_record_in(smg_program *p, const void *commands, const int *wanted, int count) {
    SMG_TRY(check_ready(p));
    p->ran = false;
    SMG_TRY(smg_vk_recording_begin_in(p->device, commands, &p->outside));
    smg_program_record_up(p, p->outside);
    smg_status status = smg_program_record_steps(p, p->bound, p->outside);
    smg_program_record_states(p, p->outside);
    smg_program_record_down(p, p->outside, wanted, count);
    smg_status ended = smg_vk_recording_end(p->outside);
    if (status == SMG_OK) status = ended;
    if (status == SMG_OK) {
        p->in_flight = true;
        return SMG_OK;
    }
    smg_vk_recording_destroy(p->outside);
    p->outside = NULL;
    p->bound = NULL;
    return status;
}

bool smg_program_is_outside(const smg_program *p) {
    return p->outside != NULL;
}

smg_status smg_program_over(smg_program *p, bool ran) {
    smg_vk_recording_destroy(p->outside);
    p->outside = NULL;
    p->in_flight = false;
    if (ran) SMG_TRY(smg_program_check_diagnostics(p));
    p->ran = ran;
    return SMG_OK;
}

smg_status smg_program_run(smg_program *p) {
    bool done = false;
    SMG_TRY(smg_program_submit(p, NULL, 0, NULL));
    return smg_program_wait(p, 1e-3, HUGE_VAL, &done);
}

smg_status smg_program_read_output(smg_program *p, const char *name, void *data, int64_t bytes) {
    int buffer = 0;
    int64_t dims[SMG_BUNDLE_RANK] = {0};
    SMG_TRY(need_bound(p));
    SMG_TRY(smg_program_find(p, SMG_BUFFER_OUTPUT, name, &buffer));
    if (!p->ran) return smg_fail(p->ctx, SMG_INVALID, "output '%s' was read before a run", name);
    const smg_bbuffer *b = &p->bundle->buffers.items[buffer];
    int64_t count = smg_program_dims(p, buffer, dims);
    int64_t want = count * smg_storage_host_bytes(b->storage);
    if (bytes != want) {
        return smg_fail(p->ctx, SMG_INVALID, "output '%s' takes %lld bytes, %lld were given", name, (long long)want,
                        (long long)bytes);
    }
    if (p->down.marked[buffer]) return smg_program_cross_down(p, buffer, data, count);
    smg_vk_buffer *memory = NULL;
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    return smg_passage_download(&p->passage, b->storage, memory, place->offset, data, count);
}
