/* bundle_words.c: SPIR-V in a third of its bytes or less.
 *
 * Words are small numbers mostly, and smaller ones beside the last instruction of the same opcode: the same types, ids
 * a few further on. Each is written as its difference from the word at the same place there, in as many bytes as that
 * takes, and an instruction's length only where it is another one. Reader and writer know the same words at any time;
 * nothing else is known of opcodes.
 */
#include "bundle/bundle.h"

enum {
    SPIRV_HEADER = 5,
    OPCODES = 512 /* that are told apart; those that share a place cost bytes, nothing else */
};

typedef struct walk {
    const uint32_t *words;
    size_t last[OPCODES];  /* where the last instruction of an opcode begins; 0: there was none */
    size_t at, next, like; /* the instruction at hand, the next one, the last of its opcode */
} walk;

static walk start(const uint32_t *words) {
    return (walk){.words = words, .next = SPIRV_HEADER};
}

static size_t last_of(const walk *w, uint32_t opcode) {
    return w->last[opcode % OPCODES];
}

static uint32_t length_of(const walk *w, size_t at) {
    return at > 0 ? w->words[at] >> 16 : 0;
}

/* The instruction whose first word is there. */
static void begin(walk *w, size_t at) {
    uint32_t opcode = w->words[at] & 0xffffu, length = w->words[at] >> 16;
    w->at = at;
    w->next = at + (length > 0 ? length : 1);
    w->like = last_of(w, opcode);
    w->last[opcode % OPCODES] = at;
}

/* The word at the same place; 0: there is none. */
static uint32_t beside(const walk *w, size_t i) {
    size_t place = i - w->at;
    return place < length_of(w, w->like) ? w->words[w->like + place] : 0;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* A number in 7 bits a byte, the lowest first; the last byte has no high bit. */
static void add_short(smg_text *out, uint32_t value) {
    char bytes[5];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (char)(uint8_t)(value | 0x80);
    bytes[count++] = (char)(uint8_t)value;
    smg_text_add_n(out, bytes, count);
}

/* Differences of either sign by their size: 0, -1, 1, -2, .. */
static uint32_t fold(uint32_t difference) {
    return difference << 1 ^ (0 - (difference >> 31));
}

void smg_words_write(const uint32_t *words, size_t count, smg_text *out) {
    walk w = start(words);
    for (size_t i = 0; i < count; i++) {
        if (i < w.next) {
            add_short(out, fold(words[i] - beside(&w, i)));
            continue;
        }
        uint32_t opcode = words[i] & 0xffffu, length = words[i] >> 16;
        bool other = length != length_of(&w, last_of(&w, opcode));
        add_short(out, opcode << 1 | other);
        if (other) add_short(out, length);
        begin(&w, i);
    }
}

/* ---- reading ------------------------------------------------------------------------------------ */

static uint32_t read_short(smg_reader *r) {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        const uint8_t *at = smg_reader_raw(r, 1);
        if (at == NULL) return 0;
        value |= (uint32_t)(*at & 0x7f) << shift;
        if (*at < 0x80) return value;
    }
    r->failed = true;
    return 0;
}

static uint32_t unfold(uint32_t folded) {
    return folded >> 1 ^ (0 - (folded & 1));
}

void smg_words_read(smg_reader *r, uint32_t *out_words, size_t count) {
    walk w = start(out_words);
    for (size_t i = 0; i < count && !r->failed; i++) {
        uint32_t value = read_short(r);
        if (i < w.next) {
            out_words[i] = unfold(value) + beside(&w, i);
            continue;
        }
        uint32_t opcode = value >> 1;
        uint32_t length = (value & 1) != 0 ? read_short(r) : length_of(&w, last_of(&w, opcode));
        if (opcode > 0xffffu || length > 0xffffu) r->failed = true;
        out_words[i] = length << 16 | (opcode & 0xffffu);
        begin(&w, i);
    }
}
