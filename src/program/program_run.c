/* program_run.c: inputs, one run, outputs. Nothing here allocates: all tables were made with the program. */
#include "program/program_private.h"

smg_status smg_program_find(smg_program *p, smg_buffer_kind kind, const char *name, int *out_buffer) {
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        if (b->kind == kind && strcmp(b->name, name) == 0) {
            *out_buffer = i;
            return SMG_OK;
        }
    }
    smg_text names;
    smg_text_init(&names, p->ctx);
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        if (b->kind == kind) smg_text_addf(&names, "%s%s", names.length > 0 ? ", " : "", b->name);
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
    smg_vk_buffer *memory = NULL;
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    SMG_TRY(smg_passage_upload(&p->passage, b->name, b->storage, memory, place->offset, data, count));
    p->written[buffer] = true;
    return SMG_OK;
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

static smg_status read_times(smg_program *p, double wall) {
    p->seconds = wall;
    if (!p->timestamps) return SMG_OK;
    int count = p->bound->profile ? smg_program_step_count(p) + 1 : 2;
    SMG_TRY(smg_vk_timestamps(p->bound->recording, p->step_seconds, count));
    p->seconds = p->step_seconds[count - 1];
    for (int i = 0; p->bound->profile && i + 1 < count; i++) {
        p->step_seconds[i] = p->step_seconds[i + 1] - p->step_seconds[i];
    }
    return SMG_OK;
}

smg_status smg_program_run(smg_program *p) {
    SMG_TRY(need_bound(p));
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        if (b->kind == SMG_BUFFER_INPUT && !p->written[i]) {
            return smg_fail(p->ctx, SMG_INVALID, "input '%s' was not given since sizes were bound", b->name);
        }
    }
    double start = smg_clock_seconds();
    SMG_TRY(smg_vk_submit(p->bound->recording));
    SMG_TRY(smg_vk_wait(p->bound->recording, 1e-3));
    double wall = smg_clock_seconds() - start;
    SMG_TRY(read_times(p, wall));
    SMG_TRY(smg_program_check_diagnostics(p));
    p->ran = true;
    return SMG_OK;
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
    smg_vk_buffer *memory = NULL;
    const smg_place *place = smg_program_place(p, p->bound, buffer, &memory);
    return smg_passage_download(&p->passage, b->storage, memory, place->offset, data, count);
}
