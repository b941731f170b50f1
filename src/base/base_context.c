/* The context: hooks, the first failure, log and progress, and where caches live.
 *
 * A failure is a code and one sentence in a fixed buffer, so recording one never allocates. Within
 * one public call the first failure stays: what follows is nearly always a consequence of it.
 * smg_fail_within lets a caller that knows the subject put its name in front of that sentence. Calls
 * are apart: each starts clean (smg_context_clear_error) and ends by smg_context_told, after which
 * the sentence is only there to be read. Builders have no such ends, so a graph keeps its failure
 * itself (smg_context_keep_failure), and what other graphs do starts clean, too.
 */
#include "base/base_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "smg/version.h"

const char *smg_version(void) {
    return SMG_VERSION;
}

static void *default_reallocate(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    return realloc(pointer, new_size);
}

const char *smg_status_word(smg_status status) {
    switch (status) {
#define SMG_STATUS_CASE(name, value, word, advice)                                                                     \
    case SMG_##name: return word;
        SMG_STATUS_MAP(SMG_STATUS_CASE)
#undef SMG_STATUS_CASE
    }
    return "unknown status";
}

static char *copy_joined(smg_context *ctx, const char *a, const char *b, size_t *out_bytes) {
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    size_t bytes = a_length + b_length + 1;
    char *copy = smg_alloc(ctx, bytes, 1);
    if (copy == NULL) return NULL;
    /* The other half brings the NUL. NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
    memcpy(copy, a, a_length);
    memcpy(copy + a_length, b, b_length + 1);
    *out_bytes = bytes;
    return copy;
}

/* The rule of smg_context_desc.cache_dir. */
static smg_status set_cache_dir(smg_context *ctx, const char *given) {
    const char *start = given;
    const char *rest = "";
#if !defined(SMG_RUNTIME_ONLY) /* which writes only where it was told to */
    char value[SMG_OS_PATH_BYTES];
    if (start == NULL) {
        if (!smg_os_environment("SMG_CACHE_DIR", value)) rest = smg_os_cache_home(value);
        if (rest != NULL) start = value;
    }
#endif
    if (start == NULL || start[0] == '\0') return SMG_OK;
    ctx->cache_dir = copy_joined(ctx, start, rest, &ctx->cache_dir_bytes);
    return ctx->cache_dir != NULL ? SMG_OK : SMG_MEMORY;
}

smg_status smg_context_create(const smg_context_desc *desc, smg_context **out_context) {
    static const smg_context_desc nothing = {0};
    if (out_context == NULL) return SMG_INVALID;
    *out_context = NULL;
    if (desc == NULL) desc = &nothing;
    void *(*reallocate)(void *, void *, size_t, size_t) =
        desc->reallocate != NULL ? desc->reallocate : default_reallocate;
    smg_context *ctx = reallocate(desc->user, NULL, 0, sizeof(*ctx));
    if (ctx == NULL) return SMG_MEMORY;
    memset(ctx, 0, sizeof(*ctx));
    ctx->reallocate = reallocate;
    ctx->log = desc->log;
    ctx->progress = desc->progress;
    ctx->user = desc->user;
    if (set_cache_dir(ctx, desc->cache_dir) != SMG_OK) {
        smg_context_destroy(ctx);
        return SMG_MEMORY;
    }
    *out_context = ctx;
    return SMG_OK;
}

void smg_context_destroy(smg_context *ctx) {
    if (ctx == NULL) return;
    smg_free(ctx, ctx->cache_dir, ctx->cache_dir_bytes);
    ctx->reallocate(ctx->user, ctx, sizeof(*ctx), 0);
}

const char *smg_context_error(const smg_context *ctx) {
    return ctx != NULL ? ctx->error : "";
}

void smg_context_clear_error(smg_context *ctx) {
    if (ctx == NULL) return;
    ctx->status = SMG_OK;
    ctx->keeper = NULL;
    ctx->error[0] = '\0';
}

smg_status smg_context_told(smg_context *ctx, smg_status status) {
    if (ctx == NULL || status == SMG_OK) return status;
    /* A call inside of this one (smg_graph_parse) may have told it already. */
    if (ctx->status == SMG_OK && ctx->error[0] == '\0') smg_fail(ctx, status, "%s", smg_status_word(status));
    ctx->status = SMG_OK;
    ctx->keeper = NULL;
    return status;
}

void smg_context_keep_failure(smg_context *ctx, const void *keeper) {
    if (ctx->status != SMG_OK) ctx->keeper = keeper;
}

const void *smg_context_keeper(const smg_context *ctx) {
    return ctx->keeper;
}

smg_status smg_context_status(const smg_context *ctx) {
    return ctx != NULL ? ctx->status : SMG_INVALID;
}

const char *smg_context_cache_dir(const smg_context *ctx) {
    return ctx != NULL && ctx->cache_dir != NULL ? ctx->cache_dir : "";
}

/* Ends a cut text in "..." without leaving half a UTF-8 character. `buffer` is full. */
static void mark_cut(char *buffer, size_t size) {
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)buffer[end] & 0xc0u) == 0x80u) end--;
    memcpy(buffer + end, "...", 4);
}

