/* cli_tune.c: smg tune: the schedules of a plan's kernels, measured on the device, and what came out. */
#include "cli/cli.h"

#define RIVALS 15 /* schedules of a kernel beside the one of the lowest price */
#define SECONDS 1.0

static void add_table(const cli_job *job, const smg_tuned *tuned, smg_text *text) {
    cli_print_device(&tuned->target, text);
    smg_text_addf(text, "graph    %s\nsizes    ", job->source.graph->name);
    cli_print_dims(text, &job->arrays);
    smg_text_addf(text, "\n\n%-8s %6s %6s %12s %12s %5s\n", "kernel", "calls", "tried", "price us", "fastest us",
                  "rank");
    for (int i = 0; i < tuned->kernels.count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels.items[i];
        smg_text_addf(text, "%-8s %6d %6d %12.2f %12.2f %5d\n", k->name, k->calls, k->tried, k->cheapest * 1e6,
                      k->fastest * 1e6, k->rank);
    }
    smg_text_addf(text, "a run takes %.2f us tuned, %.2f us by prices (medians in turns); tuning took %.1f s\n",
                  tuned->tuned * 1e6, tuned->untuned * 1e6, tuned->seconds);
    if (tuned->cuts_tried > 0)
        smg_text_addf(text, "%d other cuts of the graph were run, %d of them were faster\n", tuned->cuts_tried,
                      tuned->cuts);
    if (tuned->failed > 0) smg_text_addf(text, "%d schedules could not be measured\n", tuned->failed);
    if (tuned->path != NULL)
        smg_text_addf(text, "kept in %s\n", tuned->path);
    else
        smg_text_add(text, "nothing is kept: the plan of prices is faster\n");
}

static void add_json(const cli_job *job, const smg_tuned *tuned, smg_text *text) {
    smg_text_add(text, "{\n  ");
    cli_print_device_json(&tuned->target, text);
    smg_text_add(text, ",\n  \"graph\": ");
    smg_text_add_json(text, job->source.graph->name);
    smg_text_add(text, ",\n  ");
    cli_print_dims_json(text, &job->arrays);
    smg_text_add(text, ",\n  \"kernels\": [");
    for (int i = 0; i < tuned->kernels.count; i++) {
        const smg_tuned_kernel *k = &tuned->kernels.items[i];
        smg_text_addf(text, "%s\n    {\"kernel\": \"%s\", \"calls\": %d, \"tried\": %d, \"rank\": %d, ",
                      i > 0 ? "," : "", k->name, k->calls, k->tried, k->rank);
        smg_text_addf(text, "\"price_us\": %.9g, \"fastest_us\": %.9g}", k->cheapest * 1e6, k->fastest * 1e6);
    }
    smg_text_addf(text, "\n  ],\n  \"untuned_us\": %.9g,\n  \"tuned_us\": %.9g,\n  \"tuning_seconds\": %.6g,\n",
                  tuned->untuned * 1e6, tuned->tuned * 1e6, tuned->seconds);
    smg_text_addf(text, "  \"cuts\": %d,\n  \"cuts_tried\": %d,\n", tuned->cuts, tuned->cuts_tried);
    smg_text_addf(text, "  \"failed\": %d,\n  \"kept\": %s\n}\n", tuned->failed,
                  tuned->path != NULL ? "true" : "false");
}

static smg_status tune(cli_job *job) {
    cli_options *o = job->o;
    cli_arrays *a = &job->arrays;
    smg_tuned tuned;
    const smg_model_desc desc = cli_job_desc(job);
    SMG_TRY(cli_fill_arrays(o, job->interface, a));
    const smg_tune_options options = {.rivals = o->ranks > 0 ? (int)o->ranks - 1 : RIVALS,
                                      .seconds = SECONDS,
                                      .inputs = a->inputs,
                                      .input_count = a->count,
                                      .symbols = a->symbols,
                                      .path = o->out};
    SMG_TRY(smg_model_tune(o->ctx, &job->source, &desc, &options, a->arena, &tuned));
    (o->json ? add_json : add_table)(job, &tuned, &job->text);
    return SMG_OK;
}

int cli_tune(cli_options *o) {
    return cli_on_model(o, CLI_ARRAYS, tune);
}
