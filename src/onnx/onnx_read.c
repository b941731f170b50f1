/* Opening and closing a model: map, diet, unpack, and the checks that need no conversion. */
#include "onnx/onnx_private.h"

/* ---- unpacking into the arena ------------------------------------------------------------------- */

static void *arena_alloc(void *user, size_t size) {
    return smg_arena_alloc(user, size > 0 ? size : 1, 1);
}

static void arena_free(void *user, void *pointer) {
    (void)user, (void)pointer; /* dies with the arena */
}

static smg_status unpack(smg_onnx *m) {
    uint8_t *diet = NULL;
    size_t size = 0, capacity = 0;
    SMG_TRY(smg_onnx_diet(m->ctx, m->label, m->data, m->size, &diet, &size, &capacity));
    ProtobufCAllocator allocator = {arena_alloc, arena_free, m->arena};
    m->proto = smg__pb__model__unpack(&allocator, size, diet);
    smg_free(m->ctx, diet, capacity);
    if (m->proto) return SMG_OK;
    smg_status status = smg_context_status(m->ctx);
    if (status != SMG_OK) return status;
    return smg_fail(m->ctx, SMG_FORMAT, "'%s' is not a sound ONNX file: a field has another type than ONNX gives it",
                    m->label);
}

/* ---- names -------------------------------------------------------------------------------------- */

const char *smg_onnx_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int64_t smg_onnx_opset_of(size_t count, pb_opset *const *imports, const char *domain) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(smg_onnx_domain(imports[i]->domain), smg_onnx_domain(domain)) == 0) return imports[i]->version;
    return 0;
}

const char *smg_onnx_node_name(const pb_node *node) {
    if (node->name[0]) return node->name;
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0]) return node->output[i];
    return "?";
}

/* Functions of one name; they differ in domain or overload. */
typedef struct named_functions {
    const pb_function *function;
    struct named_functions *next;
} named_functions;

static const pb_function *find_function(const smg_onnx *m, const char *domain, const char *name, const char *overload) {
    void *found = NULL;
    smg_map_get(m->functions, name, strlen(name), &found);
    for (const named_functions *row = found; row; row = row->next)
        if (strcmp(row->function->overload, overload) == 0 &&
            strcmp(smg_onnx_domain(row->function->domain), smg_onnx_domain(domain)) == 0)
            return row->function;
    return NULL;
}

static smg_status index_functions(smg_onnx *m) {
    SMG_TRY(smg_map_create(m->arena, &m->functions));
    for (size_t i = 0; i < m->proto->n_functions; i++) {
        const pb_function *f = m->proto->functions[i];
        void *others = NULL;
        if (find_function(m, f->domain, f->name, f->overload))
            return smg_fail(m->ctx, SMG_FORMAT, "'%s' has two functions '%s' of domain '%s'", m->label, f->name,
                            f->domain);
        smg_map_get(m->functions, f->name, strlen(f->name), &others);
        named_functions *row = SMG_ARENA_NEW(m->arena, named_functions);
        if (!row) return SMG_MEMORY;
        *row = (named_functions){f, others};
        SMG_TRY(smg_map_set(m->functions, f->name, strlen(f->name), row));
    }
    return SMG_OK;
}

const pb_function *smg_onnx_find_function(const smg_onnx *model, const pb_node *node) {
    return find_function(model, node->domain, node->op_type, node->overload);
}

/* ---- checks ------------------------------------------------------------------------------------- */

