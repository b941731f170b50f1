/* glsl_sums.c: the sums of a product that is written out. Multiply-adds of neighbouring columns are one of vectors: a
 * driver takes as long over one of four as over one of numbers, through all that it does before vectors are taken
 * apart, and its code is the same (bench/NOTES.md). Sums are packed in front of the product and unpacked behind it. */
#include "glsl_private.h"

const char *glsl_vector(int width) {
    return width == 1 ? "float" : glsl_group_word(SMG_TYPE_F32, width);
}

const char *glsl_vector_of(glsl_writer *w, const char **parts, int width) {
    const char *all = parts[0];
    for (int n = 1; n < width; n++) all = GLSL_STRING(w, "%s, %s", all, parts[n]);
    return width == 1 ? all : GLSL_STRING(w, "%s(%s)", glsl_vector(width), all);
}

glsl_sums glsl_sums_of(const glsl_writer *w, const glsl_iter *it, int tile) {
    int columns = it->inner_registers, group = columns % SMG_WIDE == 0   ? SMG_WIDE
                                               : columns % SMG_PAIR == 0 ? SMG_PAIR
                                                                         : 1;
    return (glsl_sums){.it = it, .tile = tile, .group = w->k->numbered ? group : 1};
}

/* The register with row i's sum of column j. */
static const char *element(glsl_writer *w, const glsl_sums *sums, int i, int j) {
    const smg_layout *layout = &w->k->layouts.items[w->k->tiles.items[sums->tile].layout];
    int64_t at[SMG_LAYOUT_AXES];
    for (int n = 0; n < layout->axis_count; n++) {
        int axis = layout->axes[n].axis;
        at[n] = smg_layout_part(&sums->it->outer, axis, SMG_LAYOUT_REGISTER, i) +
                smg_layout_part(&sums->it->inner, axis, SMG_LAYOUT_REGISTER, j);
    }
    return glsl_register(w, sums->tile, GLSL_STRING(w, "%lld", (long long)smg_layout_register_of(layout, at)));
}

/* "s3": the vector with row i's sum of column j. */
static const char *name_of(glsl_writer *w, const glsl_sums *sums, int i, int j) {
    if (sums->group == 1) return element(w, sums, i, j);
    return GLSL_STRING(w, "s%d", (i * sums->it->inner_registers + j) / sums->group);
}

void glsl_open_sums(glsl_writer *w, const glsl_sums *sums) {
    const char *parts[SMG_WIDE] = {"", "", "", ""};
    if (sums->group == 1) return;
    for (int i = 0; i < sums->it->outer_registers; i++)
        for (int j = 0; j < sums->it->inner_registers; j += sums->group) {
            for (int n = 0; n < sums->group; n++) parts[n] = element(w, sums, i, j + n);
            GLSL_LINE(w, "%s %s = %s;", glsl_vector(sums->group), name_of(w, sums, i, j),
                      glsl_vector_of(w, parts, sums->group));
        }
}

void glsl_add_products(glsl_writer *w, const glsl_sums *sums, int i, int j, const char *left, const char *right) {
    const char *name = name_of(w, sums, i, j);
    const char *all = sums->group == 1 ? left : GLSL_STRING(w, "%s(%s)", glsl_vector(sums->group), left);
    GLSL_LINE(w, "%s = fma(%s, %s, %s);", name, all, right, name);
}

void glsl_close_sums(glsl_writer *w, const glsl_sums *sums) {
    if (sums->group == 1) return;
    for (int i = 0; i < sums->it->outer_registers; i++)
        for (int j = 0; j < sums->it->inner_registers; j++)
            GLSL_LINE(w, "%s = %s[%d];", element(w, sums, i, j), name_of(w, sums, i, j), j % sums->group);
}
