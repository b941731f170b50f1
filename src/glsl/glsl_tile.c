/* glsl_tile.c: elements of tiles, and groups of them, as the language has them: registers, shared memory, and views of
 * buffers. */
#include "glsl_private.h"

/* Where the coordinate lies in the order of matrices by runs: bits that go the same way together. */
static const char *place_in_runs(glsl_writer *w, const char *at) {
    const smg_matrix *m = &w->k->matrix;
    int run = smg_matrix_in_runs(m).run;
    const char *place = GLSL_STRING(w, "(%s) >> %d << %d", at, run, run);
    for (int bit = 0, to; bit < run; bit = to) {
        int shift = smg_log2(smg_matrix_place_in_runs(m, INT64_C(1) << bit)) - bit;
        for (to = bit + 1; to < run; to++)
            if (smg_log2(smg_matrix_place_in_runs(m, INT64_C(1) << to)) - to != shift) break;
        const char *way = shift == 0  ? ""
                          : shift > 0 ? GLSL_STRING(w, " << %d", shift)
                                      : GLSL_STRING(w, " >> %d", -shift);
        place = GLSL_STRING(w, "%s | ((%s) & %d)%s", place, at, (1 << to) - (1 << bit), way);
    }
    return GLSL_STRING(w, "(%s)", place);
}

static const char *shared_place(glsl_writer *w, const glsl_iter *it, const smg_tile *tile) {
    const char *sum = glsl_slot(w, tile);
    for (int n = tile->axis_count - 1; n >= 0; n--) {
        int axis = tile->axis[n];
        const char *at = it->coord[axis];
        if (tile->in_runs && n == tile->axis_count - 1) at = place_in_runs(w, at);
        sum = glsl_plus(w, glsl_times_literal(w, at, smg_tile_stride(w->k, tile, axis)), sum);
    }
    return sum;
}

void glsl_put_in_runs(glsl_writer *w, const glsl_iter *it, int t, const char *value) {
    int number = w->serial++;
    GLSL_LINE(w, "int p%d = (%s) >> 1;", number, shared_place(w, it, &w->k->tiles.items[t]));
    GLSL_LINE(w, "uvec4 o%d = %s;", number, value);
    for (int64_t n = 0; n < SMG_WIDEST / SMG_PAIR; n++)
        GLSL_LINE(w, "%s[p%d + %lld] = o%d[%lld];", glsl_slice(w, t), number,
                  (long long)(smg_matrix_place_in_runs(&w->k->matrix, SMG_PAIR * n) / SMG_PAIR), number, (long long)n);
}

const char *glsl_tile_group(glsl_writer *w, const glsl_iter *it, int t) {
    return GLSL_STRING(w, "%s[(%s) >> %d]", glsl_slice(w, t), shared_place(w, it, &w->k->tiles.items[t]),
                       it->group == SMG_WIDEST ? 3 : 2);
}

/* The address of the element at hand; *out_valid: the condition that it exists, NULL where it always does. */
static const char *view_address(glsl_writer *w, const glsl_iter *it, const smg_access *access, const char **out_valid) {
    const char *sum = glsl_offset_part(w, access);
    bool blocks = glsl_by_blocks(w, access);
    *out_valid = NULL;
    for (int n = 0; n < access->axis_count; n++) {
        int axis = access->axis[n];
        const char *index = glsl_plus(w, glsl_base(w, axis), it->coord[axis]);
        const char *part = glsl_times(w, GLSL_STRING(w, "(%s)", index), access->stride[n]);
        if (blocks)
            part = glsl_plus(w, glsl_base_part(w, access, n), glsl_address_part(w, access, axis, it->coord[axis]));
        sum = glsl_plus(w, sum, part);
        if (glsl_always_valid(w, axis)) continue;
        *out_valid = glsl_both(w, *out_valid, glsl_valid_text(w, axis, it->coord[axis]));
    }
    return sum;
}

/* An element of memory, 0 where it is not valid. */
static const char *view_element(glsl_writer *w, const glsl_iter *it, const smg_tile *tile) {
    const smg_access *access = &w->k->accesses.items[tile->access];
    const char *valid, *sum = view_address(w, it, access, &valid);
    if (valid == NULL) return glsl_buffer_element(w, access->buffer, sum);
    const char *element = glsl_buffer_element(w, access->buffer, GLSL_STRING(w, "%s ? %s : 0", valid, sum));
    return GLSL_STRING(w, "(%s ? %s : 0.0)", valid, element);
}

static const char *view_group(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_access *access = &w->k->accesses.items[w->k->tiles.items[t].access];
    const char *valid, *sum = view_address(w, it, access, &valid), *name = w->buffer_name[access->buffer];
    w->buffer_wide[access->buffer] = true;
    smg_type type = w->k->buffers.items[access->buffer].type;
    const char *memory = GLSL_STRING(w, "w_%s[(%s) >> 2]", name, sum);
    if (valid != NULL) memory = GLSL_STRING(w, "w_%s[%s ? (%s) >> 2 : 0]", name, valid, sum);
    const char *value = glsl_buffer_group_as(w, type, SMG_TYPE_F32, SMG_WIDE, memory);
    return valid == NULL ? value : GLSL_STRING(w, "(%s ? %s : vec4(0.0))", valid, value);
}

const char *glsl_view_eight(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_access *access = &w->k->accesses.items[w->k->tiles.items[t].access];
    const char *valid, *sum = view_address(w, it, access, &valid), *name = w->buffer_name[access->buffer];
    w->buffer_eight[access->buffer] = true;
    if (valid == NULL) return GLSL_STRING(w, "e_%s[(%s) >> 3]", name, sum);
    return GLSL_STRING(w, "%s ? e_%s[%s ? (%s) >> 3 : 0] : uvec4(0u)", valid, name, valid, sum);
}

const char *glsl_tile_element(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    const char *place;
    if (tile->residence == SMG_VIEW) return view_element(w, it, tile);
    if (tile->residence == SMG_SHARED) {
        place = shared_place(w, it, tile);
        if (smg_tile_wide(w->k, tile)) return GLSL_STRING(w, "%s[(%s) >> 2][(%s) & 3]", glsl_slice(w, t), place, place);
    } else {
        return glsl_register(w, t, glsl_register_place(w, it, &w->k->layouts.items[tile->layout]));
    }
    return GLSL_STRING(w, "%s[%s]", glsl_slice(w, t), place);
}

const char *glsl_tile_value(glsl_writer *w, const glsl_iter *it, int t) {
    return glsl_element_value(w, w->k->tiles.items[t].type, glsl_tile_element(w, it, t));
}

const char *glsl_tile_group_value(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    if (tile->residence == SMG_VIEW) return view_group(w, it, t);
    return glsl_group_value(w, tile->type, SMG_WIDE, glsl_tile_group(w, it, t));
}
