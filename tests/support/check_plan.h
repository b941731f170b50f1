/* Runs a plan through the kernel interpreter and compares it with the graph's reference. */
#ifndef TESTS_CHECK_PLAN_H
#define TESTS_CHECK_PLAN_H

#include "plan/plan.h"

/* Inputs are random (seeded): floats in [-1, 1), integers in [0, int_limit), bools either way. */
typedef struct check_options {
    const char *target;      /* built-in target's name */
    smg_plan_options plan;
    const int64_t *symbols;  /* a value per symbol */
    uint64_t seed;
    int64_t int_limit;       /* default 2 */
    double tolerance;        /* |difference| <= tolerance * (1 + |reference|) */
    bool show;               /* prints the plan */
} check_options;

typedef struct check_result {
    int steps;
    int kernels_with_products;
    double max_error;
    bool pass;
} check_result;

smg_status check_plan(smg_context *ctx, const smg_graph *g, const check_options *options, check_result *out);
/* Reads a graph file. */
smg_status check_load(smg_context *ctx, const char *path, smg_graph **out_graph);

#endif
