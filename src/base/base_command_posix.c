/* What the command asks of the operating system, POSIX. See base.h. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "base/base.h"

#include <fcntl.h>
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
