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

/* Spreads a linear number of workgroups over x and y; kernels number them linearly again. */
static smg_status spread_grid(smg_program *p, const smg_bstep *step, const int64_t *values, int64_t *out_x,
                              int64_t *out_y) {
    int64_t total = 1;
    for (int i = 0; i < step->grid_count; i++) {
        int64_t extent = 0;
        bool fine = smg_size_eval(p->bundle->sizes, step->grid_extent[i], values, &extent) && extent >= 0;
        int64_t tiles = fine ? extent / step->grid_tile[i] + (extent % step->grid_tile[i] != 0) : 0;
        if (!fine || !smg_mul_i64(total, tiles, &total)) {
            return smg_fail(p->ctx, SMG_INVALID, "kernel '%s' has too many workgroups", step->name);
        }
    }
    int64_t limit = p->target->max_grid_x;
    int64_t rows = total / limit + (total % limit != 0);
    if (rows > p->target->max_grid_y) {
        return smg_fail(p->ctx, SMG_NO_FIT, "kernel '%s' has %lld workgroups, %s takes %lld x %lld", step->name,
                        (long long)total, p->target->name, (long long)limit, (long long)p->target->max_grid_y);
    }
    if (rows < 1) rows = 1;
    *out_y = rows;
    *out_x = total / rows + (total % rows != 0);
    return SMG_OK;
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

enum { MAX_PUSH = 256 };

/* Addresses of bindings, then sizes: the layout of the step's push constants. Buffers are bound already. */
static smg_status fill_push(smg_program *p, const smg_bound *bound, const smg_bstep *step, uint8_t *push) {
    if (smg_bundle_push_bytes(step) > MAX_PUSH) {
        return smg_fail(p->ctx, SMG_INTERNAL, "kernel '%s' takes %d addresses and %d sizes", step->name,
                        step->address_count, step->push_count);
    }
    for (int i = 0; i < step->address_count; i++) {
        const smg_vk_binding *binding = &p->bindings[step->address_bindings[i]];
        uint64_t address = smg_vk_buffer_address(binding->buffer) + (uint64_t)binding->offset;
        memcpy(push + 8 * (size_t)i, &address, sizeof(address));
    }
    for (int i = 0; i < step->push_count; i++) {
        int32_t value = (int32_t)bound->values[step->push_symbols[i]];
        memcpy(push + 8 * (size_t)step->address_count + 4 * (size_t)i, &value, sizeof(value));
    }
    return SMG_OK;
}

static smg_status record_step(smg_program *p, smg_vk_recording *recording, smg_bound *bound, const smg_bstep *step,
                              hazards *h) {
    uint8_t push[MAX_PUSH];
    int64_t grid_x = 0;
    int64_t grid_y = 0;
    SMG_TRY(spread_grid(p, step, bound->values, &grid_x, &grid_y));
    smg_range *ranges = h->ranges + h->count;
    int count = bind_step(p, bound, step, ranges);
    SMG_TRY(fill_push(p, bound, step, push));
    for (int i = 0; i < count; i++) {
        if (!conflicts(h, &ranges[i])) continue;
        smg_vk_record_barrier(recording);
        bound->barriers++;
        memmove(h->ranges, ranges, (size_t)count * sizeof(*ranges));
        h->count = 0;
        break;
    }
    h->count += count;
    if (grid_x > 0) {
        smg_vk_record_dispatch(recording, smg_program_pipeline(p, step, bound->values), p->bindings, count, push,
                               smg_bundle_push_bytes(step), grid_x, grid_y, 1);
    }
    return SMG_OK;
}

static smg_status record_list(smg_program *p, smg_bound *bound, smg_vk_recording *recording, const smg_bstep *steps,
                              int count, bool stamps) {
    hazards h = {.ranges = p->ranges, .count = 0, .capacity = p->range_capacity};
    for (int i = 0; i < count; i++) {
        SMG_TRY(record_step(p, recording, bound, &steps[i], &h));
        if (stamps) smg_vk_record_timestamp(recording, i + 1);
    }
    return SMG_OK;
}

static smg_status sum_work(smg_program *p, smg_bound *bound) {
    bound->bytes = 0;
    bound->flops = 0;
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    for (int i = 0; i < list->run.count; i++) {
        const smg_bstep *step = &list->run.items[i];
        int64_t bytes = 0;
        int64_t flops = 0;
        if (!smg_size_eval(p->bundle->sizes, step->bytes, bound->values, &bytes) ||
            !smg_size_eval(p->bundle->sizes, step->flops, bound->values, &flops)) {
            continue; /* a model of the work, not the work: overflow only leaves it out */
        }
        bound->bytes += (double)bytes;
        bound->flops += (double)flops;
    }
    return SMG_OK;
}

smg_status smg_program_record_run(smg_program *p, smg_bound *bound) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    int steps = list->run.count;
    int slots = !p->timestamps ? 0 : bound->profile ? steps + 1 : 2;
    bound->barriers = 0;
    SMG_TRY(sum_work(p, bound));
    const smg_program_steps needed = {list->run.items, steps, bound->values};
    SMG_TRY(smg_program_make_pipelines(p, &needed, 1));
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
