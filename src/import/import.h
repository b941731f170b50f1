/* import: files other programs wrote, read with suspicion.
 *
 * Takes:    paths (or bytes with a label): safetensors, JSON, model directories, tokenizer files.
 * Gives:    tables of named tensors that point into mapped files, typed JSON access, what a model
 *           directory holds, a WordPiece tokenizer; with array/npy.h, npy files.
 * Promises: no byte is read outside the file whatever the file says; every length, offset and product
 *           is checked before use; a bad file is FORMAT (broken), UNSUPPORTED (sound, but not for
 *           smg) or NOT_FOUND with one sentence naming file, tensor or key, and numbers. Encoding text
 *           allocates nothing and takes time linear in its bytes. On failure *out_ is NULL or zero.
 * Does not: run or compile anything, keep global state, convert weights it was not asked to convert,
 *           go to a network.
 */
#ifndef SMG_IMPORT_H
#define SMG_IMPORT_H

#include "array/npy.h"
#include "base/base.h"
#include "smg/embed.h"

/* ---- safetensors -------------------------------------------------------------------------- */

typedef struct smg_import_tensor {
    const char *name;
    smg_import_dtype dtype;
    int rank;                          /* 0 is a scalar */
    int64_t dims[SMG_IMPORT_MAX_RANK]; /* row-major, each >= 0 */
    int64_t count;                     /* product of dims */
    const uint8_t *data;               /* inside the mapped file: little-endian, any alignment */
    size_t bytes;                      /* count * element size, checked */
    int file;                          /* index of the shard */
} smg_import_tensor;

typedef struct smg_safetensors smg_safetensors;

/* Opens `path_count` >= 1 shards as one table; a name in two shards is FORMAT. */
smg_status smg_safetensors_open(smg_context *ctx, const char *const *paths, int path_count,
                                smg_safetensors **out_table);
/* One file's bytes; `label` stands for the path in sentences. `data` must outlive the table. */
smg_status smg_safetensors_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size,
                                      smg_safetensors **out_table);
void smg_safetensors_close(smg_safetensors *table); /* NULL is fine; unmaps: tensor data dies */

int smg_safetensors_count(const smg_safetensors *table);
/* In the order of the headers; NULL when index is out of range. */
const smg_import_tensor *smg_safetensors_at(const smg_safetensors *table, int index);
/* NULL when absent, nothing recorded: for optional tensors. */
const smg_import_tensor *smg_safetensors_find(const smg_safetensors *table, const char *name);
/* Tells the system that a tensor's pages are not needed any more (it was uploaded). */
void smg_safetensors_drop(const smg_safetensors *table, const smg_import_tensor *tensor);

/* ---- JSON --------------------------------------------------------------------------------- */

typedef struct smg_json smg_json;

/* A place in a document, by value. node == NULL: nothing there (a missing key, a wrong type on the
 * way); every function below takes such a place. */
typedef struct smg_json_at {
    const smg_json *json;
    const void *node;
} smg_json_at;

smg_status smg_json_open(smg_context *ctx, const char *path, smg_json **out_json);
smg_status smg_json_parse(smg_context *ctx, const char *label, const char *text, size_t length, smg_json **out_json);
void smg_json_close(smg_json *json); /* NULL is fine */
const char *smg_json_label(const smg_json *json);

smg_json_at smg_json_root(const smg_json *json);           /* json may be NULL */
smg_json_at smg_json_get(smg_json_at at, const char *key); /* member of an object */
bool smg_json_exists(smg_json_at at);                      /* there, and not null */
bool smg_json_is_object(smg_json_at at);
bool smg_json_is_array(smg_json_at at);
size_t smg_json_count(smg_json_at at); /* of an array or object; else 0 */

/* Walks arrays and objects in file order, linear time:
 *     for (smg_json_iter i = smg_json_begin(at); smg_json_next(&i);) use(i.value, i.key); */
typedef struct smg_json_iter {
    smg_json_at value;
    const char *key;   /* NULL in an array; NUL-terminated, but may hold NUL bytes inside */
    size_t key_length; /* bytes */
    const void *next;
    size_t left;
    bool in_object;
} smg_json_iter;
smg_json_iter smg_json_begin(smg_json_at at);
bool smg_json_next(smg_json_iter *iter);

/* Typed members of the object `at`. `get`: missing or null gives the fallback. `need`: missing or
 * null is FORMAT. A wrong type or a number outside [low, high] is FORMAT in both, naming file, key
 * and limits. Integers may be written 3 or 3.0. Text lives as long as the document. */
smg_status smg_json_get_int(smg_json_at at, const char *key, int64_t fallback, int64_t low, int64_t high,
                            int64_t *out_value);
