/* cli_compile.c: smg compile: a model for several targets, as a bundle. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { MOST_TARGETS = 64 };

/* "h200,navi31,my.target" into names, cut in place. */
static smg_status split_targets(const cli_options *o, char *names, const char **out, int *out_count) {
    *out_count = 0;
    for (char *at = names; at != NULL;) {
        char *end = strchr(at, ',');
        if (end != NULL) *end++ = '\0';
        if (at[0] == '\0') return cli_error(o, SMG_INVALID, "--target %s: a name is empty", o->target);
        if (*out_count == MOST_TARGETS) return cli_error(o, SMG_INVALID, "more than %d targets", MOST_TARGETS);
        out[(*out_count)++] = at;
        at = end;
    }
    return SMG_OK;
}

static smg_status compile(cli_job *job) {
    const cli_options *o = job->o;
    const char *targets[MOST_TARGETS];
    const smg_model_desc model = cli_model_desc(o);
    smg_bundle_writing desc = {.model = &model, .targets = targets, .prepared = o->prepared};
    if (o->out == NULL) return cli_error(o, SMG_INVALID, "-o FILE says where the bundle goes");
    if (o->target == NULL) return smg_source_write_bundle(job->source, &desc, o->out);
    size_t bytes = strlen(o->target) + 1;
    char *names = malloc(bytes);
    if (names == NULL) return SMG_MEMORY;
    memcpy(names, o->target, bytes);
    smg_status status = split_targets(o, names, targets, &desc.target_count);
    if (status == SMG_OK) status = smg_source_write_bundle(job->source, &desc, o->out);
    free(names);
    return status;
}

int cli_compile(cli_options *o) {
    return cli_on_model(o, CLI_GRAPH, compile);
}
