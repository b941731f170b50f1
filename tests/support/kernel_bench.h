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

/* Of a product y = a b whose left slices lie in runs, beside right ones that lanes load by runs: sums s, factors fa and
 * fb, a slice sa and na on its way there. */
#define BENCH_RUNS_TILES                                                                                               \
    "tile s float register [i, j] layout 0 fragments\n"                                                                \
    "tile fa f16 register [i, k] layout 2 left fragments\n"                                                            \
    "tile fb f16 register [j, k] layout 3 right fragments\n"                                                           \
    "tile sa f16 shared [i, k] pad 8 in runs\n"                                                                        \
    "tile na f16 staging [i, k]\n"
#define BENCH_RUNS_CODE                                                                                                \
    "code\n"                                                                                                           \
    "  set s = 0\n"                                                                                                    \
    "  fetch na walk [i, k] along k ahead 0 = load(0)\n"                                                               \
    "  loop k\n"                                                                                                       \
    "    put sa walk [i, k] = na\n"                                                                                    \
    "    barrier\n"                                                                                                    \
    "    fetch na walk [i, k] along k ahead 1 = load(0)\n"                                                             \
    "    take fa = sa\n"                                                                                               \
    "    set fb by 8 k = load(1)\n"                                                                                    \
    "    mma s += fa * fb over [k] layout 1\n"                                                                         \
    "    barrier\n"                                                                                                    \
    "  end\n"                                                                                                          \
    "  store 2 over [i, j] layout 0 = s\n"

/* Gates: three values of each column, of which results read one each, and all of them backwards. The gates lie over
 * registers, one time as bits and one time as a repeat. */
extern const char bench_gates[];
/* A product whose slices lie in slots: of the left factor two, fetched one step ahead and put beside the product; of the
 * right one three, staged two steps ahead. */
extern const char bench_ring[];

#endif
