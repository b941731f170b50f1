/* program_parameters.c: what a step is given beside its buffers: workgroups and sizes.
 *
 * A recording for one tuple of sizes holds them itself. One for a range reads them from a buffer that the host sees:
 * for every step the counts of an indirect dispatch, and a block of what else would be push constants. Sizes of a run
 * are then a few words written there before it is submitted. */
#include "program/program_private.h"

enum { COUNTS_BYTES = 16, BLOCK_BYTES = SMG_PROGRAM_MAX_PUSH };

void smg_program_fill_addresses(const smg_program *p, const smg_bstep *step, uint8_t *push) {
    for (int i = 0; i < step->address_count; i++) {
        const smg_vk_binding *binding = &p->bindings[step->address_bindings[i]];
        uint64_t address = smg_vk_buffer_address(binding->buffer) + (uint64_t)binding->offset;
        memcpy(push + 8 * (size_t)i, &address, sizeof(address));
    }
}

void smg_program_fill_sizes(const smg_bstep *step, const int64_t *values, uint8_t *push) {
    for (int i = 0; i < step->push_count; i++) {
        int32_t value = (int32_t)values[step->push_symbols[i]];
        memcpy(push + 8 * (size_t)step->address_count + 4 * (size_t)i, &value, sizeof(value));
    }
}

smg_status smg_program_spread_grid(smg_program *p, const smg_bstep *step, const int64_t *values, int64_t *out_x,
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

static const smg_bvariant *list_of(const smg_program *p, const smg_bound *bound) {
    return &p->bundle->variants.items[bound->variant];
}

/* Blocks first, so that each is aligned. */
smg_vk_parameters smg_program_parameters_of(const smg_bound *bound, int step) {
    int64_t steps = smg_vk_buffer_bytes(bound->parameters) / (BLOCK_BYTES + COUNTS_BYTES);
    return (smg_vk_parameters){.buffer = bound->parameters,
                               .counts = steps * BLOCK_BYTES + (int64_t)step * COUNTS_BYTES,
                               .block = (int64_t)step * BLOCK_BYTES};
}

smg_status smg_program_make_parameters(smg_program *p, smg_bound *bound) {
    int64_t steps = list_of(p, bound)->run.count > 0 ? list_of(p, bound)->run.count : 1;
    int64_t bytes = steps * (BLOCK_BYTES + COUNTS_BYTES);
    SMG_TRY(smg_vk_buffer_create(p->device, "parameters", bytes, SMG_VK_PARAMETERS, &bound->parameters));
    void *words = smg_vk_buffer_map(bound->parameters);
    if (words == NULL) return smg_fail(p->ctx, SMG_INTERNAL, "the buffer of parameters is not mapped");
    memset(words, 0, (size_t)bytes);
    return SMG_OK;
}

static smg_status put_step(smg_program *p, const smg_bound *bound, int position) {
    const smg_bstep *step = &list_of(p, bound)->run.items[position];
    const smg_vk_parameters at = smg_program_parameters_of(bound, position);
    uint8_t *words = smg_vk_buffer_map(at.buffer);
    int64_t grid_x = 0;
    int64_t grid_y = 0;
    SMG_TRY(smg_program_spread_grid(p, step, bound->values, &grid_x, &grid_y));
    const uint32_t counts[3] = {(uint32_t)grid_x, (uint32_t)grid_y, 1};
    memcpy(words + at.counts, counts, sizeof(counts));
    smg_program_fill_sizes(step, bound->values, words + at.block);
    return SMG_OK;
}

void smg_program_empty_counts(smg_bound *bound) {
    if (bound->parameters == NULL) return;
    uint8_t *words = smg_vk_buffer_map(bound->parameters);
    int64_t steps = smg_vk_buffer_bytes(bound->parameters) / (BLOCK_BYTES + COUNTS_BYTES);
    for (int i = 0; i < (int)steps; i++) {
        *(volatile uint32_t *)(void *)(words + smg_program_parameters_of(bound, i).counts) = 0;
    }
    bound->settled = false;
}

static smg_status put_dims(smg_program *p, smg_bound *bound) {
    for (int i = 0; i < p->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        for (int d = 0; d < b->rank; d++) {
            if (!smg_size_eval(p->bundle->sizes, b->dims[d], bound->values, &bound->dims[i * SMG_BUNDLE_RANK + d])) {
                return smg_fail(p->ctx, SMG_INVALID, "'%s': axis %d has no valid size", b->name, d);
            }
        }
    }
    return SMG_OK;
}

smg_status smg_program_put_values(smg_program *p, smg_bound *bound, const int64_t *values) {
    memcpy(bound->values, values, (size_t)p->symbol_count * sizeof(*values));
    smg_status status = put_dims(p, bound);
    int steps = bound->parameters != NULL ? list_of(p, bound)->run.count : 0;
    for (int i = 0; i < steps && status == SMG_OK; i++) status = put_step(p, bound, i);
    bound->settled = status == SMG_OK;
    return status;
}
