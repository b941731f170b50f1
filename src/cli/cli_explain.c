/* cli_explain.c: smg explain. */
#include <stdio.h>

#include "cli/cli.h"

static smg_status explain(cli_options *o, const smg_source *source, smg_text *text) {
    smg_target target;
    smg_compilation *c = NULL;
    SMG_TRY(cli_target(o, NULL, &target));
    const smg_model_desc desc = cli_model_desc(o);
    const smg_compile_options options = smg_compile_options_of(&desc);
    const smg_explain_options show = {.phase = o->phase, .kernel = o->kernel, .prices = o->prices};
    SMG_TRY(smg_compile_plan(o->ctx, source->graph, &target, &options, &c));
    smg_status status =
        o->json ? smg_compile_explain_json(c, text) : smg_compile_explain(c, &show, text);
    smg_compilation_destroy(c);
    return status;
}

int cli_explain(cli_options *o) {
    const char *path = NULL;
    smg_source source = {0};
    if (cli_model_path(o, &path) != SMG_OK) return cli_fail(o->ctx);
    if (smg_source_open(o->ctx, path, false, &source) != SMG_OK) return cli_fail(o->ctx);
    smg_text text;
    smg_text_init(&text, o->ctx);
    smg_status status = explain(o, &source, &text);
    if (status == SMG_OK) fputs(smg_text_cstr(&text), stdout);
    smg_text_free(&text);
    smg_source_close(&source);
    return status == SMG_OK ? CLI_OK : cli_fail(o->ctx);
}
