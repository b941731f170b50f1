/* Memory: the caller's hook, arenas made of chained blocks, growable arrays, checked sizes.
 *
 * An arena owns everything allocated from it and frees it at once, so the IR of a phase needs no
 * destructors. Blocks grow from 4 KiB to 1 MiB; what is larger gets a block of its own, behind the
 * current one, so that the current one stays in use. Under AddressSanitizer the unused parts of a
 * block are poisoned and a gap follows each piece: overruns inside arenas are found too.
 */
#include "base/base_internal.h"

#include <stdio.h>

#if !defined(__has_feature) /* clang's way to say what gcc defines */
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SMG_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SMG_TSAN 1
#endif

#if defined(SMG_ASAN)
#include <sanitizer/asan_interface.h>
#define ARENA_GAP ((size_t)16)
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ARENA_GAP ((size_t)0)
#endif

#if defined(SMG_TSAN)
#include <sanitizer/tsan_interface.h>
static const char drivers_memory = 0; /* its address alone */
#endif

#define ARENA_ALIGN 16u
#define ARENA_FIRST_BLOCK ((size_t)4 << 10)
#define ARENA_LAST_BLOCK ((size_t)1 << 20)
#define ARENA_MOST_KEPT ((size_t)64 << 20)

/* ---- memory of drivers ---------------------------------------------------------------------- */

void smg_driver_memory_returns(void) {
#if defined(SMG_TSAN)
    __tsan_release((void *)(uintptr_t)&drivers_memory);
#endif
}

void smg_driver_memory_came(void) {
#if defined(SMG_TSAN)
    __tsan_acquire((void *)(uintptr_t)&drivers_memory);
#endif
}

/* ---- the hook ------------------------------------------------------------------------------ */

/* A block of zero bytes still has an address, and the hook sees one size for its whole life. */
static size_t at_least_one(size_t bytes) {
    return bytes != 0 ? bytes : 1;
}

void *smg_memory_raw(smg_context *ctx, size_t bytes) {
    bytes = at_least_one(bytes);
    void *memory = ctx->reallocate(ctx->user, NULL, 0, bytes);
    if (memory == NULL) smg_fail(ctx, SMG_MEMORY, "out of memory: %zu bytes asked", bytes);
    return memory;
}

static bool multiply_sizes(smg_context *ctx, size_t count, size_t size, size_t *out_bytes) {
    if (size != 0 && count > PTRDIFF_MAX / size) {
        smg_fail(ctx, SMG_MEMORY, "out of memory: %zu items of %zu bytes asked", count, size);
        return false;
    }
    *out_bytes = count * size;
    return true;
}

void *smg_alloc(smg_context *ctx, size_t count, size_t size) {
    size_t bytes;
    if (!multiply_sizes(ctx, count, size, &bytes)) return NULL;
    void *memory = smg_memory_raw(ctx, bytes);
    if (memory != NULL) memset(memory, 0, at_least_one(bytes));
    return memory;
}

void *smg_realloc(smg_context *ctx, void *pointer, size_t old_bytes, size_t new_bytes) {
    if (pointer == NULL) return smg_alloc(ctx, new_bytes, 1);
    if (new_bytes > PTRDIFF_MAX) {
        smg_fail(ctx, SMG_MEMORY, "out of memory: %zu bytes asked", new_bytes);
        return NULL;
    }
    void *memory = ctx->reallocate(ctx->user, pointer, at_least_one(old_bytes), at_least_one(new_bytes));
    if (memory == NULL) {
        smg_fail(ctx, SMG_MEMORY, "out of memory: %zu bytes asked", new_bytes);
        return NULL;
    }
    if (new_bytes > old_bytes) memset((char *)memory + old_bytes, 0, new_bytes - old_bytes);
    return memory;
}

void smg_free(smg_context *ctx, void *pointer, size_t bytes) {
    if (pointer != NULL) ctx->reallocate(ctx->user, pointer, at_least_one(bytes), 0);
}

/* ---- arenas -------------------------------------------------------------------------------- */

typedef struct arena_block {
    struct arena_block *next;
    size_t bytes; /* of the whole block, this header included */
    size_t used;  /* offset of the first free byte */
} arena_block;

struct smg_arena {
    smg_context *ctx;
    arena_block *blocks; /* the current one first */
    arena_block *spare;  /* blocks that have no piece since the last reset */
    size_t next_bytes;   /* size of the next ordinary block */
    size_t reserved;
};

smg_status smg_arena_create(smg_context *ctx, smg_arena **out_arena) {
    *out_arena = NULL;
    smg_arena *arena = smg_alloc(ctx, 1, sizeof(*arena));
    if (arena == NULL) return SMG_MEMORY;
    arena->ctx = ctx;
    arena->next_bytes = ARENA_FIRST_BLOCK;
    arena->reserved = sizeof(*arena);
    *out_arena = arena;
    return SMG_OK;
}

