/* JSON with types: a thin layer over yyjson that says which file and which key is wrong.
 *
 * yyjson does the reading (iteratively, so depth is no danger); here are the memory hook, the rule
 * that the last of two equal keys wins (as in Python, which wrote these files), and getters whose
 * failures are sentences for the person who has the file.
 */
#include "import/import.h"

#include <yyjson.h>

struct smg_json {
    smg_context *ctx;
    yyjson_doc *doc;
    char *label;
    size_t label_bytes;
};

/* ---- memory: yyjson frees without a size, so each block remembers its own ------------------- */

#define BLOCK_HEAD 16 /* keeps the 16-byte alignment of the hook's blocks */

static void *hook_malloc(void *user, size_t size) {
    if (size > PTRDIFF_MAX - BLOCK_HEAD) return NULL;
    size_t total = size + BLOCK_HEAD;
    uint8_t *block = smg_alloc(user, total, 1);
    if (block == NULL) return NULL;
    memcpy(block, &total, sizeof(total));
    return block + BLOCK_HEAD;
}

static void *hook_realloc(void *user, void *pointer, size_t old_size, size_t size) {
    (void)old_size;
    if (size > PTRDIFF_MAX - BLOCK_HEAD) return NULL;
    uint8_t *block = (uint8_t *)pointer - BLOCK_HEAD;
    size_t old_total = 0;
    memcpy(&old_total, block, sizeof(old_total));
    size_t total = size + BLOCK_HEAD;
    block = smg_realloc(user, block, old_total, total);
    if (block == NULL) return NULL;
    memcpy(block, &total, sizeof(total));
    return block + BLOCK_HEAD;
}

static void hook_free(void *user, void *pointer) {
    if (pointer == NULL) return;
    uint8_t *block = (uint8_t *)pointer - BLOCK_HEAD;
    size_t total = 0;
    memcpy(&total, block, sizeof(total));
    smg_free(user, block, total);
}

/* ---- documents ------------------------------------------------------------------------------ */

smg_status smg_json_parse(smg_context *ctx, const char *label, const char *text, size_t length, smg_json **out_json) {
    *out_json = NULL;
    if (length == 0) return smg_fail(ctx, SMG_FORMAT, "'%s' is empty; JSON was expected", label);
    smg_json *json = smg_alloc(ctx, 1, sizeof(*json));
    if (json == NULL) return SMG_MEMORY;
    json->ctx = ctx;
    json->label_bytes = strlen(label) + 1;
    json->label = smg_alloc(ctx, json->label_bytes, 1);
    if (json->label == NULL) {
        smg_json_close(json);
        return SMG_MEMORY;
    }
    memcpy(json->label, label, json->label_bytes);
    yyjson_alc hook = {hook_malloc, hook_realloc, hook_free, ctx};
    yyjson_read_err error;
    /* Without the in-situ flag yyjson copies the text and does not write to it. */
    union {
        const char *in;
        char *out;
    } source = {text};
    json->doc = yyjson_read_opts(source.out, length, YYJSON_READ_NOFLAG, &hook, &error);
    if (json->doc != NULL) {
        *out_json = json;
        return SMG_OK;
    }
    smg_json_close(json);
    if (error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) {
        return smg_fail(ctx, SMG_MEMORY, "out of memory while reading '%s'", label);
    }
    return smg_fail(ctx, SMG_FORMAT, "'%s' is not JSON: %s at byte %zu of %zu", label, error.msg, error.pos, length);
}

smg_status smg_json_open(smg_context *ctx, const char *path, smg_json **out_json) {
    *out_json = NULL;
    char *text = NULL;
    size_t length = 0;
    SMG_TRY(smg_file_read(ctx, path, &text, &length));
    smg_status status = smg_json_parse(ctx, path, text, length, out_json);
    smg_free(ctx, text, length + 1);
    return status;
}

void smg_json_close(smg_json *json) {
    if (json == NULL) return;
    smg_context *ctx = json->ctx;
    yyjson_doc_free(json->doc);
    if (json->label != NULL) smg_free(ctx, json->label, json->label_bytes);
    smg_free(ctx, json, sizeof(*json));
}

