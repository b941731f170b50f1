/* compile_tune.c: the schedules of a plan's kernels, measured.
 *
 * The run list of one program goes through the plan several times, a pass each for the schedules that were taken, for
 * the next by price of every kernel, and so on, with a time stamp behind each step. So each schedule is measured where
 * it will run, between the same neighbours, with the caches as these leave them and the data of a real run; what
 * disturbs the device disturbs all passes alike; weights lie on the device once. Kernels of equal structure and sizes
 * (the layers of a model) are one: their times come together.
 *
 * Before that, cuts (compile_tune_cuts.c).
 *
 * What is fastest by a margin is run again, in a program of all of these in turns with the plan of prices: what is no
 * faster there gives way to the next. Where the whole is slower in the end plans stay as they are.
 *
 * What gives other results than the plan in which each operation is its own kernel (compile_tune_answer.c) does not
 * count; it is found by halving the candidates. Nor does what loses the device: that is opened again, and a pass is
 * found by halving the passes, a candidate as a wrong one is.
 *
 * Each part has a share of the time there is; what a part does not come to is left to prices. Who stops it gets what
 * was faster in turns by then, without a look at the whole. All that was measured is kept (compile_tune_kept.c), also
 * where tuning fails, and is not measured again. */
#include <math.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define MOST_SAMPLES 4096
#define MOST_TURNS 4   /* of both plans; after the last what is not settled is left to prices */
#define PASSES_END 0.7 /* of the time there is */
#define TURNS_END 0.9
#define FEW_PASSES 4 /* are measured together where the time is limited */

/* ---- measuring ------------------------------------------------------------------------------------ */

static smg_tune_kernel *kernel_of(smg_tuner *t, const smg_pstep *step) {
    for (int i = 0; i < t->kernels.count; i++)
        if (t->kernels.items[i].rows.items[0].choice.at == step->choice.at) return &t->kernels.items[i];
    smg_tune_kernel *k = SMG_ARRAY_PUSH(t->arena, &t->kernels);
    smg_tune_row *first = k != NULL ? SMG_ARRAY_PUSH(t->arena, &k->rows) : NULL;
    if (first == NULL) return NULL;
    k->name = smg_arena_string(t->arena, step->name);
    first->choice = step->choice;
    first->median = HUGE_VAL;
    return k->name != NULL ? k : NULL;
}

static smg_tune_row *row_of(smg_tuner *t, smg_tune_kernel *k, const smg_choice *choice) {
    smg_tune_row *found = NULL;
    for (int i = 0; i < k->rows.count && found == NULL; i++)
        if (k->rows.items[i].choice.schedule == choice->schedule) found = &k->rows.items[i];
    if (found == NULL) {
        found = SMG_ARRAY_PUSH(t->arena, &k->rows);
        if (found == NULL) return NULL;
        found->median = HUGE_VAL;
    }
    found->choice = *choice;
    if (found->seconds == NULL) found->seconds = SMG_ARENA_ARRAY(t->arena, double, MOST_SAMPLES);
    return found->seconds != NULL ? found : NULL;
}

/* Steps of the run list, with the rows that their times belong to. */
typedef struct list {
    smg_program *program;
    smg_tune_kernel **kernels;
    int *rows; /* of the kernel; -1: nobody asks after it, or an earlier pass has it */
    int count;
} list;

/* Of the plan's steps, as many times as there are passes, and a few times before. The schedule of the price is in the
 * first of all passes, and where a kernel has no more. */
static smg_status make_list(smg_tuner *t, const smg_compilation *c, smg_program *program, list *out) {
    const smg_passes *passes = &c->options.passes;
    bool known = t->kernels.count > 0;
    *out = (list){.program = program, .count = c->plan->steps.count};
    int leads = smg_compile_leads(c);
    if (passes->rivals > 0) out->count *= leads + passes->to - passes->from;
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
        bool again = smg_compile_pass(c, i) > 0 && r == k->rows.items;
        bool before = i < leads * c->plan->steps.count;
        out->rows[i] = again || before ? -1 : (int)(r - k->rows.items);
    }
    return SMG_OK;
}

static void add_times(const list *l) {
    for (int i = 0; i < l->count; i++) {
        smg_tune_row *r = l->rows[i] >= 0 ? &l->kernels[i]->rows.items[l->rows[i]] : NULL;
        if (r == NULL || r->count == MOST_SAMPLES) continue;
        r->seconds[r->count++] = smg_program_step_time(l->program, i);
        r->doubted = false;
    }
}

