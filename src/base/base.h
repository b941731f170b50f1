/* base: memory, status, text, maps, hashes, files, threads, clocks.
 *
 * Takes:    the caller's allocator, log and cache hooks (smg_context_desc).
 * Gives:    arenas, growable arrays, a sticky text writer, hash maps, hashes, files, a thread loop.
 * Promises: every allocation goes through the context's hook and may fail; a failure is recorded in
 *           the context with one sentence. Platform calls (mmap, threads, clocks, paths) are only here.
 * Does not: know what a tensor is.
 */
#ifndef SMG_BASE_H
#define SMG_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "smg/context.h"
#include "smg/status.h"

#if defined(__MINGW32__) /* whose printf is by default an old one of the system's, which has no %zu */
#define SMG_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#elif defined(__GNUC__) || defined(__clang__)
#define SMG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define SMG_PRINTF(f, a)
#endif

#define SMG_TRY(call)                                                                                                  \
    do {                                                                                                               \
        smg_status try_status_ = (call);                                                                               \
        if (try_status_ != SMG_OK) return try_status_;                                                                 \
    } while (0)

#define SMG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- status ------------------------------------------------------------------------------- */

/* Records the first failure and returns `code`. Later failures keep the first sentence; when that was
 * about memory, they return MEMORY. */
smg_status smg_fail(smg_context *ctx, smg_status code, const char *format, ...) SMG_PRINTF(3, 4);
/* Like smg_fail, prefixed: "<where>: <old sentence>". Use where a caller knows the subject's name. */
smg_status smg_fail_within(smg_context *ctx, smg_status code, const char *format, ...) SMG_PRINTF(3, 4);
/* The code of the recorded failure, SMG_OK if none. Lets builders and arenas be sticky. */
smg_status smg_context_status(const smg_context *ctx);
/* The end of a public call, which returns `status`: a failure is the caller's now. Its sentence stays for
 * smg_context_error, the next failure replaces it. The start of one is smg_context_clear_error. */
smg_status smg_context_told(smg_context *ctx, smg_status status);
/* The recorded failure belongs to `keeper`, a sticky object that has a copy: calls about others do not mind it. */
void smg_context_keep_failure(smg_context *ctx, const void *keeper);
const void *smg_context_keeper(const smg_context *ctx); /* of the recorded failure; NULL: nobody */
void smg_log(smg_context *ctx, smg_log_level level, const char *format, ...) SMG_PRINTF(3, 4);
void smg_progress(smg_context *ctx, const char *phase, size_t done, size_t total, const char *unit);

/* ---- memory ------------------------------------------------------------------------------- */

/* Raw memory through the hook; zeroed. NULL on failure (recorded) or when count * size overflows. */
void *smg_alloc(smg_context *ctx, size_t count, size_t size);
/* Grows or shrinks; new bytes are zeroed; on failure returns NULL and the old block stays. */
void *smg_realloc(smg_context *ctx, void *pointer, size_t old_bytes, size_t new_bytes);
void smg_free(smg_context *ctx, void *pointer, size_t bytes);

/* An arena: everything allocated from it dies with it. All memory is zeroed and 16-byte aligned. */
typedef struct smg_arena smg_arena;
smg_status smg_arena_create(smg_context *ctx, smg_arena **out_arena);
void smg_arena_destroy(smg_arena *arena); /* NULL is fine */
/* Frees all pieces; the memory is kept for others. */
void smg_arena_reset(smg_arena *arena);
smg_context *smg_arena_context(const smg_arena *arena);
void *smg_arena_alloc(smg_arena *arena, size_t count, size_t size);
/* Room for `room` of them, of which the first `count` are copies of `items`. */
void *smg_arena_copy(smg_arena *arena, const void *items, size_t count, size_t size, size_t room);
char *smg_arena_string(smg_arena *arena, const char *text); /* copies */
char *smg_arena_string_n(smg_arena *arena, const char *text, size_t length);
/* The text with the number behind it, which is not negative. */
char *smg_arena_numbered(smg_arena *arena, const char *text, int number);
char *smg_arena_format(smg_arena *arena, const char *format, ...) SMG_PRINTF(2, 3);
size_t smg_arena_bytes(const smg_arena *arena); /* total reserved: tests bound it */
/* For tests: from now on every piece of every arena is an allocation of its own through the hook, so
 * that each can be made to fail. */
