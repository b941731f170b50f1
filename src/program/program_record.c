/* program_record.c: the run list as one recording, with barriers only where data flows.
 *
 * Every step's bindings are stretches of memory that it reads or writes. A step that meets a stretch
 * touched since the last barrier, where one of the two writes, gets a barrier in front; then all earlier
 * stretches are settled. Aliased temporaries need no rule of their own: what counts is memory, not
 * names. */
#include "program/program_private.h"

typedef struct hazards {
    smg_range *ranges;
    int count, capacity;
} hazards;

static bool conflicts(const hazards *h, const smg_range *range) {
    for (int i = 0; i < h->count; i++) {
        const smg_range *old = &h->ranges[i];
        if (old->buffer == range->buffer && old->begin < range->end && range->begin < old->end &&
            (old->written || range->written)) {
            return true;
        }
    }
    return false;
}

static int bind_step(smg_program *p, const smg_bound *bound, const smg_bstep *step, smg_range *ranges) {
    int count = step->binding_count;
    for (int i = 0; i < count; i++) {
        smg_vk_buffer *memory = NULL;
        const smg_place *place = smg_program_place(p, bound, step->bindings[i].buffer, &memory);
        p->bindings[i] = (smg_vk_binding){.buffer = memory, .offset = place->offset, .range = place->bytes};
        ranges[i] = (smg_range){memory, place->offset, place->offset + place->bytes, step->bindings[i].written};
    }
    if (step->diagnostics) {
        p->bindings[count] = (smg_vk_binding){.buffer = p->diagnostics, .range = SMG_PROGRAM_DIAGNOSTICS_BYTES};
        ranges[count] = (smg_range){p->diagnostics, 0, SMG_PROGRAM_DIAGNOSTICS_BYTES, true};
        count++;
    }
    return count;
}

/* Sizes and workgroups are recorded. slice NULL: all of it. */
static smg_status dispatch(smg_program *p, smg_vk_recording *recording, const smg_bstep *step, const int64_t *values,
                           const smg_slice *slice, int bindings) {
    uint8_t push[SMG_PROGRAM_MAX_PUSH];
    smg_slice all = {0};
    bool sliced = slice != NULL && slice->sliced;
    if (slice == NULL) {
        SMG_TRY(smg_program_spread_grid(p, step, values, &all.columns, &all.rows));
        slice = &all;
    }
    if (slice->columns == 0) return SMG_OK;
    smg_program_fill_addresses(p, step, push);
    smg_program_fill_sizes(step, values, push);
    const smg_vk_grid grid = {.x = slice->columns, .y = slice->rows, .z = 1, .first_y = slice->row};
    smg_vk_record_grid(recording, smg_program_pipeline(p, step, values, values, sliced), p->bindings, bindings, push,
                       smg_bundle_push_bytes(step), &grid);
    return SMG_OK;
}

/* They are read from memory; only addresses are known yet. */
static void dispatch_from(smg_program *p, smg_vk_recording *recording, const smg_bound *bound, const smg_bstep *step,
                          int position, int bindings) {
    const smg_vk_parameters parameters = smg_program_parameters_of(bound, position);
    smg_program_fill_addresses(p, step, (uint8_t *)smg_vk_buffer_map(parameters.buffer) + parameters.block);
    smg_vk_record_dispatch_from(recording, smg_program_pipeline(p, step, bound->low, bound->high, false), p->bindings,
                                bindings, &parameters);
}

static smg_status record_step(smg_program *p, smg_vk_recording *recording, smg_bound *bound, const smg_bstep *step,
                              int position, const smg_slice *slice, hazards *h) {
    smg_range *ranges = h->ranges + h->count;
    int count = bind_step(p, bound, step, ranges);
    if (smg_bundle_push_bytes(step) > SMG_PROGRAM_MAX_PUSH) {
        return smg_fail(p->ctx, SMG_INTERNAL, "kernel '%s' takes %d addresses and %d sizes", step->name,
                        step->address_count, step->push_count);
    }
    /* Another slice of the step before has its ranges, and nothing to wait for. */
    bool same = slice != NULL && slice->row > 0 && h->count > 0;
    for (int i = 0; i < count && !same; i++) {
        if (!conflicts(h, &ranges[i])) continue;
        smg_vk_record_barrier(recording);
        bound->barriers++;
        memmove(h->ranges, ranges, (size_t)count * sizeof(*ranges));
        h->count = 0;
        break;
    }
    if (!same) h->count += count;
    if (bound->parameters == NULL) return dispatch(p, recording, step, bound->low, slice, count);
    dispatch_from(p, recording, bound, step, position, count);
    return SMG_OK;
}

static smg_status record_list(smg_program *p, smg_bound *bound, smg_vk_recording *recording, const smg_bstep *steps,
                              int count) {
    hazards h = {.ranges = p->ranges, .count = 0, .capacity = p->range_capacity};
    for (int i = 0; i < count; i++) SMG_TRY(record_step(p, recording, bound, &steps[i], i, NULL, &h));
    return SMG_OK;
}

