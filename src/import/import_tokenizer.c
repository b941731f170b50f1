/* Opening a WordPiece tokenizer: tokenizer.json where there is one, else vocab.txt.
 *
 * tokenizer.json states everything (vocabulary, normaliser, special tokens) and is checked to say
 * only what the encoder does; a step it does not know is UNSUPPORTED, never skipped. vocab.txt has
 * one token per line and takes BERT's defaults. tokenizer_config.json may change the normaliser in
 * both cases, and together with the sentence model and the network it bounds the length.
 */
#include "import/tokenizer.h"

#define MAX_WORD_CHARS 4096
#define DEFAULT_MAX_LENGTH 512

/* What the files say, before it becomes a tokenizer. */
typedef struct tokenizer_files {
    smg_tokenizer *t;
    smg_json *json, *config, *special; /* NULL: absent */
    const char *vocab_label, *vocab;
    size_t vocab_size;
    const char *unknown, *begin, *end, *pad, *mask;
} tokenizer_files;

#define FAIL(f, code, ...) smg_fail((f)->t->ctx, (code), __VA_ARGS__)

static bool find_id(const smg_map *map, const char *token, size_t length, int32_t *out_id) {
    void *found = NULL;
    if (!smg_map_get(map, token, length, &found)) return false;
    *out_id = (int32_t)((uintptr_t)found - 1);
    return true;
}

/* ---- vocabulary ----------------------------------------------------------------------------- */

static smg_status add_piece(smg_tokenizer *t, const char *token, size_t length, int64_t id) {
    void *value = (void *)(uintptr_t)(id + 1);
    if (id >= t->vocab_size) t->vocab_size = (int)id + 1;
    SMG_TRY(smg_map_set(t->first, token, length, value));
    if (length > t->first_bytes) t->first_bytes = length;
    size_t prefix = strlen(t->prefix);
    if (length <= prefix || memcmp(token, t->prefix, prefix) != 0) return SMG_OK;
    SMG_TRY(smg_map_set(t->rest, token + prefix, length - prefix, value));
    if (length - prefix > t->rest_bytes) t->rest_bytes = length - prefix;
    return SMG_OK;
}

static smg_status read_vocab_text(const tokenizer_files *f) {
    const char *at = f->vocab;
    const char *end = at + f->vocab_size;
    for (int64_t id = 0; at < end; id++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop != NULL ? stop + 1 : end;
        size_t length = (size_t)((stop != NULL ? stop : end) - at);
        if (length > 0 && at[length - 1] == '\r') length--;
        if (id >= INT32_MAX - 1) {
            return FAIL(f, SMG_FORMAT, "'%s' has more than 2^31 lines", f->vocab_label);
        }
        SMG_TRY(add_piece(f->t, at, length, id));
        at = next;
    }
    return SMG_OK;
}

static smg_status read_vocab_json(const tokenizer_files *f, smg_json_at vocab) {
    if (!smg_json_is_object(vocab)) {
        return FAIL(f, SMG_FORMAT, "'%s' has no \"vocab\" object in its model", smg_json_label(f->json));
    }
    for (smg_json_iter i = smg_json_begin(vocab); smg_json_next(&i);) {
        int64_t id = -1;
        if (!smg_json_as_int(i.value, &id) || id < 0 || id >= INT32_MAX - 1) {
            return FAIL(f, SMG_FORMAT, "'%s': token '%s' has no usable id", smg_json_label(f->json), i.key);
        }
        SMG_TRY(add_piece(f->t, i.key, i.key_length, id));
    }
    return SMG_OK;
}

/* ---- tokenizer.json ------------------------------------------------------------------------- */

static bool has_type(smg_json_at at, const char *type) {
    const char *text = NULL;
    return smg_json_as_text(smg_json_get(at, "type"), &text, NULL) && strcmp(text, type) == 0;
}

static smg_status fail_step(const tokenizer_files *f, const char *step, smg_json_at at) {
    const char *text = "of no type";
    smg_json_as_text(smg_json_get(at, "type"), &text, NULL);
    return FAIL(f, SMG_UNSUPPORTED, "'%s': the %s '%s' is not supported, only BERT's WordPiece is",
                smg_json_label(f->json), step, text);
}

