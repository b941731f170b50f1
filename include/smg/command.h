/* smg/command.h: what a program of the command line asks of its system, the same on every one.
 *
 *     int main(int argc, char **argv) {
 *         if (!smg_command_hold_streams() || (argv = smg_command_words(&argc, argv)) == NULL) return 2;
 *         ...
 *
 * The `smg` command is written with it. These are of the process: they belong to no context, and libsmg-rt has none of
 * them.
 */
#ifndef SMG_COMMAND_H
#define SMG_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "smg/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes stdin, stdout and stderr what the rest may rely on: no other file can take their place, and lines end in \n.
 * false: it cannot be. To be called first of all. */
SMG_API bool smg_command_hold_streams(void);
/* stderr is a terminal that understands what erases a line. */
SMG_API bool smg_command_errors_on_terminal(void);
/* The words of main in UTF-8, which live as long as the process does; NULL: memory is out. */
SMG_API char **smg_command_words(int *io_count, char **words);
/* Monotonic, from a start that is not told. */
SMG_API double smg_command_seconds(void);
/* A file, a folder or anything else; the path is UTF-8. */
SMG_API bool smg_command_path_exists(const char *path);
/* Writes a file whole or not at all: beside `path`, then in its place. Links are followed; what is no file (/dev/null,
 * a pipe) is written to as it is. IO: the system's reason. */
SMG_API smg_status smg_command_write_file(smg_context *ctx, const char *path, const void *data, size_t bytes);

/* Ctrl-C as a question instead of an end: from `hold` to `release` an interrupt waits. false: the system does not do
 * that (Windows), and an interrupt ends the program as ever. */
SMG_API bool smg_command_hold_interrupt(void);
SMG_API bool smg_command_is_interrupted(void); /* one waits; false where none is held */
/* `taken`: the one that waits has been seen to; else it ends the program now. */
SMG_API void smg_command_release_interrupt(bool taken);

#ifdef __cplusplus
}
#endif
#endif
