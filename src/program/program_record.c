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

/* Sizes and workgroups are recorded. */
static smg_status dispatch(smg_program *p, smg_vk_recording *recording, const smg_bstep *step, const int64_t *values,
                           int bindings) {
    uint8_t push[SMG_PROGRAM_MAX_PUSH];
    int64_t grid_x = 0;
    int64_t grid_y = 0;
    SMG_TRY(smg_program_spread_grid(p, step, values, &grid_x, &grid_y));
    if (grid_x == 0) return SMG_OK;
    smg_program_fill_addresses(p, step, push);
    smg_program_fill_sizes(step, values, push);
    smg_vk_record_dispatch(recording, smg_program_pipeline(p, step, values, values), p->bindings, bindings, push,
                           smg_bundle_push_bytes(step), grid_x, grid_y, 1);
    return SMG_OK;
}

/* They are read from memory; only addresses are known yet. */
static void dispatch_from(smg_program *p, smg_vk_recording *recording, const smg_bound *bound, const smg_bstep *step,
                          int position, int bindings) {
    const smg_vk_parameters parameters = smg_program_parameters_of(bound, position);
    smg_program_fill_addresses(p, step, (uint8_t *)smg_vk_buffer_map(parameters.buffer) + parameters.block);
    smg_vk_record_dispatch_from(recording, smg_program_pipeline(p, step, bound->low, bound->high), p->bindings,
                                bindings, &parameters);
}

static smg_status record_step(smg_program *p, smg_vk_recording *recording, smg_bound *bound, const smg_bstep *step,
                              int position, hazards *h) {
    smg_range *ranges = h->ranges + h->count;
    int count = bind_step(p, bound, step, ranges);
    if (smg_bundle_push_bytes(step) > SMG_PROGRAM_MAX_PUSH) {
        return smg_fail(p->ctx, SMG_INTERNAL, "kernel '%s' takes %d addresses and %d sizes", step->name,
                        step->address_count, step->push_count);
    }
    for (int i = 0; i < count; i++) {
        if (!conflicts(h, &ranges[i])) continue;
        smg_vk_record_barrier(recording);
        bound->barriers++;
        memmove(h->ranges, ranges, (size_t)count * sizeof(*ranges));
        h->count = 0;
        break;
    }
    h->count += count;
    if (bound->parameters == NULL) return dispatch(p, recording, step, bound->low, count);
    dispatch_from(p, recording, bound, step, position, count);
    return SMG_OK;
}

static smg_status record_list(smg_program *p, smg_bound *bound, smg_vk_recording *recording, const smg_bstep *steps,
                              int count, bool stamps) {
    hazards h = {.ranges = p->ranges, .count = 0, .capacity = p->range_capacity};
    for (int i = 0; i < count; i++) {
        SMG_TRY(record_step(p, recording, bound, &steps[i], i, &h));
        if (stamps) smg_vk_record_timestamp(recording, i + 1);
    }
    return SMG_OK;
}

smg_status smg_program_record_steps(smg_program *p, smg_bound *bound, smg_vk_recording *recording) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    bound->barriers = 0;
    return record_list(p, bound, recording, list->run.items, list->run.count, false);
}

smg_status smg_program_record_run(smg_program *p, smg_bound *bound) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    int steps = list->run.count;
    int slots = !p->timestamps ? 0 : bound->profile ? steps + 1 : 2;
    bound->barriers = 0;
    const smg_program_steps needed = {list->run.items, steps, bound->low, bound->high};
    SMG_TRY(smg_program_make_pipelines(p, &needed, 1));
    if (smg_program_moves(p, bound->low, bound->high)) SMG_TRY(smg_program_make_parameters(p, bound));
    SMG_TRY(smg_vk_recording_begin(p->device, slots, &bound->recording));
    if (slots > 0) smg_vk_record_timestamp(bound->recording, 0);
    SMG_TRY(record_list(p, bound, bound->recording, list->run.items, steps, slots > 0 && bound->profile));
    if (slots > 0 && !bound->profile) smg_vk_record_timestamp(bound->recording, 1);
    return smg_vk_recording_end(bound->recording);
}

/* Prepare steps bind constants only: no sizes are bound yet. */
smg_status smg_program_record_prepare(smg_program *p, smg_vk_recording *recording, int from, int end) {
    return record_list(p, &p->cache[0], recording, p->bundle->prepare.items + from, end - from, false);
}