static smg_status read_normaliser(const tokenizer_files *f, smg_json_at at) {
    smg_tokenizer *t = f->t;
    t->clean = t->cjk = t->strip = t->lower = false;
    if (!smg_json_exists(at)) return SMG_OK;
    if (!has_type(at, "BertNormalizer")) return fail_step(f, "normalizer", at);
    SMG_TRY(smg_json_get_bool(at, "clean_text", true, &t->clean));
    SMG_TRY(smg_json_get_bool(at, "handle_chinese_chars", true, &t->cjk));
    SMG_TRY(smg_json_get_bool(at, "lowercase", true, &t->lower));
    return smg_json_get_bool(at, "strip_accents", t->lower, &t->strip);
}

/* "single" must be: one special token, the text, one special token. */
static smg_status read_template(tokenizer_files *f, smg_json_at at) {
    smg_json_at single = smg_json_get(at, "single");
    const char *special[2] = {NULL, NULL};
    int place = 0;
    bool text = false;
    for (smg_json_iter i = smg_json_begin(single); smg_json_next(&i); place++) {
        if (place == 1) {
            text = smg_json_is_object(smg_json_get(i.value, "Sequence"));
        } else if (place <= 2) {
            smg_json_as_text(smg_json_get(smg_json_get(i.value, "SpecialToken"), "id"), &special[place / 2], NULL);
        }
    }
    if (place != 3 || !text || special[0] == NULL || special[1] == NULL) {
        return FAIL(f, SMG_UNSUPPORTED, "'%s': the template of the post-processor is not [CLS] text [SEP]",
                    smg_json_label(f->json));
    }
    f->begin = special[0];
    f->end = special[1];
    return SMG_OK;
}

static smg_status read_post_processor(tokenizer_files *f, smg_json_at at) {
    f->t->specials = smg_json_exists(at);
    if (!f->t->specials) return SMG_OK;
    if (has_type(at, "TemplateProcessing")) return read_template(f, at);
    if (!has_type(at, "BertProcessing")) return fail_step(f, "post-processor", at);
    const char **names[2] = {&f->begin, &f->end};
    for (int i = 0; i < 2; i++) {
        smg_json_iter pair = smg_json_begin(smg_json_get(at, i == 0 ? "cls" : "sep"));
        if (!smg_json_next(&pair) || !smg_json_as_text(pair.value, names[i], NULL)) {
            return FAIL(f, SMG_FORMAT, "'%s': the post-processor names no special tokens", smg_json_label(f->json));
        }
    }
    return SMG_OK;
}

static smg_status add_added(smg_tokenizer *t, const char *text, size_t length, int64_t id) {
    smg_added_token *token = SMG_ARRAY_PUSH(t->arena, &t->added);
    if (token == NULL) return SMG_MEMORY;
    token->text = smg_arena_string_n(t->arena, text, length);
    if (token->text == NULL) return SMG_MEMORY;
    token->length = length;
    token->id = (int32_t)id;
    t->added_start[(unsigned char)text[0]] = true;
    if (id >= t->vocab_size) t->vocab_size = (int)id + 1;
    return SMG_OK;
}

/* lstrip and rstrip change nothing here: words never hold the spaces around a token. */
static smg_status read_added(const tokenizer_files *f, smg_json_at list) {
    const char *label = smg_json_label(f->json);
    for (smg_json_iter i = smg_json_begin(list); smg_json_next(&i);) {
        const char *text = NULL;
        size_t length = 0;
        int64_t id = 0;
        bool whole = false;
        bool late = false;
        if (!smg_json_as_text(smg_json_get(i.value, "content"), &text, &length) || length == 0) {
            return FAIL(f, SMG_FORMAT, "'%s': an added token has no content", label);
        }
        SMG_TRY(smg_json_need_int(i.value, "id", 0, INT32_MAX - 2, &id));
        SMG_TRY(smg_json_get_bool(i.value, "single_word", false, &whole));
        SMG_TRY(smg_json_get_bool(i.value, "normalized", false, &late));
        if (whole || late) {
            return FAIL(f, SMG_UNSUPPORTED, "'%s': the added token '%s' is %s, not supported", label, text,
                        whole ? "single_word" : "normalized");
        }
        SMG_TRY(add_added(f->t, text, length, id));
    }
    return SMG_OK;
}

