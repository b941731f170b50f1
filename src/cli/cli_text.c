/* cli_text.c: what the command prints, put together. Numbers are the same in every locale. */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void cli_text_free(cli_text *text) {
    free(text->data);
    *text = (cli_text){0};
}

const char *cli_text_cstr(const cli_text *text) {
    return text->data != NULL ? text->data : "";
}

smg_status cli_text_status(const cli_text *text) {
    return text->failed ? SMG_MEMORY : SMG_OK;
}

/* Room for `more` bytes and the NUL. */
static bool reserve(cli_text *text, size_t more) {
    if (text->failed) return false;
    if (more < text->capacity - text->length) return true;
    size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
    if (capacity <= text->length + more) capacity = text->length + more + 1;
    char *data = more < PTRDIFF_MAX / 2 - text->length ? realloc(text->data, capacity) : NULL;
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void cli_text_add_n(cli_text *text, const char *string, size_t length) {
    if (!reserve(text, length)) return;
    if (length != 0) memcpy(text->data + text->length, string, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void cli_text_add(cli_text *text, const char *string) {
    cli_text_add_n(text, string, strlen(string));
}

static void add_list(cli_text *text, const char *format, va_list args) CLI_PRINTF(2, 0);
static void add_list(cli_text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve(text, (size_t)length)) return;
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    text->length += (size_t)length;
}

void cli_text_addf(cli_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_list(text, format, args);
    va_end(args);
}

static void write_to(void *user, const char *string, size_t bytes) {
    cli_text_add_n(user, string, bytes);
}

smg_sink cli_text_sink(cli_text *text) {
    return (smg_sink){.write = write_to, .user = text};
}

smg_status cli_text_print(cli_text *text, smg_status status) {
    if (status == SMG_OK) status = cli_text_status(text);
    if (status == SMG_OK) fputs(cli_text_cstr(text), stdout);
    cli_text_free(text);
    return status;
}

/* A number of at most FLT_DIG digits survives the way to the normal float and back, so where fewer digits do, that many
 * print them: %g drops the zeros. Subnormals have fewer. The command sets no locale: the point is a point. */
void cli_text_add_f32(cli_text *text, float value) {
    char number[40];
    for (int digits = isfinite(value) && fabsf(value) < FLT_MIN ? 1 : FLT_DIG;; digits++) {
        snprintf(number, sizeof(number), "%.*g", digits, (double)value);
        float back = strtof(number, NULL);
        if (digits >= FLT_DECIMAL_DIG || !isfinite(value) || memcmp(&back, &value, sizeof(value)) == 0) break;
    }
    cli_text_add(text, isnan(value) ? "nan" : number); /* which C may print with a sign */
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

/* Length of the well-formed UTF-8 character in the `room` bytes at `at`, 0 if there is none (overlong forms,
 * surrogates and values past U+10FFFF included). */
static size_t utf8_length(const unsigned char *at, size_t room) {
    unsigned char first = at[0];
    if (first < 0x80) return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > room) return 0;
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) {
        if (at[i] < low || at[i] > high) return 0;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

static const char *escape_of(unsigned char c) {
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: return NULL;
    }
}

void cli_text_add_json_n(cli_text *text, const char *string, size_t bytes) {
    const unsigned char *at = (const unsigned char *)string, *end = at + bytes;
    cli_text_add(text, "\"");
    while (at < end) {
        size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0)
            cli_text_add(text, "\xef\xbf\xbd");
        else if (escape_of(*at) != NULL)
            cli_text_add(text, escape_of(*at));
        else if (*at < 0x20 || *at == 0x7f)
            cli_text_addf(text, "\\u%04x", *at);
        else
            cli_text_add_n(text, (const char *)at, length);
        at += length > 0 ? length : 1;
    }
    cli_text_add(text, "\"");
}

void cli_text_add_json(cli_text *text, const char *string) {
    cli_text_add_json_n(text, string, strlen(string));
}
