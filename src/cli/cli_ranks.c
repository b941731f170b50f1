/* cli_ranks.c: smg bench --ranks N: the same plan with the schedules of the first N ranks by price, one after the
 * other, so that a choice can be looked at beside what it was chosen from. */
#include "cli/cli.h"

#if SMG_VULKAN

enum { LEAST_RUNS = 5 };
static const double next_seconds = 0.02; /* the clock is up by then */
static const double rank_seconds = 0.1;

typedef struct ranked {
    int kernels;
    double estimate, compile; /* seconds */
    cli_spread spread;
    smg_check check;
} ranked;

static smg_status time_runs(const cli_options *o, smg_model *model, bool first, double *seconds,
                            cli_spread *out_spread) {
    int64_t limit = o->repeat > 0 ? o->repeat : CLI_MAX_REPEATS;
    int runs = 0;
    SMG_TRY(cli_warm_up(model, first ? CLI_WARM_SECONDS : next_seconds));
    double start = smg_clock_seconds();
    while (runs < limit && (o->repeat > 0 || runs < LEAST_RUNS || smg_clock_seconds() - start < rank_seconds)) {
        SMG_TRY(smg_program_run(smg_model_program(model)));
        seconds[runs++] = smg_model_seconds(model);
    }
    *out_spread = cli_spread_of(seconds, runs);
    return SMG_OK;
}

static smg_status time_opened(cli_job *job, smg_model *model, bool first, double *seconds, ranked *r) {
    cli_options *o = job->o;
    cli_arrays *a = &job->arrays;
    const smg_compilation *c = smg_model_compilation(model);
    double bytes = 0, flops = 0;
    SMG_TRY(smg_model_bind(model, a->symbols));
    if (first) SMG_TRY(cli_fill_arrays(o, job->interface, a));
    smg_compile_work(c, &bytes, &flops, &r->estimate);
    r->kernels = smg_compile_kernel_count(c);
    for (int i = 0; i < a->output_count; i++) a->outputs[i].data = NULL; /* were the last model's */
    SMG_TRY(smg_model_run(model, a->inputs, a->count, a->outputs, a->output_count));
    if (o->check) {
        SMG_TRY(smg_compile_check(o->ctx, job->source.graph, smg_compile_roundings(c), a->symbols, a->inputs, a->count,
                                  a->outputs, a->arena, &r->check));
        job->pass = job->pass && r->check.pass;
    }
    return time_runs(o, model, first, seconds, &r->spread);
}

static smg_status time_rank(cli_job *job, smg_vk_device *device, int rank, double *seconds, ranked *r) {
    smg_model *model = NULL;
    smg_model_desc desc = cli_job_desc(job);
    desc.rank = rank;
    desc.tuning = "";         /* ranks are by price */
    desc.no_calibrate = true; /* the device is shared and calibrated already */
    double start = smg_clock_seconds();
    SMG_TRY(smg_model_open_source(job->o->ctx, &job->source, device, &desc, &model));
    r->compile = smg_clock_seconds() - start;
    smg_status status = time_opened(job, model, rank == 0, seconds, r);
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
    if (r->check.count == 0) return "";
    return r->check.pass ? "  PASS" : "  FAIL";
}

static void add_table(cli_job *job, const smg_target *target, const ranked *ranks, int count) {
    smg_text *text = &job->text;
    int best = fastest(ranks, count);
    double least = ranks[best].spread.median;
    cli_print_device(target, text);
    smg_text_addf(text, "graph    %s\nsizes    ", job->source.graph->name);
    cli_print_dims(text, &job->arrays);
    smg_text_addf(text, "\n\n%6s %8s %12s %6s %12s %12s %12s\n", "rank", "kernels", "price ms", "n", "min ms",
                  "median ms", "compile s");
    for (int i = 0; i < count; i++) {
        const ranked *r = &ranks[i];
        smg_text_addf(text, "%6d %8d %12.4f %6d %12.4f %12.4f %12.2f%s\n", i, r->kernels, r->estimate * 1e3,
                      r->spread.n, r->spread.min * 1e3, r->spread.median * 1e3, r->compile, verdict(r));
    }
    smg_text_addf(text, "rank 0 takes %.2f times as long as the fastest of %d, rank %d (medians)\n",
                  least > 0 ? ranks[0].spread.median / least : 1, count, best);
}

static void add_json(cli_job *job, const smg_target *target, const ranked *ranks, int count) {
    smg_text *text = &job->text;
    smg_text_add(text, "{\n  ");
    cli_print_device_json(target, text);
    smg_text_add(text, ",\n  \"graph\": ");
    smg_text_add_json(text, job->source.graph->name);
    smg_text_add(text, ",\n  ");
    cli_print_dims_json(text, &job->arrays);
    smg_text_add(text, ",\n  \"ranks\": [");
    for (int i = 0; i < count; i++) {
        const ranked *r = &ranks[i];
        smg_text_addf(text, "%s\n    {\"rank\": %d, \"kernels\": %d, \"estimate_seconds\": %.9g, ", i > 0 ? "," : "", i,
                      r->kernels, r->estimate);
        cli_print_spread_json(&r->spread, text);
        smg_text_addf(text, ", \"compile_seconds\": %.6g", r->compile);
        if (r->check.count > 0) smg_text_addf(text, ", \"pass\": %s", r->check.pass ? "true" : "false");
        smg_text_add(text, "}");
    }
    smg_text_addf(text, "\n  ],\n  \"fastest\": %d\n}\n", fastest(ranks, count));
}

smg_status cli_ranks(cli_job *job) {
    const cli_options *o = job->o;
    smg_vk_device *device = NULL;
    int count = (int)o->ranks;
    ranked *ranks = SMG_ARENA_ARRAY(job->arrays.arena, ranked, (size_t)count);
    double *seconds = SMG_ARENA_ARRAY(job->arrays.arena, double, CLI_MAX_REPEATS);
    if (ranks == NULL || seconds == NULL) return SMG_MEMORY;
    SMG_TRY(smg_vk_open(o->ctx, o->device, 0, &device));
    const smg_model_desc desc = cli_model_desc(o);
    smg_status status = smg_compile_know_device(device, &desc);
    for (int i = 0; i < count && status == SMG_OK; i++) {
        smg_progress(o->ctx, "rank", (size_t)i, (size_t)count, "");
        status = time_rank(job, device, i, seconds, &ranks[i]);
    }
    if (status == SMG_OK) (o->json ? add_json : add_table)(job, smg_vk_target(device), ranks, count);
    smg_vk_close(device);
    return status;
}

#else

smg_status cli_ranks(cli_job *job) {
    return smg_fail(job->o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif
