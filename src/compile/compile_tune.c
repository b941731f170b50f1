/* compile_tune.c: the schedules of a plan's kernels, measured.
 *
 * The run list of one program goes through the plan several times, a pass each for the schedules that were taken, for
 * the next by price of every kernel, and so on, with a time stamp behind each step. So each schedule is measured where
 * it will run, between the same neighbours, with the caches as these leave them and the data of a real run; what
 * disturbs the device disturbs all passes alike; weights lie on the device once. Kernels of equal structure and sizes
 * (the layers of a model) are one: their times come together.
 *
 * Before that, cuts: each kernel of several operations apart, and each two neighbours together, is a plan, which is run
 * in turns with the one at hand where its price is near, and takes its place where it is faster.
 *
 * What is fastest by a margin is run again, in a program of all of these in turns with the plan of prices: what is no
 * faster there gives way to the next. Where the whole is slower in the end nothing is kept. A pass that loses the
 * device is found by halving the passes: its schedules do not count. Nor does what gives other results than the plan in
 * which each operation is its own kernel (compile_tune_answer.c), found by halving the candidates.
 *
 * Each part has a share of the time there is; what a part does not come to is left to prices. Who stops it gets what
 * was faster in turns by then, without a look at the whole. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define MARGIN 0.985 /* of the time of the lowest price, at most, is what another schedule takes to be kept */
#define NOISE 1.01   /* times as long as the plan of prices is no slower yet */
#define WARM 0.1     /* seconds before anything is measured */
#define LEAST_ROUNDS 5
#define FEWEST_ROUNDS 2 /* where a round takes long */
#define MOST_ROUNDS 400
#define LONG 8.0 /* times as many seconds as were asked for, at most */
#define MOST_SAMPLES 4096
#define MOST_PROPOSALS 24 /* cuts that are planned */
#define MOST_CUTS 8       /* and run */
#define FAR_PLAN 1.3      /* of the price of the plan at hand: dearer plans are not run */
#define CUT_SHARE 3.0     /* of the time that schedules are measured for */
#define MOST_TURNS 4      /* of both plans; after the last what is not settled is left to prices */
#define CUTS_END 0.35     /* of the time there is */
#define PASSES_END 0.7
#define TURNS_END 0.9
#define FEW_PASSES 4 /* are measured together where the time is limited */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof(*seconds), by_size);
    return count > 0 ? seconds[count / 2] : HUGE_VAL;
}

/* Is the part to end? */
static bool is_over(smg_tuner *t, const char *phase, double share) {
    const smg_tune_options *o = t->options;
    const smg_tune_progress at = {phase, smg_clock_seconds() - t->start, t->untuned, t->best};
    if (o->progress != NULL && !t->stopped) t->stopped = !o->progress(o->progress_user, &at);
    return t->stopped || (o->limit > 0 && at.seconds > share * o->limit);
}

static void close_device(smg_tuner *t) {
    if (t->desc->on == NULL) smg_vk_close(t->device);
    t->device = NULL;
}

static smg_status open_device(smg_tuner *t) {
    t->device = t->desc->on;
    if (t->device == NULL) SMG_TRY(smg_vk_open(t->ctx, t->desc->device, 0, &t->device));
    if (t->options->opened != NULL) t->options->opened(t->options->user, t->device);
    return smg_compile_know_device(t->device, t->desc);
}

/* ---- the plan of prices --------------------------------------------------------------------------- */

/* What the driver made nothing good of on the way to the plan. */
static smg_status know_rejected(smg_tuner *t, smg_model *model) {
    const smg_compilation *c = smg_model_compilation(model);
    int count = c->options.rejected_count;
    smg_choice *rejected = SMG_ARENA_ARRAY(t->arena, smg_choice, (size_t)count + 1);
    if (rejected == NULL) return SMG_MEMORY;
    if (count > 0) memcpy(rejected, c->options.rejected, (size_t)count * sizeof(*rejected));
    t->parts.rejected = rejected;
    t->parts.rejected_count = count;
    return SMG_OK;
}

/* ---- measuring ------------------------------------------------------------------------------------ */

static smg_tune_kernel *kernel_of(smg_tuner *t, const smg_pstep *step) {
    for (int i = 0; i < t->kernels.count; i++)
        if (t->kernels.items[i].rows.items[0].choice.at == step->choice.at) return &t->kernels.items[i];
    smg_tune_kernel *k = SMG_ARRAY_PUSH(t->arena, &t->kernels);
    smg_tune_row *first = k != NULL ? SMG_ARRAY_PUSH(t->arena, &k->rows) : NULL;
    if (first == NULL) return NULL;
    k->name = smg_arena_string(t->arena, step->name);
    first->choice = step->choice;
    return k->name != NULL ? k : NULL;
}

