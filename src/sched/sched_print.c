/* A schedule as text, for explain. */
#include "sched/sched.h"

static const char *role_of(const smg_schedule *s, int a) {
    const smg_axis_set bit = SMG_AXIS_BIT(a);
    if (a == s->row_axis) return s->grid & bit ? "spatial, rows" : a == s->temporal ? "temporal, rows" : "whole, rows";
    if (a == s->col_axis) return "spatial, columns";
    if (a == s->temporal) return "temporal";
    if (s->serial & bit) return "temporal, one by one";
    if (s->space->repeat.count > 0 && a == s->space->repeat.axis) return "bodies";
    return s->grid & bit      ? "spatial"
           : s->columns & bit ? "whole"
           : s->held & bit    ? "whole, in each lane"
           : s->inner & bit   ? "contraction, staged"
                              : "unused";
}

void smg_sched_print(const smg_schedule *s, smg_text *text) {
    for (int a = 0; a < s->space->axes.count; a++) {
        smg_text_addf(text, "  %s = ", s->space->axes.items[a].name);
        smg_size_print(s->space->graph->sizes, s->space->axes.items[a].extent, text);
        smg_text_addf(text, ": %s, tile %lld\n", role_of(s, a), (long long)s->tile[a]);
    }
    for (int a = 0; a < s->space->axes.count; a++) {
        if (!(s->anew & SMG_AXIS_BIT(a))) continue;
        smg_text_addf(text, "  %s is cut all the same: each block computes anew what lacks it\n",
                      s->space->axes.items[a].name);
    }
    smg_text_addf(text, "  lanes %d x %d", s->lane_rows, s->lane_cols);
    if (s->lane_depth > 1) smg_text_addf(text, ", contraction over %d", s->lane_depth);
    if (s->matrix != NULL)
        smg_text_addf(text, ", %d x %d subgroups of %s%dx%dx%d matrices", s->matrix_rows, s->matrix_cols,
                      s->matrix_sums == NULL ? "opaque " : "", s->matrix->m, s->matrix->n, s->matrix->k);
    if (s->ahead > 0) smg_text_add(text, s->ahead > 1 ? ", slices fetched ahead together" : ", slices fetched ahead");
    if (s->slots > 1) smg_text_addf(text, " into %d slots", s->slots);
    if (s->direct) smg_text_add(text, ", operands read where they lie");
    if (s->alone) smg_text_add(text, ", each lane its rows alone");
    if (s->groups) smg_text_add(text, ", loads by groups");
    if (s->streams) smg_text_addf(text, ", %sfactors straight from memory", s->rings > 1 ? "right " : "");
    if (s->rings > 1 && !s->streams) smg_text_addf(text, ", factors in rings of %d", s->rings);
    if (s->reuse) smg_text_add(text, ", shared memory reused");
    if (s->band > 0) smg_text_addf(text, ", bands of %lld blocks of rows", (long long)s->band);
    smg_text_addf(text, ", subgroup %d\n", s->subgroup);
}
