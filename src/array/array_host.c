/* array_host.c: host arrays: made up, read, written, as numbers. */
#include "array/array.h"
#include "op/op.h"

int64_t smg_tensor_elements(const smg_tensor *tensor) {
    int64_t count = 1;
    if (tensor == NULL) return 0;
    for (int d = 0; d < tensor->rank; d++) count *= tensor->dims[d];
    return count;
}

static smg_type type_of(const smg_tensor *tensor) {
    smg_type type = SMG_TYPE_F32;
    if (tensor->type != NULL) smg_type_find(tensor->type, &type);
    return type;
}

double smg_tensor_get(const smg_tensor *tensor, int64_t index) {
    return smg_host_get(type_of(tensor), tensor->data, index);
}

void smg_tensor_read(const smg_tensor *tensor, int64_t from, int64_t count, double *out) {
    smg_type type = type_of(tensor);
    for (int64_t i = 0; i < count; i++) out[i] = smg_host_get(type, tensor->data, from + i);
}

void smg_tensor_set(smg_tensor *tensor, int64_t index, double value) {
    smg_host_set(type_of(tensor), tensor->data, index, value);
}

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

smg_status smg_tensor_fill_port(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                                const int64_t *symbols, smg_fill how, uint64_t seed, smg_arena *arena,
                                smg_tensor *out) {
    int64_t count = 0, limit = 0; /* one above the largest integer that makes sense */
    SMG_TRY(smg_port_shape(ctx, interface, port, symbols, out, &count));
    out->bytes = (size_t)(count * smg_storage_host_bytes(port->type));
    out->data = smg_arena_alloc(arena, out->bytes + 16, 1);
    if (out->data == NULL) return SMG_MEMORY;
    smg_type type = type_of(out);
    if (how != SMG_FILL_RANDOM) smg_port_fill(port->type, how == SMG_FILL_ONES, count, out->data);
    if (how != SMG_FILL_RANDOM) return SMG_OK;
    if (!smg_size_eval(interface->sizes, port->below, symbols, &limit) || limit < 1) limit = 2; /* a mask */
    uint64_t state = smg_hash_text(smg_hash_u64(SMG_HASH_SEED, seed), out->name);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = next_random(&state);
        double value = 0;
        switch (smg_type_kind(type)) {
        /* Multiples of 1/1024: exact in every float type. */
        case SMG_KIND_FLOAT: value = (double)(bits % 2048) / 1024.0 - 1.0; break;
        case SMG_KIND_INT: value = (double)(bits % (uint64_t)limit); break;
        case SMG_KIND_BOOL: value = (double)(bits & 1); break;
        }
        smg_host_set(type, out->data, i, value);
    }
    return SMG_OK;
}

static bool is_float(smg_import_dtype dtype) {
    return dtype == SMG_IMPORT_F32 || dtype == SMG_IMPORT_F16 || dtype == SMG_IMPORT_BF16 || dtype == SMG_IMPORT_F64;
}

static smg_status copy_floats(smg_context *ctx, const smg_npy *npy, smg_arena *arena, smg_tensor *out) {
    float *values = SMG_ARENA_ARRAY(arena, float, (size_t)npy->count + 1);
    if (values == NULL) return SMG_MEMORY;
    SMG_TRY(smg_import_to_f32(ctx, npy->dtype, npy->data, npy->count, values));
    for (int64_t i = 0; i < npy->count; i++) smg_tensor_set(out, i, (double)values[i]);
    return SMG_OK;
}

static smg_status copy_ints(smg_context *ctx, const smg_npy *npy, const char *path, smg_arena *arena, smg_tensor *out) {
    int64_t *values = SMG_ARENA_ARRAY(arena, int64_t, (size_t)npy->count + 1);
    if (values == NULL) return SMG_MEMORY;
    SMG_TRY(smg_import_to_i64(ctx, npy->dtype, npy->data, npy->count, values));
    for (int64_t i = 0; i < npy->count; i++) {
        smg_tensor_set(out, i, (double)values[i]);
        if (smg_tensor_get(out, i) != (double)values[i]) {
            return smg_fail(ctx, SMG_INVALID, "'%s': element %lld is %lld, which %s does not hold", path, (long long)i,
                            (long long)values[i], out->type);
        }
    }
    return SMG_OK;
}

