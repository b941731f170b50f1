/* cli_compile.c: smg compile: a model for several targets, as a bundle. */
#include "cli/cli.h"

enum { MOST_TARGETS = 64 };

/* "h200,navi31,my.target": each a built-in name or a file. */
static smg_status named_targets(const cli_options *o, smg_arena *arena, smg_ahead_target *out, int *out_count) {
    *out_count = 0;
    for (const char *at = o->target; at != NULL;) {
        const char *end = strchr(at, ',');
        size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        if (length == 0) return smg_fail(o->ctx, SMG_INVALID, "--target %s: a name is empty", o->target);
        if (*out_count == MOST_TARGETS) return smg_fail(o->ctx, SMG_INVALID, "more than %d targets", MOST_TARGETS);
        smg_ahead_target *t = &out[(*out_count)++];
        const char *name = smg_arena_string_n(arena, at, length);
        if (name == NULL) return SMG_MEMORY;
        SMG_TRY(cli_named_target(o, name, &t->target));
        t->name = smg_arena_string(arena, t->target.name);
        t->match = smg_target_match(t->target.name);
        if (t->name == NULL) return SMG_MEMORY;
        at = end != NULL ? end + 1 : NULL;
    }
    return SMG_OK;
}

/* For weights that are prepared; the device of the first target. */
#if SMG_VULKAN
static smg_status open_device(const cli_options *o, const smg_model_desc *desc, smg_ahead_target *target) {
    SMG_TRY(smg_vk_open(o->ctx, o->device, 0, &target->prepare_on));
    return smg_compile_know_device(target->prepare_on, desc);
}

static void close_device(smg_ahead_target *target) {
    smg_vk_close(target->prepare_on);
}
#else
static smg_status open_device(const cli_options *o, const smg_model_desc *desc, smg_ahead_target *target) {
    (void)desc, (void)target;
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: --prepared needs a device");
}

static void close_device(smg_ahead_target *target) {
    (void)target;
}
#endif

static smg_status compile(cli_job *job) {
    cli_options *o = job->o;
    smg_arena *arena = NULL;
    int count = 1;
    if (o->out == NULL) return smg_fail(o->ctx, SMG_INVALID, "-o FILE says where the bundle goes");
    SMG_TRY(smg_arena_create(o->ctx, &arena));
    smg_ahead_target *targets = SMG_ARENA_ARRAY(arena, smg_ahead_target, MOST_TARGETS);
    smg_status status = targets != NULL ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK && o->target != NULL) {
        status = named_targets(o, arena, targets, &count);
    } else if (status == SMG_OK) {
        status = cli_target(o, NULL, &targets[0].target);
        targets[0].name = targets[0].match = targets[0].target.name;
    }
    const smg_model_desc desc = cli_model_desc(o);
    const smg_compile_options options = smg_compile_options_of(&desc);
    if (status == SMG_OK && o->prepared) status = open_device(o, &desc, &targets[0]);
    if (status == SMG_OK) status = smg_compile_ahead(o->ctx, &job->source, targets, count, &options, o->out);
    if (targets != NULL) close_device(&targets[0]);
    smg_arena_destroy(arena);
    return status;
}

int cli_compile(cli_options *o) {
    return cli_on_model(o, CLI_GRAPH, compile);
}
