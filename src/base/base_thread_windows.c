/* Threads and locks of the operating system, Windows: slim locks and condition variables, which need no end. See
 * base_internal.h. */
#include "base/base_internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <process.h>

_Static_assert(sizeof(SRWLOCK) == sizeof(smg_os_mutex), "a slim lock is a pointer");
_Static_assert(sizeof(CONDITION_VARIABLE) == sizeof(smg_os_condition), "a condition variable is a pointer");

static unsigned __stdcall begin(void *argument) {
    const smg_os_thread *thread = argument;
    thread->body(thread->user);
    return 0;
}

/* Started by the C library, which keeps things for each thread. */
bool smg_os_thread_start(smg_os_thread *thread, void (*body)(void *user), void *user) {
    thread->body = body;
    thread->user = user;
    uintptr_t id = _beginthreadex(NULL, 0, begin, thread, 0, NULL);
    thread->id = (void *)id;
    return id != 0;
}

void smg_os_thread_join(smg_os_thread *thread) {
    WaitForSingleObject(thread->id, INFINITE);
    CloseHandle(thread->id);
}

bool smg_os_mutex_init(smg_os_mutex *mutex) {
    InitializeSRWLock((SRWLOCK *)mutex);
    return true;
}

void smg_os_mutex_end(smg_os_mutex *mutex) {
    (void)mutex;
}

void smg_os_mutex_take(smg_os_mutex *mutex) {
    AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void smg_os_mutex_give(smg_os_mutex *mutex) {
    ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

bool smg_os_condition_init(smg_os_condition *condition) {
    InitializeConditionVariable((CONDITION_VARIABLE *)condition);
    return true;
}

void smg_os_condition_end(smg_os_condition *condition) {
    (void)condition;
}

void smg_os_condition_wait(smg_os_condition *condition, smg_os_mutex *mutex) {
    SleepConditionVariableSRW((CONDITION_VARIABLE *)condition, (SRWLOCK *)mutex, INFINITE, 0);
}

void smg_os_condition_tell(smg_os_condition *condition) {
    WakeAllConditionVariable((CONDITION_VARIABLE *)condition);
}

uint64_t smg_thread_self(void) {
    return GetCurrentThreadId();
}
