/* array/npy.h: numbers in files: the types of their elements, and npy, numpy's array file. Needs nothing but base. */
#ifndef SMG_NPY_H
#define SMG_NPY_H

#include "base/base.h"

/* ---- element types of files --------------------------------------------------------------- */

/* name, safetensors word, npy descr ("" = npy has none), bytes per element */
#define SMG_IMPORT_DTYPE_MAP(X)                                                                                        \
    X(F32, "F32", "<f4", 4)                                                                                            \
    X(F16, "F16", "<f2", 2)                                                                                            \
    X(BF16, "BF16", "", 2)                                                                                             \
    X(F64, "F64", "<f8", 8)                                                                                            \
    X(I64, "I64", "<i8", 8)                                                                                            \
    X(I32, "I32", "<i4", 4)                                                                                            \
    X(I16, "I16", "<i2", 2)                                                                                            \
    X(I8, "I8", "|i1", 1)                                                                                              \
    X(U8, "U8", "|u1", 1)                                                                                              \
    X(BOOL, "BOOL", "|b1", 1)

typedef enum smg_import_dtype {
    SMG_IMPORT_DTYPE_NONE = 0, /* never in a successful result */
#define SMG_IMPORT_DTYPE_ROW(name, word, descr, bytes) SMG_IMPORT_##name,
    SMG_IMPORT_DTYPE_MAP(SMG_IMPORT_DTYPE_ROW)
#undef SMG_IMPORT_DTYPE_ROW
        SMG_IMPORT_DTYPE_COUNT
} smg_import_dtype;

#define SMG_IMPORT_MAX_RANK 8

const char *smg_import_dtype_word(smg_import_dtype dtype); /* "F32"; "?" when out of range */
size_t smg_import_dtype_bytes(smg_import_dtype dtype);     /* 0 when out of range */

/* `count` little-endian elements at `data` (any alignment) to float. Exact for every f16 and bf16,
 * subnormals included; f64 and i64 round to nearest; BOOL gives 0 or 1. INVALID for a dtype out of
 * range. */
smg_status smg_import_to_f32(smg_context *ctx, smg_import_dtype dtype, const uint8_t *data, int64_t count,
                             float *out_values);
/* The same for the integer types and BOOL. UNSUPPORTED for a float type. */
smg_status smg_import_to_i64(smg_context *ctx, smg_import_dtype dtype, const uint8_t *data, int64_t count,
                             int64_t *out_values);

/* ---- npy ---------------------------------------------------------------------------------- */

typedef struct smg_npy {
    smg_import_dtype dtype;
    int rank;
    int64_t dims[SMG_IMPORT_MAX_RANK];
    int64_t count;
    const uint8_t *data; /* inside the mapped file; little-endian, C order, any alignment */
    size_t bytes;
    smg_mapped_file file;
} smg_npy;

/* Versions 1 to 3; little-endian; C order (Fortran order only where it is the same). */
smg_status smg_npy_open(smg_context *ctx, const char *path, smg_npy *out_array);
smg_status smg_npy_open_bytes(smg_context *ctx, const char *label, const void *data, size_t size, smg_npy *out_array);
void smg_npy_close(smg_npy *array); /* zeroed array is fine */
/* Writes F32, I64, I32 or BOOL from host-order elements at `data`, whole or not at all. */
smg_status smg_npy_write(smg_context *ctx, const char *path, smg_import_dtype dtype, int rank, const int64_t *dims,
                         const void *data);

#endif
