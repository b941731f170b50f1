/* cli_explain.c: smg explain: the texts of all phases, for a target or a device. */
#include "cli/cli.h"

static smg_status tell(const cli_options *o, smg_compilation *c, const smg_explain_options *show, smg_text *text) {
    if (o->dot) return smg_compile_dot(c, o->kernel, text);
    if (o->report) return (o->json ? smg_compile_report_json : smg_compile_report)(c, text);
    return o->json ? smg_compile_explain_json(c, text) : smg_compile_explain(c, show, text);
}

static smg_status explain(cli_job *job) {
    const cli_options *o = job->o;
    smg_target target;
    smg_compilation *c = NULL;
    SMG_TRY(cli_target(o, NULL, &target));
    const smg_model_desc desc = o->measure ? cli_job_desc(job) : cli_model_desc(o);
    smg_compile_options options = smg_compile_options_of(&desc);
    const smg_explain_options show = {.phase = o->phase, .kernel = o->kernel, .after = o->after, .prices = o->prices};
    options.keep_passes = o->phase != NULL && strcmp(o->phase, "lower") == 0;
    options.search = o->phase != NULL && strcmp(o->phase, "search") == 0;
    options.report = o->report;
    SMG_TRY(smg_compile_plan(o->ctx, job->source.graph, &target, &options, &c));
    smg_status status = tell(o, c, &show, &job->text);
    smg_compilation_destroy(c);
    return status;
}

int cli_explain(cli_options *o) {
    return cli_on_model(o, o->measure ? CLI_ARRAYS : CLI_GRAPH, explain);
}