static smg_tune_row *row_of(smg_tuner *t, smg_tune_kernel *k, const smg_choice *choice) {
    smg_tune_row *found = NULL;
    for (int i = 0; i < k->rows.count && found == NULL; i++)
        if (k->rows.items[i].choice.schedule == choice->schedule) found = &k->rows.items[i];
    if (found == NULL) found = SMG_ARRAY_PUSH(t->arena, &k->rows);
    if (found == NULL) return NULL;
    found->choice = *choice;
    if (found->seconds == NULL) found->seconds = SMG_ARENA_ARRAY(t->arena, double, MOST_SAMPLES);
    return found->seconds != NULL ? found : NULL;
}

/* Steps of the run list, with the rows that their times belong to. */
typedef struct list {
    smg_program *program;
    smg_tune_kernel **kernels;
    int *rows; /* of the kernel; -1: an earlier pass has this one */
    int count;
} list;

static smg_status make_list(smg_tuner *t, smg_model *model, list *out) {
    const smg_compilation *c = smg_model_compilation(model);
    bool known = t->kernels.count > 0;
    *out = (list){.program = smg_model_program(model), .count = smg_compile_kernel_count(c)};
    out->rows = SMG_ARENA_ARRAY(t->arena, int, (size_t)out->count + 1);
    out->kernels = SMG_ARENA_ARRAY(t->arena, smg_tune_kernel *, (size_t)out->count + 1);
    if (out->rows == NULL || out->kernels == NULL) return SMG_MEMORY;
    /* Kernels first: the array moves as it grows. */
    for (int i = 0; i < c->plan->steps.count; i++) {
        smg_tune_kernel *k = kernel_of(t, &c->plan->steps.items[i]);
        if (k == NULL) return SMG_MEMORY;
        k->calls += !known;
    }
    for (int i = 0; i < out->count; i++) {
        smg_tune_kernel *k = out->kernels[i] = kernel_of(t, &c->plan->steps.items[i % c->plan->steps.count]);
        const smg_tune_row *r = row_of(t, k, smg_compile_choice(c, i));
        if (r == NULL) return SMG_MEMORY;
        bool again = i >= c->plan->steps.count && r == k->rows.items;
        out->rows[i] = again ? -1 : (int)(r - k->rows.items);
    }
    return SMG_OK;
}

static void add_times(const list *l) {
    for (int i = 0; i < l->count; i++) {
        smg_tune_row *r = l->rows[i] >= 0 ? &l->kernels[i]->rows.items[l->rows[i]] : NULL;
        if (r != NULL && r->count < MOST_SAMPLES) r->seconds[r->count++] = smg_program_step_time(l->program, i);
    }
}

static smg_status warm_up(smg_program *program) {
    double start = smg_clock_seconds();
    while (smg_clock_seconds() - start < WARM) SMG_TRY(smg_program_run(program));
    return SMG_OK;
}

/* Operations as kernels of their own: what the report compares fused ones with. */
static smg_status time_apart(smg_tuner *t, smg_model *model) {
    const smg_compilation *c = smg_model_compilation(model);
    smg_program *program = smg_model_program(model);
    int count = c->plan->steps.count;
    double *seconds = SMG_ARENA_ARRAY(t->arena, double, (size_t)(count * LEAST_ROUNDS) + 1);
    if (seconds == NULL) return SMG_MEMORY;
    SMG_TRY(smg_program_set_profile(program, true));
    SMG_TRY(smg_model_run(model, t->options->inputs, t->options->input_count, NULL, 0));
    SMG_TRY(warm_up(program));
    for (int r = 0; r < LEAST_ROUNDS; r++) {
        SMG_TRY(smg_program_run(program));
        for (int i = 0; i < count; i++) seconds[i * LEAST_ROUNDS + r] = smg_program_step_time(program, i);
    }
    for (int i = 0; i < count; i++) {
        const smg_choice *choice = &c->plan->steps.items[i].choice;
        smg_measured *slot = SMG_ARRAY_PUSH(t->arena, &t->apart);
        if (slot == NULL) return SMG_MEMORY;
        double median = median_of(&seconds[(ptrdiff_t)i * LEAST_ROUNDS], LEAST_ROUNDS);
        *slot = (smg_measured){choice->at, choice->schedule, median, median};
    }
    return SMG_OK;
}

static bool is_enough(double seconds, double asked, int rounds) {
    if (rounds >= MOST_ROUNDS) return true;
    return seconds >= asked && rounds >= (seconds >= LONG * asked ? FEWEST_ROUNDS : LEAST_ROUNDS);
}

