/* cli_model.c: what the commands over a MODEL have in common: it is opened, arrays are made at the sizes that options
 * and files give, something is done, everything is closed and the text printed, whatever happened in between. */
#include <stdio.h>

#include "cli/cli.h"

static smg_status model_path(const cli_options *o, const char **out_path) {
    if (o->word_count == 0) return smg_fail(o->ctx, SMG_INVALID, "a MODEL is needed");
    if (o->word_count > 1) {
        return smg_fail(o->ctx, SMG_INVALID, "one MODEL is needed, '%s' is one word too many", o->words[1]);
    }
    *out_path = o->words[0];
    return SMG_OK;
}

static smg_status with_arrays(cli_job *job, cli_work work) {
    smg_arena *arena = NULL;
    smg_interface *interface = NULL;
    SMG_TRY(smg_arena_create(job->o->ctx, &arena));
    smg_status status = smg_compile_interface(arena, job->source.graph, &job->source, &interface);
    job->interface = interface;
    if (status == SMG_OK) status = cli_make_arrays(job->o, interface, arena, &job->arrays);
    if (status == SMG_OK && job->o->measure) status = cli_fill_arrays(job->o, job->interface, &job->arrays);
    if (status == SMG_OK) status = work(job);
    smg_arena_destroy(arena);
    return status;
}

int cli_on_model(cli_options *o, cli_need need, cli_work work) {
    cli_job job = {.o = o, .pass = true, .start = smg_clock_seconds()};
    const char *path = NULL;
    if (model_path(o, &path) != SMG_OK) return cli_fail(o->ctx);
    smg_status status = need == CLI_LOOK ? smg_source_look(o->ctx, path, false, &job.source)
                                         : smg_source_open(o->ctx, path, false, &job.source);
    if (status != SMG_OK) return cli_fail(o->ctx);
    job.load = smg_clock_seconds() - job.start;
    smg_text_init(&job.text, o->ctx);
    status = need == CLI_ARRAYS ? with_arrays(&job, work) : work(&job);
    if (status == SMG_OK) status = smg_text_status(&job.text);
    if (status == SMG_OK) fputs(smg_text_cstr(&job.text), stdout);
    smg_text_free(&job.text);
    smg_source_close(&job.source);
    if (status != SMG_OK) return cli_fail(o->ctx);
    return job.pass ? CLI_OK : CLI_CHECK_FAILED;
}

smg_status cli_check_precision(const cli_options *o) {
    smg_type type;
    return smg_precision_find(o->ctx, o->precision, &type);
}

smg_model_desc cli_model_desc(const cli_options *o) {
    smg_goal goal;
    cli_goal(o->objective, &goal);
    return (smg_model_desc){
        .device = o->device,
        .goal = goal,
        .max_memory = o->max_memory,
        .max_fused_ops = (int)o->max_fused_ops,
        .min_gain = (double)o->min_gain,
        .dims = o->dims,
        .dim_count = o->dim_count,
        .max_dims = o->max_dims,
        .max_dim_count = o->max_dim_count,
        .precision = o->precision,
        .unfused = o->unfused,
        .rank = (int)o->rank,
        .tuning = o->tuning != NULL && strcmp(o->tuning, "none") == 0 ? "" : o->tuning,
        .no_calibrate = o->no_calibrate,
        .no_matrices = o->no_matrices,
        .padding_unread = o->padding_unread,
    };
}

smg_model_desc cli_job_desc(const cli_job *job) {
    smg_model_desc desc = cli_model_desc(job->o);
    desc.dims = job->arrays.dims;
    desc.dim_count = job->arrays.dim_count;
    desc.ranges = job->arrays.ranges;
    desc.range_count = job->arrays.range_count;
    desc.samples = job->arrays.inputs;
    desc.sample_count = job->o->measure ? job->arrays.count : 0;
    return desc;
}

/* ---- targets ------------------------------------------------------------------------------------- */

#if SMG_VULKAN
static smg_status device_target(const cli_options *o, smg_target *out_target) {
    smg_vk_device *device = NULL;
    SMG_TRY(smg_vk_open(o->ctx, o->device, 0, &device));
    const smg_model_desc desc = cli_model_desc(o);
    smg_status status = smg_compile_know_device(device, &desc);
    if (status == SMG_OK) *out_target = *smg_vk_target(device);
    smg_vk_close(device);
    return status;
}
#else
static smg_status device_target(const cli_options *o, smg_target *out_target) {
    (void)out_target;
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: give a --target");
}
#endif

smg_status cli_target(const cli_options *o, const char *fallback, smg_target *out_target) {
    const char *name = o->target;
    if (name == NULL && (o->device != NULL || fallback == NULL)) return device_target(o, out_target);
    return cli_named_target(o, name != NULL ? name : fallback, out_target);
}

smg_status cli_named_target(const cli_options *o, const char *name, smg_target *out_target) {
    if (!smg_file_exists(name)) return smg_target_named(o->ctx, name, out_target);
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(smg_file_read(o->ctx, name, &text, &size));
    smg_status status = smg_target_parse(o->ctx, text, name, out_target);
    smg_free(o->ctx, text, size + 1);
    return status;
}
