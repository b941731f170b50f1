/* Modules that are others' with a few words changed.
 *
 * One that reads its push constants from memory. One recording then serves many sizes: what a command buffer
 * holds of push constants is fixed, what lies in memory is not. The block is laid out the same in both (scalars, each
 * at a multiple of its size), so the words differ in the storage class of the variable and of the pointers into it,
 * and in two decorations that name the binding.
 *
 * One whose sizes are literals. What it reads of its push constants, whole numbers by themselves, is copied from
 * constants in the place of the loads; the block stays, and what else lies in it.
 *
 * One whose floats of 16 bits are bfloat16 (SPV_KHR_bfloat16): the type has one word more, and its needs are named. */
#include "vulkan/vulkan_private.h"

enum {
    HEADER_WORDS = 5,
    MOST_IDS = 1 << 22, /* by the language's universal limits */
    OP_EXTENSION = 10,
    OP_CAPABILITY = 17,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_FUNCTION = 54,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_ACCESS_CHAIN = 65,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_COPY_OBJECT = 83,
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
    size_t functions;   /* the same */
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
        if (op == OP_FUNCTION && out->functions == 0) out->functions = at;
        if (op == OP_VARIABLE && length >= 4 && words[at + 3] == CLASS_PUSH_CONSTANT) {
            if (out->variable != 0) return false;
            out->variable = words[at + 2];
        }
        at += length;
    }
    return out->variable != 0 && out->decorations != 0;
}

static smg_status look(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, places *out) {
    if (find_places(desc->words, desc->word_count, out)) return SMG_OK;
    return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s': its words have not one block of push constants", desc->name);
}

smg_status smg_vk_words_from_memory(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, uint32_t **out_words) {
    places where;
    *out_words = NULL;
    SMG_TRY(look(dev, desc, &where));
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

/* What an id of the module is to its literals. */
typedef struct meaning {
    uint32_t value; /* of a constant of one word */
    int literal;    /* that it points to, from 1; 0: to none */
} meaning;

/* Every id is below the module's bound, in front of its first use. false: one is not. */
static bool find_meanings(const smg_vk_pipeline_desc *desc, uint32_t variable, meaning *ids, uint32_t bound) {
    const uint32_t *words = desc->words;
    int first = (desc->push_bytes - 4 * desc->literal_count) / 8; /* addresses are in front */
    for (size_t at = HEADER_WORDS; at < desc->word_count; at += words[at] >> 16) {
        uint32_t op = words[at] & 0xffffu, length = words[at] >> 16;
        bool constant = op == OP_CONSTANT && length == 4;
        bool pointer = op == OP_ACCESS_CHAIN && length == 5 && words[at + 3] == variable;
        if (op == OP_LOAD && (length < 4 || words[at + 3] >= bound)) return false;
        if (!constant && !pointer) continue;
        if (words[at + 2] >= bound || (pointer && words[at + 4] >= bound)) return false;
        if (constant) ids[words[at + 2]].value = words[at + 3];
        if (!pointer) continue;
        int64_t literal = (int64_t)ids[words[at + 4]].value - first;
        if (literal >= 0 && literal < desc->literal_count) ids[words[at + 2]].literal = (int)literal + 1;
    }
    return true;
}

/* Copies the words with loads of literals as copies of the ids from `bound` on, which are constants of one type: that
 * of the first such load. */
static size_t put_literals(const smg_vk_pipeline_desc *desc, const meaning *ids, size_t functions, uint32_t *out) {
    const uint32_t *words = desc->words;
    uint32_t bound = words[3], type = 0;
    size_t made = functions;
    for (size_t at = functions; type == 0 && at < desc->word_count; at += words[at] >> 16)
        if ((words[at] & 0xffffu) == OP_LOAD && ids[words[at + 3]].literal > 0) type = words[at + 1];
    memcpy(out, words, functions * sizeof *out);
    for (int i = 0; type != 0 && i < desc->literal_count; i++) {
        const uint32_t constant[4] = {4u << 16 | OP_CONSTANT, type, bound + (uint32_t)i, (uint32_t)desc->literals[i]};
        memcpy(out + made, constant, sizeof constant);
        made += SMG_COUNT_OF(constant);
    }
    out[3] = bound + (uint32_t)desc->literal_count;
    for (size_t at = functions, length; at < desc->word_count; at += length, made += length) {
        length = words[at] >> 16;
        memcpy(out + made, words + at, length * sizeof *out);
        bool load = (words[at] & 0xffffu) == OP_LOAD && length == 4 && words[at + 1] == type;
        if (!load || ids[words[at + 3]].literal == 0) continue;
        out[made] = 4u << 16 | OP_COPY_OBJECT;
        out[made + 3] = bound + (uint32_t)ids[words[at + 3]].literal - 1;
    }
    return made;
}

smg_status smg_vk_words_with_literals(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, uint32_t **out_words,
                                      size_t *out_count) {
    places where;
    *out_words = NULL;
    SMG_TRY(look(dev, desc, &where));
    size_t room = desc->word_count + SMG_VK_LITERAL_WORDS(desc), bound = desc->words[3];
    bool sound = where.functions != 0 && bound > where.variable && bound <= MOST_IDS;
    meaning *ids = sound ? smg_alloc(dev->ctx, bound, sizeof *ids) : NULL;
    if (sound && !ids) return SMG_MEMORY;
    sound = sound && find_meanings(desc, where.variable, ids, (uint32_t)bound);
    uint32_t *words = sound ? smg_alloc(dev->ctx, room, sizeof *words) : NULL;
    if (words) *out_count = put_literals(desc, ids, where.functions, words);
    smg_free(dev->ctx, ids, bound * sizeof *ids);
    if (!sound)
        return smg_fail(dev->ctx, SMG_INVALID, "kernel '%s': its words name ids that there are not", desc->name);
    *out_words = words;
    return words ? SMG_OK : SMG_MEMORY;
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
