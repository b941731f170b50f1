/* Characters as the reference tokenizer sees them.
 *
 * utf8proc knows today's Unicode. The reference (HF tokenizers) classes characters by the tables of
 * Unicode 8 and decomposes them by those of Unicode 9, so marks, punctuation and format characters
 * that came later are plain letters to it. `later` lists them: all disagreements between the
 * reference 0.23 and utf8proc 2.8, found by asking both about every code point; newer utf8proc adds
 * none of these classes below it. What stays different: U+11938, whose decomposition the reference
 * does not know, and the lower case of letters newer than utf8proc's tables.
 */
#include "import/tokenizer.h"

#include <utf8proc.h>

typedef struct code_range {
    int32_t first, last;
} code_range;

/* Sorted; plain to the reference. */
static const code_range later[] = {
    {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x891},     {0x898, 0x89f},     {0x8ca, 0x8e2},
    {0x9fd, 0x9fe},     {0xa76, 0xa76},     {0xafa, 0xaff},     {0xb55, 0xb55},     {0xc04, 0xc04},
    {0xc3c, 0xc3c},     {0xc77, 0xc77},     {0xc84, 0xc84},     {0xd00, 0xd00},     {0xd3b, 0xd3c},
    {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x180f, 0x180f},   {0x1885, 0x1886},
    {0x1abf, 0x1ace},   {0x1b7d, 0x1b7e},   {0x1df6, 0x1dfb},   {0x2e43, 0x2e4f},   {0x2e52, 0x2e5d},
    {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},   {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},   {0x10d24, 0x10d27},
    {0x10eab, 0x10ead}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f55, 0x10f59}, {0x10f82, 0x10f89},
    {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110c2, 0x110c2}, {0x110cd, 0x110cd}, {0x111cf, 0x111cf},
    {0x1123e, 0x1123e}, {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x11438, 0x1143f}, {0x11442, 0x11444},
    {0x11446, 0x11446}, {0x1144b, 0x1144f}, {0x1145a, 0x1145b}, {0x1145d, 0x1145e}, {0x11660, 0x1166c},
    {0x116b9, 0x116b9}, {0x1182f, 0x11837}, {0x11839, 0x1183b}, {0x1193b, 0x1193c}, {0x1193e, 0x1193e},
    {0x11943, 0x11946}, {0x119d4, 0x119d7}, {0x119da, 0x119db}, {0x119e0, 0x119e0}, {0x119e2, 0x119e2},
    {0x11a01, 0x11a0a}, {0x11a33, 0x11a38}, {0x11a3b, 0x11a47}, {0x11a51, 0x11a56}, {0x11a59, 0x11a5b},
    {0x11a8a, 0x11a96}, {0x11a98, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09}, {0x11c30, 0x11c36},
    {0x11c38, 0x11c3d}, {0x11c3f, 0x11c3f}, {0x11c41, 0x11c45}, {0x11c70, 0x11c71}, {0x11c92, 0x11ca7},
    {0x11caa, 0x11cb0}, {0x11cb2, 0x11cb3}, {0x11cb5, 0x11cb6}, {0x11d31, 0x11d36}, {0x11d3a, 0x11d3a},
    {0x11d3c, 0x11d3d}, {0x11d3f, 0x11d45}, {0x11d47, 0x11d47}, {0x11d90, 0x11d91}, {0x11d95, 0x11d95},
    {0x11d97, 0x11d97}, {0x11ef3, 0x11ef4}, {0x11ef7, 0x11ef8}, {0x11f00, 0x11f01}, {0x11f36, 0x11f3a},
    {0x11f40, 0x11f40}, {0x11f42, 0x11f4f}, {0x11fff, 0x11fff}, {0x12ff1, 0x12ff2}, {0x13430, 0x13440},
    {0x13447, 0x13455}, {0x16e97, 0x16e9a}, {0x16f4f, 0x16f4f}, {0x16fe2, 0x16fe2}, {0x16fe4, 0x16fe4},
    {0x1cf00, 0x1cf2d}, {0x1cf30, 0x1cf46}, {0x1e000, 0x1e006}, {0x1e008, 0x1e018}, {0x1e01b, 0x1e021},
    {0x1e023, 0x1e024}, {0x1e026, 0x1e02a}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e944, 0x1e94a}, {0x1e95e, 0x1e95f},
};

static const code_range cjk[] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
    {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, /* sic: not 0x2b820 */
    {0x2f800, 0x2fa1f},
};

static bool in_ranges(const code_range *ranges, size_t count, int32_t code) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code < ranges[middle].first) {
            high = middle;
        } else if (code > ranges[middle].last) {
            low = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

bool smg_char_is_cjk(int32_t code) {
    return code >= cjk[0].first && in_ranges(cjk, SMG_COUNT_OF(cjk), code);
}

static smg_char_class ascii_class(int32_t code) {
    if (code == ' ' || (code >= '\t' && code <= '\r')) return SMG_CHAR_SPACE;
    if (code < ' ' || code == 0x7f) return SMG_CHAR_CONTROL;
    if ((code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) {
        return SMG_CHAR_PLAIN;
    }
    return SMG_CHAR_PUNCT;
}

smg_char_class smg_char_class_of(int32_t code) {
    if (code < 0x80) return ascii_class(code);
    if (code == 0x85) return SMG_CHAR_SPACE;
    if (in_ranges(later, SMG_COUNT_OF(later), code)) return SMG_CHAR_PLAIN;
    if (code == 0x166d || code == 0x111c9) return SMG_CHAR_PUNCT; /* reclassed after Unicode 8 */
    if (code == 0x1734) return SMG_CHAR_MARK;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return SMG_CHAR_SPACE;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return SMG_CHAR_CONTROL;
    case UTF8PROC_CATEGORY_MN: return SMG_CHAR_MARK;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return SMG_CHAR_PUNCT;
    default: return SMG_CHAR_PLAIN;
    }
}

int smg_char_combining(int32_t code) {
    if (code < 0x300 || in_ranges(later, SMG_COUNT_OF(later), code)) return 0;
    return utf8proc_get_property(code)->combining_class;
}

int smg_char_decompose(int32_t code, int32_t *out) {
    utf8proc_int32_t codes[SMG_CHAR_DECOMPOSED];
    int boundary = 0;
    utf8proc_ssize_t count =
        code < 0x80 ? 0 : utf8proc_decompose_char(code, codes, SMG_CHAR_DECOMPOSED, UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > SMG_CHAR_DECOMPOSED) {
        out[0] = code;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++) out[i] = codes[i];
    return (int)count;
}

int smg_char_lower(int32_t code, int32_t *out) {
    if (code == 0x130) { /* the one letter whose lower case is two codes */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    if (code < 0x80) {
        out[0] = code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
    } else {
        out[0] = utf8proc_tolower(code);
    }
    return 1;
}
