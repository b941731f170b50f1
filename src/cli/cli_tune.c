/* cli_tune.c: smg tune: the schedules of a plan's kernels, measured on the device, and what came out. The terminal has
 * a line with the best so far; Ctrl-C ends the measuring, and what was measured is kept. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

/* ---- what came out -------------------------------------------------------------------------------- */

static void add_rates(const smg_fitted_rates *f, cli_text *text) {
    cli_text_addf(text, "\nrates    of %d schedules of %d kernels; prices are off by %.3f times", f->schedules,
                  f->kernels, f->error_before);
    if (f->error_left_out > 0)
        cli_text_addf(text, ", %.3f fitted (%.3f where fitted to the other kernels)", f->error_after,
                      f->error_left_out);
    cli_text_addf(text, ",\n         and order %.1f %% of the schedules right, %.1f %% fitted\n",
                  100 * f->agreed_before, 100 * f->agreed_after);
    if (f->untuned_before > 0)
        cli_text_addf(text, "         a run planned by prices takes %.2f us, %.2f us fitted (medians in turns)\n",
                      f->untuned_before * 1e6, f->untuned_after * 1e6);
    if (f->refused != NULL) {
        cli_text_addf(text, "rates stay as they are: %s\n", f->refused);
        return;
    }
    cli_text_addf(text, "revision %d is what plans of this device are made with from now on\n\n%-16s %12s %12s %12s\n",
                  f->revision, "rate", "nominal", "before", "now");
    for (int i = 0; i < f->rate_count; i++)
        cli_text_addf(text, "%-16s %12.4g %12.4g %12.4g\n", f->rates[i].name, f->rates[i].nominal, f->rates[i].before,
                      f->rates[i].after);
}

static void add_kept(const smg_tuned *tuned, cli_text *text) {
    if (tuned->path == NULL) {
        cli_text_add(text, "nothing is kept: nothing was measured\n");
        return;
    }
    if (!tuned->taken)
        cli_text_addf(text, "plans stay as they are: %s\n",
                      tuned->tuned > 0 ? "the plan of prices is faster" : "nothing was confirmed in turns");
    cli_text_addf(text, "kept in %s%s\n", tuned->path, tuned->stopped ? "; the next smg tune goes on from there" : "");
}

static void add_table(const cli_job *job, const smg_tuned *tuned, cli_text *text) {
    cli_text_addf(text, "device   %s%s%s, smg %s\n", tuned->device, tuned->driver[0] != '\0' ? ", driver " : "",
                  tuned->driver, smg_version());
    cli_text_addf(text, "graph    %s\nsizes    ", job->facts->name);
    cli_print_dims(text, &job->arrays);
    cli_text_addf(text, "\n\n%-8s %6s %6s %12s %12s %5s\n", "kernel", "calls", "tried", "price us", "fastest us",
                  "rank");
    for (int i = 0; i < tuned->kernel_count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels[i];
        cli_text_addf(text, "%-8s %6d %6d %12.2f %12.2f %5d\n", k->name, k->calls, k->tried, k->cheapest * 1e6,
                      k->fastest * 1e6, k->rank);
    }
    if (tuned->untuned > 0)
        cli_text_addf(text, "a run takes %.2f us tuned, %.2f us by prices (medians in turns); ", tuned->tuned * 1e6,
                      tuned->untuned * 1e6);
    cli_text_addf(text, "tuning took %.1f s%s\n", tuned->seconds, tuned->stopped ? " and was stopped" : "");
    if (tuned->cuts_tried > 0)
        cli_text_addf(text, "%d other cuts of the graph, or sums in other parts, were run, %d of them were faster\n",
                      tuned->cuts_tried, tuned->cuts);
    if (tuned->failed > 0) cli_text_addf(text, "%d schedules could not be measured\n", tuned->failed);
    if (tuned->wrong > 0)
        cli_text_addf(text, "%d schedules or cuts do not count: their results are not those of the unfused plan\n",
                      tuned->wrong);
    add_kept(tuned, text);
    if (tuned->rates != NULL) add_rates(tuned->rates, text);
}

/* null: it did not come to turns. */
static void add_run_json(const char *name, double seconds, cli_text *text) {
    if (seconds > 0)
        cli_text_addf(text, "  \"%s\": %.9g,\n", name, seconds * 1e6);
    else
        cli_text_addf(text, "  \"%s\": null,\n", name);
}

static void add_rates_json(const smg_fitted_rates *f, cli_text *text) {
    cli_text_addf(text, "  \"rates\": {\n    \"revision\": %d,\n    \"refused\": ", f->revision);
    if (f->refused != NULL)
        cli_text_add_json(text, f->refused);
    else
        cli_text_add(text, "null");
    cli_text_addf(text, ",\n    \"kernels\": %d,\n    \"schedules\": %d,\n", f->kernels, f->schedules);
    cli_text_addf(text, "    \"error\": [%.9g, %.9g],\n    \"error_left_out\": %.9g,\n", f->error_before,
                  f->error_after, f->error_left_out);
    cli_text_addf(text, "    \"agreed\": [%.9g, %.9g],\n    \"untuned_us\": [%.9g, %.9g],\n    \"values\": {",
                  f->agreed_before, f->agreed_after, f->untuned_before * 1e6, f->untuned_after * 1e6);
    for (int i = 0; i < f->rate_count; i++)
        cli_text_addf(text, "%s\n      \"%s\": [%.9g, %.9g, %.9g]", i > 0 ? "," : "", f->rates[i].name,
                      f->rates[i].nominal, f->rates[i].before, f->rates[i].after);
    cli_text_add(text, "\n    }\n  },\n");
}