static smg_status time_passes(smg_tuner *t, smg_model *model) {
    list l;
    SMG_TRY(make_list(t, model, &l));
    SMG_TRY(smg_program_set_profile(l.program, true));
    SMG_TRY(smg_model_run(model, t->options->inputs, t->options->input_count, NULL, 0));
    SMG_TRY(warm_up(l.program));
    double start = smg_clock_seconds();
    for (int rounds = 0; !is_enough(smg_clock_seconds() - start, t->options->seconds, rounds); rounds++) {
        SMG_TRY(smg_program_run(l.program));
        add_times(&l);
        if (is_over(t, "schedules", 1) && (t->stopped || rounds + 1 >= FEWEST_ROUNDS)) break;
    }
    return SMG_OK;
}

static smg_status measure(smg_tuner *t, int from, int to) {
    smg_open_parts parts = t->parts;
    smg_model *model = NULL;
    parts.passes = (smg_passes){.rivals = t->options->rivals, .from = from, .to = to};
    smg_progress(t->ctx, "schedules", (size_t)from, (size_t)to, "");
    SMG_TRY(smg_tuner_open(t, &parts, &model));
    t->failed += smg_model_compilation(model)->options.rejected_count - t->parts.rejected_count;
    smg_status status = time_passes(t, model);
    smg_model_close(model);
    smg_progress(t->ctx, "schedules", (size_t)to, (size_t)to, "");
    return status;
}

/* Where the device is lost, which pass it was: the others are measured apart. */
static smg_status measure_apart(smg_tuner *t, int from, int to) {
    smg_status status = measure(t, from, to);
    if (status != SMG_DEVICE || t->desc->on != NULL) return status;
    close_device(t);
    if (to - from == 1 && from == 0) return status; /* it is the plan that loses it */
    smg_log(t->ctx, SMG_LOG_WARNING, "%s: %s", to - from == 1 ? "schedules are not measured" : "measured apart",
            smg_context_error(t->ctx));
    smg_context_clear_error(t->ctx);
    SMG_TRY(open_device(t));
    t->failed += to - from == 1;
    if (to - from == 1) return SMG_OK;
    int middle = from + (to - from) / 2;
    SMG_TRY(measure_apart(t, from, middle));
    return measure_apart(t, middle, to);
}

/* ---- what was fastest ----------------------------------------------------------------------------- */

static void sort_rows(smg_tune_kernel *k) {
    for (int i = 0; i < k->rows.count; i++)
        k->rows.items[i].median = median_of(k->rows.items[i].seconds, k->rows.items[i].count);
}

static void sort_all(smg_tuner *t) {
    double untuned = 0, best = 0;
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        sort_rows(k);
        double least = k->rows.items[0].median;
        untuned += k->calls * least;
        for (int r = 1; r < k->rows.count; r++) least = fmin(least, k->rows.items[r].median);
        best += k->calls * least;
    }
    t->untuned = isinf(untuned) ? 0 : untuned;
    t->best = isinf(untuned) ? 0 : best;
}

/* All passes, or as many as there is time for. */
static smg_status measure_all(smg_tuner *t) {
    int passes = t->options->rivals + 1, together = t->options->limit > 0 ? FEW_PASSES : passes;
    for (int from = 0; from < passes; from += together) {
        if (from > 0 && is_over(t, "schedules", PASSES_END)) break;
        SMG_TRY(measure_apart(t, from, from + together < passes ? from + together : passes));
        sort_all(t);
    }
    return SMG_OK;
}

/* The fastest by the passes of those that were not tried in turns, if it is worth that; else the lowest price. */
static void next_best(smg_tune_kernel *k, bool last) {
    double least = MARGIN * k->rows.items[0].median;
    k->best = 0;
    for (int i = 1; i < k->rows.count && !last; i++) {
        const smg_tune_row *r = &k->rows.items[i];
        if (r->beaten || !(r->median < least)) continue;
        least = r->median;
        k->best = i;
    }
    k->settled = k->best == 0;
}

/* Candidates that were not run in turns count for nothing. */
static void give_up(smg_tuner *t) {
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        if (k->settled) continue;
        k->best = 0;
        k->settled = k->unknown = true;
    }
}

static bool has_kernel(const smg_tuning *tuning, uint64_t at) {
    for (int i = 0; i < tuning->count; i++)
        if (tuning->items[i].at == at) return true;
    return false;
}

/* What make_tuning made has room for them. A schedule that was the fastest of several stays. */
static void add_apart(const smg_tuner *t, smg_tuning *io) {
    for (int i = 0; i < t->apart.count; i++)
        if (!has_kernel(io, t->apart.items[i].at) && !has_kernel(&t->known, t->apart.items[i].at))
            io->items[io->count++] = t->apart.items[i];
    smg_tuning_sort(io);
}

