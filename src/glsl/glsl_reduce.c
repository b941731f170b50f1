/* glsl_reduce.c: REDUCE. Three steps for each row register: the invocation's own elements, then the
 * column lanes of its subgroup (xor butterfly, clustered or whole-subgroup operation, as the target
 * offers), then, where a row spans several subgroups, one shared word each. Without subgroups the
 * second and third step are a tree through shared memory. Every invocation takes part in steps two
 * and three. */
#include "glsl_private.h"

/* Extremes by the language's own functions, which may leave out a NaN, as the subgroup's do: to keep it would cost
 * every element two operations more. */
static const char *combined(glsl_writer *w, smg_combine combine, const char *a, const char *b) {
    if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN)
        return GLSL_STRING(w, "%s(%s, %s)", smg_combine_word(combine), a, b);
    return glsl_apply(w, smg_combine_prim(combine), a, b, "");
}

static const char *subgroup_word(smg_combine combine) {
    static const char *const words[SMG_COMBINE_COUNT] = {
        [SMG_COMBINE_ADD] = "Add", [SMG_COMBINE_MAX] = "Max", [SMG_COMBINE_MIN] = "Min", [SMG_COMBINE_MUL] = "Mul"};
    return words[combine];
}

/* acc becomes the combination over `lanes` neighbouring lanes, in each of them. */
static void reduce_cluster(glsl_writer *w, smg_combine combine, int lanes) {
    const smg_target *target = w->target;
    if (lanes == 1) return;
    w->uses[GLSL_USE_SUBGROUP] = true;
    if (lanes == w->k->subgroup && target->subgroup_arithmetic) {
        w->uses[GLSL_USE_ARITHMETIC] = true;
        GLSL_LINE(w, "acc = subgroup%s(acc);", subgroup_word(combine));
    } else if (target->subgroup_clustered && w->weave.columns == 0) {
        w->uses[GLSL_USE_CLUSTERED] = true;
        GLSL_LINE(w, "acc = subgroupClustered%s(acc, %du);", subgroup_word(combine), lanes);
    } else if (target->subgroup_shuffle) {
        w->uses[GLSL_USE_SHUFFLE] = true;
        for (int n = lanes; n > 1; n /= 2) {
            const char *other = GLSL_STRING(w, "subgroupShuffleXor(acc, %du)", glsl_column_mask(w, n));
            GLSL_LINE(w, "acc = %s;", combined(w, combine, "acc", other));
        }
    } else {
        glsl_fail(w, SMG_UNSUPPORTED, "reduces in subgroups, the device has no such operations");
    }
}

static const char *to_word(glsl_writer *w, smg_kind kind, const char *text) {
    if (kind == SMG_KIND_FLOAT) return GLSL_STRING(w, "floatBitsToUint(%s)", text);
    return GLSL_STRING(w, "uint(%s)", text);
}

static const char *from_word(glsl_writer *w, smg_kind kind, const char *text) {
    if (kind == SMG_KIND_FLOAT) return GLSL_STRING(w, "uintBitsToFloat(%s)", text);
    return GLSL_STRING(w, "%s(%s)", glsl_kind(kind), text);
}

/* Which run of column lanes the invocation is in. */
static const char *line_of(glsl_writer *w) {
    return w->k->lane_depth > 1 ? GLSL_STRING(w, "(local / %d)", w->k->lane_cols) : w->row_lane;
}

/* A row spans several subgroups: each leaves one word, everybody combines them in the same order.
 */
static void reduce_subgroups(glsl_writer *w, smg_combine combine, smg_kind kind) {
    const smg_kernel *k = w->k;
    int parts = k->lane_cols / k->subgroup;
    w->uses[GLSL_USE_SCRATCH] = true;
    GLSL_LINE(w, "barrier();");
    GLSL_LINE(w, "if ((local & %d) == 0) smg_scratch[local / %d] = %s;", k->subgroup - 1, k->subgroup,
              to_word(w, kind, "acc"));
    GLSL_LINE(w, "barrier();");
    const char *first = glsl_times_literal(w, line_of(w), parts);
    GLSL_LINE(w, "acc = %s;", from_word(w, kind, GLSL_STRING(w, "smg_scratch[%s]", first)));
    if (parts <= 32) GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int part = 1; part < %d; ++part)", parts));
    const char *word = GLSL_STRING(w, "smg_scratch[%s]", glsl_plus(w, first, "part"));
    GLSL_LINE(w, "acc = %s;", combined(w, combine, "acc", from_word(w, kind, word)));
    glsl_close(w);
}