void smg_context_exact_arenas(smg_context *ctx);

#define SMG_ARENA_NEW(arena, type) ((type *)smg_arena_alloc((arena), 1, sizeof(type)))
#define SMG_ARENA_ARRAY(arena, type, count) ((type *)smg_arena_alloc((arena), (count), sizeof(type)))

/* Growable arrays in an arena: declare `SMG_ARRAY(int) v;` zero-initialised, then
 * SMG_ARRAY_PUSH(arena, &v) gives a zeroed new element's pointer or NULL when memory is out. */
#define SMG_ARRAY(type)                                                                                                \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        int count;                                                                                                     \
        int capacity;                                                                                                  \
    }
/* Room for one more, whose bytes are 0. */
bool smg_array_grow(smg_arena *arena, void **items, int *capacity, int count, size_t item_size);
/* Of an empty one, for so many. */
bool smg_array_room(smg_arena *arena, void **items, int *capacity, int room, size_t item_size);
#define SMG_ARRAY_RESERVE(arena, array, room)                                                                          \
    smg_array_room((arena), (void **)&(array)->items, &(array)->capacity, (room), sizeof(*(array)->items))
#define SMG_ARRAY_PUSH(arena, array)                                                                                   \
    (smg_array_grow((arena), (void **)&(array)->items, &(array)->capacity, (array)->count, sizeof(*(array)->items))    \
         ? &(array)->items[(array)->count++]                                                                           \
         : NULL)

/* ---- checked sizes ------------------------------------------------------------------------ */

/* false on overflow, *out untouched. Operands are nonnegative. */
bool smg_mul_i64(int64_t a, int64_t b, int64_t *out);

/* Floats of 16 bits (IEEE binary16, bfloat16) from and to double: to nearest, ties to even; what is too large becomes
 * infinite (base_half.c). */
uint16_t smg_half_of(double value);
double smg_half_value(uint16_t half);
uint16_t smg_bf16_of(double value);
double smg_bf16_value(uint16_t bf16);
/* The same of arrays of f32, which lie at any address (in the usual rounding mode). */
void smg_halves_of(const void *floats, size_t count, uint16_t *out);
void smg_half_values(const uint16_t *halves, size_t count, void *out_floats);
void smg_bf16s_of(const void *floats, size_t count, uint16_t *out);
void smg_bf16_values(const uint16_t *bf16s, size_t count, void *out_floats);
bool smg_add_i64(int64_t a, int64_t b, int64_t *out);
/* `most` where the product is larger. */
static inline int64_t smg_mul_at_most(int64_t a, int64_t b, int64_t most) {
    int64_t product = most;
    if (((uint64_t)a | (uint64_t)b) >> 31 == 0) /* then it fits */
        product = a * b;
    else if (!smg_mul_i64(a, b, &product))
        return most;
    return product < most ? product : most;
}
bool smg_is_power_of_two(int64_t value);
int64_t smg_greatest_divisor(int64_t a, int64_t b); /* of both; not negative, 0 of 0 and 0 */
int smg_log2(int64_t value);                        /* rounded up; 0 for 1 and less */

/* ---- text --------------------------------------------------------------------------------- */

/* Growable text with a sticky failure: once memory is out, appends do nothing. Lives in the hook's
 * memory until smg_text_free. `data` is always NUL-terminated after the first successful append;
 * use smg_text_cstr, which never returns NULL. */
typedef struct smg_text {
    smg_context *ctx;
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
} smg_text;
/* Does `text` contain `part`, in any case of ASCII letters? */
bool smg_text_contains(const char *text, const char *part);
bool smg_text_ends(const char *text, const char *end);

