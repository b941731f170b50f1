/* plan_fit.c: rates and costs of a target, from times of kernels on it.
 *
 * Prices are no linear function of rates (a core waits or computes, memory is beside that), so the price itself is what
 * is fitted: one rate after the other goes up or down by a step while prices come nearer, then steps get smaller. A
 * time that is far from its price counts by its distance, not by its square: a kernel that spills says nothing of
 * rates. Rates that calibration measured stay. Each other one is drawn to what it was, as much for every step, so that
 * one that explains little stays, and is bounded by the nominal one. What was found has to hold for kernels that it was
 * not fitted to: rates are fitted again and again with some of the kernels left out, which judge them. Costs
 * (target/costs.def) move behind the rates, and only where the kernels that are left out come nearer by that once more.
 */
#include <math.h>

#include "plan/plan_internal.h"

#define FEWEST_KERNELS 4
#define FEWEST_SCHEDULES 24
#define MOST_FOLDS 8
#define FURTHEST 2.0   /* octaves from the nominal rate */
#define FIRST_STEP 0.5 /* octaves */
#define STEPS 3        /* each half of the one before */
#define MOST_SWEEPS 16 /* of one size of steps */
#define FAR 0.25       /* of the logarithm of price to time: from there on distance counts, not its square */
#define PULL 0.01      /* of the error, what an octave has to bring */
#define COST_KERNELS 8 /* the fewest that costs are fitted to */
#define SAME 0.05      /* two times are as good as equal */
#define BETTER 0.98    /* of the error there was is what is worth another revision */
#define PAIRS_LOST 1   /* that are in order before and not after: one tells nothing */

typedef struct fit {
    const smg_timed *timed;
    int count;
    const smg_target *nominal, *before;
    smg_target *target; /* with the rates that are tried */
    int *kernel;        /* per timed: its number */
    int *schedules;     /* per kernel */
    int kernels;
    double *price;   /* per timed, at the rates that are tried */
    int folds, fold; /* kernels whose number leaves this one are left out; -1: none are */
    bool judged;     /* by those that are left out, and them alone */
    int rates;       /* as many of the list move, the first ones */
    double octaves[SMG_RATES];
} fit;

static bool counts(const fit *f, int i) {
    return f->fold < 0 || (f->kernel[i] % f->folds == f->fold) == f->judged;
}

/* ---- how near ---------------------------------------------------------------------------------------- */

static void price_all(fit *f) {
    for (int i = 0; i < f->count; i++) {
        smg_price price = f->timed[i].needs;
        if (!counts(f, i)) continue;
        plan_price(f->timed[i].kernel, f->target, f->timed[i].symbols, &price);
        f->price[i] = price.seconds;
    }
}

static double distance(const fit *f, int i) {
    return fabs(log(f->price[i] / f->timed[i].seconds));
}

/* Mean over the kernels that count of what `of` says of their schedules. */
static double mean(const fit *f, double (*of)(double distance)) {
    double sum = 0, weight = 0;
    for (int i = 0; i < f->count; i++) {
        if (!counts(f, i)) continue;
        double each = 1.0 / f->schedules[f->kernel[i]];
        sum += each * of(distance(f, i));
        weight += each;
    }
    return weight > 0 ? sum / weight : 0;
}

static double plain(double distance) {
    return distance;
}

static double robust(double distance) {
    return distance < FAR ? 0.5 * distance * distance : FAR * (distance - 0.5 * FAR);
}

static double agreed(const fit *f, int *out_pairs) {
    double same = 0;
    int pairs = 0;
    for (int i = 0; i < f->count; i++) {
        for (int j = i + 1; j < f->count; j++) {
            double order = log(f->timed[i].seconds / f->timed[j].seconds);
            if (f->kernel[i] != f->kernel[j] || fabs(order) < SAME) continue;
            same += order * log(f->price[i] / f->price[j]) > 0;
            pairs++;
        }
    }
    *out_pairs = pairs;
    return pairs > 0 ? same / pairs : 1;
}

