/* Graph text, rewritten: what tests of rewrites look at. Failures fail the running test. */
#ifndef TESTS_REWRITTEN_H
#define TESTS_REWRITTEN_H

#include "rewrite/rewrite.h"

/* The text parses, is rewritten, and `expected` stands somewhere in what is printed then. */
void assert_rewritten_has(smg_context *ctx, const char *text, const char *expected);
/* The same of the one line that makes `y`: it begins with `expected`. */
void assert_y_becomes(smg_context *ctx, const char *text, const char *expected);

#endif
