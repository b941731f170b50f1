/* cli_explain.c: smg explain: the texts of all phases, for a target or a device. */
#include <string.h>

#include "cli/cli.h"

static bool is_phase(const cli_options *o, const char *phase) {
    return o->phase != NULL && strcmp(o->phase, phase) == 0;
}

static smg_explain_form form_of(const cli_options *o) {
    if (o->dot) return SMG_EXPLAIN_DOT;
    if (o->report) return o->json ? SMG_EXPLAIN_REPORT_JSON : SMG_EXPLAIN_REPORT;
    return o->json ? SMG_EXPLAIN_JSON : SMG_EXPLAIN_TEXT;
}

static smg_status explain(cli_job *job) {
    const cli_options *o = job->o;
    smg_compilation *c = NULL;
    const smg_model_desc model = o->measure ? cli_job_desc(job) : cli_model_desc(o);
    const smg_compile_desc desc = {.model = &model,
                                   .target = cli_target(o, NULL),
                                   .passes = is_phase(o, "lower"),
                                   .search = is_phase(o, "search"),
                                   .report = o->report};
    const smg_explain_desc show = {
        .form = form_of(o), .phase = o->phase, .kernel = o->kernel, .after = o->after, .prices = o->prices};
    CLI_TRY(smg_source_compile(job->source, &desc, &c));
    smg_status status = smg_compilation_explain(c, &show, cli_text_sink(&job->text));
    smg_compilation_destroy(c);
    return status;
}

int cli_explain(cli_options *o) {
    return cli_on_model(o, o->measure ? CLI_ARRAYS : CLI_GRAPH, explain);
}
