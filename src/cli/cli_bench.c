/* cli_bench.c: smg bench: the fused plan against the unfused one.
 *
 * Both programs live on one device in one process and take turns, so that clocks and neighbours hit
 * both alike. The first run of a turn finds the other's memory in the caches and is not timed, the second
 * finds its own, as a program does that runs one model. Warm-up is by time; the median of many is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { LEAST_ROUNDS = 5 };
static const double bench_seconds = 4.0;

typedef struct side {
    const char *name;
    smg_model *model;
    smg_check *check; /* NULL: it was not asked for */
    double *seconds;
    cli_spread spread;
    smg_compilation_facts facts;
    double compile;
    int in_row;   /* runs that one measurement is of */
    int64_t peak; /* bytes of the device at most */
    double bind;  /* seconds of the host to bind other sizes of the range */
} side;

/* The fused plan, and the unfused one where the device has room for what it leaves in memory. */
typedef struct sides {
    side of[2];
    int count;
    char missing[256]; /* why there is one; "" */
} sides;

static smg_status open_side(cli_job *job, smg_device *device, bool unfused, side *s) {
    const cli_options *o = job->o;
    cli_arrays *arrays = &job->arrays;
    smg_model_desc desc = cli_job_desc(job);
    desc.on = device;
    desc.unfused = unfused;
    if (unfused) desc.max_memory = 0; /* it is the yardstick */
    desc.no_calibrate = true;         /* the device is shared and calibrated already */
    double start = smg_command_seconds();
    CLI_TRY(smg_source_open_model(job->source, &desc, &s->model));
    s->compile = smg_command_seconds() - start;
    CLI_TRY(smg_model_prepare(s->model, arrays->dims, arrays->dim_count));
    if (!unfused) CLI_TRY(cli_fill_arrays(o, arrays));
    s->name = unfused ? "unfused" : "fused";
    s->seconds = calloc(CLI_MAX_REPEATS, sizeof(*s->seconds));
    if (s->seconds == NULL) return SMG_MEMORY;
    CLI_TRY(smg_compilation_get_facts(smg_model_compilation(s->model), &s->facts));
    CLI_TRY(cli_run_arrays(s->model, arrays));
    if (!unfused) CLI_TRY(cli_save_outputs(o, arrays));
    if (!o->check) return SMG_OK;
    CLI_TRY(smg_compilation_check(smg_model_compilation(s->model), arrays->all, &s->check));
    job->pass = job->pass && s->check->pass;
    return SMG_OK;
}

static void close_side(side *s) {
    smg_check_destroy(s->check);
    smg_model_close(s->model);
    free(s->seconds);
}

static smg_status open_sides(cli_job *job, smg_device *device, sides *s) {
    s->count = 1;
    CLI_TRY(open_side(job, device, false, &s->of[0]));
    smg_status status = open_side(job, device, true, &s->of[1]);
    if (status == SMG_NO_FIT || status == SMG_DEVICE_MEMORY) {
        (void)snprintf(s->missing, sizeof(s->missing), "%s", smg_context_error(job->o->ctx));
        return SMG_OK;
    }
    s->count = 2;
    return status;
}

static smg_status repeat_all(const sides *s) {
    double start = smg_command_seconds();
    while (smg_command_seconds() - start < CLI_WARM_SECONDS) {
        for (int i = 0; i < s->count; i++) CLI_TRY(smg_model_repeat(s->of[i].model));
    }
    return SMG_OK;
}

static smg_status warm_up(sides *s, const cli_arrays *arrays) {
    CLI_TRY(repeat_all(s));
    double start = smg_command_seconds();
    for (int i = 0; i < s->count; i++) CLI_TRY(cli_run_in_row(s->of[i].model, arrays, &s->of[i].in_row));
    return smg_command_seconds() - start > CLI_PAUSE_SECONDS ? repeat_all(s) : SMG_OK;
}

