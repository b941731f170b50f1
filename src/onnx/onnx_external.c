/* External data: tensors whose elements lie in a file beside the model.
 *
 * A model may come from anywhere, so what it names must be a file inside its own folder: no absolute
 * path, no way up, and, after the system has followed every link, still inside. Each file is mapped
 * once.
 */
#include "onnx/onnx_private.h"

typedef struct place {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} place;

static smg_status read_number(smg_onnx *m, const char *name, const char *key, const char *text, uint64_t *out_value) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > (UINT64_MAX - 9) / 10) break;
        value = value * 10 + (uint64_t)(*at - '0');
    }
    if (at == text || *at)
        return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' has external %s '%s', not a number", m->label, name, key,
                        text);
    *out_value = value;
    return SMG_OK;
}

static smg_status read_place(smg_onnx *m, const pb_tensor *tensor, const char *name, place *out) {
    *out = (place){.location = ""};
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const char *key = tensor->external_data[i]->key, *value = tensor->external_data[i]->value;
        if (strcmp(key, "location") == 0) out->location = value;
        if (strcmp(key, "offset") == 0) SMG_TRY(read_number(m, name, key, value, &out->offset));
        if (strcmp(key, "length") == 0) {
            SMG_TRY(read_number(m, name, key, value, &out->length));
            out->has_length = true;
        }
    }
    if (out->location[0]) return SMG_OK;
    return smg_fail(m->ctx, SMG_FORMAT, "'%s': tensor '%s' is external but names no file", m->label, name);
}

/* A relative path without a component "..". */
static bool stays_below(const char *path) {
    if (path[0] == '/' || strchr(path, '\\')) return false;
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') return false;
        at += length;
        while (*at == '/') at++;
    }
    return true;
}

static smg_status unreadable(smg_onnx *m, const char *name, smg_status status) {
    return smg_fail_within(m->ctx, status, "'%s': external data of tensor '%s'", m->label, name);
}

static smg_status map_file(smg_onnx *m, const char *name, const char *location, const smg_mapped_file **out_file) {
    for (int i = 0; i < m->externals.count; i++) {
        *out_file = &m->externals.items[i].file;
        if (strcmp(m->externals.items[i].location, location) == 0) return SMG_OK;
    }
    if (!m->folder)
        return smg_fail(m->ctx, SMG_UNSUPPORTED,
                        "'%s': tensor '%s' is in the file '%s', but bytes without a folder were "
                        "opened",
                        m->label, name, location);
    char *path = smg_path_join(m->arena, m->folder, location), *real = NULL;
    if (!path) return SMG_MEMORY;
    bool inside = stays_below(location);
    smg_status status = SMG_OK;
    if (inside) status = smg_path_inside(m->arena, m->folder, path, &real, &inside);
    if (status != SMG_OK) return unreadable(m, name, status);
    if (!inside)
        return smg_fail(m->ctx, SMG_INVALID, "'%s': tensor '%s' is in '%s', which is not inside the model's folder",
                        m->label, name, location);
    smg_mapped_file file = {0};
    status = smg_file_map(m->ctx, real, &file);
    if (status != SMG_OK) return unreadable(m, name, status);
    onnx_external *external = SMG_ARRAY_PUSH(m->arena, &m->externals);
    if (!external) {
        smg_file_unmap(&file);
        return SMG_MEMORY;
    }
    *external = (onnx_external){location, file};
    *out_file = &external->file;
    return SMG_OK;
}

smg_status smg_onnx_read_external(smg_onnx *model, const pb_tensor *tensor, const char *name, size_t bytes,
                                  const uint8_t **out_data) {
    place at;
    const smg_mapped_file *file = NULL;
    SMG_TRY(read_place(model, tensor, name, &at));
    SMG_TRY(map_file(model, name, at.location, &file));
    if (at.has_length && at.length != bytes)
        return smg_fail(model->ctx, SMG_FORMAT, "'%s': tensor '%s' takes %zu bytes, its entry in '%s' has %llu",
                        model->label, name, bytes, at.location, (unsigned long long)at.length);
    if (at.offset > file->size || bytes > file->size - at.offset)
        return smg_fail(model->ctx, SMG_FORMAT, "'%s': tensor '%s' lies at bytes %llu to %llu of '%s', which has %zu",
                        model->label, name, (unsigned long long)at.offset, (unsigned long long)(at.offset + bytes),
                        at.location, file->size);
    if (bytes > 0) *out_data = file->data + at.offset;
    return SMG_OK;
}
