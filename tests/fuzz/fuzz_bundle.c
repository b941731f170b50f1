/* Bytes as a bundle whose header is right (the hash would keep a fuzzer out): whatever is read is verified, and
 * written again it reads as the same. */
#include "fuzz.h"

#include "bundle/bundle.h"

enum { HEADER_BYTES = 32, MOST_BYTES = 1 << 20 };

static bool find_any(void *user, int source, smg_storage storage, int64_t elements, const void **out_data) {
    *out_data = user;
    return source % 2 != 0 && elements * smg_storage_host_bytes(storage) <= MOST_BYTES;
}

static void mend_header(uint8_t *bytes, size_t size) {
    static const char magic[8] = {'S', 'M', 'G', 'B', 'N', 'D', 'L', 0};
    const uint64_t content = size - HEADER_BYTES;
    const uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, bytes + HEADER_BYTES, (size_t)content);
    memset(bytes, 0, HEADER_BYTES);
    memcpy(bytes, magic, sizeof(magic));
    bytes[8] = SMG_BUNDLE_VERSION;
    for (size_t i = 0; i < 8; i++) {
        bytes[16 + i] = (uint8_t)(content >> (8 * i));
        bytes[24 + i] = (uint8_t)(hash >> (8 * i));
    }
}

static void check_again(smg_context *ctx, const smg_bundle *bundle, const smg_bundle_constants *from) {
    smg_arena *arena = NULL;
    smg_bundle *again = NULL;
    smg_text text;
    FUZZ_CHECK(smg_arena_create(ctx, &arena) == SMG_OK);
    smg_text_init(&text, ctx);
    smg_bundle_write(bundle, &text);
    FUZZ_CHECK(smg_text_status(&text) == SMG_OK);
    FUZZ_CHECK(smg_bundle_read(arena, text.data, text.length, from, &again) == SMG_OK);
    FUZZ_CHECK(again->buffers.count == bundle->buffers.count && again->variants.count == bundle->variants.count);
    smg_text_free(&text);
    smg_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t weights[MOST_BYTES];
    const smg_bundle_constants from = {.find = find_any, .user = weights};
    smg_context *ctx = fuzz_context();
    smg_arena *arena = NULL;
    smg_bundle *bundle = NULL;
    uint8_t *bytes = malloc(size != 0 ? size : 1);
    FUZZ_CHECK(bytes != NULL && smg_arena_create(ctx, &arena) == SMG_OK);
    if (size != 0) memcpy(bytes, data, size);
    if (size >= HEADER_BYTES) mend_header(bytes, size);
    smg_status status = smg_bundle_read(arena, bytes, size, &from, &bundle);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (bundle != NULL));
    if (bundle != NULL) {
        const int64_t sizes[] = {1, 2, 1000, 7, 512, 1, 1, 1};
        int count = smg_size_symbol_count(bundle->sizes);
        int chosen = count <= (int)SMG_COUNT_OF(sizes) ? smg_bundle_choose(bundle, sizes) : 0;
        FUZZ_CHECK(chosen >= 0 && chosen < bundle->variants.count);
        check_again(ctx, bundle, &from);
    }
    free(bytes);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
    return 0;
}
