/* bfloat16 for tools that are older than it. They look at a module that has it with a signed integer of 16 bits in its
 * place, which nothing else in a kernel is: matrices are made of it and bits are put into it as before, and what
 * bfloat16 has none of, arithmetic of floats, is refused. The words that a driver gets stay what the compiler made. */
#include "spirv/spirv_private.h"

/* SPIR-V 1.6 and SPV_KHR_bfloat16. */
enum {
    HEADER = 5,
    OP_EXTENSION = 10,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    CAPABILITY_INT16 = 22,
    CAPABILITY_TYPE = 5116,
    CAPABILITY_DOT = 5117,
    CAPABILITY_MATRIX = 5118,
    ENCODING = 0 /* BFloat16KHR */
};

static const char extension[] = "SPV_KHR_bfloat16";

static bool has_capability(const uint32_t *at, uint32_t which) {
    return (at[0] & 0xffffu) == OP_CAPABILITY && at[0] >> 16 == 2 && at[1] == which;
}

static bool is_extension(const uint32_t *at) {
    return (at[0] & 0xffffu) == OP_EXTENSION && (at[0] >> 16) - 1 >= sizeof extension / 4 + 1 &&
           memcmp(at + 1, extension, sizeof extension) == 0;
}

static bool is_type(const uint32_t *at) {
    return (at[0] & 0xffffu) == OP_TYPE_FLOAT && at[0] >> 16 == 4 && at[2] == 16 && at[3] == ENCODING;
}

/* The length of the instruction; 0: it does not end within the module. */
static size_t length_of(const uint32_t *words, size_t count, size_t at) {
    size_t length = words[at] >> 16;
    return length <= count - at ? length : 0;
}

bool smg_spirv_has_bf16(const uint32_t *words, size_t count) {
    size_t length;
    for (size_t at = HEADER; at < count && (length = length_of(words, count, at)) > 0; at += length)
        if (has_capability(words + at, CAPABILITY_TYPE)) return true;
    return false;
}

size_t smg_spirv_without_bf16(const uint32_t *words, size_t count, uint32_t *out_words) {
    size_t made = count < HEADER ? count : HEADER, at = made, length;
    memcpy(out_words, words, made * sizeof *words);
    for (; at < count; at += length) {
        const uint32_t *from = words + at;
        length = length_of(words, count, at);
        if (length == 0) break; /* the validator says what is wrong */
        if (has_capability(from, CAPABILITY_DOT) || has_capability(from, CAPABILITY_MATRIX) || is_extension(from))
            continue;
        memcpy(out_words + made, from, length * sizeof *words);
        if (has_capability(from, CAPABILITY_TYPE)) out_words[made + 1] = CAPABILITY_INT16;
        if (is_type(from)) {
            out_words[made] = 4u << 16 | OP_TYPE_INT;
            out_words[made + 3] = 1; /* signed */
        }
        made += length;
    }
    memcpy(out_words + made, words + at, (count - at) * sizeof *words);
    return made + count - at;
}