static smg_status take_turns(sides *s, int64_t repeat, int *out_rounds) {
    int rounds = 0;
    int limit = repeat > 0 ? (int)repeat : CLI_MAX_REPEATS;
    double start = smg_command_seconds();
    while (rounds < limit) {
        bool late = smg_command_seconds() - start > bench_seconds;
        if (repeat == 0 && late && rounds >= LEAST_ROUNDS) break;
        for (int i = 0; i < s->count; i++) {
            for (int run = s->of[i].in_row > 1; run < 2; run++) CLI_TRY(smg_model_repeat(s->of[i].model));
            s->of[i].seconds[rounds] = smg_model_seconds(s->of[i].model);
        }
        rounds++;
    }
    for (int i = 0; i < s->count; i++) {
        smg_memory_info memory;
        CLI_TRY(smg_model_get_memory(s->of[i].model, &memory));
        s->of[i].spread = cli_spread_of(s->of[i].seconds, rounds);
        s->of[i].peak = memory.peak;
    }
    *out_rounds = rounds;
    return SMG_OK;
}

/* Sizes of the range in turn, all that have one at once. */
static smg_status bind_in_turn(const cli_arrays *arrays, smg_dim *dims, side *s) {
    enum { SIZES = 256 };
    double start = smg_command_seconds();
    for (int64_t k = 0; k < SIZES; k++) {
        for (int i = 0; i < arrays->dim_count; i++) {
            dims[i] = arrays->dims[i];
            for (int r = 0; r < arrays->range_count; r++) {
                const smg_dim_range *range = &arrays->ranges[r];
                if (strcmp(range->name, dims[i].name) == 0)
                    dims[i].value = range->low + k % (range->high - range->low + 1);
            }
        }
        CLI_TRY(smg_model_prepare(s->model, dims, arrays->dim_count));
    }
    s->bind = (smg_command_seconds() - start) / SIZES;
    return SMG_OK;
}

static smg_status measure_bind(const cli_arrays *arrays, side *s) {
    smg_dim *dims = calloc((size_t)arrays->dim_count + 1, sizeof(*dims));
    if (dims == NULL) return SMG_MEMORY;
    smg_status status = bind_in_turn(arrays, dims, s);
    free(dims);
    return status;
}

static void add_row(const side *s, cli_text *text) {
    cli_text_addf(text, "%-9s %10d %6d %6d %12.4f %12.4f %12.4f %12.2f %12.2f %12.2f%s%s\n", s->name, s->facts.kernels,
                  s->spread.n, s->in_row, s->spread.min * 1e3, s->spread.median * 1e3, s->spread.p95 * 1e3,
                  s->facts.bytes / 1e6, s->spread.median > 0 ? s->facts.bytes / s->spread.median / 1e9 : 0, s->compile,
                  s->facts.from_cache ? "  (plan from the cache)" : "",
                  s->check == NULL || s->check->count == 0 ? ""
                  : s->check->pass                         ? "  PASS"
                                                           : "  FAIL");
}

static void add_comparison(const cli_arrays *arrays, const side *fused, const side *unfused, int rounds,
                           cli_text *text) {
    if (arrays->range_count > 0)
        cli_text_addf(text, "to other sizes of the range: fused %.1f us, unfused %.1f us of the host\n",
                      fused->bind * 1e6, unfused->bind * 1e6);
    cli_text_addf(text, "memory of the device: at most %.1f MB fused, %.1f MB unfused\n", (double)fused->peak / 1e6,
                  (double)unfused->peak / 1e6);
    double ratio = fused->spread.median > 0 ? unfused->spread.median / fused->spread.median : 0;
    if (!(ratio > 0)) ratio = 1;
    cli_text_addf(text, "fused is %.2fx %s and moves %.1f %% of the bytes (medians of %d, interleaved)\n",
                  ratio >= 1 ? ratio : 1 / ratio, ratio >= 1 ? "faster" : "slower",
                  unfused->facts.bytes > 0 ? 100 * fused->facts.bytes / unfused->facts.bytes : 0, rounds);
}

