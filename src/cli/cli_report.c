/* cli_report.c: the tables of --check and --profile. */
#include "cli/cli.h"

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
    int calls;       /* of one run */
    double *seconds; /* of every call of all runs */
    int measured_calls;
    double measured, estimated, bytes, flops; /* sums over measured_calls */
    cli_spread spread;
} group;

static double number_of(const smg_bundle *bundle, smg_size size) {
    int64_t number = 0;
    smg_size_is_const(bundle->sizes, size, &number);
    return (double)number;
}

static const smg_bvariant *list_of(const smg_compilation *c, const smg_program *program) {
    return &c->bundle->variants.items[smg_program_variant(program)];
}

/* How often a run calls each module, and room for the time of each call. */
static smg_status make_groups(const smg_compilation *c, const smg_program *program, smg_arena *arena, group **out) {
    const smg_bvariant *list = list_of(c, program);
    int modules = c->bundle->modules.count;
    group *groups = SMG_ARENA_ARRAY(arena, group, (size_t)modules + 1);
    if (groups == NULL) return SMG_MEMORY;
    for (int s = 0; s < list->run.count; s++) groups[list->run.items[s].module].calls++;
    for (int i = 0; i < modules; i++) {
        groups[i].seconds = SMG_ARENA_ARRAY(arena, double, (size_t)groups[i].calls *PROFILE_ROUNDS + 1);
        if (groups[i].seconds == NULL) return SMG_MEMORY;
    }
    *out = groups;
    return SMG_OK;
}

static void add_steps(const smg_compilation *c, const smg_program *program, group *groups) {
    const smg_bvariant *list = list_of(c, program);
    for (int s = 0; s < list->run.count; s++) {
        const smg_bstep *step = &list->run.items[s];
        group *g = &groups[step->module];
        g->seconds[g->measured_calls] = smg_program_step_time(program, s);
        g->measured += g->seconds[g->measured_calls++];
        g->estimated += step->estimate;
        g->bytes += number_of(c->bundle, step->bytes);
        g->flops += number_of(c->bundle, step->flops);
    }
}