/* One of these lost the device. What they took until then counts where the device does not come back to tell. */
static void doubt_times(const list *l) {
    for (int i = 0; i < l->count; i++) {
        smg_tune_row *r = l->rows[i] >= 0 ? &l->kernels[i]->rows.items[l->rows[i]] : NULL;
        if (r == NULL || r->count == 0) continue;
        r->median = smg_tuner_median(r->seconds, r->count);
        r->count = 0;
        r->doubted = true;
    }
}

/* The others were measured again. */
static void forget_doubted(smg_tuner *t) {
    for (int i = 0; i < t->kernels.count; i++)
        for (int r = 0; r < t->kernels.items[i].rows.count; r++) {
            smg_tune_row *row = &t->kernels.items[i].rows.items[r];
            if (row->doubted) row->median = HUGE_VAL;
            row->doubted = false;
        }
}

static bool all_known(const smg_tuner *t, const smg_plan *plan) {
    bool all = true;
    for (int i = 0; i < plan->steps.count && all; i++) {
        const smg_choice *choice = &plan->steps.items[i].choice;
        all = smg_timing_find(t->known.timings, t->known.timing_count, choice->at, choice->schedule) != NULL;
    }
    return all;
}

/* Operations as kernels of their own: what the report compares fused ones with. */
static smg_status time_apart(smg_tuner *t, smg_model *model) {
    const smg_compilation *c = smg_model_compilation(model);
    smg_program *program = smg_model_program(model);
    int count = c->plan->steps.count, in_row;
    if (all_known(t, c->plan)) return SMG_OK;
    double *seconds = SMG_ARENA_ARRAY(t->arena, double, (size_t)(count * SMG_TUNE_ROUNDS) + 1);
    if (seconds == NULL) return SMG_MEMORY;
    SMG_TRY(smg_tuner_make_ready(t, model, true, &in_row));
    for (int r = 0; r < SMG_TUNE_ROUNDS; r++) {
        SMG_TRY(smg_tuner_run_program(t, program));
        for (int i = 0; i < count; i++) seconds[i * SMG_TUNE_ROUNDS + r] = smg_program_step_time(program, i);
    }
    for (int i = 0; i < count; i++) {
        const smg_choice *choice = &c->plan->steps.items[i].choice;
        smg_timing *slot = SMG_ARRAY_PUSH(t->arena, &t->apart);
        if (slot == NULL) return SMG_MEMORY;
        double median = smg_tuner_median(&seconds[(ptrdiff_t)i * SMG_TUNE_ROUNDS], SMG_TUNE_ROUNDS);
        *slot = (smg_timing){choice->at, choice->schedule, median, SMG_TIMING_ALONE};
    }
    return SMG_OK;
}

/* The unfused plan: for its results, and for what its steps take. Without either tuning goes on. */
static smg_status run_unfused(smg_tuner *t) {
    smg_model *model = NULL;
    smg_status status = smg_tuner_ask_unfused(t, &model);
    if (status == SMG_OK && model != NULL) status = time_apart(t, model);
    smg_model_close(model);
    return smg_tuner_recover(t, status, "the unfused plan does not count");
}

static smg_status time_passes(smg_tuner *t, smg_model *model, list *out) {
    SMG_TRY(make_list(t, smg_model_compilation(model), smg_model_program(model), out));
    SMG_TRY(smg_program_set_profile(out->program, true));
    SMG_TRY(smg_tuner_run(t, model));
    SMG_TRY(smg_tuner_warm_up(t, out->program));
    double start = smg_clock_seconds();
    for (int rounds = 0; !smg_tuner_is_enough(smg_clock_seconds() - start, t->options->seconds, rounds); rounds++) {
        SMG_TRY(smg_tuner_run_program(t, out->program));
        add_times(out);
        if (smg_tuner_is_over(t, "schedules", 1) && (t->stopped || rounds + 1 >= SMG_TUNE_FEWEST)) break;
    }
    return SMG_OK;
}

