/* cli_run.c: smg run, on a device or (--interpret) in the kernel interpreter. */
#include <math.h>

#include "cli/cli.h"

static void print_compilation(const smg_compilation *c, const cli_arrays *arrays, smg_text *text) {
    cli_print_device(&c->target, text);
    smg_text_addf(text, "graph    %s: %d ops -> %d -> %d kernels", c->source->name, smg_compile_op_count(c->source),
                  c->run_ops, smg_compile_kernel_count(c));
    if (c->bundle != NULL) {
        smg_text_addf(text, " (%d modules, %d from the cache)", c->bundle->modules.count, c->modules_cached);
    }
    smg_text_add(text, "\nsizes    ");
    cli_print_dims(text, arrays);
    if (c->from_cache) {
        smg_text_addf(text, "\ncompile  plan and SPIR-V from the cache %.3f s", c->seconds.cache);
    } else {
        smg_text_addf(text, "\ncompile  analysis %.3f s, GLSL %.3f s, SPIR-V %.3f s",
                      c->seconds.rewrite + c->seconds.plan, c->seconds.glsl, c->seconds.spirv);
        if (c->options.rejected_count > 0)
            smg_text_addf(text, " (planned again without %d schedules that the driver made nothing good of)",
                          c->options.rejected_count);
    }
}

static void add_overflow(const smg_overflow *found, smg_text *text) {
    if (found->value == NULL) return;
    smg_text_add(text, ",\n  \"overflow\": {\"value\": ");
    smg_text_add_json(text, found->value);
    smg_text_addf(text, ", \"size\": %.9g, \"count\": %d}", found->size, found->count);
}

static void add_json(const cli_job *job, const smg_compilation *c, const cli_result *result, const smg_check *check,
                     const smg_overflow *overflow, const char *profile, smg_text *text) {
    double bytes = 0;
    double flops = 0;
    double estimate = 0;
    smg_compile_work(c, &bytes, &flops, &estimate);
    smg_text_add(text, "{\n  ");
    cli_print_device_json(&c->target, text);
    smg_text_add(text, ",\n  \"graph\": ");
    smg_text_add_json(text, c->source->name);
    smg_text_addf(text, ",\n  \"ops\": %d,\n  \"ops_rewritten\": %d,\n  \"kernels\": %d,\n  \"modules\": %d,\n",
                  smg_compile_op_count(c->source), c->run_ops, smg_compile_kernel_count(c),
                  c->bundle != NULL ? c->bundle->modules.count : 0);
    smg_text_addf(text, "  \"bytes\": %.0f,\n  \"flops\": %.0f,\n  \"estimate_seconds\": %.9g,\n", bytes, flops,
                  estimate);
    smg_text_addf(text, "  \"analysis_seconds\": %.6g,\n  \"code_seconds\": %.6g,\n  \"seconds\": %.9g,\n",
                  c->seconds.rewrite + c->seconds.plan, c->seconds.glsl + c->seconds.spirv, result->spread.median);
    smg_text_addf(text, "  \"plan_cached\": %s,\n  \"cache_seconds\": %.6g,\n", c->from_cache ? "true" : "false",
                  c->seconds.cache);
    smg_text_addf(text, "  \"schedules_rejected\": %d,\n", c->options.rejected_count);
    smg_text_addf(text, "  \"load_seconds\": %.6g,\n  \"device_seconds\": %.6g,\n", job->load, result->device);
    smg_text_addf(text, "  \"program_seconds\": %.6g,\n  \"first_seconds\": %.9g,\n  \"ready_seconds\": %.6g,\n",
                  result->program, result->first, result->ready);
    smg_text_add(text, "  \"time\": {");
    cli_print_spread_json(&result->spread, text);
    smg_text_add(text, "},\n  ");
    cli_print_dims_json(text, &job->arrays);
    smg_text_addf(text, ",\n  \"peak_bytes\": %lld", (long long)result->memory.peak_bytes);
    for (int i = 0; check != NULL && i < check->count; i++) {
        const smg_check_row *row = &check->rows[i];
        smg_text_add(text, i == 0 ? ",\n  \"check\": [\n" : ",\n");
        smg_text_add(text, "    {\"output\": ");
        smg_text_add_json(text, row->output);
        /* JSON has no infinity */
        smg_text_addf(text, ", \"max_abs\": %.9g, \"max_rel\": %.9g, \"tolerance\": %.9g, \"pass\": %s}",
                      isfinite(row->max_abs) ? row->max_abs : 1e308, isfinite(row->max_rel) ? row->max_rel : 1e308,
                      row->tolerance, row->pass ? "true" : "false");
    }
    if (check != NULL && check->count > 0) smg_text_add(text, "\n  ]");
    add_overflow(overflow, text);
    smg_text_add(text, profile);
    smg_text_add(text, "\n}\n");
}