void smg_text_init(smg_text *text, smg_context *ctx);
void smg_text_free(smg_text *text);
void smg_text_add(smg_text *text, const char *string);
void smg_text_add_n(smg_text *text, const char *string, size_t length);
void smg_text_addf(smg_text *text, const char *format, ...) SMG_PRINTF(2, 3);
/* Shortest decimal that reads back as the same float / double ("0.5", "1e-05", "inf", "nan"). */
void smg_text_add_f32(smg_text *text, float value);
void smg_text_add_f64(smg_text *text, double value);
/* A JSON string literal with quotes and escapes (bytes that are not UTF-8 become U+FFFD). */
void smg_text_add_json(smg_text *text, const char *string);
void smg_text_add_json_n(smg_text *text, const char *string, size_t length); /* may hold NULs */
const char *smg_text_cstr(const smg_text *text);
smg_status smg_text_status(const smg_text *text);

/* ---- bytes --------------------------------------------------------------------------------- */

/* Fixed width, little-endian; a string is its length and its bytes. */
void smg_text_add_u32(smg_text *text, uint32_t value);
void smg_text_add_u64(smg_text *text, uint64_t value);
void smg_text_add_string(smg_text *text, const char *string);

/* Reads what these wrote, from bytes of any origin. Sticky: after the first thing that is not there or not in its range
 * everything reads as the least value, or NULL. */
typedef struct smg_reader {
    const uint8_t *at;
    size_t left;
    bool failed;
} smg_reader;
uint32_t smg_reader_u32(smg_reader *r);
uint64_t smg_reader_u64(smg_reader *r);
int smg_reader_int(smg_reader *r, int low, int high); /* low: of the range, where it is outside */
/* How many things of at least `least` (> 0) bytes each follow: never more than the bytes that are left. */
int smg_reader_count(smg_reader *r, size_t least);
const uint8_t *smg_reader_raw(smg_reader *r, size_t count); /* not aligned */
char *smg_reader_string(smg_reader *r, smg_arena *arena);   /* NULL also when memory is out */

/* ---- hash and map ------------------------------------------------------------------------- */

#define SMG_HASH_SEED UINT64_C(0x9e3779b97f4a7c15)
uint64_t smg_hash_bytes(uint64_t seed, const void *bytes, size_t count);
#define SMG_HASH_FACTOR UINT64_C(0xc6a4a7935bd1e995)
static inline uint64_t smg_hash_mix(uint64_t hash, uint64_t value) {
    value *= SMG_HASH_FACTOR;
    value ^= value >> 47;
    value *= SMG_HASH_FACTOR;
    return (hash ^ value) * SMG_HASH_FACTOR;
}
static inline uint64_t smg_hash_finish(uint64_t hash) {
    hash ^= hash >> 47;
    hash *= SMG_HASH_FACTOR;
    return hash ^ (hash >> 47);
}
static inline uint64_t smg_hash_u64(uint64_t seed, uint64_t value) {
    return smg_hash_finish(smg_hash_mix(seed ^ (8 * SMG_HASH_FACTOR), value));
}
uint64_t smg_hash_text(uint64_t seed, const char *text);
/* Of bytes that several threads share, or that come in pieces: the sum of what each block of them gives with its
 * number. `first` is the number of the first one here; all are SMG_HASH_BLOCK long but the last of all. Words are read
 * in the machine's byte order. */
#define SMG_HASH_BLOCK 65536
uint64_t smg_hash_blocks(int64_t first, const void *bytes, size_t count);

/* Map from byte strings to a pointer; keys are copied into the arena. */
typedef struct smg_map smg_map;
smg_status smg_map_create(smg_arena *arena, smg_map **out_map);
/* Sets or replaces. */
smg_status smg_map_set(smg_map *map, const void *key, size_t key_bytes, void *value);
bool smg_map_get(const smg_map *map, const void *key, size_t key_bytes, void **out_value);

/* ---- files -------------------------------------------------------------------------------- */