/* *out: what samples are of. */
static smg_status measure(smg_tuner *t, int from, int to, list *out) {
    smg_open_parts parts = t->parts;
    smg_model *model = NULL;
    parts.passes = (smg_passes){.rivals = t->options->rivals, .from = from, .to = to};
    smg_progress(t->ctx, "schedules", (size_t)from, (size_t)to, "");
    SMG_TRY(smg_tuner_open(t, &parts, &model));
    t->failed += smg_model_compilation(model)->options.driver.rejected_count - t->parts.driver.rejected_count;
    smg_status status = time_passes(t, model, out);
    smg_model_close(model);
    smg_progress(t->ctx, "schedules", (size_t)to, (size_t)to, "");
    return status;
}

/* Where the device is lost, which pass it was: the others are measured apart. */
static smg_status measure_apart(smg_tuner *t, int from, int to) {
    list l = {0};
    bool one = to - from == 1;
    smg_status status = measure(t, from, to, &l);
    if (status == SMG_DEVICE) doubt_times(&l);
    if (status != SMG_DEVICE || (one && from == 0)) return status; /* that is the plan, which loses it by itself */
    SMG_TRY(smg_tuner_recover(t, status, one ? "schedules are not measured" : "measured apart"));
    t->failed += one;
    if (one) return SMG_OK;
    int middle = from + (to - from) / 2;
    SMG_TRY(measure_apart(t, from, middle));
    return measure_apart(t, middle, to);
}

/* ---- what was fastest ----------------------------------------------------------------------------- */

/* Without a sample the time stays what an earlier run measured. */
static void sort_rows(smg_tune_kernel *k) {
    for (int i = 0; i < k->rows.count; i++) {
        smg_tune_row *r = &k->rows.items[i];
        if (r->count > 0) r->median = smg_tuner_median(r->seconds, r->count);
    }
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
    t->best = isinf(best) ? 0 : best;
}

/* All schedules that passes would run, with what earlier runs know of them. out_needed: per pass, is there one of
 * which nothing is known? */
static smg_status recall(smg_tuner *t, int passes, bool *out_needed) {
    smg_compile_options options = smg_compile_options_of(t->desc);
    smg_compilation *c = NULL;
    smg_target target;
    list l = {0};
    for (int i = 0; i < passes; i++) out_needed[i] = true;
    if (t->known.timing_count == 0) return SMG_OK;
    options.measured = &t->cuts;
    options.driver = t->parts.driver;
    options.passes = (smg_passes){.rivals = passes - 1, .to = passes};
    smg_vk_plan_target(t->device, t->desc->nominal_rates, &target);
    SMG_TRY(smg_compile_plan(t->ctx, t->source->graph, &target, &options, &c));
    smg_status status = make_list(t, c, NULL, &l);
    if (status == SMG_OK) {
        smg_tuner_recall(t);
        for (int i = 0; i < passes; i++) out_needed[i] = false;
        for (int i = 0; i < l.count; i++)
            if (l.rows[i] >= 0 && isinf(l.kernels[i]->rows.items[l.rows[i]].median))
                out_needed[smg_compile_pass(c, i)] = true;
    }
    smg_compilation_destroy(c);
    if (status != SMG_OK) return status;
    sort_all(t);
    return SMG_OK;
}

/* All passes that there is something to learn from, or as many as there is time for. */
static smg_status measure_all(smg_tuner *t) {
    int passes = t->options->rivals + 1, together = t->options->limit > 0 ? FEW_PASSES : passes;
    bool first = true, *needed = SMG_ARENA_ARRAY(t->arena, bool, (size_t)passes);
    if (needed == NULL) return SMG_MEMORY;
    SMG_TRY(recall(t, passes, needed));
    for (int from = 0, to; from < passes; from = to) {
        for (to = from; to < passes && needed[to] && to - from < together;) to++;
        if (to == from) to++;
        if (!needed[from]) continue;
        if (!first && smg_tuner_is_over(t, "schedules", PASSES_END)) break;
        first = false;
        SMG_TRY(measure_apart(t, from, to));
        forget_doubted(t);
        sort_all(t);
    }
    return SMG_OK;
}

/* The fastest by the passes of those that were not tried in turns, if it is worth that; else the lowest price. */
static void next_best(smg_tune_kernel *k, bool last) {
    double least = SMG_TUNE_MARGIN * k->rows.items[0].median;
    k->best = 0;
    for (int i = 1; i < k->rows.count && !last && !isinf(least); i++) {
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

/* Of the first `rows`, those that have one. */
static int count_times(const smg_tune_kernel *k, int rows) {
    int count = 0;
    for (int i = 0; i < rows; i++) count += !isinf(k->rows.items[i].median);
    return count;
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
                                                          .tried = count_times(k, k->rows.count),
                                                          .rank = count_times(k, k->best),
                                                          .cheapest = k->rows.items[0].median,
                                                          .fastest = k->rows.items[k->best].median};
    }
    return SMG_OK;
}

