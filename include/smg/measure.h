/* smg/measure.h: facts and rates of a device; times and memory of a model, by step and by kernel.
 *
 *     smg_model_set_profile(model, true);
 *     smg_model_run(model, in, 1, &out, 1);
 *     for (int i = 0; i < smg_model_step_count(model); i++) {
 *         smg_step_info step;
 *         smg_model_step(model, i, &step);
 *         printf("%s %g us, %g of them by its price\n", step.name, step.seconds * 1e6, step.estimate * 1e6);
 *     }
 *
 * It takes models that were compiled and those of bundles. Threads, errors: as smg/rt.h. Not in libsmg-rt.
 */
#ifndef SMG_MEASURE_H
#define SMG_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "smg/device.h"
#include "smg/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ------------------------------------------------------------------------------------------ */

/* What a model that is compiled for the device waits for, ahead: optional features are tried (with `matrices` those of
 * products of matrices, too: one or two seconds) and rates are measured (two seconds). A file of the cache folder has
 * them afterwards. */
SMG_API smg_status smg_device_calibrate(smg_device *device, bool matrices);

typedef struct smg_device_facts {
    const char *name, *driver;    /* live as long as the device */
    double bandwidth, arithmetic; /* bytes and floating-point operations a second: measured, or assumed */
    int revision; /* of the rates that plans are made with (smg_tune_desc.fit_rates); 0: those that were measured */
} smg_device_facts;
/* INVALID: a NULL. */
SMG_API smg_status smg_device_get_facts(const smg_device *device, smg_device_facts *out_facts);
/* Every fact that plans are made from, with its origin: a target file, which smg_compile_desc.target takes. */
SMG_API smg_status smg_device_write_target(const smg_device *device, smg_sink sink);

/* A feature that was tried, now or when the cache file was made. */
typedef struct smg_device_verdict {
    const char *what; /* "fp16", "matrix 8x8x8 f16 f16 f32 f32": keys of a target file */
    const char *why;  /* it failed; "": it passed */
} smg_device_verdict;
SMG_API int smg_device_verdict_count(const smg_device *device); /* 0: nothing was tried */
/* Lives as long as the device. false: index out of range. */
SMG_API bool smg_device_get_verdict(const smg_device *device, int index, smg_device_verdict *out_verdict);

/* ---- models ------------------------------------------------------------------------------------------- */

/* The device that the model runs on, also where it opened one itself; lives as long as the model does. */
SMG_API smg_device *smg_model_device(const smg_model *model);

/* What the first run of these sizes would build and place, before it: pipelines, memory, a recording. Sizes that are
 * not named are what the model was compiled for.
 * NOT_FOUND, INVALID: as the run; DEVICE_MEMORY, NO_FIT: they do not fit the device. */
SMG_API smg_status smg_model_prepare(smg_model *model, const smg_dim *dims, int dim_count);
/* The last run once more, on the device alone: the same inputs, states from what they were, outputs stay there. Its
 * time (smg_model_seconds) has no copies in it. INVALID: there was no run, it failed, it used tensors on the device,
 * sizes were prepared since, or one is in flight. */
SMG_API smg_status smg_model_repeat(smg_model *model);

typedef struct smg_memory_info {
    int64_t weights;         /* bytes, as they came; and those made of them when the model was opened: */
    int64_t derived;         /* .. */
    int64_t values;          /* between kernels, at the sizes of the last run */
    int64_t values_apart;    /* what these would take without sharing */
    int64_t states;          /* with room for what the next run leaves */
    int64_t prepare;         /* the most that making the derived ones held beside them, for a moment */
    int64_t peak;            /* the most of all that was held at a time; recordings and pipelines are not counted */
    int prepare_kernels;     /* that made the derived ones */
    double prepare_seconds;  /* in this time */
    int barriers, pipelines; /* of a run; built so far */
} smg_memory_info;
SMG_API smg_status smg_model_get_memory(smg_model *model, smg_memory_info *out_memory);
/* Seconds that opening the model took: the device, and pipelines with the upload. Either may be NULL. */
SMG_API void smg_model_open_seconds(const smg_model *model, double *out_device, double *out_program);

/* From the next run on every step has time stamps of its own, which costs time between steps. INVALID: a run is in
 * flight. */
SMG_API smg_status smg_model_set_profile(smg_model *model, bool on);
/* From the next run on each run is made so many times in one submission, one behind the other, and smg_model_seconds
 * is that of one: what a device takes to begin, when it was idle, is not in it. 0: as many as take a millisecond,
 * by the last run, at most 100; 1: as it is without. Where steps have time stamps, all times are the last one's. It is
 * made once where a run may be cut into several submissions. *out_runs, which may be NULL: the number. INVALID: a
 * negative one; a run is in flight. */
SMG_API smg_status smg_model_set_runs(smg_model *model, int runs, int *out_runs);

/* A dispatch of the last run. */
typedef struct smg_step_info {
    const char *name;
    int kernel;          /* its index; several steps may be of one */
    double seconds;      /* on the device; 0: that run was not profiled */
    double estimate;     /* seconds by its price, at the sizes that prices are for */
    double bytes, flops; /* that it moves and computes at these sizes, as modelled */
} smg_step_info;
SMG_API int smg_model_step_count(const smg_model *model);
/* Names live as long as the model, until a hint changes it. false: index out of range. */
SMG_API bool smg_model_step(const smg_model *model, int index, smg_step_info *out_step);

/* What the driver's compiler tells of a kernel's code, the most of its forms; below 0: it tells nothing. It does for
 * pipelines that were built with $SMG_STATS=1, and of spills mostly always. */
typedef struct smg_kernel_info {
    const char *name;
    double registers, shared_bytes, spills;
} smg_kernel_info;
SMG_API int smg_model_kernel_count(const smg_model *model);
SMG_API bool smg_model_kernel(const smg_model *model, int index, smg_kernel_info *out_kernel);

#ifdef __cplusplus
}
#endif
#endif
