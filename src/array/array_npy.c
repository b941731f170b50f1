/* npy, numpy's array file: magic, version, a Python dict literal as header, then the elements.
 *
 * Only what smg needs is read: plain little-endian numbers in C order. The header is parsed as the
 * three-key dict that the format requires, not as Python; anything else is a malformed file.
 */
#include "array/npy.h"

#include <stdio.h>

#define HEADER_LIMIT 65536u /* numpy's own limit for untrusted files is 10000 */

static const struct {
    const char *descr;
    smg_import_dtype dtype;
} descr_rows[] = {
#define SMG_IMPORT_DTYPE_ROW(name, word, descr, bytes) {descr, SMG_IMPORT_##name},
    SMG_IMPORT_DTYPE_MAP(SMG_IMPORT_DTYPE_ROW)
#undef SMG_IMPORT_DTYPE_ROW
    /* one byte has no order: all of these are written by someone */
    {"<i1", SMG_IMPORT_I8},
    {"<u1", SMG_IMPORT_U8},
    {"<b1", SMG_IMPORT_BOOL},
    {"|?", SMG_IMPORT_BOOL},
};

typedef struct npy_reader {
    smg_context *ctx;
    const char *label;
    const char *at, *end;
    smg_npy *array;
    bool fortran;
} npy_reader;

static void skip_space(npy_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) r->at++;
}

static bool take(npy_reader *r, char c) {
    skip_space(r);
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static smg_status fail_header(const npy_reader *r, const char *what) {
    return smg_fail(r->ctx, SMG_FORMAT, "'%s': the npy header %s", r->label, what);
}

/* A quoted string without escapes. */
static smg_status read_quoted(npy_reader *r, const char **out_text, size_t *out_length) {
    skip_space(r);
    if (r->at >= r->end || (*r->at != '\'' && *r->at != '"')) {
        return fail_header(r, "lacks a quoted word");
    }
    char quote = *r->at++;
    const char *stop = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (stop == NULL) return fail_header(r, "has a word without closing quote");
    *out_text = r->at;
    *out_length = (size_t)(stop - r->at);
    r->at = stop + 1;
    return SMG_OK;
}

static smg_status read_descr(npy_reader *r) {
    const char *text = NULL;
    size_t length = 0;
    skip_space(r);
    if (r->at < r->end && *r->at == '[') {
        return smg_fail(r->ctx, SMG_UNSUPPORTED, "'%s' holds records, not plain numbers", r->label);
    }
    SMG_TRY(read_quoted(r, &text, &length));
    for (size_t i = 0; length != 0 && i < SMG_COUNT_OF(descr_rows); i++) {
        if (strlen(descr_rows[i].descr) == length && memcmp(descr_rows[i].descr, text, length) == 0) {
            r->array->dtype = descr_rows[i].dtype;
            return SMG_OK;
        }
    }
    return smg_fail(r->ctx, SMG_UNSUPPORTED, "'%s' has elements of type '%.*s', which smg does not read", r->label,
                    (int)(length < 40 ? length : 40), text);
}

static smg_status read_order(npy_reader *r) {
    skip_space(r);
    size_t left = (size_t)(r->end - r->at);
    r->fortran = left >= 4 && memcmp(r->at, "True", 4) == 0;
    if (!r->fortran && !(left >= 5 && memcmp(r->at, "False", 5) == 0)) {
        return fail_header(r, "has a fortran_order that is neither True nor False");
    }
    r->at += r->fortran ? 4 : 5;
    return SMG_OK;
}

static smg_status read_shape(npy_reader *r) {
    smg_npy *array = r->array;
    if (!take(r, '(')) return fail_header(r, "has a shape that is not a tuple");
    array->count = 1;
    for (bool comma = true; !take(r, ')'); comma = take(r, ',')) {
        skip_space(r);
        if (!comma || r->at >= r->end || *r->at < '0' || *r->at > '9') {
            return fail_header(r, "has a shape that is not a tuple of sizes");
        }
        int64_t dim = 0;
        for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
            if (!smg_mul_i64(dim, 10, &dim) || !smg_add_i64(dim, *r->at - '0', &dim)) {
                return fail_header(r, "has a size that overflows 64 bits");
            }
        }
        if (r->at < r->end && *r->at == 'L') r->at++; /* Python 2 wrote longs so */
        if (array->rank == SMG_IMPORT_MAX_RANK) {
            return smg_fail(r->ctx, SMG_UNSUPPORTED, "'%s' has a rank above %d", r->label, SMG_IMPORT_MAX_RANK);
        }
        array->dims[array->rank++] = dim;
        if (!smg_mul_i64(array->count, dim, &array->count)) {
            return fail_header(r, "has a shape whose product overflows 64 bits");
        }
    }
    return SMG_OK;
}

