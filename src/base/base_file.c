/* Files and paths: whole-file reads and mappings, atomic writes, folders.
 *
 * Every failure names the path and gives the operating system's reason. Writing goes to a new file
 * beside the target, which is then renamed over it: two processes that share a cache folder never
 * see half a file, and a full disk leaves the old file as it was. A link stays, what it points to is
 * replaced; a device or pipe (/dev/null) is written to and never replaced.
 */
#include "base/base_internal.h"

#include <stdio.h>

static smg_status fail_os(smg_context *ctx, int error, const char *verb, const char *path) {
    char reason[128];
    return smg_fail(ctx, smg_os_error_status(error), "cannot %s '%s': %s", verb, path,
                    smg_os_error_text(error, reason, sizeof(reason)));
}

bool smg_file_exists(const char *path) {
    return smg_os_path_kind(path) == SMG_OS_FILE;
}

bool smg_path_is_dir(const char *path) {
    return smg_os_path_kind(path) == SMG_OS_DIR;
}

/* Opened for reading, with what it is and its bytes; the caller closes it. */
static smg_status open_sized(smg_context *ctx, const char *path, smg_os_file *out_file, smg_os_kind *out_kind,
                             uint64_t *out_size) {
    int error = smg_os_open_read(path, out_file);
    if (error != 0) return fail_os(ctx, error, "open", path);
    error = smg_os_file_size(*out_file, out_kind, out_size);
    if (error == 0) return SMG_OK;
    smg_os_close(*out_file);
    return fail_os(ctx, error, "open", path);
}

smg_status smg_file_map(smg_context *ctx, const char *path, smg_mapped_file *out_file) {
    memset(out_file, 0, sizeof(*out_file));
    smg_os_file file;
    smg_os_kind kind = SMG_OS_OTHER;
    uint64_t size = 0;
    smg_status status = SMG_OK;
    SMG_TRY(open_sized(ctx, path, &file, &kind, &size));
    if (kind != SMG_OS_FILE) {
        status = smg_fail(ctx, SMG_INVALID, "'%s' is %s, not a file", path,
                          kind == SMG_OS_DIR ? "a folder" : "a device or pipe");
    } else if (size > PTRDIFF_MAX) {
        status = smg_fail(ctx, SMG_UNSUPPORTED, "'%s' is too large to map on this machine", path);
    } else if (size != 0) {
        int error = smg_os_map(file, (size_t)size, &out_file->data);
        if (error != 0) {
            status = fail_os(ctx, error, "map", path);
        } else {
            out_file->size = (size_t)size;
        }
    }
    smg_os_close(file);
    return status;
}

void smg_file_unmap(smg_mapped_file *file) {
    if (file->data != NULL) smg_os_unmap(file->data, file->size);
    memset(file, 0, sizeof(*file));
}

void smg_file_drop_pages(const smg_mapped_file *file, size_t offset, size_t bytes) {
    if (file->data == NULL || offset >= file->size) return;
    if (bytes > file->size - offset) bytes = file->size - offset;
    smg_os_drop_pages(file->data, file->size, offset, bytes);
}

/* Texts are far smaller; devices and pipes may have no end. */
#define MOST_READ_BYTES ((size_t)256 << 20)

