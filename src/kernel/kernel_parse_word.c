/* The vocabulary of kernel text: words, quoted names, integers, sizes, lists of axes. A reader skips
 * the spaces before what it reads and never crosses a line. */
#include "kernel/kernel_parse.h"

static void skip_spaces(kernel_reader *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') r->at++;
}

static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t word_length(const char *at) {
    size_t length = 0;
    if (!letter(*at)) return 0;
    while (letter(at[length]) || digit(at[length]) || at[length] == '.') length++;
    return length;
}

smg_status kernel_read_fail(kernel_reader *r, const char *expected) {
    char found[24];
    size_t n = 0;
    skip_spaces(r);
    while (n + 1 < sizeof found && r->at[n] && r->at[n] != '\n') n++;
    memcpy(found, r->at, n);
    found[n] = 0;
    return smg_fail(r->ctx, SMG_FORMAT, "kernel text, line %d: expected %s before \"%s\"", r->line, expected, found);
}

bool kernel_read_line_end(kernel_reader *r) {
    skip_spaces(r);
    return *r->at == 0 || *r->at == '\n' || *r->at == '#';
}

bool kernel_read_take(kernel_reader *r, const char *sign) {
    skip_spaces(r);
    if (strncmp(r->at, sign, strlen(sign)) != 0) return false;
    r->at += strlen(sign);
    return true;
}

smg_status kernel_read_sign(kernel_reader *r, const char *sign) {
    return kernel_read_take(r, sign) ? SMG_OK : kernel_read_fail(r, sign);
}

bool kernel_read_keyword(kernel_reader *r, const char *word) {
    skip_spaces(r);
    size_t length = word_length(r->at);
    if (length != strlen(word) || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

smg_status kernel_read_word(kernel_reader *r, const char *word) {
    return kernel_read_keyword(r, word) ? SMG_OK : kernel_read_fail(r, word);
}

/* ---- names ----------------------------------------------------------------------------------------- */

static int hex_value(char c) {
    if (digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One escape behind its backslash: \" \\ \/ \n \t \r and \u00XX below 80. false when it is no such. */
static bool read_escape(const char **at, char *out) {
    static const char from[] = "\"\\/ntr", to[] = "\"\\/\n\t\r";
    const char *found = **at ? strchr(from, **at) : NULL;
    if (found) {
        *out = to[found - from];
        *at += 1;
        return true;
    }
    if (strncmp(*at, "u00", 3) != 0) return false;
    int high = hex_value((*at)[3]);
    int low = high >= 0 && high < 8 ? hex_value((*at)[4]) : -1;
    if (low < 0 || high + low == 0) return false;
    *out = (char)(high * 16 + low);
    *at += 5;
    return true;
}

static smg_status read_quoted(kernel_reader *r, const char **out_name) {
    const char *at = r->at + 1;
    size_t room = 1, length = 0;
    for (const char *c = at; *c && *c != '\n'; c++) room++;
    char *name = smg_arena_alloc(r->arena, room, 1);
    if (!name) return SMG_MEMORY;
    while (*at && *at != '"' && *at != '\n') {
        char c = *at++;
        if (c == '\\' && !read_escape(&at, &c)) return kernel_read_fail(r, "a name with known escapes");
        name[length++] = c;
    }
    if (*at != '"') return kernel_read_fail(r, "a quoted name that ends on its line");
    r->at = at + 1;
    *out_name = name;
    return SMG_OK;
}

smg_status kernel_read_name(kernel_reader *r, const char **out_name) {
    skip_spaces(r);
    if (*r->at == '"') return read_quoted(r, out_name);
    size_t length = word_length(r->at);
    if (length == 0) return kernel_read_fail(r, "a name");
    *out_name = smg_arena_string_n(r->arena, r->at, length);
    if (!*out_name) return SMG_MEMORY;
    r->at += length;
    return SMG_OK;
}

smg_status kernel_read_axis(kernel_reader *r, int *out_axis) {
    const char *name = NULL, *start = r->at;
    SMG_TRY(kernel_read_name(r, &name));
    for (*out_axis = 0; *out_axis < r->k->axes.count; ++*out_axis)
        if (strcmp(r->k->axes.items[*out_axis].name, name) == 0) return SMG_OK;
    r->at = start;
    return kernel_read_fail(r, "the name of an axis");
}

smg_status kernel_read_tile(kernel_reader *r, int *out_tile) {
    const char *name = NULL, *start = r->at;
    SMG_TRY(kernel_read_name(r, &name));
    for (*out_tile = 0; *out_tile < r->k->tiles.count; ++*out_tile)
        if (strcmp(r->k->tiles.items[*out_tile].name, name) == 0) return SMG_OK;
    r->at = start;
    return kernel_read_fail(r, "the name of a tile");
}

smg_status kernel_read_list(kernel_reader *r, int capacity, int *axes, int *out_count) {
    SMG_TRY(kernel_read_sign(r, "["));
    *out_count = 0;
    if (kernel_read_take(r, "]")) return SMG_OK;
    do {
        if (*out_count == capacity) return kernel_read_fail(r, "fewer axes in a list");
        SMG_TRY(kernel_read_axis(r, &axes[*out_count]));
        ++*out_count;
    } while (kernel_read_take(r, ","));
    return kernel_read_sign(r, "]");
}

/* ---- numbers --------------------------------------------------------------------------------------- */

smg_status kernel_read_integer(kernel_reader *r, int64_t low, int64_t high, int64_t *out_value) {
    skip_spaces(r);
    const char *at = r->at;
    bool negative = *at == '-';
    int64_t value = 0;
    if (negative) at++;
    if (!digit(*at)) return kernel_read_fail(r, "an integer");
    for (; digit(*at); at++)
        if (!smg_mul_i64(value, 10, &value) || !smg_add_i64(value, *at - '0', &value))
            return kernel_read_fail(r, "an integer of 64 bits");
    if (negative) value = -value;
    if (value < low || value > high)
        return smg_fail(r->ctx, SMG_FORMAT, "kernel text, line %d: %lld is outside [%lld, %lld]", r->line,
                        (long long)value, (long long)low, (long long)high);
    *out_value = value;
    r->at = at;
    return SMG_OK;
}

smg_status kernel_read_int(kernel_reader *r, int low, int high, int *out_value) {
    int64_t value = 0;
    SMG_TRY(kernel_read_integer(r, low, high, &value));
    *out_value = (int)value;
    return SMG_OK;
}

smg_status kernel_read_size(kernel_reader *r, smg_size *out_size) {
    return smg_size_parse(r->k->sizes, &r->at, out_size);
}

smg_status kernel_read_bracket(kernel_reader *r, smg_size *out_size) {
    SMG_TRY(kernel_read_sign(r, "["));
    SMG_TRY(kernel_read_size(r, out_size));
    return kernel_read_sign(r, "]");
}