/* ---- both plans in turns --------------------------------------------------------------------------- */

static bool all_settled(const smg_tuner *t) {
    bool all = true;
    for (int i = 0; i < t->kernels.count; i++) all = all && t->kernels.items[i].settled;
    return all;
}

/* Each kernel in the one plan and in the other: one that is no faster there gives way to the next. */
static smg_status time_kernels(smg_tuner *t, smg_tune_turns *both) {
    list lists[2];
    int in_row[2];
    for (int i = 0; i < 2; i++)
        SMG_TRY(make_list(t, smg_model_compilation(both->models[i]), smg_model_program(both->models[i]), &lists[i]));
    for (int i = 0; i < t->kernels.count; i++)
        for (int r = 0; r < t->kernels.items[i].rows.count; r++) t->kernels.items[i].rows.items[r].count = 0;
    for (int i = 0; i < 2; i++) SMG_TRY(smg_tuner_make_ready(t, both->models[i], true, &in_row[i]));
    double start = smg_clock_seconds();
    for (int rounds = 0; !smg_tuner_is_enough(smg_clock_seconds() - start, t->options->seconds, rounds); rounds++) {
        for (int i = 0; i < 2; i++) {
            SMG_TRY(smg_tuner_run_turn(t, lists[i].program, in_row[i]));
            add_times(&lists[i]);
        }
        if (smg_tuner_is_over(t, "turns", 1) && (t->stopped || rounds + 1 >= SMG_TUNE_FEWEST)) break;
    }
    if (t->stopped) return SMG_OK; /* before there were enough */
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        smg_tune_row *first = &k->rows.items[0], *best = &k->rows.items[k->best];
        if (k->settled) continue;
        first->median = smg_tuner_median(first->seconds, first->count);
        double median = smg_tuner_median(best->seconds, best->count);
        k->settled = median <= SMG_TUNE_MARGIN * first->median;
        best->beaten = !k->settled;
        if (k->settled) best->median = median;
    }
    return SMG_OK;
}

/* What turns are with. Once more where the device is lost: that is no candidate's doing. */
static smg_status open_first(smg_tuner *t, const smg_open_parts *parts, smg_model **out_model) {
    smg_status status = smg_tuner_open(t, parts, out_model);
    if (status != SMG_DEVICE) return status;
    SMG_TRY(smg_tuner_recover(t, status, "once more"));
    return smg_tuner_open(t, parts, out_model);
}

/* *out_right: the tuned one gives what it should. */
static smg_status open_both(smg_tuner *t, const smg_tuning *tuning, smg_tune_turns *both, bool *out_right) {
    smg_open_parts parts = t->parts;
    SMG_TRY(open_first(t, &parts, &both->models[0]));
    parts.measured = tuning;
    return smg_tuner_open_checked(t, &parts, "the fastest schedules together", &both->models[1], out_right);
}

/* ---- who is wrong ---------------------------------------------------------------------------------- */

/* Candidates of the kernels [from, to) alone: those that are not settled. *out_lost: they lose the device, and are not
 * right either. */
static smg_status are_right(smg_tuner *t, int from, int to, bool *out_right, bool *out_lost) {
    smg_tuning tuning;
    smg_model *model = NULL;
    int *best = SMG_ARENA_ARRAY(t->arena, int, (size_t)t->kernels.count + 1);
    if (best == NULL) return SMG_MEMORY;
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        best[i] = k->best;
        if (!k->settled && (i < from || i >= to)) k->best = 0;
    }
    smg_status status = smg_tuner_decide(t, &tuning);
    for (int i = 0; i < t->kernels.count; i++) t->kernels.items[i].best = best[i];
    smg_open_parts parts = t->parts;
    parts.measured = &tuning;
    if (status == SMG_OK) status = smg_tuner_open_checked(t, &parts, "some of them", &model, out_right);
    smg_model_close(model);
    *out_lost = status == SMG_DEVICE;
    if (*out_lost) *out_right = false;
    return smg_tuner_recover(t, status, "some of them");
}

