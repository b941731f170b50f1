/* Internals of base: the context's fields, and the few calls to the operating system.
 *
 * Only src/base includes this. Files that end in _posix.c or _windows.c call the system, and nothing
 * else of smg does: a port to another one is three such files with the same functions. smg_os_*
 * functions return 0 or the system's error number, which smg_os_error_text turns into words, and
 * record nothing themselves. Paths and texts are UTF-8 everywhere.
 */
#ifndef SMG_BASE_INTERNAL_H
#define SMG_BASE_INTERNAL_H

#include "base/base.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

/* Sentences longer than this are cut at a character boundary and end in "...". */
#define SMG_ERROR_BYTES 1024

struct smg_context {
    void *(*reallocate)(void *user, void *pointer, size_t old_size, size_t new_size);
    void (*log)(void *user, smg_log_level level, const char *line);
    void (*progress)(void *user, const char *phase, size_t done, size_t total, const char *unit);
    void *user;
    smg_status status;           /* of the first failure of the call that runs; told ones do not count */
    char error[SMG_ERROR_BYTES]; /* its sentence: a fixed buffer, so that recording cannot fail */
    const void *keeper;          /* smg_context_keep_failure; NULL: the failure is nobody's */
    char *cache_dir;             /* NULL: caching is off */
    size_t cache_dir_bytes;
    bool exact_arenas; /* smg_context_exact_arenas */
};

/* Like smg_alloc, but the bytes are not zeroed. */
void *smg_memory_raw(smg_context *ctx, size_t bytes);

/* ---- the operating system ------------------------------------------------------------------ */

typedef enum smg_os_kind { SMG_OS_NOTHING, SMG_OS_FILE, SMG_OS_DIR, SMG_OS_OTHER } smg_os_kind;

/* Words for an error number, in `buffer`; returns buffer. */
const char *smg_os_error_text(int error, char *buffer, size_t size);
/* SMG_NOT_FOUND, SMG_MEMORY or SMG_IO. */
smg_status smg_os_error_status(int error);
smg_os_kind smg_os_path_kind(const char *path);
#define SMG_OS_PATH_BYTES 4096
/* The path with every link followed, '/' between its parts; SMG_OS_PATH_BYTES bytes. */
int smg_os_real_path(const char *path, char *out_path);
/* A value of the environment, into SMG_OS_PATH_BYTES bytes; false: it is unset or longer. */
bool smg_os_environment(const char *name, char *out_value);
/* Where the user's caches lie, into SMG_OS_PATH_BYTES bytes, and what of it is smg's ("/smg"); NULL: nowhere. */
const char *smg_os_cache_home(char *out_folder);

/* Between the parts of a path. */
static inline bool smg_os_separates(char c) {
#if defined(_WIN32)
    if (c == '\\') return true;
#endif
    return c == '/';
}

#if defined(_WIN32)
typedef void *smg_os_file; /* a handle */
#else
typedef int smg_os_file; /* a descriptor */
#endif
int smg_os_open_read(const char *path, smg_os_file *out_file);
/* Size of an open regular file; kind says what it is. */
int smg_os_file_size(smg_os_file file, smg_os_kind *out_kind, uint64_t *out_size);
/* Up to `bytes` bytes; *out_read == 0 at the end. */
int smg_os_read(smg_os_file file, void *data, size_t bytes, size_t *out_read);
/* Creates a file that must not exist yet. */
int smg_os_create_new(const char *path, smg_os_file *out_file);
/* Opens what exists for writing, as it is. */
int smg_os_open_write(const char *path, smg_os_file *out_file);
int smg_os_write_all(smg_os_file file, const void *data, size_t bytes);
int smg_os_sync(smg_os_file file);
int smg_os_close(smg_os_file file);
/* Replaces `to` in one step. */
int smg_os_rename(const char *from, const char *to);
void smg_os_remove(const char *path);
/* 0 also when the folder exists. */
int smg_os_make_dir(const char *path);
bool smg_os_error_is_exists(int error);
int smg_os_map(smg_os_file file, size_t size, const uint8_t **out_data);
void smg_os_unmap(const uint8_t *data, size_t size);
void smg_os_drop_pages(const uint8_t *data, size_t size, size_t offset, size_t bytes);
/* A number that no other thread or process is likely to have at the same time. */
uint64_t smg_os_unique(void);

/* ---- its threads and locks ------------------------------------------------------------------ */

#if defined(_WIN32)
typedef struct smg_os_mutex { /* an SRWLOCK, a pointer that starts as NULL */
    void *state;
} smg_os_mutex;
typedef struct smg_os_condition { /* a CONDITION_VARIABLE, likewise */
    void *state;
} smg_os_condition;
typedef void *smg_os_thread_id;
#define SMG_OS_MUTEX_INIT {NULL}
#else
typedef pthread_mutex_t smg_os_mutex;
typedef pthread_cond_t smg_os_condition;
typedef pthread_t smg_os_thread_id;
#define SMG_OS_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#endif

typedef struct smg_os_thread {
    smg_os_thread_id id;
    void (*body)(void *user);
    void *user;
} smg_os_thread;
/* The thread takes no signals. `thread` stays where it is until smg_os_thread_join. false: none can be started. */
bool smg_os_thread_start(smg_os_thread *thread, void (*body)(void *user), void *user);
void smg_os_thread_join(smg_os_thread *thread);
bool smg_os_mutex_init(smg_os_mutex *mutex);
void smg_os_mutex_end(smg_os_mutex *mutex);
void smg_os_mutex_take(smg_os_mutex *mutex);
void smg_os_mutex_give(smg_os_mutex *mutex);
bool smg_os_condition_init(smg_os_condition *condition);
void smg_os_condition_end(smg_os_condition *condition);
/* Gives the mutex, sleeps until the condition is told (or for no reason), takes it again. */
void smg_os_condition_wait(smg_os_condition *condition, smg_os_mutex *mutex);
void smg_os_condition_tell(smg_os_condition *condition); /* all that wait */

#endif