smg_status smg_json_need_int(smg_json_at at, const char *key, int64_t low, int64_t high, int64_t *out_value);
smg_status smg_json_get_double(smg_json_at at, const char *key, double fallback, double *out_value);
smg_status smg_json_need_double(smg_json_at at, const char *key, double *out_value);
smg_status smg_json_get_bool(smg_json_at at, const char *key, bool fallback, bool *out_value);
smg_status smg_json_get_text(smg_json_at at, const char *key, const char *fallback, const char **out_value);
smg_status smg_json_need_text(smg_json_at at, const char *key, const char **out_value);
/* The value at `at` itself (an array's item); false when it is no integer of int64 range / no text. */
bool smg_json_as_int(smg_json_at at, int64_t *out_value);
bool smg_json_as_double(smg_json_at at, double *out_value);
bool smg_json_as_bool(smg_json_at at, bool *out_value);
bool smg_json_as_text(smg_json_at at, const char **out_text, size_t *out_length);

/* ---- model directories -------------------------------------------------------------------- */

typedef enum smg_import_pooling {
    SMG_IMPORT_POOLING_NONE = 0, /* no sentence-transformers pooling */
    SMG_IMPORT_POOLING_MEAN,
    SMG_IMPORT_POOLING_CLS,
    SMG_IMPORT_POOLING_MAX,
    SMG_IMPORT_POOLING_OTHER /* several at once, or one smg does not know */
} smg_import_pooling;

/* What a directory as the hub has it holds. Plain facts; owned by the struct, read-only for others.
 * A path is NULL where the file is absent. */
typedef struct smg_import_dir {
    smg_context *ctx;
    smg_arena *arena;
    const char *path;         /* as opened: the folder with config.json */
    smg_json *config;         /* config.json, an object; NULL: there is an ONNX file and no config.json */
    const char *model_type;   /* config's "model_type", "" when absent */
    const char *weights_path; /* model.safetensors, or the index of the shards */
    const char *onnx_path;    /* model.onnx, or that of the folder "onnx", where there is no weights_path; else NULL */
    const char *tokenizer_json_path, *tokenizer_config_path, *special_tokens_path, *vocab_path;
    bool is_sentence_model;   /* modules.json is there */
    int64_t max_seq_length;   /* sentence_bert_config.json; 0: not given */
    bool sentence_lower_case; /* its do_lower_case */
    smg_import_pooling pooling;
    bool normalize;             /* a Normalize module: divide by the L2 norm */
    const char *foreign_module; /* first module smg does not know ("...Dense"); NULL: none */
    smg_safetensors *weights;   /* NULL until smg_import_dir_weights */
} smg_import_dir;

/* `path` is the folder with config.json; a folder whose sub-folder "model" has it, or whose
 * modules.json names the transformer's folder, works too. NOT_FOUND without config.json and ONNX file. Weights
 * and tokenizer files may be missing: their own calls say so. */
smg_status smg_import_open_dir(smg_context *ctx, const char *path, smg_import_dir **out_dir);
void smg_import_close_dir(smg_import_dir *dir); /* NULL is fine; closes config and weights */
/* Maps model.safetensors or all shards of the index on the first call. Owned by the dir. */
smg_status smg_import_dir_weights(smg_import_dir *dir, smg_safetensors **out_table);

/* ---- tokenizer ---------------------------------------------------------------------------- */

/* WordPiece as BERT uses it, from tokenizer.json, else vocab.txt + tokenizer_config.json. Another
 * model than WordPiece is UNSUPPORTED, no tokenizer file NOT_FOUND. The dir may be closed after. */
smg_status smg_tokenizer_open(smg_context *ctx, const smg_import_dir *dir, smg_tokenizer **out_tokenizer);
/* From the bytes of a vocab.txt and of a tokenizer.json (either may be NULL with size 0), no folder. */
smg_status smg_tokenizer_open_bytes(smg_context *ctx, const char *vocab, size_t vocab_size, const char *tokenizer_json,
                                    size_t json_size, smg_tokenizer **out_tokenizer);
void smg_tokenizer_close(smg_tokenizer *tokenizer); /* NULL is fine */

/* Ids of [CLS] text [SEP], cut to min(capacity, max length) ids as the reference does (the text is cut,
 * [SEP] stays). Text that is not UTF-8 is FORMAT with the byte offset; capacity < 2 is INVALID. No
 * allocation; linear time. */
smg_status smg_tokenizer_encode(smg_tokenizer *tokenizer, const char *text, size_t length, int32_t *out_ids,
                                int capacity, int *out_count);

#endif
