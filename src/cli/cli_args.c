/* cli_args.c: options by table. Each command names the options it takes; everything else that starts
 * with -- is an error, so is an option that would do nothing beside another, and `--` ends the options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

typedef enum option_kind { FLAG, TEXT, NUMBER, COUNT, DIM, FILE_PAIR } option_kind;
typedef struct option_row {
    const char *name;
    option_kind kind;
    size_t offset; /* of the field in cli_options */
    int64_t most;  /* of a NUMBER or COUNT */
} option_row;

#define FIELD(name) offsetof(cli_options, name)
static const option_row rows[] = {
    {"device", TEXT, FIELD(device), 0},
    {"target", TEXT, FIELD(target), 0},
    {"phase", TEXT, FIELD(phase), 0},
    {"after", TEXT, FIELD(after), 0},
    {"kernel", TEXT, FIELD(kernel), 0},
    {"objective", TEXT, FIELD(objective), 0},
    {"precision", TEXT, FIELD(precision), 0},
    {"tuning", TEXT, FIELD(tuning), 0},
    {"json", FLAG, FIELD(json), 0},
    {"check", FLAG, FIELD(check), 0},
    {"profile", FLAG, FIELD(profile), 0},
    {"prices", FLAG, FIELD(prices), 0},
    {"interpret", FLAG, FIELD(interpret), 0},
    {"unfused", FLAG, FIELD(unfused), 0},
    {"no-calibrate", FLAG, FIELD(no_calibrate), 0},
    {"verbose", FLAG, FIELD(verbose), 0},
    {"repeat", NUMBER, FIELD(repeat), CLI_MAX_REPEATS},
    {"rank", NUMBER, FIELD(rank), 1000000},
    {"ranks", NUMBER, FIELD(ranks), 1000},
    {"seed", NUMBER, FIELD(seed), INT64_MAX},
    {"dim", DIM, FIELD(dims), 0},
    {"max-dim", DIM, FIELD(max_dims), 0},
    {"input", FILE_PAIR, FIELD(inputs), 0},
    {"output", FILE_PAIR, FIELD(outputs), 0},
    {"no-matrices", FLAG, FIELD(no_matrices), 0},
    {"measure", FLAG, FIELD(measure), 0},
    {"o", TEXT, FIELD(out), 0},
    {"padding-unread", FLAG, FIELD(padding_unread), 0},
    {"prepared", FLAG, FIELD(prepared), 0},
    {"max-memory", COUNT, FIELD(max_memory), INT64_MAX},
    {"max-fused-ops", COUNT, FIELD(max_fused_ops), INT32_MAX},
    {"max-fused-products", COUNT, FIELD(max_fused_products), INT32_MAX},
    {"min-gain", COUNT, FIELD(min_gain), 99},
    {"time", TEXT, FIELD(time), 0},
    {"trace", TEXT, FIELD(trace), 0},
    {"report", FLAG, FIELD(report), 0},
    {"dot", FLAG, FIELD(dot), 0},
    {"rates", FLAG, FIELD(rates), 0},
    {"nominal", FLAG, FIELD(nominal), 0},
};

/* What one option makes of another; only among options that the command takes. */
static const struct {
    const char *option, *other;
    bool needs; /* is nothing without the other; else is nothing beside it */
} relations[] = {
    {"target", "interpret", true},
    {"target", "device", false},
    {"profile", "interpret", false},
    {"repeat", "interpret", false},
    {"phase", "json", false},
    {"kernel", "json", false},
    {"verbose", "json", false},
    {"no-calibrate", "verbose", true},
    {"after", "phase", true},
    {"rates", "no-calibrate", false},
    {"nominal", "no-calibrate", false},
    {"ranks", "rank", false},
    {"ranks", "output", false},
    {"measure", "precision", true},
    {"padding-unread", "check", false},
    {"tuning", "unfused", false},
    {"tuning", "ranks", false},
    {"tuning", "rank", false},
    {"trace", "profile", true},
    {"report", "phase", false},
    {"report", "kernel", false},
    {"report", "prices", false},
    {"dot", "phase", false},
    {"dot", "json", false},
    {"dot", "prices", false},
    {"dot", "report", false},
};