static smg_nearness nearness(fit *f) {
    smg_nearness told = {0};
    price_all(f);
    told.error = exp(mean(f, plain));
    told.agreed = agreed(f, &told.pairs);
    return told;
}

/* ---- the search -------------------------------------------------------------------------------------- */

static void set_rates(fit *f) {
    *f->target = *f->before;
    for (int r = 0; r < SMG_RATES; r++)
        if (f->octaves[r] != 0) smg_target_scale_rate(f->target, (smg_rate)r, exp2(f->octaves[r]));
}

/* Bounds, and what makes plans other ones in kind. */
static bool is_allowed(const fit *f) {
    for (int r = 0; r < SMG_RATES; r++) {
        double nominal = smg_target_rate(f->nominal, (smg_rate)r), rate = smg_target_rate(f->target, (smg_rate)r);
        if (nominal > 0 && fabs(log2(rate / nominal)) > FURTHEST + 1e-9) return false;
        if (rate < smg_rate_least((smg_rate)r)) return false;
    }
    return f->target->cache_bandwidth >= f->target->bandwidth &&
           smg_target_hides_loads(f->target) == smg_target_hides_loads(f->nominal);
}

static double cost(fit *f) {
    double pull = 0;
    set_rates(f);
    if (!is_allowed(f)) return HUGE_VAL;
    price_all(f);
    for (int r = 0; r < SMG_RATES; r++) pull += PULL * fabs(f->octaves[r]);
    return mean(f, robust) + pull;
}

/* true: the rate goes there. */
static bool try_step(fit *f, int rate, double step, double *io_least) {
    f->octaves[rate] += step;
    double now = cost(f);
    if (now < *io_least - 1e-9) {
        *io_least = now;
        return true;
    }
    f->octaves[rate] -= step;
    return false;
}

/* What calibration measured is known, and stays: the other numbers are to explain the rest. */
static bool moves(const fit *f, smg_rate rate) {
    return smg_target_rate(f->before, rate) > 0 && smg_target_rate_from(f->nominal, rate) != SMG_FACT_MEASURED;
}

static bool sweep(fit *f, double step, double *io_least) {
    bool moved = false;
    for (int r = 0; r < f->rates; r++) {
        if (!moves(f, (smg_rate)r)) continue;
        moved = try_step(f, r, step, io_least) || try_step(f, r, -step, io_least) || moved;
    }
    return moved;
}

static void search_steps(fit *f, int rates) {
    f->rates = rates;
    double least = cost(f);
    for (int finer = 0; finer < STEPS; finer++)
        for (int i = 0; i < MOST_SWEEPS && sweep(f, ldexp(FIRST_STEP, -finer), &least); i++) continue;
}

