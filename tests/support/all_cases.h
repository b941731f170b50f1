/* Which cases of a long test run: a fixed share of them, or all with SMG_ALL_CASES=1 in the environment. */
#ifndef TESTS_ALL_CASES_H
#define TESTS_ALL_CASES_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool all_cases(void) {
    return getenv("SMG_ALL_CASES") != NULL;
}

#endif