static void add_json(const cli_job *job, const smg_tuned *tuned, cli_text *text) {
    cli_text_add(text, "{\n  \"device\": ");
    cli_text_add_json(text, tuned->device);
    cli_text_add(text, ",\n  \"driver\": ");
    cli_text_add_json(text, tuned->driver);
    cli_text_add(text, ",\n  \"version\": ");
    cli_text_add_json(text, smg_version());
    cli_text_add(text, ",\n  \"graph\": ");
    cli_text_add_json(text, job->facts->name);
    cli_text_add(text, ",\n  ");
    cli_print_dims_json(text, &job->arrays);
    cli_text_add(text, ",\n  \"kernels\": [");
    for (int i = 0; i < tuned->kernel_count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels[i];
        cli_text_addf(text, "%s\n    {\"kernel\": \"%s\", \"calls\": %d, \"tried\": %d, \"rank\": %d, ",
                      i > 0 ? "," : "", k->name, k->calls, k->tried, k->rank);
        cli_text_addf(text, "\"price_us\": %.9g, \"fastest_us\": %.9g}", k->cheapest * 1e6, k->fastest * 1e6);
    }
    cli_text_add(text, "\n  ],\n");
    add_run_json("untuned_us", tuned->untuned, text);
    add_run_json("tuned_us", tuned->tuned, text);
    cli_text_addf(text, "  \"tuning_seconds\": %.6g,\n", tuned->seconds);
    cli_text_addf(text, "  \"cuts\": %d,\n  \"cuts_tried\": %d,\n  \"stopped\": %s,\n", tuned->cuts, tuned->cuts_tried,
                  tuned->stopped ? "true" : "false");
    if (tuned->rates != NULL) add_rates_json(tuned->rates, text);
    cli_text_addf(text, "  \"failed\": %d,\n  \"wrong\": %d,\n  \"kept\": %s,\n  \"taken\": %s\n}\n", tuned->failed,
                  tuned->wrong, tuned->path != NULL ? "true" : "false", tuned->taken ? "true" : "false");
}

/* ---- on the way ------------------------------------------------------------------------------------ */

typedef struct watch {
    bool held, shows;
    double shown; /* when the line was written last */
} watch;

static void show(watch *w, const smg_tune_progress *at) {
    static const double often = 0.1;
    if (!w->shows || at->seconds - w->shown < often) return;
    w->shown = at->seconds;
    fprintf(stderr, "\r\033[K%s, %.0f s", at->phase, at->seconds);
    if (at->untuned > 0) fprintf(stderr, ": %.2f us, %.2f us by prices", at->best * 1e6, at->untuned * 1e6);
    fflush(stderr);
}

/* The interrupt that was seen is taken; the next one ends the program. */
static bool on_progress(void *user, const smg_tune_progress *at) {
    watch *w = user;
    bool interrupted = w->held && smg_command_is_interrupted();
    if (interrupted) smg_command_release_interrupt(true);
    if (interrupted) w->held = false;
    show(w, at);
    return !interrupted;
}

/* "30s", "2m", "30". */
static smg_status parse_time(const cli_options *o, double *out_seconds) {
    char *end = NULL;
    *out_seconds = 0;
    if (o->time == NULL) return SMG_OK;
    double value = strtod(o->time, &end), unit = 1;
    if (end != o->time && *end != '\0' && end[1] == '\0') unit = *end == 's' ? 1 : *end == 'm' ? 60 : 0;
    bool whole = end != o->time && (*end == '\0' || (end[1] == '\0' && unit > 0));
    if (!whole || !(value > 0 && value < 1e9))
        return cli_error(o, SMG_INVALID, "--time takes seconds or minutes, as 30s or 2m, '%s' was given", o->time);
    *out_seconds = value * unit;
    return SMG_OK;
}

static smg_status tune(cli_job *job) {
    const cli_options *o = job->o;
    cli_arrays *a = &job->arrays;
    smg_tuned *tuned = NULL;
    watch w = {.shows = smg_command_errors_on_terminal()};
    const smg_model_desc desc = cli_job_desc(job);
    smg_tune_desc options = {
        .schedules = (int)o->ranks, .path = o->out, .fit_rates = o->rates, .progress = on_progress, .user = &w};
    CLI_TRY(parse_time(o, &options.seconds));
    CLI_TRY(cli_fill_arrays(o, a));
    options.inputs = a->inputs;
    options.input_count = a->count;
    w.held = smg_command_hold_interrupt();
    smg_status status = smg_source_tune(job->source, &desc, &options, &tuned);
    if (w.held) smg_command_release_interrupt(false);
    if (w.shows) fprintf(stderr, "\r\033[K");
    if (status != SMG_OK) return status;
    (o->json ? add_json : add_table)(job, tuned, &job->text);
    smg_tuned_destroy(tuned);
    return SMG_OK;
}

int cli_tune(cli_options *o) {
    return cli_on_model(o, CLI_ARRAYS, tune);
}
