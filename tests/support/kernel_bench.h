/* A kernel read from its text, in a context of its own. Failures fail the running test. */
#ifndef TESTS_KERNEL_BENCH_H
#define TESTS_KERNEL_BENCH_H

#include "kernel/kernel.h"

typedef struct bench {
    smg_context *ctx;
    smg_arena *arena;
    smg_sizes *sizes;
    smg_kernel *k;
    int64_t symbols[4]; /* by number; 0 until given */
} bench;

void bench_open(bench *b, const char *text); /* not verified */
void bench_close(bench *b);
/* The text with the first `from` replaced; it must be there. Free it. */
char *bench_changed(const char *text, const char *from, const char *to);

/* Gates: three values of each column, of which results read one each, and all of them backwards. The gates lie over
 * registers, one time as bits and one time as a repeat. */
extern const char bench_gates[];
/* A product whose slices lie in slots: of the left factor two, fetched one step ahead and put beside the product; of the
 * right one three, staged two steps ahead. */
extern const char bench_ring[];

#endif
