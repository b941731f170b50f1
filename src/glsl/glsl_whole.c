/* glsl_whole.c: matrices that go between memory and registers as a whole. Element by element drivers keep an address
 * for each, from in front of the loops on. Tiles that cross the end of an axis go element by element. */
#include "glsl_private.h"

const char *glsl_whole(glsl_writer *w, const smg_instr *instr, int a) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    const char *condition = glsl_aligned(w, a, instr->wide[0]);
    for (int i = 0; i < layout->axis_count; i++) {
        int axis = layout->axes[i].axis;
        if (glsl_always_valid(w, axis)) continue;
        const char *last = GLSL_STRING(w, "%lld", (long long)w->k->axes.items[axis].tile - 1);
        condition = glsl_both(w, condition, glsl_valid_text(w, axis, last));
    }
    return condition;
}

static smg_size stride_along(const smg_access *access, int axis) {
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] == axis) return access->stride[i];
    return SMG_SIZE_ZERO;
}

/* Where matrix n of the subgroup's begins in memory; elements: registers that a lane has of one. */
static const char *begin_of(glsl_writer *w, const glsl_iter *it, int a, int64_t n, int64_t elements) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *sum = it->address[a];
    for (int i = 0; i < it->layout.axis_count; i++) {
        int axis = it->layout.axes[i].axis;
        int64_t first = smg_layout_part(&it->layout, axis, SMG_LAYOUT_REGISTER, n * elements);
        const char *at =
            glsl_plus(w, glsl_subgroup_part(w, &it->layout, axis), GLSL_STRING(w, "%lld", (long long)first));
        if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
        sum = glsl_plus(w, sum, glsl_times(w, at, stride_along(access, axis)));
    }
    return sum;
}

static const char *rows_apart(glsl_writer *w, const smg_instr *instr, int a) {
    smg_wide wide;
    int row = -1;
    if (!smg_kernel_whole_matrices(w->k, instr, &wide, &row)) {
        glsl_fail(w, SMG_INTERNAL, "whole matrices at once of what does not lie so");
        return "0";
    }
    return glsl_size(w, stride_along(&w->k->accesses.items[a], row));
}

static void open_block(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int a, const char *whole) {
    glsl_iter_of(w, it, instr);
    if (w->status != SMG_OK) return;
    glsl_expr_prepare(w, it, instr->expr);
    it->access_used[a] = true;
    glsl_open(w, whole == NULL ? "" : GLSL_STRING(w, "if (%s)", whole));
    glsl_hoist(w, it);
}

void glsl_load_matrices(glsl_writer *w, const smg_instr *instr, const char *whole) {
    int a = smg_kernel_plain_load(w->k, instr->expr), buffer = w->k->accesses.items[a].buffer;
    int64_t elements = smg_matrix_elements(&w->k->matrix, SMG_FRAGMENTS_LEFT);
    const char *stride = rows_apart(w, instr, a);
    glsl_iter it;
    open_block(w, &it, instr, a, whole);
    if (w->status != SMG_OK) return;
    w->buffer_read[buffer] = w->buffer_words[buffer] = true;
    for (int64_t n = 0; n < smg_layout_registers(&it.layout) / elements; n++)
        GLSL_LINE(w, "coopMatLoad(t_%s[%lld], g_%s, %s, %s, gl_CooperativeMatrixLayoutRowMajor);",
                  w->tile_name[instr->dst], (long long)n, w->buffer_name[buffer], begin_of(w, &it, a, n, elements),
                  stride);
    glsl_close(w);
}

void glsl_store_matrices(glsl_writer *w, const smg_instr *instr, const char *whole) {
    int a = instr->a, buffer = w->k->accesses.items[a].buffer;
    int64_t elements = smg_matrix_elements(&w->k->matrix, SMG_FRAGMENTS_SUMS);
    smg_type type = w->k->buffers.items[buffer].type;
    const char *stride = rows_apart(w, instr, a), *sums = glsl_matrix_word(w, SMG_FRAGMENTS_SUMS, "float");
    glsl_iter it;
    open_block(w, &it, instr, a, whole);
    if (w->status != SMG_OK) return;
    int64_t count = smg_layout_registers(&it.layout) / elements;
    const char *stored = glsl_matrix_word(w, SMG_FRAGMENTS_SUMS, glsl_element_word(w, type));
    w->buffer_words[buffer] = w->uses[GLSL_USE_16BIT] = true;
    GLSL_LINE(w, "%s whole[%lld];", sums, (long long)count);
    glsl_outer_open(w, &it);
    glsl_inner_open(w, &it);
    const char *value = glsl_expr_text(w, &it, instr->expr), *place = glsl_register_place(w, &it, &it.layout);
    value = glsl_convert(w, value, smg_expr_get(w->k->exprs, instr->expr)->kind, SMG_KIND_FLOAT);
    GLSL_LINE(w, "whole[(%s) / %lld][(%s) %% %lld] = %s;", place, (long long)elements, place, (long long)elements,
              value);
    glsl_inner_close(w, &it);
    glsl_outer_close(w, &it);
    for (int64_t n = 0; n < count; n++) {
        const char *from = GLSL_STRING(w, "whole[%lld]", (long long)n);
        if (type != SMG_TYPE_F32) from = GLSL_STRING(w, "%s(%s)", stored, from);
        GLSL_LINE(w, "coopMatStore(%s, g_%s, %s, %s, gl_CooperativeMatrixLayoutRowMajor);", from,
                  w->buffer_name[buffer], begin_of(w, &it, a, n, elements), stride);
    }
    glsl_close(w);
}
