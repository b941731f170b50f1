/* compile_tensor.c: host arrays: made up, read, written, converted.
 *
 * What is made up depends only on the seed and the input's name, so that a device, the interpreter and
 * a second run see the same numbers. */
#include <math.h>

#include "compile/compile.h"

int64_t smg_tensor_elements(const smg_tensor *tensor) {
    int64_t count = 1;
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

void smg_tensor_set(smg_tensor *tensor, int64_t index, double value) {
    smg_host_set(type_of(tensor), tensor->data, index, value);
}

smg_status smg_tensor_make(smg_context *ctx, const smg_graph *g, smg_node_id id, const int64_t *symbols,
                           smg_arena *arena, smg_tensor *out) {
    const smg_node *node = smg_graph_node(g, id);
    int64_t count = 1;
    *out = (smg_tensor){.name = node->name, .type = smg_type_word(node->type), .rank = node->rank};
    for (int d = 0; d < node->rank; d++) {
        if (!smg_size_eval(g->sizes, node->dims[d], symbols, &out->dims[d]) || out->dims[d] < 0 ||
            !smg_mul_i64(count, out->dims[d], &count)) {
            return smg_fail(ctx, SMG_INVALID, "'%s' has more than 2^63 elements, or no valid size along axis %d",
                            node->name, d);
        }
    }
    int64_t bytes = 0;
    if (!smg_mul_i64(count, smg_type_host_bytes(node->type), &bytes) || bytes > PTRDIFF_MAX - 16) {
        return smg_fail(ctx, SMG_INVALID, "'%s' has too many elements at these sizes", node->name);
    }
    out->bytes = (size_t)bytes;
    out->data = smg_arena_alloc(arena, out->bytes + 16, 1);
    return out->data != NULL ? SMG_OK : SMG_MEMORY;
}

/* One number a row, or an element for each place in it? */
static bool is_mask(const smg_graph *g, const smg_node *input) {
    bool mask = input->rank > 1 && smg_type_kind(input->type) == SMG_KIND_BOOL;
    for (int d = 1; d < input->rank; d++) mask = mask || !smg_size_is_one(g->sizes, input->dims[d]);
    return mask;
}

/* most: that a row has, or ever has. */
static smg_status check_rows(smg_context *ctx, const smg_node *input, bool mask, smg_lengths lengths, int64_t most) {
    for (int64_t r = 0; r < lengths.count; r++) {
        int64_t length = lengths.rows[r];
        if (length < 0)
            return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: length %lld is below 0", input->name, (long long)r,
                            (long long)length);
        if (mask && length > most)
            return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: length %lld, a row has %lld", input->name,
                            (long long)r, (long long)length, (long long)most);
    }
    return SMG_OK;
}

smg_status smg_lengths_check(smg_context *ctx, const smg_graph *g, const smg_node *input, smg_lengths lengths) {
    int64_t least = 0, most = 0;
    if (smg_type_kind(input->type) == SMG_KIND_FLOAT || input->rank == 0)
        return smg_fail(ctx, SMG_UNSUPPORTED, "input '%s' is %s: lengths are given to rows of integers or bools",
                        input->name, smg_type_word(input->type));
    smg_size_bounds(g->sizes, input->dims[input->rank - 1], &least, &most);
    return check_rows(ctx, input, is_mask(g, input), lengths, most);
}

/* Of a tensor at its sizes; *out_most: elements of a row, all of which lie along the last axis. */
static smg_status check_tensor(smg_context *ctx, const smg_graph *g, const smg_node *input, smg_lengths lengths,
                               const smg_tensor *t, int64_t *out_most) {
    SMG_TRY(smg_lengths_check(ctx, g, input, lengths));
    int64_t rows = t->dims[0], elements = smg_tensor_elements(t);
    bool mask = is_mask(g, input);
    *out_most = mask ? t->dims[t->rank - 1] : 1;
    if (elements != rows * *out_most)
        return smg_fail(ctx, SMG_UNSUPPORTED, "input '%s' has %lld elements for %lld rows of %lld", input->name,
                        (long long)elements, (long long)rows, (long long)*out_most);
    if (lengths.count != rows)
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %lld rows, %lld lengths are given", input->name,
                        (long long)rows, (long long)lengths.count);
    return check_rows(ctx, input, mask, lengths, *out_most);
}

smg_status smg_tensor_set_lengths(smg_context *ctx, const smg_graph *g, const smg_node *input, smg_lengths lengths,
                                  smg_tensor *t) {
    int64_t most = 0;
    SMG_TRY(check_tensor(ctx, g, input, lengths, t, &most));
    bool mask = is_mask(g, input);
    for (int64_t r = 0; r < lengths.count; r++) {
        for (int64_t i = 0; mask && i < most; i++) smg_tensor_set(t, r * most + i, i < lengths.rows[r]);
        if (!mask) smg_tensor_set(t, r, (double)lengths.rows[r]);
    }
    return SMG_OK;
}

