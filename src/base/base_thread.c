/* Threads: disjoint parts of a range over the machine's cores, tasks beside the caller, locks.
 *
 * Threads live for one call: the loops here (converting weights, evaluating a reference, searching)
 * last far longer than starting a few threads, and a library that keeps no pool has nothing to shut
 * down and shares nothing between contexts. Parts are handed out through one counter, so uneven
 * parts balance. Workers take no signals: those belong to the host program's own threads.
 */
#include "base/base_internal.h"

#include <stdatomic.h>

#define MOST_THREADS 64
#define PARTS_PER_THREAD 4

typedef struct loop {
    atomic_llong next;
    int64_t count;
    int64_t part;
    void (*body)(void *user, int64_t begin, int64_t end);
    void *user;
} loop;

static void work(void *user) {
    loop *l = user;
    for (;;) {
        int64_t begin = (int64_t)atomic_fetch_add(&l->next, (long long)l->part);
        if (begin >= l->count) return;
        int64_t end = l->part < l->count - begin ? begin + l->part : l->count;
        l->body(l->user, begin, end);
    }
}

void smg_parallel_for(int64_t count, int64_t grain, void (*body)(void *user, int64_t begin, int64_t end), void *user) {
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    int64_t threads = smg_cpu_cores();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > count / grain) threads = count / grain;
    if (threads <= 1 || count > INT64_MAX / 4) {
        body(user, 0, count);
        return;
    }
    int64_t part = count / (threads * PARTS_PER_THREAD);
    if (part < grain) part = grain;
    loop l = {.count = count, .part = part, .body = body, .user = user};
    atomic_init(&l.next, 0);

    smg_os_thread workers[MOST_THREADS];
    int started = 0;
    while (started < (int)threads - 1 && smg_os_thread_start(&workers[started], work, &l)) started++;
    work(&l);
    for (int i = 0; i < started; i++) smg_os_thread_join(&workers[i]);
}

/* ---- tasks beside the caller ----------------------------------------------------------------------- */

struct smg_tasks {
    smg_context *ctx;
    size_t bytes;
    void (*body)(void *user, int task);
    void *user;
    smg_os_mutex lock;
    smg_os_condition changed;
    int count, next, threads;
    smg_os_thread workers[MOST_THREADS];
    bool done[]; /* by task */
};

static void do_tasks(void *user) {
    smg_tasks *t = user;
    smg_os_mutex_take(&t->lock);
    while (t->next < t->count) {
        int task = t->next++;
        smg_os_mutex_give(&t->lock);
        t->body(t->user, task);
        smg_os_mutex_take(&t->lock);
        t->done[task] = true;
        smg_os_condition_tell(&t->changed);
    }
    smg_os_mutex_give(&t->lock);
}

static void start_workers(smg_tasks *t) {
    int64_t wanted = smg_cpu_cores();
    if (wanted > t->count) wanted = t->count;
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    while (t->threads < wanted && smg_os_thread_start(&t->workers[t->threads], do_tasks, t)) t->threads++;
}

static smg_status fail_without_lock(smg_context *ctx, void *owner, size_t bytes) {
    smg_free(ctx, owner, bytes);
    return smg_fail(ctx, SMG_MEMORY, "the system gives no lock");
}

smg_status smg_tasks_start(smg_context *ctx, int count, void (*body)(void *user, int task), void *user,
                           smg_tasks **out_tasks) {
    *out_tasks = NULL;
    size_t bytes = sizeof(smg_tasks) + (size_t)count * sizeof(bool);
    smg_tasks *t = smg_alloc(ctx, 1, bytes);
    if (t == NULL) return SMG_MEMORY;
    t->ctx = ctx;
    t->bytes = bytes;
    t->body = body;
    t->user = user;
    t->count = count;
    if (!smg_os_mutex_init(&t->lock)) return fail_without_lock(ctx, t, bytes);
    if (!smg_os_condition_init(&t->changed)) {
        smg_os_mutex_end(&t->lock);
        return fail_without_lock(ctx, t, bytes);
    }
    start_workers(t);
    *out_tasks = t;
    return SMG_OK;
}

void smg_tasks_wait(smg_tasks *t, int task) {
    smg_os_mutex_take(&t->lock);
    while (t->threads > 0 && !t->done[task]) smg_os_condition_wait(&t->changed, &t->lock);
    bool done = t->done[task];
    t->done[task] = true;
    smg_os_mutex_give(&t->lock);
    if (!done) t->body(t->user, task);
}

void smg_tasks_finish(smg_tasks *t) {
    if (t == NULL) return;
    smg_os_mutex_take(&t->lock);
    t->next = t->count;
    smg_os_mutex_give(&t->lock);
    for (int i = 0; i < t->threads; i++) smg_os_thread_join(&t->workers[i]);
    smg_os_condition_end(&t->changed);
    smg_os_mutex_end(&t->lock);
    smg_free(t->ctx, t, t->bytes);
}

/* ---- locks ---------------------------------------------------------------------------------------- */

struct smg_lock {
    smg_context *ctx;
    smg_os_mutex mutex;
};

smg_status smg_lock_create(smg_context *ctx, smg_lock **out_lock) {
    *out_lock = NULL;
    smg_lock *lock = smg_alloc(ctx, 1, sizeof(*lock));
    if (lock == NULL) return SMG_MEMORY;
    lock->ctx = ctx;
    if (!smg_os_mutex_init(&lock->mutex)) return fail_without_lock(ctx, lock, sizeof(*lock));
    *out_lock = lock;
    return SMG_OK;
}

void smg_lock_destroy(smg_lock *lock) {
    if (lock == NULL) return;
    smg_os_mutex_end(&lock->mutex);
    smg_free(lock->ctx, lock, sizeof(*lock));
}

void smg_lock_take(smg_lock *lock) {
    smg_os_mutex_take(&lock->mutex);
}

void smg_lock_give(smg_lock *lock) {
    smg_os_mutex_give(&lock->mutex);
}

/* The one lock of the process. It guards nothing of smg's: that other libraries keep globals is theirs. */
static smg_os_mutex process_lock = SMG_OS_MUTEX_INIT;

void smg_process_alone(void (*body)(void *user), void *user) {
    smg_os_mutex_take(&process_lock);
    body(user);
    smg_os_mutex_give(&process_lock);
}
