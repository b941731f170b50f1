/* compile_load.c: a path as a graph with its weights.
 *
 * A directory goes through import/ (what is in the files) to model/ (what it means); this is the place
 * where the two meet: the functions below hand config keys and tensors over, converting weights of
 * types that graphs do not have (f64) to f32. A directory without weights may have an ONNX file. A file is ONNX
 * (onnx/) or graph text. */
#include "compile/compile.h"

typedef struct loader {
    smg_context *ctx;
    smg_source *source;
    smg_safetensors *weights;
    smg_map *converted; /* tensor name -> f32 data */
    bool out_of_memory;
} loader;

static smg_json_at item_of(smg_json_at array, const char *number) {
    smg_json_at none = {0};
    int64_t left = 0;
    for (const char *at = number; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || left > INT32_MAX) return none;
        left = left * 10 + (*at - '0');
    }
    for (smg_json_iter i = smg_json_begin(array); smg_json_next(&i); left--)
        if (left == 0) return i.value;
    return none;
}

/* The place that holds the last part of a key "a.b" or "a.0", and that part. A way that leads nowhere is
 * a missing key; one through a number or a text is a failure. */
static smg_status place_of(const loader *l, const char *key, smg_json_at *out_at, const char **out_last) {
    smg_json_at at = smg_json_root(l->source->dir->config);
    for (const char *dot; (dot = strchr(key, '.')) != NULL; key = dot + 1) {
        char part[64];
        size_t length = (size_t)(dot - key);
        if (length >= sizeof(part)) length = sizeof(part) - 1;
        memcpy(part, key, length);
        part[length] = '\0';
        at = smg_json_get(at, part);
        if (smg_json_exists(at) && !smg_json_is_object(at) && !smg_json_is_array(at)) {
            return smg_fail(l->ctx, SMG_FORMAT, "'%s': \"%s\" is no object or array",
                            smg_json_label(l->source->dir->config), part);
        }
    }
    *out_at = at;
    *out_last = key;
    return SMG_OK;
}

static smg_status get_int(void *user, const char *key, int64_t fallback, int64_t *out_value) {
    smg_json_at at;
    SMG_TRY(place_of(user, key, &at, &key));
    return smg_json_get_int(at, key, fallback, INT64_MIN, INT64_MAX, out_value);
}

static smg_status get_float(void *user, const char *key, double fallback, double *out_value) {
    smg_json_at at;
    SMG_TRY(place_of(user, key, &at, &key));
    return smg_json_get_double(at, key, fallback, out_value);
}

static smg_status get_bool(void *user, const char *key, bool fallback, bool *out_value) {
    smg_json_at at;
    SMG_TRY(place_of(user, key, &at, &key));
    return smg_json_get_bool(at, key, fallback, out_value);
}

static smg_status get_string(void *user, const char *key, const char *fallback, const char **out_value) {
    smg_json_at at;
    size_t length = 0;
    SMG_TRY(place_of(user, key, &at, &key));
    if (!smg_json_is_array(at)) return smg_json_get_text(at, key, fallback, out_value);
    if (!smg_json_as_text(item_of(at, key), out_value, &length)) *out_value = fallback;
    return SMG_OK;
}

/* f32 copy of a tensor in another type, kept so that a second question gets the same memory. */
static const void *converted(loader *l, const smg_import_tensor *tensor) {
    void *known = NULL;
    if (smg_map_get(l->converted, tensor->name, strlen(tensor->name), &known)) return known;
    float *data = SMG_ARENA_ARRAY(l->source->arena, float, (size_t)tensor->count + 1);
    if (data == NULL) return NULL;
    smg_status status = smg_import_to_f32(l->ctx, tensor->dtype, tensor->data, tensor->count, data);
    if (status == SMG_OK) {
        status = smg_map_set(l->converted, tensor->name, strlen(tensor->name), data);
    }
    smg_safetensors_drop(l->weights, tensor);
    return status == SMG_OK ? data : NULL;
}

