/* The operating system, POSIX: descriptors that another owns. What has none says so. */
#if !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700
#endif

#include "base/descriptor.h"

#include "base/base_internal.h"

#if !defined(_WIN32)

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

smg_status smg_descriptor_copy(smg_context *ctx, int descriptor, int *out_copy) {
    char reason[128];
    *out_copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (*out_copy >= 0) return SMG_OK;
    int error = errno;
    return smg_fail(ctx, error == EBADF ? SMG_INVALID : SMG_IO, "file descriptor %d: %s", descriptor,
                    smg_os_error_text(error, reason, sizeof(reason)));
}

bool smg_descriptor_bytes(int descriptor, int64_t *out_bytes) {
    *out_bytes = (int64_t)lseek(descriptor, 0, SEEK_END);
    return *out_bytes >= 0 && lseek(descriptor, 0, SEEK_SET) == 0;
}

void smg_descriptor_close(int descriptor) {
    if (descriptor >= 0) (void)close(descriptor);
}

#else

smg_status smg_descriptor_copy(smg_context *ctx, int descriptor, int *out_copy) {
    *out_copy = -1;
    return smg_fail(ctx, SMG_UNSUPPORTED, "file descriptor %d: this system shares memory by handles of its own",
                    descriptor);
}

bool smg_descriptor_bytes(int descriptor, int64_t *out_bytes) {
    (void)descriptor;
    *out_bytes = 0;
    return false;
}

void smg_descriptor_close(int descriptor) {
    (void)descriptor;
}

#endif
