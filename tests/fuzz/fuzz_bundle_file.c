/* Bytes as a bundle's file whose header is right (its hash would keep a fuzzer out), read from memory and by calls: what
 * one way takes, the other takes; classes, head and weights are read, nothing is believed. */
#include "fuzz.h"

#include "bundle/file.h"

enum { HEADER_BYTES = 64 };

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static bool read_bytes(void *user, int64_t offset, void *into, size_t count) {
    const bytes *b = user;
    FUZZ_CHECK(offset >= 0 && (uint64_t)offset <= b->size && count <= b->size - (size_t)offset);
    memcpy(into, b->data + offset, count);
    return true;
}

static uint64_t get(const uint8_t *at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put(uint8_t *at, uint64_t value) {
    for (size_t i = 0; i < 8; i++) at[i] = (uint8_t)(value >> (8 * i));
}

/* Version, order, size and the index's hash. */
static void mend_header(uint8_t *data, size_t size) {
    static const uint8_t start[16] = {'S', 'M', 'G', 'B', '\r', '\n', 0x1a, '\n', SMG_BFILE_VERSION,
                                      0,   0,   0,   4,   3,    2,    1};
    memcpy(data, start, sizeof(start));
    put(data + 16, size);
    uint64_t offset = get(data + 40), count = get(data + 48);
    if (offset <= size && count <= size - offset)
        put(data + 56, smg_hash_bytes(SMG_HASH_SEED, data + offset, (size_t)count));
}

static smg_status read_all(const smg_bfile_source *source) {
    smg_context *ctx = fuzz_context();
    smg_arena *arena = NULL;
    smg_bfile *file = NULL;
    const char *head = NULL;
    FUZZ_CHECK(smg_arena_create(ctx, &arena) == SMG_OK);
    smg_status status = smg_bfile_read(arena, source, "fuzz", &file);
    for (int i = 0; status == SMG_OK && i < file->class_count; i++) {
        smg_bundle *bundle = NULL;
        smg_target needs;
        int chosen = 0;
        status = smg_bfile_read_class(file, i, arena, &bundle);
        if (status == SMG_OK) FUZZ_CHECK(smg_bundle_needs(ctx, bundle, NULL, &needs) == SMG_OK);
        if (status == SMG_OK) FUZZ_CHECK(smg_bfile_choose(file, &file->classes[i].needs, &chosen) != SMG_FORMAT);
        smg_context_clear_error(ctx);
        if (status != SMG_OK) smg_fail(ctx, status, "a class");
    }
    if (status == SMG_OK) status = smg_bfile_check_weights(file);
    if (status == SMG_OK) status = smg_bfile_read_head(file, arena, &head);
    fuzz_check_status(ctx, status);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size != 0 ? size : 1);
    FUZZ_CHECK(copy != NULL);
    if (size != 0) memcpy(copy, data, size);
    if (size >= HEADER_BYTES) mend_header(copy, size);
    bytes all = {copy, size};
    const smg_bfile_source memory = {.bytes = (int64_t)size, .data = copy};
    const smg_bfile_source calls = {.bytes = (int64_t)size, .read = read_bytes, .user = &all};
    FUZZ_CHECK(read_all(&memory) == read_all(&calls));
    free(copy);
    return 0;
}
