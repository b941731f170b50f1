/* Tokens of the graph text: names, numbers and strings within one line that ends with NUL. Numbers are
 * read the same in every locale. */
#include "graph/graph_private.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static const char *skip_spaces(const char *at) {
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

bool smg_lex_char(const char **cursor, char c) {
    const char *at = skip_spaces(*cursor);
    if (*at != c) return false;
    *cursor = at + 1;
    return true;
}

bool smg_lex_name(const char **cursor, const char **out_begin, size_t *out_length) {
    const char *begin = skip_spaces(*cursor), *at = begin;
    if (*at == '%') {
        for (at++; is_digit(*at);) at++;
        if (at == begin + 1) return false;
    } else {
        if (!starts_name(*at)) return false;
        while (starts_name(*at) || is_digit(*at) || *at == '.') at++;
    }
    *out_begin = begin;
    *out_length = (size_t)(at - begin);
    *cursor = at;
    return true;
}

bool smg_lex_word(const char **cursor, const char *word) {
    const char *at = *cursor, *begin;
    size_t length;
    if (!smg_lex_name(&at, &begin, &length)) return false;
    if (strlen(word) != length || memcmp(word, begin, length) != 0) return false;
    *cursor = at;
    return true;
}

bool smg_name_is_plain(const char *name) {
    const char *at = name, *begin;
    size_t length;
    return starts_name(name[0]) && smg_lex_name(&at, &begin, &length) && *at == '\0';
}

bool smg_lex_int(const char **cursor, int64_t *out_value) {
    const char *at = skip_spaces(*cursor);
    bool negative = *at == '-';
    int64_t value = 0;
    if (negative) at++;
    if (!is_digit(*at)) return false;
    for (; is_digit(*at); at++)
        if (!smg_mul_i64(value, 10, &value) || !smg_add_i64(value, *at - '0', &value)) return false;
    *out_value = negative ? -value : value;
    *cursor = at;
    return true;
}

static bool lex_special(const char **cursor, double *out_value) {
    const char *at = skip_spaces(*cursor);
    bool negative = *at == '-';
    if (negative) at++;
    if (smg_lex_word(&at, "inf"))
        *out_value = negative ? (double)-INFINITY : (double)INFINITY;
    else if (smg_lex_word(&at, "nan"))
        *out_value = (double)NAN;
    else
        return false;
    *cursor = at;
    return true;
}

bool smg_lex_number(const char **cursor, double *out_value) {
    if (lex_special(cursor, out_value)) return true;
    char buffer[64];
    size_t used = 0;
    const char *point = localeconv()->decimal_point, *at = skip_spaces(*cursor);
    if (!is_digit(*at) && *at != '-' && *at != '.') return false;
    for (; is_digit(*at) || strchr("+-.eE", *at); at++) {
        if (*at == '\0') break;
        const char *add = *at == '.' ? point : at;
        size_t length = *at == '.' ? strlen(point) : 1;
        if (used + length >= sizeof buffer) return false;
        memcpy(buffer + used, add, length);
        used += length;
    }
    buffer[used] = '\0';
    char *end = buffer;
    *out_value = strtod(buffer, &end);
    if (end == buffer || *end) return false;
    *cursor = at;
    return true;
}

/* ---- strings -------------------------------------------------------------------------------- */

static bool hex4(const char *at, uint32_t *out_code) {
    *out_code = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        char c = at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] - 'A' + 'a') : at[i];
        const char *found = c ? strchr(digits, c) : NULL;
        if (!found) return false;
        *out_code = *out_code * 16 + (uint32_t)(found - digits);
    }
    return true;
}

static size_t put_utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    out[0] = (char)(0xe0 | (code >> 12));
    out[1] = (char)(0x80 | ((code >> 6) & 63));
    out[2] = (char)(0x80 | (code & 63));
    return 3;
}

bool smg_lex_string(smg_arena *arena, const char **cursor, char **out_text) {
    static const char escapes[] = "\"\\/nrtbf", meaning[] = "\"\\/\n\r\t\b\f";
    const char *at = skip_spaces(*cursor);
    if (*at++ != '"') return false;
    char *text = smg_arena_alloc(arena, strlen(at) + 4, 1);
    size_t used = 0;
    *out_text = text;
    if (!text) return true;
    for (; *at && *at != '"'; at++) {
        if (*at != '\\') {
            text[used++] = *at;
            continue;
        }
        at++;
        const char *escape = *at ? strchr(escapes, *at) : NULL;
        uint32_t code;
        if (escape) {
            text[used++] = meaning[escape - escapes];
        } else if (*at == 'u' && hex4(at + 1, &code) && code != 0 && (code < 0xd800 || code > 0xdfff)) {
            used += put_utf8(text + used, code);
            at += 4;
        } else {
            return false;
        }
    }
    if (*at != '"') return false;
    *cursor = at + 1;
    return true;
}
