/* program_arena.c: which temporaries share memory.
 *
 * Greedy by size: the largest slot first, each at the lowest offset of the first chunk where it meets no
 * placed slot of an overlapping lifetime. With the few dozen buffers of a Transformer this is within a
 * few per cent of the peak of live bytes, and the same input gives the same plan. */
#include "program/program.h"

static bool lives_with(const smg_arena_slot *a, const smg_arena_slot *b) {
    return a->first <= b->last && b->first <= a->last;
}

static int64_t aligned(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

static void sort_by_size(const smg_arena_slot *slots, int count, int *order) {
    for (int i = 0; i < count; i++) {
        int at = i;
        while (at > 0 && slots[order[at - 1]].bytes < slots[i].bytes) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

/* Lowest offset in `chunk` for `slot`; `placed` lists earlier slots in ascending order of offset. */
static int64_t lowest_offset(const smg_arena_slot *slots, const int *placed, int placed_count,
                             const smg_arena_slot *slot, int chunk, int64_t alignment) {
    int64_t offset = 0;
    for (int i = 0; i < placed_count; i++) {
        const smg_arena_slot *other = &slots[placed[i]];
        if (other->chunk != chunk || !lives_with(other, slot)) continue;
        if (offset + slot->bytes <= other->offset) break;
        int64_t behind = aligned(other->offset + other->bytes, alignment);
        if (behind > offset) offset = behind;
    }
    return offset;
}

static void insert_placed(const smg_arena_slot *slots, int *placed, int placed_count, int slot) {
    int at = placed_count;
    while (at > 0 && slots[placed[at - 1]].offset > slots[slot].offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    placed[at] = slot;
}

bool smg_program_plan_arena(smg_arena_slot *slots, int count, int64_t alignment, int64_t chunk_limit, int *order,
                            int *placed, int64_t *out_chunk_bytes, int *out_chunk_count) {
    int chunks = 0;
    sort_by_size(slots, count, order);
    for (int i = 0; i < count; i++) {
        smg_arena_slot *slot = &slots[order[i]];
        if (slot->bytes > chunk_limit) return false;
        int chunk = 0;
        int64_t offset = 0;
        for (; chunk < chunks; chunk++) {
            offset = lowest_offset(slots, placed, i, slot, chunk, alignment);
            if (offset <= chunk_limit - slot->bytes) break;
        }
        if (chunk == chunks) {
            out_chunk_bytes[chunks++] = 0;
            offset = 0;
        }
        slot->chunk = chunk;
        slot->offset = offset;
        if (offset + slot->bytes > out_chunk_bytes[chunk]) out_chunk_bytes[chunk] = offset + slot->bytes;
        insert_placed(slots, placed, i, order[i]);
    }
    *out_chunk_count = chunks;
    return true;
}
