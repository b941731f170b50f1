/* glsl_size.c: sizes and integer sums as text. A constant size is a literal; any other gets one
 * `int zN` at the top of main. Symbols are members of the push constants. The text of a polynomial
 * is what smg_size_print gives, with its symbols and floor divisions replaced. */
#include "glsl_private.h"

static const char *literal(glsl_writer *w, int64_t value) {
    if (value > INT32_MAX || value < -INT32_MAX) {
        glsl_fail(w, SMG_UNSUPPORTED, GLSL_STRING(w, "the size %lld does not fit 32-bit addressing", (long long)value));
        return "0";
    }
    return value < 0 ? GLSL_STRING(w, "(%lld)", (long long)value) : GLSL_STRING(w, "%lld", (long long)value);
}

const char *glsl_size(glsl_writer *w, smg_size size) {
    int64_t value;
    if (size == SMG_SIZE_NONE) {
        glsl_fail(w, SMG_INTERNAL, "a size is missing or overflowed");
        return "0";
    }
    if (smg_size_is_const(w->k->sizes, size, &value)) return literal(w, value);
    int at = 0;
    while (at < w->sizes.count && w->sizes.items[at] != size) at++;
    if (at == w->sizes.count) {
        smg_size *slot = SMG_ARRAY_PUSH(w->arena, &w->sizes);
        if (slot == NULL) return glsl_kept(w, NULL);
        *slot = size;
    }
    return GLSL_STRING(w, "z%d", at);
}

const char *glsl_symbol(glsl_writer *w, int symbol) {
    const char *name = smg_size_symbol_name(w->k->sizes, symbol);
    char clean[40];
    size_t used = 0;
    for (size_t i = 0; name[i] != 0 && used + 1 < sizeof clean; i++) {
        bool word = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                    (name[i] >= '0' && name[i] <= '9');
        if (word) clean[used++] = name[i];
    }
    clean[used] = 0;
    return GLSL_STRING(w, "n%d_%s", symbol, clean);
}

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == ':' || c == '$';
}

/* The '/' of "floor(a/b)" that belongs to this floor, or the end. */
static size_t own_slash(const char *text, size_t begin, size_t end) {
    int depth = 0;
    size_t found = end;
    for (size_t i = begin; i < end; i++) {
        if (text[i] == '(') depth++;
        if (text[i] == ')') depth--;
        if (text[i] == '/' && depth == 0) found = i;
    }
    return found;
}

static size_t closing(const char *text, size_t begin, size_t end) {
    int depth = 1;
    size_t i = begin;
    for (; i < end; i++) {
        if (text[i] == '(') depth++;
        if (text[i] == ')' && --depth == 0) break;
    }
    return i;
}

static void translate(glsl_writer *w, const char *text, size_t begin, size_t end, smg_text *out);

/* One word at `begin`; gives where reading goes on. */
static size_t translate_word(glsl_writer *w, const char *text, size_t begin, size_t end, smg_text *out) {
    size_t stop = begin;
    while (stop < end && word_char(text[stop])) stop++;
    size_t length = stop - begin;
    if (stop < end && text[stop] == '(') {
        size_t last = closing(text, stop + 1, end);
        size_t slash = own_slash(text, stop + 1, last);
        if (length == 5 && strncmp(text + begin, "floor", 5) == 0 && slash < last) {
            smg_text_add(out, "smg_floor_div(");
            translate(w, text, stop + 1, slash, out);
            smg_text_add(out, ", ");
            translate(w, text, slash + 1, last, out);
            smg_text_add(out, ")");
            return last + 1;
        }
        smg_text_add(out, length == 3 && strncmp(text + begin, "mod", 3) == 0 ? "smg_" : "");
        smg_text_add_n(out, text + begin, length);
        return stop;
    }
    const char *name = glsl_kept(w, smg_arena_string_n(w->arena, text + begin, length));
    if (name[0] >= '0' && name[0] <= '9') {
        smg_text_add(out, name);
        return stop;
    }
    int symbol = smg_size_symbol_find(w->k->sizes, name);
    if (symbol < 0 || symbol >= w->symbol_count) {
        glsl_fail(w, SMG_INTERNAL, GLSL_STRING(w, "cannot write the size %s", text));
        return stop;
    }
    w->symbol_used[symbol] = true;
    smg_text_addf(out, "push.%s", glsl_symbol(w, symbol));
    return stop;
}

static void translate(glsl_writer *w, const char *text, size_t begin, size_t end, smg_text *out) {
    for (size_t i = begin; i < end && w->status == SMG_OK;) {
        if (word_char(text[i])) {
            i = translate_word(w, text, i, end, out);
        } else {
            smg_text_add_n(out, text + i, 1);
            i++;
        }
    }
}

void glsl_size_text(glsl_writer *w, smg_size size, smg_text *text) {
    smg_text plain;
    smg_text_init(&plain, w->ctx);
    smg_size_print(w->k->sizes, size, &plain);
    if (smg_text_status(&plain) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    const char *printed = smg_text_cstr(&plain);
    translate(w, printed, 0, strlen(printed), text);
    smg_text_free(&plain);
}

void glsl_size_symbols(glsl_writer *w) {
    smg_text nowhere;
    smg_text_init(&nowhere, w->ctx);
    for (int i = 0; i < w->sizes.count; i++) glsl_size_text(w, w->sizes.items[i], &nowhere);
    if (smg_text_status(&nowhere) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    smg_text_free(&nowhere);
}

const char *glsl_plus(glsl_writer *w, const char *a, const char *b) {
    if (strcmp(a, "0") == 0) return b;
    if (strcmp(b, "0") == 0) return a;
    return GLSL_STRING(w, "%s + %s", a, b);
}

const char *glsl_times(glsl_writer *w, const char *text, smg_size stride) {
    int64_t value;
    if (smg_size_is_const(w->k->sizes, stride, &value)) return glsl_times_literal(w, text, value);
    if (strcmp(text, "0") == 0) return "0";
    if (strcmp(text, "1") == 0) return glsl_size(w, stride);
    return GLSL_STRING(w, "%s * %s", text, glsl_size(w, stride));
}

const char *glsl_times_literal(glsl_writer *w, const char *text, int64_t factor) {
    if (factor == 0 || strcmp(text, "0") == 0) return "0";
    if (factor == 1) return text;
    return GLSL_STRING(w, "%s * %s", text, literal(w, factor));
}

const char *glsl_both(glsl_writer *w, const char *a, const char *b) {
    if (a == NULL) return b;
    if (b == NULL) return a;
    return GLSL_STRING(w, "%s && %s", a, b);
}

const char *glsl_unless_even(glsl_writer *w, smg_size size, int64_t by, const char *condition) {
    for (int i = 0; i < w->k->evens.count; i++) {
        const smg_even *even = &w->k->evens.items[i];
        if (even->size == size && even->by % by == 0) return GLSL_STRING(w, "(even || %s)", condition);
    }
    return condition;
}
