/* The allocator counts down to the one it refuses; all later ones succeed, which is harder on the code
 * than failing for good: nothing may be built on what is missing. */
#include "fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

enum { MOST_STEPS = 1000000, DENSE_STEPS = 50 };

typedef struct meter {
    int calls, fail_at;
    bool failed;
    size_t live_bytes;
} meter;

/* A place for a debugger to stop. */
static void *refuse(meter *m) {
    m->failed = true;
    return NULL;
}

static void *metered(void *user, void *pointer, size_t old_size, size_t new_size) {
    meter *m = user;
    if (new_size != 0 && m->fail_at != 0 && ++m->calls == m->fail_at) {
        return refuse(m);
    }
    void *moved = new_size != 0 ? realloc(pointer, new_size) : NULL;
    if (new_size != 0 && moved == NULL) return NULL;
    if (new_size == 0) free(pointer);
    m->live_bytes += new_size - old_size;
    return moved;
}

static void judge(const fault_sweep *sweep, const meter *m, smg_status status, const char *sentence) {
    if (!m->failed && status != SMG_OK) fail_msg("nothing was refused and the status is %d: %s", (int)status, sentence);
    if (!m->failed) return;
    if (status == SMG_OK && !sweep->may_recover) fail_msg("allocation %d was refused and nobody said so", m->fail_at);
    if (status != SMG_OK && status != SMG_MEMORY) {
        fail_msg("allocation %d was refused and the status is %d: %s", m->fail_at, (int)status, sentence);
    }
    if ((status == SMG_OK) != (sentence[0] == '\0'))
        fail_msg("allocation %d: status %d with the sentence '%s'", m->fail_at, (int)status, sentence);
}

/* Sanitizers slow every step down. */
#if defined(__SANITIZE_ADDRESS__)
enum { STRIDE_FACTOR = 10 };
#else
enum { STRIDE_FACTOR = 1 };
#endif

int fault_every_allocation(const fault_sweep *sweep) {
    const int stride = sweep->stride * STRIDE_FACTOR;
    int refused = 0;
    for (int step = 1; step < MOST_STEPS; step += step <= DENSE_STEPS ? 1 : stride) {
        meter m = {0};
        const smg_context_desc desc = {
            .reallocate = metered, .user = &m, .cache_dir = sweep->cache_dir != NULL ? sweep->cache_dir : ""};
        smg_context *ctx = NULL;
        assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
        smg_context_exact_arenas(ctx);
        const size_t before = m.live_bytes;
        if (sweep->prepare != NULL) sweep->prepare(ctx, sweep->user);
        m.fail_at = step;
        m.calls = 0;
        smg_status status = sweep->body(ctx, sweep->user);
        judge(sweep, &m, status, smg_context_error(ctx));
        if (m.live_bytes != before)
            fail_msg("allocation %d was refused and %zu bytes stay", step, m.live_bytes - before);
        smg_context_destroy(ctx);
        assert_int_equal(m.live_bytes, 0);
        if (!m.failed) return refused;
        refused++;
    }
    fail_msg("more than %d allocations", MOST_STEPS);
    return refused;
}
