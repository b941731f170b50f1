/* What a command asks of the operating system, Windows. See smg/command.h. */
#include "smg/command.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>

/* Streams have no numbers here that a file could take. What is written is the same on every system: lines end in \n. */
bool smg_command_hold_streams(void) {
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    return true;
}

/* One that understands what is written to erase a line. */
bool smg_command_errors_on_terminal(void) {
    HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
    DWORD mode;
    return GetConsoleMode(console, &mode) && SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

static char *in_utf8(const wchar_t *word) {
    int bytes = WideCharToMultiByte(CP_UTF8, 0, word, -1, NULL, 0, NULL, NULL);
    char *text = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (text != NULL) WideCharToMultiByte(CP_UTF8, 0, word, -1, text, bytes, NULL, NULL);
    return text;
}

/* Those of main are in the code page of the process, which has few letters. They live as long as the process does. */
char **smg_command_words(int *io_count, char **words) {
    int count = 0;
    (void)words;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **texts = wide != NULL ? calloc((size_t)count + 1, sizeof(*texts)) : NULL;
    bool all = texts != NULL;
    for (int i = 0; all && i < count; i++) {
        texts[i] = in_utf8(wide[i]);
        all = texts[i] != NULL;
    }
    LocalFree(wide);
    *io_count = count;
    return all ? texts : NULL;
}

/* An interrupt comes as a thread of its own here, which could tell nobody without state of the process. */
bool smg_command_hold_interrupt(void) {
    return false;
}

bool smg_command_is_interrupted(void) {
    return false;
}

void smg_command_release_interrupt(bool taken) {
    (void)taken;
}
