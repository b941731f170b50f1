/* cli_message.c: what is said on standard error: failures, warnings, progress. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"

/* Progress stands on a line of the terminal that the next message takes over. */
static const char *fresh_line(void) {
    return smg_command_errors_on_terminal() ? "\r\033[K" : "";
}

static void add_sentence(cli_text *problem, const char *format, va_list args) CLI_PRINTF(2, 0);
static void add_sentence(cli_text *problem, const char *format, va_list args) {
    char sentence[4096];
    vsnprintf(sentence, sizeof(sentence), format, args);
    cli_text_add(problem, sentence);
}

smg_status cli_error(const cli_options *o, smg_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (o->problem->length == 0) add_sentence(o->problem, format, args);
    va_end(args);
    return status;
}

int cli_fail(const cli_options *o) {
    fflush(stdout);
    const char *sentence = o->problem->length > 0 ? cli_text_cstr(o->problem) : smg_context_error(o->ctx);
    fprintf(stderr, "%ssmg: %s\n", fresh_line(), sentence[0] != '\0' ? sentence : "out of memory");
    return CLI_ERROR;
}

void cli_on_progress(void *user, const char *phase, size_t done, size_t total, const char *unit) {
    (void)user;
    if (done < total) {
        fprintf(stderr, "\r\033[K%s %zu of %zu %s", phase, done + 1, total, unit);
    } else {
        fprintf(stderr, "\r\033[K");
    }
    fflush(stderr);
}

void cli_progress(const char *phase, size_t done, size_t total) {
    if (smg_command_errors_on_terminal()) cli_on_progress(NULL, phase, done, total, "");
}

void cli_on_log(void *user, smg_log_level level, const char *line) {
    (void)user;
    if (level == SMG_LOG_WARNING) fprintf(stderr, "%ssmg: warning: %s\n", fresh_line(), line);
}