const char *smg_json_label(const smg_json *json) {
    return json != NULL ? json->label : "";
}

/* ---- places --------------------------------------------------------------------------------- */

/* yyjson's readers take non-const values and do not write to them. */
static yyjson_val *node_of(const void *node) {
    union {
        const void *in;
        yyjson_val *out;
    } cast = {node};
    return cast.out;
}

static yyjson_val *value_of(smg_json_at at) {
    return node_of(at.node);
}

static smg_json_at place(const smg_json *json, const void *node) {
    return (smg_json_at){json, node};
}

smg_json_at smg_json_root(const smg_json *json) {
    return place(json, json != NULL ? yyjson_doc_get_root(json->doc) : NULL);
}

smg_json_at smg_json_get(smg_json_at at, const char *key) {
    yyjson_val *object = value_of(at);
    yyjson_val *found = NULL;
    size_t length = strlen(key);
    if (yyjson_is_obj(object)) {
        yyjson_obj_iter iter = yyjson_obj_iter_with(object);
        for (yyjson_val *k = yyjson_obj_iter_next(&iter); k != NULL; k = yyjson_obj_iter_next(&iter)) {
            if (yyjson_equals_strn(k, key, length)) found = yyjson_obj_iter_get_val(k);
        }
    }
    return place(at.json, found);
}

bool smg_json_exists(smg_json_at at) {
    return at.node != NULL && !yyjson_is_null(value_of(at));
}

bool smg_json_is_object(smg_json_at at) {
    return yyjson_is_obj(value_of(at));
}

bool smg_json_is_array(smg_json_at at) {
    return yyjson_is_arr(value_of(at));
}

size_t smg_json_count(smg_json_at at) {
    return yyjson_is_obj(value_of(at)) ? yyjson_obj_size(value_of(at)) : yyjson_arr_size(value_of(at));
}

smg_json_iter smg_json_begin(smg_json_at at) {
    smg_json_iter iter = {.value = place(at.json, NULL)};
    iter.in_object = yyjson_is_obj(value_of(at));
    iter.left = smg_json_count(at);
    if (iter.left != 0) iter.next = unsafe_yyjson_get_first(value_of(at));
    return iter;
}

bool smg_json_next(smg_json_iter *iter) {
    if (iter->left == 0) return false;
    iter->left--;
    yyjson_val *value = node_of(iter->next);
    if (iter->in_object) {
        iter->key = yyjson_get_str(value);
        iter->key_length = yyjson_get_len(value);
        value = yyjson_obj_iter_get_val(value);
    }
    iter->value = place(iter->value.json, value);
    /* Behind the last value lies nothing: do not even compute its address. */
    iter->next = iter->left != 0 ? unsafe_yyjson_get_next(value) : NULL;
    return true;
}

/* ---- typed values --------------------------------------------------------------------------- */

bool smg_json_as_int(smg_json_at at, int64_t *out_value) {
    yyjson_val *value = value_of(at);
    if (yyjson_is_sint(value)) {
        *out_value = yyjson_get_sint(value);
        return true;
    }
    if (yyjson_is_uint(value)) {
        uint64_t number = yyjson_get_uint(value);
        if (number > INT64_MAX) return false;
        *out_value = (int64_t)number;
        return true;
    }
    if (!yyjson_is_real(value)) return false;
    double real = yyjson_get_real(value);
    if (!(real >= -0x1p63 && real < 0x1p63)) return false;
    int64_t whole = (int64_t)real;
    if ((double)whole < real || (double)whole > real) return false;
    *out_value = whole;
    return true;
}

bool smg_json_as_double(smg_json_at at, double *out_value) {
    if (!yyjson_is_num(value_of(at))) return false;
    *out_value = yyjson_get_num(value_of(at));
    return true;
}

bool smg_json_as_bool(smg_json_at at, bool *out_value) {
    if (!yyjson_is_bool(value_of(at))) return false;
    *out_value = yyjson_get_bool(value_of(at));
    return true;
}