/* A read-only mapping of a whole regular file; an empty file gives data == NULL, size 0. */
typedef struct smg_mapped_file {
    const uint8_t *data;
    size_t size;
    void *handle; /* platform's own */
} smg_mapped_file;
smg_status smg_file_map(smg_context *ctx, const char *path, smg_mapped_file *out_file);
void smg_file_unmap(smg_mapped_file *file); /* zeroed file is fine */
/* Hint: pages [offset, offset+bytes) are no longer needed (weights already uploaded). */
void smg_file_drop_pages(const smg_mapped_file *file, size_t offset, size_t bytes);
bool smg_file_exists(const char *path);
bool smg_path_is_dir(const char *path);
/* Reads a whole file of at most 256 MiB into hook memory (NUL added after the end). Free with
 * smg_free(size + 1). */
smg_status smg_file_read(smg_context *ctx, const char *path, char **out_data, size_t *out_size);
/* Writes beside `path` and renames: readers and a second process see the old or the new, whole.
 * Nothing half-written is left behind on failure. Links are followed; what is no file (/dev/null, a pipe) is
 * written to as it is. */
smg_status smg_file_write_atomic(smg_context *ctx, const char *path, const void *data, size_t size);
/* The same in pieces. A failure to write is told when it is closed, which frees the writer in any case; not kept: the
 * old file stays. */
typedef struct smg_file_writer smg_file_writer;
smg_status smg_file_writer_open(smg_context *ctx, const char *path, smg_file_writer **out_writer);
void smg_file_writer_add(smg_file_writer *writer, const void *data, size_t size);
smg_status smg_file_writer_close(smg_file_writer *writer, bool keep);
smg_status smg_path_make_dirs(smg_context *ctx, const char *path);
/* "a" + "b" -> "a/b" in the arena. */
char *smg_path_join(smg_arena *arena, const char *a, const char *b);
/* Is the existing file `path` inside the folder once the system has followed every link? *out_real is
 * its path without links, in the arena. */
smg_status smg_path_inside(smg_arena *arena, const char *folder, const char *path, char **out_real, bool *out_inside);
/* The cache folder by the rule of smg_context_desc.cache_dir; "" when caching is off. */
const char *smg_context_cache_dir(const smg_context *ctx);

/* ---- threads and clocks -------------------------------------------------------------------- */

/* Calls body(user, begin, end) on disjoint parts of [0, count) over the machine's cores; returns
 * when all are done. body must not fail. Falls back to the calling thread. */
void smg_parallel_for(int64_t count, int64_t grain, void (*body)(void *user, int64_t begin, int64_t end), void *user);
/* Tasks 0 .. count-1, done in this order by threads of their own while the caller goes on; one task after the other
 * where no thread can be started, each when it is waited for. body must not fail, nor use the context. */
typedef struct smg_tasks smg_tasks;
smg_status smg_tasks_start(smg_context *ctx, int count, void (*body)(void *user, int task), void *user,
                           smg_tasks **out_tasks);
void smg_tasks_wait(smg_tasks *tasks, int task);
/* Those that no thread has begun are not done any more; waits for the others. NULL is fine. */
void smg_tasks_finish(smg_tasks *tasks);
/* Which thread this is: a part of the loop above may ask whether it runs on the caller's. */
uint64_t smg_thread_self(void);
/* Calls body(user) while no other thread of the process is in here: for libraries that keep globals. body calls nothing
 * of smg's. */
void smg_process_alone(void (*body)(void *user), void *user);
/* For one thread at a time. */
typedef struct smg_lock smg_lock;
smg_status smg_lock_create(smg_context *ctx, smg_lock **out_lock);
void smg_lock_destroy(smg_lock *lock); /* NULL is fine */
void smg_lock_take(smg_lock *lock);
void smg_lock_give(smg_lock *lock);
/* Memory goes back to a driver; some has come. A driver gives one thread what another one returned, under locks that
 * the thread sanitizer does not see: these tell it. Nothing elsewhere. */
void smg_driver_memory_returns(void);
void smg_driver_memory_came(void);
double smg_clock_seconds(void);    /* monotonic */
double smg_cpu_seconds(void);      /* that all threads of this process have run */
int smg_cpu_cores(void);           /* at least 1 */
int64_t smg_cpu_cache_bytes(void); /* of the last level; 0: the system does not tell */

/* Linked without a dynamic loader: no library can be loaded into it (base_dynamic.c). */
bool smg_program_is_static(void);

#endif
