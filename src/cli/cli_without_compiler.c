/* cli_without_compiler.c: the commands of a build that has the runtime alone (SMG_COMPILER=OFF). Bundles are run and
 * looked at, everything else is refused. */
#include "cli/cli.h"

static int refuse(const cli_options *o, const char *what) {
    cli_error(o, SMG_UNSUPPORTED, "%s needs the compiler, and this smg was built without it: it runs bundles", what);
    return cli_fail(o);
}

static int on_model(cli_options *o, int (*work)(cli_options *)) {
    if (o->word_count != 1) {
        cli_error(o, SMG_INVALID, "one MODEL is needed, %d were given", o->word_count);
        return cli_fail(o);
    }
    return smg_command_path_exists(o->words[0]) && !cli_is_bundle(o) ? refuse(o, "a MODEL that is no bundle") : work(o);
}

int cli_info(cli_options *o) {
    return on_model(o, cli_bundle_info);
}

int cli_run(cli_options *o) {
    return on_model(o, cli_bundle_run);
}

int cli_compile(cli_options *o) {
    return refuse(o, "smg compile");
}

int cli_explain(cli_options *o) {
    return refuse(o, "smg explain");
}

int cli_bench(cli_options *o) {
    return refuse(o, "smg bench");
}

int cli_tune(cli_options *o) {
    return refuse(o, "smg tune");
}

int cli_embed(cli_options *o) {
    return refuse(o, "smg embed");
}

/* SPIRV-Tools are the compiler's. */
smg_status cli_validate_bundle(smg_bundle_file *file) {
    (void)file;
    return SMG_OK;
}

/* A bundle has the one that it was compiled with, and refuses any other. */
smg_status cli_check_precision(const cli_options *o) {
    (void)o;
    return SMG_OK;
}
