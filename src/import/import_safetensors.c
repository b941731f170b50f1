/* safetensors: 8 bytes of header length, a JSON header, then one buffer of tensor data.
 *
 * The table keeps the reference implementation's rules: the header is an object of at most 100 MB,
 * every tensor's byte range equals its shape times its element size, and the ranges together cover
 * the buffer with no hole and no overlap. Data stays in the mapping; nothing is copied.
 */
#include "import/import.h"

#include <stdlib.h>

#define HEADER_LIMIT 100000000u

typedef struct shard {
    const char *label;
    smg_mapped_file file; /* zero when the bytes are the caller's */
    const uint8_t *data;
    size_t size;
} shard;

struct smg_safetensors {
    smg_context *ctx;
    smg_arena *arena;
    smg_map *by_name; /* to index + 1: the array moves while it grows */
    SMG_ARRAY(smg_import_tensor) tensors;
    shard *shards;
    int shard_count;
};

/* Where one tensor of the file that is being read lies in the data buffer. */
typedef struct byte_range {
    uint64_t begin, end;
    const char *name;
} byte_range;

typedef struct reader {
    smg_safetensors *table;
    const shard *from;
    int index;
    const uint8_t *buffer;
    uint64_t buffer_bytes;
} reader;

#define FAIL(r, code, ...) smg_fail((r)->table->ctx, (code), __VA_ARGS__)

static smg_import_dtype dtype_of_word(const char *word) {
    for (int i = 1; i < SMG_IMPORT_DTYPE_COUNT; i++) {
        if (strcmp(word, smg_import_dtype_word((smg_import_dtype)i)) == 0) {
            return (smg_import_dtype)i;
        }
    }
    return SMG_IMPORT_DTYPE_NONE;
}

static smg_status read_shape(const reader *r, smg_json_at entry, smg_import_tensor *tensor) {
    const char *label = r->from->label;
    smg_json_at shape = smg_json_get(entry, "shape");
    if (!smg_json_is_array(shape)) {
        return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' has no \"shape\" array", label, tensor->name);
    }
    if (smg_json_count(shape) > SMG_IMPORT_MAX_RANK) {
        return FAIL(r, SMG_UNSUPPORTED, "'%s': tensor '%s' has rank %zu; at most %d is supported", label, tensor->name,
                    smg_json_count(shape), SMG_IMPORT_MAX_RANK);
    }
    tensor->count = 1;
    for (smg_json_iter i = smg_json_begin(shape); smg_json_next(&i);) {
        int64_t dim = 0;
        if (!smg_json_as_int(i.value, &dim) || dim < 0) {
            return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' has a shape entry %d that is no size", label, tensor->name,
                        tensor->rank);
        }
        tensor->dims[tensor->rank++] = dim;
        if (!smg_mul_i64(tensor->count, dim, &tensor->count)) {
            return FAIL(r, SMG_FORMAT, "'%s': the shape of tensor '%s' overflows 64 bits", label, tensor->name);
        }
    }
    return SMG_OK;
}

static smg_status read_range(const reader *r, smg_json_at entry, smg_import_tensor *tensor, byte_range *range) {
    const char *label = r->from->label;
    int64_t ends[2] = {-1, -1};
    int filled = 0;
    smg_json_at offsets = smg_json_get(entry, "data_offsets");
    for (smg_json_iter i = smg_json_begin(offsets); smg_json_next(&i); filled++) {
        if (filled >= 2 || !smg_json_as_int(i.value, &ends[filled])) break;
    }
    if (!smg_json_is_array(offsets) || smg_json_count(offsets) != 2 || filled != 2 || ends[0] < 0 ||
        ends[1] < ends[0]) {
        return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' needs \"data_offsets\" of two numbers, begin <= end", label,
                    tensor->name);
    }
    if ((uint64_t)ends[1] > r->buffer_bytes) {
        return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' ends at byte %lld of a data buffer of %llu bytes", label,
                    tensor->name, (long long)ends[1], (unsigned long long)r->buffer_bytes);
    }
    int64_t bytes = 0;
    if (!smg_mul_i64(tensor->count, (int64_t)smg_import_dtype_bytes(tensor->dtype), &bytes)) {
        return FAIL(r, SMG_FORMAT, "'%s': the size of tensor '%s' overflows 64 bits", label, tensor->name);
    }
    if (bytes != ends[1] - ends[0]) {
        return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' (%s, %lld elements) needs %lld bytes, has %lld", label,
                    tensor->name, smg_import_dtype_word(tensor->dtype), (long long)tensor->count, (long long)bytes,
                    (long long)(ends[1] - ends[0]));
    }
    tensor->bytes = (size_t)bytes;
    tensor->data = r->buffer + ends[0];
    *range = (byte_range){(uint64_t)ends[0], (uint64_t)ends[1], tensor->name};
    return SMG_OK;
}

