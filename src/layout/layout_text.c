/* Layouts as text, and back. */
#include "layout/layout_private.h"

enum { REPEAT = SMG_LAYOUT_LEVELS, PARTS };

static const char *const part_words[PARTS] = {"registers", "lanes", "subgroups", "repeat"};
static const char *const sides[] = {"row", "column"};

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
        smg_text_addf(text, "%s%s", space, part_words[level]);
        space = " ";
        for (int i = 0; i < count; i++) print_digit(&digits[i], add_axis, user, text);
    }
    bool repeats = false;
    for (int i = 0; i < layout->axis_count; i++) {
        if (layout->axes[i].repeats == 1) continue;
        if (!repeats) smg_text_addf(text, "%s%s", space, part_words[REPEAT]);
        repeats = true;
        smg_layout_digit times = {.axis = layout->axes[i].axis, .count = layout->axes[i].repeats, .step = 1};
        print_digit(&times, add_axis, user, text);
    }
}

void smg_layout_add_side(const void *unused, int axis, smg_text *text) {
    (void)unused;
    smg_text_add(text, axis == 0 || axis == 1 ? sides[axis] : "?");
}

/* ---- reading --------------------------------------------------------------------------------------- */

#define MOST_REPEATS (1 << 20)

typedef struct layout_reader {
    const char *at, *end;
    smg_layout_take_axis *take_axis;
    void *user;
} layout_reader;

/* Does another word follow? */
static bool goes_on(layout_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
    return r->at < r->end && *r->at != '#';
}

static bool take_sign(layout_reader *r, char sign) {
    bool found = r->at < r->end && *r->at == sign;
    r->at += found;
    return found;
}

static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '#';
}

/* The part that begins here, one of those from `first` on, each of which comes once at most; -1. An axis of such a name
 * has its '*' behind it. */
static int take_part(layout_reader *r, int first) {
    for (int part = first; part < PARTS; part++) {
        size_t length = strlen(part_words[part]);
        if ((size_t)(r->end - r->at) < length || memcmp(r->at, part_words[part], length) != 0) continue;
        if (r->at + length < r->end && !ends_word(r->at[length])) continue;
        r->at += length;
        return part;
    }
    return -1;
}

static bool read_number(layout_reader *r, int64_t most, int64_t *out_value) {
    const char *at = r->at;
    *out_value = 0;
    for (; at < r->end && *at >= '0' && *at <= '9' && *out_value <= most; at++)
        *out_value = *out_value * 10 + (*at - '0');
    if (at == r->at || *out_value > most) return false;
    r->at = at;
    return true;
}

/* A power of two, as its logarithm. */
static bool read_power(layout_reader *r, int *out_log) {
    const char *start = r->at;
    int64_t value;
    bool good = read_number(r, INT64_C(1) << (SMG_LAYOUT_LEVEL_BITS - 1), &value) && smg_is_power_of_two(value);
    if (good) *out_log = smg_log2(value);
    if (!good) r->at = start;
    return good;
}

/* `axis*count:step`, `axis*count` or `*count`. */
static const char *read_digit(layout_reader *r, smg_layout *layout, smg_layout_level level) {
    int axis = -1, bits = 0, step = 0;
    if (*r->at != '*' && (axis = r->take_axis(r->user, &r->at, r->end)) < 0) return "the name of an axis";
    if (!take_sign(r, '*')) return "*";
    if (!read_power(r, &bits) || (axis >= 0 && take_sign(r, ':') && !read_power(r, &step))) return "a power of two";
    if (layout->bits[level] + bits > SMG_LAYOUT_LEVEL_BITS || axis > INT8_MAX) return "a layout of fewer bits and axes";
    for (int i = 0; i < bits; i++)
        smg_layout_set(layout, level, layout->bits[level], (smg_basis){(int8_t)axis, (int8_t)(step + i)});
    return layout->too_large ? "a layout of fewer bits and axes" : NULL;
}

/* `axis*times`, of an axis that the layout has. */
static const char *read_repeat(layout_reader *r, smg_layout *layout) {
    const char *start = r->at;
    int axis = r->take_axis(r->user, &r->at, r->end);
    int64_t times;
    for (int i = 0; i < layout->axis_count; i++) {
        if (layout->axes[i].axis != axis) continue;
        if (!take_sign(r, '*')) return "*";
        if (!read_number(r, MOST_REPEATS, &times)) return "a number of blocks";
        layout->axes[i].repeats = (int)times;
        return NULL;
    }
    r->at = start;
    return "the name of an axis that the layout has";
}

const char *smg_layout_read(const char **io_at, const char *end, smg_layout_take_axis *take_axis, void *user,
                            smg_layout *io_layout) {
    layout_reader r = {*io_at, end, take_axis, user};
    const char *wrong = NULL;
    int part = -1;
    while (wrong == NULL && goes_on(&r)) {
        int next = take_part(&r, part + 1);
        if (next >= 0)
            part = next;
        else if (part < 0)
            wrong = "registers, lanes, subgroups or repeat";
        else
            wrong = part == REPEAT ? read_repeat(&r, io_layout) : read_digit(&r, io_layout, (smg_layout_level)part);
        if (wrong == NULL && r.at < r.end && !ends_word(*r.at)) wrong = "a blank behind a digit";
    }
    *io_at = r.at;
    return wrong;
}

int smg_layout_take_side(void *unused, const char **io_at, const char *end) {
    (void)unused;
    for (int side = 0; side < (int)SMG_COUNT_OF(sides); side++) {
        size_t length = strlen(sides[side]);
        if ((size_t)(end - *io_at) < length || memcmp(*io_at, sides[side], length) != 0) continue;
        *io_at += length;
        return side;
    }
    return -1;
}
