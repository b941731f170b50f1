/* cli_ranks.c: smg bench --ranks N: the same plan with the schedules of the first N ranks by price, one after the
 * other, so that a choice can be looked at beside what it was chosen from. */
#include <stdlib.h>

#include "cli/cli.h"

enum { LEAST_RUNS = 5 };
static const double next_seconds = 0.1; /* of warming up behind a shorter one */
static const double rank_seconds = 0.1;

typedef struct ranked {
    int kernels, in_row;      /* runs that one measurement is of */
    double estimate, compile; /* seconds */
    cli_spread spread;
    enum { UNCHECKED, PASSED, FAILED } check;
} ranked;

/* *io_busy: by the clock, when the rank before was measured; 0: none was. */
static smg_status time_runs(const cli_job *job, smg_model *model, double *io_busy, double *seconds, ranked *r) {
    const cli_options *o = job->o;
    int64_t limit = o->repeat > 0 ? o->repeat : CLI_MAX_REPEATS;
    int runs = 0;
    bool paused = smg_command_seconds() - *io_busy > CLI_PAUSE_SECONDS;
    CLI_TRY(cli_warm_up(model, paused ? CLI_WARM_SECONDS : next_seconds));
    CLI_TRY(cli_run_in_row(model, &job->arrays, &r->in_row));
    double start = smg_command_seconds();
    while (runs < limit && (o->repeat > 0 || runs < LEAST_RUNS || smg_command_seconds() - start < rank_seconds)) {
        CLI_TRY(smg_model_repeat(model));
        seconds[runs++] = smg_model_seconds(model);
    }
    *io_busy = smg_command_seconds();
    r->spread = cli_spread_of(seconds, runs);
    return SMG_OK;
}

static smg_status check_outputs(cli_job *job, smg_compilation *c, ranked *r) {
    smg_check *check = NULL;
    CLI_TRY(smg_compilation_check(c, job->arrays.all, &check));
    r->check = check->pass ? PASSED : FAILED;
    job->pass = job->pass && check->pass;
    smg_check_destroy(check);
    return SMG_OK;
}

static smg_status time_opened(cli_job *job, smg_model *model, double *io_busy, double *seconds, ranked *r) {
    const cli_options *o = job->o;
    cli_arrays *a = &job->arrays;
    smg_compilation_facts facts;
    CLI_TRY(smg_model_prepare(model, a->dims, a->dim_count));
    if (*io_busy <= 0) CLI_TRY(cli_fill_arrays(o, a));
    CLI_TRY(smg_compilation_get_facts(smg_model_compilation(model), &facts));
    r->estimate = facts.estimate;
    r->kernels = facts.kernels;
    for (int i = 0; i < a->output_count; i++) a->outputs[i].data = NULL; /* were the last model's */
    CLI_TRY(cli_run_arrays(model, a));
    if (o->check) CLI_TRY(check_outputs(job, smg_model_compilation(model), r));
    return time_runs(job, model, io_busy, seconds, r);
}

static smg_status time_rank(cli_job *job, smg_device *device, int rank, double *io_busy, double *seconds, ranked *r) {
    smg_model *model = NULL;
    smg_model_desc desc = cli_job_desc(job);
    desc.on = device;
    desc.rank = rank;
    desc.tuning = "";         /* ranks are by price */
    desc.no_calibrate = true; /* the device is shared and calibrated already */
    double start = smg_command_seconds();
    CLI_TRY(smg_source_open_model(job->source, &desc, &model));
    r->compile = smg_command_seconds() - start;
    smg_status status = time_opened(job, model, io_busy, seconds, r);
    smg_model_close(model);
    return status;
}

static int fastest(const ranked *ranks, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (ranks[i].spread.median < ranks[best].spread.median) best = i;
    return best;
}

static const char *verdict(const ranked *r) {
    return r->check == UNCHECKED ? "" : r->check == PASSED ? "  PASS" : "  FAIL";
}

static void add_table(cli_job *job, const smg_device_facts *device, const ranked *ranks, int count) {
    cli_text *text = &job->text;
    int best = fastest(ranks, count);
    double least = ranks[best].spread.median;
    cli_print_device(device->name, device->driver, text);
    cli_text_addf(text, "graph    %s\nsizes    ", job->facts->name);
    cli_print_dims(text, &job->arrays);
    cli_text_addf(text, "\n\n%6s %8s %12s %6s %6s %12s %12s %12s\n", "rank", "kernels", "price ms", "n", "runs",
                  "min ms", "median ms", "compile s");
    for (int i = 0; i < count; i++) {
        const ranked *r = &ranks[i];
        cli_text_addf(text, "%6d %8d %12.4f %6d %6d %12.4f %12.4f %12.2f%s\n", i, r->kernels, r->estimate * 1e3,
                      r->spread.n, r->in_row, r->spread.min * 1e3, r->spread.median * 1e3, r->compile, verdict(r));
    }
    cli_text_addf(text, "rank 0 takes %.2f times as long as the fastest of %d, rank %d (medians)\n",
                  least > 0 ? ranks[0].spread.median / least : 1, count, best);
}

static void add_json(cli_job *job, const smg_device_facts *device, const ranked *ranks, int count) {
    cli_text *text = &job->text;
    cli_text_add(text, "{\n  ");
    cli_print_device_json(device->name, device->driver, text);
    cli_text_add(text, ",\n  \"graph\": ");
    cli_text_add_json(text, job->facts->name);
    cli_text_add(text, ",\n  ");
    cli_print_dims_json(text, &job->arrays);
    cli_text_add(text, ",\n  \"ranks\": [");
    for (int i = 0; i < count; i++) {
        const ranked *r = &ranks[i];
        cli_text_addf(text, "%s\n    {\"rank\": %d, \"kernels\": %d, \"estimate_seconds\": %.9g, ", i > 0 ? "," : "", i,
                      r->kernels, r->estimate);
        cli_print_spread_json(&r->spread, text);
        cli_text_addf(text, ", \"runs\": %d, \"compile_seconds\": %.6g", r->in_row, r->compile);
        if (r->check != UNCHECKED) cli_text_addf(text, ", \"pass\": %s", r->check == PASSED ? "true" : "false");
        cli_text_add(text, "}");
    }
    cli_text_addf(text, "\n  ],\n  \"fastest\": %d\n}\n", fastest(ranks, count));
}

static smg_status time_ranks(cli_job *job, smg_device *device, ranked *ranks, double *seconds) {
    const cli_options *o = job->o;
    int count = (int)o->ranks;
    smg_device_facts facts;
    double busy = 0;
    for (int i = 0; i < count; i++) {
        cli_progress("rank", (size_t)i, (size_t)count);
        CLI_TRY(time_rank(job, device, i, &busy, seconds, &ranks[i]));
    }
    CLI_TRY(smg_device_get_facts(device, &facts));
    (o->json ? add_json : add_table)(job, &facts, ranks, count);
    return SMG_OK;
}

smg_status cli_ranks(cli_job *job) {
    smg_device *device = NULL;
    CLI_TRY(cli_open_device(job->o, &device));
    ranked *ranks = calloc((size_t)job->o->ranks, sizeof(*ranks));
    double *seconds = calloc(CLI_MAX_REPEATS, sizeof(*seconds));
    smg_status status = ranks != NULL && seconds != NULL ? time_ranks(job, device, ranks, seconds) : SMG_MEMORY;
    free(ranks);
    free(seconds);
    smg_device_close(device);
    return status;
}
