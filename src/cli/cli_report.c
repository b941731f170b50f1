/* cli_report.c: the tables of --check and --profile. */
#include <stdlib.h>

#include "cli/cli.h"

void cli_print_check(const smg_check *check, cli_text *text) {
    for (int i = 0; i < check->count; i++) {
        const smg_check_row *row = &check->rows[i];
        cli_text_addf(text, "check    %s: max abs %.3g, max rel %.3g, tolerance %.3g: %s\n", row->output, row->max_abs,
                      row->max_rel, row->tolerance, row->pass ? "PASS" : "FAIL");
        if (!row->pass) {
            cli_text_addf(text, "         worst at element %lld: %.9g, the reference has %.9g\n", (long long)row->worst,
                          row->worst_got, row->worst_want);
        }
    }
    if (check->sampled < check->total) {
        cli_text_addf(text, "         sampled %lld of %lld rows of the batch (more than %.0f Gflop)\n",
                      (long long)check->sampled, (long long)check->total, SMG_CHECK_FLOPS / 1e9);
    }
}

enum { PROFILE_ROUNDS = 20 };

typedef struct group {
    int calls;       /* of one run */
    double *seconds; /* of every call of all runs */
    int measured_calls;
    double measured, estimated, bytes, flops; /* sums over measured_calls */
    cli_spread spread;
} group;

/* A model with a group for each kernel of it. */
typedef struct profile {
    smg_model *model;
    smg_device_facts device;
    smg_memory_info memory;
    group *groups;
    int count;
} profile;

/* How often a run calls each kernel, and room for the time of each call. */
static smg_status make_groups(profile *p) {
    smg_step_info step;
    p->count = smg_model_kernel_count(p->model);
    p->groups = calloc((size_t)p->count + 1, sizeof(*p->groups));
    if (p->groups == NULL) return SMG_MEMORY;
    for (int i = 0; smg_model_step(p->model, i, &step); i++) p->groups[step.kernel].calls++;
    for (int i = 0; i < p->count; i++) {
        p->groups[i].seconds = calloc((size_t)p->groups[i].calls * PROFILE_ROUNDS + 1, sizeof(double));
        if (p->groups[i].seconds == NULL) return SMG_MEMORY;
    }
    return SMG_OK;
}

static void free_groups(profile *p) {
    for (int i = 0; p->groups != NULL && i < p->count; i++) free(p->groups[i].seconds);
    free(p->groups);
}

static void add_steps(profile *p) {
    smg_step_info step;
    for (int i = 0; smg_model_step(p->model, i, &step); i++) {
        group *g = &p->groups[step.kernel];
        g->seconds[g->measured_calls++] = step.seconds;
        g->measured += step.seconds;
        g->estimated += step.estimate;
        g->bytes += step.bytes;
        g->flops += step.flops;
    }
}

static void add_table(const profile *p, double total, cli_text *text) {
    const smg_memory_info *memory = &p->memory;
    smg_kernel_info kernel;
    cli_text_addf(text, "\n%-10s %6s %6s %10s %10s %10s %12s %12s %7s %7s %7s\n", "kernel", "calls", "n", "min us",
                  "median us", "p95 us", "estimate us", "KB a call", "share", "bandw.", "arith.");
    for (int i = 0; smg_model_kernel(p->model, i, &kernel); i++) {
        const group *g = &p->groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->measured_calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        cli_text_addf(text, "%-10s %6d %6d %10.2f %10.2f %10.2f %12.2f %12.1f %6.1f%% %6.1f%% %6.1f%%\n", kernel.name,
                      g->calls, g->spread.n, g->spread.min * 1e6, g->spread.median * 1e6, g->spread.p95 * 1e6,
                      g->estimated / calls * 1e6, g->bytes / calls / 1e3, total > 0 ? 100 * g->measured / total : 0,
                      100 * g->bytes * rate / p->device.bandwidth, 100 * g->flops * rate / p->device.arithmetic);
    }
    cli_text_addf(text,
                  "memory: constants %.1f MB, arena %.1f MB (%.1f MB without sharing); "
                  "%d barriers in %d dispatches\n",
                  (double)(memory->weights + memory->derived) / 1e6, (double)memory->values / 1e6,
                  (double)memory->values_apart / 1e6, memory->barriers, smg_model_step_count(p->model));
    if (memory->prepare_kernels == 0) return;
    cli_text_addf(text, "prepare: %d kernels made %.1f MB of constants in %.1f ms, once, beside %.1f MB of scratch\n",
                  memory->prepare_kernels, (double)memory->derived / 1e6, memory->prepare_seconds * 1e3,
                  (double)memory->prepare / 1e6);
}

static void add_spills(const profile *p, cli_text *text) {
    smg_kernel_info kernel;
    for (int i = 0; smg_model_kernel(p->model, i, &kernel); i++)
        if (p->groups[i].calls > 0 && kernel.spills > 0)
            cli_text_addf(text, "%s: the driver's compiler spills %.0f registers\n", kernel.name, kernel.spills);
}

