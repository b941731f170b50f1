/* Walks by all invocations. STAGE, FETCH and PUT deal out the elements of a tile, flattened in the order of the walk:
 * that order is the one axis of a layout. An invocation takes neighbours at once, the next invocation those behind
 * them, and they go round until nothing is left. */
#include "kernel/kernel.h"

int smg_walk_width(const smg_instr *walk) {
    return walk->wide[0].width > 0 ? walk->wide[0].width : 1;
}

smg_layout smg_walk_layout(const smg_kernel *k, int64_t elements, int width) {
    smg_layout layout = smg_layout_one();
    smg_layout_add(&layout, SMG_LAYOUT_REGISTER, SMG_WALK_AXIS, width);
    smg_layout_add(&layout, SMG_LAYOUT_LANE, SMG_WALK_AXIS, k->subgroup);
    smg_layout_add(&layout, SMG_LAYOUT_SUBGROUP, SMG_WALK_AXIS, k->lanes / k->subgroup);
    int64_t round = smg_layout_span(&layout, SMG_WALK_AXIS);
    smg_layout_repeat(&layout, SMG_WALK_AXIS, elements / round + (elements % round != 0));
    return layout;
}

int64_t smg_walk_registers(const smg_kernel *k, int64_t elements) {
    return elements / k->lanes + (elements % k->lanes != 0);
}

smg_layout smg_kernel_walk(const smg_kernel *k, const smg_instr *walk) {
    return smg_walk_layout(k, smg_tile_elements(k, &k->tiles.items[walk->dst]), smg_walk_width(walk));
}

int64_t smg_walk_steps(const smg_kernel *k, const smg_instr *walk) {
    smg_layout layout = smg_kernel_walk(k, walk);
    return smg_layout_registers(&layout) / smg_walk_width(walk);
}
