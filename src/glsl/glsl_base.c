/* glsl_base.c: where the tiles at hand begin: bases of axes, and slots of rings. */
#include "glsl_private.h"

const char *glsl_base(glsl_writer *w, int axis) {
    if (!w->k->axes.items[axis].grid && !w->looped[axis]) return "0";
    if (w->moved[axis] != NULL) return w->moved[axis];
    int64_t on = w->ahead[axis] + w->copy[axis] * w->k->axes.items[axis].tile;
    if (on > 0) return GLSL_STRING(w, "(at_%s + %lld)", w->axis_name[axis], (long long)on);
    return GLSL_STRING(w, "at_%s", w->axis_name[axis]);
}

int glsl_slot_number(const glsl_writer *w, const smg_tile *tile) {
    int slots = smg_tile_slots(tile);
    if (slots == 1) return 0;
    if (!smg_kernel_steps_known(w->k, tile->ring, slots)) return -1;
    return (int)((w->copy[tile->ring] + w->ahead[tile->ring] / w->k->axes.items[tile->ring].tile) % slots);
}

const char *glsl_slice(glsl_writer *w, int t) {
    t = smg_tile_home(w->k, t);
    const smg_tile *tile = &w->k->tiles.items[t];
    int slot = smg_tile_slots(tile) > 1 ? glsl_slot_number(w, tile) : -1;
    return slot < 0 ? GLSL_STRING(w, "t_%s", w->tile_name[t]) : GLSL_STRING(w, "t_%s[%d]", w->tile_name[t], slot);
}

const char *glsl_slot(glsl_writer *w, const smg_tile *tile) {
    if (tile->sliced) return glsl_times_literal(w, glsl_base(w, tile->ring), smg_tile_slice_stride(w->k, tile));
    int64_t slots = smg_tile_slots(tile), by = slots > 1 ? w->k->axes.items[tile->ring].tile : 1;
    if (glsl_slot_number(w, tile) >= 0) return "0"; /* glsl_slice names it */
    const char *step = slots > 1 ? glsl_base(w, tile->ring) : "0";
    if (strcmp(step, "0") == 0) return step; /* the first step, of a loop from 0 */
    bool powers = smg_is_power_of_two(by) && smg_is_power_of_two(slots);
    if (by > 1)
        step =
            powers ? GLSL_STRING(w, "%s >> %d", step, smg_log2(by)) : GLSL_STRING(w, "%s / %lld", step, (long long)by);
    step = powers ? GLSL_STRING(w, "(%s & %lld)", step, (long long)slots - 1)
                  : GLSL_STRING(w, "(%s %% %lld)", step, (long long)slots);
    return glsl_times_literal(w, step, smg_tile_slot_elements(w->k, tile));
}