bool smg_json_as_text(smg_json_at at, const char **out_text, size_t *out_length) {
    if (!yyjson_is_str(value_of(at))) return false;
    *out_text = yyjson_get_str(value_of(at));
    if (out_length != NULL) *out_length = yyjson_get_len(value_of(at));
    return true;
}

/* ---- typed members -------------------------------------------------------------------------- */

static smg_status fail_missing(smg_json_at at, const char *key) {
    if (at.json == NULL) return SMG_INVALID;
    return smg_fail(at.json->ctx, SMG_FORMAT, "'%s' has no key \"%s\", which is needed", at.json->label, key);
}

static smg_status fail_type(smg_json_at at, const char *key, const char *expected) {
    return smg_fail(at.json->ctx, SMG_FORMAT, "'%s': \"%s\" is of type %s where %s was expected", at.json->label, key,
                    yyjson_get_type_desc(value_of(smg_json_get(at, key))), expected);
}

smg_status smg_json_need_int(smg_json_at at, const char *key, int64_t low, int64_t high, int64_t *out_value) {
    smg_json_at member = smg_json_get(at, key);
    if (!smg_json_exists(member)) return fail_missing(at, key);
    int64_t value = 0;
    double number = 0;
    if (smg_json_as_int(member, &value)) {
        if (value >= low && value <= high) {
            *out_value = value;
            return SMG_OK;
        }
        return smg_fail(at.json->ctx, SMG_FORMAT, "'%s': \"%s\" is %lld, not in [%lld, %lld]", at.json->label, key,
                        (long long)value, (long long)low, (long long)high);
    }
    if (!smg_json_as_double(member, &number)) return fail_type(at, key, "an integer");
    return smg_fail(at.json->ctx, SMG_FORMAT, "'%s': \"%s\" is %.17g where an integer in [%lld, %lld] was expected",
                    at.json->label, key, number, (long long)low, (long long)high);
}

smg_status smg_json_get_int(smg_json_at at, const char *key, int64_t fallback, int64_t low, int64_t high,
                            int64_t *out_value) {
    *out_value = fallback;
    if (!smg_json_exists(smg_json_get(at, key))) return SMG_OK;
    return smg_json_need_int(at, key, low, high, out_value);
}

smg_status smg_json_need_double(smg_json_at at, const char *key, double *out_value) {
    smg_json_at member = smg_json_get(at, key);
    if (!smg_json_exists(member)) return fail_missing(at, key);
    return smg_json_as_double(member, out_value) ? SMG_OK : fail_type(at, key, "a number");
}

smg_status smg_json_get_double(smg_json_at at, const char *key, double fallback, double *out_value) {
    *out_value = fallback;
    if (!smg_json_exists(smg_json_get(at, key))) return SMG_OK;
    return smg_json_need_double(at, key, out_value);
}

smg_status smg_json_get_bool(smg_json_at at, const char *key, bool fallback, bool *out_value) {
    *out_value = fallback;
    smg_json_at member = smg_json_get(at, key);
    if (!smg_json_exists(member)) return SMG_OK;
    return smg_json_as_bool(member, out_value) ? SMG_OK : fail_type(at, key, "true or false");
}

smg_status smg_json_need_text(smg_json_at at, const char *key, const char **out_value) {
    smg_json_at member = smg_json_get(at, key);
    if (!smg_json_exists(member)) return fail_missing(at, key);
    const char *text = NULL;
    size_t length = 0;
    if (!smg_json_as_text(member, &text, &length)) return fail_type(at, key, "a string");
    if (strlen(text) != length) {
        return smg_fail(at.json->ctx, SMG_FORMAT, "'%s': \"%s\" holds a NUL character", at.json->label, key);
    }
    *out_value = text;
    return SMG_OK;
}

smg_status smg_json_get_text(smg_json_at at, const char *key, const char *fallback, const char **out_value) {
    *out_value = fallback;
    if (!smg_json_exists(smg_json_get(at, key))) return SMG_OK;
    return smg_json_need_text(at, key, out_value);
}