static smg_status make_tuning(smg_tuner *t, smg_tuning *out) {
    *out = t->cuts;
    out->items = SMG_ARENA_ARRAY(t->arena, smg_measured, (size_t)(t->kernels.count + t->apart.count) + 1);
    out->count = 0;
    if (out->items == NULL) return SMG_MEMORY;
    for (int i = 0; i < t->kernels.count; i++) {
        const smg_tune_kernel *k = &t->kernels.items[i];
        const smg_tune_row *best = &k->rows.items[k->best];
        if (k->unknown || isinf(k->rows.items[0].median)) continue;
        out->items[out->count++] = (smg_measured){.at = best->choice.at,
                                                  .schedule = best->choice.schedule,
                                                  .seconds = best->median,
                                                  .cheapest = k->rows.items[0].median};
    }
    smg_tuning_sort(out);
    return SMG_OK;
}

static smg_status tell(smg_tuner *t, smg_tuned *out) {
    smg_tuned_kernel *kernels = SMG_ARENA_ARRAY(t->arena, smg_tuned_kernel, (size_t)t->kernels.count + 1);
    if (kernels == NULL) return SMG_MEMORY;
    out->kernels = kernels;
    for (int i = 0; i < t->kernels.count; i++) {
        const smg_tune_kernel *k = &t->kernels.items[i];
        if (isinf(k->rows.items[0].median)) continue; /* stopped before */
        kernels[out->kernel_count++] = (smg_tuned_kernel){.name = k->name,
                                                          .calls = k->calls,
                                                          .tried = k->rows.count,
                                                          .rank = k->best,
                                                          .cheapest = k->rows.items[0].median,
                                                          .fastest = k->rows.items[k->best].median};
    }
    return SMG_OK;
}

/* ---- both plans in turns --------------------------------------------------------------------------- */

/* Of the plan of prices and the tuned one: medians and minima of runs. */
typedef struct turns {
    smg_model *models[2];
    list lists[2];
    double median[2], least[2];
} turns;

/* The caches are its own. */
static smg_status run_twice(smg_program *program) {
    SMG_TRY(smg_program_run(program));
    return smg_program_run(program);
}

static smg_status profile(smg_tuner *t, turns *both, bool on) {
    for (int i = 0; i < 2; i++) {
        SMG_TRY(smg_program_set_profile(smg_model_program(both->models[i]), on));
        SMG_TRY(smg_model_run(both->models[i], t->options->inputs, t->options->input_count, NULL, 0));
        SMG_TRY(warm_up(smg_model_program(both->models[i])));
    }
    return SMG_OK;
}

static bool all_settled(const smg_tuner *t) {
    bool all = true;
    for (int i = 0; i < t->kernels.count; i++) all = all && t->kernels.items[i].settled;
    return all;
}

/* Each kernel in the one plan and in the other: one that is no faster there gives way to the next. */
static smg_status time_kernels(smg_tuner *t, turns *both) {
    for (int i = 0; i < t->kernels.count; i++)
        for (int r = 0; r < t->kernels.items[i].rows.count; r++) t->kernels.items[i].rows.items[r].count = 0;
    SMG_TRY(profile(t, both, true));
    double start = smg_clock_seconds();
    for (int rounds = 0; !is_enough(smg_clock_seconds() - start, t->options->seconds, rounds); rounds++) {
        for (int i = 0; i < 2; i++) {
            SMG_TRY(run_twice(both->lists[i].program));
            add_times(&both->lists[i]);
        }
        if (is_over(t, "turns", 1) && (t->stopped || rounds + 1 >= FEWEST_ROUNDS)) break;
    }
    if (t->stopped) return SMG_OK; /* before there were enough */
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        smg_tune_row *first = &k->rows.items[0], *best = &k->rows.items[k->best];
        if (k->settled) continue;
        first->median = median_of(first->seconds, first->count);
        double median = median_of(best->seconds, best->count);
        k->settled = median <= MARGIN * first->median;
        best->beaten = !k->settled;
        if (k->settled) best->median = median;
    }
    return SMG_OK;
}

static smg_status time_runs(smg_tuner *t, turns *both, const char *phase, double asked) {
    double *seconds[2];
    int rounds = 0;
    SMG_TRY(profile(t, both, false));
    for (int i = 0; i < 2; i++) {
        seconds[i] = SMG_ARENA_ARRAY(t->arena, double, MOST_ROUNDS + 1);
        if (seconds[i] == NULL) return SMG_MEMORY;
    }
    double start = smg_clock_seconds();
    while (!is_enough(smg_clock_seconds() - start, asked, rounds)) {
        for (int i = 0; i < 2; i++) {
            SMG_TRY(run_twice(smg_model_program(both->models[i])));
            seconds[i][rounds] = smg_model_seconds(both->models[i]);
        }
        rounds++;
        if (is_over(t, phase, 1) && (t->stopped || rounds >= FEWEST_ROUNDS)) break;
    }
    if (t->stopped) return SMG_OK;
    for (int i = 0; i < 2; i++) {
        both->median[i] = median_of(seconds[i], rounds);
        both->least[i] = seconds[i][0]; /* in order now */
    }
    return SMG_OK;
}

