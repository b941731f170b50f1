/* The operating system, Windows 8 and newer: files, mappings, folders, clocks, the machine.
 *
 * base_internal.h has what each function promises. Paths are UTF-8 outside and UTF-16 inside, whatever the code page
 * of the process is. Files are opened so that others may read, rename and remove them meanwhile, as on other systems;
 * but a file that is mapped cannot be replaced.
 */
#include "base/base_internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>

#define SHARED (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

static int last_error(void) {
    return (int)GetLastError();
}

/* Of SMG_OS_PATH_BYTES characters. */
static int to_wide(const char *text, wchar_t *out_wide) {
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out_wide, SMG_OS_PATH_BYTES) > 0 ? 0
                                                                                                         : last_error();
}

static int from_wide(const wchar_t *wide, char *out_text, size_t bytes) {
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, out_text, (int)bytes, NULL, NULL) > 0 ? 0 : last_error();
}

const char *smg_os_error_text(int error, char *buffer, size_t size) {
    wchar_t wide[256];
    DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    DWORD length = FormatMessageW(flags, NULL, (DWORD)error, 0, wide, SMG_COUNT_OF(wide), NULL);
    while (length > 0 && (wide[length - 1] <= L' ' || wide[length - 1] == L'.')) wide[--length] = 0;
    if (length == 0 || from_wide(wide, buffer, size) != 0) snprintf(buffer, size, "error %d", error);
    return buffer;
}

smg_status smg_os_error_status(int error) {
    switch ((DWORD)error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME: return SMG_NOT_FOUND;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: return SMG_MEMORY;
    default: return SMG_IO;
    }
}

bool smg_os_error_is_exists(int error) {
    return error == ERROR_FILE_EXISTS || error == ERROR_ALREADY_EXISTS;
}

/* ---- paths ----------------------------------------------------------------------------------------- */

static int open_file(const char *path, DWORD access, DWORD how, DWORD flags, HANDLE *out_handle) {
    wchar_t wide[SMG_OS_PATH_BYTES];
    *out_handle = INVALID_HANDLE_VALUE;
    int error = to_wide(path, wide);
    if (error != 0) return error;
    *out_handle = CreateFileW(wide, access, SHARED, NULL, how, flags, NULL);
    return *out_handle == INVALID_HANDLE_VALUE ? last_error() : 0;
}

/* Also a folder; nothing can be read or written. */
static int open_to_ask(const char *path, HANDLE *out_handle) {
    return open_file(path, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, out_handle);
}

static smg_os_kind kind_of(HANDLE handle) {
    BY_HANDLE_FILE_INFORMATION info;
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileInformationByHandle(handle, &info)) return SMG_OS_OTHER;
    return (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? SMG_OS_DIR : SMG_OS_FILE;
}

smg_os_kind smg_os_path_kind(const char *path) {
    HANDLE handle;
    if (open_to_ask(path, &handle) != 0) return SMG_OS_NOTHING;
    smg_os_kind kind = kind_of(handle);
    CloseHandle(handle);
    return kind;
}

/* The system writes \\?\C:\folder and \\?\UNC\server\folder: C:/folder and //server/folder. */
static void as_others_write_it(wchar_t *path) {
    size_t length = wcslen(path);
    if (wcsncmp(path, L"\\\\?\\UNC\\", 8) == 0) {
        memmove(path + 1, path + 7, (length - 6) * sizeof(*path));
    } else if (wcsncmp(path, L"\\\\?\\", 4) == 0) {
        memmove(path, path + 4, (length - 3) * sizeof(*path));
    }
    for (wchar_t *at = path; *at != 0; at++) {
        if (*at == L'\\') *at = L'/';
    }
}

int smg_os_real_path(const char *path, char *out_path) {
    wchar_t wide[SMG_OS_PATH_BYTES];
    HANDLE handle;
    int error = open_to_ask(path, &handle);
    if (error != 0) return error;
    DWORD length = GetFinalPathNameByHandleW(handle, wide, SMG_COUNT_OF(wide), FILE_NAME_NORMALIZED);
    if (length == 0) error = last_error();
    if (length >= SMG_COUNT_OF(wide)) error = ERROR_FILENAME_EXCED_RANGE;
    CloseHandle(handle);
    if (error != 0) return error;
    as_others_write_it(wide);
    return from_wide(wide, out_path, SMG_OS_PATH_BYTES);
}

bool smg_os_environment(const char *name, char *out_value) {
    wchar_t wide_name[64], wide[SMG_OS_PATH_BYTES];
    size_t length = strlen(name);
    if (length >= SMG_COUNT_OF(wide_name)) return false;
    for (size_t i = 0; i <= length; i++) wide_name[i] = (wchar_t)name[i];
    SetLastError(ERROR_SUCCESS);
    DWORD got = GetEnvironmentVariableW(wide_name, wide, SMG_COUNT_OF(wide));
    if (got >= SMG_COUNT_OF(wide) || (got == 0 && GetLastError() != ERROR_SUCCESS)) return false;
    return from_wide(wide, out_value, SMG_OS_PATH_BYTES) == 0;
}

const char *smg_os_cache_home(char *out_folder) {
    return smg_os_environment("LOCALAPPDATA", out_folder) && out_folder[0] != '\0' ? "/smg" : NULL;
}

/* ---- files ----------------------------------------------------------------------------------------- */