static smg_status read_tokenizer_json(tokenizer_files *f) {
    smg_tokenizer *t = f->t;
    smg_json_at root = smg_json_root(f->json);
    smg_json_at model = smg_json_get(root, "model");
    /* Old files leave the type out; the shape of the vocabulary tells. */
    bool typed = smg_json_exists(smg_json_get(model, "type"));
    if (!smg_json_is_object(model) || (typed && !has_type(model, "WordPiece"))) {
        return fail_step(f, "model", model);
    }
    int64_t chars = 0;
    SMG_TRY(smg_json_get_int(model, "max_input_chars_per_word", 100, 1, MAX_WORD_CHARS, &chars));
    t->max_chars = (int)chars;
    const char *prefix = NULL;
    SMG_TRY(smg_json_get_text(model, "continuing_subword_prefix", "##", &prefix));
    t->prefix = smg_arena_string(t->arena, prefix);
    if (t->prefix == NULL) return SMG_MEMORY;
    SMG_TRY(smg_json_get_text(model, "unk_token", "[UNK]", &f->unknown));
    SMG_TRY(read_normaliser(f, smg_json_get(root, "normalizer")));
    smg_json_at splitter = smg_json_get(root, "pre_tokenizer");
    if (!has_type(splitter, "BertPreTokenizer")) return fail_step(f, "pre-tokenizer", splitter);
    SMG_TRY(read_post_processor(f, smg_json_get(root, "post_processor")));
    SMG_TRY(read_vocab_json(f, smg_json_get(model, "vocab")));
    return read_added(f, smg_json_get(root, "added_tokens"));
}

/* ---- special tokens and the configuration beside -------------------------------------------- */

/* "cls_token": "[CLS]" or {"content": "[CLS]", ...}. */
static void read_name(smg_json *json, const char *key, const char **name) {
    smg_json_at at = smg_json_get(smg_json_root(json), key);
    if (smg_json_is_object(at)) at = smg_json_get(at, "content");
    smg_json_as_text(at, name, NULL);
}

static void read_names(tokenizer_files *f) {
    f->unknown = "[UNK]";
    f->begin = "[CLS]";
    f->end = "[SEP]";
    f->pad = "[PAD]";
    f->mask = "[MASK]";
    smg_json *sources[2] = {f->special, f->config};
    for (int i = 0; i < 2; i++) {
        read_name(sources[i], "unk_token", &f->unknown);
        read_name(sources[i], "cls_token", &f->begin);
        read_name(sources[i], "sep_token", &f->end);
        read_name(sources[i], "pad_token", &f->pad);
        read_name(sources[i], "mask_token", &f->mask);
    }
}

static smg_status read_config(const tokenizer_files *f) {
    smg_tokenizer *t = f->t;
    smg_json_at root = smg_json_root(f->config);
    bool follows = t->strip == t->lower; /* no strip_accents of its own: goes with the case */
    SMG_TRY(smg_json_get_bool(root, "do_lower_case", t->lower, &t->lower));
    SMG_TRY(smg_json_get_bool(root, "tokenize_chinese_chars", t->cjk, &t->cjk));
    return smg_json_get_bool(root, "strip_accents", follows ? t->lower : t->strip, &t->strip);
}

static smg_status need_id(const tokenizer_files *f, const char *token, int32_t *out_id) {
    if (find_id(f->t->first, token, strlen(token), out_id)) return SMG_OK;
    for (int i = 0; i < f->t->added.count; i++) {
        const smg_added_token *added = &f->t->added.items[i];
        if (strcmp(added->text, token) == 0) {
            *out_id = added->id;
            return SMG_OK;
        }
    }
    return FAIL(f, SMG_FORMAT, "'%s' lacks the special token '%s' among its %d",
                f->json != NULL ? smg_json_label(f->json) : f->vocab_label, token, f->t->vocab_size);
}