/* *out_right: the tuned one gives what it should. */
static smg_status open_both(smg_tuner *t, const smg_tuning *tuning, turns *both, bool *out_right) {
    smg_open_parts parts = t->parts;
    SMG_TRY(smg_tuner_open(t, &parts, &both->models[0]));
    parts.measured = tuning;
    SMG_TRY(smg_tuner_open_checked(t, &parts, "the fastest schedules together", &both->models[1], out_right));
    for (int i = 0; i < 2; i++) SMG_TRY(make_list(t, both->models[i], &both->lists[i]));
    return SMG_OK;
}

/* ---- who is wrong ---------------------------------------------------------------------------------- */

/* Candidates of the kernels [from, to) alone: those that are not settled. */
static smg_status are_right(smg_tuner *t, int from, int to, bool *out_right) {
    smg_tuning tuning;
    smg_model *model = NULL;
    int *best = SMG_ARENA_ARRAY(t->arena, int, (size_t)t->kernels.count + 1);
    if (best == NULL) return SMG_MEMORY;
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        best[i] = k->best;
        if (!k->settled && (i < from || i >= to)) k->best = 0;
    }
    smg_status status = make_tuning(t, &tuning);
    for (int i = 0; i < t->kernels.count; i++) t->kernels.items[i].best = best[i];
    smg_open_parts parts = t->parts;
    parts.measured = &tuning;
    if (status == SMG_OK) status = smg_tuner_open_checked(t, &parts, "some of them", &model, out_right);
    smg_model_close(model);
    return status;
}

static void blame(smg_tuner *t, smg_tune_kernel *k) {
    if (k->settled || k->rows.items[k->best].beaten) return;
    k->rows.items[k->best].beaten = k->rows.items[k->best].wrong = true;
    t->wrong++;
}

/* The results of candidates of [from, to) are wrong. Those that are so by themselves do not count; where none is, none
 * of them does. */
static smg_status find_wrong(smg_tuner *t, int from, int to) {
    int before = t->wrong, middle = from + (to - from) / 2;
    for (int half = 0; to - from > 1 && half < 2; half++) {
        int first = half == 0 ? from : middle, end = half == 0 ? middle : to;
        bool any = false, right = true;
        for (int i = first; i < end; i++) any = any || !t->kernels.items[i].settled;
        if (any) SMG_TRY(are_right(t, first, end, &right));
        if (!right) SMG_TRY(find_wrong(t, first, end));
    }
    bool none = t->wrong == before;
    for (int i = from; i < to && none; i++) blame(t, &t->kernels.items[i]);
    return SMG_OK;
}

/* On a busy machine one of the two may be slower by chance; a plan that is the same is no slower. */
static bool is_slower(const smg_tuner *t, const turns *both) {
    bool same = t->known.cut_count + t->cuts_faster == 0;
    for (int i = 0; i < t->kernels.count; i++) same = same && t->kernels.items[i].best == 0;
    return !same && both->median[1] > NOISE * both->median[0] && both->least[1] > both->least[0];
}

/* The next choices in the place of those that were beaten, and all of them in turns with the plan of prices. */
static smg_status compare(smg_tuner *t, bool last) {
    if (is_over(t, "turns", TURNS_END)) {
        give_up(t);
        return SMG_OK;
    }
    smg_tuning tuning;
    turns both = {.models = {NULL, NULL}};
    for (int i = 0; i < t->kernels.count; i++)
        if (!t->kernels.items[i].settled) next_best(&t->kernels.items[i], last);
    if (all_settled(t)) return SMG_OK;
    bool right = false;
    SMG_TRY(make_tuning(t, &tuning));
    smg_status status = open_both(t, &tuning, &both, &right);
    if (status == SMG_OK && right) status = time_kernels(t, &both);
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    return status == SMG_OK && !right ? find_wrong(t, 0, t->kernels.count) : status;
}

