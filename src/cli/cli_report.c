/* cli_report.c: the tables of --check and --profile. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cli_median(double *values, int count) {
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void cli_print_check(const smg_check *check, smg_text *text) {
    for (int i = 0; i < check->count; i++) {
        const smg_check_row *row = &check->rows[i];
        smg_text_addf(text, "check    %s: max abs %.3g, max rel %.3g, tolerance %.3g: %s\n", row->output, row->max_abs,
                      row->max_rel, row->tolerance, row->pass ? "PASS" : "FAIL");
        if (!row->pass) {
            smg_text_addf(text, "         worst at element %lld: %.9g, the reference has %.9g\n", (long long)row->worst,
                          row->worst_got, row->worst_want);
        }
    }
    if (check->sampled < check->total) {
        smg_text_addf(text, "         sampled %lld of %lld rows of the batch (more than %.0f Gflop)\n",
                      (long long)check->sampled, (long long)check->total, SMG_CHECK_FLOPS / 1e9);
    }
}

#if SMG_VULKAN

enum { PROFILE_ROUNDS = 20 };

typedef struct group {
    int calls;
    double measured, estimated, bytes, flops;
} group;

static double number_of(const smg_bundle *bundle, smg_size size) {
    int64_t number = 0;
    smg_size_is_const(bundle->sizes, size, &number);
    return (double)number;
}

static void add_steps(const smg_compilation *c, const smg_program *program, group *groups) {
    const smg_bvariant *list = &c->bundle->variants.items[smg_program_variant(program)];
    for (int s = 0; s < list->run.count; s++) {
        const smg_bstep *step = &list->run.items[s];
        group *g = &groups[step->module];
        g->calls++;
        g->measured += smg_program_step_time(program, s);
        g->estimated += step->estimate;
        g->bytes += number_of(c->bundle, step->bytes);
        g->flops += number_of(c->bundle, step->flops);
    }
}

static void add_table(const smg_compilation *c, const group *groups, double total, int steps,
                      const smg_program_memory *memory, smg_text *text) {
    const smg_target *t = &c->target;
    smg_text_addf(text, "\n%-10s %6s %12s %12s %12s %7s %7s %7s\n", "kernel", "calls", "mean us", "estimate us",
                  "KB a call", "share", "bandw.", "arith.");
    for (int i = 0; i < c->bundle->modules.count; i++) {
        const group *g = &groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        smg_text_addf(text, "%-10s %6d %12.2f %12.2f %12.1f %6.1f%% %6.1f%% %6.1f%%\n",
                      c->bundle->modules.items[i].name, g->calls / PROFILE_ROUNDS, g->measured / calls * 1e6,
                      g->estimated / calls * 1e6, g->bytes / calls / 1e3, total > 0 ? 100 * g->measured / total : 0,
                      100 * g->bytes * rate / t->bandwidth, 100 * g->flops * rate / t->fma_rate);
    }
    smg_text_addf(text,
                  "memory: constants %.1f MB, arena %.1f MB (%.1f MB without sharing); "
                  "%d barriers in %d dispatches\n",
                  (double)(memory->constant_bytes + memory->derived_bytes) / 1e6, (double)memory->arena_bytes / 1e6,
                  (double)memory->unaliased_bytes / 1e6, memory->barriers, steps);
    if (c->bundle->prepare.count == 0) return;
    smg_text_addf(text, "prepare: %d kernels made %.1f MB of constants in %.1f ms, once, beside %.1f MB of scratch\n",
                  c->bundle->prepare.count, (double)memory->derived_bytes / 1e6, memory->prepare_seconds * 1e3,
                  (double)memory->prepare_bytes / 1e6);
}

static void add_json(const smg_compilation *c, const group *groups, const smg_program_memory *memory, smg_text *text) {
    const smg_target *t = &c->target;
    bool first = true;
    smg_text_add(text, ",\n  \"profile\": [");
    for (int i = 0; i < c->bundle->modules.count; i++) {
        const group *g = &groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        smg_text_add(text, first ? "\n    {\"kernel\": " : ",\n    {\"kernel\": ");
        smg_text_add_json(text, c->bundle->modules.items[i].name);
        smg_text_addf(text,
                      ", \"calls\": %d, \"seconds\": %.9g, \"estimate_seconds\": %.9g, "
                      "\"bytes\": %.0f, \"bandwidth\": %.4g, \"arithmetic\": %.4g}",
                      g->calls / PROFILE_ROUNDS, g->measured / calls, g->estimated / calls, g->bytes / calls,
                      g->bytes * rate / t->bandwidth, g->flops * rate / t->fma_rate);
        first = false;
    }
    smg_text_addf(text,
                  "\n  ],\n  \"memory\": {\"constants\": %lld, \"arena\": %lld, \"unaliased\": %lld, "
                  "\"barriers\": %d, \"derived\": %lld, \"prepare\": %lld, \"prepare_seconds\": %.9g}",
                  (long long)memory->constant_bytes, (long long)memory->arena_bytes, (long long)memory->unaliased_bytes,
                  memory->barriers, (long long)memory->derived_bytes, (long long)memory->prepare_bytes,
                  memory->prepare_seconds);
}

smg_status cli_profile(cli_options *o, smg_model *model, const cli_arrays *arrays, smg_text *text) {
    smg_program *program = smg_model_program(model);
    const smg_compilation *c = smg_model_compilation(model);
    smg_program_memory memory;
    SMG_TRY(smg_program_set_profile(program, true));
    SMG_TRY(smg_model_run(model, arrays->inputs, arrays->count, NULL, 0)); /* warms up */
    group *groups = SMG_ARENA_ARRAY(arrays->arena, group, (size_t)c->bundle->modules.count + 1);
    if (groups == NULL) return SMG_MEMORY;
    for (int i = 0; i < PROFILE_ROUNDS; i++) {
        SMG_TRY(smg_model_run(model, arrays->inputs, arrays->count, NULL, 0));
        add_steps(c, program, groups);
    }
    double total = 0;
    for (int i = 0; i < c->bundle->modules.count; i++) total += groups[i].measured;
    smg_program_memory_used(program, &memory);
    if (o->json) {
        add_json(c, groups, &memory, text);
    } else {
        add_table(c, groups, total, smg_program_step_count(program), &memory, text);
    }
    return smg_program_set_profile(program, false);
}

#else

smg_status cli_profile(cli_options *o, smg_model *model, const cli_arrays *arrays, smg_text *text) {
    (void)model, (void)arrays, (void)text;
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif
