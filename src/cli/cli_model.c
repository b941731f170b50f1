/* cli_model.c: what the commands over a MODEL have in common: it is opened, arrays are made at the sizes that options
 * and files give, something is done, everything is closed and the text printed, whatever happened in between. */
#include <string.h>

#include "cli/cli.h"

static smg_status model_path(const cli_options *o, const char **out_path) {
    if (o->word_count == 0) return cli_error(o, SMG_INVALID, "a MODEL is needed");
    if (o->word_count > 1)
        return cli_error(o, SMG_INVALID, "one MODEL is needed, '%s' is one word too many", o->words[1]);
    *out_path = o->words[0];
    return SMG_OK;
}

static smg_status with_arrays(cli_job *job, cli_work work) {
    smg_status status = cli_make_arrays(job->o, job->facts->signature, &job->arrays);
    if (status == SMG_OK && job->o->measure) status = cli_fill_arrays(job->o, &job->arrays);
    if (status == SMG_OK) status = work(job);
    cli_free_arrays(&job->arrays);
    return status;
}

int cli_on_model(cli_options *o, cli_need need, cli_work work) {
    cli_job job = {.o = o, .pass = true, .start = smg_command_seconds()};
    const smg_source_desc desc = {.partial = need == CLI_LOOK};
    const char *path = NULL;
    if (model_path(o, &path) != SMG_OK) return cli_fail(o);
    if (smg_source_load(o->ctx, path, &desc, &job.source) != SMG_OK) return cli_fail(o);
    job.facts = smg_source_get_facts(job.source);
    job.load = smg_command_seconds() - job.start;
    smg_status status = need == CLI_ARRAYS ? with_arrays(&job, work) : work(&job);
    status = cli_text_print(&job.text, status);
    smg_source_unload(job.source);
    if (status != SMG_OK) return cli_fail(o);
    return job.pass ? CLI_OK : CLI_CHECK_FAILED;
}

smg_status cli_check_precision(const cli_options *o) {
    const smg_model_desc desc = {.precision = o->precision};
    return smg_model_desc_check(o->ctx, &desc);
}

smg_model_desc cli_model_desc(const cli_options *o) {
    smg_goal goal;
    cli_goal(o->objective, &goal);
    return (smg_model_desc){
        .device = o->device,
        .goal = goal,
        .max_memory = o->max_memory,
        .max_fused_ops = (int)o->max_fused_ops,
        .max_fused_products = (int)o->max_fused_products,
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
        .nominal_rates = o->nominal,
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

const char *cli_target(const cli_options *o, const char *fallback) {
    return o->target != NULL || o->device != NULL ? o->target : fallback;
}

smg_status cli_open_device(const cli_options *o, smg_device **out_device) {
    bool narrow = o->precision != NULL && strcmp(o->precision, "f32") != 0;
    CLI_TRY(smg_device_open(o->ctx, o->device, out_device));
    if (o->no_calibrate) return SMG_OK;
    smg_status status = smg_device_calibrate(*out_device, narrow && !o->no_matrices);
    if (status == SMG_OK) return SMG_OK;
    smg_device_close(*out_device);
    *out_device = NULL;
    return status;
}