/* The whole, in turns with the plan of prices. *out_left: it is slower, or wrong. */
static smg_status compare_whole(smg_tuner *t, const smg_tuning *tuning, smg_tuned *out, bool *out_left) {
    static const smg_open_parts of_prices = {0};
    turns both = {.models = {NULL, NULL}};
    smg_open_parts parts = t->parts;
    parts.measured = tuning;
    bool right = false;
    smg_status status = smg_tuner_open(t, &of_prices, &both.models[0]);
    if (status == SMG_OK) status = smg_tuner_open_checked(t, &parts, "the tuned plan", &both.models[1], &right);
    if (status == SMG_OK && right) status = time_runs(t, &both, "whole", t->options->seconds);
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    out->untuned = both.median[0];
    out->tuned = both.median[1];
    t->wrong += status == SMG_OK && !right;
    *out_left = !right || is_slower(t, &both);
    return status;
}

/* ---- cuts ------------------------------------------------------------------------------------------ */

typedef struct proposal {
    smg_cut cut;
    double weight; /* seconds of what it is about, by price */
} proposal;

typedef struct proposals {
    SMG_ARRAY(proposal) items;
} proposals;

static bool is_decided(const smg_tuner *t, uint64_t at) {
    for (int i = 0; i < t->cuts.cut_count; i++)
        if (t->cuts.cuts[i].at == at) return true;
    return false;
}

static smg_status add_proposal(smg_tuner *t, uint64_t at, bool together, double weight, proposals *all) {
    if (is_decided(t, at)) return SMG_OK;
    for (int i = 0; i < all->items.count; i++) {
        if (all->items.items[i].cut.at != at) continue;
        all->items.items[i].weight += weight;
        return SMG_OK;
    }
    proposal *slot = SMG_ARRAY_PUSH(t->arena, &all->items);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (proposal){{.at = at, .together = together}, weight};
    return SMG_OK;
}

static int by_weight(const void *a, const void *b) {
    double x = ((const proposal *)a)->weight, y = ((const proposal *)b)->weight;
    return (x < y) - (x > y);
}

static smg_status propose(smg_tuner *t, const smg_plan *plan, proposals *out) {
    *out = (proposals){{0}};
    for (int i = 0; i < plan->steps.count; i++) {
        const smg_pstep *step = &plan->steps.items[i];
        const smg_joint *joint = &step->joint;
        if (step->node_count > 1) SMG_TRY(add_proposal(t, step->choice.at, false, step->price.seconds, out));
        if (joint->at != 0 && joint->seconds < FAR_PLAN * joint->apart)
            SMG_TRY(add_proposal(t, joint->at, true, joint->apart, out));
    }
    if (out->items.count > 0) qsort(out->items.items, (size_t)out->items.count, sizeof(proposal), by_weight);
    return SMG_OK;
}

static bool same_kernels(const smg_plan *a, const smg_plan *b) {
    bool same = a->steps.count == b->steps.count;
    for (int i = 0; same && i < a->steps.count; i++) same = a->steps.items[i].choice.at == b->steps.items[i].choice.at;
    return same;
}

/* Is there another plan with the cut, and its price near? */
static smg_status is_near(smg_tuner *t, const smg_compilation *now, const smg_tuning *with, bool *out_near) {
    smg_compilation *c = NULL;
    smg_compile_options options = smg_compile_options_of(t->desc);
    double bytes, flops, before, after;
    options.measured = with;
    options.rejected = t->parts.rejected;
    options.rejected_count = t->parts.rejected_count;
    *out_near = false;
    smg_status status = smg_compile_plan(t->ctx, t->source->graph, &now->target, &options, &c);
    if (status == SMG_NO_FIT) smg_context_clear_error(t->ctx);
    if (status != SMG_OK) return status == SMG_NO_FIT ? SMG_OK : status;
    smg_compile_work(now, &bytes, &flops, &before);
    smg_compile_work(c, &bytes, &flops, &after);
    *out_near = !same_kernels(c->plan, now->plan) && after < FAR_PLAN * before;
    smg_compilation_destroy(c);
    return SMG_OK;
}

