/* The operating system, POSIX: files, mappings, folders, clocks, the machine.
 *
 * base_internal.h has what each function promises. Calls that a signal interrupts are repeated here.
 */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif
#if !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#endif

#include "base/base_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *smg_os_error_text(int error, char *buffer, size_t size) {
    if (strerror_r(error, buffer, size) != 0) snprintf(buffer, size, "error %d", error);
    return buffer;
}

smg_status smg_os_error_status(int error) {
    if (error == ENOENT || error == ENOTDIR) return SMG_NOT_FOUND;
    if (error == ENOMEM) return SMG_MEMORY;
    return SMG_IO;
}

bool smg_os_error_is_exists(int error) {
    return error == EEXIST;
}

static smg_os_kind kind_of(mode_t mode) {
    if (S_ISREG(mode)) return SMG_OS_FILE;
    if (S_ISDIR(mode)) return SMG_OS_DIR;
    return SMG_OS_OTHER;
}

smg_os_kind smg_os_path_kind(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return SMG_OS_NOTHING;
    return kind_of(info.st_mode);
}

/* realpath writes up to PATH_MAX bytes when it is given a buffer. */
int smg_os_real_path(const char *path, char *out_path) {
#if defined(PATH_MAX)
    _Static_assert(PATH_MAX <= SMG_OS_PATH_BYTES, "longer paths than smg has room for");
#endif
    return realpath(path, out_path) ? 0 : errno;
}

bool smg_os_environment(const char *name, char *out_value) {
    const char *value = getenv(name);
    if (value == NULL || strlen(value) >= SMG_OS_PATH_BYTES) return false;
    memcpy(out_value, value, strlen(value) + 1);
    return true;
}

const char *smg_os_cache_home(char *out_folder) {
    /* The XDG rule: a relative path is to be ignored, an empty one counts as unset. */
    if (smg_os_environment("XDG_CACHE_HOME", out_folder) && out_folder[0] == '/') return "/smg";
    return smg_os_environment("HOME", out_folder) && out_folder[0] != '\0' ? "/.cache/smg" : NULL;
}

static int open_file(const char *path, int flags, smg_os_file *out_file) {
    do {
        *out_file = open(path, flags | O_CLOEXEC, 0666);
    } while (*out_file < 0 && errno == EINTR);
    return *out_file < 0 ? errno : 0;
}

int smg_os_open_read(const char *path, smg_os_file *out_file) {
    return open_file(path, O_RDONLY, out_file);
}

int smg_os_create_new(const char *path, smg_os_file *out_file) {
    return open_file(path, O_WRONLY | O_CREAT | O_EXCL, out_file);
}

int smg_os_open_write(const char *path, smg_os_file *out_file) {
    return open_file(path, O_WRONLY, out_file);
}

int smg_os_file_size(smg_os_file file, smg_os_kind *out_kind, uint64_t *out_size) {
    struct stat info;
    if (fstat(file, &info) != 0) return errno;
    *out_kind = kind_of(info.st_mode);
    *out_size = *out_kind == SMG_OS_FILE ? (uint64_t)info.st_size : 0;
    return 0;
}

/* Systems refuse to move more than about 2 GiB at once. */
#define MOST_AT_ONCE ((size_t)1 << 30)

int smg_os_read(smg_os_file file, void *data, size_t bytes, size_t *out_read) {
    if (bytes > MOST_AT_ONCE) bytes = MOST_AT_ONCE;
    ssize_t got;
    do {
        got = read(file, data, bytes);
    } while (got < 0 && errno == EINTR);
    *out_read = got > 0 ? (size_t)got : 0;
    return got < 0 ? errno : 0;
}

int smg_os_write_all(smg_os_file file, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t put = write(file, at, bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE);
        if (put < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        at += put;
        bytes -= (size_t)put;
    }
    return 0;
}

int smg_os_sync(smg_os_file file) {
    if (fsync(file) == 0 || errno == EINVAL || errno == EROFS) return 0; /* no such thing there */
    return errno;
}

int smg_os_close(smg_os_file file) {
    return close(file) == 0 || errno == EINTR ? 0 : errno;
}

int smg_os_rename(const char *from, const char *to) {
    return rename(from, to) == 0 ? 0 : errno;
}

void smg_os_remove(const char *path) {
    unlink(path);
}

int smg_os_make_dir(const char *path) {
    if (mkdir(path, 0777) == 0) return 0;
    int error = errno;
    return error == EEXIST && smg_os_path_kind(path) == SMG_OS_DIR ? 0 : error;
}

int smg_os_map(smg_os_file file, size_t size, const uint8_t **out_data) {
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) return errno;
    *out_data = data;
    return 0;
}

void smg_os_unmap(const uint8_t *data, size_t size) {
    munmap((void *)(uintptr_t)data, size);
}

/* Only pages that lie wholly inside the range; they come back from the file when read again. */
void smg_os_drop_pages(const uint8_t *data, size_t size, size_t offset, size_t bytes) {
    long page_size = sysconf(_SC_PAGESIZE);
    if (page_size <= 0) return;
    size_t page = (size_t)page_size;
    size_t begin = (offset + page - 1) / page * page;
    size_t end = offset + bytes;
    if (end != size) end = end / page * page;
    if (begin >= end) return;
    madvise((void *)(uintptr_t)(data + begin), end - begin, MADV_DONTNEED);
}

uint64_t smg_os_unique(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t unique = smg_hash_u64(SMG_HASH_SEED, (uint64_t)getpid());
    unique = smg_hash_u64(unique, (uint64_t)(uintptr_t)&now); /* differs between threads */
    unique = smg_hash_u64(unique, (uint64_t)now.tv_sec);
    return smg_hash_u64(unique, (uint64_t)now.tv_nsec);
}

static double clock_of(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double smg_clock_seconds(void) {
    return clock_of(CLOCK_MONOTONIC);
}

double smg_cpu_seconds(void) {
    return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

int smg_cpu_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 65535 ? 65535 : (int)cores;
}

int64_t smg_cpu_cache_bytes(void) {
    long bytes = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE) /* of the C library, not of POSIX */
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : 0;
}
