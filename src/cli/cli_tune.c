/* cli_tune.c: smg tune: the schedules of a plan's kernels, measured on the device, and what came out. The terminal has
 * a line with the best so far; Ctrl-C ends the measuring, and what was measured is kept. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- what came out -------------------------------------------------------------------------------- */

static void add_table(const cli_job *job, const smg_tuned *tuned, smg_text *text) {
    smg_text_addf(text, "device   %s%s%s, smg %s\n", tuned->device, tuned->driver[0] != '\0' ? ", driver " : "",
                  tuned->driver, smg_version());
    smg_text_addf(text, "graph    %s\nsizes    ", job->source.graph->name);
    cli_print_dims(text, &job->arrays);
    smg_text_addf(text, "\n\n%-8s %6s %6s %12s %12s %5s\n", "kernel", "calls", "tried", "price us", "fastest us",
                  "rank");
    for (int i = 0; i < tuned->kernel_count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels[i];
        smg_text_addf(text, "%-8s %6d %6d %12.2f %12.2f %5d\n", k->name, k->calls, k->tried, k->cheapest * 1e6,
                      k->fastest * 1e6, k->rank);
    }
    if (tuned->untuned > 0)
        smg_text_addf(text, "a run takes %.2f us tuned, %.2f us by prices (medians in turns); ", tuned->tuned * 1e6,
                      tuned->untuned * 1e6);
    smg_text_addf(text, "tuning took %.1f s%s\n", tuned->seconds, tuned->stopped ? " and was stopped" : "");
    if (tuned->cuts_tried > 0)
        smg_text_addf(text, "%d other cuts of the graph were run, %d of them were faster\n", tuned->cuts_tried,
                      tuned->cuts);
    if (tuned->failed > 0) smg_text_addf(text, "%d schedules could not be measured\n", tuned->failed);
    if (tuned->path != NULL)
        smg_text_addf(text, "kept in %s\n", tuned->path);
    else
        smg_text_addf(text, "nothing is kept: %s\n",
                      tuned->tuned > 0 ? "the plan of prices is faster" : "there was no time to find anything out");
}

static void add_json(const cli_job *job, const smg_tuned *tuned, smg_text *text) {
    smg_text_add(text, "{\n  \"device\": ");
    smg_text_add_json(text, tuned->device);
    smg_text_add(text, ",\n  \"driver\": ");
    smg_text_add_json(text, tuned->driver);
    smg_text_add(text, ",\n  \"version\": ");
    smg_text_add_json(text, smg_version());
    smg_text_add(text, ",\n  \"graph\": ");
    smg_text_add_json(text, job->source.graph->name);
    smg_text_add(text, ",\n  ");
    cli_print_dims_json(text, &job->arrays);
    smg_text_add(text, ",\n  \"kernels\": [");
    for (int i = 0; i < tuned->kernel_count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels[i];
        smg_text_addf(text, "%s\n    {\"kernel\": \"%s\", \"calls\": %d, \"tried\": %d, \"rank\": %d, ",
                      i > 0 ? "," : "", k->name, k->calls, k->tried, k->rank);
        smg_text_addf(text, "\"price_us\": %.9g, \"fastest_us\": %.9g}", k->cheapest * 1e6, k->fastest * 1e6);
    }
    smg_text_addf(text, "\n  ],\n  \"untuned_us\": %.9g,\n  \"tuned_us\": %.9g,\n  \"tuning_seconds\": %.6g,\n",
                  tuned->untuned * 1e6, tuned->tuned * 1e6, tuned->seconds);
    smg_text_addf(text, "  \"cuts\": %d,\n  \"cuts_tried\": %d,\n  \"stopped\": %s,\n", tuned->cuts, tuned->cuts_tried,
                  tuned->stopped ? "true" : "false");
    smg_text_addf(text, "  \"failed\": %d,\n  \"kept\": %s\n}\n", tuned->failed,
                  tuned->path != NULL ? "true" : "false");
}

/* ---- on the way ------------------------------------------------------------------------------------ */

/* While it is held back, Ctrl-C waits to be asked for: there is no state that a handler would need. */
typedef struct watch {
    sigset_t interrupt;
    bool held, shows;
    double shown; /* when the line was written last */
} watch;

static void hold_interrupt(watch *w) {
    *w = (watch){.shows = isatty(STDERR_FILENO) != 0};
    w->held = sigemptyset(&w->interrupt) == 0 && sigaddset(&w->interrupt, SIGINT) == 0 &&
              pthread_sigmask(SIG_BLOCK, &w->interrupt, NULL) == 0;
}

/* The one that was seen is taken; the next one ends the program. */
static void let_go(watch *w, bool taken) {
    int number;
    if (!w->held) return;
    if (taken) sigwait(&w->interrupt, &number);
    pthread_sigmask(SIG_UNBLOCK, &w->interrupt, NULL);
    w->held = false;
}

static void show(watch *w, const smg_tune_progress *at) {
    static const double often = 0.1;
    if (!w->shows || at->seconds - w->shown < often) return;
    w->shown = at->seconds;
    fprintf(stderr, "\r\033[K%s, %.0f s", at->phase, at->seconds);
    if (at->untuned > 0) fprintf(stderr, ": %.2f us, %.2f us by prices", at->best * 1e6, at->untuned * 1e6);
    fflush(stderr);
}

static bool on_progress(void *user, const smg_tune_progress *at) {
    watch *w = user;
    sigset_t pending;
    bool interrupted = w->held && sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1;
    if (interrupted) let_go(w, true);
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
        return smg_fail(o->ctx, SMG_INVALID, "--time takes seconds or minutes, as 30s or 2m, '%s' was given", o->time);
    *out_seconds = value * unit;
    return SMG_OK;
}

static smg_status tune(cli_job *job) {
    cli_options *o = job->o;
    cli_arrays *a = &job->arrays;
    smg_tuned *tuned = NULL;
    watch w;
    const smg_model_desc desc = cli_job_desc(job);
    smg_tune_desc options = {.schedules = (int)o->ranks, .path = o->out, .progress = on_progress, .user = &w};
    SMG_TRY(parse_time(o, &options.seconds));
    SMG_TRY(cli_fill_arrays(o, job->interface, a));
    options.inputs = a->inputs;
    options.input_count = a->count;
    hold_interrupt(&w);
    smg_status status = smg_model_tune_source(o->ctx, &job->source, &desc, &options, &tuned);
    let_go(&w, false);
    if (w.shows) fprintf(stderr, "\r\033[K");
    if (status != SMG_OK) return status;
    (o->json ? add_json : add_table)(job, tuned, &job->text);
    smg_tuned_destroy(tuned);
    return SMG_OK;
}

int cli_tune(cli_options *o) {
    return cli_on_model(o, CLI_ARRAYS, tune);
}