static void add_table(const cli_arrays *arrays, const sides *s, int rounds, cli_text *text) {
    const smg_compilation_facts *f = &s->of[0].facts;
    cli_print_device(f->target, f->driver, text);
    cli_text_addf(text, "graph    %s: %d ops -> %d after rewrites\nsizes    ", f->graph, f->operations,
                  f->operations_rewritten);
    cli_print_dims(text, arrays);
    cli_text_addf(text, "\n\n%-9s %10s %6s %6s %12s %12s %12s %12s %12s %12s\n", "", "kernels", "n", "runs", "min ms",
                  "median ms", "p95 ms", "moved MB", "GB/s", "compile s");
    for (int i = 0; i < s->count; i++) add_row(&s->of[i], text);
    for (int i = 0; i < s->count; i++) {
        if (s->of[i].check == NULL || s->of[i].check->pass) continue;
        cli_text_addf(text, "%s against the reference:\n", s->of[i].name);
        cli_print_check(s->of[i].check, text);
    }
    if (s->count == 2)
        add_comparison(arrays, &s->of[0], &s->of[1], rounds, text);
    else
        cli_text_addf(text, "the unfused plan does not fit the device: %s\n", s->missing);
}

static void add_json_side(const cli_arrays *arrays, const side *s, cli_text *text) {
    cli_text_addf(text, ",\n  \"%s\": {\"kernels\": %d, \"modules\": %d, \"seconds\": %.9g, ", s->name,
                  s->facts.kernels, s->facts.modules, s->spread.median);
    cli_print_spread_json(&s->spread, text);
    cli_text_addf(text, ", \"bytes\": %.0f, \"flops\": %.0f, \"compile_seconds\": %.6g, \"plan_cached\": %s",
                  s->facts.bytes, s->facts.flops, s->compile, s->facts.from_cache ? "true" : "false");
    cli_text_addf(text, ", \"runs\": %d, \"peak_bytes\": %lld", s->in_row, (long long)s->peak);
    if (arrays->range_count > 0) cli_text_addf(text, ", \"bind_us\": %.3g", s->bind * 1e6);
    if (s->check != NULL && s->check->count > 0)
        cli_text_addf(text, ", \"pass\": %s", s->check->pass ? "true" : "false");
    cli_text_add(text, "}");
}

static void add_json(const cli_arrays *arrays, const sides *s, int rounds, cli_text *text) {
    const smg_compilation_facts *f = &s->of[0].facts;
    cli_text_add(text, "{\n  ");
    cli_print_device_json(f->target, f->driver, text);
    cli_text_add(text, ",\n  \"graph\": ");
    cli_text_add_json(text, f->graph);
    cli_text_addf(text, ",\n  \"ops\": %d,\n  \"ops_rewritten\": %d,\n  \"rounds\": %d,\n  ", f->operations,
                  f->operations_rewritten, rounds);
    cli_print_dims_json(text, arrays);
    for (int i = 0; i < s->count; i++) add_json_side(arrays, &s->of[i], text);
    if (s->count == 1) {
        cli_text_add(text, ",\n  \"unfused\": {\"missing\": ");
        cli_text_add_json(text, s->missing);
        cli_text_add(text, "}");
    }
    cli_text_add(text, "\n}\n");
}

static smg_status bench(cli_job *job) {
    const cli_options *o = job->o;
    smg_device *device = NULL;
    sides both = {0};
    int rounds = 0;
    CLI_TRY(cli_open_device(o, &device));
    smg_status status = open_sides(job, device, &both);
    if (status == SMG_OK) status = warm_up(&both, &job->arrays);
    if (status == SMG_OK) status = take_turns(&both, o->repeat, &rounds);
    for (int i = 0; i < both.count && status == SMG_OK && job->arrays.range_count > 0; i++)
        status = measure_bind(&job->arrays, &both.of[i]);
    if (status == SMG_OK) (o->json ? add_json : add_table)(&job->arrays, &both, rounds, &job->text);
    for (int i = 0; i < 2; i++) close_side(&both.of[i]);
    smg_device_close(device);
    return status;
}

int cli_bench(cli_options *o) {
    return cli_on_model(o, CLI_ARRAYS, o->ranks > 0 ? cli_ranks : bench);
}
