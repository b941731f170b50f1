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
    int64_t threads = (int64_t)sysconf(_SC_NPROCESSORS_ONLN);
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

uint64_t smg_thread_self(void) {
    pthread_t self = pthread_self();
    return smg_hash_bytes(SMG_HASH_SEED, &self, sizeof self);
}
