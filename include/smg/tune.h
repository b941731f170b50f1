/* smg/tune.h: measure a model's kernels on the device once; opens of it take what was fastest from then on.
 *
 *     smg_dim sizes[] = {{"batch", 1}, {"sequence", 128}};
 *     smg_model_desc model = {.dims = sizes, .dim_count = 2};
 *     smg_tune_desc tune = {.seconds = 30};
 *     smg_tuned *tuned;
 *     if (smg_model_tune(ctx, "all-MiniLM-L6-v2", &model, &tune, &tuned) != SMG_OK) puts(smg_context_error(ctx));
 *     else printf("%g us before, %g us now\n", tuned->untuned * 1e6, tuned->tuned * 1e6);
 *     smg_tuned_destroy(tuned);
 *
 * Other cuts into kernels, and sums in other numbers of parts, are run in turns with the plan of prices, then the best
 * schedules of every kernel between its neighbours. What is faster, and gives what the unfused plan gives, is kept in a
 * file: by device, driver and version of smg, and in it by structure and sizes, so that other models with such kernels
 * profit. Models that are open stay what they are. The file has all else that was measured, too: the next call of the
 * same model and sizes goes on where this one was stopped, or failed, and measures nothing again. To measure all of it
 * anew, name another file or remove this one.
 *
 * Ownership: the result is the caller's (smg_tuned_destroy), before its context goes. Threads, errors: as smg/model.h.
 */
#ifndef SMG_TUNE_PUBLIC_H
#define SMG_TUNE_PUBLIC_H

#include "smg/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_tune_progress {
    const char *phase;    /* "cuts", "schedules", "turns", "whole": in this order */
    double seconds;       /* since the call began */
    double untuned, best; /* seconds of a run, as far as they are known: by prices, and the best so far; 0: not yet */
} smg_tune_progress;

/* All fields may be zero. */
typedef struct smg_tune_desc {
    /* Of a run that stands for others; read during the call. What is left out is random, or has its own value. */
    const smg_tensor *inputs;
    int input_count;
    uint64_t seed;
    double seconds; /* that all of it takes, about; 0: as long as there is something to try */
    int schedules;  /* of each kernel, the best by price; 0: 16 */
    /* Fit the device's rates that calibration does not measure, and what prices count beside them, to what was
     * measured, so that prices of models that were not are nearer, too: as a new revision beside the cached facts,
     * which every later plan of the device is made with (smg_model_desc.nominal_rates: without). Takes some seconds
     * more. INVALID without a cache folder, or with a model that asks for no_calibrate or nominal_rates. */
    bool fit_rates;
    /* Where the result goes: added to what the file has. NULL: the cache folder, where opens look by themselves;
     * another file is named by smg_model_desc.tuning. */
    const char *path;
    /* Called between measurements. false: no more; what was faster in turns by then is taken, and all that was measured
     * is kept for the next call. */
    bool (*progress)(void *user, const smg_tune_progress *at);
    void *user;
} smg_tune_desc;

typedef struct smg_tuned_kernel {
    const char *name;         /* of the first of its structure in the plan */
    int calls, tried;         /* in one run; schedules, the one of the lowest price among them */
    int rank;                 /* by price, of the fastest */
    double cheapest, fastest; /* seconds: the one of the lowest price, the fastest */
} smg_tuned_kernel;

typedef struct smg_fitted_rate {
    const char *name; /* a key of target files; "matrix": the fastest product of matrices, others by the same factor */
    double nominal, before, after; /* measured alone or assumed; that plans were made with; that were fitted */
} smg_fitted_rate;

typedef struct smg_fitted_rates {
    int revision;           /* of these rates, if they are taken */
    const char *refused;    /* why plans are made with the rates that there were; NULL: they are made with these */
    int kernels, schedules; /* that were measured; of all kernels */
    /* Geometric mean of price to time, or of time to price, whichever is above 1; of kernels by rates that are fitted
     * to the others; share of pairs of schedules that prices order as times do. */
    double error_before, error_after, error_left_out;
    double agreed_before, agreed_after;
    double untuned_before, untuned_after; /* seconds of a run planned by prices, medians in turns; 0: it was not run */
    int rate_count;                       /* all that were measured alone, and the costs that were moved */
    const smg_fitted_rate *rates;
} smg_fitted_rates;

typedef struct smg_tuned {
    const char *device, *driver;
    int kernel_count; /* distinct ones, as they come */
    const smg_tuned_kernel *kernels;
    double untuned, tuned; /* seconds of a run, medians of both in turns; 0: it did not come to that */
    double seconds;        /* that tuning took */
    int cuts, cuts_tried;  /* where kernels are together or apart, or sums in parts, as prices would not have them */
    int failed;            /* schedules that the driver does not build; schedules and cuts that lose the device */
    int wrong;             /* schedules and cuts whose results are not those of the unfused plan: they do not count */
    bool stopped;          /* by the caller, before its end */
    const char *path;      /* where all that was measured was written; NULL: there was nothing */
    const smg_fitted_rates *rates; /* NULL: nobody asked for them, or it was stopped */
    bool taken; /* plans are made by what was confirmed in turns; false: the tuned plan is no faster, or wrong, or it
                 * did not come to that */
} smg_tuned;

/* Opens the device that the description names (or uses the one that is open) and measures at its dims. Fails as
 * smg_model_open does; DEVICE: the plan of prices itself loses the device, or the device does not come back, as one of
 * the application's (smg_model_desc.on) never does; what was measured before is written all the same. INVALID: less
 * than no time or schedules; there is no cache folder and no path. out_tuned may be NULL. */
SMG_API smg_status smg_model_tune(smg_context *ctx, const char *path, const smg_model_desc *model,
                                  const smg_tune_desc *tune, smg_tuned **out_tuned);
/* The graph is borrowed for the call. */
SMG_API smg_status smg_model_tune_graph(smg_context *ctx, smg_graph *graph, const smg_model_desc *model,
                                        const smg_tune_desc *tune, smg_tuned **out_tuned);
SMG_API void smg_tuned_destroy(smg_tuned *tuned); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