static bool takes(const cli_command *command, const char *name) {
    size_t length = strlen(name);
    for (const char *at = command->options; (at = strstr(at, name)) != NULL; at += length) {
        bool starts = at == command->options || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

static smg_status parse_number(const cli_options *o, const char *name, const char *text, int64_t *out) {
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0) {
        return cli_error(o, SMG_INVALID, "--%s: '%s' is no number", name, text);
    }
    *out = value;
    return SMG_OK;
}

/* Cuts "name=value" in two. */
static smg_status split(const cli_options *o, const char *option, char *text, char **out_value) {
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return cli_error(o, SMG_INVALID, "--%s takes name=value, '%s' was given", option, text);
    }
    *equals = '\0';
    *out_value = equals + 1;
    return SMG_OK;
}

/* "128", or of a --dim "1..512": the range ends at the value. */
static smg_status parse_size(const cli_options *o, const option_row *row, char *text, int64_t *out_from, int64_t *out) {
    char *dots = row->offset == FIELD(dims) ? strstr(text, "..") : NULL;
    *out_from = 0;
    if (dots == NULL) return parse_number(o, row->name, text, out);
    *dots = '\0';
    CLI_TRY(parse_number(o, row->name, text, out_from));
    CLI_TRY(parse_number(o, row->name, dots + 2, out));
    if (*out_from >= 1 && *out_from <= *out) return SMG_OK;
    return cli_error(o, SMG_INVALID, "--%s: %lld..%lld is no range of sizes", row->name, (long long)*out_from,
                     (long long)*out);
}

static smg_status add_dim(const option_row *row, char *text, cli_options *o) {
    char *value = NULL;
    bool is_max = row->offset == FIELD(max_dims);
    int *count = is_max ? &o->max_dim_count : &o->dim_count;
    smg_dim *dims = is_max ? o->max_dims : o->dims;
    if (*count == CLI_MAX_DIMS) return cli_error(o, SMG_INVALID, "more than %d --%s", CLI_MAX_DIMS, row->name);
    CLI_TRY(split(o, row->name, text, &value));
    for (int i = 0; i < *count; i++) {
        if (strcmp(dims[i].name, text) == 0) return cli_error(o, SMG_INVALID, "--%s gives %s twice", row->name, text);
    }
    int64_t from = 0;
    CLI_TRY(parse_size(o, row, value, &from, &dims[*count].value));
    if (!is_max) o->dims_from[*count] = from;
    dims[(*count)++].name = text;
    return SMG_OK;
}

static smg_status add_file(const option_row *row, char *text, cli_options *o) {
    char *value = NULL;
    bool is_output = row->offset == FIELD(outputs);
    int *count = is_output ? &o->output_count : &o->input_count;
    cli_file *files = is_output ? o->outputs : o->inputs;
    if (*count == CLI_MAX_FILES) {
        return cli_error(o, SMG_INVALID, "more than %d --%s", CLI_MAX_FILES, row->name);
    }
    CLI_TRY(split(o, row->name, text, &value));
    for (int i = 0; i < *count; i++) {
        if (strcmp(files[i].name, text) == 0) return cli_error(o, SMG_INVALID, "--%s gives %s twice", row->name, text);
    }
    files[(*count)++] = (cli_file){text, value};
    return SMG_OK;
}

static smg_status set_option(const option_row *row, char *value, cli_options *o) {
    char *field = (char *)o + row->offset;
    o->given |= UINT64_C(1) << (row - rows);
    const char *text = value;
    int64_t number = 0;
    bool on = true;
    switch (row->kind) {
    case FLAG: memcpy(field, &on, sizeof(on)); return SMG_OK;
    case TEXT: memcpy(field, &text, sizeof(text)); return SMG_OK;
    case NUMBER:
    case COUNT:
        CLI_TRY(parse_number(o, row->name, value, &number));
        if (number > row->most)
            return cli_error(o, SMG_INVALID, "--%s is at most %lld, '%s' was given", row->name, (long long)row->most,
                             value);
        if (row->kind == COUNT && number == 0)
            return cli_error(o, SMG_INVALID, "--%s is at least 1, '%s' was given", row->name, value);
        memcpy(field, &number, sizeof(number));
        return SMG_OK;
    case DIM: return add_dim(row, value, o);
    case FILE_PAIR: return add_file(row, value, o);
    }
    return SMG_OK;
}

