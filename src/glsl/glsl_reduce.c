/* glsl_reduce.c: REDUCE. Each invocation folds its own elements; what lanes tell each other about them is
 * instructions of their own (glsl_exchange.c). */
#include "glsl_private.h"

/* Extremes by the language's own functions, which may leave out a NaN, as the subgroup's do: to keep it would cost
 * every element two operations more. */
const char *glsl_combined(glsl_writer *w, smg_combine combine, const char *a, const char *b) {
    if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN)
        return GLSL_STRING(w, "%s(%s, %s)", smg_combine_word(combine), a, b);
    return glsl_apply(w, smg_combine_prim(combine), a, b, "");
}

/* The invocation's own elements of one register of the result. Elements beyond the axes' extent are the identity. */
static void reduce_own(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *identity) {
    glsl_inner_open(w, it);
    const char *value = glsl_expr_text(w, it, instr->expr);
    const char *valid = glsl_all_valid(w, it, instr->axes, instr->axis_count);
    if (valid != NULL) {
        smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
        int number = w->serial++;
        GLSL_LINE(w, "%s e%d = %s;", glsl_kind(kind), number, value);
        value = GLSL_STRING(w, "(%s ? e%d : %s)", valid, number, identity);
    }
    GLSL_LINE(w, "acc = %s;", glsl_combined(w, instr->combine, "acc", value));
    glsl_inner_close(w, it);
}

void glsl_reduce(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    glsl_iter it;
    smg_exchange e = smg_kernel_exchange(w->k, instr);
    if (!instr->apart && (e.joined | e.parts) != 0) glsl_fail(w, SMG_INTERNAL, "a reduction's lanes are not joined");
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    const char *identity = glsl_constant(w, smg_tile_kind(dst), smg_combine_identity(instr->combine));
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_outer_open(w, &it);
    GLSL_LINE(w, "%s acc = %s;", glsl_kind(smg_tile_kind(dst)), identity);
    reduce_own(w, &it, instr, identity);
    const char *place = glsl_register_place(w, &it, &w->k->layouts.items[dst->layout]);
    const char *name = glsl_register(w, instr->dst, place);
    GLSL_LINE(w, "%s = %s;", name, instr->accumulate ? glsl_combined(w, instr->combine, name, "acc") : "acc");
    glsl_outer_close(w, &it);
    glsl_report(w, &it);
    glsl_close(w);
}