static bool find_tensor(void *user, const char *name, smg_type *out_type, int *out_rank, int64_t out_dims[SMG_MAX_RANK],
                        const void **out_data) {
    loader *l = user;
    const smg_import_tensor *tensor = smg_safetensors_find(l->weights, name);
    if (tensor == NULL) return false;
    *out_type = SMG_TYPE_F32;
    *out_rank = tensor->rank;
    memcpy(out_dims, tensor->dims, (size_t)tensor->rank * sizeof(*out_dims));
    *out_data = tensor->data;
    if (tensor->dtype == SMG_IMPORT_F16) {
        *out_type = SMG_TYPE_F16;
    } else if (tensor->dtype == SMG_IMPORT_BF16) {
        *out_type = SMG_TYPE_BF16;
    } else if (tensor->dtype != SMG_IMPORT_F32) {
        *out_data = converted(l, tensor);
        l->out_of_memory |= *out_data == NULL;
    }
    return true;
}

static smg_model_pooling pooling_of(const smg_import_dir *dir) {
    switch (dir->pooling) {
    case SMG_IMPORT_POOLING_MEAN: return SMG_MODEL_POOLING_MEAN;
    case SMG_IMPORT_POOLING_CLS: return SMG_MODEL_POOLING_CLS;
    case SMG_IMPORT_POOLING_NONE:
    case SMG_IMPORT_POOLING_MAX:
    case SMG_IMPORT_POOLING_OTHER: break;
    }
    return SMG_MODEL_POOLING_NONE;
}

static smg_status check_embedding(smg_context *ctx, const smg_import_dir *dir) {
    if (dir->foreign_module != NULL) {
        return smg_fail(ctx, SMG_UNSUPPORTED,
                        "'%s': module '%s' is not supported; smg knows Transformer, "
                        "Pooling and Normalize",
                        dir->path, dir->foreign_module);
    }
    if (pooling_of(dir) == SMG_MODEL_POOLING_NONE) {
        return smg_fail(ctx, SMG_UNSUPPORTED,
                        "'%s' has no pooling that smg knows (mean or cls): "
                        "it gives no embedding",
                        dir->path);
    }
    return SMG_OK;
}

static smg_status load_onnx(smg_context *ctx, const char *path, smg_source *source) {
    SMG_TRY(smg_onnx_open(ctx, path, &source->onnx));
    if (smg_onnx_missing_count(source->onnx) > 0) return SMG_OK;
    return smg_onnx_make_graph(source->onnx, &source->graph);
}

/* An encoder's file may pool itself; else it is done as the directory says (compile_embed.c). */
static smg_status load_onnx_dir(smg_context *ctx, const smg_import_dir *dir, bool embedding_only, smg_source *source) {
    SMG_TRY(load_onnx(ctx, dir->onnx_path, source));
    const smg_graph *g = source->graph;
    if (!embedding_only || g == NULL) return SMG_OK;
    for (int i = 0; i < g->outputs.count; i++) {
        if (strcmp(g->outputs.items[i].name, "sentence_embedding") == 0) return SMG_OK;
    }
    return check_embedding(ctx, dir);
}

static smg_status load_dir(smg_context *ctx, const char *path, bool embedding_only, smg_source *source) {
    loader l = {.ctx = ctx, .source = source};
    SMG_TRY(smg_import_open_dir(ctx, path, &source->dir));
    smg_import_dir *dir = source->dir;
    if (dir->onnx_path != NULL) return load_onnx_dir(ctx, dir, embedding_only, source);
    if (embedding_only) SMG_TRY(check_embedding(ctx, dir));
    SMG_TRY(smg_import_dir_weights(dir, &l.weights));
    SMG_TRY(smg_map_create(source->arena, &l.converted));
    const smg_model_source model = {
        .user = &l,
        .get_int = get_int,
        .get_float = get_float,
        .get_bool = get_bool,
        .get_string = get_string,
        .tensor = find_tensor,
        .pooling = dir->foreign_module == NULL ? pooling_of(dir) : SMG_MODEL_POOLING_NONE,
        .normalize = dir->normalize,
        .embedding_only = embedding_only,
    };
    smg_status status = smg_model_build(ctx, &model, &source->graph);
    if (status == SMG_OK && l.out_of_memory) return SMG_MEMORY; /* a weight without its data */
    return status != SMG_OK ? smg_fail_within(ctx, status, "'%s'", dir->path) : SMG_OK;
}