static smg_status read_dict(npy_reader *r) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
    int seen = 0;
    if (!take(r, '{')) return fail_header(r, "is not a dict");
    for (bool comma = true; !take(r, '}'); comma = take(r, ',')) {
        const char *key = NULL;
        size_t length = 0;
        if (!comma) return fail_header(r, "has entries without a comma between");
        SMG_TRY(read_quoted(r, &key, &length));
        if (!take(r, ':')) return fail_header(r, "has a key without a value");
        int bit = 0;
        if (length == 5 && memcmp(key, "descr", 5) == 0) bit = DESCR;
        if (length == 13 && memcmp(key, "fortran_order", 13) == 0) bit = ORDER;
        if (length == 5 && memcmp(key, "shape", 5) == 0) bit = SHAPE;
        if (bit == 0) return fail_header(r, "has a key besides descr, fortran_order, shape");
        if ((seen & bit) != 0) return fail_header(r, "has a key twice");
        seen |= bit;
        SMG_TRY(bit == DESCR ? read_descr(r) : bit == ORDER ? read_order(r) : read_shape(r));
    }
    skip_space(r);
    if (r->at != r->end) return fail_header(r, "goes on after its dict");
    if (seen != ALL) return fail_header(r, "lacks one of descr, fortran_order, shape");
    return SMG_OK;
}

/* Finds the header's bytes; *out_data is where the elements start. */
static smg_status find_header(npy_reader *r, const uint8_t *bytes, size_t size, size_t *out_data) {
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return smg_fail(r->ctx, SMG_FORMAT, "'%s' is no npy file", r->label);
    }
    if (bytes[6] < 1 || bytes[6] > 3) {
        return smg_fail(r->ctx, SMG_UNSUPPORTED, "'%s' has npy version %d.%d; 1 to 3 are read", r->label, bytes[6],
                        bytes[7]);
    }
    size_t start = bytes[6] == 1 ? 10 : 12;
    if (size < start) return smg_fail(r->ctx, SMG_FORMAT, "'%s' is cut in its header", r->label);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (start == 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > HEADER_LIMIT || length > size - start) {
        return smg_fail(r->ctx, SMG_FORMAT, "'%s': an npy header of %zu bytes in a file of %zu", r->label, length,
                        size);
    }
    r->at = (const char *)bytes + start;
    r->end = r->at + length;
    *out_data = start + length;
    return SMG_OK;
}

static smg_status read_array(npy_reader *r, const uint8_t *bytes, size_t size) {
    size_t data_start = 0;
    SMG_TRY(find_header(r, bytes, size, &data_start));
    SMG_TRY(read_dict(r));
    smg_npy *array = r->array;
    int longer = 0; /* dimensions above 1: with at most one, both orders are the same */
    for (int i = 0; i < array->rank; i++) longer += array->dims[i] > 1;
    if (r->fortran && longer > 1 && array->count > 0) {
        return smg_fail(r->ctx, SMG_UNSUPPORTED,
                        "'%s' is in Fortran order, C order is read: save numpy.ascontiguousarray of it", r->label);
    }
    int64_t needed = 0;
    if (!smg_mul_i64(array->count, (int64_t)smg_import_dtype_bytes(array->dtype), &needed)) {
        return fail_header(r, "has a shape whose bytes overflow 64 bits");
    }
    if ((uint64_t)needed != size - data_start) {
        return smg_fail(r->ctx, SMG_FORMAT, "'%s' needs %lld bytes of elements and has %zu", r->label,
                        (long long)needed, size - data_start);
    }
    array->bytes = (size_t)needed;
    array->data = bytes + data_start;
    return SMG_OK;
}