static void format_line(char *buffer, size_t size, const char *format, va_list args) SMG_PRINTF(3, 0);
static void format_line(char *buffer, size_t size, const char *format, va_list args) {
    int length = vsnprintf(buffer, size, format, args);
    if (length < 0) {
        buffer[0] = '\0';
    } else if ((size_t)length >= size) {
        mark_cut(buffer, size);
    }
}

/* What fails after memory ran out fails because of that: the code agrees with the sentence. */
static smg_status first_code(const smg_context *ctx, smg_status code) {
    return code != SMG_OK && ctx->status == SMG_MEMORY ? SMG_MEMORY : code;
}

smg_status smg_fail(smg_context *ctx, smg_status code, const char *format, ...) {
    if (ctx == NULL || code == SMG_OK) return code;
    if (ctx->status != SMG_OK) return first_code(ctx, code);
    va_list args;
    va_start(args, format);
    format_line(ctx->error, sizeof(ctx->error), format, args);
    va_end(args);
    ctx->status = code;
    ctx->keeper = NULL;
    return code;
}

smg_status smg_fail_within(smg_context *ctx, smg_status code, const char *format, ...) {
    if (ctx == NULL || code == SMG_OK) return code;
    code = first_code(ctx, code);
    char where[SMG_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    format_line(where, sizeof(where), format, args);
    va_end(args);
    if (ctx->status == SMG_OK) {
        ctx->status = code;
        memcpy(ctx->error, where, sizeof(where));
        return code;
    }
    size_t length = strlen(where);
    size_t old = strlen(ctx->error);
    size_t room = sizeof(ctx->error) - 1;
    if (length + 2 >= room) return code; /* no room to say more than the first sentence does */
    bool cut = length + 2 + old > room;
    if (cut) old = room - length - 2;
    memmove(ctx->error + length + 2, ctx->error, old);
    memcpy(ctx->error, where, length);
    memcpy(ctx->error + length, ": ", 2);
    ctx->error[length + 2 + old] = '\0';
    if (cut) mark_cut(ctx->error, sizeof(ctx->error));
    return code;
}

void smg_log(smg_context *ctx, smg_log_level level, const char *format, ...) {
    if (ctx == NULL || ctx->log == NULL) return;
    char line[SMG_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    format_line(line, sizeof(line), format, args);
    va_end(args);
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\n' || *at == '\r') *at = ' ';
    }
    ctx->log(ctx->user, level, line);
}

void smg_progress(smg_context *ctx, const char *phase, size_t done, size_t total, const char *unit) {
    if (ctx == NULL || ctx->progress == NULL) return;
    ctx->progress(ctx->user, phase, done, total, unit);
}