/* Files that are part of something else, so that nobody has to read of byte 0 in a text. */
static smg_status refuse_part(smg_context *ctx, const char *path) {
    static const char *const ends[] = {".safetensors", ".json", ".bin", ".pt", ".gguf"};
    for (size_t i = 0; i < SMG_COUNT_OF(ends); i++) {
        if (!smg_text_ends(path, ends[i])) continue;
        return smg_fail(ctx, SMG_INVALID,
                        "'%s' is no model by itself: a model is a directory with config.json and model.safetensors, "
                        "an ONNX file or graph text",
                        path);
    }
    return SMG_OK;
}

static smg_status load_text(smg_context *ctx, const char *path, smg_source *source) {
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(refuse_part(ctx, path));
    SMG_TRY(smg_file_read(ctx, path, &text, &size));
    smg_status status = smg_graph_parse(ctx, text, size, path, &source->graph);
    smg_free(ctx, text, size + 1);
    return status;
}

/* By its name, or by its first byte: the tag of ONNX's first field, which no text begins with. */
static bool is_onnx(smg_context *ctx, const char *path) {
    smg_mapped_file file = {0};
    if (smg_text_ends(path, ".onnx")) return true;
    if (!smg_file_exists(path) || smg_file_map(ctx, path, &file) != SMG_OK) return false;
    bool tagged = file.size > 0 && file.data[0] == 0x08;
    smg_file_unmap(&file);
    return tagged;
}

smg_status smg_source_look(smg_context *ctx, const char *path, bool embedding_only, smg_source *out_source) {
    *out_source = (smg_source){.ctx = ctx, .owns_graph = true};
    SMG_TRY(smg_arena_create(ctx, &out_source->arena));
    smg_status status = SMG_OK;
    if (smg_bfile_is_at(ctx, path)) {
        status = smg_fail(ctx, SMG_INVALID,
                          "'%s' is a bundle, which is compiled already: smg run and smg info take it, in C "
                          "smg_model_open_bundle",
                          path);
    } else if (smg_path_is_dir(path)) {
        status = load_dir(ctx, path, embedding_only, out_source);
    } else if (embedding_only) {
        status = smg_fail(ctx, SMG_INVALID, "'%s' is not a model directory", path);
    } else if (is_onnx(ctx, path)) {
        status = load_onnx(ctx, path, out_source);
    } else {
        status = smg_context_status(ctx);
        if (status == SMG_OK) status = load_text(ctx, path, out_source);
    }
    if (status != SMG_OK) smg_source_close(out_source);
    return status;
}

smg_status smg_source_open(smg_context *ctx, const char *path, bool embedding_only, smg_source *out_source) {
    SMG_TRY(smg_source_look(ctx, path, embedding_only, out_source));
    if (out_source->graph != NULL) return SMG_OK;
    smg_status status = smg_onnx_make_graph(out_source->onnx, &out_source->graph);
    if (status != SMG_OK) smg_source_close(out_source);
    return status;
}

void smg_source_close(smg_source *source) {
    if (source->owns_graph) smg_graph_destroy(source->graph);
    smg_onnx_close(source->onnx);
    smg_import_close_dir(source->dir);
    smg_arena_destroy(source->arena);
    *source = (smg_source){0};
}

bool smg_source_default(const smg_source *source, const char *input, smg_fill *out_fill) {
    int64_t value = 0;
    if (source->dir == NULL || !smg_model_input_default(input, &value)) return false;
    *out_fill = value != 0 ? SMG_FILL_ONES : SMG_FILL_ZEROS;
    return true;
}

void smg_source_uploaded(void *user, const void *data, size_t bytes) {
    const smg_source *source = user;
    if (source->onnx != NULL) smg_onnx_drop(source->onnx, data, bytes);
    if (source->dir == NULL || source->dir->weights == NULL) return;
    for (int i = 0; i < smg_safetensors_count(source->dir->weights); i++) {
        const smg_import_tensor *tensor = smg_safetensors_at(source->dir->weights, i);
        if (tensor->data == data) smg_safetensors_drop(source->dir->weights, tensor);
    }
}
