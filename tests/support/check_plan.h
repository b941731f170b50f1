/* Runs a plan through the kernel interpreter and compares it with the graph's reference. */
#ifndef TESTS_CHECK_PLAN_H
#define TESTS_CHECK_PLAN_H

#include "plan/plan.h"
#include "sched/sched.h"
#include "space/space.h"

/* Sanitizers make the interpreter ten times slower: there tests of many graphs or schedules take one in so many. Odd, so
 * that what takes turns (targets, sizes) is taken in turns, too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECK_ONE_IN = 5 };
#else
enum { CHECK_ONE_IN = 1 };
#endif

/* Inputs are random (seeded): floats in [-1, 1), integers in [0, int_limit), bools either way. */
typedef struct check_options {
    const char *target; /* built-in target's name, or the path of a target file */
    smg_plan_options plan;
    const int64_t *symbols; /* a value per symbol */
    uint64_t seed;
    int64_t int_limit; /* default 2 */
    double tolerance;  /* |difference| <= tolerance * (1 + |reference|) */
    bool show;         /* prints the plan */
    bool by_lane;      /* kernels run in the per-lane mode of the interpreter */
    /* Overwrites an input's random values; NULL: keep them. `dims` has n->rank entries. */
    void (*fill)(void *user, const smg_node *n, const int64_t *dims, double *data);
    void *user;
} check_options;

typedef struct check_result {
    int prepare, steps;
    int kernels_with_products;
    bool in_parts; /* sums of the plan are */
    double max_error;
    bool pass;
} check_result;

#define CHECK_TENSORS 16 /* inputs, outputs */

/* Every tensor that crosses kernels, by node id, and the reference. */
typedef struct check_arrays {
    double **data;
    int64_t *count;
    smg_array inputs[CHECK_TENSORS], expected[CHECK_TENSORS];
} check_arrays;

smg_status check_plan(smg_context *ctx, const smg_graph *g, const check_options *options, check_result *out);
/* The parts of check_plan: leaves and reference; a clean slate for what kernels write; one kernel; comparison. */
smg_status check_arrays_make(const smg_graph *g, const check_options *o, smg_arena *arena, check_arrays *out);
void check_arrays_reset(const smg_graph *g, check_arrays *a);
smg_status check_kernel(smg_context *ctx, const smg_kernel *k, const check_options *o, check_arrays *a);
void check_compare(const smg_graph *g, const check_options *o, const check_arrays *a, check_result *out);
/* Of them, for tests that make a graph's one kernel by themselves: runs it, by lane too where `by_lane`, and fails with its
 * text, and that of its schedule unless NULL, where the results are not the reference's. */
void check_kernel_is_right(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                           bool by_lane, check_arrays *a);
/* check_plan, and then each step of the run list: the arrays are by node of plan->graph, and have what all steps give. */
typedef void check_visit(void *user, const smg_plan *plan, const smg_pstep *step, const smg_target *target,
                         check_arrays *arrays);
smg_status check_each_step(smg_context *ctx, const smg_graph *g, const check_options *options, check_visit *visit,
                           void *user, check_result *out);
/* All of a graph as one space. */
smg_status check_space(const smg_graph *g, smg_arena *arena, smg_space **out_space);
smg_status check_target(smg_context *ctx, const char *name, smg_target *out_target);
/* Paths of the files in `dir` that end in `ext`, sorted, in the arena; at most `limit`. */
int check_list(smg_arena *arena, const char *dir, const char *ext, const char **out_paths, int limit);
/* Reads a graph file. */
smg_status check_load(smg_context *ctx, const char *path, smg_graph **out_graph);

#endif
