/* Text to token ids: normalise, split into words, cut words into pieces, as BERT does.
 *
 * One pass, character by character: clean -> spaces around CJK -> decompose and drop marks -> lower
 * case -> words -> longest pieces first. Nothing grows with the text: a word past its limit is one
 * unknown token whatever it holds, so neither it nor a run of combining characters is kept beyond
 * that limit. Encoding stops when the ids are full; the text was checked to be UTF-8 before.
 */
#include "import/tokenizer.h"

#include <utf8proc.h>

typedef struct encoder {
    smg_tokenizer *t;
    int32_t *ids;
    int count, limit;
} encoder;

static void emit(encoder *e, int32_t id) {
    if (e->count < e->limit) e->ids[e->count++] = id;
}

/* ---- words to pieces ------------------------------------------------------------------------ */

static bool is_inner_byte(char byte) {
    return ((unsigned char)byte & 0xc0u) == 0x80u;
}

/* The longest piece at `start`; returns its end, or `start` when there is none. */
static size_t longest_piece(const smg_tokenizer *t, size_t start, int32_t *out_id) {
    const smg_word *word = &t->word;
    const smg_map *map = start == 0 ? t->first : t->rest;
    size_t limit = start == 0 ? t->first_bytes : t->rest_bytes;
    size_t end = word->length - start > limit ? start + limit : word->length;
    while (end > start) {
        if (end == word->length || !is_inner_byte(word->bytes[end])) {
            void *found = NULL;
            if (smg_map_get(map, word->bytes + start, end - start, &found)) {
                *out_id = (int32_t)((uintptr_t)found - 1);
                return end;
            }
        }
        end--;
    }
    return start;
}

static void end_word(encoder *e) {
    smg_tokenizer *t = e->t;
    smg_word *word = &t->word;
    if (word->chars == 0) return;
    int count = 0;
    bool known = word->chars <= t->max_chars;
    for (size_t at = 0; known && at < word->length; count++) {
        size_t end = longest_piece(t, at, &t->pieces[count]);
        known = end > at;
        at = end;
    }
    if (known) {
        for (int i = 0; i < count; i++) emit(e, t->pieces[i]);
    } else {
        emit(e, t->unknown);
    }
    word->length = 0;
    word->chars = 0;
}

static void add_to_word(smg_tokenizer *t, int32_t code) {
    smg_word *word = &t->word;
    if (word->chars > t->max_chars) return;
    if (word->chars++ == t->max_chars) return;
    word->length += (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)word->bytes + word->length);
}

static void split(encoder *e, int32_t code) {
    switch (smg_char_class_of(code)) {
    case SMG_CHAR_SPACE: end_word(e); break;
    case SMG_CHAR_PUNCT:
        end_word(e);
        add_to_word(e->t, code);
        end_word(e);
        break;
    default: add_to_word(e->t, code); break;
    }
}

/* ---- characters ----------------------------------------------------------------------------- */

static void lower_case(encoder *e, int32_t code) {
    int32_t codes[2] = {code, 0};
    int count = e->t->lower ? smg_char_lower(code, codes) : 1;
    for (int i = 0; i < count; i++) split(e, codes[i]);
}

static void end_marks(encoder *e) {
    smg_tokenizer *t = e->t;
    for (int i = 0; i < t->mark_count; i++) lower_case(e, t->marks[i]);
    t->mark_count = 0;
}

/* Keeps combining characters in canonical order. They are plain letters to the splitter, so more of
 * them than a word may have make the word unknown in any order: the rest is only passed on. */
static void add_mark(encoder *e, int32_t code, int combining) {
    smg_tokenizer *t = e->t;
    if (t->mark_count > t->max_chars) return;
    int at = t->mark_count++;
    for (; at > 0 && smg_char_combining(t->marks[at - 1]) > combining; at--) {
        t->marks[at] = t->marks[at - 1];
    }
    t->marks[at] = code;
}

static void strip_accents(encoder *e, int32_t code) {
    int32_t codes[SMG_CHAR_DECOMPOSED];
    int count = smg_char_decompose(code, codes);
    for (int i = 0; i < count; i++) {
        bool mark = smg_char_class_of(codes[i]) == SMG_CHAR_MARK;
        int combining = smg_char_combining(codes[i]);
        if (combining == 0) end_marks(e);
        if (mark) continue;
        if (combining == 0) {
            lower_case(e, codes[i]);
        } else {
            add_mark(e, codes[i], combining);
        }
    }
}

static void normalise(encoder *e, int32_t code) {
    if (e->t->strip) {
        strip_accents(e, code);
    } else {
        lower_case(e, code);
    }
}

static void feed(encoder *e, int32_t code) {
    const smg_tokenizer *t = e->t;
    if (t->clean) {
        smg_char_class kind = smg_char_class_of(code);
        if (kind == SMG_CHAR_SPACE && (code >= ' ' || code == '\t' || code == '\n' || code == '\r') && code != 0x85) {
            code = ' ';
        } else if (kind == SMG_CHAR_CONTROL || kind == SMG_CHAR_SPACE || code == 0xfffd) {
            return; /* vertical tab, form feed and next line are spaces, but control comes first */
        }
    }
    bool spaced = t->cjk && smg_char_is_cjk(code);
    if (spaced) normalise(e, ' ');
    normalise(e, code);
    if (spaced) normalise(e, ' ');
}

/* ---- text ----------------------------------------------------------------------------------- */

static smg_status check_utf8(smg_context *ctx, const char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        if ((unsigned char)text[at] < 0x80) {
            at++;
            continue;
        }
        size_t left = length - at < 4 ? length - at : 4;
        utf8proc_int32_t code = 0;
        utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)left, &code);
        if (bytes < 1) {
            return smg_fail(ctx, SMG_FORMAT, "the text is not UTF-8 at byte %zu of %zu (0x%02x)", at, length,
                            (unsigned)(unsigned char)text[at]);
        }
        at += (size_t)bytes;
    }
    return SMG_OK;
}

static const smg_added_token *added_token_at(const smg_tokenizer *t, const char *text, size_t length) {
    if (!t->added_start[(unsigned char)text[0]]) return NULL;
    const smg_added_token *best = NULL;
    for (int i = 0; i < t->added.count; i++) {
        const smg_added_token *token = &t->added.items[i];
        if (token->length > length || (best != NULL && token->length <= best->length)) continue;
        if (memcmp(token->text, text, token->length) == 0) best = token;
    }
    return best;
}

static void encode_text(encoder *e, const char *text, size_t length) {
    for (size_t at = 0; at < length && e->count < e->limit;) {
        const smg_added_token *token = added_token_at(e->t, text + at, length - at);
        if (token != NULL) {
            end_marks(e);
            end_word(e);
            emit(e, token->id);
            at += token->length;
            continue;
        }
        utf8proc_int32_t code = (unsigned char)text[at];
        utf8proc_ssize_t bytes = 1;
        if (code >= 0x80) {
            size_t left = length - at < 4 ? length - at : 4;
            bytes = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)left, &code);
        }
        feed(e, code);
        at += (size_t)bytes;
    }
    end_marks(e);
    end_word(e);
}

smg_status smg_tokenizer_encode(smg_tokenizer *tokenizer, const char *text, size_t length, int32_t *out_ids,
                                int capacity, int *out_count) {
    *out_count = 0;
    if (capacity < 2) {
        return smg_fail(tokenizer->ctx, SMG_INVALID, "room for %d token ids; at least 2 are needed", capacity);
    }
    SMG_TRY(check_utf8(tokenizer->ctx, text, length));
    int limit = capacity < tokenizer->max_length ? capacity : tokenizer->max_length;
    encoder e = {.t = tokenizer, .ids = out_ids, .limit = limit};
    if (tokenizer->specials) {
        emit(&e, tokenizer->begin);
        e.limit = limit - 1;
    }
    tokenizer->word.length = 0;
    tokenizer->word.chars = 0;
    tokenizer->mark_count = 0;
    encode_text(&e, text, length);
    e.limit = limit;
    if (tokenizer->specials) emit(&e, tokenizer->end);
    *out_count = e.count;
    return SMG_OK;
}

int smg_tokenizer_max_length(const smg_tokenizer *tokenizer) {
    return tokenizer->max_length;
}

int smg_tokenizer_vocab_size(const smg_tokenizer *tokenizer) {
    return tokenizer->vocab_size;
}

int32_t smg_tokenizer_pad_id(const smg_tokenizer *tokenizer) {
    return tokenizer->pad;
}
