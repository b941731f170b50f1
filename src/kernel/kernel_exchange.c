/* Exchanges between lanes: which of them hold parts of one value, and where each leaves its part when they are in
 * several subgroups. */
#include "kernel/kernel.h"

smg_exchange smg_kernel_exchange(const smg_kernel *k, const smg_instr *in) {
    uint32_t mask = smg_layout_local_mask(&k->layouts.items[in->layout], in->axes, in->axis_count);
    uint32_t lanes = (uint32_t)k->subgroup - 1;
    smg_exchange e = {.joined = mask & lanes, .width = 1};
    if (k->subgroup > 1 && e.joined == lanes) e.width = k->subgroup;
    e.units = k->lanes / e.width;
    e.parts = (mask & ~lanes) / (uint32_t)e.width;
    e.others = e.parts | (e.width > 1 ? 0 : e.joined);
    e.part_count = 1;
    for (uint32_t rest = e.parts; rest != 0; rest &= rest - 1) e.part_count *= 2;
    return e;
}

int64_t smg_exchange_word(const smg_exchange *e, int reg, int unit) {
    return (int64_t)reg * e->units + unit;
}

uint32_t smg_exchange_next(uint32_t bits, uint32_t part) {
    return (part - bits) & bits;
}
