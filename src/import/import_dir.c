/* A model directory as hubs and packages lay it out: where everything is, and the sentence part.
 *
 * A plain directory has config.json beside its weights and tokenizer files. A sentence-transformers
 * directory has modules.json too, whose first module is the transformer (its folder may be "") and
 * whose others pool and normalise. A package may keep all that one level down, in "model". An
 * exporter leaves an ONNX file in place of weights, alone or in a folder "onnx" beside the rest.
 * Names in these files are untrusted: none may lead out of the directory.
 */
#include "import/import.h"

static const char *join_if_file(smg_arena *arena, const char *folder, const char *name) {
    const char *path = smg_path_join(arena, folder, name);
    return path != NULL && smg_file_exists(path) ? path : NULL;
}

/* Relative, without "..", without empty or absolute parts; "" is the directory itself. */
static bool stays_inside(const char *path) {
    if (path[0] == '/' || strchr(path, '\\') != NULL || strchr(path, ':') != NULL) return false;
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') return false;
        part += length;
        part += strspn(part, "/");
    }
    return true;
}

/* ---- sentence-transformers ------------------------------------------------------------------ */

static smg_status read_pooling(smg_import_dir *dir, const char *path) {
    smg_json *json = NULL;
    SMG_TRY(smg_json_open(dir->ctx, path, &json));
    smg_status status = SMG_OK;
    int chosen = 0;
    for (smg_json_iter i = smg_json_begin(smg_json_root(json)); smg_json_next(&i);) {
        bool on = false;
        if (strncmp(i.key, "pooling_mode_", 13) != 0) continue;
        if (!smg_json_as_bool(i.value, &on)) {
            status = smg_fail(dir->ctx, SMG_FORMAT, "'%s': \"%s\" is neither true nor false", path, i.key);
            break;
        }
        if (!on) continue;
        chosen++;
        if (strcmp(i.key, "pooling_mode_mean_tokens") == 0) {
            dir->pooling = SMG_IMPORT_POOLING_MEAN;
        } else if (strcmp(i.key, "pooling_mode_cls_token") == 0) {
            dir->pooling = SMG_IMPORT_POOLING_CLS;
        } else if (strcmp(i.key, "pooling_mode_max_tokens") == 0) {
            dir->pooling = SMG_IMPORT_POOLING_MAX;
        } else {
            dir->pooling = SMG_IMPORT_POOLING_OTHER;
        }
    }
    if (chosen != 1) dir->pooling = SMG_IMPORT_POOLING_OTHER;
    smg_json_close(json);
    return status;
}

/* One entry of modules.json; the transformer's folder replaces *folder. */
static smg_status read_module(smg_import_dir *dir, smg_json_at module, const char *root, const char **folder) {
    const char *type = NULL;
    const char *path = NULL;
    SMG_TRY(smg_json_need_text(module, "type", &type));
    SMG_TRY(smg_json_get_text(module, "path", "", &path));
    if (!stays_inside(path)) {
        return smg_fail(dir->ctx, SMG_FORMAT, "'%s': the module path '%s' leaves the directory",
                        smg_json_label(module.json), path);
    }
    path = path[0] == '\0' ? root : smg_path_join(dir->arena, root, path);
    if (path == NULL) return SMG_MEMORY;
    if (smg_text_ends(type, ".Transformer")) {
        *folder = smg_arena_string(dir->arena, path);
        return *folder != NULL ? SMG_OK : SMG_MEMORY;
    }
    if (smg_text_ends(type, ".Normalize")) {
        dir->normalize = true;
        return SMG_OK;
    }
    if (smg_text_ends(type, ".Pooling")) {
        const char *file = smg_path_join(dir->arena, path, "config.json");
        return file != NULL ? read_pooling(dir, file) : SMG_MEMORY;
    }
    if (dir->foreign_module == NULL) {
        dir->foreign_module = smg_arena_string(dir->arena, type);
        if (dir->foreign_module == NULL) return SMG_MEMORY;
    }
    return SMG_OK;
}

static smg_status read_modules(smg_import_dir *dir, const char *root, const char **folder) {
    const char *path = join_if_file(dir->arena, root, "modules.json");
    if (path == NULL) return smg_context_status(dir->ctx) == SMG_MEMORY ? SMG_MEMORY : SMG_OK;
    dir->is_sentence_model = true;
    smg_json *json = NULL;
    SMG_TRY(smg_json_open(dir->ctx, path, &json));
    smg_status status = SMG_OK;
    if (!smg_json_is_array(smg_json_root(json))) {
        status = smg_fail(dir->ctx, SMG_FORMAT, "'%s' is not an array of modules", path);
    }
    for (smg_json_iter i = smg_json_begin(smg_json_root(json)); status == SMG_OK && smg_json_next(&i);) {
        status = read_module(dir, i.value, root, folder);
    }
    smg_json_close(json);
    return status;
}