/* Reads to the end: the size the system reports is only a first guess (0 in /proc). */
static smg_status read_all(smg_context *ctx, const char *path, smg_os_file file, size_t guess, char **out_data,
                           size_t *out_size) {
    size_t capacity = guess + 1;
    size_t size = 0;
    char *data = smg_memory_raw(ctx, capacity);
    if (data == NULL) return SMG_MEMORY;
    for (;;) {
        if (size > MOST_READ_BYTES) {
            smg_free(ctx, data, capacity);
            return smg_fail(ctx, SMG_UNSUPPORTED, "'%s' has more than %zu bytes", path, MOST_READ_BYTES);
        }
        if (size == capacity) {
            size_t larger = capacity < 4096 ? 8192 : capacity + capacity / 2;
            char *grown = smg_realloc(ctx, data, capacity, larger);
            if (grown == NULL) {
                smg_free(ctx, data, capacity);
                return SMG_MEMORY;
            }
            data = grown;
            capacity = larger;
        }
        size_t got = 0;
        int error = smg_os_read(file, data + size, capacity - size, &got);
        if (error != 0) {
            smg_free(ctx, data, capacity);
            return fail_os(ctx, error, "read", path);
        }
        if (got == 0) break;
        size += got;
    }
    if (capacity != size + 1) {
        char *exact = smg_realloc(ctx, data, capacity, size + 1);
        if (exact == NULL) {
            smg_free(ctx, data, capacity);
            return SMG_MEMORY;
        }
        data = exact;
    }
    data[size] = '\0';
    *out_data = data;
    *out_size = size;
    return SMG_OK;
}

smg_status smg_file_read(smg_context *ctx, const char *path, char **out_data, size_t *out_size) {
    *out_data = NULL;
    *out_size = 0;
    smg_os_file file;
    smg_os_kind kind = SMG_OS_OTHER;
    uint64_t size = 0;
    smg_status status = SMG_OK;
    SMG_TRY(open_sized(ctx, path, &file, &kind, &size));
    if (kind == SMG_OS_DIR) {
        status = smg_fail(ctx, SMG_INVALID, "'%s' is a folder, not a file", path);
    } else if (size > MOST_READ_BYTES) {
        status = smg_fail(ctx, SMG_UNSUPPORTED, "'%s' has %llu bytes, at most %zu are read", path,
                          (unsigned long long)size, MOST_READ_BYTES);
    } else {
        status = read_all(ctx, path, file, (size_t)size, out_data, out_size);
    }
    smg_os_close(file);
    return status;
}

#define WRITE_ATTEMPTS 16

/* A new file in the folder of `path`, whose name does not grow with that of `path`: names have a longest. */
static int create_beside(const char *path, char *name, size_t name_bytes, smg_os_file *out_file) {
    int folder = (int)strlen(path);
    while (folder > 0 && !smg_os_separates(path[folder - 1])) folder--;
    int error = 0;
    for (int attempt = 0; attempt < WRITE_ATTEMPTS; attempt++) {
        uint64_t unique = smg_hash_u64(smg_os_unique(), (uint64_t)attempt);
        snprintf(name, name_bytes, "%.*ssmg.%016llx.tmp", folder, path, (unsigned long long)unique);
        error = smg_os_create_new(name, out_file);
        if (error == 0 || !smg_os_error_is_exists(error)) break;
    }
    return error;
}

struct smg_file_writer {
    smg_context *ctx;
    smg_os_file file;
    int error;
    char *path, *name; /* what it becomes; what it is called until then, "": it is written to as it is */
    size_t path_bytes, name_bytes;
};

static int open_target(smg_file_writer *w, smg_os_kind kind) {
    if (kind == SMG_OS_OTHER) return smg_os_open_write(w->path, &w->file);
    return create_beside(w->path, w->name, w->name_bytes, &w->file);
}

static void free_writer(smg_file_writer *w) {
    if (w->path != NULL) smg_free(w->ctx, w->path, w->path_bytes);
    if (w->name != NULL) smg_free(w->ctx, w->name, w->name_bytes);
    smg_free(w->ctx, w, sizeof(*w));
}

