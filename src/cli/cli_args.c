/* cli_args.c: options by table. Each command names the options it takes; everything else that starts
 * with -- is an error, and `--` ends the options. */
#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"

typedef enum option_kind { FLAG, TEXT, NUMBER, DIM, FILE_PAIR } option_kind;
typedef struct option_row {
    const char *name;
    option_kind kind;
    size_t offset; /* of the field in cli_options */
} option_row;

#define FIELD(name) offsetof(cli_options, name)
static const option_row rows[] = {
    {"device", TEXT, FIELD(device)},
    {"target", TEXT, FIELD(target)},
    {"phase", TEXT, FIELD(phase)},
    {"kernel", TEXT, FIELD(kernel)},
    {"objective", TEXT, FIELD(objective)},
    {"json", FLAG, FIELD(json)},
    {"check", FLAG, FIELD(check)},
    {"profile", FLAG, FIELD(profile)},
    {"prices", FLAG, FIELD(prices)},
    {"interpret", FLAG, FIELD(interpret)},
    {"unfused", FLAG, FIELD(unfused)},
    {"no-calibrate", FLAG, FIELD(no_calibrate)},
    {"repeat", NUMBER, FIELD(repeat)},
    {"rank", NUMBER, FIELD(rank)},
    {"seed", NUMBER, FIELD(seed)},
    {"dim", DIM, FIELD(dims)},
    {"max-dim", DIM, FIELD(max_dims)},
    {"input", FILE_PAIR, FIELD(inputs)},
    {"output", FILE_PAIR, FIELD(outputs)},
};

static bool takes(const cli_command *command, const char *name) {
    size_t length = strlen(name);
    for (const char *at = command->options; (at = strstr(at, name)) != NULL; at += length) {
        bool starts = at == command->options || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

static smg_status parse_number(smg_context *ctx, const char *name, const char *text, int64_t *out) {
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0) {
        return smg_fail(ctx, SMG_INVALID, "--%s: '%s' is no number", name, text);
    }
    *out = value;
    return SMG_OK;
}

/* Cuts "name=value" in two. */
static smg_status split(smg_context *ctx, const char *option, char *text, char **out_value) {
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return smg_fail(ctx, SMG_INVALID, "--%s takes name=value, '%s' was given", option, text);
    }
    *equals = '\0';
    *out_value = equals + 1;
    return SMG_OK;
}

static smg_status add_dim(smg_context *ctx, const option_row *row, char *text, cli_options *o) {
    char *value = NULL;
    bool is_max = row->offset == FIELD(max_dims);
    int *count = is_max ? &o->max_dim_count : &o->dim_count;
    smg_dim *dims = is_max ? o->max_dims : o->dims;
    if (*count == CLI_MAX_DIMS)
        return smg_fail(ctx, SMG_INVALID, "more than %d --%s", CLI_MAX_DIMS, row->name);
    SMG_TRY(split(ctx, row->name, text, &value));
    for (int i = 0; i < *count; i++) {
        if (strcmp(dims[i].name, text) == 0)
            return smg_fail(ctx, SMG_INVALID, "--%s gives %s twice", row->name, text);
    }
    SMG_TRY(parse_number(ctx, row->name, value, &dims[*count].value));
    dims[(*count)++].name = text;
    return SMG_OK;
}

static smg_status add_file(smg_context *ctx, const option_row *row, char *text, cli_options *o) {
    char *value = NULL;
    bool is_output = row->offset == FIELD(outputs);
    int *count = is_output ? &o->output_count : &o->input_count;
    cli_file *files = is_output ? o->outputs : o->inputs;
    if (*count == CLI_MAX_FILES) {
        return smg_fail(ctx, SMG_INVALID, "more than %d --%s", CLI_MAX_FILES, row->name);
    }
    SMG_TRY(split(ctx, row->name, text, &value));
    for (int i = 0; i < *count; i++) {
        if (strcmp(files[i].name, text) == 0)
            return smg_fail(ctx, SMG_INVALID, "--%s gives %s twice", row->name, text);
    }
    files[(*count)++] = (cli_file){text, value};
    return SMG_OK;
}

