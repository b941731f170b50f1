/* Workgroups of unequal length: masks whose ends move along the grid leave some loops shorter than others. Where a core
 * has many of them they even out. Where it has few, the core with most to do decides, and at its end the longest runs
 * alone: 192 workgroups of causal attention on 132 cores take 1.3 to 2.2 times what they would in the mean
 * (bench/NOTES.md). */
#include <math.h>

#include "plan/plan_internal.h"

#define MOST_BLOCKS 64 /* of an axis that are asked how long their loop is */

static const smg_instr *loop_with_ends(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_LOOP && k->code.items[i].range != NULL) return &k->code.items[i];
    return NULL;
}

static int64_t blocks_along(const smg_kernel *k, const int64_t *symbols, int axis) {
    int64_t extent = 1, tile = k->axes.items[axis].tile;
    if (!smg_size_eval(k->sizes, k->axes.items[axis].extent, symbols, &extent) || extent < 1) return 1;
    return (extent + tile - 1) / tile;
}

/* Of the loop, in this block of the axis and the first of all others. */
static double steps_at(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop, int axis, int64_t block) {
    int64_t base[SMG_SPACE_AXES] = {0}, first = 0, end = 0;
    double tile = (double)k->axes.items[loop->axes[0]].tile;
    base[axis] = block * k->axes.items[axis].tile;
    (void)smg_kernel_loop_range(k, loop, symbols, base, NULL, &first, &end);
    return end > first ? ceil((double)(end - first) / tile) : 0;
}

/* The place in the grid of the only axis that the loop's length hangs on; -1. */
static int deciding_axis(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop) {
    int found = -1;
    for (int g = 0; g < k->grid.count; g++) {
        int axis = k->grid.items[g];
        if (!plan_range_moves(k, loop, axis)) continue;
        int64_t last = blocks_along(k, symbols, axis) - 1;
        double change = steps_at(k, symbols, loop, axis, last) - steps_at(k, symbols, loop, axis, 0);
        if (!(change > 0) && !(change < 0)) continue;
        if (found >= 0) return -1;
        found = g;
    }
    return found;
}

/* Loops by block of the axis, some for all, and how the grid comes to the blocks. */
typedef struct lengths {
    double steps[MOST_BLOCKS], mean;
    int64_t blocks, inner; /* of the axis, and of those that are faster */
    bool back;
} lengths;

static double steps_of_workgroup(const lengths *l, int64_t number) {
    int64_t block = number / l->inner % l->blocks;
    if (l->back) block = l->blocks - 1 - block;
    return l->steps[l->blocks <= MOST_BLOCKS ? block : block * MOST_BLOCKS / l->blocks];
}

static void measure(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop, int place, lengths *out) {
    int axis = k->grid.items[place];
    *out = (lengths){.blocks = blocks_along(k, symbols, axis), .inner = 1, .back = k->axes.items[axis].back};
    int64_t asked = out->blocks < MOST_BLOCKS ? out->blocks : MOST_BLOCKS;
    for (int g = place + 1; g < k->grid.count; g++) out->inner *= blocks_along(k, symbols, k->grid.items[g]);
    for (int64_t i = 0; i < asked; i++) {
        out->steps[i] =
            steps_at(k, symbols, loop, axis, out->blocks <= MOST_BLOCKS ? i : i * out->blocks / MOST_BLOCKS);
        out->mean += out->steps[i] / (double)asked;
    }
}

/* Inserts it among those that are there, the longest first. */
static void insert(plan_uneven *u, double share) {
    int at = u->count++;
    for (; at > 0 && u->share[at - 1] < share; at--) u->share[at] = u->share[at - 1];
    u->share[at] = share;
}

/* The core that has most to do: workgroups are dealt out one after the other. */
static int64_t find_fullest(const lengths *l, int64_t workgroups, int64_t cores) {
    double most = 0;
    int64_t fullest = 0;
    for (int64_t core = 0; core < cores && core < workgroups; core++) {
        double all = 0;
        for (int64_t number = core; number < workgroups; number += cores) all += steps_of_workgroup(l, number);
        if (!(all > most)) continue;
        fullest = core;
        most = all;
    }
    return fullest;
}

plan_uneven plan_find_uneven(const smg_kernel *k, const smg_target *t, const int64_t *symbols) {
    plan_uneven fullest = {0};
    const smg_instr *loop = loop_with_ends(k);
    int64_t workgroups = 1;
    lengths l;
    bool follows = k->band == 0; /* the order of blocks is that of axes */
    if (loop == NULL || !follows || !smg_target_switches_lanes(t) || k->axes.count > SMG_SPACE_AXES) return fullest;
    if (!smg_kernel_grid(k, symbols, &workgroups) || workgroups > PLAN_UNEVEN * t->cores) return fullest;
    int place = deciding_axis(k, symbols, loop);
    if (place < 0) return fullest;
    measure(k, symbols, loop, place, &l);
    if (!(l.mean > 0)) return fullest;
    int64_t core = find_fullest(&l, workgroups, t->cores);
    for (int64_t number = core; number < workgroups; number += t->cores)
        insert(&fullest, steps_of_workgroup(&l, number) / l.mean);
    return fullest;
}
