/* How many steps loops have: ranges leave out those that masks make nothing of. What the blocks of a loop's axis cover
 * hangs on tiles; what its elements do is the least that any tiles can leave of it. */
#include <math.h>

#include "plan/plan_internal.h"

#define SAMPLES 16 /* workgroups that are asked how long their loop is */

static double blocks_of(const smg_kernel *k, const int64_t *symbols, int axis) {
    int64_t extent;
    if (!smg_size_eval(k->sizes, k->axes.items[axis].extent, symbols, &extent)) extent = 1;
    return ceil((double)extent / (double)k->axes.items[axis].tile);
}

double plan_all_steps(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop) {
    return blocks_of(k, symbols, loop->axes[0]);
}

typedef struct load_search {
    const smg_kernel *k;
    bool found;
} load_search;

static void seek_load(void *user, int leaf) {
    load_search *s = user;
    s->found = s->found || s->k->leaves.items[leaf].what == SMG_KLEAF_LOAD;
}

/* Does memory decide the range? */
static bool is_loaded(const smg_kernel *k, const smg_krange *range) {
    load_search s = {.k = k};
    if (range->from != SMG_EXPR_NONE) smg_expr_leaves(k->exprs, range->from, seek_load, &s);
    if (range->to != SMG_EXPR_NONE) smg_expr_leaves(k->exprs, range->to, seek_load, &s);
    return s.found;
}

bool plan_range_moves(const smg_kernel *k, const smg_instr *loop, int axis) {
    return smg_kernel_expr_moves(k, loop->range->from, axis) || smg_kernel_expr_moves(k, loop->range->to, axis);
}

/* The workgroups that are asked lie evenly along all axes that the range hangs on. */
static double mean_steps(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop) {
    double tile = (double)k->axes.items[loop->axes[0]].tile, all = 0, steps = 0, blocks[SMG_SPACE_AXES] = {0};
    int64_t base[SMG_SPACE_AXES] = {0}, first, end;
    for (int a = 0; a < k->axes.count; a++)
        if (k->axes.items[a].grid && plan_range_moves(k, loop, a)) blocks[a] = blocks_of(k, symbols, a);
    for (int i = 0; i < SAMPLES; i++) {
        bool same = i > 0;
        for (int a = 0; a < k->axes.count; a++) {
            int64_t at = k->axes.items[a].tile * (int64_t)floor(blocks[a] * (i + 0.5) / SAMPLES);
            same = same && at == base[a];
            base[a] = at;
        }
        if (!same) {
            (void)smg_kernel_loop_range(k, loop, symbols, base, NULL, &first, &end);
            steps = end > first ? ceil((double)(end - first) / tile) : 0;
        }
        all += steps;
    }
    return plan_larger(all, SAMPLES) / SAMPLES;
}

static bool has_range(const smg_kernel *k, const smg_instr *loop) {
    return loop->range != NULL && k->axes.count <= SMG_SPACE_AXES;
}

/* Of what memory decides at least one step is left, and ends lie anywhere in their step. */
double plan_mean_steps(const smg_kernel *k, const int64_t *symbols, double kept, const smg_instr *loop) {
    if (!has_range(k, loop)) return plan_all_steps(k, symbols, loop);
    double mean = mean_steps(k, symbols, loop);
    return kept < 1 && is_loaded(k, loop->range) ? 1 + (mean - 1) * kept : mean;
}

static bool is_over(const smg_instr *in, int axis) {
    return in->kind == SMG_I_LOOP && in->axes[0] == axis;
}

double plan_share(const smg_kernel *k, const int64_t *symbols, int axis) {
    double steps = 0, all = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (!is_over(in, axis)) continue;
        steps += plan_mean_steps(k, symbols, 1, in);
        all += plan_all_steps(k, symbols, in);
    }
    return all > 0 ? steps / all : 1;
}

/* Samples err by one part in 32 of the axis at most where ranges only grow along it, to half of it or more. */
#define MARGIN 0.9

double plan_least_share(smg_kernel *k, const int64_t *symbols, int axis) {
    for (int a = 0; a < k->axes.count; a++) k->axes.items[a].tile = 1;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (is_over(in, axis) && has_range(k, in) && is_loaded(k, in->range)) return 0;
    }
    return MARGIN * plan_share(k, symbols, axis);
}