static smg_status set_option(smg_context *ctx, const option_row *row, char *value, cli_options *o) {
    char *field = (char *)o + row->offset;
    const char *text = value;
    int64_t number = 0;
    bool on = true;
    switch (row->kind) {
    case FLAG: memcpy(field, &on, sizeof(on)); return SMG_OK;
    case TEXT: memcpy(field, &text, sizeof(text)); return SMG_OK;
    case NUMBER:
        SMG_TRY(parse_number(ctx, row->name, value, &number));
        memcpy(field, &number, sizeof(number));
        return SMG_OK;
    case DIM: return add_dim(ctx, row, value, o);
    case FILE_PAIR: return add_file(ctx, row, value, o);
    }
    return SMG_OK;
}

static smg_status parse_option(smg_context *ctx, const cli_command *command, int argc, char **argv,
                               int *at, cli_options *o) {
    const char *name = argv[*at] + 2;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        const option_row *row = &rows[i];
        size_t length = strlen(row->name);
        if (strncmp(name, row->name, length) != 0 || (name[length] != '\0' && name[length] != '='))
            continue;
        if (!takes(command, row->name)) break;
        char *value = NULL;
        if (name[length] == '=') {
            value = argv[*at] + 2 + length + 1;
        } else if (row->kind != FLAG && *at + 1 < argc) {
            value = argv[++*at];
        }
        if (row->kind == FLAG && value != NULL) {
            return smg_fail(ctx, SMG_INVALID, "--%s takes no value", row->name);
        }
        if (row->kind != FLAG && value == NULL) {
            return smg_fail(ctx, SMG_INVALID, "--%s needs a value", row->name);
        }
        return set_option(ctx, row, value, o);
    }
    return smg_fail(ctx, SMG_INVALID, "smg %s takes no option '--%s'; smg help %s lists them",
                    command->name, name, command->name);
}

static smg_status check_objective(smg_context *ctx, const cli_options *o) {
    if (o->objective == NULL || strcmp(o->objective, "time") == 0 ||
        strcmp(o->objective, "dispatches") == 0) {
        return SMG_OK;
    }
    return smg_fail(ctx, SMG_INVALID, "--objective is time or dispatches, not '%s'", o->objective);
}

smg_status cli_parse(smg_context *ctx, const cli_command *command, int argc, char **argv,
                     cli_options *out) {
    bool options = true;
    int words = 0;
    *out = (cli_options){.ctx = ctx};
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && strncmp(argv[i], "--", 2) == 0) {
            SMG_TRY(parse_option(ctx, command, argc, argv, &i, out));
        } else {
            argv[words++] = argv[i]; /* words come before any place not yet read */
        }
    }
    out->words = (const char *const *)argv;
    out->word_count = words;
    return check_objective(ctx, out);
}

smg_status cli_model_path(const cli_options *o, const char **out_path) {
    if (o->word_count == 0) return smg_fail(o->ctx, SMG_INVALID, "a MODEL is needed");
    if (o->word_count > 1) {
        return smg_fail(o->ctx, SMG_INVALID, "one MODEL is needed, '%s' is one word too many",
                        o->words[1]);
    }
    *out_path = o->words[0];
    return SMG_OK;
}

smg_model_desc cli_model_desc(const cli_options *o) {
    bool dispatches = o->objective != NULL && strcmp(o->objective, "dispatches") == 0;
    return (smg_model_desc){
        .device = o->device,
        .goal = dispatches ? SMG_GOAL_DISPATCHES : SMG_GOAL_TIME,
        .dims = o->dims,
        .dim_count = o->dim_count,
        .max_dims = o->max_dims,
        .max_dim_count = o->max_dim_count,
        .unfused = o->unfused,
        .rank = (int)o->rank,
        .no_calibrate = o->no_calibrate,
    };
}

#if SMG_VULKAN
static smg_status device_target(const cli_options *o, smg_target *out_target) {
    smg_vk_device *device = NULL;
    SMG_TRY(smg_vk_open(o->ctx, o->device, 0, &device));
    smg_status status = o->no_calibrate ? SMG_OK : smg_vk_calibrate(device);
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
    if (name == NULL && (o->device != NULL || fallback == NULL))
        return device_target(o, out_target);
    if (name == NULL) name = fallback;
    if (!smg_file_exists(name)) return smg_target_named(o->ctx, name, out_target);
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(smg_file_read(o->ctx, name, &text, &size));
    smg_status status = smg_target_parse(o->ctx, text, name, out_target);
    smg_free(o->ctx, text, size + 1);
    return status == SMG_OK ? smg_target_verify(o->ctx, out_target) : status;
}
