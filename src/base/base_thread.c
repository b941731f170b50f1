/* The thread loop: disjoint parts of a range over the machine's cores, POSIX threads.
 *
 * Threads live for one call: the loops here (converting weights, evaluating a reference, searching)
 * last far longer than starting a few threads, and a library that keeps no pool has nothing to shut
 * down and shares nothing between contexts. Parts are handed out through one counter, so uneven
 * parts balance. Workers take no signals: those belong to the host program's own threads.
 */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE
#endif

#include "base/base_internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define MOST_THREADS 64
#define PARTS_PER_THREAD 4

typedef struct loop {
    atomic_llong next;
    int64_t count;
    int64_t part;
    void (*body)(void *user, int64_t begin, int64_t end);
    void *user;
} loop;

static void *work(void *argument) {
    loop *l = argument;
    for (;;) {
        int64_t begin = (int64_t)atomic_fetch_add(&l->next, (long long)l->part);
        if (begin >= l->count) return NULL;
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

    pthread_t workers[MOST_THREADS];
    int started = 0;
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    bool masked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    while (started < (int)threads - 1 && pthread_create(&workers[started], NULL, work, &l) == 0) {
        started++;
    }
    if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
    work(&l);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
}

/* ---- tasks beside the caller ----------------------------------------------------------------------- */

struct smg_tasks {
    smg_context *ctx;
    size_t bytes;
    void (*body)(void *user, int task);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, next, threads;
    pthread_t workers[MOST_THREADS];
    bool done[]; /* by task */
};

static void *do_tasks(void *argument) {
    smg_tasks *t = argument;
    pthread_mutex_lock(&t->lock);
    while (t->next < t->count) {
        int task = t->next++;
        pthread_mutex_unlock(&t->lock);
        t->body(t->user, task);
        pthread_mutex_lock(&t->lock);
        t->done[task] = true;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void start_workers(smg_tasks *t) {
    int64_t wanted = smg_cpu_cores();
    if (wanted > t->count) wanted = t->count;
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    sigset_t all, old;
    sigfillset(&all);
    bool masked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    while (t->threads < wanted && pthread_create(&t->workers[t->threads], NULL, do_tasks, t) == 0) t->threads++;
    if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
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
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    start_workers(t);
    *out_tasks = t;
    return SMG_OK;
}

void smg_tasks_wait(smg_tasks *t, int task) {
    pthread_mutex_lock(&t->lock);
    while (t->threads > 0 && !t->done[task]) pthread_cond_wait(&t->changed, &t->lock);
    bool done = t->done[task];
    t->done[task] = true;
    pthread_mutex_unlock(&t->lock);
    if (!done) t->body(t->user, task);
}

void smg_tasks_finish(smg_tasks *t) {
    if (t == NULL) return;
    pthread_mutex_lock(&t->lock);
    t->next = t->count;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->threads; i++) pthread_join(t->workers[i], NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    smg_free(t->ctx, t, t->bytes);
}

int smg_cpu_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 65535 ? 65535 : (int)cores;
}

int64_t smg_cpu_cache_bytes(void) {
    long bytes = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE) /* of the C library, not of POSIX */
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : 0;
}

struct smg_lock {
    smg_context *ctx;
    pthread_mutex_t mutex;
};

smg_status smg_lock_create(smg_context *ctx, smg_lock **out_lock) {
    *out_lock = NULL;
    smg_lock *lock = smg_alloc(ctx, 1, sizeof(*lock));
    if (lock == NULL) return SMG_MEMORY;
    lock->ctx = ctx;
    if (pthread_mutex_init(&lock->mutex, NULL) != 0) {
        smg_free(ctx, lock, sizeof(*lock));
        return smg_fail(ctx, SMG_MEMORY, "the system gives no lock");
    }
    *out_lock = lock;
    return SMG_OK;
}

void smg_lock_destroy(smg_lock *lock) {
    if (lock == NULL) return;
    pthread_mutex_destroy(&lock->mutex);
    smg_free(lock->ctx, lock, sizeof(*lock));
}

void smg_lock_take(smg_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
}

void smg_lock_give(smg_lock *lock) {
    pthread_mutex_unlock(&lock->mutex);
}

/* The one lock of the process. It guards nothing of smg's: that other libraries keep globals is theirs. */
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

void smg_process_alone(void (*body)(void *user), void *user) {
    pthread_mutex_lock(&process_lock);
    body(user);
    pthread_mutex_unlock(&process_lock);
}

uint64_t smg_thread_self(void) {
    pthread_t self = pthread_self();
    return smg_hash_bytes(SMG_HASH_SEED, &self, sizeof self);
}