static smg_status resolve(tokenizer_files *f) {
    smg_tokenizer *t = f->t;
    SMG_TRY(need_id(f, f->unknown, &t->unknown));
    if (t->specials) {
        SMG_TRY(need_id(f, f->begin, &t->begin));
        SMG_TRY(need_id(f, f->end, &t->end));
    }
    if (!find_id(t->first, f->pad, strlen(f->pad), &t->pad)) t->pad = 0;
    if (f->json != NULL) return SMG_OK;
    const char *names[] = {f->unknown, f->begin, f->end, f->pad, f->mask};
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        int32_t id = 0;
        size_t length = strlen(names[i]);
        if (length == 0 || !find_id(t->first, names[i], length, &id)) continue;
        SMG_TRY(add_added(t, names[i], length, id));
    }
    return SMG_OK;
}

static smg_status read_limits(const tokenizer_files *f, const smg_import_dir *dir) {
    smg_tokenizer *t = f->t;
    smg_json_at config = smg_json_root(dir != NULL ? dir->config : NULL);
    int64_t positions = 0;
    int64_t vocabulary = 0;
    double own = 0; /* written as 1e30 for "no limit" */
    SMG_TRY(smg_json_get_int(config, "max_position_embeddings", 0, 1, INT32_MAX, &positions));
    SMG_TRY(smg_json_get_int(config, "vocab_size", 0, 1, INT32_MAX, &vocabulary));
    SMG_TRY(smg_json_get_double(smg_json_root(f->config), "model_max_length", 0, &own));
    int64_t length = dir != NULL ? dir->max_seq_length : 0;
    if (length == 0 && own >= 2 && own <= INT32_MAX) length = (int64_t)own;
    if (positions != 0 && (length == 0 || length > positions)) length = positions;
    if (length == 0) length = DEFAULT_MAX_LENGTH;
    if (length < 2) {
        return FAIL(f, SMG_FORMAT, "the model in '%s' allows only %lld token; 2 are needed",
                    dir != NULL ? dir->path : "", (long long)length);
    }
    t->max_length = (int)length;
    if (dir != NULL && dir->sentence_lower_case) t->lower = true;
    if (vocabulary == 0 || t->vocab_size <= vocabulary) return SMG_OK;
    return FAIL(f, SMG_FORMAT, "the tokenizer in '%s' has ids up to %d, the model only %lld tokens",
                dir != NULL ? dir->path : "", t->vocab_size - 1, (long long)vocabulary);
}

/* ---- opening -------------------------------------------------------------------------------- */

static smg_status build(tokenizer_files *f, const smg_import_dir *dir) {
    smg_tokenizer *t = f->t;
    SMG_TRY(smg_map_create(t->arena, &t->first));
    SMG_TRY(smg_map_create(t->arena, &t->rest));
    t->clean = t->cjk = t->strip = t->lower = t->specials = true;
    t->max_chars = 100;
    t->prefix = "##";
    read_names(f);
    SMG_TRY(f->json != NULL ? read_tokenizer_json(f) : read_vocab_text(f));
    SMG_TRY(read_config(f));
    SMG_TRY(resolve(f));
    SMG_TRY(read_limits(f, dir));
    size_t chars = (size_t)t->max_chars + 1;
    t->word.bytes = SMG_ARENA_ARRAY(t->arena, char, 4 * chars);
    t->pieces = SMG_ARENA_ARRAY(t->arena, int32_t, chars);
    t->marks = SMG_ARENA_ARRAY(t->arena, int32_t, chars);
    return t->word.bytes != NULL && t->pieces != NULL && t->marks != NULL ? SMG_OK : SMG_MEMORY;
}

static smg_status create(smg_context *ctx, smg_tokenizer **out_tokenizer) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_tokenizer *t = SMG_ARENA_NEW(arena, smg_tokenizer);
    if (t == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    t->ctx = ctx;
    t->arena = arena;
    *out_tokenizer = t;
    return SMG_OK;
}

/* Takes the tokenizer over: it goes out, or it is closed. */
static smg_status finish(tokenizer_files *f, smg_status status, smg_tokenizer **out_tokenizer) {
    smg_json_close(f->json);
    smg_json_close(f->config);
    smg_json_close(f->special);
    if (status == SMG_OK) {
        *out_tokenizer = f->t;
    } else {
        smg_tokenizer_close(f->t);
    }
    return status;
}