smg_status smg_program_record_steps(smg_program *p, smg_bound *bound, smg_vk_recording *recording) {
    const smg_bstep *steps = p->bundle->variants.items[bound->variant].run.items;
    hazards h = {.ranges = p->ranges, .count = 0, .capacity = p->range_capacity};
    bound->barriers = 0;
    for (int i = 0; i < bound->slice_count; i++) {
        const smg_slice *slice = &bound->slices[i];
        SMG_TRY(record_step(p, recording, bound, &steps[slice->step], slice->step, slice, &h));
    }
    return SMG_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

void smg_program_drop_parts(smg_bound *bound) {
    for (int i = 0; i < bound->recorded; i++) smg_vk_recording_destroy(bound->parts[i]);
    bound->recorded = 0;
}

static smg_status make_room(smg_program *p, smg_bound *bound) {
    size_t size = sizeof(*bound->parts);
    if (bound->part_count <= bound->part_capacity) return SMG_OK;
    void *parts =
        smg_realloc(p->ctx, bound->parts, (size_t)bound->part_capacity * size, (size_t)bound->part_count * size);
    if (parts == NULL) return SMG_MEMORY;
    bound->parts = parts;
    bound->part_capacity = bound->part_count;
    return SMG_OK;
}

/* Slices of one run. */
static smg_status record_slices(smg_program *p, smg_bound *bound, smg_vk_recording *recording, int first, int end,
                                bool stamped) {
    const smg_bstep *steps = p->bundle->variants.items[bound->variant].run.items;
    hazards h = {.ranges = p->ranges, .count = 0, .capacity = p->range_capacity};
    for (int i = first; i < end; i++) {
        const smg_slice *slice = &bound->slices[i];
        SMG_TRY(record_step(p, recording, bound, &steps[slice->step], slice->step, slice, &h));
        if (stamped) smg_vk_record_timestamp(recording, i - first + 1);
    }
    return SMG_OK;
}

/* The same run again and again, each when the one before is over. Steps are stamped in the last one: a device that was
 * idle is on its way by then. */
static smg_status record_runs(smg_program *p, smg_bound *bound, smg_vk_recording *recording, int first, int end) {
    int barriers = bound->barriers;
    for (int i = 0; i < bound->in_row; i++) {
        bool stamped = bound->stamped && i == bound->in_row - 1;
        bound->barriers = barriers; /* of one */
        if (i > 0) smg_vk_record_barrier(recording);
        if (p->timestamps && (stamped || (i == 0 && !bound->stamped))) smg_vk_record_timestamp(recording, 0);
        SMG_TRY(record_slices(p, bound, recording, first, end, stamped));
    }
    if (p->timestamps && !bound->stamped) smg_vk_record_timestamp(recording, 1);
    return SMG_OK;
}

/* The part that begins with this slice; *io_slice: one behind its last. */
static smg_status record_part(smg_program *p, smg_bound *bound, int *io_slice) {
    int first = *io_slice, end = first;
    while (end < bound->slice_count && bound->slices[end].part == bound->recorded) end++;
    int slots = !p->timestamps ? 0 : bound->stamped ? end - first + 1 : 2;
    SMG_TRY(smg_vk_recording_begin(p->device, slots, &bound->parts[bound->recorded]));
    smg_vk_recording *recording = bound->parts[bound->recorded++];
    SMG_TRY(record_runs(p, bound, recording, first, end));
    *io_slice = end;
    return smg_vk_recording_end(recording);
}

smg_status smg_program_record_run(smg_program *p, smg_bound *bound) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    int slice = 0;
    smg_program_drop_parts(bound);
    bound->again = false;
    bound->barriers = 0;
    bool limited = smg_program_is_limited(p);
    bound->stamped = p->timestamps && (bound->profile || limited);
    bool moves = smg_program_moves(p, bound->low, bound->high);
    if (moves && bound->parameters == NULL) SMG_TRY(smg_program_make_parameters(p, bound));
    SMG_TRY(smg_program_plan_slices(p, bound));
    const smg_program_steps needed = {list->run.items, list->run.count, bound->low, bound->high, bound->sliced};
    SMG_TRY(smg_program_make_pipelines(p, &needed, 1));
    SMG_TRY(make_room(p, bound));
    bound->in_row = limited || bound->part_count > 1 ? 1 : bound->runs;
    while (bound->recorded < bound->part_count) SMG_TRY(record_part(p, bound, &slice));
    return SMG_OK;
}

/* Prepare steps bind constants only: no sizes are bound yet. */
smg_status smg_program_record_prepare(smg_program *p, smg_vk_recording *recording, int from, int end) {
    return record_list(p, &p->cache[0], recording, p->bundle->prepare.items + from, end - from);
}
