/* cli_run.c: smg run, on a device or (--interpret) in the kernel interpreter. */
#include <math.h>

#include "cli/cli.h"

/* What came of a run. */
typedef struct outcome {
    smg_compilation_facts facts;
    cli_result result;
    smg_check *check; /* NULL: it was not asked for */
    smg_overflow_info overflow;
    cli_text profile;
} outcome;

static void print_compilation(const smg_compilation_facts *f, const cli_arrays *arrays, cli_text *text) {
    cli_print_device(f->target, f->driver, text);
    cli_text_addf(text, "graph    %s: %d ops -> %d -> %d kernels", f->graph, f->operations, f->operations_rewritten,
                  f->kernels);
    if (f->modules >= 0) cli_text_addf(text, " (%d modules, %d from the cache)", f->modules, f->modules_cached);
    cli_text_add(text, "\nsizes    ");
    cli_print_dims(text, arrays);
    if (f->from_cache) {
        cli_text_addf(text, "\ncompile  plan and SPIR-V from the cache %.3f s", f->cache_seconds);
    } else {
        cli_text_addf(text, "\ncompile  analysis %.3f s, GLSL %.3f s, SPIR-V %.3f s", f->plan_seconds, f->glsl_seconds,
                      f->spirv_seconds);
        if (f->rejected > 0)
            cli_text_addf(text, " (planned again without %d schedules that the driver made nothing good of)",
                          f->rejected);
    }
}

static void add_overflow(const smg_overflow_info *found, cli_text *text) {
    if (found->value == NULL) return;
    cli_text_add(text, ",\n  \"overflow\": {\"value\": ");
    cli_text_add_json(text, found->value);
    cli_text_addf(text, ", \"size\": %.9g, \"count\": %d}", found->size, found->count);
}

static void add_check(const smg_check *check, cli_text *text) {
    for (int i = 0; i < check->count; i++) {
        const smg_check_row *row = &check->rows[i];
        cli_text_add(text, i == 0 ? ",\n  \"check\": [\n" : ",\n");
        cli_text_add(text, "    {\"output\": ");
        cli_text_add_json(text, row->output);
        /* JSON has no infinity */
        cli_text_addf(text, ", \"max_abs\": %.9g, \"max_rel\": %.9g, \"tolerance\": %.9g, \"pass\": %s}",
                      isfinite(row->max_abs) ? row->max_abs : 1e308, isfinite(row->max_rel) ? row->max_rel : 1e308,
                      row->tolerance, row->pass ? "true" : "false");
    }
    if (check->count > 0) cli_text_add(text, "\n  ]");
}

static void add_json(const cli_job *job, const outcome *out, cli_text *text) {
    const smg_compilation_facts *f = &out->facts;
    const cli_result *result = &out->result;
    cli_text_add(text, "{\n  ");
    cli_print_device_json(f->target, f->driver, text);
    cli_text_add(text, ",\n  \"graph\": ");
    cli_text_add_json(text, f->graph);
    cli_text_addf(text, ",\n  \"ops\": %d,\n  \"ops_rewritten\": %d,\n  \"kernels\": %d,\n  \"modules\": %d,\n",
                  f->operations, f->operations_rewritten, f->kernels, f->modules >= 0 ? f->modules : 0);
    cli_text_addf(text, "  \"bytes\": %.0f,\n  \"flops\": %.0f,\n  \"estimate_seconds\": %.9g,\n", f->bytes, f->flops,
                  f->estimate);
    cli_text_addf(text, "  \"analysis_seconds\": %.6g,\n  \"code_seconds\": %.6g,\n  \"seconds\": %.9g,\n",
                  f->plan_seconds, f->glsl_seconds + f->spirv_seconds, result->spread.median);
    cli_text_addf(text, "  \"plan_cached\": %s,\n  \"cache_seconds\": %.6g,\n", f->from_cache ? "true" : "false",
                  f->cache_seconds);
    cli_text_addf(text, "  \"schedules_rejected\": %d,\n", f->rejected);
    cli_text_addf(text, "  \"load_seconds\": %.6g,\n  \"device_seconds\": %.6g,\n", job->load, result->device);
    cli_text_addf(text, "  \"program_seconds\": %.6g,\n  \"first_seconds\": %.9g,\n  \"ready_seconds\": %.6g,\n",
                  result->program, result->first, result->ready);
    cli_text_add(text, "  \"time\": {");
    cli_print_spread_json(&result->spread, text);
    cli_text_add(text, "},\n  ");
    cli_print_dims_json(text, &job->arrays);
    cli_text_addf(text, ",\n  \"peak_bytes\": %lld", (long long)result->memory.peak);
    if (out->check != NULL) add_check(out->check, text);
    add_overflow(&out->overflow, text);
    cli_text_add(text, cli_text_cstr(&out->profile));
    cli_text_add(text, "\n}\n");
}

