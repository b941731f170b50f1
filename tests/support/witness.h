/* A context that is watched: how much memory it holds, how often it asked for some, and whether anybody warned. */
#ifndef TESTS_WITNESS_H
#define TESTS_WITNESS_H

#include <stddef.h>

#include "smg/smg.h"

typedef struct witness {
    size_t live_bytes;
    int calls;          /* that asked for memory */
    int fail_at;        /* the call that is refused, 0: none */
    int warnings;       /* printed too; a missing validation layer is none */
    char warning[1024]; /* the last of them */
} witness;

/* Hooks for a context; `w` is cleared and outlives it. */
smg_context_desc witness_desc(witness *w);

#endif