smg_status smg_file_writer_open(smg_context *ctx, const char *path, smg_file_writer **out_writer) {
    char real[SMG_OS_PATH_BYTES];
    smg_os_kind kind = smg_os_path_kind(path);
    bool exists = kind != SMG_OS_NOTHING && smg_os_real_path(path, real) == 0;
    const char *target = exists ? real : path;
    *out_writer = NULL;
    smg_file_writer *w = smg_alloc(ctx, 1, sizeof(*w));
    if (w == NULL) return SMG_MEMORY;
    w->ctx = ctx;
    w->path_bytes = strlen(target) + 1;
    w->name_bytes = w->path_bytes + 32;
    w->path = smg_alloc(ctx, w->path_bytes, 1);
    if (w->path != NULL) w->name = smg_alloc(ctx, w->name_bytes, 1);
    if (w->path == NULL || w->name == NULL) {
        free_writer(w);
        return SMG_MEMORY;
    }
    memcpy(w->path, target, w->path_bytes);
    int error = open_target(w, kind);
    if (error == 0) {
        *out_writer = w;
        return SMG_OK;
    }
    free_writer(w);
    return fail_os(ctx, error, "write", path);
}

void smg_file_writer_add(smg_file_writer *w, const void *data, size_t size) {
    if (w->error == 0) w->error = smg_os_write_all(w->file, data, size);
}

smg_status smg_file_writer_close(smg_file_writer *w, bool keep) {
    smg_context *ctx = w->ctx;
    int error = w->error;
    if (error == 0 && keep) error = smg_os_sync(w->file);
    int close_error = smg_os_close(w->file);
    if (error == 0) error = close_error;
    bool beside = w->name[0] != '\0';
    if (error == 0 && keep && beside) error = smg_os_rename(w->name, w->path);
    if (beside && (error != 0 || !keep)) smg_os_remove(w->name);
    smg_status status = error == 0 || !keep ? SMG_OK : fail_os(ctx, error, "write", w->path);
    free_writer(w);
    return status;
}

smg_status smg_file_write_atomic(smg_context *ctx, const char *path, const void *data, size_t size) {
    smg_file_writer *w = NULL;
    SMG_TRY(smg_file_writer_open(ctx, path, &w));
    smg_file_writer_add(w, data, size);
    return smg_file_writer_close(w, true);
}

smg_status smg_path_make_dirs(smg_context *ctx, const char *path) {
    size_t bytes = strlen(path) + 1;
    if (bytes == 1) return smg_fail(ctx, SMG_INVALID, "cannot create a folder with an empty name");
    char *part = smg_alloc(ctx, bytes, 1);
    if (part == NULL) return SMG_MEMORY;
    memcpy(part, path, bytes);
    smg_status status = SMG_OK;
    for (size_t i = 1; i < bytes && status == SMG_OK; i++) {
        if (!smg_os_separates(part[i]) && part[i] != '\0') continue;
        if (smg_os_separates(part[i - 1])) continue;
        char end = part[i];
        part[i] = '\0';
        /* An existing parent may be one that this process must not write to: look first. */
        if (smg_os_path_kind(part) != SMG_OS_DIR) {
            int error = smg_os_make_dir(part);
            if (error != 0) status = fail_os(ctx, error, "create the folder", part);
        }
        part[i] = end;
    }
    smg_free(ctx, part, bytes);
    return status;
}

char *smg_path_join(smg_arena *arena, const char *a, const char *b) {
    size_t length = strlen(a);
    const char *between = length == 0 || smg_os_separates(a[length - 1]) ? "" : "/";
    return smg_arena_format(arena, "%s%s%s", a, between, b);
}

smg_status smg_path_inside(smg_arena *arena, const char *folder, const char *path, char **out_real, bool *out_inside) {
    smg_context *ctx = smg_arena_context(arena);
    char home[SMG_OS_PATH_BYTES], file[SMG_OS_PATH_BYTES];
    *out_real = NULL;
    *out_inside = false;
    int error = smg_os_real_path(folder, home);
    if (error != 0) return fail_os(ctx, error, "open the folder", folder);
    error = smg_os_real_path(path, file);
    if (error != 0) return fail_os(ctx, error, "open", path);
    size_t length = strlen(home);
    if (length > 0 && home[length - 1] == '/') length--; /* the root */
    *out_inside = strncmp(home, file, length) == 0 && file[length] == '/';
    *out_real = smg_arena_string(arena, file);
    return *out_real ? SMG_OK : SMG_MEMORY;
}
