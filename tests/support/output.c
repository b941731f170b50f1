/* See the header. The only place that knows the variable. */
#include "output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

const char *test_output(char *room, size_t bytes, const char *name) {
    const char *folder = getenv("SMG_TEST_OUTPUT");
    if (folder == NULL || folder[0] == '\0') fail_msg("SMG_TEST_OUTPUT, the folder for '%s', is not set", name);
    int length = snprintf(room, bytes, "%s/%s", folder != NULL ? folder : "", name);
    if (length < 0 || (size_t)length >= bytes) fail_msg("the path of '%s' takes %d bytes", name, length);
    return room;
}