static smg_status check(smg_onnx *m) {
    const pb_model *proto = m->proto;
    if (!proto->graph) return smg_fail(m->ctx, SMG_FORMAT, "'%s' holds no ONNX graph (%zu bytes)", m->label, m->size);
    int64_t opset = smg_onnx_opset_of(proto->n_opset_import, proto->opset_import, "");
    if (opset == 0) return smg_fail(m->ctx, SMG_FORMAT, "'%s' does not say which opset it is written in", m->label);
    if (opset < SMG_ONNX_OPSET_MIN || opset > SMG_ONNX_OPSET_MAX)
        return smg_fail(m->ctx, SMG_UNSUPPORTED, "'%s' is written in opset %lld, smg reads %d to %d", m->label,
                        (long long)opset, SMG_ONNX_OPSET_MIN, SMG_ONNX_OPSET_MAX);
    if (proto->graph->n_sparse_initializer > 0)
        return smg_fail(m->ctx, SMG_UNSUPPORTED, "'%s' has %zu sparse initialisers", m->label,
                        proto->graph->n_sparse_initializer);
    SMG_TRY(index_functions(m));
    SMG_TRY(smg_onnx_list_declared(m));
    return smg_onnx_find_missing(m);
}

static smg_status open_model(smg_onnx *m) {
    SMG_TRY(unpack(m));
    return check(m);
}

static smg_status create(smg_context *ctx, const char *label, smg_onnx **out_model) {
    smg_arena *arena = NULL;
    *out_model = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_onnx *m = SMG_ARENA_NEW(arena, smg_onnx);
    const char *copy = smg_arena_string(arena, label);
    if (!m || !copy) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *m = (smg_onnx){.ctx = ctx, .arena = arena, .label = copy};
    *out_model = m;
    return SMG_OK;
}

static smg_status finish(smg_onnx *m, smg_status status, smg_onnx **out_model) {
    *out_model = m;
    if (status == SMG_OK) return SMG_OK;
    *out_model = NULL;
    smg_onnx_close(m);
    return status;
}

static smg_status open_file(smg_onnx *m, const char *path) {
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] != '/') length--;
    m->folder = length > 0 ? smg_arena_string_n(m->arena, path, length) : ".";
    if (!m->folder) return SMG_MEMORY;
    SMG_TRY(smg_file_map(m->ctx, path, &m->file));
    m->data = m->file.data;
    m->size = m->file.size;
    return open_model(m);
}

smg_status smg_onnx_open(smg_context *ctx, const char *path, smg_onnx **out_model) {
    smg_onnx *m = NULL;
    *out_model = NULL;
    SMG_TRY(create(ctx, path, &m));
    return finish(m, open_file(m, path), out_model);
}

smg_status smg_onnx_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size, const char *folder,
                               smg_onnx **out_model) {
    smg_onnx *m = NULL;
    *out_model = NULL;
    SMG_TRY(create(ctx, label, &m));
    m->data = data;
    m->size = size;
    smg_status status = SMG_OK;
    if (folder) {
        m->folder = smg_arena_string(m->arena, folder);
        if (!m->folder) status = SMG_MEMORY;
    }
    return finish(m, status == SMG_OK ? open_model(m) : status, out_model);
}

void smg_onnx_close(smg_onnx *model) {
    if (!model) return;
    for (int i = 0; i < model->externals.count; i++) smg_file_unmap(&model->externals.items[i].file);
    smg_file_unmap(&model->file);
    smg_arena_destroy(model->arena);
}

static void drop_in(const smg_mapped_file *file, const uint8_t *data, size_t bytes) {
    uintptr_t begin = (uintptr_t)file->data, at = (uintptr_t)data;
    if (file->data && at >= begin && at < begin + file->size) smg_file_drop_pages(file, (size_t)(at - begin), bytes);
}

void smg_onnx_drop(const smg_onnx *model, const void *data, size_t bytes) {
    drop_in(&model->file, data, bytes);
    for (int i = 0; i < model->externals.count; i++) drop_in(&model->externals.items[i].file, data, bytes);
}

int smg_onnx_missing_count(const smg_onnx *model) {
    return model->missing.count;
}

const smg_onnx_missing *smg_onnx_missing_at(const smg_onnx *model, int index) {
    return index >= 0 && index < model->missing.count ? &model->missing.items[index] : NULL;
}
