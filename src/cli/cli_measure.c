/* cli_measure.c: runs that are measured, and how what comes of them is printed. */
#include <math.h>
#include <stdlib.h>

#include "cli/cli.h"

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

cli_spread cli_spread_of(double *seconds, int count) {
    if (count == 0) return (cli_spread){0};
    qsort(seconds, (size_t)count, sizeof(*seconds), by_value);
    int half = count / 2;
    return (cli_spread){
        .n = count,
        .min = seconds[0],
        .median = count % 2 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2,
        .p95 = seconds[(19 * count + 19) / 20 - 1],
    };
}

void cli_print_spread(const cli_spread *spread, cli_text *text) {
    cli_text_addf(text, "n %d, min %.3f ms, median %.3f ms, p95 %.3f ms", spread->n, spread->min * 1e3,
                  spread->median * 1e3, spread->p95 * 1e3);
}

void cli_print_spread_json(const cli_spread *spread, cli_text *text) {
    cli_text_addf(text, "\"n\": %d, \"min_us\": %.6g, \"median_us\": %.6g, \"p95_us\": %.6g", spread->n,
                  spread->min * 1e6, spread->median * 1e6, spread->p95 * 1e6);
}

void cli_print_device(const char *device, const char *driver, cli_text *text) {
    cli_text_addf(text, "device   %s", device);
    if (driver[0] != '\0') cli_text_addf(text, ", driver %s", driver);
    cli_text_addf(text, ", smg %s\n", smg_version());
}

void cli_print_device_json(const char *device, const char *driver, cli_text *text) {
    cli_text_add(text, "\"device\": ");
    cli_text_add_json(text, device);
    cli_text_add(text, ",\n  \"driver\": ");
    cli_text_add_json(text, driver);
    cli_text_add(text, ",\n  \"version\": ");
    cli_text_add_json(text, smg_version());
}

void cli_print_output(const smg_tensor *out, cli_text *text) {
    int64_t count = smg_tensor_elements(out);
    double low = INFINITY;
    double high = -INFINITY;
    double sum = 0;
    int64_t nans = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = smg_tensor_get(out, i);
        nans += isnan(value) ? 1 : 0;
        if (isnan(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
        sum += value;
    }
    cli_text_addf(text, "output   %s %s[", out->name, out->type);
    for (int d = 0; d < out->rank; d++) {
        cli_text_addf(text, "%s%lld", d > 0 ? ", " : "", (long long)out->dims[d]);
    }
    if (nans < count) {
        cli_text_addf(text, "] min %.6g max %.6g", low, high);
        if (isfinite(sum)) cli_text_addf(text, " mean %.6g", sum / (double)(count - nans));
    } else {
        cli_text_add(text, "]");
    }
    if (nans > 0) cli_text_addf(text, ", %lld of %lld are NaN", (long long)nans, (long long)count);
    cli_text_add(text, "\n");
}

smg_status cli_warm_up(smg_model *model, double seconds) {
    double start = smg_command_seconds();
    do {
        CLI_TRY(smg_model_repeat(model));
    } while (smg_command_seconds() - start < seconds);
    return SMG_OK;
}

smg_status cli_run_in_row(smg_model *model, const cli_arrays *arrays, int *out_runs) {
    double start = smg_command_seconds();
    CLI_TRY(smg_model_set_runs(model, 0, out_runs));
    CLI_TRY(smg_model_run(model, arrays->inputs, arrays->count, NULL, 0));
    bool paused = smg_command_seconds() - start > CLI_PAUSE_SECONDS;
    return paused ? cli_warm_up(model, CLI_WARM_SECONDS) : SMG_OK;
}

static smg_status measure_runs(const cli_options *o, cli_arrays *arrays, smg_model *model, double *seconds, int repeats,
                               cli_result *out) {
    static const double long_run = 0.5;
    if (o->repeat == 0 && out->first > long_run) repeats = 1;
    for (int i = 0; i < repeats; i++) {
        CLI_TRY(cli_run_arrays(model, arrays));
        seconds[i] = smg_model_seconds(model);
    }
    out->spread = cli_spread_of(seconds, repeats);
    return smg_model_get_memory(model, &out->memory);
}

/* The first run pays for what drivers put off; it is measured only when it is long. */
smg_status cli_measure(const cli_options *o, cli_arrays *arrays, smg_model *model, double start, cli_result *out) {
    int repeats = o->repeat > 0 ? (int)o->repeat : 3;
    CLI_TRY(cli_run_arrays(model, arrays));
    out->ready = smg_command_seconds() - start;
    smg_model_open_seconds(model, &out->device, &out->program);
    out->first = smg_model_seconds(model);
    double *seconds = calloc((size_t)repeats, sizeof(*seconds));
    if (seconds == NULL) return SMG_MEMORY;
    smg_status status = measure_runs(o, arrays, model, seconds, repeats, out);
    free(seconds);
    return status;
}