static void add_json(const profile *p, cli_text *text) {
    const smg_memory_info *memory = &p->memory;
    smg_kernel_info kernel;
    bool first = true;
    cli_text_add(text, ",\n  \"profile\": [");
    for (int i = 0; smg_model_kernel(p->model, i, &kernel); i++) {
        const group *g = &p->groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->measured_calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        cli_text_add(text, first ? "\n    {\"kernel\": " : ",\n    {\"kernel\": ");
        cli_text_add_json(text, kernel.name);
        cli_text_addf(text, ", \"calls\": %d, ", g->calls);
        cli_print_spread_json(&g->spread, text);
        cli_text_addf(text,
                      ", \"estimate_us\": %.6g, \"bytes\": %.0f, \"bandwidth_share\": %.4g, "
                      "\"arithmetic_share\": %.4g",
                      g->estimated / calls * 1e6, g->bytes / calls, g->bytes * rate / p->device.bandwidth,
                      g->flops * rate / p->device.arithmetic);
        if (kernel.registers >= 0) cli_text_addf(text, ", \"registers\": %.0f", kernel.registers);
        if (kernel.shared_bytes >= 0) cli_text_addf(text, ", \"shared_bytes\": %.0f", kernel.shared_bytes);
        if (kernel.spills >= 0) cli_text_addf(text, ", \"spills\": %.0f", kernel.spills);
        cli_text_add(text, "}");
        first = false;
    }
    cli_text_addf(text,
                  "\n  ],\n  \"memory\": {\"constant_bytes\": %lld, \"arena_bytes\": %lld, "
                  "\"unaliased_bytes\": %lld, \"barriers\": %d, \"derived_bytes\": %lld, "
                  "\"prepare_bytes\": %lld, \"prepare_seconds\": %.9g}",
                  (long long)memory->weights, (long long)memory->values, (long long)memory->values_apart,
                  memory->barriers, (long long)memory->derived, (long long)memory->prepare, memory->prepare_seconds);
}

/* A trace shows each run as it is, copies of inputs among it; clocks may fall while these are made. */
static smg_status run_rounds(const cli_options *o, const cli_arrays *arrays, profile *p, cli_trace *trace) {
    for (int i = 0; i < PROFILE_ROUNDS; i++) {
        double start = smg_command_seconds();
        CLI_TRY(o->trace != NULL ? smg_model_run(p->model, arrays->inputs, arrays->count, NULL, 0)
                                 : smg_model_repeat(p->model));
        double end = smg_command_seconds();
        add_steps(p);
        if (o->trace != NULL) cli_trace_run(trace, p->model, start, end);
    }
    return o->trace != NULL ? cli_trace_write(trace, o->ctx, o->trace) : SMG_OK;
}

static smg_status trace_rounds(const cli_options *o, const cli_arrays *arrays, profile *p) {
    smg_compilation_facts facts;
    cli_trace trace;
    CLI_TRY(smg_compilation_get_facts(smg_model_compilation(p->model), &facts));
    cli_trace_begin(&trace, &facts);
    smg_status status = run_rounds(o, arrays, p, &trace);
    cli_trace_end(&trace);
    return status;
}

static smg_status measure(const cli_options *o, const cli_arrays *arrays, profile *p, cli_text *text) {
    double total = 0;
    CLI_TRY(make_groups(p));
    CLI_TRY(trace_rounds(o, arrays, p));
    for (int i = 0; i < p->count; i++) {
        total += p->groups[i].measured;
        p->groups[i].spread = cli_spread_of(p->groups[i].seconds, p->groups[i].measured_calls);
    }
    CLI_TRY(smg_model_get_memory(p->model, &p->memory));
    CLI_TRY(smg_device_get_facts(smg_model_device(p->model), &p->device));
    if (o->json) {
        add_json(p, text);
    } else {
        add_table(p, total, text);
        add_spills(p, text);
    }
    return SMG_OK;
}

smg_status cli_profile(const cli_options *o, smg_model *model, const cli_arrays *arrays, cli_text *text) {
    profile p = {.model = model};
    CLI_TRY(smg_model_set_profile(model, true));
    CLI_TRY(smg_model_run(model, arrays->inputs, arrays->count, NULL, 0));
    CLI_TRY(cli_warm_up(model, CLI_WARM_SECONDS));
    if (o->trace == NULL) CLI_TRY(cli_run_in_row(model, arrays, NULL)); /* a trace shows each run as it is */
    smg_status status = measure(o, arrays, &p, text);
    free_groups(&p);
    if (status == SMG_OK) status = smg_model_set_runs(model, 1, NULL);
    return status == SMG_OK ? smg_model_set_profile(model, false) : status;
}