static void add_table(const smg_compilation *c, const group *groups, double total, int steps,
                      const smg_program_memory *memory, smg_text *text) {
    const smg_target *t = &c->target;
    smg_text_addf(text, "\n%-10s %6s %6s %10s %10s %10s %12s %12s %7s %7s %7s\n", "kernel", "calls", "n", "min us",
                  "median us", "p95 us", "estimate us", "KB a call", "share", "bandw.", "arith.");
    for (int i = 0; i < c->bundle->modules.count; i++) {
        const group *g = &groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->measured_calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        smg_text_addf(text, "%-10s %6d %6d %10.2f %10.2f %10.2f %12.2f %12.1f %6.1f%% %6.1f%% %6.1f%%\n",
                      c->bundle->modules.items[i].name, g->calls, g->spread.n, g->spread.min * 1e6,
                      g->spread.median * 1e6, g->spread.p95 * 1e6, g->estimated / calls * 1e6, g->bytes / calls / 1e3,
                      total > 0 ? 100 * g->measured / total : 0, 100 * g->bytes * rate / t->bandwidth,
                      100 * g->flops * rate / t->fma_rate);
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

static void add_spills(const smg_compilation *c, const smg_program *program, const group *groups, smg_text *text) {
    for (int i = 0; i < c->bundle->modules.count; i++) {
        double spills = smg_program_built(program, i).spills;
        if (groups[i].calls > 0 && spills > 0)
            smg_text_addf(text, "%s: the driver's compiler spills %.0f registers\n", c->bundle->modules.items[i].name,
                          spills);
    }
}

static void add_json(const smg_compilation *c, const smg_program *program, const group *groups,
                     const smg_program_memory *memory, smg_text *text) {
    const smg_target *t = &c->target;
    bool first = true;
    smg_text_add(text, ",\n  \"profile\": [");
    for (int i = 0; i < c->bundle->modules.count; i++) {
        const group *g = &groups[i];
        if (g->calls == 0) continue;
        double calls = (double)g->measured_calls;
        double rate = g->measured > 0 ? 1 / g->measured : 0;
        smg_text_add(text, first ? "\n    {\"kernel\": " : ",\n    {\"kernel\": ");
        smg_text_add_json(text, c->bundle->modules.items[i].name);
        smg_text_addf(text, ", \"calls\": %d, ", g->calls);
        cli_print_spread_json(&g->spread, text);
        smg_text_addf(text,
                      ", \"estimate_us\": %.6g, \"bytes\": %.0f, \"bandwidth_share\": %.4g, "
                      "\"arithmetic_share\": %.4g",
                      g->estimated / calls * 1e6, g->bytes / calls, g->bytes * rate / t->bandwidth,
                      g->flops * rate / t->fma_rate);
        smg_vk_built built = smg_program_built(program, i);
        if (built.registers >= 0) smg_text_addf(text, ", \"registers\": %.0f", built.registers);
        if (built.shared >= 0) smg_text_addf(text, ", \"shared_bytes\": %.0f", built.shared);
        if (built.spills >= 0) smg_text_addf(text, ", \"spills\": %.0f", built.spills);
        smg_text_add(text, "}");
        first = false;
    }
    smg_text_addf(text,
                  "\n  ],\n  \"memory\": {\"constant_bytes\": %lld, \"arena_bytes\": %lld, "
                  "\"unaliased_bytes\": %lld, \"barriers\": %d, \"derived_bytes\": %lld, "
                  "\"prepare_bytes\": %lld, \"prepare_seconds\": %.9g}",
                  (long long)memory->constant_bytes, (long long)memory->arena_bytes, (long long)memory->unaliased_bytes,
                  memory->barriers, (long long)memory->derived_bytes, (long long)memory->prepare_bytes,
                  memory->prepare_seconds);
}

smg_status cli_warm_up(smg_model *model, double seconds) {
    double start = smg_clock_seconds();
    do {
        SMG_TRY(smg_program_run(smg_model_program(model)));
    } while (smg_clock_seconds() - start < seconds);
    return SMG_OK;
}

static smg_status run_rounds(const cli_options *o, smg_model *model, const cli_arrays *arrays, group *groups) {
    smg_program *program = smg_model_program(model);
    const smg_compilation *c = smg_model_compilation(model);
    int count = smg_program_step_count(program);
    double *steps = SMG_ARENA_ARRAY(arrays->arena, double, (size_t)count + 1);
    cli_trace trace;
    if (steps == NULL) return SMG_MEMORY;
    cli_trace_begin(&trace, o->ctx, c);
    smg_status status = SMG_OK;
    for (int i = 0; i < PROFILE_ROUNDS && status == SMG_OK; i++) {
        double start = smg_clock_seconds();
        status = smg_model_run(model, arrays->inputs, arrays->count, NULL, 0);
        double end = smg_clock_seconds();
        if (status != SMG_OK) break;
        add_steps(c, program, groups);
        for (int s = 0; s < count; s++) steps[s] = smg_program_step_time(program, s);
        if (o->trace != NULL) cli_trace_run(&trace, c, steps, smg_program_variant(program), start, end);
    }
    if (status == SMG_OK && o->trace != NULL) status = cli_trace_write(&trace, o->ctx, o->trace);
    cli_trace_end(&trace);
    return status;
}

smg_status cli_profile(cli_options *o, smg_model *model, const cli_arrays *arrays, smg_text *text) {
    smg_program *program = smg_model_program(model);
    const smg_compilation *c = smg_model_compilation(model);
    smg_program_memory memory;
    SMG_TRY(smg_program_set_profile(program, true));
    SMG_TRY(smg_model_run(model, arrays->inputs, arrays->count, NULL, 0));
    SMG_TRY(cli_warm_up(model, CLI_WARM_SECONDS));
    group *groups = NULL;
    SMG_TRY(make_groups(c, program, arrays->arena, &groups));
    SMG_TRY(run_rounds(o, model, arrays, groups));
    double total = 0;
    for (int i = 0; i < c->bundle->modules.count; i++) {
        total += groups[i].measured;
        groups[i].spread = cli_spread_of(groups[i].seconds, groups[i].measured_calls);
    }
    smg_program_memory_used(program, &memory);
    if (o->json) {
        add_json(c, program, groups, &memory, text);
    } else {
        add_table(c, groups, total, smg_program_step_count(program), &memory, text);
        add_spills(c, program, groups, text);
    }
    return smg_program_set_profile(program, false);
}

#else

smg_status cli_profile(cli_options *o, smg_model *model, const cli_arrays *arrays, smg_text *text) {
    (void)model, (void)arrays, (void)text;
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif
