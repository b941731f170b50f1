/* cli_bench.c: smg bench: the fused plan against the unfused one.
 *
 * Both programs live on one device in one process and take turns, so that clocks and neighbours hit
 * both alike. The first run of a turn finds the other's memory in the caches and is not timed, the second
 * finds its own, as a program does that runs one model. Warm-up is by time; the median of many is reported. */
#include "cli/cli.h"

#if SMG_VULKAN

enum { LEAST_ROUNDS = 5 };
static const double bench_seconds = 4.0;

typedef struct side {
    const char *name;
    smg_model *model;
    smg_check check;
    double *seconds;
    cli_spread spread;
    double bytes, flops, compile;
    int64_t peak; /* bytes of the device at most */
    double bind;  /* seconds of the host to bind other sizes of the range */
} side;

static smg_status open_side(cli_job *job, smg_vk_device *device, bool unfused, side *s) {
    cli_options *o = job->o;
    cli_arrays *arrays = &job->arrays;
    smg_model_desc desc = cli_job_desc(job);
    desc.unfused = unfused;
    if (unfused) desc.max_memory = 0; /* it is the yardstick */
    desc.no_calibrate = true;         /* the device is shared and calibrated already */
    double start = smg_clock_seconds();
    SMG_TRY(smg_model_open_source(o->ctx, &job->source, device, &desc, &s->model));
    s->compile = smg_clock_seconds() - start;
    SMG_TRY(smg_model_bind(s->model, arrays->symbols));
    if (!unfused) SMG_TRY(cli_fill_arrays(o, job->interface, arrays));
    s->name = unfused ? "unfused" : "fused";
    s->seconds = SMG_ARENA_ARRAY(arrays->arena, double, CLI_MAX_REPEATS);
    if (s->seconds == NULL) return SMG_MEMORY;
    double estimate = 0;
    smg_compile_work(smg_model_compilation(s->model), &s->bytes, &s->flops, &estimate);
    SMG_TRY(smg_model_run(s->model, arrays->inputs, arrays->count, arrays->outputs, arrays->output_count));
    if (!unfused) SMG_TRY(cli_save_outputs(o, arrays));
    if (!o->check) return SMG_OK;
    SMG_TRY(smg_compile_check(o->ctx, job->source.graph, smg_compile_roundings(smg_model_compilation(s->model)),
                              arrays->symbols, arrays->inputs, arrays->count, arrays->outputs, arrays->arena,
                              &s->check));
    job->pass = job->pass && s->check.pass;
    return SMG_OK;
}

static smg_status take_turns(side *sides, int64_t repeat, int *out_rounds) {
    double start = smg_clock_seconds();
    while (smg_clock_seconds() - start < CLI_WARM_SECONDS) {
        for (int i = 0; i < 2; i++) SMG_TRY(smg_program_run(smg_model_program(sides[i].model)));
    }
    int rounds = 0;
    int limit = repeat > 0 ? (int)repeat : CLI_MAX_REPEATS;
    start = smg_clock_seconds();
    while (rounds < limit) {
        bool late = smg_clock_seconds() - start > bench_seconds;
        if (repeat == 0 && late && rounds >= LEAST_ROUNDS) break;
        for (int i = 0; i < 2; i++) {
            for (int run = 0; run < 2; run++) SMG_TRY(smg_program_run(smg_model_program(sides[i].model)));
            sides[i].seconds[rounds] = smg_model_seconds(sides[i].model);
        }
        rounds++;
    }
    for (int i = 0; i < 2; i++) {
        smg_program_memory memory;
        smg_model_memory(sides[i].model, &memory);
        sides[i].spread = cli_spread_of(sides[i].seconds, rounds);
        sides[i].peak = memory.peak_bytes;
    }
    *out_rounds = rounds;
    return SMG_OK;
}

/* Sizes of the range in turn, all that have one at once. */
static smg_status measure_bind(const cli_arrays *arrays, side *s) {
    enum { SIZES = 256 };
    int64_t *values = SMG_ARENA_ARRAY(arrays->arena, int64_t, (size_t)arrays->dim_count + 1);
    if (values == NULL) return SMG_MEMORY;
    double start = smg_clock_seconds();
    for (int64_t k = 0; k < SIZES; k++) {
        for (int i = 0; i < arrays->dim_count; i++) {
            values[i] = arrays->dims[i].value;
            for (int r = 0; r < arrays->range_count; r++) {
                const smg_dim_range *range = &arrays->ranges[r];
                if (strcmp(range->name, arrays->dims[i].name) == 0)
                    values[i] = range->low + k % (range->high - range->low + 1);
            }
        }
        SMG_TRY(smg_model_bind(s->model, values));
    }
    s->bind = (smg_clock_seconds() - start) / SIZES;
    return SMG_OK;
}

