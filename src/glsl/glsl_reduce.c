/* glsl_reduce.c: REDUCE. Three steps for each register of the result: the invocation's own elements, then the lanes of
 * its subgroup that hold others (whole-subgroup or clustered operation, or xor butterfly, as the target offers), then,
 * where several subgroups do, one shared word each. Without subgroups the second and third step are a tree through
 * shared memory. Every invocation takes part in steps two and three. */
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

/* `name` becomes the combination over the lanes of the subgroup that differ in bits of `mask`, in each of them. */
void glsl_reduce_lanes(glsl_writer *w, smg_combine combine, const char *name, uint32_t mask) {
    const smg_target *target = w->target;
    uint32_t all = (uint32_t)w->k->subgroup - 1;
    if (mask == 0) return;
    w->uses[GLSL_USE_SUBGROUP] = true;
    if (mask == all && target->subgroup_arithmetic) {
        w->uses[GLSL_USE_ARITHMETIC] = true;
        GLSL_LINE(w, "%s = subgroup%s(%s);", name, subgroup_word(combine), name);
    } else if (target->subgroup_clustered && (mask & (mask + 1)) == 0) {
        w->uses[GLSL_USE_CLUSTERED] = true;
        GLSL_LINE(w, "%s = subgroupClustered%s(%s, %uu);", name, subgroup_word(combine), name, mask + 1);
    } else if (target->subgroup_shuffle) {
        w->uses[GLSL_USE_SHUFFLE] = true;
        for (uint32_t bit = (all + 1) / 2; bit > 0; bit /= 2) {
            if ((mask & bit) == 0) continue;
            const char *other = GLSL_STRING(w, "subgroupShuffleXor(%s, %uu)", name, bit);
            GLSL_LINE(w, "%s = %s;", name, combined(w, combine, name, other));
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

static const char *scratch_word(glsl_writer *w, smg_kind kind, const char *place) {
    return from_word(w, kind, GLSL_STRING(w, "smg_scratch[%s]", place));
}

/* Several subgroups: each leaves a word, or one for each of its lanes that `lanes` did not combine; everybody combines
 * them in the same order. `mask`: bits of the subgroup's number, in a run. */
static void reduce_subgroups(glsl_writer *w, smg_combine combine, smg_kind kind, uint32_t lanes, uint32_t mask) {
    const smg_kernel *k = w->k;
    uint32_t all = (uint32_t)k->subgroup - 1, lowest = mask & (~mask + 1), parts = mask / lowest + 1;
    bool whole = lanes == all;
    const char *own = whole ? GLSL_STRING(w, "local / %d", k->subgroup) : "local";
    uint32_t unit = whole ? 1 : (uint32_t)k->subgroup, gone = mask * unit | (whole ? 0 : lanes);
    w->uses[GLSL_USE_SCRATCH] = true;
    GLSL_LINE(w, "barrier();");
    glsl_open(w, lanes == 0 ? "" : GLSL_STRING(w, "if ((local & %u) == 0)", lanes));
    GLSL_LINE(w, "smg_scratch[%s] = %s;", own, to_word(w, kind, "acc"));
    glsl_close(w);
    GLSL_LINE(w, "barrier();");
    GLSL_LINE(w, "int first = (%s) & ~%u;", own, gone);
    GLSL_LINE(w, "acc = %s;", scratch_word(w, kind, "first"));
    if (parts <= 32) GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int part = 1; part < %u; ++part)", parts));
    const char *place = glsl_plus(w, "first", glsl_times_literal(w, "part", (int64_t)lowest * unit));
    GLSL_LINE(w, "acc = %s;", combined(w, combine, "acc", scratch_word(w, kind, place)));
    glsl_close(w);
}

/* Without subgroups: a tree, the highest bit first. */
static void reduce_tree(glsl_writer *w, smg_combine combine, smg_kind kind, uint32_t mask) {
    uint32_t done = 0;
    w->uses[GLSL_USE_SCRATCH] = true;
    GLSL_LINE(w, "barrier();");
    GLSL_LINE(w, "smg_scratch[local] = %s;", to_word(w, kind, "acc"));
    for (uint32_t bit = (uint32_t)w->k->lanes / 2; bit > 0; bit /= 2) {
        if ((mask & bit) == 0) continue;
        done |= bit;
        GLSL_LINE(w, "barrier();");
        glsl_open(w, GLSL_STRING(w, "if ((local & %u) == 0)", done));
        const char *other = scratch_word(w, kind, GLSL_STRING(w, "local + %u", bit));
        GLSL_LINE(w, "acc = %s;", combined(w, combine, "acc", other));
        GLSL_LINE(w, "smg_scratch[local] = %s;", to_word(w, kind, "acc"));
        glsl_close(w);
    }
    GLSL_LINE(w, "barrier();");
    GLSL_LINE(w, "acc = %s;", scratch_word(w, kind, GLSL_STRING(w, "local & ~%u", mask)));
}

/* acc of all lanes that hold elements along the instruction's axes becomes their combination, in each of them. */
static void exchange(glsl_writer *w, const smg_instr *instr, smg_kind kind) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    uint32_t mask = smg_layout_local_mask(layout, instr->axes, instr->axis_count);
    uint32_t lanes = mask & ((uint32_t)w->k->subgroup - 1), above = mask / (uint32_t)w->k->subgroup;
    if (w->k->subgroup == 1) {
        if (mask != 0) reduce_tree(w, instr->combine, kind, mask);
        return;
    }
    glsl_reduce_lanes(w, instr->combine, "acc", lanes);
    if (above != 0) reduce_subgroups(w, instr->combine, kind, lanes, above);
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
    GLSL_LINE(w, "acc = %s;", combined(w, instr->combine, "acc", value));
    glsl_inner_close(w, it);
}

void glsl_reduce(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    glsl_iter it;
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    const char *identity = glsl_constant(w, dst->kind, smg_combine_identity(instr->combine));
    glsl_open(w, "");
    glsl_hoist(w, &it);
    glsl_outer_open(w, &it);
    GLSL_LINE(w, "%s acc = %s;", glsl_kind(dst->kind), identity);
    reduce_own(w, &it, instr, identity);
    if (!instr->apart) exchange(w, instr, dst->kind);
    const char *place = glsl_register_place(w, &it, &w->k->layouts.items[dst->layout]);
    const char *name = GLSL_STRING(w, "t_%s[%s]", w->tile_name[instr->dst], place);
    GLSL_LINE(w, "%s = %s;", name, instr->accumulate ? combined(w, instr->combine, name, "acc") : "acc");
    glsl_outer_close(w, &it);
    glsl_close(w);
}

void glsl_join_parts(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    for (int64_t r = 0; r < smg_tile_registers(w->k, dst); r++) {
        const char *name = GLSL_STRING(w, "t_%s[%lld]", w->tile_name[instr->dst], (long long)r);
        glsl_open(w, "");
        GLSL_LINE(w, "%s acc = %s;", glsl_kind(dst->kind), name);
        exchange(w, instr, dst->kind);
        GLSL_LINE(w, "%s = acc;", name);
        glsl_close(w);
    }
}
