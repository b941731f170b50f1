/* Internals of base: the context's fields, and the few calls to the operating system.
 *
 * Only src/base includes this. base_platform.c implements the smg_os_* functions (POSIX today); a
 * port to another system is a second file with the same functions and nothing else. They return 0
 * or an error number that smg_os_error_text turns into words, and record nothing themselves.
 */
#ifndef SMG_BASE_INTERNAL_H
#define SMG_BASE_INTERNAL_H

#include "base/base.h"

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
/* The path with every link followed; SMG_OS_PATH_BYTES bytes. */
int smg_os_real_path(const char *path, char *out_path);
/* A value of the environment, NULL when unset. */
const char *smg_os_environment(const char *name);

int smg_os_open_read(const char *path, int *out_file);
/* Size of an open regular file; kind says what it is. */
int smg_os_file_size(int file, smg_os_kind *out_kind, uint64_t *out_size);
/* Up to `bytes` bytes; *out_read == 0 at the end. */
int smg_os_read(int file, void *data, size_t bytes, size_t *out_read);
/* Creates a file that must not exist yet. */
int smg_os_create_new(const char *path, int *out_file);
/* Opens what exists for writing, as it is. */
int smg_os_open_write(const char *path, int *out_file);
int smg_os_write_all(int file, const void *data, size_t bytes);
int smg_os_sync(int file);
int smg_os_close(int file);
/* Replaces `to` in one step. */
int smg_os_rename(const char *from, const char *to);
void smg_os_remove(const char *path);
/* 0 also when the folder exists. */
int smg_os_make_dir(const char *path);
bool smg_os_error_is_exists(int error);
int smg_os_map(int file, size_t size, const uint8_t **out_data);
void smg_os_unmap(const uint8_t *data, size_t size);
void smg_os_drop_pages(const uint8_t *data, size_t size, size_t offset, size_t bytes);
/* A number that no other thread or process is likely to have at the same time. */
uint64_t smg_os_unique(void);

#endif
