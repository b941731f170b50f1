/* See the header. */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
    witness *w = user;
    if (new_size != 0 && ++w->calls == w->fail_at) return NULL;
    void *moved = new_size != 0 ? realloc(pointer, new_size) : NULL;
    if (new_size != 0 && moved == NULL) return NULL;
    if (new_size == 0) free(pointer);
    w->live_bytes += new_size - old_size;
    return moved;
}

/* Messages of the validation layer are warnings. */
static void on_log(void *user, smg_log_level level, const char *line) {
    witness *w = user;
    if (level != SMG_LOG_WARNING) return;
    print_message("log: %s\n", line);
    if (strstr(line, "is not installed") != NULL) return;
    w->warnings++;
    snprintf(w->warning, sizeof w->warning, "%s", line);
}

smg_context_desc witness_desc(witness *w) {
    *w = (witness){0};
    return (smg_context_desc){.reallocate = counted, .log = on_log, .user = w};
}
