/* Layouts as text, and back. */
#include "layout/layout_private.h"

static const char *const level_words[SMG_LAYOUT_LEVELS] = {"registers", "lanes", "subgroups"};

static void print_digit(const smg_layout_digit *digit, void (*add_axis)(const void *user, int axis, smg_text *text),
                        const void *user, smg_text *text) {
    smg_text_add(text, " ");
    if (digit->axis >= 0) add_axis(user, digit->axis, text);
    smg_text_addf(text, "*%lld", (long long)digit->count);
    if (digit->step > 1) smg_text_addf(text, ":%lld", (long long)digit->step);
}

void smg_layout_print(const smg_layout *layout, void (*add_axis)(const void *user, int axis, smg_text *text),
                      const void *user, smg_text *text) {
    smg_layout_digit digits[SMG_LAYOUT_LEVEL_BITS];
    const char *space = "";
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++) {
        int count = smg_layout_digits(layout, (smg_layout_level)level, digits);
        if (count == 0) continue;
        smg_text_addf(text, "%s%s", space, level_words[level]);
        space = " ";
        for (int i = 0; i < count; i++) print_digit(&digits[i], add_axis, user, text);
    }
    bool repeats = false;
    for (int i = 0; i < layout->axis_count; i++) {
        if (layout->axes[i].repeats == 1) continue;
        if (!repeats) smg_text_addf(text, "%srepeat", space);
        repeats = true;
        smg_layout_digit times = {.axis = layout->axes[i].axis, .count = layout->axes[i].repeats, .step = 1};
        print_digit(&times, add_axis, user, text);
    }
}

/* ---- reading --------------------------------------------------------------------------------------- */

typedef struct layout_words {
    const char *at, *end;
    int (*axis_of)(const void *user, const char *name, size_t length);
    const void *user;
} layout_words;

/* The next word, NULL at the end. */
static const char *next_word(layout_words *words, size_t *out_length) {
    while (words->at < words->end && (*words->at == ' ' || *words->at == '\t')) words->at++;
    const char *begin = words->at;
    while (words->at < words->end && *words->at != ' ' && *words->at != '\t') words->at++;
    *out_length = (size_t)(words->at - begin);
    return *out_length > 0 ? begin : NULL;
}

/* A power of two in decimal digits, as its logarithm. */
static bool read_power(const char *begin, const char *end, int *out_log) {
    int64_t value = 0;
    for (const char *c = begin; c < end; c++) {
        if (*c < '0' || *c > '9' || c - begin > 6) return false;
        value = value * 10 + (*c - '0');
    }
    *out_log = smg_is_power_of_two(value) ? smg_log2(value) : 0;
    return smg_is_power_of_two(value) && *out_log < SMG_LAYOUT_LEVEL_BITS;
}

/* `axis*count:step`, `axis*count` or `*count`. */
static bool read_digit(const layout_words *words, const char *begin, size_t length, smg_layout_level level,
                       smg_layout *layout) {
    const char *end = begin + length, *star = memchr(begin, '*', length);
    if (star == NULL) return false;
    const char *colon = memchr(star, ':', (size_t)(end - star));
    int count = 0, step = 0, axis = -1;
    if (!read_power(star + 1, colon ? colon : end, &count) || (colon && !read_power(colon + 1, end, &step)))
        return false;
    if (star > begin) axis = words->axis_of(words->user, begin, (size_t)(star - begin));
    if ((star > begin) != (axis >= 0) || (axis < 0 && colon)) return false;
    for (int i = 0; i < count; i++)
        smg_layout_set(layout, level, layout->bits[level],
                       (smg_basis){(int8_t)axis, (int8_t)(axis < 0 ? 0 : step + i)});
    return true;
}

bool smg_layout_parse(const char *text, size_t length,
                      int (*axis_of)(const void *user, const char *name, size_t length), const void *user,
                      smg_layout *out_layout) {
    layout_words words = {text, text + length, axis_of, user};
    smg_layout layout = smg_layout_one();
    int level = -1;
    size_t size = 0;
    for (const char *word; (word = next_word(&words, &size)) != NULL;) {
        int named = level + 1; /* levels stand in their order, each once */
        while (named < SMG_LAYOUT_LEVELS &&
               (strlen(level_words[named]) != size || memcmp(level_words[named], word, size) != 0))
            named++;
        if (named < SMG_LAYOUT_LEVELS)
            level = named;
        else if (level < 0 || !read_digit(&words, word, size, (smg_layout_level)level, &layout))
            return false;
    }
    const char *why = NULL;
    if (!smg_layout_valid(&layout, &why)) return false;
    *out_layout = layout;
    return true;
}