/* Writes files, compares, prints. */
static smg_status report(cli_job *job, smg_compilation *c, const cli_result *result, const char *profile) {
    cli_options *o = job->o;
    const cli_arrays *arrays = &job->arrays;
    smg_text *text = &job->text;
    smg_check check = {0};
    smg_overflow overflow = {0};
    SMG_TRY(cli_save_outputs(o, arrays));
    if (o->check) {
        SMG_TRY(smg_compile_check(o->ctx, c->source, smg_compile_roundings(c), arrays->symbols, arrays->inputs,
                                  arrays->count, arrays->outputs, arrays->arena, &check));
        SMG_TRY(smg_compile_find_overflow(c, arrays->symbols, arrays->inputs, arrays->count, arrays->arena, &overflow));
        job->pass = check.pass;
    }
    if (o->json) {
        add_json(job, c, result, o->check ? &check : NULL, &overflow, profile, text);
        return SMG_OK;
    }
    print_compilation(c, arrays, text);
    if (result->program > 0) {
        smg_text_addf(text, ", pipelines and upload %.3f s, first run %.3f s, first result after %.3f s",
                      result->program, result->first, result->ready);
    }
    smg_text_add(text, "\n");
    for (int i = 0; i < arrays->output_count; i++) cli_print_output(&arrays->outputs[i], text);
    if (result->spread.n > 0) {
        smg_text_add(text, "time     on the device: ");
        cli_print_spread(&result->spread, text);
        smg_text_add(text, "\n");
    }
    if (result->memory.peak_bytes > 0)
        smg_text_addf(text, "memory   of the device: at most %.1f MB, %.1f MB of it weights\n",
                      (double)result->memory.peak_bytes / 1e6,
                      (double)(result->memory.constant_bytes + result->memory.derived_bytes) / 1e6);
    if (o->check) cli_print_check(&check, text);
    if (overflow.value != NULL)
        smg_text_addf(text, "overflow '%s' becomes %g, and %s ends at %g (%d such values, this is the first)\n",
                      overflow.value, overflow.size, smg_type_word(overflow.type), smg_type_limit(overflow.type),
                      overflow.count);
    smg_text_add(text, profile);
    return SMG_OK;
}

static smg_status interpret(cli_job *job) {
    cli_options *o = job->o;
    cli_arrays *arrays = &job->arrays;
    smg_target target;
    smg_compilation *c = NULL;
    const cli_result result = {0};
    SMG_TRY(cli_fill_arrays(o, job->interface, arrays));
    SMG_TRY(cli_target(o, "careful", &target));
    const smg_model_desc desc = cli_job_desc(job);
    const smg_compile_options options = smg_compile_options_of(&desc);
    SMG_TRY(smg_compile_plan(o->ctx, job->source.graph, &target, &options, &c));
    smg_status status =
        smg_compile_interpret(c, arrays->symbols, arrays->inputs, arrays->count, arrays->arena, arrays->outputs);
    if (status == SMG_OK) status = report(job, c, &result, "");
    smg_compilation_destroy(c);
    return status;
}

static smg_status run_on_device(cli_job *job) {
    cli_options *o = job->o;
    cli_arrays *arrays = &job->arrays;
    smg_model *model = NULL;
    cli_result result = {0};
    smg_text profile;
    const smg_model_desc desc = cli_job_desc(job);
    SMG_TRY(smg_model_open_source(o->ctx, &job->source, NULL, &desc, &model));
    smg_text_init(&profile, o->ctx);
    smg_status status = smg_model_bind(model, arrays->symbols);
    if (status == SMG_OK) status = cli_fill_arrays(o, job->interface, arrays);
    if (status == SMG_OK) status = cli_measure(o, arrays, model, job->start, &result);
    if (status == SMG_OK && o->profile) status = cli_profile(o, model, arrays, &profile);
    if (status == SMG_OK) status = report(job, smg_model_compilation(model), &result, smg_text_cstr(&profile));
    smg_text_free(&profile);
    smg_model_close(model);
    return status;
}

int cli_run(cli_options *o) {
    if (cli_is_bundle(o)) return cli_bundle_run(o);
    return cli_on_model(o, CLI_ARRAYS, o->interpret ? interpret : run_on_device);
}
