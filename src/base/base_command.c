/* What a command asks of its system and what base has already. See smg/command.h. */
#include "smg/command.h"

#include "base/base.h"

double smg_command_seconds(void) {
    return smg_clock_seconds();
}

bool smg_command_path_exists(const char *path) {
    return path != NULL && (smg_file_exists(path) || smg_path_is_dir(path));
}

static smg_status write_file(smg_context *ctx, const char *path, const void *data, size_t bytes) {
    if (path == NULL || (data == NULL && bytes > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_command_write_file: the %s NULL",
                        path == NULL ? "path is" : "bytes are");
    return smg_file_write_atomic(ctx, path, data, bytes);
}

smg_status smg_command_write_file(smg_context *ctx, const char *path, const void *data, size_t bytes) {
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, write_file(ctx, path, data, bytes));
}
