/* What a product by matrices takes: the units that multiply them at their own rate, and the memory near the core that
 * hands them out. Each subgroup reads the matrices of its rows and of its columns once for each step of k. */
#include "plan/plan_internal.h"

#define HALF 2.0 /* bytes of an element */

double plan_matrix_rate(const smg_target *t, int rows, int cols, int depth, smg_type type) {
    const char *word = smg_type_word(type);
    for (int i = 0; i < t->matrix_count; i++) {
        const smg_matrix_shape *s = &t->matrix[i];
        bool same = s->m == rows && s->n == cols && s->k == depth && strcmp(s->a, word) == 0;
        if (same && strcmp(s->result, "f32") == 0 && s->rate > 0) return s->rate;
    }
    return t->fma_rate;
}

plan_round plan_matrix_reads(const smg_target *t, double elements) {
    double bytes = elements * HALF;
    return (plan_round){.slots = bytes / (PLAN_WORD * PLAN_WORD) * t->costs.group_read, .near = bytes};
}

plan_round plan_matrix_round(const smg_target *t, const plan_matrices *m) {
    double all = m->down * m->across * m->subgroups, size = (double)m->rows * m->cols * m->depth;
    double left = m->left_held ? 0 : m->down * (double)m->rows * m->depth;
    double right = m->right_held ? 0 : m->across * (double)m->depth * m->cols;
    plan_round reads = plan_matrix_reads(t, (left + right) * m->subgroups);
    return (plan_round){.slots = all * size * t->costs.matrix * t->fma_rate / m->rate + reads.slots,
                        .near = reads.near};
}
