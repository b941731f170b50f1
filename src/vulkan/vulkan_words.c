/* Modules that are others' with a few words changed.
 *
 * One that reads its push constants from memory. One recording then serves many sizes: what a command buffer
 * holds of push constants is fixed, what lies in memory is not. The block is laid out the same in both (scalars, each
 * at a multiple of its size), so the words differ in the storage class of the variable and of the pointers into it,
 * and in two decorations that name the binding.
 *
 * One whose floats of 16 bits are bfloat16 (SPV_KHR_bfloat16): the type has one word more, and its needs are named. */
#include "vulkan/vulkan_private.h"

enum {
    HEADER_WORDS = 5,
    OP_EXTENSION = 10,
    OP_CAPABILITY = 17,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_POINTER = 32,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    DECORATION_BINDING = 33,
    DECORATION_SET = 34,
    CAPABILITY_FLOAT16 = 9,
    CAPABILITY_BF16 = 5116,
    CAPABILITY_BF16_MATRICES = 5118,
    ENCODING_BF16 = 0,
    CLASS_UNIFORM = 2,
    CLASS_PUSH_CONSTANT = 9
};

/* Where an instruction names its storage class; 0: it has none. */
static size_t class_at(uint32_t op, size_t length) {
    if (op == OP_TYPE_POINTER && length >= 4) return 2;
    return op == OP_VARIABLE && length >= 4 ? 3 : 0;
}

typedef struct places {
    size_t decorations; /* word where they begin; 0: there are none */
    uint32_t variable;  /* 0: none */
} places;

/* false: an instruction reaches behind the end, or there are two blocks. */
static bool find_places(const uint32_t *words, size_t count, places *out) {
    *out = (places){0};
    for (size_t at = HEADER_WORDS; at < count;) {
        uint32_t op = words[at] & 0xffffu;
        size_t length = words[at] >> 16;
        if (length == 0 || length > count - at) return false;
        if ((op == OP_DECORATE || op == OP_MEMBER_DECORATE) && out->decorations == 0) out->decorations = at;
        if (op == OP_VARIABLE && length >= 4 && words[at + 3] == CLASS_PUSH_CONSTANT) {
            if (out->variable != 0) return false;
            out->variable = words[at + 2];
        }
        at += length;
    }
    return out->variable != 0 && out->decorations != 0;
}

smg_status smg_vk_words_from_memory(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, uint32_t **out_words) {
    places where;
    *out_words = NULL;
    if (!find_places(desc->words, desc->word_count, &where))
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s': its words have not one block of push constants",
                        desc->name);
    const uint32_t added[SMG_VK_BLOCK_WORDS] = {
        4u << 16 | OP_DECORATE, where.variable, DECORATION_SET,     0,
        4u << 16 | OP_DECORATE, where.variable, DECORATION_BINDING, (uint32_t)desc->binding_count,
    };
    uint32_t *words = smg_alloc(dev->ctx, desc->word_count + SMG_VK_BLOCK_WORDS, sizeof *words);
    if (!words) return SMG_MEMORY;
    memcpy(words, desc->words, where.decorations * sizeof *words);
    memcpy(words + where.decorations, added, sizeof added);
    memcpy(words + where.decorations + SMG_VK_BLOCK_WORDS, desc->words + where.decorations,
           (desc->word_count - where.decorations) * sizeof *words);
    for (size_t at = HEADER_WORDS; at < desc->word_count + SMG_VK_BLOCK_WORDS; at += words[at] >> 16) {
        size_t position = class_at(words[at] & 0xffffu, words[at] >> 16);
        if (position != 0 && words[at + position] == CLASS_PUSH_CONSTANT) words[at + position] = CLASS_UNIFORM;
    }
    *out_words = words;
    return SMG_OK;
}

smg_status smg_vk_words_of_bf16(smg_context *ctx, const uint32_t *words, size_t count, uint32_t **out_words,
                                size_t *out_count) {
    static const uint32_t needs[] = {2u << 16 | OP_CAPABILITY, CAPABILITY_BF16, 2u << 16 | OP_CAPABILITY,
                                     CAPABILITY_BF16_MATRICES};
    uint32_t extension[6] = {6u << 16 | OP_EXTENSION};
    memcpy(extension + 1, "SPV_KHR_bfloat16", sizeof "SPV_KHR_bfloat16");
    bool said = false;
    size_t made = HEADER_WORDS;
    uint32_t *out = smg_alloc(ctx, count + SMG_VK_BF16_WORDS, sizeof *out);
    if (!out) return SMG_MEMORY;
    memcpy(out, words, HEADER_WORDS * sizeof *out);
    for (size_t at = HEADER_WORDS, length; at < count; at += length) {
        uint32_t op = words[at] & 0xffffu;
        length = words[at] >> 16;
        if (op == OP_CAPABILITY && words[at + 1] == CAPABILITY_FLOAT16) {
            memcpy(out + made, needs, sizeof needs);
            made += SMG_COUNT_OF(needs);
            continue;
        }
        if (op == OP_EXTENSION && !said) { /* extensions follow capabilities */
            memcpy(out + made, extension, sizeof extension);
            made += SMG_COUNT_OF(extension);
            said = true;
        }
        memcpy(out + made, words + at, length * sizeof *out);
        if (op == OP_TYPE_FLOAT && words[at + 2] == 16) {
            out[made] = 4u << 16 | OP_TYPE_FLOAT;
            out[made++ + 3] = ENCODING_BF16;
        }
        made += length;
    }
    *out_words = out;
    *out_count = made;
    return SMG_OK;
}
