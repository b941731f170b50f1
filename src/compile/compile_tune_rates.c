/* compile_tune_rates.c: rates of a device, from the schedules that were measured on it. The plan is made once more with
 * all of them, which is where programs and prices are. */
#include <stdlib.h>

#include "compile/compile.h"

#if SMG_VULKAN

static int by_schedule(const void *a, const void *b) {
    const smg_timing *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->schedule > y->schedule) - (x->schedule < y->schedule);
}

typedef struct timings {
    smg_timing *items; /* by ascending nodes and schedule */
    int count;
    smg_timed *timed;
    int timed_count;
} timings;

/* Each is taken once, by the first kernel that it is of. */
static void add_timed(timings *t, const smg_choice *choice, const smg_kernel *kernel, const smg_price *price,
                      const int64_t *symbols) {
    smg_timing key = {.at = choice->at, .schedule = choice->schedule};
    smg_timing *found = bsearch(&key, t->items, (size_t)t->count, sizeof(key), by_schedule);
    if (found == NULL || found->seconds <= 0) return;
    t->timed[t->timed_count++] =
        (smg_timed){.kernel = kernel, .needs = *price, .symbols = symbols, .at = choice->at, .seconds = found->seconds};
    found->seconds = 0;
}

static smg_status collect(const smg_compilation *c, const smg_timing *measured, int count, smg_arena *arena,
                          timings *out) {
    *out = (timings){.items = SMG_ARENA_ARRAY(arena, smg_timing, (size_t)count + 1),
                     .count = count,
                     .timed = SMG_ARENA_ARRAY(arena, smg_timed, (size_t)count + 1)};
    if (out->items == NULL || out->timed == NULL) return SMG_MEMORY;
    if (count == 0) return SMG_OK;
    memcpy(out->items, measured, (size_t)count * sizeof(*measured));
    qsort(out->items, (size_t)count, sizeof(*out->items), by_schedule);
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_pstep *step = &c->plan->steps.items[i];
        add_timed(out, &step->choice, step->kernel, &step->price, c->nominal);
        for (int r = 0; r < step->rivals.count; r++) {
            const smg_rival *rival = &step->rivals.items[r];
            add_timed(out, &rival->choice, rival->kernel, &rival->price, c->nominal);
        }
    }
    return SMG_OK;
}

static smg_status tell(const smg_fit *fit, const smg_target *nominal, const smg_target *before, const smg_target *after,
                       smg_arena *arena, smg_fitted_rates *told) {
    smg_fitted_rate *rates = SMG_ARENA_ARRAY(arena, smg_fitted_rate, SMG_RATES);
    if (rates == NULL) return SMG_MEMORY;
    *told = (smg_fitted_rates){.revision = (int)after->revision,
                               .refused = fit->refused,
                               .kernels = fit->kernels,
                               .schedules = fit->schedules,
                               .error_before = fit->before.error,
                               .error_after = fit->after.error,
                               .error_left_out = fit->left_out,
                               .agreed_before = fit->before.agreed,
                               .agreed_after = fit->after.agreed,
                               .rates = rates};
    for (int r = 0; r < SMG_RATES; r++) {
        const smg_rate rate = (smg_rate)r;
        double was = smg_target_rate(nominal, rate);
        if (was <= 0) continue;
        if (r >= SMG_RATES_MEASURED && smg_target_rate(before, rate) == was && smg_target_rate(after, rate) == was)
            continue;
        rates[told->rate_count++] = (smg_fitted_rate){.name = smg_rate_word(rate),
                                                      .nominal = was,
                                                      .before = smg_target_rate(before, rate),
                                                      .after = smg_target_rate(after, rate)};
    }
    return SMG_OK;
}

smg_status smg_compile_fit_rates(smg_context *ctx, const smg_graph *g, smg_vk_device *device,
                                 const smg_compile_options *options, const smg_timing *measured, int count,
                                 smg_arena *arena, smg_target *out_target, smg_fitted_rates *out_rates) {
    smg_compilation *c = NULL;
    smg_target nominal, before;
    timings all;
    smg_fit fit;
    smg_vk_plan_target(device, true, &nominal);
    smg_vk_plan_target(device, false, &before);
    *out_target = before;
    SMG_TRY(smg_compile_plan(ctx, g, &before, options, &c));
    smg_status status = collect(c, measured, count, arena, &all);
    if (status == SMG_OK) status = smg_plan_fit_rates(all.timed, all.timed_count, &nominal, arena, out_target, &fit);
    smg_compilation_destroy(c);
    return status == SMG_OK ? tell(&fit, &nominal, &before, out_target, arena, out_rates) : status;
}

#endif