static smg_status open_json(smg_context *ctx, const char *path, smg_json **out_json) {
    return path != NULL ? smg_json_open(ctx, path, out_json) : SMG_OK;
}

smg_status smg_tokenizer_open(smg_context *ctx, const smg_import_dir *dir, smg_tokenizer **out_tokenizer) {
    *out_tokenizer = NULL;
    if (dir->tokenizer_json_path == NULL && dir->vocab_path == NULL) {
        return smg_fail(ctx, SMG_NOT_FOUND, "the model folder '%s' has neither tokenizer.json nor vocab.txt",
                        dir->path);
    }
    tokenizer_files f = {.vocab_label = dir->vocab_path};
    char *vocab = NULL;
    SMG_TRY(create(ctx, &f.t));
    smg_status status = open_json(ctx, dir->tokenizer_json_path, &f.json);
    if (status == SMG_OK) status = open_json(ctx, dir->tokenizer_config_path, &f.config);
    if (status == SMG_OK) status = open_json(ctx, dir->special_tokens_path, &f.special);
    if (status == SMG_OK && f.json == NULL) {
        status = smg_file_read(ctx, dir->vocab_path, &vocab, &f.vocab_size);
        f.vocab = vocab;
    }
    if (status == SMG_OK) status = build(&f, dir);
    if (vocab != NULL) smg_free(ctx, vocab, f.vocab_size + 1);
    return finish(&f, status, out_tokenizer);
}

smg_status smg_tokenizer_open_bytes(smg_context *ctx, const char *vocab, size_t vocab_size, const char *tokenizer_json,
                                    size_t json_size, smg_tokenizer **out_tokenizer) {
    *out_tokenizer = NULL;
    if (vocab == NULL && tokenizer_json == NULL) {
        return smg_fail(ctx, SMG_INVALID, "neither a vocabulary nor a tokenizer.json was given");
    }
    tokenizer_files f = {.vocab_label = "vocab.txt", .vocab = vocab, .vocab_size = vocab_size};
    SMG_TRY(create(ctx, &f.t));
    smg_status status = SMG_OK;
    if (tokenizer_json != NULL) {
        status = smg_json_parse(ctx, "tokenizer.json", tokenizer_json, json_size, &f.json);
    }
    if (status == SMG_OK) status = build(&f, NULL);
    return finish(&f, status, out_tokenizer);
}

void smg_tokenizer_close(smg_tokenizer *tokenizer) {
    if (tokenizer != NULL) smg_arena_destroy(tokenizer->arena);
}

/* ---- include/smg/embed.h ------------------------------------------------------------------------------- */

static smg_status load(smg_context *ctx, const char *path, smg_tokenizer **out_tokenizer) {
    smg_import_dir *dir = NULL;
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_tokenizer_load: the path is NULL");
    SMG_TRY(smg_import_open_dir(ctx, path, &dir));
    smg_status status = smg_tokenizer_open(ctx, dir, out_tokenizer);
    smg_import_close_dir(dir);
    return status;
}

smg_status smg_tokenizer_load(smg_context *ctx, const char *dir, smg_tokenizer **out_tokenizer) {
    if (out_tokenizer == NULL) return SMG_INVALID;
    *out_tokenizer = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, load(ctx, dir, out_tokenizer));
}

void smg_tokenizer_unload(smg_tokenizer *tokenizer) {
    smg_tokenizer_close(tokenizer);
}

static smg_status tokens(smg_tokenizer *t, const char *text, size_t length, int32_t *out_ids, int capacity,
                         int *out_count) {
    if (text == NULL || out_ids == NULL || out_count == NULL)
        return smg_fail(t->ctx, SMG_INVALID, "smg_tokenizer_tokens: the text, the ids or their count is NULL");
    return smg_tokenizer_encode(t, text, length, out_ids, capacity, out_count);
}

smg_status smg_tokenizer_tokens(smg_tokenizer *t, const char *text, size_t length, int32_t *out_ids, int capacity,
                                int *out_count) {
    if (t == NULL) return SMG_INVALID;
    smg_context_clear_error(t->ctx);
    return smg_context_told(t->ctx, tokens(t, text, length, out_ids, capacity, out_count));
}