/* A folder too, so that whoever asks for its size learns what it is. */
int smg_os_open_read(const char *path, smg_os_file *out_file) {
    return open_file(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, out_file);
}

int smg_os_create_new(const char *path, smg_os_file *out_file) {
    return open_file(path, GENERIC_WRITE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, out_file);
}

int smg_os_open_write(const char *path, smg_os_file *out_file) {
    return open_file(path, GENERIC_WRITE, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, out_file);
}

int smg_os_file_size(smg_os_file file, smg_os_kind *out_kind, uint64_t *out_size) {
    LARGE_INTEGER size;
    *out_kind = kind_of(file);
    *out_size = 0;
    if (*out_kind != SMG_OS_FILE) return 0;
    if (!GetFileSizeEx(file, &size)) return last_error();
    *out_size = (uint64_t)size.QuadPart;
    return 0;
}

#define MOST_AT_ONCE ((size_t)1 << 30) /* sizes of one call have 32 bits */

int smg_os_read(smg_os_file file, void *data, size_t bytes, size_t *out_read) {
    DWORD got = 0;
    bool read = ReadFile(file, data, (DWORD)(bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE), &got, NULL);
    *out_read = got;
    if (read || GetLastError() == ERROR_BROKEN_PIPE || GetLastError() == ERROR_HANDLE_EOF) return 0;
    return last_error();
}

int smg_os_write_all(smg_os_file file, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        DWORD put = 0;
        if (!WriteFile(file, at, (DWORD)(bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE), &put, NULL)) return last_error();
        at += put;
        bytes -= put;
    }
    return 0;
}

int smg_os_sync(smg_os_file file) {
    if (FlushFileBuffers(file)) return 0;
    int error = last_error();
    return error == ERROR_INVALID_FUNCTION || error == ERROR_INVALID_HANDLE ? 0 : error; /* no such thing there */
}

int smg_os_close(smg_os_file file) {
    return CloseHandle(file) ? 0 : last_error();
}

int smg_os_rename(const char *from, const char *to) {
    wchar_t wide_from[SMG_OS_PATH_BYTES], wide_to[SMG_OS_PATH_BYTES];
    int error = to_wide(from, wide_from);
    if (error == 0) error = to_wide(to, wide_to);
    if (error != 0) return error;
    return MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING) ? 0 : last_error();
}

void smg_os_remove(const char *path) {
    wchar_t wide[SMG_OS_PATH_BYTES];
    if (to_wide(path, wide) == 0) DeleteFileW(wide);
}

int smg_os_make_dir(const char *path) {
    wchar_t wide[SMG_OS_PATH_BYTES];
    int error = to_wide(path, wide);
    if (error != 0) return error;
    if (CreateDirectoryW(wide, NULL)) return 0;
    error = last_error();
    return error == ERROR_ALREADY_EXISTS && smg_os_path_kind(path) == SMG_OS_DIR ? 0 : error;
}

/* The view keeps the file, no handle is needed any more. */
int smg_os_map(smg_os_file file, size_t size, const uint8_t **out_data) {
    HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (mapping == NULL) return last_error();
    *out_data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
    int error = *out_data != NULL ? 0 : last_error();
    CloseHandle(mapping);
    return error;
}

void smg_os_unmap(const uint8_t *data, size_t size) {
    (void)size;
    UnmapViewOfFile(data);
}

/* Unlocking pages that are not locked takes them out of the process's memory; they come back from the file when read
 * again. */
void smg_os_drop_pages(const uint8_t *data, size_t size, size_t offset, size_t bytes) {
    (void)size;
    if (bytes > 0) VirtualUnlock((void *)(uintptr_t)(data + offset), bytes);
}

/* ---- clocks and the machine -------------------------------------------------------------------------- */

static uint64_t in_one(FILETIME time) { /* of 100 ns */
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

uint64_t smg_os_unique(void) {
    FILETIME now;
    LARGE_INTEGER ticks;
    GetSystemTimeAsFileTime(&now);
    QueryPerformanceCounter(&ticks);
    uint64_t unique = smg_hash_u64(SMG_HASH_SEED, GetCurrentProcessId());
    unique = smg_hash_u64(unique, GetCurrentThreadId());
    unique = smg_hash_u64(unique, in_one(now));
    return smg_hash_u64(unique, (uint64_t)ticks.QuadPart);
}

double smg_clock_seconds(void) {
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&ticks);
    return (double)ticks.QuadPart / (double)frequency.QuadPart;
}

double smg_cpu_seconds(void) {
    FILETIME begun, ended, kernel, user;
    if (!GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user)) return 0;
    return (double)(in_one(kernel) + in_one(user)) * 1e-7;
}

int smg_cpu_cores(void) {
    DWORD cores = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return cores < 1 ? 1 : cores > 65535 ? 65535 : (int)cores;
}

int64_t smg_cpu_cache_bytes(void) {
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION rows[512];
    DWORD bytes = sizeof(rows);
    int64_t of_last = 0;
    int last = 1; /* level */
    if (!GetLogicalProcessorInformation(rows, &bytes)) return 0;
    for (size_t i = 0; i < bytes / sizeof(rows[0]); i++) {
        const CACHE_DESCRIPTOR *cache = &rows[i].Cache;
        if (rows[i].Relationship != RelationCache || cache->Level <= last) continue;
        last = cache->Level;
        of_last = cache->Size;
    }
    return of_last;
}
