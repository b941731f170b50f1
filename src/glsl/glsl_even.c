/* glsl_even.c: the even form of a kernel. Most checks of an element ask whether the last tile of an axis is a whole
 * one. The sizes of a run answer that once for all elements, so a kernel has two forms in one text: constant 0 of
 * the pipeline is `even`, and whoever makes the pipeline for an even run sets it, where the interface's sizes are
 * multiples as it says. */
#include "glsl_private.h"

/* Does the even form rely on it? Not when no run can change it or there are too many such sizes, nor where a core has
 * nothing to wait for: checks cost little there, and a second pipeline costs its building. */
static bool relies(glsl_writer *w, smg_size size, int64_t by) {
    if (!smg_target_hides_loads(w->target) || smg_size_is_const(w->k->sizes, size, NULL)) return false;
    for (int i = 0; i < w->even_count; i++)
        if (w->even_size[i] == size && w->even_by[i] % by == 0) return true;
    if (w->even_count == SMG_GLSL_MAX_EVEN) return false;
    w->even_size[w->even_count] = size;
    w->even_by[w->even_count++] = by;
    return true;
}

const char *glsl_unless_even(glsl_writer *w, smg_size size, int64_t by, const char *condition) {
    return relies(w, size, by) ? GLSL_STRING(w, "(even || %s)", condition) : condition;
}
