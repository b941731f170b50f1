/* Runs a body again and again, each time with another allocation refused, until none is. */
#ifndef SMG_TEST_FAULT_H
#define SMG_TEST_FAULT_H

#include "base/base.h"

typedef struct fault_sweep {
    /* Makes what the body starts from; nothing is refused yet. NULL: nothing to make. */
    void (*prepare)(smg_context *ctx, void *user);
    smg_status (*body)(smg_context *ctx, void *user); /* leaves nothing allocated */
    void *user;
    int stride;            /* 1: every allocation; n: every n-th after the first 50; ten times that under ASan */
    const char *cache_dir; /* NULL: no cache */
    bool may_recover;      /* a refusal may also be survived (caches); the body checks results */
} fault_sweep;

/* Fails the test where a status is not MEMORY with a sentence, bytes stay behind, or the result is OK
 * in spite of a refusal. Returns how many allocations were refused. */
int fault_every_allocation(const fault_sweep *sweep);

#endif