static void reduce_tree(glsl_writer *w, smg_combine combine, smg_kind kind) {
    const smg_kernel *k = w->k;
    w->uses[GLSL_USE_SCRATCH] = true;
    GLSL_LINE(w, "barrier();");
    GLSL_LINE(w, "smg_scratch[local] = %s;", to_word(w, kind, "acc"));
    GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int half_ = %d; half_ > 0; half_ >>= 1)", k->lane_cols / 2));
    GLSL_LINE(w, "barrier();");
    glsl_open(w, "if (col_lane < half_)");
    GLSL_LINE(w, "acc = %s;", combined(w, combine, "acc", from_word(w, kind, "smg_scratch[local + half_]")));
    GLSL_LINE(w, "smg_scratch[local] = %s;", to_word(w, kind, "acc"));
    glsl_close(w);
    glsl_close(w);
    GLSL_LINE(w, "barrier();");
    const char *first = glsl_times_literal(w, line_of(w), k->lane_cols);
    GLSL_LINE(w, "acc = %s;", from_word(w, kind, GLSL_STRING(w, "smg_scratch[%s]", first)));
}

static void reduce_lanes(glsl_writer *w, smg_combine combine, smg_kind kind) {
    const smg_kernel *k = w->k;
    if (k->lane_cols == 1) return;
    if ((k->lane_cols & (k->lane_cols - 1)) != 0) {
        glsl_fail(w, SMG_INTERNAL, "a reduction over lanes that are not a power of two");
    } else if (k->subgroup <= 1) {
        reduce_tree(w, combine, kind);
    } else if (k->lane_cols <= k->subgroup) {
        reduce_cluster(w, combine, k->lane_cols);
    } else {
        reduce_cluster(w, combine, k->subgroup);
        reduce_subgroups(w, combine, kind);
    }
}

/* The invocation's own elements of one row register. Elements beyond the axes' extent are the
 * identity. */
static void reduce_own(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *identity) {
    glsl_columns_open(w, it);
    const char *value = glsl_expr_text(w, it, instr->expr);
    const char *valid = glsl_all_valid(w, it, instr->axes, instr->axis_count);
    if (valid != NULL) {
        smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
        int number = w->serial++;
        GLSL_LINE(w, "%s e%d = %s;", glsl_kind(kind), number, value);
        value = GLSL_STRING(w, "(%s ? e%d : %s)", valid, number, identity);
    }
    /* A single element is replicated over the column lanes: it counts in one of them. */
    if (it->columns == 1 && w->k->lane_cols > 1) GLSL_LINE(w, "if (col_lane == 0)");
    GLSL_LINE(w, "acc = %s;", combined(w, instr->combine, "acc", value));
    glsl_columns_close(w, it);
}

void glsl_reduce(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    glsl_iter it;
    glsl_iter_init(w, &it, dst->axis, dst->axis_count);
    glsl_iter_add(w, &it, instr->axes, instr->axis_count);
    if (w->status != SMG_OK) return;
    glsl_iter_finish(w, &it);
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    const char *identity = glsl_constant(w, dst->kind, smg_combine_identity(instr->combine));
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_rows_open(w, &it);
    GLSL_LINE(w, "%s acc = %s;", glsl_kind(dst->kind), identity);
    reduce_own(w, &it, instr, identity);
    reduce_lanes(w, instr->combine, dst->kind);
    const char *place = it.has_row ? it.i : "0";
    const char *name = GLSL_STRING(w, "t_%s[%s]", w->tile_name[instr->dst], place);
    GLSL_LINE(w, "%s = %s;", name, instr->accumulate ? combined(w, instr->combine, name, "acc") : "acc");
    glsl_rows_close(w, &it);
    glsl_close(w);
}
