/* smg/context.h: the object everything else is made from.
 *
 *     smg_context *ctx = NULL;
 *     if (smg_context_create(NULL, &ctx) != SMG_OK) return 1;
 *     ... smg_model_open(ctx, ...) ...
 *     if (failed) fprintf(stderr, "%s\n", smg_context_error(ctx));
 *     smg_context_destroy(ctx);
 *
 * Ownership: the context outlives every object made from it. Threads: a context and what is made
 * from it belong to one thread at a time; two contexts share nothing. The library never prints,
 * exits or aborts, and it is silent unless `log` is set.
 */
#ifndef SMG_CONTEXT_H
#define SMG_CONTEXT_H

#include "smg/status.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_context smg_context;

typedef enum smg_log_level { SMG_LOG_INFO = 1, SMG_LOG_WARNING = 2 } smg_log_level;

/* All fields may be zero. */
typedef struct smg_context_desc {
    /* One hook for every host allocation: like realloc; new_size 0 frees. `user` is passed through.
     * NULL: the C library. */
    void *(*reallocate)(void *user, void *pointer, size_t old_size, size_t new_size);
    /* Receives one line without newline, for the time of the call only. NULL: silence. */
    void (*log)(void *user, smg_log_level level, const char *line);
    /* Long work reports here: phase ("compile", "tune"), done of total units, and the name of the
     * unit. NULL: nothing. */
    void (*progress)(void *user, const char *phase, size_t done, size_t total, const char *unit);
    void *user;
    /* Folder for caches (plans, SPIR-V, pipelines, calibration), in UTF-8 as all paths. NULL: $SMG_CACHE_DIR, else
     * $XDG_CACHE_HOME/smg, else $HOME/.cache/smg (on Windows %LOCALAPPDATA%\smg); "" switches caching off. In
     * libsmg-rt NULL does so, too. Copied. */
    const char *cache_dir;
} smg_context_desc;

/* desc may be NULL. MEMORY is the only failure. */
SMG_API smg_status smg_context_create(const smg_context_desc *desc, smg_context **out_context);
SMG_API void smg_context_destroy(smg_context *context);

/* Where text goes that a call writes: zero or more pieces, without a NUL at their ends, for the time of a call of
 * `write` only. It calls nothing of smg's. */
typedef struct smg_sink {
    void (*write)(void *user, const char *text, size_t bytes);
    void *user;
} smg_sink;

/* The sentence of the last call that failed; "" if there was none, or the last call that opened or ran
 * something was all right. Valid until the next call that uses the context. */
SMG_API const char *smg_context_error(const smg_context *context);
SMG_API void smg_context_clear_error(smg_context *context);

#ifdef __cplusplus
}
#endif
#endif