static void add_table(const cli_job *job, const outcome *out, cli_text *text) {
    const cli_result *result = &out->result;
    const smg_memory_info *memory = &result->memory;
    print_compilation(&out->facts, &job->arrays, text);
    if (result->program > 0)
        cli_text_addf(text, ", pipelines and upload %.3f s, first run %.3f s, first result after %.3f s",
                      result->program, result->first, result->ready);
    cli_text_add(text, "\n");
    for (int i = 0; i < job->arrays.output_count; i++) cli_print_output(&job->arrays.outputs[i], text);
    if (result->spread.n > 0) {
        cli_text_add(text, "time     on the device: ");
        cli_print_spread(&result->spread, text);
        cli_text_add(text, "\n");
    }
    if (memory->peak > 0)
        cli_text_addf(text, "memory   of the device: at most %.1f MB, %.1f MB of it weights\n",
                      (double)memory->peak / 1e6, (double)(memory->weights + memory->derived) / 1e6);
    if (out->check != NULL) cli_print_check(out->check, text);
    if (out->overflow.value != NULL)
        cli_text_addf(text, "overflow '%s' becomes %g, and %s ends at %g (%d such values, this is the first)\n",
                      out->overflow.value, out->overflow.size, out->overflow.type, out->overflow.limit,
                      out->overflow.count);
    cli_text_add(text, cli_text_cstr(&out->profile));
}

/* Writes files, compares, prints. */
static smg_status report(cli_job *job, smg_compilation *c, outcome *out) {
    const cli_options *o = job->o;
    CLI_TRY(cli_text_status(&out->profile));
    CLI_TRY(cli_save_outputs(o, &job->arrays));
    CLI_TRY(smg_compilation_get_facts(c, &out->facts));
    if (o->check) {
        CLI_TRY(smg_compilation_check(c, job->arrays.all, &out->check));
        CLI_TRY(smg_compilation_find_overflow(c, job->arrays.all, &out->overflow));
        job->pass = out->check->pass;
    }
    (o->json ? add_json : add_table)(job, out, &job->text);
    return SMG_OK;
}

static void free_outcome(outcome *out) {
    smg_check_destroy(out->check);
    cli_text_free(&out->profile);
}

static smg_status interpret(cli_job *job) {
    const cli_options *o = job->o;
    outcome out = {0};
    smg_compilation *c = NULL;
    CLI_TRY(cli_fill_arrays(o, &job->arrays));
    const smg_model_desc model = cli_job_desc(job);
    const smg_compile_desc desc = {.model = &model, .target = cli_target(o, "careful")};
    CLI_TRY(smg_source_compile(job->source, &desc, &c));
    smg_status status = smg_compilation_interpret(c, job->arrays.all);
    if (status == SMG_OK) status = report(job, c, &out);
    free_outcome(&out);
    smg_compilation_destroy(c);
    return status;
}

static smg_status run_on_device(cli_job *job) {
    const cli_options *o = job->o;
    cli_arrays *arrays = &job->arrays;
    smg_model *model = NULL;
    outcome out = {0};
    const smg_model_desc desc = cli_job_desc(job);
    CLI_TRY(smg_source_open_model(job->source, &desc, &model));
    smg_status status = smg_model_prepare(model, arrays->dims, arrays->dim_count);
    if (status == SMG_OK) status = cli_fill_arrays(o, arrays);
    if (status == SMG_OK) status = cli_measure(o, arrays, model, job->start, &out.result);
    if (status == SMG_OK && o->profile) status = cli_profile(o, model, arrays, &out.profile);
    if (status == SMG_OK) status = report(job, smg_model_compilation(model), &out);
    free_outcome(&out);
    smg_model_close(model);
    return status;
}

int cli_run(cli_options *o) {
    if (cli_is_bundle(o)) return cli_bundle_run(o);
    return cli_on_model(o, CLI_ARRAYS, o->interpret ? interpret : run_on_device);
}
