/* What every fuzz target shares: the entry point that libFuzzer and replay_main.c call, a context
 * whose allocator limits what one input may ask for, and a check that stops the run. */
#ifndef SMG_FUZZ_H
#define SMG_FUZZ_H

#include <stdlib.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MEMORY_LIMIT ((size_t)256 << 20)

/* A failed check is a crash: that is how a fuzzer, and the replay, sees it. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) abort();                                                                                     \
    } while (0)

static inline void *fuzz_reallocate(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    return new_size > FUZZ_MEMORY_LIMIT ? NULL : realloc(pointer, new_size);
}

static inline smg_context *fuzz_context(void) {
    smg_context_desc desc = {.reallocate = fuzz_reallocate, .cache_dir = ""};
    smg_context *ctx = NULL;
    FUZZ_CHECK(smg_context_create(&desc, &ctx) == SMG_OK);
    return ctx;
}

/* Every failure has its sentence, every success none. */
static inline void fuzz_check_status(smg_context *ctx, smg_status status) {
    FUZZ_CHECK((status == SMG_OK) == (smg_context_error(ctx)[0] == '\0'));
    FUZZ_CHECK(status != SMG_INTERNAL);
}

#endif
