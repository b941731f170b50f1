/* A copy of a program: lists of its own, the pool of expressions in common, to which both may add. */
#include "kernel/kernel.h"

static bool copy_list(smg_arena *arena, const void *items, int count, size_t size, void **out_items,
                      int *out_capacity) {
    *out_items = smg_arena_copy(arena, items, (size_t)count, size, (size_t)count + 1);
    *out_capacity = count + 1;
    return *out_items != NULL;
}

#define COPY(list)                                                                                                     \
    copy_list(arena, k->list.items, k->list.count, sizeof(*k->list.items), (void **)&copy->list.items,                 \
              &copy->list.capacity)

smg_status smg_kernel_copy(const smg_kernel *k, smg_arena *arena, smg_kernel **out_copy) {
    smg_kernel *copy = SMG_ARENA_NEW(arena, smg_kernel);
    *out_copy = copy;
    if (copy == NULL) return SMG_MEMORY;
    *copy = *k;
    copy->arena = arena;
    copy->live = (smg_kernel_live){0};
    bool whole = COPY(layouts) && COPY(axes) && COPY(grid) && COPY(tiles) && COPY(accesses) && COPY(leaves) &&
                 COPY(buffers) && COPY(code) && COPY(evens) && COPY(sure);
    return whole ? SMG_OK : SMG_MEMORY;
}