static void free_list(smg_context *ctx, arena_block *block) {
    while (block != NULL) {
        arena_block *next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block, block->bytes);
        smg_free(ctx, block, block->bytes);
        block = next;
    }
}

static void free_blocks(smg_arena *arena) {
    free_list(arena->ctx, arena->blocks);
    free_list(arena->ctx, arena->spare);
    arena->blocks = arena->spare = NULL;
}

void smg_arena_destroy(smg_arena *arena) {
    if (arena == NULL) return;
    free_blocks(arena);
    smg_free(arena->ctx, arena, sizeof(*arena));
}

void smg_context_exact_arenas(smg_context *ctx) {
    ctx->exact_arenas = true;
}

smg_context *smg_arena_context(const smg_arena *arena) {
    return arena != NULL ? arena->ctx : NULL;
}

size_t smg_arena_bytes(const smg_arena *arena) {
    return arena != NULL ? arena->reserved : 0;
}

static arena_block *arena_add_block(smg_arena *arena, size_t bytes, bool ordinary) {
    arena_block *block = smg_memory_raw(arena->ctx, bytes);
    if (block == NULL) return NULL;
    block->bytes = bytes;
    block->used = sizeof(*block);
    if (ordinary || arena->blocks == NULL) {
        block->next = arena->blocks;
        arena->blocks = block;
    } else {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    }
    arena->reserved += bytes;
    ASAN_POISON_MEMORY_REGION((char *)block + block->used, bytes - block->used);
    return block;
}

/* Blocks are kept for the pieces to come: memory that is given back and asked for again costs the system a fault for
 * each of its pages. */
void smg_arena_reset(smg_arena *arena) {
    if (arena->reserved - sizeof(*arena) > ARENA_MOST_KEPT || arena->ctx->exact_arenas) {
        free_blocks(arena);
        arena->reserved = sizeof(*arena);
        return;
    }
    for (arena_block *block; (block = arena->blocks) != NULL;) {
        arena->blocks = block->next;
        block->used = sizeof(*block);
        ASAN_POISON_MEMORY_REGION((char *)block + sizeof(*block), block->bytes - sizeof(*block));
        block->next = arena->spare;
        arena->spare = block;
    }
}

/* The smallest spare block with so much room becomes the current one: a large piece finds its block of the last time,
 * which small ones leave alone. False: there is none. */
static bool arena_take_spare(smg_arena *arena, size_t needed) {
    arena_block **least = NULL;
    for (arena_block **at = &arena->spare; *at != NULL; at = &(*at)->next)
        if ((*at)->bytes >= needed && (least == NULL || (*at)->bytes < (*least)->bytes)) least = at;
    if (least == NULL) return false;
    arena_block *block = *least;
    *least = block->next;
    block->next = arena->blocks;
    arena->blocks = block;
    return true;
}