static smg_status add_tensor(const reader *r, const smg_import_tensor *tensor) {
    smg_safetensors *table = r->table;
    size_t length = strlen(tensor->name);
    void *old = NULL;
    if (smg_map_get(table->by_name, tensor->name, length, &old)) {
        const smg_import_tensor *first = &table->tensors.items[(uintptr_t)old - 1];
        return FAIL(r, SMG_FORMAT, "tensor '%s' is twice in the table: in '%s' and in '%s'", tensor->name,
                    table->shards[first->file].label, r->from->label);
    }
    smg_import_tensor *slot = SMG_ARRAY_PUSH(table->arena, &table->tensors);
    if (slot == NULL) return SMG_MEMORY;
    *slot = *tensor;
    return smg_map_set(table->by_name, tensor->name, length, (void *)(uintptr_t)table->tensors.count);
}

static smg_status read_tensor(const reader *r, const smg_json_iter *member, byte_range *range) {
    const char *label = r->from->label;
    smg_import_tensor tensor = {.file = r->index};
    if (strlen(member->key) != member->key_length) {
        return FAIL(r, SMG_FORMAT, "'%s': the tensor name '%s...' holds a NUL character", label, member->key);
    }
    tensor.name = smg_arena_string_n(r->table->arena, member->key, member->key_length);
    if (tensor.name == NULL) return SMG_MEMORY;
    const char *word = NULL;
    if (!smg_json_is_object(member->value) || !smg_json_as_text(smg_json_get(member->value, "dtype"), &word, NULL)) {
        return FAIL(r, SMG_FORMAT, "'%s': tensor '%s' has no \"dtype\"", label, tensor.name);
    }
    tensor.dtype = dtype_of_word(word);
    if (tensor.dtype == SMG_IMPORT_DTYPE_NONE) {
        return FAIL(r, SMG_UNSUPPORTED, "'%s': tensor '%s' has dtype '%s', which smg does not read", label, tensor.name,
                    word);
    }
    SMG_TRY(read_shape(r, member->value, &tensor));
    SMG_TRY(read_range(r, member->value, &tensor, range));
    return add_tensor(r, &tensor);
}

static int compare_ranges(const void *left, const void *right) {
    const byte_range *a = left;
    const byte_range *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The ranges must tile the buffer. */
static smg_status check_cover(const reader *r, byte_range *ranges, size_t count) {
    if (count > 1) qsort(ranges, count, sizeof(*ranges), compare_ranges);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin < at) {
            return FAIL(r, SMG_FORMAT, "'%s': tensors '%s' and '%s' overlap at data byte %llu", r->from->label,
                        ranges[i - 1].name, ranges[i].name, (unsigned long long)ranges[i].begin);
        }
        if (ranges[i].begin > at) {
            return FAIL(r, SMG_FORMAT, "'%s': data bytes %llu to %llu belong to no tensor", r->from->label,
                        (unsigned long long)at, (unsigned long long)ranges[i].begin);
        }
        at = ranges[i].end;
    }
    if (at == r->buffer_bytes) return SMG_OK;
    return FAIL(r, SMG_FORMAT, "'%s': the tensors cover %llu of %llu data bytes", r->from->label,
                (unsigned long long)at, (unsigned long long)r->buffer_bytes);
}

static smg_status read_members(const reader *r, const smg_json *header) {
    smg_json_at root = smg_json_root(header);
    if (!smg_json_is_object(root)) {
        return FAIL(r, SMG_FORMAT, "'%s': the safetensors header is not a JSON object", r->from->label);
    }
    size_t room = smg_json_count(root);
    if (room > INT32_MAX) {
        return FAIL(r, SMG_UNSUPPORTED, "'%s' has %zu tensors", r->from->label, room);
    }
    byte_range *ranges = smg_alloc(r->table->ctx, room + 1, sizeof(*ranges));
    if (ranges == NULL) return SMG_MEMORY;
    size_t count = 0;
    smg_status status = SMG_OK;
    for (smg_json_iter i = smg_json_begin(root); status == SMG_OK && smg_json_next(&i);) {
        if (strcmp(i.key, "__metadata__") == 0) continue;
        status = read_tensor(r, &i, &ranges[count++]);
    }
    if (status == SMG_OK) status = check_cover(r, ranges, count);
    smg_free(r->table->ctx, ranges, (room + 1) * sizeof(*ranges));
    return status;
}

