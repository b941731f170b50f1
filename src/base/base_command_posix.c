/* What a command asks of the operating system, POSIX. See smg/command.h. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "smg/command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* A closed stdin, stdout or stderr would be the number of the next file that is opened: a model would be read as text,
 * results would be written into a cache. What is opened here instead fails when it is used, as a closed one does. */
bool smg_command_hold_streams(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) != -1) continue;
        if (open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) != file) return false;
    }
    return true;
}

bool smg_command_errors_on_terminal(void) {
    return isatty(STDERR_FILENO) != 0;
}

char **smg_command_words(int *io_count, char **words) {
    (void)io_count;
    return words;
}

/* While it is held back, Ctrl-C waits to be asked for: there is no state that a handler would need. */
static bool interrupt_set(sigset_t *out_set) {
    return sigemptyset(out_set) == 0 && sigaddset(out_set, SIGINT) == 0;
}

bool smg_command_hold_interrupt(void) {
    sigset_t interrupt;
    return interrupt_set(&interrupt) && pthread_sigmask(SIG_BLOCK, &interrupt, NULL) == 0;
}

bool smg_command_is_interrupted(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1;
}

void smg_command_release_interrupt(bool taken) {
    sigset_t interrupt;
    int number;
    if (!interrupt_set(&interrupt)) return;
    if (taken && smg_command_is_interrupted()) sigwait(&interrupt, &number);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
}
