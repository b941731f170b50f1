/* program_slices.c: how much of a run the device is given at a time.
 *
 * With a budget a step whose time is estimated above it is several dispatches, each of a range of its workgroups, and
 * the dispatches of a run are shared out over several submissions. Workgroups know nothing of each other, so that the
 * results are the same bits. The cost model's times may be of another device, and none is right: the first run of a
 * recording measures every step, and the run is recorded again by that, a few times at most. Without a budget no step
 * is measured: steps that seem to outlast a watchdog are cut by estimates, which runs of before have put right. Sizes
 * of a range at which one does have a recording of their own. */
#include <math.h>

#include "program/program_private.h"

enum {
    MOST_SLICES = 4096, /* of one step */
    MOST_TRIES = 4      /* recordings of the same sizes */
};

/* Of what was estimated, while nothing has been measured; behind that, of what that says. */
static const double careful_pace = 4, known_pace = 1.5;
/* A slice is to keep within its budget although some workgroups take longer than others. */
static const double filled = 0.8;

bool smg_program_is_limited(const smg_program *p) {
    return (p->dispatch_seconds > 0 && !isinf(p->dispatch_seconds)) || p->submission_seconds > 0;
}

void smg_program_set_budget(smg_program *p, double dispatch_seconds, double submission_seconds) {
    if (p->dispatch_seconds == dispatch_seconds && p->submission_seconds == submission_seconds) return;
    p->dispatch_seconds = dispatch_seconds;
    p->submission_seconds = submission_seconds;
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) smg_bound_drop(p, &p->cache[i]);
}

void smg_program_set_watchdog(smg_program *p, double seconds) {
    p->watchdog = seconds;
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) smg_bound_drop(p, &p->cache[i]);
}

/* ---- estimates -------------------------------------------------------------------------------------- */

static double ratio(const smg_program *p, smg_size size, const int64_t *values) {
    int64_t now = 0, nominal = 0;
    if (!smg_size_eval(p->bundle->sizes, size, values, &now) ||
        !smg_size_eval(p->bundle->sizes, size, p->options.nominal, &nominal) || now <= 0 || nominal <= 0)
        return 0;
    return (double)now / (double)nominal;
}

static double estimate(const smg_program *p, const smg_bstep *step, const int64_t *values) {
    if (p->options.nominal == NULL) return step->estimate;
    double flops = ratio(p, step->flops, values), bytes = ratio(p, step->bytes, values);
    double most = flops > bytes ? flops : bytes;
    return most > 0 ? step->estimate * most : step->estimate;
}

static double guess(const smg_program *p, const smg_bstep *step, const int64_t *values) {
    return estimate(p, step, values) * (p->pace > 0 ? known_pace * p->pace : careful_pace);
}

static double expected(const smg_program *p, const smg_bound *bound, int step) {
    if (bound->measured) return bound->seconds[step];
    return guess(p, &p->bundle->variants.items[bound->variant].run.items[step], bound->low);
}

/* ---- slices ----------------------------------------------------------------------------------------- */

/* Each of the two tables by itself, so that a failure leaves both as they say they are. */
static smg_status make_room(smg_program *p, smg_bound *bound) {
    size_t old = (size_t)bound->slice_capacity, stamps = (size_t)bound->time_capacity, count = 2 * old + 32;
    if (stamps < count + 1) { /* one more than slices */
        double *times = smg_realloc(p->ctx, bound->times, stamps * sizeof(*times), (count + 1) * sizeof(*times));
        if (times == NULL) return SMG_MEMORY;
        bound->times = times;
        bound->time_capacity = (int)count + 1;
    }
    smg_slice *slices = smg_realloc(p->ctx, bound->slices, old * sizeof(*slices), count * sizeof(*slices));
    if (slices == NULL) return SMG_MEMORY;
    bound->slices = slices;
    bound->slice_capacity = (int)count;
    return SMG_OK;
}

static smg_status add_slice(smg_program *p, smg_bound *bound, const smg_slice *slice) {
    if (bound->slice_count == bound->slice_capacity) SMG_TRY(make_room(p, bound));
    bound->slices[bound->slice_count++] = *slice;
    return SMG_OK;
}

/* Of a dispatch; 0: any. */
static double limit_of(const smg_program *p) {
    double a = p->dispatch_seconds, b = p->submission_seconds;
    if (!smg_program_is_limited(p)) return a > 0 ? 0 : filled * p->watchdog;
    return filled * (a > 0 && (b <= 0 || a < b) ? a : b);
}

bool smg_program_cuts(const smg_program *p, int variant, const int64_t *values) {
    const smg_bvariant *list = &p->bundle->variants.items[variant];
    double limit = limit_of(p);
    for (int i = 0; limit > 0 && i < list->run.count; i++)
        if (guess(p, &list->run.items[i], values) > limit) return true;
    return false;
}