smg_status smg_npy_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size, smg_npy *out_array) {
    memset(out_array, 0, sizeof(*out_array));
    npy_reader r = {.ctx = ctx, .label = label, .array = out_array};
    smg_status status = read_array(&r, data, size);
    if (status != SMG_OK) memset(out_array, 0, sizeof(*out_array));
    return status;
}

smg_status smg_npy_open(smg_context *ctx, const char *path, smg_npy *out_array) {
    memset(out_array, 0, sizeof(*out_array));
    smg_mapped_file file;
    SMG_TRY(smg_file_map(ctx, path, &file));
    smg_status status = smg_npy_open_bytes(ctx, path, file.data, file.size, out_array);
    if (status != SMG_OK) {
        smg_file_unmap(&file);
        return status;
    }
    out_array->file = file;
    return SMG_OK;
}

void smg_npy_close(smg_npy *array) {
    smg_file_unmap(&array->file);
    memset(array, 0, sizeof(*array));
}

/* ---- writing -------------------------------------------------------------------------------- */

static void store_elements(uint8_t *to, const void *data, int64_t count, size_t size) {
    const uint8_t *from = data;
    for (int64_t i = 0; i < count; i++, from += size, to += size) {
        uint64_t bits = 0;
        if (size == 8) {
            memcpy(&bits, from, 8);
        } else if (size == 4) {
            uint32_t word;
            memcpy(&word, from, 4);
            bits = word;
        } else if (size == 2) {
            uint16_t half;
            memcpy(&half, from, 2);
            bits = half;
        } else {
            bits = *from != 0;
        }
        for (size_t b = 0; b < size; b++) to[b] = (uint8_t)(bits >> (8 * b));
    }
}

/* Header of version 1, padded so that the elements start at a multiple of 64. */
static size_t make_header(char header[512], const char *descr, int rank, const int64_t *dims) {
    int length = snprintf(header + 10, 502, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++) {
        length +=
            snprintf(header + 10 + length, (size_t)(502 - length), i == 0 ? "%lld" : ", %lld", (long long)dims[i]);
    }
    length += snprintf(header + 10 + length, (size_t)(502 - length), rank == 1 ? ",), }" : "), }");
    while ((10 + length + 1) % 64 != 0) header[10 + length++] = ' ';
    header[10 + length++] = '\n';
    memcpy(header, "\x93NUMPY\x01", 8); /* the literal's own NUL is the minor version */
    header[8] = (char)(length & 0xff);
    header[9] = (char)(length >> 8);
    return (size_t)length + 10;
}

smg_status smg_npy_write(smg_context *ctx, const char *path, smg_import_dtype dtype, int rank, const int64_t *dims,
                         const void *data) {
    if (dtype != SMG_IMPORT_F32 && dtype != SMG_IMPORT_F16 && dtype != SMG_IMPORT_I64 && dtype != SMG_IMPORT_I32 &&
        dtype != SMG_IMPORT_BOOL) {
        return smg_fail(ctx, SMG_INVALID, "cannot write '%s' with elements of type %s", path,
                        smg_import_dtype_word(dtype));
    }
    if (rank < 0 || rank > SMG_IMPORT_MAX_RANK) {
        return smg_fail(ctx, SMG_INVALID, "cannot write '%s' with rank %d", path, rank);
    }
    size_t element = smg_import_dtype_bytes(dtype);
    int64_t count = 1;
    int64_t bytes = 0;
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        fits = fits && dims[i] >= 0 && smg_mul_i64(count, dims[i], &count);
    }
    if (!fits || !smg_mul_i64(count, (int64_t)element, &bytes) || bytes > PTRDIFF_MAX - 512) {
        return smg_fail(ctx, SMG_INVALID, "cannot write '%s': its shape has no size", path);
    }
    char header[512];
    size_t header_bytes = make_header(header, descr_rows[dtype - 1].descr, rank, dims);
    size_t total = header_bytes + (size_t)bytes;
    uint8_t *file = smg_alloc(ctx, total, 1);
    if (file == NULL) return SMG_MEMORY;
    memcpy(file, header, header_bytes);
    store_elements(file + header_bytes, data, count, element);
    smg_status status = smg_file_write_atomic(ctx, path, file, total);
    smg_free(ctx, file, total);
    return status;
}