static void add_table(const cli_arrays *arrays, const side *sides, int rounds, smg_text *text) {
    const smg_compilation *c = smg_model_compilation(sides[0].model);
    cli_print_device(&c->target, text);
    smg_text_addf(text, "graph    %s: %d ops -> %d after rewrites\nsizes    ", c->source->name,
                  smg_compile_op_count(c->source), c->run_ops);
    cli_print_dims(text, arrays);
    smg_text_addf(text, "\n\n%-9s %10s %6s %12s %12s %12s %12s %12s %12s\n", "", "kernels", "n", "min ms", "median ms",
                  "p95 ms", "moved MB", "GB/s", "compile s");
    for (int i = 0; i < 2; i++) {
        const side *s = &sides[i];
        smg_text_addf(text, "%-9s %10d %6d %12.3f %12.3f %12.3f %12.2f %12.2f %12.2f%s%s\n", s->name,
                      smg_compile_kernel_count(smg_model_compilation(s->model)), s->spread.n, s->spread.min * 1e3,
                      s->spread.median * 1e3, s->spread.p95 * 1e3, s->bytes / 1e6,
                      s->spread.median > 0 ? s->bytes / s->spread.median / 1e9 : 0, s->compile,
                      smg_model_compilation(s->model)->from_cache ? "  (plan from the cache)" : "",
                      s->check.count == 0 ? ""
                      : s->check.pass     ? "  PASS"
                                          : "  FAIL");
    }
    for (int i = 0; i < 2; i++) {
        if (sides[i].check.count == 0 || sides[i].check.pass) continue;
        smg_text_addf(text, "%s against the reference:\n", sides[i].name);
        cli_print_check(&sides[i].check, text);
    }
    if (arrays->range_count > 0)
        smg_text_addf(text, "to other sizes of the range: fused %.1f us, unfused %.1f us of the host\n",
                      sides[0].bind * 1e6, sides[1].bind * 1e6);
    smg_text_addf(text, "memory of the device: at most %.1f MB fused, %.1f MB unfused\n", (double)sides[0].peak / 1e6,
                  (double)sides[1].peak / 1e6);
    double fused = sides[0].spread.median, unfused = sides[1].spread.median;
    double ratio = fused > 0 && unfused > 0 ? unfused / fused : 1;
    smg_text_addf(text, "fused is %.2fx %s and moves %.1f %% of the bytes (medians of %d, interleaved)\n",
                  ratio >= 1 ? ratio : 1 / ratio, ratio >= 1 ? "faster" : "slower",
                  sides[1].bytes > 0 ? 100 * sides[0].bytes / sides[1].bytes : 0, rounds);
}

static void add_json(const cli_arrays *arrays, const side *sides, int rounds, smg_text *text) {
    const smg_compilation *c = smg_model_compilation(sides[0].model);
    smg_text_add(text, "{\n  ");
    cli_print_device_json(&c->target, text);
    smg_text_add(text, ",\n  \"graph\": ");
    smg_text_add_json(text, c->source->name);
    smg_text_addf(text, ",\n  \"ops\": %d,\n  \"ops_rewritten\": %d,\n  \"rounds\": %d,\n  ",
                  smg_compile_op_count(c->source), c->run_ops, rounds);
    cli_print_dims_json(text, arrays);
    for (int i = 0; i < 2; i++) {
        const side *s = &sides[i];
        const smg_compilation *own = smg_model_compilation(s->model);
        smg_text_addf(text, ",\n  \"%s\": {\"kernels\": %d, \"modules\": %d, \"seconds\": %.9g, ", s->name,
                      smg_compile_kernel_count(own), own->bundle->modules.count, s->spread.median);
        cli_print_spread_json(&s->spread, text);
        smg_text_addf(text, ", \"bytes\": %.0f, \"flops\": %.0f, \"compile_seconds\": %.6g, \"plan_cached\": %s",
                      s->bytes, s->flops, s->compile, own->from_cache ? "true" : "false");
        smg_text_addf(text, ", \"peak_bytes\": %lld", (long long)s->peak);
        if (arrays->range_count > 0) smg_text_addf(text, ", \"bind_us\": %.3g", s->bind * 1e6);
        if (s->check.count > 0) smg_text_addf(text, ", \"pass\": %s", s->check.pass ? "true" : "false");
        smg_text_add(text, "}");
    }
    smg_text_add(text, "\n}\n");
}

static smg_status bench(cli_job *job) {
    const cli_options *o = job->o;
    smg_vk_device *device = NULL;
    side sides[2] = {0};
    int rounds = 0;
    SMG_TRY(smg_vk_open(o->ctx, o->device, 0, &device));
    const smg_model_desc desc = cli_model_desc(o);
    smg_status status = smg_compile_know_device(device, &desc);
    for (int i = 0; i < 2 && status == SMG_OK; i++) status = open_side(job, device, i == 1, &sides[i]);
    if (status == SMG_OK) status = take_turns(sides, o->repeat, &rounds);
    for (int i = 0; i < 2 && status == SMG_OK && job->arrays.range_count > 0; i++)
        status = measure_bind(&job->arrays, &sides[i]);
    if (status == SMG_OK) (o->json ? add_json : add_table)(&job->arrays, sides, rounds, &job->text);
    for (int i = 0; i < 2; i++) smg_model_close(sides[i].model);
    smg_vk_close(device);
    return status;
}

#else

static smg_status bench(cli_job *job) {
    return smg_fail(job->o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif

int cli_bench(cli_options *o) {
    return cli_on_model(o, CLI_ARRAYS, o->ranks > 0 ? cli_ranks : bench);
}