static int64_t count_slices(const smg_program *p, double seconds, int64_t workgroups) {
    double wanted = seconds / limit_of(p);
    int64_t count = wanted < MOST_SLICES ? (int64_t)wanted + 1 : MOST_SLICES;
    return count < workgroups ? count : workgroups;
}

/* Rows of the grid: each slice is one, where there are several. */
static smg_status slice_step(smg_program *p, smg_bound *bound, int position, double *io_filled) {
    const smg_bstep *step = &p->bundle->variants.items[bound->variant].run.items[position];
    smg_slice slice = {.step = position, .part = bound->part_count - 1};
    int64_t rows = 0, count = 1;
    SMG_TRY(smg_program_spread_grid(p, step, bound->low, &slice.columns, &rows));
    double seconds = expected(p, bound, position);
    if (limit_of(p) > 0) count = count_slices(p, seconds, slice.columns * rows);
    bound->sliced[position] = slice.sliced = count > 1;
    if (count > 1) {
        int64_t total = slice.columns * rows;
        slice.columns = total / count + (total % count != 0);
        if (slice.columns > p->target->max_grid_x) slice.columns = p->target->max_grid_x;
        rows = total / slice.columns + (total % slice.columns != 0);
    }
    slice.rows = count > 1 ? 1 : rows;
    double each = count > 1 ? seconds / (double)rows : seconds;
    for (slice.row = 0; slice.row < rows; slice.row += slice.rows) {
        if (p->submission_seconds > 0 && *io_filled > 0 && *io_filled + each > filled * p->submission_seconds) {
            slice.part = bound->part_count++;
            *io_filled = 0;
        }
        *io_filled += each;
        SMG_TRY(add_slice(p, bound, &slice));
    }
    return SMG_OK;
}

smg_status smg_program_plan_slices(smg_program *p, smg_bound *bound) {
    double so_far = 0;
    bound->slice_count = 0;
    bound->part_count = 1;
    for (int i = 0; i < p->bundle->variants.items[bound->variant].run.count; i++) {
        if (bound->parameters == NULL) {
            SMG_TRY(slice_step(p, bound, i, &so_far));
            continue;
        }
        const smg_slice whole = {.step = i};
        bound->sliced[i] = false;
        SMG_TRY(add_slice(p, bound, &whole));
    }
    return SMG_OK;
}

/* ---- what was measured ------------------------------------------------------------------------------ */

static bool kept_within(const smg_program *p, const smg_bound *bound) {
    double part = 0, dispatch = p->dispatch_seconds > 0 ? p->dispatch_seconds : p->submission_seconds;
    for (int i = 0; i < bound->slice_count; i++) {
        const smg_slice *s = &bound->slices[i];
        bool same = i > 0 && bound->slices[i - 1].part == s->part;
        part = same ? part + s->seconds : s->seconds;
        if (s->seconds > dispatch || (p->submission_seconds > 0 && part > p->submission_seconds)) return false;
    }
    return true;
}

/* Of the first run of a recording, whether there is a budget or not. */
static void find_pace(smg_program *p, smg_bound *bound) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    double guessed = 0;
    for (int i = 0; i < list->run.count; i++) guessed += estimate(p, &list->run.items[i], bound->values);
    if (guessed > 0) p->pace = p->seconds / guessed;
    bound->paced = true;
}

/* Does a step that is one dispatch seem to outlast the limit, now that there was a run? */
static bool is_cut_otherwise(const smg_program *p, const smg_bound *bound) {
    double limit = limit_of(p);
    for (int i = 0; limit > 0 && i < p->bundle->variants.items[bound->variant].run.count; i++)
        if (!bound->sliced[i] && expected(p, bound, i) > limit) return true;
    return false;
}

void smg_program_learn(smg_program *p, smg_bound *bound) {
    const smg_bvariant *list = &p->bundle->variants.items[bound->variant];
    bool first = !bound->measured;
    if (!bound->paced) find_pace(p, bound);
    if (bound->tries >= MOST_TRIES) return;
    if (!smg_program_is_limited(p)) {
        bound->again = bound->parameters == NULL && bound->tries == 0 && is_cut_otherwise(p, bound);
        bound->tries++;
        return;
    }
    if (!p->timestamps) return;
    if (!first && kept_within(p, bound)) return;
    for (int i = 0; i < list->run.count; i++) {
        if (first || p->step_seconds[i] > bound->seconds[i]) bound->seconds[i] = p->step_seconds[i];
    }
    bound->measured = true;
    bound->again = true;
    bound->tries++;
}