static smg_status convert_npy(smg_context *ctx, const smg_port *port, const smg_npy *npy, const char *path,
                              smg_arena *arena, smg_tensor *out) {
    *out = (smg_tensor){.name = port->name, .type = smg_storage_word(port->type), .rank = npy->rank};
    bool want_float = smg_type_kind(type_of(out)) == SMG_KIND_FLOAT;
    memcpy(out->dims, npy->dims, (size_t)npy->rank * sizeof(*out->dims));
    if (want_float != is_float(npy->dtype)) {
        return smg_fail(ctx, SMG_INVALID, "'%s' holds %s, input '%s' is %s", path, smg_import_dtype_word(npy->dtype),
                        port->name, out->type);
    }
    out->bytes = (size_t)(npy->count * smg_storage_host_bytes(port->type));
    out->data = smg_arena_alloc(arena, out->bytes + 16, 1);
    if (out->data == NULL) return SMG_MEMORY;
    return want_float ? copy_floats(ctx, npy, arena, out) : copy_ints(ctx, npy, path, arena, out);
}

smg_status smg_tensor_load(smg_context *ctx, const smg_port *port, const char *path, smg_arena *arena,
                           smg_tensor *out) {
    smg_npy npy = {0};
    SMG_TRY(smg_npy_open(ctx, path, &npy));
    smg_status status = convert_npy(ctx, port, &npy, path, arena, out);
    smg_npy_close(&npy);
    return status;
}

/* The format has no bf16. */
static smg_status save_wide(smg_context *ctx, const char *path, const smg_tensor *tensor) {
    size_t count = (size_t)smg_tensor_elements(tensor) + 1;
    float *values = smg_alloc(ctx, count, sizeof *values);
    if (values == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < (int64_t)count - 1; i++) values[i] = (float)smg_tensor_get(tensor, i);
    smg_status status = smg_npy_write(ctx, path, SMG_IMPORT_F32, tensor->rank, tensor->dims, values);
    smg_free(ctx, values, count * sizeof *values);
    return status;
}

static bool can_be_saved(const char *path, const smg_tensor *tensor) {
    smg_type type;
    if (path == NULL || tensor == NULL || tensor->data == NULL) return false;
    if (tensor->rank < 0 || tensor->rank > SMG_TENSOR_RANK) return false;
    for (int d = 0; d < tensor->rank; d++)
        if (tensor->dims[d] < 0) return false;
    return tensor->type == NULL || smg_type_find(tensor->type, &type);
}

static smg_status save(smg_context *ctx, const char *path, const smg_tensor *tensor) {
    static const smg_import_dtype dtypes[] = {[SMG_TYPE_F32] = SMG_IMPORT_F32,
                                              [SMG_TYPE_F16] = SMG_IMPORT_F16,
                                              [SMG_TYPE_I32] = SMG_IMPORT_I32,
                                              [SMG_TYPE_I64] = SMG_IMPORT_I64,
                                              [SMG_TYPE_BOOL] = SMG_IMPORT_BOOL};
    if (!can_be_saved(path, tensor))
        return smg_fail(ctx, SMG_INVALID, "smg_tensor_save: no path, or a tensor without data, of no type or shape");
    if (type_of(tensor) == SMG_TYPE_BF16) return save_wide(ctx, path, tensor);
    return smg_npy_write(ctx, path, dtypes[type_of(tensor)], tensor->rank, tensor->dims, tensor->data);
}

smg_status smg_tensor_save(smg_context *ctx, const char *path, const smg_tensor *tensor) {
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, save(ctx, path, tensor));
}