static smg_status read_shard(smg_safetensors *table, int index) {
    const shard *from = &table->shards[index];
    reader r = {.table = table, .from = from, .index = index};
    if (from->size < 8) {
        return FAIL(&r, SMG_FORMAT, "'%s' is no safetensors file: %zu bytes, fewer than 8", from->label, from->size);
    }
    uint64_t header_bytes = 0;
    for (int i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | from->data[i];
    if (header_bytes > from->size - 8 || header_bytes > HEADER_LIMIT || header_bytes == 0) {
        return FAIL(&r, SMG_FORMAT, "'%s' is no safetensors file: its header would be %llu of %zu bytes", from->label,
                    (unsigned long long)header_bytes, from->size);
    }
    r.buffer = from->data + 8 + header_bytes;
    r.buffer_bytes = from->size - 8 - header_bytes;
    smg_json *header = NULL;
    SMG_TRY(smg_json_parse(table->ctx, from->label, (const char *)from->data + 8, (size_t)header_bytes, &header));
    smg_status status = read_members(&r, header);
    smg_json_close(header);
    return status;
}

/* An empty table with room for the shards; on failure everything is given back. */
static smg_status create_table(smg_context *ctx, int shard_count, smg_safetensors **out_table) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_safetensors *table = SMG_ARENA_NEW(arena, smg_safetensors);
    shard *shards = SMG_ARENA_ARRAY(arena, shard, (size_t)shard_count);
    if (table == NULL || shards == NULL || smg_map_create(arena, &table->by_name) != SMG_OK) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    table->ctx = ctx;
    table->arena = arena;
    table->shards = shards;
    *out_table = table;
    return SMG_OK;
}

static smg_status add_shard(smg_safetensors *table, const char *label, const smg_mapped_file *file, const void *data,
                            size_t size) {
    int index = table->shard_count++;
    shard *s = &table->shards[index];
    if (file != NULL) s->file = *file; /* first, so that closing unmaps it whatever follows */
    s->data = data;
    s->size = size;
    s->label = smg_arena_string(table->arena, label);
    return s->label != NULL ? read_shard(table, index) : SMG_MEMORY;
}

smg_status smg_safetensors_open(smg_context *ctx, const char *const *paths, int path_count,
                                smg_safetensors **out_table) {
    *out_table = NULL;
    if (path_count < 1) return smg_fail(ctx, SMG_INVALID, "no safetensors file was given");
    smg_safetensors *table = NULL;
    SMG_TRY(create_table(ctx, path_count, &table));
    smg_status status = SMG_OK;
    for (int i = 0; i < path_count && status == SMG_OK; i++) {
        smg_mapped_file file;
        status = smg_file_map(ctx, paths[i], &file);
        if (status == SMG_OK) status = add_shard(table, paths[i], &file, file.data, file.size);
    }
    if (status != SMG_OK) {
        smg_safetensors_close(table);
        return status;
    }
    *out_table = table;
    return SMG_OK;
}

smg_status smg_safetensors_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size,
                                      smg_safetensors **out_table) {
    *out_table = NULL;
    smg_safetensors *table = NULL;
    SMG_TRY(create_table(ctx, 1, &table));
    smg_status status = add_shard(table, label, NULL, data, size);
    if (status != SMG_OK) {
        smg_safetensors_close(table);
        return status;
    }
    *out_table = table;
    return SMG_OK;
}

void smg_safetensors_close(smg_safetensors *table) {
    if (table == NULL) return;
    for (int i = 0; i < table->shard_count; i++) smg_file_unmap(&table->shards[i].file);
    smg_arena_destroy(table->arena);
}

int smg_safetensors_count(const smg_safetensors *table) {
    return table->tensors.count;
}

const smg_import_tensor *smg_safetensors_at(const smg_safetensors *table, int index) {
    if (index < 0 || index >= table->tensors.count) return NULL;
    return &table->tensors.items[index];
}

const smg_import_tensor *smg_safetensors_find(const smg_safetensors *table, const char *name) {
    void *found = NULL;
    if (!smg_map_get(table->by_name, name, strlen(name), &found)) return NULL;
    return &table->tensors.items[(uintptr_t)found - 1];
}

void smg_safetensors_drop(const smg_safetensors *table, const smg_import_tensor *tensor) {
    const smg_mapped_file *file = &table->shards[tensor->file].file;
    if (file->data == NULL) return;
    smg_file_drop_pages(file, (size_t)(tensor->data - file->data), tensor->bytes);
}
