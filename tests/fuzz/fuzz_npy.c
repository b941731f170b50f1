/* Bytes as an npy file: whatever opens must be readable to its last byte. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    smg_context *ctx = fuzz_context();
    smg_npy array;
    smg_status status = smg_npy_open_bytes(ctx, "fuzz", data, size, &array);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (array.data != NULL));
    if (status == SMG_OK) {
        FUZZ_CHECK(array.bytes == (size_t)array.count * smg_import_dtype_bytes(array.dtype));
        float *values = malloc((size_t)array.count * sizeof(float) + 1);
        FUZZ_CHECK(values != NULL);
        FUZZ_CHECK(smg_import_to_f32(ctx, array.dtype, array.data, array.count, values) == SMG_OK);
        free(values);
    }
    smg_npy_close(&array);
    smg_context_destroy(ctx);
    return 0;
}
