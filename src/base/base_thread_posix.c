/* Threads and locks of the operating system, POSIX. See base_internal.h. */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE
#endif

#include "base/base_internal.h"

#include <signal.h>

static void *begin(void *argument) {
    const smg_os_thread *thread = argument;
    thread->body(thread->user);
    return NULL;
}

/* Signals belong to the host program's own threads. */
bool smg_os_thread_start(smg_os_thread *thread, void (*body)(void *user), void *user) {
    sigset_t all, old;
    sigfillset(&all);
    thread->body = body;
    thread->user = user;
    bool masked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    bool started = pthread_create(&thread->id, NULL, begin, thread) == 0;
    if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

void smg_os_thread_join(smg_os_thread *thread) {
    pthread_join(thread->id, NULL);
}

bool smg_os_mutex_init(smg_os_mutex *mutex) {
    return pthread_mutex_init(mutex, NULL) == 0;
}

void smg_os_mutex_end(smg_os_mutex *mutex) {
    pthread_mutex_destroy(mutex);
}

void smg_os_mutex_take(smg_os_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

void smg_os_mutex_give(smg_os_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

bool smg_os_condition_init(smg_os_condition *condition) {
    return pthread_cond_init(condition, NULL) == 0;
}

void smg_os_condition_end(smg_os_condition *condition) {
    pthread_cond_destroy(condition);
}

void smg_os_condition_wait(smg_os_condition *condition, smg_os_mutex *mutex) {
    pthread_cond_wait(condition, mutex);
}

void smg_os_condition_tell(smg_os_condition *condition) {
    pthread_cond_broadcast(condition);
}

uint64_t smg_thread_self(void) {
    pthread_t self = pthread_self();
    return smg_hash_bytes(SMG_HASH_SEED, &self, sizeof self);
}
