/* Bytes as a safetensors file: whatever opens must be readable to its last byte. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    smg_context *ctx = fuzz_context();
    smg_safetensors *table = NULL;
    smg_status status = smg_safetensors_open_bytes(ctx, "fuzz", data, size, &table);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (table != NULL));
    for (int i = 0; status == SMG_OK && i < smg_safetensors_count(table); i++) {
        const smg_import_tensor *tensor = smg_safetensors_at(table, i);
        FUZZ_CHECK(smg_safetensors_find(table, tensor->name) == tensor);
        FUZZ_CHECK(tensor->bytes == (size_t)tensor->count * smg_import_dtype_bytes(tensor->dtype));
        float *values = malloc((size_t)tensor->count * sizeof(float) + 1);
        FUZZ_CHECK(values != NULL);
        FUZZ_CHECK(smg_import_to_f32(ctx, tensor->dtype, tensor->data, tensor->count, values) == SMG_OK);
        free(values);
    }
    smg_safetensors_close(table);
    smg_context_destroy(ctx);
    return 0;
}
