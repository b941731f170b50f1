/* Internals of the tokenizer: what its opening, its encoding and its Unicode classes share.
 *
 * Only import_tokenizer*.c and import_unicode.c include this.
 */
#ifndef SMG_IMPORT_TOKENIZER_H
#define SMG_IMPORT_TOKENIZER_H

#include "import/import.h"

/* What the reference does with a character. */
typedef enum smg_char_class {
    SMG_CHAR_PLAIN,
    SMG_CHAR_SPACE,
    SMG_CHAR_CONTROL, /* removed by cleaning */
    SMG_CHAR_MARK,    /* removed by accent stripping */
    SMG_CHAR_PUNCT    /* a word of its own */
} smg_char_class;

smg_char_class smg_char_class_of(int32_t code);
bool smg_char_is_cjk(int32_t code); /* gets spaces around it */
/* Canonical combining class, 0 for a starter. */
int smg_char_combining(int32_t code);
/* Canonical decomposition, unordered; out has room for SMG_CHAR_DECOMPOSED codes; returns how many. */
#define SMG_CHAR_DECOMPOSED 8
int smg_char_decompose(int32_t code, int32_t *out);
/* Lower case; 1 or 2 codes. */
int smg_char_lower(int32_t code, int32_t *out);

/* A token found in the raw text before anything else, such as "[MASK]". */
typedef struct smg_added_token {
    const char *text;
    size_t length;
    int32_t id;
} smg_added_token;

/* The word that is being collected. Past max_chars only the count goes on: such a word is unknown. */
typedef struct smg_word {
    char *bytes; /* 4 per character */
    size_t length;
    int chars;
} smg_word;

struct smg_tokenizer {
    smg_context *ctx;
    smg_arena *arena;
    smg_map *first;                 /* pieces that begin a word, to id + 1 */
    smg_map *rest;                  /* pieces that go on, without their prefix, to id + 1 */
    size_t first_bytes, rest_bytes; /* longest key of each */
    const char *prefix;             /* "##" */
    int32_t unknown, begin, end, pad;
    int max_length, vocab_size;
    int max_chars; /* per word */
    bool specials; /* [CLS] and [SEP] are added */
    bool clean, cjk, strip, lower;
    SMG_ARRAY(smg_added_token) added;
    bool added_start[256]; /* bytes that an added token begins with */
    /* Reused by every encode. */
    smg_word word;
    int32_t *pieces; /* of one word */
    int32_t *marks;  /* combining characters that wait for their order */
    int mark_count;
};

#endif
