/* program_tables.c: tables that are made once and grow only when a run list is added to the bundle.
 *
 * A run of sizes seen lately must allocate nothing, so everything that planning and recording need is
 * here: one entry per buffer, module or binding of the bundle. */
#include "program/program_private.h"

typedef struct need {
    size_t buffers, modules, steps, most, all; /* bindings: of one step, of all that one list has */
} need;

static void count_list(const smg_bstep *steps, int count, need *n) {
    size_t all = 1;
    for (int i = 0; i < count; i++) {
        size_t bindings = (size_t)steps[i].binding_count + 1;
        all += bindings;
        if (bindings > n->most) n->most = bindings;
    }
    if (all > n->all) n->all = all;
    if ((size_t)count > n->steps) n->steps = (size_t)count;
}

static need count_needs(const smg_bundle *bundle) {
    need n = {.most = 1, .all = 1};
    n.buffers = (size_t)bundle->buffers.count + 1;
    n.modules = (size_t)bundle->modules.count + 1;
    count_list(bundle->prepare.items, bundle->prepare.count, &n);
    for (int i = 0; i < bundle->variants.count; i++) {
        count_list(bundle->variants.items[i].run.items, bundle->variants.items[i].run.count, &n);
    }
    return n;
}

/* The first `kept` elements stay. */
static bool grow(smg_arena *arena, void *table, size_t kept, size_t count, size_t size) {
    void **items = table;
    void *grown = smg_arena_alloc(arena, count, size);
    if (grown == NULL) return false;
    if (kept > 0) memcpy(grown, *items, kept * size);
    *items = grown;
    return true;
}

#define GROW(table, kept, count) grow(p->arena, &(table), (size_t)(kept), count, sizeof(*(table)))

static bool grow_bounds(smg_program *p, const need *n) {
    size_t symbols = (size_t)p->symbol_count + 1;
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) {
        smg_bound *bound = &p->cache[i];
        if (!GROW(bound->low, 0, symbols) || !GROW(bound->high, 0, symbols) || !GROW(bound->values, 0, symbols) ||
            !GROW(bound->places, 0, n->buffers) || !GROW(bound->given, 0, n->buffers) ||
            !GROW(bound->sides, 0, n->buffers) || !GROW(bound->sliced, 0, n->steps + 1) ||
            !GROW(bound->seconds, 0, n->steps + 1) || !GROW(bound->dims, 0, n->buffers * SMG_BUNDLE_RANK)) {
            return false;
        }
    }
    return true;
}

smg_status smg_program_make_tables(smg_program *p) {
    need n = count_needs(p->bundle);
    int known = p->known_buffers;
    int symbols = p->symbol_count; /* 0 the first time, the same ever after */
    p->range_capacity = (int)(n.all + n.most);
    p->symbol_count = smg_size_symbol_count(p->bundle->sizes);
    bool made = GROW(p->fixed_places, known, n.buffers) && GROW(p->scratch, known, n.buffers) &&
                GROW(p->scratch_last, known, n.buffers) && GROW(p->written, 0, n.buffers) &&
                GROW(p->given, known, n.buffers) && GROW(p->up.marked, 0, n.buffers) &&
                GROW(p->down.marked, 0, n.buffers) && GROW(p->memory.items, p->memory.count, n.buffers) &&
                GROW(p->pipelines, smg_program_pipeline_slots(p->known_modules),
                     (size_t)smg_program_pipeline_slots((int)n.modules)) &&
                GROW(p->lent, smg_program_pipeline_slots(p->known_modules),
                     (size_t)smg_program_pipeline_slots((int)n.modules)) &&
                GROW(p->without, p->known_modules, n.modules) && GROW(p->literals, p->known_modules, n.modules) &&
                GROW(p->step_seconds, 0, n.steps + 2) && GROW(p->slots, 0, n.buffers) &&
                GROW(p->slot_buffer, 0, n.buffers) && GROW(p->order, 0, n.buffers) && GROW(p->placed, 0, n.buffers) &&
                GROW(p->chunk_bytes, 0, n.buffers) && GROW(p->chunk_most, 0, n.buffers) &&
                GROW(p->bindings, 0, n.most) && GROW(p->ranges, 0, (size_t)p->range_capacity) && grow_bounds(p, &n);
    size_t all = (size_t)p->symbol_count + 1, lists = (size_t)p->bundle->variants.count;
    made = made && GROW(p->dropped, p->known_lists, lists) && GROW(p->beyond, p->known_lists, lists) &&
           GROW(p->range_low, symbols, all) && GROW(p->range_high, symbols, all) && GROW(p->low, symbols, all) &&
           GROW(p->high, symbols, all);
    if (!made) return SMG_MEMORY;
    smg_program_choose_literals(p, p->known_modules);
    p->known_buffers = p->bundle->buffers.count;
    p->known_modules = p->bundle->modules.count;
    p->known_lists = p->bundle->variants.count;
    return SMG_OK;
}