/* *io_model is of the plan at hand; that with the cut takes its place where it is faster. */
static smg_status try_cut(smg_tuner *t, smg_cut cut, smg_model **io_model) {
    smg_tuning with;
    bool near = false;
    turns both = {.models = {*io_model, NULL}};
    SMG_TRY(smg_tuning_copy(&t->cuts, t->arena, &with)); /* has room for one more */
    with.cuts[with.cut_count++] = cut;
    SMG_TRY(is_near(t, smg_model_compilation(*io_model), &with, &near));
    if (!near) return SMG_OK;
    smg_open_parts parts = t->parts;
    parts.measured = &with;
    t->cuts_tried++;
    bool right = false;
    SMG_TRY(smg_tuner_open_checked(t, &parts, "another cut", &both.models[1], &right));
    t->wrong += !right;
    if (!right) {
        smg_model_close(both.models[1]);
        return SMG_OK;
    }
    smg_status status = time_runs(t, &both, "cuts", t->options->seconds / CUT_SHARE);
    bool faster =
        status == SMG_OK && !t->stopped && both.median[1] < MARGIN * both.median[0] && both.least[1] < both.least[0];
    bool slower = status == SMG_OK && !t->stopped && cut.together && both.median[1] > NOISE * both.median[0] &&
                  both.least[1] > both.least[0];
    smg_model_close(faster ? *io_model : both.models[1]);
    if (t->untuned == 0 && !t->stopped) t->untuned = t->best = both.median[0];
    with.cuts[with.cut_count - 1].seconds = both.median[cut.together ? 1 : 0];
    with.cuts[with.cut_count - 1].apart = both.median[cut.together ? 0 : 1];
    with.cuts[with.cut_count - 1].together = cut.together && !slower; /* neighbours that are better as they are */
    if (faster || slower) t->cuts = with;
    if (!faster) return status;
    t->best = fmin(t->best, both.median[1]);
    *io_model = both.models[1];
    t->cuts_faster++;
    return SMG_OK;
}

static smg_status try_cuts(smg_tuner *t, smg_model **io_model) {
    proposals all;
    SMG_TRY(propose(t, smg_model_compilation(*io_model)->plan, &all));
    for (int i = 0; i < all.items.count && i < MOST_PROPOSALS && t->cuts_tried < MOST_CUTS; i++) {
        if (is_over(t, "cuts", CUTS_END)) break;
        smg_progress(t->ctx, "cuts", (size_t)i, (size_t)all.items.count, "");
        SMG_TRY(try_cut(t, all.items.items[i].cut, io_model));
    }
    smg_progress(t->ctx, "cuts", 1, 1, "");
    return SMG_OK;
}

/* The plan of prices, or one that is cut otherwise and faster. Where the device is lost no more cuts are tried. */
static smg_status find_plan(smg_tuner *t) {
    smg_model *model = NULL;
    t->parts.measured = &t->cuts;
    SMG_TRY(smg_tuner_ask_unfused(t, &model));
    smg_status status = model != NULL ? time_apart(t, model) : SMG_OK, tried = SMG_OK;
    smg_model_close(model);
    model = NULL;
    if (status == SMG_OK) status = smg_tuner_open_first(t, &model);
    if (status == SMG_OK) status = know_rejected(t, model);
    if (status == SMG_OK && t->desc->goal == SMG_GOAL_TIME) tried = try_cuts(t, &model);
    if (status == SMG_OK && tried == SMG_OK) status = know_rejected(t, model);
    smg_model_close(model);
    if (tried != SMG_DEVICE || status != SMG_OK) return status != SMG_OK ? status : tried;
    if (t->desc->on != NULL) return tried;
    smg_log(t->ctx, SMG_LOG_WARNING, "no more cuts are tried: %s", smg_context_error(t->ctx));
    smg_context_clear_error(t->ctx);
    close_device(t);
    return open_device(t);
}

/* ---- rates ----------------------------------------------------------------------------------------- */

static bool same_plan(const smg_plan *a, const smg_plan *b) {
    bool same = same_kernels(a, b);
    for (int i = 0; same && i < a->steps.count; i++)
        same = a->steps.items[i].choice.schedule == b->steps.items[i].choice.schedule;
    return same;
}

/* Prices that are nearer may still choose worse: the plan of prices by the new rates, in turns with that by the old. */
static smg_status compare_rates(smg_tuner *t, const smg_target *fitted, smg_fitted_rates *told) {
    smg_open_parts parts = {.rejected = t->parts.rejected, .rejected_count = t->parts.rejected_count};
    turns both = {.models = {NULL, NULL}};
    bool same = true;
    smg_status status = smg_tuner_open(t, &parts, &both.models[0]);
    parts.target = fitted;
    if (status == SMG_OK) status = smg_tuner_open(t, &parts, &both.models[1]);
    if (status == SMG_OK)
        same = same_plan(smg_model_compilation(both.models[0])->plan, smg_model_compilation(both.models[1])->plan);
    if (!same) status = time_runs(t, &both, "whole", t->options->seconds);
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    told->untuned_before = both.median[0];
    told->untuned_after = both.median[1];
    if (t->stopped && !same) told->refused = "they were not tried, because tuning was stopped";
    if (status != SMG_OK || both.median[1] <= NOISE * both.median[0]) return status;
    told->refused = smg_arena_format(t->arena, "a run planned by them would take %.2f us instead of %.2f",
                                     both.median[1] * 1e6, both.median[0] * 1e6);
    return told->refused != NULL ? SMG_OK : SMG_MEMORY;
}

