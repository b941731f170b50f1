/* Reuse of shared memory: tiles that are never needed at the same time (the keys of one product and the values of the
 * next) lie on the same memory. It leaves room for a second workgroup on a core, and costs barriers: what is written
 * next must wait until what lay there has been read. So it is a choice of the schedule, and priced. */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

typedef struct memories {
    const smg_kernel *k;
    const kernel_live_set *meets; /* by tile */
} memories;

static bool apart(const memories *m, int a, int b) {
    return !kernel_live_has(&m->meets[a], b) && !kernel_live_has(&m->meets[b], a);
}

static bool can_reuse(const smg_kernel *k, int t) {
    return k->tiles.items[t].residence == SMG_SHARED && !k->tiles.items[t].sliced &&
           smg_tile_kind(&k->tiles.items[t]) == SMG_KIND_FLOAT;
}

/* The first earlier tile whose memory nobody needs together with `t`; -1. The first, not the one that fits best: sizes
 * are not known here, other schedules price the same program with tiles of their own. */
static int partner(const memories *m, int t) {
    for (int first = 0; first < t; first++) {
        bool one_type = m->k->tiles.items[first].type == m->k->tiles.items[t].type;
        if (!one_type || !can_reuse(m->k, first) || !apart(m, first, t)) continue;
        if (!smg_tiles_slot_alike(m->k, &m->k->tiles.items[first], &m->k->tiles.items[t])) continue;
        bool free = true;
        int memory = m->k->tiles.items[first].memory;
        for (int i = 0; memory > 0 && i < t; i++)
            if (m->k->tiles.items[i].memory == memory) free = free && apart(m, i, t);
        if (free) return first;
    }
    return -1;
}

smg_status lower_memory(lower_sized *l) {
    smg_kernel *k = l->k;
    if (!l->s->reuse) return SMG_OK;
    kernel_live_set *meets = SMG_ARENA_ARRAY(l->arena, kernel_live_set, (size_t)k->tiles.count + 1);
    if (meets == NULL) return SMG_MEMORY;
    if (!kernel_live_meets(k, meets)) return SMG_OK;
    const memories m = {.k = k, .meets = meets};
    int used = 0;
    for (int t = 0; t < k->tiles.count; t++) {
        int first = can_reuse(k, t) ? partner(&m, t) : -1;
        if (first < 0) continue;
        if (k->tiles.items[first].memory == 0) k->tiles.items[first].memory = ++used;
        k->tiles.items[t].memory = k->tiles.items[first].memory;
    }
    if (used == 0) l->refused = "no shared tiles take turns";
    return SMG_OK;
}