static smg_status parse_option(const cli_command *command, int argc, char **argv, int *at, cli_options *o) {
    const char *dashes = argv[*at][1] == '-' ? "--" : "-";
    const char *name = argv[*at] + strlen(dashes);
    for (size_t i = 0; i < CLI_COUNT_OF(rows); i++) {
        const option_row *row = &rows[i];
        size_t length = strlen(row->name);
        if (strncmp(name, row->name, length) != 0 || (name[length] != '\0' && name[length] != '=')) continue;
        if (!takes(command, row->name) || (dashes[1] == '-') != (row->name[1] != '\0')) break;
        char *value = NULL;
        if (name[length] == '=') {
            value = argv[*at] + 2 + length + 1;
        } else if (row->kind != FLAG && *at + 1 < argc) {
            value = argv[++*at];
        }
        if (row->kind == FLAG && value != NULL) {
            return cli_error(o, SMG_INVALID, "%s%s takes no value", dashes, row->name);
        }
        if (row->kind != FLAG && value == NULL) {
            return cli_error(o, SMG_INVALID, "%s%s needs a value", dashes, row->name);
        }
        return set_option(row, value, o);
    }
    return cli_error(o, SMG_INVALID, "smg %s takes no option '%s%s'; smg help %s lists them", command->name, dashes,
                     name, command->name);
}

bool cli_goal(const char *objective, smg_goal *out_goal) {
    static const char *const words[] = {
        [SMG_GOAL_TIME] = "time", [SMG_GOAL_DISPATCHES] = "dispatches", [SMG_GOAL_MEMORY] = "memory"};
    *out_goal = SMG_GOAL_TIME;
    for (size_t i = 0; objective != NULL && i < CLI_COUNT_OF(words); i++) {
        if (strcmp(objective, words[i]) != 0) continue;
        *out_goal = (smg_goal)i;
        return true;
    }
    return objective == NULL;
}

static smg_status check_objective(const cli_options *o) {
    smg_goal goal;
    if (cli_goal(o->objective, &goal)) return SMG_OK;
    return cli_error(o, SMG_INVALID, "--objective is time, dispatches or memory, not '%s'", o->objective);
}

static bool was_given(const cli_options *o, const char *name) {
    for (size_t i = 0; i < CLI_COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return (o->given >> i & 1) != 0;
    return false;
}

/* A range is for runs on a device. */
static smg_status check_ranges(const cli_command *command, const cli_options *o) {
    for (int i = 0; i < o->dim_count; i++) {
        if (o->dims_from[i] == 0 || (takes(command, "repeat") && !o->interpret)) continue;
        return cli_error(o, SMG_INVALID, "--dim %s=%lld..%lld: a range does nothing %s", o->dims[i].name,
                         (long long)o->dims_from[i], (long long)o->dims[i].value,
                         o->interpret ? "beside --interpret" : "for a command that runs nothing");
    }
    return SMG_OK;
}

static smg_status check_relations(const cli_command *command, const cli_options *o) {
    for (size_t i = 0; i < CLI_COUNT_OF(relations); i++) {
        const char *option = relations[i].option, *other = relations[i].other;
        if (!was_given(o, option) || !takes(command, other) || was_given(o, other) == relations[i].needs) continue;
        return cli_error(o, SMG_INVALID, "--%s does nothing %s --%s", option, relations[i].needs ? "without" : "beside",
                         other);
    }
    return SMG_OK;
}

smg_status cli_parse(const cli_command *command, int argc, char **argv, cli_options *out) {
    bool options = true;
    int words = 0;
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && (strncmp(argv[i], "--", 2) == 0 || strcmp(argv[i], "-o") == 0)) {
            CLI_TRY(parse_option(command, argc, argv, &i, out));
        } else {
            argv[words++] = argv[i]; /* words come before any place not yet read */
        }
    }
    out->words = (const char *const *)argv;
    out->word_count = words;
    CLI_TRY(check_relations(command, out));
    CLI_TRY(check_ranges(command, out));
    CLI_TRY(cli_check_precision(out));
    return check_objective(out);
}
