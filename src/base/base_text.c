/* The text writer: graphs, kernels, GLSL, explain pages and JSON are all written through it.
 *
 * Failures are sticky, so that a writer of a thousand lines checks once at its end. Numbers are
 * written so that they read back as the same value, and the same way in every locale: whatever the
 * C library uses as the decimal point becomes '.'.
 */
#include "base/base_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void smg_text_init(smg_text *text, smg_context *ctx) {
    memset(text, 0, sizeof(*text));
    text->ctx = ctx;
}

void smg_text_free(smg_text *text) {
    smg_free(text->ctx, text->data, text->capacity);
    smg_text_init(text, text->ctx);
}

const char *smg_text_cstr(const smg_text *text) {
    return text->data != NULL ? text->data : "";
}

smg_status smg_text_status(const smg_text *text) {
    return text->failed ? SMG_MEMORY : SMG_OK;
}

/* Room for `more` bytes and the NUL. */
static bool reserve(smg_text *text, size_t more) {
    if (text->failed) return false;
    if (more < text->capacity - text->length) return true;
    if (more >= PTRDIFF_MAX / 2 - text->length) {
        smg_fail(text->ctx, SMG_MEMORY, "out of memory: a text of %zu bytes", text->length);
        text->failed = true;
        return false;
    }
    size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
    if (capacity <= text->length + more) capacity = text->length + more + 1;
    char *data = smg_realloc(text->ctx, text->data, text->capacity, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void smg_text_add_n(smg_text *text, const char *string, size_t length) {
    if (!reserve(text, length)) return;
    if (length != 0) memcpy(text->data + text->length, string, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void smg_text_add(smg_text *text, const char *string) {
    smg_text_add_n(text, string, strlen(string));
}

void smg_text_addf(smg_text *text, const char *format, ...) {
    if (!reserve(text, 64)) return;
    for (;;) {
        size_t room = text->capacity - text->length;
        va_list args;
        va_start(args, format);
        int length = vsnprintf(text->data + text->length, room, format, args);
        va_end(args);
        if (length >= 0 && (size_t)length < room) {
            text->length += (size_t)length;
            return;
        }
        text->data[text->length] = '\0';
        if (length < 0 || !reserve(text, (size_t)length)) return;
    }
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Appends "%.*g" of C's own locale. */
static void add_number(smg_text *text, const char *number) {
    static const char plain[] = "0123456789eE+-";
    char out[40];
    size_t length = 0;
    for (const char *at = number; *at != '\0' && length < sizeof(out) - 1;) {
        if (strchr(plain, *at) != NULL) {
            out[length++] = *at++;
        } else {
            out[length++] = '.';
            while (*at != '\0' && strchr(plain, *at) == NULL) at++;
        }
    }
    smg_text_add_n(text, out, length);
}

static bool add_not_finite(smg_text *text, double value) {
    if (isnan(value)) {
        smg_text_add(text, "nan");
    } else if (isinf(value)) {
        smg_text_add(text, value < 0 ? "-inf" : "inf");
    } else {
        return false;
    }
    return true;
}

/* A number of at most FLT_DIG (DBL_DIG) digits survives the way to the normal float and back, so
 * where fewer digits do, that many print them: %g drops the zeros. Subnormals have fewer. */
void smg_text_add_f32(smg_text *text, float value) {
    if (add_not_finite(text, (double)value)) return;
    char number[40];
    for (int digits = fabsf(value) >= FLT_MIN ? FLT_DIG : 1;; digits++) {
        snprintf(number, sizeof(number), "%.*g", digits, (double)value);
        float back = strtof(number, NULL);
        if (digits >= FLT_DECIMAL_DIG || memcmp(&back, &value, sizeof(value)) == 0) break;
    }
    add_number(text, number);
}

void smg_text_add_f64(smg_text *text, double value) {
    if (add_not_finite(text, value)) return;
    char number[40];
    for (int digits = fabs(value) >= DBL_MIN ? DBL_DIG : 1;; digits++) {
        snprintf(number, sizeof(number), "%.*g", digits, value);
        double back = strtod(number, NULL);
        if (digits >= DBL_DECIMAL_DIG || memcmp(&back, &value, sizeof(value)) == 0) break;
    }
    add_number(text, number);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Length of the well-formed UTF-8 character in the `room` bytes at `at`, 0 if there is none (overlong forms,
 * surrogates and values past U+10FFFF included). */
static size_t utf8_length(const unsigned char *at, size_t room) {
    unsigned char first = at[0];
    if (first < 0x80) return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > room) return 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (size_t i = 1; i < length; i++) {
        if (at[i] < low || at[i] > high) return 0;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

void smg_text_add_json(smg_text *text, const char *string) {
    smg_text_add_json_n(text, string, strlen(string));
}

void smg_text_add_json_n(smg_text *text, const char *string, size_t bytes) {
    smg_text_add_n(text, "\"", 1);
    const unsigned char *at = (const unsigned char *)string;
    const unsigned char *end = at + bytes;
    while (at < end) {
        size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0) {
            smg_text_add(text, "\xef\xbf\xbd");
            length = 1;
        } else if (*at == '"' || *at == '\\') {
            smg_text_addf(text, "\\%c", *at);
        } else if (*at == '\n') {
            smg_text_add(text, "\\n");
        } else if (*at == '\t') {
            smg_text_add(text, "\\t");
        } else if (*at == '\r') {
            smg_text_add(text, "\\r");
        } else if (*at < 0x20 || *at == 0x7f) {
            smg_text_addf(text, "\\u%04x", *at);
        } else {
            smg_text_add_n(text, (const char *)at, length);
        }
        at += length;
    }
    smg_text_add_n(text, "\"", 1);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool smg_text_contains(const char *text, const char *part) {
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && lower(text[i]) == lower(part[i])) i++;
        if (!part[i]) return true;
    }
    return *part == 0;
}

bool smg_text_ends(const char *text, const char *end) {
    size_t length = strlen(text), own = strlen(end);
    return length >= own && strcmp(text + length - own, end) == 0;
}