static void blame(smg_tuner *t, smg_tune_kernel *k, bool lost) {
    if (k->settled || k->rows.items[k->best].beaten) return;
    k->rows.items[k->best].beaten = k->rows.items[k->best].wrong = true;
    *(lost ? &t->failed : &t->wrong) += 1;
}

/* The results of candidates of [from, to) are wrong, or the device was lost. Those that are so by themselves do not
 * count; where none is, none of them does. */
static smg_status find_wrong(smg_tuner *t, int from, int to, bool lost) {
    int before = t->wrong + t->failed, middle = from + (to - from) / 2;
    for (int half = 0; to - from > 1 && half < 2; half++) {
        int first = half == 0 ? from : middle, end = half == 0 ? middle : to;
        bool any = false, right = true, loses = false;
        for (int i = first; i < end; i++) any = any || !t->kernels.items[i].settled;
        if (any) SMG_TRY(are_right(t, first, end, &right, &loses));
        if (!right) SMG_TRY(find_wrong(t, first, end, loses));
    }
    bool none = t->wrong + t->failed == before;
    for (int i = from; i < to && none; i++) blame(t, &t->kernels.items[i], lost);
    return SMG_OK;
}

/* On a busy machine one of the two may be slower by chance; a plan that is the same is no slower. */
static bool is_slower(const smg_tuner *t, const smg_tune_turns *both) {
    bool same = t->known.cut_count + t->cuts_faster == 0;
    for (int i = 0; i < t->kernels.count; i++) same = same && t->kernels.items[i].best == 0;
    return !same && both->median[1] > SMG_TUNE_NOISE * both->median[0] && both->least[1] > both->least[0];
}

/* The next choices in the place of those that were beaten, and all of them in turns with the plan of prices. */
static smg_status compare(smg_tuner *t, bool last) {
    if (smg_tuner_is_over(t, "turns", TURNS_END)) {
        give_up(t);
        return SMG_OK;
    }
    smg_tuning tuning;
    smg_tune_turns both = {.models = {NULL, NULL}};
    for (int i = 0; i < t->kernels.count; i++)
        if (!t->kernels.items[i].settled) next_best(&t->kernels.items[i], last);
    if (all_settled(t)) return SMG_OK;
    bool right = false;
    SMG_TRY(smg_tuner_decide(t, &tuning));
    smg_status status = open_both(t, &tuning, &both, &right);
    if (status == SMG_OK && right) status = time_kernels(t, &both);
    bool lost = status == SMG_DEVICE && both.models[0] != NULL; /* the plan of prices loses it by itself otherwise */
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    if (status == SMG_OK && right) return SMG_OK;
    if (status != SMG_OK && !lost) return status;
    SMG_TRY(smg_tuner_recover(t, status, "the fastest schedules together"));
    return find_wrong(t, 0, t->kernels.count, lost);
}

/* The whole, in turns with the plan of prices. *out_left: it is slower, or wrong, or loses the device. */
static smg_status compare_whole(smg_tuner *t, const smg_tuning *tuning, smg_tuned *out, bool *out_left) {
    static const smg_open_parts of_prices = {0};
    smg_tune_turns both = {.models = {NULL, NULL}};
    smg_open_parts parts = t->parts;
    parts.measured = tuning;
    bool right = false;
    SMG_TRY(open_first(t, &of_prices, &both.models[0]));
    *out_left = true;
    smg_status status = smg_tuner_open_checked(t, &parts, "the tuned plan", &both.models[1], &right);
    t->wrong += status == SMG_OK && !right;
    if (status == SMG_OK && right) status = smg_tuner_time_runs(t, &both, "whole", t->options->seconds);
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    t->failed += status == SMG_DEVICE;
    if (status != SMG_OK) return smg_tuner_recover(t, status, "the tuned plan does not count");
    out->untuned = both.median[0];
    out->tuned = both.median[1];
    *out_left = !right || is_slower(t, &both);
    return SMG_OK;
}

/* ---- rates ----------------------------------------------------------------------------------------- */

static bool same_plan(const smg_plan *a, const smg_plan *b) {
    bool same = smg_tuner_same_kernels(a, b);
    for (int i = 0; same && i < a->steps.count; i++)
        same = a->steps.items[i].choice.schedule == b->steps.items[i].choice.schedule;
    return same;
}