smg_status smg_tensor_check_lengths(smg_context *ctx, const smg_graph *g, const smg_node *input, smg_lengths lengths,
                                    const smg_tensor *t) {
    int64_t most = 0;
    SMG_TRY(check_tensor(ctx, g, input, lengths, t, &most));
    bool mask = is_mask(g, input);
    for (int64_t at = 0; at < lengths.count * most; at++) {
        int64_t row = at / most, length = lengths.rows[row];
        double given = smg_tensor_get(t, at);
        bool same = mask ? given == (at % most < length) : given == (double)length;
        if (same) continue;
        return smg_fail(ctx, SMG_INVALID, "input '%s', row %lld: element %lld is %g, and the row's length is %lld",
                        input->name, (long long)row, (long long)(at % most), given, (long long)length);
    }
    return SMG_OK;
}

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Does `id` read `input` through views and conversions alone? */
static bool comes_from(const smg_graph *g, smg_node_id id, smg_node_id input) {
    while (id != input) {
        const smg_node *node = smg_graph_node(g, id);
        bool passes = smg_node_class(node) == SMG_CLASS_VIEW || smg_op_converts(node->op);
        if (!passes) return false;
        id = node->operand[0];
    }
    return true;
}

/* The rows of the smallest table that an input indexes; 0: it indexes none. */
static int64_t table_rows(const smg_graph *g, smg_node_id input, const int64_t *symbols) {
    int64_t limit = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (smg_node_class(node) != SMG_CLASS_GATHER || !comes_from(g, node->operand[1], input)) continue;
        int64_t rows = 0;
        const smg_node *table = smg_graph_node(g, node->operand[0]);
        if (!smg_size_eval(g->sizes, table->dims[0], symbols, &rows)) continue;
        if (limit == 0 || rows < limit) limit = rows;
    }
    return limit;
}

bool smg_tensor_outside(const smg_graph *g, smg_node_id input, const int64_t *symbols, const smg_tensor *tensor,
                        int64_t *out_element) {
    int64_t rows = table_rows(g, input, symbols);
    int64_t count = rows > 0 ? smg_tensor_elements(tensor) : 0;
    for (int64_t i = 0; i < count; i++) {
        double value = smg_tensor_get(tensor, i);
        if (value >= 0 && value < (double)rows) continue;
        *out_element = i;
        return true;
    }
    return false;
}

smg_status smg_tensor_fill(smg_context *ctx, const smg_graph *g, smg_node_id id, const int64_t *symbols, smg_fill how,
                           uint64_t seed, smg_arena *arena, smg_tensor *out) {
    SMG_TRY(smg_tensor_make(ctx, g, id, symbols, arena, out));
    if (how == SMG_FILL_ZEROS) return SMG_OK;
    smg_type type = type_of(out);
    int64_t count = smg_tensor_elements(out);
    for (int64_t i = 0; how == SMG_FILL_ONES && i < count; i++) smg_tensor_set(out, i, 1);
    if (how == SMG_FILL_ONES) return SMG_OK;
    int64_t limit = table_rows(g, id, symbols); /* one above the largest integer that makes sense */
    if (limit == 0) limit = 2;                  /* a mask */
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

static smg_status convert_npy(smg_context *ctx, const smg_node *node, const smg_npy *npy, const char *path,
                              smg_arena *arena, smg_tensor *out) {
    bool want_float = smg_type_kind(node->type) == SMG_KIND_FLOAT;
    *out = (smg_tensor){.name = node->name, .type = smg_type_word(node->type), .rank = npy->rank};
    memcpy(out->dims, npy->dims, (size_t)npy->rank * sizeof(*out->dims));
    if (want_float != is_float(npy->dtype)) {
        return smg_fail(ctx, SMG_INVALID, "'%s' holds %s, input '%s' is %s", path, smg_import_dtype_word(npy->dtype),
                        node->name, out->type);
    }
    out->bytes = (size_t)(npy->count * smg_type_host_bytes(node->type));
    out->data = smg_arena_alloc(arena, out->bytes + 16, 1);
    if (out->data == NULL) return SMG_MEMORY;
    return want_float ? copy_floats(ctx, npy, arena, out) : copy_ints(ctx, npy, path, arena, out);
}

smg_status smg_tensor_load(smg_context *ctx, const smg_graph *g, smg_node_id id, const char *path, smg_arena *arena,
                           smg_tensor *out) {
    smg_npy npy = {0};
    SMG_TRY(smg_npy_open(ctx, path, &npy));
    smg_status status = convert_npy(ctx, smg_graph_node(g, id), &npy, path, arena, out);
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

smg_status smg_tensor_save(smg_context *ctx, const char *path, const smg_tensor *tensor) {
    static const smg_import_dtype dtypes[] = {[SMG_TYPE_F32] = SMG_IMPORT_F32,
                                              [SMG_TYPE_F16] = SMG_IMPORT_F16,
                                              [SMG_TYPE_I32] = SMG_IMPORT_I32,
                                              [SMG_TYPE_I64] = SMG_IMPORT_I64,
                                              [SMG_TYPE_BOOL] = SMG_IMPORT_BOOL};
    if (type_of(tensor) == SMG_TYPE_BF16) return save_wide(ctx, path, tensor);
    return smg_npy_write(ctx, path, dtypes[type_of(tensor)], tensor->rank, tensor->dims, tensor->data);
}

smg_status smg_tensor_to_array(const smg_tensor *tensor, smg_arena *arena, smg_array *out) {
    *out = (smg_array){.type = type_of(tensor), .rank = tensor->rank};
    memcpy(out->dims, tensor->dims, sizeof(tensor->dims));
    int64_t count = smg_tensor_elements(tensor);
    out->data = SMG_ARENA_ARRAY(arena, double, (size_t)count + 1);
    if (out->data == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < count; i++) out->data[i] = smg_tensor_get(tensor, i);
    return SMG_OK;
}