static smg_status read_sentence_config(smg_import_dir *dir) {
    const char *path = join_if_file(dir->arena, dir->path, "sentence_bert_config.json");
    if (path == NULL) return SMG_OK;
    smg_json *json = NULL;
    SMG_TRY(smg_json_open(dir->ctx, path, &json));
    smg_json_at root = smg_json_root(json);
    smg_status status = smg_json_get_int(root, "max_seq_length", 0, 1, INT32_MAX, &dir->max_seq_length);
    if (status == SMG_OK) {
        status = smg_json_get_bool(root, "do_lower_case", false, &dir->sentence_lower_case);
    }
    smg_json_close(json);
    return status;
}

/* ---- the directory -------------------------------------------------------------------------- */

static const char *find_onnx(smg_arena *arena, const char *folder) {
    const char *path = join_if_file(arena, folder, "model.onnx");
    return path != NULL ? path : join_if_file(arena, folder, "onnx/model.onnx");
}

static bool holds_model(smg_arena *arena, const char *folder) {
    return join_if_file(arena, folder, "config.json") != NULL || join_if_file(arena, folder, "modules.json") != NULL ||
           find_onnx(arena, folder) != NULL;
}

static smg_status find_weights(smg_import_dir *dir, const char *root, const char *folder) {
    dir->weights_path = join_if_file(dir->arena, folder, "model.safetensors");
    if (dir->weights_path == NULL) {
        dir->weights_path = join_if_file(dir->arena, folder, "model.safetensors.index.json");
    }
    if (dir->weights_path == NULL) dir->onnx_path = find_onnx(dir->arena, folder);
    if (dir->weights_path == NULL && dir->onnx_path == NULL) dir->onnx_path = find_onnx(dir->arena, root);
    /* A path that memory was missing for looks like an absent file. */
    return smg_context_status(dir->ctx) == SMG_MEMORY ? SMG_MEMORY : SMG_OK;
}

static smg_status read_config(smg_import_dir *dir, const char *folder) {
    const char *config = join_if_file(dir->arena, folder, "config.json");
    dir->model_type = "";
    if (config == NULL && dir->onnx_path != NULL) return SMG_OK;
    if (config == NULL) {
        return smg_fail(dir->ctx, SMG_NOT_FOUND, "the model folder '%s' has neither config.json nor model.onnx",
                        folder);
    }
    SMG_TRY(smg_json_open(dir->ctx, config, &dir->config));
    if (!smg_json_is_object(smg_json_root(dir->config))) {
        return smg_fail(dir->ctx, SMG_FORMAT, "'%s' is not a JSON object", config);
    }
    return smg_json_get_text(smg_json_root(dir->config), "model_type", "", &dir->model_type);
}

static smg_status fill_dir(smg_import_dir *dir, const char *path) {
    smg_arena *arena = dir->arena;
    if (!smg_path_is_dir(path)) {
        return smg_fail(dir->ctx, SMG_NOT_FOUND, "'%s' is not a folder", path);
    }
    const char *root = smg_arena_string(arena, path);
    if (root == NULL) return SMG_MEMORY;
    if (!holds_model(arena, root)) {
        const char *below = smg_path_join(arena, root, "model");
        if (below != NULL && holds_model(arena, below)) root = below;
    }
    const char *folder = root;
    SMG_TRY(read_modules(dir, root, &folder));
    dir->path = folder;
    SMG_TRY(find_weights(dir, root, folder));
    SMG_TRY(read_config(dir, folder));
    dir->tokenizer_json_path = join_if_file(arena, folder, "tokenizer.json");
    dir->tokenizer_config_path = join_if_file(arena, folder, "tokenizer_config.json");
    dir->special_tokens_path = join_if_file(arena, folder, "special_tokens_map.json");
    dir->vocab_path = join_if_file(arena, folder, "vocab.txt");
    SMG_TRY(read_sentence_config(dir));
    /* A path that memory was missing for looks like an absent file above. */
    return smg_context_status(dir->ctx) == SMG_MEMORY ? SMG_MEMORY : SMG_OK;
}

