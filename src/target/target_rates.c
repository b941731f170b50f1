/* The rates that a target's prices hang on, as a list: what fitting them to measured kernels changes, and keeps. */
#include "target/target_private.h"

#include <stddef.h>

/* Offsets in smg_target; 0, the name's: of matrices, which have several. */
typedef struct rate_row {
    const char *word;
    size_t value, origin;
    double least; /* that makes sense, of a cost */
} rate_row;

#define FACT(field) #field, offsetof(smg_target, field), offsetof(smg_target, field##_from), 0
#define COST(field) "cost." #field, offsetof(smg_target, costs.field), offsetof(smg_target, costs_from.field)

static const rate_row rows[SMG_RATES] = {
    [SMG_RATE_ARITHMETIC] = {FACT(fma_rate)},  [SMG_RATE_MATRICES] = {"matrix", 0, 0, 0},
    [SMG_RATE_MEMORY] = {FACT(bandwidth)},     [SMG_RATE_CACHE] = {FACT(cache_bandwidth)},
    [SMG_RATE_LATENCY] = {FACT(load_latency)}, [SMG_RATE_DISPATCH] = {FACT(dispatch_cost)},
    [SMG_RATE_BARRIER] = {FACT(barrier_cost)},
#define SMG_COST_ROW(field, switching, spreading, least, what) [SMG_RATE_COST_##field] = {COST(field), least},
#include "target/costs.def"
#undef SMG_COST_ROW
};

const char *smg_rate_word(smg_rate rate) {
    return rows[rate].word;
}

double smg_rate_least(smg_rate rate) {
    return rows[rate].least;
}

static double *value_of(smg_target *target, smg_rate rate) {
    return (double *)(void *)((char *)target + rows[rate].value);
}

double smg_target_rate(const smg_target *target, smg_rate rate) {
    double value = 0;
    if (rate != SMG_RATE_MATRICES) {
        memcpy(&value, (const char *)target + rows[rate].value, sizeof value);
        return value;
    }
    for (int i = 0; i < target->matrix_count; i++)
        if (target->matrix[i].rate > value) value = target->matrix[i].rate;
    return value;
}

smg_fact_origin smg_target_rate_from(const smg_target *target, smg_rate rate) {
    smg_fact_origin from = target->fma_rate_from; /* of matrices, a table's: held where it is */
    if (rate != SMG_RATE_MATRICES) memcpy(&from, (const char *)target + rows[rate].origin, sizeof from);
    return from;
}

void smg_target_scale_rate(smg_target *target, smg_rate rate, double factor) {
    static const smg_fact_origin fitted = SMG_FACT_FITTED;
    if (rate == SMG_RATE_MATRICES) {
        for (int i = 0; i < target->matrix_count; i++) target->matrix[i].rate *= factor;
        return;
    }
    *value_of(target, rate) *= factor;
    memcpy((char *)target + rows[rate].origin, &fitted, sizeof fitted);
    if (rate != SMG_RATE_BARRIER) return;
    target->subgroup_barrier_cost *= factor;
    target->subgroup_barrier_cost_from = SMG_FACT_FITTED;
}

void smg_target_take_fitted(smg_target *target, const smg_target *from) {
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        if (smg_fact_from(from, row) != SMG_FACT_FITTED || !row->is_real) continue;
        smg_fact_set(target, row, 0, smg_fact_real(from, row), SMG_FACT_FITTED);
    }
    for (int i = 0; i < target->matrix_count; i++)
        for (int j = 0; j < from->matrix_count; j++)
            if (smg_matrix_same_shape(&target->matrix[i], &from->matrix[j]))
                target->matrix[i].rate = from->matrix[j].rate;
    target->revision = from->revision;
}
