/* Private to kernel/: which tiles are needed at the same time. */
#ifndef SMG_KERNEL_LIVE_H
#define SMG_KERNEL_LIVE_H

#include "kernel/kernel.h"

static inline bool kernel_live_has(const kernel_live_set *s, int tile) {
    return (s->word[tile / 64] >> (tile % 64)) & 1;
}

/* out_meets[t], for every tile: those whose value is still needed when `t` is written, or is read by what writes it.
 * False where the program has more tiles or loops than are followed. */
bool kernel_live_meets(const smg_kernel *k, kernel_live_set *out_meets);

/* Fills k->live. Everybody who makes a kernel calls it when the program is complete; it holds for any sizes. */
smg_status kernel_live_keep(smg_kernel *k);

#endif