/* The piece's memory, of any content, or NULL when the block has no room. The hook may give any alignment. */
static void *arena_take(arena_block *block, size_t bytes) {
    uintptr_t free_at = (uintptr_t)block + block->used;
    size_t pad = (size_t)(-free_at & (ARENA_ALIGN - 1));
    size_t room = block->bytes - block->used;
    if (bytes > room || room - bytes < pad + ARENA_GAP) return NULL;
    char *memory = (char *)block + block->used + pad;
    block->used += pad + bytes + ARENA_GAP;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

static void *arena_piece(smg_arena *arena, size_t bytes) {
    bool exact = arena->ctx->exact_arenas;
    if (arena->blocks != NULL && !exact) {
        void *memory = arena_take(arena->blocks, bytes);
        if (memory != NULL) return memory;
    }
    size_t needed = sizeof(arena_block) + bytes + ARENA_ALIGN + ARENA_GAP;
    if (arena_take_spare(arena, needed)) return arena_take(arena->blocks, bytes);
    bool ordinary = !exact && needed <= arena->next_bytes / 4;
    arena_block *block = arena_add_block(arena, ordinary ? arena->next_bytes : needed, ordinary);
    if (block == NULL) return NULL;
    if (ordinary && arena->next_bytes < ARENA_LAST_BLOCK) arena->next_bytes *= 2;
    return arena_take(block, bytes);
}

void *smg_arena_alloc(smg_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (arena == NULL || !multiply_sizes(arena->ctx, count, size, &bytes)) return NULL;
    bytes = at_least_one(bytes);
    void *memory = arena_piece(arena, bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

void *smg_arena_copy(smg_arena *arena, const void *items, size_t count, size_t size, size_t room) {
    size_t bytes, filled = count * size;
    if (arena == NULL || !multiply_sizes(arena->ctx, room, size, &bytes)) return NULL;
    bytes = at_least_one(bytes);
    char *memory = arena_piece(arena, bytes);
    if (memory == NULL) return NULL;
    if (filled > 0) memcpy(memory, items, filled);
    memset(memory + filled, 0, bytes - filled);
    return memory;
}

char *smg_arena_string_n(smg_arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) return NULL;
    char *copy = smg_arena_alloc(arena, length + 1, 1);
    if (copy != NULL && length != 0) memcpy(copy, text, length);
    return copy;
}

char *smg_arena_string(smg_arena *arena, const char *text) {
    return smg_arena_string_n(arena, text, strlen(text));
}

char *smg_arena_numbered(smg_arena *arena, const char *text, int number) {
    char digits[16];
    size_t at = sizeof(digits), length = strlen(text);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    char *name = smg_arena_alloc(arena, length + sizeof(digits) - at + 1, 1);
    if (name == NULL) return NULL;
    memcpy(name, text, length);
    memcpy(name + length, digits + at, sizeof(digits) - at);
    return name;
}

char *smg_arena_format(smg_arena *arena, const char *format, ...) {
    char small[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length < 0) return smg_arena_string(arena, "");
    if ((size_t)length < sizeof(small)) return smg_arena_string_n(arena, small, (size_t)length);
    char *text = smg_arena_alloc(arena, (size_t)length + 1, 1);
    if (text == NULL) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

/* ---- growable arrays ----------------------------------------------------------------------- */

#define ARRAY_SMALL 64 /* items; arrays with fewer grow in larger steps, as copies are most of what they cost */

/* `items` points at a typed pointer: it is read and written by memcpy, so that no object is
 * accessed through another type. */
static bool array_double(smg_arena *arena, void **items, int *capacity, int count, size_t item_size) {
    char *memory;
    memcpy(&memory, items, sizeof(memory));
    if (*capacity > INT32_MAX / 2) {
        smg_fail(smg_arena_context(arena), SMG_MEMORY, "an array has more than %d items", *capacity);
        return false;
    }
    int grown = *capacity <= 0 ? 8 : *capacity < ARRAY_SMALL ? *capacity * 4 : *capacity * 2;
    size_t bytes;
    if (!multiply_sizes(smg_arena_context(arena), (size_t)grown, item_size, &bytes)) return false;
    char *larger = arena_piece(arena, bytes);
    if (larger == NULL) return false;
    if (count > 0) memcpy(larger, memory, (size_t)count * item_size);
    memcpy(items, &larger, sizeof(larger));
    *capacity = grown;
    return true;
}

bool smg_array_grow(smg_arena *arena, void **items, int *capacity, int count, size_t item_size) {
    char *memory;
    if (count >= *capacity && !array_double(arena, items, capacity, count, item_size)) return false;
    memcpy(&memory, items, sizeof(memory));
    memset(memory + (size_t)count * item_size, 0, item_size);
    return true;
}

bool smg_array_room(smg_arena *arena, void **items, int *capacity, int room, size_t item_size) {
    size_t bytes;
    if (arena == NULL || !multiply_sizes(arena->ctx, (size_t)room, item_size, &bytes)) return false;
    char *memory = arena_piece(arena, at_least_one(bytes));
    if (memory == NULL) return false;
    memcpy(items, &memory, sizeof(memory));
    *capacity = room;
    return true;
}

/* ---- checked sizes ------------------------------------------------------------------------- */

#define SMALL_BITS 31 /* two numbers of so many bits have a product that fits, which needs no division to know */

bool smg_mul_i64(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || ((a | b) >> SMALL_BITS != 0 && a != 0 && b > INT64_MAX / a)) return false;
    *out = a * b;
    return true;
}

bool smg_add_i64(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || b > INT64_MAX - a) return false;
    *out = a + b;
    return true;
}

int64_t smg_greatest_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = b == -1 ? 0 : a % b; /* the least number has no remainder by -1 */
        a = b;
        b = rest;
    }
    return a < 0 && a != INT64_MIN ? -a : a;
}

bool smg_is_power_of_two(int64_t value) {
    return value > 0 && (value & (value - 1)) == 0;
}

int smg_log2(int64_t value) {
    int bits = 0;
    if (value <= 1) return 0;
    uint64_t rest = (uint64_t)value - 1;
    for (int step = 32; step > 0; step /= 2) {
        if (rest >> step == 0) continue;
        rest >>= step;
        bits += step;
    }
    return bits < 62 ? bits + 1 : 62;
}