smg_status smg_import_open_dir(smg_context *ctx, const char *path, smg_import_dir **out_dir) {
    *out_dir = NULL;
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_import_dir *dir = SMG_ARENA_NEW(arena, smg_import_dir);
    if (dir == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    dir->ctx = ctx;
    dir->arena = arena;
    smg_status status = fill_dir(dir, path);
    if (status != SMG_OK) {
        smg_import_close_dir(dir);
        return status;
    }
    *out_dir = dir;
    return SMG_OK;
}

void smg_import_close_dir(smg_import_dir *dir) {
    if (dir == NULL) return;
    smg_safetensors_close(dir->weights);
    smg_json_close(dir->config);
    smg_arena_destroy(dir->arena);
}

/* ---- weights -------------------------------------------------------------------------------- */

typedef struct shard_list {
    SMG_ARRAY(const char *) paths;
    smg_map *numbers; /* shard's file name to its number + 1 */
} shard_list;

/* The number of the shard that one entry of "weight_map" names. */
static smg_status shard_number(smg_import_dir *dir, shard_list *list, const smg_json_iter *entry, int *out_number) {
    const char *name = NULL;
    size_t length = 0;
    if (!smg_json_as_text(entry->value, &name, &length) || length == 0 || strlen(name) != length ||
        !stays_inside(name)) {
        return smg_fail(dir->ctx, SMG_FORMAT, "'%s': tensor '%s' has no usable file name", dir->weights_path,
                        entry->key);
    }
    void *known = NULL;
    if (smg_map_get(list->numbers, name, length, &known)) {
        *out_number = (int)((uintptr_t)known - 1);
        return SMG_OK;
    }
    const char **slot = SMG_ARRAY_PUSH(dir->arena, &list->paths);
    if (slot == NULL) return SMG_MEMORY;
    *slot = smg_path_join(dir->arena, dir->path, name);
    if (*slot == NULL) return SMG_MEMORY;
    *out_number = list->paths.count - 1;
    return smg_map_set(list->numbers, name, length, (void *)(uintptr_t)list->paths.count);
}

/* Every tensor of the index must be in the shard the index says. */
static smg_status check_index(smg_import_dir *dir, shard_list *list, smg_json_at map, const smg_safetensors *table) {
    for (smg_json_iter i = smg_json_begin(map); smg_json_next(&i);) {
        int number = 0;
        SMG_TRY(shard_number(dir, list, &i, &number));
        const smg_import_tensor *tensor = smg_safetensors_find(table, i.key);
        if (tensor == NULL || tensor->file != number) {
            return smg_fail(dir->ctx, SMG_FORMAT, "'%s' says tensor '%s' is in '%s', which lacks it", dir->weights_path,
                            i.key, list->paths.items[number]);
        }
    }
    return SMG_OK;
}

static smg_status open_shards(smg_import_dir *dir, const smg_json *index, smg_safetensors **out_table) {
    smg_json_at map = smg_json_get(smg_json_root(index), "weight_map");
    if (!smg_json_is_object(map) || smg_json_count(map) == 0) {
        return smg_fail(dir->ctx, SMG_FORMAT, "'%s' has no \"weight_map\" with tensors", dir->weights_path);
    }
    shard_list list = {0};
    SMG_TRY(smg_map_create(dir->arena, &list.numbers));
    for (smg_json_iter i = smg_json_begin(map); smg_json_next(&i);) {
        int number = 0;
        SMG_TRY(shard_number(dir, &list, &i, &number));
    }
    smg_safetensors *table = NULL;
    SMG_TRY(smg_safetensors_open(dir->ctx, list.paths.items, list.paths.count, &table));
    smg_status status = check_index(dir, &list, map, table);
    if (status != SMG_OK) {
        smg_safetensors_close(table);
        return status;
    }
    *out_table = table;
    return SMG_OK;
}

smg_status smg_import_dir_weights(smg_import_dir *dir, smg_safetensors **out_table) {
    *out_table = dir->weights;
    if (dir->weights != NULL) return SMG_OK;
    if (dir->weights_path == NULL) {
        return smg_fail(dir->ctx, SMG_NOT_FOUND, "the model folder '%s' has neither model.safetensors nor model.onnx",
                        dir->path);
    }
    smg_status status = SMG_OK;
    if (smg_text_ends(dir->weights_path, ".json")) {
        smg_json *index = NULL;
        SMG_TRY(smg_json_open(dir->ctx, dir->weights_path, &index));
        status = open_shards(dir, index, &dir->weights);
        smg_json_close(index);
    } else {
        status = smg_safetensors_open(dir->ctx, &dir->weights_path, 1, &dir->weights);
    }
    *out_table = dir->weights;
    return status;
}
