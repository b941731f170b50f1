/* Where tests write: below $SMG_TEST_OUTPUT, which ctest sets, and nowhere else (meta/output.py). */
#ifndef TESTS_OUTPUT_H
#define TESTS_OUTPUT_H

#include <stddef.h>

/* The path of `name` there, in `room`. Without the variable the test fails: there is no other place. */
const char *test_output(char *room, size_t bytes, const char *name);

#endif