/* Costs only say what rates leave open: these go first. */
static void search(fit *f, int fold, bool with_costs) {
    f->fold = fold;
    f->judged = false;
    for (int r = 0; r < SMG_RATES; r++) f->octaves[r] = 0;
    search_steps(f, SMG_RATES_MEASURED);
    if (with_costs) search_steps(f, SMG_RATES);
    set_rates(f);
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static smg_status number_kernels(fit *f, smg_arena *arena) {
    f->kernel = SMG_ARENA_ARRAY(arena, int, (size_t)f->count + 1);
    f->schedules = SMG_ARENA_ARRAY(arena, int, (size_t)f->count + 1);
    f->price = SMG_ARENA_ARRAY(arena, double, (size_t)f->count + 1);
    if (f->kernel == NULL || f->schedules == NULL || f->price == NULL) return SMG_MEMORY;
    for (int i = 0; i < f->count; i++) {
        int first = 0;
        while (f->timed[first].at != f->timed[i].at) first++;
        f->kernel[i] = first < i ? f->kernel[first] : f->kernels++;
        f->schedules[f->kernel[i]]++;
    }
    return SMG_OK;
}

/* Error of kernels by the rates of the others. */
static double left_out(fit *f, bool with_costs) {
    double sum = 0;
    f->folds = f->kernels < MOST_FOLDS ? f->kernels : MOST_FOLDS;
    for (int fold = 0; fold < f->folds; fold++) {
        search(f, fold, with_costs);
        f->judged = true;
        price_all(f);
        int members = (f->kernels - fold + f->folds - 1) / f->folds;
        sum += members * mean(f, plain);
    }
    return exp(sum / f->kernels);
}

static const char *refusal(const smg_fit *told, smg_arena *arena, bool *out_refused) {
    const smg_nearness *before = &told->before, *after = &told->after;
    *out_refused = true;
    if (told->kernels < FEWEST_KERNELS || told->schedules < FEWEST_SCHEDULES)
        return smg_arena_format(arena,
                                "%d kernels with %d schedules were measured, at least %d with %d are needed to fit "
                                "rates",
                                told->kernels, told->schedules, FEWEST_KERNELS, FEWEST_SCHEDULES);
    if (after->error > BETTER * before->error)
        return smg_arena_format(arena, "prices would be off by %.3f times instead of %.3f, which is no better",
                                after->error, before->error);
    if (told->left_out >= before->error)
        return smg_arena_format(arena,
                                "prices of kernels that rates are not fitted to would be off by %.3f times instead of "
                                "%.3f",
                                told->left_out, before->error);
    if ((before->agreed - after->agreed) * after->pairs > PAIRS_LOST + 0.5)
        return smg_arena_format(arena, "prices would order %.1f %% of the schedules right instead of %.1f %%",
                                100 * after->agreed, 100 * before->agreed);
    *out_refused = false;
    return NULL;
}

static void attempt(fit *f, bool with_costs, smg_fit *told, smg_target *out_target) {
    told->left_out = left_out(f, with_costs);
    search(f, -1, with_costs);
    told->after = nearness(f);
    *out_target = *f->target;
}

/* Costs too, where kernels that they are not fitted to come nearer by that. */
static smg_status fit_costs(fit *f, smg_arena *arena, smg_fit *io_told, smg_target *io_fitted, bool *io_refused) {
    smg_fit told = *io_told;
    smg_target fitted;
    bool refused;
    attempt(f, true, &told, &fitted);
    told.refused = refusal(&told, arena, &refused);
    if (refused && told.refused == NULL) return SMG_MEMORY;
    if (refused || (!*io_refused && told.left_out > BETTER * io_told->left_out)) return SMG_OK;
    *io_told = told;
    *io_fitted = fitted;
    *io_refused = false;
    return SMG_OK;
}

smg_status smg_plan_fit_rates(const smg_timed *timed, int count, const smg_target *nominal, smg_arena *arena,
                              smg_target *io_target, smg_fit *out_fit) {
    smg_target before = *io_target, tried = before, fitted = before;
    bool refused;
    fit f = {.timed = timed, .count = count, .nominal = nominal, .before = &before, .target = &tried, .fold = -1};
    *out_fit = (smg_fit){.schedules = count};
    SMG_TRY(number_kernels(&f, arena));
    if (!is_allowed(&f)) { /* fitted to other nominal rates */
        before = tried = *nominal;
        before.revision = tried.revision = io_target->revision;
    }
    out_fit->kernels = f.kernels;
    out_fit->before = out_fit->after = nearness(&f);
    bool enough = f.kernels >= FEWEST_KERNELS && count >= FEWEST_SCHEDULES;
    if (enough) attempt(&f, false, out_fit, &fitted);
    out_fit->refused = refusal(out_fit, arena, &refused);
    if (refused && out_fit->refused == NULL) return SMG_MEMORY;
    if (enough && f.kernels >= COST_KERNELS) SMG_TRY(fit_costs(&f, arena, out_fit, &fitted, &refused));
    if (refused) return SMG_OK;
    *io_target = fitted;
    io_target->revision++;
    return SMG_OK;
}