/* Of what the passes say of all schedules, or turns of some. */
static smg_status fit_rates(smg_tuner *t, smg_tuned *out) {
    smg_compile_options options = smg_compile_options_of(t->desc);
    int count = 0, room = 0;
    smg_target fitted;
    smg_fitted_rates *told = SMG_ARENA_NEW(t->arena, smg_fitted_rates);
    for (int i = 0; i < t->kernels.count; i++) room += t->kernels.items[i].rows.count;
    smg_timing *timings = SMG_ARENA_ARRAY(t->arena, smg_timing, (size_t)room + 1);
    if (timings == NULL || told == NULL) return SMG_MEMORY;
    for (int i = 0; i < t->kernels.count; i++) {
        const smg_tune_kernel *k = &t->kernels.items[i];
        for (int r = 0; r < k->rows.count; r++) {
            const smg_tune_row *of = &k->rows.items[r];
            if (of->median > 0 && !isinf(of->median) && !of->wrong)
                timings[count++] = (smg_timing){of->choice.at, of->choice.schedule, of->median};
        }
    }
    options.measured = &t->cuts;
    options.rejected = t->parts.rejected;
    options.rejected_count = t->parts.rejected_count;
    options.passes = (smg_passes){.rivals = t->options->rivals, .to = t->options->rivals + 1};
    smg_progress(t->ctx, "rates", 0, 1, "");
    SMG_TRY(
        smg_compile_fit_rates(t->ctx, t->source->graph, t->device, &options, timings, count, t->arena, &fitted, told));
    if (told->refused == NULL) SMG_TRY(compare_rates(t, &fitted, told));
    if (told->refused == NULL) SMG_TRY(smg_vk_keep_rates(t->device, &fitted));
    smg_progress(t->ctx, "rates", 1, 1, "");
    out->rates = told;
    return SMG_OK;
}

/* Who the result is of. */
static smg_status tell_device(smg_tuner *t, smg_tuned *out) {
    const smg_target *target = smg_vk_target(t->device);
    out->device = smg_arena_string(t->arena, target->name);
    out->driver = smg_arena_string(t->arena, target->driver);
    return out->device != NULL && out->driver != NULL ? SMG_OK : SMG_MEMORY;
}

static smg_status tune(smg_tuner *t, smg_tuned *out) {
    smg_tuning tuning;
    bool left = false; /* the tuned plan is */
    SMG_TRY(open_device(t));
    SMG_TRY(tell_device(t, out));
    const smg_target target = *smg_vk_target(t->device);
    SMG_TRY(smg_tuning_known(t->ctx, &target, t->options->path, t->arena, &t->known));
    t->cuts = t->known;
    t->cuts.count = 0;
    SMG_TRY(find_plan(t));
    if (!t->stopped) SMG_TRY(measure_all(t));
    for (int i = 1; (i == 1 || !all_settled(t)) && t->kernels.count > 0; i++) SMG_TRY(compare(t, i == MOST_TURNS));
    SMG_TRY(make_tuning(t, &tuning)); /* with what was measured last */
    bool found = tuning.count + tuning.cut_count > 0;
    add_apart(t, &tuning);
    if (!t->stopped && found) SMG_TRY(compare_whole(t, &tuning, out, &left));
    out->cuts = t->cuts_faster;
    out->cuts_tried = t->cuts_tried;
    SMG_TRY(tell(t, out));
    out->failed = t->failed;
    out->wrong = t->wrong;
    out->stopped = t->stopped;
    if (!left && found) SMG_TRY(smg_tuning_write(t->ctx, &target, t->options->path, &tuning, t->arena, &out->path));
    return t->options->fit_rates && !t->stopped ? fit_rates(t, out) : SMG_OK;
}

smg_status smg_compile_tune(smg_context *ctx, smg_source *source, const smg_model_desc *desc,
                            const smg_tune_options *options, smg_arena *arena, smg_tuned *out_tuned) {
    smg_tuner t = {
        .ctx = ctx, .source = source, .desc = desc, .options = options, .arena = arena, .start = smg_clock_seconds()};
    *out_tuned = (smg_tuned){0};
    smg_status status = smg_desc_check(ctx, desc);
    if (status == SMG_OK) status = smg_model_check_device(ctx, desc->on);
    if (status == SMG_OK) status = tune(&t, out_tuned);
    close_device(&t);
    out_tuned->seconds = smg_clock_seconds() - t.start;
    return status;
}

#else

smg_status smg_compile_tune(smg_context *ctx, smg_source *source, const smg_model_desc *desc,
                            const smg_tune_options *options, smg_arena *arena, smg_tuned *out_tuned) {
    (void)source, (void)desc, (void)options, (void)arena;
    *out_tuned = (smg_tuned){0};
    return smg_fail(ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: there is nothing to measure");
}

#endif