/* Prices that are nearer may still choose worse: the plan of prices by the new rates, in turns with that by the old. */
static smg_status compare_rates(smg_tuner *t, const smg_target *fitted, smg_fitted_rates *told) {
    smg_open_parts parts = {.driver = t->parts.driver};
    smg_tune_turns both = {.models = {NULL, NULL}};
    bool same = true;
    smg_status status = smg_tuner_open(t, &parts, &both.models[0]);
    parts.target = fitted;
    if (status == SMG_OK) status = smg_tuner_open(t, &parts, &both.models[1]);
    if (status == SMG_OK)
        same = same_plan(smg_model_compilation(both.models[0])->plan, smg_model_compilation(both.models[1])->plan);
    if (!same) status = smg_tuner_time_runs(t, &both, "whole", t->options->seconds);
    for (int i = 0; i < 2; i++) smg_model_close(both.models[i]);
    told->untuned_before = both.median[0];
    told->untuned_after = both.median[1];
    if (t->stopped && !same) told->refused = "they were not tried, because tuning was stopped";
    if (status == SMG_DEVICE) told->refused = "a run planned by them loses the device";
    if (status != SMG_OK) return smg_tuner_recover(t, status, "fitted rates are not taken");
    if (both.median[1] <= SMG_TUNE_NOISE * both.median[0]) return SMG_OK;
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
                timings[count++] =
                    (smg_timing){.at = of->choice.at, .schedule = of->choice.schedule, .seconds = of->median};
        }
    }
    options.measured = &t->cuts;
    options.driver = t->parts.driver;
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

/* All that is measured. *out_left: plans stay as they are. */
static smg_status search(smg_tuner *t, smg_tuned *out, bool *out_left) {
    smg_tuning tuning;
    SMG_TRY(run_unfused(t));
    SMG_TRY(smg_tuner_find_cuts(t));
    if (!t->stopped) SMG_TRY(measure_all(t));
    for (int i = 1; (i == 1 || !all_settled(t)) && t->kernels.count > 0; i++) SMG_TRY(compare(t, i == MOST_TURNS));
    SMG_TRY(smg_tuner_decide(t, &tuning)); /* with what was measured last */
    *out_left = tuning.count + tuning.cut_count == 0;
    if (!t->stopped && !*out_left) SMG_TRY(compare_whole(t, &tuning, out, out_left));
    return SMG_OK;
}

/* What was measured before the search failed. The failure stays what it is. */
static void keep_rest(smg_tuner *t, const smg_target *target, smg_status failure, bool left) {
    smg_tuning tuning;
    const char *path = NULL, *error = smg_arena_string(t->arena, smg_context_error(t->ctx));
    if (failure == SMG_MEMORY || error == NULL) return;
    smg_context_clear_error(t->ctx);
    sort_all(t);
    give_up(t);
    smg_status status = smg_tuner_decide(t, &tuning);
    if (status == SMG_OK) status = smg_tuner_keep(t, target, left ? NULL : &tuning, &path);
    if (status != SMG_OK)
        smg_log(t->ctx, SMG_LOG_WARNING, "what was measured is not kept: %s", smg_context_error(t->ctx));
    else if (path != NULL)
        smg_log(t->ctx, SMG_LOG_WARNING, "what was measured before the failure is kept in %s", path);
    smg_context_clear_error(t->ctx);
    if (error[0] != '\0') smg_fail(t->ctx, failure, "%s", error);
}

static smg_status tune(smg_tuner *t, smg_tuned *out) {
    smg_tuning tuning;
    bool left = false;
    SMG_TRY(smg_tuner_open_device(t));
    SMG_TRY(tell_device(t, out));
    const smg_target target = *smg_vk_target(t->device);
    SMG_TRY(smg_tuning_known(t->ctx, &target, t->options->path, t->arena, &t->known));
    t->cuts = t->known;
    t->cuts.count = t->cuts.timing_count = 0;
    smg_status status = search(t, out, &left);
    if (status != SMG_OK) {
        keep_rest(t, &target, status, left);
        return status;
    }
    out->cuts = t->cuts_faster;
    out->cuts_tried = t->cuts_tried;
    SMG_TRY(tell(t, out));
    out->failed = t->failed;
    out->wrong = t->wrong;
    out->stopped = t->stopped;
    SMG_TRY(smg_tuner_decide(t, &tuning));
    SMG_TRY(smg_tuner_keep(t, &target, left ? NULL : &tuning, &out->path));
    out->taken = !left && out->path != NULL;
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
    smg_tuner_close_device(&t);
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
